"""The table of supported agent hosts. The pages in docs/hosts name the sources of its values."""

from repertory.agent_hosts import entries
from repertory.agent_hosts.document import Syntax
from repertory.agent_hosts.host import Host, Place, Scope, System
from repertory.errors import UsageError

_BRACES = "${%s}"
_ENV_BRACES = "${env:%s}"

HOSTS = (
    Host(
        id="claude-code",
        title="Claude Code",
        syntax=Syntax.JSON,
        servers="mcpServers",
        places={
            Scope.USER: Place("{home}", (".claude.json",), variable="CLAUDE_CONFIG_DIR"),
            Scope.PROJECT: Place("{project}", (".mcp.json",)),
        },
        local=entries.typed_program,
        remote=entries.typed_url,
        reference=_BRACES,
        programs=("claude",),
        traces=("{home}/.claude.json", "{home}/.claude"),
        check="run `claude mcp list`",
    ),
    Host(
        id="claude-desktop",
        title="Claude Desktop",
        syntax=Syntax.JSON,
        servers="mcpServers",
        places={
            Scope.USER: Place(
                "{config}/Claude", ("claude_desktop_config.json",), directory="{project}"
            )
        },
        local=entries.program,
        remote=None,
        reference="",
        programs=(),
        traces=("{config}/Claude",),
        check="restart it, and open Settings, Developer",
    ),
    Host(
        id="cursor",
        title="Cursor",
        syntax=Syntax.JSON,
        servers="mcpServers",
        places={
            Scope.USER: Place("{home}/.cursor", ("mcp.json",)),
            Scope.PROJECT: Place(
                "{project}/.cursor", ("mcp.json",), directory="${workspaceFolder}"
            ),
        },
        local=entries.typed_program,
        remote=entries.plain_url,
        reference=_ENV_BRACES,
        programs=("cursor", "cursor-agent"),
        traces=("{home}/.cursor",),
        check="open Settings, MCP",
    ),
    Host(
        id="vscode",
        title="VS Code",
        syntax=Syntax.JSON,
        servers="servers",
        places={
            Scope.USER: Place("{config}/Code/User", ("mcp.json",)),
            Scope.PROJECT: Place(
                "{project}/.vscode", ("mcp.json",), directory="${workspaceFolder}"
            ),
        },
        local=entries.typed_program,
        remote=entries.typed_url,
        reference=_ENV_BRACES,
        programs=("code",),
        traces=("{config}/Code",),
        check="run the command `MCP: List Servers`",
    ),
    Host(
        id="windsurf",
        title="Windsurf",
        syntax=Syntax.JSON,
        servers="mcpServers",
        places={
            Scope.USER: Place(
                "{home}/.codeium/windsurf", ("mcp_config.json",), directory="{project}"
            )
        },
        local=entries.program,
        remote=entries.windsurf_url,
        reference=_ENV_BRACES,
        programs=("windsurf",),
        traces=("{home}/.codeium/windsurf",),
        check="refresh the list of MCP servers in Cascade",
    ),
    Host(
        id="codex",
        title="Codex",
        syntax=Syntax.TOML,
        servers="mcp_servers",
        places={
            Scope.USER: Place("{home}/.codex", ("config.toml",), variable="CODEX_HOME"),
            Scope.PROJECT: Place("{project}/.codex", ("config.toml",)),
        },
        local=entries.program,
        remote=entries.codex_url,
        reference="%s",
        programs=("codex",),
        traces=("{home}/.codex",),
        check="run `codex mcp list`, or `/mcp` in a session",
    ),
    Host(
        id="gemini",
        title="Gemini CLI",
        syntax=Syntax.JSON,
        servers="mcpServers",
        places={
            Scope.USER: Place("{home}/.gemini", ("settings.json",)),
            Scope.PROJECT: Place("{project}/.gemini", ("settings.json",)),
        },
        local=entries.program,
        remote=entries.gemini_url,
        reference=_BRACES,
        programs=("gemini",),
        traces=("{home}/.gemini",),
        check="run `gemini mcp list` in a folder that you trust",
    ),
    Host(
        id="zed",
        title="Zed",
        syntax=Syntax.JSON,
        servers="context_servers",
        places={
            Scope.USER: Place(
                {
                    System.LINUX: "{xdg}/zed",
                    System.MACOS: "{home}/.config/zed",
                    System.WINDOWS: "{config}/Zed",
                },
                ("settings.json",),
            ),
            Scope.PROJECT: Place("{project}/.zed", ("settings.json",)),
        },
        local=entries.program,
        remote=entries.plain_url,
        reference="",
        programs=("zed", "zeditor"),
        traces=("{xdg}/zed", "{config}/Zed"),
        check="open the settings of the Agent Panel",
    ),
    Host(
        id="opencode",
        title="opencode",
        syntax=Syntax.JSON,
        servers="mcp",
        places={
            Scope.USER: Place("{xdg}/opencode", ("opencode.json", "opencode.jsonc")),
            Scope.PROJECT: Place("{project}", ("opencode.json", "opencode.jsonc")),
        },
        local=entries.opencode_program,
        remote=entries.opencode_url,
        reference="{env:%s}",
        programs=("opencode",),
        traces=("{xdg}/opencode",),
        check="run `opencode mcp list`",
    ),
    Host(
        id="goose",
        title="Goose",
        syntax=Syntax.YAML,
        servers="extensions",
        places={
            Scope.USER: Place(
                {
                    System.LINUX: "{xdg}/goose",
                    System.MACOS: "{xdg}/goose",
                    System.WINDOWS: "{config}/Block/goose/config",
                },
                ("config.yaml",),
            )
        },
        local=entries.goose_program,
        remote=entries.goose_url,
        reference=_BRACES,
        programs=("goose",),
        traces=("{xdg}/goose", "{config}/Block/goose"),
        check="run `goose info -v`",
    ),
)


def host_named(name: str) -> Host:
    """The host with an id.

    Raises:
        UsageError: There is no such host; the message lists them.
    """
    for host in HOSTS:
        if host.id == name.lower():
            return host
    names = ", ".join(host.id for host in HOSTS)
    raise UsageError(f"There is no host {name!r}; there are {names}.")
