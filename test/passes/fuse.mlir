// RUN: tegula-opt %s --tgl-fuse | FileCheck %s
// RUN: tegula-opt %s --tgl-fuse=min-points=512 | FileCheck %s --check-prefix=WIDE

// Softmax: the maximum and the sum of a row become values of one nest over rows.
// CHECK-LABEL: tgl.kernel @softmax
// CHECK-NOT: tgl.temp
// CHECK: tgl.launch "y" {
// CHECK-NEXT: tgl.parallel (%i = 0 to M) {
// CHECK-NEXT: %[[M:.*]] = tgl.reduce max
// CHECK: %[[S:.*]] = tgl.reduce sum
// CHECK: arith.subf %{{.*}}, %[[M]]
// CHECK: tgl.parallel (%j = 0 to N) {
// CHECK: arith.subf %{{.*}}, %[[M]]
// CHECK: arith.divf %{{.*}}, %[[S]]
// CHECK: tgl.write %{{.*}}, %y[%i, %j]
// CHECK-NOT: tgl.launch
tgl.kernel @softmax(%x: !tgl.tensor<[M, N], f32> {tgl.name = "x", tgl.role = "in"},
                    %y: !tgl.tensor<[M, N], f32> {tgl.name = "y", tgl.role = "out"})
    sizes [M = 0 : 0, N = 0 : 1] {
  %m = tgl.temp "m" : !tgl.tensor<[M], f32>
  %s = tgl.temp "s" : !tgl.tensor<[M], f32>
  tgl.parallel (%i = 0 to M) {
    %r = tgl.reduce max (%k = 0 to N) -> f32 {
      %v = tgl.read %x[%i, %k] : !tgl.tensor<[M, N], f32>
      tgl.yield %v : f32
    }
    tgl.write %r, %m[%i] : f32, !tgl.tensor<[M], f32>
  }
  tgl.parallel (%p = 0 to M) {
    %t = tgl.read %m[%p] : !tgl.tensor<[M], f32>
    %r = tgl.reduce sum (%k = 0 to N) -> f32 {
      %v = tgl.read %x[%p, %k] : !tgl.tensor<[M, N], f32>
      %d = arith.subf %v, %t : f32
      %e = math.exp %d : f32
      tgl.yield %e : f32
    }
    tgl.write %r, %s[%p] : f32, !tgl.tensor<[M], f32>
  }
  tgl.parallel (%i = 0 to M, %j = 0 to N) {
    %v = tgl.read %x[%i, %j] : !tgl.tensor<[M, N], f32>
    %a = tgl.read %m[%i] : !tgl.tensor<[M], f32>
    %b = tgl.read %s[%i] : !tgl.tensor<[M], f32>
    %d = arith.subf %v, %a : f32
    %e = math.exp %d : f32
    %q = arith.divf %e, %b : f32
    tgl.write %q, %y[%i, %j] : f32, !tgl.tensor<[M, N], f32>
  }
}

