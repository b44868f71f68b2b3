"""OpenAPI 3 documents: one source for each, its operations as tools that can be called."""

from repertory.sources.openapi.entry import build, recognise

__all__ = ["build", "recognise"]
