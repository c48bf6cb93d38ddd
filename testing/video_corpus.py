#!/usr/bin/env python3
"""Makes the small videos that the tests of media/, catalog/ and python/ read.

usage: video_corpus.py FOLDER

Every kind of file on which a frame index can go wrong, made with Debian's ffmpeg from a test
picture with noise, so that no two frames are alike. Nothing is done when FOLDER is complete already;
several processes may ask for the same FOLDER at once. FOLDER/corpus.tsv lists the files, a line
each: name, FFmpeg's indices of the streams to look at (with commas), whether `ffmpeg -f framehash`
is the truth for their frames (all, tail: of the last of them, none), and words of the reason if
the file cannot be indexed. FOLDER/truth/NAME.STREAM holds that framehash output (CRC-32 of every
frame that comes out, none repeated or dropped, neither rotated nor scaled).
"""

import concurrent.futures
import fcntl
import hashlib
import pathlib
import shutil
import struct
import subprocess
import sys

FRAMES = 96
SOURCE = "testsrc2=size=320x240:rate=30,noise=alls=20:allf=t"


class Corpus:
    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.lines: list[str] = []

    def path(self, name: str) -> pathlib.Path:
        return self.folder / name

    def add(self, name, streams=(0,), reject="", compare="all"):
        numbers = ",".join(map(str, streams))
        self.lines.append(f"{name}\t{numbers}\t{compare}\t{reject}\n")

    def ffmpeg(self, *args):
        """Runs ffmpeg in the folder."""
        command = ["ffmpeg", "-nostdin", "-v", "error", "-y", *map(str, args)]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}\n{done.stderr}")

    def write_truth(self, name, stream):
        """Asks ffmpeg for the frames."""
        command = ["ffmpeg", "-nostdin", "-v", "fatal", "-threads", "1", "-noautorotate", "-i", name,
                   "-map", f"0:{stream}", "-noautoscale", "-fps_mode", "passthrough", "-f",
                   "framehash", "-hash", "crc32", f"truth/{name}.{stream}"]
        subprocess.run(command, cwd=self.folder, check=True)

    def encode(self, name, *options, frames=FRAMES, source=SOURCE, pixels="yuv420p", before=()):
        self.ffmpeg(*before, "-f", "lavfi", "-i", source, "-frames:v", frames, "-threads", 1,
                    "-pix_fmt", pixels, *options, name)

    def copy(self, source, name, *options, before=()):
        self.ffmpeg(*before, "-i", source, "-map", "0", "-c", "copy", *options, name)

    def patch(self, source, name, change):
        self.path(name).write_bytes(change(bytearray(self.path(source).read_bytes())))


def x264(params, *more):
    common = "threads=1:scenecut=0:keyint=24:min-keyint=24"
    return ["-c:v", "libx264", "-preset", "veryfast", "-crf", 30,
            "-x264-params", f"{common}:{params}", *more]


def x265(params, *more):
    common = "log-level=none:pools=1:frame-threads=1:scenecut=0:keyint=24:min-keyint=24"
    return ["-c:v", "libx265", "-preset", "ultrafast", "-crf", 32,
            "-x265-params", f"{common}:{params}", "-tag:v", "hvc1", *more]


# Byte patches of mp4 files.

def boxes(data, start, end):
    while start + 8 <= end:
        size, kind = struct.unpack_from(">I4s", data, start)
        header = 8
        if size == 1:
            size, header = struct.unpack_from(">Q", data, start + 8)[0], 16
        yield kind.decode("latin1"), start, start + header, start + size
        start += size


def find(data, path):
    start, end = 0, len(data)
    for name in path.split("/"):
        for kind, at, body, stop in boxes(data, start, end):
            if kind == name:
                start, end, found = body, stop, at
                break
        else:
            raise KeyError(path)
    return found, start, end


STBL = "moov/trak/mdia/minf/stbl"


def rename(path, kind):
    def change(data):
        at, _, _ = find(data, path)
        data[at + 4:at + 8] = kind
        return data
    return change


