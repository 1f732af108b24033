"""What happens to files and programs while a bandit is open."""

import asyncio
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from driftbandit.bandit import Bandit, StoreError
from live.button import HOUR, Clock, assert_proved, opened, play


@pytest.mark.skipif(os.name == "nt", reason="an open file cannot be deleted on Windows")
@pytest.mark.parametrize("what", ["deleted", "moved", "replaced", "wal deleted"])
def test_a_file_that_loses_its_name_while_open_is_not_written_to(what, tmp_path) -> None:
    """What was written to it would be gone, though it was acknowledged."""
    path, replacement = tmp_path / "j.db", tmp_path / "replacement.db"
    bandit = opened(path)
    play(bandit, 5)
    shutil.copyfile(path, replacement)
    if what == "deleted":
        path.unlink()
    elif what == "moved":
        path.rename(tmp_path / "moved.db")
    elif what == "replaced":
        replacement.replace(path)
    else:
        Path(f"{path}-wal").unlink()
    for call in (lambda: bandit.decide("new"), lambda: bandit.reward("d0", 1.0), lambda: bandit.fix("red")):
        with pytest.raises(StoreError, match=r"moved, replaced or deleted while it was open; nothing of this call"):
            call()
    bandit.close()
    if what == "wal deleted":  # SQLite holds it open, and puts it into the file when it closes
        with opened(path) as again:
            play(again, 5, first=5)
            assert again.health()["rewards"] == 10
        assert_proved(path)


def test_a_relative_path_is_the_same_file_after_the_folder_was_changed(tmp_path, monkeypatch) -> None:
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    with opened("j.db") as bandit:
        play(bandit, 2)
        monkeypatch.chdir(tmp_path / "other")
        play(bandit, 2, first=2)
    assert_proved(tmp_path / "j.db")


def test_a_program_that_ends_without_closing_has_written_everything(tmp_path) -> None:
    path = tmp_path / "j.db"
    code = (
        "from driftbandit import Bandit, DiscountedTS\n"
        f"bandit = Bandit.open({str(path)!r}, 'button', DiscountedTS(), 3, durability='none')\n"
        "for _ in range(3000): bandit.decide()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    with Bandit.open(path, "button") as bandit:
        assert bandit.health()["decisions"] == 3000
    assert_proved(path)


def test_times_do_not_go_back_after_the_clock_was_ahead_and_nothing_is_lost(store) -> None:
    """Ten years ahead for one decision: its time stands, defaults that were due then are written, and later decisions
    are at that time too until the clock has caught up."""
    clock = Clock()
    with opened(store, clock=clock, half_life="1 h", wait="1 h") as bandit:
        play(bandit, 5)
        bandit.decide("pending")
        clock.now += 10 * 365 * 24 * HOUR
        leap = bandit.decide("leap").at
        bandit.settle()
        clock.now -= 10 * 365 * 24 * HOUR
        with pytest.warns(RuntimeWarning, match="set back"):
            assert bandit.decide("back").at == leap
        assert bandit.reward("back", 1.0) == "waiting"
        assert bandit.reward("pending", 1.0) == "late"
        assert bandit.health()["clock_set_back"].total_seconds() > 0
    assert_proved(store)
    with pytest.warns(RuntimeWarning, match="set back"), opened(store, clock=clock) as again:
        assert again.decide("again").at == leap
    assert_proved(store)


def test_a_cancelled_call_does_not_disturb_others(store) -> None:
    async def main() -> None:
        with opened(store) as bandit:
            tasks = [asyncio.create_task(bandit.adecide(f"a{n}")) for n in range(60)]
            await asyncio.sleep(0)
            for task in tasks[::2]:
                task.cancel()
            first = await asyncio.gather(*tasks, return_exceptions=True)
            second = await asyncio.gather(*(bandit.adecide(f"a{n}") for n in range(60)))
            assert all(isinstance(one, asyncio.CancelledError) for one in first[::2])
            assert first[1::2] == second[1::2]
            paid = [asyncio.create_task(bandit.areward(f"a{n}", 1.0)) for n in range(60)]
            await asyncio.sleep(0)
            for task in paid[::2]:
                task.cancel()
            await asyncio.gather(*paid, return_exceptions=True)
            assert set(await bandit.areward_many([(f"a{n}", 1.0) for n in range(60)])) == {"again"}
            bandit.refresh()
            assert bandit.health()["rewards"] == 60
            until = time.monotonic() + 5.0
            while bandit.health()["queued"] and time.monotonic() < until:  # a snapshot may be on its way
                await asyncio.sleep(0.01)
            assert bandit.health()["queued"] == 0

    asyncio.run(main())
    assert_proved(store)


def test_one_reward_a_thousand_times_in_one_call_counts_once(store) -> None:
    with opened(store) as bandit:
        bandit.decide("same")
        bandit.decide("other")
        assert bandit.reward_many([("same", 1.0)] * 1000) == ["learned"] + ["again"] * 999
        out = bandit.reward_many([("other", float(n % 2)) for n in range(1000)])
        assert out[0] == "learned"
        assert out[2::2] == ["again"] * 499
        assert all("already" in str(answer) for answer in out[1::2])
        bandit.refresh()
        assert bandit._fold.player.learned == 2
    assert_proved(store)
