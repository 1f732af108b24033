"""The estimators of `replay` are those of obp, given the same reward model: benchmarks/obp_figures.py made the figures
with obp 0.4.1. obd*.csv.gz are its six samples of the Open Bandit Dataset (obd.txt)."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from driftbandit.logs import Log, replay

FIGURES = {  # IPS, SNIPS, DR
    ("open bandit", "uniform"): (0.004600000000, 0.004600000000, 0.004466570217),
    ("open bandit", "fixed(3)"): (0.006800000000, 0.006711409396, 0.005988286032),
    ("open bandit, bts", "uniform"): (0.004321152503, 0.004470554820, 0.005676493301),
    ("open bandit, bts", "fixed(3)"): (0.003159308112, 0.003071327780, 0.006216281775),
    ("women", "uniform"): (0.003000000000, 0.003000000000, 0.003112687879),
    ("women", "fixed(3)"): (0.000000000000, 0.000000000000, -0.002148621122),
    ("women, bts", "uniform"): (0.001624629156, 0.001579078456, -0.005793309233),
    ("women, bts", "fixed(3)"): (0.000000000000, 0.000000000000, 0.012564822484),
    ("all", "uniform"): (0.003800000000, 0.003800000000, 0.003513208293),
    ("all", "fixed(3)"): (0.016000000000, 0.015384615385, 0.025093199764),
    ("all, bts", "uniform"): (0.003088345697, 0.003302282138, 0.003334158172),
    ("all, bts", "fixed(3)"): (0.000000000000, 0.000000000000, 0.036253529645),
    ("simulated", "uniform"): (0.353503056639, 0.347013748075, 0.346222210970),
    ("simulated", "fixed(3)"): (0.321439002564, 0.323544291923, 0.323424415113),
}


def open_bandit(name, **options):
    """Items shown on a page of a shop, by campaign: drawn uniformly, or by Thompson sampling with its propensities. The
    reward is a click."""
    features = "position:levels,user_feature_0,user_feature_1,user_feature_2"
    return Log(Path(__file__).with_name(f"{name}.csv.gz"), features=features, **options)


def simulated():
    """4,000 events of four arms, whose probabilities and rewards depend on the context."""
    rng = np.random.default_rng(11)
    n, k = 4000, 4
    device, basket = rng.integers(0, 3, n), rng.normal(size=n)
    p = rng.dirichlet(np.full(k, 2.0), 3)[device] * 0.8 + 0.05
    arm = (rng.random(n)[:, None] > np.cumsum(p, axis=1)).sum(axis=1)
    mean = 0.3 + 0.2 * (device == arm) + 0.05 * np.tanh(basket) * arm
    columns = {
        "time": np.arange(n),
        "arm": arm,
        "reward": (rng.random(n) < mean).astype(float),
        "propensity": p[np.arange(n), arm],
        "device": np.array(["a", "b", "c"])[device],
        "basket": basket,
    }
    return Log(columns, features="device,basket")


LOGS = {
    "open bandit": partial(open_bandit, "obd", propensity="uniform"),
    "open bandit, bts": partial(open_bandit, "obd_bts"),
    "women": partial(open_bandit, "obd_women", propensity="uniform"),
    "women, bts": partial(open_bandit, "obd_bts_women"),
    "all": partial(open_bandit, "obd_all", propensity="uniform"),
    "all, bts": partial(open_bandit, "obd_bts_all"),
    "simulated": simulated,
}


@pytest.mark.parametrize("name", LOGS)
def test_the_estimates_are_those_of_obp(name):
    result = replay(LOGS[name](), ["uniform", "fixed(3)"], own=False)
    for line in result.lines:
        if line.label != "ts":
            found = [estimate.mean for estimate in (line.ips, line.snips, line.value)]
            assert found == pytest.approx(
                np.maximum(FIGURES[name, line.label], 0.0), abs=1e-9
            )  # clicks are not negative
