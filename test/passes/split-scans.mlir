// RUN: tegula-opt %s --tgl-split-scans=threads=4096 --split-input-file | FileCheck %s

// A row of a million steps: sums of pieces, a scan of these, and the loop of each piece from the total before it.
// CHECK-LABEL: tgl.kernel @row
// CHECK: %part = tgl.temp "part" : !tgl.tensor<[64], f32>
// CHECK: %before = tgl.temp "before" : !tgl.tensor<[64], f32>
// CHECK: tgl.parallel (%[[P:.*]] = 0 to 64)
// CHECK-NEXT: %[[S:.*]] = tgl.reduce sum (%[[I:.*]] = 16384*%[[P]] to 16384*%[[P]] + 16384)
// CHECK-NEXT: tgl.read %x[%[[I]]]
// CHECK: tgl.write %[[S]], %part[%[[P]]]
// CHECK: tgl.parallel ()
// CHECK: tgl.for %[[Q:.*]] = 0 to 64 iter (%[[C:.*]] = %{{.*}} : f32)
// CHECK: %[[T:.*]] = tgl.read %part[%[[Q]]]
// CHECK: tgl.write %[[C]], %before[%[[Q]]]
// CHECK: arith.addf %[[C]], %[[T]]
// CHECK: tgl.parallel (%[[R:.*]] = 0 to 64)
// CHECK: %[[B:.*]] = tgl.read %before[%[[R]]]
// CHECK: tgl.for %{{.*}} = 16384*%[[R]] to 16384*%[[R]] + 16384 iter (%{{.*}} = %[[B]] : f32)
// CHECK: tgl.write %{{.*}}, %y[
// CHECK-NOT: tgl.parallel
tgl.kernel @row(%x: !tgl.tensor<[1048576], f32> {tgl.name = "x", tgl.role = "in"},
                %y: !tgl.tensor<[1048576], f32> {tgl.name = "y", tgl.role = "out"}) {
  tgl.parallel () {
    %zero = arith.constant 0.0 : f32
    %0 = tgl.for %i = 0 to 1048576 iter (%c = %zero : f32) {
      %v = tgl.read %x[%i] : !tgl.tensor<[1048576], f32>
      %n = arith.addf %c, %v : f32
      tgl.write %n, %y[%i] : f32, !tgl.tensor<[1048576], f32>
      tgl.yield %n : f32
    }
  }
}

// -----

// Along columns pieces come first, so that neighbouring points stay neighbours. Downwards the totals are scanned
// downwards too; the last piece is shorter. What the loop takes of its statement is read again, or kept.
// CHECK-LABEL: tgl.kernel @columns
// CHECK: %kept = tgl.temp "kept" : !tgl.tensor<[4], f32>
// CHECK: tgl.temp "part" : !tgl.tensor<[304, 4], f32>
// CHECK: tgl.parallel (%{{.*}} = 0 to 4)
// CHECK: tgl.reduce
// CHECK: tgl.write %{{.*}}, %kept
// CHECK-NOT: tgl.for
// CHECK: tgl.parallel (%[[P:.*]] = 0 to 304, %{{.*}} = 0 to 4)
// CHECK-NOT: %kept
// CHECK: tgl.reduce max (%{{.*}} = 33*%[[P]] to min(10007, 33*%[[P]] + 33))
// CHECK: tgl.for %{{.*}} = 0 to 304 reverse
// CHECK: arith.maximumf
// CHECK: tgl.parallel
// CHECK: tgl.read %kept
// CHECK: tgl.for %{{.*}} = 33*%{{.*}} to min(10007, {{.*}}) reverse
// CHECK: arith.divf
tgl.kernel @columns(%x: !tgl.tensor<[10007, 4], f32> {tgl.name = "x", tgl.role = "in"},
                    %y: !tgl.tensor<[10007, 4], f32> {tgl.name = "y", tgl.role = "out"}) {
  tgl.parallel (%j = 0 to 4) {
    %least = arith.constant 0xFF800000 : f32
    %s = tgl.reduce sum (%k = 0 to 10007) -> f32 {
      %v = tgl.read %x[%k, %j] : !tgl.tensor<[10007, 4], f32>
      tgl.yield %v : f32
    }
    %0 = tgl.for %i = 0 to 10007 reverse iter (%c = %least : f32) {
      %v = tgl.read %x[%i, %j] : !tgl.tensor<[10007, 4], f32>
      %n = arith.maximumf %c, %v : f32
      %q = arith.divf %n, %s : f32
      tgl.write %q, %y[%i, %j] : f32, !tgl.tensor<[10007, 4], f32>
      tgl.yield %n : f32
    }
  }
}

// -----

// Short rows, rows enough, totals that somebody reads, a loop whose step is more than one addition, and what a later op
// of the statement reads stay.
// CHECK-LABEL: tgl.kernel @short
// CHECK-NOT: "part"
tgl.kernel @short(%x: !tgl.tensor<[2, 8192], f32> {tgl.name = "x", tgl.role = "in"},
                  %y: !tgl.tensor<[2, 8192], f32> {tgl.name = "y", tgl.role = "out"}) {
  tgl.parallel (%r = 0 to 2) {
    %zero = arith.constant 0.0 : f32
    %0 = tgl.for %i = 0 to 8192 iter (%c = %zero : f32) {
      %v = tgl.read %x[%r, %i] : !tgl.tensor<[2, 8192], f32>
      %n = arith.addf %c, %v : f32
      tgl.write %n, %y[%r, %i] : f32, !tgl.tensor<[2, 8192], f32>
      tgl.yield %n : f32
    }
  }
}

// -----

// CHECK-LABEL: tgl.kernel @recurrence
// CHECK-NOT: "part"
tgl.kernel @recurrence(%x: !tgl.tensor<[1048576], f32> {tgl.name = "x", tgl.role = "in"},
                       %y: !tgl.tensor<[1048576], f32> {tgl.name = "y", tgl.role = "out"}) {
  tgl.parallel () {
    %zero = arith.constant 0.0 : f32
    %0 = tgl.for %i = 0 to 1048576 iter (%c = %zero : f32) {
      %v = tgl.read %x[%i] : !tgl.tensor<[1048576], f32>
      %m = arith.mulf %c, %v : f32
      %n = arith.addf %m, %v : f32
      tgl.write %n, %y[%i] : f32, !tgl.tensor<[1048576], f32>
      tgl.yield %n : f32
    }
  }
}

// -----

// CHECK-LABEL: tgl.kernel @read
// CHECK-NOT: "part"
tgl.kernel @read(%x: !tgl.tensor<[1048576], f32> {tgl.name = "x", tgl.role = "in"},
                 %y: !tgl.tensor<[1048576], f32> {tgl.name = "y", tgl.role = "out"},
                 %z: !tgl.tensor<[1048576], f32> {tgl.name = "z", tgl.role = "out"}) {
  tgl.parallel () {
    %zero = arith.constant 0.0 : f32
    %0 = tgl.for %i = 0 to 1048576 iter (%c = %zero : f32) {
      %v = tgl.read %x[%i] : !tgl.tensor<[1048576], f32>
      %n = arith.addf %c, %v : f32
      tgl.write %n, %y[%i] : f32, !tgl.tensor<[1048576], f32>
      tgl.yield %n : f32
    }
    tgl.parallel (%j = 0 to 1048576) {
      %v = tgl.read %y[%j] : !tgl.tensor<[1048576], f32>
      tgl.write %v, %z[%j] : f32, !tgl.tensor<[1048576], f32>
    }
  }
}
