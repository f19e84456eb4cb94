//===- Tiles.cpp - The abstract stage of the tile dialect ------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tile has a slot for each element, a span two (its first point and its end), a state two for
// each row: what it has accumulated, in double, and the position of the winner, or how many values
// it has seen; of logsumexp the largest value and the sum of exponentials from there. Blocks of a
// kernel are points of a parallel.
//
//===----------------------------------------------------------------------===//
#include "ir/interpreter/Impl.h"
#include "ir/interpreter/Points.h"
#include "ir/tile/Tile.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/ADT/bit.h"
#include <cmath>
#include <limits>

using namespace mlir;
using namespace tegula;
using namespace tegula::interp;
using tgl::ReduceKind;

unsigned interp::slotCount(Type type) {
  if (auto tile = dyn_cast<tile::TileType>(type)) {
    unsigned count = 1;
    for (int64_t extent : tile.getShape())
      count *= extent;
    return count;
  }
  if (auto state = dyn_cast<tile::StateType>(type))
    return 2 * state.getRows();
  return isa<tile::SpanType>(type) ? 2 : 1;
}

namespace {
/// Slots of a value that has several.
struct Slots {
  Slot first = noSlot;
  unsigned count = 0;
};

void copySlots(Frame &frame, Slot from, Slot to, unsigned count) {
  std::copy_n(frame.slots.begin() + from, count, frame.slots.begin() + to);
}

class KernelNode final : public Node {
public:
  using Node::Node;
  llvm::SmallVector<AxisCode> axes;
  Code body;

  void run(Frame &frame) const override { runInParallel(frame, this, axes, body); }
};

class TileLoopNode final : public Node {
public:
  using Node::Node;
  IndexCode low, high;
  int64_t step = 1;
  Slot var = noSlot;
  Code body;
  llvm::SmallVector<Slots> inits, arguments, yields, results;

  void run(Frame &frame) const override {
    int64_t lo = low.eval(frame, this), hi = high.eval(frame, this);
    carry(frame, inits, arguments);
    for (int64_t at = lo; at < hi && frame.step(this); at += step) {
      frame.slots[var] = at;
      frame.run(body);
      carry(frame, yields, arguments);
    }
    carry(frame, arguments, results);
  }

private:
  /// All are read before any is set.
  static void carry(Frame &frame, llvm::ArrayRef<Slots> from, llvm::ArrayRef<Slots> to) {
    std::vector<int64_t> values;
    for (const Slots &slots : from)
      values.insert(values.end(), frame.slots.begin() + slots.first,
                    frame.slots.begin() + slots.first + slots.count);
    auto at = values.begin();
    for (const Slots &slots : to) {
      std::copy_n(at, slots.count, frame.slots.begin() + slots.first);
      at += slots.count;
    }
  }
};

/// Runs a region at the points of a tile that exist.
class PointsNode final : public Node {
public:
  using Node::Node;
  llvm::SmallVector<int64_t> shape;
  llvm::SmallVector<Slot> spans, indices, inputs, elements;
  llvm::SmallVector<unsigned> pointsOfInputs; // that have one element: those of a row, or 1
  Slot yielded = noSlot, result = noSlot;     // both or none
  bool hasFill = false;                       // points that do not exist are 0
  Code body;

