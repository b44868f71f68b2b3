"""The action that a name or a request asks for: create, read, list, delete, ….

A tool that does something else with the right object is a wrong result, such as ``delete_note``
for "write a note".
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from repertory.catalogue.names import split_name

_VERBS = {
    "create": "create add new make insert write compose draft generate build register open start "
    "save store put setup initialize init post publish upload provision attach append schedule "
    "book record begin",
    "read": "get read fetch view show retrieve describe inspect display load see look check open "
    "download export lookup tell",
    "list": "list enumerate browse ls all which",
    "search": "search find query lookup locate look discover filter grep",
    "update": "update edit modify change set rename patch replace adjust configure move assign "
    "write upsert mark enable activate resize",
    "delete": "delete remove drop erase clear purge forget destroy unset uninstall discard trash "
    "unassign detach cancel revoke disable deactivate wipe truncate void kill terminate",
    "send": "send email message notify reply forward post share publish submit invite dm",
    "run": "run execute invoke trigger start begin launch activate call perform apply exec deploy "
    "restart retry",
    "stop": "stop kill terminate cancel abort close pause end shut shutdown quit disconnect "
    "deactivate",
    "restore": "restore recover undelete undo revert",
    "merge": "merge combine join concatenate rebase",
    "convert": "convert transform translate transcode turn export parse extract encode decode",
}
_ACTIONS: dict[str, frozenset[str]] = {
    verb: frozenset(action for action, verbs in _VERBS.items() if verb in verbs.split())
    for verbs in _VERBS.values()
    for verb in verbs.split()
}
# Two-word verbs, and verbs that switch something, whose particle determines the action.
_PHRASES = {
    ("get", "rid"): _ACTIONS["delete"],
    ("set", "up"): _ACTIONS["create"],
    ("back", "up"): _ACTIONS["create"],
}
SWITCHING = frozenset({"turn", "switch", "power", "shut"})
_PARTICLES = {"on": _ACTIONS["activate"], "off": _ACTIONS["deactivate"]}
_AFTER_PARTICLE = frozenset(
    """after again and as at before but for if in now off on or please then until
    when""".split()  # noqa: SIM905 -- as above
)
_MAX_OBJECT = 4  # words between a verb and its particle

_DELETION = frozenset({"delete"})
_READING = frozenset({"read", "list", "search"})
# Words that may stand before the verb of a request.
_BEFORE = frozenset(
    """a an and any can could do does for get help how i id in is it just let like me my need our
    please should that the this to try us want wanna way we what where will with would
    you""".split()  # noqa: SIM905 -- a list of forty literals would be harder to read
)
# Words that ask for a tool or a way, before the request itself: "show me how to", "a tool that".
_FINDING = _BEFORE | frozenset(
    """am at best find good know locate look looking new one out right search see show some
    suggest recommend tell there which""".split()  # noqa: SIM905 -- as above
)
_KINDS = ("command", "function", "skill", "tool")
_TOOLS = frozenset(_KINDS + tuple(f"{kind}s" for kind in _KINDS))
_NAMED_KINDS = frozenset({"skill", "tool"})  # plurals are an object: "agent skills"
_LINKS = frozenset(
    {("how", "to"), ("how", "i"), ("how", "we"), ("way", "to"), ("ways", "to")}
    | {(tool, link) for tool in _TOOLS for link in ("to", "that", "which", "for", "can")}
)
_MAX_WORDS = 8  # at the beginning of a request, in which its verb is searched
_OFFERED = _TOOLS | {"anything", "something"}
# Without "get", "new" and "search": a "search tool for files" may be a tool that searches.
_OFFERING = _FINDING - {"get", "new", "search"} | {"are", "got", "have"}
_SERVING = frozenset({"about", "for", "that", "to", "which"})
_MAX_ASIDE = 500  # characters; longer texts describe a task and are left unchanged

# A greeting before a request, and thanks after it; punctuation usually separates them.
_GREETING = re.compile(
    r"\s*(?:hi|hello|hey|good (?:morning|afternoon|evening))(?: (?:all|everyone|team|there))?"
    r"(?:[,.!:]+|(?= (?:can|could|how|i|is|please|we|what|where|which) ))\s+(?=\S)"
)
_THANKS = re.compile(
    r"(?<=[\w\"')\]])[,.;!?]+ (?:please|thanks|thank you|thx|cheers)"
    r"(?: (?:a lot|again|in advance|so much|very much))?[.!]*\s*$"
)


def endings(verb: str, ending: str) -> list[str]:
    """The possible spellings of a verb form: ``stopping``, ``deleting``, ``copied``."""
    found = [verb + ending, verb + verb[-1] + ending, verb.removesuffix("e") + ending]
    if verb.endswith("y") and ending != "ing":
        found.append(f"{verb[:-1]}i{ending}")
    return found


_DOING, _DONE = (
    {form: verb for verb in _ACTIONS for form in endings(verb, ending)} for ending in ("ing", "ed")
)
_DOES = {form: verb for verb in _ACTIONS for form in (f"{verb}s", *endings(verb, "es"))}
_DONE |= {"written": "write", "sent": "send", "built": "build", "made": "make"}
_FORMS = {"for": _DOING, "that": _DOES, "which": _DOES}  # the verb forms after each of these words


def of_name(name: str) -> frozenset[str]:
    """The actions of an item, from the first verb in its name.

    A name without one may begin with the other form of a verb: ``creating-videos``.
    """
    words = split_name(name).split()
    for place, word in enumerate(words):
        if found := _with_particle(words, place) or _ACTIONS.get(word):
            return found
    return _ACTIONS.get(_DOING.get(words[0], ""), frozenset()) if words else frozenset()


@lru_cache(maxsize=256)  # a search needs it several times for each of its texts
def of_request(text: str) -> frozenset[str]:
    """The actions that a request asks for, from its first verb."""
    words = wanted(text)
    for place, word in enumerate(words[:_MAX_WORDS]):
        if found := _with_particle(words, place):
            return found
        if word in _ACTIONS and (word not in _BEFORE or not place):
            return _ACTIONS[word] | _caused(words[place:])
    return frozenset()


def _caused(words: Sequence[str]) -> frozenset[str]:
    """The actions besides reading in "get an operation scheduled"; empty for most requests."""
    is_caused = words[0] == "get" and len(words) <= _MAX_OBJECT + 2
    return _ACTIONS.get(_DONE.get(words[-1], ""), frozenset()) if is_caused else frozenset()


@lru_cache(maxsize=256)
def without_courtesy(text: str) -> str:
    """Remove a greeting, thanks, and words that only ask for a tool or a skill from a request.

    The request is in lower case, and unchanged if nothing else would be left. "A tool for deleting
    rows" becomes "delete rows".
    """
    if len(text) > _MAX_ASIDE:
        return text
    greeting = _GREETING.match(text)
    rest = _THANKS.sub("", text[greeting.end() :] if greeting else text)
    words = rest.split()
    beginning = (word.rstrip(",:") for word in words[: _MAX_WORDS + 1])
    for place, (word, after) in enumerate(pairwise(beginning)):
        if word in _OFFERED and after in _SERVING:
            verb, *others = words[place + 2 :] or [""]
            rest = " ".join([_FORMS.get(after, {}).get(verb, verb), *others])
            break
        if word not in _OFFERING:
            break
    return rest if any(word not in _BEFORE for word in rest.split()) else text


def kind_of(text: str) -> str:
    """The last word of a request if it only names the kind of item wanted; otherwise empty.

    This is "skill" for "payroll skill". In "create a skill" the word is the object of a verb.
    """
    before, _, last = text.rstrip(" .?!").rpartition(" ")
    is_kind = last in _NAMED_KINDS and any(word not in _FINDING for word in before.split())
    return last if is_kind and not of_request(text) else ""


def wanted(text: str) -> list[str]:
    """The first words of a request, without those that only ask for a tool or a way."""
    words = split_name(text[:500]).split()
    for place, (word, after) in enumerate(pairwise(words[: _MAX_WORDS + 1])):
        if (word, after) in _LINKS:
            verb, *rest = words[place + 2 :] or words
            return [_FORMS.get(after, {}).get(verb, verb), *rest]
        if word not in _FINDING and (word in _ACTIONS or after not in _TOOLS):
            break
    return words


def _with_particle(words: Sequence[str], place: int) -> frozenset[str]:
    """The actions of a two-word verb: "set up a server", "turn the light off"."""
    verb, *after = words[place : place + _MAX_OBJECT + 2]
    if after and (verb, after[0]) in _PHRASES:
        return _PHRASES[verb, after[0]]
    if verb not in SWITCHING:
        return frozenset()
    # Before an object, the word is a preposition: "turn the text on the page into a file".
    found = (
        _PARTICLES[word]
        for number, word in enumerate(after[: _MAX_OBJECT + 1])
        if word in _PARTICLES and (not number or {*after[number + 1 :][:1]} <= _AFTER_PARTICLE)
    )
    return frozenset().union(*found)


def agreement(asked: frozenset[str], does: frozenset[str]) -> int:
    """1 if an item does what is asked, -1 if it does something else, 0 if that is unknown.

    A request without a verb does not ask to delete anything.
    """
    if not does or (not asked and does != _DELETION):
        return 0
    return 1 if asked & does else -1


def only_reads(asked: frozenset[str]) -> bool:
    """Whether a request only asks to read something: get the volume."""
    return bool(asked) and asked <= _READING


def only_changes(does: frozenset[str]) -> bool:
    """Whether an item only changes something: set_volume."""
    return bool(does) and does.isdisjoint(_READING)
