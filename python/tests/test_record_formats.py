"""Each format of shards, written by its definition, comes back through a loader record by record."""

import hashlib
import io
import itertools
import json
import struct
import tarfile
import time

import numpy as np
import pytest
from PIL import Image

import forebay as fb

GETS = 'forebay_store_requests_total{op="get",code="ok"}'


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def tfrecord(records):
    out = b""
    for data in records:
        length = struct.pack("<Q", len(data))
        out += length + struct.pack("<I", masked(length)) + data + struct.pack("<I", masked(data))
    return out


def recordio(records, join=b""):
    """A payload is cut into parts where it is a list."""
    out = b""
    for parts in records:
        parts = [parts] if isinstance(parts, bytes) else parts
        for i, part in enumerate(parts):
            flag = 0 if len(parts) == 1 else 1 if i == 0 else 3 if i == len(parts) - 1 else 2
            out += struct.pack("<II", 0xCED7230A, flag << 29 | len(part)) + part
            out += b"\0" * (-len(part) % 4)
    return out


def mds(samples):
    """One column of bytes and one of int."""
    config = json.dumps({"column_encodings": ["bytes", "int"], "column_names": ["data", "n"],
                         "column_sizes": [None, 8], "compression": None, "format": "mds",
                         "hashes": [], "size_limit": None, "version": 2}, sort_keys=True).encode()  # fmt: skip
    bodies = [struct.pack("<I", len(d)) + d + struct.pack("<q", n) for d, n in samples]
    at = 4 + 4 * (len(bodies) + 1) + len(config)
    offsets = [at]
    for body in bodies:
        offsets.append(offsets[-1] + len(body))
    return struct.pack(f"<{len(bodies) + 2}I", len(bodies), *offsets) + config + b"".join(bodies)


def payloads(count=300, seed=1):
    rng = np.random.default_rng(seed)
    return [rng.bytes(int(rng.integers(0, 400))) for _ in range(count)]


def everything(folder, shuffle, **more):
    """Sample -> its bytes, and how many GETs that took."""
    records = fb.Records(str(folder), **more)
    got = {}
    with fb.Loader(records, batch_size=16, epochs=1, shuffle=shuffle, tail="ragged", seed=2) as batches:
        for batch in batches:
            for row, number in enumerate(batch["_sample"]):
                a, b = batch["offsets"][row : row + 2]
                assert int(number) not in got
                got[int(number)] = bytes(batch["bytes"][a:b])
        return [got[n] for n in range(len(got))], batches.metrics()[GETS]


CASES = {
    "tfrecord": (lambda data: tfrecord(data), lambda data: data),
    "recordio": (lambda data: recordio(data), lambda data: data),
    "jsonl": (
        lambda data: b"".join(json.dumps({"n": d.hex()}).encode() + b"\n" for d in data),
        lambda data: [json.dumps({"n": d.hex()}).encode() for d in data],
    ),
}


@pytest.mark.parametrize("format", CASES)
@pytest.mark.parametrize("shuffle", [True, False, fb.BlockShuffle(window=2)])
def test_records_come_as_they_were_written(tmp_path, format, shuffle):
    write, expected = CASES[format]
    shards = [payloads(200, seed) for seed in range(3)]
    for number, data in enumerate(shards):
        (tmp_path / f"{number}.bin").write_bytes(write(data))
    report = fb.index(str(tmp_path))
    assert report["format"] == format and report["records"] == 600, report
    got, gets = everything(tmp_path, shuffle)
    assert got == [record for data in shards for record in expected(data)]
    if shuffle is not True:
        assert gets <= 6  # of 600 records


def test_parts_of_recordio_are_joined_as_the_format_says(tmp_path):
    whole, parts = b"whole record", [b"AAAA", b"BBBB", b"C"]
    (tmp_path / "a.rec").write_bytes(recordio([whole, parts, b""]))
    magic = struct.pack("<I", 0xCED7230A)
    fb.index(str(tmp_path), format="recordio")
    assert everything(tmp_path, False)[0] == [whole, magic.join(parts), b""]
    fb.index(str(tmp_path), format="recordio-protobuf")
    assert everything(tmp_path, False)[0] == [whole, b"".join(parts), b""]
    with pytest.raises(fb.InvalidArgumentError, match="recordio-protobuf"):
        fb.Loader(fb.Records(str(tmp_path), format="recordio"))


