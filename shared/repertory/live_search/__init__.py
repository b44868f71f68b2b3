"""Keeps one search engine current for each group of callers: follows the index and its sources."""
