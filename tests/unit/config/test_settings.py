"""The settings tree: defaults, sources, limits and what an error says."""

import os
from pathlib import Path

import pytest
from pydantic import BaseModel

from draftd.config import ConfigError, Settings, default_config, load_settings


@pytest.fixture(autouse=True)
def no_draftd_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("DRAFTD_")]:
        monkeypatch.delenv(name)


def written(directory: Path, text: str) -> Path:
    file = directory / "draftd.toml"
    file.write_text(text)
    return file


def test_the_default_file_gives_the_default_settings(tmp_path: Path) -> None:
    assert load_settings(written(tmp_path, default_config())).model_dump() == load_settings(None).model_dump()


def test_the_default_file_describes_every_option() -> None:
    lines = default_config().splitlines()
    for section, option in leaves():
        at = [index for index, line in enumerate(lines) if line.removeprefix("# ").startswith(f"{option} =")]
        assert at, f"{section}.{option} is missing"
        assert all(lines[index - 1].startswith("# ") for index in at), f"{option} has no description"


def leaves() -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for section, value in Settings():
        found += [(section, name) for name, _ in value] if isinstance(value, BaseModel) else [("", section)]
    return found


def test_the_command_line_wins_over_the_environment_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(tmp_path, "[engine]\nmax_nodes = 1\nmax_rows = 1\nmax_corpora = 1\n")
    monkeypatch.setenv("DRAFTD_ENGINE__MAX_ROWS", "2")
    monkeypatch.setenv("DRAFTD_ENGINE__MAX_CORPORA", "2")
    engine = load_settings(file, {"engine": {"max_corpora": 3}}).engine
    assert (engine.max_nodes, engine.max_rows, engine.max_corpora) == (1, 2, 3)


@pytest.mark.parametrize(
    ("option", "text", "value"),
    [
        ("engine.max_nodes", "12", 12),
        ("engine.max_nodes", "1024", 1024),
        ("engine.memory_limit", "2GiB", 2 << 30),
        ("corpora.max_tokens", "10M", 10_000_000),
        ("corpora.max_tokens", "500k", 500_000),
        ("corpora.max_tokens", "1.5M", 1_500_000),
        ("corpora.directories", '["/srv/a", "/srv/b"]', (Path("/srv/a"), Path("/srv/b"))),
        ("listen.zmq", "tcp://0.0.0.0:7000", "tcp://0.0.0.0:7000"),
        ("listen.grpc", "unix:/run/x.sock", "unix:/run/x.sock"),
        ("listen.http", "", ""),
        ("log.format", "json", "json"),
    ],
)
def test_a_value_is_read_from_its_variable(
    option: str, text: str, value: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"DRAFTD_{option.upper().replace('.', '__')}", text)
    section, _, name = option.partition(".")
    assert getattr(getattr(load_settings(None), section), name) == value


@pytest.mark.parametrize(
    ("text", "named", "nearest"),
    [
        ("[engine]\nmax_node = 3", "engine.max_node", "engine.max_nodes"),
        ("max_nodes = 3", "max_nodes", "engine.max_nodes"),
        ("[engin]\nmax_nodes = 3", "engin", "engine"),
        ('tokenizers = [{tenantt = "x", path = "/x"}]', "tokenizers.0.tenantt", "tokenizers.tenant"),
        ('[[corpora.load]]\nid = "x"\npth = "/x"', "corpora.load.0.pth", "corpora.load.path"),
    ],
)
def test_an_unknown_key_is_named_with_the_nearest(text: str, named: str, nearest: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=rf"option {named} is unknown; the nearest is {nearest}\b"):
        load_settings(written(tmp_path, text))


@pytest.mark.parametrize(
    ("variable", "nearest"),
    [
        ("DRAFTD_ENGINE__MAX_NODE", "DRAFTD_ENGINE__MAX_NODES"),
        ("DRAFTD_MAX_NODES", "DRAFTD_ENGINE__MAX_NODES"),
        ("DRAFTD_HTTP", "DRAFTD_LISTEN__HTTP"),
        ("DRAFTD_DATADIR", "DRAFTD_DATA_DIR"),
        ("DRAFTD_TOKENIZERS__PATH", "DRAFTD_TOKENIZERS"),
    ],
)
def test_an_unknown_variable_is_named_with_the_nearest(
    variable: str, nearest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "1")
    with pytest.raises(ConfigError, match=rf"environment variable {variable} is unknown; the nearest is {nearest}$"):
        load_settings(None)


