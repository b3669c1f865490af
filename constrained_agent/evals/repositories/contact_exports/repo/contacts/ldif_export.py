"""Entries for the old directory server, which was switched off."""

import base64

BASE = "ou=people,dc=example,dc=org"


def _attribute(key, value):
    """One line; values that are not plain ASCII go in base64 after two colons."""
    if value.isascii() and not value.startswith((" ", ":", "<")):
        return f"{key}: {value}"
    return f"{key}:: {base64.b64encode(value.encode()).decode()}"


def write(people):
    """One entry for each person, with a blank line between them."""
    entries = []
    for person in people:
        lines = [_attribute("dn", f"cn={person['name']},{BASE}"), "objectClass: inetOrgPerson"]
        lines.append(_attribute("cn", person["name"]))
        if "mail" in person:
            lines.append(_attribute("mail", person["mail"]))
        if "phone" in person:
            lines.append(_attribute("telephoneNumber", person["phone"]))
        entries.append("\n".join(lines) + "\n")
    return "\n".join(entries)
