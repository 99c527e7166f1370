"""The hosts of `xyro lab politeness`: what each says in robots.txt, and how it answers. Pure.

Host N is hN.site(N / 5).test; its kind is N modulo 10:

    0  its front page names a hub (WebSub), itself    5  answers after SLOW seconds
    1  Crawl-delay, and is its own hub, too           6  robots.txt is one redirect away, on the next host
    2  robots.txt is three redirects away             7  hangs up on each first request for a page
    3  503 with Retry-After to each first request     8  Crawl-delay, three redirects away
    4  429 with Retry-After, the same                 9  Crawl-delay, one redirect away, on the next host
"""

from __future__ import annotations

from dataclasses import dataclass

PAGES = 3
"""of a host, its front page among them"""
HUB = "/hub"
OWN = tuple(f"/p{page}.html" for page in range(1, PAGES))
CRAWL_DELAY, RETRY_AFTER, SLOW = 3, 3, 0.3
HOPS = 3
_FIRST = 9
"""addresses are 127.9.0.1 ..."""


@dataclass(frozen=True, slots=True)
class PoliteAnswer:
    """An answer of a host; status 0: it hangs up."""

    status: int = 200
    body: str = ""
    location: str = ""
    wait: float = 0.0
    """seconds until it is sent"""
    retry_after: int = 0
    hub: str = ""
    """in its Link header"""
    rules_of: int = -1
    """the host whose robots.txt this is; -1: none's"""


def name_of(host: int) -> str:
    return f"h{host}.site{host // 5}.test"


def number_of(name: str) -> int:
    return int(name.partition(".")[0][1:])


def address_of(host: int, addresses: int) -> str:
    return f"127.{_FIRST}.0.{host % addresses + 1}"


def crawl_delay(host: int) -> float:
    """Seconds that the host's robots.txt asks for."""
    return float(CRAWL_DELAY) if host % 10 in (1, 8, 9) else 0.0


def answer(host: int, path: str, first: bool, names: int, port: int) -> PoliteAnswer:
    """Answer a request; first: nobody asked for this URL before."""
    kind = host % 10
    if path == "/robots.txt":
        if kind in (2, 8):
            return PoliteAnswer(302, location="/robots-1.txt")
        if kind in (6, 9):
            return PoliteAnswer(302, location=f"http://{name_of((host + 1) % names)}:{port}/robots-of-{host}.txt")
        return _rules(host)
    if path.startswith("/robots-of-"):
        return _rules(int(path[11:-4]))
    if path.startswith("/robots-"):
        hop = int(path[8:-4])
        return _rules(host) if hop == HOPS else PoliteAnswer(302, location=f"/robots-{hop + 1}.txt")
    if path == HUB:
        return PoliteAnswer(202)
    if path != "/" and path not in OWN:
        return PoliteAnswer(404)
    if kind in (3, 4) and first:
        return PoliteAnswer(503 if kind == 3 else 429, retry_after=RETRY_AFTER)
    if kind == 7 and first:
        return PoliteAnswer(0)
    links = [*OWN, "/private/x.html"]
    if host == 0 and path == "/":
        links += [f"http://{name_of(other)}:{port}/" for other in range(1, names)]
    hub = f"http://{name_of(host)}:{port}{HUB}" if kind in (0, 1) and path == "/" else ""
    body = "<!doctype html><title>A page</title>" + "".join(f'<a href="{link}">{link}</a>\n' for link in links)
    return PoliteAnswer(body=body, wait=SLOW if kind == 5 else 0.0, hub=hub)


def _rules(host: int) -> PoliteAnswer:
    delay = crawl_delay(host)
    asked = f"Crawl-delay: {delay:g}\n" if delay else ""
    return PoliteAnswer(body=f"User-agent: *\n{asked}Disallow: /private/\n", rules_of=host)
