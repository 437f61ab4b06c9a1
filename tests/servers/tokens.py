"""JSON Web Tokens for a server that is an OAuth2 resource server, signed by a key made at test
time."""

from __future__ import annotations

import base64
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat


def _key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenIssuer:
    """Who signs the tokens of callers. Its public key lies in `folder`."""

    folder: Path
    _private_key: rsa.RSAPrivateKey = field(default_factory=_key)

    @property
    def public_key(self) -> Path:
        """The file by which the server verifies tokens, as PEM."""
        path = self.folder / "issuer.pem"
        if not path.exists():
            public = self._private_key.public_key()
            path.write_bytes(public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
        return path

    def token(self, *, seconds: float = 3600.0, scope: str = "eureka.write") -> str:
        """A token that is valid for so long. Spring allows a clock that is 60 s apart."""
        now = time.time()
        claims = {"sub": "sync", "iat": int(now), "exp": int(now + seconds), "scope": scope}
        if seconds < 0:
            claims["iat"] = int(now + 2 * seconds)
        signed = f"{_encoded({'alg': 'RS256', 'typ': 'JWT'})}.{_encoded(claims)}"
        signature = self._private_key.sign(signed.encode(), padding.PKCS1v15(), SHA256())
        return f"{signed}.{_base64(signature)}"


def _encoded(part: dict[str, Any]) -> str:
    return _base64(json.dumps(part).encode())


def _base64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")
