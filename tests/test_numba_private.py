"""Numba's inner names that the engine relies on. One that is gone must be seen here, by name, and not as a riddle in a
compiled loop: pyproject.toml bounds Numba's version for this reason."""

import inspect

import pytest

numba = pytest.importorskip("numba")


def test_the_private_names_we_use_are_there():
    from numba.core import cgutils, typing
    from numba.core.compiler import CompileResult
    from numba.core.datamodel import models
    from numba.core.imputils import lower_builtin
    from numba.np.arrayobj import populate_array

    templates = typing.templates
    for name in ("_OverloadMethodTemplate", "make_overload_attribute_template", "infer_getattr", "infer_global"):
        assert hasattr(templates, name), f"numba.core.typing.templates.{name} is gone"
    for name in ("_init_once", "_resolve", "_get_target_registry", "_get_function_type", "_get_signature"):
        assert hasattr(templates._OverloadMethodTemplate, name), f"_OverloadMethodTemplate.{name} is gone"
    for name in ("_reduce", "_rebuild"):
        assert hasattr(CompileResult, name), f"CompileResult.{name} is gone"
    assert hasattr(models, "StructModel")
    assert callable(cgutils.create_struct_proxy)
    assert callable(lower_builtin)
    assert callable(populate_array)


def test_the_private_options_we_use_are_understood():
    made = numba.njit(nogil=True, error_model="numpy", boundscheck=False, forceinline=True, _nrt=False)(lambda x: x + 1)
    assert made(2) == 3
    assert "_cache" in vars(made)
    assert "instance_class" in inspect.signature(numba.types.NamedTuple.__init__).parameters or hasattr(
        numba.types.NamedTuple([numba.int64], type("T", (tuple,), {"_fields": ("x",)})), "instance_class"
    )
