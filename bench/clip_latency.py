"""One clip, cold, behind S3's latency: what Forebay adds to the first byte and the decoding.

A server with lognormal latency (median 130 ms, p99 340 ms) in front of a folder; for each clip a
loader of its own that has fetched nothing (prefetch off, a fresh connection, one camera). Printed:
time of next(), of which first byte as the server drew it, of which decoding, and what is left.
Floor: first byte + decoding. Target: at most 10 ms more, at the median.

    .venv/bin/python bench/clip_latency.py [CLIPS]
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

import forebay as fb

CLI = os.environ.get("FOREBAY_CLI", ".venv/bin/forebay")
FAULTS = os.environ.get("FOREBAY_FAULTS", ".venv/bin/forebay-faults")
LATENCY = "lognormal:median=130ms,p99=340ms"


def make_video(path):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    subprocess.run(
        ["ffmpeg", "-loglevel", "error", "-f", "lavfi", "-i",
         "testsrc2=size=480x270:rate=30:duration=20,noise=alls=12:allf=t", "-c:v", "libx264",
         "-preset", "superfast", "-g", "60", "-pix_fmt", "yuv420p", "-movflags", "+faststart",
         path],
        check=True)


def get(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)


def first_bytes(control, after):
    """The first-byte times, in ms, of the ranged GETs behind request number `after`."""
    log = get(f"{control}/log?after={after}&limit=1000")
    return [e for e in log["requests"] if e["method"] == "GET"]


def measure(clips, endpoint, control, folder):
    os.environ.update(AWS_ENDPOINT_URL=endpoint, AWS_ACCESS_KEY_ID="bench",
                      AWS_SECRET_ACCESS_KEY="bench", AWS_REGION="us-east-1")
    source = "s3://bench/drives/"
    # The server only reads: the catalog is written beside it, straight into the folder.
    subprocess.run([CLI, "index", source, "--quiet", "--out", f"{folder}/catalog.fbc"], check=True,
                   stdout=subprocess.DEVNULL)
    data = fb.VideoClips(source, pattern="{scene}/{camera}.mp4", cameras=["front"], frames=8,
                         step=3, hop=10, catalog=f"{folder}/catalog.fbc")
    rows = []
    for i in range(clips + 2):
        with fb.Loader(data, seed=i, runway=0, decode_threads=1) as loader:
            len(loader)  # reads the catalog
            after = max((e["number"] for e in get(f"{control}/log?limit=1000")["requests"]), default=0)
            start = time.perf_counter()
            next(iter(loader))
            total_ms = (time.perf_counter() - start) * 1e3
            decode_ms = loader.metrics()["forebay_decode_busy_seconds_total"] * 1e3
            answers = first_bytes(control, after)
            assert len(answers) == 1, f"{len(answers)} GETs for one clip and camera"
            first_ms = answers[0]["first_byte_ms"]
            rows.append((total_ms, first_ms, decode_ms, total_ms - first_ms - decode_ms))
    return rows[2:]  # the first ones load libraries


def main():
    clips = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    with tempfile.TemporaryDirectory() as folder:
        make_video(f"{folder}/bench/drives/a/front.mp4")
        server = subprocess.Popen(
            [FAULTS, "--listen", "127.0.0.1:0", "--root", folder, "--latency", LATENCY, "--seed",
             "1", "--control", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
        try:
            told = json.loads(server.stdout.readline())
            rows = measure(clips, told["endpoint"], told["control"], folder)
        finally:
            server.terminate()
            server.wait(timeout=10)
    for name, column in zip(("next()", "first byte", "decode", "left over"), zip(*rows)):
        ordered = sorted(column)
        print(f"{name:10}  median {statistics.median(ordered):7.1f} ms   "
              f"min {ordered[0]:7.1f}   max {ordered[-1]:7.1f}")
    print(f"{clips} clips of 8 frames, 3 apart, 480x270, one GET each; target: left over <= 10 ms")


if __name__ == "__main__":
    main()
