// RUN: tegula-opt %s --tgl-chain-launches --tgl-counters --split-input-file 2>&1 | FileCheck %s

// Both products of a point of b in one launch: t is private to the point, and what sums read of x again and again is copied first.
// CHECK-LABEL: tgl.kernel @both_sides
// CHECK: tgl.launch "t" {
// CHECK-NEXT: tgl.parallel (%[[B:.*]] = 0 to 4096) attributes {team = 8 : i64} {
// CHECK-NEXT: %[[X:.*]] = tgl.temp "x" : !tgl.tensor<[16, 16], f32>
// CHECK-NEXT: tgl.parallel (%[[K:.*]] = 0 to 16, %[[J:.*]] = 0 to 16) {
// CHECK-NEXT: tgl.read %x[%[[B]], %[[K]], %[[J]]]
// CHECK-NEXT: tgl.write %{{.*}}, %[[X]][%[[K]], %[[J]]]
// CHECK: %[[T:.*]] = tgl.temp "t" : !tgl.tensor<[16, 16], f32>
// CHECK-NEXT: tgl.parallel (%i = 0 to 16, %j = 0 to 16) {
// CHECK-NEXT: tgl.reduce sum (%[[K:.*]] = 0 to 16)
// CHECK: tgl.read %[[X]][%[[K]], %j]
// CHECK: tgl.write %{{.*}}, %[[T]][%i, %j]
// CHECK: tgl.parallel (%i = 0 to 16, %j = 0 to 16) {
// CHECK-NEXT: tgl.reduce sum (%[[K:.*]] = 0 to 16)
// CHECK-NEXT: tgl.read %[[T]][%i, %[[K]]]
// CHECK: tgl.write %{{.*}}, %y[%[[B]], %i, %j]
// CHECK-NOT: tgl.launch
tgl.kernel @both_sides(%x: !tgl.tensor<[4096, 16, 16], f32> {tgl.name = "x", tgl.role = "in"},
                       %h: !tgl.tensor<[16, 16], f32> {tgl.name = "h", tgl.role = "in"},
                       %y: !tgl.tensor<[4096, 16, 16], f32> {tgl.name = "y", tgl.role = "out"}) sizes [] {
  %t = tgl.temp "t" : !tgl.tensor<[4096, 16, 16], f32>
  tgl.launch "t" {
    tgl.parallel (%b = 0 to 4096, %i = 0 to 16, %j = 0 to 16) {
      %s = tgl.reduce sum (%k = 0 to 16) -> f32 {
        %p = tgl.read %h[%i, %k] : !tgl.tensor<[16, 16], f32>
        %q = tgl.read %x[%b, %k, %j] : !tgl.tensor<[4096, 16, 16], f32>
        %m = arith.mulf %p, %q : f32
        tgl.yield %m : f32
      }
      tgl.write %s, %t[%b, %i, %j] : f32, !tgl.tensor<[4096, 16, 16], f32>
    }
  }
  tgl.launch "y" {
    tgl.parallel (%b = 0 to 4096, %i = 0 to 16, %j = 0 to 16) {
      %s = tgl.reduce sum (%k = 0 to 16) -> f32 {
        %p = tgl.read %t[%b, %i, %k] : !tgl.tensor<[4096, 16, 16], f32>
        %q = tgl.read %h[%k, %j] : !tgl.tensor<[16, 16], f32>
        %m = arith.mulf %p, %q : f32
        tgl.yield %m : f32
      }
      tgl.write %s, %y[%b, %i, %j] : f32, !tgl.tensor<[4096, 16, 16], f32>
    }
  }
}

// -----

// Two sums over the same points that read the same become one nest; rows of whole lines are a vector longer.
// CHECK-LABEL: tgl.kernel @pairs
// CHECK: tgl.parallel (%[[B:.*]] = 0 to 1024) attributes {team =
// CHECK-NEXT: tgl.temp "x" : !tgl.tensor<[32, 36], f32>
// CHECK: tgl.parallel (%i = 0 to 32, %j = 0 to 32) {
// CHECK: tgl.reduce sum
// CHECK: tgl.write %{{.*}}, %u[
// CHECK: tgl.reduce sum
// CHECK: tgl.write %{{.*}}, %v[
// CHECK-NOT: tgl.reduce
tgl.kernel @pairs(%x: !tgl.tensor<[1024, 32, 32], f32> {tgl.name = "x", tgl.role = "in"},
                  %h: !tgl.tensor<[32, 32], f32> {tgl.name = "h", tgl.role = "in"},
                  %u: !tgl.tensor<[1024, 32, 32], f32> {tgl.name = "u", tgl.role = "out"},
                  %v: !tgl.tensor<[1024, 32, 32], f32> {tgl.name = "v", tgl.role = "out"}) sizes [] {
  tgl.launch "u" {
    tgl.parallel (%b = 0 to 1024, %i = 0 to 32, %j = 0 to 32) {
      %s = tgl.reduce sum (%k = 0 to 32) -> f32 {
        %p = tgl.read %h[%k, %i] : !tgl.tensor<[32, 32], f32>
        %q = tgl.read %x[%b, %k, %j] : !tgl.tensor<[1024, 32, 32], f32>
        %d = arith.subf %p, %q : f32
        %m = arith.mulf %d, %d : f32
        tgl.yield %m : f32
      }
      tgl.write %s, %u[%b, %i, %j] : f32, !tgl.tensor<[1024, 32, 32], f32>
    }
  }
  tgl.launch "v" {
    tgl.parallel (%b = 0 to 1024, %i = 0 to 32, %j = 0 to 32) {
      %s = tgl.reduce sum (%k = 0 to 32) -> f32 {
        %p = tgl.read %h[%k, %i] : !tgl.tensor<[32, 32], f32>
        %q = tgl.read %x[%b, %k, %j] : !tgl.tensor<[1024, 32, 32], f32>
        %d = arith.addf %p, %q : f32
        %m = arith.mulf %d, %d : f32
        tgl.yield %m : f32
      }
      tgl.write %s, %v[%b, %i, %j] : f32, !tgl.tensor<[1024, 32, 32], f32>
    }
  }
}

// -----

// Without sizes nothing says what one launch would take; points that read other points' elements have no axis in common.
// CHECK-LABEL: tgl.kernel @unknown
// CHECK-NOT: team =
// CHECK: tgl-chain-launches: 2 launches made
// CHECK: tgl-chain-launches: 4 launches put together
// CHECK: tgl-chain-launches: 1 nests merged
// CHECK: tgl-chain-launches: 2 parts of inputs kept
// CHECK: tgl-chain-launches: 1 temporaries made private
tgl.kernel @unknown(%x: !tgl.tensor<[B, 16, 16], f32> {tgl.name = "x", tgl.role = "in"},
                    %h: !tgl.tensor<[16, 16], f32> {tgl.name = "h", tgl.role = "in"},
                    %y: !tgl.tensor<[B, 16, 16], f32> {tgl.name = "y", tgl.role = "out"}) sizes [B = 0 : 0] {
  tgl.launch "y" {
    tgl.parallel (%b = 0 to B, %i = 0 to 16, %j = 0 to 16) {
      %s = tgl.reduce sum (%k = 0 to 16) -> f32 {
        %p = tgl.read %h[%i, %k] : !tgl.tensor<[16, 16], f32>
        %q = tgl.read %x[%b, %k, %j] : !tgl.tensor<[B, 16, 16], f32>
        %m = arith.mulf %p, %q : f32
        tgl.yield %m : f32
      }
      tgl.write %s, %y[%b, %i, %j] : f32, !tgl.tensor<[B, 16, 16], f32>
    }
  }
}
