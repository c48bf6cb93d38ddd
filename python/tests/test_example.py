"""The README's example: an indexed bucket and examples/train_clips.py, on a real S3 server."""

import contextlib
import os
import pathlib
import re
import subprocess
import sys

import pytest

import forebay as fb
from conftest import CAMERAS, SCENES, path_of
from forebay.demo import processes, seaweed

EXAMPLE = pathlib.Path(__file__).parents[2] / "examples" / "train_clips.py"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with contextlib.closing(seaweed.Server(tmp_path_factory.mktemp("s3"))) as running:
        status, body = running.client().request("PUT", "/drives")
        assert status == 200, body
        yield running


def test_index_and_train_straight_from_a_bucket(drives, server):
    forebay = processes.find_program("forebay", "FOREBAY_CLI")
    package = pathlib.Path(fb.__file__).parents[1]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    environment |= {
        "AWS_ACCESS_KEY_ID": server.access_key, "AWS_SECRET_ACCESS_KEY": server.secret_key,
        "AWS_ENDPOINT_URL_S3": server.endpoint, "AWS_REGION": "us-east-1",
        "AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "PYTHONPATH": os.fspath(package)}  # fmt: skip

    def run(*command):
        result = subprocess.run(command, capture_output=True, text=True, timeout=120,
                                env=environment)  # fmt: skip
        assert result.returncode == 0, result.stderr
        return result.stdout

    for scene in SCENES:  # the videos alone: the bucket gets an index of its own
        run(forebay, "cp", "-r", f"{path_of(drives)}/{scene}/", f"s3://drives/raw/{scene}/")
    listed = run(forebay, "ls", "-r", "s3://drives/raw/")
    assert listed.count(".mp4") == len(SCENES) * len(CAMERAS), listed
    run(forebay, "index", "s3://drives/raw/")
    said = run(sys.executable, EXAMPLE, "s3://drives/raw/", "--steps", "20", "--frames", "3",
               "--step", "2")  # fmt: skip
    loss = re.search(r"step 20: loss (\d\.\d+), waited for data \d+\.\d+ s", said)
    assert loss and 0 < float(loss.group(1)) < 1, said
