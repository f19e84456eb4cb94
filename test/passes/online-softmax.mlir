// RUN: tegula-opt %s --tgl-online-softmax --tgl-counters 2>&1 | FileCheck %s

// The softmax of scaled, masked scores, rounded to bf16, is one factor of a product.
// CHECK-LABEL: tgl.kernel @attention
// CHECK: tgl.parallel (%b = 0 to 2, %i = 0 to 64) {
// CHECK-NEXT: tgl.temp "acc"
// CHECK: %[[SUM:.*]]:2 = tgl.tiles (%j_lo, %j_hi) = 0 to 128 size 32 iter (%l = %{{.*}} : f32, %m = %{{.*}} : f32) {
// CHECK: tgl.parallel (%j = %j_lo to %j_hi) {
// CHECK: tgl.yield
// CHECK: %[[SCALED:.*]] = arith.mulf
// CHECK-NOT: arith.addf
// CHECK: %[[SCORE:.*]] = arith.select %{{.*}}, %[[SCALED]], %{{.*}} : f32
// CHECK: tgl.write %[[SCORE]], %[[S:.*]][%j - %j_lo]
// CHECK: %[[OWN:.*]] = tgl.reduce max (%j = %j_lo to %j_hi)
// CHECK: %[[MAX:.*]] = arith.maximumf %m, %[[OWN]]
// CHECK: arith.addf %{{.*}} fast
// CHECK: tgl.reduce sum (%j = %j_lo to %j_hi) -> f32 {
// CHECK: %[[P:.*]] = tgl.read %p
// CHECK: tgl.convert %[[P]] to bf16
// CHECK: tgl.yield %{{.*}}, %[[MAX]] : f32, f32
// CHECK: arith.divf %{{.*}}, %[[SUM]]#0
// CHECK-NOT: tgl.parallel (%b
// CHECK: tgl.kernel @rounded_scores
tgl.kernel @attention(%q: !tgl.tensor<[2, 64, 64], bf16> {tgl.name = "q", tgl.role = "in"},
                      %k: !tgl.tensor<[2, 128, 64], bf16> {tgl.name = "k", tgl.role = "in"},
                      %v: !tgl.tensor<[2, 128, 64], bf16> {tgl.name = "v", tgl.role = "in"},
                      %o: !tgl.tensor<[2, 64, 64], bf16> {tgl.name = "o", tgl.role = "out"}) {
  %scale = arith.constant 0.125 : f32
  %zero = arith.constant 0.0 : f32
  %out = arith.constant 0xFF800000 : f32
  %s = tgl.temp "s" : !tgl.tensor<[2, 64, 128], f32>
  tgl.parallel (%b = 0 to 2, %i = 0 to 64, %j = 0 to 128) {
    %x = arith.index_cast %j : index to i64
    %y = arith.index_cast %i : index to i64
    %c = arith.cmpi sle, %x, %y : i64
    %dot = tgl.reduce sum (%e = 0 to 64) -> f32 {
      %f = tgl.read %q[%b, %i, %e] : !tgl.tensor<[2, 64, 64], bf16>
      %g = tgl.read %k[%b, %j, %e] : !tgl.tensor<[2, 128, 64], bf16>
      %h = arith.mulf %f, %g fastmath<contract> : f32
      tgl.yield %h : f32
    }
    %scaled = arith.mulf %dot, %scale fastmath<contract> : f32
    %biased = arith.addf %scaled, %zero fastmath<contract> : f32
    %masked = arith.select %c, %biased, %out : f32
    tgl.write %masked, %s[%b, %i, %j] : f32, !tgl.tensor<[2, 64, 128], f32>
  }
  %max = tgl.temp "max" : !tgl.tensor<[2, 64], f32>
  tgl.parallel (%b = 0 to 2, %i = 0 to 64) {
    %m = tgl.reduce max (%j = 0 to 128) -> f32 {
      %a = tgl.read %s[%b, %i, %j] : !tgl.tensor<[2, 64, 128], f32>
      tgl.yield %a : f32
    }
    tgl.write %m, %max[%b, %i] : f32, !tgl.tensor<[2, 64], f32>
  }
  %sum = tgl.temp "sum" : !tgl.tensor<[2, 64], f32>
  tgl.parallel (%b = 0 to 2, %i = 0 to 64) {
    %m = tgl.read %max[%b, %i] : !tgl.tensor<[2, 64], f32>
    %l = tgl.reduce sum (%j = 0 to 128) -> f32 {
      %a = tgl.read %s[%b, %i, %j] : !tgl.tensor<[2, 64, 128], f32>
      %d = arith.subf %a, %m : f32
      %e = math.exp %d : f32
      tgl.yield %e : f32
    }
    tgl.write %l, %sum[%b, %i] : f32, !tgl.tensor<[2, 64], f32>
  }
  %p = tgl.temp "p" : !tgl.tensor<[2, 64, 128], bf16>
  tgl.parallel (%b = 0 to 2, %i = 0 to 64, %j = 0 to 128) {
    %m = tgl.read %max[%b, %i] : !tgl.tensor<[2, 64], f32>
    %l = tgl.read %sum[%b, %i] : !tgl.tensor<[2, 64], f32>
    %a = tgl.read %s[%b, %i, %j] : !tgl.tensor<[2, 64, 128], f32>
    %d = arith.subf %a, %m : f32
    %e = math.exp %d : f32
    %r = arith.divf %e, %l : f32
    tgl.write %r, %p[%b, %i, %j] : f32, !tgl.tensor<[2, 64, 128], bf16>
  }
  tgl.parallel (%b = 0 to 2, %i = 0 to 64, %d = 0 to 64) {
    %r = tgl.reduce sum (%j = 0 to 128) -> f32 {
      %x = tgl.read %p[%b, %i, %j] : !tgl.tensor<[2, 64, 128], bf16>
      %y = tgl.read %v[%b, %j, %d] : !tgl.tensor<[2, 128, 64], bf16>
      %m = arith.mulf %x, %y fastmath<contract> : f32
      tgl.yield %m : f32
    }
    tgl.write %r, %o[%b, %i, %d] : f32, !tgl.tensor<[2, 64, 64], bf16>
  }
}

