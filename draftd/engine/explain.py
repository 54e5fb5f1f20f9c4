"""Why a draft was made: for a text, the draft that a request of it would get now, and what each source knows of it."""

from dataclasses import dataclass

from draftd import native
from draftd.config import DraftingSettings
from draftd.engine.namespaces import Namespaces
from draftd.engine.opening import check_fields, namespace_of
from draftd.engine.policy import policy_of
from draftd.wire import DraftSync, Reason, Shape, Source

LONGEST_CONTEXT = 1 << 17  # tokens: all of them are indexed for one answer


@dataclass(frozen=True, slots=True)
class Place:
    """A token of a document: the label of the document, its time in unix seconds, the token's position from 0 on.

    In the request's own text there is no label and no time."""

    label: str
    position: int
    time: int | None


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one source knows of a node: its context is the longest suffix of the text before the node, at most 64
    tokens, that the node's token follows there."""

    source: Source
    corpus: str | None
    running: bool
    """It is what requests have generated that still run; a little of it may be counted twice."""
    length: int
    """Tokens of the context; 0 for a fill."""
    count: int
    """How often the token follows it."""
    total: int
    """How often any token follows there."""
    last: Place | None
    """Where the token followed most recently; None for a fill and for running requests."""


@dataclass(frozen=True, slots=True)
class ExplainedNode:
    """A node of the draft; `evidence` has the longest context first, ties in the order of the sources."""

    token: int
    parent: int
    """Index of the node above; -1: the text's end."""
    survival: float
    source: Source
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class ReadSource:
    """A text that the request may read: its own, the history, its group's history, a corpus.

    What requests that still run have generated for a history is a text of its own, without documents."""

    source: Source
    corpus: str | None
    running: bool
    tokens: int
    documents: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """`nodes` are in the order of the tree, parents first; `reason` says why there is none."""

    reason: Reason
    sources: tuple[ReadSource, ...]
    nodes: tuple[ExplainedNode, ...]


@dataclass(frozen=True, slots=True)
class Explainer:
    """Reads what a request of the same namespace, group and options reads, and nothing else; changes nothing."""

    core: native.Engine
    namespaces: Namespaces
    drafting: DraftingSettings

    def explain(self, question: DraftSync) -> Explanation:
        """What the request would state when it is opened with this text. Thread-safe; takes milliseconds.

        Raises UnknownNamespace, UnknownCorpus, TokenizerMismatch, and ValueError for a field that can't be meant, a
        text that is too long, or an id outside the vocabulary.
        """
        check_fields(question)
        tokens = (len(question.prompt) + len(question.output)) // 4
        if tokens > LONGEST_CONTEXT:
            raise ValueError(
                f"{tokens} tokens are more than the {LONGEST_CONTEXT} that can be explained; give the last of them"
            )
        namespace = namespace_of(question)
        self.namespaces.check_tokenizer(namespace, question.vocabulary_size)
        named = question.corpora if question.named_corpora else None
        number, corpora = self.namespaces.look_up(namespace, named)
        explanation = self.core.explain(
            namespace=number,
            prompt=question.prompt,
            output=question.output,
            vocabulary_size=question.vocabulary_size,
            stop_ids=question.stop_ids,
            chain=question.shape == Shape.SHAPE_CHAIN,
            max_nodes=question.max_nodes,
            policy=policy_of(question, self.drafting),
            group=question.group,
            hide_history=question.hide_history,
            corpora=list(corpora.values()),
        )
        return _named(explanation, {number: name for name, number in corpora.items()})


def _named(explanation: native.Explanation, corpora: dict[int, str]) -> Explanation:
    return Explanation(
        reason=Reason(explanation.reason),
        sources=tuple(
            ReadSource(Source(read.source), corpora.get(read.corpus), read.running, read.tokens, read.documents)
            for read in explanation.sources
        ),
        nodes=tuple(
            ExplainedNode(
                token=node.token,
                parent=node.parent,
                survival=node.survival,
                source=Source(node.source),
                evidence=tuple(_evidence(evidence, corpora) for evidence in node.evidence),
            )
            for node in explanation.nodes
        ),
    )


def _evidence(evidence: native.Evidence, corpora: dict[int, str]) -> Evidence:
    last = evidence.last
    return Evidence(
        source=Source(evidence.source),
        corpus=corpora.get(evidence.corpus),
        running=evidence.running,
        length=evidence.length,
        count=evidence.count,
        total=evidence.total,
        last=None if last is None else Place(last.label, last.position, last.time),
    )
