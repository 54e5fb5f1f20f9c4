"""An explanation says what the texts hold, of the draft that a step makes, and leaves no trace.

The evidence of every node is counted anew in the documents themselves. What a request may not read never shows.
"""

from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from draftd import native
from draftd.reference.explain import Document, Evidence, evidence
from draftd.wire import Preset, Share, Source
from tests.property.rows import CommitRow, packed, step
from tests.segments import sealed

AMPLE = 1 << 28
ids = st.sampled_from([0, 0, 0, 1, 1, 2, 2, 3, 4])
texts = st.lists(ids, min_size=1, max_size=8) | st.lists(ids, min_size=1, max_size=3).map(lambda unit: unit * 40)
groups = st.sampled_from(["", "one", "two"])


@dataclass(frozen=True)
class Shared:
    """A finished request."""

    group: str
    tokens: list[int]


@dataclass(frozen=True)
class Frozen:
    """The head of a history becomes its older one, or with `seal` a segment."""

    group: str
    seal: bool


@dataclass(frozen=True)
class Published:
    corpus: int
    segments: list[list[list[int]]]


happenings = st.lists(
    st.builds(Shared, groups, texts)
    | st.builds(Frozen, groups, st.booleans())
    | st.builds(Published, st.integers(1, 3), st.lists(st.lists(texts, min_size=1, max_size=3), max_size=2)),
    max_size=10,
)
options = st.fixed_dictionaries(
    {
        "vocabulary_size": st.sampled_from([0, 5]),
        "stop_ids": st.sampled_from([packed("<i4", []), packed("<i4", [4])]),
        "chain": st.booleans(),
        "max_nodes": st.sampled_from([1, 8, 24]),
        "policy": st.builds(
            native.DraftPolicy, preset=st.sampled_from([0, 0, *Preset]), min_survival=st.sampled_from([0.0, 0.3])
        ),
        "group": groups,
        "hide_history": st.booleans(),
        "corpora": st.sampled_from([None, [], [2], [3, 1, 9]]),
    }
)


@dataclass
class Parts:
    """The documents of a history, as its parts hold them."""

    sealed: list[list[Document]] = field(default_factory=list)
    segments: list[native.Segment] = field(default_factory=list)
    older: list[Document] = field(default_factory=list)
    newer: list[Document] = field(default_factory=list)

    def all(self) -> list[Document]:
        return [document for part in self.sealed for document in part] + self.older + self.newer


@dataclass
class Place:
    """A namespace and all that was put there."""

    engine: native.Engine = field(default_factory=lambda: native.Engine(600.0, AMPLE, AMPLE, 64, False))
    histories: dict[str, Parts] = field(default_factory=lambda: {"": Parts()})
    corpora: dict[int, list[Document]] = field(default_factory=dict)
    shared: int = 0

    def __post_init__(self) -> None:
        self.engine.create_namespace()

    def do(self, happening: Shared | Frozen | Published) -> None:
        match happening:
            case Shared(group, tokens):
                self.share(group, tokens)
            case Frozen(group, seal):
                self.freeze(group, seal)
            case Published(corpus, segments):
                documents = [[self.document(tokens) for tokens in segment] for segment in segments]
                self.engine.publish_corpus(0, corpus, [segment_of(part) for part in documents])
                self.corpora[corpus] = [document for part in documents for document in part]

    def document(self, tokens: list[int]) -> Document:
        self.shared += 1
        return Document(tokens, f"document {self.shared}", 1000 + self.shared)

    def share(self, group: str, tokens: list[int]) -> None:
        document = self.document(tokens)
        share = Share.GROUP if group else Share.OUTPUTS
        self.open(1, b"", label=document.label, share=share, group=group)
        step(self.engine, native.StepColumns, 1, [CommitRow(1, 1, 0, tokens)], now=0.0)
        self.engine.close(1, packed("<u4", [1]), packed("<u4", [1]), 0.0, document.time or 0)
        self.engine.index_slice(1 << 20)
        self.histories.setdefault(group, Parts()).newer.append(document)

    def freeze(self, group: str, seal: bool) -> None:
        parts = self.histories.setdefault(group, Parts())
        if self.engine.freeze_history(0, group):
            parts.older, parts.newer = parts.newer, []
        if seal and parts.older:
            parts.sealed.append(parts.older)
            parts.segments.append(segment_of(parts.older))
            parts.older = []
            self.engine.publish_history(0, group, parts.segments, drop_frozen=True, now=0.0)

    def open(self, request: int, prompt: bytes, **stated: Any) -> None:
        usual = {
            "label": "",
            "vocabulary_size": 0,
            "output": b"",
            "stop_ids": b"",
            "max_new_tokens": None,
            "chain": False,
            "max_nodes": 0,
            "share": Share.NOTHING,
            "group": "",
            "hide_history": False,
            "corpora": None,
        }
        self.engine.open(verifier=1, request=request, epoch=1, namespace=0, prompt=prompt, now=0.0, **(usual | stated))
        self.engine.index_slice(1 << 20)

    def readable(self, text: list[int], stated: dict[str, Any]) -> dict[tuple[int, int], list[Document]]:
        """By source code and number of the corpus, in the order in which they are asked."""
        sources = {(int(Source.OWN_TEXT), 0): [Document(text)]}
        if not stated["hide_history"]:
            sources[int(Source.SHARED_HISTORY), 0] = self.histories[""].all()
            group = stated["group"]
            if group and self.histories.get(group, Parts()).all():
                sources[int(Source.GROUP_HISTORY), 0] = self.histories[group].all()
        for corpus in sorted(self.corpora):
            if stated["corpora"] is None or corpus in stated["corpora"]:
                sources[int(Source.CORPUS), corpus] = self.corpora[corpus]
        return sources


