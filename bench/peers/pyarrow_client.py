"""pyarrow's S3FileSystem, read_at on threads."""

import pyarrow
import workload
from pyarrow import fs

work = workload.load()
fs.initialize_s3(fs.S3LogLevel.Fatal)
system = fs.S3FileSystem(
    access_key=work.access_key, secret_key=work.secret_key, region=work.region,
    endpoint_override=work.address, scheme="https" if work.tls else "http",
    **({"tls_ca_file_path": work.ca_bundle} if work.tls else {}))
file = system.open_input_file(f"{work.bucket}/{work.key}")
# Both of its thread pools stand in the way of more in flight than cores.
pyarrow.set_io_thread_count(work.in_flight)


def read(offset):
    return len(file.read_at(work.range_bytes, offset))


workload.with_threads(work, read, f"pyarrow {pyarrow.__version__}")
