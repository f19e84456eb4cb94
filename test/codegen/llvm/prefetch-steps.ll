; A step's elements are loaded two steps before it; the last steps load their own once more.
; RUN: tegula-device-opt --passes=prefetch-steps %s | FileCheck %s
; RUN: tegula-device-opt --passes=prefetch-steps %s -o %t.ll
; RUN: tegula-device-opt --passes=verify,early-cse %t.ll -o /dev/null

declare float @exchange(float) convergent

; CHECK-LABEL: define float @steps
; CHECK: loop.preheader:
; CHECK: [[FURTHER:%.*]] = add i64 %n, -1
; CHECK: [[HAS1:%.*]] = icmp uge i64 [[FURTHER]], 1
; CHECK: [[X0:%.*]] = load float, ptr %x
; CHECK: [[MOVED:%.*]] = getelementptr i8, ptr %x, i64 4
; CHECK: [[SECOND:%.*]] = select i1 [[HAS1]], ptr [[MOVED]], ptr %x
; CHECK: [[X1:%.*]] = load float, ptr [[SECOND]], align 4, !invariant.load
; CHECK: loop:
; CHECK: [[NOW:%.*]] = phi float [ [[X0]], %loop.preheader ], [ [[NEXT:%.*]], %loop ]
; CHECK: [[NEXT]] = phi float [ [[X1]], %loop.preheader ], [ [[LATER:%.*]], %loop ]
; CHECK: [[LEFT:%.*]] = phi i64 [ [[FURTHER]], %loop.preheader ]
; CHECK: [[HAS2:%.*]] = icmp uge i64 [[LEFT]], 2
; CHECK: [[BY:%.*]] = select i1 [[HAS2]], i64 8, i64 0
; CHECK: [[PLACE:%.*]] = getelementptr i8, ptr %place, i64 [[BY]]
; CHECK: [[LATER]] = load float, ptr [[PLACE]]
; What the loop writes is loaded where it was.
; CHECK: %own = load float, ptr %z
; CHECK: fadd float %decayed, [[NOW]]
define float @steps(ptr %x, ptr %z, i64 %n) {
entry:
  %any = icmp sgt i64 %n, 0
  br i1 %any, label %loop, label %end

loop:
  %t = phi i64 [ 0, %entry ], [ %following, %loop ]
  %state = phi float [ 0.0, %entry ], [ %stored, %loop ]
  %place = getelementptr float, ptr %x, i64 %t
  %value = load float, ptr %place, align 4, !invariant.load !0
  %own = load float, ptr %z, align 4
  %other = call float @exchange(float %state)
  %decayed = fmul float %other, %own
  %stored = fadd float %decayed, %value
  store float %stored, ptr %z, align 4
  %following = add nsw i64 %t, 1
  %more = icmp slt i64 %following, %n
  br i1 %more, label %loop, label %end

end:
  %result = phi float [ 0.0, %entry ], [ %stored, %loop ]
  ret float %result
}

; Without an exchange threads run ahead by themselves; of three steps it is not worth it; a load that some steps leave out stays.
; CHECK-LABEL: define float @alone
; CHECK: entry:
; CHECK-NEXT: br label %loop
define float @alone(ptr %x, i64 %n) {
entry:
  br label %loop

loop:
  %t = phi i64 [ 0, %entry ], [ %following, %loop ]
  %state = phi float [ 0.0, %entry ], [ %stored, %loop ]
  %place = getelementptr float, ptr %x, i64 %t
  %value = load float, ptr %place, align 4, !invariant.load !0
  %stored = fadd float %state, %value
  %following = add nsw i64 %t, 1
  %more = icmp slt i64 %following, %n
  br i1 %more, label %loop, label %end

end:
  ret float %stored
}

; CHECK-LABEL: define float @few
; CHECK: entry:
; CHECK-NEXT: br label %loop
; CHECK-LABEL: define float @some
; CHECK: entry:
; CHECK-NEXT: br label %loop
define float @few(ptr %x) {
entry:
  br label %loop

loop:
  %t = phi i64 [ 0, %entry ], [ %following, %loop ]
  %state = phi float [ 0.0, %entry ], [ %stored, %loop ]
  %place = getelementptr float, ptr %x, i64 %t
  %value = load float, ptr %place, align 4, !invariant.load !0
  %other = call float @exchange(float %state)
  %stored = fadd float %other, %value
  %following = add nsw i64 %t, 1
  %more = icmp slt i64 %following, 3
  br i1 %more, label %loop, label %end

end:
  ret float %stored
}

define float @some(ptr %x, i64 %n) {
entry:
  br label %loop

loop:
  %t = phi i64 [ 0, %entry ], [ %following, %next ]
  %state = phi float [ 0.0, %entry ], [ %stored, %next ]
  %other = call float @exchange(float %state)
  %isPositive = fcmp ogt float %other, 0.0
  br i1 %isPositive, label %take, label %next

take:
  %place = getelementptr float, ptr %x, i64 %t
  %value = load float, ptr %place, align 4, !invariant.load !0
  br label %next

next:
  %added = phi float [ %value, %take ], [ 1.0, %loop ]
  %stored = fadd float %other, %added
  %following = add nsw i64 %t, 1
  %more = icmp slt i64 %following, %n
  br i1 %more, label %loop, label %end

end:
  ret float %stored
}

!0 = !{}
