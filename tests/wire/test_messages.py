"""Messages and errors: an invalid one cannot be built, a valid one cannot be changed."""

from __future__ import annotations

import math
from typing import Any, get_args

import pytest

from xyro.wire.commands import MAX_REQUEST, Command, CommandAnswer, HoldHost, ReturnOrders
from xyro.wire.errors import CodecError, InputError, MachineError, TheirError, XyroError
from xyro.wire.messages import (
    LINK_EXTERNAL,
    LINK_HINT,
    LINK_KIND_MASK,
    LINK_NOFOLLOW,
    MAX_LINKS,
    MAX_NUMBER,
    MAX_URL,
    Ack,
    CashTransfer,
    Document,
    FetchOrder,
    HostChallenged,
    Kind,
    LinkKind,
    Links,
    LoadReport,
    LoadState,
    Message,
    PageReport,
    Passing,
    Priority,
    Submit,
    XmlPage,
)

U = "http://h/"
LONG = U + "x" * MAX_URL
ORDER: dict[str, Any] = {"page": 1, "url": U, "priority": Priority.REFRESH, "epoch": 1}
REPORT: dict[str, Any] = {"page": 1, "url": U, "epoch": 1, "started": 1.0, "ended": 2.0, "status": 200}
XML: dict[str, Any] = {"page": 1, "url": U, "epoch": 1, "read_at": 1.0, "kind": Kind.XML, "mime": "text/xml"}
XML |= {"charset": "", "body": b"<a/>"}
LOAD: dict[str, Any] = {"page": 1, "url": U, "epoch": 1, "state": LoadState.LOADED}
DOCUMENT: dict[str, Any] = {"page": 1, "url": U, "epoch": 1, "read_at": 1.0, "kind": Kind.XML, "digest": bytes(16)}
DOCUMENT |= {"packed": b"", "size": 0}
CASH: dict[str, Any] = {"source": 0, "target": 1, "seq": 1}
VALID: list[tuple[type, dict[str, Any]]] = [
    (FetchOrder, ORDER),
    (PageReport, REPORT),
    (XmlPage, XML),
    (LoadReport, LOAD),
    (Document, DOCUMENT),
    (CashTransfer, CASH),
    (Submit, {"urls": (U,)}),
    (Ack, {"source": 0, "target": 1, "seq": 0}),
    (CommandAnswer, {"request": 1}),
    (Command, {"request": 0}),
    (HostChallenged, {"host": "h", "until": 1.0, "failures": 1, "vendor": "akamai"}),
    (HoldHost, {"request": 0, "host": "h", "state": "paused"}),
    (ReturnOrders, {"request": 0, "pages": (1,), "epochs": (1,)}),
    (Passing, {"url": U, "cash": 0}),
    (Links, {}),
]
WRONG: list[tuple[type, dict[str, Any]]] = [
    *((kind, {**base, "page": page}) for kind, base in VALID[:5] for page in (-1, MAX_NUMBER + 1)),
    *((kind, {**base, "url": url}) for kind, base in VALID[:5] for url in ("", LONG)),
    *((kind, {**base, "epoch": -1}) for kind, base in VALID[:5]),
    *((FetchOrder, {**ORDER, name: -1}) for name in ("epoch", "attempt")),
    *((FetchOrder, {**ORDER, "not_before": time}) for time in (math.nan, math.inf)),
    *((FetchOrder, {**ORDER, "deadline": time}) for time in (math.nan, math.inf)),
    *((PageReport, {**REPORT, name: -1}) for name in ("status", "size", "host_failures")),
    *((PageReport, {**REPORT, name: math.nan}) for name in ("started", "ended", "retry_at", "host_next")),
    *((PageReport, {**REPORT, name: math.inf}) for name in ("started", "ended", "retry_at", "host_next")),
    (PageReport, {**REPORT, "status": 1000}),
    (PageReport, {**REPORT, "status": 0}),
    (PageReport, {**REPORT, "ended": 0.5}),
    (PageReport, {**REPORT, "signature": b"short"}),
    *((XmlPage, {**XML, "kind": kind}) for kind in (Kind.HTML, Kind.UNKNOWN, Kind.OTHER)),
    (XmlPage, {**XML, "read_at": math.nan}),
    *((Document, {**DOCUMENT, "kind": kind}) for kind in (Kind.HTML, Kind.OTHER)),
    (Document, {**DOCUMENT, "digest": b"short"}),
    (Document, {**DOCUMENT, "problems": ("no",) * 21}),
    *((Document, {**DOCUMENT, name: -1}) for name in ("size", "depth", "elements", "tags")),
    (LoadReport, {**LOAD, "rates": ((U, -1.0),)}),
    (LoadReport, {**LOAD, "rates": ((U, math.inf),)}),
    (LoadReport, {**LOAD, "needs": (U,)}),
    (LoadReport, {**LOAD, "state": LoadState.WAITING}),
    (LoadReport, {**LOAD, "modified": ((U, 1.0), (U, math.nan))}),
    (CashTransfer, {**CASH, "target": 0}),
    (CashTransfer, {**CASH, "source": -1}),
    (CashTransfer, {**CASH, "seq": 0}),
    *((CashTransfer, {**CASH, name: -1}) for name in ("virtual", "spent", "pages")),
    *((CashTransfer, {**CASH, name: MAX_NUMBER + 1}) for name in ("seq", "virtual", "spent", "pages")),
    (Submit, {"urls": (U, "")}),
    (Submit, {"urls": (U, LONG)}),
    *((Submit, {"urls": (), "request": number}) for number in (-1, MAX_REQUEST + 1)),
    *((CommandAnswer, {"request": number}) for number in (-1, 0, MAX_REQUEST + 1)),
    *((Command, {"request": number}) for number in (-1, MAX_REQUEST + 1)),
    (HostChallenged, {"host": "", "until": 1.0, "failures": 1, "vendor": ""}),
    (HostChallenged, {"host": "h", "until": math.inf, "failures": 1, "vendor": ""}),
    (HoldHost, {"request": -1, "host": "h", "state": ""}),
    (HoldHost, {"request": 0, "host": "h", "state": "asleep"}),
    (ReturnOrders, {"request": -1, "pages": (), "epochs": ()}),
    (ReturnOrders, {"request": 0, "pages": (1,), "epochs": ()}),
    *((Ack, {"source": 0, "target": 1, "seq": seq}) for seq in (-1, MAX_NUMBER + 1)),
    *((Passing, {"url": url, "cash": 1}) for url in ("", LONG)),
    *((Passing, {"url": U, "cash": cash}) for cash in (-1, MAX_NUMBER + 1)),
    (Passing, {"url": U, "cash": 1, "depth": -1}),
    (Links, {"urls": (U,), "flags": b""}),
    (Links, {"urls": (U,) * (MAX_LINKS + 1), "flags": bytes(MAX_LINKS + 1)}),
    (Links, {"truncated": -1}),
    (Links, {"dropped": -1}),
]


