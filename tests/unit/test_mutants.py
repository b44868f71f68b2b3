"""`make mutants` prepares the code and reports the mutants that no test noticed."""

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


def test_decorators_are_removed_or_applied_after_the_definition() -> None:
    """The code behaves the same. Decorators such as `staticmethod` stay."""
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
    """Each pattern of the settings matches modules in a source root."""
    for pattern in SETTINGS["only_mutate"]:
        path = pattern.removeprefix("src/")
        found = [one for root in SOURCE_ROOTS for one in (ROOT / root).glob(path)]
        assert found, pattern
        for one in found:
            ast.parse(undecorated(one.read_text()))
    for test in SETTINGS["pytest_add_cli_args_test_selection"]:
        assert (ROOT / test).is_file()


def test_too_many_survivors_fail(capsys: pytest.CaptureFixture[str]) -> None:
    """Survivors are listed by module. An interrupted or empty run also fails."""
    codes: dict[str, int | None] = {f"one.x_{number}": 1 for number in range(17)}
    codes |= {"two.x_1": 0, "two.x_2": 33, "two.x_3": 36}
    assert report(codes, ["*"]) == 0
    printed = capsys.readouterr().out
    assert "two.x_1\ntwo.x_2\n33.3% of 3 noticed in two\n" in printed
    assert "90.0% of 20 noticed" in printed
    assert report(codes, ["two.*"]) == 1
    assert report(codes | {"one.x_99": None}, ["*"]) == 1
    assert report({}, ["*"]) == 1
