"""Tables that are joined to clips by scene and time."""

from __future__ import annotations

import dataclasses
from typing import Optional, Sequence

from . import check
from .errors import InvalidArgumentError

#: Seconds in a unit of a table's time column.
TIME_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


@dataclasses.dataclass(frozen=True)
class Labels:
    """A table whose rows belong to moments of scenes; each clip gets the rows nearest in time.

    A row matches a frame when it is within half a frame of it. With ``per="clip"`` the row of the
    clip's first frame is taken: a numeric column becomes an array ``[B]``, a column of fixed-length
    lists (JSONL) ``[B, n]``. With ``per="frame"`` every frame has its row: ``[B, T]``,
    ``[B, T, n]``. Integers come as int64, other numbers as float32, truth values as bool.

    Args:
        uri: JSONL (``.jsonl``, ``.ndjson``, ``.json``) or CSV with a header line (``.csv``); an
            object or a path.
        scene: the column of scene names, as the pattern's ``{scene}`` finds them.
        time: the column of times, on the clock of the first camera's presentation times.
        time_unit: of that column: ``"s"``, ``"ms"``, ``"us"`` or ``"ns"``.
        columns: which others to deliver; None: every numeric one.
        per: ``"clip"`` or ``"frame"``.
        prefix: put in front of the columns' names in the batch.
        missing: ``"error"``: every sample must have its rows, which is checked when the loader is
            made; ``"mask"``: a bool array ``_labelled`` says which have, the others hold zeros.
        format: ``"jsonl"`` or ``"csv"``; None: by the name.
    """

    uri: str
    scene: str = "scene"
    time: str = "time"
    time_unit: str = "s"
    columns: Optional[Sequence[str]] = None
    per: str = "clip"
    prefix: str = ""
    missing: str = "error"
    format: Optional[str] = None

    def __post_init__(self):
        object.__setattr__(self, "uri", check.uri("labels", self.uri))
        check.one_of("time_unit", self.time_unit, tuple(TIME_UNITS))
        check.one_of("per", self.per, ("clip", "frame"))
        check.one_of("missing", self.missing, ("error", "mask"))
        if isinstance(self.columns, str):
            raise InvalidArgumentError(f"columns={self.columns!r} must be a list of names")
        if self.columns is not None:
            object.__setattr__(self, "columns", tuple(self.columns))
        if self.format is None:
            object.__setattr__(self, "format", _format_of(self.uri))
        check.one_of("format", self.format, ("jsonl", "csv"))


def _format_of(uri):
    name = uri.lower()
    if name.endswith((".jsonl", ".ndjson", ".json")):
        return "jsonl"
    if name.endswith((".csv", ".csv.txt")):
        return "csv"
    raise InvalidArgumentError(f"labels={uri!r}: say format='jsonl' or 'csv'", uri=uri)
