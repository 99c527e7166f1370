"""Sinks that are brokers: a real nats-server, killed and started again, and a Kafka that stalls.

What arrived is read from the stream itself, by a subscriber that knows nothing of the sink.
Kafka's broker is librdkafka's; XYRO_TEST_KAFKA=HOST:PORT names another, which makes topics when they are asked for.
"""

import asyncio
import json
import os
import uuid
from functools import partial

import nats
import pytest
from nats.js.api import StreamConfig

from tests.frontier.rig import url
from tests.plugins.test_changes import read, timeless, visit
from tests.plugins.test_sinks import HOUR, Rig, lines_of
from tests.service.broker import running_broker
from tests.service.face import LOOPBACK, ROOT, process
from tests.service.kafka_broker import running_kafka
from xyro.configs.load import load
from xyro.configs.schema import SinkTable
from xyro.metadata import rows
from xyro.plugins.changes.change_messages import StoreSink
from xyro.wire.errors import InputError
from xyro.wire.ids import HOME

LOCAL = {"fetch.only_net": ("127.0.0.0/8",)}
TOPIC = "xyro.changes"


@pytest.fixture
def broker(tmp_path):
    with running_broker(tmp_path / "nats") as running:
        yield running


@pytest.fixture
def kafka(tmp_path):
    with running_kafka(tmp_path / "kafka.log") as running:
        yield running


def table(broker, **fields):
    return SinkTable(name="s", url=broker.url, topic=TOPIC, **fields)


async def make_stream(broker, **fields):
    client = await nats.connect(broker.url)
    await client.jetstream().add_stream(StreamConfig(name="CHANGES", subjects=[TOPIC], **fields))
    await client.close()


async def subscribed(broker):
    """All that the stream has, in its order."""
    client = await nats.connect(broker.url)
    try:
        count = (await client.jetstream().stream_info("CHANGES")).state.messages
        subscription = await client.jetstream().subscribe(TOPIC, ordered_consumer=True)
        return [json.loads((await subscription.next_msg(timeout=10)).data) for _ in range(count)]
    finally:
        await client.close()


@pytest.mark.long
async def test_a_broker_that_is_killed_and_comes_back_has_every_number_once(tmp_path, broker):
    """Twice: amid a delivery, and for an hour in which changes come and the crawl is started anew."""
    await make_stream(broker)
    rig = Rig(tmp_path / "d", table(broker, batch=40), **LOCAL)
    rig.change(400)

    def killed_amid():
        if rig.row().delivered >= 120 and broker.child is not None:
            broker.kill()
        return broker.child is None and rig.sinks.deliveries[0].failures >= 3

    await rig.until(killed_amid)
    assert 120 <= rig.row().delivered < 400 and rig.status()["behind"] > 0 and rig.status()["error"]
    begun = rig.clock.time()
    rig.change(100, 400)
    await rig.until(lambda: rig.clock.time() - begun > HOUR)
    rig.restart()
    broker.start()
    await rig.until(lambda: rig.row().delivered == 500)
    assert timeless(await subscribed(broker)) == timeless(read(rig.crawl))
    assert rig.status()["behind"] == 0 and rig.status()["error"] is None and rig.row().gaps == 0


async def test_what_comes_twice_the_stream_drops(tmp_path, broker):
    """A crawl that died before it had stored its position delivers again what was taken."""
    await make_stream(broker)
    rig = Rig(tmp_path / "d", table(broker, batch=10), **LOCAL)
    rig.change(30)
    await rig.until(lambda: rig.row().delivered >= 10)
    before = rig.crawl.frontier.partition.store.get(rows.SINK.key("s"))
    await rig.until(lambda: rig.row().delivered == 30)
    await rig.send(HOME, partial(StoreSink, name="s", row=before))
    rig.change(5, 30)
    rig.restart()
    assert rig.row().delivered < 30
    await rig.until(lambda: rig.row().delivered == 35)
    assert timeless(await subscribed(broker)) == timeless(read(rig.crawl))


