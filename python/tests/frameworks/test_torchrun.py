"""torchrun with gloo on 1 to 4 processes: DistributedDataParallel over a forebay.Loader."""

import json

import pytest

PROGRAM = """
import json, os, sys
import torch
import torch.distributed as dist
import forebay as fb

uri, way = sys.argv[1:3]
clips = fb.VideoClips(uri, cameras=["front"], frames=1, step=1, hop=3)
if way == "accelerate":
    import accelerate
    accelerator = accelerate.Accelerator(cpu=True)
elif way != "before":
    dist.init_process_group("gloo")
if way == "dataloader":
    data = fb.torch.IterableDataset(clips, batch_size=4, seed=3, tail="ragged")
    loader = torch.utils.data.DataLoader(data, batch_size=None, num_workers=1)
else:
    loader = fb.Loader(clips, batch_size=4, seed=3, tail="ragged", output="torch", epochs=2)
if way == "before":
    dist.init_process_group("gloo")  # after the loader was made, before it is used
if way == "accelerate":
    model, loader = accelerator.prepare(torch.nn.Linear(1, 1), loader)
else:
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
seen = []
for epoch in range(2):
    steps = 0
    for batch in loader:
        front = batch["front"].float()
        model(front.mean().reshape(1, 1) if len(front) else torch.zeros(1, 1)).sum().backward()
        seen.append((epoch, batch["_sample"].tolist()))
        steps += 1
    assert steps == len(loader), (steps, len(loader))
everybody = [None] * dist.get_world_size()
dist.all_gather_object(everybody, seen)
if dist.get_rank() == 0:
    print(json.dumps(everybody))
dist.destroy_process_group()
"""


@pytest.mark.parametrize(
    "processes, way",
    [(1, "loader"), (2, "loader"), (3, "loader"), (4, "loader"), (2, "before"), (2, "dataloader"),
     (2, "accelerate")],
)
def test_all_ranks_together_see_each_epoch_once(drives, torchrun, processes, way):
    lines = torchrun(PROGRAM, processes, drives, way)
    everybody = json.loads(lines[-1])
    assert len(everybody) == processes
    assert len({len(seen) for seen in everybody}) == 1
    for epoch in (0, 1):
        samples = [s for seen in everybody for e, batch in seen if e == epoch for s in batch]
        assert sorted(samples) == list(range(60))


def test_the_same_order_on_any_number_of_ranks(drives, torchrun, plain):
    """Global batches of 4 rows: 4 ranks of 1, 2 of 2, 1 of 4."""
    program = PROGRAM.replace("batch_size=4", "batch_size=4 // int(os.environ['WORLD_SIZE'])")
    expected = plain(epochs=2, batch_size=4, seed=3, tail="ragged")
    for processes in (2, 4):
        everybody = json.loads(torchrun(program, processes, drives, "loader")[-1])
        steps = [sum((batch for _, batch in step), []) for step in zip(*everybody)]
        assert steps == expected[0] + expected[1]
