//===- Publish.cpp - tegula publish -----------------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Writes a kernel as Hugging Face's kernel repositories have them (docs/publish.md): Python, a
// launch plan as data, and code for each choice of dtypes, card and fixed sizes. The Python files
// are those of driver/publish, word for word; only names and data differ.
//
//===----------------------------------------------------------------------===//
#include "codegen/ptx/Assemble.h"
#include "codegen/ptx/Ptx.h"
#include "driver/CheckKernels.h"
#include "driver/Commands.h"
#include "driver/FileIO.h"
#include "driver/InstanceArgs.h"
#include "driver/Load.h"
#include "driver/publish/PlanJson.h"
#include "driver/publish/PublishText.h"
#include "frontend/check/Signature.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Base64.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA256.h"

using namespace llvm;

namespace tegula {

static cl::SubCommand sub("publish", "Write a folder that PyTorch loads without the compiler");
static cl::opt<std::string> path(cl::Positional, cl::Required, cl::desc("FILE"), cl::sub(sub));
static cl::opt<std::string> kernelName("kernel", cl::value_desc("NAME"),
                                       cl::desc("The kernel (default: the file's last)"),
                                       cl::cat(inputOptions), cl::sub(sub));
static cl::opt<std::string> folder("o", cl::value_desc("FOLDER"), cl::Required,
                                   cl::desc("Where it goes: a folder that is not there yet"),
                                   cl::cat(outputOptions), cl::sub(sub));
static cl::list<std::string>
    dtypes("dtypes", cl::value_desc("f16,bf16"), cl::CommaSeparated,
           cl::desc("Types that the kernel's generic types stand for, each "
                    "for all of them (default: f32)"),
           cl::cat(inputOptions), cl::sub(sub));
static cl::list<std::string> targets("targets", cl::value_desc("sm_80,sm_90a"), cl::CommaSeparated,
                                     cl::desc("Cards (default: sm_80,sm_90a)"),
                                     cl::cat(targetOptions), cl::sub(sub));
static cl::list<std::string> ranks("rank", cl::value_desc("1,2"), cl::CommaSeparated,
                                   cl::desc("How many dims '...' stands for (default: 1)"),
                                   cl::cat(inputOptions), cl::sub(sub));
static cl::list<std::string>
    sizeTexts("d", cl::value_desc("M=4096,N=4096"),
              cl::desc("Sizes for which there is code of its own beside that "
                       "for any; each -d is one set"),
              cl::cat(inputOptions), cl::sub(sub));
static cl::list<std::string> constantTexts("p", cl::value_desc("eps=1e-3"),
                                           cl::desc("Compile-time constants"),
                                           cl::cat(inputOptions), cl::sub(sub));
static cl::list<std::string> typeTexts("type", cl::value_desc("T=f16"),
                                       cl::desc("Types of generic parameters that are not varied"),
                                       cl::cat(inputOptions), cl::sub(sub));
static cl::list<std::string> givenOptionals("with", cl::value_desc("bias"), cl::CommaSeparated,
                                            cl::desc("Optional tensors that calls give"),
                                            cl::cat(inputOptions), cl::sub(sub));
static cl::opt<std::string> precision("precision", cl::value_desc("f32|tf32|conv_tf32|bf16"),
                                      cl::desc("Of products, for a kernel that does not say"),
                                      cl::cat(precisionOptions), cl::sub(sub));
static cl::opt<std::string>
    codeKind("code", cl::value_desc("ptx|cubin"), cl::init("ptx"),
             cl::desc("What is published: text that the driver compiles when "
                      "it is loaded, or machine code (it needs ptxas)"),
             cl::cat(targetOptions), cl::sub(sub));
static cl::opt<std::string> license("license", cl::value_desc("apache-2.0"), cl::init("other"),
                                    cl::desc("The licence that the metadata name"),
                                    cl::cat(outputOptions), cl::sub(sub));
static cl::opt<unsigned> version("kernel-version", cl::value_desc("1"), cl::init(0),
                                 cl::desc("The kernel's major version (0: not yet stable)"),
                                 cl::cat(outputOptions), cl::sub(sub));

namespace {

ExitCode wrongCall(const Twine &message) {
  errs() << "tegula: " << message << '\n';
  return ExitWrongCall;
}

/// One variant that is asked for.
struct Wanted {
  std::string target, dtype; // dtype empty: the kernel has no generic type to vary
  unsigned rank = 1;
  std::map<std::string, int64_t> sizes; // empty: any
};

/// The folder being made: its files in `build/torch-cuda`, by name.
struct Package {
  std::map<std::string, std::string> files;
  json::Array variants;
  SmallVector<std::string> parameters, updated;
  std::string schema;
};

std::string sha256(StringRef text, bool isHex) {
  std::array<uint8_t, 32> hash =
      SHA256::hash(ArrayRef(reinterpret_cast<const uint8_t *>(text.data()), text.size()));
  return isHex ? toHex(ArrayRef<uint8_t>(hash), /*LowerCase=*/true)
               : encodeBase64(StringRef(reinterpret_cast<const char *>(hash.data()), hash.size()));
}

/// `9.0a` of `sm_90a`; and as numbers.
struct Capability {
  explicit Capability(StringRef target) {
    StringRef digits = target.drop_front(3).take_while(isDigit);
    suffix = target.drop_front(3 + digits.size()).str();
    unsigned number = 0;
    digits.getAsInteger(10, number);
    major = number / 10;
    minor = number % 10;
  }
  std::string text(bool isPtx) const {
    return std::to_string(major) + "." + std::to_string(minor) + suffix +
           (isPtx && suffix.empty() ? "+PTX" : "");
  }
  unsigned major = 0, minor = 0;
  std::string suffix;
};

/// The operator's schema: `(Tensor x, Tensor(a!) cache, float s) -> (Tensor, Tensor)`.
void describeCall(const CompiledKernel &kernel, const Signature &signature, Package &package) {
  SmallVector<std::string> takes, gives;
  unsigned changed = 0;
  for (const Signature::Parameter &parameter : signature.parameters)
    for (const KernelArgument &argument : kernel.arguments) {
      if (argument.name != parameter.name || argument.role == KernelArgument::Out)
        continue;
      package.parameters.push_back(argument.name);
      std::string type = "Tensor";
      if (argument.role == KernelArgument::Scalar)
        type = isFloat(argument.declared)         ? "float"
               : argument.declared == DType::Bool ? "bool"
                                                  : "int";
      if (argument.role == KernelArgument::Inout) {
        package.updated.push_back(argument.name);
        type += formatv("(a{0}!)", changed++).str();
      }
      takes.push_back(type + " " + argument.name);
    }
  for (const KernelArgument &argument : kernel.arguments)
    if (argument.role == KernelArgument::Out)
      gives.push_back("Tensor");
  package.schema = "(" + join(takes, ", ") + ") -> " +
                   (gives.size() == 1 ? gives.front() : "(" + join(gives, ", ") + ")");
}

Expected<std::unique_ptr<CompiledKernel>> compileVariant(LoadedFile &loaded, CompileOptions options,
                                                         const Signature &signature,
                                                         const Wanted &wanted) {
  options.target = wanted.target;
  options.sizes = wanted.sizes;
  options.alignment = wanted.sizes.empty() ? 0 : 16;
  options.stopAfter = codeKind == "cubin" ? Phase::Assemble : Phase::EmitPtx;
  if (signature.hasEllipsis)
    options.instance.ellipsisRank = wanted.rank;
  if (!wanted.dtype.empty())
    for (const std::string &generic : signature.genericTypes)
      options.instance.types.try_emplace(generic, *checked::parseDType(wanted.dtype));
  return compileKernel(*loaded.module, options, loaded.diagnostics);
}

void addVariant(const CompiledKernel &kernel, const Wanted &wanted, Package &package) {
  bool isCubin = codeKind == "cubin";
  std::string file =
      formatv("code/{0}.{1}", package.variants.size(), isCubin ? "cubin" : "ptx").str();
  package.files[file] =
      isCubin ? std::string(kernel.cubin.data(), kernel.cubin.size()) : kernel.ptx;
  Capability capability(wanted.target);
  json::Object variant = planJson(kernel);
  variant["target"] = wanted.target;
  variant["capability"] = json::Array{capability.major, capability.minor};
  variant["exact"] = !capability.suffix.empty();
  variant["kind"] = isCubin ? "cubin" : "ptx";
  variant["code"] = file;
  json::Object fixed;
  for (const auto &[name, value] : wanted.sizes)
    fixed[name] = value;
  variant["fixed"] = std::move(fixed);
  package.variants.push_back(std::move(variant));
}

json::Array arrayOf(ArrayRef<std::string> texts) {
  json::Array result;
  for (const std::string &text : texts)
    result.push_back(text);
  return result;
}

std::string replaceAll(std::string text, StringRef from, StringRef to) {
  for (size_t at = 0; (at = text.find(from.str(), at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to.str());
  return text;
}

/// The files beside the code: data, Python, metadata.
void addFiles(StringRef name, ArrayRef<std::string> wantedTargets, StringRef instances,
              Package &package) {
  package.files["kernel.json"] =
      formatv("{0:1}\n", json::Value(json::Object{{"schema_version", 1},
                                                  {"name", name},
                                                  {"schema", package.schema},
                                                  {"parameters", arrayOf(package.parameters)},
                                                  {"updated", arrayOf(package.updated)},
                                                  {"targets", arrayOf(wantedTargets)},
                                                  {"instances", instances},
                                                  {"variants", std::move(package.variants)}}))
          .str();
  std::string all;
  for (const auto &[file, text] : package.files)
    all += sha256(text, /*isHex=*/true);
  // Several versions of a kernel may be in one process: the name is that of the contents.
  std::string id = ("_" + name + "_cuda_").str() + sha256(all, /*isHex=*/true).substr(0, 10);
  for (const PublishText &text : publishTexts()) {
    std::string contents = replaceAll(text.contents.str(), "KERNEL_NAME", name);
    package.files[replaceAll(text.name.str(), "KERNEL_NAME", name)] =
        replaceAll(contents, "KERNEL_ID", id);
  }
  json::Object digests;
  for (const auto &[file, text] : package.files)
    digests[file] = sha256(text, /*isHex=*/false);
  json::Array archs;
  for (const std::string &one : wantedTargets)
    archs.push_back(Capability(one).text(codeKind == "ptx"));
  package.files["metadata.json"] =
      formatv(
          "{0:2}\n",
          json::Value(json::Object{
              {"name", replaceAll(name.str(), "_", "-")},
              {"id", id},
              {"version", unsigned(version)},
              {"license", license.getValue()},
              {"python-depends", json::Array()},
              {"backend", json::Object{{"type", "cuda"}, {"archs", std::move(archs)}}},
              {"digest", json::Object{{"algorithm", "sha256"}, {"files", std::move(digests)}}}}))
          .str();
}

std::string cardOf(StringRef name, StringRef source, const Package &package,
                   ArrayRef<std::string> wantedTargets, StringRef instances) {
  std::string text =
      formatv("---\nlicense: {0}\nlibrary_name: kernels\ntags:\n- kernels\n- tegula\n"
              "---\n\n# {1}\n\nA CUDA kernel for PyTorch, compiled by Tegula from the "
              "program below. It needs neither a compiler nor Tegula.\n\n",
              license, name)
          .str();
  text += formatv("```python\nfrom kernels import get_local_kernel\nfrom pathlib import Path\n\n"
                  "{0} = get_local_kernel(Path(\".\"))\n{0}.{0}({1})\n```\n\n",
                  name, join(package.parameters, ", "))
              .str();
  text +=
      formatv("| what | published for |\n|---|---|\n| dtypes and ranks | {0} |\n| cards | {1} |\n"
              "| operator | `{2}{3}` |\n\n",
              instances, join(wantedTargets, ", "), name, package.schema)
          .str();
  return text + "```\n" + source.rtrim().str() + "\n```\n";
}

/// What the command line asks for, each variant once.
bool listWanted(const Signature &signature, std::vector<Wanted> &all) {
  std::vector<std::string> types(dtypes.begin(), dtypes.end());
  bool varies = any_of(signature.genericTypes, [](const std::string &) { return true; });
  if (types.empty())
    types.push_back(varies ? "f32" : "");
  else if (!varies)
    return wrongCall("--dtypes: the kernel has no generic type"), false;
  for (const std::string &type : types) {
    auto known = type.empty() ? std::nullopt : checked::parseDType(type);
    if (!type.empty() && !known)
      return wrongCall("--dtypes takes types of elements, not '" + type + "'"), false;
    if (known && bitWidth(*known) < 8 && *known != DType::Bool)
      return wrongCall("--dtypes: PyTorch has no tensors of '" + type + "'"), false;
  }
  std::vector<unsigned> numbers;
  for (const std::string &text : ranks) {
    unsigned number = 0;
    if (StringRef(text).getAsInteger(10, number) || number > 16)
      return wrongCall("--rank takes numbers of dims, not '" + text + "'"), false;
    numbers.push_back(number);
  }
  if (!numbers.empty() && !signature.hasEllipsis)
    return wrongCall("--rank: the kernel has no '...'"), false;
  if (numbers.empty())
    numbers.push_back(1);
  std::vector<std::map<std::string, int64_t>> sets(1);
  for (const std::string &text : sizeTexts)
    if (!parseSizes(text, sets.emplace_back()))
      return false;
  for (const std::string &target : targets)
    for (const std::string &type : types)
      for (unsigned number : numbers)
        for (const auto &sizes : sets)
          all.push_back({target, type, number, sizes});
  return true;
}

Error writeAll(StringRef name, const Package &package, StringRef card) {
  auto write = [&](const Twine &file, StringRef text) -> Error {
    SmallString<128> to(folder);
    sys::path::append(to, file);
    if (std::error_code failed = sys::fs::create_directories(sys::path::parent_path(to)))
      return createStringError(failed, "cannot make '" + sys::path::parent_path(to) +
                                           "': " + failed.message());
    return writeFile(to, text);
  };
  for (const auto &[file, text] : package.files)
    if (Error error = write("build/torch-cuda/" + file, text))
      return error;
  return write("README.md", card);
}

ExitCode run() {
  if (targets.empty()) {
    targets.push_back("sm_80");
    targets.push_back("sm_90a");
  }
  for (const std::string &target : targets)
    if (!isDeviceTarget(target))
      return wrongCall("--targets takes " + expectedDeviceTargets() + ", not '" + target + "'");
  if (codeKind != "ptx" && codeKind != "cubin")
    return wrongCall("--code takes ptx or cubin, not '" + codeKind + "'");
  if (sys::fs::exists(folder))
    return wrongCall("'" + folder + "' is there already");
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
  CompileOptions options;
  options.instance.kernel = kernel->name.name;
  options.instance.precision = precision;
  options.instance.givenOptionals.assign(givenOptionals.begin(), givenOptionals.end());
  if (!isPrecision(precision) || !parseConstants(constantTexts, options.instance.constants) ||
      !parseTypes(typeTexts, options.instance.types))
    return ExitWrongCall;
  std::vector<Wanted> all;
  if (!listWanted(signature, all))
    return ExitWrongCall;

  Package package;
  for (const Wanted &wanted : all) {
    Expected<std::unique_ptr<CompiledKernel>> compiled =
        compileVariant(*loaded, options, signature, wanted);
    if (!compiled) {
      ExitCode exit = compiled.errorIsA<MissingToolError>()   ? ExitMissingResource
                      : compiled.errorIsA<WrongOptionError>() ? ExitWrongCall
                                                              : ExitInternalError;
      errs() << "tegula: " << toString(compiled.takeError()) << '\n';
      return exit;
    }
    if (!*compiled || &wanted == &all.front())
      loaded->print(/*json=*/false);
    if (!*compiled)
      return ExitWrongProgram;
    if (!(*compiled)->invariantSizes.empty())
      return wrongCall("kernel '" + (*compiled)->name + "' says that '" +
                       (*compiled)->invariantSizes.front() +
                       "' is invariant, and a published kernel chooses among codes by sizes: leave "
                       "out 'invariant'");
    for (const KernelArgument &argument : (*compiled)->arguments)
      if (bitWidth(argument.dtype) < 8 && argument.dtype != DType::Bool)
        return wrongCall("'" + argument.name + "' is " + toString(argument.dtype) +
                         ", of which PyTorch has no tensors");
    if (package.schema.empty())
      describeCall(**compiled, signature, package);
    addVariant(**compiled, wanted, package);
  }
  std::string instances = join(dtypes, ", ");
  if (instances.empty())
    instances = signature.genericTypes.empty() ? "its own dtypes" : "f32";
  if (signature.hasEllipsis)
    instances +=
        ranks.empty() ? " with '...' of rank 1" : " with '...' of rank " + join(ranks, ", ");
  StringRef name = kernel->name.name;
  addFiles(name, targets, instances, package);
  std::string card =
      cardOf(name, loaded->module->sourceManager().text(loaded->file), package, targets, instances);
  if (Error error = writeAll(name, package, card)) {
    errs() << "tegula: " << toString(std::move(error)) << '\n';
    return ExitMissingResource;
  }
  return ExitSuccess;
}

} // namespace

const Command publishCommand = {sub, run};

} // namespace tegula
