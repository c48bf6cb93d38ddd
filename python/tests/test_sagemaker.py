"""SageMaker's channels: prefixes, manifests, augmented manifests, and the hosts' shares."""

import contextlib
import json
import os
import subprocess

import numpy as np
import pytest

import forebay as fb
from forebay import ranks
from forebay.demo import processes, seaweed

KEYS = ["train/a", "train/b", "train/deep/c", "train-2/d", "trainer", "valid/e"]


@pytest.fixture
def bucket(tmp_path):
    for key in KEYS:
        path = tmp_path / "bucket" / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(key)
    return (tmp_path / "bucket").as_uri() + "/"


def manifest(bucket, text):
    path = bucket.removeprefix("file://") + "lists/train.manifest"
    subprocess.run(["mkdir", "-p", path.rpartition("/")[0]], check=True)
    with open(path, "w") as file:
        file.write(text)
    return bucket + "lists/train.manifest"


def loader_of(uri, *, batch_size=100, tail="ragged", shuffle=False, epochs=1, **of_records):
    records = fb.Records(uri, **of_records)
    return fb.Loader(records, batch_size=batch_size, tail=tail, shuffle=shuffle, epochs=epochs)


def rows(loader):
    """(content, the rest of the batch's fields) of each sample."""
    with loader:
        for batch in loader:
            offsets = "offsets" if "offsets" in batch else "bytes_offsets"
            at = np.asarray(batch[offsets])
            fields = [n for n in batch if not n.startswith("_") and n not in ("bytes", offsets)]
            for i in range(len(at) - 1):
                text = bytes(batch["bytes"][at[i] : at[i + 1]]).decode()
                yield text, {name: batch[name][i] for name in fields}


def contents(loader):
    return [text for text, _ in rows(loader)]


def test_a_prefix_is_the_beginning_of_keys_and_no_folder(bucket):
    report = fb.index(bucket + "train", s3_data_type="S3Prefix")
    assert report["format"] == "files" and report["bytes_read"] == 0
    assert report["catalog_uri"].endswith("bucket/.forebay/train.fbc")
    assert contents(loader_of(bucket + "train", s3_data_type="S3Prefix")) == sorted(KEYS[:5])
    fb.index(bucket + "train", format="files")  # the folder has a catalog of its own, and no data
    assert contents(loader_of(bucket + "train")) == KEYS[:3]
    assert fb.index(bucket + "train", s3_data_type="S3Prefix")["objects"] == 5
    fb.index(bucket, s3_data_type="S3Prefix")
    assert contents(loader_of(bucket, s3_data_type="S3Prefix")) == sorted(KEYS)


def test_a_manifest_is_its_objects_in_its_order(bucket):
    wanted = ["train-2/d", "train/a", "train/a", "train/deep/c"]
    uri = manifest(bucket, json.dumps([{"prefix": bucket + "tr"}] + [k[2:] for k in wanted]))
    forebay = processes.find_program("forebay", "FOREBAY_CLI")
    index = [forebay, "index", uri, "--s3-data-type", "ManifestFile", "--json"]
    said = json.loads(subprocess.run(index, check=True, capture_output=True, timeout=60).stdout)
    assert (said["objects"], said["format"]) == (4, "files")
    assert said["catalog"].endswith("lists/.forebay/train.manifest.fbc")
    assert contents(loader_of(uri, s3_data_type="ManifestFile")) == wanted


@pytest.mark.parametrize(
    "text, error, said",
    [
        ('[{"prefix": "BUCKET"}, "train/a", "gone"]', fb.NotFoundError, "gone"),
        ('[{"prefix": "s3://a/"}, "b"', fb.InvalidArgumentError, "no JSON"),
        ('["train/a"]', fb.InvalidArgumentError, "prefix"),
    ],
)
def test_a_manifest_that_cannot_be_followed_says_why(bucket, text, error, said):
    uri = manifest(bucket, text.replace("BUCKET", bucket))
    with pytest.raises(error, match=said):
        fb.index(uri, s3_data_type="ManifestFile")


def augmented(bucket, count=5, **changes):
    lines = [
        {"source-ref": bucket + KEYS[n], "class": n, "name": f"c{n}", "box": [n, n + 0.5],
         "class-metadata": {"confidence": 1}} | changes
        for n in range(count)
    ]  # fmt: skip
    return manifest(bucket, "".join(json.dumps(line) + "\n" for line in lines))


@pytest.mark.parametrize("output", ["numpy", "torch"])
def test_attributes_of_an_augmented_manifest_come_with_their_objects(bucket, output):
    if output == "torch":
        pytest.importorskip("torch")
    uri = augmented(bucket)
    fb.index(uri, s3_data_type="AugmentedManifestFile")
    data = fb.Records(uri, s3_data_type="AugmentedManifestFile")
    seen = set()
    with fb.Loader(data, batch_size=2, seed=3, tail="ragged", epochs=1, output=output) as loader:
        for batch in loader:
            assert {"class", "name", "box"} < set(batch) and "class-metadata" not in batch
            for row, sample in enumerate(int(s) for s in batch["_sample"]):
                offsets = batch["offsets"]
                raw = bytes(np.asarray(batch["bytes"])[int(offsets[row]) : int(offsets[row + 1])])
                assert raw.decode() == KEYS[sample]
                assert int(batch["class"][row]) == sample and batch["name"][row] == f"c{sample}"
                assert batch["box"][row].tolist() == [sample, sample + 0.5]
                seen.add(sample)
    assert seen == set(range(5))


