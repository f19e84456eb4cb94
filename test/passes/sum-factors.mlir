// RUN: tegula-opt %s --tgl-sum-factors --tgl-counters 2>&1 | FileCheck %s

// A convolution of one point, a bias, a scale, and windows of two of its results: the image is summed first, and what is
// multiplied is half as much.
// CHECK-LABEL: tgl.kernel @pooled
// CHECK-NOT: tgl.temp "t"
// CHECK: %[[SUMS:.*]] = tgl.temp "sums" : !tgl.tensor<[16, 512], f32>
// CHECK-NEXT: tgl.parallel (%c = 0 to 16, %p = 0 to 512) {
// CHECK-NEXT: %[[SUM:.*]] = tgl.reduce sum (%r = 0 to 2) -> f32 {
// CHECK-NEXT: tgl.read %x[%c, 2*%p + %r]
// CHECK: tgl.write %[[SUM]], %[[SUMS]][%c, %p]
// CHECK: tgl.parallel (%o = 0 to 64, %p = 0 to 512) {
// CHECK: %[[PRODUCT:.*]] = tgl.reduce sum (%c = 0 to 16) -> f32 attributes {precision = "tf32"} {
// CHECK-DAG: %[[STILL:.*]] = tgl.read %w[%o, %c]
// CHECK-DAG: %[[MOVING:.*]] = tgl.read %[[SUMS]][%c, %p]
// CHECK: arith.mulf %[[MOVING]], %[[STILL]]
// CHECK: %[[BIASES:.*]] = arith.mulf %{{.*}}, %cst{{.*}} : f32
// CHECK: %[[ADDED:.*]] = arith.addf %[[PRODUCT]], %[[BIASES]]
// CHECK: %[[SCALED:.*]] = arith.mulf %[[ADDED]], %
// CHECK: tgl.write %[[SCALED]], %y[%o, %p]
tgl.kernel @pooled(%x: !tgl.tensor<[16, 1024], f32> {tgl.name = "x", tgl.role = "in"},
                   %w: !tgl.tensor<[64, 16], f32> {tgl.name = "w", tgl.role = "in"},
                   %b: !tgl.tensor<[64], f32> {tgl.name = "b", tgl.role = "in"},
                   %y: !tgl.tensor<[64, 512], f32> {tgl.name = "y", tgl.role = "out"}) {
  %t = tgl.temp "t" : !tgl.tensor<[64, 1024], f32>
  tgl.parallel (%o = 0 to 64, %p = 0 to 1024) {
    %s = tgl.reduce sum (%c = 0 to 16) -> f32 attributes {precision = "tf32"} {
      %f = tgl.read %w[%o, %c] : !tgl.tensor<[64, 16], f32>
      %g = tgl.read %x[%c, %p] : !tgl.tensor<[16, 1024], f32>
      %m = arith.mulf %f, %g fastmath<contract> : f32
      tgl.yield %m : f32
    }
    %v = tgl.read %b[%o] : !tgl.tensor<[64], f32>
    %a = arith.addf %s, %v fastmath<contract> : f32
    %n = arith.mulf %v, %a fastmath<contract> : f32
    tgl.write %n, %t[%o, %p] : f32, !tgl.tensor<[64, 1024], f32>
  }
  tgl.parallel (%o = 0 to 64, %p = 0 to 512) {
    %s = tgl.reduce sum (%r = 0 to 2) -> f32 {
      %v = tgl.read %t[%o, 2*%p + %r] : !tgl.tensor<[64, 1024], f32>
      tgl.yield %v : f32
    }
    tgl.write %s, %y[%o, %p] : f32, !tgl.tensor<[64, 512], f32>
  }
}

