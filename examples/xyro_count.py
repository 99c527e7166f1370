"""A sink that counts changes by host, in the JSON file $COUNT_FILE.

It is called with a list of changes (`xyro changes` shows them), which counts as delivered when it returns. A kill in
between has it called again with the same ones, so the file remembers the last number of each partition, too.
"""

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit


def take(changes: list[dict[str, Any]]) -> None:
    """Add the changes of one delivery."""
    path = Path(os.environ["COUNT_FILE"])
    known = json.loads(path.read_text()) if path.exists() else {"hosts": {}, "last": {}}
    hosts, last = Counter(known["hosts"]), known["last"]
    for change in changes:
        partition, number = str(change["partition"]), [change["epoch"], change["number"]]
        if "url" in change and number > last.get(partition, [0, 0]):
            hosts[urlsplit(change["url"]).netloc] += 1
            last[partition] = number
    new = path.with_suffix(".new")
    new.write_text(json.dumps({"hosts": dict(hosts), "last": last}))
    new.replace(path)
