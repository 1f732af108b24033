"""`driftbandit init`: a commented study to begin with."""

import argparse
from pathlib import Path
from typing import Any

from driftbandit.commands._shared import add_example

_EXAMPLES = """\
  driftbandit init
      writes study.toml; then: driftbandit compare study.toml

  driftbandit init mine.py
      the same in Python
"""

_TOML = """\
# A study: every policy plays in every world, `runs` times. Play it with
#     driftbandit compare {name}
# All policies meet the same luck in run r, so differences come from the policies.

title = "How fast should it forget?"
horizon = 10_000      # rounds, for every world; leave it out to use the worlds' own
runs = 20             # more runs, narrower intervals; runs already played are kept
seed = 0              # the same seed gives the same numbers, on every machine
reference = "ts"      # others are compared with this policy, run by run
drift = false         # true: measure recovery after changes, detection, ... (slower)

# Policies by their text; `driftbandit list policies` shows them all. "ds-ts.tuned" takes what it needs from the world.
policies = [
    "ts",
    "ds-ts.tuned",
    "sw-ts.tuned",
    # "my_policy.py:MyPolicy(gamma=0.9)",    # a class in a file of your own; the path begins beside this file
]

# Worlds by their text; `driftbandit list environments` shows them all.
environments = ["abrupt(n_arms=5, phases=4)"]

# A policy with lists: each value is played. Several lists make a grid; with `together = true` they are walked through
# side by side.
[[policy]]
text = "ds-ts"
label = "DS-TS"
gamma = [0.9, 0.95, 0.98, 0.99, 0.995]
# gamma = {{from = 0.9, to = 0.999, count = 5, scale = "forgetting"}}   # evenly spaced in how much is forgotten
# tau_max = [0.1, 0.2]

# Worlds can have lists too:
# [[environment]]
# text = "abrupt"
# n_arms = [5, 10, 20]
# phases = 10
"""

_PYTHON = '''\
"""A study: every policy plays in every world, `runs` times. Play it with

    driftbandit compare {name}

or from Python, as shown at the end. All policies meet the same luck in run r, so differences come from the policies."""

from driftbandit.lab.experiments.study import Study, Variants

STUDY = Study(
    # Texts, as `driftbandit list policies` shows them, or policies themselves; each value in a list is played.
    policies=["ts", "ds-ts.tuned", "sw-ts.tuned", Variants("ds-ts", "DS-TS", gamma=[0.9, 0.95, 0.98, 0.99, 0.995])],
    environments=["abrupt(n_arms=5, phases=4)"],
    horizon=10_000,
    runs=20,
    seed=0,
    reference="ts",
    title="How fast should it forget?",
)

if __name__ == "__main__":
    from driftbandit.lab import compare

    done = compare(STUDY, "study-results")
    for line in done.summary():
        print(line.policy, line.regret)
'''


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    parser = add_example(subparsers, "init", "write a commented study to begin with", _EXAMPLES)
    parser.add_argument(
        "file", nargs="?", default="study.toml", metavar="FILE", help="a name in .toml or .py (default: study.toml)"
    )


def run(args: argparse.Namespace) -> None:
    """Write the file, never over another."""
    path = Path(args.file)
    if path.suffix not in (".toml", ".py"):
        raise ValueError(f"A study is a file that ends in .toml or .py; got {str(path)!r}.")
    text = (_TOML if path.suffix == ".toml" else _PYTHON).format(name=path.name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "x", encoding="utf-8") as out:
            out.write(text)
    except FileExistsError:
        raise ValueError(f"{str(path)!r} is there already; give another name.") from None
    print(f"wrote {path}; play it with: driftbandit compare {path}")
