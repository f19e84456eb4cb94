// RUN: tegula-opt %s --tgl-rotate-buffers --tgl-counters --split-input-file 2>&1 | FileCheck %s

// A buffer has its first name again after three steps. The number of steps is not known: those that are no whole period
// keep their copies.
// CHECK-LABEL: tgl.kernel @wave
// CHECK: %[[NEXT:.*]] = tgl.temp "next"
// CHECK: tgl.for %[[P:.*]] = 0 to (max(0, T)) floordiv 3 {
// CHECK: tgl.read %a[%{{.*}} - 1]
// CHECK: tgl.read %b[%{{.*}}]
// CHECK: tgl.read %s[3*%[[P]]]
// CHECK: tgl.write %{{.*}}, %[[NEXT]][
// CHECK-NOT: tgl.write
// CHECK: tgl.read %[[NEXT]][%{{.*}} - 1]
// CHECK: tgl.read %a[%{{.*}}]
// CHECK: tgl.read %s[3*%[[P]] + 1]
// CHECK: tgl.write %{{.*}}, %b[
// CHECK-NOT: tgl.write
// CHECK: tgl.read %b[%{{.*}} - 1]
// CHECK: tgl.read %[[NEXT]][%{{.*}}]
// CHECK: tgl.read %s[3*%[[P]] + 2]
// CHECK: tgl.write %{{.*}}, %a[
// CHECK-NOT: tgl.write
// CHECK: tgl.for %{{.*}} = 3*((max(0, T)) floordiv 3) to T {
// CHECK: tgl.write %{{.*}}, %[[NEXT]][
// CHECK: tgl.write %{{.*}}, %b[
// CHECK: tgl.write %{{.*}}, %a[
tgl.kernel @wave(%a: !tgl.tensor<[N], f32> {tgl.name = "a", tgl.role = "inout"},
                 %b: !tgl.tensor<[N], f32> {tgl.name = "b", tgl.role = "inout"},
                 %s: !tgl.tensor<[T], f32> {tgl.name = "s", tgl.role = "in"}) sizes [N = 0 : 0, T = 2 : 0] {
  %zero = arith.constant 0.0 : f32
  tgl.for %t = 0 to T {
    %next = tgl.temp "next" : !tgl.tensor<[N], f32>
    tgl.launch "next" {
      tgl.parallel (%i = 0 to N) {
        %p = tgl.read %a[%i - 1] fill %zero : !tgl.tensor<[N], f32>
        %q = tgl.read %b[%i] : !tgl.tensor<[N], f32>
        %r = tgl.read %s[%t] : !tgl.tensor<[T], f32>
        %d = arith.subf %p, %q : f32
        %e = arith.addf %d, %r : f32
        tgl.write %e, %next[%i] : f32, !tgl.tensor<[N], f32>
        %v = tgl.read %a[%i] : !tgl.tensor<[N], f32>
        tgl.write %v, %b[%i] : f32, !tgl.tensor<[N], f32>
      }
    }
    tgl.launch "a" {
      tgl.parallel (%i = 0 to N) {
        %v = tgl.read %next[%i] : !tgl.tensor<[N], f32>
        tgl.write %v, %a[%i] : f32, !tgl.tensor<[N], f32>
      }
    }
  }
}

// -----

