//===- Impl.h - Inside the interpreter ----------------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel is first turned into a tree of nodes, in which every value is a numbered slot, sizes are
// numbers, and calls are expanded; then the nodes run. That is some twenty times faster than
// walking the IR, and makes the oracle fit for real shapes.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_IR_INTERPRETER_IMPL_H
#define TEGULA_IR_INTERPRETER_IMPL_H

#include "ir/interpreter/Interpreter.h"
#include "ir/tgl/WriteAttributes.h"
#include "ir/tile/Tile.h"
#include "symbolic/IndexProgram.h"
#include "llvm/ADT/DenseSet.h"
#include <bit>
#include <deque>
#include <memory>

namespace tegula::interp {

using Slot = unsigned;
inline constexpr Slot noSlot = ~0u;

class Node;
using Code = std::vector<std::unique_ptr<Node>>; // run in order

/// A tensor while the kernel runs.
struct TensorState {
  std::string name;
  DType dtype = DType::F32;
  llvm::SmallVector<int64_t> shape, strides; // in elements, rows padded
  uint8_t *data = nullptr;
  std::vector<uint8_t> own;
  /// When each element was last written (Frame::clock), and how (ir/tgl/WriteAttributes.h).
  /// Defined since `born`: a temporary that is made anew keeps its old stamps.
  std::vector<uint64_t> stamps;
  uint64_t born = 0;
  bool isInput = false; // never written: no stamps
  uint64_t version = 0; // counts writes
};

/// One running `parallel`: when it began, when its current point began.
struct Level {
  uint64_t begin, point;
};

/// Everything that changes while nodes run.
class Frame {
public:
  explicit Frame(const InterpreterOptions &options) : options(options) {}

  template <typename T> T get(Slot slot) const;
  template <typename T> void set(Slot slot, T value);

  void report(const Node *node, InterpreterError::Kind kind, const llvm::Twine &message);
  void report(mlir::Location location, InterpreterError::Kind kind, const llvm::Twine &message);
  /// Counts a point or iteration; false when the limit is reached.
  bool step(const Node *node);
  void run(const Code &code);
  /// Makes a temporary anew.
  void allocate(const Node *node, TensorState &tensor);
  static std::string describe(const TensorState &tensor, llvm::ArrayRef<int64_t> subscripts,
                              llvm::ArrayRef<bool> areUnsigned = {});
  /// Before an element is read: false, reported, where nothing has defined it; reports a race.
  bool checkRead(const Node *node, const TensorState &tensor, int64_t position,
                 llvm::ArrayRef<int64_t> subscripts);
  static bool isDefined(const TensorState &tensor, int64_t position) {
    return tensor.isInput || (tensor.stamps[position] >> tgl::stampKindBits) >= tensor.born;
  }
  /// Marks an element that is written whatever was there.
  void define(TensorState &tensor, int64_t position, std::optional<tgl::ReduceKind> combine);
  /// Before an element is written: false, reported, where a sum or maximum meets what nothing has
  /// defined; reports a race, as the program's own mistake where it says that data are `distinct`.
  /// Marks the element. `differs`: whether the element is not what is written.
  bool checkWrite(const Node *node, TensorState &tensor, int64_t position,
                  llvm::ArrayRef<int64_t> subscripts, std::optional<tgl::ReduceKind> combine = {},
                  llvm::StringRef distinct = {}, bool differs = false);

