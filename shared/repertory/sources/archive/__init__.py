"""Archives with skills: ``.zip``, ``.skill``, ``.tar.gz`` and ``.tgz``."""
