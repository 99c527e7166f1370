"""A mistake of ours in a read: a log line that names its URL and its place, by the reader's own process or the node's,
and a class of its own in `xyro log --errors`."""

import json
import sys

import pytest
from aiohttp import web

from tests.plugins.serving import serving
from tests.service.face import LOOPBACK, ROOT, process, xyro

PLANTED = """
import xyro.fetcher
whole = xyro.fetcher.Fetcher._read

async def broken(self, reply, answer, order, copy):
    if "/bad" in order.url:
        raise LookupError("no such\\nthing")
    await whole(self, reply, answer, order, copy)

xyro.fetcher.Fetcher._read = broken
"""
BAD = 9


async def answer(request: web.Request) -> web.Response:
    links = "".join(f"<a href=/bad{number}>bad</a>" for number in range(BAD))
    return web.Response(text=f"<p>{links}<a href=/good>good</a>", content_type="text/html")


@pytest.mark.parametrize("readers", [0, 2])
def test_a_mistake_in_a_read_is_logged_with_its_place_some_times_a_minute(tmp_path, readers):
    (tmp_path / "sitecustomize.py").write_text(PLANTED)
    data, paths = tmp_path / "d", f"{tmp_path}:{ROOT}"
    with serving(answer, ["127.0.0.1"]) as port:
        options = (*LOOPBACK, "--readers", readers, "--data", data, "--max-pages", BAD + 2)
        done = process("crawl", f"http://127.0.0.1:{port}/", *options, PYTHONPATH=paths, XYRO_LOG__FORMAT="json")
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    mistakes = [line for line in lines if line.get("event") == "mistake"]
    assert len(mistakes) == 5, done.stderr
    first = mistakes[0]
    assert (first["level"], first["class"], first["host"]) == ("error", "internal", f"127.0.0.1:{port}")
    assert f"http://127.0.0.1:{port}/bad" in first["url"]
    place = f"({tmp_path.name}/sitecustomize.py, line 7, in broken)"
    assert place in first["error"] and "LookupError: no such" in first["error"]
    assert "\n" not in first["text"] and place in first["text"]
    (row,) = json.loads(xyro("log", "--errors", "--json", "--data", data).stdout)
    assert (row["class"], row["pages"]) == ("internal", BAD)
    assert sys.modules.get("sitecustomize") is None or not hasattr(sys.modules["sitecustomize"], "whole")
