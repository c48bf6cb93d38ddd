"""What `forebay pack` writes, the formats' own readers read: webdataset and tarfile, protobuf by the messages'
definitions, mosaicml-streaming's reader, and RecordIO as MXNet's documentation has it."""

import importlib
import io
import json
import os
import struct
import subprocess
import sys
import tarfile
import textwrap
import types

import numpy as np
import pytest
import webdataset
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from PIL import Image
from pyarrow import parquet

import forebay as fb
from test_pack import forebay, pack
from test_record_formats import masked

NAMES = [f"{'ab'[n % 2]}/{n:03}" for n in range(50)]
MAGIC = struct.pack("<I", 0xCED7230A)


def picture(number, kind):
    out = io.BytesIO()
    pixels = np.random.default_rng(number).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(out, kind)
    return out.getvalue()


def fields_of(number):
    return {
        "jpg": picture(number, "JPEG"),
        "seg.png": picture(number, "PNG"),
        "cls": b"%d" % (number % 7),
        "txt": ("ü %d" % number).encode(),
        "json": json.dumps({"n": number}).encode(),
        # One that ends a RecordIO part, where it is aligned.
        "bin": b"abcd" + MAGIC + b"%d" % number,
    }


@pytest.fixture(scope="module")
def samples():
    """Key -> field -> bytes, in the order that they are packed in."""
    return {name: fields_of(number) for number, name in sorted(enumerate(NAMES), key=lambda x: x[1])}


@pytest.fixture(scope="module")
def source(samples, tmp_path_factory):
    root = tmp_path_factory.mktemp("source")
    for key, fields in samples.items():
        for name, data in fields.items():
            (root / key).parent.mkdir(exist_ok=True)
            (root / f"{key}.{name}").write_bytes(data)
    return root


def shards(folder, ending):
    found = sorted(path for path in folder.iterdir() if path.name.endswith(ending))
    assert len(found) > 2
    return found


def test_webdataset_and_tarfile_read_the_tar_shards(samples, source, tmp_path):
    pack(source, tmp_path, "--to", "tar", "--shard-size", "100KB")
    got = {}
    for path in shards(tmp_path, ".tar"):
        for sample in webdataset.WebDataset(str(path), shardshuffle=False, empty_check=False):
            got[sample["__key__"]] = {k: v for k, v in sample.items() if not k.startswith("__")}
        with tarfile.open(path) as tar:
            for member in tar:
                assert not member.pax_headers and member.mtime == 0 and member.uid == 0 and member.isreg()
    assert got == samples and list(got) == list(samples)


def test_names_too_long_for_ustar_are_read_too(tmp_path):
    name = "d" * 90 + "/" + "e" * 90 + "/" + "n" * 150
    (tmp_path / "s" / name).parent.mkdir(parents=True)
    (tmp_path / "s" / f"{name}.txt").write_text("x")
    pack(tmp_path / "s", tmp_path / "o", "--to", "tar")
    sample = next(iter(webdataset.WebDataset(str(tmp_path / "o/shard-000000.tar"), shardshuffle=False)))
    assert sample["__key__"] == name and sample["txt"] == b"x"


