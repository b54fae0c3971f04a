"""WebShop: shopping by search and click in text, with the original's products, pages, goals and reward.

Needs the extra `webshop`; raises UserError, naming it, where it is not installed.
"""

from importlib.util import find_spec

from seed_opd.errors import UserError

for _package in ("bm25s", "Stemmer", "rapidfuzz"):
    if find_spec(_package) is None:
        raise UserError(
            f"environment: webshop needs the package {_package}; install the extra with pip install 'seed-opd[webshop]'."
        )

from seed_opd.environments.webshop.environment import WebshopEnvironment  # noqa: E402

__all__ = ["WebshopEnvironment"]
