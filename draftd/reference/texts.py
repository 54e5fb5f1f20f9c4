"""What an engine has indexed, and what waits for it."""

from collections.abc import Sequence
from dataclasses import dataclass

from draftd.reference.events import Options, Source
from draftd.reference.index import Index


class OwnText:
    """The text of one request and how far it is indexed."""

    def __init__(self) -> None:
        self._text: list[int] = []
        self._indexed = 0
        self.index = Index()

    def grow(self, text: Sequence[int]) -> None:
        self._text += text

    def cut(self, length: int) -> None:
        """The first `length` tokens remain. An index only grows, so it may have to begin anew."""
        self._text = self._text[:length]
        if self._indexed > length:
            self._indexed = 0
            self.index = Index()

    @property
    def unindexed(self) -> int:
        return len(self._text) - self._indexed

    def index_some(self, most: int) -> int:
        """Indexes up to `most` tokens; returns how many it were."""
        some = self._text[self._indexed : self._indexed + most]
        self.index.append(some)
        self._indexed += len(some)
        return len(some)


class Namespace:
    """The texts that requests of one namespace share."""

    def __init__(self) -> None:
        self.history = Index()
        self.groups: dict[str, Index] = {}
        self.corpora: dict[int, Index] = {}

    def sources(self, options: Options) -> list[tuple[int, Index]]:
        """What a request reads besides its own text; of equally long matches the earlier source's comes first."""
        sources: list[tuple[int, Index]] = []
        if not options.hide_history:
            sources.append((Source.SHARED_HISTORY, self.history))
            if options.group in self.groups:
                sources.append((Source.GROUP_HISTORY, self.groups[options.group]))
        for number, corpus in sorted(self.corpora.items()):
            if options.corpora is None or number in options.corpora:
                sources.append((Source.CORPUS, corpus))
        return sources


@dataclass
class IndexJob:
    """The text of an open request waits to be indexed."""

    key: tuple[int, int]
    epoch: int


@dataclass
class ShareJob:
    """What a closed request shares, maybe nothing, waits to enter a history."""

    namespace: Namespace
    group: str | None
    text: tuple[int, ...]
    shared: int = 0

    def share_some(self, most: int) -> int:
        """Shares up to `most` tokens, as a part of one document; returns how many it were."""
        some = self.text[self.shared : self.shared + most]
        if some:
            groups = self.namespace.groups
            history = self.namespace.history if self.group is None else groups.setdefault(self.group, Index())
            history.append(some)
            self.shared += len(some)
            if self.shared == len(self.text):
                history.end_document()
        return len(some)
