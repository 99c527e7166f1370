"""robots.txt: cases whose answers RFC 9309 and Google's parser fix, hostile files, and what an answer means."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xyro.answer import Answer
from xyro.failures import DAY
from xyro.robots import MAX_BODY, MAX_SITEMAPS, Robots, RobotsState, RobotsTable, judge
from xyro.wire.uses import bits, names_of

ORIGIN = "http://h"


def robots(text: str | bytes, token: str = "xyro") -> Robots:
    return Robots.parse(text if isinstance(text, bytes) else text.encode(), token)


def allowed(text: str | bytes, path: str, token: str = "xyro") -> bool:
    return robots(text, token).allows(ORIGIN + path)


BOTH = "Disallow: /x/\n"

GROUPS = [
    ("", True, "no file, no rules"),
    ("Disallow: /x/\nUser-agent: other\nDisallow: /\n", True, "rules before any group are no rules (2.1)"),
    ("User-agent: *\nDisallow: /x/\n", False, "the group of everybody"),
    ("User-agent: xyro\nDisallow: /x/\n", False, "our own group"),
    ("User-agent: other\nDisallow: /\n", True, "somebody else's group"),
    ("User-agent: *\nDisallow: /\nUser-agent: xyro\nDisallow: /y/\n", True, "our own group replaces everybody's"),
    ("User-agent: xyro\nUser-agent: *\nDisallow: /x/\n", False, "agents in a row share what follows"),
    ("User-agent: xyro\nDisallow:\n\nUser-agent: *\nDisallow: /\n", True, "an empty Disallow forbids nothing"),
    ("User-agent: xyro\n\nUser-agent: *\nDisallow: /x/\n", False, "an empty line ends no group"),
    ("User-agent: xyro\nSitemap: http://h/s\nUser-agent: *\nDisallow: /x/\n", False, "nor does a sitemap (2.2.4)"),
    ("User-agent: xyro\nWhat-is: this\nUser-agent: *\nDisallow: /x/\n", False, "nor an unknown line"),
    ("User-agent: xyro\nCrawl-delay: 9\nUser-agent: *\nDisallow: /\n", False, "nor a crawl delay, as with Google"),
    ("User-agent: *\nCrawl-delay: 9\nUser-agent: o\nDisallow: /x\n", False, "also where somebody else comes after it"),
    ("User-agent: xyro\nDisallow: /y/\nUser-agent: o\nDisallow: /\nUser-agent: xyro\nDisallow: /x/\n", False, "merged"),
    ("User-agent: XyRo\nDisallow: /x/\n", False, "the token is case-insensitive"),
    ("uSeR-aGeNt: xyro\ndISALLOW: /x/\n", False, "and so are the fields"),
    ("User-agent: xyro/2.1\nDisallow: /x/\n", False, "a version is cut off"),
    ("User-agent: xyro images\nDisallow: /x/\n", False, "and what follows a space"),
    ("User-agent: xyro-images\nDisallow: /x/\n", True, "a longer token is another agent"),
    ("User-agent: xy\nDisallow: /x/\n", True, "and so is a shorter one"),
    ("User-agent: *\nDisallow: /\nUser-agent:\nDisallow: /y\n", False, "an agent line without agent: nobody's"),
    ("User-agent: * \nDisallow: /x/\n", False, "white space after the star"),
    ("User-agent: * everybody\nDisallow: /x/\n", False, "a star and a remark"),
    ("User-agent: *bot\nDisallow: /x/\n", True, "a star within a word is no star"),
    ("User-agent:*\nDisallow:/x/\n", False, "no space after the colon"),
    ("  User-agent  :  *  \n\tDisallow\t:\t/x/\t\n", False, "spaces everywhere"),
    ("User-agent *\nDisallow /x/\n", False, "colons forgotten"),
    ("User agent: *\nDissallow: /x/\n", False, "misspelt as Google's parser tolerates it"),
    ("Useragent: *\nDisalow: /x/\n", False, "misspelt in another way"),
    ("User-agent: *\nDisallowed: /x/\n", True, "misspelt in a way nobody understands"),
    ("User-agent: *\n# Disallow: /x/\n", True, "a comment"),
    ("User-agent: * # all\nDisallow: /x/ # not this\n", False, "comments at the end of lines"),
    ("User-agent: *\rDisallow: /x/\r", False, "CR alone ends a line"),
    ("User-agent: *\r\nDisallow: /x/\r\n", False, "CR LF ends one line"),
    ("User-agent: *\nDisallow: /x/", False, "the last line has no end"),
    (b"\xef\xbb\xbfUser-agent: *\nDisallow: /x/\n", False, "a byte order mark"),
    (b"\xef\xbbUser-agent: *\nDisallow: /x/\n", False, "two thirds of one"),
    (b"User-agent: *\n\xef\xbb\xbfDisallow: /x/\n", True, "one in the middle makes a line unknown"),
    ("User-agent: *\nDisallow: /x/\n".encode("utf-16"), False, "UTF-16 with its mark"),
    ("\ufeffUser-agent: *\nDisallow: /x/\n".encode("utf-16-be"), False, "the other way round"),
    ("User-agent: *\nDisallow: /x/\n".encode("utf-16-le"), False, "UTF-16 without a mark"),
    (b"User-agent: *\n\0Disallow: /x/\0\n", False, "NULs are nothing"),
    (b"\x80\xff\xfe\n\nUser-agent: *\n\xc3(\nDisallow: /x/\n", False, "lines that are no text"),
    ("<html><body>\nDisallow: /x/\n</body></html>", True, "a login page"),
]


@pytest.mark.parametrize(("text", "answer", "why"), GROUPS, ids=[why for *_, why in GROUPS])
def test_which_rules_speak_to_us(text: str | bytes, answer: bool, why: str) -> None:
    assert allowed(text, "/x/y") is answer
    assert allowed("", "/x/y") is True


FISH = ["/fish", "/fish.html", "/fish/salmon.html", "/fishheads", "/fishheads/yummy.html", "/fish.html?id=anything"]
NO_FISH = ["/", "/bar", "/Fish.asp", "/catfish", "/?id=fish", "/desert/fish"]
ONLY = "User-agent: *\nDisallow: /\nAllow: "

MATCHES = [
    (ONLY + "/fish", FISH, NO_FISH),
    (ONLY + "/fish*", FISH, NO_FISH),
    (ONLY + "/fish/", ["/fish/", "/fish/?salmon", "/fish/salmon.html"], ["/fish", "/fish.html", "/Fish/Salmon.html"]),
    (
        ONLY + "/*.php",
        ["/f.php", "/d/f.php?a", "/d/any.php.file.html", "/index?f=f.php/"],
        ["/php/", "/index?php", "/w.PHP"],
    ),
    (ONLY + "/*.php$", ["/f.php", "/d/f.php"], ["/f.php?a", "/f.php/", "/f.php5", "/php/", "/f?php", "/w.PHP"]),
    (ONLY + "/fish*.php", ["/fish.php", "/fishheads/catfish.php?a"], ["/Fish.PHP", "/fis.php"]),
    (ONLY + "/$", ["/"], ["/page.html", "/?"]),
    (ONLY + "/d/index.html", ["/d/", "/d/index.html"], ["/d/index.htm", "/d", "/e/"]),
    (ONLY + "/foo/bar?q=1&u=http://h?t", ["/foo/bar?q=1&u=http://h?t", "/robots.txt"], ["/foo/bar", "/foo/bar?q=2"]),
    (ONLY + "/foo/ツ", ["/foo/%E3%83%84", "/foo/%E3%83%84/x"], ["/foo/%E3%83%85"]),
    (ONLY + "/foo/%E3%83%84", ["/foo/%E3%83%84"], ["/foo/%E3"]),
    (ONLY + "/a%3cd.html", ["/a%3Cd.html", "/a%3cd.html"], ["/a%3Ed.html"]),
    (ONLY + "/%7Ejoe/", ["/~joe/", "/%7Ejoe/"], ["/joe/"]),
    (ONLY + "/a%2Fb", ["/a%2Fb", "/a%2fb"], ["/a/b"]),
    (ONLY + "/a b", ["/a%20b"], ["/ab"]),
    ("User-agent: *\nDisallow: /foo/bar$\n", ["/foo/bar/", "/foo/bar?q", "/foo/barn"], ["/foo/bar"]),
    ("User-agent: *\nDisallow: /foo/quz#qux\n", ["/foo/q"], ["/foo/quz", "/foo/quzquz"]),
    ("User-agent: *\nDisallow: /x/page.html\nAllow: /x/\n", ["/x/", "/x/p"], ["/x/page.html"]),
    ("User-agent: *\nAllow: /x/page.html\nDisallow: /x/\n", ["/x/page.html", "/y"], ["/x/", "/x/p"]),
    ("User-agent: *\nDisallow: /x\nAllow: /x\n", ["/x", "/x/y"], []),  # on a tie Allow wins
    ("User-agent: *\nDisallow: /x\nAllow: /x/\n", ["/x/"], ["/x", "/xy"]),
    ("User-agent: *\nAllow: /page\nDisallow: /*.html\n", ["/page"], ["/page.html"]),
    ("User-agent: *\nAllow: /x/page.\nDisallow: /*.html\n", ["/x/page.html"], ["/x/y.html"]),
    ("User-agent: *\nDisallow: /x/\n", ["/X/", "/x"], ["/x/"]),  # paths are case-sensitive
    ("User-agent: *\nDisallow: x/\nDisallow: $\n", ["/x/", "/"], []),  # what cannot begin a path matches none
    ("User-agent: *\nDisallow: *x\n", ["/", "/y"], ["/x", "/y/x"]),
    ("User-agent: *\nDisallow: /*\n", ["/robots.txt"], ["/", "/x"]),
    ("User-agent: *\nDisallow: /**a***b\n", ["/ba"], ["/ab", "/xaxxb"]),
    ("User-agent: *\nDisallow: /*?\n", ["/a", "/b"], ["/a?", "/a?b=c"]),
    (
        "User-agent: *\nDisallow: /*?replytocom=\nDisallow: /*.pdf$\n",
        ["/a?r=1", "/a.pdf.html"],
        ["/a?replytocom=5", "/a.pdf"],
    ),
    ("User-agent: *\nDisallow: /a$b\n", ["/a", "/ab"], ["/a$b", "/a%24b", "/a$bc"]),
    ("User-agent: *\nDisallow: /a%2Ab\n", ["/ab", "/axb"], ["/a*b", "/a%2Ab"]),
    ("User-agent: *\nDisallow: /\n", ["/robots.txt"], ["/", "/robots.txt2", "/a/robots.txt", "/robots.txt/"]),
]


@pytest.mark.parametrize(("text", "free", "forbidden"), MATCHES)
def test_the_longest_match_decides(text: str, free: list[str], forbidden: list[str]) -> None:
    rules = robots(text)
    assert [path for path in free if not rules.allows(ORIGIN + path)] == []
    assert [path for path in forbidden if rules.allows(ORIGIN + path)] == []


def test_ports_schemes_and_addresses_do_not_disturb_the_path() -> None:
    rules = robots("User-agent: *\nDisallow: /x\n")
    for origin in ("http://a", "https://a", "http://[::1]:8080", "https://a.example:8443"):
        assert not rules.allows(origin + "/x")
        assert rules.allows(origin + "/y")


@pytest.mark.parametrize(
    ("value", "delay"),
    [
        ("5", 5.0),
        ("0.5", 0.5),
        ("10s", 10.0),
        ("-1", None),
        ("nan", None),
        ("inf", None),
        ("", None),
        ("1e9", 1e9),
        ("1e99", 1e99),
        ("x", None),
    ],
)
def test_crawl_delay(value: str, delay: float | None) -> None:
    assert robots(f"User-agent: *\nCrawl-delay: {value}\n").crawl_delay == delay


def test_crawl_delay_of_our_group_only_and_the_longest_of_several() -> None:
    text = "User-agent: *\nCrawl-delay: 60\n\nUser-agent: xyro\nCrawl-delay: 3\n\nUser-agent: xyro\nCrawl-delay: 2\n"
    assert robots(text).crawl_delay == 3.0
    assert robots(text, "other").crawl_delay == 60.0


def test_sitemaps_are_found_wherever_they_stand() -> None:
    text = "Sitemap: http://h/1.xml\nUser-agent: other\nSitemap:/2.xml # second\nsite-map http://h/3.xml\nSitemap:\n"
    assert robots(text).sitemaps == ("http://h/1.xml", "/2.xml", "http://h/3.xml")


def test_sitemap_lines_are_bounded() -> None:
    assert len(robots("Sitemap: /s\n" * 5_000).sitemaps) == MAX_SITEMAPS


def test_what_lies_beyond_500_kib_is_not_read_and_a_cut_line_is_not_believed() -> None:
    head = b"User-agent: *\nDisallow: /x\n"
    filler = b"#" * (MAX_BODY - len(head) - 8) + b"\n"
    rules = robots(head + filler + b"Allow: /x/y\nDisallow: /z\n")
    assert not rules.allows("http://h/x/y")
    assert rules.allows("http://h/z")
    cut = Robots.parse(b"User-agent: *\nDisallow: /x\nAllow: /", "xyro", cut=True)
    assert not cut.allows("http://h/x")


HOSTILE = {
    "stars": b"Disallow: /" + b"*a" * 250_000 + b"$",
    "stars in many rules": b"\n".join(b"Disallow: /" + b"*a" * (100 + i) + b"$" for i in range(1_500)),
    "needles hard to find": b"\n".join(b"Disallow: /*" + b"a" * 20 + b"b%d" % i + b"a" * 20 for i in range(10_000)),
    "a rule a line": b"\n".join(b"Disallow: /%x" % i for i in range(34_000)),
    "one long line": b"Disallow: /" + b"a" * 500_000,
    "spaces": b"Disallow" + b" " * 500_000,
    "agents": b"User-agent: xyro\n" * 30_000,
    "junk": b"a\n" * 256_000,
    "half a gigabyte's beginning": b"Disallow: /x\n" * 80_000,
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_files_end(body: bytes) -> None:
    rules = robots(b"User-agent: *\n" + body)
    for path in ("/", "/" + "a" * 4_000, "/" + "a" * 2_000 + "b" + "a" * 2_000, "/x"):
        rules.allows(ORIGIN + path)
    assert rules.weight < 16 * 1024 * 1024


def test_wildcards_over_the_budget_become_stricter_never_laxer() -> None:
    wild = "".join(f"Disallow: /d{i}/*{'x' * 40}{i}\n" for i in range(2_000))
    rules = robots("User-agent: *\n" + wild + "Disallow: /private/*/y\nAllow: /private/*/y/open\n")
    assert rules.allows("http://h/d0/free")  # within the budget: as written
    assert not rules.allows(f"http://h/d0/{'x' * 40}0")
    assert not rules.allows("http://h/private/a/y")  # over it: the beginning of the rule
    assert not rules.allows("http://h/private/other")
    assert not rules.allows("http://h/private/a/y/open")
    assert rules.allows("http://h/public/")


LITERALS = [
    "a",
    "b",
    "ab",
    "/",
    "?",
    ".",
    "&",
    "=",
    "~",
    "%41",
    "%2F",
    "%2f",
    "%20",
    "%C3%A9",
    "%c3%a9",
    "$",
    "%24",
    "%2A",
]
PATTERN = st.lists(st.sampled_from([*LITERALS, "*", "*", "é"]), max_size=6).map(lambda parts: "/" + "".join(parts))
PATH = st.lists(st.sampled_from(LITERALS), max_size=6).map(lambda parts: "/" + "".join(parts).lstrip("/"))


def one_form(text: str) -> str:
    """Escapes of printable ASCII decoded, but for / and %; others in capitals, one character for each."""

    def form(escape: re.Match[str]) -> str:
        code = int(escape[1], 16)
        return chr(code) if 0x21 <= code < 0x7F and chr(code) not in "/%" else chr(0x100 + code)

    return re.sub("%([0-9A-Fa-f]{2})", form, quote(text, safe="".join(map(chr, range(0x21, 0x7F)))))


def matches(pattern: str, path: str) -> bool:
    """Google's algorithm (robots.cc, RobotsMatchStrategy::Matches): all places up to which the pattern can match."""
    anchored = pattern.endswith("$")
    places = {0}
    for number, part in enumerate(pattern.removesuffix("$").split("*")):
        part = one_form(part)
        if number:
            places = set(range(min(places), len(path) + 1))
        places = {place + len(part) for place in places if path.startswith(part, place)}
        if not places:
            return False
    return not anchored or len(path) in places


