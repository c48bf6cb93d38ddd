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


def test_a_batch_size_beyond_all_samples_costs_nothing(files, run_python):
    run_python(f"""
        import re, forebay as fb
        records = fb.Records({str(files)!r})
        loader = fb.Loader(records, batch_size=20_000_000, epochs=2, tail="ragged")
        for _ in range(2):
            batches = [len(batch["_sample"]) for batch in loader]
            assert batches == [{COUNT}], batches
        # getrusage's is at least what the process that forked had.
        peak = re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())
        assert int(peak[1]) < 1 << 20
    """)


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


def damaged(folder, numbers):
    """40 indexed files, of which these are no longer what they were."""
    files_of(folder, range(40))
    fb.index(folder, format="files")
    order = sorted(path.name for path in folder.iterdir() if path.is_file())
    for number in numbers:
        (folder / order[number]).write_bytes(b"changed")


def test_a_resumed_run_has_no_new_allowance_of_bad_samples(tmp_path):
    damaged(tmp_path, [3, 9, 30])
    arguments = {"batch_size": 4, "shuffle": False, "epochs": 3, "held_limit": 99}

    def loader(most):
        return fb.Loader(fb.Records(tmp_path), on_bad_sample=fb.skip(max=most), **arguments)

    with loader(2) as first:
        iterator = iter(first)
        for _ in range(5):  # both early ones are among these
            next(iterator)
        state = json.loads(json.dumps(first.state_dict()))
    assert state["replaced"] == [[0, 3], [0, 9]]
    with loader(2) as second:
        second.load_state_dict(state)
        with pytest.raises((fb.PreconditionFailedError, fb.DataLossError)):
            list(second)
        assert second.state_dict()["replaced"] == [[0, 3], [0, 9]]
    # Those that are known count once, in a later epoch too.
    with loader(3) as third:
        third.load_state_dict(state)
        assert len(list(third)) == 5 and len(list(third)) == 10
        end = third.state_dict()
        assert end["replaced"] == [[0, 3], [0, 9], [0, 30]]
    with loader(3) as fourth:
        fourth.load_state_dict(end)
        assert len(list(fourth)) > 0
    for wrong in ([[1, 0]], [[0, 40]], [[-1, 0]], [[0, -1]]):
        with loader(3) as fifth:
            with pytest.raises(fb.InvalidArgumentError, match="replaced sample"):
                fifth.load_state_dict(state | {"replaced": wrong})
    old = {name: value for name, value in state.items() if name != "replaced"}
    with loader(3) as sixth:
        sixth.load_state_dict(old)
        assert sixth.state_dict()["replaced"] == []


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

    def run(*arguments, format="files"):
        result = subprocess.run(
            [forebay, "order", *arguments, files, "--format", format, "--batch-size", "10"],
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert result.returncode == 0, result.stderr
        return result.stdout

    assert run("digest", format="records") == run("digest")  # whatever the index is of
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


def files_of(folder, numbers):
    """Files that hold their names."""
    for number in numbers:
        (folder / f"{number % 7}-{number:03}").write_bytes(f"file {number}".encode())


def names_in(batch):
    offsets = batch["offsets"]
    return [bytes(batch["bytes"][a:b]).decode() for a, b in zip(offsets[:-1], offsets[1:])]


SHUFFLES = [False, True, fb.BlockShuffle(window=2, run=3)]


@pytest.mark.parametrize("shuffle", SHUFFLES, ids=["none", "global", "blocks"])
@pytest.mark.parametrize("taken", range(6))
def test_what_is_appended_comes_with_the_next_epoch(tmp_path, shuffle, taken):
    files_of(tmp_path, range(20))
    first = fb.index(tmp_path, format="files")
    arguments = {"batch_size": 4, "seed": 5, "shuffle": shuffle, "epochs": 3, "held_limit": 99}
    with fb.Loader(fb.Records(tmp_path), **arguments) as loader:
        old = [(names_in(b), list(b["_sample"])) for b in loader]
        old_next = [names_in(b) for b in loader]
        loader.set_epoch(0)
        iterator = iter(loader)
        for _ in range(taken):  # of five
            next(iterator)
        state = json.loads(json.dumps(loader.state_dict()))
    files_of(tmp_path, range(20, 33))
    report = fb.index(tmp_path, append=True)
    assert (report["appended"], report["generations"]) == (13, 2)
    assert report["content_hash"] != first["content_hash"]

    with fb.Loader(fb.Records(tmp_path), **arguments) as loader:
        assert loader.sample_count == 33
        loader.load_state_dict(state)
        if taken > 0:
            assert len(loader) == 5
            loader.set_epoch(0)  # its rest, which may be empty
            again = [(names_in(b), list(b["_sample"])) for b in loader]
            assert again == old[taken:], "the epoch that was running is as it was"
        else:  # it had not begun
            assert sum(len(names_in(b)) for b in loader) == 32
        assert len(loader) == 8
        iterator = iter(loader)
        grown = [names_in(next(iterator)) for _ in range(3)]
        middle = json.loads(json.dumps(loader.state_dict()))
        grown += [names_in(b) for b in iterator]
        end = loader.state_dict()
    assert grown != old_next
    assert len({name for batch in grown for name in batch}) == 32

    # A state that remembers both sizes goes on elsewhere, also when there is yet more.
    for more in (False, True):
        if more:
            files_of(tmp_path, range(33, 40))
            assert fb.index(tmp_path, append=True)["generations"] == 3
        with fb.Loader(fb.Records(tmp_path), **arguments) as loader:
            loader.load_state_dict(middle)
            assert [names_in(b) for b in loader] == grown[3:]
            assert loader.state_dict()["digest"] == end["digest"]
            assert middle["epoch"] == 1
            assert len({name for b in loader for name in names_in(b)}) == (40 if more else 32)


def test_a_mixture_goes_on_when_one_of_it_was_appended_to(tmp_path):
    a, b = tmp_path / "a", tmp_path / "b"
    for folder in (a, b):
        folder.mkdir()
        files_of(folder, range(12))
        fb.index(folder, format="files")
    mix = lambda: fb.Mix({"a": (fb.Records(a), 1), "b": (fb.Records(b), 1)}, block=2)  # noqa: E731
    arguments = {"batch_size": 4, "seed": 5, "held_limit": 99}
    with fb.Loader(mix(), **arguments) as loader:
        assert len(loader) == 6
        iterator = iter(loader)
        before = [next(iterator) for _ in range(2)]
        state = loader.state_dict()
        rest = [names_in(batch) for batch in iterator]
    files_of(b, range(12, 20))
    fb.index(b, append=True)
    with fb.Loader(mix(), **arguments) as loader:
        loader.load_state_dict(state)
        assert len(loader) == 6, "an epoch stays as long as it was"
        assert [names_in(batch) for batch in loader] == rest
        later = [batch for _ in range(2) for batch in loader]
    of_b = [name for batch in later for name, source in zip(names_in(batch), batch["_source"])
            if source == 1]  # fmt: skip
    assert len(set(of_b[:20])) == 20, "b's own next epoch has them all"
    assert before


def test_append_refuses_what_is_no_longer_what_it_was(tmp_path):
    files_of(tmp_path, range(9))
    fb.index(tmp_path, format="files")
    assert fb.index(tmp_path, append=True)["appended"] == 0
    (tmp_path / "3-003").write_bytes(b"something else")
    with pytest.raises(fb.PreconditionFailedError, match="3-003 has changed"):
        fb.index(tmp_path, append=True)
    (tmp_path / "3-003").unlink()
    with pytest.raises(fb.PreconditionFailedError, match="3-003 is in the catalog and no longer"):
        fb.index(tmp_path, append=True)
    with pytest.raises(fb.NotFoundError, match="no catalog"):
        fb.index(tmp_path, append=True, out=tmp_path / "none.fbc")


def test_another_data_set_or_a_later_one_or_another_state_is_refused(tmp_path):
    files_of(tmp_path, range(8))
    fb.index(tmp_path, format="files", out=tmp_path.parent / "first.fbc")
    fb.index(tmp_path, format="files")
    files_of(tmp_path, range(8, 12))
    fb.index(tmp_path, append=True)
    with fb.Loader(fb.Records(tmp_path)) as loader:
        state = loader.state_dict()
    first = fb.Records(tmp_path, catalog=tmp_path.parent / "first.fbc")
    with fb.Loader(first) as loader:
        with pytest.raises(fb.InvalidArgumentError, match="catalog_hash"):
            loader.load_state_dict(state)
        state = loader.state_dict()
    with fb.Loader(fb.Records(tmp_path)) as loader:
        state["sources"][0]["sizes"] = [{"from_epoch": 0, "samples": 7}]
        with pytest.raises(fb.InvalidArgumentError, match="7 samples"):
            loader.load_state_dict(state)
        state = loader.state_dict()
        with pytest.raises(fb.InvalidArgumentError, match="catalog_hash is 00"):
            loader.load_state_dict(state | {"catalog_hash": "00"})
        del state["skips"]
        with pytest.raises(fb.InvalidArgumentError, match="'skips' is missing"):
            loader.load_state_dict(state)
    for ops in (fb.ops.to_chw(), print, 5):
        with pytest.raises(fb.InvalidArgumentError, match="must be a list of forebay.ops"):
            fb.Loader(fb.Records(tmp_path), ops=ops)


def test_a_large_object_comes_in_parts_and_whole(tmp_path):
    sizes = [25_000_001, 8 << 20, (8 << 20) + 1, 0, 5]
    whole = [np.random.default_rng(n).bytes(size) for n, size in enumerate(sizes)]
    for number, data in enumerate(whole):
        (tmp_path / str(number)).write_bytes(data)
    fb.index(tmp_path, format="files")
    arguments = {"batch_size": 5, "epochs": 1, "memory": sum(sizes) + max(sizes) + 2**20}
    with fb.Loader(fb.Records(tmp_path), **arguments) as loader:
        (batch,) = loader
        assert sorted(check(batch, whole)) == [0, 1, 2, 3, 4]
        parts = [n for name, n in loader.metrics().items() if "prefetch_parts_total" in name]
        assert sum(parts) == 3 + 1 + 2 + 1
