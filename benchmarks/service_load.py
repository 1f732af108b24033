"""Load on `driftbandit serve`: durable requests per second beside an endpoint of the same stack that writes nothing.

    python benchmarks/service_load.py --seconds 10 --runs 5 --out build/service_load.json

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

NEW = {"name": "button", "policy": "ds-ts", "arms": [f"arm{n}" for n in range(10)], "half_life": "6 h"}


class Connection:
    """One kept connection, requests one after the other, with as little Python as can be."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer

    @classmethod
    async def open(cls, port):
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def ask(self, method, path, body=b""):
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n"
        self.writer.write(head.encode() + body)
        head = await self.reader.readuntil(b"\r\n\r\n")
        status = int(head[9:12])
        length = int(re.search(rb"content-length: (\d+)", head, re.I)[1])
        return status, await self.reader.readexactly(length)


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
        except (OSError, asyncio.IncompleteReadError):
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
        pool.get_nowait().writer.close()
    return {"statuses": dict(statuses), "latencies": latencies, "acked": acked, "paid": paid, "took": took}


async def durable(connection, number, statuses, acked, paid, open_ids):
    """A decision, or the reward of one made before."""
    if number % 2 == 0 or not open_ids:
        status, body = await connection.ask("POST", "/v1/bandits/button/decisions")
        if status == 200:
            id = json.loads(body)["id"]
            acked.append(id)
            open_ids.append(id)
    else:
        id = open_ids.pop()
        body = json.dumps({"id": id, "reward": float(number % 3 == 0)}).encode()
        status, _ = await connection.ask("POST", "/v1/bandits/button/rewards", body)
        if status == 200:
            paid.append(id)
    statuses[status] += 1


async def nothing(connection, number, statuses, acked, paid, open_ids):
    """The same stack, keys, checks and encoding, without bandit or journal."""
    status, _ = await connection.ask("GET", "/livez")
    statuses[status] += 1


class Server:
    """The service on core 0."""

    def __init__(self, db, most=512):
        command = [sys.executable, "-m", "driftbandit", "serve", "--db", str(db), "--port", "0", "--most", str(most)]
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
        connection.writer.close()

    began = time.perf_counter()
    await asyncio.gather(*(work(number) for number in range(connections)))
    return statuses[200] / (time.perf_counter() - began)


def saturation(server, seconds, slices=4):
    """Both capacities, measured in turn a little at a time: whatever else the machine does meets both alike. Also the
    server's own CPU time per request, which other programs do not disturb much."""
    rates = {durable: [], nothing: []}
    cpu = {durable: 0.0, nothing: 0.0}
    for place in range(slices):
        for mix in (durable, nothing) if place % 2 else (nothing, durable):
            before = server.cpu()
            rates[mix].append(asyncio.run(capacity(server.port, mix, seconds / slices)))
            cpu[mix] += (server.cpu() - before) / max(1.0, rates[mix][-1] * seconds / slices) / slices
    ratio = statistics.median(d / max(n, 1e-9) for d, n in zip(rates[durable], rates[nothing], strict=True))
    return {"bare": statistics.median(rates[nothing]), "durable": statistics.median(rates[durable]), "ratio": ratio,
            "cpu_us_bare": 1e6 * cpu[nothing], "cpu_us_durable": 1e6 * cpu[durable]}  # fmt: skip


def quantiles(latencies):
    ordered = sorted(latencies)
    return {name: 1000.0 * ordered[min(len(ordered) - 1, int(q * len(ordered)))]
            for name, q in (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0))}  # fmt: skip


def stored(db, acked, paid):
    """Acknowledged decisions and rewards that the journal lacks, and rewards it has twice."""
    from driftbandit.live.opening import reading

    journal = reading(db)
    number = journal.bandits()["button"]
    rows = {row.id for row in journal.decisions(number)}
    rewards = [event.decision for _, event in journal.events(number) if event.kind == 1]
    journal.close()
    return {"acked": len(acked), "paid": len(paid), "lost": len(set(acked) - rows) + len(set(paid) - set(rewards)),
            "doubled": len(rewards) - len(set(rewards))}  # fmt: skip


def made(port):
    async def make():
        connection = await Connection.open(port)
        status, body = await connection.ask("POST", "/v1/bandits", json.dumps(NEW).encode())
        assert status in (200, 201), body

    asyncio.run(make())


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


def kills(folder, seconds, times, rate):
    """kill -9 under load, again and again: what was acknowledged must be there."""
    db = str(Path(folder) / "kills.db")
    acked, paid = [], []
    for _ in range(times):
        server = Server(db)
        made(server.port)

        async def load(port=server.port, process=server.process):
            asyncio.get_running_loop().call_later(seconds, process.kill)
            return await open_loop(port, rate, seconds + 0.3, durable)

        found = asyncio.run(load())
        acked += found["acked"]
        paid += found["paid"]
        server.process.wait(30)
    return {"kills": times, **stored(db, acked, paid)}


def restarts(seconds, times, rate):
    """PostgreSQL stopped as by a crash, and started again, under load: what was acknowledged must be there."""
    from driftbandit.live.drill.site import site

    with site("postgres") as place:
        db = place.journal()
        server = Server(db)
        made(server.port)
        statuses, acked, paid = Counter(), [], []

        async def load():
            async def outage():
                await asyncio.sleep(seconds / 2.0)
                await asyncio.to_thread(place.stop)
                await asyncio.to_thread(place.start)

            found, _ = await asyncio.gather(open_loop(server.port, rate, seconds, durable, 256), outage())
            return found

        for _ in range(times):
            found = asyncio.run(load())
            statuses.update({str(status): count for status, count in found["statuses"].items()})
            acked += found["acked"]
            paid += found["paid"]
        server.end()
        return {"restarts": times, "statuses": dict(statuses), **stored(db, acked, paid)}


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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--restarts", type=int, default=5, help="of PostgreSQL, under load")
    parser.add_argument("--out")
    args = parser.parse_args()
    if hasattr(os, "sched_setaffinity") and (os.cpu_count() or 1) > 1:
        os.sched_setaffinity(0, {1})
    with tempfile.TemporaryDirectory(prefix="service-load-") as folder:
        runs = [one_run(folder, args.seconds, number) for number in range(args.runs)]
        report = {
            "machine": {"cpus": os.cpu_count(), "python": platform.python_version(), "system": platform.platform(),
                        "fsync_ms": fsync_ms(folder), "load_before": os.getloadavg()},
            "runs": runs,
            "kill": kills(folder, min(2.0, args.seconds), args.kills, min(run["half_rate"] for run in runs)),
        }  # fmt: skip
    if args.restarts:
        report["restart"] = restarts(min(4.0, args.seconds), args.restarts, 100.0)
    for name in ("bare", "durable", "ratio", "cpu_us_bare", "cpu_us_durable"):
        values = [run[name] for run in runs]
        print(f"{name}: {statistics.median(values):.4g}  ({min(values):.4g} to {max(values):.4g})")
    for name in ("p50", "p99", "p99.9", "max"):
        values = [run["half"][name] for run in runs]
        low, middle, high = min(values), statistics.median(values), max(values)
        print(f"{name} at half of saturation: {middle:.3g} ms  ({low:.3g} to {high:.3g})")
    print("at twice saturation:", [run["twice"] for run in runs])
    print("kill -9 under load:", report["kill"])
    print("PostgreSQL restarts under load:", report.get("restart"))
    print("machine:", report["machine"])
    if args.out:
        Path(args.out).parent.mkdir(parents=True, exist_ok=True)
        Path(args.out).write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
