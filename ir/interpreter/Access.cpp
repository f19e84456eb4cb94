//===- Access.cpp - Integer expressions, temporaries, reads and writes -----------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/interpreter/Impl.h"
#include "ir/tgl/TglReports.h"
#include "ir/tgl/WriteAttributes.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::interp;

//===----------------------------------------------------------------------===//
// Integer expressions
//===----------------------------------------------------------------------===//

int64_t IndexCode::eval(Frame &frame, const Node *node, bool wraps) const {
  if (general) {
    if (std::optional<int64_t> value = general->run(frame.slots, wraps))
      return *value;
    frame.report(node, InterpreterError::Arithmetic,
                 "an integer expression divides by zero or leaves 64 bits");
    return 0;
  }
  int64_t sum = constant;
  bool overflow = false;
  for (auto [coefficient, slot] : terms) {
    int64_t product;
    overflow |= llvm::MulOverflow(coefficient, frame.slots[slot], product);
    overflow |= llvm::AddOverflow(sum, product, sum);
  }
  if (overflow && !wraps) {
    frame.report(node, InterpreterError::Arithmetic, "an integer expression leaves 64 bits");
    return 0;
  }
  return sum;
}

std::optional<int64_t> Compiler::sizeValue(const IndexExpr &expr) {
  return expr.evaluate([&](const IndexVar &var) -> std::optional<int64_t> {
    auto found = var.isSymbol() ? sizes.find(var.name()) : sizes.end();
    return found == sizes.end() ? std::nullopt : std::optional(found->second);
  });
}

IndexCode Compiler::indexCode(const IndexExpr &expr, ValueRange dims, Location location) {
  IndexExpr bound = expr.substitute([&](const IndexVar &var) -> std::optional<IndexExpr> {
    auto found = var.isSymbol() ? sizes.find(var.name()) : sizes.end();
    return found == sizes.end() ? std::nullopt : std::optional(IndexExpr(found->second));
  });
  IndexCode code;
  for (const IndexVar &var : bound.variables()) {
    if (!var.isSymbol())
      continue;
    frame.report(location, InterpreterError::Invalid, "size '" + var.name() + "' has no value");
    failed = true;
    return code;
  }
  bool isAffine = !bound.isOverflow();
  for (const IndexExpr::Term &term : bound.terms()) {
    if (term.factors.empty()) {
      code.constant = term.coefficient;
    } else if (term.factors.size() == 1 && term.factors[0].second == 1 &&
               term.factors[0].first->kind == IndexExpr::AtomKind::Variable) {
      code.terms.push_back({term.coefficient, slotOf(dims[term.factors[0].first->var.position()])});
    } else {
      isAffine = false;
      break;
    }
  }
  if (isAffine)
    return code;
  std::optional<IndexProgram> program =
      IndexProgram::compile(bound, [&](const IndexVar &var) -> std::optional<unsigned> {
        return slotOf(dims[var.position()]);
      });
  if (!program) {
    frame.report(location, InterpreterError::Arithmetic,
                 "an integer expression leaves 64 bits: " + expr.str());
    failed = true;
    return code;
  }
  code.general = std::make_shared<const IndexProgram>(std::move(*program));
  return code;
}

IndexCode Compiler::indexCode(Attribute expr, ValueRange dims, Location location) {
  return indexCode(cast<tgl::IndexExprAttr>(expr).getExpr(), dims, location);
}

//===----------------------------------------------------------------------===//
// Reads and writes
//===----------------------------------------------------------------------===//

namespace {
/// What reads and writes share: where, under which conditions.
class AccessNode : public Node {
public:
  using Node::Node;
  unsigned tensor = 0;
  llvm::SmallVector<IndexCode, 4> subscripts;
  llvm::SmallVector<std::pair<IndexCode, IndexCode>> exact;
  Slot guard = noSlot, fill = noSlot, value = noSlot;
  Kind kind = Kind::F32;
  bool checked = false;
  std::optional<tgl::ReduceKind> combination;   ///< of the value and the element that is there
  bool isUnordered = false;                     ///< reads what may be undefined
  Slot replaced = noSlot, unless = noSlot;      ///< what the value takes the place of
  std::string distinct;                         ///< what the program says keeps its points apart
  std::string text;                             // of a checked subscript
  std::string reportsAs;                        ///< what is wrong, where it is not the subscript
  llvm::SmallVector<IndexCode, 1> reportsWhere; ///< positive, or the access does not report
  llvm::SmallVector<bool, 4> areUnsigned;       ///< subscripts that are numbers of u64

  /// The element's position; nothing where it is outside, `at` then says where.
  std::optional<int64_t> locate(Frame &frame, const TensorState &state,
                                llvm::SmallVectorImpl<int64_t> &at) const {
    int64_t position = 0;
    bool inside = true;
    // Data may be anything where the subscript is looked at before it is used.
    bool wraps = checked || fill != noSlot;
    for (auto [k, code] : llvm::enumerate(subscripts)) {
      int64_t subscript = code.eval(frame, this, wraps);
      at.push_back(subscript);
      inside &= subscript >= 0 && subscript < state.shape[k];
      if (inside)
        position += subscript * state.strides[k];
    }
    if (inside)
      return position;
    return std::nullopt;
  }

