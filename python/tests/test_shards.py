"""Shards of records: indexed by content, read in any order, decoded by ops; the same samples always."""

import io
import json
import tarfile

import numpy as np
import PIL.Image as PIL
import pytest

import forebay as fb



GETS = 'forebay_store_requests_total{op="get",code="ok"}'


def jpeg(number, size=(40, 30)):
    rng = np.random.default_rng(number)
    coarse = rng.integers(0, 256, (4, 5, 3), np.uint8)
    image = PIL.fromarray(coarse).resize(size, PIL.BICUBIC)
    out = io.BytesIO()
    image.save(out, "JPEG", quality=92)
    return out.getvalue()


def write_tar(path, members):
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))


def sample(number):
    return {"jpg": jpeg(number), "cls": str(number % 10).encode(),
            "json": json.dumps({"n": number}).encode()}  # fmt: skip


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shards")
    number = 0
    for shard in range(5):
        members = []
        for _ in range(40 - shard):
            for field, data in sample(number).items():
                members.append((f"{number:06}.{field}", data))
            number += 1
        write_tar(folder / f"train-{shard:04}.tar", members)
    (folder / "README.txt").write_text("not a shard")
    report = fb.index(str(folder))
    assert report["format"] == "tar" and report["records"] == number and report["shards"] == 5
    assert report["objects_skipped"] == 1
    assert report["fields"] == {"jpg": number, "cls": number, "json": number}
    return folder, number


def loader(folder, **more):
    return fb.Loader(fb.Records(str(folder)), **{"batch_size": 8, "epochs": 1} | more)


@pytest.mark.parametrize("shuffle", [True, False, fb.BlockShuffle(window=3, streams=2, run=4)])
def test_every_sample_comes_once_with_its_own_bytes(shards, shuffle):
    folder, count = shards
    seen = []
    with loader(folder, shuffle=shuffle, tail="ragged", seed=3) as batches:
        for batch in batches:
            for row, number in enumerate(batch["_sample"]):
                expected = sample(int(number))
                for field, data in expected.items():
                    offsets = batch[f"{field}_offsets"]
                    got = batch[field][offsets[row] : offsets[row + 1]].tobytes()
                    assert got == data, (field, number)
                seen.append(int(number))
    assert sorted(seen) == list(range(count))
    if shuffle is False:
        assert seen == sorted(seen)


def test_a_single_column_comes_as_bytes_and_nothing_else_is_read(shards):
    folder, _ = shards
    records = fb.Records(str(folder), format="tar", columns=["cls"])
    with fb.Loader(records, batch_size=16, epochs=1, seed=1) as batches:
        for batch in batches:
            labels = [bytes(batch["bytes"][a:b]) for a, b in
                      zip(batch["offsets"], batch["offsets"][1:])]  # fmt: skip
            assert labels == [str(n % 10).encode() for n in batch["_sample"]]
        metrics = batches.metrics()
    assert 0 < metrics["forebay_store_read_bytes_total"] < 300


def test_images_are_decoded_as_pil_does(shards):
    folder, _ = shards
    ops = [fb.ops.decode_image("jpg"), fb.ops.center_crop((30, 40)), fb.ops.parse_int("cls"),
           fb.ops.select("jpg", "cls")]  # fmt: skip
    with loader(folder, ops=ops, seed=5) as batches:
        for batch in batches:
            assert batch["jpg"].shape == (8, 30, 40, 3)
            for image, label, number in zip(batch["jpg"], batch["cls"], batch["_sample"]):
                expected = np.asarray(PIL.open(io.BytesIO(jpeg(int(number)))).convert("RGB"))
                np.testing.assert_array_equal(image, expected)
                assert label == number % 10


def augmented():
    return [
        fb.ops.decode_image("jpg"),
        fb.ops.random_resized_crop(24),
        fb.ops.random_horizontal_flip(),
        fb.ops.normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
        fb.ops.to_chw(),
        fb.ops.parse_int("cls"),
        fb.ops.select("jpg", "cls"),
    ]


def pictures(folder, **more):
    """Sample -> its augmented picture."""
    found = {}
    with loader(folder, ops=augmented(), seed=11, **more) as batches:
        for batch in batches:
            assert batch["jpg"].dtype == np.float32 and batch["jpg"].shape[1:] == (3, 24, 24)
            for number, image in zip(batch["_sample"], batch["jpg"]):
                found[int(number)] = np.array(image)
    return found


