"""The parts of a kubeconfig that we read ourselves, for clearer errors; and the namespace of this
pod."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from eurekube_sync.files import open_regular
from eurekube_sync.model.errors import ConfigurationError
from eurekube_sync.model.sanitize import excerpt

DEFAULT_PATH = "~/.kube/config"
_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_FILES = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
_MOST_BYTES = 4 * 1024 * 1024  # YAML takes seconds for each megabyte


class Chosen(NamedTuple):
    """The cluster and the user of one context, each as in its file, but with absolute paths."""

    cluster: Mapping[str, Any]
    user: Mapping[str, Any]

    def document(self, user: Mapping[str, Any]) -> dict[str, Any]:
        """Return a kubeconfig of this cluster and of a user."""
        return {
            "clusters": [{"name": "cluster", "cluster": dict(self.cluster)}],
            "users": [{"name": "user", "user": dict(user)}],
            "contexts": [{"name": "context", "context": {"cluster": "cluster", "user": "user"}}],
            "current-context": "context",
        }


def choose(paths: str, context: str) -> Chosen:
    """Read the kubeconfig, and return the parts of the context, or of the current one. Raise
    ConfigurationError."""
    chosen, parts = _parts(paths, context)
    entry = parts["context"][chosen]
    cluster, user = entry.get("cluster"), entry.get("user")
    names = f"the kubeconfig {paths} cannot be used: the context {chosen!r} names the"
    if str(cluster) not in parts["cluster"]:
        raise ConfigurationError(f"{names} cluster {cluster!r}, and there is none")
    if not user:
        return Chosen(parts["cluster"][str(cluster)], {})
    if str(user) not in parts["user"]:  # it would be called anonymously
        raise ConfigurationError(f"{names} user {user!r}, and there is none")
    return Chosen(parts["cluster"][str(cluster)], parts["user"][str(user)])


def default_namespace(paths: str, context: str) -> str:
    """Return the namespace of the context, as kubectl uses it for objects without one. Raise
    ConfigurationError."""
    chosen, parts = _parts(paths, context)
    return str(parts["context"][chosen].get("namespace") or "default")


def _parts(paths: str, context: str) -> tuple[str, dict[str, dict[str, Mapping[str, Any]]]]:
    """Return the name of the context, and all contexts, clusters and users. In several files, the
    first part of a name counts."""
    parts: dict[str, dict[str, Mapping[str, Any]]] = {"context": {}, "cluster": {}, "user": {}}
    current = ""
    for path, document in _documents(paths):
        for kind, entries in parts.items():
            for name, entry in _named(document, kind):
                entries.setdefault(name, _absolute(entry, path))
        current = current or str(document.get("current-context") or "")
    contexts = parts["context"]
    chosen = context or current
    if not chosen or chosen not in contexts:
        lacks = f"context {chosen!r}" if chosen else "current context: give --context"
        known = ", ".join(sorted(contexts)) or "none"
        raise ConfigurationError(f"the kubeconfig {paths} has no {lacks}; it has: {known}")
    return chosen, parts


def _absolute(entry: Mapping[str, Any], file: Path) -> Mapping[str, Any]:
    """Return an entry with paths that do not depend on the folder of its file. A command without a
    slash is looked for in PATH."""
    folder = file.absolute().parent
    absolute = dict(entry)
    for name in _FILES:
        if entry.get(name):
            absolute[name] = str(folder / str(entry[name]))
    program = entry.get("exec")
    if isinstance(program, dict) and "/" in str(program.get("command") or ""):
        absolute["exec"] = {**program, "command": str(folder / str(program["command"]))}
    return absolute


def context_names(paths: str) -> Sequence[str]:
    names: set[str] = set()
    for _, document in _documents(paths):
        names.update(name for name, _ in _named(document, "context"))
    return sorted(names)


def _documents(paths: str) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    named = [Path(name).expanduser() for name in paths.split(os.pathsep)]
    try:
        files = [path for path in named if _is_file(path)]
    except OSError as error:  # such as a name that is too long
        why = f"cannot be read: {first_line(error)}"
        raise ConfigurationError(f"the kubeconfig {paths} {why}") from error
    if not files:
        if Path(paths).expanduser().is_dir():
            raise ConfigurationError(f"the kubeconfig {paths} is a folder: give the file in it")
        why = "and this does not run in a cluster: give --kubeconfig FILE"
        raise ConfigurationError(f"there is no kubeconfig {paths}, {why}")
    for path in files:
        document = _document(path)
        if not isinstance(document, dict):
            raise ConfigurationError(
                f"the kubeconfig {path} is not a kubeconfig: it holds no mapping"
            )
        yield path, document


def _document(path: Path) -> Any:
    """Read the YAML of a file. Raise ConfigurationError."""
    import yaml

    try:
        with open_regular(path, follow=True) as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            most = f"{_MOST_BYTES // 2**20} MiB"
            raise ConfigurationError(f"the kubeconfig {path} is larger than {most}")
        return yaml.safe_load(content.decode())
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        why = f"is not YAML: line {line}: {error.problem}"
        raise ConfigurationError(f"the kubeconfig {path} {why}") from None
    except (OSError, UnicodeDecodeError, RecursionError, yaml.YAMLError) as error:
        why = f"cannot be read: {first_line(error)}"
        raise ConfigurationError(f"the kubeconfig {path} {why}") from error
    except (ValueError, LookupError, AttributeError):
        # Of PyYAML, whose messages may repeat a token
        why = "is not YAML: a value looks like a date or number; quote it"
        raise ConfigurationError(f"the kubeconfig {path} {why}") from None


def _is_file(path: Path) -> bool:
    """Raise OSError if the machine refuses the path, such as a name that is too long: from Python
    3.14 on, `Path.is_file` returns False for that, and the path would count as one where no file
    is."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: a NUL in the path
        return False


def _named(document: Mapping[str, Any], kind: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield name and content of each context, cluster or user of a kubeconfig."""
    listed = document.get(f"{kind}s")
    for entry in listed if isinstance(listed, list) else ():
        if isinstance(entry, dict):
            content = entry.get(kind)
            yield str(entry.get("name")), content if isinstance(content, dict) else {}


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, shortened."""
    text = str(error) or type(error).__name__
    return excerpt(text.strip().splitlines()[0], most=200)


def own_namespace(
    environ: Mapping[str, str], *, kubeconfig: str = "", context: str = "", file: Path = _NAMESPACE
) -> str | None:
    """Return the namespace of this pod; None outside of a cluster, or with a kubeconfig or
    context."""
    if kubeconfig or context or not environ.get("KUBERNETES_SERVICE_HOST"):
        return None
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"the namespace of this pod cannot be read in {file}: give --lock NAMESPACE/NAME, or "
            "--lock off"
        ) from error
