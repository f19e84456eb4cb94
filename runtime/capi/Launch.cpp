//===- Launch.cpp - Running kernels through the C interface ------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For sizes that were used before nothing here allocates: arguments are views on the stack, and what
// follows from the sizes is found in the kernel's cache.
//
//===----------------------------------------------------------------------===//
#include "runtime/capi/Handles.h"
#include "runtime/capi/Report.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace tegula;
using namespace tegula::capi;

namespace {

/// The caller's arguments as the runtime's.
class Arguments {
public:
  explicit Arguments(const tegula_kernel &kernel) : kernel(kernel), compiled(*kernel.compiled) {}

  /// Reads everything but what belongs to outputs; they get their shapes from the binding.
  Error read(ArrayRef<tegula_value> given);
  /// Finds or makes the binding; inputs and inouts have the shapes that it demands.
  Error bind();
  /// Reads memory and shapes of outputs and checks all.
  Error readOutputs(ArrayRef<tegula_value> given);

  ArrayRef<LaunchArgument> views() const { return arguments; }
  const Binding &sizes() const { return *binding; }

private:
  Error refuse(size_t index, const Twine &what) const {
    return make_error<LaunchError>(LaunchError::WrongCall,
                                   ("'" + compiled.arguments[index].name + "' " + what).str());
  }
  Error readTensor(size_t index, const tegula_value &given);

  const tegula_kernel &kernel;
  const CompiledKernel &compiled;
  SmallVector<LaunchArgument, 16> arguments;
  SmallVector<int64_t, 48> dims; // of inputs and inouts
  BindingCache::Entry binding;
};

Error Arguments::readTensor(size_t index, const tegula_value &given) {
  if (given.rank && !given.shape)
    return refuse(index, "has rank " + Twine(given.rank) + " and no shape");
  if (unsigned(given.dtype) >= numDTypes)
    return refuse(index, "has the dtype " + Twine(int(given.dtype)) + ", which is none");
  LaunchArgument &argument = arguments[index];
  argument.data = given.data;
  argument.dtype = static_cast<DType>(given.dtype);
  argument.shape = ArrayRef(given.shape, given.rank);
  if (!given.strides)
    return Error::success();
  // A tensor without elements has no strides to speak of.
  if (is_contained(argument.shape, 0))
    return Error::success();
  uint64_t stride = 1; // wraps for shapes that are too large, which are refused later
  for (size_t dim = given.rank; dim-- > 0;) {
    if (given.shape[dim] != 1 && uint64_t(given.strides[dim]) != stride)
      return refuse(index, "is not contiguous: dim " + Twine(dim) + " has stride " +
                               Twine(given.strides[dim]) + ", not " + Twine(stride));
    stride *= given.shape[dim];
  }
  return Error::success();
}

Error Arguments::read(ArrayRef<tegula_value> given) {
  if (given.size() != compiled.arguments.size())
    return make_error<LaunchError>(LaunchError::WrongCall,
                                   ("kernel '" + compiled.name + "' takes " +
                                    Twine(compiled.arguments.size()) + " arguments, " +
                                    Twine(given.size()) + " given")
                                       .str());
  arguments.resize(given.size());
  for (auto [index, expected] : enumerate(compiled.arguments)) {
    switch (expected.role) {
    case KernelArgument::In:
    case KernelArgument::Inout:
      if (Error error = readTensor(index, given[index]))
        return error;
      dims.append(arguments[index].shape.begin(), arguments[index].shape.end());
      break;
    case KernelArgument::Scalar:
      arguments[index].dtype = expected.dtype;
      arguments[index].number = given[index].number;
      arguments[index].integer = given[index].integer;
      break;
    case KernelArgument::Out:
      break;
    }
  }
  return Error::success();
}

Error Arguments::bind() {
  // The same dims in other ranks are other shapes; ranks are fixed by the kernel.
  for (auto [index, expected] : enumerate(compiled.arguments)) {
    bool isRead = expected.role == KernelArgument::In || expected.role == KernelArgument::Inout;
    if (isRead && arguments[index].shape.size() != expected.dims.size())
      return bindSizes(compiled, arguments).takeError();
  }
  binding = kernel.bindings.find(dims);
  bool isNew = !binding;
  if (isNew) {
    Expected<SizeValues> sizes = bindSizes(compiled, arguments);
    if (!sizes)
      return sizes.takeError();
    Expected<Binding> made = tegula::bind(compiled, *sizes);
    if (!made)
      return made.takeError();
    if (kernel.device) {
      CudaDevice::Scope scope(kernel.device->device());
      Expected<int64_t> bytes = kernel.device->workspaceBytes(*sizes);
      if (!bytes)
        return bytes.takeError();
      made->workspaceBytes = *bytes;
    }
    binding = std::make_shared<const Binding>(std::move(*made));
  }
  for (auto [index, expected] : enumerate(compiled.arguments))
    if (expected.role == KernelArgument::In || expected.role == KernelArgument::Inout)
      if (Error error = checkShape(compiled, index, arguments[index], *binding))
        return error;
  if (isNew)
    kernel.bindings.insert(dims, binding);
  return Error::success();
}

Error Arguments::readOutputs(ArrayRef<tegula_value> given) {
  for (auto [index, expected] : enumerate(compiled.arguments)) {
    if (expected.role != KernelArgument::Out)
      continue;
    if (given[index].shape) {
      if (Error error = readTensor(index, given[index]))
        return error;
      continue;
    }
    arguments[index].data = given[index].data;
    arguments[index].dtype = static_cast<DType>(given[index].dtype);
    arguments[index].shape = binding->arguments[index].shape;
  }
  return checkArguments(compiled, arguments, *binding);
}

} // namespace

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
                           int64_t *outputShapes, size_t *workspaceBytes, tegula_message **message) {
  Report report(message);
  std::optional<Arguments> arguments;
  if (Error error = begin(kernel, given, count, arguments))
    return report.fail(std::move(error));
  if (Error error = arguments->bind())
    return report.fail(std::move(error));
  const Binding &binding = arguments->sizes();
  if (workspaceBytes)
    *workspaceBytes = binding.workspaceBytes;
  if (outputShapes)
    for (auto [expected, tensor] : zip_equal(kernel->compiled->arguments, binding.arguments))
      if (expected.role == KernelArgument::Out)
        outputShapes = llvm::copy(tensor.shape, outputShapes);
  return TEGULA_OK;
}

