//===- Runner.cpp - A compiled kernel and the memory of its launches -----------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "bench/Runner.h"
#include "codegen/ptx/Ptx.h"
#include "compiler/CodeClass.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <chrono>
#include <cmath>
#include <cstring>

using namespace llvm;

namespace tegula::bench {

static Error refuse(LaunchError::Kind kind, const Twine &message) {
  return make_error<LaunchError>(kind, message.str());
}

Expected<std::unique_ptr<Runner>> Runner::make(const Module &module, CompileOptions options,
                                               Diagnostics &diagnostics) {
  std::shared_ptr<CudaDevice> device;
  if (options.target != "cpu" && options.target != "emulate") {
    Expected<std::shared_ptr<CudaDevice>> opened = CudaDevice::open();
    if (!opened)
      return opened.takeError();
    device = *opened;
    options.device = device->info().name;
    if (options.target == "cuda") {
      options.target = deviceTarget(device->info().major, device->info().minor);
      if (!isDeviceTarget(options.target))
        return make_error<MissingDeviceError>("the device " + device->info().name + " is a " +
                                              options.target + ", expected " +
                                              expectedDeviceTargets());
    }
  }
  std::unique_ptr<Runner> runner(new Runner(module, options));
  if (options.target != "cpu")
    options.stopAfter = std::min(options.stopAfter, Phase::Lower);
  Expected<std::unique_ptr<CompiledKernel>> compiled = compileKernel(module, options, diagnostics);
  if (!compiled)
    return handleErrors(compiled.takeError(), [](const WrongOptionError &wrong) {
      return refuse(LaunchError::WrongCall, wrong.message());
    });
  if (!*compiled)
    return nullptr;
  runner->compiled = std::move(*compiled);
  runner->device = std::move(device);
  return std::move(runner);
}

std::unique_ptr<Runner> Runner::withChoice(const ScheduleChoice &choice) const {
  std::unique_ptr<Runner> runner(new Runner(module, options));
  runner->options.choice = choice;
  runner->compiled = compiled;
  runner->device = device;
  runner->setThreads(threads->size());
  return runner;
}

Expected<Runner::Specialized *> Runner::specialize(ArrayRef<int64_t> sizes) {
  std::vector<int64_t> key = sizes.vec();
  for (auto [spec, value] : zip_equal(compiled->checks->sizes(), key))
    value = codeClass(*compiled, spec.name, value);
  Specialized &entry = specialized[key];
  if (entry.compiled)
    return &entry;
  CompileOptions forSizes = options;
  for (auto [spec, value] : zip(compiled->checks->sizes(), sizes))
    forSizes.sizes[spec.name] = value;
  forSizes.alignment = 16; // allocations have more
  Expected<std::unique_ptr<CompiledKernel>> made = compileForSizes(module, forSizes);
  if (!made)
    return made.takeError();
  if (device) {
    auto loaded = DeviceKernel::load(**made, device);
    if (!loaded)
      return loaded.takeError();
    entry.loaded = std::move(*loaded);
  }
  entry.compiled = std::move(*made);
  return &entry;
}

Expected<SizeValues> Runner::sizes(const Signature &signature, const Instance &instance) const {
  // Arguments of the compiled kernel are the parameters that were passed, without constants.
  auto valueOf = [&](unsigned argument, unsigned dim, StringRef size) -> std::optional<int64_t> {
    auto given = instance.sizes.find(size.str());
    if (given != instance.sizes.end())
      return given->second;
    const std::string &name = compiled->arguments[argument].name;
    if (auto shape = instance.shapes.find(name); shape != instance.shapes.end())
      return shape->second[dim];
    const Signature::Parameter *parameter = signature.find(name);
    if (parameter && parameter->ellipsisAt >= 0) {
      unsigned at = parameter->ellipsisAt, rank = instance.ellipsis.size();
      if (dim >= at && dim < at + rank)
        return instance.ellipsis[dim - at];
    }
    return std::nullopt;
  };
  std::vector<std::string> lacking;
  std::map<std::pair<unsigned, unsigned>, int64_t> dims;
  std::map<std::string, int64_t> known = instance.sizes;
  for (const SizeSpec &size : compiled->checks->sizes()) {
    auto valueOfSize = [&](const IndexVar &var) -> std::optional<int64_t> {
      auto found = var.isSymbol() ? known.find(var.name().str()) : known.end();
      return found == known.end() ? std::nullopt : std::optional(found->second);
    };
    std::optional<int64_t> value;
    if (!size.boundBy) {
      value = size.definition.evaluate(valueOfSize);
    } else {
      auto [argument, dim] = *size.boundBy;
      value = valueOf(argument, dim, size.name);
      // `2*P` binds P by its extent, which follows from P here.
      const IndexExpr &shown = compiled->arguments[argument].dims[dim];
      if (!value)
        value = shown.evaluate(valueOfSize);
      if (value)
        dims[*size.boundBy] = *value;
      else
        for (const IndexVar &var : shown.variables()) {
          const Signature::Parameter *parameter =
              signature.find(compiled->arguments[argument].name);
          bool isRun = shown == IndexExpr::symbol(size.name) && parameter &&
                       parameter->ellipsisAt >= 0 && dim >= unsigned(parameter->ellipsisAt) &&
                       dim < parameter->ellipsisAt + compiled->arguments[argument].dims.size() + 1 -
                                 parameter->dims;
          std::string name = isRun ? "..." : var.name().str();
          if (!valueOfSize(var) && !is_contained(lacking, name))
            lacking.push_back(name);
        }
    }
    if (value)
      known.try_emplace(size.name, *value);
  }
  if (!lacking.empty())
    return refuse(LaunchError::WrongCall, "no value for " + join(lacking, ", ") + ": give -d " +
                                              join(lacking, "=... -d ") + "=...");
  for (const auto &[name, value] : instance.sizes)
    if (none_of(compiled->checks->sizes(), [&](const SizeSpec &size) { return size.name == name; }))
      return refuse(LaunchError::WrongCall,
                    "the kernel has no size, constant, type or scalar '" + name + "'");
  SizeValues values;
  std::optional<GuardFailure> failure = compiled->checks->run(
      [&](unsigned argument, unsigned dim) { return dims.at({argument, dim}); }, values);
  if (failure)
    return refuse(LaunchError::WrongCall, failure->message);
  for (const auto &[name, value] : instance.sizes)
    if (*sizeNamed(name, values) != value)
      return refuse(LaunchError::WrongCall, name + " is " + Twine(*sizeNamed(name, values)) +
                                                " by the kernel's `where`, not " + Twine(value));
  return values;
}

std::optional<int64_t> Runner::sizeNamed(StringRef name, ArrayRef<int64_t> sizes) const {
  for (auto [spec, value] : zip(compiled->checks->sizes(), sizes))
    if (spec.name == name)
      return value;
  return std::nullopt;
}

/// A scalar of a launch from what was written; what its type does not hold is refused.
static Error readScalar(const KernelArgument &expected, const ScalarSetting &value,
                        LaunchArgument &argument) {
  if (isFloat(expected.declared)) {
    argument.number = std::visit([](auto held) { return static_cast<double>(held); }, value);
  } else if (const auto *real = std::get_if<double>(&value)) {
    double beyond = expected.declared == DType::U64 ? 0x1p64 : 0x1p63;
    bool isRounded = std::fabs(*real) < beyond && *real == std::trunc(*real);
    return wrongScalar(expected,
                       shortestText(*real) +
                           (isRounded ? ", which was computed in f64: write its digits" : ""));
  } else if (const auto *large = std::get_if<uint64_t>(&value)) {
    if (expected.declared != DType::U64)
      return wrongScalar(expected, Twine(*large));
    argument.integer = static_cast<int64_t>(*large);
  } else {
    argument.integer = std::get<int64_t>(value);
    if (expected.declared == DType::U64 && argument.integer < 0)
      return wrongScalar(expected, Twine(argument.integer));
  }
  return takeScalar(expected, argument);
}

/// Integers of 4 bits as bytes, which references read.
Error Launch::unpackArgument(size_t index, const KernelArgument &expected, ArrayRef<int64_t> shape,
                             const Tensor &host) {
  unpacked[index] = Tensor::make(expected.dtype == DType::I4 ? DType::I8 : DType::U8, shape);
  if (!unpacked[index])
    return refuse(LaunchError::OutOfMemory, "there is no memory for '" + expected.name + "'");
  unpacked[index]->store(host.doubles());
  if (runner.isDevice()) {
    Tensor &bytes = *unpacked[index];
    Expected<DeviceAddress> address = runner.cudaDevice()->allocate(bytes.bytes());
    if (!address)
      return address.takeError();
    unpackedAddresses[index] = *address;
    if (Error error = runner.cudaDevice()->copyToDevice(*address, bytes.data(), bytes.bytes()))
      return error;
  }
  return Error::success();
}

Expected<std::unique_ptr<Launch>> Launch::make(Runner &runner, ArrayRef<int64_t> sizes,
                                               Inputs inputs) {
  const CompiledKernel &kernel = runner.kernel();
  Expected<Binding> binding = bind(kernel, sizes);
  if (!binding)
    return binding.takeError();
  std::unique_ptr<Launch> launch(new Launch(runner, std::move(*binding)));
  launch->seed = inputs.seed;
  if (runner.kernel().isDevice()) {
    Expected<Runner::Specialized *> code = runner.specialize(sizes);
    if (!code)
      return code.takeError();
    launch->code = *code;
    if (launch->code->loaded) {
      Expected<Binding> withLaunches = launch->code->loaded->bind(sizes);
      if (!withLaunches)
        return withLaunches.takeError();
      launch->binding = std::move(*withLaunches);
    }
  }
  auto valueOf = [&](StringRef name) -> std::optional<double> {
    if (std::optional<int64_t> size = runner.sizeNamed(name, sizes))
      return *size;
    auto scalar = inputs.scalars.find(name.str());
    if (scalar != inputs.scalars.end())
      return std::visit([](auto value) { return static_cast<double>(value); }, scalar->second);
    for (const checked::Constant &constant : kernel.constants)
      if (constant.name == name) {
        if (auto *integer = std::get_if<int64_t>(&constant.value))
          return *integer;
        if (auto *real = std::get_if<double>(&constant.value))
          return *real;
      }
    return std::nullopt;
  };
  size_t count = kernel.arguments.size();
  launch->arguments.resize(count);
  launch->tensors.resize(count);
  launch->working.resize(count);
  launch->unpacked.resize(count);
  launch->unpackedAddresses.resize(count);
  launch->addresses.resize(count);
  for (auto [index, expected] : enumerate(kernel.arguments)) {
    LaunchArgument &argument = launch->arguments[index];
    argument.dtype = expected.dtype;
    if (expected.role == KernelArgument::Scalar) {
      auto given = inputs.scalars.find(expected.name);
      if (given == inputs.scalars.end())
        return refuse(LaunchError::WrongCall, "the scalar '" + expected.name +
                                                  "' is not given: -p " + expected.name + "=...");
      if (Error error = readScalar(expected, given->second, argument))
        return std::move(error);
      if (isFloat(expected.declared))
        launch->scalarValues[expected.name] = argument.number;
      else
        launch->scalarValues[expected.name] = argument.integer;
      continue;
    }
    ArrayRef<int64_t> shape = launch->binding.arguments[index].shape;
    argument.shape = shape;
    auto given = inputs.given.find(expected.name);
    std::optional<Tensor> tensor;
    if (given != inputs.given.end()) {
      tensor = std::move(given->second);
    } else {
      tensor = Tensor::make(expected.dtype, shape);
      if (!tensor || (expected.isObserved && tensor->bytes() > maxObservedBytes))
        return refuse(LaunchError::OutOfMemory,
                      "there is no memory for " +
                          (expected.isObserved ? "what 'print' and 'assert' look at, a tensor"
                                               : "'" + expected.name + "'") +
                          " of shape " + shapeText(shape));
      if (expected.isObserved) {
        std::memset(tensor->data(), 0, tensor->bytes());
      } else if (expected.role != KernelArgument::Out) {
        const InputSpec *spec = nullptr;
        if (inputs.specs)
          for (const InputSpec &one : *inputs.specs)
            if (one.name == expected.name)
              spec = &one;
        std::string error;
        if (!fill(*tensor, expected.name, spec, inputs.seed, valueOf, error))
          return refuse(LaunchError::WrongCall, "input '" + expected.name + "': " + error);
      }
    }
    launch->tensors[index] = std::move(tensor);
    Tensor &host = *launch->tensors[index];
    if (runner.isDevice()) {
      Expected<DeviceAddress> address = runner.cudaDevice()->allocate(host.bytes());
      if (!address)
        return address.takeError();
      launch->addresses[index] = *address;
      argument.data = reinterpret_cast<void *>(*address);
      if (expected.role == KernelArgument::In)
        if (Error error = launch->upload(index, host))
          return std::move(error);
    } else if (expected.role == KernelArgument::Inout) {
      launch->working[index] = Tensor::make(expected.dtype, shape);
      if (!launch->working[index])
        return refuse(LaunchError::OutOfMemory, "there is no memory for '" + expected.name + "'");
      argument.data = launch->working[index]->data();
    } else {
      argument.data = host.data();
    }
    if ((expected.dtype == DType::I4 || expected.dtype == DType::U4) &&
        expected.role != KernelArgument::Out) {
      if (Error error = launch->unpackArgument(index, expected, shape, host))
        return std::move(error);
    }
  }
  if (Error error = checkArguments(kernel, launch->arguments, launch->binding))
    return std::move(error);
  if (Error error = launch->prepare())
    return std::move(error);
  return std::move(launch);
}

Launch::~Launch() {
  if (runner.isDevice())
    for (DeviceAddress address :
         llvm::concat<DeviceAddress>(addresses, unpackedAddresses, MutableArrayRef(workspace)))
      if (address)
        runner.cudaDevice()->free(address);
}

Error Launch::upload(unsigned argument, const Tensor &from) {
  return runner.cudaDevice()->copyToDevice(addresses[argument], from.data(), from.bytes());
}

Error Launch::prepare() {
  for (auto [index, expected] : enumerate(runner.kernel().arguments)) {
    if (expected.role == KernelArgument::Inout) {
      const Tensor &before = *tensors[index];
      if (runner.isDevice()) {
        if (Error error = upload(index, before))
          return error;
      } else if (before.bytes()) {
        std::memcpy(working[index]->data(), before.data(), before.bytes());
      }
    } else if (expected.role == KernelArgument::Out) {
      // All bits set: NaN in every float type, -1 in every signed integer.
      Tensor &tensor = *tensors[index];
      if (runner.isDevice()) {
        if (Error error = runner.cudaDevice()->fill(addresses[index], 0xff, tensor.bytes()))
          return error;
      } else {
        std::memset(tensor.data(), 0xff, tensor.bytes());
      }
    }
  }
  if (workspace)
    if (Error error = runner.cudaDevice()->fill(workspace, 0xff, binding.workspaceBytes))
      return error;
  return runner.isDevice() ? runner.cudaDevice()->synchronize() : Error::success();
}

Expected<double> Launch::run(LaunchWatch *watch) {
  if (runner.isDevice()) {
    Expected<double> microseconds = runner.cudaDevice()->time(
        [&] { return code->loaded->run(arguments, binding, nullptr, 0, watch); });
    if (!microseconds)
      return microseconds.takeError();
    if (Error error = code->loaded->synchronize())
      return std::move(error);
    return *microseconds * 1e-6;
  }
  auto start = std::chrono::steady_clock::now();
  EmulatorOptions emulator;
  emulator.seed = seed;
  Error error = code ? runEmulated(*code->compiled, arguments, binding, emulator)
                     : runOnHost(runner.kernel(), arguments, binding, runner.pool());
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (error)
    return std::move(error);
  return seconds;
}

Error Launch::queue(void *stream) {
  if (!workspace && binding.workspaceBytes) {
    Expected<DeviceAddress> allocated = runner.cudaDevice()->allocate(binding.workspaceBytes);
    if (!allocated)
      return allocated.takeError();
    workspace = *allocated;
  }
  return code->loaded->run(arguments, binding, stream, workspace);
}

std::vector<unsigned> Launch::resultArguments() const {
  std::vector<unsigned> outputs, inouts;
  for (auto [index, expected] : enumerate(runner.kernel().arguments)) {
    if (expected.role == KernelArgument::Out)
      outputs.push_back(index);
    if (expected.role == KernelArgument::Inout)
      inouts.push_back(index);
  }
  return outputs.empty() ? inouts : outputs;
}

Expected<std::vector<Tensor>> Launch::read(ArrayRef<unsigned> wanted) {
  std::vector<Tensor> results;
  for (unsigned index : wanted) {
    std::optional<Tensor> copy = Tensor::make(arguments[index].dtype, arguments[index].shape);
    if (!copy)
      return refuse(LaunchError::OutOfMemory, "there is no memory for a copy of the results");
    if (runner.isDevice()) {
      if (Error error =
              runner.cudaDevice()->copyToHost(copy->data(), addresses[index], copy->bytes()))
        return std::move(error);
    } else if (copy->bytes()) {
      std::memcpy(copy->data(), arguments[index].data, copy->bytes());
    }
    results.push_back(std::move(*copy));
  }
  return results;
}

Expected<Observed> Launch::observed() {
  return Observed::read(kernel(), binding.sizes,
                        [&](unsigned argument) -> Expected<std::vector<char>> {
                          Expected<std::vector<Tensor>> tensors = read(argument);
                          if (!tensors)
                            return tensors.takeError();
                          const char *data = tensors->front().data();
                          return std::vector<char>(data, data + tensors->front().bytes());
                        });
}

RefValues Launch::refValues() const {
  RefValues values;
  const CompiledKernel &kernel = runner.kernel();
  for (auto [size, value] : zip(kernel.checks->sizes(), binding.sizes))
    values.emplace(size.name, value);
  for (const checked::Constant &constant : kernel.constants)
    std::visit([&](const auto &value) { values.insert_or_assign(constant.name, RefValue(value)); },
               constant.value);
  for (auto [index, expected] : enumerate(kernel.arguments)) {
    if (expected.role == KernelArgument::Scalar)
      std::visit(
          [&](auto value) {
            if constexpr (std::is_same_v<decltype(value), uint64_t>)
              values.insert_or_assign(
                  expected.name, static_cast<int64_t>(value)); // its bits, as libtorch keeps them
            else
              values.insert_or_assign(expected.name, value);
          },
          scalarValues.at(expected.name));
    if (expected.role != KernelArgument::In && expected.role != KernelArgument::Inout)
      continue;
    if (unpacked[index] && runner.isDevice())
      values.insert_or_assign(expected.name,
                              RefTensor(reinterpret_cast<void *>(unpackedAddresses[index]),
                                        unpacked[index]->dtype(), unpacked[index]->shape(), 0));
    else if (unpacked[index])
      values.insert_or_assign(expected.name, RefTensor(*unpacked[index]));
    else
      values.insert_or_assign(expected.name,
                              RefTensor(arguments[index].data, expected.dtype,
                                        tensors[index]->shape(), runner.isDevice() ? 0 : -1));
  }
  return values;
}

KernelWork::SizeOf Launch::sizeOf() const {
  return [this](StringRef name) { return runner.sizeNamed(name, binding.sizes); };
}

double Launch::operations() const { return kernel().work.operations(sizeOf()); }
double Launch::depth() const { return kernel().work.depth(sizeOf()); }

int64_t Launch::bytes() const {
  int64_t total = 0;
  for (auto [index, expected] : enumerate(runner.kernel().arguments))
    if (tensors[index])
      total += tensors[index]->bytes() * (expected.role == KernelArgument::Inout ? 2 : 1);
  return total;
}

DeviceFlush::~DeviceFlush() {
  if (address)
    device->free(address);
}

Error DeviceFlush::run() {
  uint64_t bytes = 2 * static_cast<uint64_t>(device->info().l2Bytes);
  if (!address) {
    Expected<DeviceAddress> allocated = device->allocate(bytes);
    if (!allocated)
      return allocated.takeError();
    address = *allocated;
  }
  if (Error error = device->fill(address, ++round, bytes))
    return error;
  return device->synchronize();
}

} // namespace tegula::bench
