"""Writes the files of an identity into a folder.

DIR/key.pem          the private key, its owner's alone; made once, never overwritten; it stays on the crawler's machine
DIR/public/          the folder for the web server of the agent's address: index.html, the bot page, which is yours to
                     edit once it is there; the key directory, anew each time
DIR/public/_headers  the headers that the directory is served with, for hosts that read such a file
DIR/nginx.conf       the same for nginx, to be included in the server's block
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xyro.identity_key import IdentityKey
from xyro.plugins.identity.bot_page import CrawlerFacts, bot_page
from xyro.plugins.identity.key_directory import PATH, KeyDirectory, key_directory
from xyro.service.node.reader_factory import user_agent_of
from xyro.wire.errors import InputError, MachineError
from xyro.wire.text import stamp

if TYPE_CHECKING:
    from xyro.configs.schema import Settings

KEY = "key.pem"
PUBLIC = "public"
VALID = 365 * 86_400
"""seconds for which the directory's own signature holds"""


@dataclass(frozen=True, slots=True)
class WrittenIdentity:
    """The files that were written."""

    key: Path
    key_is_new: bool
    page_is_new: bool
    public: Path
    thumbprint: str
    expires: int


def write_identity(settings: Settings, folder: Path, now: float) -> WrittenIdentity:
    """Write all files; a key and a page that are there already stay. InputError: a setting is missing."""
    identity, fetch = settings.identity, settings.fetch
    if not identity.agent:
        raise InputError("identity: where will the key directory be published? give --agent https://bot.example.org")
    if not fetch.contact:
        raise InputError("identity: whom can sites ask? give --contact you@example.org")
    path = Path(identity.key) if identity.key else folder / KEY
    public = folder / PUBLIC
    if path.absolute().is_relative_to(public.absolute()):
        raise InputError(f"identity: {path}: the key would be published with {public}: name a file outside of it")
    is_new = not path.exists()
    key = IdentityKey.make(path) if is_new else IdentityKey.read(path)
    created = int(now)
    directory = key_directory(key, identity.agent.removeprefix("https://"), created, created + VALID)
    facts = CrawlerFacts(
        fetch.user_agent, user_agent_of(fetch), fetch.contact, identity.purpose, identity.agent, key.thumbprint
    )
    page = public / "index.html"
    try:
        place = public / PATH[1:]
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(directory.body)
        (public / "_headers").write_text(_headers(directory), "utf-8")
        (folder / "nginx.conf").write_text(_nginx(directory), "utf-8")
        page_is_new = not page.exists()
        if page_is_new:
            page.write_text(bot_page(facts), "utf-8")
    except OSError as error:
        raise MachineError(f"{error.filename or folder}: {error.strerror}") from error
    return WrittenIdentity(path, is_new, page_is_new, public, key.thumbprint, created + VALID)


def lines(written: WrittenIdentity, agent: str, contact: str) -> list[str]:
    """Say what was written, and what is to be done with it."""
    made = "made now" if written.key_is_new else "was there"
    return [
        f"key        {written.key}: {made}; it stays on the crawler's machine",
        f"keyid      {written.thumbprint}",
        f"publish    {written.public} at {agent}, the directory with the headers of nginx.conf or _headers;",
        f"           they hold until {stamp(written.expires)}: run this again before",
        f"bot page   {written.public / 'index.html'}: "
        + ("made now, yours to edit" if written.page_is_new else "was there, and is as it was"),
        "settings   in the file that --config names:",
        *(["           [fetch]", f'           contact = "{contact}"'] if contact else []),
        "           [identity]",
        '           sign = "challenged"',
        f'           key = "{written.key.absolute()}"',
        f'           agent = "{agent}"',
    ]


def describe(settings: Settings) -> dict[str, Any]:
    """The identity that a crawl with these settings has. InputError: its key cannot be read."""
    identity = settings.identity
    key = IdentityKey.read(Path(identity.key)) if identity.key else None
    return {
        "user_agent": user_agent_of(settings.fetch),
        "contact": settings.fetch.contact or None,
        "purpose": list(identity.purpose),
        "sign": identity.sign,
        "agent": identity.agent or None,
        "directory": identity.agent + PATH if identity.agent else None,
        "key": identity.key or None,
        "keyid": key.thumbprint if key is not None else None,
        "x": key.jwk["x"] if key is not None else None,
    }


def _headers(directory: KeyDirectory) -> str:
    return f"{PATH}\n" + "".join(f"  {name}: {value}\n" for name, value in directory.headers.items())


def _nginx(directory: KeyDirectory) -> str:
    headers = dict(directory.headers)
    kind = headers.pop("Content-Type")
    added = "".join(f"    add_header {name} '{value}';\n" for name, value in headers.items())
    return f"location = {PATH} {{\n    types {{ }}\n    default_type {kind};\n{added}}}\n"
