"""Attributes of an augmented manifest: read once, and looked up for each batch."""

from __future__ import annotations

import json
import warnings
import zlib

import numpy as np

from . import _core
from .errors import InvalidArgumentError, PreconditionFailedError

_LIMIT_BYTES = 1 << 30  # of a manifest; it is read whole
_CHUNK = 1 << 16  # names compared at a time
_OWN = {"_sample", "_epoch", "_pad", "_source"}  # fields that batches may hold
_DELIVERED = {"b": np.bool_, "i": np.int64, "f": np.float32}


class ManifestJoin:
    """The attributes as arrays, one row for each of this host's samples."""

    def __init__(self, attributes, core_loader, store_options):
        self._uri = attributes.uri
        text = _core.read_object(attributes.uri, store_options, _LIMIT_BYTES)
        self.checksum = zlib.crc32(text)
        numbers, rows = _rows(text, attributes.uri)
        mine = slice(attributes.host, None, attributes.hosts)
        self._check(core_loader, [row["source-ref"] for row in rows[mine]])
        self._taken = _OWN | {part for array in core_loader.arrays for part in _parts(array[0])}
        self._columns, left_out = {}, []
        for name in attributes.names or _common(rows):
            column = self._column(name, numbers, rows, attributes.names is not None)
            if column is None:
                left_out.append(name)
            else:
                self._columns[name] = column[mine]
        if left_out:
            warnings.warn(
                f"attributes that are neither text nor numbers of one shape, or whose names the "
                f"batch has already, are left out: {', '.join(left_out)} [uri={self._uri}]",
                stacklevel=2,
            )

    def join(self, samples):
        """int64 [B], as in ``_sample`` (NumPy or DLPack) -> the arrays to add to the batch."""
        if not isinstance(samples, np.ndarray):
            samples = np.from_dlpack(samples)
        return {name: column[samples] for name, column in self._columns.items()}

    def _check(self, core, uris):
        """Line i is of sample i: the index must be of this manifest."""
        count = core.sample_count
        why = f"{len(uris)} objects are in it, {count} in the index" if len(uris) != count else ""
        for first in range(0, 0 if why else count, _CHUNK):
            names = core.sample_names(0, first, min(_CHUNK, count - first))
            for number, (name, uri) in enumerate(zip(names, uris[first : first + _CHUNK]), first):
                if not uri.endswith(name):
                    why = f"sample {number} is {name!r} in the index, and {uri!r} in it"
                    break
            if why:
                break
        if why:
            raise PreconditionFailedError(
                f"the manifest has changed since it was indexed: {why} [uri={self._uri}]",
                uri=self._uri,
            )

    def _column(self, name, numbers, rows, wanted):
        """The array of all rows; None: there is none, which is an error of one that is wanted."""
        if name in self._taken:
            if wanted:
                raise InvalidArgumentError(f"attributes: a batch has a field {name!r} already")
            return None
        values = []
        for number, row in zip(numbers, rows):
            if name not in row:
                raise InvalidArgumentError(
                    f"line {number} of the manifest has no attribute {name!r} [uri={self._uri}]",
                    uri=self._uri,
                )
            values.append(row[name])
        array = _array(values)
        if array is None and wanted:
            raise InvalidArgumentError(
                f"attribute {name!r} holds neither text nor numbers of one shape "
                f"[uri={self._uri}]",
                uri=self._uri,
            )
        return array


def _parts(name):
    """The fields that an array of a loader comes as."""
    return (name, name + "_offsets") + (("offsets",) if name == "bytes" else ())


def _array(values):
    """All text, or all numbers of one shape; None: neither, or too large for their type."""
    if all(isinstance(value, str) for value in values):
        return np.array(values)
    try:
        array = np.array(values)
    except (ValueError, OverflowError):  # lists of unequal length
        return None
    if array.dtype.kind not in _DELIVERED:
        return None
    with np.errstate(over="ignore"):
        delivered = array.astype(_DELIVERED[array.dtype.kind])
    if array.dtype.kind == "f" and (
        not _holds(float, values) or np.isinf(delivered[np.isfinite(array)]).any()
    ):
        return None  # integers beyond 64 bits, or numbers beyond float32
    return delivered


def _holds(kind, value):
    if isinstance(value, list):
        return not value or any(_holds(kind, each) for each in value)
    return isinstance(value, kind)


def _rows(text, uri):
    numbers, rows = [], []
    for number, line in enumerate(text.decode("utf-8-sig", "surrogateescape").split("\n"), 1):
        if not line.strip():
            continue
        row = json.loads(line) if line.lstrip().startswith("{") else None
        if not isinstance(row, dict) or not isinstance(row.get("source-ref"), str):
            raise InvalidArgumentError(
                f"line {number} of the manifest has no \"source-ref\" [uri={uri}]", uri=uri
            )
        numbers.append(number)
        rows.append(row)
    return numbers, rows


def _common(rows):
    """The attributes that every line has, but for what is said about others."""
    names = [n for n in rows[0] if n != "source-ref" and not n.endswith("-metadata")]
    return [name for name in names if all(name in row for row in rows)]
