"""The formats of entries: the keys that each host uses for a program or a URL."""

from typing import Any

from repertory.agent_hosts.edits import Value

_URLS = ("url", "httpUrl", "serverUrl", "uri")
_HEADERS = ("headers", "http_headers", "env_http_headers")
_KEYS = ("bearer_token_env_var", "env_keys")  # name the variable of the key in Codex and Goose


def program(words: list[str]) -> Value:
    """The format of most hosts."""
    return {"command": words[0], "args": words[1:]}


def typed_program(words: list[str]) -> Value:
    """The format of hosts that require a type."""
    return {"type": "stdio", **program(words)}


def opencode_program(words: list[str]) -> Value:
    """The format of opencode."""
    return {"type": "local", "command": words, "enabled": True}


def goose_program(words: list[str]) -> Value:
    """The format of Goose."""
    return {**_goose("stdio"), "cmd": words[0], "args": words[1:]}


def typed_url(url: str, authorization: str) -> Value:
    """The format of hosts that require a type."""
    return {"type": "http", "url": url, **_headers(authorization)}


def plain_url(url: str, authorization: str) -> Value:
    """The format of hosts that detect the transport of a server."""
    return {"url": url, **_headers(authorization)}


def windsurf_url(url: str, authorization: str) -> Value:
    """The format of Windsurf."""
    return {"serverUrl": url, **_headers(authorization)}


def gemini_url(url: str, authorization: str) -> Value:
    """The format of Gemini CLI, where ``url`` means an older transport."""
    return {"httpUrl": url, **_headers(authorization)}


def codex_url(url: str, authorization: str) -> Value:
    """The format of Codex, which has the name of the key's variable and adds ``Bearer`` itself."""
    variable = authorization.removeprefix("Bearer ")
    return {"url": url, **({"bearer_token_env_var": variable} if variable else {})}


def opencode_url(url: str, authorization: str) -> Value:
    """The format of opencode."""
    return {"type": "remote", "url": url, **_headers(authorization), "enabled": True}


def goose_url(url: str, authorization: str) -> Value:
    """The format of Goose, which takes ``env_keys`` from its environment or asks the user."""
    entry = {**_goose("streamable_http"), "uri": url, **_headers(authorization)}
    if authorization.startswith("Bearer ${"):
        entry["env_keys"] = [authorization.removeprefix("Bearer ${").removesuffix("}")]
    return entry


def target_of(entry: Value) -> str:
    """The URL or command line of any host's entry, for people."""
    for key in _URLS:
        if key in entry:
            return str(entry[key])
    words = entry.get("command", entry.get("cmd", ""))
    parts = [*(words if isinstance(words, list) else [words]), *_list(entry.get("args"))]
    return " ".join(map(str, parts))


def is_url(entry: Value) -> bool:
    """Whether an entry, of any host, has a URL."""
    return not entry.keys().isdisjoint(_URLS)


def without_key(entry: Value) -> Value:
    """An entry without its URL and the key, which must not be sent to another server."""
    kept = {name: part for name, part in entry.items() if name not in (*_URLS, *_KEYS)}
    for name in _HEADERS:
        if isinstance(headers := kept.pop(name, None), dict):
            kept |= {name: others} if (others := without_authorization(headers)) else {}
    return kept


def without_authorization(headers: Value) -> Value:
    """Headers except ``Authorization``, which holds the key."""
    return {name: value for name, value in headers.items() if name.lower() != "authorization"}


def _goose(kind: str) -> dict[str, Any]:
    return {
        "enabled": True,
        "type": kind,
        "name": "repertory",
        "description": "One search over skills, tools and documents.",
        "timeout": 300,
    }


def _headers(authorization: str) -> dict[str, Any]:
    return {"headers": {"Authorization": authorization}} if authorization else {}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
