"""What adapters are told: sources, defaults, and what an error says."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from draftd.adapters.settings import AdapterSettings, adapter_settings
from draftd.client import Namespace
from draftd.config import ConfigError, EngineSettings, Settings, load_settings
from draftd.engine import Answer, Engine
from draftd.transport.zmq_server import ZmqServer
from draftd.wire import Frame, Pacing


@pytest.fixture(autouse=True)
def no_draftd_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("DRAFTD_")]:
        monkeypatch.delenv(name)


def config_file(monkeypatch: pytest.MonkeyPatch, directory: Path, text: str) -> None:
    (directory / "adapter.json").write_text(text)
    monkeypatch.setenv("DRAFTD_ADAPTER_CONFIG", str(directory / "adapter.json"))


def test_the_default_endpoint_is_that_of_a_server_without_options() -> None:
    settings = Settings()
    assert (
        adapter_settings().endpoint == f"ipc://{settings.data_directory()}/{settings.listen.zmq.removeprefix('ipc://')}"
    )


def test_arguments_win_over_the_environment_and_that_over_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config_file(monkeypatch, tmp_path, json.dumps({"tenant": "file", "model": "file", "deadline": 0.5}))
    monkeypatch.setenv("DRAFTD_ADAPTER_TENANT", "environment")
    monkeypatch.setenv("DRAFTD_ADAPTER_MODEL", "environment")
    settings = adapter_settings(tenant="argument")
    assert (settings.tenant, settings.model, settings.deadline) == ("argument", "environment", 0.5)


def test_corpora_are_a_list_in_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAFTD_ADAPTER_CORPORA", '["handbook", "code"]')
    assert adapter_settings().corpora == ("handbook", "code")


def test_all_corpora_is_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAFTD_ADAPTER_CORPORA", "all")
    assert adapter_settings().corpora == "all"


@pytest.mark.parametrize(
    ("variable", "value", "named"),
    [
        ("DRAFTD_ADAPTER_TENNANT", "acme", "DRAFTD_ADAPTER_TENANT"),
        ("DRAFTD_ADAPTER_DEADLINE", "soon", "deadline"),
        ("DRAFTD_ADAPTER_DEADLINE", "0", "deadline"),
        ("DRAFTD_ADAPTER_DEADLINE", "nan", "deadline"),
        ("DRAFTD_ADAPTER_SHARE", "everything", "share"),
        ("DRAFTD_ADAPTER_ENDPOINT", "somewhere", "endpoint: .*ipc://PATH"),
        ("DRAFTD_ADAPTER_ENDPOINT", "", "endpoint"),
        ("DRAFTD_ADAPTER_TENANT", "", "tenant: .*empty"),
        ("DRAFTD_ADAPTER_MODEL", "m\n", "model: .*printed"),
        ("DRAFTD_ADAPTER_TOKENIZER", "", "tokenizer: .*empty"),
        ("DRAFTD_ADAPTER_CORPORA", "docs", r"corpora: should be all, or a list of names.*, not .docs.$"),
        ("DRAFTD_ADAPTER_CONFIG", "/nowhere.json", "/nowhere.json"),
    ],
)
def test_a_wrong_variable_is_named(variable: str, value: str, named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigError, match=named):
        adapter_settings()


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("{", "adapter.json: not JSON"),
        ("", "adapter.json: not JSON"),
        ("[]", "adapter.json: should be an object"),
        ("3", "adapter.json: should be an object"),
        ('{"tennant": "acme"}', "nearest is tenant"),
        ('{"endpoint": "somewhere"}', "endpoint"),
    ],
)
def test_a_wrong_file_is_named(text: str, named: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    config_file(monkeypatch, tmp_path, text)
    with pytest.raises(ConfigError, match=named):
        adapter_settings()


def test_a_server_in_the_same_environment_does_not_mind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAFTD_ADAPTER_TENANT", "acme")
    assert load_settings(None).model_dump() == Settings().model_dump()


def test_the_engine_names_the_model_unless_the_settings_do() -> None:
    for model, used in (("", "the engine's"), ("stated", "stated")):
        with AdapterSettings(model=model, tenant="acme", tokenizer="abc").connect(
            "the engine's", verifier="test", vocabulary_size=10
        ) as client:
            assert client.namespace == Namespace(tenant="acme", model=used, tokenizer="abc")


def test_a_model_without_a_name_is_told_how_to_get_one() -> None:
    with pytest.raises(ConfigError, match="no name of its own; give one with model= or DRAFTD_ADAPTER_MODEL"):
        AdapterSettings().connect("", verifier="test", vocabulary_size=10)


@pytest.mark.parametrize("deadline", [0.001, 0.25])
def test_the_client_waits_as_long_as_the_settings_say(deadline: float) -> None:
    with AdapterSettings(deadline=deadline).connect("m", verifier="test", vocabulary_size=10) as client:
        assert client.deadline == deadline


@pytest.mark.parametrize("verifier", ["vllm", "sglang"])
def test_the_drafter_hears_which_engine_it_is(verifier: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", "draftd.engine")
    server = ZmqServer(Engine(EngineSettings()), f"ipc://{tmp_path}/drafter.sock", max_frame_bytes=1 << 20)
    server.start()
    try:
        settings = AdapterSettings(endpoint=server.endpoint)
        with settings.connect("m", verifier=verifier, vocabulary_size=10) as client:
            assert client.check(deadline=30.0).vocabulary_size == 10
    finally:
        server.stop(drain=1.0)
    assert f"verifier {verifier!r} says hello" in caplog.text


@pytest.mark.parametrize(
    ("share", "group", "shared"),
    [("group", "g", "group"), ("group", "", "none"), ("outputs", "g", "outputs"), ("all", "", "all")],
)
def test_without_a_group_nothing_is_shared_with_one(share: str, group: str, shared: str) -> None:
    options = adapter_settings(share=share, corpora=("handbook",), min_survival=0.25).options(adapter="a", group=group)
    assert options == {"adapter": "a", "group": group, "share": shared, "corpora": ("handbook",), "min_survival": 0.25}


def test_adapters_and_groups_that_users_choose_can_be_sent() -> None:
    options = adapter_settings(share="group").options(adapter="\ud800", group=r"\ud800")
    assert (options["adapter"], options["group"], options["share"]) == (r"\ud800", r"\\ud800", "group")


def test_pacing_and_graph_sizes_reach_the_drafter(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, engine: Engine
) -> None:
    monkeypatch.setenv("DRAFTD_ADAPTER_PACING", "schedule")
    monkeypatch.setenv("DRAFTD_ADAPTER_GRAPH_SIZES", "[1, 2, 4]")
    heard: list[Frame] = []

    def handle(frame: bytes, *, shed: bool = False) -> Answer:
        heard.append(Frame.FromString(frame))
        return Engine.handle(engine, frame, shed=shed)

    monkeypatch.setattr(engine, "handle", handle)
    server = ZmqServer(engine, f"ipc://{tmp_path}/drafter.sock", max_frame_bytes=1 << 20)
    server.start()
    try:
        settings = adapter_settings(endpoint=server.endpoint)
        with settings.connect("m", verifier="vllm", vocabulary_size=10) as client:
            client.check(deadline=30.0)
    finally:
        server.stop(drain=1.0)
    assert heard[0].hello.pacing == Pacing.SCHEDULE
    assert np.frombuffer(heard[0].hello.graph_sizes, "<u4").tolist() == [1, 2, 4]


@pytest.mark.parametrize(("name", "value"), [("PACING", "eager"), ("GRAPH_SIZES", "[4, 2]"), ("GRAPH_SIZES", "4")])
def test_pacing_that_can_not_be_meant(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"DRAFTD_ADAPTER_{name}", value)
    with pytest.raises(ConfigError, match=name.lower()):
        adapter_settings()
