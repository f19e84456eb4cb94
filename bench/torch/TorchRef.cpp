//===- TorchRef.cpp - References run by libtorch ------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The only file that includes libtorch's headers. It is linked to libtorch_cpu and libc10 alone;
// libtorch_cuda, which needs CUDA's libraries, is opened when a CUDA device is first asked for.
// libtorch reports errors by exceptions: none leaves this file.
//
//===----------------------------------------------------------------------===//
#include "bench/reference/TorchRef.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/interned_strings.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/Event.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/jit/api/compilation_unit.h>
#include <torch/csrc/jit/frontend/resolver.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/import.h>
#include <torch/jit.h>
#include <torch/version.h>

#include <chrono>
#include <cstring>
#include <dlfcn.h>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

using c10::IValue;

struct TegulaTorchProgram {
  std::shared_ptr<torch::jit::CompilationUnit> unit; // of text
  std::optional<torch::jit::Module> module;          // of a .pt file
  std::map<std::string, std::vector<std::pair<std::string, std::string>>> parameters;

  torch::jit::Function *find(const std::string &name) {
    if (unit)
      return unit->find_function(c10::QualifiedName(name));
    std::optional<torch::jit::Method> method = module->find_method(name);
    return method ? &method->function() : nullptr;
  }
};

struct TegulaTorchCall {
  std::vector<at::Tensor> outputs;
};

namespace {

char *copyString(const std::string &text) {
  char *copy = static_cast<char *>(std::malloc(text.size() + 1));
  if (copy)
    std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

/// Runs `body`; where it throws, stores what it says in `error` and returns `failed`.
template <typename Result, typename Body>
Result guarded(char **error, Result failed, const Body &body) {
  try {
    return body();
  } catch (const c10::Error &e) {
    *error = copyString(e.what_without_backtrace());
  } catch (const std::exception &e) {
    *error = copyString(e.what());
  }
  return failed;
}

/// Operators one by one, as Python's eager mode runs them: no graph rewriting.
struct OneByOne {
  torch::jit::GraphOptimizerEnabledGuard optimizer{false};
  bool executor = torch::jit::getExecutorMode().exchange(false);
  bool profiling = torch::jit::getProfilingMode().exchange(false);
  ~OneByOne() {
    torch::jit::getExecutorMode() = executor;
    torch::jit::getProfilingMode() = profiling;
  }
};

/// Eager mode without gradients.
struct EagerMode {
  c10::InferenceMode inference;
  OneByOne operators;
};

/// Eager mode that records operators for autograd.
struct RecordingMode {
  c10::AutoGradMode gradients{true};
  OneByOne operators;
};

/// New tensors of unnamed type are float64 while a float64 reference runs.
struct DefaultDType {
  caffe2::TypeMeta before = c10::get_default_dtype();
  explicit DefaultDType(bool wide) {
    if (wide)
      c10::set_default_dtype(caffe2::TypeMeta::Make<double>());
  }
  ~DefaultDType() { c10::set_default_dtype(before); }
};

constexpr std::pair<TegulaTorchDType, at::ScalarType> dtypes[] = {
    {TEGULA_TORCH_F64, at::kDouble},
    {TEGULA_TORCH_F32, at::kFloat},
    {TEGULA_TORCH_F16, at::kHalf},
    {TEGULA_TORCH_BF16, at::kBFloat16},
    {TEGULA_TORCH_F8E4M3, at::kFloat8_e4m3fn},
    {TEGULA_TORCH_F8E5M2, at::kFloat8_e5m2},
    {TEGULA_TORCH_I64, at::kLong},
    {TEGULA_TORCH_I32, at::kInt},
    {TEGULA_TORCH_I16, at::kShort},
    {TEGULA_TORCH_I8, at::kChar},
    {TEGULA_TORCH_U8, at::kByte},
    {TEGULA_TORCH_BOOL, at::kBool},
    {TEGULA_TORCH_U16, at::kUInt16},
    {TEGULA_TORCH_U32, at::kUInt32},
    {TEGULA_TORCH_U64, at::kUInt64}};

at::ScalarType toTorch(TegulaTorchDType type) {
  for (auto [ours, torchs] : dtypes)
    if (ours == type)
      return torchs;
  TORCH_CHECK(false, "unknown dtype ", static_cast<int>(type));
}

TegulaTorchDType fromTorch(at::ScalarType type) {
  for (auto [ours, torchs] : dtypes)
    if (torchs == type)
      return ours;
  TORCH_CHECK(false, "an output has dtype ", type, ", which Tegula does not have");
}

int32_t cudaDevices() {
  static const bool loaded = [] {
    // Registers the CUDA operators; beside libtorch_cpu, so found by this library's own search
    // path.
    return dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) != nullptr;
  }();
  if (!loaded)
    return 0;
  try {
    return at::detail::getCUDAHooks().deviceCount();
  } catch (const std::exception &) {
    return 0; // a driver too old, or none
  }
}

at::Tensor toTensor(const TegulaTorchTensor &tensor) {
  TORCH_CHECK(tensor.device < cudaDevices() || tensor.device < 0, "libtorch finds no CUDA device ",
              tensor.device);
  at::IntArrayRef sizes(tensor.sizes, tensor.rank);
  auto options =
      at::TensorOptions(toTorch(tensor.dtype))
          .device(tensor.device < 0 ? at::Device(at::kCPU) : at::Device(at::kCUDA, tensor.device));
  // An empty tensor may have no memory.
  for (int64_t size : sizes)
    if (size == 0)
      return at::empty(sizes, options);
  if (!tensor.strides)
    return at::from_blob(tensor.data, sizes, options);
  return at::from_blob(tensor.data, sizes, at::IntArrayRef(tensor.strides, tensor.rank), options);
}

IValue toValue(const TegulaTorchValue &value, uint32_t flags) {
  switch (value.kind) {
  case TEGULA_TORCH_TENSOR: {
    at::Tensor tensor = toTensor(value.tensor);
    if ((flags & TEGULA_TORCH_FLOAT64) && tensor.is_floating_point())
      tensor = tensor.to(at::kDouble);
    return tensor;
  }
  case TEGULA_TORCH_INT:
    return value.integer;
  case TEGULA_TORCH_FLOAT:
    return value.real;
  case TEGULA_TORCH_BOOLEAN:
    return value.integer != 0;
  case TEGULA_TORCH_INTS:
    return std::vector<int64_t>(value.integers, value.integers + value.integer);
  case TEGULA_TORCH_NONE:
    return IValue();
  }
  TORCH_CHECK(false, "unknown kind of value ", static_cast<int>(value.kind));
}

/// A function and the arguments of one call.
struct Bound {
  torch::jit::Function *function;
  std::vector<IValue> arguments;

