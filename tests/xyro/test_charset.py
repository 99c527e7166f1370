"""A page's encoding, held against html5lib's cases and the HTML standard's own words."""

from __future__ import annotations

import pytest

from xyro.charset import HEAD, LATE, codec_for, codec_of, is_ascii_based

HTML5LIB = [
    (
        b"<!DOCTYPE HTML>\n<!-- control test -->",
        "windows-1252",
    ),
    (b'<!DOCTYPE HTML>\n<meta charset="ISO-8859-1">', "windows-1252"),
    (b'<!DOCTYPE HTML>\n<meta charset="iso8859-2">', "iso-8859-2"),
    (b"<!DOCTYPE HTML>\n<meta charset='iso8859-2'>", "iso-8859-2"),
    (b"<!DOCTYPE HTML>\n<meta charset=iso8859-2>", "iso-8859-2"),
    (b"<!DOCTYPE HTML>\n<meta\ncharset=iso8859-2>", "iso-8859-2"),
    (b"<!DOCTYPE HTML>\n<metacharset=iso8859-2>", "windows-1252"),
    (
        b'<!DOCTYPE HTML>\n<meta http-equiv="Content-Type" content="text/html; charset=iso8859-2">',
        "iso-8859-2",
    ),
    (
        b'<!DOCTYPE HTML>\n<meta content="text/html; charset=iso8859-2" http-equiv="Content-Type">',
        "iso-8859-2",
    ),
    (b'<!DOCTYPE HTML>\n<meta http-equiv="Content-Type" content=text/html; charset=iso8859-2>', "iso-8859-2"),
    (b'<!DOCTYPE HTML>\n<meta http-equiv="Content-Type content="text/html; charset=iso8859-2">', "windows-1252"),
    (b'<!DOCTYPE HTML>\n<meta http-equiv="Content-Type " content="text/html; charset=iso8859-2">', "windows-1252"),
    (b'<!DOCTYPE HTML>\n<meta content="text/html; charset=iso8859-2" http-equiv="Content-Type ">', "windows-1252"),
    (b'<!DOCTYPE HTML>\n<meta http-equiv="Content-Type>" content="text/html; charset=iso8859-2">', "windows-1252"),
    (b'<!DOCTYPE HTML>\n<meta content="text/html; charset=iso8859-2" http-equiv="Content-Type>">', "windows-1252"),
    (b'<!DOCTYPE HTML>\n<meta http-equiv="Content-Style-Type" content="text/html; charset=iso8859-2">', "windows-1252"),
    (b'<!DOCTYPE HTML>\n<meta content="text/html; charset=iso8859-2" http-equiv="Content-Style-Type">', "windows-1252"),
    (b'<!DOCTYPE HTML>\n<meta name="Content-Style-Type" content="text/html; charset=iso8859-2">', "windows-1252"),
    (b'<!DOCTYPE HTML>\n<meta content="text/html; charset=iso8859-2" name="Content-Style-Type">', "windows-1252"),
    (b'<!DOCTYPE HTML>\n<meta content="text/html; charset=iso8859-2">', "windows-1252"),
    (b'<!DOCTYPE HTML>\n<meta content=" text/html; charset = iso8859-2 ">', "windows-1252"),
    (b'<!DOCTYPE HTML>\n<meta content="\ntext/html; charset=iso8859-2\n" http-equiv="Content-Type">', "iso-8859-2"),
    (b'<!DOCTYPE HTML>\n<meta charset="\niso8859-2\n">', "iso-8859-2"),
    (b"<!DOCTYPE HTML>\n<meta charset=\niso8859-2\n>", "iso-8859-2"),
    (b'<!DOCTYPE HTML>\n<meta charset="iso8859-2>\n<p>"</p>', "windows-1252"),
    (b'<!DOCTYPE HTML>\n<meta charset=iso8859-2">\n<p>"</p>', "windows-1252"),
    (b'<!DOCTYPE HTML>\n<meta " charset=iso8859-2>\n<p>"</p>', "iso-8859-2"),
    (b'<!DOCTYPE HTML>\n<meta test" charset=iso8859-2>\n<p>"</p>', "iso-8859-2"),
    (b'<!DOCTYPE HTML>\n<meta test=" charset=iso8859-2>\n<p>"</p>', "windows-1252"),
    (b"<!DOCTYPE HTML>\n<meta test=\"' charset=iso8859-2>\n<p>\"'</p>", "windows-1252"),
    (b"<!DOCTYPE HTML>\n<meta test='\" charset=iso8859-2>\n<p>'\"</p>", "windows-1252"),
    (b'<!DOCTYPE HTML>\n<meta test="" charset=iso8859-2>', "iso-8859-2"),
    (b'<!DOCTYPE HTML>\n<meta test=x" charset=iso8859-2>\n<p>"</p>', "iso-8859-2"),
    (b'<!DOCTYPE HTML>\n<head></head><p title="x>\n<meta test=x" charset=iso8859-2>\n<p>"</p>', "windows-1252"),
    (b'<!DOCTYPE HTML>\n<head></head><p title="x>\n<meta test=x charset=iso8859-2>\n<p>"</p>', "windows-1252"),
    (b'<!DOCTYPE HTML>\n<head></head><p title="x>\n<meta charset=iso8859-2>\n<p>"</p>', "windows-1252"),
    (b'<!DOCTYPE HTML>\n<head></head><p title="x>">\n<meta charset=iso8859-2>\n<p>"</p>', "iso-8859-2"),
    (b'<!DOCTYPE HTML>\n<meta charset="ISO-8859-1">\n<meta charset="iso8859-2">', "windows-1252"),
    (b'<!DOCTYPE HTML>\n<meta charset="iso8859-2">\n<meta charset="ISO-8859-1">', "iso-8859-2"),
    (b'<!DOCTYPE HTML>\n<!--<meta charset="ISO-8859-1">-->\n<meta charset="iso8859-2">', "iso-8859-2"),
    (b'<!DOCTYPE HTML>\n<!--<meta charset="iso8859-2">-->\n<meta charset="ISO-8859-1">', "windows-1252"),
    (b"\xef\xbb\xbf<!DOCTYPE HTML>\n<!-- Starts with UTF-8 BOM -->", "utf-8"),
    (b'\xef\xbb\xbf<!DOCTYPE HTML>\n<meta charset="ISO-8859-1">\n<!-- Starts with UTF-8 BOM -->', "utf-8"),
    (b"<!-- 511 characters " + b"x" * 461 + b'-->\n<meta charset="iso8859-2">', "iso-8859-2"),
    (b"<!-- 512 characters " + b"x" * 460 + b'-->\n<meta charset="iso8859-2">', "iso-8859-2"),
    (b"<!-- 1024 characters " + b"x" * 971 + b'-->\n<meta charset="iso8859-2">', "iso-8859-2"),
    (b"<!-- 1025 characters " + b"x" * 971 + b'z-->\n<meta charset="iso8859-2">', "iso-8859-2"),
    (b"<!-- 2048 characters " + b"x" * 1995 + b'-->\n<meta charset="iso8859-2">', "iso-8859-2"),
    (b"<!-- 2049 characters " + b"x" * 1995 + b'z-->\n<meta charset="iso8859-2">', "iso-8859-2"),
    (b"<!-- 4096 characters " + b"x" * 4043 + b'-->\n<meta charset="iso8859-2">', "iso-8859-2"),
    (b"<!-- 4097 characters " + b"x" * 4043 + b'z-->\n<meta charset="iso8859-2">', "iso-8859-2"),
    (b"<!-- 8192 characters " + b"x" * 8139 + b'-->\n<meta charset="iso8859-2">', "iso-8859-2"),
    (b"<!-- 8193 characters " + b"x" * 8139 + b'z-->\n<meta charset="iso8859-2">', "iso-8859-2"),
    (
        b"<!-- multi-script test -->\n<script>alert('step 1 of 3 (\"\xfe\")')</script>\n<!-- "
        + b"+" * 8192
        + b' -->\n<script>alert(\'step 2 of 3 ("\xfe")\')</script>\n<meta charset="iso8859-2">\n'
        + b"<script>alert('step 3 of 3 (\"\xfe\")')</script>",
        "iso-8859-2",
    ),
    (b"<!DOCTYPE HTML>\n<script>document.write('<meta charset=\"iso8859-2\">')</script>", "iso-8859-2"),
    (b'<!DOCTYPE HTML>\n<script type="text/plain"><meta charset="iso8859-2"></script>', "iso-8859-2"),
    (b'<!DOCTYPE HTML>\n<style type="text/plain"><meta charset="iso8859-2"></style>', "iso-8859-2"),
    (b'<!DOCTYPE HTML>\n<p><meta charset="iso8859-2"></p>', "iso-8859-2"),
    (b'<!DOCTYPE HTML>\n<meta charset="bogus">\n<meta charset="iso8859-2">', "iso-8859-2"),
    (b"<meta", "windows-1252"),
    (b"<", "windows-1252"),
    (b"<!", "windows-1252"),
    (b'<meta charset = "', "windows-1252"),
    (b"<meta charset=euc-jp", "windows-1252"),
    (b"<meta <meta charset='euc-jp'>", "euc-jp"),
    (b"<meta       charset    =     'euc-jp'>", "euc-jp"),
    (b'<!-- -->\n<meta http-equiv="Content-Type" content="text/html; charset=utf-8">', "utf-8"),
    (b'<!-- -->\n<meta http-equiv="Content-Type" content="text/html; charset=utf', "windows-1252"),
    (b'<meta http-equiv="Content-Type<meta charset="utf-8">', "windows-1252"),
    (b'<meta http-equiv="Content-Type" content="text/html; charset=\'utf-8\'">', "utf-8"),
    (b'<meta http-equiv="Content-Type" content="text/html; charset=\'utf-8">', "windows-1252"),
    (b"<meta" + b" " * 609, "windows-1252"),
    (b"<meta charset                    =" + b" " * 588, "windows-1252"),
    (b"<meta charset=" + b" " * 604 + b"utf-8\n>", "utf-8"),
    (b'<meta content = "text/html;', "windows-1252"),
    (b'<meta charset="UTF-16">', "utf-8"),
    (b'<meta charset="UTF-16LE">', "utf-8"),
    (b'<meta charset="UTF-16BE">', "utf-8"),
    (b'<html a=\xc3\xb1>\n<meta charset="utf-8">', "utf-8"),
    (b'<html \xc3\xb1>\n<meta charset="utf-8">', "utf-8"),
    (b'<html>\xc3\xb1\n<meta charset="utf-8">', "utf-8"),
]
"""Pages and their encodings by html5lib-tests (encoding/tests1.dat and tests2.dat), but for the one whose <meta> a
script writes in two halves."""


