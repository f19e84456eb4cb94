//===- RunFiles.cpp - Inputs and results of tegula run -----------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "driver/run/RunFiles.h"

#include "bench/observe/Observe.h"
#include "driver/InstanceArgs.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <cstring>

using namespace llvm;
using namespace tegula::bench;

namespace tegula {

ExitCode wrongCall(const Twine &message) {
  errs() << "tegula: " << message << '\n';
  return ExitWrongCall;
}

/// NumPy's type for a type of ours: what NumPy lacks travels as raw bytes, 4-bit integers as bytes.
static StringRef npyType(DType type) {
  switch (type) {
  case DType::F64:
    return "f8";
  case DType::F32:
    return "f4";
  case DType::F16:
    return "f2";
  case DType::BF16:
    return "V2";
  case DType::F8E4M3:
  case DType::F8E5M2:
    return "V1";
  case DType::I64:
    return "i8";
  case DType::I32:
    return "i4";
  case DType::I16:
    return "i2";
  case DType::I8:
  case DType::I4:
    return "i1";
  case DType::U64:
    return "u8";
  case DType::U32:
    return "u4";
  case DType::U16:
    return "u2";
  case DType::U8:
  case DType::U4:
    return "u1";
  case DType::Bool:
    return "b1";
  }
  llvm_unreachable("unknown type");
}

/// Whether an array of NumPy's type `type` may be read as `wanted`.
static bool fits(StringRef type, DType wanted) {
  return type == npyType(wanted) || (wanted == DType::BF16 && type == "u2") ||
         ((wanted == DType::F8E4M3 || wanted == DType::F8E5M2) && type == "u1");
}

/// The types of ours that an array may be, the likeliest first.
static std::optional<DType> likelyType(StringRef type) {
  for (DType one :
       {DType::F64, DType::F32, DType::F16, DType::BF16, DType::I64, DType::I32, DType::I16,
        DType::I8, DType::U64, DType::U32, DType::U16, DType::U8, DType::Bool})
    if (npyType(one) == type)
      return one;
  return std::nullopt;
}

static std::optional<Tensor> toTensor(const NpyArray &array, DType type) {
  std::optional<Tensor> tensor = Tensor::make(type, array.shape);
  if (!tensor)
    return tensor;
  if (type == DType::I4 || type == DType::U4) {
    std::vector<double> values;
    for (char byte : array.data)
      values.push_back(type == DType::I4 ? double(int8_t(byte)) : double(uint8_t(byte)));
    tensor->store(values);
  } else if (!array.data.empty()) {
    std::memcpy(tensor->data(), array.data.data(), array.data.size());
  }
  return tensor;
}

bool parsePaths(ArrayRef<std::string> texts, FilesByName &files) {
  for (StringRef text : texts) {
    auto [name, file] = text.split('=');
    if (name.empty() || file.empty()) {
      wrongCall("expected NAME=FILE, got '" + text + "'");
      return false;
    }
    if (!files.try_emplace(name.str(), file.str()).second)
      return givenTwice("a file for '" + name + "'");
  }
  return true;
}

/// The first and last elements, as NumPy would show them.
static void show(StringRef name, const Tensor &tensor) {
  constexpr int64_t head = 6, tail = 3;
  outs() << name << ": " << toString(tensor.dtype()) << shapeText(tensor.shape());
  int64_t count = tensor.elements();
  outs() << (count ? " =" : "");
  for (int64_t i = 0; i < count; ++i) {
    if (count > head + tail && i == head) {
      outs() << " ...";
      i = count - tail;
    }
    if (isFloat(tensor.dtype()) && std::isnan(tensor.real(i)))
      outs() << " nan"; // without the sign that printf shows
    else if (isFloat(tensor.dtype()))
      outs() << ' ' << format("%.6g", tensor.real(i));
    else
      outs() << ' '
             << (tensor.dtype() == DType::U64 ? Twine(uint64_t(tensor.integer(i)))
                                              : Twine(tensor.integer(i)))
                    .str();
  }
  outs() << '\n';
}

ExitCode exitOf(Error error) {
  ExitCode code = ExitInternalError;
  handleAllErrors(
      std::move(error),
      [&](const LaunchError &failure) {
        code = failure.kind == LaunchError::WrongCall     ? ExitWrongCall
               : failure.kind == LaunchError::OutOfMemory ? ExitMissingResource
                                                          : ExitWrongResult;
        errs() << "tegula: " << failure.message << '\n';
      },
      [&](const FailedAssertion &failed) {
        code = ExitWrongResult;
        errs() << "tegula: " << failed.message() << '\n';
      },
      [&](const ErrorInfoBase &other) {
        if (isMissingResource(other))
          code = ExitMissingResource;
        errs() << "tegula: " << other.message() << '\n';
      });
  return code;
}

ExitCode readInputs(const ast::Kernel &kernel, const Signature &signature, const FilesByName &files,
                    Given &given) {
  for (const auto &[name, file] : files) {
    const Signature::Parameter *parameter = signature.find(name);
    if (!parameter || parameter->kind != Signature::Parameter::Tensor) {
      return wrongCall("kernel '" + kernel.name.name + "' has no input tensor '" + name + "'");
    }
    std::string error;
    bool noMemory = false;
    std::optional<NpyArray> array = readNpy(file, error, &noMemory);
    if (!array) {
      errs() << "tegula: " << error << '\n';
      return noMemory ? ExitMissingResource : ExitWrongCall;
    }
    if (parameter->isOptional)
      given.instance.options.givenOptionals.push_back(name);
    if (is_contained(signature.genericTypes, parameter->type) &&
        !given.instance.options.types.contains(parameter->type))
      if (std::optional<DType> type = likelyType(array->type))
        given.instance.options.types[parameter->type] = *checked::parseDType(toString(*type));
    given.arrays[name] = std::move(*array);
  }
  for (const ast::Param &param : kernel.params) {
    auto array = given.arrays.find(param.name.name);
    if (array == given.arrays.end())
      continue;
    const std::vector<int64_t> &shape = array->second.shape;
    given.instance.shapes[param.name.name] = shape;
    const Signature::Parameter &parameter = *signature.find(param.name.name);
    size_t fixed = param.dims.size() - (parameter.ellipsisAt >= 0);
    if (parameter.ellipsisAt >= 0 ? shape.size() < fixed : shape.size() != fixed) {
      return wrongCall("'" + param.name.name + "' has " + Twine(fixed) + " dims" +
                       (parameter.ellipsisAt >= 0 ? " or more" : "") + ", the array in '" +
                       files.at(param.name.name) + "' has shape " + shapeText(shape));
    }
    // Bare dims bind their symbols, but for those that `where` defines; whether all agree is
    // checked at the launch.
    size_t at = 0;
    for (const ast::Dim &dim : param.dims) {
      if (dim.ellipsis) {
        size_t rank = shape.size() - fixed;
        given.instance.ellipsis.assign(shape.begin() + at, shape.begin() + at + rank);
        given.instance.options.ellipsisRank = rank;
        at += rank;
        continue;
      }
      if (dim.expr && dim.expr->kind == ast::Expr::Name &&
          none_of(kernel.sizes,
                  [&](const ast::SizeDef &size) { return size.name.name == dim.expr->name.name; }))
        given.instance.sizes.try_emplace(dim.expr->name.name, shape[at]);
      ++at;
    }
  }
  return ExitSuccess;
}

/// Takes the arrays of files as inputs, in the types that the kernel declares.
static ExitCode takeArrays(const Runner &runner, const Given &given, const FilesByName &inFiles,
                           Launch::Inputs &inputs) {
  for (auto &[name, array] : given.arrays) {
    auto argument =
        find_if(runner.kernel().arguments,
                [&, &name = name](const KernelArgument &one) { return one.name == name; });
    if (argument == runner.kernel().arguments.end())
      continue;
    if (!fits(array.type, argument->dtype))
      return wrongCall("'" + name + "' is " + toString(argument->dtype) + " (NumPy's " +
                       npyType(argument->dtype) + "), the array in '" + inFiles.at(name) + "' is " +
                       array.type);
    std::optional<Tensor> tensor = toTensor(array, argument->dtype);
    if (!tensor) {
      errs() << "tegula: there is no memory for '" << name << "'\n";
      return ExitMissingResource;
    }
    inputs.given.emplace(name, std::move(*tensor));
  }
  return ExitSuccess;
}

ExitCode writeResults(const Runner &runner, ArrayRef<unsigned> written,
                      const std::vector<Tensor> &results, const FilesByName &outFiles) {
  std::string error;
  for (auto [argument, tensor] : zip(written, results)) {
    const std::string &name = runner.kernel().arguments[argument].name;
    auto file = outFiles.find(name);
    if (file == outFiles.end()) {
      if (outFiles.empty())
        show(name, tensor);
      continue;
    }
    std::vector<char> data(tensor.data(), tensor.data() + tensor.bytes());
    if (tensor.dtype() == DType::I4 || tensor.dtype() == DType::U4) {
      data.clear();
      for (int64_t value : tensor.integers())
        data.push_back(static_cast<char>(value));
    }
    if (!writeNpy(file->second, npyType(tensor.dtype()), tensor.shape(), data, error)) {
      errs() << "tegula: cannot write " << error << '\n';
      return ExitMissingResource;
    }
  }
  return ExitSuccess;
}

ExitCode makeLaunch(Runner &runner, const RunCall &call, SizeValues &sizes,
                    std::unique_ptr<Launch> &launch) {
  Launch::Inputs inputs;
  inputs.scalars = call.given.instance.scalars;
  inputs.seed = call.seed;
  if (ExitCode code = takeArrays(runner, call.given, call.inFiles, inputs); code != ExitSuccess)
    return code;
  Expected<SizeValues> found = runner.sizes(call.signature, call.given.instance);
  if (!found)
    return exitOf(found.takeError());
  sizes = std::move(*found);
  // The shapes of inputs that no bare dim has bound.
  for (auto [index, argument] : enumerate(runner.kernel().arguments)) {
    auto tensor = inputs.given.find(argument.name);
    if (tensor == inputs.given.end())
      continue;
    Expected<SmallVector<int64_t>> shape = shapeOf(runner.kernel(), index, sizes);
    if (!shape)
      return exitOf(shape.takeError());
    if (ArrayRef<int64_t>(*shape) != tensor->second.shape())
      return wrongCall("'" + argument.name + "' must have shape " + shapeText(*shape) +
                       ", the array in '" + call.inFiles.at(argument.name) + "' has " +
                       shapeText(tensor->second.shape()));
  }
  Expected<std::unique_ptr<Launch>> made = Launch::make(runner, sizes, std::move(inputs));
  if (!made)
    return exitOf(made.takeError());
  launch = std::move(*made);
  return ExitSuccess;
}

ExitCode findWritten(const Runner &runner, const FilesByName &outFiles,
                     std::vector<unsigned> &written) {
  for (auto [index, argument] : enumerate(runner.kernel().arguments))
    if (argument.role == KernelArgument::Out ||
        (argument.role == KernelArgument::Inout && !argument.isObserved))
      written.push_back(index);
  for (const auto &[name, file] : outFiles)
    if (none_of(written, [&, &name = name](unsigned index) {
          return runner.kernel().arguments[index].name == name;
        }))
      return wrongCall("kernel '" + runner.kernel().name + "' has no output '" + name +
                       "' and no temporary of that name at its top level");
  return ExitSuccess;
}

} // namespace tegula
