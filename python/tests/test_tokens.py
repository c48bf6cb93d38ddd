"""Token files: windows and packed rows, the same in every order, against NumPy's own cutting."""

import struct

import numpy as np
import pytest

import forebay as fb

WINDOW = 64


def write_raw(path, tokens):
    tokens.tofile(path)


def write_llmc(path, tokens):
    magic, version = {2: (20240520, 1), 4: (20240801, 7)}[tokens.dtype.itemsize]
    header = np.zeros(256, np.int32)
    header[:3] = magic, version, len(tokens)
    path.write_bytes(header.tobytes() + tokens.tobytes())


def write_megatron(stem, documents):
    """As Megatron-LM's IndexedDatasetBuilder: one sequence a document."""
    tokens = np.concatenate(documents)
    stem.with_suffix(".bin").write_bytes(tokens.tobytes())
    lengths = np.array([len(d) for d in documents], np.int32)
    size = tokens.dtype.itemsize
    pointers = np.concatenate(([0], np.cumsum(lengths.astype(np.int64))[:-1])) * size
    code = {"uint16": 8, "int32": 4}[tokens.dtype.name]
    index = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, code, len(lengths), len(lengths) + 1)
    index += lengths.tobytes() + pointers.astype(np.int64).tobytes()
    index += np.arange(len(lengths) + 1, dtype=np.int64).tobytes()
    stem.with_suffix(".idx").write_bytes(index)


def some_tokens(rng, count, dtype=np.uint16):
    return rng.integers(0, 50_000, count).astype(dtype)


def rows_of(folder, op, **more):
    options = {"batch_size": 4, "epochs": 1, "shuffle": False, "tail": "pad"} | more
    rows = []
    with fb.Loader(fb.Records(str(folder), format="tokens"), ops=[op], **options) as loader:
        for batch in loader:
            keep = ~batch["_pad"] if "_pad" in batch else slice(None)
            rows.append({name: np.array(batch[name][keep]) for name in batch if name[0] != "_"})
    return {name: np.concatenate([row[name] for row in rows]) for name in rows[0]}


def windows(files, length, stride):
    cut = [
        tokens[at : at + length]
        for tokens in files
        for at in range(0, len(tokens) - length + 1, stride)
    ]
    return np.stack(cut).astype(np.int64)


@pytest.mark.parametrize("kind", ["raw", "llmc", "llmc32"])
def test_windows_are_those_that_numpy_cuts(tmp_path, kind):
    rng = np.random.default_rng(1)
    dtype = np.uint32 if kind == "llmc32" else np.uint16
    files = [some_tokens(rng, n, dtype) for n in (1000, 3, 64, 5000)]
    write = write_raw if kind == "raw" else write_llmc
    for i, tokens in enumerate(files):
        write(tmp_path / f"shard_{i:03}.bin", tokens)
    (tmp_path / "README.md").write_text("not tokens")
    if kind == "raw":
        report = fb.index(str(tmp_path), format="tokens", dtype=np.uint16)
    else:
        report = fb.index(str(tmp_path))  # told by content
    assert report["format"] == "tokens" and report["shards"] == 4 and report["records"] == 4
    for length, stride in ((WINDOW, None), (WINDOW + 1, WINDOW), (WINDOW, 10)):
        got = rows_of(tmp_path, fb.ops.tokens(length, stride=stride))["tokens"]
        assert got.dtype == np.int64
        np.testing.assert_array_equal(got, windows(files, length, stride or length))
    got = rows_of(tmp_path, fb.ops.tokens(WINDOW, dtype="int32"))["tokens"]
    assert got.dtype == np.int32
    np.testing.assert_array_equal(got, windows(files, WINDOW, WINDOW))