@pytest.mark.parametrize(("page", "encoding"), HTML5LIB, ids=range(len(HTML5LIB)))
def test_html5lib_says_so(page: bytes, encoding: str) -> None:
    codec = codec_of(encoding)
    doubt = b"\xe9" if codec == "cp1252" else b""  # a page in ASCII that declares nothing is as well read as UTF-8
    assert codec_for(page + doubt, "") == codec


@pytest.mark.parametrize(
    ("page", "codec"),
    [
        (b"<!--><meta charset=koi8-r>-->", "koi8-r"),  # the dashes of "<!--" may be those of "-->"
        (b"<!---><meta charset=koi8-r>-->", "koi8-r"),
        (b"<!--x--!><meta charset=koi8-r>", "utf-8"),  # --!> ends no comment here
        (b"<!-x--><meta charset=koi8-r>", "koi8-r"),
        (b"<?php echo '>' ?><meta charset=koi8-r>", "koi8-r"),
        (b"</ meta charset=koi8-r><meta charset=cp1251>", "cp1251"),
        (b"</meta charset=koi8-r><meta/charset=cp1251>", "cp1251"),
        (b'<a title="<meta charset=koi8-r>"><meta charset=cp1251>', "cp1251"),
        (b"<a title=x'y'><meta charset=cp1251>", "cp1251"),
        (b"a < b <1 <<meta charset=cp1251>", "cp1251"),
        (b"<META CHARSET=' KOI8-R '>", "koi8-r"),
        (b"<meta charset=koi8-r charset=cp1251>", "koi8-r"),  # the first of equal names
        (b"<meta =charset=koi8-r charset = cp1251 >", "cp1251"),
        (b"<meta charset=koi8-r http-equiv=x content='charset=cp1251'>", "koi8-r"),
        (b"<meta http-equiv=content-type content='charset charset = koi8-r;x'>", "koi8-r"),
        (b"<meta http-equiv=content-type content='charset=\"koi8-r'>", "utf-8"),
        (b"<meta http-equiv=refresh content='0;charset=koi8-r'><meta charset=cp1251>", "cp1251"),
        (b"<meta charset=klingon><meta charset=x-user-defined>", "cp1252"),
        (b"<meta charset='koi8-r", "utf-8"),
        (b"<p title='><meta charset=koi8-r>", "utf-8"),
        (b"<?xml version='1.0' encoding='koi8-r'?><meta charset=cp1251>", "cp1251"),  # last of all
        (b"<?xml version='1.0' encoding = \"utf-16\" ?><p>", "utf-8"),
        (b"<?xml version='1.0' encoding='ko i8-r'?>", "utf-8"),
        (b" <?xml version='1.0' encoding='koi8-r'?>", "utf-8"),
        (b"<?xml version='1.0' encoding='koi8-r", "utf-8"),
        (b" " * (HEAD - 20) + b"<meta charset=koi8-r>", "koi8-r"),  # cut in two by the prescan's end
        (b" " * HEAD + b"<script>'<meta charset=koi8-r>'</script><meta charset=cp1251>", "cp1251"),
        (b" " * HEAD + b"<Title><meta charset=koi8-r></tiTle><meta charset=cp1251>", "cp1251"),
        (b" " * HEAD + b"<script><meta charset=koi8-r>", "utf-8"),
        (b" " * LATE + b"<meta charset=koi8-r>", "utf-8"),
    ],
)
def test_the_standard_says_so(page: bytes, codec: str) -> None:
    assert codec_for(page, "") == codec


