"""An order that is somebody else's: Loader(sampler=...) and Loader(batch_sampler=...)."""

import json
import random
import shutil

import numpy as np
import pytest
from conftest import path_of

import forebay as fb


@pytest.fixture(scope="module")
def small(drives):
    """One frame each, so that a batch costs nothing: 60 samples."""
    return fb.VideoClips(drives, cameras=["front"], frames=1, step=1, hop=3)


class ByEpoch:
    """As torch's DistributedSampler: seeded by its epoch, without a state."""

    def __init__(self, count, salt=0):
        self.count, self.salt, self.epoch, self.pulled = count, salt, 0, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return self.count

    def indices(self, epoch):
        return random.Random(100 * epoch + self.salt).sample(range(self.count), self.count)

    def __iter__(self):
        for index in self.indices(self.epoch):
            self.pulled += 1
            yield index


class WithState:
    """A sampler whose order depends on a generator of its own, which it can save."""

    def __init__(self, count):
        self.count, self.random, self.left = count, random.Random(1), []

    def __iter__(self):
        if not self.left:
            self.left = self.random.sample(range(self.count), self.count)
        while self.left:
            yield self.left.pop()

    def state_dict(self):
        version, words, gauss = self.random.getstate()
        return {"left": list(self.left), "random": [version, list(words), gauss]}

    def load_state_dict(self, state):
        version, words, gauss = state["random"]
        self.random.setstate((version, tuple(words), gauss))
        self.left = list(state["left"])


class BackAtItsStart(ByEpoch):
    """Its place is its state, which is that of the next epoch's start once it has said its end."""

    place = 0

    def __iter__(self):
        indices = self.indices(self.epoch)
        while self.place < self.count:
            self.place += 1
            yield indices[self.place - 1]
        self.place = 0

    def state_dict(self):
        return {"place": self.place}

    def load_state_dict(self, state):
        self.place = state["place"]


class OfNoLength(BackAtItsStart):
    def __len__(self):
        raise NotImplementedError


def samples_of(batches):
    return [batch["_sample"].tolist() for batch in batches]


def cut(indices, size, drop=False):
    parts = [indices[i : i + size] for i in range(0, len(indices), size)]
    return parts[:-1] if drop and len(parts[-1]) < size else parts


@pytest.mark.parametrize("drop_last", [True, False])
def test_a_samplers_indices_are_the_order_of_every_epoch(small, drop_last):
    sampler = ByEpoch(23)
    with fb.Loader(small, sampler=sampler, batch_size=5, drop_last=drop_last, epochs=2,
                   held_limit=99) as loader:
        assert len(loader) == (4 if drop_last else 5)
        for epoch in (0, 1):
            batches = list(loader)
            assert samples_of(batches) == cut(sampler.indices(epoch), 5, drop_last)
            assert {int(b["_epoch"][0]) for b in batches} == {epoch}
            assert all(b["front"].shape[0] == len(b["_sample"]) for b in batches)
        assert list(loader) == []


def test_the_pictures_are_those_of_the_indices(small):
    with fb.Loader(small, shuffle=False, batch_size=1, epochs=1) as loader:
        plain = [np.array(b["front"][0]) for b in loader]
    indices = [7, 7, 0, 59, 3]
    with fb.Loader(small, sampler=indices, batch_size=2, drop_last=False, epochs=1) as loader:
        rows = [(int(s), np.array(p)) for b in loader for s, p in zip(b["_sample"], b["front"])]
    assert [s for s, _ in rows] == indices
    assert all(np.array_equal(picture, plain[s]) for s, picture in rows)


def test_lists_arrays_generators_and_functions_serve_as_samplers(small):
    def epochs_of(sampler, **more):
        with fb.Loader(small, sampler=sampler, batch_size=2, epochs=2, **more) as loader:
            return [samples_of(loader), samples_of(loader)]

    wanted = [[4, 2], [9, 1]]
    for sampler in ([4, 2, 9, 1], np.array([4, 2, 9, 1]), lambda: iter([4, 2, 9, 1])):
        assert epochs_of(sampler) == [wanted, wanted]
    assert epochs_of(i for i in [4, 2, 9, 1]) == [wanted, []], "as with DataLoader"
    with pytest.raises(TypeError):
        len(fb.Loader(small, sampler=lambda: iter([1])))


