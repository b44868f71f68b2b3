"""Calls of tools, passed on to the MCP servers that offer them."""