def octets(pattern: str) -> int:
    return len(re.sub("[\u0100-\u01ff]", "%XX", one_form(pattern)))


@settings(max_examples=500, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["Allow", "Disallow"]), PATTERN), max_size=6), PATH)
def test_the_match_with_the_most_octets_decides(rules: list[tuple[str, str]], path: str) -> None:
    text = "User-agent: *\n" + "".join(f"{verb}: {pattern}\n" for verb, pattern in rules)
    found = [(octets(rule), verb == "Allow") for verb, rule in rules if matches(rule, one_form(path))]
    assert allowed(text, path) == (not found or max(found)[1])


GOOGLE = [
    (
        "Allow: /foo/bar?qux=taz&baz=http://foo.bar?tar&par\nDisallow: /",
        "/foo/bar?qux=taz&baz=http://foo.bar?tar&par",
        1,
    ),
    ("Disallow: /*?\nAllow: *.js", "/a.js?x", 1),  # 3 octets and 4
    ("Disallow: /*?\nAllow: /*.js", "/a.js?x", 1),
    ("Disallow: /*?\nAllow: /a", "/a?b", 0),
    ("Disallow: /*?\nAllow: /$", "/?b", 0),
    ("Disallow: *A", "/*x", 1),
    ("Disallow: *A", "/xA", 0),
    ("Disallow: *3", "/a?b", 1),
    ("Disallow: *F0", "/a?0", 1),
    ("Disallow: /*A", "/%C3%A9", 1),  # an escaped octet is one, whatever letters it is written in
    ("Disallow: /*9", "/%C3%A9", 1),
    ("Disallow: /*%A9", "/%C3%A9", 0),
    ("Allow: /*A*\nDisallow: /%C3%A9*", "/%C3%A9A", 0),
    ("Disallow: /*2\nAllow: /a", "/a,b&c", 1),
    ("Allow: /ab$\nDisallow: /abc", "/ab", 1),
    ("Allow: /a*$\nDisallow: /abc", "/abc", 1),  # four octets each
    ("Disallow: /a*$\nAllow: /abc", "/abc", 1),
    ("Disallow: /a*$\nAllow: /ab", "/abc", 0),
    ("Disallow: /&&&\nAllow: /&&*d", "/&&&d", 1),
    ("Disallow: /%7e%7e\nAllow: /~~*", "/~~", 1),
    ("Disallow: /\nAllow: /ab\xe9", "/ab%E9", 1),
    ("Disallow: /\nAllow: /a/index.html", "/a/", 1),
    ("Disallow: /\nAllow: /a/index.html", "/a/index.htm", 0),
    ("Disallow: /\nAllow: /a/index.html", "/a/x", 0),
    ("Disallow: /a/index.html", "/a/", 1),
    ("Disallow: /r\nAllow: /q", "/robots.txt?x", 1),
    ("Disallow: /foo/bar/quz\nAllow: /foo/*/qux", "/foo/bar/quz", 0),
    ("Disallow: /foo/bar/quz\nAllow: /foo/*/qux", "/foo//quz", 1),
    ("Allow: /p\nDisallow: /", "/page", 1),
    ("Allow: /folder\nDisallow: /folder", "/folder/page", 1),
    ("Allow: /page\nDisallow: /*.htm", "/page.htm", 0),
    ("Allow: /page\nDisallow: /*.ph", "/page.php5", 1),  # five octets each
    ("Allow: /$\nDisallow: /", "/page.htm", 0),
    ("Allow: /$\nDisallow: /", "/", 1),
]
"""By google/robotstxt (robots_test.cc and its documentation) and by counting octets as it does."""


