"""Playing episodes: many at a time, one batch of responses per step, finished episodes leave."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from seed_opd.environments.base import Environment, Situation
from seed_opd.errors import UserError
from seed_opd.policy.context import Context
from seed_opd.policy.engine import Engine, Sampled, Sampling
from seed_opd.policy.pictures import encode
from seed_opd.processes import count, spread
from seed_opd.trajectory import Step, Task, Trajectory


@dataclass(frozen=True, slots=True)
class Assignment:
    """One episode to play: the task, the seed of its sampled tokens, and the skill in the actor's prompt, if any."""

    task: Task
    seed: str
    skill: str | None = None


@dataclass(slots=True)
class _Episode:
    assignment: Assignment
    environment: Environment
    goal: str
    observation: str
    actions: tuple[str, ...] | None
    image: str | None
    steps: list[Step] = field(default_factory=list)
    done: bool = False
    success: bool = False
    score: float = 0.0

    @property
    def situation(self) -> Situation:
        return Situation(self.goal, tuple(self.steps), self.observation, self.actions, self.image)


class Player:
    """Plays episodes with a policy. `new_environment` makes one more live environment; they are kept and used again."""

    def __init__(
        self,
        engine: Engine,
        context: Context,
        new_environment: Callable[[], Environment],
        *,
        max_steps: int,
        max_response_tokens: int,
        invalid_penalty: float,
        concurrency: int,
    ) -> None:
        self.engine = engine
        self.context = context
        self.new_environment = new_environment
        self.max_steps = max_steps
        self.max_response_tokens = max_response_tokens
        self.invalid_penalty = invalid_penalty
        self.concurrency = concurrency
        self._environments: list[Environment] = []

    def play(
        self, assignments: Sequence[Assignment], temperature: float, progress: Callable[[int], None] = lambda _: None
    ) -> list[Trajectory]:
        """Play every assignment to its end, in order; the result does not depend on how many run at a time.

        Several processes play a part each; the progress is that of the main one, counted for all.
        """
        return spread(lambda share: self._play_share(share, temperature, progress), assignments)

    def _play_share(
        self, assignments: Sequence[Assignment], temperature: float, progress: Callable[[int], None]
    ) -> list[Trajectory]:
        trajectories: list[Trajectory] = []
        for start in range(0, len(assignments), self.concurrency):
            wave = assignments[start : start + self.concurrency]
            trajectories += self._play_wave(wave, Sampling(temperature, self.max_response_tokens), progress)
        return trajectories

    def _play_wave(
        self, wave: Sequence[Assignment], sampling: Sampling, progress: Callable[[int], None]
    ) -> list[Trajectory]:
        while len(self._environments) < len(wave):
            self._environments.append(self.new_environment())
        episodes = [_begin(a, environment) for a, environment in zip(wave, self._environments, strict=False)]
        for turn in range(self.max_steps):
            active = [number for number, episode in enumerate(episodes) if not episode.done]
            if not active:
                break
            responses = self.engine.sample(
                [self.context.prompt(episodes[n].situation, episodes[n].assignment.skill) for n in active],
                sampling,
                [f"{episodes[n].assignment.seed}/{turn}" for n in active],
                keys=[episodes[n].assignment.seed for n in active] if self.context.grows else None,
            )
            for number, response in zip(active, responses, strict=True):
                self._act(episodes[number], response)
            progress(count() * sum(episodes[n].done for n in active))
        return [self._finish(episode) for episode in episodes]

    def _act(self, episode: _Episode, response: Sampled) -> None:
        text = str(self.engine.tokenizer.decode(list(response.ids), skip_special_tokens=True))
        action = episode.environment.parse(text)
        outcome = episode.environment.step(action.text)
        episode.steps.append(
            Step(
                observation=episode.observation,
                response=text,
                action=action.text,
                valid=action.valid,
                reward=outcome.reward,
                actions=episode.actions,
                response_ids=response.ids,
                log_probs=response.log_probs,
                image=episode.image,
            )
        )
        episode.observation, episode.actions, episode.image = outcome.text, outcome.actions, _image(episode.environment)
        episode.done, episode.success, episode.score = outcome.done, outcome.success, outcome.score

    def _finish(self, episode: _Episode) -> Trajectory:
        task = episode.assignment.task
        return Trajectory(
            task=task,
            goal=episode.goal,
            category=episode.environment.category(task),
            steps=tuple(episode.steps),
            success=episode.success,
            score=episode.score,
            final_observation=episode.observation,
            penalty=self.invalid_penalty * sum(not step.valid for step in episode.steps),
            seed=episode.assignment.seed,
            stop="done" if episode.done else "steps",
            prompt_skill=episode.assignment.skill,
        )


def _begin(assignment: Assignment, environment: Environment) -> _Episode:
    observation = environment.reset(assignment.task)
    if not observation.goal:
        raise UserError(f"task: {assignment.task} has no goal text; check the environment's data.")
    return _Episode(assignment, environment, observation.goal, observation.text, observation.actions, _image(environment))


def _image(environment: Environment) -> str | None:
    return encode(environment.picture()) if environment.seen else None
