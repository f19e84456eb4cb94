// RUN: tegula-opt %s --tgl-fuse="batched-products=true" | FileCheck %s
// RUN: tegula-opt %s --tgl-fuse | FileCheck %s --check-prefix=APART

// The scores of attention go from one product to the next inside of one nest over batch and rows.
// CHECK-LABEL: tgl.kernel @attention
// CHECK: tgl.launch
// CHECK-NEXT: tgl.parallel (%{{.*}} = 0 to B, %{{.*}} = 0 to S) {
// CHECK-NEXT: tgl.temp "s" : !tgl.tensor<[L], f32>
// CHECK: tgl.parallel (%{{.*}} = 0 to L)
// CHECK: tgl.reduce max
// CHECK: tgl.parallel (%{{.*}} = 0 to D)
// CHECK-NOT: tgl.launch
// APART-LABEL: tgl.kernel @attention
// APART-COUNT-3: tgl.launch
// APART-LABEL: tgl.kernel @layers
tgl.kernel @attention(%q: !tgl.tensor<[B, S, E], f32> {tgl.name = "q", tgl.role = "in"},
                      %k: !tgl.tensor<[B, L, E], f32> {tgl.name = "k", tgl.role = "in"},
                      %v: !tgl.tensor<[B, L, D], f32> {tgl.name = "v", tgl.role = "in"},
                      %o: !tgl.tensor<[B, S, D], f32> {tgl.name = "o", tgl.role = "out"})
    sizes [B = 0 : 0, D = 2 : 2, E = 0 : 2, L = 1 : 1, S = 0 : 1] {
  %s = tgl.temp "s" : !tgl.tensor<[B, S, L], f32>
  %m = tgl.temp "m" : !tgl.tensor<[B, S], f32>
  tgl.parallel (%b = 0 to B, %i = 0 to S, %j = 0 to L) {
    %sum = tgl.reduce sum (%e = 0 to E) -> f32 {
      %x = tgl.read %q[%b, %i, %e] : !tgl.tensor<[B, S, E], f32>
      %y = tgl.read %k[%b, %j, %e] : !tgl.tensor<[B, L, E], f32>
      %z = arith.mulf %x, %y : f32
      tgl.yield %z : f32
    }
    tgl.write %sum, %s[%b, %i, %j] : f32, !tgl.tensor<[B, S, L], f32>
  }
  tgl.parallel (%b = 0 to B, %i = 0 to S) {
    %max = tgl.reduce max (%j = 0 to L) -> f32 {
      %x = tgl.read %s[%b, %i, %j] : !tgl.tensor<[B, S, L], f32>
      tgl.yield %x : f32
    }
    tgl.write %max, %m[%b, %i] : f32, !tgl.tensor<[B, S], f32>
  }
  tgl.parallel (%b = 0 to B, %i = 0 to S, %d = 0 to D) {
    %max = tgl.read %m[%b, %i] : !tgl.tensor<[B, S], f32>
    %sum = tgl.reduce sum (%j = 0 to L) -> f32 {
      %x = tgl.read %s[%b, %i, %j] : !tgl.tensor<[B, S, L], f32>
      %y = tgl.read %v[%b, %j, %d] : !tgl.tensor<[B, L, D], f32>
      %z = arith.mulf %x, %y : f32
      tgl.yield %z : f32
    }
    %r = arith.divf %sum, %max : f32
    tgl.write %r, %o[%b, %i, %d] : f32, !tgl.tensor<[B, S, D], f32>
  }
}

// No batch: rows alone would leave threads without work, and weights would be packed for each block.
// CHECK-LABEL: tgl.kernel @layers
// CHECK-COUNT-2: tgl.launch
tgl.kernel @layers(%x: !tgl.tensor<[M, K], f32> {tgl.name = "x", tgl.role = "in"},
                   %v: !tgl.tensor<[K, H], f32> {tgl.name = "v", tgl.role = "in"},
                   %w: !tgl.tensor<[H, N], f32> {tgl.name = "w", tgl.role = "in"},
                   %y: !tgl.tensor<[M, N], f32> {tgl.name = "y", tgl.role = "out"})
    sizes [H = 1 : 1, K = 0 : 1, M = 0 : 0, N = 2 : 1] {
  %h = tgl.temp "h" : !tgl.tensor<[M, H], f32>
  tgl.parallel (%i = 0 to M, %j = 0 to H) {
    %sum = tgl.reduce sum (%e = 0 to K) -> f32 {
      %a = tgl.read %x[%i, %e] : !tgl.tensor<[M, K], f32>
      %b = tgl.read %v[%e, %j] : !tgl.tensor<[K, H], f32>
      %c = arith.mulf %a, %b : f32
      tgl.yield %c : f32
    }
    tgl.write %sum, %h[%i, %j] : f32, !tgl.tensor<[M, H], f32>
  }
  tgl.parallel (%i = 0 to M, %j = 0 to N) {
    %sum = tgl.reduce sum (%e = 0 to H) -> f32 {
      %a = tgl.read %h[%i, %e] : !tgl.tensor<[M, H], f32>
      %b = tgl.read %w[%e, %j] : !tgl.tensor<[H, N], f32>
      %c = arith.mulf %a, %b : f32
      tgl.yield %c : f32
    }
    tgl.write %sum, %y[%i, %j] : f32, !tgl.tensor<[M, N], f32>
  }
}
