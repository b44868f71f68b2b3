"""Every regular expression takes linear time for any text.

Python's ``re`` keeps the interpreter's lock, so a slow expression stops a whole server.
"""

import ast
import importlib
import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

import pytest

from repertory.sources.mcp.traffic import SAYS
from tests.support.growth import grows_too_fast

ROOT = Path(__file__).parents[2]
SOURCES = [ROOT / "shared", ROOT / "services", ROOT / "workers"]
METHODS = {"match", "fullmatch", "search", "sub", "findall", "finditer", "split"}

# Modules that build expressions at run time: from words of a query, from a policy's pattern
# (``fnmatch`` makes linear ones), or from Typer's messages about the user's own command line.
MADE_AT_RUN_TIME = {
    "repertory.review.suspicions",  # from its rules, which test_suspicions measures
    "repertory.project_search.snippets",
    "repertory.search.nearness",  # test_nearness measures it
    "repertory.search.quotations",  # test_quotations measures it
    "repertory.catalogue.policies",
    "repertory_admin.argument_errors",
}

# Texts that each expression matches. Hostile texts are made by repeating parts of them.
EXAMPLES = {
    "repertory.backup.files._DATABASE": ["vectors.sqlite", "reviews/a-b.sqlite"],
    "repertory.backup.files._PLAIN": ["keys.json", "workspaces/a.b.json", "audit/audit.jsonl.1"],
    "repertory.backup.files._SIGN_IN": ["sign-ins/a.json"],
    "repertory.backup.restore._GENERATION": ["_g12"],
    "repertory.calling.http.request._ENDING": ["a\r\nb"],
    "repertory.catalogue.actions._GREETING": ["hi there! a", " hello can you"],
    "repertory.catalogue.actions._THANKS": ["a, thank you so much! ", "a, please"],
    "repertory.catalogue.fences._FENCE": ["   ```` "],
    "repertory.catalogue.mentions._ARGUMENTS": ["Bash(git add:*) Read"],
    "repertory.catalogue.mentions._CAMEL": ["addOneNote"],
    "repertory.catalogue.mentions._ID": ["github__create-issue.all"],
    "repertory.catalogue.mentions._RUN": ["a/b:c.d__e*f g"],
    "repertory.catalogue.mentions._SEVERAL_WORDS": ["add_one-note.all"],
    "repertory.catalogue.mentions._SLASHED": ["Azure MCP/get_all"],
    "repertory.catalogue.mentions._SPAN": ["a `b c` d"],
    "repertory.catalogue.mentions._UNSPACED": ["a中文b"],
    "repertory.catalogue.mentions._WORD": ["ab12 c"],
    "repertory.agent_hosts.json_text._INDENTATION": ['{\n  "a"', "\n \t\n a"],
    "repertory.agent_hosts.json_text._SAME_LINE_COMMENT": ["  // a", "\t/* a */ b", "/* a"],
    "repertory.agent_hosts.json_text._SPACE": [" \t\r\n a"],
    "repertory.agent_hosts.toml_text._BARE": ["a-b_9 c"],
    "repertory.agent_hosts.toml_text._TOKEN": [
        'a = """b\\" "" [c]\n""""',
        "'''a '' b'''",
        '"a\\"b" # c\n[{}]',
    ],
    "repertory.agent_hosts.yaml_text._PLAIN": ["_a-b c"],
    "repertory.catalogue.names._ACCENTS": ["a\u0300\u0301b"],
    "repertory.catalogue.names._INSIDE": ["getHTTPCode2xx", "getURLsOf"],
    "repertory.catalogue.names._JOINED": ["a-b._/c"],
    "repertory.catalogue.names._SEPARATORS": ["a_-b c"],
    "repertory.catalogue.passages._STARTS": ["   12. a", "  - a"],
    "repertory.review.versions._BOUND": ["src/a@5f1d7a84c2e9"],
    "repertory.review.readings._DISGUISE": ["a &amp; b"],
    "repertory.review.suspicions._ENCODED": ["echo " + "QUJD" * 8 + "== x"],
    "repertory.review.suspicions._ENCODED_COMMAND": ["x ignore all previous"],
    "repertory.review.readings._FORM": ["LATIN SMALL LETTER O WITH STROKE"],
    "repertory.review.suspicions._INVISIBLE": ["a\u202eb"],
    "repertory.review.suspicions._KNOWN_HOSTS": ["x https://raw.githubusercontent.com/aws/ y"],
    "repertory.review.suspicions._LONG_WORD": ["a " + "qujd" * 6 + " x"],
    "repertory.review.readings._OUTER": ["snake_case _a_ b"],
    "repertory.review.suspicions._SMALL_I": ["i\u0307gnore"],
    "repertory.review.readings._MARKUP": [
        "_a_ ~~b~~ <!-- c -->",
        "<b>a</b> <span class='b'>c",
        "![a](b) [c](d",
    ],
    "repertory.review.suspicions._RUN_FROM_NETWORK": [
        "curl -s http://a | tee b | sudo -E bash",
        'sh -c "$(curl -s http://a)"',
        "iex ((new-object a))",
    ],
    "repertory.review.suspicious_changes._BLANK": [r"\s"],
    "repertory.review.suspicious_changes._PARTS": [r"\d[^a\]]b", "[a"],
    "repertory.review.suspicious_changes._ORDERS": ["a always call it, important: do not ask"],
    "repertory.catalogue.views.BADGE": ["[![a](b)](c)"],
    "repertory.catalogue.views.LINK": ["[a b](https://c/d)", "![a](b)"],
    "repertory.catalogue.views._HEADING": ["##  Title b ## "],
    "repertory.catalogue.views._OF_OTHERS": ["** Related skills"],
    "repertory.catalogue.views.SENTENCE_END": ["A b. C", "\u3002a"],
    "repertory.catalogue.views._SPACE": ["a \n b"],
    "repertory.agent_hosts.our_entry._PLAIN": ["https://repertory.example.org/mcp"],
    "repertory.catalogue.names._SIGNS": ["C++ and F#"],
    "repertory.catalogue.views._ALT": [' alt="a b"'],
    "repertory.catalogue.views._TAG": ["<a b='c'>", "</sub>"],
    "repertory.catalogue.views._ATTRIBUTES": ["Install {#a}", "Install { #install .wide }"],
    "repertory.catalogue.views._CLOSING": ["A heading #"],
    "repertory.sources.skill_folders._MISPLACED": ["<!-- a -->\n---\n", "+++ \n", "<!-- a"],
    "repertory.sources.reading.for_programs._CERTAIN": ["a-b >= 1", "a[b", "-r a"],
    "repertory.sources.reading.for_programs._OPTION": ["--a", "git+"],
    "repertory.sources.reading.for_programs._PACKAGE": ["a-b[c] >= 1; d \\"],
    "repertory.sources.reading.markdown._ARGUMENTS": ["a $ARGUMENTS b"],
    "repertory.sources.reading.markdown._BOLD": ["**a b**"],
    "repertory.sources.reading.markdown._CLOSING": ["A heading ##"],
    "repertory.sources.reading.markdown._LABELS": [
        "**A:** b **C**: d",
        "- [a](b) | [c](d)",
        "*Date*: 2026-02-07",
        "a b | c | d",
        "a | b | [c](d) · e",
    ],
    "repertory.sources.reading.markdown._HTML_TITLE": ["<h1 a='b'>c <i>d</i></h1>"],
    "repertory.sources.reading.markdown._TAG": ["<img a='b'>", "</span>"],
    "repertory.sources.reading.markdown._QUOTE": ["> a", "> [!NOTE]"],
    "repertory.cleaning._NOTE": ["0123456789abcdef.json"],
    "repertory.cleaning._OLD_RECORD": ["0123456789abcdef.seen"],
    "repertory.embedding.description._BGE_ENGLISH": ["bge-small-en x"],
    "repertory.system.files.UNFINISHED": [".a.0123456789abcdef.tmp"],
    "repertory.formats.signatures._NAME": ["关键词"],
    "repertory.formats.skill_text._ESCAPED": ["a\u2028b"],
    "repertory.formats.skill_text._PLAIN": ["Rotate keys, (all) of them/it's."],
    "repertory.formats.tools._NAME": ["get_issue-2"],
    "repertory.formats.tools._PARAMETER": ["a.b-c_d"],
    "repertory.formats.uris._URI": ["skill://a/b/SKILL.md", "tool://a/b"],
    "repertory.groups._NAME": ["team-a@b.c"],
    "repertory.indexing.collection_names._ALIAS": [
        "repertory_0123456789abcdef_0123456789abcdef_next"
    ],
    "repertory.indexing.collection_names._CACHE": ["repertory_vectors_m"],
    "repertory.indexing.collection_names._CONFIGURATION": ["repertory_0123456789abcdef_"],
    "repertory.indexing.collection_names._INDEX": ["repertory_0123456789abcdef_m-r1_g1"],
    "repertory.indexing.collection_names._SANDBOX": ["repertory_sandbox_0123456789abcdef_m"],
    "repertory.indexing.maintenance._REBUILD": ["begin:0123456789abcdef:12"],
    "repertory.index.edge_errors._OS_ERROR": [
        "x (os error 28)",
        "x Os { code: 28, kind: Other",
    ],
    "repertory.index.keywords.lexicon._ACRONYM": ["bba", "gpu"],
    "repertory.index.keywords.lexicon._HIRAGANA": ["した"],
    "repertory.index.keywords.inflections._DOUBLED": ["aa", "runn"],
    "repertory.index.keywords.inflections._ENDING": ["ending", "ed"],
    "repertory.index.keywords.inflections._PLURAL": ["dishes", "boxes", "as"],
    "repertory.index.keywords.inflections._VOWEL": ["bba"],
    "repertory.index.keywords.names._OF_HOST": [" mcp__a__b", "mcp__a_"],
    "repertory.index.keywords.query_words._CAMEL_CASE": ["aBcD", "AbcDefGhi"],
    "repertory.index.keywords.query_words._ENDING": ["a please"],
    "repertory.index.keywords.tokens._VERSION": ["a1.2.3b"],
    "repertory.index.keywords.query_words._IDENTIFIER": ["a_b.c-d", "--a-b-c"],
    "repertory.index.keywords.query_words._OPENING": ["how do i need to the a", "please please a"],
    "repertory.index.keywords.query_words._CLITIC": ["a's", "a'", "can't", "can"],
    "repertory.index.keywords.spellings._SPELT": ["colour", "organizes", "greyed"],
    "repertory.index.keywords.names._LAST_LETTER": ["ab -_c "],
    "repertory.index.keywords.tokens.DOTNETS": ["a .NET b"],
    "repertory.index.keywords.tokens.RUN": ["ab-cd.ef gh", "c++ f# .net"],
    "repertory.index.keywords.tokens._SEPARATORS": ["a-._b"],
    "repertory.index.keywords.tokens._UNSPACED": ["a\u4e2d\u6587b"],
    "repertory.index.layout._NAME": ["a.b-c_d"],
    "repertory.system.memory._MAPPING": [
        "1f-2f r-xp 00 fd:01 12   /lib/a\nSize: 1 kB\nAnonymous:   12 kB",
    ],
    "repertory.project_search.ignored._EXCLUDES_FILE": [
        '[core]\n\t excludesfile = "~/a b" \n',
        'excludesfile = ~/"a#\\"b"c # d\n',
    ],
    "repertory.project_search.ignored._QUOTING": ['"~/a\\\\b"'],
    "repertory.project_search.private._KEY": [
        "-----BEGIN RSA PRIVATE KEY BLOCK-----\\n \n" + "A/b+" * 8,
    ],
    "repertory.project_search.snippets._RUN": ["ab cd"],
    "repertory.project_search.snippets._SPACE": ["ab \n"],
    "repertory.project_search.word_index._NO_ASCII_WORD": ["abé"],
    "repertory.project_search.word_index._RUN": ["ab12_c"],
    "repertory.search.confidence._LETTERS": ["m&a", "a/b"],
    "repertory.search.languages._WORD": ["ab cd"],
    "repertory.search.nearness._ACCENTED": ["é"],
    "repertory.search.quotations._ADDRESS": ["a.b/c/d"],
    "repertory.search.quotations._BLOCK_QUOTE": ["\n >> "],
    "repertory.search.quotations._EMPHASIS": ["_a_ b"],
    "repertory.search.quotations._MAIL": ["a@b.c"],
    "repertory.search.quotations._TOKEN": ["ab, `c`", "a-b.c d"],
    "repertory.search.similar_names._HAN": ["a中b"],
    "repertory.search.steps._CLAUSE": ["a, and b", "a and b"],
    "repertory.search.steps._FIRST_WORD": ["ab cd", '-- "ab'],
    "repertory.search.steps._LINK": ["a, and then, b, and next, c"],
    "repertory.search.steps._MARK": ["(1) a step 2. b - c"],
    "repertory.search.steps._OPENING": ["and then, next finally x"],
    "repertory.search.steps._POLITE": ["Please, can you help me to a", "I'd like to let us do"],
    "repertory.search.steps._SENTENCE": ["Do a. Then b; 1. c"],
    "repertory.skill_vectors.sandbox._ABSOLUTE": ["C:/a"],
    "repertory.skill_vectors.sandbox._CONTROL": ["a\x07b"],
    "repertory.sources.archive.entry._SHA256": ["0123456789abcdef" * 4],
    "repertory.sources.fetched.urls._SCHEME": ["git+ssh://"],
    "repertory.sources.fetched.urls._URL": ["a https://b:c@d/e?f 'x"],
    "repertory.sources.git.url._COMMIT": ["0123456789" * 4],
    "repertory.sources.git.url._ON_GITHUB": ["acme-1/skills_a.b"],
    "repertory.sources.git.url._REF": ["refs/heads/a_b.c+d@1"],
    "repertory.sources.git.url._SCP": ["git-a@host.b:team/c.git"],
    "repertory.sources.marketplace.listing._NAME": ["a-b_c.1"],
    "repertory.sources.mcp.config._GEMINI_VARIABLE": ["a$B_c", "${A:-$B}"],
    "repertory.sources.mcp.config._OPENCODE_VARIABLE": ["a{env:B}c"],
    "repertory.sources.mcp.unreadable_answers._ID": ['{"id" : 12', '"id":"a b"'],
    "repertory.sources.mcp.unreadable_answers._LAST_ID": ['"id" : 12 } ', '"id":"a b"}'],
    "repertory.sources.mcp.unreadable_answers._KEY": [' "a\\"b" : 1'],
    "repertory.sources.mcp.unreadable_answers._NAME": [' { "name" : "a b"'],
    "repertory.sources.mcp.unreadable_answers._TOKEN": ['"a\\"b" [{,', '"\\'],
    "repertory.sources.mcp.server._REPERTORY": ["/a repertory.exe'  mcp ", "/repertory[a]@1' mcp"],
    "repertory.sources.mcp.source._KEY_IN_PATH": ["/a1b2c3d4e5f6g7h8i9j0k1l2/x"],
    "repertory.sources.mcp.traffic._END": ["Node.js v20", "  +--", "npm error A complete log a"],
    "repertory.sources.mcp.traffic._ERROR": ["  | a.bError [C_1]: d", "npm error a"],
    "repertory.sources.mcp.variables._ENV_LINE": ["export  A_1 = 'b c' d"],
    "repertory.sources.mcp.variables._REFERENCE": ["a${b:-c}d$e"],
    "repertory.sources.mcp.variables._VARIABLE": ["env:A_1:-b"],
    "repertory.sources.mcp_registry.bundle._REFERENCE": ["a ${user_config.b} c"],
    "repertory.sources.mcp_registry.bundle._SHA256": ["0123456789abcdef" * 4],
    "repertory.sources.mcp_registry.document.SERVER_NAME": ["io.github.a-b/c_d.e"],
    "repertory.sources.mcp_registry.document.VERSION": ["1.2.0-rc.1+b"],
    "repertory.sources.mcp_registry.entry._NAMED": ["io.a/b@1.2.0#npm"],
    "repertory.sources.mcp_registry.entry._URL": [
        "https://a.b/c/v0.1/servers/d%2Fe/versions/1.0#npm",
    ],
    "repertory.sources.mcp_registry.launch.ENVIRONMENT_NAME": ["A_b1"],
    "repertory.sources.mcp_registry.launch._DANGEROUS": ["LD_PRELOAD", "path"],
    "repertory.sources.mcp_registry.launch.NOT_IN_NAMES": ["a--b"],
    "repertory.sources.mcp_registry.launch._PLACE": ["a {b} c"],
    "repertory.sources.mcp_registry.launch._STEERING": ["NODE_OPTIONS", "TMP"],
    "repertory.sources.mcp_registry.packages._ALONE": ["-it", "--network=none a"],
    "repertory.sources.mcp_registry.packages._IMAGE": [
        "ghcr.io:443/a/b-c.d:1.2@sha256:" + "0123456789abcdef" * 4,
        "docker.io/library/a",
    ],
    "repertory.sources.mcp_registry.packages._NPM": ["@a-b/c.d_e"],
    "repertory.sources.mcp_registry.packages._NUGET": ["A.B-c_d"],
    "repertory.sources.mcp_registry.packages._PYPI": ["a-b.c_d"],
    "repertory.sources.mcp_registry.packages._VALUE": ["3.12-a"],
    "repertory.sources.mcp_registry.packages._WITH_VALUE": ["--volumes-from", "-e"],
    "repertory.sources.mcp_registry.registry._VERSIONED": ["https://a/v0.1"],
    "repertory.sources.openapi.bodies.MEDIA_TYPE": ["application/vnd.a+json"],
    "repertory.sources.openapi.bodies._JSON": ["application/vnd.a+json"],
    "repertory.sources.neuroscript._OPEN": ["  DEFINE  PROCEDURE  a.b (c, d"],
    "repertory.sources.openapi.document._SWAGGER": ['{ "swagger" : "2.0"', "a\n  swagger: 2."],
    "repertory.sources.openapi.document._OPENAPI": [
        '{ "info": {},  "openapi" : "3.1',
        "a: 1\n openapi: 3.0",
    ],
    "repertory.sources.openapi.entry._DOCUMENT": ["a.b.json", "v3-api-docs"],
    "repertory.sources.openapi.entry._NOT_IN_NAMES": ["a  - b"],
    "repertory.sources.openapi.entry._NOT_IN_VARIABLES": ["a  - b"],
    "repertory.sources.openapi.entry._VARIABLE": ["a ${b} c"],
    "repertory.sources.openapi.operations._NOT_IN_NAMES": ["a/{b}/c"],
    "repertory.sources.openapi.parameters._TEMPLATE": ["/a/{b}/c"],
    "repertory.sources.openapi.schemas._NOT_IN_NAMES": ["a/{b}/c"],
    "repertory.sources.openapi.security.HEADER_NAME": ["X-Api_Key"],
    "repertory.sources.openapi.servers._UNFIT": ["a b"],
    "repertory.sources.openapi.servers._VARIABLE": ["https://{a}.b/{c}"],
    "repertory.sources.neuroscript._COMMENT": ["  COMMENT: a"],
    "repertory.sources.neuroscript._DEFINE": ["  DEFINE  PROCEDURE  a.b (c, d)"],
    "repertory.sources.neuroscript._END_COMMENT": ["  ENDCOMMENT a"],
    "repertory.sources.neuroscript._FIELD": ["  PURPOSE_A:  b"],
    "repertory.sources.reading.frontmatter._CUT": ["description: a #b"],
    "repertory.sources.reading.frontmatter._CLOSING": ["a: 1\n---  \n", "...  "],
    "repertory.sources.reading.frontmatter._TOML": ["+++\ntitle"],
    "repertory.sources.reading.frontmatter._TOML_CLOSING": ["+++\n"],
    "repertory.sources.reading.frontmatter._PROSE": ["  \n\n \nWords a-b.c: d"],
    "repertory.sources.reading.frontmatter._ENTRY": ["  a-b.c:  d e"],
    "repertory.sources.reading.frontmatter._OPENING": [" \n---  \n"],
    "repertory.sources.reading.headings._ASCIIDOC": ["== A title "],
    "repertory.sources.reading.headings._NO_TITLE": ["    a", "  - b", "?!"],
    "repertory.sources.reading.headings._NUMBERED": ["  12. a"],
    "repertory.sources.reading.headings._UNDERLINE": ["===="],
    "repertory.sources.reading.headings._VERBATIM": ["-----"],
    "repertory.sources.reading.encodings._ASCII": ["abc é d"],
    "repertory.sources.reading.encodings._HANGUL": ["가 a 나"],
    "repertory.sources.reading.encodings._HANJA": ["漢 a 字"],
    "repertory.sources.reading.encodings._IN_A_ROW": ["éééé a é"],
    "repertory.sources.reading.encodings._KANA": ["あ a ア"],
    "repertory.sources.reading.encodings._OFTEN_CYRILLIC": ["и a л"],
    "repertory.sources.reading.encodings._WORD": ["ключ a éé éé"],
    "repertory.sources.reading.jsonc._COMMENT": ['"a\\"b" // c\n /* d */ "e"', '"\\'],
    "repertory.sources.reading.jsonc._NOT_BLANK": ["a\nb"],
    "repertory.sources.reading.jsonc._TRAILING_COMMA": ['"a\\"b", \n ] "c', '"\\'],
    "repertory.sources.reading.markdown._COMMENT": ["  <!--"],
    "repertory.sources.reading.markdown._HEADING": ["  ##  a b", "== a"],
    "repertory.sources.reading.markdown._NOT_PROSE": [
        "// a",
        "ifdef::a",
        "=== ===",
        "[a]: b",
        "import a from 'b'",
        "- - -",
        ":a-b: c",
        "[![a",
    ],
    "repertory.sources.reading.markdown._UNDERLINE": ["====="],
    "repertory.sources.reading.policy._COMMAS": ["a、b"],
    "repertory.sources.reading.structured._BYTE": ["a (byte 12)"],
    "repertory.sources.reading.structured._FLOAT": ["-12.34e-5"],
    "repertory.sources.reading.structured._INTEGER": ["-123"],
    "repertory.sources.reading.toml._LINE": ["a (at line 12, b)"],
    "repertory.sources.reading.toml._LONG_KEY": [
        "a." * 64 + "a",
        "\"b c\" . 'd'. e",
    ],
    "repertory.telemetry.export._TRACEPARENT": [
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    ],
    "repertory.text._CONTROL": ["a\x07b"],
    "repertory.text._ESCAPES": [r"a\n\ud83d\ude00\ud83d", "\\u\\ud8"],
    "repertory.text._FITTING": ["\u0627\u200d"],
    "repertory.text._FLAG": ["\U000e0067\U000e0062\U000e007f"],
    "repertory.text._SIGNS": ["a" + "\u0301\u0323" * 16],
    "repertory.text._RUN": ["a\x07\u200bb"],
    "repertory.typescript.syntax._PLAIN_KEY": ["$a_1"],
    "repertory_admin.columns._PIECES": ["/a/b_1,2:c--=d"],
    "repertory_admin.completion._PLAIN": ["notes__add-note", "a/b.c d:e @f"],
    "repertory_admin.commands.config._REDIS": ["a rediss://u:p@h.x:1/0 b"],
    "repertory_admin.text._DIRECTIONS": ["a\u202eb"],
    "repertory_eval.generate._INSIDE": ["getHTTPCode"],
    "repertory_eval.generate._SENTENCE": ["A b. C"],
    "repertory_eval.generate._SEPARATORS": ["a_-b"],
    "repertory_eval.generate._WORD": ["don't-a.b c"],
    "repertory_query.api.requests _([a-z])": ["_a"],
    "repertory_admin.argument_errors Unexpected argument: [\\d.]+": ["Unexpected argument: 1.5"],
    "repertory_query.backend.caller_view._FOLDERS": ["a file:///home/a b/c.d/e: x", "(/a/b)"],
    "repertory_query.backend.caller_view._LISTED": ["  Path: /a/b/c"],
    "repertory_query.backend.caller_view._WRITTEN": [f"a{SAYS}b c\n"],
    "repertory_query.mcp.catalogue_summary._NAME": ["a.b:c/d"],
    "repertory_query.pages.highlighting._LINK": ["a [b](c) d"],
    "repertory_query.pages.highlighting._WORD": ["ab_c d"],
    "repertory_query.pages.page._UNSEEN": ["a\u202eb"],
    "repertory_embedded.projects._BELOW": ["/projects/0af1/a/b"],
    "repertory_query.sign_in.openid [a-z_]{1,40}": ["access_denied"],
    "repertory_query.sign_in.person._UNSAFE": ["a b"],
    "repertory_watch.filesystems._ESCAPE": ["a\\040b"],
    # Expressions without a name.
    r"repertory.coordination.deltas ([\w/]+)-(\d{1,15})": ["a/b-12"],
    r"repertory.coordination.redis_server (/\d*)?": ["/12"],
    "repertory.embedding.description [^a-z0-9.]+": ["a b"],
    "repertory.formats.tools [^a-zA-Z0-9_-]+": ["a b"],
    "repertory.formats.types `+": ["a``b"],
    "repertory.functions.function [^a-zA-Z0-9_-]": ["Vector.SearchSkills"],
    r"repertory.index.qdrant_connection \d+": ["1.22.3"],
    r"repertory.indexing.collection_names -r(\d+)_g\d+$": ["a-r12_g34"],
    r"repertory.remote.running ^http://(localhost|\[::1\])(?=[:/]|$)": ["http://localhost:80/"],
    r"repertory.indexing.collection_names _g(\d+)$": ["a_g12"],
    "repertory.search.lookup __|/": ["a__b/c"],
    r"repertory.skill_vectors.parts #{1,2}\s": ["## a"],
    r"repertory.skill_vectors.parts \s*DEFINE\s+PROCEDURE\b": ["  DEFINE  PROCEDURE a"],
    r"repertory.sources.entry [^\w.-]": ["a b"],
    "repertory.sources.git.entry [/:]": ["a/b:c"],
    r"repertory.sources.git.url \s": ["a b"],
    r"repertory.sources.mcp.server [/\\]": ["a/b"],
    "repertory.sources.mcp.variables [^/]*//([^/@]*)@": ["http://a:b@c"],
    r"repertory.sources.mcp.variables \W": ["a-b"],
    r"repertory_query.api.requests (?<!\])(\[\d+\])+$": ["a[1][2]"],
    "repertory_query.api.requests Object (missing|contains unknown).* field `(.*)`": [
        "Object missing required field `a`"
    ],
    r"repertory_query.api.requests [.\[\]]+": ["a.b[c]"],
    r"repertory_query.api.requests Expected `(int|float)(?: \| null)?`(?:, got .*|(.*))": [
        "Expected `int | null`, got `str`",
        "Expected `float` <= 1.0",
    ],
    r"repertory_query.api.requests application/\S+\+json": ["application/a+json"],
    r"repertory_query.pages.sign_in /(?![/\\])[!-~]*": ["/a?b"],
}


