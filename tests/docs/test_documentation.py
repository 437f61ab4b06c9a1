"""README, CONTRIBUTING, CHANGELOG and docs/: their statements, compared with the program."""

from __future__ import annotations

import ast
import contextlib
import re
import shlex
import tomllib
from pathlib import Path

import click
import pytest

import eurekube_sync
from eurekube_sync.cli.command_line import cli
from eurekube_sync.cli.options.command import EXAMPLES
from eurekube_sync.cli.options.servers import PASSWORD_VARIABLE
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.manifests.documents import Severity
from eurekube_sync.manifests.validation import validate_text

ROOT = Path(__file__).parents[2]
IN_THE_ROOT = (
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "CODE_OF_CONDUCT.md",
)
PAGES = [ROOT / name for name in IN_THE_ROOT] + sorted((ROOT / "docs").glob("*.md"))
README = (ROOT / "README.md").read_text()
COMMANDS = (ROOT / "docs" / "commands.md").read_text()
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text()
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text()
EVERY_PAGE = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)

RETIRED = (
    "anew",
    "another's",
    "beside",
    "blind pass",
    "by now",
    "comes in",
    "comes to stand",
    "detached",
    "doubtful",
    "for lack of",
    "for want of",
    "freeze",
    "frozen",
    "ghost",
    "goes to nothing",
    "heal",
    "heed",
    "hostage",
    "idle",
    "in place of",
    "is no number",
    "lacking",
    "lapse",
    "let go",
    "mend",
    "run out",
    "second look",
    "stranger",
    "strangers",
    "take away",
    "takes its place",
    "taking out",
    "tells",
    "the twin",
    "told",
    "unseen",
    "unsure",
    "what is ours",
    "what stands",
    "whatever",
    "whoever stands between",
    "withdraw",
    "withdrawal",
)

# Of `tests.simulation`.
SIMULATION = frozenset({"--runs", "--seed", "--about", "--jobs", "--tell", "--defects", "--record"})
# Of docker, Helm and kubectl.
RELEASES = frozenset(
    {"--repo", "--certificate-oidc-issuer", "--certificate-identity"}
)  # of gh, cosign
INSTALLING = frozenset(
    {
        "--all-namespaces",
        "--build-arg",
        "--create-namespace",
        "--for",
        "--force-conflicts",
        "--from",
        "--from-literal",
    }
    | {"--image", "--replicas", "--restart", "--reuse-values", "--rm", "--set", "--stdin"}
    | {"--tag", "--timeout"}
)
OTHER_PROGRAMS = (SIMULATION | INSTALLING | RELEASES) | frozenset(
    {
        "--cov",
        "--wait",
        "--hypothesis-profile",
        "--editable",
        "--strict",
        "--minutes",
        "--sizes",
        "--rounds",
        "--no-loop",
        "--functions",
        "--embedded",
        "--type",
        "--server-side",
        "--overwrite",
    }
)
OF_TESTS = re.findall(r"EUREKUBE_SYNC_TEST_\w+", (ROOT / "tox.ini").read_text())
OTHER_VARIABLES = frozenset({PASSWORD_VARIABLE, *OF_TESTS, "EUREKUBE_SYNC_DEBUG"})
_FENCE = re.compile(
    r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL
)  # an indented block in a numbered step


def blocks(text: str, language: str) -> list[str]:
    """The fenced blocks of one language."""
    return [found[2] for found in _FENCE.finditer(text) if found[1] == language]


