"""The engine, slow and readable: the twin of native.Engine, with the same calls, columns and answers.

It carries out what `session` decides and what `draft` proposes. Two things it does not model: bytes, so that no limit
makes it forget anything, and threads, so that `index_slice` alone indexes what waits.
"""

from collections.abc import Iterable
from typing import Any

from draftd.reference import tapes
from draftd.reference.best_count import StepCost
from draftd.reference.columns import StepColumns, TailRow, Tails, unpacked
from draftd.reference.drafting import Drafting
from draftd.reference.events import (
    ANY_VOCABULARY,
    Close,
    Commit,
    CountIgnoredClose,
    CountOutcome,
    CountStaleTail,
    CountStep,
    CutIndex,
    Effect,
    GrowIndex,
    Open,
    Options,
    Share,
    ShareText,
    Status,
    Teach,
)
from draftd.reference.flight import Key
from draftd.reference.history import History
from draftd.reference.index import Index
from draftd.reference.indexing import Entry
from draftd.reference.model import Model
from draftd.reference.policy import Policy
from draftd.reference.rest import PaceRules
from draftd.reference.segment import Segment, SegmentSet
from draftd.reference.session import State, Transition, apply
from draftd.reference.texts import Namespace, ShareJob

__all__ = ["Engine", "Index", "Model", "Policy", "Segment", "StepColumns", "StepCost"]

BYTES_PER_TOKEN = 64
"""What a token may cost: an opening that could not fit in the memory limit is refused."""

MOST_CORPORA = 14


