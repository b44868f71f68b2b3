"""The documentation site: the pages of the repository, and references made from the code.

Run ``make docs``. The source directory is the repository's root, so that links between pages are
the same on the site and in the repository.
"""

import sys
from pathlib import Path

from sphinx.application import Sphinx

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import http_reference  # noqa: E402 - it lies beside this file

project = "Repertory"
author = "The Repertory authors"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = "Repertory"
html_show_copyright = False
html_extra_path = ["extra"]  # the root of the site leads to the first page

root_doc = "docs/site/index"
include_patterns = [
    "*.md",
    "docs/*.md",
    "docs/*/*.md",
    "deploy/*.md",
    "benchmarks/*.md",
    "encoder/*.md",
    "training/*.md",
    "training/data/*.md",
    "examples/README.md",
    "plugin/README.md",
    "clients/typescript/README.md",
]
exclude_patterns = ["**/.*"]
myst_heading_anchors = 3
highlight_language = "none"
autodoc_typehints = "signature"
autodoc_member_order = "bysource"


def setup(app: Sphinx) -> None:
    """Write the HTTP reference before the pages are read."""
    document, page = HERE.parents[1] / "clients" / "openapi.json", HERE / "http-api.md"
    app.connect("builder-inited", lambda _: http_reference.write(document, page))
