"""Reliability 2 F on the validating path: grammars and documents built to blow up end by name, within bounds.

Two processes are bounded by the kernel here: the judge's own (by itself: 0.35 s of CPU, 96 MB) and the one that runs
this table (RLIMIT_AS, RLIMIT_CPU): what gets through ends the test instead of the machine.
"""

from __future__ import annotations

import json
import os
import resource
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from xyro.loader.catalog import Catalog
from xyro.loader.judge_process import JudgeProcess
from xyro.loader.needs import STAND_INS, Shelf, Supply
from xyro.loader.parse import ParseLimits, XmlFault, pieces, read
from xyro.loader.validate import Judged, Validator
from xyro.loader.xlinks import DocumentLinks, XmlLinks
from xyro.wire.messages import Verdict

URL, D = "http://h.test/d/doc.xml", "http://h.test/d/"
XSD_HEAD = b'<s:schema xmlns:s="http://www.w3.org/2001/XMLSchema">'
RNG_HEAD = b'<grammar xmlns="http://relaxng.org/ns/structure/1.0">'
ROOM = 100 << 20
ENV = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}

Case = tuple[bytes, dict[str, bytes]]


def by_dtd(dtd: bytes, content: bytes = b"") -> Case:
    return b'<!DOCTYPE r SYSTEM "g"><r>' + content + b"</r>", {"g": dtd}


def by_xsd(schema: bytes, content: bytes = b"") -> Case:
    head = b'<r xmlns:i="http://www.w3.org/2001/XMLSchema-instance" i:noNamespaceSchemaLocation="g">'
    return head + content + b"</r>", {"g": XSD_HEAD + schema + b"</s:schema>"}


def by_rng(grammar: bytes, content: bytes = b"") -> Case:
    head = b'<?xml-model href="g" schematypens="http://relaxng.org/ns/structure/1.0"?><r>'
    return head + content + b"</r>", {"g": RNG_HEAD + grammar + b"</grammar>"}


def cases() -> dict[str, Case]:
    """Name -> document and parts. Whatever libxml2 makes of them, they have to end, and not as VALID by mistake."""
    names = [b"e%d" % i for i in range(20_000)]
    optional = b",".join(name + b"?" for name in names)
    nested = b"(" * 120 + b"a" + b")*" * 120
    doubled = b"(a?,a?)"
    for _ in range(14):
        doubled = b"(" + doubled + b"," + doubled + b")"
    pattern = b'<s:element name="r"><s:simpleType><s:restriction base="s:string"><s:pattern value="%s"/>'
    pattern += b"</s:restriction></s:simpleType></s:element>"
    sequence = b'<s:element name="r"><s:complexType>%s</s:complexType></s:element>'
    counted = b'<s:element name="a" minOccurs="0"/>'
    for _ in range(8):
        counted = b'<s:sequence minOccurs="900" maxOccurs="1000">' + counted + b"</s:sequence>"
    billion = b'<s:sequence minOccurs="1000000000" maxOccurs="1000000000"><s:element name="a"/></s:sequence>'
    twice = b"".join(
        b'<define name="d%d"><group><ref name="d%d"/><ref name="d%d"/></group></define>' % (i, i + 1, i + 1)
        for i in range(40)
    )
    choices = b"".join(
        b'<define name="d%d"><choice><group><ref name="d%d"/><ref name="z"/></group><ref name="d%d"/></choice></define>'
        % (i, i + 1, i + 1)
        for i in range(30)
    )
    last = b'<define name="%s"><optional><element name="a"><empty/></element></optional></define>'
    start = b'<start><element name="r"><ref name="d0"/></element></start>'
    interleave = b"".join(b'<optional><element name="a%d"><empty/></element></optional>' % i for i in range(3_000))
    return {
        "a model of 20,000 optional names": by_dtd(b"<!ELEMENT r (" + optional + b")>", b"<e1/>"),
        "a choice of 20,000 names": by_dtd(b"<!ELEMENT r (" + b"|".join(names) + b")*>", b"<e1/>" * 1_000),
        "a model of nested stars": by_dtd(b"<!ELEMENT r " + nested + b"><!ELEMENT a EMPTY>", b"<a/>" * 1_000),
        "a model that doubles": by_dtd(b"<!ELEMENT r " + doubled + b"><!ELEMENT a EMPTY>", b"<a/>" * 1_000),
        "an exponential pattern": by_xsd(pattern % b"(a|a)*b|(a|aa)+c|(a*)*d", b"a" * 60),
        "a pattern of counts": by_xsd(pattern % b"(((a{1,1000}){1,1000}){1,1000}){1,1000}", b"a" * 500 + b"b"),
        "a billion times": by_xsd(sequence % billion, b"<a/>" * 100),
        "counts of counts": by_xsd(sequence % counted, b"<a/>" * 10_000),
        "a pattern of a billion": by_xsd(pattern % b"a{999999999}", b"a" * 100),
        "RNG that doubles": by_rng(start + twice + last % b"d40", b"<a/>" * 100),
        "RNG of choices": by_rng(start + choices + last % b"d30" + last % b"z", b"<a/>" * 200 + b"<b/>"),
        "RNG of interleaves": by_rng(
            b'<start><element name="r"><interleave>' + interleave + b"</interleave></element></start>",
            b"".join(b"<a%d/>" % i for i in range(3_000)),
        ),
        "RNG 50,000 deep": by_rng(b"<start>" + b"<group>" * 50_000 + b"<empty/>" + b"</group>" * 50_000 + b"</start>"),
        "RNG that refers to itself": by_rng(b'<start><ref name="d"/></start><define name="d"><ref name="d"/></define>'),
        "RNG that includes itself": by_rng(b'<include href="g"/><start><element name="r"><empty/></element></start>'),
        "XSD that includes itself": by_xsd(b'<s:include schemaLocation="g"/><s:element name="q"/>'),
        "laughing schema": (by_xsd(b"")[0], {"g": laughing(b"schema")}),
    }


