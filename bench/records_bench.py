"""Records of several formats through `fb.Loader`, per CPU second: what is beside the decoders.

usage: records_bench.py FOLDER [--photos FILES] [--rounds N] [--seconds S] [--only NAME]

FOLDER is filled once: tar, TFRecord and RecordIO shards of the same pictures (FILES, as
image_peers.py --make leaves them in FOLDER/files; else random bytes of 100 KB), TFRecord shards of tf.train.Example
with 9 features (150 bytes), and a file of 100 M 16-bit tokens. Local files, in order and in the
page cache, batches of 64 (tokens: 8, small records: 4096); each in a process of its own, alternating
rounds, medians. CPU seconds are those of the whole process, all threads. Checksums are verified:
TFRecord's, and what `forebay pack` noted of the others. Beside it, in the same rounds: of records the
bare loop of records_floor.cc over the same shards, from files (examples: parsed, not copied), and of
NAME-kept, where the epoch lies in the loader's memory, from memory; for tokens the bare conversion of
one window after the other by NumPy.
"""

import argparse
import json
import os
import pathlib
import statistics
import struct
import subprocess
import sys
import time

SEED = 1
TOKENS = 100_000_000
WINDOW = 4096
KEPT = "-kept"


def table_crc32c():
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


def masked_crc32c(data, table):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ table[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def varint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


def field(number, payload):
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def example(i):
    """5 integers and 4 float vectors: about 150 bytes."""
    entries = b""
    for k in range(9):
        if k < 5:
            feature = field(3, field(1, varint(i * 31 + k)))
        else:
            feature = field(2, field(1, struct.pack("<2f", i + k, i - k)))
        entries += field(1, field(1, b"f%d" % k) + field(2, feature))
    return field(1, entries)


def make_examples(path, count):
    table = table_crc32c()
    frames = []
    for i in range(256):
        body = example(i)
        length = struct.pack("<Q", len(body))
        frames.append(
            length
            + struct.pack("<I", masked_crc32c(length, table))
            + body
            + struct.pack("<I", masked_crc32c(body, table))
        )
    with open(path, "wb") as out:
        for _ in range(count // 256):
            out.write(b"".join(frames))


def make(folder, photos, forebay):
    import numpy as np

    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "tokens").exists():
        made = folder / "tokens.new"
        made.mkdir(exist_ok=True)
        random = np.random.default_rng(SEED)
        random.integers(0, 50257, TOKENS, dtype=np.uint16).tofile(made / "train.bin")
        made.rename(folder / "tokens")
        subprocess.run(
            [forebay, "index", folder / "tokens", "--format", "tokens", "--dtype", "uint16"],
            check=True,
            timeout=600,
            stdout=subprocess.DEVNULL,
        )
    if not (folder / "example").exists():
        made = folder / "example.new"
        made.mkdir(exist_ok=True)
        for shard in range(4):
            make_examples(made / f"{shard}.tfrecord", 1 << 18)
        made.rename(folder / "example")
        command = [forebay, "index", folder / "example"]
        subprocess.run(command, check=True, timeout=600, stdout=subprocess.DEVNULL)
    if photos is None:
        photos = folder / "files"
        if not photos.exists():
            photos.mkdir()
            random = np.random.default_rng(SEED)
            for i in range(2000):
                (photos / f"{i:06}.jpg").write_bytes(random.bytes(100_000))
    for kind, to in (("tar", "tar"), ("recordio", "recordio"), ("tfrecord", "tfrecord")):
        if (folder / kind).exists():
            continue
        # TFRecord of bare payloads: from RecordIO, whose records are nothing else.
        source = folder / "recordio" if kind == "tfrecord" else photos
        command = [forebay, "pack", source, folder / kind, "--to", to]
        if kind != "tfrecord":
            command += ["--format", "files", "--column", "jpg"]
        subprocess.run(command, check=True, timeout=600, stdout=subprocess.DEVNULL)


def records(folder, name):
    """The data set, its loader's options, and the bytes of its records."""
    import forebay as fb

    if name == "tokens":
        ops = [fb.ops.tokens(WINDOW)]
        data = fb.Records(str(folder / name))
        return data, {"batch_size": 8, "ops": ops}
    data = fb.Records(str(folder / name))
    if name == "example":
        features = {f"f{k}": "int64" if k < 5 else ("float32", (2,)) for k in range(9)}
        return data, {"batch_size": 4096, "ops": [fb.ops.parse_example(features)]}
    return data, {"batch_size": 64}


def converted(folder, windows):
    """Tokens per second of the bare loop: 8 windows to int64, into a kept buffer."""
    import numpy as np

    tokens = np.memmap(folder / "tokens" / "train.bin", np.uint16, "r")
    out = np.empty((8, WINDOW), np.int64)
    total, start = 0, 0.0
    for lap in range(2):  # the first brings the file's pages in
        start = time.process_time()
        for i in range(windows):
            out[i % 8] = tokens[i * WINDOW : (i + 1) * WINDOW]
        total = windows * WINDOW / (time.process_time() - start)
    return total


def run(folder, name, seconds):
    import forebay as fb

    kept = name.endswith(KEPT)
    name = name.removesuffix(KEPT)
    data, options = records(folder, name)
    memory = "1GiB" if kept else "256MiB"
    loader = fb.Loader(data, shuffle=False, seed=SEED, memory=memory, **options)
    samples, warm = 0, False
    began = cpu = start = time.perf_counter()
    while time.perf_counter() - began < seconds + 1:
        for batch in loader:
            if not warm and time.perf_counter() - began > 1:
                warm, samples = True, 0
                cpu, start = time.process_time(), time.perf_counter()
            samples += len(batch["_sample"])
            if time.perf_counter() - began > seconds + 1:
                break
    cpu, wall = time.process_time() - cpu, time.perf_counter() - start
    found = {"per_cpu_s": samples / cpu, "per_s": samples / wall}
    if name == "tokens":
        found = {key: value * WINDOW for key, value in found.items()}
        found["of_bare"] = found["per_cpu_s"] / converted(folder, 8192)
    elif name != "example":
        found["gb_per_cpu_s"] = found["per_cpu_s"] * bytes_per_sample(folder / name) / 1e9
    print(json.dumps(found), flush=True)
    os._exit(0)


def bytes_per_sample(folder):
    packed = json.loads((folder / ".forebay" / "pack.json").read_text())
    return sum(shard["bytes"] for shard in packed["shards"]) / packed["samples"]


def floor(args, name, found):
    """Of the bare loop GB (examples: million records) per CPU second, and our share of them."""
    command = [args.floor, args.folder / name.removesuffix(KEPT), "5"]
    ours = found.get("gb_per_cpu_s")
    if name == "example":
        command, ours = [*command, name], found["per_cpu_s"] / 1e6
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    bare = json.loads(done.stdout)["memory" if name.endswith(KEPT) else "files"]
    return {"floor": bare, "of_floor": ours / bare}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--photos", type=pathlib.Path)
    parser.add_argument("--forebay", default="build/release/cli/forebay")
    parser.add_argument("--floor", default="build/bench/bench/records_floor")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--only", default="tar,tfrecord,recordio,tar-kept,tfrecord-kept,recordio-kept,example,tokens")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.run:
        run(args.folder, args.run, args.seconds)
    make(args.folder, args.photos, args.forebay)
    names = args.only.split(",")
    found = {name: [] for name in names}
    for _ in range(args.rounds):
        for name in names:
            command = [sys.executable, __file__, str(args.folder), "--run", name]
            command += ["--seconds", str(args.seconds)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=300)
            if done.returncode != 0:
                sys.exit(f"records_bench: {name}: {done.stderr[-2000:]}")
            found[name].append(json.loads(done.stdout.strip().splitlines()[-1]))
            if name != "tokens" and pathlib.Path(args.floor).exists():
                found[name][-1].update(floor(args, name, found[name][-1]))
    for name, runs in found.items():
        middle = {key: statistics.median(one[key] for one in runs) for key in runs[0]}
        print(f"{name:13}", ", ".join(f"{key} {value:.4g}" for key, value in middle.items()))


if __name__ == "__main__":
    main()
