"""The subcommands of `llmlat`, one a file: arguments in, an exit code out."""
