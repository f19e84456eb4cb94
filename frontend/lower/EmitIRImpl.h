//===- EmitIRImpl.h - The state of emission ----------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shared by EmitIR.cpp (kernels and calls), EmitIRStmt.cpp (statements), EmitIRBlock.cpp (parallel
// blocks), EmitIRExpr.cpp and EmitIRReduce.cpp (values) and EmitIRAccess.cpp (subscripts, bounds,
// reads).
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_LOWER_EMITIRIMPL_H
#define TEGULA_FRONTEND_LOWER_EMITIRIMPL_H

#include "frontend/lower/EmitIR.h"
#include "frontend/lower/EmitIRAnalysis.h"
#include "ir/tgl/Tgl.h"
#include "ir/tgl/TglUtils.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringSet.h"

namespace tegula::emit {

/// Where a let, a state or a run-time scalar is found.
struct Place {
  enum Kind {
    Inline, ///< nowhere: a let is computed again where it is used
    Scalar, ///< `value` is it
    Stored, ///< `value` is a tensor with one dim for each of `axes`
  } kind = Inline;
  mlir::Value value;
  llvm::SmallVector<const Var *, 4> axes;
};

class Emitter {
public:
  Emitter(const Program &program, const SourceManager &sources, mlir::MLIRContext &context,
          const EmitOptions &options);
  mlir::OwningOpRef<mlir::ModuleOp> emit();

  // --- kernels (EmitIR.cpp)
  void emitEntry();
  void emitCall(const Stmt &stmt);
  /// The private kernel of a call; the callbacks bind its parameters to the block arguments.
  void emitCallee(const Stmt &stmt, llvm::StringRef name,
                  llvm::ArrayRef<tgl::KernelArgument> arguments,
                  llvm::ArrayRef<std::function<void(mlir::Value)>> bind);
  mlir::Attribute guardAttr(const Guard &guard);
  mlir::Attribute sizeAttr(const Size &size);
  mlir::DictionaryAttr scheduleAttr();
  tgl::TglTensorType tensorType(const Tensor &tensor);
  tgl::TglTensorType tensorType(llvm::ArrayRef<IndexExpr> dims, mlir::Type element);

  // --- statements (EmitIRStmt.cpp)
  void emitBody(llvm::ArrayRef<Stmt *> body);
  /// `following`: the statements after it in its body.
  void emitStmt(const Stmt &stmt, llvm::ArrayRef<Stmt *> following);
  void emitPlainStmt(const Stmt &stmt, llvm::ArrayRef<Stmt *> following);
  void emitEquation(const Stmt &stmt);
  /// The axes that an equation runs along, bound or not.
  AxisSet equationAxes(const Stmt &stmt);
  void emitReadingTarget(const Stmt &stmt, llvm::ArrayRef<const Var *> axes);
  void emitThroughTemp(const Stmt &stmt, llvm::ArrayRef<const Var *> axes);
  void emitWithOldTarget(const Stmt &stmt, llvm::ArrayRef<const Var *> axes);
  void emitWrite(const Stmt &stmt, mlir::Value target, mlir::Value value);
  /// A guard or a subscript of the left side reads the target.
  bool addressReadsTarget(const Stmt &stmt);
  llvm::SmallVector<const Var *> inTargetOrder(const Stmt &stmt);
  /// No point reads an element that another point of the equation writes.
  bool readsOwnPointsOnly(const Stmt &stmt);
  void emitCopy(mlir::Value from, mlir::Value to, mlir::Location loc);

  // --- writes whose points may meet (EmitIRScatter.cpp)
  /// For each row of a tensor the number of the last point that writes it.
  struct LastWriters {
    mlir::Value table;
    llvm::SmallVector<IndexExpr> subscripts; ///< a point's row
    IndexExpr position;                      ///< a point's number
  };
  /// A tensor of a storage type that a statement accumulates into.
  struct NarrowSum {
    const Tensor *tensor = nullptr;
    llvm::SmallVector<const Stmt *, 1> equations;
    bool isWhole = false; ///< all of it becomes wider, not just what is added to
  };
  void emitDefine(const Stmt &stmt, llvm::ArrayRef<Stmt *> following);
  bool isOnHost(const Expr *expr);
  mlir::Value roundedState(const StateDef &state, const Expr *value);
  void emitStateInit(const Stmt &stmt);
  void emitUpdate(const Stmt &stmt);
  void emitLoop(const Stmt &stmt); ///< For and Tiles
  /// The scalar states that a loop carries.
  llvm::SmallVector<const StateDef *> carriedStates(llvm::ArrayRef<Stmt *> body);
  void emitLoopBody(mlir::Operation *loop, const Stmt &stmt,
                    llvm::ArrayRef<const StateDef *> carried);

