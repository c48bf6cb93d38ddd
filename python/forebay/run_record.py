"""The same run again: what a loader delivered, written down and made anew."""

from __future__ import annotations

import dataclasses
import platform
import warnings

from . import _core, loader_state
from .clips import VideoClips, skip
from .errors import InvalidArgumentError
from .labels import Labels
from .mix import BlockShuffle, Mix
from .ops import Op
from .records import Records

_SCHEMA = "forebay.run/1"
# Arguments of Loader that bear on which arrays come, and in which order.
_ARGUMENTS = (
    "batch_size", "seed", "epochs", "shuffle", "drop_last", "tail", "epoch_samples", "ops", "output",
    "replicas", "on_bad_sample", "content_digest",
)  # fmt: skip
_SAMPLERS = ("sampler", "batch_sampler")
_KINDS = {kind.__name__: kind for kind in (VideoClips, Records, Labels, BlockShuffle, skip)}


def describe(loader, core):
    arguments = {name: _to_json(loader._arguments[name]) for name in _ARGUMENTS}
    arguments.update(rank=loader.rank, world_size=loader.world_size)
    start = dict(loader._start or loader.state_dict())
    # Weights that were changed on the way are known with the positions from which they hold.
    start["mixture"] = loader_state.from_core(core.state())["mixture"]
    return {
        "schema": _SCHEMA,
        "dataset": _to_json(loader.dataset),
        "arguments": arguments,
        "sampler": next((n for n in _SAMPLERS if loader._arguments[n] is not None), None),
        "labels_crc32": None if loader._join is None else loader._join.checksum,
        "start": start,
        "versions": _versions(),
    }


def recreate(cls, run, storage_options, changes):
    try:
        schema, arguments = run["schema"], dict(run["arguments"])
        dataset, start, versions = run["dataset"], run["start"], run["versions"]
        sampler, labels_crc32 = run["sampler"], run["labels_crc32"]
        if not isinstance(versions, dict) or not isinstance(start, dict):
            raise TypeError
    except (KeyError, TypeError, ValueError):
        raise InvalidArgumentError("run must be a dict as Loader.run() gives it") from None
    if schema != _SCHEMA:
        raise InvalidArgumentError(f"run: its schema is {schema!r}, this Forebay's is {_SCHEMA!r}")
    if sampler is not None and changes.get(sampler) is None:
        raise InvalidArgumentError(f"run: its order was a {sampler}'s: pass {sampler}=")
    _compare_versions(versions)
    arguments = {
        name: _from_json(value, None) for name, value in arguments.items() if name not in changes
    } | changes
    loader = cls(_from_json(dataset, storage_options), **arguments)
    try:
        mine = None if loader._join is None else loader._join.checksum
        if mine != labels_crc32:
            raise InvalidArgumentError(
                f"run: the labels' checksum was {labels_crc32}, and is {mine} now"
            )
        catalogs = _catalogs(loader.state_dict())
        loader.load_state_dict(start)
        # A state goes on in a data set that has grown since; a run is what it was.
        if catalogs != _catalogs(start):
            raise InvalidArgumentError(
                f"run: catalog_hash was {_catalogs(start)}, and is {catalogs} now: more has been "
                "appended; give the catalog of then"
            )
        loader.set_epoch(start["epoch"])  # an empty rest is a rest
    except BaseException:
        loader.close()
        raise
    return loader


def _catalogs(state):
    return ", ".join(source["catalog_hash"] for source in state["sources"])


def _versions():
    import numpy as np

    return {
        "forebay": _core.__version__,
        "ffmpeg": _core.ffmpeg_version(),
        "numpy": np.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
    }


def _compare_versions(recorded):
    differing = [
        f"{name} was {recorded.get(name)!r} and is {now!r} here"
        for name, now in _versions().items()
        if recorded.get(name) != now and name in ("forebay", "ffmpeg", "machine")
    ]
    if differing:
        warnings.warn(
            f"the arrays may differ from the run's: {'; '.join(differing)}", RuntimeWarning,
            stacklevel=4,
        )  # fmt: skip


def _to_json(value):
    """Data sets and options as JSON-able values, without how their store is reached."""
    if isinstance(value, Mix):
        sources = {name: [_to_json(d), weight] for name, (d, weight) in value.sources.items()}
        return {"kind": "Mix", "sources": sources, "block": value.block}
    if isinstance(value, Op):
        return {"kind": "Op", "op": value._kind, "arguments": value._arguments}
    if callable(value):  # the last op: code is not written down
        return {"kind": "callable", "name": getattr(value, "__qualname__", repr(value))}
    if type(value).__name__ in _KINDS:
        fields = [f.name for f in dataclasses.fields(value) if f.name != "storage_options"]
        named = {name: _to_json(getattr(value, name)) for name in fields}
        return {"kind": type(value).__name__, **named}
    if isinstance(value, (tuple, list)):
        return [_to_json(item) for item in value]
    return value.item() if hasattr(value, "item") else value


def _from_json(value, storage_options):
    if isinstance(value, list):
        return [_from_json(item, None) for item in value]
    if not isinstance(value, dict):
        return value
    value = dict(value)
    kind = value.pop("kind", None)
    if kind == "Mix":
        sources = {name: (_from_json(d, storage_options), weight)
                   for name, (d, weight) in value["sources"].items()}  # fmt: skip
        return Mix(sources, block=value["block"])
    if kind == "Op":
        try:
            return Op(value["op"], value["arguments"])
        except (AttributeError, KeyError, TypeError):
            raise InvalidArgumentError(f"run: {value!r} is no op that this Forebay knows") from None
    if kind == "callable":
        raise InvalidArgumentError(
            f"run: its last op was {value.get('name')!r}: pass ops= with it, as in the run"
        )
    if kind not in _KINDS:
        raise InvalidArgumentError(f"run: {kind!r} is nothing that this Forebay knows")
    of_store = {}
    if storage_options is not None and kind in ("VideoClips", "Records"):
        of_store["storage_options"] = storage_options
    try:
        return _KINDS[kind](**{k: _from_json(v, None) for k, v in value.items()}, **of_store)
    except TypeError as error:
        raise InvalidArgumentError(f"run: {kind}: {error}") from None
