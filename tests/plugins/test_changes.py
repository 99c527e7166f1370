"""What the stream of changes records, turn by turn, and what its readers see: positions, bounds, copies."""

import json
import random
import shutil
from datetime import UTC, datetime

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.frontier.rig import Crawl, signature, url
from tests.service.face import xyro
from xyro.configs.load import load
from xyro.metadata.rows import CHANGE, META
from xyro.metadata.store import Store
from xyro.plugins.changes.change_filter import change_filter
from xyro.plugins.changes.change_log import ChangeLog, new_epoch
from xyro.plugins.changes.change_stream import ChangeSource, ChangeStream
from xyro.plugins.changes.cursors import Position, decode_cursor, encode_cursor, lineage_at, meeting_point
from xyro.plugins.changes.stored_changes import KEY, StreamState
from xyro.wire.errors import InputError
from xyro.wire.moments import moment_of

RECORD = {"changes.record": True}


def crawl(**options):
    return Crawl.in_memory(settings=load(overrides={**RECORD, "crawl.scope": "any", **options}), refreshing=True)


def source(crawl):
    states = [frontier.hooks.extension(ChangeLog).state for frontier in crawl.frontiers]
    return ChangeSource.of_views(crawl.crawl_views.views(crawl.now).views, states)


def read(crawl, since="", where=""):
    """All lines behind a cursor, as the stores have them."""

    async def all_lines():
        stream = ChangeStream(source(crawl), await source(crawl).position(since), change_filter(where))
        lines = await stream.read()
        while stream.advanced:
            lines += await stream.read()
        return lines

    try:
        all_lines().send(None)  # nothing of it waits
    except StopIteration as end:
        return end.value
    raise AssertionError("it waits")


def timeless(lines):
    """Lines without `stale`, which is another one at each moment."""
    return [{name: value for name, value in line.items() if name != "stale"} for line in lines]


def visit(crawl, target, **fields):
    """One more read of a page."""
    crawl.submit(target)
    while target not in {order.url for order in crawl.orders.values()}:
        crawl.turn()
    if (error := fields.pop("error", None)) is not None:
        crawl.fail(crawl.order(target), error, **fields)
    else:
        crawl.answer(crawl.order(target), **fields)
    crawl.turn()
    crawl.now += 60.0


def told(lines):
    return [(line["change"], line["signature_old"], line["signature"]) for line in lines]


def hexed(number):
    return signature(number).hex()


# What is a change


def test_a_page_is_new_then_changed_gone_back_and_moved():
    c, page = crawl(), url(0)
    visit(c, page, signature=signature(1))
    visit(c, page, signature=signature(1))
    visit(c, page, status=304, signature=b"")
    visit(c, page, signature=signature(2))
    visit(c, page, error="http-5xx", status=503, retry_in=1.0)
    visit(c, page, error="http-404", status=404)
    visit(c, page, error="http-5xx", status=503, retry_in=1.0)
    visit(c, page, error="http-410", status=410)  # still gone: nothing new
    visit(c, page, signature=signature(2))
    visit(c, page, status=301, location=url(0, 7), signature=b"")
    visit(c, page, status=301, location=url(0, 7), signature=b"")
    visit(c, page, signature=signature(3))
    lines = read(c)
    moved = lines[4]
    assert [line["change"] for line in lines] == ["new", "changed", "gone", "new", "moved", "changed"]
    assert told(lines)[:4] == [
        ("new", None, hexed(1)),
        ("changed", hexed(1), hexed(2)),
        ("gone", hexed(2), None),
        ("new", hexed(2), hexed(2)),
    ]
    assert moved["location"] == url(0, 7) and moved["status"] == 301 and moved["signature_old"] == hexed(2)
    assert lines[5]["signature_old"] == moved["signature"] and lines[5]["signature"] == hexed(3)
    assert [line["number"] for line in lines] == [1, 2, 3, 4, 5, 6]
    assert all(line["url"] == page and line["importance"] > 0 and line["partition"] == 0 for line in lines)
    assert lines[1]["rate"] > 0


def test_a_page_that_was_never_there_is_no_change():
    c = crawl()
    visit(c, url(0), error="http-404", status=404)
    visit(c, url(1), error="robots-disallowed")
    assert read(c) == []


def test_a_crawl_that_records_nothing_has_no_stream():
    c = Crawl.in_memory(settings=load())
    assert c.frontier.hooks.extension(ChangeLog) is None and "changes" not in c.frontier.hooks.dumps
    assert not c.frontier.hooks.settled or all("changes" not in hook.__module__ for hook in c.frontier.hooks.settled)


