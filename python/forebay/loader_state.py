"""A loader's state: dicts of JSON-able values, and the C++ loader's own."""

from __future__ import annotations

import json

from . import _core, check
from .errors import InvalidArgumentError

_STATE_FIELDS = (
    "schema", "spec_hash", "catalog_hash", "spec", "seed", "epoch", "position", "digest", "sources",
    "mixture", "skips", "replaced", "content",
)  # fmt: skip
_SOURCE_FIELDS = ("name", "spec", "catalog_hash", "samples", "sizes")
_SIZE_FIELDS = ("from_epoch", "samples")
_MIXTURE_FIELDS = ("start", "weights")


def from_core(core_state):
    state = {name: getattr(core_state, name) for name in _STATE_FIELDS}
    state["sources"] = [{n: getattr(s, n) for n in _SOURCE_FIELDS} for s in state["sources"]]
    for source in state["sources"]:
        source["sizes"] = [{n: getattr(s, n) for n in _SIZE_FIELDS} for s in source["sizes"]]
    state["replaced"] = [list(pair) for pair in state["replaced"]]
    state["mixture"] = [{n: getattr(m, n) for n in _MIXTURE_FIELDS} for m in state["mixture"]]
    return state


def to_core(state):
    try:
        values = {name: state[name] for name in _STATE_FIELDS if name != "replaced"}
        values["replaced"] = [tuple(pair) for pair in state.get("replaced", ())]
        parts = {
            "sources": [_to_core_source(s) for s in values["sources"]],
            "mixture": [_to_core_part(_core.MixtureWeights(), m, _MIXTURE_FIELDS)
                        for m in values["mixture"]],
        }  # fmt: skip
    except (KeyError, TypeError) as error:
        lacks = f": {error} is missing" if isinstance(error, KeyError) else ""
        raise InvalidArgumentError(
            f"state must be a dict as state_dict() gives it, with {', '.join(_STATE_FIELDS)}{lacks}"
        ) from None
    for name in ("schema", "seed", "epoch", "position"):
        most = 2**64 - 1 if name == "seed" else 2**63 - 1
        values[name] = check.integer(f"state: {name}", values[name], most=most)
    return _to_core_part(_core.LoaderState(), values | parts, _STATE_FIELDS)


def _to_core_source(source):
    sizes = [_to_core_part(_core.SourceGrowth(), s, _SIZE_FIELDS) for s in source["sizes"]]
    return _to_core_part(_core.SourceState(), {**source, "sizes": sizes}, _SOURCE_FIELDS)


def _to_core_part(part, values, names):
    for name in names:
        try:
            setattr(part, name, values[name])
        except TypeError:
            raise InvalidArgumentError(
                f"state: {name}={json.dumps(values[name], default=repr)} is of the wrong type"
            ) from None
    return part
