"""Texts, names and queries are split into terms and words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repertory.catalogue.names import compact_name, split_name
from repertory.index.keywords.background import (
    MIN_RARITY,
    SHORT_RARITY,
    is_common,
    is_known,
    rarity,
)
from repertory.index.keywords.query_words import plain
from repertory.index.keywords.tokens import MAX_TERM_LENGTH, terms, wholes, word_count


@pytest.mark.parametrize("name", ["read_file", "read-file", "readFile", "ReadFile", "READ_FILE"])
def test_a_name_has_the_same_terms_in_every_spelling(name: str) -> None:
    """Case and separators do not distinguish names."""
    assert terms(name) == ["read", "file"]
    assert split_name(name) == "read file"
    assert compact_name(name) == "readfile"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("C, C++ and C#", ["c", "c++", "c#"]),
        ("(C++) or C++11, F#-like", ["c++", "c++", "11", "f#"]),
        ("pre-C++11 and modern.c#", ["pre", "c++", "11", "modern", "c#"]),
        ("AFL++ and abc#", ["afl", "abc"]),
        ("x+++y, c## and a#b", ["x", "y", "c", "b"]),
    ],
)
def test_a_letter_with_a_sign_is_the_term_of_a_programming_language(
    text: str, expected: list[str]
) -> None:
    """C and C++ are different terms; a sign after a longer word is dropped."""
    assert [term for term in terms(text) if term not in ("or", "like")] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (".NET", ["dotnet"]),
        ("(.NET), .net core or .NET8.", ["dotnet", "dotnet", "core", "dotnet", "8"]),
        ("C#/.NET and .NET-like", ["c#", "dotnet", "dotnet"]),
        ("ASP.NET, vb.net", ["asp", "dotnet", "vb", "dotnet"]),
        ("Paint.NET", ["paint", "dotnet"]),
        ("net, example.net, *.net, System.Net", ["net", "exampl", "net", "net", "system", "net"]),
        (".netrc, the .net.au and node.js", ["netrc", "net", "au", "node", "js"]),
        ("a" + ".NET" * 10_000, ["net"] * 9_999 + ["dotnet"]),
    ],
)
def test_dotnet_is_a_term_of_its_own(text: str, expected: list[str]) -> None:
    """It differs from the word "net" and from the end of an address such as example.net."""
    assert [term for term in terms(text) if term not in ("or", "like")] == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("listPRs", "list prs"),
        ("getUserIDs", "get user ids"),
        ("PDFsToText", "pdfs to text"),
        ("URLs_2", "urls 2"),
        ("readJSONAsText", "read json as text"),
        ("userIDIsValid", "user id is valid"),
        ("HTTPServer", "http server"),
        ("toASet", "to a set"),
    ],
)
def test_a_plural_acronym_in_a_name_is_one_word(name: str, expected: str) -> None:
    """Its "s" belongs to it, unless the letters may be the word "as" or "is"."""
    assert split_name(name) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("СоздатьЗаметку", "создать заметку"),
        ("поискHTTPСервера", "поиск http сервера"),  # noqa: RUF001 - Russian letters
        ("größeÄndern", "größe ändern"),
        ("cre\u0301erE\u0301le\u0301ment2", "créer élément 2"),
        ("résuméPDF", "résumé pdf"),
        ("ΑνάγνωσηΑρχείου", "ανάγνωση αρχείου"),
        ("Übersicht", "übersicht"),
    ],
)
def test_case_divides_names_in_any_script_that_has_it(name: str, expected: str) -> None:
    """A capital letter begins a word as in ASCII names."""
    assert split_name(name) == expected
    assert terms(name) == terms(expected)


def test_words_are_stemmed() -> None:
    """All forms of a word are one term."""
    assert terms("searching searches searched") == ["search"] * 3


def test_stop_words_are_left_out() -> None:
    """Words that occur in every sentence are not indexed."""
    assert terms("how do I get the file") == ["file"]


def test_scripts_without_spaces_are_split_into_pairs() -> None:
    """Chinese and Japanese are searched by overlapping pairs of characters."""
    assert terms("搜索文件") == ["搜索", "索文", "文件"]
    assert terms("検索tool") == ["検索", "tool"]


def test_accents_are_ignored() -> None:
    """A word typed without its accents is the same term."""
    assert terms("café") == terms("cafe")


@given(st.text(max_size=200))
def test_terms_have_no_spaces_and_a_bounded_length(text: str) -> None:
    """Any text can be split into terms."""
    for term in terms(text):
        assert term
        assert not term.isspace()
        assert len(term) <= MAX_TERM_LENGTH or not term.isascii()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("LaTeX", ["latex"]),
        ("k8s", ["k8s"]),
        ("gpt-4o", ["4o", "gpt4o"]),
        ("k8s_get_pods", ["k8s", "k8sgetpods"]),
        ("deploy-k8s-now", ["k8s", "deployk8snow"]),
        ("UV_PYTHON_INSTALL_DIR", ["uvpythoninstalldir"]),
        ("Next.js", ["nextjs"]),
        ("v2.1", ["v2", "v21", "2.1"]),
        ("3.11", ["3.11"]),
        ("log-3.11.2.txt", ["log3112txt", "3.11.2", "3.11"]),
        ("2026.11.30", ["2026.11.30", "2026.11"]),
        ("1.2.3.4.5", []),
        ("word", []),
        ("aB" * 21, []),  # too long
        ("кВт", ["квт"]),
        ("café-crème", ["cafecreme"]),
        ("搜索-File", []),  # a script without spaces
    ],
)
def test_a_word_of_several_parts_is_also_one_joined_word(text: str, expected: list[str]) -> None:
    """The parts differ in case, are digits, or are joined by separators."""
    assert [word for word, _ in wholes(text)] == expected


@pytest.mark.parametrize(
    ("text", "count"),
    [("create an issue", 3), ("", 1), ("搜索文件", 2), ("搜索 tool", 2), ("文", 1), ("a" * 90, 1)],
)
def test_words_are_counted(text: str, count: int) -> None:
    """Two characters of an unspaced script count as one word; every text has at least one word."""
    assert word_count(text) == count


def test_a_very_long_run_of_letters_is_not_a_term() -> None:
    """It is probably a hash or encoded data."""
    assert terms("a" * 40 + " " + "b" * 41) == ["a" * 40]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("createIssue", "create issue"),
        ("CREATE-ISSUE now", "create issue now"),
        ("LaTeX", "latex"),
        ("data_base", "database"),
        ("deploy-k8s-cluster", "deploy k8s cluster"),
        ("GPT-4o", "gpt-4o"),
        ("v2.1", "v2.1"),
    ],
)
def test_a_query_is_embedded_as_plain_words(text: str, expected: str) -> None:
    """Known words stay whole; versions and words with digits are unchanged."""
    assert plain(text) == expected


def test_common_words_have_low_rarity_and_unknown_ones_the_highest() -> None:
    """Single letters and short numbers have a low rarity although they are unknown words."""
    assert MIN_RARITY <= rarity("file") < rarity("invoic") < rarity("zorblax") == 1.0
    assert rarity("x") == rarity("7") == rarity("77") == SHORT_RARITY
    assert rarity("777") > SHORT_RARITY


def test_short_words_must_be_more_common_to_count_as_parts_of_longer_words() -> None:
    """Otherwise unknown words would be split by chance."""
    assert is_common("create", "creat")
    assert is_common("invoice", "invoic")
    assert not is_common("zorblax", "zorblax")
    short = [word for word in ("hub", "ann", "mer", "ing", "ort") if is_known(word)]
    assert not all(is_common(word, word) for word in short)
