"""Recipes and overrides: what is right comes out as one object, what is wrong as one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from seed_opd.config import Config, Section, dump, heading, load, packaged
from seed_opd.errors import UserError
from seed_opd.methods import resolve

RIGHT = {
    "rollout.tasks=4": ("rollout", "tasks", 4),
    "optimizer.learning_rate=1e-4": ("optimizer", "learning_rate", 1e-4),
    "optimizer.betas=[0.9, 0.95]": ("optimizer", "betas", (0.9, 0.95)),
    "environment.train_tasks=null": ("environment", "train_tasks", None),
    "environment.options={games: generated}": ("environment", "options", {"games": "generated"}),
    "environment.options.games=original": ("environment", "options", {"games": "original"}),
    "analyzer.constrained=false": ("analyzer", "constrained", False),
    "context.style=windowed": ("context", "style", "windowed"),
}

WRONG = {
    "rollout.tsks=3": "rollout.tsks: there is no such field",
    "rolout.tasks=3": "rolout: there is no such field",
    "rollout.tasks=many": "rollout.tasks: 'many' is not valid: input should be a valid integer",
    "rollout.tasks=0": "rollout.tasks: 0 is not valid: input should be greater than or equal to 1",
    "rollout.temperature=0.7": "rollout.temperature must be 1",
    "context.style=chat": "context.style: 'chat' is not valid: input should be 'windowed' or 'transcript'",
    "seed=1.5": "seed: 1.5 is not valid",
    "rollout=3": "rollout: 3 is not valid",
    "name.first=x": "override: 'name.first' goes below 'name', which is a value and not a section.",
    "rollout.tasks": "override: 'rollout.tasks' has no value; write it as section.field=value.",
    "rollout.tasks=[1": "override: 'rollout.tasks=[1' has a value that is not YAML",
}


@pytest.mark.parametrize("recipe", packaged("recipes"))
def test_every_recipe_loads_and_names_a_method(recipe: str) -> None:
    config = load(recipe)
    resolve(config.method, config.overrides)


@pytest.mark.parametrize("recipe", packaged("recipes"))
def test_what_is_dumped_loads_as_the_same(recipe: str, tmp_path: Path) -> None:
    config = load(recipe, ["overrides={distillation: {weight: 0.02}}", "environment.train_tasks=7", "threads=2"])
    (tmp_path / "config.yaml").write_text(dump(config), encoding="utf-8")
    assert load(str(tmp_path / "config.yaml")) == config


SECTIONS = {name: value for name, value in Config() if isinstance(value, Section)}


def test_a_dump_leaves_nothing_out() -> None:
    shown = yaml.safe_load(dump(Config()))
    assert set(shown) == set(Config.model_fields)
    assert all(set(shown[name]) == set(type(section).model_fields) for name, section in SECTIONS.items())


def test_every_field_is_documented() -> None:
    fields = {name: field for name, field in Config.model_fields.items() if name not in SECTIONS}
    for section in SECTIONS.values():
        fields |= {f"{type(section).__name__}.{name}": field for name, field in type(section).model_fields.items()}
    assert [name for name, field in fields.items() if not field.description] == []


@pytest.mark.parametrize("override", RIGHT)
def test_an_override_reaches_its_field(override: str, tmp_path: Path) -> None:
    section, field, value = RIGHT[override]
    (tmp_path / "empty.yaml").write_text("")
    config = load(str(tmp_path / "empty.yaml"), [override])
    assert getattr(getattr(config, section), field) == value
    untouched = Config().model_dump()
    assert {name: shown for name, shown in config.model_dump().items() if name != section} == {
        name: shown for name, shown in untouched.items() if name != section
    }


def test_the_last_override_wins() -> None:
    assert load("demo", ["updates=3", "updates=5"]).updates == 5


@pytest.mark.parametrize("override", WRONG)
def test_a_wrong_override_gives_one_sentence_with_its_field(override: str) -> None:
    with pytest.raises(UserError) as caught:
        load("demo", [override])
    assert WRONG[override] in str(caught.value)
    assert "\n" not in str(caught.value)


def test_several_mistakes_are_all_named() -> None:
    with pytest.raises(UserError, match=r"^updates: .*; rollout\.tasks: "):
        load("demo", ["rollout.tasks=0", "updates=0"])


@pytest.mark.parametrize(
    ("recipe", "sentence"),
    [
        ("nonesuch", f"recipe: 'nonesuch' is unknown; choose one of {', '.join(packaged('recipes'))}, or give"),
        ("/nonexistent/my.yaml", "recipe: there is no file '/nonexistent/my.yaml'; packaged recipes are "),
    ],
)
def test_a_recipe_that_is_not_there(recipe: str, sentence: str) -> None:
    with pytest.raises(UserError) as caught:
        load(recipe)
    assert sentence in str(caught.value)


@pytest.mark.parametrize("text", ["rollout: [1", "- a\n- b\n", "just words"])
def test_a_recipe_that_is_no_mapping(text: str, tmp_path: Path) -> None:
    (tmp_path / "my.yaml").write_text(text)
    with pytest.raises(UserError, match=r"recipe: '.*my\.yaml' is not a YAML mapping") as caught:
        load(str(tmp_path / "my.yaml"))
    assert "\n" not in str(caught.value)


def test_a_recipe_cannot_run_code(tmp_path: Path) -> None:
    (tmp_path / "my.yaml").write_text(f"name: !!python/object/apply:os.mkdir ['{tmp_path}/made']\n")
    with pytest.raises(UserError, match="is not a YAML mapping"):
        load(str(tmp_path / "my.yaml"))
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("folder", ["recipes", "studies"])
def test_every_packaged_file_says_in_one_line_what_it_is(folder):
    assert all(heading(folder, name)[-1] in ".?" for name in packaged(folder))
