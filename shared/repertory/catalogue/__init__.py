"""Items: their hashes, names, policies and embedded texts."""