def wrong_stss(data):
    _, body, _ = find(data, f"{STBL}/stss")
    count = struct.unpack_from(">I", data, body + 4)[0]
    for i in range(1, count):
        at = body + 8 + 4 * i
        struct.pack_into(">I", data, at, struct.unpack_from(">I", data, at)[0] + 7)
    return data


def zero_last_size(data):
    _, body, end = find(data, f"{STBL}/stsz")
    struct.pack_into(">I", data, end - 4, 0)
    return data


def matrix(a, b, c, d):
    def change(data):
        _, body, _ = find(data, "moov/trak/tkhd")
        at = body + (40 if data[body] == 0 else 52)
        struct.pack_into(">9i", data, at, a << 16, b << 16, 0, c << 16, d << 16, 0, 0, 0, 1 << 30)
        return data
    return change


def cut(part):
    return lambda data: data[:int(len(data) * part)]


def flip_bits(data):
    _, body, end = find(data, "mdat")
    middle = (body + end) // 2
    for i in range(middle, middle + 4000, 97):
        data[i] ^= 0x55
    return data


def lose_packet(data):
    """A transport stream without one packet of the inside of a picture."""
    at = len(data) // 188 // 2 * 188
    while struct.unpack_from(">H", data, at + 1)[0] & 0x5fff != 0x100 or data[at + 3] & 0x20:
        at += 188
    return data[:at] + data[at + 188:]


def other_colours(data):
    """A QuickTime file with another colour table for the same pictures."""
    at = data.index(bytes.fromhex("00000000 8000 00ff")) + 8  # then alpha, red, green, blue of each
    table = bytes(b ^ 0x5A if i % 8 >= 2 else b for i, b in enumerate(data[at:at + 2048]))
    return data[:at] + table + data[at + 2048:]


def with_check_codes(data):
    """Packets of 204 bytes, as some receivers write them."""
    return b"".join(data[at:at + 188] + bytes(16) for at in range(0, len(data), 188))


def behind_5_gib(corpus, source, name):
    """Moves mdat's content behind a hole: 64-bit offsets in a sparse file."""
    data = bytearray(corpus.path(source).read_bytes())
    hole = 5 << 30
    _, body, end = find(data, f"{STBL}/stco")
    count = struct.unpack_from(">I", data, body + 4)[0]
    offsets = struct.unpack_from(f">{count}I", data, body + 8)
    co64 = struct.pack(">I4sII", 16 + 8 * count, b"co64", 0, count)
    mdat, mdat_body, mdat_end = find(data, "mdat")
    moov, _, moov_end = find(data, "moov")
    grow = 4 * count
    shift = hole + grow + 8
    co64 += struct.pack(f">{count}Q", *(o + shift for o in offsets))
    assert moov < mdat
    out = data[:body - 8] + co64 + data[end:mdat]
    at = 0
    for part in STBL.split("/"):
        for kind, start, inner, _ in boxes(out, at, len(out)):
            if kind == part:
                struct.pack_into(">I", out, start, struct.unpack_from(">I", out, start)[0] + grow)
                at = inner
                break
    out += struct.pack(">I4sQ", 1, b"mdat", hole + 16 + mdat_end - mdat_body)
    assert moov_end <= mdat
    with corpus.path(name).open("wb") as file:
        file.write(out)
        file.seek(len(out) + hole)
        file.write(data[mdat_body:mdat_end])


def replace_boxes(data, start, end, changed, path=""):
    """The boxes anew, those whose path is in `changed` with another body; containers fit themselves."""
    out = b""
    for kind, at, body, stop in boxes(data, start, end):
        name = f"{path}/{kind}".strip("/")
        if name in changed:
            inner = changed[name]
        elif any(other.startswith(name + "/") for other in changed):
            inner = replace_boxes(data, body, stop, changed, name)
        else:
            out += data[at:stop]
            continue
        out += struct.pack(">I4s", 8 + len(inner), kind.encode("latin1")) + inner
    return out


