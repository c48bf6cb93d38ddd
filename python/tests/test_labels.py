import json
import pickle

import numpy as np
import pytest
from conftest import FPS, FRAMES, SCENES

import forebay as fb
from forebay import label_join as module


def write_jsonl(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def rows_of(scenes=SCENES, every=1, offset=0.0):
    """One row for every frame: speed tells scene and frame."""
    return [
        {"scene": scene, "time": n / FPS + offset, "speed": 100 * s + n, "turn": [n / 8, -n / 8],
         "braking": n % 2 == 0, "note": "text"}
        for s, scene in enumerate(scenes)
        for n in range(0, FRAMES, every)
    ]  # fmt: skip


def loader_of(drives, labels, **arguments):
    clips = fb.VideoClips(drives, frames=4, step=2, hop=3, labels=labels)
    return fb.Loader(clips, batch_size=3, epochs=1, **arguments)


def expected_frames(sample):
    """Scene and frame numbers of a sample of frames=4, step=2, hop=3."""
    scene, start = divmod(sample, 18)
    return scene, 3 * start + np.array([0, 2, 4, 6])


@pytest.mark.parametrize("offset", [0.0, 0.02, -0.02])
def test_each_clip_gets_the_row_nearest_its_first_frame(drives, tmp_path, offset):
    table = write_jsonl(tmp_path / "labels.jsonl", rows_of(offset=offset))
    with loader_of(drives, str(table)) as loader:
        for batch in loader:
            assert batch["speed"].dtype == np.int64 and batch["turn"].dtype == np.float32
            assert batch["braking"].dtype == np.bool_ and "note" not in batch
            for row, sample in enumerate(batch["_sample"].tolist()):
                scene, frames = expected_frames(sample)
                assert batch["speed"][row] == 100 * scene + frames[0]
                assert batch["turn"][row].tolist() == [frames[0] / 8, -frames[0] / 8]
                assert batch["braking"][row] == (frames[0] % 2 == 0)


def test_each_frame_gets_its_row_when_asked(drives, tmp_path):
    table = write_jsonl(tmp_path / "labels.jsonl", rows_of())
    labels = fb.Labels(table, per="frame", columns=["turn", "speed"], prefix="ego_")
    with loader_of(drives, labels) as loader:
        for batch in loader:
            assert batch["ego_speed"].shape == (3, 4) and batch["ego_turn"].shape == (3, 4, 2)
            assert "ego_braking" not in batch
            for row, sample in enumerate(batch["_sample"].tolist()):
                scene, frames = expected_frames(sample)
                assert batch["ego_speed"][row].tolist() == (100 * scene + frames).tolist()


def test_csv_in_any_order_and_unit(drives, tmp_path):
    lines = [
        f"{row['speed']},{row['time'] * 1000:.3f},{row['scene']},{str(row['braking']).lower()}"
        for row in rows_of()
    ]
    table = tmp_path / "labels.csv"
    table.write_text("\n".join(["speed,ms,drive,braking", *lines[::-1]]) + "\n")
    labels = fb.Labels(table, scene="drive", time="ms", time_unit="ms")
    with loader_of(drives, labels) as loader:
        batch = next(iter(loader))
        for row, sample in enumerate(batch["_sample"].tolist()):
            scene, frames = expected_frames(sample)
            assert batch["speed"][row] == 100 * scene + frames[0]
            assert batch["braking"].dtype == np.bool_


def test_samples_without_a_row_are_an_error_when_the_loader_is_made(drives, tmp_path):
    table = write_jsonl(tmp_path / "labels.jsonl", rows_of(scenes=SCENES[:2]))
    with pytest.raises(fb.NotFoundError, match="gamma.*mask"):
        loader_of(drives, str(table))
    far = write_jsonl(tmp_path / "far.jsonl", rows_of(every=10))
    with pytest.raises(fb.NotFoundError, match="half a frame"):
        loader_of(drives, str(far))


def test_samples_without_a_row_are_masked_when_asked(drives, tmp_path):
    table = write_jsonl(tmp_path / "labels.jsonl", rows_of(scenes=SCENES[:2]))
    with loader_of(drives, fb.Labels(table, missing="mask")) as loader:
        for batch in loader:
            expected = batch["_sample"] < 36
            assert batch["_labelled"].tolist() == expected.tolist()
            assert not batch["speed"][~expected].any()


def test_integers_of_more_than_64_bits_come_as_floats(drives, tmp_path):
    table = tmp_path / "labels.csv"
    table.write_text("scene,time,v\nalpha,0,99999999999999999999\n")
    with loader_of(drives, fb.Labels(table, missing="mask"), shuffle=False) as loader:
        assert next(iter(loader))["v"].tolist() == [np.float32(1e20), 0, 0]


def test_labels_come_as_tensors_too(drives, tmp_path):
    import torch

    table = write_jsonl(tmp_path / "labels.jsonl", rows_of())
    with loader_of(drives, str(table), output="torch") as loader:
        batch = next(iter(loader))
        assert batch["speed"].dtype == torch.int64 and batch["turn"].shape == (3, 2)
        copy = pickle.loads(pickle.dumps(loader))
        assert isinstance(next(iter(copy))["speed"], torch.Tensor)
        copy.close()


@pytest.mark.parametrize(
    "text, arguments, said",
    [
        ('{"scene": "a"}\n', {}, "no time column"),
        ('{"time": 1, "scene": "a"}\n[1]\n', {}, "line 2"),
        ('{"time": 1, "scene": "a"}\n{"time": 1}\n', {}, "line 2.*scene"),
        ('{"time": 1, "scene": "a"\n', {}, "line 1.*JSON"),
        ('{"time": "x", "scene": "a", "v": 1}\n', {}, "finite numbers"),
        ('{"time": 1, "scene": "a", "v": "x"}\n', {}, "no numeric column"),
        ('{"time": 1, "scene": "a", "v": "x"}\n', dict(columns=["v"]), "'v' holds no numbers"),
        ('{"time": 1, "scene": "a", "v": 1}\n', dict(columns=["w"]), "no column 'w'"),
        ('{"time": 1, "scene": "a", "front": 1}\n', {}, "prefix"),
        ('{"time": 1, "scene": "a", "_pad": 1}\n', {}, "prefix"),
        ('{"time": 1, "scene": "a", "_labelled": 1}\n', dict(missing="mask"), "prefix"),
        ("scene,time,v\na,1\n", dict(format="csv"), "line 2"),
        ("scene,time,v,v\na,1,2,3\n", dict(format="csv"), "'v' more than once"),
    ],
)
def test_a_table_that_cannot_be_read_says_where(drives, tmp_path, text, arguments, said):
    table = tmp_path / "labels.jsonl"
    table.write_text(text)
    with pytest.raises(fb.InvalidArgumentError, match=said):
        loader_of(drives, fb.Labels(table, **arguments))


def test_a_missing_table_is_not_found(drives, tmp_path):
    with pytest.raises(fb.NotFoundError, match="nothing.csv"):
        loader_of(drives, str(tmp_path / "nothing.csv"))
    with pytest.raises(fb.InvalidArgumentError, match="format"):
        fb.Labels("labels.parquet")


def test_the_bisection_agrees_with_looking_at_every_row():
    rng = np.random.default_rng(3)
    counts = rng.integers(0, 9, 40)
    last = np.cumsum(counts)
    first = last - counts
    times = np.concatenate([np.sort(rng.uniform(0, 10, n)) for n in counts])
    scene = rng.integers(0, 40, 500)
    wanted = rng.uniform(-1, 11, 500)
    rows, distance = module._nearest(times, first[scene], last[scene], wanted)
    for s, w, row, away in zip(scene, wanted, rows, distance):
        candidates = times[first[s] : last[s]]
        if len(candidates) == 0:
            assert away == np.inf
        else:
            assert away == np.abs(candidates - w).min()
            assert first[s] <= row < last[s] and abs(times[row] - w) == away
