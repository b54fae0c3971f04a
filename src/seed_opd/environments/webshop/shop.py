"""A visit to the shop: which page one is on, and what an action does there."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from seed_opd.environments.webshop import pages
from seed_opd.environments.webshop.catalogue import Catalogue
from seed_opd.environments.webshop.goals import Goal
from seed_opd.environments.webshop.pages import RESULTS_PER_PAGE, Page
from seed_opd.environments.webshop.products import Product
from seed_opd.environments.webshop.reward import Nouns, reward

ACTION = re.compile(r"(.+)\[(.+)\]")


class Visit:
    """One episode. `act` takes any text; what is no action, or is not possible on the page, does nothing.

    `reward` is None until something was bought, which ends the visit. `price_of` gives the price of a position in the
    catalogue, `nouns` those of a product's title.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        goal: Goal,
        price_of: Callable[[int], float],
        nouns: Nouns,
    ) -> None:
        self._catalogue = catalogue
        self._goal = goal
        self._price_of = price_of
        self._nouns = nouns
        self._hits: Sequence[int] = ()
        self._number = 1
        self._position = -1  # of the chosen product in the catalogue
        self._detail = ""
        self._chosen: dict[str, str] = {}
        self.reward: float | None = None
        self.page: Page = pages.search_page(goal.text)

    def act(self, action: str) -> Page:
        """Take an action, "search[words]" or "click[what]", and return the page that it leads to."""
        match = ACTION.match(action)
        if match and self.reward is None:
            kind, argument = match[1], match[2].lower()
            if kind == "search":
                self._show_results(self._catalogue.index.search(argument), 1)
            elif kind == "click":
                self._click(argument)
        return self.page

    def _click(self, name: str) -> None:
        page = self.page
        if name in page.buttons:
            self._press(name)
        elif name in page.links:
            self._show_item(self._shown_positions()[page.links.index(name)])
        elif name in page.values:
            group = [group for group, values in self._product.options.items() if name in values][-1]
            self._chosen[group] = name

    def _press(self, button: str) -> None:
        if button == pages.BACK:
            self.page = pages.search_page(self._goal.text)
        elif button == pages.NEXT:
            self._show_results(self._hits, self._number + 1)
        elif button == pages.PREVIOUS:
            self._go_back()
        elif button in pages.DETAILS:
            self._detail = button
            self.page = pages.detail_page(self._goal.text, self._product, button)
        elif button == pages.BUY:
            self._buy()

    def _go_back(self) -> None:
        """From details to their product, from a product to the results, from the results to the page before."""
        if self._detail:
            self._show_item(self._position)
        elif self._position >= 0:
            self._show_results(self._hits, self._number)
        else:
            self._show_results(self._hits, self._number - 1)

    def _show_results(self, hits: Sequence[int], number: int) -> None:
        self._hits, self._number = hits, number
        self._position, self._detail, self._chosen = -1, "", {}
        products = [self._catalogue.product(position) for position in self._shown_positions()]
        self.page = pages.results_page(self._goal.text, number, len(hits), products)

    def _shown_positions(self) -> Sequence[int]:
        return self._hits[(self._number - 1) * RESULTS_PER_PAGE : self._number * RESULTS_PER_PAGE]

    def _show_item(self, position: int) -> None:
        self._position, self._detail = position, ""
        self.page = pages.item_page(self._goal.text, self._product)

    @property
    def _product(self) -> Product:
        return self._catalogue.product(self._position)

    def _buy(self) -> None:
        price = self._price_of(self._position)
        self.reward = reward(self._goal, self._product, self._chosen, price, self._nouns)
        self.page = pages.receipt(self._product, self._chosen, self.reward)
