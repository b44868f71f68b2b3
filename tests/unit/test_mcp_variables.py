"""Variables in the configuration of an MCP server are resolved, and secrets are masked."""

import os
from pathlib import Path

import msgspec
import pytest

from repertory.errors import SourceError
from repertory.sources.mcp.server import OAuthClient, ServerConfig
from repertory.sources.mcp.variables import MAX_ENV_FILE_SIZE, Launch, env_file_of, fill_in
from repertory.trust import digest_of

ENVIRONMENT = {"VAR": "value", "EMPTY": "", "MCP_INPUT_MY_TOKEN": "t0ken"}


def launch_of(server: ServerConfig, environment: dict[str, str]) -> Launch:
    """The launch of a server with an environment."""
    return fill_in(msgspec.structs.replace(server, environment=environment))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("${VAR}", "value"),
        ("a-${env:VAR}-b", "a-value-b"),
        ("${NONE:-default}", "default"),
        ("${VAR:-default}", "value"),
        ("${EMPTY:-default}", "default"),
        ("${NONE:-}", ""),
        ("${EMPTY}", ""),
        ("${VAR}${VAR}", "valuevalue"),
        ("${input:my-token}", "t0ken"),
        ("${workspaceFolder}/x", "/work space/x"),
        ("${workspaceFolderBasename}", "work space"),
        ("${userHome}", str(Path.home())),
        ("a${/}b${pathSeparator}c", "a/b/c"),
        ("$VAR ${no name} ${} $", "$VAR ${no name} ${} $"),
    ],
)
def test_every_form_of_reference_is_resolved(text: str, expected: str) -> None:
    """Other text is unchanged."""
    server = ServerConfig(name="a", command=text, args=(text,), workspace="/work space")
    launch = launch_of(server, ENVIRONMENT)
    assert launch.command == expected
    assert launch.args == (expected,)


def test_values_are_not_resolved_again() -> None:
    """A value that looks like a reference is literal text."""
    launch = launch_of(ServerConfig(name="a", command="${X}"), {"X": "${Y}", "Y": "no"})
    assert launch.command == "${Y}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("${NONE}", "The MCP server a needs the environment variable NONE, which is not set."),
        ("${input:my-key}", "The MCP server a needs input: set MCP_INPUT_MY_KEY"),
    ],
)
def test_a_reference_without_a_value_is_an_error(text: str, message: str) -> None:
    """The error names the variable to set."""
    with pytest.raises(SourceError) as caught:
        launch_of(ServerConfig(name="a", url="https://x", headers={"H": text}), ENVIRONMENT)
    assert message in str(caught.value)


def test_a_servers_own_variables_take_precedence(tmp_path: Path) -> None:
    """They override variables of the file, which override those passed on by name."""
    (tmp_path / ".env").write_text(
        "# comment\nexport A=1\nB = 'two words' \nC=\"x=y\"\n\nnot a line\nE=\nVAR=file\n"
    )
    server = ServerConfig(
        name="a",
        command="a",
        env_file="${workspaceFolder}/.env",
        env_names=("VAR", "NONE"),
        env={"A": "own", "V": "${VAR}"},
        workspace=str(tmp_path),
    )
    assert launch_of(server, ENVIRONMENT).env == {
        "A": "own",
        "B": "two words",
        "C": "x=y",
        "E": "",
        "V": "value",
        "VAR": "file",
    }


def test_a_missing_env_file_is_an_error(tmp_path: Path) -> None:
    """The error names the file."""
    server = ServerConfig(name="a", command="a", env_file="none.env", workspace=str(tmp_path))
    with pytest.raises(SourceError, match=r"none\.env of the MCP server a cannot be read"):
        launch_of(server, {})


def test_secrets_are_masked() -> None:
    """Resolved values, variables, credentials of a URL, headers and their tokens are secrets."""
    server = ServerConfig(
        name="a",
        command="a",
        args=("--key=${KEY}",),
        env={"PASSWORD": "literal-one", "DEBUG": "1"},
        url="https://user:pass-word@x/mcp?key=query-key&debug=1",
        headers={"Authorization": "Bearer ${TOKEN}"},
    )
    launch = launch_of(server, {"KEY": "arg-key", "TOKEN": "header-token"})
    secrets = ["arg-key", "literal-one", "header-token", "pass-word", "query-key"]
    redacted = launch.redact(f"debug=1 {' '.join(secrets)} Bearer header-token")
    assert not any(secret in redacted for secret in secrets)
    assert redacted.startswith("debug=1 ")
    assert not any(secret in repr(launch) for secret in secrets)