// Scores that are rounded are so in the loop.
// CHECK: tgl.tiles
// CHECK: tgl.convert %{{.*}} to bf16
// CHECK: tgl.reduce max
tgl.kernel @rounded_scores(%q: !tgl.tensor<[2, 64, 64], bf16> {tgl.name = "q", tgl.role = "in"},
                      %k: !tgl.tensor<[2, 128, 64], bf16> {tgl.name = "k", tgl.role = "in"},
                      %v: !tgl.tensor<[2, 128, 64], bf16> {tgl.name = "v", tgl.role = "in"},
                      %o: !tgl.tensor<[2, 64, 64], bf16> {tgl.name = "o", tgl.role = "out"}) {
  %scale = arith.constant 0.125 : f32
  %zero = arith.constant 0.0 : f32
  %out = arith.constant 0xFF800000 : f32
  %s = tgl.temp "s" : !tgl.tensor<[2, 64, 128], bf16>
  tgl.parallel (%b = 0 to 2, %i = 0 to 64, %j = 0 to 128) {
    %x = arith.index_cast %j : index to i64
    %y = arith.index_cast %i : index to i64
    %c = arith.cmpi sle, %x, %y : i64
    %dot = tgl.reduce sum (%e = 0 to 64) -> f32 {
      %f = tgl.read %q[%b, %i, %e] : !tgl.tensor<[2, 64, 64], bf16>
      %g = tgl.read %k[%b, %j, %e] : !tgl.tensor<[2, 128, 64], bf16>
      %h = arith.mulf %f, %g fastmath<contract> : f32
      tgl.yield %h : f32
    }
    %scaled = arith.mulf %dot, %scale fastmath<contract> : f32
    %biased = arith.addf %scaled, %zero fastmath<contract> : f32
    %masked = arith.select %c, %biased, %out : f32
    tgl.write %masked, %s[%b, %i, %j] : f32, !tgl.tensor<[2, 64, 128], bf16>
  }
  %max = tgl.temp "max" : !tgl.tensor<[2, 64], f32>
  tgl.parallel (%b = 0 to 2, %i = 0 to 64) {
    %m = tgl.reduce max (%j = 0 to 128) -> f32 {
      %a = tgl.read %s[%b, %i, %j] : !tgl.tensor<[2, 64, 128], bf16>
      tgl.yield %a : f32
    }
    tgl.write %m, %max[%b, %i] : f32, !tgl.tensor<[2, 64], f32>
  }
  %sum = tgl.temp "sum" : !tgl.tensor<[2, 64], f32>
  tgl.parallel (%b = 0 to 2, %i = 0 to 64) {
    %m = tgl.read %max[%b, %i] : !tgl.tensor<[2, 64], f32>
    %l = tgl.reduce sum (%j = 0 to 128) -> f32 {
      %a = tgl.read %s[%b, %i, %j] : !tgl.tensor<[2, 64, 128], bf16>
      %d = arith.subf %a, %m : f32
      %e = math.exp %d : f32
      tgl.yield %e : f32
    }
    tgl.write %l, %sum[%b, %i] : f32, !tgl.tensor<[2, 64], f32>
  }
  %p = tgl.temp "p" : !tgl.tensor<[2, 64, 128], bf16>
  tgl.parallel (%b = 0 to 2, %i = 0 to 64, %j = 0 to 128) {
    %m = tgl.read %max[%b, %i] : !tgl.tensor<[2, 64], f32>
    %l = tgl.read %sum[%b, %i] : !tgl.tensor<[2, 64], f32>
    %a = tgl.read %s[%b, %i, %j] : !tgl.tensor<[2, 64, 128], bf16>
    %d = arith.subf %a, %m : f32
    %e = math.exp %d : f32
    %r = arith.divf %e, %l : f32
    tgl.write %r, %p[%b, %i, %j] : f32, !tgl.tensor<[2, 64, 128], bf16>
  }
  tgl.parallel (%b = 0 to 2, %i = 0 to 64, %d = 0 to 64) {
    %r = tgl.reduce sum (%j = 0 to 128) -> f32 {
      %x = tgl.read %p[%b, %i, %j] : !tgl.tensor<[2, 64, 128], bf16>
      %y = tgl.read %v[%b, %j, %d] : !tgl.tensor<[2, 128, 64], bf16>
      %m = arith.mulf %x, %y fastmath<contract> : f32
      tgl.yield %m : f32
    }
    tgl.write %r, %o[%b, %i, %d] : f32, !tgl.tensor<[2, 64, 64], bf16>
  }
}

