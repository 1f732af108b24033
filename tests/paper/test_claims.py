"""Claims: the logic of verdicts on numbers one can check by hand, and every claim on a run made up for it."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftbandit.errors import NotComputed
from driftbandit.lab.engine.simulate import Simulation
from driftbandit.paper.claims import claim_cells, claims, verdicts
from driftbandit.paper.claims.checks import regret_at
from driftbandit.paper.claims.evidence import (
    FAILS,
    HOLDS,
    NOT_RUN,
    UNDECIDED,
    AtLeast,
    ComputedStatement,
    MeasuredStatement,
    decide,
    every,
    jackknife,
    most,
    some,
)
from driftbandit.paper.items import choose, items
from driftbandit.paper.items.item import PaperOptions
from driftbandit.paper.reproduction import PaperRun
from harness import shortened

pytestmark = pytest.mark.filterwarnings("ignore:The formula gives gamma")
YES, NO, OPEN = (
    ComputedStatement("", "", True),
    ComputedStatement("", "", False),
    MeasuredStatement("", "", np.array([1.0, -1.0])),
)


class MadeUp:
    """A run whose regrets are given: `level` is the final regret of a policy in an item; curves are straight lines."""

    def __init__(self, level, names=(), parameters=("text", "code"), noise=0.01):
        self.options = PaperOptions("nowhere", runs=5, parameters=parameters)
        self.items = choose(names)
        self.failures = {}
        self.level, self.noise = level, noise
        self.extra_cells = claim_cells(self.options, self.items)

    def outcome(self, item, label, parameters, gap=None):
        rounds = np.linspace(0, self.items[item].environment.horizon, 101)[1:].astype(int)
        factor = 1.0 + self.noise * np.sin(np.arange(5) + len(label))  # the same for a label everywhere
        final = self.level(item, label, parameters, gap) * factor
        return Simulation(rounds, final[:, None] * rounds / rounds[-1], 1.0)

    def final(self, item, label, parameters, gap=None):
        return self.outcome(item, label, parameters, gap).regret[:, -1]

    def extra(self, name):
        if name not in self.extra_cells:
            raise NotComputed(f"not run: {name}")
        return self.outcome("fig3a", "m-ucb", "text")


def test_all_hold_or_one_fails_or_it_is_open():
    assert decide(every([YES, YES])).verdict == HOLDS
    assert decide(every([YES, NO, OPEN])).verdict == FAILS
    assert decide(every([YES, OPEN])).verdict == UNDECIDED


def test_some_and_most_count_what_can_still_come():
    assert decide(some([NO, YES, OPEN])).verdict == HOLDS
    assert decide(some([NO, OPEN])).verdict == UNDECIDED
    assert decide(some([NO, NO])).verdict == FAILS
    assert decide(most([YES, YES, NO])).verdict == HOLDS
    assert decide(most([YES, NO])).verdict == FAILS  # half is not most
    assert decide(most([YES, NO, OPEN])).verdict == UNDECIDED


@given(st.lists(st.sampled_from([YES, NO, OPEN]), min_size=1, max_size=6), st.integers(1, 6))
def test_settling_an_open_statement_never_turns_a_verdict_round(parts, needed):
    before = decide(AtLeast(needed, parts)).verdict
    for settled in (YES, NO):
        after = decide(AtLeast(needed, [settled if part is OPEN else part for part in parts])).verdict
        assert after in (before, HOLDS, FAILS) if before == UNDECIDED else after == before


def test_the_interval_decides_a_measured_statement():
    # mean 2, standard error 1/sqrt(3), t-quantile 4.303: from -0.484 to 4.484, which covers 0
    part = decide(MeasuredStatement("fig3a", "", np.array([1.0, 2.0, 3.0]))).parts[0]
    assert part.interval[1:] == (pytest.approx(-0.4841, abs=1e-4), pytest.approx(4.4841, abs=1e-4))
    assert part.verdict == UNDECIDED
    assert decide(MeasuredStatement("", "", np.array([11.0, 12.0, 13.0]))).verdict == HOLDS
    assert decide(MeasuredStatement("", "", np.array([-11.0, -12.0, -13.0]))).verdict == FAILS


def test_no_difference_at_all_is_not_smaller_and_one_run_decides_nothing():
    assert decide(MeasuredStatement("", "", np.zeros(4))).verdict == FAILS
    assert decide(MeasuredStatement("", "", np.array([5.0]))).verdict == UNDECIDED


def test_several_statements_share_the_risk():
    values = np.array([1.0, 1.2, 1.4, 0.4])
    single, shared = decide(MeasuredStatement("", "", values)), decide(every([MeasuredStatement("", "", values)] * 10))
    assert shared.parts[0].interval[1] < single.parts[0].interval[1]
    assert single.verdict == HOLDS
    assert shared.verdict == UNDECIDED


def test_wrong_verdicts_are_rarer_than_one_in_twenty():
    # 600 claims of 4 statements that are all true by nothing: each fails with probability at most 1/20.
    # More than 50 failures among 600 (mean at most 30, sd 5.3) has a probability below 0.001.
    rng = np.random.default_rng(3)
    fails = sum(
        decide(every([MeasuredStatement("", "", rng.normal(size=20)) for _ in range(4)])).verdict == FAILS
        for _ in range(600)
    )
    assert fails <= 50


def test_the_jackknife_of_a_mean_gives_the_numbers_themselves():
    values = np.array([1.0, 4.0, 7.0])
    assert jackknife(float, values) == pytest.approx(values)
    assert math.isnan(jackknife(float, np.ones(1))[0])


def test_regret_between_checkpoints_lies_on_a_straight_line():
    outcome = Simulation(np.array([10, 20]), np.array([[5.0, 6.0]]), 0.0)
    assert regret_at(outcome, [0, 5, 15, 20]).tolist() == [[0.0, 2.5, 5.5, 6.0]]


def test_every_claim_has_its_place_and_its_criterion():
    found = claims()
    assert len({claim.id for claim in found}) == len(found) >= 40
    for claim in found:
        assert claim.place.startswith(("abstract", "section "))
        assert all(text.endswith((".", "..")) for text in (claim.says, claim.criterion, claim.reason))
        assert set(claim.items) <= set(items())
    assert [claim.place.split(",")[0] for claim in found] == sorted(claim.place.split(",")[0] for claim in found)


@pytest.fixture(scope="module")
def holding_claims():
    """A run in which the paper's claims hold: SW-TS and DS-TS alike and low, EXP3.S and D-UCB straight lines."""
    levels = {"ds-ts": 1020, "sw-ts": 1000, "sw-lb-sda": 1010, "ts": 9000, "cusum-ucb": 1900, "m-ucb": 4000}

    def level(item, label, parameters, gap):
        regret = {**levels, "d-ucb": 15000, "exp3s": 20000, "ds-ts-mu": 800}[label]
        if item == "fig6b" and label == "ts":
            return 500.0
        if item == "fig7a":
            return regret * (1.0 if label == "ds-ts-mu" else 1.3)
        if item == "fig7b":
            return regret * (1.2 if label == "ds-ts" else 0.9 if label != "ds-ts-mu" else 0.5)
        if gap is not None:
            return 1000.0 + (20 if label in ("cusum-ucb", "sw-ts") else 3000) * math.sin(math.pi * gap / 0.3)
        return regret

    run = MadeUp(level, noise=0.001)
    return {verdict.claim.id: verdict for verdict in verdicts(run)}


