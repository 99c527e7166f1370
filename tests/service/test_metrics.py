"""GET /metrics as Prometheus reads it: its tool accepts it, its figures are those of the site, its queries answer."""

import json
import re
import shutil
import subprocess
import time
from http.client import HTTPConnection
from urllib.parse import urlencode

import pytest
import yaml
from aiohttp import web

from tests.plugins.changing_site import ChangingSite
from tests.plugins.serving import serving
from tests.service.face import LOOPBACK, ROOT, started, until
from xyro.service.api.endpoints import listen

PROMTOOL, PROMETHEUS = shutil.which("promtool"), shutil.which("prometheus")
NEEDS_PROMTOOL = pytest.mark.skipif(
    PROMTOOL is None, reason="promtool is not there: Debian's package `prometheus` has it"
)
NEEDS_PROMETHEUS = pytest.mark.skipif(PROMETHEUS is None, reason="prometheus is not there: Debian has a package of it")
ALERTS, BOARD = ROOT / "configs" / "alerts.yml", ROOT / "configs" / "grafana.json"
PLACES = ("pages", "virtual", "flight", "minted")
PROMETHEUS_FILE = ROOT / "configs" / "prometheus.yml"
ALERT_RULES = [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]
RULES = [rule["expr"] for rule in ALERT_RULES]
RULE_TESTS = ROOT / "tests" / "service" / "alert_rules_test.yml"
QUERIES = [target["expr"] for panel in json.loads(BOARD.read_text())["panels"] for target in panel["targets"]]


def free_port() -> int:
    with listen("127.0.0.1", 0) as taken:
        return taken.getsockname()[1]


def get(port, path, **headers):
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        return response.status, response.read().decode(), response.headers
    finally:
        connection.close()


def values(text):
    """Name and labels -> value, by a reader of our own."""
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            found[name] = float(value)
    return found


def total(found, name):
    return sum(value for key, value in found.items() if key.partition("{")[0] == name)


class Watched:
    def __init__(self, site, data, port):
        self.site, self.data, self.port = site, data, port

    def scrape(self):
        status, text, _ = get(self.port, "/metrics")
        assert status == 200, text
        return text


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    folder, port = tmp_path_factory.mktemp("metrics"), free_port()
    settings = folder / "s.toml"
    metrics, sink = f'serve = true\nlisten = "127.0.0.1:{port}"', f'name = "s"\npath = "{folder}/out"'
    settings.write_text(f"[metrics]\n{metrics}\n[[sinks]]\n{sink}\n")
    with ChangingSite(2, 10, 3).serving() as site:
        options = ("--scope", "any", "--only-net", "127.0.0.0/8", "--delay", "0", "--refresh", "--partitions", "2")
        with started("crawl", site.entry, *options, "--config", settings, data=folder / "d", stderr=None) as process:
            until(lambda: site.complete)
            yield Watched(site, folder / "d", port)
            assert process.poll() is None


@pytest.mark.long
def test_reads_are_those_that_the_site_answered(watched):
    before = total(values(watched.scrape()), "xyro_reads_total")
    reads = watched.site.reads
    until(lambda: total(values(watched.scrape()), "xyro_reads_total") >= reads)
    assert 60 <= before <= reads
    found = values(watched.scrape())
    assert total(found, "xyro_changes_total") == 2 * 10 * 2, "versions beyond the first, of two hosts' pages"
    assert found['xyro_changes_total{source="refresh"}'] > 0
    assert found['xyro_received_bytes_total{encoding="identity"}'] > found["xyro_decoded_bytes_total"] > 0
    assert 0 < found['xyro_received_bytes_total{encoding="gzip"}'] < 2 * 2_000, "of two home pages"
    assert found['xyro_reads_total{purpose="discovery",result="ok"}'] == 2 * 11
    assert found['xyro_pages{state="read"}'] == 2 * 11
    for phase in ("read", "settle"):
        assert found[f'xyro_read_seconds_count{{phase="{phase}"}}'] == total(found, "xyro_reads_total")
    assert total(found, "xyro_order_wait_seconds_count") == total(found, "xyro_reads_total")
    assert found['xyro_order_wait_seconds_count{priority="refresh"}'] > 0
    assert 0.0 <= found["xyro_overdue_importance_ratio"] <= 1.0
    assert found["xyro_commit_seconds_count"] > 3 and found['xyro_sink_behind_changes{sink="s"}'] < 70


