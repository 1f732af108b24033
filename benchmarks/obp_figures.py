"""The estimators of `replay` next to those of obp, on its samples of the Open Bandit Dataset and a simulated log.

obp is not a dependency: install it in a separate environment. There, `sample` writes the columns of the sample that
the test reads and `figures` prints obp's estimates; in between, `dump` with the package writes logs and reward model:

    python benchmarks/obp_figures.py sample tests/logs/obd.csv.gz     # with obp; and obd_bts, obd_women, ...
    python benchmarks/obp_figures.py dump DUMP.npz                    # with driftbandit
    python benchmarks/obp_figures.py figures DUMP.npz                 # with obp; tests/logs/test_obp.py holds these
"""

import csv
import gzip
import io
import sys
from itertools import islice
from pathlib import Path

import numpy as np

HERE = Path(__file__).parents[1]
POLICIES = ["uniform", "fixed(3)"]


def sample(path: str) -> None:
    """The campaign and policy that the path names: men (34 items), women (46) or all (80), drawn uniformly or by bts,
    Thompson sampling with its own propensities. Hashes of user features are numbered. Of all but obd.csv.gz the first
    5,000 rows keep the files small."""
    import obp

    words = Path(path).name.split(".")[0].split("_")
    policy = "bts" if "bts" in words else "random"
    campaign = next((word for word in ("women", "all") if word in words), "men")
    source = Path(obp.__file__).parent / "dataset" / "obd" / policy / campaign / f"{campaign}.csv"
    names = [f"user_feature_{at}" for at in range(4)]
    seen: dict[str, dict[str, str]] = {name: {} for name in names}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    more = ["propensity"] if policy == "bts" else []
    most = None if words == ["obd"] else 5_000
    writer.writerow(["time", "arm", "position", "reward", *more, *names])
    with open(source) as file:
        for row in islice(csv.DictReader(file), most):
            levels = [seen[name].setdefault(row[name], f"l{len(seen[name])}") for name in names]
            given = [row["propensity_score"]] if more else []
            writer.writerow([row["timestamp"][:19], row["item_id"], row["position"], row["click"], *given, *levels])
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as out:
        out.write(text.getvalue().encode())


def logs() -> dict:
    """The logs of the test."""
    sys.path.insert(0, str(HERE / "tests" / "logs"))
    from test_obp import LOGS

    return {name: make() for name, make in LOGS.items()}


def dump(path: str) -> None:
    """Everything that obp's estimators take, with the guesses that `replay` made."""
    from driftbandit.logs import follow as module
    from driftbandit.logs import replay

    out, add = {}, module._add
    for name, log in logs().items():
        guesses: list = []
        module._add = lambda sums, block, q, *rest, held=guesses: (held.append(q.copy()), add(sums, block, q, *rest))
        replay(log, POLICIES, own=False)
        events = log.whole()
        for field, value in (
            ("reward", events.reward),
            ("arm", events.arm),
            ("propensity", events.propensity),
            ("q", np.concatenate(guesses)),
            ("four", np.array(log.arms.index("3"))),
        ):
            out[f"{name}/{field}"] = value
    np.savez(path, **out)


def figures(path: str) -> None:
    """obp's estimates."""
    from obp.ope import DoublyRobust, InverseProbabilityWeighting, SelfNormalizedInverseProbabilityWeighting

    data = np.load(path)
    for name in dict.fromkeys(field.split("/")[0] for field in data):
        reward, arm, mu, q, number = (data[f"{name}/{field}"] for field in ("reward", "arm", "propensity", "q", "four"))
        n, k = q.shape
        for policy in POLICIES:
            pi = np.full((n, k, 1), 1.0 / k)
            if policy != "uniform":
                pi[:] = 0.0
                pi[:, int(number)] = 1.0
            given = {"reward": reward, "action": arm.astype(int), "pscore": mu, "action_dist": pi}
            given["position"] = np.zeros(n, int)
            values = [
                InverseProbabilityWeighting().estimate_policy_value(**given),
                SelfNormalizedInverseProbabilityWeighting().estimate_policy_value(**given),
                DoublyRobust().estimate_policy_value(**given, estimated_rewards_by_reg_model=q[:, :, None]),
            ]
            print(f'    ("{name}", "{policy}"): ({", ".join(f"{value:.12f}" for value in values)}),')


if __name__ == "__main__":
    {"sample": sample, "dump": dump, "figures": figures}[sys.argv[1]](sys.argv[2])
