"""torchdata's StatefulDataLoader around fb.torch's datasets."""

import json
import pickle

import pytest
from torch.utils.data import RandomSampler
from torchdata.stateful_dataloader import StatefulDataLoader
from torchdata.stateful_dataloader.sampler import StatefulDistributedSampler

import forebay as fb


def samples_of(batches):
    return [batch["_sample"].tolist() for batch in batches]


def make(small, workers, method, **more):
    data = fb.torch.IterableDataset(small, batch_size=7, seed=3, tail="ragged")
    return StatefulDataLoader(
        data, batch_size=None, num_workers=workers, multiprocessing_context=method, **more
    )


def cut_and_resume(make_loader, cut):
    """The samples of two epochs, with a state taken after `cut` batches and loaded elsewhere."""
    loader = make_loader()
    taken = []
    iterator = iter(loader)
    for _ in range(cut):
        taken.append(next(iterator)["_sample"].tolist())
    state = pickle.loads(pickle.dumps(loader.state_dict()))
    del iterator
    other = make_loader()
    other.load_state_dict(state)
    return taken, samples_of(other), samples_of(other)


@pytest.mark.parametrize(
    "workers, method, cuts",
    [(0, None, range(10)), (1, "fork", [4]), (2, "fork", [0, 1, 2, 5, 8, 9]), (2, "spawn", [3])],
)
def test_it_goes_on_behind_what_was_taken(small, plain, workers, method, cuts):
    first, second = plain(epochs=2, batch_size=7, seed=3, tail="ragged")
    assert len(first) == 9
    for cut in cuts:
        taken, rest, after = cut_and_resume(lambda: make(small, workers, method), cut)
        assert taken + rest == first, cut
        assert after == second, cut


def test_a_state_at_the_end_of_an_epoch_opens_the_next(small, plain):
    first, second = plain(epochs=2, batch_size=7, seed=3, tail="ragged")
    for workers in (0, 2):
        loader = make(small, workers, None)
        assert samples_of(loader) == first
        state = json.loads(json.dumps(loader.state_dict()))
        assert samples_of(loader) == second
        other = make(small, workers, None)
        other.load_state_dict(state)
        assert samples_of(other) == second


def test_a_map_of_samples_resumes_with_its_sampler(small):
    for workers in (0, 2):

        def make_loader():
            data = fb.torch.MapDataset(small)
            sampler = StatefulDistributedSampler(data, num_replicas=1, rank=0, seed=5)
            return StatefulDataLoader(data, batch_size=8, sampler=sampler, num_workers=workers)

        whole = samples_of(make_loader())
        taken, rest, _ = cut_and_resume(make_loader, 3)
        assert taken + rest == whole


@pytest.mark.parametrize("kind", ["distributed", "random"])
@pytest.mark.parametrize("cut", [0, 2, 5, 8])
def test_the_loader_keeps_the_state_of_torchdatas_samplers(small, kind, cut):
    def make_loader():
        if kind == "distributed":
            sampler = StatefulDistributedSampler(range(60), num_replicas=1, rank=0, seed=5)
        else:
            import torch

            sampler = RandomSampler(range(60), generator=torch.Generator().manual_seed(3))
        return fb.Loader(small, sampler=sampler, batch_size=8, drop_last=False, output="torch")

    with make_loader() as loader:
        whole = [samples_of(loader), samples_of(loader)]
    assert whole[0] != whole[1] and len(whole[0]) == 8
    with make_loader() as loader:
        iterator = iter(loader)
        taken = [next(iterator)["_sample"].tolist() for _ in range(cut)]
        state = pickle.loads(pickle.dumps(loader.state_dict()))
    with make_loader() as loader:
        loader.load_state_dict(state)
        loader.set_epoch(0)  # its rest, which may be empty
        assert taken + samples_of(loader) == whole[0]
        assert samples_of(loader) == whole[1]
    with make_loader() as loader:
        loader.load_state_dict(state)
        assert samples_of(loader) == (whole[0][cut:] or whole[1])
