"""Rows of Parquet files, by pyarrow and DuckDB as references: every type, codec and encoding, in any
order, and never a wrong row from a damaged file."""

import json
import os
import subprocess

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tables import BYTES, check, check_in_a_bucket, flat, joined, table, valid, value_of

import forebay as fb
from forebay.demo import processes

def write(folder, tables, **options):
    for number, one in enumerate(tables):
        pq.write_table(one, folder / f"{number:03}.parquet", **options)
    return fb.index(folder, format="parquet")


CODECS = ["none", "snappy", "gzip", "brotli", "zstd", "lz4"]


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("index", [False, True])
@pytest.mark.parametrize("nulls", [False, True])
def test_every_type_in_every_codec_is_what_pyarrow_reads(tmp_path, version, index, nulls):
    tables = [table(200, seed, nulls) for seed in range(len(CODECS))]
    for number, codec in enumerate(CODECS):
        pq.write_table(
            tables[number],
            tmp_path / f"{number:03}.parquet",
            compression=codec,
            data_page_version=version,
            write_page_index=index,
            write_page_checksum=index,
            row_group_size=90,
            data_page_size=256,
            use_dictionary=["few", "text"] if number % 2 else False,
        )
    report = fb.index(tmp_path)
    assert (report["format"], report["records"]) == ("parquet", 200 * len(CODECS))
    expected = joined(tables)
    names = list(expected)
    records = fb.Records(tmp_path, format="parquet", columns=valid(names) if nulls else names)
    for shuffle in (False, True, fb.BlockShuffle(window=2)):
        seen = []
        with fb.Loader(records, batch_size=64, shuffle=shuffle, epochs=1, tail="ragged") as loader:
            for batch in loader:
                seen += check(batch, expected, names)
        assert sorted(seen) == list(range(200 * len(CODECS)))
        assert (seen == sorted(seen)) == (shuffle is False)


ENCODINGS = {
    "DELTA_BINARY_PACKED": ["int32", "int64", "grows"],
    "DELTA_LENGTH_BYTE_ARRAY": ["text", "large"],
    "DELTA_BYTE_ARRAY": ["text", "fixed"],
    "BYTE_STREAM_SPLIT": ["float32", "float64", "int32", "fixed"],
    "PLAIN": ["int8", "text"],
}


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_encoding_is_what_pyarrow_reads(tmp_path, encoding):
    names = ENCODINGS[encoding]
    source = table(300, 3, nulls=True).select(names)
    write(
        tmp_path,
        [source],
        use_dictionary=False,
        column_encoding={name: encoding for name in names},
        data_page_size=300,
    )
    expected = flat(source)
    with fb.Loader(
        fb.Records(tmp_path, columns=valid(names)), batch_size=50, epochs=1, seed=2
    ) as loader:
        seen = [sample for batch in loader for sample in check(batch, expected, names)]
    assert sorted(seen) == list(range(300))


def test_files_of_another_writer_are_what_it_reads(tmp_path):
    import duckdb

    path = tmp_path / "duck.parquet"
    duckdb.sql(
        "copy (select i, i % 3 = 0 as b, i / 7.0 as d, 'n' || (i % 100) as s, "
        "case when i % 5 = 0 then null else i end as n, [i, i + 1] as l "
        f"from range(9000) t(i)) to '{path}' (format parquet, row_group_size 2048, codec zstd)"
    )
    rows = duckdb.sql(f"select i, b, d, s, n, l from '{path}'").fetchall()
    fb.index(tmp_path)
    columns = ["i", "b", "d", "s", "n", "n.valid", "l"]
    count = 0
    with fb.Loader(fb.Records(tmp_path, columns=columns), batch_size=500, epochs=1) as loader:
        for batch in loader:
            for row, sample in enumerate(batch["_sample"]):
                i, b, d, s, n, numbers = rows[int(sample)]
                assert (batch["i"][row], batch["b"][row], batch["d"][row]) == (i, b, float(d))
                assert value_of(batch, "s", row) == s.encode()
                assert (batch["n"][row], batch["n.valid"][row]) == (n or 0, n is not None)
                assert value_of(batch, "l", row) == numbers
                count += 1
    assert count == 9000


