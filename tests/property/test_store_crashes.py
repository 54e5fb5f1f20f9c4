"""Whatever is done to a store, and wherever it is cut off or fails: there is the state before or the state after.

After a cut a start finds it, after an error the process goes on with it, and a start finds it too."""

import shutil
import tempfile
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from draftd.storage import (
    CollectionFolder,
    Manifest,
    Pending,
    Scratch,
    SegmentFile,
    Store,
    fresh_identity,
    fresh_segment_name,
)
from tests.property.crashing_disk import Crash, CrashingDisk, Fault


@dataclass(frozen=True, slots=True)
class Kept:
    """What a collection has: the bytes of its segments, its generation, and the frames of its journals."""

    segments: tuple[bytes, ...] = ()
    generation: int = 0
    journals: tuple[tuple[int, tuple[bytes, ...]], ...] = ()

    def with_frame(self, frame: bytes) -> "Kept":
        journals = dict(self.journals)
        live = max(journals, default=self.generation)
        return replace(self, journals=tuple({**journals, live: (*journals.get(live, ()), frame)}.items()))


State = Mapping[str, Kept]  # by name
NAMES = st.sampled_from(["a", "b", "c"])
FAULTS = st.tuples(st.integers(0, 60), st.sampled_from(Fault))  # the operations before it; more than any change takes

NEVER = 1 << 20