def test_claims_about_matching_results_hold(holding_claims):
    for name in ("abrupt-almost-equal", "cusum-competitive", "many-arms-near-linear", "many-arms-both-well",
                 "gap-less-affected", "gap-rises-then-falls-ds-ts", "smooth-similar", "smooth-ds-ts-behind",
                 "smooth-ts-excellent", "prior-all-worse", "prior-all-fall-but-ds-ts", "prior-improves",
                 "abstract-outperforms", "discussion-reduction", "discussion-usually-similar"):  # fmt: skip
        assert {d.verdict for d in holding_claims[name].decisions.values()} == {HOLDS}, name


def test_claims_about_environments_only_agree_with_the_specification(holding_claims):
    found = {name: one for name, one in holding_claims.items() if not one.claim.parameters}
    verdict = {name: one.decisions["any"].verdict for name, one in found.items()}
    assert verdict == {
        "cusum-assumption": HOLDS,
        "smooth-lipschitz": HOLDS,
        "smooth-constant": FAILS,  # F does not do for beta = 0
        "smooth-beta": FAILS,  # the smallest admissible beta is above 1/2 in all settings
        "smooth-theorem": HOLDS,
        "smooth-two-switches": HOLDS,
        "smooth-close-second": verdict["smooth-close-second"],
        "prior-near-one": verdict["prior-near-one"],
        "prior-limit-abrupt": FAILS,  # exactly 0.7
        "prior-limit-smooth": FAILS,  # exactly 0.5 in the first round
        "prior-slower": HOLDS,
    }
    numbers = [part.numbers for part in holding_claims["smooth-beta"].decisions["any"].parts]
    assert numbers[:3] == [f"smallest admissible beta {beta}" for beta in ("0.761", "0.511", "0.628")]


