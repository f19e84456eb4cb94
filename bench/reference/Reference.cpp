//===- Reference.cpp - A reference compiled by libtorch ---------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "bench/reference/Reference.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <cstdlib>
#include <dlfcn.h>

using namespace llvm;

namespace tegula::bench {
namespace {

constexpr std::pair<DType, TegulaTorchDType> dtypes[] = {
    {DType::F64, TEGULA_TORCH_F64},       {DType::F32, TEGULA_TORCH_F32},
    {DType::F16, TEGULA_TORCH_F16},       {DType::BF16, TEGULA_TORCH_BF16},
    {DType::F8E4M3, TEGULA_TORCH_F8E4M3}, {DType::F8E5M2, TEGULA_TORCH_F8E5M2},
    {DType::I64, TEGULA_TORCH_I64},       {DType::I32, TEGULA_TORCH_I32},
    {DType::I16, TEGULA_TORCH_I16},       {DType::I8, TEGULA_TORCH_I8},
    {DType::U8, TEGULA_TORCH_U8},         {DType::Bool, TEGULA_TORCH_BOOL},
    {DType::U16, TEGULA_TORCH_U16},       {DType::U32, TEGULA_TORCH_U32},
    {DType::U64, TEGULA_TORCH_U64}};

DType fromTorch(TegulaTorchDType type) {
  return find_if(dtypes, [&](auto pair) { return pair.second == type; })->first;
}

/// Takes the message that a failed call left.
std::string takeError(const TegulaTorchApi &api, char *message) {
  std::string text = message ? message : "libtorch gave no reason";
  if (message)
    api.freeString(message);
  return text;
}

void *openLibrary(std::string &error) {
  std::vector<std::string> places;
  if (const char *given = std::getenv("TEGULA_TORCH")) {
    places.push_back(given);
  } else {
    std::string program = sys::fs::getMainExecutable(nullptr, nullptr);
    StringRef folder = sys::path::parent_path(program);
    places.push_back((folder + "/libtegula_torch.so").str());
    places.push_back((folder + "/../lib/libtegula_torch.so").str());
  }
  for (const std::string &place : places) {
    if (!sys::fs::exists(place))
      continue;
    if (void *library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL))
      return library;
    error = std::string("libtegula_torch does not load: ") + dlerror();
    return nullptr;
  }
  error = "libtegula_torch.so is not here (looked at " + join(places, ", ") +
          "); build it with libtorch present, or name it in TEGULA_TORCH";
  return nullptr;
}

} // namespace

const TegulaTorchApi *TorchLibrary::get(std::string &error) {
  void *library = openLibrary(error);
  if (!library)
    return nullptr;
  auto entry = reinterpret_cast<TegulaTorchApiFunction>(dlsym(library, "tegula_torch_api"));
  const TegulaTorchApi *api = entry ? entry() : nullptr;
  if (!api || api->abi != TEGULA_TORCH_ABI) {
    error = "libtegula_torch.so is of another version; build it anew";
    return nullptr;
  }
  return api;
}

std::unique_ptr<Reference> Reference::compile(const TegulaTorchApi &api, const std::string &source,
                                              const std::string &function, std::string &error) {
  std::unique_ptr<Reference> reference(new Reference(api));
  char *message = nullptr;
  reference->function = function;
  reference->program = api.compile(source.c_str(), &message);
  if (!reference->program) {
    error = takeError(api, message);
    return nullptr;
  }
  return reference->describe(error) ? std::move(reference) : nullptr;
}

std::unique_ptr<Reference> Reference::load(const TegulaTorchApi &api, const std::string &path,
                                           std::string &error) {
  std::unique_ptr<Reference> reference(new Reference(api));
  char *message = nullptr;
  reference->function = "forward";
  reference->program = api.load(path.c_str(), &message);
  if (!reference->program) {
    error = takeError(api, message);
    return nullptr;
  }
  return reference->describe(error) ? std::move(reference) : nullptr;
}

Reference::~Reference() {
  if (program)
    api.freeProgram(program);
}

bool Reference::describe(std::string &error) {
  int32_t count = api.parameterCount(program, function.c_str());
  if (count < 0) {
    error = "the reference has no function '" + function + "'";
    return false;
  }
  for (int32_t i = 0; i < count; ++i) {
    names.push_back(api.parameterName(program, function.c_str(), i));
    types.push_back(api.parameterType(program, function.c_str(), i));
  }
  return true;
}

/// The tensor as libtorch takes it; `tensor` must outlive it.
static TegulaTorchValue toValue(const RefTensor &tensor) {
  TegulaTorchValue value = {};
  value.kind = TEGULA_TORCH_TENSOR;
  value.tensor.data = tensor.data;
  auto pair = find_if(dtypes, [&](auto pair) { return pair.first == tensor.dtype; });
  assert(pair != std::end(dtypes) && "4-bit tensors are passed as 8-bit ones");
  value.tensor.dtype = pair->second;
  value.tensor.device = tensor.device;
  value.tensor.rank = tensor.shape.size();
  value.tensor.sizes = tensor.shape.data();
  return value;
}

