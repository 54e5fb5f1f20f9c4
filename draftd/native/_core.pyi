from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import SupportsIndex, overload

import numpy as np
from numpy.typing import NDArray

class IntegrityError(RuntimeError):
    """A structure does not keep its own promises: a defect, or damaged memory."""

class Level:
    """One context of a match: a suffix of the query with its own set of occurrences."""

    @property
    def length(self) -> int:
        """Tokens of the context."""
    @property
    def total(self) -> int:
        """Occurrences that are followed by a token of their document."""
    @property
    def distinct(self) -> int:
        """Different followers."""
    @property
    def continuations(self) -> list[tuple[int, int, int]]:
        """(token, count, last position), most frequent first, ties to the more recent."""

class Index:
    """The live index: a suffix automaton over documents of token ids.

    Grows by `append` and `end_document`; nothing is ever taken out. Not to be appended to from two threads at once,
    nor while an engine reads it.
    """

    def __init__(self) -> None: ...
    def append(self, tokens: NDArray[np.int32] | Sequence[int]) -> None:
        """Extends the open document by int32[n] ids >= 0.

        ValueError names a negative id, or says that the index is full; what fitted is indexed then."""
    def end_document(self) -> None:
        """The next token starts a new document; no match crosses the end."""
    def match(self, context: NDArray[np.int32] | Sequence[int]) -> list[Level]:
        """The contexts that are suffixes of `context`, longest first, the empty one last; at most 64 tokens long."""
    def frequent_tokens(self) -> list[tuple[int, int]]:
        """The 24 most frequent (token, count), ties to the more recent."""
    @property
    def tokens(self) -> int: ...
    @property
    def documents(self) -> int: ...
    @property
    def states(self) -> int: ...
    @property
    def edges(self) -> int: ...
    def memory_size(self) -> int:
        """Bytes."""
    def check_integrity(self) -> None:
        """Raises IntegrityError that names the first broken invariant."""

class SegmentError(ValueError):
    """A file that can't be used as a segment: the message names the file, the section and what is wrong there."""

class Segment:
    """A sealed segment: documents that don't change any more, in one file that is mapped into memory. Thread-safe.

    The file may be unlinked while it is open, but not written to or cut.
    """

    @staticmethod
    def open(path: Path | str) -> Segment:
        """Maps the file and verifies all of it. SegmentError if it can't be used, OSError if it can't be read."""
    def token_ids(self) -> NDArray[np.int32]:
        """Of all documents, joined."""
    def document_ends(self) -> NDArray[np.int64]:
        """Running ends of the documents in `token_ids()`."""
    def labels(self) -> list[str]: ...
    def times(self) -> NDArray[np.int64]:
        """Unix seconds."""
    def labelled(self, labels: list[str]) -> NDArray[np.bool_]:
        """Which documents have one of these labels; what `labels()` would tell, without Python's lock."""
    def frequent_tokens(self) -> list[tuple[int, int]]:
        """The 24 most frequent (token, count), ties to the more recent."""
    @property
    def tokens(self) -> int: ...
    @property
    def documents(self) -> int: ...
    @property
    def distinct_tokens(self) -> int: ...
    @property
    def memory_size(self) -> int:
        """Bytes: of the file, which is mapped, and of the object."""
    @property
    def fingerprint(self) -> str:
        """Of the tokenizer; empty: not stated."""
    @property
    def path(self) -> Path: ...

