// RUN: tegula-opt %s --tgl-distribute | FileCheck %s

// The sum of a row is computed once for the row.
// CHECK-LABEL: tgl.kernel @normalize
// CHECK: %[[T:.*]] = tgl.temp "sum" : !tgl.tensor<[M], f32>
// CHECK: tgl.parallel (%i = 0 to M) {
// CHECK: tgl.reduce sum (%k = 0 to N)
// CHECK: tgl.write %{{.*}}, %[[T]][%i]
// CHECK: tgl.parallel (%i = 0 to M, %j = 0 to N) {
// CHECK-NOT: tgl.reduce
// CHECK: tgl.read %[[T]][%i]
tgl.kernel @normalize(%x: !tgl.tensor<[M, N], f32> {tgl.name = "x", tgl.role = "in"},
                      %y: !tgl.tensor<[M, N], f32> {tgl.name = "y", tgl.role = "out"})
    sizes [M = 0 : 0, N = 0 : 1] {
  tgl.parallel (%i = 0 to M, %j = 0 to N) {
    %s = tgl.reduce sum (%k = 0 to N) -> f32 {
      %v = tgl.read %x[%i, %k] : !tgl.tensor<[M, N], f32>
      tgl.yield %v : f32
    }
    %v = tgl.read %x[%i, %j] : !tgl.tensor<[M, N], f32>
    %r = arith.divf %v, %s : f32
    tgl.write %r, %y[%i, %j] : f32, !tgl.tensor<[M, N], f32>
  }
}

// A reduction inside a reduction that does not use its axis moves in front of it.
// CHECK-LABEL: tgl.kernel @inner
// CHECK: tgl.parallel (%i = 0 to M) {
// CHECK-NEXT: %[[MAX:.*]] = tgl.reduce max (%l = 0 to N)
// CHECK: tgl.reduce sum (%k = 0 to N)
// CHECK-NOT: tgl.reduce
// CHECK: arith.subf %{{.*}}, %[[MAX]]
tgl.kernel @inner(%x: !tgl.tensor<[M, N], f32> {tgl.name = "x", tgl.role = "in"},
                  %y: !tgl.tensor<[M], f32> {tgl.name = "y", tgl.role = "out"}) sizes [M = 0 : 0, N = 0 : 1] {
  tgl.parallel (%i = 0 to M) {
    %s = tgl.reduce sum (%k = 0 to N) -> f32 {
      %m = tgl.reduce max (%l = 0 to N) -> f32 {
        %v = tgl.read %x[%i, %l] : !tgl.tensor<[M, N], f32>
        tgl.yield %v : f32
      }
      %v = tgl.read %x[%i, %k] : !tgl.tensor<[M, N], f32>
      %d = arith.subf %v, %m : f32
      tgl.yield %d : f32
    }
    tgl.write %s, %y[%i] : f32, !tgl.tensor<[M], f32>
  }
}

// A costly factor of a contraction is computed once for each of its own points, stored as rounded.
// CHECK-LABEL: tgl.kernel @factor
// CHECK: %[[T:.*]] = tgl.temp "convert" : !tgl.tensor<[M, K], f16>
// CHECK: tgl.parallel (%i = 0 to M, %k = 0 to K) {
// CHECK: math.exp
// CHECK: tgl.parallel (%i = 0 to M, %j = 0 to N) {
// CHECK-NOT: math.exp
// CHECK: tgl.read %[[T]][%i, %k]
tgl.kernel @factor(%a: !tgl.tensor<[M, K], f16> {tgl.name = "a", tgl.role = "in"},
                   %b: !tgl.tensor<[K, N], f16> {tgl.name = "b", tgl.role = "in"},
                   %y: !tgl.tensor<[M, N], f32> {tgl.name = "y", tgl.role = "out"})
    sizes [M = 0 : 0, K = 0 : 1, N = 1 : 1] {
  tgl.parallel (%i = 0 to M, %j = 0 to N) {
    %s = tgl.reduce sum (%k = 0 to K) -> f32 {
      %v = tgl.read %a[%i, %k] : !tgl.tensor<[M, K], f16>
      %e = math.exp %v : f32
      %r = tgl.convert %e to f16 : f32 -> f32
      %w = tgl.read %b[%k, %j] : !tgl.tensor<[K, N], f16>
      %p = arith.mulf %r, %w : f32
      tgl.yield %p : f32
    }
    tgl.write %s, %y[%i, %j] : f32, !tgl.tensor<[M, N], f32>
  }
}

