//===- Interpreter.cpp - Runs tgl IR on host buffers -----------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sizes and guards of a launch, arguments, and what all groups of ops share; the ops themselves are
// in interpreter/.
//
//===----------------------------------------------------------------------===//
#include "ir/interpreter/Interpreter.h"
#include "ir/interpreter/Impl.h"
#include "ir/tgl/WriteAttributes.h"
#include "symbolic/Guards.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::interp;

//===----------------------------------------------------------------------===//
// Frame
//===----------------------------------------------------------------------===//

void Frame::report(const Node *node, InterpreterError::Kind kind, const llvm::Twine &message) {
  if (reported.insert({node, unsigned(kind)}).second)
    report(node->location, kind, message);
}

void Frame::report(Location location, InterpreterError::Kind kind, const llvm::Twine &message) {
  errors.push_back({kind, location, message.str()});
}

bool Frame::step(const Node *node) {
  if (stopped)
    return false;
  ++steps;
  if (options.maxSteps && steps > options.maxSteps) {
    report(node, InterpreterError::Limit,
           llvm::formatv("more than {0} points and iterations", options.maxSteps));
    stopped = true;
  }
  return !stopped;
}

void Frame::run(const Code &code) {
  for (const std::unique_ptr<Node> &node : code) {
    if (stopped)
      return;
    node->run(*this);
  }
}

std::string Frame::describe(const TensorState &tensor, llvm::ArrayRef<int64_t> subscripts,
                            llvm::ArrayRef<bool> areUnsigned) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << tensor.name << '[';
  llvm::interleaveComma(llvm::enumerate(subscripts), os, [&](const auto &subscript) {
    if (subscript.index() < areUnsigned.size() && areUnsigned[subscript.index()])
      os << uint64_t(subscript.value());
    else
      os << subscript.value();
  });
  os << "] (" << tensor.name << " is [";
  llvm::interleaveComma(tensor.shape, os);
  os << "])";
  return text;
}

bool Frame::fromAnotherPoint(uint64_t when) const {
  for (const Level &level : levels)
    if (when >= level.begin && when < level.point)
      return true;
  return false;
}

bool Frame::checkRead(const Node *node, const TensorState &tensor, int64_t position,
                      llvm::ArrayRef<int64_t> subscripts) {
  if (tensor.isInput)
    return true;
  uint64_t when = tensor.stamps[position] >> tgl::stampKindBits;
  if (when < tensor.born) {
    report(node, InterpreterError::Undefined,
           describe(tensor, subscripts) + " is read before anything has defined it");
    return false;
  }
  if (fromAnotherPoint(when))
    report(node, InterpreterError::Race,
           describe(tensor, subscripts) +
               " is read by one point of a parallel and written by another");
  return true;
}

bool Frame::checkWrite(const Node *node, TensorState &tensor, int64_t position,
                       llvm::ArrayRef<int64_t> subscripts, std::optional<tgl::ReduceKind> combine,
                       llvm::StringRef distinct, bool differs) {
  uint64_t &stamp = tensor.stamps[position];
  uint64_t when = stamp >> tgl::stampKindBits;
  unsigned before = stamp & ((1u << tgl::stampKindBits) - 1), kind = tgl::writeKind(combine);
  bool defined = when >= tensor.born;
  if (combine && combine != tgl::ReduceKind::Any && !defined) {
    report(node, InterpreterError::Undefined,
           describe(tensor, subscripts) + " is added to before anything has defined it");
    return false;
  }
  // Writes of one kind meet, those of `any` where they store the same.
  bool isOther = before != kind || (combine == tgl::ReduceKind::Any && differs);
  if (defined && (!combine || isOther) && fromAnotherPoint(when)) {
    if (distinct.empty())
      report(node, InterpreterError::Race,
             describe(tensor, subscripts) + " is written by two points of a parallel");
    else
      report(node, InterpreterError::BadSubscript,
             describe(tensor, subscripts) + " is written twice, and '" + distinct +
                 "' is said to be distinct");
  }
  // Who meets a point that has written in two ways meets the other way too.
  if (isOther && when == clock)
    kind = tgl::plainWrite;
  stamp = (clock << tgl::stampKindBits) | kind;
  ++tensor.version;
  return true;
}

