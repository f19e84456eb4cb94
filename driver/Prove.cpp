//===- Prove.cpp - tegula prove ---------------------------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/ptx/Ptx.h"
#include "compiler/Compiler.h"
#include "driver/CheckKernels.h"
#include "driver/Commands.h"
#include "driver/FileIO.h"
#include "driver/InstanceArgs.h"
#include "frontend/check/Signature.h"
#include "ir/tgl/Tgl.h"
#include "mlir/Parser/Parser.h"
#include "prove/Certificate.h"
#include "prove/EvaluateImpl.h"
#include "prove/Reference.h"
#include "prove/Safe.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <set>

using namespace llvm;

namespace tegula {

static cl::SubCommand sub("prove", "Say whether two programs compute one function");
static cl::opt<std::string> path(cl::Positional, cl::desc("FILE"), cl::sub(sub));
static cl::opt<std::string>
    against("against", cl::value_desc("OTHER.tgl|REF.py"),
            cl::desc("The program, or function of PyTorch, that FILE is to be equal to"),
            cl::cat(inputOptions), cl::sub(sub));
static cl::opt<bool> scheduled("scheduled",
                               cl::desc("Hold FILE against what the passes make of it"),
                               cl::cat(inputOptions), cl::sub(sub));
static cl::opt<bool> safe("safe",
                          cl::desc("Record why each access of FILE stays inside its tensor"),
                          cl::cat(inputOptions), cl::sub(sub));
static cl::opt<std::string> certificatePath("check", cl::value_desc("CERT"),
                                            cl::desc("Repeat what a certificate says"),
                                            cl::cat(inputOptions), cl::sub(sub));
static cl::opt<std::string> kernelName("kernel", cl::value_desc("NAME"),
                                       cl::desc("The kernel (default: the file's last)"),
                                       cl::cat(inputOptions), cl::sub(sub));
static cl::list<std::string> sizeTexts("d", cl::value_desc("M=64,N=128"),
                                       cl::desc("Sizes that are not drawn"), cl::cat(inputOptions),
                                       cl::sub(sub));
static cl::list<std::string> constantTexts("p", cl::value_desc("eps=1e-3"),
                                           cl::desc("Compile-time constants"),
                                           cl::cat(inputOptions), cl::sub(sub));
static cl::list<std::string> typeTexts("type", cl::value_desc("T=f16"),
                                       cl::desc("Types of generic parameters"),
                                       cl::cat(inputOptions), cl::sub(sub));
static cl::opt<unsigned> rank("rank", cl::desc("How many dims '...' stands for"), cl::init(1),
                              cl::cat(inputOptions), cl::sub(sub));
static cl::list<std::string> givenOptionals("with", cl::value_desc("bias"),
                                            cl::desc("Optional tensors that are passed"),
                                            cl::CommaSeparated, cl::cat(inputOptions),
                                            cl::sub(sub));
static cl::opt<std::string> target("target", cl::value_desc("cpu|sm_90a"),
                                   cl::desc("With --scheduled: the machine"), cl::init("cpu"),
                                   cl::cat(targetOptions), cl::sub(sub));
static cl::list<int> tracer("tracer", cl::value_desc("IN,OUT"), cl::CommaSeparated,
                            cl::desc("With a REF.py: descriptors of a process that takes functions "
                                     "apart, in place of one that is started"),
                            cl::cat(targetOptions), cl::sub(sub));
static cl::opt<uint64_t> seed("seed", cl::desc("Of sizes, data and primes"), cl::init(0),
                              cl::cat(inputOptions), cl::sub(sub));
static cl::opt<uint64_t> steps("steps",
                               cl::desc("Of a point, at most; points with more are drawn "
                                        "smaller"),
                               cl::init(prove::EvaluateOptions().maxSteps), cl::cat(inputOptions),
                               cl::sub(sub));
static cl::opt<bool> json("json", cl::desc("Print the certificate in place of words"),
                          cl::cat(outputOptions), cl::sub(sub));
static cl::opt<std::string> outPath("o", cl::value_desc("CERT"),
                                    cl::desc("Where to write the certificate"),
                                    cl::cat(outputOptions), cl::sub(sub));

static constexpr int64_t certificateVersion = 2;

namespace {
/// What is asked, by the command line or by a certificate.
struct Question {
  std::string path, against, kernel, target = "cpu";
  bool scheduled = false, safe = false;
  std::vector<std::string> sizes, constants, types, optionals;
  unsigned rank = 1;
  uint64_t seed = 0, steps = prove::EvaluateOptions().maxSteps;

