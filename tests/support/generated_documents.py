"""Hypothesis strategies for configuration files of agent hosts in varied styles."""

import json
from typing import Any

import yaml
from hypothesis import strategies as st

from repertory.agent_hosts import toml_text
from repertory.agent_hosts.document import Syntax

KEYS = {
    Syntax.JSON: ("mcpServers", "repertory"),
    Syntax.TOML: ("mcp_servers", "repertory"),
    Syntax.YAML: ("extensions", "repertory"),
}

NAMES = st.text("abcXYZ09_-é漢 .", min_size=1, max_size=8)
SCALARS = (
    st.integers(-9, 9)
    | st.booleans()
    | st.text("ab\"\\/*#:{}[], '\t漢\x7f", max_size=12)
    | st.sampled_from(["// no comment", "[mcp_servers.repertory]", "a: b", "yes", ""])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
COMMENTS = st.sampled_from(["", "", " a note", ' "repertory": {', " [x]", " }, {", " é"])
LINE_ENDS = st.sampled_from(["\n", "\n", "\r\n"])


@st.composite
def servers(draw: st.DrawFn, syntax: Syntax) -> dict[str, Any]:
    """The values of a configuration, sometimes with servers and an entry for Repertory."""
    values: dict[str, Any] = draw(st.dictionaries(NAMES, VALUES, max_size=3))
    holder, name = KEYS[syntax]
    values.pop(holder, None)
    if draw(st.booleans()):
        held: dict[str, Any] = draw(
            st.dictionaries(NAMES, st.dictionaries(NAMES, VALUES, max_size=3), max_size=2)
        )
        if draw(st.booleans()):
            held[name] = {"command": draw(SCALARS), **draw(st.dictionaries(NAMES, VALUES))}
        values[holder] = held
    return {key: values[key] for key in draw(st.permutations(list(values)))}


@st.composite
def json_files(draw: st.DrawFn) -> str:
    """JSON files with comments, trailing commas, and varied indentation and line ends."""
    unit = draw(st.sampled_from(["  ", "    ", "\t", ""]))
    newline = draw(LINE_ENDS)

    def text(value: object, indentation: str) -> str:
        if not isinstance(value, dict):
            return json.dumps(value, ensure_ascii=draw(st.booleans()))
        if not value:
            return draw(st.sampled_from(["{}", "{ }", "{" + newline + indentation + "}"]))
        if draw(st.integers(0, 4)) == 0:
            return json.dumps(value)
        inner = indentation + unit
        lines = ["{"]
        for number, (key, part) in enumerate(value.items(), 1):
            if note := draw(COMMENTS):
                lines.append(f"{inner}//{note}")
            is_last = number == len(value)
            comma = "," if not is_last or draw(st.booleans()) else ""
            note = draw(COMMENTS)
            after = draw(st.sampled_from([f" //{note}", f" /*{note} */"])) if note else ""
            lines.append(f"{inner}{json.dumps(key)}: {text(part, inner)}{comma}{after}")
        if note := draw(COMMENTS):
            lines.append(f"{inner}/*{note} */")
        return newline.join([*lines, indentation + "}"])

    before = draw(st.sampled_from(["", f"// first{newline}", newline]))
    after = draw(st.sampled_from(["", newline, f"{newline}// last{newline}", 2 * newline]))
    return before + text(draw(servers(Syntax.JSON)), "") + after


@st.composite
def toml_files(draw: st.DrawFn) -> str:
    """TOML files with tables, multi-line strings, and comments."""
    newline = draw(LINE_ENDS)
    lines: list[str] = []

    def pairs(values: dict[str, Any]) -> None:
        for key, value in values.items():
            note = draw(COMMENTS)
            if isinstance(value, str) and draw(st.booleans()) and '"' not in value:
                escaped = value.replace("\\", "\\\\").replace("\x7f", "\\u007f")
                lines.append(f'{json.dumps(key)} = """{newline}{escaped}{newline}[x]{newline}"""')
            else:
                lines.append(f"{json.dumps(key)} = {toml_text._dump(value)}")
            lines[-1] += f" #{note}" if note else ""
        lines.extend(draw(st.lists(st.sampled_from(["", "# a note", "#[x]"]), max_size=2)))

    values = draw(servers(Syntax.TOML))
    holder, _ = KEYS[Syntax.TOML]
    held = values.pop(holder, {})
    pairs(values)
    for name, entry in held.items():
        lines.append(f"[{holder}.{json.dumps(name)}]")
        pairs(entry)
    if draw(st.booleans()):
        lines.append("[projects.'a b']")
        pairs(draw(st.dictionaries(NAMES, SCALARS, max_size=2)))
    return newline.join(lines) + draw(st.sampled_from(["", newline]))


@st.composite
def yaml_files(draw: st.DrawFn) -> str:
    """YAML files in block and flow style, with comments."""
    newline = draw(LINE_ENDS)
    values = draw(servers(Syntax.YAML))
    dumped = yaml.safe_dump(
        values,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=draw(st.sampled_from([False, False, None])),
        indent=draw(st.sampled_from([2, 4])),
    )
    lines = dumped.splitlines() if values else []
    noted = []
    for line in lines:
        if not line.startswith((" ", "-", "'", '"', "?")) and draw(st.booleans()):
            noted.append("# a note")
        noted.append(line)
    noted += draw(st.lists(st.sampled_from(["", "# a note"]), max_size=2))
    return newline.join(noted) + draw(st.sampled_from(["", newline]))


FILES = {Syntax.JSON: json_files(), Syntax.TOML: toml_files(), Syntax.YAML: yaml_files()}