@pytest.mark.parametrize(("rules", "path", "free"), GOOGLE)
def test_as_google_reads_it(rules: str, path: str, free: int) -> None:
    assert allowed(b"User-agent: *\n" + rules.encode("latin-1"), path) is bool(free)


RFC = (
    "User-Agent: *\nDisallow: *.gif$\nDisallow: /example/\nAllow: /publications/\n\n"
    "User-Agent: foobot\nDisallow:/\nAllow:/example/page.html\nAllow:/example/allowed.gif\n\n"
    "User-Agent: barbot\nUser-Agent: bazbot\nDisallow: /example/page.html\n\nUser-Agent: quxbot\n"
)
"""RFC 9309 5.1."""


@pytest.mark.parametrize(
    ("token", "free", "forbidden"),
    [
        ("xyro", ["/", "/publications/x", "/x.gifs", "/a.gif?x"], ["/x.gif", "/example/page.html"]),
        ("foobot", ["/example/page.html", "/example/allowed.gif"], ["/", "/example/", "/publications/"]),
        ("BARBOT", ["/", "/example/", "/x.gif"], ["/example/page.html"]),
        ("bazbot", ["/", "/example/", "/x.gif"], ["/example/page.html"]),
        ("quxbot", ["/", "/example/page.html", "/x.gif"], []),
    ],
)
def test_the_example_of_the_rfc(token: str, free: list[str], forbidden: list[str]) -> None:
    assert all(allowed(RFC, path, token) for path in free)
    assert not any(allowed(RFC, path, token) for path in forbidden)