async def test_a_subject_that_no_stream_takes_is_named_until_one_does(tmp_path, broker):
    rig = Rig(tmp_path / "d", table(broker), **LOCAL)
    rig.change(7)
    await rig.until(lambda: rig.sinks.deliveries[0].failures >= 2)
    assert f"no stream takes {TOPIC}" in rig.status()["error"] and rig.status()["behind"] == 7
    await make_stream(broker)
    await rig.until(lambda: rig.row().delivered == 7)
    assert timeless(await subscribed(broker)) == timeless(read(rig.crawl))


async def test_a_change_that_is_too_large_is_a_dead_letter_and_the_others_pass(tmp_path, broker):
    rig = Rig(tmp_path / "d", table(broker, attempts=2), **LOCAL)
    rig.change(20)
    for name in "ab":
        visit(rig.crawl, f"{url(50)}/{name * 900}")
    rig.change(20, 20)
    await make_stream(broker, max_msg_size=900)
    await rig.until(lambda: rig.status()["behind"] == 0)
    lines = read(rig.crawl)
    dead = [line for line in lines if len(line["url"]) > 900]
    assert timeless(await subscribed(broker)) == [line for line in timeless(lines) if line not in timeless(dead)]
    letters = lines_of(tmp_path / "d" / "sinks")
    assert [line["url"] for line in letters] == [line["url"] for line in dead]
    assert all("exceeds maximum" in line["error"] for line in letters)
    assert rig.row().dead == 2 and rig.row().delivered == 40


@pytest.mark.long
async def test_a_broker_that_stays_away_too_long_gets_one_gap_record(tmp_path, broker):
    await make_stream(broker)
    broker.kill()
    rig = Rig(tmp_path / "d", table(broker), **LOCAL, **{"changes.bytes": 65_536})
    for part in range(15):
        rig.change(50, 50 * part)
        await rig.until(lambda part=part: rig.sinks.deliveries[0].failures > 2 * part)
    dropped = rig.status()["dropped"]
    assert dropped > 100
    rig.restart()
    broker.start()
    await rig.until(lambda: rig.status()["behind"] == 0)
    gap, *rest = await subscribed(broker)
    assert (gap["change"], gap["first"], gap["last"], gap["count"]) == ("gap", 1, dropped, dropped)
    assert [line["number"] for line in rest] == list(range(dropped + 1, 751)) and rig.row().gaps == 1


@pytest.mark.parametrize("url", ["nats://192.0.2.1:4222", "nats://broker.example.org:4222", "kafka://192.0.2.1:9092"])
def test_a_broker_outside_of_only_net_is_refused_at_the_start(tmp_path, url):
    with pytest.raises(InputError, match="outside of --only-net"):
        Rig(tmp_path / "d", SinkTable(name="s", url=url, topic="t"), **LOCAL)


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ('url = "nats://localhost:4222"', "topic: expected the subject"),
        ('url = "https://a.example/"\ntopic = "t"', "a topic only beside"),
        ('url = "nats://localhost:4222"\ntopic = "a.*"', "topic"),
        ('url = "tls://token@b.example:4222"\ntopic = "t"', "put the token into `secret`"),
        ('url = "nats://b.example:4222"\ntopic = "t"\nsecret = "x"', "tls://"),
        ('url = "kafka://localhost:9092"\ntopic = "t"\nsecret = "x"', "Kafka takes no token"),
    ],
)
def test_tables_of_brokers_that_say_nothing_clear_are_refused(tmp_path, fields, place):
    path = tmp_path / "s.toml"
    path.write_text(f'[[sinks]]\nname = "s"\n{fields}\n')
    with pytest.raises(InputError, match=place) as refused:
        load([path])
    assert "token@" not in str(refused.value)


REFUSED = {
    "kafka": ('url = "kafka://127.0.0.1:9"\ntopic = "t"', "pip install 'xyro[kafka]' brings the client"),
    "nats": ('url = "nats://127.0.0.1:9"\ntopic = "t"', "pip install 'xyro[cluster]' brings the client"),
    "outside": ('url = "nats://192.0.2.1:4222"\ntopic = "t"', "outside of --only-net"),
    "plug-in": ('plugin = "nobody"', "[[sinks]] s: 'nobody': no installed package has this entry point"),
    "condition": ('path = "x"\nwhere = "importance >"', "[[sinks]] s: where: expected"),
}