tegula_status tegula_launch(const tegula_kernel *kernel, const tegula_value *given, size_t count,
                            const tegula_launch_options *givenOptions, tegula_message **message) {
  Report report(message);
  tegula_launch_options options;
  if (!readOptions(givenOptions, options))
    return report.fail(TEGULA_WRONG_CALL, "struct_bytes of the launch options is not set");
  std::optional<Arguments> arguments;
  if (Error error = begin(kernel, given, count, arguments))
    return report.fail(std::move(error));
  if (!kernel->canLaunch())
    return report.fail(TEGULA_WRONG_CALL, "the kernel is compiled for " + kernel->compiled->target +
                                              ", to be read: compile it for cuda to launch it");
  if (Error error = arguments->bind())
    return report.fail(std::move(error));
  if (Error error = arguments->readOutputs(ArrayRef(given, count)))
    return report.fail(std::move(error));
  const Binding &binding = arguments->sizes();
  void *workspace = options.workspace;
  if (workspace && reinterpret_cast<uintptr_t>(workspace) % 256)
    return report.fail(TEGULA_WRONG_CALL, "the workspace is not aligned to 256 bytes");
  if (options.workspace_bytes < uint64_t(binding.workspaceBytes))
    workspace = nullptr;
  if (kernel->device) {
    CudaDevice::Scope scope(kernel->device->device());
    if (Error error = kernel->device->run(arguments->views(), binding.sizes, options.stream,
                                          reinterpret_cast<DeviceAddress>(workspace)))
      return report.fail(std::move(error));
    return TEGULA_OK;
  }
  if (Error error = runOnHost(*kernel->compiled, arguments->views(), binding, kernel->context->pool,
                              workspace))
    return report.fail(std::move(error));
  return TEGULA_OK;
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