def test_the_longest_match_of_the_rfc() -> None:
    """RFC 9309 5.2."""
    text = "User-Agent: foobot\nAllow: /example/page/\nDisallow: /example/page/disallowed.gif\n"
    assert not allowed(text, "/example/page/disallowed.gif", "foobot")
    assert allowed(text, "/example/page/", "foobot")


@given(st.binary(max_size=300))
def test_no_bytes_make_it_raise(body: bytes) -> None:
    rules = robots(b"User-agent: *\nDisallow: /" + body)
    assert rules.allows("http://h/robots.txt")
    rules.allows("http://h/a?b")


def answer(status: int = 0, error: str = "", body: bytes | None = None, **more: object) -> Answer:
    return Answer(0.0, status=status, error=error, body=body, **more)  # type: ignore[arg-type]


RULES = b"User-agent: *\nDisallow: /x\n"
TABLE = [
    (answer(200, body=RULES), "rules", DAY),
    (answer(200), "all", DAY),
    (answer(204), "all", DAY),
    (answer(200, "too-large", RULES + b"Allow: /x/long"), "rules", DAY),
    (answer(200, "not-readable", RULES), "rules", DAY),
    (answer(200, "disconnect", RULES), "robots-unreachable", 20.0),
    (answer(200, "truncated", RULES), "robots-unreachable", 20.0),
    (answer(200, body=RULES, truncated="disconnect"), "robots-unreachable", 20.0),
    (answer(200, body=RULES + b"Allow: /x/long", truncated="length"), "rules", DAY),
    (answer(302, "blocked-address"), "robots-unreachable", 20.0),
    (answer(302, "connect-refused"), "robots-unreachable", 20.0),
    (answer(200, "encoding"), "robots-unreachable", 20.0),
    (answer(302, "redirect-loop"), "all", DAY),
    (answer(302, "redirect-bad"), "all", DAY),
    (answer(304), "all", DAY),
    (answer(404, "http-404"), "all", DAY),
    (answer(404), "all", DAY),
    (answer(410, "http-410"), "all", DAY),
    (answer(400, "http-4xx"), "all", DAY),
    (answer(401, "http-401"), "robots-unreachable", DAY),
    (answer(403, "http-403"), "robots-unreachable", DAY),
    (answer(429, "http-429"), "robots-unreachable", 20.0),
    (answer(429, "http-429", retry_after=100.0), "robots-unreachable", 100.0),
    (answer(429, "http-429", retry_after=1e12), "robots-unreachable", DAY),
    (answer(500, "http-5xx"), "robots-unreachable", 20.0),
    (answer(503), "robots-unreachable", 20.0),
    (answer(999, "bad-status"), "robots-unreachable", 20.0),
    (answer(error="first-byte-timeout"), "robots-unreachable", 20.0),
    (answer(error="timeout"), "robots-unreachable", 20.0),
    (answer(error="bad-framing"), "robots-unreachable", 20.0),
    (answer(error="tls"), "tls", 20.0),
    (answer(error="dns-nxdomain"), "dns-nxdomain", 20.0),
    (answer(error="dns-timeout"), "dns-timeout", 20.0),
    (answer(error="connect-refused"), "connect-refused", 20.0),
    (answer(error="only-net"), "only-net", DAY),
    (answer(error="blocked-address"), "blocked-address", DAY),
]


