#!/usr/bin/env python3
"""From nothing to the first byte: `forebay cat` of 64 KiB, and `import forebay`.

    .venv/bin/python bench/startup.py [ROUNDS]

Medians of 15. `cat` from the process's start to its first byte on stdout, against a server that
answers at once (nginx, plain HTTP); the floor is the same with `/bin/true`'s start alone. Targets: 25
ms; 80 ms; peak memory of `cat` of 1 GiB at most the bytes in flight and 32 MiB.
"""

import os
import pathlib
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "peers"))
import range_server  # noqa: E402

ROOT = HERE.parent
CLI = os.environ.get("FOREBAY_CLI", str(ROOT / ".venv" / "bin" / "forebay"))


def first_byte_s(command, environment):
    started = time.perf_counter()
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as process:
        process.stdout.read(1)
        took = time.perf_counter() - started
        process.stdout.read()
    if process.returncode != 0:
        raise SystemExit(f"{command[0]} ended with {process.returncode}")
    return took


def whole_s(command, environment):
    started = time.perf_counter()
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def peak_rss_bytes(command, environment):
    child = os.posix_spawn(command[0], command, environment, file_actions=[
        (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
    _, status, usage = os.wait4(child, 0)
    if status != 0:
        raise SystemExit(f"{command[0]} ended with {status}")
    return usage.ru_maxrss * 1024


def row(name, seconds, target_ms=None):
    target = f", target {target_ms} ms" if target_ms else ""
    print(f"{name}: {1e3 * statistics.median(seconds):.1f} ms (median of {len(seconds)}, "
          f"{1e3 * min(seconds):.1f} to {1e3 * max(seconds):.1f}){target}", flush=True)


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    python = sys.executable
    with range_server.RangeServer(ROOT / "build" / "bench" / "peers" / "nginx") as server:
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("AWS_")}
        environment |= {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret",
                        "AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL_S3": server.plain,
                        "AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull}
        small = f"s3://{range_server.BUCKET}/64K-0"
        floor, cat, bare, imported = [], [], [], []
        for _ in range(rounds):
            floor.append(whole_s(["/bin/true"], environment))
            cat.append(first_byte_s([CLI, "cat", small], environment))
            bare.append(whole_s([python, "-c", "pass"], environment))
            imported.append(whole_s([python, "-c", "import forebay"], environment))
        row("/bin/true", floor)
        row("forebay cat, start to first byte", cat, 25)
        row("python -c pass", bare)
        row("python -c 'import forebay'", imported)
        row("  of which the import", [b - a for a, b in zip(bare, imported)], 80)
        large = f"s3://{range_server.BUCKET}/{range_server.KEY}"
        print(f"forebay cat of {range_server.OBJECT_BYTES >> 20} MiB: peak memory "
              f"{peak_rss_bytes([CLI, 'cat', large], environment) / 2**20:.0f} MiB")


if __name__ == "__main__":
    main()
