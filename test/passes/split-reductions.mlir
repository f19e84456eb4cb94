// RUN: tegula-opt %s --tgl-split-reductions=threads=4096 --split-input-file | FileCheck %s

// One point and a million terms: partial sums are points of a statement of their own.
// CHECK-LABEL: tgl.kernel @total
// CHECK: %part = tgl.temp "part" : !tgl.tensor<[16], f32>
// CHECK: tgl.parallel (%[[C:.*]] = 0 to 16)
// CHECK: tgl.reduce sum (%i = 65536*%[[C]] to 65536*%[[C]] + 65536)
// CHECK: tgl.write %{{.*}}, %part[%[[C]]]
// CHECK: tgl.parallel ()
// CHECK: tgl.reduce sum (%[[D:.*]] = 0 to 16)
// CHECK: tgl.read %part[%[[D]]]
// CHECK: tgl.write %{{.*}}, %y[]
tgl.kernel @total(%x: !tgl.tensor<[1048576], f32> {tgl.name = "x", tgl.role = "in"},
                  %y: !tgl.tensor<[], f32> {tgl.name = "y", tgl.role = "out"}) {
  tgl.parallel () {
    %s = tgl.reduce sum (%i = 0 to 1048576) -> f32 {
      %v = tgl.read %x[%i] : !tgl.tensor<[1048576], f32>
      tgl.yield %v : f32
    }
    tgl.write %s, %y[] : f32, !tgl.tensor<[], f32>
  }
}

// -----

// Along columns pieces come first, so that neighbouring points stay neighbours. The last piece is shorter. Two
// reductions over the same terms share a statement; the third needs the first, whose parts are added up in front
// of its own.
// CHECK-LABEL: tgl.kernel @columns
// CHECK: tgl.temp "part" : !tgl.tensor<[39, 128], f32>
// CHECK: tgl.temp "part" : !tgl.tensor<[39, 128], i64>
// CHECK: tgl.parallel (%[[C:.*]] = 0 to 39, %[[J:.*]] = 0 to 128)
// CHECK: tgl.reduce max (%{{.*}} = 257*%[[C]] to min(10007, 257*%[[C]] + 257))
// CHECK: tgl.reduce count (%{{.*}} = 257*%[[C]] to min(10007, 257*%[[C]] + 257))
// CHECK: tgl.temp "part" : !tgl.tensor<[39, 128], f32>
// CHECK: tgl.parallel
// CHECK: %[[M:.*]] = tgl.reduce max (%{{.*}} = 0 to 39)
// CHECK: tgl.reduce sum (%{{.*}} = 257
// CHECK: arith.subf %{{.*}}, %[[M]]
// CHECK: tgl.parallel (%j = 0 to 128)
// CHECK: tgl.reduce max (%{{.*}} = 0 to 39)
// CHECK: tgl.reduce sum (%{{.*}} = 0 to 39)
// CHECK: tgl.reduce sum (%{{.*}} = 0 to 39)
tgl.kernel @columns(%x: !tgl.tensor<[10007, 128], f32> {tgl.name = "x", tgl.role = "in"},
                    %y: !tgl.tensor<[128], f32> {tgl.name = "y", tgl.role = "out"},
                    %n: !tgl.tensor<[128], i64> {tgl.name = "n", tgl.role = "out"}) {
  tgl.parallel (%j = 0 to 128) {
    %m = tgl.reduce max (%i = 0 to 10007) -> f32 {
      %v = tgl.read %x[%i, %j] : !tgl.tensor<[10007, 128], f32>
      tgl.yield %v : f32
    }
    %c = tgl.reduce count (%i = 0 to 10007) -> i64 {
      %v = tgl.read %x[%i, %j] : !tgl.tensor<[10007, 128], f32>
      %z = arith.constant 0.0 : f32
      %p = arith.cmpf ogt, %v, %z : f32
      tgl.yield %p : i1
    }
    %s = tgl.reduce sum (%i = 0 to 10007) -> f32 {
      %v = tgl.read %x[%i, %j] : !tgl.tensor<[10007, 128], f32>
      %d = arith.subf %v, %m : f32
      tgl.yield %d : f32
    }
    tgl.write %s, %y[%j] : f32, !tgl.tensor<[128], f32>
    tgl.write %c, %n[%j] : i64, !tgl.tensor<[128], i64>
  }
}

