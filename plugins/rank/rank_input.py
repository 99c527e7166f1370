"""Streams a crawl to a ranking as pieces of MessagePack, out of a running process or a stopped directory.

    ["head", {"partitions", "sizes", "damping", "mean", "links", "plain"}]
                                        partitions: of the whole crawl; sizes: (number, entries) of each that is here;
                                        plain: its importance is to be PageRank
    ["pages", partition, state, kind, importance, stale, [URL, ...]]       some entries, in the order of their numbers
    ["links", partition, sources, counts, children]                        some rows of Link-Data
    ["end"]                                                                without it the answer was cut short
    ["fault", sentence]                                                    in its place: why

All pages come before all links. Columns are bytes of little-endian arrays: uint8 state and kind, float64 importance,
float32 stale (NaN: none), uint32 sources, counts and children (local numbers of the partition). One View, so one commit
boundary of a process. The stream of a cluster is those of its nodes, one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import msgpack
import numpy as np

from xyro.configs.schema import Settings
from xyro.metadata import rows
from xyro.metadata.rows import RefreshRow
from xyro.metadata.states import KIND_MASK, KIND_SHIFT
from xyro.service.views.staleness import stale_of_many
from xyro.service.views.views import View, Views
from xyro.wire.errors import InputError, MachineError

PAGES, ROWS = 500, 200
"""entries and rows of one piece: some milliseconds between two turns of the event loop"""
Piece = list[Any]


def pieces(views: Views, with_links: bool, mean: float | None = None) -> Iterator[bytes]:
    """All of a crawl. mean: the importance of a mean page, where it is not that of these partitions.

    InputError: links are wanted and it keeps none."""
    settings = views.settings
    if with_links and not settings.store.links:
        raise InputError(
            "rank: this crawl keeps no links ([store] links = false), and this method goes by them: set it to true and "
            "let pages be read again, or ask for --method opic"
        )
    return _pieces(views, with_links, views.mean if mean is None else mean)


def _plain(settings: Settings) -> bool:
    """No setting asks for another importance than PageRank's."""
    opic = settings.opic
    shares = (opic.unread_weight, opic.internal_weight, opic.query_weight)
    return opic.virtual == "damping" and set(shares) == {1.0} and not settings.focus


def _pieces(views: Views, with_links: bool, mean: float) -> Iterator[bytes]:
    here, damping = views.by_number, views.settings.opic.damping
    count, sizes = views.views[0].partition.facts["partitions"], [(number, view.n) for number, view in here.items()]
    head = {"partitions": count, "sizes": sizes, "damping": damping, "mean": mean, "links": with_links}
    yield packed_piece(["head", {**head, "plain": _plain(views.settings)}])
    for number, view in here.items():
        yield from (packed_piece(["pages", number, *piece]) for piece in _pages(view))
    if with_links:
        for number, view in here.items():
            yield from (packed_piece(["links", number, *piece]) for piece in _rows(view))
    yield packed_piece(["end"])


def packed_piece(piece: Piece) -> bytes:
    packed: bytes = msgpack.packb(piece)
    return packed


def _pages(view: View) -> Iterator[Piece]:
    stored = view.store.scan(rows.MAP.prefix)
    reads = ((rows.REFRESH.split(key), row) for key, row in view.store.scan(rows.REFRESH.prefix))
    read, row = next(reads, (view.n, b""))
    kind = ((view.flags & KIND_MASK) >> KIND_SHIFT).astype(np.uint8)
    for low in range(0, view.n, PAGES):
        part = slice(low, min(low + PAGES, view.n))
        found = list(islice(stored, part.stop - low))
        if [rows.MAP.split(key) for key, _ in found] != list(range(low, part.stop)):
            raise MachineError(f"damaged store: Map-Data lacks pages of {low}..{part.stop - 1}: restore a copy")
        urls = [rows.unpack_map(row) for _, row in found]
        visits: dict[int, RefreshRow] = {}
        while read < part.stop:
            visits[read - low] = rows.unpack_refresh(row)
            read, row = next(reads, (view.n, b""))
        stale = stale_of_many(view.state[part], visits, view.now)
        columns = view.state[part], kind[part], view.importance_of(part).astype("<f8"), stale.astype("<f4")
        yield [*(column.tobytes() for column in columns), urls]


def _rows(view: View) -> Iterator[Piece]:
    stored = ((rows.LINK.split(key), rows.unpack_links(row)) for key, row in view.store.scan(rows.LINK.prefix))
    while some := list(islice(stored, ROWS)):
        sources, children = zip(*some, strict=True)
        counts = [len(found) for found in children]
        yield [
            np.array(sources, "<u4").tobytes(),
            np.array(counts, "<u4").tobytes(),
            np.concatenate(children).astype("<u4").tobytes(),
        ]


def unpacked(data: Iterable[bytes]) -> Iterator[Piece]:
    """The pieces of a stream cut anywhere, until all partitions came. MachineError: it is damaged, or ends before."""
    unpacker = msgpack.Unpacker(max_buffer_size=1 << 30)
    lacking, ended, fault = -1, False, "the crawl's answer was cut short: ask again"
    try:
        for part in data:  # to its end: what sends it is not to wait for its garbage collection
            unpacker.feed(part)
            for piece in unpacker:
                if piece[0] == "head":
                    lacking = (piece[1]["partitions"] if lacking < 0 else lacking) - len(piece[1]["sizes"])
                fault = piece[1] if piece[0] == "fault" else fault
                ended = piece[0] == "end"
                if piece[0] not in ("end", "fault"):
                    yield piece
    except (ValueError, msgpack.UnpackException) as error:
        raise MachineError(f"rank: the crawl's answer cannot be read ({error}): ask again") from error
    if lacking or not ended:
        raise MachineError(f"rank: {fault}")
