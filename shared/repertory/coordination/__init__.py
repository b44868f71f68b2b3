"""Ports through which processes coordinate. All their data may be lost and can be rebuilt."""
