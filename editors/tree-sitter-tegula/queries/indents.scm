[
  (block)
  (function_block)
  (schedule_block)
  (parameters)
  (call)
  (reduction)
] @indent.begin

["}" ")"] @indent.branch

"}" @indent.end
