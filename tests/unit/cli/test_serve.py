"""`draftd serve` and `draftd health`, as processes."""

import json
import os
import re
import signal
import socket
import subprocess
import urllib.request
from pathlib import Path

import pytest

from draftd.client import Client, Namespace
from draftd.wire import Reason
from tests.unit.cli.processes import COMMAND, SECONDS, draftd, environment, only_line, serving
from tests.unit.ingest.posts import word_tokenizer


def get(url: str) -> dict[str, object]:
    with urllib.request.urlopen(url, timeout=SECONDS) as response:
        fields: dict[str, object] = json.load(response)
    return fields


def test_ready_line_probes_and_sigterm(tmp_path: Path) -> None:
    with serving(tmp_path, "--grpc", "unix:grpc.sock") as served:
        assert re.fullmatch(r"draftd \S+ ready: zmq \S+ grpc \S+ http \S+\n", served.ready_line)
        assert served.endpoints["zmq"] == f"ipc://{tmp_path}/draftd.sock"
        assert served.endpoints["grpc"] == f"unix:{tmp_path}/grpc.sock"
        assert get(served.endpoints["http"] + "/readyz") == {"ready": True, "waiting_for": []}
        for endpoint in served.endpoints.values():
            healthy = draftd("health", "--endpoint", endpoint)
            assert (healthy.returncode, healthy.stderr) == (0, "")
            assert endpoint in healthy.stdout
        assert draftd("health", DRAFTD_LISTEN__HTTP=served.endpoints["http"].removeprefix("http://")).returncode == 0
        status, log = served.stop()
        assert status == 0
        assert "Traceback" not in log
        for endpoint in served.endpoints.values():
            gone = draftd("health", "--endpoint", endpoint, "--timeout", "0.5")
            assert endpoint in only_line(gone)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["collections", "lock"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_with_status_0_on_either_signal(number: signal.Signals, tmp_path: Path) -> None:
    with serving(tmp_path, "--zmq", "tcp://127.0.0.1:0") as served:
        assert served.stop(number)[0] == 0


def test_a_stop_while_corpora_load_is_a_stop_too(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "slow.jsonl")
    command = [*COMMAND, "serve", "--data-dir", str(tmp_path), "--http", "", "--corpus", f"a={tmp_path}/slow.jsonl"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment({})) as process:
        try:
            with (tmp_path / "slow.jsonl").open("w"):  # waits until the loader reads
                process.terminate()
                assert process.wait(SECONDS) == 0
        finally:
            process.kill()


def test_corpora_of_the_command_line_and_of_the_file_are_there_when_it_is_ready(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"token_ids": [1, 2]}\n')
    (tmp_path / "b.jsonl").write_text('{"token_ids": [1]}\n')
    config = tmp_path / "draftd.toml"
    config.write_text(f'[[corpora.load]]\nid = "b"\npath = "{tmp_path}/b.jsonl"\ntenant = "acme"\n')
    with serving(tmp_path / "data", "--corpus", f"a={tmp_path}/a.jsonl", "--config", config) as served:
        url = served.endpoints["http"] + "/list_external_corpora"
        assert get(url)["corpus_token_counts"] == {"a": 2}
        assert get(url + "?tenant=acme")["corpus_token_counts"] == {"b": 1}


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--corpus", "docs"), "--corpus 'docs': should be ID=FILE"),
        (("--corpus", "docs=/absent.jsonl"), "corpus 'docs' from /absent.jsonl: /absent.jsonl: no such file"),
        (("--corpus", "a={bad}"), "line 2, token 1: id -1 is outside the vocabulary"),
        (("--corpus", "a={good}", "--corpus-max-tokens", "2"), "more than 2 tokens"),
        (("--corpus-max-tokens", "10Q"), "corpora.max_tokens: "),
        (("--zmq", "ipc:///nowhere/at/all.sock"), "zmq ipc:///nowhere/at/all.sock: "),
        (("--zmq", "tcp://256.0.0.1:1"), "zmq tcp://256.0.0.1:1: "),
        (("--zmq", "inproc://x"), "listen.zmq: should be ipc://PATH or tcp://HOST:PORT"),
        (("--http", "127.0.0.1"), "listen.http: should be HOST:PORT"),
        (("--http", "host.invalid:80"), "http host.invalid:80: "),
        (("--data-dir", "/dev/null"), "data_dir /dev/null: "),
        (("--config", "/absent.toml"), "config file /absent.toml: no such file"),
        (("--bogus",), "No such option: --bogus"),
    ],
)
def test_what_it_cannot_start_with_is_one_line_and_a_status(
    arguments: tuple[str, ...], complaint: str, tmp_path: Path
) -> None:
    good, bad = tmp_path / "good.jsonl", tmp_path / "bad.jsonl"
    good.write_text('{"token_ids": [1, 2, 3]}\n')
    bad.write_text('{"token_ids": [1]}\n{"token_ids": [1, -1]}\n')
    given = [argument.format(good=good, bad=bad) for argument in arguments]
    log = {"DRAFTD_LOG__LEVEL": "error"}
    defaults = ["--data-dir", str(tmp_path), "--http", "127.0.0.1:0"]
    assert complaint in only_line(draftd("serve", *defaults, *given, **log))