def laughing(name: bytes) -> bytes:
    laughs = b"<!DOCTYPE " + name + b' [<!ENTITY a0 "ha">'
    laughs += b"".join(b'<!ENTITY a%d "%s">' % (i, b"&a%d;" % (i - 1) * 10) for i in range(1, 12))
    return laughs + b"]><" + name + b">&a11;</" + name + b">"


def judge(
    body: bytes, parts: dict[str, bytes], validator: Validator, catalog: Catalog | None = None, url: str = URL
) -> Judged:
    limits, shelf = ParseLimits(), Shelf(50_000_000)
    for name, part in parts.items():
        shelf.put((D if url == URL else url) + name, part)
    supply = Supply(url, shelf, limits, STAND_INS, slims=validator.slims, catalog=catalog)
    handler = XmlLinks(DocumentLinks(URL, 0.0))
    read(pieces(body, limits), "", lambda _: handler, limits, supply.answer, outline=supply.outline)
    handler.close()
    return validator.judge(body, "", supply)


def main() -> None:
    """Print what becomes of each case, and the CPU it took: here, in the judge's process, and to start that again."""
    process = JudgeProcess()
    validator = Validator(ParseLimits(), process=process)
    judge(*by_dtd(b"<!ELEMENT r EMPTY>"), validator)
    started = cpu_of(process) - process.spent
    at_rest = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (at_rest + 2 * ROOM, at_rest + 2 * ROOM))
    resource.setrlimit(resource.RLIMIT_CPU, (30, 30))
    for name, (body, parts) in cases().items():
        validator = Validator(ParseLimits(), process=process)  # which has seen nothing of this site
        before, deaths = time.process_time() + process.spent, process.deaths
        try:
            judged = judge(body, parts, validator)
            told: list[Any] = [judged.verdict.name, list(judged.problems)]
        except XmlFault as fault:
            told = ["FAILED", [str(fault)]]
        took = time.process_time() + process.spent - before + started * (process.deaths - deaths)
        print(json.dumps([name, *told, round(took, 3)]), flush=True)
    validator.close()
    most = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(json.dumps(["most", "", [], most]))


def cpu_of(process: JudgeProcess) -> float:
    """Seconds of CPU that the judge's process has taken since it was started."""
    assert process._process is not None
    return int(Path(f"/proc/{process._process.pid}/schedstat").read_text().split()[0]) / 1e9


