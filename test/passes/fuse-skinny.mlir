// RUN: tegula-opt %s --tgl-fuse=skinny-products --split-input-file | FileCheck %s
// RUN: tegula-opt %s --tgl-fuse --split-input-file | FileCheck %s --check-prefix=WITHOUT

// What unpacks a weight is computed where at most 32 rows multiply it, rounded as the tensor was that held it.
// CHECK-LABEL: tgl.kernel @unpack
// CHECK-NOT: tgl.temp
// CHECK: tgl.launch "y"
// CHECK: tgl.reduce sum
// CHECK: tgl.read %w
// CHECK: arith.shrsi
// CHECK: %[[S:.*]] = arith.mulf
// CHECK-NEXT: %[[Q:.*]] = tgl.convert %[[S]] to bf16
// CHECK-NEXT: arith.mulf %{{.*}}, %[[Q]]
// WITHOUT-LABEL: tgl.kernel @unpack
// WITHOUT: tgl.launch "q"
tgl.kernel @unpack(%x: !tgl.tensor<[32, 64], bf16> {tgl.name = "x", tgl.role = "in"}, %w: !tgl.tensor<[48, 32], ui8> {tgl.name = "w", tgl.role = "in"}, %s: !tgl.tensor<[48, 2], bf16> {tgl.name = "s", tgl.role = "in"}, %y: !tgl.tensor<[32, 48], bf16> {tgl.name = "y", tgl.role = "out"})
    sizes [M = 0 : 0, K = 0 : 1, N = 1 : 0, q = K floordiv 2, q_1 = K floordiv 32]
    guards [divides K, 2 : "K is not a multiple of 2", divides K, 32 : "K is not a multiple of 32"] {
  %c8_i64 = arith.constant 8 : i64
  %c15_i64 = arith.constant 15 : i64
  %c63_i64 = arith.constant 63 : i64
  %c64_i64 = arith.constant 64 : i64
  %q = tgl.temp "q" : !tgl.tensor<[48, 64], bf16>
  tgl.parallel (%j = 0 to 48, %k = 0 to 64) {
    %0 = tgl.read %w[%j, %k floordiv 2] : !tgl.tensor<[48, 32], ui8>
    %1 = arith.extsi %0 : i32 to i64
    %2 = tgl.index 4*%k - 8*(%k floordiv 2)
    %3 = arith.index_cast %2 : index to i64
    %4 = arith.cmpi ult, %3, %c64_i64 : i64
    %5 = arith.select %4, %3, %c63_i64 : i64
    %6 = arith.shrsi %1, %5 : i64
    %7 = arith.andi %6, %c15_i64 : i64
    %8 = arith.subi %7, %c8_i64 : i64
    %9 = arith.sitofp %8 : i64 to f32
    %10 = tgl.read %s[%j, %k floordiv 32] : !tgl.tensor<[48, 2], bf16>
    %11 = arith.mulf %9, %10 fastmath<contract> : f32
    tgl.write %11, %q[%j, %k] : f32, !tgl.tensor<[48, 64], bf16>
  }
  tgl.parallel (%i = 0 to 32, %j = 0 to 48) {
    %0 = tgl.reduce sum (%k = 0 to 64) -> f32 {
      %1 = tgl.read %x[%i, %k] : !tgl.tensor<[32, 64], bf16>
      %2 = tgl.read %q[%j, %k] : !tgl.tensor<[48, 64], bf16>
      %3 = arith.mulf %1, %2 fastmath<contract> : f32
      tgl.yield %3 : f32
    }
    tgl.write %0, %y[%i, %j] : f32, !tgl.tensor<[32, 48], bf16>
  }
}

// -----

// One row more: it would be computed again for each.
// CHECK-LABEL: tgl.kernel @many
// CHECK: tgl.launch "q"
// CHECK: tgl.launch "y"
tgl.kernel @many(%x: !tgl.tensor<[33, 64], bf16> {tgl.name = "x", tgl.role = "in"}, %w: !tgl.tensor<[48, 32], ui8> {tgl.name = "w", tgl.role = "in"}, %s: !tgl.tensor<[48, 2], bf16> {tgl.name = "s", tgl.role = "in"}, %y: !tgl.tensor<[33, 48], bf16> {tgl.name = "y", tgl.role = "out"})
    sizes [M = 0 : 0, K = 0 : 1, N = 1 : 0, q = K floordiv 2, q_1 = K floordiv 32]
    guards [divides K, 2 : "K is not a multiple of 2", divides K, 32 : "K is not a multiple of 32"] {
  %c8_i64 = arith.constant 8 : i64
  %c15_i64 = arith.constant 15 : i64
  %c63_i64 = arith.constant 63 : i64
  %c64_i64 = arith.constant 64 : i64
  %q = tgl.temp "q" : !tgl.tensor<[48, 64], bf16>
  tgl.parallel (%j = 0 to 48, %k = 0 to 64) {
    %0 = tgl.read %w[%j, %k floordiv 2] : !tgl.tensor<[48, 32], ui8>
    %1 = arith.extsi %0 : i32 to i64
    %2 = tgl.index 4*%k - 8*(%k floordiv 2)
    %3 = arith.index_cast %2 : index to i64
    %4 = arith.cmpi ult, %3, %c64_i64 : i64
    %5 = arith.select %4, %3, %c63_i64 : i64
    %6 = arith.shrsi %1, %5 : i64
    %7 = arith.andi %6, %c15_i64 : i64
    %8 = arith.subi %7, %c8_i64 : i64
    %9 = arith.sitofp %8 : i64 to f32
    %10 = tgl.read %s[%j, %k floordiv 32] : !tgl.tensor<[48, 2], bf16>
    %11 = arith.mulf %9, %10 fastmath<contract> : f32
    tgl.write %11, %q[%j, %k] : f32, !tgl.tensor<[48, 64], bf16>
  }
  tgl.parallel (%i = 0 to 33, %j = 0 to 48) {
    %0 = tgl.reduce sum (%k = 0 to 64) -> f32 {
      %1 = tgl.read %x[%i, %k] : !tgl.tensor<[33, 64], bf16>
      %2 = tgl.read %q[%j, %k] : !tgl.tensor<[48, 64], bf16>
      %3 = arith.mulf %1, %2 fastmath<contract> : f32
      tgl.yield %3 : f32
    }
    tgl.write %0, %y[%i, %j] : f32, !tgl.tensor<[33, 48], bf16>
  }
}
