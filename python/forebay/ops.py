"""What is done to a sample between its bytes and its arrays: ``Loader(ops=[...])``.

torchvision's names and meanings, in C++ without the GIL. Random ops draw from ``fb.rng``'s numbers,
keyed by (seed, op, epoch, sample): the same on any worker, rank and restart. Which of them are
bit-equal to what is said in docs/ops.md.

>>> ops = [
...     fb.ops.decode_image("jpg"),
...     fb.ops.random_resized_crop(224),
...     fb.ops.random_horizontal_flip(),
...     fb.ops.normalize(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225)),
...     fb.ops.to_chw(),
...     fb.ops.parse_int("cls"),
... ]
"""

from __future__ import annotations

import operator

from . import _core, check
from .errors import InvalidArgumentError

__all__ = [
    "Op",
    "center_crop",
    "color_jitter",
    "decode_image",
    "normalize",
    "pack_tokens",
    "parse_example",
    "parse_int",
    "parse_json",
    "parse_npy",
    "parse_record",
    "random_horizontal_flip",
    "random_resized_crop",
    "rename",
    "resize",
    "select",
    "sparse",
    "to_chw",
    "to_dtype",
    "tokens",
]

_FILTERS = {
    "bilinear": "BILINEAR",
    "bicubic": "BICUBIC",
    "lanczos": "LANCZOS",
    "box": "BOX",
    "opencv_bilinear": "OPENCV_BILINEAR",
}


_INT64_MOST = 2**63 - 1

# What an argument is a list of, where that is no plain value.
_PARTS = {
    ("ParseJsonOp", "fields"): "JsonField",
    ("ParseExampleOp", "features"): "ExampleFeature",
    ("ParseRecordOp", "features"): "RecordFeature",
}


class Op:
    """One op with its arguments. Made by the functions of this module; can be pickled."""

    __slots__ = ("_kind", "_arguments")

    def __init__(self, kind, arguments):
        self._kind, self._arguments = kind, arguments
        try:
            core = self._to_core()
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidArgumentError(f"{kind}: {error}") from None
        _core.validate_op(core)

    def _to_core(self):
        core = getattr(_core, self._kind)()
        for name, value in self._arguments.items():
            part = _PARTS.get((self._kind, name))
            if part is not None:
                value = [_fill(getattr(_core, part)(), one) for one in value]
            elif name == "filter":
                value = getattr(_core.ResizeFilter, value)
            setattr(core, name, value)
        return core

    def __repr__(self):
        return f"forebay.ops.{_core.describe_op(self._to_core())}"

    def __eq__(self, other):
        if not isinstance(other, Op):
            return NotImplemented
        return (self._kind, self._arguments) == (other._kind, other._arguments)

    def __hash__(self):
        return hash(repr(self))

    def __reduce__(self):
        return Op, (self._kind, self._arguments)


def _fill(core, values):
    for name, value in values.items():
        setattr(core, name, value)
    return core


def _size(name, size):
    """``(height, width)`` of an int (a square) or a pair."""
    try:
        if isinstance(size, (tuple, list)):
            height, width = size
        else:
            height = width = size
        return operator.index(height), operator.index(width)
    except (TypeError, ValueError):
        raise InvalidArgumentError(f"{name}={size!r} must be an int or (height, width)") from None


def _filter(interpolation):
    name = getattr(interpolation, "value", interpolation)  # torchvision's InterpolationMode
    if name not in _FILTERS:
        raise InvalidArgumentError(
            f"interpolation={interpolation!r} must be one of {', '.join(_FILTERS)}"
        )
    return _FILTERS[name]


def _floats(name, values):
    try:
        return [float(value) for value in values]
    except TypeError:
        raise InvalidArgumentError(f"{name}={values!r} must be a sequence of numbers") from None


def _range(name, pair):
    values = _floats(name, pair)
    if len(values) != 2:
        raise InvalidArgumentError(f"{name}={pair!r} must be two numbers")
    return values


