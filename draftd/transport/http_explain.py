"""Why a draft was made: for a text, what a request of it would be drafted now, and what each source knows of it."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal, Self

import numpy as np
from pydantic import Field, model_validator
from starlette.requests import Request
from starlette.responses import Response

from draftd.client.opening import PresetName
from draftd.corpora import CorpusLibrary
from draftd.engine import (
    Evidence,
    Explainer,
    Explanation,
    TokenizerMismatch,
    UnknownCorpus,
    UnknownNamespace,
)
from draftd.ingest import IngestError, KnownTokenizer
from draftd.ingest.child import NICENESS
from draftd.ingest.tokenizer_process import TokenizerProcess
from draftd.observe.readiness import Readiness
from draftd.observe.words import counted
from draftd.transport.http_answer import Answers, NotFound, Shape, success
from draftd.transport.http_body import small_body
from draftd.transport.http_fields import Fields, ListOf, parsed, token_ids
from draftd.wire import DraftSync, Preset, Reason
from draftd.wire import Shape as DraftShape

LONGEST_BODY = 1 << 20  # bytes

_WHY_EMPTY = {
    Reason.NO_MATCH: "nothing that it reads says how the text goes on",
    Reason.STOPPED: "its output holds a stop id: the text has ended",
    Reason.BELOW_THRESHOLD: "every candidate is below min_survival",
}


class Question(Fields):
    """What a request states when it opens, with its text: as `text`, or as `token_ids`."""

    tenant: str = "default"
    model: str = "default"
    adapter: str = ""
    tokenizer: str | None = None
    text: str | None = None
    token_ids: ListOf[int] | None = None
    output_tokens: int | None = Field(default=None, ge=0)  # the last ones; not stated: one, if there is one
    group: str = ""
    history: bool = True
    corpora: ListOf[str] | None = None  # not stated: all
    stop_ids: ListOf[int] = Field(default=[])
    shape: Literal["tree", "chain"] = "tree"
    max_nodes: int = Field(default=16, ge=1, lt=2**32)
    # Not stated: as the server is configured.
    preset: PresetName | None = None
    max_depth: int | None = Field(default=None, ge=1, lt=2**32)
    max_breadth: int | None = Field(default=None, ge=1, lt=2**32)
    min_survival: float | None = None
    max_spec_factor: float | None = None
    min_token_prob: float | None = None

    @model_validator(mode="after")
    def _one_text(self) -> Self:
        if (self.text is None) == (self.token_ids is None):
            raise ValueError("give either text or token_ids")
        return self


class Explanations:
    """The route."""

    def __init__(self, explainer: Explainer, library: CorpusLibrary, readiness: Readiness) -> None:
        self._explainer = explainer
        self._library = library
        self._answers = Answers(readiness)
        self._turn = asyncio.Lock()  # each may start a tokenizer: one at a time

    async def explain(self, request: Request) -> Response:
        async def call() -> Response:
            body = await small_body(request, LONGEST_BODY)
            async with self._turn:
                return success(await asyncio.to_thread(self._explained, body))

        return await self._answers.of(request, call)

    def _explained(self, body: bytes) -> Shape:
        """Raises IngestError or NotFound."""
        question = parsed(body, Question)
        known = self._library.tokenizer_of(question.tenant, question.model)
        with _tokenizer(known) as tokenizer:
            ids = _ids(question, tokenizer)
            explanation = self._asked(question, ids, known)
            drafted = [node.token for node in explanation.nodes]
            texts = tokenizer.spell(drafted) if tokenizer is not None else [None] * len(drafted)
        return _shape(explanation, len(ids), texts)

    def _asked(self, question: Question, ids: Sequence[int], known: KnownTokenizer | None) -> Explanation:
        output = min(1, len(ids)) if question.output_tokens is None else question.output_tokens
        if output > len(ids):
            raise IngestError(f"output_tokens: {output} of a text of {counted(len(ids), 'token')}")
        text = token_ids("token_ids", ids).tobytes()
        prompt = 4 * (len(ids) - output)
        sync = DraftSync(
            tenant=question.tenant,
            model=question.model,
            tokenizer=question.tokenizer or "",
            adapter=question.adapter,
            vocabulary_size=known.vocabulary_size if known is not None else 0,
            prompt=text[:prompt],
            output=text[prompt:],
            stop_ids=token_ids("stop_ids", question.stop_ids).tobytes(),
            group=question.group,
            hide_history=not question.history,
            named_corpora=question.corpora is not None,
            corpora=question.corpora or (),
            shape=DraftShape.SHAPE_CHAIN if question.shape == "chain" else DraftShape.SHAPE_TREE,
            max_nodes=question.max_nodes,
            preset=None if question.preset is None else Preset[question.preset.upper()],
            max_depth=question.max_depth,
            max_breadth=question.max_breadth,
            min_survival=question.min_survival,
            max_spec_factor=question.max_spec_factor,
            min_token_prob=question.min_token_prob,
        )
        try:
            return self._explainer.explain(sync)
        except (UnknownNamespace, UnknownCorpus) as unknown:
            raise NotFound(str(unknown)) from None
        except (TokenizerMismatch, ValueError) as invalid:
            raise IngestError(str(invalid)) from None


@contextmanager
def _tokenizer(known: KnownTokenizer | None) -> Iterator[TokenizerProcess | None]:
    if known is None:
        yield None
        return
    with TokenizerProcess(known, niceness=NICENESS) as process:
        yield process


def _ids(question: Question, tokenizer: TokenizerProcess | None) -> Sequence[int]:
    """Raises IngestError."""
    if question.token_ids is not None:
        return question.token_ids
    assert question.text is not None, "one of both is given"
    if tokenizer is None:
        raise IngestError(
            f"text needs a tokenizer, and none is configured for tenant {question.tenant!r} and model "
            f'{question.model!r}: set tokenizers = [{{path = "tokenizer.json"}}] in the config file, or give token_ids'
        )
    try:
        question.text.encode()
    except UnicodeEncodeError as error:
        raise IngestError(f"text: no valid text at character {error.start}") from None
    (packed,) = tokenizer.encode([question.text])
    ids: list[int] = np.frombuffer(packed, np.int32).tolist()
    return ids


def _shape(explanation: Explanation, context: int, texts: Sequence[str | None]) -> Shape:
    why = _WHY_EMPTY.get(explanation.reason, explanation.reason.name)
    nodes = counted(len(explanation.nodes), "node") if explanation.nodes else f"an empty draft: {why}"
    return {
        "message": f"{counted(context, 'token')} of context, {nodes}",
        "context_tokens": context,
        "reason": explanation.reason.name,
        "sources": [
            {
                "source": read.source.name.lower(),
                "corpus_id": read.corpus,
                "running": read.running,
                "tokens": read.tokens,
                "documents": read.documents,
            }
            for read in explanation.sources
        ],
        "nodes": [
            {
                "token_id": node.token,
                "text": text,
                "parent": node.parent,
                "survival": node.survival,
                "source": node.source.name.lower(),
                "evidence": [_evidence(evidence) for evidence in node.evidence],
            }
            for node, text in zip(explanation.nodes, texts, strict=True)
        ],
    }


def _evidence(evidence: Evidence) -> Shape:
    last = evidence.last
    return {
        "source": evidence.source.name.lower(),
        "corpus_id": evidence.corpus,
        "running": evidence.running,
        "match_length": evidence.length,
        "count": evidence.count,
        "total": evidence.total,
        "document": None if last is None else last.label,
        "position": None if last is None else last.position,
        "time": None if last is None else last.time,
    }
