"""URLs: answers known by construction, then the string fast path held against the WHATWG parser taken apart."""

from __future__ import annotations

import re

import pytest
from ada_url import URL
from hypothesis import assume, example, given
from hypothesis import strategies as st

from xyro.wire.errors import InputError
from xyro.wire.messages import MAX_URL
from xyro.wire.urls import MAX_HREF, canonical, form_of, resolve

# --- canonical -----------------------------------------------------------------------------------------------------

CANONICAL = [
    # scheme, host, port
    ("http://example.org", "http://example.org/"),
    ("HTTP://Example.ORG:80/", "http://example.org/"),
    ("https://example.org:443/", "https://example.org/"),
    ("https://example.org:80/", "https://example.org:80/"),
    ("http://example.org:08080/", "http://example.org:8080/"),
    ("http://example.org:/", "http://example.org/"),
    ("http:\\\\example.org\\x", "http://example.org/x"),
    ("http://example.org./", "http://example.org./"),
    # addresses, in all their spellings
    ("http://2130706433/", "http://127.0.0.1/"),
    ("http://0x7f.1/", "http://127.0.0.1/"),
    ("http://0177.0.0.01/", "http://127.0.0.1/"),
    ("http://①②⑦.0.0.1/", "http://127.0.0.1/"),
    ("http://127。0。0。1/", "http://127.0.0.1/"),
    ("http://[0:0::0:1]:8080/", "http://[::1]:8080/"),
    ("http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/"),
    # IDNA
    ("http://bücher.example/", "http://xn--bcher-kva.example/"),
    ("http://BÜCHER.example/", "http://xn--bcher-kva.example/"),
    ("http://日本語。jp/", "http://xn--wgv71a119e.jp/"),
    ("http://ex%41mple.org/", "http://example.org/"),
    # path
    ("http://h/a/./b/../c", "http://h/a/c"),
    ("http://h/../../x", "http://h/x"),
    ("http://h/a/%2e%2E/b", "http://h/b"),
    ("http://h/a\\b", "http://h/a/b"),
    ("http://h/ä b", "http://h/%C3%A4%20b"),
    ("http://h/%7e%c3%a4%zz%", "http://h/%7E%C3%A4%zz%"),
    ("http://h/~", "http://h/~"),
    # query, fragment, white space
    ("http://h?q", "http://h/?q"),
    ("http://h/?", "http://h/?"),
    ("http://h/?a='%c3'&b=../x", "http://h/?a=%27%C3%27&b=../x"),
    ("http://h/x#y?z", "http://h/x"),
    ("http://h/x?y#z#", "http://h/x?y"),
    (" \n http://h/a\tb\r\nc ", "http://h/abc"),
    # empty userinfo is none
    ("http://@h/", "http://h/"),
    ("http://:@h/", "http://h/"),
]
FOLDED = [
    ("http://h//", "http://h/", "http://h//"),
    ("http://h//a///b//", "http://h/a/b/", "http://h//a///b//"),
    ("http://h/a//../b", "http://h/a/b", "http://h/a/b"),
    ("http://h/a\\\\b", "http://h/a/b", "http://h/a//b"),
    ("http://h/a?x=//b//c", "http://h/a?x=//b//c", "http://h/a?x=//b//c"),
    ("http://h/http://k//", "http://h/http:/k/", "http://h/http://k//"),
    ("http://h/%2f%2F", "http://h/%2F%2F", "http://h/%2F%2F"),
]


@pytest.mark.parametrize(("text", "url"), CANONICAL)
def test_canonical(text: str, url: str) -> None:
    assert canonical(text) == url
    assert canonical(url) == url
    assert resolve("http://other.example/folder/page", text) == url


def test_a_scheme_without_slashes_is_absolute_for_a_person_and_relative_on_a_page() -> None:
    assert canonical("http:example.org/x") == "http://example.org/x"
    assert resolve("http://h/a/b", "http:example.org/x") == "http://h/a/example.org/x"
    assert resolve("https://h/a/b", "http:example.org/x") == "http://example.org/x"


@pytest.mark.parametrize(("text", "folded", "unfolded"), FOLDED)
def test_folds_slashes_in_the_path_only_and_only_if_asked(text: str, folded: str, unfolded: str) -> None:
    assert canonical(text) == canonical(text, fold_slashes=True) == folded
    assert canonical(text, fold_slashes=False) == unfolded
    assert resolve("http://h/", text, fold_slashes=False) == unfolded


