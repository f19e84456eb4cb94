//===- Pieces.cpp - A batch, run in pieces --------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "bench/Pieces.h"

#include "llvm/ADT/STLExtras.h"
#include <cstring>
#include <random>

using namespace llvm;

namespace tegula::bench {
namespace {

/// Which part of a tensor a piece of the batch has.
struct Box {
  SmallVector<int64_t> offsets, shape; // by dim
  bool isWhole = true;                 // the size is not among its dims
};

} // namespace

static Error wrong(const Twine &what) {
  return make_error<LaunchError>(LaunchError::WrongCall, what.str());
}

/// Of a tensor of shape `whole`, which is `part` where the size is that of the piece.
static Expected<Box> boxOf(StringRef name, ArrayRef<int64_t> whole, ArrayRef<int64_t> part,
                           int64_t begin, int64_t end, const PieceRequest &request) {
  Box box;
  box.shape.assign(part.begin(), part.end());
  for (auto [dim, extent, own] : enumerate(whole, part)) {
    int64_t each = extent / request.extent;
    bool isSame = extent == own;
    if (!isSame && (each * request.extent != extent || own != each * (end - begin)))
      return wrong("dim " + Twine(dim + 1) + " of '" + name + "' is no multiple of " +
                   request.size + ", so it cannot be cut");
    box.offsets.push_back(isSame ? 0 : each * begin);
    box.isWhole &= isSame;
  }
  return box;
}

/// Visits the rows of the box, stretches along the last dim: their first byte in a tensor of shape
/// `whole`, that in one of the box's, and how many there are.
static void forEachRow(DType type, ArrayRef<int64_t> whole, const Box &box,
                       function_ref<void(size_t from, size_t to, size_t bytes)> visit) {
  unsigned rank = box.shape.size(), bits = bitWidth(type);
  auto bytesOf = [&](int64_t elements) { return size_t(elements * bits + 7) / 8; };
  int64_t columns = rank ? box.shape.back() : 1, rows = 1;
  for (int64_t extent : ArrayRef(box.shape).drop_back(rank ? 1 : 0))
    rows *= extent;
  size_t rowOfWhole = bytesOf(rank ? whole.back() : 1), bytes = bytesOf(columns);
  size_t first = rank ? bytesOf(box.offsets.back()) : 0;
  for (int64_t row = 0; row < rows; ++row) {
    int64_t rest = row, at = 0, stride = 1;
    for (unsigned dim = rank ? rank - 1 : 0; dim--;) {
      at += (rest % box.shape[dim] + box.offsets[dim]) * stride;
      rest /= box.shape[dim];
      stride *= whole[dim];
    }
    visit(at * rowOfWhole + first, row * bytes, bytes);
  }
}

static std::optional<Tensor> cut(const Tensor &whole, const Box &box) {
  std::optional<Tensor> part = Tensor::make(whole.dtype(), box.shape);
  if (part)
    forEachRow(whole.dtype(), whole.shape(), box, [&](size_t from, size_t to, size_t bytes) {
      std::memcpy(part->data() + to, whole.data() + from, bytes);
    });
  return part;
}

/// Where the first other element is. What fills the last byte of a row counts for nothing.
static std::optional<SmallVector<int64_t>> otherPlace(const Tensor &whole, const Tensor &part,
                                                      const Box &box) {
  unsigned bits = bitWidth(whole.dtype());
  int64_t columns = box.shape.empty() ? 1 : box.shape.back();
  auto lastBits = static_cast<unsigned>(columns * bits % 8);
  std::optional<size_t> found;
  forEachRow(whole.dtype(), whole.shape(), box, [&](size_t from, size_t to, size_t bytes) {
    for (size_t n = 0; n < bytes && !found; ++n) {
      int mask = lastBits && n + 1 == bytes ? (1 << lastBits) - 1 : 0xff;
      if ((whole.data()[from + n] ^ part.data()[to + n]) & mask)
        found = to + n;
    }
  });
  if (!found)
    return std::nullopt;
  size_t rowBytes = size_t(columns * bits + 7) / 8;
  SmallVector<int64_t> place(box.shape.size());
  int64_t row = *found / rowBytes;
  if (!place.empty())
    place.back() = *found % rowBytes * 8 / bits;
  for (unsigned dim = place.size() ? place.size() - 1 : 0; dim--; row /= box.shape[dim])
    place[dim] = row % box.shape[dim];
  return place;
}

namespace {
class PieceRuns {
public:
  PieceRuns(Runner &runner, const Launch &whole, ArrayRef<unsigned> written,
            ArrayRef<Tensor> expected, const PieceRequest &request, LaunchWatch *watch)
      : runner(runner), whole(whole), written(written), expected(expected), request(request),
        watch(watch) {}