// The epilogue of a contraction joins its nest, seeing the result rounded to f16; the row sum of its
// result does not: it would run the product row by row.
// CHECK-LABEL: tgl.kernel @linear
// CHECK-NOT: tgl.temp
// CHECK: tgl.launch "h" {
// CHECK-NEXT: tgl.parallel (%i = 0 to M, %j = 0 to N) {
// CHECK: tgl.reduce sum (%k = 0 to K)
// CHECK: %[[R:.*]] = tgl.convert %{{.*}} to f16
// CHECK: arith.addf %[[R]]
// CHECK: tgl.write %{{.*}}, %h[%i, %j]
// CHECK: tgl.launch "y" {
// CHECK: tgl.reduce sum (%j = 0 to N)
tgl.kernel @linear(%x: !tgl.tensor<[M, K], f32> {tgl.name = "x", tgl.role = "in"},
                   %w: !tgl.tensor<[N, K], f32> {tgl.name = "w", tgl.role = "in"},
                   %b: !tgl.tensor<[N], f32> {tgl.name = "b", tgl.role = "in"},
                   %h: !tgl.tensor<[M, N], f16> {tgl.name = "h", tgl.role = "out"},
                   %y: !tgl.tensor<[M], f32> {tgl.name = "y", tgl.role = "out"})
    sizes [M = 0 : 0, K = 0 : 1, N = 1 : 0] {
  %g = tgl.temp "g" : !tgl.tensor<[M, N], f16>
  tgl.parallel (%i = 0 to M, %j = 0 to N) {
    %s = tgl.reduce sum (%k = 0 to K) -> f32 {
      %v = tgl.read %x[%i, %k] : !tgl.tensor<[M, K], f32>
      %u = tgl.read %w[%j, %k] : !tgl.tensor<[N, K], f32>
      %p = arith.mulf %v, %u : f32
      tgl.yield %p : f32
    }
    tgl.write %s, %g[%i, %j] : f32, !tgl.tensor<[M, N], f16>
  }
  tgl.parallel (%i = 0 to M, %j = 0 to N) {
    %v = tgl.read %g[%i, %j] : !tgl.tensor<[M, N], f16>
    %c = tgl.read %b[%j] : !tgl.tensor<[N], f32>
    %s = arith.addf %v, %c : f32
    %t = math.tanh %s : f32
    tgl.write %t, %h[%i, %j] : f32, !tgl.tensor<[M, N], f16>
  }
  tgl.parallel (%i = 0 to M) {
    %s = tgl.reduce sum (%j = 0 to N) -> f32 {
      %v = tgl.read %h[%i, %j] : !tgl.tensor<[M, N], f16>
      tgl.yield %v : f32
    }
    tgl.write %s, %y[%i] : f32, !tgl.tensor<[M], f32>
  }
}

// A cheap producer is computed where it is read, here with the fill of the read.
// CHECK-LABEL: tgl.kernel @shift
// CHECK-NOT: tgl.temp
// CHECK: tgl.parallel (%i = 0 to N) {
// CHECK: %[[IN:.*]] = arith.cmpi sge, %{{.*}}, %{{.*}} : index
// CHECK: %[[V:.*]] = tgl.read %x[%i - 1] if %[[IN]]
// CHECK: %[[W:.*]] = arith.addf %[[V]], %[[V]]
// CHECK: arith.select %[[IN]], %[[W]], %{{.*}} : f32
tgl.kernel @shift(%x: !tgl.tensor<[N], f32> {tgl.name = "x", tgl.role = "in"},
                  %y: !tgl.tensor<[N], f32> {tgl.name = "y", tgl.role = "out"}) sizes [N = 0 : 0] {
  %h = tgl.temp "h" : !tgl.tensor<[N], f32>
  tgl.parallel (%i = 0 to N) {
    %v = tgl.read %x[%i] : !tgl.tensor<[N], f32>
    %w = arith.addf %v, %v : f32
    tgl.write %w, %h[%i] : f32, !tgl.tensor<[N], f32>
  }
  tgl.parallel (%i = 0 to N) {
    %one = arith.constant 1.0 : f32
    %v = tgl.read %h[%i - 1] fill %one : !tgl.tensor<[N], f32>
    tgl.write %v, %y[%i] : f32, !tgl.tensor<[N], f32>
  }
}

// The input of the producer changes before the consumer runs: it stays.
// CHECK-LABEL: tgl.kernel @changed
// CHECK: tgl.temp "h"
// CHECK-COUNT-3: tgl.launch
tgl.kernel @changed(%x: !tgl.tensor<[N], f32> {tgl.name = "x", tgl.role = "inout"},
                    %y: !tgl.tensor<[N], f32> {tgl.name = "y", tgl.role = "out"}) sizes [N = 0 : 0] {
  %h = tgl.temp "h" : !tgl.tensor<[N], f32>
  tgl.parallel (%i = 0 to N) {
    %v = tgl.read %x[%i] : !tgl.tensor<[N], f32>
    tgl.write %v, %h[%i] : f32, !tgl.tensor<[N], f32>
  }
  tgl.parallel (%i = 0 to N) {
    %v = tgl.read %h[N - 1 - %i] : !tgl.tensor<[N], f32>
    tgl.write %v, %x[%i] : f32, !tgl.tensor<[N], f32>
  }
  tgl.parallel (%i = 0 to N) {
    %v = tgl.read %x[N - 1 - %i] : !tgl.tensor<[N], f32>
    %w = tgl.read %h[%i] : !tgl.tensor<[N], f32>
    %s = arith.addf %v, %w : f32
    tgl.write %s, %y[%i] : f32, !tgl.tensor<[N], f32>
  }
}