// -----

// Places of some terms only, sizes that are not known and short reductions stay.
// CHECK-LABEL: tgl.kernel @stays
// CHECK-NOT: tgl.temp
tgl.kernel @stays(%x: !tgl.tensor<[N, 1048576], f32> {tgl.name = "x", tgl.role = "in"},
                  %y: !tgl.tensor<[], i64> {tgl.name = "y", tgl.role = "out"},
                  %z: !tgl.tensor<[2], f32> {tgl.name = "z", tgl.role = "out"}) sizes [N = 0 : 0] {
  tgl.parallel () {
    %zero = arith.constant 0.0 : f32
    %s = tgl.reduce argmax filtered (%i = 0 to 1048576) -> i64 {
      %v = tgl.read %x[0, %i] : !tgl.tensor<[N, 1048576], f32>
      %c = arith.cmpf olt, %v, %zero : f32
      tgl.yield %v, %c : f32, i1
    }
    tgl.write %s, %y[] : i64, !tgl.tensor<[], i64>
  }
  tgl.parallel (%j = 0 to 2) {
    %a = tgl.reduce sum (%i = 0 to N) -> f32 {
      %v = tgl.read %x[%i, %j] : !tgl.tensor<[N, 1048576], f32>
      tgl.yield %v : f32
    }
    %b = tgl.reduce sum (%i = 0 to 1000) -> f32 {
      %v = tgl.read %x[%j, %i] : !tgl.tensor<[N, 1048576], f32>
      tgl.yield %v : f32
    }
    %c = arith.addf %a, %b : f32
    tgl.write %c, %z[%j] : f32, !tgl.tensor<[2], f32>
  }
}

// -----

// Of a variance, pieces have their own, and the distances of their means from the mean of all are added.
// CHECK-LABEL: tgl.kernel @variance
// CHECK: %[[S:.*]] = tgl.temp "part" : !tgl.tensor<[16], f32>
// CHECK: %[[V:.*]] = tgl.temp "part" : !tgl.tensor<[16], f32>
// CHECK: tgl.parallel (%[[C:.*]] = 0 to 16)
// CHECK: tgl.reduce sum (%i = 65536*%[[C]] to 65536*%[[C]] + 65536)
// CHECK: tgl.reduce var (%i = 65536*%[[C]] to 65536*%[[C]] + 65536)
// CHECK: tgl.parallel ()
// CHECK: %[[ALL:.*]] = tgl.reduce sum (%{{.*}} = 0 to 16)
// CHECK: %[[MEAN:.*]] = arith.divf %[[ALL]]
// CHECK: tgl.reduce sum (%{{.*}} = 0 to 16)
// CHECK: arith.subf %{{.*}}, %[[MEAN]]
// CHECK-NOT: tgl.reduce var
tgl.kernel @variance(%x: !tgl.tensor<[1048576], f32> {tgl.name = "x", tgl.role = "in"},
                     %y: !tgl.tensor<[2], f32> {tgl.name = "y", tgl.role = "out"}) {
  tgl.parallel () {
    %s = tgl.reduce sum (%i = 0 to 1048576) -> f32 {
      %v = tgl.read %x[%i] : !tgl.tensor<[1048576], f32>
      tgl.yield %v : f32
    }
    %q = tgl.reduce var (%i = 0 to 1048576) -> f32 {
      %v = tgl.read %x[%i] : !tgl.tensor<[1048576], f32>
      tgl.yield %v : f32
    }
    tgl.write %s, %y[0] : f32, !tgl.tensor<[2], f32>
    tgl.write %q, %y[1] : f32, !tgl.tensor<[2], f32>
  }
}

