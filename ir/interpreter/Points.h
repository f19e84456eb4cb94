//===- Points.h - Walking a box of axes ---------------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_IR_INTERPRETER_POINTS_H
#define TEGULA_IR_INTERPRETER_POINTS_H

#include "ir/interpreter/Impl.h"

namespace tegula::interp {

/// Runs `fn` for all points of the axes from `first` on, the last axis fastest.
template <typename Fn>
void forPointsFrom(Frame &frame, const Node *node, llvm::ArrayRef<AxisCode> axes, bool backwards,
                   Fn &fn) {
  if (axes.empty()) {
    if (frame.step(node))
      fn();
    return;
  }
  const AxisCode &axis = axes.front();
  int64_t lo = axis.lo.eval(frame, node), hi = axis.hi.eval(frame, node);
  for (int64_t k = lo; k < hi && !frame.stopped; ++k) {
    frame.slots[axis.slot] = backwards ? hi - 1 - (k - lo) : k;
    forPointsFrom(frame, node, axes.drop_front(), backwards, fn);
  }
}

template <typename Fn>
void forPoints(Frame &frame, const Node *node, llvm::ArrayRef<AxisCode> axes, Fn fn,
               bool backwards = false) {
  forPointsFrom(frame, node, axes, backwards, fn);
}

/// Points in any order: none sees what another one of them does.
inline void runInParallel(Frame &frame, const Node *node, llvm::ArrayRef<AxisCode> axes,
                          const Code &body) {
  ++frame.clock;
  frame.levels.push_back({frame.clock, frame.clock});
  size_t depth = frame.levels.size() - 1;
  forPoints(
      frame, node, axes,
      [&] {
        frame.levels[depth].point = ++frame.clock;
        frame.run(body);
      },
      frame.options.reversePoints);
  frame.levels.pop_back();
  // What comes after is later than the last point.
  ++frame.clock;
}

} // namespace tegula::interp

#endif // TEGULA_IR_INTERPRETER_POINTS_H
