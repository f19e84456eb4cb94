// RUN: tegula-opt %s --pass-pipeline="builtin.module(tgl.kernel(tgl-sum-before-product{products-for-element=2}))" | FileCheck %s

// Pooling after a product: half the products. A bias counts twice.
// CHECK-LABEL: tgl.kernel @pooled
// CHECK: %[[S:.*]] = tgl.temp "sum" : !tgl.tensor<[4, 16, 32], f32>
// CHECK: tgl.parallel (%n = 0 to 4, %c = 0 to 16, %i = 0 to 32) {
// CHECK-NEXT: %[[SUM:.*]] = tgl.reduce sum (%r = 0 to 2) -> f32 {
// CHECK-NEXT: tgl.read %x[%n, %c, 2*%i + %r]
// CHECK: tgl.write %[[SUM]], %[[S]][%n, %c, %i]
// CHECK: tgl.parallel (%n = 0 to 4, %o = 0 to 8, %i = 0 to 32) {
// CHECK: %[[P:.*]] = tgl.reduce sum (%c = 0 to 16) -> f32 {
// CHECK-DAG: %[[A:.*]] = tgl.read %[[S]][%n, %c, %i]
// CHECK-DAG: %[[B:.*]] = tgl.read %w[%o, %c]
// CHECK: arith.mulf %[[A]], %[[B]]
// CHECK: %[[TWICE:.*]] = arith.mulf %{{.*}}, %{{.*}} fastmath<contract> : f32
// CHECK: %[[T:.*]] = arith.addf %[[P]], %[[TWICE]]
// CHECK: %[[Y:.*]] = arith.mulf %[[T]], %cst
// CHECK: tgl.write %[[Y]], %y[%n, %o, %i]
tgl.kernel @pooled(%x: !tgl.tensor<[4, 16, 64], f32> {tgl.name = "x", tgl.role = "in"},
                   %w: !tgl.tensor<[8, 16], f32> {tgl.name = "w", tgl.role = "in"},
                   %b: !tgl.tensor<[8], f32> {tgl.name = "b", tgl.role = "in"},
                   %y: !tgl.tensor<[4, 8, 32], f32> {tgl.name = "y", tgl.role = "out"}) {
  %half = arith.constant 0.5 : f32
  %t = tgl.temp "t" : !tgl.tensor<[4, 8, 64], f32>
  tgl.parallel (%n = 0 to 4, %o = 0 to 8, %p = 0 to 64) {
    %s = tgl.reduce sum (%c = 0 to 16) -> f32 {
      %xv = tgl.read %x[%n, %c, %p] : !tgl.tensor<[4, 16, 64], f32>
      %wv = tgl.read %w[%o, %c] : !tgl.tensor<[8, 16], f32>
      %m = arith.mulf %xv, %wv : f32
      tgl.yield %m : f32
    }
    %bv = tgl.read %b[%o] : !tgl.tensor<[8], f32>
    %v = arith.addf %s, %bv : f32
    tgl.write %v, %t[%n, %o, %p] : f32, !tgl.tensor<[4, 8, 64], f32>
  }
  tgl.parallel (%n = 0 to 4, %o = 0 to 8, %i = 0 to 32) {
    %s = tgl.reduce sum (%r = 0 to 2) -> f32 {
      %v = tgl.read %t[%n, %o, 2*%i + %r] : !tgl.tensor<[4, 8, 64], f32>
      tgl.yield %v : f32
    }
    %v = arith.mulf %s, %half : f32
    tgl.write %v, %y[%n, %o, %i] : f32, !tgl.tensor<[4, 8, 32], f32>
  }
}

