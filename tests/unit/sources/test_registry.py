"""Sources by name: what can be one is said at once, and no name means two things."""

from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from draftd.sources import REGISTRY, Need, Ngram, Registry, SourceError
from draftd.sources import registry as module
from tests.unit.sources.plain import Plain, nature

TOKENS = frozenset({Need.TOKENS})


class Hopeless:
    nature = "fast"
    memory = 5

    def propose(self, batch: Any) -> Any: ...

    async def observe(self, outcome: Any) -> None: ...


class NeedsMore(Plain):
    nature = nature(needs=frozenset({Need.TOKENS, Need.HIDDEN_STATES}))


class Exiting(Plain):
    def __init__(self) -> None:
        raise SystemExit("I am off")


class Refusing(Plain):
    def __init__(self, *, size: int = 1) -> None:
        raise ValueError(f"a size of {size} is none")


@pytest.fixture
def registry() -> Registry:
    registry = Registry()
    registry.register("own", own=True)(Plain)
    return registry


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> list[EntryPoint]:
    """What packages are said to offer."""
    points: list[EntryPoint] = []

    def select(group: str, name: str | None = None) -> list[EntryPoint]:
        return [point for point in points if point.group == group and name in (None, point.name)]

    monkeypatch.setattr(module, "entry_points", select)
    return points


def offer(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, "draftd.sources")


def test_everything_that_is_wrong_with_a_class_is_named_at_once(registry: Registry) -> None:
    with pytest.raises(SourceError) as refused:
        registry.register("hopeless")(Hopeless)  # type: ignore[type-var]
    message = str(refused.value)
    assert message.startswith(f"draft source 'hopeless', {__name__}.Hopeless: ")
    for fault in (
        "nature is no Nature",
        "propose(self, batch: Any) -> Any must take (self, batch, budget)",
        "observe must return its answer, not a coroutine or a generator",
        "close is missing",
        "memory is no plain method",
    ):
        assert fault in message
    assert registry.names() == ["own"]


def test_what_is_no_class_is_refused(registry: Registry) -> None:
    with pytest.raises(SourceError, match="is no class"):
        registry.register("instance")(Plain())  # type: ignore[type-var]


def test_a_class_is_found_under_the_name_it_was_registered_with(registry: Registry) -> None:
    assert registry.register("plain")(Plain) is Plain
    assert registry.find("plain") is Plain
    registry.register("plain")(Plain)  # as when a module is imported by its entry point, too
    with pytest.raises(SourceError, match=r"'plain' is registered already: .*Refusing needs another name"):
        registry.register("plain")(Refusing)


def test_a_name_of_draftds_own_can_not_be_registered_again(registry: Registry) -> None:
    with pytest.raises(SourceError, match="'own' is draftd's own"):
        registry.register("own")(Refusing)


def test_an_unknown_name_is_refused_with_the_known_ones(registry: Registry, installed: list[EntryPoint]) -> None:
    installed.append(offer("other", "nowhere:Nothing"))
    with pytest.raises(SourceError, match="no draft source 'best'; there are other, own"):
        registry.find("best")


def test_an_entry_point_is_imported_when_it_is_asked_for(registry: Registry, installed: list[EntryPoint]) -> None:
    installed += [offer("plain", f"{Plain.__module__}:Plain"), offer("broken", "no_such_module:Source")]
    assert registry.find("plain") is Plain
    with pytest.raises(SourceError, match=r"'broken' of no_such_module:Source can't be imported: No module named"):
        registry.find("broken")


def test_one_of_draftds_own_is_imported_when_it_is_asked_for(registry: Registry) -> None:
    registry.offer("heavy", f"{Plain.__module__}:Plain", extra="models")
    assert registry.names() == ["heavy", "own"]
    with pytest.raises(SourceError, match="'heavy' is draftd's own"):
        registry.register("heavy")(Plain)
    assert registry.find("heavy") is registry.find("heavy") is Plain


