"""Pages whose body is cut at a bound, or ends early: used, counted by the closing report, and no failures."""

import gzip
import json

from aiohttp import web

from tests.plugins.serving import serving
from tests.service.face import LOOPBACK, process, rows, xyro

PAGES = {
    "/": b"<p>" + b"".join(b"<a href=/%s>page</a>" % name for name in (b"bomb", b"long", b"whole")),
    "/bomb": b"<p>" + b"x" * 3_000_000,
    "/long": b"<p>" + b"y" * 900_000,
    "/whole": b"<p>whole",
}


async def answer(request: web.Request) -> web.Response:
    if request.path not in PAGES:
        return web.Response(status=404)
    packed = request.path == "/bomb"
    body = gzip.compress(PAGES[request.path]) if packed else PAGES[request.path]
    headers = {"Content-Encoding": "gzip"} if packed else {}
    return web.Response(body=body, content_type="text/html", headers=headers)


def test_each_bound_is_named_and_none_is_a_failure(tmp_path):
    data = tmp_path / "d"
    bounds = {"XYRO_FETCH__MAX_BODY": "2000000", "XYRO_FETCH__MAX_RATIO": "5"}
    with serving(answer, ["127.0.0.1"]) as port:
        site = f"http://127.0.0.1:{port}"
        done = process("crawl", f"{site}/", *LOOPBACK, "--data", data, "--json", **bounds)
        small = process(*("crawl", f"{site}/", *LOOPBACK, "--data", tmp_path / "small"), XYRO_FETCH__MAX_BODY="500000")
    report = json.loads(done.stdout)
    assert (report["errors"], report["cut_short"]) == ({}, {"ratio-too-large": 1})
    assert "Errors: none. Cut short, and used as far as they came: too-large 2." in small.stdout
    assert {row["url"]: row["error"] for row in rows("pages", data)} == {
        f"{site}{path}": "ratio-too-large" if path == "/bomb" else None for path in PAGES
    }
    assert "cut at [fetch] max_ratio" in xyro("why", f"{site}/bomb", "--data", data).stdout
    assert "cut at [fetch] max_body" in xyro("why", f"{site}/long", "--data", tmp_path / "small").stdout
    assert xyro("log", "--errors", "--data", data).stdout == "no page failed\n"