class SegmentBuilder:
    """Collects documents and writes them as one segment. Not to be used from two threads at once."""

    def __init__(self, fingerprint: str) -> None:
        """`fingerprint` is the tokenizer's; empty: not stated."""
    def add(
        self,
        token_ids: NDArray[np.int32],
        document_ends: NDArray[np.int64],
        labels: Sequence[str],
        times: NDArray[np.int64],
    ) -> None:
        """Adds documents given as columns; those without tokens are skipped. `document_ends` are running ends.

        ValueError names what does not fit and adds nothing; or says that the segment is full, of which what fitted is
        added then."""
    def add_segment(self, segment: Segment, keep: NDArray[np.bool_]) -> None:
        """Adds the documents of another segment that have True in `keep`."""
    def write(self, path: Path | str) -> None:
        """Sorts, creates the file and has it on disk when it returns; the builder is empty then.

        OSError if the file exists or can't be written; nothing is left of it. ValueError if there are no tokens."""
    @property
    def tokens(self) -> int: ...
    @property
    def documents(self) -> int: ...
    @property
    def memory_size(self) -> int:
        """Bytes; writing takes up to twice as many, and more for a segment of few tokens."""

def nearest(segments: Sequence[Segment], context: Sequence[int] | NDArray[np.int32]) -> list[tuple[int, int]]:
    """The 16 places in sealed text that agree with the context longest, as (length, age), longest first.

    `length`: tokens of the context that stand there, at most 64. `age`: slot of the token that follows, counted
    through the segments from the oldest on."""

def pack_tokens(rows: Iterable[Iterable[SupportsIndex]]) -> tuple[bytes, bytes]:
    """Rows of token ids as columns: i32[tokens], and u32[rows], where each row ends in it.

    An id that 32 bits don't hold becomes -1. Raises TypeError for what is no row of integers."""

def check_tails(
    epoch: bytes,
    base: bytes,
    status: bytes,
    reason: bytes,
    kind: bytes,
    node_end: bytes,
    tokens: bytes,
    parents: bytes,
    survival: bytes,
    source: bytes,
    vocabulary_size: int,
) -> None:
    """Raises ValueError where columns of a DraftTail disagree, or would harm a verifier: a node that is no token of the
    vocabulary (0: of unknown size), or does not come after its parent."""

class Tails:
    """Tails of one step as packed columns; see DraftTail in proto/draftd/v1/draft.proto."""

    @property
    def base(self) -> bytes: ...
    @property
    def status(self) -> bytes: ...
    @property
    def reason(self) -> bytes: ...
    @property
    def kind(self) -> bytes: ...
    @property
    def detail(self) -> bytes:
        """u32[n]: with INVALID_TOKEN, the position of the id in the row's tokens."""
    @property
    def allowed(self) -> bytes:
        """u16[n]: nodes that the row might have had; 0: `reason` says why none."""
    @property
    def accepted(self) -> bytes:
        """i16[n]: nodes that the text went through, of the tail that the commit used; -1: it used neither the row's
        last nor the one before. Of the latter those count, too, that the tokens committed in between went through."""
    @property
    def node_end(self) -> bytes: ...
    @property
    def tokens(self) -> bytes: ...
    @property
    def parents(self) -> bytes: ...
    @property
    def survival(self) -> bytes: ...
    @property
    def source(self) -> bytes: ...

class StepColumns:
    """The columns of a VerifyCommit (see proto/draftd/v1/draft.proto), known to fit together."""

    def __init__(
        self,
        request: bytes,
        epoch: bytes,
        start: bytes,
        token_end: bytes,
        tokens: bytes,
        tail_base: bytes,
        verified: bytes,
        bitmap_end: bytes,
        bitmap: bytes,
        max_nodes: bytes,
    ) -> None:
        """ValueError names the column that does not fit."""

class StepCost:
    """What a step of the verifier costs, by the tokens that it processes."""

    def __init__(
        self, tokens: bytes, micros: bytes, drafting_micros: float = 0.0, other_tokens: int = 0, widths: bytes = b""
    ) -> None:
        """A step of up to tokens[i] (u32[n], ascending, from 1 on) takes micros[i] (f32[n], positive, never falling),
        and `drafting_micros` more as soon as a node is verified in it; no step gets longer than the last entry.
        `other_tokens` of the step come beside its rows' own. The verifier pads all rows to one of `widths` (u16[n],
        ascending); empty: it pads none. ValueError says what is no table."""

