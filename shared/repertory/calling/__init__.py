"""Tool calls, forwarded to the MCP servers and APIs that offer the tools."""
