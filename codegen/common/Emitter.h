//===- Emitter.h - Scheduled tgl to LLVM IR ----------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Walks the regions of a launch and writes LLVM IR: loops for axes, address arithmetic for
// accesses, conversions for storage types. What host and device code share is here; HostEmitter and
// DeviceEmitter decide where parallel axes and temporaries go.
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
#ifndef TEGULA_CODEGEN_COMMON_EMITTER_H
#define TEGULA_CODEGEN_COMMON_EMITTER_H

#include "ir/tgl/Tgl.h"
#include "target/TargetInfo.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace tegula {

struct EmitterOptions {
  TargetInfo target = TargetInfo::host();
  /// Bytes of a vector register; 0: no vectors (device code).
  unsigned vectorBytes = 0;
  /// Vectors only along axes that are known to be so many of them, without a rest.
  bool wholeVectors = false;
  /// Who sees atomic operations at once: all (empty), or a scope of the target's by name.
  std::string atomicScope;
  /// Alignment of a kernel's tensors in bytes; 0: that of their elements.
  unsigned tensorAlignment = 0;
  /// A launch may start while the one before it in the same call still runs (sm_90): it waits for
  /// it itself.
  bool dependentLaunches = false;
  /// The split-K launch that combines partial sums starts early and waits (programmatic dependent
  /// launch, sm_90).
  bool earlyCombine = false;
  /// Blocks of a split tile reduce in a cluster, if clusters fit.
  bool clusterReduce = false;
  /// Threads transpose tiles in registers if tensors are in different orders.
  bool transposeTiles = true;
  /// Teams of threads sort short rows, and find the first few elements of any, in registers.
  bool registerSorts = true;
  /// Blocks are rasterised so that points that read the same elements run together.
  bool rasterizes = true;
  /// Threads take tiles of points whose windows share elements.
  bool windowTiles = true;
  /// Threads of a team keep states that each uses alone in registers.
  bool stateRegisters = true;
  /// Blocks of a cluster send by st.async, whose bytes an mbarrier counts.
  bool usesAsyncStores = true;
  /// Consumers load the first stages while a producer makes TMA descriptors.
  bool prologueLoads = true;
  /// Persistent blocks split the last partial wave over K, if the tile says so.
  bool splitKTail = true;
  /// The next row is prefetched to shared memory.
  bool prefetchesRows = true;
  /// Each warp runs the epilogue for its own accumulators, through shared memory or in registers.
  bool warpEpilogue = true, registerEpilogue = true;
  /// The epilogue stores by cp.async.bulk.
  bool bulkStores = true;
  /// Verify every access, not only those that data decides.
  bool checked = false;
  /// Verify what is proved too, in the code as it always is: an access that leaves its tensor is a
  /// defect of the compiler, and is reported as one.
  bool evenProved = false;
  /// Device code tells the line of the program of each instruction.
  bool lineTables = false;
};

/// A data-dependent (or, in checked mode, any) access that can fail while running.
struct ErrorSite {
  std::string text; // what the access is called in the report: `table[ids[i]]`
  mlir::Location loc;
  /// Set where the report is of an element of this tensor: its offset is the record's value, and
  /// `text` says what is wrong with it.
  std::string tensor = {};
  tgl::TglTensorType type = {};
  bool isDefect = false;   ///< an access that was proved
  bool isUnsigned = false; ///< the subscript, a number of u64
};

/// Facts about a divisor: it is neither 0 nor -1; it is made of sizes; none.
enum class Divisor { Safe, Size, Any };

/// Attribute of functions with loops that run a constant number of times, and may be unrolled.
inline constexpr llvm::StringLiteral hasConstantLoop = "tegula-constant-loop";

class Emitter {
public:
  Emitter(llvm::Module &module, const EmitterOptions &options, std::vector<ErrorSite> &sites);
  virtual ~Emitter() = default;

