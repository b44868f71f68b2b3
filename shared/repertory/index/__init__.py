"""What is indexed: vectors in Qdrant, and the keyword index built from the same items."""
