"""Realistic configuration files of agent hosts, by host and variant.

The variants have other servers, comments, trailing commas, tabs, Windows line ends, a byte order
mark, Unicode, or no content. ``None`` stands for a missing file.
"""

BOM = b"\xef\xbb\xbf"

CLAUDE_CODE = """\
{
  "numStartups": 41,
  "tipsHistory": { "shift-enter": 12 },
  "projects": {
    "/home/anna/développement/日本語": {
      "allowedTools": [],
      "mcpServers": { "local": { "command": "uvx", "args": ["mcp-server-git"] } }
    }
  },
  "mcpServers": {
    "github": {
      "type": "http",
      "url": "https://api.githubcopilot.com/mcp/",
      "headers": { "Authorization": "Bearer ${GITHUB_TOKEN}" }
    }
  },
  "userID": "9c1185a5c5e9fc54612808977ee8f548b2258d31"
}
"""
CLAUDE_DESKTOP = """\
{
\t"globalShortcut": "Alt+Space",
\t"mcpServers": {
\t\t"filesystem": {
\t\t\t"command": "npx",
\t\t\t"args": [
\t\t\t\t"-y",
\t\t\t\t"@modelcontextprotocol/server-filesystem",
\t\t\t\t"C:\\\\Users\\\\Zoë\\\\Documents"
\t\t\t]
\t\t}
\t}
}"""
CURSOR = """\
{
    // Shared with the team; ask before you add one.
    "mcpServers": {
        "postgres": {
            "command": "npx",
            "args": ["-y", "@modelcontextprotocol/server-postgres", "${env:DATABASE_URL}"],
        }, // read-only
        /* "old": { "command": "old" }, */
    },
}
"""
VSCODE = """\
{
  "inputs": [
    { "type": "promptString", "id": "token", "description": "API token", "password": true },
  ],
  // The servers of this workspace
  "servers": {
    "gh": {
      "type": "http",
      "url": "https://api.githubcopilot.com/mcp/",
      "headers": { "Authorization": "Bearer ${input:token}" }
    } // the last one
  }
}
"""
WINDSURF = '{"mcpServers":{"figma":{"serverUrl":"http://127.0.0.1:3845/mcp","disabled":false}}}'
CODEX = """\
# Codex
model = "gpt-5.4"
notify = [
  "notify-send",
  "[mcp_servers.repertory]", # not a table
]

[mcp_servers.docs]
command = "npx"
args = ["-y", "docs-mcp"]
env = { "TOKEN" = "x" } # a secret

instructions = \"\"\"
[mcp_servers.repertory]
command = "not this one"
\"\"\"

# Folders that I trust
[projects."/home/anna/développement"]
trust_level = "trusted"

[[profiles]]
name = "fast"
# the end
"""
GEMINI = """\
{
  "security": { "auth": { "selectedType": "oauth-personal" } },
  "ui": { "theme": "GitHub" },
  "mcp": { "excluded": ["slow"] }
}
"""
ZED = """\
// Zed settings
//
// For information on how to configure Zed, see the documentation.
{
  "ui_font_size": 16,
  "theme": {
    "mode": "system",
    "light": "One Light", // by day
    "dark": "One Dark",
  },
  "context_servers": {},
  // "vim_mode": true,
}
"""
OPENCODE = """\
{
  "$schema": "https://opencode.ai/config.json",
  "model": "anthropic/claude-sonnet-4-5",
  "mcp": {
    "everything": { "type": "local", "command": ["npx", "everything"], "enabled": false }
  },
  "permission": { "bash": { "*": "ask", "git status": "allow" } }
}
"""
GOOSE = """\
# Goose
active_provider: anthropic
GOOSE_MODE: "smart_approve"   # asks before it writes
extensions:
  developer:
    bundled: true
    enabled: true
    name: developer
    timeout: 300
    type: builtin

  notes:
    enabled: true
    type: stdio
    name: notes
    cmd: uvx
    args:
    - notes-mcp
    - --title
    - 'Zoë''s notes'
    env_keys: []
    envs: {}
    description: |
      Keeps notes.

      In a file.

# for recipes
GOOSE_RECIPE_GITHUB_REPO: anna/recipes
slash_commands:
- command: run-tests
  recipe_path: /home/anna/recipes/tests.yaml
"""

USED = {
    "claude-code": CLAUDE_CODE,
    "claude-desktop": CLAUDE_DESKTOP,
    "cursor": CURSOR,
    "vscode": VSCODE,
    "windsurf": WINDSURF,
    "codex": CODEX,
    "gemini": GEMINI,
    "zed": ZED,
    "opencode": OPENCODE,
    "goose": GOOSE,
}
_JSON_EMPTY = {
    "an object": "{}",
    "an object on two lines": "{\n}\n",
    "a comment": "// nothing yet\n",
    "an empty holder": '{\n  "%s": {}\n}\n',
    "a holder on two lines": '{\n  "%s": {\n  },\n}\n',
    "a holder with a comment": '{\n  "%s": { // none yet\n  }\n}\n',
}
_EMPTY = {
    "codex": {"an empty holder": "[mcp_servers]\n", "a comment": "# nothing yet\n"},
    "goose": {
        "an empty holder": "extensions: {}\n",
        "a holder without a value": "extensions:\nGOOSE_MODE: auto\n",
        "a holder without a value at the end": "GOOSE_MODE: auto\nextensions:",
        "a comment": "# nothing yet\n",
        "one line": "{GOOSE_MODE: auto, extensions: {notes: {cmd: uvx}}}\n",
    },
}


def files(host: str, holder: str) -> dict[str, bytes | None]:
    """The variants of a host's configuration file, by name of the variant.

    Args:
        host: The name of the host.
        holder: The key under which the file lists servers.
    """
    text = USED[host]
    empty = _EMPTY.get(host) or {
        name: one.replace("%s", holder) for name, one in _JSON_EMPTY.items()
    }
    return {
        "in use": text.encode(),
        "Windows line ends": text.replace("\n", "\r\n").encode(),
        "byte order mark": BOM + text.encode(),
        "both": BOM + text.replace("\n", "\r\n").encode(),
        "no last line end": text.rstrip("\n").encode(),
        "more lines at the end": text.encode() + b"\n\n",
        "an empty file": b"",
        "an empty line": b"\n",
        "a byte order mark alone": BOM,
        "no file": None,
        **{name: one.encode() for name, one in empty.items()},
    }