// Sums of 1024 columns would be four blocks': scores stay in memory.
// CHECK-LABEL: tgl.kernel @wide
// CHECK-NOT: tgl.tiles
tgl.kernel @wide(%q: !tgl.tensor<[2, 64, 64], bf16> {tgl.name = "q", tgl.role = "in"},
                      %k: !tgl.tensor<[2, 128, 64], bf16> {tgl.name = "k", tgl.role = "in"},
                      %v: !tgl.tensor<[2, 128, 1024], bf16> {tgl.name = "v", tgl.role = "in"},
                      %o: !tgl.tensor<[2, 64, 1024], bf16> {tgl.name = "o", tgl.role = "out"}) {
  %scale = arith.constant 0.125 : f32
  %zero = arith.constant 0.0 : f32
  %out = arith.constant 0xFF800000 : f32
  %s = tgl.temp "s" : !tgl.tensor<[2, 64, 128], f32>
  tgl.parallel (%b = 0 to 2, %i = 0 to 64, %j = 0 to 128) {
    %x = arith.index_cast %j : index to i64
    %y = arith.index_cast %i : index to i64
    %c = arith.cmpi sle, %x, %y : i64
    %dot = tgl.reduce sum (%e = 0 to 64) -> f32 {
      %f = tgl.read %q[%b, %i, %e] : !tgl.tensor<[2, 64, 64], bf16>
      %g = tgl.read %k[%b, %j, %e] : !tgl.tensor<[2, 128, 64], bf16>
      %h = arith.mulf %f, %g fastmath<contract> : f32
      tgl.yield %h : f32
    }
    %scaled = arith.mulf %dot, %scale fastmath<contract> : f32
    %biased = arith.addf %scaled, %zero fastmath<contract> : f32
    %masked = arith.select %c, %biased, %out : f32
    tgl.write %masked, %s[%b, %i, %j] : f32, !tgl.tensor<[2, 64, 128], f32>
  }
  %max = tgl.temp "max" : !tgl.tensor<[2, 64], f32>
  tgl.parallel (%b = 0 to 2, %i = 0 to 64) {
    %m = tgl.reduce max (%j = 0 to 128) -> f32 {
      %a = tgl.read %s[%b, %i, %j] : !tgl.tensor<[2, 64, 128], f32>
      tgl.yield %a : f32
    }
    tgl.write %m, %max[%b, %i] : f32, !tgl.tensor<[2, 64], f32>
  }
  %sum = tgl.temp "sum" : !tgl.tensor<[2, 64], f32>
  tgl.parallel (%b = 0 to 2, %i = 0 to 64) {
    %m = tgl.read %max[%b, %i] : !tgl.tensor<[2, 64], f32>
    %l = tgl.reduce sum (%j = 0 to 128) -> f32 {
      %a = tgl.read %s[%b, %i, %j] : !tgl.tensor<[2, 64, 128], f32>
      %d = arith.subf %a, %m : f32
      %e = math.exp %d : f32
      tgl.yield %e : f32
    }
    tgl.write %l, %sum[%b, %i] : f32, !tgl.tensor<[2, 64], f32>
  }
  %p = tgl.temp "p" : !tgl.tensor<[2, 64, 128], bf16>
  tgl.parallel (%b = 0 to 2, %i = 0 to 64, %j = 0 to 128) {
    %m = tgl.read %max[%b, %i] : !tgl.tensor<[2, 64], f32>
    %l = tgl.read %sum[%b, %i] : !tgl.tensor<[2, 64], f32>
    %a = tgl.read %s[%b, %i, %j] : !tgl.tensor<[2, 64, 128], f32>
    %d = arith.subf %a, %m : f32
    %e = math.exp %d : f32
    %r = arith.divf %e, %l : f32
    tgl.write %r, %p[%b, %i, %j] : f32, !tgl.tensor<[2, 64, 128], bf16>
  }
  tgl.parallel (%b = 0 to 2, %i = 0 to 64, %d = 0 to 1024) {
    %r = tgl.reduce sum (%j = 0 to 128) -> f32 {
      %x = tgl.read %p[%b, %i, %j] : !tgl.tensor<[2, 64, 128], bf16>
      %y = tgl.read %v[%b, %j, %d] : !tgl.tensor<[2, 128, 1024], bf16>
      %m = arith.mulf %x, %y fastmath<contract> : f32
      tgl.yield %m : f32
    }
    tgl.write %r, %o[%b, %i, %d] : f32, !tgl.tensor<[2, 64, 1024], bf16>
  }
}

