"""How samples are ordered and mixed."""

from __future__ import annotations

import dataclasses
import math
import numbers
from typing import Any, Mapping

from . import check
from .clips import VideoClips
from .errors import InvalidArgumentError
from .records import Records


@dataclasses.dataclass(frozen=True)
class BlockShuffle:
    """``shuffle=fb.BlockShuffle(...)``: neighbours stay near each other in time.

    Blocks of samples that lie together (a scene, a shard or a few MiB of one) are permuted, laid
    end to end and cut into ``streams`` equal streams. Each stream is shuffled inside windows of
    about ``window`` blocks, and the epoch takes ``run`` samples from each stream in turn. So a
    range read serves many samples, at the price of batches that are less mixed: see ``forebay order
    price``. All of it is part of the order, whatever the number of ranks.

    Args:
        window: blocks that are open at a time, in each stream.
        streams: with as many ranks as streams each rank reads a stream of its own.
        run: samples taken from one stream before the next: at best the batch size.
    """

    window: int = 16
    streams: int = 1
    run: int = 64

    def __post_init__(self):
        check.integer("BlockShuffle(window)", self.window, 1, 2**40)
        check.integer("BlockShuffle(streams)", self.streams, 1, 2**20)
        check.integer("BlockShuffle(run)", self.run, 1, 2**40)


@dataclasses.dataclass(frozen=True)
class Mix:
    """Several data sets as one, each with its share of the samples.

    ``fb.Mix({"web": (a, 0.7), "code": (b, 0.3)})``: of every ``block`` samples of the order each
    source has its share exactly (rounded to whole samples), in its own order; a source that is used
    up starts over in another order. ``Loader.set_weights`` changes the shares from the next batch
    on, and every source goes on where it is. All sources must give equal arrays.

    Args:
        sources: name -> (data set, weight); only the weights' ratios count.
        block: in how many samples the shares are exact; None: found from the weights.
    """

    sources: Mapping[str, Any]
    block: Any = None

    def __post_init__(self):
        if not isinstance(self.sources, Mapping) or not self.sources:
            raise InvalidArgumentError("Mix(sources): a dict of name -> (data set, weight)")
        parts = {}
        for name, part in self.sources.items():
            if not isinstance(name, str) or not name:
                raise InvalidArgumentError(f"Mix: {name!r} is no name of a source")
            if not isinstance(part, (tuple, list)) or len(part) != 2:
                raise InvalidArgumentError(f"Mix: {name!r} must be (data set, weight)")
            dataset, weight = part
            if not isinstance(dataset, (VideoClips, Records)):
                raise InvalidArgumentError(f"Mix: {name!r}: {dataset!r} is no data set")
            if dataset.labels is not None:
                raise InvalidArgumentError(
                    f"Mix: {name!r} has labels, which mixtures do not join: join them by the "
                    "batch's _source and _sample"
                )
            parts[name] = (dataset, check_weight(name, weight))
        options = [dataset.storage_options for dataset, _ in parts.values()]
        if any(option != options[0] for option in options):
            raise InvalidArgumentError("Mix: all sources must have the same storage_options")
        object.__setattr__(self, "sources", parts)
        if self.block is not None:
            check.integer("Mix(block)", self.block, 1, 2**17)

    @property
    def storage_options(self):
        return next(iter(self.sources.values()))[0].storage_options

    @property
    def uri(self):
        return ", ".join(dataset.uri for dataset, _ in self.sources.values())

    @property
    def labels(self):
        return None


def check_weight(name, weight):
    number = isinstance(weight, numbers.Real) and not isinstance(weight, bool)
    if not number or not 0 <= weight < math.inf:
        raise InvalidArgumentError(
            f"the weight of {name!r} is {weight!r}: it must be a finite number, at least 0"
        )
    return float(weight)
