"""Git repositories: their skills, and optionally their other files."""
