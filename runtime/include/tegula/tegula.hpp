//===- tegula.hpp - The C++ interface of Tegula -------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// tegula.h for C++20: handles that free themselves, tensors over std::span, and exceptions. Only a
// header: it adds no symbol to libtegula, and all that tegula.h says holds.
//
//   tegula::Context context;
//   tegula::Program program("kernel scale(x: f32[N], s: f32) -> (y: f32[N]) { y[i] = s * x[i] }");
//   tegula::Kernel scale(context, program);
//   std::vector<float> x(8, 1.0f), y(8);
//   scale(tegula::tensor(x, {8}), tegula::tensor(y, {8}), 2.0);
//
// Arguments are those of tegula_argument, in its order: inputs and inouts as declared, outputs,
// scalars. Shapes and strides count elements. A tensor is a view: its memory is the caller's and
// must live until the launch is done, which on a device is when its stream is.
//
// Errors are exceptions, subclasses of tegula::Error. What is thrown before the library is asked
// (a span that is too small for its shape, memory that is const where the kernel writes) is a
// CallError too. Threads: as tegula.h says of the handles.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_HPP
#define TEGULA_HPP

#include "tegula.h"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace tegula {

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

/// What went wrong; `what()` is the text that `tegula check` prints.
class Error : public std::runtime_error {
public:
  Error(tegula_status status, const std::string &text, std::string json = {})
      : std::runtime_error(text), code(status), records(std::move(json)) {}

  tegula_status status() const { return code; }
  /// The diagnostics as JSON Lines (docs/diagnostics.md); empty where there are none.
  const std::string &json() const { return records; }

private:
  tegula_status code;
  std::string records;
};

/// TEGULA_WRONG_PROGRAM.
struct ProgramError : Error {
  using Error::Error;
};
/// TEGULA_WRONG_CALL: a name, shape, dtype, or a guard.
struct CallError : Error {
  using Error::Error;
};
/// TEGULA_MISSING: memory, a device, a driver or an assembler.
struct MissingError : Error {
  using Error::Error;
};
/// TEGULA_WRONG_RESULT: a data-dependent subscript left its tensor.
struct ResultError : Error {
  using Error::Error;
};
/// TEGULA_STOPPED.
struct StoppedError : Error {
  using Error::Error;
};
/// TEGULA_INTERNAL: a defect of Tegula.
struct InternalError : Error {
  using Error::Error;
};

namespace detail {

/// Receives the message of one call.
class Message {
public:
  Message() = default;
  Message(const Message &) = delete;
  Message &operator=(const Message &) = delete;
  ~Message() { tegula_message_free(message); }

  tegula_message **receive() { return &message; }
  std::string text() const { return tegula_message_text(message); }

  /// Throws unless the status is TEGULA_OK.
  void check(tegula_status status) const {
    if (status == TEGULA_OK)
      return;
    std::string json = tegula_message_json(message);
    switch (status) {
    case TEGULA_WRONG_PROGRAM:
      throw ProgramError(status, text(), json);
    case TEGULA_WRONG_CALL:
      throw CallError(status, text(), json);
    case TEGULA_MISSING:
      throw MissingError(status, text(), json);
    case TEGULA_WRONG_RESULT:
      throw ResultError(status, text(), json);
    case TEGULA_STOPPED:
      throw StoppedError(status, text(), json);
    case TEGULA_OK:
    case TEGULA_INTERNAL:
      break;
    }
    throw InternalError(status, text(), json);
  }

private:
  tegula_message *message = nullptr;
};

inline CallError wrongCall(const std::string &text) { return {TEGULA_WRONG_CALL, text}; }

inline std::string orEmpty(const char *text) { return text ? text : ""; }

} // namespace detail

//===----------------------------------------------------------------------===//
// Element types
//===----------------------------------------------------------------------===//

/// Bits of the types that C++20 has no arithmetic for. Two 4-bit integers share a byte; they are
/// passed by Tensor::raw.
struct Float16 {
  uint16_t bits = 0;
};
struct BFloat16 {
  uint16_t bits = 0;
};
struct Float8E4M3 {
  uint8_t bits = 0;
};
struct Float8E5M2 {
  uint8_t bits = 0;
};

