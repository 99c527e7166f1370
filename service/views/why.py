"""Explains a URL for `xyro why`: what the crawl has stored of it, and what decides when it is read."""

from __future__ import annotations

from typing import Any

from xyro.frontier.scope import BESIDE
from xyro.metadata.states import LEASED, WANTED, State
from xyro.service.views.cash_sources import giver_sentences
from xyro.service.views.claim_evidence import evidence_sentences
from xyro.service.views.host_standing import shown_by, waiting_sentences
from xyro.service.views.importance_bounds import importance_sentences
from xyro.service.views.views import View, Views
from xyro.service.views.wait_reasons import wait_sentences
from xyro.service.views.why_due import (
    host_sentences,
    interval_sentences,
    rate_sentence,
    retry_sentences,
    stale_sentences,
)
from xyro.service.views.why_score import score_fields, score_parts, score_sentences
from xyro.wire.durations import duration_text
from xyro.wire.ids import LocalPage, split
from xyro.wire.text import counted, stamp
from xyro.wire.uses import signals


def why(views: Views, url: str, now: float) -> dict[str, Any]:
    """The page's export row, and `because`: sentences that explain its state and its next read."""
    number = views.find(url)
    if number is None:
        return {"url": url, "state": "unknown", "because": _unknown(views, url)}
    owner, page = split(number)
    view = views.by_number[owner]
    row = view.describe_now(page, views.mean)
    because = [*_because(view, page, now), *_evidence(view, page), *wait_sentences(views, view, page)]
    parts = score_parts(view, page)
    return {**row, **score_fields(parts), "because": [*because, *score_sentences(parts), *importance_sentences(row)]}


def with_givers(explanation: dict[str, Any], givers: dict[str, Any]) -> dict[str, Any]:
    """Add the pages that give it most cash to an explanation (service/views/cash_sources.py)."""
    return {**explanation, **givers, "because": [*explanation["because"], *giver_sentences(givers)]}


def _unknown(views: Views, url: str) -> list[str]:
    sentences = ["No page read so far links to it, and nobody submitted it."]
    for view in views.views:
        if (parent := shown_by(view.frontier, url)) is not None:
            sentences = [f"A link of {parent} to it waits: `xyro why` of that page says for what."]
    scope = views.scope
    if reason := scope.why_refused(url) or scope.why_out(url, BESIDE):
        sentences.append(f"If a link to it were found, it would not be read: {_RULES.get(reason, reason)}.")
    return sentences


_RULES = {
    "out-of-scope": "its host is not among the seeds' (scope)",
    "suffix": "its suffix is one of skip_suffixes: not worth reading",
    "too-deep": "it is deeper than max_depth",
    "excluded": "an exclude pattern fits it",
    "not-included": "no include pattern fits it",
    "only-net": "--only-net allows only other networks",
    "blocked-address": "its address is private or reserved, and in no network of [fetch] allow_private",
    "blocked-port": "its port is not among those that may be contacted",
}

_PROXY = " The proxy that the settings name for its host could not be reached, refused, or did not answer."


def _evidence(view: View, page: LocalPage) -> list[str]:
    return evidence_sentences(view.row(page), view.partition.hosts, int(view.host[page]), stamp)


def _because(view: View, page: LocalPage, now: float) -> list[str]:
    sentences = [_state(view, page), *host_sentences(view, page, now)]
    row = view.row(page)
    if row.reads and view.state[page] == State.READ:
        sentences += [rate_sentence(row), *stale_sentences(row, now), *interval_sentences(view, page, row, now)]
    sentences += retry_sentences(view, page)
    sentences += waiting_sentences(view.frontier, page)
    for why in view.frontier.hooks.why:
        sentences += why(page, now)
    if (children := view.children(page)) is not None:
        sentences.append(f"It has {counted(len(children), 'link')}.")
    return sentences


def _state(view: View, page: LocalPage) -> str:
    flags, state, row = view.flags[page], State(int(view.state[page])), view.row(page)
    if flags & LEASED:
        return "An order to read it is out."
    if flags & WANTED:
        return "It was ordered: it is read as soon as its host may be read."
    match state:
        case State.UNREAD:
            return "It is in scope and waits to be read."
        case State.READ:
            refused = f" The robots.txt of its host refuses these uses: {signals(row.refused)}." if row.refused else ""
            return f"It was read last at {stamp(row.last_read)} (HTTP {row.status}).{_fault(row.fault)}{refused}"
        case State.ERROR:
            again = stamp(int(view.due[page]))
            proxy = _PROXY if row.error == "proxy-failed" else ""
            return f"Its last read failed for now ({row.error}); it is tried again at {again}.{proxy}"
        case State.FAILED:
            return f"Its last read failed for good ({row.error})."
        case State.DEAD:
            again = duration_text(max(row.last_read - row.gone_since, 0.0))
            return f"It is dead: it answered 404 or 410 at {stamp(row.gone_since)}, and again {again} later."
        case State.DISALLOWED if row.error == "content-signal":
            refused = signals(row.refused)
            return (
                f"The robots.txt of its host refuses every use that this crawl has for it (Content-Signal: {refused})."
            )
        case State.DISALLOWED:
            return "The robots.txt of its host forbids it."
        case _:
            reason = view.why_out(page, view.url(page)) or row.error or "out-of-scope"
            return f"It is never read: {_RULES.get(reason, reason)}."


def _fault(fault: str) -> str:
    match fault:
        case "":
            return ""
        case "too-large":
            return " Its body was cut at [fetch] max_body: links behind the cut are not known."
        case "ratio-too-large":
            return " Its body was cut at [fetch] max_ratio: links behind the cut are not known."
        case "truncated":
            return " Its body ended early: links behind its end are not known."
        case _:
            return f" Its body has a fault: {fault}."
