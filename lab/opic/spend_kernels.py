"""OPIC in machine code: read after read on a graph in memory, one loop a selector (twin: simulate.advance).

The arithmetic is that of opic/cash.py, unit for unit, and the selectors are those of selectors.py and buckets.py, so
that log and columns come out equal. `books` holds the cash that lies in no column: int64 [scalar, pot, account, spent]
of World. The log of a call is pages[k], cash[k] (units) and before[k] (units spent before that read).
"""

from __future__ import annotations

import numpy as np

from xyro.opic.arrays import Pages, Reals, Units
from xyro.opic.cash import PAYOUT_SHARE, UNIT
from xyro.opic.jit import compiled

SCALAR, POT, ACCOUNT, SPENT = range(4)
THETA, TARGET = range(2)
POINTER, SCANNED, HITS = range(3)

_BITS = 31
_LOW = (1 << _BITS) - 1
_UNIT, _SHARE = UNIT, PAYOUT_SHARE
_GOLDEN, _FIRST, _SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_BY_30, _BY_27, _BY_31 = np.uint64(30), np.uint64(27), np.uint64(31)


@compiled
def _start(page: int, visit: int, degree: int) -> np.int64:
    """cash.seeds_of of one page, modulo its number of links."""
    x = np.uint64(page) * _GOLDEN + np.uint64(visit)
    x = (x ^ (x >> _BY_30)) * _FIRST
    x = (x ^ (x >> _BY_27)) * _SECOND
    return np.int64((x ^ (x >> _BY_31)) % np.uint64(degree))


@compiled
def _pay(books: Units, n: int) -> None:
    """VirtualPage.pay."""
    if books[POT] * _SHARE >= _UNIT * n:
        account = books[ACCOUNT] + books[POT]
        raised = account // n
        books[POT] = 0
        books[ACCOUNT] = account - raised * n
        books[SCALAR] += raised


@compiled
def _spend(page: int, indptr: Pages, indices: Pages, keys: Units, visits: Pages, books: Units, weight: int) -> np.int64:
    """World.spend of one page; returns the cash it held."""
    cash: np.int64 = keys[page] + books[SCALAR]
    first, degree = indptr[page], indptr[page + 1] - indptr[page]
    keys[page] = -books[SCALAR]
    virtual = cash
    if degree > 0:
        virtual = (cash >> _BITS) * weight + (((cash & _LOW) * weight) >> _BITS)
        each = (cash - virtual) // degree
        odd = cash - virtual - each * degree
        for link in range(first, first + degree):
            keys[indices[link]] += each
        start = _start(page, visits[page], degree)
        for k in range(start, start + odd):
            keys[indices[first + (k if k < degree else k - degree)]] += 1
    visits[page] += 1
    books[SPENT] += cash
    books[POT] += virtual
    _pay(books, indptr.size - 1)
    return cash


@compiled
def in_order(
    indptr: Pages,
    indices: Pages,
    keys: Units,
    visits: Pages,
    books: Units,
    weight: int,
    pages: Pages,
    cash: Units,
    before: Units,
) -> None:
    """Read the pages given in `pages`, in that order (Cycle, Random)."""
    for k in range(pages.size):
        before[k] = books[SPENT]
        cash[k] = _spend(pages[k], indptr, indices, keys, visits, books, weight)


@compiled
def _sweep_next(keys: Units, scalar: int, real: Reals, whole: Pages, width: int) -> int:
    """SweepSelector.pick of one page."""
    n = keys.size
    while True:
        start = whole[POINTER] if whole[POINTER] < n else 0
        stop, wanted = min(n, start + width), real[THETA] - scalar
        found, rich = -1, 0
        for page in range(start, stop):
            if keys[page] >= wanted:
                found = page if found < 0 else found
                rich += 1
        if rich > 1:
            stop = found + 1
        whole[POINTER] = stop % n
        whole[SCANNED] += stop - start
        whole[HITS] += min(rich, 1)
        if whole[SCANNED] * 64 >= n:
            ratio = ((whole[HITS] / whole[SCANNED] + 0.001) / real[TARGET]) ** 0.5
            real[THETA] = max(1.0, real[THETA] * min(max(ratio, 0.5), 2.0))
            whole[SCANNED] = whole[HITS] = 0
        if found >= 0:
            return found