template <typename T>
inline constexpr tegula_dtype dtypeOf = std::same_as<T, double>       ? TEGULA_F64
                                        : std::same_as<T, float>      ? TEGULA_F32
                                        : std::same_as<T, Float16>    ? TEGULA_F16
                                        : std::same_as<T, BFloat16>   ? TEGULA_BF16
                                        : std::same_as<T, Float8E4M3> ? TEGULA_F8E4M3
                                        : std::same_as<T, Float8E5M2> ? TEGULA_F8E5M2
                                        : std::same_as<T, bool>       ? TEGULA_BOOL
                                        : !std::integral<T>           ? TEGULA_NO_DTYPE
                                        : std::is_signed_v<T> ? (sizeof(T) == 8   ? TEGULA_I64
                                                                 : sizeof(T) == 4 ? TEGULA_I32
                                                                 : sizeof(T) == 2 ? TEGULA_I16
                                                                                  : TEGULA_I8)
                                        : sizeof(T) == 8      ? TEGULA_U64
                                        : sizeof(T) == 4      ? TEGULA_U32
                                        : sizeof(T) == 2      ? TEGULA_U16
                                                              : TEGULA_U8;

/// A type that a tensor can have as its element.
template <typename T>
concept Element = dtypeOf<std::remove_const_t<T>> != TEGULA_NO_DTYPE;

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

using Shape = std::vector<int64_t>;

/// A view of a row-major contiguous tensor.
class Tensor {
public:
  /// As many elements as the shape has, no fewer.
  template <Element T> Tensor(std::span<T> elements, Shape dims) : shape(std::move(dims)) {
    value.data = const_cast<std::remove_const_t<T> *>(elements.data());
    value.dtype = dtypeOf<std::remove_const_t<T>>;
    isConst = std::is_const_v<T>;
    uint64_t count = 1;
    bool isEmpty = false, isTooLarge = false;
    for (int64_t dim : shape) {
      if (dim < 0)
        throw detail::wrongCall("a dim of a tensor is " + std::to_string(dim));
      isEmpty |= dim == 0;
      isTooLarge |= dim > 0 && count > std::numeric_limits<uint64_t>::max() / uint64_t(dim);
      count *= uint64_t(dim);
    }
    if (!isEmpty && (isTooLarge || elements.size() < count))
      throw detail::wrongCall("a tensor's span has " + std::to_string(elements.size()) +
                              " elements, its shape more");
  }

  /// Memory whose size is not known here: of a device, or of 4-bit integers.
  static Tensor raw(void *data, tegula_dtype dtype, Shape dims) {
    return Tensor(data, dtype, std::move(dims), /*isReadOnly=*/false);
  }
  static Tensor raw(const void *data, tegula_dtype dtype, Shape dims) {
    return Tensor(const_cast<void *>(data), dtype, std::move(dims), /*isReadOnly=*/true);
  }

private:
  friend class Argument;
  Tensor(void *data, tegula_dtype dtype, Shape dims, bool isReadOnly)
      : shape(std::move(dims)), isConst(isReadOnly) {
    value.data = data;
    value.dtype = dtype;
  }

  tegula_value value = {};
  Shape shape;
  bool isConst = false;
};

/// A tensor over a vector, an array or a span that outlives it.
template <std::ranges::contiguous_range Range>
  requires std::ranges::borrowed_range<Range> && std::ranges::sized_range<Range>
Tensor tensor(Range &&range, Shape shape) {
  using T = std::remove_reference_t<std::ranges::range_reference_t<Range>>;
  return {std::span<T>(std::ranges::data(range), std::ranges::size(range)), std::move(shape)};
}

/// A tensor, or a scalar: a number for one of a float type, an integer or bool for one of another.
class Argument {
public:
  Argument(Tensor tensor)
      : value(tensor.value), shape(std::move(tensor.shape)), isTensor(true),
        isConst(tensor.isConst) {}
  template <typename T>
    requires std::is_arithmetic_v<T>
  Argument(T number) {
    value.number = double(number);
    if constexpr (std::is_integral_v<T>)
      value.integer = int64_t(number);
    isInteger = std::is_integral_v<T>;
  }
  /// In the place of an output for Kernel::infer and Prepared, which only ask for shapes.
  static Argument output() {
    Argument argument(0);
    argument.isTensor = argument.isOutput = true;
    return argument;
  }

private:
  friend class Kernel;
  friend class Prepared;
  tegula_value value = {};
  Shape shape;
  bool isTensor = false, isOutput = false, isConst = false, isInteger = false;
};

//===----------------------------------------------------------------------===//
// Context and program
//===----------------------------------------------------------------------===//

