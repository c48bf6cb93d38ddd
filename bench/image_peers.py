"""Photographs from tar shards: ours beside DALI, Grain, webdataset and torchvision.

usage: image_peers.py FOLDER [--make GLOB...] [--images N] [--seconds S] [--peer NAME=PYTHON ...]

--make cuts N JPEGs of 500x375, about 100 KB, out of the pictures that the globs find, and writes
them to FOLDER as tar shards (FOLDER/tar) and as files by class (FOLDER/files). Each peer runs in a
process of its own, with the Python given for it (this one's otherwise), alternating, --rounds times;
medians. The work: decode, random resized crop to 224 (antialiased, bilinear), flip, normalise, float32
CHW, batches of 64, all cores. Printed: images a second, first batch after its imports, peak memory
(all processes), and our rate over each.
"""

import argparse
import glob
import io
import json
import os
import resource
import statistics
import subprocess
import sys
import tarfile
import time

BATCH, SIDE = 64, 224
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
CORES = len(os.sched_getaffinity(0))


def make(folder, patterns, count):
    import numpy as np
    import PIL.Image as PIL

    PIL.MAX_IMAGE_PIXELS = None
    paths = sorted(p for pattern in patterns for p in glob.glob(pattern, recursive=True))
    pictures = [PIL.open(p).convert("RGB") for p in paths[:24]]
    pictures = [p for p in pictures if min(p.size) >= 600]
    if not pictures:
        sys.exit("image_peers: no picture of 600 pixels or more; give --make '/usr/share/**/*.jpg'")
    rng = np.random.default_rng(1)
    os.makedirs(f"{folder}/tar", exist_ok=True)
    shards = [tarfile.open(f"{folder}/tar/{i:03}.tar", "w", format=tarfile.USTAR_FORMAT) for i in range(4)]
    for n in range(count):
        data = b""
        for _ in range(40):  # sky and walls are left out
            picture = pictures[int(rng.integers(len(pictures)))]
            width = int(rng.integers(500, min(picture.width, picture.height * 4 // 3, 700)))
            x = int(rng.integers(picture.width - width + 1))
            y = int(rng.integers(picture.height - width * 3 // 4 + 1))
            part = picture.crop((x, y, x + width, y + width * 3 // 4)).resize((500, 375))
            out = io.BytesIO()
            part.save(out, "JPEG", quality=int(rng.integers(93, 98)), subsampling=2)
            data = max(data, out.getvalue(), key=len)
            if len(data) > 75_000:
                break
        label = n % 10
        os.makedirs(f"{folder}/files/{label}", exist_ok=True)
        with open(f"{folder}/files/{label}/{n:06}.jpg", "wb") as file:
            file.write(data)
        shard = shards[n * len(shards) // count]
        for name, part in ((f"{n:06}.jpg", data), (f"{n:06}.cls", str(label).encode())):
            member = tarfile.TarInfo(name)
            member.size = len(part)
            shard.addfile(member, io.BytesIO(part))
    for shard in shards:
        shard.close()


def forebay(folder):
    import forebay as fb

    ops = [
        fb.ops.decode_image("jpg"),
        fb.ops.random_resized_crop(SIDE),
        fb.ops.random_horizontal_flip(),
        fb.ops.normalize(MEAN, STD),
        fb.ops.to_chw(),
        fb.ops.parse_int("cls"),
        fb.ops.select("jpg", "cls"),
    ]
    yield
    loader = fb.Loader(fb.Records(f"{folder}/tar"), batch_size=BATCH, ops=ops, seed=1,
                       memory="256MiB", decode_threads=CORES)  # fmt: skip
    while True:
        for batch in loader:
            yield len(batch["cls"])


def v2_ops():
    import torch
    from torchvision.transforms import v2

    return v2.Compose([
        v2.PILToTensor(), v2.RandomResizedCrop(SIDE, antialias=True), v2.RandomHorizontalFlip(),
        v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD),
    ])  # fmt: skip


def torchvision(folder):
    import torch
    from torchvision.datasets import ImageFolder

    torch.set_num_threads(1)
    transform = v2_ops()
    yield
    loader = torch.utils.data.DataLoader(
        ImageFolder(f"{folder}/files", transform), BATCH, shuffle=True, num_workers=CORES,
        drop_last=True, persistent_workers=True,
    )  # fmt: skip
    while True:
        for images, _ in loader:
            yield len(images)


def webdataset(folder):
    import torch
    import webdataset as wds

    torch.set_num_threads(1)
    transform = v2_ops()
    yield
    data = (
        wds.WebDataset(sorted(glob.glob(f"{folder}/tar/*.tar")), shardshuffle=4, empty_check=False)
        .shuffle(1000).decode("pil").to_tuple("jpg", "cls").map_tuple(transform, int).batched(BATCH)
    )  # fmt: skip
    loader = wds.WebLoader(data, batch_size=None, num_workers=CORES)
    while True:
        for images, _ in loader:
            yield len(images)


def dali(folder):
    import nvidia.dali.fn as fn
    from nvidia.dali import pipeline_def, types

    @pipeline_def(batch_size=BATCH, num_threads=CORES, device_id=None)
    def pipeline():
        jpegs, labels = fn.readers.file(file_root=f"{folder}/files", random_shuffle=True, name="r")
        images = fn.decoders.image_random_crop(jpegs, device="cpu", output_type=types.RGB)
        images = fn.resize(images, size=[SIDE, SIDE], interp_type=types.INTERP_LINEAR, antialias=True)
        return fn.crop_mirror_normalize(
            images, mirror=fn.random.coin_flip(), dtype=types.FLOAT, output_layout="CHW",
            mean=[255 * m for m in MEAN], std=[255 * s for s in STD],
        ), labels  # fmt: skip

    yield
    pipe = pipeline()
    pipe.build()
    while True:
        images, _ = pipe.run()
        yield len(images)


def grain(folder):
    import cv2
    import grain.python as pygrain
    import numpy as np

    cv2.setNumThreads(1)
    yield
    paths = sorted(glob.glob(f"{folder}/files/*/*.jpg"))
    mean, std = (np.array(v, np.float32) for v in (MEAN, STD))

    class Transform(pygrain.RandomMapTransform):
        def random_map(self, path, rng):
            image = cv2.imread(path)
            height, width = image.shape[:2]
            area = height * width * rng.uniform(0.08, 1)
            ratio = np.exp(rng.uniform(np.log(3 / 4), np.log(4 / 3)))
            w, h = int((area * ratio) ** 0.5), int((area / ratio) ** 0.5)
            w, h = min(w, width), min(h, height)
            x, y = rng.integers(width - w + 1), rng.integers(height - h + 1)
            image = cv2.resize(image[y : y + h, x : x + w], (SIDE, SIDE), interpolation=cv2.INTER_AREA)
            if rng.random() < 0.5:
                image = image[:, ::-1]
            image = (image[:, :, ::-1].astype(np.float32) / 255 - mean) / std
            return np.ascontiguousarray(image.transpose(2, 0, 1))

    data = pygrain.MapDataset.source(paths).shuffle(1).repeat().random_map(Transform(), seed=1)
    options = pygrain.ReadOptions(num_threads=CORES, prefetch_buffer_size=128)
    for images in data.to_iter_dataset(options).batch(BATCH):
        yield len(images)


PEERS = {"forebay": forebay, "dali": dali, "grain": grain, "webdataset": webdataset, "torchvision": torchvision}


def run(name, folder, seconds):
    work = PEERS[name](folder)
    next(work)  # its imports
    start = time.perf_counter()
    next(work)
    first = time.perf_counter() - start
    next(work)
    start, images = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        images += next(work)
    rate = images / (time.perf_counter() - start)
    memory = sum(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    children = sum(_rss(int(pid)) for pid in _children())
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"rate": rate, "first_s": first, "mib": max(memory, own + children) / 1024}), flush=True)
    os._exit(0)


def _children():
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        return file.read().split()


def _rss(pid):
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("--make", nargs="+", metavar="GLOB")
    parser.add_argument("--images", type=int, default=3000)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer", nargs="+", default=[], metavar="NAME=PYTHON")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.run:
        run(args.run, args.folder, args.seconds)
    if args.make:
        make(args.folder, args.make, args.images)
    import forebay as fb

    fb.index(f"{args.folder}/tar")
    pythons = {"forebay": sys.executable} | dict(peer.split("=", 1) for peer in args.peer)
    found = {name: [] for name in pythons}
    for _ in range(args.rounds):
        for name, python in pythons.items():
            command = [python, __file__, args.folder, "--run", name, "--seconds", str(args.seconds)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=300)
            if done.returncode != 0:
                sys.exit(f"image_peers: {name}: {done.stderr[-2000:]}")
            found[name].append(json.loads(done.stdout.strip().splitlines()[-1]))
    middle = {
        name: {key: statistics.median(one[key] for one in runs) for key in runs[0]}
        for name, runs in found.items()
    }
    print(f"{'':12} images/s  first batch  peak memory  ours / it")
    for name, one in middle.items():
        ratio = middle["forebay"]["rate"] / one["rate"]
        print(f"{name:12} {one['rate']:8.0f} {one['first_s']:10.2f} s {one['mib']:9.0f} MiB {ratio:10.2f}")


if __name__ == "__main__":
    main()
