"""Options that several commands have."""

from pathlib import Path
from typing import Annotated

import typer

from draftd.config import CONFIG_FILE_VARIABLE

ConfigFile = Annotated[
    Path | None, typer.Option("--config", envvar=CONFIG_FILE_VARIABLE, metavar="FILE", help="Config file, TOML.")
]
