"""In which state a configured file was when it was loaded, and what it was read with."""

from pathlib import Path

from draftd.ingest import IngestError


def stamp(path: Path, tokenizer: str | None) -> str:
    """Other than before when the file, one in the folder, or the model's tokenizer changed. Raises IngestError."""
    try:
        files = [path, *(sorted(path.rglob("*")) if path.is_dir() else ())]
        states = [file.stat() for file in files]
    except OSError as error:
        raise IngestError(f"{path}: {(error.strerror or str(error)).lower()}") from None
    size = sum(state.st_size for state in states)
    changed = max(state.st_mtime_ns for state in states)
    return f"{path}: {len(states)} files, {size} bytes, changed {changed}, tokenizer {tokenizer}"
