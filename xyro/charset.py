"""Detection of a page's encoding: BOM > header > declaration in the first 1,024 bytes > a later one > UTF-8 if it
decodes > windows-1252.

The prescan is the HTML standard's (13.2.3.2, "prescan a byte stream to determine its encoding"). A <meta> beyond its
bytes, which a browser meets when it parses and then begins anew, is looked for where nothing else was declared.

Names are those of Python's codecs, after the WHATWG rule that the labels ascii and latin1 mean windows-1252 (what
browsers do, so what pages were tested with). A label that is unknown, or that hides ASCII (UTF-7), is as good as
none.
"""

from __future__ import annotations

import codecs
import re
from functools import cache, lru_cache

FALLBACK = "cp1252"
HEAD = 1024
"""Bytes looked at for a declaration (the HTML standard's own number)."""
LATE = 16 * 1024
"""Bytes looked at for a <meta> if there was none in the first."""

_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
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
    "big5": "big5hkscs",
}
_LABELS = {
    "utf-8": "unicode-1-1-utf-8 unicode11utf8 unicode20utf8 x-unicode20utf8",
    "utf-16-le": "csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff",
    "utf-16-be": "unicodefffe",
    "iso8859-6": "csiso88596e csiso88596i iso-8859-6-e iso-8859-6-i",
    "iso8859-7": "sun_eu_greek",
    "iso8859-8": "csiso88598e csiso88598i iso-8859-8-e iso-8859-8-i logical visual",
    "iso8859-15": "csisolatin9",
    "koi8-r": "koi koi8",
    "koi8-u": "koi8-ru",
    "mac-roman": "csmacintosh mac x-mac-roman",
    "mac-cyrillic": "x-mac-cyrillic x-mac-ukrainian",
    "cp874": "dos-874 windows-874",
    FALLBACK: "x-user-defined",
    "gb18030": "csgb2312 gb_2312 gb_2312-80 x-gbk",
    "big5hkscs": "cn-big5 x-x-big5",
    "euc_jp": "cseucpkdfmtjapanese x-euc-jp",
    "cp932": "windows-31j x-sjis",
    "cp949": "cseuckr csksc56011987 iso-ir-149 ks_c_5601-1989 ksc_5601 windows-949",
}
_CODECS = {label: codec for codec, labels in _LABELS.items() for label in labels.split()}
"""Labels of the Encoding Standard (4.2) that Python does not know: the codec that they mean."""
_IS_LABEL = re.compile(r"[a-z0-9][a-z0-9._:+()-]*+").fullmatch
"""Python's own look-up reads over whatever else stands in a name, quotes too."""
_SPELT = re.compile(r"x-(cp125\d)|(iso8859)(\d\d?)").fullmatch
_REFUSED = frozenset(
    {
        *("utf_7", "idna", "punycode", "unicode_escape", "raw_unicode_escape", "mbcs", "oem", "undefined"),
        *("hz", "iso2022_kr"),  # the standard's "replacement": markup can hide in them
    }
)
_ASCII_BELOW_80 = re.compile(r"utf-8|cp125\d|iso8859-\d+|koi8-[rut]|mac-\w+|cp8\d\d|cp1006").fullmatch

_SPACE = r"[\t\n\f\r ]"
_NAME = r"[^>/\t\n\f\r ][^=>/\t\n\f\r ]*+"
_VALUE = r"""(?:"[^"]*+"|'[^']*+'|(?!["'])[^>\t\n\f\r ]*+)"""
_PAIRS = rf"(?:[\t\n\f\r /]*+{_NAME}{_SPACE}*+(?:={_SPACE}*+{_VALUE}|(?!=)))*+"
_END = r"[\t\n\f\r /]*+>"
_META = r"meta(?=[\t\n\f\r /])"
_RAW = ("script", "style", "title", "textarea", "iframe", "noembed", "noframes", "xmp")


@cache  # of the two, most crawls need the short one alone: the other takes 4 ms to compile
def _walk(raw: bool) -> re.Pattern[bytes]:
    """The way to the next <meta>, or to what does not end.

    `raw`: markup in a script, a style ... is none, as for a parser; the prescan does not look that close. No group of
    it is captured: within possessive repetitions that makes Python 3.11 fail (SystemError).
    """
    ends = r"(?=[\t\n\f\r />])"
    texts = [rf"<{name}{ends}{_PAIRS}{_END}(?:[^<]++|<(?!/{name}))*+</{name}[^>]*+>|" for name in (_RAW if raw else ())]
    barred = "|".join([_META, *(name + ends for name in (_RAW if raw else ()))])
    comment = r"<!(?=--)[^>]*+(?:(?<!--)>[^>]*+)*+(?<=--)>"
    tag = rf"/?[a-z][^>\t\n\f\r ]*+{_PAIRS}{_END}"
    other = rf"<(?!{barred})(?:{tag}|(?![a-z!/?])|!(?!--)[^>]*+>|/(?![a-z])[^>]*+>|\?[^>]*+>)"
    return re.compile(rf"(?:[^<]++|{''.join(texts)}{comment}|{other})*+".encode(), re.I)


