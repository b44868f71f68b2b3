"""The documentation site: the pages of the repository, and references made from the code.

Run ``make docs``. The source directory is the repository's root, so that links between pages are
the same on the site and in the repository.
"""

import sys
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

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
# They hold no page; an environment in the root has many files.
exclude_patterns = [
    *(".*", "**/.*", "**/node_modules", "build", "dist"),
    *("services", "shared", "tests", "workers"),
]
myst_heading_anchors = 3
highlight_language = "none"
autodoc_typehints = "signature"
autodoc_member_order = "bysource"


def leave_decisions_out(_app: Sphinx, environment: BuildEnvironment) -> list[str]:
    """Let no menu name a decision: they have a list of their own, and the menu is on each page."""
    for page in environment.all_docs:
        if page.startswith("docs/decisions/0"):
            environment.metadata[page]["orphan"] = ""
    return []


def setup(app: Sphinx) -> None:
    """Write the HTTP reference before the pages are read."""
    document, page = HERE.parents[1] / "clients" / "openapi.json", HERE / "http-api.md"
    app.connect("builder-inited", lambda _: http_reference.write(document, page))
    app.connect("env-updated", leave_decisions_out)
