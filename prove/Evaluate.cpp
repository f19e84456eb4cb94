//===- Evaluate.cpp - Runs tgl IR over exact numbers --------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "prove/Bounds.h"
#include "prove/EvaluateImpl.h"
#include "symbolic/Guards.h"
#include "llvm/ADT/SetVector.h"
#include <set>

using namespace mlir;
using namespace tegula;
using namespace tegula::prove;

int64_t PointTensor::count() const {
  int64_t count = 1;
  for (int64_t dim : shape)
    count *= dim;
  return count;
}

std::string tegula::prove::placeOf(Location location) {
  if (auto file = dyn_cast<FileLineColLoc>(location))
    return (file.getFilename().getValue() + ":" + Twine(file.getLine()) + ":" +
            Twine(file.getColumn()))
        .str();
  if (auto call = dyn_cast<CallSiteLoc>(location))
    return placeOf(call.getCallee());
  if (auto named = dyn_cast<NameLoc>(location))
    return placeOf(named.getChildLoc());
  if (auto fused = dyn_cast<FusedLoc>(location); fused && !fused.getLocations().empty())
    return placeOf(fused.getLocations().front());
  return "an operation without a place";
}

void Coverage::settle(Kind kind) {
  for (auto &[place, way] : ways) {
    if (kind == Kind::Finite)
      way.sure |= way.pending & (WasFalse | WasTrue);
    else if (kind == Kind::Infinite)
      way.sure |= way.pending / AlwaysFalse;
    way.pending = 0;
  }
}

static bool isConversion(Operation *op) { return isa<tgl::ConvertOp, arith::FPToSIOp>(op); }

std::vector<std::string> Coverage::oneSided() const {
  std::set<std::string> texts;
  for (const auto &[place, way] : ways) {
    Operation *op = place.second;
    if (way.sure == (WasFalse | WasTrue) || way.sure == 0 || isConversion(op))
      continue;
    texts.insert(placeOf(op->getLoc()) + ": '" + op->getName().getStringRef().str() +
                 (way.sure == WasTrue ? "' was never false" : "' was never true"));
  }
  return {texts.begin(), texts.end()};
}

std::multiset<std::string> Coverage::unboundConversions() const {
  std::multiset<std::string> types;
  for (const auto &[place, way] : ways) {
    if (way.sure != WasFalse || !isConversion(place.second))
      continue;
    auto convert = dyn_cast<tgl::ConvertOp>(place.second);
    std::string text;
    llvm::raw_string_ostream(text)
        << (convert ? convert.getTarget() : place.second->getResult(0).getType());
    types.insert(text);
  }
  return types;
}

bool Coverage::isDecided(Operation *op) {
  auto [found, isNew] = decided.try_emplace(op, false);
  if (isNew)
    found->second = prove::isDecided(op);
  return found->second;
}

const ValueSet &Coverage::dataOf(tgl::KernelOp entry) {
  if (!data) {
    ValueSet from;
    for (unsigned i = 0; i < entry.getNumArguments(); ++i)
      if (entry.getArgRole(i) != "out")
        from.insert(entry.getBody().getArgument(i));
    data = spread(entry->getParentOfType<ModuleOp>(), std::move(from));
  }
  return *data;
}

uint8_t *StepBuilder::conditionOf(Operation *op, ValueRange decisive) {
  if (llvm::none_of(decisive, [&](Value value) { return data.contains(value); }))
    return nullptr;
  return coverage.isDecided(op) ? nullptr : &coverage.of({calls, op});
}

void Memory::allocate(const PointTensor *given) {
  int64_t count = tensor.count();
  undefined = given ? 0 : count;
  marks.assign(given ? 0 : size_t(count), 0);
  bool isFloats = isFloat(tensor.dtype);
  if (isOnlyRead) {
    numbers = given->numbers;
    integers = given->integers;
    return;
  }
  if (given) {
    tensor.numbers = given->numbers;
    tensor.integers = given->integers;
  } else if (isFloats) {
    tensor.numbers.resize(size_t(count));
  } else {
    tensor.integers.resize(size_t(count));
  }
  numbers = tensor.numbers;
  integers = tensor.integers;
}

