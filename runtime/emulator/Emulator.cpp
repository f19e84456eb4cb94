//===- Emulator.cpp - Device code and its plan, on the host -----------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/emulator/Emulator.h"

#include "codegen/cpu/HostAbi.h"
#include "runtime/emulator/Grid.h"
#include "support/HostMemory.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include <cstdlib>
#include <cstring>

using namespace llvm;
using namespace tegula;
using namespace tegula::emulator;

namespace {

/// Walks a plan once. A temporary or a workspace has memory of its own, as long as it is used, so
/// that what leaves it is noticed.
class PlanEmulation {
public:
  PlanEmulation(const EmulatedCode &code, const Plan &plan, const EmulatorInputs &inputs,
                const EmulatorOptions &options)
      : code(code), plan(plan), inputs(inputs), options(options), memory(code) {
    code.setHooks(hooks());
  }
  ~PlanEmulation() {
    for (void *one : owned)
      std::free(one);
  }

  Error run();

private:
  static constexpr uint64_t alignment = 256;   // what a device's allocations have
  static constexpr uint64_t widestAccess = 16; // bytes, at multiples of as many

  std::optional<int64_t> evaluate(const IndexExpr &expr) {
    return expr.evaluate([&](const IndexVar &var) -> std::optional<int64_t> {
      if (var.isSymbol())
        return inputs.size(var.name());
      return loopValues[var.position()];
    });
  }
  static Error overflow(const IndexExpr &expr) {
    return createStringError("a size of the plan does not fit in 64 bits: " + expr.str());
  }

  Expected<void *> place(StringRef name, const EmulatorInputs::Argument &argument);
  Expected<void *> allocate(StringRef name, const IndexExpr &bytes, uint64_t times);
  Error runSteps(ArrayRef<PlanStep> steps);
  Error loop(const PlanStep &step);
  Error launch(const PlanStep &step);

  const EmulatedCode &code;
  const Plan &plan;
  const EmulatorInputs &inputs;
  const EmulatorOptions &options;
  Memory memory;
  Stacks stacks;
  std::vector<void *> addresses, owned;
  SmallVector<int64_t> loopValues;
  uint64_t launches = 0;
};

} // namespace

/// Zero bytes give a null address.
Expected<void *> PlanEmulation::allocate(StringRef name, const IndexExpr &bytes, uint64_t times) {
  std::optional<int64_t> each = evaluate(bytes);
  int64_t total;
  if (!each || *each < 0 || MulOverflow<int64_t>(*each, times, total))
    return overflow(bytes);
  if (!total)
    return nullptr;
  void *address = allocateAligned(alignment, total);
  if (!address)
    return createStringError("no memory for '" + name + "' of " + Twine(total) + " bytes");
  std::memset(address, 0xff, total);
  owned.push_back(address);
  memory.addGlobal(name, address, total, BufferContents::Undefined);
  return address;
}

/// Where an argument is while the plan runs: where it was, or in a copy that is aligned as a
/// device's allocations are.
Expected<void *> PlanEmulation::place(StringRef name, const EmulatorInputs::Argument &argument) {
  void *address = argument.data;
  if (argument.bytes && reinterpret_cast<uintptr_t>(address) % widestAccess) {
    address = allocateAligned(alignment, argument.bytes);
    if (!address)
      return createStringError("no memory for '" + name + "' of " + Twine(argument.bytes) +
                               " bytes");
    owned.push_back(address);
    std::memcpy(address, argument.data, argument.bytes);
  }
  memory.addGlobal(name, address, argument.bytes, argument.contents);
  return address;
}

Error PlanEmulation::run() {
  for (const PlanBuffer &buffer : plan.buffers) {
    if (buffer.argument >= 0) {
      Expected<void *> address = place(buffer.name, inputs.arguments[buffer.argument]);
      if (!address)
        return address.takeError();
      addresses.push_back(*address);
      continue;
    }
    Expected<void *> address = allocate(buffer.name, buffer.bytes, 1);
    if (!address)
      return address.takeError();
    addresses.push_back(*address);
  }
  memory.addGlobal("the error record", inputs.errors, sizeof(ErrorRecord), BufferContents::Defined);
  if (Error error = runSteps(plan.steps))
    return error;
  for (auto [buffer, address] : zip_equal(plan.buffers, addresses)) {
    const auto *argument = buffer.argument < 0 ? nullptr : &inputs.arguments[buffer.argument];
    if (argument && address != argument->data && argument->contents != BufferContents::Constant)
      std::memcpy(argument->data, address, argument->bytes);
  }
  return Error::success();
}

