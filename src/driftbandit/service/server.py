"""Running a service: one process, or several on one port, until SIGTERM; what was taken is answered first."""

import asyncio
import multiprocessing
import os
import secrets
import signal
import socket
import sys
import time
from typing import Any, NamedTuple

from driftbandit.live.opening import is_url
from driftbandit.service.access import is_local
from driftbandit.service.service import SECRET

_GRACE = 20  # seconds for requests that were taken
_KEPT = 75  # seconds for which an idle connection is kept: longer than proxies do, so that they never meet a closed one


class Options(NamedTuple):
    """What `serve` was told; plain values, so that a worker process can be told the same."""

    db: str = "driftbandit.db"
    host: str = "127.0.0.1"
    port: int = 8000
    keys: str | None = None
    config: str | None = None
    workers: int = 1
    proxies: str = "127.0.0.1"
    most: int = 512
    max_lag: float = 5.0
    watch: bool = False
    quiet: bool = False


def check(options: Options) -> None:
    """Refuse what would be unsafe or cannot work, before anything is opened."""
    if options.keys is not None and not os.path.exists(options.keys):
        raise ValueError(
            f"There is no file of keys {options.keys}; `driftbandit keys add {options.keys} NAME` makes one."
        )
    if options.keys is None and not is_local(options.host):
        raise ValueError(
            f"{options.host} can be reached from other machines, and there are no keys: anybody could decide and "
            "change. Give --keys FILE (`driftbandit keys add FILE NAME` makes one), or stay on 127.0.0.1."
        )
    if options.workers > 1 and not is_url(options.db):
        raise ValueError("A SQLite journal has one writing process; --workers needs --db postgresql://...")


def bound(host: str, port: int) -> socket.socket:
    """A listening socket, or a sentence."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host.strip("[]"), port))
    except OSError as error:
        sock.close()
        raise OSError(f"Cannot listen on {host}:{port}: {error.strerror or error}. Try another --port.") from None
    sock.listen(2048)
    sock.set_inheritable(True)
    return sock


def address(sock: socket.socket) -> str:
    """Where to point a browser."""
    host, port = sock.getsockname()[:2]
    name = "127.0.0.1" if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host
    return f"http://{name}:{port}/"


def make(options: Options, truth: Any = None) -> Any:
    """The service that the options describe."""
    from driftbandit.service.bandits import Bandits
    from driftbandit.service.keys import Keys
    from driftbandit.service.service import Service
    from driftbandit.service.watching import Watched

    bandits: Any = Watched(options.db) if options.watch else Bandits(options.db)
    try:
        keys = None if options.keys is None else Keys(options.keys)
        if keys is not None:
            keys.all()
        return Service(bandits, keys, truth, options.most, options.max_lag)
    except BaseException:
        bandits.close()
        raise


def run_app(
    service: Any, sock: socket.socket, options: Options, start: Any = None, seconds: float | None = None
) -> None:
    """Serve on a socket until told to end, or for some seconds. Streams end first; they would keep the others
    waiting."""
    import uvicorn

    from driftbandit.service.app import build

    class Server(uvicorn.Server):
        def handle_exit(self, sig: int, frame: Any) -> None:
            service.ending.set()
            super().handle_exit(sig, frame)

    app = build(service, start)
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False,
        timeout_graceful_shutdown=_GRACE, timeout_keep_alive=_KEPT,
        forwarded_allow_ips=options.proxies, proxy_headers=True, lifespan="on", ws="none", backlog=2048,
    )  # fmt: skip
    server = Server(config)

    def end() -> None:
        service.ending.set()
        server.should_exit = True

    async def main() -> None:
        if seconds is not None:
            asyncio.get_running_loop().call_later(seconds, end)
        await server.serve(sockets=[sock])

    asyncio.run(main())


def serve(options: Options) -> int:
    """Until SIGTERM or Ctrl-C."""
    check(options)
    os.environ.setdefault(SECRET, secrets.token_hex(32))
    if options.config is not None:
        _configure(options)
    if options.workers > 1:
        return _many(options)
    service = make(options)
    try:
        sock = bound(options.host, options.port)
    except BaseException:
        service.jobs.close()
        service.bandits.close()
        raise
    _say(options, sock)
    run_app(service, sock, options)
    return 0


def _configure(options: Options) -> None:
    from driftbandit.service.bandits import Bandits
    from driftbandit.service.configfile import apply

    bandits = Bandits(options.db)
    try:
        for line in apply(str(options.config), bandits):
            print(line, flush=True)
    finally:
        bandits.close()


def _say(options: Options, sock: socket.socket) -> None:
    what = "watching" if options.watch else "serving"
    where = options.db.rsplit("@", 1)[-1] if is_url(options.db) else options.db
    if not options.quiet:
        print(f"{what} {where} at {address(sock)}  (API: {address(sock)}api)", flush=True)


# ---- several processes -----------------------------------------------------------------------------------------------


def _worker(options: Options, sock: socket.socket) -> None:
    run_app(make(options), sock, options)


def _many(options: Options) -> int:
    """Several processes that accept from one socket; one that dies is started anew."""
    from driftbandit.live.opening import writing

    writing(options.db).release()  # makes the tables once, before all workers want to
    context = multiprocessing.get_context("spawn")
    sock = bound(options.host, options.port)

    def begin() -> Any:
        process = context.Process(target=_worker, args=(options, sock), daemon=False)
        process.start()
        return process

    workers = [begin() for _ in range(options.workers)]
    _say(options, sock)
    ending: list[int] = []
    for sig in (signal.SIGTERM, signal.SIGINT):
        signal.signal(sig, lambda *_: ending.append(1))
    while not ending:
        time.sleep(0.2)
        for place, process in enumerate(workers):
            if not process.is_alive() and not ending:
                print(f"driftbandit: a worker ended with {process.exitcode}; starting another.", file=sys.stderr)
                time.sleep(0.5)
                workers[place] = begin()
    for process in workers:
        process.terminate()
    for process in workers:
        process.join(_GRACE + 10)
    return 0
