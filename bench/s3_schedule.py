#!/usr/bin/env python3
"""Many reads behind S3's latency: wall time against the ideal schedule of the same first bytes.

    bench/s3_schedule.py [--in-flight 512] [--requests 2000] [--rounds 7]

`forebay-faults` serves a folder, each GET's first byte after a lognormal time (median 130 ms, p99
300 ms). The ideal schedule begins each request, in the order in which they came, as soon as one of
the places in flight is free, and takes what was drawn for it. Target: at most 1.03 x the ideal.
"""

import argparse
import heapq
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
BENCH = ROOT / "build" / "bench" / "bench" / "s3_bench"
FAULTS = os.environ.get("FOREBAY_FAULTS", str(ROOT / "build" / "bench" / "testing" / "forebay-faults"))
LATENCY = "lognormal:median=130ms,p99=300ms"
OBJECT_BYTES = 256 << 20
RANGE_BYTES = 64 << 10


def ideal_s(drawn_ms, places):
    """List scheduling: the n-th request begins when the first place is free."""
    free = [0.0] * places
    for one in drawn_ms:
        heapq.heapreplace(free, free[0] + one / 1e3)
    return max(free)


def measure(endpoint, control, in_flight, requests, seed):
    work = {"endpoint": endpoint, "bucket": "bench", "key": "large", "object_bytes": OBJECT_BYTES,
            "range_bytes": RANGE_BYTES, "in_flight": in_flight, "requests": requests, "seed": seed}
    environment = {**{name: value for name, value in os.environ.items()
                      if not name.startswith("AWS_")},
                   "AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench",
                   "AWS_REGION": "us-east-1"}
    done = subprocess.run([BENCH, json.dumps(work)], env=environment, check=True,
                          capture_output=True, text=True)
    result = json.loads(done.stdout)
    with urllib.request.urlopen(f"{control}/log?after=0&limit=65536", timeout=10) as answer:
        log = [entry["drawn_ms"] for entry in json.load(answer)["requests"]
               if entry["drawn_ms"] is not None]
    return result["seconds"] / ideal_s(log[-requests:], in_flight), result, len(log)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--in-flight", type=int, default=512)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        bucket = pathlib.Path(folder) / "bench"
        bucket.mkdir()
        with (bucket / "large").open("wb") as file:
            file.truncate(OBJECT_BYTES)
        for number in range(options.rounds):
            faults = subprocess.Popen(
                [FAULTS, "--root", folder, "--latency", LATENCY, "--seed", str(number), "--control",
                 "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
            try:
                said = json.loads(faults.stdout.readline())
                ratio, result, logged = measure(said["endpoint"], said["control"],
                                                options.in_flight, options.requests, number)
            finally:
                faults.kill()
                faults.wait()
            ratios.append(ratio)
            print(f"round {number + 1}: {result['seconds']:.3f} s, {ratio:.3f} x the ideal "
                  f"({logged} requests)", file=sys.stderr, flush=True)
    print(f"{options.requests} reads of {RANGE_BYTES >> 10} KiB, {options.in_flight} in flight: "
          f"{statistics.median(ratios):.3f} x the ideal schedule (median of {len(ratios)}, "
          f"{min(ratios):.3f} to {max(ratios):.3f}), target 1.03")


if __name__ == "__main__":
    main()
