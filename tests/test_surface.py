"""What people import: the names are there, they are what they say, and an editor knows them."""

import ast
import importlib
import inspect
import re
from pathlib import Path

import pytest

import driftbandit
import driftbandit.environments
import driftbandit.lab
import driftbandit.policies
from driftbandit.cli import _main as commands
from driftbandit.spec.parse import policies

LAB = ["Result", "Simulation", "Study", "Variants", "load_study", "plot", "run", "simulate"]


def test_the_policies_package_names_exactly_the_policies_there_are():
    assert sorted(driftbandit.policies.__all__) == sorted(policies()), "run `make format`"
    assert all(getattr(driftbandit.policies, name) is cls for name, cls in policies().items())


def test_a_type_checker_sees_the_same_policies():
    tree = ast.parse(Path(driftbandit.policies.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.name: node.module for node in block.body for alias in node.names}
    assert seen == {name: cls.__module__ for name, cls in policies().items()}, "run `make format`"


def test_a_misspelt_policy_gets_the_nearest_one():
    with pytest.raises(AttributeError, match="did you mean SlidingTS"):
        driftbandit.policies.SlidngTS  # noqa: B018


def test_the_lab_offers_these_names_and_explains_each():
    assert sorted(driftbandit.lab.__all__) == sorted(LAB)
    assert all(inspect.getdoc(getattr(driftbandit.lab, name)) for name in LAB)


def test_every_public_name_exists_and_says_what_it_is():
    for package in (driftbandit, driftbandit.environments, driftbandit.lab, driftbandit.policies):
        for name in package.__all__:
            if not name.startswith("__"):
                assert inspect.getdoc(getattr(package, name)), f"{package.__name__}.{name}"


# Where the function is that a command calls, named as the command. `list` shows text, `keys` and
# `live` are several verbs each (those of `Bandit`), `serve` adds `watch` and `demo`.
FUNCTIONS = {
    "audit": "driftbandit.bandit.audit",
    "drift": "driftbandit.logs",
    "export": "driftbandit.bandit.export",
    "field": "driftbandit.field.contest",
    "replay": "driftbandit.logs",
    "reproduce": "driftbandit.paper.reproduction",
    "run": "driftbandit.lab",
    "serve": "driftbandit.service.server",
    "theory": "driftbandit.paper.theory",
}
OTHERS = {"list", "keys", "live"}


def test_every_command_calls_a_documented_function_of_its_name():
    names = {module.__name__.rpartition(".")[2]: module for module in commands.modules()}
    assert names.keys() == FUNCTIONS.keys() | OTHERS
    for name, home in FUNCTIONS.items():
        function = getattr(importlib.import_module(home), name)
        assert inspect.isfunction(function), name
        assert inspect.getdoc(function), name
        assert re.search(rf"\b{name}\(", inspect.getsource(names[name])), name


def test_every_command_describes_itself_and_does_one_thing():
    for module in commands.modules():
        assert callable(module.add_parser)
        assert callable(module.run)
