"""The secrets of a broker beyond loopback: a token, and a certificate authority of its own.

Both are made once and stay in the broker's directory, readable by its owner alone. The certificate that the broker
shows is signed anew at each start, for the names it has then: other machines trust the authority, so they need not be
told again when a name is added.
"""

from __future__ import annotations

import ipaddress
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from xyro.service.cluster.broker_config import Secured
from xyro.wire.errors import InputError, MachineError

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

AUTHORITY_DAYS: Final = 365 * 30
SERVER_DAYS: Final = 365 * 10
EARLIER: Final = timedelta(days=1)
"""before now a certificate holds, for machines whose clock is behind"""
MEND = "install Xyro with its extra: pip install 'xyro[cluster]'"


@dataclass(frozen=True, slots=True)
class BrokerSecrets:
    """Where the secrets of one broker's directory are."""

    secured: Secured
    authority: Path
    """the certificate that other machines have to trust"""


def make_secrets(directory: Path, names: Sequence[str], now: float) -> BrokerSecrets:
    """Load token and authority, made at the first call, and sign a certificate for `names` (hosts and IP addresses).

    InputError: the extra is not installed, or a file there is no secret of ours. MachineError: the disk fails.
    """
    token, authority = directory / "token", directory / "ca.pem"
    authority_key, certificate, key = directory / "ca.key", directory / "server.pem", directory / "server.key"
    try:
        if not token.exists():
            write_private(token, secrets.token_urlsafe(32).encode())
        if not (authority.exists() and authority_key.exists()):
            _make_authority(authority, authority_key, now)
        _sign_server(certificate, key, authority, authority_key, names, now)
        return BrokerSecrets(Secured(token.read_text().strip(), certificate, key), authority)
    except ImportError as error:
        raise InputError(f"a broker beyond loopback needs the package {error.name}; {MEND}") from error
    except ValueError as error:
        raise InputError(
            f"{directory}: ca.pem and ca.key are no certificate and key of ours ({error}): move both away, and copy "
            "the new ca.pem to the other machines"
        ) from error


def write_private(path: Path, content: bytes) -> None:
    """Write a file that its owner alone can read; it is there whole or not at all. MachineError: the disk fails."""
    fresh = path.with_name(f".{path.name}.new")
    try:
        fresh.unlink(missing_ok=True)
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        fresh.rename(path)
    except OSError as error:
        raise MachineError(f"{path}: {error.strerror}: mend the disk or the directory's rights") from error


def _make_authority(certificate: Path, key: Path, now: float) -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

    private = ec.generate_private_key(ec.SECP256R1())
    name = _name(f"Xyro broker {secrets.token_hex(4)}")
    usage = x509.KeyUsage(False, False, False, False, False, key_cert_sign=True, crl_sign=True, encipher_only=False,
                          decipher_only=False)  # fmt: skip
    builder = (
        _builder(name, name, private, now, AUTHORITY_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
    )
    _write_pair(builder, private, private, certificate, key)


def _sign_server(
    certificate: Path, key: Path, authority: Path, authority_key: Path, names: Sequence[str], now: float
) -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID

    issuer = x509.load_pem_x509_certificate(authority.read_bytes())
    signing = serialization.load_pem_private_key(authority_key.read_bytes(), None)
    if not isinstance(signing, ec.EllipticCurvePrivateKey):
        raise ValueError("another kind of key")
    private = ec.generate_private_key(ec.SECP256R1())
    builder = (
        _builder(_name(names[0]), issuer.subject, private, now, SERVER_DAYS)
        .add_extension(x509.SubjectAlternativeName([_alternative(name) for name in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key()), critical=False)
    )
    _write_pair(builder, private, signing, certificate, key)


def _builder(
    subject: x509.Name, issuer: x509.Name, private: EllipticCurvePrivateKey, now: float, days: int
) -> x509.CertificateBuilder:
    from cryptography import x509

    today = datetime.fromtimestamp(now, UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(today - EARLIER)
        .not_valid_after(today + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(private.public_key()), critical=False)
    )


def _write_pair(
    builder: x509.CertificateBuilder,
    private: EllipticCurvePrivateKey,
    signing: EllipticCurvePrivateKey,
    certificate: Path,
    key: Path,
) -> None:
    """Sign, and write the certificate and its private key."""
    from cryptography.hazmat.primitives import hashes, serialization

    pem = serialization.Encoding.PEM
    signed = builder.sign(signing, hashes.SHA256())
    plain = serialization.NoEncryption()
    write_private(key, private.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
    write_private(certificate, signed.public_bytes(pem))


def _name(text: str) -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text[:64])])


def _alternative(name: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