def table(data, kind, form):
    """A sample table's rows, as tuples."""
    _, body, _ = find(data, f"{STBL}/{kind}")
    count = struct.unpack_from(">I", data, body + 4)[0]
    return [struct.unpack_from(form, data, body + 8 + i * struct.calcsize(form))
            for i in range(count)]


def rows(form, values):
    return struct.pack(">II", 0, len(values)) + b"".join(struct.pack(form, *v) for v in values)


def two_descriptions(corpus, first, second, name):
    """Two videos as one track: two entries in stsd, whose parameter sets share their numbers."""
    files = [bytearray(corpus.path(source).read_bytes()) for source in (first, second)]
    entries, samples, sizes, keys, chunks, mdat = b"", [], [], [], [], b""
    for number, data in enumerate(files, 1):
        _, body, end = find(data, f"{STBL}/stsd")
        entries += data[body + 8:end]
        offsets = [offset for offset, in table(data, "stco", ">I")]
        assert len(table(data, "stsc", ">III")) == 1 and len(offsets) == 1, "one chunk each"
        _, body, _ = find(data, f"{STBL}/stsz")
        count = struct.unpack_from(">I", data, body + 8)[0]
        own = struct.unpack_from(f">{count}I", data, body + 12)
        keys += [len(sizes) + key for key, in table(data, "stss", ">I")]
        samples += table(data, "stts", ">II")
        chunks.append((len(mdat), number, count))
        mdat += data[offsets[0]:offsets[0] + sum(own)]
        sizes += own
    base = files[0]
    _, ftyp, ftyp_end = find(base, "ftyp")
    start = ftyp_end - ftyp + 8 + 8
    ticks = sum(count * length for count, length in samples)
    _, mdhd, mdhd_end = find(base, "moov/trak/mdia/mdhd")
    header = bytearray(base[mdhd:mdhd_end])
    shown = ticks * 1000 // struct.unpack_from(">I", header, 12)[0]  # ffmpeg's movie time is in ms
    struct.pack_into(">I", header, 16, ticks)
    moov = replace_boxes(base, 0, len(base), {
        f"{STBL}/stsd": struct.pack(">II", 0, 2) + entries,
        f"{STBL}/stts": rows(">II", samples),
        f"{STBL}/stss": rows(">I", [(key,) for key in keys]),
        f"{STBL}/stsz": struct.pack(">III", 0, 0, len(sizes)) + struct.pack(f">{len(sizes)}I", *sizes),
        f"{STBL}/stsc": rows(">III", [(i, count, number)
                                      for i, (_, number, count) in enumerate(chunks, 1)]),
        f"{STBL}/stco": rows(">I", [(start + at,) for at, _, _ in chunks]),
        "moov/trak/mdia/mdhd": bytes(header),
        "moov/trak/edts/elst": struct.pack(">IIIiI", 0, 1, shown, 0, 1 << 16)})
    _, moov_start, moov_end = find(moov, "moov")
    out = base[:ftyp_end] + struct.pack(">I4s", 8 + len(mdat), b"mdat") + mdat
    corpus.path(name).write_bytes(out + moov[moov_start - 8:moov_end])


def edited(*edits):
    """Another edit list: (milliseconds, first frame; None: nothing is shown) each."""
    def change(data):
        entries = [(length, -1 if frame is None else 1024 + 512 * frame, 1 << 16)
                   for length, frame in edits]
        return replace_boxes(data, 0, len(data), {"moov/trak/edts/elst": rows(">IiI", entries)})
    return change


# H.264 byte streams.

def units(data):
    starts, at = [], data.find(b"\0\0\1")
    while at >= 0:
        starts.append(at + 3)
        at = data.find(b"\0\0\1", at + 3)
    for i, start in enumerate(starts):
        end = starts[i + 1] - 3 if i + 1 < len(starts) else len(data)
        yield bytes(data[start:end]).rstrip(b"\0") if i + 1 < len(starts) else bytes(data[start:end])


