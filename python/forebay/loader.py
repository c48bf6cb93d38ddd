"""The training loop's end of Forebay."""

from __future__ import annotations

import atexit
import json
import os
import threading
import time
import weakref

from . import _core, agreement, check, gcguard, ranks, units
from .clips import VideoClips, skip
from .errors import CancelledError, DeadlineExceededError, ForkError, InvalidArgumentError
from .mix import BlockShuffle, Mix, check_weight
from .records import Records
from .storage import to_store_options

_KINDS = {
    "numpy": _core.ArrayKind.NUMPY,
    "torch": _core.ArrayKind.DLPACK_BOOL_AS_UINT8,
    "dlpack": _core.ArrayKind.DLPACK,
}
_TAILS = {
    "drop": _core.TailRule.DROP,
    "pad": _core.TailRule.PAD,
    "ragged": _core.TailRule.RAGGED,
}
_FOREVER_S = 1e9
_STATE_FIELDS = (
    "schema", "spec_hash", "catalog_hash", "spec", "seed", "epoch", "position", "digest", "sources",
    "mixture", "skips", "content",
)  # fmt: skip
_SOURCE_FIELDS = ("name", "spec", "catalog_hash", "samples", "sizes")
_SIZE_FIELDS = ("from_epoch", "samples")
_MIXTURE_FIELDS = ("start", "weights")


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
    - ``_pad``, bool ``[B]``, with ``tail="pad"`` only: True where the last batch was filled up by
      repeating samples from the epoch's start.

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
        drop_last: True: an incomplete last batch is left out. False: it is filled up, see ``_pad``.
        tail: what becomes of an epoch's last samples, in place of ``drop_last``: ``"drop"``,
            ``"pad"``, or ``"ragged"``: they are shared out as they are, so that some ranks get a
            row less, or none. All ranks get equally many batches in each case.
        epoch_samples: samples of an epoch, over all ranks; None: those of the data set. Fewer: the
            next epoch goes on where this one ends. More: the data set starts over, in another
            order. Either way all samples come equally often.
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
            given, as hex; the ranks' added up modulo 2^64 are the run's. Costs a pass over them.
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
        self._resumed = False  # load_state_dict was called, and neither iter() nor set_epoch() since
        if not isinstance(dataset, (VideoClips, Records, Mix)):
            raise InvalidArgumentError(
                f"dataset={dataset!r} must be a forebay.VideoClips, a forebay.Records or a "
                "forebay.Mix"
            )
        place = ranks.find_place(rank, world_size)
        self._place = place
        self._feed = _make_feed(self._arguments)
        self._options = _loader_options(self._arguments, place, self._feed, self._steps)
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
        for ``skips``, the positions whose samples this rank had to replace, and ``content``, its
        part of the digest of the arrays (see ``content_digest``).
        """
        with self._lock:
            core = self._live_core()
            state = _from_core_state(core.state())
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
            core.load_state(_to_core_state(state))
            if self._feed is not None:
                self._feed.load(state.get("sampler"), core.state().position)
            if self._progress is not None:
                self._progress.left = True
                self._progress = None
            loaded = core.state()
            self._at_start_of = loaded.epoch if loaded.position == 0 else None
            self._resumed = loaded.position > 0

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

    def metrics(self):
        """A flat dict of numbers, named as in Prometheus, for any logger.

        The data path (samples, stalls by cause, runway, memory, prefetched parts) and the store's
        side: requests by operation and code, retries by reason, hedges, bytes, and quantiles of
        the times to the first byte and to the last. Zero before the first ``next``; after
        ``close`` what they were then.
        """
        return dict(self._live_core().metrics())

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
        self._core = _core.Loader.make(_to_sources(self._dataset), self._options, self._store)
        self._join = None
        if self._dataset.labels is not None:
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
        state = _from_core_state(core.state()) | {"world_size": self.world_size}
        del state["skips"], state["content"], state["schema"]
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
            labels = {name: self._torch.from_numpy(array) for name, array in labels.items()}
        arrays.update(labels)
        return arrays

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


def _make_feed(arguments):
    """The SamplerFeed of a loader whose order is not Forebay's; None: it is."""
    sampler, batch_sampler = arguments["sampler"], arguments["batch_sampler"]
    if sampler is None and batch_sampler is None:
        if arguments["pull_ahead"] is not None:
            raise InvalidArgumentError("pull_ahead= is of sampler= or batch_sampler=")
        return None
    name = "sampler" if batch_sampler is None else "batch_sampler"
    if sampler is not None and batch_sampler is not None:
        raise InvalidArgumentError("sampler= and batch_sampler= say the same thing: give one")
    if isinstance(arguments["dataset"], Mix):
        raise InvalidArgumentError(f"{name}= is of one data set, not of a Mix")
    for other, default in (("epoch_samples", None), ("replicas", 1)):
        if arguments[other] != default:
            raise InvalidArgumentError(f"{name}= decides all that {other}= would")
    if isinstance(arguments["shuffle"], BlockShuffle):
        raise InvalidArgumentError(f"{name}= decides the order: shuffle= cannot too")
    if arguments["tail"] == "pad":
        raise InvalidArgumentError(f"{name}=: nothing is padded; tail= may be 'drop' or 'ragged'")
    batch_size = arguments["batch_size"]
    if batch_sampler is not None:
        if arguments["drop_last"] is not None or arguments["tail"] is not None:
            raise InvalidArgumentError("batch_sampler= decides what the last batch holds")
        if batch_size == 1:
            batch_size = getattr(batch_sampler, "batch_size", None)
        if not isinstance(batch_size, int):
            raise InvalidArgumentError(
                "batch_sampler= has no batch_size: pass batch_size=, the largest batch's"
            )
    batch_size = check.integer("batch_size", batch_size, 1, 2**31 - 1)
    from .sampler_feed import SamplerFeed  # with NumPy, whose import takes longer than ours

    return SamplerFeed(
        sampler, batch_sampler, batch_size, _tail_of(arguments) == "drop", arguments["pull_ahead"]
    )


