"""XPath over hostile documents, hostile XPath over documents: matches, and what ends in a named reason instead."""

from __future__ import annotations

import base64
import gzip
import zlib

import pytest

from xyro.plugins.warehouse import xpath_query as xml_query
from xyro.plugins.warehouse.query_worker import QueryWorker
from xyro.plugins.warehouse.xpath_query import XPathQuery, namespaces_of, root_of
from xyro.wire.errors import InputError, MachineError


def given(*bodies, charset=""):
    return [
        {
            "id": number, "url": f"http://h0.example/{number}", "version": 1, "read_at": None, "importance": 1.0,
            "stale": 0.25, "charset": charset, "size": len(body),
            "packed": base64.b64encode(zlib.compress(body)).decode(),
        }
        for number, body in enumerate(bodies)
    ]  # fmt: skip


def asked(xpath, *bodies, namespaces=(), seconds=2.0, charset=""):
    """(page, match, path) of each match, and why documents were left out."""
    query = XPathQuery(xpath, dict(namespaces), seconds)
    rows = list(query.matches(given(*bodies, charset=charset)))
    return [(row["id"], row["match"], row["path"]) for row in rows], dict(query.skipped)


BOOK = b"<b:book xmlns:b='urn:b' id='7'><t>One</t><t>Two</t><!--c--></b:book>"


@pytest.mark.parametrize(
    ("xpath", "matches"),
    [
        ("//t", [("<t>One</t>", "/b:book/t[1]"), ("<t>Two</t>", "/b:book/t[2]")]),
        ("//t/text()", [("One", "/b:book/t[1]/text()"), ("Two", "/b:book/t[2]/text()")]),
        ("/*/@id", [("7", "/b:book/@id")]),
        ("//comment()", [("<!--c-->", "/b:book/comment()")]),
        ("count(//t)", [("2", None)]),
        ("2 div 3", [("0.666666666666667", None)]),
        ("string(//t)", [("One", None)]),
        ("string(//none)", []),
        ("//none", []),
        ("//t = 'One'", [("true", None)]),
        ("//t = 'None'", []),
        ("/x:book/@id", [("7", "/b:book/@id")]),
        ("/*/namespace::b", [("b=urn:b", None)]),
    ],
)
def test_every_kind_of_result_is_told(xpath, matches):
    found, skipped = asked(xpath, BOOK, namespaces={"x": "urn:b"}.items())
    prefixed = [(0, text.replace('<t xmlns:b="urn:b">', "<t>"), path) for text, path in matches]
    assert [(page, text.replace(' xmlns:b="urn:b"', ""), path) for page, text, path in found] == prefixed
    assert skipped == {}


def test_documents_come_in_the_order_given_each_for_itself():
    found, _ = asked("//a/text()", b"<a>1</a>", b"<x/>", b"<a>2</a>")
    assert [(page, text) for page, text, _ in found] == [(0, "1"), (2, "2")]


def test_gzip_and_the_charset_of_the_media_type():
    assert asked("string(/*)", gzip.compress(b"<a>zipped</a>"))[0] == [(0, "zipped", None)]
    assert asked("string(/*)", b"<a>caf\xe9</a>", charset="iso-8859-1")[0] == [(0, "caf\u00e9", None)]


def understood(xpath, **namespaces):
    try:
        return not asked(xpath, b"<a>aaaa!</a>", namespaces=namespaces.items())[1]
    except InputError:
        return False


@pytest.mark.parametrize("xpath", ["//[", "//x:y", "nothing(1)", "", "document('/etc/hostname')", "a" * 10_001])
def test_what_is_no_xpath_is_refused(xpath):
    assert understood("//a[contains(., '!')]")
    assert not understood(xpath)


def test_extension_functions_are_not_there():
    assert not understood("re:test(., '(a+)+$')", re="http://exslt.org/regular-expressions")
    assert not understood("py:open(.)", py="http://exslt.org/functions")


# Hostile documents


def test_external_entities_are_not_read(tmp_path):
    canary = tmp_path / "canary"
    canary.write_text("a-canary")
    entity = f'<!DOCTYPE a [<!ENTITY e SYSTEM "{canary.as_uri()}"><!ENTITY i "in">]><a x="&i;">&i; &e;</a>'
    subset = f'<!DOCTYPE a SYSTEM "{canary.as_uri()}"><a>&e;</a>'
    parameter = f'<!DOCTYPE a [<!ENTITY % p SYSTEM "{canary.as_uri()}">%p;]><a/>'
    include = f'<a xmlns:x="http://www.w3.org/2001/XInclude"><x:include href="{canary.as_uri()}" parse="text"/></a>'
    found, skipped = asked("string(/*)", *(text.encode() for text in (entity, subset, parameter, include)))
    assert [match for _, match, _ in found] == ["in "] and skipped == {}
    everything, _ = asked("//node() | //@*", *(text.encode() for text in (entity, subset, parameter, include)))
    assert "a-canary" not in str(everything)