class StoreMachine(RuleBasedStateMachine):
    """The twin is a mapping from names to what is kept."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        # Names in an order of their own, so that a seed says the same every time.
        self.patch = pytest.MonkeyPatch()
        numbers = count(1)
        self.patch.setattr(uuid, "uuid4", lambda: uuid.UUID(int=next(numbers)))
        self.state: dict[str, Kept] = {}
        self.starts = 0
        self.start(self.folder / "0")

    def teardown(self) -> None:
        self.patch.undo()
        self.disk.forget()
        shutil.rmtree(self.folder)

    def start(self, root: Path) -> None:
        root.mkdir(exist_ok=True)
        shutil.rmtree(root / "incoming", ignore_errors=True)
        (root / "incoming").mkdir()
        self.store = Store(root, Scratch(root / "incoming"))
        self.folders = {folder.manifest.name: folder for folder in self.store.open()}
        self.disk = CrashingDisk(root)
        assert not self.store.quarantine.exists(), "a crash damages nothing"

    def attempt(self, change: Callable[[], None], after: State, fault: tuple[int, Fault], data: st.DataObject) -> None:
        """Does it. When the machine dies within, starts anew; after an error, perhaps."""
        before = self.state
        try:
            with self.disk.failing_after(*fault):
                change()
        except Crash:
            self.power_fails(data, before, after)
        except OSError:
            if data.draw(st.booleans(), label="the machine dies then"):
                self.power_fails(data, before, after)
            else:
                self.settle()
                self.state = self.found()
                assert self.state in (before, after)
        else:
            self.state = dict(after)

    def settle(self) -> None:
        """As the upkeep does, on a disk that works again."""
        with self.disk.failing_after(NEVER, Fault.POWER):
            for folder in self.folders.values():
                folder.clean()
            self.store.clear()
        for folder in self.folders.values():
            assert len(list(folder.path.iterdir())) == 1 + len(folder.manifest.segments) + len(folder.journals())
        assert not list(self.store.scratch.path.glob("*/*"))

    def power_fails(self, data: st.DataObject, *possible: State) -> None:
        self.starts += 1
        root = self.folder / str(self.starts)
        chance = Random(data.draw(st.integers(0, 2**32)))
        self.disk.restart_in(root, lambda most: chance.randint(0, most))
        self.disk.forget()
        self.start(root)
        assert self.found() in possible
        self.state = self.found()

    def found(self) -> dict[str, Kept]:
        return {name: kept_in(folder) for name, folder in self.folders.items()}

    def built(self, content: bytes) -> tuple[SegmentFile, Path]:
        """A synced file in the scratch folder, as a build leaves it."""
        name = fresh_segment_name()
        path = self.store.scratch.path / name
        path.write_bytes(content)
        self.disk._sync(path)
        return SegmentFile(file=name, bytes=len(content), tokens=1, documents=1, oldest=0, newest=0), path

    @rule(name=NAMES, content=st.binary(max_size=3), fault=FAULTS, data=st.data())
    def add(self, name: str, content: bytes, fault: tuple[int, Fault], data: st.DataObject) -> None:
        """A segment more: of a new collection, or of one that is there."""
        file, path = self.built(content)
        folder = self.folders.get(name)

        def change() -> None:
            if folder is None:
                self.folders[name] = self.store.create(manifest_of(name, (file,)), {file.file: path})
                self.folders[name].sync()
            else:
                folder.adopt(path, file.file)
                folder.commit(with_segments(folder.manifest, (*folder.manifest.segments, file)))
                folder.clean()

        kept = self.state.get(name, Kept())
        after = {**self.state, name: replace(kept, segments=(*kept.segments, content))}
        self.attempt(change, after, fault, data)

    @precondition(lambda self: self.state)
    @rule(content=st.binary(max_size=3), fault=FAULTS, data=st.data())
    def rebuild(self, content: bytes, fault: tuple[int, Fault], data: st.DataObject) -> None:
        """All segments become one."""
        name = data.draw(st.sampled_from(sorted(self.state)))
        folder = self.folders[name]
        file, path = self.built(content)

        def change() -> None:
            folder.adopt(path, file.file)
            folder.commit(with_segments(folder.manifest, (file,)))
            folder.clean()

        after = {**self.state, name: replace(self.state[name], segments=(content,))}
        self.attempt(change, after, fault, data)

    @precondition(lambda self: self.state)
    @rule(fault=FAULTS, data=st.data())
    def remove(self, fault: tuple[int, Fault], data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.state)))
        after = {other: kept for other, kept in self.state.items() if other != name}

        def change() -> None:
            self.store.remove(self.folders[name])
            del self.folders[name]
            self.store.clear()

        self.attempt(change, after, fault, data)

    @precondition(lambda self: self.state)
    @rule(frame=st.binary(min_size=1, max_size=3), fault=FAULTS, data=st.data())
    def journal(self, frame: bytes, fault: tuple[int, Fault], data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.state)))
        folder, kept = self.folders[name], self.state[name]
        after = {**self.state, name: kept.with_frame(frame)}
        live = max(dict(kept.journals), default=kept.generation)
        self.attempt(lambda: folder.append_to_journal(live, frame), after, fault, data)

    @precondition(lambda self: any(kept.journals for kept in self.state.values()))
    @rule(content=st.binary(max_size=3), fault=FAULTS, data=st.data())
    def seal(self, content: bytes, fault: tuple[int, Fault], data: st.DataObject) -> None:
        """A segment takes the place of all journals."""
        name = data.draw(st.sampled_from(sorted(name for name, kept in self.state.items() if kept.journals)))
        folder, kept = self.folders[name], self.state[name]
        file, path = self.built(content)
        generation = max(dict(kept.journals)) + 1

        def change() -> None:
            folder.adopt(path, file.file)
            manifest = with_segments(folder.manifest, (*folder.manifest.segments, file))
            folder.commit(manifest.model_copy(update={"generation": generation}))
            folder.clean()

        sealed = Kept((*kept.segments, content), generation)
        self.attempt(change, {**self.state, name: sealed}, fault, data)

    @precondition(lambda self: any(kept.journals for kept in self.state.values()))
    @rule(fault=FAULTS, data=st.data())
    def rewrite_journal(self, fault: tuple[int, Fault], data: st.DataObject) -> None:
        """Every other frame goes."""
        name = data.draw(st.sampled_from(sorted(name for name, kept in self.state.items() if kept.journals)))
        folder, kept = self.folders[name], self.state[name]
        generation, frames = kept.journals[-1]
        left = {**dict(kept.journals), generation: frames[1::2]}
        journals = tuple((number, frames) for number, frames in left.items() if frames)
        after = {**self.state, name: replace(kept, journals=journals)}
        self.attempt(lambda: folder.rewrite_journal(generation, frames[1::2]), after, fault, data)

    @rule(contents=st.lists(st.binary(max_size=3), min_size=1, max_size=3), fault=FAULTS, data=st.data())
    def bring_in(self, contents: list[bytes], fault: tuple[int, Fault], data: st.DataObject) -> None:
        """Several collections, all or none; one that is there gets a segment before its own."""
        built = {name: self.built(content) for name, content in zip("abc", contents, strict=False)}
        new = {name: fresh_identity() for name in built if name not in self.folders}
        there = {name: (self.folders[name], file) for name, (file, _) in built.items() if name not in new}

        def take_back() -> None:
            for folder, file in there.values():
                segments = tuple(segment for segment in folder.manifest.segments if segment != file)
                folder.commit(with_segments(folder.manifest, segments))
                folder.clean()

        def change() -> None:
            pending = Pending(list(new.values()), [file.file for _, file in there.values()])
            folders = {}
            with self.store.all_or_none(pending, take_back):
                for name, (file, path) in built.items():
                    if name in new:
                        folders[name] = self.store.create(manifest_of(name, (file,)), {file.file: path}, new[name])
                    else:
                        folders[name] = folder = self.folders[name]
                        folder.adopt(path, file.file)
                        folder.commit(with_segments(folder.manifest, (file, *folder.manifest.segments)))
                        folder.clean()
                self.store.keep(list(folders.values()))
            self.folders |= folders
            for folder in folders.values():
                folder.sync()

        kept = {name: self.state.get(name, Kept()) for name in built}
        after = {
            name: replace(kept[name], segments=(content, *kept[name].segments))
            for name, content in zip("abc", contents, strict=False)
        }
        self.attempt(change, {**self.state, **after}, fault, data)

    @rule(data=st.data())
    def power_cut(self, data: st.DataObject) -> None:
        """Between two changes nothing of them is lost."""
        self.power_fails(data, self.state)

    @invariant()
    def it_is_what_it_should_be(self) -> None:
        assert self.found() == self.state


def kept_in(folder: CollectionFolder) -> Kept:
    return Kept(
        tuple(folder.file(segment).read_bytes() for segment in folder.manifest.segments),
        folder.manifest.generation,
        # One without a frame says nothing.
        tuple((generation, tuple(frames)) for generation, frames in folder.journals().items() if frames),
    )


def manifest_of(name: str, segments: tuple[SegmentFile, ...]) -> Manifest:
    return Manifest(kind="history", tenant="t", model="m", adapter="", tokenizers=(None,), name=name, segments=segments)


def with_segments(manifest: Manifest, segments: tuple[SegmentFile, ...]) -> Manifest:
    return manifest.model_copy(update={"segments": segments})


StoreMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=12, deadline=None)
TestStore = StoreMachine.TestCase
