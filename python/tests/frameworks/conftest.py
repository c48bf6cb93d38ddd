"""Tests with the real packages of `tools/setup.sh frameworks`; `make frameworks` runs them."""

import os
import subprocess
import sys

import pytest

import forebay as fb


@pytest.fixture(scope="session")
def small(drives):
    """One frame each, so that a batch costs nothing: 60 samples."""
    return fb.VideoClips(drives, cameras=["front"], frames=1, step=1, hop=3)


def samples_of(batches):
    return [batch["_sample"].tolist() for batch in batches]


@pytest.fixture
def plain(small):
    """What the loader itself gives, by epoch and batch."""

    def run(epochs=1, **arguments):
        with fb.Loader(small, epochs=epochs, output="torch", **arguments) as loader:
            return [samples_of(loader) for _ in range(epochs)]

    return run


@pytest.fixture
def torchrun(tmp_path):
    """Runs a program under torchrun on so many processes; returns the lines they printed."""

    def run(program, processes, *arguments, timeout=240):
        path = tmp_path / "program.py"
        path.write_text(program)
        package = os.path.dirname(os.path.dirname(os.path.abspath(fb.__file__)))
        environment = dict(os.environ, PYTHONPATH=package, OMP_NUM_THREADS="1")
        result = subprocess.run(
            [sys.executable, "-m", "torch.distributed.run", "--standalone",
             f"--nproc-per-node={processes}", os.fspath(path), *map(str, arguments)],
            capture_output=True, text=True, timeout=timeout, env=environment,
        )  # fmt: skip
        assert result.returncode == 0, result.stderr
        return result.stdout.splitlines()

    return run
