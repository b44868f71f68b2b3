"""Git repositories: their skills, and on request their other files."""