def test_attributes_may_be_chosen_and_must_be_there(bucket):
    uri = augmented(bucket)
    fb.index(uri, s3_data_type="AugmentedManifestFile")
    kind = {"s3_data_type": "AugmentedManifestFile"}
    fields = next(rows(loader_of(uri, attributes=["class"], **kind)))[1]
    assert fields == {"class": 0}
    with pytest.raises(fb.InvalidArgumentError, match="line 1.*'kind'"):
        loader_of(uri, attributes=["kind"], **kind)
    with pytest.raises(fb.InvalidArgumentError, match="AugmentedManifestFile"):
        fb.Records(uri, attributes=["class"])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "values",
    [
        [{"left": 1}, {"left": 2}],  # no array
        [None, 1],
        [[1, 2], [3]],
        ["a", 1],
        [1, 2**63],  # more than an int64 holds, and never a float that is near it
        [[1, 2], [3, 2**70]],
        [1e300, 1.0],  # float32 has no such number
    ],
)
def test_an_attribute_that_cannot_come_as_it_is_is_told(bucket, values):
    kind = {"s3_data_type": "AugmentedManifestFile"}
    lines = [{"source-ref": bucket + KEYS[n], "odd": value} for n, value in enumerate(values)]
    uri = manifest(bucket, "".join(json.dumps(line) + "\n" for line in lines))
    fb.index(uri, **kind)
    with pytest.raises(fb.InvalidArgumentError, match="'odd' holds neither"):
        loader_of(uri, attributes=["odd"], **kind)
    with pytest.warns(UserWarning, match="left out: odd"):
        assert [fields for _, fields in rows(loader_of(uri, **kind))] == [{}, {}]


def test_an_attribute_takes_no_place_of_another_field(bucket):
    kind = {"s3_data_type": "AugmentedManifestFile", "columns": ["bytes", "label"]}
    lines = [{"source-ref": bucket + KEYS[3 * n], "label": 100, "n": n} for n in range(2)]
    uri = manifest(bucket, "".join(json.dumps(line) + "\n" for line in lines))
    fb.index(uri, s3_data_type=kind["s3_data_type"])
    with pytest.raises(fb.InvalidArgumentError, match="a field 'label' already"):
        loader_of(uri, attributes=["label"], **kind)
    with pytest.warns(UserWarning, match="left out: label"):
        loader = loader_of(uri, **kind)
    with loader:
        batch = next(iter(loader))
    assert batch["label"].tolist() == [0, 1] and batch["n"].tolist() == [0, 1]


def test_a_manifest_that_is_not_the_one_that_was_indexed_is_refused(bucket):
    uri = augmented(bucket)
    fb.index(uri, s3_data_type="AugmentedManifestFile")
    augmented(bucket, count=6)
    with pytest.raises(fb.PreconditionFailedError, match="6 objects.*5"):
        loader_of(uri, s3_data_type="AugmentedManifestFile")
    augmented(bucket, **{"source-ref": bucket + KEYS[0]})
    with pytest.raises(fb.PreconditionFailedError, match="sample 1"):
        loader_of(uri, s3_data_type="AugmentedManifestFile")


def test_sharded_by_key_each_host_has_every_nth_object_and_its_ranks_share_it(bucket, monkeypatch):
    fb.index(bucket, s3_data_type="S3Prefix")
    every = sorted(KEYS)
    arguments = {"s3_data_type": "S3Prefix", "distribution": "ShardedByS3Key"}
    for hosts in (1, 2, 3):
        for host in range(hosts):
            loader = loader_of(bucket, host=(host, hosts), **arguments)
            assert contents(loader) == every[host::hosts]
    monkeypatch.setenv("SM_HOSTS", '["algo-2", "algo-1"]')
    monkeypatch.setenv("SM_CURRENT_HOST", "algo-2")
    assert contents(loader_of(bucket, **arguments)) == every[1::2]
    for name, value in {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1",
                        "LOCAL_WORLD_SIZE": "2"}.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    loader = loader_of(bucket, batch_size=1, tail="drop", **arguments)
    assert (loader.rank, loader.world_size) == (1, 2)
    assert contents(loader) == every[1::2][1:2]
    with pytest.raises(fb.InvalidArgumentError, match="6 objects for 9 hosts"):
        loader_of(bucket, host=(8, 9), **arguments)