@pytest.mark.parametrize("shuffle", [True, fb.BlockShuffle(window=2, run=8)])
@pytest.mark.parametrize("what", ["pictures", "raw"])
def test_an_epoch_that_fits_into_memory_is_read_and_decoded_once(shards, shuffle, what):
    folder, count = shards
    options = {"ops": augmented() if what == "pictures" else [], "seed": 11, "shuffle": shuffle,
               "epochs": 4, "tail": "ragged", "batch_size": 10, "runway": 0}  # fmt: skip
    steps = count // 10
    assert count % 10 == 0

    def arrays(batch):
        return {name: np.array(batch[name]) for name in batch}

    states, epochs, gets, prepared = [], [], [], []
    with loader(folder, **options) as batches:
        states.append(batches.state_dict())
        for _ in range(4):  # one at a time
            epochs.append([arrays(batch) for batch in batches])
            states.append(batches.state_dict())
            gets.append(batches.metrics()[GETS])
            prepared.append(batches.metrics()["forebay_prepared_samples_total"])
        metrics = batches.metrics()
    assert [len(epoch) for epoch in epochs] == [steps] * 4
    # Of each epoch one batch is asked for before the epoch before it has ended.
    assert gets[1] == gets[2] == gets[3] <= gets[0] + 10
    assert prepared[3] >= 3 * count - 20
    assert 0 < metrics['forebay_memory_bytes{kind="prepared"}'] < metrics["forebay_memory_bytes{kind=\"limit\"}"] / 2
    # One that begins with that epoch has kept nothing.
    for epoch, state in zip(epochs, states):
        with loader(folder, **options) as batches:
            batches.load_state_dict(state)
            for expected, batch in zip(epoch, batches):
                for name, array in arrays(batch).items():
                    np.testing.assert_array_equal(array, expected[name])


def test_shards_that_are_appended_leave_a_block_shuffle_as_it_was(tmp_path):
    def write(name, count, size, first):
        write_tar(tmp_path / name, [(f"{i:06}.txt", bytes(size)) for i in range(first, first + count)])

    for shard in range(2):
        write(f"a{shard}.tar", 500, 20_000, 1000 * shard)
    fb.index(str(tmp_path))
    options = {"batch_size": 20, "shuffle": fb.BlockShuffle(window=2, run=5), "seed": 3}
    seen, states = [], []
    with loader(tmp_path, **options) as whole:
        for batch in whole:
            seen.append(batch["_sample"].tolist())
            states.append(whole.state_dict())
    # Records of another size: by the mean of all of them blocks would be longer.
    write("b.tar", 5000, 20, 10_000)
    assert fb.index(str(tmp_path), append=True)["appended"] == 5000
    with loader(tmp_path, **options) as rest:
        rest.load_state_dict(states[14])
        assert [batch["_sample"].tolist() for batch in rest] == seen[15:]


def test_random_ops_give_the_same_pictures_in_any_order_and_on_any_number_of_ranks(shards):
    folder, count = shards
    whole = pictures(folder, tail="ragged")
    assert len(whole) == count
    blocks = pictures(folder, tail="ragged", shuffle=fb.BlockShuffle(window=2), decode_threads=3)
    parts = {}
    for rank in range(3):
        parts |= pictures(folder, tail="ragged", rank=rank, world_size=3, batch_size=5)
    for other in (blocks, parts):
        assert other.keys() == whole.keys()
        for number, image in whole.items():
            np.testing.assert_array_equal(other[number], image)


def test_a_run_is_the_same_again_from_its_record(shards):
    folder, _ = shards
    with loader(folder, ops=augmented(), seed=4, content_digest=True) as first:
        for _ in first:
            pass
        record = json.loads(json.dumps(first.run()))
        digest = first.state_dict()["content"]
    with fb.Loader.from_run(record) as again:
        for _ in again:
            pass
        assert again.state_dict()["content"] == digest


