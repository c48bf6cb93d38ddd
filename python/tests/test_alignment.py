"""Cameras of a sample are aligned by when their frames were taken."""

import shutil
import subprocess

import numpy as np
import pytest
from conftest import encode

import forebay as fb

SOURCE = "testsrc2=size=64x48:rate=20:duration=3,noise=alls=40:allf=t"
X264 = ("-c:v", "libx264", "-g", "10", "-bf", "0", "-crf", "18")
# FFmpeg 7 would make one that ends before the last frame.
NO_EDIT_LIST = ("-use_editlist", "0")


def paused(path, first, last, gap):
    """60 frames, those in [first, last) left out; the clock jumps by ``gap`` at the 31st."""
    setpts = f"setpts='PTS+gte(N\\,30)*{gap}/TB'"
    keep = f"select='not(between(n\\,{first}\\,{last - 1}))'"
    encode(path, SOURCE, "-vf", f"{keep},{setpts}", "-fps_mode", "passthrough", *X264,
           *NO_EDIT_LIST)  # fmt: skip


@pytest.fixture
def pause(tmp_path):
    """Both cameras pause for 60 s after 30 frames; "left" lacks the frames 20 to 29 before it."""
    folder = tmp_path / "drives" / "s"
    paused(folder / "front.mp4", 1000, 1001, 60)
    setpts = "setpts='PTS+gte(N\\,20)*60/TB'"
    encode(folder / "left.mp4", SOURCE,
           "-vf", f"select='not(between(n\\,20\\,29))',{setpts}",
           "-fps_mode", "passthrough", *X264, *NO_EDIT_LIST)  # fmt: skip
    return tmp_path / "drives"


def test_a_pause_does_not_widen_what_counts_as_the_same_moment(pause):
    fb.index(str(pause))
    front, left = (fb.Video(str(pause / "s" / f"{name}.mp4")) for name in ("front", "left"))
    assert len(front) == 60 and len(left) == 50 and left.times[-1] > 60
    pictures = left.frames(range(50))
    clips = fb.VideoClips(str(pause), cameras=["front", "left"], frames=1, step=1, hop=1)
    with fb.Loader(clips, batch_size=1, seed=1, epochs=1, shuffle=False) as loader:
        starts = 0
        for batch in loader:
            shown = front.frames(range(60))
            (number,) = np.flatnonzero((shown == batch["front"][0, 0]).all((1, 2, 3)))
            times = left.times[(pictures == batch["left"][0, 0]).all((1, 2, 3))]
            assert abs(times - front.times[number]).min() <= 0.025 + 1.5e-3, number
            starts += 1
    assert starts == 50


def test_labels_beside_a_pause_are_within_half_a_frame_too(pause, tmp_path):
    fb.index(str(pause))
    table = tmp_path / "labels.csv"
    # A second away from the frame before the pause.
    table.write_text("scene,time,speed\ns,2.45,7\n")
    labels = fb.Labels(str(table), missing="mask")
    clips = fb.VideoClips(str(pause), cameras=["front"], frames=1, labels=labels)
    with fb.Loader(clips, batch_size=60, seed=1, epochs=1, shuffle=False) as loader:
        assert not next(iter(loader))["_labelled"].any()


def test_a_camera_whose_times_go_back_is_not_aligned_by_counting(tmp_path, capfd):
    folder = tmp_path / "drives"
    for scene in ("a", "b"):
        for camera in ("front", "left"):
            encode(folder / scene / f"{camera}.mkv", SOURCE, *X264)
    broken = folder / "b" / "left.mkv"
    shutil.move(broken, tmp_path / "sound.mkv")
    subprocess.run(
        ["ffmpeg", "-v", "error", "-i", tmp_path / "sound.mkv", "-c", "copy", "-bsf:v",
         "setts=pts=if(gte(N\\,30)\\,PTS-1500\\,PTS):dts=N", broken],
        check=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    fb.index(str(folder))
    clips = {"pattern": "{scene}/{camera}.mkv", "frames": 4, "hop": 4}
    with fb.Loader(fb.VideoClips(str(folder), **clips), batch_size=1) as loader:
        assert len(loader) == 15
    assert "b/left.mkv: its times do not ascend" in capfd.readouterr().err
    # Alone it needs no alignment.
    with fb.Loader(fb.VideoClips(str(folder), cameras=["left"], **clips), batch_size=1) as loader:
        assert len(loader) == 30
