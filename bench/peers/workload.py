"""What every S3 client does in the comparison: ranged GETs at random places, so many in flight.

A client is a program of its own: `python CLIENT.py '{"endpoint": ..., ...}'` prints one line of JSON.
Nothing is tuned but what the number in flight needs to be reached.
"""

import concurrent.futures
import dataclasses
import json
import random
import resource
import sys
import time


@dataclasses.dataclass
class Workload:
    endpoint: str  # http://127.0.0.1:PORT or https://localhost:PORT
    ca_bundle: str
    bucket: str
    key: str  # one large object
    object_bytes: int
    objects: list  # keys of objects as large as a range, for clients without ranged GETs
    range_bytes: int
    in_flight: int
    requests: int
    seed: int
    access_key: str = "AKIDEXAMPLE"
    secret_key: str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
    region: str = "us-east-1"

    @property
    def tls(self):
        return self.endpoint.startswith("https:")

    @property
    def address(self):
        return self.endpoint.partition("://")[2]

    def offsets(self, count=None):
        """Multiples of the range's size, none twice while there are others."""
        places = self.object_bytes // self.range_bytes
        count = count or self.requests
        chosen = []
        numbers = random.Random(self.seed)
        while len(chosen) < count:
            chosen += numbers.sample(range(places), min(places, count - len(chosen)))
        return [place * self.range_bytes for place in chosen]


def load():
    return Workload(**json.loads(sys.argv[1]))


class Meter:
    """CPU of this process (or of its children), and wall time, between start and report."""

    def __init__(self, work, who=resource.RUSAGE_SELF):
        self._work, self._who = work, who

    def start(self):
        self._usage = resource.getrusage(self._who)
        self._clock = time.perf_counter()

    def report(self, version, received=None):
        seconds = time.perf_counter() - self._clock
        usage = resource.getrusage(self._who)
        wanted = self._work.requests * self._work.range_bytes
        if received is not None and received != wanted:
            raise SystemExit(f"{received} bytes came of {wanted}")
        print(json.dumps({"version": version, "seconds": seconds, "bytes": wanted,
                          "requests": self._work.requests,
                          "user_s": usage.ru_utime - self._usage.ru_utime,
                          "system_s": usage.ru_stime - self._usage.ru_stime,
                          "peak_rss_bytes": usage.ru_maxrss * 1024}), flush=True)


def with_threads(work, read, version):
    """`read(offset) -> bytes received` on as many threads as requests shall be in flight."""
    meter = Meter(work)
    with concurrent.futures.ThreadPoolExecutor(work.in_flight) as pool:
        warm = work.offsets(min(2 * work.in_flight, work.requests))
        sum(pool.map(read, warm))  # connections are open
        meter.start()
        received = sum(pool.map(read, work.offsets()))
        meter.report(version, received)
