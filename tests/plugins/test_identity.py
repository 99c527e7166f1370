"""`xyro identity`: its files and a crawl's requests, judged by another library of signatures, and by nginx."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
import shutil
import socket
import stat
import subprocess
import time
from html.parser import HTMLParser
from http.client import HTTPConnection

import pytest
from http_message_signatures import HTTPMessageVerifier, InvalidSignature, algorithms
from protego import Protego

from tests.plugins.signal_sites import signal_sites
from tests.service.face import LOOPBACK, process, rows, started, until, xyro
from tests.xyro.signature_judge import KeyDirectory, ReceivedRequest, pem_of, verify
from tests.xyro.test_request_signing import EXAMPLE
from xyro.identity_key import IdentityKey
from xyro.plugins.identity.key_directory import PATH, TYPE, key_directory

AGENT = "https://bot.example.org"
MADE = ("--agent", AGENT, "--contact", "you@example.org")
OPEN = "User-agent: *\nAllow: /\n"


@dataclasses.dataclass
class ReceivedResponse:
    """A response as a client has it, with the request that it answers."""

    request: ReceivedRequest
    status_code: int
    headers: dict[str, str]


def identity_in(folder, *options, **environment):
    done = xyro("identity", *MADE, "-o", folder, *options, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def directory_in(folder):
    return KeyDirectory(json.loads((folder / "public" / PATH[1:]).read_bytes()))


def config_in(folder, sign):
    path = folder / "mine.toml"
    path.write_text(f'[identity]\nsign = "{sign}"\nkey = "{folder / "key.pem"}"\nagent = "{AGENT}"\n')
    return path


# --- the directory


def test_the_draft_s_vector_of_a_directory(tmp_path):
    key = IdentityKey.read(pem_of(EXAMPLE, tmp_path / "example.pem"))
    found = key_directory(key, "signature-agent.test", 1735689600, 4889289600)
    assert found.body == (
        b'{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U",'
        b'"x":"JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs","use":"sig"}]}'
    )
    assert found.headers == {
        "Content-Type": TYPE,
        "Cache-Control": "max-age=86400",
        "Content-Digest": "sha-256=:CADMT2aBdV/rqQr/NIru64ERQkCobVvllA4V0fLFDu0=:",
        "Signature-Input": 'binding0=("@authority";req "content-digest");created=1735689600;'
        'keyid="poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U";alg="ed25519";expires=4889289600;'
        'tag="http-message-signatures-directory"',
        "Signature": "binding0=:yiHq0TXrbpzbmlttAQMpYoAufitFJUWuNsakB7QQMoN0EHbo5o51bZRVR8az/"
        "ptTWCwllix9clrKXfGKwdPzBg==:",
    }


def assert_proves_itself(body, headers, authority="bot.example.org"):
    """The response is signed, for this authority, by the key that it lists."""
    assert headers["Content-Type"] == TYPE
    response = ReceivedResponse(ReceivedRequest("GET", f"https://{authority}{PATH}", {}), 200, headers)
    verifier = HTTPMessageVerifier(signature_algorithm=algorithms.ED25519, key_resolver=KeyDirectory(json.loads(body)))
    (found,) = verifier.verify(
        response,
        max_age=None,
        expect_tag="http-message-signatures-directory",
        require_components=('"@authority";req', '"content-digest"'),
        body=body,
    )
    assert int(found.parameters["expires"]) - time.time() > 364 * 86_400


def test_the_headers_file_serves_a_directory_that_proves_itself(tmp_path):
    identity_in(tmp_path)
    first, *lines = (tmp_path / "public" / "_headers").read_text().splitlines()
    headers = {name: value for name, _, value in (line.strip().partition(": ") for line in lines)}
    body = (tmp_path / "public" / first[1:]).read_bytes()
    assert_proves_itself(body, headers)
    with pytest.raises(InvalidSignature):
        assert_proves_itself(body, headers, "evil.example.org")
    with pytest.raises(InvalidSignature):
        assert_proves_itself(body.replace(b'"sig"', b'"sog"'), headers)


@pytest.mark.skipif(shutil.which("nginx") is None, reason="no nginx on this machine")
def test_nginx_serves_a_directory_that_proves_itself(tmp_path):
    identity_in(tmp_path)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    places = "".join(
        f"{kind}_temp_path {tmp_path}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    config = tmp_path / "server.conf"
    config.write_text(
        f"daemon off; user root; pid {tmp_path}/pid; error_log {tmp_path}/error; events {{}}\n"
        f"http {{ access_log off; {places} server {{ listen 127.0.0.1:{port}; root {tmp_path}/public;\n"
        f"include {tmp_path}/nginx.conf; }} }}\n"
    )
    server = subprocess.Popen(["nginx", "-c", str(config)], stderr=subprocess.DEVNULL)
    try:
        until(lambda: answers(port))
        with contextlib.closing(HTTPConnection("127.0.0.1", port)) as connection:
            connection.request("GET", PATH)
            answer = connection.getresponse()
            assert_proves_itself(answer.read(), dict(answer.headers))
            connection.request("GET", "/key.pem")
            assert connection.getresponse().status == 404
    finally:
        server.terminate()
        server.wait(10)


def answers(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


# --- the files


def test_a_second_run_keeps_key_and_page_and_signs_anew(tmp_path):
    said = identity_in(tmp_path)
    key, page = tmp_path / "key.pem", tmp_path / "public" / "index.html"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600 and "made now" in said
    secret = key.read_bytes()
    page.write_text("mine")
    before = (tmp_path / "public" / "_headers").read_text()
    time.sleep(1.1)  # signatures tell seconds
    again = identity_in(tmp_path)
    assert (key.read_bytes(), page.read_text()) == (secret, "mine")
    assert (tmp_path / "public" / "_headers").read_text() != before
    assert again.count("was there") == 2
    published = b"".join(path.read_bytes() for path in (tmp_path / "public").rglob("*") if path.is_file())
    assert secret.splitlines()[1] not in published


class _Blocks(HTMLParser):
    """The text of <pre> elements, and all links."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.blocks: list[str] = []
        self.links: list[str] = []
        self._inside = False
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self._inside = tag == "pre"
        self.links += [value or "" for name, value in attributes if name in ("href", "src")]

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.blocks.append(data)

    def handle_endtag(self, tag: str) -> None:
        self._inside = False


