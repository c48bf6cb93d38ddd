"""Photographs as single objects behind a store's latency: their rate over that of tar shards.

usage: objects_bench.py FOLDER [--faults PROGRAM] [--latency L ...] [--rounds N] [--seconds S]

FOLDER as image_peers.py --make leaves it (FOLDER/tar, FOLDER/files). The objects are served by
forebay-faults on the same cores; the tar shards are local files. Same ops, batches of 64, no option
touched but memory=. Alternating rounds, medians: images a second, first batch after import, peak
memory, and the objects' rate over the tar rate of the same round.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time

BATCH = 64


def run(uri, columns, field, catalog, seconds):
    import forebay as fb

    ops = [
        fb.ops.decode_image(field),
        fb.ops.random_resized_crop(224),
        fb.ops.random_horizontal_flip(),
        fb.ops.normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
        fb.ops.to_chw(),
    ]
    start = time.perf_counter()
    loader = fb.Loader(
        fb.Records(uri, columns=columns, catalog=catalog),
        batch_size=BATCH,
        ops=ops,
        seed=1,
        memory="256MiB",
    )
    batches = forever(loader)
    next(batches)
    first = time.perf_counter() - start
    images, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        images += len(next(batches)["_sample"])
    rate = images / (time.perf_counter() - start)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"rate": rate, "first_s": first, "mib": memory}), flush=True)
    os._exit(0)


def forever(loader):
    while True:
        yield from loader


def measured(uri, columns, field, catalog, seconds):
    command = [sys.executable, __file__, uri, "--run", columns, field, catalog]
    command += ["--seconds", str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        sys.exit(f"objects_bench: {uri}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def serve(program, folder, latency):
    server = subprocess.Popen(
        [program, "--root", folder, "--latency", latency, "--seed", "1"], stdout=subprocess.PIPE
    )
    return server, json.loads(server.stdout.readline())["endpoint"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("--faults", default="build/release/testing/forebay-faults")
    parser.add_argument(
        "--latency",
        nargs="+",
        default=["lognormal:median=30ms,p99=110ms", "lognormal:median=130ms,p99=340ms"],
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--run", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.run:
        columns, field, catalog = args.run
        run(args.folder, columns.split(","), field, catalog, args.seconds)
    import forebay as fb

    fb.index(f"{args.folder}/tar")
    catalogs = {name: f"{args.folder}/{name}.fbc" for name in ("tar", "files")}
    os.replace(f"{args.folder}/tar/.forebay/catalog.fbc", catalogs["tar"])
    for latency in args.latency:
        server, endpoint = serve(args.faults, args.folder, latency)
        environment = {
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ACCESS_KEY_ID": "any",
            "AWS_SECRET_ACCESS_KEY": "any",
            "AWS_REGION": "us-east-1",
        }
        found = {"tar": [], "objects": []}
        try:
            os.environ |= environment
            fb.index("s3://files/", format="files", out=catalogs["files"])
            for _ in range(args.rounds):
                tar = measured(
                    f"{args.folder}/tar", "jpg,cls", "jpg", catalogs["tar"], args.seconds
                )
                objects = measured(
                    "s3://files/", "bytes,label", "bytes", catalogs["files"], args.seconds
                )
                found["tar"].append(tar)
                found["objects"].append(objects | {"of_tar": objects["rate"] / tar["rate"]})
        finally:
            server.terminate()
            server.wait(timeout=10)
        print(latency)
        for name, runs in found.items():
            middle = {key: statistics.median(one[key] for one in runs) for key in runs[0]}
            print("  " + name, ", ".join(f"{key} {value:.2f}" for key, value in middle.items()))


if __name__ == "__main__":
    main()
