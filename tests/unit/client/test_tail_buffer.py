"""What is left of a tail that the text has outgrown, against a naive twin, and what an engine that never waits gets."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftd.client import Reason
from draftd.client.columns import u32_column
from draftd.client.draft import Tails
from draftd.client.limits import Limits
from draftd.client.local import LocalClient
from draftd.client.mirror import Mirror
from draftd.client.rows import Wish, verified_rows
from draftd.client.standing import Standing
from draftd.client.tail_buffer import KeptTail, TailBuffer, node_after, subtree
from draftd.client.trees import DraftTree
from draftd.engine import Engine
from draftd.wire import NO_TAIL, DraftSync, DraftTail, Error, Frame, Namespace, Status, StepReply, TailKind

Paths = dict[tuple[int, ...], float]


@st.composite
def trees(draw: st.DrawFn) -> DraftTree:
    """No two siblings are alike; survival falls along every path, ones and zeros included."""
    tokens: list[int] = []
    parents: list[int] = []
    survival: list[float] = []
    for node in range(draw(st.integers(0, 12))):
        parent = draw(st.integers(-1, node - 1))
        taken = {tokens[other] for other in range(node) if parents[other] == parent}
        token = draw(st.integers(0, 3))
        if token in taken:
            token = 10 + node
        tokens.append(token)
        parents.append(parent)
        share = draw(st.sampled_from([0.0, 1e-30, 0.25, 0.5, 1.0]))
        survival.append(share * (survival[parent] if parent >= 0 else 1.0))
    return DraftTree(np.array(tokens, np.int32), np.array(parents, np.int16), np.array(survival, np.float32))


def paths_of(tree: DraftTree) -> Paths:
    """The tree as its paths, each with its survival."""
    paths: list[tuple[int, ...]] = []
    for token, parent in zip(tree.tokens.tolist(), tree.parents.tolist(), strict=True):
        paths.append((*(paths[parent] if parent >= 0 else ()), token))
    return dict(zip(paths, tree.survival.tolist(), strict=True))


def naively_left(paths: Paths, committed: tuple[int, ...]) -> Paths | None:
    if committed and committed not in paths:
        return None
    reached = paths[committed] if committed else 1.0
    return {
        path[len(committed) :]: min(1.0, survival / reached) if reached > 0 else 0.0
        for path, survival in paths.items()
        if len(path) > len(committed) and path[: len(committed)] == committed
    }


@given(trees(), st.data())
def test_what_is_left_is_what_continues_the_committed_tokens(tree: DraftTree, data: st.DataObject) -> None:
    paths = paths_of(tree)
    on_the_tree = st.sampled_from(sorted(paths)) if paths else st.just(())
    committed = data.draw(st.one_of(st.just(()), on_the_tree, st.lists(st.integers(0, 3), max_size=4).map(tuple)))
    left = naively_left(paths, committed)
    node = node_after(tree, committed)
    if left is None:
        assert node is None
        return
    assert node is not None
    below, numbers = subtree(tree, node)
    assert paths_of(below) == pytest.approx(left, rel=1e-5)
    assert (below.parents < np.arange(len(below.parents))).all(), "parents come first"
    assert below.tokens.tolist() == tree.tokens[numbers].tolist()
    assert numbers.tolist() == sorted(numbers.tolist())


PROMPT = [1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2]  # goes on with 3, 4, ...


class Ahead:
    """A request of an engine that does not wait."""

    def __init__(self, engine: Engine, prompt: Sequence[int] = PROMPT) -> None:
        self.client = LocalClient(engine)
        self.request = self.client.open("r", prompt, wait=True, shape="chain")

    def step(self, *tokens: int, nodes: int = 6, verified: int | None = None) -> list[int]:
        draft = self.client.step_ahead({self.request: tokens}, max_nodes=nodes, verified={self.request: verified})
        self.draft = draft[self.request]
        return self.draft.tokens.tolist()


def test_the_draft_of_the_step_before_goes_on_behind_what_was_committed_since(engine: Engine) -> None:
    ahead = Ahead(engine)
    assert ahead.step() == []
    assert ahead.draft.reason is Reason.LATE, "nothing was asked before"
    assert ahead.step(3) == [4, 5, 6, 7, 8], "of 3 to 8"
    assert (ahead.draft.base, ahead.draft.parents.tolist()) == (len(PROMPT) + 1, [-1, 0, 1, 2, 3])
    assert ahead.step(4, 5) == [6, 7, 8, 9], "of 4 to 9"


def test_a_draft_that_the_text_left_is_dropped_and_counted(engine: Engine) -> None:
    ahead = Ahead(engine)
    ahead.step()
    assert ahead.step(99) == []
    assert ahead.draft.reason is Reason.NO_MATCH
    assert ahead.client.health().counters.dropped_tails == 1


def test_a_draft_that_is_used_up_is_empty(engine: Engine) -> None:
    ahead = Ahead(engine)
    ahead.step(nodes=2)
    assert ahead.step(3, 4) == []
    assert ahead.draft.reason is Reason.NO_MATCH


def test_a_commit_names_the_tail_and_the_nodes_of_it_that_were_verified(engine: Engine, frames: list[Frame]) -> None:
    ahead = Ahead(engine)
    ahead.step()
    assert ahead.step(3) == [4, 5, 6, 7, 8]
    ahead.step(4, 5, verified=2)
    commit = frames[-1].step.commit
    assert np.frombuffer(commit.tail_base, "<u4").tolist() == [len(PROMPT)]
    assert list(commit.bitmap) == [0, 1, 1, 0, 0, 0]


@pytest.mark.parametrize("since", [(99,), (3, 99), (3, 4, 5, 6, 7, 8)])
def test_a_commit_names_the_tail_of_which_nothing_was_left(
    engine: Engine, frames: list[Frame], since: tuple[int, ...]
) -> None:
    ahead = Ahead(engine)
    ahead.step()
    assert ahead.step(*since) == []
    ahead.step(98)
    commit = frames[-1].step.commit
    assert np.frombuffer(commit.tail_base, "<u4").tolist() == [len(PROMPT)]
    assert list(commit.bitmap) == [0] * 6


def test_without_a_tail_a_commit_names_none(engine: Engine, frames: list[Frame]) -> None:
    ahead = Ahead(engine)
    ahead.step(nodes=0)
    ahead.step(3, nodes=0)
    ahead.step(4)
    assert np.frombuffer(frames[-1].step.commit.tail_base, "<u4").tolist() == [NO_TAIL]


def test_a_step_that_waits_or_only_commits_may_follow(engine: Engine, frames: list[Frame]) -> None:
    ahead = Ahead(engine)
    ahead.step()
    ahead.step(3)
    draft = ahead.client.step({ahead.request: [4, 5, 6]}, max_nodes=2)[ahead.request]
    assert draft.tokens.tolist() == [7, 8]
    assert list(frames[-1].step.commit.bitmap) == [0, 1, 1, 1, 1, 1]
    ahead.client.commit({ahead.request: [7]})
    assert np.frombuffer(frames[-1].step.commit.tail_base, "<u4").tolist() == [len(PROMPT) + 4]


def test_no_more_nodes_than_this_step_wants(engine: Engine) -> None:
    ahead = Ahead(engine)
    ahead.step(nodes=6)
    assert ahead.step(3, nodes=2) == [4, 5]
    assert verified_rows([ahead.request.mirror], None) == [[False, True, True, False, False, False]]
    assert ahead.step(4, nodes=0) == []
    assert ahead.draft.reason is Reason.NOT_ASKED


def test_a_closed_request_gets_none_and_its_late_tail_is_counted(engine: Engine) -> None:
    ahead = Ahead(engine)
    ahead.step()
    ahead.request.close()
    assert ahead.step(3) == []
    assert ahead.draft.reason is Reason.CLOSED
    ahead.client.check()
    assert ahead.client.health().counters.stale_tails == 1


def test_a_request_that_is_opened_anew_gets_nothing_of_its_life_before(engine: Engine) -> None:
    ahead = Ahead(engine)
    ahead.step()
    ahead.request = ahead.client.open("r", PROMPT, wait=True, shape="chain")
    assert ahead.step(3) == []
    assert ahead.draft.reason is Reason.LATE
    assert ahead.client.health().counters.stale_tails == 1
    assert ahead.step(4) == [5, 6, 7, 8, 9]


def test_after_the_drafter_forgot_everything_drafts_come_back(engine: Engine) -> None:
    ahead = Ahead(engine)
    ahead.step()
    forgotten = Frame(error=Error(status=Status.NEED_HELLO, step=4)).SerializeToString()
    ahead.client._core.receive(forgotten)
    assert ahead.step(3) == []
    assert ahead.draft.reason is Reason.LATE, "what was under way is void"
    assert ahead.step(4) == [5, 6, 7, 8, 9]


def test_a_broken_answer_is_counted_and_the_step_goes_on(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    ahead = Ahead(engine)
    handle = engine.handle

    def harmful(frame: bytes) -> object:
        answer = handle(frame)
        reply = Frame.FromString(answer.reply)
        reply.reply.tail.node_end = b"\xff" * 4
        return type(answer)(reply.SerializeToString())

    monkeypatch.setattr(engine, "handle", harmful)
    ahead.step()
    assert ahead.step(3) == []
    assert ahead.client.health().counters.unknown_frames == 1


# Tails of one base


def test_a_draft_whose_base_may_mean_a_later_one_is_not_spoken_of(engine: Engine, frames: list[Frame]) -> None:
    ahead = Ahead(engine)
    ahead.step(nodes=2)
    assert ahead.step(nodes=4) == [3, 4], "while another draft of this base is on its way"
    ahead.step(3, verified=2)
    assert np.frombuffer(frames[-1].step.commit.tail_base, "<u4").tolist() == [NO_TAIL]
    assert ahead.step(4) == [5, 6, 7, 8, 9]
    ahead.step(5)
    assert np.frombuffer(frames[-1].step.commit.tail_base, "<u4").tolist() == [len(PROMPT) + 1]


def test_a_kept_draft_is_not_spoken_of_after_one_that_was_waited_for(engine: Engine, frames: list[Frame]) -> None:
    ahead = Ahead(engine)
    ahead.step(nodes=4)
    ahead.client.step({ahead.request: []}, max_nodes=2)
    assert ahead.step(3) == [4, 5, 6]
    ahead.step(4)
    assert np.frombuffer(frames[-1].step.commit.tail_base, "<u4").tolist() == [NO_TAIL]


@given(st.lists(st.tuples(st.integers(-2, 2), st.booleans(), st.integers(0, 3)), max_size=12))
def test_a_base_never_means_another_tail_than_the_one_that_is_spoken_of(steps: list[tuple[int, bool, int]]) -> None:
    mirror = Mirror(DraftSync(), bytes(4 * 3))
    latest_at: dict[int, int] = {}
    asked_ahead: list[tuple[int, int]] = []
    for step, (growth, awaited, lag) in enumerate(steps, 1):
        if growth < 0:
            mirror.cut(max(mirror.prompt_length, mirror.length + growth))
        mirror.output.extend([7] * growth)
        mirror.told_of_no_draft()
        if awaited:
            mirror.named_from = step
        else:
            mirror.asks_ahead(step)
            asked_ahead.append((step, mirror.length))
        latest_at[mirror.length] = step
        if not asked_ahead:
            continue
        answered, base = asked_ahead[max(0, len(asked_ahead) - 1 - lag)]
        draft = Tails.empty(Reason.NO_MATCH, [1], [base]).drafts()[0]
        mirror.speaks_of(KeptTail(answered, draft), np.zeros(0, np.int64))
        assert mirror.tail_base == NO_TAIL or latest_at[base] == answered


# Limits of the step


def test_what_is_left_keeps_to_the_budget_of_the_step(engine: Engine) -> None:
    client = LocalClient(engine)
    requests = [client.open(f"r{row}", PROMPT, wait=True, shape="chain") for row in range(4)]
    client.step_ahead(dict.fromkeys(requests, ()), max_nodes=6)
    drafts = client.step_ahead({request: [3] for request in requests}, budget=6, max_nodes=6)
    assert sum(map(len, drafts.values())) == 6
    for request, draft in drafts.items():
        assert draft.tokens.tolist() == [4, 5, 6, 7, 8][: len(draft)]
        assert len(verified_rows([request.mirror], None)[0]) == 6, "said of the tail as it came"  # type: ignore[index, arg-type]
    client.step_ahead({request: [4] for request in requests}, max_nodes=6)
    drafts = client.step_ahead({request: [5] for request in requests}, budget=1, max_nodes=6)
    assert sorted(draft.reason for draft in drafts.values()) == [Reason.NOT_EMPTY, *[Reason.BUDGET_SPENT] * 3]


def test_the_parts_of_a_step_ahead_ask_for_no_more_than_its_budget(engine: Engine, frames: list[Frame]) -> None:
    client = LocalClient(engine)
    requests = [client.open(f"r{row}", PROMPT, wait=True, shape="chain") for row in range(7)]
    client._core._under_way.limits = Limits(rows=2)
    frames.clear()
    client.step_ahead(dict.fromkeys(requests, ()), budget=4, max_nodes=6)
    assert [frame.step.budget for frame in frames] == [2, 1, 1, 0]
    assert [np.frombuffer(frame.step.commit.max_nodes, "<u2").max() for frame in frames] == [6, 6, 6, 0]


def test_nodes_below_the_survival_that_the_step_wants_are_left_out(engine: Engine) -> None:
    ahead = Ahead(engine)
    ahead.step()
    draft = ahead.client.step_ahead({ahead.request: [3]}, max_nodes=6)[ahead.request]
    least = float(draft.survival[1])
    assert draft.survival[1] > draft.survival[2]
    ahead = Ahead(engine)
    ahead.step()
    draft = ahead.client.step_ahead({ahead.request: [3]}, max_nodes=6, min_survival=least)[ahead.request]
    assert draft.tokens.tolist() == [4, 5]
    draft = ahead.client.step_ahead({ahead.request: [4]}, max_nodes=6, min_survival=1.0)[ahead.request]
    assert draft.reason is Reason.BELOW_THRESHOLD
    ahead.client.commit({ahead.request: [5]})
    assert ahead.request.mirror.tail_base == NO_TAIL


# What arrives


class Arrivals:
    """A request of 3 tokens of prompt, and answers that come for it."""

    def __init__(self) -> None:
        self.standing = Standing(Namespace(), 0)
        self.buffer = TailBuffer(self.standing, 0)
        self.mirror = Mirror(DraftSync(request=1, epoch=1), bytes(4 * 3))

    def arrives(
        self, step: int, base: int, tokens: Sequence[int], *, reason: Reason = Reason.NOT_EMPTY, foreign: bool = False
    ) -> None:
        rows = u32_column([1]), u32_column([1])
        tail = DraftTail(
            request=rows[0],
            epoch=rows[1],
            base=u32_column([base]),
            status=bytes([Status.NEED_SYNC if reason is Reason.REFUSED else Status.OK]),
            reason=bytes([reason]),
            kind=bytes([TailKind.CHAIN]),
            node_end=u32_column([len(tokens)]),
            tokens=np.array(tokens, "<i4").tobytes(),
            parents=np.arange(-1, len(tokens) - 1, dtype="<i2").tobytes(),
            survival=np.ones(len(tokens), "<f4").tobytes(),
            source=bytes(len(tokens)),
        )
        self.buffer.arrived(StepReply(step=step, tail=tail), [self.mirror], rows, foreign=foreign)

    @property
    def left(self) -> list[int]:
        return np.frombuffer(self.buffer.left([self.mirror], Wish(8)).tokens, "<i4").tolist()

    @property
    def stale(self) -> int:
        return self.standing.counters.stale_tails


def test_a_tail_of_another_life_of_the_drafter_is_stale() -> None:
    arrivals = Arrivals()
    arrivals.arrives(1, 3, [5, 6], foreign=True)
    assert (arrivals.left, arrivals.stale) == ([], 1)


def test_a_tail_from_beyond_the_text_that_was_cut_is_stale() -> None:
    arrivals = Arrivals()
    arrivals.mirror.output.extend([5, 6])
    arrivals.mirror.cut(4)
    arrivals.arrives(1, 5, [7])
    assert (arrivals.left, arrivals.stale) == ([], 1)
    arrivals.arrives(2, 4, [7])
    assert (arrivals.left, arrivals.stale) == ([7], 1)


def test_a_tail_that_is_older_than_the_kept_one_is_stale() -> None:
    arrivals = Arrivals()
    arrivals.arrives(2, 3, [5, 6])
    arrivals.arrives(1, 3, [8, 9])
    assert (arrivals.left, arrivals.stale) == ([5, 6], 1)


def test_a_row_that_was_refused_has_no_tail_to_be_stale() -> None:
    arrivals = Arrivals()
    arrivals.arrives(1, 3, [5, 6])
    arrivals.arrives(2, 0, [], reason=Reason.REFUSED)
    assert (arrivals.left, arrivals.stale) == ([5, 6], 0)
