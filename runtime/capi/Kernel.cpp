//===- Kernel.cpp - Compiling and queries of the C interface -----------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/ptx/Ptx.h"
#include "runtime/ForkGate.h"
#include "runtime/capi/Describe.h"
#include "runtime/capi/Handles.h"
#include "runtime/capi/Report.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace tegula;
using namespace tegula::capi;

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

/// The caller's options as the compiler's. Mistakes are in `error`.
namespace {
class OptionReader {
public:
  OptionReader(const tegula_compile_options &given, const ast::Kernel &kernel)
      : given(given), kernel(kernel), signature(kernel) {}

  bool read(CompileOptions &options) {
    options.instance.kernel = kernel.name.name;
    options.checked = given.checked;
    options.dependentLaunches = given.dependent_launches;
    options.tuned = given.tuned;
    options.instance.precision = given.precision ? given.precision : "";
    if (given.precision && !checked::isPrecision(given.precision))
      return fail(Twine("expected a precision ") + checked::precisionNames + ", got '" +
                  given.precision + "'");
    return readObserve(options) && readSettings(options) && readOptionals(options) &&
           readStages(options);
  }
  std::string error;

private:
  bool fail(const Twine &message) {
    error = message.str();
    return false;
  }

  bool readObserve(CompileOptions &options) {
    using Watch = InstanceOptions::Watch;
    switch (given.observe) {
    case TEGULA_OBSERVE_NOTHING:
      return true;
    case TEGULA_OBSERVE_STATEMENTS:
    case TEGULA_OBSERVE_NAN:
    case TEGULA_OBSERVE_FINITE:
      break;
    default:
      return fail("observe is " + Twine(int(given.observe)) + ", which is none");
    }
    if (given.target && StringRef(given.target) != "cpu")
      return fail(Twine("launches are observed on target cpu, got '") + given.target + "'");
    options.instance.observe = true;
    options.instance.watch = given.observe == TEGULA_OBSERVE_NAN      ? Watch::Nan
                             : given.observe == TEGULA_OBSERVE_FINITE ? Watch::NonFinite
                                                                      : Watch::Nothing;
    return true;
  }

  bool readSettings(CompileOptions &options) {
    if (given.num_settings && !given.settings)
      return fail("num_settings is " + Twine(given.num_settings) + ", settings is NULL");
    Settings settings;
    for (const tegula_setting &one : ArrayRef(given.settings, given.num_settings)) {
      if (!one.name || !one.value)
        return fail("a setting has no name or no value");
      if (StringRef(one.name) == "...")
        return fail("the rank of '...' is given by ellipsis_rank");
      settings.push_back({one.name, one.value});
    }
    Instance instance;
    if (!signature.sort(settings, instance, error))
      return false;
    if (const Signature::Parameter *missing = signature.missing(instance.options))
      return fail("kernel '" + kernel.name.name + "' needs '" + missing->name +
                  "', a constant without a default");
    if (!instance.scalars.empty())
      return fail("'" + instance.scalars.begin()->first + "' is a scalar: give it at each launch");
    for (const auto &[name, value] : instance.sizes)
      if (!isSize(name))
        return fail("kernel '" + kernel.name.name + "' has no constant, generic type or size '" +
                    name + "'");
    options.instance.types = std::move(instance.options.types);
    options.instance.constants = std::move(instance.options.constants);
    options.instance.sizes = std::move(instance.sizes);
    if (signature.hasEllipsis)
      options.instance.ellipsisRank = given.ellipsis_rank;
    else if (given.ellipsis_rank)
      return fail("ellipsis_rank is " + Twine(given.ellipsis_rank) + ", kernel '" +
                  kernel.name.name + "' has no '...'");
    return true;
  }

  /// Whether a dim of an input is exactly this name, which binds it.
  bool isSize(StringRef name) const {
    return any_of(kernel.params, [&](const ast::Param &param) {
      return any_of(param.dims, [&](const ast::Dim &dim) {
        return dim.expr && dim.expr->kind == ast::Expr::Name && dim.expr->name.name == name;
      });
    });
  }

