"""Plugin marketplaces: the skills, commands, agents and MCP servers of their plugins."""

from repertory.sources.marketplace.entry import build, contained, in_repository, recognise

__all__ = ["build", "contained", "in_repository", "recognise"]
