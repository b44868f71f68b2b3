"""Measures how good the ranking is, on labelled and generated queries; needs the extra ``eval``."""

from importlib.util import find_spec

from repertory.errors import RepertoryError

if missing := [name for name in ("ir_measures", "scipy", "sklearn") if find_spec(name) is None]:
    raise RepertoryError(f"This needs {', '.join(missing)}; run: pip install 'repertory[eval]'")