def segment_of(documents: list[Document]) -> native.Segment:
    texts, labels, times = zip(*((d.tokens, d.label, d.time) for d in documents), strict=True)
    return sealed(texts, labels, times)


def told(found: native.Evidence) -> Evidence:
    assert found.last is not None
    return Evidence(found.length, found.count, found.total, found.last.label, found.last.position, found.last.time)


@given(happenings, texts, options)
def test_evidence_is_what_the_documents_hold(
    happened: list[Shared | Frozen | Published], text: list[int], stated: dict[str, Any]
) -> None:
    place = Place()
    for happening in happened:
        place.do(happening)
    explanation = place.engine.explain(namespace=0, prompt=packed("<i4", text), output=b"", **stated)
    sources = place.readable(text, stated)
    assert [(read.source, read.corpus) for read in explanation.sources] == list(sources)
    for read in explanation.sources:
        documents = sources[read.source, read.corpus]
        assert (read.tokens, read.documents) == (sum(len(d.tokens) for d in documents), len(documents))
    paths: list[list[int]] = []
    for node in explanation.nodes:
        before = paths[node.parent] if node.parent >= 0 else text
        paths.append([*before, node.token])
        known = {
            source: expected
            for source, documents in sources.items()
            if (expected := evidence(documents, before, node.token))
        }
        said = [found for found in node.evidence if found.source != Source.FILL]
        assert {(found.source, found.corpus): told(found) for found in said} == known
        assert [found.length for found in said] == sorted((found.length for found in said), reverse=True)
        assert said or node.source == Source.FILL, "somebody proposed it, and nobody knows it"


@given(happenings, texts, texts, options)
def test_the_draft_is_that_of_a_step_and_nothing_remembers_it(
    happened: list[Shared | Frozen | Published], prompt: list[int], output: list[int], stated: dict[str, Any]
) -> None:
    place = Place()
    for happening in happened:
        place.do(happening)
    before = place.engine.statistics()
    text = {"prompt": packed("<i4", prompt), "output": packed("<i4", output)}
    explanation = place.engine.explain(namespace=0, **text, **stated)
    assert place.engine.statistics() == before
    place.open(2, **text, **stated)
    length = len(prompt) + len(output)
    (tail,) = step(place.engine, native.StepColumns, 1, [CommitRow(2, 1, length, max_nodes=64)], now=0.0)
    assert [node.token for node in explanation.nodes] == tail.tokens
    assert [node.parent for node in explanation.nodes] == tail.parents
    assert [node.survival for node in explanation.nodes] == tail.survival
    assert [node.source for node in explanation.nodes] == tail.source
    assert explanation.reason == tail.reason
