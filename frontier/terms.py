"""Terms of cash as the settings name them: what the virtual page pays to whom, and what links weigh."""

from __future__ import annotations

from xyro.configs.schema import Settings
from xyro.opic.cash import LINK
from xyro.opic.focus import Terms, weights_of


def terms_of(settings: Settings) -> Terms:
    """Plain numbers for the ledger. Which page is in which class is the business of plugins/focus."""
    opic, tables = settings.opic, settings.focus
    return Terms(
        edge=opic.edge_weight if opic.virtual == "edge" else 0.0,
        weights=weights_of([opic.ordinary_weight, *(table.weight for table in tables)], opic.unread_weight),
        internal=round(LINK * opic.internal_weight),
        query=round(LINK * opic.query_weight),
    )


def link_words(settings: Settings) -> frozenset[str]:
    """Words, case-folded, that the link extractor is to look for in and around anchors; none where no class depends
    on them."""
    if not terms_of(settings).by_class:
        return frozenset()
    return frozenset(word.casefold() for table in settings.focus for word in table.words)
