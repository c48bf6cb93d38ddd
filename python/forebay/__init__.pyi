import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, Literal, SupportsIndex

import numpy as np
import numpy.typing as npt

from . import ops as ops
from . import torch as torch

__version__: str

_Uri = str | PathLike[str]
_Range = tuple[int, int] | None

class ForebayError(Exception):
    code: str
    uri: str
    range: _Range
    attempt: int
    request_id: str
    def __init__(
        self,
        text: str = "",
        *,
        uri: str = "",
        range: _Range = None,
        attempt: int = 0,
        request_id: str = "",
    ) -> None: ...

class CancelledError(ForebayError): ...
class InvalidArgumentError(ForebayError, ValueError): ...
class NotFoundError(ForebayError, FileNotFoundError): ...
class PermissionDeniedError(ForebayError, PermissionError): ...
class PreconditionFailedError(ForebayError, OSError): ...
class UnavailableError(ForebayError, ConnectionError): ...
class DeadlineExceededError(ForebayError, TimeoutError): ...
class ResourceExhaustedError(ForebayError, MemoryError): ...
class DataLossError(ForebayError, OSError): ...
class UnimplementedError(ForebayError, NotImplementedError): ...
class InternalError(ForebayError, RuntimeError): ...
class ForkError(InvalidArgumentError, RuntimeError): ...

class Labels:
    uri: str
    scene: str
    time: str
    time_unit: str
    columns: Sequence[str] | None
    per: str
    prefix: str
    missing: str
    format: str | None
    def __init__(
        self,
        uri: _Uri,
        scene: str = "scene",
        time: str = "time",
        time_unit: Literal["s", "ms", "us", "ns"] = "s",
        columns: Sequence[str] | None = None,
        per: Literal["clip", "frame"] = "clip",
        prefix: str = "",
        missing: Literal["error", "mask"] = "error",
        format: Literal["jsonl", "csv"] | None = None,
    ) -> None: ...