class Engine(Drafting):
    """draftd/native/_core.pyi says what each call means."""

    def __init__(
        self,
        session_ttl: float,
        memory_limit: int,
        history_limit: int,
        max_nodes: int,
        indexing_thread: bool,
        in_flight: bool = True,
        learning: bool = True,
        priors: Model | None = None,
        **pace: Any,
    ) -> None:
        if indexing_thread:
            raise ValueError("the reference engine has no indexing thread: drive index_slice")
        del history_limit  # bytes are not modelled
        super().__init__(in_flight, max_nodes, priors or Model(), PaceRules(**pace))
        self._session_ttl = session_ttl
        self._memory_limit = memory_limit
        self._last_seen: dict[int, float] = {}
        self._learning = learning

    def create_namespace(self) -> int:
        self._namespaces.append(Namespace())
        return len(self._namespaces) - 1

    def publish_corpus(self, namespace: int, corpus: int, segments: list[Segment]) -> None:
        corpora = self._namespaces[namespace].corpora
        if corpus not in corpora and len(corpora) == MOST_CORPORA:
            raise ValueError(f"a namespace holds at most {MOST_CORPORA} corpora")
        corpora[corpus] = SegmentSet(segments)

    def withdraw_corpus(self, namespace: int, corpus: int) -> None:
        self._namespaces[namespace].corpora.pop(corpus, None)

    def open(
        self,
        *,
        verifier: int,
        request: int,
        epoch: int,
        namespace: int,
        label: str,
        vocabulary_size: int,
        prompt: bytes,
        output: bytes,
        stop_ids: bytes,
        max_new_tokens: int | None,
        chain: bool,
        max_nodes: int,
        policy: Policy | None = None,
        share: int,
        group: str,
        hide_history: bool,
        corpora: list[int] | None,
        now: float,
    ) -> tuple[int, int]:
        options = Options(
            vocabulary=min(vocabulary_size or ANY_VOCABULARY, ANY_VOCABULARY),
            stop_ids=frozenset(unpacked("<i4", stop_ids)),
            max_new_tokens=max_new_tokens,
            chain=chain,
            max_nodes=max_nodes,
            policy=policy or Policy(),
            share=Share(share),
            hide_history=hide_history,
            group=group,
            corpora=None if corpora is None else frozenset(corpora),
        )
        opening = Open(epoch, tuple(unpacked("<i4", prompt)), tuple(unpacked("<i4", output)), options)
        return self._open((verifier, request), opening, self._namespaces[namespace], label, now)

    def _open(self, key: Key, opening: Open, namespace: Namespace, label: str, now: float) -> tuple[Status, int]:
        before = self._entries.get(key)
        transition = apply(before.session if before else None, opening)
        if transition.status is Status.INVALID_TOKEN:
            return transition.status, transition.detail
        length = len(opening.prompt) + len(opening.output)
        if length * BYTES_PER_TOKEN > self._memory_limit:
            return Status.LIMIT_EXCEEDED, length
        self._last_seen[key[0]] = now
        if transition.status is Status.OK and transition.session:
            forgotten = before is not None and before.forgotten and before.label == label
            if before:
                self._remove(before)
                self._keep(before, now)
            entry = Entry(key, transition.session, namespace, now, label=label, forgotten=forgotten)
            entry.flown = transition.session.prompt_length
            self._entries[key] = entry
            self._carry_out(transition.effects, entry)
            self._take_over(entry)
            self._index_inline(entry)
        return transition.status, 0

    def close(self, verifier: int, request: bytes, epoch: bytes, now: float, time: int) -> bytes:
        rows = zip(unpacked("<u4", request), unpacked("<u4", epoch), strict=True)
        return bytes(self._close((verifier, handle), epoch, now, time) for handle, epoch in rows)

    def _close(self, key: Key, epoch: int, now: float, time: int) -> Status:
        entry = self._entries.get(key)
        transition = apply(entry.session if entry else None, Close(epoch))
        self._carry_out(transition.effects, entry)
        if entry and transition.session is None:
            self._last_seen[key[0]] = now
            self._figures.count_closed(entry.acceptance)
            shared = [effect for effect in transition.effects if isinstance(effect, ShareText)]
            text = shared[0].text if shared else ()
            self._jobs.append(ShareJob(entry.namespace, entry.group, text, entry.label, time, entry.forgotten))
            self._remove(entry)
            self._keep(entry, now)
        return transition.status

    def _keep(self, entry: Entry, now: float) -> None:
        if not entry.forgotten:
            self._kept.keep(entry.namespace, entry.own, now)

    def _take_over(self, entry: Entry) -> None:
        earlier = self._kept.take(entry.namespace, entry.session.text)
        if earlier:
            self._figures.taken_over_tokens += len(earlier.indexed)
            entry.own.go_on_from(earlier)

    def _remove(self, entry: Entry) -> None:
        del self._entries[entry.key]
        self._land(entry)

    def step(
        self,
        verifier: int,
        now: float,
        columns: StepColumns,
        budget: int,
        min_survival: float,
        cost: StepCost | None = None,
        most_nodes: int | None = None,
    ) -> Tails:
        """Takes the commits of all rows, then drafts for all rows."""
        if verifier in self._last_seen:
            self._last_seen[verifier] = now
        keys = [(verifier, handle) for handle in unpacked("<u4", columns.request)]
        rows = zip(keys, columns.commits(), strict=True)
        transitions = [self._commit(key, commit, now) for key, commit in rows]
        entries = [
            self._entries[key] if transition.status is Status.OK else None
            for key, transition in zip(keys, transitions, strict=True)
        ]
        asked = [min(nodes, self._max_nodes) for nodes in unpacked("<u2", columns.max_nodes)]
        allowed = [self._allowed(entry, nodes, most_nodes) for entry, nodes in zip(entries, asked, strict=True)]
        answers = [
            TailRow(transition.status, reason, detail=transition.detail, allowed=nodes, accepted=transition.accepted)
            for transition, (nodes, reason) in zip(transitions, allowed, strict=True)
        ]
        return self._draft(entries, answers, [()] * len(answers), budget, min_survival, cost)

    def tapes(
        self, verifier: int, request: bytes, epoch: bytes, windows: int, news: int
    ) -> list[list[tuple[list[int], int]]]:
        """The windows of each row, with the corpora that they are from. What was taken away is not modelled."""
        del news
        keys = [(verifier, handle) for handle in unpacked("<u4", request)]
        return [
            self._windows(self._entries.get(key), of_epoch, windows)
            for key, of_epoch in zip(keys, unpacked("<u4", epoch), strict=True)
        ]

    def _windows(self, entry: Entry | None, epoch: int, windows: int) -> list[tuple[list[int], int]]:
        if entry is None or entry.session.epoch != epoch or entry.session.state is State.STOPPED:
            return []
        text, options = entry.session.text, entry.session.options
        own = entry.own.longest_match(text)
        flights = entry.namespace.flights(options)
        places = []
        for _, index in entry.namespace.live(options, lambda flight: flight.has_others(entry.key)):
            # In what runs, a match that is no longer than in the own text may be of the own text.
            places += tapes.live_places(index, text, own if index in flights else 0)
        for _, segments in entry.namespace.sealed_histories(options):
            places += tapes.sealed_places(segments, text, 0)
        for number, corpus in entry.namespace.read_corpora(options):
            places += tapes.sealed_places(corpus, text, number)
        return tapes.windows(places, options.vocabulary, windows)

    def _commit(self, key: Key, commit: Commit, now: float) -> Transition:
        entry = self._entries.get(key)
        transition = apply(entry.session if entry else None, commit)
        self._figures.count_status(transition.status)
        if entry and transition.session and transition.status is Status.OK:
            entry.session = transition.session
            entry.last_used = now
            self._carry_out(transition.effects, entry)
            self._index_inline(entry)
        return transition

    def _carry_out(self, effects: tuple[Effect, ...], entry: Entry | None) -> None:
        for effect in effects:
            match effect:
                case GrowIndex(text) if entry:
                    entry.own.grow(text)
                case CutIndex(length) if entry:
                    entry.own.cut(length)
                    if length < entry.flown:
                        self._land(entry)
                case CountStep():
                    self._figures.steps += 1
                case CountOutcome() if entry:
                    entry.acceptance.add(effect)
                    self._figures.acceptance.add(effect)
                case Teach() if entry and self._learning:
                    self._teach(entry.namespace, effect)
                case CountStaleTail():
                    self._figures.stale_tails += 1
                case CountIgnoredClose():
                    self._figures.ignored_closes += 1

    def _teach(self, namespace: Namespace, teaching: Teach) -> None:
        if namespace.learned is None:
            namespace.learned = self._start.copy()
        for candidates, followed in teaching.followed:
            namespace.learned.learn(candidates, followed)
        for raw, accepted in teaching.fates:
            namespace.learned.learn_survival(raw, accepted)

    def lessons(self) -> list[tuple[int, int]]:
        learned = ((number, namespace.learned) for number, namespace in enumerate(self._namespaces))
        return [(number, model.lessons) for number, model in learned if model]

    def learned(self, namespace: int) -> Model | None:
        """The model itself, not its bytes."""
        return self._namespaces[namespace].learned

    def expire(self, now: float) -> int:
        oldest = now - self._session_ttl
        silent = {verifier for verifier, seen in self._last_seen.items() if seen < oldest}
        idle = [key for key, entry in self._entries.items() if key[0] in silent or entry.last_used < oldest]
        for key in sorted(idle):
            self._remove(self._entries[key])
        for verifier in silent:
            del self._last_seen[verifier]
        self._kept.expire(oldest)
        self._figures.evicted_sessions += len(idle)
        return len(idle)

    def statistics(self) -> dict[str, Any]:
        namespaces = self._namespaces
        return self._figures.as_dict() | {
            "sessions": len(self._entries),
            "verifiers": len(self._last_seen),
            "index": {
                "own": _tokens(entry.own.index for entry in self._entries.values()),
                "history": _tokens(namespace.history for namespace in namespaces),
                "group": _tokens(group for namespace in namespaces for group in namespace.groups.values()),
                "corpus": _tokens(index for namespace in namespaces for index in namespace.corpora.values()),
                "in_flight": _tokens(
                    history.flight.index for namespace in namespaces for _, history in namespace.histories()
                ),
                "kept": {"tokens": self._kept.tokens},
            },
        }


def _tokens(texts: Iterable[Index | History | SegmentSet]) -> dict[str, int]:
    return {"tokens": sum(text.tokens for text in texts)}
