//===- PreparedPlan.h - A plan at known sizes, ready to be queued ------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Whatever follows from sizes alone is decided when a plan is prepared: which function each launch
// starts, on how many blocks, every argument that is a size, where temporaries lie in the
// workspace. What is left for a launch is to put addresses and scalars beside them and to call the
// driver.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_RUNTIME_PREPAREDPLAN_H
#define TEGULA_RUNTIME_PREPAREDPLAN_H

#include "codegen/common/Plan.h"
#include "runtime/Cuda.h"
#include "runtime/LaunchWatch.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include <memory>

namespace tegula {

/// What changes from call to call.
struct PlanInputs {
  llvm::ArrayRef<DeviceAddress> arguments; // of the kernel's tensor arguments in order
  llvm::ArrayRef<const void *> scalars;    // addresses of the values, each in its own type
  DeviceAddress errors = 0;
  void *stream = nullptr;
  DeviceAddress workspace = 0;  // 256-byte aligned, workspaceBytes() long
  LaunchWatch *watch = nullptr; // with one, each launch is waited for before the next is queued
};

/// Constant once made: several threads may run one at once.
class PreparedPlan {
public:
  /// The plan and the module must outlive the result. An error: a size that does not fit in 64
  /// bits.
  static llvm::Expected<std::unique_ptr<PreparedPlan>> make(CudaModule &module, const Plan &plan,
                                                            llvm::StringMap<int64_t> sizes);

  int64_t workspaceBytes() const { return memoryBytes; }
  /// Launches of a run; of a plan that is walked anew each time, 0.
  size_t numLaunches() const { return starts.size(); }

  /// Queues the launches. The device's context is current. Neither allocates on the device nor
  /// waits, but under watch.
  llvm::Error run(const PlanInputs &inputs) const;

private:
  friend class PlanWalk;
  /// Where an argument of a launch is found.
  struct Parameter {
    enum Kind : uint8_t {
      Constant, // values[index]
      Varying,  // values[start.varying + index]
      Slot,     // addresses: arguments, temporaries, the error record, areas of blocks
      Scalar
    } kind;
    uint32_t index;
  };
  /// What all launches of one step of the plan have in common.
  struct Step {
    const PlanTiles *tiles = nullptr;
    uint32_t workspace = 0; // its slot
    llvm::SmallVector<Parameter, 16> parameters;
  };
  /// A launch of PlanTiles.
  struct TileStart {
    void *function = nullptr;
    uint32_t blocks = 0;
  };
  /// One launch, or (function null, no tiles) one buffer to be zeroed: slot `step`, values[varying]
  /// bytes.
  struct Start {
    void *function = nullptr;          // null: tiles alone
    const std::string *name = nullptr; // the function's, in the plan
    uint32_t blocks = 0, threads = 0, step = 0, sharedBytes = 0;
    size_t varying = 0;
    bool hasWorkspace = false; // the function has; else its address is 0 (compiler/EmitDevice.cpp)
    // Of tiles, which run instead where addresses are aligned; empty: there are none.
    llvm::SmallVector<TileStart, 1> tiles;
    int64_t tileWorkspaceBytes = 0;
    bool isLaunch() const { return function || !tiles.empty(); }
  };

  PreparedPlan(CudaModule &module, const Plan &plan, llvm::StringMap<int64_t> sizes)
      : module(module), plan(plan), sizes(std::move(sizes)) {}
  bool isAligned(const Step &step, llvm::ArrayRef<DeviceAddress> slots) const;
  void fillSlots(const PlanInputs &inputs, llvm::SmallVectorImpl<DeviceAddress> &slots) const;
  /// As `launch` queues it; under watch it has finished then, and what it did wrong is an error
  /// with its name.
  llvm::Error watched(const PlanInputs &inputs, const LaunchNote &note,
                      llvm::function_ref<llvm::Error()> launch) const;
  /// `isDependent`: may start before the launch in front of it has finished.
  llvm::Error start(const Start &what, const uint64_t *varying, llvm::ArrayRef<DeviceAddress> slots,
                    const PlanInputs &inputs, bool isDependent) const;

  CudaModule &module;
  const Plan &plan;
  llvm::StringMap<int64_t> sizes;
  std::vector<Step> steps;
  std::vector<Start> starts;
  std::vector<uint64_t> values;
  /// More launches than are worth remembering: run() walks the plan.
  bool isWalked = false;
  llvm::SmallVector<int64_t> offsets; // by slot: in the workspace; -1: not there
  int64_t memoryBytes = 0;
};

} // namespace tegula

#endif // TEGULA_RUNTIME_PREPAREDPLAN_H
