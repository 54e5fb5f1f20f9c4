"""Plays a scenario against an engine, native or reference, in the role of its verifiers.

The commands, with what may be expected of them; `expectations.py` says what may be said of a tail:

    engine session_ttl=600 max_nodes=64           limits of the engine; a first line, where the defaults don't do
        and: in_flight=1|0
    corpus NAME documents=[[1,2],[3]]             publishes a corpus, whole and at once
    withdraw NAME
    open R prompt=[..] output=[..] -> STATUS [at POSITION]
        and: epoch=1 verifier=1 handle=H namespace=N stop_ids=[..] max_new_tokens=N vocabulary=N shape=chain|tree
        preset=learned|suffix_decoding|ngram_bfs|ngram_prob max_depth=N max_breadth=N min_survival=P
        max_spec_factor=F min_token_prob=P
        max_nodes=N share=outputs|group|all|none group=G history=yes|no corpora=[..]
    commit R tokens=[..] -> STATUS [at POSITION]
        and: start=N epoch=N tail=last|BASE verified=N bitmap=[..] nodes=N
    draft R nodes=N min_survival=P -> TAIL        a commit of no tokens
    step budget=N min_survival=P                  rows below it, indented: R and the words of commit -> STATUS TAIL
    same R1 R2 nodes=N                            both are answered with the same tail
    close R epoch=N -> STATUS
    forget R                                      it leaves nothing behind
    index all                                     indexes everything that waits
    clock SECONDS
    expire -> COUNT                               how many sessions went
    statistics NAME=VALUE ...

A request commits where its text ends and names no tail, unless the line says otherwise. `namespace=N` also goes with
corpus and withdraw.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from draftd import native
from draftd.reference import engine as reference
from draftd.reference.events import Share, Status
from draftd.reference.policy import Preset
from tests.property.rows import BY_BITMAP, NO_TAIL, CommitRow, TailRow, packed, step
from tests.scenarios.expectations import expect_status, expect_tail
from tests.scenarios.language import Statement, read
from tests.segments import sealed

SHARES = {"outputs": Share.OUTPUTS, "group": Share.GROUP, "all": Share.ALL, "none": Share.NOTHING}

POLICY_WORDS = {"preset", "max_depth", "max_breadth", "min_survival", "max_spec_factor", "min_token_prob"}
COMMIT_WORDS = {"start", "epoch", "tokens", "tail", "verified", "bitmap", "nodes"}
OPEN_WORDS = {"prompt", "output", "epoch", "verifier", "handle", "namespace", "stop_ids", "max_new_tokens"}
OPEN_WORDS |= {"vocabulary", "shape", "max_nodes", "share", "group", "history", "corpora"}
WORDS: dict[str, set[str] | None] = {
    "engine": {"session_ttl", "max_nodes", "in_flight"},
    "corpus": {"documents", "namespace"},
    "withdraw": {"namespace"},
    "open": OPEN_WORDS | POLICY_WORDS,
    "commit": COMMIT_WORDS,
    "row": COMMIT_WORDS,
    "draft": {"nodes", "min_survival"},
    "step": {"budget", "min_survival"},
    "same": {"nodes"},
    "close": {"epoch"},
    "forget": set(),
    "index": set(),
    "clock": set(),
    "expire": set(),
    "statistics": None,
}
"""What each command may be told; None: it looks by itself."""


@dataclass
class Request:
    """What a verifier knows of its request."""

    verifier: int
    handle: int
    epoch: int = 0
    length: int = 0
    tail_base: int = NO_TAIL


class Player:
    """One engine and its verifiers. `core` is draftd.native or draftd.reference.engine."""

    def __init__(self, core: Any) -> None:
        self._core = core
        self._limits = {"session_ttl": 600.0, "memory_limit": 1 << 30, "history_limit": 1 << 24, "max_nodes": 64}
        self._engine: Any = None
        self._now = 0.0
        self._namespaces: dict[str, int] = {}
        self._corpora: dict[tuple[str, str], int] = {}
        self._requests: dict[str, Request] = {}

    def play(self, path: Path) -> None:
        for statement in read(path):
            if statement.command not in WORDS:
                raise statement.error("no such command")
            for said in (statement, *statement.rows):
                said.refuse_other_words(WORDS[said.command])
            if self._engine is None and statement.command != "engine":
                self._engine = self._core.Engine(**self._limits, indexing_thread=False)
            self._do(statement)

    def _do(self, statement: Statement) -> None:
        actions: dict[str, Callable[[Statement], None]] = {
            "engine": self._configure,
            "corpus": self._publish,
            "withdraw": self._withdraw,
            "open": self._open,
            "commit": self._commit,
            "draft": self._draft,
            "step": self._step,
            "same": self._same,
            "close": self._close,
            "forget": self._forget,
            "index": self._index,
            "clock": self._clock,
            "expire": self._expire,
            "statistics": self._statistics,
        }
        actions[statement.command](statement)

    def _configure(self, statement: Statement) -> None:
        if self._engine is not None:
            raise statement.error("comes first")
        self._limits |= statement.arguments
        self._limits["in_flight"] = bool(self._limits.get("in_flight", True))

    def _publish(self, statement: Statement) -> None:
        documents = statement.arguments["documents"]
        segment = sealed(documents) if self._core is native else reference.Segment(documents)
        namespace = statement.arguments.get("namespace", "default")
        corpus = self._corpora.setdefault((namespace, statement.subject), len(self._corpora))
        self._engine.publish_corpus(self._namespace(namespace), corpus, [segment])

    def _withdraw(self, statement: Statement) -> None:
        namespace = statement.arguments.get("namespace", "default")
        self._engine.withdraw_corpus(self._namespace(namespace), self._corpora[namespace, statement.subject])

    def _namespace(self, name: str) -> int:
        if name not in self._namespaces:
            self._namespaces[name] = self._engine.create_namespace()
        return self._namespaces[name]

    def _open(self, statement: Statement) -> None:
        said = statement.arguments
        request = self._request(statement)
        request.epoch = said.get("epoch", request.epoch or 1)
        prompt, output = said.get("prompt", []), said.get("output", [])
        namespace = said.get("namespace", "default")
        corpora = said.get("corpora")
        status, detail = self._engine.open(
            verifier=request.verifier,
            request=request.handle,
            epoch=request.epoch,
            namespace=self._namespace(namespace),
            label=statement.subject,
            prompt=packed("<i4", prompt),
            output=packed("<i4", output),
            vocabulary_size=said.get("vocabulary", 0),
            stop_ids=packed("<i4", said.get("stop_ids", [])),
            max_new_tokens=said.get("max_new_tokens"),
            chain=said.get("shape", "tree") == "chain",
            max_nodes=said.get("max_nodes", 0),
            policy=self._policy(said),
            share=SHARES[said.get("share", "outputs")],
            group=said.get("group", ""),
            hide_history=said.get("history", "yes") == "no",
            corpora=None if corpora is None else [self._corpora[namespace, name] for name in corpora],
            now=self._now,
        )
        expect_status(statement, status, detail)
        if status == Status.OK:
            request.length = len(prompt) + len(output)

    def _policy(self, said: dict[str, Any]) -> Any:
        numbers = {name: said[name] for name in POLICY_WORDS - {"preset"} if name in said}
        preset = Preset[said.get("preset", "learned").upper()]
        make = native.DraftPolicy if self._core is native else reference.Policy
        return make(preset=preset, **numbers)

    def _request(self, statement: Statement) -> Request:
        name = statement.subject
        if name not in self._requests:
            said = statement.arguments
            self._requests[name] = Request(said.get("verifier", 1), said.get("handle", 1000 + len(self._requests)))
        return self._requests[name]

    def _commit(self, statement: Statement) -> None:
        (tail,) = self._send([statement], {})
        expect_status(statement, tail.status, tail.detail)

    def _draft(self, statement: Statement) -> None:
        (tail,) = self._send([statement], statement.arguments)
        expect_tail(statement, tail)

    def _step(self, statement: Statement) -> None:
        tails = self._send(statement.rows, statement.arguments)
        for row, tail in zip(statement.rows, tails, strict=True):
            expect_status(row, tail.status, tail.detail)
            expect_tail(row, tail)

    def _same(self, statement: Statement) -> None:
        _, one, other = statement.words
        nodes = statement.arguments["nodes"]
        tails = [self._ask(self._requests[name], nodes) for name in (one, other)]
        said = [(tail.tokens, tail.parents, tail.survival, tail.source, tail.reason) for tail in tails]
        if said[0] != said[1]:
            raise statement.error(f"{one} is answered with {said[0]}, {other} with {said[1]}")

    def _ask(self, request: Request, nodes: int) -> TailRow:
        row = CommitRow(request.handle, request.epoch, request.length, max_nodes=nodes)
        (tail,) = step(self._engine, self._core.StepColumns, request.verifier, [row], now=self._now)
        return tail

    def _send(self, statements: list[Statement], batch: dict[str, Any]) -> list[TailRow]:
        requests = [self._request(statement) for statement in statements]
        rows = [self._row(statement, request) for statement, request in zip(statements, requests, strict=True)]
        tails = step(
            self._engine,
            self._core.StepColumns,
            requests[0].verifier,
            rows,
            now=self._now,
            budget=batch.get("budget", 0),
            min_survival=batch.get("min_survival", 0.0),
        )
        for request, tail in zip(requests, tails, strict=True):
            if tail.status == Status.OK:
                request.length = tail.base
                request.tail_base = tail.base if tail.tokens else request.tail_base
        return tails

    def _row(self, statement: Statement, request: Request) -> CommitRow:
        said = statement.arguments
        tail = said.get("tail", NO_TAIL)
        return CommitRow(
            request=request.handle,
            epoch=said.get("epoch", request.epoch),
            start=said.get("start", request.length),
            tokens=said.get("tokens", []),
            max_nodes=said.get("nodes", 0),
            tail_base=request.tail_base if tail == "last" else tail,
            verified=BY_BITMAP if "bitmap" in said else said.get("verified", -1),
            bitmap=said.get("bitmap", []),
        )

    def _close(self, statement: Statement) -> None:
        request = self._request(statement)
        (status,) = self._engine.close(
            request.verifier,
            packed("<u4", [request.handle]),
            packed("<u4", [statement.arguments.get("epoch", request.epoch)]),
            self._now,
            0,
        )
        expect_status(statement, status, 0)

    def _forget(self, statement: Statement) -> None:
        self._engine.forget_requests(list(self._namespaces.values()), None, [statement.subject])

    def _index(self, statement: Statement) -> None:
        if statement.subject != "all":
            raise statement.error("only all is known")
        while self._engine.index_slice(1 << 20):
            pass

    def _clock(self, statement: Statement) -> None:
        self._now = float(statement.subject)

    def _expire(self, statement: Statement) -> None:
        gone = self._engine.expire(self._now)
        if [str(gone)] != [term.name for term in statement.expected]:
            raise statement.error(f"{gone} sessions went")

    def _statistics(self, statement: Statement) -> None:
        counted = self._engine.statistics()
        counted["delivered_tokens"] = sum(counted["delivered_per_position"])
        counted["verified_tokens"] = sum(counted["verified_per_position"])
        counted["accepted_tokens"] = sum(counted["accepted_per_position"])
        for kind, size in counted["index"].items():
            counted[f"{kind}_tokens"] = size["tokens"]
        for name, value in statement.arguments.items():
            if counted[name] != value:
                raise statement.error(f"{name} is {counted[name]}")
