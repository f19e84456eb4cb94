//===- Arguments.cpp - The arguments of one call of the C interface ----------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/capi/Arguments.h"

#include "runtime/observe/Observed.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace tegula::capi {

Error Arguments::refuse(size_t index, const Twine &what) const {
  return make_error<LaunchError>(LaunchError::WrongCall,
                                 ("'" + compiled.arguments[index].name + "' " + what).str());
}

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
  if (given.size() != kernel.arguments.size())
    return make_error<LaunchError>(LaunchError::WrongCall,
                                   ("kernel '" + compiled.name + "' takes " +
                                    Twine(kernel.arguments.size()) + " arguments, " +
                                    Twine(given.size()) + " given")
                                       .str());
  arguments.resize(compiled.arguments.size());
  values.assign(compiled.arguments.size(), nullptr);
  for (auto [index, value] : zip_equal(kernel.arguments, given))
    values[index] = &value;
  for (auto [index, expected] : enumerate(compiled.arguments)) {
    if (expected.isObserved)
      continue;
    const tegula_value &value = *values[index];
    switch (expected.role) {
    case KernelArgument::In:
    case KernelArgument::Inout:
      if (Error error = readTensor(index, value))
        return error;
      dims.append(arguments[index].shape.begin(), arguments[index].shape.end());
      break;
    case KernelArgument::Scalar:
      arguments[index].dtype = expected.dtype;
      arguments[index].number = value.number;
      arguments[index].integer = value.integer;
      if (Error error = takeScalar(expected, arguments[index]))
        return error;
      break;
    case KernelArgument::Out:
      break;
    }
  }
  return Error::success();
}

Error Arguments::bind() {
  // The same dims in other ranks are other shapes; ranks are fixed by the kernel.
  SmallVector<int64_t, 8> unknown; // no size comes from what is observed
  for (auto [index, expected] : enumerate(compiled.arguments)) {
    if (expected.isObserved)
      unknown.resize(std::max(unknown.size(), expected.dims.size()));
    bool isRead = !expected.isObserved &&
                  (expected.role == KernelArgument::In || expected.role == KernelArgument::Inout);
    if (isRead && arguments[index].shape.size() != expected.dims.size())
      return bindSizes(compiled, arguments).takeError();
  }
  for (auto [index, expected] : enumerate(compiled.arguments))
    if (expected.isObserved)
      arguments[index].shape = ArrayRef(unknown).take_front(expected.dims.size());
  binding = kernel.bindings.find(dims);
  bool isNew = !binding;
  if (isNew) {
    Expected<SizeValues> sizes = bindSizes(compiled, arguments);
    if (!sizes)
      return sizes.takeError();
    Expected<Binding> made =
        kernel.device ? kernel.device->bind(*sizes) : tegula::bind(compiled, *sizes);
    if (!made)
      return made.takeError();
    binding = std::make_shared<const Binding>(std::move(*made));
  }
  for (auto [index, expected] : enumerate(compiled.arguments))
    if (expected.isObserved)
      arguments[index].shape = binding->arguments[index].shape;
    else if (expected.role == KernelArgument::In || expected.role == KernelArgument::Inout)
      if (Error error = checkShape(compiled, index, arguments[index], *binding))
        return error;
  if (isNew)
    kernel.bindings.insert(dims, binding);
  return Error::success();
}

Error Arguments::readOutputs() {
  for (auto [index, expected] : enumerate(compiled.arguments)) {
    if (expected.role != KernelArgument::Out)
      continue;
    const tegula_value &given = *values[index];
    if (given.shape) {
      if (Error error = readTensor(index, given))
        return error;
      continue;
    }
    arguments[index].data = given.data;
    arguments[index].dtype = static_cast<DType>(given.dtype);
    arguments[index].shape = binding->arguments[index].shape;
  }
  return Error::success();
}

Error Arguments::makeObserved() {
  memory.resize(compiled.arguments.size());
  for (auto [index, expected] : enumerate(compiled.arguments)) {
    if (!expected.isObserved)
      continue;
    auto bytes = static_cast<size_t>(binding->arguments[index].bytes);
    if (bytes <= maxObservedBytes)
      memory[index].reset(static_cast<char *>(std::calloc(std::max<size_t>(bytes, 1), 1)));
    if (!memory[index])
      return make_error<LaunchError>(
          LaunchError::OutOfMemory,
          ("there is no memory for what 'print' and 'assert' look at, " + Twine(bytes) + " bytes")
              .str());
    arguments[index].data = memory[index].get();
    arguments[index].dtype = expected.dtype;
  }
  return Error::success();
}

std::vector<char> Arguments::observed(unsigned argument) const {
  const char *data = memory[argument].get();
  return std::vector<char>(data, data + binding->arguments[argument].bytes);
}

} // namespace tegula::capi
