"""What a configuration that was merely found may use: its own folder, known models, own items."""

import os
import shutil
from pathlib import Path

import pytest

from repertory.api import open_directory
from repertory.catalogue.item import Item
from repertory.configuration_file import becomes_trusted, rewrite
from repertory.errors import ConfigurationError, SourceError, UsageError
from repertory.settings import Settings, load
from repertory.sources import configured
from repertory.sources.adding import Address
from repertory.sources.folder import FolderSource
from repertory.sources.registry import build
from repertory.sources.source import Source, Trust
from repertory.trust import digest_now, lies_in
from repertory.trust_requests import defined_by, trust_request
from repertory.workspace import Workspace
from repertory_watch.configuration import Configuration, reload
from tests.support.builders import write
from tests.support.links import close
from tests.support.scans import latest_scans

KEY = "-----BEGIN OPENSSH PRIVATE KEY-----"
SKILL = "---\nname: {0}\ndescription: Deploys the site.\n---\n\nPush it.\n"


@pytest.fixture
def clone(own_home: Path) -> Path:
    """A stranger's project below a home with a private key and a skill of the user."""
    write(own_home / ".ssh" / "id_rsa", KEY)
    write(own_home / ".claude" / "skills" / "mine" / "SKILL.md", SKILL.format("mine"))
    project = own_home / "clone"
    write(project / "docs" / "guide.md", "# Guide\n")
    (project / "link").symlink_to(own_home / ".ssh")
    return project


def settings(clone: Path, text: str | None = None, **environment: str) -> Settings:
    """The settings of the clone, whose configuration is written first."""
    if text is not None:
        write(clone / "repertory.toml", text)
    return load({"data_dir": str(clone.parent / "data")}, clone, environment)


def documents(path: object, more: str = "") -> str:
    """A configuration of one source of documents, all files included."""
    return f'[[sources]]\ntype = "documents"\nname = "e"\npath = "{path}"\ninclude = ["*"]\n{more}'


def items_of(settings: Settings, clone: Path) -> dict[str, Item]:
    """The items of all sources that can be read."""
    catalogue = Workspace(settings, clone).catalogue()
    return dict(latest_scans(catalogue).items)


@pytest.mark.parametrize(
    "path",
    ["~/.ssh", "../.ssh", "{home}/.ssh", "link", "docs/../../.ssh", "/", "..", "~", "./link/."],
)
def test_a_path_outside_of_the_folder_awaits_trust(clone: Path, path: str) -> None:
    """By home, dots, a link or whole: the source is named with the command, and not read."""
    found = settings(clone, documents(path.format(home=clone.parent)))
    [source] = Workspace(found, clone).catalogue().sources
    assert (source.name, source.type, source.is_trusted) == ("e", "documents", False)
    assert source.folder is None
    command = f"repertory config trust {clone / 'repertory.toml'}"
    with pytest.raises(SourceError, match=command):
        source.scan()
    [reason] = Workspace(found, clone).sources.withheld()
    assert command in reason


@pytest.mark.parametrize(
    "path", ["docs", ".", "./docs", "../clone/docs", "{clone}/docs", "~/clone"]
)
def test_a_path_inside_of_the_folder_needs_no_trust(clone: Path, path: str) -> None:
    """However it is written."""
    found = settings(clone, documents(path.format(clone=clone)))
    assert any(item.endswith("guide.md") for item in items_of(found, clone))
    assert not Workspace(found, clone).sources.withheld()


@pytest.mark.parametrize("kind", ["corpus", "tools", "skills", "neuroscript"])
def test_every_type_of_source_is_confined(clone: Path, kind: str) -> None:
    """Also those of a single file."""
    found = settings(clone, f'[[sources]]\ntype = "{kind}"\nname = "e"\npath = "/dev/zero"\n')
    [source] = Workspace(found, clone).catalogue().sources
    assert not source.is_trusted


