#!/bin/sh
# Adds what fits a prompt to it, once the user has switched that on. It never refuses a prompt.
[ "$CLAUDE_PLUGIN_OPTION_SUGGEST" = true ] || exit 0
repertory hook --threshold "${CLAUDE_PLUGIN_OPTION_CONFIDENCE:-0.6}" 2>/dev/null
exit 0
