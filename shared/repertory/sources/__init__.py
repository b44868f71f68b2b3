"""The sources of items: a module or folder for each type, and the registry that lists them.

``discover`` finds entries, or a configuration has them. ``registry`` builds the sources of an entry
by its type, and ``configured`` the catalogue of all entries. A source of files is a ``folder``: it
walks its folders (``reading/walk``), reads the files that have changed (``reading_cache``), and
keeps what they offer together (``contents``). What lies elsewhere is fetched into a folder first
(``fetched/``); ``mcp/`` and ``openapi/`` make items of tools.
"""