@pytest.mark.parametrize("shuffle", [False, True, fb.BlockShuffle(window=2, run=4)])
@pytest.mark.parametrize("tail", ["drop", "pad", "ragged"])
def test_batches_are_the_same_on_any_world_and_after_a_resume(tmp_path, shuffle, tail):
    tables = [table(35, seed) for seed in range(2)]
    write(tmp_path, tables, row_group_size=20)
    expected = joined(tables)
    names = ["grows", "text", "numbers"]
    records = fb.Records(tmp_path, columns=names)
    arguments = {"shuffle": shuffle, "tail": tail, "epochs": 1, "seed": 11}

    def kept(batch):
        samples = check(batch, expected, names)
        pads = batch.get("_pad", [False] * len(samples))
        return [sample for sample, pad in zip(samples, pads) if not pad]

    alone = []
    with fb.Loader(records, batch_size=12, **arguments) as loader:
        for batch in loader:
            alone.append(kept(batch))
            if len(alone) == 3:
                state = json.loads(json.dumps(loader.state_dict()))
    together = [[] for _ in alone]
    for rank in range(3):
        with fb.Loader(records, batch_size=4, rank=rank, world_size=3, **arguments) as loader:
            for step, batch in enumerate(loader):
                together[step] += kept(batch)
    assert together == alone
    with fb.Loader(records, batch_size=12, **arguments) as loader:
        loader.load_state_dict(state)
        assert [kept(batch) for batch in loader] == alone[3:]


def test_only_the_wanted_columns_are_read_and_each_once(tmp_path):
    rng = np.random.default_rng(5)
    names = [f"c{i:02}" for i in range(20)]
    source = pa.table({name: rng.random(40_000) for name in names})
    write(tmp_path, [source], row_group_size=10_000, use_dictionary=False, compression="none")
    meta = pq.ParquetFile(tmp_path / "000.parquet").metadata
    wanted = ["c03", "c11", "c19"]
    size = sum(
        meta.row_group(g).column(names.index(name)).total_compressed_size
        for g in range(meta.num_row_groups)
        for name in wanted
    )
    for shuffle in (False, fb.BlockShuffle(window=2)):
        with fb.Loader(
            fb.Records(tmp_path, columns=wanted), batch_size=500, shuffle=shuffle, epochs=1
        ) as loader:
            for batch in loader:
                rows = np.asarray(batch["_sample"])
                for name in wanted:
                    assert np.array_equal(batch[name], source[name].to_numpy()[rows])
            fetched = loader.metrics()[BYTES]
        assert size <= fetched <= 1.05 * size


def test_large_row_groups_are_read_by_pages_where_the_file_says_where_they_are(tmp_path):
    rows = 3_000_000
    source = pa.table({"a": np.arange(rows), "b": np.arange(rows)[::-1] * 0.5})
    options = {"use_dictionary": False, "compression": "none", "row_group_size": rows}
    write(tmp_path, [source], write_page_index=True, **options)
    records = fb.Records(tmp_path, columns=["a", "b"])
    with fb.Loader(records, batch_size=1000, shuffle=False, epochs=1) as loader:
        batch = next(iter(loader))
        assert np.array_equal(batch["a"], np.arange(1000))
        assert loader.metrics()[BYTES] < 2 * 8 * rows  # the first pages came alone
    for shuffle in (fb.BlockShuffle(window=2), True):
        with fb.Loader(
            records, batch_size=100_000, shuffle=shuffle, epochs=1, memory="256MiB"
        ) as loader:
            seen = np.concatenate([np.array(batch["a"]) for batch in loader])
            assert loader.metrics()[BYTES] <= 1.05 * 2 * 8 * rows
        assert np.array_equal(np.sort(seen), np.arange(rows))


def test_a_null_is_an_error_that_says_how_to_take_it(tmp_path):
    write(tmp_path, [pa.table({"n": pa.array([1, None, 3], pa.int64()), "m": [1, 2, 3]})])
    with fb.Loader(fb.Records(tmp_path), batch_size=3, shuffle=False) as loader:
        with pytest.raises(fb.DataLossError, match=r"row 1 of row group 0.*'n' is null.*n\.valid"):
            next(iter(loader))
    with fb.Loader(fb.Records(tmp_path, columns=["m"]), batch_size=3, shuffle=False) as loader:
        assert list(next(iter(loader))["m"]) == [1, 2, 3]


