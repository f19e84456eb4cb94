//===- Sort.cpp - Sorting the rows of a tensor ------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An element becomes an unsigned key whose order is that of the language. Keys of up to 32 bits
// share a word with the element's number, so that words are distinct and any sort of them is
// stable: the first few are picked by a heap, short rows sorted by comparison, long rows digit by
// digit.
//
//===----------------------------------------------------------------------===//
#include "runtime/Sort.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <type_traits>
#include <utility>

using namespace tegula;

namespace {

/// Order of signed magnitudes as order of unsigned numbers; nan (magnitudes above `infinity`) is
/// last and -0 is 0.
template <typename Bits> Bits floatKey(Bits bits, Bits infinity) {
  constexpr Bits sign = Bits(1) << (sizeof(Bits) * 8 - 1);
  Bits magnitude = bits & ~sign;
  if (magnitude > infinity)
    return ~Bits(0);
  if (magnitude == 0)
    return sign;
  return bits & sign ? Bits(~bits) : Bits(bits | sign);
}

template <typename Bits> Bits readAs(const void *values, int64_t n) {
  Bits bits;
  std::memcpy(&bits, static_cast<const char *>(values) + n * sizeof(Bits), sizeof(Bits));
  return bits;
}

/// One key type per storage type: `key(n)` of element n.
template <DType type> struct Keys;
#define TEGULA_FLOAT_KEYS(TYPE, BITS, INFINITY_BITS)                                               \
  template <> struct Keys<DType::TYPE> {                                                           \
    using Bits = BITS;                                                                             \
    static Bits key(const void *values, int64_t n) {                                               \
      return floatKey<Bits>(readAs<Bits>(values, n), INFINITY_BITS);                               \
    }                                                                                              \
  };
#define TEGULA_INTEGER_KEYS(TYPE, BITS, OFFSET)                                                    \
  template <> struct Keys<DType::TYPE> {                                                           \
    using Bits = BITS;                                                                             \
    static Bits key(const void *values, int64_t n) {                                               \
      return readAs<Bits>(values, n) ^ Bits(OFFSET);                                               \
    }                                                                                              \
  };
TEGULA_FLOAT_KEYS(F64, uint64_t, 0x7ff0000000000000)
TEGULA_FLOAT_KEYS(F32, uint32_t, 0x7f800000)
TEGULA_FLOAT_KEYS(F16, uint16_t, 0x7c00)
TEGULA_FLOAT_KEYS(BF16, uint16_t, 0x7f80)
TEGULA_FLOAT_KEYS(F8E4M3, uint8_t, 0x7e) // no infinity: only 0x7f is nan
TEGULA_FLOAT_KEYS(F8E5M2, uint8_t, 0x7c)
TEGULA_INTEGER_KEYS(I64, uint64_t, uint64_t(1) << 63)
TEGULA_INTEGER_KEYS(I32, uint32_t, uint32_t(1) << 31)
TEGULA_INTEGER_KEYS(I16, uint16_t, 1 << 15)
TEGULA_INTEGER_KEYS(I8, uint8_t, 1 << 7)
TEGULA_INTEGER_KEYS(U64, uint64_t, 0)
TEGULA_INTEGER_KEYS(U32, uint32_t, 0)
TEGULA_INTEGER_KEYS(U16, uint16_t, 0)
TEGULA_INTEGER_KEYS(U8, uint8_t, 0)
TEGULA_INTEGER_KEYS(Bool, uint8_t, 0)
#undef TEGULA_FLOAT_KEYS
#undef TEGULA_INTEGER_KEYS

/// A key too wide to share its word.
struct WideWord {
  uint64_t key, number;
  bool operator<(const WideWord &other) const {
    return key != other.key ? key < other.key : number < other.number;
  }
};

/// Below this, comparing beats counting.
constexpr int64_t shortRow = 512;
constexpr unsigned digitBits = 11, digits = 1 << digitBits;

/// Sorts words by bits 32 and up of which `keyBits` are used, the lower half being in order
/// already; `spare` is as long. Gives where the result is.
uint64_t *sortByDigits(uint64_t *words, uint64_t *spare, int64_t length, unsigned keyBits) {
  for (unsigned shift = 32; shift < 32 + keyBits; shift += digitBits) {
    uint32_t counts[digits] = {};
    for (int64_t n = 0; n < length; ++n)
      ++counts[(words[n] >> shift) & (digits - 1)];
    if (counts[(words[0] >> shift) & (digits - 1)] == length)
      continue; // one digit for all
    uint32_t begin = 0;
    for (uint32_t &count : counts)
      begin += std::exchange(count, begin);
    for (int64_t n = 0; n < length; ++n)
      spare[counts[(words[n] >> shift) & (digits - 1)]++] = words[n];
    std::swap(words, spare);
  }
  return words;
}

template <DType type>
void sortAs(void *values, int64_t *positions, int64_t length, int64_t take, bool descending,
            void *(*memory)(void *, int64_t), void *context) {
  using Bits = typename Keys<type>::Bits;
  auto keyOf = [&](int64_t n) {
    Bits key = Keys<type>::key(values, n);
    return descending ? Bits(~key) : key;
  };
  auto sortWords = [&](auto *words, auto *spare) {
    using Word = std::remove_reference_t<decltype(*words)>;
    if (take < length / 8)
      std::partial_sort(words, words + take, words + length);
    else if (std::is_same_v<Word, WideWord> || length < shortRow || length > UINT32_MAX)
      std::sort(words, words + length);
    else if constexpr (!std::is_same_v<Word, WideWord>)
      return sortByDigits(words, spare, length, sizeof(Bits) * 8);
    return words;
  };
  /// Elements `numberOf(0)`, `numberOf(1)`, ... to the front, by way of `moved`.
  auto place = [&](void *moved, auto numberOf) {
    auto *newPositions = static_cast<int64_t *>(moved);
    auto *newValues = reinterpret_cast<Bits *>(newPositions + take);
    for (int64_t n = 0; n < take; ++n) {
      newPositions[n] = positions[numberOf(n)];
      newValues[n] = readAs<Bits>(values, numberOf(n));
    }
    std::memcpy(positions, newPositions, take * sizeof(int64_t));
    std::memcpy(values, newValues, take * sizeof(Bits));
  };

  bool isWide = sizeof(Bits) == 8 || length > UINT32_MAX;
  int64_t wordBytes = isWide ? sizeof(WideWord) : sizeof(uint64_t);
  int64_t movedBytes = take * int64_t(sizeof(int64_t) + sizeof(Bits));
  void *space = memory(context, (isWide ? 1 : 2) * length * wordBytes + movedBytes);
  if (!space)
    return;
  if (isWide) {
    auto *words = static_cast<WideWord *>(space);
    for (int64_t n = 0; n < length; ++n)
      words[n] = {keyOf(n), static_cast<uint64_t>(n)};
    sortWords(words, words);
    place(words + length, [&](int64_t n) { return words[n].number; });
    return;
  }
  auto *words = static_cast<uint64_t *>(space);
  for (int64_t n = 0; n < length; ++n)
    words[n] = uint64_t(keyOf(n)) << 32 | uint64_t(n);
  uint64_t *sorted = sortWords(words, words + length);
  place(words + 2 * length, [&](int64_t n) { return sorted[n] & UINT32_MAX; });
}

} // namespace

void tegula::sortRow(void *values, int64_t *positions, int64_t length, int64_t take, DType type,
                     bool descending, void *(*memory)(void *, int64_t), void *context) {
  take = std::min(take, length);
  if (take <= 0)
    return;
  switch (type) {
#define TEGULA_SORT(TYPE)                                                                          \
  case DType::TYPE:                                                                                \
    return sortAs<DType::TYPE>(values, positions, length, take, descending, memory, context);
    TEGULA_SORT(F64)
    TEGULA_SORT(F32)
    TEGULA_SORT(F16)
    TEGULA_SORT(BF16)
    TEGULA_SORT(F8E4M3)
    TEGULA_SORT(F8E5M2)
    TEGULA_SORT(I64)
    TEGULA_SORT(I32)
    TEGULA_SORT(I16)
    TEGULA_SORT(I8)
    TEGULA_SORT(U8)
    TEGULA_SORT(U16)
    TEGULA_SORT(U32)
    TEGULA_SORT(U64)
    TEGULA_SORT(Bool)
#undef TEGULA_SORT
  case DType::I4:
  case DType::U4:
    break;
  }
  assert(false && "packed elements are not sorted in place");
}
