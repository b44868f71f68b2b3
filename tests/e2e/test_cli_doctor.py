"""The findings of `repertory doctor`: sources, passed-over paths and problems."""

import json
import os
import re
import resource
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import msgspec
import pytest
import redis

from repertory.sources.source import Problem, Severity
from repertory.stats import Lengths, Stats, Watch
from repertory_admin.checks.data import data_directory
from tests.support.builders import write
from tests.support.command_line import Cli
from tests.support.http_stub import serving
from tests.support.mcp_servers import WEATHER
from tests.support.redis_server import RedisProcess


def test_thousands_of_problems_are_counted(own: Cli, project: Path) -> None:
    """The text shows the first hundred messages, the JSON all of them."""
    for number in range(150):
        text = f"---\nname: n{number}\ndescription: d\n---\n"
        write(project / "skills" / f"s{number}" / "SKILL.md", text)
    shown = own.run(project, "doctor").stdout
    found = own.json(project, "doctor")["problems"]

    assert len(found) >= 150
    assert shown.count("/SKILL.md") == 100
    assert f"{len(found) - 100} more: `--output json` lists all" in shown


def test_every_source_is_listed_with_its_items(cli: Cli, project: Path) -> None:
    """The text has the number of items of each source, the JSON their ids."""
    shown = cli.run(project, "doctor")
    found = cli.json(project, "doctor")["sources"]

    assert "3 items in ./skills" in shown.stdout
    assert "1 item in ." in shown.stdout
    assert {one["name"]: len(one["items"]) for one in found} == {
        "project": 3,
        "tools": 3,
        "documents": 1,
    }
    assert found[2] == {
        "name": "documents",
        "type": "documents",
        "location": str(project),
        "items": ["documents/handbook.md"],
        "error": "",
        "visibleTo": [],
    }


def test_paths_passed_over_are_listed_with_the_reason(cli: Cli, project: Path) -> None:
    """Each path that no source reads is listed with a reason; the text shortens long lists.

    The folder of a repository is not listed.
    """
    write(project / ".git" / "description", "Unnamed repository")
    for name in ("out", *(f".cache{number}" for number in range(7))):
        write(project / name / "notes.md", "# Notes\n")
    write(project / ".gitignore", "out\nsecret.md\n")
    write(project / "secret.md", "# Secret\n")
    write(project / "node_modules" / "pack" / "README.md", "# Pack\n")
    write(project / "skills" / "renamed" / "Skill.md", "---\ndescription: x\n---\n")
    write(project / "skills" / "steering" / "reference.md", "# More about steering\n")
    write(project / ".mcp.json", '{"mcpServers": {}}')
    write(project / ".codex" / "skills", "not a folder")
    (project / ".claude").mkdir()
    (project / ".claude" / "skills").symlink_to("../skills")

    found = {one["path"]: one["reason"] for one in cli.json(project, "doctor")["passedOver"]}
    assert {path.removeprefix(f"{project}/"): reason for path, reason in found.items()} == {
        **{f".cache{number}": "it is hidden" for number in range(7)},
        ".claude": "it is hidden",
        ".codex": "it is hidden",
        ".claude/skills": f"it leads to {project / 'skills'}, which the source project reads",
        ".codex/skills": "it is not a folder",
        ".mcp.json": "it defines no servers to index",
        "node_modules": "tools create and fill such folders",
        "out": "a .gitignore excludes it",
        "secret.md": "a .gitignore excludes it",
        "skills/renamed": "it has no SKILL.md, only Skill.md",
        **{
            f"skills/{name}": "it is a skill (SKILL.md), so its files are not documents"
            for name in ("bread-baking", "release-notes", "steering")
        },
    }
    shown = cli.run(project, "doctor").stdout
    assert "Skipped:\n" in shown
    assert (
        "  ./.cache0, ./.cache1, ./.cache2, ./.cache3, ./.cache4 and 4 others: each is hidden"
        in shown
    )
    assert "  ./skills/renamed: it has no SKILL.md, only Skill.md" in shown


