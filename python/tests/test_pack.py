"""What `forebay pack` writes: the same whatever machine and however often it was stopped, with the catalog
that an index would make."""

import contextlib
import gzip
import json
import os
import random
import signal
import struct
import subprocess
import time

import numpy as np
import pytest

import forebay as fb
from forebay.demo import processes, seaweed

CLI = processes.find_program("forebay", "FOREBAY_CLI")
TO = ["tar", "tfrecord", "mds", "recordio", "recordio-image", "recordio-protobuf", "parquet"]
COLUMNS = {
    "recordio": ["--column", "jpg"],
    "recordio-image": ["--column", "image=jpg", "--column", "label=cls"],
}


def forebay(*arguments, code=0, env=None):
    ran = subprocess.run([CLI, *map(str, arguments)], capture_output=True, text=True, timeout=120, env=env)
    assert ran.returncode == code, (ran.returncode, ran.stderr)
    return ran


def pack(*arguments, code=0, env=None):
    ran = forebay("pack", *arguments, "--json", code=code, env=env)
    return json.loads(ran.stdout) if ran.stdout else ran.stderr


def content(folder, with_own=False):
    """Name -> bytes of what lies below."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*"))
            if path.is_file() and not path.name.endswith(".forebay-tmp")  # of what was killed: no object
            and (with_own or ".forebay" not in path.parts)}  # fmt: skip


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """240 samples in three folders: a jpg of no picture, and its class as text."""
    root = tmp_path_factory.mktemp("pictures")
    draw = random.Random(5)
    for number in range(240):
        folder = root / f"c{number % 3}"
        folder.mkdir(exist_ok=True)
        data = b"" if number == 7 else draw.randbytes(draw.randrange(1, 6000))
        (folder / f"{number:04}.jpg").write_bytes(data)
        (folder / f"{number:04}.cls").write_text(f"{number % 10}\n")
    return root


def arguments_for(to):
    return ["--to", to, "--shard-size", "100KB", *COLUMNS.get(to, [])]


@pytest.mark.parametrize("to", TO)
def test_the_catalog_written_with_the_shards_is_the_one_an_index_makes(pictures, tmp_path, to):
    report = pack(pictures, tmp_path, *arguments_for(to))
    assert report["samples"] == 240 and report["shards"] > 3 == report["shards_missing"] + 3
    catalog = tmp_path / ".forebay" / "catalog.fbc"
    written = catalog.read_bytes()
    index = fb.index(str(tmp_path), format=to)
    assert index["records"] == 240 and index["objects_skipped"] == 0 and index["content_hash"] == report["content_hash"]
    assert catalog.read_bytes() == written
    manifest = json.loads((tmp_path / ".forebay" / "pack.json").read_text())
    assert sum(shard["samples"] for shard in manifest["shards"]) == 240
    assert {s["name"]: s["bytes"] for s in manifest["shards"]} == {
        name: len(data) for name, data in content(tmp_path).items()
        if not name.endswith((".idx", ".json"))
    }  # fmt: skip


@pytest.mark.parametrize("to", TO)
def test_the_shards_are_the_same_by_one_machine_and_by_several(pictures, tmp_path, to):
    pack(pictures, tmp_path / "one", *arguments_for(to))
    for share in (2, 0, 1):
        report = pack(pictures, tmp_path / "three", *arguments_for(to), "--shard", f"{share}/3")
        assert bool(report["shards_missing"]) == (share != 1)
        assert (tmp_path / "three/.forebay/pack.json").exists() == (share == 1)
    one = content(tmp_path / "one")
    assert one == content(tmp_path / "three")
    sizes = [len(data) for name, data in one.items() if name.startswith("shard") and not name.endswith(".idx")]
    assert max(sizes) <= 125_000 and min(sizes[:-1]) > 60_000


def test_one_that_was_killed_goes_on_and_ends_as_if_it_had_not_been(pictures, tmp_path):
    pack(pictures, tmp_path / "whole", *arguments_for("tar"))
    whole = content(tmp_path / "whole")
    out = tmp_path / "out"
    kept = 0
    for attempt in range(12):
        process = subprocess.Popen([CLI, "pack", pictures, out, *arguments_for("tar")],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
        wait_for = 1 + attempt  # done-markers
        deadline = time.monotonic() + 30
        while process.poll() is None and time.monotonic() < deadline:
            if sum(1 for _ in out.rglob("*.fbp")) >= wait_for:
                break
        process.send_signal(signal.SIGKILL)
        process.wait()
        # What is visible is whole, at every moment.
        there = content(out) if out.exists() else {}
        assert all(whole[name] == data for name, data in there.items())
        kept = max(kept, len(there))
        if not (out / ".forebay/pack.json").exists() and len(there) < len(whole):
            assert not (out / ".forebay/catalog.fbc").exists() or len(there) == len(whole)
    report = pack(pictures, out, *arguments_for("tar"))
    assert kept > 0 and report["shards_there"] + report["shards_written"] == report["shards"]
    assert content(out) == whole
    index = fb.index(str(out), format="tar")
    assert index["content_hash"] == report["content_hash"]
    again = pack(pictures, out, *arguments_for("tar"))
    assert again["shards_written"] == 0 and again["content_hash"] == report["content_hash"]


def test_a_shard_that_was_changed_or_is_gone_is_made_again(pictures, tmp_path):
    pack(pictures, tmp_path, *arguments_for("tar"))
    before = content(tmp_path)
    (tmp_path / "shard-000001.tar").write_bytes(b"other")
    (tmp_path / "shard-000002.tar").unlink()
    assert pack(pictures, tmp_path, *arguments_for("tar"))["shards_written"] == 2
    assert content(tmp_path) == before and (tmp_path / ".forebay/pack.json").exists()
    (tmp_path / "shard-000002.tar").unlink()
    error = pack(pictures, tmp_path, *arguments_for("tar"), "--shard", "0/5", code=254)
    assert "shard-000002.tar is not what its marker says" in error and "share 2 of 5" in error, error


def test_what_is_not_of_this_pack_is_never_touched(pictures, tmp_path):
    (tmp_path / "mine.txt").write_text("keep")
    assert "mine.txt" in pack(pictures, tmp_path, "--to", "tar", code=254)
    (tmp_path / "mine.txt").unlink()
    pack(pictures, tmp_path, "--to", "tar")
    assert "not of this pack" in pack(pictures, tmp_path, "--to", "tar", "--keys", "number", code=254)
    assert "lie in each other" in pack(tmp_path, tmp_path / "in", "--to", "tar", code=252)


def test_records_come_back_through_a_loader(pictures, tmp_path):
    pack(pictures, tmp_path, *arguments_for("tar"))
    source = {path.relative_to(pictures).with_suffix(""): path.read_bytes()
              for path in pictures.rglob("*.jpg")}  # fmt: skip
    expected = [source[key] for key in sorted(source)]
    records = fb.Records(str(tmp_path), columns=["jpg"])
    with fb.Loader(records, batch_size=24, epochs=1, shuffle=False) as batches:
        got = []
        for batch in batches:
            offsets = np.asarray(batch["offsets"])
            data = np.asarray(batch["bytes"])
            got += [data[a:b].tobytes() for a, b in zip(offsets, offsets[1:])]
    assert got == expected


@pytest.mark.parametrize("to", ["tar", "tfrecord", "mds"])
def test_shards_of_one_format_become_shards_of_another(pictures, tmp_path, to):
    pack(pictures, tmp_path / "tar", *arguments_for("tar"))
    direct, again = tmp_path / "direct", tmp_path / "again"
    pack(pictures, direct, *arguments_for(to))
    report = pack(tmp_path / "tar", again, *arguments_for(to))
    assert report["from"] == "tar"
    assert content(direct) == content(again)


def test_tfrecords_are_cut_anew_as_they_are(pictures, tmp_path):
    pack(pictures, tmp_path / "small", "--to", "tfrecord", "--shard-size", "50KB")
    pack(tmp_path / "small", tmp_path / "large", "--to", "tfrecord")
    small = content(tmp_path / "small")
    assert len(small) > 5
    assert content(tmp_path / "large") == {"shard-000000.tfrecord": b"".join(small[n] for n in sorted(small))}


def test_every_error_names_the_sample(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    (source / "a.JPG").write_bytes(b"1")
    (source / "a.jpg").write_bytes(b"2")
    assert "a.jpg is the second file of field 'jpg'" in pack(source, tmp_path / "o", "--to", "tar", code=252)
    (source / "a.JPG").unlink()
    (source / "a.cls").write_text("seven")
    error = pack(source, tmp_path / "o", "--to", "mds", code=252)
    assert "'seven' is no int64" in error and "sample 0" in error and "field 'cls'" in error, error
    (source / "b.jpg").write_bytes(b"2")
    error = pack(source, tmp_path / "o", "--to", "mds", code=252)
    assert "sample 1 'b'" in error and "other columns" in error, error
    assert "no label" in pack(source, tmp_path / "o", "--to", "recordio-image", code=252)
    assert not (tmp_path / "o").exists() or not content(tmp_path / "o", True)


def test_files_of_no_sample_are_left_out_with_a_warning(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    for name in ("README", "a.txt", ".hidden.txt"):
        (source / name).write_text(name)
    ran = forebay("pack", source, tmp_path / "o", "--to", "tar", "--json", code=2)
    report = json.loads(ran.stdout)
    assert report["samples"] == 1 and report["files_left_out"] == 2
    assert "README: left out" in ran.stderr and ".hidden.txt: left out" in ran.stderr


def test_what_the_source_is_of_is_told_by_all_of_its_objects(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    for n in range(20):
        (source / f"{n:02}.json").write_text("{}")
        (source / f"{n:02}.jpg").write_bytes(b"no picture")
    report = pack(source, tmp_path / "o", "--to", "tar")
    assert (report["from"], report["samples"], report["files_left_out"]) == ("files", 20, 0)
    lines = pack(source, tmp_path / "lines", "--to", "tar", "--format", "jsonl", code=2)
    assert (lines["from"], lines["samples"], lines["files_left_out"]) == ("jsonl", 20, 20)
    (tmp_path / "o" / "README.md").write_text("of the shards")
    error = pack(tmp_path / "o", tmp_path / "again", "--to", "mds", code=252)
    assert "shards of tar and 1 other objects" in error, error


def test_folders_become_labels(tmp_path):
    source = tmp_path / "source"
    for name in ("a-b/1.jpg", "a/1.jpg", "b/1.jpg"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes(name.encode())
    pack(source, tmp_path / "o", "--to", "recordio-image", "--labels", "folder")
    data = (tmp_path / "o/shard-000000.rec").read_bytes()
    at, seen = 0, {}
    while at < len(data):
        _, length = struct.unpack_from("<II", data, at)
        _, label = struct.unpack_from("<If", data, at + 8)
        seen[data[at + 32 : at + 8 + length]] = label
        at += 8 + length + -length % 4
    assert seen == {b"a/1.jpg": 0, b"a-b/1.jpg": 1, b"b/1.jpg": 2}
    manifest = json.loads((tmp_path / "o/.forebay/pack.json").read_text())
    assert manifest["classes"] == ["a", "a-b", "b"]


def test_machines_index_parts_and_merge_makes_the_catalog_of_one(pictures, tmp_path):
    pack(pictures, tmp_path, *arguments_for("tar"))
    catalog = tmp_path / ".forebay/catalog.fbc"
    whole = catalog.read_bytes()
    catalog.unlink()
    for share in range(3):
        error = forebay("merge", tmp_path, code=254).stderr
        assert ("no part" if share == 0 else f"{share} parts of 3") in error
        forebay("index", tmp_path, "--shard", f"{share}/3")
    report = json.loads(forebay("merge", tmp_path, "--json").stdout)
    assert report["records"] == 240 and report["objects"] == report["shards"]
    assert catalog.read_bytes() == whole
    assert not list(tmp_path.rglob("*.fbp")) or all("pack" in p.parts for p in tmp_path.rglob("*.fbp"))


def test_parts_of_data_that_changed_in_between_are_not_merged(pictures, tmp_path):
    pack(pictures, tmp_path, *arguments_for("tar"))
    forebay("index", tmp_path, "--shard", "0/2")
    (tmp_path / "shard-000000.tar").unlink()
    forebay("index", tmp_path, "--shard", "1/2")
    assert "not of one whole" in forebay("merge", tmp_path, code=252).stderr


def test_from_bucket_to_bucket_killed_again_and_again(tmp_path):
    """Shards of several parts; what a reader of the bucket sees is always whole."""
    source = tmp_path / "source"
    source.mkdir()
    draw = random.Random(9)
    for number in range(60):
        (source / f"{number:02}.bin").write_bytes(draw.randbytes(1_000_000))
    options = ["--to", "tar", "--shard-size", "20MB", "--memory", "400MB"]
    pack(source, tmp_path / "whole", *options)
    whole = content(tmp_path / "whole")
    with contextlib.closing(seaweed.Server(tmp_path / "s3")) as server:
        client = server.client()
        assert client.request("PUT", "/data")[0] == 200
        env = {**os.environ, "AWS_ACCESS_KEY_ID": server.access_key, "AWS_SECRET_ACCESS_KEY": server.secret_key,
               "AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
               "AWS_ENDPOINT_URL": server.endpoint, "AWS_REGION": "us-east-1"}  # fmt: skip
        forebay("cp", "-r", f"{source}/", "s3://data/raw/", env=env)
        draw = random.Random(3)
        for _ in range(4):
            process = subprocess.Popen([CLI, "pack", "s3://data/raw/", "s3://data/tar/", *options], env=env,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(draw.uniform(0.1, 0.6))
            process.kill()
            process.wait()
            listing = subprocess.run([CLI, "ls", "-r", "s3://data/tar/", "--json"], env=env, capture_output=True,
                                     text=True, timeout=60)  # fmt: skip
            assert listing.returncode in (0, 254), listing.stderr  # 254: there is nothing yet
            for line in listing.stdout.splitlines():
                listed = json.loads(line)
                name = listed["uri"].removeprefix("s3://data/tar/")
                assert listed["size"] == len(whole[name])
        report = pack("s3://data/raw/", "s3://data/tar/", *options, env=env)
        assert report["shards"] == len(whole) == report["shards_there"] + report["shards_written"]
        forebay("cp", "-r", "s3://data/tar/", f"{tmp_path}/back/", env=env)
        assert content(tmp_path / "back") == whole
        forebay("cp", "s3://data/tar/.forebay/catalog.fbc", tmp_path / "packed.fbc", env=env)
        forebay("index", "s3://data/tar/", "--out", tmp_path / "indexed.fbc", env=env)
        assert (tmp_path / "packed.fbc").read_bytes() == (tmp_path / "indexed.fbc").read_bytes()
        # A source that changes between its listing and its reading ends it, by name.
        forebay("index", "s3://data/raw/", "--format", "files", "--out", tmp_path / "raw.fbc", env=env)
        forebay("cp", source / "01.bin", "s3://data/raw/33.bin", env=env)
        error = pack("s3://data/raw/", "s3://data/new/", *options, "--catalog", tmp_path / "raw.fbc",
                     env=env, code=254)  # fmt: skip
        assert "precondition_failed" in error and "33.bin" in error and "sample 33" in error, error
        status, _ = client.request("GET", "/data/new/.forebay/pack.json")[:2]
        assert status == 404
        client.close()


@pytest.mark.parametrize("shares", [1, 4, 9])
def test_videos_are_indexed_by_several_machines_too(drives, tmp_path, shares):
    """Six of them: with nine machines three have nothing to do."""
    forebay("index", drives, "--out", tmp_path / "one.fbc")
    for share in reversed(range(shares)):
        report = json.loads(forebay("index", drives, "--out", tmp_path / "many.fbc", "--shard",
                                    f"{share}/{shares}", "--json").stdout)  # fmt: skip
        assert report["format"] == "video" and report["videos"] == len(range(share, 6, shares))
    report = json.loads(forebay("merge", drives, "--out", tmp_path / "many.fbc", "--json").stdout)
    assert report["videos"] == report["objects"] == 6 and report["frames"] == 360
    assert (tmp_path / "many.fbc").read_bytes() == (tmp_path / "one.fbc").read_bytes()


def test_plain_objects_are_indexed_by_one_machine(pictures):
    assert "by one machine" in forebay("index", pictures, "--format", "files", "--shard", "0/2", code=252).stderr
    assert "none of the 480 objects" in forebay("index", pictures, "--shard", "0/2", code=254).stderr


def zstd_frame(data):
    """As zstd stores what it does not compress: blocks of at most 128 KiB."""
    out = struct.pack("<IBI", 0xFD2FB528, 0xA0, len(data))  # one segment, its size in four bytes
    pieces = [data[at : at + 131072] for at in range(0, len(data), 131072)] or [b""]
    for number, piece in enumerate(pieces):
        last = number == len(pieces) - 1
        out += (last | len(piece) << 3).to_bytes(3, "little") + piece
    return out


@pytest.mark.parametrize("compress, ending", [(gzip.compress, ".gz"), (zstd_frame, ".zstd")])
@pytest.mark.parametrize("kind", ["tar", "tfrecord", "mds", "jsonl"])
def test_compressed_shards_are_packed_from(pictures, tmp_path, kind, compress, ending):
    """What comes out is what comes out of the same shards when they are not compressed."""
    plain, packed = tmp_path / "plain", tmp_path / "packed"
    if kind == "jsonl":
        plain.mkdir()
        for n in range(4):
            lines = [json.dumps({"n": n, "i": i, "text": "x" * (i % 50)}) for i in range(200 + n)]
            (plain / f"{n}.jsonl").write_text("\n".join(lines) + "\n")
    else:
        pack(pictures, plain, *arguments_for(kind))
    packed.mkdir()
    for name, data in content(plain).items():
        if name == "index.json":
            index = json.loads(data)
            for shard in index["shards"]:
                shard["compression"] = "zstd:3"
                shard["zip_data"] = {**shard["raw_data"], "basename": shard["raw_data"]["basename"] + ending}
            (packed / name).write_text(json.dumps(index))
        else:
            (packed / f"{name}{ending}").write_bytes(compress(data))
    options = ["--to", "tfrecord" if kind == "tar" else "tar", "--shard-size", "200KB"]
    pack(plain, tmp_path / "a", *options)
    report = pack(packed, tmp_path / "b", *options, "--unpack")
    assert report["from"] == kind and report["samples"] > 200 and report["files_left_out"] == 0
    assert content(tmp_path / "a") == content(tmp_path / "b")
    # One that is damaged is named.
    victim = sorted(packed.glob(f"*{ending}"))[1]
    victim.write_bytes(victim.read_bytes()[:-9])
    error = pack(packed, tmp_path / "c", *options, "--unpack", code=1)
    assert victim.name in error and "data_loss" in error, error


def test_compressed_shards_that_hold_no_records_are_told(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    (source / "a.txt.gz").write_bytes(gzip.compress(b"some text"))
    assert "no format of records" in pack(source, tmp_path / "o", "--to", "tar", "--unpack", code=252)
