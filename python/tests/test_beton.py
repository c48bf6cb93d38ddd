"""FFCV's files, laid out as its writer does: rows, pages that several workers fill, a list of what was
allocated."""

import io
import itertools
import json
import struct

import numpy as np
import pytest
from PIL import Image

import forebay as fb

PAGE = 1 << 21
COUNT = 2500
TYPES = {
    "float": (0, "<d"),
    "int": (1, "<q"),
    "image": (2, "<BHHQ"),
    "bytes": (3, "<QQ"),
    "array": (4, "<Q"),  # of 6 float32
    "json": (5, "<QQ"),
}
ARRAY = struct.pack("<32QQ", 6, *[0] * 31, 5) + b'"<f4"'


def write(path, fields, samples, workers=3, chunk=100):
    """fields: name -> type; samples: dicts; of images (mode, width, height, bytes)."""
    slots, at, align = {}, 0, 1
    for name, kind in fields.items():
        size = struct.calcsize(TYPES[kind][1])
        need = 1 if kind == "image" else 8
        at = (at + need - 1) // need * need
        slots[name] = at
        at, align = at + size, max(align, need)
    row_bytes = (at + align - 1) // align * align
    head = 24 + 1041 * len(fields)
    data = (head + row_bytes * len(samples) + PAGE - 1) // PAGE * PAGE
    rows, pages, table = bytearray(row_bytes * len(samples)), [], []
    open_pages = {}

    def allocate(worker, sample, content):
        if worker not in open_pages or len(open_pages[worker][1]) + len(content) > PAGE:
            open_pages[worker] = (data + PAGE * len(pages), bytearray())
            pages.append(open_pages[worker][1])
        begin, page = open_pages[worker]
        offset = begin + len(page)
        page += content
        table.append((sample, offset, len(content)))
        return offset

    for number, sample in enumerate(samples):
        worker = number // chunk % workers
        for name, kind in fields.items():
            value, layout = sample[name], TYPES[kind][1]
            if kind == "image":
                mode, width, height, content = value
                slot = struct.pack(layout, mode, width, height, allocate(worker, number, content))
            elif kind in ("bytes", "json"):
                slot = struct.pack(layout, allocate(worker, number, value), len(value))
            elif kind == "array":
                slot = struct.pack(layout, allocate(worker, number, value))
            else:
                slot = struct.pack(layout, value)
            begin = number * row_bytes + slots[name]
            rows[begin : begin + len(slot)] = slot
    table_at = data + PAGE * len(pages)
    out = struct.pack("<HHIQQ", 2, len(fields), PAGE, len(samples), table_at)
    for name, kind in fields.items():
        out += struct.pack("<B16s1024s", TYPES[kind][0], name.encode(), ARRAY if kind == "array" else b"")
    out += rows
    out = bytes(out).ljust(data, b"\0") + b"".join(bytes(page).ljust(PAGE, b"\0") for page in pages)
    out += b"".join(struct.pack("<QQQ", *entry) for entry in table)
    path.write_bytes(out)
    return out


