"""The order as a user meets it: worlds, tails, epochs, mixtures, states."""

import json
import random

import numpy as np
import pytest
from conftest import CAMERAS

import forebay as fb

SAMPLES = 54


@pytest.fixture(scope="module")
def small(drives):
    """One frame each, so that a batch costs nothing: 60 samples a scene and camera."""
    return fb.VideoClips(drives, cameras=["front"], frames=1, step=1, hop=3)


def rows(loader):
    """Per batch: [(source, sample)] of the rows that repeat nothing."""
    batches = []
    for batch in loader:
        pads = batch.get("_pad", np.zeros(len(batch["_sample"]), bool))
        sources = batch.get("_source", np.zeros(len(batch["_sample"]), np.int32))
        batches.append(
            [(int(s), int(i)) for s, i, pad in zip(sources, batch["_sample"], pads) if not pad]
        )
    return batches


def whole_epoch(dataset, world, **arguments):
    """The batches of all ranks, joined in rank order."""
    of_ranks = []
    for rank in range(world):
        with fb.Loader(dataset, rank=rank, world_size=world, epochs=1, **arguments) as loader:
            of_ranks.append(rows(loader))
            assert len(of_ranks[-1]) == len(loader)
    assert len({len(batches) for batches in of_ranks}) == 1
    return [sum(parts, []) for parts in zip(*of_ranks)]


SHUFFLES = [True, False, fb.BlockShuffle(window=1, streams=2, run=3)]