class Tapes:
    """Windows of text as packed columns, and what was taken away; see DraftTape in proto/draftd/v1/draft.proto."""

    @property
    def window_end(self) -> bytes: ...
    @property
    def token_end(self) -> bytes: ...
    @property
    def tokens(self) -> bytes: ...
    @property
    def corpus(self) -> bytes: ...
    @property
    def version(self) -> bytes: ...
    @property
    def reader(self) -> bytes: ...
    @property
    def reader_epoch(self) -> bytes: ...
    @property
    def reads(self) -> bytes: ...
    @property
    def reads_version(self) -> bytes: ...
    @property
    def news(self) -> int: ...

class HistoryDocuments:
    """Documents of one head of a history, as columns; draftd.wire.HistoryDocuments says more."""

    @property
    def namespace(self) -> int: ...
    @property
    def group(self) -> str: ...
    @property
    def generation(self) -> int: ...
    @property
    def token_ids(self) -> NDArray[np.int32]: ...
    @property
    def document_ends(self) -> NDArray[np.int64]: ...
    @property
    def labels(self) -> list[str]: ...
    @property
    def times(self) -> NDArray[np.int64]: ...

class HistoryState:
    """What one history holds; draftd.wire.HistoryState says more."""

    @property
    def namespace(self) -> int: ...
    @property
    def group(self) -> str: ...
    @property
    def generation(self) -> int: ...
    @property
    def head_tokens(self) -> int: ...
    @property
    def head_bytes(self) -> int: ...
    @property
    def frozen_tokens(self) -> int: ...
    @property
    def segments(self) -> int: ...
    @property
    def oldest(self) -> int: ...

class DocumentPlace:
    """A token in a document. Of the request's own text, which has no label and no time, or of what it reads."""

    @property
    def label(self) -> str: ...
    @property
    def position(self) -> int:
        """From 0 on."""
    @property
    def time(self) -> int | None:
        """Of the document, unix seconds."""

class Evidence:
    """What one source knows of a drafted node: what follows the longest suffix of the text before it that the node's
    token follows there."""

    @property
    def source(self) -> int:
        """Source code."""
    @property
    def corpus(self) -> int:
        """Number of a corpus; 0: it is none."""
    @property
    def running(self) -> bool:
        """Of what requests have generated that still run."""
    @property
    def length(self) -> int:
        """Tokens of that suffix, at most 64; 0 for a fill."""
    @property
    def count(self) -> int:
        """How often the token follows it."""
    @property
    def total(self) -> int:
        """How often any token of the same document does."""
    @property
    def last(self) -> DocumentPlace | None:
        """Where the token followed most recently; None for a fill and for running requests."""

class ExplainedNode:
    """A drafted node, and what each source knows of it, the longest context first."""

    @property
    def token(self) -> int: ...
    @property
    def parent(self) -> int:
        """Index in the tree; -1: the text's end."""
    @property
    def source(self) -> int:
        """Source code of the longest context that proposed it."""
    @property
    def survival(self) -> float: ...
    @property
    def evidence(self) -> list[Evidence]: ...

class ReadSource:
    """Text that was read for a draft."""

    @property
    def source(self) -> int:
        """Source code."""
    @property
    def corpus(self) -> int:
        """Number of a corpus; 0: it is none."""
    @property
    def running(self) -> bool:
        """Of a history: what requests have generated that still run."""
    @property
    def tokens(self) -> int: ...
    @property
    def documents(self) -> int: ...

class Explanation:
    """A draft and why it was made."""

    @property
    def reason(self) -> int:
        """Reason code: why there is no node."""
    @property
    def sources(self) -> list[ReadSource]: ...
    @property
    def nodes(self) -> list[ExplainedNode]:
        """Parents first."""