def test_cash_is_what_was_minted(watched):
    found = values(watched.scrape())
    places = [found[f'xyro_cash_units{{where="{place}"}}'] for place in ("pages", "virtual", "flight")]
    assert sum(places) == found['xyro_cash_units{where="minted"}'] == 65_536 * 26 and found["process_open_fds"] > 3


def test_labels_are_few_words_of_ours(watched):
    text = watched.scrape()
    assert "127.3.0" not in text and "http:" not in text and len(text.splitlines()) < 300
    labels = "result purpose phase le source encoding class priority state kind sink vendor where"
    assert set(re.findall(r'(\w+)="', text)) <= set(labels.split())


def test_the_interface_asks_for_its_token_and_the_other_address_serves_nothing_else(watched):
    run = json.loads((watched.data / "run").read_text())
    assert get(run["port"], "/metrics")[0] == 401
    status, text, headers = get(run["port"], "/metrics", Authorization=f"Bearer {run['token']}")
    assert status == 200 and "xyro_pages" in text and headers["Content-Type"].startswith("text/plain")
    assert [get(watched.port, path)[0] for path in ("/status", "/", "/changes", "/metrics")] == [404, 404, 404, 200]


def test_a_crawl_that_counts_nothing_says_how_to_begin(tmp_path):
    with ChangingSite(1, 2, 1).serving() as site:
        options = ("--scope", "any", "--only-net", "127.0.0.0/8", "--delay", "0", "--refresh")
        with started("crawl", site.entry, *options, data=tmp_path / "d"):
            run = json.loads((tmp_path / "d" / "run").read_text())
            status, text, _ = get(run["port"], "/metrics", Authorization=f"Bearer {run['token']}")
            assert status == 400 and "[metrics] serve" in text


@NEEDS_PROMTOOL
def test_promtool_accepts_metrics_and_rules(watched):
    checked = subprocess.run([PROMTOOL, "check", "metrics"], input=watched.scrape(), text=True, capture_output=True)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")
    rules = subprocess.run([PROMTOOL, "check", "rules", str(ALERTS)], text=True, capture_output=True)
    assert rules.returncode == 0 and f"{len(RULES)} rules found" in rules.stdout, rules.stdout + rules.stderr
    config = subprocess.run([PROMTOOL, "check", "config", str(PROMETHEUS_FILE)], text=True, capture_output=True)
    assert config.returncode == 0 and "1 rule files" in config.stdout, config.stdout + config.stderr


