#!/usr/bin/env python3
"""Scans against the formats' own readers: the same records, or a case of the table in docs/formats.

format_reference_test.py DRIVER     DRIVER is the program of format_driver.cc

Every corpus is also cut at each structural boundary and a byte beside it, and has bytes changed: what
the scan then accepts, the reference must read alike or refuse.
"""

import csv
import io
import json
import random
import struct
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zlib
from pathlib import Path

import numpy as np
from webdataset import tariterators

DRIVER = sys.argv.pop(1) if len(sys.argv) > 1 else ""
MAGIC = struct.pack("<I", 0xCED7230A)


class Driver:
    """One process that answers all requests of a test."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.process = subprocess.Popen([DRIVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def close(self):
        self.process.communicate(timeout=30)
        self.folder.cleanup()

    def scan(self, data, kind, **options):
        path = Path(self.folder.name) / "shard"
        path.write_bytes(data)
        request = {"format": kind, "file": str(path), "options": options}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        for record in answer["records"]:
            record["key"] = bytes.fromhex(record["key"])
            record["payload"] = bytes.fromhex(record["payload"])
            for field in record["fields"]:
                field["name"] = bytes.fromhex(field["name"])
        answer["error"] = bytes.fromhex(answer["error"]).decode()
        return answer


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


class Comparison(unittest.TestCase):
    def setUp(self):
        self.driver = Driver()
        self.addCleanup(self.driver.close)

    def compare(self, data, kind, reference, whole, **options):
        """Accepted means read as the reference does; a corpus that is whole must be accepted."""
        ours = self.driver.scan(data, kind, **options)
        try:
            expected = reference(data)
        except Exception as error:  # whatever a reader raises is a refusal
            if whole:
                raise
            expected = error
        if ours["code"] == "ok" and not isinstance(expected, Exception):
            self.assertEqual(self.texts(data, ours), expected)
        elif whole:
            self.fail(f"{ours['code']} {ours['error']}: the reference gives {expected}")
        return ours

    def texts(self, data, answer):
        return [record["payload"] for record in answer["records"]]

    def damage(self, data, kind, reference, boundaries, seed, **options):
        """How many of the damaged files are accepted."""
        accepted = 0
        cuts = {b + d for b in boundaries for d in (-1, 0, 1) if 0 <= b + d < len(data)}
        for size in sorted(cuts):
            accepted += self.compare(data[:size], kind, reference, False, **options)["code"] == "ok"
        chance = random.Random(seed)
        for _ in range(60):
            changed = bytearray(data)
            changed[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            accepted += self.compare(bytes(changed), kind, reference, False, **options)["code"] == "ok"
        return accepted


NAMES = ["a/0.jpg", "a/0.cls", "dir.v1/0.1.jpg", "22.05.png", ".hidden.jpg", "d/.hidden.jpg", "noext",
         "d.v1/noext", "A.JPG", "x.", "./x.jpg", "../up.jpg", "/abs/x.jpg", "__notes__", "__n__/a.jpg",
         "ü/ß.jpg", "n" * 120 + "/" + "m" * 90 + ".jpg", "a b.tar.gz", "l/" + "k" * 300 + ".json"]  # fmt: skip


def write_tar(seed, kind):
    chance = random.Random(seed)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=kind) as archive:
        for number in range(12):
            name = chance.choice(NAMES) if chance.random() < 0.7 else f"s/{number // 2:03}.{number % 2}"
            info = tarfile.TarInfo(name)
            info.type = chance.choice([tarfile.REGTYPE] * 8 + [tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.AREGTYPE])
            info.mtime = chance.choice([0, 1.5]) if kind == tarfile.PAX_FORMAT else 0
            data = chance.randbytes(chance.choice([0, 1, 511, 512, 513, 3000])) if info.isreg() else b""
            info.size = len(data)
            info.linkname = "target" if info.type == tarfile.SYMTYPE else ""
            try:
                archive.addfile(info, io.BytesIO(data))
            except ValueError:  # too long for ustar
                continue
    return out.getvalue()


def read_webdataset(data):
    members = tariterators.tar_file_iterator(io.BytesIO(data))
    samples = tariterators.group_by_keys({**member, "__url__": ""} for member in members)
    encode = lambda text: text.encode("utf-8", "surrogateescape")  # noqa: E731
    return [
        [encode(sample["__key__"]), {encode(k): v for k, v in sample.items() if not k.startswith("__")}]
        for sample in samples
    ]


class TarTest(Comparison):
    def texts(self, data, answer):
        return [
            [record["key"], {f["name"]: data[slice(*f["range"])] for f in record["fields"]}]
            for record in answer["records"]
        ]

    def test_samples_are_those_of_webdataset(self):
        samples = refused = 0
        for seed in range(60):
            kind = (tarfile.USTAR_FORMAT, tarfile.PAX_FORMAT, tarfile.GNU_FORMAT)[seed % 3]
            data = write_tar(seed, kind)
            try:
                samples += len(read_webdataset(data))
            except ValueError:  # an extension twice in a sample
                self.assertEqual(self.driver.scan(data, "tar")["code"], "data_loss")
                refused += 1
                continue
            ours = self.compare(data, "tar", read_webdataset, True)
            self.assertEqual(ours["kind"], "tar")
        self.assertGreater(samples, 200)
        self.assertLess(refused, 20)

    def test_damaged_files_are_refused_or_read_alike(self):
        for seed in range(6):
            kind = (tarfile.USTAR_FORMAT, tarfile.PAX_FORMAT, tarfile.GNU_FORMAT)[seed % 3]
            data = write_tar(seed, kind)
            self.assertGreater(self.damage(data, "tar", read_webdataset, range(0, len(data), 512), seed), 10)


def read_tfrecords(data):
    records = []
    at = 0
    while at < len(data):
        header = data[at : at + 12]
        if len(header) < 12 or masked(header[:8]) != header[8:]:
            raise ValueError("header")
        (size,) = struct.unpack("<Q", header[:8])
        body, crc = data[at + 12 : at + 12 + size], data[at + 12 + size : at + 16 + size]
        if len(crc) < 4 or masked(body) != crc:
            raise ValueError("data")
        records.append(body)
        at += 16 + size
    return records


class TfRecordTest(Comparison):
    def test_records_are_those_of_the_definition(self):
        chance = random.Random(1)
        bodies = [chance.randbytes(size) for size in (0, 1, 7, 500, 3000)]
        frames = [struct.pack("<Q", len(b)) + masked(struct.pack("<Q", len(b))) + b + masked(b) for b in bodies]
        data = b"".join(frames)
        ours = self.compare(data, "tfrecord", read_tfrecords, True)
        self.assertEqual(ours["kind"], "tfrecord")
        boundaries = np.cumsum([0] + [n for f in frames for n in (8, 4, len(f) - 16, 4)]).tolist()
        accepted = self.damage(data, "tfrecord", read_tfrecords, boundaries, 1)
        self.assertEqual(accepted, len(frames))  # cut between records, and nothing else


def write_recordio(payload):
    """As dmlc's writer: cut at each magic number at a multiple of four."""
    parts, start = [], 0
    for at in range(0, len(payload) - 3, 4):
        if payload[at : at + 4] == MAGIC:
            parts.append(payload[start:at])
            start = at + 4
    parts.append(payload[start:])
    flags = [0] if len(parts) == 1 else [1] + [2] * (len(parts) - 2) + [3]
    frames = [MAGIC + struct.pack("<I", f << 29 | len(p)) + p + bytes(-len(p) % 4) for f, p in zip(flags, parts)]
    return b"".join(frames)