def test_a_state_resumes_in_the_middle_of_a_piece_that_many_batches_share(shards):
    folder, _ = shards
    shuffle = fb.BlockShuffle(window=2, run=8)
    with loader(folder, shuffle=shuffle, seed=2) as whole:
        all_batches = [np.array(b["_sample"]) for b in whole]
    with loader(folder, shuffle=shuffle, seed=2) as first:
        it = iter(first)
        for _ in range(7):
            next(it)
        state = first.state_dict()
    with loader(folder, shuffle=shuffle, seed=2) as rest:
        rest.load_state_dict(state)
        got = [np.array(b["_sample"]) for b in rest]
    for mine, theirs in zip(got, all_batches[7:]):
        np.testing.assert_array_equal(mine, theirs)
    assert len(got) == len(all_batches) - 7


def test_neighbours_are_fetched_once_for_all_that_they_hold(shards):
    folder, count = shards
    numbers = {}
    for name, shuffle in (("global", True), ("blocks", fb.BlockShuffle(window=4))):
        with loader(folder, shuffle=shuffle, tail="ragged") as batches:
            for _ in batches:
                pass
            numbers[name] = batches.metrics()[GETS]
    assert numbers["global"] >= count
    assert numbers["blocks"] <= 2 * 5, numbers  # a shard is one piece, or two that it shares


def test_a_callable_may_come_last(shards):
    folder, _ = shards
    ops = [*augmented(), lambda batch: {"mean": batch["jpg"].mean(axis=(1, 2, 3))}]
    with loader(folder, ops=ops) as batches:
        assert next(iter(batches))["mean"].shape == (8,)


def test_a_shard_that_was_changed_after_it_was_indexed_is_no_shard_any_more(tmp_path):
    members = [(f"{n:04}.txt", bytes([n]) * 900) for n in range(20)]
    write_tar(tmp_path / "a.tar", members)
    fb.index(str(tmp_path))
    write_tar(tmp_path / "a.tar", [(name, data[::-1]) for name, data in members][::-1])
    with fb.Loader(fb.Records(str(tmp_path)), batch_size=4, epochs=1) as batches:
        with pytest.raises(fb.PreconditionFailedError):
            next(iter(batches))


def test_bad_samples_are_replaced_and_told(tmp_path):
    for shard in range(2):
        write_tar(
            tmp_path / f"{shard}.tar",
            [(f"{shard}{n:02}.jpg", b"no picture" if n % 7 == 3 else jpeg(n)) for n in range(20)],
        )
    fb.index(str(tmp_path))
    ops = [fb.ops.decode_image("jpg"), fb.ops.center_crop(20)]
    for shuffle in (True, fb.BlockShuffle(window=2)):
        with fb.Loader(fb.Records(str(tmp_path)), batch_size=10, epochs=1, ops=ops, seed=1,
                       shuffle=shuffle) as batches:  # fmt: skip
            with pytest.raises(fb.DataLossError, match="jpg"):
                for _ in batches:
                    pass
        with fb.Loader(fb.Records(str(tmp_path)), batch_size=10, epochs=1, ops=ops, seed=1,
                       shuffle=shuffle, on_bad_sample=fb.skip(max=20)) as batches:  # fmt: skip
            rows = [int(n) for batch in batches for n in batch["_sample"]]
            assert len(rows) == 40
            assert not any(n % 20 % 7 == 3 for n in rows)


def test_damage_is_found_when_shards_are_indexed(tmp_path):
    write_tar(tmp_path / "good.tar", [("a.jpg", jpeg(1))])
    write_tar(tmp_path / "cut.tar", [(f"{n}.jpg", jpeg(n)) for n in range(9)])
    whole = (tmp_path / "cut.tar").read_bytes()
    (tmp_path / "cut.tar").write_bytes(whole[:5000])
    report = fb.index(str(tmp_path), format="tar")
    assert report["records"] == 1 and report["objects_failed"] == 1
    (failure,) = report["failures"].items()
    assert failure[0].endswith("cut.tar")


def test_pictures_with_a_table_beside_them_are_plain_objects(tmp_path):
    for n in range(6):
        (tmp_path / f"{n}.jpg").write_bytes(jpeg(n))
    (tmp_path / "labels.csv").write_text("name,label\n" + "".join(f"{n}.jpg,{n}\n" for n in range(6)))
    (tmp_path / "labels.jsonl").write_text("".join('{"n": %d}\n' % n for n in range(6)))
    assert fb.index(str(tmp_path))["format"] == "files"