/// The threads of CPU launches, and a device.
class Context {
public:
  explicit Context(unsigned threads = 0, int device = 0) {
    tegula_context_options options = {};
    options.struct_bytes = sizeof options;
    options.num_threads = threads;
    options.device = device;
    tegula_context *made = nullptr;
    detail::Message message;
    message.check(tegula_context_create(&options, &made, message.receive()));
    handle.reset(made);
  }

  const tegula_context *get() const { return handle.get(); }

private:
  struct Free {
    void operator()(tegula_context *context) const { tegula_context_free(context); }
  };
  std::unique_ptr<tegula_context, Free> handle;
};

/// A parsed file.
class Program {
public:
  /// Throws ProgramError for what tegula_parse refuses; compiling and `check` find the rest.
  explicit Program(std::string_view text, const std::string &fileName = "<input>") {
    tegula_program *made = nullptr;
    detail::Message message;
    message.check(
        tegula_parse(text.data(), text.size(), fileName.c_str(), &made, message.receive()));
    handle.reset(made);
  }

  /// Throws ProgramError where the program is wrong; gives warnings and remarks as text.
  std::string check(const std::string &kernel = {}) const {
    detail::Message message;
    message.check(
        tegula_check(handle.get(), kernel.empty() ? nullptr : kernel.c_str(), message.receive()));
    return message.text();
  }

  /// Names, in the order of the text.
  std::vector<std::string> kernels() const {
    std::vector<std::string> names;
    for (size_t i = 0; i < tegula_num_kernels(handle.get()); ++i)
      names.push_back(tegula_kernel_name(handle.get(), i));
    return names;
  }

  const tegula_program *get() const { return handle.get(); }

private:
  struct Free {
    void operator()(tegula_program *program) const { tegula_program_free(program); }
  };
  std::unique_ptr<tegula_program, Free> handle;
};

//===----------------------------------------------------------------------===//
// Kernel
//===----------------------------------------------------------------------===//

/// What launches look at (docs/checked.md).
enum class Observe {
  Nothing = TEGULA_OBSERVE_NOTHING,
  Statements = TEGULA_OBSERVE_STATEMENTS, ///< what `print` and `assert` of the program say
  Nan = TEGULA_OBSERVE_NAN,               ///< and the first NaN that an equation makes
  Finite = TEGULA_OBSERVE_FINITE          ///< and the first NaN or infinity
};

/// tegula_compile_options, with strings that it owns.
struct CompileOptions {
  std::string kernel;         ///< empty: the program's last one
  std::string target = "cpu"; ///< "cpu", "cuda", or for PTX alone "sm_90a"
  /// Constants, types and sizes by name: {"eps", "1e-3"}, {"T", "f16"}, {"N", "1024"}.
  std::vector<std::pair<std::string, std::string>> settings;
  unsigned ellipsisRank = 0;
  std::vector<std::string> optionals; ///< tensors and scalars with a default that launches pass
  std::vector<std::string> stages;    ///< what Kernel::stage shall give
  std::string precision;              ///< "tf32", "conv_tf32", "bf16"; empty: "f32"
  bool checked = false, anySizes = false, dependentLaunches = false, tuned = false;
  Observe observe = Observe::Nothing; ///< CPU
};

/// What the last observed launch that was given it has seen: nothing where none has run.
class Observed {
public:
  bool isGiven() const { return handle != nullptr; }
  /// The lines of `print`, as `tegula run --checked` shows them.
  std::string text() const { return tegula_observed_text(handle.get()); }
  /// One JSON object, schema `tegula.observed`.
  std::string json() const { return tegula_observed_json(handle.get()); }

private:
  friend class Kernel;
  friend class Prepared;
  /// Lets one launch fill it. What it held before is gone, whatever becomes of the launch.
  class Filling {
  public:
    explicit Filling(Observed *observed) : into(observed) {
      if (into)
        into->handle.reset();
    }
    Filling(const Filling &) = delete;
    Filling &operator=(const Filling &) = delete;
    ~Filling() {
      if (into)
        into->handle.reset(made);
    }
    tegula_observed **receive() { return into ? &made : nullptr; }

  private:
    Observed *into;
    tegula_observed *made = nullptr;
  };
  struct Free {
    void operator()(tegula_observed *observed) const { tegula_observed_free(observed); }
  };
  std::unique_ptr<tegula_observed, Free> handle;
};

