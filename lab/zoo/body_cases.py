"""Zoo C: content codings, sizes and character sets (cases 48 to 56)."""

from __future__ import annotations

import gzip
import zlib

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


CASES = (
    Case(48, "gzip-bomb", ("too-large", "encoding"), says(response(bomb(512), _GZIP))),
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
    Case(53, "coding-not-asked-for", ("encoding",), says(response(_BODY, "Content-Encoding: br"))),
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