  bool isComparison() const { return scheduled || !against.empty(); }
  /// At most one comparison, and something.
  bool isAsked() const { return !(scheduled && !against.empty()) && (isComparison() || safe); }
};

/// A program's text and its kernel's IR, as it was written and as it was scheduled.
struct Program {
  std::string textHash;
  std::string plain, scheduled, ptx;
  mlir::OwningOpRef<mlir::ModuleOp> plainModule, scheduledModule;
  std::vector<checked::Constant> constants;
  /// What -p, --type, --with and -d may be about.
  std::vector<std::string> constantNames, typeNames, optionalNames, sizeNames;
};
} // namespace

static tgl::KernelOp entryOf(mlir::ModuleOp module) {
  for (tgl::KernelOp kernel : module.getOps<tgl::KernelOp>())
    if (!kernel.isCalled())
      return kernel;
  return {};
}

static ExitCode tellError(Error error) {
  ExitCode exit = error.isA<WrongOptionError>() ? ExitWrongCall : ExitInternalError;
  errs() << "tegula: " << toString(std::move(error)) << '\n';
  return exit;
}

static ExitCode loadProgram(const Question &question, StringRef file, bool wantsSchedule,
                            mlir::MLIRContext &context, Program &program) {
  CompileOptions options;
  InstanceOptions &instance = options.instance;
  instance.kernel = question.kernel;
  instance.ellipsisRank = question.rank;
  instance.givenOptionals = question.optionals;
  if (!parseConstants(question.constants, instance.constants) ||
      !parseTypes(question.types, instance.types))
    return ExitWrongCall;
  if (wantsSchedule && !parseSizes(question.sizes, options.sizes))
    return ExitWrongCall;
  options.target = wantsSchedule ? question.target : "cpu";
  bool isDevice = wantsSchedule && isDeviceTarget(question.target);
  options.stopAfter = isDevice ? Phase::EmitPtx : wantsSchedule ? Phase::Schedule : Phase::Emit;
  options.keepStages = {"tgl", "scheduled"};
  options.printLocations = true;
  std::unique_ptr<LoadedFile> loaded = load(file);
  if (!loaded)
    return ExitWrongCall;
  if (tellSyntaxErrors(*loaded))
    return ExitWrongProgram;
  if (!loaded->module->entry(question.kernel)) {
    errs() << "tegula: '" << file << "' has no kernel"
           << (question.kernel.empty() ? "" : " '" + question.kernel + "'") << '\n';
    return ExitWrongCall;
  }
  program.textHash = prove::hashOf(loaded->module->sourceManager().text(loaded->file));
  Expected<std::unique_ptr<CompiledKernel>> compiled =
      compileKernel(*loaded->module, options, loaded->diagnostics);
  loaded->print(/*json=*/false);
  if (!compiled)
    return tellError(compiled.takeError());
  if (!*compiled)
    return ExitWrongProgram;
  program.constants = (*compiled)->constants;
  Signature signature(*loaded->module->entry(question.kernel));
  for (const Signature::Parameter &parameter : signature.parameters) {
    if (parameter.isOptional && parameter.kind == Signature::Parameter::Tensor)
      program.optionalNames.push_back(parameter.name);
    if (parameter.kind == Signature::Parameter::Constant ||
        parameter.kind == Signature::Parameter::Tuple)
      program.constantNames.push_back(parameter.name);
  }
  program.typeNames = signature.genericTypes;
  auto parse = [&](StringRef stage, std::string &text) -> mlir::OwningOpRef<mlir::ModuleOp> {
    text = (*compiled)->stages[stage.str()];
    return mlir::parseSourceString<mlir::ModuleOp>(text, mlir::ParserConfig(&context));
  };
  program.plainModule = parse("tgl", program.plain);
  if (wantsSchedule)
    program.scheduledModule = parse("scheduled", program.scheduled);
  program.ptx = (*compiled)->ptx;
  if (!program.plainModule || (wantsSchedule && !program.scheduledModule)) {
    errs() << "tegula: the IR of '" << file << "' cannot be read back\n";
    return ExitInternalError;
  }
  for (mlir::Attribute attr : entryOf(*program.plainModule).getSizeAttrs())
    program.sizeNames.push_back(cast<tgl::SizeAttr>(attr).getName().str());
  return ExitSuccess;
}

/// Whether each name of an option is one that a program has. False, with the reason on standard
/// error, where one is not.
static bool knowsAll(StringRef option, ArrayRef<std::string> names,
                     std::vector<std::string> Program::*known, const Program &first,
                     const Program &second) {
  for (const std::string &name : names) {
    if (is_contained(first.*known, name) || is_contained(second.*known, name))
      continue;
    errs() << "tegula: " << option << ": no program has '" << name << "'\n";
    return false;
  }
  return true;
}

static bool knowsNames(const Question &question, const Program &first, const Program &second) {
  auto namesOf = [](const auto &settings) {
    std::vector<std::string> names;
    for (const auto &setting : settings)
      names.push_back(std::string(setting.first));
    return names;
  };
  prove::Sizes sizes;
  decltype(InstanceOptions::constants) constants;
  std::map<std::string, checked::DType> types;
  return parseSizes(question.sizes, sizes) && parseConstants(question.constants, constants) &&
         parseTypes(question.types, types) &&
         knowsAll("-d", namesOf(sizes), &Program::sizeNames, first, second) &&
         knowsAll("-p", namesOf(constants), &Program::constantNames, first, second) &&
         knowsAll("--type", namesOf(types), &Program::typeNames, first, second) &&
         knowsAll("--with", question.optionals, &Program::optionalNames, first, second);
}

/// Says which optional tensors the verdict does not speak of.
static std::string leftOut(const Question &question, const Program &first, const Program &second) {
  std::vector<std::string> names;
  for (const Program *program : {&first, &second})
    for (const std::string &name : program->optionalNames)
      if (!is_contained(question.optionals, name) && !is_contained(names, name))
        names.push_back(name);
  return names.empty() ? ""
                       : "  without optional tensors (--with=" + join(names, ",") + " has them)\n";
}

/// Parameters that are read must agree in role, kind and rank; in their order.
static bool haveOneSignature(tgl::KernelOp first, tgl::KernelOp second, std::string &reason) {
  auto read = [](tgl::KernelOp kernel) {
    SmallVector<unsigned> result;
    for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
      if (kernel.getArgRole(i) != "out")
        result.push_back(i);
    return result;
  };
  SmallVector<unsigned> mine = read(first), theirs = read(second);
  if (mine.size() != theirs.size()) {
    reason =
        formatv("FILE has {0} parameters and the other program {1}", mine.size(), theirs.size());
    return false;
  }
  for (auto [a, b] : zip_equal(mine, theirs)) {
    auto x = dyn_cast<tgl::TglTensorType>(first.getArgumentTypes()[a]),
         y = dyn_cast<tgl::TglTensorType>(second.getArgumentTypes()[b]);
    bool agree = bool(x) == bool(y) && first.getArgRole(a) == second.getArgRole(b) &&
                 (!x || (x.getRank() == y.getRank() && x.getElementType() == y.getElementType()));
    if (agree)
      continue;
    reason = formatv("'{0}' and '{1}' differ in type, rank or role", first.getArgName(a),
                     second.getArgName(b));
    return false;
  }
  return true;
}

static json::Array textsJson(ArrayRef<std::string> texts) {
  json::Array array;
  for (const std::string &text : texts)
    array.push_back(text);
  return array;
}

static json::Object questionJson(const Question &question) {
  return json::Object{{"file", question.path},
                      {"against", question.against},
                      {"scheduled", question.scheduled},
                      {"safe", question.safe},
                      {"kernel", question.kernel},
                      {"target", question.target},
                      {"sizes", textsJson(question.sizes)},
                      {"constants", textsJson(question.constants)},
                      {"types", textsJson(question.types)},
                      {"with", textsJson(question.optionals)},
                      {"rank", int64_t(question.rank)},
                      {"seed", int64_t(question.seed)},
                      {"steps", int64_t(question.steps)}};
}

/// Of all that decides the answer but the programs, whose texts have hashes of their own.
static std::string hashOfQuestion(const Question &question) {
  json::Object object = questionJson(question);
  object.erase("file");
  object.erase("against");
  object["is_reference"] = StringRef(question.against).ends_with(".py");
  object["tegula"] = TEGULA_VERSION;
  object["version"] = certificateVersion;
  return prove::hashOf(formatv("{0}", json::Value(std::move(object))).str());
}

static ExitCode codeOf(prove::Verdict verdict) {
  switch (verdict) {
  case prove::Verdict::Equal:
  case prove::Verdict::EqualOnPoints:
    return ExitSuccess;
  case prove::Verdict::Undecided:
    return ExitUndecided;
  case prove::Verdict::LessPrecise:
  case prove::Verdict::NotEqual:
    return ExitWrongResult;
  }
  return ExitUndecided;
}

/// The program against a function of PyTorch.
static ExitCode compareWithReference(const Question &question, Program &program,
                                     prove::EqualOptions &options, prove::Judgement &judgement,
                                     std::string &hash) {
  Expected<std::string> text = readFile(question.against, 16 << 20);
  if (!text) {
    errs() << "tegula: " << toString(text.takeError()) << '\n';
    return ExitWrongCall;
  }
  hash = prove::hashOf(*text);
  const char *python = getenv("TEGULA_PYTHON");
  std::string error;
  std::unique_ptr<prove::TraceProcess> process =
      tracer.size() == 2 ? prove::TraceProcess::attach(tracer[0], tracer[1])
                         : prove::TraceProcess::start(python ? python : "python3", error);
  if (!process) {
    errs() << "tegula: " << error << '\n';
    return ExitMissingResource;
  }
  prove::FixedArguments constants;
  for (const checked::Constant &constant : program.constants) {
    json::Value value = nullptr;
    if (auto *list = std::get_if<std::vector<int64_t>>(&constant.value))
      value = json::Array(*list);
    else if (auto *truth = std::get_if<bool>(&constant.value))
      value = *truth;
    else if (auto *number = std::get_if<double>(&constant.value))
      value = *number;
    else
      value = std::get<int64_t>(constant.value);
    constants.push_back({constant.name, value});
  }
  options.hasPlainScalars = true;
  tgl::KernelOp kernel = entryOf(*program.plainModule);
  prove::KernelSubject mine(kernel);
  prove::ReferenceSubject theirs(*process, question.against, kernel, std::move(constants));
  judgement = compare(kernel, mine, theirs, options);
  return ExitSuccess;
}

/// Two programs, or a program and its schedule.
static prove::Judgement compareKernels(tgl::KernelOp kernel, tgl::KernelOp other, bool isSchedule,
                                       const prove::EqualOptions &options) {
  prove::Judgement judgement;
  if (!haveOneSignature(kernel, other, judgement.reason)) {
    judgement.verdict = prove::Verdict::NotEqual;
    return judgement;
  }
  prove::KernelSubject mine(kernel), theirs(other);
  return isSchedule ? compare(kernel, theirs, mine, options)
                    : compare(kernel, mine, theirs, options);
}

/// The comparison that is asked for.
static ExitCode compare(const Question &question, Program &first, Program &second,
                        prove::EqualOptions &options, prove::Judgement &judgement,
                        json::Object &hashes) {
  tgl::KernelOp kernel = entryOf(*first.plainModule);
  if (question.scheduled) {
    judgement = compareKernels(kernel, entryOf(*first.scheduledModule), true, options);
    hashes["scheduled"] = prove::hashOf(first.scheduled);
    if (!first.ptx.empty())
      hashes["ptx"] = prove::hashOf(first.ptx);
    return ExitSuccess;
  }
  if (second.plainModule) {
    judgement = compareKernels(kernel, entryOf(*second.plainModule), false, options);
    hashes["against"] = second.textHash;
    hashes["against_tgl"] = prove::hashOf(second.plain);
    return ExitSuccess;
  }
  std::string hash;
  if (ExitCode code = compareWithReference(question, first, options, judgement, hash))
    return code;
  hashes["against"] = hash;
  return ExitSuccess;
}

/// Answers the question; `certificate` is complete where the result is a verdict's.
static ExitCode answer(const Question &question, json::Object &certificate, std::string &words) {
  mlir::DialectRegistry registry;
  registry.insert<tgl::TglDialect, mlir::arith::ArithDialect, mlir::math::MathDialect>();
  mlir::MLIRContext context(registry);
  Program first, second;
  if (ExitCode code = loadProgram(question, question.path, question.scheduled, context, first))
    return code;
  prove::EqualOptions options;
  options.seed = question.seed;
  options.evaluate.maxSteps = question.steps;
  if (!parseSizes(question.sizes, options.sizes))
    return ExitWrongCall;
  bool isReference = StringRef(question.against).ends_with(".py");
  if (!question.against.empty() && !isReference)
    if (ExitCode code = loadProgram(question, question.against, false, context, second))
      return code;
  if (!knowsNames(question, first, second))
    return ExitWrongCall;
  tgl::KernelOp kernel = entryOf(*first.plainModule);
  json::Object hashes{{"file", first.textHash},
                      {"tgl", prove::hashOf(first.plain)},
                      {"question", hashOfQuestion(question)}};
  ExitCode code = ExitSuccess;
  certificate = json::Object{{"schema", "tegula.certificate"},
                             {"version", certificateVersion},
                             {"tegula", TEGULA_VERSION},
                             {"question", questionJson(question)}};
  if (question.safe) {
    prove::SafeCounts counts;
    certificate["safe"] = prove::recordSafety(kernel, counts);
    words += toText(counts);
    code = counts.open ? ExitUndecided : ExitSuccess;
  }
  if (question.isComparison()) {
    prove::Judgement judgement;
    if (ExitCode failed = compare(question, first, second, options, judgement, hashes)) {
      certificate.clear();
      return failed;
    }
    certificate["equal"] = prove::toJson(judgement, question.seed);
    words += prove::toText(judgement);
    code = worse(code, codeOf(judgement.verdict));
  }
  words += leftOut(question, first, second);
  certificate["sha256"] = std::move(hashes);
  return code;
}

/// The question of a certificate. Nothing, with the reason on standard error, where a key is not
/// known, is missing, or has a value of another type.
static std::optional<Question> questionOf(const json::Object &asked) {
  Question question;
  std::string wrong;
  auto check = [&](StringRef key, bool isFine) {
    if (!isFine && wrong.empty())
      wrong = key.str();
  };
  auto text = [&](StringRef key, std::string &into) {
    std::optional<StringRef> value = asked.getString(key);
    check(key, value.has_value());
    into = value.value_or("").str();
  };
  auto texts = [&](StringRef key, std::vector<std::string> &into) {
    const json::Array *array = asked.getArray(key);
    check(key, array);
    for (const json::Value &value : array ? *array : json::Array()) {
      check(key, value.getAsString().has_value());
      into.push_back(value.getAsString().value_or("").str());
    }
  };
  text("file", question.path);
  text("against", question.against);
  text("kernel", question.kernel);
  text("target", question.target);
  texts("sizes", question.sizes);
  texts("constants", question.constants);
  texts("types", question.types);
  texts("with", question.optionals);
  std::optional<bool> isScheduled = asked.getBoolean("scheduled"),
                      isSafe = asked.getBoolean("safe");
  std::optional<int64_t> ownRank = asked.getInteger("rank"), ownSeed = asked.getInteger("seed"),
                         ownSteps = asked.getInteger("steps");
  check("scheduled", isScheduled.has_value());
  check("safe", isSafe.has_value());
  check("rank", ownRank && *ownRank >= 0 && *ownRank <= UINT32_MAX);
  check("seed", ownSeed.has_value());
  check("steps", ownSteps && *ownSteps >= 0);
  question.scheduled = isScheduled.value_or(false);
  question.safe = isSafe.value_or(false);
  question.rank = unsigned(ownRank.value_or(1));
  question.seed = uint64_t(ownSeed.value_or(0));
  question.steps = uint64_t(ownSteps.value_or(0));
  check("against", question.isAsked());
  check("target", question.target == "cpu" || isDeviceTarget(question.target));
  json::Object known = questionJson(question);
  for (const auto &[key, value] : asked)
    check(StringRef(key), known.get(key));
  if (wrong.empty())
    return question;
  errs() << "tegula: '" << certificatePath << "': its question's '" << wrong
         << "' is unknown, missing or has no such value\n";
  return std::nullopt;
}

/// Asks again what a certificate answers, and holds the answers against each other.
static ExitCode repeat() {
  Expected<std::string> text = readFile(certificatePath, 64 << 20);
  if (!text) {
    errs() << "tegula: " << toString(text.takeError()) << '\n';
    return ExitWrongCall;
  }
  Expected<json::Value> parsed = json::parse(*text);
  const json::Object *given = parsed ? parsed->getAsObject() : nullptr;
  const json::Object *asked = given ? given->getObject("question") : nullptr;
  consumeError(parsed.takeError());
  if (!asked || given->getString("schema") != "tegula.certificate" ||
      given->getInteger("version") != certificateVersion) {
    errs() << "tegula: '" << certificatePath << "' is no certificate of this version\n";
    return ExitWrongCall;
  }
  std::optional<Question> question = questionOf(*asked);
  if (!question)
    return ExitWrongCall;
  // The programs may have moved; what they say is held against their hashes.
  json::Value before = json::Value(json::Object(*given));
  json::Object &named = *before.getAsObject()->getObject("question");
  if (!path.empty())
    named["file"] = question->path = path;
  if (!against.empty())
    named["against"] = question->against = against;
  json::Object found;
  std::string words;
  ExitCode code = answer(*question, found, words);
  if (found.empty())
    return code;
  bool isSame = true;
  auto tell = [&](StringRef part) {
    isSame = false;
    errs() << "tegula: the certificate's '" << part << "' is not what is found now\n";
  };
  std::set<std::string> parts;
  for (const json::Object *object : {before.getAsObject(), &found})
    for (const auto &[key, value] : *object)
      parts.insert(StringRef(key).str());
  for (const std::string &part : parts) {
    const json::Value *then = before.getAsObject()->get(part), *now = found.get(part);
    if (!then || !now || !(*then == *now))
      tell(part);
  }
  outs() << (isSame ? "the certificate holds: " : "now: ") << words;
  return isSame ? code : ExitWrongResult;
}

static ExitCode run() {
  if (!certificatePath.empty())
    return repeat();
  if (path.empty()) {
    errs() << "tegula: prove takes a file; 'tegula prove --help' shows how\n";
    return ExitWrongCall;
  }
  if (!StringRef(target).empty() && target != "cpu" && !isDeviceTarget(target)) {
    errs() << "tegula: --target takes cpu, or a device such as sm_90a, not '" << target << "'\n";
    return ExitWrongCall;
  }
  if (!tracer.empty() && (tracer.size() != 2 || tracer[0] < 3 || tracer[1] < 3)) {
    errs() << "tegula: --tracer takes two descriptors, from 3 on\n";
    return ExitWrongCall;
  }
  Question question{path,          against,   kernelName,     target, scheduled, safe, sizeTexts,
                    constantTexts, typeTexts, givenOptionals, rank,   seed,      steps};
  if (!question.isAsked()) {
    errs() << "tegula: prove takes one of --against=OTHER and --scheduled, or --safe\n";
    return ExitWrongCall;
  }
  json::Object certificate;
  std::string words;
  ExitCode code = answer(question, certificate, words);
  if (certificate.empty())
    return code;
  std::string text = formatv("{0:2}\n", json::Value(std::move(certificate))).str();
  outs() << (json ? text : words);
  if (!outPath.empty())
    if (Error error = writeFile(outPath, text)) {
      errs() << "tegula: " << toString(std::move(error)) << '\n';
      return ExitMissingResource;
    }
  return code;
}

const Command proveCommand = {sub, run};

} // namespace tegula