def _shape(shape):
    if isinstance(shape, int):
        shape = (shape,)
    try:
        return [operator.index(size) for size in shape]
    except TypeError:
        raise InvalidArgumentError(f"shape={shape!r} must be a sequence of ints") from None


def _shape_or_ragged(shape):
    return {"ragged": True} if shape is None else {"shape": _shape(shape)}


def decode_image(
    field="jpg",
    mode="RGB",
    *,
    orientation="ignore",
    cmyk="inverted",
    grey16="clip",
    pixels_max=178_956_970,
):
    """JPEG, PNG or WebP (told by content) in ``field`` -> an image of that name, uint8 HWC.

    Args:
        mode: ``"RGB"`` or ``"L"`` (grey), as PIL's ``convert``; ``"unchanged"``: as the file is.
        orientation: of EXIF: ``"ignore"``, as torchvision and PIL do, or ``"apply"``, as OpenCV does.
        cmyk: JPEGs of four inks: ``"inverted"``: all of them, as PIL and OpenCV take them;
            ``"marker"``: those with an Adobe marker, as TensorFlow and torchvision do.
        grey16: 16-bit grey: ``"clip"``: cut off at 255, as PIL; ``"high_byte"``, as OpenCV.
        pixels_max: larger images are bad samples.
    """
    return Op(
        "DecodeImageOp",
        {
            "field": str(field),
            "mode": str(mode),
            "orientation": str(orientation),
            "cmyk": str(cmyk),
            "grey16": str(grey16),
            "pixels_max": operator.index(pixels_max),
        },
    )


def resize(size, interpolation="bilinear"):
    """To ``(height, width)``, or an int: the shorter side's; the longer is ``int(size * l / s)``.

    Antialiased, as PIL's and torchvision's; ``"opencv_bilinear"``: as OpenCV's, not antialiased.
    """
    if isinstance(size, (tuple, list)) and len(size) == 2:
        height, width = _size("size", size)
    else:
        (height, _), width = _size("size", size[0] if isinstance(size, (tuple, list)) else size), 0
    return Op(
        "ResizeOp", {"height": height, "width": width, "filter": _filter(interpolation)}
    )


def center_crop(size):
    """The middle ``(height, width)``, or an int for a square; 0 where the image is smaller."""
    height, width = _size("size", size)
    return Op("CenterCropOp", {"height": height, "width": width})


def random_resized_crop(
    size, scale=(0.08, 1.0), ratio=(3.0 / 4.0, 4.0 / 3.0), interpolation="bilinear"
):
    """A random area and aspect ratio of the image, resized to ``size``; cropped first."""
    height, width = _size("size", size)
    return Op(
        "RandomResizedCropOp",
        {
            "height": height,
            "width": width,
            "scale": _range("scale", scale),
            "ratio": _range("ratio", ratio),
            "filter": _filter(interpolation),
        },
    )


def random_horizontal_flip(p=0.5):
    """Mirrored with probability ``p``."""
    return Op("RandomHorizontalFlipOp", {"p": float(p)})


def color_jitter(brightness=0.0, contrast=0.0, saturation=0.0, hue=0.0):
    """Factors drawn from ``[max(0, 1 - x), 1 + x]``, the hue's shift from ``[-hue, hue]``."""
    return Op(
        "ColorJitterOp",
        {
            "brightness": float(brightness),
            "contrast": float(contrast),
            "saturation": float(saturation),
            "hue": float(hue),
        },
    )


def normalize(mean, std):
    """``(x / 255 - mean) / std`` of uint8, ``(x - mean) / std`` of floats, by channel; float32."""
    return Op("NormalizeOp", {"mean": _floats("mean", mean), "std": _floats("std", std)})


def to_chw():
    """HWC -> CHW."""
    return Op("ToChwOp", {})


def to_dtype(dtype, scale=False):
    """``"uint8"``, ``"float32"``, ``"float16"`` or ``"bfloat16"``; ``scale``: x / 255 of uint8."""
    return Op("ToDtypeOp", {"dtype": check.dtype_name("dtype", dtype), "scale": bool(scale)})


