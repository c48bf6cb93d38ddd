"""A network of its own for a server, behind a link of a known rate (root, iproute2)."""

import os
import subprocess


class Link:
    """Where `rate` (as `tc` writes it) is what the server's answers may take. A context manager.

    `address`: the server's. `prefix`: what starts a program there.
    """

    address = "10.213.7.2"
    _ours = "10.213.7.1"

    def __init__(self, rate):
        self._rate = rate
        self._space = f"forebay-bench-{os.getpid()}"
        self._near, self._far = f"fbn{os.getpid()}", f"fbf{os.getpid()}"
        self.prefix = ["ip", "netns", "exec", self._space]

    def __enter__(self):
        if os.geteuid() != 0:
            raise SystemExit("a link of a known rate: only root makes one")
        there = ["ip", "-n", self._space]
        try:
            for command in (
                ["ip", "netns", "add", self._space],
                ["ip", "link", "add", self._near, "type", "veth", "peer", "name", self._far, "netns",
                 self._space],
                ["ip", "addr", "add", self._ours + "/30", "dev", self._near],
                ["ip", "link", "set", self._near, "up"],
                [*there, "addr", "add", self.address + "/30", "dev", self._far],
                [*there, "link", "set", self._far, "up"],
                [*there, "link", "set", "lo", "up"],
                # Every kernel has it. Connections under BBR share a link of a fixed rate so unevenly
                # that one read in a thousand takes ten times the median.
                [*self.prefix, "sysctl", "-qw", "net.ipv4.tcp_congestion_control=reno"],
                ["tc", "-n", self._space, "qdisc", "add", "dev", self._far, "root", "tbf", "rate",
                 self._rate, "burst", "256kb", "latency", "20ms"],
            ):  # fmt: skip
                subprocess.run(command, check=True, timeout=30)
        except (subprocess.SubprocessError, OSError):
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        subprocess.run(["ip", "netns", "del", self._space], check=False, timeout=30)