/// Where and how one launch runs.
struct LaunchOptions {
  void *stream = nullptr;              ///< CUDA: of cudaStream_t
  std::span<std::byte> workspace = {}; ///< for temporaries, 256-byte aligned
  const int *stop = nullptr;           ///< CPU: ends the launch once it is not 0
  /// Of a kernel that is compiled with `observe`: receives what the launch has seen, also where an
  /// assertion fails, which is a ResultError.
  Observed *observed = nullptr;
  unsigned printPoints = 0; ///< that each `print` shows at most; 0: 20
};

/// What follows from the shapes of inputs.
struct Inferred {
  std::vector<Shape> outputs; ///< in the order of the outputs
  size_t workspaceBytes = 0;
};

class Kernel {
public:
  Kernel(const Context &context, const Program &program, const CompileOptions &options = {}) {
    std::vector<tegula_setting> settings;
    for (const auto &[name, value] : options.settings)
      settings.push_back({name.c_str(), value.c_str()});
    std::vector<const char *> optionals, stages;
    for (const std::string &name : options.optionals)
      optionals.push_back(name.c_str());
    for (const std::string &name : options.stages)
      stages.push_back(name.c_str());
    tegula_compile_options plain = {};
    plain.struct_bytes = sizeof plain;
    plain.kernel = options.kernel.empty() ? nullptr : options.kernel.c_str();
    plain.target = options.target.c_str();
    plain.settings = settings.data();
    plain.num_settings = settings.size();
    plain.ellipsis_rank = options.ellipsisRank;
    plain.optionals = optionals.data();
    plain.num_optionals = optionals.size();
    plain.checked = options.checked;
    plain.stages = stages.data();
    plain.num_stages = stages.size();
    plain.any_sizes = options.anySizes;
    plain.dependent_launches = options.dependentLaunches;
    plain.tuned = options.tuned;
    plain.precision = options.precision.empty() ? nullptr : options.precision.c_str();
    plain.observe = static_cast<tegula_observe>(options.observe);
    tegula_kernel *made = nullptr;
    detail::Message message;
    message.check(tegula_compile(context.get(), program.get(), &plain, &made, message.receive()));
    handle.reset(made, tegula_free);
    warned = message.text();
    for (size_t i = 0; i < tegula_num_arguments(made); ++i)
      arguments.push_back(tegula_argument(made, i));
  }

  /// Runs the kernel: on the CPU it is done afterwards, on a device queued.
  template <typename... Arguments> void operator()(const Arguments &...given) const {
    launch({Argument(given)...});
  }
  void launch(const std::vector<Argument> &given, const LaunchOptions &options = {}) const {
    Observed::Filling filling(options.observed);
    std::vector<tegula_value> values = valuesOf(given, /*isWritten=*/true);
    tegula_launch_options plain = plainOptions(options, filling);
    detail::Message message;
    message.check(
        tegula_launch(handle.get(), values.data(), values.size(), &plain, message.receive()));
  }

  /// Runs nothing. One argument for each of the kernel's; of outputs nothing is read.
  Inferred infer(const std::vector<Argument> &given) const {
    std::vector<tegula_value> values = valuesOf(given, /*isWritten=*/false);
    size_t dims = 0;
    for (const tegula_argument_info &info : arguments)
      dims += info.role == TEGULA_OUT ? info.rank : 0;
    Shape flat(dims);
    Inferred result;
    detail::Message message;
    message.check(tegula_infer(handle.get(), values.data(), values.size(), flat.data(),
                               &result.workspaceBytes, message.receive()));
    auto next = flat.begin();
    for (const tegula_argument_info &info : arguments)
      if (info.role == TEGULA_OUT) {
        result.outputs.emplace_back(next, next + std::ptrdiff_t(info.rank));
        next += std::ptrdiff_t(info.rank);
      }
    return result;
  }

  /// CUDA: waits for the stream; throws ResultError where a data-dependent subscript was outside.
  void synchronize(void *stream = nullptr) const {
    detail::Message message;
    message.check(tegula_synchronize(handle.get(), stream, message.receive()));
  }

  /// The arguments of a launch, in order. Their names live as long as the kernel.
  const std::vector<tegula_argument_info> &signature() const { return arguments; }
  /// What the sizes of every launch must satisfy, in words.
  std::vector<std::string> guards() const {
    std::vector<std::string> messages;
    for (size_t i = 0; i < tegula_num_guards(handle.get()); ++i)
      messages.push_back(tegula_guard(handle.get(), i).message);
    return messages;
  }
  /// Warnings and remarks of compiling.
  const std::string &warnings() const { return warned; }
  /// JSON, schema `tegula.kernel`.
  std::string describe() const { return detail::orEmpty(tegula_describe(handle.get())); }
  /// The text of a stage; empty where it was not asked for.
  std::string stage(const std::string &name) const {
    return detail::orEmpty(tegula_stage(handle.get(), name.c_str()));
  }