void Frame::define(TensorState &tensor, int64_t position, std::optional<tgl::ReduceKind> combine) {
  tensor.stamps[position] = (clock << tgl::stampKindBits) | tgl::writeKind(combine);
  ++tensor.version;
}

void Frame::allocate(const Node *node, TensorState &tensor) {
  if (tensor.own.empty()) {
    std::optional<int64_t> size = storageBytes(tensor.dtype, tensor.shape);
    // Stamps take eight bytes for each element.
    if (!size || uint64_t(*size) > options.maxBytes || (bytes += *size) > options.maxBytes) {
      report(node, InterpreterError::Limit,
             "temporaries take more than " + llvm::Twine(options.maxBytes) + " bytes");
      stopped = true;
      return;
    }
    tensor.own.assign(size_t(*size), 0);
    tensor.data = tensor.own.data();
    tensor.stamps.assign(size_t(*size) * 8 / bitWidth(tensor.dtype), 0);
  }
  tensor.born = ++clock;
  ++tensor.version;
}

//===----------------------------------------------------------------------===//
// Compiler: what all groups of ops share
//===----------------------------------------------------------------------===//

Kind Compiler::kindOf(Type type) {
  if (type.isF64())
    return Kind::F64;
  if (isa<FloatType>(type))
    return Kind::F32;
  if (type.isInteger(1))
    return Kind::I1;
  return type.isIndex() || type.getIntOrFloatBitWidth() == 64 ? Kind::I64 : Kind::I32;
}

Slot Compiler::slotOf(Value value) {
  auto [entry, isNew] = valueSlots.try_emplace(value, unsigned(frame.slots.size()));
  if (isNew)
    frame.slots.resize(frame.slots.size() + slotCount(value.getType()), 0);
  return entry->second;
}

unsigned Compiler::newTensor(llvm::StringRef name, tgl::TglTensorType type, Location location) {
  TensorState state;
  state.name = name.str();
  state.dtype = *dtypeOf(type.getElementType());
  for (unsigned k = 0; k < type.getRank(); ++k) {
    std::optional<int64_t> size = sizeValue(type.getDim(k));
    if (!size || *size < 0) {
      frame.report(location, InterpreterError::Invalid,
                   "dim " + llvm::Twine(k) + " of '" + name + "', " + type.getDim(k).str() +
                       (size ? ", is " + llvm::Twine(*size) : ", has no value"));
      failed = true;
      size = 0;
    }
    state.shape.push_back(*size);
  }
  if (!storageBytes(state.dtype, state.shape)) {
    frame.report(location, InterpreterError::Limit, "'" + name + "' has more than 2^63 bytes");
    failed = true;
    state.shape.assign(type.getRank(), 0);
  }
  state.strides.resize(type.getRank());
  int64_t stride = 1;
  for (unsigned k = type.getRank(); k-- > 0;) {
    state.strides[k] = stride;
    int64_t dim =
        k + 1 == type.getRank() ? paddedLastDim(state.dtype, state.shape) : state.shape[k];
    // Past an empty dim strides are not used and may be anything.
    if (llvm::MulOverflow(stride, dim, stride))
      stride = 0;
  }
  frame.tensors.push_back(std::move(state));
  return unsigned(frame.tensors.size() - 1);
}

bool Compiler::compileOp(Operation *op, Code &nodes) {
  if (auto call = dyn_cast<tgl::CallOp>(op))
    return compileCall(call, nodes);
  if (auto launch = dyn_cast<tgl::LaunchOp>(op)) {
    compileBlock(launch.getBody().front(), nodes);
    return true;
  }
  if (isa<tgl::YieldOp>(op))
    return true; // its parent reads the values
  return compileAccess(op, nodes) || compileAxes(op, nodes) || compileScan(*this, op, nodes) ||
         compileSort(*this, op, nodes) || compileTile(*this, op, nodes) ||
         compileArith(*this, op, nodes) || compileMath(*this, op, nodes);
}

