// RUN: tegula-opt %s --tile-split-precision | FileCheck %s

// Products of bf16 are exact.
// CHECK-LABEL: tgl.kernel @exact
// CHECK: tile.dot %{{.*}} : !tile.tile<64x64xbf16>
// CHECK-NOT: tile.map
tgl.kernel @exact(%x: !tgl.tensor<[M, 64], bf16> {tgl.name = "x", tgl.role = "in"}) sizes [M = 0 : 0] {
  tgl.launch "y" strategy "product-reduction" {
    tile.kernel "y" () {
      %m = tile.span 0 to M : !tile.span<64>
      %a = tile.operand (%i in %m, %k in %m) -> !tile.tile<64x64xbf16> {
        %v = tgl.read %x[%i, %k] : !tgl.tensor<[M, 64], bf16>
        tile.yield %v : f32
      }
      %z = tile.zero : !tile.tile<64x64xf32>
      %p = tile.dot %a, %a, %z : !tile.tile<64x64xbf16>, !tile.tile<64x64xbf16>, !tile.tile<64x64xf32>
    }
  }
}
