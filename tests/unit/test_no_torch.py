"""The query service does not import torch."""

import subprocess
import sys

CODE = """
import sys
import repertory_query.server.run
from repertory.embedding.load import load_engine
from repertory.compose import Parts
heavy = {"torch", "transformers", "sentence_transformers", "celery", "redis", "watchdog"}
print(sorted(heavy & set(sys.modules)))
"""


def test_the_query_service_imports_no_torch() -> None:
    """Other heavy packages are also not imported before a request needs them."""
    run = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
