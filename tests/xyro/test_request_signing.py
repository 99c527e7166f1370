"""Signed requests: the standards' own examples, and servers that judge every request by another library."""

from __future__ import annotations

import dataclasses
import os
import stat
import sys
from pathlib import Path

import msgspec
import pytest
from http_message_signatures import InvalidSignature
from msgspec import structs

from tests.xyro.raw_server import Talk, order, page, reading, reading_in_processes, serving
from tests.xyro.signature_judge import KeyDirectory, ReceivedRequest, pem_of, verify
from xyro.answer import Answer
from xyro.identity_key import IdentityKey
from xyro.request_signing import AskingHosts, RequestSigner, SigningOptions, signing_options
from xyro.robots import judge
from xyro.wire.clock import SystemClock
from xyro.wire.errors import InputError

EXAMPLE = {
    "kty": "OKP",
    "crv": "Ed25519",
    "d": "n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU",
    "x": "JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs",
}
"""test-key-ed25519 of RFC 9421 B.1.4, as a JWK"""
BODY = b"<html><body><a href=/one>1</a> words enough to be a page</body></html>"
ASKS = b'Accept-Signature: sig1=("@authority" "signature-agent");tag="web-bot-auth"'
both_clients = pytest.mark.usefixtures("client")


# --- the standards' examples


@pytest.fixture
def example_key(tmp_path: Path) -> IdentityKey:
    return IdentityKey.read(pem_of(EXAMPLE, tmp_path / "example.pem"))


def test_rfc_9421_b_2_6(example_key: IdentityKey) -> None:
    covered = {
        '"date"': "Tue, 20 Apr 2021 02:07:55 GMT",
        '"@method"': "POST",
        '"@path"': "/foo",
        '"@authority"': "example.com",
        '"content-type"': "application/json",
        '"content-length"': "18",
    }
    found = example_key.sign("sig-b26", covered.items(), ';created=1618884473;keyid="test-key-ed25519"')
    assert found.inputs == (
        'sig-b26=("date" "@method" "@path" "@authority" "content-type" "content-length")'
        ';created=1618884473;keyid="test-key-ed25519"'
    )
    assert found.signature == (
        "sig-b26=:wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==:"
    )


WEB_BOT_AUTH = [
    (
        "sig1",
        [('"@authority"', "example.com")],
        "zIW8+cdmA3vdYagbxojpONwa/l0EKJ/O3/wD486VvsQjO/RxPaSt6ZxvQaMcQzNnqKN/mQ6hpGiFro2L2qkz5A==",
        "QKN4fTdIYfh82fvoZCQiQA1weuozfCS/Led2zTMbewMMqH8PI2Wsy/5c4ao6B6D09nraNQdBNOADg8aM1MqfCg==",
    ),
    (
        "sig2",
        [('"@authority"', "example.com"), ('"signature-agent";key="agent2"', '"https://signature-agent.test"')],
        "n9p433xm+NJ3ph3upfBIGmsuwHw387YV7Q/F+6BSpGCVjYCqQw6rznNA8PVVLySrAWsv0hQtFioQb6E1YsauiA==",
        "RdNFx5Bj6au3YgAMQL/RzmUlZE8QZLIaXGRpw985hWnwPfMxT228NMk6ehRS1PSl4e8PhbNZACSanGdhEwYCCg==",
    ),
]
"""label, what is covered, nonce and signature: the draft's vectors of Ed25519"""


@pytest.mark.parametrize(("label", "covered", "nonce", "expected"), WEB_BOT_AUTH)
def test_the_draft_s_vectors(
    example_key: IdentityKey, label: str, covered: list[tuple[str, str]], nonce: str, expected: str
) -> None:
    assert example_key.thumbprint == "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U", "RFC 8037 A.3"
    parameters = (
        f';created=1735689600;keyid="{example_key.thumbprint}";alg="ed25519";expires=4889289600;nonce="{nonce}"'
        ';tag="web-bot-auth"'
    )
    assert example_key.sign(label, covered, parameters).signature == f"{label}=:{expected}:"


# --- requests, as servers get them


@pytest.fixture
def options(tmp_path: Path) -> SigningOptions:
    IdentityKey.make(tmp_path / "key.pem")
    return SigningOptions(
        sign="always",
        key=str(tmp_path / "key.pem"),
        agent="https://bot.example.org",
        hosts=str(tmp_path / "signed-hosts"),
    )