  bool readOptionals(CompileOptions &options) {
    if (given.num_optionals && !given.optionals)
      return fail("num_optionals is " + Twine(given.num_optionals) + ", optionals is NULL");
    for (const char *name : ArrayRef(given.optionals, given.num_optionals)) {
      const Signature::Parameter *parameter = name ? signature.find(name) : nullptr;
      if (!parameter || !parameter->isOptional ||
          (parameter->kind != Signature::Parameter::Tensor &&
           parameter->kind != Signature::Parameter::Scalar))
        return fail("kernel '" + kernel.name.name + "' has no optional tensor or scalar '" +
                    (name ? name : "") + "'");
      options.instance.givenOptionals.push_back(name);
    }
    return true;
  }

  bool readStages(CompileOptions &options) {
    if (given.num_stages && !given.stages)
      return fail("num_stages is " + Twine(given.num_stages) + ", stages is NULL");
    for (const char *stage : ArrayRef(given.stages, given.num_stages)) {
      if (!stage || !is_contained({"tgl", "scheduled", "llvm", "asm", "ptx"}, StringRef(stage)))
        return fail(Twine("expected a stage tgl, scheduled, llvm, asm or ptx, got '") +
                    (stage ? stage : "") + "'");
      options.keepStages.push_back(stage);
    }
    return true;
  }

  const tegula_compile_options &given;
  const ast::Kernel &kernel;
  Signature signature;
};
} // namespace

//===----------------------------------------------------------------------===//
// Compiling
//===----------------------------------------------------------------------===//

/// Texts that the queries give back.
static void describeAll(tegula_kernel &kernel) {
  for (auto [index, argument] : enumerate(kernel.compiled->arguments))
    if (!argument.isObserved)
      kernel.arguments.push_back(index);
  for (const KernelArgument &argument : kernel.compiled->arguments) {
    std::vector<std::string> &texts = kernel.dims.emplace_back();
    for (const IndexExpr &dim : argument.dims)
      texts.push_back(dim.str());
  }
  for (const GuardSpec &guard : kernel.compiled->checks->guards())
    kernel.guards.push_back({guard.str(), guard.message});
  kernel.description = describe(*kernel.compiled);
}

tegula_status tegula_compile(const tegula_context *context, const tegula_program *program,
                             const tegula_compile_options *given, tegula_kernel **kernel,
                             tegula_message **message) {
  Report report(message);
  if (!kernel)
    return report.fail(TEGULA_WRONG_CALL, "no place for the kernel is given");
  *kernel = nullptr;
  if (!context || !program)
    return report.fail(TEGULA_WRONG_CALL, context ? "no program is given" : "no context is given");
  tegula_compile_options wanted;
  if (!readOptions(given, wanted))
    return report.fail(TEGULA_WRONG_CALL, "struct_bytes of the compile options is not set");
  if (wanted.kernel && !program->hasKernel(wanted.kernel))
    return report.fail(TEGULA_WRONG_CALL,
                       Twine("the program has no kernel '") + wanted.kernel + "'");

  ForkGate gate;
  std::unique_ptr<Parsed> parsed = program->parse();
  OptionReader reader(wanted, *parsed->module->entry(wanted.kernel ? wanted.kernel : ""));
  CompileOptions options;
  if (!reader.read(options))
    return report.fail(TEGULA_WRONG_CALL, reader.error);
  StringRef target = wanted.target ? wanted.target : "cpu";
  std::shared_ptr<CudaDevice> device;
  if (target == "cuda") {
    Expected<std::shared_ptr<CudaDevice>> opened = context->state->device();
    if (!opened)
      return report.fail(opened.takeError());
    device = std::move(*opened);
    options.device = device->info().name;
    options.target = deviceTarget(device->info().major, device->info().minor);
    if (!isDeviceTarget(options.target))
      return report.fail(TEGULA_MISSING, "the device " + device->info().name + " is a " +
                                             options.target + ", expected " +
                                             expectedDeviceTargets());
  } else if (target == "cpu" || isDeviceTarget(target)) {
    options.target = target.str();
    if (target != "cpu")
      options.stopAfter = Phase::EmitPtx; // needs no assembler
  } else {
    return report.fail(TEGULA_WRONG_CALL, "expected the target cpu, cuda, or " +
                                              expectedDeviceTargets() + ", got '" + target + "'");
  }

  Expected<std::unique_ptr<CompiledKernel>> compiled =
      compileKernel(*parsed->module, options, parsed->diagnostics);
  report.add(parsed->diagnostics);
  if (!compiled)
    return report.fail(compiled.takeError());
  if (!*compiled)
    return TEGULA_WRONG_PROGRAM;
  auto result = std::make_unique<tegula_kernel>();
  result->context = context->state;
  result->compiled = std::move(*compiled);
  if (device) {
    CudaDevice::Scope scope(*device);
    Expected<std::unique_ptr<DeviceKernel>> loaded = DeviceKernel::load(*result->compiled, device);
    if (!loaded)
      return report.fail(loaded.takeError());
    result->device = std::move(*loaded);
    // The device compiles one set of sizes at a time, so that the module has one user.
    options.alignment = DeviceKernel::specialAlignment;
    result->parsed = std::move(parsed);
    auto specialize = [kernel = result.get(), options](ArrayRef<int64_t> sizes) {
      ForkGate gate;
      CompileOptions forSizes = options;
      for (auto [spec, value] : zip_equal(kernel->compiled->checks->sizes(), sizes))
        forSizes.sizes[spec.name] = value;
      return compileForSizes(*kernel->parsed->module, forSizes);
    };
    if (!wanted.any_sizes)
      result->device->specializeWith(specialize);
  }
  describeAll(*result);
  *kernel = result.release();
  return TEGULA_OK;
}