// Rows of weights are as long as their neighbours, of which four are one sum; so are their biases.
// CHECK-LABEL: tgl.kernel @columns
// CHECK: %[[SUMS:.*]] = tgl.temp "sums" : !tgl.tensor<[64, 512], f32>
// CHECK-NEXT: tgl.parallel (%j = 0 to 64, %c = 0 to 512) {
// CHECK: tgl.read %w[4*%j + %r, %c]
// CHECK: tgl.parallel (%i = 0 to 4096, %j = 0 to 64) {
// CHECK: %[[PRODUCT:.*]] = tgl.reduce sum (%c = 0 to 512)
// CHECK: %[[BIASES:.*]] = tgl.reduce sum (%r = 0 to 4) -> f32 {
// CHECK-NEXT: tgl.read %b[4*%j + %r]
// CHECK: arith.subf %[[PRODUCT]], %[[BIASES]]
tgl.kernel @columns(%x: !tgl.tensor<[4096, 512], bf16> {tgl.name = "x", tgl.role = "in"},
                    %w: !tgl.tensor<[256, 512], f32> {tgl.name = "w", tgl.role = "in"},
                    %b: !tgl.tensor<[256], f32> {tgl.name = "b", tgl.role = "in"},
                    %y: !tgl.tensor<[4096, 64], f32> {tgl.name = "y", tgl.role = "out"}) {
  %t = tgl.temp "t" : !tgl.tensor<[4096, 256], f32>
  tgl.parallel (%i = 0 to 4096, %o = 0 to 256) {
    %s = tgl.reduce sum (%c = 0 to 512) -> f32 {
      %f = tgl.read %x[%i, %c] : !tgl.tensor<[4096, 512], bf16>
      %g = tgl.read %w[%o, %c] : !tgl.tensor<[256, 512], f32>
      %m = arith.mulf %f, %g fastmath<contract> : f32
      tgl.yield %m : f32
    }
    %v = tgl.read %b[%o] : !tgl.tensor<[256], f32>
    %a = arith.subf %s, %v fastmath<contract> : f32
    tgl.write %a, %t[%i, %o] : f32, !tgl.tensor<[4096, 256], f32>
  }
  tgl.parallel (%i = 0 to 4096, %j = 0 to 64) {
    %s = tgl.reduce sum (%r = 0 to 4) -> f32 {
      %v = tgl.read %t[%i, 4*%j + %r] : !tgl.tensor<[4096, 256], f32>
      tgl.yield %v : f32
    }
    tgl.write %s, %y[%i, %j] : f32, !tgl.tensor<[4096, 64], f32>
  }
}

// The largest of products is no product with a largest number.
// CHECK-LABEL: tgl.kernel @largest
// CHECK-NOT: tgl.temp "sums"
tgl.kernel @largest(%x: !tgl.tensor<[16, 1024], f32> {tgl.name = "x", tgl.role = "in"},
     %w: !tgl.tensor<[64, 16], f32> {tgl.name = "w", tgl.role = "in"},
     %y: !tgl.tensor<[64, 512], f32> {tgl.name = "y", tgl.role = "out"}) {
  %zero = arith.constant 0.0 : f32
  %t = tgl.temp "t" : !tgl.tensor<[64, 1024], f32>
  tgl.parallel (%o = 0 to 64, %p = 0 to 1024) {
    %s = tgl.reduce sum (%c = 0 to 16) -> f32 {
      %f = tgl.read %w[%o, %c] : !tgl.tensor<[64, 16], f32>
      %g = tgl.read %x[%c, %p] : !tgl.tensor<[16, 1024], f32>
      %m = arith.mulf %f, %g fastmath<contract> : f32
      tgl.yield %m : f32
    }
    tgl.write %s, %t[%o, %p] : f32, !tgl.tensor<[64, 1024], f32>
  }
  tgl.parallel (%o = 0 to 64, %p = 0 to 512) {
    %s = tgl.reduce max (%r = 0 to 2) -> f32 {
      %v = tgl.read %t[%o, 2*%p + %r] : !tgl.tensor<[64, 1024], f32>
      tgl.yield %v : f32
    }
    tgl.write %s, %y[%o, %p] : f32, !tgl.tensor<[64, 512], f32>
  }
}

// Products of 16 bits are exact, and sums of such numbers are none.
// CHECK-LABEL: tgl.kernel @bits
// CHECK-NOT: tgl.temp "sums"
tgl.kernel @bits(%x: !tgl.tensor<[16, 1024], bf16> {tgl.name = "x", tgl.role = "in"},
     %w: !tgl.tensor<[64, 16], f32> {tgl.name = "w", tgl.role = "in"},
     %y: !tgl.tensor<[64, 512], f32> {tgl.name = "y", tgl.role = "out"}) {
  %zero = arith.constant 0.0 : f32
  %t = tgl.temp "t" : !tgl.tensor<[64, 1024], f32>
  tgl.parallel (%o = 0 to 64, %p = 0 to 1024) {
    %s = tgl.reduce sum (%c = 0 to 16) -> f32 {
      %f = tgl.read %w[%o, %c] : !tgl.tensor<[64, 16], f32>
      %g = tgl.read %x[%c, %p] : !tgl.tensor<[16, 1024], bf16>
      %m = arith.mulf %f, %g fastmath<contract> : f32
      tgl.yield %m : f32
    }
    tgl.write %s, %t[%o, %p] : f32, !tgl.tensor<[64, 1024], f32>
  }
  tgl.parallel (%o = 0 to 64, %p = 0 to 512) {
    %s = tgl.reduce sum (%r = 0 to 2) -> f32 {
      %v = tgl.read %t[%o, 2*%p + %r] : !tgl.tensor<[64, 1024], f32>
      tgl.yield %v : f32
    }
    tgl.write %s, %y[%o, %p] : f32, !tgl.tensor<[64, 512], f32>
  }
}

