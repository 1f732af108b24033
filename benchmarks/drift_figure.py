"""What DriftTS believes while the environment is stationary, jumps, moves in one arm, and drifts
(docs/explanation/drift-ts.md).

    python benchmarks/drift_figure.py --out docs/drift-ts       (writes belief.svg and .png, wide and narrow, and .csv)
    python benchmarks/drift_figure.py --rest                    (prints the shares in six stationary environments)

One run with a fixed seed. Above, the true means of the arms; below, how the weight of all hypotheses is shared."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from driftbandit.core.draws import Stream
from driftbandit.lab.files import save_rows
from driftbandit.lab.plots import COLOURS, add_legend, choose_style, is_narrow, save_chart, thousands
from driftbandit.player import Player
from driftbandit.policies.drift import DriftTS
from driftbandit.policies.drift.belief import classify_hypotheses
from driftbandit.policies.drift.hypotheses import HYPOTHESES

JUMP, ONE_JUMPS, DRIFT, END = 1_000, 1_800, 2_400, 4_400  # when all means jump, when one does, when all begin to drift
STEP = 4  # rounds between two points of the figure
SHARES = {  # bottom to top, with the colour and the hatching of each
    "stands still, or as good as": (COLOURS[7], ""),
    "all arms jumped": (COLOURS[2], ""),
    "some arms jumped": (COLOURS[6], "//"),
    "every arm drifts": (COLOURS[5], ""),
    "all rise and fall together": (COLOURS[3], ".."),
}


def true_means() -> np.ndarray:
    """Rounds × 3 arms: still, new means for all, a new mean for one, then sines that take turns at the top."""
    t = np.arange(END)[:, None]
    turns = 2.0 * np.pi * (t - DRIFT) / 1_600.0
    drifting = 0.5 + 0.35 * np.sin(turns + 2.0 * np.pi * np.array([0.0, 1.0, 2.0]) / 3.0)
    steps = np.where(t < JUMP, [0.8, 0.5, 0.3], np.where(t < ONE_JUMPS, [0.35, 0.2, 0.65], [0.35, 0.2, 0.1]))
    return np.where(t < DRIFT, steps, drifting)


def shares(state: Any) -> list[float]:
    """The weight of each kind of hypothesis, as `explain` tells them apart."""
    weights = np.array(state.known.shared[:HYPOTHESES])
    return list(np.bincount(classify_hypotheses(state), weights / weights.sum(), len(SHARES)))


def play(means: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The rounds looked at, and the shares after each."""
    n_arms = means.shape[1]
    player, draws = Player(DriftTS(), n_arms, seed), Stream(seed)
    rewards_rng = np.random.default_rng(seed).random(len(means))
    rows = []
    for t in range(len(means)):
        arm = player.choose(draws.at(t))
        player.learn(arm, float(rewards_rng[t] < means[t, arm]))
        if (t + 1) % STEP == 0:
            rows.append([t + 1, *shares(player.state)])
    table = np.array(rows)
    return table[:, 0], table[:, 1:]


def at_rest() -> None:
    """Print the shares after 300, 1,000 and 3,000 rounds of six environments with three arms in which nothing
    changes."""
    for seed in range(6):
        means = np.random.default_rng([seed, 1]).random(3)
        rounds, found = play(np.tile(means, (3_000, 1)), seed)
        for t in (300, 1_000, 3_000):
            shares_text = ", ".join(
                f"{name} {share:.0%}" for name, share in zip(SHARES, found[t // STEP - 1], strict=True)
            )
            print(f"seed {seed}, round {int(rounds[t // STEP - 1]):5,}: {shares_text}")


def draw(figure: Any, means: np.ndarray, rounds: np.ndarray, found: np.ndarray) -> None:
    """Means above, shares below, on one axis of rounds."""
    from matplotlib.ticker import MaxNLocator

    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(2, 3))
    for arm in range(means.shape[1]):
        style = {**choose_style(arm), "marker": None}
        upper.plot(np.arange(END), means[:, arm], **style, label=f"mean of arm {arm + 1}")
    upper.set_ylim(0.0, 1.0)
    upper.set_ylabel("true mean")
    colours, hatches = zip(*SHARES.values(), strict=True)
    bands = lower.stackplot(rounds, found.T, colors=colours, labels=SHARES, linewidth=0.4, edgecolor="white")
    for band, hatch in zip(bands, hatches, strict=True):
        band.set_hatch(hatch)
    lower.set_ylim(0.0, 1.0)
    lower.set_xlim(0, END)
    lower.set_ylabel("share of the weight")
    lower.set_xlabel("round")
    lower.xaxis.set_major_locator(MaxNLocator(5))
    lower.xaxis.set_major_formatter(thousands)
    for axes in (upper, lower):
        axes.grid(False)
        for change in (JUMP, ONE_JUMPS, DRIFT):
            axes.axvline(change, color="black", linewidth=0.8, linestyle=(0, (2, 2)))
    one_line = ("all jump", "arm 3 jumps", "all jump, then drift")
    words = ("all\njump", "arm 3\njumps", "all jump,\nthen drift") if is_narrow(figure) else one_line
    for change, word in zip((JUMP, ONE_JUMPS, DRIFT), words, strict=True):
        upper.annotate(word, (change, 1.0), (3, 2), textcoords="offset points", fontsize=8.5, annotation_clip=False)
    handles, names = upper.get_legend_handles_labels()
    add_legend(figure, [*handles, *reversed(bands)], [*names, *reversed(SHARES)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--out", type=Path)
    what.add_argument("--rest", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    if args.rest:
        at_rest()
        return
    means = true_means()
    rounds, found = play(means, args.seed)
    args.out.mkdir(parents=True, exist_ok=True)
    rows = [[int(t), *row] for t, row in zip(rounds, found.round(5).tolist(), strict=True)]
    save_rows(("round", *SHARES), rows, args.out / "belief.csv")
    for name, size in (("belief", (10.2, 5.0)), ("belief-narrow", (4.4, 6.0))):
        for ending in (".svg", ".png"):
            path = save_chart(lambda figure: draw(figure, means, rounds, found), args.out / f"{name}{ending}", size)
        Image.open(path).convert("RGB").quantize(128).save(path, optimize=True)  # a third of the size
    for t in (JUMP, JUMP + 40, ONE_JUMPS, ONE_JUMPS + 100, DRIFT, DRIFT + 400, END):
        shares_text = ", ".join(f"{name} {share:.0%}" for name, share in zip(SHARES, found[t // STEP - 1], strict=True))
        print(f"round {t:5d}: {shares_text}")


if __name__ == "__main__":
    main()