  /// An axis spread over vector lanes.
  struct LaneChoice {
    unsigned axis;        // of the op
    unsigned width;       // lanes
    unsigned unroll;      // accumulators of a reduction
    unsigned vectors = 1; // of a parallel axis side by side, where something is inside to share
  };

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
  };

  llvm::IRBuilder<> b;
  llvm::Module &module;
  EmitterOptions options;
  std::vector<ErrorSite> &sites;
  std::string failure;
  llvm::DenseMap<mlir::Value, llvm::Value *> values;
  llvm::DenseMap<mlir::Value, Buffer> buffers;
  llvm::StringMap<llvm::Value *> sizes;
  std::optional<Lanes> lanes;
  llvm::MDNode *aliasDomain = nullptr;
  /// Where errors of running go: {i32 taken, i32 site, i64 value}; null: none can happen.
  llvm::Value *errorRecord = nullptr;

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

  //===--- Integers (EmitIndex.cpp) ---===//

  llvm::Value *emitIndex(const tgl::ValueExpr &expr);
  /// Emits the expression with the lane axis at lane 0: a scalar, if nothing else in it varies.
  llvm::Value *emitIndexAtLaneZero(const tgl::ValueExpr &expr);
  llvm::Value *emitExpr(const IndexExpr &expr,
                        llvm::function_ref<llvm::Value *(const IndexVar &)> variable);
  llvm::Value *emitAtom(const IndexExpr::Atom &atom,
                        llvm::function_ref<llvm::Value *(const IndexVar &)> variable);
  llvm::Value *sizeOf(llvm::StringRef symbol);
  /// Floored quotient and remainder; LLVM folds the corrections where it knows the signs.
  /// The divisor, which is neither 0 nor -1 at any point, and 1 in lanes that are no points.
  llvm::Value *divisorOfPoints(llvm::Value *divisor);
  llvm::Value *emitFloorDiv(llvm::Value *lhs, llvm::Value *rhs, Divisor kind);
  llvm::Value *emitMod(llvm::Value *lhs, llvm::Value *rhs, Divisor kind);
  llvm::Value *emitSize(const IndexExpr &size) { return emitIndex(tgl::ValueExpr(size)); }
  /// Says whether the axis counts the points of others too: its values go beyond its own range, and
  /// only the place in memory of what it subscripts is right.
  void setCountsOthers(mlir::Value axis, bool counts) {
    if (counts)
      countsOthers.insert(axis);
    else
      countsOthers.erase(axis);
  }

  //===--- Accesses (EmitAccess.cpp) ---===//

  void emitRead(tgl::ReadOp op);
  void emitWrite(tgl::WriteOp op);
  /// Storage bits to the compute type and back.
  llvm::Value *decode(llvm::Value *raw, mlir::Type element);
  llvm::Value *encode(llvm::Value *value, mlir::Type element);
  llvm::Type *storageType(mlir::Type element);
  llvm::Value *convert(llvm::Value *value, mlir::Type target, bool nearest);
  llvm::Value *emitAnd(llvm::Value *lhs, llvm::Value *rhs); // null: true
  llvm::Value *emitBoundsCheck(llvm::ArrayRef<tgl::ValueExpr> subscripts, tgl::TglTensorType type);
  llvm::Value *loadRaw(const Buffer &buffer, llvm::ArrayRef<tgl::ValueExpr> subscripts,
                       llvm::Value *mask);
  /// Tells LLVM of a load or store what is known of its buffer.
  void describeAccess(llvm::Instruction *access, const Buffer &buffer);
  llvm::Value *loadAt(const Buffer &buffer, const tgl::ValueExpr &offset, llvm::Type *raw,
                      llvm::Value *mask, llvm::function_ref<llvm::Value *(llvm::Value *)> tag);
  llvm::Value *loadSteps(llvm::Value *first, int64_t step, llvm::Type *raw, llvm::Value *exists,
                         llvm::function_ref<llvm::Value *(llvm::Value *)> tag);
  void storeRaw(const Buffer &buffer, llvm::ArrayRef<tgl::ValueExpr> subscripts, llvm::Value *raw,
                llvm::Value *mask);
  void storeElements(const Buffer &buffer, llvm::ArrayRef<tgl::ValueExpr> subscripts,
                     llvm::Value *raw, llvm::Value *mask);
  void storeAlike(const Buffer &buffer, llvm::ArrayRef<tgl::ValueExpr> subscripts, llvm::Value *raw,
                  llvm::Value *mask);
  void setAtomic(llvm::Instruction *access);
  void storeNibbles(const Buffer &buffer, llvm::Value *byte, llvm::Value *nibble, llvm::Value *raw,
                    llvm::Value *mask);
  void emitAdd(tgl::WriteOp op, const Buffer &buffer, llvm::ArrayRef<tgl::ValueExpr> subscripts,
               llvm::Value *value, llvm::Value *mask);
  void forEachLane(llvm::Value *mask, llvm::ArrayRef<llvm::Value *> operands,
                   llvm::function_ref<void(llvm::ArrayRef<llvm::Value *>)> body);

