"""Every environment with a name of its own: those of the suites, with their roles, and those of other papers.

`driftbandit run`, `simulate` and `driftbandit field` take these names; `NAMED` has them all."""

import math
from typing import Any, NamedTuple

from driftbandit.environments.abrupt import Abrupt, AbruptFinite, AbruptGap, AbruptLimited
from driftbandit.environments.further import Bursts, CommonShift, Local, Mixed, Rare, Rising, Seasonal, Trap
from driftbandit.environments.linear import Linear
from driftbandit.environments.rewards import Bernoulli, Gaussian, LogNormal, Outliers, Purchases
from driftbandit.environments.scaled import Scaled
from driftbandit.environments.smooth import Smooth

DESIGN, CHECK = "design", "check"
STILL = "stationary"  # the kind in which nothing changes


class SuiteEnvironment(NamedTuple):
    """An environment of a suite."""

    name: str
    kind: str
    role: str  # DESIGN or CHECK
    environment: Any
    changing: bool = True  # whether it is one of those over which ratios are averaged


# ---- rewards of 0 and 1 ----------------------------------------------------------------------------------------------

_LONG = 100_000  # rounds, unless the environment has its own number
# Kinds that are not averaged: exploring for change costs more than it gains there, or nothing can be seen.
APART = (STILL, "slow", "trap")


def _one(name: str, kind: str, role: str, environment: Any) -> SuiteEnvironment:
    return SuiteEnvironment(name, kind, role, environment, kind not in APART)


def _abrupt(n_arms: int, phases: int = 10, instance: str = "fresh", horizon: int = _LONG) -> Abrupt:
    return Abrupt(n_arms, horizon, phases, instance)


def _gap(gap: float, n_arms: int, phases: int, instance: str = "authors") -> AbruptGap:
    return AbruptGap(n_arms, _LONG, phases, gap, instance)


BINARY = (
    *(_one(f"authors-K{k}", "abrupt", DESIGN, _abrupt(k, instance="authors")) for k in (5, 10, 30)),
    *(_one(f"fresh-K5-p{phases}", "abrupt", DESIGN, _abrupt(5, phases)) for phases in (5, 10, 20)),
    *(_one(f"fresh-K{k}", "abrupt", DESIGN, _abrupt(k)) for k in (10, 30)),
    _one("gap.05-K5", "gap", DESIGN, _gap(0.05, 5, 10)),
    _one("gap.1-K2", "gap", DESIGN, _gap(0.1, 2, 5)),
    _one("gap.2-K5", "gap", DESIGN, _gap(0.2, 5, 5)),
    _one("smooth-K5-short", "smooth", DESIGN, Smooth(5, 10_000, 1e-3)),
    _one("smooth-K5-short-slow", "smooth", DESIGN, Smooth(5, 10_000, 1e-4)),
    _one("smooth-K5", "smooth", DESIGN, Smooth(5, _LONG, 1e-4)),
    _one("smooth-K10", "smooth", DESIGN, Smooth(10, _LONG, 1e-4)),
    _one("smooth-K30-quick", "smooth", DESIGN, Smooth(30, _LONG, 1e-3)),
    _one("smooth-K30", "smooth", DESIGN, Smooth(30, _LONG, 1e-4)),
    *(_one(f"stat-K{k}", STILL, DESIGN, _abrupt(k, 1)) for k in (5, 10, 30)),
    *(_one(f"fast-K{k}", "fast", DESIGN, _abrupt(k, 200)) for k in (5, 10)),
    *(_one(f"trap-K{k}", "trap", DESIGN, Trap(k)) for k in (2, 5)),
    _one("local-K5", "local", DESIGN, Local(5)),
    *(_one(f"common.{tenths}", "common", DESIGN, CommonShift(sd=tenths / 10)) for tenths in (0, 1, 2)),
    _one("authors-K20", "abrupt", CHECK, _abrupt(20, instance="authors")),
    *(_one(f"fresh-K{k}", "abrupt", CHECK, _abrupt(k)) for k in (20, 50)),
    _one("limited.7-K10", "limited", CHECK, AbruptLimited(10)),
    _one("limited.5-K5", "limited", CHECK, AbruptLimited(5, best=0.5, others_max=0.4)),
    _one("figure-7a", "limited", CHECK, AbruptLimited(10, instance="authors")),
    _one("figure-7b", "smooth", CHECK, Smooth(5, 10_000, 1e-3, rescaled=True)),
    _one("gap.15-K5", "gap", CHECK, _gap(0.15, 5, 5)),
    _one("gap.1-K20", "gap", CHECK, _gap(0.1, 20, 5)),
    _one("tiny-K2", "gap", CHECK, _gap(0.02, 2, 5, "fresh")),
    _one("smooth-K20", "smooth", CHECK, Smooth(20, _LONG, 1e-4)),
    *(_one(f"finite-K{k}", "finite", CHECK, AbruptFinite(k)) for k in (5, 20)),
    _one("stat-K20", STILL, CHECK, _abrupt(20, 1)),
    _one("fast-K20", "fast", CHECK, _abrupt(20, 200)),
    *(_one(f"trap-K{k}", "trap", CHECK, Trap(k)) for k in (10, 20)),
    *(_one(f"local-K{k}", "local", CHECK, Local(k)) for k in (10, 20)),
    *(_one(f"mixed-K{k}", "mixed", CHECK, Mixed(k)) for k in (6, 20)),
    *(_one(f"seasonal-K{k}", "seasonal", CHECK, Seasonal(k)) for k in (5, 20)),
    _one("rising-K5", "rising", DESIGN, Rising(5)),  # for checks until DriftTS was changed after a look at it
    _one("bursts-K5", "bursts", CHECK, Bursts(5)),
    _one("rare.05-K5", "rare", CHECK, Rare(5, highest=0.05)),
    _one("rare.01-K5", "rare", CHECK, Rare(5, highest=0.01)),
    _one("slow-K5", "slow", DESIGN, _abrupt(5, 2, horizon=1_000_000)),
    _one("slow-K10", "slow", CHECK, _abrupt(10, 2, horizon=1_000_000)),
)


