"""What goes on behind the calls survives its own defects."""

import threading

import pytest

from draftd.corpora.upkeep import Attempts, Upkeep


def test_a_defect_is_logged_and_the_work_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    done = threading.Event()
    calls = []

    def work() -> None:
        calls.append(None)
        if len(calls) == 1:
            raise ZeroDivisionError("a defect")
        done.set()

    upkeep = Upkeep("journals", 0.001, work)
    upkeep.start()
    assert done.wait(60)
    upkeep.stop()
    assert "journals failed" in caplog.text
    assert "ZeroDivisionError: a defect" in caplog.text


def test_it_can_be_woken_and_stopped_at_once() -> None:
    done = threading.Event()
    upkeep = Upkeep("upkeep", 3600.0, done.set)
    upkeep.start()
    upkeep.wake()
    assert done.wait(60)
    upkeep.stop()


def test_stopped_before_its_start_it_never_runs() -> None:
    upkeep = Upkeep("upkeep", 0.0, pytest.fail)
    upkeep.stop()
    upkeep.start()
    upkeep.stop()


def test_one_thing_that_fails_keeps_no_other_from_its_turn(caplog: pytest.LogCaptureFixture) -> None:
    attempts = Attempts()
    done = []

    def defect() -> None:
        done.append("defect")
        raise ZeroDivisionError("a defect")

    for _ in range(2):
        attempts.run("the first", defect)
        attempts.run("the second", lambda: done.append("second"))
    assert done == ["defect", "second", "second"]  # what failed rests a while
    assert "the first: maintenance failed" in caplog.text