def read_recordio(data, joint=MAGIC):
    """As dmlc's reader, which ends the process where this raises."""
    records, at, parts = [], 0, None
    while at < len(data):
        if len(data) - at < 8 or data[at : at + 4] != MAGIC:
            raise ValueError("magic")
        (word,) = struct.unpack_from("<I", data, at + 4)
        flag, size = word >> 29, word & (1 << 29) - 1
        if (flag in (2, 3)) != (parts is not None) or flag > 3:
            raise ValueError("flag")
        if at + 8 + size + -size % 4 > len(data):
            raise ValueError("cut")
        body = data[at + 8 : at + 8 + size]
        at += 8 + size + -size % 4
        parts = (parts or []) + [body]
        if flag in (0, 3):
            records.append(joint.join(parts))
            parts = None
    if parts is not None:
        raise ValueError("cut")
    return records


class RecordIoTest(Comparison):
    def test_records_are_those_of_mxnet(self):
        chance = random.Random(2)
        words = [MAGIC, b"abcd", b"\0\0\0\0"]
        payloads = [b"".join(chance.choices(words, k=n)) + chance.randbytes(n % 4) for n in range(40)]
        data = b"".join(map(write_recordio, payloads))
        self.assertEqual(read_recordio(data), payloads)
        ours = self.compare(data, "recordio", read_recordio, True)
        self.assertEqual(ours["kind"], "recordio")
        self.damage(data, "recordio", read_recordio, range(0, len(data), 4), 2)

    def test_parts_are_joined_as_sagemaker_does(self):
        part = lambda f, p: MAGIC + struct.pack("<I", f << 29 | len(p)) + p + bytes(-len(p) % 4)  # noqa: E731
        data = part(1, b"abc") + part(2, b"de") + part(3, b"f") + part(0, b"g")
        self.compare(data, "recordio", lambda d: read_recordio(d, b""), True, multipart="sagemaker")