@pytest.mark.parametrize(
    ("said", "holds", "until"), TABLE, ids=[f"{a.status} {a.error} {a.truncated}".strip() for a, *_ in TABLE]
)
def test_what_an_answer_means(said: Answer, holds: str, until: float) -> None:
    state = judge(said, None, 1_000.0, "xyro")
    assert state.fresh_until == 1_000.0 + until
    if holds in ("rules", "all"):
        assert state.kind == ""
        assert state.rules.allows("http://h/x") == (holds == "all")
        assert state.rules.allows("http://h/y")
    else:
        assert state.kind == holds


def test_unreachable_is_asked_again_ever_later_and_a_good_answer_ends_it() -> None:
    state, now, waits = None, 0.0, []
    for _ in range(14):
        state = judge(answer(503), state, now, "xyro")
        waits.append(state.fresh_until - now)
        now = state.fresh_until
    assert waits == [min(20.0 * 2**n, 6 * 3600.0) for n in range(14)]
    state = judge(answer(200, body=RULES), state, now, "xyro")
    assert (state.kind, state.failures) == ("", 0)
    assert judge(answer(503), state, now, "xyro").fresh_until == now + 20.0


@pytest.mark.parametrize("known", [True, False])
def test_after_thirty_days_the_last_rules_hold_or_everything_is_allowed(known: bool) -> None:
    state: RobotsState | None = judge(answer(200, body=RULES), None, 0.0, "xyro") if known else None
    for day in range(30):
        state = judge(answer(503), state, day * DAY, "xyro")
        assert state.kind == "robots-unreachable"
    state = judge(answer(503), state, 30 * DAY, "xyro")
    assert state.kind == ""
    assert state.rules.allows("http://h/x") is not known
    assert state.fresh_until == 30 * DAY + 6 * 3600