class Expression:
    """A regular expression of our code and the methods that are called on it."""

    def __init__(self, name: str, pattern: re.Pattern[str], methods: set[str]) -> None:
        self.name, self.pattern, self.methods = name, pattern, methods

    def calls(self) -> Iterator[Callable[[str], object]]:
        """A function for each method that is used; it consumes all matches."""
        for method in sorted(self.methods):
            if method == "sub":
                yield partial(self.pattern.sub, "")
            elif method == "finditer":
                yield lambda text: list(self.pattern.finditer(text))
            else:
                yield getattr(self.pattern, method)


def trees() -> Iterator[tuple[str, ast.Module]]:
    """The name and the syntax tree of each of our modules."""
    for source in SOURCES:
        for file in sorted(source.rglob("*.py")):
            parts = file.relative_to(source).with_suffix("").parts
            yield ".".join(parts).removesuffix(".__init__"), ast.parse(file.read_text("utf-8"))


@cache
def expressions() -> tuple[dict[str, Expression], set[str]]:
    """All expressions that are written in our code, and the modules that build others."""
    found: dict[str, Expression] = {}
    uses: dict[str, set[str]] = {}
    makers = set()
    for module, tree in trees():
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            if not isinstance(call.func, ast.Attribute):
                continue
            owner, method = ast.unparse(call.func.value), call.func.attr
            if method in METHODS and owner != "re":
                place = module if owner.startswith("_") else ""
                uses.setdefault(f"{place}.{owner}", set()).add(method)
            elif owner == "re" and method in METHODS | {"compile"}:
                try:
                    one = expression(module, method, call)
                except NameError:
                    makers.add(module)
                else:
                    found[one.name] = one
    for one in found.values():
        public = f".{one.name.rpartition('.')[2]}"
        one.methods = one.methods or uses.get(one.name) or uses.get(public) or {"match"}
    return found, makers


