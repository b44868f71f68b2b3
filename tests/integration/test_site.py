"""The documentation site is built, and each of its links leads to a page."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_site_has_no_broken_link(tmp_path: Path) -> None:
    """A page that no menu names is an error, too."""
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going"]
    done = subprocess.run(
        [*command, "-c", "docs/site", "-d", str(tmp_path / "cache"), ".", str(tmp_path / "site")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    reference = (tmp_path / "site/docs/site/http-api.html").read_text("utf-8")
    assert "GET /v1/search" in reference
    assert "open_directory" in (tmp_path / "site/docs/site/python-api.html").read_text("utf-8")
    assert (tmp_path / "site/index.html").exists()
