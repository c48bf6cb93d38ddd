"""What a loader reads: records as they are."""

from __future__ import annotations

import dataclasses
from typing import Any, Mapping, Optional, Sequence

from . import _core, arrow, check, ranks
from .errors import InvalidArgumentError

#: What a channel's S3Uri names, as SageMaker calls it.
S3_DATA_TYPES = ("S3Prefix", "ManifestFile", "AugmentedManifestFile")
_DISTRIBUTIONS = ("FullyReplicated", "ShardedByS3Key")


@dataclasses.dataclass(frozen=True)
class Attributes:
    """What an augmented manifest says of this host's samples."""

    uri: str
    names: Optional[Sequence[str]]
    host: int
    hosts: int


@dataclasses.dataclass(frozen=True)
class Records:
    """Records of a data set, through ``Loader(ops=...)`` or as they are.

    ``format="tar"`` and other formats of shards (docs/formats/): what ``forebay index`` found in
    them. A field that no op takes comes as ``NAME``, uint8 ``[total]``, with ``NAME_offsets``, int64
    ``[B + 1]``; where it is the only array, as that of ``"files"``.

    ``format="files"``: every object (or local file) below ``uri`` is a sample, as ``forebay index
    --format files`` listed them. A batch holds ``bytes``, uint8 ``[total]``: the samples one after
    the other, and ``offsets``, int64 ``[B + 1]``: where each begins, and where the last one ends.
    Sample i of a batch is ``batch["bytes"][batch["offsets"][i]:batch["offsets"][i + 1]]``.
    Ops see the field ``bytes``, and, where ``columns=["bytes", "label"]`` names it, ``label``: int64,
    which of the folders right below ``uri`` the object lies in, in the order of their names, as
    torchvision's ``ImageFolder`` counts classes; folders that were appended come behind the others.

    Args:
        uri: the data set, ``s3://bucket/prefix/``, ``file:///path/`` or a path.
        format: ``"files"``, ``"tar"``, ...; None: whatever the index is of.
        columns: the fields that ops see, or that come; None: those that every record has, of plain
            files ``bytes``.
        catalog: URI of the index made by ``forebay index``; None: beside the data, then the local
            cache folder.
        s3_data_type: what ``uri`` names, as SageMaker defines it and as it was indexed: None: a
            folder; ``"S3Prefix"``: all objects whose keys begin so; ``"ManifestFile"`` or
            ``"AugmentedManifestFile"``: the objects of that list, in its order.
        attributes: of an augmented manifest: which to deliver, one row a sample: numbers as int64,
            float32 or bool arrays ``[B, ...]``, text as an array of ``str`` (``output="torch"``: a
            list). None: all that every line has, but ``*-metadata`` and, with a warning, what is neither
            or has the name of another field.
        distribution: ``"FullyReplicated"``: the data set is the whole of it, which the ranks of all
            hosts share out; ``"ShardedByS3Key"``: it is this host's part, every n-th object of the
            index, which the ranks of this host share out.
        host: ``(number, hosts)`` of this host; None: as SageMaker says.
        storage_options: ``endpoint_url``, ``region``, ``profile``, ... for what ``AWS_*``
            variables and profile files do not say.
    """

    uri: str
    format: Optional[str] = dataclasses.field(default=None, kw_only=True)
    columns: Optional[Sequence[str]] = dataclasses.field(default=None, kw_only=True)
    catalog: Optional[str] = dataclasses.field(default=None, kw_only=True)
    s3_data_type: Optional[str] = dataclasses.field(default=None, kw_only=True)
    attributes: Optional[Sequence[str]] = dataclasses.field(default=None, kw_only=True)
    distribution: str = dataclasses.field(default="FullyReplicated", kw_only=True)
    host: Optional[tuple] = dataclasses.field(default=None, kw_only=True)
    storage_options: Optional[Mapping[str, Any]] = dataclasses.field(default=None, kw_only=True)

    def __post_init__(self):
        put = lambda name, value: object.__setattr__(self, name, value)  # noqa: E731 (frozen)
        put("uri", check.uri("uri", self.uri))
        if self.format is not None:
            check.one_of("format", self.format, ("files", *_core.record_formats()))
        if isinstance(self.columns, str):
            raise InvalidArgumentError(f"columns={self.columns!r} must be a list of names")
        if self.columns is not None:
            put("columns", tuple(str(column) for column in self.columns))
        if self.catalog is not None:
            put("catalog", check.uri("catalog", self.catalog))
        if self.s3_data_type is not None:
            check.one_of("s3_data_type", self.s3_data_type, S3_DATA_TYPES)
        check.one_of("distribution", self.distribution, _DISTRIBUTIONS)
        put("host", _host(self.distribution, self.host))
        if isinstance(self.attributes, str):
            raise InvalidArgumentError(f"attributes={self.attributes!r} must be a list of names")
        if self.attributes is not None:
            if self.s3_data_type != "AugmentedManifestFile":
                raise InvalidArgumentError("attributes= are those of an AugmentedManifestFile")
            put("attributes", tuple(self.attributes))
        if self.storage_options is not None:
            put("storage_options", dict(self.storage_options))

    @property
    def labels(self):
        if self.s3_data_type != "AugmentedManifestFile":
            return None
        return Attributes(self.uri, self.attributes, *(self.host or (0, 1)))

    def _to_core(self):
        if self.format in (None, "parquet", "arrow"):
            arrow.announce()
        options = _core.RecordsOptions()
        options.uri, options.format = self.uri, self.format or ""
        options.columns = list(self.columns or ())
        options.catalog = self.catalog or ""
        options.s3_data_type = self.s3_data_type or ""
        options.host, options.hosts = self.host or (0, 1)
        return options


def _host(distribution, host):
    if distribution == "FullyReplicated":
        if host is not None:
            raise InvalidArgumentError("host= is of distribution=\"ShardedByS3Key\"")
        return None
    if host is None:
        return ranks.sagemaker_host()
    try:
        number, hosts = host
    except (TypeError, ValueError):
        raise InvalidArgumentError(f"host={host!r} must be (number, hosts)") from None
    hosts = check.integer("host (of how many)", hosts, least=1, most=2**31 - 1)
    return check.integer("host (number)", number, least=0, most=hosts - 1), hosts
