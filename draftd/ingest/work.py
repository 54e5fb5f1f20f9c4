"""What the loader process does: documents, or segments that are there already, into a new segment."""

from collections.abc import Iterator
from itertools import compress
from pathlib import Path

import numpy as np

from draftd.ingest.columns import read_columns
from draftd.ingest.documents import Piece
from draftd.ingest.encoding import Encoder
from draftd.ingest.gathering import ANY_VOCABULARY, Gatherer
from draftd.ingest.job import (
    SEGMENT,
    Built,
    CorpusKey,
    Described,
    DescribeJob,
    KnownTokenizer,
    LoadFile,
    LoadJob,
    LoadPost,
    LoadRequest,
    LoadUpload,
    Opened,
    RebuildJob,
    SealJob,
)
from draftd.ingest.post import PostedCorpus
from draftd.ingest.problem import IngestError
from draftd.ingest.readers import Position, ReadLimits, read_path, read_upload
from draftd.ingest.reporting import Reporter
from draftd.ingest.tokenizers import open_tokenizer
from draftd.native import Segment, SegmentBuilder

ANY_TOKENS = 2**31 - 3  # what a segment holds


def describe(job: DescribeJob) -> Described:
    """Reads the configured tokenizers. Raises IngestError."""
    opened = map(open_tokenizer, job.paths)
    return Described(tokenizers=tuple((tokenizer.fingerprint, tokenizer.vocabulary_size) for tokenizer in opened))


def load(job: LoadJob, processes: int, reporter: Reporter) -> Built:
    """Texts are tokenized in up to `processes` processes. Raises IngestError; there is no segment then."""
    limits = ReadLimits(job.max_tokens)
    key, stated, pieces = _opened(job.request, limits, reporter.position)
    known = next((tokenizer for tokenizer in job.tokenizers if tokenizer.serves(key.tenant, key.model)), None)
    if known and stated not in (None, known.fingerprint):
        raise IngestError(
            f"tokenizer: the corpus states {stated}, tenant {key.tenant!r} and model {key.model!r} have "
            f"{known.fingerprint}"
        )
    reporter.say(Opened(key=key, tokenizers=_namespaces(stated, known)))
    builder = SegmentBuilder(stated or (known.fingerprint if known else ""))
    gatherer = Gatherer(builder, reporter.count, job.max_tokens, known.vocabulary_size if known else ANY_VOCABULARY)
    with reporter:
        with Encoder(known, key, processes) as encoder:
            for documents in encoder.in_ids(pieces):
                gatherer.add(documents)
        if builder.tokens == 0:
            raise IngestError("the corpus is empty: it holds no token")
        return _write(builder, job.result, reporter)


def seal(job: SealJob, reporter: Reporter) -> Built:
    """Raises IngestError."""
    builder = SegmentBuilder(job.fingerprint)
    gatherer = Gatherer(builder, reporter.count, ANY_TOKENS)
    with reporter:
        for documents in read_columns(job.columns, ReadLimits(ANY_TOKENS)):
            gatherer.add(documents)
        return _write(builder, job.result, reporter)


def rebuild(job: RebuildJob, reporter: Reporter) -> Built:
    """Writes nothing if nothing is left."""
    segments = [Segment.open(path) for path in job.inputs]
    builder = SegmentBuilder(segments[0].fingerprint)
    dropped: set[str] = set()
    with reporter:
        for segment in segments:
            picked = np.zeros(segment.documents, np.bool_)
            if job.dropped is not None:
                picked |= job.dropped.picks(segment.times(), segment.labelled)
                if job.dropped.names is not None:
                    dropped.update(compress(segment.labels(), picked))
            builder.add_segment(segment, ~picked)
            reporter.count.documents, reporter.count.tokens = builder.documents, builder.tokens
        return _write(builder, job.result, reporter).model_copy(update={"dropped": frozenset(dropped)})


def _write(builder: SegmentBuilder, folder: Path, reporter: Reporter) -> Built:
    built = Built(documents=builder.documents, tokens=builder.tokens)
    reporter.building()
    if built.tokens:
        builder.write(folder / SEGMENT)
    return built


def _opened(
    request: LoadRequest, limits: ReadLimits, position: Position
) -> tuple[CorpusKey, str | None, Iterator[Piece]]:
    """Whose documents they are, the tokenizer that is stated for them, and themselves."""
    source = request.source
    if isinstance(source, LoadPost):
        posted = PostedCorpus(source.body.read_bytes(), source.directories)
        return posted.key, posted.tokenizer, posted.documents(limits, position)
    assert request.key is not None, "only a post names its corpus itself"
    if isinstance(source, LoadFile):
        pieces = read_path(source.path, limits, position)
    elif isinstance(source, LoadUpload):
        pieces = read_upload(source.body, source.name, limits, position)
    else:
        pieces = read_columns(source.folder, limits)
    return request.key, request.tokenizer, pieces


def _namespaces(stated: str | None, known: KnownTokenizer | None) -> tuple[str | None, ...]:
    """Tokenizers of the namespaces that get the corpus; without a stated one also that of who states none."""
    if stated is not None:
        return (stated,)
    return (None,) if known is None else (None, known.fingerprint)
