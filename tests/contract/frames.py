"""Frames of one request, made by hand: for what no client would send."""

from collections.abc import Sequence

import numpy as np

from draftd.wire import ALL_VERIFIED, NO_TAIL, DraftSync, Frame, Hello, StepBatch, VerifyCommit


def hello_frame(verifier: int) -> bytes:
    return Frame(hello=Hello(protocol=1, verifier="by hand", incarnation=verifier)).SerializeToString()


def sync_frame(verifier: int, step: int, prompt: Sequence[int], *, request: int = 1, tenant: str = "default") -> bytes:
    """Opens the request in epoch 1."""
    sync = DraftSync(request=request, epoch=1, request_id=str(request), tenant=tenant, model="default")
    sync.prompt = i32(prompt)
    return Frame(step=StepBatch(verifier=verifier, step=step, sync=[sync])).SerializeToString()


def commit_frame(
    verifier: int, step: int, start: int, tokens: Sequence[int], *, max_nodes: int, request: int = 1
) -> bytes:
    """One row in epoch 1 that used no tail."""
    commit = VerifyCommit(
        request=u32([request]),
        epoch=u32([1]),
        start=u32([start]),
        token_end=u32([len(tokens)]),
        tokens=i32(tokens),
        tail_base=u32([NO_TAIL]),
        verified=i32([ALL_VERIFIED]),
        max_nodes=np.array([max_nodes], "<u2").tobytes(),
    )
    return Frame(step=StepBatch(verifier=verifier, step=step, commit=commit)).SerializeToString()


def u32(values: Sequence[int]) -> bytes:
    return np.array(values, "<u4").tobytes()


def i32(values: Sequence[int]) -> bytes:
    return np.array(values, "<i4").tobytes()
