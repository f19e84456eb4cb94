//===- ScalarEmitter.h - Values, elements and control as LLVM IR --*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The vocabulary in which code is written for one point, or for one vector of points: what the
// values of tgl are in LLVM IR, integers over sizes and axes, loads and stores of elements, loops
// and conditions. Features (reads and writes, arithmetic, accumulators, checks) are functions or
// classes of their own over it, and know nothing of each other.
//
// On the CPU the emitter vectorises by itself: inside `Lanes` one axis stands for `width`
// consecutive points at once, a value is a vector if it varies along that axis and a scalar if it
// does not, and `mask` says which points exist. Accesses become vector loads, broadcasts or gathers
// by the coefficient of the axis in the address. So the order of every sum is decided here and
// nowhere else.
//
// Integers are 64 bits wide throughout.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_COMMON_SCALAREMITTER_H
#define TEGULA_CODEGEN_COMMON_SCALAREMITTER_H

#include "codegen/common/CheckedShadow.h"
#include "codegen/common/EmitterOptions.h"
#include "codegen/common/RuntimeChecks.h"
#include "ir/tgl/Tgl.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace tegula {

/// Facts about a divisor: it is neither 0 nor -1; it is made of sizes; none.
enum class Divisor { Safe, Size, Any };

/// Attribute of functions with loops that run a constant number of times, and may be unrolled.
inline constexpr llvm::StringLiteral hasConstantLoop = "tegula-constant-loop";

class ScalarEmitter {
public:
  ScalarEmitter(llvm::Module &module, const EmitterOptions &options, std::vector<ErrorSite> &sites);
  ScalarEmitter(const ScalarEmitter &) = delete;
  virtual ~ScalarEmitter() = default;

  /// Null after success, else why the IR cannot be lowered (our defect, not the user's).
  const std::string &error() const { return failure; }

  //===--- Environment ---===//

  struct Buffer {
    llvm::Value *pointer = nullptr;
    tgl::TglTensorType type;
    llvm::MDNode *scope = nullptr, *noalias = nullptr;
    bool isConstant = false;       // nobody writes to it while the function runs
    llvm::Value *shadow = nullptr; // an i64 for each element (CheckedShadow.cpp); null: none
  };
  /// The vectorised axis.
  struct Lanes {
    mlir::Value axis;
    unsigned width = 1;
    llvm::Value *base = nullptr;    // axis value of lane 0
    llvm::Value *last = nullptr;    // and of the last lane that exists
    llvm::Value *mask = nullptr;    // <width x i1>; null: all lanes exist
    llvm::Value *isWhole = nullptr; // i1: all of the mask; null: nobody asked
    bool isAligned = false;         // accesses to neighbours begin at multiples of their length
    unsigned apart = 1;             // points of the axis from a lane to the next
  };

  llvm::IRBuilder<> b;
  llvm::Module &module;
  EmitterOptions options;
  std::string failure;
  llvm::DenseMap<mlir::Value, llvm::Value *> values;
  /// Of reads: the value, and the bits that were loaded for it.
  llvm::DenseMap<mlir::Value, std::pair<llvm::Value *, llvm::Value *>> loaded;
  llvm::DenseMap<mlir::Value, Buffer> buffers;
  llvm::StringMap<llvm::Value *> sizes;
  std::optional<Lanes> lanes;
  llvm::MDNode *aliasDomain = nullptr;
  /// Reads with a fill of which every element exists in what is being emitted.
  llvm::SmallPtrSet<mlir::Operation *, 4> insideReads;
  RuntimeChecks checks;
  CheckedShadow shadow;

  void fail(mlir::Operation *op, const llvm::Twine &why);
  bool failed() const { return !failure.empty(); }
  llvm::Value *i64(int64_t value) { return b.getInt64(value); }
  llvm::Value *valueOf(mlir::Value value);
  llvm::Type *typeOf(mlir::Type type);
  llvm::Value *splat(llvm::Value *value); // to a vector inside lanes
  bool isVector(llvm::Value *value) const { return value->getType()->isVectorTy(); }
  /// Makes two or three operands all scalars or all vectors.
  void align(llvm::MutableArrayRef<llvm::Value *> operands);
  /// Distinct buffers never overlap (guarded at launch); tells LLVM.
  void addAliasScopes(llvm::MutableArrayRef<Buffer *> all);

  /// Both of two conditions; null: true.
  llvm::Value *emitAnd(llvm::Value *lhs, llvm::Value *rhs);

  //===--- Integers (EmitIndex.cpp) ---===//

