//===- Launch.cpp - Running kernels through the C interface ------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/capi/Arguments.h"
#include "runtime/capi/Report.h"
#include "runtime/observe/Observed.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace tegula;
using namespace tegula::capi;

/// What infer and launch both begin with.
static Error begin(const tegula_kernel *kernel, const tegula_value *given, size_t count,
                   std::optional<Arguments> &arguments) {
  auto refuse = [](const char *message) {
    return make_error<LaunchError>(LaunchError::WrongCall, message);
  };
  if (!kernel)
    return refuse("no kernel is given");
  if (!given && count)
    return refuse("no arguments are given");
  arguments.emplace(*kernel);
  if (Error error = arguments->read(ArrayRef(given, count)))
    return error;
  return Error::success();
}

tegula_status tegula_infer(const tegula_kernel *kernel, const tegula_value *given, size_t count,
                           int64_t *outputShapes, size_t *workspaceBytes,
                           tegula_message **message) {
  Report report(message);
  std::optional<Arguments> arguments;
  if (Error error = begin(kernel, given, count, arguments))
    return report.fail(std::move(error));
  if (Error error = arguments->bind())
    return report.fail(std::move(error));
  const Binding &binding = *arguments->sizes();
  if (workspaceBytes)
    *workspaceBytes = binding.workspaceBytes;
  if (outputShapes)
    for (auto [expected, tensor] : zip_equal(kernel->compiled->arguments, binding.arguments))
      if (expected.role == KernelArgument::Out)
        outputShapes = llvm::copy(tensor.shape, outputShapes);
  return TEGULA_OK;
}

/// Runs or queues a call whose arguments have been checked. `arguments`: LaunchData, with a
/// StreamMemory or null, or LaunchArguments.
template <typename List, typename... Memory>
static tegula_status start(const tegula_kernel &kernel, List arguments, const Binding &binding,
                           const tegula_launch_options &options, Report &report, Memory *...kept) {
  void *workspace = options.workspace;
  if (workspace && reinterpret_cast<uintptr_t>(workspace) % 256)
    return report.fail(TEGULA_WRONG_CALL, "the workspace is not aligned to 256 bytes");
  if (options.workspace_bytes < uint64_t(binding.workspaceBytes))
    workspace = nullptr;
  Error error = kernel.device
                    ? kernel.device->run(arguments, binding, options.stream,
                                         reinterpret_cast<DeviceAddress>(workspace), kept...)
                    : runOnHost(*kernel.compiled, arguments, binding, kernel.context->pool,
                                workspace, options.stop);
  return error ? report.fail(std::move(error)) : TEGULA_OK;
}

/// Hands over what a launch has seen; a failed assertion is a wrong result.
static tegula_status tellObserved(const tegula_kernel &kernel, const Arguments &arguments,
                                  const tegula_launch_options &options, tegula_status status,
                                  Report &report) {
  Expected<Observed> observed =
      Observed::read(*kernel.compiled, arguments.sizes()->sizes,
                     [&](unsigned argument) -> Expected<std::vector<char>> {
                       return arguments.observed(argument);
                     });
  if (!observed)
    return report.fail(observed.takeError());
  if (options.observed) {
    unsigned points = options.print_points ? options.print_points : defaultPrintPoints;
    *options.observed = new tegula_observed{observed->json(points), observed->lines(points)};
  }
  std::optional<std::string> failure = observed->failure();
  return failure ? report.fail(TEGULA_WRONG_RESULT, *failure) : status;
}

static tegula_status checkLaunchable(const tegula_kernel &kernel, Report &report) {
  if (kernel.canLaunch())
    return TEGULA_OK;
  return report.fail(TEGULA_WRONG_CALL, "the kernel is compiled for " + kernel.compiled->target +
                                            ", to be read: compile it for cuda to launch it");
}

/// The arguments of a launch, bound to sizes.
static tegula_status readAll(const tegula_kernel *kernel, const tegula_value *given, size_t count,
                             std::optional<Arguments> &arguments, Report &report) {
  if (Error error = begin(kernel, given, count, arguments))
    return report.fail(std::move(error));
  if (tegula_status status = checkLaunchable(*kernel, report))
    return status;
  if (Error error = arguments->bind())
    return report.fail(std::move(error));
  if (Error error = arguments->readOutputs())
    return report.fail(std::move(error));
  return TEGULA_OK;
}

tegula_status tegula_launch(const tegula_kernel *kernel, const tegula_value *given, size_t count,
                            const tegula_launch_options *givenOptions, tegula_message **message) {
  Report report(message);
  tegula_launch_options options;
  if (!readOptions(givenOptions, options))
    return report.fail(TEGULA_WRONG_CALL, "struct_bytes of the launch options is not set");
  if (options.observed)
    *options.observed = nullptr;
  std::optional<Arguments> arguments;
  if (tegula_status status = readAll(kernel, given, count, arguments, report))
    return status;
  const Binding &binding = *arguments->sizes();
  if (kernel->isObserved())
    if (Error error = arguments->makeObserved())
      return report.fail(std::move(error));
  if (Error error = checkArguments(*kernel->compiled, arguments->views(), binding))
    return report.fail(std::move(error));
  tegula_status status = start(*kernel, arguments->views(), binding, options, report);
  if (kernel->isObserved() && (status == TEGULA_OK || status == TEGULA_WRONG_RESULT))
    status = tellObserved(*kernel, *arguments, options, status, report);
  return status;
}