def test_new_shards_come_behind_the_ones_there_are(tmp_path):
    write_tar(tmp_path / "b.tar", [(f"b{n}.txt", b"b%d" % n) for n in range(5)])
    fb.index(str(tmp_path))
    write_tar(tmp_path / "a.tar", [(f"a{n}.txt", b"a%d" % n) for n in range(3)])
    with pytest.raises(fb.InvalidArgumentError, match="the catalog is of format 'tar', not of 'mds'"):
        fb.index(str(tmp_path), append=True, format="mds")
    report = fb.index(str(tmp_path), append=True)
    assert report["appended"] == 3 and report["generations"] == 2
    with fb.Loader(fb.Records(str(tmp_path)), batch_size=8, epochs=1, shuffle=False) as batches:
        batch = next(iter(batches))
        assert bytes(batch["bytes"]) == b"b0b1b2b3b4a0a1a2"


@pytest.mark.parametrize(
    "names, refused",
    [
        (["txt", "cls"], None),
        (["txt", "cls", "json"], None),  # what is new changes nothing
        (["txt"], "a.tar: record '0' at 512 lacks 'cls', which every earlier record has"),
    ],
)
def test_what_is_appended_leaves_the_fields_of_past_epochs_as_they_were(tmp_path, names, refused):
    write_tar(tmp_path / "b.tar", [(f"{n}.{field}", b"1") for n in range(4) for field in ("txt", "cls")])
    before = fb.index(tmp_path)
    write_tar(tmp_path / "a.tar", [(f"{n}.{field}", b"2") for n in range(2) for field in names])
    if refused:
        with pytest.raises(fb.InvalidArgumentError, match=refused):
            fb.index(tmp_path, append=True)
    else:
        assert fb.index(tmp_path, append=True)["generations"] == 2
    with fb.Loader(fb.Records(tmp_path), batch_size=2, epochs=1, shuffle=False) as batches:
        assert batches.sample_count == (4 if refused else 6)
        batch = next(iter(batches))
        assert {"txt", "cls"} <= set(batch) and "json" not in batch
    (tmp_path / "a.tar").unlink()
    assert fb.index(tmp_path)["content_hash"] == before["content_hash"]


def test_what_cannot_be_is_refused_with_a_reason(shards):
    folder, _ = shards
    with pytest.raises(fb.InvalidArgumentError, match="no record has 'png'; there are: jpg, cls"):
        fb.Loader(fb.Records(str(folder), columns=["png"]))
    with pytest.raises(fb.InvalidArgumentError, match="png"):
        loader(folder, ops=[fb.ops.decode_image("png")])
    with pytest.raises(fb.InvalidArgumentError, match="size"):
        fb.ops.center_crop("big")
    with pytest.raises(fb.InvalidArgumentError, match="callable may be the last"):
        loader(folder, ops=[len, fb.ops.to_chw()])
    with pytest.raises(fb.InvalidArgumentError, match="format"):
        fb.Records(str(folder), format="zip")


@pytest.fixture(scope="module")
def image_folder(tmp_path_factory):
    """As torchvision's ImageFolder takes it: the folders right below are the classes."""
    folder = tmp_path_factory.mktemp("folder")
    names = ["cat", "dog", "Zebra", "ape/young"]
    for number in range(60):
        path = folder / names[number % 4]
        path.mkdir(parents=True, exist_ok=True)
        (path / f"{number:03}.jpg").write_bytes(jpeg(number))
    report = fb.index(str(folder), format="files")
    assert report["objects"] == 60
    return folder


