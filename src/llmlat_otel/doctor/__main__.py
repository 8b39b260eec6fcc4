"""`python -m llmlat_otel.doctor`, where the command `llmlat` is not on the path."""

import sys

from llmlat_otel.doctor.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
