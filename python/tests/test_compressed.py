"""Shards that are compressed as a whole: MDS by mosaicml-streaming's layout, JSON lines, CSV, LIBSVM."""

import gzip
import hashlib
import itertools
import json
import os
import subprocess
import sys
import textwrap
import zlib

import numpy as np
import pyarrow
import pytest

import forebay as fb
from test_pack import forebay
from test_pack_reference import STREAMING

COUNT = 90
SHARDS = 3


def zstd(data):
    return pyarrow.compress(data, "zstd", asbytes=True)


def packers():
    return {
        "zst": zstd,
        "gz": lambda data: gzip.compress(data, mtime=0),
        "zz": zlib.compress,
        # Two members or frames, as parallel compressors write.
        "2.gz": lambda data: gzip.compress(data[: len(data) // 2]) + gzip.compress(data[len(data) // 2 :]),
        # An empty one at the end, as bgzip's mark of the end.
        "b.gz": lambda data: gzip.compress(data, mtime=0) + gzip.compress(b"", mtime=0),
        "e.zst": lambda data: zstd(data) + zstd(b""),
    }


def unpacked(data):
    return pyarrow.input_stream(pyarrow.BufferReader(data), compression="zstd").read()


def line(number):
    return json.dumps({"n": int(number), "text": "é%d" % number * (number % 4)}, ensure_ascii=False).encode()


def write_lines(folder, kind="zst", ending="jsonl"):
    each = COUNT // SHARDS
    for shard in range(SHARDS):
        lines = [line(n) for n in range(shard * each, shard * each + each)]
        data = b"\n".join(lines) + b"\n"
        (folder / f"{shard}.{ending}.{kind}").write_bytes(packers()[kind](data))


def read(uri, epochs=1, **more):
    more = {"batch_size": 9, "shuffle": False} | more
    with fb.Loader(fb.Records(str(uri), columns=more.pop("columns", None)), epochs=epochs, **more) as batches:
        for batch in itertools.chain(*[batches] * epochs):
            yield {name: np.array(array) for name, array in batch.items()}


def values(batch, name):
    values, begins = (batch["bytes"], batch["offsets"]) if name is None else (batch[name], batch[name + "_offsets"])
    return [bytes(values[a:b]) for a, b in zip(begins, begins[1:])]


@pytest.mark.parametrize("kind", packers())
@pytest.mark.parametrize("shuffle", [False, True, fb.BlockShuffle(window=2)])
def test_lines_of_compressed_shards_are_rows(tmp_path, kind, shuffle):
    write_lines(tmp_path, kind)
    report = fb.index(str(tmp_path))
    assert (report["format"], report["records"], report["shards"]) == ("compressed-jsonl", COUNT, SHARDS)
    seen = []
    for batch in read(tmp_path, shuffle=shuffle):
        assert values(batch, None) == [line(n) for n in batch["_sample"]]
        seen += list(batch["_sample"])
    assert sorted(seen) == list(range(COUNT)) and (seen == sorted(seen)) == (shuffle is False)


def test_each_shard_is_read_and_unpacked_once_an_epoch(tmp_path):
    write_lines(tmp_path)
    fb.index(str(tmp_path))
    stored = sum(path.stat().st_size for path in tmp_path.glob("*.zst"))
    with fb.Loader(
        fb.Records(str(tmp_path)), batch_size=9, epochs=1, shuffle=fb.BlockShuffle(window=3)
    ) as batches:
        assert sum(len(batch["_sample"]) for batch in batches) == COUNT
        metrics = batches.metrics()
    fetched = [v for k, v in metrics.items() if k.startswith("forebay_store_bytes_total") and "get" in k]
    assert sum(fetched) == stored, metrics


def test_ops_see_the_rows(tmp_path):
    write_lines(tmp_path)
    fb.index(str(tmp_path))
    for batch in read(tmp_path, ops=[fb.ops.parse_json(n="/n")], shuffle=True):
        np.testing.assert_array_equal(batch["n"], batch["_sample"])


@pytest.mark.parametrize("header", [True, False])
def test_csv_and_libsvm(tmp_path, header):
    rows = [b'%d,"a\n%d"' % (n, n) for n in range(20)]
    data = (b"n,text\n" if header else b"") + b"\n".join(rows)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(data))
    report = fb.index(str(tmp_path), format="auto" if header else "compressed-csv-no-header")
    assert report["format"] == ("compressed-csv" if header else "compressed-csv-no-header")
    assert [v for batch in read(tmp_path, batch_size=20) for v in values(batch, None)] == rows
    (tmp_path / "a.csv.gz").unlink()
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(b'1 1:"2\n0 3:4\n'))
    assert fb.index(str(tmp_path), format="compressed-libsvm")["records"] == 2
    (batch,) = read(tmp_path, batch_size=2)
    assert values(batch, None) == [b'1 1:"2', b"0 3:4"]


