"""OpenAPI 3 documents: one source for each, its operations as tools that can be called."""