def parse_int(field="cls"):
    """Decimal text in ``field`` (WebDataset's ``.cls``, ``.index``, ``.id``) -> int64 ``[B]``."""
    return Op("ParseIntOp", {"field": str(field)})


def parse_npy(field="npy", *, dtype="float32", shape):
    """A ``.npy`` file in ``field``, of this dtype and shape -> an array. Pickles are refused."""
    return Op(
        "ParseNpyOp", {"field": str(field), "dtype": str(dtype), "shape": _shape(shape)}
    )


def parse_json(field="json", **fields):
    """Numbers of a JSON document: ``parse_json("json", label="/label", box=("/box", "float32", 4))``.

    Each keyword is an array's name; its value a JSON pointer (RFC 6901), or (pointer, dtype), or
    (pointer, dtype, shape). dtypes: ``"int64"``, ``"float32"``, ``"float64"``, ``"bool"``. The shape
    None: a list of whatever length, as ``NAME`` ``[total]`` and ``NAME_offsets`` ``[B + 1]``.
    """
    parts = []
    for name, what in fields.items():
        what = (what,) if isinstance(what, str) else tuple(what)
        pointer, dtype, shape = (what + ("int64", ())[len(what) - 1 :])[:3]
        part = {"pointer": str(pointer), "name": name, "dtype": str(dtype)}
        parts.append(part | _shape_or_ragged(shape))
    return Op("ParseJsonOp", {"field": str(field), "fields": parts})


def parse_example(features, field="data", *, pad=False):
    """Features of a ``tf.train.Example`` -> arrays.

    Args:
        features: key -> dtype, or (dtype, shape), or (dtype, shape, default). dtypes: ``"int64"``,
            ``"float32"``, and ``"bytes"``: one value, a field for later ops such as
            ``decode_image``. Without a default a sample that lacks the feature is bad. The shape
            None: as many values as a sample has, none where it lacks the feature, as ``NAME``
            ``[total]`` and ``NAME_offsets``, int64 ``[B + 1]``: where each sample's begin. Or a
            vector kept as two features: name -> ``sparse(...)``.
        pad: those with a default may have fewer values than the shape holds: it fills them up.
    """
    parts = []
    for key, what in dict(features).items():
        if isinstance(what, _Sparse):
            if what.values is None:
                raise InvalidArgumentError(f"parse_example: '{key}': sparse(values, indices, size)")
            part = {"key": what.values, "name": str(key), "dtype": what.dtype}
            parts.append(part | {"indices": what.indices, "size": what.size})
            continue
        what = (what,) if isinstance(what, str) else tuple(what)
        dtype, shape, default = (what + ((), None)[len(what) - 1 :])[:3]
        part = {"key": str(key), "dtype": str(dtype)} | _shape_or_ragged(shape)
        if default is not None:
            part |= {"has_default": True, "default_value": float(default), "pad": bool(pad)}
        parts.append(part)
    return Op("ParseExampleOp", {"field": str(field), "features": parts})


class _Sparse:
    def __init__(self, values, indices, size, dtype):
        self.values, self.indices, self.size, self.dtype = values, indices, size, dtype


def sparse(values=None, indices=None, size=None, dtype="float32"):
    """A sparse vector, of ``parse_example`` or ``parse_record`` -> ``NAME`` and ``NAME_indices``.

    Both ``[total]``, with ``NAME_offsets`` and ``NAME_indices_offsets``, int64 ``[B + 1]``: rows of
    a CSR matrix, each in the order of its indices (int64).

    Args:
        values, indices: of a tf.train.Example the two features that hold it (as
            ``tf.io.SparseFeature``'s ``value_key`` and ``index_key``); None of a Record, whose
            tensors have both.
        size: of the dense vector: an index beyond it is a bad sample. None, of a Record: whatever
            it says itself.
        dtype: of the values.
    """
    if (values is None) != (indices is None) or (values is not None and size is None):
        raise InvalidArgumentError("sparse(values, indices, size), or of a Record sparse(size=None)")
    if size is not None:
        size = check.integer("size", size, 1, _INT64_MOST)
    keys = [None if key is None else str(key) for key in (values, indices)]
    return _Sparse(*keys, size, check.dtype_name("dtype", dtype))