  IValue run() const {
    std::vector<IValue> stack = arguments;
    function->run(stack);
    TORCH_CHECK(stack.size() == 1, "the reference returns nothing");
    return std::move(stack.front());
  }
};

Bound bind(TegulaTorchProgram *program, const char *name, const TegulaTorchValue *arguments,
           int32_t count, uint32_t flags) {
  Bound bound;
  bound.function = program->find(name);
  TORCH_CHECK(bound.function, "the reference has no function ", name);
  if (program->module)
    bound.arguments.push_back(program->module->_ivalue());
  for (int32_t i = 0; i < count; ++i)
    bound.arguments.push_back(toValue(arguments[i], flags));
  size_t wanted = bound.function->getSchema().arguments().size();
  TORCH_CHECK(bound.arguments.size() == wanted, name, " takes ", wanted, " arguments, ",
              bound.arguments.size(), " given");
  return bound;
}

void flatten(const IValue &value, std::vector<at::Tensor> &outputs) {
  if (value.isTensor()) {
    outputs.push_back(value.toTensor());
  } else if (value.isTuple()) {
    for (const IValue &element : value.toTupleRef().elements())
      flatten(element, outputs);
  } else if (value.isTensorList()) {
    for (const at::Tensor &element : value.toTensorVector())
      outputs.push_back(element);
  } else if (value.isDouble()) {
    outputs.push_back(at::scalar_tensor(value.toDouble(), at::kDouble));
  } else if (value.isInt()) {
    outputs.push_back(at::scalar_tensor(value.toInt(), at::kLong));
  } else if (value.isBool()) {
    outputs.push_back(at::scalar_tensor(value.toBool(), at::kBool));
  } else {
    TORCH_CHECK(false, "the reference returns a ", value.tagKind(), ", not tensors");
  }
}

const std::vector<std::pair<std::string, std::string>> *parameters(TegulaTorchProgram *program,
                                                                   const char *name) {
  auto known = program->parameters.find(name);
  if (known != program->parameters.end())
    return &known->second;
  torch::jit::Function *function = program->find(name);
  if (!function)
    return nullptr;
  auto &list = program->parameters[name];
  for (const c10::Argument &argument : function->getSchema().arguments())
    if (!(program->module && list.empty() && argument.name() == "self"))
      list.emplace_back(argument.name(), argument.type()->annotation_str());
  return &list;
}

TegulaTorchProgram *compile(const char *source, char **error) {
  return guarded<TegulaTorchProgram *>(error, nullptr, [&] {
    auto program = std::make_unique<TegulaTorchProgram>();
    program->unit = torch::jit::compile(source);
    return program.release();
  });
}

TegulaTorchProgram *load(const char *path, char **error) {
  return guarded<TegulaTorchProgram *>(error, nullptr, [&] {
    auto program = std::make_unique<TegulaTorchProgram>();
    program->module = torch::jit::load(path);
    program->module->eval();
    return program.release();
  });
}

TegulaTorchCall *call(TegulaTorchProgram *program, const char *function,
                      const TegulaTorchValue *arguments, int32_t count, uint32_t flags,
                      char **error) {
  return guarded<TegulaTorchCall *>(error, nullptr, [&] {
    EagerMode eager;
    DefaultDType wide(flags & TEGULA_TORCH_FLOAT64);
    auto result = std::make_unique<TegulaTorchCall>();
    flatten(bind(program, function, arguments, count, flags).run(), result->outputs);
    for (at::Tensor &output : result->outputs) {
      fromTorch(output.scalar_type()); // refuses what we do not have
      output = output.detach();
    }
    return result.release();
  });
}

int32_t output(const TegulaTorchCall *call, int32_t index, TegulaTorchTensor *tensor) {
  if (index < 0 || static_cast<size_t>(index) >= call->outputs.size())
    return -1;
  const at::Tensor &from = call->outputs[index];
  tensor->data = from.numel() ? from.data_ptr() : nullptr;
  tensor->dtype = fromTorch(from.scalar_type());
  tensor->device = from.is_cuda() ? from.get_device() : -1;
  tensor->rank = static_cast<int32_t>(from.dim());
  tensor->sizes = from.sizes().data();
  tensor->strides = from.strides().data();
  return 0;
}

int32_t readOutput(const TegulaTorchCall *call, int32_t index, void *to, size_t bytes,
                   char **error) {
  return guarded(error, -1, [&] {
    c10::InferenceMode inference;
    at::Tensor from = call->outputs.at(index).to(at::kCPU).contiguous();
    TORCH_CHECK(from.nbytes() == bytes, "output ", index, " has ", from.nbytes(), " bytes, not ",
                bytes);
    if (bytes)
      std::memcpy(to, from.data_ptr(), bytes);
    return 0;
  });
}

/// Seconds that `body` takes: on a CUDA device (-1: the host) those between two events. What it
/// returns is freed outside of the clock.
template <typename Body> double secondsOf(int32_t device, const Body &body) {
  if (device < 0) {
    auto start = std::chrono::steady_clock::now();
    auto result = body();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  c10::impl::VirtualGuardImpl guard(at::kCUDA);
  c10::Stream stream = guard.getStream(at::Device(at::kCUDA, device));
  c10::Event begin(at::kCUDA, c10::EventFlag::BACKEND_DEFAULT);
  c10::Event end(at::kCUDA, c10::EventFlag::BACKEND_DEFAULT);
  begin.record(stream);
  auto result = body();
  end.record(stream);
  end.synchronize();
  return begin.elapsedTime(end) * 1e-3;
}

/// The CUDA device of the arguments; -1: the host.
int32_t deviceOf(const TegulaTorchValue *arguments, int32_t count) {
  int32_t device = -1;
  for (int32_t i = 0; i < count; ++i)
    if (arguments[i].kind == TEGULA_TORCH_TENSOR)
      device = std::max(device, arguments[i].tensor.device);
  return device;
}

int32_t timeCalls(TegulaTorchProgram *program, const char *function,
                  const TegulaTorchValue *arguments, int32_t count, int32_t sets, int32_t calls,
                  double *seconds, char **error) {
  return guarded(error, -1, [&] {
    EagerMode eager;
    std::vector<Bound> bound;
    for (int32_t set = 0; set < sets; ++set)
      bound.push_back(bind(program, function, arguments + set * count, count, 0));
    int32_t device = deviceOf(arguments, count);
    for (int32_t i = 0; i < calls; ++i)
      seconds[i] = secondsOf(device, [&] { return bound[i % sets].run(); });
    return 0;
  });
}

/// The driver's functions for graphs, by the names of cuda.h: libtorch's own class for them cannot
/// be compiled without CUDA's headers.
struct GraphDriver {
  int (*beginCapture)(void *stream, int mode) = nullptr;
  int (*endCapture)(void *stream, void **graph) = nullptr;
  int (*instantiate)(void **executable, void *graph, unsigned long long flags) = nullptr;
  int (*launch)(void *executable, void *stream) = nullptr;
  int (*destroyExecutable)(void *executable) = nullptr;
  int (*destroyGraph)(void *graph) = nullptr;

  static const GraphDriver &get() {
    static const GraphDriver driver = [] {
      GraphDriver made;
      void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
      TORCH_CHECK(library, "libcuda.so.1 was not found");
      auto bind = [&](auto &function, const char *name) {
        function =
            reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
        TORCH_CHECK(function, "the CUDA driver has no ", name);
      };
      bind(made.beginCapture, "cuStreamBeginCapture_v2");
      bind(made.endCapture, "cuStreamEndCapture");
      bind(made.instantiate, "cuGraphInstantiateWithFlags");
      bind(made.launch, "cuGraphLaunch");
      bind(made.destroyExecutable, "cuGraphExecDestroy");
      bind(made.destroyGraph, "cuGraphDestroy");
      return made;
    }();
    return driver;
  }
  static void check(int code, const char *what) {
    TORCH_CHECK(!code, what, " gives error ", code, " of CUDA");
  }
};

/// Makes a stream libtorch's current one for a while.
struct CurrentStream {
  c10::impl::VirtualGuardImpl guard{at::kCUDA};
  c10::Stream before;
  explicit CurrentStream(c10::Stream stream) : before(guard.exchangeStream(stream)) {}
  ~CurrentStream() { guard.exchangeStream(before); }
};
} // namespace

/// What the calls need beside their arguments comes from libtorch's caching allocator and goes back
/// to it while they are captured: replays use it again in the same order, and nothing else runs on
/// this stream.
struct TegulaTorchGraph {
  std::vector<Bound> bound; // keeps what it reads
  c10::Stream stream;
  void *executable = nullptr;
  ~TegulaTorchGraph() {
    if (executable)
      GraphDriver::get().destroyExecutable(executable);
  }
};

namespace {
TegulaTorchGraph *capture(TegulaTorchProgram *program, const char *function,
                          const TegulaTorchValue *arguments, int32_t count, int32_t sets,
                          int32_t calls, char **error) {
  return guarded(error, static_cast<TegulaTorchGraph *>(nullptr), [&] {
    EagerMode eager;
    const GraphDriver &driver = GraphDriver::get();
    int32_t device = deviceOf(arguments, count);
    TORCH_CHECK(device >= 0, "a graph takes tensors on a CUDA device");
    std::vector<Bound> bound;
    for (int32_t set = 0; set < sets; ++set)
      bound.push_back(bind(program, function, arguments + set * count, count, 0));
    c10::impl::VirtualGuardImpl guard(at::kCUDA);
    c10::Stream stream = guard.getStreamFromGlobalPool(at::Device(at::kCUDA, device));
    auto made = std::make_unique<TegulaTorchGraph>(TegulaTorchGraph{std::move(bound), stream});
    CurrentStream current(stream);
    // Workspaces, plans and memory that the first calls make are there when the capture begins.
    for (int32_t round = 0; round < 3; ++round)
      for (const Bound &one : made->bound)
        one.run();
    stream.synchronize();
    void *handle = stream.native_handle(), *graph = nullptr;
    constexpr int relaxed = 2; // allocations are no part of the graph
    GraphDriver::check(driver.beginCapture(handle, relaxed), "cuStreamBeginCapture");
    try {
      for (int32_t i = 0; i < calls; ++i)
        made->bound[i % sets].run();
    } catch (...) {
      if (!driver.endCapture(handle, &graph) && graph)
        driver.destroyGraph(graph);
      throw;
    }
    GraphDriver::check(driver.endCapture(handle, &graph), "cuStreamEndCapture");
    int code = driver.instantiate(&made->executable, graph, 0);
    driver.destroyGraph(graph);
    GraphDriver::check(code, "cuGraphInstantiate");
    return made.release();
  });
}

int32_t replay(TegulaTorchGraph *graph, double *seconds, char **error) {
  return guarded(error, -1, [&] {
    c10::Event begin(at::kCUDA, c10::EventFlag::BACKEND_DEFAULT);
    c10::Event end(at::kCUDA, c10::EventFlag::BACKEND_DEFAULT);
    begin.record(graph->stream);
    GraphDriver::check(GraphDriver::get().launch(graph->executable, graph->stream.native_handle()),
                       "cuGraphLaunch");
    end.record(graph->stream);
    end.synchronize();
    *seconds = begin.elapsedTime(end) * 1e-3;
    return 0;
  });
}

} // namespace

/// One call with autograd's graph of it, which stays when gradients are taken.
struct TegulaTorchTape {
  std::vector<at::Tensor> inputs, outputs, weights;
  int32_t device = -1;
  bool isWide = false; // in float64

