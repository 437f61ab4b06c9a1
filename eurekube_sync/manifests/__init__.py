"""Manifests of a EurekaSyncer: the CRD, and offline what the API server would say of a file.

Pure but for `crd` (reads the CRD that is shipped) and `files` (reads manifests). A spec is judged by the program's own
parse, so that `validate` and the condition of a syncer say the same.
"""

from eurekube_sync.manifests.crd import crd_text, load_crd
from eurekube_sync.manifests.documents import Document, read_documents
from eurekube_sync.manifests.files import validate_paths
from eurekube_sync.manifests.findings import Finding, Report, Severity
from eurekube_sync.manifests.syncer import refusal
from eurekube_sync.manifests.validation import validate_object, validate_text

__all__ = [
    "Document",
    "Finding",
    "Report",
    "Severity",
    "crd_text",
    "load_crd",
    "read_documents",
    "refusal",
    "validate_object",
    "validate_paths",
    "validate_text",
]
