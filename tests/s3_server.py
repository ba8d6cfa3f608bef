"""An S3 server: moto's, as a process of its own on a free port, with one bucket."""

import contextlib
import os
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.patience import wait_until
from tests.processes import free_port

BUCKET = "databases"


def answers(port: int) -> bool:
    """Whether a server listens on a port of this machine."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class S3Server:
    """A running server.

    Attributes
    ----------
    variables : dict of str to str
        The environment in which obstore finds the server.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self.variables = {
            "AWS_ENDPOINT": address, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret",
        }  # fmt: skip

    def _bucket(self) -> Any:
        from obstore.store import S3Store

        return S3Store(
            BUCKET, endpoint=self.address, region="us-east-1", access_key_id="key", secret_access_key="secret",
            client_options={"allow_http": True},
        )  # fmt: skip

    def put(self, name: str, content: bytes) -> None:
        """Create or replace an object."""
        import obstore

        obstore.put(self._bucket(), name, content)

    def delete(self, name: str) -> None:
        import obstore

        obstore.delete(self._bucket(), name)

    def upload(self, folder: Path, name: str) -> str:
        """Upload a folder; return its URL."""
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                self.put(f"{name}/{path.relative_to(folder).as_posix()}", path.read_bytes())
        return f"s3://{BUCKET}/{name}"


@contextlib.contextmanager
def running_server() -> Iterator[S3Server]:
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, env=dict(os.environ), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:

        def is_ready() -> bool:
            assert process.poll() is None, "the S3 server has ended"
            return answers(port)

        wait_until(is_ready, "the S3 server")
        server = S3Server(f"http://127.0.0.1:{port}")
        create = urllib.request.Request(f"{server.address}/{BUCKET}", method="PUT")
        urllib.request.urlopen(create).close()
        yield server
    finally:
        process.kill()
        process.wait()
