"""In which state a configured file was when it was loaded."""

from pathlib import Path

from draftd.ingest import IngestError


def stamp(path: Path) -> str:
    """Other than before when the file, or a file in the folder, changed. Raises IngestError."""
    try:
        files = [path, *(sorted(path.rglob("*")) if path.is_dir() else ())]
        states = [file.stat() for file in files]
    except OSError as error:
        raise IngestError(f"{path}: {(error.strerror or str(error)).lower()}") from None
    size = sum(state.st_size for state in states)
    return f"{path}: {len(states)} files, {size} bytes, changed {max(state.st_mtime_ns for state in states)}"
