"""The MCP configurations of all supported agent hosts are read."""

import json
import os
from pathlib import Path

import msgspec
import pytest

from repertory.errors import ConfigurationError
from repertory.sources.mcp.config import read_files, servers_digest
from repertory.sources.mcp.server import (
    DEFAULT_TIMEOUT_S,
    OAuthClient,
    ServerConfig,
    Transport,
    launches_repertory,
)
from repertory.sources.mcp.variables import fill_in
from repertory.trust import digest_of
from tests.support.builders import write


def read(path: Path, text: str) -> dict[str, ServerConfig]:
    """The servers of one file by name."""
    return {server.name: server for server in read_files([write(path, text)]).servers}


def test_claude_files_define_commands_and_addresses(tmp_path: Path) -> None:
    """Claude Desktop and Claude Code: commands have an environment, addresses have headers."""
    servers = read(
        tmp_path / ".mcp.json",
        """{"mcpServers":{
  "files":{"type":"stdio","command":"npx",
           "args":["-y","@modelcontextprotocol/server-filesystem","/tmp"],
           "env":{"K":"${VAR:-default}"}},
  "api":{"type":"http","url":"https://x/mcp","headers":{"Authorization":"Bearer ${TOKEN}"}}}}""",
    )
    files, api = servers["files"], servers["api"]
    assert (files.transport, files.command) == (Transport.STDIO, "npx")
    assert files.args == ("-y", "@modelcontextprotocol/server-filesystem", "/tmp")
    assert files.env == {"K": "${VAR:-default}"}
    assert (files.timeout, files.workspace) == (DEFAULT_TIMEOUT_S, str(tmp_path))
    assert (api.transport, api.url) == (Transport.HTTP, "https://x/mcp")
    assert api.headers == {"Authorization": "Bearer ${TOKEN}"}


@pytest.mark.parametrize(
    ("oauth", "client"),
    [
        (
            '{"clientId": "me", "clientSecret": "${S}", "callbackPort": 8080, "scopes": ["a"]}',
            OAuthClient(client_id="me", client_secret="${S}", callback_port=8080),
        ),
        ('{"enabled": true}', OAuthClient()),
        ("false", OAuthClient()),
        ("null", OAuthClient()),
    ],
)
def test_a_manually_registered_oauth_client_is_read(
    tmp_path: Path, oauth: str, client: OAuthClient
) -> None:
    """Claude Code and Gemini: the secret is a variable and not part of the representation."""
    text = f'{{"mcpServers": {{"a": {{"url": "https://x/mcp", "oauth": {oauth}}}}}}}'
    server = read(tmp_path / ".mcp.json", text)["a"]
    assert (server.fault, server.oauth) == ("", client)
    assert "${S}" not in repr(server.oauth)


def test_the_top_level_servers_of_the_claude_user_file_are_read(tmp_path: Path) -> None:
    """The rest of ``~/.claude.json`` is ignored."""
    text = '{"projects": {"/a": {"history": []}}, "mcpServers": {"a": {"command": "a"}}}'
    assert list(read(tmp_path / ".claude.json", text)) == ["a"]


@pytest.mark.parametrize(
    ("kind", "transport"),
    [
        ("sse", Transport.SSE),
        ("streamable-http", Transport.HTTP),
        ("streamableHttp", Transport.HTTP),
        (None, Transport.HTTP),
    ],
)
def test_cursor_addresses_may_have_any_spelling_of_a_type(
    tmp_path: Path, kind: str | None, transport: Transport
) -> None:
    """An address without a type uses streamable HTTP. Cursor has its own keys for a client."""
    client = {"CLIENT_ID": "${env:ID}", "CLIENT_SECRET": "${env:S}", "scopes": ["read"]}
    entry = {"type": kind, "url": "https://x/mcp", "auth": client}
    text = json.dumps({"mcpServers": {"a": entry}})
    server = read(tmp_path / ".cursor/mcp.json", text)["a"]
    assert server.transport is transport
    assert server.oauth == OAuthClient(client_id="${env:ID}", client_secret="${env:S}")