class DraftPolicy:
    """How a request wants its trees made. Limits are at least 1; the presets are those of the catalogue."""

    def __init__(
        self,
        *,
        preset: int = 0,
        max_depth: int = 2**32 - 1,
        max_breadth: int = 2**32 - 1,
        min_survival: float = 0.0,
        max_spec_factor: float = 1.0,
        min_token_prob: float = 0.1,
    ) -> None:
        """`max_depth` limits the nodes on one path, `max_breadth` the children of one node. Nodes below `min_survival`
        are not drafted. `suffix_decoding` drafts at most `max_spec_factor` nodes for each token of a match, and none
        below `min_token_prob`."""

class Model:
    """What a namespace learned, as numbers. Nothing in it changes.

    Cells count, for each kind of evidence, how often it was right; weights mix them. What the kinds are, and how many
    numbers of each kind there are, is a matter of the version: take them from a model, and put them into another.
    """

    @overload
    def __init__(self) -> None:
        """The start set by hand."""
    @overload
    def __init__(
        self,
        *,
        hits: NDArray[np.float32],
        trials: NDArray[np.float32],
        agreement: NDArray[np.float32],
        standing: NDArray[np.float32],
        correction: NDArray[np.float32],
        lessons: int,
    ) -> None:
        """ValueError for numbers that no model has, or another count of them."""
    @staticmethod
    def load(saved: bytes) -> Model:
        """ValueError for bytes that `save` of this version did not write."""
    def save(self) -> bytes: ...
    @property
    def hits(self) -> NDArray[np.float32]:
        """[cells] A copy, as all of them."""
    @property
    def trials(self) -> NDArray[np.float32]:
        """[cells]"""
    @property
    def agreement(self) -> NDArray[np.float32]:
        """[sets, inputs] Weights."""
    @property
    def standing(self) -> NDArray[np.float32]:
        """[sets, inputs] Weights that are added to them."""
    @property
    def correction(self) -> NDArray[np.float32]:
        """[knots] What is added to the logit of survival."""
    @property
    def lessons(self) -> int:
        """Nodes that were learned from."""

