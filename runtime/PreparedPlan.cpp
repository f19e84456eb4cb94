//===- PreparedPlan.cpp - A plan at known sizes, ready to be queued ---------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/PreparedPlan.h"

#include "runtime/PlanMemory.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;
using namespace tegula;

/// Launches that a plan may keep, 24 bytes each and 8 for each value that varies. A launch costs
/// the driver two microseconds: where there are more, evaluating a few expressions for each is not
/// what takes the time.
static constexpr size_t maxStarts = 1 << 16;
static constexpr uint64_t maxBlocks = 0x7fffffff; // of a grid along its first dimension

static Error overflow(const Twine &what) {
  return createStringError(inconvertibleErrorCode(), what);
}

namespace tegula {
/// Goes through the steps of a plan in the order in which they run and gives each launch to a
/// function.
class PlanWalk {
public:
  using Start = PreparedPlan::Start;
  using Parameter = PreparedPlan::Parameter;
  using Visit = function_ref<Error(const Start &, ArrayRef<uint64_t> varying)>;

  explicit PlanWalk(const PreparedPlan &prepared)
      : prepared(prepared), areaBytes(prepared.plan.steps.size(), 0) {}

  Error walk(Visit visit) {
    nextStep = 0;
    for (auto [at, step] : enumerate(prepared.plan.steps)) {
      position = at;
      if (Error error = walkStep(step, visit))
        return error;
    }
    return Error::success();
  }

  /// Describes every launch step once, whatever loops it stands in: the order in which walk()
  /// counts them.
  static Error describe(PreparedPlan &prepared) {
    PlanWalk walk(prepared);
    for (auto [at, step] : enumerate(prepared.plan.steps)) {
      walk.position = at;
      if (Error error = walk.describeStep(step, prepared))
        return error;
    }
    return Error::success();
  }

  /// Of the blocks of each step at top level, the most that a launch of it needs.
  ArrayRef<int64_t> areas() const { return areaBytes; }

  Expected<int64_t> evaluate(const IndexExpr &expr, const Twine &what) const {
    std::optional<int64_t> value = tryEvaluate(expr);
    if (!value || *value < 0)
      return overflow(what + " do not fit in 64 bits: " + expr.str());
    return *value;
  }

private:
  std::optional<int64_t> tryEvaluate(const IndexExpr &expr) const {
    return expr.evaluate([&](const IndexVar &var) -> std::optional<int64_t> {
      if (var.isSymbol()) {
        auto found = prepared.sizes.find(var.name());
        return found == prepared.sizes.end() ? std::nullopt : std::optional(found->second);
      }
      return var.position() < loopValues.size() ? std::optional(loopValues[var.position()])
                                                : std::nullopt;
    });
  }

  Error describeStep(const PlanStep &step, PreparedPlan &into) {
    if (step.kind == PlanStep::Loop) {
      for (const PlanStep &inner : step.body)
        if (Error error = describeStep(inner, into))
          return error;
      return Error::success();
    }
    if (step.kind != PlanStep::Launch)
      return Error::success();
    PreparedPlan::Step &made = into.steps.emplace_back();
    made.tiles = &step.tiles;
    unsigned numBuffers = into.plan.buffers.size(), numVarying = 0;
    for (const PlanArgument &argument : step.arguments) {
      switch (argument.kind) {
      case PlanArgument::Buffer:
        made.parameters.push_back({Parameter::Slot, argument.index});
        break;
      case PlanArgument::Errors:
        made.parameters.push_back({Parameter::Slot, numBuffers});
        break;
      case PlanArgument::Workspace:
        made.workspace = numBuffers + 1 + position;
        made.parameters.push_back({Parameter::Slot, made.workspace});
        break;
      case PlanArgument::Scalar:
        made.parameters.push_back({Parameter::Scalar, argument.index});
        break;
      case PlanArgument::Size: {
        if (!argument.size.isSize()) {
          made.parameters.push_back({Parameter::Varying, numVarying++});
          break;
        }
        std::optional<int64_t> value = tryEvaluate(argument.size);
        if (!value)
          return overflow("a size does not fit in 64 bits: " + argument.size.str());
        made.parameters.push_back({Parameter::Constant, uint32_t(into.values.size())});
        into.values.push_back(*value);
        break;
      }
      }
    }
    return Error::success();
  }

