//===- Program.cpp - Contexts and programs of the C interface ----------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/HostTarget.h"
#include "codegen/ptx/Ptx.h"
#include "runtime/ForkGate.h"
#include "runtime/capi/Handles.h"
#include "runtime/capi/Report.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/JSON.h"

using namespace llvm;
using namespace tegula;
using namespace tegula::capi;

const char *tegula_version(void) { return TEGULA_VERSION; }
const char *tegula_llvm_version(void) { return LLVM_VERSION_STRING; }

// The two enumerations have the same members in the same order.
static_assert(int(TEGULA_F64) == int(DType::F64) && int(TEGULA_F8E5M2) == int(DType::F8E5M2) &&
              int(TEGULA_I64) == int(DType::I64) && int(TEGULA_U4) == int(DType::U4) &&
              int(TEGULA_BOOL) == int(DType::Bool) && int(TEGULA_U64) == int(DType::U64) &&
              numDTypes == int(TEGULA_U64) + 1);

static bool isDType(tegula_dtype dtype) { return unsigned(dtype) < numDTypes; }

const char *tegula_dtype_name(tegula_dtype dtype) {
  // Names are literals, hence terminated.
  return isDType(dtype) ? toString(static_cast<DType>(dtype)).data() : nullptr;
}

unsigned tegula_dtype_bits(tegula_dtype dtype) {
  return isDType(dtype) ? bitWidth(static_cast<DType>(dtype)) : 0;
}

//===----------------------------------------------------------------------===//
// Context
//===----------------------------------------------------------------------===//

Expected<std::shared_ptr<CudaDevice>> ContextState::device() const {
  std::lock_guard<std::mutex> lock(mutex);
  if (!opened) {
    Expected<std::shared_ptr<CudaDevice>> device = CudaDevice::open(ordinal);
    if (!device)
      return device.takeError();
    opened = std::move(*device);
  }
  return opened;
}

tegula_status tegula_context_create(const tegula_context_options *given, tegula_context **context,
                                    tegula_message **message) {
  Report report(message);
  tegula_context_options options;
  if (!context)
    return report.fail(TEGULA_WRONG_CALL, "no place for the context is given");
  *context = nullptr;
  if (!readOptions(given, options))
    return report.fail(TEGULA_WRONG_CALL, "struct_bytes of the context's options is not set");
  if (options.num_threads > 1024)
    return report.fail(TEGULA_WRONG_CALL,
                       "expected at most 1024 threads, got " + Twine(options.num_threads));
  // LLVM's list of targets has no lock: all are entered before a first compilation.
  {
    ForkGate gate;
    HostTarget::get();
    initializeDeviceTarget();
  }
  *context =
      new tegula_context{std::make_shared<const ContextState>(options.num_threads, options.device)};
  return TEGULA_OK;
}

void tegula_context_free(tegula_context *context) { delete context; }

//===----------------------------------------------------------------------===//
// Program
//===----------------------------------------------------------------------===//

std::unique_ptr<Parsed> tegula_program::parse() const {
  auto parsed = std::make_unique<Parsed>();
  uint32_t file = parsed->sources.add(fileName, text);
  parsed->module = std::make_unique<tegula::Module>(parsed->sources, file, parsed->diagnostics);
  return parsed;
}

bool tegula_program::hasKernel(StringRef name) const {
  return any_of(kernels, [&](const Kernel &kernel) { return kernel.name == name; });
}

static tegula_program::Kernel describe(const ast::Kernel &kernel, const SourceManager &sources) {
  tegula_program::Kernel result;
  result.name = kernel.name.name;
  Signature signature(kernel);
  auto add = [&](const ast::Param &param, tegula_role role) {
    tegula_program::Parameter one;
    one.name = param.name.name;
    one.type = param.type.name;
    one.role = role;
    for (const ast::Dim &dim : param.dims)
      one.dims.push_back(dim.ellipsis ? "..." : sources.text(dim.span).str());
    if (param.defaultValue)
      one.defaultValue = sources.text(param.defaultValue->span).str();
    result.parameters.push_back(std::move(one));
  };
  for (auto [param, sorted] : zip_equal(kernel.params, signature.parameters))
    switch (sorted.kind) {
    case Signature::Parameter::Tensor:
      add(param, param.isInout ? TEGULA_INOUT : TEGULA_IN);
      break;
    case Signature::Parameter::Scalar:
      add(param, TEGULA_SCALAR);
      break;
    case Signature::Parameter::Constant:
    case Signature::Parameter::Tuple:
      add(param, TEGULA_CONSTANT);
      break;
    }
  for (const ast::Param &param : kernel.outputs)
    add(param, TEGULA_OUT);
  return result;
}

