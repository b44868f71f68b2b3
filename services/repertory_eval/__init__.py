"""Measures how good the ranking is, on labelled and generated queries; needs the extra ``eval``."""
