"""Names of files that hold credentials: looking into one needs a person's yes, by a tool as by a command. Pure.

Covered: what shells, registries, clouds and keys are known to be kept in, by name and folder. Not covered: a credential
under a name of its own, a line of it in another file, and a search through a whole folder by a command.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

NAME = re.compile(
    r"(?!\.env(?:rc)?\.(?:example|sample|template|dist|defaults?|schema)\Z)(?:"
    r"\.env(?:rc|\..*)?|\.netrc|_netrc|\.pgpass|\.my\.cnf|\.npmrc|\.pypirc|\.git-credentials|\.htpasswd|\.vault-token"
    r"|\.s3cfg|\.boto|\.dockercfg|id_(?:rsa|dsa|ecdsa|ed25519|ecdsa_sk|ed25519_sk)|\.(?:bash|zsh)_history|master\.key"
    r"|\.secrets|credentials\.json|service[-_]account\.json|\.vault_pass(?:word)?|login\.keychain-db"
    r"|\.ssh|\.aws|\.gnupg|\.azure|\.kube|\.password-store|keychains|keyrings)",
    re.IGNORECASE,
)
"""Fits whole the name of a file of credentials, or of a folder in which everything counts as one."""

_PLACES = re.compile(
    r"/etc/(?:g?shadow|sudoers|master\.passwd|ssl/private)\b|/proc/[^/]*/(?:environ|mem)\b|^/dev/k?mem\b"
    r"|/\.docker/config\.json|/\.config/(?:gh|gcloud|hub|op|rclone|doctl)(?:/|$)|/\.cargo/credentials"
    r"|/\.(?:cache/)?huggingface/(?:token|stored_tokens)|/\.gem/credentials|/\.terraform\.d/credentials"
)
_SAMPLES = (
    ".env",
    ".ssh",
    ".aws",
    ".netrc",
    ".gnupg",
    ".git-credentials",
    ".npmrc",
    ".pypirc",
    ".kube",
    "id_rsa",
)
"""Names that a pattern may find."""

_PATTERN = re.compile(r"[*?\[]")


def named(path: str) -> bool:
    """Whether a path names a file of credentials, or a folder of them.

    Args:
        path: absolute, or as it is below a folder; `/` between its parts; a part may be a pattern of a shell.
    """
    path = path.casefold()
    if _PLACES.search(path):
        return True
    parts = [part for part in path.split("/") if part]
    if parts and parts[-1].endswith(".pub"):
        return False
    for part in parts:
        if NAME.fullmatch(part):
            return True
        if _PATTERN.search(part) and part[0] in ".i" and any(fnmatchcase(name, part) for name in _SAMPLES):
            return True
    return len(parts) > 1 and parts[0] == "etc" and any(fnmatchcase("shadow", part) for part in parts[1:])