def test_every_order_has_the_same_windows_and_resumes(tmp_path):
    rng = np.random.default_rng(2)
    files = [some_tokens(rng, n) for n in (9000, 5000)]
    for i, tokens in enumerate(files):
        write_llmc(tmp_path / f"{i}.bin", tokens)
    fb.index(str(tmp_path))
    expected = sorted(map(bytes, windows(files, WINDOW, WINDOW)))
    for shuffle in (True, fb.BlockShuffle(window=2, run=4)):
        got = rows_of(tmp_path, fb.ops.tokens(WINDOW), shuffle=shuffle, seed=5)["tokens"]
        assert sorted(map(bytes, got)) == expected

    options = {"batch_size": 4, "seed": 5, "ops": [fb.ops.tokens(WINDOW)], "epochs": 1}
    source = fb.Records(str(tmp_path))
    with fb.Loader(source, **options) as loader:
        whole = [np.array(batch["tokens"]) for batch in loader]
    with fb.Loader(source, **options) as loader:
        for _, _batch in zip(range(7), loader):
            state = loader.state_dict()
    with fb.Loader(source, **options) as loader:
        loader.load_state_dict(state)
        rest = [np.array(batch["tokens"]) for batch in loader]
    np.testing.assert_array_equal(np.stack(whole[7:]), np.stack(rest))


@pytest.fixture
def documents(tmp_path):
    rng = np.random.default_rng(3)
    stems = {}
    for name in ("a", "b"):
        stems[name] = [some_tokens(rng, n) for n in rng.integers(1, 3 * WINDOW, 150)]
        write_megatron(tmp_path / name, stems[name])
    report = fb.index(str(tmp_path))
    assert report["format"] == "tokens" and report["records"] == 300 and report["shards"] == 2
    assert report["objects_skipped"] == 0  # an index is part of its file
    return tmp_path, [d for name in sorted(stems) for d in stems[name]]


def test_packed_rows_hold_every_document_once(documents):
    folder, texts = documents
    op = fb.ops.pack_tokens(WINDOW, window=30, pad=-1)
    for shuffle in (False, True, fb.BlockShuffle(window=2, run=4)):
        rows = rows_of(folder, op, shuffle=shuffle)
        tokens, segments, positions = rows["tokens"], rows["segment_ids"], rows["positions"]
        assert tokens.shape == segments.shape == positions.shape and tokens.shape[1] == WINDOW
        assert (tokens[segments == 0] == -1).all() and (positions[segments == 0] == 0).all()
        pieces = []
        for row, segment, position in zip(tokens, segments, positions):
            for number in range(1, segment.max() + 1):
                piece = row[segment == number]
                np.testing.assert_array_equal(position[segment == number], range(len(piece)))
                pieces.append(piece.astype(np.uint16).tobytes())
        expected = [
            text[at : at + WINDOW].tobytes() for text in texts for at in range(0, len(text), WINDOW)
        ]
        assert sorted(pieces) == sorted(expected)
    used = (segments > 0).mean()
    assert used > 0.93


def test_files_that_are_appended_leave_packed_rows_as_they_were(tmp_path):
    rng = np.random.default_rng(6)
    write_megatron(tmp_path / "a", [some_tokens(rng, n) for n in rng.integers(3000, 6000, 600)])
    fb.index(str(tmp_path))
    options = {"ops": [fb.ops.pack_tokens(4096)], "batch_size": 8, "epochs": 2, "tail": "ragged"}
    with fb.Loader(fb.Records(str(tmp_path)), **options) as loader:
        whole, states = [], []
        for batch in loader:
            whole.append(np.array(batch["tokens"]))
            states.append(loader.state_dict())
    # Documents of another length: by all of them together other ones would share a window.
    write_megatron(tmp_path / "b", [some_tokens(rng, n) for n in rng.integers(5, 50, 3000)])
    assert fb.index(str(tmp_path), append=True)["appended"] == 3000
    with fb.Loader(fb.Records(str(tmp_path)), **options) as loader:
        loader.load_state_dict(states[4])
        rest = [np.array(batch["tokens"]) for batch in loader]
        assert sum(len(batch["tokens"]) for batch in loader) > sum(map(len, whole))
    np.testing.assert_array_equal(np.concatenate(whole[5:]), np.concatenate(rest))


