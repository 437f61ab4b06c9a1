"""Reads manifests, and checks those of EurekaSyncers offline as the API server would.

Only `crd` (reads the CRD of the package), `files` and `dumps` do I/O. The program's own parser
checks a spec, so that `validate` and the conditions of a syncer have the same messages.
"""