  std::vector<at::Tensor> play() const {
    RecordingMode recording;
    DefaultDType wide(isWide);
    return torch::autograd::grad(outputs, inputs, weights, /*retain_graph=*/true,
                                 /*create_graph=*/false, /*allow_unused=*/true);
  }
};

namespace {
TegulaTorchTape *record(TegulaTorchProgram *program, const char *function,
                        const TegulaTorchValue *arguments, int32_t count, const uint8_t *wanted,
                        const TegulaTorchValue *weights, int32_t outputs, uint32_t flags,
                        char **error) {
  return guarded<TegulaTorchTape *>(error, nullptr, [&] {
    RecordingMode recording;
    DefaultDType wide(flags & TEGULA_TORCH_FLOAT64);
    auto tape = std::make_unique<TegulaTorchTape>();
    tape->isWide = flags & TEGULA_TORCH_FLOAT64;
    tape->device = deviceOf(arguments, count);
    Bound bound = bind(program, function, arguments, count, flags);
    size_t first = bound.arguments.size() - count; // behind a module's self
    for (int32_t i = 0; i < count; ++i) {
      if (!wanted[i])
        continue;
      at::Tensor leaf = bound.arguments[first + i].toTensor().detach().requires_grad_();
      bound.arguments[first + i] = leaf;
      tape->inputs.push_back(leaf);
    }
    std::vector<at::Tensor> results;
    flatten(bound.run(), results);
    TORCH_CHECK(results.size() == static_cast<size_t>(outputs), "the reference has ",
                results.size(), " results, the kernel ", outputs);
    for (int32_t i = 0; i < outputs; ++i) {
      if (weights[i].kind != TEGULA_TORCH_TENSOR || !results[i].requires_grad())
        continue;
      tape->outputs.push_back(results[i]);
      tape->weights.push_back(toTensor(weights[i].tensor).to(results[i].options()));
    }
    TORCH_CHECK(!tape->outputs.empty(), "autograd finds no result that depends on its inputs");
    return tape.release();
  });
}

TegulaTorchCall *backward(TegulaTorchTape *tape, char **error) {
  return guarded<TegulaTorchCall *>(error, nullptr, [&] {
    auto result = std::make_unique<TegulaTorchCall>();
    result->outputs = tape->play();
    for (size_t i = 0; i < result->outputs.size(); ++i) {
      at::Tensor &gradient = result->outputs[i];
      gradient = gradient.defined() ? gradient.detach() : at::zeros_like(tape->inputs[i].detach());
    }
    return result.release();
  });
}

int32_t timeBackward(TegulaTorchTape *tape, double *seconds, char **error) {
  return guarded(error, -1, [&] {
    *seconds = secondsOf(tape->device, [&] { return tape->play(); });
    return 0;
  });
}

const TegulaTorchApi api = {
    TEGULA_TORCH_ABI,
    [] { return TORCH_VERSION; },
    cudaDevices,
    [] { return static_cast<int32_t>(at::get_num_threads()); },
    [](int32_t threads) { at::set_num_threads(threads); },
    [](char *string) { std::free(string); },
    compile,
    load,
    [](TegulaTorchProgram *program) { delete program; },
    [](TegulaTorchProgram *program, const char *function) {
      auto *list = parameters(program, function);
      return list ? static_cast<int32_t>(list->size()) : -1;
    },
    [](TegulaTorchProgram *program, const char *function, int32_t index) {
      return (*parameters(program, function))[index].first.c_str();
    },
    [](TegulaTorchProgram *program, const char *function, int32_t index) {
      return (*parameters(program, function))[index].second.c_str();
    },
    call,
    [](const TegulaTorchCall *call) { return static_cast<int32_t>(call->outputs.size()); },
    output,
    readOutput,
    [](TegulaTorchCall *call) { delete call; },
    timeCalls,
    capture,
    replay,
    [](TegulaTorchGraph *graph) { delete graph; },
    record,
    backward,
    timeBackward,
    [](TegulaTorchTape *tape) { delete tape; }};

} // namespace

const TegulaTorchApi *tegula_torch_api(void) { return &api; }