bool Compiler::compileBlock(mlir::Block &block, Code &nodes) {
  for (Operation &op : block) {
    if (compileOp(&op, nodes))
      continue;
    frame.report(op.getLoc(), InterpreterError::Invalid,
                 "'" + op.getName().getStringRef() + "' is not interpreted");
    failed = true;
  }
  return !failed;
}

/// The callee's body in place of the call, its arguments bound to the caller's.
bool Compiler::compileCall(tgl::CallOp call, Code &nodes) {
  auto callee = SymbolTable::lookupNearestSymbolFrom<tgl::KernelOp>(call, call.getCalleeAttr());
  if (!callee || llvm::is_contained(callStack, callee.getOperation())) {
    frame.report(call.getLoc(), InterpreterError::Invalid,
                 "'" + call.getCallee() + (callee ? "' calls itself" : "' is not a kernel here"));
    failed = true;
    return true;
  }
  for (auto [parameter, argument] :
       llvm::zip_equal(callee.getBody().getArguments(), call.getArgs())) {
    if (isa<tgl::TglTensorType>(argument.getType()))
      bindTensor(parameter, tensorOf(argument));
    else
      valueSlots[parameter] = slotOf(argument);
  }
  callStack.push_back(callee);
  compileBlock(callee.getBody().front(), nodes);
  callStack.pop_back();
  return true;
}

//===----------------------------------------------------------------------===//
// A launch
//===----------------------------------------------------------------------===//

namespace {
/// Binds arguments and sizes, checks guards, runs.
class Launch {
public:
  Launch(tgl::KernelOp kernel, const InterpreterOptions &options)
      : kernel(kernel), frame(options) {}

  InterpreterResult run(llvm::ArrayRef<HostTensor> inputs, const llvm::StringMap<int64_t> &given,
                        llvm::ArrayRef<InterpreterScalar> scalars) {
    sizes = given;
    Code nodes;
    bool ready = matchInputs(inputs) && bindSizes() && checkDims() && checkGuards() &&
                 bindArguments(scalars);
    InterpreterResult result;
    if (ready) {
      ready = compiler.compileBlock(kernel.getBody().front(), nodes);
      if (ready) {
        frame.run(nodes);
        collect(result);
      }
    }
    result.errors = std::move(frame.errors);
    return result;
  }

private:
  bool fail(InterpreterError::Kind kind, const llvm::Twine &message) {
    frame.report(kernel.getLoc(), kind, message);
    return false;
  }

  bool isTensor(unsigned argument) {
    return isa<tgl::TglTensorType>(kernel.getArgumentTypes()[argument]);
  }

  /// Finds each argument's tensor; dtypes and ranks must be right before sizes can be read off
  /// them.
  bool matchInputs(llvm::ArrayRef<HostTensor> inputs) {
    size_t wanted = 0;
    for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
      wanted += isTensor(i) && kernel.getArgRole(i) != "out";
    if (inputs.size() != wanted)
      return fail(InterpreterError::Invalid, "expected " + llvm::Twine(wanted) +
                                                 " input tensors, found " +
                                                 llvm::Twine(inputs.size()));
    tensorOfArgument.assign(kernel.getNumArguments(), nullptr);
    for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
      if (!isTensor(i) || kernel.getArgRole(i) == "out")
        continue;
      const HostTensor &tensor = inputs.front();
      inputs = inputs.drop_front();
      tensorOfArgument[i] = &tensor;
      auto type = cast<tgl::TglTensorType>(kernel.getArgumentTypes()[i]);
      llvm::StringRef name = kernel.getArgName(i);
      DType dtype = *dtypeOf(type.getElementType());
      if (tensor.dtype != dtype)
        return fail(InterpreterError::Invalid, "'" + name + "' is " + toString(tensor.dtype) +
                                                   ", expected " + toString(dtype));
      if (tensor.shape.size() != type.getRank())
        return fail(InterpreterError::Invalid, "'" + name + "' has rank " +
                                                   llvm::Twine(tensor.shape.size()) +
                                                   ", expected " + llvm::Twine(type.getRank()));
    }
    return true;
  }

