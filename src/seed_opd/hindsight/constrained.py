"""Decoding under the skill schema: whatever the model prefers, its answer parses.

An answer is a fixed frame with two texts in it. The frame is forced, token by token, in the tokenizer's own spelling. Inside
a text, xgrammar says which tokens keep it valid UTF-8 without quotes and escapes, and how it may close. Length is bounded
here and not in the grammar, where a bounded repetition made the masks some forty times slower: a text that has used up its
share of the tokens is closed, so that an answer is whole within its budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import xgrammar
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from seed_opd.errors import UserError
from seed_opd.hindsight.schema import SKILL, SUMMARY, Limits

_FRAME = (f'{{"{SUMMARY}":"', f'","{SKILL}":"', '"}')
# A text starts with a letter, a digit or anything outside ASCII, so that it is never empty.
GRAMMAR = rf"""
root ::= "{{\"{SUMMARY}\":\"" text "\",\"{SKILL}\":\"" text "\"}}"
text ::= [A-Za-z0-9\u00a1-\ud7ff\ue000-\U0010ffff] [^"\\\x00-\x1f\x7f-\u00a0\ud800-\udfff]*
"""
_PARTIAL = 3
"""The most bytes that a UTF-8 character can still need."""

_NEVER = 2**31 - 1
"""A width that no text has room for."""


class SchemaDecoder:
    """The schema compiled for one tokenizer; `session` gives the constraint of one batch.

    `vocab_size` is the width of the model's logits, which can exceed the tokenizer. Raises UserError for a tokenizer that
    does not spell the frame byte by byte.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, vocab_size: int, limits: Limits | None = None) -> None:
        self.vocab_size = vocab_size
        self.limits = limits or Limits()
        self._tokenizer = tokenizer
        information = xgrammar.TokenizerInfo.from_huggingface(tokenizer, vocab_size=vocab_size)
        self.compiled = xgrammar.GrammarCompiler(information, max_threads=1).compile_grammar(GRAMMAR)
        self.spelling: list[bytes] = information.decoded_vocab
        self.widths = torch.tensor([_width(token) for token in self.spelling], dtype=torch.int32)  # (vocabulary,)
        self.widths[list(tokenizer.added_tokens_decoder)] = _NEVER  # xgrammar would take "<pad>" for text
        self.continuations = torch.tensor([_continues(token) for token in self.spelling])  # (vocabulary,)
        self.frame = [self.encode(part) for part in _FRAME]
        self.overhead = len(self.frame[0]) + sum(self._most(part) + _PARTIAL for part in _FRAME[1:])

    def session(self, rows: int, budget: int) -> SchemaConstraint:
        """The constraint for a batch whose answers may take `budget` tokens each; raises UserError when that is too few."""
        if budget < self.overhead + 2:
            raise UserError(
                f"analyzer.max_tokens: {budget} is too few for an answer under the schema; give {self.overhead + 2} or more."
            )
        return SchemaConstraint(self, rows, budget - self.overhead)

    def _most(self, part: str) -> int:
        """The most tokens that a part of the frame can take, however much of it the token that ends a text brings along."""
        return max(1 + len(self.encode(part[cut:])) for cut in range(len(part)))

    def encode(self, part: str) -> list[int]:
        ids = list(self._tokenizer.encode(part, add_special_tokens=False))
        if b"".join(self.spelling[i] for i in ids) != part.encode():
            raise UserError(
                f"analyzer.constrained: the tokenizer does not spell {part!r} byte by byte; turn it off to decode freely."
            )
        return ids


@dataclass(slots=True)
class _Row:
    """One answer in the making: what is forced next, and how far its current text has come."""

    matcher: xgrammar.GrammarMatcher
    forced: list[int]
    part: int = 0  # of the frame, the newest one begun
    text: bytes = b""
    characters: int = 0
    tokens: int = 0
    spent: int = 0  # tokens of the first text, once it is closed