// All columns of a product, through a statement between: a vector takes the place of the matrix. What is added varies
// along them and is added up.
// CHECK-LABEL: tgl.kernel @total
// CHECK: %[[S:.*]] = tgl.temp "sum" : !tgl.tensor<[16], f32>
// CHECK: tgl.parallel (%k = 0 to 16) {
// CHECK-NEXT: tgl.reduce sum (%j = 0 to 32)
// CHECK-NEXT: tgl.read %w[%j, %k]
// CHECK: tgl.parallel (%m = 0 to 64) {
// CHECK-NEXT: %[[P:.*]] = tgl.reduce sum (%k = 0 to 16)
// CHECK-NOT: tgl.parallel
// CHECK: %[[B:.*]] = tgl.reduce sum (%j = 0 to 32) -> f32 {
// CHECK-NEXT: tgl.read %b[%j]
// CHECK: arith.subf %[[B]], %[[P]]
tgl.kernel @total(%x: !tgl.tensor<[64, 16], f32> {tgl.name = "x", tgl.role = "in"},
                  %w: !tgl.tensor<[32, 16], f32> {tgl.name = "w", tgl.role = "in"},
                  %b: !tgl.tensor<[32], f32> {tgl.name = "b", tgl.role = "in"},
                  %y: !tgl.tensor<[64], f32> {tgl.name = "y", tgl.role = "out"}) {
  %t = tgl.temp "t" : !tgl.tensor<[64, 32], f32>
  %u = tgl.temp "u" : !tgl.tensor<[64, 32], f32>
  tgl.parallel (%m = 0 to 64, %o = 0 to 32) {
    %s = tgl.reduce sum (%k = 0 to 16) -> f32 {
      %xv = tgl.read %x[%m, %k] : !tgl.tensor<[64, 16], f32>
      %wv = tgl.read %w[%o, %k] : !tgl.tensor<[32, 16], f32>
      %v = arith.mulf %xv, %wv : f32
      tgl.yield %v : f32
    }
    tgl.write %s, %t[%m, %o] : f32, !tgl.tensor<[64, 32], f32>
  }
  tgl.parallel (%m = 0 to 64, %o = 0 to 32) {
    %bv = tgl.read %b[%o] : !tgl.tensor<[32], f32>
    %tv = tgl.read %t[%m, %o] : !tgl.tensor<[64, 32], f32>
    %v = arith.subf %bv, %tv : f32
    tgl.write %v, %u[%m, %o] : f32, !tgl.tensor<[64, 32], f32>
  }
  tgl.parallel (%m = 0 to 64) {
    %s = tgl.reduce sum (%j = 0 to 32) -> f32 {
      %v = tgl.read %u[%m, %j] : !tgl.tensor<[64, 32], f32>
      tgl.yield %v : f32
    }
    tgl.write %s, %y[%m] : f32, !tgl.tensor<[64], f32>
  }
}

// Not linear, rounded on the way, scaled by what varies along the sum.
// CHECK-LABEL: tgl.kernel @stays
// CHECK: tgl.temp "t"
// CHECK: tgl.temp "u"
// CHECK: tgl.temp "v"
// CHECK-NOT: tgl.temp "sum"
tgl.kernel @stays(%x: !tgl.tensor<[64, 16], f32> {tgl.name = "x", tgl.role = "in"},
                  %w: !tgl.tensor<[32, 16], f32> {tgl.name = "w", tgl.role = "in"},
                  %b: !tgl.tensor<[32], f32> {tgl.name = "b", tgl.role = "in"},
                  %y: !tgl.tensor<[3, 64], f32> {tgl.name = "y", tgl.role = "out"}) {
  %t = tgl.temp "t" : !tgl.tensor<[64, 32], f32>
  %u = tgl.temp "u" : !tgl.tensor<[64, 32], f16>
  %v = tgl.temp "v" : !tgl.tensor<[64, 32], f32>
  tgl.parallel (%m = 0 to 64, %o = 0 to 32) {
    %s = tgl.reduce sum (%k = 0 to 16) -> f32 {
      %xv = tgl.read %x[%m, %k] : !tgl.tensor<[64, 16], f32>
      %wv = tgl.read %w[%o, %k] : !tgl.tensor<[32, 16], f32>
      %p = arith.mulf %xv, %wv : f32
      tgl.yield %p : f32
    }
    %abs = math.absf %s : f32
    tgl.write %abs, %t[%m, %o] : f32, !tgl.tensor<[64, 32], f32>
  }
  tgl.parallel (%m = 0 to 64, %o = 0 to 32) {
    %s = tgl.reduce sum (%k = 0 to 16) -> f32 {
      %xv = tgl.read %x[%m, %k] : !tgl.tensor<[64, 16], f32>
      %wv = tgl.read %w[%o, %k] : !tgl.tensor<[32, 16], f32>
      %p = arith.mulf %xv, %wv : f32
      tgl.yield %p : f32
    }
    tgl.write %s, %u[%m, %o] : f32, !tgl.tensor<[64, 32], f16>
  }
  tgl.parallel (%m = 0 to 64, %o = 0 to 32) {
    %s = tgl.reduce sum (%k = 0 to 16) -> f32 {
      %xv = tgl.read %x[%m, %k] : !tgl.tensor<[64, 16], f32>
      %wv = tgl.read %w[%o, %k] : !tgl.tensor<[32, 16], f32>
      %p = arith.mulf %xv, %wv : f32
      tgl.yield %p : f32
    }
    %bv = tgl.read %b[%o] : !tgl.tensor<[32], f32>
    %q = arith.mulf %s, %bv : f32
    tgl.write %q, %v[%m, %o] : f32, !tgl.tensor<[64, 32], f32>
  }
  tgl.parallel (%m = 0 to 64) {
    %s = tgl.reduce sum (%j = 0 to 32) -> f32 {
      %e = tgl.read %t[%m, %j] : !tgl.tensor<[64, 32], f32>
      tgl.yield %e : f32
    }
    tgl.write %s, %y[0, %m] : f32, !tgl.tensor<[3, 64], f32>
  }
  tgl.parallel (%m = 0 to 64) {
    %s = tgl.reduce sum (%j = 0 to 32) -> f32 {
      %e = tgl.read %u[%m, %j] : !tgl.tensor<[64, 32], f16>
      tgl.yield %e : f32
    }
    tgl.write %s, %y[1, %m] : f32, !tgl.tensor<[3, 64], f32>
  }
  tgl.parallel (%m = 0 to 64) {
    %s = tgl.reduce sum (%j = 0 to 32) -> f32 {
      %e = tgl.read %v[%m, %j] : !tgl.tensor<[64, 32], f32>
      tgl.yield %e : f32
    }
    tgl.write %s, %y[2, %m] : f32, !tgl.tensor<[3, 64], f32>
  }
}

