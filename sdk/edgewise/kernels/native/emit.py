"""Numba functions to an object with a plain C ABI, for any target LLVM knows.

For a process of its own only: ``retarget`` changes Numba's code generator for good, and
LLVM ends the process where an intrinsic is not in the feature set.  It uses private
parts of Numba, so a new minor version needs a look here.
"""

from __future__ import annotations

import llvmlite.binding as llvm
from llvmlite import ir
from numba.core import cgutils, codegen, compiler, cpu, registry, types
from numba.core.compiler_lock import global_compiler_lock

from edgewise.errors import KERNEL_FAULT
from edgewise.kernels.levels import Level
from edgewise.kernels.native.abi import FLAGS, KERNEL

_C_TYPES = {types.int32: "i32", types.int64: "i64", types.void: "void"}


def retarget(level: Level) -> None:
    """Make Numba generate code for ``level``; before anything is compiled."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    if level.dot:
        # It moves loads so far ahead on ARM that sums are kicked out of registers.
        llvm.set_option("edgewise", "-enable-misched=0")
    machine = llvm.Target.from_triple(level.triple).create_target_machine(
        cpu=level.cpu,
        features=level.features,
        opt=3,
        reloc="pic",
        codemodel="default",
    )

    class Library(codegen.AOTCodeLibrary):
        """Numba's, but not optimised helper by helper: ``emit`` does it once, later."""

        def _optimize_functions(self, module):
            module.data_layout = str(machine.target_data)

        def _optimize_final_module(self):
            """Nothing yet."""

    class Codegen(codegen.CPUCodegen):
        """Numba's, for another machine, and without an engine to run the code."""

        _library_class = Library
        fused, register, dot = level.fused, level.register, level.dot

        def _init(self, module):  # noqa: ARG002 - the signature is Numba's
            self._tm, self._tm_features, self._engine = machine, level.features, None
            self._target_data = machine.target_data
            self._data_layout = str(machine.target_data)
            self._loopvect, self._opt_level = True, 3

        def _create_empty_module(self, name):
            module = ir.Module(cgutils.normalize_ir_text(name))
            module.triple = level.triple
            module.data_layout = self._data_layout or ""
            return module

        def _customize_tm_options(self, options):
            """Nothing: the machine exists already."""

        def _customize_tm_features(self):
            return level.features

        def _add_module(self, module):
            """Nothing: there is no engine that could hold it."""

        def set_env(self, name, environment):
            """Nothing: there is no Python at run time."""

    def executable(self, library, descriptor, environment):
        library._ensure_finalized()  # noqa: SLF001 - no public way to an object
        # Never called, but Numba tells functions apart by it, and wants a builtin: the
        # method of a new object each time.
        return [].append

    codegen.JITCPUCodegen = Codegen
    cpu.CPUContext.get_executable = executable


def emit(exports: dict[str, object]) -> bytes:
    """An object with ``exports``: symbol to kernel, or to (function, signature)."""
    target, typing = (
        registry.cpu_target.target_context,
        registry.cpu_target.typing_context,
    )
    target.refresh()
    typing.refresh()
    machine = target.codegen()._tm  # noqa: SLF001 - ours, set in Codegen above
    whole = None
    for symbol, export in exports.items():
        function, signature = export if isinstance(export, tuple) else (export, KERNEL)
        module = _compile(typing, target, symbol, function, signature)
        if whole is None:
            whole = module
        else:
            whole.link_in(module)
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(whole, builder)
    return machine.emit_object(whole)


def _compile(typing, target, symbol, function, signature):
    """A module with nothing visible but the C function ``symbol``."""
    result = compiler.compile_extra(
        typing,
        target,
        getattr(function, "py_func", function),
        signature.args,
        signature.return_type,
        _flags(),
        locals={},
    )
    with global_compiler_lock:
        result.library._ensure_finalized()  # noqa: SLF001 - as in retarget
    module = result.library._final_module  # noqa: SLF001
    inner = result.fndesc.llvm_func_name
    module.link_in(llvm.parse_assembly(_wrapper(module, symbol, inner, signature)))
    for definition in module.functions:
        if not definition.is_declaration and definition.name != symbol:
            definition.linkage = "internal"
    for variable in module.global_variables:
        if variable.name.startswith("_ZN08NumbaEnv"):
            variable.linkage = "internal"
    return module


def _flags() -> compiler.Flags:
    flags = compiler.Flags()
    flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
    flags.error_model, flags.boundscheck, flags.nrt = "numpy", False, False
    flags.enable_looplift = flags.enable_pyobject = flags.release_gil = False
    flags.fastmath = cpu.FastMathOptions(set(FLAGS))
    return flags


def _wrapper(module, symbol: str, inner: str, signature) -> str:
    """Assembly of the C function over Numba's ``int32 f(result *, exception **, ...)``.

    An exception, which a kernel must not raise, becomes a status: even a fault of ours
    is an error code and not a crash.
    """
    kinds = [_C_TYPES.get(argument, "ptr") for argument in signature.args]
    given = ", ".join(f"{kind} %a{index}" for index, kind in enumerate(kinds))
    declared = ", ".join(["ptr", "ptr", *kinds])
    passed = ", ".join(["ptr %result", "ptr %fault", *([given] if given else [])])
    kind = _C_TYPES[signature.return_type]
    return f"""
        target triple = "{module.triple}"
        target datalayout = "{module.data_layout}"
        declare i32 @"{inner}"({declared})
        define {kind} @{symbol}({given}) {{
          %result = alloca {kind}
          %fault = alloca ptr
          %status = call i32 @"{inner}"({passed})
          %good = icmp eq i32 %status, 0
          br i1 %good, label %return, label %raised
        return:
          %value = load {kind}, ptr %result
          ret {kind} %value
        raised:
          ret {kind} {KERNEL_FAULT}
        }}"""