@pytest.fixture(scope="module")
def ends() -> dict[str, tuple[str, list[str], float]]:
    done = subprocess.run([sys.executable, __file__], capture_output=True, text=True, env=ENV)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return {name: (verdict, problems, cost) for name, verdict, problems, cost in rows}


@pytest.mark.long
@pytest.mark.parametrize("name", cases())
def test_attacks_end_by_name(ends: dict[str, tuple[str, list[str], float]], name: str) -> None:
    verdict, problems, seconds = ends[name]
    assert verdict in ("VALID", "INVALID", "UNVALIDATED")
    assert bool(problems) == (verdict != "VALID")
    # Of CPU: the kernel ends the judge's process after .35; the rest is parsing, here, and the next process's start,
    # as slow as the machine is. What is not ended takes minutes or the machine's memory.
    assert seconds < 3


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("a billion times", "INVALID"),
        ("RNG that includes itself", "UNVALIDATED"),
        ("RNG that refers to itself", "UNVALIDATED"),
        ("laughing schema", "UNVALIDATED"),
        ("RNG 50,000 deep", "UNVALIDATED"),
    ],
)
def test_how_some_end(ends: dict[str, tuple[str, list[str], float]], name: str, verdict: str) -> None:
    assert ends[name][0] == verdict, ends[name]


def test_a_grammar_that_kills_is_not_tried_again() -> None:
    process = JudgeProcess(seconds=0.05)
    validator = Validator(ParseLimits(), process=process)
    body, parts = cases()["a choice of 20,000 names"]
    for _ in range(6):
        judged = judge(body, parts, validator)
        assert judged.verdict is Verdict.UNVALIDATED
        assert "takes more than 0.05 s of CPU" in judged.problems[-1]
    assert 1 <= process.deaths <= 3
    validator.close()


def test_what_was_spent_only_grows() -> None:
    process = JudgeProcess()
    validator = Validator(ParseLimits(), process=process)
    spent = [process.spent]
    for number in range(20):
        judge(b"<!DOCTYPE r [<!ELEMENT r EMPTY>]><r/>" + b" " * number, {}, validator)
        spent.append(process.spent)
    assert spent == sorted(spent)
    assert 0.0 < spent[-1] <= cpu_of(process) + 0.01
    validator.close()


def test_all_grammars_of_a_document_share_the_bound() -> None:
    """Ten schemas that each take a while to compile: a document may name any number of them."""
    process = JudgeProcess(seconds=0.2)
    validator = Validator(ParseLimits(), process=process)
    slow = b"".join(b'<optional><element name="a%d"><empty/></element></optional>' % i for i in range(3_000))
    grammar = RNG_HEAD + b'<start><element name="r"><interleave>' + slow + b"</interleave></element></start></grammar>"
    parts = {f"g{i}": grammar for i in range(10)}
    names = (f'<?xml-model href="{name}" schematypens="http://relaxng.org/ns/structure/1.0"?>' for name in parts)
    judged = judge("".join(names).encode() + b"<r/>", parts, validator)
    assert judged.verdict is Verdict.UNVALIDATED
    assert "takes more than 0.2 s of CPU" in judged.problems[-1]
    assert process.spent <= 0.25
    validator.close()


def test_a_site_with_a_grammar_for_each_document_is_soon_left_alone() -> None:
    process = JudgeProcess(seconds=0.05)
    validator = Validator(ParseLimits(), process=process)
    verdicts = []
    for number in range(12):
        body, parts = cases()["an exponential pattern"]
        parts = {"g": parts["g"].replace(b"</s:schema>", b"<!-- %d --></s:schema>" % number)}
        verdicts.append(judge(body, parts, validator).verdict)
    assert set(verdicts) == {Verdict.UNVALIDATED}
    assert process.deaths == 3
    body, parts = by_dtd(b"<!ELEMENT r EMPTY>")
    assert judge(body, parts, validator, url="http://other.test/").verdict is Verdict.VALID
    assert judge(b"<r/>", {}, validator).verdict is Verdict.NO_GRAMMAR
    validator.close()


