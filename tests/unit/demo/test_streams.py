"""How recordings are cut and shared out among the demo's streams."""

from pathlib import Path

import pytest

from draftd.demo.sample import trace_files
from draftd.demo.streams import Workload, share_out
from draftd.replay.traces import read_trace


@pytest.mark.parametrize("path", trace_files(), ids=lambda path: path.name)
def test_a_workload_is_the_start_of_its_recording_in_whole_requests(path: Path) -> None:
    workload = Workload(path, most_tokens=500)
    kept = list(workload.requests())
    recorded = list(read_trace(path))[: len(kept)]
    assert [request.id for request in kept] == [request.id for request in recorded]
    assert all((a.output == b.output).all() for a, b in zip(kept, recorded, strict=True))
    assert sum(len(request.output) for request in kept[:-1]) < 500 <= sum(len(request.output) for request in kept)
    assert workload.emitted() == sum(len(request.output) - 1 for request in kept)


def test_every_workload_goes_to_exactly_one_stream_and_none_has_more_than_its_share() -> None:
    workloads = [Workload(path, most_tokens=2000) for path in trace_files()]
    shares = share_out(workloads, 3)
    assert sorted(workload.name for share in shares for workload in share) == sorted(w.name for w in workloads)
    loads = [sum(workload.emitted() for workload in share) for share in shares]
    assert max(loads) - min(loads) <= max(workload.emitted() for workload in workloads)


def test_there_is_no_stream_without_work() -> None:
    assert len(share_out([Workload(trace_files()[0], 10)], 3)) == 1
