"""Kinds of jobs, and the general tools that can do them if no item does them directly."""

from collections.abc import Collection
from functools import lru_cache

import msgspec

from repertory.catalogue.names import split_name
from repertory.index.keywords.document import Entry
from repertory.index.keywords.query_words import query_words
from repertory.index.keywords.tokens import term_of, terms

# How clearly a tool has a capability: by name and parameters, by either, for this job only, or not.
BY_BOTH, BY_PARAMETER, BY_NAME, FOR_THIS_JOB, NO_CAPABILITY = 4, 3, 2, 1, 0
MIN_SHARE = 0.7  # of a query's words that must belong to a job

# Words of any request, which are left out of that share.
_PLAIN = """able all check create current every find first give help last latest left list look make
many more most much new now old one open please quickly recent run see set show start tell thing
today tool unused view whether work"""
# For each capability, words of names, not stemmed: verbs / objects of these verbs / parameters of
# such tools / words of tools that do something else, or do it elsewhere.
_CAPABILITIES = {
    "shell": """run exec execute invoke start / shell bash zsh powershell terminal command commands
        cmd / command commands cmd script / adb android azure backup browser container database
        discord docker editor kubectl kubernetes mobile mongodb palette payment playwright pod
        puppeteer redis selenium slash sql stripe test voice""",
    "browser": """browse goto navigate open visit / browser chrome playwright puppeteer / url /
        back forward mobile""",
    "database": """exec execute query run / database db duckdb mariadb mysql postgres postgresql sql
        sqlite / sql / azure backup container explain firewall format migration schema validate""",
}
# For each kind of job: the capabilities that can do it, likeliest first / words that ask for it
# alone / words that ask for it beside another of its words / its other words.
_JOBS = {
    "git operations": """shell / git commit rebase gitignore unstage / branch change stash
        repository repo merge conflict remote / clone checkout cherry pick push pull diff staged
        history log status undo tag create delete switch resolve squash two""",
    "containers": """shell / docker podman dockerfile kubernetes kubectl k8s helm / container pod
        deployment cluster namespace / compose image volume log restart rollout running scale stop
        start kill remove delete ps""",
    "processes": """shell / pkill systemctl uptime / process port daemon service disk memory cpu /
        kill stop start restart running terminate listen space usage free full used""",
    "packages and tests": """shell / npm pip apt brew yarn pytest makefile compile / package
        dependency library test build linter / install uninstall update upgrade python node
        requirements unit suite run project failing""",
    "file operations": """shell / unzip untar chmod grep / file folder directory archive / read
        write copy move rename delete remove list find search contain specific text content line
        path create edit append cat ls mkdir extract compress unpack print show zip size""",
    "web pages": """browser shell / curl wget / url website webpage page / browser web click fill
        form button screenshot take navigate visit log login download fetch""",
    "data queries": """database shell / sql sqlite postgres postgresql mysql / database / query
        select row table record count dump run""",
}


class Job(msgspec.Struct, frozen=True):
    """A kind of job: its label, the capabilities that can do it, and its words as stems."""

    label: str
    by: tuple[str, ...]
    alone: frozenset[str]
    objects: frozenset[str]
    words: frozenset[str]

    def is_asked_by(self, stems: Collection[str]) -> bool:
        """Whether the stems of a query ask for this job."""
        own = self.words.intersection(stems)
        return not own.isdisjoint(self.alone) or (len(own) > 1 and not own.isdisjoint(self.objects))


@lru_cache(maxsize=256)
def jobs(query: str) -> list[Job]:
    """The jobs that a query plainly asks for, sorted by their share of its words."""
    asked = query_words(query)
    typed = {word.term for word in asked if len(word.term) > 1 and not word.term.isdigit()}
    wholes = map(term_of, {word.whole for word in asked if word.whole})
    typed.update(term for term in wholes if any(term in job.words for job in JOBS))
    own = {job: typed & job.words for job in JOBS if job.is_asked_by(typed)}
    plain = [job for job in own if len(own[job]) >= MIN_SHARE * len((typed - PLAIN) | own[job])]
    return sorted(plain, key=lambda job: -len(own[job]))


def certainty(capability: str, job: Job, tool: Entry, parameters: Collection[str]) -> int:
    """How clearly a tool has a capability, by its name and its parameters.

    A tool such as ``Shell__cat`` has one only for the jobs that have all words of its own name.
    """
    verbs, objects, taken, unless = CAPABILITIES[capability]
    named, around = {*split_name(tool.name).split()}, {*split_name(tool.server).split()}
    if not named or unless & (named | around):
        return NO_CAPABILITY
    takes = not taken.isdisjoint(parameters)
    if (verbs & named and objects & (named | around)) or named <= objects:
        return BY_BOTH if takes else BY_NAME
    if takes and (verbs | objects) & named:
        return BY_PARAMETER
    own = {*terms(tool.name)}
    return FOR_THIS_JOB if around & objects and own and own <= job.words else NO_CAPABILITY


def _sets(text: str) -> list[frozenset[str]]:
    """The words of each part of a table entry."""
    return [frozenset(part.split()) for part in text.split("/")]


def _job(label: str, text: str) -> Job:
    by, *words = text.split("/")
    alone, objects, others = (frozenset(map(term_of, part.split())) for part in words)
    return Job(label, tuple(by.split()), alone, objects, alone | objects | others)


PLAIN = frozenset(terms(_PLAIN))
CAPABILITIES = {name: _sets(text) for name, text in _CAPABILITIES.items()}
JOBS = [_job(label, text) for label, text in _JOBS.items()]
