"""The command line: one function per verb, no logic of its own."""

from __future__ import annotations

import sys
import traceback
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from seed_opd.errors import RunStopped, UserError
from seed_opd.processes import count, is_main, rank

if TYPE_CHECKING:
    from seed_opd.config import Config

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Train language-model agents with SEED: play, read back, score twice, learn.",
)

Recipe = Annotated[str, typer.Argument(help="A packaged recipe (`seed-opd recipes`) or a YAML file.")]
Overrides = Annotated[list[str] | None, typer.Argument(help="Changes to the recipe: section.field=value ...")]
Out = Annotated[Path | None, typer.Option(help="Folder of the experiment; runs/<name> by default.")]
Model = Annotated[Path | None, typer.Option(help="Model folder to start from instead of the recipe's.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what the run would be and what it lacks; load nothing.")]
Gpus = Annotated[int, typer.Option(min=1, help="Processes, one for each GPU, to plan memory for.")]
console = Console(highlight=False)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder of the experiment.")] = Path("runs/demo"),
    overrides: Overrides = None,
) -> None:
    """Train SEED and GRPO from the same start on this machine, and compare them: the whole method in minutes."""
    from seed_opd.training.demo import run_demo

    run_demo(out, overrides or [])


@app.command()
def collect(
    recipe: Recipe,
    overrides: Overrides = None,
    out: Out = None,
    model: Model = None,
    dry_run: DryRun = False,
    gpus: Gpus = 1,
) -> None:
    """Stage 1: play the training tasks that will be annotated."""
    from seed_opd.config import load
    from seed_opd.training.collect import collect as run
    from seed_opd.training.setup import set_up

    config = load(recipe, overrides or [])
    if dry_run:
        return _dry_run(config, model, gpus)
    folder = _stage1(out, config.name)
    trajectories = run(set_up(config, model=model), folder)
    won = sum(t.success for t in trajectories)
    _say(f"{len(trajectories)} episodes, {won} successful, in {folder}")


@app.command()
def annotate(recipe: Recipe, overrides: Overrides = None, out: Out = None) -> None:
    """Stage 1: write a hindsight skill about each collected episode."""
    from seed_opd.config import load
    from seed_opd.training.analyzers import stage1_analyzer
    from seed_opd.training.collect import annotate as run

    config = load(recipe, overrides or [])
    folder = _stage1(out, config.name)
    statuses = run(stage1_analyzer(config, folder), folder)
    _say(", ".join(f"{count} {status}" for status, count in statuses.most_common()) + f", in {folder}")


@app.command()
def sft(
    recipe: Recipe,
    overrides: Overrides = None,
    out: Out = None,
    model: Model = None,
    dry_run: DryRun = False,
    gpus: Gpus = 1,
) -> None:
    """Stage 1: fine-tune the policy to write such skills itself."""
    from seed_opd.config import load
    from seed_opd.training.setup import set_up
    from seed_opd.training.sft import fine_tune

    config = load(recipe, overrides or [])
    if dry_run:
        return _dry_run(config, model, gpus)
    folder = _stage1(out, config.name)
    _say(f"model in {fine_tune(set_up(config, model=model), folder, folder)}")


@app.command()
def train(
    recipe: Recipe,
    overrides: Overrides = None,
    out: Out = None,
    model: Model = None,
    stage1: Annotated[Path | None, typer.Option(help="Folder of stage 1; <out>/stage1 where it exists.")] = None,
    run_folder: Annotated[Path | None, typer.Option("--run", help="Folder of the run; <out>/<method> by default.")] = None,
    dry_run: DryRun = False,
    gpus: Gpus = 1,
) -> None:
    """Stage 2: the loop of play, hindsight and learning; run it again to resume a run that was stopped."""
    from seed_opd.config import load
    from seed_opd.training.rl import train as run

    config = load(recipe, overrides or [])
    experiment = out or Path("runs") / config.name
    stage1 = stage1 or _existing(experiment / "stage1")
    model = model or (_existing(stage1 / "model") if stage1 else None)
    if dry_run:
        return _dry_run(config, model, gpus)
    folder = run_folder or experiment / config.method
    _say(f"method {config.method}, starting from {model or config.model.path}, in {folder}")
    progress = run(config, folder, model=model, stage1=stage1)
    _say(f"{progress.update} updates done; best evaluation at update {progress.best_update}: {progress.best_success:.1%}")


