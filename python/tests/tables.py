"""Tables of every type, and what a loader has to make of them: for the tests of each format."""

import contextlib
import os
import subprocess

import numpy as np
import pyarrow as pa

import forebay as fb
from forebay.demo import processes, seaweed

BYTES = "forebay_store_read_bytes_total"


def table(rows, seed=0, nulls=False):
    rng = np.random.default_rng(seed)

    def column(values, kind):
        values = list(values)
        if nulls:
            values = [None if rng.random() < 0.2 else value for value in values]
        return pa.array(values, kind)

    numbers = {
        f"{sign}int{bits}": column(
            (int(v) for v in rng.integers(*limits, rows, endpoint=True, dtype=f"{sign}int{bits}")),
            getattr(pa, f"{sign}int{bits}")(),
        )
        for bits in (8, 16, 32, 64)
        for sign in ("", "u")
        for limits in [(np.iinfo(f"{sign}int{bits}").min, np.iinfo(f"{sign}int{bits}").max)]
    }
    return pa.table(
        {
            **numbers,
            "bool": column((bool(v) for v in rng.random(rows) < 0.5), pa.bool_()),
            "float16": column((np.float16(v) for v in rng.random(rows)), pa.float16()),
            "float32": column((float(np.float32(v)) for v in rng.random(rows)), pa.float32()),
            "float64": column((float(v) for v in rng.random(rows)), pa.float64()),
            "few": column((int(v) for v in rng.integers(0, 7, rows)), pa.int64()),
            "grows": column(range(seed * rows, (seed + 1) * rows), pa.int64()),
            "fixed": column((rng.bytes(5) for _ in range(rows)), pa.binary(5)),
            "text": column((f"row {i} ü" * (i % 6) for i in range(rows)), pa.string()),
            "large": column((rng.bytes(i % 50) for i in range(rows)), pa.large_binary()),
            "numbers": column(
                ([int(v) for v in rng.integers(0, 99, i % 4)] for i in range(rows)),
                pa.list_(pa.int32()),
            ),
            "vector": column(
                ([float(np.float32(v)) for v in rng.random(3)] for _ in range(rows)),
                pa.list_(pa.float32()),
            ),
            "image": column(
                ({"bytes": rng.bytes(i % 40), "path": f"{i}.jpg"} for i in range(rows)),
                pa.struct({"bytes": pa.binary(), "path": pa.string()}),
            ),
        }
    )


def flat(source):
    """What each of our columns holds, row by row; None is a null."""
    columns = {}
    for name in source.column_names:
        values = source[name].to_pylist()
        if name == "image":
            columns["image"] = [None if v is None else v["bytes"] for v in values]
            columns["image.path"] = [None if v is None else v["path"].encode() for v in values]
        elif name == "text":
            columns[name] = [None if v is None else v.encode() for v in values]
        else:
            columns[name] = values
    return columns


def value_of(batch, name, row):
    array = np.asarray(batch[name])
    if f"{name}_offsets" not in batch:
        value = array[row]
        return value.tobytes() if value.ndim and value.dtype == np.uint8 else value.tolist()
    offsets = batch[f"{name}_offsets"]
    part = array[int(offsets[row]) : int(offsets[row + 1])]
    return part.tobytes() if array.dtype == np.uint8 else part.tolist()


def check(batch, expected, names):
    samples = [int(sample) for sample in batch["_sample"]]
    for name in names:
        for row, sample in enumerate(samples):
            wanted = expected[name][sample]
            if f"{name}.valid" in batch:
                assert bool(batch[f"{name}.valid"][row]) == (wanted is not None), (name, sample)
                if wanted is None:
                    found = value_of(batch, name, row)
                    assert not found or not any(found), (name, sample)
                    continue
            found = value_of(batch, name, row)
            assert found == (wanted.item() if isinstance(wanted, np.generic) else wanted), (
                name,
                sample,
            )
    return samples


def joined(tables):
    return flat(pa.concat_tables(tables))


def valid(names):
    return [*names, *(f"{name}.valid" for name in names)]


def check_in_a_bucket(folder, server_at, monkeypatch, kind, expected):
    """What is in the folder, 270 rows in three files, from a real S3 server, shuffled, twice."""
    names = ["int64", "text", "image", "vector"]
    with contextlib.closing(seaweed.Server(server_at)) as server:
        client = server.client()
        assert client.request("PUT", "/tables")[0] == 200
        client.close()
        for name, value in {
            "AWS_ACCESS_KEY_ID": server.access_key, "AWS_SECRET_ACCESS_KEY": server.secret_key,
            "AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        }.items():  # fmt: skip
            monkeypatch.setenv(name, value)
        options = {"endpoint_url": server.endpoint, "region": "us-east-1"}
        copy = [processes.find_program("forebay", "FOREBAY_CLI"), "cp", "-r", f"{folder}/",
                "s3://tables/raw/", "--endpoint-url", server.endpoint, "--region", "us-east-1"]  # fmt: skip
        subprocess.run(copy, check=True, capture_output=True, timeout=120)
        report = fb.index("s3://tables/raw/", storage_options=options)
        assert (report["format"], report["records"]) == (kind, 270)
        assert report["requests"] == 3 + 3  # heads that tell the format, and metadata of small files
        records = fb.Records("s3://tables/raw/", columns=names, storage_options=options)
        with fb.Loader(
            records, batch_size=30, shuffle=fb.BlockShuffle(window=2), epochs=2, seed=5
        ) as loader:
            for _ in range(2):
                seen = [sample for batch in loader for sample in check(batch, expected, names)]
                assert sorted(seen) == list(range(270))
