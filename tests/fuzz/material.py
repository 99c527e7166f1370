"""The material of the fuzzers: sound pieces, put together and spoilt. Everything hangs on the Random it is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

ODD = (
    "\0",
    "\t",
    "\n",
    "\f",
    "\r",
    "\v",
    " ",
    "\x1b",
    "\x7f",
    "\x85",
    "\xa0",
    "\u2028",
    "\u202e",
    "\ufeff",
    "\ud800",
    "😀",
)
NUMBERS = ("0", "-1", "1e9", "99999999999999999999", "0x7f", "１", "007", "nan", "+1", "1.5")
HREFS = (
    *(
        "a",
        "../b?c=d#e",
        "//h.test/x",
        "http://h.test:8080/%7e%zz",
        "?q=é&amp;r",
        "#f",
        "mailto:x",
        "javascript:f()",
        "",
    ),
    *(
        "http://[::1]/",
        "http://1.2.3",
        "HTTP://Ü.example/ ä",
        "\\\\h\\x",
        "http:x",
        ".//..//%2e/",
        "x y",
        "http://u:p@h/",
    ),
)
MARKUP = (
    *(
        "<a href=",
        "<A HREF='",
        '<area href="',
        "<base href=/b/>",
        "<iframe src=",
        "</iframe>",
        "<link rel=next href=",
        ">",
    ),
    *(
        "<meta charset=",
        "<meta http-equiv=refresh content='0;url=x'>",
        "<meta name=robots content=none>",
        "'",
        '"',
        "=",
        "/",
    ),
    *(
        "<script>",
        "</script>",
        "<!--",
        "-->",
        "--!>",
        "<title>",
        "</title>",
        "<textarea>",
        "</textarea>",
        "<style>",
        "<p ",
    ),
    *(
        "<svg>",
        "</svg>",
        "<math>",
        "<![CDATA[",
        "]]>",
        "<?x ",
        "<!doctype html>",
        "<plaintext>",
        "<frame src=f>",
        "<",
        "&amp;",
    ),
    *(
        "&#x41;",
        "&copy",
        "text",
        "<a",
        "<a hre",
        "</a",
        "<noscript>",
        "<xmp>",
        "`",
        "title=",
        "<br/>",
        "<b><i></b>",
        "<frameset>",
    ),
)
ROBOTS = (
    *(
        "User-agent: *\n",
        "User-agent: xyro\n",
        "User-agent: other\n",
        "Disallow: ",
        "Allow: ",
        "Crawl-delay: ",
        "\n",
        "\r",
    ),
    *(
        "/",
        "*",
        "$",
        "?",
        "/a",
        "/ab",
        "a",
        "b",
        "%41",
        "%2a",
        "%2F",
        "%c3%a9",
        "é",
        "#",
        ".",
        "index.html",
        " ",
        "Sitemap: /s\n",
    ),
)
XML = (
    *(
        '<?xml version="1.0" encoding="utf-8"?>',
        '<rss version="2.0"><channel>',
        "</channel></rss>",
        "<item>",
        "</item>",
    ),
    *(
        "<link>http://h.test/a</link>",
        "<pubDate>Mon, 01 Jan 2024 00:00:00 GMT</pubDate>",
        "<guid>http://h.test/g</guid>",
    ),
    *(
        '<feed xmlns="http://www.w3.org/2005/Atom">',
        "</feed>",
        "<entry>",
        "</entry>",
        '<link href="/e"/>',
        "<updated>2024-01-01",
    ),
    *(
        '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">',
        "</urlset>",
        "<url><loc>http://h.test/u</loc></url>",
    ),
    *(
        "<sitemapindex>",
        "<lastmod>2024</lastmod>",
        "<changefreq>daily</changefreq>",
        "<ttl>60</ttl>",
        "<!--",
        "-->",
        "&amp;",
    ),
    *(
        "&e;",
        "<!DOCTYPE r [<!ENTITY e 'x'>]>",
        '<!DOCTYPE r SYSTEM "x.dtd">',
        "<![CDATA[",
        "]]>",
        "<r>",
        "</r>",
        "<x:y/>",
        "<",
    ),
    *(
        '{"version":"https://jsonfeed.org/version/1.1","items":[{"url":"http://h.test/j"}]}',
        "http://h.test/t\n",
        "<r a='",
        "'/>",
    ),
)
HEADERS = (
    *(
        "text/html",
        "; charset=",
        "utf-8",
        '"',
        "'",
        ",",
        ";",
        "gzip",
        "br",
        "identity",
        "chunked",
        "deflate",
        "max-age=",
        "none",
    ),
    *(
        "noindex",
        "nofollow",
        "xyro: ",
        "googlebot: ",
        "Mon, 01 Jan 2024 00:00:00 GMT",
        "=",
        "s-maxage",
        "no-store",
        "5; url=x",
    ),
    *("<http://h.test/>; rel=hub", "<x>; rel=self", "W/", '"etag"', "unavailable_after: ", "*/*"),
)


def text_of(random: Random, pieces: Sequence[str], most: int = 24) -> str:
    """Some pieces in a row, spoilt."""
    chosen = [random.choice(pieces) for _ in range(random.randint(0, most))]
    return spoilt(random, "".join(chosen))


def spoilt(random: Random, text: str) -> str:
    """`text` with up to four slips in it."""
    for _ in range(random.choice((0, 0, 1, 1, 2, 4))):
        text = random.choice(_SLIPS)(random, text)
    return text


def octets_of(random: Random, text: str) -> bytes:
    """`text` in an encoding, now and then another one than it says, and now and then with octets that are none."""
    codec = random.choice(
        ("utf-8", "utf-8", "utf-8", "latin-1", "cp1251", "utf-16", "utf-16-le", "shift_jis", "utf-8-sig")
    )
    octets = bytearray(text.encode(codec, "replace"))
    if octets and random.random() < 0.2:
        octets[random.randrange(len(octets))] = random.randrange(256)
    return bytes(octets)


def cuts_of(random: Random, data: bytes) -> list[bytes]:
    """`data` in pieces of any size."""
    pieces, place = [], 0
    while place < len(data):
        step = random.choice((1, 2, 3, 7, 100, 1_448, 4_096, len(data)))
        pieces.append(data[place : place + step])
        place += step
    return pieces


def _place(random: Random, text: str) -> tuple[int, int]:
    start = random.randint(0, len(text))
    return start, min(len(text), start + random.choice((0, 1, 2, 5, 20)))


def _inserted(random: Random, text: str) -> str:
    start, _ = _place(random, text)
    return text[:start] + random.choice(ODD + NUMBERS + HREFS) + text[start:]


def _cut_out(random: Random, text: str) -> str:
    start, stop = _place(random, text)
    return text[:start] + text[stop:]


def _doubled(random: Random, text: str) -> str:
    start, stop = _place(random, text)
    return text[:stop] + text[start:stop] * random.choice((1, 2, 50)) + text[stop:]


def _swapped(random: Random, text: str) -> str:
    start, stop = _place(random, text)
    return text[:start] + text[start:stop].swapcase() + text[stop:]


def _in_any_case(random: Random, text: str) -> str:
    return "".join(char.swapcase() if random.random() < 0.3 else char for char in text)


def _ended(random: Random, text: str) -> str:
    return text[: _place(random, text)[0]]


_SLIPS: tuple[Callable[[Random, str], str], ...] = (_inserted, _cut_out, _doubled, _swapped, _in_any_case, _ended)
