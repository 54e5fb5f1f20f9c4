"""The side of bench/engines.py that runs in the engines' environment: vLLM in this process, with one proposer.

    python -m bench.engine_side JOB.json OUTCOME.json

The files hold a `Job` and an `Outcome`. The environment must have VLLM_ENABLE_V1_MULTIPROCESSING=0: the proposer can
only be timed in this process.
"""

import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import draftd.client.client
from bench.step import MeasuredChannel, echo_micros
from draftd.client.ring_channel import RingChannel
from draftd.client.zmq_channel import ZmqChannel

CONTEXT = 1024  # tokens of prompt and output


@dataclass(frozen=True)
class Job:
    """Prompts for one engine, in order of arrival. It runs `at_once` of them at once."""

    model: str  # directory
    prompts: list[list[int]]
    output_tokens: int  # most, of each request
    at_once: int
    speculative: dict[str, Any] | None  # vLLM's speculative_config
    echo: str | None = None  # endpoint of a bench.echo, for draftd's round trips to be held against


@dataclass
class Step:
    """One step of the engine. `micros` has what was timed in it: "proposer", and for draftd "core" and "echo"."""

    rows: int  # requests with new tokens
    openings: int  # of them, those with their first token
    micros: dict[str, float]


@dataclass
class Outcome:
    """What one engine did. `emitted` has of each request the tokens of every step after that of its first token: of
    those, and of no others, a draft can be verified."""

    outputs: list[list[int]]
    emitted: list[list[int]]
    steps: list[Step] = field(default_factory=list)
    drafted: int = 0  # tokens that went through the target as drafts; the engine's count
    accepted: int = 0  # of them; the engine's count
    unanswered: int = 0  # steps for which draftd's client got no drafts in time
    seconds: float = 0.0


class Watch:
    """Stands before a proposer and times it.

    What comes first after a forward pass finds the caches cold. For a fair ratio, draftd and the echo take turns in
    being first, and only what is first is timed.
    """

    def __init__(
        self,
        propose: Callable[..., Any],
        core: Callable[[], int] | None = None,  # microseconds that the last call took in draftd's core
        echo: Callable[[], float] | None = None,  # microseconds of an echo, which it does
    ) -> None:
        self._propose = propose
        self._core = core
        self._echo = echo
        self._calls = 0
        self._micros: dict[str, float] = {}

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        self._calls += 1
        if self._echo is not None and self._calls % 2 == 0:
            self._micros = {"echo": self._echo()}
            return self._propose(*arguments, **named)
        started = time.perf_counter_ns()
        drafts = self._propose(*arguments, **named)
        self._micros = {"proposer": (time.perf_counter_ns() - started) / 1000}
        if self._core is not None:
            self._micros["core"] = float(self._core())
        return drafts

    def take(self) -> dict[str, float]:
        """What was timed since the last time."""
        taken, self._micros = self._micros, {}
        return taken


def run(job: Job) -> Outcome:
    from vllm import LLM, SamplingParams
    from vllm.sampling_params import RequestOutputKind

    channels = measured_channels()
    engine = LLM(
        job.model,
        dtype="float32",
        enforce_eager=True,
        max_model_len=CONTEXT,
        max_num_seqs=job.at_once,
        speculative_config=job.speculative,
        disable_log_stats=False,
    ).llm_engine
    drafter = watch = None
    if job.speculative:
        drafter = engine.engine_core.engine_core.model_executor.driver_worker.worker.model_runner.drafter
        drafter.propose = watch = watch_of(drafter, job.echo, channels)
    params = SamplingParams(
        temperature=0.0, max_tokens=job.output_tokens, detokenize=False, output_kind=RequestOutputKind.DELTA
    )
    for number, prompt in enumerate(job.prompts):
        engine.add_request(str(number), {"prompt_token_ids": prompt}, params)
    outcome = Outcome([[] for _ in job.prompts], [[] for _ in job.prompts])
    started = time.perf_counter()
    while engine.has_unfinished_requests():
        note_step(outcome, new_tokens(engine.step()), watch.take() if watch else {})
    outcome.seconds = time.perf_counter() - started
    counts = {metric.name.removeprefix("vllm:spec_decode_num_"): metric for metric in engine.get_metrics()}
    if job.speculative:
        outcome.drafted, outcome.accepted = (counts[name].value for name in ("draft_tokens", "accepted_tokens"))
    if job.echo:
        counters = drafter.client.health().counters
        outcome.unanswered = counters.late + counters.unreachable + counters.refused + counters.off
    return outcome


def measured_channels() -> list[MeasuredChannel]:
    """The channels that draftd's clients open from now on."""
    channels: list[MeasuredChannel] = []

    def open_channel(endpoint: str) -> MeasuredChannel:
        channels.append(MeasuredChannel(RingChannel(endpoint)))
        return channels[-1]

    draftd.client.client.RingChannel = open_channel
    return channels


def watch_of(drafter: Any, echo: str | None, channels: list[MeasuredChannel]) -> Watch:
    if echo is None:
        return Watch(drafter.propose)
    (channel,) = channels
    echo_channel = ZmqChannel(echo)
    return Watch(
        drafter.propose,
        core=lambda: drafter.client.last_core_micros,
        echo=lambda: echo_micros(echo_channel, channel.sent, channel.received),
    )


def new_tokens(outputs: Any) -> dict[int, list[int]]:
    """By request; a request whose prompt is not through yet has none."""
    of_requests = {int(output.request_id): list(output.outputs[0].token_ids) for output in outputs}
    return {request: tokens for request, tokens in of_requests.items() if tokens}


def note_step(outcome: Outcome, tokens_of_requests: dict[int, list[int]], micros: dict[str, float]) -> None:
    openings = 0
    for request, tokens in tokens_of_requests.items():
        if outcome.outputs[request]:
            outcome.emitted[request].append(len(tokens))
        else:
            openings += 1
        outcome.outputs[request] += tokens
    outcome.steps.append(Step(len(tokens_of_requests), openings, micros))


if __name__ == "__main__":
    job_file, outcome_file = map(Path, sys.argv[1:])
    outcome_file.write_text(json.dumps(asdict(run(Job(**json.loads(job_file.read_text()))))))
