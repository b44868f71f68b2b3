#!/usr/bin/env bash
# Index the examples and search them; `make demo` runs this with `repertory` on the PATH.
set -euo pipefail
cd "$(dirname "$0")/.."
skill=examples/skills/sharpening-pencils
trap 'rm -rf "$skill"' EXIT
export REPERTORY_CONFIG=examples/repertory.toml REPERTORY_DATA_DIR=.demo/data

search() {
    printf '\n# %s\n$ repertory search "%s"\n' "$1" "$2"
    # Exit code 1 means that nothing was found, which is a valid answer.
    repertory search "$2" || [ $? -eq 1 ]
}

printf '$ export REPERTORY_CONFIG=%s REPERTORY_DATA_DIR=%s\n' \
    "$REPERTORY_CONFIG" "$REPERTORY_DATA_DIR"
printf '\n# Skills, procedures, tool files, documents, and the MCP server of examples/.mcp.json\n'
printf '$ repertory index\n'
repertory index

search "A typo in a tool's name" "serch_notes"
search "A paraphrase" "replace a leaked password before somebody misuses it"
search "No tool does this by name, but one can" "commit my changes to git"
search "Nonsense" "zxqv wobbly flurb"

printf '\n# A new skill, and no server runs: the next search finds it\n'
printf '$ mkdir %s && edit %s/SKILL.md\n' "$skill" "$skill"
mkdir -p "$skill"
printf -- '---\nname: sharpening-pencils\ndescription: Sharpen a blunt pencil with a knife.\n---\n' \
    >"$skill/SKILL.md"
search "The edit" "my pencil is blunt"
