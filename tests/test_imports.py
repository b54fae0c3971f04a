"""Who may import whom.

    cli -> training, evaluation, report -> methods -> objectives, hindsight, policy, environments -> trajectory

Imports inside functions count too, but not those for type checkers alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"
PACKAGE = "seed_opd"

DATA = {"trajectory", "files", "errors", "processes"}
PARTS = {"objectives", "hindsight", "policy", "environments"}
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "heartbeat": set(),
    "processes": {"errors", "heartbeat"},
    "files": {"processes"},
    "trajectory": {"files", "errors"},
    "objectives": set(),
    "environments": DATA,
    "hindsight": DATA | {"environments"},
    "policy": DATA | {"environments"},
    "methods": DATA | PARTS,
    "config": {"errors"},
    "training": DATA | PARTS | {"methods", "config", "evaluation", "report"},
    "evaluation": DATA | PARTS | {"methods", "config"},
    "report": DATA | PARTS | {"evaluation"},
    "cli": DATA | PARTS | {"methods", "config", "training", "evaluation", "report"},
}
MODELS = {"torch", "transformers", "tokenizers", "safetensors", "xgrammar", "huggingface_hub", "peft"}
MAY_IMPORT_MODELS: dict[str, set[str]] = {
    "objectives": {"torch"},
    "processes": {"torch"},
    "heartbeat": {"torch"},
    "methods": {"torch"},
    "hindsight": MODELS,
    "policy": MODELS,
    "training": MODELS,
}


def modules() -> dict[str, ast.Module]:
    """Every module of the package, by its dotted name."""
    files = (SOURCE / PACKAGE).rglob("*.py")
    return {
        ".".join(file.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"): ast.parse(
            file.read_text("utf-8")
        )
        for file in files
    }


def imported(tree: ast.AST) -> Iterator[str]:
    """The dotted names that a module imports; relative ones are refused, so that names can be looked for."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module, f"line {node.lineno}: a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        else:
            yield from imported(node)


def part(name: str) -> str:
    """seed_opd.policy.engine -> policy."""
    return [*name.split("."), ""][1]


MODULES = modules()
INNER = {name for name in MODULES if name != PACKAGE}


def test_every_part_has_its_place() -> None:
    assert {part(name) for name in INNER} == set(MAY_IMPORT)


@pytest.mark.parametrize("name", sorted(INNER))
def test_nothing_is_imported_upwards_or_from_where_it_should_not_be_known(name: str) -> None:
    own = part(name)
    inside = {part(other) for other in imported(MODULES[name]) if other.startswith(PACKAGE + ".")}
    assert inside - {own} <= MAY_IMPORT[own]
    outside = {other.split(".")[0] for other in imported(MODULES[name])}
    assert outside & MODELS <= MAY_IMPORT_MODELS.get(own, set())


def test_no_module_imports_itself_through_others() -> None:
    edges = {
        name: {found for other in imported(tree) for found in _modules_of(other)} - {name} for name, tree in MODULES.items()
    }
    list(TopologicalSorter(edges).static_order())  # raises CycleError, which names the cycle


def test_an_import_inside_a_function_is_found_and_one_for_types_is_not() -> None:
    tree = ast.parse(
        "if TYPE_CHECKING:\n import a\ndef f():\n if x:\n  from b.c import d\ntry:\n import e.f\nfinally:\n pass"
    )
    assert sorted(imported(tree)) == ["b.c.d", "e.f"]


def _modules_of(name: str) -> set[str]:
    """`from a.b import c` imports the module a.b, or a.b.c where that is a module."""
    parent = name.rpartition(".")[0]
    return {name} if name in INNER else {parent} & INNER
