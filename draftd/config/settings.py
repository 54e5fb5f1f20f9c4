"""The tree itself. Descriptions are the documentation: say what, unit, and what the edge values mean."""

import os
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ByteSize, ConfigDict, Field, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from draftd.config.values import GrpcEndpoint, HttpEndpoint, TokenCount, ZmqEndpoint, mebibytes


class Section(BaseModel):
    """A part of the tree."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)


class ListenSettings(Section):
    """Where the server listens. An empty string turns an endpoint off."""

    zmq: ZmqEndpoint = Field(
        default="ipc://draftd.sock",
        description="ZMQ endpoint, the hot path: ipc://PATH or tcp://HOST:PORT. A relative path lies in data_dir.",
    )
    shared_memory: bool = Field(
        default=True,
        description="Beside an ipc:// endpoint of zmq: clients on this host send their frames through shared memory, "
        "which they ask for at the unix socket PATH.ring. They do so by themselves, and use ZMQ where it can't be had.",
    )
    grpc: GrpcEndpoint = Field(
        default="", description="gRPC endpoint: HOST:PORT or unix:PATH. A relative path lies in data_dir."
    )
    http: HttpEndpoint = Field(
        default="127.0.0.1:8470",
        description="HTTP endpoint for corpora, health and metrics: HOST:PORT. It asks for no password: keep it local.",
    )
    threads: int = Field(
        default=0,
        ge=0,
        le=1024,
        description="Engines that are answered at the same time. 0: as many as there are processors for this process, "
        "by its cgroup and affinity.",
    )
    shutdown_seconds: float = Field(
        default=10.0,
        gt=0,
        le=600,
        description="After SIGTERM, how long answers under way may take before they are cut off.",
    )

    @model_validator(mode="after")
    def _serves_verifiers(self) -> Self:
        if not (self.zmq or self.grpc):
            raise ValueError("zmq and grpc are both off: no verifier could connect")
        return self


class EngineSettings(Section):
    """Limits of the drafting engine."""

    max_nodes: int = Field(default=64, ge=1, le=1024, description="Most nodes one request gets in a step.")
    max_rows: int = Field(default=1024, ge=1, le=65536, description="Most requests in one step of a verifier.")
    max_frame_bytes: ByteSize = Field(
        default=mebibytes(64), ge=1 << 16, le=1 << 30, description="Longest message a verifier may send."
    )
    session_ttl: float = Field(
        default=600.0, gt=0, description="Seconds after which the requests of a silent verifier are dropped."
    )
    memory_limit: ByteSize = Field(
        default=mebibytes(4096),
        ge=1 << 20,
        le=120 << 30,  # a request stays below the 2^31 positions of an index
        description="Most bytes of open requests, the live part of histories, what namespaces learned (half a MiB for "
        "each that teaches) and, in at most a quarter of it, indexes of ended requests for those that go on from their "
        "text, together; at least history_limit. It is one limit for all tenants: what one of them "
        "opens, shares and teaches may push out what others did.",
    )
    history_limit: ByteSize = Field(
        default=mebibytes(512),
        ge=1 << 20,
        le=48 << 30,  # each of its halves stays below the 2^31 positions of an index
        description="Most bytes of shared history per namespace, and of each group; the oldest leaves first.",
    )
    max_corpora: int = Field(default=8, ge=1, le=14, description="Most external corpora per namespace.")
    threads: int = Field(
        default=0,
        ge=0,
        le=256,
        description="Threads that share the drafts of one step, where it has 32 requests and more. 0: as many as there "
        "are processors for this process, by its cgroup and affinity, and at most 8.",
    )

    @model_validator(mode="after")
    def _history_fits(self) -> Self:
        if self.history_limit > self.memory_limit:
            raise ValueError(f"history_limit ({self.history_limit}) is above memory_limit ({self.memory_limit})")
        return self


class DraftingSettings(Section):
    """How trees are made for requests that state nothing themselves."""

    preset: Literal["learned", "suffix_decoding", "ngram_bfs", "ngram_prob"] = Field(
        default="learned", description="What scores the candidates; docs/presets.md tells what each does."
    )
    max_depth: int = Field(default=1024, ge=1, le=1024, description="Most nodes on one path.")
    max_breadth: int = Field(default=1024, ge=1, le=1024, description="Most children of one node.")
    min_survival: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="Nodes less likely to be accepted are not drafted, unless the request states a min_survival of "
        "its own, higher or lower. A step may ask for more than this or the request's, not for less.",
    )
    learning: bool = Field(
        default=True,
        description="Whether namespaces learn from their verifiers how likely candidates are. Without, drafts depend "
        "on nothing but text.",
    )
    priors: Literal["shipped", "none"] | Path = Field(
        default="shipped",
        description="What namespaces start with: shipped, learned elsewhere; none, set by hand; or a file that "
        "bench/train_priors.py wrote (docs/presets.md).",
    )


class PacingSettings(Section):
    """Who decides how many nodes a step gets; docs/budgets.md tells of it. For verifiers that state no pacing."""

    mode: Literal["as_asked", "survival", "schedule"] = Field(
        default="as_asked",
        description="as_asked: the verifier. survival: as many as pay for themselves by what steps cost, which the "
        "verifier states or draftd learns. schedule: a table of lengths by batch size.",
    )
    schedule: Literal["shipped"] | Path = Field(
        default="shipped",
        description="The table of lengths: shipped, or a file as SGLang reads it (docs/schedules.md).",
    )
    rest_after: int = Field(
        default=0,
        ge=0,
        le=65535,
        description="Drafts of a request without an accepted node, in a row, after which it gets none for a while; for "
        "schedules, as survival knows by itself. 0: it never rests. This and what follows does not hold for what is "
        "drafted as asked.",
    )
    rest_steps: int = Field(
        default=8,
        ge=1,
        le=65535,
        description="Steps of a request's first rest; twice as many after each draft in between that failed, too, up "
        "to sixteen times.",
    )
    long_run_tokens: int = Field(
        default=2048,
        ge=0,
        le=2**31 - 1,
        description="Tokens of output beyond which a request may have long_run_factor times the nodes of the schedule.",
    )
    long_run_factor: float = Field(default=2.0, ge=1, le=64, description="See long_run_tokens; 1: never.")


class CorpusFile(Section):
    """A corpus that is loaded before the server is ready."""

    id: str = Field(min_length=1, description="name of the corpus")
    path: Path = Field(
        description="a .jsonl, .parquet, .txt, .npz or .npy file, perhaps packed as .gz or .zst, or a folder of texts"
    )
    tenant: str = Field(default="default", min_length=1, description="tenant it belongs to")
    model: str = Field(default="default", min_length=1, description="model it belongs to")
    adapter: str = Field(default="", description="adapter it belongs to")


class CorporaSettings(Section):
    """External corpora."""

    max_tokens: TokenCount = Field(
        default=100_000_000,
        ge=1,
        le=2**31 - 2,
        description="Most tokens of one load into a corpus; 10M and 500k are understood.",
    )
    max_body_bytes: ByteSize = Field(
        default=mebibytes(128), ge=1 << 10, description="Longest JSON body of a corpus posted over HTTP."
    )
    max_upload_bytes: ByteSize = Field(
        default=mebibytes(4096),
        ge=1 << 10,
        description="Longest stream of documents, or archive, sent over HTTP or gRPC; it lies in data_dir meanwhile.",
    )
    directories: tuple[Path, ...] = Field(
        default=(), description="Directories below which a posted file_path may lie. None: file_path is refused."
    )
    load: tuple[CorpusFile, ...] = Field(
        default=(),
        description="Corpora to load before the server is ready; again when the file or the tokenizer changed. What is "
        "not listed any more is removed; what documents were added to by hand stays as it is.",
    )

    @model_validator(mode="after")
    def _directories_absolute(self) -> Self:
        for directory in self.directories:
            if not directory.is_absolute():
                raise ValueError(f"directories: {directory} is not an absolute path")
        return self


class HistorySettings(Section):
    """What namespaces share of their requests, on the disk when finished. engine.history_limit limits its bytes."""

    in_flight: bool = Field(
        default=True,
        description="Whether running requests draft from what others that share have generated so far, and not only "
        "from finished ones. Its bytes count for engine.memory_limit alone, and a restart forgets it.",
    )
    flush_seconds: float = Field(
        default=1.0,
        gt=0,
        le=3600,
        description="How often it is written to disk: a crash loses no more than this. As often it is looked for what "
        "is to be sealed, to be merged, or to leave.",
    )
    seal_tokens: TokenCount = Field(
        default=1_000_000,
        ge=1,
        le=2**30,
        description="Tokens of the live part after which it is made into a segment, which takes a sixth of the memory. "
        "Done earlier when the live part takes a quarter of engine.history_limit.",
    )
    max_age: float = Field(
        default=0.0,
        ge=0,
        description="Seconds after which a finished request leaves; a quarter of it later at the latest. 0: no limit.",
    )


class LimitSettings(Section):
    """Most bytes of segments, in memory as on disk. What would pass a limit is refused, or waits."""

    namespace_bytes: ByteSize = Field(
        default=mebibytes(8192),
        ge=1 << 20,
        description="Of one tenant's model and adapter: its corpora and sealed histories.",
    )
    tenant_bytes: ByteSize = Field(default=mebibytes(16384), ge=1 << 20, description="Of one tenant.")
    process_bytes: ByteSize = Field(
        default=mebibytes(32768),
        ge=1 << 20,
        description="Of all, with the memory for building segments; a merge needs some 25 bytes per token of what it "
        "merges. Open requests and what is not sealed yet count for engine.memory_limit instead.",
    )

    @model_validator(mode="after")
    def _nested(self) -> Self:
        if not self.namespace_bytes <= self.tenant_bytes <= self.process_bytes:
            raise ValueError(
                f"namespace_bytes ({self.namespace_bytes}), tenant_bytes ({self.tenant_bytes}) and process_bytes "
                f"({self.process_bytes}) should not fall in this order"
            )
        return self


class TokenizerSettings(Section):
    """The tokenizer of a tenant's model: what text of a corpus is turned into ids with."""

    tenant: str = Field(default="*", min_length=1, description="tenant, * is any")
    model: str = Field(default="*", min_length=1, description="model, * is any")
    path: Path = Field(description="a tokenizer.json, or a tekken file of mistral-common")