  Error walkStep(const PlanStep &step, Visit visit) {
    switch (step.kind) {
    case PlanStep::Launch:
      return walkLaunch(step, visit);
    case PlanStep::Loop:
      return walkLoop(step, visit);
    case PlanStep::Zero: {
      Expected<int64_t> bytes =
          evaluate(prepared.plan.buffers[step.buffer].bytes, "the bytes of a buffer");
      if (!bytes)
        return bytes.takeError();
      Start start;
      start.step = step.buffer;
      return visit(start, {uint64_t(*bytes)});
    }
    }
    llvm_unreachable("all kinds of steps are handled");
  }

  Error walkLoop(const PlanStep &step, Visit visit) {
    // Bounds may be negative (an empty range), so they are not sizes.
    std::optional<int64_t> low = tryEvaluate(step.low), high = tryEvaluate(step.high);
    if (!low || !high)
      return overflow("a loop bound does not fit in 64 bits");
    unsigned firstStep = nextStep;
    for (int64_t count = 0; *low + count < *high; ++count) {
      nextStep = firstStep;
      loopValues.push_back(step.reverse ? *high - 1 - count : *low + count);
      for (const PlanStep &inner : step.body)
        if (Error error = walkStep(inner, visit))
          return error;
      loopValues.pop_back();
    }
    nextStep = firstStep + numLaunchSteps(step);
    return Error::success();
  }

  static unsigned numLaunchSteps(const PlanStep &step) {
    if (step.kind != PlanStep::Loop)
      return step.kind == PlanStep::Launch;
    unsigned count = 0;
    for (const PlanStep &inner : step.body)
      count += numLaunchSteps(inner);
    return count;
  }

  Error walkLaunch(const PlanStep &step, Visit visit) {
    Start start;
    start.step = nextStep++;
    Expected<int64_t> points = evaluate(step.points, "the points of a launch");
    if (!points)
      return points.takeError();
    if (*points == 0)
      return Error::success();
    const CudaDeviceInfo &info = prepared.module.device().info();
    uint64_t threads = uint64_t(info.multiprocessors) * info.maxThreadsPerMultiprocessor;
    const PlanFunction &chosen = step.functionFor(*points, threads);
    if (!chosen.name.empty())
      if (Error error = addFunction(chosen, *points, start))
        return error;
    if (Error error = addTiles(step.tiles, start))
      return error;
    if (!start.isLaunch())
      return overflow("more blocks than a launch has");

    SmallVector<uint64_t, 4> varying;
    for (const PlanArgument &argument : step.arguments) {
      if (argument.kind == PlanArgument::Workspace) {
        Expected<int64_t> bytes = evaluate(chosen.workspaceBytes, "the workspace's bytes");
        if (!bytes)
          return bytes.takeError();
        int64_t total;
        if (MulOverflow<int64_t>(*bytes, start.blocks, total))
          return overflow("the workspace overflows 64 bits");
        start.hasWorkspace = total != 0;
        areaBytes[position] = std::max({areaBytes[position], total, start.tileWorkspaceBytes});
      } else if (argument.kind == PlanArgument::Size && !argument.size.isSize()) {
        std::optional<int64_t> value = tryEvaluate(argument.size);
        if (!value)
          return overflow("a size does not fit in 64 bits: " + argument.size.str());
        varying.push_back(*value);
      }
    }
    return visit(start, varying);
  }

  Error addFunction(const PlanFunction &chosen, uint64_t points, Start &start) {
    Expected<void *> function = prepared.module.find(chosen.name);
    if (!function)
      return function.takeError();
    start.function = *function;
    start.name = &chosen.name;
    start.threads = chosen.threads;
    start.sharedBytes = chosen.sharedBytes;
    if (chosen.sharedBytes)
      if (Error refused = prepared.module.allowSharedBytes(*function, chosen.sharedBytes))
        return refused;
    constexpr unsigned portableCluster = 8;
    if (chosen.cluster > portableCluster)
      if (Error refused = prepared.module.allowLargeCluster(*function))
        return refused;
    Expected<unsigned> resident =
        prepared.module.residentBlocks(*function, chosen.threads, chosen.sharedBytes);
    if (!resident)
      return resident.takeError();
    start.blocks = std::min(chosen.blocksFor(points), chosen.maxBlocks(*resident));
    return Error::success();
  }

