import gc
import sys
import time

import pytest

import forebay as fb


class Collections:
    """Every collection that starts, with its generation."""

    def __init__(self):
        self.generations = []

    def __call__(self, phase, info):
        if phase == "start":
            self.generations.append(info["generation"])


@pytest.fixture
def collections():
    watcher = Collections()
    gc.callbacks.append(watcher)
    yield watcher
    gc.callbacks.remove(watcher)


def frozen(thing):
    return not any(each is thing for each in gc.get_objects())


class Node:
    alive = 0

    def __init__(self):
        self.self = self  # garbage that only a collection finds
        Node.alive += 1

    def __del__(self):
        Node.alive -= 1


def make_garbage(count=10_000):
    for _ in range(count):
        Node()


def test_no_collection_runs_inside_a_step(collections):
    with fb.gc_guard() as guard:
        collections.generations.clear()
        make_garbage()
        assert collections.generations == []
        assert Node.alive >= 10_000
        guard.step()
        assert collections.generations == [1]
        assert Node.alive < 1_000
        assert guard.collections == 1 and guard.seconds > 0


def test_a_step_without_garbage_costs_no_collection(collections):
    with fb.gc_guard() as guard:
        guard.step()
        collections.generations.clear()
        for _ in range(100):
            guard.step()
        assert collections.generations == []


def test_garbage_that_grew_old_is_collected_too(collections):
    Node.alive = 0
    with fb.gc_guard() as guard:
        old = [Node() for _ in range(5_000)]
        make_garbage(2_000)
        guard.step()  # the nodes in `old` survive into the oldest generation
        del old
        assert Node.alive >= 5_000
        deadline = time.monotonic() + 20
        while Node.alive >= 5_000 and time.monotonic() < deadline:
            make_garbage(1_000)
            guard.step()
        assert Node.alive < 5_000
        assert 2 in collections.generations


@pytest.mark.parametrize("enabled", [True, False])
def test_everything_is_as_before_afterwards(enabled):
    was = gc.isenabled()
    try:
        gc.enable() if enabled else gc.disable()
        with pytest.raises(KeyError), fb.gc_guard():
            assert not gc.isenabled() and frozen(sys.modules)
            raise KeyError
        assert gc.isenabled() == enabled and not frozen(sys.modules)
    finally:
        gc.enable() if was else gc.disable()


def test_what_the_program_had_frozen_stays_frozen():
    gc.freeze()
    try:
        with fb.gc_guard():
            pass
        assert frozen(sys.modules)
    finally:
        gc.unfreeze()


def test_guards_nest():
    with fb.gc_guard():
        with fb.gc_guard():
            pass
        assert not gc.isenabled() and frozen(sys.modules)
    assert gc.isenabled() and not frozen(sys.modules)


def test_a_large_heap_beside_the_loop_costs_a_step_nothing():
    heap = [[i] for i in range(1_000_000)]
    started = time.perf_counter()
    gc.collect()
    unguarded = time.perf_counter() - started
    with fb.gc_guard() as guard:
        before = guard.seconds
        for _ in range(50):
            make_garbage(1_000)
            guard.step()
        mean = (guard.seconds - before) / guard.collections
    assert guard.collections >= 10
    assert mean < unguarded / 5, (mean, unguarded)
    assert len(heap) == 1_000_000


def test_collect_looks_at_what_was_frozen():
    Node.alive = 0
    with fb.gc_guard(collect=False) as guard:
        kept = [Node() for _ in range(1_000)]
        guard.collect()
        del kept
        guard.step()
        assert Node.alive == 1_000  # frozen
        guard.collect()
        assert Node.alive == 0


def test_the_loader_collects_between_steps(clips, collections):
    with fb.Loader(clips, batch_size=4, epochs=2) as loader, fb.gc_guard() as guard:
        for _ in loader:
            make_garbage(2_000)
            time.sleep(0.01)  # a step, in which the next batch gets ready
            started = len(collections.generations)
        assert guard.collections > 0
        assert started <= guard.collections + 1