@pytest.mark.parametrize(
    "server",
    [
        ServerConfig(name="a", url="https://x", headers={"Authorization": "Bearer lit-token"}),
        ServerConfig(name="a", command="a", env={"OPTIONS": "--user me --token lit-token"}),
        ServerConfig(name="a", url="https://x/mcp?key=Bearer%20lit-token"),
        ServerConfig(name="a", command="a", args=("${AUTH}",)),
    ],
    ids=["header", "environment", "address", "argument"],
)
def test_a_word_of_a_secret_is_masked(server: ServerConfig) -> None:
    """A server may repeat only the token without the word before it."""
    launch = launch_of(server, {"AUTH": "Bearer lit-token"})
    assert launch.redact("invalid token: lit-token!") == "invalid token: ***!"


def test_a_secret_that_contains_another_is_masked_completely() -> None:
    """The longest secret is masked first; values that are too short to be secrets stay."""
    env = {"A": "abcd", "B": "abcdef", "C": "xyz", "D": "word", "E": "keyword"}
    launch = launch_of(ServerConfig(name="a", command="a", env=env), {})
    assert launch.redact("abcdef, abcd, abc, xyz") == "***, ***, abc, xyz"
    assert launch.redact("word, keyword") == "***, ***"


def test_credentials_of_an_address_are_masked_as_written_and_decoded() -> None:
    """A library may show either form; the host and the path stay."""
    url = "https://us%40er:pa%2Fss@host/path?key=a%20b%2Fc&other=second"
    launch = launch_of(ServerConfig(name="a", url=url), {})
    for secret in ("us%40er", "us@er", "pa%2Fss", "pa/ss", "a%20b%2Fc", "a b/c", "second"):
        assert launch.redact(f"[{secret}]") == "[***]"
    assert launch.redact("host/path") == "host/path"


def test_the_credentials_of_a_proxy_are_masked() -> None:
    """A process inherits the proxy variables and may show them in an error."""
    proxies = {"HTTPS_PROXY": "http://anna:pass-word@proxy:80", "no_proxy": "localhost"}
    launch = launch_of(ServerConfig(name="a", command="a"), proxies)
    assert launch.redact("http://anna:pass-word@proxy:80") == "http://***:***@proxy:80"
    assert launch.redact("localhost") == "localhost"


def test_a_value_in_a_url_may_contain_separators() -> None:
    """The query begins at the first question mark, and a value after the first equals sign."""
    launch = launch_of(ServerConfig(name="a", url="https://host/path?key=se?cret=part"), {})
    assert launch.redact("[se?cret=part]") == "[***]"


def test_an_address_and_its_headers_are_resolved() -> None:
    """The representation of the launch contains none of the values."""
    server = ServerConfig(name="a", url="https://${VAR}/mcp", headers={"X-Key": "a ${VAR}"})
    launch = launch_of(server, ENVIRONMENT)
    assert launch.url == "https://value/mcp"
    assert launch.headers == {"X-Key": "a value"}
    assert repr(launch) == "Launch(…)"


def test_the_id_and_the_secret_of_an_oauth_client_are_resolved() -> None:
    """The secret is masked in messages."""
    oauth = OAuthClient(client_id="id-${VAR}", client_secret="${SECRET}", callback_port=8080)
    server = ServerConfig(name="a", url="https://x", oauth=oauth, sign_ins="/data")
    launch = launch_of(server, {"VAR": "value", "SECRET": "hidden"})
    assert (launch.client_id, launch.client_secret) == ("id-value", "hidden")
    assert (launch.callback_port, launch.sign_ins) == (8080, "/data")
    assert launch.redact("[hidden]") == "[***]"


def test_an_env_file_over_its_limit_is_refused(tmp_path: Path) -> None:
    """Reading only a part of it would give a wrong environment; the error states the limit."""
    (tmp_path / ".env").write_text("A=1\n# " + "x" * MAX_ENV_FILE_SIZE)
    server = ServerConfig(name="a", command="a", env_file=".env", workspace=str(tmp_path))
    with pytest.raises(SourceError, match="it has more than 1,048,576 bytes"):
        launch_of(server, {})


def test_an_env_file_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    """A byte order mark at its beginning is not part of a name."""
    file = tmp_path / ".env"
    server = ServerConfig(name="a", command="a", env_file=".env", workspace=str(tmp_path))
    file.write_bytes("A=1\n".encode("utf-16"))
    with pytest.raises(SourceError, match=r"cannot be read as text: it is not UTF-8\.$"):
        launch_of(server, {})
    file.write_bytes("A=ä\n".encode("utf-8-sig"))
    assert launch_of(server, {}).env == {"A": "ä"}


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("''", ""),
        ('"a"', "a"),
        ("'", "'"),
        ("'a", "'a"),
        ("'a\"", "'a\""),
        ("'it's'", "it's"),
        ("XaX", "XaX"),
    ],
)
def test_quotes_around_a_value_are_left_out(tmp_path: Path, written: str, expected: str) -> None:
    """Only a pair of quotes is removed."""
    (tmp_path / ".env").write_text(f"A={written}\n")
    server = ServerConfig(name="a", command="a", env_file=".env", workspace=str(tmp_path))
    assert launch_of(server, {}).env == {"A": expected}


