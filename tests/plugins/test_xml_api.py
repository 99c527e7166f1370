"""The repository through the interface of a running crawler: what it refuses, and how bodies come in parts."""

from __future__ import annotations

import base64
import random
import zlib

import pytest

from tests.frontier.rig import Crawl
from tests.plugins.warehouse import ANY, BOOK, BOOKS, DOCUMENTS, DTD, MODULE, filled, read
from tests.service.face import started, xyro
from xyro.plugins.warehouse.routes import MOST_PAGES
from xyro.service.node.run_file import Remote
from xyro.wire.errors import InputError


@pytest.fixture(scope="module")
def remote(tmp_path_factory):
    data = filled(tmp_path_factory.mktemp("api") / "data", partitions=2)
    with started("serve", "--only-net", "127.0.0.0/8", "--scope", "any", data=data):
        yield Remote.find(data)


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/xml/versions", {}),
        ("/xml/versions", {"what": "nonsense"}),
        ("/xml/body", {"what": BOOK, "version": "x"}),
        ("/xml/body", {"what": BOOK, "version": "-1"}),
        ("/xml/body", {"what": BOOK, "version": "9" * 30}),
        ("/xml/body", {"what": BOOK, "at": "never"}),
        ("/xml/body", {"what": "\u0661"}),
        ("/xml/chosen", {}),
        ("/xml/chosen", {"by": "size"}),
        ("/xml/dtds", {"most": "-1"}),
        ("/xml/dtds", {"most": "\u0661"}),
    ],
)
def test_a_bad_question_is_refused(remote, path, query):
    with pytest.raises(InputError):
        remote.get(path, **query)


@pytest.mark.parametrize(
    "pages",
    [
        "x", 7, [7], [[1]], [["1", 1.0]], [[1.5, 1.0]], [[-1, 1.0]], [[7 << 32, 1.0]], [[1, None]], [[True, 1.0]],
        [[1, 1.0]] * (MOST_PAGES + 1),
    ],
)  # fmt: skip
def test_bad_pages_are_refused(remote, pages):
    with pytest.raises(InputError, match="bodies"):
        remote.post("/xml/bodies", {"pages": pages})


def chosen(remote, **query):
    return [pair for row in remote.lines("/xml/chosen", by="url", **query) for pair in row["pages"]]


def test_bodies_of_the_documents_that_were_chosen(remote):
    pages = chosen(remote)
    said = remote.post("/xml/bodies", {"pages": pages})
    assert said["taken"] == len(pages) == 4
    bodies = {one["url"]: zlib.decompress(base64.b64decode(one["packed"])) for one in said["documents"]}
    assert bodies == {url: kept[-1] for url, kept in DOCUMENTS.items() if url not in (DTD, MODULE)}
    assert [one["importance"] for one in said["documents"]] == [worth for _, worth in pages]
    assert remote.post("/xml/bodies", {"pages": [[2**31, 1.0], *pages[:1]]})["taken"] == 2, "a page that is not there"


def test_the_body_tells_what_it_is(remote):
    found, told = remote.body("/xml/body", what=BOOK, version="2", at="")
    assert found == BOOKS[1] and (told["Version"], told["Charset"]) == ("2", "")


def test_large_bodies_come_in_parts(tmp_path):
    """Bytes that do not pack: three of them are more than one answer holds."""
    crawl = Crawl.on_disk(tmp_path / "data", settings=ANY)
    noise = [base64.b64encode(random.Random(number).randbytes(2_000_000)) for number in range(3)]
    for number, body in enumerate(noise):
        read(crawl, f"http://h{number}.example/a.xml", b"<a>" + body + b"</a>")
    crawl.close()
    with started("serve", "--only-net", "127.0.0.0/8", "--scope", "any", data=tmp_path / "data"):
        remote = Remote.find(tmp_path / "data")
        assert remote.post("/xml/bodies", {"pages": chosen(remote)})["taken"] == 2 < 3
        told = xyro("xml", "query", "string-length(/a)", "--data", tmp_path / "data").stdout.splitlines()
    assert [line.split("\t")[1] for line in told] == [str(len(body)) for body in noise]
