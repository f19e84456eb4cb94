// RUN: tegula-opt %s --tgl-block-scales --split-input-file | FileCheck %s

// Scales of 1 x 128 and of 128 x 128: one sum over blocks and points, of which two factors are f8.
// CHECK-LABEL: tgl.kernel @nested
// CHECK: tgl.reduce sum (%[[G:.*]] = 0 to 4, %[[K:.*]] = 0 to 128)
// CHECK-DAG: %[[SA:.*]] = tgl.read %sa[%{{.*}}, %[[G]]]
// CHECK-DAG: %[[SB:.*]] = tgl.read %sb[%{{.*}} floordiv 128, %[[G]]]
// CHECK-DAG: %[[A:.*]] = tgl.read %a[%{{.*}}, 128*%[[G]] + %[[K]]]
// CHECK-DAG: %[[B:.*]] = tgl.read %b[%{{.*}}, 128*%[[G]] + %[[K]]]
// CHECK: %[[AB:.*]] = arith.mulf %[[A]], %[[B]]
// CHECK: arith.mulf %[[AB]]
// CHECK-NOT: tgl.reduce
tgl.kernel @nested(%a: !tgl.tensor<[256, 512], f8E4M3FN> {tgl.name = "a", tgl.role = "in"}, %sa: !tgl.tensor<[256, 4], f32> {tgl.name = "sa", tgl.role = "in"}, %b: !tgl.tensor<[384, 512], f8E4M3FN> {tgl.name = "b", tgl.role = "in"}, %sb: !tgl.tensor<[3, 4], f32> {tgl.name = "sb", tgl.role = "in"}, %y: !tgl.tensor<[256, 384], f32> {tgl.name = "y", tgl.role = "out"}) {
  tgl.parallel (%i = 0 to 256, %j = 0 to 384) {
    %0 = tgl.reduce sum (%g = 0 to 4) -> f32 {
      %1 = tgl.read %sa[%i, %g] : !tgl.tensor<[256, 4], f32>
      %2 = tgl.read %sb[%j floordiv 128, %g] : !tgl.tensor<[3, 4], f32>
      %3 = arith.mulf %1, %2 : f32
      %4 = tgl.reduce sum (%k = 0 to 128) -> f32 {
        %6 = tgl.read %a[%i, 128*%g + %k] : !tgl.tensor<[256, 512], f8E4M3FN>
        %7 = tgl.read %b[%j, 128*%g + %k] : !tgl.tensor<[384, 512], f8E4M3FN>
        %8 = arith.mulf %6, %7 : f32
        tgl.yield %8 : f32
      }
      %5 = arith.mulf %3, %4 : f32
      tgl.yield %5 : f32
    }
    tgl.write %0, %y[%i, %j] : f32, !tgl.tensor<[256, 384], f32>
  }
}

// -----

// One sum, scales found by division: blocks of 256 points, the longest over which both scales are constant.
// CHECK-LABEL: tgl.kernel @flat
// CHECK: tgl.reduce sum (%[[G:.*]] = 0 to 2, %[[K:.*]] = 0 to 256)
// CHECK-DAG: tgl.read %a[%{{.*}}, 256*%[[G]] + %[[K]]]
// CHECK-DAG: tgl.read %sa[%{{.*}}, %[[G]]]
// CHECK-DAG: tgl.read %sb[%[[G]], %{{.*}}]
tgl.kernel @flat(%a: !tgl.tensor<[256, 512], f8E4M3FN> {tgl.name = "a", tgl.role = "in"}, %sa: !tgl.tensor<[256, 2], f32> {tgl.name = "sa", tgl.role = "in"}, %b: !tgl.tensor<[384, 512], f8E5M2> {tgl.name = "b", tgl.role = "in"}, %sb: !tgl.tensor<[2, 384], f32> {tgl.name = "sb", tgl.role = "in"}, %y: !tgl.tensor<[256, 384], f32> {tgl.name = "y", tgl.role = "out"}) {
  tgl.parallel (%i = 0 to 256, %j = 0 to 384) {
    %0 = tgl.reduce sum (%k = 0 to 512) -> f32 {
      %1 = tgl.read %a[%i, %k] : !tgl.tensor<[256, 512], f8E4M3FN>
      %2 = tgl.read %sa[%i, %k floordiv 256] : !tgl.tensor<[256, 2], f32>
      %3 = arith.mulf %1, %2 : f32
      %4 = tgl.read %b[%j, %k] : !tgl.tensor<[384, 512], f8E5M2>
      %5 = arith.mulf %3, %4 : f32
      %6 = tgl.read %sb[%k floordiv 256, %j] : !tgl.tensor<[2, 384], f32>
      %7 = arith.mulf %5, %6 : f32
      tgl.yield %7 : f32
    }
    tgl.write %0, %y[%i, %j] : f32, !tgl.tensor<[256, 384], f32>
  }
}

