// RUN: tegula-opt %s --tgl-expand-reductions | FileCheck %s

// The variance: the mean first, then squares of differences.
// CHECK-LABEL: tgl.kernel @var
// CHECK: %[[SUM:.*]] = tgl.reduce sum (%k = 0 to N)
// CHECK: %[[N:.*]] = tgl.index max(
// CHECK: %[[I:.*]] = arith.index_cast %[[N]] : index to i64
// CHECK: %[[COUNT:.*]] = arith.sitofp %[[I]] : i64 to f32
// CHECK: %[[MEAN:.*]] = arith.divf %[[SUM]], %[[COUNT]]
// CHECK: %[[SQUARES:.*]] = tgl.reduce sum (%k = 0 to N)
// CHECK: %[[V:.*]] = tgl.read %x[%i, %k]
// CHECK: %[[D:.*]] = arith.subf %[[V]], %[[MEAN]]
// CHECK: arith.mulf %[[D]], %[[D]]
// CHECK: %[[R:.*]] = arith.divf %[[SQUARES]], %[[COUNT]]
// CHECK: tgl.write %[[R]], %y[%i]
tgl.kernel @var(%x: !tgl.tensor<[M, N], f32> {tgl.name = "x", tgl.role = "in"},
                %y: !tgl.tensor<[M], f32> {tgl.name = "y", tgl.role = "out"}) sizes [M = 0 : 0, N = 0 : 1] {
  tgl.parallel (%i = 0 to M) {
    %r = tgl.reduce var (%k = 0 to N) -> f32 {
      %v = tgl.read %x[%i, %k] : !tgl.tensor<[M, N], f32>
      tgl.yield %v : f32
    }
    tgl.write %r, %y[%i] : f32, !tgl.tensor<[M], f32>
  }
}

// The mean of filtered points divides by how many there are.
// CHECK-LABEL: tgl.kernel @mean
// CHECK: tgl.reduce sum filtered (%k = 0 to N) -> f32
// CHECK: tgl.reduce count (%k = 0 to N) -> i64
// CHECK: arith.divf
tgl.kernel @mean(%x: !tgl.tensor<[N], f32> {tgl.name = "x", tgl.role = "in"},
                 %y: !tgl.tensor<[], f32> {tgl.name = "y", tgl.role = "out"}) sizes [N = 0 : 0] {
  tgl.parallel () {
    %r = tgl.reduce mean filtered (%k = 0 to N) -> f32 {
      %v = tgl.read %x[%k] : !tgl.tensor<[N], f32>
      %zero = arith.constant 0.0 : f32
      %c = arith.cmpf ogt, %v, %zero : f32
      tgl.yield %v, %c : f32, i1
    }
    tgl.write %r, %y[] : f32, !tgl.tensor<[], f32>
  }
}

// CHECK-LABEL: tgl.kernel @softmax
// CHECK: %[[M:.*]] = tgl.reduce max (%k = 0 to N)
// CHECK: %[[S:.*]] = tgl.reduce sum (%k = 0 to N)
// CHECK: arith.subf %{{.*}}, %[[M]]
// CHECK: math.exp
// CHECK: tgl.read %x[%i, %j]
// CHECK: arith.subf %{{.*}}, %[[M]]
// CHECK: %[[E:.*]] = math.exp
// CHECK: arith.divf %[[E]], %[[S]]
// CHECK-NOT: tgl.scan
tgl.kernel @softmax(%x: !tgl.tensor<[M, N], f32> {tgl.name = "x", tgl.role = "in"},
                    %y: !tgl.tensor<[M, N], f32> {tgl.name = "y", tgl.role = "out"})
    sizes [M = 0 : 0, N = 0 : 1] {
  tgl.parallel (%i = 0 to M, %j = 0 to N) {
    %s = tgl.scan softmax (%k = 0 to N) at [%j] -> f32 {
      %v = tgl.read %x[%i, %k] : !tgl.tensor<[M, N], f32>
      tgl.yield %v : f32
    }
    tgl.write %s, %y[%i, %j] : f32, !tgl.tensor<[M, N], f32>
  }
}

// An infinite maximum is not subtracted.
// CHECK-LABEL: tgl.kernel @logsumexp
// CHECK: %[[M:.*]] = tgl.reduce max
// CHECK: %[[A:.*]] = math.absf %[[M]]
// CHECK: %[[C:.*]] = arith.cmpf oeq, %[[A]]
// CHECK: %[[SHIFT:.*]] = arith.select %[[C]], %{{.*}}, %[[M]]
// CHECK: tgl.reduce sum
// CHECK: arith.subf %{{.*}}, %[[SHIFT]]
// CHECK: %[[L:.*]] = math.log
// CHECK: arith.addf %[[L]], %[[SHIFT]]
tgl.kernel @logsumexp(%x: !tgl.tensor<[N], f32> {tgl.name = "x", tgl.role = "in"},
                      %y: !tgl.tensor<[], f32> {tgl.name = "y", tgl.role = "out"}) sizes [N = 0 : 0] {
  tgl.parallel () {
    %r = tgl.reduce logsumexp (%k = 0 to N) -> f32 {
      %v = tgl.read %x[%k] : !tgl.tensor<[N], f32>
      tgl.yield %v : f32
    }
    tgl.write %r, %y[] : f32, !tgl.tensor<[], f32>
  }
}

// With keep-exponentials softmax computes each exp once, in a statement of its own.
// RUN: tegula-opt %s --tgl-expand-reductions=keep-exponentials=true | FileCheck %s --check-prefix=KEEP
// KEEP: tgl.kernel @softmax_kept
// KEEP: %[[EXP:.*]] = tgl.temp "exp" : !tgl.tensor<[M, N], f32>
// KEEP: tgl.parallel (%i = 0 to M, %k = 0 to N) {
// KEEP: tgl.reduce max
// KEEP: math.exp
// KEEP-NEXT: tgl.write %{{.*}}, %[[EXP]][%i, %k]
// KEEP: tgl.reduce sum
// KEEP-NEXT: tgl.read %[[EXP]][%i, %{{.*}}]
// KEEP-NOT: math.exp
// KEEP: arith.divf
tgl.kernel @softmax_kept(%x: !tgl.tensor<[M, N], f32> {tgl.name = "x", tgl.role = "in"}, %y: !tgl.tensor<[M, N], f32> {tgl.name = "y", tgl.role = "out"})
    sizes [M = 0 : 0, N = 0 : 1] {
  tgl.parallel (%i = 0 to M, %j = 0 to N) {
    %0 = tgl.scan softmax (%k = 0 to N) at [%j] -> f32 {
      %1 = tgl.read %x[%i, %k] : !tgl.tensor<[M, N], f32>
      tgl.yield %1 : f32
    }
    tgl.write %0, %y[%i, %j] : f32, !tgl.tensor<[M, N], f32>
  }
}

// What the mean is off by, which the sum of differences says, is taken off a variance.
// RUN: tegula-opt %s --tgl-expand-reductions=correct-variances=true | FileCheck %s --check-prefix=OFF
// OFF-LABEL: tgl.kernel @var
// OFF-COUNT-2: tgl.reduce sum
// OFF: %[[OFF:.*]] = tgl.reduce sum
// OFF: %[[SQUARE:.*]] = arith.mulf %[[OFF]], %[[OFF]]
// OFF: %[[EXCESS:.*]] = arith.divf %[[SQUARE]], %{{.*}}
// OFF: arith.subf %{{.*}}, %[[EXCESS]]
