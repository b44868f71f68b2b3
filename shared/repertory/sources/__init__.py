"""The sources of items: a module or folder for each type, and the registry that lists them.

Entries come from a configuration or from ``discover``. ``registry`` builds the sources of an entry
by its type, and ``configured`` builds the catalogue of all entries. Sources of files derive from
``folder``: they walk their folders (``reading/walk``), read the changed files (``reading_cache``),
and combine their items (``folder_contents``). Content from elsewhere is first fetched into a folder
(``fetched/``). ``mcp/`` and ``openapi/`` turn tools into items.
"""
