"""`python -m eurekube_sync` is the command `eurekube-sync`."""

from eurekube_sync.cli.main import main

if __name__ == "__main__":
    main()