def test_an_mcp_configuration_elsewhere_is_not_even_read(clone: Path) -> None:
    """It could be a pipe, or name the user's servers; the servers known before keep their tools."""
    os.mkfifo(clone.parent / "servers.json")
    text = '[[sources]]\ntype = "mcp"\nconfig = [".mcp.json", "../servers.json"]\n'
    workspace = Workspace(settings(clone, text), clone)
    [source] = workspace.catalogue().sources
    assert (source.name, source.is_trusted) == (".mcp.json", False)
    known = {"mail": {"type": "mcp", "name": "mail", "command": "serve-mail"}}
    [source] = workspace.catalogue(known).sources
    assert (source.name, source.identity()) == ("mail", known["mail"])


def test_a_link_that_may_not_be_followed_ends_no_command(
    clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it lies: the other sources are read, and a source of its own says why it is not."""
    for name in ("docs/x", ".mcp.json", ".gitignore", "x.json", "x.md", "skills", ".claude"):
        (clone / name).symlink_to("/closed")
    close(monkeypatch, "/closed")
    catalogue = Workspace(settings(clone), clone).catalogue()
    assert "documents/docs/guide.md" in latest_scans(catalogue).items
    assert not lies_in(clone / "skills", clone)
    (clone / "repertory.toml").symlink_to("/closed")
    with pytest.raises(ConfigurationError, match=r"toml cannot be read: Permission denied"):
        settings(clone)


def test_a_named_link_that_may_not_be_followed_is_not_there(
    clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it is to be trusted, or is a folder to search, to index or to add."""
    (clone / "closed").symlink_to("/closed")
    close(monkeypatch, "/closed")
    workspace = Workspace(settings(clone), clone)
    with pytest.raises(UsageError, match="There is no file"):
        defined_by(clone / "closed", workspace)
    with pytest.raises(UsageError, match="There is no file"):
        trust_request(clone / "closed", {})
    with pytest.raises(UsageError, match="There is no directory"):
        open_directory(clone / "closed")
    with pytest.raises(UsageError, match="There is no "):
        workspace.set_paths([clone / "closed"])
    assert Address(str(clone / "closed"), clone, {}).path is None
    with pytest.raises(UsageError, match="cannot be trusted"):
        digest_now(clone / "docs")


@pytest.mark.parametrize(
    "entry",
    [
        'type = "mcp"\nconfig = "a\\u0000b"',
        'type = "mcp"\nconfig = ["a", "~nosuchuser/b"]',
        'type = "archive"\npath = "~\\u0000"',
        'type = "git"\nurl = "~nosuchuser/b"',
        'type = "openapi"\npath = "~nosuchuser/b"',
        'type = "documents"\npath = "~nosuchuser/b"',
    ],
)
def test_what_is_no_path_is_an_error_of_the_configuration(clone: Path, entry: str) -> None:
    """It names the file, and the entry by its number."""
    text = f"{documents('docs')}\n[[sources]]\n{entry}\n"
    with pytest.raises(ConfigurationError, match=r"clone/repertory.toml: source 2: The path '"):
        settings(clone, text)


@pytest.mark.parametrize("kind", ["skills", "documents"])
def test_a_link_to_itself_is_a_source_that_cannot_be_read(clone: Path, kind: str) -> None:
    """It is no defect."""
    (clone / "loop").symlink_to("loop")
    found = settings(clone, f'[[sources]]\ntype = "{kind}"\npath = "loop"\n')
    [source] = Workspace(found, clone).catalogue().sources
    with pytest.raises(SourceError, match="loop"):
        source.scan()


def test_the_rest_of_a_configuration_works(clone: Path) -> None:
    """A user's own project with a folder beside it keeps its other sources and its settings."""
    text = f"[search]\nlimit = 7\n\n{documents('docs')}"
    text += '[[sources]]\ntype = "skills"\nname = "shared"\npath = "../shared"\n'
    write(clone.parent / "shared" / "pdf" / "SKILL.md", SKILL.format("pdf"))
    found = settings(clone, text)
    assert set(items_of(found, clone)) == {"e/guide.md"}
    assert found.values.limit == 7
    Workspace(found, clone).trust.trust(clone / "repertory.toml")
    again = settings(clone)
    assert set(items_of(again, clone)) == {"e/guide.md", "shared/pdf"}
    write(clone / "repertory.toml", text + "# changed\n")
    assert set(items_of(settings(clone), clone)) == {"e/guide.md"}


def test_trust_leaves_the_identity_of_a_source(clone: Path) -> None:
    """So the collection stays, and the items of a source whose file was edited stay in it."""
    found = settings(clone, documents("../.ssh"))
    before = Workspace(found, clone).catalogue()
    Workspace(found, clone).trust.trust(clone / "repertory.toml")
    assert Workspace(settings(clone), clone).catalogue().hash == before.hash


def test_trust_that_is_given_or_withdrawn_holds_in_a_running_watch(clone: Path) -> None:
    """A folder that becomes a link is read for as long as the file is trusted, and no longer."""
    write(clone.parent / "secrets" / "key.md", f"# Key\n\n{KEY}\n")
    workspace = Workspace(settings(clone, documents("docs")), clone)
    before = Configuration(workspace)
    for is_trusted in (False, True, False):
        if is_trusted:
            workspace.trust.trust(clone / "repertory.toml")
        elif workspace.trust.is_trusted(clone / "repertory.toml"):
            workspace.trust.revoke(clone / "repertory.toml")
        now = reload(before)
        assert now.catalogue is not None
        assert now.catalogue != before.catalogue  # so that the service takes it over
        before = now
    shutil.rmtree(clone / "docs")
    (clone / "docs").symlink_to(clone.parent / "secrets")
    assert now.catalogue is not None
    [source] = [one for one in now.catalogue.sources if one.type == "documents"]
    with pytest.raises(SourceError, match="leads out of"):
        source.scan()


def test_a_named_configuration_may_name_any_folder(clone: Path) -> None:
    """Named by a flag, or by the variable that a team's watch service is given."""
    file = write(clone / "repertory.toml", documents("~/.ssh"))
    found = settings(clone, REPERTORY_CONFIG=str(file))
    assert set(items_of(found, clone)) == {"e/id_rsa"}
    assert not settings(clone).trusted


def test_a_link_that_is_put_in_place_later_is_not_followed(clone: Path) -> None:
    """On a team's server others can write to the catalogue while it is watched."""
    for text in (documents("docs"), None):
        (clone / "repertory.toml").unlink(missing_ok=True)
        write(clone / ".claude" / "commands" / "deploy.md", "# Deploy\n")
        write(clone / "docs" / "guide.md", "# Guide\n")
        catalogue = Workspace(settings(clone, text), clone).catalogue()
        place = clone / ("docs" if text else ".claude/commands")
        [source] = [one for one in catalogue.sources if one.place == str(place)]
        assert source.scan().items
        shutil.rmtree(place)
        place.symlink_to(clone.parent)
        with pytest.raises(SourceError, match="leads out"):
            source.scan()
        place.unlink()


@pytest.mark.parametrize("kind", ["corpus", "tools"])
@pytest.mark.parametrize("above", [False, True])
def test_a_file_that_becomes_a_link_is_not_followed(
    clone: Path, monkeypatch: pytest.MonkeyPatch, kind: str, above: bool
) -> None:
    """Nor one above it, even if it is put there after the place was checked."""
    content = {
        "corpus": '{"id": "a", "kind": "tool", "name": "a"}',
        "tools": '[{"name": "a", "inputSchema": {}}]',
    }[kind]
    monkeypatch.setattr(FolderSource, "check_place", lambda _: None)
    for folder in (clone / "in", clone.parent / "out"):
        write(folder / "c.json", content)
    text = f'[[sources]]\ntype = "{kind}"\nname = "e"\npath = "in/c.json"\n'
    [source] = Workspace(settings(clone, text), clone).catalogue().sources
    assert source.scan().items
    shutil.move(clone / "in", clone / "moved")
    (clone / "in").symlink_to("moved")
    assert source.scan().items
    (clone / "in").unlink()
    if above:
        (clone / "in").symlink_to(clone.parent / "out")
    else:
        (clone / "in").mkdir()
        (clone / "in" / "c.json").symlink_to(clone.parent / "out" / "c.json")
    with pytest.raises(SourceError, match="leads out of"):
        source.scan()


def test_a_found_link_leads_out_for_skills_alone(clone: Path) -> None:
    """Without a configuration, a clone's link makes no notes of the user its commands."""
    write(clone.parent / "notes" / "diary.md", "# Diary\n\nPrivate.\n")
    for place in (".claude/commands", ".claude/agents", "markdown-skills"):
        (clone / place).parent.mkdir(exist_ok=True)
        (clone / place).symlink_to(clone.parent / "notes")
    found = settings(clone)
    catalogue = Workspace(found, clone).catalogue()
    assert not [item for item in items_of(found, clone) if "diary" in item]
    passed = {one.path: one.reason for one in catalogue.passed_over}
    assert "leads out of the project" in passed[str(clone / ".claude" / "commands")]


@pytest.mark.parametrize("target", ["/", "..", "."])
def test_a_found_link_reads_no_folder_that_the_clone_lies_in(clone: Path, target: str) -> None:
    """The skills of the whole disk took minutes to read, and belong to others."""
    write(clone.parent / "other" / "SKILL.md", "---\ndescription: Of another project.\n---\n")
    (clone / "skills").symlink_to(target)
    found = settings(clone)
    assert not [item for item in items_of(found, clone) if "other" in item]
    passed = {one.path: one.reason for one in Workspace(found, clone).catalogue().passed_over}
    assert "leads" in passed[str(clone / "skills")]


@pytest.mark.parametrize(
    "line",
    [
        'model = "./all-MiniLM-L6-v2"',
        'model = "someone/repository"',
        'model = "{clone}"',
        'device = "gpu"',
    ],
)
def test_a_found_file_chooses_no_stranger_s_model(clone: Path, line: str) -> None:
    """Neither a folder nor a repository, nor where it runs; the default is used, and it is said."""
    found = settings(clone, f"[search]\n{line.format(clone=clone)}\nlimit = 7\n")
    assert (found.values.model, found.values.device, found.values.limit) == (None, "auto", 7)
    [wish] = found.withheld
    assert wish.startswith(f"search.{line.partition(' ')[0]} = ")
    Workspace(found, clone).trust.trust(clone / "repertory.toml")
    again = settings(clone)
    assert not again.withheld
    assert again.values != found.values


@pytest.mark.parametrize("name", ["multilingual", "BAAI/bge-small-en-v1.5", "all-minilm-l6-v2"])
def test_a_found_file_chooses_a_model_of_the_table(clone: Path, name: str) -> None:
    """Its names are never folders."""
    found = settings(clone, f'[search]\nmodel = "{name}"\n')
    assert (found.values.model, found.withheld) == (name, ())


def test_a_found_file_does_not_switch_caches_off(clone: Path) -> None:
    """Each search would start the servers that the user trusts."""
    found = settings(clone, "[search]\nno_cache = true\n")
    assert not found.values.no_cache
    assert "no_cache" not in found.origins
    assert found.withheld == ("search.no_cache = true",)
    Workspace(found, clone).trust.trust(clone / "repertory.toml")
    assert settings(clone).values.no_cache
    assert settings(clone, "", REPERTORY_SEARCH_NO_CACHE="1").values.no_cache


def test_a_found_file_does_not_say_how_often_servers_are_asked(clone: Path) -> None:
    """It had a server start those that the user trusts ten times a second."""
    found = settings(clone, "[watch]\nreconcile = 0.1\npoll = 1.0\n")
    assert (found.values.reconcile, found.values.poll) == (60.0, 1.0)
    assert found.withheld == ("watch.reconcile = 0.1",)
    Workspace(found, clone).trust.trust(clone / "repertory.toml")
    assert settings(clone).values.reconcile == 0.1


def test_a_file_cannot_choose_where_trust_is_kept(clone: Path) -> None:
    """The variable and the flag of the data directory do; the file would be refused."""
    text = documents("~/.ssh")
    Workspace(settings(clone, text), clone).trust.trust(clone / "repertory.toml")
    elsewhere = load({}, clone, {"REPERTORY_DATA_DIR": str(clone / "data")})
    assert elsewhere.is_confined
    there = load({}, clone, {"REPERTORY_DATA_DIR": str(clone.parent / "data")})
    assert not there.is_confined


def test_policies_are_about_own_items(clone: Path) -> None:
    """A stranger pins no item of the user's, and own items no more than their authors could."""
    text = '[[policy]]\nitem = "{}"\npin = ["deploy"]\nboost = 1\n'
    write(clone / "skills" / "theirs" / "SKILL.md", SKILL.format("theirs"))
    found = settings(clone, text.format("*"))
    items = items_of(found, clone)
    theirs, mine = items["project/theirs"].policy, items["user-claude/mine"].policy
    assert theirs is not None
    assert (theirs.pin, theirs.is_vouched, theirs.boost) == (("deploy",), False, 0.25)
    assert mine is None
    assert found.withheld == ("the full weight of its pins and boosts",)
    Workspace(found, clone).trust.trust(clone / "repertory.toml")
    trusted = items_of(settings(clone), clone)["user-claude/mine"].policy
    assert trusted is not None
    assert (trusted.is_vouched, trusted.boost) == (True, 1.0)


def test_policies_are_about_no_built_in_skills_of_the_user(clone: Path) -> None:
    """Those of the found file itself are its own."""
    skills = '[[sources]]\ntype = "builtin-skills"\nskills = { deploy = "How we deploy." }\n'
    policy = '[[policy]]\nitem = "deploy"\nboost = -0.2\n'
    write(clone.parent / ".config" / "repertory" / "config.toml", skills)
    assert items_of(settings(clone, policy), clone)["builtin/deploy"].policy is None
    own = items_of(settings(clone, skills + policy), clone)["builtin/deploy"].policy
    assert own is not None
    assert own.boost == -0.2


def test_where_a_source_lies_is_asked_once(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And not for each of its items and each of very many policies."""
    asked: list[object] = []

    def ask(path: Path | str, folder: Path | str) -> bool:
        asked.append(path)
        return lies_in(path, folder)

    for number in range(20):
        write(clone / "docs" / f"{number}.md", "# A\n")
    found = settings(clone, documents("docs") + '[[policy]]\nitem = "*"\nboost = 0.1\n' * 20)
    monkeypatch.setattr(configured, "lies_in", ask)
    items = items_of(found, clone)
    assert all(item.policy for item in items.values())
    assert (len(items), len(asked)) == (21, 1)


@pytest.mark.parametrize("boost", ["0.1", "0.6"])
def test_a_saved_policy_trusts_no_file_that_nobody_trusted(clone: Path, boost: str) -> None:
    """Its sources stay confined, even if the file asked for nothing before."""
    found = settings(clone, documents("docs"))
    file = clone / "repertory.toml"
    assert not trust_request(file, found.flags).wishes
    text = f'{file.read_text()}[[policy]]\nitem = "e/guide.md"\nboost = {boost}\n'
    assert not rewrite(file, text, found, clone)
    found = Workspace(found, clone).reloaded().settings
    assert found.is_confined
    shutil.rmtree(clone / "docs")
    (clone / "docs").symlink_to(clone.parent / ".ssh")
    assert not items_of(found, clone)


def test_a_rewritten_file_is_trusted_only_by_its_user(clone: Path) -> None:
    """It stays trusted, a new one is, and another one only with what the user just added."""
    entry = '[[sources]]\ntype = "git"\nname = "g"\nurl = "https://example.com/a.git"\n'
    found, file = settings(clone), clone / "repertory.toml"
    trust = Workspace(found, clone).trust
    assert not becomes_trusted(file, found, clone)
    assert rewrite(file, documents("docs"), found, clone)  # it was not there
    assert rewrite(file, documents("docs", "# x\n"), found, clone)
    assert trust.is_trusted(file)
    trust.revoke(file)
    assert rewrite(file, documents("docs"), found, clone, by_user=True)
    assert not trust.is_trusted(file)  # it needs no trust
    assert becomes_trusted(file, found, clone)
    assert not rewrite(file, documents("docs", entry), found, clone)
    assert not becomes_trusted(file, found, clone)
    assert not rewrite(file, documents("docs", entry), found, clone, by_user=True)
    write(file, documents("docs"))
    assert rewrite(file, documents("docs", entry), found, clone, by_user=True)
    assert trust.is_trusted(file)


def test_a_policy_about_other_items_is_listed(clone: Path) -> None:
    """The problem names the file, the table and the command."""
    found = settings(clone, '[[policy]]\nitem = "mine"\npin = ["deploy"]\n')
    catalogue = Workspace(found, clone).catalogue()
    problems = latest_scans(catalogue).problems
    [problem] = [one for one in problems if "[[policy]]" in one.message]
    assert "[[policy]] 1 is about 'mine'" in problem.message
    assert f"repertory config trust {clone / 'repertory.toml'}" in problem.message


def test_the_user_s_own_file_is_not_confined(clone: Path) -> None:
    """It is the user's, wherever it was found."""
    write(clone.parent / ".config" / "repertory" / "config.toml", documents("~/.ssh"))
    assert set(items_of(settings(clone), clone)) == {"e/id_rsa"}


def test_what_is_parsed_is_what_was_trusted(clone: Path) -> None:
    """A configuration that is swapped after the check is not run with the other's trust."""
    config = write(clone / ".mcp.json", '{"mcpServers": {"a": {"command": "true"}}}')
    workspace = Workspace(settings(clone), clone)
    workspace.trust.trust(config)
    [entry] = [one for one in workspace.sources.entries() if one.get("config") == str(config)]
    assert entry["trusted"]
    [source] = build(entry, clone)
    assert source.is_trusted
    config.write_text('{"mcpServers": {"a": {"command": "evil"}}}')
    [source] = build(entry, clone)
    assert not source.is_trusted


def test_the_links_of_a_home_are_the_user_s(clone: Path) -> None:
    """Where the home is the directory, its folders may lead anywhere."""
    home, elsewhere = clone.parent, clone.parent.parent / "dotfiles"
    write(elsewhere / "deploy.md", "# Deploy\n")
    (home / ".claude" / "commands").symlink_to(elsewhere)
    found = load({"data_dir": str(home / "data")}, home, {})
    assert "claude-commands/deploy" in items_of(found, home)


def servers_of(clone: Path, text: str, *named: str) -> dict[str, Source]:
    """The MCP servers of a configuration, with files that the command line names."""
    write(clone / "repertory.toml", text)
    flags = {"data_dir": str(clone.parent / "data"), "mcp_config": list(named)}
    catalogue = Workspace(load(flags, clone, {}), clone).catalogue()
    return {one.name: one for one in catalogue.sources if one.type == "mcp"}


def test_a_file_of_servers_that_is_not_there_is_no_fault_of_the_configuration(clone: Path) -> None:
    """The message names the file that the command line names, and no other."""
    with pytest.raises(ConfigurationError, match=f"^{clone}/none.json cannot be read"):
        servers_of(clone, "[[sources]]\ntype = 'documents'\npath = '.'\n", "none.json")


@pytest.mark.parametrize("config", ['"mcp.json"', '["./mcp.json", "more.json"]', '"same.json"'])
def test_naming_a_file_of_servers_lifts_no_limit_of_its_entry(clone: Path, config: str) -> None:
    """It lets the servers run. The review, the chosen tools and the callers are as configured."""
    write(clone / "mcp.json", '{"mcpServers": {"a": {"command": "a"}}}')
    write(clone / "more.json", '{"mcpServers": {"b": {"command": "b"}}}')
    (clone / "same.json").symlink_to("mcp.json")
    entry = f'[[sources]]\ntype = "mcp"\nconfig = {config}\n'
    limits = 'trust = "quarantine"\ninclude = ["read_*"]\nexclude = ["*_all"]\nvisible_to = ["x"]\n'
    configured = servers_of(clone, entry + limits)["a"]
    named = servers_of(clone, entry + limits, "mcp.json")
    assert (configured.is_trusted, named["a"].is_trusted) == (False, True)
    assert named["a"].trust is configured.trust is Trust.QUARANTINE
    assert named["a"].identity() == configured.identity()
    assert named["a"].visible_to == ("x",)
    if "b" in named:
        assert not named["b"].is_trusted
        assert named["b"].trust is Trust.QUARANTINE


def test_of_a_server_in_several_named_files_the_last_is_used(clone: Path) -> None:
    """So it is if only one of the files is configured."""
    write(clone / "one.json", '{"mcpServers": {"a": {"command": "one"}}}')
    write(clone / "two.json", '{"mcpServers": {"a": {"command": "two"}}}')
    entry = '[[sources]]\ntype = "mcp"\nconfig = "one.json"\ntrust = "quarantine"\n'
    for named, command in (("one.json", "two.json"), "two"), (("two.json", "one.json"), "one"):
        assert servers_of(clone, entry, *named)["a"].identity()["command"] == command