def test_documents_that_take_long_switch_off_no_grammar_of_others() -> None:
    """Neither by their size or content, nor with a bad grammar beside the good one."""
    process = JudgeProcess(seconds=0.1)
    validator = Validator(ParseLimits(), process=process)
    good = {"good": b"<!ELEMENT r (#PCDATA)>"}
    doctype = b'<!DOCTYPE r SYSTEM "good">'
    located = b'<r xmlns:i="http://www.w3.org/2001/XMLSchema-instance" i:noNamespaceSchemaLocation="bad">'
    bad = {"bad": cases()["an exponential pattern"][1]["g"], **good}
    for _ in range(5):
        judged = judge(doctype + located + b"a" * 60 + b"</r>", bad, validator)
        assert judged.verdict is not Verdict.VALID
    assert process.deaths <= 3
    judged = judge(doctype + b"<r>a</r>", good, validator, url="http://other.test/")
    assert judged.verdict is Verdict.VALID, judged.problems
    validator.close()


NAMED = {
    "XSD include": by_xsd(b'<s:include schemaLocation="{0}"/><s:element name="r"/>'),
    "XSD import": by_xsd(b'<s:import namespace="urn:q" schemaLocation="{0}"/><s:element name="r"/>'),
    "XSD redefine": by_xsd(b'<s:redefine schemaLocation="{0}"/><s:element name="r"/>'),
    "RNG include": by_rng(b'<include href="{0}"/><start><element name="r"><empty/></element></start>'),
    "RNG externalRef": by_rng(b'<start><externalRef href="{0}"/></start>'),
    "RNG base": by_rng(b'<include xml:base="{0}" href=""/><start><element name="r"><empty/></element></start>'),
    "XSD DTD": (by_xsd(b"")[0], {"g": b'<!DOCTYPE x SYSTEM "{0}">' + XSD_HEAD + b'<s:element name="r"/></s:schema>'}),
    "XSD entity": (
        by_xsd(b"")[0],
        {"g": b'<!DOCTYPE x [<!ENTITY e SYSTEM "{0}">]>' + XSD_HEAD + b'&e;<s:element name="r"/></s:schema>'},
    ),
    "location": (
        b'<r xmlns:i="http://www.w3.org/2001/XMLSchema-instance" i:noNamespaceSchemaLocation="{0}"/>', {},
    ),
    "model": (b'<?xml-model href="{0}" schematypens="http://relaxng.org/ns/structure/1.0"?><r/>', {}),
    "DTD": (b'<!DOCTYPE r SYSTEM "{0}" [<!ELEMENT r EMPTY>]><r/>', {}),
    "DTD module": by_dtd(b'<!ENTITY % p SYSTEM "{0}"> %p; <!ELEMENT r EMPTY>'),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMED)
def test_nothing_is_opened_or_contacted(name: str, tmp_path: Path, watch: Any, listener: socket.socket) -> None:
    secret = tmp_path / "secret.xsd"
    secret.write_bytes(XSD_HEAD + b'<s:element name="leak"/></s:schema>')
    host, port = listener.getsockname()
    targets = [
        str(secret), f"file://{secret}", f"FILE:{secret}", f"//{host}:{port}/secret.xsd", "\\\\" + host + "\\secret",
        f"ftp://{host}:{port}/secret.xsd", f"http://{host}:{port}/secret.xsd", "../" * 20 + str(secret)[1:],
    ]  # fmt: skip
    validator = Validator(ParseLimits())
    judge(*by_dtd(b"<!ELEMENT r EMPTY>"), validator)
    body, parts = NAMED[name]
    watch.opened()  # by this test
    for target in targets:
        aimed = {key: part.replace(b"{0}", target.encode()) for key, part in parts.items()}
        judged = judge(body.replace(b"{0}", target.encode()), aimed, validator)
        assert judged.verdict is not Verdict.NO_GRAMMAR
        assert not watch.opened(), target
        with pytest.raises(BlockingIOError):
            listener.accept()
    validator.close()


def test_the_process_cannot_open_anything(tmp_path: Path) -> None:
    """Whatever libxml2 may try: there is no descriptor left for it."""
    code = (
        "import xyro.loader.judge_child as child, socket, sys\n"
        "child._confine()\n"
        "for work in (lambda: open(sys.argv[1]), socket.socket):\n"
        "    try: work()\n"
        "    except OSError as error: print(error.errno)\n"
    )
    path = tmp_path / "x"
    path.write_text("x")
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, env=ENV)
    assert done.stdout.split() == ["24", "24"], done.stderr


if __name__ == "__main__":
    main()
