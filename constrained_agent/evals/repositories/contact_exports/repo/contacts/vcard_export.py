"""Cards for telephones (vCard 4.0)."""


def _escaped(value):
    """A value with the characters that mean something in a card put behind backslashes."""
    for character in "\\,;":
        value = value.replace(character, "\\" + character)
    return value.replace("\n", "\\n")


def write(people):
    """One card after the other."""
    lines = []
    for person in people:
        lines += ["BEGIN:VCARD", "VERSION:4.0", f"FN:{_escaped(person['name'])}"]
        if "mail" in person:
            lines.append(f"EMAIL:{_escaped(person['mail'])}")
        if "phone" in person:
            lines.append(f"TEL:{_escaped(person['phone'])}")
        lines.append("END:VCARD")
    return "".join(line + "\r\n" for line in lines)
