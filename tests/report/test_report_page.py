import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest
from synthetic import HOSTILE, write_base, write_lines, write_run

from seed_opd.report import build
from seed_opd.report.episodes import MAX_BYTES, embed, mixed
from seed_opd.report.run_folder import Episode, Run
from seed_opd.trajectory import Task, Trajectory, read_jsonl


class Page(HTMLParser):
    """All elements with their attributes, and the text of scripts and table cells."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.rows: list[list[str]] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.open.append(tag)
        if tag == "script":
            self.scripts.append("")
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if "script" in self.open:
            self.scripts[-1] += data
        elif {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data

    @property
    def data(self) -> dict[str, list[dict[str, object]]]:
        return json.loads(self.scripts[0])


def page_of(path: Path) -> Page:
    return Page(path.read_text(encoding="utf-8"))


@pytest.fixture
def both(tmp_path: Path) -> tuple[Path, Path]:
    return write_run(tmp_path / "seed", hostile=True), write_run(tmp_path / "grpo", method="grpo", gain=0.3)


def test_hostile_text_stays_text(both: tuple[Path, Path]) -> None:
    """The text is in an observation, a response, a skill, a raw answer, a goal and a warning."""
    text = build(both[0], [both[1]]).read_text(encoding="utf-8")
    page = Page(text)
    assert [tag for tag, _ in page.elements].count("script") == 2
    assert not [tag for tag, _ in page.elements if tag in ("img", "iframe", "object")]
    assert "<img" not in text and text.count("</script>") == 2
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
    episode = page.data["sources"][0]["episodes"][0]  # type: ignore[index]
    assert episode["goal"] == episode["steps"][0]["observation"] == episode["skill"]["skill"] == HOSTILE
    assert episode["steps"][0]["response"].endswith(HOSTILE)
    assert any(HOSTILE in cell for row in page.rows for cell in row)  # the warning, and not 49 for its braces


def test_loads_nothing(both: tuple[Path, Path]) -> None:
    path = build(both[0], [both[1]])
    page = page_of(path)
    targets = [
        value
        for _, attributes in page.elements
        for name, value in attributes.items()
        if name in ("src", "srcset", "href", "action", "data", "poster")
    ]
    assert targets and all(str(target).startswith(("#", "data:")) for target in targets)
    style = re.search(r"<style>(.*?)</style>", path.read_text(encoding="utf-8"), re.S)
    assert style is not None and "url(" not in style[1] and "@import" not in style[1]
    assert not re.search(r"\b(fetch|XMLHttpRequest|WebSocket|import)\b|innerHTML|https?:", page.scripts[1])
    policy = next(attributes["content"] for _, attributes in page.elements if "http-equiv" in attributes)
    assert policy is not None and policy.startswith("default-src 'none'")


def test_tables_hold_the_numbers_of_the_metrics(both: tuple[Path, Path]) -> None:
    rows = page_of(build(both[0], [both[1]])).rows
    metrics = [row for row in read_jsonl(both[0] / "metrics.jsonl") if row["kind"] == "evaluation"]
    last = [row for row in metrics if row["update"] == 6]
    assert {row["panel"] for row in last} == {"seen", "unseen"}
    for row in last:
        for name, count in row["categories"].items():
            shown = f"{100 * count['successes'] / count['episodes']:.1f}% {count['successes']}/{count['episodes']}"
            assert [cells for cells in rows if cells[0] == name and any(cell.startswith(shown) for cell in cells)]
        for name in ("macro", "micro"):
            shown, interval = (
                f"{100 * row[name]:.1f}%",
                f"{100 * row[name + '_low']:.0f}% – {100 * row[name + '_high']:.0f}%",
            )
            found = [cells for cells in rows if cells[0] == f"{name.capitalize()} average"]
            assert [cell for cells in found for cell in cells if cell.startswith(shown) and cell.endswith(interval)]
    learning = next(cells for cells in rows if cells[0] == "learning")
    assert learning[3] == "246 k"  # six updates of 41,000 tokens


def test_runs_are_compared_on_the_same_tasks(both: tuple[Path, Path]) -> None:
    rows = page_of(build(both[0], [both[1]])).rows
    mine, theirs = ([row["success"] for row in read_jsonl(run / "evaluations" / "update-0006-seen.jsonl")] for run in both)
    found = next(cells for cells in rows if cells[0] == "seen: SEED − GRPO")
    assert found[1] == f"{100 * (sum(mine) - sum(theirs)) / 140:+.1f}".replace("-", "−")
    assert found[3] == str(sum(a and not b for a, b in zip(mine, theirs, strict=True)))
    assert found[5] == "140"


def test_a_single_evaluation_becomes_a_line_and_a_column_of_reference(both: tuple[Path, Path], tmp_path: Path) -> None:
    path = build(both[0], [write_base(tmp_path / "base"), both[1]])
    (row, _) = (row for row in read_jsonl(tmp_path / "base" / "metrics.jsonl") if row["kind"] == "evaluation")
    rows = page_of(path).rows
    header = next(cells for cells in rows if cells[0] == "Family")
    assert header[1:3] == ["base", "start"] and header[3].startswith("SEED") and header[-1].startswith("GRPO")
    pick = next(cells for cells in rows if cells[0] == "Pick")
    assert f"{row['categories']['Pick']['successes']}/35" in pick[1]
    text = path.read_text(encoding="utf-8")
    assert "SEED (" not in text and text.count('class="guide"') == 4  # two panels, macro and micro


def test_two_runs_of_one_method_are_told_apart(tmp_path: Path) -> None:
    first, second = (write_run(tmp_path / name, seed=seed) for seed, name in enumerate(("one", "two")))
    text = build(first, [second]).read_text(encoding="utf-8")
    assert "SEED (one)" in text and "SEED (two)" in text


def test_a_run_alone_and_without_evaluations(tmp_path: Path) -> None:
    run = tmp_path / "bare"
    run.mkdir()
    (run / "metrics.jsonl").write_text('{"kind": "train", "update": 1, "success": 0.5}\n')
    page = page_of(build(run))
    assert page.data["sources"] == []


def test_the_page_stays_small_and_says_what_it_leaves_out(tmp_path: Path) -> None:
    run = write_run(tmp_path / "long", updates=2, every=1, group=16)
    for update in (1, 2):
        file = run / "trajectories" / f"update-{update:04d}.jsonl"
        rows = list(read_jsonl(file))
        for row in rows:
            row["steps"][0]["observation"] = "very long " * 40_000
        write_lines(file, rows)
    path = build(run)
    assert path.stat().st_size < MAX_BYTES + 1_000_000 < 5_000_000
    sources = {source["key"]: source for source in page_of(path).data["sources"]}
    assert (len(sources["1"]["episodes"]), sources["1"]["total"]) == (4, 16)
    assert "up to 4 of each of 2 of 2 recorded updates" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("outcomes", "limit", "expected"),
    [
        ("WWWWWWLL", 4, [0, 3, 6, 7]),  # two of six wins, spread, and both losses
        ("WWWWWWWL", 4, [0, 2, 4, 7]),  # one loss leaves three places for wins
        ("LLLL", 2, [0, 2]),
        ("WL", 8, [0, 1]),
        ("", 8, []),
    ],
)
def test_successes_and_failures_are_mixed(outcomes: str, limit: int, expected: list[int]) -> None:
    task = Task("alfworld", "train", 0)
    episodes = [Episode(i, Trajectory(task, "", "", (), each == "W", 0.0)) for i, each in enumerate(outcomes)]
    assert [episode.index for episode in mixed(episodes, limit)] == expected


def test_embedded_json_cannot_end_its_element() -> None:
    value = {"a": "</script><!-- & \u2028 \u2029"}
    text = embed(value)
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == value


def test_log_probs_that_are_not_numbers_become_null(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    file = run / "gaps" / "update-0006.jsonl"
    rows = list(read_jsonl(file))
    rows[0]["skill"][0][0] = float("-inf")
    write_lines(file, rows)
    sources = {source["key"]: source for source in page_of(build(run)).data["sources"]}
    tokens = sources["6"]["episodes"][0]["steps"][0]["tokens"]  # type: ignore[index]
    assert tokens["skill"][0] is None and tokens["ordinary"][0] is not None


@pytest.mark.parametrize("key", ["ordinary", "skill"])
def test_log_probs_that_do_not_fit_the_tokens_are_left_out_and_noted(tmp_path: Path, key: str) -> None:
    folder = write_run(tmp_path / "run")
    file = folder / "gaps" / "update-0006.jsonl"
    rows = list(read_jsonl(file))
    rows[0][key][0].append(-1.0)
    write_lines(file, rows)
    run = Run.read(folder)
    assert [episode.tokens is None for episode in run.episodes(6)] == [True] + 7 * [False]
    assert run.notes == ["update-0006.jsonl, row 0: tokens/ and gaps/ do not have the same tokens, the row is left out."]


def shown(page: Path, episode: str, folder: Path) -> str:
    """The page as a browser builds it with an episode open."""
    options = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    command = ["chromium", *options.split(), "--disable-component-update", "--disable-sync"]
    command += [f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=2000", "--dump-dom"]
    done = subprocess.run([*command, f"{page.as_uri()}#episode={episode}"], capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Debian's chromium")
def test_a_browser_shows_the_episode_as_text(both: tuple[Path, Path], tmp_path: Path) -> None:
    path = build(both[0], [both[1]])
    dom = shown(path, "2/0", tmp_path)
    assert "<title>SEED on alfworld · seed-opd</title>" in dom
    assert '<div class="observation">&lt;/script&gt;&lt;img src=x onerror=' in dom
    assert '<p class="rule">&lt;/script&gt;' in dom and "<img" not in dom
    assert re.search(r'<span class="token (positive|negative)" data-at="0" style="--a: calc\(', dom)
    assert "Step 5" in dom and 'aria-current="true"' in dom


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Debian's chromium")
def test_a_browser_shows_pictures_and_the_parts_of_a_page(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    file = folder / "trajectories" / "update-0006.jsonl"
    rows = list(read_jsonl(file))
    rows[0]["steps"][0] |= {"image": "iVBORw0KGgo=", "observation": "Price: $3 [SEP] <b>Buy Now</b>"}
    write_lines(file, rows)
    dom = shown(build(folder), "6/0", tmp_path)
    assert '<img class="picture" alt="" src="data:image/png;base64,iVBORw0KGgo=">' in dom
    assert '<span class="part">Price: $3</span><span class="part">&lt;b&gt;Buy Now&lt;/b&gt;</span>' in dom
