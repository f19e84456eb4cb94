//===- Signature.h - What a kernel's parameters are called ------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A case of a reference, the command line and the C interface give values by name: `M=64, eps=1e-3,
// T=f16, step=7`. The declaration of the kernel says which of them is a size, a constant, a type or
// a scalar.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_CHECK_SIGNATURE_H
#define TEGULA_FRONTEND_CHECK_SIGNATURE_H

#include "frontend/ast/AST.h"
#include "frontend/check/InstanceOptions.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace tegula {

/// Values by name, as text.
using Settings = std::vector<std::pair<std::string, std::string>>;

/// A scalar as it was written: integers of 64 bits exactly, those from 2^63 on as a uint64_t.
using ScalarSetting = std::variant<int64_t, uint64_t, double>;

/// Settings sorted by what they are.
struct Instance {
  InstanceOptions options; // constants, types, rank of `...`; the caller adds optional tensors
  std::map<std::string, int64_t> sizes;
  std::vector<int64_t> ellipsis;
  std::map<std::string, ScalarSetting> scalars;
  std::map<std::string, std::vector<int64_t>> shapes; // of tensors that are there
  /// Two instances with equal keys are the same compiled kernel, run at other sizes.
  std::string key() const;
};

struct Signature {
  struct Parameter {
    enum Kind { Tensor, Scalar, Constant, Tuple } kind = Tensor;
    std::string name, type;
    bool isOptional = false, isInout = false;
    int ellipsisAt = -1; // position of `...` among the written dims
    unsigned dims = 0;   // written dims, `...` included
  };
  std::vector<Parameter> parameters;
  std::vector<std::string> genericTypes;
  bool hasEllipsis = false;

  explicit Signature(const ast::Kernel &kernel);
  const Parameter *find(llvm::StringRef name) const;
  /// The first constant that has neither a default nor a value; null where there is none.
  const Parameter *missing(const InstanceOptions &options) const;
  /// `'n': -p n=1`, how the command line gives a constant or scalar a value.
  static std::string howToGive(const Parameter &parameter);

  /// The value of a number as written; nothing where it is none.
  using NumberOf = llvm::function_ref<std::optional<double>(llvm::StringRef text)>;
  /// `12`, `1e-3`, `inf`, `-inf`, `pi`.
  static std::optional<double> parseLiteral(llvm::StringRef text);

  /// False, with an error, where a value is not one of its kind. A name that is no parameter or
  /// type is taken for a size.
  bool sort(const Settings &settings, Instance &instance, std::string &error,
            NumberOf numberOf = parseLiteral) const;
};

} // namespace tegula

#endif // TEGULA_FRONTEND_CHECK_SIGNATURE_H
