"""How long should the memory be? A sweep over gamma in environments that change more and more often.

python examples/how_fast_to_forget.py"""

from driftbandit.lab import Study, Variants, run

STUDY = Study(
    policies=["ts", Variants("ds-ts", "DS-TS", gamma=[0.7, 0.861, 0.935, 0.97, 0.986, 0.9935, 0.997])],
    environments=[Variants("abrupt(n_arms=5)", "abrupt", phases=[2, 8, 32])],
    horizon=20_000,
    runs=40,
    checkpoints=20,
    title="The more changes, the shorter the best memory",
)

if __name__ == "__main__":  # executors with processes load this file again: without this line they would start over
    result = run(STUDY, folder="how_fast_to_forget-results")
    for best in result.best():
        print(f"{best.environment}: {best.policy}, regret {best.regret} on {best.runs} runs that did not choose it")
