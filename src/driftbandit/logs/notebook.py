"""What a notebook shows of answers about a log: the table and the sentence that the command prints."""

import html
from typing import Any

from driftbandit.lab.support.html import table
from driftbandit.logs.bootstrap import Estimate


def drift_html(found: Any) -> str:
    """Gains by time scale, and the verdict."""
    head = ["scale", "periods", "oracle by halves", "last period's best", "levels move by", "arms move by"]
    rows = [
        [scale.name, str(scale.periods), _estimate(scale.oracle), _estimate(scale.last), f"{scale.level:.4f}",
         f"{scale.ranking:.4f}"]
        for scale in found.scales
    ]  # fmt: skip
    return table("gain over the best fixed arm, 95 % intervals", head, rows) + _said(
        f"{found.sentence} Use {found.family}.", found.warnings
    )


def replay_html(result: Any) -> str:
    """What each policy would have earned."""
    head = ["policy", "follower", "over ts", "over the best arm", "over the logger", "own history", "effective n"]
    rows = [
        [line.label, _estimate(line.value), _estimate(line.over_ts.here), _estimate(line.over_best.here),
         _estimate(line.over_logger.here), "-" if line.own is None else _estimate(line.own), f"{line.effective:.0f}"]
        for line in result.lines
    ]  # fmt: skip
    caption = f"value per event, {result.events:,} events; 95 % intervals from {result.blocks} blocks"
    return table(caption, head, rows) + _said("", result.warnings)


def tuned_html(result: Any) -> str:
    """The ten best candidates of the part that chooses, the sentence, and the lines to paste."""
    best = sorted(result.trials, key=lambda trial: -trial.first)[:10]
    rows = [[trial.label, f"{trial.first:.4f}", f"{trial.last:.4f}", _estimate(trial.over_never)] for trial in best]
    head = ["policy", "value, first part", "value, last part", f"over {result.never}, last part"]
    shown = table(f"the best {len(best)} of {len(result.trials)} candidates", head, rows)
    return shown + _said(result.sentence, result.warnings) + f"<pre>{html.escape(result.paste)}</pre>"


def _estimate(estimate: Estimate) -> str:
    return f"{estimate.mean:+.4f} [{estimate.low:+.4f}, {estimate.high:+.4f}]"


def _said(sentence: str, warnings: list[str]) -> str:
    return "".join(f"<p>{html.escape(line)}</p>" for line in [sentence, *(f"beware: {w}" for w in warnings)] if line)
