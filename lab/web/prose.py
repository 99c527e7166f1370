"""Generated prose: a pool of sentences drawn once per seed, from which pages take theirs by number."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from xyro.lab.web.chance import mix

_POOL, _WORDS = 1024, 800
_ONSETS = ("b", "br", "d", "f", "g", "gr", "h", "k", "l", "m", "n", "p", "pl", "r", "s", "st", "t", "tr", "v", "w")
_VOWELS = ("a", "e", "i", "o", "u", "ai", "ea", "ou", "é", "ö")
_CODAS = ("", "", "l", "n", "r", "s", "nd", "rt", "ck", "st")


class Prose:
    """Text without markup characters (no <, >, &, quotes), so it can stand in HTML and XML as it is."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng((seed, 3))
        self._words = [_word(rng) for _ in range(_WORDS)]
        self._sentences = [_sentence(rng, self._words) for _ in range(_POOL)]
        self._sizes = [len(sentence.encode()) + 1 for sentence in self._sentences]

    def title(self, page: int) -> str:
        """Two or three words, the same for each mention of a page."""
        drawn = mix(page)
        words = self._words[drawn % _WORDS], self._words[(drawn >> 20) % _WORDS], self._words[(drawn >> 40) % _WORDS]
        return " ".join(words[: 2 + drawn % 2]).capitalize()

    def sentences(self, size: int, *keys: int) -> list[str]:
        """Sentences of about `size` bytes in all (at least one), chosen by the keys."""
        drawn = mix(*keys)
        place, step = drawn % _POOL, (drawn >> 20) % _POOL | 1
        chosen: list[str] = []
        while not chosen or 2 * size > self._sizes[place]:
            chosen.append(self._sentences[place])
            size -= self._sizes[place]
            place = (place + step) % _POOL
        return chosen


@lru_cache(maxsize=8)
def prose(seed: int) -> Prose:
    """The pool of a seed, made once."""
    return Prose(seed)


def _word(rng: np.random.Generator) -> str:
    syllables = rng.integers(1, 4)
    return "".join(
        str(part) for _ in range(syllables) for part in (rng.choice(_ONSETS), rng.choice(_VOWELS), rng.choice(_CODAS))
    )


def _sentence(rng: np.random.Generator, words: list[str]) -> str:
    chosen = [words[place] for place in rng.integers(0, len(words), rng.integers(6, 18))]
    return " ".join(chosen).capitalize() + "."
