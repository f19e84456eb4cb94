// RUN: tegula-opt %s --tgl-group-products --split-input-file | FileCheck %s

// 512 rows of 4 groups: tiles of 128 rows, of which groups that begin with one may need three more than all rows. Rows
// whose number is of no group are a fifth, which has places behind the tiles and a statement as before.
// CHECK-LABEL: tgl.kernel @experts
// CHECK: %row = tgl.temp "row" : !tgl.tensor<[1408], i32>
// CHECK: %group = tgl.temp "group" : !tgl.tensor<[7], i32>
// CHECK: %used = tgl.temp "used" : !tgl.tensor<[7], i32>
// CHECK: tgl.parallel (%[[C:.*]] = 0 to 4, %[[G:.*]] = 0 to 5)
// CHECK: tgl.reduce sum (%{{.*}} = 128*%[[C]] to 128*%[[C]] + 128) -> i32
// CHECK: tgl.write %{{.*}}, %count[%[[C]], %[[G]]]
// CHECK: tgl.parallel (%[[G:.*]] = 0 to 5)
// CHECK: tgl.for %[[C:.*]] = 0 to 4 iter (%[[B:.*]] = %{{.*}} : i32)
// CHECK: tgl.write %[[B]], %before[%[[C]], %[[G]]]
// CHECK: tgl.write %{{.*}}, %total[%[[G]]]
// CHECK: tgl.parallel (%[[G:.*]] = 0 to 5)
// CHECK-NEXT: tgl.reduce sum (%{{.*}} = 0 to %[[G]])
// CHECK: tgl.write %{{.*}}, %first[%[[G]]]
// CHECK: tgl.parallel (%[[T:.*]] = 0 to 7)
// CHECK: tgl.write %{{.*}}, %group[%[[T]]]
// CHECK: tgl.write %{{.*}}, %used[%[[T]]]
// CHECK: tgl.write %{{.*}}, %row[128*%[[T]] + %{{.*}}]
// CHECK: tgl.parallel (%[[R:.*]] = 0 to 512)
// CHECK: tgl.reduce sum (%[[O:.*]] = 0 to 128) -> i32
// CHECK: tgl.read %e[min(%[[R]], %[[O]] + 128*(%[[R]] floordiv 128))]
// CHECK: tgl.read %first[
// CHECK-NEXT: %[[FIRST:.*]] = arith.index_cast
// CHECK: tgl.read %before[%[[R]] floordiv 128, %{{.*}}]
// CHECK-NEXT: %[[BEFORE:.*]] = arith.index_cast
// CHECK-NEXT: %[[RANK:.*]] = arith.index_cast
// CHECK: tgl.write %{{.*}}, %row[128*%[[FIRST]] + %[[BEFORE]] + %[[RANK]]]
// CHECK: tgl.parallel (%{{.*}} = 0 to 128)
// CHECK: tgl.read %w[{{.*}}] checked "e[n]"
// CHECK: tgl.write %{{.*}}, %y[
// CHECK: tgl.parallel (%[[T:.*]] = 0 to 7, %[[P:.*]] = 0 to 128, %[[M:.*]] = 0 to 128)
// CHECK: tgl.read %row[128*%[[T]] + %[[P]]]
// CHECK-NEXT: %[[N:.*]] = arith.index_cast
// CHECK: tgl.read %group[%[[T]]]
// CHECK-NEXT: %[[E:.*]] = arith.index_cast
// CHECK: tgl.read %used[%[[T]]]
// CHECK-NEXT: %[[USED:.*]] = arith.index_cast
// CHECK-NEXT: %[[EXISTS:.*]] = arith.cmpi slt, %[[P]], %[[USED]]
// CHECK: %[[SUM:.*]] = tgl.reduce sum (%[[K:.*]] = 0 to 64)
// CHECK: tgl.read %x[%[[N]], %[[K]]]
// CHECK: tgl.read %w[%[[E]], %[[K]], %[[M]]] : !tgl.tensor
// CHECK: %[[BIAS:.*]] = tgl.read %b[%[[E]], %[[M]]] : !tgl.tensor
// CHECK: %[[V:.*]] = arith.addf %[[SUM]], %[[BIAS]]
// CHECK: tgl.write %[[V]], %y[%[[N]], %[[M]]] if %[[EXISTS]]
// CHECK-NOT: tgl.parallel
tgl.kernel @experts(%x: !tgl.tensor<[512, 64], bf16> {tgl.name = "x", tgl.role = "in"},
                    %w: !tgl.tensor<[4, 64, 128], bf16> {tgl.name = "w", tgl.role = "in"},
                    %b: !tgl.tensor<[4, 128], bf16> {tgl.name = "b", tgl.role = "in"},
                    %e: !tgl.tensor<[512], i32> {tgl.name = "e", tgl.role = "in"},
                    %y: !tgl.tensor<[512, 128], bf16> {tgl.name = "y", tgl.role = "out"}) {
  tgl.launch "y" {
    tgl.parallel (%n = 0 to 512, %m = 0 to 128) {
      %s = tgl.reduce sum (%k = 0 to 64) -> f32 {
        %a = tgl.read %x[%n, %k] : !tgl.tensor<[512, 64], bf16>
        %i = tgl.read %e[%n] : !tgl.tensor<[512], i32>
        %g = arith.index_cast %i : i32 to index
        %c = tgl.read %w[%g, %k, %m] checked "e[n]" : !tgl.tensor<[4, 64, 128], bf16>
        %p = arith.mulf %a, %c : f32
        tgl.yield %p : f32
      }
      %i = tgl.read %e[%n] : !tgl.tensor<[512], i32>
      %g = arith.index_cast %i : i32 to index
      %c = tgl.read %b[%g, %m] checked "e[n]" : !tgl.tensor<[4, 128], bf16>
      %v = arith.addf %s, %c : f32
      tgl.write %v, %y[%n, %m] : f32, !tgl.tensor<[512, 128], bf16>
    }
  }
}