@pytest.mark.parametrize(
    ("label", "codec"),
    [
        ("x-sjis", "cp932"),
        ("Windows-949", "cp949"),
        ("ISO88591", "cp1252"),
        ("iso885915", "iso8859-15"),
        ("iso-8859-8-i", "iso8859-8"),
        ("x-cp1251", "cp1251"),
        ("x-gbk", "gb18030"),
        ("unicode-1-1-utf-8", "utf-8"),
        (" UTF8 ", "utf-8"),
        ("hz-gb-2312", ""),
        ("iso-2022-kr", ""),
        ("replacement", ""),
        ("'utf-8'", ""),
    ],
)
def test_labels_are_those_of_the_encoding_standard(label: str, codec: str) -> None:
    assert codec_of(label) == codec


def test_a_title_before_a_meta_that_declares_nothing() -> None:
    """Found by fuzzing: Python 3.11's re raised SystemError."""
    for title in (b"<title>x</title>", b"<script>x</script y='z'>", b"<style></style>"):
        for meta in (b"<meta " + b"x" * HEAD + b">", b"<meta name=generator>" + b"x" * HEAD):
            assert codec_for(b"charset" + title + b"<b>" + meta + b"<a href='", "") == "utf-8"
            assert codec_for(b"charset" + title + b"<b>" + meta + b"<meta charset=koi8-r>", "") == "koi8-r"


HOSTILE = [
    b"<meta ",
    b"<!--",
    b"<a b=",
    b"<meta a='",
    b"<script>",
    b"</",
    b"<",
    b"<meta a>",
    b"=",
    b"<!-->",
    b"<title><",
]


@pytest.mark.parametrize("piece", HOSTILE)
@pytest.mark.parametrize("declared", [b"", b"charset=x"])
def test_hostile_beginnings_are_no_declarations(piece: bytes, declared: bytes) -> None:
    """They are read to the end in one go: where a step were taken twice, these would take minutes."""
    assert codec_for(piece * (2 * LATE // len(piece)), "") == "utf-8"
    assert codec_for(declared + piece * (2 * LATE // len(piece)), "") == "utf-8"
    assert is_ascii_based("utf-8")
