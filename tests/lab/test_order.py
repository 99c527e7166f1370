"""The order of discovery: answers known by hand, and a small crawl over HTTP, by the server's log."""

import asyncio
import json

import numpy as np
import pytest

from xyro.lab.order.compared_orders import ORDERS
from xyro.lab.order.graph_server import GraphServer, ServedGraph
from xyro.lab.order.laid_graphs import LAYOUTS, LinkGraph, computed, laid_out, page_rank
from xyro.lab.order.order_lab import OURS, importance_read, main
from xyro.lab.order.traps import REAL

LINKS = [[1, 2, 3], [4], [4, 5], [], [6], [6], [0]]
"""0 leads to 1, 2, 3; 4 is linked twice"""


def graph_of(links, importance):
    indptr = np.concatenate([[0], np.cumsum([len(shown) for shown in links])])
    return LinkGraph(indptr, np.array([child for shown in links for child in shown]), np.array(importance))


GRAPH = graph_of(LINKS, [0.1, 0.05, 0.3, 0.05, 0.1, 0.1, 0.3])
NONE = np.zeros(7, np.bool_)


@pytest.mark.parametrize(
    ("order", "read"),
    [
        ("oracle", [0, 2, 4, 6, 5, 1, 3]),
        ("breadth-first", [0, 1, 2, 3, 4, 5, 6]),
        ("backlinks", [0, 1, 2, 4, 3, 5, 6]),
        ("opic", [0, 1, 2, 4, 6, 3, 5]),
    ],
)
def test_orders_by_hand(order, read):
    assert ORDERS[order](GRAPH, [0], 7, NONE) == read


@pytest.mark.parametrize("order", ORDERS)
def test_every_order_reads_what_can_be_reached_once_and_stops_where_pages_fail(order):
    assert sorted(ORDERS[order](GRAPH, [0], 100, NONE)) == list(range(7))
    assert len(ORDERS[order](GRAPH, [0], 3, NONE)) == 3
    failing = NONE.copy()
    failing[2] = True
    assert 5 not in ORDERS[order](GRAPH, [0], 100, failing)


def test_importance_counts_once_and_only_where_the_page_came():
    graph = LinkGraph(np.zeros(101, np.int64), np.zeros(0, np.int64), np.full(100, 0.01))
    failing = np.zeros(100, np.bool_)
    failing[1] = True
    assert importance_read(graph, [0, 0, 1, 2, 3], failing) == [0.01, 0.01, 0.03, None, None, None]


def test_page_rank_of_a_circle_and_of_a_star():
    circle = page_rank(np.arange(6), np.array([1, 2, 3, 4, 0]))
    assert circle == pytest.approx(np.full(5, 0.2), abs=1e-6)
    tiny = page_rank(np.array([0, 2, 3, 4, 5, 5]), np.array([1, 2, 2, 0, 2]))
    assert tiny == pytest.approx([0.35906203, 0.18874594, 0.37990288, 0.03614458, 0.03614458], abs=1e-6)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_cover_all_pages_and_folders_lie_on_one_host(layout):
    laid = laid_out(1_000, layout, 32, 256, 1)
    assert len(laid.folder) == len(laid.host) == 1_000
    assert all(len(set(laid.host[laid.folder == folder].tolist())) == 1 for folder in set(laid.folder.tolist()))


def test_the_server_shows_the_links_and_logs_the_reads():
    site = ServedGraph(GRAPH, laid_out(7, "blocks", 2, 4, 1), np.arange(7) == 3)

    async def ask(number):
        async with GraphServer(site) as server:
            url = site.url(number, server.port)
            reader, writer = await asyncio.open_connection(url.split("/")[2].split(":")[0], server.port)
            writer.write(f"GET /{url.split('/', 3)[3]} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.partition(b"Content-Length: ")[2].split(b"\r\n")[0])
            body = await reader.readexactly(length)
            writer.close()
            return head, body.decode(), [site.url(child, server.port) for child in LINKS[number]]

    head, body, links = asyncio.run(ask(2))
    assert head.startswith(b"HTTP/1.1 200") and all(f'"{link}"' in body for link in links) and body.count("<a") == 2
    assert asyncio.run(ask(3))[0].startswith(b"HTTP/1.1 404") and site.reads == [2, 3]


def test_a_crawl_reads_what_matters_sooner_than_breadth_first(capsys):
    assert main(["--pages", "600", "--host", "150", "--folder", "15", "--part", "0.3", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    ours, oracle, breadth = (report["orders"][name] for name in (OURS, "oracle", "breadth-first"))
    assert set(report["orders"]) == {OURS, *ORDERS} and report["pages"] == 600
    assert all(one <= best + 0.01 for one, best in zip(ours[2:5], oracle[2:5], strict=True))
    assert ours[3] > breadth[3] and ours[4] > breadth[4]


def test_bad_input_is_one_line(capsys, tmp_path):
    (tmp_path / "no.npz").write_bytes(b"no")
    assert main(["--graph", str(tmp_path / "no.npz")]) == 2 and main(["--pages", "300", "--orders", "random"]) == 2
    assert "no graph" in capsys.readouterr().err


def test_the_computed_graph_is_the_same_for_the_same_seed():
    one, two, other = computed(500, 1), computed(500, 1), computed(500, 2)
    assert one.indices.tolist() == two.indices.tolist() != other.indices.tolist()
    assert one.importance.sum() == pytest.approx(1.0) and REAL == 245
