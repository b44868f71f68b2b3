"""Administrative commands of the command line, as separate processes."""

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer

from repertory_admin.app import COMMANDS as MODULES
from repertory_admin.app import app
from tests.support.command_line import COMMAND, TIMEOUT_S, Cli, add_skill
from tests.support.model_folders import write_model


def _names(command: Any, parents: tuple[str, ...] = ()) -> list[str]:  # noqa: ANN401 - Typer's own
    """The names of all commands below a command, such as ``items list``."""
    below = getattr(command, "commands", None)
    if below is None:
        return [" ".join(parents)]
    return [name for one, inner in below.items() for name in _names(inner, (*parents, one))]


for module, _ in MODULES.values():
    import_module(module)
COMMANDS = _names(typer.main.get_command(app))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_examples(cli: Cli, tmp_path: Path, command: str) -> None:
    """The help of each command has examples and its settings."""
    done = cli.run(tmp_path, *command.split(), "--help")

    assert done.returncode == 0
    assert re.search(rf"Examples:\n    .*\brepertory {command}", done.stdout)
    assert "--data-dir" in done.stdout


def test_an_unknown_command_is_a_one_line_error(cli: Cli, tmp_path: Path) -> None:
    """An unknown command is one line with suggestions; a group alone shows its help on stderr."""
    unknown = cli.run(tmp_path, "serch", "x")
    group = cli.run(tmp_path, "items")

    assert unknown.returncode == group.returncode == 2
    assert unknown.stderr.startswith("repertory: There is no command serch. Did you mean 'search'")
    assert len(unknown.stderr.splitlines()) == 1
    assert group.stderr.startswith("Usage: repertory items ")


def test_a_command_of_a_group_is_named_if_its_group_is_missing(cli: Cli, tmp_path: Path) -> None:
    """It must not suggest a command with a similar name, such as ``remove``."""
    refused = cli.run(tmp_path, "approve", "team/deploy")
    assert refused.returncode == 2
    assert refused.stderr == (
        "repertory: There is no command approve; there is `repertory trust approve`.\n"
    )


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("calibrate sets --model x", "every model is calibrated at its first use"),
        ("serve --quiet 0.5", "Seconds without changes are given with --debounce"),
    ],
)
def test_what_release_01_had_is_refused_with_the_reason(
    cli: Cli, tmp_path: Path, line: str, answer: str
) -> None:
    """Scripts may still call a removed command, or an option that has another meaning now."""
    refused = cli.run(tmp_path, *line.split())
    assert refused.returncode == 2
    assert answer in refused.stderr


@pytest.mark.parametrize("module", ["repertory", "repertory_admin"])
def test_the_command_line_is_a_module(cli: Cli, tmp_path: Path, module: str) -> None:
    """``python -m repertory`` also starts the command line."""
    line = [sys.executable, "-m", module, "--version"]
    shown = subprocess.check_output(line, cwd=tmp_path, env=cli.environment, text=True)
    assert shown.startswith("repertory ")


def test_the_shell_completes_ids_and_filters(cli: Cli, indexed: Path) -> None:
    """Completions come from the index; without an index, none are offered."""

    def offered(folder: Path, line: str) -> list[str]:
        words = {"COMP_WORDS": f"repertory {line}", "COMP_CWORD": str(len(line.split()))}
        done = cli.run(folder, _REPERTORY_COMPLETE="complete_bash", **words)
        assert done.stderr == ""
        return done.stdout.split()

    assert offered(indexed, "items show files__r") == ["files__read_file", "files__run_command"]
    assert offered(indexed, "search --server fi") == ["files"]
    assert offered(indexed, "search --source p") == ["project"]
    assert offered(indexed, "search --tag d") == ["destructive"]
    assert offered(indexed, "search -k sk") == ["skill"]
    assert offered(indexed, "index --device c") == ["cpu"]
    assert offered(indexed.parent, "items show files__r") == []


