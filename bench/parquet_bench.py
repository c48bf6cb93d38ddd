#!/usr/bin/env python3
"""Rows of a Parquet table, 3 of 50 columns, as arrays: Forebay beside pyarrow on the same files.

    PYTHONPATH=build/release/python .venv/bin/python bench/parquet_bench.py [--rows N] [--folder DIR]

Everything runs in this process, the files come from the page cache, and each figure is the best of
--times runs. Forebay shuffles row groups, and rows in windows of 8 of them. What people write by hand
with pyarrow is measured twice: as thorough (8 row groups are read, joined and permuted), and with the
rows of each row group permuted alone. petastorm is measured too where it can be imported.
"""

import argparse
import pathlib
import resource
import tempfile
import time

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

import forebay as fb

BATCH = 1024
BYTES = "forebay_store_read_bytes_total"


def write(folder, rows, columns, files, group):
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    each = rows // files
    for number in range(files):
        table = pa.table({f"c{i:02}": rng.standard_normal(each) for i in range(columns)})
        pq.write_table(
            table,
            folder / f"{number:03}.parquet",
            row_group_size=group,
            use_dictionary=False,
            write_page_index=True,
        )


def forebay(folder, wanted, shuffle, batch=BATCH, fetched=None):
    rows = 0
    with fb.Loader(
        fb.Records(folder, format="parquet", columns=wanted),
        batch_size=batch,
        shuffle=shuffle,
        epochs=1,
        memory="1GiB",
        tail="ragged",
    ) as loader:
        for out in loader:
            rows += len(out[wanted[0]])
        if fetched is not None:
            fetched.append(loader.metrics()[BYTES])
    return rows


def permuted(folder, wanted):
    rows = 0
    rng = np.random.default_rng(1)
    for path in sorted(folder.glob("*.parquet")):
        file = pq.ParquetFile(path)
        for group in rng.permutation(file.num_row_groups):
            table = file.read_row_group(int(group), columns=wanted)
            arrays = [table[name].to_numpy() for name in wanted]
            order = rng.permutation(len(table))
            for first in range(0, len(order), BATCH):
                out = [array[order[first : first + BATCH]] for array in arrays]
                rows += len(out[0])
    return rows


def mixed(folder, wanted, window=8):
    """As thoroughly as a window of so many row groups: they are read, joined and permuted."""
    rows = 0
    rng = np.random.default_rng(1)
    groups = [
        (file, group)
        for path in sorted(folder.glob("*.parquet"))
        for file in [pq.ParquetFile(path)]
        for group in range(file.num_row_groups)
    ]
    order = rng.permutation(len(groups))
    for first in range(0, len(order), window):
        part = [groups[i] for i in order[first : first + window]]
        table = pa.concat_tables(file.read_row_group(g, columns=wanted) for file, g in part)
        arrays = [table[name].to_numpy() for name in wanted]
        places = rng.permutation(len(table))
        for at in range(0, len(places), BATCH):
            out = [array[places[at : at + BATCH]] for array in arrays]
            rows += len(out[0])
    return rows


def scanned(folder, wanted):
    rows = 0
    for batch in ds.dataset(folder, exclude_invalid_files=True).to_batches(
        columns=wanted, batch_size=BATCH
    ):
        rows += len([column.to_numpy() for column in batch.columns][0])
    return rows


def petastorm(folder, wanted):
    from petastorm import make_batch_reader
    from petastorm.pytorch import BatchedDataLoader

    rows = 0
    with make_batch_reader(
        folder.as_uri(), schema_fields=wanted, shuffle_row_groups=True, num_epochs=1
    ) as reader:
        loader = BatchedDataLoader(reader, batch_size=BATCH, shuffling_queue_capacity=100_000)
        for out in loader:
            rows += len(out[wanted[0]])
    return rows


def measure(name, run, times, rows):
    best = None
    for _ in range(times):
        before, started = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
        if run() != rows:
            raise SystemExit(f"{name}: not every row came")
        wall = time.perf_counter() - started
        after = resource.getrusage(resource.RUSAGE_SELF)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        best = min(best or (wall, cpu), (wall, cpu))
    print(f"{name:<42} {rows / best[0] / 1e6:8.2f} M rows/s {rows / best[1] / 1e6:8.2f} a CPU second")
    return rows / best[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--files", type=int, default=4)
    parser.add_argument("--group", type=int, default=100_000, help="rows of a row group")
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--times", type=int, default=3)
    options = parser.parse_args()
    temporary = tempfile.TemporaryDirectory() if options.folder is None else None
    folder = pathlib.Path(temporary.name) if temporary else options.folder
    if not list(folder.glob("*.parquet")):
        write(folder, options.rows, options.columns, options.files, options.group)
    fb.index(folder, format="parquet")
    wanted = ["c03", f"c{options.columns // 2:02}", f"c{options.columns - 1:02}"]
    size = 0
    for path in folder.glob("*.parquet"):
        meta = pq.ParquetFile(path).metadata
        for group in range(meta.num_row_groups):
            for column in range(meta.num_columns):
                chunk = meta.row_group(group).column(column)
                size += chunk.total_compressed_size if chunk.path_in_schema in wanted else 0

    run = lambda name, function: measure(name, function, options.times, options.rows)  # noqa: E731
    blocks = fb.BlockShuffle(window=8)
    fetched = []
    ours = run("forebay, shuffled", lambda: forebay(folder, wanted, blocks))
    in_order = run("forebay, in order", lambda: forebay(folder, wanted, False, fetched=fetched))
    large = run("forebay, shuffled, batches of 16384", lambda: forebay(folder, wanted, blocks, 16384))
    theirs = run("pyarrow, row groups permuted", lambda: permuted(folder, wanted))
    windows = run("pyarrow, windows of 8 groups permuted", lambda: mixed(folder, wanted))
    scan = run("pyarrow.dataset, in order, to NumPy", lambda: scanned(folder, wanted))
    print(f"shuffled: {ours / windows:.2f} x pyarrow and a permutation of windows (target 1.5)")
    print(f"shuffled: {ours / theirs:.2f} x pyarrow and a permutation inside of row groups")
    print(f"shuffled, batches of 16384: {large / windows:.2f} x, {large / theirs:.2f} x")
    print(f"in order: {in_order / scan:.2f} x pyarrow.dataset (target 1)")
    print(f"bytes fetched in order: {fetched[-1] / size:.3f} x the columns' (target 1.05)")
    try:
        import petastorm as _  # noqa: F401
    except ImportError:
        print("petastorm is not installed")
    else:
        batched = run("petastorm, BatchedDataLoader", lambda: petastorm(folder, wanted))
        print(f"shuffled: {ours / batched:.2f} x petastorm's BatchedDataLoader (target 2)")


if __name__ == "__main__":
    main()
