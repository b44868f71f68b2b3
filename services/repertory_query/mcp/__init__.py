"""The MCP server: the same tools over stdio and over HTTP."""