def directory_of(options: SigningOptions) -> KeyDirectory:
    key = IdentityKey.read(Path(options.key))
    return KeyDirectory({"keys": [{**key.jwk, "kid": key.thumbprint}]})


def only_asked(options: SigningOptions) -> RequestSigner:
    return RequestSigner(structs.replace(options, sign="challenged"), SystemClock())


async def good(talk: Talk) -> None:
    if talk.path == "/robots.txt":
        await talk.say(page(b"User-agent: *\nDisallow: /no\n", mime=b"text/plain"))
    else:
        await talk.say(page(BODY))


@both_clients
async def test_every_request_is_signed_for_its_own_authority(options: SigningOptions) -> None:
    directory, signer = directory_of(options), RequestSigner(options, SystemClock())
    async with serving(good) as one, serving(good) as two, reading(signer=signer) as fetcher:
        for server in (one, two):
            assert (await fetcher.fetch_robots(server.url + "/robots.txt")).status == 200
            for path in ("/", "/a?b=%20c", "/%7Ed"):
                answer = await fetcher.fetch(order(server.url + path, etag='"e"'))
                assert (answer.status, answer.error) == (200, "")
            assert (await fetcher.post(server.url + "/hub", b"x", {"X": "y"})).status == 200
    received = [ReceivedRequest.of(head) for head in one.heads + two.heads]
    assert [request.method for request in received] == ["GET"] * 4 + ["POST"] + ["GET"] * 4 + ["POST"]
    assert {request.headers["Signature-Agent"] for request in received} == {'sig1="https://bot.example.org"'}
    assert len({verify(request, directory) for request in received}) == 10, "each nonce is used once"
    assert received[1].headers["If-None-Match"] == '"e"'
    moved = dataclasses.replace(received[0], url=received[-1].url)
    with pytest.raises(InvalidSignature):
        verify(moved, directory)


async def test_reader_processes_sign(options: SigningOptions) -> None:
    directory = directory_of(options)
    async with serving(good) as server, reading_in_processes(processes=2, signing=options) as readers:
        assert (await readers.fetch_robots(server.url + "/robots.txt")).status == 200
        assert (await readers.fetch(order(server.url + "/"))).status == 200
    assert len({verify(ReceivedRequest.of(head), directory) for head in server.heads}) == 2


def test_options_go_to_a_reader_process(options: SigningOptions) -> None:
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(options), type=SigningOptions) == options


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://h.test/", "h.test"),
        ("https://h.test./x", "h.test"),
        ("http://h.test.:81/", "h.test:81"),
        ("http://[::1]:8080/", "[::1]:8080"),
    ],
)
def test_the_authority_is_that_of_the_host_header(options: SigningOptions, url: str, expected: str) -> None:
    headers = RequestSigner(options, SystemClock()).headers(url, None)
    assert headers is not None
    verify(ReceivedRequest("GET", f"http://{expected}/", dict(headers)), directory_of(options))


# --- hosts that ask


def refuses_unsigned(*headers: bytes, status: bytes = b"403 Forbidden", body: bytes = b"no"):  # type: ignore[no-untyped-def]
    async def script(talk: Talk) -> None:
        if talk.header("Signature"):
            await good(talk)
        else:
            await talk.say(page(body, *headers, status=status))

    return script


@both_clients
async def test_a_host_that_asks_gets_signatures_from_then_on(options: SigningOptions) -> None:
    directory = directory_of(options)
    async with serving(refuses_unsigned(ASKS)) as asking, serving(good) as other:
        async with reading(signer=only_asked(options)) as fetcher:
            first = await fetcher.fetch(order(asking.url + "/"))
            second = await fetcher.fetch(order(asking.url + "/"))
            await fetcher.fetch(order(other.url + "/"))
        async with reading(signer=only_asked(options)) as fetcher:  # after a restart
            third = await fetcher.fetch_robots(asking.url + "/robots.txt")
    assert (first.status, first.error) == (403, "signature-asked")
    assert [(each.status, each.error) for each in (second, third)] == [(200, "")] * 2
    assert ["Signature: " in head for head in asking.heads] == [False, True, True]
    assert "Signature" not in other.heads[0]
    for head in asking.heads[1:]:
        verify(ReceivedRequest.of(head), directory)