//===----------------------------------------------------------------------===//
// Observed launches
//===----------------------------------------------------------------------===//

const char *tegula_observed_json(const tegula_observed *observed) {
  return observed ? observed->json.c_str() : "";
}

const char *tegula_observed_text(const tegula_observed *observed) {
  return observed ? observed->text.c_str() : "";
}

void tegula_observed_free(tegula_observed *observed) { delete observed; }

//===----------------------------------------------------------------------===//
// Prepared calls
//===----------------------------------------------------------------------===//

tegula_status tegula_prepare(const tegula_kernel *kernel, const tegula_value *given, size_t count,
                             tegula_prepared **prepared, tegula_message **message) {
  Report report(message);
  if (!prepared)
    return report.fail(TEGULA_WRONG_CALL, "no place for the prepared call is given");
  *prepared = nullptr;
  std::optional<Arguments> arguments;
  if (tegula_status status = readAll(kernel, given, count, arguments, report))
    return status;
  if (kernel->isObserved())
    return report.fail(TEGULA_WRONG_CALL, "the kernel is observed: launch it with tegula_launch");
  for (auto [index, view] : enumerate(arguments->views())) {
    if (kernel->compiled->arguments[index].role == KernelArgument::Out && !given[index].shape)
      continue;
    if (Error error = checkShape(*kernel->compiled, index, view, *arguments->sizes()))
      return report.fail(std::move(error));
  }
  auto made = std::make_unique<tegula_prepared>(tegula_prepared{*kernel, arguments->sizes()});
  if (int64_t bytes = made->binding->workspaceBytes; kernel->device && bytes)
    made->memory = std::make_unique<StreamMemory>(kernel->device->device(), bytes);
  *prepared = made.release();
  return TEGULA_OK;
}

void tegula_prepared_free(tegula_prepared *prepared) { delete prepared; }

size_t tegula_prepared_workspace_bytes(const tegula_prepared *prepared) {
  return prepared ? prepared->binding->workspaceBytes : 0;
}

tegula_status tegula_launch_prepared(const tegula_prepared *prepared, void *const *data,
                                     size_t count, const tegula_launch_options *givenOptions,
                                     tegula_message **message) {
  Report report(message);
  tegula_launch_options options;
  if (!readOptions(givenOptions, options))
    return report.fail(TEGULA_WRONG_CALL, "struct_bytes of the launch options is not set");
  if (options.observed)
    *options.observed = nullptr; // what an earlier launch has seen
  if (!prepared)
    return report.fail(TEGULA_WRONG_CALL, "no prepared call is given");
  const tegula_kernel &kernel = prepared->kernel;
  const CompiledKernel &compiled = *kernel.compiled;
  if (count != compiled.arguments.size() || (!data && count))
    return report.fail(TEGULA_WRONG_CALL, "kernel '" + compiled.name + "' takes " +
                                              Twine(compiled.arguments.size()) + " arguments, " +
                                              Twine(data ? count : 0) + " given");
  SmallVector<void *, 16> addresses(const_cast<void **>(data), const_cast<void **>(data) + count);
  SmallVector<uint64_t, 16> scalars(count);
  for (auto [expected, address, own] : zip_equal(compiled.arguments, addresses, scalars)) {
    if (expected.role != KernelArgument::Scalar)
      continue;
    if (!address)
      return report.fail(TEGULA_WRONG_CALL, "the scalar '" + expected.name + "' is not given");
    if (expected.declared == expected.dtype)
      continue;
    // What code takes as i32 or f32 may hold more than the scalar's type.
    LaunchArgument given;
    if (isFloat(expected.dtype))
      given.number = loadFloat(expected.dtype, address, 0);
    else
      given.integer = loadInteger(expected.dtype, address, 0);
    if (Error error = takeScalar(expected, given))
      return report.fail(std::move(error));
    if (isFloat(expected.dtype))
      storeFloat(expected.dtype, &own, 0, given.number);
    else
      storeInteger(expected.dtype, &own, 0, given.integer);
    address = &own;
  }
  if (Error error = checkMemory(compiled, addresses, *prepared->binding))
    return report.fail(std::move(error));
  return start(kernel, addresses, *prepared->binding, options, report, prepared->memory.get());
}

tegula_status tegula_synchronize(const tegula_kernel *kernel, void *stream,
                                 tegula_message **message) {
  Report report(message);
  if (!kernel)
    return report.fail(TEGULA_WRONG_CALL, "no kernel is given");
  if (!kernel->device)
    return TEGULA_OK;
  CudaDevice::Scope scope(kernel->device->device());
  if (Error error = kernel->device->synchronize(stream))
    return report.fail(std::move(error));
  return TEGULA_OK;
}
