"""The program's credentials for Kubernetes: the token of a kubeconfig, which may change and
fail."""

from __future__ import annotations

from eurekube_sync.adapters.tries import AnswerTime
from eurekube_sync.embedded.http import Handler
from eurekube_sync.model.errors import ConfigurationError
from tests.in_process.kubernetes import InProcessConnection


class Credentials:
    """The token that the API server takes, and the one that the kubeconfig yields."""

    def __init__(self) -> None:
        self._number = 0
        self.yielded: str | None = self.valid
        """None if the program that the kubeconfig names fails, or its file is empty."""

    @property
    def valid(self) -> str:
        """The token that the server takes."""
        return f"token-{self._number}"

    def rotate(self) -> None:
        """Ends the old token. The kubeconfig yields the new one."""
        self._number += 1
        self.yielded = self.valid

    def fail(self) -> None:
        """Ends the old token. The kubeconfig yields none."""
        self._number += 1
        self.yielded = None


class StoryConnection(InProcessConnection):
    """Calls the server with a token, and reads it again after a 401, as the real connection
    does."""

    def __init__(self, handle: Handler, credentials: Credentials) -> None:
        self._credentials = credentials
        super().__init__(handle, token=credentials.yielded or "expired")

    def renew(self, within: AnswerTime) -> None:
        token = self._credentials.yielded
        if token is None:
            raise ConfigurationError("the program for credentials exited with 255")
        self._headers = {"authorization": f"Bearer {token}"}
