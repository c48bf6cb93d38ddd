"""Rows of Arrow IPC files and streams, by pyarrow as the reference: every type, codec and layout, in
any order, and never a wrong row from a damaged file."""

import datetime
import decimal
import io
import json
import os
import subprocess
import warnings

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather
from tables import BYTES, check, check_in_a_bucket, flat, joined, table, valid, value_of

import forebay as fb
from forebay.demo import processes

CODECS = [None, "lz4", "zstd"]


def save(path, source, rows=None, stream=False, codec=None, schema=None):
    """`rows`: of a record batch, one number or a list."""
    options = pa.ipc.IpcWriteOptions(compression=codec)
    make = pa.ipc.new_stream if stream else pa.ipc.new_file
    with make(path, schema or source.schema, options=options) as writer:
        if isinstance(rows, list):
            first = 0
            for count in rows:
                writer.write_table(source.slice(first, count))
                first += count
        else:
            writer.write_table(source, max_chunksize=rows)


def write(folder, tables, **options):
    for number, one in enumerate(tables):
        save(folder / f"{number:03}.arrow", one, **options)
    return fb.index(folder, format="arrow")


def batches(folder, columns, **options):
    arguments = {"batch_size": 64, "shuffle": False, "epochs": 1, "tail": "ragged", **options}
    with fb.Loader(fb.Records(folder, columns=columns), **arguments) as loader:
        yield from loader


def read(folder, name, **options):
    """Of one column all rows, in order."""
    rows = []
    for batch in batches(folder, [name], **options):
        if "bytes" in batch:  # alone
            batch = {name: batch["bytes"], f"{name}_offsets": batch["offsets"], **batch}
        rows += [value_of(batch, name, row) for row in range(len(batch["_sample"]))]
    return rows


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("nulls", [False, True])
def test_every_type_in_every_codec_is_what_pyarrow_reads(tmp_path, stream, nulls):
    tables = [table(200, seed, nulls) for seed in range(len(CODECS))]
    for number, codec in enumerate(CODECS):
        save(tmp_path / f"{number:03}.arrow", tables[number], 70 + number, stream, codec)
    report = fb.index(tmp_path)
    assert (report["format"], report["records"]) == ("arrow", 200 * len(CODECS))
    expected = joined(tables)
    names = list(expected)
    records = fb.Records(tmp_path, format="arrow", columns=valid(names) if nulls else names)
    for shuffle in (False, True, fb.BlockShuffle(window=2)):
        seen = []
        with fb.Loader(records, batch_size=64, shuffle=shuffle, epochs=1, tail="ragged") as loader:
            for batch in loader:
                seen += check(batch, expected, names)
        assert sorted(seen) == list(range(200 * len(CODECS)))
        assert (seen == sorted(seen)) == (shuffle is False)


