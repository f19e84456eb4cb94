//===- Describe.cpp - A compiled kernel as JSON ------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/capi/Describe.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using namespace llvm;

namespace tegula::capi {

static json::Array textsOf(ArrayRef<IndexExpr> dims) {
  json::Array texts;
  for (const IndexExpr &dim : dims)
    texts.push_back(dim.str());
  return texts;
}

static json::Array argumentsOf(const CompiledKernel &kernel) {
  static const char *roles[] = {"in", "inout", "out", "scalar"};
  json::Array result;
  for (const KernelArgument &argument : kernel.arguments)
    if (!argument.isObserved)
      result.push_back(json::Object{{"name", argument.name},
                                    {"role", roles[argument.role]},
                                    {"dtype", toString(argument.dtype)},
                                    {"dims", textsOf(argument.dims)}});
  return result;
}

/// JSON has no infinities.
static json::Value valueOf(const checked::Constant &constant) {
  if (auto *integer = std::get_if<int64_t>(&constant.value))
    return *integer;
  if (auto *truth = std::get_if<bool>(&constant.value))
    return *truth;
  if (auto *number = std::get_if<double>(&constant.value))
    return std::isfinite(*number) ? json::Value(*number)
                                  : json::Value(std::isnan(*number) ? "nan"
                                                : *number > 0       ? "inf"
                                                                    : "-inf");
  return json::Array(std::get<std::vector<int64_t>>(constant.value));
}

static json::Array sizesOf(const CompiledKernel &kernel) {
  json::Array result;
  for (const SizeSpec &size : kernel.checks->sizes()) {
    json::Object one{{"name", size.name}};
    if (size.boundBy)
      one["bound_by"] =
          json::Object{{"argument", size.boundBy->first}, {"dim", size.boundBy->second}};
    else
      one["definition"] = size.definition.str();
    result.push_back(std::move(one));
  }
  return result;
}

std::string describe(const CompiledKernel &kernel) {
  json::Array constants, guards, temporaries, phases;
  for (const checked::Constant &constant : kernel.constants)
    constants.push_back(json::Object{{"name", constant.name}, {"value", valueOf(constant)}});
  for (const GuardSpec &guard : kernel.checks->guards())
    guards.push_back(
        json::Object{{"condition", guard.str()}, {"message", json::fixUTF8(guard.message)}});
  for (const KernelTemporary &temporary : kernel.temporaries)
    temporaries.push_back(json::Object{{"name", temporary.name},
                                       {"dtype", toString(temporary.dtype)},
                                       {"dims", textsOf(temporary.dims)}});
  for (const PhaseTime &time : kernel.times)
    phases.push_back(json::Object{{"phase", time.phase}, {"milliseconds", time.milliseconds}});
  json::Object object{{"schema", "tegula.kernel"},
                      {"version", 1},
                      {"name", kernel.name},
                      {"target", kernel.target},
                      {"arguments", argumentsOf(kernel)},
                      {"constants", std::move(constants)},
                      {"sizes", sizesOf(kernel)},
                      {"guards", std::move(guards)},
                      {"temporaries", std::move(temporaries)},
                      {"phases", std::move(phases)}};
  if (!kernel.assembler.empty())
    object["assembler"] = kernel.assembler;
  std::string text;
  raw_string_ostream stream(text);
  stream << json::Value(std::move(object));
  return text;
}

} // namespace tegula::capi
