"""Tool calls, forwarded to the MCP servers that offer the tools."""
