//===- ChunkedLoop.cpp - Writes a linear recurrence in chunks of steps ----===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/fuse/ChunkedLoop.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

/// What a decay of 0 counts in the code of decays; one below 0 counts 1.
static constexpr int64_t zeroDecay = 1 << 16;

/// Whether a value of the update and one of a statement with these axes are computed alike.
static bool areSame(const LinearRecurrence &found, Value own, Value other,
                    ArrayRef<Value> axesByDim) {
  auto toUpdate = [&](Value value) -> std::optional<ValueExpr> {
    for (auto [axis, named] : llvm::zip_equal(found.axes, axesByDim))
      if (named == value)
        return ValueExpr(axis);
    return std::nullopt;
  };
  if (own == other)
    return true;
  Operation *a = own.getDefiningOp(), *b = other.getDefiningOp();
  if (!a || !b)
    return !a && !b && ValueExpr(own) == ValueExpr(other).substitute(toUpdate);
  if (a->getName() != b->getName() || a->getNumRegions())
    return false;
  if (auto read = dyn_cast<ReadOp>(a)) {
    auto second = cast<ReadOp>(b);
    auto isPlain = [](ReadOp one) {
      return !one.getGuard() && !one.getFill() && !one.getChecked() &&
             one.getExactNumerators().empty();
    };
    return isPlain(read) && isPlain(second) && read.getTensor() == second.getTensor() &&
           llvm::all_of_zip(read.getSubscriptExprs(), second.getSubscriptExprs(),
                            [&](const ValueExpr &one, const ValueExpr &two) {
                              return one == two.substitute(toUpdate);
                            });
  }
  return !isa<IndexedOp>(a) && a->getAttrDictionary() == b->getAttrDictionary() &&
         a->getNumOperands() == b->getNumOperands() &&
         llvm::all_of_zip(a->getOperands(), b->getOperands(), [&](Value one, Value two) {
           return areSame(found, one, two, axesByDim);
         });
}

/// Whether the factors that vary along dims of this kind, at least one, are reads of bf16, but for
/// decays.
static bool readsBF16(const LinearRecurrence &found, LinearRecurrence::Dim kind,
                      ArrayRef<Value> factors, ArrayRef<Value> axesByDim) {
  bool hasOne = false;
  for (Value factor : factors) {
    if (llvm::none_of(found.dimsOf({factor}, axesByDim),
                      [&](unsigned dim) { return found.dims[dim] == kind; }))
      continue;
    if (llvm::any_of(found.decay,
                     [&](Value decay) { return areSame(found, decay, factor, axesByDim); }))
      continue;
    auto read = factor.getDefiningOp<ReadOp>();
    if (!read || !read.getTensorType().getElementType().isBF16())
      return false;
    hasOne = true;
  }
  return hasOne;
}

bool tegula::roundsToBF16(const LinearRecurrence &found) {
  using Dim = LinearRecurrence::Dim;
  const auto &correction = found.correction;
  return readsBF16(found, Dim::Summed, found.key, found.axes) &&
         readsBF16(found, Dim::Column, correction ? correction->base : found.value,
                   correction ? found.readouts[correction->readout].axes : found.axes) &&
         llvm::all_of(found.readouts, [&](const LinearReadout &readout) {
           return readsBF16(found, Dim::Summed, readout.query, readout.axes);
         });
}

namespace {
using Dim = LinearRecurrence::Dim;

/// A tensor over axes of the loop's statements, with a chunk and steps of it in between.
struct ChunkTensor {
  Value tensor;
  SmallVector<Value> leading, trailing;
};

/// Where a statement is being written: what stands for axes of the loop's statements, and which
/// step of which chunk it is.
struct Place {
  OpBuilder builder;
  IRMapping map;
  Value chunk, step;

  explicit Place(Block &block) : builder(OpBuilder::atBlockEnd(&block)) {}
  Place(const Place &) = default;
  Place inside(Block &block) const {
    Place other(*this);
    other.builder = OpBuilder::atBlockEnd(&block);
    return other;
  }
};

/// Keys, values or queries: read where they are used, or kept for all steps.
struct Operand {
  ArrayRef<Value> factors;
  std::optional<ChunkTensor> kept;
};

class ChunkWriter {
public:
  ChunkWriter(LinearRecurrence &found, int64_t length)
      : found(found), loop(found.loop), length(length), builder(found.loop),
        loc(found.loop.getLoc()), context(builder.getContext()),
        count((loop.getHighExpr() - loop.getLowExpr()).expr()),
        chunks(ValueExpr::floorDiv(ValueExpr(count) + ValueExpr(length - 1), length).expr()) {
    std::optional<int64_t> steps = count.asConstant();
    isWhole = steps && *steps % length == 0;
    element = roundsToBF16(found) ? Type(builder.getBF16Type()) : Type(builder.getF32Type());
  }

  void run() {
    keepTemps();
    SmallVector<ParallelOp> statements(loop.getBody().front().getOps<ParallelOp>());
    for (ParallelOp statement : statements)
      if (statement != found.update && !found.readers.contains(statement))
        writeAllSteps(statement, {});
    writeDecays();
    if (found.correction)
      writeCorrectedStates();
    else
      writeStates();
    for (ParallelOp statement : statements)
      if (found.readers.contains(statement) &&
          !(found.correction && found.correction->statement == statement))
        writeReadouts(statement);
    loop.erase();
  }

private:
  LinearRecurrence &found;
  ForOp loop;
  int64_t length;
  OpBuilder builder; // before the loop
  Location loc;
  MLIRContext *context;
  IndexExpr count, chunks;
  bool isWhole;
  Type element; // of factors that are kept for products

  DenseMap<Value, Value> temps;                              // of the loop: for all steps
  SmallVector<Value> decayAxes, decayLeading, decayTrailing; // all; of a batch; summed ones
  bool decayHasSteps = false, decayMayBeNegative = false;
  Value logs, codes; // null: the decay is 1
  ChunkTensor states;
  Operand keys, values;

