"""Of `xyro why`: what is promised of a page: a publication with its deadline, a cluster, subscriptions."""

from __future__ import annotations

from xyro.service.views.views import View, stamp


def of_promises(view: View, page: int, now: float) -> list[str]:
    """Sentences; none for nearly all pages."""
    promises = view.node.promises
    said = []
    if (claim := promises.publications.pages.get(page)) is not None:
        trust = "it is ordered ahead of the plan" if claim.ordered else "it is not trusted, and only hastens the read"
        late = f", {now - claim.deadline:.0f} s ago" if claim.deadline < now else ""
        said.append(
            f"{claim.publisher} published it as {claim.claim} at {stamp(claim.at)}: {trust}; "
            f"to be read by {stamp(claim.deadline)}{late}."
        )
    cluster = promises.clusters.of(page + view.partition.base) if promises.clusters is not None else None
    if cluster is not None:
        said.append(
            f"It is in cluster {cluster.name} of {len(cluster.members):,} pages (importance {cluster.importance:.3g}, "
            f"{cluster.rate:.3g} changes a day), read together: the last round took {cluster.spread:.1f} s of the "
            f"window's {cluster.window:g}, the next is due {stamp(cluster.due)}."
        )
    if promises.readers is not None and page + view.partition.base in promises.readers.overdue:
        said.append("A subscription's notice was due before it was refreshed.")
    return said
