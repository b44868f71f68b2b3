"""`make mutants`: which small changes of the code does no test notice?

mutmut wants one source root named ``src``, and mutates no function with a decorator. It therefore
works on a copy in ``.mutants``: the source roots are joined, ``@override`` is left out, and other
decorators are applied below their function.
"""

import argparse
import ast
import fnmatch
import json
import os
import subprocess
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
COPY = ROOT / ".mutants"
SOURCE_ROOTS = ("shared", "services", "workers")
MIN_SCORE = 0.85
DROPPED = {"override"}
MOVED = {"property", "contextlib.contextmanager"}
SURVIVED = {0, 5, 33}  # exit codes if all tests passed or no test calls the function


def main() -> int:
    """Run mutmut, list the surviving mutants, and fail if the score is too low."""
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("modules", nargs="*", help="such as `ledger`; without any, all of them")
    parser.add_argument("--children", type=int, default=os.cpu_count(), help="tests at a time")
    arguments = parser.parse_args()
    patterns = [f"*.{module}.*" for module in arguments.modules]
    stage()
    forget_survivors()
    command = [str(Path(sys.executable).with_name("mutmut")), "run", *patterns]
    command += ["--max-children", str(arguments.children)]
    done = subprocess.run(command, cwd=COPY, check=False)
    return done.returncode or report(results(), patterns or ["*"])


def stage() -> None:
    """Update the copy. Unchanged files are not rewritten, so that their results stay valid."""
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
        for copy in [*files(COPY / folder)]:
            if copy.relative_to(COPY) not in wanted:
                copy.unlink()
                (COPY / "mutants" / copy.relative_to(COPY)).unlink(missing_ok=True)


def files(folder: str | Path) -> Iterator[Path]:
    """The files below a folder, except compiled files."""
    for path in (ROOT / folder).rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path


def undecorated(source: str) -> str:
    """The same module without the decorators that keep mutmut from mutating a function."""
    lines = source.splitlines()
    functions = [one for one in ast.walk(ast.parse(source)) if isinstance(one, ast.FunctionDef)]
    for function in sorted(functions, key=lambda one: one.lineno, reverse=True):
        names = [ast.unparse(one) for one in function.decorator_list]
        if not names or not (MOVED | DROPPED).issuperset(names):
            continue
        name, margin = function.name, " " * function.col_offset
        for decorator in names:
            if decorator in MOVED:
                lines.insert(function.end_lineno or 0, f"{margin}{name} = {decorator}({name})")
        del lines[function.decorator_list[0].lineno - 1 : function.lineno - 1]
    return "\n".join([*lines, ""])


def forget_survivors() -> None:
    """Reset the results of surviving mutants, since the tests may have changed."""
    for path in COPY.glob("mutants/src/**/*.meta"):
        result = json.loads(path.read_text())
        codes = result["exit_code_by_key"]
        again = {name: None for name, code in codes.items() if code in SURVIVED}
        if again:
            path.write_text(json.dumps(result | {"exit_code_by_key": codes | again}))


def results() -> dict[str, int | None]:
    """The exit code of the tests by mutant; None if they did not run."""
    found: dict[str, int | None] = {}
    for path in sorted(COPY.glob("mutants/src/**/*.meta")):
        found |= json.loads(path.read_text())["exit_code_by_key"]
    return found


def report(codes: Mapping[str, int | None], patterns: Sequence[str]) -> int:
    """Print the surviving mutants and the score of each module.

    Args:
        codes: The exit codes from ``results``.
        patterns: The names of mutants to report, with wildcards.

    Returns:
        The exit status: 0 if all mutants were tried and enough of them were noticed.
    """
    survivors: defaultdict[str, list[str]] = defaultdict(list)
    total: Counter[str] = Counter()
    untried = 0
    for name, code in codes.items():
        module = name.rpartition(".")[0]
        if any(fnmatch.fnmatch(name, pattern) for pattern in patterns):
            untried += code is None
            total[module] += code is not None
            survivors[module] += [name] if code in SURVIVED else []
    for module, names in survivors.items():
        if total[module]:
            score = 1 - len(names) / total[module]
            print(*names, f"{score:.1%} of {total[module]} noticed in {module}\n", sep="\n")
    score = 1 - sum(map(len, survivors.values())) / max(total.total(), 1)
    print(f"{score:.1%} of {total.total()} noticed; {MIN_SCORE:.0%} are required.")
    if untried:
        print(f"{untried} were not tried: run it again.")
    return 0 if total and not untried and score >= MIN_SCORE else 1


if __name__ == "__main__":
    sys.exit(main())
