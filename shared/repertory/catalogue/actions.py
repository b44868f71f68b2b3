"""The action that a name or a request asks for: create, read, list, delete, ….

A tool that does another thing with the right object is no answer: ``delete_note`` for "write a
note".
"""

from functools import lru_cache

from repertory.catalogue.names import split_name

_VERBS = {
    "create": "create add new make insert write compose draft generate build register open start "
    "save store put setup initialize init post publish upload provision attach append schedule "
    "book record",
    "read": "get read fetch view show retrieve describe inspect display load see look check open "
    "download export lookup tell",
    "list": "list enumerate browse ls all which",
    "search": "search find query lookup locate look discover filter grep",
    "update": "update edit modify change set rename patch replace adjust configure move assign "
    "write upsert mark enable resize",
    "delete": "delete remove drop erase clear purge forget destroy unset uninstall discard trash "
    "unassign detach cancel revoke disable wipe truncate",
    "send": "send email message notify reply forward post share publish submit invite dm",
    "run": "run execute invoke trigger start launch call perform apply exec deploy restart retry",
    "stop": "stop kill terminate cancel abort close pause end shutdown quit disconnect",
    "merge": "merge combine join concatenate rebase",
    "convert": "convert transform translate transcode turn export parse extract encode decode",
}
_ACTIONS: dict[str, frozenset[str]] = {
    verb: frozenset(action for action, verbs in _VERBS.items() if verb in verbs.split())
    for verbs in _VERBS.values()
    for verb in verbs.split()
}
_DELETION = frozenset({"delete"})
_READING = frozenset({"read", "list", "search"})
# Words that may stand before the verb of a request.
_BEFORE = frozenset(
    """a an and any can could do does for get help how i id in is it just let like me my need our
    please should that the this to try us want wanna way we what where will with would
    you""".split()  # noqa: SIM905 -- a list of forty literals would be harder to read
)
_MAX_WORDS = 8  # of a request among which its verb is searched


def of_name(name: str) -> frozenset[str]:
    """The actions of an item by its name: those of the first verb in it."""
    for word in split_name(name).split():
        if word in _ACTIONS:
            return _ACTIONS[word]
    return frozenset()


@lru_cache(maxsize=256)  # a search needs it for each of its texts, beside the embedding
def of_request(text: str) -> frozenset[str]:
    """The actions that a request asks for: those of its first verb."""
    words = split_name(text[:500]).split()[:_MAX_WORDS]
    for word in words:
        if word in _ACTIONS and (word not in _BEFORE or word == words[0]):
            return _ACTIONS[word]
    return frozenset()


def agreement(asked: frozenset[str], does: frozenset[str]) -> int:
    """1 if an item does what is asked, -1 if it does something else, 0 if that is unknown.

    A request without a verb is no request to delete.
    """
    if not does or (not asked and does != _DELETION):
        return 0
    return 1 if asked & does else -1


def only_reads(asked: frozenset[str]) -> bool:
    """Whether a request is only to read something: get the volume."""
    return bool(asked) and asked <= _READING


def only_changes(does: frozenset[str]) -> bool:
    """Whether an item only changes something: set_volume."""
    return bool(does) and does.isdisjoint(_READING)