def test_a_refused_robots_txt_never_becomes_allowed_by_waiting() -> None:
    state = None
    for day in range(40):
        state = judge(answer(403), state, day * DAY, "xyro")
        assert state.kind == "robots-unreachable"


def test_the_table_forgets_after_a_day() -> None:
    table = RobotsTable("xyro")
    assert table.get("http://h", 0.0) is None
    table.learn("http://h", answer(200, body=RULES), 0.0)
    state = table.get("http://h", DAY - 1)
    assert state is not None
    assert not state.rules.allows("http://h/x")
    assert table.get("http://h", DAY) is None
    assert table.get("https://h", 0.0) is None


def test_sitemaps_are_told_once_for_each_reading_resolved_and_distinct() -> None:
    table = RobotsTable("xyro")
    body = (
        b"Sitemap: /s.xml\nSitemap: http://h/s.xml\nSitemap: https://cdn/t.xml\nSitemap: ftp://h/u\nSitemap: http://\n"
    )
    table.learn("http://h", answer(200, body=body), 0.0)
    assert table.untold("http://other") == ()
    assert table.untold("http://h") == ("http://h/s.xml", "https://cdn/t.xml")
    assert table.untold("http://h") == ()
    table.learn("http://h", answer(503), DAY)
    assert table.untold("http://h") == ()
    table.learn("http://h", answer(200, body=body), 2 * DAY)
    assert len(table.untold("http://h")) == 2


