"""fb.torch under torch's own DataLoader: no workers and several, forked and spawned."""

import io
import json
import pickle
import tarfile

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, DistributedSampler

import forebay as fb

WORKERS = [(0, None), (1, "fork"), (2, "fork"), (3, "fork"), (2, "spawn")]


@pytest.fixture(scope="module")
def small(drives):
    """One frame each: 60 samples."""
    return fb.VideoClips(drives, cameras=["front"], frames=1, step=1, hop=3)


def samples_of(batches):
    return [batch["_sample"].tolist() for batch in batches]


def plain(dataset, epochs=1, **arguments):
    """What the loader itself gives: [(samples, checksum of the pictures)] by epoch."""
    with fb.Loader(dataset, epochs=epochs, output="torch", **arguments) as loader:
        return [[(b["_sample"].tolist(), int(b["front"].sum())) for b in loader]
                for _ in range(epochs)]  # fmt: skip


@pytest.mark.parametrize(
    "workers, method, tail", [(*w, "ragged") for w in WORKERS] + [(2, "fork", "drop")]
)
def test_batches_are_the_loaders_own_with_any_workers(small, workers, method, tail):
    arguments = dict(batch_size=7, seed=3, tail=tail, rank=1, world_size=2)
    expected = plain(small, epochs=2, **arguments)
    data = fb.torch.IterableDataset(small, **arguments)
    loader = DataLoader(
        data, batch_size=None, num_workers=workers, multiprocessing_context=method
    )
    assert len(loader) == len(expected[0])
    for epoch in expected:
        got = [(b["_sample"].tolist(), int(b["front"].sum())) for b in loader]
        assert got == epoch


def test_workers_that_stay_go_from_epoch_to_epoch(small):
    expected = plain(small, epochs=3, batch_size=8, seed=5)
    data = fb.torch.IterableDataset(small, batch_size=8, seed=5)
    loader = DataLoader(data, batch_size=None, num_workers=2, persistent_workers=True)
    for epoch in (0, 1, 2, 1):
        if epoch == 1:
            data.set_epoch(1)
        assert samples_of(loader) == [samples for samples, _ in expected[epoch]]
    del loader


def test_an_epoch_left_early_is_over(small):
    expected = plain(small, epochs=2, batch_size=8, seed=5)
    data = fb.torch.IterableDataset(small, batch_size=8, seed=5)
    for workers in (0, 2):
        data.set_epoch(0)
        loader = DataLoader(data, batch_size=None, num_workers=workers)
        assert next(iter(loader))["_sample"].tolist() == expected[0][0][0]
        assert samples_of(loader) == [samples for samples, _ in expected[1]]


@pytest.mark.parametrize("workers", [0, 2])
def test_single_samples_are_collated_and_none_is_doubled(small, workers):
    data = fb.torch.IterableDataset(small, seed=3)
    assert len(data) == 60
    batches = list(DataLoader(data, batch_size=8, num_workers=workers))
    assert batches[0]["front"].shape[:2] == (8, 1) and batches[0]["front"].dtype == torch.uint8
    assert sorted(sum(samples_of(batches), [])) == list(range(60))


def test_more_workers_than_batches_give_each_batch_once(small):
    data = fb.torch.IterableDataset(small, batch_size=25, seed=3)
    loader = DataLoader(data, batch_size=None, num_workers=4)
    for epoch in plain(small, epochs=2, batch_size=25, seed=3):
        assert samples_of(loader) == [samples for samples, _ in epoch]


def test_a_dataset_knows_its_place_in_a_worker_of_another_environment(small, monkeypatch):
    for name, value in dict(RANK="1", WORLD_SIZE="3", LOCAL_RANK="1").items():
        monkeypatch.setenv(name, value)
    data = fb.torch.IterableDataset(small, batch_size=4)
    pickled = pickle.dumps(data)
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        monkeypatch.delenv(name)
    expected = plain(small, batch_size=4, rank=1, world_size=3)
    assert samples_of(pickle.loads(pickled)) == [samples for samples, _ in expected[0]]


@pytest.mark.parametrize("cut", [0, 1, 3, 8])
def test_its_state_goes_on_behind_what_was_taken(small, cut):
    expected = plain(small, epochs=2, batch_size=7, seed=3)
    data = fb.torch.IterableDataset(small, batch_size=7, seed=3)
    iterator = iter(data)
    first = [next(iterator)["_sample"].tolist() for _ in range(min(cut, 8))]
    if cut == 8:
        assert next(iterator, None) is None
    state = json.loads(json.dumps(data.state_dict()))
    other = fb.torch.IterableDataset(small, batch_size=7, seed=3)
    other.load_state_dict(state)
    assert other.state_dict() == state
    assert first + samples_of(other) == [samples for samples, _ in expected[0]]
    assert samples_of(other) == [samples for samples, _ in expected[1]]


def test_what_a_dataloader_decides_is_refused(small):
    for more in (dict(output="numpy"), dict(epochs=3), dict(num_workers=2), dict(device="cpu")):
        with pytest.raises(fb.InvalidArgumentError, match=next(iter(more))):
            fb.torch.IterableDataset(small, batch_size=2, **more)
    with pytest.raises(fb.InvalidArgumentError, match="seed"):
        fb.torch.MapDataset(small, seed=3)
    with pytest.raises(fb.InvalidArgumentError, match="state_dict"):
        fb.torch.IterableDataset(small).load_state_dict({"epoch": 1})