  void reportOutside(Frame &frame, const TensorState &state, llvm::ArrayRef<int64_t> at) const {
    for (const IndexCode &length : reportsWhere)
      if (length.eval(frame, this) <= 0)
        return;
    if (!reportsAs.empty())
      frame.report(this, InterpreterError::BadSubscript, text + " " + reportsAs);
    else if (checked)
      frame.report(this, InterpreterError::BadSubscript,
                   "subscript " + text +
                       " is out of range: " + Frame::describe(state, at, areUnsigned));
    else
      frame.report(this, InterpreterError::OutOfBounds,
                   Frame::describe(state, at) + " is outside the tensor");
  }
};

class ReadNode final : public AccessNode {
public:
  using AccessNode::AccessNode;

  void run(Frame &frame) const override {
    if (guard != noSlot && !frame.slots[guard])
      return setZero(frame);
    for (const auto &[numerator, denominator] : exact) {
      int64_t over = numerator.eval(frame, this), under = denominator.eval(frame, this);
      // Nothing is a multiple of 0. The one overflow of %, min % -1, is exact.
      if (under == 0 || (under != -1 && over % under != 0))
        return setFill(frame);
    }
    const TensorState &state = frame.tensors[tensor];
    llvm::SmallVector<int64_t, 6> at;
    std::optional<int64_t> position = locate(frame, state, at);
    if (!position) {
      if (fill == noSlot)
        reportOutside(frame, state, at);
      return setFill(frame);
    }
    if (isUnordered && !frame.isDefined(state, *position))
      return setZero(frame);
    if (!isUnordered && !frame.checkRead(this, state, *position, at))
      return setZero(frame);
    switch (kind) {
    case Kind::F64:
      return frame.set(value, loadFloat(state.dtype, state.data, *position));
    case Kind::F32:
      return frame.set(value, float(loadFloat(state.dtype, state.data, *position)));
    case Kind::I32: // kept with its sign, also where the element has none
      return frame.set(value, int64_t(int32_t(loadInteger(state.dtype, state.data, *position))));
    default:
      return frame.set(value, loadInteger(state.dtype, state.data, *position));
    }
  }

private:
  // Zero has the same bits in every kind.
  void setZero(Frame &frame) const { frame.slots[value] = 0; }
  void setFill(Frame &frame) const { frame.slots[value] = fill == noSlot ? 0 : frame.slots[fill]; }
};

class WriteNode final : public AccessNode {
public:
  using AccessNode::AccessNode;

  void run(Frame &frame) const override {
    if (guard != noSlot && !frame.slots[guard])
      return;
    TensorState &state = frame.tensors[tensor];
    llvm::SmallVector<int64_t, 6> at;
    std::optional<int64_t> position = locate(frame, state, at);
    if (!position)
      return reportOutside(frame, state, at);
    bool differs = combination == tgl::ReduceKind::Any && changes(frame, state, *position);
    if (replaces(frame, state, *position)) {
      storeInteger(state.dtype, state.data, *position, frame.slots[value]);
      return frame.define(state, *position, combination);
    }
    if (frame.checkWrite(this, state, *position, at, combination, distinct, differs))
      store(frame, state, *position);
  }

private:
  /// Whether the element still holds what the value takes the place of.
  bool replaces(Frame &frame, const TensorState &state, int64_t position) const {
    if (replaced == noSlot)
      return false;
    if (!frame.isDefined(state, position)) // 0 was found there
      return true;
    return !frame.slots[unless] &&
           loadInteger(state.dtype, state.data, position) == int64_t(frame.slots[replaced]);
  }

  /// Whether the value, as it is stored, has other bits than the element.
  bool changes(Frame &frame, const TensorState &state, int64_t position) const {
    uint64_t stored = 0;
    if (kind == Kind::F32 || kind == Kind::F64) {
      storeFloat(state.dtype, &stored, 0,
                 kind == Kind::F64 ? frame.get<double>(value) : frame.get<float>(value));
      return llvm::bit_cast<uint64_t>(loadFloat(state.dtype, &stored, 0)) !=
             llvm::bit_cast<uint64_t>(loadFloat(state.dtype, state.data, position));
    }
    storeInteger(state.dtype, &stored, 0, frame.slots[value]);
    return loadInteger(state.dtype, &stored, 0) != loadInteger(state.dtype, state.data, position);
  }

