"""The broker that `--join` names: a URL, or the folder that `xyro hub` writes.

nats://127.0.0.1:4222                 a broker of this machine
tls://TOKEN@hub.example.org:4222      a broker elsewhere; the certificate of its authority by --ca
xyro-hub/join                         the folder: `url` holds one of these, `ca.pem` is the certificate
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from xyro.service.cluster.broker_link import PORT, check_url, without_tokens
from xyro.wire.errors import InputError
from xyro.wire.urls import host_and_port

URL_FILE: Final = "url"
CA_FILE: Final = "ca.pem"


def join_target(text: str, ca: Path | None = None) -> tuple[str, Path | None]:
    """(URL, certificate of the broker's authority or None for this machine's own list) of what `--join` was given.

    InputError: it is neither URL nor folder, or leads beyond this machine without TLS and a token.
    """
    if "://" in text:
        return check_url(text), ca
    folder = Path(text)
    try:
        url = (folder / URL_FILE).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"--join {without_tokens(text)}: neither a URL such as nats://127.0.0.1:{PORT} nor a folder that "
            f"`xyro hub` wrote ({URL_FILE}: {getattr(error, 'strerror', None) or 'not UTF-8'})"
        ) from error
    own = folder / CA_FILE
    return check_url(url), ca or (own if own.exists() else None)


def write_join(folder: Path, url: str, authority: Path | None) -> None:
    """Write the folder that `--join` takes. MachineError: the disk fails."""
    from xyro.service.cluster.broker_secrets import write_private

    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if authority is None:
        (folder / CA_FILE).unlink(missing_ok=True)
    else:
        write_private(folder / CA_FILE, authority.read_bytes())
    write_private(folder / URL_FILE, f"{url}\n".encode())


def join_url(host: str, port: int, token: str) -> str:
    """Return what is typed on the other machine after --join."""
    place = host_and_port(host, port)
    return f"tls://{token}@{place}" if token else f"nats://{place}"
