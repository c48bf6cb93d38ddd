"""The few S3 requests the demo makes for itself: signed with the standard library alone, so that the
server's readiness does not depend on the code on show."""

import datetime
import hashlib
import hmac
import http.client
import urllib.parse

_EMPTY = hashlib.sha256(b"").hexdigest()


class Client:
    """One connection to one S3 endpoint, path style. Not safe for several threads."""

    def __init__(self, port, access_key, secret_key, region="us-east-1", timeout_s=30):
        self._address = ("127.0.0.1", port)
        self._keys = (access_key, secret_key)
        self._region = region
        self._timeout_s = timeout_s
        self._connection = None

    def request(self, method, path, body=b""):
        """(status, body) of one request; `path` is unescaped. Raises OSError or HTTPException."""
        escaped = urllib.parse.quote(path, safe="/-_.~")
        headers = self._signed_headers(method, escaped, body)
        if self._connection is None:
            self._connection = http.client.HTTPConnection(*self._address, timeout=self._timeout_s)
        try:
            self._connection.request(method, escaped, body=body, headers=headers)
            answer = self._connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException):
            self.close()
            raise

    def close(self):
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _signed_headers(self, method, escaped_path, body):
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        digest = hashlib.sha256(body).hexdigest() if body else _EMPTY
        headers = {"host": "{}:{}".format(*self._address), "x-amz-content-sha256": digest,
                   "x-amz-date": now}
        names = ";".join(sorted(headers))
        canonical = "\n".join([method, escaped_path, "",
                               *(f"{name}:{headers[name]}" for name in sorted(headers)), "",
                               names, digest])
        scope = f"{now[:8]}/{self._region}/s3/aws4_request"
        to_sign = "\n".join(["AWS4-HMAC-SHA256", now, scope,
                             hashlib.sha256(canonical.encode()).hexdigest()])
        key = b"AWS4" + self._keys[1].encode()
        for part in [*scope.split("/"), to_sign]:
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        headers["Authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={self._keys[0]}/{scope}, SignedHeaders={names}, "
            f"Signature={key.hex()}")
        return headers
