"""Lines of changes tell what part of a page's text changed, and its words: stopped, running, in a sink, by `where`."""

import itertools
import json

import pytest
from aiohttp import web

import xyro as library
from tests.plugins.serving import serving
from tests.service.face import LOOPBACK, started, until, xyro
from xyro.plugins.changes.changed_texts import COMPARED, compared

WORDS = [f"word{number}" for number in range(99)]


class Site:
    """/ changes one word at each read, /same its markup alone, /other nothing of a text."""

    def __init__(self):
        self.reads = itertools.count()

    async def answer(self, request):
        number = next(self.reads)
        if request.path == "/robots.txt":
            return web.Response(status=404)
        if request.path == "/other":
            return web.Response(text=f"<d>{number}</d>", content_type="application/xml")
        word = number if request.path == "/" else "alike"
        links = "<a href=/same></a><a href=/other></a>" if request.path == "/" else ""
        text = f"<html><body class=c{number}><p>{' '.join(WORDS)} {word}</p>{links}"
        return web.Response(text=text, content_type="text/html")


def changed(lines):
    return [line for line in lines if line["change"] == "changed"]


def lines_of(data, *words):
    done = xyro("changes", *words, "--data", data)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def fewest(lines, url):
    """Changes of the page that has the fewest of them."""
    return min(sum(line["url"] == url + path for line in changed(lines)) for path in ("/", "/same", "/other"))


def told_to(folder):
    return [json.loads(line) for file in sorted(folder.iterdir()) for line in file.read_text().splitlines()]


def check(lines, url):
    start, same, other = (
        [line for line in changed(lines) if line["url"] == url + path] for path in ("/", "/same", "/other")
    )
    assert len(start) > 1 and len(same) > 1 and other
    for line in start:
        (edit,) = line["text_diff"]
        assert line["text_changed"] == pytest.approx(2 / 200), "one word of a hundred went, another came"
        assert edit["removed"].isdigit() and edit["added"].isdigit() and edit["before"].endswith("word98")
    for before, after in itertools.pairwise(start):
        assert before["text_diff"][0]["added"] == after["text_diff"][0]["removed"]
    assert {(line["text_changed"], str(line["text_diff"])) for line in same} == {(0.0, "[]")}
    assert {(line["text_changed"], line["text_diff"]) for line in other} == {(None, None)}
    assert {line["text_changed"] for line in lines if line["change"] == "new"} == {None}


@pytest.mark.long
def test_a_change_tells_what_part_of_the_text_it_is(tmp_path):
    data, out = tmp_path / "d", tmp_path / "out"
    (settings := tmp_path / "s.toml").write_text(f'[[sinks]]\nname = "f"\npath = "{out}"\nwait = 0.1\n')
    with serving(Site().answer, ["127.0.0.1"]) as port:
        url, options = f"http://127.0.0.1:{port}", {"fetch__signature": "bytes", "refresh__min_interval": 0.0}
        for _ in library.crawl(
            f"{url}/", data=data, only_net="127.0.0.0/8", delay=1.05, refresh=True, max_pages=13, text=True,
            changes__record=True, **options,
        ):  # fmt: skip
            pass
        with started("serve", *LOOPBACK, "--config", str(settings), data=data):
            check(lines_of(data), url)
            until(lambda: out.exists() and fewest(told_to(out), url) > 1)
    lines = lines_of(data)
    check(lines, url)
    check(told_to(out), url)
    assert {line["url"] for line in lines_of(data, "--where", "text_changed > 0")} == {url + "/"}
    chosen = lines_of(data, "--where", "change = 'changed' and text_changed != 0")
    assert {line["url"] for line in chosen} == {url + "/", url + "/other"}
    assert [line["text_diff"] for line in changed(library.open(data).changes())] == [
        line["text_diff"] for line in changed(lines)
    ]


def test_texts_too_long_to_be_compared_in_order_are_counted():
    old = " ".join(f"w{number}" for number in range(COMPARED // 5))
    assert compared(old, old.replace("w77 ", "x ")) == (pytest.approx(1 / (COMPARED // 5), rel=1e-3), None)
    many = " ".join(f"{number}" for number in range(3000))
    share, words = compared(many, " ".join(f"{number}." if number % 2 else f"{number}" for number in range(3000)))
    assert share == 0.5 and words is None, "too many words for a line"
    assert compared("", "") == (0.0, []) and compared("a b", "a c")[0] == 0.5
