"""Values of pages for a crawl about a topic: the words of $TOPIC_WORDS, separated by commas.

A page whose main text has one of them passes on all of its importance, another page a tenth. A small classifier of
your own goes in the same place.
"""

import os
import re

import xyro

WORDS = [word.strip() for word in os.environ.get("TOPIC_WORDS", "").split(",") if word.strip()]
TOPIC = re.compile("|".join(map(re.escape, WORDS)) or "(?!)", re.IGNORECASE)
ELSEWHERE = 0.1


def value(page: xyro.ReadPage) -> float:
    """The share of its importance that a page passes on to its links, 0 to 1."""
    return 1.0 if TOPIC.search(page.text) else ELSEWHERE
