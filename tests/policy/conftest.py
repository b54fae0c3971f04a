"""What tests of engines share."""

from __future__ import annotations

import torch.distributed as dist


def pytest_sessionfinish() -> None:
    """A process that joined others leaves them before it ends; gloo's threads abort one that does not, now and then."""
    if dist.is_initialized():
        dist.destroy_process_group()
