"""Plugin marketplaces: the skills, commands, agents and MCP servers of their plugins."""
