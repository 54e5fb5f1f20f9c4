"""What a request states when it opens."""

from collections.abc import Sequence
from typing import Any, Literal, TypedDict

from draftd.client.columns import token_column
from draftd.client.option_checks import PRESETS, SHAPES, SHARES, check_options
from draftd.wire import DraftSync, Namespace

PresetName = Literal["learned", "suffix_decoding", "ngram_bfs", "ngram_prob"]

_POLICY = ("max_depth", "max_breadth", "min_survival", "max_spec_factor", "min_token_prob")


class OpenOptions(TypedDict, total=False):
    """Keywords of `open`, all optional."""

    tenant: str  # instead of the client's
    adapter: str  # instead of the client's
    group: str  # requests of one group may share a history of their own
    stop_ids: Sequence[int]  # the first one committed ends the text
    max_new_tokens: int | None  # length limit of the output; None: none
    shape: Literal["tree", "chain"]
    max_nodes: int | None  # most nodes of a draft; None: as many as a step asks for
    share: Literal["outputs", "group", "all", "none"]  # what of its text enters the history; its output while it runs,
    # too. Counts, which hold no text, are learned from every request; drafting.learning switches that off.
    history: bool  # may its drafts read the history?
    corpora: Literal["all"] | Sequence[str]  # which of its namespace's corpora its drafts read
    temperature: float | None
    # How its trees are made; None: as the server is configured. docs/presets.md tells of the presets.
    preset: PresetName | None
    max_depth: int | None  # nodes on one path
    max_breadth: int | None  # children of one node
    min_survival: float | None  # nodes less likely to be accepted are not drafted; a step's min_survival counts too
    max_spec_factor: float | None  # of suffix_decoding: most nodes for each token of the match, 0 to 1e9; None: 1.0
    min_token_prob: float | None  # of suffix_decoding: nodes below are not drafted; None: 0.1


def refuse_wait_and_hold(request_id: str, wait: bool, hold: bool) -> None:
    """Raises ValueError for an opening that should be sent at once and not at once."""
    if wait and hold:
        raise ValueError(f"open({request_id!r}): wait and hold exclude each other; give one of them")


def opening_message(request_id: str, namespace: Namespace, vocabulary_size: int, options: OpenOptions) -> DraftSync:
    """The DraftSync of a new request, still without handle, epoch and text.

    Raises ValueError for an argument that can't be meant, TypeError for an unknown one and an id that is no string.
    """
    check_options(request_id, options)
    max_nodes, corpora, preset = options.get("max_nodes"), options.get("corpora", "all"), options.get("preset")
    policy: dict[str, Any] = {name: options.get(name) for name in _POLICY}
    return DraftSync(
        request_id=request_id,
        tenant=options.get("tenant", namespace.tenant),
        model=namespace.model,
        tokenizer=namespace.tokenizer or "",
        adapter=options.get("adapter", namespace.adapter),
        vocabulary_size=vocabulary_size,
        group=options.get("group", ""),
        stop_ids=token_column(list(options.get("stop_ids", ()))),
        max_new_tokens=options.get("max_new_tokens"),
        shape=SHAPES[options.get("shape", "tree")],
        max_nodes=max_nodes or 0,
        share=SHARES[options.get("share", "outputs")],
        hide_history=not options.get("history", True),
        named_corpora=corpora != "all",
        corpora=() if corpora == "all" else corpora,
        temperature=options.get("temperature"),
        preset=None if preset is None else PRESETS[preset],
        **policy,
    )
