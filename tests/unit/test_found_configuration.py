"""An untrusted project configuration may use only its own folder, known models, and own items."""

import os
import shutil
from pathlib import Path

import pytest

from repertory.api import open_directory
from repertory.catalogue.item import Item
from repertory.errors import ConfigurationError, SourceError, UsageError
from repertory.project.configuration_file import becomes_trusted, rewrite
from repertory.project.trust_requests import defined_by, trust_request
from repertory.project.workspace import Workspace
from repertory.settings import Settings, load
from repertory.sources import configured
from repertory.sources.adding import Address
from repertory.sources.folder import FolderSource
from repertory.sources.registry import build
from repertory.sources.source import Source, Trust
from repertory.system.paths import lies_in
from repertory.trust import digest_now
from repertory_watch.configuration import Configuration, reload
from tests.support.builders import write
from tests.support.links import close
from tests.support.scans import latest_scans

KEY = "-----BEGIN OPENSSH PRIVATE KEY-----"
SKILL = "---\nname: {0}\ndescription: Deploys the site.\n---\n\nPush it.\n"


@pytest.fixture
def clone(own_home: Path) -> Path:
    """An untrusted project, in a home with a private key and a skill of the user."""
    write(own_home / ".ssh" / "id_rsa", KEY)
    write(own_home / ".claude" / "skills" / "mine" / "SKILL.md", SKILL.format("mine"))
    project = own_home / "clone"
    write(project / "docs" / "guide.md", "# Guide\n")
    (project / "link").symlink_to(own_home / ".ssh")
    return project


def settings(clone: Path, text: str | None = None, **environment: str) -> Settings:
    """The settings of the clone, after its configuration is written, if any is given."""
    if text is not None:
        write(clone / "repertory.toml", text)
    return load({"data_dir": str(clone.parent / "data")}, clone, environment)


def documents(path: object, more: str = "") -> str:
    """A configuration with one source of documents that includes all files."""
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
    """However the path leads out, the source is listed but not read, and the command is shown."""
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
    """The way in which the path is written does not matter."""
    found = settings(clone, documents(path.format(clone=clone)))
    assert any(item.endswith("guide.md") for item in items_of(found, clone))
    assert not Workspace(found, clone).sources.withheld()


@pytest.mark.parametrize("kind", ["corpus", "tools", "skills", "neuroscript"])
def test_every_type_of_source_is_confined(clone: Path, kind: str) -> None:
    """Sources that are a single file are confined, too."""
    found = settings(clone, f'[[sources]]\ntype = "{kind}"\nname = "e"\npath = "/dev/zero"\n')
    [source] = Workspace(found, clone).catalogue().sources
    assert not source.is_trusted


def test_an_mcp_configuration_elsewhere_is_not_even_read(clone: Path) -> None:
    """It may be a pipe, or list the user's servers. Servers known before keep their tools."""
    os.mkfifo(clone.parent / "servers.json")
    text = '[[sources]]\ntype = "mcp"\nconfig = [".mcp.json", "../servers.json"]\n'
    workspace = Workspace(settings(clone, text), clone)
    [source] = workspace.catalogue().sources
    assert (source.name, source.is_trusted) == (".mcp.json", False)
    known = {"mail": {"type": "mcp", "name": "mail", "command": "serve-mail"}}
    [source] = workspace.catalogue(known).sources
    assert (source.name, source.identity()) == ("mail", known["mail"])