def test_variables_of_a_kubernetes_service_called_draftd_are_not_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DRAFTD_SERVICE_HOST", "DRAFTD_SERVICE_PORT_HTTP", "DRAFTD_PORT", "DRAFTD_PORT_8470_TCP_ADDR"):
        monkeypatch.setenv(name, "tcp://10.0.0.1:8470")
    assert load_settings(None).model_dump() == Settings().model_dump()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[engine]\nmax_nodes = 0", r"engine.max_nodes: .*greater than or equal to 1, not 0"),
        ("[drafting]\nmax_breadth = 0", r"drafting.max_breadth: .*greater than or equal to 1, not 0"),
        ("[drafting]\nmin_survival = 2.0", r"drafting.min_survival: .*less than or equal to 1, not 2.0"),
        ('[drafting]\npreset = "bfs"', r"drafting.preset: .*'ngram_bfs'.*, not 'bfs'"),
        ("[engine]\nmax_nodes = 5000", r"engine.max_nodes: .*less than or equal to 1024, not 5000"),
        ("[engine]\nsession_ttl = 0", r"engine.session_ttl: .*greater than 0"),
        ("[engine]\nhistory_limit = '8GiB'", r"history_limit \(8589934592\) is above memory_limit"),
        ("[engine]\nmemory_limit = 12", r"engine.memory_limit: "),
        ("[corpora]\nmax_tokens = 0", r"corpora.max_tokens: "),
        ("[corpora]\nmax_tokens = '10Q'", r"corpora.max_tokens: "),
        ("[corpora]\ndirectories = ['here']", r"directories: here is not an absolute path"),
        ("[listen]\nzmq = ''", r"zmq and grpc are both off"),
        ("[listen]\nzmq = 'udp://x:1'", r"listen.zmq: should be ipc://PATH or tcp://HOST:PORT"),
        ("[listen]\nhttp = 'localhost'", r"listen.http: should be HOST:PORT"),
        ("[listen]\nhttp = 'localhost:70000'", r"listen.http: should be HOST:PORT"),
        ("[listen]\ngrpc = 'unix:'", r"listen.grpc: should be HOST:PORT or unix:PATH"),
        ("[log]\nlevel = 'loud'", r"log.level: "),
        ("tokenizers = [{tenant = '', path = '/x'}]", r"tokenizers.0.tenant: "),
        ("[[corpora.load]]\nid = 'x'\npath = '/x'\ntenant = ''", r"corpora.load.0.tenant: "),
        (
            "[[corpora.load]]\nid = 'x'\npath = '/x'\n[[corpora.load]]\nid = 'x'\npath = '/y'",
            r"corpora.load names 'x' twice",
        ),
        (
            "engine.max_corpora = 1\n[[corpora.load]]\nid = 'x'\npath = '/x'\n[[corpora.load]]\nid = 'y'\npath = '/y'",
            r"more corpora than engine.max_corpora \(1\)",
        ),
        ("engine = [", r"not TOML"),
        ("engine = 5", r"engine: should be a table, not 5"),
        ("[corpora]\nload = 5", r"corpora.load: should be a list, not 5"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_in_one_line(text: str, complaint: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=complaint) as caught:
        load_settings(written(tmp_path, text))
    assert "\n" not in str(caught.value)


def test_an_error_says_that_the_value_came_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAFTD_ENGINE__MAX_NODES", "many")
    with pytest.raises(ConfigError, match=r"engine.max_nodes \(environment variable DRAFTD_ENGINE__MAX_NODES\)"):
        load_settings(None)


def test_an_error_of_the_command_line_does_not_blame_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAFTD_LISTEN__HTTP", "127.0.0.1:0")
    with pytest.raises(ConfigError, match=r"^listen.http: .*'nonsense'$"):
        load_settings(None, {"listen": {"http": "nonsense"}})


def test_a_list_that_is_no_json_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAFTD_TOKENIZERS", "/srv/tokenizer.json")
    with pytest.raises(ConfigError, match=r"DRAFTD_TOKENIZERS.*written as JSON"):
        load_settings(None)


def test_a_config_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent.toml: no such file"):
        load_settings(tmp_path / "absent.toml")


def test_the_tree_is_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Settings().engine.max_nodes = 3


def test_the_data_directory_follows_the_runtime_directory_then_the_user(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert Settings().data_directory() == tmp_path / "draftd"
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    for user, directory in ((0, "/run/draftd"), (1000, "/tmp/draftd-1000")):
        monkeypatch.setattr(os, "getuid", lambda user=user: user)
        assert Settings().data_directory() == Path(directory)
    assert Settings(data_dir=tmp_path / "own").data_directory() == tmp_path / "own"
