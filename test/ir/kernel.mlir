// RUN: tegula-opt %s | tegula-opt | FileCheck %s
// RUN: tegula-opt %s -mlir-print-op-generic | tegula-opt | FileCheck %s

// CHECK-LABEL: tgl.kernel @scale(
// CHECK-SAME: %x: !tgl.tensor<[M, N], f32> {tgl.name = "x", tgl.role = "in"},
// CHECK-SAME: %y: !tgl.tensor<[M, N], f16> {tgl.name = "y", tgl.role = "out"},
// CHECK-SAME: %s: f32 {tgl.name = "s", tgl.role = "scalar"})
// CHECK-NEXT: sizes [M = 0 : 0, N = 0 : 1, P = (M + N) floordiv 2 + 1]
// CHECK-NEXT: guards [nonneg P : "P is negative", divides M, N : "M must be a multiple of N"
tgl.kernel @scale(%x: !tgl.tensor<[M, N], f32> {tgl.name = "x", tgl.role = "in"},
                  %y: !tgl.tensor<[M, N], f16> {tgl.name = "y", tgl.role = "out"},
                  %s: f32 {tgl.name = "s", tgl.role = "scalar"})
    sizes [M = 0 : 0, N = 0 : 1, P = (N + M) floordiv 2 + 1]
    guards [nonneg P : "P is negative", divides M, N : "M must be a multiple of N",
            inbounds d0 + 2*d1, M for 0 to N, 0 to d0 where N - 3 : "x[i + 2*j] leaves x"]
    attributes {precision = "tf32", deterministic, invariant = ["M", "P"]} {
  tgl.parallel (%i = 0 to M, %j = 0 to N) {
    %v = tgl.read %x[%i, %j] : !tgl.tensor<[M, N], f32>
    %w = arith.mulf %v, %s : f32
    tgl.write %w, %y[%i, %j] : f32, !tgl.tensor<[M, N], f16>
  }
}