protected:
  //===--- Definitions (CheckedShadow.cpp) ---===//

  /// Address of the time; null: no definitions are checked, and what follows does nothing.
  llvm::Value *clock = nullptr;
  struct Level {
    llvm::Value *begin, *point; // times
  };
  llvm::SmallVector<Level> levels; // of the parallels around
  llvm::Value *tick();
  void beginPoints();
  void beginPoint();
  void endPoints();
  llvm::Value *checkRead(mlir::Operation *op, mlir::Value tensor,
                         llvm::ArrayRef<tgl::ValueExpr> subscripts, llvm::Value *mask);
  llvm::Value *checkReadAt(mlir::Operation *op, mlir::Value tensor, llvm::Value *offset);
  llvm::Value *checkWrite(mlir::Operation *op, mlir::Value tensor,
                          llvm::ArrayRef<tgl::ValueExpr> subscripts, llvm::Value *mask,
                          llvm::Value *raw);
  llvm::Value *checkWriteAt(mlir::Operation *op, mlir::Value tensor, llvm::Value *offset,
                            std::optional<tgl::ReduceKind> combine = {},
                            llvm::Value *differs = nullptr);
  void checkComplete(mlir::Operation *op, mlir::Value tensor);

public:
  //===--- Values (EmitArith.cpp) ---===//

  void emitArith(mlir::Operation *op);
  llvm::Value *emitRandom(tgl::RandomOp op);
  /// llvm.maximum or minimum of floats. Either zero may be the larger one: telling them apart costs
  /// x86 two more instructions.
  llvm::Value *emitExtreme(llvm::Intrinsic::ID id, llvm::Value *lhs, llvm::Value *rhs);

  //===--- Control (EmitLoops.cpp) ---===//

  void emitBlock(mlir::Block &block); // all but the terminator
  /// Loops that are known to have no points.
  static bool isEmpty(mlir::Operation *op);
  bool skipEmpty(mlir::Operation *op);
  virtual void emitOp(mlir::Operation *op);
  virtual void emitParallel(tgl::ParallelOp op);
  virtual void emitReduce(tgl::ReduceOp op);
  virtual void emitTemp(tgl::TempOp op) = 0;
  virtual void emitSort(tgl::SortOp op);
  /// How many elements of sorted rows are read at most, where every read of the temporaries walks
  /// along them from the front to a size.
  static std::optional<IndexExpr> elementsRead(tgl::SortOp op);
  /// `body` for 0 <= n < count in any order, all done when it returns (device code: by all
  /// threads).
  virtual void emitSteps(llvm::Value *count, llvm::function_ref<void(llvm::Value *)> body);
  virtual void emitFor(tgl::ForOp op);
  void emitTiles(tgl::TilesOp op);
  template <typename Loop>
  void emitCarried(Loop op, llvm::Value *low, llvm::Value *high, llvm::Value *step,
                   const char *name, llvm::function_ref<void(llvm::Value *iv)> place);
  /// Ends every statement that other points may depend on (device code: a barrier).
  virtual void afterParallel() {}

  /// for (iv = low; iv < high; iv += step) carried = body(iv, carried)
  llvm::SmallVector<llvm::Value *> emitLoop(
      llvm::Value *low, llvm::Value *high, llvm::Value *step, llvm::ArrayRef<llvm::Value *> inits,
      llvm::function_ref<llvm::SmallVector<llvm::Value *>(llvm::Value *iv,
                                                          llvm::ArrayRef<llvm::Value *> carried)>
          body,
      const llvm::Twine &name = "k");
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

  /// A reduction's accumulator: one value, value and index for argmax and argmin, or what
  /// EmitVariances.cpp says for var. Where all lanes count alike the number is a scalar.
  using Accumulator = llvm::SmallVector<llvm::Value *>;
  Accumulator initialAccumulator(tgl::ReduceOp op);
  /// `position`: the type of the position that argmax and argmin return. Nothing for kinds that are
  /// expanded before code generation.
  Accumulator initialAccumulator(tgl::ReduceKind kind, llvm::Type *type, llvm::Type *position);
  Accumulator combine(tgl::ReduceKind kind, const Accumulator &lhs, const Accumulator &rhs);
  Accumulator combine(tgl::ReduceOp op, const Accumulator &lhs, const Accumulator &rhs) {
    return combine(op.getKind(), lhs, rhs);
  }
  Accumulator combineVariances(const Accumulator &lhs, const Accumulator &rhs);
  /// The accumulator for lanes that are all alike so far.
  Accumulator splatAccumulator(tgl::ReduceOp op, Accumulator accumulator, unsigned width);
  /// The type of the position that argmax and argmin return.
  llvm::Type *positionType(tgl::ReduceOp op);
  llvm::Value *isBetter(tgl::ReduceKind kind, llvm::Value *lhs, llvm::Value *rhs);
  Accumulator takeNext(tgl::ReduceKind kind, Accumulator accumulator, Accumulator point,
                       llvm::Value *counts);
  llvm::Value *resultOf(tgl::ReduceOp op, const Accumulator &accumulator);
  /// Emits the body at the current axes and adds its value.
  Accumulator emitReducePoint(tgl::ReduceOp op, Accumulator accumulator);
  /// How an axis is added up: its terms in parts of so many, those in parts of as many of them, and
  /// so on; with `keepsError` what rounding takes from the sum of the parts is added up too.
  struct BlockedSum {
    int64_t terms = 1;
    unsigned levels = 0;
    bool keepsError = false;
  };
  /// Parts that keep the error of a sum from growing with its length; none where it is short.
  virtual BlockedSum blockedSumOf(tgl::ReduceOp op, unsigned axis);
  /// for (iv = low; iv < high; iv += step) accumulator = body(iv, accumulator); each part has an
  /// accumulator of its own, which begins with zeros.
  Accumulator
  emitBlockedSum(tgl::ReduceOp op, llvm::Value *low, llvm::Value *high, int64_t step,
                 BlockedSum parts, Accumulator start,
                 llvm::function_ref<Accumulator(llvm::Value *iv, Accumulator before)> body);
  llvm::Value *emitExactSum(llvm::Value *low, llvm::Value *high, int64_t step, llvm::Value *start,
                            llvm::function_ref<llvm::Value *(llvm::Value *iv)> part);
  /// Loops over the axes `order`, the accumulator carried, around `innermost`.
  Accumulator emitSerialReduce(tgl::ReduceOp op, llvm::ArrayRef<unsigned> order,
                               Accumulator accumulator,
                               llvm::function_ref<Accumulator(Accumulator)> innermost);
  /// All of a reduction, at the current axes around it.
  virtual Accumulator emitReduceNest(tgl::ReduceOp op);
  Accumulator combineLanes(tgl::ReduceOp op, Accumulator accumulator, unsigned width);
  /// Loops over `axes` in order, `body` innermost.
  void emitNest(tgl::AxesOp op, llvm::ArrayRef<unsigned> axes, llvm::function_ref<void()> body);
  /// Bounds of an axis: its own, or the part of it that is being emitted.
  llvm::Value *emitLow(tgl::AxesOp op, unsigned axis);
  llvm::Value *emitHigh(tgl::AxesOp op, unsigned axis);
  struct AxisSlice {
    mlir::Value axis;
    llvm::Value *low, *high;
  };
  std::optional<AxisSlice> axisSlice;
  tgl::ValueExpr lowOf(tgl::AxesOp op, unsigned axis);
  tgl::ValueExpr highOf(tgl::AxesOp op, unsigned axis);
  /// Emits `body` for lanes base, base + 1, ...; with `high`, those that are below it.
  void withLanes(mlir::Value axis, unsigned width, llvm::Value *base, llvm::Value *high,
                 llvm::function_ref<void()> body);