  //===--------------------------------------------------------------------===//
  // Axes and temporaries
  //===--------------------------------------------------------------------===//

  static AxisSpec specOf(Value axis) {
    auto argument = cast<BlockArgument>(axis);
    return getAxisSpec(axesOpOf(axis), argument.getArgNumber());
  }
  static SmallVector<AxisSpec> specsOf(ArrayRef<Value> axes) {
    return llvm::map_to_vector(axes, specOf);
  }
  AxisSpec chunkAxis() { return {"chunk", 0, ValueExpr(chunks)}; }
  AxisSpec stepAxis(StringRef name = "step") { return {name.str(), 0, length}; }

  SmallVector<Value> axesOfKind(Dim kind) {
    return llvm::map_to_vector(found.dimsOfKind(kind),
                               [&](unsigned dim) { return found.axes[dim]; });
  }
  /// Axes of the loop's statements along which a factor varies, of these.
  static SmallVector<Value> axesAmong(ArrayRef<Value> axes, ArrayRef<Value> factors) {
    SmallVector<Value> own;
    for (Value axis : axes)
      if (llvm::any_of(factors, [&](Value factor) {
            return axesOf(factor).contains(cast<BlockArgument>(axis));
          }))
        own.push_back(axis);
    return own;
  }

  /// Steps of a chunk that the loop has.
  ValueExpr stepsOf(Value chunk) {
    if (isWhole)
      return length;
    return ValueExpr::min(length, ValueExpr(count) - ValueExpr(chunk) * ValueExpr(length));
  }
  /// The step behind the last one of a chunk, for decays.
  ValueExpr endOf(Value chunk) { return decayHasSteps ? ValueExpr(length) : stepsOf(chunk); }
  ValueExpr stepNumber(const Place &place) {
    return ValueExpr(place.chunk) * ValueExpr(length) + ValueExpr(place.step);
  }

  Value makeTemp(ArrayRef<Value> leading, bool hasChunk, ArrayRef<int64_t> steps,
                 ArrayRef<Value> trailing, Type type, StringRef name, bool hasEnd = false) {
    SmallVector<IndexExprAttr> dims;
    auto add = [&](const IndexExpr &extent) {
      dims.push_back(IndexExprAttr::get(context, extent));
    };
    for (Value axis : leading)
      add(highOf(axis).expr());
    if (hasChunk)
      add(hasEnd ? (ValueExpr(chunks) + ValueExpr(1)).expr() : chunks);
    for (int64_t extent : steps)
      add(IndexExpr(extent));
    for (Value axis : trailing)
      add(highOf(axis).expr());
    return TempOp::create(builder, loc, TglTensorType::get(context, dims, type), name);
  }
  static SmallVector<ValueExpr> subscripts(const Place &place, ArrayRef<Value> leading, Value chunk,
                                           ArrayRef<ValueExpr> steps, ArrayRef<Value> trailing) {
    SmallVector<ValueExpr> all;
    auto add = [&](Value axis) { all.push_back(ValueExpr(place.map.lookup(axis))); };
    llvm::for_each(leading, add);
    if (chunk)
      all.push_back(ValueExpr(chunk));
    llvm::append_range(all, steps);
    llvm::for_each(trailing, add);
    return all;
  }
  Value readAt(Place &place, const ChunkTensor &from, ArrayRef<ValueExpr> steps) {
    return ReadOp::create(place.builder, loc, from.tensor,
                          subscripts(place, from.leading, place.chunk, steps, from.trailing));
  }

  /// Temporaries of a step become those of all steps.
  void keepTemps() {
    for (TempOp temp : loop.getBody().front().getOps<TempOp>()) {
      SmallVector<IndexExprAttr> dims{
          IndexExprAttr::get(context, (ValueExpr(chunks) * ValueExpr(length)).expr())};
      llvm::append_range(dims, temp.getType().getDims());
      auto type = TglTensorType::get(context, dims, temp.getType().getElementType());
      temps[temp] = TempOp::create(builder, loc, type, temp.getName());
    }
  }

  //===--------------------------------------------------------------------===//
  // Statements and copies of values
  //===--------------------------------------------------------------------===//

  /// A statement over axes of the loop's statements, a chunk, if `hasChunk`, and more.
  Place open(ArrayRef<Value> axes, bool hasChunk, ArrayRef<AxisSpec> more, Value *moreAxes) {
    SmallVector<AxisSpec> specs = specsOf(axes);
    if (hasChunk)
      specs.push_back(chunkAxis());
    llvm::append_range(specs, more);
    if (specs.empty())
      specs.push_back({"all", 0, 1});
    auto statement = ParallelOp::create(builder, loc, specs);
    Place place(statement.getBody().front());
    unsigned next = 0;
    for (Value axis : axes)
      place.map.map(axis, Value(statement.getAxes()[next++]));
    if (hasChunk)
      place.chunk = statement.getAxes()[next++];
    for (size_t number = 0; number < more.size(); ++number)
      moreAxes[number] = statement.getAxes()[next++];
    return place;
  }

  /// The loop variable is that of a step of the place's chunk.
  void setStep(Place &place, Value step) {
    place.step = step;
    ValueExpr number = stepNumber(place);
    ValueExpr variable =
        loop.getReverse() ? loop.getHighExpr() - ValueExpr(1) - number : loop.getLowExpr() + number;
    place.map.map(Value(loop.getLoopVar()), materialize(place.builder, loc, variable));
  }

  Value copy(Place &place, Value value) {
    if (Value known = place.map.lookupOrNull(value))
      return known;
    Operation *op = value.getDefiningOp();
    if (!op || !loop->isProperAncestor(op) || isa<TempOp>(op))
      return value;
    copyOp(place, op);
    return place.map.lookup(value);
  }

