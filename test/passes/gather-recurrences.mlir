// RUN: tegula-opt %s --tgl-gather-recurrences --split-input-file | FileCheck %s

// Rows of a step never meet: a statement over them walks the loop. The product stands where it is used, and the
// state changes when all points have read it.
// CHECK-LABEL: tgl.kernel @rnn
// CHECK-NOT: tgl.temp "a"
// CHECK: tgl.launch "recurrence" {
// CHECK-NEXT: tgl.parallel (%[[N:.*]] = 0 to 4) {
// CHECK-NEXT: %[[NEXT:.*]] = tgl.temp "next" : !tgl.tensor<[16], f32>
// CHECK-NEXT: tgl.for %[[T:.*]] = 0 to S {
// CHECK-NEXT: tgl.parallel (%[[U:.*]] = 0 to 16) {
// CHECK: tgl.reduce sum (%[[K:.*]] = 0 to 16)
// CHECK: tgl.read %w[%[[U]], %[[K]]]
// CHECK: tgl.read %h[%[[N]], %[[K]]]
// CHECK: tgl.read %x[%[[T]], %[[N]], %[[U]]]
// CHECK: tgl.write %[[H:.*]], %[[NEXT]][%[[U]]]
// CHECK: tgl.write %[[H]], %y[%[[T]], %[[N]], %[[U]]]
// CHECK: tgl.parallel (%[[V:.*]] = 0 to 16) {
// CHECK-NEXT: %[[COPIED:.*]] = tgl.read %[[NEXT]][%[[V]]]
// CHECK-NEXT: tgl.write %[[COPIED]], %h[%[[N]], %[[V]]]
tgl.kernel @rnn(%x: !tgl.tensor<[S, 4, 16], f32> {tgl.name = "x", tgl.role = "in"},
                %w: !tgl.tensor<[16, 16], f32> {tgl.name = "w", tgl.role = "in"},
                %h: !tgl.tensor<[4, 16], f32> {tgl.name = "h", tgl.role = "inout"},
                %y: !tgl.tensor<[S, 4, 16], f32> {tgl.name = "y", tgl.role = "out"}) sizes [S = 0 : 0] {
  tgl.for %t = 0 to S {
    %a = tgl.temp "a" : !tgl.tensor<[4, 16], f32>
    tgl.launch "a" {
      tgl.parallel (%n = 0 to 4, %g = 0 to 16) {
        %s = tgl.reduce sum (%k = 0 to 16) -> f32 {
          %p = tgl.read %w[%g, %k] : !tgl.tensor<[16, 16], f32>
          %q = tgl.read %h[%n, %k] : !tgl.tensor<[4, 16], f32>
          %m = arith.mulf %p, %q : f32
          tgl.yield %m : f32
        }
        tgl.write %s, %a[%n, %g] : f32, !tgl.tensor<[4, 16], f32>
      }
    }
    tgl.launch "h" {
      tgl.parallel (%n = 0 to 4, %u = 0 to 16) {
        %s = tgl.read %a[%n, %u] : !tgl.tensor<[4, 16], f32>
        %v = tgl.read %x[%t, %n, %u] : !tgl.tensor<[S, 4, 16], f32>
        %b = arith.addf %s, %v : f32
        tgl.write %b, %h[%n, %u] : f32, !tgl.tensor<[4, 16], f32>
        tgl.write %b, %y[%t, %n, %u] : f32, !tgl.tensor<[S, 4, 16], f32>
      }
    }
  }
}

// -----

// Rows that read each other's states stay together.
// CHECK-LABEL: tgl.kernel @mixed
// CHECK-NOT: tgl.launch "recurrence"
// CHECK: tgl.for
tgl.kernel @mixed(%w: !tgl.tensor<[16, 16], f32> {tgl.name = "w", tgl.role = "in"},
                  %h: !tgl.tensor<[4, 16], f32> {tgl.name = "h", tgl.role = "inout"}) {
  tgl.for %t = 0 to 9 {
    %a = tgl.temp "a" : !tgl.tensor<[4, 16], f32>
    tgl.launch "a" {
      tgl.parallel (%n = 0 to 4, %g = 0 to 16) {
        %s = tgl.reduce sum (%k = 0 to 16) -> f32 {
          %p = tgl.read %w[%g, %k] : !tgl.tensor<[16, 16], f32>
          %q = tgl.read %h[-%n + 3, %k] : !tgl.tensor<[4, 16], f32>
          %m = arith.mulf %p, %q : f32
          tgl.yield %m : f32
        }
        tgl.write %s, %a[%n, %g] : f32, !tgl.tensor<[4, 16], f32>
      }
    }
    tgl.launch "h" {
      tgl.parallel (%n = 0 to 4, %u = 0 to 16) {
        %s = tgl.read %a[%n, %u] : !tgl.tensor<[4, 16], f32>
        tgl.write %s, %h[%n, %u] : f32, !tgl.tensor<[4, 16], f32>
      }
    }
  }
}

// -----

// Weights that change with time cannot stay in registers.
// CHECK-LABEL: tgl.kernel @changing
// CHECK-NOT: tgl.launch "recurrence"
// CHECK: tgl.for
tgl.kernel @changing(%w: !tgl.tensor<[9, 16, 16], f32> {tgl.name = "w", tgl.role = "in"},
                     %h: !tgl.tensor<[4, 16], f32> {tgl.name = "h", tgl.role = "inout"}) {
  tgl.for %t = 0 to 9 {
    %a = tgl.temp "a" : !tgl.tensor<[4, 16], f32>
    tgl.launch "a" {
      tgl.parallel (%n = 0 to 4, %g = 0 to 16) {
        %s = tgl.reduce sum (%k = 0 to 16) -> f32 {
          %p = tgl.read %w[%t, %g, %k] : !tgl.tensor<[9, 16, 16], f32>
          %q = tgl.read %h[%n, %k] : !tgl.tensor<[4, 16], f32>
          %m = arith.mulf %p, %q : f32
          tgl.yield %m : f32
        }
        tgl.write %s, %a[%n, %g] : f32, !tgl.tensor<[4, 16], f32>
      }
    }
    tgl.launch "h" {
      tgl.parallel (%n = 0 to 4, %u = 0 to 16) {
        %s = tgl.read %a[%n, %u] : !tgl.tensor<[4, 16], f32>
        tgl.write %s, %h[%n, %u] : f32, !tgl.tensor<[4, 16], f32>
      }
    }
  }
}
