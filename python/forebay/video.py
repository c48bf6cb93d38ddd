"""One video, exact frames by number or time."""

from __future__ import annotations

import operator

from . import _core, arrow, check
from .errors import InvalidArgumentError
from .records import S3_DATA_TYPES
from .storage import to_store_options


class Video:
    """A video in an object store or a file; its index is built by range reads when it is opened.

    ``len(video)`` is the number of frames, ``video.times`` their presentation times in seconds
    (float64, from the container; NaN where it says none). Frames are exact: always the pictures
    that a decoder reading from the start would give, whatever the order they are asked in.

    Any thread may call it, one call at a time. In a forked child it opens itself anew.

    Args:
        uri: ``s3://bucket/key``, ``file:///path`` or a path.
        stream: FFmpeg's stream index; None: the first video stream.
        resize: ``(height, width)`` of the frames; None: as the stream.
        verify: how sync points are verified while indexing: "none", "heads" or "full".
        storage_options: as in ``forebay.VideoClips``.
    """

    def __init__(self, uri, *, stream=None, resize=None, verify="heads", storage_options=None):
        self._core = None
        self._closed = False
        self._uri = check.uri("uri", uri)
        self._store = to_store_options(storage_options)
        self._options = _core.VideoOptions()
        if stream is not None:
            self._options.stream = check.integer("stream", stream, least=0, most=2**31 - 1)
        self._options.verify = check.one_of("verify", verify, ("none", "heads", "full"))
        if resize is not None:
            self._options.height, self._options.width = check.size("resize", resize)
        self._open()

    def __len__(self):
        return self._open().frame_count

    @property
    def times(self):
        """Presentation times in seconds, float64 ``[len(video)]``, read-only."""
        return self._open().times

    @property
    def width(self):
        """Of the frames, in pixels, after the rotation that the stream is tagged with."""
        return self._open().width

    @property
    def height(self):
        return self._open().height

    @property
    def stream(self):
        """FFmpeg's index of the stream."""
        return self._open().stream

    def frame_at(self, seconds):
        """The number of the frame that is shown at ``seconds``."""
        return self._open().frame_at(float(seconds))

    def frames(self, numbers=None, *, times=None):
        """uint8 RGB ``[N, H, W, 3]`` of the frames with these numbers, or shown at these times.

        Any order, repeats allowed. Errors: InvalidArgumentError for a number or a time outside;
        DataLossError where the stream is damaged there.
        """
        import numpy as np  # takes longer than all of ours; `import forebay` does without

        core = self._open()
        if (numbers is None) == (times is None):
            raise InvalidArgumentError("frames: give numbers or times=, one of the two")
        if times is not None:
            numbers = [core.frame_at(float(t)) for t in np.ravel(times)]
        numbers = _numbers(numbers, core.frame_count, self._uri)
        out = np.empty((len(numbers), self.height, self.width, 3), np.uint8)
        core.frames(numbers, out)
        return out

    def close(self):
        """Lets go of decoders and buffers; frames already returned stay."""
        self._core = None
        self._closed = True

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __repr__(self):
        return f"forebay.Video({self._uri!r})"

    def __reduce__(self):
        raise TypeError("a forebay.Video cannot be pickled; pickle its URI and open it again")

    def _open(self):
        if self._closed:
            raise InvalidArgumentError(f"{self!r} is closed", uri=self._uri)
        if self._core is None or not self._core.usable:
            self._core = _core.Video.open(self._uri, self._store, self._options)
        return self._core


def _numbers(numbers, count, uri):
    import numpy as np

    array = np.asarray(numbers)
    if array.size == 0:
        return np.empty(0, np.uint32)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        try:
            array = np.array([operator.index(n) for n in numbers])
        except TypeError:
            raise InvalidArgumentError(
                f"frames: {numbers!r} is no sequence of frame numbers", uri=uri
            ) from None
    outside = (array < 0) | (array >= count)
    if outside.any():
        raise InvalidArgumentError(
            f"frames: no frame {array[outside][0]}; there are {count}, numbered from 0 [uri={uri}]",
            uri=uri,
        )
    return np.ascontiguousarray(array, np.uint32)


def index(
    source,
    *,
    out=None,
    format="auto",
    s3_data_type=None,
    key_order="bytes",
    append=False,
    dtype=None,
    drop_tail=False,
    concatenated=False,
    max_damaged=0,
    verify="heads",
    storage_options=None,
):
    """Builds and stores the catalog of what lies under ``source``, as ``forebay index`` does.

    Args:
        source: ``s3://bucket/prefix/``, ``file:///path/`` or a path.
        out: the catalog's URI; None: ``source``/.forebay/catalog.fbc.
        format: ``"video"`` (videos are indexed by range reads), ``"files"`` (every object is a
            sample; none is read), ``"tar"`` and other formats of shards of records, or ``"auto"``:
            told by content, and files where it is neither.
        s3_data_type: what ``source`` names, as SageMaker defines it: None: a folder; ``"S3Prefix"``:
            all objects whose keys begin so; ``"ManifestFile"`` or ``"AugmentedManifestFile"``: the
            objects of that list, in its order. The catalog of one lies beside it.
        key_order: of files: ``"bytes"`` of their keys, or as ``"listed"`` by the store.
        append: not of videos: samples that the catalog has keep their numbers, those of new objects
            come behind them. An object that has changed or is gone is a PreconditionFailedError.
        dtype: of ``"tokens"``: their type where a file does not say it, ``"uint16"``, ``"uint32"``, ...
        drop_tail: of shards: a last record that is cut is left out and told; else it is an error that
            keeps its shard out.
        concatenated: of ``"tar"``: behind an archive's end another one begins (``cat a.tar b.tar``).
        max_damaged: of ``"tfrecord"``: of each shard so many records whose data fail their checksum
            are left out and told.
        verify: of videos: how sync points are checked, ``"none"``, ``"heads"`` or ``"full"``.

    Returns a dict: ``catalog_uri``, ``format``, ``objects``, ``videos``, ``frames``,
    ``shards``, ``records``, ``fields`` (name -> how many records have it), ``oddities``,
    ``warnings``, ``bytes_read``, ``dataset_bytes``, ``index_bytes``, ``appended``, ``generations``,
    ``failures`` (URI -> why), ...
    """
    options = _core.IndexOptions()
    options.out = "" if out is None else check.uri("out", out)
    options.format = check.one_of(
        "format", format, ("auto", "video", "files", *_core.record_formats())
    )
    if s3_data_type is not None:
        options.s3_data_type = check.one_of("s3_data_type", s3_data_type, S3_DATA_TYPES)
    options.key_order = check.one_of("key_order", key_order, ("bytes", "listed"))
    options.append = check.boolean("append", append)
    options.dtype = "" if dtype is None else check.dtype_name("dtype", dtype)
    options.drop_tail = check.boolean("drop_tail", drop_tail)
    options.concatenated = check.boolean("concatenated", concatenated)
    options.max_damaged = check.integer("max_damaged", max_damaged, least=0)
    options.verify = check.one_of("verify", verify, ("none", "heads", "full"))
    arrow.announce()
    return _core.build_index(
        check.uri("source", source), to_store_options(storage_options), options
    )
