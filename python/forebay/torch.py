"""For those who keep ``DataLoader`` or torchdata's ``StatefulDataLoader``: ``forebay.torch``.

``forebay.Loader`` needs neither: it fetches and decodes by threads of its own. What is here does the
same inside a worker process, or in this one with ``num_workers=0``.
"""

from __future__ import annotations

import operator
import os

import numpy as np
import torch
import torch.utils.data

from . import check, ranks, units
from .errors import InvalidArgumentError
from .loader import Loader

__all__ = ["IterableDataset", "MapDataset"]

_WORKERS_MOST = 1024
_HELD_IN_WORKER = 64  # batches on their way to the main process
_ANY = 2**31 - 1
_ROWS_MOST = 64  # of one piece of a list of indices
_ROWS_SHARE = 4  # of the memory, that a piece may fill
_OWN = ("output", "device", "epochs", "num_workers", "prefetch_factor", "pin_memory")


class IterableDataset(torch.utils.data.IterableDataset):
    """The batches, or samples, of a ``forebay.Loader`` for ``DataLoader`` and its kin.

    >>> data = fb.torch.IterableDataset(clips, batch_size=4, seed=7)
    >>> for batch in DataLoader(data, batch_size=None, num_workers=2): ...

    With ``batch_size=B`` it yields whole batches: dicts of tensors, exactly those of
    ``forebay.Loader`` and in the same order, however many workers there are: worker w of n takes
    this rank's batches w, w + n, w + 2n and so on, and ``DataLoader`` hands them out in turn. With
    ``batch_size=None`` it yields samples; worker w takes this rank's samples w, w + n, and so on,
    and what ``DataLoader(batch_size=...)`` makes of them depends on the number of workers.

    Each ``iter`` of the ``DataLoader`` is one epoch, the next the next, in new worker processes or
    in those that stayed; ``set_epoch`` chooses. Each worker has its part of ``memory`` and of the
    cores. With ``StatefulDataLoader`` the state of every worker is kept and restored.

    The rank is found as for ``forebay.Loader``, in the process that makes the workers: neither a
    ``DistributedSampler`` nor Accelerate's ``prepare`` must shard it again.

    Args:
        dataset: as for ``forebay.Loader``.
        batch_size: None: single samples.
        arguments: of ``forebay.Loader``; not ``output``, ``device``, ``epochs``.
    """

    def __init__(self, dataset, *, batch_size=None, **arguments):
        super().__init__()
        _refuse(arguments, _OWN)
        self._samples = batch_size is None
        self._arguments = dict(
            arguments, dataset=dataset, batch_size=1 if self._samples else batch_size
        )
        # By worker: the epoch that its next iter() opens. Shared, since workers may end with it.
        self._next_epoch = torch.zeros(_WORKERS_MOST, dtype=torch.int64).share_memory_()
        self._place = None
        self._forget()
        self._loader_here(0, 1)  # arguments that cannot be are refused at once

    def __len__(self):
        """This rank's batches (or samples) of an epoch."""
        return len(self._loader_here(0, 1))

    def __iter__(self):
        worker, workers = _worker()
        epoch = self._loaded["epoch"] if self._loaded else int(self._next_epoch[worker])
        self._next_epoch[worker] = epoch + 1
        state, self._loaded = self._loaded, None
        if state is not None and state["done"]:
            self._state = state
            return iter(())
        loader = self._loader_here(worker, workers)
        if state is not None and state["loader"] is not None:
            loader.load_state_dict(state["loader"])
        loader.set_epoch(epoch)  # which keeps a position inside it
        self._state = {"epoch": epoch, "done": False, "loader": None}
        return self._go(loader, self._state)

    def set_epoch(self, epoch):
        """The next ``iter``, in every worker, is of this epoch."""
        self._next_epoch.fill_(check.integer("epoch", epoch, 0, 2**31 - 1))

    def state_dict(self):
        """This process's position, JSON-able; a ``StatefulDataLoader`` asks every worker."""
        state = self._loaded or self._state
        if state is None:
            return {"epoch": int(self._next_epoch[_worker()[0]]), "done": False, "loader": None}
        if self._loader is not None and self._running is state:
            return dict(state, loader=self._loader.state_dict())
        return dict(state)

    def load_state_dict(self, state):
        """The next ``iter`` goes on there."""
        if not isinstance(state, dict) or not {"epoch", "done", "loader"} <= set(state):
            raise InvalidArgumentError("state must be a dict as state_dict() gives it")
        check.integer("state: epoch", state["epoch"], 0, 2**31 - 1)
        check.boolean("state: done", state["done"])
        self._loaded = dict(state)

    def __getstate__(self):
        kept = ("_samples", "_arguments", "_next_epoch", "_loaded", "_state")
        # A worker that is spawned does not know the ranks.
        return {name: self.__dict__[name] for name in kept} | {"_place": self._find_place()}

    def __setstate__(self, state):
        loaded, running = state["_loaded"], state["_state"]
        self.__dict__.update(state)
        self._next_epoch.share_memory_()
        self._forget()
        self._loaded, self._state = loaded, running

    # Within.

    def _forget(self):
        self._loader = self._loader_of = None
        self._loaded = None  # a state that the next iter() starts from
        self._state = None  # of the latest iterator
        self._running = None  # that state, once its loader has begun

    def _go(self, loader, state):
        self._running = state
        for batch in loader:
            yield _row(batch, 0, 1) if self._samples else batch
        state.update(done=True, loader=None)
        self._running = None

    def _find_place(self):
        if self._place is not None:
            return self._place
        found = ranks.find_place(self._arguments.get("rank"), self._arguments.get("world_size"))
        ranks.announce(found)
        place = (found.rank, found.world_size)
        if found.world_size > 1:  # else torch.distributed may come up yet
            self._place = place
        return place

    def _loader_here(self, worker, workers):
        rank, world_size = self._find_place()
        of = (os.getpid(), worker, workers, rank, world_size)
        if self._loader_of != of:
            arguments = dict(self._arguments, rank=rank, world_size=world_size, output="torch")
            if self._samples:  # DataLoader holds a batch of them until it has collated it
                arguments.setdefault("held_limit", _ANY)
            if torch.utils.data.get_worker_info() is not None:
                _share_out(arguments, workers)
            ranks.announced(rank, world_size)
            self._loader = _WorkerLoader((worker, workers), arguments)
            self._loader_of = of
        return self._loader