@pytest.mark.parametrize(("kind", "values"), VALID, ids=lambda value: getattr(value, "__name__", ""))
def test_a_valid_message_is_frozen_and_slotted(kind: type, values: dict[str, Any]) -> None:
    message = kind(**values)
    with pytest.raises(AttributeError):
        setattr(message, kind.__struct_fields__[0], None)
    assert not hasattr(message, "__dict__")
    assert kind(**values) == message
    assert hash(kind(**values)) == hash(message)


@pytest.mark.parametrize(("kind", "values"), WRONG, ids=lambda value: getattr(value, "__name__", ""))
def test_an_invalid_message_cannot_be_built(kind: type, values: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=kind.__name__):
        kind(**values)


def test_all_messages_are_tried_here() -> None:
    assert set(get_args(Message)) <= {kind for kind, _ in VALID} & {kind for kind, _ in WRONG}


def test_a_failure_needs_no_status_and_an_answer_no_error() -> None:
    assert PageReport(**{**REPORT, "status": 0, "error": "dns"}).error == "dns"
    assert PageReport(**REPORT).error == ""


def test_a_links_flags_do_not_overlap() -> None:
    bits = [LINK_EXTERNAL, LINK_NOFOLLOW, LINK_HINT]
    assert sum(bits) == LINK_EXTERNAL | LINK_NOFOLLOW | LINK_HINT
    assert sum(bits) & LINK_KIND_MASK == 0
    assert all(kind & LINK_KIND_MASK == kind for kind in LinkKind)


def test_errors_say_whose_fault_it_is() -> None:
    assert issubclass(CodecError, InputError)
    assert all(issubclass(fault, XyroError) for fault in (InputError, TheirError, MachineError))
    assert str(TheirError("timeout")) == "timeout"
    error = TheirError("status", "503 for http://h/")
    assert (str(error), error.kind, error.detail) == ("status: 503 for http://h/", "status", "503 for http://h/")
