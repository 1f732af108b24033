"""The page of errors, from the code: every exception that is raised on purpose, its messages, its causes and cures.

Classes and messages are read from the sources; causes and cures are written here, and a class without an entry is
refused."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "src" / "driftbandit"
_BASE = "DriftbanditError"
_HEAD = """# Troubleshooting: every error, its cause and its cure

Every exception that driftbandit raises on purpose is a `DriftbanditError`; `from driftbandit.errors import ...` or the
module named below has it. Wrong arguments are plain `ValueError` and `TypeError`, with a sentence about what is
allowed. Over HTTP the same sentences come with a status: 404 for `NotFound`, 409 for `RecordConflict`, 401 and 403 for
`AccessDenied`, 503 for a store that does not keep up, and 422 for wrong arguments.

In the messages, "…" stands for a value. An error never changes anything: what was refused was not written.

"""
_ENTRIES = {
    "DriftbanditError": (
        "It is not raised itself.",
        "Catch it to catch everything below.",
    ),
    "NotFound": (
        "The id of a reward, or the name of a bandit, does not exist here. Often the reward goes to another "
        "journal than the decision, or a bandit in memory was restarted.",
        "Report rewards to the journal that decided, with the id from `decide()`. Give `arms=[...]` to make a bandit.",
    ),
    "Archived": (
        "Someone archived the bandit, by `archive()`, `driftbandit live archive` or over HTTP (status 410).",
        "`unarchive()` undoes it within a day; `changes()` shows who archived it.",
    ),
    "Moved": (
        "The bandit was moved to another database (`driftbandit live move`), and decides there.",
        "Send the call to the address in the message, with the same id ([moving](../how-to/fleet.md#move-bandits)).",
    ),
    "ContextError": (
        "A context has a name that is not a feature, a value of another kind than its feature, or too many bytes; "
        "or there are none or too many candidates.",
        "The message names the feature and what it takes. Leave out what is not known.",
    ),
    "RecordConflict": (
        "Two different things were sent under one id: another reward for a decision that has one, or other "
        "available arms for a decision that was made. A change of configuration meets another change at the "
        "same time.",
        "Use one id per decision, and report its reward once. The first record is kept, so there is nothing "
        "to repair. Repeat a change of configuration after reading the new one.",
    ),
    "DamagedJournal": (
        "The file is not a journal, was written by a version with other tables, or was altered, truncated or "
        "overwritten. A journal that names your own policy class is refused too if the class is not "
        "given.",
        "Run `driftbandit audit` on it, which names the first difference, and restore a backup. Give classes "
        "as `policies={...}`.",
    ),
    "StoreError": (
        "The disk is full, the database does not answer, does not allow the write, or is not there. A forked worker "
        "that uses its parent's bandit gets it too.",
        "Mend the store, and send the call again with the same id; what was written the first time is found, not "
        "doubled. Nothing that was acknowledged is lost. In a forked worker, open the bandit after the fork.",
    ),
    "JournalLocked": (
        "Another process has this SQLite journal open for writing.",
        "Let one process write, or use PostgreSQL or `driftbandit serve` for several "
        "([workers](../how-to/web-service.md#workers)).",
    ),
    "JournalReplaced": (
        "The file was moved, replaced or deleted while it was open, or the address now leads to another database.",
        "Stop the program, put the right journal in place (with a SQLite backup, delete the `-wal` and `-shm`"
        " files next to it), and start again.",
    ),
    "StoreBusy": (
        "More calls wait for the store than it can take: traffic beyond its rate, or a disk that hangs.",
        "Send the call again in a moment, with the same id. If it goes on, look at `driftbandit_queue_length`"
        " ([operating](../how-to/operate.md#watch)), use `decide_many`, or a faster disk.",
    ),
    "AccessDenied": (
        "A service needs a key and got none that it accepts (401), or one without the scope or the bandit (403).",
        "Give a key by `key=` or `DRIFTBANDIT_KEY`. `driftbandit keys show keys.json` shows scopes and "
        "bandits of each key ([keys](../how-to/service-security.md#keys)).",
    ),
    "SpecError": (
        "A text does not name a policy, an environment or a law of rewards, or a parameter is misspelt or out"
        " of range.",
        "`driftbandit list policies` and `driftbandit list NAME` show names and parameters. The message names"
        " the nearest.",
    ),
    "StudyError": (
        "A study file has a mistake: an unknown key, a value of the wrong kind, or a policy that cannot be made.",
        "The message names the place in the file. `driftbandit run --init study.toml` writes one with comments.",
    ),
    "PolicyError": (
        "Your own policy lacks a method, has other parameters, returns no arm, keeps a state that a "
        "journal cannot hold, or takes random numbers from elsewhere than `rng`.",
        "The message names the file, the method and the line. [The "
        "rules](../how-to/own-policy.md#rules-for-fast-policies) are short.",
    ),
    "NotCompiled": (
        "`simulate(compiled=True)` was asked for, and your own policy or environment can only be interpreted.",
        "Change the line that the message names, or leave `compiled` out: it is then interpreted, more slowly.",
    ),
    "WorkerError": (
        "The library of `--executor` is not installed, no worker came, a worker has other code or versions, "
        "or the cluster failed.",
        "Install the extra (`dask` or `ray`), install the same packages on every worker, and run the command "
        "again: finished chunks are kept ([scale out](../how-to/cluster.md)).",
    ),
    "ResultError": (
        "A file is not a result, or not a whole one.",
        "Run the study again; finished chunks in its folder are reused.",
    ),
    "LogError": (
        "A log has a fault in a row, lacks a column or propensities, or holds too little to answer the question.",
        "The message names the row and the cure. [What a log is](../how-to/logs.md#what-a-log-is) lists the columns.",
    ),
    "NotComputed": (
        "A claim of the paper was asked about, and the run did not include the items that it needs.",
        "Name those items in `driftbandit reproduce`, or none, which runs all of them.",
    ),
    "MissingPackage": (
        "A command needs a package of an extra that is not installed.",
        "Install the extra that the message names.",
    ),
    "UsageError": (
        "A command line that cannot be read: an unknown option, or a missing or surplus argument.",
        "The message names the nearest option; `driftbandit COMMAND --help` lists all of them.",
    ),
    "HttpProblem": (
        "The service refuses a request; a client in Python gets one of the classes above instead.",
        "The answer is JSON with `error`, a sentence, and `kind`, a word that programs can compare.",
    ),
}


def write(path: Path) -> None:
    """A section per class: its meaning, cause, cure and messages."""
    nodes = list(_nodes())
    found = classes(nodes)
    missing = set(found) ^ set(_ENTRIES)
    if missing:
        raise ValueError(f"Every exception needs an entry in {Path(__file__).name}, and only those: {sorted(missing)}.")
    parts, said = [_HEAD], messages(nodes, set(found))
    for name, (module, base, doc) in found.items():
        cause, cure = _ENTRIES[name]
        parts.append(f"## {name}\n\n{doc} Module `{module}`, base `{base}`.\n\n")
        parts.append(f"**Cause.** {cause}\n\n**Cure.** {cure}\n\n")
        if said[name]:
            parts.append("Messages:\n\n" + "".join(f"- {text}\n" for text in sorted(said[name])) + "\n")
    path.write_text("".join(parts).rstrip("\n") + "\n", encoding="utf-8")


def classes(nodes: list[tuple[str, ast.AST]]) -> dict[str, tuple[str, str, str]]:
    """Module, bases and docstring of every exception, those of `driftbandit.errors` first."""
    found = {_BASE: ("driftbandit.errors", "Exception", "")}
    defined = [(module, node) for module, node in nodes if isinstance(node, ast.ClassDef)]
    for _ in range(3):  # a class may come after the file of its subclass
        for module, node in defined:
            bases = [ast.unparse(base) for base in node.bases]
            if node.name == _BASE or set(bases) & set(found):
                found[node.name] = (module, "`, `".join(bases), " ".join((ast.get_docstring(node) or "").split()))
    return found


def messages(nodes: list[tuple[str, ast.AST]], names: set[str]) -> dict[str, set[str]]:
    """What the code says when it raises each exception, with an ellipsis for every value."""
    found: dict[str, set[str]] = {name: set() for name in names}
    for _, node in nodes:
        if isinstance(node, ast.Call) and node.args:
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            texts = [_text(argument) for argument in node.args[:2]]
            if called in names and len(re.findall(r"\w", texts[0])) > 5:  # more than values
                found[called].add(_escape(texts[0]))
            elif called == "refuse" and len(texts) == 2 and all(texts):
                found["LogError"].add(_escape(f"{texts[0][:1].upper()}{texts[0][1:]}. {texts[1]}"))
    return found


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) if isinstance(part, ast.Constant) else "…" for part in node.values)
    return ""


def _escape(text: str) -> str:
    return " ".join(text.split()).replace("*", "\\*").replace("[", "\\[").replace("<", "\\<").replace("_", "\\_")


def _nodes() -> Iterator[tuple[str, ast.AST]]:
    paths = sorted(SOURCES.rglob("*.py"), key=lambda path: (path.name != "errors.py", path.as_posix()))
    for path in paths:
        module = ".".join(path.relative_to(SOURCES.parent).with_suffix("").parts).removesuffix(".__init__")
        text = path.read_text(encoding="utf-8")
        if "Error" in text or "driftbandit.errors" in text:
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.ClassDef | ast.Call):
                    yield module, node
