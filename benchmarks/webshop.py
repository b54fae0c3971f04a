"""WebShop's speed and memory: steps a second, the time to index, and a large catalogue on a small machine.

    python benchmarks/webshop.py [--catalogue original] [--large 200000]

The large catalogue is synthetic: each product takes its texts and options from random products of the catalogue that is
given, and some words that hardly any other product has. Every measurement is made in a process of its own, with one thread.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import resource
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

FULL = 1_181_436
"""Products in the full published catalogue."""

ROW = "{:44} {:>14} {:>14}"


def measure_index(catalogue: str, cache: str) -> dict[str, float]:
    """Seconds and peak bytes to compile a catalogue, search index and all, and its bytes on disk."""
    os.environ["XDG_CACHE_HOME"] = cache
    from seed_opd.environments.webshop.catalogue import open_catalogue

    start = time.perf_counter()
    products = len(open_catalogue(catalogue))
    seconds = time.perf_counter() - start
    disk = sum(file.stat().st_size for file in Path(cache).rglob("*") if file.is_file())
    return {"seconds": seconds, "peak": _peak(), "disk": disk, "products": products}


def measure_index_alone(catalogue: str, cache: str) -> dict[str, float]:
    """Seconds to build the search index over the texts of a compiled catalogue."""
    os.environ["XDG_CACHE_HOME"] = cache
    from seed_opd.environments.webshop import search
    from seed_opd.environments.webshop.catalogue import open_catalogue

    opened = open_catalogue(catalogue)
    texts = [search.text_of(opened.product(position)) for position in range(len(opened))]
    start = time.perf_counter()
    search.build(texts, Path(cache) / "index-alone")
    return {"seconds": time.perf_counter() - start}


def measure_play(catalogue: str, cache: str, episodes: int) -> dict[str, float]:
    """Seconds to open a compiled catalogue and its goals, steps a second in episodes with their own searches, peak bytes."""
    os.environ["XDG_CACHE_HOME"] = cache
    from seed_opd.environments.webshop import WebshopEnvironment

    start = time.perf_counter()
    environment = WebshopEnvironment(catalogue)
    opened = time.perf_counter() - start
    tasks = environment.tasks("all")[:episodes]
    rng, steps = random.Random(0), 0
    start = time.process_time()
    for task in tasks:
        goal, actions, text = environment.reset(task).goal, (), ""
        for action in (
            f"search[{goal}]",
            "link",
            "features",
            "< prev",
            "value",
            "value",
            "< prev",
            "next >",
            "link",
            "buy now",
        ):
            page = environment.visit.page
            if action in ("link", "value"):
                names = page.links if action == "link" else page.values
                action = rng.choice(names) if names else "description"
            outcome = environment.step(action if action.startswith("search") else f"click[{action}]")
            text, actions = outcome.text, outcome.actions or ()
            steps += 1
        assert text and actions
    return {"open": opened, "rate": steps / (time.process_time() - start), "peak": _peak()}


def write_large(catalogue: str, folder: str, cache: str, count: int) -> dict[str, float]:
    """Write the files of a synthetic catalogue in the published format."""
    os.environ["XDG_CACHE_HOME"] = cache
    from seed_opd.environments.webshop.catalogue import open_catalogue

    source = open_catalogue(catalogue)
    rng, instructions, nouns = random.Random(0), {}, {}
    with (Path(folder) / "items_shuffle.json").open("w", encoding="utf-8") as stream:
        for number in range(count):
            title, text, bullets, options = (source.product(rng.randrange(len(source))) for _ in range(4))
            asin = f"S{number:09d}"
            item = {
                "asin": asin,
                "name": f"{title.title} model{rng.randrange(count)}",
                "full_description": f"{text.description} part{rng.randrange(count)}",
                "small_description": list(bullets.bullets),
                "category": title.category,
                "query": title.query,
                "product_category": title.product_category,
                "customization_options": {name: [{"value": v} for v in values] for name, values in options.options.items()},
                "pricing": title.price_tag.replace(" to ", " "),
            }
            stream.write(("[" if number == 0 else ",") + json.dumps(item))
            nouns[asin] = list(title.nouns or ())
            instructions[asin] = {"attributes": list(title.attributes)}
            if title.instruction:
                instructions[asin] |= {
                    "instruction": title.instruction,
                    "instruction_attributes": list(title.instruction_attributes),
                }
        stream.write("]")
    for name, content in (("items_ins_v2", instructions), ("title_nouns", nouns)):
        (Path(folder) / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    return {"bytes": sum(file.stat().st_size for file in Path(folder).glob("*.json"))}


def alone(work: Callable[..., dict[str, float]], *arguments: Any) -> dict[str, float]:
    """Do it in a fresh process."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--catalogue", default="original", help="original, generated, or a path")
    parser.add_argument("--large", type=int, default=200_000, help="products of the synthetic catalogue; 0 leaves it out")
    parser.add_argument("--episodes", type=int, default=500)
    args = parser.parse_args()
    print(ROW.format("", "measured", "bar"))
    with (
        tempfile.TemporaryDirectory() as small,
        tempfile.TemporaryDirectory() as large,
        tempfile.TemporaryDirectory() as data,
    ):
        index = alone(measure_index, args.catalogue, small)
        bare = alone(measure_index_alone, args.catalogue, small)
        play = alone(measure_play, args.catalogue, small, args.episodes)
        print(ROW.format(f"{args.catalogue}, {index['products']:,.0f} products", "", ""))
        print(ROW.format("  search index, s", f"{bare['seconds']:.2f}", "2"))
        print(ROW.format("  first start (everything indexed), s", f"{index['seconds']:.2f}", ""))
        print(ROW.format("  later start, s", f"{play['open']:.2f}", ""))
        print(ROW.format("  steps/s a core", f"{play['rate']:,.0f}", "2,000"))
        print(ROW.format("  memory of the process, MB", f"{play['peak'] / 1e6:,.0f}", ""))
        if args.large:
            show_large(args, small, large, data)


def show_large(args: argparse.Namespace, small: str, large: str, data: str) -> None:
    written = alone(write_large, args.catalogue, data, small, args.large)
    index, play = alone(measure_index, data, large), alone(measure_play, data, large, args.episodes)
    scale = FULL / args.large
    print(ROW.format(f"synthetic, {args.large:,} products", "", f"x {scale:.2f}"))
    for name, value, unit in (
        ("first start (everything indexed), s", index["seconds"], 1.0),
        ("  its peak memory, GB", index["peak"], 1e9),
        ("files as published, GB", written["bytes"], 1e9),
        ("compiled on disk, GB", index["disk"], 1e9),
        ("later start, s", play["open"], 1.0),
        ("memory while playing, mapped files included, GB", play["peak"], 1e9),
    ):
        print(ROW.format(f"  {name}", f"{value / unit:,.2f}", f"{value / unit * scale:,.1f}"))
    print(ROW.format("  steps/s a core", f"{play['rate']:,.0f}", ""))


if __name__ == "__main__":
    main()
