"""Detection of a page's encoding: BOM > header > declaration in the first 1,024 bytes > UTF-8 if it decodes >
windows-1252.

Names are those of Python's codecs, after the WHATWG rule that the labels ascii and latin1 mean windows-1252 (what
browsers do, so what pages were tested with). A label that is unknown, or that hides ASCII (UTF-7), is as good as
none.
"""

from __future__ import annotations

import codecs
import re
from functools import lru_cache

FALLBACK = "cp1252"
HEAD = 1024
"""Bytes looked at for a declaration (the HTML standard's own number)."""

_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_DECLARED = re.compile(
    rb"<\?xml[^>]*?\sencoding\s*=\s*[\"']([^\"'>]+)"
    rb"|<meta\b[^>]*?\bcharset\s*=\s*[\"']?\s*([^\s\"'/>;]+)",
    re.IGNORECASE,
)
_WIDER = {
    "ascii": FALLBACK,
    "iso8859-1": FALLBACK,
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "utf-16": "utf-16-le",
}
_REFUSED = frozenset({"utf_7", "idna", "punycode", "unicode_escape", "raw_unicode_escape", "mbcs", "oem", "undefined"})
_ASCII_BELOW_80 = re.compile(r"utf-8|cp125\d|iso8859-\d+|koi8-[rut]|mac-\w+|cp8\d\d|cp1006").fullmatch


@lru_cache(maxsize=512)
def codec_of(label: str) -> str:
    """Python's codec for a charset label of the web, or an empty string where there is none we would use."""
    try:
        found = codecs.lookup(label.strip().strip("\"'"))
    except (LookupError, ValueError, UnicodeError):
        return ""
    name = found.name
    if name.replace("-", "_") in _REFUSED or not found._is_text_encoding:  # base64, rot13 ... are no charsets
        return ""
    return _WIDER.get(name, name)


@lru_cache(maxsize=64)
def is_ascii_based(codec: str) -> bool:
    """Tell whether a byte below 0x80 always means its ASCII character, so that markup can be found in the bytes."""
    return _ASCII_BELOW_80(codec) is not None


def bom_of(head: bytes) -> tuple[str, int]:
    """(codec, length) of the byte order mark that `head` begins with, or ("", 0)."""
    for mark, codec in _BOMS:
        if head.startswith(mark):
            return codec, len(mark)
    return "", 0


def declared(head: bytes) -> str:
    """The codec that the first 1,024 bytes declare (XML declaration or meta), or an empty string.

    A declaration that could be read as ASCII is not in UTF-16, so one that says so means UTF-8 (HTML standard,
    prescan).
    """
    match = _DECLARED.search(head, 0, HEAD)
    if match is None:
        return ""
    codec = codec_of((match[1] or match[2]).decode("latin-1"))
    return "utf-8" if codec.startswith(("utf-16", "utf-32")) else codec


def codec_for(body: bytes, header: str, *, whole: bool = True) -> str:
    """The codec of a page that begins with `body`; `header`: the charset of Content-Type, empty where it had none.

    Where nothing declares one, `body` is tried as UTF-8; with `whole` false it may stop inside a character.
    """
    codec = bom_of(body)[0] or (codec_of(header) if header else "") or _bare_utf16(body) or declared(body)
    if codec:
        return codec
    try:
        codecs.getincrementaldecoder("utf-8")().decode(body, whole)
    except UnicodeDecodeError:
        return FALLBACK
    return "utf-8"


def _bare_utf16(body: bytes) -> str:
    """UTF-16 without a mark: markup begins with "<" and a zero byte beside it (XML 1.0 appendix F)."""
    if body[:1] == b"<" and body[1:2] == b"\0":
        return "utf-16-le"
    return "utf-16-be" if body[:2] == b"\0<" else ""