def test_plain_files_go_through_ops_with_their_folders_as_labels(image_folder):
    classes = ["Zebra", "ape", "cat", "dog"]  # sorted as Python sorts
    labels = {number: classes.index(["cat", "dog", "Zebra", "ape"][number % 4]) for number in range(60)}
    records = fb.Records(str(image_folder), columns=["bytes", "label"])
    ops = [fb.ops.decode_image("bytes"), fb.ops.center_crop((30, 40))]
    keys = sorted(str(p.relative_to(image_folder)) for p in image_folder.rglob("*.jpg"))
    seen = set()
    for shuffle in (True, fb.BlockShuffle(window=2)):
        with fb.Loader(records, ops=ops, batch_size=6, epochs=1, seed=2, shuffle=shuffle) as batches:
            for batch in batches:
                assert batch["bytes"].shape == (6, 30, 40, 3) and batch["label"].dtype == np.int64
                for image, label, at in zip(batch["bytes"], batch["label"], batch["_sample"]):
                    number = int(keys[int(at)].split("/")[-1][:3])
                    expected = np.asarray(PIL.open(io.BytesIO(jpeg(number))).convert("RGB"))
                    np.testing.assert_array_equal(image, expected)
                    assert label == labels[number]
                    seen.add(number)
    assert seen == set(range(60))


def test_folders_that_are_appended_are_classes_behind_those_there_were(tmp_path):
    def put(*names):
        for name in names:
            path = tmp_path / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(name.encode())

    put("cat/0", "eel/0")
    fb.index(tmp_path, format="files")
    put("ape/0", "cat/1", "dog/0")
    assert fb.index(tmp_path, append=True)["generations"] == 2
    records = fb.Records(tmp_path, columns=["bytes", "label"])
    with fb.Loader(records, batch_size=5, epochs=1, shuffle=False) as batches:
        batch = next(iter(batches))
    offsets = batch["bytes_offsets"]
    names = [bytes(batch["bytes"][offsets[i] : offsets[i + 1]]).decode() for i in range(5)]
    classes = ["cat", "eel", "ape", "dog"]
    assert batch["label"].tolist() == [classes.index(name.split("/")[0]) for name in names]


def test_plain_files_through_ops_without_a_label_need_no_folder(tmp_path):
    for number in range(8):
        (tmp_path / f"{number}.jpg").write_bytes(jpeg(number))
    (tmp_path / "8.jpg").write_bytes(b"no picture")
    fb.index(str(tmp_path), format="files")
    ops = [fb.ops.decode_image("bytes"), fb.ops.resize((8, 8))]
    with fb.Loader(fb.Records(str(tmp_path)), ops=ops, batch_size=8, epochs=1, shuffle=False) as batches:
        assert next(iter(batches))["bytes"].shape == (8, 8, 8, 3)
    with fb.Loader(fb.Records(str(tmp_path)), ops=ops, batch_size=9, epochs=1, shuffle=False) as batches:
        with pytest.raises(fb.errors.DataLossError, match="8.jpg"):
            next(iter(batches))
    labelled = fb.Records(str(tmp_path), columns=["bytes", "label"])
    with fb.Loader(labelled, ops=ops, batch_size=1, epochs=1) as batches:
        with pytest.raises(fb.errors.DataLossError, match="no folder"):
            next(iter(batches))


@pytest.mark.parametrize(
    "shuffle",
    # One piece after the other; a few at a time; more than the places of all their records are
    # kept of; each record by itself.
    [False, fb.BlockShuffle(window=2, run=100), fb.BlockShuffle(window=64, streams=32, run=3), True],
    ids=["in_order", "blocks", "many_blocks", "shuffled"],
)
def test_thousands_of_small_records_are_read_in_pieces_and_each_comes_as_it_is(tmp_path, shuffle):
    lines = []
    for shard, count in enumerate([6000, 1, 4500, 4096]):
        own = [b'{"n":%d,"x":"%s"}' % (len(lines) + i, b"y" * (i % 150)) for i in range(count)]
        (tmp_path / f"{shard}.jsonl").write_bytes(b"\n".join(own) + b"\n")
        lines += own
    fb.index(str(tmp_path))
    with loader(tmp_path, batch_size=700, shuffle=shuffle, seed=5, epochs=2, tail="ragged") as both:
        for _ in range(2):
            seen = []
            for batch in both:
                data, offsets = bytes(batch["bytes"]), batch["offsets"]
                for row, number in enumerate(batch["_sample"].tolist()):
                    assert data[offsets[row] : offsets[row + 1]].rstrip(b"\n") == lines[number]
                    seen.append(number)
            assert sorted(seen) == list(range(len(lines)))
            assert (seen == sorted(seen)) == (shuffle is False)
        gets = both.metrics()[GETS]
    assert gets <= 12 if shuffle is not True else gets > 1000  # a few for each shard, or each one
