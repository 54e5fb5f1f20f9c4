"""The settings of a server: one frozen tree, read from a TOML file, the environment and the command line.

Every option is a field with a description; the default config file (`draftd config`) is generated from the
fields, so it is the reference documentation and can't disagree with the code.
"""

from draftd.config.document import default_config, nearest
from draftd.config.load import ADAPTER_PREFIX, CONFIG_FILE_VARIABLE, ConfigError, load_settings
from draftd.config.settings import (
    CorporaSettings,
    CorpusFile,
    DraftingSettings,
    EngineSettings,
    HistorySettings,
    LimitSettings,
    ListenSettings,
    LogSettings,
    PacingSettings,
    Settings,
    SourceSettings,
    TokenizerSettings,
)

__all__ = [
    "ADAPTER_PREFIX",
    "CONFIG_FILE_VARIABLE",
    "ConfigError",
    "CorporaSettings",
    "CorpusFile",
    "DraftingSettings",
    "EngineSettings",
    "HistorySettings",
    "LimitSettings",
    "ListenSettings",
    "LogSettings",
    "PacingSettings",
    "Settings",
    "SourceSettings",
    "TokenizerSettings",
    "default_config",
    "load_settings",
    "nearest",
]
