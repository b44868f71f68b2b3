"""The query service goes without torch."""

import subprocess
import sys

CODE = """
import sys
import repertory_query.run
from repertory.embedding.load import load_engine
from repertory.serving import Parts
heavy = {"torch", "transformers", "sentence_transformers", "celery", "redis", "watchdog"}
print(sorted(heavy & set(sys.modules)))
"""


def test_the_query_service_imports_no_torch() -> None:
    """Nor anything else that it does not need before it is asked to."""
    run = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
