"""Answers in the formats of model hosts and of people."""
