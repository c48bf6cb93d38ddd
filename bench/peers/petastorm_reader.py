"""petastorm's ways to the rows of a folder of Parquet files, as parquet_bench's peers.

usage: PYTHON petastorm_reader.py FOLDER WAY ROWS TIMES COLUMN...

PYTHON is one with petastorm, a pyarrow that still has what it imports (before 16), and torch.
Prints rows and seconds of the best of TIMES passes, each ended after ROWS rows.
"""

import os
import pathlib
import pickle
import sys
import tempfile
import time

BATCH = 1024


def batched(url, columns):
    from petastorm import make_batch_reader
    from petastorm.pytorch import BatchedDataLoader

    with make_batch_reader(
        url, schema_fields=columns, shuffle_row_groups=True, num_epochs=1
    ) as reader:
        loader = BatchedDataLoader(reader, batch_size=BATCH, shuffling_queue_capacity=100_000)
        for batch in loader:
            yield len(batch[columns[0]])


def by_rows(url, columns):
    from petastorm import make_batch_reader
    from petastorm.pytorch import DataLoader

    with make_batch_reader(
        url, schema_fields=columns, shuffle_row_groups=True, num_epochs=1
    ) as reader:
        loader = DataLoader(reader, batch_size=BATCH, shuffling_queue_capacity=10_000)
        for batch in loader:
            yield len(batch[columns[0]])


def rows_alone(url, columns):
    from petastorm import make_reader

    with make_reader(url, schema_fields=columns, shuffle_row_groups=True, num_epochs=1) as reader:
        for _ in reader:
            yield 1


def describe(folder):
    """What make_reader asks for: petastorm's own schema, in the folder's metadata."""
    import numpy as np
    import pyarrow.parquet as pq
    from petastorm.codecs import ScalarCodec
    from petastorm.unischema import Unischema, UnischemaField
    from pyspark.sql.types import DoubleType

    files = sorted(folder.glob("*.parquet"))
    names = pq.read_schema(files[0]).names
    schema = Unischema(
        "Row", [UnischemaField(n, np.float64, (), ScalarCodec(DoubleType()), False) for n in names]
    )
    groups = {file.name: pq.ParquetFile(file).num_row_groups for file in files}
    metadata = {
        b"dataset-toolkit.unischema.v1": pickle.dumps(schema),
        b"dataset-toolkit.num_row_groups_per_file.v1": repr(groups).replace("'", '"').encode(),
    }
    arrow = pq.read_schema(files[0]).with_metadata(metadata)
    pq.write_metadata(arrow, folder / "_common_metadata")


def main():
    folder, way, rows, times = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    columns = sys.argv[5:]
    ways = {"BatchedDataLoader": batched, "DataLoader": by_rows, "make_reader": rows_alone}
    best = None
    with tempfile.TemporaryDirectory(dir=folder) as links:  # of nothing but the files
        links = pathlib.Path(links)
        for file in pathlib.Path(folder).glob("*.parquet"):
            os.link(file, links / file.name)
        if way == "make_reader":
            describe(links)
        for _ in range(times):
            started, came = time.perf_counter(), 0
            counts = ways[way](links.as_uri(), columns)
            for count in counts:
                came += count
                if came >= rows:
                    break
            seconds = time.perf_counter() - started
            counts.close()
            if came < rows:
                sys.exit(f"{came} rows came, not {rows}")
            best = min(best or (seconds, came), (seconds, came))
    print(best[1], best[0])


if __name__ == "__main__":
    main()