  /// Adds what the piece has in common with the whole.
  Error run(int64_t begin, int64_t end, PieceComparison &comparison) {
    Expected<SizeValues> sizes = request.sizesAt(end - begin);
    if (!sizes)
      return sizes.takeError();
    Expected<std::unique_ptr<Launch>> launch = launchOf(*sizes, begin, end);
    if (!launch)
      return launch.takeError();
    if (Expected<double> taken = (*launch)->run(watch); !taken)
      return taken.takeError();
    Expected<std::vector<Tensor>> results = (*launch)->read(written);
    if (!results)
      return results.takeError();
    for (auto [argument, before, after] : zip_equal(written, expected, *results)) {
      Expected<Box> box = boxOfArgument(argument, *sizes, before.shape(), begin, end);
      if (!box)
        return box.takeError();
      if (box->isWhole) // it tells of all rows together
        continue;
      comparison.elements += after.elements();
      if (std::optional<SmallVector<int64_t>> place = otherPlace(before, after, *box)) {
        comparison.other = OtherPiece{begin, end, argument, *place};
        break;
      }
    }
    return Error::success();
  }

  /// Whether a piece may begin there: at a byte of each tensor.
  Expected<bool> isAtByte(int64_t at) {
    Expected<SizeValues> sizes = request.sizesAt(at);
    if (!sizes)
      return sizes.takeError();
    for (auto [index, argument] : enumerate(runner.kernel().arguments)) {
      if (argument.role == KernelArgument::Scalar || argument.isObserved || argument.dims.empty())
        continue;
      Expected<SmallVector<int64_t>> before = shapeOf(runner.kernel(), index, *sizes);
      if (!before)
        return before.takeError();
      if (before->back() * bitWidth(argument.dtype) % 8 &&
          before->back() != whole.host(index).shape().back())
        return false;
    }
    return true;
  }

private:
  Expected<Box> boxOfArgument(unsigned argument, ArrayRef<int64_t> sizes, ArrayRef<int64_t> shape,
                              int64_t begin, int64_t end) {
    Expected<SmallVector<int64_t>> part = shapeOf(runner.kernel(), argument, sizes);
    if (!part)
      return part.takeError();
    return boxOf(runner.kernel().arguments[argument].name, shape, *part, begin, end, request);
  }

  Expected<std::unique_ptr<Launch>> launchOf(ArrayRef<int64_t> sizes, int64_t begin, int64_t end) {
    Launch::Inputs inputs;
    inputs.scalars = request.scalars;
    inputs.seed = request.seed + begin;
    for (auto [index, argument] : enumerate(runner.kernel().arguments)) {
      if (argument.role == KernelArgument::Out || argument.role == KernelArgument::Scalar ||
          argument.isObserved)
        continue;
      const Tensor &host = whole.host(index);
      Expected<Box> box = boxOfArgument(index, sizes, host.shape(), begin, end);
      if (!box)
        return box.takeError();
      std::optional<Tensor> part = cut(host, *box);
      if (!part)
        return make_error<LaunchError>(LaunchError::OutOfMemory,
                                       "there is no memory for a piece of '" + argument.name + "'");
      inputs.given.emplace(argument.name, std::move(*part));
    }
    return Launch::make(runner, sizes, std::move(inputs));
  }

  Runner &runner;
  const Launch &whole;
  ArrayRef<unsigned> written;
  ArrayRef<Tensor> expected;
  const PieceRequest &request;
  LaunchWatch *watch;
};
} // namespace

/// A few cuts, of which some are near an end: pieces of one row, and of all but one.
static Expected<SmallVector<int64_t>> chooseCuts(PieceRuns &runs, int64_t extent,
                                                 std::mt19937_64 &random) {
  SmallVector<int64_t> cuts = {0, extent};
  for (unsigned number = 1 + random() % 3; extent > 1 && number--;) {
    int64_t at = 1 + random() % (extent - 1);
    at = random() % 4 ? at : 1 + at % std::min<int64_t>(2, extent - 1);
    for (int64_t each : {at, at + 1}) {
      Expected<bool> isAtByte = each < extent ? runs.isAtByte(each) : Expected<bool>(false);
      if (!isAtByte)
        return isAtByte.takeError();
      if (*isAtByte) {
        cuts.push_back(each);
        break;
      }
    }
  }
  llvm::sort(cuts);
  cuts.erase(llvm::unique(cuts), cuts.end());
  return cuts;
}

Expected<PieceComparison> comparePieces(Runner &runner, const Launch &whole,
                                        ArrayRef<unsigned> written, ArrayRef<Tensor> expected,
                                        const PieceRequest &request, LaunchWatch *watch) {
  std::mt19937_64 random(request.seed * 0x9E3779B97F4A7C15ull + 1);
  PieceRuns runs(runner, whole, written, expected, request, watch);
  PieceComparison comparison;
  for (unsigned round = 0; round < request.rounds; ++round) {
    Expected<SmallVector<int64_t>> cuts = chooseCuts(runs, request.extent, random);
    if (!cuts)
      return cuts.takeError();
    if (cuts->size() < 3)
      continue; // the whole is no piece
    for (size_t piece = 0; piece + 1 < cuts->size() && !comparison.other; ++piece)
      if (Error error = runs.run((*cuts)[piece], (*cuts)[piece + 1], comparison))
        return std::move(error);
  }
  return comparison;
}

} // namespace tegula::bench
