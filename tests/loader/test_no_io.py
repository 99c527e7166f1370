"""Whatever a document names, the parser opens no file and contacts no one (reliability 2 F 77-79).

The control shows that the evidence would show: lxml by itself, told to load DTDs, does open the file.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from xyro.loader.intake import Intake
from xyro.wire.messages import Kind, LoadReport, LoadState, XmlPage

LEAK = "http://leak.test/"
SECRET = f'<a xmlns="http://www.w3.org/1999/xhtml" href="{LEAK}"/>'
DOCUMENTS = {
    "external DTD": '<!DOCTYPE r SYSTEM "{0}"><r>{1}</r>',
    "public DTD": '<!DOCTYPE r PUBLIC "-//X//Y//EN" "{0}"><r>{1}</r>',
    "external entity": '<!DOCTYPE r [<!ENTITY e SYSTEM "{0}">]><r>&e;{1}</r>',
    "parameter entity": '<!DOCTYPE r [<!ENTITY % e SYSTEM "{0}"> %e;]><r>{1}</r>',
    "entity of an entity": '<!DOCTYPE r [<!ENTITY e SYSTEM "{0}"><!ENTITY f "&e;&e;">]><r>&f;{1}</r>',
    "unparsed entity": '<!DOCTYPE r [<!NOTATION n SYSTEM "{0}"><!ENTITY e SYSTEM "{0}" NDATA n>]><r>{1}</r>',
    "XInclude": '<r xmlns:i="http://www.w3.org/2001/XInclude"><i:include href="{0}"/>'
    '<i:include href="{0}" parse="text"/>{1}</r>',
    "stylesheet": '<?xml-stylesheet type="text/xsl" href="{0}"?><r>{1}</r>',
    "catalogue": '<?oasis-xml-catalog catalog="{0}"?><!DOCTYPE r SYSTEM "urn:x"><r>{1}</r>',
    "schema": '<r xmlns:s="http://www.w3.org/2001/XMLSchema-instance" s:schemaLocation="urn:x {0}" '
    's:noNamespaceSchemaLocation="{0}">{1}</r>',
}
SEEN = '<a xmlns="http://www.w3.org/1999/xhtml" href="/seen"/>'


def contacted(listener: socket.socket) -> bool:
    try:
        listener.accept()[0].close()
    except BlockingIOError:
        return False
    return True


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret.ent"
    path.write_text(SECRET)
    return path


def names_of(secret: Path, listener: socket.socket) -> list[str]:
    host, port = listener.getsockname()
    return [
        str(secret),
        f"file://{secret}",
        f"file://localhost{secret}",
        f"FILE:{secret}",
        f"ftp://{host}:{port}/secret.ent",
        f"http://{host}:{port}/secret.ent",
        f"https://{host}:{port}/secret.ent",
        "../" * 20 + str(secret)[1:],
    ]


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_nothing_is_opened_or_contacted(
    kind: str, secret: Path, listener: socket.socket, watch: Any, page: Callable[..., XmlPage], monkeypatch: Any
) -> None:
    monkeypatch.chdir(secret.parent)
    for name in [*names_of(secret, listener), "secret.ent"]:
        intake = Intake()
        (report,) = intake.take(page(DOCUMENTS[kind].format(name, SEEN)), 0.0)
        reports = [report, *intake.expire(1e9)]
        assert not watch.opened(), name
        assert not contacted(listener), name
        for one in reports:
            assert one.state is not LoadState.FAILED, (name, one.error)
            assert LEAK not in one.links.urls
            assert "http://h.test/seen" in one.links.urls
            assert not any(need.startswith(("file", "ftp")) for need in one.needs)


def test_nothing_is_opened_on_behalf_of_a_part(
    secret: Path, listener: socket.socket, watch: Any, page: Callable[..., XmlPage]
) -> None:
    for name in names_of(secret, listener):
        intake = Intake()
        waiting = intake.take(page(f'<!DOCTYPE r SYSTEM "x.dtd"><r>&e;{SEEN}</r>'), 0.0)
        assert waiting[0].needs == ("http://h.test/d/x.dtd",)
        dtd = f'<!ENTITY % p SYSTEM "{name}"> %p; <!ENTITY e SYSTEM "{name}">'
        url = "http://h.test/d/x.dtd"
        reports = intake.take(page(dtd, url, page=8, kind=Kind.DTD), 0.0) + intake.expire(1e9)
        assert all(LEAK not in report.links.urls for report in reports)
        assert not watch.opened(), name
        assert not contacted(listener), name


def test_control_the_evidence_shows(secret: Path, listener: socket.socket, watch: Any) -> None:
    document = DOCUMENTS["external entity"].format(f"file://{secret}", SEEN)
    root = etree.fromstring(document, etree.XMLParser(resolve_entities=True, load_dtd=True))
    assert LEAK.encode() in etree.tostring(root)
    assert watch.opened()
    with socket.create_connection(listener.getsockname()):
        assert contacted(listener)


def test_the_document_is_not_a_part_of_itself(load: Callable[..., LoadReport]) -> None:
    report = load('<!DOCTYPE r SYSTEM "doc.xml"><r/>')
    assert (report.state, report.error, report.links.dropped) == (LoadState.INCOMPLETE, "refused-part", 1)
