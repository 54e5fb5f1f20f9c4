"""Reading the settings. The command line wins over the environment, the environment over the file.

An option nobody knows is an error that names the nearest known one: never ignored.
"""

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsError, TomlConfigSettingsSource

from draftd.config.document import nearest, option_names
from draftd.config.settings import Settings

PREFIX = "DRAFTD_"
CONFIG_FILE_VARIABLE = "DRAFTD_CONFIG"
ADAPTER_PREFIX = "DRAFTD_ADAPTER_"  # of what engines' adapters are told, perhaps in the same environment

# A Kubernetes Service called "draftd" puts these into every pod of its namespace; they are not ours.
_SERVICE_LINK = re.compile(r"DRAFTD_(SERVICE_(HOST|PORT)|PORT)(_.*)?")

# What a TOML file calls the types that Python has another name for.
_KINDS = {"tuple_type": "should be a list", "model_type": "should be a table"}


class ConfigError(ValueError):
    """The settings can't be used. The text is one line for a person: which option, where it stands, what is wrong."""


def load_settings(file: Path | None, given: Mapping[str, Any] | None = None) -> Settings:
    """Reads `file` (if any) and the environment; `given` is the tree of what the command line said.

    Raises ConfigError."""
    if file is not None and not file.is_file():
        raise ConfigError(f"config file {file}: no such file")
    _refuse_unknown_variables()

    class Sources(Settings):
        @classmethod
        def settings_customise_sources(
            cls,
            settings_cls: type[BaseSettings],
            init_settings: PydanticBaseSettingsSource,
            env_settings: PydanticBaseSettingsSource,
            dotenv_settings: PydanticBaseSettingsSource,
            file_secret_settings: PydanticBaseSettingsSource,
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            del dotenv_settings, file_secret_settings  # two more places to look would be two too many
            return init_settings, env_settings, TomlConfigSettingsSource(settings_cls, file)

    try:
        return Sources(**(given or {}))
    except ValidationError as error:
        raise ConfigError("; ".join(_explain(problem, given or {}) for problem in error.errors())) from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"config file {file}: not TOML: {error}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"config file {file}: {error}") from None
    except SettingsError as error:
        name = re.search(r'field "(\w+)"', str(error))
        variable = PREFIX + (name[1].upper() if name else "")
        raise ConfigError(f"environment variable {variable}...: lists and tables are written as JSON") from None


def variable_of(option: str) -> str:
    """The environment variable of an option's dotted name."""
    return PREFIX + option.replace(".", "__").upper()


def _refuse_unknown_variables() -> None:
    known = {variable_of(name) for name in option_names(Settings, of_lists=False)}
    for name in os.environ:
        upper = name.upper()
        others = upper == CONFIG_FILE_VARIABLE or upper.startswith(ADAPTER_PREFIX) or _SERVICE_LINK.fullmatch(upper)
        if upper.startswith(PREFIX) and not others and upper not in known:
            raise ConfigError(f"environment variable {name} is unknown; the nearest is {nearest(upper, known)}")


def _explain(problem: Any, given: Mapping[str, Any]) -> str:
    """One problem found by pydantic, in words; `given` is what the command line said."""
    name = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        return f"option {name} is unknown; the nearest is {nearest(name, option_names(Settings, of_lists=True))}"
    message = _KINDS.get(problem["type"]) or problem["msg"].removeprefix("Value error, ").removeprefix("Input ")
    if not name:
        return str(message)
    from_environment = variable_of(name) in os.environ and not _holds(given, problem["loc"])
    where = f" (environment variable {variable_of(name)})" if from_environment else ""
    found = "" if isinstance(problem["input"], (dict, Settings)) else f", not {problem['input']!r}"
    return f"{name}{where}: {message[0].lower()}{message[1:]}{found}"


def _holds(tree: Mapping[str, Any], place: tuple[str | int, ...]) -> bool:
    """Whether the tree has something there."""
    here: Any = tree
    for part in place:
        if not isinstance(here, Mapping) or part not in here:
            return False
        here = here[part]
    return True