@pytest.mark.parametrize(
    ("text", "mend"),
    [
        ("example.org/x", "write http://example.org/x"),
        ("//example.org/x", "write http://example.org/x"),
        ("localhost:8000/x", "write http://localhost:8000/x"),
        ("example.org:80", "write http://example.org:80"),
        ("ftp://example.org/", "only http:// and https://"),
        ("file:///etc/passwd", "only http:// and https://"),
        ("javascript:alert(1)", "only http:// and https://"),
        ("C:\\page.html", "only http:// and https://"),
        ("", "an empty text: not an absolute http(s) URL; write it as http://host/path"),
        ("   ", "write it as http://host/path"),
        ("http://", "check the host and the port"),
        ("http://a b/", "check the host and the port"),
        ("http://h:99999/", "check the host and the port"),
        ("http://h:x/", "check the host and the port"),
        ("http://1.2.3.4.5/", "check the host and the port"),
        ("http://[::1/", "check the host and the port"),
        ("http://h%00/", "check the host and the port"),
        ("http://h/\ud800", r"http://h/\ud800: not an absolute http(s) URL"),
        ("http://h/" + "a" * MAX_URL, f"longer than {MAX_URL} characters"),
        ("http://h/" + "ä" * 1000, f"longer than {MAX_URL} characters"),
        ("x" * (MAX_HREF + 1), f"longer than {MAX_URL} characters"),
    ],
)
def test_refuses_with_the_mend(text: str, mend: str) -> None:
    with pytest.raises(InputError) as refusal:
        canonical(text)
    message = str(refusal.value)
    assert mend in message
    assert message.isprintable()
    assert len(message) < 600


def test_the_longest_url() -> None:
    url = "http://h/" + "a" * (MAX_URL - len("http://h/"))
    assert canonical(url) == resolve("http://h/", url) == url
    assert resolve("http://h/", url + "a") is None
    assert resolve("http://h/", url + "/../b") == "http://h/b"


def test_a_refusal_is_no_work() -> None:
    """A second or more each, where every blank is tried as the end of what stands before a user name."""
    for text in ("x:/" + " " * (MAX_HREF - 3), " " * MAX_HREF, "x:" + " " * (MAX_HREF - 3) + "@") * 100:
        with pytest.raises(InputError, match="not an absolute"):
            canonical(text)


@pytest.mark.parametrize(
    "text",
    [
        "http://me:hunter2@example.org/x",
        "http://hunter2@example.org/",
        "http://me:a@hunter2@example.org/",
        "https:\\\\me:hunter2@example.org",
        "http:me:hunter2@example.org",
        "ht\ttp://me:hunter2@example.org/",
        "http://me:hunter2@[bad/",
        "ftp://me:hunter2@example.org/",
        "me:hunter2@example.org/x",
        "//me:hunter2@example.org/x",
        "  http://me:hunter2@example.org:80:80/",
    ],
)
def test_refuses_userinfo_and_never_repeats_a_secret(text: str) -> None:
    with pytest.raises(InputError) as refusal:
        canonical(text)
    assert "hunter2" not in str(refusal.value)
    assert "…@" in str(refusal.value)


def test_says_why_userinfo_is_refused_and_what_to_write() -> None:
    with pytest.raises(InputError, match=r"stored and sent with every request; write http://example\.org/x$"):
        canonical("http://me:hunter2@example.org/x#top")


# --- resolve -------------------------------------------------------------------------------------------------------

RFC_3986_5_4 = """
g http://a/b/c/g | ./g http://a/b/c/g | g/ http://a/b/c/g/ | /g http://a/g | //g http://g/ | ?y http://a/b/c/d;p?y
g?y http://a/b/c/g?y | #s http://a/b/c/d;p?q | g#s http://a/b/c/g | g?y#s http://a/b/c/g?y | ;x http://a/b/c/;x
g;x http://a/b/c/g;x | g;x?y#s http://a/b/c/g;x?y | . http://a/b/c/ | ./ http://a/b/c/ | .. http://a/b/ | ../ http://a/b/
../g http://a/b/g | ../.. http://a/ | ../../ http://a/ | ../../g http://a/g | ../../../g http://a/g
../../../../g http://a/g | /./g http://a/g | /../g http://a/g | g. http://a/b/c/g. | .g http://a/b/c/.g
g.. http://a/b/c/g.. | ..g http://a/b/c/..g | ./../g http://a/b/g | ./g/. http://a/b/c/g/ | g/./h http://a/b/c/g/h
g/../h http://a/b/c/h | g;x=1/./y http://a/b/c/g;x=1/y | g;x=1/../y http://a/b/c/y | g?y/./x http://a/b/c/g?y/./x
g?y/../x http://a/b/c/g?y/../x | g#s/./x http://a/b/c/g | http:g http://a/b/c/g
"""