def test_processes_of_one_host_that_cannot_be_told_apart_are_refused():
    alone = {"modules": {}, "count_gpus": lambda: 0}
    assert ranks.within_host(2, {"RANK": "1", "WORLD_SIZE": "2"}, **alone).world_size == 1
    several = {"RANK": "1", "WORLD_SIZE": "4"}
    with pytest.raises(fb.InvalidArgumentError, match="4 processes, on 2 hosts"):
        ranks.within_host(2, several, **alone)
    local = several | {"LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}
    assert (ranks.within_host(2, local, **alone).rank) == 1
    mpi = {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4",
           "OMPI_COMM_WORLD_LOCAL_RANK": "1", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}  # fmt: skip
    assert ranks.within_host(2, mpi, **alone).rank == 1


def test_attributes_follow_the_hosts_share(bucket):
    uri = augmented(bucket)
    fb.index(uri, s3_data_type="AugmentedManifestFile")
    loader = loader_of(
        uri, s3_data_type="AugmentedManifestFile", distribution="ShardedByS3Key", host=(1, 2)
    )
    assert [(text, int(f["class"])) for text, f in rows(loader)] == [(KEYS[1], 1), (KEYS[3], 3)]


def test_hosts_that_share_objects_number_their_classes_alike(tmp_path):
    for number, folder in enumerate(["cat", "dog", "cat", "eel"]):  # host 0 has cats alone
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / f"{number}").write_text(folder)
    fb.index(tmp_path, format="files")
    classes = {"cat": 0, "dog": 1, "eel": 2}
    data = {"columns": ["bytes", "label"], "distribution": "ShardedByS3Key"}
    seen = set()
    for host in (0, 1):
        for text, fields in rows(loader_of(tmp_path, host=(host, 2), **data)):
            assert fields["label"] == classes[text]
            seen.add((host, text))
    assert seen == {(0, "cat"), (0, "dog"), (1, "cat"), (1, "eel")}


def test_fully_replicated_is_the_whole_data_set_shared_out_over_all_ranks(bucket):
    fb.index(bucket, s3_data_type="S3Prefix")
    data = fb.Records(bucket, s3_data_type="S3Prefix", distribution="FullyReplicated")
    seen = []
    for rank in range(2):
        with fb.Loader(data, batch_size=3, epochs=1, rank=rank, world_size=2) as loader:
            seen += contents(loader)
    assert sorted(seen) == sorted(KEYS)


def test_which_host_this_is_comes_from_sagemaker(tmp_path):
    config = tmp_path / "resourceconfig.json"
    config.write_text('{"current_host": "algo-1", "hosts": ["algo-1", "algo-2"]}')
    assert ranks.sagemaker_host({}, config) == (0, 2)
    said = {"SM_HOSTS": '["algo-1", "algo-2"]', "SM_CURRENT_HOST": "algo-2"}
    assert ranks.sagemaker_host(said, config) == (1, 2)
    for environ in ({}, {"SM_HOSTS": '["a"]'}, {"SM_HOSTS": "a"}):
        with pytest.raises(fb.InvalidArgumentError, match="host|SM_HOSTS"):
            ranks.sagemaker_host(environ, tmp_path / "none")


def test_a_run_of_a_manifest_is_made_again(bucket):
    uri = augmented(bucket)
    fb.index(uri, s3_data_type="AugmentedManifestFile")
    loader = loader_of(uri, s3_data_type="AugmentedManifestFile", attributes=["class"])
    run = json.loads(json.dumps(loader.run()))
    before = [text for text, _ in rows(loader)]
    with fb.Loader.from_run(run) as again:
        assert contents(again) == before


def test_channels_of_a_bucket(tmp_path, monkeypatch):
    with contextlib.closing(seaweed.Server(tmp_path / "s3")) as server:
        environment = {
            "AWS_ENDPOINT_URL": server.endpoint, "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": server.access_key, "AWS_SECRET_ACCESS_KEY": server.secret_key,
            "AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        }  # fmt: skip
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        wanted = [f"pics/{n:03} \u00fc" for n in range(100, 0, -1)]
        augmented = "".join(
            json.dumps({"source-ref": "s3://channels/" + key, "class": n}) + "\n"
            for n, key in enumerate(wanted)
        )
        with contextlib.closing(server.client()) as client:
            assert client.request("PUT", "/channels")[0] == 200
        (tmp_path / "data" / "pics").mkdir(parents=True)
        for key in wanted:
            (tmp_path / "data" / key).write_text(key)
        (tmp_path / "data" / "train.manifest").write_text(augmented)
        forebay = processes.find_program("forebay", "FOREBAY_CLI")
        copy = [forebay, "cp", "-r", os.fspath(tmp_path / "data"), "s3://channels/"]
        subprocess.run(copy, check=True, capture_output=True, timeout=120)

        uri = "s3://channels/train.manifest"
        report = fb.index(uri, s3_data_type="AugmentedManifestFile")
        assert report["catalog_uri"] == "s3://channels/.forebay/train.manifest.fbc"
        seen = list(rows(loader_of(uri, s3_data_type="AugmentedManifestFile")))
        assert seen == [(key, {"class": n}) for n, key in enumerate(wanted)]
        fb.index("s3://channels/pics/0", s3_data_type="S3Prefix")
        loader = loader_of("s3://channels/pics/0", s3_data_type="S3Prefix")
        assert contents(loader) == sorted(key for key in wanted if key.startswith("pics/0"))
