"""What keeps a running index fresh: looks become jobs, jobs become points, points are followed."""
