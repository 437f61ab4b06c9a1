"""Manifests of a EurekaSyncer: the CRD, and offline what the API server would say of a file.

Pure but for `crd` (reads the CRD that is shipped), `files` and `dumps`. A spec is judged by the program's own parse, so
that `validate` and the condition of a syncer say the same.
"""
