#!/usr/bin/env python3
"""What `forebay bench store` advises, against an exhaustive sweep, on two unlike servers.

    bench/store_advice.py [--rounds 7] [--seconds 3] [--server near|far|both] [--groups 100]

"far" is `forebay-faults` over a folder, each first byte after a lognormal time (median 30 ms, p99
110 ms): more requests in flight pay for long. "near" is nginx without latency: a few suffice. Both
are behind a link of --rate (root makes it, with iproute2), as stores are; without one, client and
server would share what two cores can copy, which is another rate in every run. The sweep measures
each range with each depth; the best five of it and the advised cell are then measured in turns.
Target: the advised one reaches 0.95 of the best one's rate.

The slowest of 7, 64 and 512 as cells of the bench estimate it, against the slowest of groups of so
many reads that began together or one after the other, in runs of their own that take turns with
them. Target: within 5%.
"""

import argparse
import contextlib
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "peers"))
import link as link_to  # noqa: E402
import range_server  # noqa: E402

BUILD = HERE.parent / "build" / "bench"
CLI = os.environ.get("FOREBAY_CLI", str(HERE.parent / ".venv" / "bin" / "forebay"))
FAULTS = os.environ.get("FOREBAY_FAULTS", str(BUILD / "testing" / "forebay-faults"))
GROUPS = BUILD / "bench" / "store_groups"
LATENCY = "lognormal:median=30ms,p99=110ms"
DATA_BYTES = 256 << 30  # no place is read twice
# A hole of it is no page of any cache, which the kernel would have to make and to free again.
MEMORY = "/dev/shm"
RANGES = [64 << 10, 256 << 10, 1 << 20, 4 << 20, 8 << 20, 16 << 20, 32 << 20]
DEPTHS = [4, 8, 16, 32, 64, 128, 256, 512, 1024]
BUFFER_BYTES = 2 << 30
TURNS = {"far": 4, "near": 24}  # near, what else the machine does is all of the tail
ENVIRONMENT = {**{name: value for name, value in os.environ.items() if not name.startswith("AWS_")},
               "AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench",
               "AWS_REGION": "us-east-1"}


def make_data(folder):
    folder.chmod(0o755)  # nginx's workers are another user's
    (folder / "bench").mkdir()
    with (folder / "bench" / "data").open("wb") as file:
        file.truncate(DATA_BYTES)


@contextlib.contextmanager
def far(data, link):
    process = subprocess.Popen([*link.prefix, FAULTS, "--root", data, "--latency", LATENCY,
                                "--listen", f"{link.address}:0", "--seed",
                                str(random.randrange(1 << 30))], stdout=subprocess.PIPE, text=True)
    try:
        yield json.loads(process.stdout.readline())["endpoint"]
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def near(data, link):
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder).chmod(0o755)
        with range_server.RangeServer(folder, link=link) as server:
            (server.bucket_folder / "data").symlink_to(data / "bench" / "data")
            yield server.plain


@contextlib.contextmanager
def served(server, rate):
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder, link_to.Link(rate) as link:
        make_data(pathlib.Path(folder))
        with {"near": near, "far": far}[server](pathlib.Path(folder), link) as endpoint:
            yield endpoint


def bench(endpoint, *flags):
    done = subprocess.run([CLI, "--endpoint-url", endpoint, "bench", "store", "s3://bench/data",
                           "--json", *flags], env=ENVIRONMENT, check=True, capture_output=True,
                          text=True, timeout=600)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return ([line for line in lines if line["kind"] == "cell"],
            [line for line in lines if line["kind"] == "advice"])


def shape_of(line):
    return line["range_bytes"], line["inflight"]


def measure(endpoint, shape, seconds):
    """The second of two: connections that are new are slower, and a run keeps its own for hours."""
    cells, _ = bench(endpoint, "--range", str(shape[0]), "--inflight", f"{shape[1]},{shape[1]}",
                     "--seconds", str(seconds))
    return cells[1]


def name(shape):
    size = f"{shape[0] >> 20} MiB" if shape[0] >= 1 << 20 else f"{shape[0] >> 10} KiB"
    return f"{size} x {shape[1]}"


