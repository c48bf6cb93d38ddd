"""Sizes and durations as people write them."""

from __future__ import annotations

import math
import numbers
import re

from .errors import InvalidArgumentError

_SIZES = {"": 1, "B": 1}
for _power, _letter in enumerate("KMGT", start=1):
    _SIZES[f"{_letter}B"] = 1000**_power
    _SIZES[f"{_letter}IB"] = 1024**_power

_SECONDS = {"": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "min": 60.0, "h": 3600.0}

_NUMBER_AND_UNIT = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([A-Za-z]*)\s*\Z")


def parse_bytes(value, name="size"):
    """``"2GiB"`` (1024), ``"2GB"`` (1000) or a plain number of bytes -> int."""
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        number, factor = int(value), 1
    else:
        number, unit = _split(value, name, "bytes, such as '2GiB' or an int")
        factor = _SIZES.get(unit.upper())
        if factor is None:
            raise InvalidArgumentError(
                f"{name}={value!r}: unknown unit {unit!r}; use KiB, MiB, GiB, TiB or KB, MB, GB, TB"
            )
    size = round(number * factor)
    if not 0 <= size < 2**63:
        raise InvalidArgumentError(f"{name}={value!r} is out of range")
    return size


def parse_rate(value, name="rate"):
    """Bytes a second, as ``parse_bytes``, also ``"2.5G"`` (1000) and ``"1MiB/s"`` -> int."""
    if isinstance(value, str):
        value = value.strip().removesuffix("/s")
        if value[-1:].upper() in ("K", "M", "G", "T"):
            value += "B"
    return parse_bytes(value, name)


def parse_seconds(value, name="duration"):
    """``"1.5s"``, ``"200ms"`` or a plain number of seconds -> float."""
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        seconds = float(value)
    else:
        number, unit = _split(value, name, "seconds, such as '1.5s' or 1.5")
        if unit not in _SECONDS:
            raise InvalidArgumentError(
                f"{name}={value!r}: unknown unit {unit!r}; use us, ms, s, min or h"
            )
        seconds = number * _SECONDS[unit]
    if not math.isfinite(seconds) or seconds < 0:
        raise InvalidArgumentError(f"{name}={value!r} must be finite and not negative")
    return seconds


def parse_runway(value):
    """``"auto"``, ``"off"`` or a duration -> seconds, negative for "auto"."""
    if isinstance(value, str) and value.strip().lower() == "auto":
        return -1.0
    if isinstance(value, str) and value.strip().lower() == "off":
        return 0.0
    return parse_seconds(value, "runway")


def _split(value, name, wanted):
    match = _NUMBER_AND_UNIT.match(value) if isinstance(value, str) else None
    if match is None:
        raise InvalidArgumentError(f"{name}={value!r} is not a number of {wanted}")
    text, unit = match.groups()
    return (float(text) if "." in text else int(text)), unit
