"""Histories of the native engine are drained, frozen, restored and forgotten as those of its twin, in any order.

Whatever requests do meanwhile: each document is drained once and whole, drafts come from the same text in both.
"""

from dataclasses import fields
from itertools import accumulate, pairwise
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from draftd import native
from draftd.reference.events import Share
from draftd.reference.histories import HistoryDocuments, HistoryState
from draftd.reference.segment import Segment
from tests.property.test_engine import AMPLE, EnginesAgree
from tests.property.verifiers import labels, namespaces, options, prompts
from tests.segments import sealed

Texts = list[list[int]]

groups = st.sampled_from(["", "", "one", "two"])


class HistoriesAgree(EnginesAgree):
    """A keeper of histories beside the verifiers."""

    def __init__(self) -> None:
        super().__init__()
        self.frozen: dict[tuple[int, str], HistoryDocuments] = {}
        self.segments: dict[tuple[int, str], list[Texts]] = {}

    @rule()
    def drain(self) -> None:
        assert [documents_of(drained) for drained in self.native.drain_history()] == self.twin.drain_history()

    @rule(namespace=namespaces, group=groups)
    def freeze(self, namespace: int, group: str) -> None:
        frozen = self.native.freeze_history(namespace, group)
        assert (frozen and documents_of(frozen)) == self.twin.freeze_history(namespace, group)
        if frozen:
            self.frozen[namespace, group] = documents_of(frozen)

    @rule(namespace=namespaces, group=groups, deleted=st.none() | labels)
    def seal(self, namespace: int, group: str, deleted: str | None) -> None:
        """What was frozen becomes a segment, but for the documents of one label."""
        self.freeze(namespace, group)
        frozen = self.frozen.pop((namespace, group), None)
        if frozen is None:
            return
        segments = self.segments.setdefault((namespace, group), [])
        kept = [text for label, text in zip(frozen.labels, texts_of(frozen), strict=True) if label != deleted]
        if kept:
            segments.append(kept)
        self._publish(namespace, group, segments)

    @rule(
        namespace=namespaces,
        text=prompts(),
        options=options(),
        shared=st.integers(1, 5),
        happens=st.lists(st.sampled_from(["drain", "freeze", "forget"]), max_size=3),
    )
    def leave_behind(
        self, namespace: int, text: list[int], options: dict[str, Any], shared: int, happens: list[str]
    ) -> None:
        """Something happens while a document is under way."""
        self.open(1, 0, 1, namespace, text, [], options | {"share": Share.ALL, "vocabulary_size": 0})
        self.index(AMPLE)
        self.close(1, 0, 0)
        self.index(shared)
        for what in happens:
            match what:
                case "drain":
                    self.drain()
                case "freeze":
                    self.freeze(namespace, "")
                case _:
                    self.forget([namespace], None, [options["label"]])

    @rule(namespace=namespaces, group=groups)
    def merge(self, namespace: int, group: str) -> None:
        """All segments become one; what is frozen stays."""
        segments = self.segments.get((namespace, group), [])
        merged = [text for segment in segments for text in segment]
        segments[:] = [merged] if merged else []
        self._publish(namespace, group, segments, drop_frozen=False)

    @rule(namespace=namespaces, group=groups)
    def remove_segments(self, namespace: int, group: str) -> None:
        self.segments.pop((namespace, group), None)
        self._publish(namespace, group, [], drop_frozen=False)

    def _publish(self, namespace: int, group: str, segments: list[Texts], *, drop_frozen: bool = True) -> None:
        native_segments = [sealed(texts) for texts in segments]
        twins = [Segment(texts) for texts in segments]
        self.native.publish_history(namespace, group, native_segments, drop_frozen=drop_frozen, now=self.now)
        self.twin.publish_history(namespace, group, twins, drop_frozen=drop_frozen, now=self.now)

    @rule(namespace=namespaces, group=groups, documents=st.lists(prompts(), max_size=2), generation=st.integers(1, 9))
    def restore(self, namespace: int, group: str, documents: list[list[int]], generation: int) -> None:
        restored = {
            "namespace": namespace,
            "group": group,
            "generation": generation,
            "token_ids": [token for document in documents for token in document],
            "document_ends": list(accumulate(map(len, documents))),
            "labels": ["restored"] * len(documents),
            "times": list(range(len(documents))),
            "now": self.now,
        }
        assert outcome(self.native.restore_history, restored) == outcome(self.twin.restore_history, restored)

    @rule(
        namespaces=st.lists(st.integers(0, 1), unique=True),
        group=st.one_of(st.none(), groups),
        labels=st.lists(labels, unique=True),
    )
    def forget(self, namespaces: list[int], group: str | None, labels: list[str]) -> None:
        forgotten = self.native.forget_requests(namespaces, group, labels)
        assert forgotten == self.twin.forget_requests(namespaces, group, labels)

    @invariant()
    def states_agree(self) -> None:
        states = [
            HistoryState(**{field.name: getattr(state, field.name) for field in fields(HistoryState)})
            for state in self.native.histories()
        ]
        assert states == self.twin.histories()


def documents_of(drained: native.HistoryDocuments) -> HistoryDocuments:
    return HistoryDocuments(
        namespace=drained.namespace,
        group=drained.group,
        generation=drained.generation,
        token_ids=drained.token_ids.tolist(),
        document_ends=drained.document_ends.tolist(),
        labels=drained.labels,
        times=drained.times.tolist(),
    )


def texts_of(documents: HistoryDocuments) -> Texts:
    return [documents.token_ids[begin:end] for begin, end in pairwise([0, *documents.document_ends])]


def outcome(call: Any, arguments: dict[str, Any]) -> type[Exception] | None:
    try:
        call(**arguments)
    except RuntimeError as error:
        return type(error)
    return None


HistoriesAgree.TestCase.settings = settings(max_examples=settings().max_examples // 3, stateful_step_count=40)
TestHistoriesAgree = HistoriesAgree.TestCase
