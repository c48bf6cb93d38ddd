#!/ usr / bin / env python3
"""Ops against PIL, NumPy and Python: the same bytes, from many small files of every kind.

ops_reference_test.py DRIVER     DRIVER is the program of ops_driver.cc
"""

import io
import json
import random
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib
from pathlib import Path

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from PIL import Image, ImageEnhance, ImageOps

DRIVER = sys.argv.pop(1) if len(sys.argv) > 1 else ""
FILTERS = {"bilinear": Image.BILINEAR, "bicubic": Image.BICUBIC, "lanczos": Image.LANCZOS, "box": Image.BOX}


class Driver:
    """One process that answers all requests of a test."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.process = subprocess.Popen([DRIVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def close(self):
        self.process.communicate(timeout=30)
        self.folder.cleanup()

    def run(self, data, ops, **identity):
        """What the ops make of a file's bytes: an array, or the error's code."""
        answer = self.run_all(data, ops, **identity)
        return answer if isinstance(answer, str) else answer["image"]

    def run_all(self, data, ops, **identity):
        """The same of chains that make several arrays, by name."""
        path = Path(self.folder.name) / "input"
        path.write_bytes(data)
        request = {"fields": [{"name": "image", "file": str(path)}], "ops": ops, "out": self.folder.name, **identity}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if "error" in answer:
            return answer["code"]
        arrays = {}
        for output in answer["outputs"]:
            values = (Path(self.folder.name) / output["name"]).read_bytes()
            arrays[output["name"]] = np.frombuffer(values, output["dtype"]).reshape(output["shape"])
        return arrays


def picture(generator, width, height, channels):
    """Slopes with noise that falls off with frequency, as photographs have."""
    frequency = np.fft.fftfreq(height)[:, None] ** 2 + np.fft.fftfreq(width)[None] ** 2
    frequency[0, 0] = 1
    planes = []
    for _ in range(channels):
        noise = np.fft.fft2(generator.standard_normal((height, width)))
        plane = np.fft.ifft2(noise / np.sqrt(frequency)).real
        spread = plane.max() - plane.min()
        planes.append((plane - plane.min()) / (spread if spread > 0 else 1) * 255)
    pixels = np.stack(planes, -1).astype(np.uint8)
    return pixels[..., 0] if channels == 1 else pixels


def encoded(image, kind, **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def png(width, height, depth, color, rows, extra=b""):
    """A PNG of any type: what PIL cannot write."""

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + row for row in rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + extra + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def decode(mode="RGB", field="image", **arguments):
    return {"op": "decode_image", "field": field, "mode": mode, **arguments}


def array(image):
    values = np.asarray(image)
    return values[..., None] if values.ndim == 2 else values


class OpsTest(unittest.TestCase):
    def setUp(self):
        self.driver = Driver()
        self.addCleanup(self.driver.close)
        self.numbers = random.Random(self.id())
        self.generator = np.random.default_rng(zlib.crc32(self.id().encode()))

    def same(self, got, want, about):
        if isinstance(got, str):
            self.fail(f"{about}: {got}")
        np.testing.assert_array_equal(got, array(want), err_msg=str(about))

    def whole(self, data, mode="RGB", about=None):
        """All of an image, as PIL decodes and converts it."""
        want = Image.open(io.BytesIO(data)).convert(mode)
        crop = {"op": "center_crop", "height": want.height, "width": want.width}
        self.same(self.driver.run(data, [decode(mode), crop]), want, about)

    def jpeg(self, width, height):
        kind = self.numbers.choice(["420", "420", "422", "444", "grey", "cmyk"])
        pixels = picture(self.generator, width, height, 1 if kind == "grey" else 4 if kind == "cmyk" else 3)
        image = Image.fromarray(pixels, "CMYK" if kind == "cmyk" else None)
        options = {"quality": self.numbers.randint(30, 98), "progressive": self.numbers.random() < 0.25}
        if kind.startswith("4"):
            options["subsampling"] = {"444": 0, "422": 1, "420": 2}[kind]
        return encoded(image, "JPEG", **options), (kind, width, height, options)

    def test_jpegs_decode_to_the_same_pixels(self):
        for _ in range(60):
            data, about = self.jpeg(self.numbers.randint(1, 130), self.numbers.randint(1, 130))
            self.whole(data, self.numbers.choice(["RGB", "L"]), about)

    def test_a_part_of_a_jpeg_is_as_the_whole_one_cut(self):
        for _ in range(150):
            width, height = self.numbers.randint(1, 150), self.numbers.randint(1, 150)
            data, about = self.jpeg(width, height)
            crop_width, crop_height = self.numbers.randint(1, width), self.numbers.randint(1, height)
            x, y = round((width - crop_width) / 2), round((height - crop_height) / 2)
            crop = {"op": "center_crop", "height": crop_height, "width": crop_width}
            want = Image.open(io.BytesIO(data)).convert("RGB").crop((x, y, x + crop_width, y + crop_height))
            self.same(self.driver.run(data, [decode(), crop]), want, (about, crop))

    def test_pngs_decode_to_the_same_pixels(self):
        width, height = 37, 23
        for color, channels in ((0, 1), (2, 3), (4, 2), (6, 4)):
            for depth in (8, 16):
                values = self.generator.integers(0, 256, (height, width * channels * depth // 8), dtype=np.uint8)
                if color == 0 and depth == 16:
                    values[:, ::2] //= 200  # some of them below 256, where clipping lets them be
                data = png(width, height, depth, color, [row.tobytes() for row in values])
                for mode in ("RGB", "L"):
                    self.whole(data, mode, (color, depth, mode))
        values = self.generator.integers(0, 256, (height, 2 * width), dtype=np.uint8)
        data = png(width, height, 16, 0, [row.tobytes() for row in values])
        crop = {"op": "center_crop", "height": height, "width": width}
        self.same(self.driver.run(data, [decode("L", grey16="high_byte"), crop]), values[:, ::2], "high byte")
        for depth in (1, 2, 4):
            rows = self.generator.integers(0, 256, (height, (width * depth + 7) // 8), dtype=np.uint8)
            self.whole(png(width, height, depth, 0, [row.tobytes() for row in rows]), "RGB", depth)
        for colors in (2, 4, 16, 256):
            image = Image.fromarray(picture(self.generator, width, height, 3)).quantize(colors)
            for options in ({}, {"transparency": 1}):
                for mode in ("RGB", "L"):
                    self.whole(encoded(image, "PNG", **options), mode, (colors, options))
        image = Image.fromarray(picture(self.generator, width, height, 3))
        self.whole(encoded(image, "PNG", transparency=(1, 2, 3)), "RGB")

    def test_webps_decode_to_the_same_pixels(self):
        for channels in (3, 4):
            for options in ({"quality": 80}, {"quality": 20}, {"lossless": True}, {"lossless": True, "exact": True}):
                image = Image.fromarray(picture(self.generator, 61, 45, channels))
                for mode in ("RGB", "L"):
                    self.whole(encoded(image, "WEBP", **options), mode, (channels, options))

    def test_resizes_to_the_same_pixels(self):
        for name, method in FILTERS.items():
            for _ in range(25):
                width, height = self.numbers.randint(1, 200), self.numbers.randint(1, 200)
                to = (self.numbers.randint(1, 220), self.numbers.randint(1, 220))
                mode = self.numbers.choice(["RGB", "RGB", "L"])
                image = Image.fromarray(picture(self.generator, width, height, 3)).convert(mode)
                resize = {"op": "resize", "height": to[1], "width": to[0], "filter": name}
                got = self.driver.run(encoded(image, "PNG"), [decode(mode), resize])
                self.same(got, image.resize(to, method), (name, width, height, to))

    def test_resizes_the_shorter_side_and_crops_as_torchvision(self):
        for _ in range(80):
            width, height = self.numbers.randint(8, 160), self.numbers.randint(8, 160)
            data, about = self.jpeg(width, height)
            side = self.numbers.randint(1, 120)
            to = (side, int(side * height / width)) if width <= height else (int(side * width / height), side)
            crop_width, crop_height = self.numbers.randint(1, side), self.numbers.randint(1, side)
            name, method = self.numbers.choice(list(FILTERS.items()))
            ops = [decode(), {"op": "resize", "height": side, "filter": name},
                   {"op": "center_crop", "height": crop_height, "width": crop_width}]
            x, y = round((to[0] - crop_width) / 2), round((to[1] - crop_height) / 2)
            want = Image.open(io.BytesIO(data)).convert("RGB").resize(to, method)
            want = want.crop((x, y, x + crop_width, y + crop_height))
            self.same(self.driver.run(data, ops), want, (about, ops))

    def test_random_crops_are_parts_of_the_image_resized(self):
        data, about = self.jpeg(90, 70)
        whole = Image.open(io.BytesIO(data)).convert("RGB")
        for sample in range(5):
            ops = [decode(), {"op": "random_resized_crop", "height": 12, "width": 10}]
            got = self.driver.run(data, ops, seed=5, sample=sample)
            areas = []
            for height in range(1, 71):  # every crop there is of that shape would take too long
                for width in range(max(1, int(height * 0.74)), min(90, int(height * 1.35)) + 1):
                    areas.append((width, height))
            self.assertTrue(self.find(whole, got, areas), (about, sample))

    @staticmethod
    def find(whole, got, areas):
        """Whether some crop of these sizes gives these pixels; told by its corners' means first."""
        values = np.asarray(whole).astype(int)
        mean = got.astype(int).mean((0, 1))
        sums = np.zeros((whole.height + 1, whole.width + 1, 3))
        sums[1:, 1:] = values.cumsum(0).cumsum(1)
        for width, height in areas:
            means = (sums[height:, width:] - sums[:-height, width:] - sums[height:, :-width] +
                     sums[:-height, :-width]) / (width * height)
            for y, x in np.argwhere(np.abs(means - mean).max(-1) < 2.5):
                part = whole.crop((x, y, x + width, y + height)).resize((10, 12), Image.BILINEAR)
                if np.array_equal(np.asarray(part), got):
                    return True
        return False

    def test_a_smaller_image_is_centred_in_black(self):
        data = encoded(Image.fromarray(picture(self.generator, 9, 30, 3)), "PNG")
        got = self.driver.run(data, [decode(), {"op": "center_crop", "height": 16, "width": 20}])
        whole = Image.open(io.BytesIO(data))
        want = ImageOps.expand(whole, (5, 0, 6, 0)).crop((0, 7, 20, 23))
        self.same(got, want, "padded")

    def test_exif_turns_the_image_only_when_told_to(self):
        image = Image.fromarray(picture(self.generator, 40, 27, 3))
        for turned in range(1, 9):
            exif = Image.Exif()
            exif[0x0112] = turned
            for kind in ("JPEG", "PNG", "WEBP"):
                data = encoded(image, kind, exif=exif.tobytes())
                self.whole(data, "RGB", (kind, turned))
                want = ImageOps.exif_transpose(Image.open(io.BytesIO(data)).convert("RGB"))
                for part in ((want.width, want.height), (13, 9)):
                    crop = {"op": "center_crop", "height": part[1], "width": part[0]}
                    x, y = round((want.width - part[0]) / 2), round((want.height - part[1]) / 2)
                    got = self.driver.run(data, [decode(orientation="apply"), crop])
                    self.same(got, want.crop((x, y, x + part[0], y + part[1])), (kind, turned))

    def test_what_pil_refuses_is_refused(self):
        image = Image.fromarray(picture(self.generator, 40, 30, 3))
        for data in (encoded(image, "JPEG"), encoded(image, "JPEG", progressive=True), encoded(image, "PNG"),
                     encoded(image, "WEBP")):
            size = {"op": "resize", "height": 8, "width": 8}
            self.assertIsInstance(self.driver.run(data, [decode(), size]), np.ndarray)
            for cut in [*range(0, 40), *range(40, len(data) - 20, 37)]:
                with self.assertRaises(Exception, msg=cut):
                    Image.open(io.BytesIO(data[:cut])).convert("RGB")
                self.assertEqual(self.driver.run(data[:cut], [decode(), size]), "data_loss", cut)
        self.assertEqual(self.driver.run(encoded(image, "GIF"), [decode(), size]), "data_loss")

    def test_floats_are_as_torch_makes_them(self):
        image = Image.fromarray(picture(self.generator, 20, 16, 3))
        pixels = np.asarray(image)
        mean, std = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])
        ops = [decode(), {"op": "resize", "height": 16, "width": 20}]
        normalize = {"op": "normalize", "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}
        want = (pixels.astype(np.float32) / np.float32(255) - mean) / std
        data = encoded(image, "PNG")
        self.same(self.driver.run(data, [*ops, normalize]), want, "normalize")
        self.same(self.driver.run(data, [*ops, normalize, {"op": "to_chw"}]), want.transpose(2, 0, 1), "chw")
        half = {"op": "to_dtype", "dtype": "float16"}
        self.same(self.driver.run(data, [*ops, normalize, half]), want.astype(np.float16), "half")
        scaled = {"op": "to_dtype", "dtype": "float16", "scale": True}
        self.same(self.driver.run(data, [*ops, scaled]),
                  (pixels.astype(np.float32) / np.float32(255)).astype(np.float16), "scaled half")
        plain = {"op": "to_dtype", "dtype": "float32"}
        self.same(self.driver.run(data, [*ops, plain]), pixels.astype(np.float32), "unscaled")
        self.same(self.driver.run(data, [*ops, {"op": "to_chw"}]), pixels.transpose(2, 0, 1), "bytes")

    def test_jitter_is_what_pil_makes_of_some_factor(self):
#One kind at a time, as the factor is not known : a search over all that change the result.
        image = Image.fromarray(picture(self.generator, 24, 18, 3))
        data = encoded(image, "PNG")
        size = {"op": "resize", "height": 18, "width": 24}
        for kind, enhance in (("brightness", ImageEnhance.Brightness), ("contrast", ImageEnhance.Contrast),
                              ("saturation", ImageEnhance.Color)):
            got = self.driver.run(data, [decode(), size, {"op": "color_jitter", kind: 0.5}], sample=3)
            low, high = 0.5, 1.5
            best = None
            for _ in range(6):  # narrow down on the factor by how far off the pixels are
                steps = np.linspace(low, high, 41)
                off = [np.abs(np.asarray(enhance(image).enhance(float(s))).astype(int) - got).sum() for s in steps]
                best = int(np.argmin(off))
                if off[best] == 0:
                    break
                low, high = steps[max(0, best - 1)], steps[min(40, best + 1)]
            self.assertEqual(off[best], 0, kind)
        for sample in range(3):
            got = self.driver.run(data, [decode(), size, {"op": "color_jitter", "hue": 0.5}], sample=sample)
            hsv = np.asarray(image.convert("HSV"))
            shifted = [hsv + np.uint8([shift, 0, 0]) for shift in range(256)]
            matches = [np.array_equal(Image.fromarray(s, "HSV").convert("RGB"), got) for s in shifted]
            self.assertTrue(any(matches), "hue")

    def test_array_files_are_as_numpy_reads_them(self):
        def saved(values):
            file = io.BytesIO()
            np.save(file, values)
            return file.getvalue()

        for kind in ("b1", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8"):
            for shape in ((), (1,), (7,), (2, 3), (3, 1, 4), (2, 2, 2, 2)):
                for endian in "<>":
                    size = int(np.prod(shape)) * np.dtype(kind).itemsize
                    raw = self.generator.integers(0, 2 if kind == "b1" else 120, size, dtype=np.uint8)
                    values = raw.view(np.dtype(kind).newbyteorder(endian)).reshape(shape)
                    op = {
  "op" : "parse_npy", "field" : "image", "dtype" : values.dtype.name, "shape" : shape}
                    for order in "CF":
                        got = self.driver.run(saved(np.asarray(values, order=order)), [op])
                        self.assertEqual(got.tobytes(), values.astype(values.dtype.newbyteorder("=")).tobytes(),
                                         (kind, shape, endian, order))
        op = {
  "op" : "parse_npy", "field" : "image", "dtype" : "float32", "shape" : [1]}
        for values in (np.array([None]), np.zeros(1, "f4,i4"), np.zeros(1, "M8[s]"), np.zeros(1, "U3")):
            self.assertEqual(self.driver.run(saved(values), [op]), "data_loss", values.dtype)

    def test_numbers_of_json_are_as_python_reads_them(self):
        texts = ["0", "-0", "7", "-9223372036854775808", "9223372036854775807", "1.5", "-2e-3", "1E5", "0.1",
                 "123456789.123456789", "5e-324", "1.7976931348623157e308", "3.4028234e38", "1e22", "1e23"]
        for text in texts:
            for dtype in ("int64", "float32", "float64"):
                document = '{"x": 1, "a": {"b": [2, %s]}, "a": {"b": [3, %s]}}' % (text, text)
                want = json.loads(document)["a"]["b"][1]
                fields = [{"pointer": "/a/b/1", "name": "image", "dtype": dtype, "shape": []}]
                got = self.driver.run(document.encode(), [{"op": "parse_json", "field": "image", "fields": fields}])
                if (dtype == "int64" and isinstance(want, float)) or (dtype == "float32" and abs(want) > 3.41e38):
                    self.assertEqual(got, "data_loss", (text, dtype))
                else:
                    self.assertEqual(got, np.array(want, dtype), (text, dtype))

    def test_examples_are_as_protobuf_reads_them(self):
        example_type = example_message()
        features = [{"key": "i", "name": "i", "dtype": "int64", "shape": [2]},
                    {"key": "f", "name": "f", "dtype": "float32", "shape": [3]},
                    {"key": "b", "name": "b", "dtype": "bytes", "shape": []}]
        kinds = {"i": ("int64_list", 2), "f": ("float_list", 3), "b": ("bytes_list", 1)}
        picture_bytes = encoded(Image.fromarray(picture(self.generator, 8, 6, 3)), "PNG")
        accepted = 0
        for _ in range(300):
            pieces = []  # messages written one after the other are merged
            for _ in range(self.numbers.choice([1, 1, 2])):
                example = example_type()
                for key in self.numbers.sample(["i", "f", "b", "x", "y"], self.numbers.randint(3, 5)):
                    feature = example.features.feature[key]
                    kind, count = kinds.get(key, ("int64_list", 4))
                    if self.numbers.random() < 0.05:
                        kind = self.numbers.choice(["int64_list", "float_list", "bytes_list"])
                    if self.numbers.random() < 0.05:
                        count = self.numbers.randint(0, 4)
                    value = {
                        "int64_list": lambda: self.numbers.randint(-2**63, 2**63 - 1) >> self.numbers.randint(0, 63),
                        "float_list": lambda: self.numbers.uniform(-1e9, 1e9),
                        "bytes_list": lambda: picture_bytes}[kind]
                    getattr(feature, kind).value.extend(value() for _ in range(count))
                    if count == 0:
                        getattr(feature, kind).SetInParent()
                pieces.append(example.SerializeToString())
            data = b"".join(pieces)
            merged = example_type.FromString(data).features.feature
            good = all(key in merged and merged[key].WhichOneof("kind") == kind and
                       len(getattr(merged[key], kind).value) == count for key, (kind, count) in kinds.items())
            got = self.driver.run_all(data, [{"op": "parse_example", "field": "image", "features": features},
                                             decode(field="b"), {"op": "center_crop", "height": 6, "width": 8}])
            if not good:
                self.assertEqual(got, "data_loss")
                continue
            accepted += 1
            np.testing.assert_array_equal(got["i"], merged["i"].int64_list.value)
            np.testing.assert_array_equal(got["f"], np.float32(merged["f"].float_list.value))
            self.assertEqual(got["b"].shape, (6, 8, 3))
        self.assertGreater(accepted, 60)


def example_message():
    """The class of tf.train.Example, made of its definition."""
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="example.proto", package="t", syntax="proto3")

    def message(name, *fields, parent=None):
        made = (parent.nested_type if parent else file.message_type).add(name=name)
        for number, (label, kind, field_name, type_name) in enumerate(fields, 1):
            made.field.add(name=field_name, number=number, label=label, type=kind, type_name=type_name)
        return made

    many, one = field.LABEL_REPEATED, field.LABEL_OPTIONAL
    message("BytesList", (many, field.TYPE_BYTES, "value", None))
    message("FloatList", (many, field.TYPE_FLOAT, "value", None))
    message("Int64List", (many, field.TYPE_INT64, "value", None))
    feature = message("Feature", *((one, field.TYPE_MESSAGE, name, type_name) for name, type_name in (
        ("bytes_list", ".t.BytesList"), ("float_list", ".t.FloatList"), ("int64_list", ".t.Int64List"))))
    feature.oneof_decl.add(name="kind")
    for member in feature.field:
        member.oneof_index = 0
    features = message("Features", (many, field.TYPE_MESSAGE, "feature", ".t.Features.FeatureEntry"))
    entry = message("FeatureEntry", (one, field.TYPE_STRING, "key", None),
                    (one, field.TYPE_MESSAGE, "value", ".t.Feature"), parent=features)
    entry.options.map_entry = True
    message("Example", (one, field.TYPE_MESSAGE, "features", ".t.Features"))
    pool = descriptor_pool.DescriptorPool()
    descriptor = pool.Add(file) or pool.FindFileByName(file.name)
    return message_factory.MessageFactory(pool).GetPrototype(descriptor.message_types_by_name["Example"])


if __name__ == "__main__":
    unittest.main()
