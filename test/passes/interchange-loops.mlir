// RUN: tegula-opt %s --tgl-interchange-loops --tgl-counters --split-input-file 2>&1 | FileCheck %s

// Batches never meet, and columns do not: rows i are summed over. The state is private to a point, its first values
// come along, and u is a value.
// CHECK-LABEL: tgl.kernel @delta
// CHECK: tgl.launch "u" {
// CHECK-NEXT: tgl.parallel (%[[B:.*]] = 0 to B, %[[J:.*]] = 0 to 8) {
// CHECK-NEXT: %[[S:.*]] = tgl.temp "S" : !tgl.tensor<[16], f32>
// CHECK-NEXT: tgl.parallel (%[[I:.*]] = 0 to 16) {
// CHECK-NEXT: tgl.write %{{.*}}, %[[S]][%[[I]]]
// CHECK: tgl.for %[[T:.*]] = 0 to T {
// CHECK-NEXT: %[[SUM:.*]] = tgl.reduce sum (%[[R:.*]] = 0 to 16)
// CHECK-NEXT: tgl.read %k[%[[B]], %[[T]], %[[R]]]
// CHECK-NEXT: tgl.read %[[S]][%[[R]]]
// CHECK: %[[U:.*]] = arith.subf
// CHECK-NEXT: tgl.parallel (%[[I:.*]] = 0 to 16) {
// CHECK: arith.mulf %{{.*}}, %[[U]]
// CHECK: tgl.write %{{.*}}, %[[S]][%[[I]]]
tgl.kernel @delta(%k: !tgl.tensor<[B, T, 16], f32> {tgl.name = "k", tgl.role = "in"},
                  %v: !tgl.tensor<[B, T, 8], f32> {tgl.name = "v", tgl.role = "in"}) sizes [B = 0 : 0, T = 0 : 1] {
  %zero = arith.constant 0.0 : f32
  %S = tgl.temp "S" : !tgl.tensor<[B, 16, 8], f32>
  tgl.launch "S" {
    tgl.parallel (%b = 0 to B, %i = 0 to 16, %j = 0 to 8) {
      tgl.write %zero, %S[%b, %i, %j] : f32, !tgl.tensor<[B, 16, 8], f32>
    }
  }
  tgl.for %t = 0 to T {
    %u = tgl.temp "u" : !tgl.tensor<[B, 8], f32>
    tgl.launch "u" {
      tgl.parallel (%b = 0 to B, %j = 0 to 8) {
        %s = tgl.reduce sum (%i = 0 to 16) -> f32 {
          %p = tgl.read %k[%b, %t, %i] : !tgl.tensor<[B, T, 16], f32>
          %q = tgl.read %S[%b, %i, %j] : !tgl.tensor<[B, 16, 8], f32>
          %m = arith.mulf %p, %q : f32
          tgl.yield %m : f32
        }
        %x = tgl.read %v[%b, %t, %j] : !tgl.tensor<[B, T, 8], f32>
        %d = arith.subf %x, %s : f32
        tgl.write %d, %u[%b, %j] : f32, !tgl.tensor<[B, 8], f32>
      }
    }
    tgl.launch "S" {
      tgl.parallel (%b = 0 to B, %i = 0 to 16, %j = 0 to 8) {
        %p = tgl.read %k[%b, %t, %i] : !tgl.tensor<[B, T, 16], f32>
        %d = tgl.read %u[%b, %j] : !tgl.tensor<[B, 8], f32>
        %m = arith.mulf %p, %d : f32
        %q = tgl.read %S[%b, %i, %j] : !tgl.tensor<[B, 16, 8], f32>
        %n = arith.addf %q, %m : f32
        tgl.write %n, %S[%b, %i, %j] : f32, !tgl.tensor<[B, 16, 8], f32>
      }
    }
  }
}

// -----

// A step that reads other batches has no independent axis; without sizes its launches stay.
// CHECK-LABEL: tgl.kernel @turned
// CHECK-NOT: tgl.parallel
// CHECK: tgl.for
// CHECK: tgl.launch "n"
// CHECK: tgl.launch "h"
tgl.kernel @turned(%h: !tgl.tensor<[B], f32> {tgl.name = "h", tgl.role = "inout"},
                   %x: !tgl.tensor<[T], f32> {tgl.name = "x", tgl.role = "in"}) sizes [B = 0 : 0, T = 1 : 0] {
  tgl.for %t = 0 to T {
    %n = tgl.temp "n" : !tgl.tensor<[B], f32>
    tgl.launch "n" {
      tgl.parallel (%b = 0 to B) {
        %p = tgl.read %h[B - 1 - %b] : !tgl.tensor<[B], f32>
        tgl.write %p, %n[%b] : f32, !tgl.tensor<[B], f32>
      }
    }
    tgl.launch "h" {
      tgl.parallel (%b = 0 to B) {
        %p = tgl.read %n[%b] : !tgl.tensor<[B], f32>
        tgl.write %p, %h[%b] : f32, !tgl.tensor<[B], f32>
      }
    }
  }
}

// -----

// The same where sizes are known and a block is as fast: one point walks the loop, all of its threads share the
// steps. A parameter stays where it is.
// CHECK-LABEL: tgl.kernel @few
// CHECK: tgl.launch "n" {
// CHECK-NEXT: tgl.parallel (%{{.*}} = 0 to 1) {
// CHECK-NEXT: %[[N:.*]] = tgl.temp "n" : !tgl.tensor<[40], f32>
// CHECK-NEXT: tgl.for %{{.*}} = 0 to 9 {
// CHECK-NEXT: tgl.parallel (%[[B:.*]] = 0 to 40) {
// CHECK-NEXT: tgl.read %h[39 - %[[B]]]
// CHECK: tgl.parallel (%[[C:.*]] = 0 to 40) {
// CHECK-NEXT: tgl.read %[[N]][%[[C]]]
tgl.kernel @few(%h: !tgl.tensor<[40], f32> {tgl.name = "h", tgl.role = "inout"}) {
  tgl.for %t = 0 to 9 {
    %n = tgl.temp "n" : !tgl.tensor<[40], f32>
    tgl.launch "n" {
      tgl.parallel (%b = 0 to 40) {
        %p = tgl.read %h[39 - %b] : !tgl.tensor<[40], f32>
        tgl.write %p, %n[%b] : f32, !tgl.tensor<[40], f32>
      }
    }
    tgl.launch "h" {
      tgl.parallel (%b = 0 to 40) {
        %p = tgl.read %n[%b] : !tgl.tensor<[40], f32>
        tgl.write %p, %h[%b] : f32, !tgl.tensor<[40], f32>
      }
    }
  }
}

// CHECK: tgl-interchange-loops: 2 loops put into launches
// CHECK: tgl-interchange-loops: 3 temporaries made private
// CHECK: tgl-interchange-loops: 1 temporaries made values
