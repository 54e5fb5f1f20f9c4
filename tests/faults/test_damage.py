"""A server whose files were damaged while it was off serves the rest, and says what it put aside."""

from pathlib import Path

from bench.killable import KillableServer


def test_damage_costs_the_damaged_alone(tmp_path: Path) -> None:
    server = KillableServer(tmp_path / "data")
    try:
        server.start()
        for name in ("good", "bad"):
            server.add("acme", name, {"a": (1, 2, 3)})
        server.kill()
        (bad,) = [path for path in (tmp_path / "data" / "collections").iterdir() if '"bad"' in manifest_in(path)]
        (segment,) = bad.glob("*.segment")
        segment.write_bytes(segment.read_bytes()[:-1])
        server.start()
        assert server.contents("acme").corpora == {"good": {"a": (1, 2, 3)}}
        assert [path.name for path in (tmp_path / "data" / "quarantine").iterdir()] == [bad.name]
        assert f"damaged, put aside as {tmp_path}/data/quarantine/{bad.name}: " in server.log.read_text()
        server.add("acme", "bad", {"b": (4,)})
        assert server.contents("acme").corpora["bad"] == {"b": (4,)}
    finally:
        server.kill()


def manifest_in(folder: Path) -> str:
    return (folder / "manifest.json").read_text()
