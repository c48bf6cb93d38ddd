"""Garbage collections between steps, never inside one."""

from __future__ import annotations

import gc
import sys
import threading
import time

# Of the time since the last full collection, what the next one may take: a full collection that
# takes 0.1 s then runs every 10 s at most.
_FULL_SHARE = 0.01
_YOUNG_PER_FULL = 10  # as in CPython's third threshold
# A loader that is always late would never collect: by then the young generation is this many
# times larger than CPython lets it grow, and a collection takes some 100 ms.
_OVERDUE = 100

_lock = threading.RLock()
_active = []


class gc_guard:  # noqa: N801 (used as a statement: with fb.gc_guard():)
    """``with forebay.gc_guard():`` around a training loop moves Python's garbage collections.

    What is alive at the start is frozen (no collection looks at it until the end), automatic
    collections are switched off, and due ones run between steps: in the loader's ``next`` when the
    batch is there already, or where ``guard.step()`` is called. At the end everything is as before.

    The time of a collection is that of what was made since the start; so make model, optimiser and
    caches first. After setting up more of them inside, call ``guard.collect()`` once.

    Args:
        collect: collect once before freezing, so that today's garbage is not kept.
    """

    def __init__(self, collect=True):
        self._collect_first = collect
        self._young_since_full = 0
        self._full_at = 0.0
        self._full_seconds = 0.0
        #: Collections made and the seconds they took, so far.
        self.collections = 0
        self.seconds = 0.0

    def __enter__(self):
        with _lock:
            if self in _active:
                raise RuntimeError("this gc_guard is active already")
            if not _active:
                _Saved.take()
                gc.disable()
                if self._collect_first:
                    gc.collect()
                gc.freeze()
            self._full_at = time.monotonic()
            _active.append(self)
        return self

    def __exit__(self, *_):
        with _lock:
            _active.remove(self)
            if not _active:
                _Saved.restore()

    def step(self):
        """Runs the collection that is due, if one is. Call it where a pause does no harm."""
        with _lock:
            if self not in _active:
                return
            threshold = gc.get_threshold()[0]  # 0: the program wants no collections
            if threshold == 0 or gc.get_count()[0] < threshold:
                return
            full = self._young_since_full >= _YOUNG_PER_FULL and self._full_affordable()
            started = time.monotonic()
            gc.collect(2 if full else 1)
            self._note(started, full)

    def collect(self):
        """A full collection now, of all that was frozen too; what survives is frozen."""
        with _lock:
            started = time.monotonic()
            gc.unfreeze()
            gc.collect()
            gc.freeze()
            self._note(started, True)

    def _full_affordable(self):
        return self._full_seconds <= _FULL_SHARE * (time.monotonic() - self._full_at)

    def _note(self, started, full):
        now = time.monotonic()
        self.collections += 1
        self.seconds += now - started
        if full:
            self._young_since_full = 0
            self._full_seconds, self._full_at = now - started, now
        else:
            self._young_since_full += 1


def between_steps(late):
    """For the loader: a batch is about to be handed over, or, when ``late``, waited for."""
    if not _active:
        return
    with _lock:
        if not _active:
            return
        if not late or gc.get_count()[0] >= _OVERDUE * max(gc.get_threshold()[0], 1):
            _active[-1].step()


class _Saved:
    enabled = True
    frozen = False

    @classmethod
    def take(cls):
        cls.enabled = gc.isenabled()
        cls.frozen = _program_has_frozen()

    @classmethod
    def restore(cls):
        # There is one frozen set: when the program had one, it stays, ours within it.
        if not cls.frozen:
            gc.unfreeze()
        if cls.enabled:
            gc.enable()


def _program_has_frozen():
    # From 3.12 on, immortal objects are among the frozen by themselves, so the count does not tell.
    # sys.modules is mortal and there from the start; get_objects leaves the frozen out.
    if gc.get_freeze_count() == 0:
        return False
    return not any(each is sys.modules for each in gc.get_objects())
