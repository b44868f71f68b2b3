"""Policies in front matter and ``[[policy]]`` tables, and their effect on searches."""

from pathlib import Path

from tests.support.command_line import Cli, add_skill

SOURCES = '[[sources]]\ntype = "skills"\npath = "skills"\n'
POLICY = """
[[policy]]
item = "release-notes"
pin = ["what is new"]

[[policy]]
item = "skills/bread-baking"
deprecated_by = "pastry"
"""


def test_policies_are_active_at_the_next_search(cli: Cli, project: Path) -> None:
    """A new policy takes effect without embedding, and results name it as a reason."""
    front = "name: pastry\ndescription: Fold butter into dough.\naliases: [viennoiserie]\nboost: 9"
    add_skill(project, "pastry", f"---\n{front}\n---\n")
    configuration = project / "repertory.toml"
    configuration.write_text(SOURCES)
    plain = cli.json(project, "search", "feed the starter of a sourdough bread")
    assert plain["results"][0]["toolId"] == "skills/bread-baking"

    configuration.write_text(SOURCES + POLICY)
    [first, second, *_] = cli.json(project, "search", "feed the starter of a sourdough bread")[
        "results"
    ]
    assert (first["toolId"], second["toolId"]) == ("skills/pastry", "skills/bread-baking")
    assert first["evidence"]["policy"] == ["Instead of bread-baking, which is deprecated"]
    assert second["reason"].startswith("Deprecated, use pastry; ")

    assert cli.run(project, "config", "trust", "repertory.toml").returncode == 0
    report = cli.run(project, "index")
    assert "; 0 texts embedded with" in report.stdout, report.stdout
    assert "The `boost` was left out; it must be a number from -1 to 1." in report.stdout
    pinned = cli.json(project, "search", "tell me what is new here")["results"][0]
    assert pinned["reason"].startswith("Pinned for “what is new”")

    configuration.write_text(SOURCES)  # the earlier configuration, which is already indexed
    again = cli.json(project, "search", "feed the starter of a sourdough bread")["results"][0]
    assert (again["toolId"], again["evidence"]["policy"]) == ("skills/bread-baking", [])


def test_a_wrong_policy_is_exit_code_2(cli: Cli, project: Path) -> None:
    """The error names the file, the table and the wrong key."""
    (project / "repertory.toml").write_text(SOURCES + POLICY.replace("pin", "pins"))
    done = cli.run(project, "search", "bread")
    assert done.returncode == 2
    assert "repertory.toml: [[policy]] 1 (release-notes) has no key 'pins'; it has item, pin" in (
        " ".join(done.stderr.split())
    )
