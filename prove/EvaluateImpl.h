//===- EvaluateImpl.h - Inside the evaluator ----------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel becomes a tree of steps over numbered slots, of integers and of Numbers, then the steps
// run.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PROVE_EVALUATEIMPL_H
#define TEGULA_PROVE_EVALUATEIMPL_H

#include "prove/Evaluate.h"
#include "symbolic/IndexProgram.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include <deque>
#include <functional>
#include <optional>

namespace tegula::prove {

using Slot = unsigned;
inline constexpr Slot noSlot = ~0u;

struct Memory {
  PointTensor tensor; // of what is only read the name, the type and the shape
  llvm::SmallVector<int64_t> strides;
  /// Elements, once there are any: those of `tensor`, or of an input that is only read.
  llvm::ArrayRef<Number> numbers;
  llvm::ArrayRef<int64_t> integers;
  uint64_t version = 0;

  /// Whether the elements are those of an input, which stay where they are.
  bool isOnlyRead = false;

  /// Takes the elements of `given`, or none that are defined.
  void allocate(const PointTensor *given);
  bool isWhole() const { return undefined == 0; }
  bool isDefined(int64_t position) const { return undefined == 0 || marks[size_t(position)]; }
  void define(int64_t position) {
    if (isDefined(position))
      return;
    marks[size_t(position)] = 1;
    --undefined;
  }
  void undefineAll();

private:
  std::vector<uint8_t> marks; // of elements that are defined; none where all were given
  int64_t undefined = 0;
};

/// What changes while steps run.
class Machine {
public:
  Machine(Algebra &algebra, const EvaluateOptions &options) : algebra(algebra), options(options) {}

  void stop(Evaluation::Problem why, const llvm::Twine &text);
  /// Counts points; false where there were too many.
  bool count(uint64_t points = 1);

  Algebra &algebra;
  const EvaluateOptions &options;
  std::vector<int64_t> integers;
  std::vector<Number> numbers;
  std::deque<Memory> tensors;
  Evaluation result;
  bool stopped = false;
};

using Step = std::function<void(Machine &)>;
using Steps = std::vector<Step>;

inline void runSteps(Machine &machine, const Steps &steps) {
  for (const Step &step : steps) {
    if (machine.stopped)
      return;
    step(machine);
  }
}

/// An integer expression over slots.
struct IndexCode {
  std::shared_ptr<const IndexProgram> program;
  /// Where there is no program: the constant, and slots times weights.
  int64_t constant = 0;
  llvm::SmallVector<std::pair<Slot, int64_t>, 3> terms;

  int64_t eval(Machine &machine) const;
  bool isConstant() const { return !program && terms.empty(); }
};

struct AxisCode {
  Slot slot;
  IndexCode lo, hi;

  /// How many places it surely has: none where data or other axes say.
  uint64_t certainCount() const;
};

/// Runs `fn` at all points of a box, the last axis fastest.
void forPoints(Machine &machine, llvm::ArrayRef<AxisCode> axes, llvm::function_ref<void()> fn);

/// What a region's results depend on, so that they need not be computed again.
struct Captures {
  llvm::SmallVector<Slot> integers, numbers;
  llvm::SmallVector<unsigned> tensors;
  std::vector<uint64_t> now(const Machine &machine) const;
};

class StepBuilder {
public:
  StepBuilder(Machine &machine, Coverage &coverage, const ValueSet &data)
      : machine(machine), coverage(coverage), data(data) {}

  /// Marks of a condition; null where sizes, places and constants alone decide it.
  uint8_t *conditionOf(mlir::Operation *op, mlir::ValueRange decisive);
  /// Runs `marks` where the result of `op` is chosen by all selects that it goes through alone:
  /// what happens to a value that is thrown away says nothing.
  void whereChosen(mlir::Operation *op, Steps &steps, Step marks);

  /// Whether the operation orders two values where it is chosen by a comparison of the same two:
  /// it has no other way there, as of the minimum in `where(x > 0, x, exp(minimum(x, 0)))`.
  bool isOrderChosen(mlir::Operation *op);

