"""Repertory: one searchable list of the skills, tools and documents that AI agents can use."""

__version__ = "0.1.0"