// A scan's only reader joins the loop; the row that carried the values is gone.
// CHECK-LABEL: tgl.kernel @cumsum
// CHECK-NOT: tgl.temp
// CHECK: tgl.parallel (%i = 0 to M) {
// CHECK: tgl.for %k = 0 to N
// CHECK: %[[S:.*]] = arith.addf
// CHECK: tgl.write %[[S]], %y[%i, %k]
// CHECK: tgl.yield %[[S]]
tgl.kernel @cumsum(%x: !tgl.tensor<[M, N], f32> {tgl.name = "x", tgl.role = "in"},
                   %y: !tgl.tensor<[M, N], f32> {tgl.name = "y", tgl.role = "out"})
    sizes [M = 0 : 0, N = 0 : 1] {
  %c = tgl.temp "c" : !tgl.tensor<[M, N], f32>
  tgl.parallel (%i = 0 to M) {
    %zero = arith.constant 0.0 : f32
    %r = tgl.for %k = 0 to N iter (%acc = %zero : f32) {
      %v = tgl.read %x[%i, %k] : !tgl.tensor<[M, N], f32>
      %s = arith.addf %acc, %v : f32
      tgl.write %s, %c[%i, %k] : f32, !tgl.tensor<[M, N], f32>
      tgl.yield %s : f32
    }
  }
  tgl.parallel (%i = 0 to M, %j = 0 to N) {
    %v = tgl.read %c[%i, %j] : !tgl.tensor<[M, N], f32>
    tgl.write %v, %y[%i, %j] : f32, !tgl.tensor<[M, N], f32>
  }
}

// So does one that is a point behind: it has what the loop carries, and 0 where there is none before.
// CHECK-LABEL: tgl.kernel @behind
// CHECK-NOT: tgl.temp
// CHECK: tgl.parallel (%i = 0 to M) {
// CHECK: tgl.for %k = 0 to N iter (%[[ACC:.*]] = %{{.*}} : f32)
// CHECK: %[[B:.*]] = arith.select %{{.*}}, %[[ACC]], %{{.*}} : f32
// CHECK: tgl.write %[[B]], %y[%i, %k]
tgl.kernel @behind(%x: !tgl.tensor<[M, N], f32> {tgl.name = "x", tgl.role = "in"},
                   %y: !tgl.tensor<[M, N], f32> {tgl.name = "y", tgl.role = "out"})
    sizes [M = 0 : 0, N = 0 : 1] {
  %c = tgl.temp "c" : !tgl.tensor<[M, N], f32>
  tgl.parallel (%i = 0 to M) {
    %zero = arith.constant 0.0 : f32
    %r = tgl.for %k = 0 to N iter (%acc = %zero : f32) {
      %v = tgl.read %x[%i, %k] : !tgl.tensor<[M, N], f32>
      %s = arith.addf %acc, %v : f32
      tgl.write %s, %c[%i, %k] : f32, !tgl.tensor<[M, N], f32>
      tgl.yield %s : f32
    }
  }
  tgl.parallel (%i = 0 to M, %j = 0 to N) {
    %zero = arith.constant 0 : index
    %later = arith.cmpi sgt, %j, %zero : index
    %v = tgl.read %c[%i, %j - 1] if %later : !tgl.tensor<[M, N], f32>
    tgl.write %v, %y[%i, %j] : f32, !tgl.tensor<[M, N], f32>
  }
}

// Groups: the axis g is the high digit of the channel in every access.
// CHECK-LABEL: tgl.kernel @groups
// CHECK: tgl.launch "y" {
// CHECK-NEXT: tgl.parallel (%g = 0 to G) {
// CHECK-NEXT: %[[S:.*]] = tgl.reduce sum (%e = 0 to E)
// CHECK: tgl.parallel (%e = 0 to E) {
// CHECK: tgl.read %x[{{.*}}] :
// CHECK: arith.subf %{{.*}}, %[[S]]
tgl.kernel @groups(%x: !tgl.tensor<[G*E], f32> {tgl.name = "x", tgl.role = "in"},
                   %u: !tgl.tensor<[G, E], f32> {tgl.name = "u", tgl.role = "in"},
                   %y: !tgl.tensor<[G*E], f32> {tgl.name = "y", tgl.role = "out"})
    sizes [G = 1 : 0, E = 1 : 1] {
  %s = tgl.temp "s" : !tgl.tensor<[G], f32>
  tgl.parallel (%g = 0 to G) {
    %r = tgl.reduce sum (%e = 0 to E) -> f32 {
      %v = tgl.read %x[E*%g + %e] : !tgl.tensor<[G*E], f32>
      tgl.yield %v : f32
    }
    tgl.write %r, %s[%g] : f32, !tgl.tensor<[G], f32>
  }
  tgl.parallel (%g = 0 to G, %e = 0 to E) {
    %v = tgl.read %x[E*%g + %e] : !tgl.tensor<[G*E], f32>
    %m = tgl.read %s[%g] : !tgl.tensor<[G], f32>
    %d = arith.subf %v, %m : f32
    tgl.write %d, %y[E*%g + %e] : f32, !tgl.tensor<[G*E], f32>
  }
}