// Five steps: the first two read x, then one period, then a step that leaves the state in the other buffer, which is
// the result. A step that walks down counts from the end.
// CHECK-LABEL: tgl.kernel @known
// CHECK-SAME: %[[X:x]]: {{.*}}, %[[Y:y]]:
// CHECK: %[[H:.*]] = tgl.temp "h"
// CHECK-NOT: tgl.for
// CHECK: tgl.read %x[4]
// CHECK-NEXT: tgl.read %x[6 - %{{.*}}]
// CHECK: tgl.write %{{.*}}, %[[Y]][
// CHECK: tgl.read %x[3]
// CHECK-NEXT: tgl.read %[[Y]][6 - %{{.*}}]
// CHECK: tgl.write %{{.*}}, %[[H]][
// CHECK: tgl.read %x[2]
// CHECK-NEXT: tgl.read %[[H]][
// CHECK: tgl.write %{{.*}}, %[[Y]][
// CHECK: tgl.read %x[1]
// CHECK-NEXT: tgl.read %[[Y]][
// CHECK: tgl.write %{{.*}}, %[[H]][
// CHECK: tgl.read %x[0]
// CHECK-NEXT: tgl.read %[[H]][
// CHECK: tgl.write %{{.*}}, %[[Y]][
// CHECK-NOT: tgl.write
tgl.kernel @known(%x: !tgl.tensor<[7], f32> {tgl.name = "x", tgl.role = "in"},
                  %y: !tgl.tensor<[7], f32> {tgl.name = "y", tgl.role = "out"}) {
  %h = tgl.temp "h" : !tgl.tensor<[7], f32>
  tgl.launch "h" {
    tgl.parallel (%i = 0 to 7) {
      %v = tgl.read %x[%i] : !tgl.tensor<[7], f32>
      tgl.write %v, %h[%i] : f32, !tgl.tensor<[7], f32>
    }
  }
  tgl.for %t = 0 to 5 reverse {
    %n = tgl.temp "n" : !tgl.tensor<[7], f32>
    tgl.launch "n" {
      tgl.parallel (%i = 0 to 7) {
        %s = tgl.read %x[%t] : !tgl.tensor<[7], f32>
        %p = tgl.read %h[6 - %i] : !tgl.tensor<[7], f32>
        %m = arith.mulf %p, %s : f32
        tgl.write %m, %n[%i] : f32, !tgl.tensor<[7], f32>
      }
    }
    tgl.launch "h" {
      tgl.parallel (%i = 0 to 7) {
        %p = tgl.read %n[%i] : !tgl.tensor<[7], f32>
        tgl.write %p, %h[%i] : f32, !tgl.tensor<[7], f32>
      }
    }
  }
  tgl.launch "y" {
    tgl.parallel (%i = 0 to 7) {
      %v = tgl.read %h[%i] : !tgl.tensor<[7], f32>
      tgl.write %v, %y[%i] : f32, !tgl.tensor<[7], f32>
    }
  }
}

// -----

// What reads the state behind its copy reads the buffer that it was copied from. Two states of one buffer: the second
// one stays a copy.
// CHECK-LABEL: tgl.kernel @late
// CHECK: tgl.for %{{.*}} = 0 to 6 {
// CHECK: tgl.read %h[6 - %{{.*}}]
// CHECK: tgl.write %{{.*}}, %[[N:[a-z]+]][
// CHECK: tgl.read %[[N]][
// CHECK-NEXT: tgl.write %{{.*}}, %g[
// CHECK: tgl.read %[[N]][
// CHECK: tgl.write %{{.*}}, %y[2*%{{.*}}, %
// CHECK: tgl.read %[[N]][6 - %{{.*}}]
// CHECK: tgl.write %{{.*}}, %h[
// CHECK: tgl.read %h[
// CHECK-NEXT: tgl.write %{{.*}}, %g[
// CHECK: tgl.read %h[
// CHECK: tgl.write %{{.*}}, %y[2*%{{.*}} + 1, %
// CHECK-NOT: tgl.launch
tgl.kernel @late(%h: !tgl.tensor<[7], f32> {tgl.name = "h", tgl.role = "inout"},
                 %g: !tgl.tensor<[7], f32> {tgl.name = "g", tgl.role = "inout"},
                 %y: !tgl.tensor<[12, 7], f32> {tgl.name = "y", tgl.role = "out"}) {
  tgl.for %t = 0 to 12 {
    %n = tgl.temp "n" : !tgl.tensor<[7], f32>
    tgl.launch "n" {
      tgl.parallel (%i = 0 to 7) {
        %p = tgl.read %h[6 - %i] : !tgl.tensor<[7], f32>
        %m = arith.addf %p, %p : f32
        tgl.write %m, %n[%i] : f32, !tgl.tensor<[7], f32>
      }
    }
    tgl.launch "h" {
      tgl.parallel (%i = 0 to 7) {
        %p = tgl.read %n[%i] : !tgl.tensor<[7], f32>
        tgl.write %p, %h[%i] : f32, !tgl.tensor<[7], f32>
        %q = tgl.read %n[%i] : !tgl.tensor<[7], f32>
        tgl.write %q, %g[%i] : f32, !tgl.tensor<[7], f32>
      }
    }
    tgl.launch "y" {
      tgl.parallel (%i = 0 to 7) {
        %p = tgl.read %h[%i] : !tgl.tensor<[7], f32>
        %m = arith.addf %p, %p : f32
        tgl.write %m, %y[%t, %i] : f32, !tgl.tensor<[12, 7], f32>
      }
    }
  }
}

