"""What people read about the options: the commented default file, and the nearest known name to a wrong one."""

import difflib
import json
from collections.abc import Iterable, Iterator
from typing import Any, get_args

from pydantic import BaseModel, ByteSize
from pydantic.fields import FieldInfo

from draftd.config.settings import Section, Settings


def default_config() -> str:
    """The commented default file, as TOML. Reading it gives the default settings."""
    lines = [
        "# Settings of draftd. Every value below is the default.",
        "# Each is also an environment variable: DRAFTD_ and the name in capitals, sections joined by two underscores,",
        "# for example DRAFTD_ENGINE__MAX_NODES=32; lists are written there as JSON. The command line wins over the",
        "# environment, the environment over this file.",
    ]
    for name, field in Settings.model_fields.items():
        if isinstance(field.default, Section):
            lines += ["", "", f"# {type(field.default).__doc__}", f"[{name}]"]
            for inner_name, inner in type(field.default).model_fields.items():
                lines += _option(inner_name, inner)
        else:
            lines += _option(name, field)
    return "\n".join(lines) + "\n"


def option_names(tree: type[BaseModel], above: str = "", *, of_lists: bool) -> Iterator[str]:
    """Dotted names of all sections and options; `of_lists`: below lists also those of the tables in them."""
    for name, field in tree.model_fields.items():
        yield above + name
        section = _section_in(field)
        if section and (of_lists or isinstance(field.default, Section)):
            yield from option_names(section, f"{above}{name}.", of_lists=of_lists)


def nearest(name: str, known: Iterable[str]) -> str:
    """The known option or variable most like `name`. The right last part in the wrong section is near."""
    candidates = sorted(known)
    separator = "__" if "__" in name or name.isupper() else "."
    last = name.rpartition(separator)[2].removeprefix("DRAFTD_")
    elsewhere = [candidate for candidate in candidates if candidate.endswith(separator + last)]
    return (elsewhere or difflib.get_close_matches(name, candidates, n=1, cutoff=0.0))[0]


def _section_in(field: FieldInfo) -> type[Section] | None:
    for annotation in (field.annotation, *get_args(field.annotation)):
        if isinstance(annotation, type) and issubclass(annotation, Section):
            return annotation
    return None


def _option(name: str, field: FieldInfo) -> list[str]:
    text = f"{field.description}{_limits(field)}"
    if section := _section_in(field):
        parts = (f"{key} ({inner.description}{_default(inner)})" for key, inner in section.model_fields.items())
        text += f" A list of tables with {', '.join(parts)}."
    value = f"# {name} =" if field.default is None else f"{name} = {_toml(field.default)}"
    return ["", *_comment(text), value]


def _default(field: FieldInfo) -> str:
    return "" if field.is_required() else f"; default {_toml(field.default)}"


def _limits(field: FieldInfo) -> str:
    words = {"ge": "at least", "gt": "above", "le": "at most"}
    found = [
        f"{phrase} {_toml(type(field.default)(limit))}".replace('"', "")
        for bound in field.metadata
        for attribute, phrase in words.items()
        if (limit := getattr(bound, attribute, None)) is not None
    ]
    return f" Limits: {', '.join(found)}." if found else ""


def _toml(value: Any) -> str:
    if isinstance(value, ByteSize):
        return f'"{value.human_readable().replace(".0", "")}"'
    return json.dumps(value)


def _comment(text: str, width: int = 110) -> list[str]:
    lines = ["#"]
    for word in text.split():
        if len(lines[-1]) + 1 + len(word) > width:
            lines.append("#")
        lines[-1] += " " + word
    return lines