  /// Values are combined in the compute type, then rounded to the element's.
  void store(Frame &frame, TensorState &state, int64_t position) const {
    if (kind == Kind::F32 || kind == Kind::F64) {
      double next = kind == Kind::F64 ? frame.get<double>(value) : frame.get<float>(value);
      if (combination && combination != tgl::ReduceKind::Any) {
        next = combine(next, loadFloat(state.dtype, state.data, position));
        if (kind == Kind::F32)
          next = float(next);
      }
      return storeFloat(state.dtype, state.data, position, next);
    }
    int64_t next = frame.slots[value];
    if (combination && combination != tgl::ReduceKind::Any)
      next = combine(next, loadInteger(state.dtype, state.data, position), state.dtype);
    storeInteger(state.dtype, state.data, position, next);
  }

  double combine(double value, double before) const {
    if (combination == tgl::ReduceKind::Sum)
      return value + before;
    if (std::isnan(value) || std::isnan(before))
      return std::numeric_limits<double>::quiet_NaN();
    return combination == tgl::ReduceKind::Max ? std::max(value, before) : std::min(value, before);
  }
  int64_t combine(int64_t value, int64_t before, DType type) const {
    if (combination == tgl::ReduceKind::Sum)
      return int64_t(uint64_t(value) + uint64_t(before));
    if (type == DType::U32 || type == DType::U64) {
      uint64_t a = wrap(value, type), b = before;
      return int64_t(combination == tgl::ReduceKind::Max ? std::max(a, b) : std::min(a, b));
    }
    return combination == tgl::ReduceKind::Max ? std::max(value, before) : std::min(value, before);
  }
};
} // namespace

void Compiler::rejectInput(unsigned tensor, Location location) {
  if (!frame.tensors[tensor].isInput)
    return;
  frame.report(location, InterpreterError::Invalid,
               "write to '" + frame.tensors[tensor].name + "', an input");
  failed = true;
}

bool Compiler::compileAccess(Operation *op, Code &nodes) {
  Location loc = op->getLoc();
  auto fillIn = [&](auto access, AccessNode &node) {
    node.tensor = tensorOf(access.getTensor());
    for (Attribute subscript : access.getSubscripts())
      node.subscripts.push_back(indexCode(subscript, access.getIndices(), loc));
    if (access.getGuard())
      node.guard = slotOf(access.getGuard());
    if (std::optional<llvm::StringRef> text = access.getChecked()) {
      node.checked = true;
      node.text = text->str();
      if (auto what = access->template getAttrOfType<StringAttr>(tgl::reportsAsAttrName))
        node.reportsAs = what.str();
      if (auto lengths = access->template getAttrOfType<ArrayAttr>(tgl::reportsWhereAttrName))
        for (Attribute length : lengths)
          node.reportsWhere.push_back(indexCode(length, access.getIndices(), loc));
      for (const tgl::ValueExpr &subscript : access.getSubscriptExprs()) {
        Value value = subscript.asValue();
        node.areUnsigned.push_back(value && value.getDefiningOp<arith::IndexCastUIOp>());
      }
    }
  };
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](tgl::IndexOp index) {
        IndexCode code = indexCode(index.getExpr(), index.getIndices(), loc);
        Slot out = slotOf(index.getResult());
        nodes.push_back(makeNode(loc, [=](Frame &f, const Node *node) {
          f.slots[out] = code.eval(f, node, /*wraps=*/true);
        }));
        return true;
      })
      .Case([&](tgl::TempOp temp) {
        unsigned id = newTensor(temp.getName(), cast<tgl::TglTensorType>(temp.getType()), loc);
        bindTensor(temp.getTensor(), id);
        nodes.push_back(
            makeNode(loc, [=](Frame &f, const Node *node) { f.allocate(node, f.tensors[id]); }));
        return true;
      })
      .Case([&](tgl::ReadOp read) {
        auto node = std::make_unique<ReadNode>(loc);
        fillIn(read, *node);
        for (auto [numerator, denominator] :
             llvm::zip_equal(read.getExactNumerators(), read.getExactDenominators()))
          node->exact.push_back({indexCode(numerator, read.getIndices(), loc),
                                 indexCode(denominator, read.getIndices(), loc)});
        if (read.getFill())
          node->fill = slotOf(read.getFill());
        node->value = slotOf(read.getResult());
        node->kind = kindOf(read.getType());
        node->isUnordered = read->hasAttr(tgl::unorderedAttrName);
        nodes.push_back(std::move(node));
        return true;
      })
      .Case([&](tgl::WriteOp write) {
        auto node = std::make_unique<WriteNode>(loc);
        fillIn(write, *node);
        node->combination = write.getCombine();
        if (auto names = write->getAttrOfType<StringAttr>(tgl::distinctAttrName))
          node->distinct = names.str();
        node->value = slotOf(write.getValue());
        node->kind = kindOf(write.getValue().getType());
        if (write.getReplaced()) {
          node->replaced = slotOf(write.getReplaced());
          node->unless = slotOf(write.getUnless());
        }
        rejectInput(node->tensor, loc);
        nodes.push_back(std::move(node));
        return true;
      })
      .Default([](Operation *) { return false; });
}