def jpeg(number):
    out = io.BytesIO()
    pixels = np.random.default_rng(number).integers(0, 256, (16, 16, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(out, "JPEG")
    return out.getvalue()


FIELDS = {"image": "image", "label": "int", "weight": "float", "note": "json", "blob": "bytes"}


def samples():
    jpegs = [jpeg(n) for n in range(20)]
    return [
        {"image": (0, 16, 16, jpegs[n % 20]), "label": n - 5, "weight": n / 4,
         "note": json.dumps({"n": n}).encode() + b"\0", "blob": b"%d" % n * (n % 7) * 300}
        for n in range(COUNT)
    ]  # fmt: skip


@pytest.fixture(scope="module")
def beton(tmp_path_factory):
    root = tmp_path_factory.mktemp("beton")
    write(root / "train.beton", FIELDS, samples())
    report = fb.index(str(root))
    assert (report["format"], report["records"], report["shards"]) == ("beton", COUNT, 1)
    return root


def values(batch, name):
    begins = batch[name + "_offsets"]
    return [bytes(batch[name][a:b]) for a, b in zip(begins, begins[1:])]


@pytest.mark.parametrize("shuffle", [False, True, fb.BlockShuffle(window=2)])
def test_samples_come_with_all_their_fields(beton, shuffle):
    expected, seen = samples(), []
    with fb.Loader(fb.Records(str(beton)), batch_size=50, epochs=1, shuffle=shuffle) as batches:
        for batch in batches:
            numbers = batch["_sample"]
            np.testing.assert_array_equal(batch["label"], numbers - 5)
            np.testing.assert_array_equal(batch["weight"], numbers / 4)
            assert batch["label"].dtype == np.int64 and batch["weight"].dtype == np.float64
            for name in ("note", "blob"):
                assert values(batch, name) == [expected[n][name] for n in numbers]
            assert values(batch, "image") == [expected[n]["image"][3] for n in numbers]
            modes = [struct.unpack("<BHH", bytes(row[:5])) for row in batch["image.row"]]
            assert modes == [(0, 16, 16)] * len(numbers)
            seen += list(numbers)
    assert sorted(seen) == list(range(COUNT)) and (seen == sorted(seen)) == (shuffle is False)


def test_images_go_through_ops(beton):
    pixels = [np.asarray(Image.open(io.BytesIO(jpeg(n))).convert("RGB")) for n in range(20)]
    loader = fb.Loader(
        fb.Records(str(beton), columns=["image", "label"]), batch_size=100, epochs=2,
        ops=[fb.ops.decode_image("image"), fb.ops.resize((16, 16))], shuffle=fb.BlockShuffle(),
    )  # fmt: skip
    with loader as batches:
        for batch in itertools.chain(batches, batches):
            for row, number in enumerate(batch["_sample"]):
                np.testing.assert_array_equal(batch["image"][row], pixels[number % 20])


def test_numbers_alone_read_no_page(beton):
    with fb.Loader(fb.Records(str(beton), columns=["label"]), batch_size=COUNT, epochs=1, shuffle=False) as batches:
        (batch,) = batches
        fetched = [v for k, v in batches.metrics().items() if k.startswith("forebay_store_bytes_total") and "get" in k]
    np.testing.assert_array_equal(batch["label"], np.arange(COUNT) - 5)
    assert sum(fetched) < COUNT * 80


def test_raw_pixels_come_as_bytes_and_arrays_as_they_are(tmp_path):
    rng = np.random.default_rng(3)
    pixels = rng.integers(0, 256, (40, 4, 5, 3), dtype=np.uint8)
    arrays = rng.normal(size=(40, 6)).astype(np.float32)
    write(tmp_path / "a.beton", {"image": "image", "x": "array"},
          [{"image": (1, 5, 4, p.tobytes()), "x": a.tobytes()} for p, a in zip(pixels, arrays)])  # fmt: skip
    write(tmp_path / "b.beton", {"image": "image", "x": "array"},
          [{"image": (1, 5, 4, pixels[0].tobytes()), "x": arrays[0].tobytes()}])  # fmt: skip
    assert fb.index(str(tmp_path))["records"] == 41
    with fb.Loader(fb.Records(str(tmp_path)), batch_size=41, epochs=1, shuffle=False) as batches:
        (batch,) = batches
    np.testing.assert_array_equal(batch["image"].reshape(41, 4, 5, 3), np.concatenate([pixels, pixels[:1]]))
    assert batch["x"].dtype == np.float32
    np.testing.assert_array_equal(batch["x"], np.concatenate([arrays, arrays[:1]]))
    assert {bytes(row[:5]) for row in batch["image.row"]} == {struct.pack("<BHH", 1, 5, 4)}


def test_cut_files_are_failures_of_the_index(tmp_path):
    whole = write(tmp_path / "a.beton", FIELDS, samples()[:300])
    for size in (30, 5000, 6000, len(whole) // 2, len(whole) - 1):
        (tmp_path / "a.beton").write_bytes(whole[:size])
        with pytest.raises(fb.DataLossError, match="a.beton"):
            fb.index(str(tmp_path), format="beton")