def test_cursor_commands_may_have_an_env_file_and_a_working_directory(tmp_path: Path) -> None:
    """The workspace is the folder above ``.cursor``."""
    server = read(
        tmp_path / ".cursor/mcp.json",
        '{"mcpServers":{"a":{"command":"a","envFile":".env","cwd":"sub","env":{"N":"${env:NAME}"}}}}',
    )["a"]
    assert (server.env_file, server.cwd, server.workspace) == (".env", "sub", str(tmp_path))
    assert server.env == {"N": "${env:NAME}"}


def test_vs_code_files_are_read(tmp_path: Path) -> None:
    """VS Code calls the table ``servers``; the workspace is the folder above ``.vscode``."""
    servers = read(
        tmp_path / ".vscode/mcp.json",
        """{"inputs":[{"type":"promptString","id":"tok","description":"API token","password":true}],
 "servers":{"gh":{"type":"http","url":"https://api.githubcopilot.com/mcp/",
                  "headers":{"Authorization":"Bearer ${input:tok}"}},
            "fs":{"type":"stdio","command":"npx","args":["-y","…","${workspaceFolder}"],
                  "envFile":"${workspaceFolder}/.env"}}}""",
    )
    assert servers["gh"].headers == {"Authorization": "Bearer ${input:tok}"}
    assert servers["fs"].args == ("-y", "…", "${workspaceFolder}")
    assert servers["fs"].env_file == "${workspaceFolder}/.env"
    assert servers["fs"].workspace == str(tmp_path)


def test_codex_commands_are_read(tmp_path: Path) -> None:
    """Codex passes on variables by name and counts in seconds; an empty list filters nothing."""
    server = read(
        tmp_path / ".codex/config.toml",
        """[mcp_servers.gh]
command = "npx"            # or url = "https://…"
args = ["-y", "…"]
env_vars = ["GITHUB_TOKEN", {name = "HOST", source = "local"}]
bearer_token_env_var = "GITHUB_TOKEN"
http_headers = {}          # also env_http_headers
enabled = true
enabled_tools = []         # also disabled_tools, cwd, env
startup_timeout_sec = 10.0 # also startup_timeout_ms
tool_timeout_sec = 60.0
""",
    )["gh"]
    assert (server.transport, server.command, server.args) == (Transport.STDIO, "npx", ("-y", "…"))
    assert server.env_names == ("GITHUB_TOKEN", "HOST")
    assert (server.include, server.timeout, server.call_timeout) == ((), 10.0, 60.0)


def test_codex_addresses_are_read(tmp_path: Path) -> None:
    """Codex has literal headers, headers from the environment, and a bearer token."""
    server = read(
        tmp_path / "config.toml",
        """[mcp_servers.api]
url = "https://x/mcp"
bearer_token_env_var = "TOKEN"
http_headers = { X-Team = "search" }
env_http_headers = { X-Key = "KEY" }
enabled_tools = ["find_*"]
disabled_tools = ["find_all"]
startup_timeout_ms = 2500
""",
    )["api"]
    assert server.headers == {
        "X-Team": "search",
        "X-Key": "${KEY}",
        "Authorization": "Bearer ${TOKEN}",
    }
    assert (server.include, server.exclude) == (("find_*",), ("find_all",))
    assert (server.transport, server.timeout) == (Transport.HTTP, 2.5)


def test_gemini_files_are_read(tmp_path: Path) -> None:
    """Gemini's httpUrl is HTTP and its url is SSE; it has milliseconds and excluded servers."""
    servers = read(
        tmp_path / ".gemini/settings.json",
        """{"theme": "dark",
            "mcp": {"allowed": ["web", "events", "local"], "excluded": ["local"]},
            "mcpServers": {
              "web": {"httpUrl": "https://x/mcp", "timeout": 5000, "trust": true},
              "events": {"url": "https://x/sse", "includeTools": ["a"], "excludeTools": ["b"]},
              "local": {"command": "a"},
              "other": {"command": "b"}}}""",
    )
    assert set(servers) == {"web", "events"}
    assert (servers["web"].transport, servers["web"].timeout) == (Transport.HTTP, 5.0)
    assert servers["events"].transport is Transport.SSE
    assert (servers["events"].include, servers["events"].exclude) == (("a",), ("b",))


