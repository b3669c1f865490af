"""An address book."""

from contacts.exports import FORMATS, export

__all__ = ["FORMATS", "export"]
