"""s3torchconnector's ranged reader, one for each thread, without read-ahead."""

import threading

import s3torchconnector
import workload
from s3torchconnector import S3ClientConfig, S3ReaderConstructor
from s3torchconnector._s3client import S3Client

work = workload.load()
client = S3Client(region=work.region, endpoint=work.endpoint,
                  s3client_config=S3ClientConfig(force_path_style=True))
own = threading.local()


def read(offset):
    if not hasattr(own, "reader"):
        own.reader = client.get_object(
            work.bucket, work.key, reader_constructor=S3ReaderConstructor.range_based(buffer_size=0))
    own.reader.seek(offset)
    return len(own.reader.read(work.range_bytes))


workload.with_threads(work, read, f"s3torchconnector {s3torchconnector.__version__}")