def test_a_configured_tokenizer_turns_text_to_ids_and_is_what_requests_must_state(tmp_path: Path) -> None:
    tokenizers = json.dumps([{"tenant": "acme", "path": str(word_tokenizer(tmp_path))}])
    (tmp_path / "docs.jsonl").write_text('"the cat sat on"\n')
    with (
        serving(tmp_path / "data", DRAFTD_TOKENIZERS=tokenizers) as served,
        Client(served.endpoints["zmq"], Namespace(tenant="acme", tokenizer="f00"), deadline=SECONDS) as client,
    ):
        server = ("--http", served.endpoints["http"])
        added = draftd("corpus", "add", "docs", tmp_path / "docs.jsonl", *server, "--tenant", "acme")
        assert added.stdout == "added 1 document with 4 tokens to corpus 'docs'\n", added.stderr
        refused = draftd("corpus", "add", "docs", tmp_path / "docs.jsonl", *server)
        assert "none is configured for tenant 'default'" in only_line(refused)
        draft = client.open("request", [1, 2], wait=True).draft(budget=4)
        assert draft.reason == Reason.REFUSED
        assert "f00" in client.health().last_error


def test_a_tokenizer_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    tokenizers = json.dumps([{"path": str(tmp_path / "absent.json")}])
    failed = draftd("serve", "--data-dir", tmp_path, "--http", "", DRAFTD_TOKENIZERS=tokenizers)
    assert f"tokenizer {tmp_path}/absent.json: no such file" in only_line(failed)


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        for arguments in (("--http", address), ("--zmq", f"tcp://{address}"), ("--grpc", address)):
            failed = draftd(
                "serve", "--data-dir", tmp_path, "--http", "127.0.0.1:0", *arguments, DRAFTD_LOG__LEVEL="error"
            )
            assert f"{address}: address already in use" in only_line(failed)


def test_two_servers_do_not_share_a_data_directory(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        second = draftd("serve", "--data-dir", tmp_path, "--zmq", "tcp://127.0.0.1:0", "--http", "127.0.0.1:0")
        assert f"used by the server with process id {served.process.pid}" in only_line(second)
        assert draftd("health", "--endpoint", served.endpoints["zmq"]).returncode == 0


def test_options_come_from_the_environment_and_a_wrong_name_is_named(tmp_path: Path) -> None:
    with serving(tmp_path, DRAFTD_LISTEN__ZMQ="ipc://other.sock", DRAFTD_LOG__FORMAT="json") as served:
        assert served.endpoints["zmq"].endswith("/other.sock")
        lines = [json.loads(line) for line in served.stop()[1].splitlines()]
        assert any(line["message"].startswith("serving zmq") for line in lines)
    failed = draftd("serve", "--data-dir", tmp_path, DRAFTD_LISTEN__ZMK="x")
    assert "DRAFTD_LISTEN__ZMK is unknown; the nearest is DRAFTD_LISTEN__ZMQ" in only_line(failed)


def test_a_server_without_http_serves_verifiers(tmp_path: Path) -> None:
    with serving(tmp_path, "--http", "") as served:
        assert set(served.endpoints) == {"zmq"}
        assert draftd("health", "--endpoint", served.endpoints["zmq"]).returncode == 0


def test_health_without_a_server_to_ask_is_one_line() -> None:
    assert "HTTP off" in only_line(draftd("health", DRAFTD_LISTEN__HTTP=""))


@pytest.mark.parametrize("endpoint", ["nonsense", "ftp://x", "http://127.0.0.1:1"])
def test_health_of_what_is_no_server_is_one_line(endpoint: str) -> None:
    only_line(draftd("health", "--endpoint", endpoint, "--timeout", "0.5"))
