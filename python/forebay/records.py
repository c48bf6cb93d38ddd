"""What a loader reads: records as they are."""

from __future__ import annotations

import dataclasses
from typing import Any, Mapping, Optional

from . import _core, check


@dataclasses.dataclass(frozen=True)
class Records:
    """Records of a data set, delivered as they are.

    ``format="files"``: every object (or local file) below ``uri`` is a sample, as ``forebay index
    --format files`` listed them. A batch holds ``bytes``, uint8 ``[total]``: the samples one after
    the other, and ``offsets``, int64 ``[B + 1]``: where each begins, and where the last one ends.
    Sample i of a batch is ``batch["bytes"][batch["offsets"][i]:batch["offsets"][i + 1]]``.

    Args:
        uri: the data set, ``s3://bucket/prefix/``, ``file:///path/`` or a path.
        format: ``"files"``.
        catalog: URI of the index made by ``forebay index``; None: beside the data, then the local
            cache folder.
        storage_options: ``endpoint_url``, ``region``, ``profile``, ... for what ``AWS_*``
            variables and profile files do not say.
    """

    uri: str
    format: str = dataclasses.field(default="files", kw_only=True)
    catalog: Optional[str] = dataclasses.field(default=None, kw_only=True)
    storage_options: Optional[Mapping[str, Any]] = dataclasses.field(default=None, kw_only=True)

    def __post_init__(self):
        put = lambda name, value: object.__setattr__(self, name, value)  # noqa: E731 (frozen)
        put("uri", check.uri("uri", self.uri))
        check.one_of("format", self.format, ("files",))
        if self.catalog is not None:
            put("catalog", check.uri("catalog", self.catalog))
        if self.storage_options is not None:
            put("storage_options", dict(self.storage_options))

    @property
    def labels(self):
        return None

    def _to_core(self):
        options = _core.RecordsOptions()
        options.uri, options.format = self.uri, self.format
        options.catalog = self.catalog or ""
        return options