  llvm::Value *emitIndex(const tgl::ValueExpr &expr);
  /// Emits the expression with the lane axis at lane 0: a scalar, if nothing else in it varies.
  llvm::Value *emitIndexAtLaneZero(const tgl::ValueExpr &expr);
  llvm::Value *emitExpr(const IndexExpr &expr,
                        llvm::function_ref<llvm::Value *(const IndexVar &)> variable);
  llvm::Value *sizeOf(llvm::StringRef symbol);
  /// The divisor, which is neither 0 nor -1 at any point, and 1 in lanes that are no points.
  llvm::Value *divisorOfPoints(llvm::Value *divisor);
  /// Floored quotient and remainder; LLVM folds the corrections where it knows the signs.
  llvm::Value *emitFloorDiv(llvm::Value *lhs, llvm::Value *rhs, Divisor kind);
  llvm::Value *emitMod(llvm::Value *lhs, llvm::Value *rhs, Divisor kind);
  llvm::Value *emitSize(const IndexExpr &size) { return emitIndex(tgl::ValueExpr(size)); }

  //===--- Elements (EmitElements.cpp) ---===//

  /// Storage bits to the compute type and back.
  llvm::Value *decode(llvm::Value *raw, mlir::Type element);
  llvm::Value *encode(llvm::Value *value, mlir::Type element);
  llvm::Type *storageType(mlir::Type element);
  llvm::Value *convert(llvm::Value *value, mlir::Type target, bool nearest);
  llvm::Value *loadRaw(const Buffer &buffer, llvm::ArrayRef<tgl::ValueExpr> subscripts,
                       llvm::Value *mask);
  /// Tells LLVM of a load or store what is known of its buffer.
  void describeAccess(llvm::Instruction *access, const Buffer &buffer);
  void storeRaw(const Buffer &buffer, llvm::ArrayRef<tgl::ValueExpr> subscripts, llvm::Value *raw,
                llvm::Value *mask);
  void storeElements(const Buffer &buffer, llvm::ArrayRef<tgl::ValueExpr> subscripts,
                     llvm::Value *raw, llvm::Value *mask);
  void setAtomic(llvm::Instruction *access);

  //===--- Control (EmitControl.cpp) ---===//

  /// for (iv = low; iv < high; iv += step) carried = body(iv, carried)
  llvm::SmallVector<llvm::Value *> emitLoop(
      llvm::Value *low, llvm::Value *high, llvm::Value *step, llvm::ArrayRef<llvm::Value *> inits,
      llvm::function_ref<llvm::SmallVector<llvm::Value *>(llvm::Value *iv,
                                                          llvm::ArrayRef<llvm::Value *> carried)>
          body,
      const llvm::Twine &name = "k");
  unsigned conditions = 0; ///< conditions and loops around what is being emitted
  /// Says that the next loop stays one even if LLVM knows how often it runs.
  bool keepNextLoopRolled = false;
  void emitIf(llvm::Value *condition, llvm::function_ref<void()> then);
  /// Values of `then` where the scalar condition holds, else `otherwise`; nothing is for zeros.
  llvm::SmallVector<llvm::Value *>
  emitIfElse(llvm::Value *condition, llvm::function_ref<llvm::SmallVector<llvm::Value *>()> then,
             llvm::ArrayRef<llvm::Value *> otherwise = {});
  /// The value of `then` where the scalar condition holds, else `otherwise`.
  llvm::Value *emitIfElse(llvm::Value *condition, llvm::function_ref<llvm::Value *()> then,
                          llvm::Value *otherwise);

  /// Runs `body` once for each lane that `mask` keeps, on the lane's scalars; once where nothing
  /// varies.
  void forEachLane(llvm::Value *mask, llvm::ArrayRef<llvm::Value *> operands,
                   llvm::function_ref<void(llvm::ArrayRef<llvm::Value *>)> body);
  /// Emits `body` for lanes base, base + apart, ...; with `high`, those that are below it: lane 0
  /// always is.
  void withLanes(mlir::Value axis, unsigned width, llvm::Value *base, llvm::Value *high,
                 llvm::function_ref<void()> body, unsigned apart = 1);
  /// Elements from a lane to the next of an access with this offset: 0 where all lanes meet,
  /// nothing where lanes are not evenly apart.
  std::optional<int64_t> laneStep(const tgl::ValueExpr &offset);

private:
  llvm::Value *emitAtom(const IndexExpr::Atom &atom,
                        llvm::function_ref<llvm::Value *(const IndexVar &)> variable);
  llvm::SmallVector<llvm::Value *> addressesOfLanes(const Buffer &buffer,
                                                    const tgl::ValueExpr &offset, llvm::Type *raw,
                                                    std::optional<int64_t> step);
  llvm::Value *loadAt(const Buffer &buffer, const tgl::ValueExpr &offset, llvm::Type *raw,
                      llvm::Value *mask, llvm::function_ref<llvm::Value *(llvm::Value *)> tag);
  llvm::Value *loadSteps(llvm::Value *first, int64_t step, llvm::Type *raw, llvm::Value *exists,
                         llvm::function_ref<llvm::Value *(llvm::Value *)> tag);
  void storeNibbles(const Buffer &buffer, llvm::Value *byte, llvm::Value *nibble, llvm::Value *raw,
                    llvm::Value *mask);
};

} // namespace tegula

#endif // TEGULA_CODEGEN_COMMON_SCALAREMITTER_H