def test_batch_samplers_say_how_long_a_batch_is(small):
    lists = [[1, 2, 3], [4], [5, 6]]
    with fb.Loader(small, batch_sampler=lists, batch_size=3, epochs=1) as loader:
        assert len(loader) == 3 and loader.batch_size == 3
        assert samples_of(loader) == lists
    with pytest.raises(fb.InvalidArgumentError, match="batch_size"):
        fb.Loader(small, batch_sampler=lists)
    with fb.Loader(small, batch_sampler=lists, batch_size=2, epochs=1) as loader:
        with pytest.raises(fb.InvalidArgumentError, match="3 samples"):
            list(loader)


@pytest.mark.parametrize("ahead", [0, 1, 4])
def test_it_is_pulled_no_further_ahead_than_told(small, ahead):
    sampler = ByEpoch(60)
    with fb.Loader(small, sampler=sampler, batch_size=2, pull_ahead=ahead, epochs=1) as loader:
        for step, _ in enumerate(loader, 1):
            assert sampler.pulled <= min(60, 2 * (step + ahead))
        assert step == 30


def test_a_sampler_may_depend_on_what_the_model_returned(small):
    losses = []

    def hardest():
        for _ in range(6):
            yield [len(losses), 59 - len(losses)]

    with fb.Loader(small, batch_sampler=hardest, batch_size=2, pull_ahead=0, epochs=1) as loader:
        for batch in loader:
            assert batch["_sample"].tolist() == [len(losses), 59 - len(losses)]
            losses.append(1.0)


def run_with_cuts(make, cuts, steps):
    """The samples of `steps` batches in runs of `cuts` batches each, each by a new loader."""
    seen, state = [], None
    while len(seen) < steps:
        with make() as loader:
            if state is not None:
                loader.load_state_dict(json.loads(json.dumps(state)))
            left = next(cuts)
            while left > 0 and len(seen) < steps:
                for batch in loader:
                    seen.append(batch["_sample"].tolist())
                    left -= 1
                    if left == 0 or len(seen) == steps:
                        break
            state = loader.state_dict()
    return seen


@pytest.mark.parametrize("kind", [ByEpoch, WithState, BackAtItsStart, OfNoLength])
@pytest.mark.parametrize("every", [1, 2, 3, 5])
def test_resumed_at_every_place_it_is_the_uninterrupted_run(small, kind, every):
    def make():
        return fb.Loader(small, sampler=kind(22), batch_size=4, drop_last=False)

    expected = run_with_cuts(make, iter([99]), 15)
    assert len({tuple(sum(expected[i : i + 6], [])) for i in (0, 6)}) == 2
    assert run_with_cuts(make, iter([every] * 99), 15) == expected


def test_the_state_is_of_what_was_delivered_not_of_what_was_pulled(small):
    sampler = WithState(40)
    with fb.Loader(small, sampler=sampler, batch_size=4, epochs=1) as loader:
        iterator = iter(loader)
        next(iterator)
        assert len(loader.state_dict()["sampler"]["state"]["left"]) == 36 > len(sampler.left)


def test_a_sampler_that_gives_other_indices_than_before_is_found_out(small):
    with fb.Loader(small, sampler=ByEpoch(40), batch_size=4) as loader:
        iterator = iter(loader)
        next(iterator), next(iterator)
        state = loader.state_dict()
    for other in (ByEpoch(40, salt=1), [1, 2]):
        with fb.Loader(small, sampler=other, batch_size=4) as loader:
            loader.load_state_dict(state)
            for _ in range(2):
                with pytest.raises(fb.InvalidArgumentError, match="does not give the indices again"):
                    next(iter(loader))
    with fb.Loader(small, batch_size=4) as loader:
        with pytest.raises(fb.InvalidArgumentError, match="shuffle is external"):
            loader.load_state_dict(state)
    with fb.Loader(small, batch_size=4) as loader:
        own = loader.state_dict()
    with fb.Loader(small, sampler=[1], batch_size=1) as loader:
        with pytest.raises(fb.InvalidArgumentError, match="shuffle is global"):
            loader.load_state_dict(own)


