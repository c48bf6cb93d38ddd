"""The demo's processes: nothing outlives it, and what it starts can be started again."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from forebay.demo import dataset, processes, seaweed

KEEPER = """
import pathlib, subprocess, sys
from forebay.demo import processes
child = processes.Child("sleeper", ["sleep", "600"], pathlib.Path(sys.argv[1]))
print(child.process.pid, flush=True)
child.process.wait()
"""


def gone(pid, within_s=10):
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
                if stat.read().rpartition(")")[2].split()[0] == "Z":
                    return True  # killed, not yet reaped by whoever inherited it
        except OSError:
            return True
        time.sleep(0.02)
    return False


def test_a_child_dies_with_a_parent_that_was_killed(tmp_path):
    parent = subprocess.Popen([sys.executable, "-c", KEEPER, str(tmp_path / "log")],
                              stdout=subprocess.PIPE, text=True)
    pid = int(parent.stdout.readline())
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    assert gone(pid)


def test_lines_are_read_one_by_one_and_an_early_end_is_told_with_its_words(tmp_path):
    script = "import sys; print('{\"a\": 1}\\n{\"a\": 2}'); sys.exit('no such bucket')"
    child = processes.Child("the part", [sys.executable, "-c", script], tmp_path / "log",
                            stdout=subprocess.PIPE)
    try:
        assert child.read_json_line(20) == {"a": 1}
        assert child.read_json_line(20) == {"a": 2}
        with pytest.raises(processes.PartFailed, match="the part ended with code 1: no such bucket"):
            child.read_json_line(20)
    finally:
        child.kill()


def test_a_silent_child_is_not_waited_for_without_end(tmp_path):
    child = processes.Child("the part", ["sleep", "600"], tmp_path / "log",
                            stdout=subprocess.PIPE)
    try:
        with pytest.raises(processes.PartFailed, match="said nothing"):
            child.read_json_line(0.1)
    finally:
        child.kill()
    assert gone(child.process.pid)


def test_the_s3_server_starts_again_after_a_kill_and_leaves_no_socket(tmp_path):
    for _ in range(2):
        server = seaweed.Server(tmp_path / "s3")
        client = server.client()
        assert client.request("PUT", "/bucket")[0] == 200
        assert client.request("PUT", "/bucket/a b+c", b"body")[0] == 200
        assert client.request("GET", "/bucket/a b+c") == (200, b"body")
        client.close()
        os.killpg(server.child.process.pid, signal.SIGKILL)
        server.child.process.wait()
        with pytest.raises(processes.PartFailed, match="ended by signal 9"):
            server.child.check_alive()
    ports = json.loads((tmp_path / "s3" / "ports.json").read_bytes())
    server.close()
    assert not [name for name in os.listdir("/tmp") if name.startswith("seaweedfs-")
                and name.endswith(tuple(f"-{port}.sock" for port in ports))]


def test_data_that_lies_there_is_not_made_again(tmp_path, monkeypatch):
    made = []

    def pretend(*arguments):
        made.append(arguments)
        for name in (argument for argument in arguments if argument.endswith((".mp4", ".mkv"))):
            if not name.endswith("bikes.mp4") and not name.endswith("bigbuckbunny.mp4"):
                with open(name, "wb") as file:
                    file.write(b"video")

    monkeypatch.setattr(dataset, "_ffmpeg", pretend)

    def make(**changed):
        made.clear()
        options = {"scenes": 3, "size": "270p", **changed}
        return dataset.make(tmp_path / "data", tmp_path, on_progress=lambda *_: None, **options)

    files = make()
    assert len(files) == 3 * len(dataset.CAMERAS) and all(file.is_file() for file in files)
    assert len(made) == 4 * len(dataset.CAMERAS)
    assert make() == files and not made
    files[0].write_bytes(b"another length")
    make()
    assert made
    make(scenes=4)
    assert made