@pytest.mark.long
@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("command", ["crawl", "serve"])
def test_a_sink_that_cannot_work_is_refused_before_there_is_a_directory(tmp_path, case, command):
    """Without the clients of brokers: an installation of Xyro alone."""
    fields, told = REFUSED[case]
    (tmp_path / "bare").mkdir()
    bare = "import sys\nsys.modules['aiokafka'] = None\n" + ("sys.modules['nats'] = None\n" if case == "nats" else "")
    (tmp_path / "bare" / "sitecustomize.py").write_text(bare)
    (tmp_path / "s.toml").write_text(f'[[sinks]]\nname = "s"\n{fields}\n')
    words = (command, "http://127.0.0.1:9/", *LOOPBACK, "--config", "s.toml", "--data", "d")
    done = process(*words, cwd=tmp_path, PYTHONPATH=f"{tmp_path / 'bare'}:{ROOT}")
    assert done.returncode == 2 and told in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bare", "s.toml"]


# Kafka


async def consumed(address, topic, count):
    """All that the topic has, each partition in its order."""
    from aiokafka import AIOKafkaConsumer

    consumer = AIOKafkaConsumer(topic, bootstrap_servers=address, auto_offset_reset="earliest", group_id=None)
    await consumer.start()
    found = []
    try:
        async with asyncio.timeout(30):
            while len(found) < count:
                found.append(await consumer.getone())
            return found
    finally:
        await consumer.stop()


def by_number(messages):
    return sorted((json.loads(message.value) for message in messages), key=lambda line: line["number"])


async def test_a_topic_of_kafka_gets_every_change_once_by_page(tmp_path, kafka):
    topic, address = f"xyro-test-{uuid.uuid4()}", os.environ.get("XYRO_TEST_KAFKA", kafka.address)
    rig = Rig(tmp_path / "d", SinkTable(name="s", url=f"kafka://{address}", topic=topic, batch=20), **LOCAL)
    rig.change(70)
    await rig.until(lambda: rig.row().delivered == 70)
    found = await consumed(address, topic, 70)
    assert timeless(by_number(found)) == timeless(read(rig.crawl))
    numbers = {}
    for message in found:
        line = json.loads(message.value)
        assert message.key.decode() == line["url"]
        numbers.setdefault(line["url"], []).append(line["number"])
    assert all(each == sorted(each) for each in numbers.values())


@pytest.mark.long
async def test_a_kafka_that_stalls_and_wakes_has_every_change(tmp_path, kafka):
    """It answers nothing for longer than a batch may take. What was not acknowledged may come twice."""
    rig = Rig(tmp_path / "d", SinkTable(name="s", url=f"kafka://{kafka.address}", topic=TOPIC, batch=20), **LOCAL)
    rig.change(40)
    await rig.until(lambda: rig.row().delivered >= 20)
    kafka.stall()
    rig.change(60, 40)
    await rig.until(lambda: rig.sinks.deliveries[0].failures >= 1)
    assert rig.status()["behind"] > 0 and rig.status()["error"]
    kafka.wake()
    await rig.until(lambda: rig.row().delivered == 100)
    seen = {}
    for message in await consumed(kafka.address, TOPIC, 100):
        seen.setdefault(json.loads(message.value)["number"], message)
    assert timeless(by_number(seen.values())) == timeless(read(rig.crawl))


async def test_a_kafka_that_is_away_is_told_and_tried_again(tmp_path):
    rig = Rig(tmp_path / "d", SinkTable(name="s", url="kafka://127.0.0.1:9", topic="t"), **LOCAL)
    rig.change(3)
    await rig.until(lambda: rig.sinks.deliveries[0].failures >= 2)
    assert rig.status()["behind"] == 3 and "127.0.0.1" in rig.status()["error"]