@pytest.mark.parametrize("shuffle", SHUFFLES, ids=["global", "none", "blocks"])
@pytest.mark.parametrize("tail", ["drop", "pad", "ragged"])
def test_every_sample_comes_once_on_any_world(small, shuffle, tail):
    count = fb_count(small)
    alone = None
    for world, batch_size in ((1, 14), (2, 7), (7, 2)):
        batches = whole_epoch(small, world, batch_size=batch_size, shuffle=shuffle, tail=tail, seed=3)
        if alone is None:
            alone = batches
            seen = sum(batches, [])
            assert len(seen) == len(set(seen)) == (count // 14 * 14 if tail == "drop" else count)
        assert batches == alone, "a global batch has the same members, in the same order"


def fb_count(dataset):
    with fb.Loader(dataset) as loader:
        return loader.sample_count


def test_a_ragged_tail_gives_some_ranks_less_or_nothing(small):
    count = fb_count(small)
    with fb.Loader(small, batch_size=count - 2, epochs=1, tail="ragged", world_size=1, rank=0) as one:
        assert [len(b["_sample"]) for b in one] == [count - 2, 2]
    sizes = []
    for rank in range(4):
        with fb.Loader(small, batch_size=count, epochs=1, tail="ragged", rank=rank, world_size=4,
                       shuffle=False, epoch_samples=count * 4 + 2, held_limit=9) as loader:
            batches = list(loader)
            sizes.append([len(b["_sample"]) for b in batches])
            assert batches[1][CAMERAS[0]].shape[0] == sizes[-1][1]
            assert loader.state_dict()["epoch"] == 1
    assert sizes == [[count, 1], [count, 1], [count, 0], [count, 0]]


def test_replicas_see_the_same(small):
    seen = []
    for rank in range(4):
        with fb.Loader(small, batch_size=3, epochs=1, rank=rank, world_size=4, replicas=2) as loader:
            seen.append(rows(loader))
    assert seen[0] == seen[1] and seen[2] == seen[3] and seen[0] != seen[2]
    with pytest.raises(fb.InvalidArgumentError, match="whole number of groups"):
        fb.Loader(small, rank=0, world_size=4, replicas=3)


def test_short_epochs_go_on_where_the_last_one_ended(small):
    count = fb_count(small)
    with fb.Loader(small, batch_size=5, epoch_samples=20, seed=4) as loader:
        assert len(loader) == 4
        seen = sum((sum(rows(loader), []) for _ in range(count // 20)), [])
    assert len(seen) == len(set(seen)) == count // 20 * 20


def test_a_mixture_has_exact_shares_and_goes_on_after_new_weights(drives, small):
    other = fb.VideoClips(drives, cameras=["front"], frames=1, step=1, hop=5)
    mix = fb.Mix({"a": (small, 3), "b": (other, 1)}, block=8)
    with fb.Loader(mix, batch_size=8, seed=1, epoch_samples=160, held_limit=99) as loader:
        assert loader.sources == ["a", "b"]
        iterator = iter(loader)
        first = [next(iterator) for _ in range(5)]
        assert [int((b["_source"] == 1).sum()) for b in first] == [2] * 5
        loader.set_weights({"a": 1, "b": 1})
        state = loader.state_dict()
        assert [m["start"] for m in state["mixture"]] == [0, 40]
        second = [next(iterator) for _ in range(5)]
        assert [int((b["_source"] == 1).sum()) for b in second] == [4] * 5
        after = loader.state_dict()
    for source in (0, 1):
        taken = [int(s) for b in first + second for s in b["_sample"][b["_source"] == source]]
        assert len(taken) == len(set(taken)), "nothing is repeated over the change"
    # The state carries the change to a loader that was made without it.
    with fb.Loader(mix, batch_size=4, seed=1, epoch_samples=160, held_limit=99) as loader:
        loader.load_state_dict(json.loads(json.dumps(state)))
        iterator = iter(loader)
        again = [next(iterator) for _ in range(10)]
        assert loader.state_dict() == after
    assert sum(rows(again), []) == sum(rows(second), [])


def test_what_makes_no_mixture_is_refused(drives, small):
    bad_weights = ({"a": (small, weight)} for weight in (-1, "x", True, float("nan"), float("inf")))
    for bad in ({}, {"a": small}, {1: (small, 1)}, *bad_weights):
        with pytest.raises(fb.InvalidArgumentError):
            fb.Mix(bad)
    assert fb.Mix({"a": (small, np.float32(0.5))}).sources["a"][1] == 0.5
    two = fb.VideoClips(drives, frames=1)
    with pytest.raises(fb.InvalidArgumentError, match="equal arrays"):
        fb.Loader(fb.Mix({"a": (small, 1), "b": (two, 1)}))
    with fb.Loader(small) as loader, pytest.raises(fb.InvalidArgumentError):
        loader.set_weights({"a": 1})


def test_chains_of_resumes_on_any_topology_are_the_uninterrupted_run(drives, small):
    other = fb.VideoClips(drives, cameras=["front"], frames=1, step=1, hop=7)
    mix = fb.Mix({"a": (small, 2), "b": (other, 1)}, block=6)
    draw = random.Random(5)
    for dataset, arguments in (
        (small, dict(seed=2)),
        (small, dict(seed=2, shuffle=fb.BlockShuffle(window=2, streams=3, run=2), tail="pad")),
        (mix, dict(seed=2, tail="ragged", epoch_samples=50)),
    ):
        with fb.Loader(dataset, batch_size=1, epochs=2, rank=0, world_size=1, **arguments) as loader:
            expected = sum(rows(loader), []) + sum(rows(loader), [])
        for _ in range(3):
            assert resumed(dataset, arguments, draw) == expected


def resumed(dataset, arguments, draw):
    """Two epochs in stretches, each on another number of ranks with another batch size."""
    seen, state = [], None
    while True:
        # A drop tail depends on the batch: one that divides every rest.
        world = draw.choice([1, 2, 3])
        batch_size = 1 if arguments.get("tail") is None else draw.choice([1, 2, 5])
        world = 1 if arguments.get("tail") is None else world
        steps = draw.randint(1, 25)
        states, parts = [], []
        for rank in range(world):
            with fb.Loader(dataset, batch_size=batch_size, epochs=2, rank=rank, world_size=world,
                           **arguments) as loader:
                if state is not None:
                    loader.load_state_dict(json.loads(json.dumps(state)))
                part, left = [], steps
                while left > 0 and loader.state_dict()["epoch"] < 2:
                    for batch in loader:
                        part += rows([batch])
                        left -= 1
                        if left == 0:
                            break
                parts.append(part)
                states.append(loader.state_dict())
        assert all(s == states[0] for s in states)
        seen += sum((sum(step, []) for step in zip(*parts)), [])
        if states[0] == state:
            return seen
        state = states[0]
        if state["epoch"] == 2:
            return seen


def test_a_state_is_small_equal_on_ranks_and_names_what_differs(small, clips):
    with fb.Loader(clips, batch_size=3, seed=7) as loader:
        state = loader.state_dict()
        assert len(json.dumps(state)) < 1024
    for change, names in (
        (dict(seed=8), "seed is 7, this loader's is 8"),
        (dict(shuffle=False), "shuffle is global, this loader's is none"),
        (dict(drop_last=False), "tail is drop, this loader's is pad"),
        (dict(epoch_samples=9), "epoch_samples is 0, this loader's is 9"),
    ):
        with fb.Loader(clips, batch_size=3, **(dict(seed=7) | change)) as loader:
            with pytest.raises(fb.InvalidArgumentError, match=names):
                loader.load_state_dict(state)
    with fb.Loader(small, batch_size=3, seed=7) as loader:
        with pytest.raises(fb.InvalidArgumentError, match="cameras is"):
            loader.load_state_dict(state)


def test_the_digest_is_of_the_samples_alone(small):
    digests = set()
    for world, batch_size, runway in ((1, 6, "auto"), (2, 3, "off"), (3, 2, "0.5s")):
        for rank in range(world):
            with fb.Loader(small, batch_size=batch_size, rank=rank, world_size=world, seed=1,
                           runway=runway, epochs=1, decode_threads=world) as loader:
                rows(loader)
                digests.add(loader.state_dict()["digest"])
    assert len(digests) == 1
    with fb.Loader(small, batch_size=6, seed=2, epochs=1) as loader:
        rows(loader)
        assert loader.state_dict()["digest"] not in digests


def test_a_run_goes_on_from_every_step_of_an_epoch(small):
    arguments = dict(seed=5, tail="pad", shuffle=fb.BlockShuffle(window=1, streams=2, run=4))
    with fb.Loader(small, batch_size=4, epochs=2, **arguments) as loader:
        states, batches = [loader.state_dict()], []
        for _ in range(2):
            for batch in loader:
                batches.append(rows([batch])[0])
                states.append(json.loads(json.dumps(loader.state_dict())))
        digest = states[-1]["digest"]
    steps = len(batches) // 2
    for step in range(steps + 1):
        with fb.Loader(small, batch_size=4, epochs=2, **arguments) as loader:
            loader.load_state_dict(states[step])
            rest = rows(loader)
            if step == 0 or len(rest) < len(batches) - step:
                rest += rows(loader)
            assert rest == batches[step:]
            assert loader.state_dict()["digest"] == digest


def test_behind_an_epochs_last_batch_iter_opens_the_next_and_set_epoch_its_own(small):
    def make(sampler):
        order = dict(sampler=range(60), drop_last=False) if sampler else dict(seed=1)
        return fb.Loader(small, batch_size=15, **order)

    for sampler in (False, True):
        with make(sampler) as loader:
            epochs = [rows(loader) for _ in range(2)]
            loader.set_epoch(0)
            for _ in zip(range(4), loader):  # never asks for the end
                state = loader.state_dict()
        assert (state["epoch"], state["position"]) == (0, 60)
        with make(sampler) as loader:
            loader.load_state_dict(state)
            assert rows(loader) == epochs[1] and loader.state_dict()["epoch"] == 2
        with make(sampler) as loader:
            loader.load_state_dict(state)
            loader.set_epoch(0)
            assert rows(loader) == [], "nothing is left of it"
            assert rows(loader) == epochs[1]
    with fb.Loader(small, batch_size=15, epochs=1, seed=1) as loader:
        for _ in zip(range(4), loader):
            state = loader.state_dict()
        loader.load_state_dict(state)
        assert rows(loader) == [], "there was one epoch"


def test_the_content_digest_is_of_the_arrays_wherever_they_went(small):
    sums = set()
    for world, batch_size in ((1, 6), (2, 3), (3, 5)):
        total = 0
        for rank in range(world):
            with fb.Loader(small, batch_size=batch_size, rank=rank, world_size=world, seed=1,
                           tail="pad", epochs=1, content_digest=True) as loader:
                rows(loader)
                total += int(loader.state_dict()["content"], 16)
        sums.add(total % 2**64)
    assert len(sums) == 1
    with fb.Loader(small, batch_size=6, seed=1, tail="pad", epochs=1, content_digest=True) as loader:
        iterator = iter(loader)
        next(iterator)
        state = loader.state_dict()
    with fb.Loader(small, batch_size=3, seed=1, tail="pad", epochs=1, content_digest=True) as loader:
        loader.load_state_dict(state)
        rows(loader)
        stretches = (state["content"], loader.state_dict()["content"])
        assert {sum(int(content, 16) for content in stretches) % 2**64} == sums
    with fb.Loader(small, batch_size=6, seed=1) as loader:
        assert loader.state_dict()["content"] == ""