@pytest.mark.parametrize(("href", "url"), [case.split() for case in re.split(r"[|\n]", RFC_3986_5_4) if case.strip()])
def test_rfc_3986_examples(href: str, url: str) -> None:
    assert resolve("http://a/b/c/d;p?q", href) == url


@pytest.mark.parametrize(
    ("base", "href", "url"),
    [
        ("http://h/a/b", "", "http://h/a/b"),
        ("http://h/a/b?q=/x/y", "c", "http://h/a/c"),
        ("http://h/a/b?q=/x/y", "../c", "http://h/c"),
        ("http://h/a/b?q=1", "#top", "http://h/a/b?q=1"),
        ("http://h/a/b", " c\n", "http://h/a/c"),
        ("http://h/a/b", "c #d", "http://h/a/c%20"),
        ("http://h/a/b", "\\\\k\\x", "http://k/x"),
        ("https://h/a/b", "//k:443/x", "https://k/x"),
        ("https://h/a/b", "http:c", "http://c/"),
        ("http://h/a/b", "http://me:pw@k/x", "http://k/x"),
        ("http://h/a/b", "http://a@b@k/x@y", "http://k/x@y"),
        ("http://h/a/b", "https://me@k", "https://k/"),
        ("http://h/a/b", "x@y", "http://h/a/x@y"),
        ("http://h/a/b", "wiki/Talk:Main_(page)", "http://h/a/wiki/Talk:Main_(page)"),
        ("http://h/a/b", "./Talk:Main", "http://h/a/Talk:Main"),
        ("http://h/a/b", "c?u=http://k//x", "http://h/a/c?u=http://k//x"),
        ("http://h/a/b", "//", None),
        ("http://h/a/b", "Talk:Main", None),
        ("http://h/a/b", "mailto:me@h", None),
        ("http://h/a/b", "javascript:void(0)", None),
        ("http://h/a/b", "data:text/html,x", None),
        ("http://h/a/b", "file:///etc/passwd", None),
        ("http://h/a/b", "blob:http://h/x", None),
        ("http://h/a/b", "http://a b/", None),
        ("http://h/a/b", "http://k:0x1/", None),
        ("http://h/a/b", "x" * (MAX_HREF + 1), None),
        ("http://h/a/b", "../" * 2_000_000 + "c", None),
        ("http://h/a/b", "c\ud800d", "http://h/a/c%EF%BF%BDd"),
        ("http://h/a/b", "http://k\udfff/", None),
        # bases that are not canonical
        ("http://h", "c", "http://h/c"),
        ("http://h", "/c", "http://h/c"),
        ("http://h?x/y", "c", "http://h/c"),
        ("http://h#x/y", "c", "http://h/c"),
        ("http://h/a/./b", "../c", "http://h/c"),
        ("http://h/a\\b/c", "../d", "http://h/a/d"),
        ("http://h/a//b/c", "d", "http://h/a/b/d"),
        ("http://me:pw@h/a/b", "c", "http://h/a/c"),
        ("HTTP://H:80/a/b", "c", "http://h/a/c"),
        ("not a url", "c", None),
        ("mailto:me@h", "c", None),
        ("file:///a/b", "c", None),
        ("http://h\ud800/", "c", None),
    ],
)
def test_resolves_what_pages_hold(base: str, href: str, url: str | None) -> None:
    assert resolve(base, href) == url


# --- against the parser --------------------------------------------------------------------------------------------