class VideoClips:
    uri: str
    pattern: str
    cameras: Sequence[str] | None
    frames: int
    step: int
    hop: int
    resize: tuple[int, int] | None
    layout: str
    catalog: str | None
    labels: Labels | None
    storage_options: Mapping[str, Any] | None
    def __init__(
        self,
        uri: _Uri,
        pattern: str = "{scene}/{camera}.mp4",
        cameras: Sequence[str] | None = None,
        frames: int = 8,
        step: int = 1,
        hop: int = 1,
        resize: tuple[int, int] | None = None,
        layout: Literal["THWC", "TCHW"] = "THWC",
        catalog: _Uri | None = None,
        labels: Labels | _Uri | None = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None: ...

class skip:
    max: int
    def __init__(self, max: int) -> None: ...

class BlockShuffle:
    window: int
    streams: int
    run: int
    def __init__(self, window: int = 16, streams: int = 1, run: int = 64) -> None: ...

class Records:
    uri: str
    format: str | None
    columns: Sequence[str] | None
    catalog: str | None
    s3_data_type: str | None
    attributes: Sequence[str] | None
    distribution: str
    host: tuple[int, int] | None
    storage_options: Mapping[str, Any] | None
    def __init__(
        self,
        uri: _Uri,
        *,
        format: str | None = None,
        columns: Sequence[str] | None = None,
        catalog: _Uri | None = None,
        s3_data_type: Literal["S3Prefix", "ManifestFile", "AugmentedManifestFile"] | None = None,
        attributes: Sequence[str] | None = None,
        distribution: Literal["FullyReplicated", "ShardedByS3Key"] = "FullyReplicated",
        host: tuple[int, int] | None = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None: ...
    @property
    def labels(self) -> None: ...

class Mix:
    sources: Mapping[str, tuple[VideoClips | Records, float]]
    block: int | None
    def __init__(
        self, sources: Mapping[str, tuple[VideoClips | Records, float]], block: int | None = None
    ) -> None: ...
    @property
    def storage_options(self) -> Mapping[str, Any] | None: ...
    @property
    def uri(self) -> str: ...
    @property
    def labels(self) -> None: ...

class Loader:
    def __init__(
        self,
        dataset: VideoClips | Records | Mix,
        *,
        batch_size: int = 1,
        seed: int = 0,
        epochs: int | None = None,
        shuffle: bool | BlockShuffle = True,
        drop_last: bool | None = None,
        tail: Literal["drop", "pad", "ragged"] | None = None,
        epoch_samples: int | None = None,
        ops: Sequence[ops.Op | Callable[[dict[str, Any]], Any]] = (),
        output: Literal["numpy", "torch", "dlpack"] = "numpy",
        device: Literal["cpu"] = "cpu",
        rank: int | None = None,
        world_size: int | None = None,
        replicas: int = 1,
        memory: int | str = "2GiB",
        runway: float | str = "auto",
        decode_threads: int | None = None,
        held_limit: int = 4,
        on_bad_sample: Literal["raise"] | skip = "raise",
        content_digest: bool = False,
        digest_every: int | None = None,
        timeout: float | str | None = None,
        sampler: Iterable[SupportsIndex] | Callable[[], Iterable[SupportsIndex]] | None = None,
        batch_sampler: (
            Iterable[Sequence[SupportsIndex]]
            | Callable[[], Iterable[Sequence[SupportsIndex]]]
            | None
        ) = None,
        pull_ahead: int | None = None,
        num_workers: int | None = None,
        prefetch_factor: int | None = None,
        pin_memory: Any = None,
    ) -> None: ...
    # numpy.ndarray, torch.Tensor or an object with __dlpack__, as `output` says.
    def __iter__(self) -> Iterator[dict[str, Any]]: ...
    def __len__(self) -> int: ...
    def set_epoch(self, epoch: int) -> None: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: Mapping[str, Any]) -> None: ...
    def set_weights(self, weights: dict[str, float]) -> None: ...
    def run(self) -> dict[str, Any]: ...
    @classmethod
    def from_run(
        cls,
        run: Mapping[str, Any],
        *,
        storage_options: Mapping[str, Any] | None = None,
        **changes: Any,
    ) -> Loader: ...
    def metrics(self) -> dict[str, float]: ...
    def close(self) -> None: ...
    def __enter__(self) -> Loader: ...
    def __exit__(self, *_: object) -> None: ...
    @property
    def runway_reason(self) -> str: ...
    @property
    def dataset(self) -> VideoClips | Records | Mix: ...
    @property
    def batch_size(self) -> int: ...
    @property
    def drop_last(self) -> bool: ...
    @property
    def rank(self) -> int: ...
    @property
    def world_size(self) -> int: ...
    @property
    def sources(self) -> list[str]: ...
    @property
    def sample_count(self) -> int: ...

class Video:
    def __init__(
        self,
        uri: _Uri,
        *,
        stream: int | None = None,
        resize: tuple[int, int] | None = None,
        verify: Literal["none", "heads", "full"] = "heads",
        storage_options: Mapping[str, Any] | None = None,
    ) -> None: ...
    def __len__(self) -> int: ...
    @property
    def times(self) -> npt.NDArray[np.float64]: ...
    @property
    def width(self) -> int: ...
    @property
    def height(self) -> int: ...
    @property
    def stream(self) -> int: ...
    def frame_at(self, seconds: float) -> int: ...
    def frames(
        self,
        numbers: Sequence[int] | npt.NDArray[np.integer[Any]] | None = None,
        *,
        times: Sequence[float] | npt.NDArray[np.floating[Any]] | None = None,
    ) -> npt.NDArray[np.uint8]: ...
    def close(self) -> None: ...
    def __enter__(self) -> Video: ...
    def __exit__(self, *_: object) -> None: ...

def index(
    source: _Uri,
    *,
    out: _Uri | None = None,
    format: str = "auto",
    s3_data_type: Literal["S3Prefix", "ManifestFile", "AugmentedManifestFile"] | None = None,
    key_order: Literal["bytes", "listed"] = "bytes",
    append: bool = False,
    dtype: str | None = None,
    drop_tail: bool = False,
    concatenated: bool = False,
    max_damaged: int = 0,
    verify: Literal["none", "heads", "full"] = "heads",
    storage_options: Mapping[str, Any] | None = None,
) -> dict[str, Any]: ...

class rng:
    def __init__(
        self, *, seed: int = 0, op: str, epoch: int = 0, sample: int, occurrence: int = 0
    ) -> None: ...
    def u32(self) -> int: ...
    def u64(self) -> int: ...
    def random(self) -> float: ...
    def uniform(self, low: float, high: float) -> float: ...
    def below(self, n: int) -> int: ...
    def numpy(self) -> np.random.Generator: ...

class gc_guard:
    collections: int
    seconds: float
    def __init__(self, collect: bool = True) -> None: ...
    def __enter__(self) -> gc_guard: ...
    def __exit__(self, *_: types.TracebackType | object) -> None: ...
    def step(self) -> None: ...
    def collect(self) -> None: ...
