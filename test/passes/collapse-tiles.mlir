// RUN: tegula-opt %s --tgl-collapse-tiles | FileCheck %s

// A matrix product written out is the equation.
// CHECK-LABEL: tgl.kernel @product
// CHECK-NOT: tgl.tiles
// CHECK: %[[S:.*]] = tgl.reduce sum (%k = 0 to K) -> f32
// CHECK-NOT: arith.addf
// CHECK: tgl.write %[[S]], %y[%i, %j]
tgl.kernel @product(%a: !tgl.tensor<[M, K], f32> {tgl.name = "a", tgl.role = "in"},
                    %b: !tgl.tensor<[K, N], f32> {tgl.name = "b", tgl.role = "in"},
                    %y: !tgl.tensor<[M, N], f32> {tgl.name = "y", tgl.role = "out"})
    sizes [M = 0 : 0, K = 0 : 1, N = 1 : 1] {
  tgl.parallel (%i = 0 to M, %j = 0 to N) {
    %zero = arith.constant 0.0 : f32
    %r = tgl.tiles (%k_lo, %k_hi) = 0 to K iter (%acc = %zero : f32) {
      %s = tgl.reduce sum (%k = %k_lo to %k_hi) -> f32 {
        %v = tgl.read %a[%i, %k] : !tgl.tensor<[M, K], f32>
        %w = tgl.read %b[%k, %j] : !tgl.tensor<[K, N], f32>
        %p = arith.mulf %v, %w : f32
        tgl.yield %p : f32
      }
      %next = arith.addf %acc, %s : f32
      tgl.yield %next : f32
    }
    tgl.write %r, %y[%i, %j] : f32, !tgl.tensor<[M, N], f32>
  }
}

// A first value other than the neutral one is added once.
// CHECK-LABEL: tgl.kernel @offset
// CHECK: %[[S:.*]] = tgl.reduce sum (%k = 0 to N)
// CHECK: arith.addf %{{.*}}, %[[S]]
tgl.kernel @offset(%x: !tgl.tensor<[N], f32> {tgl.name = "x", tgl.role = "in"},
                   %y: !tgl.tensor<[], f32> {tgl.name = "y", tgl.role = "out"}) sizes [N = 0 : 0] {
  tgl.parallel () {
    %one = arith.constant 1.0 : f32
    %r = tgl.tiles (%k_lo, %k_hi) = 0 to N iter (%acc = %one : f32) {
      %s = tgl.reduce sum (%k = %k_lo to %k_hi) -> f32 {
        %v = tgl.read %x[%k] : !tgl.tensor<[N], f32>
        tgl.yield %v : f32
      }
      %next = arith.addf %acc, %s : f32
      tgl.yield %next : f32
    }
    tgl.write %r, %y[] : f32, !tgl.tensor<[], f32>
  }
}

// The body reads the state: the loop stays.
// CHECK-LABEL: tgl.kernel @online
// CHECK: tgl.tiles
tgl.kernel @online(%x: !tgl.tensor<[N], f32> {tgl.name = "x", tgl.role = "in"},
                   %y: !tgl.tensor<[], f32> {tgl.name = "y", tgl.role = "out"}) sizes [N = 0 : 0] {
  tgl.parallel () {
    %zero = arith.constant 0.0 : f32
    %r = tgl.tiles (%k_lo, %k_hi) = 0 to N iter (%acc = %zero : f32) {
      %s = tgl.reduce sum (%k = %k_lo to %k_hi) -> f32 {
        %v = tgl.read %x[%k] : !tgl.tensor<[N], f32>
        %w = arith.mulf %v, %acc : f32
        tgl.yield %w : f32
      }
      %next = arith.addf %acc, %s : f32
      tgl.yield %next : f32
    }
    tgl.write %r, %y[] : f32, !tgl.tensor<[], f32>
  }
}