@pytest.mark.parametrize("folder", [".gemini", ".qwen"])
def test_gemini_variables_may_have_no_braces(tmp_path: Path, folder: str) -> None:
    """Gemini and Qwen leave those without a value as they are."""
    server = read(
        tmp_path / folder / "settings.json",
        """{"$schema": "https://x/$y", "mcpServers": {"a": {
              "command": "$BIN/a", "args": ["$UNSET", "${SET}", "${UNSET:-$5}", "5$"],
              "env": {"TOKEN": "$SET"}}}}""",
    )["a"]
    known = msgspec.structs.replace(server, environment={"BIN": "/bin", "SET": "secret"})
    launch = fill_in(known)
    assert (launch.command, launch.args) == ("/bin/a", ("$UNSET", "secret", "$5", "5$"))
    assert launch.env == {"TOKEN": "secret"}
    assert server.workspace == str(tmp_path)


def test_windsurf_and_cline_files_are_read(tmp_path: Path) -> None:
    """Windsurf writes ``serverUrl``, Cline a timeout in seconds; both can disable tools."""
    servers = read(
        tmp_path / "mcp_config.json",
        """{"mcpServers": {"web": {"serverUrl": "https://x/mcp"},
                           "local": {"command": "a", "timeout": 60,
                                     "disabledTools": ["drop"]}}}""",
    )
    assert (servers["web"].transport, servers["web"].url) == (Transport.HTTP, "https://x/mcp")
    assert (servers["local"].timeout, servers["local"].exclude) == (60.0, ("drop",))


def test_zed_files_are_read(tmp_path: Path) -> None:
    """Servers that an extension of Zed provides are ignored, as are other settings."""
    servers = read(
        tmp_path / "settings.json",
        """// Zed
{"theme": "One", "context_servers": {
  "notes": {"source": "custom", "command": "notes", "args": ["-v"], "env": {"A": "b"}},
  "postgres": {"source": "extension", "enabled": true, "settings": {"url": "x"}},
  "older": {"command": {"path": "notes", "args": ["-v"], "env": {"A": "b"}}, "settings": {}},
  "bare": {"command": {"path": "notes", "env": null}},
  "older_extension": {"command": null, "settings": {}},
  "off": {"command": "x", "enabled": false},}}""",
    )
    assert list(servers) == ["notes", "older", "bare"]
    for notes in (servers["notes"], servers["older"]):
        assert (notes.command, notes.args, notes.env) == ("notes", ("-v",), {"A": "b"})
    bare = servers["bare"]
    assert (bare.fault, bare.command, bare.args, bare.env) == ("", "notes", (), {})


def test_opencode_files_are_read(tmp_path: Path) -> None:
    """A command is a list, and variables have their own syntax. Overrides are ignored."""
    servers = read(
        tmp_path / "opencode.jsonc",
        """{"model": "a/b", "mcp": { // servers
  "notes": {"type": "local", "command": ["npx", "-y", "notes"], "environment": {"A": "{env:B}"},
            "timeout": 5000},
  "far": {"type": "remote", "url": "https://x/mcp", "headers": {"K": "Key {env:K}"},
          "oauth": {}},
  "preset": {"enabled": true},
  "bad": {"type": "local", "command": []},
  "key": {"type": "remote", "url": "https://x/mcp", "headers": {"K": "{file:~/.key}"}},
  "off": {"type": "local", "command": ["x"], "enabled": false}}}""",
    )
    assert set(servers) == {"notes", "far", "bad", "key"}
    notes, far = servers["notes"], servers["far"]
    assert "{file:…} is not supported" in servers["key"].fault
    assert (notes.command, notes.args, notes.env) == ("npx", ("-y", "notes"), {"A": "${B}"})
    assert (notes.timeout, far.fault) == (5.0, "")
    assert (far.transport, far.headers) == (Transport.HTTP, {"K": "Key ${K}"})
    assert "opencode.jsonc:7: " in servers["bad"].fault