def test_pictures_of_a_struct_are_decoded(tmp_path):
    import io

    from PIL import Image

    pictures = []
    for i in range(20):
        out = io.BytesIO()
        Image.new("RGB", (8 + i, 8), (i * 10, 0, 255 - i)).save(out, "PNG")
        pictures.append({"bytes": out.getvalue(), "path": f"{i}.png"})
    kind = pa.struct({"bytes": pa.binary(), "path": pa.string()})
    write(tmp_path, [pa.table({"image": pa.array(pictures, kind), "label": range(20)})])
    ops = [fb.ops.decode_image("image"), fb.ops.resize([4, 4])]
    with fb.Loader(
        fb.Records(tmp_path, columns=["image", "label"]), ops=ops, batch_size=5, epochs=1
    ) as loader:
        for batch in loader:
            for row, label in enumerate(batch["label"]):
                assert batch["image"][row].shape == (4, 4, 3)
                assert (batch["image"][row] == (label * 10, 0, 255 - label)).all()


def test_empty_row_groups_and_files_are_passed(tmp_path):
    schema = pa.schema({"n": pa.int64()})
    with pq.ParquetWriter(tmp_path / "a.parquet", schema) as writer:
        for part in ([], [1, 2], [], [3]):
            writer.write_table(pa.table({"n": pa.array(part, pa.int64())}))
    pq.write_table(schema.empty_table(), tmp_path / "b.parquet")
    report = fb.index(tmp_path)
    assert report["records"] == 3
    assert any("b.parquet" in warning for warning in report["warnings"])
    with fb.Loader(fb.Records(tmp_path), batch_size=3, shuffle=False) as loader:
        assert list(next(iter(loader))["n"]) == [1, 2, 3]


def test_a_data_set_grows_by_files(tmp_path):
    tables = [table(30, seed).select(["grows"]) for seed in range(3)]
    write(tmp_path, tables[:2])
    pq.write_table(tables[2], tmp_path / "002.parquet")
    report = fb.index(tmp_path, append=True)
    assert (report["records"], report["appended"], report["generations"]) == (90, 30, 2)
    with fb.Loader(fb.Records(tmp_path), batch_size=90, shuffle=False) as loader:
        assert list(next(iter(loader))["grows"]) == list(range(90))


def test_what_is_not_read_is_refused_and_told(tmp_path):
    write(tmp_path, [pa.table({"n": [1], "deep": [[[1]]], "texts": [["a"]]})])
    with pytest.raises(fb.InvalidArgumentError, match="no row has 'deep'; there are: n"):
        fb.Loader(fb.Records(tmp_path, columns=["deep"]), batch_size=1)
    with pytest.raises(fb.InvalidArgumentError, match="no row has 'texts'"):
        fb.Loader(fb.Records(tmp_path, columns=["texts"]), batch_size=1)
    whole = (tmp_path / "000.parquet").read_bytes()
    (tmp_path / "001.parquet").write_bytes(whole[:-4] + b"PARE")
    ((uri, why),) = fb.index(tmp_path, format="parquet")["failures"].items()
    assert uri.endswith("001.parquet") and "encrypted" in why


def test_columns_that_differ_between_files_are_told(tmp_path):
    write(tmp_path, [pa.table({"n": pa.array([1], pa.int64())}), pa.table({"n": ["x"]})])
    with pytest.raises(fb.InvalidArgumentError, match="'n' has not the same type.*parquet"):
        fb.Loader(fb.Records(tmp_path, columns=["n"]), batch_size=1)


def rows_of(folder, columns, expected):
    """Reads all rows of it; an error of the file is fine, a wrong row is not. True: all came."""
    try:
        fb.index(folder, format="parquet")
        with fb.Loader(
            fb.Records(folder, columns=columns), batch_size=7, shuffle=False, epochs=1, tail="ragged"
        ) as loader:
            seen = [sample for batch in loader for sample in check(batch, expected, columns)]
    except (fb.DataLossError, fb.UnimplementedError, fb.InvalidArgumentError, fb.NotFoundError):
        return False
    assert seen == list(range(len(expected[columns[0]])))
    return True


