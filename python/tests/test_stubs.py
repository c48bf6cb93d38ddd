"""The stubs that are checked in say what the package has."""

import ast
import importlib.util
import inspect
import pathlib
import subprocess
import sys

import forebay as fb

PACKAGE = pathlib.Path(fb.__file__).resolve().parent


def parameters_of(function):
    """ast -> [(name, default as source or None)], without self."""
    arguments = function.args
    plain = arguments.posonlyargs + arguments.args
    defaults = [None] * (len(plain) - len(arguments.defaults)) + list(arguments.defaults)
    pairs = list(zip(plain, defaults)) + list(zip(arguments.kwonlyargs, arguments.kw_defaults))
    return [
        (argument.arg, None if default is None else ast.literal_eval(default))
        for argument, default in pairs
        if argument.arg not in ("self", "cls")
    ]


def real_parameters(function):
    return [
        (name, None if parameter.default is parameter.empty else parameter.default)
        for name, parameter in inspect.signature(function).parameters.items()
        if name not in ("self", "cls")
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]


def test_stubs_name_everything_public_with_its_parameters():
    tree = ast.parse((PACKAGE / "__init__.pyi").read_text())
    nodes = {n.name: n for n in tree.body if isinstance(n, (ast.ClassDef, ast.FunctionDef))}
    assert set(nodes) | {"__version__"} == set(fb.__all__)
    for name, node in nodes.items():
        real = getattr(fb, name)
        if isinstance(node, ast.FunctionDef):
            assert parameters_of(node) == real_parameters(real), name
            continue
        stubbed = {n.name: n for n in node.body if isinstance(n, ast.FunctionDef)}
        public = {k for k in vars(real) if not k.startswith("_") and callable_or_property(real, k)}
        assert public <= set(stubbed), name
        for method, function in stubbed.items():
            attribute = inspect.getattr_static(real, method)
            attribute = getattr(attribute, "__func__", attribute)  # of a classmethod
            if isinstance(attribute, property):
                assert any(getattr(d, "id", "") == "property" for d in function.decorator_list)
            else:
                assert parameters_of(function) == real_parameters(attribute), (name, method)


def callable_or_property(kind, name):
    attribute = inspect.getattr_static(kind, name)
    attribute = getattr(attribute, "__func__", attribute)
    return isinstance(attribute, property) or callable(attribute)


def test_error_classes_are_stubbed_with_their_bases():
    tree = ast.parse((PACKAGE / "__init__.pyi").read_text())
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name.endswith("Error"):
            bases = [base.id for base in node.bases]
            assert bases == [base.__name__ for base in getattr(fb, node.name).__bases__]


def test_the_stub_of_the_extension_is_what_nanobind_generates():
    assert importlib.util.find_spec("nanobind") is not None, "tools/setup.sh installs it"
    program = f"""
import sys
sys.path.insert(0, {str(pathlib.Path(fb.__file__).parent.parent)!r})
from nanobind.stubgen import StubGen
import forebay._core as core
generator = StubGen(core)
generator.put(core)
print(generator.get(), end="")
"""
    generated = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    stub = (PACKAGE / "_core.pyi").read_text()
    assert generated == stub, "write it anew: python -m nanobind.stubgen -m forebay._core"


def test_the_package_says_that_it_is_typed():
    assert (PACKAGE / "py.typed").exists()
