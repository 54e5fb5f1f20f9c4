"""Opens and re-opens requests: what a DraftSync says, checked field by field and handed to the core."""

import math
from dataclasses import dataclass

import numpy as np

from draftd import native
from draftd.config import DraftingSettings
from draftd.engine.namespaces import Namespaces, TokenizerMismatch, UnknownCorpus
from draftd.engine.policy import policy_of
from draftd.wire import DraftSync, Namespace, RowError, Shape, Share, Status, check_label

MOST_STOP_IDS = 256  # each is compared with every committed token


@dataclass(frozen=True, slots=True)
class Opener:
    """Turns a DraftSync into a session of the core."""

    core: native.Engine
    namespaces: Namespaces
    memory_limit: int  # bytes
    drafting: DraftingSettings

    def open(self, verifier: int, sync: DraftSync, now: float, *, takes_trees: bool) -> RowError | None:
        """Opens the request, or answers the error of its row; then nothing is changed."""
        try:
            status, message = self._open(verifier, sync, now, takes_trees)
        except TokenizerMismatch as mismatch:
            status, message = Status.TOKENIZER_MISMATCH, str(mismatch)
        except UnknownCorpus as unknown:
            status, message = Status.UNKNOWN_CORPUS, str(unknown)
        except ValueError as invalid:
            status, message = Status.INVALID_ARGUMENT, str(invalid)
        if status == Status.OK:
            return None
        return RowError(request=sync.request, epoch=sync.epoch, status=status, message=message)

    def _open(self, verifier: int, sync: DraftSync, now: float, takes_trees: bool) -> tuple[Status, str]:
        check_fields(sync)
        namespace = namespace_of(sync)
        self.namespaces.check_tokenizer(namespace, sync.vocabulary_size)
        status, detail = self.core.open(
            verifier=verifier,
            request=sync.request,
            epoch=sync.epoch,
            namespace=self.namespaces.number(namespace),
            label=sync.request_id,
            vocabulary_size=sync.vocabulary_size,
            prompt=sync.prompt,
            output=sync.output,
            stop_ids=sync.stop_ids,
            max_new_tokens=sync.max_new_tokens if sync.HasField("max_new_tokens") else None,
            chain=sync.shape == Shape.SHAPE_CHAIN or not takes_trees,
            max_nodes=sync.max_nodes,
            policy=policy_of(sync, self.drafting),
            share=sync.share,
            group=sync.group,
            hide_history=sync.hide_history,
            corpora=self.namespaces.corpora(namespace, sync.corpora) if sync.named_corpora else None,
            now=now,
        )
        return Status(status), self._message(sync, Status(status), detail)

    def _message(self, sync: DraftSync, status: Status, detail: int) -> str:
        match status:
            case Status.OK:
                return ""
            case Status.INVALID_TOKEN:
                token = np.frombuffer(sync.prompt + sync.output, "<i4")[detail]
                limit = sync.vocabulary_size or 2**31 - 1
                return f"token {detail} of prompt and output is {token}, outside [0, {limit})"
            case Status.STALE_EPOCH:
                return f"epoch {sync.epoch} is older than the one open"
            case _:
                return f"{detail} tokens do not fit into engine.memory_limit ({self.memory_limit} bytes)"


def namespace_of(sync: DraftSync) -> Namespace:
    """Raises ValueError for a name that can't be one."""
    return Namespace(sync.tenant, sync.model, sync.tokenizer or None, sync.adapter)


def check_fields(sync: DraftSync) -> None:
    """Raises ValueError naming the field."""
    for field in ("request_id", "group"):
        try:
            check_label(getattr(sync, field))
        except ValueError as error:
            raise ValueError(f"{field}: {error}") from None
    if sync.shape not in list(Shape):
        raise ValueError(f"shape: {sync.shape} is no Shape")
    if sync.share not in list(Share):
        raise ValueError(f"share: {sync.share} is no Share")
    if sync.share == Share.GROUP and not sync.group:
        raise ValueError("share: GROUP needs a group")
    if sync.HasField("temperature") and not (math.isfinite(sync.temperature) and sync.temperature >= 0):
        raise ValueError(f"temperature: {sync.temperature} is not a finite number >= 0")
    if len(sync.stop_ids) > 4 * MOST_STOP_IDS:
        raise ValueError(f"stop_ids: {len(sync.stop_ids) // 4} ids; at most {MOST_STOP_IDS}")
    if sync.corpora and not sync.named_corpora:
        raise ValueError("corpora: given, but named_corpora is not set")
