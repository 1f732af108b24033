"""Requests to a running service, with as little Python as can be; part of `service_load.py`."""

import asyncio
import gc
import itertools
import json
import re
import shutil
import subprocess
import time
from collections import Counter
from pathlib import Path

_LUA = """
local ids, count, bandits, run = {}, 0, %d, "%s"
local function path(id, what)
  local n = id:match("^b(%%d+)%%.") or "0"
  return "/v1/bandits/button" .. (n == "0" and "" or n) .. "/" .. what
end
request = function()
  local id = table.remove(ids)
  if id then return wrk.format("POST", path(id, "rewards"), nil, '{"id":"' .. id .. '","reward":1}') end
  if bandits == 1 then return wrk.format("POST", path("", "decisions"), nil, "") end
  count = count + 1
  local own = "b" .. math.random(bandits) - 1 .. "." .. run .. count
  return wrk.format("POST", path(own, "decisions"), nil, '{"id":"' .. own .. '"}')
end
response = function(status, headers, body)
  local id = body:match('"id":"([^"]+)","arm"')
  if id then ids[#ids + 1] = id end
end
"""
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
    """Requests at a fixed rate over a few connections. Answers the statuses, the latencies from the intended times, how
    late the generator itself was where a connection was free, and the ids that were acknowledged.

    Each connection takes the next request when it has its answer. A request that is due while all are busy waits, and
    its latency counts from the time it was due. Nothing is made for requests beforehand: 30,000 tasks took 0.2 s to
    begin, by which the first requests were late."""
    open_connections = [await Connection.open(port) for _ in range(connections)]
    statuses, latencies, late, acked, paid, open_ids = Counter(), [], [], [], [], []
    numbers = itertools.count()
    began, clock = time.perf_counter() + 0.05, time.perf_counter

    async def work(connection):
        while (number := next(numbers)) < rate * seconds:
            due = began + number / rate
            left = due - clock()
            if left > 0.0:
                await asyncio.sleep(left)
                late.append(clock() - due)
            try:
                await mix(connection, number, statuses, acked, paid, open_ids)
            except OSError:
                statuses["cut"] += 1
                try:
                    connection = await Connection.open(port)
                except OSError:
                    statuses["refused"] += 1
            latencies.append(clock() - due)
        return connection

    gc.collect()
    gc.disable()  # a collection here would stop all connections
    try:
        open_connections = await asyncio.gather(*map(work, open_connections))
    finally:
        gc.enable()
    took = clock() - began
    for connection in open_connections:
        connection.transport.close()
    return {"statuses": dict(statuses), "latencies": latencies, "late": late, "acked": acked, "paid": paid,
            "took": took}  # fmt: skip


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
    """An answer without bandit or journal."""
    status, _ = await connection.ask(b"GET", b"/livez")
    statuses[status] += 1


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


def reached(server, kind, seconds, folder, bandits=1):
    """Answers per second with 64 connections, by wrk where it is installed: a generator in Python reaches less than a
    server that does nothing."""
    if not shutil.which("wrk"):
        return asyncio.run(capacity(server.port, durable if kind == "durable" else nothing, seconds))
    script = Path(folder) / f"durable{server.port}.lua"
    script.write_text(_LUA % (bandits, f"{time.time_ns():x}-"))
    words = ["wrk", "-t1", "-c64", f"-d{max(1, round(seconds))}s", f"http://127.0.0.1:{server.port}/livez"]
    answer = subprocess.run(
        [*words, *(["-s", script] if kind == "durable" else [])], capture_output=True, text=True, check=True
    ).stdout
    assert "Non-2xx" not in answer, answer
    return float(re.search(r"Requests/sec: +([0-9.]+)", answer)[1])


def quantiles(latencies):
    ordered = sorted(latencies)
    return {name: 1000.0 * ordered[min(len(ordered) - 1, int(q * len(ordered)))]
            for name, q in (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0))}  # fmt: skip
