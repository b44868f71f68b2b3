"""Benchmarks of speed, each compared with a floor or a peer in the same run.

The benchmarks of ranking are in ``quality``.
"""
