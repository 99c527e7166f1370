"""A focus end to end: the real command with a settings file over the computed web, in one partition and in two."""

from __future__ import annotations

import pytest

from tests.service.face import LOOPBACK, process, rows, said
from xyro.lab.child import running

SETTINGS = """
[opic]
unread_weight = 2.0
internal_weight = 0.5
[[focus]]
weight = 30.0
kinds = ["XML"]
[[focus]]
weight = 10.0
words = ["print", "write"]
"""


def mean(rows):
    return sum(row["importance"] for row in rows) / len(rows)


@pytest.mark.long
@pytest.mark.parametrize("partitions", [1, 2])
def test_a_focus_gains_importance_and_every_unit_is_accounted_for(tmp_path, partitions):
    (tmp_path / "focus.toml").write_text(SETTINGS)
    data, options = tmp_path / "data", ("--config", tmp_path / "focus.toml", "--partitions", partitions)
    with running(pages=240, hosts=4) as web:
        done = process("crawl", web.entry, "--data", data, *LOOPBACK, *options, "--json")
    assert done.returncode == 0, done.stderr
    audit = said("audit", "--data", data)
    assert audit["ok"], audit
    pages = rows("pages", data)
    assert len(pages) == 240
    focus, others = ([row for row in pages if (row["kind"] == "XML") == wanted] for wanted in (True, False))
    assert 5 < len(focus) < 60 and mean(focus) > 2 * mean(others)
