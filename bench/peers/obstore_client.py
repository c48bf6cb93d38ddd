"""obstore's get_range_async, so many tasks at a time."""

import asyncio

import obstore
import workload
from obstore.store import S3Store

work = workload.load()
store = S3Store(work.bucket, endpoint=work.endpoint, region=work.region,
                access_key_id=work.access_key, secret_access_key=work.secret_key,
                virtual_hosted_style_request=False,
                client_options={"allow_http": True, "allow_invalid_certificates": True})


async def run(offsets):
    places = iter(offsets)
    received = 0

    async def worker():
        nonlocal received
        for offset in places:
            got = await obstore.get_range_async(store, work.key, start=offset,
                                                length=work.range_bytes)
            received += len(got)

    await asyncio.gather(*(worker() for _ in range(min(work.in_flight, len(offsets)))))
    return received


async def main():
    await run(work.offsets(min(2 * work.in_flight, work.requests)))
    meter = workload.Meter(work)
    meter.start()
    meter.report(f"obstore {obstore.__version__}", await run(work.offsets()))


asyncio.run(main())
