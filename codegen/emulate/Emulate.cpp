//===- Emulate.cpp - Device code for the emulator ---------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/emulate/Emulate.h"

#include "codegen/llvm/AccessMetadata.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/ReplaceConstant.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Scalar/ScalarizeMaskedMemIntrin.h"

using namespace llvm;
using namespace tegula;

static constexpr StringLiteral atomNames[] = {
#define TEGULA_ATOM(name, ...) name,
#include "codegen/nvgpu/Atoms.def"
};

StringRef tegula::atomName(unsigned atom) { return atomNames[atom]; }

static std::optional<unsigned> findAtom(StringRef name) {
  static const StringMap<unsigned> numbers = [] {
    StringMap<unsigned> map;
    for (auto [number, known] : enumerate(atomNames))
      map[known] = number;
    return map;
  }();
  auto found = numbers.find(name);
  return found == numbers.end() ? std::nullopt : std::optional(found->second);
}

/// What inline PTX is listed as: the name of its last instruction, without the shape of a product.
static std::string nameOfPtx(StringRef text) {
  SmallVector<StringRef> statements, parts;
  text.split(statements, ';', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  while (!statements.empty() &&
         (statements.back().trim().empty() || statements.back().trim() == "}"))
    statements.pop_back();
  if (statements.empty())
    return "";
  statements.back().ltrim(" {").split(' ').first.split(parts, '.');
  std::string name;
  for (StringRef part : parts) {
    bool isShape = part.starts_with("m64n") && (part.ends_with("k16") || part.ends_with("k32"));
    if (!isShape)
      name += (name.empty() ? "" : ".") + part.str();
  }
  return name;
}

static constexpr unsigned sharedSpace = 3;
static constexpr StringLiteral hooksName = "tegula.hooks", constantsName = "tegula.constants",
                               entrySuffix = ".entry";
/// Bytes between objects of shared memory, so that leaving one is noticed.
static constexpr uint64_t sharedGap = 64;
/// What ptxas gives a function without asking for dynamic memory (CUDA C++ Programming Guide,
/// "Compute Capabilities").
static constexpr uint64_t maxSharedBytes = 48 << 10;
/// Of a thread's own objects; the emulator's stacks have twice that.
static constexpr uint64_t maxLocalBytes = 128 << 10;

namespace {

/// One module on its way to the host.
class Emulation {
public:
  Emulation(Module &module, uint64_t maxDynamicBytes)
      : module(module), context(module.getContext()), b(context),
        result(std::make_unique<EmulatedCode>()) {
    result->maxDynamicBytes = maxDynamicBytes;
  }

  Expected<std::unique_ptr<EmulatedCode>> run();

private:
  void fail(const Instruction &instruction, const Twine &why) {
    if (failure.empty())
      failure = (result->places[locationOf(instruction)].text + ": " + why).str();
  }

  uint32_t locationOf(const Instruction &instruction);
  uint32_t addAccess(const EmulatedAccess &access) {
    result->accesses.push_back(access);
    return result->accesses.size() - 1;
  }
  EmulatedScope scopeOf(SyncScope::ID scope);
  void order(EmulatedAccess &access, AtomicOrdering ordering, SyncScope::ID scope);
  void callHook(unsigned member, FunctionType *type, ArrayRef<Value *> arguments, Value **returned);
  void check(Instruction &before, Value *address, EmulatedAccess access, Type *type,
             Align alignment);
  void checkRange(Instruction &before, Value *address, Value *bytes, EmulatedAccess access);
  void replaceAtom(CallInst &call, unsigned atom);
  void handleCall(CallInst &call);
  void handle(Instruction &instruction);
  void placeShared();
  void addEntry(Function &function);
  void listConstants();

  Module &module;
  LLVMContext &context;
  IRBuilder<> b;
  GlobalVariable *hooks = nullptr;
  std::unique_ptr<EmulatedCode> result;
  StringMap<uint32_t> locationNumbers;
  std::string failure;
};

} // namespace

uint32_t Emulation::locationOf(const Instruction &instruction) {
  StringRef function = instruction.getFunction()->getName();
  std::string text = function.str();
  if (const DILocation *location = instruction.getDebugLoc().get(); location && location->getLine())
    text = (location->getFilename() + ":" + Twine(location->getLine()) + ":" +
            Twine(location->getColumn()))
               .str();
  auto [entry, isNew] =
      locationNumbers.try_emplace(text + "\n" + function.str(), result->places.size());
  if (isNew)
    result->places.push_back({text, function.str()});
  return entry->second;
}

EmulatedScope Emulation::scopeOf(SyncScope::ID scope) {
  if (scope == SyncScope::SingleThread)
    return EmulatedScope::Thread;
  std::optional<StringRef> name = context.getSyncScopeName(scope);
  return name && *name == "block" ? EmulatedScope::Block : EmulatedScope::Device;
}

void Emulation::order(EmulatedAccess &access, AtomicOrdering ordering, SyncScope::ID scope) {
  if (ordering == AtomicOrdering::NotAtomic)
    return;
  access.isStrong = true;
  access.acquires = isAcquireOrStronger(ordering);
  access.releases = isReleaseOrStronger(ordering);
  access.scope = scopeOf(scope);
}

/// The hooks are found through a pointer that the emulator sets, so that code and emulator need not
/// be linked. `member` is a position in EmulatorHooks.
void Emulation::callHook(unsigned member, FunctionType *type, ArrayRef<Value *> arguments,
                         Value **returned = nullptr) {
  Value *table = b.CreateLoad(b.getPtrTy(), hooks);
  Value *hook =
      b.CreateLoad(b.getPtrTy(), b.CreateConstInBoundsGEP1_64(b.getPtrTy(), table, member));
  Value *value = b.CreateCall(type, hook, arguments);
  if (returned)
    *returned = value;
}

enum Hook : unsigned { AccessHook, RangeHook, LocalHook, AtomHook, FenceHook, SharedHook };

void Emulation::check(Instruction &before, Value *address, EmulatedAccess access, Type *type,
                      Align alignment) {
  access.bytes = module.getDataLayout().getTypeStoreSize(type);
  access.mayBeUndefined = before.hasMetadata(mayBeUndefined);
  access.alignment = alignment.value();
  access.place = locationOf(before);
  b.SetInsertPoint(&before);
  Type *pointer = b.getPtrTy();
  Value *generic = b.CreateAddrSpaceCast(address, pointer);
  Value *number = b.getInt32(addAccess(access));
  auto *object = dyn_cast<AllocaInst>(getUnderlyingObject(address, /*MaxLookup=*/0));
  if (!object) {
    callHook(AccessHook, FunctionType::get(b.getVoidTy(), {pointer, b.getInt32Ty()}, false),
             {generic, number});
    return;
  }
  std::optional<TypeSize> size = object->getAllocationSize(module.getDataLayout());
  if (!size)
    return fail(before, "an object of a size that is not constant on a thread's stack");
  callHook(
      LocalHook,
      FunctionType::get(b.getVoidTy(), {pointer, b.getInt64Ty(), pointer, b.getInt32Ty()}, false),
      {b.CreateAddrSpaceCast(object, pointer), b.getInt64(*size), generic, number});
}

void Emulation::checkRange(Instruction &before, Value *address, Value *bytes,
                           EmulatedAccess access) {
  access.place = locationOf(before);
  b.SetInsertPoint(&before);
  callHook(RangeHook,
           FunctionType::get(b.getVoidTy(), {b.getPtrTy(), b.getInt64Ty(), b.getInt32Ty()}, false),
           {b.CreateAddrSpaceCast(address, b.getPtrTy()),
            b.CreateZExtOrTrunc(bytes, b.getInt64Ty()), b.getInt32(addAccess(access))});
}

/// Operands go through memory, whatever they are, so that one kind of host function serves all
/// atoms.
void Emulation::replaceAtom(CallInst &call, unsigned atom) {
  const DataLayout &layout = module.getDataLayout();
  EmulatedCall described;
  described.atom = atom;
  described.place = locationOf(call);
  EmulatedAccess read, write;
  read.reads = write.writes = true;
  write.isBulk = atomName(atom).starts_with("cp.async.bulk");
  write.reads = write.isStrong = atomName(atom).starts_with("red.relaxed.gpu.");
  read.place = write.place = described.place;
  described.read = addAccess(read);
  described.write = addAccess(write);
  auto inMemory = [&](Type *type) { return type->isIntegerTy(1) ? b.getInt8Ty() : type; };
  auto slots = [&](ArrayRef<Type *> types, SmallVectorImpl<uint32_t> &bytes,
                   SmallVectorImpl<Value *> &addresses) -> Value * {
    b.SetInsertPointPastAllocas(call.getFunction());
    Value *table = b.CreateAlloca(ArrayType::get(b.getPtrTy(), std::max<size_t>(types.size(), 1)));
    for (auto [number, type] : enumerate(types)) {
      Value *slot = b.CreateAlloca(inMemory(type));
      b.CreateStore(slot, b.CreateConstInBoundsGEP1_64(b.getPtrTy(), table, number));
      bytes.push_back(layout.getTypeStoreSize(type));
      addresses.push_back(slot);
    }
    return table;
  };
  SmallVector<Type *> operandTypes, resultTypes;
  for (Value *operand : call.args())
    operandTypes.push_back(operand->getType());
  Type *type = call.getType();
  auto *fields = dyn_cast<StructType>(type);
  if (fields)
    resultTypes.append(fields->element_begin(), fields->element_end());
  else if (!type->isVoidTy())
    resultTypes.push_back(type);
  SmallVector<Value *> operands, results;
  Value *operandTable = slots(operandTypes, described.operandBytes, operands);
  Value *resultTable = slots(resultTypes, described.resultBytes, results);

  b.SetInsertPoint(&call);
  for (auto [slot, operand] : zip_equal(operands, call.args()))
    b.CreateStore(operand->getType()->isIntegerTy(1) ? b.CreateZExt(operand, b.getInt8Ty())
                                                     : operand.get(),
                  slot);
  result->calls.push_back(described);
  callHook(AtomHook,
           FunctionType::get(b.getVoidTy(), {b.getInt32Ty(), b.getPtrTy(), b.getPtrTy()}, false),
           {b.getInt32(result->calls.size() - 1), resultTable, operandTable});
  auto load = [&](unsigned number) {
    Value *value = b.CreateLoad(inMemory(resultTypes[number]), results[number]);
    return resultTypes[number]->isIntegerTy(1) ? b.CreateTrunc(value, b.getInt1Ty()) : value;
  };
  if (fields) {
    Value *whole = PoisonValue::get(type);
    for (unsigned number = 0; number < resultTypes.size(); ++number)
      whole = b.CreateInsertValue(whole, load(number), number);
    call.replaceAllUsesWith(whole);
  } else if (!type->isVoidTy()) {
    call.replaceAllUsesWith(load(0));
  }
  call.eraseFromParent();
}

void Emulation::handleCall(CallInst &call) {
  if (auto *text = dyn_cast<InlineAsm>(call.getCalledOperand())) {
    std::string name = nameOfPtx(text->getAsmString());
    if (std::optional<unsigned> atom = findAtom(name))
      return replaceAtom(call, *atom);
    return fail(call, "the emulator has no host function for the PTX '" + text->getAsmString() +
                          "' (Atoms.def)");
  }
  Function *callee = call.getCalledFunction();
  if (!callee)
    return fail(call, "the emulator has no calls through pointers");
  if (!callee->isDeclaration())
    return;
  Intrinsic::ID id = callee->getIntrinsicID();
  StringRef name = id ? Intrinsic::getBaseName(id) : callee->getName();
  if (std::optional<unsigned> atom = findAtom(name))
    return replaceAtom(call, *atom);
  EmulatedAccess reads, writes;
  reads.reads = writes.writes = true;
  if (auto *copy = dyn_cast<MemTransferInst>(&call)) {
    checkRange(call, copy->getSource(), copy->getLength(), reads);
    return checkRange(call, copy->getDest(), copy->getLength(), writes);
  }
  if (auto *fill = dyn_cast<MemSetInst>(&call))
    return checkRange(call, fill->getDest(), fill->getLength(), writes);
  // LLVM's own, which every target has: arithmetic, and what is there for the optimiser alone.
  bool isKnown = id && !name.starts_with("llvm.nvvm.") &&
                 (callee->doesNotAccessMemory() || callee->onlyAccessesInaccessibleMemory() ||
                  call.isLifetimeStartOrEnd() || id == Intrinsic::prefetch);
  if (!isKnown)
    fail(call, "the emulator has no host function for the atom '" + name + "' (Atoms.def)");
}

void Emulation::handle(Instruction &instruction) {
  EmulatedAccess access;
  if (auto *load = dyn_cast<LoadInst>(&instruction)) {
    access.reads = true;
    access.isStrong = load->isVolatile();
    order(access, load->getOrdering(), load->getSyncScopeID());
    check(*load, load->getPointerOperand(), access, load->getType(), load->getAlign());
  } else if (auto *store = dyn_cast<StoreInst>(&instruction)) {
    access.writes = true;
    access.isStrong = store->isVolatile();
    order(access, store->getOrdering(), store->getSyncScopeID());
    check(*store, store->getPointerOperand(), access, store->getValueOperand()->getType(),
          store->getAlign());
  } else if (auto *update = dyn_cast<AtomicRMWInst>(&instruction)) {
    // What keeps the other half of a byte for itself alone is a store of half a byte
    // (Emitter::storeNibbles).
    bool isHalfStore = update->use_empty() && update->getType()->isIntegerTy(8) &&
                       (update->getOperation() == AtomicRMWInst::And ||
                        update->getOperation() == AtomicRMWInst::Or);
    access.reads = !isHalfStore;
    access.writes = true;
    order(access, update->getOrdering(), update->getSyncScopeID());
    check(*update, update->getPointerOperand(), access, update->getType(), update->getAlign());
  } else if (auto *swap = dyn_cast<AtomicCmpXchgInst>(&instruction)) {
    access.reads = access.writes = true;
    order(access, swap->getMergedOrdering(), swap->getSyncScopeID());
    check(*swap, swap->getPointerOperand(), access, swap->getNewValOperand()->getType(),
          swap->getAlign());
  } else if (auto *fence = dyn_cast<FenceInst>(&instruction)) {
    order(access, fence->getOrdering(), fence->getSyncScopeID());
    access.place = locationOf(*fence);
    b.SetInsertPoint(fence);
    callHook(FenceHook, FunctionType::get(b.getVoidTy(), {b.getInt32Ty()}, false),
             {b.getInt32(addAccess(access))});
    fence->eraseFromParent();
  } else if (auto *call = dyn_cast<CallInst>(&instruction)) {
    handleCall(*call);
  } else if (instruction.mayReadOrWriteMemory()) {
    fail(instruction, Twine("the emulator has no ") + instruction.getOpcodeName());
  }
}

/// Objects of shared memory become places in the memory of the calling thread's block. Functions of
/// different launches use the same memory; what several use comes first.
void Emulation::placeShared() {
  SmallVector<GlobalVariable *> objects;
  SmallVector<Constant *> constants;
  for (GlobalVariable &global : module.globals())
    if (global.getAddressSpace() == sharedSpace) {
      global.removeDeadConstantUsers();
      objects.push_back(&global);
      constants.push_back(&global);
    }
  convertUsersOfConstantsToInstructions(constants);
  auto usersOf = [](GlobalVariable *object) {
    SetVector<Function *> functions;
    for (User *user : object->users())
      if (auto *instruction = dyn_cast<Instruction>(user))
        functions.insert(instruction->getFunction());
    return functions;
  };
  const DataLayout &layout = module.getDataLayout();
  auto isDynamic = [](GlobalVariable *object) { return object->isDeclaration(); };
  SmallVector<GlobalVariable *> several, single, dynamic;
  for (GlobalVariable *object : objects)
    (isDynamic(object)             ? dynamic
     : usersOf(object).size() == 1 ? single
                                   : several)
        .push_back(object);
  DenseMap<Function *, uint64_t> ends, used;
  uint64_t commonEnd = 0;
  DenseMap<Function *, Value *> bases;
  for (GlobalVariable *object : llvm::concat<GlobalVariable *>(several, single, dynamic)) {
    SetVector<Function *> users = usersOf(object);
    EmulatedObject placed;
    placed.name = object->getName().str();
    placed.isDynamic = isDynamic(object);
    placed.bytes =
        placed.isDynamic ? 0 : layout.getTypeAllocSize(object->getValueType()).getFixedValue();
    bool isOwn = users.size() == 1 && !placed.isDynamic;
    uint64_t end = placed.isDynamic ? result->sharedBytes : commonEnd;
    if (isOwn)
      end = std::max(end, ends[users.front()]);
    placed.offset = alignTo(end, std::max<uint64_t>(object->getAlign().valueOrOne().value(),
                                                    placed.isDynamic ? 1024 : 16));
    end = placed.offset + placed.bytes + sharedGap;
    (isOwn ? ends[users.front()] : commonEnd) = end;
    result->sharedBytes = std::max(result->sharedBytes, end);
    if (isOwn)
      placed.function = users.front()->getName().str();
    result->shared.push_back(placed);
    for (Function *function : users) {
      if ((used[function] += placed.bytes) > maxSharedBytes && failure.empty())
        failure =
            (function->getName() + ": " + Twine(used[function]) +
             " bytes of shared memory, of which a function has at most " + Twine(maxSharedBytes))
                .str();
      Value *&base = bases[function];
      if (!base) {
        b.SetInsertPointPastAllocas(function);
        callHook(SharedHook, FunctionType::get(b.getPtrTy(), false), {}, &base);
      }
      b.SetInsertPoint(cast<Instruction>(base)->getNextNode());
      Value *address = b.CreateAddrSpaceCast(
          b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), base, placed.offset), object->getType());
      object->replaceUsesWithIf(address, [&](Use &use) {
        auto *instruction = dyn_cast<Instruction>(use.getUser());
        return instruction && instruction->getFunction() == function;
      });
    }
    object->eraseFromParent();
  }
}