void Memory::undefineAll() {
  std::fill(marks.begin(), marks.end(), 0);
  undefined = int64_t(marks.size());
}

void Machine::stop(Evaluation::Problem why, const Twine &text) {
  stopped = true;
  if (result.problem != Evaluation::None)
    return;
  result.problem = why;
  result.message = text.str();
}

bool Machine::count(uint64_t points) {
  if ((result.steps += points) > options.maxSteps)
    stop(Evaluation::Limit, "more than " + Twine(options.maxSteps) + " points");
  return !stopped;
}

int64_t IndexCode::eval(Machine &machine) const {
  if (!program) {
    auto sum = uint64_t(constant);
    for (auto [slot, weight] : terms)
      sum += uint64_t(weight) * uint64_t(machine.integers[slot]);
    return int64_t(sum);
  }
  if (std::optional<int64_t> value = program->run(machine.integers, /*wraps=*/true))
    return *value;
  return 0; // a quotient by zero is 0 [2.7]
}

void tegula::prove::forPoints(Machine &machine, llvm::ArrayRef<AxisCode> axes,
                              llvm::function_ref<void()> fn) {
  if (axes.empty()) {
    if (machine.count())
      fn();
    return;
  }
  int64_t hi = axes.front().hi.eval(machine);
  for (int64_t at = axes.front().lo.eval(machine); at < hi && !machine.stopped; ++at) {
    machine.integers[axes.front().slot] = at;
    forPoints(machine, axes.drop_front(), fn);
  }
}

std::vector<uint64_t> Captures::now(const Machine &machine) const {
  std::vector<uint64_t> key;
  key.reserve(integers.size() + 3 * numbers.size() + tensors.size());
  for (Slot slot : integers)
    key.push_back(uint64_t(machine.integers[slot]));
  for (Slot slot : numbers) {
    const Number &number = machine.numbers[slot];
    key.push_back(number.residues[0]);
    key.push_back(number.kind);
    key.push_back(llvm::bit_cast<uint64_t>(double(number.real)));
  }
  for (unsigned tensor : tensors)
    key.push_back(machine.tensors[tensor].version);
  return key;
}

//===----------------------------------------------------------------------===//
// From operations to steps
//===----------------------------------------------------------------------===//

Slot StepBuilder::slotOf(Value value) {
  bool isFloat = isNumber(value);
  auto [entry, isNew] =
      slots.try_emplace(value, Slot(isFloat ? machine.numbers.size() : machine.integers.size()));
  if (isNew && isFloat)
    machine.numbers.emplace_back();
  else if (isNew)
    machine.integers.push_back(0);
  return entry->second;
}

std::optional<int64_t> StepBuilder::sizeValue(const IndexExpr &expr) const {
  return expr.evaluate([&](const IndexVar &var) -> std::optional<int64_t> {
    auto found = var.isSymbol() ? sizes.find(var.name()) : sizes.end();
    return found == sizes.end() ? std::nullopt : std::optional(found->second);
  });
}

unsigned StepBuilder::newTensor(llvm::StringRef name, tgl::TglTensorType type) {
  Memory memory;
  memory.tensor.name = name.str();
  memory.tensor.dtype = *dtypeOf(type.getElementType());
  int64_t count = 1;
  for (unsigned k = 0; k < type.getRank(); ++k) {
    int64_t size = sizeValue(type.getDim(k)).value_or(-1);
    if (size < 0) {
      fail(Evaluation::Refused, "dim " + Twine(k) + " of '" + name + "' has no value");
      size = 0;
    }
    memory.tensor.shape.push_back(size);
    // What is written takes a step for each element.
    auto most = int64_t(std::min(4 * machine.options.maxSteps, uint64_t(1) << 24));
    if (llvm::MulOverflow(count, size, count) || count > most) {
      fail(Evaluation::Limit, "'" + name + "' has more than " + Twine(most) + " elements");
      count = 0;
    }
  }
  int64_t stride = 1;
  memory.strides.resize(type.getRank());
  for (unsigned k = type.getRank(); k-- > 0; stride *= memory.tensor.shape[k])
    memory.strides[k] = stride;
  machine.tensors.push_back(std::move(memory));
  return unsigned(machine.tensors.size() - 1);
}

