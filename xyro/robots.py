"""robots.txt by RFC 9309: what a body says about us (Robots), and what holds for an origin right now (RobotsTable).

All of it is pure. Robots has two stages. A pre-filter reads the octets as Google's parser does: only known lines
count, an agent is cut to its product token, groups of the same agent are merged, and only the rules that speak to us
are kept. protego gets those and nothing else: it finds the longest match (2.2.2). It would count, and search, octets as
it escapes them ("?" as three), so that /*? were longer than *.js and *A matched the star in /*x, which it writes %2A:
rules and paths are brought into one form here, and each of its octets is spelt in two letters, which protego leaves
alone. So the match with the most octets wins, and nothing matches half of one. Before protego is asked at all,
`allows` looks for the literal beginnings (or the longest literal parts) of the disallow rules in the path: most URLs
match none of them and are allowed. A robots.txt without a Disallow for us never builds a protego object.

Content-Signal lines (contentsignals.org) are for the agents named last, those ahead of all agents for everyone. What
one line refuses no other one grants.

Bounds on hostile files: 500 KiB are read (2.5), protego's matcher takes the literal parts of a wildcard rule one
after another and never goes back, and wildcard rules over WILDCARD_BUDGET octets are replaced by something stricter
and cheap: a Disallow by its literal beginning, an Allow by nothing.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Iterator
from urllib.parse import quote

from msgspec import Struct, field
from protego import Protego

from xyro.answer import Answer
from xyro.failures import DAY, policy
from xyro.wire.urls import resolve
from xyro.wire.uses import SEARCH, USES, bits

LONG = 32 * 1024
"""bytes of a file that is parsed beside the event loop"""
MAX_BODY = 500 * 1024
"""Octets read of a robots.txt (RFC 9309 2.5: at least 500 KiB)."""
MAX_SITEMAPS = 1_000
"""Sitemap lines kept of one file: an index of sitemaps holds 50,000, so nobody needs more lines than this."""
WILDCARD_BUDGET = 32 * 1024
"""Octets of wildcard rules matched as written: about 1,000 rules, and at most 50 ms for the worst of URLs."""
UNREACHABLE_DAYS = 30.0
"""RFC 9309 2.3.1.4: after a reasonably long time, "for example 30 days", unreachable may count as unavailable."""
_RETRY_FIRST, _RETRY_CAP = 20.0, DAY / 4
"""Seconds until an unreachable robots.txt is asked for again: doubles from the first to the cap."""

_LINE = re.compile(
    rb"^[ \t]*+(user[- ]?agent|allow|disallow|dissallow|dissalow|disalow|diasllow|disallaw"
    rb"|crawl[- ]?delay|site-?maps?|content-signal)[ \t]*+(?::|(?<=[ \t]))[ \t]*+([^\n#]*+)",
    re.IGNORECASE | re.MULTILINE,
)
"""A line that counts: a known field (with the misspellings of Google's parser), a colon or white space, a value."""
_SIGNAL = re.compile(rb"[ \t]*+([a-z-]++)[ \t]*+=[ \t]*+(yes|no)[ \t]*+", re.IGNORECASE)
_PRODUCT = re.compile(rb"[A-Za-z_-]+")
_NUMBER = re.compile(rb"\d{1,12}(?:\.\d{1,12})?(?:[eE]\d{1,2})?")
_BOM = re.compile(rb"\A\xef(?:\xbb\xbf?)?")
_PRINTABLE = "".join(chr(c) for c in range(0x21, 0x7F))
_ESCAPE = re.compile("%(?:2[1-46-9A-Ea-e]|[3-6][0-9A-Fa-f]|7[0-9A-Ea-e]|[0-9A-Fa-f][a-f]|[a-f][0-9A-F])")
"""Escapes that have another form to be compared in: of printable characters but % and /, and in small letters."""
_CAPITALS = "ABCDEFGHIJKLMNOP"
_LETTERS = {chr(k): "abcdefgh"[k >> 4] + _CAPITALS[k & 15] for k in range(128)} | {
    f"%{k:02X}": f"jAi{_CAPITALS[k >> 4]}i{_CAPITALS[k & 15]}" for k in range(256)
}
"""How an octet, or an escaped one, is spelt to protego: with a letter first that begins nothing else, so that no rule
begins to match within; two letters for each character."""
_UNITS = re.compile("%[0-9A-F]{2}|.", re.DOTALL).findall
_ANY, _END = "**", "zZ"
"""How * is spelt (a * more changes nothing but its length), and where a path ends, which $ stands for."""
_INDEX = "index.html"
_AGENT, _ALLOW, _DISALLOW, _DELAY, _SITEMAP, _SIGNALS = b"us", b"al", b"di", b"cr", b"si", b"co"


class _Group(Struct):
    """The merged groups of one agent: rules as (is_allow, pattern), in a dict for its order and uniqueness."""

    named: bool = False
    refused: int = 0
    """uses that it says no to (wire/uses.py)"""
    rules: dict[tuple[bool, str], None] = field(default_factory=dict)
    delay: float | None = None

    def add(self, name: bytes, value: bytes) -> None:
        if name == _SIGNALS:
            self.refused |= _refusals(value)
        elif name == _DELAY:
            number = _NUMBER.match(value)
            if number is not None:
                self.delay = max(float(number[0]), self.delay or 0.0)
        elif value.startswith((b"/", b"*")):  # 2.2.2: nothing else can match a path
            pattern = quote(value, safe=_PRINTABLE)
            self.rules[name == _ALLOW, pattern] = None
            if name == _ALLOW and pattern.endswith("/" + _INDEX):  # as Google's parser: its folder is meant, too
                self.rules[True, pattern.removesuffix(_INDEX) + "$"] = None


class _Agents(Struct):
    """The agents that the lines of a group are for."""

    mine: bool = False
    """we are among them"""
    anybodys: bool = False
    """* is"""
    open: bool = False
    """2.1: consecutive agent lines share the lines that follow"""

    def add(self, mine: bool, anybodys: bool) -> None:
        """One more agent, or the first of another group."""
        self.mine = mine or (self.open and self.mine)
        self.anybodys = anybodys or (self.open and self.anybodys)
        self.open = True


class Robots:
    """The rules of one robots.txt for one agent. `crawl_delay` is in seconds (finite, >= 0), None where none was given;
    `sitemaps` are the values of its Sitemap lines as they stand; `refused` are uses of what is read that it says no to
    (wire/uses.py), `is_unwanted` whether the crawl's `purposes` are all among them."""

    __slots__ = ("_needles", "_prefixes", "_protego", "_text", "crawl_delay", "is_unwanted", "refused", "sitemaps")

    def __init__(self, group: _Group, sitemaps: tuple[str, ...] = (), purposes: int = SEARCH) -> None:
        rules = _bounded(group.rules)
        forbidden = [pattern for allow, pattern in rules if not allow]
        self.crawl_delay = group.delay
        self.sitemaps = sitemaps
        self.refused = group.refused
        self.is_unwanted = bool(group.refused) and not purposes & ~group.refused
        self._prefixes, self._needles = _literals(forbidden)
        lines = [f"{'Allow' if allow else 'Disallow'}: {_spelt_pattern(pattern)}\n" for allow, pattern in rules]
        self._text = "".join(lines) if forbidden else ""
        self._protego: Protego | None = None

    @classmethod
    def parse(cls, body: bytes, token: str, *, cut: bool = False, purposes: int = SEARCH) -> Robots:
        """The rules for the product token `token` (letters, - and _). Never raises: lines that are none do not count.

        `cut`: the end of the body is missing, so its last line is not to be believed. `purposes`: uses that the crawl
        reads for, as bits (wire/uses.py).
        """
        own, everybody, sitemaps = _Group(), _Group(), list[str]()
        ruled, signalled = _Agents(), _Agents(mine=True, anybodys=True)
        for name, value in _lines(body, cut):
            if name == _AGENT:
                product = _PRODUCT.match(value)
                mine = product is not None and product[0].decode().lower() == token.lower()
                anybodys = value == b"*" or value.startswith((b"* ", b"*\t"))
                ruled.add(mine, anybodys)
                signalled.add(mine, anybodys)
                own.named = own.named or mine
            elif name == _SITEMAP:  # 2.2.4: belongs to no group and ends none
                if value and len(sitemaps) < MAX_SITEMAPS:
                    sitemaps.append(value.decode("utf-8", "replace"))
            else:
                ruled.open &= name in (_DELAY, _SIGNALS)  # 2.2.4: nor does what the RFC does not know
                signalled.open &= name == _DELAY
                agents = signalled if name == _SIGNALS else ruled
                if agents.mine:
                    own.add(name, value)
                if agents.anybodys:
                    everybody.add(name, value)
        return cls(own if own.named else everybody, tuple(sitemaps), purposes)

    def dump(self) -> tuple[tuple[str, ...], tuple[str, ...], str, float | None, tuple[str, ...], int]:
        """All but the purposes, for `of_dump`."""
        return self._prefixes, self._needles, self._text, self.crawl_delay, self.sitemaps, self.refused

    @classmethod
    def of_dump(
        cls, dump: tuple[tuple[str, ...], tuple[str, ...], str, float | None, tuple[str, ...], int], purposes: int
    ) -> Robots:
        """The rules that `dump` returned, in whichever process."""
        prefixes, needles, text, delay, sitemaps, refused = dump
        rules = cls(_Group(delay=delay, refused=refused), sitemaps, purposes)
        rules._prefixes, rules._needles, rules._text = prefixes, needles, text
        return rules

    @property
    def weight(self) -> int:
        """About how many bytes of memory this takes (measured: a compiled rule takes some 12 bytes per octet)."""
        return 400 + 12 * len(self._text) + sum(map(len, self.sitemaps))

    def allows(self, url: str) -> bool:
        """Tell whether the canonical `url` (of the origin this file came from) may be read."""
        if not self._text:
            return True
        path = url[url.index("/", 8) :]
        if "%" in path:
            path = _decoded(path)
        if not path.startswith(self._prefixes):
            for needle in self._needles:
                if needle in path:
                    break
            else:
                return True
        return self._ask(path)

    def _ask(self, path: str) -> bool:
        if path.partition("?")[0] == "/robots.txt":  # 2.2.2
            return True
        allowed: bool = self.compile().can_fetch(f"http://h/{_spelt(path)}{_END}", "*")
        return allowed

    def compile(self) -> Protego:
        """Parse the rules for good, which of most files none is ever asked for."""
        if self._protego is None:
            self._protego = Protego.parse("User-agent: *\n" + self._text)
        return self._protego


def _spelt(text: str) -> str:
    return "".join(map(_LETTERS.__getitem__, _UNITS(text) if "%" in text else text))


def _spelt_pattern(pattern: str) -> str:
    """A rule's pattern as protego gets it, twice as many characters as it has octets, and a slash."""
    parts = [_spelt(_decoded(part)) for part in pattern.removesuffix("$").split("*")]
    return f"/{_ANY.join(parts)}{_END if pattern.endswith('$') else ''}"


def _lines(body: bytes, cut: bool) -> Iterator[tuple[bytes, bytes]]:
    """(first two letters of the field, value) of every line that counts, for any of the three line ends.

    UTF-16 is read where it says so by its byte order mark; without one its ASCII survives the removal of NULs.
    """
    if body.startswith((b"\xff\xfe", b"\xfe\xff")):
        body = body[: 2 * MAX_BODY].decode("utf-16", "replace").encode("utf-8", "replace")
    text = _BOM.sub(b"", body[:MAX_BODY]).replace(b"\0", b"").replace(b"\r", b"\n")
    if cut or len(body) > MAX_BODY:
        text = text[: text.rfind(b"\n") + 1]
    for line in _LINE.finditer(text):
        yield line[1][:2].lower(), line[2].rstrip()


def _refusals(value: bytes) -> int:
    """The uses that a Content-Signal line refuses. An item that is none says nothing."""
    items = (_SIGNAL.fullmatch(item) for item in value.split(b","))
    refused = (item[1].decode().lower() for item in items if item is not None and item[2].lower() == b"no")
    return bits(name for name in refused if name in USES)


def _bounded(rules: dict[tuple[bool, str], None]) -> list[tuple[bool, str]]:
    """The rules, with wildcards only within the budget; what is over it becomes stricter, never laxer."""
    bounded: dict[tuple[bool, str], None] = {}
    spent = 0
    for allow, pattern in rules:
        star = pattern.find("*")
        if star >= 0:
            spent += len(pattern)
            if spent > WILDCARD_BUDGET:
                if allow:
                    continue
                pattern = pattern[:star] or "/"
        bounded[allow, pattern] = None
    return list(bounded)


def _literals(patterns: list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(prefixes, needles): what begins with no prefix and holds no needle matches no pattern.

    A pattern is represented by what it begins with, or, where that is only "/" or nothing, by its longest literal part.
    """
    prefixes: dict[str, None] = {}
    needles: dict[str, None] = {}
    for pattern in patterns:
        parts = [_decoded(part) for part in pattern.removesuffix("$").split("*")]
        longest = max(parts, key=len)
        if len(parts[0]) > 1 or len(longest) <= 1:
            prefixes[parts[0]] = None
        else:
            needles[longest] = None
    return tuple(prefixes), tuple(needles)


def _decoded(text: str) -> str:
    """Percent escapes in the one form in which paths and rules are compared before protego is asked."""
    return _ESCAPE.sub(_one_form, text)


def _one_form(escape: re.Match[str]) -> str:
    """Printable characters as themselves, except / and % (2.2.2: escaped they are other octets); the rest in
    capitals.
    """
    code = escape[0].upper()
    char = chr(int(code[1:], 16))
    return char if "!" <= char <= "~" and char not in "/%" else code


EVERYTHING = Robots(_Group())
"""No rules: everything may be read."""


class RobotsState(Struct, frozen=True):
    """The rules in force for one origin until `fresh_until` (monotonic seconds).

        robots.txt answered with                                   holds                      asked again after
        2xx                                                        its rules                  24 h (2.4)
        3xx without end, a redirect to nowhere                     everything allowed         24 h (2.3.1.2)
        4xx but the next three                                     everything allowed         24 h (2.3.1.3)
        401, 403: the site guards even its rules                   nothing allowed            24 h
        429, 5xx, no answer, a broken or incomplete one            nothing allowed            20 s, doubling up to 6 h,
        any of them that asks for a signature                      nothing allowed            or Retry-After (2.3.1.4)
        the same for 30 days: its last rules, else everything      those                      as above
        a host that we may not contact (guard, --only-net)         nothing allowed            24 h

    Rules whose Content-Signal says no to all that the crawl reads for let it read nothing (content-signal).

    `kind` is the failure class that every page of the origin reports while nothing is allowed: robots-unreachable, or
    the class of the failure itself where not even a connection came about. Empty where `rules` decide.
    """

    rules: Robots
    fresh_until: float
    kind: str = ""
    failures: int = 0
    """unreachable so many times in a row"""
    since: float = 0.0
    """unreachable since (monotonic seconds)"""
    detail: str = ""
    """with `kind`: how robots.txt could not be read"""

    def refusal(self, url: str) -> str:
        """Return the failure class with which `url` is refused, empty if it may be read."""
        if self.kind:
            return self.kind
        if not self.rules.allows(url):
            return "robots-disallowed"
        return "content-signal" if self.rules.is_unwanted else ""


NO_RULES = RobotsState(EVERYTHING, math.inf)
"""what holds for a hop and for what is sent: rules are for pages"""


_NO_CONNECTION = ("dns-", "connect-", "proxy-", "tls", "blocked-", "only-net")
_UNAVAILABLE = ("redirect-bad", "redirect-loop")
_READ = ("", "not-readable")
"""not-readable: a 2xx that a page would be refused for (text/plain) is what a robots.txt is made of"""


def judge(answer: Answer, before: RobotsState | None, now: float, token: str, purposes: int = SEARCH) -> RobotsState:
    """Judge `answer` to GET /robots.txt (redirects followed); `before` is the state in force until now, if any."""
    status, error = answer.status, answer.error
    tomorrow = now + DAY
    cut = answer.truncated in ("length", "ratio") or error in ("too-large", "ratio-too-large")
    if 200 <= status < 300 and (cut or (error in _READ and not answer.truncated)):
        return RobotsState(Robots.parse(answer.body or b"", token, cut=cut, purposes=purposes), tomorrow)
    if error in _UNAVAILABLE or (not error and 300 <= status < 400):
        return RobotsState(EVERYTHING, tomorrow)
    if status in (401, 403) and error != "signature-asked":
        return RobotsState(_rules(before), tomorrow, "robots-unreachable")
    if 400 <= status < 500 and status != 429 and error != "signature-asked":
        return RobotsState(EVERYTHING, tomorrow)
    return _unreachable(answer, before, now)


def _unreachable(answer: Answer, before: RobotsState | None, now: float) -> RobotsState:
    alone = not answer.status and answer.error.startswith(_NO_CONNECTION)  # a status: it redirected us to such a place
    kind = answer.error if alone else "robots-unreachable"
    if policy(kind).final:
        return RobotsState(_rules(before), now + DAY, kind)
    failures, since = 1, now
    if before is not None and before.failures:
        failures, since = before.failures + 1, before.since
    if now - since >= UNREACHABLE_DAYS * DAY:
        kind = ""
    longest = min(_RETRY_CAP, policy(kind).longest) if kind else _RETRY_CAP
    wait = max(min(_RETRY_FIRST * 2.0 ** min(failures - 1, 32), longest), min(answer.retry_after, DAY))
    return RobotsState(_rules(before), now + wait, kind, failures, since, answer.detail)


def _rules(before: RobotsState | None) -> Robots:
    return EVERYTHING if before is None else before.rules


def _judge_whole(answer: Answer, before: RobotsState | None, now: float, token: str, purposes: int) -> RobotsState:
    """Like `judge`, with the rules compiled, which others wait for the first page that may match one."""
    state = judge(answer, before, now, token, purposes)
    state.rules.compile()
    return state


class RobotsTable:
    """Origin -> RobotsState. Bounded by weight: what is forgotten is simply asked again. Of the heaviest origins (by
    powers of two) those heard of longest ago go first: ten files of 500 KiB must not push a hundred thousand usual ones
    out before these could be used. A sitemap line is handed out once for each time the file was read."""

    def __init__(self, token: str, max_weight: int = 64 * 1024 * 1024, purposes: int = SEARCH) -> None:
        self.token = token
        self.purposes = purposes
        self._max_weight = max_weight
        self._weight = 0
        self._states: dict[str, RobotsState] = {}
        self._by_weight: tuple[dict[str, None], ...] = tuple({} for _ in range(max_weight.bit_length() + 1))
        """origins in the order in which they were heard of, by the length of their weight in bits"""
        self._untold: dict[str, tuple[str, ...]] = {}

    def __len__(self) -> int:
        return len(self._states)

    def get(self, origin: str, now: float) -> RobotsState | None:
        """Return the state of `origin`, None if its robots.txt has to be read (again) first."""
        state = self._states.get(origin)
        return state if state is not None and now < state.fresh_until else None

    async def learn_long(self, origin: str, answer: Answer, now: float) -> RobotsState:
        """Like `learn`; a file of 500 KiB takes .4 s with its rules compiled, which is the time of a thread."""
        if len(answer.body or b"") < LONG:
            return self.learn(origin, answer, now)
        before = self._states.get(origin)
        state = await asyncio.to_thread(_judge_whole, answer, before, now, self.token, self.purposes)
        return self._keep(origin, state)

    def learn(self, origin: str, answer: Answer, now: float) -> RobotsState:
        """Take in what `origin` answered; returns what holds from now on."""
        return self._keep(origin, judge(answer, self._states.get(origin), now, self.token, self.purposes))

    def restore(self, origin: str, state: RobotsState) -> None:
        """Take in what another process knew of an origin."""
        self._keep(origin, state)

    def take(self, origin: str, now: float) -> RobotsState | None:
        """Forget an origin; what was in force for it, None where nothing is."""
        state = self.get(origin, now)
        if origin in self._states:
            self._forget(origin)
            self._untold.pop(origin, None)
        return state

    def _keep(self, origin: str, state: RobotsState) -> RobotsState:
        if origin in self._states:
            self._forget(origin)
        self._states[origin] = state
        self._weight += state.rules.weight
        self._peers(state)[origin] = None
        named = (resolve(origin + "/robots.txt", line) for line in state.rules.sitemaps if not state.failures)
        found = tuple(dict.fromkeys(url for url in named if url is not None))
        if found and not state.kind and not state.rules.is_unwanted:
            self._untold[origin] = found
        self._shrink(origin)
        return state

    def untold(self, origin: str) -> tuple[str, ...]:
        """Sitemaps (canonical URLs) that the last robots.txt of `origin` named, the first time they are asked for."""
        return self._untold.pop(origin, ()) if self._untold else ()

    def _shrink(self, newest: str) -> None:
        for peers in reversed(self._by_weight):
            while self._weight > self._max_weight and (oldest := next(iter(peers), newest)) != newest:
                self._forget(oldest)
                self._untold.pop(oldest, None)

    def _forget(self, origin: str) -> None:
        state = self._states.pop(origin)
        self._weight -= state.rules.weight
        del self._peers(state)[origin]

    def _peers(self, state: RobotsState) -> dict[str, None]:
        """Origins about as heavy."""
        return self._by_weight[min(state.rules.weight.bit_length(), len(self._by_weight) - 1)]
