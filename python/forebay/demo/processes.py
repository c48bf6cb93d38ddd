"""Child processes that never outlive the demo, and what is asked of them."""

import contextlib
import ctypes
import json
import os
import pathlib
import select
import shutil
import signal
import socket
import subprocess
import sys
import time

_PR_SET_PDEATHSIG = 1


class PartFailed(Exception):
    """A part of the demo is missing, did not start, or ended by itself."""


def find_program(name, variable, *more):
    """The program's path: the environment variable, beside this Python, `more`, then PATH."""
    candidates = [os.environ.get(variable), os.path.join(os.path.dirname(sys.executable), name),
                  *more, shutil.which(name)]
    for path in candidates:
        if path and os.access(path, os.X_OK):
            return str(path)
    raise PartFailed(f"{name} is not installed (make build puts it beside forebay; "
                     f"{variable}= names another one)")


def free_ports(count):
    """Loopback ports that nobody listens on at this moment."""
    with contextlib.ExitStack() as stack:
        ports = []
        for _ in range(count):
            probe = stack.enter_context(socket.socket())
            probe.bind(("127.0.0.1", 0))
            ports.append(probe.getsockname()[1])
        return ports


class Child:
    """One child process in a session of its own: Ctrl-C reaches the demo alone, which then ends its
    children in order; when the demo dies by SIGKILL, the kernel kills them."""

    def __init__(self, name, command, log, **popen):
        """`log`: the file for its stderr; None: shared with this process."""
        self.name = name
        self.log = log
        self._unread = b""
        libc = ctypes.CDLL(None, use_errno=True)
        parent = os.getpid()

        def tie_to_parent():
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(1)

        popen.setdefault("stdin", subprocess.DEVNULL)
        with open(log, "wb") if log else contextlib.nullcontext() as errors:
            self.process = subprocess.Popen(command, stderr=errors, start_new_session=True,
                                            preexec_fn=tie_to_parent, **popen)

    def check_alive(self):
        code = self.process.poll()
        if code is not None:
            how = f"by signal {-code}" if code < 0 else f"with code {code}"
            raise PartFailed(f"{self.name} ended {how}: {self.last_words()}")

    def last_words(self, limit=800):
        if self.log is None:
            return "see above"
        try:
            text = pathlib.Path(self.log).read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            text = ""
        return text[-limit:] or f"(nothing in {self.log})"

    def read_json_line(self, timeout_s):
        """The child's next line of stdout, which must be JSON."""
        deadline = time.monotonic() + timeout_s
        while b"\n" not in self._unread:
            ready, _, _ = select.select([self.process.stdout], [], [], 0.5)
            piece = os.read(self.process.stdout.fileno(), 1 << 20) if ready else b""
            self._unread += piece
            if ready and not piece:
                self.process.wait(10)
                self.check_alive()
            if time.monotonic() > deadline:
                raise PartFailed(f"{self.name} said nothing for {timeout_s} s: {self.last_words()}")
        line, _, self._unread = self._unread.partition(b"\n")
        return json.loads(line)

    def kill(self):
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