// Quotients that are not rounded are multiplied as f32.
// CHECK-LABEL: tgl.kernel @unrounded
// CHECK: tgl.tiles
// CHECK-NOT: tgl.convert
tgl.kernel @unrounded(%q: !tgl.tensor<[2, 64, 64], bf16> {tgl.name = "q", tgl.role = "in"},
                      %k: !tgl.tensor<[2, 128, 64], bf16> {tgl.name = "k", tgl.role = "in"},
                      %v: !tgl.tensor<[2, 128, 64], bf16> {tgl.name = "v", tgl.role = "in"},
                      %o: !tgl.tensor<[2, 64, 64], bf16> {tgl.name = "o", tgl.role = "out"}) {
  %scale = arith.constant 0.125 : f32
  %zero = arith.constant 0.0 : f32
  %out = arith.constant 0xFF800000 : f32
  %s = tgl.temp "s" : !tgl.tensor<[2, 64, 128], f32>
  tgl.parallel (%b = 0 to 2, %i = 0 to 64, %j = 0 to 128) {
    %x = arith.index_cast %j : index to i64
    %y = arith.index_cast %i : index to i64
    %c = arith.cmpi sle, %x, %y : i64
    %dot = tgl.reduce sum (%e = 0 to 64) -> f32 {
      %f = tgl.read %q[%b, %i, %e] : !tgl.tensor<[2, 64, 64], bf16>
      %g = tgl.read %k[%b, %j, %e] : !tgl.tensor<[2, 128, 64], bf16>
      %h = arith.mulf %f, %g fastmath<contract> : f32
      tgl.yield %h : f32
    }
    %scaled = arith.mulf %dot, %scale fastmath<contract> : f32
    %biased = arith.addf %scaled, %zero fastmath<contract> : f32
    %masked = arith.select %c, %biased, %out : f32
    tgl.write %masked, %s[%b, %i, %j] : f32, !tgl.tensor<[2, 64, 128], f32>
  }
  %max = tgl.temp "max" : !tgl.tensor<[2, 64], f32>
  tgl.parallel (%b = 0 to 2, %i = 0 to 64) {
    %m = tgl.reduce max (%j = 0 to 128) -> f32 {
      %a = tgl.read %s[%b, %i, %j] : !tgl.tensor<[2, 64, 128], f32>
      tgl.yield %a : f32
    }
    tgl.write %m, %max[%b, %i] : f32, !tgl.tensor<[2, 64], f32>
  }
  %sum = tgl.temp "sum" : !tgl.tensor<[2, 64], f32>
  tgl.parallel (%b = 0 to 2, %i = 0 to 64) {
    %m = tgl.read %max[%b, %i] : !tgl.tensor<[2, 64], f32>
    %l = tgl.reduce sum (%j = 0 to 128) -> f32 {
      %a = tgl.read %s[%b, %i, %j] : !tgl.tensor<[2, 64, 128], f32>
      %d = arith.subf %a, %m : f32
      %e = math.exp %d : f32
      tgl.yield %e : f32
    }
    tgl.write %l, %sum[%b, %i] : f32, !tgl.tensor<[2, 64], f32>
  }
  %p = tgl.temp "p" : !tgl.tensor<[2, 64, 128], f32>
  tgl.parallel (%b = 0 to 2, %i = 0 to 64, %j = 0 to 128) {
    %m = tgl.read %max[%b, %i] : !tgl.tensor<[2, 64], f32>
    %l = tgl.read %sum[%b, %i] : !tgl.tensor<[2, 64], f32>
    %a = tgl.read %s[%b, %i, %j] : !tgl.tensor<[2, 64, 128], f32>
    %d = arith.subf %a, %m : f32
    %e = math.exp %d : f32
    %r = arith.divf %e, %l : f32
    tgl.write %r, %p[%b, %i, %j] : f32, !tgl.tensor<[2, 64, 128], f32>
  }
  tgl.parallel (%b = 0 to 2, %i = 0 to 64, %d = 0 to 64) {
    %r = tgl.reduce sum (%j = 0 to 128) -> f32 {
      %x = tgl.read %p[%b, %i, %j] : !tgl.tensor<[2, 64, 128], f32>
      %y = tgl.read %v[%b, %j, %d] : !tgl.tensor<[2, 128, 64], bf16>
      %m = arith.mulf %x, %y fastmath<contract> : f32
      tgl.yield %m : f32
    }
    tgl.write %r, %o[%b, %i, %d] : f32, !tgl.tensor<[2, 64, 64], bf16>
  }
}

