"""The watch service: what happens to files and servers becomes looks at their sources."""
