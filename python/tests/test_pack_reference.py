"""What `forebay pack` writes, the formats' own readers read: webdataset and tarfile, protobuf by the messages'
definitions, mosaicml-streaming's reader, and RecordIO as MXNet's documentation has it."""

import io
import json
import struct
import subprocess
import sys
import tarfile
import textwrap

import numpy as np
import pytest
import webdataset
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from PIL import Image

from test_pack import pack
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


def message(package, name, messages):
    """A class of messages: name -> [(field, number, type or other message, label)]."""
    file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
    for own, fields in messages.items():
        made = file.message_type.add(name=own)
        oneofs = {}
        for field, number, kind, label, *oneof in fields:
            one = made.field.add(name=field, number=number, label=label)
            if isinstance(kind, str):
                one.type, one.type_name = 11, f".{package}.{kind}"
            else:
                one.type = kind
            if label == 3 and kind in (1, 2, 3, 4, 5):
                one.options.packed = True
            if oneof:
                if oneof[0] not in oneofs:
                    oneofs[oneof[0]] = len(oneofs)
                    made.oneof_decl.add(name=oneof[0])
                one.oneof_index = oneofs[oneof[0]]
        for field, _, kind, *_ in fields:
            if isinstance(kind, str) and "." in kind:  # an entry of a map
                entry = made.nested_type.add(name=kind.split(".")[1])
                entry.options.map_entry = True
                value = next(v for v in messages if v in ("Feature", "Value"))
                entry.field.add(name="key", number=1, label=1, type=9)
                entry.field.add(name="value", number=2, label=1, type=11, type_name=f".{package}.{value}")
                break
    for made in file.message_type:  # both maps of a Record have entries of their own
        for field in made.field:
            wanted = field.type_name.split(".")[-1]
            if wanted.endswith("Entry") and wanted not in [n.name for n in made.nested_type]:
                made.nested_type.add().CopyFrom(made.nested_type[0])
                made.nested_type[-1].name = wanted
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    find = getattr(message_factory, "GetMessageClass", None)
    described = pool.FindMessageTypeByName(f"{package}.{name}")
    return find(described) if find else message_factory.MessageFactory(pool).GetPrototype(described)


EXAMPLE = message("tensorflow_", "Example", {
    "BytesList": [("value", 1, 12, 3)],
    "FloatList": [("value", 1, 2, 3)],
    "Int64List": [("value", 1, 3, 3)],
    "Feature": [("bytes_list", 1, "BytesList", 1, "kind"), ("float_list", 2, "FloatList", 1, "kind"),
                ("int64_list", 3, "Int64List", 1, "kind")],
    "Features": [("feature", 1, "Features.FeatureEntry", 3)],
    "Example": [("features", 1, "Features", 1)],
})  # fmt: skip
RECORD = message("aialgs_", "Record", {
    "Float32Tensor": [("values", 1, 2, 3), ("keys", 2, 4, 3), ("shape", 3, 4, 3)],
    "Float64Tensor": [("values", 1, 1, 3), ("keys", 2, 4, 3), ("shape", 3, 4, 3)],
    "Int32Tensor": [("values", 1, 5, 3), ("keys", 2, 4, 3), ("shape", 3, 4, 3)],
    "Bytes": [("value", 1, 12, 3), ("content_type", 2, 9, 1)],
    "Value": [("float32_tensor", 2, "Float32Tensor", 1, "value"),
              ("float64_tensor", 3, "Float64Tensor", 1, "value"),
              ("int32_tensor", 7, "Int32Tensor", 1, "value"), ("bytes", 9, "Bytes", 1, "value")],
    "Record": [("features", 1, "Record.FeaturesEntry", 3), ("label", 2, "Record.LabelEntry", 3),
               ("uid", 3, 9, 1), ("metadata", 4, 9, 1), ("configuration", 5, 9, 1)],
})  # fmt: skip


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


def test_records_of_sagemaker_are_those_that_protobuf_reads(samples, source, tmp_path):
    pack(source, tmp_path, "--to", "recordio-protobuf", "--shard-size", "2KB",
         "--column", "text=txt", "--column", "label=cls:int", "--column", "bin")  # fmt: skip
    keys = iter(samples)
    for path in shards(tmp_path, ".pbr"):
        data = path.read_bytes()
        for payload in recordio(data, b"").values():
            record, key = RECORD.FromString(payload), next(keys)
            assert record.uid == key and set(record.features) == {"text", "bin"}
            assert record.features["text"].bytes.value[0] == samples[key]["txt"]
            assert list(record.label["values"].int32_tensor.values) == [int(samples[key]["cls"])]
    assert next(keys, None) is None


def test_rows_of_numpy_and_csv_become_tensors(tmp_path):
    table = np.random.default_rng(1).normal(size=(200, 5)).astype(np.float32)
    table[:, 2] = np.arange(200)
    for name, folder in (("npy", tmp_path / "npy"), ("csv", tmp_path / "csv")):
        folder.mkdir()
        for part in range(2):
            rows = table[part * 100 : part * 100 + 100]
            if name == "npy":
                np.save(folder / f"{part}.npy", rows)
            else:
                text = "\n".join(",".join(repr(float(x)) for x in row) for row in rows)
                (folder / f"{part}.csv").write_text("a,b,c,d,e\n" + text + "\n")
        out = tmp_path / f"{name}-out"
        pack(folder, out, "--to", "recordio-protobuf", "--label-column", "2", "--shard-size", "5KB")
        got = [RECORD.FromString(payload) for path in shards(out, ".pbr")
               for payload in recordio(path.read_bytes(), b"").values()]  # fmt: skip
        assert [list(record.label["values"].float32_tensor.values) for record in got] == [[n] for n in range(200)]
        rows = np.float32([record.features["values"].float32_tensor.values for record in got])
        np.testing.assert_array_equal(rows, np.delete(table, 2, axis=1))


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
