"""What an engine has indexed, and what waits for it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from draftd.reference.events import Options, Source
from draftd.reference.flight import Flight
from draftd.reference.history import History
from draftd.reference.index import Index
from draftd.reference.model import Model
from draftd.reference.pairs import RecentPairs
from draftd.reference.segment import SegmentSet


class OwnText:
    """The text of one request and how far it is indexed."""

    def __init__(self) -> None:
        self._text: list[int] = []
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._indexed = 0
        self.index = Index()
        self.pairs = RecentPairs()

    def grow(self, text: Sequence[int]) -> None:
        self._text += text

    def cut(self, length: int) -> None:
        """The first `length` tokens remain. An index only grows, so it may have to begin anew."""
        self._text = self._text[:length]
        if self._indexed > length:
            self._begin_anew()

    def go_on_from(self, earlier: "OwnText") -> None:
        """Before anything is indexed. `earlier` indexed the beginning of this text."""
        self._indexed, self.index, self.pairs = earlier._indexed, earlier.index, earlier.pairs

    @property
    def indexed(self) -> list[int]:
        return self._text[: self._indexed]

    @property
    def unindexed(self) -> int:
        return len(self._text) - self._indexed

    def longest_match(self, text: Sequence[int]) -> int:
        """Length of the longest end of all its text that stands in the index, before other text unless some waits."""
        levels = self.index.match(text)
        return next((level.length for level in levels if level.distinct or self.unindexed), 0)

    def index_some(self, most: int) -> int:
        """Indexes up to `most` tokens; returns how many it were."""
        some = self._text[self._indexed : self._indexed + most]
        self.index.append(some)
        self.pairs.add_text(some)
        self._indexed += len(some)
        return len(some)


class Namespace:
    """The texts that requests of one namespace share."""

    def __init__(self) -> None:
        self.history = History()
        self.groups: dict[str, History] = {}
        self.corpora: dict[int, SegmentSet] = {}
        self.learned: Model | None = None
        """None: nothing yet."""

    def live(self, options: Options, reads: Callable[[Flight], bool]) -> list[tuple[int, Index]]:
        """Live text that a request reads besides its own; of equally long matches the earlier source's comes first."""
        texts: list[tuple[int, Index]] = []
        for source, history in self._readable(options):
            texts += [(source, head.index) for head in history.heads()]
            texts += [(source, history.flight.index)] if reads(history.flight) else []
        return texts

    def flights(self, options: Options) -> list[Index]:
        return [history.flight.index for _, history in self._readable(options)]

    def sealed(self, options: Options) -> list[tuple[int, SegmentSet]]:
        """Sealed text that it reads."""
        histories = [(int(source), segments) for source, segments in self.sealed_histories(options)]
        return histories + [(int(Source.CORPUS), corpus) for _, corpus in self.read_corpora(options)]

    def sealed_histories(self, options: Options) -> list[tuple[Source, SegmentSet]]:
        return [
            (source, SegmentSet(history.segments)) for source, history in self._readable(options) if history.segments
        ]

    def read_corpora(self, options: Options) -> list[tuple[int, SegmentSet]]:
        """By number."""
        return [
            (number, corpus)
            for number, corpus in sorted(self.corpora.items())
            if options.corpora is None or number in options.corpora
        ]

    def pairs(self, options: Options) -> list[tuple[Source, RecentPairs]]:
        """Of the live text of histories."""
        return [(source, head.pairs) for source, history in self._readable(options) for head in history.heads()]

    def _readable(self, options: Options) -> list[tuple[Source, History]]:
        if options.hide_history:
            return []
        group = self.groups.get(options.group)
        return [(Source.SHARED_HISTORY, self.history)] + ([(Source.GROUP_HISTORY, group)] if group else [])

    def history_of(self, group: str) -> History:
        """That of a group, which begins to exist when it is first named, or, without a name, its own."""
        return self.groups.setdefault(group, History()) if group else self.history

    def find_history(self, group: str) -> History | None:
        return self.groups.get(group) if group else self.history

    def histories(self) -> list[tuple[str, History]]:
        """By group; the namespace's own first."""
        return [("", self.history), *((group, self.groups[group]) for group in sorted(self.groups))]


@dataclass
class IndexJob:
    """The text of an open request waits to be indexed."""

    key: tuple[int, int]
    epoch: int


@dataclass
class ShareJob:
    """What a closed request shares, maybe nothing, waits to enter a history."""

    namespace: Namespace
    group: str
    text: tuple[int, ...]
    label: str
    time: int
    forgotten: bool
    shared: int = 0

    def share_some(self, most: int) -> int:
        """Shares up to `most` tokens, as a part of one document; returns how many it were."""
        some = () if self.forgotten else self.text[self.shared : self.shared + most]
        if some or self.shared:
            head = self.namespace.history_of(self.group).head
            if some:
                head.append(list(some), self.label, self.time)
            self.shared += len(some)
            if self.done:
                head.end_document()
        return len(some)

    @property
    def done(self) -> bool:
        return self.forgotten or self.shared == len(self.text)
