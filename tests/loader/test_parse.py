"""Bodies become the same events however they are cut, in any encoding; every limit has its name and its exact place."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xyro.loader.needs import NOTHING, ShelfPart
from xyro.loader.parse import FAULTS, PIECE, Attributes, ParseLimits, XmlFault, pieces, read

XML = '<?xml version="1.0"?><r a="1" xml:base="b/">é&lt;<k b="2">x</k>t<!-- c --> u<e/><![CDATA[<&]]></r>\n'
EVENTS = [
    ("base", "b/"),
    ("start", "r", {"a": "1", "{http://www.w3.org/XML/1998/namespace}base": "b/"}),
    ("start", "k", {"b": "2"}),
    ("end", "k", "x"),
    ("start", "e", {}),
    ("end", "e", ""),
    ("end", "r", "<&"),
    ("base", None),
]


class Recorder:
    """A handler that writes down what it is told about the tags r, k and e."""

    def __init__(self) -> None:
        self.events: list[object] = []
        self.starts: dict[str, Callable[[Attributes], None]] = {tag: self._start(tag) for tag in "rke"}
        self.ends: dict[str, Callable[[str], None]] = {tag: self._end(tag) for tag in "rke"}

    def _start(self, tag: str) -> Callable[[Attributes], None]:
        return lambda attrib: self.events.append(("start", tag, dict(attrib)))

    def _end(self, tag: str) -> Callable[[str], None]:
        return lambda text: self.events.append(("end", tag, text))

    def linked(self, tag: str, attrib: Attributes) -> None:
        self.events.append(("linked", tag))

    def rebase(self, base: str | None) -> None:
        self.events.append(("base", base))


def nothing(system: str, public: str) -> ShelfPart:
    return NOTHING


def events(parts: Iterable[bytes], charset: str = "", limits: ParseLimits | None = None) -> list[object]:
    recorder = Recorder()
    read(parts, charset, lambda tag: recorder, limits or ParseLimits(), nothing)
    return recorder.events


def fault(body: bytes, charset: str = "", limits: ParseLimits | None = None) -> str:
    limits = limits or ParseLimits()
    with pytest.raises(XmlFault) as caught:
        events(pieces(body, limits), charset, limits)
    assert caught.value.kind in FAULTS
    return caught.value.kind


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_every_cut_gives_the_same_events(encoding: str) -> None:
    body = XML.encode(encoding)
    assert events([body]) == EVENTS
    for cut in range(len(body) + 1):
        assert events([body[:cut], body[cut:]] if 0 < cut < len(body) else [body]) == EVENTS, cut
    assert events([body[i : i + 1] for i in range(len(body))]) == EVENTS


@pytest.mark.parametrize(
    ("head", "charset", "encoding"),
    [
        (b"\xef\xbb\xbf", "iso-8859-1", "utf-8"),  # byte order mark before charset
        (b"\xef\xbb\xbf<?xml version='1.0' encoding='iso-8859-1'?>", "", "utf-8"),  # and before the declaration
        (b"<?xml version='1.0' encoding='utf-16'?>", "windows-1252", "windows-1252"),  # charset before declaration
        (b"<?xml version='1.0' encoding='iso-8859-15'?>", "", "iso-8859-15"),
        (b"<?xml version='1.0' encoding='koi8-r'?>", "no-such-charset", "koi8-r"),  # a charset that nobody knows
        (b"<?xml version='1.0' encoding='utf-8'?>", "nul\0l", "utf-8"),
        (b"", "shift_jis", "shift_jis"),
        (b" \r\n\t<?xml version='1.0'?>", "", "utf-8"),
    ],
)
def test_whom_an_encoding_is_believed(head: bytes, charset: str, encoding: str) -> None:
    word = {"koi8-r": "Ы", "shift_jis": "日"}.get(encoding, "€" if encoding != "iso-8859-1" else "é")
    body = head + b"<k>" + word.encode(encoding) + b"</k>"
    assert events([body], charset)[-1] == ("end", "k", word)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", "empty"),
        (b" \n\t ", "empty"),
        (b"hello", "not-well-formed"),
        (b"<r>", "not-well-formed"),
        (b"<r><!-- open", "not-well-formed"),
        (b"<r/><r/>", "not-well-formed"),
        (b"<r>a & b</r>", "not-well-formed"),
        (b"<r a='1' a='2'/>", "not-well-formed"),
        (b"<r>\0</r>", "not-well-formed"),
        (b"<r>&nbsp;</r>", "undeclared-entity"),
        (b"<?xml version='1.0' standalone='yes'?><!DOCTYPE r SYSTEM 'x'><r>&nbsp;</r>", "undeclared-entity"),
        (b"<?xml version='1.1'?><r>&#1;</r>", "xml-version"),
        (b"<?xml version='2.0'?><r/>", "xml-version"),
        (b"<?xml version='1.0' encoding='x-klingon'?><r/>", "encoding"),
        (b"<r>\xe9t\xe9</r>", "encoding"),
        ("<r>é</r>".encode("utf-16")[:-3], "not-well-formed"),
        (b"<r" + b"x" * 60_000 + b"/>", "text-too-long"),
    ],
)
def test_faults_have_names(body: bytes, kind: str) -> None:
    assert fault(body) == kind


def test_xml_1_1_without_its_novelties_is_read_as_1_0() -> None:
    assert events([b"<?xml version='1.1'?><k/>"])[-1] == ("end", "k", "")


def test_lying_charset() -> None:
    assert fault(b"<r>\xc3\xa9</r>", "us-ascii") == "encoding"


def test_events_before_a_fault_are_told() -> None:
    recorder = Recorder()
    with pytest.raises(XmlFault):
        read([b"<r><k>x</k><e></r>"], "", lambda tag: recorder, ParseLimits(), nothing)
    assert ("end", "k", "x") in recorder.events


def test_limits_hold_exactly() -> None:
    three = ParseLimits(depth=3, attributes=2, nodes=5)
    assert events([b"<r><k><e/></k></r>"], limits=three)
    assert fault(b"<r><k><e><k/></e></k></r>", limits=three) == "too-deep"
    assert events([b"<r a='' b=''><k/></r>"], limits=three)
    assert fault(b"<r a='' b='' c=''/>", limits=three) == "too-many-attributes"
    assert events([b"<r><k a='' b=''/><e/></r>"], limits=three)
    assert fault(b"<r><k a='' b=''/><e/><e/></r>", limits=three) == "too-many-nodes"


def test_long_text_and_long_prolog() -> None:
    short = ParseLimits(text=3 * PIECE, prolog=2 * PIECE)
    assert events([b"<r>", b"x" * PIECE, b"x" * PIECE, b"<e/>", b"x" * PIECE, b"x" * PIECE, b"</r>"], limits=short)
    assert fault(b"<r>" + b"x" * (5 * PIECE) + b"</r>", limits=short) == "text-too-long"
    assert fault(b"<r><!--" + b"x" * (5 * PIECE) + b"--></r>", limits=short) == "text-too-long"
    assert fault(b"<!--" + b"x" * (4 * PIECE) + b"--><r/>", limits=short) == "prolog-too-long"


@given(st.binary(max_size=300), st.integers(1, 9))
def test_unzipping_is_the_inverse_of_zipping(data: bytes, level: int) -> None:
    body = b"<r>" + data * 700
    assert b"".join(pieces(body, ParseLimits())) == body
    assert b"".join(pieces(gzip.compress(body, level), ParseLimits(ratio=100_000))) == body


def test_members_follow_each_other_and_trailing_bytes_are_ignored() -> None:
    zipped = gzip.compress(b"<r>") + gzip.compress(b"") + gzip.compress(b"</r>") + b"\0\0trailing"
    assert b"".join(pieces(zipped, ParseLimits())) == b"<r></r>"


def test_pieces_are_bounded() -> None:
    body = bytes(5 * PIECE + 1)
    assert max(map(len, pieces(body, ParseLimits()))) <= PIECE
    assert max(map(len, pieces(gzip.compress(body), ParseLimits()))) <= PIECE


@pytest.mark.parametrize("cut", [1, 8, 9, 20, -1])
def test_a_gzip_cut_short_keeps_what_came(cut: int) -> None:
    zipped = gzip.compress(b"<r>" + bytes(range(256)) * 4, 1)
    came = b""
    with pytest.raises(XmlFault, match="gzip-broken"):
        for piece in pieces(zipped[:-cut] if cut > 0 else zipped[:5], ParseLimits()):
            came += piece
    assert b"<r>".startswith(came[:3])


def test_gzip_damage_and_bombs() -> None:
    good = gzip.compress(b"<r/>")
    assert fault(good[:-8] + bytes(4) + good[-4:]) == "gzip-broken"
    assert fault(gzip.compress(b"") * 3_000) == "gzip-bomb"
    assert fault(gzip.compress(b"<r>" + b"<e/>" * 1_000_000)) == "gzip-bomb"
    small = ParseLimits(body=100_000)
    assert fault(b"<r>" + b"x" * 100_000 + b"</r>", limits=small) == "too-large"
    assert fault(gzip.compress(b"<r>" + b"x" * 200_000 + b"</r>"), limits=small) == "too-large"


def test_gzip_inside_gzip_is_not_unzipped_twice() -> None:
    assert fault(gzip.compress(gzip.compress(b"<r/>"))) in ("not-well-formed", "encoding")


@given(st.binary(max_size=200))
def test_any_bytes_end_well_or_in_a_named_fault(noise: bytes) -> None:
    for body in (noise, b"<r>" + noise, b"\x1f\x8b\x08" + noise, gzip.compress(noise), zlib.compress(noise)):
        try:
            events(pieces(body, ParseLimits()))
        except XmlFault as error:
            assert error.kind in FAULTS


def test_an_undeclared_prefix_is_forgiven() -> None:
    """Well-formed XML 1.0 though not by Namespaces in XML: feeds forget to declare them."""
    assert events([b"<p:r><k/></p:r>"])[1:3] == [("start", "k", {}), ("end", "k", "")]