def test_image_records_give_labels_as_numbers(tmp_path):
    records = [struct.pack("<IfQQ", 0, n * 0.5, 1000 + n, 0) + b"image %d" % n for n in range(9)]
    (tmp_path / "a.rec").write_bytes(recordio(records))
    fb.index(str(tmp_path), format="recordio-image")
    with fb.Loader(fb.Records(str(tmp_path)), batch_size=9, epochs=1, shuffle=False) as batches:
        batch = next(iter(batches))
    np.testing.assert_array_equal(batch["label"], np.arange(9, dtype=np.float32) * 0.5)
    np.testing.assert_array_equal(batch["id"], np.arange(1000, 1009))
    assert bytes(batch["image"]) == b"".join(b"image %d" % n for n in range(9))


def test_columns_of_mds_come_as_fields(tmp_path):
    samples = [(data, -n) for n, data in enumerate(payloads(50))]
    (tmp_path / "shard.00000.mds").write_bytes(mds(samples))
    report = fb.index(str(tmp_path))
    assert report["format"] == "mds" and report["fields"] == {"data": 50, "n": 50}
    with fb.Loader(fb.Records(str(tmp_path)), batch_size=50, epochs=1, shuffle=False) as batches:
        batch = next(iter(batches))
    assert bytes(batch["data"]) == b"".join(data for data, _ in samples)
    np.testing.assert_array_equal(batch["n"], -np.arange(50))


def test_shards_of_mds_are_held_to_their_index(tmp_path):
    def entry(name, data, samples, **more):
        return {"column_encodings": ["bytes", "int"], "column_names": ["data", "n"], "column_sizes": [None, 8],
                "compression": None, "format": "mds", "hashes": [], "size_limit": None, "version": 2,
                "raw_data": {"basename": name, "bytes": len(data), "hashes": {}}, "samples": samples,
                "zip_data": None, **more}  # fmt: skip

    shards = {f"shard.0000{n}.mds": mds([(d, n) for d in payloads(20, n)]) for n in range(3)}
    for name, data in shards.items():
        (tmp_path / name).write_bytes(data)
    entries = [entry(name, data, 20) for name, data in shards.items()]
    index = tmp_path / "index.json"

    def failures(*changed):
        index.write_text(json.dumps({"version": 2, "shards": [*changed, *entries[len(changed) :]]}))
        report = fb.index(str(tmp_path))
        assert report["objects_skipped"] == 0
        return [(uri.rsplit("/", 1)[1], why) for uri, why in report["failures"].items()]

    assert failures() == []
    first = "shard.00000.mds"

    def hashed(data, change):
        hashes = {name: getattr(hashlib, name)(data).hexdigest() for name in ("blake2b", "md5", "sha3_256", "sha1")}
        hashes["sha1"] = change(hashes["sha1"])
        hashes["xxh64"] = "not looked at"
        return entry(first, data, 20, hashes=list(hashes),
                     raw_data={"basename": first, "bytes": len(data), "hashes": hashes})  # fmt: skip

    assert failures(hashed(shards[first], str)) == []
    for changed, why in (
        (entry(first, b"", 20), "bytes, as index.json says"),
        (entry(first, shards[first], 21), "21 samples, as index.json says"),
        (entry(first, shards[first], 20, column_names=["data", "m"]), "the columns of index.json"),
        (hashed(shards[first], lambda h: h[::-1]), "sha1 "),
    ):
        ((name, found),) = failures(changed)
        assert name == first and why in found, found
    (tmp_path / first).rename(tmp_path / f"{first}.zstd")
    (tmp_path / f"{first}.zstd").write_bytes(b"\x28\xb5\x2f\xfd" + bytes(99))
    packed = entry(first, shards[first], 20, compression="zstd:3",
                   zip_data={"basename": f"{first}.zstd", "bytes": 103, "hashes": {}})  # fmt: skip
    ((name, found),) = failures(packed)
    assert name == f"{first}.zstd" and "compressed with zstd:3" in found, found


def test_rows_of_arrays_come_as_arrays(tmp_path):
    array = np.arange(40 * 3 * 2, dtype=np.float32).reshape(40, 3, 2)
    np.save(tmp_path / "a.npy", array)
    np.save(tmp_path / "b.npy", -array[:7])
    assert fb.index(str(tmp_path))["records"] == 47
    with fb.Loader(fb.Records(str(tmp_path)), batch_size=47, epochs=1, shuffle=False) as batches:
        batch = next(iter(batches))
    np.testing.assert_array_equal(batch["array"], np.concatenate([array, -array[:7]]))


