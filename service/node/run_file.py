"""DIR/run: where the process that works on a data directory can be asked, and the token to show.

Written when the interface listens, removed at an orderly stop; after a crash it is stale, which `find` notices.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlencode

from xyro.wire.errors import InputError, MachineError

if TYPE_CHECKING:
    from http.client import HTTPResponse

NAME = "run"
QUICK = 20.0
"""seconds until a living process has said that it lives, also on a machine with ten times the work it can do"""
PATIENCE = 600.0
"""seconds until it has answered (an audit of millions of pages takes a while)"""


def write(directory: Path, host: str, port: int, token: str) -> None:
    """Readable by the owner only, there or not there but never in part."""
    path, fresh = directory / NAME, directory / f".{NAME}.new"
    try:
        fresh.unlink(missing_ok=True)  # of a process that died here
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "w") as file:
            json.dump({"pid": os.getpid(), "host": host, "port": port, "token": token}, file)
        fresh.rename(path)
    except OSError as error:
        raise MachineError(f"{path}: {error.strerror}: mend the disk or the directory's rights") from error


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
        """The process that works on `directory`; None where none does. MachineError: it lives and does not answer."""
        try:
            fields = json.loads((directory / NAME).read_text())
            remote = cls(int(fields["pid"]), str(fields["host"]), int(fields["port"]), str(fields["token"]))
            return remote if alive(remote.pid) and remote._answers() else None
        except TimeoutError:
            raise MachineError(f"{directory}: process {remote.pid} is busy or hangs: try again, or stop it") from None
        except (OSError, ArithmeticError, ValueError, KeyError, TypeError):
            return None

    def _answers(self) -> bool:
        """Tell whether the process that wrote the file answers. (After a crash its number or port may be somebody
        else's.)"""
        from http.client import HTTPConnection, HTTPException  # 5 ms, which a crawl of its own does without

        with closing(HTTPConnection(self.host, self.port, timeout=QUICK)) as connection, suppress(HTTPException):
            connection.request("GET", "/health")
            with connection.getresponse() as response:
                return response.status in (200, 503) and bool(json.loads(response.read(4096))["pid"] == self.pid)
        return False

    def get(self, path: str, **query: object) -> Any:
        """The JSON that the process answers with."""
        return self._json("GET", f"{path}?{urlencode(query)}" if query else path)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        return self._json("POST", path, json.dumps(body))

    def body(self, path: str, **query: object) -> tuple[bytes, dict[str, str]]:
        """The bytes that the process answers with, and what its X-Xyro headers say of them."""
        with self._answer("GET", f"{path}?{urlencode(query)}") as response:
            headers = {name[7:]: unquote(value) for name, value in response.getheaders() if name.startswith("X-Xyro-")}
            return response.read(), headers

    def lines(self, path: str, **query: object) -> Iterator[dict[str, Any]]:
        """Rows of a JSON-lines answer, as they come. MachineError: it broke off."""
        with self._answer("GET", f"{path}?{urlencode(query)}" if query else path) as response:
            for line in response:
                if line != b"\n":  # only to say that it lives
                    yield json.loads(line)
            if response.length:
                raise ValueError("cut short")  # which http.client does not tell of lines

    def parts(self, path: str, **query: object) -> Iterator[bytes]:
        """An answer as it comes. MachineError: it broke off."""
        with self._answer("GET", f"{path}?{urlencode(query)}") as response:
            while part := response.read(1 << 16):
                yield part

    def _json(self, method: str, path: str, body: str | None = None) -> Any:
        with self._answer(method, path, body) as response:
            return json.loads(response.read())

    @contextmanager
    def _answer(self, method: str, path: str, body: str | None = None) -> Iterator[HTTPResponse]:
        """InputError: it refused, and says why. MachineError: it failed, or went away before all was said."""
        from http.client import HTTPConnection, HTTPException

        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        with closing(HTTPConnection(self.host, self.port, timeout=PATIENCE)) as connection:
            try:
                connection.request(method, path, body, headers)
                with connection.getresponse() as response:
                    if response.status != 200:
                        raise (InputError if response.status == 400 else MachineError)(_reason(response))
                    yield response
            except (OSError, ValueError, HTTPException) as error:
                raise MachineError(f"process {self.pid} went away before all was said ({error}): ask again") from error


def alive(pid: int) -> bool:
    """Tell whether a process of that number is alive. One that ended, and whose parent has not noticed, is not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # somebody else's, but there
        return True
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except (OSError, IndexError):  # no Linux, or it has just ended: a next look tells
        return True


def _reason(response: HTTPResponse) -> str:
    from http.client import HTTPException

    try:
        found = json.loads(response.read())
        return "; ".join(found["failing"]) if "failing" in found else str(found["error"])
    except (OSError, ValueError, KeyError, TypeError, HTTPException):
        return f"the process answers HTTP {response.status}"
