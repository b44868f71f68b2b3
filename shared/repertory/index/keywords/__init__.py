"""The keyword index: BM25F over the fields of items, tolerant of typos, and a lookup by name."""
