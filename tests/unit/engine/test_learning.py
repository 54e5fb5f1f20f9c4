"""What a namespace learns changes its own drafts and nobody else's, and survives a restart bit for bit."""

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from draftd.client.local import LocalClient
from draftd.config import DraftingSettings, EngineSettings, Settings
from draftd.corpora import CorpusLibrary
from draftd.demo.sample import trace_files
from draftd.engine import Engine
from draftd.priors import MOST_BYTES, pack_priors, read_priors
from draftd.replay import replay_file
from draftd.replay.traces import read_trace
from draftd.wire import Namespace, Reason
from tests.unit.corpora.loader_here import LoaderHere

OURS = Namespace("acme", "model")
THEIRS = Namespace("rival", "model")
NO_PRIORS = DraftingSettings(priors="none")
SHIPPED = pack_priors(read_priors("shipped"))

Part = Callable[[int], Path]


@pytest.fixture(scope="module")
def part(tmp_path_factory: pytest.TempPathFactory) -> Part:
    """Recordings of three requests each, all of one kind of traffic."""
    (math,) = (file for file in trace_files() if "gsm8k" in file.name)
    requests = list(itertools.islice(read_trace(math), 6))
    folder = tmp_path_factory.mktemp("parts")
    for number in range(2):
        lines = [
            json.dumps(
                {
                    "id": request.id,
                    "group": request.group,
                    "prompt_token_ids": request.prompt.tolist(),
                    "output_token_ids": request.output.tolist(),
                }
            )
            for request in requests[3 * number : 3 * number + 3]
        ]
        (folder / f"{number}.jsonl").write_text("\n".join(lines))
    return lambda number: folder / f"{number}.jsonl"


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = Engine(EngineSettings(), NO_PRIORS)
    yield engine
    engine.close()


def drafts(engine: Engine, namespace: Namespace, file: Path) -> bytes:
    """What tells apart the drafts of a replay, survivals included."""
    with LocalClient(engine, namespace) as client:
        return replay_file(file, client).drafts_digest


def test_verifiers_teach_their_own_namespace(engine: Engine, part: Part) -> None:
    drafts(engine, OURS, part(0))
    assert engine.lessons().keys() == {OURS}
    assert engine.learned(THEIRS) == b""


def test_what_one_tenant_teaches_changes_no_draft_of_another(engine: Engine, part: Part) -> None:
    alone = drafts(engine, OURS, part(0))
    assert drafts(engine, THEIRS, part(0)) == alone
    engine.restore_learned(THEIRS, engine.learned(OURS))
    theirs = drafts(engine, THEIRS, part(1))
    assert drafts(engine, OURS, part(1)) == theirs, "both had learned and read the same, in namespaces of their own"


def test_without_learning_drafts_depend_on_text_alone(part: Part) -> None:
    engine = Engine(EngineSettings(), DraftingSettings(learning=False, priors="none"))
    first = drafts(engine, OURS, part(0))
    assert engine.lessons() == {}
    assert drafts(engine, THEIRS, part(0)) == first
    engine.restore_learned(OURS, taught(part))
    assert engine.lessons() == {}
    engine.close()


def taught(part: Part) -> bytes:
    engine = Engine(EngineSettings(), NO_PRIORS)
    drafts(engine, OURS, part(0))
    learned = engine.learned(OURS)
    engine.close()
    return learned


def test_priors_are_where_a_namespace_begins(engine: Engine, part: Part, tmp_path: Path) -> None:
    learned = taught(part)
    path = tmp_path / "priors"
    path.write_bytes(pack_priors(learned))
    begun = Engine(EngineSettings(), DraftingSettings(priors=path))
    assert begun.lessons() == {}, "the priors are nobody's own"
    engine.restore_learned(OURS, learned)
    drafted = drafts(begun, OURS, part(1))
    assert drafted == drafts(engine, OURS, part(1))
    assert drafted != drafts(engine, THEIRS, part(1))
    assert begun.learned(OURS) == engine.learned(OURS)
    begun.close()


def damaged(model: bytes) -> bytes:
    return model[:-1] + bytes([model[-1] ^ 1])


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "the file is empty"),
        (b"nonsense", "not packed as priors are"),
        (read_priors("shipped"), "not packed as priors are"),
        (SHIPPED[:-1], "cut off"),
        (SHIPPED + b"?", "1 bytes stand behind its end"),
        (bytes(MOST_BYTES + 1), "the file has more than 4194304 bytes"),
        (pack_priors(b""), "packed is nothing"),
        (pack_priors(damaged(read_priors("shipped"))), "its checksum is wrong"),
        (pack_priors(b"nonsense"), "too few for a header"),
        (pack_priors(bytes(1 << 23)), "more than 4194304 bytes"),
        (pack_priors(bytes(1000)), "does not begin with draftdM1"),
    ],
)
def test_priors_that_are_none_are_refused(content: bytes, why: str, tmp_path: Path) -> None:
    path = tmp_path / "priors"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"^priors {path}: .*{why}"):
        Engine(EngineSettings(), DraftingSettings(priors=path))


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/absent/priors", "priors /absent/priors: No such file or directory"),
        ("", "priors .: Is a directory"),
        ("/dev/zero", "priors /dev/zero: the file has more than"),
    ],
)
def test_a_path_to_no_priors_is_named(path: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Engine(EngineSettings(), DraftingSettings(priors=Path(path)))


class Life:
    """One life of a server's engine and library."""

    def __init__(self, folder: Path) -> None:
        settings = Settings.model_validate({"history": {"flush_seconds": 3600.0}})
        (folder / "incoming").mkdir(exist_ok=True)
        self.engine = Engine(settings.engine, NO_PRIORS)
        self.library = CorpusLibrary(self.engine, LoaderHere(), settings, folder, folder / "incoming")
        self.library.open()

    def end(self) -> None:
        self.library.close()
        self.engine.close()


def test_a_server_that_was_restarted_drafts_as_one_that_was_not(engine: Engine, part: Part, tmp_path: Path) -> None:
    life = Life(tmp_path)
    assert drafts(life.engine, OURS, part(0)) == drafts(engine, OURS, part(0))
    life.end()
    life = Life(tmp_path)
    assert life.engine.lessons() == engine.lessons()
    assert drafts(life.engine, OURS, part(1)) == drafts(engine, OURS, part(1))
    assert life.engine.learned(OURS) == engine.learned(OURS)
    life.end()


def test_drafts_that_a_threshold_left_empty_teach_what_they_missed() -> None:
    engine = Engine(EngineSettings(), DraftingSettings(priors="none", min_survival=0.9999))
    with LocalClient(engine, OURS) as client:
        request = client.open("r", [1, 2, 3, 1, 2], wait=True)
        assert request.step([3], budget=4).reason == Reason.BELOW_THRESHOLD
        assert engine.lessons() == {}
        request.step([1], budget=4)
        assert engine.lessons() == {OURS: 1}
    engine.close()
