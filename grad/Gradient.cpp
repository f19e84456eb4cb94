//===- Gradient.cpp - The backward program of a kernel ------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "grad/Gradient.h"

#include "frontend/Check.h"
#include "frontend/OpenModule.h"
#include "frontend/print/Printer.h"
#include "grad/Derive.h"
#include "grad/Flatten.h"
#include "grad/Scores.h"
#include "grad/Writer.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace tegula::checked;

namespace tegula::grad {

namespace {
/// Makes the program of one kernel's gradient.
class GradientMaker {
public:
  GradientMaker(const Module &module, const GradientOptions &options, Diagnostics &diagnostics)
      : module(module), options(options), diagnostics(diagnostics) {}
  std::optional<std::string> make();

private:
  bool chooseTypes(InstanceOptions &instance);
  bool chooseWrt(const Program &program, std::vector<const Tensor *> &wrt);
  bool report(const Refusal &refusal);
  void findEllipsis(const Program &program);
  std::string parameters(Writer &writer, const Program &program, const Derivation &derivation,
                         const UsedNames &used);
  std::string invariantSizes(const Program &program, const UsedNames &used) const;
  std::optional<std::string> write(Builder &builder, const Derivation &derivation);
  std::optional<std::string> format(const std::string &text);

  const Module &module;
  const GradientOptions &options;
  Diagnostics &diagnostics;
  const ast::Kernel *kernel = nullptr;
  /// Generic names by the type that stands in for each.
  std::map<DType, std::string> typeNames;
  std::string ellipsis;           // the size of `...`
  StringMap<std::string> tupleOf; // parameters that are open tuples, by the symbols of their parts
  Refusal refusal;
};
} // namespace

bool GradientMaker::report(const Refusal &found) {
  Span span = found.span.isValid() ? found.span : kernel->name.span;
  diagnostics.report(Code::NoGradient, span, "no gradient: " + found.reason)
      .note("docs/grad.md lists what has a rule; another form of the same equation may have one");
  return false;
}

//===----------------------------------------------------------------------===//
// The instance
//===----------------------------------------------------------------------===//

/// Takes a storage type of its own for each generic name that stands for floats, so that what is
/// rounded to that type can be told from other values. Names beyond these types are f32.
bool GradientMaker::chooseTypes(InstanceOptions &instance) {
  std::unique_ptr<Program> plain = check(module, instance, diagnostics);
  if (!plain)
    return false;
  SmallVector<DType> free{DType::BF16, DType::F16, DType::F8E4M3, DType::F8E5M2};
  StringRef text = module.sourceManager().text(module.file().id);
  erase_if(free, [&](DType type) { return text.contains(toString(type)); });
  StringSet<> seen;
  for (const auto *params : {&kernel->params, &kernel->outputs})
    for (const ast::Param &param : *params) {
      const std::string &name = param.type.name;
      if (name.empty() || !isUpper(name[0]) || parseDType(name) || !seen.insert(name).second ||
          instance.types.count(name))
        continue;
      auto tensor = find_if(plain->tensors, [&](const Tensor &one) {
        return one.name == param.name.name && one.kind != Tensor::Temp;
      });
      if (tensor == plain->tensors.end() || !isFloat(tensor->type) || free.empty())
        continue;
      instance.types[name] = free.front();
      typeNames[free.front()] = name;
      free.erase(free.begin());
    }
  return true;
}

void GradientMaker::findEllipsis(const Program &program) {
  if (options.instance.ellipsisRank)
    return;
  for (const ast::Param &param : kernel->params)
    for (auto [d, dim] : enumerate(param.dims))
      if (dim.ellipsis)
        for (const Tensor *tensor : program.inputs)
          if (tensor->name == param.name.name && d < tensor->dims.size())
            if (std::optional<IndexVar> var = tensor->dims[d].asVariable(); var && var->isSymbol())
              ellipsis = var->name().str();
}

bool GradientMaker::chooseWrt(const Program &program, std::vector<const Tensor *> &wrt) {
  for (const std::string &name : options.wrt) {
    auto found = find_if(program.inputs, [&](const Tensor *one) { return one->name == name; });
    if (found == program.inputs.end())
      return report({"kernel '" + kernel->name.name + "' has no tensor '" + name + "'", {}});
    if (!isFloat((*found)->type))
      return report({"'" + name + "' is a tensor of " + toString((*found)->type).str() +
                         ", which has no gradient",
                     {}});
    wrt.push_back(*found);
  }
  if (options.wrt.empty())
    for (const Tensor *input : program.inputs)
      if (isFloat(input->type))
        wrt.push_back(input);
  if (wrt.empty())
    return report({"kernel '" + kernel->name.name + "' takes no tensor of floats", {}});
  return true;
}

//===----------------------------------------------------------------------===//
// The text
//===----------------------------------------------------------------------===//

static void symbolsOf(const IndexExpr &expr, StringSet<> &into) {
  for (const IndexVar &var : expr.variables())
    if (var.isSymbol())
      into.insert(var.name());
}

/// Whether the size is a dim such as 2*N, which has no name.
static bool isNamelessDim(const Program &program, const Size &size) {
  if (!size.boundBy)
    return false;
  auto [input, dim] = *size.boundBy;
  return program.inputs[input]->dims[dim] != IndexExpr::symbol(size.name);
}

/// Whether such a dim binds the size: its definition uses that.
static bool isBoundByDim(const Program &program, const Size &size) {
  return any_of(size.definition.variables(), [&](const IndexVar &at) {
    return any_of(program.sizes, [&](const Size &other) {
      return at.isSymbol() && other.name == at.name() && isNamelessDim(program, other);
    });
  });
}

/// The canonical form of a program that the checker takes.
std::optional<std::string> GradientMaker::format(const std::string &text) {
  SourceManager sources;
  Diagnostics unheard(sources);
  uint32_t file = sources.add("gradient", text);
  std::unique_ptr<Module> parsed = openModule(sources, file, unheard);
  if (!unheard.hasErrors())
    checkAll(*parsed, "", /*remarks=*/false, unheard);
  for (const Diagnostic &one : unheard.all())
    if (one.severity == Severity::Error) {
      if (one.code == Code::InvariantSum)
        report({"it has " + one.message +
                    ", and is invariant as the kernel is; --wrt takes the "
                    "tensors whose gradients have no such sum",
                {}});
      else if (ellipsis.empty()) // else a number of dims is tried in the place of `...`
        report({"the program of it would be refused: " + one.message, {}});
      return std::nullopt;
    }
  return print(parsed->file(), sources.text(file));
}

/// Parameters whose elements or dims the equations use, then outputs that are read, then the
/// gradients of outputs.
std::string GradientMaker::parameters(Writer &writer, const Program &program,
                                      const Derivation &derivation, const UsedNames &used) {
  SmallVector<std::string> params;
  auto declare = [&](const Tensor &tensor, StringRef type) {
    params.push_back((writer.nameOf(&tensor) + ": " + writer.declaration(tensor, type)).str());
  };
  // Sizes that no tensor in use shows bare are bound by others.
  SmallVector<const Tensor *> all(program.inputs.begin(), program.inputs.end());
  append_range(all, derivation.saved);
  append_range(all, derivation.seeds);
  StringSet<> isBare, isSomewhereBare;
  for (const Tensor *tensor : all)
    for (const IndexExpr &dim : tensor->dims)
      if (dim.asVariable()) {
        symbolsOf(dim, isSomewhereBare);
        if (used.tensors.contains(tensor))
          symbolsOf(dim, isBare);
      }
  auto binds = [&](const Tensor &tensor) {
    bool result = false;
    for (const IndexExpr &dim : tensor.dims)
      for (const IndexVar &var : dim.variables()) {
        if (!var.isSymbol() || !used.symbols.contains(var.name()) || isBare.contains(var.name()))
          continue;
        if (!dim.asVariable() && isSomewhereBare.contains(var.name()))
          continue; // a tensor that shows it bare follows
        result = true;
        if (dim.asVariable())
          isBare.insert(var.name());
      }
    return result;
  };
  auto typeOfOutput = [&](StringRef name) {
    for (const ast::Param &param : kernel->outputs)
      if (param.name.name == name)
        return param.type.name;
    for (const ast::Param &param : kernel->params)
      if (param.isInout && param.name.name + "_after" == name)
        return param.type.name;
    return std::string("f32");
  };
  // A gradient's generic type is bound by some parameter of that type.
  StringSet<> shownTypes;
  for (const ast::Param &param : kernel->params)
    if (any_of(program.inputs, [&](const Tensor *one) {
          return one->name == param.name.name && used.tensors.contains(one);
        }))
      shownTypes.insert(param.type.name);
  for (const Tensor *tensor : derivation.saved)
    shownTypes.insert(typeOfOutput(tensor->name));
  for (const Tensor *tensor : derivation.seeds)
    if (used.tensors.contains(tensor))
      shownTypes.insert(typeOfOutput(StringRef(tensor->name).drop_front(5)));
  auto bindsType = [&](const ast::Param &param) {
    bool isGradient = any_of(derivation.gradients, [&](const Tensor *one) {
      return one->name == "grad_" + param.name.name;
    });
    return isGradient && shownTypes.insert(param.type.name).second && !parseDType(param.type.name);
  };
  for (const ast::Param &param : kernel->params) {
    auto tensor =
        find_if(program.inputs, [&](const Tensor *one) { return one->name == param.name.name; });
    if (tensor != program.inputs.end()) {
      bool bindsSizes = used.tensors.contains(*tensor) || binds(**tensor);
      if (bindsType(param) || bindsSizes)
        declare(**tensor, param.type.name);
      continue;
    }
    auto scalar = find_if(program.scalars,
                          [&](const ScalarParam *one) { return one->name == param.name.name; });
    if (scalar != program.scalars.end()) {
      if (used.scalars.contains(*scalar))
        params.push_back(param.name.name + ": " + param.type.name);
      continue;
    }
    auto open = find_if(program.sizes, [&](const Size &size) {
      return size.isOpen && size.name == param.name.name;
    });
    if (open != program.sizes.end() && used.symbols.contains(param.name.name))
      params.push_back(param.name.name + ": int");
    if (any_of(tupleOf, [&](const auto &entry) {
          return entry.second == param.name.name && used.symbols.contains(entry.first());
        }))
      params.push_back(param.name.name + ": int[" + print(*param.dims[0].expr) + "]");
  }
  for (const Tensor *tensor : derivation.saved)
    declare(*tensor, typeOfOutput(tensor->name));
  for (const Tensor *tensor : derivation.seeds)
    if (used.tensors.contains(tensor) || binds(*tensor))
      declare(*tensor, typeOfOutput(StringRef(tensor->name).drop_front(5)));
  return join(params, ", ");
}

/// The sizes of `invariant` that the gradient has, by their names.
std::string GradientMaker::invariantSizes(const Program &program, const UsedNames &used) const {
  std::string result;
  for (const Size &size : program.sizes)
    if (is_contained(program.invariant, size.name) && used.symbols.contains(size.name) &&
        !size.isOpen && !size.isUnnamed && size.name != ellipsis && !isNamelessDim(program, size))
      result += (result.empty() ? "" : ", ") + size.name;
  return result;
}

std::optional<std::string> GradientMaker::write(Builder &builder, const Derivation &derivation) {
  const Program &program = builder.program;
  Writer writer(builder, typeNames, ellipsis, refusal);
  // Names that stay: parameters, sizes, and what is given.
  for (const Size &size : program.sizes)
    if (!size.isUnnamed)
      writer.reserve(size.name);
  // The parts of a tuple that is given at the call.
  for (const ast::Param &param : kernel->params)
    if (param.type.name == "int" && param.hasDims && param.dims.size() == 1)
      for (int64_t d = 0; d != 8; ++d)
        for (const Size &size : program.sizes)
          if (size.isOpen && size.name == param.name.name + std::to_string(d)) {
            writer.spell(size.name, param.name.name + "[" + std::to_string(d) + "]");
            tupleOf[size.name] = param.name.name;
          }
  for (const ScalarParam *scalar : program.scalars)
    writer.reserve(scalar->name);
  for (const Tensor *tensor : program.inputs)
    writer.name(tensor);
  for (const Tensor *tensor : derivation.saved)
    writer.name(tensor);
  for (const Tensor *tensor : derivation.seeds)
    writer.name(tensor);
  for (const Tensor *tensor : derivation.gradients)
    writer.nameOutput(tensor);
  for (const auto *part : {&derivation.seeds, &derivation.gradients})
    for (const Tensor *tensor : *part)
      if (writer.nameOf(tensor) != tensor->name) {
        report({"the gradient of '" + tensor->name.substr(5) + "' is called '" + tensor->name +
                    "', and so is a parameter or size of the kernel: rename that",
                {}});
        return std::nullopt;
      }
  for (const auto *part : {&derivation.forward, &derivation.backward})
    writer.nameTargets(*part);
  std::string body;
  if (program.precision)
    body += "  precision " + *program.precision + "\n";
  if (program.deterministic)
    body += "  deterministic\n";
  UsedNames used = usedNames(builder, derivation);
  if (std::string sizes = invariantSizes(program, used); !sizes.empty())
    body += "  invariant " + sizes + "\n";
  if (!derivation.forward.empty())
    body += "  # values of " + kernel->name.name + ", computed again\n";
  body += writer.statements(derivation.forward);
  if (!derivation.forward.empty())
    body += "\n";
  body += writer.statements(derivation.backward);
  std::string head = "kernel " + kernel->name.name + "_grad(" +
                     parameters(writer, program, derivation, used) + ") -> (";
  for (auto [i, tensor] : enumerate(derivation.gradients)) {
    auto param = find_if(kernel->params, [&](const ast::Param &one) {
      return "grad_" + one.name.name == tensor->name;
    });
    head += (i ? ", " : "") + writer.nameOf(tensor).str() + ": " +
            writer.declaration(*tensor, param->type.name);
  }
  head += ")";
  std::string sizes;
  for (const Size &size : program.sizes)
    if (!size.boundBy && !size.isOpen && !size.isUnnamed && used.symbols.contains(size.name) &&
        !isBoundByDim(program, size))
      sizes +=
          (sizes.empty() ? " where " : ", ") + size.name + " = " + writer.size(size.definition);
  if (!writer.isFine()) {
    if (!writer.isEllipsisWrong() || ellipsis.empty()) {
      report(refusal);
      return std::nullopt;
    }
    return std::nullopt;
  }
  std::string comment = "# The gradients of " + kernel->name.name + " with respect to ";
  for (auto [i, tensor] : enumerate(derivation.gradients))
    comment += (i ? ", " : "") + tensor->name.substr(5);
  if (!derivation.saved.empty()) {
    comment += "\n# Takes from the forward pass: ";
    for (auto [i, tensor] : enumerate(derivation.saved))
      comment += (i ? ", " : "") + tensor->name;
    if (options.saved == SavedOutputs::ByCost)
      comment += " (each element is a reduction, which costs more than reading it)";
  }
  return format(comment + "\n" + head + sizes + " {\n" + body + "}\n");
}

std::optional<std::string> GradientMaker::make() {
  kernel = module.entry(options.instance.kernel);
  InstanceOptions instance = options.instance;
  instance.kernel = kernel->name.name;
  for (const ast::Param &param : kernel->params)
    if (param.defaultValue && (param.hasDims || parseDType(param.type.name)) &&
        param.type.name != "int" && param.type.name != "float" && param.type.name != "bool" &&
        !is_contained(options.leftOut, param.name.name))
      instance.givenOptionals.push_back(param.name.name);
  if (!chooseTypes(instance))
    return std::nullopt;
  // With `...` first, and where one of its indices is a number for one dim in its place.
  for (bool keepsEllipsis : {true, false}) {
    std::unique_ptr<Program> program = check(module, instance, diagnostics);
    if (!program)
      return std::nullopt;
    ellipsis.clear();
    if (keepsEllipsis)
      findEllipsis(*program);
    std::vector<const Tensor *> wrt;
    if (!chooseWrt(*program, wrt))
      return std::nullopt;
    Builder builder(*program);
    std::optional<std::vector<Equation>> equations = flatten(builder, refusal);
    std::optional<Derivation> derivation;
    if (equations)
      derivation =
          derive(builder, std::move(*equations), wrt, !options.wrt.empty(), options.saved, refusal);
    if (!derivation) {
      report(refusal);
      return std::nullopt;
    }
    SmallVector<DType> shortTypes{DType::BF16, DType::F16};
    for (const auto &[type, name] : typeNames)
      shortTypes.push_back(type);
    leaveScoresUnstored(builder, *derivation, shortTypes);
    if (std::optional<std::string> text = write(builder, *derivation))
      return text;
    if (diagnostics.hasErrors() || ellipsis.empty())
      return std::nullopt;
  }
  return std::nullopt;
}

std::optional<std::string> gradientOf(const Module &module, const GradientOptions &options,
                                      Diagnostics &diagnostics) {
  return GradientMaker(module, options, diagnostics).make();
}

} // namespace tegula::grad