protected:
  //===--- Windows (PeelInterior.cpp) ---===//

  /// Reads with a fill of which every element exists in what is being emitted.
  llvm::SmallPtrSet<mlir::Operation *, 4> insideReads;
  llvm::Value *emitInside(const tgl::ValueExpr &subscript, const IndexExpr &size, tgl::AxesOp op);
  llvm::Value *emitPeeledInterior(tgl::ReduceOp op, llvm::SmallVectorImpl<mlir::Operation *> &free);

  //===--- Vectors (Lanes.cpp) ---===//

  /// The axis of `op` that becomes vector lanes; none where another axis around or inside does, or
  /// where lanes are not possible.
  std::optional<LaneChoice> chooseLanes(tgl::AxesOp op);
  /// Whether lanes along one of the op's own axes are better than along axes inside of it, with
  /// vectors of so many bytes and any number of points.
  static bool prefersOwnAxes(tgl::AxesOp op, unsigned vectorBytes);
  llvm::DenseMap<mlir::Operation *, LaneChoice> laneChoices;
  llvm::DenseSet<mlir::Operation *> laneRoots; // nests for which the choice has been made
  void emitLaneParallel(tgl::ParallelOp op, const LaneChoice &choice);
  void emitLaneRange(tgl::ParallelOp op, const LaneChoice &choice, llvm::Value *low,
                     llvm::Value *high);
  Accumulator emitLaneReduce(tgl::ReduceOp op, const LaneChoice &choice, Accumulator outer);
  llvm::Value *emitFullEnd(llvm::Value *low, llvm::Value *high, unsigned step);

