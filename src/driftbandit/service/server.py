"""Running a service: one process, or several on one port, until SIGTERM. Accepted requests are answered first."""

import asyncio
import contextlib
import gc
import multiprocessing
import os
import signal
import socket
import sys
import time
from typing import Any, NamedTuple

from driftbandit.live.opening import is_url
from driftbandit.service.auth import is_local
from driftbandit.service.connections import KEPT, Connections

_GRACE = 20  # seconds for accepted requests
_MOST = 4096  # connections; above it idle ones are closed early


class ServerOptions(NamedTuple):
    """The options of `serve`, as plain values that can be passed to a worker process."""

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


def check(options: ServerOptions) -> None:
    """Refuse options that are unsafe or cannot work, before anything is opened."""
    if options.keys is not None and not os.path.exists(options.keys):
        raise ValueError(
            f"There is no file of keys {options.keys}; `driftbandit keys add {options.keys} NAME` makes one."
        )
    if options.keys is None and not is_local(options.host):
        raise ValueError(
            f"{options.host} can be reached from other machines, and there are no keys, so anybody could decide and "
            "change. Give --keys FILE (`driftbandit keys add FILE NAME` makes one), or stay on 127.0.0.1."
        )
    if options.workers > 1 and not is_url(options.db):
        raise ValueError("A SQLite journal has one writing process; --workers needs --db postgresql://...")


def bound(host: str, port: int) -> socket.socket:
    """A listening socket."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named TCP: asyncio turns Nagle's delay off only then. With it the second part of an answer waits up to 40 ms for
    # the client to acknowledge the first.
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
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
    """The address for a browser."""
    host, port = sock.getsockname()[:2]
    name = "127.0.0.1" if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host
    return f"http://{name}:{port}/"


def make_service(options: ServerOptions, truth: Any = None) -> Any:
    """The service that the options describe."""
    from driftbandit.service.app import Service
    from driftbandit.service.bandits import Bandits, WatchedBandits
    from driftbandit.service.keys import Keys

    bandits = WatchedBandits(options.db) if options.watch else Bandits(options.db)
    try:
        keys = None if options.keys is None else Keys(options.keys)
        if keys is not None:
            keys.all()
        return Service(bandits, keys, truth, options.most, options.max_lag)
    except BaseException:
        bandits.close()
        raise


def run_app(
    service: Any, sock: socket.socket, options: ServerOptions, start: Any = None, seconds: float | None = None
) -> None:
    """Serve on a socket until a signal, or for some seconds. Streams end first; the others would wait for them."""
    import uvicorn

    from driftbandit.service.app import build

    class Server(uvicorn.Server):
        def handle_exit(self, sig: int, frame: Any) -> None:
            service.ending.set()
            super().handle_exit(sig, frame)

    connections = Connections(_most_connections())
    app = connections.wrap(build(service, start))
    gc.collect()
    gc.freeze()  # imported modules stay: the collector need not look at them while requests wait
    config = uvicorn.Config(
        app, http=connections.protocol(), log_level="warning", access_log=False, server_header=False,
        timeout_graceful_shutdown=_GRACE, timeout_keep_alive=KEPT,
        forwarded_allow_ips=options.proxies, proxy_headers=True, lifespan="on", ws="none", backlog=2048,
    )  # fmt: skip
    server = Server(config)

    def end() -> None:
        service.ending.set()
        server.should_exit = True

    async def main() -> None:
        if seconds is not None:
            asyncio.get_running_loop().call_later(seconds, end)
        watch = asyncio.create_task(connections.watch())
        await server.serve(sockets=[sock])
        watch.cancel()

    asyncio.run(main())


def _most_connections() -> int:
    """The number of connections that the system allows, after raising its limit as far as possible."""
    try:
        import resource
    except ImportError:  # a system without such limits
        return _MOST
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard and soft < 4 * _MOST:
        soft = min(hard, 4 * _MOST) if hard != resource.RLIM_INFINITY else 4 * _MOST
        with contextlib.suppress(OSError, ValueError):  # a system may forbid it
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return min(_MOST, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)


def serve(options: ServerOptions) -> int:
    """Until SIGTERM or Ctrl-C."""
    check(options)
    if options.config is not None:
        _configure(options)
    if options.workers > 1:
        return _many(options)
    service = make_service(options)
    try:
        sock = bound(options.host, options.port)
    except BaseException:
        service.jobs.close()
        service.bandits.close()
        raise
    _print_address(options, sock)
    run_app(service, sock, options)
    return 0


def _configure(options: ServerOptions) -> None:
    from driftbandit.service.bandits import Bandits
    from driftbandit.service.configfile import apply

    bandits = Bandits(options.db)
    try:
        for line in apply(str(options.config), bandits):
            print(line, flush=True)
    finally:
        bandits.close()


def _print_address(options: ServerOptions, sock: socket.socket) -> None:
    what = "watching" if options.watch else "serving"
    where = options.db.rsplit("@", 1)[-1] if is_url(options.db) else options.db
    if not options.quiet:
        print(f"{what} {where} at {address(sock)}  (API: {address(sock)}api)", flush=True)


# ---- several processes -----------------------------------------------------------------------------------------------


def _worker(options: ServerOptions, sock: socket.socket) -> None:
    run_app(make_service(options), sock, options)


def _many(options: ServerOptions) -> int:
    """Several processes that accept from one socket; one that dies is replaced."""
    from driftbandit.live.opening import writing

    writing(options.db).release()  # makes the tables once, before the workers open them
    context = multiprocessing.get_context("spawn")
    sock = bound(options.host, options.port)

    def begin() -> Any:
        process = context.Process(target=_worker, args=(options, sock), daemon=False)
        process.start()
        return process

    workers = [begin() for _ in range(options.workers)]
    _print_address(options, sock)
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
