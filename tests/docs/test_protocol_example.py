"""The bytes printed in docs/protocol.md are the bytes that the wire contract gives."""

import re
from pathlib import Path

import numpy as np

from draftd.config import DraftingSettings, EngineSettings
from draftd.engine import Engine
from draftd.wire import (
    ALL_VERIFIED,
    NO_TAIL,
    DraftSync,
    DraftTail,
    Frame,
    Hello,
    Reason,
    Source,
    Status,
    StepBatch,
    StepReply,
    TailKind,
    VerifyCommit,
)

PAGE = Path(__file__).parents[2] / "docs" / "protocol.md"


def printed(name: str) -> bytes:
    """The hexadecimal words of an example. A line's comment follows after two spaces."""
    block = re.search(rf"<!-- example: {name} -->\n```\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert block is not None
    return bytes.fromhex("".join(line.strip().split("  ")[0] for line in block[1].splitlines()))


def column(dtype: str, *values: float) -> bytes:
    return np.array(values, dtype).tobytes()


def test_the_printed_request_is_the_message_it_describes() -> None:
    frame = Frame(
        step=StepBatch(
            verifier=0x1122334455667788,
            step=1,
            sync=[
                DraftSync(
                    request=7,
                    epoch=1,
                    request_id="r",
                    tenant="acme",
                    model="m",
                    prompt=column("<i4", 10, 20, 30, 10, 20),
                    stop_ids=column("<i4", 2),
                )
            ],
            commit=VerifyCommit(
                request=column("<u4", 7),
                epoch=column("<u4", 1),
                start=column("<u4", 5),
                token_end=column("<u4", 1),
                tokens=column("<i4", 30),
                tail_base=column("<u4", NO_TAIL),
                verified=column("<i4", ALL_VERIFIED),
                max_nodes=column("<u2", 3),
            ),
        )
    )
    assert printed("request") == frame.SerializeToString(deterministic=True)


def test_the_printed_reply_is_the_message_it_describes() -> None:
    frame = Frame(
        reply=StepReply(
            drafter=0x99AABBCCDDEEFF00,
            step=1,
            tail=DraftTail(
                request=column("<u4", 7),
                epoch=column("<u4", 1),
                base=column("<u4", 6),
                status=bytes([Status.OK]),
                reason=bytes([Reason.NOT_EMPTY]),
                kind=bytes([TailKind.TREE]),
                node_end=column("<u4", 3),
                tokens=column("<i4", 10, 20, 30),
                parents=column("<i2", -1, 0, 1),
                survival=bytes.fromhex("c84faa3e 99f2163e bf1c9b3d"),
                source=bytes([Source.OWN_TEXT] * 3),
            ),
            core_micros=9,
        )
    )
    assert printed("reply") == frame.SerializeToString(deterministic=True)


def test_a_drafter_gives_the_tail_that_is_printed() -> None:
    request, reply = Frame.FromString(printed("request")), Frame.FromString(printed("reply"))
    engine = Engine(EngineSettings(), DraftingSettings(priors="none"))
    try:
        engine.handle(Frame(hello=Hello(protocol=1, incarnation=request.step.verifier)).SerializeToString())
        answer = Frame.FromString(engine.handle(request.SerializeToString()).reply)
    finally:
        engine.close()
    assert answer.reply.tail == reply.reply.tail


def test_every_code_of_the_catalogue_is_on_the_page() -> None:
    rows = set(re.findall(r"^\| (\d+) \| ([A-Z_]+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    assert rows == {(str(int(code)), code.name) for codes in (Status, Reason) for code in codes}