@pytest.mark.parametrize(
    ("shell", "asked"),
    [
        ("bash", {"COMP_WORDS": "repertory items show files__", "COMP_CWORD": "3"}),
        ("zsh", {"_TYPER_COMPLETE_ARGS": "repertory items show files__"}),
    ],
)
def test_shell_completion_offers_no_dangerous_names(
    cli: Cli, tmp_path: Path, shell: str, asked: dict[str, str]
) -> None:
    """Tool names that a shell would run or misread are not offered as completions."""
    names = ["list", "$(touch x)", "\\$(touch x)", "`touch x`", "a;touch x", "a --config x", "a\nb"]
    tools = [{"name": name, "description": "Lists.", "inputSchema": {}} for name in names]
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "files.json").write_text(json.dumps({"tools": tools}))
    assert len(cli.json(tmp_path, "items", "list")) == len(names)
    done = cli.run(tmp_path, _REPERTORY_COMPLETE=f"complete_{shell}", **asked)
    assert re.findall(r"files__[^\n\"]*", done.stdout) == ["files__a b", "files__list"]


def test_the_main_help_lists_commands_and_exit_codes(cli: Cli, tmp_path: Path) -> None:
    """The main help has every command or group, and a list of exit codes."""
    done = cli.run(tmp_path, "--help")

    for word in (
        *{command.split()[0] for command in COMMANDS},
        "Examples:",
        "Exit codes:",
        "  70  ",
    ):
        assert word in done.stdout


def test_version_and_completion(cli: Cli, tmp_path: Path) -> None:
    """The version is one line; a completion script is shown for the current shell."""
    assert cli.run(tmp_path, "--version").stdout.startswith("repertory ")
    line = f"{shlex.join(COMMAND)} --show-completion; exit $?"  # `exit` keeps bash from exec
    shown = subprocess.check_output(["bash", "-c", line], env=cli.environment, text=True)
    assert "_REPERTORY_COMPLETE" in shown


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("repertory se", ["search", "serve"]),
        ("repertory items show files__read", ["files__read_file"]),
        ("repertory items show read", ["read_file"]),
        ("repertory search x --server f", ["files"]),
        ("repertory connect claude", ["claude-code", "claude-desktop"]),
    ],
)
def test_the_shell_completes_commands_names_and_hosts(
    cli: Cli, indexed: Path, words: str, offered: list[str]
) -> None:
    """Commands, ids, names, servers and hosts are completed in bash."""
    asked = {
        "_REPERTORY_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
    }
    assert cli.run(indexed, **asked).stdout.split() == offered


def test_verbose_logs_events_and_fields(cli: Cli, indexed: Path) -> None:
    """With --verbose, stderr has log lines with event and fields; otherwise it is empty."""
    done = cli.run(indexed, "search", "read_file", "--verbose")

    assert "embedding_device_taken" in done.stderr
    assert "device='cpu'" in done.stderr
    assert cli.run(indexed, "search", "read_file").stderr == ""


def test_stats_describe_the_index(cli: Cli, indexed: Path) -> None:
    """Items by kind and source, freshness, model and collection are shown."""
    done = cli.run(indexed, "stats")
    facts = cli.json(indexed, "stats")

    for part in ("1 document, 3 skills, 3 tools", "repertory-encoder-4", "  fresh\n", " MB"):
        assert part in done.stdout
    assert "ago" in done.stdout or "just now" in done.stdout
    assert facts["collection"] not in done.stdout
    assert facts["collection"] in cli.run(indexed, "stats", "--verbose").stdout
    assert facts["kinds"] == {"document": 1, "skill": 3, "tool": 3}
    assert facts["collection"].startswith("repertory_")


def test_stats_of_nothing_is_exit_code_4(cli: Cli, project: Path) -> None:
    """Before the first `index`, an error says that nothing is indexed."""
    done = cli.run(project, "stats")

    assert (done.returncode, done.stdout) == (4, "")
    assert "Nothing is indexed here yet" in done.stderr


