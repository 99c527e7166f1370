"""Zoo D and E, first half: markup, links, traps and redirects (cases 57 to 74)."""

from __future__ import annotations

from xyro.lab.zoo.acts import Act, Case, ZooClient, answers, page, response, says

_DEEP = 100_000
_HOPS = 100


def _html(text: str) -> Act:
    return says(response(f"<!DOCTYPE html><html><body><a href=/ok.html>ok</a>{text}</body></html>"))


def _calendar(client: ZooClient) -> bytes:
    """/month/N leads to the months before and after it, for ever."""
    month = client.path.rpartition("/")[2] or "0"
    if not month.isdigit():
        return response("", status="404 Not Found")
    number = int(month)
    return response(page(f"/month/{number + 1}", f"/month/{max(0, number - 1)}"))


def _facets(client: ZooClient) -> bytes:
    """Every page adds one more of twenty query parameters, in any order."""
    glue = "&" if "?" in client.path else "?"
    return response(page(*(f"{client.path}{glue}f{k}=1" for k in range(20) if f"f{k}=" not in client.path)))


def _sessions(client: ZooClient) -> bytes:
    """Every answer has new session ids in path and query."""
    return response(page(f"/s{client.nth}/index.html", f"/index.html?sid={client.nth}"))


def _growing(client: ZooClient) -> bytes:
    """Each page links to itself one folder deeper. A URL that cannot exist shows the same: it may be told from that."""
    return response(page("a/"))


def _soft_404(client: ZooClient) -> bytes:
    return response(page("/missing.html", text=f"Sorry, {len(client.path)} characters that are nowhere here."))


def _cloaked(client: ZooClient) -> bytes:
    return response(page("/ok.html", text=f"Visitor number {client.nth}. " * 20))


def moved(location: str | None, status: str = "302 Found") -> bytes:
    """A redirect; None: without Location."""
    return response("moved", *([] if location is None else [f"Location: {location}"]), status=status)


def _loop(client: ZooClient) -> bytes:
    return moved("/loop-b" if client.path.endswith("a") else "/loop-a")


def _chain(client: ZooClient) -> bytes:
    hop = int(client.path.rpartition("/")[2])
    return moved(f"/hop/{hop + 1}" if hop < _HOPS else "/ok.html", "301 Moved Permanently")


def _new_query(client: ZooClient) -> bytes:
    return moved(f"/again?{client.nth}")


MARKUP = (
    Case(57, "links-100000", ("",), says(response("".join(f"<a href=/p{k}>" for k in range(100_000)))), links=65_534),
    Case(58, "tags-nested", ("",), _html("<div>" * _DEEP), links=1),
    Case(59, "attributes-50000", ("",), _html("<b " + " ".join(f"a{k}=1" for k in range(50_000)) + ">"), links=1),
    Case(60, "adoption-agency", ("",), _html("<font color=i><p>" * 3_000), links=1),
    Case(61, "options-20000", ("",), _html("<select>" + "<option>" * 20_000), links=1),
    Case(62, "comment-unclosed", ("",), _html("<!-- " + "x" * 1_000_000)),
    Case(62, "quote-unclosed", ("",), _html('<a href="' + "x" * 1_000_000)),
    Case(62, "href-4-mb", ("",), _html(f'<a href="/{"x" * 4_000_000}">long</a>')),
    Case(
        63,
        "other-schemes",
        ("",),
        _html(
            "".join(
                f"<a href='{href}'>"
                for href in ("javascript:a()", "data:text/html,x", "mailto:a@b", "tel:1", "file:/x")
            )
        ),
        links=1,
    ),
    Case(
        64,
        "base-elsewhere",
        ("",),
        says(response(page("ok.html", head='<base href="http://127.2.255.1/ok/"><base href="http://127.2.255.3/">'))),
        leads={"http://127.2.255.1/ok/ok.html": ("", "connect-refused")},
        links=1,
    ),
    Case(65, "refresh-to-itself", ("",), says(response(page(head='<meta http-equiv="refresh" content="0; url=/">')))),
    Case(
        66, "meta-nofollow", ("",), says(response(page("/never.html", head='<meta name="robots" content="nofollow">')))
    ),
    Case(66, "header-nofollow", ("",), says(response(page("/never.html"), "X-Robots-Tag: nofollow"))),
    Case(
        66,
        "canonical-elsewhere",
        ("",),
        says(response(page("/ok.html", head='<link rel="canonical" href="http://127.2.255.1/ok.html">'))),
    ),
)

TRAPS = (
    Case(67, "calendar", ("",), answers(_calendar), path="/month/0", endless=True),
    Case(68, "facets", ("",), answers(_facets), path="/search", endless=True),
    Case(69, "session-ids", ("",), answers(_sessions), endless=True),
    Case(70, "growing-path", ("", "soft-404"), answers(_growing), path="/a/", endless=True),
    Case(71, "soft-404", ("",), answers(_soft_404), path="/nowhere.html"),
    Case(73, "cloaking", ("",), answers(_cloaked)),
)

REDIRECTS = (
    Case(74, "redirect-loop", ("", "redirect-loop", "redirect-bad"), answers(_loop), path="/loop-a"),
    Case(74, "redirect-to-itself", ("", "redirect-loop", "redirect-bad"), says(moved("/"))),
    Case(74, "redirect-chain", ("", "redirect-loop", "redirect-bad"), answers(_chain), path="/hop/0"),
    Case(74, "redirect-new-query", ("",), answers(_new_query), path="/again", endless=True),
    Case(74, "redirect-to-file", ("redirect-bad",), says(moved("file:///etc/passwd"))),
    Case(74, "redirect-to-script", ("redirect-bad",), says(moved("javascript:alert(1)"))),
    Case(74, "redirect-nowhere", ("redirect-bad",), says(moved(None))),
    Case(74, "redirect-empty", ("", "redirect-bad", "redirect-loop"), says(moved(""))),
    Case(
        74,
        "redirect-to-metadata",
        ("", "blocked-address", "only-net"),
        says(moved("http://169.254.169.254/latest/meta-data/")),
        leads={"http://169.254.169.254/latest/meta-data/": ("blocked-address", "only-net")},
    ),
)

CASES = MARKUP + TRAPS + REDIRECTS