// One group: what has a single point is dropped, and the statements have the same axes.
// CHECK-LABEL: tgl.kernel @one_group
// CHECK-NOT: tgl.temp
// CHECK: tgl.parallel (%o = 0 to O, %p = 0 to P) {
// CHECK: tgl.reduce sum (%c = 0 to C) -> f32
// CHECK: tgl.read %x[%c, %p + 2]
// CHECK: tgl.read %w[%o, %c, 0]
// CHECK: arith.maximumf
// CHECK: tgl.write %{{.*}}, %y[%o, %p]
// CHECK-NOT: tgl.launch
tgl.kernel @one_group(%x: !tgl.tensor<[C, P + 2], f32> {tgl.name = "x", tgl.role = "in"},
                      %w: !tgl.tensor<[O, C, 1], f32> {tgl.name = "w", tgl.role = "in"},
                      %y: !tgl.tensor<[O, P], f32> {tgl.name = "y", tgl.role = "out"})
    sizes [C = 0 : 0, P = 2 : 1, O = 1 : 0] {
  %h = tgl.temp "h" : !tgl.tensor<[O, P], f32>
  tgl.parallel (%g = 0 to 1, %o = 0 to O, %p = 0 to P) {
    %s = tgl.reduce sum (%c = 0 to C, %r = 0 to 1) -> f32 {
      %v = tgl.read %x[C*%g + %c, %p + %r + 2] : !tgl.tensor<[C, P + 2], f32>
      %u = tgl.read %w[O*%g + %o, %c, %r] : !tgl.tensor<[O, C, 1], f32>
      %m = arith.mulf %v, %u : f32
      tgl.yield %m : f32
    }
    tgl.write %s, %h[O*%g + %o, %p] : f32, !tgl.tensor<[O, P], f32>
  }
  tgl.parallel (%o = 0 to O, %p = 0 to P) {
    %zero = arith.constant 0.0 : f32
    %v = tgl.read %h[%o, %p] : !tgl.tensor<[O, P], f32>
    %m = arith.maximumf %v, %zero : f32
    tgl.write %m, %y[%o, %p] : f32, !tgl.tensor<[O, P], f32>
  }
}

// Of axes that all have one point the first stays.
// CHECK-LABEL: tgl.kernel @one_point
// CHECK: tgl.parallel (%i = 0 to 1) {
// CHECK: tgl.read %x[%i, 3]
tgl.kernel @one_point(%x: !tgl.tensor<[1, 4], f32> {tgl.name = "x", tgl.role = "in"},
                      %y: !tgl.tensor<[1, 1], f32> {tgl.name = "y", tgl.role = "out"}) sizes [] {
  tgl.parallel (%i = 0 to 1, %j = 3 to 4) {
    %v = tgl.read %x[%i, %j] : !tgl.tensor<[1, 4], f32>
    tgl.write %v, %y[%i, %j - 3] : f32, !tgl.tensor<[1, 1], f32>
  }
}