def test_feather_and_streams_side_by_side(tmp_path):
    tables = [table(150, seed) for seed in range(4)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        for number, codec in enumerate(["lz4", "zstd", "uncompressed"]):
            path = tmp_path / f"{number}.feather"
            feather.write_feather(tables[number], path, compression=codec, chunksize=40)
    save(tmp_path / "3.arrow", tables[3], stream=True)
    report = fb.index(tmp_path)
    assert (report["format"], report["shards"], report["records"]) == ("arrow", 4, 600)
    expected = joined(tables)
    names = ["int16", "bool", "text", "image", "image.path"]
    seen = [sample for batch in batches(tmp_path, names) for sample in check(batch, expected, names)]
    assert seen == list(range(600))


EPOCH = datetime.date(1970, 1, 1)
PLAIN = {  # of a type: values, and what comes of them
    "date32": (pa.date32(), [EPOCH + datetime.timedelta(days=7)], [7]),
    "date64": (pa.date64(), [EPOCH + datetime.timedelta(days=2)], [2 * 86_400_000]),
    "time32": (pa.time32("ms"), [datetime.time(0, 0, 1, 5000)], [1005]),
    "time64": (pa.time64("us"), [datetime.time(0, 0, 2, 7)], [2_000_007]),
    "timestamp": (pa.timestamp("us", tz="UTC"), [datetime.datetime(1970, 1, 1, 0, 1)], [60_000_000]),
    "duration": (pa.duration("s"), [datetime.timedelta(seconds=-9)], [-9]),
    "decimal32": (pa.decimal32(5, 2), [decimal.Decimal("-1.25")], [-125]),
    "decimal64": (pa.decimal64(15, 3), [decimal.Decimal("7.125")], [7125]),
    "decimal128": (
        pa.decimal128(30, 0),
        [decimal.Decimal(-2)],
        [(-2).to_bytes(16, "little", signed=True)],
    ),
    "binary view": (pa.binary_view(), [b"", b"short", b"longer than 12 bytes"], None),
    "text view": (pa.string_view(), ["ü" * 20, "a"], [("ü" * 20).encode(), b"a"]),
    "large text": (pa.large_string(), ["one", ""], [b"one", b""]),
    "large list": (pa.large_list(pa.int16()), [[1, 2], [], [3]], None),
    "bools": (pa.list_(pa.bool_()), [[True] * 9, [], [False, True]], None),
    "vectors": (pa.list_(pa.float32(), 3), [[0.5, 1, 2], [3, 4, 5]], None),
    "masks": (pa.list_(pa.bool_(), 11), [[True] * 10 + [False], [False, True] * 5 + [True]], None),
    "halves": (pa.list_(pa.float16()), [[np.float16(0.5)]], [[0.5]]),
}


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("kind", PLAIN)
def test_what_comes_of_a_type(tmp_path, kind, codec):
    arrow_type, values, expected = PLAIN[kind]
    expected = expected or values
    # Some of them null, and so many that bits fill bytes.
    many = (values + [None]) * 40
    save(tmp_path / "a.arrow", pa.table({"x": pa.array(many, arrow_type)}), [1, 50, 21], codec=codec)
    fb.index(tmp_path)
    wanted = ((expected + [None]) * 40)[:72]
    count = 0
    for batch in batches(tmp_path, ["x", "x.valid"], batch_size=7):
        count += len(check(batch, {"x": wanted}, ["x"]))
    assert count == 72


CATEGORIES = {  # values of dictionaries
    "texts": pa.array(["one", "", "three and a half", "four"]),
    "large": pa.array([b"one", b"two", b"three", b"four"], pa.large_binary()),
    "views": pa.array(["longer than twelve bytes", "b", "c", "d"], pa.string_view()),
    "numbers": pa.array([1.5, 2.5, -3.5, 0], pa.float32()),
    "some null": pa.array(["one", None, "three", "four"]),
    "fixed": pa.array([b"abc", b"def", b"ghi", b"jkl"], pa.binary(3)),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("kind", CATEGORIES)
def test_categories_come_as_their_values(tmp_path, kind, stream):
    rng = np.random.default_rng(1)
    arrays = []
    for number, index in enumerate((pa.int8(), pa.uint16(), pa.int64())):
        indices = [None if rng.random() < 0.2 else int(v) for v in rng.integers(0, 4, 60)]
        array = pa.DictionaryArray.from_arrays(pa.array(indices, index), CATEGORIES[kind])
        structs = pa.StructArray.from_arrays(
            [array, pa.array(range(60))], ["c", "i"], mask=pa.array([i % 7 == 0 for i in range(60)])
        )
        one = pa.table({"x": array, "s": structs})
        arrays.append(one.slice(3, 50))
        save(tmp_path / f"{number}.arrow", arrays[-1], [8, 42], stream, CODECS[number])
    fb.index(tmp_path)

    def bare(value):
        return value.encode() if isinstance(value, str) else value

    expected = {
        "x": [bare(v) for one in arrays for v in one["x"].to_pylist()],
        "s.c": [bare(v and v["c"]) for one in arrays for v in one["s"].to_pylist()],
    }
    for shuffle in (False, True):
        seen = []
        for batch in batches(tmp_path, valid(["x", "s.c"]), shuffle=shuffle, batch_size=7):
            seen += check(batch, expected, ["x", "s.c"])
        assert sorted(seen) == list(range(150))


def test_dictionaries_of_a_stream_are_those_ahead_of_a_batch(tmp_path):
    parts = [["a", "b", "a"], ["c", "d"], [None, None], ["b"]]
    arrays = [pa.array(part, pa.string()).dictionary_encode() for part in parts]
    schema = pa.schema({"x": arrays[0].type})
    path = tmp_path / "a.arrow"
    with pa.ipc.new_stream(path, schema) as writer:
        for array in arrays:
            writer.write_batch(pa.record_batch([array], schema=schema))
    fb.index(tmp_path)
    (batch,) = batches(tmp_path, ["x", "x.valid"], batch_size=8)
    wanted = [value and value.encode() for part in parts for value in part]
    check(batch, {"x": wanted}, ["x"])
    options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
    grown = pa.DictionaryArray.from_arrays(pa.array([2], pa.int32()), pa.array(["a", "b", "c"]))
    with pa.ipc.new_stream(path, schema, options=options) as writer:
        for array in (arrays[0], grown):
            writer.write_batch(pa.record_batch([array], schema=schema))
    with pytest.raises(fb.DataLossError, match="a dictionary that is added to"):
        fb.index(tmp_path)


def test_sliced_arrays_and_structs_in_structs(tmp_path):
    rng = np.random.default_rng(3)
    inner = pa.struct({"n": pa.int32(), "texts": pa.string(), "l": pa.list_(pa.int8())})
    kind = pa.struct({"in": inner, "b": pa.bool_()})

    def value(i):
        if rng.random() < 0.1:
            return None
        if rng.random() < 0.1:
            return {"in": None, "b": True}
        return {
            "in": {
                "n": None if i % 7 == 0 else i,
                "texts": f"t{i}" * (i % 4),
                "l": list(range(i % 5)),
            },
            "b": i % 3 == 0,
        }

    values = [value(i) for i in range(300)]
    whole = pa.table({"s": pa.array(values, kind), "i": range(300)})
    save(tmp_path / "a.arrow", whole.slice(13, 250), [3, 60, 187])
    report = fb.index(tmp_path)
    names = ["s.in.n", "s.in.texts", "s.in.l", "s.b", "i"]
    assert list(report["fields"]) == names
    inside = [None if v is None else v["in"] for v in values]
    expected = {
        "i": list(range(300)),
        "s.b": [None if v is None else v["b"] for v in values],
        "s.in.n": [None if v is None else v["n"] for v in inside],
        "s.in.texts": [None if v is None else v["texts"].encode() for v in inside],
        "s.in.l": [None if v is None else v["l"] for v in inside],
    }
    expected = {name: column[13:263] for name, column in expected.items()}
    for shuffle in (False, True):
        seen = []
        for batch in batches(tmp_path, valid(names), shuffle=shuffle, batch_size=9):
            seen += check(batch, expected, names)
        assert sorted(seen) == list(range(250))
    # Of one column too what is null above it.
    seen = [bool(v) for b in batches(tmp_path, ["s.in.n.valid"]) for v in b["s.in.n.valid"]]
    assert seen == [value is not None for value in expected["s.in.n"]]


def test_a_null_is_an_error_that_says_how_to_take_it(tmp_path):
    numbers = pa.array([1, None, 3], pa.int64())
    lists = pa.array([[1], [2, None], [3]], pa.list_(pa.int64()))
    arrays = pa.array([None, [1, 2], [None, 3]], pa.list_(pa.int64(), 2))
    write(tmp_path, [pa.table({"n": numbers, "m": [1, 2, 3], "l": lists, "a": arrays})])
    with pytest.raises(fb.DataLossError, match=r"row 1 of record batch 0.*'n' is null.*n\.valid"):
        read(tmp_path, "n")
    assert read(tmp_path, "m") == [1, 2, 3]
    with pytest.raises(fb.DataLossError, match=r"'l' of record batch 0.*a null in the list of row 1"):
        read(tmp_path, "l")
    with pytest.raises(fb.DataLossError, match=r"'a' of record batch 0.*a null in the list of row 2"):
        read(tmp_path, "a")


def hugging_face(path, rows, batch_rows):
    """As `datasets.Dataset.save_to_disk` writes pictures with labels."""
    from PIL import Image

    pictures = []
    for i in range(rows):
        out = io.BytesIO()
        Image.new("RGB", (8 + i, 8), (i * 10, 0, 255 - i)).save(out, "PNG")
        pictures.append({"bytes": out.getvalue(), "path": None if i % 3 else f"{i}.png"})
    kind = pa.struct({"bytes": pa.binary(), "path": pa.string()})
    features = {
        "image": {"_type": "Image"},
        "label": {"names": ["cat", "dog"], "_type": "ClassLabel"},
    }
    schema = pa.schema(
        {"image": kind, "label": pa.int64()},
        metadata={"huggingface": json.dumps({"info": {"features": features}})},
    )
    source = pa.table({"image": pa.array(pictures, kind), "label": range(rows)}, schema=schema)
    with pa.OSFile(str(path), "wb") as sink, pa.RecordBatchStreamWriter(sink, schema) as writer:
        writer.write_table(source, batch_rows)
    return pictures


def test_pictures_that_datasets_has_saved_are_decoded(tmp_path):
    pictures = hugging_face(tmp_path / "data-00000-of-00001.arrow", 20, 6)
    (tmp_path / "dataset_info.json").write_text("{}")
    (tmp_path / "state.json").write_text(json.dumps({"_format_type": None}))
    report = fb.index(tmp_path)
    assert (report["format"], report["records"], report["shards"]) == ("arrow", 20, 1)
    ops = [fb.ops.decode_image("image"), fb.ops.resize([4, 4])]
    for batch in batches(tmp_path, ["image", "label"], ops=ops, batch_size=5, shuffle=True):
        for row, label in enumerate(batch["label"]):
            assert batch["image"][row].shape == (4, 4, 3)
            assert (batch["image"][row] == (label * 10, 0, 255 - label)).all()
    (batch,) = batches(tmp_path, ["image", "image.path", "image.path.valid"])
    for row, picture in enumerate(pictures):
        assert value_of(batch, "image", row) == picture["bytes"]
        assert value_of(batch, "image.path", row) == (picture["path"] or "").encode()
    assert None in [picture["path"] for picture in pictures]
    with fb.Loader(fb.Records(tmp_path), batch_size=20, epochs=1, shuffle=False) as loader:
        (batch,) = loader  # without the path, which may be null
    assert {"image", "label"} < set(batch) and not {"image.path"} & set(batch)


def test_text_that_unpacks_to_many_times_what_is_stored_is_decoded_once(tmp_path):
    """How much that is, decoding tells: more is kept for it than is thought to be needed."""
    table = pa.table({"x": ["a" * 2000 + str(n) for n in range(4000)]})
    save(tmp_path / "a.arrow", table, [4000], True, "zstd")
    fb.index(tmp_path)
    stored = (tmp_path / "a.arrow").stat().st_size
    assert stored * 10 < table.nbytes
    with fb.Loader(
        fb.Records(tmp_path), batch_size=16, epochs=1, shuffle=False, memory="256MiB"
    ) as loader:
        assert sum(len(batch["_sample"]) for batch in loader) == 4000
        metrics = loader.metrics()
    assert metrics["forebay_store_read_bytes_total"] < 2 * stored
    assert metrics['forebay_memory_bytes{kind="decoded"}'] > table.nbytes


@pytest.mark.parametrize("stream", [False, True])
def test_empty_batches_and_files_are_passed(tmp_path, stream):
    schema = pa.schema({"n": pa.int64(), "s": pa.string()})
    make = pa.ipc.new_stream if stream else pa.ipc.new_file
    with make(tmp_path / "a.arrow", schema) as writer:
        for part in ([], [1, 2], [], [3]):
            names = [f"{n}" for n in part]
            columns = [pa.array(part, pa.int64()), pa.array(names, pa.string())]
            writer.write_batch(pa.record_batch(columns, schema=schema))
    save(tmp_path / "b.arrow", schema.empty_table(), stream=stream)
    report = fb.index(tmp_path)
    assert report["records"] == 3
    assert any("b.arrow" in warning for warning in report["warnings"])
    assert read(tmp_path, "n", batch_size=3) == [1, 2, 3]
    assert read(tmp_path, "s", batch_size=3) == [b"1", b"2", b"3"]


@pytest.mark.parametrize("shuffle", [False, True, fb.BlockShuffle(window=2, run=4)])
def test_batches_are_the_same_on_any_world_and_after_a_resume(tmp_path, shuffle):
    tables = [table(35, seed) for seed in range(2)]
    write(tmp_path, tables, rows=[4, 20, 11])
    expected = joined(tables)
    names = ["grows", "text", "numbers"]
    records = fb.Records(tmp_path, columns=names)
    arguments = {"shuffle": shuffle, "epochs": 1, "seed": 11}
    alone = []
    with fb.Loader(records, batch_size=12, **arguments) as loader:
        for batch in loader:
            alone.append(check(batch, expected, names))
            if len(alone) == 3:
                state = json.loads(json.dumps(loader.state_dict()))
    together = [[] for _ in alone]
    for rank in range(3):
        with fb.Loader(records, batch_size=4, rank=rank, world_size=3, **arguments) as loader:
            for step, batch in enumerate(loader):
                together[step] += check(batch, expected, names)
    assert together == alone
    with fb.Loader(records, batch_size=12, **arguments) as loader:
        loader.load_state_dict(state)
        assert [check(batch, expected, names) for batch in loader] == alone[3:]


@pytest.mark.parametrize("stream", [False, True])
def test_only_the_wanted_columns_are_read_and_each_once(tmp_path, stream):
    rng = np.random.default_rng(5)
    source = pa.table({f"c{i:02}": rng.random(40_000) for i in range(20)})
    write(tmp_path, [source], rows=10_000, stream=stream)
    wanted = ["c03", "c11", "c19"]
    size = 3 * 8 * 40_000
    for shuffle in (False, fb.BlockShuffle(window=2)):
        with fb.Loader(
            fb.Records(tmp_path, columns=wanted), batch_size=500, shuffle=shuffle, epochs=1
        ) as loader:
            for batch in loader:
                rows = np.asarray(batch["_sample"])
                for name in wanted:
                    assert np.array_equal(batch[name], source[name].to_numpy()[rows])
            assert size <= loader.metrics()[BYTES] <= 1.05 * size


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("nulls", [False, True])
def test_large_batches_are_read_in_parts(tmp_path, stream, nulls):
    rows = 1501
    rng = np.random.default_rng(7)
    source = table(rows, 2, nulls)

    def some(values, kind):
        return pa.array([None if nulls and rng.random() < 0.2 else v for v in values], kind)

    columns = {
        "blob": some((rng.bytes(int(n)) for n in rng.integers(0, 30_000, rows)), pa.binary()),
        "bools": some(([True, False, True][: i % 4] for i in range(rows)), pa.list_(pa.bool_())),
        "masks": some(([i % 2 == 0] * 11 for i in range(rows)), pa.list_(pa.bool_(), 11)),
        "longs": some((list(range(i % 3)) for i in range(rows)), pa.large_list(pa.int64())),
    }
    for name, column in columns.items():
        source = source.append_column(name, column)
    whole = source.append_column("view", pa.array([f"{i}" for i in range(rows)], pa.string_view()))
    write(tmp_path, [whole.combine_chunks()], stream=stream)
    expected = flat(source)
    names = list(expected)
    for shuffle in (False, True, fb.BlockShuffle(window=2)):
        seen = []
        for batch in batches(tmp_path, valid(names) if nulls else names, shuffle=shuffle):
            seen += check(batch, expected, names)
        assert sorted(seen) == list(range(rows))
        assert (seen == sorted(seen)) == (shuffle is False)
    # Of what is wanted first not all is read, but where something has to be as a whole.
    name = "blob.valid" if nulls else "blob"
    size = sum(len(value or b"") for value in expected["blob"])
    for columns, least, most in (([name], 0, 0.6), ([name, "view"], 1, 1.1)):
        with fb.Loader(
            fb.Records(tmp_path, columns=columns), batch_size=8, shuffle=False, memory="64MiB"
        ) as loader:
            next(iter(loader))
            assert least * size < loader.metrics()[BYTES] < most * size


def test_a_batch_that_is_larger_than_the_memory_is_read(tmp_path):
    rows = 8_000_000
    n = np.arange(rows)
    source = pa.table({"n": n, "half": n / 2, "b": n % 2 == 0})
    write(tmp_path, [source])
    for shuffle in (False, fb.BlockShuffle(window=2)):
        seen = []
        with fb.Loader(
            fb.Records(tmp_path), batch_size=100_000, shuffle=shuffle, epochs=1, memory="64MiB"
        ) as loader:
            for batch in loader:
                n = np.array(batch["n"])
                assert np.array_equal(batch["half"], n / 2) and np.array_equal(batch["b"], n % 2 == 0)
                seen.append(n)
            assert loader.metrics()[BYTES] <= 1.05 * rows * (8 + 8 + 1 / 8)
        assert np.array_equal(np.sort(np.concatenate(seen)), np.arange(rows))


def test_a_member_of_a_struct_with_nulls_does_not_need_its_neighbours_bytes(tmp_path):
    kind = pa.struct({"bytes": pa.binary(), "path": pa.string()})
    values = [None if i % 5 == 0 else {"bytes": b"x" * 10_000, "path": f"{i}"} for i in range(200)]
    write(tmp_path, [pa.table({"image": pa.array(values, kind)})])
    names = ["image.path", "image.path.valid"]
    with fb.Loader(fb.Records(tmp_path, columns=names), batch_size=200, shuffle=False) as loader:
        batch = next(iter(loader))
        assert loader.metrics()[BYTES] < 5000
    for row in range(200):
        wanted = b"" if row % 5 == 0 else f"{row}".encode()
        assert value_of(batch, "image.path", row) == wanted


def test_indexing_reads_no_bodies(tmp_path):
    source = pa.table({"image": [os.urandom(100_000) for _ in range(60)]})
    for stream in (False, True):
        folder = tmp_path / f"{stream}"
        folder.mkdir()
        report = write(folder, [source], rows=20, stream=stream)
        # What the format is told by, the head, of a file its end, and the batches' metadata.
        assert report["requests"] <= 1 + 1 + (not stream) + 3
        assert report["bytes_read"] <= 6 * 65_536
    # But through small ones, as a request for each would cost more.
    many = tmp_path / "many"
    many.mkdir()
    report = write(many, [pa.table({"n": np.arange(2_000_000)})], rows=5000, stream=True)
    assert report["requests"] <= 1 + 1 + 3 and report["records"] == 2_000_000
    small = tmp_path / "small"
    small.mkdir()
    assert write(small, [pa.table({"n": range(100)})], rows=10)["requests"] == 2


def test_what_does_not_come_is_left_out_and_told(tmp_path):
    schema = pa.schema(
        {
            "n": pa.int64(),
            "deep": pa.list_(pa.list_(pa.int8())),
            "texts": pa.list_(pa.string()),
            "structs": pa.list_(pa.struct({"a": pa.int8(), "b": pa.string()})),
            "map": pa.map_(pa.string(), pa.int32()),
            "names": pa.dictionary(pa.int8(), pa.list_(pa.string())),
            "nothing": pa.null(),
            "sparse": pa.sparse_union([pa.field("i", pa.int8()), pa.field("s", pa.string())]),
            "dense": pa.dense_union([pa.field("i", pa.int8()), pa.field("s", pa.string())]),
            "runs": pa.run_end_encoded(pa.int32(), pa.int64()),
            "month": pa.month_day_nano_interval(),
            "list_views": pa.list_view(pa.int8()),
            "views": pa.list_(pa.string_view()),
            "view": pa.string_view(),
            "empty": pa.struct([]),
            "none": pa.binary(0),
            "last": pa.float32(),
        }
    )
    rows = 9
    union = [pa.array([0, 1, 0] * 3, pa.int8()), [pa.array([i for i in range(9)], pa.int8()),
             pa.array(["s"] * 9)]]  # fmt: skip
    offsets = pa.array([0, 0, 1, 2, 1, 3, 4, 2, 5], pa.int32())
    columns = {
        "n": pa.array(range(rows)),
        "deep": pa.array([[[1]]] * rows, schema.field("deep").type),
        "texts": pa.array([["a"]] * rows),
        "structs": pa.array([[{"a": 1, "b": "x"}]] * rows, schema.field("structs").type),
        "map": pa.array([[("k", 1)]] * rows, schema.field("map").type),
        "names": pa.DictionaryArray.from_arrays(
            pa.array([0, 1, 0] * 3, pa.int8()), pa.array([["a"], ["b", "c"]])
        ),
        "nothing": pa.nulls(rows),
        "sparse": pa.UnionArray.from_sparse(*union, ["i", "s"]),
        "dense": pa.UnionArray.from_dense(union[0], offsets, union[1], ["i", "s"]),
        "runs": pa.RunEndEncodedArray.from_arrays(pa.array([4, 9], pa.int32()), pa.array([7, 8])),
        "month": pa.array([pa.MonthDayNano([1, 2, 3])] * rows),
        "list_views": pa.array([[1]] * rows, pa.list_view(pa.int8())),
        "views": pa.array([["longer than twelve bytes", "s"]] * rows, schema.field("views").type),
        "view": pa.array([f"longer than twelve bytes {i}" for i in range(rows)], pa.string_view()),
        "empty": pa.array([{}] * rows, pa.struct([])),
        "none": pa.array([b""] * rows, pa.binary(0)),
        "last": pa.array(np.arange(rows) / 2, pa.float32()),
    }
    schema = pa.schema({name: array.type for name, array in columns.items()})
    source = pa.Table.from_arrays(list(columns.values()), schema=schema)
    for number, stream in enumerate((False, True)):
        save(tmp_path / f"{number}.arrow", source, stream=stream)
    report = fb.index(tmp_path)
    assert not report["failures"]
    assert set(report["fields"]) == {"n", "view", "last"}
    assert report["oddities"] == 2 * 14
    assert any("'deep' is left out" in warning for warning in report["warnings"])
    # Those behind them are still found.
    assert read(tmp_path, "last") == [i / 2 for i in range(rows)] * 2
    assert read(tmp_path, "view") == [f"longer than twelve bytes {i}".encode() for i in range(rows)] * 2
    with pytest.raises(fb.InvalidArgumentError, match="no row has 'deep'"):
        fb.Loader(fb.Records(tmp_path, columns=["deep"]), batch_size=1)


def test_columns_that_differ_between_files_are_told(tmp_path):
    write(tmp_path, [pa.table({"n": pa.array([1], pa.int64())}), pa.table({"n": ["x"]})])
    with pytest.raises(fb.InvalidArgumentError, match="'n' has not the same type.*arrow"):
        fb.Loader(fb.Records(tmp_path, columns=["n"]), batch_size=1)
    save(tmp_path / "001.arrow", pa.table({"m": [1]}))
    fb.index(tmp_path)
    with pytest.raises(fb.InvalidArgumentError, match="arrow has no 'n'"):
        fb.Loader(fb.Records(tmp_path, columns=["n"]), batch_size=1)


def test_a_data_set_grows_by_files(tmp_path):
    tables = [table(30, seed).select(["grows"]) for seed in range(3)]
    write(tmp_path, tables[:2])
    save(tmp_path / "002.arrow", tables[2], stream=True)
    report = fb.index(tmp_path, append=True)
    assert (report["records"], report["appended"], report["generations"]) == (90, 30, 2)
    assert read(tmp_path, "grows") == list(range(90))


def rows_of(folder, columns, expected):
    """Reads all rows of it; an error of the file is fine, a wrong row is not. True: all came."""
    try:
        fb.index(folder, format="arrow")
        seen = []
        for batch in batches(folder, columns, batch_size=7):
            seen += check(batch, expected, columns)
    except (fb.DataLossError, fb.UnimplementedError, fb.InvalidArgumentError, fb.NotFoundError):
        return False
    return seen == list(range(len(expected[columns[0]])))


@pytest.fixture(params=[(False, None), (True, None), (False, "zstd"), (True, "lz4")])
def whole_file(request, tmp_path):
    stream, codec = request.param
    source = table(40, 1).select(["int64", "bool", "text", "numbers", "image"])
    save(tmp_path / "a.arrow", source, 25, stream, codec)
    return (tmp_path / "a.arrow").read_bytes(), flat(source)


def test_a_file_that_is_cut_anywhere_is_no_file(tmp_path, whole_file):
    data, expected = whole_file
    stream = not data.startswith(b"ARROW1")
    at_ends = 0
    for end in [0, 3, 4, 8, 11, 12, *range(13, len(data) - 1, 61), len(data) - 8, len(data) - 1]:
        (tmp_path / "a.arrow").write_bytes(data[:end])
        assert not rows_of(tmp_path, list(expected), expected) or (stream and end == len(data) - 8)
        at_ends += 1
    # Nothing tells that more was to come: it is said that the end is missing.
    if stream:
        (tmp_path / "a.arrow").write_bytes(data[:-8])
        report = fb.index(tmp_path)
        assert report["records"] == 40
        assert any("no end marker" in warning for warning in report["warnings"])
        (tmp_path / "a.arrow").write_bytes(data + b"more")
        assert any("4 bytes behind" in warning for warning in fb.index(tmp_path)["warnings"])


def test_a_flipped_byte_of_metadata_is_an_error_or_changes_little(tmp_path, whole_file):
    data, expected = whole_file
    names = list(expected)
    refused = 0
    for at in range(0, len(data), 13):
        damaged = bytearray(data)
        damaged[at] ^= 0x41
        (tmp_path / "a.arrow").write_bytes(damaged)
        try:
            refused += not rows_of(tmp_path, names, expected)
        except AssertionError:
            pass  # nothing says that it is not what was written: there are no checksums
    assert refused > 20


def test_buffers_that_claim_gigabytes_are_refused_before_they_take_memory(tmp_path):
    rows = 9_000_000
    source = pa.table({"n": np.zeros(rows, np.int64), "few": np.zeros(rows, np.uint8)})
    with pytest.raises(fb.DataLossError, match=r"column 'n' of 9000000 rows"):
        write(tmp_path, [source], codec="zstd", rows=rows)
    # Of what differs in size the metadata says nothing.
    texts = pa.array([b"\0" * (rows * 8), b"x"], pa.binary())
    write(tmp_path, [pa.table({"n": texts})], codec="zstd")
    with pytest.raises(fb.DataLossError, match=r"column 'n' of record batch 0.*above the limit"):
        read(tmp_path, "n", batch_size=1)


def test_a_file_that_changed_since_it_was_indexed_is_told(tmp_path):
    write(tmp_path, [table(30, 1)])
    save(tmp_path / "000.arrow", table(31, 2))
    with pytest.raises(fb.PreconditionFailedError, match="000.arrow"):
        read(tmp_path, "few")


def test_machines_share_an_index_out(tmp_path):
    for number in range(3):
        one = table(20, number).select(["grows"])
        save(tmp_path / f"{number}.arrow", one, stream=number == 1)
    forebay = processes.find_program("forebay", "FOREBAY_CLI")
    for share in ("0/2", "1/2"):
        command = [forebay, "index", tmp_path, "--format", "arrow"]
        subprocess.run([*command, "--shard", share], check=True, capture_output=True)
    subprocess.run([forebay, "merge", tmp_path], check=True, capture_output=True)
    assert read(tmp_path, "grows") == list(range(60))


def test_only_lz4_needs_pyarrow(tmp_path, run_python):
    for codec in CODECS:
        folder = tmp_path / f"{codec}"
        folder.mkdir()
        write(folder, [pa.table({"n": [1, 2]})], codec=codec)
    program = (
        "import sys, forebay as fb\n"
        "for codec in ('None', 'zstd', 'lz4'):\n"
        "    records = fb.Records(f'{sys.argv[1]}/{codec}', format='arrow')\n"
        "    try:\n"
        "        with fb.Loader(records, batch_size=2, shuffle=False) as loader:\n"
        "            print(codec, list(next(iter(loader))['n']))\n"
        "    except fb.UnimplementedError as error:\n        print(codec, error)\n"
    )
    os.environ["FOREBAY_PARQUET_LIBRARY"] = "/nowhere/libforebay_parquet.so"
    try:
        result = run_python(program, str(tmp_path))
    finally:
        del os.environ["FOREBAY_PARQUET_LIBRARY"]
    none, zstd, lz4 = result.stdout.splitlines()
    assert none.startswith("None [") and zstd.startswith("zstd [")
    assert "LZ4" in lz4 and "pip install pyarrow==" in lz4


def test_the_same_comes_from_a_bucket(tmp_path, monkeypatch):
    folder = tmp_path / "tables"
    folder.mkdir()
    tables = [table(90, seed) for seed in range(3)]
    for number, one in enumerate(tables):
        save(folder / f"{number}.arrow", one, 40, stream=number == 1, codec=CODECS[number])
    check_in_a_bucket(folder, tmp_path / "server", monkeypatch, "arrow", joined(tables))


def test_a_mixture_of_arrow_and_parquet(tmp_path):
    import pyarrow.parquet as pq

    tables = [table(60, seed) for seed in range(2)]
    for name in "ab":
        (tmp_path / name).mkdir()
    write(tmp_path / "a", tables[:1], rows=25)
    pq.write_table(tables[1], tmp_path / "b" / "x.parquet")
    fb.index(tmp_path / "b")
    names = ["grows", "text"]
    expected = [flat(one) for one in tables]
    mix = {name: (fb.Records(tmp_path / name, columns=names), 1) for name in "ab"}
    count = 0
    with fb.Loader(fb.Mix(mix, block=4), batch_size=8, epochs=1) as loader:
        for batch in loader:
            for row, (source, sample) in enumerate(zip(batch["_source"], batch["_sample"])):
                for name in names:
                    assert value_of(batch, name, row) == expected[source][name][sample]
                count += 1
    assert count == 120