def _loader_options(arguments, place, feed, steps):
    options = _core.LoaderOptions()
    order = options.order
    _set_place(options.place, arguments, place, feed)
    options.place.step_offset, options.place.step_stride = steps
    _set_order(order, arguments)
    if feed is not None:
        order.shuffle = _core.ShuffleKind.EXTERNAL
        order.tail = _core.TailRule.DROP if feed.drop_last else _core.TailRule.RAGGED
    if arguments["epochs"] is not None:
        options.epochs = check.integer("epochs", arguments["epochs"], 0, 2**31 - 1)
    options.memory_bytes = units.parse_bytes(arguments["memory"], "memory")
    options.runway_s = units.parse_runway(arguments["runway"])
    if arguments["decode_threads"] is not None:
        options.decode_threads = check.integer(
            "decode_threads", arguments["decode_threads"], 1, 1024
        )
    options.held_limit = check.integer("held_limit", arguments["held_limit"], 1, 2**31 - 1)
    options.content_digest = check.boolean("content_digest", arguments["content_digest"])
    if arguments["digest_every"] is not None:
        options.digest_log_steps = check.integer(
            "digest_every", arguments["digest_every"], 1, 2**31 - 1
        )
    bad = arguments["on_bad_sample"]
    if isinstance(bad, skip):
        options.skip_max = bad.max
    elif not (isinstance(bad, str) and bad == "raise"):
        raise InvalidArgumentError(
            f"on_bad_sample={bad!r} must be 'raise' or forebay.skip(max=...)"
        )
    return options


def _set_place(core_place, arguments, place, feed):
    if feed is not None:  # slicing by rank is the sampler's business
        core_place.batch_size = feed.batch_size
        return
    core_place.batch_size = check.integer("batch_size", arguments["batch_size"], 1, 2**31 - 1)
    core_place.replicas = check.integer("replicas", arguments["replicas"], 1, 2**31 - 1)
    core_place.rank, core_place.world_size = place.rank, place.world_size