def test_the_page_tells_who_what_for_and_how_to_keep_it_out(tmp_path):
    identity_in(tmp_path, "--user-agent", "Bookworm", XYRO_IDENTITY__PURPOSE="search,ai-train")
    (kid,) = directory_in(tmp_path).keys
    page = _Blocks((tmp_path / "public" / "index.html").read_text())
    agent, forbid, slowly, uses, keyid, header = page.blocks
    assert re.fullmatch(r"Bookworm/\S+ \(\+mailto:you@example\.org\)", agent)
    assert not Protego.parse(forbid).can_fetch("https://h.test/any", "Bookworm")
    assert Protego.parse(forbid).can_fetch("https://h.test/any", "Other")
    assert Protego.parse(slowly).crawl_delay("Bookworm") == 10
    assert uses.splitlines()[1] == "Content-Signal: search=no, ai-train=no"
    assert (keyid, header) == (kid, f'Signature-Agent: sig1="{AGENT}"')
    assert page.links == ["mailto:you@example.org", PATH]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--contact", "you@example.org"), "--agent"),
        (("--agent", AGENT), "--contact"),
        ((*MADE[:1], "http://bot.example.org", *MADE[2:]), "https:// address"),
        ((*MADE, "--key", "{folder}/public/key.pem"), "outside"),
        ((*MADE, "--key", "{folder}/none/\0"), "file name"),
    ],
)
def test_what_is_missing_or_wrong_is_named(tmp_path, options, said):
    words = [option.format(folder=tmp_path) for option in options]
    done = xyro("identity", *words, "-o", tmp_path)
    assert done.returncode == 2 and said in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_show_tells_who_the_crawler_says_it_is(tmp_path):
    identity_in(tmp_path)
    done = xyro("identity", "show", "--config", config_in(tmp_path, "always"), "--json")
    found = json.loads(done.stdout)
    assert (found["sign"], found["agent"], found["directory"]) == ("always", AGENT, AGENT + PATH)
    assert [found["keyid"]] == list(directory_in(tmp_path).keys)
    assert found["purpose"] == ["search"]
    assert "PRIVATE" not in done.stdout
    assert "sign       never" in xyro("identity", "show").stdout


