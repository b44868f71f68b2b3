"""What processes tell each other. All of it may be lost at any moment: it can be rebuilt."""