/// `void f.entry(ptr arguments)`, which calls f.
void Emulation::addEntry(Function &function) {
  Function *entry =
      Function::Create(FunctionType::get(b.getVoidTy(), {b.getPtrTy()}, false),
                       Function::ExternalLinkage, function.getName() + entrySuffix, module);
  b.SetInsertPoint(BasicBlock::Create(context, "entry", entry));
  SmallVector<Value *> arguments;
  for (auto [number, argument] : enumerate(function.args())) {
    Value *at = b.CreateLoad(b.getPtrTy(),
                             b.CreateConstInBoundsGEP1_64(b.getPtrTy(), entry->getArg(0), number));
    arguments.push_back(argument.hasByValAttr() ? at : b.CreateLoad(argument.getType(), at));
  }
  b.CreateCall(&function, arguments)->setCallingConv(function.getCallingConv());
  b.CreateRetVoid();
}

/// An array of address and bytes of every variable and table in device memory, ended by a null.
void Emulation::listConstants() {
  auto *pair = StructType::get(context, {b.getPtrTy(), b.getInt64Ty()});
  SmallVector<Constant *> entries;
  for (GlobalVariable &global : module.globals())
    if (&global != hooks && !global.isDeclaration() && !global.getName().starts_with("llvm."))
      entries.push_back(ConstantStruct::get(
          pair, {ConstantExpr::getPointerBitCastOrAddrSpaceCast(&global, b.getPtrTy()),
                 b.getInt64(module.getDataLayout().getTypeAllocSize(global.getValueType()))}));
  entries.push_back(Constant::getNullValue(pair));
  auto *type = ArrayType::get(pair, entries.size());
  new GlobalVariable(module, type, true, GlobalValue::ExternalLinkage,
                     ConstantArray::get(type, entries), constantsName);
}

