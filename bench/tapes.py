"""What drafts from tapes yield, one step late, beside a chain of the same length that an engine waits for.

    python -m bench.tapes TRACE... [--corpus FILE] [--length 8] [--windows 0,1,2,4,8] [--requests N]

Both are replays in this process, and depend on nothing but the recordings: the draft of a step is made of what the
drafter sent in answer to earlier steps, and of the text so far.
"""

import argparse
import time
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path

from draftd.client.client import ChannelClient
from draftd.client.local import LocalChannel, LocalClient
from draftd.config import EngineSettings
from draftd.engine import Engine
from draftd.native import Segment
from draftd.replay import ReplayOptions, ReplayResult, replay_file
from draftd.replay.client_drafter import ClientDrafter, ClientRequest
from draftd.replay.runner import PlainDraft, TimedDrafts, replay
from draftd.replay.sessions import corpus_segment
from draftd.replay.traces import read_trace, workload_name
from draftd.wire import Frame, Namespace

PATIENT = 60.0  # seconds; nothing here is urgent


class CountingChannel(LocalChannel):
    """Knows how long the drafter's answers to steps are."""

    reply_bytes = 0
    tape_bytes = 0

    def receive(self, timeout: float) -> bytes | None:
        frame = super().receive(timeout)
        if frame is not None and (reply := Frame.FromString(frame).reply).tail.request:
            self.reply_bytes += len(frame)
            self.tape_bytes += reply.tape.ByteSize()
        return frame


class TapeDrafter(ClientDrafter):
    """Steps ahead, so that every draft is one step late; with 0 windows from the tail buffer alone."""

    def __init__(self, client: ChannelClient, windows: int) -> None:
        super().__init__(client, shape="chain")  # type: ignore[arg-type]
        self._windows = windows

    def step(self, commits: Mapping[ClientRequest, Sequence[int]], nodes: int, min_survival: float) -> TimedDrafts:
        started = time.perf_counter_ns()
        drafts = self._client.step_ahead(
            {row.request: tokens for row, tokens in commits.items()},
            max_nodes=nodes,
            min_survival=min_survival,
            tapes=self._windows,
        )
        micros = (time.perf_counter_ns() - started) / 1000
        plain = [
            PlainDraft(draft.tokens.tolist(), draft.parents.tolist(), None, draft.tokens.tobytes())
            for draft in drafts.values()
        ]
        return TimedDrafts(plain, 0.0, micros)


def ahead(
    trace: Path, options: ReplayOptions, segments: Mapping[str, Segment], windows: int
) -> tuple[ReplayResult, int, int]:
    """The result, and bytes of all answers and of the tapes in them, for each request and step."""
    engine = Engine(EngineSettings())
    namespace = Namespace(model=workload_name(trace))
    for name, segment in segments.items():
        engine.publish_corpus(namespace, name, [segment])
    channel = CountingChannel(engine)
    client = ChannelClient(channel, namespace, verifier="bench", deadline=PATIENT, vocabulary_size=0)
    result = ReplayResult(workload_name(trace))
    requests = islice(read_trace(trace), options.requests)
    replay(requests, TapeDrafter(client, windows), options.step_budget(), result)
    engine.close()
    return result, channel.reply_bytes // result.steps, channel.tape_bytes // result.steps


def waiting(trace: Path, options: ReplayOptions, segments: Mapping[str, Segment]) -> ReplayResult:
    """The synchronous chain."""
    engine = Engine(EngineSettings())
    namespace = Namespace(model=workload_name(trace))
    for name, segment in segments.items():
        engine.publish_corpus(namespace, name, [segment])
    result = replay_file(trace, LocalClient(engine, namespace, deadline=PATIENT), options)
    engine.close()
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("traces", nargs="+", type=Path)
    parser.add_argument("--corpus", action="append", default=[], type=Path)
    parser.add_argument("--length", type=int, default=8, help="tokens of a draft")
    parser.add_argument("--windows", default="4", help="of each request and step, separated by commas")
    parser.add_argument("--requests", type=int, help="the first of each file; default: all")
    arguments = parser.parse_args()
    segments = {file.stem: corpus_segment(file) for file in arguments.corpus}
    options = ReplayOptions(budget=arguments.length, requests=arguments.requests, shape="chain")
    for trace in arguments.traces:
        chain = waiting(trace, options, segments).emitted_per_step
        print(f"{workload_name(trace)}, {arguments.length} tokens: a chain that is waited for {chain:.3f}")
        for windows in map(int, arguments.windows.split(",")):
            result, replies, tapes = ahead(trace, options, segments, windows)
            late = result.emitted_per_step
            print(
                f"  {windows} windows, one step late: {late:.3f}, {late / chain:.3f} of it; "
                f"{replies} bytes a request and step, {tapes} of them tapes",
                flush=True,
            )


if __name__ == "__main__":
    main()
