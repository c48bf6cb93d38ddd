"""fb.rng: numbers that depend on nothing but their place."""

import importlib.util
import random

import numpy as np
import pytest

import forebay as fb

# Published in docs/order.md, and compared in C++ too (src/base/keyed_random_test.cc).
FROZEN = [
    (dict(seed=7, op="crop", epoch=1, sample=5),
     [0x61C34D8E, 0x8044816D, 0x559F23C5, 0xE4A60E0D, 0xA01AECAE, 0xD0BDB751]),
    (dict(seed=0, op="", epoch=0, sample=0), [0xA2AFA6F6, 0x8F2B2DE9, 0xF708D102]),
    (dict(seed=2**64 - 1, op="flip", epoch=2**64 - 1, sample=2**64 - 1, occurrence=2**32 - 1),
     [0xAA19007F, 0xDA48451E, 0xF9B4A4F2]),
]  # fmt: skip


@pytest.mark.parametrize("place, numbers", FROZEN)
def test_numbers_are_the_published_ones(place, numbers):
    drawn = fb.rng(**place)
    assert [drawn.u32() for _ in numbers] == numbers


def test_every_kind_of_number_is_made_of_the_same_words():
    place = dict(seed=7, op="crop", epoch=1, sample=5)
    words = fb.rng(**place)
    low, high = words.u32(), words.u32()
    assert fb.rng(**place).u64() == 9242654642062708110 == high << 32 | low
    assert fb.rng(**place).random() == ((high << 32 | low) >> 11) * 2.0**-53
    assert fb.rng(**place).below(1000) == (high << 32 | low) * 1000 >> 64
    assert fb.rng(**place).uniform(-2, 3) == -2 + 5 * fb.rng(**place).random()
    drawn = fb.rng(**place)
    assert drawn.u64() == 9242654642062708110 and drawn.random() == 0.8931587965540726
    assert drawn.below(1000) == 815 and drawn.uniform(-2, 3) == 1.3982240479795855


def test_numpy_generators_are_keyed_alike():
    place = dict(seed=7, op="crop", epoch=1, sample=5)
    drawn = fb.rng(**place).numpy()
    assert isinstance(drawn, np.random.Generator)
    assert drawn.integers(0, 2**64, 3, dtype=np.uint64).tolist() == [
        16771113679900067318, 12827520121527748318, 7932689172136075708,
    ]  # fmt: skip
    others = [dict(seed=8), dict(op="flip"), dict(epoch=2), dict(sample=6), dict(occurrence=1)]
    firsts = {fb.rng(**(place | other)).numpy().bit_generator.random_raw() for other in others}
    assert len(firsts) == len(others)


@pytest.mark.parametrize(
    "bad",
    [dict(seed=-1), dict(seed=2**64), dict(op=3), dict(sample=None), dict(occurrence=2**32),
     dict(epoch=1.5)],
)  # fmt: skip
def test_what_is_no_place_is_refused(bad):
    with pytest.raises(fb.InvalidArgumentError):
        fb.rng(**(dict(seed=1, op="x", epoch=0, sample=0) | bad))


def test_below_needs_something_to_choose_from():
    drawn = fb.rng(op="x", sample=0)
    for bad in (0, -1, 2**64, 1.5):
        with pytest.raises(fb.InvalidArgumentError):
            drawn.below(bad)
    assert drawn.below(1) == 0


def test_a_loader_draws_from_no_global_generator(clips):
    torch = None
    if importlib.util.find_spec("torch") is not None:
        import torch

    def states():
        name, keys, *rest = np.random.get_state()
        of_torch = torch.get_rng_state().tolist() if torch is not None else None
        return random.getstate(), name, keys.tolist(), rest, of_torch

    before = states()
    with fb.Loader(clips, batch_size=5, epochs=2, seed=3) as loader:
        for _ in range(2):
            for batch in loader:
                fb.rng(seed=3, op="crop", epoch=int(batch["_epoch"][0]),
                       sample=int(batch["_sample"][0])).numpy().random()  # fmt: skip
    assert states() == before
