"""Sources to index: scan, diff, embed, upsert."""
