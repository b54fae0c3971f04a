"""A Tinker server in this process: the SDK's clients over a small torch model that is trained whole, without adapters.

Without adapters its numbers can be compared with the torch engine's. It sums as the protocol says, or averages as SkyRL's
JAX back-end does, and answers at once (SDK 0.25) or with futures (later).
"""

from __future__ import annotations

import copy
import random
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

import tinker
from seed_opd.policy.engine import Sampling
from seed_opd.policy.sampler import TorchSampler


class FakeService:
    """ServiceClient. `averages` and `futures` say what kind of server and SDK it is; `paths` is the server's disk."""

    def __init__(self, model: Any, end_id: int, *, averages: bool = False, futures: bool = True) -> None:
        self.model, self.end_id, self.averages, self.futures = model, end_id, averages, futures
        self.paths: dict[str, Any] = {}
        self.clients: list[FakeTraining] = []

    def create_lora_training_client(self, base_model, rank, seed, train_unembed):
        self.clients.append(FakeTraining(self, copy.deepcopy(self.model), f"run{len(self.clients)}"))
        return self.answer(self.clients[-1])

    def create_training_client_from_state(self, path):
        client = self.create_lora_training_client("", 1, 0, False)
        self.clients[-1].model.load_state_dict(self.paths[path][0])
        return client

    def create_training_client_from_state_with_optimizer(self, path):
        client = self.create_training_client_from_state(path)
        self.clients[-1].optimizer.load_state_dict(copy.deepcopy(self.paths[path][1]))
        return client

    def create_rest_client(self):
        raise tinker.APIError("no archives here", request=None, body=None)  # type: ignore[arg-type]

    def answer(self, value: Any) -> Any:
        return done(value) if self.futures else value


class FakeTraining:
    def __init__(self, service: FakeService, model: Any, run: str) -> None:
        self.service, self.model, self.run = service, model, run
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=0.0)
        self.sequences = 0
        self.losses: list[str] = []

    def forward(self, data, loss_fn):
        assert loss_fn == "cross_entropy"
        with torch.no_grad():
            return done(output([self._log_probs(datum) for datum in data]))

    def forward_backward(self, data, loss_fn):
        self.losses.append(loss_fn)
        values = [self._log_probs(datum) for datum in data]
        torch.stack([self._loss(value, datum, loss_fn) for value, datum in zip(values, data, strict=True)]).sum().backward()
        self.sequences += len(data)
        return done(output([value.detach() for value in values]))

    def forward_backward_custom(self, data, loss_fn):
        leaves = [
            row["logprobs"].to_torch().requires_grad_()
            for row in self.forward(data, "cross_entropy").result().loss_fn_outputs
        ]
        total, _ = loss_fn(data, leaves)
        total.backward()
        weighted = [
            tinker.types.Datum(
                model_input=datum.model_input,
                loss_fn_inputs={
                    "target_tokens": datum.loss_fn_inputs["target_tokens"],
                    "weights": tinker.types.TensorData.from_torch(-leaf.grad),
                },
            )
            for datum, leaf in zip(data, leaves, strict=True)
        ]
        return self.forward_backward(weighted, "cross_entropy")

    def optim_step(self, parameters):
        gradients = [p for p in self.model.parameters() if p.grad is not None]
        if self.service.averages:
            for parameter in gradients:
                parameter.grad /= max(self.sequences, 1)
        limit = parameters.grad_clip_norm if parameters.grad_clip_norm and not self.service.averages else float("inf")
        norm = torch.nn.utils.clip_grad_norm_(gradients, limit)
        for group in self.optimizer.param_groups:
            group |= {
                "lr": parameters.learning_rate,
                "betas": (parameters.beta1, parameters.beta2),
                "eps": parameters.eps,
                "weight_decay": parameters.weight_decay,
            }
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.sequences = 0
        return done(SimpleNamespace(metrics={"skyrl.ai/grad_norm": float(norm)}))

    def save_weights_and_get_sampling_client(self):
        return self.service.answer(FakeSampling(copy.deepcopy(self.model), self.service.end_id))

    def save_weights_for_sampler(self, name):
        path = f"tinker://{self.run}/sampler_weights/{name}"
        assert path not in self.service.paths, "a name is used once"
        self.service.paths[path] = None
        return done(SimpleNamespace(path=path))

    def save_state(self, name):
        path = f"tinker://{self.run}/weights/{name}"
        assert path not in self.service.paths, "a name is used once"
        self.service.paths[path] = copy.deepcopy((self.model.state_dict(), self.optimizer.state_dict()))
        return done(SimpleNamespace(path=path))

    def _log_probs(self, datum: Any) -> Tensor:
        ids = torch.tensor([datum.model_input.to_ints()])
        targets = datum.loss_fn_inputs["target_tokens"].to_torch()
        return self.model(ids).logits[0].log_softmax(-1).gather(1, targets[:, None])[:, 0]

    def _loss(self, log_probs: Tensor, datum: Any, loss_fn: str) -> Tensor:
        inputs = {name: value.to_torch() for name, value in datum.loss_fn_inputs.items()}
        weights = inputs["weights"]
        per_token = -log_probs
        if loss_fn == "importance_sampling":
            per_token = -torch.exp(log_probs - inputs["logprobs"]) * inputs["advantages"]
        total = torch.where(weights != 0, weights * per_token, torch.zeros_like(per_token)).sum()
        return total / weights.sum().clamp(min=1e-9) if self.service.averages else total


class FakeSampling:
    def __init__(self, model: Any, end_id: int) -> None:
        self.sampler = TorchSampler(model, [end_id])
        self.spoil: Any = lambda sequence: sequence
        """Changes an answer, for tests of what is refused."""

    def sample(self, prompt, num_samples, sampling_params):
        assert num_samples == 1 and list(sampling_params.stop) == list(self.sampler.end_ids)
        sampling = Sampling(sampling_params.temperature, sampling_params.max_tokens)
        seed = str(random.Random(sampling_params.seed).random())
        drawn = self.sampler.sample([prompt.to_ints()], sampling, [seed])[0]
        sequence = SimpleNamespace(
            tokens=list(drawn.ids), logprobs=list(drawn.log_probs), stop_reason="stop" if drawn.finished else "length"
        )
        return done(SimpleNamespace(sequences=[self.spoil(sequence)]))


def output(log_probs: list[Tensor]) -> Any:
    return SimpleNamespace(
        loss_fn_outputs=[{"logprobs": tinker.types.TensorData.from_torch(value)} for value in log_probs], metrics={}
    )


def done(value: Any) -> Future:
    future: Future = Future()
    future.set_result(value)
    return future
