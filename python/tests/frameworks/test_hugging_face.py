"""Hugging Face Accelerate and Trainer."""

import json
import os

import accelerate
import pytest
import torch
import transformers

import forebay as fb


def samples_of(batches):
    return [batch["_sample"].tolist() for batch in batches]


def test_accelerate_leaves_the_loader_alone(small, plain):
    accelerator = accelerate.Accelerator(cpu=True)
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    with fb.Loader(small, batch_size=7, seed=3, output="torch") as loader:
        model, optimizer, same = accelerator.prepare(model, optimizer, loader)
        assert same is loader
        seen = []
        for _ in range(2):
            for batch in same:
                accelerator.backward(model(batch["front"].float().mean().reshape(1, 1)).sum())
                optimizer.step()
                seen.append(batch["_sample"].tolist())
    assert seen == sum(plain(epochs=2, batch_size=7, seed=3), [])


def test_accelerate_registers_the_loaders_state(small, plain, tmp_path):
    (first,) = plain(batch_size=7, seed=3)
    accelerator = accelerate.Accelerator(cpu=True)
    with fb.Loader(small, batch_size=7, seed=3, output="torch") as loader:
        accelerator.register_for_checkpointing(loader)
        iterator = iter(loader)
        taken = [next(iterator)["_sample"].tolist() for _ in range(3)]
        accelerator.save_state(tmp_path)
        assert samples_of(iterator) == first[3:]
        accelerator.load_state(tmp_path)
        assert taken + samples_of(loader) == first


def test_accelerate_shards_a_dataloader_of_a_map(small):
    data = fb.torch.MapDataset(small)
    loader = torch.utils.data.DataLoader(data, batch_size=8, num_workers=2)
    prepared = accelerate.Accelerator(cpu=True).prepare(loader)
    assert sum(samples_of(prepared), []) == list(range(60))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
        self.seen = []

    def forward(self, front, _sample, **_):
        self.seen.append(_sample.tolist())
        return {"loss": self.layer(front.float().mean().reshape(1, 1)).sum()}


class Trainer(transformers.Trainer):
    """As docs/python.md shows it."""

    def get_train_dataloader(self):
        return self.train_dataset


class KeepsLoader(transformers.TrainerCallback):
    def __init__(self, loader):
        self.loader = loader

    def on_save(self, args, state, control, **_):
        folder = os.path.join(args.output_dir, f"checkpoint-{state.global_step}")
        with open(os.path.join(folder, "loader.json"), "w") as file:
            json.dump(self.loader.state_dict(), file)


def arguments(tmp_path, **more):
    return transformers.TrainingArguments(
        output_dir=os.fspath(tmp_path), use_cpu=True, report_to=[], disable_tqdm=True,
        per_device_train_batch_size=7, ignore_data_skip=True, remove_unused_columns=False,
        **({"save_strategy": "no"} | more),
    )  # fmt: skip


def test_trainer_takes_the_loader_as_it_is(small, plain, tmp_path):
    model = Model()
    with fb.Loader(small, batch_size=7, seed=3, output="torch") as loader:
        Trainer(model, arguments(tmp_path, num_train_epochs=2), train_dataset=loader).train()
    assert model.seen == sum(plain(epochs=2, batch_size=7, seed=3), [])


@pytest.mark.parametrize("stop", [3, 8, 11])
def test_trainer_resumes_where_the_loader_was(small, plain, tmp_path, stop):
    model = Model()
    with fb.Loader(small, batch_size=7, seed=3, output="torch") as loader:
        trainer = Trainer(
            model, arguments(tmp_path, max_steps=stop, save_strategy="steps", save_steps=stop),
            train_dataset=loader, callbacks=[KeepsLoader(loader)],
        )  # fmt: skip
        trainer.train()
    folder = tmp_path / f"checkpoint-{stop}"
    resumed = Model()
    with fb.Loader(small, batch_size=7, seed=3, output="torch") as loader:
        loader.load_state_dict(json.loads((folder / "loader.json").read_text()))
        trainer = Trainer(resumed, arguments(tmp_path, num_train_epochs=2), train_dataset=loader)
        trainer.train(resume_from_checkpoint=os.fspath(folder))
    assert model.seen + resumed.seen == sum(plain(epochs=2, batch_size=7, seed=3), [])
