"""From the arguments of ``forebay.Loader`` to the options of the C++ loader."""

from __future__ import annotations

from collections.abc import Iterable

from . import _core, check, units
from .clips import skip
from .errors import InvalidArgumentError
from .mix import BlockShuffle, Mix
from .ops import Op

_TAILS = {
    "drop": _core.TailRule.DROP,
    "pad": _core.TailRule.PAD,
    "ragged": _core.TailRule.RAGGED,
}


def make_feed(arguments):
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


def to_core(arguments, place, feed, steps):
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


def split_ops(ops):
    """The ops that run in C++, and the callable that may come last."""
    if isinstance(ops, Op) or not isinstance(ops, Iterable):
        raise InvalidArgumentError(f"ops={ops!r} must be a list of forebay.ops.*")
    ops = list(ops)
    last = None
    if ops and callable(ops[-1]) and not isinstance(ops[-1], Op):
        last = ops.pop()
    for op in ops:
        if not isinstance(op, Op):
            raise InvalidArgumentError(
                f"ops: {op!r} is no forebay.ops.* (a callable may be the last one)"
            )
    return ops, last


def to_sources(dataset, ops):
    parts = dataset.sources if isinstance(dataset, Mix) else {"": (dataset, 1.0)}
    sources = []
    for name, (data, weight) in parts.items():
        source = _core.SourceOptions()
        core = data._to_core()
        if ops and not isinstance(core, _core.RecordsOptions):
            raise InvalidArgumentError(f"ops are of Records: {data!r} has its own arguments")
        if ops:
            core.ops = [op._to_core() for op in ops]
        source.name, source.data, source.weight = name, core, weight
        sources.append(source)
    return sources
