"""Failures as exceptions: one class for each code, each also Python's own kind.

Every exception carries what is known of the request that failed: ``code`` (stable, such as
``"not_found"``), ``uri``, ``range`` (half-open, ``(first, end)``, or None), ``attempt`` (from 1;
0 where no request was sent) and ``request_id``. All of it is in the text too.
"""

from __future__ import annotations


class ForebayError(Exception):
    """The base of everything that Forebay raises by itself."""

    code = "internal"

    def __init__(self, text="", *, uri="", range=None, attempt=0, request_id=""):
        super().__init__(text)
        self.uri = uri
        self.range = range
        self.attempt = attempt
        self.request_id = request_id

    def __str__(self):
        return str(self.args[0]) if self.args else ""

    def __reduce__(self):
        return _rebuild, (type(self), str(self), dict(self.__dict__))


class CancelledError(ForebayError):
    """The caller, or a close, asked for it."""

    code = "cancelled"


class InvalidArgumentError(ForebayError, ValueError):
    """The request can never succeed as it stands."""

    code = "invalid_argument"


class NotFoundError(ForebayError, FileNotFoundError):
    """No such object, bucket, camera or frame."""

    code = "not_found"


class PermissionDeniedError(ForebayError, PermissionError):
    """Credentials are missing, wrong or not allowed to."""

    code = "permission_denied"


class PreconditionFailedError(ForebayError, OSError):
    """The object changed since it was indexed."""

    code = "precondition_failed"


class UnavailableError(ForebayError, ConnectionError):
    """The service could not answer; try again."""

    code = "unavailable"


class DeadlineExceededError(ForebayError, TimeoutError):
    """A bounded wait reached its bound."""

    code = "deadline_exceeded"


class ResourceExhaustedError(ForebayError, MemoryError):
    """Back off, or give more memory."""

    code = "resource_exhausted"


class DataLossError(ForebayError, OSError):
    """Bytes are missing, damaged, or not what was promised."""

    code = "data_loss"


class UnimplementedError(ForebayError, NotImplementedError):
    """Valid, and not supported."""

    code = "unimplemented"


class InternalError(ForebayError, RuntimeError):
    """A bug in Forebay."""

    code = "internal"


class ForkError(InvalidArgumentError, RuntimeError):
    """An object was used in a child process, but the parent had set it in motion before fork."""


_BY_CODE = {
    kind.code: kind
    for kind in (
        CancelledError,
        InvalidArgumentError,
        NotFoundError,
        PermissionDeniedError,
        PreconditionFailedError,
        UnavailableError,
        DeadlineExceededError,
        ResourceExhaustedError,
        DataLossError,
        UnimplementedError,
        InternalError,
    )
}


def from_status(code, text, uri, range, attempt, request_id):
    """The exception for a failure reported by the C++ library (which calls this)."""
    kind = _BY_CODE.get(code, InternalError)
    return kind(text, uri=uri, range=range, attempt=attempt, request_id=request_id)


def _rebuild(kind, text, attributes):
    error = kind(text)
    error.__dict__.update(attributes)
    return error
