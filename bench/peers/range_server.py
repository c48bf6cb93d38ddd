"""nginx as a static source of ranges, plain and with TLS, that shows no S3 server's own limits.

    python range_server.py FOLDER     starts it, prints its addresses as JSON, ends with stdin
"""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time

BUCKET = "bench"
KEY = "large"
OBJECT_BYTES = 1 << 30
SIZES = {"8M": 8 << 20, "64K": 64 << 10}
SMALL_OBJECTS = 64

_CONFIG = """
worker_processes 1;
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 16384; }}
http {{
  access_log off;
  sendfile on;
  tcp_nopush on;
  tcp_nodelay on;
  keepalive_requests 10000000;
  keepalive_timeout 60;
  merge_slashes off;
  max_ranges 1;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  default_type application/octet-stream;
  open_file_cache max=1000;
  server {{
    listen {address}:{plain} reuseport backlog=8192;
    listen {address}:{tls} ssl reuseport backlog=8192;
    ssl_certificate {folder}/cert.pem;
    ssl_certificate_key {folder}/key.pem;
    ssl_protocols TLSv1.3;
    ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;
    ssl_session_cache shared:tls:10m;
    root {folder}/objects;
    location = /{bucket} {{ return 200; }}
    location = /{bucket}/ {{ return 200; }}
    location /slow/ {{ alias {folder}/objects/{bucket}/; limit_rate 4k; }}
    location / {{ try_files $uri =404; }}
  }}
}}
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class RangeServer:
    """Ready when constructed. `core`: pinned there, so that the client has the other one. `link`: in
    the network behind that (`link.Link`)."""

    def __init__(self, folder, core=None, link=None):
        self._address = "127.0.0.1" if link is None else link.address
        self.folder = pathlib.Path(folder).resolve()
        self._make_files()
        self.plain_port, self.tls_port = free_port(), free_port()
        (self.folder / "nginx.conf").write_text(_CONFIG.format(
            folder=self.folder, address=self._address, plain=self.plain_port, tls=self.tls_port, bucket=BUCKET))
        program = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin")
        if program is None:
            raise SystemExit("nginx is not installed (Debian: nginx-light)")
        pinned = ["taskset", "-c", str(core)] if core is not None else []
        pinned = [*(link.prefix if link is not None else []), *pinned]
        self._process = subprocess.Popen(
            [*pinned, program, "-p", str(self.folder), "-c", str(self.folder / "nginx.conf")],
            stdin=subprocess.DEVNULL)
        self._wait()

    @property
    def plain(self):
        return f"http://{self._address}:{self.plain_port}"

    @property
    def tls(self):
        return f"https://localhost:{self.tls_port}"

    @property
    def ca_bundle(self):
        return str(self.folder / "cert.pem")

    def facts(self):
        return {"plain": self.plain, "tls": self.tls, "ca_bundle": self.ca_bundle,
                "bucket": BUCKET, "key": KEY, "object_bytes": OBJECT_BYTES}

    @property
    def bucket_folder(self):
        return self.folder / "objects" / BUCKET

    def close(self):
        self._process.terminate()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _make_files(self):
        bucket = self.bucket_folder
        bucket.mkdir(parents=True, exist_ok=True)
        large = bucket / KEY
        if not large.exists() or large.stat().st_size != OBJECT_BYTES:
            block = os.urandom(8 << 20)
            with large.open("wb") as file:
                for number in range(OBJECT_BYTES // len(block)):
                    file.write(number.to_bytes(8, "big") + block[8:])
        for name, size in SIZES.items():
            for number in range(SMALL_OBJECTS):
                path = bucket / f"{name}-{number}"
                if not path.exists():
                    path.write_bytes(os.urandom(size))
        if not (self.folder / "cert.pem").exists():
            subprocess.run(
                ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj",
                 "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-addext",
                 "basicConstraints=critical,CA:TRUE", "-keyout", self.folder / "key.pem", "-out",
                 self.folder / "cert.pem"], check=True, stderr=subprocess.DEVNULL)

    def _wait(self):
        for port in (self.plain_port, self.tls_port):
            deadline = time.monotonic() + 10
            while True:
                try:
                    socket.create_connection((self._address, port), 1).close()
                    break
                except OSError:
                    if time.monotonic() > deadline or self._process.poll() is not None:
                        raise SystemExit(f"nginx did not start: see {self.folder}/error.log") from None
                    time.sleep(0.05)


if __name__ == "__main__":
    with RangeServer(sys.argv[1]) as running:
        print(json.dumps(running.facts()), flush=True)
        sys.stdin.read()
