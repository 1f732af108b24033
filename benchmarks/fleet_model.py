"""What a service with more cores and databases would do: a model from figures that were measured here.

    python benchmarks/service_load.py --store postgres --workers 1 --fresh    (also --workers 2, --databases 2 and,
                                                                               with 1 and 2 workers, --bandits 100)
    python benchmarks/fleet_model.py [--figures build/service_load/postgres.json] [--out docs/service/model.md]

A request is a decision or a reward, 1:1. Its cost is CPU time, which other programs disturb less than rates."""

import argparse
import json
import os
import textwrap
from pathlib import Path
from typing import NamedTuple

from pages import shown_and_kept
from postgres_load import median_run, per_request

CORES, DATABASES = 16, 8


class Costs(NamedTuple):
    """What the model is made from."""

    service: float  # µs of a request, in the process that answers it
    event: float  # µs of another process that folds a reward: half of the requests are rewards
    postgres: float  # µs of a request
    log: float  # bytes written ahead by PostgreSQL

    def of(self, processes, sent_by_name):
        """µs of all processes together for one request."""
        return self.service + (0.0 if sent_by_name else 0.5 * self.event * (processes - 1))


def costs(runs, bandits=1):
    one, two = (per_request(runs[workers, 1, bandits]) for workers in (1, 2))
    event = 2.0 * (two["service"] - one["service"])
    return Costs(one["service"], max(0.0, event), max(one["postgres"], two["postgres"]), one["wal_bytes"])


def bound(known, processes, cores, sent_by_name):
    """Requests per second of one database, and what ends first: the processes' own cores, or all cores together."""
    service = known.of(processes, sent_by_name)
    found = {"a core of each process": 1e6 * processes / service, "all cores": 1e6 * cores / (service + known.postgres)}
    return min((rate, what) for what, rate in found.items())


def best(known, cores, sent_by_name):
    """The number of processes with the highest rate."""
    return max(((*bound(known, n, cores, sent_by_name), n) for n in range(1, cores + 1)), key=lambda found: found[0])


def measured(runs):
    yield "| processes | databases | bandits | requests per second | cores: service | PostgreSQL | generator | others |"
    yield "|--:|--:|--:|--:|--:|--:|--:|--:|"
    for key, run in sorted(runs.items()):
        others = max(0.0, run["machine"] - run["service"] - run["postgres"] - run["generator"])
        cells = [f"{run[kind]:.2f}" for kind in ("service", "postgres", "generator")]
        yield f"| {' | '.join(map(str, key))} | {run['rate']:,.0f} | {' | '.join(cells)} | {others:.2f} |"
    yield ""
    yield (
        "| processes, databases, bandits | service, µs per request | PostgreSQL, µs per request | requests per commit "
        "| flushes per second | log, bytes per request | a writing backend of PostgreSQL |"
    )
    yield "|---|--:|--:|--:|--:|--:|---|"
    for key, run in sorted(runs.items()):
        each = per_request(run)
        waits = ", ".join(f"{100 * share:.0f}% {what}" for what, share in run["waits"].items() if share >= 0.01)
        cells = [", ".join(map(str, key)), f"{each['service']:.0f}", f"{each['postgres']:.0f}"]
        cells += [f"{1 / each['commits']:.1f}", f"{run['flushes']:.0f}", f"{each['wal_bytes']:,.0f}", waits]
        yield f"| {' | '.join(cells)} |"


