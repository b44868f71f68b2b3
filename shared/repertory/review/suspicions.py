"""The rules that find harmful text in skills and tools: one table, read from top to bottom.

A rule looks at one passage at a time: a paragraph, a list item, a line of code, or one text of a
schema. A match is not proof: it marks what a person should read before an agent does. Every
expression takes linear time, because gaps are bounded and repetitions are not nested.
"""

import base64
import re
from bisect import bisect_right
from collections.abc import Callable, Container, Iterator, Sequence
from itertools import accumulate

import msgspec

from repertory.catalogue.item import Item, Kind
from repertory.catalogue.passages import item_passages
from repertory.review.readings import readings
from repertory.text import clean

MAX_PASSAGE_SHOWN = 300  # characters

EVERY = frozenset(Kind)
TOOLS = frozenset({Kind.TOOL})


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A match of a rule in an item.

    Attributes:
        rule: The rule's name.
        message: One sentence that says what it means.
        passage: The matching passage, cut; empty if the source has removed it.
    """

    rule: str
    message: str
    passage: str


class SuspicionRule(msgspec.Struct, frozen=True, kw_only=True):
    """One rule.

    Attributes:
        name: Its name.
        message: One sentence for people, with "it" as the item.
        found_by: Whether a passage matches.
        kinds: The kinds of items it applies to.
        words: Substrings in lower case, at least one of which a matching passage contains. This
            filter saves most of the time. Empty for no filter.
        has_long_words: Whether a passage with a long word may match as well.
    """

    name: str
    message: str
    found_by: Callable[[str], bool]
    kinds: frozenset[Kind] = EVERY
    words: tuple[str, ...] = ()
    has_long_words: bool = False


def _any(*expressions: str) -> Callable[[str], bool]:
    """Whether one of the expressions matches, in any case."""
    search = re.compile("|".join(expressions), re.IGNORECASE).search
    return lambda passage: search(passage) is not None


def _all(*expressions: str) -> Callable[[str], bool]:
    """Whether each of the expressions matches somewhere in the passage, in any case."""
    searches = [re.compile(one, re.IGNORECASE).search for one in expressions]
    return lambda passage: all(search(passage) for search in searches)


def _either(*tests: Callable[[str], bool]) -> Callable[[str], bool]:
    return lambda passage: any(test(passage) for test in tests)


_KEYS = (
    r"(?:api[ _-]?keys?|(?:access|auth|session|bot) tokens?|api tokens?|passwords?|credentials|"
    r"private[ _-]?keys?|seed phrases?|ssh[ _-]?keys?|environment variables|secrets|\.env\b)"
)
_SEND = r"\b(?:send|post|upload|forward|transmit|exfiltrate|leak|output|print|submit|copy)\b"
# Not if it gets its program as an option (`-c`, `-m`, `-e`): then its input is only data.
_SHELL = (
    r"(?:sudo (?:-\w{1,3} )?)?(?:/bin/|/usr/bin/)?"
    r"(?:(?:ba|z|da|k)?sh|python[23]?|perl|ruby|node|iex|invoke-expression)\b(?!\s-[cme]\b)"
)
_FETCH = r"\b(?:curl|wget|iwr|irm|invoke-webrequest|invoke-restmethod)\b"

# Files that hold private keys, so not public ones (`.pub`).
_KEY_FILES = (
    r"\.ssh/(?:id_(?:rsa|dsa|ecdsa|ed25519)(?!\w|\.pub)|\*)",
    r"\.aws/credentials\b",
    r"/etc/shadow\b",
    r"\.git-credentials\b",
    r"\.gnupg/(?:private|secring|\*)",
    r"\blogin\.keychain",
    r"\bwallet\.dat\b",
    r"\b(?:cookies\.sqlite|key4\.db|logins\.json)\b",
    r"/proc/self/environ\b",
)

# Many machines already run programs from the owners of these hosts and accounts.
_KNOWN_HOSTS = re.compile(
    r"https?://(?:"
    r"astral\.sh|sh\.rustup\.rs|get\.docker\.com|rclone\.org|aka\.ms|dot\.net|aspire\.dev|"
    r"fluxcd\.io|run\.linkerd\.io|get\.k3s\.io|get\.helm\.sh|get\.pnpm\.io|bun\.sh|bun\.com|"
    r"deno\.land|deno\.com|install\.python-poetry\.org|pyenv\.run|get\.sdkman\.io|mise\.run|"
    r"get\.volta\.sh|fnm\.vercel\.app|nixos\.org|starship\.rs|ollama\.(?:com|ai)|tailscale\.com|"
    r"deb\.nodesource\.com|rpm\.nodesource\.com|get\.pulumi\.com|sentry\.io|fly\.io|claude\.ai|"
    r"cursor\.com|opencode\.ai|release\.(?:solana\.com|anza\.xyz)|sdk\.cloud\.google\.com|"
    r"storage\.googleapis\.com/(?:cloud-samples-data|cloud-sdk)|"
    r"raw\.githubusercontent\.com/(?:nvm-sh|Homebrew|helm|kubernetes-sigs|rust-lang|astral-sh|"
    r"docker|microsoft|Azure|google|GoogleCloudPlatform|aws|hashicorp|anthropics|openai|"
    r"babashka|ohmyzsh|pypa|nodejs|golangci)"
    r")(?:[/:\s)\"'|?]|$)",
    re.IGNORECASE,
)
_RUN_FROM_NETWORK = re.compile(
    rf"{_FETCH}[^|\n]{{1,300}}+\\?\|\s{{0,4}}(?:tee [^|]{{1,80}}+\|\s{{0,4}})?{_SHELL}"
    r"|(?:\b(?:(?:ba|z|da)?sh|python3?|eval|source)|\B\.) (?:-c )?[\"']?"
    rf"[$<]\({_FETCH}[^)\n]{{1,300}}+\)"
    rf"|\biex ?\(+(?:new-object|{_FETCH})[^)\n]{{1,300}}+\)",
    re.IGNORECASE,
)


def _runs_unknown_script(passage: str) -> bool:
    """Whether a command runs a download from a host that is not well known."""
    return any(
        not _KNOWN_HOSTS.search(command.group()) for command in _RUN_FROM_NETWORK.finditer(passage)
    )


_ENCODED = re.compile(r"(?<![A-Za-z0-9+/=])[A-Za-z0-9+/]{24,4000}={0,2}")
_LONG_WORD = re.compile(r"[a-z0-9+/]{24}")  # possible base64, in case-folded text
_SMALL_I = re.compile("i\u0307|\u0131")  # in case-folded text, what IGNORECASE matches with "i"
_ENCODED_COMMAND = re.compile(
    r"/bin/|\bcurl |\bwget |\bbash -c|powershell|invoke-|\bnc -e|\bsend all|\bignore (?:all )?prev",
    re.IGNORECASE,
)


def _hides_command(passage: str) -> bool:
    """Whether a base64 word decodes to a command."""
    for word in _ENCODED.findall(passage):
        data = base64.b64decode(word[: len(word) // 4 * 4], validate=False)
        if _ENCODED_COMMAND.search(data.decode("latin-1")):
            return True
    return False


# Sources remove such characters (``text.clean``) and report it; items added by programs may have
# them. Some scripts use zero-width spaces, and tag characters after a black flag name a region.
_INVISIBLE = re.compile(
    "[\u202a-\u202e\u2066-\u2069\u2061-\u2064\u2060\u180e]"
    "|(?<![\u0590-\u1fff\u2190-\U000dffff])\u200b"
    "|(?<!^)\ufeff"
    "|(?<![\U0001f3f4\U000e0000-\U000e007f])[\U000e0000-\U000e007f]"
)
INVISIBLE = Finding(
    rule="invisible-text",
    message="It has characters that people cannot see and models read.",
    passage="",
)


RULES: tuple[SuspicionRule, ...] = (
    SuspicionRule(
        name=INVISIBLE.rule,
        message=INVISIBLE.message,
        found_by=lambda passage: not passage.isascii() and bool(_INVISIBLE.search(passage)),
    ),
    SuspicionRule(
        name="overrides-instructions",
        words=(
            "ignore",
            "disregard",
            "forget",
            "override",
            "system",
            "im_start",
            "inst]",
            "you are now in",
        ),
        message="It tells the model to drop its instructions, or imitates a system message.",
        found_by=_any(
            r"\b(?:ignore|disregard|forget|override)\s(?:all\s|any\s|of\s|the\s|your\s|my\s){0,3}"
            r"(?:previous|prior|earlier|above|preceding|existing)\s(?:\w{1,20}\s)?"
            r"(?:instructions?|rules|prompts?|messages|directions|guidelines)\b",
            r"<\s?/?\s?system\s?>",
            r"<\|(?:im_start|system)\|?>",
            r"(?-i:\[/?(?:INST|SYSTEM)\])",
            r"\byou are now in (?:\w{1,20} )?mode\b",
        ),
    ),
    SuspicionRule(
        name="hides-from-user",
        words=("the user", "your user", "the human", "your human", "the owner", "your owner"),
        message="It tells the model to keep something from its user.",
        found_by=_any(
            r"\b(?:do not|don't|never|must not|without)\s(?:ever\s)?"
            r"(?:tell|telling|inform|informing|notify|notifying|alert|alerting)\s"
            r"(?:the|your)\s(?:user|human|owner)\b(?:\s(?:about|of|that)\b|\.|,|$)",
            r"\b(?:do not|don't|never)\s(?:mention|reveal|disclose|show|report)\s"
            r"(?:this|that|it|these)\b[^.]{0,40}\bto\s(?:the|your)\s(?:user|human|owner)\b",
        ),
    ),
    SuspicionRule(
        name="imperative-tool",
        message="It is a tool that gives the model orders about its other tools.",
        kinds=TOOLS,
        words=(
            *("important>", "important >", "hidden>", "hidden >", "admin>", "admin >"),
            *("instruction>", "instruction >", "instructions>", "instructions >"),
            *(" mention", " reveal", " disclose", " tell", "otherwise th"),
            *("and pass", "and include", "and send", "and add"),
            *("then pass", "then include", "then send", "then add"),
            *("bcc", "forward", "redirect", "other tool", "whenever an"),
            *("before using", "before calling", "before invoking", "before running"),
        ),
        found_by=_any(
            r"<\s?/?\s?(?:important|hidden|admin|instructions?)\s?>",
            r"\b(?:do not|don't|never) (?:mention|reveal|disclose|tell)\b",
            r"\botherwise (?:the|this) tool (?:will|does|won't|cannot)\b",
            r"\bread\b[^.]{0,60}\b(?:and|then) (?:pass|include|send|add)\b",
            r"\b(?:bcc|forward|redirect)\b[^.]{0,80}\b[\w+-]{1,60}@[\w-]{1,60}\.",
            r"\bbefore (?:using|calling|invoking|running) (?:any|all|every) (?:other )?tools?\b",
            r"\b(?:instead of|rather than) (?:calling|using) (?:the |any )?other tools?\b",
            r"\bwhenever (?:any|another) (?:other )?tool is (?:called|used|invoked)\b",
        ),
    ),
    SuspicionRule(
        name="key-files",
        words=(
            ".ssh/",
            ".aws/",
            "/shadow",
            ".git-cred",
            ".gnupg",
            "keychain",
            "wallet.dat",
            "cookies.",
            "key4.",
            "logins.",
            "/environ",
        ),
        message="It names files that hold private keys or passwords.",
        found_by=_any(*_KEY_FILES),
    ),
    SuspicionRule(
        name="private-folders",
        message="It is a tool whose description names a folder of private keys.",
        kinds=TOOLS,
        words=("~/.",),
        found_by=_any(
            r"~/\.(?:ssh|aws|gnupg|kube|netrc|docker/config|cursor/mcp|claude|config/gcloud)\b"
            r"(?!/[\w-]{1,40}\.pub\b)",
        ),
    ),
    SuspicionRule(
        name="sends-secrets",
        message="It tells the model to send keys, passwords or the environment somewhere.",
        words=(
            *("api key", "api_key", "api-key", "apikey", " token", "password", "credentials"),
            *("private key", "private_key", "private-key", "privatekey", "seed phrase"),
            *("ssh key", "ssh_key", "ssh-key", "sshkey", "environment variables", "secrets"),
            *("env|", "env |", ".ssh", ".aws", ".env", ".gnupg"),
        ),
        found_by=_either(
            _all(
                rf"{_SEND}[^.]{{0,30}}\b(?:all|any|every|available|found|collected)\b"
                rf"[^.]{{0,40}}{_KEYS}",
                r"\bto\b[^.]{0,60}(?:https?://|\bendpoint\b|\bserver\b|\bwebhook\b|@)",
            ),
            _any(
                r"\b(?:env|printenv)\s?\|\s?(?:base64\s?\|\s?)?(?:curl|wget|nc)\b",
                rf"{_FETCH}[^\n]{{0,200}}(?:@|\$\(cat )~?/?[^\s]{{0,40}}\.(?:ssh|aws|env|gnupg)\b",
            ),
        ),
    ),
    SuspicionRule(
        name="locked-archive",
        words=("pass", "pwd", "using :", "using:", "with :", "with:"),
        message="It tells its reader to unpack a download with a given password, which hides the "
        "content from virus scanners.",
        found_by=_any(
            r"\b(?:extract|unzip|unpack|unrar|archive|zip|rar|7z|exe)\b[^.\n]{0,50}"
            r"\b(?:password|passphrase|pass|pwd)\s?(?:is|[:=])\s?\S",
            r"\b(?:extract|unzip|unpack|unrar)\s(?:it\s)?(?:using|with)\s?:\s?\S",
            r"\b(?:extract|unzip|unpack|unrar|open)\b[^.\n]{0,50}\b(?:with|using|by)\s"
            r"(?:the\s|this\s)?(?:password|passphrase|pass|pwd)\s[\"'`“]?\w",
        ),
    ),
    SuspicionRule(
        name="required-program",
        words=("download",),
        message="It tells its reader to download and start a program before anything else.",
        found_by=_all(
            r"\bdownload\b",
            r"\b(?:run|open|launch|execute|start)\b[^.\n]{0,60}(?:\.(?:exe|scr|msi|bat|dmg|pkg)\b|"
            r"\bthe (?:executable|binary|installer)\b)",
            r"\b(?:before|first|required|must|critical|needs?)\b",
        ),
    ),
    SuspicionRule(
        name="pasted-command",
        words=(
            "glot.io",
            "rentry.",
            "pastebin.",
            "hastebin.",
            "paste.ee",
            "dpaste.",
            "termbin.",
            "0x0.st",
            "transfer.sh",
            "ghostbin.",
            "justpaste.it",
            "controlc.",
        ),
        message="It tells its reader to run a command from a page that anyone can write.",
        found_by=_all(
            r"\b(?:glot\.io|rentry\.(?:co|org)|pastebin\.com|hastebin\.com|paste\.ee|dpaste\.\w{2,4}|"
            r"termbin\.com|0x0\.st|transfer\.sh|ghostbin\.\w{2,4}|justpaste\.it|controlc\.com)/",
            r"\b(?:run|execute|paste|install|terminal|bash|sh)\b",
        ),
    ),
    SuspicionRule(
        name="hidden-command",
        message="It hides a command in base64, or runs what it decodes.",
        words=("base64", "powershell", "b64decode(", "atob("),
        has_long_words=True,
        found_by=_either(
            _hides_command,
            _any(
                rf"\bbase64\s(?:-d|--decode)\b[^|\n]{{0,40}}\|\s?{_SHELL}",
                r"\bpowershell[^\n]{0,60}\s-e(?:nc|ncodedcommand)?\s[A-Za-z0-9+/=]{20}",
                r"\b(?:iex|invoke-expression)\b[^\n]{0,60}frombase64string",
                r"\b(?:exec|eval)\(\s?(?:\w{1,20}\.){0,2}(?:b64decode|atob)\(",
            ),
        ),
    ),
    SuspicionRule(
        name="unnamed-host",
        words=("://",),
        message="It downloads from an IP address instead of a host name.",
        found_by=_any(
            rf"{_FETCH}[^\n]{{0,200}}https?://"
            r"(?!0|10\.|127\.|169\.254\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.)"
            r"\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b",
        ),
    ),
    SuspicionRule(
        name="unknown-script",
        words=("curl", "wget", "iwr", "irm", "invoke-", "new-object"),
        message="It runs a script from a little-known host without anyone reading it.",
        found_by=_runs_unknown_script,
    ),
)


def suspicions(item: Item, known: Container[str] = ()) -> list[Finding]:
    """The findings of the rules in an item, in the order of the table.

    Each rule is reported once, with the first passage that matches.

    Args:
        item: The item.
        known: Passages to skip, because they are in the approved version.
    """
    passages: list[str] = []
    texts: list[str] = []  # the readings, one or two for each passage
    for passage in item_passages(item):
        if passage not in known:
            read = readings(passage)
            passages += [passage] * len(read)
            texts += read
    folded = _Folded(texts)
    found = []
    for rule in RULES:
        if item.kind in rule.kinds:
            places = folded.places(rule)
            place = next((one for one in places if rule.found_by(texts[one])), None)
            if place is not None:
                passage = shown(passages[place])
                found.append(Finding(rule=rule.name, message=rule.message, passage=passage))
    return found


class _Folded:
    """Texts without line breaks, case-folded and joined, because one long search is the fastest.

    Args:
        texts: The texts.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        text = "\n".join(texts).casefold()
        self._text = text if text.isascii() else _SMALL_I.sub("i", text)
        self._ends = [*accumulate(len(one) + 1 for one in self._text.split("\n"))]
        self._number = len(texts)

    def places(self, rule: SuspicionRule) -> Sequence[int]:
        """The numbers of the texts that may match a rule, ascending."""
        if not rule.words:
            return range(self._number)
        found = {place for word in rule.words for place in self._with(word)}
        if rule.has_long_words:
            starts = (one.start() for one in _LONG_WORD.finditer(self._text))
            found.update(bisect_right(self._ends, start) for start in starts)
        return sorted(found)

    def _with(self, word: str) -> Iterator[int]:
        """The numbers of the texts that contain a word, each once."""
        at = self._text.find(word)
        while at >= 0:
            place = bisect_right(self._ends, at)
            yield place
            at = self._text.find(word, self._ends[place])


def shown(passage: str) -> str:
    """A passage for display: without invisible characters, and cut."""
    text = clean(passage).strip()
    return text if len(text) <= MAX_PASSAGE_SHOWN else f"{text[:MAX_PASSAGE_SHOWN]}…"