@pytest.mark.parametrize("workers, method", WORKERS)
def test_a_map_of_samples_serves_any_sampler(small, workers, method):
    by_sample = {}
    for samples, _ in plain(small, batch_size=1, shuffle=False)[0]:
        by_sample[samples[0]] = None
    with fb.Loader(small, batch_size=1, shuffle=False, epochs=1) as loader:
        pictures = [np.array(batch["front"][0]) for batch in loader]
    data = fb.torch.MapDataset(small)
    assert len(data) == 60
    sampler = DistributedSampler(data, num_replicas=2, rank=1, seed=4)
    loader = DataLoader(
        data, batch_size=8, sampler=sampler, num_workers=workers, multiprocessing_context=method
    )
    seen = []
    for batch in loader:
        assert batch["front"].shape[:2] == (len(batch["_sample"]), 1)
        for sample, picture in zip(batch["_sample"].tolist(), batch["front"].numpy()):
            assert np.array_equal(picture, pictures[sample])
            seen.append(sample)
    assert seen == list(sampler)


def test_a_map_takes_lists_of_any_length_and_single_numbers(small):
    data = fb.torch.MapDataset(small, memory="40MiB")
    wanted = [int(i) for i in np.random.default_rng(1).integers(0, 60, 200)]
    assert [int(s["_sample"]) for s in data.__getitems__(wanted)] == wanted
    assert data.__getitems__([]) == []
    assert int(data[-1]["_sample"]) == 59 and data[np.int64(3)]["front"].shape[0] == 1
    with pytest.raises(fb.InvalidArgumentError):
        data.__getitems__([1, 60])
    assert [int(s["_sample"]) for s in data.__getitems__([5, 4])] == [5, 4], "none is left over"


def test_records_come_one_by_one_as_long_as_they_are(tmp_path):
    texts = [bytes([65 + i]) * (i + 1) for i in range(9)]
    for i, text in enumerate(texts):
        (tmp_path / f"{i}.txt").write_bytes(text)
    fb.index(tmp_path.as_uri() + "/", format="files")
    records = fb.Records(tmp_path.as_uri() + "/", format="files")
    data = fb.torch.MapDataset(records)
    assert [bytes(sample["bytes"].numpy()) for sample in data.__getitems__(range(9))] == texts
    singles = fb.torch.IterableDataset(records, shuffle=False)
    loader = DataLoader(singles, batch_size=None, num_workers=2)
    assert [bytes(sample["bytes"].numpy()) for sample in loader] == texts


def test_fields_of_shards_come_one_by_one_as_long_as_they_are(tmp_path):
    texts = [b"text" * i for i in range(9)]
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        for i, text in enumerate(texts):
            for name, content in ((f"{i}.txt", text), (f"{i}.cls", b"%d" % i)):
                info = tarfile.TarInfo(name)
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    fb.index(tmp_path)
    records = fb.Records(tmp_path)
    for data in (
        fb.torch.MapDataset(records),
        fb.torch.IterableDataset(records, shuffle=False),
        fb.torch.IterableDataset(records, shuffle=False, ops=[fb.ops.parse_int("cls")]),
    ):
        seen = list(data)
        assert [bytes(sample["txt"].tolist()) for sample in seen] == texts
        assert set(seen[0]) == {"txt", "cls", "_sample", "_epoch"}
    assert [int(sample["cls"]) for sample in seen] == list(range(9))
    for last, text in ((lambda batch: {"n": batch["_sample"]}, None), (list, "a list")):
        data = fb.torch.IterableDataset(records, shuffle=False, ops=[last])
        if text is None:
            assert [int(sample["n"]) for sample in data] == list(range(9))
        else:
            with pytest.raises(fb.InvalidArgumentError, match=text):
                next(iter(data))


def test_a_map_is_indexed_as_a_list_is(small):
    data = fb.torch.MapDataset(small)
    assert [int(sample["_sample"]) for sample in data] == list(range(60))
    assert int(data[torch.tensor(-1)]["_sample"]) == 59
    for index in (60, -61, 2**70):
        with pytest.raises(IndexError, match="there are 60 samples"):
            data[index]
    for index in (1.0, slice(2), "1"):
        with pytest.raises(fb.InvalidArgumentError, match="must be an integer"):
            data[index]


def test_what_is_no_state_is_refused(small):
    data = fb.torch.IterableDataset(small, batch_size=4)
    good = data.state_dict()
    for bad in (None, {}, good | {"epoch": "1"}, good | {"epoch": -1}, good | {"done": "no"}):
        with pytest.raises(fb.InvalidArgumentError, match="state"):
            data.load_state_dict(bad)


def test_importing_forebay_does_not_import_torch(run_python):
    run_python("""
        import sys
        import forebay as fb
        assert "torch" not in sys.modules
        assert fb.torch.MapDataset and "torch" in sys.modules
    """)
