"""What arrives for a client's tapes, checked as hostile input, and what is drafted from them."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from draftd.client.columns import u32_column
from draftd.client.draft import MalformedTailError, Tails
from draftd.client.likeliest import likeliest
from draftd.client.mirror import Mirror
from draftd.client.mirrors import Mirrors
from draftd.client.standing import Standing
from draftd.client.tape import CONTEXT, NewWindows, OwnText, Ring, Tape, TokenArray, Window, drafted
from draftd.client.trees import best_path
from draftd.wire import DraftTail, DraftTape, Reason, Source, Status, StepReply, TailKind

MOST_TOKENS = 256  # of one window
CERTAIN = np.float32(1).tobytes()  # instead of a survival: a match states none


class TapeBuffer:
    """The tapes of a client's requests. `vocabulary_size` is what the client states."""

    def __init__(self, standing: Standing, mirrors: Mirrors, vocabulary_size: int) -> None:
        self._standing = standing
        self._mirrors = mirrors
        self._vocabulary_size = vocabulary_size
        self.news = 0  # of what was taken away: up to where we know it
        self._drafter = 0  # the incarnation that counts so

    def arrived(
        self, reply: StepReply, mirrors: Sequence[Mirror], rows: tuple[bytes, bytes], known: int, *, foreign: bool
    ) -> None:
        """Takes the windows that came with the answer to a step of these rows, and what was taken away since `known`,
        which the step said.

        The news comes first, and stands whatever becomes of the rest. The newest draft of a request becomes a window
        of its own, the last: that is preferred where windows match equally far.

        Every drafter counts from 0. A step that said more than is known now spoke of the last one's count, and its
        answer may leave out what this one took away: nothing of it is added, and the next step asks for all."""
        if not reply.HasField("tape") or foreign:
            return
        message = reply.tape
        if reply.drafter != self._drafter:
            self._drafter, self.news = reply.drafter, 0
        try:
            self._take_away(message)
            windows = _windows(message, self._vocabulary_size, rows)
        except MalformedTailError as error:
            self._standing.counters.unknown_frames += 1
            self._standing.last_error = f"the drafter's tapes cannot be read: {error}"
            return
        is_late = message.news < self.news or known > self.news
        if not is_late:
            self.news = message.news
        for mirror, of_row in zip(mirrors, windows, strict=True):
            if is_late or mirror.closed or mirror.tape is None or reply.step < mirror.synced_in:
                self._standing.counters.stale_windows += len(of_row)
            else:
                mirror.tape.ring.add([*of_row, *_draft_as_window(mirror, mirror.tape, reply.step)])

    def drafts(self, mirrors: Sequence[Mirror], most: int, budget: int | None) -> Callable[[], Tails]:
        """A chain for each, when it is called: what its own text and its tapes say comes next, at most `most` tokens,
        `budget` of all.

        The matching itself is of what was looked up here: it reads no mirror."""
        matchings = [_matching_of(mirror, most) for mirror in mirrors]
        tail = DraftTail(
            epoch=u32_column(mirror.epoch for mirror in mirrors),
            base=u32_column(mirror.length for mirror in mirrors),
            status=bytes(mirror.refused for mirror in mirrors),
            kind=bytes([TailKind.CHAIN]) * len(mirrors),
        )
        return lambda: _with_chains(tail, matchings, budget)

    def windows(self, mirrors: Sequence[Mirror]) -> list[NewWindows]:
        """What came for each since the last call."""
        return [_tape_of(mirror).ring.take() for mirror in mirrors]

    def _take_away(self, message: DraftTape) -> None:
        """Windows and drafts of text that a request can't read any more go."""
        readers, epochs = _column(message.reader, "<u4"), _column(message.reader_epoch, "<u4")
        reads, versions = _column(message.reads, "<u4"), _column(message.reads_version, "<u8")
        if not len(readers) == len(epochs) == len(reads) == len(versions):
            raise MalformedTailError("the columns of what is read are not of one length")
        readable: dict[Mirror, set[tuple[int, int]]] = defaultdict(set)
        for handle, epoch, corpus, version in zip(
            readers.tolist(), epochs.tolist(), reads.tolist(), versions.tolist(), strict=True
        ):
            mirror = self._mirrors.find(handle, epoch)
            if mirror is not None:
                readable[mirror].add((corpus, version))
        for mirror, origins in readable.items():
            mirror.kept = None
            if mirror.tape is not None:
                self._standing.counters.dropped_windows += mirror.tape.ring.keep(origins)


@dataclass(frozen=True, slots=True)
class _Matching:
    text: TokenArray
    windows: TokenArray
    most: int
    stops: frozenset[int]
    no_chain: Reason  # why there is none, if there is none

    def chain(self) -> list[int]:
        """Up to a stop id."""
        chain: list[int] = drafted(self.text, self.windows, self.most).tolist() if self.most > 0 else []
        stop = next((place for place, token in enumerate(chain) if token in self.stops), len(chain))
        return chain[: stop + 1]


