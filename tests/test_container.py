"""Dockerfile and docker-compose.yml: what goes in, as whom it runs, what it may do."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from tests import layers
from xyro.configs.load import load
from xyro.service.cli.main import main
from xyro.service.node.numbered_dirs import is_numbered
from xyro.wire.errors import InputError

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
SERVICES = COMPOSE["services"]
WATCHERS = {name: service for name, service in SERVICES.items() if service.get("profiles") == ["watch"]}
OURS = {name: service for name, service in SERVICES.items() if name not in WATCHERS}
"""those that run Xyro"""
NODE = SERVICES["node"]
Instruction = tuple[str, str]


def instructions(text: str) -> list[Instruction]:
    """(NAME, arguments) of each instruction, continued lines joined."""
    rows = [row for row in text.split("\n") if row.strip() and not row.lstrip().startswith("#")]
    joined = "\n".join(rows).replace("\\\n", " ").split("\n")
    return [(name.upper(), rest.strip()) for name, _, rest in (row.strip().partition(" ") for row in joined)]


DOCKERFILE = instructions((ROOT / "Dockerfile").read_text(encoding="utf-8"))
LAST_STAGE = DOCKERFILE[max(i for i, (name, _) in enumerate(DOCKERFILE) if name == "FROM") :]


def of(name: str, among: list[Instruction] = DOCKERFILE) -> list[str]:
    return [rest for found, rest in among if found == name]


# Dockerfile


def test_the_base_is_a_small_python_of_one_version() -> None:
    images = {rest.split()[0] for rest in of("FROM")}
    assert len(images) == 1
    assert re.fullmatch(r"python:3\.11\.\d+-slim-[a-z]+", images.pop())


def test_only_locked_packages_are_installed() -> None:
    installs = [shlex.split(rest) for rest in of("RUN") if "install" in rest and "pip" in rest]
    assert len(installs) == 2
    locked, ours = installs
    assert {"--require-hashes", "requirements.lock"} <= set(locked)
    assert {"--no-deps", "--no-build-isolation", "."} <= set(ours)
    assert not of("ADD")
    assert not [rest for rest in of("RUN") if re.search(r"\b(curl|wget|apt-get|git)\b", rest)]


def test_what_is_copied_exists_and_is_all_that_is_built() -> None:
    sources = [word for rest in of("COPY") if "--from" not in rest for word in rest.split()[:-1]]
    folders = [source for source in sources if (ROOT / source).is_dir()]
    assert set(folders) == set(layers.FOLDERS), "the links in xyro/ lead to the other folders"
    assert set(sources) - set(folders) == {"requirements.lock", "pyproject.toml", "README.md", "LICENSE"}
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split("\n")
    assert next(line for line in ignored if line and line[0] not in "#!") == "*"
    assert {line[1:] for line in ignored if line.startswith("!")} == set(sources)


def test_the_image_runs_xyro_and_not_as_root() -> None:
    (user,) = of("USER", LAST_STAGE)
    assert all(int(number) >= 1000 for number in user.split(":"))
    assert [json.loads(rest) for rest in of("ENTRYPOINT", LAST_STAGE)] == [["xyro"]]
    assert [json.loads(rest) for rest in of("CMD", LAST_STAGE)] == [["serve"]]
    names = [name for name, _ in LAST_STAGE]
    assert "RUN" not in names[names.index("USER") :], "what is installed must not belong to who runs it"


def test_state_is_in_the_volume_and_belongs_to_the_user() -> None:
    assert of("VOLUME", LAST_STAGE) == of("WORKDIR", LAST_STAGE) == ["/data"]
    assert not Path(load().store.data).is_absolute(), "the default data directory lies in the working directory"
    uid, gid = of("USER", LAST_STAGE)[0].split(":")
    owned = ["install", "-d", "-o", uid, "-g", gid, "-m", "0700", "/data", "/join"]
    assert owned in [shlex.split(rest) for rest in of("RUN", LAST_STAGE)], "volumes begin with the rights of the image"


# docker-compose.yml


def test_the_node_serves_with_state_on_a_volume_and_a_health_check() -> None:
    assert NODE["command"] == ["serve"]
    assert COMPOSE["volumes"].keys() == {"hub", "join", "data", *WATCHERS}
    (check,) = of("HEALTHCHECK", LAST_STAGE)
    own = ["--data", NODE["environment"]["XYRO_STORE__DATA"]]
    assert ["CMD", *json.loads(check.partition("CMD ")[2]), *own] == NODE["healthcheck"]["test"], "of this node alone"
    for key, value in NODE["healthcheck"].items():
        assert key == "test" or f"--{key.replace('_', '-')}={value} " in check


def typed(words: list[str]) -> None:
    """The words after `xyro` are a command with options that exist."""
    command = main.get_command(click.Context(main), words[0])
    assert command is not None
    command.make_context(words[0], words[1:])


def test_what_the_services_run_can_be_typed() -> None:
    for service in OURS.values():
        typed([*service.get("entrypoint", ["xyro"])[1:], *service.get("command", [])])
        if "healthcheck" in service:
            kind, program, *words = service["healthcheck"]["test"]
            assert (kind, program) == ("CMD", "xyro")
            typed(words)


def test_nodes_share_no_directory_and_learn_the_secrets_read_only() -> None:
    """The broker alone writes what the others join by, and its own directory is its own."""
    hub, join = SERVICES["hub"], NODE["environment"]["XYRO_CLUSTER__JOIN"]
    assert is_numbered(Path(NODE["environment"]["XYRO_STORE__DATA"]))
    assert hub["volumes"] == ["hub:/data", f"join:{join}"]
    assert NODE["volumes"] == ["data:/data", f"join:{join}:ro"]
    assert SERVICES["submit"]["volumes"] == [f"join:{join}:ro"]
    words = hub["command"]
    assert words[words.index("--share") + 1] == join and Path(words[words.index("--data") + 1]).parent == Path("/data")
    assert words[words.index("--name") + 1] == "hub", "the service's name is what the others call it"
    assert NODE["depends_on"] == {"hub": {"condition": "service_healthy"}}


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_can_do_no_more_than_it_needs(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"] and "cap_add" not in service
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert [mount.split(":")[0] for mount in service["tmpfs"]] == ["/tmp"]
    assert re.fullmatch(r"\d+[mg]", service["mem_limit"]) and 0 < service["pids_limit"] <= 256
    assert not service.keys() & {"privileged", "devices", "user", "env_file", "userns_mode", "cgroup_parent"}
    assert not [key for key in ("network_mode", "pid", "ipc") if service.get(key) == "host"]
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ())), "of this machine alone"
    assert name in {*WATCHERS, "node"} or "ports" not in service


def test_submit_and_ask_are_run_by_hand_and_ask_the_cluster() -> None:
    for name, words in (("submit", ["xyro", "submit"]), ("ask", ["xyro"])):
        service = SERVICES[name]
        assert service["entrypoint"] == words
        assert service["profiles"]
        assert service["environment"] == {"XYRO_CLUSTER__JOIN": NODE["environment"]["XYRO_CLUSTER__JOIN"]}
        assert "node" not in service["depends_on"], "`compose run` scales what it depends on down to one"


def test_the_dashboard_of_a_node_is_reached_as_the_documents_say() -> None:
    """The port that is published on this machine is the one that the documented command listens at."""
    (port,) = NODE["ports"]
    assert port == "127.0.0.1::8089"
    for path in ("docker-compose.yml", "docs/cluster.md"):
        lines = [line for line in (ROOT / path).read_text("utf-8").splitlines() if "xyro dashboard --listen" in line]
        told = [line.partition("exec node xyro ")[2] for line in lines if "exec node" in line]
        assert told == ['dashboard --listen 0.0.0.0:8089 --at "$(docker compose port node 8089)"'], path
        typed(shlex.split(told[0]))


def test_there_is_one_image() -> None:
    assert {service["image"] for service in OURS.values()} == {f"xyro:{PROJECT['project']['version']}"}


def test_those_who_watch_start_only_when_asked_and_read_what_lies_in_configs() -> None:
    for name, service in WATCHERS.items():
        assert service["profiles"] == ["watch"] and re.fullmatch(r"[\w/]+:v?\d+\.\d+\.\d+", service["image"])
        mounts = [mount.split(":") for mount in service["volumes"]]
        ours = {target: source for source, target, *mode in mounts if mode == ["ro"]}
        assert mounts[-1][0] == name and len(ours) == len(mounts) - 1
        assert all((ROOT / source).is_file() for source in ours.values()), ours
        assert not any("XYRO" in key for key in service.get("environment", ()))
    grafana = WATCHERS["grafana"]["environment"]
    boards = grafana["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert f"./configs/grafana.json:{boards}:ro" in WATCHERS["grafana"]["volumes"]
    provisioning = yaml.safe_load((ROOT / "configs" / "grafana-provisioning.yml").read_text(encoding="utf-8"))
    assert provisioning["providers"][0]["options"]["path"] == str(Path(boards).parent)
    (port,) = WATCHERS["prometheus"]["ports"]
    assert provisioning["datasources"][0]["url"] == f"http://prometheus:{port.rpartition(':')[2]}"


def test_prometheus_asks_the_nodes_where_they_listen() -> None:
    config = yaml.safe_load((ROOT / "configs" / "prometheus.yml").read_text(encoding="utf-8"))
    (job,) = config["scrape_configs"]
    (found,) = job["dns_sd_configs"]
    assert found["names"] == ["node"] and found["names"][0] in SERVICES, "an address for each of the nodes"
    host, _, port = NODE["environment"]["XYRO_METRICS__LISTEN"].rpartition(":")
    assert (host, int(port)) == ("0.0.0.0", found["port"])
    beside = {Path(mount.split(":")[1]) for mount in WATCHERS["prometheus"]["volumes"]}
    assert {Path("/etc/prometheus", name) for name in config["rule_files"]} <= beside


def environment(given: dict[str, str]) -> dict[str, str]:
    """What compose makes of the node's environment, with `given` variables set."""

    def fill(match: re.Match[str]) -> str:
        name, mark, rest = match["name"], match["mark"], match["rest"]
        if name in given:
            return given[name]
        if mark == ":?":
            raise KeyError(rest)
        return str(rest)

    pattern = re.compile(r"\$\{(?P<name>\w+)(?P<mark>:[?-])(?P<rest>[^}]*)\}")
    return {key: pattern.sub(fill, str(value)) for key, value in NODE["environment"].items()}