class MapDataset(torch.utils.data.Dataset):
    """Samples by number, for ``DataLoader`` with any sampler.

    >>> data = fb.torch.MapDataset(clips)
    >>> for batch in DataLoader(data, batch_size=4, shuffle=True, num_workers=2): ...

    ``data[i]`` is a dict of tensors without a batch dimension (of ``Records``: ``bytes``, or each field
    by its name, as long as it is; they need a ``collate_fn``); ``DataLoader`` asks for a batch at
    once (``__getitems__``), and its samples are fetched and decoded beside each other. Nothing is
    fetched ahead of what is asked for: ``forebay.Loader(sampler=...)`` does that.

    Slicing by rank is the sampler's business.

    Args:
        dataset: as for ``forebay.Loader``, but a ``Mix``.
        arguments: ``memory``, ``decode_threads``, ``on_bad_sample``, ``timeout`` of
            ``forebay.Loader``.
    """

    def __init__(self, dataset, **arguments):
        for name in arguments:
            if name not in ("memory", "decode_threads", "on_bad_sample", "timeout"):
                raise InvalidArgumentError(f"{name}= is nothing that a MapDataset has a use for")
        self._arguments = dict(arguments, dataset=dataset)
        self._loader = self._loader_of = None
        self._loader_here()

    def __len__(self):
        return self._loader_here().sample_count

    def __getitem__(self, index):
        index = _index(index)
        if not -len(self) <= index < len(self):  # what ends `for sample in data`
            raise IndexError(f"index={index}: there are {len(self)} samples")
        return self.__getitems__([index % len(self)])[0]

    def __getitems__(self, indices):
        loader = self._loader_here()
        indices = [check.integer("index", _index(i), 0) for i in indices]
        rows = loader.batch_size
        pieces = [indices[i : i + rows] for i in range(0, len(indices), rows)]
        return [
            _row(piece, row, len(asked))
            for asked, piece in zip(pieces, loader.fetch(pieces))
            for row in range(len(asked))
        ]

    def __getstate__(self):
        return {"_arguments": self._arguments}

    def __setstate__(self, state):
        self._arguments = state["_arguments"]
        self._loader = self._loader_of = None

    def _loader_here(self):
        if self._loader_of != os.getpid():
            arguments = dict(self._arguments)
            if torch.utils.data.get_worker_info() is not None:
                _share_out(arguments, _worker()[1])
            self._loader = _FetchingLoader(arguments)
            self._loader_of = os.getpid()
        return self._loader


