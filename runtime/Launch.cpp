//===- Launch.cpp - Binding arguments and running compiled kernels ----------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/Launch.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <cstdlib>

using namespace llvm;
using namespace tegula;

char LaunchError::ID = 0;

static Error refuse(const Twine &message) {
  return make_error<LaunchError>(LaunchError::WrongCall, message.str());
}

static std::string shapeText(ArrayRef<int64_t> shape) {
  std::string text = "[";
  raw_string_ostream stream(text);
  interleaveComma(shape, stream);
  stream << ']';
  return text;
}

static std::string dimsText(const KernelArgument &argument) {
  std::string text = "[";
  raw_string_ostream stream(text);
  interleaveComma(argument.dims, stream);
  stream << ']';
  return text;
}

static std::optional<int64_t> evaluate(const CompiledKernel &kernel, const IndexExpr &expr,
                                       ArrayRef<int64_t> sizes) {
  return expr.evaluate([&](const IndexVar &var) -> std::optional<int64_t> {
    for (auto [spec, value] : zip_equal(kernel.checks->sizes(), sizes))
      if (spec.name == var.name())
        return value;
    return std::nullopt;
  });
}

Expected<SizeValues> tegula::bindSizes(const CompiledKernel &kernel,
                                       ArrayRef<LaunchArgument> arguments) {
  if (arguments.size() != kernel.arguments.size())
    return refuse("kernel '" + kernel.name + "' takes " + Twine(kernel.arguments.size()) +
                  " arguments, " + Twine(arguments.size()) + " given");
  for (auto [expected, given] : zip_equal(kernel.arguments, arguments)) {
    if (expected.role != KernelArgument::In && expected.role != KernelArgument::Inout)
      continue;
    if (given.shape.size() != expected.dims.size())
      return refuse("'" + expected.name + "' has dims " + dimsText(expected) +
                    ", the argument has shape " + shapeText(given.shape));
    for (int64_t dim : given.shape)
      if (dim < 0)
        return refuse("'" + expected.name + "' has a negative dim: " + shapeText(given.shape));
  }
  SizeValues values;
  std::optional<GuardFailure> failure = kernel.checks->run(
      [&](unsigned argument, unsigned dim) { return arguments[argument].shape[dim]; }, values);
  if (failure)
    return refuse(failure->message);
  return values;
}

Expected<SmallVector<int64_t>> tegula::shapeOf(const CompiledKernel &kernel, unsigned index,
                                               ArrayRef<int64_t> sizes) {
  SmallVector<int64_t> shape;
  for (const IndexExpr &dim : kernel.arguments[index].dims) {
    std::optional<int64_t> value = evaluate(kernel, dim, sizes);
    if (!value)
      return refuse("a dim of '" + kernel.arguments[index].name + "', " + dim.str() +
                    ", does not fit in 64 bits");
    if (*value < 0)
      return refuse("a dim of '" + kernel.arguments[index].name + "', " + dim.str() + ", is " +
                    Twine(*value));
    shape.push_back(*value);
  }
  return shape;
}

Error tegula::checkArguments(const CompiledKernel &kernel, ArrayRef<LaunchArgument> arguments,
                             ArrayRef<int64_t> sizes) {
  struct Extent {
    uintptr_t begin, end;
    unsigned argument;
    bool written;
  };
  SmallVector<Extent> extents;
  for (auto [index, expected] : enumerate(kernel.arguments)) {
    const LaunchArgument &given = arguments[index];
    if (given.dtype != expected.dtype)
      return refuse("'" + expected.name + "' is " + toString(expected.dtype) + ", the argument is " +
                    toString(given.dtype));
    if (expected.role == KernelArgument::Scalar)
      continue;
    Expected<SmallVector<int64_t>> shape = shapeOf(kernel, index, sizes);
    if (!shape)
      return shape.takeError();
    if (given.shape != *shape)
      return refuse("'" + expected.name + "' has dims " + dimsText(expected) + " = " +
                    shapeText(*shape) + ", the argument has shape " + shapeText(given.shape));
    std::optional<int64_t> bytes = storageBytes(expected.dtype, *shape);
    if (!bytes)
      return refuse("'" + expected.name + "' has more bytes than 64 bits count");
    if (*bytes && !given.data)
      return refuse("'" + expected.name + "' has no memory");
    uintptr_t begin = reinterpret_cast<uintptr_t>(given.data);
    unsigned alignment = std::max(1u, bitWidth(expected.dtype) / 8);
    if (*bytes && begin % alignment)
      return refuse("'" + expected.name + "' is not aligned to its elements");
    if (*bytes)
      extents.push_back({begin, begin + *bytes, unsigned(index),
                         expected.role == KernelArgument::Out ||
                             expected.role == KernelArgument::Inout});
  }
  // What is written overlaps nothing.
  llvm::sort(extents, [](const Extent &lhs, const Extent &rhs) { return lhs.begin < rhs.begin; });
  for (size_t i = 0; i < extents.size(); ++i)
    for (size_t j = i + 1; j < extents.size() && extents[j].begin < extents[i].end; ++j)
      if (extents[i].written || extents[j].written)
        return refuse("'" + kernel.arguments[extents[i].argument].name + "' and '" +
                      kernel.arguments[extents[j].argument].name + "' overlap in memory");
  return Error::success();
}