def test_last_modified_is_told_where_it_can_be():
    c = crawl()
    visit(c, url(0), last_modified="Mon, 13 Nov 2023 00:00:00 GMT")
    visit(c, url(1), last_modified="Mon, 13 Nov 2033 00:00:00 GMT")
    assert [line["modified"] for line in read(c)] == ["2023-11-13T00:00:00Z", None]


# Readers


def test_a_reader_goes_on_behind_its_cursor_or_at_a_time():
    c = crawl()
    for number in range(6):
        visit(c, url(number))
    lines = read(c)
    for seen, line in enumerate(lines):
        assert read(c, since=line["cursor"]) == lines[seen + 1 :]
        assert read(c, since=line["time"])[-1] == lines[-1]
    third = datetime.fromisoformat(lines[3]["time"]).timestamp()
    assert [line["number"] for line in read(c, since=datetime.fromtimestamp(third, UTC).isoformat())] == [4, 5, 6]
    assert read(c, since="2030-01-01") == [] and read(c, since="2020-01-01") == lines


def test_only_what_is_on_disk_is_told():
    c = crawl()
    visit(c, url(0))
    c.submit(url(1))
    c.turn()
    c.answer(c.order(url(1)))
    sealed = c.seal()
    assert [line["number"] for line in read(c)] == [1]
    assert read(c, since="2030-01-01") == [] and len(read(c, since=read(c)[0]["cursor"])) == 0
    c.write(sealed)
    assert [line["number"] for line in read(c)] == [1, 2]


def test_a_cursor_of_another_crawl_is_refused():
    one, other = crawl(), crawl()
    visit(one, url(0))
    other.now += 1e6
    visit(other, url(0))
    with pytest.raises(InputError, match="another crawl"):
        read(other, since=read(one)[0]["cursor"])
    for wrong in ("nonsense!", "AAAA", "kQ"):
        with pytest.raises(InputError):
            read(one, since=wrong)


def test_beyond_the_bound_the_oldest_go_and_a_late_reader_is_told_which():
    c = crawl(**{"changes.bytes": 65_536})
    visit(c, url(0))
    early = read(c)[0]["cursor"]
    for number in range(1, 700):
        visit(c, url(number % 40), signature=signature(1000 + number))
    state = c.frontier.hooks.extension(ChangeLog).state
    gap, *lines = read(c)
    stored = [value for _, value in c.frontier.partition.scan(b"n")]
    assert gap == {**gap, "change": "gap", "first": 1, "last": state.first - 1, "count": state.first - 1}
    assert state.size == sum(len(value) + 9 for value in stored) <= 65_536 + 400
    assert lines[0]["number"] == state.first > 100 and len(lines) == len(stored) == state.last - state.first + 1
    late = read(c, since=early)
    assert late[0] == {**late[0], "change": "gap", "first": 2, "last": state.first - 1, "count": state.first - 2}
    assert late[1:] == lines
    assert read(c, since=late[0]["cursor"]) == lines, "the gap itself has a cursor"


def test_a_time_from_which_changes_were_dropped_begins_with_a_gap():
    """Whoever asks for a time that is all stored, or for none of the past, is told of no gap."""
    c = crawl(**{"changes.bytes": 65_536})
    for number in range(700):
        visit(c, url(number % 40), signature=signature(1000 + number))
    state = c.frontier.hooks.extension(ChangeLog).state
    gap, oldest, *rest = read(c)
    for since in ("2020-01-01", oldest["time"]):
        assert read(c, since=since) == [gap, oldest, *rest]
        assert read(c, since=since, where="change = 'moved'") == [gap]
    assert state.first > 1 and gap["last"] == state.first - 1
    later = next(line for line in rest if line["time"] > oldest["time"])
    assert read(c, since=later["time"])[0] == later and read(c, since="now") == []


def test_epochs_rise_and_two_of_one_second_differ():
    first, second = (new_epoch(1_795_412_832, 1_790_000_000) for _ in range(2))
    assert first != second and min(first, second) > 1_795_412_832 and max(first, second) < 2**53
    for last in (first, second):
        assert new_epoch(1_795_412_832, last) > last and new_epoch(5, last) > last, "also where the clock is behind"


