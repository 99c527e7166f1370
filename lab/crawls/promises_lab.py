"""`xyro lab promises`: promises to publishers and subscribers, checked over real HTTP on the computed web; a line
of JSON for each part.

publications    under full load, in real time: how soon pages are read that their sites say have changed, and what
                becomes of a site that lies (published.py)
subscriptions   a thousand of them for two weeks, on a clock that jumps: every notice when it is due, once, with
                what changed; and, where bandwidth or politeness do not suffice, that it says so (subscribed.py)
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from xyro.lab.crawls import published, subscribed_lab
from xyro.wire.errors import MachineError, XyroError

PARTS = ("publications", "subscriptions", "scarce")


def runs(part: str, quick: bool, seed: int) -> Iterator[Callable[[], dict[str, Any]]]:
    """Yield the runs that belong to a part; `all` means every part."""
    if part in ("publications", "all"):
        yield lambda: published.run(published.QUICK if quick else published.FULL, seed)
    if part in ("subscriptions", "all"):
        yield lambda: subscribed_lab.run(subscribed_lab.QUICK if quick else subscribed_lab.FULL, seed)
    if part in ("scarce", "all"):
        for name, size in subscribed_lab.SCARCE.items():
            yield partial(_scarce, name, size, seed)


def _scarce(name: str, size: subscribed_lab.SubscribedSize, seed: int) -> dict[str, Any]:
    return {**subscribed_lab.run(size, seed, enough=False), "scarce": name}


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code: 0 all is kept, 1 something is not, 2 bad input, 3 the machine failed."""
    parser = argparse.ArgumentParser(
        prog="xyro lab promises",
        description="Publications and subscriptions, kept: a line of JSON for each run; exit code 0 if all are ok.",
        epilog="`scarce` has too little bandwidth, then too much politeness, for what was promised: there `ok` means "
        "that every notice came all the same, none said what is wrong, and that what was missed was told.",
    )
    parser.add_argument("--quick", action="store_true", help="smaller: two or three minutes in all")
    parser.add_argument("--part", choices=(*PARTS, "all"), default="all", help="only this one [all]")
    parser.add_argument("--seed", type=int, default=1, help="of the web [1]")
    options = parser.parse_args(arguments)
    ok = True
    try:
        for run in runs(options.part, options.quick, options.seed):
            report = run()
            ok &= report["ok"]
            sys.stdout.write(json.dumps(report) + "\n")
            sys.stdout.flush()
    except XyroError as error:
        sys.stderr.write(f"xyro lab promises: {error}\n")
        return 3 if isinstance(error, MachineError) else 2
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