  /// Tiles, where the grid and their numbers are not too large for them and the device has the
  /// shared memory.
  Error addTiles(const PlanTiles &tiles, Start &start) {
    Expected<int64_t> largest = evaluate(tiles.largestNumber, "the numbers of tiles");
    if (!largest)
      return largest.takeError();
    if (*largest > int64_t(maxBlocks))
      return Error::success();
    for (const PlanTileLaunch &launch : tiles.launches) {
      Expected<int64_t> blocks = evaluate(launch.blocks, "the blocks of a launch");
      if (!blocks)
        return blocks.takeError();
      Expected<void *> function = prepared.module.find(launch.function);
      if (!function)
        return function.takeError();
      Error refused = prepared.module.allowSharedBytes(*function, launch.sharedBytes);
      bool fits = !refused && *blocks <= int64_t(maxBlocks);
      consumeError(std::move(refused));
      if (!fits) {
        start.tiles.clear();
        return Error::success();
      }
      start.tiles.push_back({*function, uint32_t(*blocks)});
    }
    Expected<int64_t> bytes = evaluate(tiles.workspaceBytes, "the workspace's bytes");
    if (!bytes)
      return bytes.takeError();
    start.tileWorkspaceBytes = start.tiles.empty() ? 0 : *bytes;
    return Error::success();
  }

  const PreparedPlan &prepared;
  SmallVector<int64_t> loopValues;
  SmallVector<int64_t> areaBytes;
  unsigned position = 0; // of the step at top level
  unsigned nextStep = 0; // among launch steps
};
} // namespace tegula

Expected<std::unique_ptr<PreparedPlan>> PreparedPlan::make(CudaModule &module, const Plan &plan,
                                                           StringMap<int64_t> sizes) {
  std::unique_ptr<PreparedPlan> made(new PreparedPlan(module, plan, std::move(sizes)));
  if (Error error = PlanWalk::describe(*made))
    return std::move(error);
  PlanWalk walk(*made);
  Error failed = walk.walk([&](const Start &start, ArrayRef<uint64_t> varying) {
    if (made->starts.size() == maxStarts)
      made->isWalked = true;
    if (made->isWalked)
      return Error::success();
    made->starts.push_back(start);
    made->starts.back().varying = made->values.size();
    made->values.insert(made->values.end(), varying.begin(), varying.end());
    return Error::success();
  });
  if (failed)
    return std::move(failed);
  if (made->isWalked)
    made->starts.clear();

  // Slots: buffers, the error record, an area for each step at top level.
  made->offsets.assign(plan.buffers.size() + 1 + plan.steps.size(), -1);
  SmallVector<MemoryRequest> requests;
  SmallVector<unsigned> slots;
  std::vector<std::optional<Lifetime>> lives = lifetimesOf(plan);
  for (auto [index, buffer] : enumerate(plan.buffers)) {
    if (buffer.argument >= 0 || !lives[index])
      continue;
    Expected<int64_t> bytes = walk.evaluate(buffer.bytes, "the bytes of '" + buffer.name + "'");
    if (!bytes)
      return bytes.takeError();
    requests.push_back({*bytes, *lives[index]});
    slots.push_back(index);
  }
  for (auto [step, bytes] : enumerate(walk.areas())) {
    if (!bytes)
      continue;
    requests.push_back({bytes, Lifetime{unsigned(step), unsigned(step)}});
    slots.push_back(plan.buffers.size() + 1 + step);
  }
  std::optional<MemoryLayout> layout = layOut(requests);
  if (!layout)
    return overflow("the temporaries overflow 64 bits");
  for (auto [slot, offset] : zip_equal(slots, layout->offsets))
    made->offsets[slot] = offset;
  made->memoryBytes = layout->bytes;
  return std::move(made);
}

void PreparedPlan::fillSlots(const PlanInputs &inputs,
                             SmallVectorImpl<DeviceAddress> &slots) const {
  slots.resize_for_overwrite(offsets.size());
  for (auto [slot, offset] : zip_equal(slots, offsets))
    slot = offset < 0 ? 0 : inputs.workspace + offset;
  for (auto [slot, buffer] : zip(slots, plan.buffers))
    if (buffer.argument >= 0)
      slot = inputs.arguments[buffer.argument];
  slots[plan.buffers.size()] = inputs.errors;
}

