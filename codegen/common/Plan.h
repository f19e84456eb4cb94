//===- Plan.h - The host's plan of device launches for a kernel -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel for a GPU is a module of device functions and a plan: a list of launches, some inside
// sequential loops. Sizes in it are IndexExprs over the kernel's size symbols, in which the dim
// `d<n>` is the variable of the n-th enclosing loop, outermost first.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_COMMON_PLAN_H
#define TEGULA_CODEGEN_COMMON_PLAN_H

#include "symbolic/IndexExpr.h"
#include "llvm/Support/MathExtras.h"
#include <cstdint>
#include <string>
#include <vector>

namespace tegula {

/// A device buffer: an argument tensor of the launch, or a temporary that the runtime allocates.
struct PlanBuffer {
  std::string name;
  /// Position among the kernel's tensor arguments (inputs, inouts, outputs in order); -1: a
  /// temporary.
  int argument = -1;
  IndexExpr bytes; // temporaries
};

/// Alignment of temporaries in bytes.
inline constexpr unsigned temporaryAlignment = 256;

struct PlanArgument {
  enum Kind {
    Buffer,   // device address of buffers[index]
    Size,     // 64-bit value of `size`
    Scalar,   // the index-th run-time scalar, in its own type
    Errors,   // device address of the run's error record
    Workspace // device address of blocks * workspaceBytes bytes, 0 for none; of tiles, of
              // workspaceBytes
  } kind = Buffer;
  unsigned index = 0;
  IndexExpr size;
};

/// A device function that walks points with the stride of the grid, so that any number of blocks is
/// right.
struct PlanFunction {
  std::string name;           // empty: there is none
  unsigned threads = 0;       // of a block
  unsigned unitsPerBlock = 0; // a unit: a thread, or a team of threads
  unsigned pointsPerUnit = 1; // at a time
  uint64_t units = 0;         // of all points; 0: as points and points of a unit say
  unsigned cluster = 1;       // blocks for a unit; a unit is then a cluster of blocks
  unsigned sharedBytes = 0;   // dynamic, of a block
  IndexExpr workspaceBytes;   // of a block

  /// Blocks that do each of the points once.
  uint64_t blocksFor(uint64_t points) const {
    if (units)
      return llvm::divideCeil(units, unitsPerBlock);
    return llvm::divideCeil(points, uint64_t(unitsPerBlock) * pointsPerUnit) * cluster;
  }
  /// Blocks worth starting where so many are resident. Threads do their few points and are gone:
  /// that is 7 % faster on an H200 than loops over points. Teams set up more; four waves even out
  /// unequal points.
  uint64_t maxBlocks(uint64_t resident) const {
    bool leaves = unitsPerBlock == threads && workspaceBytes == IndexExpr(0);
    // Some multiprocessors have no room for whole clusters: many waves even that out. A cluster
    // that goes from row to row stores one while it loads the next: 16 waves are faster than 64 on
    // an H200.
    if (cluster > 1)
      return 16 * llvm::alignTo(resident, cluster);
    return leaves ? 0x7fffffff : 4 * resident;
  }
};

/// A device function of as many blocks as it asks for.
struct PlanTileLaunch {
  std::string function;
  IndexExpr blocks;
  unsigned threads = 0;     // of a block
  unsigned sharedBytes = 0; // dynamic, of a block
  std::string unit;         // what a block does, for people
  unsigned cluster = 1;     // blocks that start together
  bool usesDependentLaunch =
      false; // it may while the launch before, of the same statement, runs: it waits for that
};

/// Device functions in which a block computes a tile of the result.
struct PlanTiles {
  /// One after the other: what makes operands ready, the tiles, what adds up the sums that blocks
  /// share. Empty: there are none.
  std::vector<PlanTileLaunch> launches;
  IndexExpr workspaceBytes;      // of all, which they share
  bool isZeroed = false;         // the workspace is, before them
  IndexExpr largestNumber;       // that they count to, which must be less than 2^31
  std::vector<unsigned> aligned; // positions among the arguments: addresses must be multiples of 16
};

struct PlanStep {
  enum Kind { Launch, Loop, Zero } kind = Launch;
  // Launch: one of two functions with the same arguments, of which one may be missing. With many
  // points a thread takes a point at a time, with few a team of threads does.
  PlanFunction byThread, byTeam;
  /// Where there are tiles, and what they need of addresses holds, they run instead; they may be
  /// all there is.
  PlanTiles tiles;
  IndexExpr points;
  /// Which of the two runs, where both are there.
  enum Unit { ByPoints, Thread, Team } unit = ByPoints;
  /// The function for so many points on a device that runs so many threads at once: a thread for a
  /// point pays where that fills a good part of the device.
  const PlanFunction &functionFor(uint64_t pointCount, uint64_t residentThreads) const {
    if (byTeam.name.empty() || byThread.name.empty())
      return byTeam.name.empty() ? byThread : byTeam;
    bool threads = unit == ByPoints ? pointCount >= residentThreads / 2 : unit == Thread;
    return threads ? byThread : byTeam;
  }
  std::vector<PlanArgument> arguments;
  // Loop: variable d<depth> from low to high
  IndexExpr low, high;
  bool reverse = false;
  std::vector<PlanStep> body;
  // Zero: fills buffers[buffer] with zero bytes
  unsigned buffer = 0;
};

struct Plan {
  std::vector<PlanBuffer> buffers;
  std::vector<PlanStep> steps;
  /// Functions wait for the launch before them: one may start before that has finished.
  bool dependentLaunches = false;
};

} // namespace tegula

#endif // TEGULA_CODEGEN_COMMON_PLAN_H
