"""Options that a person gives: their names and types are those of the constructor that they are for."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, get_type_hints

from pydantic import TypeAdapter, ValidationError

from seed_opd.errors import UserError

OPTIONS = "environment.options"


class WrongOption(UserError):
    """An option that no data and no package would make right: where it stands, what it is, and why or what to do."""

    def __init__(self, name: str, value: object, why: str, section: str = OPTIONS) -> None:
        super().__init__(f"{section}.{name}: {value!r} {why}")


def check_options(constructor: Callable[..., Any], options: Mapping[str, Any], section: str = OPTIONS) -> None:
    """Raises WrongOption for an option that a constructor does not have, or whose value has not the type that it says."""
    parameters = inspect.signature(constructor).parameters.values()
    known = [one.name for one in parameters if one.kind is not one.POSITIONAL_ONLY]
    types = get_type_hints(constructor.__init__)
    for name, value in options.items():
        if name not in known:
            has = f"there are {', '.join(known)}" if known else "there are none"
            raise WrongOption(name, value, f"belongs to no option; {has}.", section)
        try:
            TypeAdapter(types[name]).validate_python(value, strict=True)
        except ValidationError as error:
            why = " or ".join(dict.fromkeys(one["msg"][0].lower() + one["msg"][1:] for one in error.errors()))
            raise WrongOption(name, value, f"does not fit: {why}.", section) from error