def test_compressed_arrays_are_unpacked(tmp_path):
    rng = np.random.default_rng(2)
    arrays = [{"x": rng.normal(size=(40, 5)), "n": np.arange(n + 1)} for n in range(6)]
    for n, one in enumerate(arrays):
        (np.savez_compressed if n % 2 else np.savez)(tmp_path / f"{n}.npz", **one)
    assert fb.index(str(tmp_path))["format"] == "npz"
    for shuffle in (False, True):
        with fb.Loader(fb.Records(str(tmp_path)), batch_size=6, epochs=1, shuffle=shuffle) as batches:
            batch = next(iter(batches))
        for row, number in enumerate(batch["_sample"]):
            for name, array in arrays[int(number)].items():
                a, b = batch[f"{name}_offsets"][row : row + 2]
                np.testing.assert_array_equal(np.load(io.BytesIO(bytes(batch[name][a:b]))), array)


def example(**features):
    """tf.train.Example by hand: int64 and float lists packed, bytes as they are, "" without kind."""

    def varint(n):
        n &= 2**64 - 1
        out = b""
        while n >= 128:
            out += bytes([n & 127 | 128])
            n >>= 7
        return out + bytes([n])

    def message(field, data):
        return varint(field << 3 | 2) + varint(len(data)) + data

    entries = b""
    for key, value in features.items():
        if isinstance(value, bytes):
            feature = message(1, message(1, value))
        elif value == "":
            feature = b""
        elif value and isinstance(value[0], float):
            feature = message(2, message(1, struct.pack(f"<{len(value)}f", *value)))
        else:
            feature = message(3, message(1, b"".join(varint(n) for n in value)))
        entries += message(1, message(1, key.encode()) + message(2, feature))
    return message(1, entries)


def test_features_of_examples_come_as_arrays(tmp_path):
    records = [example(label=[n], box=[n * 1.0, 2.0], name=b"n%d" % n) for n in range(64)]
    (tmp_path / "a.tfrecord").write_bytes(tfrecord(records))
    fb.index(str(tmp_path))
    ops = [fb.ops.parse_example({"label": "int64", "box": ("float32", 2), "more": ("int64", (), 7)})]
    with fb.Loader(
        fb.Records(str(tmp_path)), batch_size=16, epochs=1, ops=ops, shuffle=fb.BlockShuffle()
    ) as batches:
        for batch in batches:
            np.testing.assert_array_equal(batch["label"], batch["_sample"])
            np.testing.assert_array_equal(batch["box"][:, 0], batch["_sample"].astype(np.float32))
            assert (batch["more"] == 7).all() and batch["label"].shape == (16,)


def rows_of(batch, name):
    """The values of each sample of a ragged array."""
    begins = batch[name + "_offsets"]
    return [list(batch[name][a:b]) for a, b in zip(begins, begins[1:])]


@pytest.mark.parametrize("shuffle", [fb.BlockShuffle(), True, False])
@pytest.mark.parametrize("epochs", [1, 2])  # of two, what is parsed is kept
def test_ragged_features_come_as_values_and_offsets(tmp_path, shuffle, epochs):
    rng = np.random.default_rng(1)
    lists = [[int(n) for n in rng.integers(-(2**63), 2**63, rng.integers(0, 9))] for _ in range(400)]
    floats = [[float(n) for n in rng.integers(0, 99, rng.integers(1, 5))] for _ in range(400)]
    records = [
        example(label=[n], ids=lists[n] if n % 5 else "", **({"f": floats[n]} if n % 7 else {}))
        for n in range(400)
    ]
    (tmp_path / "a.tfrecord").write_bytes(tfrecord(records))
    fb.index(str(tmp_path))
    ops = [fb.ops.parse_example({"ids": ("int64", None), "label": "int64", "f": ("float32", None)})]
    seen = 0
    with fb.Loader(
        fb.Records(str(tmp_path)), batch_size=25, epochs=epochs, ops=ops, shuffle=shuffle
    ) as batches:
        for batch in itertools.chain(*[batches] * epochs):
            ids, f = rows_of(batch, "ids"), rows_of(batch, "f")
            assert batch["ids"].dtype == np.int64 and batch["f"].dtype == np.float32
            for row, n in enumerate(batch["_sample"]):
                assert ids[row] == (lists[n] if n % 5 else [])
                assert f[row] == (floats[n] if n % 7 else [])
                seen += 1
            np.testing.assert_array_equal(batch["label"], batch["_sample"])
        kept = batches.metrics()["forebay_prepared_samples_total"]
    assert (seen, kept) == (400 * epochs, 400 * (epochs - 1))


