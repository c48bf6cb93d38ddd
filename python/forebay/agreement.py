"""Whether all ranks read the same order, asked once, before the first batch.

By the key-value store that torch.distributed met by, never by a collective: a rank that does not
take part delays the others a little and harms nobody's all-reduce.
"""

from __future__ import annotations

import json
import os
import sys
import time

from . import ranks
from .errors import InvalidArgumentError

WAIT_S = 60.0  # for ranks that start late
_POLL_S = (0.01, 1.0)  # at first, at last: a thousand ranks share one store
_READ_S = 5.0  # for the others to read what rank 0 found
_SHOWN = 5  # fields that differ

_round = 0  # loaders that were compared: the ranks make them in the same order
_process = os.getpid()


def check(place, summary, modules=None):
    """Returns once every rank has been seen to agree, or WAIT_S are over.

    Rank 0 compares all with its own and tells them. A rank that comes later than WAIT_S compares
    itself with rank 0. Nothing is done without torch.distributed, where ``place`` is not this
    process's place in it, and in forked children and DataLoader workers, whose connection is their
    parent's.

    Errors: InvalidArgumentError naming the fields in which ranks differ, with both sides' values;
    or where the place was found when torch.distributed was not up yet, and is another one.
    """
    distributed = _distributed(sys.modules if modules is None else modules)
    if distributed is None:
        return
    actual = (distributed.get_rank(), distributed.get_world_size())
    if (place.rank, place.world_size) != actual:
        if place.source in ("arguments", ranks.HOST_SHARE):
            return
        raise InvalidArgumentError(
            f"this loader was made for rank {place.rank} of {place.world_size} ({place.source}), "
            f"and torch.distributed, which came up later, says {actual[0]} of {actual[1]}: make "
            "the loader after it, or pass rank= and world_size="
        )
    store = _store_of(distributed)
    if place.world_size == 1 or store is None:
        return
    global _round
    board, _round = _Board(store, f"forebay/order/{_round}"), _round + 1
    deadline = time.monotonic() + WAIT_S
    board.post(place.rank, summary)
    if place.rank == 0:
        verdict = _judge(board, place.world_size, summary, deadline)
        board.post("verdict", verdict)
        if verdict["differ"]:  # this process ends, and may be the one that holds the store
            board.wait_for_readers(place.world_size - 1, time.monotonic() + _READ_S)
    else:
        verdict = board.wait("verdict", deadline + 1)
        board.note_reader()
        first = board.wait(0, 0)
        if first is None:
            verdict = {"differ": "", "late": [0]}
        elif verdict is None or place.rank in verdict["late"]:
            verdict = {"differ": _difference(0, first, place.rank, summary), "late": []}
    if verdict["differ"]:
        raise InvalidArgumentError(f"the ranks would not read the same order: {verdict['differ']}")
    if verdict["late"]:
        _say_who_is_late(place.rank, verdict["late"])


def _judge(board, world_size, summary, deadline):
    late = []
    for rank in range(1, world_size):
        theirs = board.wait(rank, deadline)
        if theirs is None:
            late.append(rank)
            continue
        differ = _difference(0, summary, rank, theirs)
        if differ:
            return {"differ": differ, "late": []}
    return {"differ": "", "late": late}


def _say_who_is_late(rank, late):
    names = ", ".join(map(str, late[:8])) + ", ..." * (len(late) > 8)
    print(
        f"forebay: rank {rank} goes on without rank{'s' * (len(late) > 1)} {names} having asked "
        f"for a batch within {WAIT_S:g} s; a loader that is not of all ranks is made with rank= "
        "and world_size=",
        file=sys.stderr, flush=True,
    )  # fmt: skip


class _Board:
    """JSON values under names, in the store."""

    def __init__(self, store, prefix):
        self._store, self._prefix = store, prefix

    def post(self, name, value):
        self._store.set(f"{self._prefix}/{name}", json.dumps(value))
        self._store.add(f"{self._prefix}/{name}/there", 1)

    def wait(self, name, deadline):
        """None: it did not come. Looks at least once."""
        if not self._wait_for(f"{name}/there", 1, deadline):
            return None
        return json.loads(self._store.get(f"{self._prefix}/{name}"))

    def note_reader(self):
        self._store.add(f"{self._prefix}/readers", 1)

    def wait_for_readers(self, count, deadline):
        self._wait_for("readers", count, deadline)

    def _wait_for(self, name, count, deadline):
        pause, most = _POLL_S
        while self._store.add(f"{self._prefix}/{name}", 0) < count:
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(pause, left))
            pause = min(2 * pause, most)
        return True


def _distributed(modules):
    """torch.distributed, where it is up and this process's own."""
    distributed = modules.get("torch.distributed")
    if distributed is None or os.getpid() != _process:
        return None
    if not distributed.is_available() or not distributed.is_initialized():
        return None
    data = modules.get("torch.utils.data")
    if data is not None and data.get_worker_info() is not None:
        return None
    return distributed


def _store_of(distributed):
    # Semi-private, and in every torch since 1.8; without it there is nothing to compare by.
    find = getattr(distributed.distributed_c10d, "_get_default_store", None)
    return None if find is None else find()


def _difference(rank, summary, other_rank, other):
    """"": there is none."""
    differing = list(_differences("", json.loads(json.dumps(summary)), other))
    shown = "; ".join(
        f"{name} is {a!r} on rank {rank} and {b!r} on rank {other_rank}"
        for name, a, b in differing[:_SHOWN]
    )
    return shown + (f"; and {len(differing) - _SHOWN} more" if len(differing) > _SHOWN else "")


def _differences(name, first, second):
    """(field, one value, the other) of the leaves that differ."""
    pairs = []
    if isinstance(first, dict) and isinstance(second, dict):
        pairs = [(f"{name}.{k}" if name else k, first.get(k), second.get(k))
                 for k in dict.fromkeys([*first, *second])]  # fmt: skip
    elif isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        pairs = [(f"{name}[{i}]", *both) for i, both in enumerate(zip(first, second))]
    if not pairs and first != second:
        yield name, first, second
    for pair in pairs:
        if pair[1] != pair[2]:
            yield from _differences(*pair)


def _forget_store():
    global _process
    _process = None


os.register_at_fork(after_in_child=_forget_store)
