"""What a run needs that is not on this machine, each with the command that gets it. Nothing is fetched here."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from seed_opd.config import Config
from seed_opd.environments import WrongOption, make
from seed_opd.errors import UserError
from seed_opd.training.setup import model_path
from seed_opd.training.shapes import missing_files

HUB_NAME = re.compile(r"\w[\w.-]*/[\w.-]+")


@dataclass(frozen=True, slots=True)
class Missing:
    """What is missing, why it is thought so, and a command or a setting that mends it."""

    what: str
    reason: str
    mend: str


def missing(config: Config, model: Path | None = None) -> list[Missing]:
    """Data, model, packages and settings that the recipe's run lacks; `model` replaces the config's."""
    return [*_data(config), *_model(model or model_path(config.model.path)), *_packages(config), *_analyzer(config)]


def _data(config: Config) -> Iterator[Missing]:
    name = config.environment.name
    try:
        make(name, **config.environment.options)
    except WrongOption:
        raise
    except UserError as error:
        yield Missing(f"data of {name}", str(error).rstrip("."), f"SEED_OPD_DATA=FOLDER seed-opd data {name}")


def _model(path: Path | str) -> Iterator[Missing]:
    files = missing_files(path)
    if files:
        on_hub = isinstance(path, str) and HUB_NAME.fullmatch(path)
        mend = f"hf download {path}" if on_hub else "model.path=FOLDER, a folder as docs/models.md describes it"
        yield Missing(f"model {path}", f"not on this machine: {', '.join(files)}", mend)


def _packages(config: Config) -> Iterator[Missing]:
    wanted = {
        "lora": ("peft", config.model.lora is not None),
        "vllm": ("vllm", config.engine.sampler == "vllm"),
        "tinker": ("tinker", config.engine.kind == "tinker"),
        "tensorboard": ("tensorboard", config.tensorboard),
    }
    for extra, (package, needed) in wanted.items():
        if needed and find_spec(package) is None:
            yield Missing(f"package {package}", "not installed", f"pip install 'seed-opd[{extra}]'")


def _analyzer(config: Config) -> Iterator[Missing]:
    """A remote analyzer, of stage 1 or of stage 2, has a name and may have a key."""
    settings = config.analyzer
    if "remote" not in (settings.kind, config.stage1.analyzer):
        return
    if not settings.model:
        yield Missing("remote analyzer", "analyzer.model is empty", "analyzer.model=NAME analyzer.base_url=URL")
    variable = settings.api_key_variable
    if variable and not os.environ.get(variable):
        yield Missing("key of the remote analyzer", f"the variable {variable} is not set", f"export {variable}=...")