def test_stats_name_the_index_that_other_options_made(cli: Cli, project: Path) -> None:
    """The error says that other options, such as another model, use another index."""
    assert cli.run(project, "index", "--model", "repertory").returncode == 0
    done = cli.run(project, "stats")

    assert (done.returncode, done.stdout) == (4, "")
    words = " ".join(done.stderr.split())
    assert "Nothing is indexed here yet with these options" in words
    assert "whose model is repertory-encoder-4" in words


def test_items_are_listed_and_shown(cli: Cli, indexed: Path) -> None:
    """The list is ordered by id and can be filtered; one item is shown with all fields."""
    everything = cli.json(indexed, "items", "list")
    tools = cli.json(indexed, "items", "list", "--kind", "tool")
    shown = cli.run(indexed, "items", "show", "files__read_file")
    missing = cli.run(indexed, "items", "show", "files__red_file")
    named = cli.json(indexed, "items", "show", "Read_File")

    ids = [entry["id"] for entry in everything]
    assert ids == sorted(ids)
    assert len(ids) == 7
    assert {entry["kind"] for entry in tools} == {"tool"}
    assert "Read the contents of a file from disk." in shown.stdout
    assert '"path"' in shown.stdout
    assert cli.json(indexed, "items", "show", "files__read_file")["server"] == "files"
    assert missing.returncode == 2
    assert "did you mean files__read_file" in missing.stderr
    assert named["id"] == "files__read_file"


def test_links_are_shown_in_both_directions(cli: Cli, project: Path) -> None:
    """``items show`` and ``explain`` show links; a missing tool keeps the name in the skill."""
    body = "Use mcp__files__read_file, then mcp__mail__send.\n"
    add_skill(project, "letters", f"---\nname: letters\ndescription: Write one.\n---\n{body}")
    assert cli.run(project, "index", "-q").stderr == ""
    shown = cli.run(project, "items", "show", "letters").stdout
    explained = cli.run(project, "explain", "write", "letters").stdout

    for text in (shown, explained):
        assert re.search(r"^needs +files__read_file$", text, re.MULTILINE)
        assert re.search(r"^missing +mcp__mail__send$", text, re.MULTILINE)
    tool = cli.json(project, "items", "show", "files__read_file")
    assert tool["links"] == {"neededBy": ["project/letters"]}


def test_a_name_of_several_items_is_refused(cli: Cli, project: Path) -> None:
    """The error lists the ids of all matches, but an exact spelling of one name is accepted."""
    add_skill(project, "run-command", "---\nname: run-command\ndescription: Run it.\n---\n")
    assert cli.run(project, "index", "-q").stderr == ""
    done = cli.run(project, "items", "show", "Run command")

    assert done.returncode == 2
    assert done.stderr == (
        "repertory: Several items are called 'Run command'; "
        "use files__run_command or project/run-command.\n"
    )
    assert cli.json(project, "items", "show", "run_command")["id"] == "files__run_command"


def test_config_show_names_every_origin_and_hides_secrets(cli: Cli, project: Path) -> None:
    """Every value has its origin, and no key is shown."""
    (project / "repertory.toml").write_text("[search]\nlimit = 9\nalpha = 0.5\n", "utf-8")
    given = {
        "REPERTORY_QDRANT_API_KEY": "hush",
        "REPERTORY_REDIS_URL": "redis://anna:hush@redis:6379/0",
        "TOOLSCRIPT_SEARCH_ALPHA": "0.6",
    }
    done = cli.run(project, "config", "show", "--threshold", "0.2", **given)
    rows = {line.split()[0]: line for line in done.stdout.splitlines() if line}

    assert "hush" not in done.stdout
    assert "****" in rows["qdrant.api_key"]
    assert rows["redis.url"].split()[1] == "redis://anna:****@redis:6379/0"
    assert rows["search.limit"].split()[1:3] == ["9", "./repertory.toml"]
    assert rows["search.alpha"].split()[1:3] == ["0.6", "TOOLSCRIPT_SEARCH_ALPHA"]
    assert rows["search.threshold"].split()[1:3] == ["0.2", "--threshold"]
    assert rows["search.device"].split()[1:3] == ["auto", "default"]
    flags = {row["key"]: row["flag"] for row in cli.json(project, "config", "show")["settings"]}
    assert (flags["search.limit"], flags["oidc.issuer"]) == ("--limit", None)


