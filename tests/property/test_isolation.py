"""Nothing of one namespace reaches a draft of another, nor what explains it, whatever happens.

Every namespace has tokens of its own. Contexts are made of tokens common to all, so that every request would match the
text of every other if it could see it.
"""

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ByteSize

from draftd.client import Namespace, Request
from draftd.client.local import LocalClient
from draftd.config import EngineSettings
from draftd.engine import Engine, UnknownNamespace
from draftd.wire import DraftSync
from tests.segments import sealed

SESSION_TTL = 600.0
SMALL = ByteSize(1 << 20)
"""A few long requests are enough to push out others."""

COMMON = 4
OWN_PER_NAMESPACE = 10

NAMESPACES = [
    Namespace("acme", "model"),
    Namespace("rival", "model"),
    Namespace("acme", "other model"),
    Namespace("acme", "model", tokenizer="fingerprint"),
    Namespace("acme", "model", adapter="a"),
    Namespace("acme", "model", adapter="b"),
]

Text = list[int]
"""Below COMMON: a common token; from there on: one of the namespace's own."""

texts = st.lists(st.integers(0, COMMON + OWN_PER_NAMESPACE - 1), min_size=1, max_size=8)
numbers = st.integers(0, len(NAMESPACES) - 1)
names = st.integers(0, 2)


@dataclass(frozen=True)
class Open:
    name: int
    namespace: int
    prompt: Text
    times: int
    group: str
    share: Literal["outputs", "group", "all", "none"]


@dataclass(frozen=True)
class Decode:
    """Commits to every open request and looks at what is drafted."""

    text: Text


@dataclass(frozen=True)
class Close:
    name: int
    namespace: int


@dataclass(frozen=True)
class Publish:
    namespace: int
    corpus: str
    documents: list[Text]


@dataclass(frozen=True)
class Withdraw:
    namespace: int
    corpus: str


@dataclass(frozen=True)
class Silence:
    """All verifiers are silent until their sessions are reclaimed."""


Action = Open | Decode | Close | Publish | Withdraw | Silence

openings = st.builds(
    Open,
    name=names,
    namespace=numbers,
    prompt=texts,
    times=st.sampled_from([1, 1, 1, 2000]),
    group=st.just("group"),
    share=st.sampled_from(["outputs", "group", "all", "none"]),
)
decodes = st.builds(Decode, texts)
actions = st.one_of(
    openings,
    decodes,
    st.builds(Close, names, numbers),
    st.builds(Publish, numbers, st.sampled_from(["one", "two"]), st.lists(texts, max_size=3)),
    st.builds(Withdraw, numbers, st.sampled_from(["one", "two"])),
    st.builds(Silence),
)

LAST: list[Action] = [Open(0, number, [0, 1, 0, 1], 1, "group", "none") for number in range(len(NAMESPACES))]
LAST += [Decode([0, 1]), Decode([2]), Decode([3, 0])]
"""In the end every namespace asks for drafts of what is common to all."""


@dataclass
class Service:
    """An engine, and one client for each namespace, as they would be in engines of their own."""

    now: float = 0.0
    requests: dict[tuple[int, int], Request] = field(default_factory=dict)
    nodes: int = 0
    windows: int = 0

    def __post_init__(self) -> None:
        limits = EngineSettings(session_ttl=SESSION_TTL, memory_limit=SMALL, history_limit=SMALL)
        self.engine = Engine(limits, clock=lambda: self.now)
        self.clients = [LocalClient(self.engine, namespace) for namespace in NAMESPACES]

    def do(self, action: Action) -> None:
        match action:
            case Open():
                self.requests[action.namespace, action.name] = self.clients[action.namespace].open(
                    f"request of {action.namespace}",
                    own_tokens(action.namespace, action.prompt * action.times),
                    group=action.group,
                    share=action.share,
                    wait=True,
                )
            case Decode(text):
                self._decode(text)
            case Close(name, namespace):
                if request := self.requests.pop((namespace, name), None):
                    request.close()
            case Publish(namespace, corpus, documents):
                own = [own_tokens(namespace, document) for document in documents]
                labels = [f"document of {namespace}"] * len(own)
                self.engine.publish_corpus(NAMESPACES[namespace], corpus, [sealed(own, labels)] if any(own) else [])
            case Withdraw(namespace, corpus):
                self.engine.withdraw_corpus(NAMESPACES[namespace], corpus)
            case Silence():
                self.now += SESSION_TTL + 1
                self.engine.expire()

    def _decode(self, text: Text) -> None:
        for number, client in enumerate(self.clients):
            commits = {
                request: own_tokens(namespace, text)
                for (namespace, _), request in self.requests.items()
                if namespace == number
            }
            for draft in client.step(commits).values():
                foreign = [token for token in draft.tokens.tolist() if not belongs(number, token)]
                assert not foreign, f"{NAMESPACES[number]} is drafted {foreign}"
                self.nodes += len(draft.tokens)
            self._look_into_windows(number, list(commits))
            self._explain(number, own_tokens(number, text))

    def _look_into_windows(self, number: int, requests: list[Request]) -> None:
        client = self.clients[number]
        client.step_ahead(dict.fromkeys(requests, ()), max_nodes=8, tapes=4)
        client.check()
        for request in requests:
            for window in request.mirror.tape.ring if request.mirror.tape else ():
                foreign = [token for token in window.tokens.tolist() if not belongs(number, token)]
                assert not foreign, f"{NAMESPACES[number]} is sent {foreign}"
                self.windows += window.origin is not None

    def _explain(self, number: int, text: Text) -> None:
        """Asks why the namespace would be drafted what it is: no token and no label may be another's."""
        namespace = NAMESPACES[number]
        question = DraftSync(
            tenant=namespace.tenant,
            model=namespace.model,
            tokenizer=namespace.tokenizer or "",
            adapter=namespace.adapter,
            prompt=np.array(text, "<i4").tobytes(),
            group="group",
            max_nodes=8,
        )
        with suppress(UnknownNamespace):
            for node in self.engine.explainer.explain(question).nodes:
                assert belongs(number, node.token), f"{namespace} is explained {node.token}"
                labels = {evidence.last.label for evidence in node.evidence if evidence.last}
                assert labels <= {"", f"request of {number}", f"document of {number}"}


def own_tokens(namespace: int, text: Text) -> list[int]:
    return [token if token < COMMON else token + namespace * OWN_PER_NAMESPACE for token in text]


def belongs(namespace: int, token: int) -> bool:
    first = COMMON + namespace * OWN_PER_NAMESPACE
    return token < COMMON or first <= token < first + OWN_PER_NAMESPACE


@settings(max_examples=settings().max_examples // 3)
@given(first=st.lists(openings, min_size=4, max_size=8), then=st.lists(actions | decodes, min_size=5, max_size=30))
def test_nothing_crosses_a_namespace(first: list[Action], then: list[Action]) -> None:
    service = Service()
    try:
        for action in [*first, *then, *LAST]:
            service.do(action)
        assert service.nodes > 0, "nobody was drafted anything"
    finally:
        service.engine.close()


def test_windows_are_looked_at() -> None:
    service = Service()
    try:
        for action in (Publish(0, "one", [[0, 1, 2, 3]]), Open(0, 0, [0, 1], 1, "group", "none"), Decode([2])):
            service.do(action)
        assert service.windows > 0
    finally:
        service.engine.close()


def test_an_empty_tenant_is_no_namespace() -> None:
    with pytest.raises(ValueError, match="tenant is empty"):
        Namespace(tenant="")