@app.command()
def evaluate(
    recipe: Recipe,
    overrides: Overrides = None,
    model: Model = None,
    out: Annotated[Path | None, typer.Option(help="Run folder to write to; runs/<name>/evaluation by default.")] = None,
    label: Annotated[str, typer.Option(help="Name of this policy in tables.")] = "base",
) -> None:
    """Play the fixed panels with a model and print success by category, with intervals."""
    from seed_opd.config import load
    from seed_opd.training.evaluate import evaluate as run
    from seed_opd.training.setup import set_up

    config = load(recipe, overrides or [])
    run(set_up(config, model=model), out or Path("runs") / config.name / "evaluation", label)


@app.command()
def plan(
    recipe: Recipe,
    overrides: Overrides = None,
    gpus: Gpus = 1,
    memory: Annotated[float, typer.Option(min=0, help="Memory of each GPU, GiB.")] = 80.0,
    model: Model = None,
) -> None:
    """Estimate a run's peak memory before anything is loaded; exit code 1 where it does not fit."""
    from seed_opd.config import load
    from seed_opd.training.plan_tables import fit

    fits, tables, sentence = fit(load(recipe, overrides or []), model, gpus, memory)
    for table in tables:
        _print(table.title, table.header, table.rows)
    _say(sentence)
    raise typer.Exit(0 if fits else 1)