def test_places_that_the_configuration_does_not_list_are_named(own: Cli, project: Path) -> None:
    """A configuration ends discovery, so a folder that is made later is not read.

    A listed source that waits for trust in the configuration is not among them.
    """
    write(own.home / ".claude" / "skills" / "own" / "SKILL.md", "---\ndescription: x\n---\n")
    written = own.run(project, "init", "--force")
    assert written.returncode == 0, written.stderr
    text = (project / "repertory.toml").read_text("utf-8")
    assert ".claude/skills" in text
    write(project / "repertory.toml", f"{text}# An edit ends the trust in the file.\n")
    before = own.json(project, "doctor")["passedOver"]
    write(project / "markdown-skills" / "late.md", "# Late\n")
    write(project / ".mcp.json", json.dumps({"mcpServers": {"x": {"command": "x"}}}))
    after = own.json(project, "doctor")["passedOver"]

    reason = "it is not among the sources that the configuration lists"
    assert [one for one in before if one["reason"] == reason] == []
    assert [one["path"] for one in after if one["reason"] == reason] == [
        str(project / "markdown-skills"),
        str(project / ".mcp.json"),
    ]


def test_hidden_folders_beside_a_source_are_listed(cli: Cli, project: Path) -> None:
    """A hidden folder with skills beside a known source is listed once."""
    hermes = (
        ".hermes/skills/a",
        ".hermes/skill-packs/b",
        ".hermes/skill-packs/c",
        ".hermes/deep/d",
    )
    for place in (*hermes, ".new-host/skills/e", ".new-host/rules/f"):
        write(project / place / "SKILL.md", "---\ndescription: x\n---\n")
    write(project / ".new-host" / "skills" / "g" / "notes.md", "# Notes\n")
    found = cli.json(project, "doctor")["passedOver"]
    assert [
        one["path"].removeprefix(f"{project}/") for one in found if one["reason"] == "it is hidden"
    ] == [".hermes/deep", ".hermes/skill-packs", ".new-host/rules"]


def test_a_server_of_two_files_is_reported_once(cli: Cli, project: Path) -> None:
    """A server in two files awaits no trust if one of the files is trusted."""
    for place in (".mcp.json", ".cursor/mcp.json"):
        write(project / place, json.dumps({"mcpServers": {"weather": WEATHER}}))
    assert cli.run(project, "config", "trust", ".mcp.json").returncode == 0
    for command in ("doctor", "index"):
        shown = cli.run(project, command).stdout
        assert "not trusted yet" not in shown
        assert "found but not run" not in shown
        assert "several files" in shown
    assert "source weather" in cli.run(project, "doctor").stdout


def test_a_disabled_server_is_passed_over(cli: Cli, project: Path) -> None:
    """A disabled server is listed with its file, also if the file has no other server."""
    off = {**WEATHER, "disabled": True}
    write(project / ".mcp.json", json.dumps({"mcpServers": {"weather": WEATHER, "mail": off}}))
    write(project / ".cursor/mcp.json", json.dumps({"mcpServers": {"maps": off}}))
    found = {one["path"]: one["reason"] for one in cli.json(project, "doctor")["passedOver"]}
    assert found[str(project / ".mcp.json")] == "it disables the server mail"
    assert found[str(project / ".cursor/mcp.json")] == "it disables the server maps"
    assert "./.mcp.json: it disables the server mail" in cli.run(project, "doctor").stdout


def test_a_named_configuration_is_not_reported_as_untrusted(cli: Cli, project: Path) -> None:
    """Servers of a file that --mcp-config names are not also reported as untrusted."""
    write(project / ".mcp.json", json.dumps({"mcpServers": {"weather": WEATHER}}))
    done = cli.run(project, "index", "--mcp-config", ".mcp.json")
    assert done.returncode == 0
    for words in ("not trusted yet", "several files", "not run"):
        assert words not in done.stdout + done.stderr