def test_config_show_hides_secrets_of_sources(cli: Cli, project: Path) -> None:
    """Values of headers and passwords in URLs of sources are hidden."""
    (project / "repertory.toml").write_text(
        """[[sources]]
type = "openapi"
name = "tracker"
url = "https://anna:hush@api.example.com/openapi.json"
headers = {X-Key = "hush"}
""",
        "utf-8",
    )
    [source] = cli.json(project, "config", "show")["sources"]

    assert source["url"] == "https://api.example.com/openapi.json"
    assert source["headers"] == {"X-Key": "****"}


@pytest.mark.parametrize("url", ["redis://:hu/sh@redis", "redis://redis?password=hush", "hush"])
def test_config_show_hides_invalid_urls(cli: Cli, tmp_path: Path, url: str) -> None:
    """Passwords in URLs that were not escaped are hidden completely."""
    shown = cli.run(tmp_path, "config", "show", REPERTORY_REDIS_URL=url).stdout

    assert "redis.url" in shown
    assert "sh@" not in shown
    assert "hush" not in shown


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("[search\n", "is not TOML"),
        ("[search]\nlimmit = 3\n", "limmit"),
        ("[search]\nlimit = 'x'\n", "repertory.toml: search.limit is 'x'"),
        ("[[sources]]\ntype = 'spoons'\n", "spoons"),
        ("[[sources]]\ntype = 'skills'\npath = 'nowhere'\n", "which is missing"),
        (f"[[sources]]\ntype = 'skills'\nname = 'x'\npath = '{'x' * 300}'\n", "is missing"),
        ("[[sources]]\ntype = 'mcp'\nconfig = 'nowhere.json'\n", "nowhere.json"),
    ],
)
def test_config_check_reports_problems(cli: Cli, project: Path, text: str, part: str) -> None:
    """A problem is one line on stdout and exit code 1."""
    (project / "repertory.toml").write_text(text, "utf-8")
    done = cli.run(project, "config", "check")

    assert (done.returncode, done.stderr) == (1, "")
    assert part in done.stdout
    assert len(done.stdout.splitlines()) == 1


def test_a_configuration_without_sources_is_valid(cli: Cli, project: Path) -> None:
    """The sources are discovered then, so the check does not count none."""
    (project / "repertory.toml").write_text("[search]\nlimit = 4\n", "utf-8")
    done = cli.run(project, "config", "check")
    said = "./repertory.toml is valid: it names no source, so they are discovered.\n"
    assert (done.returncode, done.stdout) == (0, said)


@pytest.mark.parametrize("command", ["index", "search x", "stats", "doctor", "config show"])
def test_a_broken_configuration_is_exit_code_2(cli: Cli, project: Path, command: str) -> None:
    """Every command names the file and stops."""
    (project / "repertory.toml").write_text("[search\n", "utf-8")
    done = cli.run(project, *command.split())

    assert done.returncode == 2
    assert "repertory.toml:1 is not TOML" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("command", ["index", "config check"])
def test_a_wrong_source_is_named_with_its_file(cli: Cli, project: Path, command: str) -> None:
    """The error names the file, as there may be a project's file and a user's file."""
    (project / "repertory.toml").write_text('[[sources]]\ntype = "skils"\n', "utf-8")
    done = cli.run(project, *command.split())
    assert done.returncode in (1, 2)
    assert "repertory.toml: " in (done.stdout + done.stderr)


def test_trusting_another_file_is_exit_code_2(cli: Cli, project: Path) -> None:
    """A file that is missing or not JSON is not trusted."""
    for file in ("nowhere.json", "handbook.md"):
        assert cli.run(project, "config", "trust", file).returncode == 2