// Each product is rounded.
// CHECK-LABEL: tgl.kernel @rounded
// CHECK-NOT: tgl.temp "sums"
tgl.kernel @rounded(%x: !tgl.tensor<[16, 1024], f32> {tgl.name = "x", tgl.role = "in"},
     %w: !tgl.tensor<[64, 16], f32> {tgl.name = "w", tgl.role = "in"},
     %y: !tgl.tensor<[64, 512], f32> {tgl.name = "y", tgl.role = "out"}) {
  %zero = arith.constant 0.0 : f32
  %t = tgl.temp "t" : !tgl.tensor<[64, 1024], bf16>
  tgl.parallel (%o = 0 to 64, %p = 0 to 1024) {
    %s = tgl.reduce sum (%c = 0 to 16) -> f32 {
      %f = tgl.read %w[%o, %c] : !tgl.tensor<[64, 16], f32>
      %g = tgl.read %x[%c, %p] : !tgl.tensor<[16, 1024], f32>
      %m = arith.mulf %f, %g fastmath<contract> : f32
      tgl.yield %m : f32
    }
    tgl.write %s, %t[%o, %p] : f32, !tgl.tensor<[64, 1024], bf16>
  }
  tgl.parallel (%o = 0 to 64, %p = 0 to 512) {
    %s = tgl.reduce sum (%r = 0 to 2) -> f32 {
      %v = tgl.read %t[%o, 2*%p + %r] : !tgl.tensor<[64, 1024], bf16>
      tgl.yield %v : f32
    }
    tgl.write %s, %y[%o, %p] : f32, !tgl.tensor<[64, 512], f32>
  }
}

// Sums of 64 channels for 8 take longer than the products that they save.
// CHECK-LABEL: tgl.kernel @few
// CHECK-NOT: tgl.temp "sums"
tgl.kernel @few(%x: !tgl.tensor<[64, 1024], f32> {tgl.name = "x", tgl.role = "in"},
     %w: !tgl.tensor<[8, 64], f32> {tgl.name = "w", tgl.role = "in"},
     %y: !tgl.tensor<[8, 512], f32> {tgl.name = "y", tgl.role = "out"}) {
  %zero = arith.constant 0.0 : f32
  %t = tgl.temp "t" : !tgl.tensor<[8, 1024], f32>
  tgl.parallel (%o = 0 to 8, %p = 0 to 1024) {
    %s = tgl.reduce sum (%c = 0 to 64) -> f32 {
      %f = tgl.read %w[%o, %c] : !tgl.tensor<[8, 64], f32>
      %g = tgl.read %x[%c, %p] : !tgl.tensor<[64, 1024], f32>
      %m = arith.mulf %f, %g fastmath<contract> : f32
      tgl.yield %m : f32
    }
    tgl.write %s, %t[%o, %p] : f32, !tgl.tensor<[8, 1024], f32>
  }
  tgl.parallel (%o = 0 to 8, %p = 0 to 512) {
    %s = tgl.reduce sum (%r = 0 to 2) -> f32 {
      %v = tgl.read %t[%o, 2*%p + %r] : !tgl.tensor<[8, 1024], f32>
      tgl.yield %v : f32
    }
    tgl.write %s, %y[%o, %p] : f32, !tgl.tensor<[8, 512], f32>
  }
}

// The image is another when windows are summed.
// CHECK-LABEL: tgl.kernel @changed
// CHECK-NOT: tgl.temp "sums"
tgl.kernel @changed(%x: !tgl.tensor<[16, 1024], f32> {tgl.name = "x", tgl.role = "inout"},
     %w: !tgl.tensor<[64, 16], f32> {tgl.name = "w", tgl.role = "in"},
     %y: !tgl.tensor<[64, 512], f32> {tgl.name = "y", tgl.role = "out"}) {
  %zero = arith.constant 0.0 : f32
  %t = tgl.temp "t" : !tgl.tensor<[64, 1024], f32>
  tgl.parallel (%o = 0 to 64, %p = 0 to 1024) {
    %s = tgl.reduce sum (%c = 0 to 16) -> f32 {
      %f = tgl.read %w[%o, %c] : !tgl.tensor<[64, 16], f32>
      %g = tgl.read %x[%c, %p] : !tgl.tensor<[16, 1024], f32>
      %m = arith.mulf %f, %g fastmath<contract> : f32
      tgl.yield %m : f32
    }
    tgl.write %s, %t[%o, %p] : f32, !tgl.tensor<[64, 1024], f32>
  }
  tgl.parallel (%c = 0 to 16, %p = 0 to 1024) {
    tgl.write %zero, %x[%c, %p] : f32, !tgl.tensor<[16, 1024], f32>
  }
  tgl.parallel (%o = 0 to 64, %p = 0 to 512) {
    %s = tgl.reduce sum (%r = 0 to 2) -> f32 {
      %v = tgl.read %t[%o, 2*%p + %r] : !tgl.tensor<[64, 1024], f32>
      tgl.yield %v : f32
    }
    tgl.write %s, %y[%o, %p] : f32, !tgl.tensor<[64, 512], f32>
  }
}

