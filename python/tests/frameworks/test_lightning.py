"""PyTorch Lightning takes a forebay.Loader as it is, and keeps its state in checkpoints."""

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


def test_a_dataloader_around_the_dataset_works_too(small, plain, tmp_path):
    data = fb.torch.IterableDataset(small, batch_size=7, seed=3)
    model = Model()
    loader = torch.utils.data.DataLoader(data, batch_size=None, num_workers=2)
    trainer(tmp_path, max_epochs=2).fit(model, loader)
    assert model.seen == expected(plain, 2)
