"""The demo's model: a small network that draws the last frame of a clip from the frames before it.

The same as in examples/train_clips.py, which stays one self-contained file; narrower, so that one
pass is short against a step.
"""

import torch
from torch import nn

INPUT_SIZE = (64, 112)


class NextFrame(nn.Module):
    """float [B, 3, T, H, W] in 0..1 -> the next frame, [B, 3, H, W]."""

    def __init__(self, width=8):
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


def to_model_input(batch, cameras):
    """Every camera of the batch as one more clip: float [B * cameras, 3, T, 64, 112] in 0..1."""
    clips = []
    for camera in cameras:
        frames = batch[camera]  # uint8 [B, T, H, W, 3]
        thin = max(1, min(frames.shape[2] // INPUT_SIZE[0], frames.shape[3] // INPUT_SIZE[1]))
        frames = frames[:, :, ::thin, ::thin].permute(0, 1, 4, 2, 3).float().div_(255)
        frames = nn.functional.interpolate(
            frames.flatten(0, 1), size=INPUT_SIZE, mode="bilinear", align_corners=False
        ).unflatten(0, frames.shape[:2])
        clips.append(frames.transpose(1, 2))
    return torch.cat(clips)


def train_pass(model, optimizer, clips):
    """One forward, backward and update; the loss before it."""
    optimizer.zero_grad(set_to_none=True)
    loss = nn.functional.l1_loss(model(clips[:, :, :-1]), clips[:, :, -1])
    loss.backward()
    optimizer.step()
    return loss.item()


def made_up_clips(clips, frames):
    return torch.rand(clips, 3, frames, *INPUT_SIZE)
