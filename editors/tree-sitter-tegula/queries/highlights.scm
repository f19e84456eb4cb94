; Of two patterns that match a node the later one counts. The lists are made by editors/treesitter.py.

(comment) @comment
(string) @string
(integer) @number
(float) @number.float

(identifier) @variable

((identifier) @constant.builtin
  (#any-of? @constant.builtin "inf" "nan" "pi"))

((identifier) @boolean
  (#any-of? @boolean "true" "false"))

; Definitions

(kernel_definition name: (identifier) @function)
(function_definition name: (identifier) @function)
(parameter name: (identifier) @variable.parameter)
(function_parameter name: (identifier) @variable.parameter)
(size_definition name: (identifier) @constant)
(parameter type: (identifier) @type)
(target type: (identifier) @type)

; Calls

(call function: (identifier) @function.call)
(reduction function: (identifier) @function.call)
(keyword_argument name: (identifier) @variable.parameter)

([
  (call function: (identifier) @function.builtin)
  (reduction function: (identifier) @function.builtin)
]
  (#any-of? @function.builtin
    "abs" "acos" "acosh" "all" "any" "argmax" "argmin" "argsort" "asin" "asinh" "atan" "atan2" "atanh"
    "cat" "ceil" "clamp" "copysign" "cos" "cosh" "count" "cummax" "cummin" "cumprod" "cumsum" "digamma"
    "erf" "erfc" "erfinv" "exp" "exp2" "expm1" "finfo_max" "floor" "fma" "is_floating_point" "isinf"
    "isnan" "lgamma" "log" "log10" "log1p" "log2" "log_softmax" "logsumexp" "max" "maximum" "mean" "min"
    "minimum" "pow" "prod" "quantize" "rand" "randn" "recurrence" "round" "rsqrt" "sign" "sin" "sinh"
    "softmax" "sort" "sqrt" "sum" "tan" "tanh" "topk" "trunc" "var" "where"))

([
  (parameter type: (identifier) @type.builtin)
  (target type: (identifier) @type.builtin)
  (call function: (identifier) @type.builtin)
]
  (#any-of? @type.builtin
    "bf16" "bool" "f16" "f32" "f64" "f8e4m3" "f8e5m2" "float" "i16" "i32" "i4" "i64" "i8" "int" "u16"
    "u32" "u4" "u64" "u8"))

; Settings

(precision_statement value: (identifier) @constant.builtin)
(invariant_statement size: (identifier) @constant)
(schedule_item name: (identifier) @property)
(setting name: (identifier) @variable.parameter)

; Words

["kernel" "fn"] @keyword.function

["for" "in" "parallel" "tiles" "reverse"] @keyword.repeat

"if" @keyword.conditional

"return" @keyword.return

["and" "or" "not" "max" "min"] @keyword.operator

["inout" "state"] @keyword.modifier

["where" "precision" "deterministic" "distinct" "invariant" "schedule" "print" "assert"] @keyword

; Signs

["=" "+=" "->" "+" "-" "*" "/" "//" "%" "**" "<" "<=" ">" ">=" "==" "!=" "&" "|" "^" "~" "<<" ">>"] @operator

["(" ")" "[" "]" "{" "}"] @punctuation.bracket

["," ":" ";"] @punctuation.delimiter

"..." @punctuation.special
