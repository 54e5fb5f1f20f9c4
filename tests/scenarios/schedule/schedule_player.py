"""Plays a scenario of the adaptive schedule. The statements are those of `language.py`; the commands:

file NAME=VALUE ...                   options of the file that hold for all slots
slot SIZE candidate_steps=[..] ...    a slot of the file; with none, the shipped table is used
verifier initial_steps=N graphs=[..]  the schedule of a verifier that pads to these batch sizes
batch SIZE -> slot=N nodes=N          the slot of a batch, and the nodes of its drafts
verify SIZE accepted=[..] times=N -> nodes=N
    a batch was verified, N times in a row; one number stands for every request. Expected are the nodes that come
    after it, or as a list those after each time
"""

import json
from pathlib import Path
from typing import Any

from draftd.pacing.schedule import Schedule
from draftd.pacing.schedule_table import read_table, shipped_table
from tests.scenarios.language import Statement, read


class SchedulePlayer:
    def __init__(self, folder: Path) -> None:
        """`folder` takes the file that the scenario describes."""
        self._written = folder / "schedule.json"
        self._file: dict[str, Any] = {}
        self._schedule: Schedule | None = None

    def play(self, path: Path) -> None:
        for statement in read(path):
            match statement.command:
                case "file":
                    self._file |= statement.arguments
                case "slot":
                    self._file[statement.subject] = statement.arguments
                case "verifier":
                    self._begin(statement)
                case "batch":
                    self._batch(statement)
                case "verify":
                    self._verify(statement)
                case _:
                    raise statement.error("no such command")

    def _begin(self, statement: Statement) -> None:
        self._written.write_text(json.dumps(self._file))
        table = read_table(self._written) if self._file else shipped_table()
        said = statement.arguments
        self._schedule = Schedule(table, said["initial_steps"], said.get("graphs", []))

    def _running(self, statement: Statement) -> Schedule:
        if self._schedule is None:
            raise statement.error("comes after a verifier")
        return self._schedule

    def _batch(self, statement: Statement) -> None:
        schedule, size = self._running(statement), int(statement.subject)
        self._expect(statement, {"slot": schedule.slot_of(size), "nodes": schedule.nodes(size)})

    def _verify(self, statement: Statement) -> None:
        schedule, size = self._running(statement), int(statement.subject)
        accepted = statement.arguments["accepted"]
        each = accepted if isinstance(accepted, list) else [accepted] * size
        nodes = []
        for _ in range(statement.arguments.get("times", 1)):
            schedule.observe(size, each)
            nodes.append(schedule.nodes(size))
        as_list = any(isinstance(term.value, list) for term in statement.expected)
        self._expect(statement, {"nodes": nodes if as_list else nodes[-1]})

    def _expect(self, statement: Statement, found: dict[str, Any]) -> None:
        if not statement.expected:
            raise statement.error("expects nothing")
        for term in statement.expected:
            if found.get(term.name) != term.value:
                raise statement.error(f"{term.name} is {found.get(term.name)}")