  void copyOp(Place &place, Operation *op) {
    for (Value used : valuesUsedBy(op))
      copy(place, used);
    Operation *clone = place.builder.clone(*op, place.map);
    SmallVector<Operation *> accesses;
    clone->walk([&](IndexedOp indexed) {
      foldIndices(indexed);
      accesses.push_back(indexed);
    });
    for (Operation *access : accesses)
      if (Value same = accessAllSteps(place, access); same && access == clone)
        place.map.map(op->getResult(0), same);
  }

  /// An access to a temporary of the loop goes to the place's step of it.
  Value accessAllSteps(const Place &place, Operation *op) {
    OpBuilder before(op);
    auto subscriptsOf = [&](auto access) {
      SmallVector<ValueExpr> all{stepNumber(place)};
      llvm::append_range(all, access.getSubscriptExprs());
      return all;
    };
    if (auto read = dyn_cast<ReadOp>(op); read && temps.contains(read.getTensor())) {
      Value same =
          ReadOp::create(before, loc, temps[read.getTensor()], subscriptsOf(read), read.getFill(),
                         read.getGuard(), read.getExactExprs(), read.getChecked().value_or(""));
      read.replaceAllUsesWith(same);
      read.erase();
      return same;
    }
    if (auto write = dyn_cast<WriteOp>(op); write && temps.contains(write.getTensor())) {
      WriteOp::create(before, loc, write.getValue(), temps[write.getTensor()], subscriptsOf(write),
                      write.getGuard(), write.getCombine(), write.getChecked().value_or(""));
      write.erase();
    }
    return {};
  }

  /// `more` times the factors; `more` may be null.
  Value product(Place &place, ArrayRef<Value> factors, Value more = {}) {
    Value result = more;
    for (Value factor : factors) {
      Value own = copy(place, factor);
      result = result ? arith::MulFOp::create(place.builder, loc, result, own) : own;
    }
    return result ? result : number(place.builder, 1);
  }

  Value number(OpBuilder &at, double value) {
    return arith::ConstantOp::create(at, loc, at.getF32FloatAttr(float(value)));
  }
  Value integer(OpBuilder &at, int64_t value) {
    return arith::ConstantOp::create(at, loc, at.getI32IntegerAttr(int32_t(value)));
  }

  /// Ends the body of a loop or a sum.
  static void yield(Operation *op, ValueRange values) {
    Block &body = op->getRegion(0).front();
    if (!body.empty() && body.back().hasTrait<OpTrait::IsTerminator>())
      body.back().erase();
    OpBuilder end = OpBuilder::atBlockEnd(&body);
    YieldOp::create(end, op->getLoc(), values);
  }

  Value sumOver(Place &place, ArrayRef<AxisSpec> specs,
                llvm::function_ref<Value(Place &, ReduceOp)> term) {
    auto sum =
        ReduceOp::create(place.builder, loc, place.builder.getF32Type(), ReduceKind::Sum, specs);
    Block &body = sum.getBody().front();
    body.clear();
    Place inside = place.inside(body);
    Value value = term(inside, sum);
    yield(sum, value);
    return sum;
  }

  /// The statement for all steps; `valueOf` gives what stands for an op, or null.
  void writeAllSteps(ParallelOp statement,
                     llvm::function_ref<Value(Place &, Operation *)> valueOf) {
    auto axes = cast<AxesOp>(statement.getOperation());
    auto made = ParallelOp::create(builder, loc, {chunkAxis(), stepAxis()});
    auto madeAxes = cast<AxesOp>(made.getOperation());
    Place place(made.getBody().front());
    place.chunk = made.getAxes()[0];
    if (!isWhole)
      setAxisRange(madeAxes, 1, 0, stepsOf(place.chunk));
    for (auto [number, axis] : llvm::enumerate(statement.getAxes())) {
      AxisSpec spec = getAxisSpec(axes, number);
      auto inMap = [&](Value value) -> std::optional<ValueExpr> {
        Value known = place.map.lookupOrNull(value);
        return known ? std::optional(ValueExpr(known)) : std::nullopt;
      };
      spec.lo = spec.lo.substitute(inMap);
      spec.hi = spec.hi.substitute(inMap);
      place.map.map(Value(axis), Value(insertAxis(madeAxes, 2 + number, spec)));
    }
    setStep(place, made.getAxes()[1]);
    for (Operation &op : statement.getBody().front()) {
      if (Value value = valueOf ? valueOf(place, &op) : Value())
        place.map.map(op.getResult(0), value);
      else if (op.getNumResults() == 0 || !place.map.contains(op.getResult(0)))
        copyOp(place, &op);
    }
    eraseUnusedOps(made.getBody().front());
  }

  //===--------------------------------------------------------------------===//
  // Decays
  //===--------------------------------------------------------------------===//

  /// Whether a value has the loop variable, or reads a temporary that each step writes.
  bool variesByStep(Value value) {
    if (axesOf(value).contains(loop.getLoopVar()))
      return true;
    Operation *op = value.getDefiningOp();
    if (!op || !loop->isProperAncestor(op))
      return false;
    return llvm::any_of(accessesOf(op).reads,
                        [&](Value tensor) { return temps.contains(tensor); }) ||
           llvm::any_of(valuesUsedBy(op), [&](Value used) {
             return !isa<TglTensorType>(used.getType()) && variesByStep(used);
           });
  }

