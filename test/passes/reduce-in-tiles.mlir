// RUN: tegula-opt %s --tgl-reduce-in-tiles --tgl-counters --split-input-file 2>&1 | FileCheck %s

// A mean over pixels: a tile has 128 columns, so there is a part of each image and channel for as many pixels. What the
// reduction makes of its terms is computed behind the product, which is not written.
// CHECK-LABEL: tgl.kernel @mean
// CHECK-NOT: tgl.temp "c"
// CHECK: %[[PART:.*]] = tgl.temp "part" : !tgl.tensor<[16, 64, 8, 1], f32>
// CHECK: tgl.parallel (%[[A:.*]] = 0 to 16, %[[B:.*]] = 0 to 64, %[[C:.*]] = 0 to 8, %[[D:.*]] = 0 to 1)
// CHECK: tgl.write %{{.*}}, %[[PART]][%[[A]], %[[B]], %[[C]], %[[D]]]
// CHECK: tgl.parallel (%n = 0 to 16, %o = 0 to 64, %p = 0 to 1024)
// CHECK: %[[S:.*]] = tgl.reduce sum
// CHECK: %[[V:.*]] = math.absf %[[S]]
// CHECK: tgl.write add %[[V]], %[[PART]][%n, %o, %p floordiv 128, 0] {part = array<i64: 2>}
// CHECK: tgl.parallel (%n = 0 to 16, %o = 0 to 64)
// CHECK: %[[W:.*]] = tgl.reduce sum (%[[C:.*]] = 0 to 8, %[[D:.*]] = 0 to 1)
// CHECK: tgl.read %[[PART]][%n, %o, %[[C]], %[[D]]]
// CHECK: tgl.write %[[W]], %y[%n, %o]
tgl.kernel @mean(%x: !tgl.tensor<[16, 64, 1024], f32> {tgl.name = "x", tgl.role = "in"},
                 %w: !tgl.tensor<[64, 64], f32> {tgl.name = "w", tgl.role = "in"},
                 %y: !tgl.tensor<[16, 64], f32> {tgl.name = "y", tgl.role = "out"}) {
  %c = tgl.temp "c" : !tgl.tensor<[16, 64, 1024], f32>
  tgl.launch "c" {
    tgl.parallel (%n = 0 to 16, %o = 0 to 64, %p = 0 to 1024) {
      %s = tgl.reduce sum (%k = 0 to 64) -> f32 {
        %a = tgl.read %x[%n, %k, %p] : !tgl.tensor<[16, 64, 1024], f32>
        %b = tgl.read %w[%o, %k] : !tgl.tensor<[64, 64], f32>
        %m = arith.mulf %a, %b : f32
        tgl.yield %m : f32
      }
      tgl.write %s, %c[%n, %o, %p] : f32, !tgl.tensor<[16, 64, 1024], f32>
    }
  }
  tgl.launch "y" {
    tgl.parallel (%n = 0 to 16, %o = 0 to 64) {
      %s = tgl.reduce sum (%p = 0 to 1024) -> f32 {
        %v = tgl.read %c[%n, %o, %p] : !tgl.tensor<[16, 64, 1024], f32>
        %m = math.absf %v : f32
        tgl.yield %m : f32
      }
      tgl.write %s, %y[%n, %o] : f32, !tgl.tensor<[16, 64], f32>
    }
  }
}

// -----

// Sums of rows and of columns of one product. Of rows, a thread has 32 below each other.
// CHECK-LABEL: tgl.kernel @both
// CHECK: tgl.write add %[[S:.*]], %{{.*}}[%i, %j floordiv [[COLUMNS:[0-9]+]], 0] {part = array<i64: 1>}
// CHECK: tgl.write add %[[S]], %{{.*}}[0, %i floordiv {{[0-9]+}}, %j] {part = array<i64: 0>}
tgl.kernel @both(%x: !tgl.tensor<[500, 64], f32> {tgl.name = "x", tgl.role = "in"},
                 %w: !tgl.tensor<[64, 500], f32> {tgl.name = "w", tgl.role = "in"},
                 %y: !tgl.tensor<[500], f32> {tgl.name = "y", tgl.role = "out"},
                 %z: !tgl.tensor<[500], f32> {tgl.name = "z", tgl.role = "out"}) {
  %c = tgl.temp "c" : !tgl.tensor<[500, 500], f32>
  tgl.launch "c" {
    tgl.parallel (%i = 0 to 500, %j = 0 to 500) {
      %s = tgl.reduce sum (%k = 0 to 64) -> f32 {
        %a = tgl.read %x[%i, %k] : !tgl.tensor<[500, 64], f32>
        %b = tgl.read %w[%k, %j] : !tgl.tensor<[64, 500], f32>
        %m = arith.mulf %a, %b : f32
        tgl.yield %m : f32
      }
      tgl.write %s, %c[%i, %j] : f32, !tgl.tensor<[500, 500], f32>
    }
  }
  tgl.launch "z" {
    tgl.parallel (%j = 0 to 500) {
      %s = tgl.reduce sum (%i = 0 to 500) -> f32 {
        %v = tgl.read %c[%i, %j] : !tgl.tensor<[500, 500], f32>
        tgl.yield %v : f32
      }
      tgl.write %s, %z[%j] : f32, !tgl.tensor<[500], f32>
    }
  }
  tgl.launch "y" {
    tgl.parallel (%i = 0 to 500) {
      %s = tgl.reduce sum (%j = 0 to 500) -> f32 {
        %v = tgl.read %c[%i, %j] : !tgl.tensor<[500, 500], f32>
        tgl.yield %v : f32
      }
      tgl.write %s, %y[%i] : f32, !tgl.tensor<[500], f32>
    }
  }
}

