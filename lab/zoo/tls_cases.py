"""Zoo A, certificates (cases 17 and 19): handshakes that must fail, whatever they show.

The certificates are made with openssl when the zoo opens, in a folder that goes with it. All are their own authority,
so a crawler that verifies believes none; what else is wrong with each is what a lenient one would get past.
"""

from __future__ import annotations

import re
import ssl
import subprocess
from pathlib import Path

from xyro.lab.zoo.acts import Case, page, response, says
from xyro.wire.errors import MachineError

_SOUND = says(response(page("/ok.html")))
_NAMES = 10_000
"""of the certificate that is larger than a client wants to hold"""


def _case(number: int, name: str, tls: str) -> Case:
    return Case(number, name, ("tls",), _SOUND, scheme="https", tls=tls)


CASES = (
    _case(17, "tls-self-signed", "self-signed"),
    _case(17, "tls-expired", "expired"),
    _case(17, "tls-wrong-host", "wrong-host"),
    _case(17, "tls-no-common-cipher", "no-cipher"),
    _case(17, "tls-unknown-name", "unknown-name"),
    _case(19, "tls-10000-names", "many-names"),
)


def context_of(tls: str, address: str, folder: Path) -> ssl.SSLContext:
    """The server's side of a handshake; its certificate is made in `folder`. MachineError: there is no openssl."""
    name = f"DNS:{'other.example' if tls == 'wrong-host' else 'zoo.test'}"
    if tls == "many-names":
        name += "".join(f",DNS:n{number}.example" for number in range(_NAMES))
    elif tls != "wrong-host":
        name += f",IP:{address}"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*_certificate(folder, tls, name))
    if tls == "no-cipher":  # it offers those that encrypt nothing
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers("ECDHE-ECDSA-NULL-SHA:@SECLEVEL=0")
    if tls == "unknown-name":
        context.sni_callback = lambda *_: ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME
    return context


def _certificate(folder: Path, tls: str, names: str) -> tuple[Path, Path]:
    """(certificate, key)"""
    key, certificate, settings = (folder / f"{tls}.{ending}" for ending in ("key", "pem", "cnf"))
    settings.write_text(f"[req]\ndistinguished_name=d\nx509_extensions=e\n[d]\n[e]\nsubjectAltName={names}\n")
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-keyout", str(key), "-out", str(certificate), "-subj", "/CN=zoo", "-config", str(settings)]
    try:
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - no word of it comes from outside
    except (OSError, subprocess.CalledProcessError) as error:
        raise MachineError(f"lab zoo: openssl makes no certificate: {error}") from error
    if tls == "expired":  # openssl makes none: its dates are those of 2020 (the signature is of the true ones)
        der = re.sub(rb"\x17\x0d\d\d", b"\x17\x0d20", ssl.PEM_cert_to_DER_cert(certificate.read_text()))
        certificate.write_text(ssl.DER_cert_to_PEM_cert(der))
    return certificate, key
