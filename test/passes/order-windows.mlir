// RUN: tegula-opt %s --tgl-order-windows=target=sm_90a:no-wgmma --tgl-counters 2>&1 | FileCheck %s --check-prefixes=CHECK,COUNTED

// Where a tile's own launch brings factors into order, few weights stay as they are.
// RUN: tegula-opt %s --tgl-order-windows | FileCheck %s --check-prefix=FEW
// RUN: tegula-opt %s --tgl-order-windows=tensor-tile=64x64 | FileCheck %s
// FEW-LABEL: tgl.kernel @padded
// FEW-NOT: tgl.temp
// FEW: tgl.reduce sum (%{{.*}} = 0 to 48, %{{.*}} = 0 to 3, %{{.*}} = 0 to 3)

// A convolution with a margin: sums run over taps, then over a run of channels, and weights lie in that order.
// CHECK-LABEL: tgl.kernel @padded
// CHECK: %[[PACKED:.*]] = tgl.temp "packed" : !tgl.tensor<[64, 3, 3, 3, 16], f32>
// CHECK: tgl.parallel (%[[O:.*]] = 0 to 64, %[[CO:.*]] = 0 to 3, %[[R:.*]] = 0 to 3, %[[S:.*]] = 0 to 3, %[[C:.*]] = 0 to 16)
// CHECK: %[[W:.*]] = tgl.read %w[%[[O]], 16*%[[CO]] + %[[C]], %[[R]], %[[S]]]
// CHECK: tgl.write %[[W]], %[[PACKED]][%[[O]], %[[CO]], %[[R]], %[[S]], %[[C]]]
// CHECK: tgl.parallel (%[[N:.*]] = 0 to 8, %[[O:.*]] = 0 to 64, %[[P:.*]] = 0 to 64, %[[Q:.*]] = 0 to 64)
// CHECK: tgl.reduce sum (%[[CO:.*]] = 0 to 3, %[[R:.*]] = 0 to 3, %[[S:.*]] = 0 to 3, %[[C:.*]] = 0 to 16)
// CHECK: tgl.read %x[%[[N]], 16*%[[CO]] + %[[C]], %[[P]] + %[[R]] - 1, %[[Q]] + %[[S]] - 1] fill
// CHECK: tgl.read %[[PACKED]][%[[O]], %[[CO]], %[[R]], %[[S]], %[[C]]]
tgl.kernel @padded(%x: !tgl.tensor<[8, 48, 64, 64], f32> {tgl.name = "x", tgl.role = "in"},
                   %w: !tgl.tensor<[64, 48, 3, 3], f32> {tgl.name = "w", tgl.role = "in"},
                   %y: !tgl.tensor<[8, 64, 64, 64], f32> {tgl.name = "y", tgl.role = "out"}) {
  %zero = arith.constant 0.0 : f32
  tgl.launch "y" {
    tgl.parallel (%n = 0 to 8, %o = 0 to 64, %p = 0 to 64, %q = 0 to 64) {
      %s = tgl.reduce sum (%c = 0 to 48, %r = 0 to 3, %t = 0 to 3) -> f32 {
        %a = tgl.read %x[%n, %c, %p + %r - 1, %q + %t - 1] fill %zero : !tgl.tensor<[8, 48, 64, 64], f32>
        %b = tgl.read %w[%o, %c, %r, %t] : !tgl.tensor<[64, 48, 3, 3], f32>
        %m = arith.mulf %a, %b : f32
        tgl.yield %m : f32
      }
      tgl.write %s, %y[%n, %o, %p, %q] : f32, !tgl.tensor<[8, 64, 64, 64], f32>
    }
  }
}

// What is computed of a weight is computed once; halves stay halves.
// CHECK-LABEL: tgl.kernel @computed
// CHECK: tgl.temp "packed" : !tgl.tensor<[64, 3, 32], f16>
// CHECK: tgl.reduce sum (%{{.*}} = 0 to 3, %{{.*}} = 0 to 32)
// CHECK-NOT: math.tanh
// CHECK: tgl.write
tgl.kernel @computed(%x: !tgl.tensor<[64, 32, 1024], f16> {tgl.name = "x", tgl.role = "in"},
                     %w: !tgl.tensor<[64, 32, 3], f32> {tgl.name = "w", tgl.role = "in"},
                     %y: !tgl.tensor<[64, 64, 1024], f32> {tgl.name = "y", tgl.role = "out"}) {
  %zero = arith.constant 0.0 : f32
  tgl.launch "y" {
    tgl.parallel (%n = 0 to 64, %o = 0 to 64, %q = 0 to 1024) {
      %s = tgl.reduce sum (%c = 0 to 32, %t = 0 to 3) -> f32 {
        %a = tgl.read %x[%n, %c, %q + %t - 1] fill %zero : !tgl.tensor<[64, 32, 1024], f16>
        %b = tgl.read %w[%o, %c, %t] : !tgl.tensor<[64, 32, 3], f32>
        %h = math.tanh %b : f32
        %r = tgl.convert %h to f16 : f32 -> f32
        %m = arith.mulf %a, %r : f32
        tgl.yield %m : f32
      }
      tgl.write %s, %y[%n, %o, %q] : f32, !tgl.tensor<[64, 64, 1024], f32>
    }
  }
}

