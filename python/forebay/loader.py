"""The training loop's end of Forebay."""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref

from . import (
    _core,
    agreement,
    check,
    gcguard,
    loader_options,
    loader_state,
    ranks,
    run_record,
    units,
)
from .clips import VideoClips
from .errors import CancelledError, DeadlineExceededError, ForkError, InvalidArgumentError
from .mix import Mix, check_weight
from .records import Records
from .storage import to_store_options

_KINDS = {
    "numpy": _core.ArrayKind.NUMPY,
    "torch": _core.ArrayKind.DLPACK_BOOL_AS_UINT8,
    "dlpack": _core.ArrayKind.DLPACK,
}
_FOREVER_S = 1e9


class Loader:
    """Batches of ``dataset``, in a seeded order, fetched and decoded ahead by native threads.

    Each ``iter`` yields the batches of one epoch, the next ``iter`` those of the next; an epoch
    that was left early counts as done. A batch is a dict of arrays: one for each camera, uint8
    ``[B, T, H, W, 3]`` (see ``VideoClips``), the labels' columns, or ``bytes`` with ``offsets``
    (see ``Records``), and

    - ``_sample``, int64 ``[B]``: the samples' indices in the catalog;
    - ``_epoch``, int32 ``[B]``;
    - ``_source``, int32 ``[B]``, of a ``Mix`` only: which of its sources (``sources`` names them)
      ``_sample`` counts in;
    - ``_pad``, bool ``[B]``, with ``tail="pad"`` only: True where the last batch repeats samples
      from the epoch's start, so that all ranks have equally many rows.

    Batch t of an epoch is positions ``[t*B*W, (t+1)*B*W)`` of the order for world size W, of which
    rank r takes B from ``t*B*W + r*B``. The order depends on data set, seed, epoch and the
    arguments ``shuffle`` and ``epoch_samples`` alone.

    Arrays share memory with the loader (nothing is copied) and stay valid as long as they are
    referenced, after ``close`` too.

    Threads start with the first ``next``. A loader that has none yet may cross a ``fork``;
    afterwards its use in the child is refused with ``ForkError``. Pickling (for spawn and
    forkserver) keeps arguments and position.

    Args:
        dataset: a ``VideoClips``, a ``Records``, or a ``Mix`` of several.
        batch_size: samples per rank and batch.
        seed: of the order.
        epochs: how many there are; None: no end.
        shuffle: True: every order of the samples is possible; False: the catalog's order;
            ``forebay.BlockShuffle(...)``: in two levels, so that one range read serves many samples.
        drop_last: True: an incomplete last batch is left out. False: it comes, and all ranks have
            equally many rows of it, see ``_pad``.
        tail: what becomes of an epoch's last samples, in place of ``drop_last``: ``"drop"``,
            ``"pad"``, or ``"ragged"``: they are shared out as they are, so that some ranks get a
            row less, or none. All ranks get equally many batches in each case.
        epoch_samples: samples of an epoch, over all ranks; None: those of the data set. Fewer: the
            next epoch goes on where this one ends. More: the data set starts over, in another
            order. Either way all samples come equally often.
        ops: of ``Records``: what is done to each sample, see ``forebay.ops``; a Python callable may
            come last: it gets a batch's dict, and what it returns is what ``next`` returns. Its
            random numbers should be those of ``forebay.rng``.
        output: ``"numpy"``, ``"torch"`` (tensors made by DLPack) or ``"dlpack"`` (objects with
            ``__dlpack__``, for any framework).
        device: ``"cpu"``.
        rank, world_size: this process's slice; None: found from torch.distributed, Ray Train,
            torchrun's, MPI's or Slurm's variables, and printed once.
        replicas: so many ranks, side by side, see the same samples (tensor, pipeline or context
            parallel); ``world_size`` is a multiple of it.
        memory: the byte budget of everything fetched and decoded ahead: ``"2GiB"`` or an int. A
            batch leaves the budget when ``next`` returns it: those that you keep referenced, up to
            ``held_limit``, come on top.
        runway: how far ahead data is kept ready: ``"auto"`` (measured), seconds (``1.5``,
            ``"1.5s"``), or ``"off"`` or 0 (nothing is fetched ahead).
        decode_threads: None: one less than there are cores.
        held_limit: how many batches may be referenced at once before the next one is refused with
            ``ResourceExhaustedError``.
        on_bad_sample: ``"raise"`` (the failed batch is not consumed: ``next`` tries it again), or
            ``forebay.skip(max=10)``.
        content_digest: True: ``state_dict()["content"]`` is a digest of the arrays that this rank was
            given since it was made or loaded a state, as hex; those of all ranks and stretches
            added up modulo 2^64 are the run's. Costs a pass over them.
        digest_every: a line of log (level info) with the digests every so many steps.
        timeout: seconds (or ``"30s"``) that ``next`` waits at most, then ``DeadlineExceededError``;
            None: as long as the store's own deadlines let it.
        sampler: any iterable of sample indices (or a function that makes one for each epoch): it
            becomes the order, in place of ``shuffle`` and of the ranks' slices, which are its
            business. ``set_epoch`` is called at each epoch's start where it has one. Its own
            ``state_dict`` is kept in the loader's state, as of the batch that ``next`` returned
            last; without one it is replayed, and must give the same indices again.
        batch_sampler: the same for an iterable of lists of indices. ``batch_size`` is the largest
            batch's; left out: its own ``batch_size``.
        pull_ahead: how many batches beyond the one that ``next`` returns the sampler may have been
            asked for by then; 0 for one that depends on what the model returns. None: as many as
            may be fetched ahead.
        num_workers, prefetch_factor, pin_memory: accepted for the sake of code written for
            ``torch.utils.data.DataLoader``; they change nothing.
    """

    _steps = (0, 1)  # of this rank's batches which one first, and every how many

    def __init__(
        self,
        dataset,
        *,
        batch_size=1,
        seed=0,
        epochs=None,
        shuffle=True,
        drop_last=None,
        tail=None,
        epoch_samples=None,
        ops=(),
        output="numpy",
        device="cpu",
        rank=None,
        world_size=None,
        replicas=1,
        memory="2GiB",
        runway="auto",
        decode_threads=None,
        held_limit=4,
        on_bad_sample="raise",
        content_digest=False,
        digest_every=None,
        timeout=None,
        sampler=None,
        batch_sampler=None,
        pull_ahead=None,
        num_workers=None,
        prefetch_factor=None,
        pin_memory=None,
    ):
        self._arguments = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        self._core = None
        self._closed = self._agreed = False
        self._start = None  # the state that the first batch came from
        self._resumed = False  # load_state_dict was called, and neither iter() nor set_epoch() since
        if not isinstance(dataset, (VideoClips, Records, Mix)):
            raise InvalidArgumentError(
                f"dataset={dataset!r} must be a forebay.VideoClips, a forebay.Records or a "
                "forebay.Mix"
            )
        if rank is None and world_size is None and getattr(dataset, "host", None) is not None:
            place = ranks.within_host(dataset.host[1])
        else:
            place = ranks.find_place(rank, world_size)
        self._place = place
        self._feed = loader_options.make_feed(self._arguments)
        self._options = loader_options.to_core(self._arguments, place, self._feed, self._steps)
        self._ops, self._last_op = loader_options.split_ops(ops)
        self._output = check.one_of("output", output, tuple(_KINDS))
        if device != "cpu":
            raise InvalidArgumentError(f"device={device!r}: only 'cpu' is supported")
        self._timeout = _FOREVER_S if timeout is None else units.parse_seconds(timeout, "timeout")
        for name in ("num_workers", "prefetch_factor"):
            if self._arguments[name] is not None:
                check.integer(name, self._arguments[name], least=0)
        self._torch = _import_torch() if output == "torch" else None

        self._dataset = dataset
        self._store = to_store_options(dataset.storage_options)
        self._lock = threading.RLock()  # one consumer at a time
        self._progress = None  # of the latest iterator
        self._started = False  # threads may live
        self._at_start_of = 0  # the epoch that the next batch opens; None: in the middle of one
        self._process = os.getpid()
        self._make_core()
        ranks.announce(place)
        _live_loaders.add(self)

    # What a training loop asks for.

    def __iter__(self):
        with self._lock:
            core = self._live_core()
            left = self._progress
            if self._leave_iterator(core):
                self._jump(core, left.epoch + 1)
            elif self._resumed:
                self._pass_empty_rest(core)
            self._progress = _Progress()
            return _Epoch(self, self._progress)

    def __len__(self):
        """Batches of one whole epoch, exactly."""
        if self._feed is not None:
            return len(self._feed)
        return self._live_core().batches_per_epoch

    def set_epoch(self, epoch):
        """The next ``iter`` starts at the beginning of ``epoch``.

        A position inside the same epoch that ``load_state_dict`` has just set is kept, so that
        loops that call both resume where they should. (Behind its last batch nothing is left of it,
        while an ``iter`` without ``set_epoch`` opens the next epoch there, as it does in a run that
        was not interrupted.)
        """
        epoch = check.integer("epoch", epoch, least=0, most=2**31 - 1)
        with self._lock:
            core = self._live_core()
            self._resumed = False
            left_early = self._leave_iterator(core)
            if left_early or epoch != self._epoch_ahead(core):
                self._jump(core, epoch)

    def state_dict(self):
        """The position as JSON-able values, under 1 KiB for a source without skips.

        It counts what ``next`` has returned, not what is fetched ahead. The same on every rank, but
        for ``skips``, the positions whose samples this rank had to replace, ``replaced``, those
        samples of the whole run (``skip(max=...)`` counts them), and ``content``, its part of the
        digest of the arrays (see ``content_digest``).
        """
        with self._lock:
            core = self._live_core()
            state = loader_state.from_core(core.state())
            if self._at_start_of is not None:
                state.update(epoch=self._at_start_of, position=0)
            if self._feed is not None:
                state["sampler"] = self._feed.state()
            return state

    def load_state_dict(self, state):
        """Goes on from ``state``, on any rank and world size.

        Errors: InvalidArgumentError naming what differs (data set, seed, clip arguments, ...).
        """
        with self._lock:
            core = self._live_core()
            core.load_state(loader_state.to_core(state))
            if self._feed is not None:
                self._feed.load(state.get("sampler"), core.state().position)
            if self._progress is not None:
                self._progress.left = True
                self._progress = None
            loaded = core.state()
            self._at_start_of = loaded.epoch if loaded.position == 0 else None
            self._resumed = loaded.position > 0
            self._start = None

    def set_weights(self, weights):
        """From the next batch on a ``Mix``'s sources have these shares.

        Every source goes on where it is. On every rank at the same step, please: the state tells.

        Args:
            weights: name -> weight, one for each source.
        """
        names = self.sources
        if not isinstance(weights, dict) or set(weights) != set(names) or len(names) < 2:
            raise InvalidArgumentError(
                f"weights={weights!r}: one for each of the sources {', '.join(names) or 'of a Mix'}"
            )
        with self._lock:
            self._live_core().set_weights([check_weight(name, weights[name]) for name in names])

    def run(self):
        """What it takes to have this run again, as JSON-able values: a ``run.json`` for an audit.

        Data sets and their catalogs' hashes, the order, the arguments that bear on what is
        delivered, the state that the first batch came from, and the versions of Forebay and of the
        decoders. No address or key of a store.
        """
        with self._lock:
            return run_record.describe(self, self._live_core())

    @classmethod
    def from_run(cls, run, *, storage_options=None, **changes):
        """A loader that delivers what the run of ``run()`` did, from its first batch on.

        On the same build the arrays are equal bit for bit. Where a version differs a warning says
        so; where the data set or the order does, it is an error that names it.

        Args:
            run: what ``run()`` returned, from JSON or not.
            storage_options: of the data sets; they are not part of ``run``.
            changes: arguments of ``Loader`` in place of the recorded ones: ``rank``, ``output``,
                ``memory`` and their like; ``sampler`` or ``batch_sampler`` where the run had one.
        """
        return run_record.recreate(cls, run, storage_options, changes)

    def metrics(self):
        """A flat dict of numbers, named as in Prometheus, for any logger.

        The data path (samples, stalls by cause, runway, memory, prefetched parts) and the store's
        side: requests by operation and code, retries by reason, hedges, bytes, and quantiles of
        the times to the first byte and to the last. Zero before the first ``next``; after
        ``close`` what they were then.
        """
        closed = self._closed and self._core is not None and self._core.usable
        return dict((self._core if closed else self._live_core()).metrics())

    @property
    def runway_reason(self):
        """Why the runway is what it is, in one line with its numbers."""
        return self._live_core().runway_reason

    def close(self):
        """Ends the threads and gives the memory back; arrays still referenced stay valid."""
        self._closed = True
        if self._core is not None and self._core.usable:
            self._core.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # What frameworks look for.

    @property
    def dataset(self):
        return self._dataset

    @property
    def batch_size(self):
        return self._options.place.batch_size

    @property
    def drop_last(self):
        return self._options.order.tail == _core.TailRule.DROP

    @property
    def rank(self):
        return self._place.rank

    @property
    def world_size(self):
        return self._place.world_size

    @property
    def sources(self):
        """The names of a ``Mix``'s sources, in the numbering of ``_source``; else empty."""
        return list(self._dataset.sources) if isinstance(self._dataset, Mix) else []

    @property
    def sample_count(self):
        """Samples of the data set, over all ranks."""
        return self._live_core().sample_count

    def __repr__(self):
        return (
            f"forebay.Loader({self._dataset.uri!r}, batch_size={self.batch_size}, "
            f"rank={self.rank}, world_size={self.world_size})"
        )

    def __reduce__(self):
        moved = self._progress is not None or self._at_start_of != 0
        # A worker is of this process's rank, whatever its own surroundings say.
        place = {"rank": self.rank, "world_size": self.world_size}
        return _unpickle, (self._arguments | place, self.state_dict() if moved else None)

    # Within.

    def _make_core(self):
        sources = loader_options.to_sources(self._dataset, self._ops)
        self._core = _core.Loader.make(sources, self._options, self._store)
        self._join = None
        if isinstance(self._dataset, Records) and self._dataset.labels is not None:
            from .manifest_join import ManifestJoin

            self._join = ManifestJoin(self._dataset.labels, self._core, self._store)
        elif self._dataset.labels is not None:
            from .label_join import LabelJoin  # with NumPy, whose import takes longer than ours

            self._join = LabelJoin(
                self._dataset.labels, self._core, self._dataset.frames, self._store
            )

    def _live_core(self):
        """The C++ loader of this process. Made anew in a child that forked before it had threads."""
        if self._closed:
            raise CancelledError(f"{self!r} is closed")
        if not self._core.usable:
            if self._started:
                raise ForkError(
                    f"this forebay.Loader was created before fork, and its threads live in process "
                    f"{self._process} only: make it in the child (this is process {os.getpid()})"
                )
            state = self._core.state()
            self._process = os.getpid()
            self._make_core()
            self._core.load_state(state)
        return self._core

    def _summary(self, core):
        """What all ranks must have in common."""
        state = loader_state.from_core(core.state()) | {"world_size": self.world_size}
        del state["skips"], state["replaced"], state["content"], state["schema"]
        if self._feed is None:
            return state | {"batch_size": self.batch_size,
                            "replicas": self._options.place.replicas}  # fmt: skip
        return {k: v for k, v in state.items() if k not in ("position", "digest", "epoch")}

    def _epoch_ahead(self, core):
        return self._at_start_of if self._at_start_of is not None else core.state().epoch

    def _jump(self, core, epoch):
        core.set_epoch(epoch)
        self._at_start_of = epoch
        if self._feed is not None:
            self._feed.reset()

    def _leave_iterator(self, core):
        """Ends the latest iterator. True: it was left in the middle of an epoch."""
        left, self._progress = self._progress, None
        if left is None:
            return False
        left.left = True
        if left.done or left.epoch is None:
            return False
        # `zip(range(len(loader)), loader)` takes every batch and never asks for the end. Asking
        # here keeps what is fetched ahead of the next epoch.
        if left.last and core.wait_ready(self._timeout) and core.next(_KINDS["dlpack"]) is None:
            self._note_end(core)
            return False
        return True

    def _pass_empty_rest(self, core):
        """Loops that count batches, as Lightning's, save behind an epoch's last one."""
        self._resumed = False
        if self._feed is not None:
            self._feed.pull(core, self._options.epochs)
        if core.batches_left == 0 and core.next(_KINDS["dlpack"]) is None:
            if self._feed is not None:
                self._feed.took_end()
            self._note_end(core)

    def _note_end(self, core):
        state = core.state()
        self._at_start_of = state.epoch if state.position == 0 else state.epoch + 1

    def _next(self, progress):
        with self._lock:
            core = self._live_core()
            if not self._agreed:
                agreement.check(self._place, self._summary(core))
                self._agreed = True
            if self._start is None:
                self._start = self.state_dict()
            self._started = True
            if self._feed is not None:
                self._feed.pull(core, self._options.epochs)
            batch = self._take(core)
            if self._feed is not None:
                self._feed.took_end() if batch is None else self._feed.took_batch()
            if batch is None:
                self._note_end(core)
                return None
            arrays, step, epoch = batch
            self._at_start_of = None
            progress.epoch = epoch
            plain = self._feed is None and self._steps == (0, 1)
            progress.last = plain and step + 1 >= core.batches_per_epoch
            return self._finish(arrays)

    def _take(self, core):
        late = not core.wait_ready(0.0)
        gcguard.between_steps(late)
        if late and not core.wait_ready(self._timeout):
            raise DeadlineExceededError(f"no batch within timeout={self._timeout:g} s")
        return core.next(_KINDS[self._output])

    def _finish(self, arrays):
        labels = {}
        if self._join is not None:
            labels = self._join.join(arrays["_sample"])
        if self._torch is not None:
            arrays = {name: self._to_tensor(name, array) for name, array in arrays.items()}
            labels = {name: array.tolist() if array.dtype.kind == "U" else
                      self._torch.from_numpy(array) for name, array in labels.items()}  # fmt: skip
        arrays.update(labels)
        return arrays if self._last_op is None else self._last_op(arrays)

    def _to_tensor(self, name, array):
        tensor = self._torch.utils.dlpack.from_dlpack(array)
        return tensor.view(self._torch.bool) if name == "_pad" else tensor


