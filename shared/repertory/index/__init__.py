"""The index: vectors in Qdrant, and a keyword index of the same items."""
