"""Which policies suit a log, by what `drift` found; `tune` then judges them on the log itself."""

SUITED = {
    "ranking": (
        "a policy that forgets: drift-ts, which has nothing to tune, or ds-ts or dts with a half-life; `driftbandit "
        "tune` says which of them earns most, and how fast to forget"
    ),
    "fleeting": "ts or kl-ucb, which never forget, or a model of what moves the arms (hour of the day, weather)",
    "unclear": (
        "ts or kl-ucb, which never forget, unless `driftbandit tune` finds that drift-ts or a half-life earns more; a "
        "log that is longer, or has more evenly drawn arms, says more"
    ),
    "levels": (
        "ts or kl-ucb, which never forget, or drift-ts, which knows tides when it sees them; not change detectors, "
        "which take common ups and downs for more"
    ),
    "nothing": "ts or kl-ucb, which never forget",
    "cannot tell": "drift-ts, which has nothing to tune and finds out by itself, until a longer log says more",
}