Error PreparedPlan::start(const Start &what, const uint64_t *varying, ArrayRef<DeviceAddress> slots,
                          const PlanInputs &inputs, bool isDependent) const {
  const CudaDriver &driver = CudaDriver::get();
  if (!what.isLaunch())
    return *varying ? checkCuda(driver.memsetD8Async(slots[what.step], 0, *varying, inputs.stream),
                                "cuMemsetD8Async")
                    : Error::success();
  const Step &step = steps[what.step];
  bool inTiles = !what.tiles.empty() && isAligned(step, slots);
  if (inTiles && step.tiles->isZeroed) {
    if (Error error = checkCuda(
            driver.memsetD8Async(slots[step.workspace], 0, what.tileWorkspaceBytes, inputs.stream),
            "cuMemsetD8Async"))
      return error;
    isDependent = false; // a launch starts early before another launch alone
  }
  DeviceAddress none = 0;
  auto addressOf = [&](uint32_t slot) {
    bool isArea = slot > plan.buffers.size();
    return isArea && !inTiles && !what.hasWorkspace ? &none
                                                    : const_cast<DeviceAddress *>(&slots[slot]);
  };
  SmallVector<void *, 32> pointers;
  pointers.resize_for_overwrite(step.parameters.size());
  for (auto [pointer, parameter] : zip_equal(pointers, step.parameters)) {
    switch (parameter.kind) {
    case Parameter::Constant:
      pointer = const_cast<uint64_t *>(&values[parameter.index]);
      break;
    case Parameter::Varying:
      pointer = const_cast<uint64_t *>(varying + parameter.index);
      break;
    case Parameter::Slot:
      pointer = addressOf(parameter.index);
      break;
    case Parameter::Scalar:
      pointer = const_cast<void *>(inputs.scalars[parameter.index]);
      break;
    }
  }
  auto queue = [&](void *function, uint32_t blocks, unsigned threads, unsigned sharedBytes) {
    if (isDependent && driver.launchKernelEx) {
      CudaLaunchAttribute attribute = {
          CudaLaunchAttribute::programmaticStreamSerialization, 0, {1}};
      CudaLaunchConfig config = {blocks,        1,          1, threads, 1, 1, sharedBytes,
                                 inputs.stream, &attribute, 1};
      return checkCuda(driver.launchKernelEx(&config, function, pointers.data(), nullptr),
                       "cuLaunchKernelEx");
    }
    return checkCuda(driver.launchKernel(function, blocks, 1, 1, threads, 1, 1, sharedBytes,
                                         inputs.stream, pointers.data(), nullptr),
                     "cuLaunchKernel");
  };
  auto launch = [&](void *function, StringRef name, uint32_t blocks, unsigned threads,
                    unsigned sharedBytes) {
    return watched(inputs, {name, blocks, threads, sharedBytes},
                   [&] { return queue(function, blocks, threads, sharedBytes); });
  };
  if (!inTiles)
    return launch(what.function, *what.name, what.blocks, what.threads, what.sharedBytes);
  for (auto [started, planned] : zip_equal(what.tiles, step.tiles->launches)) {
    if (!started.blocks) // a sum of no points has no planes
      continue;
    isDependent |= planned.usesDependentLaunch;
    if (Error error = launch(started.function, planned.function, started.blocks, planned.threads,
                             planned.sharedBytes))
      return error;
    isDependent = plan.dependentLaunches;
  }
  return Error::success();
}

LaunchWatch::~LaunchWatch() = default;

std::string LaunchNote::text() const {
  auto count = [](unsigned number, const char *what) {
    return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
  };
  return ("launch '" + function + "' (" + count(blocks, "block") + " of " +
          count(threads, "thread") +
          (sharedBytes ? ", " + count(sharedBytes, "byte") + " of shared memory" : "") + ")")
      .str();
}

Error PreparedPlan::watched(const PlanInputs &inputs, const LaunchNote &note,
                            function_ref<Error()> launch) const {
  if (!inputs.watch)
    return launch();
  inputs.watch->begin(note);
  Error error = launch();
  if (!error)
    error = checkCuda(CudaDriver::get().streamSynchronize(inputs.stream), "cuStreamSynchronize");
  inputs.watch->end();
  return handleErrors(std::move(error), [&](const CudaError &failed) -> Error {
    return make_error<CudaError>(failed.kind, note.text() + ": " + failed.message);
  });
}

bool PreparedPlan::isAligned(const Step &step, ArrayRef<DeviceAddress> slots) const {
  return llvm::all_of(step.tiles->aligned, [&](unsigned position) {
    return slots[step.parameters[position].index] % 16 == 0;
  });
}

Error PreparedPlan::run(const PlanInputs &inputs) const {
  SmallVector<DeviceAddress, 32> slots;
  fillSlots(inputs, slots);
  // The first waits, as every launch on a stream does, for all before the call; so what others
  // wrote is there.
  bool isDependent = false;
  auto startNext = [&](const Start &what, const uint64_t *varying) {
    Error error = start(what, varying, slots, inputs, isDependent);
    isDependent = plan.dependentLaunches && what.isLaunch();
    return error;
  };
  if (isWalked)
    return PlanWalk(*this).walk([&](const Start &what, ArrayRef<uint64_t> varying) {
      return startNext(what, varying.data());
    });
  for (const Start &what : starts)
    if (Error error = startNext(what, values.data() + what.varying))
      return error;
  return Error::success();
}