# ---- rewards of any scale --------------------------------------------------------------------------------------------

_IDLE = ("trap", "rising")  # kinds in which an idle arm changes: not averaged
_LAWS = {
    "g.01": "gauss-0.01", "g.1": "gauss-0.1", "g1": "gauss-1", "gbig": "large", "bern": "binary", "rev": "revenue",
    "lat": "latency", "beta": "beta", "count": "counts", "scale": "noise-changes", "out": "outliers",
}  # fmt: skip


def _one_scaled(name: str, role: str = DESIGN) -> SuiteEnvironment:
    """The environment of a name such as `local-K5-rev-100k`: kind, arms, law and, if not 20,000, rounds."""
    kind, arms, law, *rounds = name.split("-")
    kind = STILL if kind == "stat" else kind
    horizon = 1_000 * int(rounds[0].removesuffix("k")) if rounds else 20_000
    return SuiteEnvironment(name, kind, role, Scaled(kind, _LAWS[law], int(arms[1:]), horizon), kind not in _IDLE)


_DESIGN = (
    "abrupt-K5-g.1", "abrupt-K10-g1", "smooth-K5-g.1", "smooth-K10-lat", "stat-K5-g1", "stat-K10-rev",
    "local-K5-beta", "common-K5-g.1", "abrupt-K10-bern", "smooth-K5-scale", "abrupt-K5-out", "abrupt-K10-g.01",
    "abrupt-K5-lat", "smooth-K10-gbig", "smooth-K5-bern", "stat-K10-g.1", "stat-K5-lat", "common-K5-beta",
    "abrupt-K10-scale", "abrupt-K5-beta", "smooth-K10-out", "abrupt-K5-rev-100k", "local-K5-rev-100k",
    "local-K5-g1-100k", "trap-K5-g.1", "rising-K5-g1", "trap-K5-rev",
)  # fmt: skip
_IDLE_ARMS = (f"{kind}-K5-{law}" for kind in _IDLE for law in _LAWS)  # under each law
_CHECKS = ("abrupt-K5-count", *(name for name in _IDLE_ARMS if name not in _DESIGN))
SCALE = (*map(_one_scaled, _DESIGN), *(_one_scaled(name, CHECK) for name in _CHECKS))


# ---- with contexts: mean rewards that are linear in features -------------------------------------------------------

