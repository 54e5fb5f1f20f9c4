"""Texts to token ids, in their order, by several processes at once.

A tokenizer that runs in one process keeps only one core busy with what it hands to Python. Each process here lives
from the first text that finds all others at work to the end of the load, or of the process that started it.
"""

import threading
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Self

import numpy as np

from draftd.ingest.documents import Ids, Piece, Text
from draftd.ingest.job import CorpusKey, KnownTokenizer
from draftd.ingest.problem import IngestError
from draftd.ingest.tokenizer_process import TokenizerProcess

# Texts are handed over together up to this many characters: enough to be worth a message, little enough to keep
# every process busy and to notice soon that the token limit is passed.
BATCH_CHARACTERS = 1 << 19


class Encoder:
    """The tokenizer of a corpus, in `processes` processes at most."""

    def __init__(self, known: KnownTokenizer | None, key: CorpusKey, processes: int) -> None:
        self._known = known
        self._key = key
        self._processes = processes
        self._threads = ThreadPoolExecutor(processes, "encoding")  # one for each process, started when needed
        self._of_thread = threading.local()
        self._started: list[TokenizerProcess] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        for process in self._started:
            process.kill()
        self._threads.shutdown()
        for process in self._started:
            process.close()

    def in_ids(self, pieces: Iterable[Piece]) -> Iterator[Ids]:
        """The same documents as token ids. Raises IngestError."""
        ahead: deque[Future[Ids] | Ids] = deque()
        for batch in _batches(pieces):
            ahead.append(batch if isinstance(batch, Ids) else self._threads.submit(self._encode, batch))
            if len(ahead) > 2 * self._processes:
                yield _settled(ahead.popleft())
        while ahead:
            yield _settled(ahead.popleft())

    def _encode(self, texts: list[Text]) -> Ids:
        process = getattr(self._of_thread, "process", None)
        if process is None:
            process = self._of_thread.process = TokenizerProcess(self._tokenizer())
            self._started.append(process)
        encoded = process.encode([text.text for text in texts])
        ids = np.frombuffer(b"".join(encoded), np.int32)
        ends = np.cumsum([len(document) // ids.itemsize for document in encoded], dtype=np.int64)
        return Ids(ids, ends, lambda document: texts[document].place, [text.label for text in texts])

    def _tokenizer(self) -> KnownTokenizer:
        if self._known is None:
            raise IngestError(
                f"text needs a tokenizer, and none is configured for tenant {self._key.tenant!r} and model "
                f'{self._key.model!r}: set tokenizers = [{{path = "tokenizer.json"}}] in the config file, or '
                "give token ids"
            )
        return self._known


def _settled(batch: Future[Ids] | Ids) -> Ids:
    return batch if isinstance(batch, Ids) else batch.result()


def _batches(pieces: Iterable[Piece]) -> Iterator[list[Text] | Ids]:
    """Texts that follow each other, up to BATCH_CHARACTERS or as many documents together."""
    texts: list[Text] = []
    characters = 0
    for piece in pieces:
        if isinstance(piece, Text):
            texts.append(_proper(piece))
            characters += len(piece.text) + 1
        if texts and (characters >= BATCH_CHARACTERS or isinstance(piece, Ids)):
            yield texts
            texts, characters = [], 0
        if isinstance(piece, Ids):
            yield piece
    if texts:
        yield texts


def _proper(text: Text) -> Text:
    # JSON can spell half a surrogate pair, which is no text and stops the tokenizers.
    try:
        text.text.encode()
    except UnicodeEncodeError as error:
        raise IngestError(f"{text.place}: no valid text at character {error.start}") from None
    return text