  bool block(mlir::Block &block, Steps &steps);
  /// Whether a value is a Number.
  static bool isNumber(mlir::Value value) { return llvm::isa<mlir::FloatType>(value.getType()); }
  Slot slotOf(mlir::Value value);
  unsigned tensorOf(mlir::Value value) const { return tensorIds.lookup(value); }
  unsigned newTensor(llvm::StringRef name, tgl::TglTensorType type);
  std::optional<int64_t> sizeValue(const IndexExpr &expr) const;
  /// An `#tgl.expr` with numbers in place of sizes.
  IndexExpr withSizes(mlir::Attribute expr) const;
  IndexCode index(mlir::Attribute expr, mlir::ValueRange dims);
  llvm::SmallVector<AxisCode> axes(tgl::AxesOp op);
  /// The body of what runs it so many times, each of which is a step.
  bool repeated(mlir::Block &block, Steps &steps, uint64_t times);
  /// As above at all points of a box, so many of which are a step together. What is kept
  /// afterwards runs once at least.
  bool points(mlir::Block &block, Steps &steps, llvm::ArrayRef<AxisCode> axes, bool isKept = false,
              uint64_t together = 1);
  /// How many steps the evaluation takes at least.
  uint64_t certainSteps() const { return steps; }
  Captures captures(mlir::Operation *op, mlir::ValueRange operands);
  void fail(Evaluation::Problem why, const llvm::Twine &text) { machine.stop(why, text); }

  Machine &machine;
  Coverage &coverage;
  const ValueSet &data;
  llvm::StringMap<int64_t> sizes;
  llvm::DenseMap<mlir::Value, Slot> slots;
  llvm::DenseMap<mlir::Value, unsigned> tensorIds;

private:
  bool operation(mlir::Operation *op, Steps &steps);
  bool call(tgl::CallOp call, Steps &steps);
  uint64_t steps = 0, times = 1;                  // of what is built, and how often it surely runs
  std::vector<mlir::Operation *> calls;           // around what is built
  llvm::DenseMap<mlir::Operation *, Steps> later; // marks that wait for a select's condition
};

// One for each group of operations; false where the operation is none of the group.
bool buildAccess(StepBuilder &builder, mlir::Operation *op, Steps &steps);
bool buildLoop(StepBuilder &builder, mlir::Operation *op, Steps &steps);
bool buildReduce(StepBuilder &builder, mlir::Operation *op, Steps &steps);
bool buildScan(StepBuilder &builder, mlir::Operation *op, Steps &steps);
bool buildFloats(StepBuilder &builder, mlir::Operation *op, Steps &steps);
bool buildIntegers(StepBuilder &builder, mlir::Operation *op, Steps &steps);
bool buildConversions(StepBuilder &builder, mlir::Operation *op, Steps &steps);

/// Whether a value is infinity, or a condition that asks for infinite numbers or nan.
bool isInfinity(mlir::Value value);
bool asksForInfinity(mlir::Value condition);

/// An integer of this type as it is kept: sign-extended (i1: 0 or 1).
int64_t keptAs(mlir::Type type, int64_t value);

/// The larger (smaller) of two, nan where one is.
Number extreme(Algebra &algebra, const Number &a, const Number &b, bool isMax);

/// What a reduction of numbers gives; of argmax and its kin nothing is known here.
Number reduceNumbers(Algebra &algebra, tgl::ReduceKind kind, llvm::ArrayRef<Number> values,
                     bool isUnbiased);

/// By exponentials.
Number hyperbolicTangent(Algebra &algebra, const Number &x);

/// Places of the values in order, equal ones as they stand, nan largest.
std::vector<size_t> sortedPlaces(Algebra &algebra, llvm::ArrayRef<Number> values, bool descending);
std::vector<size_t> sortedPlaces(llvm::ArrayRef<int64_t> values, bool descending);

} // namespace tegula::prove

#endif // TEGULA_PROVE_EVALUATEIMPL_H
