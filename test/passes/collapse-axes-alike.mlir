// RUN: tegula-opt %s --tgl-collapse-axes=alike | FileCheck %s

// The mean of a group of channels and what follows from it, with a weight for each channel: rows and columns of the
// image are one axis of both. Channels stay an axis also of the mean, so that threads take the same elements in both.
// CHECK-LABEL: tgl.kernel @group
// CHECK: tgl.parallel (%n = 0 to N)
// CHECK: tgl.reduce sum (%{{.*}} = 0 to C, %{{.*}} = 0 to P*Q)
// CHECK: tgl.parallel (%{{.*}} = 0 to C, %{{.*}} = 0 to P*Q)
tgl.kernel @group(%x: !tgl.tensor<[N, C, P, Q], f32> {tgl.name = "x", tgl.role = "in"},
                  %w: !tgl.tensor<[C], f32> {tgl.name = "w", tgl.role = "in"},
                  %y: !tgl.tensor<[N, C, P, Q], f32> {tgl.name = "y", tgl.role = "out"})
    sizes [N = 0 : 0, C = 0 : 1, P = 0 : 2, Q = 0 : 3] {
  tgl.parallel (%n = 0 to N) {
    %s = tgl.reduce sum (%c = 0 to C, %p = 0 to P, %q = 0 to Q) -> f32 {
      %v = tgl.read %x[%n, %c, %p, %q] : !tgl.tensor<[N, C, P, Q], f32>
      tgl.yield %v : f32
    }
    tgl.parallel (%c = 0 to C, %p = 0 to P, %q = 0 to Q) {
      %v = tgl.read %x[%n, %c, %p, %q] : !tgl.tensor<[N, C, P, Q], f32>
      %g = tgl.read %w[%c] : !tgl.tensor<[C], f32>
      %d = arith.subf %v, %s : f32
      %e = arith.mulf %d, %g : f32
      tgl.write %e, %y[%n, %c, %p, %q] : f32, !tgl.tensor<[N, C, P, Q], f32>
    }
  }
}

// Tiles are made of a product's axes.
// CHECK-LABEL: tgl.kernel @product
// CHECK: tgl.parallel (%b = 0 to B, %i = 0 to M, %j = 0 to N)
tgl.kernel @product(%x: !tgl.tensor<[B, M, K], f32> {tgl.name = "x", tgl.role = "in"},
                    %w: !tgl.tensor<[N, K], f32> {tgl.name = "w", tgl.role = "in"},
                    %y: !tgl.tensor<[B, M, N], f32> {tgl.name = "y", tgl.role = "out"})
    sizes [B = 0 : 0, M = 0 : 1, K = 0 : 2, N = 1 : 0] {
  tgl.parallel (%b = 0 to B, %i = 0 to M, %j = 0 to N) {
    %s = tgl.reduce sum (%k = 0 to K) -> f32 {
      %v = tgl.read %x[%b, %i, %k] : !tgl.tensor<[B, M, K], f32>
      %u = tgl.read %w[%j, %k] : !tgl.tensor<[N, K], f32>
      %p = arith.mulf %v, %u : f32
      tgl.yield %p : f32
    }
    tgl.write %s, %y[%b, %i, %j] : f32, !tgl.tensor<[B, M, N], f32>
  }
}

// Windows that do not overlap leave the axes that they move along, and those around, as they are: threads take tiles of them.
// CHECK-LABEL: tgl.kernel @windows
// CHECK: tgl.parallel (%n = 0 to N, %c = 0 to C, %p = 0 to P, %q = 0 to Q)
tgl.kernel @windows(%x: !tgl.tensor<[N, C, 2*P, 2*Q], f32> {tgl.name = "x", tgl.role = "in"},
                    %y: !tgl.tensor<[N, C, P, Q], f32> {tgl.name = "y", tgl.role = "out"})
    sizes [N = 0 : 0, C = 0 : 1, P = 1 : 2, Q = 1 : 3] {
  tgl.parallel (%n = 0 to N, %c = 0 to C, %p = 0 to P, %q = 0 to Q) {
    %m = tgl.reduce max (%r = 0 to 2, %s = 0 to 2) -> f32 {
      %v = tgl.read %x[%n, %c, 2*%p + %r, 2*%q + %s] : !tgl.tensor<[N, C, 2*P, 2*Q], f32>
      tgl.yield %v : f32
    }
    tgl.write %m, %y[%n, %c, %p, %q] : f32, !tgl.tensor<[N, C, P, Q], f32>
  }
}