IndexExpr StepBuilder::withSizes(Attribute attr) const {
  return cast<tgl::IndexExprAttr>(attr).getExpr().substitute(
      [&](const IndexVar &var) -> std::optional<IndexExpr> {
        auto found = var.isSymbol() ? sizes.find(var.name()) : sizes.end();
        return found == sizes.end() ? std::nullopt : std::optional(IndexExpr(found->second));
      });
}

/// A number, or one times a dim.
static bool isLinear(const IndexExpr::Term &term) {
  if (term.factors.empty())
    return true;
  const auto &[atom, power] = term.factors[0];
  return term.factors.size() == 1 && power == 1 && atom->kind == IndexExpr::AtomKind::Variable &&
         !atom->var.isSymbol();
}

IndexCode StepBuilder::index(Attribute attr, ValueRange dims) {
  IndexExpr expr = withSizes(attr);
  IndexCode code;
  if (std::optional<int64_t> constant = expr.asConstant()) {
    code.constant = *constant;
    return code;
  }
  if (llvm::all_of(expr.terms(), isLinear)) {
    for (const IndexExpr::Term &term : expr.terms()) {
      if (term.factors.empty())
        code.constant += term.coefficient;
      else
        code.terms.push_back(
            {slotOf(dims[term.factors[0].first->var.position()]), term.coefficient});
    }
    return code;
  }
  std::optional<IndexProgram> program =
      IndexProgram::compile(expr, [&](const IndexVar &var) -> std::optional<unsigned> {
        if (var.isSymbol())
          return std::nullopt;
        return slotOf(dims[var.position()]);
      });
  if (program)
    code.program = std::make_shared<const IndexProgram>(std::move(*program));
  else
    fail(Evaluation::Refused, "an integer expression has no value: " + expr.str());
  return code;
}

llvm::SmallVector<AxisCode> StepBuilder::axes(tgl::AxesOp op) {
  llvm::SmallVector<Value> dims(op.getIndices());
  llvm::append_range(dims, op.getAxes());
  llvm::SmallVector<AxisCode> result;
  for (auto [axis, lo, hi] : llvm::zip_equal(op.getAxes(), op.getLows(), op.getHighs()))
    result.push_back({slotOf(axis), index(lo, dims), index(hi, dims)});
  return result;
}

uint64_t AxisCode::certainCount() const {
  bool isKnown = lo.isConstant() && hi.isConstant() && lo.constant < hi.constant;
  return isKnown ? uint64_t(hi.constant) - uint64_t(lo.constant) : 0;
}

bool StepBuilder::repeated(mlir::Block &block, Steps &list, uint64_t count) {
  uint64_t around = times;
  times = llvm::SaturatingMultiply(times, count);
  steps = llvm::SaturatingAdd(steps, times);
  bool good = this->block(block, list);
  times = around;
  return good;
}

bool StepBuilder::points(mlir::Block &block, Steps &list, llvm::ArrayRef<AxisCode> axes,
                         bool isKept, uint64_t together) {
  uint64_t around = times, count = 1;
  for (const AxisCode &axis : axes)
    count = llvm::SaturatingMultiply(count, axis.certainCount());
  times = isKept ? std::min<uint64_t>(times, 1) : times;
  bool good = repeated(block, list, count / together);
  times = around;
  return good;
}

