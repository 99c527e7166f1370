"""Kind from media type, suffix and first bytes."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.doctype import is_gzip, kind_of, readable
from xyro.wire.messages import Kind

U = "http://h.org/"


@pytest.mark.parametrize(
    ("mime", "path", "answer"),
    [
        ("text/html", "x.png", True),
        ("application/xhtml+xml", "", True),
        ("text/xml", "", True),
        ("application/xml", "", True),
        ("application/atom+xml", "", True),
        ("application/xml-dtd", "", True),
        ("image/svg+xml", "a.svg", False),
        ("", "a", None),
        ("application/octet-stream", "a.bin", None),
        ("text/plain", "a.txt", False),
        ("text/plain", "a", False),
        ("text/plain", "a.xml", None),
        ("text/plain", "a.DTD", None),
        ("application/gzip", "sitemap.xml.gz", None),
        ("application/gzip", "x.tgz", False),
        ("image/png", "a.html", False),
        ("application/pdf", "a", False),
        ("application/json", "a", None),
        ("application/feed+json", "a", None),
        ("text/plain", "sitemap.txt", None),
        ("text/plain", "Sitemap-news_2.txt.gz", None),
        ("text/plain", "urllist.txt?a", None),
        ("text/plain", "sitemap/readme.txt", False),
        ("video/mp4", "", False),
    ],
)
def test_readable_on_the_headers(mime: str, path: str, answer: bool | None) -> None:
    assert readable(mime, U + path) is answer


XHTML = b'<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" "http://www.w3.org/TR/xhtml1/DTD/xhtml1-strict.dtd">'


@pytest.mark.parametrize(
    ("mime", "path", "head", "kind"),
    [
        ("application/feed+json", "", b'{"version": "https://jsonfeed.org/version/1.1"', Kind.XML),
        ("application/json", "", b'\xef\xbb\xbf {"version": "https://jsonfeed.org/version/1"', Kind.XML),
        ("application/json", "", b'{"a": 1}', Kind.OTHER),
        ("text/plain", "sitemap.txt", b"\xef\xbb\xbfhttps://h.org/a\n", Kind.XML),
        ("text/plain", "sitemap.txt", b"Here we explain sitemaps", Kind.OTHER),
        ("text/html", "", b"", Kind.HTML),
        ("text/html", "", b"anything", Kind.HTML),
        ("text/html", "", b'<?xml version="1.0"?>' + XHTML + b"<html>", Kind.HTML),
        ("text/html", "", b'<?xml version="1.0"?><!-- c --><rss version="2.0">', Kind.XML),
        ("text/html", "", b"<?xml version='1.0'?>\n<urlset xmlns='x'>", Kind.XML),
        ("text/html", "", b"<feed xmlns='http://www.w3.org/2005/Atom'>", Kind.XML),
        ("text/html", "", b"<p>about the <rss> element", Kind.HTML),
        ("application/xhtml+xml", "", b"<html xmlns='x'>", Kind.HTML),
        ("application/xhtml+xml", "", XHTML + b"<html>", Kind.HTML),
        ("application/xhtml+xml", "", b"<!DOCTYPE html SYSTEM 'my.dtd'><html>", Kind.XML),
        ("application/xhtml+xml", "", b'<!DOCTYPE html PUBLIC "x" "http://h.org/own.dtd"><html>', Kind.XML),
        ("application/xhtml+xml", "", b"<!DOCTYPE html><html>", Kind.HTML),
        ("text/xml", "", b"<html>", Kind.XML),
        ("application/rss+xml", "", b"garbage", Kind.XML),
        ("text/xml", "a.dtd", b"<!ELEMENT a (b)>", Kind.DTD),
        ("application/xml-dtd", "", b"", Kind.DTD),
        ("text/plain", "x.ent", b"<!ENTITY a 'b'>", Kind.DTD),
        ("", "", b"<!doctype HTML><html>", Kind.HTML),
        ("", "", b"\xef\xbb\xbf  <!-- x --><HTML>", Kind.HTML),
        ("", "", "\ufeff<?xml version='1.0'?><doc/>".encode("utf-16-le"), Kind.XML),
        ("", "", "<html>".encode("utf-16-be"), Kind.HTML),
        ("", "", b"<?xml version='1.0'?><x:doc/>", Kind.XML),
        ("", "", b"<rdf:RDF>", Kind.XML),
        ("", "a.xml", b"<doc>", Kind.XML),
        ("", "a", b"<doc>", Kind.OTHER),
        ("", "a.html", b"plain words", Kind.OTHER),
        ("application/octet-stream", "a", b"\x89PNG\r\n", Kind.OTHER),
        ("application/octet-stream", "sitemap.xml.gz", b"<urlset>", Kind.XML),
        ("application/gzip", "big.dtd.gz", b"<!ELEMENT a>", Kind.DTD),
        ("", "", b"", Kind.OTHER),
    ],
)
def test_kind_on_the_first_bytes(mime: str, path: str, head: bytes, kind: Kind) -> None:
    assert kind_of(mime, U + path, head) is kind


def test_packed_documents_are_told_by_their_magic() -> None:
    packed = gzip.compress(b"<urlset/>")
    for mime in ("text/xml", "application/gzip", "application/octet-stream", ""):
        assert is_gzip(mime, U + "sitemap.xml.gz", packed)
    assert not is_gzip("text/xml", U + "sitemap.xml.gz", b"<urlset/>")
    assert not is_gzip("text/html", U, packed)


@given(st.sampled_from(["", "text/html", "application/xhtml+xml", "text/xml", "text/plain"]), st.binary(max_size=400))
def test_no_bytes_raise(mime: str, head: bytes) -> None:
    assert isinstance(kind_of(mime, U + "a.xml", head), Kind)
