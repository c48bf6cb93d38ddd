"""Argument checks whose texts name the argument, what was wanted and what was given."""

from __future__ import annotations

import numbers

from .errors import InvalidArgumentError


def integer(name, value, least=None, most=2**63 - 1):
    """An int (or NumPy integer) within bounds, as int."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise InvalidArgumentError(f"{name}={value!r} must be an integer")
    if least is not None and value < least:
        raise InvalidArgumentError(f"{name}={value!r} must be at least {least}")
    if value > most:
        raise InvalidArgumentError(f"{name}={value!r} must be at most {most}")
    return int(value)


def boolean(name, value):
    if not isinstance(value, bool):
        raise InvalidArgumentError(f"{name}={value!r} must be True or False")
    return value


def one_of(name, value, choices):
    if not isinstance(value, str) or value not in choices:
        raise InvalidArgumentError(f"{name}={value!r} must be one of {', '.join(map(repr, choices))}")
    return value


def uri(name, value):
    """An URI or a path (any os.PathLike), as str."""
    text = value if isinstance(value, str) else getattr(value, "__fspath__", lambda: None)()
    if not isinstance(text, str) or not text:
        raise InvalidArgumentError(
            f"{name}={value!r} must be an URI (s3://bucket/prefix/, file:///path) or a path"
        )
    return text


def size(name, value):
    """``(height, width)`` in pixels."""
    try:
        height, width = value
    except (TypeError, ValueError):
        raise InvalidArgumentError(f"{name}={value!r} must be (height, width)") from None
    return (
        integer(f"{name} height", height, least=1, most=2**16),
        integer(f"{name} width", width, least=1, most=2**16),
    )


def dtype_name(name, value):
    """NumPy's name of a dtype that is given as a str, a NumPy dtype or type, or a torch dtype."""
    text = value if isinstance(value, str) else getattr(value, "__name__", None) or str(value)
    text = text.removeprefix("torch.")
    if not text.isidentifier():
        raise InvalidArgumentError(f"{name}={value!r} must be a dtype")
    return text