def test_a_link_without_permission_ends_no_command(
    clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other sources are still read. If the configuration is such a link, the error says so."""
    for name in ("docs/x", ".mcp.json", ".gitignore", "x.json", "x.md", "skills", ".claude"):
        (clone / name).symlink_to("/closed")
    close(monkeypatch, "/closed")
    catalogue = Workspace(settings(clone), clone).catalogue()
    assert "documents/docs/guide.md" in latest_scans(catalogue).items
    assert not lies_in(clone / "skills", clone)
    (clone / "repertory.toml").symlink_to("/closed")
    with pytest.raises(ConfigurationError, match=r"toml cannot be read: Permission denied"):
        settings(clone)


def test_a_named_link_without_permission_counts_as_missing(
    clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This applies to trusting a file, and to searching, indexing and adding a folder."""
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
def test_an_invalid_path_is_an_error_of_the_configuration(clone: Path, entry: str) -> None:
    """The error names the file and the number of the source."""
    text = f"{documents('docs')}\n[[sources]]\n{entry}\n"
    with pytest.raises(ConfigurationError, match=r"clone/repertory.toml: source 2: The path '"):
        settings(clone, text)


@pytest.mark.parametrize("kind", ["skills", "documents"])
def test_a_link_to_itself_is_a_source_that_cannot_be_read(clone: Path, kind: str) -> None:
    """The source has an error, and the command does not crash."""
    (clone / "loop").symlink_to("loop")
    found = settings(clone, f'[[sources]]\ntype = "{kind}"\npath = "loop"\n')
    [source] = Workspace(found, clone).catalogue().sources
    with pytest.raises(SourceError, match="loop"):
        source.scan()


def test_the_confined_part_of_a_configuration_works(clone: Path) -> None:
    """If one source needs trust, the other sources and the settings still apply."""
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


def test_trust_does_not_change_the_identity_of_a_source(clone: Path) -> None:
    """The collection stays, with the items of a source whose file was edited."""
    found = settings(clone, documents("../.ssh"))
    before = Workspace(found, clone).catalogue()
    Workspace(found, clone).trust.trust(clone / "repertory.toml")
    assert Workspace(settings(clone), clone).catalogue().hash == before.hash


def test_a_running_watch_follows_changes_of_trust(clone: Path) -> None:
    """A folder that becomes a link is read only while the configuration is trusted."""
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
        assert now.catalogue != before.catalogue  # so that the service uses the new one
        before = now
    shutil.rmtree(clone / "docs")
    (clone / "docs").symlink_to(clone.parent / "secrets")
    assert now.catalogue is not None
    [source] = [one for one in now.catalogue.sources if one.type == "documents"]
    with pytest.raises(SourceError, match="leads out of"):
        source.scan()


def test_a_named_configuration_may_name_any_folder(clone: Path) -> None:
    """A flag may name it, or the variable for a team's watch service."""
    file = write(clone / "repertory.toml", documents("~/.ssh"))
    found = settings(clone, REPERTORY_CONFIG=str(file))
    assert set(items_of(found, clone)) == {"e/id_rsa"}
    assert not settings(clone).trusted


def test_a_link_that_replaces_a_source_s_folder_is_not_followed(clone: Path) -> None:
    """On a team's server, others may write to the catalogue while it is watched."""
    skills = '[[sources]]\ntype = "skills"\nname = "e"\npath = "docs"\n'
    for text in (documents("docs"), skills, None):
        (clone / "repertory.toml").unlink(missing_ok=True)
        write(clone / ".claude" / "commands" / "deploy.md", "# Deploy\n")
        write(clone / "docs" / "guide.md", "# Guide\n")
        write(clone / "docs" / "deploy" / "SKILL.md", SKILL.format("deploy"))
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
    """A link above it is not followed either, even if it is created after the check of the path."""
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


def test_a_discovered_link_may_lead_out_only_for_skills(clone: Path) -> None:
    """A clone's link must not turn the user's notes into commands. A SKILL.md is no accident."""
    write(clone.parent / "notes" / "diary.md", "# Diary\n\nPrivate.\n")
    write(clone.parent / "shared" / "deploy" / "SKILL.md", SKILL.format("deploy"))
    for place in (".claude/commands", ".claude/agents", "markdown-skills"):
        (clone / place).parent.mkdir(exist_ok=True)
        (clone / place).symlink_to(clone.parent / "notes")
    (clone / ".claude" / "skills").symlink_to(clone.parent / "shared")
    found = settings(clone)
    catalogue = Workspace(found, clone).catalogue()
    items = items_of(found, clone)
    assert "project-claude/deploy" in items
    assert not [item for item in items if "diary" in item]
    passed = {one.path: one.reason for one in catalogue.passed_over}
    assert "leads out of the project" in passed[str(clone / ".claude" / "commands")]


@pytest.mark.parametrize("target", ["/", "..", "."])
def test_a_discovered_link_to_a_folder_above_the_clone_is_not_followed(
    clone: Path, target: str
) -> None:
    """Other skills on the disk belong to other projects, and reading them takes minutes."""
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
def test_a_found_file_chooses_no_unknown_model(clone: Path, line: str) -> None:
    """A folder, a repository and a device need trust. Until then, the default is used."""
    found = settings(clone, f"[search]\n{line.format(clone=clone)}\nlimit = 7\n")
    assert (found.values.model, found.values.device, found.values.limit) == (None, "auto", 7)
    [wish] = found.withheld
    assert wish.startswith(f"search.{line.partition(' ')[0]} = ")
    Workspace(found, clone).trust.trust(clone / "repertory.toml")
    again = settings(clone)
    assert not again.withheld
    assert again.values != found.values


@pytest.mark.parametrize("name", ["multilingual", "BAAI/bge-small-en-v1.5", "all-minilm-l6-v2"])
def test_a_found_file_may_choose_a_known_model(clone: Path, name: str) -> None:
    """The names of known models never refer to folders."""
    found = settings(clone, f'[search]\nmodel = "{name}"\n')
    assert (found.values.model, found.withheld) == (name, ())


def test_a_found_file_cannot_disable_caches(clone: Path) -> None:
    """Without a cache, each search would start the servers that the user trusts."""
    found = settings(clone, "[search]\nno_cache = true\n")
    assert not found.values.no_cache
    assert "no_cache" not in found.origins
    assert found.withheld == ("search.no_cache = true",)
    Workspace(found, clone).trust.trust(clone / "repertory.toml")
    assert settings(clone).values.no_cache
    assert settings(clone, "", REPERTORY_SEARCH_NO_CACHE="1").values.no_cache


def test_a_found_file_cannot_set_how_often_servers_are_asked(clone: Path) -> None:
    """It could make us start the user's trusted servers ten times a second."""
    found = settings(clone, "[watch]\nreconcile = 0.1\npoll = 1.0\n")
    assert (found.values.reconcile, found.values.poll) == (60.0, 1.0)
    assert found.withheld == ("watch.reconcile = 0.1",)
    Workspace(found, clone).trust.trust(clone / "repertory.toml")
    assert settings(clone).values.reconcile == 0.1


def test_a_file_cannot_choose_where_trust_is_kept(clone: Path) -> None:
    """Only the flag and the variable of the data directory can."""
    text = documents("~/.ssh")
    Workspace(settings(clone, text), clone).trust.trust(clone / "repertory.toml")
    elsewhere = load({}, clone, {"REPERTORY_DATA_DIR": str(clone / "data")})
    assert elsewhere.is_confined
    there = load({}, clone, {"REPERTORY_DATA_DIR": str(clone.parent / "data")})
    assert not there.is_confined


def test_policies_of_a_found_file_affect_only_its_own_items(clone: Path) -> None:
    """They cannot pin the user's items, and have only an author's weight for their own."""
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


def test_policies_apply_in_a_folder_that_is_reached_through_a_link(clone: Path) -> None:
    """Places of items are compared with links resolved."""
    write(clone / "skills" / "theirs" / "SKILL.md", SKILL.format("theirs"))
    (clone.parent / "linked").symlink_to(clone)
    linked = clone.parent / "linked"
    found = settings(linked, '[[policy]]\nitem = "theirs"\npin = ["deploy"]\n')
    policy = items_of(found, linked)["project/theirs"].policy
    assert policy is not None
    assert policy.pin == ("deploy",)


def test_an_empty_list_of_sources_replaces_the_user_s_list(clone: Path) -> None:
    """A list with only fetched sources does not."""
    mine = '[[sources]]\ntype = "skills"\npath = "/mine"\n'
    write(clone.parent / ".config" / "repertory" / "config.toml", mine)
    fetched = '[[sources]]\ntype = "git"\nname = "g"\nurl = "https://example.com/a.git"\n'
    assert settings(clone, "sources = []\n").sources == ()
    assert [one["path"] for one in settings(clone, fetched).sources] == ["/mine"]


@pytest.mark.parametrize("url", ["./a", "../clone/a", "~/clone/a"])
def test_a_fetched_source_may_be_a_folder_given_relatively(clone: Path, url: str) -> None:
    """It starts from the folder of the file, or from the home."""
    entry = f'[[sources]]\ntype = "git"\nname = "g"\nurl = "{url}"\n'
    [added] = settings(clone, entry).added
    assert Path(added.entry["url"]).resolve() == clone / "a"


def test_policies_of_a_found_file_do_not_affect_the_user_s_built_in_skills(clone: Path) -> None:
    """Built-in skills that the found file defines are its own items."""
    skills = '[[sources]]\ntype = "builtin-skills"\nskills = { deploy = "How we deploy." }\n'
    policy = '[[policy]]\nitem = "deploy"\nboost = -0.2\n'
    write(clone.parent / ".config" / "repertory" / "config.toml", skills)
    assert items_of(settings(clone, policy), clone)["builtin/deploy"].policy is None
    own = items_of(settings(clone, skills + policy), clone)["builtin/deploy"].policy
    assert own is not None
    assert own.boost == -0.2


def test_the_place_of_a_source_is_checked_once(
    clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not checked again for each item and each of many policies."""
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
def test_saving_a_policy_does_not_trust_an_untrusted_file(clone: Path, boost: str) -> None:
    """Its sources stay confined, even if the file needed no trust before."""
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


def test_a_rewritten_file_becomes_trusted_only_by_the_user_s_changes(clone: Path) -> None:
    """A trusted or new file is trusted, another one only if just the user's change needs trust."""
    entry = '[[sources]]\ntype = "git"\nname = "g"\nurl = "https://example.com/a.git"\n'
    found, file = settings(clone), clone / "repertory.toml"
    trust = Workspace(found, clone).trust
    assert not becomes_trusted(file, found, clone)
    assert rewrite(file, documents("docs"), found, clone)  # a new file
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


def test_a_named_file_needs_no_trust_to_be_rewritten(clone: Path) -> None:
    """The user has named it, so it may do all it asks for."""
    file = write(clone / "repertory.toml", documents("docs"))
    named = load({"data_dir": str(clone.parent / "data"), "config": str(file)}, clone, {})
    entry = '[[sources]]\ntype = "git"\nname = "g"\nurl = "https://example.com/a.git"\n'
    assert rewrite(file, documents("docs", entry), named, clone)
    assert not Workspace(named, clone).trust.is_trusted(file)


@pytest.mark.parametrize(
    ("line", "why"),
    [("trusted = true", "cannot be trusted there"), ("environment = {A = 'b'}", "set `env` of")],
)
def test_a_file_cannot_trust_its_own_source(clone: Path, line: str, why: str) -> None:
    """Only the user's decisions set these fields of a source."""
    with pytest.raises(ConfigurationError, match=why):
        settings(clone, documents("docs", f"{line}\n"))


def test_a_found_file_cannot_disable_the_review_of_fetched_content(clone: Path) -> None:
    """This holds even if the user trusts it; a file that the user names can disable it."""
    entry = '[[sources]]\ntype = "git"\nname = "g"\nurl = "https://example.com/a.git"\n'
    found = settings(clone, f'{entry}trust = "trusted"\n')
    file = clone / "repertory.toml"
    Workspace(found, clone).trust.trust(file)
    found = settings(clone)
    assert not found.is_confined
    named = load({"data_dir": str(clone.parent / "data"), "config": str(file)}, clone, {})
    assert [one.added[0].entry["trust"] for one in (found, named)] == ["review", "trusted"]


def test_a_policy_about_other_items_is_a_problem(clone: Path) -> None:
    """The problem names the file, the table and the command to trust it."""
    found = settings(clone, '[[policy]]\nitem = "mine"\npin = ["deploy"]\n')
    catalogue = Workspace(found, clone).catalogue()
    problems = latest_scans(catalogue).problems
    [problem] = [one for one in problems if "[[policy]]" in one.message]
    assert "[[policy]] 1 is about 'mine'" in problem.message
    assert f"repertory config trust {clone / 'repertory.toml'}" in problem.message


def test_the_user_s_own_file_is_not_confined(clone: Path) -> None:
    """It may name any folder."""
    write(clone.parent / ".config" / "repertory" / "config.toml", documents("~/.ssh"))
    assert set(items_of(settings(clone), clone)) == {"e/id_rsa"}


def test_trust_applies_to_the_content_that_is_parsed(clone: Path) -> None:
    """A file that is replaced after the check does not inherit the trust of the old one."""
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


def test_links_in_the_home_are_followed(clone: Path) -> None:
    """If the home is the project, its folders belong to the user and may lead anywhere."""
    home, elsewhere = clone.parent, clone.parent.parent / "dotfiles"
    write(elsewhere / "deploy.md", "# Deploy\n")
    (home / ".claude" / "commands").symlink_to(elsewhere)
    found = load({"data_dir": str(home / "data")}, home, {})
    assert "claude-commands/deploy" in items_of(found, home)


def servers_of(clone: Path, text: str, *named: str) -> dict[str, Source]:
    """The MCP servers of a configuration and of files named on the command line."""
    write(clone / "repertory.toml", text)
    flags = {"data_dir": str(clone.parent / "data"), "mcp_config": list(named)}
    catalogue = Workspace(load(flags, clone, {}), clone).catalogue()
    return {one.name: one for one in catalogue.sources if one.type == "mcp"}


def test_a_missing_file_of_servers_is_no_fault_of_the_configuration(clone: Path) -> None:
    """The error names only the file on the command line."""
    with pytest.raises(ConfigurationError, match=f"^{clone}/none.json: the file cannot be read"):
        servers_of(clone, "[[sources]]\ntype = 'documents'\npath = '.'\n", "none.json")


@pytest.mark.parametrize("config", ['"mcp.json"', '["./mcp.json", "more.json"]', '"same.json"'])
def test_naming_a_file_of_servers_keeps_the_limits_of_its_entry(clone: Path, config: str) -> None:
    """It lets the servers run, but review, tool selection and visibility stay as configured."""
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


def test_the_last_named_file_with_a_server_is_used(clone: Path) -> None:
    """This is also true if only one of the files is configured."""
    write(clone / "one.json", '{"mcpServers": {"a": {"command": "one"}}}')
    write(clone / "two.json", '{"mcpServers": {"a": {"command": "two"}}}')
    entry = '[[sources]]\ntype = "mcp"\nconfig = "one.json"\ntrust = "quarantine"\n'
    for named, command in (("one.json", "two.json"), "two"), (("two.json", "one.json"), "one"):
        assert servers_of(clone, entry, *named)["a"].identity()["command"] == command
