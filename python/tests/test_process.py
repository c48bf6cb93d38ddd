"""fork, spawn, signals and the interpreter's end."""

import os
import signal
import subprocess
import sys
import time

import pytest


def test_a_loader_made_before_fork_works_in_the_child_until_it_has_threads(run_python, drives):
    result = run_python(
        """
        import os, sys
        import forebay as fb

        clips = fb.VideoClips(sys.argv[1], frames=4, step=2, hop=3)
        untouched = fb.Loader(clips, batch_size=4, seed=1, epochs=1)
        len(untouched)
        working = fb.Loader(clips, batch_size=4, seed=1, epochs=1)
        iterator = iter(working)
        batch = next(iterator)
        expected = [b["_sample"].tolist() for b in fb.Loader(clips, batch_size=4, seed=1, epochs=1)]
        video = fb.Video(sys.argv[1] + "alpha/front.mp4")
        frame = video.frames([7]).tobytes()

        def child():
            assert [b["_sample"].tolist() for b in untouched] == expected
            for use in (lambda: next(iterator), lambda: iter(working), lambda: len(working)):
                try:
                    use()
                except fb.ForkError as error:
                    assert isinstance(error, RuntimeError)
                    assert "before fork" in str(error) and "make it in the child" in str(error)
                else:
                    sys.exit("a loader with threads was used after fork")
            fresh = fb.Loader(clips, batch_size=4, seed=1, epochs=1)
            assert [b["_sample"].tolist() for b in fresh] == expected
            assert video.frames([7]).tobytes() == frame
            working.close()

        pid = os.fork()
        if pid == 0:
            child()
            sys.exit(42)  # the interpreter's whole end, objects and all
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 42
        # The parent goes on, undisturbed.
        rest = [b["_sample"].tolist() for b in iterator]
        assert [batch["_sample"].tolist(), *rest] == expected
        assert [b["_sample"].tolist() for b in untouched] == expected
        """,
        drives,
    )
    assert "nanobind" not in result.stderr and "Traceback" not in result.stderr


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_every_start_method_of_multiprocessing_works(run_python, drives, method):
    result = run_python(
        """
        import multiprocessing, sys
        import forebay as fb

        def work(clips, loader, queue):
            queue.put([b["_sample"].tolist() for b in loader])
            with fb.Loader(clips, batch_size=4, seed=1, epochs=1) as fresh:
                queue.put([b["_sample"].tolist() for b in fresh])

        if __name__ == "__main__":
            clips = fb.VideoClips(sys.argv[1], frames=4, step=2, hop=3)
            loader = fb.Loader(clips, batch_size=4, seed=1, epochs=1)
            context = multiprocessing.get_context(sys.argv[2])
            queue = context.Queue()
            process = context.Process(target=work, args=(clips, loader, queue))
            process.start()
            first, second = queue.get(timeout=40), queue.get(timeout=40)
            process.join(40)
            assert process.exitcode == 0
            assert first == second == [b["_sample"].tolist() for b in loader]
        """,
        drives,
        method,
    )
    assert "nanobind" not in result.stderr and "Traceback" not in result.stderr


INTERRUPTED = """
import socket, sys, threading, time
import forebay as fb

# An endpoint that accepts and never answers.
listener = socket.create_server(("127.0.0.1", 0))
port = listener.getsockname()[1]
store = dict(endpoint_url=f"http://127.0.0.1:{port}", no_sign_request=True)
print("waiting", flush=True)
try:
    fb.Loader(fb.VideoClips("s3://bucket/drives/", storage_options=store))
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""

ENDLESS = """
import sys
import forebay as fb

loader = fb.Loader(fb.VideoClips(sys.argv[1], frames=4, step=2, hop=3), batch_size=4)
for batch in loader:
    break
print("waiting", flush=True)
try:
    while True:
        for batch in loader:
            pass
except KeyboardInterrupt:
    print("interrupted", flush=True)
