"""What each fuzzer feeds its reader, and what must hold whatever that was. Each is a function of a Random."""

from __future__ import annotations

import codecs
import gzip
import zlib
from collections.abc import Callable
from random import Random

import brotli
from ada_url import join_url
from backports import zstd

from tests.fuzz import interface as served
from tests.fuzz import material as made
from tests.xyro.test_links import found, parsed
from tests.xyro.test_robots import matches, octets, one_form
from xyro.charset import codec_for
from xyro.decode import Caps, Decoder, codings_of
from xyro.failures import POLICIES
from xyro.headers import fresh_for, media_type, one_length, retry_after, robots_words, validator
from xyro.hrefs import refresh_target
from xyro.hubs import websub
from xyro.loader.intake import Intake
from xyro.maintext import signature
from xyro.robots import Robots
from xyro.wire import urls
from xyro.wire.codec import decode, encode
from xyro.wire.errors import CodecError, TheirError
from xyro.wire.ids import PageId
from xyro.wire.messages import FetchOrder, Kind, LoadReport, PageReport, Priority, XmlPage

PAGE = "http://h.test/d/p?q"


def links(random: Random) -> None:
    """The scanner and the parser tell the same of any markup, in one piece or in many."""
    text = made.text_of(random, made.MARKUP + made.HREFS, 40)
    body = text.encode("utf-8", "replace")
    whole = found(body)
    assert whole == parsed(body), body
    assert found(body, pieces=random.choice((1, 2, 7, 100))) == whole, body
    for url in whole.links.urls:
        assert urls.resolve(PAGE, url) == url, (body, url)


def encodings(random: Random) -> None:
    """Any bytes have an encoding that Python has; pages in any of them are read."""
    body = made.octets_of(random, made.text_of(random, made.MARKUP + made.HREFS))
    label = random.choice(("", made.spoilt(random, "utf-8"), "x-sjis", "iso-8859-8-i", "utf-7", "hz", "gbk"))
    codec = codec_for(body, label)
    body.decode(codec, "replace")
    assert codecs.lookup(codec), (body, label)
    assert found(body, charset=label).charset == codec, (body, label)
    signature(body, codec)


def hrefs(random: Random) -> None:
    """The short way to a URL ends where the parser's does; a canonical URL is its own."""
    base = random.choice((PAGE, "http://h.test/", "https://h.test:8080/a//b/../c", "http://h.test/d/?x/y"))
    href = made.spoilt(random, "".join(random.choice(made.HREFS) for _ in range(random.randint(1, 3))))
    got = urls.resolve(base, href)
    scalar = href.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    try:
        joined = join_url(base, scalar)
    except ValueError:
        joined = ""
    want = urls._tidy(joined, True) if joined.startswith(("http://", "https://")) else None
    assert got == (want if want is None or len(want) <= urls.MAX_URL else None), (base, href)
    codec = random.choice(("cp1251", "shift_jis", "gb18030", "iso2022_jp", "euc_jp"))
    other = urls.resolve(base, href, codec=codec)
    for url in (got, other):
        if url is not None:
            assert url.isascii() and urls.canonical(url) == url, (base, href, codec)


def robots(random: Random) -> None:
    """The match with the most octets decides; whatever else the file says, nothing raises."""
    body = made.text_of(random, made.ROBOTS, 30)
    Robots.parse(made.octets_of(random, body), "xyro", cut=random.random() < 0.1).allows("http://h.test/a?b")
    parts = ("a", "b", "/", "*", "$", "?", "%41", "%2a", "%3F", "é", "A", "3", "F", "&")
    rules = [
        (random.random() < 0.5, "/" + "".join(random.choices(parts, k=random.randint(0, 5))))
        for _ in range(random.randint(0, 6))
    ]
    path = "/" + "".join(
        random.choices(("a", "b", "A", "3", "?", "%C3%A9", "*", "&", "%41", "F"), k=random.randint(0, 6))
    )
    text = "User-agent: *\n" + "".join(f"{'Allow' if allow else 'Disallow'}: {rule}\n" for allow, rule in rules)
    hits = [(octets(rule), allow) for allow, rule in rules if matches(rule, one_form(path))]
    allowed = Robots.parse(text.encode(), "xyro").allows("http://h.test" + path)
    assert allowed == (not hits or max(hits)[1]), (text, path)