  // --- axes and parallel blocks (EmitIRBlock.cpp)
  void emitParallel(const Stmt &stmt);
  /// The axes of the block that are outer, by id.
  AxisSet outerAxes(const Stmt &block);
  bool isNestable(const Stmt &block, const AxisSet &all, const AxisSet &outer);
  void hoistValues(const Stmt &block, const AxisSet &outer);
  bool isStored(const Let *let) const;
  /// One of the statements changes something that the value reads.
  bool isChanged(const Expr *value, llvm::ArrayRef<Stmt *> following);
  /// Runs `body` at all points of `axes`, in one `tgl.parallel` (or several: splitAtData). Without
  /// axes a `tgl.parallel` is made only where there is none around.
  void forPoints(llvm::ArrayRef<const Var *> axes, mlir::Location loc,
                 llvm::function_ref<void()> body);
  /// With the axes that bounds of axes in the set vary along.
  AxisSet withBounds(AxisSet set);
  /// The axes that no region around binds: of blocks in order, tile axes, then `own` in order.
  llvm::SmallVector<const Var *, 4> unboundAxes(const AxisSet &set,
                                                llvm::ArrayRef<const Var *> own = {});
  /// Emits those reductions in `value` that are constant along `axes`.
  void emitInvariants(const Expr *value, llvm::ArrayRef<const Var *> axes);
  /// The extent of an axis where it is a size; of a tile axis, the tile's.
  std::optional<IndexExpr> extentOf(const Var &var);
  bool haveSizes(llvm::ArrayRef<const Var *> axes);
  int64_t tileSize(const Var &var);
  /// A temporary over the given axes, and its element at the current point.
  Place createStored(llvm::StringRef name, mlir::Type element, llvm::ArrayRef<const Var *> axes,
                     mlir::Location loc);
  llvm::SmallVector<tgl::ValueExpr> storedSubscripts(const Place &place);
  mlir::Value readStored(const Place &place, mlir::Location loc);
  void writeStored(mlir::Value value, const Place &place, mlir::Location loc);

  // --- values (EmitIRExpr.cpp, EmitIRReduce.cpp)

  // --- subscripts and accesses (EmitIRAccess.cpp)
  mlir::Value computeRead(const Expr *expr);
  mlir::Value readConstant(const Expr *expr, const Tensor &tensor);
  /// The tensor itself or the one it stands for; null where it is no constant.
  const Tensor *constantTensor(const Tensor *tensor);
  mlir::Value indexOf(const IndexExpr &expr, mlir::Location loc);
  tgl::ValueExpr valueExpr(const IndexExpr &expr);
  llvm::SmallVector<tgl::ValueExpr> valueExprs(llvm::ArrayRef<IndexExpr> exprs);
  /// The value of a bound variable, or of an integer read from data at the current point.
  mlir::Value valueOf(const Var &var);
  llvm::SmallVector<tgl::AxisSpec> axisSpecs(llvm::ArrayRef<const Var *> vars);
  void setOwnRanges(tgl::AxesOp op, llvm::ArrayRef<const Var *> vars);
  static bool usesAny(const Var &var, llvm::ArrayRef<const Var *> others);
  /// The variables split where bounds hold data that varies along earlier ones.
  llvm::SmallVector<llvm::ArrayRef<const Var *>> splitAtData(llvm::ArrayRef<const Var *> vars);
  /// `x[ids[i]]` as it is written, for the report of a subscript that leaves its tensor.
  std::string accessText(Span span);
  mlir::Location locate(Span span);

  /// Values known in a region and variables bound by it.
  struct Frame {
    llvm::DenseMap<const Expr *, mlir::Value> values;
    llvm::DenseMap<unsigned, mlir::Value> vars;
    /// A variable of the region is bound outside too: values from outside may be of another point.
    bool rebinds = false;
  };
  /// Opens a frame for the life of the object.
  struct Region {
    Emitter &emitter;
    mlir::OpBuilder::InsertionGuard guard;
    Region(Emitter &emitter, mlir::Block *block, llvm::ArrayRef<const Var *> vars,
           mlir::ValueRange values);
    ~Region() { emitter.frames.pop_back(); }
  };
  bool isBound(unsigned var) const;

  const Program &program;
  const SourceManager &sources;
  mlir::MLIRContext &context;
  EmitOptions options;
  mlir::OpBuilder builder;
  Analysis analysis;
  mlir::ModuleOp module;
  llvm::StringSet<> kernelNames;

  llvm::DenseMap<const Tensor *, mlir::Value> tensors;
  /// Parameters that stand for a left-out optional tensor of the caller.
  llvm::DenseMap<const Tensor *, const Tensor *> constants;
  llvm::DenseMap<const ScalarParam *, Place> scalars;
  llvm::DenseMap<const Let *, Place> lets;
  llvm::DenseMap<const StateDef *, Place> states;
  llvm::DenseMap<unsigned, std::pair<mlir::Value, mlir::Value>> tileBounds;
  std::vector<Frame> frames;
  const LastWriters *lastWriters = nullptr; ///< of the equation that is being written
  bool meetAlike = false;                   ///< its points that meet write the same value
  llvm::DenseMap<const Stmt *, LastWriters>
      blockWriters; ///< of equations of the block, found before it
  /// Axes of the enclosing parallel blocks, in order.
  llvm::SmallVector<const Var *> blockAxes;
  /// Number of `tgl.parallel`s around.
  unsigned parallelDepth = 0;
  std::optional<mlir::Location> callSite;
  std::optional<std::string> precision; ///< the kernel's own, or its caller's
};

} // namespace tegula::emit

#endif // TEGULA_FRONTEND_LOWER_EMITIRIMPL_H
