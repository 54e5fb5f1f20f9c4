"""Answers everything that a drafter is asked, and nothing right.

Run as `python -m tests.engines.vllm.junk_server ENDPOINT`."""

import sys
from itertools import cycle
from typing import Any

import numpy as np
import zmq

from draftd.wire import DraftTail, Error, Frame, HelloReply, Status, StepBatch, StepReply, TailKind

VOCABULARY = 49152
random = np.random.default_rng(0)


def tail(batch: StepBatch, nodes: int, least: int, limit: int) -> DraftTail:
    """Chains of `nodes` random tokens from `least` up to `limit`, one for each row."""
    rows = len(batch.commit.request) // 4
    return DraftTail(
        request=batch.commit.request,
        epoch=batch.commit.epoch,
        base=batch.commit.start,
        status=bytes(rows),
        reason=bytes(rows),
        kind=bytes([TailKind.CHAIN]) * rows,
        node_end=np.arange(nodes, nodes * rows + 1, nodes).astype("<u4").tobytes(),
        tokens=random.integers(least, limit, nodes * rows).astype("<i4").tobytes(),
        parents=np.tile(np.arange(-1, nodes - 1), rows).astype("<i2").tobytes(),
        survival=random.random(nodes * rows).astype("<f4").tobytes(),
        source=bytes(nodes * rows),
    )


def junk(batch: StepBatch) -> dict[str, list[bytes]]:
    """What may come instead of a good answer to that step: the frames of each kind of junk."""

    def reply(tail: DraftTail, **said: Any) -> bytes:
        return Frame(reply=StepReply(step=batch.step, drafter=1, tail=tail, **said)).SerializeToString()

    def spoiled(**columns: bytes) -> bytes:
        spoilt = tail(batch, 8, 0, VOCABULARY)
        for name, column in columns.items():
            setattr(spoilt, name, column)
        return reply(spoilt)

    wrong = tail(batch, 8, 0, VOCABULARY)
    parents = random.integers(-(2**15), 2**15, len(wrong.parents) // 2).astype("<i2").tobytes()
    return {
        "wrong": [reply(wrong)],
        "twice": [reply(wrong), reply(wrong)],
        "too long": [reply(tail(batch, 300, 0, VOCABULARY))],
        "no tokens of the vocabulary": [reply(tail(batch, 8, VOCABULARY, 2**31))],
        "negative tokens": [reply(tail(batch, 8, -(2**31), 0))],
        "no parents": [spoiled(parents=parents)],
        "columns that disagree": [spoiled(tokens=wrong.tokens[4:])],
        "rows of others": [spoiled(request=wrong.request[::-1])],
        "an error": [Frame(error=Error(step=batch.step, status=Status.INTERNAL)).SerializeToString()],
        "noise": [random.bytes(100)],
        "nothing": [],
    }


def main(endpoint: str) -> None:
    socket = zmq.Context.instance().socket(zmq.ROUTER)
    socket.bind(endpoint)
    kinds = cycle(junk(StepBatch()))
    while True:
        peer, data = socket.recv_multipart()
        frame = Frame.FromString(data)
        if frame.HasField("hello"):
            answers = [Frame(hello_reply=HelloReply(protocol=1, incarnation=1, version="junk")).SerializeToString()]
        else:
            answers = junk(frame.step)[next(kinds)]
        for answer in answers:
            socket.send_multipart([peer, answer])


if __name__ == "__main__":
    main(sys.argv[1])