def test_the_table_is_bounded_by_weight_and_forgets_the_oldest_first() -> None:
    table = RobotsTable("xyro", max_weight=100_000)
    for number in range(1_000):
        table.learn(f"http://h{number}", answer(200, body=RULES + b"Sitemap: /s.xml\n"), 0.0)
        table.learn(f"http://h{number}", answer(200, body=RULES), 0.0)
    assert 50 < len(table) < 250
    assert table.get("http://h0", 1.0) is None
    assert table.get("http://h999", 1.0) is not None
    assert table.untold("http://h0") == ()
    table.learn("http://huge", answer(200, body=b"User-agent: *\n" + b"Disallow: /%s\n" % (b"x" * 90_000)), 0.0)
    assert len(table) == 1


# --- Content-Signal


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"User-agent: *\nContent-Signal: search=yes, ai-train=no\n", ["ai-train"]),
        (b"user-agent: *\ncontent-signal:SEARCH = No,ai-input=no , ai-train=yes # a note\n", ["search", "ai-input"]),
        (b"User-agent: *\nContent-signal: search=no\nAllow: /\nContent-Signal: search=yes\n", ["search"]),
        (b"Content-Signal: ai-train=no\nUser-agent: *\nDisallow:\n", ["ai-train"]),
        (b"Content-Signal: ai-train=no\nUser-agent: xyro\nContent-Signal: search=no\n", ["search", "ai-train"]),
        (b"User-agent: *\nContent-Signal: search=no\n\nUser-agent: xyro\nDisallow: /x\n", []),
        (b"User-agent: other\nContent-Signal: search=no\n", []),
        (b"User-agent: other\nUser-agent: xyro\nContent-Signal: ai-input=no\n", ["ai-input"]),
        (b"User-agent: *\nContent-Signal: search=maybe, ai-train, =no, sale=no, ai-input=nope, /x search=no\n", []),
        (b"User-agent: *\nContent-Signal:\nContent-Signals: search=no\n", []),
        (b"User-agent: xyro\nContent-Signal: ai-input=no\nUser-agent: *\nContent-Signal: search=no\n", ["ai-input"]),
        (b"User-agent: *\r\nContent-Signal: ai-train=no\rDisallow: /\n", ["ai-train"]),
    ],
)
def test_content_signals(body: bytes, expected: list[str]) -> None:
    assert names_of(Robots.parse(body, "xyro").refused) == expected


