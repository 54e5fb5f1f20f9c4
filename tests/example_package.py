"""An example of a package of draft sources, installed as from outside."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def installed(example: str, folder: Path) -> Path:
    """A folder of installed packages with the example in it; of a copy, for builds leave files behind."""
    shutil.copytree(ROOT / "examples" / example, folder / "package")
    pip = [sys.executable, "-m", "pip", "install", "-qq", "--disable-pip-version-check", "--root-user-action=ignore"]
    options = ["--no-build-isolation", "--no-deps", "--no-index", "--target", folder / "site"]
    subprocess.run([*pip, *options, folder / "package"], check=True)
    return folder / "site"