def test_a_crawl_that_is_to_sign_needs_a_key(tmp_path):
    for text in ("", f'agent = "{AGENT}"\n', f'agent = "{AGENT}"\nkey = "{tmp_path}/none.pem"\n'):
        path = tmp_path / "mine.toml"
        path.write_text(f'[identity]\nsign = "always"\n{text}')
        done = process("crawl", "http://127.0.0.1:9/", *LOOPBACK, "--config", path, "--data", tmp_path / "data")
        assert done.returncode == 2 and "xyro identity" in done.stderr and done.stderr.count("\n") == 1, done.stderr


# --- crawls


@pytest.mark.long
@pytest.mark.parametrize(("client", "readers"), [("fast", "0"), ("aiohttp", "0"), ("fast", "1")])
def test_each_request_of_a_crawl_is_signed(tmp_path, client, readers):
    identity_in(tmp_path)
    directory = directory_in(tmp_path)
    with signal_sites(OPEN, OPEN, pages=6) as sites:
        done = process("crawl", *(site.url for site in sites), *LOOPBACK, "--data", tmp_path / "data",
                       "--config", config_in(tmp_path, "always"), XYRO_FETCH__CLIENT=client,
                       XYRO_FETCH__READERS=readers)  # fmt: skip
        assert done.returncode == 0, done.stderr
    requests = [request for site in sites for request in site.requests]
    assert sorted(request.url.rpartition("/")[2] for request in requests) == sorted([*"12345", "", "robots.txt"] * 2)
    assert len({verify(request, directory) for request in requests}) == 14
    assert sum(bool(row["reads"]) for row in rows("pages", tmp_path / "data")) == 12


@pytest.mark.long
def test_who_asks_is_signed_to_from_then_on_even_after_a_kill(tmp_path):
    identity_in(tmp_path)
    data, directory, config = tmp_path / "data", directory_in(tmp_path), config_in(tmp_path, "challenged")
    slow = [*LOOPBACK[:2], "--scope", "any", "--delay", "0.3", "--config", config]
    with signal_sites(OPEN, OPEN, pages=10) as (asking, other):
        asking.asks = True
        with started("crawl", asking.url, other.url, *slow, data=data) as running:
            until(lambda: asking.log.count("/2"))
            running.kill()
            running.wait()
        before = len(asking.requests)
        done = process("crawl", *LOOPBACK, "--data", data)  # it was told once how sites are met
        assert done.returncode == 0, done.stderr
    signed = ["Signature" in request.headers for request in asking.requests]
    assert signed[:2] == [False, False] and asking.log[:3] == ["/robots.txt", "/", "/"]
    assert all(signed[2:]) and len(signed) > before
    assert len({verify(request, directory) for request in asking.requests[2:]}) == len(signed) - 2
    assert not any("Signature" in request.headers for request in other.requests)
    assert [row["error"] for row in rows("pages", data) if row["error"]] == []
    assert sum(bool(row["reads"]) for row in rows("pages", data)) == 20


def test_nothing_is_signed_unless_it_is_asked_for(tmp_path):
    with signal_sites(OPEN) as (site,):
        site.asks = True
        process("crawl", site.url, *LOOPBACK, "--data", tmp_path / "data")
    assert site.log == ["/robots.txt", "/"]
    assert not any(name.startswith("Signature") for request in site.requests for name in request.headers)
    (row,) = rows("pages", tmp_path / "data")
    assert row["error"] == "http-403"