private:
  llvm::Value *reportMask(mlir::Operation *op, llvm::Value *guard);
  /// Whether nothing has to be compared, since the loops around keep the subscript inside.
  bool staysWithin(const tgl::ValueExpr &subscript, const IndexExpr &dim) const;
  /// With `evenProved`: reports as a defect where `mask` holds and a subscript is outside.
  void verifyProved(tgl::TglTensorType type, llvm::ArrayRef<tgl::ValueExpr> subscripts,
                    llvm::Value *mask);
  /// Axes of setCountsOthers.
  llvm::DenseSet<mlir::Value> countsOthers;
  llvm::Value *isByAnotherPoint(llvm::Value *when);
  void reportElement(llvm::Value *bad, mlir::Operation *op, mlir::Value tensor, llvm::Value *offset,
                     llvm::StringRef what);
  /// Fills the error record, if nobody has.
  void leave(unsigned site, llvm::Value *value);
  void report(llvm::Value *bad, ErrorSite site, llvm::ArrayRef<tgl::ValueExpr> subscripts,
              tgl::TglTensorType type);
  mlir::Operation *access = nullptr; ///< the read or write that is being emitted

public:
  enum class Stride { Uniform, Unit, Other };
  /// By how many elements an offset moves along an axis where that is the same at every point of
  /// it: `varies` tells which other operands do.
  static std::optional<int64_t> stepAlong(const tgl::ValueExpr &offset, mlir::Value axis,
                                          llvm::function_ref<bool(mlir::Value)> varies);
  /// Vectors apart by so much are loaded whole and shuffled.
  static bool isShortStep(int64_t step) {
    return step && step >= -longestStep && step <= longestStep;
  }
  static constexpr int64_t longestStep = 4;
  static Stride strideAlong(const tgl::ValueExpr &offset, mlir::Value axis,
                            llvm::function_ref<bool(mlir::Value)> varies);
  /// Bytes of a tensor, rounded up to a multiple of `alignment`.
  static IndexExpr bytesOf(tgl::TglTensorType type, int64_t alignment);
  /// Row-major offset of an access, in elements.
  static tgl::ValueExpr elementOffset(tgl::TglTensorType type,
                                      llvm::ArrayRef<tgl::ValueExpr> subscripts);
};

} // namespace tegula

#endif // TEGULA_CODEGEN_COMMON_EMITTER_H