def test_opencode_2_files_are_read(tmp_path: Path) -> None:
    """Servers are under ``servers``, which may also be the name of a server of opencode 1."""
    servers = read(
        tmp_path / "opencode.json",
        """{"mcp": {
  "timeout": {"startup": 5000},
  "old": {"type": "local", "command": ["old"]},
  "servers": {
    "notes": {"type": "local", "command": ["npx", "notes"], "environment": {"A": "{env:B}"},
              "timeout": {"startup": 5000, "catalog": 2500, "execution": 60000}},
    "far": {"type": "remote", "url": "https://x/mcp",
            "oauth": {"client_id": "me", "client_secret": "{env:S}", "callback_port": 8080}},
    "off": {"type": "local", "command": ["x"], "disabled": true},
    "bad": {"type": "local", "command": []}}}}""",
    )
    assert set(servers) == {"old", "notes", "far", "bad"}
    notes = servers["notes"]
    assert (notes.command, notes.args, notes.env) == ("npx", ("notes",), {"A": "${B}"})
    assert (notes.fault, notes.timeout) == ("", 7.5)
    client = OAuthClient(client_id="me", client_secret="${S}", callback_port=8080)
    assert servers["far"].oauth == client
    assert "opencode.json:10: " in servers["bad"].fault

    text = '{"mcp": {"servers": {"type": "local", "command": ["x"]}}}'
    assert list(read(tmp_path / "opencode.json", text)) == ["servers"]


def test_goose_files_are_read(tmp_path: Path) -> None:
    """The extensions of Goose itself are ignored."""
    servers = read(
        tmp_path / "config.yaml",
        """GOOSE_PROVIDER: openai
extensions:
  developer: {enabled: true, type: builtin, name: developer, timeout: 300}
  notes:
    enabled: true
    type: stdio
    cmd: npx
    args: [-y, notes]
    envs: {A: b}
    env_keys: [TOKEN]
    timeout: 60
    available_tools: [find]
  far: {enabled: true, type: streamable_http, uri: "https://x/mcp", headers: {K: "${K}"}}
  bad: {type: stdio, cmd: 7}
  off: {enabled: false, type: stdio, cmd: x}
""",
    )
    assert set(servers) == {"notes", "far", "bad"}
    notes, far = servers["notes"], servers["far"]
    assert (notes.command, notes.args, notes.env) == ("npx", ("-y", "notes"), {"A": "b"})
    assert (notes.env_names, notes.include, notes.timeout) == (("TOKEN",), ("find",), 60.0)
    assert (far.transport, far.url) == (Transport.HTTP, "https://x/mcp")
    assert "bad is invalid" in servers["bad"].fault


def test_toolscript_files_are_read_like_claude_files(tmp_path: Path) -> None:
    """``.toolscript.json`` has the format of ``.mcp.json``."""
    text = '{"mcpServers": {"a": {"command": "a", "args": ["b"]}}}'
    assert read(tmp_path / ".toolscript.json", text)["a"].args == ("b",)


def test_comments_and_trailing_commas_are_ignored(tmp_path: Path) -> None:
    """Inside strings they are kept."""
    servers = read(
        tmp_path / "mcp.json",
        """\ufeff// the servers
        {"servers": { /* one
            only */
            "a": {"url": "https://x//y", "headers": {"H": "/* , } */ \\" // ,]"}, }, // done
        },}""",
    )
    assert servers["a"].url == "https://x//y"
    assert servers["a"].headers == {"H": '/* , } */ " // ,]'}


def test_later_files_take_precedence(tmp_path: Path) -> None:
    """The last entry for a server counts, and the server lists all files as origins."""
    first = write(
        tmp_path / "1.json", '{"mcpServers": {"a": {"command": "old"}, "b": {"command": "b"}}}'
    )
    second = write(
        tmp_path / "2.json", '{"servers": {"a": {"command": "new"}, "c": {"command": "c"}}}'
    )
    servers = {server.name: server for server in read_files([first, second]).servers}
    assert set(servers) == {"a", "b", "c"}
    assert servers["a"].command == "new"
    assert servers["a"].origins == (str(first), str(second))
    assert servers["b"].origins == (str(first),)


