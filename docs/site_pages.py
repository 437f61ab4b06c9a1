"""Makes the pages of the docs site that stand outside of docs/, and the links that lead out of it.

A hook of MkDocs, see mkdocs.yml. On GitHub and in a checkout every link is a path to a file. On the
site, a path to a page becomes a link to that page, and a path to any other file an address in the
repository. The addresses of both are those of pyproject.toml.
"""

from __future__ import annotations

import posixpath
import re
import tomllib
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
URLS: dict[str, str] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
OUTSIDE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
"""Files of the repository that are pages of the site, and their names there."""
_LINK = re.compile(r"\]\(([^)\s#]+)(#[^)\s]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Take the addresses from pyproject.toml."""
    config.site_url = URLS["Documentation"] + "/"
    config.repo_url = URLS["Repository"]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that stand outside of docs/."""
    for source, name in OUTSIDE.items():
        text = (ROOT / source).read_text()
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite the relative links of a page."""
    sources = {name: source for source, name in OUTSIDE.items()}
    source = sources.get(page.file.src_uri, f"docs/{page.file.src_uri}")

    def rewritten(link: re.Match[str]) -> str:
        target, anchor = link[1], link[2] or ""
        if re.match(r"\w+:", target):
            return link[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        return f"]({_on_the_site(path, files)}{anchor})"

    return _LINK.sub(rewritten, markdown)


def _on_the_site(path: str, files: Files) -> str:
    """Return where a file of the repository is: a page or file of the site, else an address. A path
    to nothing stays as it is, so that MkDocs finds it."""
    if not (ROOT / path).exists():
        return path
    name = OUTSIDE.get(path, path.removeprefix("docs/"))
    file = files.get_file_from_path(name)
    if (
        file is not None
        and file.inclusion.is_included()
        and (path in OUTSIDE or path.startswith("docs/"))
    ):
        return name
    kind = "tree" if (ROOT / path).is_dir() else "blob"
    return f"{URLS['Repository']}/{kind}/main/{path}"