# Those on which DriftLinTS was designed (D) and checked (H), and further ones for checks (N), which were written down
# before it played them.
_SEGMENTS: dict[str, Any] = {"contexts": "segment", "uniform": True, "spread": 1.0, "law": Bernoulli()}
_REVENUE = Purchases(20.0 * math.exp(0.32), 0.8)
_UNIT: dict[str, Any] = {"contexts": "unit", "n_arms": 10}
_LINEAR: dict[str, dict[str, Any]] = {
    "D01-rest": {"changes": 0},
    "D02-abrupt": {},
    "D03-local": {"change": "arm", "changes": 40},
    "D04-walk": {"change": "walk", "memory": 4000},
    "D05-segbern": {**_SEGMENTS, "n_arms": 4, "n_features": 5, "changes": 5},
    "D06-russac-abrupt": {**_UNIT, "change": "turns", "n_arms": 20, "n_features": 2, "horizon": 6000,
                          "law": Gaussian(1.0)},
    "D07-tide": {"contexts": "hour", "spread": 0.15, "changes": 0, "level": 0.5},
    "D08-useless": {"n_features": 9, "useless": 9, "spread": 0.5, "changes": 5},
    "D09-revenue": {"n_arms": 4, "n_features": 2, "base": 0.1, "spread": 0.04, "changes": 3, "law": _REVENUE},
    "D10-rotation": {**_UNIT, "n_features": 5, "change": "rotation", "memory": 10_000, "law": Gaussian(1.0)},
    "D11-coords": {"n_features": 7, "spread": 0.35, "change": "coordinate", "changes": 20},
    "D12-K20": {"n_arms": 20, "changes": 5},
    "D13-short": {"n_arms": 3, "n_features": 2, "horizon": 5000, "spread": 0.3, "changes": 2},
    "H01-restbern": {"n_arms": 3, "n_features": 9, "base": 0.3, "spread": 0.05, "changes": 0, "law": Bernoulli()},
    "H02-abrupt10": {"n_arms": 10, "n_features": 9, "spread": 0.4, "changes": 8, "law": Gaussian(1.0)},
    "H03-localbern": {"contexts": "uniform", "change": "arm", "n_arms": 10, "n_features": 2, "base": 0.4,
                      "spread": 0.2, "changes": 40, "law": Bernoulli()},
    "H04-walkfast": {"change": "walk", "n_arms": 3, "n_features": 2, "spread": 0.5, "memory": 500},
    "H05-segwalk": {"contexts": "segment", "change": "walk", "n_features": 10, "base": 0.5, "spread": 0.2,
                    "memory": 10_000, "law": Bernoulli()},
    "H06-kimtewari": {**_UNIT, "n_features": 10, "changes": 8},
    "H07-segtide": {"contexts": "segment", "spread": 0.2, "changes": 1, "level": 0.6, "level_memory": 1000},
    "H08-season": {"change": "season", "n_features": 3, "spread": 0.5, "memory": 5000},
    "H09-revenuerest": {"contexts": "uniform", "base": 0.05, "spread": 0.02, "changes": 0,
                        "law": Purchases(50.0 * math.exp(0.5), 1.0)},
    "H10-d20": {"n_features": 19, "spread": 0.22, "changes": 4},
    "H11-lownoise": {"changes": 20, "law": Gaussian(0.05)},
    "H12-long": {"horizon": 100_000, "n_features": 3, "spread": 0.5, "law": Gaussian(1.0)},
    "H13-short": {"horizon": 5000, "n_features": 5, "centre": 3.0, "width": 2.0, "spread": 0.25, "changes": 3,
                  "law": Gaussian(1.0)},
    "context-trap": {"change": "trap", "n_arms": 4, "n_features": 3, "spread": 0.3},
    "context-rising": {"change": "rising", "n_arms": 4, "n_features": 3, "spread": 0.3},
    "N01-correlated": {"contexts": "correlated", "n_features": 7, "spread": 0.3, "changes": 8},
    "N02-drifting": {"contexts": "drifting", "n_features": 3, "spread": 0.3, "changes": 6},
    "N03-outliers": {"changes": 6, "law": Outliers(0.5, 20.0, 0.01)},
    "N04-K30": {"n_arms": 30, "n_features": 3, "changes": 4},
    "N05-cell": {"change": "cell", "n_features": 5, "changes": 60},
    "N06-hourseason": {"contexts": "hour", "change": "season", "spread": 0.4, "memory": 8000},
    "N07-latency": {"n_features": 3, "base": -3.0, "spread": 0.4, "changes": 5, "law": LogNormal(0.8)},
    "N08-segments": {**_SEGMENTS, "n_features": 20, "changes": 2},
    "N09-seldom": {"horizon": 50_000, "changes": 1},
    "N10-bursts": {"change": "bursts", "changes": 15},
    "N11-newcomer": {**_SEGMENTS, "contexts": "newcomer", "n_features": 5, "changes": 2},
    "N12-revenuewalk": {"contexts": "uniform", "change": "walk", "n_features": 2, "base": 0.1, "spread": 0.05,
                        "memory": 10_000, "law": _REVENUE},
    "N13-jointwalk": {**_UNIT, "change": "walk", "n_features": 6, "memory": 3000},
}  # fmt: skip


def _one_linear(name: str) -> SuiteEnvironment:
    environment = Linear(**_LINEAR[name])
    kind = STILL if environment.changes == environment.level == 0 else environment.change
    role = CHECK if name.startswith("N") else DESIGN
    return SuiteEnvironment(name, kind, role, environment, kind not in _IDLE)


LINEAR = tuple(map(_one_linear, _LINEAR))

# ---- other papers ----------------------------------------------------------------------------------------------------

_DISC: dict[str, Any] = {"contexts": "disc", "n_arms": 50, "n_features": 2, "horizon": 6000, "law": Gaussian(1.0)}


def _kim_tewari(n_arms: int, n_features: int) -> Linear:
    return Linear("unit", "signs", n_arms, n_features, 10_000, law=Gaussian(math.sqrt(0.15)))


PUBLISHED = {
    "russac-abrupt": Linear(**_DISC, change="turns"),
    "russac-smooth": Linear(**_DISC, change="turn"),
    "kim-tewari": _kim_tewari(10, 10),
    **{f"kim-tewari-K{k}-d{d}": _kim_tewari(k, d) for k in (10, 100) for d in (10, 20, 50)},
    "wu": Linear(**_UNIT, change="spaced", n_features=10, horizon=2000, law=Gaussian(0.01)),
}

NAMED: dict[str, Any] = {one.name: one.environment for one in (*BINARY, *SCALE, *LINEAR)} | PUBLISHED