Captures StepBuilder::captures(Operation *root, ValueRange operands) {
  llvm::SetVector<Value> captured(operands.begin(), operands.end());
  root->walk([&](Operation *op) {
    if (op == root)
      return;
    for (Value operand : op->getOperands())
      if (!root->isAncestor(operand.getParentBlock()->getParentOp()))
        captured.insert(operand);
  });
  Captures result;
  for (Value value : captured) {
    if (isa<tgl::TglTensorType>(value.getType()))
      result.tensors.push_back(tensorOf(value));
    else
      (isNumber(value) ? result.numbers : result.integers).push_back(slotOf(value));
  }
  return result;
}

bool StepBuilder::block(mlir::Block &block, Steps &steps) {
  for (Operation &op : block) {
    if (machine.stopped)
      return false;
    if (operation(&op, steps)) {
      if (auto found = later.find(&op); found != later.end()) {
        llvm::append_range(steps, found->second);
        later.erase(&op);
      }
      continue;
    }
    fail(Evaluation::Unknown, placeOf(op.getLoc()) + ": '" + op.getName().getStringRef() +
                                  "' has no exact meaning here");
    return false;
  }
  return true;
}

/// The select that alone uses a value, maybe through operations on elements, as one that it chooses
/// from; null where there is none.
static arith::SelectOp chooserOf(Value value, bool &isFirst) {
  while (value.hasOneUse()) {
    OpOperand &use = *value.use_begin();
    Operation *user = use.getOwner();
    if (user->getBlock() != value.getDefiningOp()->getBlock() || user->getNumResults() != 1 ||
        user->getNumRegions() != 0 || isa<tgl::ReadOp, tgl::CallOp>(user))
      return {};
    if (auto select = dyn_cast<arith::SelectOp>(user); select && use.getOperandNumber() > 0) {
      isFirst = use.getOperandNumber() == 1;
      return select;
    }
    value = user->getResult(0);
  }
  return {};
}

/// Whether two values are one: the same operations on the same operands, of inputs alone.
static bool isSameValue(Value a, Value b, unsigned depth = 0) {
  if (a == b)
    return true;
  Operation *x = a.getDefiningOp(), *y = b.getDefiningOp();
  if (!x || !y || depth > 8 || x->getName() != y->getName() || x->getNumRegions() != 0 ||
      x->getNumResults() != 1 || y->getNumResults() != 1 ||
      x->getNumOperands() != y->getNumOperands() || x->getAttrs() != y->getAttrs() ||
      a.getType() != b.getType())
    return false;
  if (auto read = dyn_cast<tgl::ReadOp>(x)) {
    auto argument = dyn_cast<BlockArgument>(read.getTensor());
    auto kernel =
        argument ? dyn_cast<tgl::KernelOp>(argument.getOwner()->getParentOp()) : tgl::KernelOp();
    if (!kernel || kernel.getArgRole(argument.getArgNumber()) != "in")
      return false;
  } else if (!isPure(x)) {
    return false;
  }
  for (auto [mine, its] : llvm::zip_equal(x->getOperands(), y->getOperands()))
    if (!isSameValue(mine, its, depth + 1))
      return false;
  return true;
}

bool StepBuilder::isOrderChosen(Operation *op) {
  using P = arith::CmpFPredicate;
  bool isFirst = false;
  for (auto select = chooserOf(op->getResult(0), isFirst); select;
       select = chooserOf(select.getResult(), isFirst)) {
    auto compare = select.getCondition().getDefiningOp<arith::CmpFOp>();
    if (!compare ||
        !llvm::is_contained({P::OGT, P::OGE, P::OLT, P::OLE, P::UGT, P::UGE, P::ULT, P::ULE},
                            compare.getPredicate()))
      continue;
    Value a = compare.getLhs(), b = compare.getRhs(), x = op->getOperand(0), y = op->getOperand(1);
    if ((isSameValue(a, x) && isSameValue(b, y)) || (isSameValue(a, y) && isSameValue(b, x)))
      return true;
  }
  return false;
}

