//===- Arguments.cpp - The arguments of one call of the C interface ----------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/capi/Arguments.h"

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
    Expected<Binding> made =
        kernel.device ? kernel.device->bind(*sizes) : tegula::bind(compiled, *sizes);
    if (!made)
      return made.takeError();
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
  return Error::success();
}

} // namespace tegula::capi
