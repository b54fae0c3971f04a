"""Contexts: how a trajectory becomes token sequences.

`windowed`: each step is a prompt of its own with the last few steps in it, as in the paper; an episode of T steps gives T
samples. `transcript`: the episode is one growing conversation and one token sequence; one forward pass scores all of it.

Both take an optional skill: the same responses then stand behind the prompt with the skill in it. The text that is dropped
for length is always the oldest middle of the history (never instructions, task, skill or the newest step), is decided
without the skill, so that both contexts keep the same history, and is counted in `dropped_steps`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any, Literal, Protocol

from transformers import PreTrainedTokenizerBase

from seed_opd.environments.base import IMAGE, Environment, Situation
from seed_opd.environments.messages import interleave
from seed_opd.errors import UserError
from seed_opd.policy.pictures import Eye
from seed_opd.policy.samples import Sample
from seed_opd.trajectory import Step, Trajectory

Style = Literal["windowed", "transcript"]


class ChatTemplate:
    """A tokenizer's own chat template, taken apart so that a conversation grows without re-tokenising what was sampled."""

    _MARK = "MARK8f21"

    def __init__(
        self, tokenizer: PreTrainedTokenizerBase, options: dict[str, Any] | None = None, eye: Eye | None = None
    ) -> None:
        self.tokenizer = tokenizer
        self.options = options or {}
        self.eye = eye
        self.end_id: int = tokenizer.eos_token_id
        self._control = [token.content for token in tokenizer.added_tokens_decoder.values() if token.special]
        self.user_turn = lru_cache(maxsize=8192)(self._user_turn)
        self._openings = lru_cache(maxsize=1024)(self._opening)

    def opening(self, message: str, images: Sequence[str] = ()) -> list[int]:
        """Token ids of a conversation that begins with a user message and awaits the assistant's answer.

        `images` are the pictures for the places that the message has for them.
        """
        return list(self._openings(message, tuple(images)))

    def _opening(self, message: str, images: tuple[str, ...]) -> tuple[int, ...]:
        return tuple(self._encode(self._render([{"role": "user", "content": self._harmless(message)}]), images))

    def _user_turn(self, message: str, images: tuple[str, ...] = ()) -> tuple[int, ...]:
        """Token ids between an answer and the next one, the answer's end token first."""
        messages = [
            {"role": "user", "content": "-"},
            {"role": "assistant", "content": self._MARK},
            {"role": "user", "content": self._harmless(message)},
        ]
        ids = self._encode(self._render(messages).rpartition(self._MARK)[2], images)
        if ids[0] != self.end_id:
            ids = [self.end_id, *ids]
        return tuple(ids)

    def _harmless(self, message: str) -> str:
        """A message in which no text of a page, a passage or a skill can end a turn: control tokens are taken apart."""
        for token in self._control:
            message = message.replace(token, f"{token[0]} {token[1:]}")
        return message

    def _render(self, messages: list[dict[str, str]]) -> str:
        return str(self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, **self.options))

    def _encode(self, text: str, images: Sequence[str] = ()) -> list[int]:
        ids: list[int] = []
        for piece, image in interleave(text, images):
            ids += self.tokenizer.encode(piece, add_special_tokens=False)
            if image is not None:
                ids += self._sight.ids(image)
        return ids

    @property
    def _sight(self) -> Eye:
        if self.eye is None:
            raise UserError(
                "model.path: this model cannot see; choose a vision-language model, or view the environment as text."
            )
        return self.eye


class Context(Protocol):
    """What both styles offer."""

    template: ChatTemplate
    grows: bool
    """Whether a step's prompt begins with the last one's tokens, so that a cache of them is of use."""

    def prompt(self, situation: Situation, skill: str | None = None) -> list[int]:
        """Token ids to sample the next response from."""

    def samples(self, trajectory: Trajectory, skill: str | None = None) -> list[Sample]:
        """The token sequences in which the trajectory's responses were sampled, each response in exactly one of them."""

    def dropped_steps(self, trajectory: Trajectory) -> int:
        """How many steps of history were left out of prompts, over all steps of the trajectory."""


