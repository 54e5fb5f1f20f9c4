"""The recorded traffic that comes with draftd; see traces/README.md for what it is."""

from pathlib import Path

SAMPLE = Path(__file__).parent / "traces"
SAMPLE_CORPUS = SAMPLE / "gsm8k_train.npz"  # of the domain of the mathematics workloads


def trace_files(folder: Path = SAMPLE) -> list[Path]:
    """The recordings in a folder, by name. Raises FileNotFoundError if there are none."""
    files = sorted([*folder.glob("*.jsonl.gz"), *folder.glob("*.jsonl")])
    if not files:
        raise FileNotFoundError(f"{folder}: no *.jsonl.gz or *.jsonl in this folder")
    return files
