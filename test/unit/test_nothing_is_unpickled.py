"""No text and no file becomes code, but where it is said here."""

import ast
from pathlib import Path

import pytest

import kinopt_ros

PACKAGE = Path(kinopt_ros.__file__).parent
MODULES = {"pickle", "cPickle", "_pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "jsonpickle"}
CALLS = {"eval", "exec", "compile", "__import__"}
UNSAFE_YAML = {"unsafe_load", "unsafe_load_all", "full_load", "full_load_all", "UnsafeLoader", "FullLoader"}
UNSAFE_NAMES = {
    *(f"yaml.{name}" for name in UNSAFE_YAML | {"load", "load_all"}),
    *("numpy.load", "torch.load", "builtins.eval", "builtins.exec"),
}
ALLOWED = {
    ("solvers/jax_lm/programs.py", "pickle"): "compiled programs, from a private folder of this user",
    ("solvers/hjcd/child.py", "Connection"): "answers of a child process, over a socket that only both have",
    ("solvers/hjcd/child_main.py", "Connection"): "the other end",
    ("bench/node/disturbances.py", "Connection"): "between the processes of a measurement",
    ("bench/node/clients.py", "Connection"): "between the processes of a measurement",
}


def findings(text: str) -> set[str]:
    """What a source could make code of data with."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names} & MODULES
        elif isinstance(node, ast.ImportFrom):
            found |= {(node.module or "").split(".")[0]} & MODULES
            if node.module == "multiprocessing.connection":
                found |= {alias.name for alias in node.names}
            found |= {f"{node.module}.{alias.name}" for alias in node.names} & UNSAFE_NAMES
        elif isinstance(node, ast.Call):
            found |= called(node)
        elif isinstance(node, ast.Attribute) and node.attr in UNSAFE_YAML:
            found.add(f"yaml.{node.attr}")
    return found


def called(node: ast.Call) -> set[str]:
    function = node.func
    if isinstance(function, ast.Name):
        return {function.id} & CALLS
    if not isinstance(function, ast.Attribute):
        return set()
    owner = function.value.id if isinstance(function.value, ast.Name) else ""
    name = f"{owner}.{function.attr}"
    if name in ("yaml.load", "torch.load") or owner in MODULES:
        return {name}
    if function.attr in ("load", "fromfile") or name == "np.load":
        for keyword in node.keywords:
            said = keyword.value
            if keyword.arg == "allow_pickle" and not (isinstance(said, ast.Constant) and said.value is False):
                return {"allow_pickle"}
            if keyword.arg is None:
                return {"keywords of load"}
    return set()


def test_nothing_else_makes_code_of_data() -> None:
    unexplained, used = [], set()
    for path in sorted(PACKAGE.rglob("*.py")):
        inside = path.relative_to(PACKAGE).as_posix()
        for what in findings(path.read_text(encoding="utf-8")):
            key = (inside, what.split(".")[0] if what.startswith("pickle.") else what)
            if key in ALLOWED:
                used.add(key)
            else:
                unexplained.append(f"{inside}: {what}")
    assert not unexplained
    assert used == set(ALLOWED), "what is not there any more must not be allowed any more"


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from pickle import loads",
        "import marshal as m",
        "from dill import load",
        "import joblib",
        "np.load(file, allow_pickle=True)",
        "numpy.load(file, allow_pickle=wanted)",
        "np.load(file, **options)",
        "torch.load(file)",
        "from torch import load",
        "eval(text)",
        "exec(text)",
        "__import__(name)",
        "yaml.load(text)",
        "yaml.unsafe_load(text)",
        "yaml.load(text, yaml.UnsafeLoader)",
        "from yaml import full_load",
        "from multiprocessing.connection import Client",
    ],
)
def test_the_rule_sees_every_form(text: str) -> None:
    assert findings(text)


@pytest.mark.parametrize(
    "text", ["yaml.safe_load(text)", "np.load(file, allow_pickle=False)", "re.compile(text)"]
)
def test_the_rule_lets_data_pass(text: str) -> None:
    assert not findings(text)


def test_no_program_is_started_that_imports_from_the_current_folder() -> None:
    """Others may have put something there: `python -m` looks there first, unless -P says not to."""
    started = []
    for file in PACKAGE.rglob("*.py"):
        lists = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.List)]
        words = [[each.value for each in node.elts if isinstance(each, ast.Constant)] for node in lists]
        started += [(file, each) for each in words if "-m" in each and "-P" not in each]
    assert started == []
