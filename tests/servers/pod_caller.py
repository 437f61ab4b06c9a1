"""Calls a Service by its name, each time on a new connection, until it is ended.

A program that runs by itself and imports nothing of ours. It asks the name server for each call, as
a program without a cache does. `caller.py` reads what it prints.
"""

import http.client
import sys
import time

_TIMEOUT_SECONDS = 5.0
_PAUSE_SECONDS = 0.002


def _outcome(service: str) -> str:
    connection = http.client.HTTPConnection(service, timeout=_TIMEOUT_SECONDS)
    try:
        connection.request("GET", "/")
        answer = connection.getresponse()
        body = answer.read().decode()
    except (OSError, http.client.HTTPException) as error:
        return f"failed {type(error).__name__} {error}"
    finally:
        connection.close()
    return f"ok {body}" if answer.status == 200 else f"failed {answer.status} {body}"


def main(service: str) -> None:
    """Print what became of each call."""
    while True:
        sys.stdout.write(f"CALL {service} {_outcome(service)}\n")
        sys.stdout.flush()
        time.sleep(_PAUSE_SECONDS)


if __name__ == "__main__":
    main(*sys.argv[1:])