class Engine:
    """Sessions and namespaces by number; draftd.engine.Engine gives them names. Thread-safe. `now` is in seconds."""

    def __init__(
        self,
        session_ttl: float,
        memory_limit: int,
        history_limit: int,
        max_nodes: int,
        indexing_thread: bool = True,
        in_flight: bool = True,
        learning: bool = True,
        priors: bytes = b"",
        rest_after: int = 0,
        rest_steps: int = 0,
        long_run_tokens: int = 0,
        long_run_factor: float = 1.0,
        threads: int = 1,
    ) -> None:
        """`session_ttl` in seconds, limits in bytes. Without an indexing thread the caller drives `index_slice`.
        `in_flight`: running requests draft from what others have generated so far. `learning`: drafts are scored by
        what became of earlier ones. `priors`: a saved model that every namespace starts with; empty: a start set by
        hand. ValueError for bytes that are none. `threads` make the drafts of one step, the caller's included.

        Of paced steps: a request rests after `rest_after` drafts in a row without an accepted node (0: never) for
        `rest_steps` of its steps, then tries one more; each try that fails doubles the rest, up to 16 times. With more
        than `long_run_tokens` of output it may have `long_run_factor` (ValueError below 1) times the nodes that the
        step gives each."""
    def create_namespace(self) -> int: ...
    def publish_corpus(self, namespace: int, corpus: int, segments: Sequence[Segment]) -> None:
        """Visible at once and whole, oldest segment first. ValueError when the namespace is full."""
    def withdraw_corpus(self, namespace: int, corpus: int) -> None: ...
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
        policy: DraftPolicy = ...,
        share: int,
        group: str,
        hide_history: bool,
        corpora: list[int] | None,
        now: float,
    ) -> tuple[int, int]:
        """(status, detail); detail is the position in prompt + output with INVALID_TOKEN, their length with
        LIMIT_EXCEEDED. IndexError for a namespace that was not created."""
    def close(self, verifier: int, request: bytes, epoch: bytes, now: float, time: int) -> bytes:
        """u8[n] statuses for u32[n] handles and epochs; `time` in unix seconds, of what the requests leave behind."""
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
        """One step; `budget` 0: as many nodes as the rows ask for. With a `cost`, of those as many as let the step emit
        most tokens for each microsecond. With `most_nodes`, of each request, the step is paced: requests
        may rest, and long ones have more. GIL released."""
    def redraft(
        self,
        verifier: int,
        columns: StepColumns,
        tails: Tails,
        node_end: bytes,
        tokens: bytes,
        parents: bytes,
        survival: bytes,
        budget: int,
        min_survival: float,
        cost: StepCost | None = None,
    ) -> Tails:
        """Drafts once more for the rows of a step, which was answered with `tails`, from what a draft source has, too:
        of each row the nodes before node_end (u32[n]), tokens (i32) with the parents before them (i16, -1 is the root;
        empty: each row is a chain) and survivals (f32; empty: the source states none). A row whose text is no longer
        what it was gets NEED_SYNC. GIL released. ValueError names the column that does not fit."""
    def texts(self, verifier: int, request: bytes, epoch: bytes, start: bytes) -> tuple[bytes, bytes]:
        """The text of each request (u32[n]) from start (u32[n]) on, as far as it counts: where each row ends (u32[n]),
        and the tokens (i32). A request that is not open, or of another epoch, or ends before, has none. GIL
        released."""
    def explain(
        self,
        *,
        namespace: int,
        prompt: bytes,
        output: bytes,
        vocabulary_size: int,
        stop_ids: bytes,
        chain: bool,
        max_nodes: int,
        policy: DraftPolicy,
        group: str,
        hide_history: bool,
        corpora: list[int] | None,
    ) -> Explanation:
        """The draft that a request of that text and these options would get now, and why; nothing is changed.

        Takes milliseconds. GIL released. ValueError names an id outside [0, vocabulary_size), IndexError a namespace
        that was not created."""
    def tapes(self, verifier: int, request: bytes, epoch: bytes, windows: int, news: int) -> Tapes:
        """At most `windows` windows of text for each of u32[n] requests of u32[n] epochs, around the best matches of
        its text in what it may read; and what was taken away since `news` from any request of the verifier."""
    def expire(self, now: float) -> int: ...
    def ticket(self) -> int:
        """Stands for all text taken so far."""
    def indexed(self, ticket: int) -> bool: ...
    def wait_indexed(self, ticket: int, timeout: float) -> bool: ...
    def fileno(self) -> int:
        """A new eventfd that becomes readable when indexing makes progress; closed with the engine."""
    def index_slice(self, max_tokens: int) -> int:
        """Indexes up to that many tokens; returns how many jobs are left."""
    def stop_indexing(self) -> None: ...
    def statistics(self) -> dict[str, object]: ...
    def drain_history(self) -> list[HistoryDocuments]:
        """Whole documents that entered a history since the last drain, in order, by head."""
    def histories(self) -> list[HistoryState]: ...
    def freeze_history(self, namespace: int, group: str) -> HistoryDocuments | None:
        """The next head to be sealed; None when there is none, or the last one was not dropped yet."""
    def publish_history(
        self, namespace: int, group: str, segments: Sequence[Segment], *, drop_frozen: bool, now: float
    ) -> None:
        """Replaces the segments, oldest first, and drops what was frozen, at once."""
    def restore_history(
        self,
        *,
        namespace: int,
        group: str,
        generation: int,
        token_ids: NDArray[np.int32],
        document_ends: NDArray[np.int64],
        labels: list[str],
        times: NDArray[np.int64],
        now: float,
    ) -> None:
        """Adds documents that were drained in an earlier life. RuntimeError when some of this life wait to be
        drained, ValueError for columns that don't fit together."""
    def forget_requests(self, namespaces: list[int], group: str | None, labels: list[str]) -> set[str]:
        """Requests with these labels leave nothing behind; returns the labels of which there are any."""
    def lessons(self) -> list[tuple[int, int]]:
        """(namespace, lessons) of those that learned something; the lessons of the priors count too."""
    def learned(self, namespace: int) -> bytes:
        """A saved model; empty while the namespace learned nothing."""
    def restore_learned(self, namespace: int, saved: bytes, now: float) -> None:
        """Goes on from a saved model, unless nothing is to be learned. ValueError for bytes that are none."""
    def forget_learned(self, namespace: int) -> None: ...

