"""A namespace as one file: out of this data directory, and into it, all or nothing."""

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from draftd.corpora.collection import Collection
from draftd.corpora.restoring import Restorer
from draftd.ingest import IngestError, KnownTokenizer
from draftd.storage import Bytes, DamagedError, Manifest, Packed, Store, read_archive, write_archive


@dataclass(frozen=True, slots=True)
class Imported:
    """What an archive held; `tokens` are those of segments."""

    corpora: int
    histories: int
    tokens: int


def export_archive(collections: Sequence[Collection], into: Bytes) -> None:
    """Each collection as it is at one moment; changes meanwhile wait for nothing."""
    with ExitStack() as opened:
        write_archive([_packed(collection, opened) for collection in collections], into)


def import_archive(archive: Path, store: Store, restorer: Restorer, tokenizers: Sequence[KnownTokenizer]) -> Imported:
    """Raises IngestError, OverLimit, or what the engine raises for a limit; then nothing of it is there."""
    try:
        with store.scratch.folder() as place, ExitStack() as undo:
            unpacked = read_archive(archive, place)
            manifests = [each.manifest for each in unpacked]
            _refuse_taken(manifests, restorer)
            _refuse_tokenizers(manifests, tokenizers)
            tokens = 0
            with store.all_or_none(len(unpacked)) as create:
                folders = [create(each.manifest, each.files) for each in unpacked]
                for folder in folders:
                    tokens += restorer.restore(folder)
                    undo.callback(restorer.discard, folder.manifest)
            undo.pop_all()
            for manifest in manifests:
                restorer.publish(manifest)
    except DamagedError as error:
        raise IngestError(f"import: {error}") from None
    corpora = sum(manifest.kind == "corpus" for manifest in manifests)
    return Imported(corpora, len(manifests) - corpora, tokens)


def _packed(collection: Collection, opened: ExitStack) -> Packed:
    with collection.lock:
        manifest, folder = collection.folder.manifest, collection.folder
        # Open, so that a merge may unlink them meanwhile.
        segments = [opened.enter_context(folder.file(segment).open("rb")) for segment in manifest.segments]
    return Packed(manifest, segments)


def _refuse_taken(manifests: Sequence[Manifest], restorer: Restorer) -> None:
    times = Counter(manifest.key for manifest in manifests)
    for manifest in manifests:
        if times[manifest.key] > 1:
            raise IngestError(f"import: the archive has {manifest} twice")
        if restorer.has(manifest):
            raise IngestError(f"import: {manifest} exists already; remove it first")


def _refuse_tokenizers(manifests: Sequence[Manifest], tokenizers: Sequence[KnownTokenizer]) -> None:
    for manifest in manifests:
        known = next((each for each in tokenizers if each.serves(manifest.tenant, manifest.model)), None)
        for stated in manifest.tokenizers:
            if known is not None and stated not in (None, known.fingerprint):
                raise IngestError(
                    f"import: {manifest} is of tokenizer {stated}; tenant {manifest.tenant!r} and model "
                    f"{manifest.model!r} have {known.fingerprint}"
                )
