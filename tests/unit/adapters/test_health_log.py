"""What an engine's log says while steps get no drafts, and when they do again."""

import logging
from collections.abc import Iterator

import pytest

from draftd.adapters.health_log import SECONDS_BETWEEN, HealthLog
from draftd.client import Client
from draftd.client.local import LocalChannel, LocalClient
from draftd.engine import Engine


@pytest.fixture
def client(tmp_path: object) -> Iterator[Client]:
    with Client(f"ipc://{tmp_path}/nobody.sock", deadline=0.001) as client:
        yield client


def test_steps_without_drafts_are_told_of_at_once_and_then_once_a_minute(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    log = HealthLog(client, logging.getLogger("engine"))
    request = client.open("r", [1, 2, 3], hold=True)
    client.step({request: [4]})
    log.look(0.0)
    for second in range(1, 60):
        client.step({request: [5]})
        log.look(float(second))
    (line,) = caplog.messages
    assert line == (
        "draftd: 1 of 1 steps without drafts (0 late, 1 no connection, 0 refused, 0 not asked), "
        "0 refusals of single requests; last error: no connection to the drafter"
    )
    log.look(SECONDS_BETWEEN)
    assert caplog.messages[1].startswith("draftd: 59 of 59 steps without drafts")
    assert len(caplog.messages) == 2


def test_that_it_is_over_is_told_once(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    log = HealthLog(client, logging.getLogger("engine"))
    log.look(0.0)
    assert caplog.messages == [], "no trouble, nothing to tell"
    request = client.open("r", [1, 2, 3], hold=True)
    client.step({request: [4]})
    for minute in (1, 2, 3):
        log.look(minute * SECONDS_BETWEEN)
    assert caplog.messages[1:] == ["draftd: drafts come again"]


def test_refusals_of_single_requests_alone_are_trouble_and_counted(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    client = LocalClient(engine, vocabulary_size=100)
    log = HealthLog(client, logging.getLogger("engine"))
    requests = [client.open(name, [1, 2, token], hold=True) for name, token in [("a", 200), ("b", 300), ("c", 3)]]
    client.step({request: [] for request in requests})  # refuses to open two of three, and then to draft for them
    log.look(0.0)
    (line,) = caplog.messages
    assert line.startswith(
        "draftd: 0 of 1 steps without drafts (0 late, 0 no connection, 0 refused, 0 not asked), "
        "4 refusals of single requests; last error: "
    )
    assert "outside [0, 100)" in line
    client.step({requests[2]: [1]})
    log.look(SECONDS_BETWEEN)
    assert caplog.messages[1:] == ["draftd: drafts come again"]


def test_a_request_that_its_engine_could_not_open_is_told_of(engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    client = LocalClient(engine)
    log = HealthLog(client, logging.getLogger("engine"))
    client.count_refused("open('r'): max_new_tokens is 9.5")
    assert client.health().last_refusal == "open('r'): max_new_tokens is 9.5"
    log.look(0.0)
    assert caplog.messages[0].endswith("1 refusals of single requests; last error: open('r'): max_new_tokens is 9.5")


def test_a_refusal_is_named_beside_a_failure_that_came_after_it(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    client = LocalClient(engine)
    log = HealthLog(client, logging.getLogger("engine"))
    request = client.open("r", [1, 2, 3], hold=True, group="g" * 300)
    client.step({request: [4]})
    monkeypatch.setattr(LocalChannel, "send", lambda *_: False)
    client.step({request: [5]})
    log.look(0.0)
    client.step({request: [6]})
    log.look(SECONDS_BETWEEN)
    first, second = caplog.messages
    assert "; last refusal: request 'r': INVALID_ARGUMENT: " in first
    assert "is longer than 256 bytes; last error: no connection to the drafter" in first
    assert "last refusal" not in second, "it is of a minute before"