class WindowedContext:
    """Each step is its own prompt with the last `window` observations and actions."""

    grows = False

    def __init__(self, template: ChatTemplate, environment: Environment, window: int, max_prompt_tokens: int) -> None:
        self.template = template
        self.environment = environment
        self.window = window
        self.max_prompt_tokens = max_prompt_tokens

    def prompt(self, situation: Situation, skill: str | None = None) -> list[int]:
        return self._prompt(situation, skill, self._fitting_window(situation))

    def samples(self, trajectory: Trajectory, skill: str | None = None) -> list[Sample]:
        samples = []
        for index, step in enumerate(trajectory.steps):
            prompt = self.prompt(_situation(trajectory, index), skill)
            span = (len(prompt), len(prompt) + len(step.response_ids))
            samples.append(Sample((*prompt, *step.response_ids), (span,), (index,)))
        return samples

    def dropped_steps(self, trajectory: Trajectory) -> int:
        situations = [_situation(trajectory, index) for index in range(len(trajectory.steps))]
        return sum(min(self.window, len(s.history)) - self._fitting_window(s) for s in situations)

    def _fitting_window(self, situation: Situation) -> int:
        for window in range(min(self.window, len(situation.history)), -1, -1):
            if len(self._prompt(situation, None, window)) <= self.max_prompt_tokens:
                return window
        length = len(self._prompt(situation, None, 0))
        raise UserError(
            f"context.max_prompt_tokens: {self.max_prompt_tokens} is too small for one observation without history, "
            f"which takes {length}; raise it."
        )

    def _prompt(self, situation: Situation, skill: str | None, window: int) -> list[int]:
        skill = _without_places(situation, skill)
        message = self.environment.windowed_prompt(situation, skill, window)
        return self.template.opening(message, _shown(situation.image))


class TranscriptContext:
    """The episode is one conversation.

    When it outgrows `max_prompt_tokens`, it goes on in a new sequence that keeps the opening and the newest half; each
    response is scored in the sequence that it was sampled in.
    """

    grows = True

    def __init__(self, template: ChatTemplate, environment: Environment, max_prompt_tokens: int) -> None:
        self.template = template
        self.environment = environment
        self.max_prompt_tokens = max_prompt_tokens

    def prompt(self, situation: Situation, skill: str | None = None) -> list[int]:
        turns = self._turns(situation)
        opening = self._opening(situation, None)
        first = _segments(len(opening), [len(turn) for turn in turns], self.max_prompt_tokens)[-1][0]
        head = self._opening(situation, skill) if skill else opening
        return head + [token for turn in turns[first:] for token in turn]

    def samples(self, trajectory: Trajectory, skill: str | None = None) -> list[Sample]:
        situation = _situation(trajectory, len(trajectory.steps) - 1)
        turns = self._turns(situation)
        segments = _segments(len(self._opening(situation, None)), [len(turn) for turn in turns], self.max_prompt_tokens)
        head = self._opening(situation, skill)
        ends = [answered for _, answered in segments[1:]] + [len(trajectory.steps)]
        return [
            _transcript_sample(head, turns, trajectory.steps, first, answered, end)
            for (first, answered), end in zip(segments, ends, strict=True)
        ]

    def closing(self, trajectory: Trajectory, message: str, max_tokens: int) -> tuple[list[int], int]:
        """The conversation as the last step ended it, and one more user message; and how many oldest steps it leaves out.

        Beyond `max_tokens` more of them go, never the opening, the last step or the message, which may still be too long.
        """
        situation = _situation(trajectory, len(trajectory.steps) - 1)
        turns = self._turns(situation)
        opening, last = self._opening(situation, None), self._turn(trajectory.steps[-1], message)
        lengths = [len(turn) for turn in turns]
        first = _segments(len(opening), lengths, self.max_prompt_tokens)[-1][0]
        while first < len(turns) - 1 and len(opening) + sum(lengths[first:]) + len(last) > max_tokens:
            first += 1
        return [*opening, *(token for turn in turns[first:] for token in turn), *last], first

    def dropped_steps(self, trajectory: Trajectory) -> int:
        situation = _situation(trajectory, len(trajectory.steps) - 1)
        turns = self._turns(situation)
        segments = _segments(len(self._opening(situation, None)), [len(turn) for turn in turns], self.max_prompt_tokens)
        ends = [answered for _, answered in segments[1:]] + [len(trajectory.steps)]
        return sum(first * (end - answered) for (first, answered), end in zip(segments, ends, strict=True))

    def _opening(self, situation: Situation, skill: str | None) -> list[int]:
        first = situation.history[0].observation if situation.history else situation.observation
        skill = _without_places(situation, skill)
        return self.template.opening(self.environment.opening(situation.goal, first, skill), _shown(situation.images[0]))

    def _turns(self, situation: Situation) -> list[list[int]]:
        """Per earlier step, its response and the next user message."""
        following = [step.observation for step in situation.history[1:]] + [situation.observation]
        return [
            self._turn(step, self.environment.reply(text), image)
            for step, text, image in zip(situation.history, following, situation.images[1:], strict=False)
        ]

    def _turn(self, step: Step, message: str, image: str | None = None) -> list[int]:
        ids = self.template.user_turn(message, _shown(image))
        ended = bool(step.response_ids) and step.response_ids[-1] == self.template.end_id
        return [*step.response_ids, *(ids[1:] if ended else ids)]