def test_a_later_file_can_disable_or_enable_a_server(tmp_path: Path) -> None:
    """Both ``disabled`` and ``enabled`` are read."""
    on = write(
        tmp_path / "1.json", '{"mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}}}'
    )
    off = write(
        tmp_path / "2.json", '{"mcpServers": {"a": {"disabled": true}, "b": {"enabled": false}}}'
    )
    assert read_files([on, off]).servers == []
    assert len(read_files([off, on]).servers) == 2


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ('{"command": 7}', "Expected `str`, got `int`"),
        ('{"args": ["x"]}', "neither a command nor a url"),
        ('{"type": "http", "command": "a"}', "needs a url"),
        ('{"type": "websocket", "url": "wss://x"}', "'websocket' is not supported"),
        ('{"command": "a", "timeout": -1}', "greater than 0"),
        ('"npx"', "Expected `object`"),
    ],
)
def test_an_invalid_entry_is_a_fault_of_its_server(tmp_path: Path, entry: str, reason: str) -> None:
    """The fault names the file and the line; other servers are not affected."""
    path = tmp_path / "mcp.json"
    servers = read(path, f'{{"mcpServers": {{\n"good": {{"command": "a"}},\n"bad": {entry}}}}}')
    assert reason in servers["bad"].fault
    assert servers["bad"].fault.startswith(f"{path}:3: the MCP server bad ")
    assert not servers["good"].fault


@pytest.mark.parametrize("name", ["", "a\x1b[31mb", "x" * 200])
def test_an_unprintable_name_is_a_fault(tmp_path: Path, name: str) -> None:
    """The message of the fault is printable."""
    path = write(tmp_path / "mcp.json", json.dumps({"mcpServers": {name: {"command": "a"}}}))
    [server] = read_files([path]).servers
    assert server.fault.isprintable()
    assert 0 < len(server.name) <= 128


@pytest.mark.parametrize(
    ("name", "content", "place"),
    [
        ("mcp.json", b'{"mcpServers":\n {"a": }}', "mcp.json:2: "),
        ("mcp.json", b'{"mcpServers": []}', "mcp.json: mcpServers must hold"),
        ("mcp.json", b"[]", "mcp.json: "),
        ("mcp.json", b'{"a": "' + b"x" * 100_000, "mcp.json:1: "),
        ("mcp.json", b"/*" * 500_000 + b"{", "mcp.json"),
        ("mcp.json", b"[" * 100_000, "mcp.json: "),
        ("mcp.json", b'{"mcpServers": {\n"\xff": 1}}', "mcp.json:2: "),
        ("config.toml", b"[mcp_servers.a]\ncommand = \n", "config.toml:2: "),
        ("config.yaml", b"extensions:\n  a: [\n", "config.yaml:"),
        ("config.yaml", b"a: &a {}\nextensions: *a\n", "config.yaml:"),
        ("opencode.json", b'{"mcp": []}', "opencode.json: mcp must hold"),
    ],
)
def test_an_unreadable_file_is_an_error(
    tmp_path: Path, name: str, content: bytes, place: str
) -> None:
    """The error names the file and, if known, the line."""
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ConfigurationError) as caught:
        read_files([path])
    assert str(caught.value).startswith(str(tmp_path / place))


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    """The error names the file."""
    with pytest.raises(ConfigurationError, match=r"none\.json: the file cannot be read"):
        read_files([tmp_path / "none.json"])


def test_a_pipe_is_an_error(tmp_path: Path) -> None:
    """The reader does not wait for a writer."""
    os.mkfifo(tmp_path / "pipe.json")
    message = r"pipe\.json: the file cannot be read \(it is not a regular file"
    with pytest.raises(ConfigurationError, match=message):
        read_files([tmp_path / "pipe.json"])


def test_a_file_may_have_no_servers(tmp_path: Path) -> None:
    """It may be empty or have only other settings."""
    assert read(tmp_path / "a.json", "") == {}
    assert read(tmp_path / "b.json", '{"theme": "dark"}') == {}


def test_the_representation_of_a_server_contains_no_secret(tmp_path: Path) -> None:
    """Arguments, variables and headers may all be secrets."""
    entry = {"command": "a", "args": ["s3cret"], "env": {"K": "s3cret"}, "headers": {"H": "s3cret"}}
    text = json.dumps({"mcpServers": {"a": entry}})
    assert "s3cret" not in repr(read(tmp_path / "mcp.json", text)["a"])


