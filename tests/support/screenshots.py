"""Make the pictures of the README: ``python -m tests.support.screenshots FOLDER``.

They show the current commands and search page with the project ``examples``. The picture of the
page needs Chromium.
"""

import io
import shutil
import sys
import tempfile
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

from tests.support.browser import CHROMIUM, MISSING, chromium
from tests.support.command_line import Cli
from tests.support.server_process import Serve
from tests.support.waiting import until

EXAMPLES = Path(__file__).parents[2] / "examples"
COLUMNS = 96
QUERIES = ("serch_notes", "replace a leaked key", "commit my changes to git")
PAGE_QUERY = "write down a note"


def terminal(cli: Cli, project: Path) -> str:
    """Some searches in a terminal, as an SVG without external resources."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    for query in QUERIES:
        line = f'repertory search "{query}"'
        console.print(Text.assemble(("$ ", "bold green"), (line, "bold")))
        code, written = cli.in_terminal(project, "search", "-q", query, columns=COLUMNS)
        assert code == 0, written
        console.print(Text.from_ansi(written.replace("\r", "").rstrip()))
        console.print()
    head, _, rest = CONSOLE_SVG_FORMAT.partition("@font-face")
    style = rest[rest.index(".{unique_id}-matrix") :]
    return console.export_svg(title="repertory", code_format=head + style, unique_id="terminal")


def page(server: Serve) -> bytes:
    """The search page as a small PNG."""
    from PIL import Image  # noqa: PLC0415 - needed only here

    with chromium() as browser:
        shown = browser.new_page(viewport={"width": 1000, "height": 700})
        shown.goto(f"{server.url}/login?token={server.token}")
        shown.goto(f"{server.url}/?q={PAGE_QUERY}")
        until(lambda: shown.reload() and "Starting: " not in shown.content(), server.process)
        shown.wait_for_load_state("networkidle")
        picture = Image.open(io.BytesIO(shown.screenshot()))
    small = io.BytesIO()
    picture.convert("RGB").quantize(64).save(small, "PNG", optimize=True)
    return small.getvalue()


def main(folder: Path) -> None:
    """Write both pictures into a folder."""
    if CHROMIUM is None:
        raise SystemExit(MISSING)
    with tempfile.TemporaryDirectory(prefix="repertory-pictures-") as place:
        project, home = Path(place, "examples"), Path(place, "home")
        shutil.copytree(EXAMPLES, project)
        home.mkdir()
        cli = Cli(home, Path(place, "data"))
        cli.environment["PATH"] = f"{Path(sys.executable).parent}:{cli.environment['PATH']}"
        cli.environment["REPERTORY_SEARCH_MODEL"] = "repertory"
        for command in (("config", "trust", ".mcp.json"), ("index",)):
            done = cli.run(project, *command)
            assert done.returncode == 0, done.stderr
        (folder / "terminal.svg").write_text(terminal(cli, project), "utf-8")
        with Serve(cli, project, Path(place, "log")) as server:
            server.wait_for_sources()
            (folder / "search.png").write_bytes(page(server))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