def test_revoking_trust_from_an_untrusted_file_is_an_error(cli: Cli, project: Path) -> None:
    """Revoking trust from a file that was not trusted is an error, as after a typing error."""
    done = cli.run(project, "config", "untrust", ".mcp.jsn")
    assert (done.returncode, "These were not trusted: .mcp.jsn." in done.stderr) == (2, True)


@pytest.mark.parametrize("name", ["QDRANT", "REGISTRY"])
def test_a_password_in_a_url_is_not_shown(cli: Cli, tmp_path: Path, name: str) -> None:
    """Passwords in the URLs of all settings are hidden."""
    url = {f"REPERTORY_{name}_URL": "https://ann:geheim@host.example:6333"}
    shown = cli.run(tmp_path, "config", "show", **url).stdout
    assert "host.example" in shown
    assert "geheim" not in shown


def test_a_closed_pipe_is_no_failure(cli: Cli, project: Path) -> None:
    """A closed pipe, as after ``head``, does not make a command fail."""
    for arguments in (("config", "show"), ("config", "show", "--output", "json")):
        with subprocess.Popen(
            [*COMMAND, *arguments],
            cwd=project,
            env=cli.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            assert process.stdout
            process.stdout.close()
            assert process.wait(TIMEOUT_S) == 0


def test_a_file_name_that_is_not_unicode_is_escaped_in_json(cli: Cli, project: Path) -> None:
    """JSON output has an escape for a byte of a file name that is not valid UTF-8."""
    add_skill(project, os.fsdecode(b"b\xffd"), "---\nname: bad\n---\n")
    done = cli.run(project, "doctor", "--output", "json")
    assert done.returncode in {0, 1}, done.stderr
    assert "\\udcff" in done.stdout
    json.loads(done.stdout)


@pytest.mark.parametrize("is_there", [False, True])
def test_init_follows_no_link_out_of_the_folder(
    cli: Cli, project: Path, tmp_path: Path, *, is_there: bool
) -> None:
    """`init` does not write through a symbolic link that leaves the project."""
    target = tmp_path / "precious"
    if is_there:
        target.write_text("precious")
    (project / "repertory.toml").symlink_to(target)
    done = cli.run(project, "init", "--force")
    assert (done.returncode, "leads out of its folder" in done.stderr) == (4, True)
    assert target.exists() == is_there
    assert not is_there or target.read_text() == "precious"


def test_a_broken_mcp_configuration_affects_only_its_servers(cli: Cli, project: Path) -> None:
    """A broken or missing MCP configuration does not stop `init` or searches."""
    (project / ".mcp.json").write_text('{"mcpServers": {"a": {"command": "x"}}')
    done = cli.run(project, "init")
    assert done.returncode == 0, done.stderr
    assert ".mcp.json:1" in done.stderr
    assert cli.run(project, "search", "read_file").returncode == 0
    (project / ".mcp.json").unlink()
    assert cli.run(project, "search", "read_file").returncode == 0
    found = cli.run(project, "doctor")
    assert (found.returncode, ".mcp.json" in found.stdout) == (1, True)


def test_init_writes_the_discovered_sources(cli: Cli, project: Path, mcp_config: Path) -> None:
    """The file passes the check, indexes the same items, and is not overwritten."""
    done = cli.run(project, "init")
    written = tomllib.loads((project / "repertory.toml").read_text("utf-8"))
    again = cli.run(project, "init")

    assert done.returncode == 0, done.stderr
    assert "Next: `repertory index`" in done.stdout
    assert "repertory config trust ./.mcp.json" in done.stdout
    assert [source["type"] for source in written["sources"]] == [
        *("skills", "tools", "documents", "mcp")
    ]
    assert written["sources"][0]["path"] == "skills"
    assert cli.run(project, "config", "check").returncode == 0
    assert cli.json(project, "index")["stats"]["items"] == 7
    assert again.returncode == 2
    assert "--force" in again.stderr
    trusted = cli.run(project, "init", "--force", "--trust")
    assert (trusted.returncode, "Trusted " in trusted.stdout) == (0, True)
    assert "rusted" not in cli.run(project, "init", "--force").stdout  # nothing is left to trust
    assert cli.json(project, "index")["stats"]["items"] == 9
    assert mcp_config.exists()


@pytest.mark.parametrize(("keys", "items"), [("y\n", 9), ("n\n", 7)])
def test_init_asks_on_a_terminal(
    cli: Cli, project: Path, mcp_config: Path, keys: str, items: int
) -> None:
    """The servers of a configuration are run only if the user agrees."""
    code, written = cli.in_terminal(project, "init", keys=keys)

    assert code == 0
    assert "weather (runs " in written
    assert cli.json(project, "index")["stats"]["items"] == items
    assert mcp_config.exists()


def test_doctor_accepts_a_good_project(cli: Cli, indexed: Path) -> None:
    """Every check of a healthy project passes."""
    done = cli.run(indexed, "doctor")

    assert done.returncode == 0, done.stdout
    for part in ("data directory", "free space", "from an installed package", "cpu is used"):
        assert part in done.stdout
    assert "7 items, " in done.stdout
    assert "calibrated on " in done.stdout
    assert "✗" not in done.stdout


def test_doctor_splits_no_word_in_a_narrow_terminal(cli: Cli, indexed: Path) -> None:
    """Lines fit the width, and every word of them is also a word of the full output."""
    whole = cli.run(indexed, "doctor").stdout
    _, written = cli.in_terminal(indexed, "doctor", "--quiet", columns=60)
    lines = re.sub(r"\x1b\[[\d;]*m", "", written).splitlines()

    assert max(map(len, lines)) <= 60
    for word in " ".join(lines).split():
        if word.isalpha():
            assert re.search(rf"(?<![a-z]){word}(?![a-z])", whole, re.IGNORECASE), word


def test_the_first_index_calibrates_an_unusual_model(
    cli: Cli, project: Path, tmp_path: Path
) -> None:
    """A terminal shows the calibration, and `doctor` its result."""
    own = write_model(tmp_path / "own-model")
    fresh = ("--data-dir", tmp_path / "fresh", "--model", own)
    before = cli.run(project, "doctor", *fresh)
    assert "not calibrated yet" in before.stdout

    _, written = cli.in_terminal(project, "index", *fresh)
    assert "Calibrating the confidence of own-model" in written

    after = cli.run(project, "doctor", *fresh)
    assert re.search(
        r"calibrated on .* on 330 reference pairs: error 0\.\d+, AUC 0\.\d+", after.stdout
    )
    _, written = cli.in_terminal(project, "search", "bread", *fresh)
    assert "Calibrating" not in written


def test_the_first_search_of_a_usual_model_calibrates_nothing(
    cli: Cli, project: Path, tmp_path: Path
) -> None:
    """Bundled models have a bundled calibration, which `doctor` reports before any search."""
    fresh = ("--data-dir", tmp_path / "fresh", "--model", "all-MiniLM-L6-v2")
    assert "calibrated on " in cli.run(project, "doctor", *fresh).stdout
    _, written = cli.in_terminal(project, "search", "bread", *fresh)
    assert "Calibrating" not in written
    assert not (tmp_path / "fresh" / "models" / "calibrations").exists()


def test_doctor_lists_all_problems(
    cli: Cli, project: Path, broken_skill: Path, mcp_config: Path
) -> None:
    """A broken skill is named and causes exit code 1; untrusted servers are listed, too."""
    done = cli.run(project, "doctor")

    assert done.returncode == 1
    assert f"./{broken_skill.relative_to(project)}" in done.stdout
    assert f"config trust {mcp_config}" in done.stdout
    assert "nothing is indexed here yet" in done.stdout


def test_doctor_without_a_data_directory(cli: Cli, project: Path) -> None:
    """A data directory that cannot be created is a failed check."""
    done = cli.run(project, "doctor", "--data-dir", project / "handbook.md")

    assert done.returncode == 1
    assert "✗  data directory" in done.stdout


def test_eval_measures_a_labelled_set(
    cli: Cli, tmp_path: Path, labelled_set: Callable[[str], Path]
) -> None:
    """The figures of a labelled set are shown; a recall above the minimum succeeds."""
    folder = labelled_set("resize_image")
    done = cli.run(tmp_path, "eval", folder / "queries.jsonl", "--min-recall", "0.8")
    (figures,) = cli.json(tmp_path, "eval", folder)

    assert done.returncode == 0, done.stderr
    assert "recall@5" in done.stdout
    assert figures["figures"]["recall@1"] == {"mean": 1.0, "low": 0.2065, "high": 1.0}
    assert figures["generated"] is False
    assert figures["worst"] == []


def test_eval_fails_below_the_minimum_recall(
    cli: Cli, tmp_path: Path, labelled_set: Callable[[str], Path]
) -> None:
    """A recall below the minimum is exit code 1; missing right answers are named."""
    done = cli.run(tmp_path, "eval", labelled_set("elsewhere"), "--min-recall", "0.8")

    assert done.returncode == 1
    assert "labelled: recall@5 is 0.000, lower than 0.8" in done.stderr
    assert "The corpus lacks 1 right answer, which no search can find: elsewhere." in done.stderr
    assert re.search(r"elsewhere +1 +0.00  make a photo smaller → resize_image", done.stdout)


def test_eval_measures_the_confidence_of_judged_pairs(
    cli: Cli, tmp_path: Path, labelled_set: Callable[[str], Path]
) -> None:
    """Judged pairs are measured, and queries without a good item count as rejected."""
    folder = labelled_set("resize_image")
    with (folder / "queries.jsonl").open("a") as queries:
        queries.write(json.dumps({"id": "none", "text": "zqx vrr", "tags": ["foreign"]}) + "\n")
    known = json.loads((folder / "queries.jsonl").read_text().splitlines()[0])["id"]
    pairs = ((known, "resize_image", 3), (known, "send_mail", 0), ("none", "send_mail", 0))
    with (folder / "judgements.jsonl").open("w") as judgements:
        for query, item, grade in pairs:
            row = {"query_id": query, "item_id": item, "grade": grade}
            judgements.write(json.dumps(row) + "\n")
    (report,) = cli.json(tmp_path, "eval", folder)

    judged = report["judged"]
    assert (judged["queries"], judged["pairs"], judged["auc"]) == (2, 3, 1.0)
    assert (judged["rejected"], judged["error"] > 0) == (1.0, True)
    assert judged["kinds"]["foreign"]["rejected"] == 1.0
    assert judged["kinds"]["foreign"]["auc"] is None
    assert report["queries"] == 1
    shown = cli.run(tmp_path, "eval", folder).stdout
    assert "labelled, judged pairs" in shown
    assert re.search(r"^foreign ", shown, re.MULTILINE)


def test_eval_generates_queries_and_compares_settings(
    cli: Cli, tmp_path: Path, labelled_set: Callable[[str], Path]
) -> None:
    """Queries can be generated from a corpus, and other settings are compared on them."""
    folder = labelled_set("resize_image")
    labelled, generated = cli.json(
        tmp_path, "eval", folder, "--generate", "--queries", "1", "--against", "alpha=0,threshold=1"
    )

    assert labelled["against"]["alpha=0,threshold=1"]["recall@5"]["worse"] == 1
    assert generated["generated"] is True
    assert "flatters" in generated["warning"]
    assert generated["kinds"]["typo"]["queries"] == 1
    assert generated["figures"]["hit@1"]["mean"] == 1.0
    # Only queries from texts and name prefixes get worse, but not names.
    assert generated["against"]["alpha=0,threshold=1"]["hit@5"]["worse"] <= 3


def test_eval_measures_the_index(cli: Cli, indexed: Path) -> None:
    """Without a labelled set, queries are generated from the indexed items; the table says so."""
    done = cli.run(indexed, "eval", "--queries", "2", "--min-recall", "0.1")

    assert done.returncode == 0, done.stderr
    assert "project, generated:" in done.stdout
    assert re.search(r"^prefix +2 +1.000", done.stdout, re.MULTILINE)
    assert "generated from the searched texts" in done.stdout


def test_eval_fits_a_terminal(
    cli: Cli, tmp_path: Path, labelled_set: Callable[[str], Path]
) -> None:
    """A comparison has one line per figure in 80 columns; a missing model gives one warning."""
    tried = ("--against", "alpha=0.5,name_weight=1,section_weight=0.5,threshold=0.9")
    folder = labelled_set("resize_image")
    # A second query, since equal differences have no interval.
    with (folder / "queries.jsonl").open("a") as lines:
        lines.write('{"id": "q2", "text": "change something of a picture"}\n')
    with (folder / "qrels.jsonl").open("a") as lines:
        lines.write('{"query_id": "q2", "item_id": "resize_image"}\n')
    code, written = cli.in_terminal(
        tmp_path, "eval", folder, *tried, "--model", "no/such", columns=80
    )
    assert code == 0, written
    assert re.search(r"recall@5.* 0\.500.*-0\.\d{3} \(.* to .*[01]\.\d{3}\)", written)
    assert written.count("answered by keyword alone") == 1


def test_eval_compares_settings_of_one_index(cli: Cli, tmp_path: Path) -> None:
    """Only settings of one index can be compared; the error lists them."""
    done = cli.run(tmp_path, "eval", "--against", "model=x")

    assert done.returncode == 2
    assert "alpha, name_weight, section_weight, threshold" in done.stderr


def test_eval_of_no_labelled_set_is_exit_code_2(cli: Cli, tmp_path: Path) -> None:
    """A folder without queries is refused with a description of a labelled set."""
    done = cli.run(tmp_path, "eval", tmp_path)

    assert done.returncode == 2
    assert "a labelled set is a folder with" in done.stderr


WITHOUT_EXTRA = """
import sys
for name in ("ir_measures", "scipy", "sklearn"):
    sys.modules[name] = None  # as if it were not installed
from repertory_admin.cli import cli
cli()
"""


def test_eval_without_its_extra_says_how_to_install_it(cli: Cli, tmp_path: Path) -> None:
    """The error is one line, and the help needs no extra."""

    def run(argument: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", WITHOUT_EXTRA, "eval", argument],
            cwd=tmp_path,
            env=cli.environment,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )

    refused = run("some-set")
    assert refused.returncode == 4, refused.stderr
    assert "which is not installed; run: pip install 'repertory[eval]'" in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert "repertory eval" in run("--help").stdout


def test_doctor_names_a_found_configuration_that_is_broken(cli: Cli, project: Path) -> None:
    """`doctor` fails and names a broken configuration, which discovery leaves out."""
    (project / ".mcp.json").write_text("{ broken")
    done = cli.run(project, "doctor")
    assert done.returncode == 1
    assert ".mcp.json" in done.stdout


ENDING = """
import atexit, sys, threading
from repertory_admin import cli

def slow():
    threading.main_thread().join()
    print("thread")

def run(**_):
    if sys.argv[1] == "thread":
        threading.Thread(target=slow).start()
    print("answer")
    return 3

atexit.register(lambda: print("registered"))
cli.app = run
cli.cli()
"""


@pytest.mark.parametrize(
    ("what", "output"),
    [("none", "answer\nregistered\n"), ("thread", "answer\nthread\nregistered\n")],
)
def test_a_command_ends_when_nothing_runs_any_more(what: str, output: str) -> None:
    """A command ends with its exit code after its output, threads and exit handlers."""
    command = [sys.executable, "-c", ENDING, what]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (3, output, "")
