"""Speed, each figure beside a floor or a peer of the same run; in ``quality``, the ranking."""
