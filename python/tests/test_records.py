"""Plain objects as samples: raw bytes of any length, local and from an S3 server."""

import contextlib
import json
import os
import pathlib
import random
import subprocess

import numpy as np
import pytest

import forebay as fb
from conftest import path_of
from forebay.demo import processes, seaweed

COUNT = 70


def content(number):
    """Sizes from nothing to a few hundred KB; each byte depends on the file."""
    size = 0 if number % 9 == 4 else random.Random(number).randrange(1, 300_000)
    return np.random.default_rng(number).bytes(size)


def names():
    return [f"{'abc'[n % 3]}/{n:04} ü.bin" for n in range(COUNT)]


def write(root):
    for number, name in enumerate(names()):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content(number))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    root = tmp_path_factory.mktemp("files")
    write(root)
    report = fb.index(root, format="files")
    assert (report["format"], report["objects"], report["bytes_read"]) == ("files", COUNT, 0)
    assert report["dataset_bytes"] == sum(len(content(n)) for n in range(COUNT))
    return root.as_uri() + "/"


def in_key_order():
    return [content(n) for n in sorted(range(COUNT), key=lambda n: names()[n].encode())]


def check(batch, expected):
    offsets = np.asarray(batch["offsets"])
    data = np.asarray(batch["bytes"])
    samples = [int(s) for s in batch["_sample"]]
    assert data.dtype == np.uint8 and data.shape == (offsets[-1],)
    assert offsets.dtype == np.int64 and offsets.shape == (len(samples) + 1,) and offsets[0] == 0
    for row, sample in enumerate(samples):
        assert data[offsets[row] : offsets[row + 1]].tobytes() == expected[sample], sample
    pads = batch.get("_pad", [False] * len(samples))
    return [sample for sample, pad in zip(samples, pads) if not pad]


@pytest.mark.parametrize("output", ["numpy", "torch", "dlpack"])
def test_every_file_comes_once_as_it_is(files, output):
    if output == "torch":
        pytest.importorskip("torch")
    expected = in_key_order()
    with fb.Loader(fb.Records(files), batch_size=8, tail="ragged", epochs=2, output=output) as loader:
        assert loader.sample_count == COUNT and len(loader) == 9
        for _ in range(2):
            seen = []
            for batch in loader:
                if output == "dlpack":
                    batch = {name: np.from_dlpack(array) for name, array in batch.items()}
                seen += check(batch, expected)
            assert sorted(seen) == list(range(COUNT))


@pytest.mark.parametrize("shuffle", [False, True, fb.BlockShuffle(window=2, run=4)])
@pytest.mark.parametrize("tail", ["drop", "pad", "ragged"])
def test_batches_are_the_same_on_any_world_and_after_a_resume(files, shuffle, tail):
    expected = in_key_order()
    arguments = {"shuffle": shuffle, "tail": tail, "epochs": 1, "seed": 11}
    alone = []
    with fb.Loader(fb.Records(files), batch_size=12, **arguments) as loader:
        for batch in loader:
            alone.append(check(batch, expected))
            if len(alone) == 3:
                state = json.loads(json.dumps(loader.state_dict()))
    together = [[] for _ in alone]
    for rank in range(3):
        with fb.Loader(
            fb.Records(files), batch_size=4, rank=rank, world_size=3, **arguments
        ) as loader:
            for step, batch in enumerate(loader):
                together[step] += check(batch, expected)
    assert together == alone
    with fb.Loader(fb.Records(files), batch_size=12, **arguments) as loader:
        loader.load_state_dict(state)
        assert [check(batch, expected) for batch in loader] == alone[3:]