def test_a_configured_folder_that_is_missing_is_a_problem(cli: Cli, project: Path) -> None:
    """`doctor`, `index` and `stats` report a missing folder of the configuration."""
    sources = [{"type": "skills", "path": "nowhere"}, {"type": "documents", "path": "."}]
    lines = [f'[[sources]]\ntype = "{one["type"]}"\npath = "{one["path"]}"\n' for one in sources]
    write(project / "repertory.toml", "\n".join(lines))
    missing = f"The folder {project / 'nowhere'} cannot be read"

    done = cli.run(project, "doctor")
    assert done.returncode == 1
    assert done.stdout.count(missing) == 1
    assert cli.run(project, "index").returncode == 3
    stats = cli.json(project, "stats")
    assert stats["errors"] == 1
    assert missing in stats["problems"][0]["message"]
    assert "problems  1 error" in cli.run(project, "stats").stdout


def test_a_found_folder_that_cannot_be_read_is_a_problem(cli: Cli, project: Path) -> None:
    """A discovered folder that cannot be read, here a link to itself, is a problem."""
    (project / ".claude").mkdir()
    (project / ".claude" / "skills").symlink_to("skills")  # to itself
    _is_named_as_a_problem(cli, project)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everywhere")
def test_a_closed_folder_is_a_problem(cli: Cli, project: Path) -> None:
    """A folder without permissions is a problem, and so is one whose parent has none."""
    for closed in (".claude/skills", ".claude"):
        (project / ".claude" / "skills").mkdir(parents=True, exist_ok=True)
        (project / closed).chmod(0)
        try:
            _is_named_as_a_problem(cli, project)
        finally:
            (project / closed).chmod(0o755)


def _is_named_as_a_problem(cli: Cli, project: Path) -> None:
    done = cli.run(project, "doctor")
    assert done.returncode == 1
    assert f"The folder {project / '.claude' / 'skills'} cannot be read" in done.stdout
    assert cli.run(project, "index").returncode == 3
    assert any(".claude" in one["message"] for one in cli.json(project, "stats")["problems"])


def test_damaged_files_in_the_data_directory_are_named(own: Cli, project: Path) -> None:
    """`doctor` names damaged files; `backup` warns about them and succeeds."""
    own.run(project, "index")
    own.run(project, "keys", "create", "anna")
    whole = own.run(project, "doctor").stdout
    assert re.search("databases +can be read", whole)
    assert re.search("keys +1 key\n", whole)

    (review,) = (own.data / "reviews").glob("*.sqlite")
    (keys,) = (own.data / "keys").glob("*.json")
    usage = own.data / "usage" / "0123456789abcdef.sqlite"
    for path in (review, usage, own.data / "vectors.sqlite"):
        write(path, "no database " * 100)
    write(keys, "[")
    found = own.run(project, "doctor", "--output", "json")
    assert found.returncode == 1
    bad = [one for one in json.loads(found.stdout)["checks"] if one["state"] == "bad"]
    named = {path for path in (*own.data.rglob("*.sqlite"), keys) if str(path) in str(bad)}
    assert named == {review, usage, keys, own.data / "vectors.sqlite"}

    write(own.data / "vectors.sqlite", "no database " * 100)  # again, after doctor opened it
    done = own.run(project, "backup", project.parent / "a.zip")
    assert done.returncode == 0
    assert f"repertory: {review} is damaged" in done.stderr
    assert f"repertory: The vector cache {own.data / 'vectors.sqlite'}" in done.stderr