def stateful_pps(corpus, first, second, name):
    """Parameter sets that change once, and are not repeated at the sync points after."""
    out, seen = b"", 0
    for source in (first, second):
        for unit in units(corpus.path(source).read_bytes()):
            kind = unit[0] & 31
            seen += kind == 5 and source == second
            if source == second and kind in (7, 8) and seen > 0:
                continue
            out += b"\0\0\0\1" + unit
    corpus.path(name).write_bytes(out)


# Matroska, rewritten with features that ffmpeg does not write.

def vint(value, length=8):
    return (value | 1 << (7 * length)).to_bytes(length, "big")


def element(ident, body):
    return bytes.fromhex(ident) + vint(len(body)) + body


def elements(data, start, end):
    while start < end:
        length = 9 - data[start].bit_length()
        ident, at = data[start:start + length].hex(), start + length
        length = 9 - data[at].bit_length()
        size = int.from_bytes(data[at:at + length], "big") & ((1 << 7 * length) - 1)
        body = at + length
        stop = min(end, body + size) if size != (1 << 7 * length) - 1 else end
        yield ident, start, body, stop
        start = stop


def rewrite_mkv(data, track_change, block_change):
    """Header, Info, Tracks and Clusters anew; block_change(simple block payloads) -> blocks."""
    out = b""
    for ident, start, body, stop in elements(data, 0, len(data)):
        if ident != "18538067":
            out += data[start:stop]
            continue
        out += bytes.fromhex("1853806701ffffffffffffff")
        for kind, at, inner, end in elements(data, body, stop):
            if kind == "1549a966":
                out += data[at:end]
            elif kind == "1654ae6b":
                entries = b"".join(element("ae", track_change(data[b:e]))
                                   for k, _, b, e in elements(data, inner, end) if k == "ae")
                out += element("1654ae6b", entries)
            elif kind == "1f43b675":
                parts = [(k, data[a:e], data[b:e]) for k, a, b, e in elements(data, inner, end)]
                blocks = [whole if k == "a0" else inner_ for k, whole, inner_ in parts if k == "a3"]
                time = b"".join(whole for k, whole, _ in parts if k == "e7")
                out += element("1f43b675", time + b"".join(
                    element("a3", block) for block in block_change(blocks)))
    return out


def strip_headers(data):
    """Header stripping compression of the first two bytes, which all packets share."""
    compression = element("5034", element("4254", b"\3") + element("4255", b"\0\0"))
    encoding = element("6d80", element("6240", compression))
    return rewrite_mkv(bytes(data), lambda track: track + encoding,
                       lambda blocks: [b[:4] + b[6:] for b in blocks if b[4:6] == b"\0\0"])


