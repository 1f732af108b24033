"""Disagreements: each pair differs in one point; the lag is one round; the difference is the paired one."""

import numpy as np
import pytest

from driftbandit.core.draws import Stream
from driftbandit.environments import Abrupt, Constant, PhaseTable, Smooth
from driftbandit.environments.abrupt import Lagged
from driftbandit.errors import NotComputed
from driftbandit.lab.engine.simulate import Simulation, simulate
from driftbandit.paper.disagreements import EFFECTS, effect_cells, measure_effects
from driftbandit.paper.items import choose, items
from driftbandit.paper.items.item import PaperOptions
from driftbandit.policies.baseline import FixedArm
from driftbandit.policies.discounted_ts import DiscountedTS

OPTIONS = PaperOptions("nowhere", runs=4)


class MadeUp:
    """A run whose extra cells end with given regrets."""

    def __init__(self, final, names=()):
        self.options, self.items, self.failures = OPTIONS, choose(names), {}
        self.extra_cells = effect_cells(OPTIONS, self.items)
        self.final_of = final

    def extra(self, name):
        return Simulation(np.array([10]), self.final_of(name)[:, None], 1.0)


def test_a_lagged_reward_is_that_of_the_round_before():
    base = PhaseTable(means=((0.2, 0.8), (0.9, 0.1)), starts=(0, 5), horizon=10, law=Constant())
    environment, late = base.realise(0), Lagged(base).realise(0)
    reward_rng = Stream(1)
    assert [late.pull(t, 0, reward_rng.at(t)) for t in (0, 4, 5, 6)] == [0.2, 0.2, 0.2, 0.9]
    assert [late.mean(t, 0) for t in (4, 5)] == [environment.mean(t, 0) for t in (4, 5)]
    assert late.best(5) == 0.9
    assert late.best_arm(5) == 0
    assert (late.means(4, 6) == environment.means(4, 6)).all()
    assert late.realise(3) is late


def test_the_lag_changes_no_regret_of_a_policy_that_does_not_learn():
    environment = Smooth(n_arms=3, horizon=300)
    plain, late = (
        simulate(FixedArm(1), place, 1, compiled=False).regret for place in (environment, Lagged(environment))
    )
    assert (plain == late).all()


@pytest.mark.parametrize("environment", [Abrupt(n_arms=3, horizon=800, phases=4), Smooth(n_arms=3, horizon=800)])
def test_a_lagged_environment_plays_the_same_compiled_and_interpreted(environment):
    runs = [
        simulate(DiscountedTS(gamma=0.9), Lagged(environment), 2, trajectories=True, compiled=how)
        for how in (True, False)
    ]
    assert (runs[0].arms == runs[1].arms).all()
    assert (runs[0].rewards == runs[1].rewards).all()


def test_a_lagged_environment_needs_a_environment():
    with pytest.raises(ValueError, match=r"Lagged needs an environment such as Abrupt\(\); got 3"):
        Lagged(3)


def test_each_pair_differs_in_the_disputed_point_alone():
    for effect in EFFECTS:
        for name in effect.items:
            for first, second in effect.pairs(items()[name], items()[name].environment):
                assert type(first.policy) is type(second.policy)
                differing = [a != b for a, b in zip(first.policy, second.policy, strict=True)]
                assert sum(differing) + (first.environment != second.environment) == 1, (effect.id, name)
                assert first.name != second.name


def test_the_named_disagreements_have_the_specifications_values():
    cells = effect_cells(OPTIONS, items())
    gammas = [cells[f"effect/gamma/fig3a/0/{side}"].policy.gamma for side in ("first", "second")]
    assert gammas == [pytest.approx(0.99), pytest.approx(0.9051317, abs=1e-7)]
    assert cells["effect/forgetting/fig3a/1/second"].policy.forget_below == 1e-8
    rates = [cells[f"effect/exp3s/fig3a/{n}/second"].policy.explore for n in (0, 1)]
    assert rates == [1.0, pytest.approx(0.0059293, abs=1e-7)]
    assert isinstance(cells["effect/lag/fig3a/0/second"].environment, Lagged)
    environments = [cells[f"effect/environments/fig3a/0/{side}"].environment.instance for side in ("first", "second")]
    assert environments == ["authors", "fresh"]


def test_only_the_items_that_are_run_ask_for_more():
    assert effect_cells(OPTIONS, choose(["fig5"])) == {}
    assert {name.split("/")[2] for name in effect_cells(OPTIONS, choose(["fig3a"]))} == {"fig3a"}


def test_the_difference_is_taken_within_runs():
    base = np.array([100.0, 200.0, 300.0, 400.0])

    def final(name):
        return base + 10.0 * name.endswith("second") + np.array([0.0, 0.0, 0.0, 0.4]) * name.endswith("second")

    found = {m.effect.id: m for m in measure_effects(MadeUp(final, ["fig3a"]))}
    row = found["gamma"].rows[0]
    assert row.difference[0] == pytest.approx(10.1)
    assert row.difference[2] - row.difference[1] < 1.0  # the runs differ by hundreds, the differences by tenths
    assert found["smooth-gamma"].missing == "not run: fig6a, fig6b, fig6c"


def test_an_effect_whose_simulations_failed_is_marked():
    def final(name):
        raise NotComputed("The comparisons have no results: no memory")

    assert all(m.missing for m in measure_effects(MadeUp(final, ["fig3a"])))
