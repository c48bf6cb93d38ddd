"""What a loader reads: clips of several cameras."""

from __future__ import annotations

import dataclasses
import re
from typing import Any, Mapping, Optional, Sequence, Tuple, Union

from . import _core, check
from .errors import InvalidArgumentError
from .labels import Labels

_NAME_IN_PATTERN = re.compile(r"\{([^{}]*)\}")


@dataclasses.dataclass(frozen=True)
class VideoClips:
    """Clips of one or several cameras that filmed the same scenes.

    One sample is ``frames`` frames, ``step`` apart, of every camera of a scene; a sample starts
    every ``hop`` frames of the first camera, and the other cameras are aligned to it by time
    (within half a frame). A batch holds one uint8 array ``[B, T, H, W, 3]`` for each camera, RGB,
    rotated as tagged.

    Args:
        uri: the data set, ``s3://bucket/prefix/``, ``file:///path/`` or a path.
        pattern: where scene and camera are in the keys below ``uri``; each ``{name}`` matches a
            part of one path element. ``{camera}`` must be one of them.
        cameras: which cameras, in the batch's order; None: all that the pattern finds, sorted.
        frames, step, hop: counted in frames of the first camera.
        resize: ``(height, width)``; needed where cameras or scenes differ in size.
        layout: ``"THWC"`` or ``"TCHW"``.
        catalog: URI of the index made by ``forebay index``; None: beside the data, then the local
            cache folder.
        labels: a table (JSONL or CSV; an URI, a path or ``forebay.Labels``) joined by scene and
            time; its columns come as arrays of the batch.
        storage_options: ``endpoint_url``, ``region``, ``profile``, ... for what ``AWS_*``
            variables and profile files do not say.
    """

    uri: str
    pattern: str = "{scene}/{camera}.mp4"
    cameras: Optional[Sequence[str]] = None
    frames: int = 8
    step: int = 1
    hop: int = 1
    resize: Optional[Tuple[int, int]] = None
    layout: str = "THWC"
    catalog: Optional[str] = None
    labels: Union[Labels, str, None] = None
    storage_options: Optional[Mapping[str, Any]] = None

    def __post_init__(self):
        put = lambda name, value: object.__setattr__(self, name, value)  # noqa: E731 (frozen)
        put("uri", check.uri("uri", self.uri))
        _check_pattern(self.pattern)
        put("cameras", _cameras(self.cameras))
        for name in ("frames", "step", "hop"):
            put(name, check.integer(name, getattr(self, name), least=1, most=2**31 - 1))
        if self.resize is not None:
            put("resize", check.size("resize", self.resize))
        check.one_of("layout", self.layout, ("THWC", "TCHW"))
        if self.catalog is not None:
            put("catalog", check.uri("catalog", self.catalog))
        if self.labels is not None and not isinstance(self.labels, Labels):
            put("labels", Labels(self.labels))
        if self.storage_options is not None:
            put("storage_options", dict(self.storage_options))

    def _to_core(self):
        options = _core.ClipsOptions()
        options.uri = self.uri
        options.pattern = self.pattern
        options.cameras = list(self.cameras or ())
        options.frames, options.step, options.hop = self.frames, self.step, self.hop
        if self.resize is not None:
            options.height, options.width = self.resize
        options.chw = self.layout == "TCHW"
        options.catalog = self.catalog or ""
        return options


@dataclasses.dataclass(frozen=True)
class skip:  # noqa: N801 (reads as an instruction: on_bad_sample=fb.skip(max=10))
    """``on_bad_sample=fb.skip(max=10)``: replace up to ``max`` damaged samples, then raise.

    The replaced positions are in the loader's state, so that a resumed run makes the same choice.
    """

    max: int

    def __post_init__(self):
        object.__setattr__(self, "max", check.integer("skip(max)", self.max, least=1))


def _check_pattern(pattern):
    if not isinstance(pattern, str) or not pattern:
        raise InvalidArgumentError(f"pattern={pattern!r} must be a string")
    names = _NAME_IN_PATTERN.findall(pattern)
    if any(c in _NAME_IN_PATTERN.sub("", pattern) for c in "{}"):
        raise InvalidArgumentError(f"pattern={pattern!r} has an unpaired brace")
    for name in names:
        if not name.isidentifier():
            raise InvalidArgumentError(f"pattern={pattern!r}: {{{name}}} is not a name")
        if names.count(name) > 1:
            raise InvalidArgumentError(f"pattern={pattern!r} holds {{{name}}} twice")


def _cameras(cameras):
    if cameras is None:
        return None
    if isinstance(cameras, str):
        raise InvalidArgumentError(f"cameras={cameras!r} must be a list of names")
    names = tuple(cameras)
    if not names:
        raise InvalidArgumentError("cameras=[] names none; leave it out to take all")
    for name in names:
        if not isinstance(name, str) or not name:
            raise InvalidArgumentError(f"cameras: {name!r} is not a name")
        if name.startswith("_"):
            raise InvalidArgumentError(f"cameras: {name!r}: names with '_' are Forebay's own")
        if names.count(name) > 1:
            raise InvalidArgumentError(f"cameras: {name!r} is named twice")
    return names