// -----

// Points enough to begin with, but the last of such long rows would run almost alone: each is cut in eight.
// CHECK-LABEL: tgl.kernel @last
// CHECK: %part = tgl.temp "part" : !tgl.tensor<[8, 8], f32>
// CHECK: tgl.parallel (%i = 0 to 8, %[[C:.*]] = 0 to 8)
// CHECK: tgl.reduce sum (%j = 131072*%[[C]] to 131072*%[[C]] + 131072)
// CHECK: tgl.parallel (%i = 0 to 8)
// CHECK: tgl.reduce sum (%{{.*}} = 0 to 8)
tgl.kernel @last(%x: !tgl.tensor<[8, 1048576], f32> {tgl.name = "x", tgl.role = "in"},
                 %y: !tgl.tensor<[8], f32> {tgl.name = "y", tgl.role = "out"}) {
  tgl.parallel (%i = 0 to 8) {
    %s = tgl.reduce sum (%j = 0 to 1048576) -> f32 {
      %v = tgl.read %x[%i, %j] : !tgl.tensor<[8, 1048576], f32>
      tgl.yield %v : f32
    }
    tgl.write %s, %y[%i] : f32, !tgl.tensor<[8], f32>
  }
}

// -----

// Shorter ones are done before another launch has started.
// CHECK-LABEL: tgl.kernel @shorter
// CHECK-NOT: tgl.temp
// CHECK: tgl.reduce sum (%j = 0 to 1000000)
tgl.kernel @shorter(%x: !tgl.tensor<[8, 1000000], f32> {tgl.name = "x", tgl.role = "in"},
                    %y: !tgl.tensor<[8], f32> {tgl.name = "y", tgl.role = "out"}) {
  tgl.parallel (%i = 0 to 8) {
    %s = tgl.reduce sum (%j = 0 to 1000000) -> f32 {
      %v = tgl.read %x[%i, %j] : !tgl.tensor<[8, 1000000], f32>
      tgl.yield %v : f32
    }
    tgl.write %s, %y[%i] : f32, !tgl.tensor<[8], f32>
  }
}

// -----

// Of the place of the largest term pieces keep their own, and the term that is there; the first of the largest terms has it.
// CHECK-LABEL: tgl.kernel @place
// CHECK: %[[PLACES:.*]] = tgl.temp "part" : !tgl.tensor<[16], i64>
// CHECK: %[[TERMS:.*]] = tgl.temp "part" : !tgl.tensor<[16], f32>
// CHECK: tgl.parallel (%[[C:.*]] = 0 to 16)
// CHECK: %[[PLACE:.*]] = tgl.reduce argmax (%i = 65536*%[[C]] to 65536*%[[C]] + 65536)
// CHECK: %[[TERM:.*]] = tgl.reduce max (%i = 65536*%[[C]] to 65536*%[[C]] + 65536)
// CHECK: tgl.write %[[TERM]], %[[TERMS]][%[[C]]]
// CHECK: tgl.write %[[PLACE]], %[[PLACES]][%[[C]]]
// CHECK: tgl.parallel ()
// CHECK: %[[FIRST:.*]] = tgl.reduce argmax (%[[D:.*]] = 0 to 16)
// CHECK: tgl.read %[[TERMS]][%[[D]]]
// CHECK: %[[I:.*]] = arith.index_cast %[[FIRST]]
// CHECK: %[[R:.*]] = tgl.read %[[PLACES]][%[[I]]]
// CHECK: tgl.write %[[R]], %y[]
tgl.kernel @place(%x: !tgl.tensor<[1048576], f32> {tgl.name = "x", tgl.role = "in"},
                  %y: !tgl.tensor<[], i64> {tgl.name = "y", tgl.role = "out"}) {
  tgl.parallel () {
    %s = tgl.reduce argmax (%i = 0 to 1048576) -> i64 {
      %v = tgl.read %x[%i] : !tgl.tensor<[1048576], f32>
      tgl.yield %v : f32
    }
    tgl.write %s, %y[] : i64, !tgl.tensor<[], i64>
  }
}

