// RUN: tegula-opt %s --tgl-double-buffer --tgl-counters --split-input-file 2>&1 | FileCheck %s

// Sums around each element stand where they are used; the state gets its new elements at the end of the step.
// CHECK-LABEL: tgl.kernel @life
// CHECK: tgl.for
// CHECK-NEXT: %[[NEW:.*]] = tgl.temp "state.new" : !tgl.tensor<[N], i8>
// CHECK-NEXT: tgl.parallel (%[[I:.*]] = 0 to N) {
// CHECK-NEXT: %[[SUM:.*]] = tgl.reduce sum
// CHECK: %[[OLD:.*]] = tgl.read %h[%[[I]]]
// CHECK: tgl.write %{{.*}}, %[[NEW]][%[[I]]]
// CHECK: tgl.read %[[NEW]][%{{.*}}]
// CHECK-NEXT: tgl.write %{{.*}}, %y[
// CHECK: tgl.read %[[NEW]][%[[D:.*]]] :
// CHECK-NEXT: tgl.write %{{.*}}, %h[%[[D]]]
tgl.kernel @life(%h: !tgl.tensor<[N], i8> {tgl.name = "h", tgl.role = "inout"},
                 %y: !tgl.tensor<[N], i8> {tgl.name = "y", tgl.role = "out"}) sizes [N = 0 : 0] {
  tgl.for %t = 0 to 8 {
    %n = tgl.temp "n" : !tgl.tensor<[N], i32>
    tgl.parallel (%i = 0 to N) {
      %s = tgl.reduce sum (%r = 0 to 3) -> i32 {
        %p = tgl.read %h[(%i + %r + N - 1) mod N] : !tgl.tensor<[N], i8>
        tgl.yield %p : i32
      }
      tgl.write %s, %n[%i] : i32, !tgl.tensor<[N], i32>
    }
    tgl.parallel (%i = 0 to N) {
      %s = tgl.read %n[%i] : !tgl.tensor<[N], i32>
      %p = tgl.read %h[%i] : !tgl.tensor<[N], i8>
      %d = arith.subi %s, %p : i32
      tgl.write %d, %h[%i] : i32, !tgl.tensor<[N], i8>
    }
    tgl.parallel (%i = 0 to N) {
      %p = tgl.read %h[%i] : !tgl.tensor<[N], i8>
      tgl.write %p, %y[%i] : i32, !tgl.tensor<[N], i8>
    }
  }
}

// -----

// Batches never meet, sums are long, or the step writes the state twice: nothing changes.
// CHECK-LABEL: tgl.kernel @others
// CHECK-NOT: tgl.temp "state.new"
tgl.kernel @others(%h: !tgl.tensor<[B, N], f32> {tgl.name = "h", tgl.role = "inout"},
                   %g: !tgl.tensor<[N], f32> {tgl.name = "g", tgl.role = "inout"},
                   %k: !tgl.tensor<[N], f32> {tgl.name = "k", tgl.role = "inout"}) sizes [B = 0 : 0, N = 0 : 1] {
  %zero = arith.constant 0.0 : f32
  tgl.for %t = 0 to 8 {
    %n = tgl.temp "n" : !tgl.tensor<[B, N], f32>
    %m = tgl.temp "m" : !tgl.tensor<[N], f32>
    %o = tgl.temp "o" : !tgl.tensor<[N], f32>
    tgl.parallel (%b = 0 to B, %i = 0 to N) {
      %p = tgl.read %h[%b, %i - 1] fill %zero : !tgl.tensor<[B, N], f32>
      tgl.write %p, %n[%b, %i] : f32, !tgl.tensor<[B, N], f32>
    }
    tgl.parallel (%b = 0 to B, %i = 0 to N) {
      %s = tgl.read %n[%b, %i] : !tgl.tensor<[B, N], f32>
      %p = tgl.read %h[%b, %i] : !tgl.tensor<[B, N], f32>
      %d = arith.addf %s, %p : f32
      tgl.write %d, %h[%b, %i] : f32, !tgl.tensor<[B, N], f32>
    }
    tgl.parallel (%i = 0 to N) {
      %s = tgl.reduce sum (%j = 0 to N) -> f32 {
        %p = tgl.read %g[%j] : !tgl.tensor<[N], f32>
        tgl.yield %p : f32
      }
      tgl.write %s, %m[%i] : f32, !tgl.tensor<[N], f32>
    }
    tgl.parallel (%i = 0 to N) {
      %s = tgl.read %m[%i] : !tgl.tensor<[N], f32>
      tgl.write %s, %g[%i] : f32, !tgl.tensor<[N], f32>
    }
    tgl.parallel (%i = 0 to N) {
      %p = tgl.read %k[N - 1 - %i] : !tgl.tensor<[N], f32>
      tgl.write %p, %o[%i] : f32, !tgl.tensor<[N], f32>
    }
    tgl.parallel (%i = 0 to N) {
      %s = tgl.read %o[%i] : !tgl.tensor<[N], f32>
      tgl.write %s, %k[%i] : f32, !tgl.tensor<[N], f32>
    }
    tgl.parallel () {
      tgl.write %zero, %k[0] : f32, !tgl.tensor<[N], f32>
    }
  }
}

// -----

// What is copied to a state of a narrower type has that type.
// CHECK-LABEL: tgl.kernel @narrow
// CHECK: %[[N:.*]] = tgl.temp "n" : !tgl.tensor<[N], bf16>
// CHECK: tgl.write %{{.*}}, %[[N]][%{{.*}}] : f32, !tgl.tensor<[N], bf16>
// CHECK: tgl.read %[[N]][%{{.*}}] : !tgl.tensor<[N], bf16>
tgl.kernel @narrow(%h: !tgl.tensor<[N], bf16> {tgl.name = "h", tgl.role = "inout"}) sizes [N = 0 : 0] {
  tgl.for %t = 0 to 8 {
    %n = tgl.temp "n" : !tgl.tensor<[N], f32>
    tgl.parallel (%i = 0 to N) {
      %p = tgl.read %h[N - 1 - %i] : !tgl.tensor<[N], bf16>
      tgl.write %p, %n[%i] : f32, !tgl.tensor<[N], f32>
    }
    tgl.parallel (%i = 0 to N) {
      %s = tgl.read %n[%i] : !tgl.tensor<[N], f32>
      tgl.write %s, %h[%i] : f32, !tgl.tensor<[N], bf16>
    }
  }
}

// CHECK: tgl-double-buffer: 1 buffers with the state's type
// CHECK: tgl-double-buffer: 1 states with a second buffer
// CHECK: tgl-double-buffer: 1 values read where they are used
