"""An order that is somebody else's: their sampler, pulled a bounded number of batches ahead."""

from __future__ import annotations

import collections
import collections.abc
import copy
import dataclasses
import operator
import zlib
from typing import Any

import numpy as np

from . import check
from .errors import InvalidArgumentError

_ITEMS_AHEAD = 4096  # as many as the loader plans at most
_BATCHES_AHEAD = 64
_PULLS_PER_STEP = 8  # a slow sampler does not hold the first batch up
_END = object()


@dataclasses.dataclass(frozen=True)
class _Mark:
    """Where the sampler stood behind a batch."""

    crc: int = 0  # of the epoch's indices so far
    state: Any = None  # its own


class SamplerFeed:
    """Pulls indices from ``sampler`` or lists of them from ``batch_sampler``.

    Each epoch begins with ``set_epoch(epoch)``, where the sampler has one, and ``iter``. Errors of
    the sampler are raised in their place: behind the batches that came before.
    """

    def __init__(self, sampler, batch_sampler, batch_size, drop_last, pull_ahead):
        self._whole = batch_sampler is not None
        self._source = batch_sampler if self._whole else sampler
        if not hasattr(self._source, "__iter__") and not callable(self._source):
            name = "batch_sampler" if self._whole else "sampler"
            raise InvalidArgumentError(
                f"{name}={self._source!r} must be an iterable or a function that makes one"
            )
        self.batch_size, self.drop_last = batch_size, drop_last
        most = min(_BATCHES_AHEAD, max(2, _ITEMS_AHEAD // batch_size))
        self._ahead = most if pull_ahead is None else check.integer("pull_ahead", pull_ahead, 0, 4000)
        self.reset()

    def __len__(self):
        count = _length(self._source)
        if count is None:
            raise TypeError(f"{self._source!r} does not say how long it is")
        if self._whole:
            return count
        return count // self.batch_size + bool(not self.drop_last and count % self.batch_size)

    def reset(self):
        """What was pulled and not delivered is forgotten; the next epoch begins anew."""
        self._iterator = self._resume = None
        self._pulled = self._delivered = _Mark()
        self._pending = collections.deque()
        self._taken, self._length = 0, None  # indices of the epoch; how many it will have, if known
        self._ended = False
        self._failed = None

    def pull(self, core, epochs):
        """Supplies what the next batch, and those ahead of it, will be."""
        if self._iterator is None:
            epoch = core.state().epoch
            if 0 <= epochs <= epoch:
                return
            resume = self._resume
            try:
                self._begin(epoch, resume)
            except BaseException:
                self.reset()
                self._resume = resume
                raise
        for _ in range(_PULLS_PER_STEP):
            if self._ended or self._failed or len(self._pending) > self._ahead:
                break
            try:
                batch, own_state = self._next_batch()
            except BaseException as error:
                self._failed = error  # a generator that raised would now say that it is at its end
                if not isinstance(error, Exception):
                    raise
                break
            if batch is None:
                core.supply_end()
                self._ended = True
                self._pulled = _Mark(0, own_state)
            else:
                core.supply(batch)
                self._taken += len(batch)
                self._pulled = _Mark(_crc(batch, self._pulled.crc), own_state)
                self._pending.append(self._pulled)
        if self._failed and not self._pending:
            raise self._failed

    def took_batch(self):
        self._delivered = self._pending.popleft()

    def took_end(self):
        end = self._pulled
        self.reset()
        self._pulled = self._delivered = end

    def state(self):
        """As of the batch that was delivered last."""
        return {"crc32": self._delivered.crc, "state": self._delivered.state}

    def load(self, saved, position):
        """The next epoch to begin goes on at ``position``, behind what ``saved`` says."""
        if not isinstance(saved, dict) or not {"crc32", "state"} <= set(saved):
            raise InvalidArgumentError("the state has no 'sampler': it is of another order")
        self.reset()
        self._resume = (saved, position)
        self._delivered = _Mark(saved["crc32"], saved["state"])

    # Within.

    def _begin(self, epoch, resume):
        set_epoch = getattr(self._source, "set_epoch", None)
        if callable(set_epoch):
            set_epoch(epoch)
        self._resume = None
        self._taken = 0 if resume is None else resume[1]
        self._length = _length(self._source)
        if resume is None:
            self._iterator = self._fresh_iterator()
            self._pulled = _Mark()
            return
        saved, position = resume
        if saved["state"] is None:
            self._iterator = self._fresh_iterator()
            self._replay(saved["crc32"], position)
        else:
            self._restore(saved, position)

    def _fresh_iterator(self):
        return iter(self._source if hasattr(self._source, "__iter__") else self._source())

    def _restore(self, saved, position):
        own = copy.deepcopy(saved["state"])
        if _has_state(self._source):
            self._source.load_state_dict(own)
            self._iterator = self._fresh_iterator()
        else:
            self._iterator = self._fresh_iterator()
            if not _has_state(self._iterator):
                raise InvalidArgumentError(
                    f"the state holds one of the sampler, and {self._source!r} cannot load it"
                )
            self._iterator.load_state_dict(own)
        self._pulled = _Mark(saved["crc32"], saved["state"])
        if position == 0:  # it was saved at the end of an epoch, of which nothing is left
            first = next(self._iterator, _END)
            self._iterator = (
                self._fresh_iterator() if first is _END else _Chained(first, self._iterator)
            )

    def _replay(self, crc, position):
        """Without a state of its own a sampler must give the same indices again."""
        mine = 0
        while position > 0:
            item = next(self._iterator, _END)
            indices = np.zeros(0, np.int64) if item is _END else _indices(item, self._whole)
            if not 0 < len(indices) <= position:
                mine = None
                break
            mine = _crc(indices, mine)
            position -= len(indices)
        if mine != crc:
            raise InvalidArgumentError(
                f"{self._source!r} does not give the indices again that it gave in the run that "
                "was saved: seed it by its epoch (set_epoch), or give it state_dict and "
                "load_state_dict"
            )
        self._pulled = _Mark(mine)

    def _next_batch(self):
        """Indices (None: the epoch has ended), and the sampler's own state behind them."""
        if self._whole:
            item = next(self._iterator, _END)
            return None if item is _END else _indices(item, True), self._own_state()
        indices, own_state = [], None
        for item in self._iterator:
            indices.append(_index(item))
            if len(indices) == self.batch_size:
                return np.array(indices, np.int64), self._own_state()
            # One that has said its end may be back at its start: its state is asked for before.
            if not self.drop_last and self._length in (None, self._taken + len(indices)):
                own_state = self._own_state()
        if not indices or self.drop_last:
            return None, self._own_state()
        return np.array(indices, np.int64), own_state or self._own_state()

    def _own_state(self):
        for owner in (self._source, self._iterator):
            if _has_state(owner):
                return copy.deepcopy(owner.state_dict())
        return None


class _Chained:
    """An iterator whose first item was looked at; its state is that of the rest."""

    def __init__(self, first, rest):
        self._first, self._rest = first, rest
        if _has_state(rest):
            self.state_dict, self.load_state_dict = rest.state_dict, rest.load_state_dict

    def __iter__(self):
        return self

    def __next__(self):
        first, self._first = self._first, _END
        return next(self._rest) if first is _END else first


def _has_state(owner):
    return callable(getattr(owner, "state_dict", None)) and callable(
        getattr(owner, "load_state_dict", None)
    )


def _length(source):
    try:
        return len(source)
    except Exception:  # of a sampler that only says so when it is asked
        return None


def _index(item):
    try:
        index = operator.index(item)
    except TypeError:
        index = -1 << 63
    if -(2**63) < index < 2**63:
        return index
    raise InvalidArgumentError(f"the sampler gave {item!r}: no index")


def _indices(item, whole):
    if isinstance(item, np.ndarray) and item.ndim == 1 and item.dtype == np.int64:
        return np.ascontiguousarray(item)
    if whole and not isinstance(item, collections.abc.Iterable):
        raise InvalidArgumentError(f"the batch sampler gave {item!r}: no list of indices")
    return np.array([_index(one) for one in (item if whole else [item])], np.int64)


def _crc(indices, before):
    return zlib.crc32(indices.tobytes(), before)
