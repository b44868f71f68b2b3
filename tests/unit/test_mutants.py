"""How `make mutants` prepares the code, and what it reports."""

import ast
import tomllib

import pytest

from tests.mutants import ROOT, SOURCE_ROOTS, report, undecorated

SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mutmut"]
SOURCE = """
import contextlib
from typing_extensions import override

class Counter:
    @property
    @override
    def is_new(self):
        return True

    @override
    def close(self): pass

@contextlib.contextmanager
def opened(name):
    yield [name]

@staticmethod
def kept(): pass
"""


def test_decorators_are_left_out_or_applied_below() -> None:
    """The code does the same then; others stay."""
    source = undecorated(SOURCE)
    assert [line for line in source.splitlines() if "@" in line] == ["@staticmethod"]
    made: dict[str, object] = {}
    exec(source, made)
    counter, opened = made["Counter"], made["opened"]
    assert isinstance(counter, type)
    assert counter().is_new is True
    assert callable(opened)
    with opened("a") as names:
        assert names == ["a"]


def test_the_mutated_modules_and_their_tests_exist() -> None:
    """Each pattern stands for a module of one of the source roots."""
    for pattern in SETTINGS["only_mutate"]:
        path = pattern.removeprefix("src/")
        found = [one for root in SOURCE_ROOTS for one in (ROOT / root).glob(path)]
        assert found, pattern
        for one in found:
            ast.parse(undecorated(one.read_text()))
    for test in SETTINGS["pytest_add_cli_args_test_selection"]:
        assert (ROOT / test).is_file()


def test_too_many_survivors_fail(capsys: pytest.CaptureFixture[str]) -> None:
    """They are listed by module; so does a run that was interrupted."""
    codes: dict[str, int | None] = {f"one.x_{number}": 1 for number in range(17)}
    codes |= {"two.x_1": 0, "two.x_2": 33, "two.x_3": 36}
    assert report(codes, ["*"]) == 0
    printed = capsys.readouterr().out
    assert "two.x_1\ntwo.x_2\n33.3% of 3 noticed in two\n" in printed
    assert "90.0% of 20 noticed" in printed
    assert report(codes, ["two.*"]) == 1
    assert report(codes | {"one.x_99": None}, ["*"]) == 1
    assert report({}, ["*"]) == 1