def mds_shard(rows):
    """Columns n: int, text: str, x: ndarray:float32:2, as mosaicml-streaming lays them out."""
    config = json.dumps({
        "column_encodings": ["int", "str", "ndarray:float32:2"], "column_names": ["n", "text", "x"],
        "column_sizes": [8, None, 8], "compression": "zstd:3", "format": "mds", "hashes": ["sha1"],
        "size_limit": 1 << 26, "version": 2,
    }, sort_keys=True).encode()  # fmt: skip
    samples = []
    for number, text, x in rows:
        text = text.encode()
        head = np.uint32(len(text)).tobytes()
        samples.append(head + np.int64(number).tobytes() + text + np.float32(x).tobytes())
    begin = 4 + 4 * (len(rows) + 1) + len(config)
    offsets = np.cumsum([begin] + [len(sample) for sample in samples]).astype(np.uint32)
    return np.uint32(len(rows)).tobytes() + offsets.tobytes() + config + b"".join(samples), config


def write_mds(folder, each=30, shards=SHARDS, compress=packers()["zst"]):
    index = {"version": 2, "shards": []}
    for shard in range(shards):
        rows = [(n, "t%d" % n * (n % 5), (n, -n)) for n in range(shard * each, shard * each + each)]
        raw, config = mds_shard(rows)
        stored = compress(raw)
        name = f"shard.{shard:05}.mds"
        (folder / (name + ".zstd")).write_bytes(stored)

        def of(basename, data):
            return {"basename": basename, "bytes": len(data), "hashes": {"sha1": hashlib.sha1(data).hexdigest()}}

        index["shards"].append(
            json.loads(config)
            | {"samples": each, "raw_data": of(name, raw), "zip_data": of(name + ".zstd", stored)}
        )
    (folder / "index.json").write_text(json.dumps(index))


def test_mds_shards_with_compression(tmp_path):
    write_mds(tmp_path)
    report = fb.index(str(tmp_path))
    assert (report["format"], report["records"], report["shards"]) == ("compressed-mds", COUNT, SHARDS)
    for batch in read(tmp_path, shuffle=fb.BlockShuffle(window=2), epochs=2):
        numbers = batch["_sample"]
        np.testing.assert_array_equal(batch["n"], numbers)
        assert values(batch, "text") == [b"t%d" % n * (n % 5) for n in numbers]
        x = np.stack([np.frombuffer(v, np.float32) for v in values(batch, "x")])
        np.testing.assert_array_equal(x, np.stack([numbers, -numbers], axis=1).astype(np.float32))
    for batch in read(tmp_path, columns=["n"]):
        assert set(batch) == {"n", "_sample", "_epoch"}
        np.testing.assert_array_equal(batch["n"], batch["_sample"])