// -----

// The state is changed behind its copy, or in part, or is what a parameter is: copies stay.
// CHECK-LABEL: tgl.kernel @stays
// CHECK: tgl.for %{{.*}} = 0 to 9 {
// CHECK: tgl.write %{{.*}}, %{{.*}}[
// CHECK: tgl.read %[[N:[a-z]+]][%
// CHECK-NEXT: tgl.write %{{.*}}, %h[
// CHECK: tgl.write %{{.*}}, %h[0]
// CHECK: tgl.write %{{.*}}, %g[%{{.*}} + 1]
// CHECK: tgl.read %x[
// CHECK-NEXT: tgl.write %{{.*}}, %k[
tgl.kernel @stays(%x: !tgl.tensor<[7], f32> {tgl.name = "x", tgl.role = "in"},
                  %h: !tgl.tensor<[7], f32> {tgl.name = "h", tgl.role = "inout"},
                  %g: !tgl.tensor<[7], f32> {tgl.name = "g", tgl.role = "inout"},
                  %k: !tgl.tensor<[7], f32> {tgl.name = "k", tgl.role = "inout"}) {
  %zero = arith.constant 0.0 : f32
  tgl.for %t = 0 to 9 {
    %n = tgl.temp "n" : !tgl.tensor<[7], f32>
    tgl.launch "n" {
      tgl.parallel (%i = 0 to 7) {
        %p = tgl.read %h[6 - %i] : !tgl.tensor<[7], f32>
        %q = tgl.read %k[6 - %i] : !tgl.tensor<[7], f32>
        %m = arith.addf %p, %q : f32
        tgl.write %m, %n[%i] : f32, !tgl.tensor<[7], f32>
      }
    }
    tgl.launch "h" {
      tgl.parallel (%i = 0 to 7) {
        %p = tgl.read %n[%i] : !tgl.tensor<[7], f32>
        tgl.write %p, %h[%i] : f32, !tgl.tensor<[7], f32>
      }
    }
    tgl.launch "h" {
      tgl.parallel () {
        tgl.write %zero, %h[0] : f32, !tgl.tensor<[7], f32>
      }
    }
    tgl.launch "g" {
      tgl.parallel (%i = 0 to 6) {
        %p = tgl.read %n[%i + 1] : !tgl.tensor<[7], f32>
        tgl.write %p, %g[%i + 1] : f32, !tgl.tensor<[7], f32>
      }
    }
    tgl.launch "k" {
      tgl.parallel (%i = 0 to 7) {
        %p = tgl.read %x[%i] : !tgl.tensor<[7], f32>
        tgl.write %p, %k[%i] : f32, !tgl.tensor<[7], f32>
      }
    }
  }
}

// CHECK: tgl-rotate-buffers: 4 copies of states left out
// CHECK: tgl-rotate-buffers: 1 first elements read where they are
// CHECK: tgl-rotate-buffers: 3 loops whose buffers change names
// CHECK: tgl-rotate-buffers: 1 results that are buffers