def by_components(base: str, href: str, fold: bool) -> str | None:
    """The same answer in another way: no string of the parser's cut up, its components put together."""
    try:
        parsed = URL(href, base)
    except ValueError:
        return None
    if parsed.protocol not in ("http:", "https:"):
        return None
    path, search = (
        re.sub("%[0-9a-fA-F]{2}", lambda e: e[0].upper(), part) for part in (parsed.pathname, parsed.search)
    )
    parsed.hash = ""
    empty_query = "?" if not search and parsed.href.endswith("?") else ""
    path = re.sub("/+", "/", path) if fold else path
    url = f"{parsed.protocol}//{parsed.host}{path}{search or empty_query}"
    return url if len(url) <= MAX_URL else None


def words(text: str) -> st.SearchStrategy[str]:
    return st.sampled_from(text.split(" "))


PIECES = words(
    "a B 0 9 z _ - ~ . .. ... / // \\ : ? # @ % %2e %2E %2f %41 %c3 %zz ; , = & + ! $ ' ( ) * | ^ \" < > [ ] { } ` "
    "ä ß İ ﷺ 。 ① \u00ad \u200d \t \n \x00 \x7f \u2028 \ue000 \U0001f98a xn-- xn--bcher-kva XN--a http: https: HTTP:// "
    "https:// // http://h ftp:// mailto: javascript: data: 127.0.0.1 0x7f.1 256.1 [::1] :80 :443 :8080 :99999 :0 "
    "index.html .hidden /a/ /../ /./ ../ ./ ?q=1 #top h.example"
)
SOUP = st.lists(PIECES, max_size=9).map("".join)
NAMES = words("a b-c x.y index.html Talk:Main (x) @me _ ~u .git .. . a=1,2;v %41 %C3%A4 %c3 %2e %2E%2e")
HOSTS = words(
    "h a.example www.b-c.example.co.uk x1 1x 1x.2 a.1 127.0.0.1 xn--a.example b.xn--bcher-kva A.example h. [::1] a_b "
    "a..b -a a- 255.249.199.99 0.0.0.0 256.0.0.1 01.2.3.4 1.2.3 1.2.3.4.5 1.2.3.4.x"
)
PORTS = st.sampled_from(["", ":80", ":443", ":8080", ":59999", ":65535", ":70000", ":08080", ":1"])
PATHS = st.lists(NAMES, max_size=4).map("/".join)
QUERIES = st.sampled_from(["", "?", "?q=1&r=a/b", "?u=http://x//y?z", "?%c3%a4", "?'", "?a b", "?x=/../y"])
TAILS = st.sampled_from(["", "/", "#", "#a/b?c", "#../x"])
SCHEMES = st.sampled_from(["http://", "https://", "HTTP://", "http:", "https:/"])
ABSOLUTE = st.tuples(SCHEMES, HOSTS, PORTS, st.sampled_from(["/", "", "//"]), PATHS, QUERIES, TAILS).map("".join)
CLIMBS = st.sampled_from(["", "/", "./", "../", "../../", "./../", "../../../../", "//"])
RELATIVE = st.tuples(CLIMBS, PATHS, QUERIES, TAILS).map("".join)
PLAIN = words(
    "https://www.example.org/a/b-c/d.html?q=1&r=/x http://h.example:8080/~u/Talk:Main_(x) /a/b/c?d ../x/y.z ?p=2 "
    "next.html a/%C3%A4/b?c=%20d ./x ../../ http://127.0.0.12:8001/a/b"
)
SPOILED = st.tuples(PLAIN, st.integers(0, 30), PIECES).map(lambda t: t[0][: t[1]] + t[2] + t[0][t[1] :])
HREFS = ABSOLUTE | RELATIVE | SOUP | PLAIN | SPOILED
BASES = ABSOLUTE | PLAIN | SPOILED | st.tuples(ABSOLUTE, SOUP).map("".join)


@given(BASES, HREFS, st.booleans())
@example("http://h/a/%2e%2E/b", "../c", True)
@example("http://h/b%2Fc/d", "../c", True)
@example("http://h/a/b", "%2E%2E/c", True)
@example("http://1x.2/", "/c", True)
@example("http://h/a?", "", True)
def test_resolve_agrees_with_the_parser_taken_apart(base: str, href: str, fold: bool) -> None:
    try:
        URL(base)
    except ValueError:
        assume(False)
    expected = by_components(base, href, fold)
    assert resolve(base, href, fold_slashes=fold) == expected


