import math

import torch
from differences import autograd, central

from seed_opd.objectives.entropy import token_entropy


def test_hand_numbers() -> None:
    """Uniform over 4: log 4. Probabilities 1/2, 1/4, 1/4, 0: 1.5 log 2. One certain token: 0."""
    logits = torch.tensor([[0.0] * 4, [math.log(2), 0, 0, -1e4], [1e4, 0, 0, 0]])
    expected = torch.tensor([math.log(4), 1.5 * math.log(2), 0.0])
    torch.testing.assert_close(token_entropy(logits), expected)


def test_gradient() -> None:
    logits = torch.tensor([[0.3, -1.0, 2.0], [0.0, 0.0, 1.0]], dtype=torch.float64)
    torch.testing.assert_close(autograd(token_entropy, logits), central(token_entropy, logits), atol=1e-7, rtol=1e-6)


def test_half_precision_is_computed_in_float32() -> None:
    assert token_entropy(torch.zeros(1, 4, dtype=torch.bfloat16)).dtype == torch.float32
