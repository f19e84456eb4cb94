//===- Evaluate.h - Runs tgl IR over exact numbers ----------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The meaning of a kernel's IR over exact arithmetic: floats are Numbers, integers are what they
// are. Nothing is shared with ir/interpreter, so that one does not repeat a mistake of the other.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PROVE_EVALUATE_H
#define TEGULA_PROVE_EVALUATE_H

#include "ir/DTypes.h"
#include "ir/tgl/Tgl.h"
#include "prove/Number.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace tegula::prove {

/// A tensor, dense and row-major.
struct PointTensor {
  std::string name;
  DType dtype = DType::F32;
  llvm::SmallVector<int64_t> shape;
  std::vector<Number> numbers;   // of floats
  std::vector<int64_t> integers; // of others

  int64_t count() const;
};

using PointScalar = std::variant<int64_t, Number>;

/// Values that follow from others: what is computed of them, and tensors that hold such values.
using ValueSet = llvm::DenseSet<mlir::Value>;
ValueSet spread(mlir::ModuleOp module, ValueSet from);

/// Which ways the conditions on data of a program have gone, over all evaluations that count.
class Coverage {
public:
  /// `Always...` counts where data are infinite, too.
  enum : uint8_t { WasFalse = 1, WasTrue = 2, AlwaysFalse = 4, AlwaysTrue = 8 };
  /// An operation at the end of the calls that lead to it.
  using Place = std::pair<std::vector<mlir::Operation *>, mlir::Operation *>;
  uint8_t &of(const Place &place) { return ways[place].pending; }

  enum class Kind { Dropped, Finite, Infinite };
  /// Whether the evaluation since the last call counts.
  void settle(Kind kind);
  /// Places of conditions that went one way alone: `f.tgl:3:5 was never true`. Conversions that
  /// never met the border of their type are left out.
  std::vector<std::string> oneSided() const;
  /// The types of conversions whose border was never met, one for each conversion.
  std::multiset<std::string> unboundConversions() const;
  /// Whether bounds leave a condition one way alone.
  bool isDecided(mlir::Operation *op);
  /// What follows from the data of the entry kernel.
  const ValueSet &dataOf(tgl::KernelOp entry);

private:
  struct Ways {
    uint8_t pending = 0, sure = 0;
  };
  std::map<Place, Ways> ways; // whose elements stay where they are
  std::optional<ValueSet> data;
  llvm::DenseMap<mlir::Operation *, bool> decided;
};

/// Marks which way a condition went; none where `ways` is null.
inline void note(uint8_t *ways, bool is, bool countsAlways = false) {
  if (ways)
    *ways |= uint8_t((is ? Coverage::WasTrue : Coverage::WasFalse) * (countsAlways ? 5 : 1));
}

struct Evaluation {
  enum Problem {
    None,
    Unknown,      // an operation that has no exact meaning here
    Refused,      // sizes or guards do not admit the launch
    OutOfBounds,  // an access outside its tensor that was thought to be proved
    BadSubscript, // data that lead outside a tensor: the program reports it
    Undefined,    // an element that nothing has defined
    Limit,        // too many points
  } problem = None;
  std::string message;
  std::vector<PointTensor> outputs; // inouts and outs, in order of the arguments
  uint64_t steps = 0;
};

struct EvaluateOptions {
  int64_t tileSize = 0; // of every tile loop; 0: its own
  uint64_t maxSteps = 300'000;
  /// Says what is refused and what surely takes too many steps, of inputs that have shapes alone.
  bool isOutline = false;
};

/// `inputs`: tensors of role in and inout, in order; `scalars` in order.
Evaluation evaluate(tgl::KernelOp kernel, llvm::ArrayRef<PointTensor> inputs,
                    llvm::ArrayRef<PointScalar> scalars, Algebra &algebra, Coverage &coverage,
                    const EvaluateOptions &options);

/// The place of an operation in the program's text: `f.tgl:3:5`.
std::string placeOf(mlir::Location location);

} // namespace tegula::prove

#endif // TEGULA_PROVE_EVALUATE_H
