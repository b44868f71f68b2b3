"""Archives with skills: ``.zip``, ``.skill``, ``.tar.gz`` and ``.tgz``."""

from repertory.sources.archive.entry import build, contained, recognise

__all__ = ["build", "contained", "recognise"]
