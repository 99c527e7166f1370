"""README's tour, typed as it stands: what it promises a newcomer comes out, on a free port instead of its own."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.service.face import ROOT

PORT = 8480
"""the port that the tour names"""


def tour() -> list[str]:
    """What the tour's second part types, a line each."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (block,) = (block for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL) if f"--port {PORT}" in block)
    return [line[2:] for line in block.splitlines() if line.startswith("$ ")]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.1.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.long
def test_the_tour_can_be_repeated(tmp_path):
    script = "\n".join([*tour(), "kill %1"]).replace(str(PORT), str(free_port()))
    environment = {key: value for key, value in os.environ.items() if not key.startswith("XYRO_")}
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    with (tmp_path / "log").open("w") as log:
        done = subprocess.run(
            ["bash", "-m", "-c", script], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=log, timeout=180
        )
    shown = done.stdout.decode()
    assert done.returncode == 0, shown + (tmp_path / "log").read_text()
    known, resumed = (
        re.search(pattern, shown, re.MULTILINE)
        for pattern in (r"^holds: ([\d,]+) pages", r"pages read, ([\d,]+) known, .* \(max-seconds\)")
    )
    assert known and resumed and int(known[1]) <= int(resumed[1]) == 400
    assert re.search(
        r"^It was read \d+ times and changed \d+ times(: about|. How often it changes is hardly)", shown, re.MULTILINE
    )
    changes = re.search(r"^(\d+)$", shown, re.MULTILINE)
    assert changes and int(changes[1]) >= 300, "each page is new once"
    assert len((tmp_path / "pages.csv").read_text().splitlines()) == 401
