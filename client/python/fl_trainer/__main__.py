"""python3 -m fl_trainer save SCRIPT.py[:FUNCTION] OUT.safetensors [ARGUMENTS…]"""

from __future__ import annotations

import argparse
import importlib.util
import os
import runpy
import sys
from typing import Any, List, Optional

from . import ModelError, _api, save


def load_function(text: str) -> Any:
    """FUNCTION of the file SCRIPT.py, which is imported as a module: not as the main program."""
    path, colon, name = text.rpartition(":")
    if not colon or not name:
        raise ModelError(f"'{text}': expected SCRIPT.py:FUNCTION")
    if not os.path.isfile(path):
        raise ModelError(f"{path}: no such file")
    module_name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise ModelError(f"{path}: no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec.loader.exec_module(module)
    if not hasattr(module, name):
        raise ModelError(f"{path} has no '{name}'")
    return getattr(module, name)


def save_of_script(path: str, arguments: List[str], out: str) -> None:
    """Run the script up to its fl_trainer.run() and save the model passed to it."""
    if not os.path.isfile(path):
        raise ModelError(f"{path}: no such file")
    _api.saving_to = os.path.abspath(out)
    sys.argv = [path, *arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as end:
        if end.code not in (None, 0):
            raise
        return
    finally:
        _api.saving_to = None
    raise ModelError(f"{path} ended without fl_trainer.run()")


def main(argv: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m fl_trainer")
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("save", help="write a server's model.file")
    command.add_argument(
        "model",
        metavar="SCRIPT.py[:FUNCTION]",
        help="a function that returns the model; without it the script is run, and what it gives to fl_trainer.run() is written",
    )
    command.add_argument("out", metavar="OUT.safetensors")
    command.add_argument("arguments", metavar="ARGUMENT", nargs="*", help="of the script that is run")
    arguments = parser.parse_args(argv)
    try:
        if ":" in arguments.model:
            save(load_function(arguments.model), arguments.out)
        else:
            save_of_script(arguments.model, arguments.arguments, arguments.out)
    except (ModelError, OSError) as e:
        print(f"fl_trainer: {e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
