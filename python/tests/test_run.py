"""run.json: the same run again, down to the arrays' bits."""

import hashlib
import json
import shutil

import numpy as np
import pytest
from conftest import FPS, FRAMES, SCENES, path_of

import forebay as fb
from forebay import _core


def digest_of(batches):
    """Of every array's name, type, shape and bytes."""
    digest = hashlib.sha256()
    for batch in batches:
        for name, array in batch.items():
            array = np.asarray(array)
            digest.update(f"{name} {array.dtype} {array.shape}".encode())
            digest.update(array.tobytes())
    return digest.hexdigest()


def again(run, epochs, **changes):
    with fb.Loader.from_run(json.loads(json.dumps(run)), **changes) as loader:
        return [digest_of(loader) for _ in range(epochs)]


@pytest.fixture
def labelled(drives, tmp_path):
    table = tmp_path / "labels.jsonl"
    table.write_text("".join(
        json.dumps({"scene": scene, "time": n / FPS, "speed": 100 * s + n}) + "\n"
        for s, scene in enumerate(SCENES) for n in range(FRAMES)
    ))  # fmt: skip
    return fb.VideoClips(
        drives, cameras=["left", "front"], frames=3, step=2, hop=5, resize=(32, 40), layout="TCHW",
        labels=fb.Labels(str(table), columns=["speed"], prefix="ego_"),
    )  # fmt: skip


@pytest.mark.parametrize(
    "order",
    [
        dict(seed=7),
        dict(seed=2**64 - 1, shuffle=False, drop_last=False),
        dict(shuffle=fb.BlockShuffle(window=1, streams=2, run=3), tail="ragged"),
        dict(epoch_samples=17, on_bad_sample=fb.skip(max=3)),
    ],
)
def test_a_recorded_run_delivers_the_same_bits(labelled, order):
    with fb.Loader(labelled, batch_size=4, epochs=2, rank=1, world_size=2, **order) as loader:
        expected = [digest_of(loader) for _ in range(2)]
        run = loader.run()
    assert again(run, 2) == expected
    assert again(run, 2, memory="60MiB", decode_threads=1, runway="off") == expected
    assert again(run, 2, rank=0) != expected


def test_a_run_begins_where_its_first_batch_came_from(clips):
    with fb.Loader(clips, batch_size=5, seed=1) as loader:
        iterator = iter(loader)
        next(iterator), next(iterator), next(iterator)
        state = loader.state_dict()
        rest = [digest_of(iterator), digest_of(loader)]
    with fb.Loader(clips, batch_size=5, seed=1) as loader:
        loader.load_state_dict(state)
        assert loader.run()["start"]["position"] == 15, "nothing came yet"
        assert [digest_of(loader), digest_of(loader)] == rest
        run = loader.run()
    assert run["start"]["position"] == 15
    assert again(run, 2) == rest


def test_mixtures_come_again_with_the_weights_they_had(drives, clips):
    other = fb.VideoClips(drives, frames=4, step=2, hop=7)
    mix = fb.Mix({"a": (clips, 3), "b": (other, 1)}, block=8)
    with fb.Loader(mix, batch_size=4, seed=1, epoch_samples=32, epochs=1) as loader:
        batches = []
        for step, batch in enumerate(loader):
            batches.append({name: np.array(array) for name, array in batch.items()})
            if step == 3:
                loader.set_weights({"a": 1, "b": 3})
        run = loader.run()
    assert again(run, 1) == [digest_of(batches)]


def test_a_samplers_run_comes_again_with_the_sampler(clips):
    indices = [5, 3, 50, 3, 1, 0, 9]
    with fb.Loader(clips, sampler=indices, batch_size=2, drop_last=False, epochs=1) as loader:
        expected = digest_of(loader)
        run = loader.run()
    with pytest.raises(fb.InvalidArgumentError, match="pass sampler="):
        fb.Loader.from_run(run)
    assert again(run, 1, sampler=indices) == [expected]


def test_records_come_again_too(tmp_path):
    for i in range(9):
        (tmp_path / f"{i}.txt").write_bytes(bytes([65 + i]) * (i + 1))
    fb.index(tmp_path.as_uri() + "/", format="files")
    with fb.Loader(fb.Records(tmp_path.as_uri() + "/"), batch_size=4, epochs=1) as loader:
        expected = digest_of(loader)
        run = loader.run()
    assert again(run, 1) == [expected]


