"""Ranks compare their orders before the first batch: with torch.distributed and gloo."""

import json
import os
import socket
import subprocess
import sys
import textwrap
import types

import pytest

import forebay as fb
from forebay import agreement
from forebay.ranks import Place


class Store:
    """What torch.distributed's store does, for one process."""

    def __init__(self):
        self.values, self.counts = {}, {}

    def set(self, key, value):
        self.values[key] = value.encode()

    def get(self, key):
        return self.values[key]

    def add(self, key, amount):
        self.counts[key] = self.counts.get(key, 0) + amount
        return self.counts[key]


def modules_of(store, rank, world_size):
    distributed = types.SimpleNamespace(
        is_available=lambda: True,
        is_initialized=lambda: True,
        get_rank=lambda: rank,
        get_world_size=lambda: world_size,
        distributed_c10d=types.SimpleNamespace(_get_default_store=lambda: store),
    )
    return {"torch.distributed": distributed}


@pytest.fixture
def compare(monkeypatch):
    monkeypatch.setattr(agreement, "WAIT_S", 0.05)
    store = Store()

    def run(rank, summary, world_size=2, place=None):
        monkeypatch.setattr(agreement, "_round", 0)
        place = place or Place(rank, world_size, "test")
        agreement.check(place, summary, modules_of(store, rank, world_size))
        return store

    return run


def test_who_comes_last_sees_the_difference_and_names_both_sides(compare, capsys):
    same = {"seed": 7, "sources": [{"name": "a", "samples": 5}], "epoch": 0}
    compare(0, same)
    assert "rank 0 goes on without rank 1 having" in capsys.readouterr().err
    compare(1, dict(same))
    assert capsys.readouterr().err == ""
    other = {"seed": 8, "sources": [{"name": "a", "samples": 6}], "epoch": 0}
    with pytest.raises(fb.InvalidArgumentError) as raised:
        compare(1, other)
    assert "seed is 7 on rank 0 and 8 on rank 1" in str(raised.value)
    assert "sources[0].samples is 5 on rank 0 and 6 on rank 1" in str(raised.value)
    assert "epoch" not in str(raised.value)


def test_without_rank_0_the_others_go_on(compare, capsys):
    compare(1, {"seed": 1}, world_size=3)
    assert "rank 1 goes on without rank 0" in capsys.readouterr().err


def test_a_place_that_is_not_the_groups_is_not_compared(compare):
    assert compare(0, {}, place=Place(0, 1, "arguments")).values == {}
    assert compare(0, {}, place=Place(1, 2, "arguments")).values == {}
    assert compare(0, {}, place=Place(0, 4, "arguments")).values == {}


def test_a_loader_that_was_made_before_the_group_came_up_is_refused(compare):
    with pytest.raises(fb.InvalidArgumentError, match="rank 0 of 1 .*came up later, says 1 of 2"):
        compare(1, {}, place=Place(0, 1, "a single process"))


PROGRAM = """
import datetime, json, os, sys
import torch.distributed as dist
import forebay as fb
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=30))
rank = dist.get_rank()
clips = fb.VideoClips(sys.argv[1], cameras=["front"], frames=1, hop=3)
with fb.Loader(clips, batch_size=2, seed=eval(sys.argv[2]), epochs=1) as loader:
    try:
        batches = [batch["_sample"].tolist() for batch in loader]
    except fb.InvalidArgumentError as error:
        batches = str(error)
    if isinstance(batches, str):
        sys.exit(print(json.dumps(batches)))  # at once: the store goes with rank 0
    everybody = [None] * dist.get_world_size()
    dist.all_gather_object(everybody, batches)  # the program's own collectives are not disturbed
print(json.dumps({"rank": loader.rank, "world": loader.world_size, "all": everybody}))
dist.destroy_process_group()
"""


def run_ranks(tmp_path, world_size, *arguments):
    """The last line of each rank's stdout, evaluated."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    path = tmp_path / "ranks.py"
    path.write_text(textwrap.dedent(PROGRAM))
    package = os.path.dirname(os.path.dirname(os.path.abspath(fb.__file__)))
    ranks = []
    for rank in range(world_size):
        environment = dict(
            os.environ, PYTHONPATH=package, RANK=str(rank), WORLD_SIZE=str(world_size),
            LOCAL_RANK=str(rank), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
            USE_LIBUV="0",  # which Debian 13's torch is built without
        )  # fmt: skip
        command = [sys.executable, os.fspath(path), *arguments]
        ranks.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True))
    outputs = [process.communicate(timeout=100)[0] for process in ranks]
    assert [process.returncode for process in ranks] == [0] * world_size
    return [json.loads(output.splitlines()[-1]) for output in outputs]


def test_ranks_of_a_gloo_group_take_disjoint_slices(drives, tmp_path):
    results = run_ranks(tmp_path, 2, drives, "5")
    assert [(r["rank"], r["world"]) for r in results] == [(0, 2), (1, 2)]
    first, second = results[0]["all"]
    seen = sum(first + second, [])
    assert len(first) == len(second) == 15 and sorted(seen) == list(range(60))


def test_ranks_with_different_seeds_are_stopped_and_told(drives, tmp_path):
    results = run_ranks(tmp_path, 3, drives, "5 if rank < 2 else 6")
    assert all("seed is 5 on rank 0 and 6 on rank 2" in text for text in results)
