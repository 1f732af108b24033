"""Compiled code on disk: damaged, foreign or mixed-up files are compiled again, and never run."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from driftbandit.lab import files

PLAY = """
import sys
from driftbandit.lab.engine import code_cache
from driftbandit.lab.engine.simulate import simulate
from driftbandit.environments import Abrupt
from driftbandit.policies.baseline import EpsilonGreedy
total = simulate(EpsilonGreedy(), Abrupt(n_arms=3, horizon=300, phases=2), runs=1, progress=False).regret.sum()
print(total, sum(sum(made.stats.cache_misses.values()) for made in code_cache._dispatchers.values()))
"""


def played(folder: Path, play: str = PLAY) -> tuple[str, bool]:
    """What a separate process prints, and whether it compiled."""
    environment = {**os.environ, "DRIFTBANDIT_CACHE": str(folder)}
    done = subprocess.run([sys.executable, "-c", play], capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr
    total, compiled = done.stdout.split()
    return total, compiled != "0"


@pytest.mark.long
def test_damaged_code_is_compiled_again_and_whole_code_is_not(tmp_path: Path) -> None:
    right, compiled = played(tmp_path)
    assert compiled
    assert played(tmp_path) == (right, False)
    (path,) = tmp_path.rglob("*.kernel")
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 4
    path.write_bytes(raw)
    assert played(tmp_path) == (right, True)


@pytest.mark.long
def test_code_that_compares_texts_is_read_again(tmp_path: Path) -> None:
    texts = PLAY.replace("policies.baseline import EpsilonGreedy", "policies import DiscountedLinUCB as EpsilonGreedy")
    right, compiled = played(tmp_path, texts)
    assert compiled
    assert played(tmp_path, texts) == (right, False)


def test_no_damage_of_a_file_is_ever_read(tmp_path: Path) -> None:
    """200 random damages: bits flipped, bytes lost, the file of another signature or function."""
    import numba

    from driftbandit.lab.engine.code_cache import KernelCache

    def made(name: str) -> "numba.core.registry.CPUDispatcher":
        out = numba.njit(lambda x: x + 1)
        out._cache = KernelCache(tmp_path / "kernels", name)
        return out

    def load(name: str, kind: "numba.types.Type") -> bool:
        dispatcher = made(name)
        return dispatcher._cache.load_overload((kind,), dispatcher.targetctx) is not None

    first = made("first")
    first.compile((numba.int64,))
    (path,) = (tmp_path / "kernels").iterdir()
    first.compile((numba.float64,))
    made("second").compile((numba.int64,))
    whole = path.read_bytes()
    others = [other.read_bytes() for other in (tmp_path / "kernels").iterdir() if other != path]
    assert len(others) == 2
    assert load("first", numba.int64)
    rng = np.random.default_rng(1)
    for _ in range(200):
        raw = bytearray(whole)
        kind = rng.integers(3)
        if kind == 0:
            raw[rng.integers(len(raw))] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            del raw[rng.integers(len(raw)) :]
        else:
            raw = bytearray(others[int(rng.integers(2))])
        path.write_bytes(raw)
        assert not load("first", numba.int64)
    path.write_bytes(whole)
    assert load("first", numba.int64)


def test_a_disk_that_cannot_be_written_does_not_lose_results(tmp_path: Path) -> None:
    import numba

    from driftbandit.lab.engine.code_cache import KernelCache

    (tmp_path / "file").write_text("in the way")
    made = numba.njit(lambda x: x + 1)
    made._cache = KernelCache(tmp_path / "file" / "there", "one")
    assert made(2) == 3


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="permissions are POSIX's")
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_spare_folder_that_others_can_write_to_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    monkeypatch.delenv("DRIFTBANDIT_CACHE", raising=False)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))  # so that the usual place cannot be made
    monkeypatch.setattr(files.tempfile, "tempdir", str(tmp_path))
    files._process_folder.cache_clear()
    spare = tmp_path / f"driftbandit-{os.getuid()}"
    assert files.cache_root() == spare
    assert spare.stat().st_mode & 0o777 == 0o700
    spare.chmod(mode)
    assert files.cache_root() != spare
    assert files.cache_root().stat().st_mode & 0o077 == 0
    spare.rmdir()
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    spare.symlink_to(tmp_path / "elsewhere")
    assert files.cache_root() != spare
    files._process_folder.cache_clear()
