"""The environment that commands get: the person's, without what looks like a secret.

Covered: variables with the names of tokens, passwords, keys and credentials, those of the large clouds and hosts, the
way to an agent that holds keys, and values in the form of known keys or with a password in an address.
Not covered: secrets under a harmless name in a form of their own, and what a command can read from files.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

SETTINGS = {
    "GIT_TERMINAL_PROMPT": "0",
    # Git keeps the message that is there (`--amend`, `rebase --continue`), and commits nothing where there is none.
    "GIT_EDITOR": "true",
    "GIT_SEQUENCE_EDITOR": "true",
    # Elsewhere an editor that fails says more than one that changes nothing.
    "EDITOR": "false",
    "VISUAL": "false",
    "PAGER": "cat",
    "TERM": "dumb",
    # A file edited twice within one second and to the same size would run as its old bytecode.
    "PYTHONDONTWRITEBYTECODE": "1",
}
"""What commands get in place of the person's own: nobody sits at a terminal to answer an editor or a pager."""

MARK = "CONSTRAINED_AGENT_COMMAND"
"""Holds a value of each command's own, by which what it started is found (see `sessions`)."""

_WAITS = re.compile(r"\w+_(?:EDITOR|PAGER)|HGEDITOR|MANPAGER")
"""Variables of the person's that would stand before those above."""

_WORDS = re.compile(
    r"(?:.*(?:TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|APIKEY|CREDENTIAL|PRIVATEKEY|ACCESSKEY)S?|AUTH(?!OR(?!I)).*|OAUTH.*|"
    r"KEY|PASS|PWD|PAT|JWT|COOKIES?|ASKPASS|KUBECONFIG|NETRC|PGPASSFILE)"
)
"""One part of a name, between underscores. `TOKENIZERS_PARALLELISM` and `GIT_AUTHOR_NAME` are none."""

_FAMILIES = re.compile(
    r"(?:AWS|GITHUB|GH|GITLAB|OPENAI|ANTHROPIC|AZURE|GOOGLE|GCP|GCLOUD|CLOUDSDK|CLOUDFLARE|DIGITALOCEAN|HEROKU|VAULT|STRIPE|"
    r"TWILIO|SENDGRID|SLACK|DOCKER_AUTH|SSH|GPG_AGENT|VSCODE_GIT|KRB5|OP|DOPPLER|MISTRAL|GEMINI|COHERE|REPLICATE)_.*|"
    r"KRB5CCNAME|HF_TOKEN"
)
_VALUES = re.compile(
    r"(?<![A-Za-z0-9_])(?:gh[opsur]_[A-Za-z0-9]{10}|github_pat_|glpat-|sk-[A-Za-z0-9_-]{16}|[rs]k_(?:live|test)_|"
    r"(?:AKIA|ASIA)[0-9A-Z]{12}|xox[a-z]-|xapp-|AIza[0-9A-Za-z_-]{20}|ya29\.|hf_[A-Za-z0-9]{20}|npm_[A-Za-z0-9]{20}|"
    r"pypi-[A-Za-z0-9_-]{20}|dop_v1_|shpat_|SG\.[A-Za-z0-9_-]{16}|eyJ[A-Za-z0-9_-]{10,}\.)"
    r"|-----BEGIN|://[^/\s:@]*:[^/\s@]+@"
)


def for_commands(environment: Mapping[str, str], passed: Collection[str] = ()) -> dict[str, str]:
    """The variables that a command gets; `marked` adds the last one.

    Args:
        environment: all there are.
        passed: names that are let through whatever they look like.
    """
    kept = {
        name: value
        for name, value in environment.items()
        if name in passed or not (_WAITS.fullmatch(name) or looks_secret(name, value))
    }
    return {**kept, **SETTINGS}


def marked(variables: Mapping[str, str], mark: str, inherited: str = "") -> dict[str, str]:
    """Variables with a command's own mark.

    Args:
        inherited: the marks of the commands that this one runs in: these must find it, too.
    """
    return {**variables, MARK: f"{inherited} {mark}".strip()}


def looks_secret(name: str, value: str) -> bool:
    """Whether a variable's name, or the form of its value, is one of a secret."""
    upper = name.upper()
    return bool(_FAMILIES.fullmatch(upper) or names_secret(name) or _VALUES.search(value))


def names_secret(name: str) -> bool:
    """Whether a part of a variable's name says that a secret is in it."""
    upper = name.upper()
    parts = [] if upper == "PWD" else re.split(r"[_.-]+", upper)  # the folder, not a password
    return any(_WORDS.fullmatch(part) for part in parts)