@compiled
def by_sweep(
    indptr: Pages,
    indices: Pages,
    keys: Units,
    visits: Pages,
    books: Units,
    weight: int,
    pages: Pages,
    cash: Units,
    before: Units,
    real: Reals,
    whole: Pages,
) -> None:
    """Fill the log by the threshold sweep: real [theta, target], whole [pointer, scanned, hits] of SweepSelector."""
    width = max(1, int(1 / real[TARGET]))
    for k in range(pages.size):
        page = _sweep_next(keys, books[SCALAR], real, whole, width)
        pages[k], before[k] = page, books[SPENT]
        cash[k] = _spend(page, indptr, indices, keys, visits, books, weight)


@compiled
def _lift(tree: Pages, keys: Units, page: int) -> None:
    """The key of `page` changed: see who wins above it, as far up as that can have changed."""
    node = (tree.size // 2 + page) // 2
    while node >= 1:
        left, right = tree[2 * node], tree[2 * node + 1]
        winner = left if right < 0 or keys[left] >= keys[right] else right
        if tree[node] == winner and winner != page:
            return
        tree[node] = winner
        node //= 2


@compiled
def by_greed(
    indptr: Pages,
    indices: Pages,
    keys: Units,
    visits: Pages,
    books: Units,
    weight: int,
    pages: Pages,
    cash: Units,
    before: Units,
    tree: Pages,
) -> None:
    """Fill the log with the richest page of each moment. `tree` is a tournament over the keys: tree[1] is the richest
    page, tree[i] the better of tree[2i] and tree[2i+1], the second half are the pages (-1 beyond the last)."""
    for k in range(pages.size):
        page = tree[1]
        pages[k], before[k] = page, books[SPENT]
        cash[k] = _spend(page, indptr, indices, keys, visits, books, weight)
        _lift(tree, keys, page)
        for link in range(indptr[page], indptr[page + 1]):
            _lift(tree, keys, indices[link])


@compiled
def _unlink(page: int, level: Pages, top: Pages, below: Pages, above: Pages) -> None:
    """Buckets._unlink."""
    bits = level[page]
    if bits < 0:
        return
    if above[page] >= 0:
        below[above[page]] = below[page]
    else:
        top[bits] = below[page]
    if below[page] >= 0:
        above[below[page]] = above[page]
    level[page] = -1


@compiled
def _restack(page: int, cash: int, level: Pages, top: Pages, below: Pages, above: Pages) -> None:
    """Buckets.changed of one page."""
    bits = 0
    while cash > 0:
        cash >>= 1
        bits += 1
    if bits == level[page]:
        return
    _unlink(page, level, top, below, above)
    old = top[bits]
    level[page], below[page], above[page], top[bits] = bits, old, -1, page
    if old >= 0:
        above[old] = page


@compiled
def by_buckets(
    indptr: Pages,
    indices: Pages,
    keys: Units,
    visits: Pages,
    books: Units,
    weight: int,
    pages: Pages,
    cash: Units,
    before: Units,
    level: Pages,
    top: Pages,
    below: Pages,
    above: Pages,
) -> None:
    """Fill the log from the fullest stack of each moment; the columns are those of Buckets. The caller rebuilds it."""
    for k in range(pages.size):
        bits = top.size - 1
        while top[bits] < 0:
            bits -= 1
        page = top[bits]
        _unlink(page, level, top, below, above)
        pages[k], before[k] = page, books[SPENT]
        cash[k] = _spend(page, indptr, indices, keys, visits, books, weight)
        touched = np.empty(indptr[page + 1] - indptr[page] + 1, np.int64)
        touched[0] = page
        touched[1:] = indices[indptr[page] : indptr[page + 1]]
        touched.sort()  # as np.unique orders them: who lies above whom decides whom greed meets first
        for other in touched:
            _restack(other, keys[other] + books[SCALAR], level, top, below, above)
