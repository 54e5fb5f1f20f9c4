"""Ready when every part is up, and never again once it stops."""

from draftd.observe.readiness import Readiness


def test_it_is_ready_when_the_last_part_is_up() -> None:
    readiness = Readiness(("http", "zmq"))
    readiness.up("http")
    assert readiness.waiting_for() == ["zmq"]
    readiness.up("zmq")
    assert readiness.waiting_for() == []


def test_it_is_never_ready_after_the_stop() -> None:
    readiness = Readiness(("zmq",))
    readiness.stopping()
    readiness.up("zmq")
    assert readiness.waiting_for() == ["shutdown"]