def test_a_samplers_error_comes_in_its_place_and_again(small):
    def broken():
        yield from range(6)
        raise RuntimeError("no more")

    with fb.Loader(small, sampler=broken, batch_size=2, epochs=1) as loader:
        iterator = iter(loader)
        assert [next(iterator)["_sample"].tolist() for _ in range(3)] == [[0, 1], [2, 3], [4, 5]]
        for _ in range(2):
            with pytest.raises(RuntimeError, match="no more"):
                next(iterator)


@pytest.mark.parametrize("bad", [-1, 60, 2**40])
def test_indices_that_are_no_samples_are_refused(small, bad):
    with fb.Loader(small, sampler=[0, bad], batch_size=2) as loader:
        with pytest.raises(fb.InvalidArgumentError, match="is not in"):
            next(iter(loader))
    for none in ("a", 2**63, 2**70, 1.0):
        with fb.Loader(small, sampler=[none]) as loader:
            with pytest.raises(fb.InvalidArgumentError, match="no index"):
                next(iter(loader))
    with fb.Loader(small, batch_sampler=[1, 2], batch_size=2) as loader:
        with pytest.raises(fb.InvalidArgumentError, match="no list of indices"):
            next(iter(loader))


def test_a_batch_that_failed_is_tried_again_and_nothing_behind_it_is_lost(drives, tmp_path):
    root = tmp_path / "half"
    shutil.copytree(path_of(drives), root)
    fb.index(root.as_uri() + "/")
    kept = (root / "beta/front.mp4").read_bytes()
    half = fb.VideoClips(root.as_uri() + "/", cameras=["front"], frames=1, hop=3)
    order = [0, 25, 1, 26, 2]
    with fb.Loader(half, sampler=order, epochs=1, held_limit=99) as loader:
        (root / "beta/front.mp4").unlink()
        iterator = iter(loader)
        assert next(iterator)["_sample"].tolist() == [0]
        for _ in range(2):
            with pytest.raises(fb.ForebayError, match="sample 25"):
                next(iterator)
        (root / "beta/front.mp4").write_bytes(kept)
        fb.index(root.as_uri() + "/")
    with fb.Loader(half, sampler=order, epochs=1, on_bad_sample=fb.skip(max=9)) as loader:
        (root / "beta/front.mp4").unlink()
        taken, skips = [], []
        for batch in loader:
            taken += batch["_sample"].tolist()
            skips = loader.state_dict()["skips"]
    assert skips == [1, 3] and taken[::2] == [0, 1, 2]
    assert not set(taken) & set(range(20, 40)), "none of the missing video's"


def test_an_epoch_left_early_and_set_epoch_begin_anew(small):
    sampler = ByEpoch(20)
    with fb.Loader(small, sampler=sampler, batch_size=5) as loader:
        next(iter(loader))
        assert samples_of(loader) == cut(sampler.indices(1), 5)
        loader.set_epoch(7)
        assert samples_of(zip_to(loader, 4)) == cut(sampler.indices(7), 5)
        assert samples_of(loader) == cut(sampler.indices(8), 5)


def zip_to(loader, count):
    return [batch for _, batch in zip(range(count), loader)]


def test_what_the_sampler_decides_is_not_said_twice(small):
    for more in (dict(batch_sampler=[[1]]), dict(epoch_samples=5), dict(replicas=2),
                 dict(shuffle=fb.BlockShuffle()), dict(tail="pad"), dict(pull_ahead=-1)):
        with pytest.raises(fb.InvalidArgumentError):
            fb.Loader(small, sampler=[1, 2], **more)
    for more in (dict(drop_last=True), dict(sampler=[1])):
        with pytest.raises(fb.InvalidArgumentError):
            fb.Loader(small, batch_sampler=[[1]], batch_size=2, **more)
    with pytest.raises(fb.InvalidArgumentError):
        fb.Loader(small, pull_ahead=3)
    with pytest.raises(fb.InvalidArgumentError):
        fb.Loader(small, sampler=5)


def test_ranks_are_the_samplers_business(small):
    with fb.Loader(small, sampler=[3, 1], batch_size=2, rank=1, world_size=4, epochs=1) as loader:
        assert (loader.rank, loader.world_size) == (1, 4)
        assert samples_of(loader) == [[3, 1]]
