//===- Order.h - The order of sorting -----------------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_IR_INTERPRETER_ORDER_H
#define TEGULA_IR_INTERPRETER_ORDER_H

#include "llvm/ADT/ArrayRef.h"
#include <algorithm>
#include <cmath>
#include <numeric>
#include <type_traits>
#include <vector>

namespace tegula::interp {

template <typename T> bool isNaN(T value) {
  if constexpr (std::is_floating_point_v<T>)
    return std::isnan(value);
  return false;
}

/// Where the elements of the sequence stand when it is sorted, equal ones in their order; nan is
/// the largest.
template <typename T> std::vector<size_t> sortedOrder(llvm::ArrayRef<T> values, bool descending) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t(0));
  auto less = [](T a, T b) { return isNaN(b) ? !isNaN(a) : a < b; };
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (descending ? less(values[b], values[a]) : less(values[a], values[b]))
      return true;
    if (descending ? less(values[a], values[b]) : less(values[b], values[a]))
      return false;
    return a < b;
  });
  return order;
}

} // namespace tegula::interp

#endif // TEGULA_IR_INTERPRETER_ORDER_H
