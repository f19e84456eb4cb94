//===- Atoms.h - What atoms do, on the host ----------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A host function for each atom (codegen/nvgpu/Atoms.def). It does what the PTX manual says of the
// instruction for the thread that calls; where the manual leaves something undefined, it fails.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_RUNTIME_EMULATOR_ATOMS_H
#define TEGULA_RUNTIME_EMULATOR_ATOMS_H

#include "runtime/emulator/Grid.h"
#include <cstring>

namespace tegula::emulator {

/// One atom on its way through one thread: operands and results as the code has them, an i1 as a
/// byte.
class AtomCall {
public:
  AtomCall(Thread &thread, const EmulatedCall &site, void *const *results,
           const void *const *operands)
      : thread(thread), site(site), results(results), operands(operands) {}

  template <typename T> T operand(unsigned number) const {
    if (sizeof(T) != site.operandBytes[number])
      failSize("an operand", site.operandBytes[number], sizeof(T));
    T value;
    std::memcpy(&value, operands[number], sizeof(T));
    return value;
  }
  template <typename T> void result(unsigned number, T value) {
    if (sizeof(T) != site.resultBytes[number])
      failSize("a result", site.resultBytes[number], sizeof(T));
    std::memcpy(results[number], &value, sizeof(T));
  }
  /// An address in shared memory as a word.
  char *sharedOperand(unsigned number) const {
    return reinterpret_cast<char *>(uintptr_t(operand<uint32_t>(number)));
  }
  unsigned operandBytes(unsigned number) const { return site.operandBytes[number]; }
  unsigned numOperands() const { return site.operandBytes.size(); }
  unsigned numResults() const { return site.resultBytes.size(); }
  /// The operands are not such as the manual allows.
  [[noreturn]] void fail(const llvm::Twine &what) const {
    thread.fail(EmulatorError::WrongOperand, site.place, what);
  }

  Thread &thread;
  const EmulatedCall &site;

private:
  /// The host function is one for another overload.
  [[noreturn]] void failSize(const char *what, unsigned has, unsigned takes) const {
    fail(llvm::Twine(atomName(site.atom)) + " has " + what + " of " + llvm::Twine(has) +
         " bytes, its host function takes " + llvm::Twine(takes));
  }
  void *const *results;
  const void *const *operands;
};

/// Of a tensor map.
enum class TmaField {
  Address,
  Rank,
  Box,
  Extent,
  Stride,
  ElementStride,
  Type,
  Interleaving,
  Swizzle,
  Fill
};

/// Host functions that stand in files of their own.
namespace atoms {
void copyAsync(AtomCall &call, uint32_t bytes);
template <uint32_t bytes> void copyAsync(AtomCall &call) { copyAsync(call, bytes); }
void commitCopies(AtomCall &call);
void waitForCopies(AtomCall &call);
void waitForAllCopies(AtomCall &call);
// AtomsMatrix.cpp
template <bool isTransposed> void loadMatrices(AtomCall &call);
void multiplyF16(AtomCall &call);
void multiplyBF16(AtomCall &call);
void multiplyTF32(AtomCall &call);
void multiplyS8S8(AtomCall &call);
void multiplyS8U8(AtomCall &call);
void multiplyU8S8(AtomCall &call);
void multiplyU8U8(AtomCall &call);
void multiplyE4M3E4M3(AtomCall &call);
void multiplyE4M3E5M2(AtomCall &call);
void multiplyE5M2E4M3(AtomCall &call);
void multiplyE5M2E5M2(AtomCall &call);
void roundToTF32(AtomCall &call);
void roundToF16x2(AtomCall &call);
void roundToBF16x2(AtomCall &call);
void roundToE4M3x2(AtomCall &call);
void roundToE5M2x2(AtomCall &call);
void widenE4M3x2(AtomCall &call);
void widenE5M2x2(AtomCall &call);
void multiplyGroupF16(AtomCall &call);
void multiplyGroupBF16(AtomCall &call);
void multiplyGroupE4M3E4M3(AtomCall &call);
void multiplyGroupE4M3E5M2(AtomCall &call);
void multiplyGroupE5M2E4M3(AtomCall &call);
void multiplyGroupE5M2E5M2(AtomCall &call);
void multiplyGroupS8S8(AtomCall &call);
void multiplyGroupS8U8(AtomCall &call);
void multiplyGroupU8S8(AtomCall &call);
void multiplyGroupU8U8(AtomCall &call);
void commitProducts(AtomCall &call);
void waitForProducts(AtomCall &call);
void waitForSums(AtomCall &call);
void showToProducts(AtomCall &call);
// AtomsTransactions.cpp
void initBarrier(AtomCall &call);
void expectBytes(AtomCall &call);
void storeAsync(AtomCall &call);
void copyBulk(AtomCall &call);
/// What cp.async.bulk asks of addresses and numbers.
void checkBulk(AtomCall &call, const void *to, const void *from, uint32_t bytes);
TransactionBarrier &countingBarrier(AtomCall &call, const void *address);
void beginCopies(AtomCall &call, TransactionBarrier &barrier,
                 std::vector<TransactionBarrier::Copy> copies);
// AtomsBoxes.cpp
void copyBox(AtomCall &call);
void setTmaField(AtomCall &call, TmaField field);
template <TmaField field> void setTmaField(AtomCall &call) { setTmaField(call, field); }
void waitForPhase(AtomCall &call);
// AtomsStores.cpp
void storeBulk(AtomCall &call);
void commitStores(AtomCall &call);
void waitForReading(AtomCall &call);
void waitForStores(AtomCall &call);
void addFloats(AtomCall &call);
float halfToFloat(uint16_t bits);
double e4m3ToDouble(uint8_t bits);
} // namespace atoms

using AtomFunction = void (*)(AtomCall &call);

/// The host function of a line of Atoms.def.
AtomFunction atomFunction(unsigned atom);

} // namespace tegula::emulator

#endif // TEGULA_RUNTIME_EMULATOR_ATOMS_H