def test_reads_that_were_not_recorded_are_told(tmp_path):
    on = load(overrides={**RECORD, "crawl.scope": "any"})
    for chosen in (on, load(overrides={"crawl.scope": "any"}), on):
        c = Crawl.on_disk(tmp_path / "d", settings=chosen, refreshing=True)
        visit(c, url(0), signature=random.Random(c.frontier.reads).randbytes(16))
        c.close()
    lines = json_lines(xyro("changes", "--data", tmp_path / "d"))
    assert [line["change"] for line in lines] == ["new", "unrecorded", "changed"]
    assert len({line["epoch"] for line in lines}) == 1


def json_lines(done):
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


# Copies


@pytest.mark.parametrize("how", ["backup", "copy"])
def test_a_copy_that_is_gone_on_with_begins_an_epoch(tmp_path, how):
    chosen = load(overrides={**RECORD, "crawl.scope": "any"})

    def go_on(path, targets, now):
        c = Crawl.on_disk(path, settings=chosen, refreshing=True, now=now)
        for target in targets:
            visit(c, target, signature=random.Random(f"{path} {target} {now}").randbytes(16))
        c.close()

    first, copy = tmp_path / "first", tmp_path / "copy"
    go_on(first, [url(0), url(1)], 1.7e9)
    if how == "backup":
        assert xyro("backup", copy, "--data", first).returncode == 0
    else:
        shutil.copytree(first, copy)
    go_on(first, [url(2)], 1.7e9 + 1e4)
    reader = json_lines(xyro("changes", "--data", first))
    go_on(copy, [url(3), url(4)], 1.7e9 + 2e4)
    told = json_lines(xyro("changes", "--data", copy))
    assert [line["number"] for line in told] == [1, 2, 3, 4]
    named = [(line["partition"], line["epoch"], line["number"]) for line in (*reader, *told)]
    meanings = {(name, line["url"]) for name, line in zip(named, (*reader, *told), strict=True)}
    assert len(set(named)) == len(meanings) == 5, "no name stands for two changes"
    rest = json_lines(xyro("changes", "--data", copy, "--since", reader[-1]["cursor"]))
    assert [line["url"] for line in rest] == [url(3), url(4)], "on from where the two have parted"
    go_on(first, [url(5)], 1.7e9 + 3e4)
    assert len({line["epoch"] for line in json_lines(xyro("changes", "--data", first))}) == 1, "the first is no copy"


@pytest.mark.parametrize("state", ["kept", "lost"])
@pytest.mark.parametrize("lost", [(4,), (9, 10), (), tuple(range(1, 11))])
def test_what_was_saved_of_damaged_data_tells_what_it_lacks(tmp_path, lost, state):
    chosen = load(overrides={**RECORD, "crawl.scope": "any"})
    c = Crawl.on_disk(tmp_path / "d", settings=chosen, refreshing=True)
    for number in range(10):
        visit(c, url(number))
    lines = read(c)
    c.close()
    shutil.copytree(tmp_path / "d", tmp_path / "e")
    store = Store.open(tmp_path / "e" / "p0000" / "store")
    batch = store.batch()
    for number in lost:
        batch.delete(CHANGE.key(number))
    if state == "lost":
        scalars = msgpack.unpackb(store.get(META.key("scalars")))
        del scalars["node"]["extensions"]["changes"]
        batch.put(META.key("scalars"), msgpack.packb(scalars))
    store.write(batch)
    store.close()
    e = Crawl.on_disk(tmp_path / "e", settings=chosen, refreshing=True, now=1.8e9)
    visit(e, url(20))
    there = read(e)
    if there[0]["change"] == "gap":
        gap = there.pop(0)
        assert gap["last"] == there[0]["number"] - 1
    assert there[0]["number"] == 1 or gap["first"] == 1, "what is gone is told from the beginning, too"
    numbers = [line["number"] for line in there]
    assert numbers == list(range(numbers[0], numbers[-1] + 1)) and there[-1]["url"] == url(20)
    there = [line for line in there if line["change"] != "unrecorded"]  # without its state it cannot know
    whole = [n for n in range(1, 11) if n not in lost and not any(n < gone for gone in lost)]
    saved = [line["number"] for line in there[:-1]]
    assert saved == (whole if state == "kept" or 10 not in lost else [n for n in range(1, 11) if n not in lost])
    assert {(line["epoch"], line["number"]): line["url"] for line in there[:-1]}.items() <= {
        (line["epoch"], line["number"]): line["url"] for line in lines
    }.items()
    assert there[-1]["epoch"] != lines[0]["epoch"], "no number means two changes"
    if state == "kept":
        late = read(e, since=lines[0]["cursor"])
        told = [
            n
            for line in late
            for n in range(line.get("first", line.get("number")), line.get("last", line.get("number")) + 1)
        ]
        assert told == list(range(2, numbers[-1] + 1)), "what is gone is told"
    e.close()


