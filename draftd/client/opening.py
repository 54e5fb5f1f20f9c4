"""What a request states when it opens."""

from collections.abc import Sequence
from typing import Any, Literal, TypedDict

from numpy.typing import ArrayLike

from draftd.client.columns import prompt_column, token_column
from draftd.wire import DraftSync, Namespace, Preset, Shape, Share

PresetName = Literal["learned", "suffix_decoding", "ngram_bfs", "ngram_prob"]

_SHAPES = {"tree": Shape.SHAPE_TREE, "chain": Shape.SHAPE_CHAIN}
_PRESETS = {preset.name.lower(): preset for preset in Preset}
_SHARES = {"outputs": Share.OUTPUTS, "group": Share.GROUP, "all": Share.ALL, "none": Share.NOTHING}
_POLICY_NUMBERS: dict[str, tuple[float, float]] = {  # and their limits
    "max_depth": (1, 2**32 - 1),
    "max_breadth": (1, 2**32 - 1),
    "min_survival": (0.0, 1.0),
    "max_spec_factor": (0.0, 1e9),
    "min_token_prob": (0.0, 1.0),
}
_OF_SUFFIX_DECODING = ("max_spec_factor", "min_token_prob")


class OpenOptions(TypedDict, total=False):
    """Keywords of `open`, all optional."""

    tenant: str  # instead of the client's
    adapter: str  # instead of the client's
    group: str  # requests of one group may share a history of their own
    stop_ids: Sequence[int]  # the first one committed ends the text
    max_new_tokens: int | None  # length limit of the output; None: none
    shape: Literal["tree", "chain"]
    max_nodes: int | None  # most nodes of a draft; None: as many as a step asks for
    share: Literal["outputs", "group", "all", "none"]  # what of it enters the history; its output while it runs, too
    history: bool  # may its drafts read the history?
    corpora: Literal["all"] | Sequence[str]  # which of its namespace's corpora its drafts read
    temperature: float | None
    # How its trees are made; None: as the server is configured. docs/presets.md tells of the presets.
    preset: PresetName | None
    max_depth: int | None  # nodes on one path
    max_breadth: int | None  # children of one node
    min_survival: float | None  # nodes less likely to be accepted are not drafted; a step's min_survival counts too
    max_spec_factor: float | None  # of suffix_decoding: most nodes for each token of the match; None: 1.0
    min_token_prob: float | None  # of suffix_decoding: nodes below are not drafted; None: 0.1


def refuse_wait_and_hold(request_id: str, wait: bool, hold: bool) -> None:
    """Raises ValueError for an opening that should be sent at once and not at once."""
    if wait and hold:
        raise ValueError(f"open({request_id!r}): wait and hold exclude each other; give one of them")


def opening_message(
    request_id: str, prompt: ArrayLike, namespace: Namespace, vocabulary_size: int, options: OpenOptions
) -> DraftSync:
    """The DraftSync of a new request, still without handle, epoch and output.

    Raises ValueError for an argument that can't be meant, TypeError for an unknown one and an id that is no string.
    """
    if not isinstance(request_id, str):
        raise TypeError(f"open({request_id!r}): the request's id should be a string")
    unknown = set(options) - set(OpenOptions.__annotations__)
    if unknown:
        raise TypeError(f"open({request_id!r}): unknown option {', '.join(sorted(unknown))}")
    shape, share = options.get("shape", "tree"), options.get("share", "outputs")
    if shape not in _SHAPES:
        raise ValueError(f"open({request_id!r}): shape is {shape!r}; choose one of {', '.join(_SHAPES)}")
    if share not in _SHARES:
        raise ValueError(f"open({request_id!r}): share is {share!r}; choose one of {', '.join(_SHARES)}")
    if share == "group" and not options.get("group"):
        raise ValueError(f"open({request_id!r}): share='group' without a group; name it with group=")
    max_nodes = options.get("max_nodes")
    if max_nodes is not None and max_nodes < 1:
        raise ValueError(f"open({request_id!r}): max_nodes is {max_nodes}; give at least 1, or None for no limit")
    max_new_tokens = options.get("max_new_tokens")
    if max_new_tokens is not None and max_new_tokens < 0:
        raise ValueError(f"open({request_id!r}): max_new_tokens is {max_new_tokens}; give 0 or more, or None")
    corpora = options.get("corpora", "all")
    if isinstance(corpora, str) and corpora != "all":
        raise ValueError(f"open({request_id!r}): corpora is {corpora!r}; give 'all' or a list of corpus ids")
    preset = options.get("preset")
    if preset is not None and preset not in _PRESETS:
        raise ValueError(f"open({request_id!r}): preset is {preset!r}; choose one of {', '.join(_PRESETS)}")
    return DraftSync(
        request_id=request_id,
        tenant=options.get("tenant", namespace.tenant),
        model=namespace.model,
        tokenizer=namespace.tokenizer or "",
        adapter=options.get("adapter", namespace.adapter),
        vocabulary_size=vocabulary_size,
        prompt=prompt_column(prompt),
        group=options.get("group", ""),
        stop_ids=token_column(options.get("stop_ids", ())),
        max_new_tokens=max_new_tokens,
        shape=_SHAPES[shape],
        max_nodes=max_nodes or 0,
        share=_SHARES[share],
        hide_history=not options.get("history", True),
        named_corpora=corpora != "all",
        corpora=() if corpora == "all" else corpora,
        temperature=options.get("temperature"),
        preset=None if preset is None else _PRESETS[preset],
        **_policy_numbers(request_id, options),
    )


def _policy_numbers(request_id: str, options: OpenOptions) -> dict[str, Any]:
    """What is stated of them. Raises ValueError for a number that can't be meant."""
    said: dict[str, Any] = {
        name: value for name, value in options.items() if name in _POLICY_NUMBERS and value is not None
    }
    for name, value in said.items():
        least, most = _POLICY_NUMBERS[name]
        if not least <= value <= most:
            raise ValueError(f"open({request_id!r}): {name} is {value}; give a number from {least} to {most}")
        if name in _OF_SUFFIX_DECODING and options.get("preset") not in (None, "suffix_decoding"):
            raise ValueError(f"open({request_id!r}): {name} is for preset='suffix_decoding' alone")
    return said