class LinesTest(Comparison):
    def texts(self, data, answer):
        return [data[slice(*record["range"])] for record in answer["records"]]

    def test_json_lines_are_those_of_python(self):
        def read(data):
            lines = [line.removesuffix(b"\n").removesuffix(b"\r") for line in io.BytesIO(data)]
            lines = [line for line in lines if line.strip()]
            if lines and not data.endswith(b"\n"):
                json.loads(lines[-1])
            return lines

        objects = [{"text": "a\n\"}{", "n": n, "list": [[], {}]} for n in range(8)]
        text = "\n".join(json.dumps(o) + ("\r" if o["n"] % 3 == 0 else "") for o in objects)
        for data in (text.encode(), (text + "\n\n \n").encode()):
            self.assertEqual(self.compare(data, "jsonl", read, True)["kind"], "jsonl")
            for size in range(len(data)):
                ours = self.driver.scan(data[:size], "jsonl")
                try:
                    expected = read(data[:size])
                except ValueError:
                    self.assertEqual(ours["code"], "data_loss", data[:size])
                else:
                    self.assertEqual(self.texts(data, ours), expected)

    def test_csv_is_that_of_python(self):
        chance = random.Random(4)
        rows = [["".join(chance.choices('ab,"\n ', k=chance.randrange(6))) for _ in range(3)] for _ in range(50)]
        for ending in ("\n", "\r\n"):
            out = io.StringIO(newline="")
            csv.writer(out, lineterminator=ending).writerows(rows)
            data = out.getvalue().encode()
            ours = self.driver.scan(data, "csv", header=False)
            self.assertEqual(ours["code"], "ok", ours["error"])
            cells = [[c.decode() for c in r["payload"].split(b"\0")[:-1]] for r in ours["records"]]
            self.assertEqual(cells, rows)


def read_mds(data):
    (count,) = struct.unpack_from("<I", data)
    offsets = struct.unpack_from(f"<{count + 1}I", data, 4)
    config = json.loads(data[4 * (count + 2) : offsets[0]])
    if offsets[-1] != len(data) or list(offsets) != sorted(offsets):
        raise ValueError("offsets")
    samples = []
    for start, end in zip(offsets, offsets[1:]):
        sizes, sample, at = config["column_sizes"], {}, start
        variable = [s for s in sizes if not s]
        sizes_of = iter(struct.unpack_from(f"<{len(variable)}I", data, at))
        at += 4 * len(variable)
        for name, size in zip(config["column_names"], sizes):
            size = size or next(sizes_of)
            sample[name.encode()] = data[at : at + size]
            at += size
        if at != end:
            raise ValueError("sample")
        samples.append(sample)
    return samples


class MdsTest(Comparison):
    def texts(self, data, answer):
        return [{f["name"]: data[slice(*f["range"])] for f in r["fields"]} for r in answer["records"]]

    def test_samples_are_those_of_the_layout(self):
        config = {"column_encodings": ["jpeg", "int", "str"], "column_names": ["image", "label", "text"],
                  "column_sizes": [None, 8, None], "compression": None, "format": "mds", "hashes": [],
                  "size_limit": None, "version": 2}  # fmt: skip
        text = json.dumps(config, sort_keys=True).encode()
        samples = [struct.pack("<II", n, 2 * n) + b"i" * n + struct.pack("<q", n) + b"t" * (2 * n) for n in range(9)]
        start = 4 * (len(samples) + 2) + len(text)
        offsets = np.cumsum([start] + [len(s) for s in samples]).astype("<u4")
        data = struct.pack("<I", len(samples)) + offsets.tobytes() + text + b"".join(samples)
        self.assertEqual(self.compare(data, "mds", read_mds, True)["kind"], "mds")
        self.damage(data, "mds", read_mds, list(range(0, start, 4)) + offsets.tolist(), 5)