// -----

// Two experts for each row: rows are pairs. Numbers that are proved to be of a group have no statement of their own.
// CHECK-LABEL: tgl.kernel @pairs
// CHECK: %row = tgl.temp "row" : !tgl.tensor<[1408], i32>
// CHECK: tgl.parallel (%{{.*}} = 0 to 8, %{{.*}} = 0 to 4)
// CHECK: tgl.reduce sum (%[[I:.*]] = 128*%{{.*}} to
// CHECK-NEXT: tgl.read %e[%[[I]] floordiv 2, %[[I]] - 2*(%[[I]] floordiv 2)]
// CHECK: tgl.parallel (%[[T:.*]] = 0 to 11, %[[P:.*]] = 0 to 128, %[[M:.*]] = 0 to 128)
// CHECK: tgl.read %row[128*%[[T]] + %[[P]]]
// CHECK-NEXT: %[[R:.*]] = arith.index_cast
// CHECK: tgl.read %x[%[[R]] floordiv 2, %{{.*}}]
// CHECK: tgl.write %{{.*}}, %y[%[[R]] floordiv 2, %[[R]] - 2*(%[[R]] floordiv 2), %[[M]]] if
// CHECK-NOT: tgl.parallel
tgl.kernel @pairs(%x: !tgl.tensor<[512, 64], bf16> {tgl.name = "x", tgl.role = "in"},
                  %w: !tgl.tensor<[4, 64, 128], bf16> {tgl.name = "w", tgl.role = "in"},
                  %e: !tgl.tensor<[512, 2], i32> {tgl.name = "e", tgl.role = "in"},
                  %y: !tgl.tensor<[512, 2, 128], f32> {tgl.name = "y", tgl.role = "out"}) {
  tgl.launch "y" {
    tgl.parallel (%n = 0 to 512, %j = 0 to 2, %m = 0 to 128) {
      %s = tgl.reduce sum (%k = 0 to 64) -> f32 {
        %three = arith.constant 3 : i32
        %a = tgl.read %x[%n, %k] : !tgl.tensor<[512, 64], bf16>
        %i = tgl.read %e[%n, %j] : !tgl.tensor<[512, 2], i32>
        %low = arith.andi %i, %three : i32
        %g = arith.index_cast %low : i32 to index
        %c = tgl.read %w[%g, %k, %m] : !tgl.tensor<[4, 64, 128], bf16>
        %p = arith.mulf %a, %c : f32
        tgl.yield %p : f32
      }
      tgl.write %s, %y[%n, %j, %m] : f32, !tgl.tensor<[512, 2, 128], f32>
    }
  }
}

