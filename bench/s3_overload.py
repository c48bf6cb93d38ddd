#!/usr/bin/env python3
"""Asking for 16 x the useful number of requests in flight, against the best that fewer reach.

    bench/s3_overload.py [--rounds 7] [--server near|far|both]

One process reads ranges of nginx ("near") or of `forebay-faults` with 30/110 ms to the first byte
("far"), behind a link of --rate (as in store_advice.py), with 4 to 64, or 32 to 512, requests
started at a time. The useful number is the least that gives 0.95 of the best rate. Target: 16 x as
many started at a time keep 0.95 of it.
"""

import argparse
import json
import statistics
import subprocess

import store_advice
from store_advice import BUILD, DATA_BYTES, ENVIRONMENT

BENCH = BUILD / "bench" / "s3_bench"
DEPTHS = {"near": [4, 8, 16, 32, 64], "far": [32, 64, 128, 256, 512]}
SHAPES = {"near": [(256 << 10, 20 << 10), (64 << 10, 40 << 10)], "far": [(64 << 10, 24 << 10)]}


def rate(endpoint, size, in_flight, requests, seed):
    work = {"endpoint": endpoint, "bucket": "bench", "key": "data", "object_bytes": DATA_BYTES,
            "range_bytes": size, "in_flight": in_flight, "requests": requests, "seed": seed}
    done = subprocess.run([BENCH, json.dumps(work)], env=ENVIRONMENT, check=True,
                          capture_output=True, text=True, timeout=600)
    result = json.loads(done.stdout)
    return result["bytes"] / result["seconds"] / 1e9


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--server", choices=["near", "far", "both"], default="both")
    parser.add_argument("--rate", default="5gbit", help="of the link, as tc writes it")
    options = parser.parse_args()
    for server in ("near", "far"):
        if options.server not in (server, "both"):
            continue
        with store_advice.served(server, options.rate) as endpoint:
            for size, requests in SHAPES[server]:
                overload(server, endpoint, size, requests, options.rounds)


def overload(server, endpoint, size, requests, rounds):
    first = {depth: statistics.median(rate(endpoint, size, depth, max(requests // 8, 2 * depth), i)
                                      for i in range(3)) for depth in DEPTHS[server]}
    best = max(first.values())
    useful = min(depth for depth in first if first[depth] >= 0.95 * best)
    top = max(first, key=first.get)
    rates = {depth: [] for depth in {useful, top, 16 * useful}}
    for number in range(rounds):
        for depth in rates:
            rates[depth].append(rate(endpoint, size, depth, requests, 100 + number))
    medians = {depth: statistics.median(of) for depth, of in rates.items()}
    reached = medians[16 * useful] / max(medians[useful], medians[top])
    print(f"{server}, {size >> 10} KiB: useful {useful}, best at {top}; "
          + ", ".join(f"{depth}: {medians[depth]:.3f} GB/s" for depth in sorted(medians))
          + f"; 16 x keeps {reached:.3f}, target 0.95 (medians of {rounds})", flush=True)


if __name__ == "__main__":
    main()