// The largest scores are a result, too: the loop carries them from -inf on, beside what distances are from, and stores them. The
// statement that reads them stands behind it.
// CHECK-LABEL: tgl.kernel @largest
// CHECK: %max = tgl.temp "max"
// CHECK-NEXT: tgl.parallel (%b = 0 to 2, %i = 0 to 64) {
// CHECK: %[[SUMS:.*]]:3 = tgl.tiles (%j_lo, %j_hi) = 0 to 128 size 32 iter (%{{.*}} = %{{.*}} : f32, %{{.*}} = %{{.*}} : f32, %{{.*}} = %{{.*}} : f32)
// CHECK: tgl.write %[[SUMS]]#{{[01]}}, %max[%b, %i]
// CHECK: arith.divf
// CHECK: tgl.write %{{.*}}, %top[%b, %i]
tgl.kernel @largest(%q: !tgl.tensor<[2, 64, 64], bf16> {tgl.name = "q", tgl.role = "in"},
                      %k: !tgl.tensor<[2, 128, 64], bf16> {tgl.name = "k", tgl.role = "in"},
                      %v: !tgl.tensor<[2, 128, 64], bf16> {tgl.name = "v", tgl.role = "in"},
                      %o: !tgl.tensor<[2, 64, 64], bf16> {tgl.name = "o", tgl.role = "out"},
                      %top: !tgl.tensor<[2, 64], f32> {tgl.name = "top", tgl.role = "out"}) {
  %scale = arith.constant 0.125 : f32
  %zero = arith.constant 0.0 : f32
  %out = arith.constant 0xFF800000 : f32
  %s = tgl.temp "s" : !tgl.tensor<[2, 64, 128], f32>
  tgl.parallel (%b = 0 to 2, %i = 0 to 64, %j = 0 to 128) {
    %x = arith.index_cast %j : index to i64
    %y = arith.index_cast %i : index to i64
    %c = arith.cmpi sle, %x, %y : i64
    %dot = tgl.reduce sum (%e = 0 to 64) -> f32 {
      %f = tgl.read %q[%b, %i, %e] : !tgl.tensor<[2, 64, 64], bf16>
      %g = tgl.read %k[%b, %j, %e] : !tgl.tensor<[2, 128, 64], bf16>
      %h = arith.mulf %f, %g fastmath<contract> : f32
      tgl.yield %h : f32
    }
    %scaled = arith.mulf %dot, %scale fastmath<contract> : f32
    %biased = arith.addf %scaled, %zero fastmath<contract> : f32
    %masked = arith.select %c, %biased, %out : f32
    tgl.write %masked, %s[%b, %i, %j] : f32, !tgl.tensor<[2, 64, 128], f32>
  }
  %max = tgl.temp "max" : !tgl.tensor<[2, 64], f32>
  tgl.parallel (%b = 0 to 2, %i = 0 to 64) {
    %m = tgl.reduce max (%j = 0 to 128) -> f32 {
      %a = tgl.read %s[%b, %i, %j] : !tgl.tensor<[2, 64, 128], f32>
      tgl.yield %a : f32
    }
    tgl.write %m, %max[%b, %i] : f32, !tgl.tensor<[2, 64], f32>
  }
  tgl.parallel (%b = 0 to 2, %i = 0 to 64) {
    %m = tgl.read %max[%b, %i] : !tgl.tensor<[2, 64], f32>
    tgl.write %m, %top[%b, %i] : f32, !tgl.tensor<[2, 64], f32>
  }
  %sum = tgl.temp "sum" : !tgl.tensor<[2, 64], f32>
  tgl.parallel (%b = 0 to 2, %i = 0 to 64) {
    %m = tgl.read %max[%b, %i] : !tgl.tensor<[2, 64], f32>
    %l = tgl.reduce sum (%j = 0 to 128) -> f32 {
      %a = tgl.read %s[%b, %i, %j] : !tgl.tensor<[2, 64, 128], f32>
      %d = arith.subf %a, %m : f32
      %e = math.exp %d : f32
      tgl.yield %e : f32
    }
    tgl.write %l, %sum[%b, %i] : f32, !tgl.tensor<[2, 64], f32>
  }
  %p = tgl.temp "p" : !tgl.tensor<[2, 64, 128], bf16>
  tgl.parallel (%b = 0 to 2, %i = 0 to 64, %j = 0 to 128) {
    %m = tgl.read %max[%b, %i] : !tgl.tensor<[2, 64], f32>
    %l = tgl.read %sum[%b, %i] : !tgl.tensor<[2, 64], f32>
    %a = tgl.read %s[%b, %i, %j] : !tgl.tensor<[2, 64, 128], f32>
    %d = arith.subf %a, %m : f32
    %e = math.exp %d : f32
    %r = arith.divf %e, %l : f32
    tgl.write %r, %p[%b, %i, %j] : f32, !tgl.tensor<[2, 64, 128], bf16>
  }
  tgl.parallel (%b = 0 to 2, %i = 0 to 64, %d = 0 to 64) {
    %r = tgl.reduce sum (%j = 0 to 128) -> f32 {
      %x = tgl.read %p[%b, %i, %j] : !tgl.tensor<[2, 64, 128], bf16>
      %y = tgl.read %v[%b, %j, %d] : !tgl.tensor<[2, 128, 64], bf16>
      %m = arith.mulf %x, %y fastmath<contract> : f32
      tgl.yield %m : f32
    }
    tgl.write %r, %o[%b, %i, %d] : f32, !tgl.tensor<[2, 64, 64], bf16>
  }
}