def expression(module: str, method: str, call: ast.Call) -> Expression:
    """The expression of a call of ``re``, evaluated with the names of its module."""
    names = vars(importlib.import_module(module))
    pattern = eval(ast.unparse(call.args[0]), names)
    given = [word.value for word in call.keywords if word.arg == "flags"]
    given += call.args[{"compile": 1, "sub": 4}.get(method, 2) :]
    flags = eval(ast.unparse(given[0]), names) if given else 0
    compiled = re.compile(pattern, flags)
    own = [name for name, one in names.items() if isinstance(one, re.Pattern) and one == compiled]
    name = f"{module}.{own[0]}" if own else f"{module} {pattern}"
    return Expression(name, compiled, set() if method == "compile" else {method})


def hostile(example: str) -> Iterator[Callable[[int], str]]:
    """Texts of any size: a part of an example is repeated, or a character is inserted often."""
    seen = set()
    for at in range(len(example) + 1):
        parts = [(example[at : at + width], width) for width in (1, 2, 3)]
        parts += [(character, 0) for character in ' \n"\\a0']
        for part, width in parts:
            for end in (example[at + width :], "\0"):

                def text(size: int, at: int = at, part: str = part, end: str = end) -> str:
                    return example[:at] + part * size + end

                if part and text(3) not in seen:
                    seen.add(text(3))
                    yield text


def test_every_expression_has_an_example() -> None:
    """Every new expression must have an example, and each expression matches its example."""
    found, makers = expressions()
    assert set(EXAMPLES) == set(found)
    assert makers == MADE_AT_RUN_TIME
    for name, examples in EXAMPLES.items():
        assert found[name].pattern.search(examples[0]), name


@pytest.mark.parametrize("name", EXAMPLES)
def test_time_grows_with_the_text(name: str) -> None:
    """A text of 10 or 100 times the size takes at most about 10 or 100 times as long."""
    found, _ = expressions()  # not at import time, because each test process imports this module
    slow = [
        (str(call), text(2))
        for example in EXAMPLES[name]
        for text in hostile(example)
        for call in found[name].calls()
        if grows_too_fast(call, text)
    ]
    assert not slow