@pytest.mark.parametrize("op, arguments, text", [
    (fb.ops.tokens, {"length": 0}, "length=0 must be at least 1"),
    (fb.ops.tokens, {"length": 8.0}, "length=8.0 must be an integer"),
    (fb.ops.tokens, {"length": 8, "stride": 0}, "stride=0 must be at least 1"),
    (fb.ops.tokens, {"length": 8, "vocabulary": 2**63}, "vocabulary=.* must be at most"),
    (fb.ops.pack_tokens, {"length": 8, "seed": -1}, "seed=-1 must be at least 0"),
    (fb.ops.pack_tokens, {"length": 8, "pad": 2**31, "dtype": "int32"}, "pad is 2147483648"),
])  # fmt: skip
def test_arguments_that_cannot_be_are_named(op, arguments, text):
    with pytest.raises(fb.errors.InvalidArgumentError, match=text):
        op(**arguments)


def test_documents_come_whole_without_an_op(documents):
    folder, texts = documents
    with fb.Loader(fb.Records(str(folder)), batch_size=7, epochs=1, shuffle=False) as loader:
        first = next(iter(loader))
    ends = first["offsets"]
    for i in range(7):
        assert bytes(first["bytes"][ends[i] : ends[i + 1]]) == texts[i].tobytes()


def test_what_is_wrong_is_said(tmp_path):
    rng = np.random.default_rng(4)
    write_raw(tmp_path / "train.bin", some_tokens(rng, 500))
    with pytest.raises(fb.errors.ForebayError, match="--dtype"):
        fb.index(str(tmp_path), format="tokens")
    with pytest.raises(fb.errors.InvalidArgumentError, match="dtype"):
        fb.index(str(tmp_path), format="tokens", dtype="float32")
    fb.index(str(tmp_path), format="tokens", dtype="uint16")
    source = fb.Records(str(tmp_path))
    with pytest.raises(fb.errors.InvalidArgumentError, match="tokens for one sample"):
        fb.Loader(source, ops=[fb.ops.tokens(501)], batch_size=1)
    with pytest.raises(fb.errors.InvalidArgumentError, match="first op"):
        fb.Loader(source, ops=[fb.ops.select("tokens"), fb.ops.tokens(5)], batch_size=1)
    loader = fb.Loader(source, ops=[fb.ops.tokens(500, vocabulary=100)], batch_size=1, epochs=1)
    with loader, pytest.raises(fb.errors.DataLossError, match="not below 100"):
        next(iter(loader))

    write_llmc(tmp_path / "other.bin", some_tokens(rng, 500, np.uint32))
    with pytest.raises(fb.errors.InvalidArgumentError, match="different types"):
        fb.index(str(tmp_path), format="tokens", dtype="uint16")


def test_neighbours_are_read_together(tmp_path):
    rng = np.random.default_rng(5)
    write_llmc(tmp_path / "big.bin", some_tokens(rng, 1 << 20))  # 2 MiB
    fb.index(str(tmp_path))
    gets = 'forebay_store_requests_total{op="get",code="ok"}'
    # With a global shuffle each window is a range of its own.
    for shuffle, least, most in ((False, 1, 3), (fb.BlockShuffle(window=2, run=8), 1, 3),
                                 (True, 900, 1100)):  # fmt: skip
        with fb.Loader(
            fb.Records(str(tmp_path)), ops=[fb.ops.tokens(1024)], batch_size=8, epochs=1,
            shuffle=shuffle,
        ) as loader:  # fmt: skip
            count = sum(len(batch["tokens"]) for batch in loader)
            after = loader.metrics()
        assert count == 1024
        assert least <= after[gets] <= most
