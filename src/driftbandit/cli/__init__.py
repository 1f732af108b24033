"""The commands of `driftbandit`, one module each.

A command's module has `add_parser(subparsers)`, which describes it to argparse, and `run(args)`, which returns an exit
code or None. Heavy imports are inside `run`, because all modules are loaded to print the help; a command loads only its
own. Modules whose name begins with an underscore are not commands."""
