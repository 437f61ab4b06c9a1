"""Authorities whose certificates Python's strict verification refuses, and every other program
accepts."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import urllib3.connection
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

KINDS = ("no key identifiers", "no key usage", "constraints not critical")
"""EKS has the first one, and hand-made authorities the others."""
PINNED = ("an authority without its root", "the certificate itself")
"""What a CA file may hold instead of a root. Python before 3.13 refuses both."""
FOR_CLIENTS = "for clients only"
"""This certificate is refused by every program."""


@dataclass(frozen=True, kw_only=True)
class Issued:
    """Files in PEM."""

    ca_file: Path
    certificate: Path
    key: Path


def issue(kind: str, folder: Path, name: str) -> Issued:
    """Make an authority of this kind, and a certificate of it for a host name."""
    if kind in PINNED:
        return _issue_pinned(kind, folder, name)
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, f"ca of {name}")])
    identified = kind != "no key identifiers"
    ca = _builder(ca_name, ca_name, ca_key)
    ca = ca.add_extension(
        x509.BasicConstraints(True, None), critical=kind != "constraints not critical"
    )
    if kind != "no key usage":
        ca = ca.add_extension(_signs(), critical=True)
    if identified:
        ca = ca.add_extension(
            x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key()), critical=False
        )
    leaf = _builder(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)]), ca_name, key)
    leaf = leaf.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    if identified:
        identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())
        leaf = leaf.add_extension(identifier, critical=False)
    if kind == FOR_CLIENTS:
        purposes = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
        leaf = leaf.add_extension(purposes, critical=True)
    issued = Issued(
        ca_file=folder / "ca.pem", certificate=folder / "server.pem", key=folder / "server.key"
    )
    pem = serialization.Encoding.PEM
    issued.ca_file.write_bytes(ca.sign(ca_key, hashes.SHA256()).public_bytes(pem))
    issued.certificate.write_bytes(leaf.sign(ca_key, hashes.SHA256()).public_bytes(pem))
    plain = serialization.NoEncryption()
    issued.key.write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
    return issued


def _issue_pinned(kind: str, folder: Path, name: str) -> Issued:
    """Make a root, an authority below it, and a certificate of that one. The CA file lacks the
    root."""
    root_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_key = ec.generate_private_key(ec.SECP256R1())
    root_name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, f"root of {name}")])
    ca_name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, f"ca of {name}")])
    leaf_name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    ca = _builder(ca_name, root_name, ca_key)
    ca = ca.add_extension(x509.BasicConstraints(True, None), critical=True)
    ca = ca.add_extension(_signs(), critical=True)
    leaf = _builder(leaf_name, ca_name, key)
    leaf = leaf.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    authority = ca.sign(root_key, hashes.SHA256())
    certificate = leaf.sign(ca_key, hashes.SHA256())
    trusted = certificate if kind == "the certificate itself" else authority
    issued = Issued(
        ca_file=folder / "ca.pem", certificate=folder / "server.pem", key=folder / "server.key"
    )
    pem = serialization.Encoding.PEM
    issued.ca_file.write_bytes(trusted.public_bytes(pem))
    issued.certificate.write_bytes(certificate.public_bytes(pem))
    plain = serialization.NoEncryption()
    issued.key.write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
    return issued


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
    )


def _signs() -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )


def verify_strictly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let urllib3 make contexts as it does since Python 3.13."""
    _give_flags(monkeypatch, ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN)


def verify_up_to_a_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let urllib3 make contexts as it does before Python 3.13."""
    _give_flags(monkeypatch, ssl.VerifyFlags.VERIFY_DEFAULT)


def _give_flags(monkeypatch: pytest.MonkeyPatch, flags: ssl.VerifyFlags) -> None:
    made = urllib3.util.ssl_.create_urllib3_context

    def create(*args: object, **settings: object) -> ssl.SSLContext:
        context = made(*args, **settings)  # type: ignore[arg-type]
        context.verify_flags = ssl.VERIFY_X509_TRUSTED_FIRST | flags
        return context

    for module in (urllib3.util.ssl_, urllib3.connection):
        monkeypatch.setattr(module, "create_urllib3_context", create)