void StepBuilder::whereChosen(Operation *op, Steps &steps, Step marks) {
  std::vector<std::pair<Slot, bool>> conditions;
  Operation *last = nullptr;
  bool isFirst = false;
  for (auto select = chooserOf(op->getResult(0), isFirst); select;
       select = chooserOf(select.getResult(), isFirst)) {
    conditions.push_back({slotOf(select.getCondition()), isFirst});
    last = select;
  }
  if (!last) {
    steps.push_back(std::move(marks));
    return;
  }
  later[last].push_back([=](Machine &machine) {
    if (llvm::all_of(conditions,
                     [&](auto &one) { return bool(machine.integers[one.first]) == one.second; }))
      marks(machine);
  });
}

bool StepBuilder::operation(Operation *op, Steps &steps) {
  if (auto callOp = dyn_cast<tgl::CallOp>(op))
    return call(callOp, steps);
  if (auto launch = dyn_cast<tgl::LaunchOp>(op))
    return block(launch.getBody().front(), steps);
  if (isa<tgl::YieldOp>(op))
    return true;
  return buildAccess(*this, op, steps) || buildLoop(*this, op, steps) ||
         buildReduce(*this, op, steps) || buildScan(*this, op, steps) ||
         buildFloats(*this, op, steps) || buildIntegers(*this, op, steps) ||
         buildConversions(*this, op, steps);
}

/// The callee's body in place of the call.
bool StepBuilder::call(tgl::CallOp call, Steps &steps) {
  auto callee = SymbolTable::lookupNearestSymbolFrom<tgl::KernelOp>(call, call.getCalleeAttr());
  if (!callee || calls.size() > 64)
    return false;
  for (auto [parameter, argument] :
       llvm::zip_equal(callee.getBody().getArguments(), call.getArgs())) {
    if (isa<tgl::TglTensorType>(argument.getType()))
      tensorIds[parameter] = tensorOf(argument);
    else
      slots[parameter] = slotOf(argument);
  }
  calls.push_back(call);
  bool good = block(callee.getBody().front(), steps);
  calls.pop_back();
  return good || machine.stopped;
}

//===----------------------------------------------------------------------===//
// A launch
//===----------------------------------------------------------------------===//

namespace {
class Launch {
public:
  Launch(tgl::KernelOp kernel, llvm::ArrayRef<PointTensor> inputs,
         llvm::ArrayRef<PointScalar> scalars, Machine &machine, Coverage &coverage, bool isOutline)
      : kernel(kernel), inputs(inputs), scalars(scalars), machine(machine),
        builder(machine, coverage, coverage.dataOf(kernel)), isOutline(isOutline) {}

  void run() {
    if (!matchInputs() || !bindSizes() || !checkGuards() || !bindArguments())
      return;
    Steps steps;
    if (!builder.block(kernel.getBody().front(), steps) || machine.stopped)
      return;
    // What surely takes too long is not begun.
    if (!machine.count(builder.certainSteps()) || isOutline)
      return;
    machine.result.steps = 0;
    for (auto [k, memory] : llvm::enumerate(machine.tensors))
      memory.allocate(k < given.size() ? given[k] : nullptr);
    runSteps(machine, steps);
    if (!machine.stopped)
      collect();
  }

private:
  bool refuse(const Twine &text) {
    machine.stop(Evaluation::Refused, text);
    return false;
  }
  tgl::TglTensorType tensorType(unsigned argument) {
    return dyn_cast<tgl::TglTensorType>(kernel.getArgumentTypes()[argument]);
  }

  bool matchInputs() {
    size_t next = 0;
    tensorOf.assign(kernel.getNumArguments(), nullptr);
    for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
      if (!tensorType(i) || kernel.getArgRole(i) == "out")
        continue;
      if (next == inputs.size() || inputs[next].shape.size() != tensorType(i).getRank())
        return refuse("'" + kernel.getArgName(i) + "' has no tensor of its rank");
      tensorOf[i] = &inputs[next++];
    }
    return next == inputs.size() || refuse("there are more tensors than parameters");
  }