@given(st.integers(0, 2**32))
@settings(max_examples=200)
def test_a_reader_of_many_copies_misses_nothing_of_the_one_it_reads(seed):
    """Against lists: each branch is the whole list of its changes, a reader is a set of those it saw."""
    rng = random.Random(seed)
    branches = [([], ((1, 0),))]
    for epoch in range(2, 8):
        changes, lineage = branches[rng.randrange(len(branches))]
        own = lineage[-1][0]
        cut = rng.randrange(len(changes) + 1)
        changes += [(own, len(changes) + 1 + i) for i in range(rng.randrange(4))]
        kept = changes[: max(cut, 0)]
        before = tuple(pair for pair in lineage if pair[1] < cut) or lineage[:1]
        branches.append((list(kept), (*before, (epoch, cut))))
    changes, lineage = branches[rng.randrange(len(branches))]
    number = rng.randrange(len(changes) + 1)
    seen = set(changes[:number])
    position = decode_cursor(encode_cursor([Position(number, lineage_at(lineage, number))]), 1)[0]
    other, lines = branches[rng.randrange(len(branches))]
    try:
        met = meeting_point(position, lines)
    except InputError:
        assert not seen & set(other)
        return
    assert seen >= set(other[: max(met, 0)]) and not seen & set(other[max(met, 0) :])


# Conditions

LINE = {"change": "changed", "url": "https://a.example/x", "host": "a.example", "importance": 2.5, "rate": 0.1,
        "status": 200, "location": None, "number": 7}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ('importance > 2 and host = "a.example"', True),
        ("importance > 2 and host = 'b.example'", False),
        ("importance<=2.5", True),
        ("not (importance > 3) and (status = 404 or rate < 1)", True),
        ("status = 404 or rate < 1 and importance > 9", False),
        ("change != 'gone'", True),
        ("url like 'https://a.*/x'", True),
        ("location = 'x'", False),
        ("location != 'x'", True),
        ("number >= -1", True),
        ("importance > 1e3", False),
        ("importance > 2.5e-1 and importance < 1E+1", True),
        ("location = null", True),
        ("location != null or host = null", False),
        ("text_changed = null and not (status = null)", True),
    ],
)
def test_conditions(text, fits):
    assert change_filter(text)(LINE) is fits


@pytest.mark.parametrize("pattern", ["%x%", "http://a/%", "%", "%ab%"])
def test_wildcards_of_sql_are_refused_by_the_ones_that_there_are(pattern):
    with pytest.raises(InputError, match=r"expected \* for any characters, \? for one"):
        change_filter(f"url like '{pattern}'")


def test_escapes_of_urls_are_no_wildcards():
    assert change_filter("url like '*/a%20b%C3*'")({"url": "http://a/a%20b%C3%A4"})


@pytest.mark.parametrize(
    "text",
    ["importance", "importance >", "importance > 'a'", "host = 3", "nothing = 1", "(importance > 2", "importance > 2 2",
     "importance > 2 and", "importance like 2", "; drop", "__class__ = 1", "not" * 50 + " a = 1", "(" * 99, '"x" = "x"',
     "importance > 1e", "location > null", "url like null", "host = 'a' null",
     "importance > 2" + " and importance > 2" * 500],
)  # fmt: skip
def test_what_is_no_condition_is_refused_with_the_place(text):
    with pytest.raises(InputError, match="where"):
        change_filter(text)


@given(st.text(alphabet="importancehost =<>!()'\"and or not null0123456789._*eE", max_size=60))
def test_no_condition_does_anything_but_work_or_be_refused(text):
    try:
        condition = change_filter(text)
    except InputError:
        return
    assert condition is None or condition(LINE) in (True, False)


@pytest.mark.parametrize("since", ["2026-11-25", "yesterday", "24h"])
def test_a_time_is_no_cursor_and_a_cursor_no_time(since):
    assert moment_of(since, 1e9) is not None and moment_of("kZPNAZHOawPTYAA", 1e9) is None
    with pytest.raises(InputError, match=r"2026-11-25, .* yesterday, "):
        decode_cursor("2026-99", 1)


def test_the_state_of_a_stream_survives_its_dump():
    state = StreamState(3, 9, 100, ((1, 0), (5, 4)), 7.0, 2, "x", {"new": 1})
    assert StreamState.load(json.loads(json.dumps(state.dump()))) == state
    assert (state.epoch_of(4), state.epoch_of(5)) == (1, 5) and KEY == "changes"
