"""Load on `driftbandit serve`: durable requests per second beside an endpoint of the same stack that writes nothing.

    python benchmarks/service_load.py --runs 5 --out build/service_load        (writes load.json and load.md)

Runs are added to those that the folder has (--fresh begins anew), so that they can be spread over the quiet moments of
a machine. kill -9 and restarts of PostgreSQL under load: `python -m tests.drill --only http-kill http-restart`.

Requests go out at fixed times whatever came back (open loop), and latency counts from the time a request was meant to
be sent: a stall delays those behind it, and that is what a caller feels. The generator runs on one core, the server on
the other. Decide and reward are mixed 1:1. Saturation is what 64 connections reach that are never idle, measured in
turn with the endpoint that writes nothing; figures are medians over runs, with the range."""

import argparse
import asyncio
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
from pathlib import Path

ARMS = [f"arm{n}" for n in range(10)]
NEW = {"name": "button", "policy": "ds-ts", "arms": ARMS, "half_life": "6 h"}
# With --context the same bandit has ten columns of features, and is compared with itself without them.
FEATURES = {f"x{n}": "number" for n in range(7)} | {"device": ["mobile", "desktop", "tablet"]}
CONTEXTUAL = {"name": "banner", "policy": "stable-lin-ts", "arms": ARMS, "half_life": "6 h", "features": FEATURES}
CONTEXT = json.dumps({"context": {f"x{n}": n / 4.0 for n in range(7)} | {"device": "mobile"}}).encode()


class Connection(asyncio.Protocol):
    """One kept connection, requests one after the other, with as little Python as can be: the generator must not be
    what is measured."""

    def __init__(self):
        self.transport, self.answer, self.data = None, None, b""

    @classmethod
    async def open(cls, port):
        _, made = await asyncio.get_running_loop().create_connection(cls, "127.0.0.1", port)
        return made

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        data = self.data = self.data + data
        head = data.find(b"\r\n\r\n")
        if head < 0:
            return
        place = data.index(b"content-length: ") + 16
        end = head + 4 + int(data[place : data.index(b"\r", place)])
        if len(data) >= end:
            self.data = data[end:]
            self.answer.set_result((int(data[9:12]), data[head + 4 : end]))

    def connection_lost(self, error):
        if self.answer is not None and not self.answer.done():
            self.answer.set_exception(ConnectionResetError("cut"))

    async def ask(self, method, path, body=b""):
        if self.transport.is_closing():
            raise ConnectionResetError("cut")
        self.answer = asyncio.get_running_loop().create_future()
        self.transport.write(
            b"%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n%s" % (method, path, len(body), body)
        )
        return await self.answer


async def open_loop(port, rate, seconds, mix, connections=64):
    """Requests at a fixed rate over a few connections. Answers the statuses, the latencies from the intended times,
    and the ids that were acknowledged."""
    pool = asyncio.Queue()
    for _ in range(connections):
        pool.put_nowait(await Connection.open(port))
    statuses, latencies, acked, paid = Counter(), [], [], []
    open_ids = []
    began = time.perf_counter() + 0.05

    async def one(number):
        due = began + number / rate
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        connection = await pool.get()
        try:
            await mix(connection, number, statuses, acked, paid, open_ids)
        except OSError:
            statuses["cut"] += 1
            try:
                connection = await Connection.open(port)
            except OSError:
                statuses["refused"] += 1
        finally:
            latencies.append(time.perf_counter() - due)
            pool.put_nowait(connection)

    await asyncio.gather(*(one(number) for number in range(int(rate * seconds))))
    took = time.perf_counter() - began
    while not pool.empty():
        pool.get_nowait().transport.close()
    return {"statuses": dict(statuses), "latencies": latencies, "acked": acked, "paid": paid, "took": took}


async def durable(connection, number, statuses, acked, paid, open_ids, name=b"button", asked=b""):
    """A decision, or the reward of one made before."""
    if number % 2 == 0 or not open_ids:
        status, body = await connection.ask(b"POST", b"/v1/bandits/%s/decisions" % name, asked)
        if status == 200:
            id = json.loads(body)["id"]
            acked.append(id)
            open_ids.append(id)
    else:
        id = open_ids.pop()
        body = json.dumps({"id": id, "reward": float(number % 3 == 0)}).encode()
        status, _ = await connection.ask(b"POST", b"/v1/bandits/%s/rewards" % name, body)
        if status == 200:
            paid.append(id)
    statuses[status] += 1


async def contextual(*request):
    """The same in a context."""
    await durable(*request, b"banner", CONTEXT)


async def nothing(connection, number, statuses, acked, paid, open_ids):
    """The same stack, keys, checks and encoding, without bandit or journal."""
    status, _ = await connection.ask(b"GET", b"/livez")
    statuses[status] += 1


