"""DIR/run: where the process that works on a data directory can be asked, and the token to show.

Written when the interface listens, removed at an orderly stop; after a crash it is stale, which `find` notices.
"""

from __future__ import annotations

import http.client
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from wire.errors import InputError, MachineError

NAME = "run"
PATIENCE = 600.0
"""seconds until a running process has answered (an audit of millions of pages takes a while)"""


def write(directory: Path, host: str, port: int, token: str) -> None:
    """Readable by the owner only, there or not there but never in part."""
    path, fresh = directory / NAME, directory / f".{NAME}.new"
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "w") as file:
        json.dump({"pid": os.getpid(), "host": host, "port": port, "token": token}, file)
    fresh.rename(path)


def remove(directory: Path) -> None:
    (directory / NAME).unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class Remote:
    """The running process of a data directory."""

    pid: int
    host: str
    port: int
    token: str

    @classmethod
    def find(cls, directory: Path) -> Remote | None:
        """The process that works on `directory`, None where none answers."""
        try:
            said = json.loads((directory / NAME).read_text())
            remote = cls(int(said["pid"]), str(said["host"]), int(said["port"]), str(said["token"]))
            os.kill(remote.pid, 0)
            connection = http.client.HTTPConnection(remote.host, remote.port, timeout=5)
            connection.request("GET", "/health")
            return remote if connection.getresponse().status == 200 else None
        except (OSError, ValueError, KeyError, TypeError, http.client.HTTPException):
            return None

    def get(self, path: str, **query: object) -> Any:
        """The JSON that the process answers with."""
        response = self._request("GET", f"{path}?{urlencode(query)}" if query else path, None)
        return json.loads(response.read())

    def post(self, path: str, body: dict[str, Any]) -> Any:
        return json.loads(self._request("POST", path, json.dumps(body)).read())

    def lines(self, path: str) -> Iterator[dict[str, Any]]:
        """Rows of a JSON-lines answer, as they come."""
        for line in self._request("GET", path, None):
            yield json.loads(line)

    def _request(self, method: str, path: str, body: str | None) -> http.client.HTTPResponse:
        """InputError: it refused, and says why. MachineError: it went away."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=PATIENCE)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            raise MachineError(f"process {self.pid} does not answer: {error}") from error
        if response.status != 200:
            try:
                reason = json.loads(response.read())["error"]
            except (ValueError, KeyError, TypeError):
                reason = f"HTTP {response.status}"
            raise (InputError if response.status == 400 else MachineError)(reason)
        return response
