"""The package as others get it: one version everywhere, and a wheel that works with NumPy only."""

import re
import subprocess
import sys
import venv
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

import driftbandit

ROOT = Path(__file__).parents[1]


def test_the_version_stands_in_one_place():
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.M)
    assert cited is not None
    assert cited[1] == driftbandit.__version__
    assert metadata.version("driftbandit") == driftbandit.__version__
    assert (
        f"{driftbandit.__version__}" in (ROOT / "CHANGELOG.md").read_text()
        or "## Unreleased" in (ROOT / "CHANGELOG.md").read_text()
    )


@pytest.mark.long
def test_a_wheel_in_an_environment_with_only_numpy_runs_the_readmes_example(tmp_path):
    built = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    place = tmp_path / "empty"
    venv.create(place, with_pip=False)
    python = place / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "-qq", "--no-deps", "--no-index"]
    done = subprocess.run([*install, str(wheel)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    # NumPy comes from here, by a folder that holds nothing else, so that no network is needed.
    packages = tmp_path / "packages"
    packages.mkdir()
    for part in Path(np.__file__).parents[1].glob("numpy*"):
        (packages / part.name).symlink_to(part)
    example = re.search(r"```python\n(.+?)```", (ROOT / "README.md").read_text(), re.S)
    assert example is not None
    done = subprocess.run(
        [str(python), "-c", example[1]],
        env={"PYTHONPATH": str(packages), "PATH": "", "SYSTEMROOT": "C:\\Windows"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