// Windows whose positions are summed by twos: nine taps of each would take more room than the image. And an element that
// something else reads.
// CHECK-LABEL: tgl.kernel @windows
// CHECK-NOT: tgl.temp "sum"
tgl.kernel @windows(%x: !tgl.tensor<[16, 66], f32> {tgl.name = "x", tgl.role = "in"},
                    %w: !tgl.tensor<[8, 16, 3], f32> {tgl.name = "w", tgl.role = "in"},
                    %y: !tgl.tensor<[8, 32], f32> {tgl.name = "y", tgl.role = "out"},
                    %z: !tgl.tensor<[8], f32> {tgl.name = "z", tgl.role = "out"}) {
  %t = tgl.temp "t" : !tgl.tensor<[8, 64], f32>
  %u = tgl.temp "u" : !tgl.tensor<[8, 64], f32>
  tgl.parallel (%o = 0 to 8, %p = 0 to 64) {
    %s = tgl.reduce sum (%c = 0 to 16, %k = 0 to 3) -> f32 {
      %xv = tgl.read %x[%c, %p + %k] : !tgl.tensor<[16, 66], f32>
      %wv = tgl.read %w[%o, %c, %k] : !tgl.tensor<[8, 16, 3], f32>
      %m = arith.mulf %xv, %wv : f32
      tgl.yield %m : f32
    }
    tgl.write %s, %t[%o, %p] : f32, !tgl.tensor<[8, 64], f32>
  }
  tgl.parallel (%o = 0 to 8, %i = 0 to 32) {
    %s = tgl.reduce sum (%r = 0 to 2) -> f32 {
      %v = tgl.read %t[%o, 2*%i + %r] : !tgl.tensor<[8, 64], f32>
      tgl.yield %v : f32
    }
    tgl.write %s, %y[%o, %i] : f32, !tgl.tensor<[8, 32], f32>
  }
  tgl.parallel (%o = 0 to 8, %p = 0 to 64) {
    %s = tgl.reduce sum (%c = 0 to 16) -> f32 {
      %xv = tgl.read %x[%c, %p] : !tgl.tensor<[16, 66], f32>
      %wv = tgl.read %w[%o, %c, 0] : !tgl.tensor<[8, 16, 3], f32>
      %m = arith.mulf %xv, %wv : f32
      tgl.yield %m : f32
    }
    tgl.write %s, %u[%o, %p] : f32, !tgl.tensor<[8, 64], f32>
  }
  tgl.parallel (%o = 0 to 8) {
    %s = tgl.reduce sum (%p = 0 to 64) -> f32 {
      %v = tgl.read %u[%o, %p] : !tgl.tensor<[8, 64], f32>
      tgl.yield %v : f32
    }
    %first = tgl.read %u[%o, 0] : !tgl.tensor<[8, 64], f32>
    %v = arith.addf %s, %first : f32
    tgl.write %v, %z[%o] : f32, !tgl.tensor<[8], f32>
  }
}
