"""A process that closes stores while its threads read them: run by test_store.py, as it may end by a segfault."""

from __future__ import annotations

import contextlib
import random
import sys
import threading
import time
from pathlib import Path

from xyro.metadata.store import Store
from xyro.wire.errors import MachineError

ROWS, READERS = 4000, 4


def read(store: Store, faults: list[BaseException]) -> None:
    """All that a reader does, until the store is closed."""
    try:
        with contextlib.suppress(MachineError):
            while True:
                view = store.snapshot()
                scan = view.scan(b"", reverse=random.random() < 0.5)
                for number, _ in enumerate(scan):
                    store.get(b"%08d" % number)
                    if random.random() < 0.001:
                        break
                list(zip(range(9), store.scan(b"0000"), strict=False))
                if random.random() < 0.5:
                    view.close()
    except BaseException as error:
        faults.append(error)


def main(folder: Path, rounds: int) -> int:
    """Read and close many times; the number of faults."""
    faults: list[BaseException] = []
    for number in range(rounds):
        store = Store.open(folder / "store", create=True)
        if not number:
            batch = store.batch()
            for row in range(ROWS):
                batch.put(b"%08d" % row, bytes(100))
            store.write(batch)
        threads = [threading.Thread(target=read, args=(store, faults)) for _ in range(READERS)]
        for thread in threads:
            thread.start()
        time.sleep(random.random() * 0.02)
        store.close()
        for thread in threads:
            thread.join()
    for fault in faults:
        print(repr(fault))
    return len(faults)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2])))
