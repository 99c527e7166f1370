"""Zoo C: content codings, sizes and character sets (cases 48 to 56)."""

from __future__ import annotations

import gzip
import zlib

import brotli
from backports import zstd

from xyro.lab.zoo.acts import Case, page, response, says

_BODY = page("/ok.html", text="A page of the zoo. " * 50)
_ZIPPED = gzip.compress(_BODY.encode(), mtime=0)
_GZIP = "Content-Encoding: gzip"
_MIB = 1 << 20
_SITEMAP = (
    '<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>{}</loc></url></urlset>'
).format("http://127.2.255.1/ok.html")


def bomb(mebibytes: int) -> bytes:
    """A gzip stream of that many MiB of blanks: one deflated MiB, closed with a full flush, repeated."""
    deflate = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    block = deflate.compress(b" " * _MIB) + deflate.flush(zlib.Z_FULL_FLUSH)
    return gzip.compress(b"", mtime=0)[:10] + block * mebibytes


def _bad_crc() -> bytes:
    return _ZIPPED[:-8] + bytes(byte ^ 0xFF for byte in _ZIPPED[-8:-4]) + _ZIPPED[-4:]


def newer_bomb(coding: str, mebibytes: int) -> bytes:
    """The same in Brotli or Zstandard, some 20 or 60 bytes a MiB: frames, or the flushed blocks of one stream."""
    blank = b" " * _MIB
    if coding == "zstd":
        return zstd.compress(blank) * mebibytes
    squeeze = brotli.Compressor(lgwin=24)
    first, later = (squeeze.process(blank) + squeeze.flush() for _ in range(2))
    return bytes(first + later * (mebibytes - 1) + squeeze.finish())


def _newer(coding: str) -> tuple[Case, ...]:
    """The cases of gzip in one of the newer codings. A frame of Zstandard has a checksum, a stream of Brotli none."""
    mark = f"Content-Encoding: {coding}"
    body = _BODY.encode()
    once = brotli.compress(body) if coding == "br" else zstd.compress(body)
    twice = brotli.compress(once) if coding == "br" else zstd.compress(once)
    parts = once if coding == "br" else zstd.compress(body[:300]) + zstd.compress(body[300:])
    cut = once[: len(once) // 2]
    long = page(
        "/ok.html", text=" ".join(map(str, range(1_000, 3_000)))
    ).encode()  # what breaks at once passes as plain
    half = brotli.compress(long) if coding == "br" else zstd.compress(long)
    half = half[: len(half) // 2]
    return (
        Case(
            48,
            f"{coding}-bomb",
            ("too-large", "ratio-too-large", "encoding"),
            says(response(newer_bomb(coding, 512), mark)),
        ),
        Case(49, f"{coding}-twice", ("", "encoding"), says(response(twice, f"{mark}, {coding}")), links=1),
        Case(50, f"plain-as-{coding}", ("", "encoding"), says(response(_BODY, mark)), links=1),
        Case(51, f"{coding}-cut", ("truncated", "encoding"), says(response(cut, mark))),
        Case(52, f"{coding}-broken", ("encoding", "truncated"), says(response(half + b"\xff" * 600, mark))),
        Case(53, f"{coding}-in-members", ("",), says(response(parts, mark)), links=1),
        Case(53, f"{coding}-called-gzip", ("", "not-readable", "encoding"), says(response(once, _GZIP))),
    )


CASES = (
    *_newer("br"),
    *_newer("zstd"),
    Case(48, "gzip-bomb", ("too-large", "ratio-too-large", "encoding"), says(response(bomb(512), _GZIP))),
    Case(
        49,
        "gzip-twice",
        ("", "encoding"),
        says(response(gzip.compress(_ZIPPED, mtime=0), "Content-Encoding: gzip, gzip")),
    ),
    Case(50, "plain-as-gzip", ("", "encoding"), says(response(_BODY, _GZIP))),
    Case(51, "gzip-cut", ("truncated", "encoding"), says(response(_ZIPPED[: len(_ZIPPED) // 2], _GZIP))),
    Case(52, "gzip-bad-crc", ("encoding", "truncated"), says(response(_bad_crc(), _GZIP))),
    Case(53, "no-coding", ("",), says(response(_BODY, "Content-Encoding: utf-8")), links=1),
    Case(53, "coding-not-asked-for", ("encoding",), says(response(_BODY, "Content-Encoding: dcz"))),
    Case(
        54,
        "zipped-sitemap-as-xml",
        ("",),
        says(response(gzip.compress(_SITEMAP.encode(), mtime=0), mime="text/xml")),
        path="/sitemap.xml.gz",
    ),
    Case(
        55,
        "charset-lies",
        ("",),
        says(
            response(
                page("/caf\xe9.html", head='<meta charset="koi8-r">').encode("latin-1"), mime="text/html; charset=ascii"
            )
        ),
        links=1,
    ),
    Case(
        55,
        "charset-unknown",
        ("",),
        says(response(page("/ok.html", head='<meta charset="klingon">'), mime="text/html; charset=x-none")),
        links=1,
    ),
    Case(
        56, "utf-8-broken", ("",), says(response(page("/ok.html").encode() + b"\xff\xfe\xc0\x80\xed\xa0\x80")), links=1
    ),
    Case(56, "nul-bytes", ("",), says(response(page("/ok.html").replace("<p>", "<p>\0\0\0"))), links=1),
    Case(56, "utf-16-no-bom", ("",), says(response(page("/ok.html").encode("utf-16-le"), mime="text/html"))),
    Case(56, "utf-7", ("",), says(response("+ADw-a href=/no.html+AD4-", mime="text/html; charset=utf-7"))),
    Case(56, "surrogate-href", ("",), says(response(page("/ok.html", "/&#xD800;.html")))),
)