// Of a scan's statement, none: what takes the steps of a matrix of one row has no axis of rows either, and does so in the
// loop where the machine is wide, so that the row can be cut.
// CHECK-LABEL: tgl.kernel @one_row
// CHECK: tgl.parallel () {
// CHECK-NEXT: tgl.for
// WIDE-LABEL: tgl.kernel @one_row
// WIDE-NOT: tgl.temp
// WIDE: tgl.parallel () {
// WIDE-NEXT: tgl.for %[[J:.*]] = 0 to 1048576
// WIDE: tgl.write %{{.*}}, %y[0, %[[J]]]
// WIDE-NOT: tgl.parallel
// WIDE-LABEL: tgl.kernel @channels
tgl.kernel @one_row(%x: !tgl.tensor<[1, 1048576], f32> {tgl.name = "x", tgl.role = "in"},
                    %y: !tgl.tensor<[1, 1048576], f32> {tgl.name = "y", tgl.role = "out"}) sizes [] {
  %zero = arith.constant 0.0 : f32
  %c = tgl.temp "c" : !tgl.tensor<[1, 1048576], f32>
  tgl.parallel (%i = 0 to 1) {
    %r = tgl.for %j = 0 to 1048576 iter (%acc = %zero : f32) {
      %v = tgl.read %x[%i, %j] : !tgl.tensor<[1, 1048576], f32>
      %s = arith.addf %acc, %v : f32
      tgl.write %s, %c[%i, %j] : f32, !tgl.tensor<[1, 1048576], f32>
      tgl.yield %s : f32
    }
  }
  tgl.parallel (%i = 0 to 1, %j = 0 to 1048576) {
    %v = tgl.read %c[%i, %j] : !tgl.tensor<[1, 1048576], f32>
    tgl.write %v, %y[%i, %j] : f32, !tgl.tensor<[1, 1048576], f32>
  }
}

// Groups of channels, and channels before and after them: these have the groups' axis then, and one nest does all.
// CHECK-LABEL: tgl.kernel @channels
// CHECK-NOT: tgl.temp "h" : !tgl.tensor<[N
// CHECK: tgl.launch
// CHECK-NEXT: tgl.parallel (%n = 0 to N, %g = 0 to G) {
// CHECK: tgl.parallel (%c = 0 to 4, %p = 0 to P) {
// CHECK: tgl.read %x[%n, 4*%g + %c, %p]
// CHECK: %[[S:.*]] = tgl.reduce sum (%e = 0 to 4, %p = 0 to P)
// CHECK: tgl.parallel (%c = 0 to 4) {
// CHECK: tgl.reduce sum (%p = 0 to P)
// CHECK: arith.subf %{{.*}}, %[[S]]
// CHECK: tgl.write %{{.*}}, %y[%n, 4*%g + %c]
// CHECK-NOT: tgl.launch
tgl.kernel @channels(%x: !tgl.tensor<[N, 4*G, P], f32> {tgl.name = "x", tgl.role = "in"},
                     %u: !tgl.tensor<[G], f32> {tgl.name = "u", tgl.role = "in"},
                     %y: !tgl.tensor<[N, 4*G], f32> {tgl.name = "y", tgl.role = "out"})
    sizes [N = 0 : 0, P = 0 : 2, G = 1 : 0] {
  %h = tgl.temp "h" : !tgl.tensor<[N, 4*G, P], f32>
  %s = tgl.temp "s" : !tgl.tensor<[N, G], f32>
  %d = tgl.temp "d" : !tgl.tensor<[N, 4*G, P], f32>
  tgl.parallel (%n = 0 to N, %c = 0 to 4*G, %p = 0 to P) {
    %v = tgl.read %x[%n, %c, %p] : !tgl.tensor<[N, 4*G, P], f32>
    %t = math.tanh %v : f32
    tgl.write %t, %h[%n, %c, %p] : f32, !tgl.tensor<[N, 4*G, P], f32>
  }
  tgl.parallel (%n = 0 to N, %g = 0 to G) {
    %r = tgl.reduce sum (%e = 0 to 4, %p = 0 to P) -> f32 {
      %v = tgl.read %h[%n, 4*%g + %e, %p] : !tgl.tensor<[N, 4*G, P], f32>
      tgl.yield %v : f32
    }
    tgl.write %r, %s[%n, %g] : f32, !tgl.tensor<[N, G], f32>
  }
  tgl.parallel (%n = 0 to N, %g = 0 to G, %e = 0 to 4, %p = 0 to P) {
    %v = tgl.read %h[%n, 4*%g + %e, %p] : !tgl.tensor<[N, 4*G, P], f32>
    %m = tgl.read %s[%n, %g] : !tgl.tensor<[N, G], f32>
    %a = arith.subf %v, %m : f32
    tgl.write %a, %d[%n, 4*%g + %e, %p] : f32, !tgl.tensor<[N, 4*G, P], f32>
  }
  tgl.parallel (%n = 0 to N, %c = 0 to 4*G) {
    %r = tgl.reduce sum (%p = 0 to P) -> f32 {
      %v = tgl.read %d[%n, %c, %p] : !tgl.tensor<[N, 4*G, P], f32>
      tgl.yield %v : f32
    }
    tgl.write %r, %y[%n, %c] : f32, !tgl.tensor<[N, 4*G], f32>
  }
}

