"""Sorts the URLs that a person hands in: accepted ones in canonical form, refused ones with the reason."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from xyro.frontier.scope import SEED, Scope
from xyro.metadata.states import State
from xyro.wire.errors import InputError
from xyro.wire.ids import local_page, owner_of
from xyro.wire.urls import canonical

if TYPE_CHECKING:
    from xyro.service.views.views import Views

_REFUSALS = {
    "only-net": "only-net: --only-net allows only other networks",
    "blocked-address": "blocked-address: a private or reserved address; --only-net 127.0.0.0/8 reads this machine (and "
    'nothing else); [fetch] allow_private = ["10.0.0.0/8"] opens other private networks (a list; of a cluster: `xyro '
    "cluster set fetch.allow_private=10.0.0.0/8`)",
    "blocked-port": "blocked-port: its port is not among those that may be contacted; add it to [fetch] ports",
}


_FAILED = (State.ERROR, State.FAILED, State.DEAD, State.DISALLOWED)
_WORDS = {State.DEAD: "http-404", State.DISALLOWED: "robots-disallowed"}


def sort_seeds(texts: Iterable[str], scope: Scope) -> tuple[list[str], list[tuple[str, str]]]:
    """(canonical URLs to order, distinct; (text, why) of those refused). Blank lines and # comments are skipped."""
    accepted: dict[str, None] = {}
    refused: list[tuple[str, str]] = []
    for text in map(str.strip, texts):
        if not text or text.startswith("#"):
            continue
        try:
            url = canonical(text, fold_slashes=scope.fold_slashes)
        except InputError as error:
            refused.append((text, str(error)))
            continue
        if reason := why_refused(url, scope):
            refused.append((url, reason))
        else:
            accepted[url] = None
    return list(accepted), refused


def failed_seeds(views: Views, seeds: Sequence[str]) -> list[tuple[str, str]]:
    """The seeds that were tried and gave no page, each with the class of its failure."""
    found = []
    for url in seeds:
        number = views.find(url)
        if number is None:
            continue
        view, page = views.by_number[owner_of(number)], local_page(number)
        if view.state[page] in _FAILED:
            found.append((url, view.row(page).error or _WORDS.get(State(int(view.state[page])), "failed")))
    return found


def why_unread(url: str, scope: Scope) -> str:
    """Return the reason why a canonical URL is not read although somebody hands it in, '' where it is."""
    reason = why_refused(url, scope) or scope.why_out(url, SEED)
    if reason == "excluded":
        pattern = scope.excluding_pattern(url)
        return f'excluded: exclude pattern "{pattern}" fits it; no URL that such a pattern fits is read, a seed neither'
    if reason == "suffix":
        return "suffix: [crawl] skip_suffixes has what it ends in"
    return reason


def why_refused(url: str, scope: Scope) -> str:
    """Return the reason why a canonical URL is never contacted, '' where it may be."""
    reason = scope.why_refused(url)
    return _REFUSALS.get(reason, reason)
