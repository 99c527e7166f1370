"""An authority of the computed web and the certificates of its hosts, for TLS 1.3 and 1.2 as hosts on the web speak it.

A host shows its own certificate and that of the authority between it and the root, all of P-256. One in seven speaks
TLS 1.2 at most. All sessions may be resumed, by tickets.
"""

from __future__ import annotations

import ssl
import tempfile
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xyro.lab.web.chance import unit
from xyro.wire.errors import InputError

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

OLD = 1 / 7
"""share of hosts whose TLS ends with 1.2"""
_VERSION = 701
"""key that keeps the draws of different purposes apart"""


class Authority:
    """Signs the certificates of hosts."""

    def __init__(self, now: float) -> None:
        """InputError: the package that signs is not installed."""
        try:
            from cryptography.hazmat.primitives.asymmetric import ec
        except ImportError as error:
            raise InputError("lab web: --tls needs cryptography: pip install 'xyro[lab]'") from error

        self._today = datetime.fromtimestamp(now, UTC)
        root, middle, self._key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
        self._issuer, self._issuer_name = middle, _name("Xyro lab, between")
        self._root = self._signed(_name("Xyro lab"), root, _name("Xyro lab"), root)
        self._middle = self._signed(self._issuer_name, middle, _name("Xyro lab"), root)

    def save(self, path: Path) -> None:
        """Write the certificate that clients have to trust, as PEM."""
        path.write_bytes(self._root)

    def context(self, seed: int, host: int, address: str) -> ssl.SSLContext:
        """The server's side of a host's handshakes."""
        from cryptography import x509
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

        extension = x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))])
        own = self._signed(_name(address), self._key, self._issuer_name, self._issuer, extension)
        key = self._key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_alpn_protocols(["http/1.1"])
        with tempfile.NamedTemporaryFile() as chain:
            Path(chain.name).write_bytes(key + own + self._middle)
            context.load_cert_chain(chain.name)
        if unit(seed, host, _VERSION) < OLD:
            context.maximum_version = ssl.TLSVersion.TLSv1_2
        return context

    def _signed(
        self,
        subject: x509.Name,
        key: EllipticCurvePrivateKey,
        issuer: x509.Name,
        signing: EllipticCurvePrivateKey,
        host: x509.SubjectAlternativeName | None = None,
    ) -> bytes:
        """A certificate as PEM; without `host` it is an authority's."""
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.serialization import Encoding
        from cryptography.x509.oid import ExtendedKeyUsageOID

        signs = host is None
        usage: dict[str, Any] = dict.fromkeys(
            ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "encipher_only",
             "decipher_only"), False)  # fmt: skip
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._today - timedelta(days=1))
            .not_valid_after(self._today + timedelta(days=90))
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key()), critical=False)
            .add_extension(x509.BasicConstraints(ca=signs, path_length=None), critical=True)
            .add_extension(
                x509.KeyUsage(digital_signature=not signs, key_cert_sign=signs, crl_sign=signs, **usage), critical=True
            )
        )
        if host is not None:
            builder = builder.add_extension(host, critical=False).add_extension(
                x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False
            )
        return builder.sign(signing, hashes.SHA256()).public_bytes(Encoding.PEM)


def _name(text: str) -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])