def test_elements_within_internal_entities_are_found():
    assert asked("//b/text()", b"<!DOCTYPE a [<!ENTITY e '<b>in</b>'>]><a>&e;</a>")[0] == [(0, "in", "/a/b/text()")]


def test_amplification_and_damage_are_left_out_by_name():
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    bomb = f'<!DOCTYPE a [<!ENTITY l0 "ha">{laughs}]><a>&l9;</a>'.encode()
    deep = b"<a>" * 100_000 + b"</a>" * 100_000
    found, skipped = asked("count(//a)", bomb, deep, b"<a>", b"", gzip.compress(bytes(60 << 20)), b"<a/>")
    assert found[-1] == (5, "1", None), "what follows is looked at"
    assert sum(skipped.values()) == 6 - len(found) and len(found) <= 2


def test_the_first_thousand_matches_of_a_document_are_told():
    found, skipped = asked("//b", b"<a>" + b"<b/>" * 1500 + b"</a>")
    assert len(found) == 1000 and skipped == {"only the first 1,000 matches of it are told": 1}


def test_long_matches_are_cut():
    found, _ = asked("/a/text()", b"<a>" + b"x" * 10_000 + b"</a>")
    assert len(found[0][1]) == 4_000


# Hostile expressions


SLOW = "count(//*[count(//*[count(//*[count(//*) > 0]) > 0]) > 0])"
"""some n^4 steps"""


def test_an_expression_without_end_is_ended_and_the_next_document_is_looked_at():
    found, skipped = asked(SLOW, b"<a>" + b"<b/>" * 3_000 + b"</a>", b"<a/>", seconds=0.3)
    assert found == [(1, "1", None)] and skipped == {"takes more than 0.3 s of CPU": 1}


def test_an_expression_that_needs_all_memory_is_ended():
    string = "string(/a)"
    for _ in range(8):
        string = f"concat({string}, {string})"
    job = {"job": "query", "xpath": f"string-length({string})", "namespaces": {}}
    with QueryWorker(job, 60.0, memory=300 << 20) as worker:
        assert worker.ask([b"<a>" + b"x" * 2_000_000 + b"</a>"], charset="")["error"] == "needs too much memory"
        assert worker.ask([b"<a>x</a>"], charset="")["matches"] == [{"match": "256", "path": None}]


def test_an_expression_that_is_too_costly_everywhere_ends_the_query(monkeypatch):
    monkeypatch.setattr(xml_query, "DEATHS", 2)
    documents = given(*[b"<a>" + b"<b/>" * 3_000 + b"</a>"] * 5)
    query = XPathQuery(SLOW, {}, 0.1)
    with pytest.raises(InputError, match=r"2 documents took more than 0\.1 s"):
        list(query.matches(documents))
    assert query.documents == 2


def test_it_ends_its_process_when_nobody_wants_more():
    matches = XPathQuery("//b", {}).matches(given(b"<a><b/><b/></a>", b"<a><b/></a>"))
    assert next(matches)["match"] == "<b/>"
    matches.close()
    assert list(matches) == []


def test_a_body_that_does_not_unpack_is_our_damage():
    (document,) = given(b"<a/>")
    with pytest.raises(MachineError, match="damaged store"):
        list(XPathQuery("/a", {}).matches([{**document, "packed": "junk"}]))


# Options


def test_namespaces_and_roots():
    assert namespaces_of(["a=urn:a", "b=urn:b=c"]) == {"a": "urn:a", "b": "urn:b=c"}
    assert root_of("a:feed", {"a": "urn:a"}) == "{urn:a}feed" and root_of("feed", {}) == "feed"
    assert root_of("{urn:a}feed", {}) == "{urn:a}feed"
    for wrong in ("a", "=urn:a", "a="):
        with pytest.raises(InputError, match="write PREFIX=URI"):
            namespaces_of([wrong])
    with pytest.raises(InputError, match="add --namespace a=URI"):
        root_of("a:feed", {})
