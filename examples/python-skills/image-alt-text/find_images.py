"""List images without a useful text alternative: ``find_images.py PAGE…``."""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path

SAYS_NOTHING = re.compile(r"(image|photo|picture|logo|.*\.(png|jpe?g|gif|svg|webp))", re.IGNORECASE)


class Images(HTMLParser):
    """Collects the line and the source of each image that a screen reader could not describe."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[int, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Check one element; an empty ``alt`` is valid and marks decoration."""
        values = dict(attrs)
        alt = values.get("alt")
        decorative = "alt" in values and not alt
        if tag == "img" and not decorative and (not alt or SAYS_NOTHING.fullmatch(alt.strip())):
            self.found.append((self.getpos()[0], values.get("src") or "?"))


if __name__ == "__main__":
    for page in map(Path, sys.argv[1:]):
        images = Images()
        images.feed(page.read_text("utf-8"))
        for line, source in images.found:
            print(f"{page}:{line}: {source}")