void tegula_free(tegula_kernel *kernel) {
  if (!kernel || !kernel->device) {
    delete kernel;
    return;
  }
  CudaDevice::Scope scope(kernel->device->device());
  delete kernel;
}

//===----------------------------------------------------------------------===//
// Queries
//===----------------------------------------------------------------------===//

size_t tegula_num_arguments(const tegula_kernel *kernel) {
  return kernel ? kernel->arguments.size() : 0;
}

static tegula_role roleOf(KernelArgument::Role role) {
  switch (role) {
  case KernelArgument::In:
    return TEGULA_IN;
  case KernelArgument::Inout:
    return TEGULA_INOUT;
  case KernelArgument::Out:
    return TEGULA_OUT;
  case KernelArgument::Scalar:
    return TEGULA_SCALAR;
  }
  llvm_unreachable("all roles are handled");
}

tegula_argument_info tegula_argument(const tegula_kernel *kernel, size_t argument) {
  if (argument >= tegula_num_arguments(kernel))
    return {};
  const KernelArgument &one = kernel->compiled->arguments[kernel->arguments[argument]];
  return {one.name.c_str(), roleOf(one.role), static_cast<tegula_dtype>(one.dtype),
          one.dims.size()};
}

const char *tegula_argument_dim(const tegula_kernel *kernel, size_t argument, size_t dim) {
  if (dim >= tegula_argument(kernel, argument).rank)
    return nullptr;
  return kernel->dims[kernel->arguments[argument]][dim].c_str();
}

size_t tegula_num_guards(const tegula_kernel *kernel) { return kernel ? kernel->guards.size() : 0; }

tegula_guard_info tegula_guard(const tegula_kernel *kernel, size_t guard) {
  if (guard >= tegula_num_guards(kernel))
    return {};
  return {kernel->guards[guard].condition.c_str(), kernel->guards[guard].message.c_str()};
}

const char *tegula_describe(const tegula_kernel *kernel) {
  return kernel ? kernel->description.c_str() : nullptr;
}

const char *tegula_stage(const tegula_kernel *kernel, const char *stage) {
  if (!kernel || !stage)
    return nullptr;
  const CompiledKernel &compiled = *kernel->compiled;
  if (StringRef(stage) == "ptx")
    return compiled.isDevice() ? compiled.ptx.c_str() : nullptr;
  auto found = compiled.stages.find(stage);
  return found == compiled.stages.end() ? nullptr : found->second.c_str();
}
