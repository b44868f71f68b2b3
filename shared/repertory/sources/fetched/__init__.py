"""Content from elsewhere: fetched into the data directory, and read there by ordinary sources.

Each type of fetched source has a ``Fetcher``, and a ``Content`` stores what it fetches. In addition
to ``build`` the type has ``recognise``; see ``repertory.sources.adding``.
"""
