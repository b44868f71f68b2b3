"""OpenAPI 3 documents: one source for each, with its operations as callable tools."""
