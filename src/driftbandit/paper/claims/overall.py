"""The claims about experiments made elsewhere in the paper: abstract, introduction, sections 4, 7 and 8."""

from typing import Any

from driftbandit.paper.claims.abrupt import FIG3, in_all
from driftbandit.paper.claims.evidence import (
    ALMOST,
    COMPETITIVE,
    SIMILAR,
    AtLeast,
    Claim,
    ComputedStatement,
    Reader,
    Unsettled,
    every,
    most,
    some,
)
from driftbandit.paper.claims.prior import KNOWN
from driftbandit.paper.claims.smooth import FIG6

_BOTH = (*FIG3, *FIG6)
_FREQUENTIST = ("exp3s", "sw-lb-sda", "cusum-ucb", "d-ucb", "m-ucb")


def _bayesian(reader: Reader, item: str) -> AtLeast:
    """DS-TS or SW-TS has at most 1.1 times the regret of every frequentist policy."""
    rivals = [label for label in reader.labels(item) if label in _FREQUENTIST]
    return some(
        [every([reader.below(item, own, rival, 1.0 + ALMOST) for rival in rivals]) for own in ("ds-ts", "sw-ts")]
    )


def _shrinks(reader: Reader, item: str) -> ComputedStatement:
    """Can the discounted count grow so large that the standard deviation leaves its upper limit?"""
    policy: Any = reader.run.items[item].policies(reader.parameters)["ds-ts"]
    count, limit = 1.0 / (1.0 - policy.gamma) if policy.gamma < 1.0 else float("inf"), policy.tau_max**-2
    return ComputedStatement(item, f"count at most {count:.3g}, needed {limit:.3g}", count > limit)


def _usually(reader: Reader) -> AtLeast:
    known = [item for item in reader.run.items if item.startswith("abrupt-") and item not in reader.run.failures]
    return most([reader.alike(item, "ds-ts", "sw-ts", SIMILAR) for item in (*FIG3, *known)])


CLAIMS = (
    Claim(
        "abstract-competitive",
        "abstract, last sentence but one",
        "DS-TS is competitive with other policies for changing worlds.",
        f"In each of Figures 3(a)-(d) and 6(a)-(d) its regret is at most {COMPETITIVE:g} times that of every other "
        "policy.",
        "As for CUSUM in section 7.1; every figure of the main comparison counts.",
        _BOTH, in_all(_BOTH, lambda r, item: r.beats_all(item, "ds-ts", COMPETITIVE)),
    ),
    Claim(
        "abstract-outperforms",
        "abstract, last sentence (and introduction, last sentence)",
        "When the largest mean is known, DS-TS has the potential to outperform the state of the art.",
        "In Figure 7(a) or 7(b) DS-TS with tau_max = mu_max / 5 has less regret than every other policy.",
        "'Potential': in at least one of the two worlds where it was tried.",
        ("fig7a", "fig7b"),
        lambda r: some([r.beats_all(item, KNOWN, leave_out=("ds-ts",)) for item in ("fig7a", "fig7b")]),
    ),
    Claim(
        "introduction-bayesian",
        "section 1, paragraph 3",
        "Bayesian policies are superior or comparable to frequentist ones in most changing worlds.",
        "In more than half of Figures 3(a)-(d) and 6(a)-(d) DS-TS or SW-TS has at most "
        f"{1 + ALMOST:g} times the regret of every frequentist policy.",
        "Said of the literature; here it is put to the paper's own worlds. 'Comparable': almost the same.",
        _BOTH, lambda r: most([_bayesian(r, item) for item in _BOTH]),
    ),
    Claim(
        "method-variance",
        "section 4, paragraph 2, last sentence",
        "The key is that the played arm's sampling variance shrinks while the others' grow.",
        "In Figures 3(a)-(d) and 6(a)-(d) the discounted count can exceed 1 / tau_max^2.",
        "It never exceeds 1 / (1 - gamma); up to 1 / tau_max^2 the standard deviation stays at tau_max for every arm.",
        _BOTH, in_all(_BOTH, _shrinks),
    ),
    Claim(
        "method-advantage",
        "section 4, Related to Discounted UCB, last sentence",
        "Sampling has advantages over D-UCB's padding, as experiments will show.",
        "In each of Figures 3(a)-(d) and 6(a)-(d) DS-TS has less regret than D-UCB.",
        "The advantage the experiments can show.",
        _BOTH, in_all(_BOTH, lambda r, item: r.below(item, "ds-ts", "d-ucb")),
    ),
    Claim(
        "experiments-discount-helps",
        "section 7, sentence 2",
        "The discount improves on TS.",
        "In Figures 3(a)-(d) DS-TS has less regret than TS.",
        "The comparison is announced as measuring this improvement; in smooth worlds the paper itself grants TS a win.",
        FIG3, in_all(FIG3, lambda r, item: r.below(item, "ds-ts", "ts")),
    ),
    Claim(
        "discussion-reduction",
        "section 8, paragraph 1, sentence 3",
        "When the largest mean is known, DS-TS reduces regret significantly against the state of the art.",
        f"In Figures 7(a) and 7(b) DS-TS with tau_max = mu_max / 5 has at most {1 - ALMOST:g} times the regret of "
        "every other policy.",
        "'Significantly': by more than what counts as almost the same.",
        ("fig7a", "fig7b"),
        lambda r: every(
            [r.beats_all(item, KNOWN, 1.0 - ALMOST, leave_out=("ds-ts",)) for item in ("fig7a", "fig7b")]
        ),
    ),
    Claim(
        "discussion-usually-similar",
        "section 8, paragraph 2, sentence 2",
        "DS-TS is usually similar to SW-TS in abrupt worlds.",
        "In more than half of the abrupt worlds (Figure 3 and, if run, those announced and not shown) the two regrets "
        f"differ by less than {SIMILAR:.0%} of the smaller.",
        "'Usually': in more than half.",
        FIG3, _usually,
    ),
)  # fmt: skip

UNSETTLED = (
    Unsettled(
        "abstract, sentences on bounds",
        "Regret is of order sqrt(T B_T) and T^beta, up to logarithms.",
        "A theorem about growing horizons; `driftbandit theory` evaluates it, with --growth it measures growth.",
    ),
    Unsettled(
        "section 4, Related to Discounted UCB",
        "Sampling is more exploratory than deterministic padding.",
        "Which arms were explored is not part of the figures.",
    ),
    Unsettled(
        "section 8, paragraph 2, sentence 2",
        "The extra logarithm in the bound is probably due to a rough analysis.",
        "A conjecture about a proof.",
    ),
)