def _tail_of(arguments):
    drop_last, tail = arguments["drop_last"], arguments["tail"]
    if drop_last is not None and tail is not None:
        raise InvalidArgumentError("drop_last= and tail= say the same thing: give one")
    if tail is None:
        drop = True if drop_last is None else check.boolean("drop_last", drop_last)
        if arguments["sampler"] is not None:
            return "drop" if drop else "ragged"
        tail = "drop" if drop else "pad"
    return check.one_of("tail", tail, tuple(_TAILS))


def _set_order(order, arguments):
    order.seed = check.integer("seed", arguments["seed"], 0, 2**64 - 1)
    shuffle = arguments["shuffle"]
    if isinstance(shuffle, BlockShuffle):
        order.shuffle = _core.ShuffleKind.BLOCKS
        blocks = _core.BlockShuffleOptions()
        blocks.window, blocks.streams, blocks.run = shuffle.window, shuffle.streams, shuffle.run
        order.blocks = blocks
    elif check.boolean("shuffle", shuffle):
        order.shuffle = _core.ShuffleKind.GLOBAL
    else:
        order.shuffle = _core.ShuffleKind.NONE
    order.tail = _TAILS[_tail_of(arguments)]
    if arguments["epoch_samples"] is not None:
        order.epoch_samples = check.integer(
            "epoch_samples", arguments["epoch_samples"], 1, 2**40 - 1
        )
    dataset = arguments["dataset"]
    if isinstance(dataset, Mix) and dataset.block is not None:
        order.mixture_block = dataset.block


def _to_sources(dataset):
    parts = dataset.sources if isinstance(dataset, Mix) else {"": (dataset, 1.0)}
    sources = []
    for name, (data, weight) in parts.items():
        source = _core.SourceOptions()
        source.name, source.data, source.weight = name, data._to_core(), weight
        sources.append(source)
    return sources


def _import_torch():
    try:
        import torch.utils.dlpack
    except ImportError as error:
        raise InvalidArgumentError(f"output='torch': torch cannot be imported: {error}") from error
    return torch


def _from_core_state(core_state):
    state = {name: getattr(core_state, name) for name in _STATE_FIELDS}
    state["sources"] = [{n: getattr(s, n) for n in _SOURCE_FIELDS} for s in state["sources"]]
    for source in state["sources"]:
        source["sizes"] = [{n: getattr(s, n) for n in _SIZE_FIELDS} for s in source["sizes"]]
    state["mixture"] = [{n: getattr(m, n) for n in _MIXTURE_FIELDS} for m in state["mixture"]]
    return state


def _to_core_state(state):
    try:
        values = {name: state[name] for name in _STATE_FIELDS}
        parts = {
            "sources": [_to_core_source(s) for s in values["sources"]],
            "mixture": [_to_core_part(_core.MixtureWeights(), m, _MIXTURE_FIELDS)
                        for m in values["mixture"]],
        }  # fmt: skip
    except (KeyError, TypeError):
        raise InvalidArgumentError(
            f"state must be a dict as state_dict() gives it, with {', '.join(_STATE_FIELDS)}"
        ) from None
    for name in ("schema", "seed", "epoch", "position"):
        values[name] = check.integer(f"state: {name}", values[name])
    return _to_core_part(_core.LoaderState(), values | parts, _STATE_FIELDS)


def _to_core_source(source):
    sizes = [_to_core_part(_core.SourceGrowth(), s, _SIZE_FIELDS) for s in source["sizes"]]
    return _to_core_part(_core.SourceState(), {**source, "sizes": sizes}, _SOURCE_FIELDS)


def _to_core_part(part, values, names):
    for name in names:
        try:
            setattr(part, name, values[name])
        except TypeError:
            raise InvalidArgumentError(
                f"state: {name}={json.dumps(values[name], default=repr)} is of the wrong type"
            ) from None
    return part


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