class _Progress:
    """How far an iterator came; apart from it, so that loader and iterator form no cycle."""

    def __init__(self):
        self.left = False  # iter(), set_epoch() or load_state_dict() was called since
        self.done = False
        self.epoch = None  # of the latest batch; None: there was none yet
        self.last = False  # that batch is the last of its epoch


class _Epoch:
    """The batches of one epoch. Still usable after an exception: it goes on where it stood."""

    def __init__(self, loader, progress):
        self._loader = loader
        self._progress = progress

    def __iter__(self):
        return self

    def __next__(self):
        progress = self._progress
        if progress.done:
            raise StopIteration
        if progress.left:
            raise InvalidArgumentError(
                "this iterator was left: iter(), set_epoch() or load_state_dict() was called since"
            )
        thread = threading.current_thread()
        _inside.add(thread)
        try:
            batch = self._loader._next(progress)
        except CancelledError:
            if _exiting.is_set() and thread.daemon:
                raise SystemExit from None  # ends the thread, silently
            raise
        finally:
            _inside.discard(thread)
        if batch is None:
            progress.done = True
            raise StopIteration
        return batch


def _import_torch():
    try:
        import torch.utils.dlpack
    except ImportError as error:
        raise InvalidArgumentError(f"output='torch': torch cannot be imported: {error}") from error
    return torch


def _unpickle(arguments, state):
    arguments = dict(arguments)
    ranks.announced(arguments["rank"], arguments["world_size"])
    loader = Loader(arguments.pop("dataset"), **arguments)
    if state is not None:
        loader.load_state_dict(state)
    return loader


# At the interpreter's exit only daemon threads are left. Those that wait in next() must be out of
# C++ before the interpreter dies, and must not go on as if the data had ended: they end.

_live_loaders = weakref.WeakSet()
_inside = set()  # threads that are in next()
_exiting = threading.Event()
_EXIT_WAIT_S = 5.0


def _renew_locks():
    """In a forked child: a lock may be held by a thread that lives in the parent only."""
    _inside.clear()
    for loader in list(_live_loaders):
        loader._lock = threading.RLock()


def _close_all():
    _exiting.set()
    ending = [t for t in list(_inside) if t.daemon and t is not threading.current_thread()]
    for loader in list(_live_loaders):
        loader.close()
    _core.wait_until_no_waiter(_EXIT_WAIT_S)
    deadline = time.monotonic() + _EXIT_WAIT_S
    for thread in ending:
        thread.join(max(0.0, deadline - time.monotonic()))


atexit.register(_close_all)
os.register_at_fork(after_in_child=_renew_locks)
