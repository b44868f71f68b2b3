"""Reviews: the approved version of each item, its changes since, and the items to review."""
