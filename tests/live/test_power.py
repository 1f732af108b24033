"""Power loss: whatever part of the unflushed writes is lost or torn, a SQLite journal opens, is proved, and has all
that was acknowledged. Disks and settings that break this promise are found."""

import pytest

from tests.drill import power, power_drops
from tests.drill.site import site

pytestmark = pytest.mark.skipif(bool(power.MISSING), reason=power.MISSING)


@pytest.fixture(scope="module")
def place():
    with site("sqlite") as made:
        yield made


@pytest.fixture(scope="module")
def steps(place):
    return power.recorded(place, power.sessions(40))


def test_power_loss_loses_nothing_that_was_acknowledged(place, steps) -> None:
    tried = power.try_images(place, steps, 40, seed=1)
    assert tried.intact, tried.first
    assert tried.lost == 0
    assert tried.acknowledged > 500


def test_a_disk_that_lies_about_a_flush_is_found(place, steps) -> None:
    assert power.try_images(place, steps, 20, 1, lies=lambda name: True).lost > 0


@pytest.mark.long
@pytest.mark.parametrize("name", ["journal.db", "journal.db-wal", ""])
def test_a_lie_about_one_file_or_the_folder_is_found(place, steps, name) -> None:
    tried = power.try_images(place, steps, 30, 1, lies=lambda file: file == name)
    assert tried.lost + tried.unopened > 0


@pytest.mark.long
def test_every_promise_of_durability_holds(place) -> None:
    findings = list(power.power_loss(place, 120, seed=2))
    assert all(finding.good for finding in findings), findings
    assert len(findings) == 4


@pytest.mark.long
def test_weaker_flushes_lose_what_was_acknowledged_but_damage_nothing(place) -> None:
    tried = power.try_images(place, power.recorded(place, power.sessions(40, "disk", "NORMAL")), 30, 1)
    assert tried.intact, tried.first
    assert tried.lost > 0


@pytest.mark.long
def test_dropped_rows_are_in_their_files_before_they_leave_the_journal(place) -> None:
    pytest.importorskip("pyarrow", reason="pip install '.[lab]' brings pyarrow")
    (held,) = power_drops.power_loss_while_dropping(place, 40, seed=1)
    assert held.good, held
    (lost,) = power_drops.power_loss_while_dropping(place, 20, 1, lies=lambda name: name.startswith("exports"))
    assert not lost.good
