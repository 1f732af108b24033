"""The claims about experiments in the abstract, the introduction and sections 4, 7 and 8, and the open questions."""

from driftbandit.paper.claims.abrupt_claims import FIG3
from driftbandit.paper.claims.evidence import (
    ALMOST,
    COMPETITIVE,
    SIMILAR,
    AtLeast,
    Claim,
    ComputedStatement,
    Evidence,
    every,
    in_all,
    most,
    some,
)
from driftbandit.paper.claims.smooth_claims import FIG6
from driftbandit.paper.items.item import KNOWN

_BOTH = (*FIG3, *FIG6)
_FREQUENTIST = ("exp3s", "sw-lb-sda", "cusum-ucb", "d-ucb", "m-ucb")


def _bayesian(evidence: Evidence, item: str) -> AtLeast:
    rivals = [label for label in evidence.run.items[item].labels if label in _FREQUENTIST]
    return some(
        [every([evidence.below(item, own, rival, 1.0 + ALMOST) for rival in rivals]) for own in ("ds-ts", "sw-ts")]
    )


def _can_shrink(evidence: Evidence, item: str) -> ComputedStatement:
    policy = evidence.run.items[item].policies(evidence.parameters)["ds-ts"]
    count, limit = 1.0 / (1.0 - policy.gamma) if policy.gamma < 1.0 else float("inf"), policy.tau_max**-2
    return ComputedStatement(item, f"count at most {count:.3g}, needed {limit:.3g}", count > limit)


def _usually_similar(evidence: Evidence) -> AtLeast:
    run = evidence.run
    announced = [name for name in run.items if name.startswith("abrupt-") and name not in run.failures]
    return most([evidence.alike(item, "ds-ts", "sw-ts", SIMILAR) for item in (*FIG3, *announced)])


CLAIMS = (
    Claim(
        "abstract-competitive", "abstract, last sentence but one",
        "DS-TS is competitive with other policies for changing environments.",
        f"In each of Figures 3(a)-(d) and 6(a)-(d) its regret is at most {COMPETITIVE:g} times that of every other "
        "policy.",
        "As for CUSUM in section 7.1; every figure of the main comparison counts.",
        _BOTH, in_all(_BOTH, lambda e, item: e.below_all(item, "ds-ts", COMPETITIVE)),
    ),
    Claim(
        "abstract-outperforms", "abstract, last sentence (and introduction, last sentence)",
        "When the largest mean is known, DS-TS has the potential to outperform the state of the art.",
        "In Figure 7(a) or 7(b) DS-TS with tau_max = mu_max / 5 has less regret than every other policy.",
        "'Potential': in at least one of the two environments where it was tried.",
        ("fig7a", "fig7b"),
        lambda e: some([e.below_all(item, KNOWN, without="ds-ts") for item in ("fig7a", "fig7b")]),
    ),
    Claim(
        "introduction-bayesian", "section 1, paragraph 3",
        "Bayesian policies are superior or comparable to frequentist ones in most changing environments.",
        "In more than half of Figures 3(a)-(d) and 6(a)-(d) DS-TS or SW-TS has at most "
        f"{1 + ALMOST:g} times the regret of every frequentist policy.",
        "A statement about the literature, tested on the paper's own environments. 'Comparable': almost the same.",
        _BOTH, lambda e: most([_bayesian(e, item) for item in _BOTH]),
    ),
    Claim(
        "method-variance", "section 4, paragraph 2, last sentence",
        "The key is that the played arm's sampling variance shrinks while the others' grow.",
        "In Figures 3(a)-(d) and 6(a)-(d) the discounted count can exceed 1 / tau_max^2.",
        "It never exceeds 1 / (1 - gamma); up to 1 / tau_max^2 the standard deviation stays at tau_max for every arm.",
        _BOTH, in_all(_BOTH, _can_shrink),
    ),
    Claim(
        "method-advantage", "section 4, Related to Discounted UCB, last sentence",
        "Sampling has advantages over D-UCB's padding, as experiments will show.",
        "In each of Figures 3(a)-(d) and 6(a)-(d) DS-TS has less regret than D-UCB.",
        "The advantage the experiments can show.",
        _BOTH, in_all(_BOTH, lambda e, item: e.below(item, "ds-ts", "d-ucb")),
    ),
    Claim(
        "experiments-discount-helps", "section 7, sentence 2",
        "The discount improves on TS.",
        "In Figures 3(a)-(d) DS-TS has less regret than TS.",
        "The paper announces the comparison for this; with smooth changes it reports that TS is better.",
        FIG3, in_all(FIG3, lambda e, item: e.below(item, "ds-ts", "ts")),
    ),
    Claim(
        "discussion-reduction", "section 8, paragraph 1, sentence 3",
        "When the largest mean is known, DS-TS reduces regret significantly against the state of the art.",
        f"In Figures 7(a) and 7(b) DS-TS with tau_max = mu_max / 5 has at most {1 - ALMOST:g} times the regret of "
        "every other policy.",
        "'Significantly': by more than what counts as almost the same.",
        ("fig7a", "fig7b"),
        in_all(("fig7a", "fig7b"), lambda e, item: e.below_all(item, KNOWN, 1.0 - ALMOST, without="ds-ts")),
    ),
    Claim(
        "discussion-usually-similar", "section 8, paragraph 2, sentence 2",
        "DS-TS is usually similar to SW-TS in abrupt environments.",
        "In more than half of the environments with abrupt changes (Figure 3 and, if run, those announced and not "
        f"shown) the two regrets differ by less than {SIMILAR:.0%} of the smaller.",
        "'Usually': in more than half.",
        FIG3, _usually_similar,
    ),
)  # fmt: skip

# Sentences that these runs cannot decide: place, sentence, reason.
UNSETTLED = (
    (
        "abstract, sentences on bounds", "Regret is of order sqrt(T B_T) and T^beta, up to logarithms.",
        "A theorem about growing horizons; `driftbandit theory` evaluates it, with --growth it measures growth.",
    ),
    (
        "section 4, Related to Discounted UCB", "Sampling is more exploratory than deterministic padding.",
        "The figures do not record which arms were explored.",
    ),
    (
        "section 7.1, Experimental Setting", "tau_max should be a fifth to a third of the largest mean.",
        "Advice without a stated alternative; the figures use one value only.",
    ),
    (
        "section 7.1, Results, sentence 8", "The result agrees with an earlier study of many-armed bandits.",
        "The paper's own result is decided above; the other study is not repeated here.",
    ),
    (
        "section 7.2, Experimental Setting", "CUSUM and M-UCB rest on an assumption opposite to smoothness.",
        "A statement about proofs of others; the two were not run with smooth changes.",
    ),
    (
        "section 7.2, Results, sentence 3", "DS-TS is behind because discounting costs an extra logarithm.",
        "An explanation by an upper bound, which does not determine the regret.",
    ),
    (
        "section 7.3, paragraph 1, sentence 3", "Policies do well because they explore strongly.",
        "An explanation; exploration was not varied.",
    ),
    (
        "section 8, paragraph 2, sentence 2", "The extra logarithm in the bound is probably due to a rough analysis.",
        "A conjecture about a proof.",
    ),
)  # fmt: skip