def test_sparse_features_are_rows_of_a_csr_matrix(tmp_path):
    rng = np.random.default_rng(2)
    size = 1000
    records, dense = [], np.zeros((200, 2, size), np.float32)
    for n in range(200):
        at = [int(i) for i in rng.permutation(size)[: n % 12]]
        a, b = [float(i) for i in rng.integers(1, 99, len(at))], [float(i + 1) for i in at]
        dense[n, 0, at], dense[n, 1, at] = a, b
        records.append(example(at=at, a=a or "", b=b or ""))
    (tmp_path / "a.tfrecord").write_bytes(tfrecord(records))
    fb.index(str(tmp_path))
    ops = [
        fb.ops.parse_example(
            {"x": fb.ops.sparse("a", "at", size), "y": fb.ops.sparse("b", "at", size)}
        )
    ]
    with fb.Loader(fb.Records(str(tmp_path)), batch_size=20, epochs=1, ops=ops) as batches:
        for batch in batches:
            for array, name in enumerate("xy"):
                np.testing.assert_array_equal(
                    batch[name + "_offsets"], batch[name + "_indices_offsets"]
                )
                values, places = rows_of(batch, name), rows_of(batch, name + "_indices")
                for row, n in enumerate(batch["_sample"]):
                    assert places[row] == sorted(places[row])
                    made = np.zeros(size, np.float32)
                    made[places[row]] = values[row]
                    np.testing.assert_array_equal(made, dense[n, array])
    with pytest.raises(fb.InvalidArgumentError, match="named twice"):
        fb.ops.parse_example({"at": ("int64", None), "x": fb.ops.sparse("a", "at", size)})
    with fb.Loader(
        fb.Records(str(tmp_path)), batch_size=20, epochs=1, shuffle=False,
        ops=[fb.ops.parse_example({"x": fb.ops.sparse("a", "at", 500)})],
    ) as batches:  # fmt: skip
        with pytest.raises(fb.DataLossError, match="feature 'a'.*an index of .* in a sparse vector of 500"):
            list(batches)


def test_a_ragged_feature_of_another_kind_is_a_bad_sample(tmp_path):
    records = [example(ids=[1.5] if n == 7 else [n]) for n in range(20)]
    (tmp_path / "a.tfrecord").write_bytes(tfrecord(records))
    fb.index(str(tmp_path))
    ops = [fb.ops.parse_example({"ids": ("int64", None)})]
    loader = lambda **more: fb.Loader(  # noqa: E731
        fb.Records(str(tmp_path)), batch_size=20, epochs=1, ops=ops, shuffle=False, **more
    )
    with loader() as batches:
        with pytest.raises(fb.DataLossError, match="sample 7 .*'ids' holds floats, not integers"):
            list(batches)
    with loader(on_bad_sample=fb.skip(1)) as batches:
        (batch,) = batches
        rows = rows_of(batch, "ids")
        assert [row[0] for n, row in enumerate(rows) if n != 7] == [n for n in range(20) if n != 7]
        assert len(rows[7]) == 1 and rows[7][0] != 7


@pytest.mark.parametrize(
    "features", [{"a": ("int64", None), "a_offsets": "int64"}, {"_sample": "int64"}]
)
def test_two_arrays_of_one_name_are_refused(tmp_path, features):
    (tmp_path / "a.tfrecord").write_bytes(tfrecord([example(a=[1], a_offsets=[2], _sample=[3])]))
    fb.index(str(tmp_path))
    with pytest.raises(fb.InvalidArgumentError, match="two arrays of a batch would be named"):
        fb.Loader(fb.Records(str(tmp_path)), batch_size=1, ops=[fb.ops.parse_example(features)])


