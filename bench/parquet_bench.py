#!/usr/bin/env python3
"""Rows of a Parquet table, 3 of 50 columns, as arrays: Forebay beside pyarrow on the same files.

    PYTHONPATH=build/release/python .venv/bin/python bench/parquet_bench.py [--rows N]
        [--folder DIR] [--petastorm PYTHON]

Everything runs in this process, the files come from the page cache, and each figure is the best of
--times runs. Forebay shuffles row groups, and rows in windows of 8 of them. What people write by
hand with pyarrow is measured twice: as thorough (8 row groups are read, joined and permuted), and
with the rows of each row group permuted alone. petastorm needs a pyarrow of its own, and so a
Python of its own: python3 -m venv build/petastorm, and there
pip install petastorm 'pyarrow<15' 'numpy<2' torch
"""

import argparse
import pathlib
import resource
import subprocess
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


def petastorm(python, folder, way, rows, times, wanted):
    """Its rows a second, by a Python that has it."""
    peer = pathlib.Path(__file__).parent / "peers" / "petastorm_reader.py"
    command = [python, "-W", "ignore", peer, folder, way, rows, times, *wanted]
    command = [str(part) for part in command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    if done.returncode != 0:
        raise SystemExit(f"petastorm's {way}: {done.stderr[-1000:]}")
    came, seconds = done.stdout.split()[-2:]
    print(f"{f'petastorm, {way}':<42} {int(came) / float(seconds) / 1e6:8.3f} M rows/s")
    return int(came) / float(seconds)


def measure(runs, times, rows):
    """Of each run the best rows a second, and a CPU second. They take turns, so that what else the
    machine does meets all of them."""
    best = {name: (0, 0) for name in runs}
    for _ in range(times):
        for name, run in runs.items():
            before, started = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
            if run() != rows:
                raise SystemExit(f"{name}: not every row came")
            wall = time.perf_counter() - started
            after = resource.getrusage(resource.RUSAGE_SELF)
            cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            best[name] = (max(best[name][0], rows / wall), max(best[name][1], rows / cpu))
    for name, (wall, cpu) in best.items():
        print(f"{name:<42} {wall / 1e6:8.2f} M rows/s {cpu / 1e6:8.2f} a CPU second")
    return best


def columns_bytes(folder, wanted):
    size = 0
    for path in folder.glob("*.parquet"):
        meta = pq.ParquetFile(path).metadata
        for group in range(meta.num_row_groups):
            for column in range(meta.num_columns):
                chunk = meta.row_group(group).column(column)
                size += chunk.total_compressed_size if chunk.path_in_schema in wanted else 0
    return size


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--files", type=int, default=4)
    parser.add_argument("--group", type=int, default=100_000, help="rows of a row group")
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--petastorm", metavar="PYTHON", help="one that has it, see bench/peers")
    options = parser.parse_args()
    temporary = tempfile.TemporaryDirectory() if options.folder is None else None
    folder = pathlib.Path(temporary.name) if temporary else options.folder
    if not list(folder.glob("*.parquet")):
        write(folder, options.rows, options.columns, options.files, options.group)
    fb.index(folder, format="parquet")
    wanted = ["c03", f"c{options.columns // 2:02}", f"c{options.columns - 1:02}"]

    blocks = fb.BlockShuffle(window=8)
    fetched = []
    runs = {
        "forebay, shuffled": lambda: forebay(folder, wanted, blocks),
        "forebay, in order": lambda: forebay(folder, wanted, False, fetched=fetched),
        "forebay, shuffled, batches of 16384": lambda: forebay(folder, wanted, blocks, 16384),
        "pyarrow, row groups permuted": lambda: permuted(folder, wanted),
        "pyarrow, windows of 8 groups permuted": lambda: mixed(folder, wanted),
        "pyarrow.dataset, in order, to NumPy": lambda: scanned(folder, wanted),
    }
    best = measure(runs, options.times, options.rows)
    ours, in_order, large, theirs, windows, scan = best.values()

    def ratios(what, mine, other, target=""):
        print(f"{what}: {mine[0] / other[0]:.2f} x, {mine[1] / other[1]:.2f} x by CPU time{target}")

    ratios("shuffled / pyarrow and a permutation of windows", ours, windows, " (target 1.5)")
    ratios("shuffled / pyarrow and a permutation inside of row groups", ours, theirs)
    ratios("shuffled, batches of 16384 / the same of windows", large, windows)
    ratios("in order / pyarrow.dataset", in_order, scan, " (target 1)")
    size = columns_bytes(folder, wanted)
    print(f"bytes fetched in order: {fetched[-1] / size:.3f} x the columns' (target 1.05)")
    for way, share, target in (("BatchedDataLoader", 1, 2), ("DataLoader", 20, 10),
                               ("make_reader", 40, 10)) if options.petastorm else ():  # fmt: skip
        rows = options.rows // share
        times = options.times if share == 1 else 1
        peer = petastorm(options.petastorm, folder, way, rows, times, wanted)
        print(f"shuffled: {ours[0] / peer:.1f} x petastorm's {way} (target {target})")


if __name__ == "__main__":
    main()
