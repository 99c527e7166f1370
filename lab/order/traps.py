"""Sites with a trap beside real pages, as an asker meets them: a path in, the links of its page out.

All have the same 245 real pages on six levels (1, 4, 16, 48, 80, 96), in four sections. The page of the first section
opens the trap, whose pages lead home, back to it, and on to `width` others:

    closed         400 lists of one page by facets: they lead to each other, or (width 0) back only
    endless        400 such lists, each of which leads to new ones
    calendar       a page a month, by query: to the months before and after, then the years and decades
    tree           folders within folders
    fresh-folders  each page leads to pages in folders of their own
    session-ids    each page shows all its links under a session id that nobody saw before
"""

from __future__ import annotations

LEVELS = (1, 4, 16, 48, 80, 96)
REAL = sum(LEVELS)
FACETS = 400
WIDTHS = {"closed": 0, "endless": 20, "calendar": 2, "tree": 2, "fresh-folders": 1, "session-ids": 0}
"""shape -> links of a trap's page that lead on, by default"""
HARD = {"closed": 5, "endless": 5, "calendar": 6, "tree": 10, "fresh-folders": 10, "session-ids": 0}
"""the same of harder ones"""
_STARTS = [sum(LEVELS[:level]) for level in range(len(LEVELS) + 1)]
_STEPS = (-1, 1, -12, 12, -120, 120)


def real_pages() -> list[str]:
    """The paths of the 245 real pages, level by level; the first is the entry."""
    return ["/", *map(_path, range(1, REAL))]


def _path(number: int) -> str:
    return f"/section{_section(number)}/page{number}.html"


def _parent(number: int) -> int:
    """The page one level up that links to it."""
    level = next(level for level, stop in enumerate(_STARTS[1:]) if number < stop)
    return _STARTS[level - 1] + (number - _STARTS[level]) % LEVELS[level - 1]


def _section(number: int) -> int:
    while number >= _STARTS[2]:
        number = _parent(number)
    return (number - 1) % LEVELS[1]


def _facet(number: int) -> str:
    return f"/section0/list?colour={number % 20}&size={number // 20}"


def _month(number: int) -> str:
    return f"/section0/calendar?month={number}"


class TrapSite:
    """One shape. The site counts what it served: a page that is asked twice may show other session ids."""

    def __init__(self, shape: str, width: int | None = None) -> None:
        self.shape = shape
        self.width = WIDTHS[shape] if width is None else width
        self._numbers = {path: number for number, path in enumerate(real_pages())}
        self._below: dict[int, list[str]] = {}
        for number in range(1, REAL):
            self._below.setdefault(_parent(number), []).append(_path(number))
        self._served = 0

    def real(self, path: str) -> str | None:
        """The real page at a path, whatever its session id; None for the trap's pages."""
        page = path.partition("?sid=")[0]
        return page if page in self._numbers else None

    def links(self, path: str) -> list[str]:
        """The links that the page at this path shows."""
        self._served += 1
        page = self.real(path)
        if page is None:
            return ["/", _path(1), *self._onward(path)]
        found = self._below.get(self._numbers[page], ["/"])
        if self.shape == "session-ids":
            return [f"{link}?sid={self._served}" for link in found]
        return found + self._opened() if page == _path(1) else found

    def _opened(self) -> list[str]:
        """The links that lead into the trap."""
        match self.shape:
            case "closed":
                return [_facet(number) for number in range(FACETS)]
            case "endless":
                return [f"/section0/list?filter={number}" for number in range(FACETS)]
            case "calendar":
                return [_month(24_000 + month) for month in range(12)]
            case "tree":
                return [f"/tree/{name}/" for name in range(10)]
            case _:
                return [f"/x{number}/index.html" for number in range(10)]

    def _onward(self, path: str) -> list[str]:
        """The links that a page of the trap shows into it."""
        number, steps = int("".join(filter(str.isdigit, path)) or 0), range(self.width)
        match self.shape:
            case "closed":
                colour, size = (int(part.rpartition("=")[2]) for part in path.split("&"))
                return [_facet((colour + 20 * size + 2**step) % FACETS) for step in steps]
            case "endless":
                number = int(path.rpartition("=")[2])
                return [f"/section0/list?filter={FACETS + self.width * number + step}" for step in steps]
            case "calendar":
                number = int(path.rpartition("=")[2])
                return [_month(number + _STEPS[step]) for step in steps]
            case "tree":
                return [f"{path}{name}/" for name in steps]
            case _:
                return [f"/x{10 + self.width * number + step}/index.html" for step in steps]


SHAPES = tuple(WIDTHS)