// What follows a convolution of several groups has its axes as well, and runs on its sums.
// CHECK-LABEL: tgl.kernel @several_groups
// CHECK-NOT: tgl.temp
// CHECK: tgl.parallel (%g = 0 to G, %o = 0 to 8, %p = 0 to P) {
// CHECK: %[[S:.*]] = tgl.reduce sum (%c = 0 to C)
// CHECK: %[[M:.*]] = arith.maximumf %[[S]]
// CHECK: tgl.write %[[M]], %y[8*%g + %o, %p]
// CHECK-NOT: tgl.launch
tgl.kernel @several_groups(%x: !tgl.tensor<[G, C, P], f32> {tgl.name = "x", tgl.role = "in"},
                           %w: !tgl.tensor<[8*G, C], f32> {tgl.name = "w", tgl.role = "in"},
                           %y: !tgl.tensor<[8*G, P], f32> {tgl.name = "y", tgl.role = "out"})
    sizes [G = 0 : 0, C = 0 : 1, P = 0 : 2] {
  %h = tgl.temp "h" : !tgl.tensor<[8*G, P], f32>
  tgl.parallel (%g = 0 to G, %o = 0 to 8, %p = 0 to P) {
    %s = tgl.reduce sum (%c = 0 to C) -> f32 {
      %v = tgl.read %x[%g, %c, %p] : !tgl.tensor<[G, C, P], f32>
      %u = tgl.read %w[8*%g + %o, %c] : !tgl.tensor<[8*G, C], f32>
      %m = arith.mulf %v, %u : f32
      tgl.yield %m : f32
    }
    tgl.write %s, %h[8*%g + %o, %p] : f32, !tgl.tensor<[8*G, P], f32>
  }
  tgl.parallel (%k = 0 to 8*G, %p = 0 to P) {
    %zero = arith.constant 0.0 : f32
    %v = tgl.read %h[%k, %p] : !tgl.tensor<[8*G, P], f32>
    %m = arith.maximumf %v, %zero : f32
    tgl.write %m, %y[%k, %p] : f32, !tgl.tensor<[8*G, P], f32>
  }
}

// Windows of pooling are digits too, but so short that points would not be neighbours in memory any more.
// CHECK-LABEL: tgl.kernel @windows
// CHECK: tgl.temp "h" : !tgl.tensor<[4*Q], f32>
// CHECK: tgl.parallel (%p = 0 to 4*Q) {
// CHECK: tgl.launch
// CHECK: tgl.parallel (%q = 0 to Q) {
tgl.kernel @windows(%x: !tgl.tensor<[C, 4*Q], f32> {tgl.name = "x", tgl.role = "in"},
                    %y: !tgl.tensor<[Q], f32> {tgl.name = "y", tgl.role = "out"})
    sizes [C = 0 : 0, Q = 1 : 0] {
  %h = tgl.temp "h" : !tgl.tensor<[4*Q], f32>
  tgl.parallel (%p = 0 to 4*Q) {
    %s = tgl.reduce sum (%c = 0 to C) -> f32 {
      %v = tgl.read %x[%c, %p] : !tgl.tensor<[C, 4*Q], f32>
      tgl.yield %v : f32
    }
    tgl.write %s, %h[%p] : f32, !tgl.tensor<[4*Q], f32>
  }
  tgl.parallel (%q = 0 to Q) {
    %m = tgl.reduce max (%r = 0 to 4) -> f32 {
      %v = tgl.read %h[4*%q + %r] : !tgl.tensor<[4*Q], f32>
      tgl.yield %v : f32
    }
    tgl.write %m, %y[%q] : f32, !tgl.tensor<[Q], f32>
  }
}