def test_the_same_layout_is_what_streaming_reads(tmp_path):
    write_mds(tmp_path)
    for path in tmp_path.glob("*.zstd"):
        (tmp_path / path.stem).write_bytes(unpacked(path.read_bytes()))
    program = tmp_path / "read.py"
    program.write_text(
        textwrap.dedent(STREAMING).replace('values["cls is"] = type(sample["cls"]).__name__', "")
    )
    ran = subprocess.run([sys.executable, program, tmp_path], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    samples = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [sample["n"] for sample in samples] == list(range(COUNT))
    assert samples[13]["text"] == "t13" * 3
    assert samples[13]["x"] == np.float32([13, -13]).tobytes().hex()


def test_rows_are_those_of_the_same_shards_without_compression(tmp_path):
    """Sample for sample, and in one order where blocks are alike."""
    plain, packed = tmp_path / "plain", tmp_path / "packed"
    for folder in (plain, packed):
        folder.mkdir()
    write_lines(packed)
    for path in packed.iterdir():
        (plain / path.stem).write_bytes(unpacked(path.read_bytes()))
    fb.index(str(plain)), fb.index(str(packed))
    for a, b in itertools.zip_longest(read(plain, shuffle=True), read(packed, shuffle=True)):
        np.testing.assert_array_equal(a["_sample"], b["_sample"])
        assert values(a, None) == values(b, None)


def test_what_index_json_says_is_held_to(tmp_path):
    write_mds(tmp_path)
    index = json.loads((tmp_path / "index.json").read_text())
    for change, text in [
        (lambda s: s["zip_data"]["hashes"].update(sha1="0" * 40), "expected sha1 0000"),
        (lambda s: s["raw_data"]["hashes"].update(sha1="0" * 40), "expected sha1 0000"),
        (lambda s: s["zip_data"].update(bytes=7), "7 bytes, as index.json says"),
        (lambda s: s.update(samples=29), "29"),
    ]:
        changed = json.loads(json.dumps(index))
        change(changed["shards"][1])
        (tmp_path / "index.json").write_text(json.dumps(changed))
        report = fb.index(str(tmp_path), format="compressed-mds")
        ((uri, why),) = report["failures"].items()
        assert uri.endswith("shard.00001.mds.zstd") and text in why
    (tmp_path / "index.json").write_text(json.dumps(index))
    (tmp_path / "shard.00000.mds.zstd").write_bytes(b"\xff\x06\x00\x00sNaPpY")
    changed = json.loads(json.dumps(index))
    changed["shards"][0]["compression"] = "snappy"
    (tmp_path / "index.json").write_text(json.dumps(changed))
    ((_, why),) = fb.index(str(tmp_path), format="compressed-mds")["failures"].items()
    assert "compressed with 'snappy': gzip and zstd are read" in why


@pytest.mark.parametrize("packed", [False, True])
def test_a_shard_that_index_json_names_has_to_be_there(tmp_path, packed):
    write_mds(tmp_path)
    if not packed:
        for path in tmp_path.glob("*.zstd"):
            (tmp_path / path.stem).write_bytes(unpacked(path.read_bytes()))
            path.unlink()
        index = json.loads((tmp_path / "index.json").read_text())
        for shard in index["shards"]:
            shard |= {"zip_data": None, "compression": None}
        (tmp_path / "index.json").write_text(json.dumps(index))
    assert fb.index(str(tmp_path))["records"] == COUNT
    gone = next(tmp_path.glob("shard.00001.*"))
    gone.unlink()
    ((uri, why),) = fb.index(str(tmp_path))["failures"].items()
    assert uri.endswith(gone.name) and "there is no such object, and index.json names it" in why
    forebay("index", tmp_path, "--shard", "1/2")
    ran = forebay("index", tmp_path, "--shard", "0/2", code=1)
    assert gone.name in ran.stderr
    out = tmp_path.with_suffix(".out")
    ran = forebay("pack", tmp_path, out, "--to", "tar", *["--unpack"] * packed, code=1)
    assert gone.name in ran.stderr and not list(out.glob("*.tar"))


def test_shards_with_and_without_compression_are_indexed_apart(tmp_path):
    write_lines(tmp_path)
    (tmp_path / "plain.jsonl").write_bytes(line(1) + b"\n")
    ((uri, why),) = fb.index(str(tmp_path), format="compressed-jsonl")["failures"].items()
    assert uri.endswith("plain.jsonl") and "index the two apart" in why


def flip(path, at):
    data = bytearray(path.read_bytes())
    data[at] ^= 0x40
    stat = path.stat()
    with open(path, "r+b") as file:
        file.write(data)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


@pytest.mark.parametrize("kind", packers())
def test_a_flipped_byte_is_found_when_it_is_read(tmp_path, kind):
    write_lines(tmp_path, kind)
    fb.index(str(tmp_path))
    path = tmp_path / f"1.jsonl.{kind}"
    flip(path, path.stat().st_size // 2)
    with pytest.raises(fb.DataLossError, match="CRC-32C") as error:
        list(read(tmp_path))
    assert error.value.uri.endswith(path.name)
    got = [int(n) for batch in read(tmp_path, batch_size=1, on_bad_sample=fb.skip(30)) for n in batch["_sample"]]
    assert not set(got) & set(range(30, 60)) and len(got) == COUNT


@pytest.mark.parametrize("kind", packers())
def test_damaged_shards_are_told_when_they_are_indexed(tmp_path, kind):
    write_lines(tmp_path, kind)
    path = tmp_path / f"1.jsonl.{kind}"
    whole = path.read_bytes()
    for size in range(16, len(whole), 7):
        path.write_bytes(whole[:size])
        failures = fb.index(str(tmp_path), format="compressed-jsonl")["failures"]
        # Whole members of gzip are a whole file, whose last line may be cut.
        assert [uri.endswith(path.name) for uri in failures] == [True], (size, failures)
    path.write_bytes(whole + b"{}")
    assert fb.index(str(tmp_path), format="compressed-jsonl")["failures"]


def test_bombs_are_refused(tmp_path):
    (tmp_path / "a.jsonl.zst").write_bytes(packers()["zst"](b"{}" + b" " * (256 << 20)))
    with pytest.raises(fb.DataLossError, match="the unpacked size"):
        fb.index(str(tmp_path), format="compressed-jsonl")


def test_shares_merge_to_the_same_catalog(tmp_path):
    write_lines(tmp_path)
    fb.index(str(tmp_path))
    catalog = tmp_path / ".forebay" / "catalog.fbc"
    whole = catalog.read_bytes()
    catalog.unlink()
    for share in range(2):
        assert forebay("index", tmp_path, "--shard", f"{share}/2").returncode == 0
    assert forebay("merge", tmp_path).returncode == 0
    assert catalog.read_bytes() == whole


def test_appended_shards_leave_the_order_of_earlier_epochs(tmp_path):
    write_lines(tmp_path)
    fb.index(str(tmp_path))
    (tmp_path / "9.jsonl.zst").write_bytes(packers()["zst"](b'{"n": 99}\n'))
    assert fb.index(str(tmp_path), append=True)["records"] == COUNT + 1
    rows = [v for batch in read(tmp_path, batch_size=13) for v in values(batch, None)]
    assert rows == [line(n) for n in range(COUNT)] + [b'{"n": 99}']


def test_packing_says_how(tmp_path):
    write_lines(tmp_path)
    ran = forebay("pack", tmp_path, tmp_path.with_suffix(".out"), "--to", "tar", code=252)
    assert "--unpack" in ran.stderr