// All products are needed.
// CHECK-LABEL: tgl.kernel @shared
// CHECK-NOT: tgl.temp "sums"
tgl.kernel @shared(%x: !tgl.tensor<[16, 1024], f32> {tgl.name = "x", tgl.role = "in"},
     %w: !tgl.tensor<[64, 16], f32> {tgl.name = "w", tgl.role = "in"},
     %y: !tgl.tensor<[64, 512], f32> {tgl.name = "y", tgl.role = "out"},
     %z: !tgl.tensor<[64, 1024], f32> {tgl.name = "z", tgl.role = "out"}) {
  %zero = arith.constant 0.0 : f32
  %t = tgl.temp "t" : !tgl.tensor<[64, 1024], f32>
  tgl.parallel (%o = 0 to 64, %p = 0 to 1024) {
    %s = tgl.reduce sum (%c = 0 to 16) -> f32 {
      %f = tgl.read %w[%o, %c] : !tgl.tensor<[64, 16], f32>
      %g = tgl.read %x[%c, %p] : !tgl.tensor<[16, 1024], f32>
      %m = arith.mulf %f, %g fastmath<contract> : f32
      tgl.yield %m : f32
    }
    tgl.write %s, %t[%o, %p] : f32, !tgl.tensor<[64, 1024], f32>
  }
  tgl.parallel (%o = 0 to 64, %p = 0 to 1024) {
    %v = tgl.read %t[%o, %p] : !tgl.tensor<[64, 1024], f32>
    tgl.write %v, %z[%o, %p] : f32, !tgl.tensor<[64, 1024], f32>
  }
  tgl.parallel (%o = 0 to 64, %p = 0 to 512) {
    %s = tgl.reduce sum (%r = 0 to 2) -> f32 {
      %v = tgl.read %t[%o, 2*%p + %r] : !tgl.tensor<[64, 1024], f32>
      tgl.yield %v : f32
    }
    tgl.write %s, %y[%o, %p] : f32, !tgl.tensor<[64, 512], f32>
  }
}

// Means of all points are begun in the product's tiles, which takes less than sums of nine taps.
// CHECK-LABEL: tgl.kernel @whole
// CHECK-NOT: tgl.temp "sums"
tgl.kernel @whole(%x: !tgl.tensor<[16, 1032], f32> {tgl.name = "x", tgl.role = "in"},
                  %w: !tgl.tensor<[64, 16, 9], f32> {tgl.name = "w", tgl.role = "in"},
                  %y: !tgl.tensor<[64], f32> {tgl.name = "y", tgl.role = "out"}) {
  %t = tgl.temp "t" : !tgl.tensor<[64, 1024], f32>
  tgl.parallel (%o = 0 to 64, %p = 0 to 1024) {
    %s = tgl.reduce sum (%c = 0 to 16, %k = 0 to 9) -> f32 {
      %f = tgl.read %w[%o, %c, %k] : !tgl.tensor<[64, 16, 9], f32>
      %g = tgl.read %x[%c, %p + %k] : !tgl.tensor<[16, 1032], f32>
      %m = arith.mulf %f, %g fastmath<contract> : f32
      tgl.yield %m : f32
    }
    tgl.write %s, %t[%o, %p] : f32, !tgl.tensor<[64, 1024], f32>
  }
  tgl.parallel (%o = 0 to 64) {
    %s = tgl.reduce sum (%p = 0 to 1024) -> f32 {
      %v = tgl.read %t[%o, %p] : !tgl.tensor<[64, 1024], f32>
      tgl.yield %v : f32
    }
    tgl.write %s, %y[%o] : f32, !tgl.tensor<[64], f32>
  }
}

// CHECK: tgl-sum-factors: 2 factors summed first
