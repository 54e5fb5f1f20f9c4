"""A namespace as one file: out of this data directory, and into it, all or nothing."""

from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path

from draftd.corpora.collection import Collection
from draftd.corpora.restoring import Restorer
from draftd.corpora.segments import Held
from draftd.corpora.tokenizers import fingerprint_of
from draftd.ingest import IngestError, KnownTokenizer
from draftd.storage import (
    Bytes,
    DamagedError,
    Manifest,
    Packed,
    Pending,
    Store,
    Unpacked,
    fresh_identity,
    read_archive,
    write_archive,
)

MOST_SEGMENTS_IMPORTED = 64  # of one collection: an export of this draftd has fewer


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


def import_archive(
    archive: Path,
    store: Store,
    restorer: Restorer,
    tokenizers: Sequence[KnownTokenizer],
    turn: AbstractContextManager[object],
) -> Imported:
    """Raises IngestError, OverLimit, or what the engine raises for a limit; then nothing of it is there.

    `turn`: the workshop's."""
    try:
        with store.scratch.folder() as place:
            unpacked = read_archive(archive, place)
            manifests = [each.manifest for each in unpacked]
            _refuse_unfit(manifests)
            _refuse_tokenizers(manifests, tokenizers)
            with turn:
                tokens = _bring_in(unpacked, store, restorer)
    except DamagedError as error:
        raise IngestError(f"import: {error}") from None
    corpora = sum(manifest.kind == "corpus" for manifest in manifests)
    return Imported(corpora, len(manifests) - corpora, tokens)


def _bring_in(unpacked: Sequence[Unpacked], store: Store, restorer: Restorer) -> int:
    """How many tokens; histories that are there get them as their oldest."""
    found = [(each, restorer.find(each.manifest)) for each in unpacked]
    new = [each for each, collection in found if collection is None]
    there = [(each, collection) for each, collection in found if collection is not None]
    for each, _ in there:
        if each.manifest.kind == "corpus":
            raise IngestError(f"import: {each.manifest} exists already; remove it first")
    pending = Pending([fresh_identity() for _ in new], [name for each, _ in there for name in each.files])
    extended: list[tuple[Collection, Sequence[Held]]] = []

    def take_back() -> None:
        for collection, held in extended:
            collection.drop(held)

    with store.all_or_none(pending, take_back), ExitStack() as undo:
        folders = []
        for each, identity in zip(new, pending.identities, strict=True):
            folder = store.create(each.manifest, each.files, identity)
            restorer.restore(folder)
            undo.callback(restorer.discard, each.manifest)
            folders.append(folder)
        for each, collection in there:
            extended.append((collection, restorer.extend(collection, each.manifest, each.files)))
            folders.append(collection.folder)
        store.keep(folders)
        undo.pop_all()
    for each in unpacked:
        if (brought_in := restorer.find(each.manifest)) is not None:
            brought_in.publish()
    return sum(segment.tokens for each in unpacked for segment in each.manifest.segments)


def _packed(collection: Collection, opened: ExitStack) -> Packed:
    with collection.lock:
        manifest, folder = collection.folder.manifest, collection.folder
        # Open, so that a merge may unlink them meanwhile.
        segments = [opened.enter_context(folder.file(segment).open("rb")) for segment in manifest.segments]
    return Packed(manifest, segments)


def _refuse_unfit(manifests: Sequence[Manifest]) -> None:
    times = Counter(manifest.key for manifest in manifests)
    for manifest in manifests:
        if times[manifest.key] > 1:
            raise IngestError(f"import: the archive has {manifest} twice")
        if len(manifest.segments) > MOST_SEGMENTS_IMPORTED:
            raise IngestError(
                f"import: {manifest} has {len(manifest.segments)} segments; at most {MOST_SEGMENTS_IMPORTED}: "
                "each of them is searched in every step until they are merged"
            )


def _refuse_tokenizers(manifests: Sequence[Manifest], tokenizers: Sequence[KnownTokenizer]) -> None:
    for manifest in manifests:
        known = fingerprint_of(manifest.tenant, manifest.model, tokenizers)
        for stated in manifest.tokenizers:
            if known is not None and stated not in (None, known):
                raise IngestError(
                    f"import: {manifest} is of tokenizer {stated}; tenant {manifest.tenant!r} and model "
                    f"{manifest.model!r} have {known}"
                )
