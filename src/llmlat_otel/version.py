"""The version of this package; reading it from the installed metadata takes 8 ms of an import."""

from typing import Final

VERSION: Final = "0.1.0"
