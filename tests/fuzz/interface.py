"""The fuzzer of the HTTP interface of a running `xyro serve`: sound and unsound requests, in any order.

Whatever comes in: no 500, an answer to everything that is HTTP, and to /health at once; what was accepted is known at
once, is there after the end, and the audit holds. The daemon crawls a small computed web meanwhile. Nothing that the
fuzzer spoils is ever a command or a path: those that a request may run or write are harmless, and stay as they are.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import subprocess
import tempfile
from pathlib import Path
from random import Random
from urllib.parse import quote

from tests.fuzz import material as made
from tests.service.face import ENVIRONMENT, XYRO, process
from xyro.lab.child import running
from xyro.service.node.run_file import Remote
from xyro.wire.clock import SystemClock
from xyro.wire.errors import InputError
from xyro.wire.urls import canonical

PATIENCE = 20.0
"""seconds in which everything is answered, on a machine that has much else to do"""
NETWORK = "127.1.0.0/16"
AUDITED = 97
"""cases from audit to audit"""


class Daemon:
    """A daemon that crawls a web of its own, and what it has accepted."""

    def __init__(self) -> None:
        with contextlib.ExitStack() as stack:
            self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="xyro-fuzz-")))
            self.web = stack.enter_context(running(pages=60, hosts=2))
            self.data = self.folder / "data"
            words = ["serve", "--data", self.data, "--only-net", NETWORK, "--scope", "any", "--delay", "0.2"]
            self.log = (self.folder / "log").open("wb")
            self.child = subprocess.Popen([*XYRO, *map(str, words)], env=ENVIRONMENT, stderr=self.log)
            stack.callback(self.child.kill)
            self.remote = self._found()
            self._stack = stack.pop_all()
        self.known: dict[str, None] = {}
        self.cases = 0

    def _found(self) -> Remote:
        clock = SystemClock()
        end = clock.monotonic() + 60.0
        while clock.monotonic() < end:
            if (remote := Remote.find(self.data)) is not None:
                return remote
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.child.wait(0.2)
        raise AssertionError(f"it does not listen: {(self.folder / 'log').read_text()}")

    def ask(self, request: bytes, *, leave: bool = False) -> tuple[int, bytes] | None:
        """Status and body of the answer to these octets; None: the connection was closed without one.

        leave: say at once that nothing more will come.
        """
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.remote.port, timeout=PATIENCE)) as wire:
            wire.connect()
            try:
                wire.sock.sendall(request)
                if leave:
                    wire.sock.shutdown(1)
                answer = http.client.HTTPResponse(wire.sock)
                answer.begin()
                return answer.status, answer.read()
            except (ConnectionError, http.client.BadStatusLine, http.client.IncompleteRead):
                return None

    def sound(self, method: str, path: str, body: object = None) -> tuple[int, dict[str, object]]:
        """A request as the command makes it."""
        found = self.ask(_request(method, path, self.remote, b"" if body is None else json.dumps(body).encode()))
        assert found is not None, f"{method} {path}: no answer"
        return found[0], json.loads(found[1])

    def check(self) -> None:
        """The state holds."""
        status, report = self.sound("GET", "/audit")
        assert status == 200 and report["ok"], report

    def close(self) -> None:
        """Stop it in order; what it accepted is there. It may have failed before."""
        if self.child.poll() is None:
            self.child.terminate()
        code = self.child.wait(60.0)
        try:
            log = (self.folder / "log").read_text()
            assert code == 0, (code, log[-2000:])
            assert "Traceback" not in log and "(a bug)" not in log, log[-2000:]
            assert process("audit", "--data", self.data).returncode == 0
            rows = process("export", "pages", "--data", self.data).stdout.splitlines()
            lost = self.known.keys() - {json.loads(row)["url"] for row in rows}
            assert not lost, sorted(lost)[:5]
        finally:
            self.log.close()
            self._stack.close()


_daemon: list[Daemon] = []


def interface(random: Random) -> None:
    """Sound requests are answered soundly, others with a reason; nothing fails, hangs or gets lost."""
    if not _daemon:
        _daemon.append(Daemon())
    daemon = _daemon[0]
    daemon.cases += 1
    for _ in range(random.randint(1, 5)):
        random.choice((_submit, _look, _change, _spoil, _spoil))(random, daemon)
    status, health = daemon.sound("GET", "/health")
    assert status == 200 and health["ok"], health
    assert daemon.child.poll() is None, "the daemon has ended"
    if daemon.cases % AUDITED == 0:
        daemon.check()


def end() -> None:
    """Stop the daemon, if one runs, and hold what it leaves against what it accepted."""
    while _daemon:
        _daemon.pop().close()


def _request(method: str, path: str, remote: Remote, body: bytes, **headers: str) -> bytes:
    fields = {
        "Host": f"127.0.0.1:{remote.port}",
        "Authorization": f"Bearer {remote.token}",
        "Content-Length": str(len(body)),
        "Content-Type": "application/json",
        "Connection": "close",
        **headers,
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode("utf-8", "surrogateescape") + body


def _url(random: Random, daemon: Daemon) -> str:
    entry = daemon.web.entry
    return random.choice(
        (
            entry,
            f"{entry}{random.randrange(99)}",
            f"http://127.1.0.{random.randrange(9)}:{random.randrange(1, 66_000)}/",
            made.spoilt(random, f"{entry}p?q"),
            random.choice(made.HREFS),
            *daemon.known,
        )
    )


def _submit(random: Random, daemon: Daemon) -> None:
    """What is accepted is known when the answer is here."""
    urls = [_url(random, daemon) for _ in range(random.choice((0, 1, 3, 40)))]
    status, found = daemon.sound("POST", "/submit", {"urls": urls})
    assert status == 200, found
    refused = {each["url"] for each in found["refused"]}  # type: ignore[attr-defined, index, union-attr]
    taken = []
    for url in map(str.strip, urls):  # as lines of a file may have any white space around them
        with contextlib.suppress(InputError):
            if canonical(url) not in refused and url not in refused:
                taken.append(canonical(url))
    assert found["accepted"] == len(set(taken)), (urls, found)
    daemon.known.update(dict.fromkeys(taken))
    if taken:
        url = random.choice(taken)
        status, found = daemon.sound("GET", f"/why?url={quote(url, safe='')}")
        assert status == 200 and found.get("id") is not None, (url, found)


# fmt: off
LOOKS = (
    "/health", "/status", "/top", "/top?n=3&by=cash", "/top?n=5&by=stale", "/top?by=rising",
    "/top?by=site&level=domain", "/audit", "/plan", "/plan?target=0.9",
    "/plan?bandwidth=3/min&policies=freshness,mixed", "/rank?links=0", "/rank?links=1", "/subscriptions",
    "/export/pages", "/export/links", "/export/hosts", "/export/documents", "/xml/stats", "/xml/dtds?most=3",
    "/xml/versions?what=0", "/xml/body?what=0&version=1", "/xml/chosen?by=date&root=rss",
    "/why?url=http://127.1.0.1/", "/nothing", "/export/nothing",
)
# fmt: on
HARMLESS = ("/bin/true", "http://127.1.0.1:9/notify")
"""what a subscription may run or call: never spoilt"""


def _look(random: Random, daemon: Daemon) -> None:
    """Any question, with any values."""
    path = random.choice(LOOKS)
    if random.random() < 0.6:
        path, _, query = path.partition("?")
        path += "?" + quote(made.spoilt(random, query or "n=1"), "=&/%+", "utf-8", "replace")
    if random.random() < 0.2:
        path = quote(made.spoilt(random, path), "/?=&%", "utf-8", "replace")
        path = path if path.startswith("/") else f"/{path}"
    found = daemon.ask(_request("GET", path, daemon.remote, b""))
    assert found is not None and (found[0] < 500 or path.startswith("/health")), (path, found)


def _change(random: Random, daemon: Daemon) -> None:
    """Any order, with any values: but for what it would run or write."""
    number, text = random.choice((0, 1, -1, 2**70, 1.5, True)), made.spoilt(random, "every 3 days")
    odd = random.choice((None, number, text, [], {}, [[]], ["x", 3], "\0", "1h", "http://127.1.0.1/"))
    path, body = random.choice(
        (
            ("/hosts", {"host": odd, "action": random.choice(("pause", "resume", odd))}),
            ("/hosts", {"host": "127.1.0.2:1", "action": random.choice(("pause", "resume", "block"))}),
            ("/publish", {"urls": [_url(random, daemon), odd], "claim": odd, "every": odd, "deadline": odd}),
            ("/publish", {"urls": [_url(random, daemon)], "every": "1h"}),
            ("/subscriptions", {"target": odd, "every": odd, "notify": random.choice(HARMLESS)}),
            ("/subscriptions", {"target": daemon.web.entry, "every": "1day", "notify": HARMLESS[0]}),
            ("/unsubscribe", {"id": odd}),
            ("/submit", {"urls": odd, "priority": odd}),
            ("/xml/bodies", {"pages": odd}),
            ("/xml/bodies", {"pages": [[number, number], [odd, 1]]}),
            ("/backup", {"to": random.choice((None, 3, "", "relative", "\0", str(daemon.data)))}),
        )
    )
    data = json.dumps(body).encode()
    found = daemon.ask(_request("POST", path, daemon.remote, data))
    assert found is not None and found[0] < 500, (path, body, found)


def _spoil(random: Random, daemon: Daemon) -> None:
    """Octets that are no HTTP, no JSON, or not what they say of themselves."""
    remote, body = daemon.remote, json.dumps({"urls": [daemon.web.entry]}).encode()
    path = random.choice(("/submit", "/hosts", "/unsubscribe", "/xml/bodies", "/top"))
    method = random.choice(("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "CONNECT", "get", "X" * 99))
    kind = random.randrange(8)
    if kind == 0:
        data = _request(method, path, remote, body)
    elif kind == 1:
        data = _request("POST", path, remote, made.octets_of(random, made.spoilt(random, body.decode())))
    elif kind == 2:
        data = _request("POST", path, remote, b"[" * random.choice((10, 100_000)))
    elif kind == 3:
        data = _request("POST", path, remote, body, **{"Content-Length": random.choice(made.NUMBERS)})
    elif kind == 4:
        chunks = b"%x\r\n%b\r\n" % (random.choice((len(body), 1, 9999)), body)
        data = _request("POST", path, remote, chunks, **{"Transfer-Encoding": "chunked", "Content-Length": ""})
    elif kind == 5:
        odd = random.choice((b"x" * 70_000, b"\0", b"Bearer", "é".encode())).decode("latin-1")
        data = _request("GET", "/status", remote, b"", **{random.choice(("Authorization", "Host", "X-Odd")): odd})
    elif kind == 6:
        whole = _request("POST", "/hosts", remote, b'{"host": "h", "action": "resume"}')
        data = whole[: random.randrange(len(whole))]
    else:
        data = random.randbytes(random.choice((0, 1, 50, 5000)))
    found = daemon.ask(data, leave=kind > 2 or random.random() < 0.1)
    assert found is None or found[0] < 500 or found[0] == 501, (data[:300], found)
