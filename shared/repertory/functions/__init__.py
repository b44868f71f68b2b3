"""The functions that agents are handed: the same by name, over MCP, over HTTP and in Python."""
