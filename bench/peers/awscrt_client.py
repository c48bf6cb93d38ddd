"""awscrt's S3 client, a request for each range."""

import threading

import awscrt
import workload
from awscrt import auth, http, io, s3

work = workload.load()
tls = None
if work.tls:
    options = io.TlsContextOptions()
    options.override_default_trust_store_from_path(None, work.ca_bundle)
    tls = io.ClientTlsContext(options).new_connection_options()
credentials = auth.AwsCredentialsProvider.new_static(work.access_key, work.secret_key)
client = s3.S3Client(
    region=work.region, credential_provider=credentials,
    tls_mode=s3.S3RequestTlsMode.ENABLED if work.tls else s3.S3RequestTlsMode.DISABLED,
    tls_connection_options=tls)


class Run:
    """So many requests in flight until all are done."""

    def __init__(self, offsets):
        self._offsets = iter(offsets)
        self._left = len(offsets)
        self._done = threading.Event()
        self._lock = threading.Lock()
        self.received = 0
        self.error = None

    def go(self):
        for _ in range(min(work.in_flight, self._left)):
            self._next()
        self._done.wait()
        if self.error:
            raise SystemExit(f"awscrt: {self.error}")
        return self.received

    def _next(self):
        offset = next(self._offsets, None)
        if offset is None:
            return
        headers = http.HttpHeaders([
            ("Host", work.address), ("Range", f"bytes={offset}-{offset + work.range_bytes - 1}")])
        request = http.HttpRequest("GET", f"/{work.bucket}/{work.key}", headers)
        client.make_request(type=s3.S3RequestType.GET_OBJECT, request=request,
                            on_body=self._on_body, on_done=self._on_done)

    def _on_body(self, chunk, **_):
        with self._lock:
            self.received += len(chunk)

    def _on_done(self, error=None, **_):
        with self._lock:
            self.error = self.error or error
            self._left -= 1
            last = self._left == 0
        if last or self.error:
            self._done.set()
        else:
            self._next()


Run(work.offsets(min(2 * work.in_flight, work.requests))).go()
meter = workload.Meter(work)
meter.start()
meter.report(f"awscrt {awscrt.__version__}", Run(work.offsets()).go())
