//===- Sort.cpp - tgl.sort --------------------------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/interpreter/Impl.h"
#include "ir/interpreter/Order.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::interp;

namespace {
/// `tgl.sort`: a row of values and the row of positions that moves along.
class SortNode final : public Node {
public:
  using Node::Node;
  unsigned values = 0, positions = 0;
  llvm::SmallVector<IndexCode> row;
  bool descending = false;

  void run(Frame &frame) const override {
    TensorState &keys = frame.tensors[values], &places = frame.tensors[positions];
    llvm::SmallVector<int64_t, 6> at;
    for (const IndexCode &code : row)
      at.push_back(code.eval(frame, this));
    at.push_back(0);
    for (auto [subscript, dim] :
         llvm::zip_equal(llvm::ArrayRef(at).drop_back(), llvm::ArrayRef(keys.shape).drop_back()))
      if (subscript < 0 || subscript >= dim)
        return frame.report(this, InterpreterError::OutOfBounds,
                            Frame::describe(keys, at) + " is outside the tensor");
    if (isFloat(keys.dtype))
      sort<double>(frame, keys, places, at, loadFloat, storeFloat);
    else
      sort<int64_t>(frame, keys, places, at, loadInteger, storeInteger);
  }

private:
  template <typename T>
  void sort(Frame &frame, TensorState &keys, TensorState &places,
            llvm::SmallVectorImpl<int64_t> &at, T (*load)(DType, const void *, int64_t),
            void (*store)(DType, void *, int64_t, T)) const {
    int64_t count = keys.shape.back();
    std::vector<T> elements;
    std::vector<int64_t> moved;
    int64_t keyRow = start(keys, at), placeRow = start(places, at);
    for (at.back() = 0; at.back() < count; ++at.back()) {
      if (!frame.checkRead(this, keys, keyRow + at.back(), at) ||
          !frame.checkRead(this, places, placeRow + at.back(), at))
        return;
      elements.push_back(load(keys.dtype, keys.data, keyRow + at.back()));
      moved.push_back(loadInteger(places.dtype, places.data, placeRow + at.back()));
    }
    std::vector<size_t> order = sortedOrder<T>(elements, descending);
    for (at.back() = 0; at.back() < count; ++at.back()) {
      frame.checkWrite(this, keys, keyRow + at.back(), at);
      frame.checkWrite(this, places, placeRow + at.back(), at);
      store(keys.dtype, keys.data, keyRow + at.back(), elements[order[at.back()]]);
      storeInteger(places.dtype, places.data, placeRow + at.back(), moved[order[at.back()]]);
    }
  }

  static int64_t start(const TensorState &tensor, llvm::ArrayRef<int64_t> at) {
    int64_t position = 0;
    for (auto [subscript, stride] :
         llvm::zip_equal(at.drop_back(), llvm::ArrayRef(tensor.strides).drop_back()))
      position += subscript * stride;
    return position;
  }
};
} // namespace

bool tegula::interp::compileSort(Compiler &compiler, Operation *op, Code &nodes) {
  auto sort = dyn_cast<tgl::SortOp>(op);
  if (!sort)
    return false;
  auto node = std::make_unique<SortNode>(op->getLoc());
  node->values = compiler.tensorOf(sort.getValues());
  node->positions = compiler.tensorOf(sort.getPositions());
  for (Attribute subscript : sort.getSubscripts())
    node->row.push_back(compiler.indexCode(subscript, sort.getIndices(), op->getLoc()));
  node->descending = sort.getDescending();
  for (unsigned tensor : {node->values, node->positions})
    compiler.rejectInput(tensor, op->getLoc());
  nodes.push_back(std::move(node));
  return true;
}