class NumpyTest(Comparison):
    def texts(self, data, answer):
        return [data[slice(*f["range"])] for r in answer["records"] for f in r["fields"]]

    def test_rows_are_those_of_numpy(self):
        def read(data):
            array = np.load(io.BytesIO(data), allow_pickle=False)
            return [array[n : n + 1].tobytes() for n in range(len(array))]

        types = ["<f4", ">f4", "<i8", "|u1", "|b1", "<c16", "<U3", "|S5", "<M8[ns]", "<f2",
                 np.dtype([("a", "<f4"), ("b", "<i2", (3,)), ("c", [("d", "|u1")])])]  # fmt: skip
        for number, dtype in enumerate(types):
            for shape in ((5,), (3, 2), (2, 0, 3) if number == 0 else (2, 1, 3)):
                array = np.frombuffer(bytes(np.prod(shape) * np.dtype(dtype).itemsize), dtype).reshape(shape)
                out = io.BytesIO()
                np.save(out, array)
                if array.size == 0:
                    self.assertEqual(self.driver.scan(out.getvalue(), "npy")["code"], "unimplemented")
                    continue
                ours = self.compare(out.getvalue(), "npy", read, True)
                self.assertEqual(ours["kind"], "npy")
        out = io.BytesIO()
        np.save(out, np.asfortranarray(np.ones((3, 2))))
        self.assertEqual(self.driver.scan(out.getvalue(), "npy")["code"], "unimplemented")
        out = io.BytesIO()
        np.save(out, np.array([{}, 1], dtype=object), allow_pickle=True)
        self.assertEqual(self.driver.scan(out.getvalue(), "npy")["code"], "unimplemented")

    def test_arrays_of_a_zip_are_those_of_numpy(self):
        out = io.BytesIO()
        arrays = {"x": np.arange(60).reshape(6, 10), "y/z": np.zeros(0), "ü": np.ones(3, "f2")}
        np.savez(out, **arrays)
        data = out.getvalue()
        ours = self.driver.scan(data, "npz")
        self.assertEqual((ours["code"], ours["error"], ours["kind"]), ("ok", "", "npz"))
        found = {f["name"].decode(): data[slice(*f["range"])] for f in ours["records"][0]["fields"]}
        self.assertEqual(sorted(found), sorted(arrays))
        for name, array in arrays.items():
            np.testing.assert_array_equal(np.load(io.BytesIO(found[name])), array)
        for size in range(0, len(data), 11):
            self.assertEqual(self.driver.scan(data[:size], "npz")["code"], "data_loss")
        out = io.BytesIO()
        np.savez_compressed(out, **arrays)
        data = out.getvalue()
        ours = self.driver.scan(data, "npz")
        self.assertEqual((ours["code"], ours["error"]), ("ok", ""))
        for field in ours["records"][0]["fields"]:  # its range begins with the member's own header
            member = data[slice(*field["range"])]
            head = 30 + sum(struct.unpack_from("<HH", member, 26))
            unpacked = zlib.decompress(member[head:], -15)
            self.assertEqual(len(unpacked), field["bytes"])
            np.testing.assert_array_equal(np.load(io.BytesIO(unpacked)), arrays[field["name"].decode()])
        for size in range(0, len(data), 11):
            self.assertEqual(self.driver.scan(data[:size], "npz")["code"], "data_loss")
        accepted = 0
        for at in range(0, len(data), 3):
            flipped = data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :]
            if self.driver.scan(flipped, "npz")["code"] != "ok":
                continue
            accepted += 1  # times, versions, attributes: what nothing depends on
            read = np.load(io.BytesIO(flipped))
            for name in set(read.files) & set(arrays):
                np.testing.assert_array_equal(read[name], arrays[name])
        self.assertLess(accepted, len(data) / 3 / 2)


if __name__ == "__main__":
    unittest.main()