_DECLARATION = re.compile(rf"<{_META}({_PAIRS}){_END}".encode(), re.I).match
_ATTRIBUTE = re.compile(rf"[\t\n\f\r /]*+({_NAME}){_SPACE}*+(?:={_SPACE}*+({_VALUE}))?+".encode()).findall
_IN_CONTENT = re.compile(
    rb"""charset[\t\n\f\r ]*+=[\t\n\f\r ]*+(?:"([^"]*+)"|'([^']*+)'|(?!["'])([^\t\n\f\r ;]*+)|)""", re.IGNORECASE
).search
_IN_XML = re.compile(
    rb"""<\?xml(?:(?!encoding)[^>])*+encoding[\0- ]*+=[\0- ]*+(?:"([^"\0- ]*+)"|'([^'\0- ]*+)')"""
).match


@lru_cache(maxsize=512)
def codec_of(label: str) -> str:
    """Python's codec for a charset label of the web, or an empty string where there is none we would use."""
    name = label.strip().lower()
    if not _IS_LABEL(name):
        return ""
    if name in _CODECS:
        return _CODECS[name]
    spelt = _SPELT(name)
    if spelt:
        name = spelt[1] or f"{spelt[2]}-{spelt[3]}"
    try:
        found = codecs.lookup(name)
    except (LookupError, ValueError, UnicodeError):
        return ""
    if found.name.replace("-", "_") in _REFUSED or not found._is_text_encoding:  # base64, rot13 ... are no charsets
        return ""
    return _WIDER.get(found.name, found.name)


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
    """The codec that a <meta> or an XML declaration in the first 1,024 bytes declares, or an empty string."""
    codec = _first_of(_walk(raw=False), head, HEAD)
    if codec:
        return codec
    match = _IN_XML(head, 0, HEAD)
    return _readable(match[1] or match[2]) if match else ""


def _declared_late(body: bytes) -> str:
    """The codec of a <meta> that the prescan does not reach, but the parser would."""
    if len(body) <= HEAD or b"charset" not in body[:LATE].lower():
        return ""
    return _first_of(_walk(raw=True), body, LATE)


def _first_of(walk: re.Pattern[bytes], body: bytes, end: int) -> str:
    """The codec of the first <meta> that declares a known one."""
    position = 0
    while True:
        way = walk.match(body, position, end)
        match = _DECLARATION(body, way.end() if way else position, end)
        if match is None:
            return ""
        codec = _of_meta(match[1])
        if codec:
            return codec
        position = match.end()


@lru_cache(maxsize=128)
def _of_meta(pairs: bytes) -> str:
    """The codec that a <meta> with these attributes declares, by itself or as a pragma; empty if it declares none."""
    attributes: dict[bytes, bytes] = {}
    for name, value in _ATTRIBUTE(pairs):
        attributes.setdefault(name.lower(), value[1:-1] if value[:1] in (b'"', b"'") else value)
    if b"charset" in attributes:
        return _readable(attributes[b"charset"])
    if attributes.get(b"http-equiv", b"").lower() != b"content-type":
        return ""
    match = _IN_CONTENT(attributes.get(b"content", b""))
    return _readable(match[1] or match[2] or match[3] or b"") if match else ""


def _readable(label: bytes) -> str:
    """The codec of a label in a declaration: one that could be read as ASCII is not in UTF-16, it means UTF-8."""
    codec = codec_of(label.decode("latin-1"))
    return "utf-8" if codec.startswith(("utf-16", "utf-32")) else codec


def codec_for(body: bytes, header: str, *, whole: bool = True) -> str:
    """The codec of a page that begins with `body`; `header`: the charset of Content-Type, empty where it had none.

    Where nothing declares one, `body` is tried as UTF-8; with `whole` false it may stop inside a character.
    """
    codec = bom_of(body)[0] or (codec_of(header) if header else "") or _bare_utf16(body) or declared(body)
    codec = codec or _declared_late(body)
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
