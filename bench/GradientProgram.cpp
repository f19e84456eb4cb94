//===- GradientProgram.cpp - Derived backward passes beside autograd --------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "bench/GradientProgram.h"

#include "bench/ErrorBounds.h"
#include "frontend/OpenModule.h"
#include "grad/Gradient.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"
#include <cstring>

using namespace llvm;

namespace tegula::bench {

static constexpr StringRef prefix = "grad_";

static Error refuse(LaunchError::Kind kind, const Twine &why) {
  return make_error<LaunchError>(kind, why.str());
}

static Error noMemory(const Twine &name) {
  return refuse(LaunchError::OutOfMemory, "there is no memory for '" + name + "'");
}

static std::string textOf(const Diagnostics &diagnostics) {
  std::string text;
  raw_string_ostream stream(text);
  diagnostics.printText(stream, /*colors=*/false);
  return text;
}

Expected<std::unique_ptr<GradientProgram>>
GradientProgram::make(const Module &module, const ast::Kernel &kernel, const Instance &instance,
                      const std::vector<std::string> &wrt, CompileOptions options,
                      Diagnostics &diagnostics, std::string &refusal) {
  grad::GradientOptions wanted;
  wanted.instance = instance.options;
  wanted.wrt = wrt;
  wanted.instance.types.clear(); // generic in the gradient too
  for (const Signature::Parameter &one : Signature(kernel).parameters)
    if (one.isOptional && !is_contained(instance.options.givenOptionals, one.name) &&
        !instance.scalars.count(one.name))
      wanted.leftOut.push_back(one.name);
  std::optional<std::string> text = grad::gradientOf(module, wanted, diagnostics);
  if (!text) {
    refusal = textOf(diagnostics);
    return nullptr;
  }
  std::unique_ptr<GradientProgram> made(new GradientProgram);
  uint32_t file = made->sources.add("gradient of " + kernel.name.name, std::move(*text));
  made->module = openModule(made->sources, file, made->diagnostics);
  made->entry = made->module->entry("");
  Signature signature(*made->entry);
  made->forwardModule = &module;
  made->forwardOptions = options;
  made->forwardOptions.instance = instance.options;
  options.instance = {};
  options.instance.kernel = made->entry->name.name;
  options.instance.precision = instance.options.precision;
  if (signature.hasEllipsis)
    options.instance.ellipsisRank = instance.options.ellipsisRank;
  for (const auto &[name, type] : instance.options.types)
    if (is_contained(signature.genericTypes, name))
      options.instance.types[name] = type;
  made->options = options;
  Expected<std::unique_ptr<Runner>> runner =
      Runner::make(*made->module, std::move(options), made->diagnostics);
  if (!runner)
    return runner.takeError();
  if (!*runner) {
    refusal = textOf(made->diagnostics);
    return nullptr;
  }
  made->runner = std::move(*runner);
  return std::move(made);
}

/// What an output or inout of the kernel is called in its gradient program.
static std::string nameAfter(const KernelArgument &argument) {
  return argument.name + (argument.role == KernelArgument::Inout ? "_after" : "");
}

/// Of the kernel or of its gradient program.
using BoundsMaker = std::function<std::unique_ptr<ErrorBounds>(bool isForward)>;

namespace {
class GradientSubject : public Subject {
public:
  GradientSubject(std::unique_ptr<Launch> backward, std::unique_ptr<Launch> forward,
                  std::vector<std::optional<Tensor>> weights, std::vector<std::string> wanted,
                  StringSet<> computed, unsigned numRounded, BoundsMaker boundsOf,
                  const Reference &reference)
      : Subject(std::move(backward)), forward(std::move(forward)), weights(std::move(weights)),
        wanted(std::move(wanted)), computed(std::move(computed)), numRounded(numRounded),
        boundsOf(std::move(boundsOf)), reference(reference) {}

  /// What the program takes from the forward pass was rounded like a temporary.
  unsigned roundings() const override { return launch().roundings() + 2 * numRounded; }

