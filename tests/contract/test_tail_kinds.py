"""A verifier gets tails of the kinds that it said it takes."""

from collections.abc import Iterator

import pytest

from draftd.config import EngineSettings
from draftd.engine import Engine
from draftd.wire import Frame, Hello, TailKind
from tests.contract.frames import commit_frame, sync_frame

TEXT = [1, 2, 3, 1, 2, 4, 1, 2]  # 1 2 was followed by 3 and by 4: a tree has both


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = Engine(EngineSettings())
    yield engine
    engine.close()


@pytest.mark.parametrize(
    ("accepts", "kind", "roots"),
    [
        ([], TailKind.TREE, 2),
        ([TailKind.TREE, TailKind.CHAIN], TailKind.TREE, 2),
        ([TailKind.CHAIN], TailKind.CHAIN, 1),
    ],
)
def test_who_takes_chains_alone_gets_chains(
    engine: Engine, accepts: list[TailKind], kind: TailKind, roots: int
) -> None:
    engine.handle(Frame(hello=Hello(protocol=1, incarnation=7, accepts=accepts)).SerializeToString())
    engine.handle(sync_frame(7, 1, TEXT))
    answer = engine.handle(commit_frame(7, 2, len(TEXT), [], max_nodes=8))
    tail = Frame.FromString(answer.reply).reply.tail
    assert list(tail.kind) == [kind]
    assert tail.parents.count(b"\xff\xff") == roots
