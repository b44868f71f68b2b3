"""What there is to find: items, their hashes, and what of them is embedded."""