@given(BASES, HREFS, st.booleans())
def test_what_was_resolved_is_canonical(base: str, href: str, fold: bool) -> None:
    url = resolve(base, href, fold_slashes=fold)
    assume(url is not None)
    assert url is not None
    assert resolve(base, url, fold_slashes=fold) == url
    assert resolve(url, "", fold_slashes=fold) == url
    assert canonical(url, fold_slashes=fold) == url
    assert url.isascii()
    assert "#" not in url
    assert "//" not in url[8:].partition("?")[0] or not fold


@given(HREFS | st.text(st.characters(exclude_categories=()), max_size=40))
def test_canonical_is_idempotent_and_raises_nothing_but_input_errors(text: str) -> None:
    try:
        url = canonical(text)
    except InputError as refusal:
        assert str(refusal).isprintable()
        return
    assert canonical(url) == url
    assert len(url) <= MAX_URL


@given(st.text(st.characters(exclude_categories=()), max_size=40), st.text(st.characters(exclude_categories=())))
def test_resolve_never_raises(base: str, href: str) -> None:
    resolve(base, href)
    resolve("https://h.example/a/b", href)


# --- queries in the encoding of their page (WPT html/infrastructure/urls/resolving-urls/query-encoding, url/resources)

QUERIES = [
    ("?q=ä", "cp1252", "?q=%E4"),
    ("?q=ä", "cp1251", "?q=%26%23228%3B"),
    ("?q=привет#привет", "cp1251", "?q=%EF%F0%E8%E2%E5%F2"),
    ("?q=привет", "koi8-r", "?q=%D0%D2%C9%D7%C5%D4"),
    ("?†", "cp1252", "?%86"),
    ("?q=日本", "cp932", "?q=%93%FA%96{"),  # the second octet of a character may be ASCII
    ("?q=日本", "euc_jp", "?q=%C6%FC%CB%DC"),
    ("?q=中", "gb18030", "?q=%D6%D0"),
    ("?q=日#日", "iso2022_jp", "?q=%1B$BF|%1B(B"),
    ("?a=\udc80ä", "cp1252", "?a=%26%2365533%3B%E4"),
    ("?ä\tä\r\nä", "cp1252", "?%E4%E4%E4"),
    ("?ä <\"'>%zz\x7f", "cp1252", "?%E4%20%3C%22%27%3E%zz%7F"),
    ("ä?ä?ä", "cp1252", "%C3%A4?%E4?%E4"),  # a path is always in UTF-8
    ("ä#?ä", "cp1252", "%C3%A4"),
    ("//ä.example/?ä", "cp1252", "http://xn--4ca.example/?%E4"),
    ("mailto:x?ä", "cp1252", None),
    ("?ä", "", "?%C3%A4"),
    ("\x80\x08#", "cp1252", "%C2%80%08"),
    (" \x80?ä\x08 ", "cp1252", "%C2%80?%E4"),
    ("?ä\x08#x", "cp1252", "?%E4%08"),
]


@pytest.mark.parametrize(("href", "codec", "found"), QUERIES)
def test_a_query_is_in_the_encoding_of_its_page(href: str, codec: str, found: str | None) -> None:
    if found is not None and not found.startswith("http"):
        found = "http://h/d/" + ("p" if found[0] == "?" else "") + found
    assert resolve("http://h/d/p", href, codec=codec) == found


@given(st.text(max_size=20), st.sampled_from(["cp1252", "cp1251", "cp932", "euc_jp", "gb18030", "iso2022_jp", "cp949"]))
def test_only_the_query_depends_on_the_encoding(text: str, codec: str) -> None:
    one, two = resolve("http://h/d/p", text), resolve("http://h/d/p", text, codec=codec)
    assert (one is None) == (two is None)
    if one is not None and two is not None:
        assert one.partition("?")[0] == two.partition("?")[0]
        assert two.isascii()
        assert resolve("http://h/", two) == two


def test_the_form_of_a_query_is_its_folder_and_keys():
    form = form_of("http://h/shop/p1.html?sid=5&b=/x/?")
    assert form == form_of("http://h/shop/p2.html?b&sid=7") == "http://h/shop/?b&sid"
    assert form_of("http://h/p1.html?sid=5") not in (form, form_of("http://h/p1.html?sid=5&c=1"))