def extrapolated(known):
    yield (
        "| | processes per database | requests per second | service, cores | PostgreSQL, cores | "
        "log, MB per second | ends first |"
    )
    yield "|---|--:|--:|--:|--:|--:|---|"
    for what, cores, databases, by_name in (
        (f"{CORES} cores, 1 database, any process answers", CORES, 1, False),
        (f"{CORES} cores, 1 database, a bandit's calls go to one process", CORES, 1, True),
        (f"{CORES} cores, {DATABASES} databases, any process of a deployment", CORES // DATABASES, DATABASES, False),
        (f"{DATABASES} machines of {CORES} cores, {DATABASES} databases", CORES, DATABASES, False),
    ):
        rate, ends, processes = best(known, cores, by_name)
        rate *= databases
        service, store = rate * known.of(processes, by_name) / 1e6, rate * known.postgres / 1e6
        cells = [
            f"{processes}",
            f"{rate:,.0f}",
            f"{service:.1f}",
            f"{store:.1f}",
            f"{rate * known.log / 1e6:.1f}",
            ends,
        ]
        yield f"| {what} | {' | '.join(cells)} |"


def hot(runs, known):
    one, two = runs[1, 1, 1], runs[2, 1, 1]
    full = two["machine"] > 0.9 * two["cores"]
    share, wait = max((share, what) for what, share in two["waits"].items())
    used = [", ".join(f"{run[kind]:.2f}" for kind in ("service", "postgres", "generator")) for run in (one, two)]
    yield (
        f"**One hot bandit.** Two processes reached {two['rate']:,.0f} requests per second, one process "
        f"{one['rate']:,.0f}: {two['rate'] / one['rate']:.2f} times as many. Service, PostgreSQL and generator used "
        f"{used[0]} of {one['cores']:.0f} cores with one process, and {used[1]} with two. With two processes "
        f"{two['machine']:.2f} cores were busy, other programs included: "
        f"{'CPU time is' if full else 'waiting, and not CPU time, is'} what bounds it. A backend of PostgreSQL that "
        f"writes spent most of its time ({100 * share:.0f}%) in: {wait}."
    )


def hot_extrapolated(known):
    ceiling = f"{2e6 / known.event:,.0f} requests per second" if known.event else "not measurable"
    rates = ", ".join(f"{1e6 * n / known.of(n, False):,.0f} with {n}" for n in (1, 2, 4, 8, 16))
    yield (
        "**One hot bandit.** Every process that answers for a bandit folds all of its events, so each further process "
        f"helps less. With a core for each process and PostgreSQL elsewhere: {rates} requests per second. The ceiling "
        f"with any number of processes, 2 / F, is {ceiling}."
    )


def small_bandits(known, bandits):
    return (
        "Those are the costs of one busy bandit, whose policy is machine code where Numba is installed. A process "
        f"compiles the policy of a bandit after 200 decisions; until then Python runs it. With {bandits} bandits that "
        f"have fewer, S = {known.service:.0f} µs, F = {known.event:.0f} µs, D = {known.postgres:.0f} µs and "
        f"L = {known.log:,.0f} bytes."
    )


def page(runs, head):
    known = costs(runs)
    many = [key[2] for key in runs if key[:2] == (1, 1) and key[2] > 1 and (2, 1, key[2]) in runs]
    flushing = max(run["flushes"] * run["fsync_ms"] / 10 / run["databases"] for run in runs.values())
    best_rate, _, processes = best(known, CORES, False)
    service = known.of(processes, False)
    first = "the processes" if service > known.postgres else "PostgreSQL"
    yield "# A load model for many bandits"
    for text in (
        "`benchmarks/fleet_model.py` wrote this page from figures of `benchmarks/service_load.py --store postgres`. A "
        "request is a decision or a reward (1:1), each written to disk before it is answered. All processes, "
        "PostgreSQL and the generator share one machine.",
        "## Measured", head, measured(runs), *hot(runs, known),
        "## Formula",
        "With P processes on one database, one request costs S + F (P − 1) / 2 µs of their CPU time if each of them "
        "has the bandit open: half of the requests are rewards, and every other process folds them. It costs S if "
        "the balancer sends a bandit's calls to one process only. PostgreSQL spends D µs of CPU time and writes L "
        "bytes of log.",
        f"S = {known.service:.0f} µs is the service's time with one process. F = {known.event:.0f} µs is twice what "
        "two processes need more than that, so it contains whatever else two processes cost, such as smaller commits. "
        f"D = {known.postgres:.0f} µs. L = {known.log:,.0f} bytes.",
        *(small_bandits(costs(runs, bandits), bandits) for bandits in many),
        "A process computes on one core, so P processes answer at most P / (S + F (P − 1) / 2) requests per µs, and C "
        "cores at most C / (S + F (P − 1) / 2 + D). The smaller one ends first. Databases do not depend on each other.",
        "## Extrapolated", "With the costs of one hot bandit:", extrapolated(known), *hot_extrapolated(known),
        *(part for bandits in many for part in
          (f"With the costs of {bandits} small bandits:", extrapolated(costs(runs, bandits)))),
        f"CPU time ends first. With {CORES} cores and one database, {first} use most of it: {service:.0f} µs for the "
        f"processes and {known.postgres:.0f} µs for PostgreSQL per request. The log then grows by "
        f"{best_rate * known.log / 1e6:.1f} MB per second. Flushes took up to {flushing:.0f}% of the time in the runs "
        "above; requests that arrive during a flush share the next one, so their number grows less than the rate.",
        "Not measured, and not in the model: more than two processes on one database, where PostgreSQL's locks may "
        "cost more; nginx and the network; cold bandits; a slower disk. Memory does not depend on the rate: [many "
        "bandits](fleet.md) has what a process needs.",
    ):  # fmt: skip
        yield ""
        if not isinstance(text, str):
            yield from text
        else:
            yield from textwrap.wrap(text, 118, break_long_words=False, break_on_hyphens=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--figures", type=Path, default=Path("build/service_load/postgres.json"))
    parser.add_argument("--out", type=Path, metavar="PAGE")
    args = parser.parse_args()
    groups = {}
    for run in json.loads(args.figures.read_text(encoding="utf-8")):
        groups.setdefault((run["workers"], run["databases"], run["bandits"]), []).append(run)
    missing = [f"--workers {workers}" for workers in (1, 2) if (workers, 1, 1) not in groups]
    if missing:
        parser.error(f"{args.figures} has no runs of service_load.py --store postgres with {' and '.join(missing)}.")
    runs = {key: median_run(group) for key, group in groups.items()}
    loads = sorted(run["load_before"] for group in groups.values() for run in group)
    flush = sorted(run["fsync_ms"] for group in groups.values() for run in group)
    counts = sorted(map(len, groups.values()))
    head = (
        f"{os.cpu_count()} cores; medians of {counts[0]} to {counts[-1]} runs; load {loads[0]:.1f} to {loads[-1]:.1f} "
        f"after them; a flush to disk takes {flush[len(flush) // 2]:.1f} ms."
    )
    shown_and_kept(page(runs, head), args.out)


if __name__ == "__main__":
    main()
