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
from eurekube_sync.model.foreign_text import excerpt

DEFAULT_PATH = "~/.kube/config"
_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_FILES_OF_USERS = ("client-certificate", "client-key", "tokenFile")
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
    """Read the kubeconfig, and return the parts of the context, or of the current one. In several
    files, the first part of a name counts. Raise ConfigurationError."""
    contexts: dict[str, Mapping[str, Any]] = {}
    clusters: dict[str, Mapping[str, Any]] = {}
    users: dict[str, Mapping[str, Any]] = {}
    current = ""
    for path, document in _documents(paths):
        for name, entry in _named(document, "contexts", "context"):
            contexts.setdefault(name, entry)
        for name, entry in _named(document, "clusters", "cluster"):
            clusters.setdefault(name, _absolute(entry, ("certificate-authority",), path))
        for name, entry in _named(document, "users", "user"):
            users.setdefault(name, _absolute(entry, _FILES_OF_USERS, path))
        current = current or str(document.get("current-context") or "")
    known = ", ".join(sorted(contexts)) or "none"
    chosen = context or current
    if not chosen or chosen not in contexts:
        lacks = f"context {chosen!r}" if chosen else "current context: give --context"
        raise ConfigurationError(f"the kubeconfig {paths} has no {lacks}; it has: {known}")
    cluster, user = contexts[chosen].get("cluster"), contexts[chosen].get("user")
    if str(cluster) not in clusters:
        raise _lacks_part(paths, "cluster", cluster, chosen)
    if user and str(user) not in users:  # it would be called anonymously
        raise _lacks_part(paths, "user", user, chosen)
    return Chosen(clusters[str(cluster)], users[str(user)] if user else {})


def _lacks_part(paths: str, kind: str, name: object, context: str) -> ConfigurationError:
    return ConfigurationError(
        f"the kubeconfig {paths} cannot be used: the context {context!r} names the {kind} "
        f"{name!r}, and there is none"
    )


def _absolute(entry: Mapping[str, Any], names: Sequence[str], file: Path) -> Mapping[str, Any]:
    """Return an entry with paths that do not depend on the folder of its file. A command without a
    slash is looked for in PATH."""
    folder = file.absolute().parent
    changed: dict[str, Any] = {
        name: str(folder / str(entry[name])) for name in names if entry.get(name)
    }
    program = entry.get("exec")
    if isinstance(program, dict) and "/" in str(program.get("command") or ""):
        changed["exec"] = {**program, "command": str(folder / str(program["command"]))}
    return {**entry, **changed}


def context_names(paths: str) -> Sequence[str]:
    names = {
        name
        for _, document in _documents(paths)
        for name, _ in _named(document, "contexts", "context")
    }
    return sorted(names)


def _documents(paths: str) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    import yaml

    named = [Path(name).expanduser() for name in paths.split(os.pathsep)]
    try:
        found = [path for path in named if _is_file(path)]
    except OSError as error:  # such as a name that is too long
        raise ConfigurationError(
            f"the kubeconfig {paths} cannot be read: {first_line(error)}"
        ) from error
    if not found:
        if Path(paths).expanduser().is_dir():
            raise ConfigurationError(f"the kubeconfig {paths} is a folder: give the file in it")
        why = "and this does not run in a cluster: give --kubeconfig FILE"
        raise ConfigurationError(f"there is no kubeconfig {paths}, {why}")
    for path in found:
        try:
            with open_regular(path, follow=True) as file:
                content = file.read(_MOST_BYTES + 1)
            if len(content) > _MOST_BYTES:
                raise ConfigurationError(
                    f"the kubeconfig {path} is larger than {_MOST_BYTES // 2**20} MiB"
                )
            document = yaml.safe_load(content.decode())
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else 0
            raise ConfigurationError(
                f"the kubeconfig {path} is not YAML: line {line}: {error.problem}"
            ) from None
        except (OSError, UnicodeDecodeError, RecursionError, yaml.YAMLError) as error:
            raise ConfigurationError(
                f"the kubeconfig {path} cannot be read: {first_line(error)}"
            ) from error
        except (
            ValueError,
            LookupError,
            AttributeError,
        ):  # of PyYAML, whose messages may repeat a token
            why = "a value looks like a date or number; quote it"
            raise ConfigurationError(f"the kubeconfig {path} is not YAML: {why}") from None
        if not isinstance(document, dict):
            raise ConfigurationError(
                f"the kubeconfig {path} is not a kubeconfig: it holds no mapping"
            )
        yield path, document


def _is_file(path: Path) -> bool:
    """Raise OSError if the machine refuses the path, such as a name that is too long: from Python
    3.14 on, `Path.is_file` returns False for that, and the path would count as one where no file
    is."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: a NUL in the path
        return False


def _named(
    document: Mapping[str, Any], many: str, one: str
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    listed = document.get(many)
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, dict):
            inner = each.get(one)
            yield str(each.get("name")), inner if isinstance(inner, dict) else {}


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, shortened."""
    return excerpt((str(error) or type(error).__name__).strip().splitlines()[0], most=200)


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
        give = "give --lock NAMESPACE/NAME, or --lock off"
        raise ConfigurationError(
            f"the namespace of this pod cannot be read in {file}: {give}"
        ) from error
