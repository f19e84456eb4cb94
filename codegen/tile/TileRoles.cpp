//===- TileRoles.cpp - Roles of warps, pipes and boxes ----------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The threads of `tile.roles` go two ways at a branch, behind a barrier of the block: the barriers
// in shared memory are there then. A pipe is a ring of codegen/async, whose bytes TMA counts. A
// TMA descriptor lies in the workspace, 128 bytes of the block's own: its address is in no
// argument.
//
//===----------------------------------------------------------------------===//
#include "codegen/tile/TileRoles.h"

#include "codegen/tile/TileEmitter.h"

#include "codegen/async/Async.h"
#include "codegen/nvgpu/TmaDescriptor.h"
#include "ir/tgl/TglUtils.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;

static constexpr unsigned warpThreads = 32;
static_assert(tile::TmaDescriptorType::bytes == TmaDescriptor::bytes);

TileRoles::TileRoles(TileEmitter &emitter) : e(emitter), b(emitter.b) {}

int64_t TileRoles::workspaceOfBlock(tile::KernelOp kernel) {
  int64_t bytes = 0;
  kernel.getBody().walk([&](tile::TmaDescriptorOp) { bytes += TmaDescriptor::bytes; });
  return bytes;
}

/// Rings, in the order of the kernel's pipes; named barriers from the block's own on.
void TileRoles::makePipes(tile::RolesOp op) {
  unsigned first = 1; // named barrier 0 is the block's
  for (auto alloc : e.kernel.getBody().getOps<tile::AllocOp>()) {
    auto type = dyn_cast<tile::PipeType>(alloc.getType());
    if (!type)
      continue;
    async::RingShape shape{first,       unsigned(type.getStages()),  /*groups=*/0,
                           warpThreads, unsigned(op.getConsumers()), /*fillersPublish=*/false};
    first += type.getStages();
    pipes[alloc] = async::makeCountedRing(b, shape, e.parts[alloc].front());
  }
}

void TileRoles::emit(tile::RolesOp op) {
  // Registers move between roles only where the number at the start is fixed.
  e.function->addFnAttr("nvvm.minctasm", "1");
  makePipes(op);
  e.emitIf(b.CreateICmpEQ(e.thread, e.i32(0)), [&] {
    for (auto alloc : e.kernel.getBody().getOps<tile::AllocOp>())
      if (Value *ring = pipes.lookup(alloc))
        async::initRing(b, ring);
  });
  b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_barrier_cta_sync_aligned_all, {e.i32(0)});
  BasicBlock *producer = BasicBlock::Create(b.getContext(), "producer", e.function),
             *consumer = BasicBlock::Create(b.getContext(), "consumer", e.function);
  b.CreateCondBr(b.CreateICmpUGE(e.thread, e.i32(op.getConsumers())), producer, consumer);
  b.SetInsertPoint(producer);
  b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_setmaxnreg_dec_sync_aligned_u32,
                    {e.i32(op.getProducerRegisters())});
  e.emitIf(b.CreateICmpULT(e.thread, e.i32(op.getConsumers() + warpThreads)),
           [&] { e.emitOps(op.getProducer().front()); });
  b.CreateRetVoid();
  b.SetInsertPoint(consumer);
  b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_setmaxnreg_inc_sync_aligned_u32,
                    {e.i32(op.getConsumerRegisters())});
  e.emitOps(op.getConsumer().front());
}

/// By the first thread of the warp, which is the one that uses it.
void TileRoles::describe(tile::TmaDescriptorOp op) {
  int64_t before = 0, number = 0;
  e.kernel.getBody().walk([&](tile::TmaDescriptorOp other) {
    if (other == op)
      number = before;
    ++before;
  });
  Value *block = b.CreateZExt(
      b.CreateIntrinsic(b.getInt32Ty(), Intrinsic::nvvm_read_ptx_sreg_ctaid_x, {}), b.getInt64Ty());
  Value *start = b.CreateAdd(b.CreateMul(block, e.i64(workspaceOfBlock(e.kernel))),
                             e.i64(number * TmaDescriptor::bytes));
  Value *place = b.CreateInBoundsGEP(b.getInt8Ty(), e.workspace, start);
  e.parts[op] = {place};
  e.emitIf(b.CreateICmpEQ(e.lane, e.i32(0)), [&] {
    tgl::ReadOp read = op.getRead();
    const DeviceEmitter::Buffer &buffer = e.buffers.find(read.getTensor())->second;
    mlir::Type element = op.getType().getElementType();
    unsigned elementBytes = element.getIntOrFloatBitWidth() / 8;
    mlir::Block &point = *op.getPoint();
    tgl::ValueExpr offset = tgl::elementOffset(buffer.type, read.getSubscriptExprs());
    int64_t apart = *stepAlong(offset, point.getArgument(0)); // as the verifier asks
    for (mlir::BlockArgument index : point.getArguments())
      e.values[index] = e.i64(0);
    Value *address =
        b.CreateInBoundsGEP(e.storageType(element), buffer.pointer, e.emitIndex(offset));
    auto extentOf = [&](unsigned dim) {
      return b.CreateTrunc(e.spans[op.getSpans()[dim]].end, b.getInt32Ty());
    };
    ArrayRef<int64_t> box = op.getType().getShape();
    TmaDescriptor its(b, place);
    its.write(address,
              {{extentOf(1), nullptr, unsigned(box[1])},
               {extentOf(0), e.i64(apart * elementBytes), unsigned(box[0])}},
              elementBytes);
    TmaDescriptor::publish(b);
    its.acquire();
  });
}

void TileRoles::fill(tile::FillOp op) {
  Value *number = b.CreateTrunc(e.emitIndex(op.getNumberExpr()), b.getInt32Ty());
  Value *ring = pipes.lookup(op.getPipe());
  async::acquire(b, ring, number);
  e.emitIf(b.CreateICmpEQ(e.lane, e.i32(0)), [&] {
    filled = async::expectBytes(b, ring, number, op.getBytes());
    e.emitOps(op.getBody().front());
  });
}

void TileRoles::copyBox(tile::CopyBoxOp op) {
  auto first = [&](mlir::Value span) { return b.CreateTrunc(e.spans[span].base, b.getInt32Ty()); };
  TmaDescriptor(b, e.parts[op.getDescriptor()].front())
      .copyBox(e.parts[op.getTarget()].front(), {first(op.getAlong()), first(op.getLines())},
               filled);
}

void TileRoles::wait(tile::WaitOp op) {
  Value *number = b.CreateTrunc(e.emitIndex(op.getNumberExpr()), b.getInt32Ty());
  async::wait(b, pipes.lookup(op.getPipe()), number, /*group=*/e.i32(0));
}

void TileRoles::release(tile::ReleaseOp op) {
  Value *number = e.emitIndex(op.getNumberExpr());
  Value *next = b.CreateAdd(number, e.i64(op.getPipe().getType().getStages()));
  Value *isFilled = b.CreateAnd(b.CreateICmpSGE(number, e.i64(0)),
                                b.CreateICmpSLT(next, e.emitIndex(op.getTotalExpr())));
  e.emitIf(isFilled, [&] {
    async::release(b, pipes.lookup(op.getPipe()), b.CreateTrunc(number, b.getInt32Ty()));
  });
}
