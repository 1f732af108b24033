"""Running a service: its connections, and one process or several on one port, until SIGTERM. Accepted requests are
answered first."""

import contextlib
import gc
import logging
import multiprocessing
import os
import signal
import socket
import time
from importlib import metadata
from typing import Any, NamedTuple

import uvicorn

from driftbandit.bandit.opening import is_url, writing
from driftbandit.service.auth import Keys, is_local
from driftbandit.service.connection import Connection
from driftbandit.service.problems import configure_logging, log_event

_GRACE = 20  # seconds for accepted requests
_KEPT = 75  # seconds for an idle connection; proxies keep one for less, so they never send into a closed one
_CONNECTIONS = 4096


class ServerOptions(NamedTuple):
    """The options of `serve`, as plain values that can be passed to a worker process."""

    journal: str = "driftbandit.db"
    host: str = "127.0.0.1"
    port: int = 8000
    keys: str | None = None
    workers: int = 1
    proxies: str = "127.0.0.1"
    most: int = 512
    max_lag: float = 5.0
    max_open: int = 5_000
    watch: bool = False
    log_format: str = "text"
    exports: str | None = None

    @property
    def shown_journal(self) -> str:
        """The journal, without the user and password of an address."""
        return self.journal.rsplit("@", 1)[-1] if is_url(self.journal) else self.journal


def check_options(options: ServerOptions) -> None:
    """Refuse options that are unsafe or cannot work, before anything is opened."""
    if options.keys is not None and not os.path.exists(options.keys):
        raise ValueError(
            f"There is no file of keys {options.keys}; `driftbandit keys add {options.keys} NAME` makes one."
        )
    if options.keys is None and not is_local(options.host):
        raise ValueError(
            f"{options.host} can be reached from other machines, and there are no keys, so anyone could decide and "
            "change. Give --keys FILE (`driftbandit keys add FILE NAME` makes one), or stay on 127.0.0.1."
        )
    if options.workers > 1 and not is_url(options.journal):
        raise ValueError("A SQLite journal has one writing process; --workers needs a PostgreSQL one, postgresql://...")


def listen(host: str, port: int) -> socket.socket:
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

    bandits = (WatchedBandits if options.watch else Bandits)(options.journal, options.max_open)
    try:
        keys = None if options.keys is None else Keys(options.keys)
        if keys is not None:
            keys.all()  # a file that cannot be read is refused now
        return Service(bandits, keys, truth, options.most, options.max_lag, options.exports)
    except BaseException:
        bandits.close()
        raise


def run_service(service: Any, sock: socket.socket, options: ServerOptions, start: Any = None) -> None:
    """Serve on a socket until a signal."""
    from driftbandit.service.app import build

    configure_logging(options.log_format)
    gc.collect()
    gc.freeze()  # imported modules stay: the collector need not look at them while requests wait
    config = uvicorn.Config(
        build(service, start, options.proxies), http=Connection, log_config=None, log_level="warning", access_log=False,
        server_header=False, timeout_graceful_shutdown=_GRACE, timeout_keep_alive=_KEPT,
        limit_concurrency=_most_connections(), proxy_headers=False, lifespan="on", ws="none", backlog=2048,
    )  # fmt: skip
    version = metadata.version("driftbandit")
    log_event(
        logging.INFO, "start", address=address(sock), journal=options.shown_journal, pid=os.getpid(), version=version
    )
    uvicorn.Server(config).run(sockets=[sock])


def _most_connections() -> int:
    """Half of the files that the system lets this process open, after raising that limit as far as possible."""
    try:
        import resource
    except ImportError:  # a system without such limits
        return _CONNECTIONS
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):  # a system may forbid it
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return min(_CONNECTIONS, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)


def serve(options: ServerOptions) -> int:
    """Until SIGTERM or Ctrl-C."""
    check_options(options)
    if options.workers > 1:
        return _serve_with_workers(options)
    service = make_service(options)
    try:
        sock = listen(options.host, options.port)
    except BaseException:
        service.charts.close()
        service.bandits.close()
        raise
    _print_address(options, sock)
    run_service(service, sock, options)
    return 0


def _print_address(options: ServerOptions, sock: socket.socket) -> None:
    what = "watching" if options.watch else "serving"
    if options.log_format == "text":  # in JSON the line about the start has the address
        print(f"{what} {options.shown_journal} at {address(sock)}  (API: {address(sock)}api)", flush=True)


# ---- several processes -----------------------------------------------------------------------------------------------


def _run_worker(options: ServerOptions, sock: socket.socket) -> None:
    run_service(make_service(options), sock, options)


def _serve_with_workers(options: ServerOptions) -> int:
    """Several processes that accept from one socket; one that dies is replaced."""
    configure_logging(options.log_format)
    writing(options.journal).release()  # makes the tables once, before the workers open them
    context = multiprocessing.get_context("spawn")
    sock = listen(options.host, options.port)

    def begin() -> Any:
        process = context.Process(target=_run_worker, args=(options, sock), daemon=False)
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
                log_event(logging.ERROR, "a worker ended; starting another", pid=process.pid, code=process.exitcode)
                time.sleep(0.5)
                workers[place] = begin()
    for process in workers:
        process.terminate()
    for process in workers:
        process.join(_GRACE + 10)
    return 0
