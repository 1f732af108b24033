"""A disk that loses power: from a record of what a process did to the files of a folder (`power.c`), the folder as it
may be found afterwards.

A flush (fsync) makes the content of one file certain, or the names in one folder. Everything since then is uncertain.
Of the writes to a file, none, all, some first ones or any others may be on the disk, whole or by sectors of 512 bytes.
The length of a file may be on the disk before the data are, which then read as zeros or as noise, or after them.
Each name in a folder may be as after any of its changes, whatever became of the other names."""

import os
import random
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

_HEAD = struct.Struct("=IIQQQ")
_SECTOR = 512


class Step(NamedTuple):
    """One call of the process, as `power.c` wrote it."""

    what: str  # o open, w write, t length, s flush, u unlink, r rename, d mkdir, x not recorded
    flags: int  # of o: 1 made by this call, 2 a folder
    file: int
    offset: int
    data: bytes


def read_record(path: str) -> list[Step]:
    """The calls in their order."""
    whole, place, out = Path(path).read_bytes(), 0, []
    while place < len(whole):
        what, flags, file, offset, length = _HEAD.unpack_from(whole, place)
        place += _HEAD.size
        out.append(Step(chr(what), flags, file, offset, whole[place : place + length]))
        place += length
    return out


class File:
    """What is certain of a file, and what was done to it since: bytes at an offset, or None and a new length."""

    def __init__(self, folder: bool = False) -> None:
        self.folder = folder
        self.certain = bytearray()
        self.since: list[tuple[int, bytes | None]] = []

    def flush(self) -> None:
        for change in self.since:
            _apply(self.certain, change)
        self.since.clear()

    def now(self) -> bytes:
        """As the running system reads it."""
        out = bytearray(self.certain)
        for change in self.since:
            _apply(out, change)
        return bytes(out)

    def after_power_loss(self, chance: random.Random) -> bytes:
        """As it may be on the disk."""
        out, count = bytearray(self.certain), len(self.since)
        if not count or (way := chance.choice(("nothing", "all", "first", "some", "sectors", "sectors"))) == "nothing":
            return bytes(out)
        if way == "first":
            last = chance.randrange(count)
            for change in self.since[:last]:
                _apply(out, change)
            for part in _sectors(self.since[last]):
                if chance.random() < 0.5:
                    _apply(out, part)
        elif way == "sectors":  # each is as after any of its writes
            reached: dict[int, int] = {}
            for number, change in enumerate(self.since):
                for part in _sectors(change):
                    sector = -1 if part[1] is None else part[0] // _SECTOR
                    if number < reached.setdefault(sector, chance.randint(0, count)):
                        _apply(out, part)
        else:
            share = 1.0 if way == "all" else chance.choice((0.1, 0.5, 0.9))
            for change in self.since:
                if chance.random() < share:
                    _apply(out, change)
        self._change_length(out, chance)
        return bytes(out)

    def _change_length(self, out: bytearray, chance: random.Random) -> None:
        """Now and then the length is on the disk before the data, or after them."""
        longest = max([len(out), *(offset + len(data) for offset, data in self.since if data is not None)])
        way = chance.choice(("zeros", "noise", "former", "", "", ""))
        if way == "zeros":
            out.extend(bytes(longest - len(out)))
        elif way == "noise":
            out.extend(chance.randbytes(longest - len(out)))
        elif way == "former" and len(out) > len(self.certain):
            del out[len(self.certain) :]


def _apply(content: bytearray, change: tuple[int, bytes | None]) -> None:
    offset, data = change
    if len(content) < offset:
        content.extend(bytes(offset - len(content)))
    if data is None:
        del content[offset:]
    else:
        content[offset : offset + len(data)] = data


def _sectors(change: tuple[int, bytes | None]) -> Iterator[tuple[int, bytes | None]]:
    offset, data = change
    if data is None:
        yield change
        return
    start = 0
    while start < len(data):
        end = min(len(data), start + _SECTOR - (offset + start) % _SECTOR)
        yield offset + start, data[start:end]
        start = end


class Disk:
    """The files of one folder by name, "" for the folder. `lies` picks files and folders of which a flush does nothing,
    as with a disk that answers before it has written."""

    def __init__(self, lies: Callable[[str], bool] = lambda name: False) -> None:
        self._lies = lies
        self._opened: dict[int, tuple[str, File]] = {}
        self._names: dict[str, File] = {}
        self._certain: dict[str, File] = {}
        self._since: dict[str, list[File | None]] = {}  # what each name stood for, after each of its changes

    def name_of(self, step: Step) -> str:
        """The name of the file of a write or a flush."""
        return self._opened[step.file][0]

    def apply(self, step: Step) -> None:
        """Do what the process did."""
        if step.what == "o":
            name = step.data.decode()
            if step.flags & 1:
                self._name(name, File())
            if step.flags & 2 and name not in self._names:
                self._names[name] = File(folder=True)
            self._opened[step.file] = name, self._names[name]
        elif step.what == "w":
            self._opened[step.file][1].since.append((step.offset, step.data))
        elif step.what == "t":
            self._opened[step.file][1].since.append((step.offset, None))
        elif step.what == "s":
            name, file = self._opened[step.file]
            if not self._lies(name):
                self._flush_names(name) if file.folder else file.flush()
        elif step.what == "u":
            self._name(step.data.decode(), None)
        elif step.what == "d":
            self._name(step.data.decode(), File(folder=True))
        elif step.what == "r":
            old, new = step.data.decode().split("\0")
            file = self._names[old]
            self._name(old, None)
            self._name(new, file)
        else:
            raise ValueError(f"The process did something that is not recorded: {step}")

    def _name(self, name: str, file: File | None) -> None:
        if file is None:
            del self._names[name]
        else:
            self._names[name] = file
        self._since.setdefault(name, []).append(file)

    def _flush_names(self, folder: str) -> None:
        for name in [name for name in self._since if os.path.dirname(name) == folder]:
            file = self._since.pop(name)[-1]
            if file is None:
                self._certain.pop(name, None)
            else:
                self._certain[name] = file

    def now(self) -> dict[str, bytes]:
        """The files as the running system reads them."""
        return {name: file.now() for name, file in self._names.items() if not file.folder}

    def after_power_loss(self, seed: int) -> dict[str, bytes]:
        """The files as they may be found."""
        chance, found = random.Random(seed), dict(self._certain)
        for name, states in self._since.items():
            reached = chance.choice((0, len(states), chance.randint(0, len(states))))
            file = states[reached - 1] if reached else self._certain.get(name)
            if file is None:
                found.pop(name, None)
            else:
                found[name] = file
        out = {}
        for name, file in found.items():
            parents = [parent.as_posix() for parent in Path(name).parents][:-1]
            if not file.folder and all(parent in found for parent in parents):
                out[name] = file.after_power_loss(chance)
        return out
