"""The command: see the package."""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from random import Random

from tests.fuzz.fuzzers import ENDS, FUZZERS


def run(name: str, seed: int, number: int) -> bool:
    """One case. False, and told how to replay it, if it fails."""
    try:
        FUZZERS[name](Random(f"{name}:{seed}:{number}"))
    except Exception:
        sys.stdout.write(f"{traceback.format_exc()}python -m tests.fuzz --replay {name}:{seed}:{number}\n")
        return False
    return True


def _ended(name: str) -> bool:
    """What a fuzzer leaves behind is sound, too."""
    try:
        ENDS.get(name, lambda: None)()
    except Exception:
        sys.stdout.write(f"{name}, at its end: {traceback.format_exc()}")
        return False
    return True


def fuzz(name: str, seed: int, seconds: float) -> int:
    """As many cases as the time allows; returns how many failed, of which it stops at the third."""
    end, number, failed = time.monotonic() + seconds, 0, 0
    while time.monotonic() < end and failed < 3:
        failed += not run(name, seed, number)
        number += 1
    failed += not _ended(name)
    sys.stdout.write(f"{name}: {number:,} cases with seed {seed}, {failed} failed\n")
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *FUZZERS], metavar="FUZZER", help=", ".join(FUZZERS))
    parser.add_argument("--seconds", type=float, default=60.0, help="for all of them together [60]")
    parser.add_argument("--seed", type=int, default=None, help="[another one each time]")
    parser.add_argument("--replay", metavar="FUZZER:SEED:NUMBER")
    options = parser.parse_args()
    if options.replay:
        name, seed, number = options.replay.split(":")
        return int(not (run(name, int(seed), int(number)) and _ended(name)))
    names = options.names or list(FUZZERS)
    first = int(time.time()) if options.seed is None else options.seed
    return int(sum(fuzz(name, first, options.seconds / len(names)) for name in names) > 0)


if __name__ == "__main__":
    sys.exit(main())
