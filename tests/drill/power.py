"""Power loss: what a process did to a SQLite journal is recorded, and the journal is opened as a disk may have it after
losing power at any moment: with what was flushed, and any part of the rest (`disk`).

A process is killed by `kill -9`, but its writes are kept by the system. Here the writes that were not flushed are lost
too, dropped or torn. PostgreSQL has its own log of writes and is not tested here."""

import contextlib
import logging
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from driftbandit.bandit.audit import audit
from driftbandit.bandit.opening import reading
from tests.drill.disk import Disk, Step, read_record
from tests.drill.load import bandit_for_drills, reward_of
from tests.drill.site import Finding, Site
from tests.drill.verify import losses

_COMPILER = shutil.which("gcc") or shutil.which("cc")
MISSING = "" if sys.platform == "linux" and _COMPILER else "power loss is tried on Linux, with gcc or cc"

JOURNAL, _NOTES, _TOGETHER = "journal.db", "notes", 20
_THREADS = 3
Lies = Callable[[str], bool]  # names: of which files and folders a flush does nothing
Session = tuple[str, str, tuple[Any, ...]]  # a module, a function of it, and words for it


class Tried(NamedTuple):
    """What was found in all images of a disk."""

    images: int
    acknowledged: int  # decisions and rewards at the end
    unopened: int  # images that could not be opened
    unproved: int  # images in which the audit found a difference, or that could not go on deciding
    lost: int  # acknowledged decisions and rewards that were not there
    doubled: int
    unasked: int  # decisions without a request
    first: str  # what was wrong first

    def __str__(self) -> str:
        text = f"{self.lost} lost, {self.doubled} doubled, {self.unasked} not asked for"
        return f"{text}; {self.unopened} images not opened, {self.unproved} not proved"

    @property
    def intact(self) -> bool:
        """Whether every journal could be opened, proved and used, with nothing doubled."""
        return self.images > 0 and not any((self.unopened, self.unproved, self.doubled, self.unasked))


# ---- the process whose power is lost ---------------------------------------------------------------------------------