class _WorkerLoader(Loader):
    """A worker's part of its rank's batches."""

    def __init__(self, steps, arguments):
        self._steps = steps
        super().__init__(arguments.pop("dataset"), **arguments)


class _FetchingLoader(Loader):
    """Lists of samples as they are asked for."""

    def __init__(self, arguments):
        memory = units.parse_bytes(arguments.get("memory", "2GiB"), "memory")
        common = dict(arguments, rank=0, world_size=1, output="torch", held_limit=_ANY)
        dataset = common.pop("dataset")
        # A first look says how large a sample is, and with it how many a piece may have.
        super().__init__(dataset, batch_sampler=_Asked(1), **common)
        rows = max(1, min(_ROWS_MOST, memory // _ROWS_SHARE // self._row_bytes()))
        while rows > 1:
            try:
                super().__init__(dataset, batch_sampler=_Asked(rows), **common)
                break
            except InvalidArgumentError:  # samples that differ in size may be larger than it looks
                rows //= 2
        else:
            super().__init__(dataset, batch_sampler=_Asked(1), **common)

    def _row_bytes(self):
        sizes = [
            np.prod([n for n in shape[1:] if n >= 0], dtype=np.int64) * np.dtype(dtype).itemsize
            for _, dtype, shape in self._core.arrays
        ]
        return int(sum(sizes))

    def fetch(self, pieces):
        """A batch for each list of samples."""
        with self._lock:
            core = self._live_core()
            self._started = True
            try:
                for piece in pieces:
                    core.supply(np.array(piece, np.int64))
                return [self._finish(self._take(core)[0]) for _ in pieces]
            except BaseException:
                core.set_epoch(0)  # forgets the pieces that are left
                raise


class _Asked:
    """Stands for a batch sampler: what is fetched is said by hand."""

    def __init__(self, rows):
        self.batch_size = rows

    def __iter__(self):
        return iter(())


def _row(batch, row, rows):
    """One sample of ``rows``, without the batch dimension; of what is as long as it is, its part."""
    if not isinstance(batch, dict):
        raise InvalidArgumentError(
            f"ops: the last one returned a {type(batch).__name__}: where samples come one by one "
            "(batch_size=None) it has to be a dict"
        )
    offsets = {}
    for name in batch:
        own = "offsets" if name == "bytes" else f"{name}_offsets"
        if getattr(batch.get(own), "shape", None) == (rows + 1,):
            offsets[name] = own
    begins = set(offsets.values())
    return {
        name: array[batch[offsets[name]][row] : batch[offsets[name]][row + 1]]
        if name in offsets
        else array[row]
        for name, array in batch.items()
        if name not in begins
    }


def _index(index):
    try:
        return operator.index(index)
    except TypeError:
        raise InvalidArgumentError(f"index={index!r} must be an integer") from None


def _worker():
    info = torch.utils.data.get_worker_info()
    return (0, 1) if info is None else (info.id, info.num_workers)


def _share_out(arguments, workers):
    memory = units.parse_bytes(arguments.get("memory") or "2GiB", "memory")
    arguments["memory"] = memory // workers
    if arguments.get("decode_threads") is None:
        arguments["decode_threads"] = max(1, (os.cpu_count() or 1) // workers)
    arguments.setdefault("held_limit", _HELD_IN_WORKER)


def _refuse(arguments, names):
    for name in names:
        if name in arguments:
            raise InvalidArgumentError(f"{name}= is not for a dataset of a DataLoader")
