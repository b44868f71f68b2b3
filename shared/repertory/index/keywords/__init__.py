"""The keyword index: BM25F over an item's fields, tolerant of typos, names found whatever else."""