def test_memory_is_counted_for_the_largest_batch(files):
    largest = sorted((len(content(n)) for n in range(COUNT)), reverse=True)
    with pytest.raises(fb.InvalidArgumentError, match="the largest batch needs"):
        fb.Loader(fb.Records(files), batch_size=8, memory=sum(largest[:8]) // 2)
    expected = in_key_order()
    memory = sum(largest[:8]) + 2**20
    with fb.Loader(fb.Records(files), batch_size=8, memory=memory, epochs=1) as loader:
        for batch in loader:
            check(batch, expected)
        assert loader.metrics()['forebay_memory_bytes{kind="reserved_peak"}'] <= memory


def test_a_file_that_changed_or_is_gone_is_an_error_or_replaced(tmp_path):
    write(tmp_path)
    fb.index(tmp_path, format="files")
    gone, changed = names()[0], names()[10]
    (tmp_path / gone).unlink()
    (tmp_path / changed).write_bytes(b"other")
    with fb.Loader(fb.Records(tmp_path), batch_size=COUNT, shuffle=False) as loader:
        with pytest.raises((fb.NotFoundError, fb.PreconditionFailedError), match=r"\.bin"):
            next(iter(loader))
    expected = in_key_order()
    with fb.Loader(
        fb.Records(tmp_path), batch_size=COUNT, epochs=1, on_bad_sample=fb.skip(max=2)
    ) as loader:
        batch = next(iter(loader))
        seen = check(batch, expected)
        order = sorted(names(), key=str.encode)
        assert not {order.index(gone), order.index(changed)} & set(seen)
        assert len(loader.state_dict()["skips"]) >= 2


def test_a_mixture_of_two(files, tmp_path):
    write(tmp_path)
    (tmp_path / "zz").write_bytes(b"one more")
    fb.index(tmp_path, format="files")
    expected = [in_key_order(), in_key_order() + [b"one more"]]
    mix = fb.Mix({"a": (fb.Records(files), 1), "b": (fb.Records(tmp_path), 1)}, block=4)
    with fb.Loader(mix, batch_size=8, epochs=1) as loader:
        for batch in loader:
            assert (batch["_source"] == 0).sum() == 4
            for row, (source, sample) in enumerate(zip(batch["_source"], batch["_sample"])):
                raw = batch["bytes"][batch["offsets"][row] : batch["offsets"][row + 1]]
                assert raw.tobytes() == expected[source][sample]


def test_key_orders_and_what_is_left_out(tmp_path):
    write(tmp_path)
    (tmp_path / "empty folder").mkdir()
    os.symlink("nowhere", tmp_path / "dangling")
    report = fb.index(tmp_path)  # nothing in it is a video
    assert (report["format"], report["objects_skipped"]) == ("files", 1)
    listed = fb.index(tmp_path, format="files", key_order="listed", out=tmp_path / "../listed.fbc")
    assert sorted(in_key_order()) == sorted(
        bytes(batch["bytes"])
        for batch in fb.Loader(
            fb.Records(tmp_path, catalog=listed["catalog_uri"]), epochs=1, held_limit=COUNT
        )
    )


def test_a_catalog_of_the_other_kind_is_refused(drives, files, tmp_path):
    with pytest.raises(fb.InvalidArgumentError, match="catalog of videos"):
        fb.Loader(fb.Records(drives))
    with pytest.raises(fb.InvalidArgumentError, match="catalog of plain objects"):
        fb.Loader(fb.VideoClips(files))
    with pytest.raises(fb.NotFoundError, match="forebay index"):
        fb.Loader(fb.Records(tmp_path))
    with pytest.raises(fb.InvalidArgumentError):
        fb.Records(tmp_path, format="zip")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with contextlib.closing(seaweed.Server(tmp_path_factory.mktemp("s3"))) as running:
        client = running.client()
        assert client.request("PUT", "/records")[0] == 200
        yield running
        client.close()


def test_straight_from_a_bucket(files, server):
    options = {
        "endpoint_url": server.endpoint, "region": "us-east-1",
    }  # fmt: skip
    environment = {
        "AWS_ACCESS_KEY_ID": server.access_key, "AWS_SECRET_ACCESS_KEY": server.secret_key,
        "AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        forebay = processes.find_program("forebay", "FOREBAY_CLI")
        copy = [forebay, "cp", "-r", os.fspath(path_of(files)) + "/", "s3://records/raw/",
                "--endpoint-url", server.endpoint, "--region", "us-east-1"]  # fmt: skip
        subprocess.run(copy, check=True, capture_output=True, timeout=120)
        report = fb.index("s3://records/raw/", format="files", storage_options=options)
        assert report["objects"] == COUNT and report["bytes_read"] == 0
        expected = in_key_order()
        data = fb.Records("s3://records/raw/", storage_options=options)
        with fb.Loader(data, batch_size=7, epochs=1, drop_last=False) as loader:
            seen = sum((check(batch, expected) for batch in loader), [])
            assert sorted(seen) == list(range(COUNT))


def test_order_of_files_by_the_command_line(files):
    forebay = processes.find_program("forebay", "FOREBAY_CLI")

    def run(*arguments):
        result = subprocess.run(
            [forebay, "order", *arguments, files, "--format", "files", "--batch-size", "10"],
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert result.returncode == 0, result.stderr
        return result.stdout

    assert "every sample exactly as often as declared" in run("verify")
    assert pathlib.PurePath(sorted(names(), key=str.encode)[0]).name in run(
        "show", "--shuffle", "none"
    )


def test_their_own_sampler_may_ask_for_one_file_many_times(files):
    expected = in_key_order()
    largest = max(range(COUNT), key=lambda n: len(expected[n]))
    batches = [[largest] * 8, [3, 4, 5], [largest] * 8]
    with fb.Loader(
        fb.Records(files), batch_sampler=batches, batch_size=8, epochs=1,
        memory=8 * len(expected[largest]) + 2**20,
    ) as loader:  # fmt: skip
        assert [check(batch, expected) for batch in loader] == batches
