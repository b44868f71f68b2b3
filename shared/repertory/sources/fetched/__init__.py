"""Content from elsewhere: fetched into the data directory, and read there by ordinary sources.

A type of source from elsewhere has a ``Fetcher``, whose content a ``Content`` keeps; its module
also offers ``recognise`` to ``repertory.sources.adding``.
"""