  /// What the program takes from the forward pass has that one's error.
  std::optional<std::vector<std::vector<double>>> errorBounds() override {
    ErrorBounds::ByName ofInputs;
    bool takes = any_of(launch().kernel().arguments, [&](const KernelArgument &argument) {
      return computed.contains(argument.name);
    });
    if (takes) {
      std::unique_ptr<ErrorBounds> before = boundsOf(/*isForward=*/true);
      std::optional<ErrorBounds::ByName> found;
      if (!before || !(found = before->at(*forward, {})))
        return std::nullopt;
      for (const KernelArgument &argument : forward->kernel().arguments)
        if (auto errors = found->find(argument.name); errors != found->end())
          ofInputs[nameAfter(argument)] = std::move(errors->second);
    }
    std::unique_ptr<ErrorBounds> own = boundsOf(/*isForward=*/false);
    std::optional<ErrorBounds::ByName> found;
    if (!own || !(found = own->at(launch(), ofInputs)))
      return std::nullopt;
    std::vector<std::vector<double>> bounds;
    for (unsigned argument : launch().resultArguments())
      bounds.push_back((*found)[launch().kernel().arguments[argument].name]);
    return bounds;
  }

  std::optional<std::vector<Tensor>> expected(bool float64, std::string &error) override {
    std::unique_ptr<Reference::Tape> wide;
    if (float64 && !(wide = record(/*float64=*/true, error)))
      return std::nullopt;
    if (!float64 && !recordOnce(error))
      return std::nullopt;
    std::optional<std::vector<Tensor>> found = (float64 ? wide : tape)->gradients(error);
    if (!found)
      return std::nullopt;
    // They come in the order of the reference's parameters.
    std::map<std::string, Tensor> byName;
    auto next = found->begin();
    for (const std::string &name : reference.parameters())
      if (is_contained(wanted, name))
        byName.emplace(name, std::move(*next++));
    std::vector<Tensor> ordered;
    for (const std::string &name : wanted)
      ordered.push_back(std::move(byName.at(name)));
    return ordered;
  }

  std::optional<double> time(std::string &error) override {
    return recordOnce(error) ? tape->time(error) : std::nullopt;
  }

private:
  std::unique_ptr<Reference::Tape> record(bool float64, std::string &error) const {
    SmallVector<const Tensor *> adjoints;
    for (const std::optional<Tensor> &one : weights)
      adjoints.push_back(one ? &*one : nullptr);
    return reference.record(forward->refValues(), wanted, adjoints, float64, error);
  }
  bool recordOnce(std::string &error) {
    if (!tape)
      tape = record(/*float64=*/false, error);
    return tape != nullptr;
  }