# Still usable.
assert next(iter(loader)) is not None
"""


@pytest.mark.parametrize("program", [INTERRUPTED, ENDLESS], ids=["opening", "iterating"])
def test_ctrl_c_is_served_at_once(drives, tmp_path, program):
    path = tmp_path / "program.py"
    path.write_text(program)
    import forebay as fb

    package = os.path.dirname(os.path.dirname(os.path.abspath(fb.__file__)))
    process = subprocess.Popen(
        [sys.executable, os.fspath(path), drives],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=dict(os.environ, PYTHONPATH=package),
    )  # fmt: skip
    try:
        assert process.stdout.readline() == "waiting\n"
        time.sleep(0.3)  # into the wait
        started = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted\n"
        assert time.monotonic() - started < 2
        assert process.wait(20) == 0
        assert process.stderr.read() == ""
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    "ending",
    [
        "pass",
        "del loader",
        "iterator = iter(loader); batch = next(iterator)",
        "loader.self = loader; loader.batch = next(iter(loader))",
        "raise SystemExit(0)",
        "loader.close()",
    ],
)
def test_the_interpreter_ends_cleanly_with_a_live_loader(run_python, drives, ending):
    result = run_python(
        f"""
        import sys
        import forebay as fb
        loader = fb.Loader(fb.VideoClips(sys.argv[1], frames=4), batch_size=4)
        kept = next(iter(loader))["front"]
        video = fb.Video(sys.argv[1] + "alpha/front.mp4")
        {ending}
        """,
        drives,
    )
    assert result.stderr == ""


def test_daemon_threads_that_wait_do_not_disturb_the_end(run_python, drives):
    result = run_python(
        """
        import sys, threading, time
        import forebay as fb

        def consume(loader):
            while True:
                for _ in loader:
                    pass

        for _ in range(3):
            loader = fb.Loader(fb.VideoClips(sys.argv[1], frames=4), batch_size=4)
            threading.Thread(target=consume, args=(loader,), daemon=True).start()
        time.sleep(0.5)
        """,
        drives,
    )
    assert result.stderr == ""


def test_nothing_is_left_after_sigkill(drives, tmp_path):
    """No shared memory, no temporary files: what a killed trainer would leave behind."""
    path = tmp_path / "program.py"
    path.write_text(ENDLESS)
    import forebay as fb

    def leftovers():
        shm = set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()
        return shm, set(os.listdir(tmp_path))

    package = os.path.dirname(os.path.dirname(os.path.abspath(fb.__file__)))
    before = leftovers()
    process = subprocess.Popen(
        [sys.executable, os.fspath(path), drives], stdout=subprocess.PIPE,
        env=dict(os.environ, PYTHONPATH=package, TMPDIR=os.fspath(tmp_path)),
    )  # fmt: skip
    assert process.stdout.readline() == b"waiting\n"
    process.kill()
    process.communicate()
    assert leftovers() == before


def test_memory_is_flat_over_epochs_and_given_back_at_the_end(run_python, drives):
    """Also by who goes on holding a batch. By what is in use: pages that the allocator keeps come and
    go with its arenas, and how far a run reads ahead with how busy the machine is."""
    result = run_python(
        """
        import ctypes, sys, time
        import forebay as fb

        class Mallinfo(ctypes.Structure):
            _fields_ = [(name, ctypes.c_size_t) for name in (
                "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
            ).split()]

        mallinfo = ctypes.CDLL(None).mallinfo2
        mallinfo.restype = Mallinfo

        def in_use():
            info = mallinfo()
            return info.uordblks + info.hblkhd

        clips = fb.VideoClips(sys.argv[1], frames=4, step=2, hop=3)

        def run(epochs):
            with fb.Loader(
                clips, batch_size=4, epochs=epochs, memory="64MiB", runway=5.0
            ) as loader:
                for epoch in range(epochs):
                    for number, batch in enumerate(loader):
                        if epoch == 0 and number == 1:
                            time.sleep(0.3)  # so that it reads far ahead
                reached = loader.metrics()['forebay_memory_bytes{kind="reserved_peak"}']
            held, size = in_use(), sum(array.nbytes for array in batch.values())
            del batch
            return in_use(), held - size, int(reached)

        run(2)
        at_first, _, _ = run(2)
        print(at_first, *run(12))
        """,
        drives,
    )
    at_first, later, held, reached = map(int, result.stdout.split())
    assert reached > 16 << 20, result.stdout
    assert later - at_first < 1 << 20, result.stdout
    assert held - later < 1 << 20, result.stdout