Error PlanEmulation::runSteps(ArrayRef<PlanStep> steps) {
  for (const PlanStep &step : steps) {
    if (step.kind == PlanStep::Zero) {
      std::optional<int64_t> bytes = evaluate(plan.buffers[step.buffer].bytes);
      if (!bytes)
        return overflow(plan.buffers[step.buffer].bytes);
      std::memset(addresses[step.buffer], 0, *bytes);
      memory.define(addresses[step.buffer]);
      continue;
    }
    if (Error error = step.kind == PlanStep::Loop ? loop(step) : launch(step))
      return error;
  }
  return Error::success();
}

Error PlanEmulation::loop(const PlanStep &step) {
  std::optional<int64_t> low = evaluate(step.low), high = evaluate(step.high);
  if (!low || !high)
    return overflow(low ? step.high : step.low);
  for (int64_t count = 0; *low + count < *high; ++count) {
    loopValues.push_back(step.reverse ? *high - 1 - count : *low + count);
    if (Error error = runSteps(step.body))
      return error;
    loopValues.pop_back();
  }
  return Error::success();
}

Error PlanEmulation::launch(const PlanStep &step) {
  std::optional<int64_t> points = evaluate(step.points);
  if (!points)
    return overflow(step.points);
  if (*points <= 0)
    return Error::success();
  uint64_t resident = uint64_t(options.multiprocessors) * options.threadsPerMultiprocessor;
  const PlanFunction &chosen = step.functionFor(*points, resident);
  // All addresses are aligned here.
  const PlanTiles &byTile = step.tiles;
  bool inTiles = !byTile.launches.empty();
  uint64_t blocks =
      inTiles ? 0
              : std::min(chosen.blocksFor(*points),
                         chosen.maxBlocks(std::max<uint64_t>(resident / chosen.threads, 1)));

  SmallVector<uint64_t, 16> values(step.arguments.size());
  SmallVector<const void *, 16> pointers;
  void *workspace = nullptr;
  for (auto [value, argument] : zip_equal(values, step.arguments)) {
    pointers.push_back(&value);
    switch (argument.kind) {
    case PlanArgument::Buffer:
      value = reinterpret_cast<uintptr_t>(addresses[argument.index]);
      break;
    case PlanArgument::Size: {
      std::optional<int64_t> size = evaluate(argument.size);
      if (!size)
        return overflow(argument.size);
      value = *size;
      break;
    }
    case PlanArgument::Scalar:
      pointers.back() = inputs.scalars[argument.index];
      break;
    case PlanArgument::Errors:
      value = reinterpret_cast<uintptr_t>(inputs.errors);
      break;
    case PlanArgument::Workspace: {
      Expected<void *> address =
          allocate("the blocks' workspace", inTiles ? byTile.workspaceBytes : chosen.workspaceBytes,
                   inTiles ? 1 : blocks);
      if (!address)
        return address.takeError();
      workspace = *address;
      if (inTiles && byTile.isZeroed && workspace) {
        std::memset(workspace, 0, *evaluate(byTile.workspaceBytes));
        memory.define(workspace);
      }
      value = reinterpret_cast<uintptr_t>(workspace);
      break;
    }
    }
  }
  auto start = [&](const std::string &name, uint64_t count, unsigned threads, unsigned sharedBytes,
                   unsigned cluster, bool usesDependentLaunch) -> Error {
    EmulatedFunction function = code.find(name);
    if (!function)
      return createStringError("the emulated code has no function '" + name + "'");
    if (sharedBytes > code.maxDynamicBytes)
      return make_error<EmulatorError>(
          EmulatorError::RefusedLaunch,
          formatv("{0}: {1} bytes of shared memory for a block, of which the device gives {2}",
                  name, sharedBytes, code.maxDynamicBytes)
              .str());
    memory.startLaunch(name, sharedBytes);
    GridOptions grid;
    grid.cluster = cluster;
    grid.usesDependentLaunch = usesDependentLaunch;
    grid.seed = options.seed ? options.seed + launches : 0;
    ++launches;
    return Grid(code, function, pointers.data(), count, threads, memory, stacks, grid).run();
  };
  Error error = inTiles ? Error::success()
                        : start(chosen.name, blocks, chosen.threads, chosen.sharedBytes,
                                chosen.cluster, /*usesDependentLaunch=*/false);
  for (const PlanTileLaunch &launch : byTile.launches) {
    std::optional<int64_t> count = evaluate(launch.blocks);
    if (!count || *count > int64_t(UINT32_MAX))
      error = joinErrors(std::move(error), overflow(launch.blocks));
    else if (!error)
      error = start(launch.function, *count, launch.threads, launch.sharedBytes, launch.cluster,
                    launch.usesDependentLaunch);
  }
  if (workspace) {
    memory.removeGlobal(workspace);
    std::free(workspace);
    llvm::erase(owned, workspace);
  }
  return error;
}

Error tegula::emulatePlan(const EmulatedCode &code, const Plan &plan, const EmulatorInputs &inputs,
                          const EmulatorOptions &options) {
  return PlanEmulation(code, plan, inputs, options).run();
}