@NEEDS_PROMTOOL
def test_each_alert_fires_when_it_should_and_only_then(tmp_path):
    tests = yaml.safe_load(RULE_TESTS.read_text())
    tests["rule_files"] = [str(ALERTS)]
    summaries = {rule["alert"]: rule["annotations"]["summary"] for rule in ALERT_RULES}
    looks = [look for test in tests["tests"] for look in test["alert_rule_test"]]
    for look in looks:
        for alert in look["exp_alerts"]:
            sink = alert["exp_labels"].get("sink", "")
            summary = summaries[look["alertname"]].replace("{{ $labels.sink }}", sink)
            alert["exp_annotations"] = {"summary": summary}
    for fires in (True, False):
        assert {look["alertname"] for look in looks if bool(look["exp_alerts"]) is fires} == set(summaries)
    (written := tmp_path / "tests.yml").write_text(yaml.safe_dump(tests))
    done = subprocess.run([PROMTOOL, "test", "rules", str(written)], text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_unit_is_missing_while_cash_goes_between_partitions(tmp_path):
    """Of four, while pages are read as fast as they can be: units that are under way are counted as such."""
    (settings := tmp_path / "s.toml").write_text(
        f'[metrics]\nserve = true\nlisten = "127.0.0.1:{(port := free_port())}"\n'
    )
    options = (*LOOPBACK, "--refresh", "--partitions", "4", "--config", settings)
    with (
        ChangingSite(8, 40, 3).serving() as site,
        started("crawl", site.entry, *options, data=tmp_path / "d", stderr=None),
    ):
        flights = []
        until(lambda: flights.append(cash_of(port)["flight"]) or (site.reads > 600 and sum(map(bool, flights)) > 5))


def cash_of(port):
    """Units by place; all are there."""
    status, text, _ = get(port, "/metrics")
    assert status == 200, text
    found = {place: values(text).get(f'xyro_cash_units{{where="{place}"}}', 0.0) for place in PLACES}
    assert sum(found.values()) == 2 * found["minted"], found
    return found


def test_rules_and_board_ask_for_metrics_that_there_are(watched):
    text = watched.scrape()
    there = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")} | {"up"}
    there |= {name + end for name in there for end in ("_bucket", "_sum", "_count")}
    asked = {name for query in (*RULES, *QUERIES) for name in re.findall(r"\b(?:xyro|process)_\w+|\bup\b", query)}
    assert asked <= there and len(asked) > 10
    documented = (ROOT / "plugins" / "metrics" / "metric_families.py").read_text().split('"""')[1]
    types = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE xyro")}
    assert types == set(re.findall(r"xyro_\w+", documented))


class Asked:
    """A Prometheus of our own at a free port, by settings as in a file of its own; `ask` has the rows of a query."""

    def __init__(self, folder, settings):
        self.port = free_port()
        (config := folder / "prometheus.yml").write_text(yaml.safe_dump(settings))
        command = [PROMETHEUS, f"--config.file={config}", f"--storage.tsdb.path={folder}/tsdb",
                   f"--web.listen-address=127.0.0.1:{self.port}", "--log.level=error"]  # fmt: skip
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(20)

    def ask(self, query):
        try:
            status, text, _ = get(self.port, f"/api/v1/query?{urlencode({'query': query})}")
        except OSError:
            return []
        return json.loads(text)["data"]["result"] if status == 200 else []


@pytest.mark.long
@NEEDS_PROMETHEUS
def test_a_prometheus_answers_the_board_s_queries_and_fires_no_alert(watched, tmp_path):
    """By the file of docker-compose.yml, at this crawl instead of the nodes: its own address, and that with a token."""
    settings = yaml.safe_load(PROMETHEUS_FILE.read_text())
    settings["global"] = dict.fromkeys(settings["global"], "1s")
    settings["rule_files"] = [str(PROMETHEUS_FILE.with_name(name)) for name in settings["rule_files"]]
    (job,) = settings["scrape_configs"]
    del job["dns_sd_configs"]
    job["static_configs"] = [{"targets": [f"127.0.0.1:{watched.port}"]}]
    run, token = json.loads((watched.data / "run").read_text()), tmp_path / "token"
    token.write_text(run["token"])
    behind = {"job_name": "token", "static_configs": [{"targets": [f"127.0.0.1:{run['port']}"]}]}
    settings["scrape_configs"].append({**behind, "authorization": {"credentials_file": str(token)}})
    with Asked(tmp_path, settings) as prometheus:
        ask = prometheus.ask
        until(lambda: ask("rate(xyro_reads_total[1m])"))
        time.sleep(2.0)
        empty = [query for query in QUERIES if not ask(query)]
        assert empty == ["sum by (class) (rate(xyro_errors_total[5m]))"] or not empty, "it has no errors yet"
        assert all(float(row["value"][1]) == 0.0 for row in ask(next(q for q in QUERIES if "cash" in q)))
        assert ask('ALERTS{alertstate="firing"}') == []
        until(lambda: {row["metric"]["job"] for row in ask("up == 1")} == {"xyro", "token"})


@pytest.mark.long
@NEEDS_PROMETHEUS
def test_one_unit_lost_fires_the_alert_and_a_right_crawl_does_not(watched, tmp_path):
    """The rules as they are, but for how long each waits; beside the crawl an address that has its metrics without one
    unit of its pages."""
    right = watched.scrape()
    line = next(line for line in right.splitlines() if line.startswith('xyro_cash_units{where="pages"}'))
    wrong = right.replace(line, f'xyro_cash_units{{where="pages"}} {float(line.split()[1]) - 1.0}')

    async def answer(_):
        return web.Response(text=wrong)

    rules = yaml.safe_load(ALERTS.read_text())
    for rule in rules["groups"][0]["rules"]:
        rule["for"] = "1s"
    (written := tmp_path / "alerts.yml").write_text(yaml.safe_dump(rules))
    with serving(answer, ["127.0.0.1"]) as port:
        jobs = {"right": watched.port, "lost": port}
        scrapes = [
            {"job_name": name, "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]} for name, port in jobs.items()
        ]
        rhythm = dict.fromkeys(("scrape_interval", "evaluation_interval"), "1s")
        settings = {"global": rhythm, "rule_files": [str(written)], "scrape_configs": scrapes}
        with Asked(tmp_path, settings) as prometheus:
            firing = 'ALERTS{alertname="XyroCashLost", alertstate="firing"}'
            until(lambda: prometheus.ask(firing))
            until(lambda: float(prometheus.ask('count_over_time(up{job="right"}[1m])')[0]["value"][1]) > 4)
            assert {row["metric"]["job"] for row in prometheus.ask(firing)} == {"lost"}
            assert prometheus.ask('ALERTS{job="right"}') == []
