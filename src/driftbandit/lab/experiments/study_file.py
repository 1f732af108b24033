"""A study from a file: TOML, or Python with a `STUDY`. What is wrong in it is named with its table and key."""

import re
import tomllib
from pathlib import Path
from typing import Any

from driftbandit.checks import nearest
from driftbandit.lab.experiments.study import Study, Variants
from driftbandit.text import user_code
from driftbandit.text.load import rooted
from driftbandit.text.registry import SpecError

_PLAIN = ("title", "horizon", "runs", "seed", "checkpoints", "reference", "drift")
_KEYS = (*_PLAIN, "policies", "environments", "policy", "environment")
_KINDS: dict[str, Any] = {"title": str, "reference": str, "drift": bool}


class StudyError(SpecError):
    """A study file with a mistake; the message names the file and the place in it."""


def load(path: str | Path) -> Study:
    """The study in a file, whose own folder is where the paths in it begin."""
    path = Path(path)
    if path.suffix == ".py":
        study = getattr(user_code.file_module(path), "STUDY", None)
        if not isinstance(study, Study):
            raise StudyError(f"{path.name} defines no STUDY = Study(...); see `driftbandit init study.py`.")
        return study
    if path.suffix != ".toml":
        raise StudyError(f"A study is a file that ends in .toml or .py; got {str(path)!r}.")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise StudyError(
            f"Cannot read {str(path)!r}: {getattr(error, 'strerror', None) or 'it is not text in UTF-8'}."
        ) from None
    return loads(text, path.name, path.resolve().parent)


def loads(text: str, name: str = "study.toml", folder: str | Path = ".") -> Study:
    """The study in a text; paths of users' files in it begin in `folder`."""
    try:
        data = tomllib.loads(text)
    except RecursionError:
        raise StudyError(f"{name}: its tables or lists are nested too deeply.") from None
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        at = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)", message)
        line = f", line {at[1]}" if at and at[1] else ""
        raise StudyError(f"{name}{line}: this is not valid TOML: {message[: at.start()] if at else message}.") from None
    return _Reader(name, folder).study(data)


class _Reader:
    """Checks a study's parts one after the other, knowing where each stands."""

    def __init__(self, name: str, folder: str | Path) -> None:
        self.name, self.folder = name, folder

    def study(self, data: dict[str, Any]) -> Study:
        """The study, or the first mistake in it."""
        for key in data:
            if key not in _KEYS:
                raise self._wrong(
                    f"there is no key {key!r}{nearest(key, _KEYS) or '.'} The keys are: {', '.join(_KEYS)}.", [key]
                )
        for key in _PLAIN:
            kind = _KINDS.get(key, int)
            if key in data and (not isinstance(data[key], kind) or (kind is int and isinstance(data[key], bool))):
                wanted = {str: "a text in quotes", bool: "true or false", int: "a whole number"}[kind]
                raise self._wrong(f"{key} needs {wanted}; got {data[key]!r:.60}.", [key])
        policies = self._items(data, "policies", "policy")
        worlds = self._items(data, "environments", "environment")
        plain = {key: data[key] for key in _PLAIN if key in data}
        try:
            study = Study([item for item, _ in policies], [item for item, _ in worlds], **plain)
        except (ValueError, TypeError) as error:
            guilty = [key for key in (*_PLAIN, "policies", "environments") if key in str(error)]
            raise self._wrong(str(error), guilty[:1]) from None
        self._try(study, policies, worlds)
        return study

    def _items(self, data: dict[str, Any], several: str, single: str) -> list[tuple[Any, list[Any]]]:
        """What `policies = [...]` and the `[[policy]]` tables list, each with where it stands."""
        listed = data.get(several, [])
        if not isinstance(listed, list) or not all(isinstance(text, str) for text in listed):
            raise self._wrong(f'{several} needs a list of texts, such as ["ds-ts.tuned", "ts"].', [several])
        tables = data.get(single, [])
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            raise self._wrong(f"write each {single} with lists as a table of its own under [[{single}]].", [single])
        items: list[tuple[Any, list[Any]]] = [
            (Variants(rooted(text, self.folder), " ".join(text.split())), [several, text]) for text in listed
        ]
        for number, table in enumerate(tables):
            items.append((self._variants(dict(table), single, number), [single, number]))
        if not items:
            raise self._wrong(f'nothing to play: give {several} = ["..."] or [[{single}]] tables.', [several])
        return items

    def _variants(self, table: dict[str, Any], single: str, number: int) -> Variants:
        what, label, together = table.pop("text", None), table.pop("label", None), table.pop("together", False)
        place = [single, number]
        if not isinstance(what, str):
            hint = nearest("text", table) or "."
            raise self._wrong(f'this {single} needs text = "...", such as "ds-ts"{hint}', place)
        if not isinstance(label, str | None) or not isinstance(together, bool):
            raise self._wrong("label needs a text in quotes, together true or false.", place)
        flat = _flat(table)
        for key, value in flat.items():
            try:
                Variants(what, **{key: value})
            except ValueError as error:
                raise self._wrong(str(error), [*place, key]) from None
        try:
            return Variants(rooted(what, self.folder), label or " ".join(what.split()), together, **flat)
        except ValueError as error:
            raise self._wrong(str(error), place) from None

    def _try(self, study: Study, policies: list[tuple[Any, list[Any]]], worlds: list[tuple[Any, list[Any]]]) -> None:
        """Make every variant once, so that a wrong value is found before any work is done."""
        firsts = []
        for item, place in worlds:
            try:
                made = [world for _, world in study.worlds(item)]  # all of them, to find any wrong value
                firsts.append(made[0])
            except (ValueError, TypeError) as error:
                raise self._wrong(str(error), self._guilty(item, place, str(error))) from None
        for item, place in policies:
            for world in firsts:
                try:
                    for _ in study.variants(item, world):
                        pass
                except (ValueError, TypeError) as error:
                    raise self._wrong(f"{error} (in {world!r:.80})", self._guilty(item, place, str(error))) from None

    @staticmethod
    def _guilty(item: Variants, place: list[Any], message: str) -> list[Any]:
        """The key a message speaks of, if it is one of the table's."""
        said = message.split(" It has: ")[0]
        named = [key for key in item.values if repr(key.split(".")[0]) in said] or [
            key for key in item.values if re.search(rf"\b{re.escape(key.split('.')[-1])}\b", said)
        ]
        return [*place, named[0]] if named else ([*place, "text"] if isinstance(place[1], int) else place)

    def _wrong(self, message: str, place: list[Any]) -> StudyError:
        return StudyError(f"{self.name}{_where(place)}: {message}")


def _where(place: list[Any]) -> str:
    """A key of the file, a text in one of its lists, or the n-th table of a name and perhaps a key in it, in words.

    >>> _where(["policy", 1, "gamma"])
    ', [[policy]] number 2, gamma'
    """
    if not place:
        return ""
    if len(place) > 1 and isinstance(place[1], int):
        return f", [[{place[0]}]] number {place[1] + 1}" + (f", {place[2]}" if len(place) > 2 else "")
    return f", {place[0]}" + (f", {place[1]!r}" if len(place) > 1 else "")


def _flat(table: dict[str, Any], before: str = "") -> dict[str, Any]:
    """Nested tables as dotted names: `law.sd = 0.1` in TOML is a table within a table. A range stays what it is."""
    out: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict) and not {"from", "to", "count"} & set(value):
            out |= _flat(value, f"{before}{key}.")
        else:
            out[before + key] = value
    return out
