"""Turns queries into answers: the two arms, their fusion, confidences and reasons."""
