#!/usr/bin/env python3
"""Other S3 clients beside Forebay's: the same ranged GETs from the same nginx, in turns.

    bench/s3_peers.py [--rounds 7] [--clients boto3,obstore] [--shapes 8M-32-plain] [--json FILE]

Every client is one process, pinned to one core (the server has another), in an environment of its own
under build/bench/peers/, made on first use. Printed for each shape: medians of CPU seconds per GiB,
CPU microseconds per request and bytes per second, and Forebay's CPU against the best other's.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import venv

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "peers"))
import range_server  # noqa: E402

ROOT = HERE.parent
FOLDER = ROOT / "build" / "bench" / "peers"
PACKAGES = {
    "boto3": ["boto3"], "awscrt": ["awscrt"], "obstore": ["obstore"], "pyarrow": ["pyarrow"],
    "s5cmd": ["s5cmd"],
    "s3torchconnector": ["torch==2.13.0", "numpy", "s3torchconnector"],
}
# (range, in flight, requests, and of the clients that take a millisecond and more for each)
SHAPES = {"8M-32": (8 << 20, 32, 256, 256), "64K-64": (64 << 10, 64, 8000, 2000),
          "64K-1000": (64 << 10, 1000, 8000, 2000)}
SLOW = {"boto3", "s5cmd"}
TARGETS = {"8M-32-plain": 0.6, "8M-32-tls": 1.1, "64K-64-plain": 0.4, "64K-64-tls": 0.6,
           "64K-1000-plain": 0.25, "64K-1000-tls": 0.5}


def environment_of(name):
    """The client's Python; its packages are installed when they are not there."""
    folder = FOLDER / "env" / name
    python = folder / "bin" / "python"
    if not (folder / ".ready").exists():
        print(f"installing {name}", file=sys.stderr, flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *PACKAGES[name]], check=True,
                       stderr=subprocess.DEVNULL)
        (folder / ".ready").touch()
    return python


def command_of(name, work):
    if name == "forebay":
        return [str(ROOT / "build" / "bench" / "bench" / "s3_bench"), json.dumps(work)]
    return [str(environment_of(name)), str(HERE / "peers" / f"{name}_client.py"), json.dumps(work)]


def measure(name, work, core):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    environment |= {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_EC2_METADATA_DISABLED": "true",
                    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
                    "AWS_CA_BUNDLE": work["ca_bundle"], "SSL_CERT_FILE": work["ca_bundle"],
                    "AWS_REGION": "us-east-1", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(["taskset", "-c", str(core), *command_of(name, work)], env=environment,
                          capture_output=True, text=True, timeout=600)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:  # obstore, measured and done, sometimes ends badly
        return {"error": (done.stderr or done.stdout).strip().splitlines()[-1:] or ["no answer"]}
    return json.loads(lines[-1])


def works(server, shape, name, seed):
    range_bytes, in_flight, requests, few = SHAPES[shape]
    size = next(key for key, value in range_server.SIZES.items() if value == range_bytes)
    objects = [f"{size}-{number}" for number in range(range_server.SMALL_OBJECTS)]
    return {"ca_bundle": server.ca_bundle, "bucket": range_server.BUCKET, "key": range_server.KEY,
            "object_bytes": range_server.OBJECT_BYTES, "objects": objects,
            "range_bytes": range_bytes, "in_flight": in_flight,
            "requests": few if name in SLOW else requests, "seed": seed}


def summary(results):
    cpu = [result["user_s"] + result["system_s"] for result in results]
    return {"version": results[0]["version"], "rounds": len(results),
            "cpu_s_per_gib": statistics.median(
                one / (result["bytes"] / 2**30) for one, result in zip(cpu, results)),
            "cpu_us_per_request": statistics.median(
                1e6 * one / result["requests"] for one, result in zip(cpu, results)),
            "bytes_per_s": statistics.median(
                result["bytes"] / result["seconds"] for result in results),
            "peak_rss_bytes": max(result["peak_rss_bytes"] for result in results)}


def show(shape, rows):
    print(f"\n{shape}")
    print(f"  {'client':28} {'CPU s/GiB':>10} {'us/request':>11} {'GB/s':>7} {'peak MB':>8}")
    for name, row in sorted(rows.items(), key=lambda item: item[1].get("cpu_s_per_gib", 1e9)):
        if "error" in row:
            print(f"  {name:28} {row['error']}")
            continue
        print(f"  {row['version']:28} {row['cpu_s_per_gib']:10.3f} {row['cpu_us_per_request']:11.1f} "
              f"{row['bytes_per_s'] / 1e9:7.2f} {row['peak_rss_bytes'] / 1e6:8.0f}")
    others = {name: row for name, row in rows.items() if name != "forebay" and "error" not in row}
    if "error" in rows.get("forebay", {"error": ""}) or not others:
        return
    best = min(others, key=lambda name: others[name]["cpu_s_per_gib"])
    fastest = max(others, key=lambda name: others[name]["bytes_per_s"])
    ours = rows["forebay"]
    print(f"  forebay: {ours['cpu_s_per_gib'] / others[best]['cpu_s_per_gib']:.2f} x the CPU of "
          f"{best} (target {TARGETS[shape]}), "
          f"{ours['bytes_per_s'] / others[fastest]['bytes_per_s']:.2f} x the throughput of {fastest}",
          flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--clients", default="forebay," + ",".join(PACKAGES))
    parser.add_argument("--shapes", default=",".join(TARGETS))
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    clients = options.clients.split(",")
    cores = sorted(os.sched_getaffinity(0))
    everything = {}
    with range_server.RangeServer(FOLDER / "nginx", core=cores[0]) as server:
        for shape in options.shapes.split(","):
            kind, _, security = shape.rpartition("-")
            results = {name: [] for name in clients}
            for number in range(options.rounds):
                for name in clients[number % len(clients):] + clients[:number % len(clients)]:
                    work = works(server, kind, name, seed=number)
                    work["endpoint"] = server.tls if security == "tls" else server.plain
                    results[name].append(measure(name, work, cores[-1]))
            rows = {}
            for name, found in results.items():
                failed = [one for one in found if "error" in one]
                rows[name] = failed[0] if failed else summary(found)
            everything[shape] = rows
            show(shape, rows)
    if options.json:
        options.json.write_text(json.dumps(everything, indent=1) + "\n")


if __name__ == "__main__":
    main()
