"""The pages for people: search, one item, and how the server is."""