// -----

// Two statements with the same numbers have one order of rows.
// CHECK-LABEL: tgl.kernel @layers
// CHECK: %row = tgl.temp "row"
// CHECK: tgl.launch "h"
// CHECK-NOT: tgl.temp
// CHECK: tgl.read %row[
// CHECK: tgl.write %{{.*}}, %h[
// CHECK: tgl.launch "y"
// CHECK-NEXT: tgl.parallel (%[[T:.*]] = 0 to 7, %[[P:.*]] = 0 to 128, %{{.*}} = 0 to 64)
// CHECK-NEXT: tgl.read %row[128*%[[T]] + %[[P]]]
// CHECK: tgl.write %{{.*}}, %y[
// CHECK-NOT: tgl.parallel
tgl.kernel @layers(%x: !tgl.tensor<[512, 64], bf16> {tgl.name = "x", tgl.role = "in"},
                   %w: !tgl.tensor<[4, 64, 128], bf16> {tgl.name = "w", tgl.role = "in"},
                   %v: !tgl.tensor<[4, 128, 64], bf16> {tgl.name = "v", tgl.role = "in"},
                   %e: !tgl.tensor<[512], i32> {tgl.name = "e", tgl.role = "in"},
                   %y: !tgl.tensor<[512, 64], bf16> {tgl.name = "y", tgl.role = "out"}) {
  %h = tgl.temp "h" : !tgl.tensor<[512, 128], bf16>
  tgl.launch "h" {
    tgl.parallel (%n = 0 to 512, %m = 0 to 128) {
      %s = tgl.reduce sum (%k = 0 to 64) -> f32 {
        %three = arith.constant 3 : i32
        %a = tgl.read %x[%n, %k] : !tgl.tensor<[512, 64], bf16>
        %i = tgl.read %e[%n] : !tgl.tensor<[512], i32>
        %low = arith.andi %i, %three : i32
        %g = arith.index_cast %low : i32 to index
        %c = tgl.read %w[%g, %k, %m] : !tgl.tensor<[4, 64, 128], bf16>
        %p = arith.mulf %a, %c : f32
        tgl.yield %p : f32
      }
      tgl.write %s, %h[%n, %m] : f32, !tgl.tensor<[512, 128], bf16>
    }
  }
  tgl.launch "y" {
    tgl.parallel (%n = 0 to 512, %k = 0 to 64) {
      %s = tgl.reduce sum (%m = 0 to 128) -> f32 {
        %three = arith.constant 3 : i32
        %a = tgl.read %h[%n, %m] : !tgl.tensor<[512, 128], bf16>
        %i = tgl.read %e[%n] : !tgl.tensor<[512], i32>
        %low = arith.andi %i, %three : i32
        %g = arith.index_cast %low : i32 to index
        %c = tgl.read %v[%g, %m, %k] : !tgl.tensor<[4, 128, 64], bf16>
        %p = arith.mulf %a, %c : f32
        tgl.yield %p : f32
      }
      tgl.write %s, %y[%n, %k] : f32, !tgl.tensor<[512, 64], bf16>
    }
  }
}

// -----