  void run(Frame &frame) const override {
    llvm::SmallVector<int64_t> at(shape.size(), 0);
    unsigned count = 1;
    for (int64_t extent : shape)
      count *= extent;
    for (unsigned number = 0; number < count && !frame.stopped; ++number) {
      bool exists = true;
      unsigned rest = number;
      for (unsigned k = shape.size(); k-- > 0; rest /= shape[k]) {
        int64_t point = frame.slots[spans[k]] + rest % shape[k];
        frame.slots[indices[k]] = point;
        exists &= point < frame.slots[spans[k] + 1];
      }
      if (!exists) {
        if (result != noSlot && hasFill)
          frame.slots[result + number] = 0;
        continue;
      }
      if (!frame.step(this))
        return;
      for (auto [input, element, points] : llvm::zip_equal(inputs, elements, pointsOfInputs))
        frame.slots[element] = frame.slots[input + number / points];
      frame.run(body);
      if (result != noSlot)
        frame.slots[result + number] = frame.slots[yielded];
    }
  }
};

/// The next value of a reduction; `seen` counts values, of argmin and argmax it is the winner's
/// position, -1 while there is none.
void take(ReduceKind kind, double &best, int64_t &seen, float value, int64_t position) {
  bool isArg = kind == ReduceKind::ArgMax || kind == ReduceKind::ArgMin;
  bool isMax = kind == ReduceKind::ArgMax || kind == ReduceKind::Max;
  bool isFirst = isArg ? seen < 0 : seen == 0;
  switch (kind) {
  case ReduceKind::Sum:
    best += value;
    break;
  case ReduceKind::Prod:
    best *= value;
    break;
  case ReduceKind::LogSumExp: {
    auto sum = llvm::bit_cast<double>(seen);
    double before = best;
    best = std::isnan(before) || std::isnan(value) ? std::numeric_limits<double>::quiet_NaN()
                                                   : std::max<double>(before, value);
    double origin = std::isinf(best) ? 0 : best;
    seen = llvm::bit_cast<int64_t>(sum * std::exp(before - origin) + std::exp(value - origin));
    return;
  }
  default: {
    // NaN wins against all numbers; of two zeros, which argmax takes for equal, the better sign.
    bool better = isMax ? value > best : value < best;
    bool betterSign = !isArg && value == best && std::signbit(value) != isMax;
    if (isFirst || (!std::isnan(best) && (std::isnan(value) || better || betterSign))) {
      best = value;
      if (isArg)
        seen = position;
    }
  }
  }
  if (!isArg)
    ++seen;
}

/// Of the sum of exponentials from the largest value.
double logarithm(double largest, double sum) {
  return std::isinf(largest) ? largest : largest + std::log(sum);
}

double identityOf(ReduceKind kind) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  switch (kind) {
  case ReduceKind::Prod:
    return 1;
  case ReduceKind::Max:
  case ReduceKind::ArgMax:
  case ReduceKind::LogSumExp:
    return -infinity;
  case ReduceKind::Min:
  case ReduceKind::ArgMin:
    return infinity;
  default:
    return 0;
  }
}
} // namespace

/// Ops whose region computes a point.
static void compilePoints(Compiler &compiler, tile::PointsOp op, mlir::Value result, Code &nodes) {
  auto node = std::make_unique<PointsNode>(op.getLoc());
  for (mlir::Value span : op.getSpans()) {
    node->shape.push_back(cast<tile::SpanType>(span.getType()).getSize());
    node->spans.push_back(compiler.slotOf(span));
  }
  for (mlir::Value index : op.getIndexArguments())
    node->indices.push_back(compiler.slotOf(index));
  for (mlir::Value input : op.getInputs()) {
    node->inputs.push_back(compiler.slotOf(input));
    size_t dims = cast<tile::TileType>(input.getType()).getShape().size();
    node->pointsOfInputs.push_back(dims < node->shape.size() ? node->shape.back() : 1);
  }
  for (mlir::Value element : op.getInputArguments())
    node->elements.push_back(compiler.slotOf(element));
  compiler.compileBlock(*op.getPoint(), node->body);
  if (result) {
    node->yielded = compiler.slotOf(op.getYielded());
    node->result = compiler.slotOf(result);
    node->hasFill = isa<tile::OperandOp>(op);
  }
  nodes.push_back(std::move(node));
}