bool Reference::bind(const RefValues &values, std::vector<TegulaTorchValue> &bound,
                     std::string &error) const {
  for (auto [name, type] : zip(names, types)) {
    auto found = values.find(name);
    if (found == values.end()) {
      error = "the reference's parameter '" + name +
              "' is no tensor, scalar, constant or size of the kernel";
      return false;
    }
    TegulaTorchValue value = {};
    const RefValue &given = found->second;
    if (auto *tensor = std::get_if<RefTensor>(&given)) {
      value = toValue(*tensor);
    } else if (auto *integer = std::get_if<int64_t>(&given)) {
      // An int fills a float parameter, as in Python.
      value.kind = type == "float" ? TEGULA_TORCH_FLOAT : TEGULA_TORCH_INT;
      value.integer = *integer;
      value.real = *integer;
    } else if (auto *real = std::get_if<double>(&given)) {
      value.kind = type == "int" ? TEGULA_TORCH_INT : TEGULA_TORCH_FLOAT;
      value.integer = static_cast<int64_t>(*real);
      value.real = *real;
    } else if (auto *truth = std::get_if<bool>(&given)) {
      value.kind = TEGULA_TORCH_BOOLEAN;
      value.integer = *truth;
    } else {
      auto &list = std::get<std::vector<int64_t>>(given);
      value.kind = TEGULA_TORCH_INTS;
      value.integer = list.size();
      value.integers = list.data();
    }
    bound.push_back(value);
  }
  return true;
}

/// Copies the results of a call, and frees it.
static std::optional<std::vector<Tensor>> takeOutputs(const TegulaTorchApi &api,
                                                      TegulaTorchCall *call, std::string &error) {
  std::vector<Tensor> outputs;
  char *message = nullptr;
  for (int32_t i = 0, count = api.outputCount(call); i < count; ++i) {
    TegulaTorchTensor described;
    api.output(call, i, &described);
    std::optional<Tensor> tensor =
        Tensor::make(fromTorch(described.dtype), ArrayRef(described.sizes, described.rank));
    if (!tensor || api.readOutput(call, i, tensor->data(), tensor->bytes(), &message)) {
      error = tensor ? takeError(api, message) : "there is no memory for the reference's output";
      api.freeCall(call);
      return std::nullopt;
    }
    outputs.push_back(std::move(*tensor));
  }
  api.freeCall(call);
  return outputs;
}

std::optional<std::vector<Tensor>> Reference::run(const RefValues &values, bool float64,
                                                  std::string &error) const {
  std::vector<TegulaTorchValue> bound;
  if (!bind(values, bound, error))
    return std::nullopt;
  char *message = nullptr;
  TegulaTorchCall *call = api.call(program, function.c_str(), bound.data(), bound.size(),
                                   float64 ? TEGULA_TORCH_FLOAT64 : 0, &message);
  if (!call) {
    error = takeError(api, message);
    return std::nullopt;
  }
  return takeOutputs(api, call, error);
}

std::optional<std::vector<double>> Reference::time(ArrayRef<RefValues> sets, unsigned calls,
                                                   std::string &error) const {
  std::vector<TegulaTorchValue> bound;
  for (const RefValues &set : sets)
    if (!bind(set, bound, error))
      return std::nullopt;
  std::vector<double> seconds(calls);
  char *message = nullptr;
  if (api.time(program, function.c_str(), bound.data(), names.size(), sets.size(), calls,
               seconds.data(), &message)) {
    error = takeError(api, message);
    return std::nullopt;
  }
  return seconds;
}

std::unique_ptr<Reference::Graph> Reference::capture(ArrayRef<RefValues> sets, unsigned calls,
                                                     std::string &error) const {
  std::vector<TegulaTorchValue> bound;
  for (const RefValues &set : sets)
    if (!bind(set, bound, error))
      return nullptr;
  char *message = nullptr;
  TegulaTorchGraph *graph = api.capture(program, function.c_str(), bound.data(), names.size(),
                                        sets.size(), calls, &message);
  if (!graph) {
    error = takeError(api, message);
    return nullptr;
  }
  return std::unique_ptr<Graph>(new Graph(api, graph));
}

std::optional<double> Reference::Graph::replay(std::string &error) const {
  char *message = nullptr;
  double seconds = 0;
  if (api.replay(graph, &seconds, &message)) {
    error = takeError(api, message);
    return std::nullopt;
  }
  return seconds;
}

std::unique_ptr<Reference::Tape> Reference::record(const RefValues &values,
                                                   ArrayRef<std::string> wanted,
                                                   ArrayRef<const Tensor *> weights, bool float64,
                                                   std::string &error) const {
  std::vector<TegulaTorchValue> bound, adjoints;
  if (!bind(values, bound, error))
    return nullptr;
  std::vector<uint8_t> isWanted;
  for (const std::string &name : names)
    isWanted.push_back(is_contained(wanted, name));
  for (const Tensor *weight : weights) {
    TegulaTorchValue none = {};
    none.kind = TEGULA_TORCH_NONE;
    adjoints.push_back(weight ? toValue(*weight) : none);
  }
  char *message = nullptr;
  TegulaTorchTape *tape =
      api.record(program, function.c_str(), bound.data(), bound.size(), isWanted.data(),
                 adjoints.data(), adjoints.size(), float64 ? TEGULA_TORCH_FLOAT64 : 0, &message);
  if (!tape) {
    error = takeError(api, message);
    return nullptr;
  }
  return std::unique_ptr<Tape>(new Tape(api, tape));
}

std::optional<std::vector<Tensor>> Reference::Tape::gradients(std::string &error) const {
  char *message = nullptr;
  TegulaTorchCall *call = api.backward(tape, &message);
  if (!call) {
    error = takeError(api, message);
    return std::nullopt;
  }
  return takeOutputs(api, call, error);
}

std::optional<double> Reference::Tape::time(std::string &error) const {
  char *message = nullptr;
  double seconds = 0;
  if (api.timeBackward(tape, &seconds, &message)) {
    error = takeError(api, message);
    return std::nullopt;
  }
  return seconds;
}

} // namespace tegula::bench
