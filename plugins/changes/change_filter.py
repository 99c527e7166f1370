"""Conditions on changes, as `--where` and `where` of [[sinks]] write them: `importance > 2 and host = "example.org"`.

    condition    term {("and" | "or") term}, `and` before `or`; parentheses; `not`
    term         FIELD OPERATOR VALUE
    OPERATOR     = != < <= > >=, and `like` with * and ? for texts
    VALUE        a number such as 2.5 or 1e3, or a text in quotes; behind = and != also `null`

A field that a change does not have is null: it fits `= null`, and `!=` with anything else. Fields are those of a line
of `xyro changes`. Pure.
"""

from __future__ import annotations

import fnmatch
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from xyro.wire.errors import InputError

Line = Mapping[str, Any]
Term = Callable[[Line], bool]
TEXTS = ("change", "url", "host", "signature_old", "signature", "location", "time", "modified", "refused")
NUMBERS = ("partition", "epoch", "number", "page", "importance", "rate", "stale", "status", "text_changed")
LONGEST = 4096
"""characters of a condition"""
DEEPEST = 32
"""parentheses and `not` inside each other"""
_TOKEN = re.compile(
    r"""\s*(?:(?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|"(?P<double>[^"]*)"|'(?P<single>[^']*)'"""
    r"""|(?P<operator><=|>=|!=|=|<|>|\(|\))|(?P<word>[A-Za-z_]+))""",
    re.ASCII,
)
_FOREIGN_WILDCARD = re.compile("%(?![0-9A-Fa-f]{2})")
"""what SQL writes for any characters; in a URL it stands before two digits alone"""
_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "like": lambda text, pattern: fnmatch.fnmatchcase(text, pattern),
}


@dataclass(frozen=True, slots=True)
class Condition:
    """Tells whether a change fits. `fields`: those that it looks at."""

    fits: Term
    fields: frozenset[str]

    def __call__(self, line: Line) -> bool:
        return self.fits(line)


def change_filter(text: str) -> Condition | None:
    """The condition of a text; None for an empty one. InputError: it cannot be understood, with the place."""
    if not text.strip():
        return None
    if len(text) > LONGEST:
        raise InputError(f"where: {len(text):,} characters; at most {LONGEST:,}")
    parser = _Parser(text)
    condition = parser.either(0)
    if parser.token is not None:
        raise parser.error("`and` or `or`")
    return Condition(condition, frozenset(parser.fields))


class _Parser:
    """One token ahead."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.place = self.start = 0
        self.token: tuple[str, Any] | None = None
        self.fields: set[str] = set()
        self.advance()

    def error(self, wanted: str) -> InputError:
        rest = self.text[self.start :].strip()
        met = f"`{rest[:30]}`" if rest else "the end"
        return InputError(f"where: expected {wanted}, met {met} in `{self.text[:200]}`")

    def advance(self) -> None:
        """Go on to the next token; None at the end."""
        self.start = self.place
        found = _TOKEN.match(self.text, self.place)
        if found is None:
            if self.text[self.place :].strip():
                self.token = ("", "")
                return
            self.token = None
            return
        self.place = found.end()
        kind = found.lastgroup or ""
        value: Any = found[kind]
        if kind == "number":
            value = float(value)
        self.token = ("text", value) if kind in ("double", "single") else (kind, value)

    def accept(self, word: str) -> bool:
        if self.token not in (("word", word), ("operator", word)):
            return False
        self.advance()
        return True

    def either(self, depth: int) -> Term:
        terms = [self.both(depth)]
        while self.accept("or"):
            terms.append(self.both(depth))
        return terms[0] if len(terms) == 1 else lambda line: any(term(line) for term in terms)

    def both(self, depth: int) -> Term:
        terms = [self.term(depth)]
        while self.accept("and"):
            terms.append(self.term(depth))
        return terms[0] if len(terms) == 1 else lambda line: all(term(line) for term in terms)

    def term(self, depth: int) -> Term:
        if depth > DEEPEST:
            raise self.error(f"at most {DEEPEST} parentheses inside each other")
        if self.accept("not"):
            inner = self.term(depth + 1)
            return lambda line: not inner(line)
        if self.accept("("):
            inner = self.either(depth + 1)
            if not self.accept(")"):
                raise self.error("`)`")
            return inner
        return self.comparison()

    def comparison(self) -> Term:
        kind, field = self.token or ("", "")
        if kind != "word" or field not in (*TEXTS, *NUMBERS):
            raise self.error(f"one of {', '.join((*TEXTS, *NUMBERS))}")
        self.fields.add(field)
        self.advance()
        _, sign = self.token or ("", "")
        if sign not in (*_COMPARE, "!="):
            raise self.error("= != < <= > >= or like")
        self.advance()
        if sign in ("=", "!=") and self.accept("null"):
            return (lambda line: line.get(field) is None) if sign == "=" else lambda line: line.get(field) is not None
        kind, value = self.token or ("", "")
        wanted = "text" if field in TEXTS else "number"
        if kind != wanted or (sign == "like" and wanted == "number"):
            raise self.error("a text in quotes" if wanted == "text" else "a number")
        if sign == "like" and _FOREIGN_WILDCARD.search(value):
            raise self.error("* for any characters, ? for one (% is neither, but a part of %20)")
        self.advance()
        if sign == "!=":
            return lambda line: line.get(field) != value
        compare = _COMPARE[sign]
        return lambda line: line.get(field) is not None and compare(line[field], value)