@pytest.mark.parametrize(
    ("line", "is_repertory"),
    [
        ("repertory mcp", True),
        ("/usr/bin/repertory serve", True),
        ("uvx repertory mcp --data-dir x", True),
        ("uvx --from repertory[all] repertory mcp", True),
        ("uvx repertory[offline] mcp", True),
        ("uvx repertory@latest mcp", True),
        ("uvx 'repertory[offline]==0.2.0' mcp", True),
        (r"C:\tools\repertory.exe mcp", True),
        ("npx -y server-filesystem /home/me/repertory", False),
        ("npx repertory-tools mcp", False),
        ("uvx repertory[offline] init mcp", False),
    ],
)
def test_commands_that_launch_repertory_are_recognised(line: str, is_repertory: bool) -> None:
    """Every form of its command is recognised, and other programs are not."""
    command, *args = line.split()
    assert (
        launches_repertory(ServerConfig(name="a", command=command, args=tuple(args)))
        is is_repertory
    )


@pytest.mark.parametrize(
    ("name", "text", "beside", "other"),
    [
        (
            ".claude.json",
            '{"numStartups": 1, "mcpServers": {"a": {"command": "a", "args": ["b"]}}}',
            '{"mcpServers": {"a": {"args": ["b"], "command": "a"}}, "numStartups": 2}',
            '{"numStartups": 1, "mcpServers": {"a": {"command": "a", "args": ["c"]}}}',
        ),
        (
            "config.toml",
            '[mcp_servers.a]\ncommand = "a"\n',
            'model = "x"\n[mcp_servers.a]\ncommand = "a"\n[projects."/p"]\ntrust_level = "x"\n',
            '[mcp_servers.a]\ncommand = "b"\n',
        ),
        (
            "settings.json",
            '{"mcpServers": {"a": {"command": "a"}}}',
            '{"mcpServers": {"a": {"command": "a"}}, "ui": {}} // mine',
            '{"mcpServers": {"a": {"command": "a"}}, "mcp": {"excluded": ["b"]}}',
        ),
    ],
)
def test_the_digest_covers_only_the_servers_of_a_file(
    tmp_path: Path, name: str, text: str, beside: str, other: str
) -> None:
    """A change of other settings of the host does not change it."""
    path = tmp_path / name
    digest = servers_digest(path, text.encode())
    assert digest == servers_digest(path, beside.encode())
    assert digest != servers_digest(path, other.encode())
    path.write_text(text)
    assert read_files([path]).digests == {path: {digest, digest_of(text.encode())}}


def test_the_digest_of_an_invalid_file_covers_its_whole_content(tmp_path: Path) -> None:
    """Any change of the file changes the digest."""
    assert servers_digest(tmp_path / "a.json", b"[") == digest_of(b"[")


def test_claude_code_servers_of_a_single_folder_are_read(tmp_path: Path) -> None:
    """They take precedence over the servers of all folders, and start in their folder."""
    folder = tmp_path / "project"
    document = {
        "mcpServers": {"a": {"command": "x"}, "b": {"command": "x"}},
        "projects": {
            str(folder): {"mcpServers": {"b": {"command": "y"}, "c": {"command": "y"}}},
            str(tmp_path): {"mcpServers": {"d": {"command": "z"}}, "history": []},
            "broken": 3,
        },
    }
    path = write(tmp_path / ".claude.json", json.dumps(document))
    servers = read_files([path], directory=folder).servers
    assert [(one.name, one.command, one.workspace) for one in servers] == [
        ("a", "x", str(tmp_path)),
        ("b", "y", str(folder)),
        ("c", "y", str(folder)),
    ]
    assert [one.name for one in read_files([path]).servers] == ["a", "b"]
    document["projects"][str(tmp_path)]["history"] = ["one"]  # type: ignore[index] # it is a dict
    assert servers_digest(path, json.dumps(document).encode()) in read_files([path]).digests[path]


@pytest.mark.parametrize("text", ['{"mcpServers": null}', '{"mcpServers": {}, "mcp": null}'])
def test_a_null_table_has_no_servers(tmp_path: Path, text: str) -> None:
    """It is not an error."""
    assert read(tmp_path / "a.json", text) == {}
