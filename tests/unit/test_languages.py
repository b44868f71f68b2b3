"""Words of any script are found; queries in another language find shared words."""

# ruff: noqa: RUF001 - these tests are about letters of other scripts

import pytest

from repertory.catalogue.item import Item, Kind
from repertory.catalogue.names import folded
from repertory.index.keywords.background import MIN_RARITY
from repertory.index.keywords.tokens import terms
from repertory.search.confidence import IN_NAME
from repertory.search.query import Query
from tests.support.builders import skill, tool
from tests.support.keyword_search import keyword_engine

SCRIPTS = {
    "文件搜索": "在文件夹中搜索内容",
    "发送邮件": "把邮件发送给收件人",
    "ファイル検索": "フォルダの中を探します",
    "GitHubのissue作成": "リポジトリに課題を登録します",
    "파일 검색": "폴더에서 문서를 찾습니다",
    "ค้นหาไฟล์": "ค้นหาข้อความในแฟ้มเอกสาร",
    "ຄົ້ນຫາໄຟລ໌": "ຊອກຫາເອກະສານ",
    "ស្វែងរកឯកសារ": "រកមើលអត្ថបទ",
    "ဖိုင်ရှာဖွေ": "စာရွက်စာတမ်းရှာ",
    "поиск_файлов": "Ищет текст в папке",
    "отправить_письмо": "Отправляет почту получателю",
    "αναζήτηση_αρχείων": "Ψάχνει κείμενο σε φακέλους",
    "بحث_الملفات": "يبحث عن النص",
    "फ़ाइल_खोज": "फ़ोल्डर में पाठ खोजता है",
    "straßenkarte_öffnen": "Zeigt Wege und Plätze",
    "ışıkları_aç": "Odayı aydınlatır",
}

ENGLISH = {
    "create_issue": "Create a new issue in a GitHub repository",
    "merge_pull_request": "Merge a pull request in a GitHub repository",
    "post_message": "Post a message to a Slack channel",
    "read_file": "Read the contents of a file from disk",
    "resize_picture": "Make a picture smaller",
    "list_events": "Show the meetings of a day",
    "run_query": "Query the rows of a database table",
    "get_forecast": "Weather of the next days for a city",
    "take_screenshot": "Take a screenshot of a page",
    "translate_text": "Translate text between languages",
    "convert_currency": "Convert an amount from one currency to another",
    "play_song": "Play music on Spotify",
}


def found(catalogue: dict[str, str], text: str) -> list[str]:
    """The names that a search by keywords finds at the default threshold, best first."""
    engine = keyword_engine(
        Item(id=f"s/{number}", kind=Kind.SKILL, name=name, source="s", description=description)
        for number, (name, description) in enumerate(catalogue.items())
    )
    return [hit.name for hit in engine.search(Query(text=text, limit=5)).hits]


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_name_and_a_description_are_found_in_any_script(name: str) -> None:
    """A name is also found in upper case and with spaces for underscores."""
    for typed in (name, name.upper(), name.replace("_", " "), SCRIPTS[name]):
        assert found(SCRIPTS, typed)[0] == name


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("搜索", "文件搜索"),
        ("我想发送一封邮件", "发送邮件"),
        ("検索", "ファイル検索"),
        ("ﾌｧｲﾙ", "ファイル検索"),
        ("find ファイル", "ファイル検索"),
        ("githubのissuesを作る", "GitHubのissue作成"),
        ("GitHub issue", "GitHubのissue作成"),
        ("검색", "파일 검색"),
        ("ไฟล์", "ค้นหาไฟล์"),
        ("ໄຟລ໌", "ຄົ້ນຫາໄຟລ໌"),
        ("ឯកសារ", "ស្វែងរកឯកសារ"),
        ("ဖိုင်", "ဖိုင်ရှာဖွေ"),
        ("ФАЙЛОВ", "поиск_файлов"),
        ("файлоф", "поиск_файлов"),
        ("αρχειων", "αναζήτηση_αρχείων"),
        ("المَلَفّات", "بحث_الملفات"),
        ("खोज", "फ़ाइल_खोज"),
        ("strassenkarte", "straßenkarte_öffnen"),
        ("IŞIKLARI", "ışıkları_aç"),
    ],
)
def test_a_part_of_a_name_is_found_in_any_script(typed: str, name: str) -> None:
    """A part is two unspaced characters or a word, in any case and with any accents."""
    assert found(SCRIPTS, typed)[0] == name


@pytest.mark.parametrize("character", ["搜", "索", "件"])
def test_one_character_of_an_unspaced_name_is_found(character: str) -> None:
    """It may be the first, the last or an inner character."""
    assert "文件搜索" in found(SCRIPTS, character)


def test_words_between_unspaced_text_are_separate_terms() -> None:
    """Such words are stemmed, and stop words are left out."""
    assert terms("リポのissues") == [*terms("リポの"), *terms("issue")]
    assert terms("हिन्दी में") == ["हिन्दी", "में"]


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("Wie lege ich ein GitHub Issue an?", "create_issue"),
        ("Comment créer une issue sur GitHub ?", "create_issue"),
        ("¿Cómo creo un issue en GitHub?", "create_issue"),
        ("Как создать issue в GitHub?", "create_issue"),
        ("GitHubのissueを作成する方法", "create_issue"),
        ("如何在GitHub上创建issue", "create_issue"),
        ("GitHub'da nasıl issue açarım?", "create_issue"),
        ("benutze create_issue für den Fehler beim Login", "create_issue"),
        ("используй create_issue чтобы сообщить об ошибке", "create_issue"),
        ("使用 create_issue 报告错误", "create_issue"),
        ("сделать screenshot страницы", "take_screenshot"),
        ("prendre un screenshot de la page", "take_screenshot"),
    ],
)
def test_a_query_in_another_language_finds_names_and_shared_words(typed: str, name: str) -> None:
    """Shared words count although most words of the query are unknown."""
    assert found(ENGLISH, typed)[0] == name


