"""Files of a project that are never searched, because they may hold secrets."""

import re

_NAMES = frozenset(
    # environments and the keys of tools
    {".git", ".netrc", "_netrc", ".npmrc", ".pypirc", ".pgpass", ".my.cnf"}
    | {".htpasswd", ".git-credentials", ".dockercfg", ".s3cfg", ".boto", ".vault-token"}
    | {"credentials.json", "credentials.yml", "credentials.yaml"}
    | {"secrets.json", "secrets.yml", "secrets.yaml", "secrets.toml", "secrets.ini"}
    | {"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"}
    | {".aws", ".ssh", ".gnupg", ".kube", ".azure", ".gcloud"}
    # MCP configurations of agent hosts, which have keys in environments and headers
    | {"mcp.json", ".mcp.json", ".toolscript.json", ".claude.json", "claude_desktop_config.json"}
    | {"opencode.json", "opencode.jsonc"}
)
_ENDINGS = (
    *(".env", ".pem", ".key", ".p8", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk"),
    *(".tfstate", ".tfstate.backup"),
    *(".docker/config.json", ".gemini/settings.json", ".qwen/settings.json"),
    ".codex/config.toml",
    *(".claude/settings.local.json", ".zed/settings.json"),
    ".repertory-backup",  # a backup of an agent host's configuration
)
_TEMPLATES = (".example", ".sample", ".template", ".dist")  # for environments, without values
_KEY = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----(?:\\[nr]|\s)+"
    r"(?:[A-Za-z0-9+/=]{32}|Proc-Type:|Version:|Comment:)"
)


def is_private(place: str) -> bool:
    """Whether a file or folder at a place may hold secrets, by its name."""
    place = place.lower()
    name = place.rpartition("/")[2]
    return (
        name in _NAMES
        or place.endswith(_ENDINGS)
        or (name.startswith(".env") and not name.endswith(_TEMPLATES))
    )


def has_secrets(place: str, text: str) -> bool:
    """Whether the text of a file is an MCP configuration or contains a private key."""
    if '"mcpServers"' in text and place.lower().endswith((".json", ".jsonc")):
        return True
    return "PRIVATE KEY" in text and _KEY.search(text) is not None