@app.command()
def study(
    name: Annotated[str, typer.Argument(help="A packaged study, a YAML file, or the rows of a finished one (.jsonl.xz).")],
    out: Annotated[Path | None, typer.Option(help="Folder of the study; runs/<name> by default.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="The smallest size, to try it out.")] = False,
    processes: Annotated[
        int | None, typer.Option(min=1, help="Runs at a time, one thread each; all cores by default.")
    ] = None,
) -> None:
    """Train methods x seeds x shares of the tasks from one stage 1, and compare them; start it again to go on."""
    from seed_opd.report.study import write_study
    from seed_opd.training.study import load_study, run_study

    rows = Path(name)
    if name.endswith(".jsonl.xz"):
        folder = out or rows.parent
    else:
        settings = load_study(name, quick)
        folder = out or Path("runs") / settings.name
        rows = run_study(settings, folder, processes)
    page, tables = write_study(rows, folder)
    for table in tables:
        _print(table.title, table.header, table.rows)
    _say(str(page))


@app.command()
def compare(
    runs: Annotated[list[Path], typer.Argument(help="Run folders; the first is the baseline of the differences.")],
) -> None:
    """Compare runs on their common panels: a table, and paired differences with intervals."""
    from seed_opd.evaluation.compare import comparison_tables

    for table in comparison_tables(runs):
        _print(table.title, table.header, table.rows)


@app.command()
def report(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    others: Annotated[list[Path] | None, typer.Argument(help="Run folders to lay over it.")] = None,
) -> None:
    """Write report.html, one self-contained page about a run."""
    from seed_opd.report import build

    _say(str(build(run, others or [])))


@app.command()
def play(
    environment: Annotated[str, typer.Argument(help="Name of the environment.")],
    task: Annotated[str | None, typer.Option(help="Which task, as split:index; one to show by default.")] = None,
    file: Annotated[Path | None, typer.Option(help="A game file to play instead.")] = None,
    json: Annotated[
        bool, typer.Option("--json", help="For scripts: one action per line in, one JSON state per line out.")
    ] = False,
    model: Annotated[str | None, typer.Option(help="Watch a model play: a model folder, or `tiny`.")] = None,
    recipe: Annotated[str, typer.Option(help="With --model: the recipe whose context and sampling it uses.")] = "demo",
    pictures: Annotated[Path | None, typer.Option(help="Save what can be seen at every step into this folder.")] = None,
    option: Annotated[
        list[str] | None, typer.Option(help="An option of the environment, as name=value; may be repeated.")
    ] = None,
) -> None:
    """Play an episode in the terminal, by hand, by script, or watch a model do it."""
    from seed_opd.environments import make
    from seed_opd.environments.play import check_choices, parse_options, parse_task, photographer, play_json, play_person

    check_choices({"--task": task, "--file": file}, "one of them says what is played")
    for name, value in {"--json": json, "--pictures": pictures, "--option": option}.items():
        check_choices({"--model": model, name: value}, "a model is watched in the terminal, under its recipe's options")
    if model:
        from seed_opd.training.watch import environment_of, watch  # torch takes seconds, which a script should not wait for

        live = environment_of(recipe, environment)
        watch(recipe, model, live, live.open(file) if file else parse_task(live, task or live.example), console)
        return
    live = make(environment, **parse_options(option or []))
    chosen = live.open(file) if file else parse_task(live, task or live.example)
    looking = {"look": photographer(live, pictures)} if pictures else {}
    if json:
        play_json(live, chosen, sys.stdin, _line, **looking)
    else:
        play_person(live, chosen, sys.stdin, _line, **looking)


@app.command()
def data(environment: Annotated[str, typer.Argument(help="Name of the environment.")]) -> None:
    """Say which data an environment uses and where it was looked for; fetch the original where that is possible."""
    from seed_opd.environments import data_source

    for sentence in data_source(environment):
        _say(sentence)


@app.command()
def serve_retriever(
    kind: Annotated[str, typer.Option(help="bm25, dense, or remote.")] = "bm25",
    passages: Annotated[
        str | None, typer.Option(help="A JSON-lines file; by default those that the environment uses.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="For dense: the folder of a sentence-transformers model.")] = None,
    query_prefix: Annotated[str, typer.Option(help="For dense: put before a query; 'query: ' for E5.")] = "",
    passage_prefix: Annotated[str, typer.Option(help="For dense: put before a passage; 'passage: ' for E5.")] = "",
    url: Annotated[str | None, typer.Option(help="For remote: the server to ask.")] = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes a free one.")] = 8000,
) -> None:
    """Serve a Search-QA retriever over HTTP until interrupted; both usual forms of a request are understood."""
    from seed_opd.environments.searchqa.data import open_data
    from seed_opd.environments.searchqa.retrievers import open_retriever
    from seed_opd.environments.searchqa.retrievers.server import serve

    prefixes = {"query_prefix": query_prefix, "passage_prefix": passage_prefix}
    options = {"kind": kind, "passages": passages, "model": model, "url": url, **prefixes}
    serve(open_retriever({name: value for name, value in options.items() if value}, open_data()), host, port, _line)


@app.command()
def methods() -> None:
    """Print the methods table."""
    from seed_opd.methods import TABLE

    _print("Methods", ["method", "what it does", "source"], [[m.name, m.summary, m.source] for m in TABLE.values()])


@app.command()
def recipes() -> None:
    """List the packaged recipes and studies."""
    from seed_opd.config import heading, packaged

    for title, folder in (("Recipes", "recipes"), ("Studies", "studies")):
        _print(title, ["name", "what it is"], [[name, heading(folder, name)] for name in packaged(folder)])


def main() -> None:
    """Run a verb; wrong input ends with one sentence on standard error and exit code 2, a stopped run with 1."""
    try:
        with nullcontext() if is_main() else redirect_stdout(None):  # of several processes, the main one speaks
            app()
    except UserError as error:
        print(f"seed-opd: {error}", file=sys.stderr)
        sys.exit(2)
    except RunStopped as error:
        print(f"seed-opd: the run was stopped: {error}", file=sys.stderr)
        sys.exit(1)
    except RuntimeError as error:
        if count() == 1:
            raise
        traceback.print_exc()
        print(f"seed-opd: the run was stopped: process {rank()} failed or lost another one: {error}", file=sys.stderr)
        sys.exit(1)


def _stage1(out: Path | None, name: str) -> Path:
    return (out or Path("runs") / name) / "stage1"


def _existing(path: Path) -> Path | None:
    return path if path.exists() else None


def _dry_run(config: Config, model: Path | None, processes: int) -> None:
    from seed_opd.training.plan import plan
    from seed_opd.training.plan_tables import missing_sentences, plan_tables

    resolved = plan(config, model, processes)
    for table in plan_tables(resolved):
        _print(table.title, table.header, table.rows)
    for sentence in missing_sentences(resolved):
        _say(sentence)


def _line(text: str) -> None:
    print(text, flush=True)


def _say(sentence: str) -> None:
    """Print as it is: a path that was broken over two lines could not be copied, and brackets in one are no markup."""
    console.print(sentence, markup=False, soft_wrap=True)


def _print(title: str, header: list[str], rows: list[list[str]]) -> None:
    table = Table(title=title)
    for place, name in enumerate(header):
        table.add_column(name, no_wrap=place == 0)  # a name in two pieces is none
    for row in rows:
        table.add_row(*row)
    console.print(table)


if __name__ == "__main__":
    main()
