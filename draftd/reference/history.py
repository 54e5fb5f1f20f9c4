"""A history: what requests left behind, in heads that grow, are frozen and give way to segments."""

from dataclasses import dataclass, field

from draftd.reference.flight import Flight
from draftd.reference.index import Index
from draftd.reference.pairs import RecentPairs
from draftd.reference.segment import Segment

FIRST_GENERATION = 1


@dataclass
class Document:
    label: str
    time: int
    text: list[int] = field(default_factory=list)


class Head:
    """The live part of a history: an index and the documents it is of."""

    def __init__(self, generation: int) -> None:
        self.generation = generation
        self.index = Index()
        self.pairs = RecentPairs()
        self.documents: list[Document] = []
        self.drained = 0
        self._under_way = False

    def append(self, text: list[int], label: str, time: int) -> None:
        """Goes on with the document under way, or begins one."""
        if not self._under_way:
            self.documents.append(Document(label, time))
            self._under_way = True
        self.documents[-1].text += text
        self.index.append(text)
        self.pairs.add_text(text)

    def end_document(self) -> None:
        self._under_way = False
        self.index.end_document()
        self.pairs.end_document()

    def drain(self) -> list[Document]:
        """Whole documents that were not drained before."""
        whole = len(self.documents) - self._under_way
        waiting = self.documents[self.drained : whole]
        self.drained = whole
        return waiting


class History:
    """What a namespace, or a group in it, remembers. Bytes are not modelled, so nothing is forgotten for a limit."""

    def __init__(self) -> None:
        self.head = Head(FIRST_GENERATION)
        self.frozen: Head | None = None
        self.segments: list[Segment] = []
        self.flight = Flight()

    def freeze(self) -> Head | None:
        """The head, in whose place a new one begins; the document under way is cut in two. None while one is held."""
        if self.frozen or not self.head.index.tokens:
            return None
        self.head.end_document()
        self.frozen = self.head
        self.head = Head(self.frozen.generation + 1)
        return self.frozen

    def publish(self, segments: list[Segment], *, drop_frozen: bool) -> None:
        self.segments = segments
        if drop_frozen:
            self.frozen = None

    def restore(self, generation: int, documents: list[Document]) -> None:
        """Adds documents that were drained in an earlier life."""
        self.head.generation = max(self.head.generation, generation)
        for document in documents:
            if self.head.drained < len(self.head.documents):
                raise RuntimeError("restore before requests are served")
            self.head.append(document.text, document.label, document.time)
            self.head.end_document()
            self.head.drained += 1

    def drain(self) -> list[tuple[int, list[Document]]]:
        """Generation and documents, by head."""
        waiting = [(head.generation, head.drain()) for head in (self.frozen, self.head) if head]
        return [(generation, documents) for generation, documents in waiting if documents]

    def heads(self) -> list[Head]:
        """Those with text, newest first."""
        return [head for head in (self.head, self.frozen) if head and head.index.tokens]

    def largest_part(self) -> Index | Segment:
        """The newest of equally large ones."""
        parts: list[Index | Segment] = [
            *(head.index for head in self.heads()),
            *reversed(self.segments),
            self.head.index,
        ]
        return max(parts, key=lambda part: part.tokens)

    @property
    def tokens(self) -> int:
        live = sum(head.index.tokens for head in self.heads())
        return live + sum(segment.tokens for segment in self.segments)

    @property
    def oldest(self) -> int:
        """Time of the first document of its heads; 0: they have none."""
        documents = (self.frozen.documents if self.frozen else []) + self.head.documents
        return documents[0].time if documents else 0