@pytest.fixture(scope="module")
def whole_file(tmp_path_factory):
    """With checksums of all pages, so that no flipped bit of data goes unnoticed."""
    source = table(40, 1).select(["int64", "few", "text", "numbers"])
    path = tmp_path_factory.mktemp("whole") / "a.parquet"
    pq.write_table(
        source, path, write_page_checksum=True, write_page_index=True, row_group_size=25
    )
    return path.read_bytes(), flat(source)


def test_a_file_that_is_cut_anywhere_is_no_file(tmp_path, whole_file):
    data, expected = whole_file
    for end in [0, 3, 4, 11, 12, *range(13, len(data) - 1, 97), len(data) - 1]:
        (tmp_path / "a.parquet").write_bytes(data[:end])
        assert not rows_of(tmp_path, list(expected), expected), end


def test_a_flipped_byte_is_an_error_or_changes_nothing(tmp_path, whole_file):
    data, expected = whole_file
    meta = pq.ParquetFile(pa.BufferReader(data)).metadata
    chunks = [
        meta.row_group(g).column(c) for g in range(meta.num_row_groups) for c in range(meta.num_columns)
    ]  # fmt: skip
    ends = max(chunk.data_page_offset + chunk.total_compressed_size for chunk in chunks)
    refused = 0
    for at in [*range(4, ends, 23), *range(ends, len(data), 17)]:
        damaged = bytearray(data)
        damaged[at] ^= 0x41
        (tmp_path / "a.parquet").write_bytes(damaged)
        try:
            refused += not rows_of(tmp_path, list(expected), expected)
        except AssertionError:
            # The footer has no checksum: what it says of types may read as another type. It must not
            # be data that changed.
            assert at >= ends, at
    assert refused > 20


def test_a_page_without_a_checksum_is_read_and_never_past_its_end(tmp_path):
    source = table(60, 2).select(["int64", "few", "text", "numbers"])
    path = tmp_path / "a.parquet"
    pq.write_table(source, path, compression="none", row_group_size=25)
    data, expected = path.read_bytes(), flat(source)
    for at in range(4, len(data) - 8, 41):
        damaged = bytearray(data)
        damaged[at] = 0xFF
        path.write_bytes(damaged)
        try:
            rows_of(tmp_path, list(expected), expected)
        except AssertionError:
            pass  # nothing says that it is not what was written


def test_pages_that_claim_gigabytes_are_refused_before_they_take_memory(tmp_path):
    rows = 9_000_000
    source = pa.table({"n": np.zeros(rows, np.int64)})
    pq.write_table(
        source, tmp_path / "a.parquet", compression="zstd", use_dictionary=False,
        column_encoding="PLAIN", data_page_size=2**30, row_group_size=rows, max_rows_per_page=rows,
    )  # fmt: skip
    fb.index(tmp_path)
    with fb.Loader(fb.Records(tmp_path), batch_size=10, shuffle=False, memory="1GiB") as loader:
        with pytest.raises(fb.DataLossError, match=r"column 'n' of row group 0.*above the limit"):
            next(iter(loader))


def test_a_file_that_changed_since_it_was_indexed_is_told(tmp_path):
    write(tmp_path, [table(30, 1)])
    pq.write_table(table(31, 2), tmp_path / "000.parquet")
    with fb.Loader(fb.Records(tmp_path, columns=["few"]), batch_size=5, shuffle=False) as loader:
        with pytest.raises(fb.PreconditionFailedError, match="000.parquet"):
            next(iter(loader))


def test_machines_share_an_index_out(tmp_path):
    tables = [table(20, seed).select(["grows"]) for seed in range(3)]
    for number, one in enumerate(tables):
        pq.write_table(one, tmp_path / f"{number}.parquet")
    forebay = processes.find_program("forebay", "FOREBAY_CLI")
    for share in ("0/2", "1/2"):
        command = [forebay, "index", tmp_path, "--format", "parquet"]
        subprocess.run([*command, "--shard", share], check=True, capture_output=True)
    subprocess.run([forebay, "merge", tmp_path], check=True, capture_output=True)
    with fb.Loader(fb.Records(tmp_path), batch_size=60, shuffle=False) as loader:
        assert list(next(iter(loader))["grows"]) == list(range(60))