tegula_status tegula_parse(const char *text, size_t bytes, const char *fileName,
                           tegula_program **program, tegula_message **message) {
  Report report(message);
  if (!program)
    return report.fail(TEGULA_WRONG_CALL, "no place for the program is given");
  *program = nullptr;
  if (!text && bytes)
    return report.fail(TEGULA_WRONG_CALL, "no text is given");
  if (bytes > UINT32_MAX)
    return report.fail(TEGULA_WRONG_CALL, "the text has more than 4 GiB");
  ForkGate gate;
  auto result = std::make_unique<tegula_program>();
  result->text.assign(text ? text : "", bytes);
  result->fileName = json::fixUTF8(fileName ? fileName : "<input>");
  std::unique_ptr<Parsed> parsed = result->parse();
  bool parses = !parsed->diagnostics.hasErrors();
  if (!parses) // all that is wrong is told at once
    checkAll(*parsed->module, "", /*remarks=*/false, parsed->diagnostics);
  report.add(parsed->diagnostics);
  if (!parses)
    return TEGULA_WRONG_PROGRAM;
  for (const auto &kernel : parsed->module->file().kernels)
    result->kernels.push_back(describe(*kernel, parsed->sources));
  *program = result.release();
  return TEGULA_OK;
}

void tegula_program_free(tegula_program *program) { delete program; }

tegula_status tegula_check(const tegula_program *program, const char *kernel,
                           tegula_message **message) {
  Report report(message);
  if (!program)
    return report.fail(TEGULA_WRONG_CALL, "no program is given");
  if (kernel && !program->hasKernel(kernel))
    return report.fail(TEGULA_WRONG_CALL, Twine("the program has no kernel '") + kernel + "'");
  ForkGate gate;
  std::unique_ptr<Parsed> parsed = program->parse();
  for (const tegula_program::Kernel &one : program->kernels) {
    if (kernel && one.name != kernel)
      continue;
    InstanceOptions options;
    options.kernel = one.name;
    options.remarks = true;
    check(*parsed->module, options, parsed->diagnostics);
  }
  report.add(parsed->diagnostics);
  return parsed->diagnostics.hasErrors() ? TEGULA_WRONG_PROGRAM : TEGULA_OK;
}

size_t tegula_num_kernels(const tegula_program *program) {
  return program ? program->kernels.size() : 0;
}

const char *tegula_kernel_name(const tegula_program *program, size_t kernel) {
  return kernel < tegula_num_kernels(program) ? program->kernels[kernel].name.c_str() : nullptr;
}

size_t tegula_num_parameters(const tegula_program *program, size_t kernel) {
  return kernel < tegula_num_kernels(program) ? program->kernels[kernel].parameters.size() : 0;
}

tegula_parameter_info tegula_parameter(const tegula_program *program, size_t kernel,
                                       size_t parameter) {
  if (parameter >= tegula_num_parameters(program, kernel))
    return {};
  const tegula_program::Parameter &one = program->kernels[kernel].parameters[parameter];
  return {one.name.c_str(), one.role, one.type.c_str(), one.dims.size(),
          one.defaultValue ? one.defaultValue->c_str() : nullptr};
}

const char *tegula_parameter_dim(const tegula_program *program, size_t kernel, size_t parameter,
                                 size_t dim) {
  if (dim >= tegula_parameter(program, kernel, parameter).rank)
    return nullptr;
  return program->kernels[kernel].parameters[parameter].dims[dim].c_str();
}
