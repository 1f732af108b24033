"""How long should the memory be? A sweep over gamma in worlds that change more and more often.

    python examples/how_fast_to_forget.py

or `driftbandit run examples/how_fast_to_forget.py`, which also draws it."""

from driftbandit.lab import Study, Variants, run
from driftbandit.lab.experiments import sweep

STUDY = Study(
    policies=["ts", Variants("ds-ts", "DS-TS", gamma={"from": 0.7, "to": 0.997, "count": 7, "scale": "forgetting"})],
    environments=[Variants("abrupt(n_arms=5)", "abrupt", phases=[2, 8, 32])],
    horizon=20_000,
    runs=40,
    checkpoints=20,
    title="The more changes, the shorter the best memory",
)

if __name__ == "__main__":  # executors with processes load this file again: without this line they would start over
    result = run(STUDY, folder="how_fast_to_forget-results")
    for best in sweep.best_cells(result):
        print(f"{best.cell.world}: {best.cell.label}, regret {best.regret} on {best.runs} runs that did not choose it")