def advice_ratio(server, endpoint, options):
    _, advice = bench(endpoint)
    advised = shape_of(advice[0])
    sweep = {}
    for size in RANGES:
        for depth in DEPTHS:
            if size * depth <= BUFFER_BYTES:
                sweep[size, depth] = measure(endpoint, (size, depth), 1)["steady_gb_per_s"]
    finalists = sorted(sweep, key=sweep.get, reverse=True)[:5]
    print(f"{server}: advises {name(advised)}; best of {len(sweep)} swept: "
          + ", ".join(f"{name(shape)} {sweep[shape]:.2f} GB/s" for shape in finalists), flush=True)
    rates = {shape: [] for shape in {advised, *finalists}}
    for _ in range(options.rounds):
        order = list(rates)
        random.shuffle(order)
        for shape in order:
            rates[shape].append(measure(endpoint, shape, options.seconds)["steady_gb_per_s"])
    medians = {shape: statistics.median(of) for shape, of in rates.items()}
    best = max(medians, key=medians.get)
    print(f"{server}: advised {medians[advised]:.3f} GB/s, best {name(best)} {medians[best]:.3f} "
          f"GB/s: {medians[advised] / medians[best]:.3f}, target 0.95 (medians of "
          f"{options.rounds})", flush=True)


def report(server, what, told, measured):
    """Of each turn's mean the mean, of each turn's median the median: one with a pause of seconds in
    it is one of them."""
    for middle in (statistics.mean, statistics.median):
        key = middle.__name__
        was = middle(middle(groups) for groups in measured)
        said = middle(one[key] for one in told)
        print(f"{server}: slowest of {what}, {key}: told {said:.2f} ms, measured {was:.2f} ms of "
              f"{sum(map(len, measured))} groups: {said / was:.3f}, target 0.95 to 1.05", flush=True)


def took(endpoint, size, depth, requests, runs=1):
    done = subprocess.run([GROUPS, endpoint, "s3://bench/data", str(size), str(depth),
                           str(requests), str(runs)], env=ENVIRONMENT, check=True,
                          capture_output=True, text=True, timeout=600)
    reads = [line.split() for line in done.stdout.splitlines()]
    return [(int(run), float(began), 1e3 * float(lasted)) for run, began, lasted in reads]  # ms


def slowest(server, endpoint, options):
    size, depth = 64 << 10, 64
    turns = TURNS[server]
    enough = 512 * max(25, options.groups // turns)
    told = []
    rows = {}
    for _ in range(turns):  # what else the machine does changes from minute to minute
        cells, _ = bench(endpoint, "--range", str(size), "--inflight", str(depth), "--requests",
                         str(enough))
        told.append(cells[0]["slowest_of_ms"])
        reads = [lasted for _, _, lasted in sorted(took(endpoint, size, depth, enough))]
        for n in (7, 64, 512):
            rows.setdefault(f"{n} in a row", []).append(
                [max(reads[i:i + n]) for i in range(0, len(reads) - n + 1, n)])
            if server == "near":
                continue  # how long a burst takes there is how long its queue is
            runs = {}
            groups = max(8, options.groups * (1 if n == 512 else 8) // turns)
            for run, _, lasted in took(endpoint, size, n, n, groups + 1):
                runs.setdefault(run, []).append(lasted)
            del runs[0]  # which connects
            rows.setdefault(f"{n} together", []).append([max(of) for of in runs.values()])
    for what, of in rows.items():
        n = what.split()[0]
        report(server, what, [one[n] for one in told], of)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--server", choices=["near", "far", "both"], default="both")
    parser.add_argument("--groups", type=int, default=100)
    parser.add_argument("--rate", default="5gbit", help="of the link, as tc writes it")
    parser.add_argument("--only", choices=["advice", "slowest"])
    options = parser.parse_args()
    for server in ("far", "near"):
        if options.server not in (server, "both"):
            continue
        with served(server, options.rate) as endpoint:
            if options.only != "slowest":
                advice_ratio(server, endpoint, options)
            if options.only != "advice":
                slowest(server, endpoint, options)


if __name__ == "__main__":
    main()