  bool bindSizes() {
    for (Attribute attr : kernel.getSizeAttrs()) {
      auto size = cast<tgl::SizeAttr>(attr);
      std::optional<int64_t> value;
      if (!size.isBound())
        value = builder.sizeValue(size.getDefinition());
      else if (const PointTensor *tensor = tensorOf[size.getArgument()])
        value = tensor->shape[size.getDimension()];
      if (!value)
        return refuse("size '" + size.getName() + "' has no value");
      builder.sizes[size.getName()] = *value;
    }
    for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
      for (unsigned k = 0; tensorOf[i] && k < tensorType(i).getRank(); ++k)
        if (builder.sizeValue(tensorType(i).getDim(k)) != tensorOf[i]->shape[k])
          return refuse("dim " + Twine(k) + " of '" + kernel.getArgName(i) + "' does not fit");
    return true;
  }

  bool checkGuards() {
    std::vector<SizeSpec> sizeSpecs;
    std::vector<GuardSpec> guardSpecs;
    launchSpecs(kernel, sizeSpecs, guardSpecs);
    std::string error;
    std::optional<LaunchChecks> checks = LaunchChecks::make(sizeSpecs, guardSpecs, error);
    if (!checks)
      return refuse(error);
    auto dimOf = [&](unsigned argument, unsigned dim) -> int64_t {
      if (const PointTensor *tensor = tensorOf[argument])
        return tensor->shape[dim];
      return builder.sizeValue(tensorType(argument).getDim(dim)).value_or(-1);
    };
    llvm::SmallVector<int64_t> values;
    if (std::optional<GuardFailure> failure = checks->run(dimOf, values))
      return refuse(failure->message);
    return true;
  }

  bool bindArguments() {
    size_t nextScalar = 0;
    for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
      BlockArgument argument = kernel.getBody().getArgument(i);
      if (!tensorType(i)) {
        if (nextScalar == scalars.size())
          return refuse("no value for scalar '" + kernel.getArgName(i) + "'");
        bindScalar(argument, scalars[nextScalar++]);
        continue;
      }
      unsigned id = builder.newTensor(kernel.getArgName(i), tensorType(i));
      if (machine.stopped)
        return false;
      builder.tensorIds[argument] = id;
      given.push_back(tensorOf[i]);
      machine.tensors[id].isOnlyRead = kernel.getArgRole(i) == "in";
    }
    return true;
  }

  void bindScalar(BlockArgument argument, const PointScalar &scalar) {
    Slot slot = builder.slotOf(argument);
    auto *integer = std::get_if<int64_t>(&scalar);
    if (StepBuilder::isNumber(argument))
      machine.numbers[slot] =
          integer ? machine.algebra.integer(*integer) : std::get<Number>(scalar);
    else
      machine.integers[slot] =
          keptAs(argument.getType(), integer ? *integer
                                             : machine.algebra.toInteger(Algebra::Rounding::Trunc,
                                                                         std::get<Number>(scalar)));
  }

  void collect() {
    for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
      if (!tensorType(i) || kernel.getArgRole(i) == "in")
        continue;
      Memory &memory = machine.tensors[builder.tensorOf(kernel.getBody().getArgument(i))];
      if (!memory.isWhole())
        return machine.stop(Evaluation::Undefined,
                            "an element of '" + memory.tensor.name + "' is never written");
      machine.result.outputs.push_back(std::move(memory.tensor));
    }
  }

  tgl::KernelOp kernel;
  llvm::ArrayRef<PointTensor> inputs;
  llvm::ArrayRef<PointScalar> scalars;
  Machine &machine;
  StepBuilder builder;
  bool isOutline;
  llvm::SmallVector<const PointTensor *> tensorOf;
  llvm::SmallVector<const PointTensor *> given; // of the machine's first tensors
};
} // namespace

Evaluation tegula::prove::evaluate(tgl::KernelOp kernel, llvm::ArrayRef<PointTensor> inputs,
                                   llvm::ArrayRef<PointScalar> scalars, Algebra &algebra,
                                   Coverage &coverage, const EvaluateOptions &options) {
  Machine machine(algebra, options);
  Launch(kernel, inputs, scalars, machine, coverage, options.isOutline).run();
  return std::move(machine.result);
}
