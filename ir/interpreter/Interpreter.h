//===- Interpreter.h - Runs tgl IR on host buffers ----------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The meaning of tgl IR, executed: the oracle for every later stage, and the checker of accesses
// (`--checked`) and of tile loops (any tile size).
//
// Numbers. Tensors hold the real storage formats. An f32 operation computes in float, an f64 one in
// double. Elementary functions (exp, sin, pow, ...) come from libm in double and are rounded to
// float once. Accumulation (sum, prod, mean, var, logsumexp, cumulative scans, softmax, recurrence)
// runs in double for f32 and in long double for f64, in order of the points, and is rounded once at
// the end: results are at least as accurate as any order in the value's own type. Integers wrap.
//
// Checks. Reported with the location of the access: a subscript outside its tensor without `fill`,
// a read of an element that nothing has defined, two points of one `parallel` that write one
// element (unless both add), a read of what another point of the same `parallel` wrote, a part of
// an output that was never written, a scan's position outside its range, an integer division by
// zero, and what cannot be computed in 64 bits.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_IR_INTERPRETER_INTERPRETER_H
#define TEGULA_IR_INTERPRETER_INTERPRETER_H

#include "ir/HostTensor.h"
#include "ir/tgl/Tgl.h"
#include "llvm/ADT/StringMap.h"
#include <variant>

namespace tegula {

struct InterpreterError {
  enum Kind {
    Invalid,      // the call does not fit the kernel, or the IR holds what is not interpreted
    Guard,        // a guard of the kernel does not hold
    OutOfBounds,  // an access without fill outside its tensor
    BadSubscript, // the same for a `checked` access: the run goes on with 0, or drops the write
    Undefined,    // an element that nothing has defined
    Race,         // two points of one parallel meet at an element
    Arithmetic,   // integer division by zero, an expression that leaves 64 bits
    Limit,        // options.maxSteps or options.maxBytes exceeded
  } kind;
  mlir::Location location;
  std::string message;
};

struct InterpreterOptions {
  /// For every tile loop; 0: each loop's own `size`, else 1.
  int64_t tileSize = 0;
  /// Points of parallels run last to first: a result that differs depends on their order.
  bool reversePoints = false;
  bool checkGuards = true;
  /// Temporaries at the top of the kernel are part of the result.
  bool keepTemps = false;
  /// Points and loop iterations before giving up; 0: no limit.
  uint64_t maxSteps = 0;
  /// Bytes of temporaries and outputs together.
  uint64_t maxBytes = uint64_t(8) << 30;
};

struct InterpreterResult {
  /// `inout`s and `out`s, in the order of the kernel's arguments. Also there after errors of
  /// accesses (undefined elements are 0), empty after Invalid and Guard.
  std::vector<HostTensor> outputs;
  std::vector<std::pair<std::string, HostTensor>> temps;
  /// At most one of each kind for each op.
  std::vector<InterpreterError> errors;
  bool ok() const { return errors.empty(); }
};

using InterpreterScalar = std::variant<int64_t, double>;

/// Runs a kernel, private ones included. `inputs`: tensors of role in and inout, in the order of
/// the arguments. `scalars`: the scalar arguments in order. `sizes`: symbols that no input binds; a
/// symbol that is in both must agree.
InterpreterResult interpret(tgl::KernelOp kernel, llvm::ArrayRef<HostTensor> inputs,
                            const llvm::StringMap<int64_t> &sizes = {},
                            llvm::ArrayRef<InterpreterScalar> scalars = {},
                            const InterpreterOptions &options = {});

} // namespace tegula

#endif // TEGULA_IR_INTERPRETER_INTERPRETER_H
