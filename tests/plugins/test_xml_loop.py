"""A hostile grammar takes as long as megabytes of honest documents: never on the event loop, and a few at a time."""

import asyncio
import threading

import pytest

from xyro.loader.intake import Intake
from xyro.loader.judge_process import JudgeProcess
from xyro.loader.parse import ParseLimits
from xyro.loader.validate import Validator
from xyro.service.node.load_loop import LoadLoop
from xyro.wire import topics
from xyro.wire.bus import LocalBus
from xyro.wire.clock import ManualClock
from xyro.wire.messages import Document, Kind, Verdict, XmlPage

GRAMMAR = "http://h.example/g.dtd"
MODEL = b"(a)"
for _ in range(10):
    MODEL = b"(" + MODEL + b"*," + MODEL + b"*)"
SLOW = b"<!DOCTYPE r SYSTEM 'g.dtd' [<!ELEMENT r " + MODEL + b"><!ELEMENT a EMPTY>]><r>" + b"<a/>" * 100 + b"</r>"
"""9 kB; its judgement takes seconds"""
SMALL = b"<!DOCTYPE r SYSTEM 'g.dtd'><r/>"


class Watched(JudgeProcess):
    """The judge's process, and the threads that ask it."""

    def __init__(self):
        super().__init__(seconds=0.1)
        self.askers = []

    def ask(self, *args, **options):
        self.askers.append(threading.get_ident())
        return super().ask(*args, **options)


class Loads:
    def __init__(self):
        self.process, self.bus, self.clock = Watched(), LocalBus(), ManualClock()
        self.intake = Intake(
            keep=("xml", "dtd"), validator=Validator(ParseLimits(), process=self.process), patience_s=50.0
        )
        self.frontier = LoadLoop(self.bus, self.clock, lambda: self.intake, lambda page: b"", lambda page: False)

    def take(self, number, body, kind=Kind.XML, url=""):
        url = url or f"http://h.example/{number}.xml"
        self.frontier.take(XmlPage(number, url, 1, self.clock.time(), kind, "text/xml", "", body))

    async def parsed(self):
        while not self.frontier.quiet:  # noqa: ASYNC110  # nothing tells of it
            await asyncio.sleep(0.01)

    async def documents(self):
        await self.frontier.close(60.0)
        told = await self.bus.receive(topics.pages(0), 1_000)
        return {message.page: message.verdict for message in told if isinstance(message, Document)}


def comes(loads):
    loads.take(9, b"<!ELEMENT r EMPTY>", Kind.DTD, GRAMMAR)


def is_lost(loads):
    loads.frontier.missing(GRAMMAR)


def is_late(loads):
    loads.clock.advance(100.0)
    loads.frontier.expire()


@pytest.mark.parametrize("event", [comes, is_lost, is_late])
async def test_grammars_are_applied_in_the_thread(event):
    loads = Loads()
    loads.take(0, SMALL)
    loads.take(1, b"<!DOCTYPE r [<!ELEMENT r EMPTY>]><r/>")
    await loads.parsed()
    event(loads)
    loads.take(2, b"<!DOCTYPE r [<!ELEMENT r (r)>]><r/>".decode().encode("utf-16"))
    documents = await loads.documents()
    assert (documents[1], documents[2]) == (Verdict.VALID, Verdict.INVALID)
    assert documents[0] is (Verdict.VALID if event is comes else Verdict.UNVALIDATED)
    assert loads.process.askers and threading.get_ident() not in loads.process.askers


async def test_a_document_that_names_no_grammar_is_read_at_once():
    loads = Loads()
    loads.take(0, b"<r/>")
    assert loads.frontier.quiet and loads.bus.waiting(topics.pages(0)) == 2
    assert await loads.documents() == {0: Verdict.NO_GRAMMAR}


def test_one_call_settles_few_documents_that_take_long():
    loads = Loads()
    for number in range(10):
        loads.intake.take(
            XmlPage(number, f"http://h.example/{number}.xml", 1, 0.0, Kind.XML, "text/xml", "", SLOW), 0.0
        )
    dtd = XmlPage(10, GRAMMAR, 1, 0.0, Kind.DTD, "text/xml", "", b"<!ELEMENT a EMPTY>")
    before = loads.process.spent
    loads.intake.take(dtd, 0.0)
    assert loads.intake.ready >= 8
    assert loads.process.spent - before < 0.25
    while loads.intake.ready:
        loads.intake.expire(0.0)
    assert loads.intake.waiting == 0
    loads.intake.close()