def test_how_the_store_is_reached_is_no_part_of_it(drives):
    options = {"profile": "private-profile", "endpoint_url": "http://user-secret@127.0.0.1:1"}
    clips = fb.VideoClips(drives, frames=2, storage_options=options)
    with fb.Loader(clips) as loader:
        text = json.dumps(loader.run())
    assert "private-profile" not in text and "secret" not in text
    with fb.Loader.from_run(json.loads(text), storage_options=options) as loader:
        assert loader.dataset == clips


def test_a_run_is_not_had_again_from_a_data_set_that_has_grown(tmp_path):
    for i in range(12):
        (tmp_path / f"{i:02}").write_bytes(b"%d" % i)
    fb.index(tmp_path, format="files", out=tmp_path.parent / "then.fbc")
    fb.index(tmp_path, format="files")
    with fb.Loader(fb.Records(tmp_path), batch_size=3, epochs=1) as loader:
        run = loader.run()
        seen = [batch["_sample"].tolist() for batch in loader]
    (tmp_path / "12").write_bytes(b"12")
    fb.index(tmp_path, append=True)
    with pytest.raises(fb.InvalidArgumentError, match="catalog_hash was .* more has been appended"):
        fb.Loader.from_run(run)
    run["dataset"]["catalog"] = str(tmp_path.parent / "then.fbc")
    with fb.Loader.from_run(run) as loader:
        assert [batch["_sample"].tolist() for batch in loader] == seen


def test_what_is_no_run_is_refused(labelled):
    with fb.Loader(labelled) as loader:
        run = loader.run()
    op = {"kind": "Op", "op": "FoldOp", "arguments": {}}
    for bad, text in (
        (None, "must be a dict"),
        (run | {"versions": None}, "must be a dict"),
        (run | {"start": "x"}, "must be a dict"),
        (run | {"schema": 2}, "its schema is 2"),
        (run | {"dataset": {"kind": "Folder"}}, "'Folder' is nothing"),
        (run | {"arguments": run["arguments"] | {"ops": [op]}}, "FoldOp.* is no op"),
    ):
        with pytest.raises(fb.InvalidArgumentError, match=text):
            fb.Loader.from_run(bad)


def test_what_has_changed_since_is_named(drives, tmp_path, labelled):
    root = tmp_path / "grown"
    shutil.copytree(path_of(drives), root)
    fb.index(root.as_uri() + "/")
    with fb.Loader(fb.VideoClips(root.as_uri() + "/", frames=2)) as loader:
        run = loader.run()
    shutil.copytree(root / "alpha", root / "delta")
    fb.index(root.as_uri() + "/")
    with pytest.raises(fb.InvalidArgumentError, match="catalog_hash"):
        fb.Loader.from_run(run)
    with fb.Loader(labelled) as loader:
        run = loader.run()
    with pytest.raises(fb.InvalidArgumentError, match="seed is 0, this loader's is 3"):
        fb.Loader.from_run(run, seed=3)
    table = tmp_path / "labels.jsonl"
    table.write_text(table.read_text().replace('"speed": 3', '"speed": 4'))
    with pytest.raises(fb.InvalidArgumentError, match="labels' checksum"):
        fb.Loader.from_run(run)


def test_another_build_is_a_warning_that_names_it(clips):
    with fb.Loader(clips) as loader:
        run = loader.run()
    assert run["versions"]["ffmpeg"] == _core.ffmpeg_version() and "libswscale" in _core.ffmpeg_version()
    run["versions"]["ffmpeg"] = "libavcodec 1.2.3"
    with pytest.warns(RuntimeWarning, match="ffmpeg was 'libavcodec 1.2.3' and is 'libavcodec"):
        fb.Loader.from_run(run).close()


@pytest.mark.parametrize("bad", [None, {}, {"schema": "forebay.run/1"}])
def test_what_is_no_run_is_refused(clips, bad):
    with pytest.raises(fb.InvalidArgumentError, match="run"):
        fb.Loader.from_run(bad)
    with fb.Loader(clips) as loader:
        run = loader.run()
    for change in (dict(schema="forebay.run/9"), dict(dataset={"kind": "os"}),
                   dict(dataset={"kind": "VideoClips", "nothing": 1})):  # fmt: skip
        with pytest.raises(fb.InvalidArgumentError, match="run"):
            fb.Loader.from_run(run | change)