// A block around a loop: what varies along d is computed in inner parallels, the state acc becomes a
// private row; the product with v reads tiles of p, computed once per tile.
// CHECK-LABEL: tgl.kernel @block
// CHECK: tgl.parallel (%i = 0 to M) {
// CHECK: %[[ACC:.*]] = tgl.temp "acc" : !tgl.tensor<[D], f32>
// CHECK: tgl.parallel (%d = 0 to D) {
// CHECK: tgl.write %{{.*}}, %[[ACC]][%d]
// CHECK: tgl.tiles (%j_lo, %j_hi) = 0 to T size 64 iter (%m = %{{.*}} : f32)
// CHECK: %[[P:.*]] = tgl.temp "exp" : !tgl.tensor<[64], f32>
// CHECK: tgl.parallel (%j = %j_lo to %j_hi) {
// CHECK: tgl.write %{{.*}}, %[[P]][%j - %j_lo]
// CHECK: tgl.parallel (%d = 0 to D) {
// CHECK: tgl.read %[[ACC]][%d]
// CHECK: tgl.reduce sum (%j = %j_lo to %j_hi)
// CHECK: tgl.read %[[P]][%j - %j_lo]
// CHECK: tgl.write %{{.*}}, %[[ACC]][%d]
// CHECK: tgl.parallel (%d = 0 to D) {
// CHECK: tgl.read %[[ACC]][%d]
// CHECK: tgl.write %{{.*}}, %o[%i, %d]
tgl.kernel @block(%s: !tgl.tensor<[M, T], f32> {tgl.name = "s", tgl.role = "in"},
                  %v: !tgl.tensor<[T, D], f32> {tgl.name = "v", tgl.role = "in"},
                  %o: !tgl.tensor<[M, D], f32> {tgl.name = "o", tgl.role = "out"})
    sizes [M = 0 : 0, T = 0 : 1, D = 1 : 1] {
  tgl.parallel (%i = 0 to M, %d = 0 to D) {
    %zero = arith.constant 0.0 : f32
    %low = arith.constant -1.0e30 : f32
    %ml, %al = tgl.tiles (%j_lo, %j_hi) = 0 to T iter (%m = %low : f32, %acc = %zero : f32) {
      %top = tgl.reduce max (%j = %j_lo to %j_hi) -> f32 {
        %x = tgl.read %s[%i, %j] : !tgl.tensor<[M, T], f32>
        tgl.yield %x : f32
      }
      %m2 = arith.maximumf %m, %top : f32
      %dm = arith.subf %m, %m2 : f32
      %scale = math.exp %dm : f32
      %old = arith.mulf %acc, %scale : f32
      %new = tgl.reduce sum (%j = %j_lo to %j_hi) -> f32 {
        %x = tgl.read %s[%i, %j] : !tgl.tensor<[M, T], f32>
        %dx = arith.subf %x, %m2 : f32
        %p = math.exp %dx : f32
        %y = tgl.read %v[%j, %d] : !tgl.tensor<[T, D], f32>
        %py = arith.mulf %p, %y : f32
        tgl.yield %py : f32
      }
      %next = arith.addf %old, %new : f32
      tgl.yield %m2, %next : f32, f32
    }
    tgl.write %al, %o[%i, %d] : f32, !tgl.tensor<[M, D], f32>
  }
}
