//===- Launch.cpp - Binding arguments and running compiled kernels ----------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/Launch.h"
#include "codegen/ptx/Assemble.h"
#include "compiler/CodeClass.h"
#include "support/HostMemory.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include <charconv>
#include <cmath>
#include <cstdlib>

using namespace llvm;
using namespace tegula;

char LaunchError::ID = 0;

bool tegula::isMissingResource(const ErrorInfoBase &error) {
  if (error.isA<CudaError>())
    return static_cast<const CudaError &>(error).isMissing();
  if (error.isA<LaunchError>())
    return static_cast<const LaunchError &>(error).kind == LaunchError::OutOfMemory;
  return error.isA<MissingDeviceError>() || error.isA<MissingToolError>();
}

bool tegula::isMissingResource(const Error &error) {
  bool isMissing = false;
  visitErrors(error, [&](const ErrorInfoBase &one) { isMissing |= isMissingResource(one); });
  return isMissing;
}

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

std::string tegula::shortestText(double value) {
  char text[32];
  std::to_chars_result result = std::to_chars(text, text + sizeof(text), value);
  return std::string(text, result.ptr);
}

Error tegula::wrongScalar(const KernelArgument &expected, const Twine &value) {
  DType type = expected.declared;
  std::string what = "the scalar '" + expected.name + "' is " + toString(type).str();
  if (type == DType::U64)
    what += ", from 0 to " + std::to_string(std::numeric_limits<uint64_t>::max());
  else if (isInteger(type))
    what += ", from " + std::to_string(minValue(type)) + " to " + std::to_string(maxValue(type));
  return refuse(what + ", got " + value);
}

