//===- AtomsBoxes.cpp - Copies of boxes of tensors --------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX ISA, "cp.async.bulk.tensor", "tensormap.replace" and "Tensors". A tensor map is 128 bytes of
// which nobody but the hardware knows the fields; here they are a struct. Boxes are copied as
// AtomsTransactions.cpp copies bytes, 16 at a time, in the swizzle of 128 bytes.
//
//===----------------------------------------------------------------------===//
#include "runtime/emulator/Atoms.h"

using namespace llvm;
using namespace tegula;
using namespace tegula::emulator;

namespace {
struct EmulatedMap {
  static constexpr unsigned maxTmaDims = 5;
  const char *address;
  uint64_t strides[maxTmaDims - 1]; // bytes, from the second dim on
  uint32_t extents[maxTmaDims], box[maxTmaDims];
  uint8_t elementStrides[maxTmaDims];
  uint8_t rank, type, interleaving, swizzle, fill;
};
} // namespace
static constexpr unsigned mapBytes = 128, chunkBytes = 16, lineBytes = 128;
static_assert(sizeof(EmulatedMap) <= mapBytes);

static EmulatedMap &mapAt(AtomCall &call, char *address, uint32_t access) {
  constexpr unsigned alignment = 64;
  if (reinterpret_cast<uintptr_t>(address) % alignment)
    call.thread.fail(EmulatorError::Misaligned, call.site.place,
                     "a tensor map at an address that is no multiple of 64");
  call.thread.grid.memory.check(call.thread, address, mapBytes, access);
  return *reinterpret_cast<EmulatedMap *>(address);
}

void atoms::setTmaField(AtomCall &call, TmaField field) {
  EmulatedMap &map = mapAt(call, call.operand<char *>(0), call.site.write);
  bool ofDim = call.numOperands() == 3;
  uint32_t dim = ofDim ? call.operand<uint32_t>(1) : 0;
  if (dim >= EmulatedMap::maxTmaDims - (field == TmaField::Stride))
    call.fail("a tensor of more than five dims");
  auto word = [&] { return call.operand<uint32_t>(ofDim ? 2 : 1); };
  switch (field) {
  case TmaField::Address:
    map.address = reinterpret_cast<const char *>(call.operand<uint64_t>(1));
    break;
  case TmaField::Rank:
    map.rank = word() + 1;
    break;
  case TmaField::Box:
    map.box[dim] = word();
    break;
  case TmaField::Extent:
    map.extents[dim] = word();
    break;
  case TmaField::Stride:
    map.strides[dim] = call.operand<uint64_t>(2);
    break;
  case TmaField::ElementStride:
    map.elementStrides[dim] = word();
    break;
  case TmaField::Type:
    map.type = word();
    break;
  case TmaField::Interleaving:
    map.interleaving = word();
    break;
  case TmaField::Swizzle:
    map.swizzle = word();
    break;
  case TmaField::Fill:
    map.fill = word();
    break;
  }
}

/// What the driver would refuse of a map, and what is not modelled.
static void check(AtomCall &call, const EmulatedMap &map, unsigned rank) {
  constexpr unsigned swizzleOf128 = 3, maxTypes = 2, maxBox = 256;
  if (map.rank != rank)
    call.fail("a copy of a box of " + Twine(rank) + " dims by a map of " + Twine(map.rank));
  if (map.swizzle != swizzleOf128 || map.interleaving || map.fill || map.type >= maxTypes)
    call.fail("a map without the swizzle of 128 bytes, or of other elements than of 8 and 16 bits");
  bool fits = reinterpret_cast<uintptr_t>(map.address) % chunkBytes == 0 &&
              map.box[0] << map.type == lineBytes;
  for (unsigned dim = 0; dim < rank; ++dim) {
    fits &= map.box[dim] >= 1 && map.box[dim] <= maxBox && map.extents[dim] >= 1 &&
            map.elementStrides[dim] == 1;
    fits &= dim == 0 || (map.strides[dim - 1] % chunkBytes == 0 && map.strides[dim - 1] >> 40 == 0);
  }
  if (!fits)
    call.fail("a map with an address, box, extent or stride that the hardware does not take");
}

/// Where to, the map, the coordinates of the first element, neighbours' first, and the barrier that
/// counts the bytes, those of elements outside too.
void atoms::copyBox(AtomCall &call) {
  unsigned rank = call.numOperands() - 3;
  char *to = call.sharedOperand(0);
  const EmulatedMap &map = mapAt(call, call.operand<char *>(1), call.site.read);
  check(call, map, rank);
  constexpr unsigned pattern = 1024; // bytes after which the swizzle repeats
  if (reinterpret_cast<uintptr_t>(to) % pattern)
    call.thread.fail(EmulatorError::Misaligned, call.site.place,
                     "a box in the swizzle of 128 bytes at an address that is no multiple of 1024");
  int32_t first[EmulatedMap::maxTmaDims];
  uint32_t lines = 1;
  for (unsigned dim = 0; dim < rank; ++dim) {
    first[dim] = call.operand<int32_t>(2 + dim);
    lines *= dim ? map.box[dim] : 1;
  }
  int64_t inChunk = chunkBytes >> map.type; // elements
  std::vector<TransactionBarrier::Copy> copies;
  for (uint32_t line = 0; line < lines; ++line) {
    const char *start = map.address;
    bool exists = true;
    uint32_t rest = line;
    for (unsigned dim = 1; dim < rank; ++dim) {
      int64_t at = int64_t(first[dim]) + rest % map.box[dim];
      rest /= map.box[dim];
      exists &= at >= 0 && at < map.extents[dim];
      start += at * int64_t(map.strides[dim - 1]);
    }
    for (unsigned chunk = 0; chunk < lineBytes / chunkBytes; ++chunk) {
      int64_t at = first[0] + chunk * inChunk,
              there = std::clamp<int64_t>(map.extents[0] - at, 0, inChunk);
      if (!exists || at < 0)
        there = 0;
      char *place = to + line * lineBytes + ((chunk ^ line % 8) * chunkBytes);
      uint32_t bytes = there << map.type;
      if (bytes)
        copies.push_back({place, start + (at << map.type), bytes, call.site.place});
      if (bytes < chunkBytes)
        copies.push_back({place + bytes, nullptr, chunkBytes - bytes, call.site.place});
    }
  }
  beginCopies(call, countingBarrier(call, call.sharedOperand(2 + rank)), std::move(copies));
}
