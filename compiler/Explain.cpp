//===- Explain.cpp - What each launch does, what bounds it, and what was not possible ---===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "compiler/Explain.h"

#include "compiler/Work.h"
#include "ir/tgl/Invariance.h"
#include "ir/tgl/TglShapes.h"
#include "ir/tgl/TglUtils.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Passes.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

using namespace llvm;
using namespace tegula;

//===----------------------------------------------------------------------===//
// Remarks
//===----------------------------------------------------------------------===//

namespace {
class Collector final : public mlir::remark::detail::MLIRRemarkStreamerBase {
public:
  explicit Collector(std::shared_ptr<std::vector<CollectedRemark>> remarks)
      : remarks(std::move(remarks)) {}

  void streamOptimizationRemark(const mlir::remark::detail::Remark &remark) override {
    if (remark.getRemarkName() != "mismatch")
      return;
    CollectedRemark kept{remark.getLocation(),
                         remark.getCategoryName().str(),
                         remark.getFunction().str(),
                         "",
                         "",
                         false};
    for (const mlir::remark::detail::Remark::Arg &argument : remark.getArgs()) {
      if (argument.key == "Reason")
        kept.reason = argument.val;
      else if (argument.key == "Edit")
        kept.edit = argument.val;
      else if (argument.key == "Other")
        kept.isOther = argument.val == "true";
    }
    remarks->push_back(std::move(kept));
  }

private:
  std::shared_ptr<std::vector<CollectedRemark>> remarks;
};
} // namespace

