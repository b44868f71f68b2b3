"""Texts to vectors: the models, their weights, and the engines that run them."""