@both_clients
async def test_a_challenge_gets_signatures_from_then_on(options: SigningOptions) -> None:
    """The next try comes soon: it is no visit to a host that has refused us."""
    script = refuses_unsigned(b"cf-mitigated: challenge")
    async with serving(script) as server, reading(signer=only_asked(options)) as fetcher:
        answers = [await fetcher.fetch(order(server.url + "/")) for _ in range(2)]
    assert [(each.status, each.error) for each in answers] == [(403, "signature-asked"), (200, "")]
    assert answers[0].retry_after == 0.0 and not answers[0].vendor


@both_clients
async def test_a_challenge_to_a_signed_request_is_one(options: SigningOptions) -> None:
    async def script(talk: Talk) -> None:
        await talk.say(page(b"", b"cf-mitigated: challenge", status=b"403 Forbidden"))

    async with serving(script) as server, reading(signer=only_asked(options)) as fetcher:
        answers = [await fetcher.fetch(order(server.url + "/")) for _ in range(2)]
    assert [each.error for each in answers] == ["signature-asked", "challenge"]


async def test_a_reader_process_is_told_of_a_challenge_by_evidence(options: SigningOptions) -> None:
    asked = structs.replace(options, sign="challenged")
    async with serving(good) as server, reading_in_processes(processes=2, signing=asked) as readers:
        await readers.fetch(order(server.url + "/"))
        readers.sign(server.url.removeprefix("http://"))
        await readers.fetch(order(server.url + "/"))
    assert ["Signature: " in head for head in server.heads] == [False, True]


@both_clients
async def test_an_answer_that_asks_is_read_and_a_plain_refusal_asks_for_nothing(options: SigningOptions) -> None:
    async def script(talk: Talk) -> None:
        await talk.say(page(BODY, ASKS) if talk.path == "/asks" else page(b"", status=b"403 Forbidden"))

    async with serving(script) as server, reading(signer=only_asked(options)) as fetcher:
        answers = [await fetcher.fetch(order(server.url + path)) for path in ("/plain", "/asks", "/plain")]
    assert [each.error for each in answers] == ["http-403", "", "http-403"]
    assert ["Signature: " in head for head in server.heads] == [False, False, True]


@both_clients
async def test_who_still_refuses_a_signed_request_has_refused_it(options: SigningOptions) -> None:
    async def script(talk: Talk) -> None:
        await talk.say(page(b"", ASKS, status=b"401 Unauthorized"))

    async with serving(script) as server, reading(signer=only_asked(options)) as fetcher:
        answers = [await fetcher.fetch(order(server.url + "/")) for _ in range(2)]
    assert [each.error for each in answers] == ["signature-asked", "http-401"]


def test_a_robots_txt_that_asks_is_asked_again_soon() -> None:
    asked = judge(Answer(0.0, status=403, error="signature-asked"), None, 1000.0, "xyro")
    refused = judge(Answer(0.0, status=403, error="http-403"), None, 1000.0, "xyro")
    assert (asked.kind, asked.fresh_until) == ("robots-unreachable", 1020.0)
    assert (refused.kind, refused.fresh_until) == ("robots-unreachable", 1000.0 + 86_400)


def test_names_of_hosts_survive_a_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    hosts = AskingHosts(path)
    assert [hosts.add(host) for host in ("a.test", "b.test:81", "a.test")] == [True, True, False]
    with path.open("a") as file:
        file.write("c.te")
    again = AskingHosts(path)
    assert [host in again for host in ("a.test", "b.test:81", "c.te", "c.test")] == [True, True, False, False]


# --- the key


def test_a_key_is_its_owner_s_and_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "keys" / "key.pem"
    old = os.umask(0)
    try:
        made = IdentityKey.make(path)
    finally:
        os.umask(old)
    text = path.read_bytes()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert IdentityKey.read(path).thumbprint == made.thumbprint
    with pytest.raises(InputError, match="File exists"):
        IdentityKey.make(path)
    assert path.read_bytes() == text


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "No such file"), (b"-----BEGIN", "no private key"), (b"rsa", "not of Ed25519")],
)
def test_a_key_that_is_none_is_refused(tmp_path: Path, content: bytes | None, said: str) -> None:
    path = tmp_path / "key.pem"
    if content == b"rsa":
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

        private = ec.generate_private_key(ec.SECP256R1())
        content = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=said):
        signing_options("always", str(path), "https://bot.example.org")
    assert signing_options("never", str(path), "") is None


def test_without_the_package_one_line_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(InputError, match=r"pip install 'xyro\[identity\]'"):
        IdentityKey.make(tmp_path / "key.pem")
    assert not (tmp_path / "key.pem").exists()
