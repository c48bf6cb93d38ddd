import shutil
import subprocess

import numpy as np
import pytest
from conftest import FPS, FRAMES, HEIGHT, WIDTH, encode, path_of

import forebay as fb


def ffmpeg_frames(path, height=HEIGHT, width=WIDTH):
    """All frames as the ffmpeg program decodes them, made RGB by the textbook's formula.

    BT.601, limited range, each chroma sample for its four pixels.
    """
    command = ["ffmpeg", "-v", "error", "-i", str(path), "-fps_mode", "passthrough"]
    command += ["-pix_fmt", "yuv420p", "-f", "rawvideo", "-"]
    raw = subprocess.run(command, check=True, capture_output=True, timeout=60).stdout
    planes = np.frombuffer(raw, np.uint8).reshape(-1, height * width * 3 // 2).astype(np.float64)
    y, chroma = np.split(planes, [height * width], axis=1)
    u, v = np.split(chroma.reshape(-1, height, width // 2), 2, axis=1)
    y = 255 / 219 * (y.reshape(-1, height, width) - 16)
    u, v = (255 / 224 * (c.repeat(2, axis=1).repeat(2, axis=2) - 128) for c in (u, v))
    rgb = np.stack([y + 1.402 * v, y - 0.344136 * u - 0.714136 * v, y + 1.772 * u], axis=-1)
    return np.clip(np.rint(rgb), 0, 255).astype(np.uint8)


def off_by(frames, reference):
    return np.abs(frames.astype(np.int16) - reference.astype(np.int16))


@pytest.fixture(scope="module")
def uri(drives):
    return drives + "alpha/front.mp4"


def test_a_video_knows_its_frames_times_and_size(uri):
    with fb.Video(uri) as video:
        assert len(video) == FRAMES
        assert (video.width, video.height, video.stream) == (WIDTH, HEIGHT, 0)
        assert video.times.dtype == np.float64 and not video.times.flags.writeable
        assert np.allclose(video.times, np.arange(FRAMES) / FPS)
        assert video.frame_at(0.26) == 5


def test_frames_are_those_that_ffmpeg_decodes(uri):
    reference = ffmpeg_frames(path_of(uri))
    with fb.Video(uri) as video:
        frames = video.frames(range(len(video)))
    assert frames.shape == reference.shape and frames.dtype == np.uint8
    off = off_by(frames, reference)
    assert off.max() <= 2, (off.max(), off.mean())
    assert off_by(frames[1:], reference[:-1]).max() > 50  # a wrong frame would be seen


def test_any_order_and_repeats_give_the_same_frames(uri):
    with fb.Video(uri) as video:
        whole = video.frames(range(len(video)))
        numbers = [59, 0, 31, 31, 7, 58, 12]
        assert np.array_equal(video.frames(numbers), whole[numbers])
        assert np.array_equal(video.frames(np.array(numbers, np.int16)), whole[numbers])
        assert np.array_equal(video.frames(times=[0.0, 0.26]), whole[[0, 5]])
        assert video.frames([]).shape == (0, HEIGHT, WIDTH, 3)


@pytest.mark.parametrize("bad", [[-1], [FRAMES], [1.5], ["a"], 7, [[1, 2]]])
def test_numbers_that_are_none_are_refused(uri, bad):
    with fb.Video(uri) as video, pytest.raises(fb.InvalidArgumentError, match="frame"):
        video.frames(bad)


def test_numbers_and_times_exclude_each_other(uri):
    with fb.Video(uri) as video:
        with pytest.raises(fb.InvalidArgumentError):
            video.frames([1], times=[0.1])
        with pytest.raises(fb.InvalidArgumentError):
            video.frames()
        with pytest.raises(fb.InvalidArgumentError):
            video.frames(times=[-5.0])


def test_frames_outlive_the_video_and_a_closed_one_says_so(uri):
    video = fb.Video(uri)
    frames, times = video.frames([3]), video.times
    video.close()
    assert frames.any() and len(times) == FRAMES
    with pytest.raises(fb.InvalidArgumentError, match="closed"):
        video.frames([3])


def test_a_path_works_as_well_as_an_uri(uri):
    assert len(fb.Video(path_of(uri))) == len(fb.Video(str(path_of(uri)))) == FRAMES


def test_frames_are_resized_when_asked(uri):
    with fb.Video(uri, resize=(24, 32)) as video:
        assert (video.height, video.width) == (24, 32)
        assert video.frames([0, 1]).shape == (2, 24, 32, 3)


def test_threads_may_share_a_video(uri):
    import concurrent.futures

    with fb.Video(uri) as video, concurrent.futures.ThreadPoolExecutor(4) as pool:
        whole = video.frames(range(len(video)))
        results = pool.map(lambda n: video.frames([n, FRAMES - 1 - n]), range(20))
        for n, frames in enumerate(results):
            assert np.array_equal(frames, whole[[n, FRAMES - 1 - n]])


def test_other_containers_and_codecs(tmp_path):
    source = f"testsrc2=size={WIDTH}x{HEIGHT}:rate={FPS}:duration=1"
    for name, *arguments in (
        ("a.mkv", "-c:v", "libx265", "-x265-params", "log-level=none:keyint=10:bframes=3"),
        ("a.ts", "-c:v", "libx264", "-g", "7"),
        ("a.webm", "-c:v", "libvpx-vp9", "-g", "9", "-deadline", "realtime"),
        ("a.avi", "-c:v", "mpeg4", "-g", "8"),
    ):
        path = tmp_path / name
        encode(path, source, *arguments)
        reference = ffmpeg_frames(path)
        with fb.Video(path) as video:
            assert len(video) == len(reference), name
            numbers = list(range(len(reference)))[::-3]
            off = off_by(video.frames(numbers), reference[numbers])
            assert off.max() <= 2, (name, off.max())


def test_what_is_no_video_is_a_clear_error(tmp_path):
    path = tmp_path / "text.mp4"
    path.write_bytes(b"this is no video" * 100)
    with pytest.raises(fb.ForebayError, match="text.mp4"):
        fb.Video(path)


def test_an_empty_file_is_counted_and_left_out(drives, tmp_path):
    shutil.copytree(path_of(drives) / "alpha", tmp_path / "some")
    (tmp_path / "some" / "rear.mp4").touch()
    report = fb.index(tmp_path / "some")
    assert (report["objects"], report["objects_skipped"], report["videos"]) == (3, 1, 2)


def test_what_is_wrong_with_a_video_is_told_where_its_frames_are_asked_for(uri, tmp_path, capfd):
    stream = tmp_path / "lost.ts"
    command = ["ffmpeg", "-v", "error", "-i", path_of(uri), "-c", "copy", "-f", "mpegts", str(stream)]
    subprocess.run(command, check=True, timeout=60)
    packets = stream.read_bytes()
    middle = next(at for at in range(len(packets) // 376 * 188, len(packets), 188)
                  if int.from_bytes(packets[at + 1 : at + 3], "big") & 0x5FFF == 0x100
                  and not packets[at + 3] & 0x20)  # the inside of a picture  # fmt: skip
    stream.write_bytes(packets[:middle] + packets[middle + 188 :])
    with fb.Video(stream.as_uri()) as video:
        assert len(video) == FRAMES
    assert "lost bytes of 1 pictures" in capfd.readouterr().err