  const InterpreterOptions &options;
  std::vector<int64_t> slots;
  std::deque<TensorState> tensors; // never move: nodes and `data` point into them
  llvm::SmallVector<Level> levels;
  uint64_t clock = 1;
  uint64_t steps = 0;
  uint64_t bytes = 0;
  bool stopped = false;
  std::vector<InterpreterError> errors;

private:
  /// True when another point of a parallel that is running wrote at that time.
  bool fromAnotherPoint(uint64_t when) const;
  llvm::DenseSet<std::pair<const Node *, unsigned>> reported;
};

template <typename T> inline T Frame::get(Slot slot) const {
  if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<float>(uint32_t(slots[slot]));
  else if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<double>(slots[slot]);
  else
    return T(slots[slot]);
}
template <typename T> inline void Frame::set(Slot slot, T value) {
  if constexpr (std::is_same_v<T, float>)
    slots[slot] = std::bit_cast<uint32_t>(value);
  else if constexpr (std::is_same_v<T, double>)
    slots[slot] = std::bit_cast<int64_t>(value);
  else
    slots[slot] = value;
}

/// One operation, ready to run.
class Node {
public:
  explicit Node(mlir::Location location) : location(location) {}
  virtual ~Node() = default;
  virtual void run(Frame &frame) const = 0;
  const mlir::Location location;
};

/// A node that is one function object.
template <typename Fn> class FnNode final : public Node {
public:
  FnNode(mlir::Location location, Fn fn) : Node(location), fn(std::move(fn)) {}
  void run(Frame &frame) const override { fn(frame, this); }

private:
  Fn fn;
};
template <typename Fn> std::unique_ptr<Node> makeNode(mlir::Location location, Fn fn) {
  return std::make_unique<FnNode<Fn>>(location, std::move(fn));
}

/// An integer expression over slots. Affine ones, which nearly all are, take a short cut.
class IndexCode {
public:
  /// 0, reported, where the value cannot be computed; what leaves 64 bits may wrap, as in code.
  int64_t eval(Frame &frame, const Node *node, bool wraps = false) const;

private:
  friend class Compiler;
  int64_t constant = 0;
  llvm::SmallVector<std::pair<int64_t, Slot>, 3> terms;
  std::shared_ptr<const IndexProgram> general;
};

struct AxisCode {
  Slot slot;
  IndexCode lo, hi;
};

/// How a value is held.
enum class Kind { I1, I32, I64, F32, F64 };

/// Results of a region, kept for as long as what it reads stays the same: a reduction that does not
/// vary along an axis around it would be computed again and again otherwise.
class MemoKey {
public:
  /// The current values of what the region captures.
  std::vector<int64_t> now(const Frame &frame) const;
  llvm::SmallVector<Slot> slots;
  llvm::SmallVector<unsigned> tensors;
};

/// Slots of a value: tiles and states have several (Tiles.cpp).
unsigned slotCount(mlir::Type type);

class Compiler {
public:
  Compiler(Frame &frame, const llvm::StringMap<int64_t> &sizes) : frame(frame), sizes(sizes) {}

  /// Compiles the ops of a block; false, reported, where one is not interpreted.
  bool compileBlock(mlir::Block &block, Code &nodes);
  Slot slotOf(mlir::Value value);
  unsigned tensorOf(mlir::Value value) { return tensorIds.lookup(value); }
  void bindTensor(mlir::Value value, unsigned id) { tensorIds[value] = id; }
  unsigned newTensor(llvm::StringRef name, tgl::TglTensorType type, mlir::Location location);
  std::optional<int64_t> sizeValue(const IndexExpr &expr);
  static Kind kindOf(mlir::Type type);
  IndexCode indexCode(mlir::Attribute expr, mlir::ValueRange dims, mlir::Location location);
  llvm::SmallVector<AxisCode> axes(tgl::AxesOp op);
  bool failed = false;

  IndexCode indexCode(const IndexExpr &expr, mlir::ValueRange dims, mlir::Location location);
  MemoKey memoKey(mlir::Operation *op, mlir::ValueRange operands);
  bool variesLessThanItsPlace(mlir::Operation *op);
  /// Reports a write to an input.
  void rejectInput(unsigned tensor, mlir::Location location);

  // One for each group of ops; false where the op is none of the group.
  bool compileOp(mlir::Operation *op, Code &nodes);
  bool compileAccess(mlir::Operation *op, Code &nodes);
  bool compileAxes(mlir::Operation *op, Code &nodes);
  bool compileCall(tgl::CallOp call, Code &nodes);

  Frame &frame;
  const llvm::StringMap<int64_t> &sizes;
  llvm::DenseMap<mlir::Value, Slot> valueSlots;
  llvm::DenseMap<mlir::Value, unsigned> tensorIds;
  llvm::SmallVector<mlir::Operation *> callStack;
};

bool compileArith(Compiler &compiler, mlir::Operation *op, Code &nodes);
bool compileMath(Compiler &compiler, mlir::Operation *op, Code &nodes);
bool compileScan(Compiler &compiler, mlir::Operation *op, Code &nodes);
bool compileSort(Compiler &compiler, mlir::Operation *op, Code &nodes);
/// Compiles an op of the abstract stage of the tile dialect; false where it is none (Tiles.cpp).
bool compileTile(Compiler &compiler, mlir::Operation *op, Code &nodes);

} // namespace tegula::interp

#endif // TEGULA_IR_INTERPRETER_IMPL_H
