"""A sink that counts changes by host, in the JSON file $XYRO_COUNT.

It is called with a list of changes (`xyro changes` shows them), which counts as delivered when it returns. A kill in
between has it called again with the same ones, so the cursor of the last one is remembered in the file, too.
"""

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit


def take(changes: list[dict[str, Any]]) -> None:
    """Add the changes of one delivery."""
    path = Path(os.environ["XYRO_COUNT"])
    known = json.loads(path.read_text()) if path.exists() else {"hosts": {}, "cursor": ""}
    if changes[-1]["cursor"] == known["cursor"]:
        return
    hosts = Counter(known["hosts"])
    hosts.update(urlsplit(change["url"]).netloc for change in changes if "url" in change)
    new = path.with_suffix(".new")
    new.write_text(json.dumps({"hosts": dict(hosts), "cursor": changes[-1]["cursor"]}))
    new.replace(path)
