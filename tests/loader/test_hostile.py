"""Reliability 2 F: what is built to blow up ends by name, within 100 MB, with the links that came before it.

Everything runs in one process of its own under a limit of address space, so an attack that gets through fails the test
with MemoryError rather than taking the machine.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOM = 100 << 20
"""Bytes that attacks may take beyond what the interpreter and lxml take at rest; their own bytes are included."""


def attacks() -> dict[str, tuple[Callable[[], bytes], str]]:
    """Name -> (maker of the body, fault it must end in); each shows the link http://h.test/d/k before it attacks."""
    link = b'<a xmlns="http://www.w3.org/1999/xhtml" href="k">'
    laughs = b'<!DOCTYPE r [<!ENTITY a0 "ha">'
    laughs += b"".join(b'<!ENTITY a%d "%s">' % (i, b"&a%d;" % (i - 1) * 10) for i in range(1, 12)) + b"]>"
    values = b'<!DOCTYPE r [<!ENTITY a "%s">]><r>' % (b"x" * 100_000)
    big = 12_000_000
    return {
        "billion laughs": (lambda: laughs + b"<r>" + link + b"&a11;</a></r>", "entity-expansion"),
        "billion laughs in a value": (lambda: laughs + b"<r>" + link + b'<b c="&a11;"/></a></r>', "entity-expansion"),
        "quadratic": (lambda: values + link + b"&a;" * 100_000 + b"</a></r>", "entity-expansion"),
        "quadratic values": (lambda: values + link + b'<x a="&a;"/>' * 10_000 + b"</a></r>", "entity-expansion"),
        "recursive entity": (
            lambda: b'<!DOCTYPE r [<!ENTITY a "&b;"><!ENTITY b "&a;">]><r>' + link + b"&a;</a></r>",
            "entity-loop",
        ),
        "100,000 deep": (lambda: link + b"<a>" * 100_000 + b"</a>" * 100_001, "too-deep"),
        "200,000 attributes": (
            lambda: link + b"<b " + b" ".join(b'a%d="1"' % i for i in range(200_000)) + b"/></a>",
            "too-many-attributes",
        ),
        "2,000,000 elements": (lambda: link + b"<b/>" * 2_000_000 + b"</a>", "too-many-nodes"),
        "12 MB of text": (lambda: link + b"x" * big + b"</a>", "text-too-long"),
        "12 MB of references": (lambda: link + b"&lt;" * (big // 4) + b"</a>", "text-too-long"),
        "12 MB of comment": (lambda: link + b"<!--" + b"x" * big + b"--></a>", "text-too-long"),
        "12 MB of value": (lambda: link + b'<b c="' + b"x" * big + b'"/></a>', "text-too-long"),
        "12 MB of CDATA": (lambda: link + b"<![CDATA[" + b"x" * big + b"]]></a>", "text-too-long"),
        "1 MB of name": (lambda: link + b"<" + b"x" * 1_000_000 + b"/></a>", "text-too-long"),
        "a million references to a missing part": (
            lambda: b'<!DOCTYPE r [<!ENTITY e SYSTEM "e">]><r>' + link + b"&e;" * 1_000_000 + b"</a></r>",
            "entity-expansion",
        ),
        "10,000 missing parts": (
            lambda: (
                b"<!DOCTYPE r ["
                + b"".join(b'<!ENTITY e%d SYSTEM "m%d">' % (i, i) for i in range(10_000))
                + b"]><r>"
                + link
                + b"".join(b"&e%d;" % i for i in range(10_000))
                + b"</a></r>"
            ),
            "too-many-parts",
        ),
    }


def dtd_attacks() -> dict[str, tuple[bytes, str]]:
    nested = b"".join(b'<!ENTITY %% a%d "%s">' % (i, b"&#37;a%d;" % (i - 1) * 10) for i in range(1, 12))
    return {
        "laughing parameters": (b'<!ENTITY % a0 "<!--ha-->">' + nested + b"%a11;", "entity-expansion"),
        "a DTD that includes itself": (b'<!ENTITY % x SYSTEM "x-own:"> %x;', "entity-loop"),
        "a DTD over 4 MiB": (b"<!ELEMENT a EMPTY>" * 300_000, "too-large"),
    }


def defaults_attack() -> tuple[bytes, bytes]:
    """900 default attributes of 1 kB on each of 200,000 elements: by XML's rules 180 GB of attributes."""
    rows = b"".join(b'<!ATTLIST x a%d CDATA "%s">' % (i, b"v" * 1_000) for i in range(900))
    return rows, b'<!DOCTYPE r SYSTEM "x.dtd"><r>' + b"<x/>" * 200_000 + b"</r>"


def limit_memory() -> None:
    at_rest = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (at_rest + ROOM, at_rest + ROOM))


def main() -> None:
    from xyro.loader.intake import Intake
    from xyro.wire.messages import Kind, LoadReport, LoadState, XmlPage

    def load(
        body: bytes, kind: Kind = Kind.XML, intake: Intake | None = None, name: str = "doc.xml"
    ) -> list[LoadReport]:
        page = XmlPage(len(name), f"http://h.test/d/{name}", 1, 1.7e9, kind, "", "", body)
        return (intake or Intake()).take(page, 0.0)

    load(b"<r/>")
    limit_memory()
    for name in attacks():
        make, kind = attacks()[name]
        (report,) = load(make())
        assert (report.state, report.error) == (LoadState.FAILED, kind), (name, report.state, report.error)
        assert report.links.urls == ("http://h.test/d/k",), (name, report.links.urls[:3])
    for name, (body, kind) in dtd_attacks().items():
        (report,) = load(body, Kind.DTD)
        assert (report.state, report.error) == (LoadState.FAILED, kind), (name, report.state, report.error)
    intake = Intake()
    dtd, body = defaults_attack()
    assert load(body, intake=intake)[0].state is LoadState.WAITING
    _, report = load(dtd, Kind.DTD, intake, "x.dtd")
    assert (report.state, report.error) == (LoadState.INCOMPLETE, "bad-part"), (report.state, report.error)


@pytest.mark.long
def test_attacks_end_by_name_in_bounded_memory() -> None:
    done = subprocess.run([sys.executable, __file__], capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr


def test_the_bound_on_memory_is_real() -> None:
    """The same process runs out of memory where it takes 120 MB."""
    code = f"import runpy; runpy.run_path({__file__!r})['limit_memory'](); bytearray(120 << 20)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "MemoryError" in done.stderr


@pytest.mark.parametrize("name", ["billion laughs", "quadratic"])
def test_the_attacks_are_attacks(name: str) -> None:
    """Guards the tests above: the bodies are well-formed XML that only a limit refuses."""
    from xml.parsers import expat

    body = attacks()[name][0]().replace(b"&a11;", b"&a1;").replace(b"&a;" * 100_000, b"&a;")
    expat.ParserCreate().Parse(body, True)


if __name__ == "__main__":
    sys.path.insert(0, str(Path.cwd()))
    main()
