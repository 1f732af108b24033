"""What the theorems promise for one world: a list of bounds, and a paragraph for readers without formulas."""

import math

from driftbandit.lab.theory import paper_functions as f
from driftbandit.lab.theory.bound import Bound
from driftbandit.lab.theory.diagnosis import Diagnosis, MeanSource, close_rounds, diagnose, separations
from driftbandit.lab.theory.theorem import FORMS, theorem1, theorem2
from driftbandit.lab.theory.tuning import corollary1


def drift_gap(drift: float, eps: float) -> float:
    """A gap at which Theorem 2 can speak: twice the least it needs (6 sigma D), at most 1.

    Closer to the least, its second term explodes; further up, more rounds are given up as too close to call."""
    return min(1.0, 12.0 * drift * math.exp(min(f.log_D(eps), 700.0))) if drift > 0.0 and 0.0 < eps < 1.0 else 1.0


def bounds_for(world: MeanSource, eps: float, tau_max: float = 0.2, found: Diagnosis | None = None) -> list[Bound]:
    """Both theorems for DS-TS with discount 1 - eps: Theorem 1 in all its forms, then Theorem 2 as proved.

    Theorem 1 takes the phases as they are; in a smoothly drifting world nearly every round is one, and only Theorem 2
    has a chance. Pass `found` to spare a second reading of the means."""
    found = diagnose(world) if found is None else found
    shared = {"eps": eps, "mu_max": found.mu_max, "tau_max": tau_max}
    arms = (None, found.suboptimal_arms)
    bounds = [
        theorem1(horizon=found.horizon, phases=found.phases, gap=found.gap, form=form, sum_over=count, **shared)
        for form in FORMS
        for count in arms
    ]
    gap = drift_gap(found.drift, eps)
    close = close_rounds(separations(world), gap)
    bounds += [
        theorem2(horizon=found.horizon, gap=gap, drift=found.drift, close_rounds=close, sum_over=count, **shared)
        for count in arms
    ]
    return bounds


def in_words(found: Diagnosis, bounds: list[Bound]) -> str:
    """One paragraph: what the world does, what is guaranteed in it, and which gamma Corollary 1 advises."""
    best = "never changes" if not found.switches else f"changes {found.switches} times"
    sentences = [
        f"{found.n_arms} arms over {found.horizon} rounds in {found.phases} phases; the best arm {best},"
        f" and uniform play would cost {found.uniform_regret:.0f}."
    ]
    if found.tied_rounds:
        sentences.append(f"In {found.tied_rounds} rounds the best arm is tied, so no bound in terms of the gap exists.")
    useful = [bound for bound in bounds if bound.promises]
    if useful:
        sharpest = min(useful, key=lambda bound: (bound.scope != "all arms", bound.log10 or 0.0))
        sentences.append(f"Guaranteed: {sharpest}.")
    else:
        numbers = [bound for bound in bounds if bound.holds and bound.log10 is not None]
        sentences.append(
            "Nothing is guaranteed: neither theorem gives less than the trivial bound, one wrong play per round."
        )
        if numbers:
            nearest = min(numbers, key=lambda bound: bound.log10 or 0.0)
            factor = (nearest.log10 or 0.0) - math.log10(found.horizon)
            sentences.append(f"The nearest, {nearest.name}, is 10^{factor:.0f} times larger.")
        else:
            failed = dict.fromkeys(condition.text for bound in bounds for condition in bound.failed)
            sentences.append("No theorem applies either; what fails: " + "; ".join(failed) + ".")
    advice = corollary1(found.horizon, found.phases)
    if advice.holds and advice.eps is not None:
        sentences.append(
            f"Corollary 1 advises gamma = 1 - {advice.eps:.3g}, for its order of growth; measure before trusting it."
        )
    else:
        sentences.append("Corollary 1 gives no gamma here: the phases are too short for the horizon.")
    return " ".join(sentences)