/// Products, and states of reductions.
static bool compileTileValues(Compiler &compiler, Operation *op, Code &nodes) {
  Location loc = op->getLoc();
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](tile::ZeroOp zero) {
        Slot to = compiler.slotOf(zero.getResult());
        unsigned count = slotCount(zero.getType());
        nodes.push_back(makeNode(loc, [=](Frame &frame, const Node *) {
          std::fill_n(frame.slots.begin() + to, count, 0);
        }));
        return true;
      })
      .Case([&](tile::DotOp dot) {
        Slot a = compiler.slotOf(dot.getA()), b = compiler.slotOf(dot.getB()),
             c = compiler.slotOf(dot.getC()), to = compiler.slotOf(dot.getResult());
        llvm::ArrayRef<int64_t> shape = dot.getType().getShape();
        unsigned rows = shape[0], columns = shape[1], depth = dot.getA().getType().getShape()[1];
        nodes.push_back(makeNode(loc, [=](Frame &frame, const Node *) {
          for (unsigned i = 0; i < rows; ++i)
            for (unsigned j = 0; j < columns; ++j) {
              auto sum = frame.get<float>(c + i * columns + j);
              for (unsigned k = 0; k < depth; ++k)
                sum += frame.get<float>(a + i * depth + k) * frame.get<float>(b + j * depth + k);
              frame.set(to + i * columns + j, sum);
            }
        }));
        return true;
      })
      .Case([&](tile::InitOp init) {
        Slot to = compiler.slotOf(init.getResult());
        tile::StateType type = init.getType();
        ReduceKind kind = type.getKind();
        unsigned rows = type.getRows();
        int64_t seen = kind == ReduceKind::ArgMax || kind == ReduceKind::ArgMin ? -1 : 0;
        nodes.push_back(makeNode(loc, [=](Frame &frame, const Node *) {
          for (unsigned row = 0; row < rows; ++row) {
            frame.set(to + row, identityOf(kind));
            frame.slots[to + rows + row] = seen;
          }
        }));
        return true;
      })
      .Case([&](tile::ReduceOp reduce) {
        Slot value = compiler.slotOf(reduce.getValue()),
             span = compiler.slotOf(reduce.getColumns()), from = compiler.slotOf(reduce.getState()),
             to = compiler.slotOf(reduce.getResult());
        ReduceKind kind = reduce.getType().getKind();
        unsigned rows = reduce.getType().getRows(),
                 columns = reduce.getColumns().getType().getSize();
        nodes.push_back(makeNode(loc, [=](Frame &frame, const Node *) {
          copySlots(frame, from, to, 2 * rows);
          int64_t first = frame.slots[span], end = frame.slots[span + 1];
          for (unsigned row = 0; row < rows; ++row) {
            auto best = frame.get<double>(to + row);
            for (unsigned j = 0; j < columns && first + j < end; ++j)
              take(kind, best, frame.slots[to + rows + row],
                   frame.get<float>(value + row * columns + j), first + j);
            frame.set(to + row, best);
          }
        }));
        return true;
      })
      .Case([&](tile::FinishOp finish) {
        Slot from = compiler.slotOf(finish.getState()), to = compiler.slotOf(finish.getResult());
        tile::StateType type = finish.getState().getType();
        unsigned rows = type.getRows();
        bool isArg = type.getResultType() != type.getElementType(),
             isLogarithm = type.getKind() == ReduceKind::LogSumExp;
        nodes.push_back(makeNode(loc, [=](Frame &frame, const Node *) {
          for (unsigned row = 0; row < rows; ++row) {
            if (isArg)
              frame.slots[to + row] = frame.slots[from + rows + row];
            else if (isLogarithm)
              frame.set(to + row, float(logarithm(frame.get<double>(from + row),
                                                  frame.get<double>(from + rows + row))));
            else
              frame.set(to + row, float(frame.get<double>(from + row)));
          }
        }));
        return true;
      })
      .Default([](Operation *) { return false; });
}

bool interp::compileTile(Compiler &compiler, Operation *op, Code &nodes) {
  Location loc = op->getLoc();
  auto slotsOf = [&](auto values) {
    return llvm::map_to_vector(values, [&](mlir::Value value) {
      return Slots{compiler.slotOf(value), slotCount(value.getType())};
    });
  };
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](tile::KernelOp kernel) {
        auto node = std::make_unique<KernelNode>(loc);
        node->axes = compiler.axes(cast<tgl::AxesOp>(op));
        compiler.compileBlock(kernel.getBody().front(), node->body);
        nodes.push_back(std::move(node));
        return true;
      })
      .Case([&](tile::SpanOp span) {
        Slot to = compiler.slotOf(span.getResult());
        IndexCode base = compiler.indexCode(span.getBaseAttr(), span.getIndices(), loc),
                  end = compiler.indexCode(span.getEndAttr(), span.getIndices(), loc);
        nodes.push_back(makeNode(loc, [=](Frame &frame, const Node *node) {
          frame.slots[to] = base.eval(frame, node);
          frame.slots[to + 1] = end.eval(frame, node);
        }));
        return true;
      })
      .Case([&](tile::ForOp loop) {
        auto node = std::make_unique<TileLoopNode>(loc);
        node->low = compiler.indexCode(loop.getLowAttr(), loop.getIndices(), loc);
        node->high = compiler.indexCode(loop.getHighAttr(), loop.getIndices(), loc);
        node->step = loop.getStep();
        node->var = compiler.slotOf(loop.getLoopVar());
        node->inits = slotsOf(loop.getInits());
        node->arguments = slotsOf(loop.getIterArgs());
        compiler.compileBlock(loop.getBody().front(), node->body);
        node->yields = slotsOf(loop.getYield().getValues());
        node->results = slotsOf(loop.getResults());
        nodes.push_back(std::move(node));
        return true;
      })
      .Case<tile::OperandOp, tile::MapOp>([&](auto points) {
        compilePoints(compiler, points, points.getResult(), nodes);
        return true;
      })
      .Case([&](tile::StoreOp store) {
        compilePoints(compiler, store, {}, nodes);
        return true;
      })
      .Case([](tile::YieldOp) { return true; }) // its parent reads the values
      .Default([&](Operation *) { return compileTileValues(compiler, op, nodes); });
}
