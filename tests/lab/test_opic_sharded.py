"""One graph over four partitions: cash to the unit at every consistent cut, the same importance, whatever the post."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xyro.lab.opic import opic_lab, sharded
from xyro.lab.opic.histories import Static
from xyro.lab.opic.sharded import TEMPERS, MomentLog, Network, Temper, owners
from xyro.lab.opic.shards import Letter, Shard
from xyro.lab.reference_rank import reference
from xyro.opic.cash import UNIT
from xyro.opic.graph import cycle, from_lists, standard, tiny

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def web():
    graph = standard(1000, np.random.default_rng(1))
    truth = reference(graph)
    return graph, truth, sharded.run(graph, truth, 1, Temper(), 1)


@pytest.mark.parametrize("temper", list(TEMPERS.values())[2:], ids=list(TEMPERS)[2:])
@pytest.mark.long
def test_four_partitions_find_what_one_finds(web, temper):
    graph, truth, alone = web
    found = sharded.run(graph, truth, 4, temper, 2)
    assert found.exact and found.cuts > 1000
    assert found.all < alone.all + 0.5 and found.top < alone.top + 0.5 and found.spearman > 0.999
    assert np.abs(found.estimate / alone.estimate - 1).mean() < 0.03
    assert (found.lost > 0) == (temper.lost > 0) and (found.repeated > 0) == (temper.twice > 0 or temper.lost > 0)
    assert (found.early > 0) == (temper.late > 0)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 7), max_size=4), min_size=8, max_size=8),
    st.integers(2, 4),
    st.builds(Temper, lost=st.floats(0, 0.4), twice=st.floats(0, 1), late=st.integers(0, 12)),
    st.integers(0, 2**32),
)
def test_no_post_loses_or_makes_a_unit(links, count, temper, seed):
    graph = from_lists(links)
    assert sharded.run(graph, reference(graph), count, temper, seed, reads=5).exact


def shards_of(graph, count):
    owner = owners(graph, count)
    return [Shard(graph, owner, q, Static(int((owner == q).sum()))) for q in range(count)]


def test_a_letter_counts_once_and_in_its_turn():
    _, shard = shards_of(cycle(40), 2)
    page = int(shard.pages[0])
    letters = [Letter(0, 1, seq, np.array([page]), np.array([seq]), 10 * seq, 0, 0) for seq in (1, 2, 3)]
    before = shard.cash_total
    assert shard.take(letters[1]) == 0 and shard.cash_total == before
    assert shard.take(letters[2]) == 0 and shard.take(letters[0]) == 3
    assert shard.cash_total == before + sum(letter.units for letter in letters)
    assert [shard.take(letter) for letter in letters] == [3, 3, 3] and shard.cash_total == before + 66


def test_an_acknowledgement_empties_the_outbox_up_to_its_number():
    shard = shards_of(standard(200, np.random.default_rng(3)), 2)[1]
    for _ in range(6):
        shard.turn(5)
    sent = shard.sent[0]
    assert sent > 2 and len(shard.outbox) == sent
    shard.acknowledged(0, sent - 1)
    assert list(shard.outbox) == [(0, sent)]


def test_a_ledger_tells_when_cash_is_lost():
    graph = tiny()
    shards, log = shards_of(graph, 2), MomentLog(2)
    for shard in shards:
        log.note(shard)
    assert log.total([0, 0]) == UNIT * graph.n
    rich = next(shard for shard in shards if shard.pages_known)
    rich.keys[0] -= 1
    log.note(rich)
    assert log.total([len(line) - 1 for line in log.moments]) == UNIT * graph.n - 1


def test_a_cut_moves_on_until_nobody_has_applied_what_was_not_sent():
    graph = standard(200, np.random.default_rng(3))
    shards, log, network = shards_of(graph, 2), MomentLog(2), Network(Temper(), np.random.default_rng(1))
    for shard in shards:
        log.note(shard)
    for now in range(20):
        network.deliver(now, shards)
        for letter in shards[now % 2].turn(3):
            log.post(letter)
            network.send(now, letter)
        for shard in shards:
            log.note(shard)
    late = [0, len(log.moments[1]) - 1]
    assert log.moments[1][late[1]].applied[0] > log.moments[0][0].sent[1]
    cut = log.consistent(late)
    assert cut[1] == late[1] and log.moments[0][cut[0]].sent[1] >= log.moments[1][cut[1]].applied[0]
    assert cut[0] > 0 and log.total(cut) == UNIT * graph.n


def test_by_command(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sharded, "TEMPERS", {"late": Temper(late=5)})
    assert opic_lab.main(["sharded", "--pages", "1000", "-o", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert text.count("exact at") == 2 and "NOT" not in text
    runs = json.loads((tmp_path / "sharded.json").read_text())["runs"]
    assert len(runs) == 2 and all(run["exact"] for run in runs.values())
    assert opic_lab.main(["sharded", "--pages", "10"]) == 2
