; A wait says what it is for; the hardware's is until all but the last N commits are done.
; RUN: tegula-device-opt --passes=count-groups %s | FileCheck %s

declare i32 @tegula.cp.async.commit()
declare void @tegula.cp.async.await(i32)

; CHECK-LABEL: @straight
; CHECK-NEXT: call void @llvm.nvvm.cp.async.commit.group()
; CHECK-NEXT: call void @llvm.nvvm.cp.async.commit.group()
; CHECK-NEXT: call void @llvm.nvvm.cp.async.wait.group(i32 1)
; CHECK-NEXT: call void @llvm.nvvm.cp.async.wait.group(i32 0)
; CHECK-NEXT: ret void
define void @straight() {
  %a = call i32 @tegula.cp.async.commit()
  %b = call i32 @tegula.cp.async.commit()
  call void @tegula.cp.async.await(i32 %a)
  call void @tegula.cp.async.await(i32 %b)
  ret void
}

; The shorter way to the wait has one commit after what it is for.
; CHECK-LABEL: @branch
; CHECK: call void @llvm.nvvm.cp.async.wait.group(i32 1)
define void @branch(i1 %c) {
  %a = call i32 @tegula.cp.async.commit()
  br i1 %c, label %more, label %join
more:
  %x = call i32 @tegula.cp.async.commit()
  br label %join
join:
  %b = call i32 @tegula.cp.async.commit()
  call void @tegula.cp.async.await(i32 %a)
  ret void
}

; Two stages under way: of what an iteration waits for one commit comes later, before the loop or in it.
; CHECK-LABEL: @ring
; CHECK: loop:
; CHECK: call void @llvm.nvvm.cp.async.wait.group(i32 1)
; CHECK: call void @llvm.nvvm.cp.async.commit.group()
define void @ring(i32 %n) {
entry:
  %a = call i32 @tegula.cp.async.commit()
  %b = call i32 @tegula.cp.async.commit()
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %j, %loop ]
  %first = phi i32 [ %a, %entry ], [ %second, %loop ]
  %second = phi i32 [ %b, %entry ], [ %next, %loop ]
  call void @tegula.cp.async.await(i32 %first)
  %next = call i32 @tegula.cp.async.commit()
  %j = add i32 %i, 1
  %more = icmp slt i32 %j, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}

; Nothing is under way in the first two iterations; later it is as above.
; CHECK-LABEL: @filling
; CHECK: loop:
; CHECK: call void @llvm.nvvm.cp.async.wait.group(i32 1)
define void @filling(i32 %n) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %j, %loop ]
  %first = phi i32 [ poison, %entry ], [ %second, %loop ]
  %second = phi i32 [ poison, %entry ], [ %next, %loop ]
  call void @tegula.cp.async.await(i32 %first)
  %next = call i32 @tegula.cp.async.commit()
  %j = add i32 %i, 1
  %more = icmp slt i32 %j, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}

; CHECK-LABEL: @nothing
; CHECK-NEXT: ret void
define void @nothing() {
  call void @tegula.cp.async.await(i32 poison)
  ret void
}
