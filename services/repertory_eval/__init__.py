"""Measures the ranking on labelled and generated queries. Needs the extra ``eval``."""