def test_without_arrow_it_says_what_to_install(tmp_path, run_python):
    write(tmp_path, [pa.table({"n": [1]})])
    program = (
        "import sys, forebay as fb\n"
        "try:\n    fb.Loader(fb.Records(sys.argv[1], format='parquet'), batch_size=1)\n"
        "except fb.UnimplementedError as error:\n    print(error)\n"
    )
    os.environ["FOREBAY_PARQUET_LIBRARY"] = "/nowhere/libforebay_parquet.so"
    try:
        result = run_python(program, str(tmp_path))
    finally:
        del os.environ["FOREBAY_PARQUET_LIBRARY"]
    assert "pip install pyarrow==" in result.stdout


def test_the_same_comes_from_a_bucket(tmp_path, monkeypatch):
    folder = tmp_path / "tables"
    folder.mkdir()
    tables = [table(90, seed) for seed in range(3)]
    for number, one in enumerate(tables):
        pq.write_table(one, folder / f"{number}.parquet", row_group_size=40)
    check_in_a_bucket(folder, tmp_path / "server", monkeypatch, "parquet", joined(tables))


def test_a_mixture_of_tables_and_one_with_what_is_no_table(tmp_path):
    folders = [tmp_path / name for name in "abc"]
    tables = [table(60, seed) for seed in range(2)]
    for folder, one in zip(folders, tables):
        folder.mkdir()
        write(folder, [one], row_group_size=25)
    names = ["grows", "text"]
    mix = {
        folder.name: (fb.Records(folder, columns=names), 1) for folder in folders[:2]
    }  # fmt: skip
    expected = [flat(one) for one in tables]
    with fb.Loader(fb.Mix(mix, block=4), batch_size=8, epochs=1) as loader:
        count = 0
        for batch in loader:
            for row, (source, sample) in enumerate(zip(batch["_source"], batch["_sample"])):
                for name in names:
                    assert value_of(batch, name, row) == expected[source][name][sample]
                count += 1
        assert count == 120
    folders[2].mkdir()
    (folders[2] / "x.jsonl").write_text('{"a": 1}\n')
    fb.index(folders[2])
    mix = {
        "a": (fb.Records(folders[0], columns=["text"]), 1),
        "c": (fb.Records(folders[2]), 1),
    }
    with pytest.raises(fb.InvalidArgumentError, match="mixture"):
        fb.Loader(fb.Mix(mix), batch_size=8)


def test_rows_of_a_damaged_page_are_replaced_where_that_is_allowed(tmp_path):
    source = pa.table({"n": np.arange(60)})
    path = tmp_path / "a.parquet"
    pq.write_table(
        source, path, row_group_size=20, write_page_checksum=True, use_dictionary=False,
        compression="none",
    )  # fmt: skip
    fb.index(tmp_path)
    chunk = pq.ParquetFile(path).metadata.row_group(1).column(0)
    times = path.stat()
    data = bytearray(path.read_bytes())
    data[chunk.data_page_offset + chunk.total_compressed_size - 4] ^= 1
    with open(path, "r+b") as file:
        file.write(data)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    with fb.Loader(fb.Records(tmp_path), batch_size=6, shuffle=False, epochs=1) as loader:
        with pytest.raises(fb.DataLossError, match=r"'n' of row group 1.*CRC-32.*a\.parquet"):
            list(loader)
    with fb.Loader(
        fb.Records(tmp_path), batch_size=6, shuffle=False, epochs=1, on_bad_sample=fb.skip(max=20),
        held_limit=99,
    ) as loader:  # fmt: skip
        good = [*range(20), *range(40, 60)]
        rows = [int(n) for batch in loader for n in batch["n"]]
        assert len(rows) == 60 and set(rows) <= set(good)
        assert [row for row in rows[:20]] == list(range(20))