  std::unique_ptr<Launch> forward;
  std::vector<std::optional<Tensor>> weights; // of the kernel's outputs
  std::vector<std::string> wanted;            // tensors whose gradients the program gives
  StringSet<> computed;                       // what the forward pass gave
  unsigned numRounded;
  BoundsMaker boundsOf;
  const Reference &reference;
  std::unique_ptr<Reference::Tape> tape; // in the inputs' types
};
} // namespace

static std::optional<Tensor> copyOf(const Tensor &tensor) {
  std::optional<Tensor> copy = Tensor::make(tensor.dtype(), tensor.shape());
  if (copy && tensor.bytes())
    std::memcpy(copy->data(), tensor.data(), tensor.bytes());
  return copy;
}

Expected<Tensor> GradientProgram::adjointOf(const std::string &name, DType type,
                                            ArrayRef<int64_t> shape, const Launch &forward,
                                            const Launch::Inputs &inputs) {
  std::optional<Tensor> adjoint = Tensor::make(type, shape);
  if (!adjoint)
    return noMemory(name);
  const InputSpec *spec = nullptr;
  for (const InputSpec &one : *inputs.specs)
    if (one.name == name)
      spec = &one;
  RefValues values = forward.refValues();
  auto valueOf = [&](StringRef size) -> std::optional<double> {
    auto found = values.find(size.str());
    const int64_t *value = found == values.end() ? nullptr : std::get_if<int64_t>(&found->second);
    return value ? std::optional<double>(*value) : std::nullopt;
  };
  std::string error;
  if (!fill(*adjoint, name, spec, inputs.seed, valueOf, error))
    return refuse(LaunchError::WrongCall, "input '" + name + "': " + error);
  return std::move(*adjoint);
}

Expected<std::unique_ptr<Subject>> GradientProgram::subject(std::unique_ptr<Launch> forward,
                                                            const Reference &reference,
                                                            Launch::Inputs inputs) const {
  if (Expected<double> seconds = forward->run(); !seconds)
    return seconds.takeError();
  std::vector<unsigned> outputs = forward->resultArguments();
  Expected<std::vector<Tensor>> results = forward->results();
  if (!results)
    return results.takeError();
  // What the program may take, by name: inputs, outputs as they were computed, adjoints.
  std::map<std::string, Tensor> known;
  const CompiledKernel &compiled = forward->kernel();
  auto addCopy = [&](const std::string &name, const Tensor &from) -> Error {
    std::optional<Tensor> copy = copyOf(from);
    if (!copy)
      return noMemory(name);
    known.insert_or_assign(name, std::move(*copy));
    return Error::success();
  };
  for (auto [index, argument] : enumerate(compiled.arguments))
    if (argument.role == KernelArgument::In || argument.role == KernelArgument::Inout)
      if (Error error = addCopy(argument.name, forward->host(index)))
        return std::move(error);
  std::vector<std::optional<Tensor>> weights;
  StringSet<> computed;
  for (auto [index, result] : zip_equal(outputs, *results)) {
    const KernelArgument &argument = compiled.arguments[index];
    std::string name = nameAfter(argument);
    weights.emplace_back();
    if (isFloat(argument.dtype)) {
      std::string own = (prefix + name).str();
      Expected<Tensor> adjoint = adjointOf(own, argument.dtype, result.shape(), *forward, inputs);
      if (!adjoint)
        return adjoint.takeError();
      if (Error error = addCopy(own, *adjoint))
        return std::move(error);
      weights.back() = std::move(*adjoint);
    }
    computed.insert(name);
    known.insert_or_assign(name, std::move(result));
  }
  std::vector<std::string> wanted;
  Instance shapes;
  unsigned numRounded = 0;
  for (const KernelArgument &argument : runner->kernel().arguments) {
    if (argument.role == KernelArgument::Out) {
      wanted.push_back(StringRef(argument.name).drop_front(prefix.size()).str());
      if (is_contained(reference.parameters(), wanted.back()))
        continue;
      return refuse(LaunchError::WrongCall,
                    "the reference has no parameter '" + wanted.back() +
                        "', with respect to which the kernel has a gradient");
    }
    auto given = known.find(argument.name);
    if (given == known.end())
      continue; // a scalar of the kernel
    numRounded += computed.contains(argument.name) && bitWidth(argument.dtype) <= 16;
    if (argument.role == KernelArgument::Scalar) // an element of no dims
      inputs.scalars[argument.name] = given->second.real(0);
    else
      shapes.shapes[argument.name] = given->second.shape().vec();
  }
  Expected<SizeValues> sizes = runner->sizes(Signature(*entry), shapes);
  if (!sizes)
    return sizes.takeError();
  inputs.given = std::move(known);
  Expected<std::unique_ptr<Launch>> backward = Launch::make(*runner, *sizes, std::move(inputs));
  if (!backward)
    return backward.takeError();
  auto boundsOf = [this](bool isForward) {
    return isForward ? ErrorBounds::make(*forwardModule, forwardOptions)
                     : ErrorBounds::make(*module, options);
  };
  // The reference reads inputs of the forward pass, not what it wrote.
  if (Error error = forward->prepare())
    return std::move(error);
  return std::make_unique<GradientSubject>(
      std::move(*backward), std::move(forward), std::move(weights), std::move(wanted),
      std::move(computed), numRounded, std::move(boundsOf), reference);
}

} // namespace tegula::bench