def test_memory_of_one_kind_is_given_back_for_the_other(tmp_path):
    """Large files of pixels, then small ones: what held bytes as they are stored is idle by then."""
    side, rng = 450, np.random.default_rng(1)

    def png(pixels):
        out = io.BytesIO()
        Image.fromarray(pixels).save(out, "PNG", compress_level=1)
        return out.getvalue()

    noise = [png(rng.integers(0, 256, (side, side, 3), dtype=np.uint8)) for _ in range(4)]
    plain = png(np.zeros((side, side, 3), np.uint8))
    assert len(noise[0]) > 600_000 and len(plain) < 20_000
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        for number in range(450):
            data = noise[number % 4] if number < 150 else plain
            info = tarfile.TarInfo(f"{number:04}.png")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    fb.index(str(tmp_path))
    kinds = ("slabs", "outputs")
    most = dict.fromkeys(kinds, 0)
    together = 0
    with fb.Loader(
        fb.Records(str(tmp_path)), batch_size=2, epochs=1, shuffle=False, memory="64MiB", runway=60.0,
        ops=[fb.ops.decode_image("png"), fb.ops.center_crop(side)], held_limit=2,
    ) as batches:  # fmt: skip
        for batch in batches:
            time.sleep(0.01)  # so that as much is read ahead as may be
            metrics = batches.metrics()
            now = {kind: metrics[f'forebay_memory_bytes{{kind="{kind}"}}'] for kind in kinds}
            most = {kind: max(most[kind], now[kind]) for kind in kinds}
            together = max(together, sum(now.values()))
    assert sum(most.values()) > 1.15 * (64 << 20), most
    assert together < 1.05 * (64 << 20) + (2 << 20), (together, most)


def test_memory_holds_where_few_samples_are_much_larger_than_the_others(tmp_path):
    """What a batch may become is reserved by what its own records store, not by the mean of others."""
    lines = [b'{"ids":[%d]}\n' % n for n in range(4000)]
    lines[2000:2000] = [b'{"ids":[' + b"1," * 100_000 + b"1]}\n"] * 150
    (tmp_path / "a.jsonl").write_bytes(b"".join(lines))
    fb.index(str(tmp_path))
    ops = [fb.ops.parse_json(ids=("/ids", "int64", None))]
    with fb.Loader(
        fb.Records(str(tmp_path)), batch_size=16, epochs=1, ops=ops, shuffle=False, memory="64MiB",
        runway=60.0, decode_threads=2,
    ) as batches:  # fmt: skip
        most = 0
        for number, batch in enumerate(batches):
            if number == 100:
                time.sleep(0.5)  # what can be read ahead by then, is
            most = max(most, batch["ids"].nbytes)
        reserved = batches.metrics()['forebay_memory_bytes{kind="reserved_peak"}']
    assert most > 12_000_000 and reserved < (64 << 20) + 2 * most, (most, reserved)
    assert batches.metrics()['forebay_memory_bytes{kind="reserved_peak"}'] >= reserved  # also closed


def test_lists_of_json_lines_come_as_values_and_offsets(tmp_path):
    lines = [json.dumps({"n": n, "ids": list(range(n % 6)), "w": [n / 2] * (n % 3)}) for n in range(90)]
    (tmp_path / "a.jsonl").write_text("\n".join(lines) + "\n")
    fb.index(str(tmp_path))
    ops = [fb.ops.parse_json(n="/n", ids=("/ids", "int64", None), w=("/w", "float64", None))]
    with fb.Loader(fb.Records(str(tmp_path)), batch_size=30, epochs=1, ops=ops) as batches:
        for batch in batches:
            ids, w = rows_of(batch, "ids"), rows_of(batch, "w")
            for row, n in enumerate(batch["n"]):
                assert ids[row] == list(range(n % 6)) and w[row] == [n / 2] * (n % 3)


def test_a_flipped_byte_is_a_bad_sample_with_its_place(tmp_path):
    data = payloads(20)
    shard = bytearray(tfrecord(data))
    (tmp_path / "a.tfrecord").write_bytes(shard)
    fb.index(str(tmp_path))
    at = shard.index(data[7]) + 3
    shard[at] ^= 1
    stat = (tmp_path / "a.tfrecord").stat()
    with open(tmp_path / "a.tfrecord", "r+b") as file:
        file.seek(at)
        file.write(shard[at : at + 1])
    import os

    os.utime(tmp_path / "a.tfrecord", ns=(stat.st_atime_ns, stat.st_mtime_ns))
    with fb.Loader(fb.Records(str(tmp_path)), batch_size=20, epochs=1, shuffle=False) as batches:
        with pytest.raises(fb.DataLossError, match=r"a\.tfrecord at \d+") as error:
            next(iter(batches))
    assert error.value.uri.endswith("a.tfrecord") and error.value.range is not None
