"""Forebay feeds GPUs straight from object storage.

>>> import forebay as fb
>>> clips = fb.VideoClips("s3://bucket/drives/", frames=8, step=3, hop=10)
>>> for batch in fb.Loader(clips, batch_size=4, seed=7, epochs=1, output="torch"):
...     train(batch["front"])  # uint8 [4, 8, H, W, 3]
"""

from . import ops
from ._core import __version__
from .clips import VideoClips, skip
from .errors import (
    CancelledError,
    DataLossError,
    DeadlineExceededError,
    ForebayError,
    ForkError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    PreconditionFailedError,
    ResourceExhaustedError,
    UnavailableError,
    UnimplementedError,
)
from .gcguard import gc_guard
from .labels import Labels
from .loader import Loader
from .mix import BlockShuffle, Mix
from .random import rng
from .records import Records
from .video import Video, index



def __getattr__(name):
    if name == "torch":  # imports torch, which takes seconds
        import importlib

        return importlib.import_module(".torch", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "BlockShuffle",
    "CancelledError",
    "DataLossError",
    "DeadlineExceededError",
    "ForebayError",
    "ForkError",
    "InternalError",
    "InvalidArgumentError",
    "Labels",
    "Loader",
    "Mix",
    "NotFoundError",
    "PermissionDeniedError",
    "PreconditionFailedError",
    "Records",
    "ResourceExhaustedError",
    "UnavailableError",
    "UnimplementedError",
    "Video",
    "VideoClips",
    "__version__",
    "gc_guard",
    "index",
    "rng",
    "skip",
]