  const tegula_kernel *get() const { return handle.get(); }

private:
  friend class Prepared;

  /// `isWritten`: outputs are memory that is written.
  std::vector<tegula_value> valuesOf(const std::vector<Argument> &given, bool isWritten) const {
    std::vector<tegula_value> values;
    for (size_t i = 0; i < given.size(); ++i) {
      tegula_value value = given[i].value;
      value.shape = given[i].shape.empty() ? nullptr : given[i].shape.data();
      value.rank = given[i].shape.size();
      if (i < arguments.size()) // the library refuses more
        checkKind(given[i], arguments[i], isWritten);
      if (i < arguments.size() && given[i].isOutput) {
        value.rank = arguments[i].rank;
        value.dtype = arguments[i].dtype;
      }
      values.push_back(value);
    }
    return values;
  }

  static void checkKind(const Argument &given, const tegula_argument_info &wanted, bool isWritten) {
    std::string name = "'" + detail::orEmpty(wanted.name) + "'";
    bool isScalar = wanted.role == TEGULA_SCALAR;
    if (isScalar == given.isTensor)
      throw detail::wrongCall(
          name + (isScalar ? " is a scalar, got a tensor" : " is a tensor, got a number"));
    bool isFloat = wanted.dtype == TEGULA_F64 || wanted.dtype == TEGULA_F32 ||
                   wanted.dtype == TEGULA_F16 || wanted.dtype == TEGULA_BF16 ||
                   wanted.dtype == TEGULA_F8E4M3 || wanted.dtype == TEGULA_F8E5M2;
    if (isScalar && !isFloat && !given.isInteger)
      throw detail::wrongCall(name + " is a " + tegula_dtype_name(wanted.dtype) +
                              ", got a floating-point number");
    if (given.isOutput && (isWritten || wanted.role != TEGULA_OUT))
      throw detail::wrongCall(name + " needs memory");
    if (isWritten && given.isConst && (wanted.role == TEGULA_OUT || wanted.role == TEGULA_INOUT))
      throw detail::wrongCall(name + " is written, and its memory is const");
  }

  static tegula_launch_options plainOptions(const LaunchOptions &options,
                                            Observed::Filling &filling) {
    tegula_launch_options plain = {};
    plain.struct_bytes = sizeof plain;
    plain.stream = options.stream;
    plain.workspace = options.workspace.data();
    plain.workspace_bytes = options.workspace.size();
    plain.stop = options.stop;
    plain.observed = filling.receive();
    plain.print_points = options.printPoints;
    return plain;
  }

  std::shared_ptr<tegula_kernel> handle;
  std::vector<tegula_argument_info> arguments;
  std::string warned;
};

//===----------------------------------------------------------------------===//
// Prepared calls
//===----------------------------------------------------------------------===//

/// Launches with the same shapes, decided once; it keeps its kernel alive.
class Prepared {
public:
  /// `given`: as for Kernel::infer.
  Prepared(const Kernel &kernel, const std::vector<Argument> &given) {
    std::vector<tegula_value> values = kernel.valuesOf(given, /*isWritten=*/false);
    tegula_prepared *made = nullptr;
    detail::Message message;
    message.check(
        tegula_prepare(kernel.get(), values.data(), values.size(), &made, message.receive()));
    handle.reset(made, [kept = kernel.handle](tegula_prepared *one) { tegula_prepared_free(one); });
  }

  size_t workspaceBytes() const { return tegula_prepared_workspace_bytes(handle.get()); }

  /// The address of each tensor's memory, or of each scalar on the host, in the order of the
  /// arguments. Allocates nothing.
  void launch(std::span<void *const> data, const LaunchOptions &options = {}) const {
    Observed::Filling filling(options.observed);
    tegula_launch_options plain = Kernel::plainOptions(options, filling);
    detail::Message message;
    message.check(
        tegula_launch_prepared(handle.get(), data.data(), data.size(), &plain, message.receive()));
  }

private:
  std::shared_ptr<tegula_prepared> handle; // with its kernel, which must be freed later
};

} // namespace tegula

#endif // TEGULA_HPP
