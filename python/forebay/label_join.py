"""Labels in memory: a table read, sorted, and looked up for each batch."""

from __future__ import annotations

import csv
import io
import json
import zlib

import numpy as np

from . import _core
from .errors import InvalidArgumentError, NotFoundError
from .labels import TIME_UNITS

_LIMIT_BYTES = 1 << 30  # of a table; it is read whole
_CHUNK_SAMPLES = 1 << 16  # checked at a time, so that checking needs no memory per sample
_OWN = {"_sample", "_epoch", "_pad", "_source", "_labelled"}  # fields that batches may hold


class LabelJoin:
    """A table in memory, sorted by (scene, time), and the look-up of a batch's rows."""

    def __init__(self, labels, core_loader, frames, store_options):
        self._labels = labels
        self._core = core_loader
        self._frames = frames
        columns, self.checksum = _read(labels, store_options)
        scenes = core_loader.scenes(0)
        order, self._times, self._first, self._last = _sort(labels, columns, scenes)
        self._columns = _select(labels, columns, order)
        taken = {name for name, _, _ in core_loader.arrays} | _OWN
        for name in self._columns:
            if name in taken:
                raise InvalidArgumentError(
                    f"labels: the batch has a field {name!r} already; set prefix=", uri=labels.uri
                )
        if labels.missing == "error":
            self._check_all(scenes)

    def join(self, samples):
        """int64 [B], as in ``_sample`` (NumPy or DLPack) -> the arrays to add to the batch."""
        if not isinstance(samples, np.ndarray):
            samples = np.from_dlpack(samples)
        rows, found, _, _ = self._find(samples)
        arrays = {}
        for name, column in self._columns.items():
            values = column[rows]
            if not found.all():
                values[~found] = 0
            arrays[name] = values
        if self._labels.missing == "mask":
            arrays["_labelled"] = found
        return arrays

    def _find(self, samples):
        samples = np.ascontiguousarray(samples, dtype=np.int64)
        scene = np.empty(len(samples), np.int32)
        half_frame = np.empty(len(samples), np.float64)
        times = np.empty((len(samples), self._frames), np.float64)
        self._core.sample_times(0, samples, scene, times, half_frame)
        if self._labels.per == "clip":
            wanted = times[:, 0]
        else:
            wanted, scene, half_frame = times, scene[:, None], half_frame[:, None]
        rows, distance = _nearest(self._times, self._first[scene], self._last[scene], wanted)
        # A table written with few decimals still meets its frames.
        return rows, distance <= half_frame + 1e-6, scene, wanted

    def _check_all(self, scenes):
        count = self._core.sample_count
        for start in range(0, count, _CHUNK_SAMPLES):
            chunk = np.arange(start, min(start + _CHUNK_SAMPLES, count), dtype=np.int64)
            _, found, scene, wanted = self._find(chunk)
            if found.all():
                continue
            at = np.unravel_index(np.argmin(found), found.shape)
            where = np.broadcast_to(scene, found.shape)[at]
            raise NotFoundError(
                f"labels: no row within half a frame of {wanted[at]:.6f} s of scene "
                f"{scenes[where]!r} (sample {chunk[at[0]]}); missing=\"mask\" delivers such "
                f"samples too [uri={self._labels.uri}]",
                uri=self._labels.uri,
            )