@pytest.mark.parametrize("typed", ["git 브랜치 삭제", "git удалить ветку", "gitブランチ"])
def test_a_single_shared_word_is_only_a_part_of_a_query(typed: str) -> None:
    """Every item of this service has the word in its name, so none of them is sure to be meant."""
    engine = keyword_engine(
        [tool(f"a__git_{verb}", "In Git") for verb in ("push", "log", "status")]
    )
    (asked, alone) = (engine.search(Query(text=text)).hits for text in (typed, "git"))
    assert len(asked) == len(alone) == 3
    assert max(hit.confidence for hit in asked) < IN_NAME[0] <= alone[-1].confidence


@pytest.mark.parametrize(
    "typed", ["лошадь ест траву", "今日はいい天気ですね", "schöne Grüße von Oma"]
)
def test_a_query_in_another_language_that_shares_nothing_finds_nothing(typed: str) -> None:
    """No hit is better than a wrong one."""
    assert found(ENGLISH, typed) == []


@pytest.mark.parametrize(
    "typed", ["расскажи про channel", "WIE WIRD DER CHANNEL", "wie wird der channel"]
)
def test_a_shared_word_counts_only_if_a_name_contains_it(typed: str) -> None:
    """A word of a description may have another meaning in another language."""
    assert found(ENGLISH, "channel") == ["post_message"]
    assert found(ENGLISH, typed) == []


THEIRS = {
    "pdf-merge": "複数のPDFファイルを結合する",
    "pdf-sign": "PDFに電子署名を付ける",
    "pdf-compress": "PDFを圧縮する",
    "github-issues": "Закрыть задачи GitHub",
    "github-actions": "Запустить сборку GitHub",
    "otchety": "Создать еженедельный отчёт для команды",
    "rapport-github": "Ouvrir un rapport",
    "bilan": "Rapport hebdomadaire de ventes de la boutique",
}


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("複数のPDFファイルを結合する", "pdf-merge"),
        ("Создать еженедельный отчёт для команды GitHub", "otchety"),
        ("rapport hebdomadaire de ventes de la boutique github", "bilan"),
    ],
)
def test_in_a_catalogue_of_its_language_every_word_of_a_query_counts(typed: str, name: str) -> None:
    """This holds even if the query shares a word with names of other items."""
    assert found(THEIRS, typed)[0] == name


def test_a_foreign_word_that_is_a_command_changes_nothing() -> None:
    """`du` is a French word and a command; the other words of the query are English."""
    catalogue = {"disk_free": "Free space of each volume", "folder_size": "Show usage of a folder"}
    assert found(catalogue, "du disk usage folder")[0] == "folder_size"


def test_a_foreign_word_in_an_english_sentence_changes_nothing() -> None:
    """The other words are still matched with descriptions."""
    assert found(ENGLISH, "show me the meetings of the day in the Café")[0] == "list_events"


def test_a_word_of_many_descriptions_and_one_name_is_a_shared_word() -> None:
    """The name is found regardless of how many descriptions contain the word."""
    others = {f"read_{at}": "Reads a file of GitHub from GitHub" for at in range(30)}
    typed = "Wie lege ich das auf GitHub an?"
    assert found(others | {"github_search": "Looks it up"}, typed)[0] == "github_search"
    assert found(others, typed) == []


@pytest.mark.parametrize(
    "query", ["résumé issue review", "café message rota", "Zürich file robots"]
)
def test_an_english_word_with_an_accent_is_not_foreign(query: str) -> None:
    """All words of the query count, not only words of names."""
    items = [tool(f"srv__{name}", text) for name, text in ENGLISH.items()]
    engine = keyword_engine(items)
    with_accent = engine.search(Query(text=query, threshold=0.0)).hits
    without = engine.search(Query(text=folded(query), threshold=0.0)).hits
    assert [(hit.name, hit.confidence) for hit in with_accent] == [
        (hit.name, hit.confidence) for hit in without
    ]


def test_pairs_of_hiragana_count_little() -> None:
    """They are mostly particles and endings, which occur in any long text."""
    body = "もしわからないならば、どうすればよいですか。曲がらないので、見ればいいのです。"
    engine = keyword_engine(
        [
            skill("design", "設計の手引き", body=body),
            skill("deploy", "配備をやりなおしたいときに使う"),
        ]
    )
    asked = "子どもの熱が下がらないのでどうすればいいですか"
    assert engine.search(Query(text=asked)).hits == []
    for typed in ("やりなおし", "配備をやりなおしたい"):
        [hit] = engine.search(Query(text=typed)).hits
        assert hit.name == "deploy"


def test_pairs_of_a_word_and_a_particle_count_little() -> None:
    """They count if the character beside the particle is in no other word."""
    terms = keyword_engine([]).keywords.match("猫の写真を保存").terms
    rare = {term.typed for term in terms if term.rarity > MIN_RARITY}
    assert rare == {"猫の", "写真", "保存"}
    [alone] = keyword_engine([]).keywords.match("お茶").terms
    assert alone.rarity > MIN_RARITY
