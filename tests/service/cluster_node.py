"""One node of a cluster as `xyro serve --join` runs it, with messages that are lost, or a death at a step of a move.

Arguments: broker's URL, data directory, delay of a host, share of messages lost, doubled and delayed, seed, step.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from tests.service.message_loss import MessageLoss
from xyro.configs.load import SERVE, load
from xyro.plugins import PLUGINS
from xyro.service.api.endpoints import ENDPOINTS
from xyro.service.cluster.membership import ClusterMembership
from xyro.service.cluster.transport import at_once
from xyro.service.node.life_cycle import Job, run
from xyro.service.node.node import Bounds
from xyro.wire.clock import SystemClock
from xyro.wire.log_setup import set_up


def main(url: str, data: str, delay: str, share: str, seed: str, deadly: str) -> None:
    scope = os.environ.get("XYRO_CRAWL__SCOPE", "any")
    options = {"crawl.scope": scope, "politeness.delay": float(delay), "fetch.only_net": ("127.0.0.0/8",)}
    options["cluster.join"] = url
    settings = load((SERVE,), os.environ, options)
    set_up("info", "text")

    def stage(name: str) -> None:
        print("stage", name, flush=True)
        if name == deadly:
            os.kill(os.getpid(), signal.SIGKILL)

    loss = MessageLoss(float(share), int(seed)) if float(share) else None
    member = ClusterMembership(url, None, SystemClock(), at_once if loss is None else loss.pass_on, stage)
    run(
        Job(
            Path(data),
            settings,
            Bounds(forever=True),
            ENDPOINTS,
            again=lambda: settings,
            plugins=PLUGINS,
            membership=member,
        )
    )
    if loss is not None:
        print("fates", json.dumps(loss.fates), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