def catalogue() -> dict[str, dict[str, int]]:
    """The codes the core uses, by enum and name."""

class RingBroken(ConnectionError):
    """The ring is of no more use: the peer is gone, or does not keep to the layout."""

def create_ring_memory() -> int:
    """A file descriptor, the caller's to close, of shared memory for one ring. Raises OSError where there is none."""

class Ring:
    """One end of a connection through shared memory: frames both ways. Used by one thread at a time."""

    def __init__(self, memory: int, socket: int, *, server: bool, longest_frame: int, spins: bool) -> None:
        """Maps the memory and takes the socket, a connected unix stream, which are file descriptors; that of the
        memory stays the caller's. `spins`: there is a processor to spare for short waits.

        Raises RingBroken for memory that is no ring, OSError where it can't be mapped; the socket then is the
        caller's still."""
    def send(self, frame: bytes) -> bool:
        """Never waits: what finds no room is kept, and written by later calls. False: 64 MiB are kept already.
        Raises RingBroken."""
    def receive(self, timeout: float, others: Sequence[int] = ()) -> bytes | None:
        """The next frame. None: none came within that many seconds (`math.inf`: no limit), or one of `others`, at
        most 4 file descriptors, can be read. Python's lock is released while it waits; with a timeout of 0 it only
        looks into the memory. Raises RingBroken once the peer is gone and all that it sent was received."""
    def flush(self, timeout: float, others: Sequence[int] = ()) -> bool:
        """Waits in the same way until nothing is kept; whether it is so. Raises RingBroken."""
    @property
    def unsent(self) -> int:
        """Bytes kept."""
    def close(self) -> None:
        """Unmaps the memory and ends the connection; what is kept is lost. Afterwards everything raises RingBroken."""

class NgramTexts:
    """Texts of requests, and where their n-grams stood: draftd.reference.ngram.NgramTexts says what is drafted.

    Not to be used from two threads at once."""

    def __init__(self, *, shortest: int, longest: int, newest: bool) -> None:
        """N-grams of `shortest` to `longest` tokens. ValueError unless 1 <= shortest <= longest <= 64."""
    def propose(
        self,
        request: NDArray[np.uint64],
        start: NDArray[np.uint32],
        token_end: NDArray[np.uint32],
        tokens: NDArray[np.int32],
        most: NDArray[np.uint32],
    ) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
        """Row i says that the text of request[i] is, from position start[i] on, its part of `tokens`, up to
        token_end[i], and ends with that; it gets at most most[i] nodes. Returns (node_end, tokens): a chain for each
        row.

        ValueError for columns that do not fit together, two rows of one request, and a row that starts behind the text
        that is known; nothing of the batch is taken then."""
    def forget(self, requests: NDArray[np.uint64]) -> None:
        """Their texts are empty again; that there is none is no error."""
    def memory_size(self) -> int:
        """Bytes."""

def ngram_continuation(
    text: NDArray[np.int32] | Sequence[int], most: int, *, shortest: int, longest: int, newest: bool
) -> NDArray[np.int32]:
    """What NgramTexts drafts for a text that is seen once, in one pass over it. ValueError as there."""
