"""Parts of the computed web's documents: lxml, given every part that the server has, agrees with their truth."""

from __future__ import annotations

from collections import Counter
from urllib.parse import urlsplit

import pytest
from lxml import etree

from xyro.lab.crash.xml import violations
from xyro.lab.web.answers import Answers, Request
from xyro.lab.web.document_parts import ERRORS, PARTS, Way, error_of, find, location, name_of, part_url, way_of
from xyro.lab.web.places import Doc, host_at
from xyro.lab.web.render import render
from xyro.lab.web.web import Web

WEB = Web(pages=1_500, hosts=12, xml=0.5, parts=0.8, rate_median=0.0, slow=3.0)
DOCUMENTS = WEB.places.of_kind(Doc.XML).tolist()


def answer(answers: Answers, url: str) -> bytes | None:
    """The body behind a URL, redirects followed; None where there is none."""
    for _ in range(5):
        parts = urlsplit(url)
        response = answers.answer(host_at(parts.hostname or ""), Request("GET", parts.path, {}), WEB.shape.origin)
        if response.status == 200:
            return response.body
        head = response.head.decode()
        if "Location: " not in head:
            return None
        url = head.partition("Location: ")[2].partition("\r\n")[0]
    return None


class Resolver(etree.Resolver):
    """Answers from the computed web."""

    def __init__(self) -> None:
        self.answers = Answers(WEB)
        self.missing = 0

    def resolve(self, system, public, context):
        body = answer(self.answers, system) if system.startswith("http:") else None
        self.missing += body is None
        return self.resolve_string(body or b"", context, base_url=system)


def test_a_document_is_loadable_exactly_where_its_truth_says_so():
    for page in DOCUMENTS[:200]:
        resolver = Resolver()
        parser = etree.XMLParser(load_dtd=True, dtd_validation=True, resolve_entities=True, no_network=True)
        parser.resolvers.add(resolver)
        try:
            etree.fromstring(render(WEB, page, WEB.shape.origin).body, parser)
            good = not resolver.missing
        except etree.XMLSyntaxError:
            good = False
        assert good == (error_of(WEB, page) == ""), way_of(WEB, page)


def test_the_share_of_documents_that_need_a_part_and_all_ways():
    ways = Counter(way_of(WEB, page) for page in DOCUMENTS)
    assert 0.7 < 1 - ways[None] / len(DOCUMENTS) < 0.9
    assert set(ways) == {None, *Way}
    assert ways[Way.SLOW] > max(ways[way] for way in ERRORS)


def test_parts_are_found_where_they_lie_and_nowhere_else():
    for way in set(Way) - {Way.FILE}:
        for number in range(PARTS):
            parts = urlsplit(part_url(WEB, way, number))
            host = host_at(parts.hostname or "")
            assert find(WEB, host, parts.path) == (way, number)
            assert find(WEB, (host + 1) % 12, parts.path) is None
    assert find(WEB, 0, f"/part/ok-{PARTS}.ent") is None
    assert location(WEB, Way.LOOP, 4) == part_url(WEB, Way.LOOP, 5)
    assert location(WEB, Way.LOOP, 5) == part_url(WEB, Way.LOOP, 4)


def test_only_slow_parts_are_slow():
    answers = Answers(WEB)
    for page in DOCUMENTS:
        name = name_of(WEB, page)
        if name.startswith("http:"):
            parts = urlsplit(name)
            delay = answers.delay(host_at(parts.hostname or ""), Request("GET", parts.path, {}))
            assert delay == (3.0 if way_of(WEB, page) is Way.SLOW else 0.0)


@pytest.fixture
def told():
    """What a perfect crawl exports: (pages, documents)."""
    import hashlib

    pages, documents = [], []
    for page in WEB.places.of_kind(Doc.XML, Doc.DTD).tolist():
        error = error_of(WEB, page) if WEB.kind(page) is Doc.XML else ""
        body = render(WEB, page, WEB.shape.origin).body
        pages.append({"url": WEB.url(page), "reads": 1, "error": error or None})
        digest = hashlib.blake2b(body, digest_size=16).hexdigest()
        verdict = "unvalidated" if error else "valid" if WEB.kind(page) is Doc.XML else "no-grammar"
        documents.append({"url": WEB.url(page), "versions": 1, "digest": digest, "verdict": verdict})
    return pages, documents


def test_a_perfect_crawl_has_no_violations(told):
    assert list(violations(WEB, *told, 0)) == []


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda pages, documents: documents.pop(), "not among the documents"),
        (lambda pages, documents: documents.append(documents[0]), "stands 2 times"),
        (lambda pages, documents: documents[3].update(versions=2), "2 versions"),
        (lambda pages, documents: documents[3].update(digest="00"), "not the one that was served"),
        (lambda pages, documents: pages[3].update(error="timeout"), "timeout, the truth is"),
        (lambda pages, documents: [row.update(verdict="invalid") for row in documents], "invalid, the truth is"),
    ],
)
def test_each_harm_is_seen(told, harm, said):
    harm(*told)
    assert any(said in violation for violation in violations(WEB, *told, 0))
    assert any("still wait" in violation for violation in violations(WEB, *told, 3))
