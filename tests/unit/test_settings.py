"""Where settings come from, their precedence, and invalid values."""

from collections.abc import Callable
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from repertory.api import Options
from repertory.audit import Audit
from repertory.errors import ConfigurationError
from repertory.file_settings import MAX_SOURCES
from repertory.keys import keys_of
from repertory.local.one_shot import Repertory
from repertory.project.root import located
from repertory.settings import Settings, load
from repertory.values import SETTINGS, Values
from repertory_embedded import joining
from tests.support.builders import write

NOT_SETTINGS = {"config", "mcp_config"}  # these name configuration files


@pytest.fixture(autouse=True)
def _no_user_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def test_every_setting_has_a_flag_a_variable_and_a_key() -> None:
    """No two settings share one of these names, and each setting is described."""
    settings = SETTINGS.values()
    assert list(SETTINGS) == list(Values.__struct_fields__)
    assert all(setting.doc and setting.flag.startswith("--") for setting in settings)
    assert all(setting.variable.startswith("REPERTORY_") for setting in settings)
    for place in ("key", "flag", "variable"):
        assert len({getattr(setting, place) for setting in settings}) == len(SETTINGS)


def test_defaults_are_within_the_declared_ranges() -> None:
    """Every default is also accepted as a given value."""
    for field, setting in SETTINGS.items():
        assert setting.read(getattr(Values(), field)) == getattr(Values(), field)


def test_the_options_of_the_python_api_are_settings_of_the_same_type() -> None:
    """``repertory.open`` accepts only existing settings; a path may also be a ``Path``."""
    options = get_type_hints(Options)
    of_settings = {name: options[name] for name in options if name not in NOT_SETTINGS}
    assert of_settings
    for name, annotation in of_settings.items():
        kinds = {kind for kind in get_args(annotation) if kind is not Path}
        given = str if kinds == {str} else annotation
        assert SETTINGS[name].type in {given, given | None}


def test_defaults_equal_the_documented_ones(tmp_path: Path) -> None:
    """Limit 3, threshold 0.35, alpha 0.7, device auto."""
    values = load({}, tmp_path, {}).values
    assert (values.limit, values.threshold, values.alpha) == (3, 0.35, 0.7)
    assert (values.device, values.model, values.no_cache) == ("auto", None, False)


def test_a_flag_beats_the_environment_which_beats_the_file(tmp_path: Path) -> None:
    """Each setting also records where its value came from."""
    (tmp_path / "repertory.toml").write_text("[search]\nlimit = 4\nalpha = 0.1\nthreshold = 0.2\n")
    environment = {"REPERTORY_SEARCH_LIMIT": "5", "REPERTORY_SEARCH_ALPHA": "0.5"}
    settings = load({"limit": 6}, tmp_path, environment)
    assert settings.values.limit == 6
    assert settings.values.alpha == 0.5
    assert settings.values.threshold == 0.2
    assert settings.origins == {
        "limit": "--limit",
        "alpha": "REPERTORY_SEARCH_ALPHA",
        "threshold": str(tmp_path / "repertory.toml"),
    }


def test_a_path_in_a_file_is_relative_to_the_file(tmp_path: Path) -> None:
    """A server that is started in another directory resolves every path setting alike."""
    paths = ("data_dir", "sandbox", "keys", "audit_folder", "oidc_client_secret_file")
    keys = [SETTINGS[field].key for field in paths]
    (tmp_path / "mine.toml").write_text("".join(f'{key} = "x/y"\n' for key in keys))
    values = load({"config": tmp_path / "mine.toml"}, tmp_path / "elsewhere", {}).values
    assert {getattr(values, field) for field in paths} == {str(tmp_path / "x" / "y")}
    (tmp_path / "mine.toml").write_text('server.keys = ""\n')
    assert load({"config": tmp_path / "mine.toml"}, tmp_path, {}).values.keys == ""


def test_a_model_s_folder_in_a_file_is_relative_to_the_file(tmp_path: Path) -> None:
    """The name of a known model or of a repository on the hub is left unchanged."""
    (tmp_path / "models" / "mine").mkdir(parents=True)
    (tmp_path / "multilingual").mkdir()

    def model(written: str) -> str | None:
        (tmp_path / "mine.toml").write_text(f'[search]\nmodel = "{written}"\n')
        return load({"config": tmp_path / "mine.toml"}, tmp_path / "elsewhere", {}).values.model

    for folder in ("models/mine", "./models/mine", "./missing"):
        assert model(folder) == str(tmp_path / folder)
    for name in ("multilingual", "someone/repository", "a" * 300, ""):
        assert model(name) == name


def test_the_user_s_own_file_counts_once_if_it_is_named(tmp_path: Path) -> None:
    """Its fetched sources and its policies are not duplicated."""
    file = tmp_path / "config" / "repertory" / "config.toml"
    write(file, '[[sources]]\ntype = "git"\n[[policy]]\nitem = "a"\nboost = 0.1\n')
    for flags in ({}, {"config": file}):
        found = load(flags, tmp_path, {})
        assert (len(found.added), len(found.rules)) == (1, 1)


def test_the_old_variables_keep_working_and_the_new_ones_win(tmp_path: Path) -> None:
    """TOOLSCRIPT_* is an alias of REPERTORY_*."""
    old = {"TOOLSCRIPT_SEARCH_LIMIT": "8", "TOOLSCRIPT_SEARCH_NO_CACHE": "true"}
    assert load({}, tmp_path, old).values.limit == 8
    assert load({}, tmp_path, old).values.no_cache is True
    assert load({}, tmp_path, old | {"REPERTORY_SEARCH_LIMIT": "9"}).values.limit == 9