// A sum over the experts of a row too: products of all pairs, then their weighed sum.
// CHECK-LABEL: tgl.kernel @weighed
// CHECK: %part = tgl.temp "part" : !tgl.tensor<[512, 2, 128], f32>
// CHECK: tgl.parallel (%{{.*}} = 0 to 11, %{{.*}} = 0 to 128, %[[M:.*]] = 0 to 128)
// CHECK: %[[SUM:.*]] = tgl.reduce sum (%{{.*}} = 0 to 64) -> f32
// CHECK-NOT: %g[
// CHECK: tgl.write %[[SUM]], %part[%{{.*}} floordiv 2, %{{.*}}, %[[M]]] if
// CHECK: tgl.parallel (%[[N:.*]] = 0 to 512, %[[M:.*]] = 0 to 128)
// CHECK-NEXT: tgl.reduce sum (%[[J:.*]] = 0 to 2) -> f32
// CHECK-NEXT: %[[PART:.*]] = tgl.read %part[%[[N]], %[[J]], %[[M]]]
// CHECK-NEXT: %[[G:.*]] = tgl.read %g[%[[N]], %[[J]]]
// CHECK-NEXT: arith.mulf %[[PART]], %[[G]]
tgl.kernel @weighed(%x: !tgl.tensor<[512, 64], bf16> {tgl.name = "x", tgl.role = "in"},
                    %w: !tgl.tensor<[4, 64, 128], bf16> {tgl.name = "w", tgl.role = "in"},
                    %e: !tgl.tensor<[512, 2], i32> {tgl.name = "e", tgl.role = "in"},
                    %g: !tgl.tensor<[512, 2], f32> {tgl.name = "g", tgl.role = "in"},
                    %y: !tgl.tensor<[512, 128], bf16> {tgl.name = "y", tgl.role = "out"}) {
  tgl.launch "y" {
    tgl.parallel (%n = 0 to 512, %m = 0 to 128) {
      %s = tgl.reduce sum (%j = 0 to 2, %k = 0 to 64) -> f32 {
        %three = arith.constant 3 : i32
        %v = tgl.read %g[%n, %j] : !tgl.tensor<[512, 2], f32>
        %a = tgl.read %x[%n, %k] : !tgl.tensor<[512, 64], bf16>
        %i = tgl.read %e[%n, %j] : !tgl.tensor<[512, 2], i32>
        %low = arith.andi %i, %three : i32
        %own = arith.index_cast %low : i32 to index
        %c = tgl.read %w[%own, %k, %m] : !tgl.tensor<[4, 64, 128], bf16>
        %p = arith.mulf %a, %c : f32
        %q = arith.mulf %v, %p : f32
        tgl.yield %q : f32
      }
      tgl.write %s, %y[%n, %m] : f32, !tgl.tensor<[512, 128], bf16>
    }
  }
}

// -----

// Few rows of each group, rows that data chooses, and a matrix for each step of the sum stay as they are.
// CHECK-LABEL: tgl.kernel @others
// CHECK-NOT: tgl.temp
tgl.kernel @others(%x: !tgl.tensor<[512, 64], bf16> {tgl.name = "x", tgl.role = "in"},
                   %w: !tgl.tensor<[64, 64, 128], bf16> {tgl.name = "w", tgl.role = "in"},
                   %v: !tgl.tensor<[64, 128], bf16> {tgl.name = "v", tgl.role = "in"},
                   %e: !tgl.tensor<[512], i32> {tgl.name = "e", tgl.role = "in"},
                   %y: !tgl.tensor<[512, 128], bf16> {tgl.name = "y", tgl.role = "out"},
                   %z: !tgl.tensor<[512, 128], bf16> {tgl.name = "z", tgl.role = "out"}) {
  tgl.launch "y" {
    tgl.parallel (%n = 0 to 512, %m = 0 to 128) {
      %s = tgl.reduce sum (%k = 0 to 64) -> f32 {
        %a = tgl.read %x[%n, %k] : !tgl.tensor<[512, 64], bf16>
        %i = tgl.read %e[%n] : !tgl.tensor<[512], i32>
        %g = arith.index_cast %i : i32 to index
        %c = tgl.read %w[%g, %k, %m] checked "e[n]" : !tgl.tensor<[64, 64, 128], bf16>
        %p = arith.mulf %a, %c : f32
        tgl.yield %p : f32
      }
      tgl.write %s, %y[%n, %m] : f32, !tgl.tensor<[512, 128], bf16>
    }
    tgl.parallel (%n = 0 to 512, %m = 0 to 128) {
      %s = tgl.reduce sum (%k = 0 to 64) -> f32 {
        %i = tgl.read %e[%n] : !tgl.tensor<[512], i32>
        %g = arith.index_cast %i : i32 to index
        %a = tgl.read %x[%g, %k] checked "e[n]" : !tgl.tensor<[512, 64], bf16>
        %c = tgl.read %v[%k, %m] : !tgl.tensor<[64, 128], bf16>
        %p = arith.mulf %a, %c : f32
        tgl.yield %p : f32
      }
      tgl.write %s, %z[%n, %m] : f32, !tgl.tensor<[512, 128], bf16>
    }
  }
}

// -----

