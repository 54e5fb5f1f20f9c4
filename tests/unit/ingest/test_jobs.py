"""Jobs: states, figures, and calling them off."""

from draftd.ingest import Ack, Cancellation, Loaded, Progress, Stage
from draftd.ingest.jobs import KEPT, Job, Jobs, State
from draftd.ingest.pace import SECONDS
from tests.clock import Clock
from tests.unit.ingest.posts import KEY


def progress(stage: Stage, tokens: int, bytes_read: int, bytes_total: int = 1000) -> Progress:
    return Progress(stage=stage, documents=1, tokens=tokens, bytes_read=bytes_read, bytes_total=bytes_total)


def test_a_job_goes_through_its_states_and_tells_pace_and_time_left() -> None:
    clock = Clock(100.0)
    job = Job(None, clock)
    job.received(600)
    job.received(400)
    assert (job.state, job.bytes_read, job.tokens_per_second, job.eta) == (State.RECEIVING, 1000, 0.0, None)
    job.waits()
    assert job.state is State.WAITING
    clock.now += 60
    job.starts()
    clock.now += 2
    job.progressed(progress(Stage.READING, 500, 250))
    assert (job.state, job.tokens_per_second, job.eta) == (State.READING, 250.0, 6.0)
    job.progressed(progress(Stage.BUILDING, 500, 1000))
    assert (job.state, job.eta) == (State.BUILDING, None)
    job.acknowledged(Ack.DURABLE)
    assert job.state is State.DURABLE
    clock.now += 3
    job.succeeded(Loaded(key=KEY, tokenizers=(None,), documents=7, tokens=1000))
    clock.now += 1000
    assert (job.state, job.key, job.documents, job.tokens_per_second) == (State.DONE, KEY, 7, 200.0)


def test_pace_and_time_left_are_those_of_the_last_seconds() -> None:
    """What the start of a tokenizer took doesn't count for ever."""
    clock = Clock(100.0)
    job = Job(None, clock)
    job.starts()
    clock.now += 60
    job.progressed(progress(Stage.READING, 0, 10))
    for second in range(1, 8):
        clock.now += 1
        job.progressed(progress(Stage.READING, 100 * second, 10 + 50 * second))
    assert (job.tokens_per_second, job.eta) == (100.0, (1000 - 360) / 50)
    clock.now += SECONDS
    job.progressed(progress(Stage.READING, 700, 360))
    assert (job.tokens_per_second, job.eta) == (0.0, None)


def test_nobody_knows_how_long_a_stream_of_unknown_length_takes() -> None:
    job = Job(KEY)
    job.starts()
    job.progressed(progress(Stage.READING, 500, 250, bytes_total=0))
    assert job.eta is None


def test_a_late_word_does_not_bring_an_ended_job_back() -> None:
    job = Job(KEY)
    job.failed("why")
    job.progressed(progress(Stage.READING, 1, 1))
    job.cancelled()
    assert (job.state, job.problem) == (State.FAILED, "why")


def test_the_oldest_ended_jobs_are_forgotten_and_none_that_is_under_way() -> None:
    jobs = Jobs()
    under_way, oldest, last = Job(KEY), Job(KEY), Job(KEY)
    jobs.add(under_way)
    for job in (oldest, *(Job(KEY) for _ in range(KEPT)), last):
        job.cancelled()
        jobs.add(job)
    assert jobs.get(oldest.id) is None
    assert jobs.get(under_way.id) is under_way
    assert jobs.all()[0] is under_way
    assert jobs.all()[-1] is last
    assert len(jobs.all()) == KEPT + 1


def test_who_is_at_work_hears_of_a_cancellation_once_and_only_then() -> None:
    cancellation, heard = Cancellation(), []
    with cancellation.calling(lambda: heard.append("first")):
        pass
    with cancellation.calling(lambda: heard.append("second")):
        assert not cancellation.is_set()
        cancellation.set()
        cancellation.set()
    assert (cancellation.is_set(), heard) == (True, ["second"])
    with cancellation.calling(lambda: heard.append("late")):
        assert heard == ["second", "late"]


def test_levels_include_those_before_them() -> None:
    assert [[level.includes(other) for other in Ack] for level in Ack] == [
        [True, False, False],
        [True, True, False],
        [True, True, True],
    ]