def test_the_node_does_not_start_without_a_contact() -> None:
    with pytest.raises(KeyError, match="can reach you"):
        environment({})


def test_the_environment_is_settings_that_exist() -> None:
    settings = load(environ=environment({"XYRO_CONTACT": "me@example.org", "XYRO_SCOPE": "domain"}))
    assert (settings.fetch.contact, settings.crawl.scope, settings.log.format) == ("me@example.org", "domain", "json")
    assert (settings.cluster.join, settings.store.data) == ("/join", "/data/node-*")
    assert load(environ=environment({"XYRO_CONTACT": "me@example.org"})).crawl.scope == "host"
    with pytest.raises(InputError):
        load(environ=environment({"XYRO_CONTACT": "me@example.org", "XYRO_SCOPE": "everything"}))


# The real thing, where there is one


def compose(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = ["docker", "compose", "--file", str(ROOT / "docker-compose.yml"), *arguments]
    bare = {key: value for key, value in os.environ.items() if not key.startswith("XYRO_")}
    return subprocess.run(command, capture_output=True, text=True, env=bare | variables, timeout=60)


def has_compose() -> bool:
    return bool(shutil.which("docker")) and compose("version").returncode == 0


@pytest.mark.skipif(
    not has_compose(), reason="no docker compose on this machine: its own reading of the file is not tried"
)
def test_docker_compose_reads_the_file_alike() -> None:
    read = compose(
        "--profile", "tools", "--profile", "watch", "config", "--format", "json", XYRO_CONTACT="me@example.org"
    )
    assert read.returncode == 0, read.stderr
    services: dict[str, Any] = json.loads(read.stdout)["services"]
    assert services.keys() == SERVICES.keys()
    assert services["node"]["environment"]["XYRO_FETCH__CONTACT"] == "me@example.org"