def test_a_signal_between_agents_is_for_the_first_and_the_rules_are_for_both() -> None:
    robots = Robots.parse(b"User-agent: xyro\nContent-Signal: search=no\nUser-agent: b\nDisallow: /no\n", "xyro")
    other = Robots.parse(b"User-agent: b\nContent-Signal: search=no\nUser-agent: xyro\nDisallow: /no\n", "xyro")
    assert [each.refused for each in (robots, other)] == [1, 0]
    assert not robots.allows("http://h/no") and not other.allows("http://h/no")


def test_a_signal_between_agents_and_rules_ends_no_group() -> None:
    robots = Robots.parse(b"User-agent: xyro\nContent-Signal: ai-train=no\nDisallow: /no\n", "xyro")
    assert (robots.allows("http://h/no"), robots.allows("http://h/yes"), robots.is_unwanted) == (False, True, False)


@pytest.mark.parametrize(
    ("purposes", "refused", "unwanted"),
    [(["search"], "search=no", True), (["search", "ai-train"], "search=no", False), (["ai-train"], "search=no", False)],
)
def test_all_purposes_have_to_be_refused(purposes: list[str], refused: str, unwanted: bool) -> None:
    text = f"User-agent: *\nContent-Signal: {refused}\nSitemap: /map.xml\n".encode()
    table = RobotsTable("xyro", purposes=bits(purposes))
    state = table.learn("http://h", Answer(0.0, status=200, body=text), 0.0)
    assert state.refusal("http://h/") == ("content-signal" if unwanted else "")
    assert bool(table.untold("http://h")) is not unwanted
    later = table.learn("http://h", Answer(0.0, status=503, error="http-5xx"), 31 * 86_400.0)
    assert later.rules is state.rules


def test_what_is_forbidden_is_told_as_forbidden() -> None:
    text = b"User-agent: *\nContent-Signal: search=no\nDisallow: /no\n"
    state = judge(Answer(0.0, status=200, body=text), None, 0.0, "xyro")
    assert [state.refusal(f"http://h/{path}") for path in ("no", "yes")] == ["robots-disallowed", "content-signal"]


async def test_rules_of_a_long_file_are_compiled_before_the_first_page_asks(monkeypatch):
    table, body = RobotsTable("xyro"), b"User-agent: *\n" + b"".join(b"Disallow: /f%d\n" % k for k in range(10_000))
    state = await table.learn_long("http://a.test", answer(200, body=body), 0.0)
    monkeypatch.setattr("xyro.robots.Protego.parse", None)  # takes .2 s, in which the event loop would stand
    assert state.refusal("http://a.test/f9") == "robots-disallowed"
    assert state.refusal("http://a.test/g") == ""
