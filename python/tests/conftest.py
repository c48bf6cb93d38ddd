"""Footage made with the ffmpeg program, and what the tests share."""

import os
import pathlib
import signal
import subprocess
import sys
import textwrap

import pytest

import forebay as fb

# A shell starts background jobs with SIGINT ignored, and programs pass that on to their children:
# the tests of Ctrl-C need it as a terminal's programs have it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests that need packages which only `make frameworks` has.
collect_ignore = [] if os.environ.get("FOREBAY_FRAMEWORKS") else ["frameworks"]

FPS = 20
SECONDS = 3
FRAMES = FPS * SECONDS
HEIGHT, WIDTH = 48, 64
SCENES = ("alpha", "beta", "gamma")
CAMERAS = ("front", "left")


def encode(path, source, *arguments):
    """A video of the lavfi ``source``, whose pictures differ from frame to frame."""
    path.parent.mkdir(parents=True, exist_ok=True)
    command = ["ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", source]
    command += ["-pix_fmt", "yuv420p", *arguments, os.fspath(path)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, timeout=60)


@pytest.fixture(scope="session")
def drives(tmp_path_factory):
    """URI of an indexed data set: 3 scenes of 2 cameras, 60 frames each, GOPs of 12 and 30."""
    root = tmp_path_factory.mktemp("drives")
    for number, scene in enumerate(SCENES):
        for camera, gop in zip(CAMERAS, (12, 30)):
            # testsrc2 moves; the hue tells the files apart.
            hue = 60 * number + (30 if camera == "left" else 0)
            source = (
                f"testsrc2=size={WIDTH}x{HEIGHT}:rate={FPS}:duration={SECONDS},hue=h={hue}"
            )
            encode(root / scene / f"{camera}.mp4", source, "-c:v", "libx264", "-g", str(gop),
                   "-bf", "2")  # fmt: skip
    report = fb.index(root.as_uri() + "/")
    assert report["videos"] == len(SCENES) * len(CAMERAS) and not report["failures"]
    return root.as_uri() + "/"


def path_of(uri):
    return pathlib.Path(uri.removeprefix("file://"))


@pytest.fixture
def clips(drives):
    """18 clips a scene: 54 samples."""
    return fb.VideoClips(drives, frames=4, step=2, hop=3)


@pytest.fixture
def run_python(tmp_path):
    """Runs a program in a fresh interpreter; returns the CompletedProcess."""

    def run(program, *arguments, timeout=60, check=True):
        path = tmp_path / "program.py"
        path.write_text(textwrap.dedent(program))
        package = os.path.dirname(os.path.dirname(os.path.abspath(fb.__file__)))
        environment = dict(
            os.environ, PYTHONPATH=package, PYTHONUNBUFFERED="1", FOREBAY_LEAK_WARNINGS="1"
        )
        result = subprocess.run(
            [sys.executable, "-X", "faulthandler", os.fspath(path), *map(str, arguments)],
            capture_output=True, text=True, timeout=timeout, env=environment,
        )  # fmt: skip
        if check:
            assert result.returncode == 0, result.stderr
        return result

    return run
