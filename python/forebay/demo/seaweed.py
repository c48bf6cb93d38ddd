"""SeaweedFS in one process, as the demo's S3 server."""

import http.client
import json
import pathlib
import secrets
import shutil
import time

from . import processes, s3

_READY_S = 60


class Server:
    """An empty S3 server with its files under `folder`; ready for signed PUTs when constructed."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder.resolve()
        self.access_key = "demo"
        self.secret_key = secrets.token_hex(16)
        self._remove_sockets()
        shutil.rmtree(self.folder, ignore_errors=True)
        for name in ("log", "vol", "sock"):
            (self.folder / name).mkdir(parents=True)
        (self.folder / "master.toml").write_text("[master.volume_growth]\ncopy_1 = 1\n")
        config = self.folder / "s3.json"
        config.touch(mode=0o600)
        config.write_text(json.dumps({"identities": [{
            "name": "demo", "actions": ["Admin", "Read", "Write", "List", "Tagging"],
            "credentials": [{"accessKey": self.access_key, "secretKey": self.secret_key}]}]}))
        weed = processes.find_program("weed", "FOREBAY_WEED")
        self._ports = processes.free_ports(8)
        self.port = self._ports[6]
        self._ports_file.write_text(json.dumps(self._ports))
        self.child = processes.Child(
            "the S3 server", [weed, *self._arguments()], self.folder / "weed.log",
            cwd=self.folder, stdout=open(self.folder / "weed.out", "wb"),
            env={"HOME": str(self.folder), "PATH": "/usr/bin:/bin"})
        try:
            self._wait_ready()
        except BaseException:
            self.close()
            raise

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.port}"

    def client(self):
        return s3.Client(self.port, self.access_key, self.secret_key)

    def close(self):
        """SIGKILL: safe for what was acknowledged, and at once."""
        self.child.kill()
        self._remove_sockets()

    @property
    def _ports_file(self):
        return self.folder / "ports.json"

    def _remove_sockets(self):
        """weed leaves sockets in /tmp whatever its settings; those of a killed demo go here too."""
        try:
            ports = json.loads(self._ports_file.read_bytes())
        except (OSError, ValueError):
            return
        for port in ports:
            for leftover in pathlib.Path("/tmp").glob(f"seaweedfs-*-grpc-{port}.sock"):
                leftover.unlink(missing_ok=True)

    def _arguments(self):
        master, master_grpc, volume, volume_grpc, filer, filer_grpc, port, grpc = self._ports
        return [f"-logdir={self.folder}/log", "-v=0", "server", "-ip=127.0.0.1",
                "-ip.bind=127.0.0.1", f"-dir={self.folder}/vol", "-master.telemetry=false",
                "-master.electionTimeout=1s", "-master.resumeState=false",
                "-master.volumeSizeLimitMB=64", "-master.volumePreallocate=false",
                f"-master.port={master}", f"-master.port.grpc={master_grpc}",
                f"-volume.port={volume}", f"-volume.port.grpc={volume_grpc}", "-volume.max=64",
                "-volume.preStopSeconds=1", "-filer", f"-filer.port={filer}",
                f"-filer.port.grpc={filer_grpc}",
                f"-filer.localSocket={self.folder}/sock/filer.sock", "-s3", f"-s3.port={port}",
                f"-s3.port.grpc={grpc}", f"-s3.localSocket={self.folder}/sock/s3.sock",
                f"-s3.config={self.folder}/s3.json", "-s3.port.iceberg=0", "-s3.port.lance=0",
                "-s3.autoCreateBucket=false", "-s3.allowDeleteBucketNotEmpty=false",
                "-s3.domainName=s3.localhost"]

    def _wait_ready(self):
        """Healthy is not yet ready: the first volumes are made by the first PUT."""
        deadline = time.monotonic() + _READY_S
        client = self.client()
        answer = None
        while time.monotonic() < deadline:
            self.child.check_alive()
            try:
                answer = client.request("PUT", "/ready")
                if answer[0] in (200, 409):
                    answer = client.request("PUT", "/ready/ready", b"ready")
                    if answer[0] == 200:
                        client.close()
                        return
            except (OSError, http.client.HTTPException) as error:
                answer = error
            time.sleep(0.1)
        raise processes.PartFailed(f"the S3 server is not ready after {_READY_S} s: {answer}; "
                                   f"{self.child.last_words()}")
