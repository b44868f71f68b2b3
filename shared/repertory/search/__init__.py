"""Queries to answers: the two arms, their fusion, a confidence and a reason."""
