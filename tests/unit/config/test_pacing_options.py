"""Every option of pacing: two values give two behaviours."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from draftd.client import CostTable, Reason
from draftd.client.local import LocalClient
from draftd.client.request import Request
from draftd.config import EngineSettings, PacingSettings
from draftd.engine import Engine

FREE = CostTable((1, 4096), (100.0, 100.0))
TEXT = [*range(100)] * 9


@contextmanager
def drafting(prompt: list[int], max_nodes: int | None = None, **settings: object) -> Iterator[Request]:
    """A request whose drafts cost nothing."""
    engine = Engine(EngineSettings(), pacing=PacingSettings.model_validate({"mode": "survival", **settings}))
    with closing(engine), LocalClient(engine, cost=FREE) as client:
        yield client.open("r", prompt, max_nodes=max_nodes, wait=True)


@pytest.mark.parametrize(("mode", "most"), [("as_asked", 40), ("survival", 40), ("schedule", 3)])
def test_mode(mode: str, most: int) -> None:
    with drafting(TEXT[:810], mode=mode) as request:
        assert len(request.draft(budget=40)) == most


@pytest.mark.parametrize(("steps", "drafted"), [(2, 2), (5, 5)])
def test_schedule(steps: int, drafted: int, tmp_path: Path) -> None:
    file = tmp_path / "schedule.json"
    file.write_text(f'{{"1": {{"candidate_steps": [{steps}]}}}}')
    with drafting(TEXT[:810], mode="schedule", schedule=file) as request:
        assert len(request.draft()) == drafted


def test_a_schedule_that_is_none_is_named() -> None:
    with pytest.raises(ValueError, match="schedule /nowhere: No such file"):
        Engine(EngineSettings(), pacing=PacingSettings(mode="schedule", schedule=Path("/nowhere")))


def reasons(request: Request, steps: int) -> list[Reason]:
    """Of the drafts of a request that always goes on otherwise than any draft."""
    return [request.step([1000 + step, 1, 2, 3]).reason for step in range(steps)]


@pytest.mark.parametrize(("after", "first"), [(2, 2), (4, 4), (0, None)])
def test_rest_after(after: int, first: int | None) -> None:
    with drafting([1, 2, 3, 4] * 20, rest_after=after) as request:
        request.draft()
        resting = [reason == Reason.RESTING for reason in reasons(request, 8)]
    assert (resting.index(True) + 1 if True in resting else None) == first


@pytest.mark.parametrize("steps", [1, 3])
def test_rest_steps(steps: int) -> None:
    with drafting([1, 2, 3, 4] * 20, rest_after=1, rest_steps=steps) as request:
        request.draft()
        found = reasons(request, steps + 1)
    assert found == [Reason.RESTING] * steps + [Reason.NOT_EMPTY]


@pytest.mark.parametrize(("tokens", "drafted"), [(0, 6), (709, 6), (710, 3)])
def test_long_run_tokens(tokens: int, drafted: int) -> None:
    with drafting(TEXT[:100], mode="schedule", long_run_tokens=tokens) as request:
        assert len(request.step(TEXT[100:810])) == drafted, "its output has 710 tokens"


@pytest.mark.parametrize(("factor", "drafted"), [(1.0, 3), (2.5, 7)])
def test_long_run_factor(factor: float, drafted: int) -> None:
    with drafting(TEXT[:100], mode="schedule", long_run_tokens=50, long_run_factor=factor) as request:
        assert len(request.step(TEXT[100:810])) == drafted


@pytest.mark.parametrize("mode", ["survival", "schedule"])
def test_a_long_run_has_no_more_than_the_request_allows_itself(mode: str) -> None:
    with drafting(TEXT[:100], max_nodes=4, mode=mode, long_run_tokens=50) as request:
        assert len(request.step(TEXT[100:810])) == 4
        assert len(request.draft(budget=2)) == 2, "nor than the step asks for"


def test_every_option_has_a_test_here() -> None:
    tested = {name.removeprefix("test_") for name in globals() if name.startswith("test_")}
    assert set(PacingSettings.model_fields) <= tested