std::shared_ptr<std::vector<CollectedRemark>>
tegula::collectMismatches(mlir::MLIRContext &context) {
  auto remarks = std::make_shared<std::vector<CollectedRemark>>();
  mlir::remark::RemarkCategories categories;
  categories.missed = ".*";
  bool isOn = mlir::succeeded(mlir::remark::enableOptimizationRemarks(
      context, std::make_unique<Collector>(remarks),
      std::make_unique<mlir::remark::RemarkEmittingPolicyAll>(), categories));
  assert(isOn && "a context has one engine for remarks");
  (void)isOn;
  return remarks;
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

StringRef tegula::toString(LaunchUnit unit) {
  switch (unit) {
  case LaunchUnit::Lanes32:
    return "lanes of f32";
  case LaunchUnit::Lanes64:
    return "lanes of f64";
  case LaunchUnit::TensorHalf:
    return "tensor cores, 16 bits";
  case LaunchUnit::TensorSingle:
    return "tensor cores, TF32";
  case LaunchUnit::TensorBytes:
    return "tensor cores, 8 bits";
  }
  llvm_unreachable("all units are listed");
}

std::string tegula::placeOf(mlir::Location location) {
  std::string place;
  location->walk([&](mlir::Location part) {
    auto file = dyn_cast<mlir::FileLineColLoc>(part);
    if (!file)
      return mlir::WalkResult::advance();
    place = (file.getFilename().getValue() + ":" + Twine(file.getLine()) + ":" +
             Twine(file.getColumn()))
                .str();
    return mlir::WalkResult::interrupt();
  });
  return place;
}

/// Points at which an operation of the launch runs; nothing where a range is not known.
static std::optional<double> pointsAround(mlir::Operation *op) {
  double points = 1;
  for (mlir::Operation *around = op->getParentOp(); !isa<tgl::LaunchOp>(around);
       around = around->getParentOp()) {
    std::optional<int64_t> own = 1;
    if (auto axes = dyn_cast<tgl::AxesOp>(around))
      own = tgl::knownPoints(axes);
    else if (auto loop = dyn_cast<tgl::ForOp>(around))
      own = (loop.getHighExpr() - loop.getLowExpr()).asConstant();
    if (!own)
      return std::nullopt;
    points *= double(*own);
  }
  return points;
}

/// What a launch reads and writes if each element that it touches moves once.
static std::optional<double> trafficOf(tgl::LaunchOp launch) {
  struct Traffic {
    double read = 0, written = 0;
  };
  MapVector<mlir::Value, Traffic> traffic; // elements, at most those of the tensor
  bool isKnown = true;
  auto add = [&](mlir::Operation *op, mlir::Value tensor, double Traffic::*way) {
    if (mlir::Operation *temp = tensor.getDefiningOp(); temp && launch->isAncestor(temp))
      return; // a block's own
    std::optional<double> points = pointsAround(op);
    isKnown &= points.has_value();
    traffic[tensor].*way += points.value_or(0);
  };
  launch.walk([&](mlir::Operation *op) {
    if (auto read = dyn_cast<tgl::ReadOp>(op))
      add(op, read.getTensor(), &Traffic::read);
    else if (auto write = dyn_cast<tgl::WriteOp>(op))
      add(op, write.getTensor(), &Traffic::written);
    else if (auto sort = dyn_cast<tgl::SortOp>(op))
      isKnown &= !sort; // rows move inside the launch
  });
  if (!isKnown)
    return std::nullopt;
  double bytes = 0;
  for (auto &[tensor, own] : traffic) {
    auto type = cast<tgl::TglTensorType>(tensor.getType());
    std::optional<int64_t> elements = tgl::knownElements(tensor);
    if (!elements)
      return std::nullopt;
    double each = type.getElementType().getIntOrFloatBitWidth() / 8.0;
    bytes +=
        each * (std::min(own.read, double(*elements)) + std::min(own.written, double(*elements)));
  }
  return bytes;
}

/// Operations as KernelWork counts them: one for each arithmetic operation on floats and each step
/// of a reduction.
static std::optional<double> operationsOf(tgl::LaunchOp launch) {
  double operations = 0;
  bool isKnown = true;
  launch.walk([&](mlir::Operation *op) {
    bool isStep = isa<tgl::ReduceOp>(op);
    bool isArithmetic =
        isa_and_nonnull<mlir::arith::ArithDialect, mlir::math::MathDialect>(op->getDialect()) &&
        op->getNumOperands() > 0 &&
        isa<mlir::FloatType>(op->getOperand(op->getNumOperands() - 1).getType()) &&
        !isa<mlir::CastOpInterface, mlir::arith::SelectOp>(op);
    if (!isStep && !isArithmetic)
      return;
    std::optional<double> points = pointsAround(op);
    if (isStep && points) {
      std::optional<int64_t> own = tgl::knownPoints(cast<tgl::AxesOp>(op));
      points = own ? std::optional(*points * double(*own)) : std::nullopt;
    }
    isKnown &= points.has_value();
    operations += points.value_or(0);
  });
  return isKnown ? std::optional(operations) : std::nullopt;
}

static std::optional<std::vector<LaunchWork>>
workOf(tgl::LaunchOp launch, StatementMatches &matches, LaunchWorkCounter &counter) {
  std::vector<LaunchWork> works;
  for (auto op : launch.getBody().getOps<tgl::ParallelOp>()) {
    std::optional<LaunchWork> work = counter.count(op, matches.find(op));
    if (!work)
      return std::nullopt;
    works.push_back(std::move(*work));
  }
  return works;
}

/// The tile and the unit of the launch's first statement that has a tile.
static void describeTile(tgl::LaunchOp launch, StatementMatches &matches,
                         LaunchExplanation &explanation) {
  bool hasDoubles = false;
  launch.walk([&](tgl::ReduceOp reduce) { hasDoubles |= reduce.getType().isF64(); });
  explanation.unit = hasDoubles ? LaunchUnit::Lanes64 : LaunchUnit::Lanes32;
  for (auto op : launch.getBody().getOps<tgl::ParallelOp>()) {
    const StatementMatch *match = matches.find(op);
    StatementCost cost = match ? match->strategy.cost(*match) : StatementCost();
    if (cost.tile.empty())
      continue;
    explanation.tile = cost.tile;
    explanation.unit = cost.unit.value_or(explanation.unit);
    return;
  }
}

/// The kernel with the classes of its invariant sizes in their place; null where there are none, or
/// they cannot be put there.
static mlir::OwningOpRef<tgl::KernelOp> ofClasses(tgl::KernelOp kernel) {
  auto classes = kernel->getAttrOfType<mlir::DictionaryAttr>(tgl::Invariance::classesName);
  if (!classes)
    return nullptr;
  mlir::OwningOpRef<tgl::KernelOp> copy(cast<tgl::KernelOp>(kernel->clone()));
  for (StringRef name : {StringRef("invariant"), StringRef(tgl::Invariance::classesName)})
    (*copy)->removeAttr(name);
  SpecializeSizesPassOptions options;
  for (mlir::NamedAttribute one : classes)
    options.sizes.push_back(one.getName().str() + "=" +
                            std::to_string(cast<mlir::IntegerAttr>(one.getValue()).getInt()));
  mlir::PassManager manager(kernel->getContext(), tgl::KernelOp::getOperationName());
  manager.addPass(createSpecializeSizesPass(options));
  return succeeded(manager.run(*copy)) ? std::move(copy) : nullptr;
}

std::vector<LaunchExplanation> tegula::explainLaunches(tgl::KernelOp kernel,
                                                       StatementMatches &matches,
                                                       ArrayRef<CollectedRemark> remarks) {
  if (mlir::OwningOpRef<tgl::KernelOp> copy = ofClasses(kernel)) {
    StatementMatches restored;
    return explainLaunches(*copy, restored, remarks);
  }
  std::vector<LaunchExplanation> result;
  LaunchWorkCounter counter;
  kernel.walk([&](tgl::LaunchOp launch) {
    LaunchExplanation explanation;
    explanation.name = launch.getName().str();
    explanation.place = placeOf(launch.getLoc());
    explanation.strategy = launch.getStrategy().value_or("general").str();
    explanation.bytes = trafficOf(launch);
    explanation.operations = operationsOf(launch);
    explanation.work = workOf(launch, matches, counter);
    if (explanation.work && (!explanation.bytes || !explanation.operations)) {
      // Ranges that tiles or data cut: as many points as sizes let one guess.
      explanation.bytes = explanation.operations = 0;
      for (const LaunchWork &work : *explanation.work) {
        *explanation.bytes += work.bytesRead + work.bytesWritten;
        *explanation.operations += work.operations * work.computed;
      }
    } else if (explanation.work && explanation.strategy == productReductionStrategy().name()) {
      // Reductions of one product compute it once.
      *explanation.operations *= explanation.work->front().computed;
    }
    describeTile(launch, matches, explanation);
    DenseSet<mlir::Location> locations;
    launch.walk([&](mlir::Operation *op) { locations.insert(op->getLoc()); });
    for (mlir::Operation *around = launch->getParentOp(); around != kernel;
         around = around->getParentOp())
      locations.insert(around->getLoc());
    // Remarks of the schedule name the launch; those of passes before it stand at a statement that
    // is in it now, or at a loop around it. Of a strategy the last tells of the form that the
    // launch has in the end.
    MapVector<StringRef, const CollectedRemark *> last;
    for (const CollectedRemark &remark : remarks)
      if (remark.launch == explanation.name || locations.contains(remark.location))
        if (remark.strategy != explanation.strategy)
          if (auto &slot = last[remark.strategy]; !slot || slot->isOther || !remark.isOther)
            slot = &remark;
    for (auto &[strategy, remark] : last)
      explanation.mismatches.push_back({strategy.str(), remark->reason, remark->edit,
                                        placeOf(remark->location), remark->isOther});
    result.push_back(std::move(explanation));
  });
  return result;
}