// Three channels have no run, small products are not worth another launch, and a plain product has no windows.
// CHECK-LABEL: tgl.kernel @colors
// CHECK-NOT: tgl.temp
tgl.kernel @colors(%x: !tgl.tensor<[64, 3, 4096], f32> {tgl.name = "x", tgl.role = "in"},
                   %w: !tgl.tensor<[64, 3, 11], f32> {tgl.name = "w", tgl.role = "in"},
                   %y: !tgl.tensor<[64, 64, 4096], f32> {tgl.name = "y", tgl.role = "out"}) {
  %zero = arith.constant 0.0 : f32
  tgl.launch "y" {
    tgl.parallel (%n = 0 to 64, %o = 0 to 64, %q = 0 to 4096) {
      %s = tgl.reduce sum (%c = 0 to 3, %t = 0 to 11) -> f32 {
        %a = tgl.read %x[%n, %c, %q + %t - 5] fill %zero : !tgl.tensor<[64, 3, 4096], f32>
        %b = tgl.read %w[%o, %c, %t] : !tgl.tensor<[64, 3, 11], f32>
        %m = arith.mulf %a, %b : f32
        tgl.yield %m : f32
      }
      tgl.write %s, %y[%n, %o, %q] : f32, !tgl.tensor<[64, 64, 4096], f32>
    }
  }
}

// CHECK-LABEL: tgl.kernel @small
// CHECK-NOT: tgl.temp
tgl.kernel @small(%x: !tgl.tensor<[4, 32, 256], f32> {tgl.name = "x", tgl.role = "in"},
                  %w: !tgl.tensor<[32, 32, 3], f32> {tgl.name = "w", tgl.role = "in"},
                  %y: !tgl.tensor<[4, 32, 256], f32> {tgl.name = "y", tgl.role = "out"}) {
  %zero = arith.constant 0.0 : f32
  tgl.launch "y" {
    tgl.parallel (%n = 0 to 4, %o = 0 to 32, %q = 0 to 256) {
      %s = tgl.reduce sum (%c = 0 to 32, %t = 0 to 3) -> f32 {
        %a = tgl.read %x[%n, %c, %q + %t - 1] fill %zero : !tgl.tensor<[4, 32, 256], f32>
        %b = tgl.read %w[%o, %c, %t] : !tgl.tensor<[32, 32, 3], f32>
        %m = arith.mulf %a, %b : f32
        tgl.yield %m : f32
      }
      tgl.write %s, %y[%n, %o, %q] : f32, !tgl.tensor<[4, 32, 256], f32>
    }
  }
}

// CHECK-LABEL: tgl.kernel @plain
// CHECK-NOT: tgl.temp
tgl.kernel @plain(%x: !tgl.tensor<[1024, 4096], f32> {tgl.name = "x", tgl.role = "in"},
                  %w: !tgl.tensor<[64, 1024], f32> {tgl.name = "w", tgl.role = "in"},
                  %y: !tgl.tensor<[64, 4096], f32> {tgl.name = "y", tgl.role = "out"}) {
  tgl.launch "y" {
    tgl.parallel (%o = 0 to 64, %q = 0 to 4096) {
      %s = tgl.reduce sum (%c = 0 to 1024) -> f32 {
        %a = tgl.read %x[%c, %q] : !tgl.tensor<[1024, 4096], f32>
        %b = tgl.read %w[%o, %c] : !tgl.tensor<[64, 1024], f32>
        %m = arith.mulf %a, %b : f32
        tgl.yield %m : f32
      }
      tgl.write %s, %y[%o, %q] : f32, !tgl.tensor<[64, 4096], f32>
    }
  }
}

// Three channels, but weights that are there for some taps alone: packed in the order that they have.
// CHECK-LABEL: tgl.kernel @guarded
// CHECK: tgl.temp "packed" : !tgl.tensor<[64, 2, 3, 3], f32>
// CHECK: tgl.reduce sum (%{{.*}} = 0 to 3, %{{.*}} = 0 to 3)
// CHECK-NOT: if
// CHECK: tgl.write
tgl.kernel @guarded(%x: !tgl.tensor<[64, 3, 4096], f32> {tgl.name = "x", tgl.role = "in"},
                    %w: !tgl.tensor<[64, 3, 5], f32> {tgl.name = "w", tgl.role = "in"},
                    %y: !tgl.tensor<[64, 64, 8192], f32> {tgl.name = "y", tgl.role = "out"}) {
  %zero = arith.constant 0.0 : f32
  %five = arith.constant 5 : index
  tgl.launch "y" {
    tgl.parallel (%n = 0 to 64, %o = 0 to 64, %f = 0 to 2, %q = 0 to 4096) {
      %s = tgl.reduce sum (%c = 0 to 3, %t = 0 to 3) -> f32 {
        %tap = tgl.index %f + 2*%t
        %exists = arith.cmpi slt, %tap, %five : index
        %a = tgl.read %x[%n, %c, %q - %t + 1] fill %zero : !tgl.tensor<[64, 3, 4096], f32>
        %b = tgl.read %w[%o, %c, %f + 2*%t] if %exists : !tgl.tensor<[64, 3, 5], f32>
        %m = arith.mulf %a, %b : f32
        tgl.yield %m : f32
      }
      tgl.write %s, %y[%n, %o, 2*%q + %f] : f32, !tgl.tensor<[64, 64, 8192], f32>
    }
  }
}

// COUNTED: tgl-order-windows: 3 factors packed
// COUNTED: tgl-order-windows: 2 sums over windows reordered