/// Scalars in their own types, and their addresses in order.
namespace {
class ScalarStorage {
public:
  ScalarStorage(const CompiledKernel &kernel, ArrayRef<LaunchArgument> arguments) {
    values.reserve(arguments.size());
    for (auto [expected, given] : zip_equal(kernel.arguments, arguments)) {
      if (expected.role != KernelArgument::Scalar)
        continue;
      uint64_t bits = 0;
      if (isFloat(expected.dtype))
        storeFloat(expected.dtype, &bits, 0, given.number);
      else
        storeInteger(expected.dtype, &bits, 0, given.integer);
      values.push_back(bits);
      pointers.push_back(&values.back());
    }
  }
  ArrayRef<const void *> addresses() const { return pointers; }

private:
  std::vector<uint64_t> values;
  SmallVector<const void *> pointers;
};
} // namespace

static Error reportOf(const CompiledKernel &kernel, const ErrorRecord &record) {
  switch (record.taken) {
  case ErrorRecord::None:
    return Error::success();
  case ErrorRecord::OutOfMemory:
    return make_error<LaunchError>(LaunchError::OutOfMemory, "no memory for temporaries");
  case ErrorRecord::BadAccess:
    break;
  }
  const KernelErrorSite &site = kernel.errorSites[record.site];
  return make_error<LaunchError>(LaunchError::WrongResult,
                                 (site.place + ": " + site.text + " is outside: a subscript is " +
                                  Twine(record.value))
                                     .str());
}

Error tegula::runOnHost(const CompiledKernel &kernel, ArrayRef<LaunchArgument> arguments,
                        ArrayRef<int64_t> sizes, ThreadPool &pool) {
  SmallVector<void *> buffers;
  for (auto [expected, given] : zip_equal(kernel.arguments, arguments))
    if (expected.role != KernelArgument::Scalar)
      buffers.push_back(given.data);
  struct Free {
    void operator()(void *memory) const { std::free(memory); }
  };
  SmallVector<std::unique_ptr<void, Free>> temporaries;
  for (const KernelTemporary &temporary : kernel.temporaries) {
    std::optional<int64_t> bytes = evaluate(kernel, temporary.bytes, sizes);
    if (!bytes || *bytes < 0)
      return refuse("temporary '" + temporary.name + "' has more bytes than 64 bits count");
    temporaries.emplace_back(std::aligned_alloc(64, std::max<int64_t>(*bytes, 64)));
    if (!temporaries.back())
      return make_error<LaunchError>(LaunchError::OutOfMemory,
                                     "no memory for temporary '" + temporary.name + "' of " +
                                         std::to_string(*bytes) + " bytes");
    buffers.push_back(temporaries.back().get());
  }
  ScalarStorage scalars(kernel, arguments);
  HostRun run = makeHostRun(pool);
  kernel.entry(buffers.data(), sizes.data(), scalars.addresses().data(), &run);
  return reportOf(kernel, run.errors);
}

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

Expected<std::unique_ptr<DeviceKernel>> DeviceKernel::load(const CompiledKernel &kernel,
                                                           std::shared_ptr<CudaDevice> device) {
  Expected<std::shared_ptr<CudaModule>> module = device->load(kernel.cubin);
  if (!module)
    return module.takeError();
  DeviceAddress errors = 0;
  if (!kernel.errorSites.empty()) {
    Expected<DeviceAddress> record = device->allocate(sizeof(ErrorRecord));
    if (!record)
      return record.takeError();
    errors = *record;
    if (Error error = device->fill(errors, 0, sizeof(ErrorRecord)))
      return std::move(error);
  }
  return std::unique_ptr<DeviceKernel>(
      new DeviceKernel(kernel, std::move(device), std::move(*module), errors));
}

DeviceKernel::~DeviceKernel() { owner->free(errors); }

Error DeviceKernel::run(ArrayRef<LaunchArgument> arguments, ArrayRef<int64_t> sizes, void *stream) {
  SmallVector<DeviceAddress> addresses;
  for (auto [expected, given] : zip_equal(kernel.arguments, arguments))
    if (expected.role != KernelArgument::Scalar)
      addresses.push_back(reinterpret_cast<DeviceAddress>(given.data));
  ScalarStorage scalars(kernel, arguments);
  PlanInputs inputs;
  inputs.arguments = addresses;
  inputs.scalars = scalars.addresses();
  inputs.size = [&](StringRef name) -> std::optional<int64_t> {
    for (auto [spec, value] : zip_equal(kernel.checks->sizes(), sizes))
      if (spec.name == name)
        return value;
    return std::nullopt;
  };
  inputs.errors = errors;
  inputs.stream = stream;
  return runPlan(*owner, *module, kernel.plan, inputs);
}

Error DeviceKernel::synchronize(void *stream) {
  if (Error error = owner->synchronize(stream))
    return error;
  if (!errors)
    return Error::success();
  ErrorRecord record;
  if (Error error = owner->copyToHost(&record, errors, sizeof(record)))
    return error;
  if (record.taken)
    if (Error error = owner->fill(errors, 0, sizeof(record)))
      return error;
  return reportOf(kernel, record);
}