// -----

// Blocks of 64 points are no steps of tensor cores: the sums stay as they are.
// CHECK-LABEL: tgl.kernel @short
// CHECK: tgl.reduce sum (%{{.*}} = 0 to 8)
// CHECK: tgl.reduce sum (%{{.*}} = 0 to 64)
tgl.kernel @short(%a: !tgl.tensor<[256, 512], f8E4M3FN> {tgl.name = "a", tgl.role = "in"}, %sa: !tgl.tensor<[256, 8], f32> {tgl.name = "sa", tgl.role = "in"}, %b: !tgl.tensor<[384, 512], f8E4M3FN> {tgl.name = "b", tgl.role = "in"}, %y: !tgl.tensor<[256, 384], f32> {tgl.name = "y", tgl.role = "out"}) {
  tgl.parallel (%i = 0 to 256, %j = 0 to 384) {
    %0 = tgl.reduce sum (%g = 0 to 8) -> f32 {
      %1 = tgl.read %sa[%i, %g] : !tgl.tensor<[256, 8], f32>
      %2 = tgl.reduce sum (%k = 0 to 64) -> f32 {
        %4 = tgl.read %a[%i, 64*%g + %k] : !tgl.tensor<[256, 512], f8E4M3FN>
        %5 = tgl.read %b[%j, 64*%g + %k] : !tgl.tensor<[384, 512], f8E4M3FN>
        %6 = arith.mulf %4, %5 : f32
        tgl.yield %6 : f32
      }
      %3 = arith.mulf %1, %2 : f32
      tgl.yield %3 : f32
    }
    tgl.write %0, %y[%i, %j] : f32, !tgl.tensor<[256, 384], f32>
  }
}

// -----

// A scale that varies with rows and with columns is no factor of a block of either.
// CHECK-LABEL: tgl.kernel @both
// CHECK: tgl.reduce sum (%{{.*}} = 0 to 4) ->
tgl.kernel @both(%a: !tgl.tensor<[256, 512], f8E4M3FN> {tgl.name = "a", tgl.role = "in"}, %s: !tgl.tensor<[256, 384, 4], f32> {tgl.name = "s", tgl.role = "in"}, %b: !tgl.tensor<[384, 512], f8E4M3FN> {tgl.name = "b", tgl.role = "in"}, %y: !tgl.tensor<[256, 384], f32> {tgl.name = "y", tgl.role = "out"}) {
  tgl.parallel (%i = 0 to 256, %j = 0 to 384) {
    %0 = tgl.reduce sum (%g = 0 to 4) -> f32 {
      %1 = tgl.read %s[%i, %j, %g] : !tgl.tensor<[256, 384, 4], f32>
      %2 = tgl.reduce sum (%k = 0 to 128) -> f32 {
        %4 = tgl.read %a[%i, 128*%g + %k] : !tgl.tensor<[256, 512], f8E4M3FN>
        %5 = tgl.read %b[%j, 128*%g + %k] : !tgl.tensor<[384, 512], f8E4M3FN>
        %6 = arith.mulf %4, %5 : f32
        tgl.yield %6 : f32
      }
      %3 = arith.mulf %1, %2 : f32
      tgl.yield %3 : f32
    }
    tgl.write %0, %y[%i, %j] : f32, !tgl.tensor<[256, 384], f32>
  }
}