def example_class():
    """tensorflow.Example by its definition."""
    file = descriptor_pb2.FileDescriptorProto(name="example_.proto", package="tensorflow_", syntax="proto3")
    kinds = {"bytes_list": ("BytesList", 12), "float_list": ("FloatList", 2), "int64_list": ("Int64List", 3)}
    feature = descriptor_pb2.DescriptorProto(name="Feature")
    feature.oneof_decl.add(name="kind")
    for number, (field, (kind, of)) in enumerate(kinds.items(), 1):
        made = file.message_type.add(name=kind).field.add(name="value", number=1, label=3, type=of)
        if of != 12:
            made.options.packed = True
        feature.field.add(name=field, number=number, label=1, type=11, type_name=f".tensorflow_.{kind}",
                          oneof_index=0)  # fmt: skip
    file.message_type.add().CopyFrom(feature)
    features = file.message_type.add(name="Features")
    entry = features.nested_type.add(name="FeatureEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, label=1, type=9)
    entry.field.add(name="value", number=2, label=1, type=11, type_name=".tensorflow_.Feature")
    features.field.add(name="feature", number=1, label=3, type=11, type_name=".tensorflow_.Features.FeatureEntry")
    file.message_type.add(name="Example").field.add(
        name="features", number=1, label=1, type=11, type_name=".tensorflow_.Features")  # fmt: skip
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    described = pool.FindMessageTypeByName("tensorflow_.Example")
    find = getattr(message_factory, "GetMessageClass", None)
    return find(described) if find else message_factory.MessageFactory(pool).GetPrototype(described)


EXAMPLE = example_class()


@pytest.fixture(scope="module")
def sagemaker():
    """SageMaker's own reader and writer of records, without the rest of its package and what that needs."""
    root = next(p for p in sys.path if os.path.isdir(os.path.join(p, "sagemaker", "amazon")))
    with pytest.MonkeyPatch.context() as patch:
        for name in ("sagemaker", "sagemaker.amazon", "sagemaker.utils"):
            module = types.ModuleType(name)
            module.__path__, module.DeferredError = [os.path.join(root, *name.split("."))], Exception
            patch.setitem(sys.modules, name, module)
        yield importlib.import_module("sagemaker.serializer_utils")
        sys.modules.pop("sagemaker.serializer_utils")


def tfrecords(data):
    at = 0
    while at < len(data):
        head = data[at : at + 8]
        (length,) = struct.unpack("<Q", head)
        payload = data[at + 12 : at + 12 + length]
        assert struct.unpack_from("<I", data, at + 8) == (masked(head),)
        assert struct.unpack_from("<I", data, at + 12 + length) == (masked(payload),)
        yield payload
        at += 16 + length


def recordio(data, between):
    """Records as offset -> payload; `between`: what goes between the parts of one."""
    records, at, parts = {}, 0, []
    while at < len(data):
        magic, word = struct.unpack_from("<4sI", data, at)
        flag, length = word >> 29, word & 0x1FFFFFFF
        assert magic == MAGIC and (flag in (0, 1)) == (not parts)
        if not parts:
            begin = at
        parts.append(data[at + 8 : at + 8 + length])
        at += 8 + length + -length % 4
        if flag in (0, 3):
            records[begin], parts = between.join(parts), []
    assert not parts and at == len(data)
    return records


def test_examples_are_those_that_protobuf_reads(samples, source, tmp_path):
    pack(source, tmp_path, "--to", "tfrecord", "--shard-size", "20KB")
    got = {}
    for path in shards(tmp_path, ".tfrecord"):
        for payload in tfrecords(path.read_bytes()):
            features = EXAMPLE.FromString(payload).features.feature
            fields = {name: feature.bytes_list.value[0] for name, feature in features.items()
                      if name != "cls"}  # fmt: skip
            fields["cls"] = b"%d" % features["cls"].int64_list.value[0]
            got[fields.pop("__key__").decode()] = fields
    assert got == samples and list(got) == list(samples)


def test_records_of_one_field_are_as_mxnet_reads_them(samples, source, tmp_path):
    pack(source, tmp_path, "--to", "recordio", "--shard-size", "1KB", "--column", "bin")
    got = [r for path in shards(tmp_path, ".rec") for r in recordio(path.read_bytes(), MAGIC).values()]
    assert got == [fields["bin"] for fields in samples.values()]


def test_image_records_are_as_mxnet_reads_them(samples, source, tmp_path):
    pack(source, tmp_path, "--to", "recordio-image", "--shard-size", "1KB",
         "--column", "image=bin", "--column", "label=cls")  # fmt: skip
    number = 0
    for path in shards(tmp_path, ".rec"):
        records = recordio(path.read_bytes(), MAGIC)
        index = dict(map(int, line.split("\t")) for line in path.with_suffix(".idx").read_text().splitlines())
        assert list(index.values()) == list(records)
        for offset, payload in records.items():
            flag, label, key, _ = struct.unpack_from("<IfQQ", payload)
            fields = samples[list(samples)[number]]
            assert (flag, label, key) == (0, float(fields["cls"]), number) and index[key] == offset
            assert payload[24:] == fields["bin"]
            number += 1
    assert number == len(samples)


def test_sagemaker_reads_records_of_fields(samples, source, sagemaker, tmp_path):
    pack(source, tmp_path, "--to", "recordio-protobuf", "--shard-size", "2KB",
         "--column", "text=txt", "--column", "label=cls:int", "--column", "bin")  # fmt: skip
    keys = iter(samples)
    for path in shards(tmp_path, ".pbr"):
        for record in sagemaker.read_records(io.BytesIO(path.read_bytes())):
            key = next(keys)
            assert record.uid == key and set(record.features) == {"text", "bin"}
            assert record.features["text"].bytes.value[0] == samples[key]["txt"]
            # What it does not know: its reader takes parts of a record for records.
            assert record.features["bin"].bytes.value[0] == samples[key]["bin"]
            assert list(record.label["values"].int32_tensor.values) == [int(samples[key]["cls"])]
    assert next(keys, None) is None


def table():
    rows = np.random.default_rng(1).normal(size=(200, 5)).astype(np.float32)
    rows[:, 2] = np.arange(200)
    return rows


def whole(folder, ending=".pbr"):
    return b"".join(path.read_bytes() for path in shards(folder, ending))


@pytest.mark.parametrize("kind", ["npy", "csv", "csv-no-header"])
def test_rows_are_written_as_sagemaker_writes_them(sagemaker, tmp_path, kind):
    """The same bytes as from its own write_numpy_to_dense_tensor."""
    source = tmp_path / "source"
    source.mkdir()
    for part in range(2):
        rows = table()[part * 100 : part * 100 + 100]
        if kind == "npy":
            np.save(source / f"{part}.npy", rows)
        else:
            text = "\n".join(",".join(repr(float(x)) for x in row) for row in rows)
            (source / f"{part}.csv").write_text(("a,b,c,d,e\n" if kind == "csv" else "") + text + "\n")
    pack(source, tmp_path / "o", "--to", "recordio-protobuf", "--format", kind, "--label-column", "2",
         "--shard-size", "5KB")  # fmt: skip
    expected = io.BytesIO()
    sagemaker.write_numpy_to_dense_tensor(expected, np.delete(table(), 2, axis=1), table()[:, 2])
    assert whole(tmp_path / "o") == expected.getvalue()


def test_a_first_line_of_numbers_is_told_where_names_are_expected(tmp_path):
    (tmp_path / "a.csv").write_text("1,2\n3,4\n")
    ran = forebay("pack", tmp_path, tmp_path.with_suffix(".out"), "--to", "recordio-protobuf", "--json")
    assert json.loads(ran.stdout)["samples"] == 1 and "csv-no-header" in ran.stderr


@pytest.mark.parametrize("compressed", [False, True])
def test_arrays_of_npz_become_rows(sagemaker, tmp_path, compressed):
    source = tmp_path / "source"
    source.mkdir()
    save = np.savez_compressed if compressed else np.savez
    rows = table()
    for part in range(4):
        mine = slice(part * 50, part * 50 + 50)
        save(source / f"{part}.npz", x=np.delete(rows, 2, axis=1)[mine], y=rows[mine, 2])
    report = pack(source, tmp_path / "o", "--to", "recordio-protobuf", "--shard-size", "1KB")
    assert report["samples"] == 4 == report["shards"]
    expected = io.BytesIO()
    sagemaker.write_numpy_to_dense_tensor(expected, np.delete(rows, 2, axis=1), rows[:, 2])
    assert whole(tmp_path / "o") == expected.getvalue()
    assert fb.index(str(tmp_path / "o"), format="recordio-protobuf")["records"] == 200


def sparse_rows():
    draw = np.random.default_rng(4)
    rows = []
    for _ in range(60):
        keys = np.sort(draw.choice(1000, size=draw.integers(0, 9), replace=False))
        rows.append((keys, draw.normal(size=len(keys)).astype(np.float32)))
    return rows


def pack_sparse_rows(rows, kind, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    for part in range(3):
        mine = rows[part * 20 : part * 20 + 20]
        labels = np.arange(part * 20, part * 20 + 20, dtype=np.float32)
        if kind == "csr":  # as scipy.sparse.save_npz writes it, and labels
            np.savez_compressed(source / f"{part}.npz", format=b"csr", shape=np.array([20, 1000]),
                                data=np.concatenate([values for _, values in mine]),
                                indices=np.concatenate([keys for keys, _ in mine]).astype(np.int32),
                                indptr=np.cumsum([0] + [len(k) for k, _ in mine]).astype(np.int32),
                                labels=labels)  # fmt: skip
        else:
            lines = [f"{label} " + " ".join(f"{k + 1}:{float(v)!r}" for k, v in zip(*row))
                     for label, row in zip(labels, mine)]  # fmt: skip
            (source / f"{part}.txt").write_text("\n".join(lines) + "\n")
    pack(source, tmp_path / "o", "--to", "recordio-protobuf", "--shard-size", "1KB", "--format",
         "npz" if kind == "csr" else "libsvm", "--sparse-columns", "1000")  # fmt: skip


@pytest.mark.parametrize("kind", ["csr", "libsvm"])
def test_sparse_rows_are_read_by_sagemaker(sagemaker, tmp_path, kind):
    rows = sparse_rows()
    pack_sparse_rows(rows, kind, tmp_path)
    got = sagemaker.read_records(io.BytesIO(whole(tmp_path / "o")))
    assert len(got) == len(rows)
    for number, (record, (keys, values)) in enumerate(zip(got, rows)):
        tensor = record.features["values"].float32_tensor
        assert list(tensor.keys) == keys.tolist() and list(tensor.shape) == [1000]
        np.testing.assert_array_equal(np.float32(tensor.values), values)
        assert list(record.label["values"].float32_tensor.values) == [number]


def batches_of(folder, op, **more):
    """A catalog of RecordIO-protobuf shards, in order, through one op."""
    fb.index(str(folder), format="recordio-protobuf")
    loader = fb.Loader(fb.Records(str(folder)), batch_size=20, epochs=1, ops=[op], shuffle=False, **more)
    with loader as batches:
        return [{name: np.array(array) for name, array in batch.items()} for batch in batches]


def test_dense_records_that_sagemaker_wrote_come_as_arrays(sagemaker, tmp_path):
    features, labels = np.delete(table(), 2, axis=1), table()[:, 2]
    with open(tmp_path / "a.pbr", "wb") as file:
        sagemaker.write_numpy_to_dense_tensor(file, features, labels)
    wanted = {"values": "float32"}
    for shape in [4, (2, 2)]:
        got = batches_of(tmp_path, fb.ops.parse_record({"values": ("float32", shape)}, wanted))
        np.testing.assert_array_equal(
            np.concatenate([b["values"] for b in got]).reshape(200, 4), features
        )
        np.testing.assert_array_equal(np.concatenate([b["label"] for b in got]), labels)
    got = batches_of(tmp_path, fb.ops.parse_record({"values": ("float32", None)}))
    np.testing.assert_array_equal(np.concatenate([b["values"] for b in got]).reshape(200, 4), features)
    assert (got[0]["values_offsets"] == np.arange(21) * 4).all()
    got = batches_of(tmp_path, fb.ops.parse_record({"values": fb.ops.sparse(size=4)}))
    assert (got[0]["values_indices"] == np.arange(80) % 4).all()
    for op, text in [
        (fb.ops.parse_record({"values": ("float32", 5)}), "it has 4 values, and 5 are wanted"),
        (fb.ops.parse_record({"values": ("float64", 4)}), "it holds float32, not float64"),
        (fb.ops.parse_record({"more": ("float32", 4)}), "there is no feature 'more'"),
        (fb.ops.parse_record(labels={"values": ("float32", 2)}), "label 'values'.* 1 values, and 2"),
        (fb.ops.parse_record({"values": fb.ops.sparse(size=3)}), "of 4 numbers, and 3 are wanted"),
    ]:
        with pytest.raises(fb.DataLossError, match=text):
            batches_of(tmp_path, op)


def test_sparse_records_come_as_values_and_places(tmp_path):
    rows = sparse_rows()
    pack_sparse_rows(rows, "csr", tmp_path)
    folder = tmp_path / "o"
    op = fb.ops.parse_record({"values": fb.ops.sparse(size=1000)}, {"values": "float32"})
    for number, batch in enumerate(batches_of(folder, op)):
        mine = rows[number * 20 : number * 20 + 20]
        begins = np.cumsum([0] + [len(keys) for keys, _ in mine])
        np.testing.assert_array_equal(batch["values"], np.concatenate([v for _, v in mine]))
        np.testing.assert_array_equal(batch["values_indices"], np.concatenate([k for k, _ in mine]))
        np.testing.assert_array_equal(batch["values_indices_offsets"], begins)
        np.testing.assert_array_equal(batch["values_offsets"], begins)
        np.testing.assert_array_equal(batch["label"], batch["_sample"])
    expected = np.zeros((len(rows), 1000), np.float32)
    for row, (keys, values) in zip(expected, rows):
        row[keys] = values
    dense = batches_of(folder, fb.ops.parse_record({"values": ("float32", 1000)}))
    np.testing.assert_array_equal(np.concatenate([b["values"] for b in dense]), expected)
    with pytest.raises(fb.DataLossError, match="it is sparse: ask for it as sparse"):
        batches_of(folder, fb.ops.parse_record({"values": ("float32", None)}))


def test_bytes_of_records_are_fields_for_later_ops(samples, source, tmp_path):
    pack(source, tmp_path, "--to", "recordio-protobuf", "--column", "jpg", "--column", "bin",
         "--column", "label=cls:int")  # fmt: skip
    ops = [
        fb.ops.parse_record({"jpg": "bytes"}, {"values": "int32"}),
        fb.ops.decode_image("jpg"),
        fb.ops.resize((8, 8)),
    ]
    fb.index(str(tmp_path), format="recordio-protobuf")
    keys = list(samples)
    with fb.Loader(fb.Records(str(tmp_path)), batch_size=10, epochs=1, ops=ops) as batches:
        for batch in batches:
            for row, number in enumerate(batch["_sample"]):
                fields = samples[keys[number]]
                pixels = np.asarray(Image.open(io.BytesIO(fields["jpg"])).convert("RGB"))
                np.testing.assert_array_equal(batch["jpg"][row], pixels)
                assert batch["label"][row] == int(fields["cls"])


def test_what_is_wrong_with_rows_is_told_with_the_sample(tmp_path):
    source = tmp_path / "source"
    source.mkdir()

    def fails(data, *options):
        for path in source.iterdir():
            path.unlink()
        for name, content in data.items():
            if isinstance(content, dict):
                np.savez(source / name, **content)
            else:
                (source / name).write_text(content)
        return pack(source, tmp_path / "o", "--to", "recordio-protobuf", *options, code=252)

    assert "sample 1" in (error := fails({"a.csv": "a,b\n1,2\n3,x\n"})) and "'x' is no float32" in error
    libsvm = ["--format", "libsvm"]
    assert "--sparse-columns" in fails({"a.txt": "1 3:4\n"}, *libsvm)
    libsvm += ["--sparse-columns", "3"]
    assert "feature 4" in fails({"a.txt": "1 3:4\n2 4:1\n"}, *libsvm)
    assert "feature 0" in fails({"a.txt": "1 0:4\n"}, *libsvm)
    assert "feature 2" in fails({"a.txt": "1 2:4 2:5\n"}, *libsvm)
    assert "a label, then" in fails({"a.txt": "1:2 2:4\n"}, *libsvm)
    csr = {"data": np.ones(2, np.float32), "indices": np.array([0, 5]), "indptr": np.array([0, 2]),
           "shape": np.array([1, 5])}  # fmt: skip
    assert "index 5 in a matrix of 5 columns" in fails({"a.npz": csr})
    assert "do not fit" in fails({"a.npz": {**csr, "indptr": np.array([0, 3])}})
    assert "compressed rows" in fails({"a.npz": {**csr, "format": b"csc"}})
    assert "2 rows" in fails({"a.npz": {"x": np.ones((2, 3)), "y": np.ones(3)}})


STREAMING = """
    import importlib.abc, importlib.machinery, json, os, sys, types
    from unittest import mock

    # Its packages bring in training and cloud clients, which reading a shard does not use.
    ABSENT = "boto3 brotli filelock snappy torch tqdm xxhash zstd".split()

    class Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
        def find_spec(self, name, path=None, target=None):
            if name.split(".")[0] in ABSENT:
                return importlib.machinery.ModuleSpec(name, self, is_package=True)
        def create_module(self, spec):
            module = mock.MagicMock(name=spec.name)
            module.__spec__, module.__path__, module.__name__ = spec, [], spec.name
            return module
        def exec_module(self, module):
            pass

    sys.meta_path.insert(0, Absent())
    root = next(p for p in sys.path if os.path.isdir(os.path.join(p, "streaming", "base")))
    for name in ("streaming", "streaming.base"):
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__path__ = [os.path.join(root, *name.split("."))]
    from streaming.base.format import reader_from_json

    folder = sys.argv[1]
    with open(os.path.join(folder, "index.json")) as file:
        index = json.load(file)
    for shard in index["shards"]:
        reader = reader_from_json(folder, None, shard)
        for number in range(reader.size):
            sample = reader.decode_sample(reader.get_sample_data(number))
            values = {name: value.tobytes().hex() if hasattr(value, "tobytes") else value.hex()
                      if isinstance(value, bytes) else value for name, value in sample.items()}
            values["cls is"] = type(sample["cls"]).__name__
            print(json.dumps(values))
"""


def test_streaming_reads_the_mds_shards(samples, source, tmp_path):
    pack(source, tmp_path / "o", "--to", "mds", "--shard-size", "20KB")
    program = tmp_path / "read.py"
    program.write_text(textwrap.dedent(STREAMING))
    ran = subprocess.run([sys.executable, program, tmp_path / "o"], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    got = [json.loads(line) for line in ran.stdout.splitlines()]
    assert len(shards(tmp_path / "o", ".mds")) > 2 and len(got) == len(samples)
    for sample, (key, fields) in zip(got, samples.items()):
        pixels = {name: np.asarray(Image.open(io.BytesIO(fields[name]))).tobytes().hex()
                  for name in ("jpg", "seg.png")}  # fmt: skip
        assert sample == {"__key__": key, "cls": int(fields["cls"]), "cls is": "int", "bin": fields["bin"].hex(),
                          "json": json.loads(fields["json"]), "txt": fields["txt"].decode(), **pixels}  # fmt: skip


def test_pyarrow_reads_the_parquet_shards(samples, source, tmp_path):
    pack(source, tmp_path, "--to", "parquet", "--shard-size", "20KB")
    rows = []
    for path in shards(tmp_path, ".parquet"):
        file = parquet.ParquetFile(path, page_checksum_verification=True)
        assert file.metadata.created_by.startswith("forebay ") and file.metadata.row_group(0).column(0).has_offset_index
        rows += file.read().to_pylist()
    assert {name: str(kind) for name, kind in zip(file.schema_arrow.names, file.schema_arrow.types)} == {
        "jpg": "binary", "seg.png": "binary", "bin": "binary", "cls": "int64", "txt": "string", "json": "string",
        "__key__": "string",
    }  # fmt: skip
    chunks = file.metadata.row_group(0)
    codecs = {chunks.column(i).path_in_schema: chunks.column(i).compression for i in range(chunks.num_columns)}
    assert codecs["jpg"] == codecs["seg.png"] == "UNCOMPRESSED" and codecs["txt"] == codecs["bin"] == "ZSTD"
    assert [row.pop("__key__") for row in rows] == list(samples)
    for row, fields in zip(rows, samples.values()):
        text = {name: fields[name].decode() for name in ("txt", "json")}
        assert row == {**fields, **text, "cls": int(fields["cls"])}


ARROW_TYPES = {"bool": "bool", "uint8": "uint8", "int32": "int32", "int64": "int64", "float16": "halffloat",
               "float32": "float", "float64": "double"}  # fmt: skip


@pytest.mark.parametrize("kind", ARROW_TYPES)
@pytest.mark.parametrize("shape", [(40,), (40, 7)])
def test_parquet_has_numbers_of_arrays_and_lists_of_them(tmp_path, kind, shape):
    source = tmp_path / "source"
    source.mkdir()
    values = np.random.default_rng(4).integers(0, 2, shape).astype(kind)
    np.save(source / "rows.npy", values)
    assert pack(source, tmp_path / "out", "--to", "parquet", "--format", "npy")["samples"] == 40
    file = parquet.ParquetFile(tmp_path / "out" / "shard-000000.parquet")
    (field,) = file.schema_arrow
    got = file.read()[field.name].combine_chunks()
    assert (np.array(got.to_pylist(), values.dtype) == values).all() and not field.nullable
    assert str(got.type.value_type if values.ndim > 1 else got.type) == ARROW_TYPES[kind]
    batch = next(iter(fb.Loader(fb.Records(str(tmp_path / "out")), batch_size=40, shuffle=False)))
    (name,) = (name for name in batch if not name.startswith("_") and not name.endswith("offsets"))
    assert (batch[name] == values.ravel()).all() and batch[name].dtype == values.dtype


def test_parquet_has_numbers_of_every_type_that_text_becomes(tmp_path):
    kinds = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"]
    (tmp_path / "source").mkdir()
    for number in range(5):
        (tmp_path / "source" / f"{number}.n").write_text(f"{number + 100}")
    pack(tmp_path / "source", tmp_path / "out", "--to", "parquet",
         *[word for kind in kinds for word in ("--column", f"{kind}=n:{kind}")])  # fmt: skip
    table = parquet.read_table(tmp_path / "out" / "shard-000000.parquet")
    assert [str(table.schema.field(kind).type) for kind in kinds] == [*kinds[:8], "float", "double"]
    assert all(table[kind].to_pylist() == [100, 101, 102, 103, 104] for kind in kinds)


def test_a_shard_of_parquet_has_row_groups_of_16_mib_and_pages_of_one(tmp_path):
    values = np.random.default_rng(4).integers(0, 256, (40, 1_000_000), np.uint8)
    (tmp_path / "source").mkdir()
    np.save(tmp_path / "source" / "rows.npy", values)
    pack(tmp_path / "source", tmp_path / "out", "--to", "parquet", "--format", "npy", "--shard-size", "1GB")
    file = parquet.ParquetFile(tmp_path / "out" / "shard-000000.parquet")
    assert [file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups)] == [16, 16, 8]
    assert (file.read().column(0).combine_chunks().flatten().to_numpy() == values.ravel()).all()


def test_what_parquet_cannot_hold_is_refused_with_the_sample(tmp_path):
    def refused(files, *options):
        for name, data in files.items():
            (tmp_path / name).write_bytes(data)
        out = tmp_path.with_suffix(".out")
        said = forebay("pack", tmp_path, out, "--to", "parquet", *options, code=252).stderr
        for name in files:
            (tmp_path / name).unlink()
        assert not list(out.glob("*.parquet")), said
        return said

    said = refused({"a.txt": b"fine", "b.txt": b"\xff"})
    assert "sample 1 'b'" in said and "column 'txt'" in said and "UTF-8" in said
    array = io.BytesIO()
    np.save(array, np.zeros((2, 3, 4)))
    assert "2 dimensions" in refused({"a.npy": array.getvalue()}, "--format", "npy")
    assert "other columns" in refused({"a.x": b"1", "b.x": b"1", "b.y": b"2"})
    (tmp_path / "b.txt").write_bytes(b"\xff")
    pack(tmp_path, tmp_path.with_suffix(".bytes"), "--to", "parquet", "--column", "txt:bytes")