def lace(data):
    """Two frames in a block (fixed times apart), with Xiph lacing."""
    def pairs(blocks):
        for i in range(0, len(blocks) - 1, 2):
            first, second = blocks[i], blocks[i + 1]
            size = len(first) - 4
            sizes = b"\xff" * (size // 255) + bytes([size % 255])
            yield first[:3] + bytes([first[3] | 2]) + b"\1" + sizes + first[4:] + second[4:]
        yield from blocks[len(blocks) // 2 * 2:]
    duration = element("23e383", (33_333_333).to_bytes(4, "big"))

    def track(body):
        return b"".join(body[a:e] for k, a, _, e in elements(body, 0, len(body))
                        if k not in ("23e383", "9c")) + duration
    return rewrite_mkv(bytes(data), track, lambda blocks: list(pairs(blocks)))


def base_files(c: Corpus):
    """What the others are made of; each a job of its own."""
    sound = ["-f", "lavfi", "-i", "sine=frequency=440:sample_rate=44100"]
    yield lambda: c.encode("closed_b.mp4", *x264("bframes=3:b-pyramid=normal"))
    yield lambda: c.encode("opengop.mp4", *x264("bframes=3:b-pyramid=normal:open-gop=1"))
    yield lambda: c.encode("no_b.mp4", *x264("bframes=0"))
    yield lambda: c.encode("other_sets.mp4", *x264("bframes=0:cabac=0:ref=1:8x8dct=0:weightp=0",
                                                   "-vf", "hue=h=90"))
    yield lambda: c.encode("intra_refresh.mp4", *x264("intra-refresh=1:bframes=0"))
    yield lambda: c.encode("intra_refresh_b.mp4", *x264("intra-refresh=1:bframes=2"))
    yield lambda: c.encode("single_key.mp4", *x264("keyint=1000:bframes=2"))
    yield lambda: c.encode("all_key.mp4", *x264("keyint=1"), frames=40)
    yield lambda: c.encode("interlaced.mp4", *x264("bframes=2:tff=1"), "-flags", "+ildct+ilme")
    yield lambda: c.encode("h264_444.mp4", *x264("bframes=2"), pixels="yuv444p")
    yield lambda: c.encode("h264_high10.mp4", *x264("bframes=2"), pixels="yuv420p10le")
    yield lambda: c.encode("vfr.mp4", *x264("bframes=2"), "-fps_mode", "vfr",
                           source=SOURCE + ",select='not(between(mod(n,10),3,6))'")
    yield lambda: c.encode("ntsc_ms.mkv", *x264("bframes=2"),
                           source=SOURCE.replace("rate=30", "rate=30000/1001"))
    yield lambda: c.encode("av.mp4", *x264("bframes=3"), "-c:a", "aac", "-shortest", before=sound)
    yield lambda: c.encode("repeat.h264", *x264("bframes=0:repeat-headers=1:cabac=1"), frames=48)
    yield lambda: c.encode("repeat2.h264", *x264("bframes=0:repeat-headers=1:cabac=0"), frames=72)
    yield lambda: c.encode("cra_rasl.mp4", *x265("open-gop=1:bframes=4:b-pyramid=1"))
    yield lambda: c.encode("radl.mp4", *x265("open-gop=0:radl=3:bframes=4"))
    yield lambda: c.encode("hevc_closed.mp4", *x265("open-gop=0:bframes=3"))
    yield lambda: c.encode("hevc10.mp4", *x265("open-gop=1:bframes=3"), pixels="yuv420p10le")
    yield lambda: c.encode("hev1_inband.mp4", *x265("repeat-headers=1:bframes=3", "-tag:v", "hev1"))
    yield lambda: c.encode("hevc_layers.mp4", *x265("temporal-layers=3:bframes=3:b-pyramid=1"))
    yield lambda: c.encode("vp8_arf.webm", "-c:v", "libvpx", "-auto-alt-ref", 1, "-lag-in-frames",
                           16, "-deadline", "good", "-cpu-used", 5, "-g", 40, "-b:v", "400k")
    yield lambda: c.encode("vp9.webm", "-c:v", "libvpx-vp9", "-auto-alt-ref", 1, "-lag-in-frames",
                           16, "-deadline", "good", "-cpu-used", 5, "-g", 40, "-b:v", "400k",
                           source=SOURCE.replace("320x240", "321x241"))
    yield lambda: c.encode("av1.mp4", "-c:v", "libsvtav1", "-preset", 12, "-g", 30, "-b:v", "400k")
    yield lambda: c.encode("mjpeg.avi", "-c:v", "mjpeg", "-q:v", 8, frames=24, pixels="yuvj420p")
    yield lambda: c.encode("prores.mov", "-c:v", "prores_ks", frames=12, pixels="yuv422p10le")
    yield lambda: c.encode("ffv1.mkv", "-c:v", "ffv1", "-g", 6, frames=20)
    yield lambda: c.encode("mpeg4_b.avi", "-c:v", "mpeg4", "-bf", 2, "-g", 24, "-q:v", 8)
    yield lambda: c.encode("mpeg2.ts", "-c:v", "mpeg2video", "-bf", 2, "-g", 15, "-q:v", 8,
                           "-c:a", "mp2", "-shortest", before=sound)
    yield lambda: c.encode("mpeg2_closed.mpg", "-c:v", "mpeg2video", "-bf", 2, "-g", 15, "-q:v", 8,
                           "-flags", "+cgop", "-sc_threshold", 1000000000)
    yield lambda: c.encode("small.ts", *x264("bframes=2"), frames=48,
                           source=SOURCE.replace("320x240", "160x128"))
    yield lambda: c.encode("cover.png", frames=1)
    yield lambda: c.encode("png.mov", "-c:v", "png", frames=8, pixels="rgb24")
    flat = "testsrc=size=160x128:rate=30"
    yield lambda: c.encode("palette.avi", "-c:v", "rawvideo", frames=6, pixels="pal8", source=flat)
    yield lambda: c.encode("palette2.avi", "-c:v", "rawvideo", frames=6, pixels="pal8",
                           source=flat + ",hue=h=90")
    yield lambda: c.encode("palette.mov", "-c:v", "smc", frames=6, pixels="pal8", source=flat)


def copied_files(c: Corpus):
    """The base files in every container."""
    copy = c.copy
    copy("closed_b.mp4", "faststart.mp4", "-movflags", "faststart")
    copy("closed_b.mp4", "no_edit_list.mp4", "-use_editlist", 0)
    copy("closed_b.mp4", "frag.mp4", "-movflags", "frag_keyframe+empty_moov+default_base_moof")
    copy("closed_b.mp4", "frag_sidx.mp4", "-movflags",
         "frag_keyframe+empty_moov+default_base_moof+global_sidx")
    copy("av.mp4", "frag_av.mp4", "-movflags", "frag_keyframe+empty_moov")
    copy("closed_b.mp4", "closed_b.mkv")
    copy("no_b.mp4", "no_b.mkv")
    copy("closed_b.mp4", "closed_b.mov")
    copy("closed_b.mp4", "closed_b.flv")
    copy("closed_b.mp4", "closed_b.nut")
    copy("closed_b.mp4", "closed_b.avi")
    copy("closed_b.mp4", "closed_b.h264", "-bsf:v", "h264_mp4toannexb")
    copy("closed_b.h264", "raw_remux.mp4", before=["-r", 30])
    copy("opengop.mp4", "opengop.mkv")
    copy("opengop.mp4", "opengop.ts")
    copy("opengop.mp4", "opengop.h264", "-bsf:v", "h264_mp4toannexb")
    copy("intra_refresh.mp4", "intra_refresh.ts")
    copy("intra_refresh.mp4", "intra_refresh.mkv")
    copy("closed_b.mp4", "trim_discardkey.mp4", before=["-ss", 0.5])
    copy("opengop.mp4", "trim_opengop.mp4", before=["-ss", 0.9])
    copy("cra_rasl.mp4", "trim_cra.mp4", before=["-ss", 1.0])
    copy("closed_b.mp4", "start10.ts", "-output_ts_offset", 10)
    copy("closed_b.mp4", "start10.mkv", "-output_ts_offset", 10)
    copy("av.mp4", "wrap33.ts", "-output_ts_offset", 95441)
    copy("av.mp4", "av.mkv")
    copy("av.mp4", "av.ts")
    copy("mpeg2.ts", "mpeg2_av.mpg", "-f", "vob")
    copy("cra_rasl.mp4", "cra_rasl.mkv")
    copy("cra_rasl.mp4", "cra_rasl.ts")
    copy("cra_rasl.mp4", "cra_rasl.m2ts")
    copy("cra_rasl.mp4", "cra_rasl.hevc", "-bsf:v", "hevc_mp4toannexb")
    copy("av1.mp4", "av1.mkv")
    copy("av1.mp4", "av1.obu")
    copy("av1.mp4", "av1.ivf")
    copy("vp9.webm", "vp9.mp4")
    copy("vp9.webm", "vp9.ivf")
    copy("vp8_arf.webm", "vp8_arf.ivf")
    copy("mpeg2_closed.mpg", "mpeg2.mxf")
    copy("mpeg4_b.avi", "mpeg4_b.mp4", "-bsf:v", "mpeg4_unpack_bframes", before=["-fflags", "+genpts"])
    copy("mjpeg.avi", "mjpeg.mov")
    c.ffmpeg("-f", "avi", "-i", "mjpeg.avi", "-c", "copy", "-f", "mjpeg", "raw.mjpeg")


def odd_files(c: Corpus):
    """Streams that disagree with their container, or do not belong in one."""
    copy = c.copy
    copy("closed_b.mp4", "bad_pts.mkv", "-bsf:v", "setts=pts=DTS")
    copy("closed_b.mp4", "bad_pts.mp4", "-bsf:v", "setts=pts=DTS")
    copy("cra_rasl.mp4", "bad_pts_hevc.mp4", "-bsf:v", "setts=pts=DTS", "-tag:v", "hvc1")
    copy("closed_b.mp4", "no_key.mp4", "-bsf:v", r"noise=drop=eq(n\,0)*1", before=["-t", 0.7])
    # Pictures that others refer to are lost, and what FFmpeg makes up for them is the truth.
    for name in ("lost_pictures.mp4", "lost_pictures.mkv", "lost_pictures.ts"):
        copy("closed_b.mp4", name, "-bsf:v", r"noise=drop=between(n\,29\,34)")
    c.ffmpeg("-i", "closed_b.mp4", "-c", "copy", "-encryption_scheme", "cenc-aes-ctr",
             "-encryption_key", "00112233445566778899aabbccddeeff",
             "-encryption_kid", "11223344556677889900aabbccddeeff", "encrypted.mp4")
    c.ffmpeg("-i", "closed_b.mp4", "-i", "hevc_closed.mp4", "-map", "0:v", "-map", "1:v", "-c",
             "copy", "two_video.mp4")
    c.ffmpeg("-i", "closed_b.mp4", "-i", "cover.png", "-map", "1", "-map", "0", "-c", "copy",
             "-disposition:v:0", "attached_pic", "cover_art.mp4")
    c.ffmpeg("-i", "no_b.mp4", "-f", "lavfi", "-i", "sine=frequency=440", "-c:v", "copy", "-c:a",
             "aac", "-t", 6, "long_audio.mp4")
    # Texts that libavformat takes for containers and that make it open other things.
    c.path("list.ffconcat").write_text("ffconcat version 1.0\nfile closed_b.mp4\n")
    c.path("list.m3u8").write_text("#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:3,\nav.ts\n"
                                   "#EXT-X-ENDLIST\n")
    c.path("session.sdp").write_text("v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\n"
                                     "t=0 0\nm=video 5000 RTP/AVP 96\na=rtpmap:96 H264/90000\n")
    with c.path("no_cues.mkv").open("wb") as out:
        subprocess.run(["ffmpeg", "-v", "error", "-i", "closed_b.mp4", "-c", "copy", "-f",
                        "matroska", "-"], cwd=c.folder, stdout=out, check=True)


def patched_files(c: Corpus):
    """Bytes changed, cut and moved."""
    patch = c.patch
    c.path("size_change.ts").write_bytes(
        c.path("small.ts").read_bytes() + c.path("opengop.ts").read_bytes())
    patch("closed_b.mp4", "no_stss_h264.mp4", rename(f"{STBL}/stss", b"free"))
    patch("hevc_closed.mp4", "no_stss_hevc.mp4", rename(f"{STBL}/stss", b"free"))
    patch("hevc_closed.mp4", "wrong_stss_hevc.mp4", wrong_stss)
    patch("closed_b.mp4", "wrong_stss_h264.mp4", wrong_stss)
    patch("no_b.mp4", "zero_size_last.mp4", zero_last_size)
    patch("no_b.mp4", "rotate90.mp4", matrix(0, 1, -1, 0))
    patch("no_b.mp4", "rotate180.mp4", matrix(-1, 0, 0, -1))
    # As phones trim: all samples stay, the edit list shows some. x265's mp4 has dependencies (sdtp).
    patch("cra_rasl.mp4", "edit_late.mp4", edited((500, 66)))
    patch("cra_rasl.mp4", "edit_twice.mp4", edited((500, 5), (500, 55)))
    patch("cra_rasl.mp4", "edit_again.mp4", edited((500, 30), (500, 30)))
    patch("cra_rasl.mp4", "edit_nothing.mp4", edited((1000, 500)))
    patch("opengop.mp4", "edit_pause.mp4", edited((300, 0), (1000, None), (800, 30)))
    patch("faststart.mp4", "cut_short_faststart.mp4", cut(0.6))
    patch("closed_b.mp4", "cut_short.mp4", cut(0.6))
    patch("opengop.ts", "cut_short.ts", cut(0.6))
    patch("closed_b.mkv", "cut_short.mkv", cut(0.6))
    patch("closed_b.mp4", "corrupt_h264.mp4", flip_bits)
    patch("cra_rasl.ts", "lost_packet.ts", lose_packet)
    patch("palette.mov", "palette2.mov", other_colours)
    patch("cra_rasl.ts", "checked.ts", with_check_codes)
    patch("no_cues.mkv", "stripped.mkv", strip_headers)
    patch("no_b.mkv", "laced.mkv", lace)
    stateful_pps(c, "repeat.h264", "repeat2.h264", "stateful_pps.h264")
    behind_5_gib(c, "faststart.mp4", "over_4_gib.mp4")
    two_descriptions(c, "no_b.mp4", "other_sets.mp4", "two_descriptions.mp4")
    # Cut in the middle of a group of pictures, as recorders do.
    data = c.path("cra_rasl.ts").read_bytes()
    c.path("starts_late.ts").write_bytes(data[:188 * 3] + data[188 * (len(data) // 188 // 3):])


NOT_VIDEOS = {"cover.png", "repeat2.h264"}
REJECTED = {"no_key.mp4": "decoding can start", "encrypted.mp4": "encrypted",
            "cut_short.mp4": "cut short", "list.ffconcat": "playlist", "list.m3u8": "playlist",
            "session.sdp": "playlist", "edit_nothing.mp4": "shows none"}
STREAMS = {"two_video.mp4": [0, 1]}
# Of bytes that are damaged or end early, what FFmpeg makes is not the truth; nor is what it shows
# before the first picture at which decoding can start.
TRUTH = dict.fromkeys(["cut_short_faststart.mp4", "cut_short.ts", "cut_short.mkv",
                       "corrupt_h264.mp4", "lost_packet.ts"], "none") | {"starts_late.ts": "tail"}


def make(folder: pathlib.Path):
    corpus = Corpus(folder)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(job) for job in base_files(corpus)]:
            done.result()
    for step in (copied_files, odd_files, patched_files):
        step(corpus)
    truths = []
    for path in sorted(folder.iterdir()):
        name = path.name
        if name in NOT_VIDEOS or name.startswith("corpus") or path.is_dir():
            continue
        if name not in REJECTED:
            truths += [(name, stream) for stream in STREAMS.get(name, [0])]
        corpus.add(name, STREAMS.get(name, [0]), REJECTED.get(name, ""), TRUTH.get(name, "all"))
    (folder / "truth").mkdir()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda truth: corpus.write_truth(*truth), truths))
    (folder / "corpus.tsv").write_text("".join(corpus.lines))


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    version = subprocess.run(["ffmpeg", "-version"], capture_output=True, check=True).stdout
    stamp = hashlib.sha256(pathlib.Path(__file__).read_bytes() + version).hexdigest()
    with (folder / "corpus.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp_file = folder / "corpus.stamp"
        if stamp_file.exists() and stamp_file.read_text() == stamp:
            return 0
        for path in folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name != "corpus.lock":
                path.unlink()
        make(folder)
        stamp_file.write_text(stamp)
    return 0


if __name__ == "__main__":
    sys.exit(main())
