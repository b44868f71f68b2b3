"""Git repositories: their skills, and on request their other files."""

from repertory.sources.git.entry import build, contained, recognise

__all__ = ["build", "contained", "recognise"]