// A factor of the scores changes before the product.
// CHECK-LABEL: tgl.kernel @changed
// CHECK-NOT: tgl.tiles
tgl.kernel @changed(%q: !tgl.tensor<[2, 64, 64], bf16> {tgl.name = "q", tgl.role = "inout"},
                      %k: !tgl.tensor<[2, 128, 64], bf16> {tgl.name = "k", tgl.role = "in"},
                      %v: !tgl.tensor<[2, 128, 64], bf16> {tgl.name = "v", tgl.role = "in"},
                      %o: !tgl.tensor<[2, 64, 64], bf16> {tgl.name = "o", tgl.role = "out"}) {
  %scale = arith.constant 0.125 : f32
  %zero = arith.constant 0.0 : f32
  %out = arith.constant 0xFF800000 : f32
  %s = tgl.temp "s" : !tgl.tensor<[2, 64, 128], f32>
  tgl.parallel (%b = 0 to 2, %i = 0 to 64, %j = 0 to 128) {
    %x = arith.index_cast %j : index to i64
    %y = arith.index_cast %i : index to i64
    %c = arith.cmpi sle, %x, %y : i64
    %dot = tgl.reduce sum (%e = 0 to 64) -> f32 {
      %f = tgl.read %q[%b, %i, %e] : !tgl.tensor<[2, 64, 64], bf16>
      %g = tgl.read %k[%b, %j, %e] : !tgl.tensor<[2, 128, 64], bf16>
      %h = arith.mulf %f, %g fastmath<contract> : f32
      tgl.yield %h : f32
    }
    %scaled = arith.mulf %dot, %scale fastmath<contract> : f32
    %biased = arith.addf %scaled, %zero fastmath<contract> : f32
    %masked = arith.select %c, %biased, %out : f32
    tgl.write %masked, %s[%b, %i, %j] : f32, !tgl.tensor<[2, 64, 128], f32>
  }
  %max = tgl.temp "max" : !tgl.tensor<[2, 64], f32>
  tgl.parallel (%b = 0 to 2, %i = 0 to 64) {
    %m = tgl.reduce max (%j = 0 to 128) -> f32 {
      %a = tgl.read %s[%b, %i, %j] : !tgl.tensor<[2, 64, 128], f32>
      tgl.yield %a : f32
    }
    tgl.write %m, %max[%b, %i] : f32, !tgl.tensor<[2, 64], f32>
  }
  tgl.parallel (%b = 0 to 2, %i = 0 to 64, %e = 0 to 64) {
    tgl.write %zero, %q[%b, %i, %e] : f32, !tgl.tensor<[2, 64, 64], bf16>
  }
  %sum = tgl.temp "sum" : !tgl.tensor<[2, 64], f32>
  tgl.parallel (%b = 0 to 2, %i = 0 to 64) {
    %m = tgl.read %max[%b, %i] : !tgl.tensor<[2, 64], f32>
    %l = tgl.reduce sum (%j = 0 to 128) -> f32 {
      %a = tgl.read %s[%b, %i, %j] : !tgl.tensor<[2, 64, 128], f32>
      %d = arith.subf %a, %m : f32
      %e = math.exp %d : f32
      tgl.yield %e : f32
    }
    tgl.write %l, %sum[%b, %i] : f32, !tgl.tensor<[2, 64], f32>
  }
  %p = tgl.temp "p" : !tgl.tensor<[2, 64, 128], bf16>
  tgl.parallel (%b = 0 to 2, %i = 0 to 64, %j = 0 to 128) {
    %m = tgl.read %max[%b, %i] : !tgl.tensor<[2, 64], f32>
    %l = tgl.read %sum[%b, %i] : !tgl.tensor<[2, 64], f32>
    %a = tgl.read %s[%b, %i, %j] : !tgl.tensor<[2, 64, 128], f32>
    %d = arith.subf %a, %m : f32
    %e = math.exp %d : f32
    %r = arith.divf %e, %l : f32
    tgl.write %r, %p[%b, %i, %j] : f32, !tgl.tensor<[2, 64, 128], bf16>
  }
  tgl.parallel (%b = 0 to 2, %i = 0 to 64, %d = 0 to 64) {
    %r = tgl.reduce sum (%j = 0 to 128) -> f32 {
      %x = tgl.read %p[%b, %i, %j] : !tgl.tensor<[2, 64, 128], bf16>
      %y = tgl.read %v[%b, %j, %d] : !tgl.tensor<[2, 128, 64], bf16>
      %m = arith.mulf %x, %y fastmath<contract> : f32
      tgl.yield %m : f32
    }
    tgl.write %r, %o[%b, %i, %d] : f32, !tgl.tensor<[2, 64, 64], bf16>
  }
}

// CHECK: tgl-online-softmax: 4 softmaxes tiled
