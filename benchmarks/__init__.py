"""Speed, each figure beside a floor or a peer that was measured in the same run."""
