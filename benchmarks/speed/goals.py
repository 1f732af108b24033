"""The goals for speed, and whether one run of the benchmark reached them.

Every goal is written once, in `GOALS`; the figures next to it are that run's measurements. Goals in
nanoseconds were set where the plain C loop of one run takes `C_THERE`. Another machine is faster or slower, so each
figure of one run is also shown divided by the factor by which the same C loop differs here. The verdict is about the
plain figure."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

Data = dict[str, Any]
Found = list[float | None]  # a figure for each limit; None: not measured in this run

ARMS = (5, 10, 30)
C_THERE = (31.0, 42.0, 102.0)  # ns per round of DS-TS in C, one run, with 5, 10 and 30 arms, where the goals were set
FLAT = 0.1  # the largest exponent called flat: twice the horizon then costs at most 7% more a round


def _nothing(data: Data) -> Found | None:
    return None


class Goal(NamedTuple):
    """One goal: limits, what was found, and a reference of the same run where there is one."""

    what: str
    limits: tuple[float, ...]
    unit: str
    found: Callable[[Data], Found]
    arms: tuple[int, ...] = ()  # to which the limits belong
    least: bool = False  # the figure should be at least the limit, not at most
    reference: str = ""
    beside: Callable[[Data], Found | None] = _nothing  # the figure over the reference
    note: Callable[[Data], str] = lambda data: ""


def _ns(name: str, lockstep: bool = False) -> Callable[[Data], Found]:
    def found(data: Data) -> Found:
        rows = {(row["policy"], row["lockstep"], row["n_arms"]): row["ns"] for row in data["policies"]}
        return [rows.get((name, lockstep, n_arms)) for n_arms in ARMS]

    return found


def _over_whole(name: str, lockstep: bool) -> Callable[[Data], Found]:
    """With rewards between 0 and 1, over the same policy with rewards of 0 and 1."""

    def found(data: Data) -> Found:
        rows = {(row["policy"], row["lockstep"], row["n_arms"]): row["ns"] for row in data["fractional"]}
        fractional = [rows.get((f"{name}, fractions", lockstep, n_arms)) for n_arms in ARMS]
        return _divided(fractional, _ns(name, lockstep)(data))

    return found


def _c(data: Data, lockstep: bool) -> Found:
    rows = [] if isinstance(data["c"], str) else data["c"]
    found = {row["n_arms"]: row["ns"] for row in rows if row["lockstep"] == lockstep}
    return [found.get(n_arms) for n_arms in ARMS]


def _over_c(lockstep: bool) -> Callable[[Data], Found]:
    return lambda data: _divided(_ns("ds-ts", lockstep)(data), _c(data, lockstep))


def _over_numpy(name: str, lockstep: bool) -> Callable[[Data], Found]:
    def found(data: Data) -> Found:
        rows = {row["n_arms"]: row for row in data["policies"] if (row["policy"], row["lockstep"]) == (name, lockstep)}
        return [1.0 / rows[n_arms]["ratio"] if "ratio" in rows.get(n_arms, {}) else None for n_arms in ARMS]

    return found


def _divided(figures: Found, by: Found) -> Found:
    return [None if one is None or not other else one / other for one, other in zip(figures, by, strict=True)]


def factors(data: Data) -> Found:
    """How many times longer the plain C loop takes here than where the goals were set, for 5, 10 and 30 arms."""
    return _divided(_c(data, lockstep=False), list(C_THERE))


def _exponent(against: str, name: str) -> Callable[[Data], Found]:
    def found(data: Data) -> Found:
        rows = [row for row in data["scaling"] if (row["against"], row["policy"]) == (against, name)]
        return [rows[0]["exponent"] if rows else None]

    return found


def _last_decade(name: str) -> Callable[[Data], Found]:
    """The exponent from 100 to 1000 arms only: over fewer arms the fixed cost of a round would hide it."""

    def found(data: Data) -> Found:
        for row in data["scaling"]:
            times = dict(zip(row["sizes"], row["ns"], strict=True))
            if (row["against"], row["policy"]) == ("arms", name) and {100, 1000} <= set(times):
                return [math.log10(times[1000] / times[100])]
        return [None]

    return found


def _two_workers(name: str, key: str) -> Callable[[Data], Found]:
    def found(data: Data) -> Found:
        row = data["workers"].get(name)
        return [row[key][row["workers"].index(2)] if row else None]

    return found


def _slowest_start(key: str) -> Callable[[Data], Found]:
    return lambda data: [max((row[key] for row in data["starts"]), default=None)]


def _growing(data: Data) -> Found:
    return [float(sum(not row["flat"] for row in data["memory"])) if data["memory"] else None]


def _growing_names(data: Data) -> str:
    return ", ".join(row["policy"] for row in data["memory"] if not row["flat"])


def _live(way: str, n_arms: int, scale: float = 1.0, name: str = "") -> Callable[[Data], Found]:
    """Of the policy of this name; of the first that was measured if none is given."""

    def found(data: Data) -> Found:
        rows = (row for row in data["live"] if (row.get("way"), row["n_arms"]) == (way, n_arms))
        return [next((scale * row["us"] for row in rows if row["policy"].startswith(name)), None)]

    return found


def _two(name: str) -> Goal:
    machine = _two_workers(name, "machine")
    gain = _two_workers(name, "speedup")
    return Goal(
        f"{name}, two workers over one", (1.8,), "times", gain, least=True,
        reference="a bare loop's gain", beside=lambda data: _divided(gain(data), machine(data)),
    )  # fmt: skip


def _policy(name: str, *limits: float, lockstep: bool = False) -> Goal:
    way = "64 runs in lockstep" if lockstep else "one run"
    beside = _over_numpy(name, lockstep)
    return Goal(f"{name}, {way}", limits, "ns", _ns(name, lockstep), ARMS, reference="NumPy", beside=beside)


GOALS = (
    Goal("ds-ts, 64 runs in lockstep", (18, 24, 55), "ns", _ns("ds-ts", True), ARMS, False, "C", _over_c(True)),
    Goal("ds-ts in lockstep over C", (1.5, 1.5, 1.5), "times", _over_c(True), ARMS),
    Goal("ds-ts, one run", (35, 50, 100), "ns", _ns("ds-ts"), ARMS, False, "C", _over_c(False)),
    *(_policy(name, 80, 150, 420, lockstep=way) for way in (True, False) for name in ("sw-ts", "dts", "ts")),
    *(_policy(name, 40, 80, 220, lockstep=True) for name in ("d-ucb", "sw-ucb", "exp3s")),
    *(_policy(name, 40, 80, 220) for name in ("d-ucb", "sw-ucb", "cusum-ucb", "m-ucb", "exp3s")),
    _policy("sw-lb-sda", 40, 55, 100),
    Goal(
        "drift-ts over ts, one run",
        (2.0, 2.0, 2.0),
        "times",
        lambda data: _divided(_ns("drift-ts")(data), _ns("ts")(data)),
        ARMS,
    ),
    Goal("drift-ts, fractions over 0 and 1, one run", (2.0, 2.0, 2.0), "times", _over_whole("drift-ts", False), ARMS),
    *(
        Goal(f"{name}, exponent in T", (FLAT,), "", _exponent("horizon", name))
        for name in ("glr-klucb", "pa-cts", "global-cts", "adswitch")
    ),
    _two("ds-ts"),
    _two("sw-ts"),
    _two("cusum-ucb"),
    Goal("warm start, the slowest", (0.7,), "s", _slowest_start("warm_s")),
    Goal("cold start, the slowest", (6.0,), "s", _slowest_start("cold_s")),
    Goal(
        "policies of a cost without T whose memory grows",
        (0,),
        "",
        _growing,
        note=_growing_names,
    ),
    Goal("compiled bandit, decide and reward, 10 arms", (5.0,), "µs", _live("compiled", 10)),
    Goal("compiled bandit, decide and reward, 1000 arms", (60.0,), "µs", _live("compiled", 1000)),
    Goal("interpreted bandit, decide and reward, 10 arms", (5.0,), "µs", _live("interpreted", 10)),
    Goal("interpreted bandit, decide and reward, 1000 arms", (60.0,), "µs", _live("interpreted", 1000)),
    Goal("drift-ts, compiled bandit, 10 arms", (6.0,), "µs", _live("compiled", 10, name="drift-ts")),
    Goal("drift-ts, interpreted bandit, 10 arms", (150.0,), "µs", _live("interpreted", 10, name="drift-ts")),
    Goal("compiled bandit, a decision of a batch, 10 arms", (100.0,), "ns", _live("batch", 10, 1e3)),
)


def judged(data: Data) -> list[dict[str, Any]]:
    """Every goal with what was found and whether it was met: "met", "missed" or "not measured" for each limit."""
    out, slower = [], factors(data)
    for goal in GOALS:
        found = goal.found(data)
        # The factor is that of one run, with its branches; it says little about lockstep.
        scaled = _divided(found, slower) if goal.unit == "ns" and goal.what.endswith("one run") else None
        out.append(
            {
                "what": goal.what,
                "unit": goal.unit,
                "arms": list(goal.arms),
                "least": goal.least,
                "limits": list(goal.limits),
                "found": found,
                "verdicts": _verdicts(goal, found),
                "reference": goal.reference,
                "over_reference": goal.beside(data),
                "note": goal.note(data),
                "over_factor": scaled,
                "verdicts_over_factor": None if scaled is None else _verdicts(goal, scaled),
            }
        )
    return out


def _verdicts(goal: Goal, found: Found) -> list[str]:
    out = []
    for limit, figure in zip(goal.limits, found, strict=True):
        if figure is None:
            out.append("not measured")
        else:
            out.append("met" if (figure >= limit if goal.least else figure <= limit) else "missed")
    return out
