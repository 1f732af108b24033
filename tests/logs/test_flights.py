"""Real data: the flights of the example."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from driftbandit.logs import Log, drift, replay
from driftbandit.logs.estimates import months

FOLDER = Path(__file__).parents[2] / "examples" / "flights"
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not FOLDER.exists(), reason="the examples are not part of the source archive"),
]


@pytest.fixture(scope="module")
def flights():
    spec = importlib.util.spec_from_file_location("flights", FOLDER / "flights.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def airports(flights):
    return flights.flights_log(flights.QUESTIONS["airports"])


def test_the_counts_are_the_flights_of_the_year(airports):
    summary = airports.summary
    assert airports.n == 336_776
    assert dict(zip(airports.arms, summary.pulls.tolist(), strict=True)) == {
        "EWR": 120_835,
        "JFK": 111_279,
        "LGA": 104_662,
    }
    assert summary.dates
    assert summary.delay == 3600.0
    events = airports.whole()
    by_month = np.bincount(months(events.time) - 516, events.reward) / np.bincount(months(events.time) - 516)
    assert 0.45 < by_month[:12].min() < by_month[:12].max() < 0.75
    assert summary.warnings == []


def test_the_best_airport_moves_from_hour_to_hour(airports):
    found = drift(airports)
    assert [scale.name for scale in found.scales] == ["hour", "6 hours", "day", "week", "month"]
    assert found.scales[0].levels_move
    assert found.verdict == "ranking"


def test_a_month_of_carriers_is_replayed(flights):
    whole = flights.flights_log(flights.QUESTIONS["carriers"])
    some = whole.whole().take(slice(0, 6000))
    offered = [[str(a) for a in np.flatnonzero(whole.menus[menu])] for menu in some.menu]
    columns = {
        "time": some.time.astype("datetime64[s]"),
        "arm": some.arm,
        "reward": some.reward,
        "propensity": some.propensity,
    }
    log = Log({**columns, "available": offered})
    result = replay(log, ["dts @ 1 d"], own=False)
    assert all(0.5 < line.value.mean < 0.9 for line in result.lines)
    assert result.logger.mean == pytest.approx(some.reward.mean())