// -----

// The smallest of each column: parts start at infinity.
// CHECK-LABEL: tgl.kernel @least
// CHECK: %[[INF:.*]] = arith.constant 0x7F800000 : f32
// CHECK: tgl.write %[[INF]], %{{.*}} : f32
// CHECK: tgl.write min %{{.*}}, %{{.*}}[0, %i floordiv {{[0-9]+}}, %j] {part = array<i64: 0>}
// CHECK: tgl.reduce min
tgl.kernel @least(%x: !tgl.tensor<[500, 64], f32> {tgl.name = "x", tgl.role = "in"},
                  %w: !tgl.tensor<[64, 500], f32> {tgl.name = "w", tgl.role = "in"},
                  %z: !tgl.tensor<[500], f32> {tgl.name = "z", tgl.role = "out"}) {
  %c = tgl.temp "c" : !tgl.tensor<[500, 500], f32>
  tgl.launch "c" {
    tgl.parallel (%i = 0 to 500, %j = 0 to 500) {
      %s = tgl.reduce sum (%k = 0 to 64) -> f32 {
        %a = tgl.read %x[%i, %k] : !tgl.tensor<[500, 64], f32>
        %b = tgl.read %w[%k, %j] : !tgl.tensor<[64, 500], f32>
        %m = arith.mulf %a, %b : f32
        tgl.yield %m : f32
      }
      tgl.write %s, %c[%i, %j] : f32, !tgl.tensor<[500, 500], f32>
    }
  }
  tgl.launch "z" {
    tgl.parallel (%j = 0 to 500) {
      %s = tgl.reduce min (%i = 0 to 500) -> f32 {
        %v = tgl.read %c[%i, %j] : !tgl.tensor<[500, 500], f32>
        tgl.yield %v : f32
      }
      tgl.write %s, %z[%j] : f32, !tgl.tensor<[500], f32>
    }
  }
}

// -----

// What somebody else reads is written, and then read again. So it is where a kernel asks for one order of sums.
// CHECK-LABEL: tgl.kernel @needed
// CHECK-NOT: {part =
// CHECK: tgl.read %c[%i, %j]
tgl.kernel @needed(%x: !tgl.tensor<[500, 64], f32> {tgl.name = "x", tgl.role = "in"},
                   %w: !tgl.tensor<[64, 500], f32> {tgl.name = "w", tgl.role = "in"},
                   %y: !tgl.tensor<[500], f32> {tgl.name = "y", tgl.role = "out"},
                   %z: !tgl.tensor<[500, 500], f32> {tgl.name = "z", tgl.role = "out"}) {
  %c = tgl.temp "c" : !tgl.tensor<[500, 500], f32>
  tgl.launch "c" {
    tgl.parallel (%i = 0 to 500, %j = 0 to 500) {
      %s = tgl.reduce sum (%k = 0 to 64) -> f32 {
        %a = tgl.read %x[%i, %k] : !tgl.tensor<[500, 64], f32>
        %b = tgl.read %w[%k, %j] : !tgl.tensor<[64, 500], f32>
        %m = arith.mulf %a, %b : f32
        tgl.yield %m : f32
      }
      tgl.write %s, %c[%i, %j] : f32, !tgl.tensor<[500, 500], f32>
    }
  }
  tgl.launch "y" {
    tgl.parallel (%i = 0 to 500) {
      %s = tgl.reduce sum (%j = 0 to 500) -> f32 {
        %v = tgl.read %c[%i, %j] : !tgl.tensor<[500, 500], f32>
        tgl.yield %v : f32
      }
      tgl.write %s, %y[%i] : f32, !tgl.tensor<[500], f32>
    }
  }
  tgl.launch "z" {
    tgl.parallel (%i = 0 to 500, %j = 0 to 500) {
      %v = tgl.read %c[%i, %j] : !tgl.tensor<[500, 500], f32>
      tgl.write %v, %z[%i, %j] : f32, !tgl.tensor<[500, 500], f32>
    }
  }
}

// CHECK: tgl-reduce-in-tiles: 4 reductions begun in tiles