class SourceSettings(Section):
    """A draft source that is asked beside the indexes."""

    tenant: str = Field(default="*", min_length=1, description="tenant, * is any")
    model: str = Field(default="*", min_length=1, description="model, * is any")
    name: str = Field(min_length=1, description="which: see docs/sources.md")
    options: dict[str, Any] = Field(default={}, description="a table of what it is made with")
    milliseconds: float = Field(default=10.0, gt=0, le=10_000, description="that a step waits for it at most")
    least_gain: float = Field(
        default=0.25, ge=0, description="accepted tokens that asking has to bring a request, by what it brought before"
    )

    def is_of(self, tenant: str, model: str) -> bool:
        return self.tenant in ("*", tenant) and self.model in ("*", model)


class LogSettings(Section):
    """Log lines, written to standard error."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Least severe line written."
    )
    format: Literal["text", "json"] = Field(default="text", description="text for people, json for machines.")


class Settings(BaseSettings):
    """Everything a server can be told."""

    model_config = SettingsConfigDict(
        frozen=True, extra="forbid", validate_default=True, env_prefix="DRAFTD_", env_nested_delimiter="__"
    )

    data_dir: Path | None = Field(
        default=None,
        description="Directory of this server alone: its lock, its unix sockets, corpora and histories. They survive a "
        "reboot only where it lies on a disk: set it for that. Unset: $XDG_RUNTIME_DIR/draftd, for root /run/draftd, "
        "else /tmp/draftd-UID.",
    )
    tokenizers: tuple[TokenizerSettings, ...] = Field(
        default=(), description="Tokenizers for corpora given as text; the first that fits is used."
    )
    sources: tuple[SourceSettings, ...] = Field(
        default=(),
        description="Draft sources asked for the requests about which the indexes have little; the first that fits a "
        "request's tenant and model is. None: all drafts are the indexes'.",
    )
    listen: ListenSettings = ListenSettings()
    engine: EngineSettings = EngineSettings()
    drafting: DraftingSettings = DraftingSettings()
    pacing: PacingSettings = PacingSettings()
    corpora: CorporaSettings = CorporaSettings()
    history: HistorySettings = HistorySettings()
    limits: LimitSettings = LimitSettings()
    log: LogSettings = LogSettings()

    @model_validator(mode="after")
    def _corpora_fit(self) -> Self:
        names: dict[tuple[str, str, str], set[str]] = {}
        for corpus in self.corpora.load:
            taken = names.setdefault((corpus.tenant, corpus.model, corpus.adapter), set())
            if corpus.id in taken:
                raise ValueError(f"corpora.load names {corpus.id!r} twice")
            taken.add(corpus.id)
            if len(taken) > self.engine.max_corpora:
                raise ValueError(f"corpora.load holds more corpora than engine.max_corpora ({self.engine.max_corpora})")
        return self

    def data_directory(self) -> Path:
        """`data_dir`, or its default on this machine."""
        if self.data_dir is not None:
            return self.data_dir
        if runtime := os.environ.get("XDG_RUNTIME_DIR"):
            return Path(runtime) / "draftd"
        if os.getuid() == 0:
            return Path("/run/draftd")
        return Path("/tmp") / f"draftd-{os.getuid()}"
