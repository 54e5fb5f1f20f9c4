"""What the loader process does: reads a corpus, checks it, tokenizes it, leaves its columns in files."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path

from draftd.ingest.columns import ANY_VOCABULARY, ColumnsBuilder
from draftd.ingest.documents import Document, read_file
from draftd.ingest.job import CorpusKey, Described, DescribeJob, KnownTokenizer, Loaded, LoadFile, LoadJob
from draftd.ingest.post import PostedCorpus
from draftd.ingest.problem import IngestError
from draftd.ingest.tokenizers import Tokenizer, open_tokenizer

# Texts are tokenized together up to this many characters: enough to use all cores, little enough to
# notice soon that the token limit is passed.
BATCH_CHARACTERS = 1 << 20


def describe(job: DescribeJob) -> Described:
    """Reads the configured tokenizers. Raises IngestError."""
    opened = map(open_tokenizer, job.paths)
    return Described(tokenizers=tuple((tokenizer.fingerprint, tokenizer.vocabulary_size) for tokenizer in opened))


def load(job: LoadJob) -> Loaded:
    """Raises IngestError; the folder of the job then holds nothing."""
    key, stated, documents = _opened(job)
    key.refuse_if_in(job.taken)
    known = next((tokenizer for tokenizer in job.tokenizers if tokenizer.serves(key.tenant, key.model)), None)
    if known and stated not in (None, known.fingerprint):
        raise IngestError(
            f"tokenizer: the corpus states {stated}, tenant {key.tenant!r} and model {key.model!r} have "
            f"{known.fingerprint}"
        )
    builder = ColumnsBuilder(job.max_tokens, known.vocabulary_size if known else ANY_VOCABULARY)
    _collect(documents, _Encoder(known, key), builder)
    columns = builder.build()
    columns.save(job.result)
    belongs_to = (stated,) if stated else (None, known.fingerprint) if known else (None,)
    return Loaded(key=key, tokens=len(columns.token_ids), tokenizers=belongs_to)


def _opened(job: LoadJob) -> tuple[CorpusKey, str | None, Iterator[Document]]:
    if isinstance(job.source, LoadFile):
        return job.source.key, None, _documents_of(job.source.path, job.max_tokens)
    posted = PostedCorpus(job.source.body.read_bytes(), job.source.directories)
    return posted.key, posted.tokenizer, posted.documents(job.max_tokens)


def _documents_of(path: Path, max_tokens: int) -> Iterator[Document]:
    try:
        with path.open("rb") as file:
            yield from read_file(path.name, file, max_tokens)
    except OSError as error:
        raise IngestError(f"{path}: {(error.strerror or str(error)).lower()}") from None


class _Encoder:
    """The tokenizer of a corpus, read when the first text needs it."""

    def __init__(self, known: KnownTokenizer | None, key: CorpusKey) -> None:
        self._known = known
        self._key = key

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        return self._tokenizer.encode(texts)

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        if self._known is None:
            raise IngestError(
                f"text needs a tokenizer, and none is configured for tenant {self._key.tenant!r} and model "
                f'{self._key.model!r}: set tokenizers = [{{path = "tokenizer.json"}}] in the config file, or '
                "give token ids"
            )
        tokenizer = open_tokenizer(self._known.path)
        if tokenizer.fingerprint != self._known.fingerprint:
            raise IngestError(
                f"tokenizer {self._known.path} changed from {self._known.fingerprint} to {tokenizer.fingerprint} "
                "while the server runs; restart it"
            )
        return tokenizer


def _collect(documents: Iterable[Document], encoder: _Encoder, builder: ColumnsBuilder) -> None:
    waiting: list[tuple[str, str]] = []
    characters = 0

    def tokenize_waiting() -> None:
        ids_of_texts = encoder.encode([text for _, text in waiting]) if waiting else []
        for (place, _), ids in zip(waiting, ids_of_texts, strict=True):
            builder.add(place, ids)
        waiting.clear()

    for document in documents:
        if document.token_ids is not None:
            tokenize_waiting()
            builder.add(document.place, document.token_ids)
        elif document.text is not None:
            waiting.append((document.place, _proper(document.place, document.text)))
            characters += len(document.text)
            if characters >= BATCH_CHARACTERS:
                tokenize_waiting()
                characters = 0
    tokenize_waiting()


def _proper(place: str, text: str) -> str:
    # JSON can spell half a surrogate pair, which is no text and stops the tokenizers.
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise IngestError(f"{place}: no valid text at character {error.start}") from None
    return text
