//===- Sort.cpp - Sorting a row in place -----------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/interpreter/Impl.h"
#include <algorithm>
#include <cmath>

using namespace tegula;
using namespace tegula::interp;

namespace {
class SortNode final : public Node {
public:
  SortNode(mlir::Location location, unsigned values, unsigned positions,
           llvm::SmallVector<IndexCode, 4> subscripts, bool descending)
      : Node(location), values(values), positions(positions), subscripts(std::move(subscripts)),
        descending(descending) {}

  void run(Frame &frame) const override {
    TensorState &keys = frame.tensors[values], &places = frame.tensors[positions];
    int64_t start = 0, placesStart = 0;
    llvm::SmallVector<int64_t, 6> at;
    for (auto [k, code] : llvm::enumerate(subscripts)) {
      at.push_back(code.eval(frame, this));
      if (at.back() < 0 || at.back() >= keys.shape[k])
        return frame.report(this, InterpreterError::OutOfBounds,
                            "row " + Frame::describe(keys, at) + " is outside the tensor");
      start += at.back() * keys.strides[k];
      placesStart += at.back() * places.strides[k];
    }
    int64_t count = keys.shape.back();
    for (int64_t n = 0; n < count; ++n)
      if (keys.stamps[start + n] / 2 < keys.born || places.stamps[placesStart + n] / 2 < places.born)
        return frame.report(this, InterpreterError::Undefined,
                            "row " + Frame::describe(keys, at) +
                                " is sorted before anything has defined all of it");
    if (isFloat(keys.dtype))
      sort<double>(frame, keys, places, start, placesStart, count, loadFloat, storeFloat);
    else
      sort<int64_t>(frame, keys, places, start, placesStart, count, loadInteger, storeInteger);
    ++keys.version;
    ++places.version;
  }

private:
  template <typename T, typename Load, typename Store>
  void sort(Frame &frame, TensorState &keys, TensorState &places, int64_t start, int64_t placesStart,
            int64_t count, Load load, Store store) const {
    struct Element {
      T key;
      int64_t place, order;
    };
    std::vector<Element> row;
    for (int64_t n = 0; n < count; ++n)
      row.push_back({load(keys.dtype, keys.data, start + n),
                     loadInteger(places.dtype, places.data, placesStart + n), n});
    // nan is the largest.
    auto less = [](T a, T b) {
      if constexpr (std::is_floating_point_v<T>)
        if (std::isnan(b))
          return !std::isnan(a);
      return a < b;
    };
    std::sort(row.begin(), row.end(), [&](const Element &a, const Element &b) {
      if (descending ? less(b.key, a.key) : less(a.key, b.key))
        return true;
      if (descending ? less(a.key, b.key) : less(b.key, a.key))
        return false;
      return a.order < b.order;
    });
    for (int64_t n = 0; n < count; ++n) {
      store(keys.dtype, keys.data, start + n, row[n].key);
      storeInteger(places.dtype, places.data, placesStart + n, row[n].place);
      keys.stamps[start + n] = places.stamps[placesStart + n] = frame.clock * 2;
    }
  }

  unsigned values, positions;
  llvm::SmallVector<IndexCode, 4> subscripts;
  bool descending;
};
} // namespace

std::unique_ptr<Node> interp::makeSort(mlir::Location location, unsigned values, unsigned positions,
                                       llvm::SmallVector<IndexCode, 4> subscripts, bool descending) {
  return std::make_unique<SortNode>(location, values, positions, std::move(subscripts), descending);
}