def test_an_env_file_that_is_a_pipe_is_refused(tmp_path: Path) -> None:
    """The reader does not wait for a writer."""
    os.mkfifo(tmp_path / ".env")
    server = ServerConfig(name="a", command="a", env_file=".env", workspace=str(tmp_path))
    with pytest.raises(SourceError, match="it is not a regular file"):
        launch_of(server, {})


def test_an_env_file_adds_to_the_variables_that_are_passed_on(tmp_path: Path) -> None:
    """Values of the configuration itself take precedence over both."""
    (tmp_path / ".env").write_text("VAR=of the file\nB=2\nC=3\n")
    server = ServerConfig(
        name="a",
        command="a",
        env={"C": "own"},
        env_names=("VAR", "MCP_INPUT_MY_TOKEN", "UNSET"),
        env_file=".env",
        workspace=str(tmp_path),
    )
    expected = {"VAR": "of the file", "MCP_INPUT_MY_TOKEN": "t0ken", "B": "2", "C": "own"}
    assert launch_of(server, ENVIRONMENT).env == expected


def test_an_empty_variable_counts_only_without_a_default() -> None:
    """An empty value is not a missing one. A process inherits the whole environment."""
    launch = launch_of(
        ServerConfig(name="a", command="${EMPTY}", cwd="sub", workspace="/w"), ENVIRONMENT
    )
    assert launch.command == ""
    assert launch.cwd == "/w/sub"
    assert launch.inherited == ENVIRONMENT


def test_an_environment_file_must_be_the_trusted_one(tmp_path: Path) -> None:
    """It can make any program run other code, so a changed file needs new trust."""
    file = tmp_path / ".env"
    file.write_text("KEY=value\n")
    server = ServerConfig(
        name="a", env_file=".env", workspace=str(tmp_path), origins=(str(tmp_path / ".mcp.json"),)
    )
    # The user named this configuration, so no digest is required.
    assert launch_of(server, {}).env == {"KEY": "value"}
    bound = msgspec.structs.replace(server, env_file_digest=digest_of(file.read_bytes()))
    assert launch_of(bound, {}).env == {"KEY": "value"}
    file.write_text("LD_PRELOAD=./evil.so\n")
    command = f"repertory config trust {tmp_path / '.mcp.json'}"
    for digest in (bound.env_file_digest, ""):
        with pytest.raises(SourceError, match=f"not the one that was trusted; run `{command}`"):
            launch_of(msgspec.structs.replace(server, env_file_digest=digest), {})
    with pytest.raises(SourceError, match="not the one that was trusted"):
        launch_of(msgspec.structs.replace(bound, origins=()), {})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", None),
        ("secrets.env", Path("/work space/secrets.env")),
        ("/elsewhere/secrets.env", Path("/elsewhere/secrets.env")),
        ("${workspaceFolder}/${VAR}.env", Path("/work space/value.env")),
        ("${NONE}/secrets.env", None),
        ("${NONE:-other}.env", Path("/work space/other.env")),
    ],
)
def test_the_path_of_an_env_file_is_resolved(text: str, expected: Path | None) -> None:
    """It is relative to the workspace, and may contain variables of the server's environment."""
    server = ServerConfig(name="a", env_file=text, workspace="/work space", environment=ENVIRONMENT)
    assert env_file_of(server) == expected


def test_the_path_of_an_env_file_may_have_variables_of_this_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They are used only if the server has no environment of its own."""
    monkeypatch.setenv("ENV_FOLDER", "mine")
    server = ServerConfig(name="a", env_file="${ENV_FOLDER}/x.env", workspace="/project")
    assert env_file_of(server) == Path("/project/mine/x.env")
    other = msgspec.structs.replace(server, environment={"ENV_FOLDER": "theirs"})
    assert env_file_of(other) == Path("/project/theirs/x.env")


def test_an_empty_environment_is_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variables of this process must not be visible to another process."""
    monkeypatch.setenv("MINE", "mine")
    server = ServerConfig(name="a", command="${MINE:-unset}", env_names=("MINE",))
    launch = fill_in(msgspec.structs.replace(server, environment={}))
    assert (launch.command, launch.env, launch.inherited) == ("unset", {}, {})
    assert fill_in(server).command == "mine"