// -----

// Columns of a product that warpgroups reduce: 64 blocks of 128 rows would leave half of the machine idle, and in halves of
// the columns 66 of them would read more rows at a time than L2 keeps.
// CHECK-LABEL: tgl.kernel @columns_of_product
// CHECK: tgl.temp "part" : !tgl.tensor<[8192, 8], f32>
// CHECK: tgl.parallel (%[[I:.*]] = 0 to 8192, %[[C:.*]] = 0 to 8)
// CHECK: tgl.reduce logsumexp (%j = 1024*%[[C]] to 1024*%[[C]] + 1024)
// CHECK-NEXT: tgl.reduce sum (%d = 0 to 4096)
// CHECK: tgl.parallel (%{{.*}} = 0 to 8192)
// CHECK: tgl.reduce logsumexp (%{{.*}} = 0 to 8)
tgl.kernel @columns_of_product(%x: !tgl.tensor<[8192, 4096], bf16> {tgl.name = "x", tgl.role = "in"},
                               %w: !tgl.tensor<[8192, 4096], bf16> {tgl.name = "w", tgl.role = "in"},
                               %y: !tgl.tensor<[8192], f32> {tgl.name = "y", tgl.role = "out"}) {
  tgl.parallel (%i = 0 to 8192) {
    %s = tgl.reduce logsumexp (%j = 0 to 8192) -> f32 {
      %z = tgl.reduce sum (%d = 0 to 4096) -> f32 {
        %a = tgl.read %x[%i, %d] : !tgl.tensor<[8192, 4096], bf16>
        %b = tgl.read %w[%j, %d] : !tgl.tensor<[8192, 4096], bf16>
        %p = arith.mulf %a, %b : f32
        tgl.yield %p : f32
      }
      tgl.yield %z : f32
    }
    tgl.write %s, %y[%i] : f32, !tgl.tensor<[8192], f32>
  }
}

// -----

// Of a place the term there is of the same product, whose tiles both share (tile-merge-loops).
// CHECK-LABEL: tgl.kernel @place_in_product
// CHECK: %[[TERM:.*]] = tgl.temp "part" : !tgl.tensor<[8192, 8], f32>
// CHECK: tgl.reduce argmin (%j = 1024*%[[PART:.*]] to 1024*%[[PART]] + 1024) -> i64
// CHECK: tgl.reduce min (%j = 1024*%[[PART]] to 1024*%[[PART]] + 1024) -> f32
// CHECK: tgl.parallel (%i = 0 to 8192)
// CHECK-NEXT: tgl.reduce argmin (%{{.*}} = 0 to 8)
// CHECK-NEXT: tgl.read %[[TERM]]
tgl.kernel @place_in_product(%x: !tgl.tensor<[8192, 4096], bf16> {tgl.name = "x", tgl.role = "in"},
                             %w: !tgl.tensor<[8192, 4096], bf16> {tgl.name = "w", tgl.role = "in"},
                             %y: !tgl.tensor<[8192], i64> {tgl.name = "y", tgl.role = "out"}) {
  tgl.parallel (%i = 0 to 8192) {
    %s = tgl.reduce argmin (%j = 0 to 8192) -> i64 {
      %z = tgl.reduce sum (%d = 0 to 4096) -> f32 {
        %a = tgl.read %x[%i, %d] : !tgl.tensor<[8192, 4096], bf16>
        %b = tgl.read %w[%j, %d] : !tgl.tensor<[8192, 4096], bf16>
        %p = arith.mulf %a, %b : f32
        tgl.yield %p : f32
      }
      tgl.yield %z : f32
    }
    tgl.write %s, %y[%i] : i64, !tgl.tensor<[8192], i64>
  }
}