  bool bindSizes() {
    for (Attribute attr : kernel.getSizeAttrs()) {
      auto size = cast<tgl::SizeAttr>(attr);
      std::optional<int64_t> value;
      if (size.isBound()) {
        const HostTensor *tensor = tensorOfArgument[size.getArgument()];
        if (tensor)
          value = tensor->shape[size.getDimension()];
      } else {
        value = compiler.sizeValue(size.getDefinition());
        if (!value)
          return fail(InterpreterError::Invalid,
                      "size '" + size.getName() + "' = " + size.getDefinition().str() +
                          " divides by zero, leaves 64 bits, or lacks a size");
      }
      auto given = sizes.find(size.getName());
      if (!value && given == sizes.end())
        return fail(InterpreterError::Invalid, "size '" + size.getName() + "' has no value");
      if (value && given != sizes.end() && given->second != *value)
        return fail(InterpreterError::Invalid, "size '" + size.getName() + "' is " +
                                                   llvm::Twine(*value) + ", not " +
                                                   llvm::Twine(given->second));
      if (value)
        sizes[size.getName()] = *value;
    }
    return true;
  }

  bool checkDims() {
    for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
      const HostTensor *tensor = tensorOfArgument[i];
      if (!tensor)
        continue;
      auto type = cast<tgl::TglTensorType>(kernel.getArgumentTypes()[i]);
      for (unsigned k = 0; k < type.getRank(); ++k) {
        std::optional<int64_t> expected = compiler.sizeValue(type.getDim(k));
        if (expected != tensor->shape[k])
          return fail(InterpreterError::Invalid,
                      "dim " + llvm::Twine(k) + " of '" + kernel.getArgName(i) + "' is " +
                          llvm::Twine(tensor->shape[k]) + ", expected " + type.getDim(k).str() +
                          (expected ? " = " + llvm::Twine(*expected) : llvm::Twine("")));
      }
    }
    return true;
  }

  bool checkGuards() {
    if (!frame.options.checkGuards || kernel.getGuards().empty())
      return true;
    std::vector<SizeSpec> sizeSpecs;
    std::vector<GuardSpec> guardSpecs;
    launchSpecs(kernel, sizeSpecs, guardSpecs);
    std::string error;
    std::optional<LaunchChecks> checks = LaunchChecks::make(sizeSpecs, guardSpecs, error);
    if (!checks)
      return fail(InterpreterError::Invalid, error);
    auto dimOf = [&](unsigned argument, unsigned dim) {
      if (const HostTensor *tensor = tensorOfArgument[argument])
        return tensor->shape[dim];
      auto type = cast<tgl::TglTensorType>(kernel.getArgumentTypes()[argument]);
      return *compiler.sizeValue(type.getDim(dim)); // bindSizes has seen to it
    };
    llvm::SmallVector<int64_t> values;
    if (std::optional<GuardFailure> failure = checks->run(dimOf, values))
      return fail(InterpreterError::Guard, failure->message);
    return true;
  }

  bool bindArguments(llvm::ArrayRef<InterpreterScalar> scalars) {
    for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
      BlockArgument argument = kernel.getBody().getArgument(i);
      llvm::StringRef name = kernel.getArgName(i), role = kernel.getArgRole(i);
      if (!isTensor(i)) {
        if (scalars.empty())
          return fail(InterpreterError::Invalid, "no value for scalar '" + name + "'");
        bindScalar(argument, scalars.front());
        scalars = scalars.drop_front();
        continue;
      }
      unsigned id =
          compiler.newTensor(name, cast<tgl::TglTensorType>(argument.getType()), kernel.getLoc());
      if (compiler.failed)
        return false;
      compiler.bindTensor(argument, id);
      TensorState &state = frame.tensors[id];
      state.isInput = role == "in";
      auto size = size_t(*storageBytes(state.dtype, state.shape));
      if (const HostTensor *tensor = tensorOfArgument[i]) {
        if (tensor->bytes.size() != size)
          return fail(InterpreterError::Invalid, "'" + name + "' has " +
                                                     llvm::Twine(tensor->bytes.size()) +
                                                     " bytes, expected " + llvm::Twine(size));
        state.own = tensor->bytes;
      } else if ((frame.bytes += size) > frame.options.maxBytes) {
        return fail(InterpreterError::Limit,
                    "outputs take more than " + llvm::Twine(frame.options.maxBytes) + " bytes");
      } else {
        state.own.assign(size, 0);
      }
      state.data = state.own.data();
      // The clock stands at 1: what an inout holds has been there since.
      if (!state.isInput)
        state.stamps.assign(size * 8 / bitWidth(state.dtype),
                            role == "inout" ? 1 << tgl::stampKindBits : 0);
      state.born = 1;
    }
    if (!scalars.empty())
      return fail(InterpreterError::Invalid,
                  llvm::Twine(scalars.size()) + " scalars too many are given");
    return true;
  }

  void bindScalar(BlockArgument argument, const InterpreterScalar &scalar) {
    Slot slot = compiler.slotOf(argument);
    auto *integer = std::get_if<int64_t>(&scalar);
    double number = integer ? double(*integer) : std::get<double>(scalar);
    switch (Compiler::kindOf(argument.getType())) {
    case Kind::F64:
      frame.set(slot, number);
      break;
    case Kind::F32:
      frame.set(slot, float(number));
      break;
    case Kind::I64:
      frame.slots[slot] = integer ? *integer : convertToInteger(number, DType::I64, false);
      break;
    case Kind::I32:
      frame.slots[slot] = integer ? int32_t(*integer) : convertToInteger(number, DType::I32, false);
      break;
    case Kind::I1:
      frame.slots[slot] = number != 0;
      break;
    }
  }

  HostTensor take(TensorState &state) {
    HostTensor result;
    result.dtype = state.dtype;
    result.shape = state.shape;
    result.bytes = std::move(state.own);
    return result;
  }

  /// Everything of an output must have been written.
  void checkDefined(const TensorState &state) {
    HostTensor shape;
    shape.dtype = state.dtype;
    shape.shape = state.shape;
    for (int64_t n = 0, count = shape.numElements(); n < count; ++n) {
      if ((state.stamps[shape.position(n)] >> tgl::stampKindBits) >= state.born)
        continue;
      llvm::SmallVector<int64_t> at(state.shape.size());
      int64_t rest = n;
      for (size_t k = at.size(); k-- > 0; rest /= state.shape[k])
        at[k] = rest % state.shape[k];
      fail(InterpreterError::Undefined, Frame::describe(state, at) + " is never written");
      return;
    }
  }

  void collect(InterpreterResult &result) {
    for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
      if (!isTensor(i) || kernel.getArgRole(i) == "in")
        continue;
      TensorState &state = frame.tensors[compiler.tensorOf(kernel.getBody().getArgument(i))];
      if (kernel.getArgRole(i) == "out" && !frame.stopped)
        checkDefined(state);
      result.outputs.push_back(take(state));
    }
    if (!frame.options.keepTemps)
      return;
    for (auto temp : kernel.getBody().front().getOps<tgl::TempOp>()) {
      TensorState &state = frame.tensors[compiler.tensorOf(temp.getTensor())];
      if (state.data)
        result.temps.push_back({temp.getName().str(), take(state)});
    }
  }

  tgl::KernelOp kernel;
  Frame frame;
  llvm::StringMap<int64_t> sizes;
  Compiler compiler{frame, sizes};
  llvm::SmallVector<const HostTensor *> tensorOfArgument;
};
} // namespace

InterpreterResult tegula::interpret(tgl::KernelOp kernel, llvm::ArrayRef<HostTensor> inputs,
                                    const llvm::StringMap<int64_t> &sizes,
                                    llvm::ArrayRef<InterpreterScalar> scalars,
                                    const InterpreterOptions &options) {
  return Launch(kernel, options).run(inputs, sizes, scalars);
}
