"""The weights of the encoder; see SHA256SUMS for their digests. There is nothing to import."""
