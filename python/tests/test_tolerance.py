"""Shards that are cut, joined or damaged, and what an index may be told to do about them."""

import gzip
import io
import json
import tarfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import forebay as fb
from test_pack import forebay

COUNT = 12


def tar(first=0, count=COUNT):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for n in range(first, first + count):
            data = b"sample %d" % n
            info = tarfile.TarInfo(f"{n:04}.txt")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def masked(data):
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ table[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return (((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF).to_bytes(4, "little")


def tfrecord(bad=()):
    out = b""
    for n in range(COUNT):
        data, length = b"sample %d" % n, len(b"sample %d" % n).to_bytes(8, "little")
        body = b"damaged!"[: len(data)].ljust(len(data)) if n in bad else data
        out += length + masked(length) + body + masked(data)
    return out


def lines():
    return b"".join(b'{"n": %d}\n' % n for n in range(COUNT))


def npy():
    out = io.BytesIO()
    np.save(out, np.arange(COUNT * 4, dtype=np.int32).reshape(COUNT, 4))
    return out.getvalue()


def count(folder):
    with fb.Loader(fb.Records(str(folder)), batch_size=1, shuffle=False, epochs=1) as batches:
        return sum(len(batch["_sample"]) for batch in batches)


def samples(folder):
    with fb.Loader(fb.Records(str(folder)), batch_size=1, shuffle=False, epochs=1) as batches:
        return [bytes(batch["bytes"]) for batch in batches]


@pytest.mark.parametrize(
    "format, cut",
    [
        ("tfrecord", tfrecord()[:-5]),
        ("jsonl", lines()[:-2]),
        ("tar", tar(0)[: (COUNT - 1) * 1024 + 515]),  # in the last member's data
        ("npy", npy()[:-3]),
    ],
    ids=lambda value: value if isinstance(value, str) else "cut",
)
def test_a_cut_tail_keeps_a_shard_out_or_is_left_out(tmp_path, format, cut):
    (tmp_path / "whole").write_bytes({"tfrecord": tfrecord, "jsonl": lines, "tar": tar, "npy": npy}[format]())
    (tmp_path / "wrong").write_bytes(cut)
    report = fb.index(str(tmp_path), format=format)
    assert report["records"] == COUNT and [uri.rsplit("/")[-1] for uri in report["failures"]] == ["wrong"]
    report = fb.index(str(tmp_path), format=format, drop_tail=True)
    assert (report["records"], report["failures"]) == (2 * COUNT - 1, {})
    assert any("wrong" in warning for warning in report["warnings"])
    assert count(tmp_path) == 2 * COUNT - 1


def test_joined_archives_are_read_on_when_asked(tmp_path):
    (tmp_path / "a.tar").write_bytes(tar(0) + tar(COUNT))
    assert fb.index(str(tmp_path))["records"] == COUNT
    assert fb.index(str(tmp_path), concatenated=True)["records"] == 2 * COUNT
    assert samples(tmp_path) == [b"sample %d" % n for n in range(2 * COUNT)]


def test_damaged_records_are_left_out_when_asked_and_no_more_of_them(tmp_path):
    (tmp_path / "a.tfrecord").write_bytes(tfrecord(bad=(3, 7)))
    with pytest.raises(fb.DataLossError, match="a.tfrecord"):
        fb.index(str(tmp_path), format="tfrecord", max_damaged=1)
    report = fb.index(str(tmp_path), max_damaged=2)
    assert report["records"] == COUNT - 2 and len(report["warnings"]) >= 1
    assert samples(tmp_path) == [b"sample %d" % n for n in range(COUNT) if n not in (3, 7)]


def test_the_command_line_has_the_same(tmp_path):
    (tmp_path / "a.tfrecord").write_bytes(tfrecord(bad=(3,))[:-5])
    forebay("index", tmp_path, "--drop-tail", "--max-damaged", 1)
    assert len(samples(tmp_path)) == COUNT - 2
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "a.tar").write_bytes(tar(0) + tar(COUNT))
    forebay("index", tmp_path / "b", "--concatenated")
    assert len(samples(tmp_path / "b")) == 2 * COUNT
    forebay("index", tmp_path, "--max-damaged", -1, code=252)


@pytest.mark.parametrize(
    "format, option",
    [("tar", {"max_damaged": 1}), ("tfrecord", {"concatenated": True}), ("parquet", {"drop_tail": True}),
     ("compressed-jsonl", {"drop_tail": True}),
     ("files", {"drop_tail": True}), ("video", {"max_damaged": 1}), ("auto", {"concatenated": True})],
)  # fmt: skip
def test_what_a_format_does_not_have_is_refused(tmp_path, format, option):
    (tmp_path / "a.txt").write_bytes(b"neither of these")
    with pytest.raises(fb.InvalidArgumentError, match=next(iter(option))):
        fb.index(str(tmp_path), format=format, **option)


@pytest.mark.parametrize("inner, data", [("tar", tar(0)), ("tfrecord", tfrecord())], ids=["tar", "tfrecord"])
def test_compressed_archives_are_no_plain_files_but_by_name(tmp_path, inner, data):
    for n in range(3):
        (tmp_path / f"{n}.{inner}.gz").write_bytes(gzip.compress(data, mtime=0))
    with pytest.raises(fb.InvalidArgumentError, match=f"is {inner} .*compressed.*pack --unpack"):
        fb.index(str(tmp_path))
    with pytest.raises(fb.NotFoundError, match="0.*left out: gzip-compressed data.*unpack it"):
        fb.index(str(tmp_path), format=inner)
    assert fb.index(str(tmp_path), format="files")["objects"] == 3
    target = tmp_path / ".." / (tmp_path.name + "-packed")
    forebay("pack", tmp_path, target, "--to", inner, "--unpack", "--format", inner)
    assert len(samples(target)) == 3 * COUNT


def test_a_row_that_is_bad_names_its_shard_and_what_was_allowed(tmp_path):
    rows = b"".join(json.dumps({"n": n if n % 4 else "no number"}).encode() + b"\n" for n in range(COUNT))
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(rows, mtime=0))
    fb.index(str(tmp_path))

    def run(**more):
        with fb.Loader(fb.Records(str(tmp_path)), batch_size=2, shuffle=False, epochs=1,
                       ops=[fb.ops.parse_json(n="/n")], **more) as batches:  # fmt: skip
            return [batch["n"] for batch in batches]

    with pytest.raises(fb.ForebayError, match="sample 0") as caught:
        run()
    assert caught.value.uri.endswith("/a.jsonl.gz") and "replaced" not in str(caught.value)
    with pytest.raises(fb.ForebayError, match="1 samples have been replaced, as many as may be") as caught:
        run(on_bad_sample=fb.skip(max=1))
    assert caught.value.uri.endswith("/a.jsonl.gz")


@pytest.mark.parametrize("names, told", [
    (["train/a.jsonl", "test/a.jsonl"], "test, train: splits"),
    (["data/train-00000-of-00001.jsonl", "data/validation-00000-of-00001.jsonl"], "train, validation: shards of"),
    (["train/a.jsonl", "more/test.jsonl", "latest/b.jsonl"], None),
    (["train-0.jsonl", "train-1.jsonl", "trainer-2.jsonl", "test-set.jsonl"], None),
])  # fmt: skip
@pytest.mark.parametrize("format", ["auto", "files"])
def test_splits_that_come_as_one_are_told(tmp_path, names, told, format):
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(lines())
    warnings = fb.index(str(tmp_path), format=format)["warnings"]
    assert (warnings and warnings[0].startswith(told)) if told else not warnings
    if "train/a.jsonl" in names:
        assert not fb.index(str(tmp_path / "train"), format=format)["warnings"]


@pytest.mark.parametrize("format", ["parquet", "arrow"])
def test_columns_of_one_name_are_left_out_and_the_others_come(tmp_path, format):
    columns = [np.arange(COUNT), np.arange(COUNT) * 2, np.arange(COUNT) * 3]
    table = pa.Table.from_arrays([pa.array(column) for column in columns], names=["a", "b", "a"])
    if format == "parquet":
        pyarrow.parquet.write_table(table, tmp_path / "x.parquet")
    else:
        with pa.ipc.new_file(tmp_path / "x.arrow", table.schema) as writer:
            writer.write_table(table)
    report = fb.index(str(tmp_path))
    assert list(report["fields"]) == ["b"] and "2 columns are named 'a'" in report["warnings"][0]
    with fb.Loader(fb.Records(str(tmp_path)), batch_size=COUNT, shuffle=False, epochs=1) as batches:
        assert np.array_equal(next(iter(batches))["b"], columns[1])
    with pytest.raises(fb.InvalidArgumentError, match="no row has 'a'"):
        fb.Loader(fb.Records(str(tmp_path), columns=["a"]), batch_size=1)


def test_what_is_compressed_beside_lines_is_no_lines_for_that(tmp_path):
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(lines(), mtime=0))
    (tmp_path / "b.tar.gz").write_bytes(gzip.compress(tar(), mtime=0))
    report = fb.index(str(tmp_path))
    assert report["format"] == "compressed-jsonl" and report["records"] == COUNT
    assert [uri.rsplit("/")[-1] for uri in report["failures"]] == ["b.tar.gz"]
    assert "lines (jsonl) within" in list(report["failures"].values())[0]
    assert count(tmp_path) == COUNT


def test_what_is_left_out_is_told_where_it_is_no_data_at_all(tmp_path):
    (tmp_path / "a.tfrecord").write_bytes(tfrecord())
    (tmp_path / "b.tfrecord").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    (tmp_path / "c.tfrecord").write_text("<!DOCTYPE html><html>404</html>")
    (tmp_path / "README").write_text("words")
    warnings = fb.index(str(tmp_path), format="tfrecord")["warnings"]
    assert "README: no shard of this format, left out" in warnings
    assert any("b.tfrecord: " in text and "a Git LFS pointer" in text for text in warnings)
    assert any("c.tfrecord: " in text and "HTML page" in text for text in warnings)
