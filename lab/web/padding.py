"""The weight of real pages: sizes as a crawl of a billion pages found them, and the styles, scripts, markup and
text that make them up. Nothing in it is a link.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from xyro.lab.web.chance import mix, unit
from xyro.lab.web.prose import prose

MEDIAN = 138_000
"""bytes of the median HTML page of a crawl of a billion pages in 2025; the mean is 242,000"""
SPREAD = math.sqrt(2 * math.log(242 / 138))
"""of the logarithms of a lognormal with this median and this mean"""
LARGEST = 8_000_000
"""bytes; one page in 16,000 would be larger"""
SHARES = {"script": 0.45, "style": 0.12, "markup": 0.43}
"""of the bytes of the padding"""
_SIZE, _PAD = 305, 306
"""keys that keep the draws of different purposes apart"""
_POOL = 768
"""fragments of each kind, some 1.5 kB long: a page of 1 MB shows each once or twice"""
_LINES = 9
_UTILITIES = (
    "flex",
    "grid",
    "px-4",
    "py-2",
    "mt-6",
    "text-sm",
    "font-bold",
    "hidden",
    "md:block",
    "rounded-lg",
    "w-full",
)
_PROPERTIES = (
    "margin",
    "padding",
    "color",
    "width",
    "min-height",
    "font-size",
    "border-radius",
    "transform",
    "opacity",
)
_CALLS = (
    "addEventListener",
    "querySelector",
    "push",
    "setAttribute",
    "getBoundingClientRect",
    "then",
    "indexOf",
    "map",
)


def size_of(seed: int, page: int, median: int) -> int:
    """Bytes of a page, drawn from the distribution of real ones with another median."""
    first, second = unit(seed, page, _SIZE), unit(seed, page, _SIZE, 1)
    normal = math.sqrt(-2.0 * math.log(1.0 - first)) * math.cos(2.0 * math.pi * second)
    return min(LARGEST, round(median * math.exp(SPREAD * normal)))


def padding(seed: int, page: int, size: int) -> tuple[str, str, str]:
    """About `size` bytes as (style elements, markup, script elements): for the head, the body's middle and its end."""
    pool = _pool(seed)
    parts = []
    for number, (kind, share) in enumerate(SHARES.items()):
        drawn, rest, chosen = mix(seed, page, _PAD, number), round(size * share), list[str]()
        place, step = drawn % _POOL, (drawn >> 20) % _POOL | 1
        fragments = pool[kind]
        while rest > fragments[place][1] // 2:
            text, weight = fragments[place]
            chosen.append(text)
            rest -= weight
            place = (place + step) % _POOL
        parts.append(chosen)
    scripts, styles, markup = parts
    return _elements("style", styles), "\n".join(markup), _elements("script", scripts)


def _elements(name: str, fragments: list[str]) -> str:
    """Fragments in elements of some 24 kB each."""
    return "".join(
        f"<{name}>{''.join(fragments[start : start + 20])}</{name}>\n" for start in range(0, len(fragments), 20)
    )


@lru_cache(maxsize=2)
def _pool(seed: int) -> dict[str, list[tuple[str, int]]]:
    """Fragments of each kind with their bytes, drawn once."""
    rng = np.random.default_rng((seed, 7))
    pool = {}
    for kind, make in (("script", _script), ("style", _style), ("markup", _markup)):
        texts = ["".join(make(rng, seed, _LINES * number + line) for line in range(_LINES)) for number in range(_POOL)]
        pool[kind] = [(text, len(text.encode())) for text in texts]
    return pool


def _script(rng: np.random.Generator, seed: int, number: int) -> str:
    """Some 190 bytes of state as JSON, or of code without spaces."""
    a, b, c, d = rng.integers(0, 1 << 12, 4).tolist()
    words = prose(seed).title(number)
    if number % 3:
        return (
            f'window.__s["{a:x}"]={{"id":{b},"t":"{words}","k":"{rng.integers(1 << 32):08x}","u":"\\/v{a % 9}\\/{d:x}",'
            f'"__typename":"Teaser","section":{{"slug":"world","locale":"en"}},"isOpen":true,"n":{c % 97}}};'
        )
    call = _CALLS[a % len(_CALLS)]
    return (
        f'function f{a:x}(e,t){{var n=e.{call}(t);return n&&n.length<{b % 512}?n[{c % 9}]:"<b class=c{d:x}>"+t+"</b>"}}'
    )


def _style(rng: np.random.Generator, seed: int, number: int) -> str:
    """One rule of some 130 bytes."""
    a, b, c, d = rng.integers(0, 1 << 10, 4).tolist()
    chosen = [_PROPERTIES[value % len(_PROPERTIES)] for value in (a, b, c)]
    return (
        f".c-{a:x}__{b % 997:x}>.is-{c % 61:x}:hover{{{chosen[0]}:{a % 64}px {b % 32}px;"
        f"{chosen[1]}:#{c % 64 * 66051:06x};{chosen[2]}:calc(100% - {d % 480}px)}}\n"
    )


def _markup(rng: np.random.Generator, seed: int, number: int) -> str:
    """An element or two of some 180 bytes: boxes of boxes, pictures drawn in place, buttons."""
    a, b, c, d = rng.integers(0, 1 << 9, 4).tolist()
    names = " ".join(_UTILITIES[value % len(_UTILITIES)] for value in (a, b, c))
    match number % 6:
        case 0:
            points = " ".join(f"{x / 10}" for x in rng.integers(0, 240, 10).tolist())
            return f'<svg class="i-{a % 97}" viewBox="0 0 24 24" aria-hidden="true"><path d="M{points}z"/></svg>\n'
        case 1:
            return f'<button type="button" class="{names}" data-id="{d:x}" >{prose(seed).title(a)}</button>\n'
        case 2:
            return f'<img class="{names}" alt="{prose(seed).title(b)}" width="{c % 900}" src="/i/{d:x}.webp">\n'
        case 3:
            return f"<p>{' '.join(prose(seed).sentences(140, number, a))}</p>\n"
    label = f'<span class="{names} card__label card__label--small">{prose(seed).title(c)}</span>'
    day = f'<time datetime="2025-0{a % 9 + 1}-1{b % 9}">{c % 28} May</time>'
    return (
        f'<div class="{names} c-{a:x}" data-v-{b:x}="" role="presentation">{label}'
        f'<div class="c-{d % 997:x}__inner">{day}</div></div>\n'
    )