// Nor does a matrix that a value stands for where data chooses none.
// CHECK-LABEL: tgl.kernel @filled
// CHECK-NOT: tgl.temp
tgl.kernel @filled(%x: !tgl.tensor<[4096, 512], bf16> {tgl.name = "x", tgl.role = "in"},
                   %w: !tgl.tensor<[4, 512, 512], bf16> {tgl.name = "w", tgl.role = "in"},
                   %e: !tgl.tensor<[4096], i32> {tgl.name = "e", tgl.role = "in"},
                   %y: !tgl.tensor<[4096, 512], bf16> {tgl.name = "y", tgl.role = "out"}) {
  %zero = arith.constant 0.0 : f32
  tgl.launch "y" {
    tgl.parallel (%n = 0 to 4096, %m = 0 to 512) {
      %s = tgl.reduce sum (%k = 0 to 512) -> f32 {
        %a = tgl.read %x[%n, %k] : !tgl.tensor<[4096, 512], bf16>
        %i = tgl.read %e[%n] : !tgl.tensor<[4096], i32>
        %g = arith.index_cast %i : i32 to index
        %c = tgl.read %w[%g, %k, %m] fill %zero : !tgl.tensor<[4, 512, 512], bf16>
        %p = arith.mulf %a, %c : f32
        tgl.yield %p : f32
      }
      tgl.write %s, %y[%n, %m] : f32, !tgl.tensor<[4096, 512], bf16>
    }
  }
}

// -----

// Two rows of each group are enough where their matrices are large, unless f32 had to be split into terms.
// CHECK-LABEL: tgl.kernel @large
// CHECK: tgl.temp "row"
tgl.kernel @large(%x: !tgl.tensor<[128, 1024], bf16> {tgl.name = "x", tgl.role = "in"},
                  %w: !tgl.tensor<[64, 1024, 1024], bf16> {tgl.name = "w", tgl.role = "in"},
                  %e: !tgl.tensor<[128], i32> {tgl.name = "e", tgl.role = "in"},
                  %y: !tgl.tensor<[128, 1024], bf16> {tgl.name = "y", tgl.role = "out"}) {
  tgl.launch "y" {
    tgl.parallel (%n = 0 to 128, %m = 0 to 1024) {
      %s = tgl.reduce sum (%k = 0 to 1024) -> f32 {
        %a = tgl.read %x[%n, %k] : !tgl.tensor<[128, 1024], bf16>
        %i = tgl.read %e[%n] : !tgl.tensor<[128], i32>
        %g = arith.index_cast %i : i32 to index
        %c = tgl.read %w[%g, %k, %m] checked "e[n]" : !tgl.tensor<[64, 1024, 1024], bf16>
        %p = arith.mulf %a, %c : f32
        tgl.yield %p : f32
      }
      tgl.write %s, %y[%n, %m] : f32, !tgl.tensor<[128, 1024], bf16>
    }
  }
}

// -----

// CHECK-LABEL: tgl.kernel @terms
// CHECK-NOT: tgl.temp
tgl.kernel @terms(%x: !tgl.tensor<[128, 1024], f32> {tgl.name = "x", tgl.role = "in"},
                  %w: !tgl.tensor<[64, 1024, 1024], f32> {tgl.name = "w", tgl.role = "in"},
                  %e: !tgl.tensor<[128], i32> {tgl.name = "e", tgl.role = "in"},
                  %y: !tgl.tensor<[128, 1024], f32> {tgl.name = "y", tgl.role = "out"}) {
  tgl.launch "y" {
    tgl.parallel (%n = 0 to 128, %m = 0 to 1024) {
      %s = tgl.reduce sum (%k = 0 to 1024) -> f32 {
        %a = tgl.read %x[%n, %k] : !tgl.tensor<[128, 1024], f32>
        %i = tgl.read %e[%n] : !tgl.tensor<[128], i32>
        %g = arith.index_cast %i : i32 to index
        %c = tgl.read %w[%g, %k, %m] checked "e[n]" : !tgl.tensor<[64, 1024, 1024], f32>
        %p = arith.mulf %a, %c : f32
        tgl.yield %p : f32
      }
      tgl.write %s, %y[%n, %m] : f32, !tgl.tensor<[128, 1024], f32>
    }
  }
}
