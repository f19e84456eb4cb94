//===- Run.cpp - tegula run -------------------------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "bench/Pieces.h"
#include "bench/Repeat.h"
#include "bench/Runner.h"
#include "bench/observe/Observe.h"
#include "codegen/ptx/Assemble.h"
#include "codegen/ptx/Ptx.h"
#include "driver/CheckKernels.h"
#include "driver/Commands.h"
#include "driver/InstanceArgs.h"
#include "driver/Load.h"
#include "driver/Watchdog.h"
#include "runtime/Npy.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <cstring>

using namespace llvm;
using namespace tegula::bench;

namespace tegula {

static cl::SubCommand sub("run", "Run a kernel on files or random numbers");
static cl::opt<std::string> path(cl::Positional, cl::Required, cl::desc("FILE"), cl::sub(sub));
static cl::opt<std::string> kernelName("kernel", cl::value_desc("NAME"),
                                       cl::desc("The kernel (default: the file's last)"),
                                       cl::cat(inputOptions), cl::sub(sub));
static cl::list<std::string> sizeTexts("d", cl::value_desc("M=64,N=128"), cl::desc("Sizes"),
                                       cl::cat(inputOptions), cl::sub(sub));
static cl::list<std::string> constantTexts("p", cl::value_desc("eps=1e-3"),
                                           cl::desc("Constants, scalars"), cl::cat(inputOptions),
                                           cl::sub(sub));
static cl::list<std::string> typeTexts("type", cl::value_desc("T=f16"),
                                       cl::desc("Types of generic parameters"),
                                       cl::cat(inputOptions), cl::sub(sub));
static cl::list<std::string> inTexts("in", cl::value_desc("x=x.npy"), cl::desc("Inputs"),
                                     cl::cat(inputOptions), cl::sub(sub));
static cl::list<std::string> outTexts("out", cl::value_desc("y=y.npy"),
                                      cl::desc("Where results go (default: they are shown)"),
                                      cl::cat(outputOptions), cl::sub(sub));
static cl::opt<std::string> precision("precision", cl::value_desc("f32|tf32|conv_tf32|bf16"),
                                      cl::desc("Of products, for a kernel that does not say"),
                                      cl::cat(precisionOptions), cl::sub(sub));
static cl::opt<std::string>
    tensorTile("tensor-tile", cl::value_desc("128x128-packed"),
               cl::desc("The tile of matrix products on tensor cores, where it is possible"),
               cl::cat(schedulingOptions), cl::sub(sub));
static cl::opt<std::string> emulatedDevice("device", cl::value_desc("sm_90a"),
                                           cl::init(CompileOptions().emulatedDevice),
                                           cl::desc("With --target=emulate: the device that it is"),
                                           cl::cat(targetOptions), cl::sub(sub));
static cl::opt<unsigned> multiprocessors("multiprocessors", cl::value_desc("3"),
                                         cl::init(CompileOptions().emulatedMultiprocessors),
                                         cl::desc("With --target=emulate: those of the device"),
                                         cl::cat(targetOptions), cl::sub(sub));
static cl::opt<std::string> target("target", cl::value_desc("cpu|cuda|emulate"),
                                   cl::desc("The machine"), cl::init("cpu"), cl::cat(targetOptions),
                                   cl::sub(sub));
static cl::opt<bool> tuned("tuned",
                           cl::desc("On a device: with the schedules that `tegula tune` kept"),
                           cl::cat(schedulingOptions), cl::sub(sub));
namespace {
enum class Checked { No, Yes, Nan, Finite };
} // namespace
static cl::opt<Checked> checkedMode(
    "checked", cl::ValueOptional, cl::init(Checked::No),
    cl::values(clEnumValN(Checked::Yes, "", "As said"),
               clEnumValN(Checked::Nan, "nan", "And find the first NaN that an equation makes"),
               clEnumValN(Checked::Finite, "finite", "And the first NaN or infinity")),
    cl::desc("Verify while running, element by element, that every access stays inside, "
             "that what is read is defined, and that points do not meet; with what `print` and "
             "`assert` of the program say"),
    cl::cat(debuggingOptions), cl::sub(sub));
static cl::opt<bool> evenProved(
    "even-proved",
    cl::desc("Verify in the code as it always is that accesses stay inside that were proved "
             "to; one that does not is a defect. With --checked: after a run of that"),
    cl::cat(debuggingOptions), cl::sub(sub));
static cl::opt<unsigned> printedPoints("print-points", cl::value_desc("20"),
                                       cl::desc("With --checked or --target=emulate: the points "
                                                "that each `print` shows at most"),
                                       cl::init(20), cl::cat(debuggingOptions), cl::sub(sub));
static cl::opt<uint64_t> seed("seed", cl::desc("Seed of inputs without --in"), cl::init(0),
                              cl::cat(inputOptions), cl::sub(sub));
static cl::opt<double>
    deadline("deadline", cl::desc("Seconds after which a launch on a device is given up; 0: never"),
             cl::init(300), cl::cat(debuggingOptions), cl::sub(sub));
static cl::opt<unsigned>
    repeat("repeat", cl::value_desc("1000"),
           cl::desc("Run so often and refuse other bits; on a device from shared memory full of "
                    "NaNs, blocks beginning in other orders, in the emulator in other orders"),
           cl::init(1), cl::cat(debuggingOptions), cl::sub(sub));
static cl::opt<std::string> pieces(
    "pieces", cl::value_desc("M"),
    cl::desc("Run pieces of this size, cut at random places, --repeat times, and refuse other "
             "bits: what `invariant M` in a kernel says"),
    cl::cat(debuggingOptions), cl::sub(sub));
static cl::opt<unsigned> threads("threads", cl::desc("Threads (default: all)"), cl::init(0),
                                 cl::cat(targetOptions), cl::sub(sub));

namespace {

ExitCode wrongCall(const Twine &message) {
  errs() << "tegula: " << message << '\n';
  return ExitWrongCall;
}

/// NumPy's type for a type of ours: what NumPy lacks travels as raw bytes, 4-bit integers as bytes.
StringRef npyType(DType type) {
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
bool fits(StringRef type, DType wanted) {
  return type == npyType(wanted) || (wanted == DType::BF16 && type == "u2") ||
         ((wanted == DType::F8E4M3 || wanted == DType::F8E5M2) && type == "u1");
}

/// The types of ours that an array may be, the likeliest first.
std::optional<DType> likelyType(StringRef type) {
  for (DType one :
       {DType::F64, DType::F32, DType::F16, DType::BF16, DType::I64, DType::I32, DType::I16,
        DType::I8, DType::U64, DType::U32, DType::U16, DType::U8, DType::Bool})
    if (npyType(one) == type)
      return one;
  return std::nullopt;
}

std::optional<Tensor> toTensor(const NpyArray &array, DType type) {
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

/// `x=x.npy` in each text.
bool parsePaths(ArrayRef<std::string> texts, std::map<std::string, std::string> &files) {
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
void show(StringRef name, const Tensor &tensor) {
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

/// Inputs read from files, with the sizes and types that follow from them.
struct Given {
  std::map<std::string, NpyArray> arrays;
  Instance instance;
};

ExitCode readInputs(const ast::Kernel &kernel, const Signature &signature,
                    const std::map<std::string, std::string> &files, Given &given) {
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
static ExitCode takeArrays(const Runner &runner, const Given &given,
                           const std::map<std::string, std::string> &inFiles,
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

/// Writes the results to their files, or shows them where there are none.
static ExitCode writeResults(const Runner &runner, ArrayRef<unsigned> written,
                             const std::vector<Tensor> &results,
                             const std::map<std::string, std::string> &outFiles) {
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

/// Holds what the launch gave of pieces of a size against what it gives of these alone.
static ExitCode comparePieces(Runner &runner, const Signature &signature, const Given &given,
                              const Launch &launch, ArrayRef<unsigned> written,
                              ArrayRef<Tensor> results, const std::string &what,
                              LaunchWatch *watch) {
  auto extent = given.instance.sizes.find(pieces);
  if (extent == given.instance.sizes.end())
    return wrongCall("--pieces takes a size that -d or an input gives, not '" + pieces + "'");
  Instance instance = given.instance;
  auto sizesAt = [&](int64_t own) {
    instance.sizes[pieces] = own;
    return runner.sizes(signature, instance);
  };
  PieceRequest request{pieces, extent->second, repeat, seed, given.instance.scalars, sizesAt};
  Expected<std::optional<OtherPiece>> other =
      findOtherPiece(runner, launch, written, results, request, watch);
  if (!other)
    return exitOf(other.takeError());
  std::string times = repeat == 1 ? "once" : std::to_string(repeat) + " times";
  if (!*other) {
    errs() << "tegula: " << what << ": cut along " << pieces << " " << times
           << ", all pieces gave the same bits\n";
    return ExitSuccess;
  }
  errs() << "tegula: " << what << ": " << pieces << " from " << (*other)->begin << " to "
         << (*other)->end << " alone gives other bits in '"
         << runner.kernel().arguments[(*other)->argument].name << "', first at "
         << shapeText((*other)->place) << " of the piece\n";
  return ExitWrongResult;
}

/// Compiles and runs the kernel on inputs as given or drawn; prints the diagnostics where
/// `isFirst`, and shows or stores the results where `givesResults`.
ExitCode runKernel(LoadedFile &loaded, const Signature &signature, const Given &given,
                   CompileOptions options, const std::map<std::string, std::string> &inFiles,
                   const std::map<std::string, std::string> &outFiles, bool isFirst,
                   bool givesResults) {
  Expected<std::unique_ptr<Runner>> made =
      Runner::make(*loaded.module, options, loaded.diagnostics);
  if (!made)
    return exitOf(made.takeError());
  if (isFirst)
    loaded.print(/*json=*/false);
  if (!*made)
    return ExitWrongProgram;
  Runner &runner = **made;
  runner.setThreads(threads);

  // Outputs and inouts; temporaries that --out names have become outputs.
  std::vector<unsigned> written;
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

  Launch::Inputs inputs;
  inputs.scalars = given.instance.scalars;
  inputs.seed = seed;
  if (ExitCode code = takeArrays(runner, given, inFiles, inputs); code != ExitSuccess)
    return code;
  Expected<SizeValues> sizes = runner.sizes(signature, given.instance);
  if (!sizes)
    return exitOf(sizes.takeError());
  // The shapes of inputs that no bare dim has bound.
  for (auto [index, argument] : enumerate(runner.kernel().arguments)) {
    auto tensor = inputs.given.find(argument.name);
    if (tensor == inputs.given.end())
      continue;
    Expected<SmallVector<int64_t>> shape = shapeOf(runner.kernel(), index, *sizes);
    if (!shape)
      return exitOf(shape.takeError());
    if (ArrayRef<int64_t>(*shape) != tensor->second.shape())
      return wrongCall("'" + argument.name + "' must have shape " + shapeText(*shape) +
                       ", the array in '" + inFiles.at(argument.name) + "' has " +
                       shapeText(tensor->second.shape()));
  }
  Expected<std::unique_ptr<Launch>> launch = Launch::make(runner, *sizes, std::move(inputs));
  if (!launch)
    return exitOf(launch.takeError());
  if (tuned)
    errs() << "schedule: " << (*launch)->machineCode().choice.text() << '\n';
  std::string sizeText;
  for (auto [spec, value] : zip(runner.kernel().checks->sizes(), *sizes))
    sizeText += (sizeText.empty() ? " at " : ", ") + spec.name + "=" + std::to_string(value);
  std::string what = "kernel '" + runner.kernel().name + "'" + sizeText;
  std::optional<Watchdog> watchdog;
  if (runner.isDevice())
    watchdog.emplace(what, deadline);
  Expected<double> taken = (*launch)->run(watchdog ? &*watchdog : nullptr);
  if (!taken)
    return exitOf(handleErrors(taken.takeError(), [&](const CudaError &failed) -> Error {
      return make_error<CudaError>(failed.kind, what + ": " + failed.message);
    }));
  Expected<std::vector<Tensor>> results = (*launch)->read(written);
  if (!results)
    return exitOf(results.takeError());
  if (Error failed = tellObservations(**launch, *sizes, printedPoints, outs()))
    return exitOf(std::move(failed));
  if (!pieces.empty()) {
    if (ExitCode code = comparePieces(runner, signature, given, **launch, written, *results, what,
                                      watchdog ? &*watchdog : nullptr))
      return code;
  } else if (repeat > 1) {
    Expected<std::optional<OtherBits>> other =
        findOtherBits(**launch, written, *results, repeat - 1, watchdog ? &*watchdog : nullptr);
    if (!other)
      return exitOf(other.takeError());
    if (*other) {
      errs() << "tegula: " << what << ": run " << (*other)->run + 1 << " of " << repeat
             << " gives other bits in '"
             << runner.kernel().arguments[written[(*other)->result]].name << "'\n";
      return ExitWrongResult;
    }
    errs() << "tegula: " << what << ": " << repeat << " runs gave the same bits\n";
  }
  watchdog.reset();

  if (!givesResults)
    return ExitSuccess;
  return writeResults(runner, written, *results, outFiles);
}

ExitCode run() {
  std::map<std::string, std::string> inFiles, outFiles;
  Settings settings;
  if (!parsePaths(inTexts, inFiles) || !parsePaths(outTexts, outFiles))
    return ExitWrongCall;
  if (!readSettings({sizeTexts, constantTexts, typeTexts}, settings))
    return ExitWrongCall;

  if (deadline < 0)
    return wrongCall("--deadline takes seconds, 0 for none");
  if (target != "cpu" && target != "cuda" && target != "emulate")
    return wrongCall("--target takes cpu, cuda or emulate, not '" + target + "'");
  if (!isDeviceTarget(emulatedDevice))
    return wrongCall("--device takes " + expectedDeviceTargets() + ", not '" + emulatedDevice +
                     "'");
  if (multiprocessors == 0)
    return wrongCall("--multiprocessors takes a number above 0");
  std::unique_ptr<LoadedFile> loaded = load(path);
  if (!loaded)
    return ExitWrongCall;
  if (tellSyntaxErrors(*loaded))
    return ExitWrongProgram;
  const ast::Kernel *kernel = loaded->module->entry(kernelName);
  if (!kernel)
    return wrongCall("'" + path + "' has no kernel" +
                     (kernelName.empty() ? "" : " '" + kernelName + "'"));
  Signature signature(*kernel);
  Given given;
  std::string error;
  if (!signature.sort(settings, given.instance, error, evaluateConstant))
    return wrongCall(error);
  if (const Signature::Parameter *missing = signature.missing(given.instance.options))
    return wrongCall("kernel '" + kernel->name.name + "' needs " + Signature::howToGive(*missing));
  std::map<std::string, int64_t> demanded = given.instance.sizes;
  if (ExitCode code = readInputs(*kernel, signature, inFiles, given))
    return code;
  for (const auto &[name, value] : demanded)
    if (given.instance.sizes.at(name) != value)
      return wrongCall(name + " is " + Twine(value) + " by -d and " +
                       Twine(given.instance.sizes.at(name)) + " by an input");

  CompileOptions options;
  options.instance = given.instance.options;
  options.instance.kernel = kernel->name.name;
  options.target = target;
  options.pipeline.tensorTile = tensorTile;
  options.tuned = tuned;
  options.instance.precision = precision;
  options.emulatedDevice = emulatedDevice;
  options.emulatedMultiprocessors = multiprocessors;
  if (!isTensorTile(tensorTile) || !isPrecision(precision))
    return ExitWrongCall;
  for (const auto &[name, file] : outFiles)
    options.keepTensors.push_back(name);
  auto runAs = [&](bool checked, bool isFirst, bool givesResults) {
    options.checked = checked;
    // What the program asks to see is part of the runs that look for mistakes.
    options.instance.observe = checked || target == "emulate";
    if (checked && checkedMode == Checked::Nan)
      options.instance.watch = InstanceOptions::Watch::Nan;
    if (checked && checkedMode == Checked::Finite)
      options.instance.watch = InstanceOptions::Watch::NonFinite;
    options.evenProved = !checked && evenProved;
    return runKernel(*loaded, signature, given, options, inFiles, outFiles, isFirst, givesResults);
  };
  bool isChecked = checkedMode != Checked::No;
  if (!isChecked || !evenProved)
    return runAs(isChecked, /*isFirst=*/true, /*givesResults=*/true);
  // Two kinds of code: one that checks element by element, and the one that runs else.
  if (ExitCode code = runAs(/*checked=*/true, /*isFirst=*/true, /*givesResults=*/false))
    return code;
  return runAs(/*checked=*/false, /*isFirst=*/false, /*givesResults=*/true);
}

} // namespace

const Command runCommand = {sub, run};

} // namespace tegula
