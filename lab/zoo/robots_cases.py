"""Zoo E, second half: robots.txt (cases 75 and 76), and plain refusals by status."""

from __future__ import annotations

from xyro.lab.zoo.acts import Act, Case, floods, holds, page, response, says
from xyro.lab.zoo.link_cases import moved

_SOUND = says(response(page("/ok.html")))
_RULE = "User-agent: *\nDisallow: /secret\n"
_RULED = "/secret.html"
_OPEN = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"


def _robots(text: bytes | str) -> Act:
    return says(response(text, mime="text/plain"))


def _refused(status: str) -> Act:
    return says(response("no", status=status, mime="text/plain"))


def _case(name: str, kinds: tuple[str, ...], robots: Act, path: str = _RULED, number: int = 75) -> Case:
    return Case(number, name, kinds, _SOUND, path=path, robots=robots)


ROBOTS = (
    _case("robots-plain", ("robots-disallowed",), _robots(_RULE)),
    _case("robots-503", ("robots-unreachable",), _refused("503 Busy")),
    _case("robots-silent", ("robots-unreachable",), holds()),
    _case("robots-429", ("robots-unreachable",), _refused("429 Too Many Requests")),
    _case("robots-404", ("",), _refused("404 Not Found")),
    _case("robots-403", ("", "robots-disallowed", "robots-unreachable"), _refused("403 Forbidden")),
    _case("robots-to-login", ("",), says(moved("/ok-login.html"))),
    _case("robots-to-itself", ("", "robots-unreachable"), says(moved("/robots.txt"))),
    _case("robots-endless", ("robots-disallowed",), floods(_OPEN + _RULE.encode(), b"# and on\nDisallow: /never\n")),
    _case("robots-bom", ("robots-disallowed",), _robots(b"\xef\xbb\xbf" + _RULE.encode())),
    _case("robots-utf-16", ("", "robots-disallowed"), _robots(_RULE.encode("utf-16"))),
    _case("robots-nul", ("", "robots-disallowed"), _robots("\0\0\n" + _RULE)),
    _case("robots-cr-only", ("robots-disallowed",), _robots(_RULE.replace("\n", "\r"))),
    _case(
        "robots-100000-rules",
        ("robots-disallowed",),
        _robots(_RULE + "".join(f"Disallow: /f{k}\n" for k in range(100_000))),
    ),
    _case(
        "robots-backtracking",
        ("",),
        _robots("User-agent: *\nDisallow: /" + "*a" * 500 + "*b$\n"),
        path="/" + "a" * 2_000,
    ),
    _case("crawl-delay-huge", ("",), _robots("User-agent: *\nCrawl-delay: 1000000000\n"), "/", 76),
    _case("crawl-delay-negative", ("",), _robots("User-agent: *\nCrawl-delay: -1\n"), "/", 76),
    _case("crawl-delay-nan", ("",), _robots("User-agent: *\nCrawl-delay: nan\n"), "/", 76),
)

STATUSES = {
    "401 Unauthorized": "http-401",
    "403 Forbidden": "http-403",
    "404 Not Found": "http-404",
    "410 Gone": "http-410",
    "418 Teapot": "http-4xx",
    "429 Too Many Requests": "http-429",
    "500 Broken": "http-5xx",
    "599 Odd": "http-5xx",
}

CASES = (
    *ROBOTS,
    *(Case(22, f"status-{status[:3]}", (kind,), _refused(status)) for status, kind in STATUSES.items()),
    Case(22, "not-readable", ("not-readable",), says(response(b"\0" * 500, mime="application/octet-stream"))),
)
