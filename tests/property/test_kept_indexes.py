"""A request that goes on from an earlier one's index drafts as in an engine that never saw the earlier one."""

from hypothesis import given
from hypothesis import strategies as st

from draftd import native
from draftd.reference.events import Share
from tests.property.rows import CommitRow, TailRow, packed, step

ids = st.integers(0, 4)
AMPLE = 1 << 30
HANDLE = 7


class Requests:
    """Requests of one engine, one after the other."""

    def __init__(self) -> None:
        self.engine = native.Engine(600.0, AMPLE, AMPLE, 64, indexing_thread=False)
        self.engine.create_namespace()
        self.epoch = 0

    def open(self, prompt: list[int], output: list[int], *, group: str, chain: bool) -> None:
        self.epoch += 1
        status, _ = self.engine.open(
            verifier=1,
            request=HANDLE,
            epoch=self.epoch,
            namespace=0,
            label="r",
            vocabulary_size=0,
            prompt=packed("<i4", prompt),
            output=packed("<i4", output),
            stop_ids=packed("<i4", [4]),
            max_new_tokens=None,
            chain=chain,
            max_nodes=0,
            policy=native.DraftPolicy(),
            share=Share.GROUP if group else Share.NOTHING,
            group=group,
            hide_history=True,
            corpora=None,
            now=0.0,
        )
        assert status == 0
        self.index_all()

    def commit(self, start: int, tokens: list[int], max_nodes: int = 16) -> TailRow:
        row = CommitRow(HANDLE, self.epoch, start, tokens, max_nodes=max_nodes)
        (tail,) = step(self.engine, native.StepColumns, 1, [row], now=0.0)
        self.index_all()
        return tail

    def close(self) -> None:
        self.engine.close(1, packed("<u4", [HANDLE]), packed("<u4", [self.epoch]), 0.0, 0)
        self.index_all()

    def index_all(self) -> None:
        while self.engine.index_slice(AMPLE):
            pass

    @property
    def taken_over(self) -> int:
        count: int = self.engine.statistics()["taken_over_tokens"]
        return count

    @property
    def own_tokens(self) -> int:
        count: int = self.engine.statistics()["index"]["own"]["tokens"]
        return count


@given(
    first=st.lists(ids, min_size=1, max_size=40),
    outputs=st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=6), max_size=8),
    stop=st.booleans(),
    more=st.lists(ids, max_size=30),
    resumed=st.lists(st.integers(0, 3), max_size=5),
    last=st.lists(st.lists(ids, min_size=1, max_size=4), min_size=1, max_size=6),
    closes=st.booleans(),
    group=st.sampled_from(["", "team"]),
    chain=st.booleans(),
)
def test_the_next_turn_drafts_as_a_fresh_request(
    first: list[int],
    outputs: list[list[int]],
    stop: bool,
    more: list[int],
    resumed: list[int],
    last: list[list[int]],
    closes: bool,
    group: str,
    chain: bool,
) -> None:
    said = {"group": group, "chain": chain}
    going_on, fresh = Requests(), Requests()
    going_on.open(first, [], **said)
    text = list(first)
    for output in [*outputs, *([[4]] if stop else [])]:
        going_on.commit(len(text), output, max_nodes=0)  # of a draft the next requests would have learned
        text += output
    if closes:
        going_on.close()
    prompt = text + more
    for requests in (going_on, fresh):
        requests.open(prompt, resumed, **said)
    assert (going_on.taken_over, fresh.taken_over) == (len(text), 0)
    start = len(prompt) + len(resumed)
    for tokens in ([], *last):
        assert going_on.commit(start, tokens) == fresh.commit(start, tokens)
        start += len(tokens)
    assert going_on.own_tokens == fresh.own_tokens


@given(
    text=st.lists(ids, min_size=1, max_size=40),
    at=st.integers(0, 39),
    more=st.lists(ids, max_size=10),
)
def test_a_text_that_differs_in_one_token_takes_nothing_over(text: list[int], at: int, more: list[int]) -> None:
    requests = Requests()
    requests.open(text, [], group="", chain=False)
    requests.close()
    other = list(text)
    other[at % len(text)] += 1
    requests.open(other + more, [], group="", chain=False)
    assert requests.taken_over == 0
