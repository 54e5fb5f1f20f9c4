"""What an adapter is told: where draftd is, whose text drafts come from, how long they may take."""

import json
import os
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, ValidationInfo, field_validator
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from draftd.adapters.sendable import sendable
from draftd.client import Client, Namespace
from draftd.client.channel import grpc_target
from draftd.client.opening import OpenOptions
from draftd.client.pacing import fill_greeting
from draftd.client.rows import Wish
from draftd.config import ADAPTER_PREFIX, ConfigError, Settings, nearest
from draftd.wire import Hello

FILE_VARIABLE = f"{ADAPTER_PREFIX}CONFIG"
GREETING_SECONDS = 1.0  # that an adapter's start waits for draftd at most; later it is welcome, too


def default_endpoint() -> str:
    """Of a `draftd serve` without options on this machine, run by the same user."""
    return f"ipc://{Settings.model_construct(data_dir=None).data_directory()}/draftd.sock"


class AdapterSettings(BaseSettings):
    """What an engine's adapter can be told."""

    model_config = SettingsConfigDict(frozen=True, extra="forbid", env_prefix=ADAPTER_PREFIX)

    endpoint: str = Field(
        default_factory=default_endpoint,
        description="Of draftd: ipc://PATH, tcp://HOST:PORT, grpc://HOST:PORT or grpc+unix:PATH. Unset: the socket of "
        "a `draftd serve` without options, run by the same user on the same machine.",
    )
    tenant: str = Field(default="default", description="Whose requests and corpora drafts come from.")
    model: str = Field(
        default="",
        description="Name of the model; engines that give the same share text. Unset: the engine's name for it.",
    )
    tokenizer: str | None = Field(
        default=None, description="Fingerprint of the tokenizer, to be held against the server's. Unset: not stated."
    )
    deadline: float = Field(
        default=0.005, gt=0, le=60, description="Seconds a step may wait for drafts; later ones are not used."
    )
    min_survival: float = Field(
        default=0.0, ge=0, le=1, description="Drafted tokens less likely to be accepted are left out."
    )
    share: Literal["outputs", "group", "all", "none"] = Field(
        default="outputs",
        description="What of a request others of the namespace may draft from; group: its output, those of its group, "
        "which vLLM and transformers can name; without one, as always in SGLang and llama-cpp-python, group is none.",
    )
    corpora: Literal["all"] | tuple[str, ...] = Field(
        default="all",
        description="Which of the namespace's corpora drafts come from; a list is written as JSON. With one that "
        "is not there, requests get no drafts.",
    )

    pacing: Literal["as_asked", "survival", "schedule"] | None = Field(
        default=None,
        description="How much is drafted at the engine's load: as_asked, as long as the engine's own setting says; "
        "survival, what pays by the time that steps take, which the adapter measures; schedule, by batch size "
        "([schedules.md](schedules.md)). Unset: as the server is configured.",
    )
    graph_sizes: tuple[int, ...] = Field(
        default=(),
        description="Batch sizes that the engine pads to, ascending, as JSON: [1, 2, 4, 8]. A schedule goes by them.",
    )
    ngram_gpu: bool = Field(
        default=False,
        description="In vLLM's asynchronous model runner its method ngram_gpu is draftd's matcher "
        "([ngram-gpu.md](ngram-gpu.md#in-vllm)). Other engines don't look at it.",
    )

    @field_validator("endpoint")
    @classmethod
    def _endpoint_has_a_form(cls, endpoint: str) -> str:
        grpc_target(endpoint)
        return endpoint

    @field_validator("graph_sizes")
    @classmethod
    def _graph_sizes_ascend(cls, sizes: tuple[int, ...]) -> tuple[int, ...]:
        fill_greeting(Hello(), {"graph_sizes": sizes})
        return sizes

    @field_validator("tenant", "model", "tokenizer")
    @classmethod
    def _can_name_a_namespace(cls, name: str | None, field: ValidationInfo) -> str | None:
        if name or field.field_name != "model":  # an empty model is the engine's
            stated: dict[str, Any] = {str(field.field_name): name}
            Namespace(**stated)
        return name

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        del dotenv_settings, file_secret_settings
        return init_settings, env_settings, InitSettingsSource(settings_cls, _values_of_file())

    def options(self, *, adapter: str = "", group: str = "") -> OpenOptions:
        """What requests of that adapter and group state. With share="group", those without a group share nothing."""
        return OpenOptions(
            adapter=sendable(adapter),
            group=sendable(group),
            share="none" if self.share == "group" and not group else self.share,
            corpora=self.corpora,
            min_survival=self.min_survival,
        )

    def connect(self, model: str, *, verifier: str, vocabulary_size: int) -> Client:
        """A client for an engine that serves `model` (if the settings name no other). Raises ConfigError without."""
        name = self.model or model
        if not name:
            raise ConfigError(f"the model has no name of its own; give one with model= or {ADAPTER_PREFIX}MODEL")
        namespace = Namespace(tenant=self.tenant, model=name, tokenizer=self.tokenizer)
        return Client(
            self.endpoint,
            namespace,
            verifier=verifier,
            deadline=self.deadline,
            vocabulary_size=vocabulary_size,
            pacing=self.pacing,
            graph_sizes=self.graph_sizes,
        )


def checked_max_nodes(max_nodes: int) -> int:
    """Raises ValueError for a length of drafts that can't be meant."""
    checked = Wish(max_nodes).max_nodes
    if checked < 1:
        raise ValueError(f"max_nodes is {max_nodes}; draft at least 1 token")
    return checked


def adapter_settings(**given: Any) -> AdapterSettings:
    """Given ones win over the environment (DRAFTD_ADAPTER_ and the name in capitals), that over the JSON file named by
    DRAFTD_ADAPTER_CONFIG. Raises ConfigError, one line that names the option and what is wrong."""
    known = {ADAPTER_PREFIX + name.upper() for name in AdapterSettings.model_fields} | {FILE_VARIABLE}
    for name in os.environ:
        if name.upper().startswith(ADAPTER_PREFIX) and name.upper() not in known:
            raise ConfigError(f"environment variable {name} is unknown; the nearest is {nearest(name.upper(), known)}")
    try:
        return AdapterSettings(**given)
    except ValidationError as error:
        raise ConfigError("; ".join(dict.fromkeys(map(_in_words, error.errors())))) from None
    except SettingsError as error:
        raise ConfigError(f"environment variable of {ADAPTER_PREFIX}: {error}") from None


def _values_of_file() -> dict[str, Any]:
    """What the JSON file says; nothing where none is named. Raises ConfigError."""
    file = os.environ.get(FILE_VARIABLE)
    if not file:
        return {}
    try:
        values = json.loads(Path(file).read_bytes())
    except OSError as error:
        raise ConfigError(f"{FILE_VARIABLE}={file}: {error.strerror}") from None
    except ValueError as error:
        raise ConfigError(f"{FILE_VARIABLE}={file}: not JSON: {error}") from None
    if not isinstance(values, dict):
        raise ConfigError(f'{FILE_VARIABLE}={file}: should be an object of options, such as {{"tenant": "acme"}}')
    return values


def _in_words(problem: Any) -> str:
    name = str(problem["loc"][0])
    if problem["type"] == "extra_forbidden":
        return f"adapter option {name} is unknown; the nearest is {nearest(name, AdapterSettings.model_fields)}"
    message = problem["msg"].removeprefix("Input ").removeprefix("Value error, ")
    if name == "corpora":
        message = 'should be all, or a list of names, in the environment as JSON: ["docs"]'
    return f"adapter option {name}: {message}, not {problem['input']!r}"
