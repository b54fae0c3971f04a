"""Shapes: known models have their public sizes, and nothing is looked up on a network."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from transformers import AutoConfig

from seed_opd.config import TINY
from seed_opd.errors import UserError
from seed_opd.training.setup import model_path
from seed_opd.training.shapes import KNOWN, config_of, missing_files, shape_of


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("Qwen/Qwen2.5-3B-Instruct", 3_085_938_688),
        ("Qwen/Qwen2.5-7B-Instruct", 7_615_616_512),
        ("Qwen/Qwen3-1.7B", 1_720_574_976),
        ("Qwen/Qwen2.5-VL-3B-Instruct", 3_754_622_976),
    ],
)
def test_known_models_have_their_published_number_of_parameters(name: str, parameters: int) -> None:
    shape = shape_of(AutoConfig.for_model(**KNOWN[name]))
    assert shape.parameters == parameters
    assert 0 < shape.outer_parameters < shape.parameters


def test_a_shared_output_head_counts_once() -> None:
    shared = KNOWN["Qwen/Qwen3-1.7B"]
    apart = shape_of(AutoConfig.for_model(**{**shared, "tie_word_embeddings": False}))
    assert apart.parameters == 2_031_739_904 == shape_of(AutoConfig.for_model(**shared)).parameters + 151936 * 2048


def test_a_folder_is_read() -> None:
    shape = shape_of(config_of(model_path(TINY)))
    assert (shape.vocabulary, shape.width, shape.layers, shape.head_norms) == (1088, 160, 4, True)
    assert missing_files(model_path(TINY)) == []


def test_what_is_not_here_is_said(tmp_path: Path) -> None:
    assert missing_files("nobody/nothing") == ["config.json", "tokenizer", "weights"]
    (tmp_path / "config.json").write_text("{}")
    assert missing_files(tmp_path) == ["tokenizer", "weights"]
    with pytest.raises(UserError, match=r"model.path: the shape of 'nobody/nothing' is not known"):
        config_of("nobody/nothing")
