"""Model folders that cannot be used are refused with one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from seed_opd.errors import UserError
from seed_opd.policy.loading import load_model, load_tokenizer


def test_a_missing_folder_is_not_looked_for_elsewhere(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="'nonexistent' cannot be loaded: there is no such folder"):
        load_model(Path("nonexistent"))


def test_a_folder_without_a_model_gives_one_line(tmp_path):
    with pytest.raises(UserError, match="cannot be loaded as a causal language model") as caught:
        load_model(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_tokenizer_without_a_chat_template_is_refused(tokenizer, model, tmp_path):
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    load_tokenizer(tmp_path)
    (tmp_path / "chat_template.jinja").unlink()
    with pytest.raises(UserError, match="has no chat template"):
        load_tokenizer(tmp_path)