def spans(text: str) -> list[str]:
    """The inline code of a page, which may cross a line's end."""
    return [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", _FENCE.sub("", text))]


def section(text: str, title: str) -> str:
    """The text below a heading of the second level."""
    return text.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def command_lines(text: str) -> list[list[str]]:
    """The arguments of every `eurekube-sync ...` that a page shows, in a shell block or inline."""
    whole = [block.replace("\\\n", " ") for block in blocks(text, "sh")]
    lines = [line.split("#")[0] for block in whole for line in block.splitlines()]
    found = []
    for line in [*lines, *spans(text)]:
        for part in re.split(r"&&|[|;]|<\(|\)| > ", line):
            program, *arguments = shlex.split(part) or [""]
            if Path(program).name == "eurekube-sync" and arguments:
                found.append(arguments)
    return found


def commands() -> dict[str, click.Command]:
    """The sub-commands by name."""
    context = click.Context(cli)
    found = {name: cli.get_command(context, name) for name in cli.list_commands(context)}
    return {name: command for name, command in found.items() if command is not None}


def options(command: click.Command) -> list[click.Option]:
    """The options of a sub-command, without `--help`. A group has those of all its commands."""
    inner = command.commands.values() if isinstance(command, click.Group) else ()
    own = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    return [*own, *(option for one in inner for option in options(one))]


def long_names(option: click.Option) -> list[str]:
    """The long names of an option, such as `--output`, or both of a pair."""
    return [name for name in (*option.opts, *option.secondary_opts) if name.startswith("--")]


def headings(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_the_exit_codes_are_the_programs() -> None:
    """It has one row for each code, in the same order and with the same words."""
    rows = re.findall(
        r"^\| (\d+) \| (\w+) \| (.+) \|$", section(COMMANDS, "Exit codes"), re.MULTILINE
    )
    assert rows == [(str(code.value), code.name, code.meaning) for code in ExitCode]


@EVERY_PAGE
def test_every_command_line_parses(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Click takes each `eurekube-sync ...`, without an extra word."""
    parse_all(command_lines(page.read_text()), monkeypatch)


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_of_a_help_parses(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command has three, which are examples of that command."""
    shown = EXAMPLES[name].strip().splitlines()
    assert [line.startswith("# ") for line in shown] == [True, False] * 3
    lines = shown[1::2]
    found = command_lines("".join(f"```sh\n{line}\n```\n" for line in lines))
    assert [" ".join(arguments).startswith(name) for arguments in found] == [True] * 3
    assert max(map(len, lines)) <= 78
    parse_all(found, monkeypatch)


def test_every_command_has_examples() -> None:
    """A command that was removed has none."""
    found = commands()
    inner = {
        f"{name} {one}"
        for name, group in found.items()
        if isinstance(group, click.Group)
        for one in group.commands
    }
    assert set(EXAMPLES) == {"", *found, *inner}


def parse_all(lines: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Parse these lines with the program's own commands."""
    monkeypatch.chdir(ROOT)  # so that the files that a line names exist
    # The files of -f are the reader's own.
    monkeypatch.setattr("eurekube_sync.cli.options.servers.check_present", lambda _name: None)
    monkeypatch.setenv("EUREKUBE_SYNC_INSTALLATION", "off")  # none is looked for in a cluster
    monkeypatch.setenv("EUREKUBE_SYNC_OWNER", "docs")
    monkeypatch.setenv("EUREKUBE_SYNC_EUREKA_URL", "http://eureka.example.com:8761/eureka")
    for arguments in lines:
        context = click.Context(cli, info_name="eurekube-sync")
        name, command, rest = cli.resolve_command(context, arguments)
        if isinstance(command, click.Group) and rest and rest[0] != "--help":
            context = command.make_context(name, rest[:1], parent=context)
            name, command, rest = command.resolve_command(context, rest)
        assert command is not None
        with contextlib.suppress(click.exceptions.Exit):  # --help
            command.make_context(name, rest, parent=context)


def test_the_page_of_commands_shows_every_command() -> None:
    """Every sub-command is there, and the check above has lines to check."""
    shown = {arguments[0] for arguments in command_lines(COMMANDS)}
    assert shown == set(commands())


@EVERY_PAGE
def test_every_option_exists(page: Path) -> None:
    """A word with two leading hyphens is an option of ours, or of a program that is listed here."""
    ours = {
        name
        for command in commands().values()
        for option in options(command)
        for name in long_names(option)
    }
    shown = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", page.read_text()))
    assert shown <= ours | {"--help"} | OTHER_PROGRAMS


def test_the_page_of_commands_names_every_option_of_run() -> None:
    """Its short list of options is complete."""
    listed = set(re.findall(r"--[a-z][a-z-]+", section(COMMANDS, "Options")))
    assert {long_names(option)[0] for option in options(commands()["run"])} <= listed


@EVERY_PAGE
def test_every_variable_exists(page: Path) -> None:
    """Every EUREKUBE_SYNC_ variable belongs to an option, or is one of the few others."""
    ours = {str(option.envvar) for command in commands().values() for option in options(command)}
    shown = set(re.findall(r"EUREKUBE_SYNC_\w+", page.read_text()))
    assert shown <= ours | OTHER_VARIABLES


@EVERY_PAGE
def test_every_syncer_in_a_page_is_valid(page: Path) -> None:
    """The API server would take the YAML of every page, without a warning."""
    syncers = [
        block
        for block in blocks(page.read_text(), "yaml")
        if not re.search("kind: (Kustomization|ResourceQuota)|scrape_configs:", block)
    ]
    for block in syncers:
        assert validate_text(block, page.name).findings == ()


def test_every_example_is_valid() -> None:
    """These are the files in docs/examples."""
    for file in sorted((ROOT / "docs" / "examples").glob("*.yaml")):
        findings = validate_text(file.read_text(), file.name).findings
        assert not [finding for finding in findings if finding.severity is Severity.ERROR]


def test_the_readmes_syncer_is_the_example() -> None:
    """It is the file in docs/examples, unchanged."""
    assert blocks(README, "yaml") == [(ROOT / "docs" / "examples" / "smallest.yaml").read_text()]


@EVERY_PAGE
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    """The target is a file or folder of the repository, and a heading if it names one."""
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if target.startswith("https://"):
            continue
        path, _, heading = target.partition("#")
        file = page.parent / path if path else page
        assert file.exists(), target
        assert not heading or heading in headings(file.read_text()), target


def test_every_page_can_be_reached_from_the_readme() -> None:
    linked = set(re.findall(r"\]\(docs/([\w-]+\.md)", README))
    pages = {page.name for page in (ROOT / "docs").glob("*.md")}
    assert pages - linked == {
        "simulation.md",
        "soak.md",
    }  # architecture and CONTRIBUTING lead there


def test_each_word_of_the_glossary_is_said_once() -> None:
    """There are few enough to learn. The common words of Kubernetes and Eureka need no row."""
    terms: list[str] = []
    for part in ("Ours", "Eureka", "Kubernetes"):
        found = re.findall(r"^- \*\*(.+?)\*\*", section(GLOSSARY, part), re.MULTILINE)
        assert found
        terms += found
    assert len(terms) == len(set(terms))
    assert len(terms) <= 45


@EVERY_PAGE
def test_no_page_uses_a_retired_word(page: Path) -> None:
    """A plainer word has replaced each of them."""
    text = " ".join(re.sub(r"`[^`]*`", "", _FENCE.sub("", page.read_text())).split()).lower()
    assert not [
        word for word in RETIRED if re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text)
    ]


@EVERY_PAGE
def test_no_page_names_the_machine_it_was_written_on(page: Path) -> None:
    """A page has neither an absolute path of a checkout nor one outside of it."""
    assert not re.search(r"/(work|root|tmp)/|\.\./shared", page.read_text())


def test_ci_runs_the_readmes_test_line() -> None:
    """It is the only line under "Contributing". CI may use another folder for its virtual
    environment."""
    (line,) = blocks(section(README, "Contributing"), "sh")
    script = " && ".join(
        (ROOT / ".ci" / "run").read_text().replace(".venv-ci", ".venv").splitlines()
    )
    assert line.strip() in script.replace(" --quiet", "")


def test_the_architecture_has_a_line_for_each_folder() -> None:
    """It has a line for nothing else."""
    package = Path(eurekube_sync.__file__).parent
    named = re.findall(r"^- `([\w/]+)`: ", section(ARCHITECTURE, "The folders"), re.MULTILINE)
    folders = {
        file.parent.relative_to(package).as_posix() for file in package.glob("*/**/__init__.py")
    }
    assert sorted(named) == sorted(folders)


def test_the_unit_tests_import_nothing_of_the_real_servers() -> None:
    """That would build and start nothing, but it takes half a second and the manager of Java's
    archives."""
    folders = "servers|contract|integration|deployment|image|soak"
    imports = re.compile(rf"^\s*(?:from|import) tests\.(?:{folders})\b", re.MULTILINE)
    files = [
        ROOT / "tests" / "conftest.py",
        ROOT / "tests" / "planted.py",
        *(ROOT / "tests" / "unit").rglob("*.py"),
    ]
    assert len(files) > 150
    assert [str(file) for file in files if imports.search(file.read_text())] == []


def test_each_file_says_what_it_does() -> None:
    """The architecture page refers readers to the first lines of the files."""
    package = Path(eurekube_sync.__file__).parent
    silent = [
        file
        for file in package.glob("**/*.py")
        if not ast.get_docstring(ast.parse(file.read_text()))
    ]
    assert not silent


def test_the_architecture_refers_to_files_that_exist() -> None:
    """A line of the page may refer to `folder/file` of the program, or of the folders beside it."""
    package = Path(eurekube_sync.__file__).parent
    places = spans(section(ARCHITECTURE, "Where to begin"))
    paths = [span for span in places if re.fullmatch(r"[a-z_]+(/[a-z_.]+)+", span)]
    assert len(paths) > 30
    missing: list[str] = []
    for path in paths:
        outside = path.startswith(("crds/", "cronjob/", "docs/", "tests/"))
        named = (ROOT if outside else package) / path
        if not (named.exists() or named.with_suffix(".py").is_file()):
            missing.append(path)
    assert missing == []


def test_the_architecture_has_a_row_for_each_file() -> None:
    """A newcomer finds the place of a change by the tables alone. The entry points decide nothing,
    and the parts of the embedded servers are found by their folder."""
    package = Path(eurekube_sync.__file__).parent
    places = set(spans(section(ARCHITECTURE, "Where to begin")))
    files = {
        file.relative_to(package).with_suffix("").as_posix()
        for file in package.rglob("*.py")
        if file.name != "__init__.py" and not file.is_relative_to(package / "embedded")
    }
    assert files - places == {"__main__", "cli/main"}


def test_the_architecture_shows_the_layers_as_they_are_checked() -> None:
    """The layers on the page are the import contracts."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
        "contracts"
    ]
    checked = [contract["layers"] for contract in contracts if contract["type"] == "layers"]
    shown = [block.splitlines() for block in blocks(ARCHITECTURE, "layers")]
    assert shown == [
        [layer.replace("eurekube_sync.", "") for layer in layers] for layers in checked
    ]