@pytest.mark.parametrize(
    ("flags", "environment", "text", "names"),
    [
        ({"limit": 0}, {}, "", "--limit"),
        ({"threshold": 1.5}, {}, "", "--threshold is 1.5; it must be a number from 0 to 1"),
        ({"threshold": float("nan")}, {}, "", "--threshold is nan"),
        ({"port": 65_536}, {}, "", "--port is 65536; it must be a whole number from 0 to 65535"),
        ({}, {"REPERTORY_SEARCH_ALPHA": "much"}, "", "REPERTORY_SEARCH_ALPHA"),
        ({}, {"REPERTORY_SEARCH_DEVICE": "tpu"}, "", "auto, cpu or gpu"),
        ({}, {}, "[search]\nlimt = 3\n", "search.limt"),
        ({}, {}, "[watch]\nquiet = 1.0\n", "'watch.quiet' is called 'watch.debounce'"),
        ({}, {"REPERTORY_WATCH_QUIET": "1"}, "", "is called REPERTORY_WATCH_DEBOUNCE"),
        ({}, {"TOOLSCRIPT_WATCH_QUIET": "1"}, "", "is called TOOLSCRIPT_WATCH_DEBOUNCE"),
        ({}, {}, "[search\n", "repertory.toml"),
        ({}, {}, "search = 3\n", "search"),
        ({"config": "missing.toml"}, {}, "", "missing.toml"),
        ({"mcp_timeout": -1.0}, {}, "", "--mcp-timeout"),
        ({}, {}, "sources = 3\n", "sources"),
        ({"namespace": ""}, {}, "", "--namespace is ''; it must be 1 to 32 lowercase letters"),
        ({"namespace": "A"}, {}, "", "--namespace"),
        ({"namespace": "a_b"}, {}, "", "--namespace"),
        ({"namespace": "a:b"}, {}, "", "--namespace"),
        ({"namespace": "2a"}, {}, "", "--namespace"),
        ({"proxy_user_header": "X-User\n"}, {}, "", "--proxy-user-header"),
        ({"namespace": "a" * 33}, {}, "", "--namespace"),
        ({}, {"REPERTORY_NAMESPACE": "a\n"}, "", "REPERTORY_NAMESPACE"),
        ({}, {}, 'namespace = "theirs"\n', "cannot set 'namespace'"),
    ],
)
def test_the_error_for_a_wrong_value_names_its_origin(
    tmp_path: Path,
    flags: dict[str, object],
    environment: dict[str, str],
    text: str,
    names: str,
) -> None:
    """The message names the flag, the variable, or the key and the file."""
    if text:
        (tmp_path / "repertory.toml").write_text(text)
    with pytest.raises(ConfigurationError, match=names.replace(".", r"\.")):
        load(flags, tmp_path, environment)


def test_a_data_directory_whose_name_is_not_unicode_is_refused(tmp_path: Path) -> None:
    """Neither the store nor the models could use it."""
    given = {"REPERTORY_DATA_DIR": str(tmp_path / "caf\udce9")}
    with pytest.raises(ConfigurationError, match=r"caf\\udce9' has characters that"):
        load({}, tmp_path, given)


def test_a_file_has_a_limited_number_of_sources(tmp_path: Path) -> None:
    """The limit bounds pairwise comparisons; the error names the file and the limit."""
    entry = '[[sources]]\ntype = "documents"\npath = "d"\n[[sources]]\ntype = "git"\n'
    file = tmp_path / "repertory.toml"
    file.write_text(entry * (MAX_SOURCES // 2))
    found = load({"data_dir": str(tmp_path / "data")}, tmp_path, {})
    assert len(found.sources) + len(found.added) == MAX_SOURCES
    file.write_text(entry * (MAX_SOURCES // 2 + 1))
    with pytest.raises(ConfigurationError, match=r"toml: there are 502 sources; 500 is the limit"):
        load({"data_dir": str(tmp_path / "data")}, tmp_path, {})


@pytest.mark.parametrize(
    ("field", "use"),
    [
        ("data_dir", lambda settings: settings.data_dir),
        ("keys", lambda settings: keys_of(settings, settings.base)),
        ("audit_folder", lambda settings: Audit(settings, settings.base)),
        ("sandbox", lambda settings: located(settings.flags, settings.base)),
        ("sandbox", lambda settings: Repertory(settings, settings.base).skill_vectors),
        ("keys", joining._plain),
    ],
)
def test_a_path_in_the_home_of_an_unknown_user_is_refused(
    field: str, use: Callable[[Settings], object], tmp_path: Path
) -> None:
    """The message says that the home is unknown."""
    flags = {"data_dir": str(tmp_path / "data"), field: "~unknown-user/x"}
    with pytest.raises(ConfigurationError, match="names a home that is unknown"):
        use(load(flags, tmp_path, {}))


def test_values_that_may_hold_a_password_are_secret() -> None:
    """No command shows them."""
    assert {field for field, one in SETTINGS.items() if one.secret} == {
        *("insights_webhook", "oidc_client_secret", "qdrant_api_key"),
        *("redis_url", "server_api_key"),
    }


def test_the_command_that_indexes_names_the_files_of_the_flags(tmp_path: Path) -> None:
    """Files that the environment names apply to each command, so they are left out."""
    file = tmp_path / "my own.toml"
    file.write_text("", "utf-8")
    flags = {"config": file.name, "mcp_config": ["a.json", "b.json"]}
    command = load(flags, tmp_path, {}).to_index
    names = f"--mcp-config {tmp_path}/a.json --mcp-config {tmp_path}/b.json"
    assert command == f"repertory index --config '{file}' {names}"
    environment = {"REPERTORY_CONFIG": str(file), "REPERTORY_MCP_CONFIG": "a.json"}
    assert load({}, tmp_path, environment).to_index == "repertory index"