  /// Logarithms of products of decays from a chunk's begin up to each step, and their codes.
  void writeDecays() {
    if (found.decay.empty())
      return;
    decayAxes = axesAmong(found.axes, found.decay);
    decayHasSteps = llvm::any_of(found.decay, [&](Value factor) { return variesByStep(factor); });
    decayMayBeNegative = llvm::any_of(
        found.decay, [](Value factor) { return !factor.getDefiningOp<math::ExpOp>(); });
    for (Value axis : decayAxes)
      (isColumnOrSummed(axis, found.axes) ? decayTrailing : decayLeading).push_back(axis);
    auto make = [&](Type type, StringRef name) {
      return makeTemp(decayLeading, decayHasSteps, {length + 1}, decayTrailing, type, name);
    };
    logs = make(builder.getF32Type(), "decay_log");
    codes = make(builder.getI32Type(), "decay_code");
    SmallVector<Value> channels(decayTrailing.size());
    Place place = open(decayLeading, decayHasSteps, specsOf(decayTrailing), channels.data());
    place.map.map(decayTrailing, channels);
    Value log = number(place.builder, 0), code = integer(place.builder, 0);
    auto keep = [&](Place &at, const ValueExpr &step) {
      SmallVector<ValueExpr> where = subscripts(at, decayLeading, at.chunk, {step}, decayTrailing);
      WriteOp::create(at.builder, loc, log, logs, where);
      WriteOp::create(at.builder, loc, code, codes, where);
    };
    keep(place, 0);
    ValueExpr own = decayHasSteps ? stepsOf(place.chunk) : ValueExpr(length);
    auto walk = ForOp::create(place.builder, loc, ArrayRef<StringRef>{"step"}, 0, own,
                              ValueRange{log, code});
    walk.getBody().front().clear();
    Place inside = place.inside(walk.getBody().front());
    if (decayHasSteps)
      setStep(inside, walk.getLoopVar());
    log = walk.getIterArgs()[0], code = walk.getIterArgs()[1];
    for (Value factor : found.decay)
      addDecay(inside, factor, log, code);
    keep(inside, ValueExpr(Value(walk.getLoopVar())) + ValueExpr(1));
    yield(walk, {log, code});
    if (!decayHasSteps || isWhole)
      return;
    // Steps that the last chunk lacks change nothing.
    log = walk.getResult(0), code = walk.getResult(1);
    auto rest =
        ForOp::create(place.builder, loc, ArrayRef<StringRef>{"step"}, own, ValueExpr(length));
    rest.getBody().front().clear();
    Place behind = place.inside(rest.getBody().front());
    keep(behind, ValueExpr(Value(rest.getLoopVar())) + ValueExpr(1));
    yield(rest, {});
  }

