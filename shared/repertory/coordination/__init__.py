"""What processes tell each other. All of it may vanish at any moment: it can be rebuilt."""