def make_context(
    style: Style,
    tokenizer: PreTrainedTokenizerBase,
    environment: Environment,
    *,
    window: int,
    max_prompt_tokens: int,
    template_options: dict[str, Any] | None = None,
    eye: Eye | None = None,
) -> Context:
    """Build the context of a style; `template_options` go to the chat template as they are, `eye` is what sees pictures."""
    template = ChatTemplate(tokenizer, template_options, eye)
    if style == "windowed":
        return WindowedContext(template, environment, window, max_prompt_tokens)
    return TranscriptContext(template, environment, max_prompt_tokens)


def _situation(trajectory: Trajectory, index: int) -> Situation:
    step = trajectory.steps[index]
    return Situation(trajectory.goal, trajectory.steps[:index], step.observation, step.actions, step.image)


def _without_places(situation: Situation, skill: str | None) -> str | None:
    """Where pictures are seen, a skill, which a model wrote, must not say where they go."""
    return skill.replace(IMAGE, "image") if skill and situation.image else skill


def _shown(image: str | None) -> tuple[str, ...]:
    return () if image is None else (image,)


def _segments(opening: int, turns: Sequence[int], budget: int) -> list[tuple[int, int]]:
    """Split a conversation where its prompt would outgrow the budget.

    `turns[i]` is the length of response i and the message after it. Returns, per sequence, the first turn that it keeps and
    the first step that is answered in it.
    """
    before = [0, *accumulate(turns)]

    def length(answered: int, first: int) -> int:
        return opening + before[answered] - before[first]

    segments = [(0, 0)]
    for answered in range(len(turns) + 1):
        first = segments[-1][0]
        if length(answered, first) <= budget:
            continue
        halves = (keep for keep in range(first + 1, answered) if length(answered, keep) <= (opening + budget) // 2)
        first = next(halves, max(answered - 1, 0))
        if length(answered, first) > budget:
            raise UserError(
                f"context.max_prompt_tokens: {budget} is too small for the opening and the newest step, which take "
                f"{length(answered, first)}; raise it."
            )
        segments.append((first, answered))
    return segments


def _transcript_sample(
    head: list[int], turns: list[list[int]], steps: Sequence[Step], first: int, answered: int, end: int
) -> Sample:
    ids = [*head, *(token for turn in turns[first:answered] for token in turn)]
    spans = []
    for index in range(answered, end):
        response = steps[index].response_ids
        spans.append((len(ids), len(ids) + len(response)))
        ids.extend(turns[index] if index + 1 < end else response)
    return Sample(tuple(ids), tuple(spans), tuple(range(answered, end)))