  void addDecay(Place &place, Value factor, Value &log, Value &code) {
    OpBuilder &b = place.builder;
    Value value = copy(place, factor), zero = number(b, 0), exponent;
    Value isZero = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, value, zero);
    if (auto power = factor.getDefiningOp<math::ExpOp>())
      exponent = copy(place, power.getOperand());
    else
      exponent = math::LogOp::create(b, loc, Value(math::AbsFOp::create(b, loc, value)));
    exponent = arith::SelectOp::create(b, loc, isZero, zero, exponent);
    log = arith::AddFOp::create(b, loc, log, exponent);
    Value more = integer(b, 0);
    if (decayMayBeNegative) {
      Value isBelow = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, value, zero);
      more = arith::SelectOp::create(b, loc, isBelow, integer(b, 1), more);
    }
    more = arith::SelectOp::create(b, loc, isZero, integer(b, zeroDecay), more);
    code = arith::AddIOp::create(b, loc, code, more);
  }

  /// The product of the decays of a chunk's steps from `from` to before `to`; null: it is 1.
  Value decayBetween(Place &place, const ValueExpr &from, const ValueExpr &to) {
    if (!logs)
      return {};
    OpBuilder &b = place.builder;
    auto read = [&](Value tensor, const ValueExpr &step) -> Value {
      Value chunk = decayHasSteps ? place.chunk : Value();
      return ReadOp::create(b, loc, tensor,
                            subscripts(place, decayLeading, chunk, {step}, decayTrailing));
    };
    Value log = read(logs, to), code = read(codes, to);
    if (from.asConstant() != 0) {
      log = arith::SubFOp::create(b, loc, log, read(logs, from));
      code = arith::SubIOp::create(b, loc, code, read(codes, from));
    }
    Value power = math::ExpOp::create(b, loc, log);
    if (decayMayBeNegative) {
      Value odd = arith::AndIOp::create(b, loc, code, integer(b, 1));
      Value isOdd = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, odd, integer(b, 0));
      Value negative = arith::NegFOp::create(b, loc, power);
      power = arith::SelectOp::create(b, loc, isOdd, negative, power);
    }
    Value hasZero =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, code, integer(b, zeroDecay));
    return arith::SelectOp::create(b, loc, hasZero, number(b, 0), power);
  }

  //===--------------------------------------------------------------------===//
  // Keys, values and queries
  //===--------------------------------------------------------------------===//

  bool isColumnOrSummed(Value axis, ArrayRef<Value> axesByDim) {
    const auto *at = llvm::find(axesByDim, axis);
    return at != axesByDim.end() && found.dims[at - axesByDim.begin()] != Dim::Batch;
  }

  /// Decays of each channel that readouts sum over stand inside of sums, at keys and queries.
  bool isChannelwise() const { return !decayTrailing.empty(); }
  bool isDecayAxis(Value axis, ArrayRef<Value> axesByDim) {
    const auto *at = llvm::find(axesByDim, axis);
    return at != axesByDim.end() &&
           llvm::is_contained(decayAxes, found.axes[at - axesByDim.begin()]);
  }

  /// The product of factors for all steps, if `isDecayed` times decays of the chunk's steps: those
  /// that follow up to its end, or, for a readout, all from its begin that it sees. Steps that the
  /// last chunk lacks have zeros.
  ChunkTensor keep(ArrayRef<Value> factors, ArrayRef<Value> axes, ArrayRef<Value> axesByDim,
                   bool isDecayed, StringRef name, Type type = {},
                   const LinearReadout *readout = nullptr) {
    ChunkTensor made;
    for (Value axis : axes)
      if (!axesAmong({axis}, factors).empty() || (isDecayed && isDecayAxis(axis, axesByDim)))
        (isColumnOrSummed(axis, axesByDim) ? made.trailing : made.leading).push_back(axis);
    made.tensor =
        makeTemp(made.leading, true, {length}, made.trailing, type ? type : element, name);
    for (bool isRest : {false, true}) {
      if (isRest && isWhole)
        break;
      SmallVector<AxisSpec> specs{stepAxis()};
      llvm::append_range(specs, specsOf(made.trailing));
      SmallVector<Value> more(specs.size());
      Place place = open(made.leading, true, specs, more.data());
      auto statement = cast<AxesOp>(place.builder.getBlock()->getParentOp());
      if (!isWhole)
        setAxisRange(statement, made.leading.size() + 1,
                     isRest ? stepsOf(place.chunk) : ValueExpr(0),
                     isRest ? ValueExpr(length) : stepsOf(place.chunk));
      place.map.map(made.trailing, ArrayRef(more).drop_front());
      setStep(place, more[0]);
      Value value = number(place.builder, 0);
      if (!isRest) {
        Value decay;
        if (readout)
          alignAxes(place, *readout);
        if (isDecayed)
          decay = readout ? decayBetween(place, 0, seenBy(*readout, place.step))
                          : decayBetween(place, ValueExpr(place.step) + ValueExpr(1),
                                         endOf(place.chunk));
        value = product(place, factors, decay);
      }
      WriteOp::create(
          place.builder, loc, value, made.tensor,
          subscripts(place, made.leading, place.chunk, {ValueExpr(place.step)}, made.trailing));
      eraseUnusedOps(*place.builder.getBlock());
    }
    return made;
  }

  /// What is one element of a tensor is read where it is used.
  Operand operandOf(ArrayRef<Value> factors, ArrayRef<Value> axes, ArrayRef<Value> axesByDim,
                    StringRef name, Type type = {}) {
    Operand operand{factors, std::nullopt};
    auto read = factors.size() == 1 ? factors[0].getDefiningOp<ReadOp>() : ReadOp();
    if (!isWhole || !read || read.getGuard() || read.getFill() || read.getChecked())
      operand.kept = keep(factors, axes, axesByDim, false, name, type);
    return operand;
  }

  Value valueOf(Place &place, const Operand &operand, Value step) {
    Place at = place.inside(*place.builder.getBlock());
    setStep(at, step);
    if (operand.kept)
      return readAt(at, *operand.kept, {ValueExpr(step)});
    return product(at, operand.factors);
  }

  //===--------------------------------------------------------------------===//
  // States
  //===--------------------------------------------------------------------===//

  /// What each chunk adds to the state, a product; then the state before each chunk, in order.
  void writeStates() {
    SmallVector<Value> batch = axesOfKind(Dim::Batch), inner = axesOfKind(Dim::Summed);
    llvm::append_range(inner, axesOfKind(Dim::Column));
    // The decay goes where it makes nothing larger.
    auto hasDecayAxes = [&](ArrayRef<Value> factors) {
      return axesAmong(decayAxes, factors).size() == decayAxes.size();
    };
    bool isOfKeys = isChannelwise() || (hasDecayAxes(found.key) && !hasDecayAxes(found.value));
    values = operandOf(found.value, found.axes, found.axes, "values");
    keys = operandOf(found.key, found.axes, found.axes, "keys");
    Operand decayed = isOfKeys ? keys : values;
    if (logs)
      decayed.kept = keep(decayed.factors, found.axes, found.axes, true, "decayed");
    Value added = makeTemp(batch, true, {}, inner, builder.getF32Type(), "added");
    SmallVector<Value> own(inner.size());
    Place place = open(batch, true, specsOf(inner), own.data());
    place.map.map(inner, own);
    Value sum = sumOver(place, {stepAxis()}, [&](Place &at, ReduceOp reduce) -> Value {
      Value step = reduce.getAxes()[0];
      Value key = valueOf(at, isOfKeys ? decayed : keys, step),
            value = valueOf(at, isOfKeys ? values : decayed, step);
      return arith::MulFOp::create(at.builder, loc, key, value);
    });
    if (found.isNegative)
      sum = arith::NegFOp::create(place.builder, loc, sum);
    WriteOp::create(place.builder, loc, sum, added,
                    subscripts(place, batch, place.chunk, {}, inner));
    passStates(added, batch, inner);
  }

  /// Whether something reads the state behind the loop, or it is a parameter.
  bool isUsedLater() {
    return !found.state.getDefiningOp() ||
           llvm::any_of(found.state.getUsers(), [&](Operation *user) {
             while (user->getBlock() != loop->getBlock())
               user = user->getParentOp();
             return user != loop && loop->isBeforeInBlock(user);
           });
  }

  void passStates(Value added, ArrayRef<Value> batch, ArrayRef<Value> inner) {
    states = {makeTemp(batch, true, {}, inner, element, "states"), SmallVector<Value>(batch),
              SmallVector<Value>(inner)};
    SmallVector<Value> all(batch);
    llvm::append_range(all, inner);
    Place place = open(all, false, {}, nullptr);
    SmallVector<ValueExpr> own;
    for (Value axis : found.axes)
      own.push_back(ValueExpr(place.map.lookup(axis)));
    Value first = ReadOp::create(place.builder, loc, found.state, own);
    auto walk = ForOp::create(place.builder, loc, ArrayRef<StringRef>{"chunk"}, 0,
                              ValueExpr(chunks), ValueRange(first));
    walk.getBody().front().clear();
    Place at = place.inside(walk.getBody().front());
    at.chunk = walk.getLoopVar();
    Value state = walk.getIterArgs()[0];
    SmallVector<ValueExpr> here = subscripts(at, batch, at.chunk, {}, inner);
    WriteOp::create(at.builder, loc, state, states.tensor, here);
    if (Value decay = decayBetween(at, 0, endOf(at.chunk)))
      state = arith::MulFOp::create(at.builder, loc, decay, state);
    Value more = ReadOp::create(at.builder, loc, added, here);
    yield(walk, ValueRange(Value(arith::AddFOp::create(at.builder, loc, state, more))));
    if (isUsedLater())
      WriteOp::create(place.builder, loc, walk.getResult(0), found.state, own);
  }

  //===--------------------------------------------------------------------===//
  // Readouts
  //===--------------------------------------------------------------------===//

  /// What the sums of a statement become.
  struct Scores {
    LinearReadout *readout;
    Operand query;
    ChunkTensor scores, before;
    std::optional<ChunkTensor> result; ///< where steps are missing in the last chunk
  };

  /// Axes of the update are those of the readout.
  void alignAxes(Place &place, const LinearReadout &readout) {
    for (auto [of, own] : llvm::zip_equal(found.axes, readout.axes))
      if (Value known = place.map.lookupOrNull(own))
        place.map.map(of, known);
  }

  void writeReadouts(ParallelOp statement) {
    std::vector<Scores> all;
    for (LinearReadout &readout : found.readouts)
      if (readout.statement == statement) {
        all.push_back(writeScores(readout, element));
        all.back().before = writeBefore(all.back());
        if (!isWhole)
          all.back().result = writeResult(all.back());
      }
    writeAllSteps(statement, [&](Place &place, Operation *op) -> Value {
      for (Scores &one : all)
        if (one.readout->reduce == op)
          return one.result ? readAt(place, *one.result, {ValueExpr(place.step)})
                            : resultOf(place, one);
      return {};
    });
  }

  /// The last step, plus one, that the state of a step has seen.
  static ValueExpr seenBy(const LinearReadout &readout, Value step) {
    return ValueExpr(step) + ValueExpr(readout.seesStep ? 1 : 0);
  }

  SmallVector<Value> axesOfReadout(const LinearReadout &readout) {
    SmallVector<Value> axes;
    for (Value axis : LinearReadout(readout).statement.getAxes())
      axes.push_back(axis);
    for (Value axis : LinearReadout(readout).reduce.getAxes())
      axes.push_back(axis);
    return axes;
  }

  /// Scores of steps that a step does not see are 0.
  void writeNoScores(const ChunkTensor &scores, const LinearReadout &readout) {
    Value steps[2];
    Place place = open(scores.leading, true, {stepAxis(), stepAxis("from")}, steps);
    auto statement = cast<AxesOp>(place.builder.getBlock()->getParentOp());
    setAxisRange(statement, statement.getAxes().size() - 1, seenBy(readout, steps[0]), length);
    WriteOp::create(place.builder, loc, number(place.builder, 0), scores.tensor,
                    subscripts(place, scores.leading, place.chunk,
                               {ValueExpr(steps[0]), ValueExpr(steps[1])}, {}));
  }

  Scores writeScores(LinearReadout &readout, Type type) {
    SmallVector<Value> axes = axesOfReadout(readout);
    Scores made{&readout, operandOf(readout.query, axes, readout.axes, "queries"), {}, {}, {}};
    for (Value axis : readout.statement.getAxes()) {
      const auto *dim = llvm::find(readout.axes, axis);
      bool isOwn = !axesAmong({axis}, readout.query).empty();
      if (dim != readout.axes.end())
        isOwn = found.dims[dim - readout.axes.begin()] == Dim::Batch;
      if (isOwn)
        made.scores.leading.push_back(axis);
    }
    made.scores.tensor = makeTemp(made.scores.leading, true, {length, length}, {}, type, "scores");
    Value steps[2];
    Place place = open(made.scores.leading, true, {stepAxis(), stepAxis("from")}, steps);
    alignAxes(place, readout);
    SmallVector<Value> summed(readout.reduce.getAxes());
    Value sum = sumOver(place, specsOf(summed), [&](Place &at, ReduceOp reduce) -> Value {
      for (auto [axis, own] : llvm::zip_equal(summed, reduce.getAxes()))
        at.map.map(axis, Value(own));
      alignAxes(at, readout);
      Value query = valueOf(at, made.query, steps[0]), key = valueOf(at, keys, steps[1]);
      Value term = arith::MulFOp::create(at.builder, loc, query, key);
      if (isChannelwise())
        term = arith::MulFOp::create(
            at.builder, loc, term,
            decayBetween(at, ValueExpr(steps[1]) + ValueExpr(1), seenBy(readout, steps[0])));
      return term;
    });
    OpBuilder &b = place.builder;
    if (readout.isNegative != found.isNegative)
      sum = arith::NegFOp::create(b, loc, sum);
    if (isChannelwise()) {
      auto statement = cast<AxesOp>(b.getBlock()->getParentOp());
      setAxisRange(statement, statement.getAxes().size() - 1, 0, seenBy(readout, steps[0]));
      writeNoScores(made.scores, readout);
    } else {
      if (Value decay =
              decayBetween(place, ValueExpr(steps[1]) + ValueExpr(1), seenBy(readout, steps[0])))
        sum = arith::MulFOp::create(b, loc, decay, sum);
      Value isSeen = arith::CmpIOp::create(
          b, loc, readout.seesStep ? arith::CmpIPredicate::sle : arith::CmpIPredicate::slt,
          steps[1], steps[0]);
      sum = arith::SelectOp::create(b, loc, isSeen, sum, number(b, 0));
    }
    WriteOp::create(b, loc, sum, made.scores.tensor,
                    subscripts(place, made.scores.leading, place.chunk,
                               {ValueExpr(steps[0]), ValueExpr(steps[1])}, {}));
    eraseUnusedOps(*b.getBlock());
    return made;
  }

  /// Axes of the readout's statement: columns behind the step, all others before it.
  ChunkTensor makeResult(const LinearReadout &readout, StringRef name) {
    ChunkTensor made;
    for (Value axis : LinearReadout(readout).statement.getAxes())
      (isColumnOrSummed(axis, readout.axes) ? made.trailing : made.leading).push_back(axis);
    made.tensor = makeTemp(made.leading, true, {length}, made.trailing, builder.getF32Type(), name);
    return made;
  }
  Place openResult(const ChunkTensor &made, const LinearReadout &readout) {
    SmallVector<AxisSpec> specs{stepAxis()};
    llvm::append_range(specs, specsOf(made.trailing));
    SmallVector<Value> own(specs.size());
    Place place = open(made.leading, true, specs, own.data());
    place.map.map(made.trailing, ArrayRef(own).drop_front());
    setStep(place, own[0]);
    alignAxes(place, readout);
    return place;
  }
  void writeAt(Place &place, const ChunkTensor &made, Value value) {
    WriteOp::create(
        place.builder, loc, value, made.tensor,
        subscripts(place, made.leading, place.chunk, {ValueExpr(place.step)}, made.trailing));
    eraseUnusedOps(*place.builder.getBlock());
  }

  /// The readout of the state before the chunk.
  ChunkTensor writeBefore(Scores &one) {
    LinearReadout &readout = *one.readout;
    Operand query = one.query;
    if (isChannelwise())
      query.kept =
          keep(readout.query, axesOfReadout(readout), readout.axes, true, "seen", {}, &readout);
    ChunkTensor made = makeResult(readout, "before");
    Place place = openResult(made, readout);
    SmallVector<Value> summed(readout.reduce.getAxes());
    Value sum = sumOver(place, specsOf(summed), [&](Place &at, ReduceOp reduce) -> Value {
      for (auto [axis, own] : llvm::zip_equal(summed, reduce.getAxes()))
        at.map.map(axis, Value(own));
      alignAxes(at, readout);
      Value factor = valueOf(at, query, place.step), state = readAt(at, states, {});
      return arith::MulFOp::create(at.builder, loc, factor, state);
    });
    if (readout.isNegative)
      sum = arith::NegFOp::create(place.builder, loc, sum);
    writeAt(place, made, sum);
    return made;
  }

  /// The readout at the place's step: of the state before the chunk, and of the chunk's own steps.
  Value resultOf(Place &place, Scores &one) {
    Place aligned = place;
    alignAxes(aligned, *one.readout);
    OpBuilder &b = aligned.builder;
    Value before = readAt(aligned, one.before, {ValueExpr(place.step)});
    Value decay =
        isChannelwise() ? Value() : decayBetween(aligned, 0, seenBy(*one.readout, place.step));
    if (decay)
      before = arith::MulFOp::create(b, loc, decay, before);
    Value own = sumOver(aligned, {stepAxis("from")}, [&](Place &at, ReduceOp reduce) -> Value {
      Value from = reduce.getAxes()[0];
      Value score = readAt(at, one.scores, {ValueExpr(place.step), ValueExpr(from)});
      Value value = valueOf(at, values, from);
      return arith::MulFOp::create(at.builder, loc, score, value);
    });
    return arith::AddFOp::create(b, loc, before, own);
  }

  /// The readouts of all steps, and of those that the last chunk lacks.
  ChunkTensor writeResult(Scores &one) {
    ChunkTensor made = makeResult(*one.readout, "readout");
    Place place = openResult(made, *one.readout);
    Value result = resultOf(place, one);
    writeAt(place, made, result);
    return made;
  }

  //===--------------------------------------------------------------------===//
  // Corrected values
  //===--------------------------------------------------------------------===//

  /// Axes of the readout are those of the update.
  void alignBack(Place &place, const LinearReadout &readout) {
    for (auto [of, own] : llvm::zip_equal(found.axes, readout.axes))
      if (Value known = place.map.lookupOrNull(of))
        place.map.map(own, known);
  }

  Value signedProduct(Place &place, const Operand &operand, bool isNegative, Value other = {}) {
    Value value = valueOf(place, operand, place.step);
    if (other)
      value = arith::MulFOp::create(place.builder, loc, value, other);
    return isNegative ? Value(arith::NegFOp::create(place.builder, loc, value)) : value;
  }

  /// Runs `write` with statements going into a loop, and ends the loop.
  void inLoop(StringRef name, const ValueExpr &high, llvm::function_ref<void(Value)> write) {
    auto walk = ForOp::create(builder, loc, ArrayRef<StringRef>{name}, 0, high, ValueRange());
    walk.getBody().front().clear();
    OpBuilder outside = builder;
    builder = OpBuilder::atBlockEnd(&walk.getBody().front());
    write(walk.getLoopVar());
    builder = outside;
    yield(walk, {});
  }

  /// Forward substitution, step by step: x[l] = first(l) + scale * sum over m < l of
  /// scores[l, m] * x[m], over the columns.
  ChunkTensor solve(Scores &one, const Operand &scale, ArrayRef<Value> columns, StringRef name,
                    llvm::function_ref<Value(Place &)> first) {
    LinearReadout &readout = *one.readout;
    ChunkTensor made;
    for (unsigned dim : found.dimsOfKind(Dim::Batch))
      made.leading.push_back(readout.axes[dim]);
    made.trailing.append(columns.begin(), columns.end());
    made.tensor = makeTemp(made.leading, true, {length}, columns, builder.getF32Type(), name);
    inLoop("step", length, [&](Value step) {
      SmallVector<Value> own(columns.size());
      Place place = open(made.leading, true, specsOf(columns), own.data());
      place.map.map(columns, own);
      setStep(place, step);
      alignAxes(place, readout);
      Value sum = sumOver(place, {AxisSpec{"from", 0, ValueExpr(step)}},
                          [&](Place &at, ReduceOp reduce) -> Value {
                            ValueExpr from = Value(reduce.getAxes()[0]);
                            Value score = readAt(at, one.scores, {ValueExpr(step), from});
                            Value solved = readAt(at, made, {from});
                            return arith::MulFOp::create(at.builder, loc, score, solved);
                          });
      sum = signedProduct(place, scale, found.correction->scaleIsNegative, sum);
      writeAt(place, made, arith::AddFOp::create(place.builder, loc, first(place), sum));
    });
    return made;
  }

  void writeCorrectedStates() {
    const ValueCorrection &correction = *found.correction;
    LinearReadout &readout = found.readouts[correction.readout];
    Type f32 = builder.getF32Type();
    keys = operandOf(found.key, found.axes, found.axes, "keys");
    Scores one = writeScores(readout, f32);
    SmallVector<Value> own(readout.statement.getAxes()), columns;
    SmallVector<Value> summed(readout.reduce.getAxes());
    for (unsigned dim : found.dimsOfKind(Dim::Column))
      columns.push_back(readout.axes[dim]);
    Operand base = operandOf(correction.base, own, readout.axes, "base", f32),
            scale = operandOf(correction.scale, own, readout.axes, "scale", f32);
    ChunkTensor fixed = solve(one, scale, columns, "fixed", [&](Place &place) {
      return signedProduct(place, base, correction.baseIsNegative);
    });
    ChunkTensor turned = solve(one, scale, summed, "turned", [&](Place &place) {
      Value query = valueOf(place, one.query, place.step);
      if (Value decay = decayBetween(place, 0, seenBy(readout, place.step)))
        query = arith::MulFOp::create(place.builder, loc, decay, query);
      return signedProduct(place, scale, correction.scaleIsNegative != readout.isNegative, query);
    });
    walkChunks(readout, fixed, rounded(turned));
  }

  /// The same tensor in the type that products take.
  ChunkTensor rounded(const ChunkTensor &from) {
    if (element.isF32())
      return from;
    ChunkTensor made = from;
    made.tensor = makeTemp(from.leading, true, {length}, from.trailing, element, "rounded");
    SmallVector<AxisSpec> specs{stepAxis()};
    llvm::append_range(specs, specsOf(from.trailing));
    SmallVector<Value> own(specs.size());
    Place place = open(from.leading, true, specs, own.data());
    place.map.map(from.trailing, ArrayRef(own).drop_front());
    place.step = own[0];
    writeAt(place, made, readAt(place, from, {ValueExpr(place.step)}));
    return made;
  }

  /// Values of each chunk from the state before it, then the state behind it.
  void walkChunks(const LinearReadout &readout, const ChunkTensor &fixed,
                  const ChunkTensor &turned) {
    SmallVector<Value> batch = axesOfKind(Dim::Batch), summed = axesOfKind(Dim::Summed),
                       columns = axesOfKind(Dim::Column), inner(summed), all(batch);
    llvm::append_range(inner, columns);
    llvm::append_range(all, inner);
    auto make = [&](StringRef name) {
      return ChunkTensor{makeTemp(batch, true, {length}, columns, element, name), batch, columns};
    };
    values.kept = make("values");
    bool areDecayed = logs && !isChannelwise();
    ChunkTensor decayed = areDecayed ? make("decayed") : *values.kept;
    Operand decayedKeys = keys;
    if (isChannelwise())
      decayedKeys.kept = keep(found.key, found.axes, found.axes, true, "decayed");
    states = {makeTemp(batch, true, {}, inner, element, "states", /*hasEnd=*/true), batch, inner};
    auto pointOf = [&](Place &place) {
      return llvm::map_to_vector(found.axes,
                                 [&](Value axis) { return ValueExpr(place.map.lookup(axis)); });
    };
    auto keepState = [&](Place &place, Value state, const ValueExpr &chunk) {
      SmallVector<ValueExpr> where = subscripts(place, batch, {}, {chunk}, inner);
      WriteOp::create(place.builder, loc, state, states.tensor, where);
    };
    Place first = open(all, false, {}, nullptr);
    keepState(first, ReadOp::create(first.builder, loc, found.state, pointOf(first)), 0);
    inLoop("chunk", ValueExpr(chunks), [&](Value chunk) {
      SmallVector<AxisSpec> specs{stepAxis()};
      llvm::append_range(specs, specsOf(columns));
      SmallVector<Value> own(specs.size());
      Place place = open(batch, false, specs, own.data());
      place.map.map(columns, ArrayRef(own).drop_front());
      place.chunk = chunk, place.step = own[0];
      alignBack(place, readout);
      ValueExpr step = place.step;
      Value value = sumOver(place, specsOf(summed), [&](Place &at, ReduceOp reduce) -> Value {
        for (auto [axis, one] : llvm::zip_equal(summed, reduce.getAxes()))
          at.map.map(axis, Value(one));
        alignBack(at, readout);
        Value factor = readAt(at, turned, {step}), state = readAt(at, states, {});
        return arith::MulFOp::create(at.builder, loc, factor, state);
      });
      OpBuilder &b = place.builder;
      value = arith::AddFOp::create(b, loc, readAt(place, fixed, {step}), value);
      writeAt(place, *values.kept, value);
      if (areDecayed) {
        Value decay = decayBetween(place, step + ValueExpr(1), endOf(chunk));
        writeAt(place, decayed, arith::MulFOp::create(b, loc, decay, value));
      }
      // The state behind the chunk.
      SmallVector<Value> elements(inner.size());
      Place next = open(batch, false, specsOf(inner), elements.data());
      next.map.map(inner, elements);
      next.chunk = chunk;
      Value more = sumOver(next, {stepAxis()}, [&](Place &at, ReduceOp reduce) -> Value {
        Value from = reduce.getAxes()[0];
        Value key = valueOf(at, decayedKeys, from), added = readAt(at, decayed, {ValueExpr(from)});
        return arith::MulFOp::create(at.builder, loc, key, added);
      });
      if (found.isNegative)
        more = arith::NegFOp::create(next.builder, loc, more);
      Value state = ReadOp::create(next.builder, loc, found.state, pointOf(next));
      if (Value decay = decayBetween(next, 0, endOf(chunk)))
        state = arith::MulFOp::create(next.builder, loc, decay, state);
      state = arith::AddFOp::create(next.builder, loc, state, more);
      WriteOp::create(next.builder, loc, state, found.state, pointOf(next));
      keepState(next, state, ValueExpr(chunk) + ValueExpr(1));
    });
  }
};
} // namespace

void tegula::writeInChunks(LinearRecurrence &found, int64_t length) {
  ChunkWriter(found, length).run();
}
