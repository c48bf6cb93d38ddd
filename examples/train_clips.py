#!/usr/bin/env python3
"""Trains a small video model on synchronised multi-camera clips, straight from object storage.

    forebay index s3://bucket/drives/
    python examples/train_clips.py s3://bucket/drives/

The model learns to draw the last frame of every camera's clip from the frames before it. Nothing is
downloaded first: each step's byte ranges are fetched and decoded ahead of it. Credentials, region and
endpoint come from the usual AWS settings.
"""

import argparse
import time

import forebay as fb
import torch
from torch import nn


class NextFrame(nn.Module):
    """float [B, 3, T, H, W] in 0..1 -> the next frame, [B, 3, H, W]."""

    def __init__(self, width=24):
        super().__init__()
        self.see = nn.Sequential(
            nn.Conv3d(3, width, 3, stride=(1, 2, 2), padding=1), nn.ReLU(),
            nn.Conv3d(width, width, 3, padding=1), nn.ReLU())
        self.draw = nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1), nn.ReLU(),
            nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False),
            nn.Conv2d(width, 3, 3, padding=1), nn.Sigmoid())

    def forward(self, clips):
        return self.draw(self.see(clips).mean(dim=2))


def to_model_input(batch, cameras, device, size=(64, 112)):
    """Every camera of the batch as one more clip: float [B * cameras, 3, T, 64, 112] in 0..1."""
    clips = []
    for camera in cameras:
        frames = batch[camera].to(device)  # uint8 [B, T, H, W, 3]
        thin = max(1, min(frames.shape[2] // size[0], frames.shape[3] // size[1]))
        frames = frames[:, :, ::thin, ::thin].permute(0, 1, 4, 2, 3).float().div_(255)
        frames = nn.functional.interpolate(frames.flatten(0, 1), size=size, mode="bilinear",
                                           align_corners=False).unflatten(0, frames.shape[:2])
        clips.append(frames.transpose(1, 2))
    return torch.cat(clips)


def train_step(model, optimizer, clips):
    optimizer.zero_grad(set_to_none=True)
    loss = nn.functional.l1_loss(model(clips[:, :, :-1]), clips[:, :, -1])
    loss.backward()
    optimizer.step()
    return loss.item()


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("uri", help="s3://bucket/prefix/ that `forebay index` has indexed")
    parser.add_argument("--pattern", default="{scene}/{camera}.{ext}")
    parser.add_argument("--cameras", nargs="+", help="default: all that are found")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch-size", type=int, default=1)
    parser.add_argument("--frames", type=int, default=8)
    parser.add_argument("--step", type=int, default=3, help="frames from one of a clip to the next")
    parser.add_argument("--hop", type=int, default=10, help="frames from one clip to the next")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--memory", default="1GiB")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    torch.manual_seed(arguments.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = NextFrame().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    clips = fb.VideoClips(arguments.uri, pattern=arguments.pattern, cameras=arguments.cameras,
                          frames=arguments.frames, step=arguments.step, hop=arguments.hop)
    with fb.Loader(clips, batch_size=arguments.batch_size, seed=arguments.seed,
                   memory=arguments.memory, output="torch") as loader, fb.gc_guard():
        step, waited, losses = 0, 0.0, []
        started = asked = time.perf_counter()
        while step < arguments.steps:
            for batch in loader:
                waited += time.perf_counter() - asked
                cameras = [name for name in batch if not name.startswith("_")]
                losses.append(train_step(model, optimizer, to_model_input(batch, cameras, device)))
                step += 1
                if step % 20 == 0 or step == arguments.steps:
                    print(f"step {step}: loss {sum(losses) / len(losses):.4f}, waited for data "
                          f"{waited:.3f} s of {time.perf_counter() - started:.1f} s", flush=True)
                    losses.clear()
                if step == arguments.steps:
                    break
                asked = time.perf_counter()


if __name__ == "__main__":
    main()