def work(folder: str, prefix: str, calls: str, ending: str, durability: str = "disk", level: str = "") -> None:
    """Decide and reward with some threads, and note each id before a call and after its answer. Then close the bandit,
    or end as a crash does. With durability="none" a decision is certain once it is rewarded or the bandit is closed.
    `level` is another `synchronous` of SQLite, which is a fault to be found."""
    target, notes = os.path.join(folder, JOURNAL), os.open(os.path.join(folder, _NOTES), os.O_RDWR | os.O_CREAT, 0o600)
    os.lseek(notes, 0, os.SEEK_END)
    bandit = bandit_for_drills(target, snapshot_every=50, durability=durability)
    if level:
        bandit._journal._writer.execute(f"PRAGMA synchronous={level}")
    at_close: list[str] = []

    def note(word: str, *ids: str) -> None:
        os.write(notes, "".join(f"{word} {id}\n" for id in ids).encode())

    def loop(thread: int) -> None:
        for n in range(int(calls)):
            ids = [f"{prefix}-{thread}-{n}-{k}" for k in range(_TOGETHER if n % 10 == 9 else 1)]
            if durability == "none":
                ids = [bandit.decide().id]
                at_close.extend(ids)
            else:
                note("a", *ids)
                bandit.decide(ids[0]) if len(ids) == 1 else bandit.decide_many(ids)
                note("d", *ids)
            if len(ids) > 1:
                bandit.reward_many([(id, reward_of(id)) for id in ids])
            elif n % 4:
                bandit.reward(ids[0], reward_of(ids[0]))
            else:
                continue
            note("d", *ids)
            note("r", *ids)

    running = [threading.Thread(target=loop, args=(number,)) for number in range(_THREADS)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if ending == "crash":
        os._exit(0)
    bandit.close()
    note("d", *at_close)


def compile_recorder(folder: str) -> str:
    """The library to preload."""
    made = os.path.join(folder, "power.so")
    source = Path(__file__).with_name("power.c")
    words = [_COMPILER or "cc", "-shared", "-fPIC", "-O1", "-U_FORTIFY_SOURCE", "-w", "-o", made, str(source),
             "-ldl", "-lpthread"]  # fmt: skip
    subprocess.run(words, check=True, capture_output=True)
    return made


def recorded(site: Site, sessions: list[Session]) -> list[Step]:
    """What processes do, one after the other, to the files of a new folder; each calls a function with the
    folder and some words. The record is whole: it gives the files that are there."""
    place = tempfile.mkdtemp(dir=os.path.realpath(site.folder))
    folder, record = os.path.join(place, "disk"), os.path.join(place, "record")
    os.mkdir(folder)
    root = str(Path(__file__).parents[2])
    settings = {"LD_PRELOAD": compile_recorder(place), "POWER_FOLDER": folder, "POWER_RECORD": record}
    for module, name, words in sessions:
        code = f"import sys; from {module} import {name}; {name}(*sys.argv[1:])"
        given = [sys.executable, "-c", code, folder, *map(str, words)]
        done = subprocess.run(given, cwd=root, env={**os.environ, **settings}, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr)
    steps, disk = read_record(record), Disk()
    for step in steps:
        disk.apply(step)
    there = {path.relative_to(folder).as_posix(): path.read_bytes() for path in Path(folder).rglob("*")
             if path.is_file() and not path.name.endswith("-shm")}  # fmt: skip
    if there != disk.now():
        raise RuntimeError(f"The record is not whole: {sorted(there)} or their content differ from {disk.now().keys()}")
    shutil.rmtree(place)
    return steps


# ---- the disk afterwards ---------------------------------------------------------------------------------------------


def moments(steps: list[Step], count: int, chance: random.Random) -> list[int]:
    """After which steps to cut the power: half of them at any, half next to a rare one, when files are made, deleted,
    cut or renamed, or written to other than the WAL."""
    names, rare = Disk(), []
    for number, step in enumerate(steps):
        names.apply(step)
        usual = step.what in "ws" and names.name_of(step) in (JOURNAL + "-wal", _NOTES)
        if not usual and not (step.what == "o" and not step.flags & 1):
            rare += [max(0, number - 1), number]
    return sorted(chance.choice(rare) if n % 2 else chance.randrange(len(steps)) for n in range(count))


class Files(NamedTuple):
    """What is found on a disk after power loss, and the notes of the process."""

    content: dict[str, bytes]
    notes: bytes

    def write(self, folder: str) -> None:
        """Put them into a folder."""
        for name, content in self.content.items():
            Path(folder, name).parent.mkdir(parents=True, exist_ok=True)
            Path(folder, name).write_bytes(content)


def cut_power(
    steps: list[Step], at: list[int], seed: int, lies: Lies = lambda name: False
) -> Iterator[tuple[int, Files]]:
    """For each moment, in order: after which step it is, and the files as they may be found."""
    disk, done = Disk(lies), 0
    for number, moment in enumerate(at):
        while done <= moment:
            disk.apply(steps[done])
            done += 1
        found = disk.after_power_loss(seed * 1_000_003 + number)
        found.pop(_NOTES, None)
        yield moment, Files(found, disk.now().get(_NOTES, b""))


def noted(notes: bytes) -> dict[str, set[str]]:
    """The ids asked for (a), decided (d) and rewarded (r)."""
    out: dict[str, set[str]] = {"a": set(), "d": set(), "r": set()}
    for line in notes.decode().splitlines():
        out[line[0]].add(line[2:])
    return out


def stored(target: str) -> dict[str, bool]:
    """The ids in a journal, and whether each has an outcome."""
    journal = reading(target)
    try:
        number = journal.bandits()["drill"]
        rewarded = {event.decision for _, event in journal.events(number)}
        return {row.id: row.id in rewarded for row in journal.decisions(number)}
    finally:
        journal.close()


def look(folder: str, said: dict[str, set[str]], total: Counter[str], **options: Any) -> str:
    """Open a journal as it was found, work on, and compare it with what had been acknowledged; what is wrong."""
    target = os.path.join(folder, JOURNAL)
    try:
        with bandit_for_drills(target, **options) as bandit:
            bandit.decide("after")
            bandit.reward("after", reward_of("after"))
        found = losses(target, said["d"], said["r"])
        differences = [text for report in audit(target) for text in report.differences]
        ids = set(stored(target))
    except Exception as error:
        total["unopened"] += 1
        return f"{type(error).__name__}: {error}"
    unasked = ids - said["a"] - {"after"} if said["a"] else set()
    total["unproved"] += bool(differences or found.bits_differ)
    total["lost"] += found.decisions_lost + found.rewards_lost
    total["doubled"] += found.doubled
    total["unasked"] += len(unasked)
    wrong = [str(found)] if any(found) else []
    return "; ".join(wrong + differences + [f"{id} was not asked for" for id in sorted(unasked)[:3]])


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Damage is counted, not logged."""
    logging.disable()
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


def try_images(
    site: Site, steps: list[Step], count: int, seed: int, lies: Lies = lambda name: False, **options: Any
) -> Tried:
    """Cut the power at so many moments, and look at each disk."""
    at = moments(steps, count, random.Random(seed))
    total, first = Counter[str](), ""
    said = noted(b"")
    for moment, files in cut_power(steps, at, seed, lies):
        said = noted(files.notes)
        with tempfile.TemporaryDirectory(dir=site.folder) as folder:
            files.write(folder)
            if JOURNAL in files.content and moment % 2:  # the index of the WAL may be left with anything in it
                Path(folder, JOURNAL + "-shm").write_bytes(random.Random(moment).randbytes(32768))
            with quiet():
                wrong = look(folder, said, total, **options)
        first = first or (wrong and f"after step {moment} of {len(steps)}: {wrong}")
    acknowledged = len(said["d"]) + len(said["r"])
    counts = (total[name] for name in ("unopened", "unproved", "lost", "doubled", "unasked"))
    return Tried(len(at), acknowledged, *counts, first)


# ---- findings --------------------------------------------------------------------------------------------------------


def sessions(calls: int, *rest: str) -> list[Session]:
    """A process that makes the journal and closes it, one that goes on and crashes, and one that goes on."""
    return [(__name__, "work", (f"s{n}", calls, ending, *rest)) for n, ending in enumerate(("close", "crash", "close"))]


def finding(site: Site, title: str, tried: Tried, good: bool) -> Finding:
    """One line of the table; with what was wrong first, if the promise was broken."""
    result = str(tried) + ("" if good or not tried.first else f"; {tried.first:.300}")
    return Finding(title, site.kind, f"{tried.images} images, {tried.acknowledged} acknowledged", result, good)


def power_loss(site: Site, count: int, seed: int = 1) -> Iterator[Finding]:
    """The promise of each durability; and faults that must be found, which show that the drill can fail."""
    calls, fewer = (60 if count < 200 else 200), max(20, count // 5)
    steps = recorded(site, sessions(calls))
    tried = try_images(site, steps, count, seed)
    yield finding(site, "power loss", tried, tried.intact and not tried.lost)
    tried = try_images(site, recorded(site, sessions(calls, "none")), fewer, seed, durability="none")
    yield finding(site, 'power loss, durability="none"', tried, tried.intact and not tried.lost)
    tried = try_images(site, steps, fewer, seed, lambda name: True)
    yield finding(site, "to be found: a disk that lies", tried, tried.lost > 0)
    tried = try_images(site, recorded(site, sessions(calls, "disk", "NORMAL")), fewer, seed)
    yield finding(site, "to be found: synchronous=NORMAL", tried, tried.lost > 0)