def _matching_of(mirror: Mirror, most: int) -> _Matching:
    mirror.told_of_no_draft()
    tape = _tape_of(mirror)
    opening = mirror.opening
    stops = frozenset(np.frombuffer(opening.stop_ids, "<i4").tolist())
    against = _decided_against(mirror)
    no_chain = against or (Reason.NO_MATCH if most else Reason.NOT_ASKED)
    if opening.HasField("max_new_tokens"):
        most = min(most, opening.max_new_tokens - len(mirror.output) - 1)
    if against or (stops and not stops.isdisjoint(mirror.output)):
        most = 0
    return _Matching(
        tape.own.tokens, tape.ring.joined, most, stops, no_chain if mirror.refused == Status.OK else Reason.REFUSED
    )


def _with_chains(tail: DraftTail, matchings: list[_Matching], budget: int | None) -> Tails:
    matched = [matching.chain() for matching in matchings]
    kept = likeliest([np.ones(len(chain), np.float32) for chain in matched], budget)  # as likely as each other
    chains = [chain[: np.count_nonzero(nodes)] for chain, nodes in zip(matched, kept, strict=True)]
    nodes = sum(map(len, chains))
    tail.reason = bytes(
        Reason.NOT_EMPTY if chain else Reason.BUDGET_SPENT if whole else matching.no_chain
        for matching, whole, chain in zip(matchings, matched, chains, strict=True)
    )
    tail.node_end = np.cumsum([len(chain) for chain in chains]).astype("<u4").tobytes()
    tail.tokens = np.array([token for chain in chains for token in chain], "<i4").tobytes()
    tail.parents = b"".join(np.arange(-1, len(chain) - 1, dtype="<i2").tobytes() for chain in chains)
    tail.survival = CERTAIN * nodes
    tail.source = bytes([Source.OWN_TEXT]) * nodes
    return Tails(tail)


def _tape_of(mirror: Mirror) -> Tape:
    """Up to the end of its text; begun when it is first drafted from."""
    if mirror.tape is None:
        mirror.tape = Tape(OwnText(np.frombuffer(mirror.prompt, "<i4")), Ring())
    own = mirror.tape.own
    own.append(mirror.since(own.length))
    return mirror.tape


def _column(data: bytes, dtype: str) -> NDArray[np.generic]:
    if len(data) % np.dtype(dtype).itemsize:
        raise MalformedTailError("a column of a tape is no whole number of entries")
    return np.frombuffer(data, dtype)


def _ends(data: bytes, entries: int | None, values: int) -> list[int]:
    ends: list[int] = _column(data, "<u4").tolist()
    if (entries is not None and len(ends) != entries) or sorted(ends) != ends or (ends[-1] if ends else 0) != values:
        raise MalformedTailError("the ends in its tapes disagree")
    return ends


def _windows(message: DraftTape, vocabulary_size: int, rows: tuple[bytes, bytes]) -> list[list[Window]]:
    """By row. Raises MalformedTailError."""
    if (message.request, message.epoch) != rows:
        raise MalformedTailError("the rows of its tapes are not those that were asked for")
    tokens = _column(message.tokens, "<i4").astype(np.int32, copy=False)
    token_ends = _ends(message.token_end, None, len(tokens))
    corpora, versions = _column(message.corpus, "<u4").tolist(), _column(message.version, "<u8").tolist()
    if not len(corpora) == len(versions) == len(token_ends):
        raise MalformedTailError("the columns of its windows are not of one length")
    window_ends = _ends(message.window_end, len(rows[0]) // 4, len(token_ends))
    if len(tokens) and not 0 <= tokens.min() <= tokens.max() < (vocabulary_size or 2**31 - 1):
        raise MalformedTailError("its tapes have a token outside the vocabulary")
    cuts = [0, *token_ends]
    windows = [
        Window(tokens[first:end][:MOST_TOKENS], (corpus, version))
        for first, end, corpus, version in zip(cuts[:-1], cuts[1:], corpora, versions, strict=True)
    ]
    return [windows[first:end] for first, end in zip([0, *window_ends][:-1], window_ends, strict=True)]


def _draft_as_window(mirror: Mirror, tape: Tape, step: int) -> list[Window]:
    """The likeliest path of the draft that came with that step, behind some of the text that it continues."""
    kept = mirror.kept
    if kept is None or kept.step != step or not len(kept.draft):
        return []
    base = kept.draft.base
    context = tape.own.tokens[max(0, base - CONTEXT) : base]
    return [Window(np.concatenate([context, kept.draft.tokens[best_path(kept.draft)]]), None)]


def _decided_against(mirror: Mirror) -> Reason | None:
    """Why the drafter's newest answer wants nothing drafted here now."""
    reason = mirror.kept.draft.reason if mirror.kept else None
    return reason if reason in (Reason.NOT_WORTH_IT, Reason.RESTING, Reason.NOT_ASKED) else None