Error tegula::takeScalar(const KernelArgument &expected, LaunchArgument &given) {
  DType type = expected.declared;
  if (isFloat(type)) {
    double rounded = roundToFloat(given.number, type);
    if (std::isfinite(given.number) && !std::isfinite(rounded))
      return wrongScalar(expected, shortestText(given.number));
    given.number = rounded;
  } else if (type == DType::Bool) {
    given.integer = given.integer != 0;
  } else if (type != DType::U64 &&
             (given.integer < minValue(type) || given.integer > maxValue(type))) {
    return wrongScalar(expected, Twine(given.integer));
  }
  return Error::success();
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

Expected<std::unique_ptr<CompiledKernel>> tegula::compileForSizes(const Module &module,
                                                                  const CompileOptions &options) {
  Diagnostics diagnostics(module.sourceManager());
  Expected<std::unique_ptr<CompiledKernel>> compiled = compileKernel(module, options, diagnostics);
  if (!compiled || *compiled)
    return compiled;
  std::string text;
  raw_string_ostream stream(text);
  diagnostics.printText(stream, /*color=*/false);
  return make_error<LaunchError>(LaunchError::WrongCall, StringRef(text).rtrim().str());
}

Expected<Binding> tegula::bind(const CompiledKernel &kernel, ArrayRef<int64_t> sizes) {
  Binding binding;
  binding.sizes.assign(sizes.begin(), sizes.end());
  for (auto [index, argument] : enumerate(kernel.arguments)) {
    Binding::Tensor &tensor = binding.arguments.emplace_back();
    if (argument.role == KernelArgument::Scalar)
      continue;
    Expected<SmallVector<int64_t>> shape = shapeOf(kernel, index, sizes);
    if (!shape)
      return shape.takeError();
    tensor.shape = std::move(*shape);
    std::optional<int64_t> bytes = storageBytes(argument.dtype, tensor.shape);
    if (!bytes)
      return refuse("'" + argument.name + "' has more bytes than 64 bits count");
    tensor.bytes = *bytes;
    tensor.alignment = std::max(1u, bitWidth(argument.dtype) / 8);
    tensor.isWritten =
        argument.role == KernelArgument::Out || argument.role == KernelArgument::Inout;
  }
  for (const KernelTemporary &temporary : kernel.temporaries) {
    std::optional<int64_t> bytes = evaluate(kernel, temporary.bytes, sizes);
    constexpr int64_t most = INT64_MAX - 64;
    if (!bytes || *bytes < 0 || *bytes > most - binding.workspaceBytes)
      return refuse("temporary '" + temporary.name + "' has more bytes than 64 bits count");
    binding.temporaryOffsets.push_back(binding.workspaceBytes);
    binding.workspaceBytes += alignTo(*bytes, 64);
  }
  return binding;
}

Error tegula::checkShape(const CompiledKernel &kernel, unsigned index, const LaunchArgument &given,
                         const Binding &binding) {
  const KernelArgument &expected = kernel.arguments[index];
  if (given.dtype != expected.dtype)
    return refuse("'" + expected.name + "' is " + toString(expected.dtype) + ", the argument is " +
                  toString(given.dtype));
  ArrayRef<int64_t> shape = binding.arguments[index].shape;
  if (given.shape != shape && expected.role != KernelArgument::Scalar)
    return refuse("'" + expected.name + "' has dims " + dimsText(expected) + " = " +
                  shapeText(shape) + ", the argument has shape " + shapeText(given.shape));
  return Error::success();
}

Error tegula::checkMemory(const CompiledKernel &kernel, LaunchData data, const Binding &binding) {
  auto name = [&](size_t index) { return "'" + kernel.arguments[index].name + "'"; };
  for (auto [index, tensor] : enumerate(binding.arguments)) {
    if (!tensor.bytes)
      continue;
    auto begin = reinterpret_cast<uintptr_t>(data[index]);
    if (!begin)
      return refuse(name(index) + " has no memory");
    if (begin % tensor.alignment)
      return refuse(name(index) + " is not aligned to its elements");
    if (begin + tensor.bytes < begin)
      return refuse(name(index) + " reaches beyond the address space");
  }
  // What is written overlaps nothing. There are few of them.
  for (auto [written, output] : enumerate(binding.arguments)) {
    if (!output.isWritten || !output.bytes)
      continue;
    auto begin = reinterpret_cast<uintptr_t>(data[written]);
    for (auto [index, tensor] : enumerate(binding.arguments)) {
      auto other = reinterpret_cast<uintptr_t>(data[index]);
      if (index == written || !tensor.bytes || other >= begin + output.bytes ||
          begin >= other + tensor.bytes)
        continue;
      auto [first, second] = std::minmax(written, index);
      return refuse(name(first) + " and " + name(second) + " overlap in memory");
    }
  }
  return Error::success();
}

Error tegula::checkArguments(const CompiledKernel &kernel, ArrayRef<LaunchArgument> arguments,
                             const Binding &binding) {
  SmallVector<void *, 16> data;
  for (auto [index, given] : enumerate(arguments)) {
    if (Error error = checkShape(kernel, index, given, binding))
      return error;
    data.push_back(given.data);
  }
  return checkMemory(kernel, data, binding);
}

namespace {
/// Arguments as LaunchData.
class ArgumentData {
public:
  ArgumentData(const CompiledKernel &kernel, ArrayRef<LaunchArgument> arguments)
      : scalars(arguments.size(), 0) {
    for (auto [expected, given, scalar] : zip_equal(kernel.arguments, arguments, scalars)) {
      if (expected.role != KernelArgument::Scalar) {
        data.push_back(given.data);
        continue;
      }
      if (isFloat(expected.dtype))
        storeFloat(expected.dtype, &scalar, 0, given.number);
      else
        storeInteger(expected.dtype, &scalar, 0, given.integer);
      data.push_back(&scalar);
    }
  }
  operator LaunchData() const { return data; }

private:
  SmallVector<uint64_t, 16> scalars;
  SmallVector<void *, 16> data;
};

/// LaunchData in the two lists that code takes.
template <typename Address> struct SplitData {
  SplitData(const CompiledKernel &kernel, LaunchData data) {
    for (auto [expected, given] : zip_equal(kernel.arguments, data)) {
      if (expected.role == KernelArgument::Scalar)
        scalars.push_back(given);
      else
        tensors.push_back((Address)given);
    }
  }
  SmallVector<Address, 16> tensors;
  SmallVector<const void *, 8> scalars;
};
} // namespace

/// `h[2, 3]`, for the element at an offset in row-major order.
static std::string elementText(const CompiledKernel &kernel, const KernelErrorSite &site,
                               ArrayRef<int64_t> sizes, int64_t offset) {
  SmallVector<int64_t> at(site.dims.size());
  for (size_t k = at.size(); k-- > 0;) {
    int64_t dim = std::max<int64_t>(evaluate(kernel, site.dims[k], sizes).value_or(1), 1);
    at[k] = offset % dim;
    offset /= dim;
  }
  return at.empty() ? site.tensor : site.tensor + shapeText(at);
}

static Error reportOf(const CompiledKernel &kernel, ArrayRef<int64_t> sizes,
                      const ErrorRecord &record) {
  switch (record.taken) {
  case ErrorRecord::None:
    return Error::success();
  case ErrorRecord::OutOfMemory:
    return make_error<LaunchError>(LaunchError::OutOfMemory, "no memory for temporaries");
  case ErrorRecord::BadAccess:
    break;
  }
  const KernelErrorSite &site = kernel.errorSites[record.site];
  if (!site.tensor.empty())
    return make_error<LaunchError>(
        LaunchError::WrongResult,
        site.place + ": " + elementText(kernel, site, sizes, record.value) + " " + site.text);
  if (site.isDefect)
    return createStringError("internal error: " + site.place + ": " + site.text +
                             " leaves its tensor: a subscript is " + Twine(record.value));
  return make_error<LaunchError>(
      LaunchError::WrongResult,
      site.place + ": " + site.text + " is outside: a subscript is " +
          (site.isUnsigned ? utostr(record.value) : itostr(record.value)));
}

Error tegula::runOnHost(const CompiledKernel &kernel, ArrayRef<LaunchArgument> arguments,
                        const Binding &binding, ThreadPool &pool, void *workspace,
                        const int *stop) {
  return runOnHost(kernel, LaunchData(ArgumentData(kernel, arguments)), binding, pool, workspace,
                   stop);
}

Error tegula::runOnHost(const CompiledKernel &kernel, LaunchData data, const Binding &binding,
                        ThreadPool &pool, void *workspace, const int *stop) {
  SplitData<void *> split(kernel, data);
  struct Free {
    void operator()(void *memory) const { std::free(memory); }
  };
  std::unique_ptr<void, Free> owned;
  if (binding.workspaceBytes && !workspace) {
    owned.reset(allocateAligned(64, binding.workspaceBytes));
    if (!owned)
      return make_error<LaunchError>(LaunchError::OutOfMemory,
                                     "no memory for temporaries of " +
                                         std::to_string(binding.workspaceBytes) + " bytes");
    workspace = owned.get();
  }
  for (int64_t offset : binding.temporaryOffsets)
    split.tensors.push_back(static_cast<char *>(workspace) + offset);
  HostLaunch run(pool, stop);
  if (!run.run(kernel.entry, split.tensors.data(), binding.sizes.data(), split.scalars.data()))
    return make_error<LaunchError>(LaunchError::Stopped,
                                   "the launch was stopped: its results are not complete");
  return reportOf(kernel, binding.sizes, run.errors);
}

Error tegula::runEmulated(const CompiledKernel &kernel, ArrayRef<LaunchArgument> arguments,
                          const Binding &binding, const EmulatorOptions &options) {
  EmulatorInputs inputs;
  for (auto [expected, given, bound] : zip_equal(kernel.arguments, arguments, binding.arguments))
    if (expected.role != KernelArgument::Scalar)
      inputs.arguments.push_back({given.data, uint64_t(bound.bytes),
                                  expected.role == KernelArgument::In ? BufferContents::Constant
                                  : expected.role == KernelArgument::Inout
                                      ? BufferContents::Defined
                                      : BufferContents::Undefined});
  ArgumentData data(kernel, arguments);
  SplitData<void *> split(kernel, data);
  inputs.scalars = split.scalars;
  inputs.size = [&](StringRef name) -> std::optional<int64_t> {
    for (auto [spec, value] : zip_equal(kernel.checks->sizes(), binding.sizes))
      if (spec.name == name)
        return value;
    return std::nullopt;
  };
  ErrorRecord errors;
  inputs.errors = &errors;
  if (Error error = emulatePlan(*kernel.emulated, kernel.plan, inputs, options))
    return error;
  return reportOf(kernel, binding.sizes, errors);
}

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

Expected<std::unique_ptr<DeviceKernel>> DeviceKernel::load(const CompiledKernel &kernel,
                                                           std::shared_ptr<CudaDevice> device) {
  Expected<std::shared_ptr<CudaModule>> module = device->load(kernel.cubin);
  if (!module)
    return handleErrors(module.takeError(), [&](std::unique_ptr<CudaError> error) -> Error {
      if (error->kind == CudaError::WrongCode)
        error->message += ": " + device->info().name + " with a driver for CUDA " +
                          std::to_string(device->info().driverVersion / 1000) + "." +
                          std::to_string(device->info().driverVersion % 1000 / 10) +
                          " does not run what " + kernel.assembler + " makes for " + kernel.target;
      return Error(std::move(error));
    });
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

Expected<Binding> DeviceKernel::bind(ArrayRef<int64_t> sizes) {
  Expected<Binding> binding = tegula::bind(kernel, sizes);
  if (!binding)
    return binding.takeError();
  StringMap<int64_t> byName;
  for (auto [spec, value] : zip_equal(kernel.checks->sizes(), sizes))
    byName[spec.name] = value;
  CudaDevice::Scope scope(*owner);
  Expected<std::unique_ptr<PreparedPlan>> plan =
      PreparedPlan::make(*module, kernel.plan, std::move(byName));
  if (!plan)
    return plan.takeError();
  binding->workspaceBytes = (*plan)->workspaceBytes();
  binding->plan = std::move(*plan);
  if (specializer) {
    Expected<SpecialKernel *> special = specialFor(sizes);
    if (!special)
      return special.takeError();
    binding->special = *special;
    if (*special) {
      Expected<Binding> own = (*special)->loaded->bind(sizes);
      if (!own)
        return own.takeError();
      binding->workspaceBytes = std::max(binding->workspaceBytes, own->workspaceBytes);
      binding->specialBinding = std::make_shared<Binding>(std::move(*own));
    }
  }
  return binding;
}

/// Null where there are enough of them; kernels that are invariant to sizes have one for each
/// class.
Expected<SpecialKernel *> DeviceKernel::specialFor(ArrayRef<int64_t> sizes) {
  std::lock_guard<std::mutex> lock(mutex);
  bool isFree = kernel.invariantSizes.empty();
  auto isFor = [&](const SpecialKernel &known) {
    return all_of(zip_equal(kernel.checks->sizes(), known.sizes, sizes), [&](const auto &one) {
      const auto &[spec, own, size] = one;
      return codeClass(kernel, spec.name, own) == codeClass(kernel, spec.name, size);
    });
  };
  for (const std::unique_ptr<SpecialKernel> &known : specials)
    if (isFor(*known))
      return known.get();
  if (isFree && specials.size() == maxSpecializations)
    return nullptr;
  auto made = std::make_unique<SpecialKernel>();
  made->sizes.assign(sizes.begin(), sizes.end());
  Expected<std::unique_ptr<CompiledKernel>> compiled = specializer(sizes);
  if (!compiled)
    return compiled.takeError();
  made->compiled = std::move(*compiled);
  Expected<std::unique_ptr<DeviceKernel>> loaded = load(*made->compiled, owner);
  if (!loaded)
    return loaded.takeError();
  made->loaded = std::move(*loaded);
  specials.push_back(std::move(made));
  return specials.back().get();
}

Error DeviceKernel::run(ArrayRef<LaunchArgument> arguments, const Binding &binding, void *stream,
                        DeviceAddress workspace, LaunchWatch *watch) {
  return run(LaunchData(ArgumentData(kernel, arguments)), binding, stream, workspace, nullptr,
             watch);
}

static Error misaligned(const CompiledKernel &kernel, LaunchData data) {
  auto [argument, address] = *find_if(zip_equal(kernel.arguments, data), [&](const auto &one) {
    const auto &[argument, address] = one;
    return argument.role != KernelArgument::Scalar &&
           reinterpret_cast<DeviceAddress>(address) % kernel.alignment;
  });
  return refuse("'" + argument.name + "' is not aligned to the " + Twine(kernel.alignment) +
                " bytes for which the code was made");
}

Error DeviceKernel::run(LaunchData data, const Binding &binding, void *stream,
                        DeviceAddress workspace, StreamMemory *kept, LaunchWatch *watch) {
  SplitData<DeviceAddress> split(kernel, data);
  auto isAligned = [&](unsigned alignment) {
    return none_of(split.tensors, [&](DeviceAddress address) { return address % alignment; });
  };
  bool mayUseOwnCode = kernel.invariantSizes.empty();
  if (binding.special && (isAligned(specialAlignment) || !mayUseOwnCode))
    return binding.special->loaded->run(data, *binding.specialBinding, stream, workspace, kept,
                                        watch);
  if (kernel.alignment && !isAligned(kernel.alignment))
    return misaligned(kernel, data);
  PlanInputs inputs;
  inputs.arguments = split.tensors;
  inputs.scalars = split.scalars;
  inputs.errors = errors;
  inputs.stream = stream;
  inputs.workspace = workspace;
  inputs.watch = watch;
  CudaDevice::Scope scope(*owner);
  if (workspace || !binding.workspaceBytes)
    return binding.plan->run(inputs);
  auto runIn = [&](DeviceAddress memory) {
    inputs.workspace = memory;
    return binding.plan->run(inputs);
  };
  return kept ? kept->run(stream, runIn)
              : StreamMemory::runOnce(stream, binding.workspaceBytes, runIn);
}

Error DeviceKernel::synchronize(void *stream) {
  if (Error error = owner->synchronize(stream))
    return error;
  {
    std::lock_guard<std::mutex> lock(mutex);
    for (const std::unique_ptr<SpecialKernel> &special : specials)
      if (Error error = special->loaded->synchronize(stream))
        return error;
  }
  if (!errors)
    return Error::success();
  ErrorRecord record;
  if (Error error = owner->copyToHost(&record, errors, sizeof(record)))
    return error;
  if (record.taken)
    if (Error error = owner->fill(errors, 0, sizeof(record)))
      return error;
  return reportOf(kernel, {}, record); // stamps are the host's alone
}
