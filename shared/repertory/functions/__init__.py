"""The functions offered to agents, the same over MCP, over HTTP and in Python."""
