"""Speed, each figure compared with a floor or a peer in the same run; ranking in ``quality``."""