def test_the_sampling_variance_shrinks_with_the_texts_discount_only(holding_claims):
    where = {
        name: [part.where for part in decision.parts if part.verdict == HOLDS]
        for name, decision in holding_claims["method-variance"].decisions.items()
    }
    assert where == {
        "text": ["fig3a", "fig3b", "fig3c", "fig3d", "fig6c", "fig6d"],
        "code": ["fig6c", "fig6d"],
    }


def test_a_difference_beyond_the_limit_fails_and_one_on_it_is_open():
    def level(item, label, parameters, gap):
        return {"ds-ts": 1500.0 if parameters == "text" else 1100.0}.get(label, 1000.0)

    found = next(v for v in verdicts(MadeUp(level, ["fig3"])) if v.claim.id == "abrupt-almost-equal")
    assert {name: decision.verdict for name, decision in found.decisions.items()} == {"text": FAILS, "code": UNDECIDED}
    assert "ds-ts 15" in found.decisions["text"].parts[0].numbers


def test_what_was_not_run_or_failed_is_said():
    run = MadeUp(lambda *_: 1.0, ["fig3a", "fig6b"])
    run.failures["fig6b"] = "ValueError: no"
    found = {verdict.claim.id: verdict.decisions["text"] for verdict in verdicts(run) if verdict.claim.parameters}
    assert found["cusum-competitive"] == (NOT_RUN, (), "not run: fig3b, fig3c, fig3d")
    assert found["smooth-ts-excellent"].note == "failed: fig6b"
    run.extra_cells = {}
    again = {verdict.claim.id: verdict.decisions.get("text") for verdict in verdicts(run)}
    assert again["m-ucb-exploration"].verdict == NOT_RUN


def test_the_guaranteed_exploration_of_m_ucb_is_that_of_the_specification():
    cells = claim_cells(PaperOptions("nowhere"), choose(["fig3a"]))
    (cell,) = cells.values()
    assert cell.policy.explore == pytest.approx(0.2537, abs=1e-4)
    assert claim_cells(PaperOptions("nowhere"), choose(["fig6a"])) == {}


@pytest.mark.long
def test_every_claim_is_decided_from_a_real_run(tmp_path):
    needed = {name for claim in claims() for name in claim.items}
    small = {name: shortened(item, 1000) for name, item in items().items() if name in needed}
    small = {name: replace(item, gaps=item.gaps[::7]) if item.gaps else item for name, item in small.items()}
    options = PaperOptions(tmp_path, runs=2, parameters=("code",))
    run = PaperRun(options, claim_cells(options, small), small.values())
    cells = [cell for item in small.values() for cell in item.cells(options).values()]
    run.store.play([*cells, *run.extra_cells.values()])
    for verdict in verdicts(run):
        for decision in verdict.decisions.values():
            assert decision.verdict in (HOLDS, FAILS, UNDECIDED), verdict.claim.id
            assert decision.parts