def test_a_full_disk_is_a_problem(tmp_path: Path) -> None:
    """A disk that accepts only empty files is a failed check."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        (found,) = data_directory(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (found.state, "cannot be written" in found.text) == ("bad", True)
    assert [*tmp_path.iterdir()] == []


STATS = Stats(
    index_version=1,
    configuration="",
    collection="",
    model="",
    items=0,
    kinds={},
    points=0,
    missing={},
    sources=[],
    building=None,
    queue=Lengths(saves=0, builds=0, failed=0),
    workers=[],
    problems=[],
    errors=0,
    warnings=0,
    watch=Watch(at=1.0, polling={"team": "nfs4 reports no changes"}),
    counters={},
)


def _server(stats: Stats) -> Callable[[BaseHTTPRequestHandler], None]:
    """A handler that answers every request with these statistics."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        body = msgspec.json.encode(stats)
        request.send_response(200)
        request.send_header("Content-Type", "application/json")
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    return answer


def _found(cli: Cli, project: Path, stats: Stats, **team: str) -> list[tuple[str, str, str]]:
    """State, subject and text of each finding about a server with these statistics."""
    with serving(_server(stats)) as url:
        done = cli.run(project, "doctor", "--output", "json", REPERTORY_SERVER_URL=url, **team)
    checks = json.loads(done.stdout)["checks"]
    return [(one["state"], one["subject"], one["text"]) for one in checks]


@pytest.mark.parametrize("policy", ["noeviction", "allkeys-lru"])
def test_a_team_learns_why_its_saves_may_be_late(
    cli: Cli, project: Path, redis_server: RedisProcess, policy: str
) -> None:
    """Polled sources and a Redis that may evict jobs are remarks, not errors."""
    with redis.Redis.from_url(redis_server.url) as client:
        client.config_set("maxmemory-policy", policy)
    found = _found(cli, project, STATS, REPERTORY_REDIS_URL=redis_server.url)
    with redis.Redis.from_url(redis_server.url) as client:
        client.config_set("maxmemory-policy", "noeviction")
    reason = "scanned at intervals, because nfs4 reports no changes"
    assert ("unsure", "source team", reason) in found
    ((state, _, text),) = [one for one in found if one[1] == "Redis"]
    assert state == ("good" if policy == "noeviction" else "unsure")
    assert policy in text or state == "good"


def test_an_unavailable_redis_is_a_problem(cli: Cli, project: Path) -> None:
    """The finding names the address of the Redis server."""
    with serving(_server(STATS)) as url:
        team = {"REPERTORY_SERVER_URL": url, "REPERTORY_REDIS_URL": "redis://127.0.0.1:9/0"}
        done = cli.run(project, "doctor", **team)
    assert done.returncode == 1
    assert "The Redis at 127.0.0.1:9/0 cannot be reached" in " ".join(done.stdout.split())


def test_failed_jobs_are_a_problem(cli: Cli, project: Path) -> None:
    """Failed jobs are counted as a problem, but pending items are only a remark."""
    assert "queue" not in [subject for _, subject, _ in _found(cli, project, STATS)]
    failed = msgspec.structs.replace(STATS, queue=Lengths(saves=1, builds=0, failed=2))
    problem = ("bad", "queue", "2 jobs failed; see `repertory queue list`")
    assert [one for one in _found(cli, project, failed) if one[1] == "queue"] == [problem]
    late = msgspec.structs.replace(STATS, watch=Watch(at=1.0, pending=1))
    remark = ("unsure", "queue", "1 item not indexed yet")
    assert [one for one in _found(cli, project, late) if one[1] == "queue"] == [remark]


def test_unavailable_parts_of_a_server_are_problems(cli: Cli, project: Path) -> None:
    """Unavailable parts of a server and waiting workers are listed, each reason once."""
    reason = "The Qdrant server at http://qdrant:6333 cannot be reached."
    waits = Problem(severity=Severity.ERROR, message=f"A worker waits: {reason}")
    missing = {"index": reason, "vectors": reason}
    away = msgspec.structs.replace(STATS, missing=missing, problems=[waits, waits])
    found = _found(cli, project, away)
    problems = [text for state, subject, text in found if (state, subject) == ("bad", "server")]
    assert problems == [reason, waits.message]
