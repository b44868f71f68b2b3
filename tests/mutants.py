"""`make mutants`: which small changes of the code does no test notice?

mutmut wants one source root named ``src``, and mutates no function with a decorator. It therefore
works on a copy in ``.mutants``, in which the source roots are joined, ``@override`` is left out, and
other decorators are applied below their function.
"""

import argparse
import ast
import fnmatch
import json
import os
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
COPY = ROOT / ".mutants"
SOURCE_ROOTS = ("shared", "services", "workers")
MIN_SCORE = 0.85
IGNORED = "override"
MOVED = {"property", "contextlib.contextmanager"}
SURVIVED = {0, 5, 33}  # exit codes: all tests passed, or no test calls the function


def main() -> int:
    """Run mutmut, list what survived, and fail below the score."""
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("modules", nargs="*", help="such as `ledger`; without any, all of them")
    parser.add_argument("--children", type=int, default=os.cpu_count(), help="tests at a time")
    arguments = parser.parse_args()
    patterns = [f"*.{module}.*" for module in arguments.modules]
    stage()
    forget_survivors()
    command = [Path(sys.executable).with_name("mutmut"), "run", *patterns]
    subprocess.run([*command, "--max-children", str(arguments.children)], cwd=COPY, check=True)
    return report(patterns or ["*"])


def stage() -> None:
    """Update the copy; files that are the same keep their time, so that their results are kept."""
    mutated = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mutmut"]["only_mutate"]
    wanted = {Path("pyproject.toml"): ROOT / "pyproject.toml"}
    for folder in SOURCE_ROOTS:
        wanted |= {Path("src", path.relative_to(ROOT / folder)): path for path in files(folder)}
    wanted |= {path.relative_to(ROOT): path for path in files("tests")}
    for target, source in wanted.items():
        content = source.read_bytes()
        if any(fnmatch.fnmatch(str(target), pattern) for pattern in mutated):
            content = undecorated(content.decode()).encode()
        copy = COPY / target
        if not copy.is_file() or copy.read_bytes() != content:
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(content)
    for folder in ("src", "tests"):
        for copy in files(COPY / folder):
            if copy.relative_to(COPY) not in wanted:
                copy.unlink()
                (COPY / "mutants" / copy.relative_to(COPY)).unlink(missing_ok=True)


def files(folder: str | Path) -> Iterator[Path]:
    """The files below a folder, without compiled ones."""
    for path in (ROOT / folder).rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path


def undecorated(source: str) -> str:
    """The same module without decorators that mutmut does not know."""
    lines = source.splitlines()
    functions = [one for one in ast.walk(ast.parse(source)) if isinstance(one, ast.FunctionDef)]
    for function in sorted(functions, key=lambda one: one.lineno, reverse=True):
        names = [ast.unparse(one) for one in function.decorator_list]
        if names and MOVED.union([IGNORED]).issuperset(names):
            name, margin = function.name, " " * function.col_offset
            for decorator in names:
                if decorator in MOVED:
                    lines.insert(function.end_lineno or 0, f"{margin}{name} = {decorator}({name})")
            del lines[function.decorator_list[0].lineno - 1 : function.lineno - 1]
    return "\n".join([*lines, ""])


def forget_survivors() -> None:
    """Test them again: there may be other tests now."""
    for path in COPY.glob("mutants/src/**/*.meta"):
        result = json.loads(path.read_text())
        codes = result["exit_code_by_key"]
        again = {name: None for name, code in codes.items() if code in SURVIVED}
        if again:
            path.write_text(json.dumps(result | {"exit_code_by_key": codes | again}))


def report(patterns: list[str]) -> int:
    """Print survivors and scores.

    Returns:
        The exit status: 0 if enough mutants were killed.
    """
    total: dict[str, int] = defaultdict(int)
    survivors: dict[str, list[str]] = defaultdict(list)
    for path in sorted(COPY.glob("mutants/src/**/*.meta")):
        for name, code in json.loads(path.read_text())["exit_code_by_key"].items():
            if code is None or not any(fnmatch.fnmatch(name, pattern) for pattern in patterns):
                continue
            module = name.rpartition(".")[0]
            total[module] += 1
            if code in SURVIVED:
                survivors[module].append(name)
    for names in survivors.values():
        print(*names, sep="\n")
    print()
    for module, count in total.items():
        print(f"{1 - len(survivors[module]) / count:6.1%} of {count:4} killed in {module}")
    score = 1 - sum(map(len, survivors.values())) / max(sum(total.values()), 1)
    print(f"{score:6.1%} of {sum(total.values()):4} killed; {MIN_SCORE:.0%} are required.")
    return 0 if total and score >= MIN_SCORE else 1


if __name__ == "__main__":
    sys.exit(main())