def parse_record(features=(), labels=(), field="data"):
    """Tensors of SageMaker's ``Record`` (``recordio-protobuf``) -> arrays.

    Args:
        features, labels: key -> dtype, or (dtype, shape). A record's only tensor has the key
            ``"values"`` in each of the two. dtypes: ``"float32"``, ``"float64"``, ``"int32"``, as
            they are stored, and ``"bytes"``: one value, a field for later ops. A sparse tensor of
            that shape is filled with zeros. The shape None: a dense tensor of whatever size, as
            ``NAME`` ``[total]`` and ``NAME_offsets``, int64 ``[B + 1]``. ``sparse(size=...)``: its
            values and their places, also of a dense one. The array of the label ``"values"`` is
            named ``label``, others as their keys.
    """
    parts = []
    for label, wanted in ((False, features), (True, labels)):
        for key, what in dict(wanted).items():
            part = {"key": str(key), "label": label}
            if label and key == "values":
                part["name"] = "label"
            if isinstance(what, _Sparse):
                if what.values is not None:
                    raise InvalidArgumentError(f"parse_record: '{key}': sparse(size=None)")
                shape = [] if what.size is None else [what.size]
                parts.append(part | {"dtype": what.dtype, "sparse": True, "shape": shape})
                continue
            what = (what,) if isinstance(what, str) else tuple(what)
            dtype, shape = (what + ((),)[len(what) - 1 :])[:2]
            parts.append(part | {"dtype": str(dtype)} | _shape_or_ragged(shape))
    return Op("ParseRecordOp", {"field": str(field), "features": parts})


def tokens(length, *, stride=None, dtype="int64", vocabulary=None):
    """First of all ops on token files: a sample is ``length`` tokens -> ``tokens``, ``[B, length]``.

    Windows of one file after the other, each ``stride`` (None: ``length``) behind the last one. For
    next-token training take ``tokens(n + 1, stride=n)``. What is left at a file's end is too short
    for a window and is left out.

    Args:
        dtype: of the array, ``"int64"`` or ``"int32"``.
        vocabulary: a sample with a token that is not below it is bad: it catches a wrong ``--dtype``.
    """
    arguments = {"stride": _or_0("stride", stride, _INT64_MOST)}
    return Op("TokensOp", arguments | _token_arguments(length, dtype, vocabulary))


def pack_tokens(length, *, window=None, seed=0, pad=0, dtype="int64", vocabulary=None):
    """First of all ops on token files whose documents are known: rows of whole documents.

    Documents that lie side by side are packed by best fit, the longest first; none is cut that fits
    into a row, and each token is in one row. ``tokens`` ``[B, length]`` is filled up with ``pad``;
    ``segment_ids``, int32: which document of its row a token is of, from 1, and 0 where there is
    none; ``positions``, int32: from 0 in each of them.

    Args:
        window: how many documents are packed together; None: some MiB of them.
        seed: of the rows' order within a window.
    """
    arguments = {
        "window": _or_0("window", window, _INT64_MOST),
        "seed": check.integer("seed", seed, 0, 2**64 - 1),
        "pad": check.integer("pad", pad, -_INT64_MOST - 1, _INT64_MOST),
    }
    return Op("PackTokensOp", arguments | _token_arguments(length, dtype, vocabulary))


def _token_arguments(length, dtype, vocabulary):
    return {
        "length": check.integer("length", length, 1, 2**30),
        "dtype": check.dtype_name("dtype", dtype),
        "vocabulary": _or_0("vocabulary", vocabulary, _INT64_MOST),
    }


def _or_0(name, value, most):
    """0 stands for None."""
    return 0 if value is None else check.integer(name, value, 1, most)


def select(*fields):
    """Only these fields or arrays go on."""
    return Op("SelectOp", {"fields": [str(field) for field in fields]})


def rename(field, name):
    """``field``, by another name from here on."""
    return Op("RenameOp", {"field": str(field), "name": str(name)})
