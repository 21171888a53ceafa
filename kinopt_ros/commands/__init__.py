"""One module per command of `kinopt`: add_arguments(parser) and run(args) -> exit status."""
