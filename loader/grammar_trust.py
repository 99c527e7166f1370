"""Trust in grammars and sites: a document that has to be given up costs 0.4 s each time.

The fault may be the grammar's, or a document's: DocBook 5 in RELAX NG judges 20 kB in 0.01 s and cannot judge 1 MB in
time. So a grammar has credit for three documents that are given up; documents that are judged pay back, and so does
waiting. The share of documents given up thus stays under 1 in 10 (40 ms a document), and nobody can switch off a
grammar of others for good by naming it in documents that take long. The same holds of sites, some of which may make a
grammar for each document.
"""

from __future__ import annotations

from collections import OrderedDict

STRIKE = 100
FULL = 3 * STRIKE
JUDGED, PASSED = 10, 1
"""what a document pays back that was judged, and one that was not, because no credit was left"""
_CAPACITY = 1_000
"""grammars and sites in distress that are remembered"""


class GrammarTrust:
    """By the key of a grammar, or the name of a site. Pure."""

    def __init__(self) -> None:
        self._credit: OrderedDict[str, tuple[int, str]] = OrderedDict()
        """credit, and what the last death was of; grammars with full credit are not here"""

    def refuses(self, key: str) -> str:
        """Say why the grammar is not tried for this document; empty: it is."""
        credit, why = self._credit.get(key, (FULL, ""))
        if credit >= STRIKE:
            return ""
        self._put(key, credit + PASSED, why)
        return why

    def judged(self, key: str) -> None:
        if key in self._credit:
            credit, why = self._credit[key]
            self._put(key, credit + JUDGED, why)

    def died(self, key: str, why: str, *, wholly: bool) -> None:
        """`wholly`: it was the grammar, no document was there yet."""
        credit, _ = self._credit.get(key, (FULL, ""))
        self._put(key, 0 if wholly else credit - STRIKE, why)

    def _put(self, key: str, credit: int, why: str) -> None:
        self._credit.pop(key, None)
        if credit < FULL:
            self._credit[key] = credit, why
        if len(self._credit) > _CAPACITY:
            self._credit.popitem(last=False)
