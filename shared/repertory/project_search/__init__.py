"""Contract 5: exact and fuzzy search in a project's files."""
