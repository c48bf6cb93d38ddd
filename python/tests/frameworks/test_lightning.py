"""PyTorch Lightning takes a forebay.Loader as it is, and keeps its state in checkpoints."""

import json
import os

import lightning
import pytest
import torch

import forebay as fb


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
        self.seen = []

    def training_step(self, batch, index):
        self.seen.append((self.current_epoch, batch["_sample"].tolist()))
        return self.layer(batch["front"].float().mean().reshape(1, 1)).sum()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1e-3)


def trainer(tmp_path, **arguments):
    return lightning.Trainer(
        accelerator="cpu", devices=1, logger=False, enable_progress_bar=False,
        enable_model_summary=False, default_root_dir=tmp_path,
        **({"enable_checkpointing": False} | arguments),
    )  # fmt: skip


def loader_of(small):
    return fb.Loader(small, batch_size=7, seed=3, output="torch")


def expected(plain, epochs):
    return [
        (number, samples)
        for number, epoch in enumerate(plain(epochs=epochs, batch_size=7, seed=3))
        for samples in epoch
    ]


def test_every_epoch_is_the_loaders(small, plain, tmp_path):
    model = Model()
    with loader_of(small) as loader:
        trainer(tmp_path, max_epochs=3).fit(model, loader)
    assert model.seen == expected(plain, 3)


@pytest.mark.parametrize("stop", [3, 8, 11])
def test_a_checkpoint_goes_on_behind_what_was_trained(small, plain, tmp_path, stop):
    save = lightning.pytorch.callbacks.ModelCheckpoint(
        dirpath=tmp_path, every_n_train_steps=stop, save_top_k=-1, filename="at"
    )
    model = Model()
    with loader_of(small) as loader:
        trainer(tmp_path, max_steps=stop, callbacks=[save], enable_checkpointing=True).fit(
            model, loader
        )
    assert model.seen == expected(plain, 2)[:stop]
    resumed = Model()
    with loader_of(small) as loader:
        trainer(tmp_path, max_epochs=2).fit(resumed, loader, ckpt_path=tmp_path / "at.ckpt")
    assert model.seen + resumed.seen == expected(plain, 2)


DDP = """
import json, sys
import lightning, torch
import forebay as fb
from test_lightning import Model

clips = fb.VideoClips(sys.argv[1], cameras=["front"], frames=1, step=1, hop=3)
model = Model()
with fb.Loader(clips, batch_size=5, seed=3, output="torch") as loader:
    lightning.Trainer(
        accelerator="cpu", devices=2, strategy="ddp", max_epochs=2, logger=False,
        enable_progress_bar=False, enable_model_summary=False, enable_checkpointing=False,
        default_root_dir=sys.argv[2],
    ).fit(model, loader)
everybody = [None, None]
torch.distributed.all_gather_object(everybody, model.seen)
if torch.distributed.get_rank() == 0:
    print(json.dumps(everybody))
"""


def test_two_ranks_of_lightnings_ddp_share_each_epoch(drives, torchrun, tmp_path, monkeypatch):
    monkeypatch.setenv("EXTRA_PATH", os.path.dirname(__file__))
    program = "import os, sys; sys.path.append(os.environ['EXTRA_PATH'])\n" + DDP
    lines = torchrun(program, 2, drives, tmp_path)
    everybody = json.loads(next(line for line in reversed(lines) if line.startswith("[")))
    for epoch in (0, 1):
        seen = [s for rank in everybody for e, batch in rank if e == epoch for s in batch]
        assert sorted(seen) == list(range(60))


def test_a_dataloader_around_the_dataset_works_too(small, plain, tmp_path):
    data = fb.torch.IterableDataset(small, batch_size=7, seed=3)
    model = Model()
    loader = torch.utils.data.DataLoader(data, batch_size=None, num_workers=2)
    trainer(tmp_path, max_epochs=2).fit(model, loader)
    assert model.seen == expected(plain, 2)