def test_one_of_draftds_own_says_what_it_lacks(registry: Registry) -> None:
    registry.offer("heavy", "no_such_module:Source", extra="models")
    for _ in range(2):
        with pytest.raises(SourceError, match=r"'heavy': No module named 'no_such_module'; .*pip install 'draftd\[mod"):
            registry.find("heavy")
    assert registry.names() == ["heavy", "own"]


def test_a_package_can_not_shadow_one_that_is_not_imported_yet(registry: Registry, installed: list[EntryPoint]) -> None:
    registry.offer("heavy", "no_such_module:Source", extra="models")
    installed.append(offer("heavy", f"{Plain.__module__}:Plain"))
    with pytest.raises(SourceError, match=r"'heavy' is draftd's own, and .* would shadow it"):
        registry.find("heavy")


def test_an_entry_point_that_is_no_source_is_refused(registry: Registry, installed: list[EntryPoint]) -> None:
    installed.append(offer("hopeless", f"{__name__}:Hopeless"))
    with pytest.raises(SourceError, match="close is missing"):
        registry.find("hopeless")


def test_a_package_can_not_shadow_a_name_of_draftds_own(registry: Registry, installed: list[EntryPoint]) -> None:
    installed.append(offer("own", f"{__name__}:Plain"))
    with pytest.raises(SourceError, match=r"'own' is draftd's own, and .* would shadow it"):
        registry.find("own")


def test_two_packages_can_not_offer_one_name(registry: Registry, installed: list[EntryPoint]) -> None:
    installed += [offer("twice", "one:Source"), offer("twice", "two:Source")]
    with pytest.raises(SourceError, match="'twice' is offered by one:Source and by two:Source"):
        registry.find("twice")


def test_a_package_can_not_offer_a_name_that_the_program_registered(
    registry: Registry, installed: list[EntryPoint]
) -> None:
    registry.register("plain")(Plain)
    installed.append(offer("plain", f"{__name__}:Refusing"))
    with pytest.raises(SourceError, match=r"'plain' is registered already: .*Refusing needs another name"):
        registry.find("plain")
    installed[:] = [offer("plain", f"{Plain.__module__}:Plain")]  # the same, by both ways
    assert registry.find("plain") is Plain


def test_a_source_that_wants_the_process_to_end_is_refused(
    registry: Registry, installed: list[EntryPoint], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.register("exiting")(Exiting)
    with pytest.raises(SourceError, match="'exiting' does not start: I am off"):
        registry.make("exiting", {}, TOKENS)
    (tmp_path / "exits_on_import.py").write_text("raise SystemExit('I am off')\n")
    monkeypatch.syspath_prepend(tmp_path)
    installed.append(offer("leaving", "exits_on_import:Source"))
    with pytest.raises(SourceError, match=r"'leaving' of exits_on_import:Source can't be imported: I am off"):
        registry.find("leaving")


def test_a_source_that_needs_more_than_there_is_is_not_made(registry: Registry) -> None:
    registry.register("needy")(NeedsMore)
    with pytest.raises(SourceError, match="'needy' needs hidden states, which it can't have here"):
        registry.make("needy", {}, TOKENS)
    assert isinstance(registry.make("needy", {}, TOKENS | {Need.HIDDEN_STATES}), NeedsMore)


def test_options_that_a_source_refuses_are_named(registry: Registry) -> None:
    registry.register("refusing")(Refusing)
    with pytest.raises(SourceError, match="'refusing' does not start: a size of 0 is none"):
        registry.make("refusing", {"size": 0}, TOKENS)
    with pytest.raises(SourceError, match=r"'refusing' does not start: .* unexpected keyword argument 'colour'"):
        registry.make("refusing", {"colour": 1}, TOKENS)


def test_ngram_lookup_is_draftds_own() -> None:
    assert REGISTRY.find("ngram") is Ngram
    with pytest.raises(SourceError, match="'ngram' is draftd's own"):
        REGISTRY.register("ngram")(Plain)
    with pytest.raises(SourceError, match="occurrence is 'latest'; it can be earliest or newest"):
        REGISTRY.make("ngram", {"occurrence": "latest"}, TOKENS)
