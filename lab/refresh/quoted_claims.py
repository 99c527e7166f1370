"""The papers' own claims on refreshing, each with the sentence it rests on, judged by the results of the runs.

Quoted is what public copies have word for word, mostly abstracts; `place` says where the sentence stands. What a claim
means in numbers is ours and stands in `says`. The statements of P1, whose text was not at hand, are in where.py. What
is asked of our own policies is in refresh_claims.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Results = Mapping[str, Any]
AZAR = "Azar, Horvitz, Lubetzky, Peres, Shahaf, PNAS 115(32), 2018"
CHO = "Cho, Garcia-Molina, SIGMOD 2000"
AVRACHENKOV = "Avrachenkov, Patil, Thoppe, VALUETOOLS 2020"
WHITTLE = "Avrachenkov, Borkar, IEEE Trans. Control of Network Systems 5, 2018"
UPADHYAY = "Upadhyay, Busa-Fekete, Kotlowski, Pal, Szorenyi, AAAI 2020"
KOLOBOV = "Kolobov, Bubeck, Zimmert, ICML 2020"
BUSA_FEKETE = "Busa-Fekete, Zimmert, Gyorgy et al., WWW 2025"
CLOSE, AS_GOOD, MUCH = 1.1, 1.02, 0.8
"""staleness over another's that counts as "close to optimal", as equal, as "very significantly" better"""


@dataclass(frozen=True, slots=True)
class QuotedClaim:
    """A claim of a paper. place: of the quoted sentence in it; says: what that was taken to mean in numbers."""

    source: str
    place: str
    quote: str
    says: str
    found: str
    holds: bool


def quoted_claims(results: Results) -> list[QuotedClaim]:
    """Judge what the papers claim of their own policies, on the worlds that they are made for."""
    return [*_old(results), *_new(results), *_signals(results)]


def _stale(scores: Results, name: str) -> float:
    """Staleness over that of `freshness` with known rates; 1 where that is never stale."""
    ratio = scores[name]["staleness"]
    return 1.0 if ratio is None else float(ratio)


def _each(ratios: Mapping[str, float]) -> str:
    return ", ".join(f"{value:.2f} at {100 * float(bandwidth):g} %" for bandwidth, value in ratios.items())


def _old(results: Results) -> Iterator[QuotedClaim]:
    optimum = results["worlds"]["poisson"]["known"]
    shares = {bandwidth: float(scores["azar"]["share"]) for bandwidth, scores in optimum.items()}
    yield QuotedClaim(
        AZAR, "abstract",
        "using the optimal probabilities to define in linear time a deterministic schedule yields a tractable policy "
        "that in experiments attains 99 % of the optimum",
        "poisson, known rates: `azar` is at least .99 as fresh as the optimum",
        ", ".join(f"{value:.4f} at {100 * float(b):g} %" for b, value in shares.items()),
        min(shares.values()) >= 0.99,
    )  # fmt: skip
    ratios = {b: 1.0 / max(_stale(scores, "uniform"), 1e-9) for b, scores in optimum.items()}
    yield QuotedClaim(
        CHO, "abstract",
        'we show that our new policy improves the "freshness" very significantly compared to current policies in use',
        f"poisson, known rates: `freshness` is stale {MUCH:g} of the time that `uniform` is, or less",
        _each(ratios), max(ratios.values()) <= MUCH,
    )  # fmt: skip
    if results["real"]:
        rows = {b: {row["policy"]: row for row in found} for b, found in results["real"]["real"].items()}
        ratios = {b: _stale(found, "uniform") for b, found in rows.items()}
        yield QuotedClaim(
            AVRACHENKOV, "section 1, of pages of equal importance",
            "experimental evidence surprisingly shows that the uniform policy [...] is more or less the optimal "
            "crawling strategy",
            f"real histories, all of importance 1: staleness of `uniform` over the optimum's is {CLOSE:g} at most",
            _each(ratios), max(ratios.values()) <= CLOSE,
        )  # fmt: skip


def _new(results: Results) -> Iterator[QuotedClaim]:
    optimum = results["worlds"]["poisson"]["known"]
    ratios = {
        bandwidth: _stale(scores, "learning-to-crawl") / max(_stale(scores, "azar-random"), 1e-9)
        for bandwidth, scores in optimum.items()
    }
    yield QuotedClaim(
        UPADHYAY, "abstract",
        "our online policy scales well and achieves close to optimal performance for a wide range of parameters",
        f"poisson: staleness over that of the same Poisson reads from the true rates is {CLOSE:g} at most",
        _each(ratios), max(ratios.values()) <= CLOSE,
    )  # fmt: skip
    ratios = {b: _stale(scores, "mirror-sync") / _stale(scores, "uniform") for b, scores in optimum.items()}
    yield QuotedClaim(
        KOLOBOV, "abstract",
        "We present MirrorSync, an online learning algorithm for synchronization bandits, establish an adversarial "
        "regret of O(T^{2/3}) for it, and show how to make it practical",
        "poisson, 150 days: less stale than `uniform`, from which it starts (ratio below 1)",
        _each(ratios), max(ratios.values()) < 1.0,
    )  # fmt: skip
    found = {
        b: {name: score["interest"] or 0.0 for name, score in scores.items()}
        for b, scores in results["hard"]["ephemeral"]["known"].items()
    }
    yield QuotedClaim(
        WHITTLE, "abstract",
        "this problem admits a Whittle index, which leads to problem decomposition and to a very simple and efficient "
        "crawling policy",
        "ephemeral, known rates: of all policies `whittle` reads changes while most of the interest in them is left",
        ", ".join(f"{v['whittle']:.3f} of {max(v.values()):.3f} at {100 * float(b):g} %" for b, v in found.items()),
        all(v["whittle"] >= max(v.values()) for v in found.values()),
    )  # fmt: skip


def _signals(results: Results) -> Iterator[QuotedClaim]:
    worlds = {name: knowledge for name, knowledge in results["hard"].items() if name.startswith("signals")}
    gaps = {
        f"{world} {100 * float(b):g} %": _stale(scores, "greedy-ncis") / min(_stale(scores, name) for name in scores)
        for world, knowledge in worlds.items()
        for b, scores in knowledge["known"].items()
    }
    worst = max(gaps, key=lambda cell: gaps[cell])
    yield QuotedClaim(
        BUSA_FEKETE, "abstract, (i)",
        "uses the noisy side information in an optimal way under mild assumptions",
        f"worlds with signals, known rates: staleness over that of the freshest policy is {AS_GOOD:g} at most",
        f"{gaps[worst]:.3f} at most ({worst})", gaps[worst] <= AS_GOOD,
    )  # fmt: skip
    spent = [
        scores["greedy-ncis"]["reads"] / max(scores["greedy-ncis"]["allowed"], 1)
        for knowledge in worlds.values()
        for bandwidths in knowledge.values()
        for scores in bandwidths.values()
    ]
    yield QuotedClaim(
        BUSA_FEKETE, "abstract, (iii)",
        "is able to crawl web pages at a constant total rate without spikes in the total bandwidth usage over any time "
        "interval",
        "each tick's reads are spent, none is left and none is borrowed",
        f"{100 * min(spent):.2f} % at least", min(spent) == 1.0,
    )  # fmt: skip