class Server:
    """The service on core 0."""

    def __init__(self, db, most=512):
        command = [sys.executable, "-m", "driftbandit", "serve", str(db), "--port", "0", "--most", str(most)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(self.process.pid, {0})
        line = self.process.stdout.readline()
        self.port = int(re.search(r":(\d+)/", line)[1])

    def cpu(self):
        """CPU seconds used so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self, sig=signal.SIGTERM):
        self.process.send_signal(sig)
        self.process.wait(60)


async def capacity(port, mix, seconds, connections=64):
    """Answers per second with so many connections that are never idle."""
    statuses, acked, paid, open_ids = Counter(), [], [], []
    end = time.perf_counter() + seconds

    async def work(number):
        connection = await Connection.open(port)
        while time.perf_counter() < end:
            await mix(connection, number, statuses, acked, paid, open_ids)
            number += 1
        connection.transport.close()

    began = time.perf_counter()
    await asyncio.gather(*(work(number) for number in range(connections)))
    return statuses[200] / (time.perf_counter() - began)


def saturation(server, seconds, slices=4):
    """Both capacities, measured in turn a little at a time: whatever else the machine does meets both alike. Also the
    server's own CPU time per request, which other programs do not disturb much."""
    rates = {durable: [], nothing: []}
    cpu, busy = {durable: 0.0, nothing: 0.0}, {durable: [], nothing: []}
    for place in range(slices):
        for mix in (durable, nothing) if place % 2 else (nothing, durable):
            before, began = server.cpu(), time.perf_counter()
            rates[mix].append(asyncio.run(capacity(server.port, mix, seconds / slices)))
            used, took = server.cpu() - before, time.perf_counter() - began
            cpu[mix] += used / max(1.0, rates[mix][-1] * took) / slices
            busy[mix].append(used / took)
    ratio = statistics.median(d / max(n, 1e-9) for d, n in zip(rates[durable], rates[nothing], strict=True))
    return {"bare": statistics.median(rates[nothing]), "durable": statistics.median(rates[durable]), "ratio": ratio,
            "cpu_us_bare": 1e6 * cpu[nothing], "cpu_us_durable": 1e6 * cpu[durable],
            "busy_bare": statistics.median(busy[nothing]),
            "busy_durable": statistics.median(busy[durable])}  # fmt: skip


def quantiles(latencies):
    ordered = sorted(latencies)
    return {name: 1000.0 * ordered[min(len(ordered) - 1, int(q * len(ordered)))]
            for name, q in (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0))}  # fmt: skip


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
        made(server.port)
        made(server.port, CONTEXTUAL)
        rates = {durable: [], contextual: []}
        for place in range(4):
            for mix in (durable, contextual) if place % 2 else (contextual, durable):
                rates[mix].append(asyncio.run(capacity(server.port, mix, seconds / 4)))
        plain, with_context = (statistics.median(rates[mix]) for mix in (durable, contextual))
        server.end()
        print(
            f"{plain:,.0f} per second plain, {with_context:,.0f} in a context: {with_context / plain:.2f}", flush=True
        )


def one_run(folder, seconds, number):
    db = str(Path(folder) / f"run{number}.db")
    server = Server(db)
    made(server.port)
    out = saturation(server, seconds)
    out["half_rate"] = out["durable"] / 2.0
    half = asyncio.run(open_loop(server.port, out["half_rate"], seconds, durable))
    out["half"] = quantiles(half["latencies"])
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
        ("requests per second of the endpoint that writes nothing", spread([r["bare"] for r in runs], whole)),
        ("**durable, as a share of the endpoint that writes nothing**", spread([r["ratio"] for r in runs], part)),
        ("the same by the server's CPU time per request (the generator limits what is reached without writing)",
         spread([r["cpu_us_bare"] / r["cpu_us_durable"] for r in runs], part)),
        ("the server's CPU time per request, nothing written", spread([r["cpu_us_bare"] for r in runs], whole) + " µs"),
        ("the server's CPU time per request, durable", spread([r["cpu_us_durable"] for r in runs], whole) + " µs"),
        ("the server's core is busy at saturation, nothing written and durable",
         " and ".join(spread([100 * r[f"busy_{name}"] for r in runs], whole) + " %" for name in ("bare", "durable"))),
        *((f"{name} at half of saturation, from the intended time", spread([r["half"][name] for r in runs], ms))
          for name in ("p50", "p99", "p99.9", "max")),
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
    lines = [head, "", "| | |", "|---|---|", *(f"| {what} | {value} |" for what, value in rows)]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0, help="of each part of a run")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--out", default="build/service_load", metavar="FOLDER")
    parser.add_argument("--context", action="store_true", help="compare decisions in a context with plain ones only")
    parser.add_argument("--fresh", action="store_true", help="begin anew")
    args = parser.parse_args()
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    kept = out / "load.json"
    runs = [] if args.fresh or not kept.exists() else json.loads(kept.read_text())["runs"]
    if hasattr(os, "sched_setaffinity") and (os.cpu_count() or 1) > 1:
        os.sched_setaffinity(0, {1})
    with tempfile.TemporaryDirectory(prefix="service-load-") as folder:
        if args.context:
            compare_contexts(folder, args.seconds, args.runs)
            return
        for _ in range(args.runs):
            machine = {"cpus": os.cpu_count(), "python": platform.python_version(), "fsync_ms": fsync_ms(folder)}
            runs.append({"load_before": os.getloadavg()[0], **one_run(folder, args.seconds, len(runs))})
            report = {"machine": machine, "runs": runs}
            kept.write_text(json.dumps(report, indent=1) + "\n")
            (out / "load.md").write_text(table(report))
            print(json.dumps(runs[-1]), flush=True)
    print(table(report))


if __name__ == "__main__":
    main()
