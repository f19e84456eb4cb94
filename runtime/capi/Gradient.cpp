//===- Gradient.cpp - Gradients of the C interface ---------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "grad/Gradient.h"

#include "runtime/ForkGate.h"
#include "runtime/capi/Handles.h"
#include "runtime/capi/Report.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace tegula;
using namespace tegula::capi;

static_assert(int(TEGULA_SAVED_BY_COST) == int(grad::SavedOutputs::ByCost) &&
              int(TEGULA_SAVED_ALL) == int(grad::SavedOutputs::All) &&
              int(TEGULA_SAVED_NONE) == int(grad::SavedOutputs::None));

/// The caller's options as those of `gradientOf`; false, with what is wrong in `error`.
static bool readGradientOptions(const tegula_gradient_options &given, const ast::Kernel &kernel,
                                grad::GradientOptions &options, std::string &error) {
  auto fail = [&](const Twine &what) {
    error = what.str();
    return false;
  };
  if ((given.num_wrt && !given.wrt) || (given.num_settings && !given.settings) ||
      (given.num_left_out && !given.left_out))
    return fail("a list has a length and is NULL");
  Signature signature(kernel);
  Settings settings;
  for (const tegula_setting &one : ArrayRef(given.settings, given.num_settings)) {
    if (!one.name || !one.value)
      return fail("a setting has no name or no value");
    settings.push_back({one.name, one.value});
  }
  Instance instance;
  if (!signature.sort(settings, instance, error))
    return false;
  if (!instance.scalars.empty())
    return fail("'" + instance.scalars.begin()->first +
                "' is a scalar, which stays a parameter of the gradient");
  if (!instance.sizes.empty())
    return fail("kernel '" + kernel.name.name + "' has no constant or generic type '" +
                instance.sizes.begin()->first + "'");
  options.instance.constants = std::move(instance.options.constants);
  options.instance.types = std::move(instance.options.types);
  options.instance.kernel = kernel.name.name;
  if (given.has_ellipsis_rank && signature.hasEllipsis)
    options.instance.ellipsisRank = given.ellipsis_rank;
  for (const char *name : ArrayRef(given.left_out, given.num_left_out)) {
    const Signature::Parameter *parameter = name ? signature.find(name) : nullptr;
    if (!parameter || !parameter->isOptional)
      return fail("kernel '" + kernel.name.name + "' has no optional tensor or scalar '" +
                  (name ? name : "") + "'");
    options.leftOut.push_back(name);
  }
  for (const char *name : ArrayRef(given.wrt, given.num_wrt)) {
    if (!name)
      return fail("a name of a tensor is NULL");
    options.wrt.push_back(name);
  }
  if (given.saved != TEGULA_SAVED_BY_COST && given.saved != TEGULA_SAVED_ALL &&
      given.saved != TEGULA_SAVED_NONE)
    return fail("'saved' is no tegula_saved_outputs");
  options.saved = static_cast<grad::SavedOutputs>(given.saved);
  return true;
}

const char *tegula_program_text(const tegula_program *program) {
  return program ? program->text.c_str() : nullptr;
}

tegula_status tegula_gradient(const tegula_program *program, const tegula_gradient_options *given,
                              tegula_program **gradient, tegula_message **message) {
  Report report(message);
  tegula_gradient_options options;
  if (!gradient)
    return report.fail(TEGULA_WRONG_CALL, "no place for the gradient is given");
  *gradient = nullptr;
  if (!program)
    return report.fail(TEGULA_WRONG_CALL, "no program is given");
  if (!readOptions(given, options))
    return report.fail(TEGULA_WRONG_CALL, "struct_bytes of the gradient's options is not set");
  std::optional<std::string> text;
  {
    ForkGate gate;
    std::unique_ptr<Parsed> parsed = program->parse();
    const ast::Kernel *kernel = parsed->module->entry(options.kernel ? options.kernel : "");
    if (!kernel)
      return report.fail(TEGULA_WRONG_CALL, Twine("the program has no kernel '") +
                                                (options.kernel ? options.kernel : "") + "'");
    grad::GradientOptions made;
    std::string error;
    if (!readGradientOptions(options, *kernel, made, error))
      return report.fail(TEGULA_WRONG_CALL, error);
    text = grad::gradientOf(*parsed->module, made, parsed->diagnostics);
    report.add(parsed->diagnostics);
    if (!text)
      return TEGULA_WRONG_PROGRAM;
  }
  return tegula_parse(text->data(), text->size(), ("gradient of " + program->fileName).c_str(),
                      gradient, nullptr);
}
