from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, SupportsIndex

import torch
import torch.utils.data

from . import BlockShuffle, Mix, Records, VideoClips, ops, skip

__all__ = ["IterableDataset", "MapDataset"]

class IterableDataset(torch.utils.data.IterableDataset[dict[str, torch.Tensor]]):
    def __init__(
        self,
        dataset: VideoClips | Records | Mix,
        *,
        batch_size: int | None = None,
        seed: int = 0,
        shuffle: bool | BlockShuffle = True,
        drop_last: bool | None = None,
        tail: Literal["drop", "pad", "ragged"] | None = None,
        epoch_samples: int | None = None,
        ops: Sequence[ops.Op | Callable[[dict[str, Any]], Any]] = (),
        rank: int | None = None,
        world_size: int | None = None,
        replicas: int = 1,
        memory: int | str = "2GiB",
        runway: float | str = "auto",
        decode_threads: int | None = None,
        held_limit: int = 4,
        on_bad_sample: Literal["raise"] | skip = "raise",
        timeout: float | str | None = None,
    ) -> None: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[dict[str, torch.Tensor]]: ...
    def set_epoch(self, epoch: int) -> None: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: Mapping[str, Any]) -> None: ...

class MapDataset(torch.utils.data.Dataset[dict[str, torch.Tensor]]):
    def __init__(
        self,
        dataset: VideoClips | Records,
        *,
        memory: int | str = "2GiB",
        decode_threads: int | None = None,
        on_bad_sample: Literal["raise"] | skip = "raise",
        timeout: float | str | None = None,
    ) -> None: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: SupportsIndex) -> dict[str, torch.Tensor]: ...
    def __getitems__(self, indices: Sequence[SupportsIndex]) -> list[dict[str, torch.Tensor]]: ...
