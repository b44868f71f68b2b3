"""Items, their hashes, names and policies, and the texts of them that are embedded."""