def bodies(random: Random) -> None:
    """A coded body comes out as it went in, in any packets; a broken one fails the same in all."""
    data = random.randbytes(random.choice((0, 10, 5_000, 20_000))) + b"text " * random.randint(0, 5_000)
    codings = random.choice(
        (("gzip",), ("deflate",), ("br",), ("zstd",), ("gzip", "gzip"), ("deflate", "gzip"), ("br", "zstd"), ())
    )
    pack = {"gzip": gzip.compress, "deflate": zlib.compress, "br": brotli.compress, "zstd": zstd.compress}
    body = data
    for coding in codings:
        body = pack[coding](body)
    broken = bytearray(body)
    if broken and random.random() < 0.5:
        for _ in range(random.randint(1, 3)):
            broken[random.randrange(len(broken))] = random.randrange(256)
        del broken[random.randint(0, len(broken)) :]
    caps = Caps(size=random.choice((100, 10_000, 1 << 20)))
    results = set()
    for pieces in ([bytes(broken)], made.cuts_of(random, bytes(broken))):
        decoder = Decoder(codings, caps)
        out = b"".join(map(decoder.feed, pieces)) + decoder.finish()
        assert len(out) <= caps.size and decoder.failure in ("", *POLICIES)
        results.add((out, decoder.failure))
    assert len(results) == 1, (codings, caps.size, [(len(out), failure) for out, failure in results])
    if bytes(broken) == body and len(data) <= caps.size:
        assert results == {(data, "")} or data[:2] == b"\x1f\x8b"


def headers(random: Random) -> None:
    """Any header is read, or is none; what is stored of it is harmless."""
    text = made.text_of(random, made.HEADERS + made.NUMBERS)
    mime, charset = media_type(text)
    assert (mime + charset).isascii() and (mime + charset).isprintable(), text
    assert 0 <= retry_after(text, 1.7e9) <= 86_400, text
    named = dict.fromkeys(("Cache-Control", "Expires", "Date", "Age", "ETag"), text)
    assert 0 <= fresh_for(named) <= 365 * 86_400, text
    assert validator(named, "ETag").isprintable(), text
    robots_words([text])
    refresh_target(text)
    websub([text], PAGE, True)
    try:
        codings_of(text)
    except TheirError as error:
        assert error.kind == "encoding", text
    raw = f"HTTP/1.1 200 OK\r\nContent-Length: {text}\r\ncontent-length: {text}\r\n\r\n{text}".encode(
        "utf-8", "replace"
    )
    assert one_length(raw).endswith(raw.partition(b"\r\n\r\n")[2]), text


def documents(random: Random) -> None:
    """Any XML ends in reports, and what they name are URLs."""
    body = made.octets_of(random, made.text_of(random, made.XML, 30))
    kind = random.choice((Kind.XML, Kind.XML, Kind.DTD))
    page = XmlPage(PageId(1), PAGE, 1, 1.7e9, kind, "text/xml", random.choice(("", "utf-8", "klingon", "cp1251")), body)
    reports = [report for report in Intake().take(page, 0.0) if isinstance(report, LoadReport)]
    assert reports, body
    for report in reports:
        for url in report.links.urls:
            assert urls.canonical(url) == url, (body, url)
        assert all(0 < when <= 1.7e9 + 86_400 for _, when in report.modified), body
        assert decode(encode(report)) == report, body


def messages(random: Random) -> None:
    """A message comes back as it went; spoilt bytes are a message or a CodecError."""
    url = "http://h.test/" + made.spoilt(random, "path")
    message = random.choice(
        (
            FetchOrder(
                PageId(random.getrandbits(40)), url.replace("\n", ""), Priority.SCOUT, epoch=random.getrandbits(20)
            ),
            PageReport(page=PageId(1), url="http://h.test/", epoch=1, started=1.0, ended=2.0, status=200),
        )
    )
    data = bytearray(encode(message))
    assert decode(bytes(data)) == message
    for _ in range(random.randint(1, 4)):
        data[random.randrange(len(data))] = random.randrange(256)
    if random.random() < 0.3:
        del data[random.randint(0, len(data)) :]
    try:
        again = decode(bytes(data))
    except CodecError:
        return
    assert decode(encode(again)) == again, bytes(data)


ENDS: dict[str, Callable[[], None]] = {"interface": served.end}
"""what is to be done, and must hold, when a fuzzer has run"""
FUZZERS: dict[str, Callable[[Random], None]] = {
    fuzzer.__name__: fuzzer
    for fuzzer in (links, encodings, hrefs, robots, bodies, headers, documents, messages, served.interface)
}
