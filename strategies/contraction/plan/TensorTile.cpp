//===- TensorTile.cpp - Tile shapes for tensor cores ----------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/plan/TensorTile.h"

using namespace llvm;
using namespace tegula;

mlir::Attribute TensorTile::toAttribute(mlir::MLIRContext *context) const {
  mlir::Builder builder(context);
  auto numbers = [&](ArrayRef<int64_t> values) { return builder.getDenseI64ArrayAttr(values); };
  SmallVector<mlir::NamedAttribute> entries = {
      builder.getNamedAttr("shape", numbers({rows, columns})),
      builder.getNamedAttr("splits", builder.getI64IntegerAttr(splits)),
      builder.getNamedAttr("warpgroups", builder.getBoolAttr(warpgroups)),
      builder.getNamedAttr("warps", numbers({warpRows, warpColumns}))};
  for (auto [name, isSet] : {std::pair("packed", prepacked), std::pair("shifted", halo),
                             std::pair("tail", tail), std::pair("accumulated", accumulated)})
    if (isSet)
      entries.push_back(builder.getNamedAttr(name, builder.getBoolAttr(true)));
  for (auto [name, value] : {std::pair("stages", stages), std::pair("raster", raster),
                             std::pair("joint", joint > 1 ? joint : 0), std::pair("terms", terms),
                             std::pair("parts", parts)})
    if (value)
      entries.push_back(builder.getNamedAttr(name, builder.getI64IntegerAttr(value)));
  return builder.getDictionaryAttr(entries);
}

std::optional<TensorTile> TensorTile::of(tgl::ParallelOp op) {
  auto tile = op->getAttrOfType<mlir::DictionaryAttr>(attributeName);
  if (!tile)
    return std::nullopt;
  auto shape = tile.getAs<mlir::DenseI64ArrayAttr>("shape");
  auto warps = tile.getAs<mlir::DenseI64ArrayAttr>("warps");
  auto splits = tile.getAs<mlir::IntegerAttr>("splits");
  auto isSet = [&](StringRef name) {
    auto flag = tile.getAs<mlir::BoolAttr>(name);
    return flag && flag.getValue();
  };
  if (!shape || shape.size() != 2 || !warps || warps.size() != 2 || !splits)
    return std::nullopt;
  auto number = [&](StringRef name) {
    auto value = tile.getAs<mlir::IntegerAttr>(name);
    return value ? value.getInt() : 0;
  };
  return TensorTile{shape[0],
                    shape[1],
                    warps[0],
                    warps[1],
                    splits.getInt(),
                    isSet("warpgroups"),
                    isSet("packed"),
                    isSet("shifted"),
                    isSet("tail"),
                    number("stages"),
                    number("raster"),
                    std::max<int64_t>(number("joint"), 1),
                    isSet("accumulated"),
                    number("terms"),
                    number("parts")};
}

/// The first with the name, else the first.
static std::optional<TensorTile> pick(ArrayRef<RankedTile> tiles, StringRef wanted) {
  if (tiles.empty())
    return std::nullopt;
  auto named =
      llvm::find_if(tiles, [&](const RankedTile &one) { return one.tile.isNamed(wanted); });
  return (named == tiles.end() ? tiles.front() : *named).tile;
}

std::optional<TensorTile> tegula::chooseTile(const ContractionPlan &plan,
                                             ArrayRef<ProductOperands> products, StringRef wanted) {
  return pick(rankTiles(plan, products), wanted);
}

Matched<TensorTile> tegula::chooseTile(tgl::ParallelOp op, StringRef wanted) {
  Mismatch why;
  std::optional<TensorTile> tile = pick(rankTiles(op, &why), wanted);
  return tile ? Matched<TensorTile>(*tile) : Matched<TensorTile>(std::move(why));
}

StringRef tegula::wantedTile(StringRef list, unsigned statement) {
  if (!list.contains(','))
    return list;
  for (; statement; --statement)
    list = list.split(',').second;
  return list.split(',').first;
}
