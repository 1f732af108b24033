"""The page with sliders: DS-TS around a change for many values of gamma and tau_max, played here, drawn by a script.

The script contains neither the policy nor the environment: means, spreads, plays and rewards of every run are in the
page, in thousandths."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from driftbandit.lab.files import replace_file
from driftbandit.policies import DiscountedTS
from tools.site import change
from tools.site.made import HERE

GAMMAS = (0.9, 0.95, 0.97, 0.98, 0.99, 0.995, 0.999)
TAUS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
QUICK_GAMMAS, QUICK_TAUS = (0.95, 0.98), (0.2,)
SCALE = 1000
NAME = "forgetting.html"


def data(quick: bool = False) -> dict[str, Any]:
    """All runs, as plain numbers."""
    gammas, taus = (QUICK_GAMMAS, QUICK_TAUS) if quick else (GAMMAS, TAUS)
    environment = change.ENVIRONMENT.realise(0)
    return {
        "gammas": gammas,
        "taus": taus,
        "start": [gammas.index(change.SHOWN.gamma), taus.index(change.SHOWN.tau_max)],
        "names": list(change.NAMES),
        "colours": list(change.COLOURS),
        "horizon": change.HORIZON,
        "change": change.CHANGE,
        "scale": SCALE,
        "true": [_whole(row) for row in environment.means(0, change.HORIZON)[[0, -1]].T],
        "runs": [[run(DiscountedTS(gamma, tau)) for tau in taus] for gamma in gammas],
    }


def run(policy: Any) -> dict[str, Any]:
    """One run: for each arm its mean and spread before every round and after the last; who was played; what it paid."""
    found = change.path(policy)
    return {
        "mean": [_whole(column) for column in found.mean.T],
        "sd": [_whole(column) for column in found.sd.T],
        "arms": "".join(str(arm) for arm in found.arms),
        "rewards": "".join(str(int(reward)) for reward in found.rewards),
    }


def _whole(values: np.ndarray) -> list[int]:
    return [int(value) for value in np.round(np.asarray(values) * SCALE)]


def fragment(quick: bool = False) -> str:
    """What stands on a page of the site: markup, style, numbers and the script."""
    numbers = json.dumps(data(quick), separators=(",", ":"))
    style, markup, script = (
        (HERE / f"sliders.{ending}").read_text(encoding="utf-8") for ending in ("css", "html", "js")
    )
    return (
        f"<style>\n{style}</style>\n{markup}"
        f'<script type="application/json" id="forgetting-data">{numbers}</script>\n<script>\n{script}</script>\n'
    )


def save(into: Path, quick: bool = False) -> list[str]:
    """Write the complete page."""
    whole = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>What DS-TS believes</title>\n'
        "<style>body{margin:1rem auto;max-width:52rem;padding:0 1rem;font-family:system-ui,sans-serif;"
        "color-scheme:light dark;background:Canvas;color:CanvasText}</style></head><body>\n"
        f"<h1>What DS-TS believes</h1>\n{fragment(quick)}</body></html>\n"
    )
    with replace_file(into / NAME) as draft:
        draft.write_text(whole, encoding="utf-8")
    return [NAME]