/// Gathers and masked loads, which the optimiser makes for any target, become loads of elements, as
/// they do for a device.
static void scalarizeMasked(Module &module) {
  FunctionAnalysisManager analyses;
  PassBuilder().registerFunctionAnalyses(analyses);
  for (Function &function : module)
    if (!function.isDeclaration())
      ScalarizeMaskedMemIntrinPass().run(function, analyses);
}

Expected<std::unique_ptr<EmulatedCode>> Emulation::run() {
  scalarizeMasked(module);
  const HostTarget &host = HostTarget::get();
  std::unique_ptr<TargetMachine> machine = host.createMachine();
  // It is optimised as the device's; most of its time is spent in calls of the emulator.
  machine->setOptLevel(CodeGenOptLevel::None);
  module.setTargetTriple(machine->getTargetTriple());
  module.setDataLayout(machine->createDataLayout());
  hooks = new GlobalVariable(module, b.getPtrTy(), false, GlobalValue::ExternalLinkage,
                             Constant::getNullValue(b.getPtrTy()), hooksName);
  SmallVector<Function *> functions, kernels;
  for (Function &function : module)
    if (!function.isDeclaration())
      functions.push_back(&function);
  for (Function *function : functions) {
    SmallVector<Instruction *> instructions;
    uint64_t localBytes = 0;
    for (BasicBlock &block : *function)
      for (Instruction &instruction : block) {
        instructions.push_back(&instruction);
        if (auto *object = dyn_cast<AllocaInst>(&instruction))
          localBytes +=
              object->getAllocationSize(module.getDataLayout()).value_or(TypeSize::getFixed(0));
      }
    if (localBytes > maxLocalBytes)
      fail(*instructions.front(), Twine(localBytes) + " bytes of a thread's own objects");
    for (Instruction *instruction : instructions)
      handle(*instruction);
    // Calls of the emulator are not what the optimiser has found of the function.
    function->setAttributes(function->getAttributes().removeFnAttributes(context));
    if (function->getCallingConv() == CallingConv::PTX_Kernel) {
      function->setCallingConv(CallingConv::C);
      kernels.push_back(function);
    }
  }
  if (!failure.empty())
    return createStringError(failure);
  placeShared();
  if (!failure.empty())
    return createStringError(failure);
  for (Function *kernel : kernels)
    addEntry(*kernel);
  listConstants();
  StripDebugInfo(module);
  applyTarget(module, host, *machine);
  raw_string_ostream stream(failure);
  if (verifyModule(module, &stream))
    return createStringError("emulation made LLVM IR that does not verify: " + failure);
  Expected<std::unique_ptr<LoadedCode>> loaded = LoadedCode::load(emitObject(module, *machine));
  if (!loaded)
    return loaded.takeError();
  result->code = std::move(*loaded);
  Expected<void *> constants = result->code->lookup(constantsName);
  if (!constants)
    return constants.takeError();
  using Constant = std::pair<const void *, uint64_t>;
  for (auto *constant = static_cast<const Constant *>(*constants); constant->first; ++constant)
    result->constants.push_back(*constant);
  return std::move(result);
}

Expected<std::unique_ptr<EmulatedCode>> tegula::emulate(Module &module, uint64_t maxDynamicBytes) {
  return Emulation(module, maxDynamicBytes).run();
}

EmulatedFunction EmulatedCode::find(StringRef function) const {
  Expected<void *> address = code->lookup((function + entrySuffix).str());
  if (!address) {
    consumeError(address.takeError());
    return nullptr;
  }
  return reinterpret_cast<EmulatedFunction>(*address);
}

void EmulatedCode::setHooks(const EmulatorHooks &hooks) const {
  Expected<void *> address = code->lookup(hooksName);
  assert(address && "every module of emulated code has the pointer to its hooks");
  *static_cast<const EmulatorHooks **>(*address) = &hooks;
}
