"""An S3 server: moto's, in a thread of this process, with one bucket."""

import logging
import urllib.request
from pathlib import Path
from typing import Any

from moto.server import ThreadedMotoServer

BUCKET = "databases"


class S3Server(ThreadedMotoServer):
    """A running server.

    Attributes
    ----------
    variables : dict of str to str
        The environment in which obstore finds the server.
    """

    def __init__(self) -> None:
        super().__init__("127.0.0.1", 0, verbose=False)
        logging.getLogger("werkzeug").disabled = True  # it would print each request among the messages of commands
        self.start()
        self.address = "http://{}:{}".format(*self.get_host_and_port())
        self.variables = {
            "AWS_ENDPOINT": self.address, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret",
        }  # fmt: skip
        urllib.request.urlopen(urllib.request.Request(f"{self.address}/{BUCKET}", method="PUT")).close()

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