def _nearest(times, first, last, wanted):
    """Of rows [first, last), sorted by time: the nearest to each wanted time, and its distance.

    A bisection over all the wanted times at once. Where there is no row: row 0, infinity.
    """
    first, last = np.broadcast_to(first, wanted.shape), np.broadcast_to(last, wanted.shape)
    low, high = first.copy(), last.copy()
    top = max(len(times) - 1, 0)
    while True:
        unsettled = low < high
        if not unsettled.any():
            break
        middle = np.minimum((low + high) // 2, top)
        less = times[middle] < wanted
        low = np.where(unsettled & less, middle + 1, low)
        high = np.where(unsettled & ~less, middle, high)
    best = np.zeros(wanted.shape, np.int64)
    distance = np.full(wanted.shape, np.inf)
    for candidate in (low - 1, low):
        valid = (candidate >= first) & (candidate < last)
        candidate = np.clip(candidate, 0, top)
        away = np.where(valid, np.abs(times[candidate] - wanted), np.inf)
        nearer = away < distance
        best, distance = np.where(nearer, candidate, best), np.where(nearer, away, distance)
    return best, distance


def _read(labels, store_options):
    text = _core.read_object(labels.uri, store_options, _LIMIT_BYTES)
    checksum = zlib.crc32(text)
    try:
        text = text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidArgumentError(f"labels: not UTF-8: {error} [uri={labels.uri}]") from None
    columns = _read_csv(labels, text) if labels.format == "csv" else _read_jsonl(labels, text)
    for role, name in (("scene", labels.scene), ("time", labels.time)):
        if name not in columns:
            raise InvalidArgumentError(
                f"labels: no {role} column {name!r}; there are {', '.join(columns) or 'none'} "
                f"[uri={labels.uri}]",
                uri=labels.uri,
            )
    return columns, checksum


def _read_csv(labels, text):
    rows = csv.reader(io.StringIO(text, newline=""))
    header = next(rows, [])
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise InvalidArgumentError(
            f"labels: the header names {', '.join(map(repr, twice))} more than once "
            f"[uri={labels.uri}]",
            uri=labels.uri,
        )
    columns = [[] for _ in header]
    for row in rows:
        if not row:
            continue
        if len(row) != len(header):
            raise _row_error(labels, rows.line_num, f"{len(row)} fields, not {len(header)}")
        for column, value in zip(columns, row):
            column.append(value)
    return dict(zip(header, columns))


def _read_jsonl(labels, text):
    columns = {}
    count = 0
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise _row_error(labels, number, f"not JSON: {error}") from None
        if not isinstance(row, dict):
            raise _row_error(labels, number, "not a JSON object")
        if count == 0:
            columns = {name: [] for name in row}
        if row.keys() != columns.keys():
            odd = sorted(row.keys() ^ columns.keys())
            raise _row_error(labels, number, f"other fields than the first row: {', '.join(odd)}")
        for name, value in row.items():
            columns[name].append(value)
        count += 1
    return columns


def _row_error(labels, line, what):
    return InvalidArgumentError(f"labels: line {line}: {what} [uri={labels.uri}]", uri=labels.uri)


def _sort(labels, columns, scenes):
    """-> row order, times in seconds in that order, and each scene's rows [first, last)."""
    times = _numeric(columns[labels.time])
    if times is None or times.ndim != 1 or not np.isfinite(times.astype(np.float64)).all():
        raise InvalidArgumentError(
            f"labels: column {labels.time!r} must hold finite numbers [uri={labels.uri}]"
        )
    times = times.astype(np.float64) * TIME_UNITS[labels.time_unit]
    number_of = {name: i for i, name in enumerate(scenes)}
    scene = np.fromiter(
        (number_of.get(str(name), -1) for name in columns[labels.scene]), np.int64, len(times)
    )
    order = np.lexsort((times, scene))
    order = order[np.searchsorted(scene[order], 0) :]  # rows of other data sets' scenes
    scene = scene[order]
    numbers = np.arange(len(scenes))
    first = np.searchsorted(scene, numbers)
    last = np.searchsorted(scene, numbers, side="right")
    return order, times[order] if len(order) else np.array([np.inf]), first, last


def _select(labels, columns, order):
    names = labels.columns
    if names is None:
        names = [name for name in columns if name not in (labels.scene, labels.time)]
    selected = {}
    for name in names:
        if name not in columns:
            raise InvalidArgumentError(
                f"labels: no column {name!r}; there are {', '.join(columns)} [uri={labels.uri}]"
            )
        values = _numeric(columns[name])
        if values is not None:
            # One row at least, so that a scene without rows can point somewhere.
            values = values[order] if len(order) else np.zeros((1, *values.shape[1:]), values.dtype)
            selected[labels.prefix + name] = values.astype(_DELIVERED.get(values.dtype.kind))
        elif labels.columns is not None:
            raise InvalidArgumentError(
                f"labels: column {name!r} holds no numbers of one shape [uri={labels.uri}]"
            )
    if not selected:
        raise InvalidArgumentError(
            f"labels: no numeric column to deliver [uri={labels.uri}]", uri=labels.uri
        )
    return selected


_DELIVERED = {"b": np.bool_, "i": np.int64, "f": np.float32}


def _numeric(values):
    """A column as a bool, int64 or float64 array; None where it is something else."""
    if values and isinstance(values[0], str):
        lowered = {value.lower() for value in values[:100]}
        if lowered <= {"true", "false"}:
            if {value.lower() for value in values} <= {"true", "false"}:
                return np.fromiter((v.lower() == "true" for v in values), np.bool_, len(values))
        for kind in (np.int64, np.float64):
            try:
                return np.array(values).astype(kind)
            except (ValueError, OverflowError):  # an integer of more than 64 bits is a float
                continue
        return None
    try:
        array = np.array(values)
    except ValueError:  # lists of unequal length
        return None
    if array.dtype.kind not in "bif":
        return None
    return array.astype({"b": np.bool_, "i": np.int64, "f": np.float64}[array.dtype.kind])
