"""Content from elsewhere: fetched into the data directory, and read there by ordinary sources.

A type of source from elsewhere has a ``Fetcher``, whose content a ``Content`` keeps. Beside its
``build`` it has a ``recognise``; see ``repertory.sources.adding``.
"""
