"""What `import driftbandit` costs and loads: a live service has NumPy and nothing else."""

import os
import subprocess
import sys
from pathlib import Path

import driftbandit

SOURCE = str(Path(driftbandit.__file__).parent.parent)
HEAVY = ("numba", "llvmlite", "scipy", "matplotlib", "pyarrow", "pandas")

# Stands for a machine where only the base install was made.
WITHOUT_EXTRAS = f"""
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {HEAVY!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
"""


def python(code: str, **variables: str) -> subprocess.CompletedProcess:
    environment = {**os.environ, "PYTHONPATH": SOURCE, **variables}
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, env=environment, timeout=60
    )


def test_importing_is_quiet_and_loads_nothing_but_numpy():
    code = f"import sys, driftbandit; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = python(code)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[]\n"
    assert done.stderr == ""


def test_policies_environments_and_agents_load_nothing_but_numpy_either():
    code = f"""
import sys
from driftbandit import Bandit
from driftbandit.policies import DiscountedTS
from driftbandit.environments import Abrupt, Smooth
bandit = Bandit(3, DiscountedTS(), seed=0)
bandit.reward(bandit.decide(), 1.0)
bandit.probabilities()
Bandit.restore(bandit.snapshot())
Abrupt(horizon=100).realise(0).means(0, 100)
print([name for name in {HEAVY!r} if name in sys.modules])
"""
    done = python(code)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[]\n"


def test_the_base_install_plays_and_simulates_interpreted_and_names_missing_extras():
    code = (
        WITHOUT_EXTRAS
        + """
from driftbandit import Bandit, DiscountedTS
bandit = Bandit(["a", "b"], DiscountedTS(), seed=0)
bandit.reward(bandit.decide(), 1.0)
assert set(bandit.probabilities()) == {"a", "b"}
assert Bandit.restore(bandit.snapshot()).decide().arm == bandit.decide().arm
from driftbandit.environments import Smooth
from driftbandit.lab.engine.simulate import simulate
result = simulate(DiscountedTS(), Smooth(n_arms=3, horizon=50), runs=2, compiled=False, checkpoints=[50])
print(result.regret.shape)
try:
    simulate(DiscountedTS(), Smooth(n_arms=3, horizon=50), runs=2)
except ImportError as error:
    print(error)
"""
    )
    done = python(code)
    assert done.returncode == 0, done.stderr
    shape, message = done.stdout.splitlines()
    assert shape == "(2, 1)"
    assert ".[lab]" in message
    assert message.endswith(".")
