#!/usr/bin/env python3
"""build/bench/bench/http_bench with nginx beside it, each on a core of its own.

    bench/http_bench.py [ROUNDS [SHAPE [lean]]]
"""

import os
import pathlib
import resource
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "peers"))
import range_server  # noqa: E402

ROOT = HERE.parent
PROGRAM = pathlib.Path(os.environ.get("HTTP_BENCH", ROOT / "build/bench/bench/http_bench"))


def main():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536), hard))
    cores = sorted(os.sched_getaffinity(0))
    prefix = os.environ.get("HTTP_BENCH_UNDER", "").split()
    with range_server.RangeServer(ROOT / "build/bench/peers/nginx", core=cores[0]) as server:
        plain, tls = server.plain, server.tls.replace("localhost", "127.0.0.1")
        done = subprocess.run(["taskset", "-c", str(cores[-1]), *prefix, PROGRAM, plain, tls,
                               server.ca_bundle, range_server.BUCKET, *sys.argv[1:]])
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
