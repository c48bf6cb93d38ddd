"""``storage_options``: how to reach the object store, where the environment does not say it."""

from __future__ import annotations

from . import _core, units
from .errors import InvalidArgumentError

_NAMES = (
    "endpoint_url",
    "region",
    "profile",
    "ca_bundle",
    "no_sign_request",
    "request_payer",
    "verify_ssl",
    "addressing_style",
    "max_attempts",
    "request_timeout_ms",
    "node_bandwidth",
)


def to_store_options(options):
    """A dict (or None: all from AWS_* variables and profile files) -> _core.StoreOptions."""
    store = _core.StoreOptions()
    if options is None:
        return store
    if not hasattr(options, "items"):
        raise InvalidArgumentError(f"storage_options={options!r} must be a dict")
    for name, value in options.items():
        if name not in _NAMES:
            raise InvalidArgumentError(
                f"unknown storage option {name!r}; known are {', '.join(_NAMES)}"
            )
        if name == "node_bandwidth" and isinstance(value, str):
            value = units.parse_rate(value, name)
        try:
            setattr(store, name, value)
        except TypeError:
            wanted = type(getattr(store, name)).__name__
            raise InvalidArgumentError(
                f"storage option {name}={value!r} must be of type {wanted}"
            ) from None
    store.validate()
    return store
