"""A bad network inside a node's transport: messages are lost, doubled and late, by seed."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True)
class MessageLoss:
    """A share each of messages is lost, doubled and delayed on the way out, by seed: for tests."""

    share: float
    seed: int
    fates: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("lost", "doubled", "delayed"), 0))
    _random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def pass_on(self, send: Callable[[], None]) -> None:
        """Call `send` as often, and as late, as fate will have it."""
        fate = self._random.random() / self.share if self.share else 3.0
        if fate < 1.0:
            self.fates["lost"] += 1
        elif fate < 2.0:
            self.fates["doubled"] += 1
            send()
            send()
        elif fate < 3.0:
            self.fates["delayed"] += 1
            asyncio.get_running_loop().call_later(self._random.random() / 10, send)
        else:
            send()
