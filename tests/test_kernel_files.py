"""Compiled code on disk: damaged, foreign or mixed-up files are compiled anew, and never run."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from driftbandit.lab.engine import kernel_files
from driftbandit.lab.engine.kernel_files import CheckedFiles, cache_root

PLAY = (
    "from driftbandit.lab.engine.simulate import simulate\n"
    "from driftbandit.environments import Abrupt\n"
    "from driftbandit.policies.baseline import EpsilonGreedy\n"
    "print(simulate(EpsilonGreedy(), Abrupt(n_arms=3, horizon=300, phases=2), runs=1, progress=False).regret.sum())\n"
)


def played(folder: Path) -> tuple[str, bool]:
    """What a process of its own prints, and whether it compiled."""
    environment = {**os.environ, "DRIFTBANDIT_CACHE": str(folder), "NUMBA_DEBUG_CACHE": "1"}
    done = subprocess.run([sys.executable, "-c", PLAY], capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1], "data saved to" in done.stdout


def test_a_flipped_bit_or_a_cut_file_is_compiled_anew(tmp_path: Path) -> None:
    right, compiled = played(tmp_path)
    assert compiled
    assert played(tmp_path) == (right, False)
    files = sorted(path for path in tmp_path.rglob("*.nb?"))
    assert {path.suffix for path in files} == {".nbi", ".nbc"}
    for path, damage in zip(files, ("cut", "flip"), strict=True):  # every kind on every file: the next test
        raw = bytearray(path.read_bytes())
        raw[len(raw) // 2] ^= 4
        path.write_bytes(raw if damage == "flip" else raw[: len(raw) // 3])
        assert played(tmp_path) == (right, True), path.name
    assert played(tmp_path) == (right, False)


def test_no_damage_of_a_file_is_ever_read(tmp_path: Path) -> None:
    """500 random damages of index and data: bits flipped, bytes lost, pieces of the other file."""
    reward_rng = np.random.default_rng(1)
    files = CheckedFiles(str(tmp_path), "one", "stamp")
    files.save("key", ["machine", "code"])
    paths = sorted(tmp_path.iterdir())
    whole = [path.read_bytes() for path in paths]
    for _ in range(500):
        at = int(reward_rng.integers(len(paths)))
        raw = bytearray(whole[at])
        kind = reward_rng.integers(3)
        if kind == 0:
            raw[reward_rng.integers(len(raw))] ^= 1 << int(reward_rng.integers(8))
        elif kind == 1:
            del raw[reward_rng.integers(len(raw)) :]
        else:
            raw = bytearray(whole[1 - at])
        paths[at].write_bytes(raw)
        assert files.load("key") is None
        paths[at].write_bytes(whole[at])
    assert files.load("key") == ["machine", "code"]


def test_two_processes_that_take_the_same_name_do_not_get_each_others_code(tmp_path: Path) -> None:
    one, other = (CheckedFiles(str(tmp_path), "same", "stamp") for _ in range(2))
    one.save("a", "code of a")
    index = Path(one._index_path).read_bytes()
    Path(one._index_path).unlink()
    other.save("b", "code of b")  # saw no index, so it took the first name too
    Path(one._index_path).write_bytes(index)
    assert one.load("a") is None


def test_a_full_disk_costs_no_result(tmp_path: Path) -> None:
    files = CheckedFiles(str(tmp_path / "nowhere"), "one", "stamp")
    files.save("key", "code")
    assert files.load("key") is None


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="permissions are POSIX's")
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_spare_folder_that_others_can_write_to_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    monkeypatch.delenv("DRIFTBANDIT_CACHE", raising=False)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))  # so that the usual place cannot be made
    monkeypatch.setattr(kernel_files.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(kernel_files.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(kernel_files, "_made", [])
    spare = tmp_path / f"driftbandit-{os.getuid()}"
    assert cache_root() == spare
    assert spare.stat().st_mode & 0o777 == 0o700
    spare.chmod(mode)
    assert cache_root() != spare
    assert cache_root().stat().st_mode & 0o077 == 0
    spare.rmdir()
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    spare.symlink_to(tmp_path / "elsewhere")
    assert cache_root() != spare
