"""The query service: search and everything around it, over HTTP."""