// Windows that do not overlap read each element once: it is computed there, however much that is.
// CHECK-LABEL: tgl.kernel @apart
// CHECK-NOT: tgl.temp
// CHECK: tgl.reduce sum (%r = 0 to 4)
// CHECK: tgl.read %x[4*%q + %r]
// CHECK: math.exp
tgl.kernel @apart(%x: !tgl.tensor<[4*Q], f32> {tgl.name = "x", tgl.role = "in"},
                  %y: !tgl.tensor<[Q], f32> {tgl.name = "y", tgl.role = "out"}) sizes [Q = 1 : 0] {
  %h = tgl.temp "h" : !tgl.tensor<[4*Q], f32>
  tgl.parallel (%p = 0 to 4*Q) {
    %v = tgl.read %x[%p] : !tgl.tensor<[4*Q], f32>
    %e = math.exp %v : f32
    tgl.write %e, %h[%p] : f32, !tgl.tensor<[4*Q], f32>
  }
  tgl.parallel (%q = 0 to Q) {
    %m = tgl.reduce sum (%r = 0 to 4) -> f32 {
      %v = tgl.read %h[4*%q + %r] : !tgl.tensor<[4*Q], f32>
      tgl.yield %v : f32
    }
    tgl.write %m, %y[%q] : f32, !tgl.tensor<[Q], f32>
  }
}

// Of windows that overlap elements are computed once, and kept.
// CHECK-LABEL: tgl.kernel @together
// CHECK: tgl.temp "h"
tgl.kernel @together(%x: !tgl.tensor<[4*Q], f32> {tgl.name = "x", tgl.role = "in"},
                     %y: !tgl.tensor<[Q], f32> {tgl.name = "y", tgl.role = "out"}) sizes [Q = 1 : 0] {
  %h = tgl.temp "h" : !tgl.tensor<[4*Q], f32>
  tgl.parallel (%p = 0 to 4*Q) {
    %v = tgl.read %x[%p] : !tgl.tensor<[4*Q], f32>
    %e = math.exp %v : f32
    tgl.write %e, %h[%p] : f32, !tgl.tensor<[4*Q], f32>
  }
  tgl.parallel (%q = 0 to Q) {
    %m = tgl.reduce sum (%r = 0 to 4) -> f32 {
      %v = tgl.read %h[3*%q + %r] : !tgl.tensor<[4*Q], f32>
      tgl.yield %v : f32
    }
    tgl.write %m, %y[%q] : f32, !tgl.tensor<[Q], f32>
  }
}

// A result that is filled before it is set (what a function leaves of its rows is 0) and then read at once: the element
// that counts goes through as a value, and nothing but the product is left.
// CHECK-LABEL: tgl.kernel @filled
// CHECK-NOT: tgl.temp
// CHECK: %[[SUM:.*]] = tgl.reduce sum
// CHECK-NOT: tgl.temp
// CHECK: tgl.write %[[SUM]], %y[%{{.*}}, %{{.*}}]
// CHECK-NOT: tgl.write
tgl.kernel @filled(%x: !tgl.tensor<[M, K], f32> {tgl.name = "x", tgl.role = "in"},
                   %w: !tgl.tensor<[N, K], f32> {tgl.name = "w", tgl.role = "in"},
                   %y: !tgl.tensor<[M, N], f32> {tgl.name = "y", tgl.role = "out"})
    sizes [M = 0 : 0, K = 0 : 1, N = 1 : 0] {
  %zero = arith.constant 0.0 : f32
  %h = tgl.temp "h" : !tgl.tensor<[M, N], f32>
  tgl.parallel (%i = 0 to M, %j = 0 to N) {
    tgl.write %zero, %h[%i, %j] : f32, !tgl.tensor<[M, N], f32>
  }
  tgl.parallel (%i = 0 to M, %j = 0 to N) {
    %s = tgl.reduce sum (%k = 0 to K) -> f32 {
      %v = tgl.read %x[%i, %k] : !tgl.tensor<[M, K], f32>
      %u = tgl.read %w[%j, %k] : !tgl.tensor<[N, K], f32>
      %m = arith.mulf %v, %u : f32
      tgl.yield %m : f32
    }
    tgl.write %s, %h[%i, %j] : f32, !tgl.tensor<[M, N], f32>
  }
  tgl.parallel (%i = 0 to M, %j = 0 to N) {
    %v = tgl.read %h[%i, %j] : !tgl.tensor<[M, N], f32>
    tgl.write %v, %y[%i, %j] : f32, !tgl.tensor<[M, N], f32>
  }
}