class SchemaConstraint:
    """One state per row of a batch. `cuts` counts the texts that were closed for length and not by the model.

    `grammar` alone, for a sampler elsewhere, does not bound length: an answer that `max_tokens` cuts there does not parse,
    and is counted with its status.
    """

    grammar = GRAMMAR

    def __init__(self, decoder: SchemaDecoder, rows: int, content: int) -> None:
        self.cuts = 0
        self._decoder = decoder
        self._content = content  # tokens for both texts
        self._limits = (decoder.limits.summary, decoder.limits.skill)
        self._rows = [_Row(_matcher(decoder), list(decoder.frame[0])) for _ in range(rows)]
        self._bits = xgrammar.allocate_token_bitmask(1, decoder.vocab_size)  # (1, words)

    def mask(self, rows: Sequence[int]) -> Tensor:
        """Which tokens may come next, (rows, vocabulary) bool."""
        return torch.stack([self._allowed(self._rows[row]) for row in rows])

    def accept(self, row: int, token_id: int) -> bool:
        """Advance a row by the token it took; True when its answer is complete. ValueError if it is forbidden."""
        state = self._rows[row]
        if not state.matcher.accept_token(token_id):
            raise ValueError(f"token {token_id} does not continue the answer of row {row}; take one that `mask` allows")
        if state.forced:
            state.forced.pop(0)
        else:
            self._extend(state, self._decoder.spelling[token_id])
        return bool(state.matcher.is_terminated())

    def _allowed(self, state: _Row) -> Tensor:
        """(vocabulary,) bool."""
        if state.forced:
            allowed = torch.zeros(self._decoder.vocab_size, dtype=torch.bool)
            allowed[state.forced[0]] = True
            return allowed
        state.matcher.fill_next_token_bitmask(self._bits)
        allowed = _unpack(self._bits)[: self._decoder.vocab_size]
        if self._is_full(state):  # only a character's last bytes are missing
            return allowed & self._decoder.continuations
        return allowed & (self._decoder.widths <= self._limits[state.part] - state.characters)

    def _extend(self, state: _Row, token: bytes) -> None:
        """Take a token that the model chose: text, and perhaps the quote that ends it and some of the frame after that."""
        text, quote, frame = token.partition(b'"')
        state.text += text
        state.characters += _width(token)
        state.tokens += 1
        if quote:
            self._begin(state, self._decoder.encode(_FRAME[state.part + 1][1 + len(frame) :]))
        elif self._is_full(state) and not _is_partial(state.text):
            self.cuts += 1
            self._begin(state, list(self._decoder.frame[state.part + 1]))

    def _begin(self, state: _Row, forced: list[int]) -> None:
        """Go on to the next part of the frame."""
        state.part, state.forced = state.part + 1, forced
        state.spent, state.tokens, state.characters, state.text = state.tokens, 0, 0, b""

    def _is_full(self, state: _Row) -> bool:
        """The first text may take half of the tokens, the second what is left."""
        half = self._content // 2
        tokens = half if state.part == 0 else self._content - min(state.spent, half)
        return state.tokens >= tokens or state.characters >= self._limits[state.part]


def _matcher(decoder: SchemaDecoder) -> xgrammar.GrammarMatcher:
    return xgrammar.GrammarMatcher(decoder.compiled, terminate_without_stop_token=True)


def _unpack(bits: Tensor) -> Tensor:
    """(1, words) int32 to (32 * words,) bool."""
    return torch.from_numpy(np.unpackbits(bits.numpy().view(np.uint8)[0], bitorder="little")).view(torch.bool)


def _width(token: bytes) -> int:
    """How many characters a token begins before a quote; continuation bytes begin none."""
    return sum(byte & 0xC0 != 0x80 for byte in token.partition(b'"')[0])


def _continues(token: bytes) -> bool:
    return len(token) == 1 and token[0] & 0xC0 == 0x80


def _is_partial(text: bytes) -> bool:
    """Whether the last character still needs bytes."""
    try:
        text.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    return False
