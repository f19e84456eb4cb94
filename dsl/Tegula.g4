// The grammar of Tegula. Above each rule stands an example of what it matches.
//
// Newlines and indentation mean nothing, so a statement ends where the next token cannot continue it;
// none starts with '(', '[', '-' or '+'. The words of the second group of tokens below are also
// names wherever a name can stand (`name`).
//
// Some rules take more than the language, so that the parser can say what is wrong. Lines with '//=' give
// what is right: such a rule stands for the rule of its name in the grammars that `tegula grammar` prints.
grammar Tegula;

// fn double(v) = 2 * v   kernel twice(x: f32[N]) -> (y: f32[N]) { y[i] = double(x[i]) }
file : (definition | ';')* EOF ;

definition : kernel | function ;

// kernel k(x: f32[M, N], eps: float = 1e-5) -> (y: f32[M]) where P = N // 2 { ... }
kernel : KERNEL name '(' parameters? ')' outputs? sizes? block ;
//= kernel : KERNEL name '(' parameters? ')' outputs? sizes?
//=     '{' (opening | ';')* (statement | ';')* (closing ';'*)? '}' ;
//= opening : PRECISION name | DETERMINISTIC | DISTINCT distinctItem (',' distinctItem)*
//=   | INVARIANT name (',' name)* ;
//= closing : SCHEDULE '{' scheduleItems? '}' ;

// -> (y: f32[M, N], s: f32)
outputs : '->' '(' parameters? ')' ;

// where P = H - KH + 1, Q = W - KW + 1
sizes : WHERE sizeDefinition (',' sizeDefinition)* ;

// P = H - KH + 1
sizeDefinition : name '=' expression ;

// x: f32[M, N], pad: int = 1
parameters : parameter (',' parameter)* ','? ;

// cache: inout f16[B, S, D]   b: T[N] = 0   stride: int[2] = 1   s: f32
parameter : name ':' INOUT? type=name dims? ('=' expression)? ;

// [..., 3*C, 4]
dims : '[' (dim (',' dim)* ','?)? ']' ;

// 3*C
dim : '...' | expression ;

// fn huber(d, delta) = where(abs(d) < delta, 0.5*d*d, delta*(abs(d) - 0.5*delta))
// fn sq(a, b) { d = a - b; return d*d }
function
  : FN name '(' (functionParameter (',' functionParameter)* ','?)? ')'
    ('=' expression | functionBlock)
  ;

// v   slope = 0.01
functionParameter : name ('=' expression)? ;

// { d = a - b; return d*d }
functionBlock : '{' (let | ';')* RETURN expression ';'* '}' ;

// d = a - b
let : name '=' expression ;

// { h[i] = relu(x[i]); y[i] = 2*h[i] }
block : '{' (statement | ';')* '}' ;

statement
  : PRECISION name                  # precision      // precision tf32
  | DETERMINISTIC                   # deterministic  // deterministic
  | DISTINCT distinctItem (',' distinctItem)*  # distinct  // distinct slot, (row, column)
  | INVARIANT name (',' name)*      # invariant      // invariant M, N
  | STATE target '=' expression trailing?  # state   // state h[b in B, n in H] = h0[b, n]
  | parallelHead block              # parallel       // parallel i in M, j in N { ... }
  | loopHead block                  # loop           // for t in 0:T { ... }
  | SCHEDULE '{' scheduleItems? '}' # schedule       // schedule { tile i=128; stages 4 }
  | observation                     # observe        // print(h[i, j])
  | call                            # callStatement  // update(cache, x)
  | targets combine=(MAX | MIN)? op=('=' | '+=') expression trailing?  # assignment  // y[b, P + d] = x[b, d] for d in P
  ;
//= statement : STATE target '=' expression trailing? | parallelHead block | loopHead block | observation | call
//=   | targets ((MAX | MIN)? '=' | '+=') expression trailing? ;

// print("after", h[i, j], l[i])   print(x[i] for i in 4)   assert(p[i] >= 0 for i in N, "negative")
observation
  : word=(PRINT | ASSERT) '(' observed (',' observed)* (FOR forItem (',' forItem)*)? (',' message=STRING)? ','? ')'
  ;
//= observation : (PRINT | ASSERT) '(' observed (',' observed)* (FOR forItem (',' forItem)*)? (',' STRING)? ','? ')' ;

// "after"   h[i, j]
observed : STRING | expression ;

// slot   (row, column)
distinctItem : name | '(' name (',' name)* ','? ')' ;

// parallel b in B, i in lo:hi
parallelHead : PARALLEL binder (',' binder)* ;

// i in M
binder : name IN range ;

// for j in tiles(lo:hi)   for t in T, reverse   for t in 0:T
loopHead : FOR name IN (TILES '(' range ')' | range (',' REVERSE)?) ;

// 2*N   lo:hi
range : expression (':' expression)? ;

// a, b   y[i, j]
targets : target (',' target)* ;

// y   y[i in M, (g, e)]   h: bf16[i, j]   h: [N, O, P, Q]   s: f16
target
  : name ':' type=name subscripts?
  | name ':' subscripts
  | name subscripts?
  ;
//= target : name ':' name places? | name ':' places | name places? ;
//= places : '[' (place (',' place)* ','?)? ']' ;

// for d in P, e
trailing : FOR forItem (',' forItem)* ;

// k   k in 0:i + 1   k in K if k <= i   ...
forItem : '...' | name (IN range)? (IF expression)? ;

// tile i=128, j=256; stages 4; persistent
scheduleItems : (scheduleItem | ';')+ ;

// tile i=128, j=256
scheduleItem : name (setting (',' setting)*)? ;

// i=128   4   0.8
setting : name '=' expression | INTEGER | FLOAT ;

// [..., 2*p + r - 1, (h, d in 8), fill=0]
subscripts : '[' (subscript (',' subscript)* ','?)? ']' ;
//= subscripts : '[' (place (',' place)* (',' keyword)* ','? | keyword (',' keyword)* ','?)? ']' ;
//= keyword : name '=' expression ;

// i in M
subscript : '...' | name '=' expression | expression (IN range)? ;
//= place : '...' | member ;
//= member : (expression | group) (IN range)? ;
//= group : '(' member ',' (member (',' member)* ','?)? ')' | '(' (expression | group) IN range ')' ;

// a or b
expression : conjunction (OR conjunction)* ;

// a and b
conjunction : inversion (AND inversion)* ;

// not a
inversion : NOT inversion | comparison ;

// 0 <= i < N   a & 3 == 0, which is (a & 3) == 0
comparison : bitOr (comparator bitOr)* ;

// <=
comparator : '<' | '<=' | '>' | '>=' | '==' | '!=' ;

// a | b
bitOr : bitXor ('|' bitXor)* ;

// a ^ b
bitXor : bitAnd ('^' bitAnd)* ;

// a & 15
bitAnd : shift ('&' shift)* ;

// q >> 4*n << 1
shift : sum (('<<' | '>>') sum)* ;

// a - b + c
sum : product (('+' | '-') product)* ;

// a * b // c
product : factor (('*' | '/' | '//' | '%') factor)* ;

// -x ** 2, which is -(x ** 2)   ~x & 1, which is (~x) & 1
factor : ('-' | '+' | '~') factor | power ;

// a ** b ** c, which is a ** (b ** c)
power : atom ('**' factor)? ;

atom
  : INTEGER               # integer   // 128   0xff
  | FLOAT                 # float     // 1e-5
  | STRING                # string    // "mean": never valid here, the message says so
  | call                  # callAtom  // relu(v)
  | name subscripts       # read      // x[i, j - 1, fill=0]
  | name                  # plainName // scale
  | '(' member (',' member)* ','? ')'  # parentheses  // (a + b)   (2, 3)   (h, d in 8)
  ;
//= atom : INTEGER | FLOAT | call | name subscripts | name | '(' expression (',' expression)* ','? ')' ;

// d in 8
member : expression (IN range)? ;

// sum(x[i, k] * w[j, k] for k in K, unbiased=true)   clamp(v, min=0)
call : name '(' (argument (comprehension | (',' argument)* ','?))? ')' ;
//= call : name '(' (expression comprehension | expression (',' expression)* (',' keyword)* ','?
//=   | keyword (',' keyword)* ','?)? ')' ;

// min=0
argument : name '=' expression | expression ;

// for c, r in 3 if r > 0, unbiased=true
comprehension : FOR forItem (',' forItem)* (',' name '=' expression)* ','? ;

// x   state
name
  : IDENTIFIER | KERNEL | FN | PARALLEL | STATE | TILES | PRECISION | SCHEDULE | REVERSE
  | DETERMINISTIC | DISTINCT | INVARIANT | INOUT | WHERE | MAX | MIN | PRINT | ASSERT
  ;

// Words of the language.
FOR : 'for' ;
IN : 'in' ;
IF : 'if' ;
AND : 'and' ;
OR : 'or' ;
NOT : 'not' ;
RETURN : 'return' ;

// Words of the language that are names elsewhere.
KERNEL : 'kernel' ;
FN : 'fn' ;
PARALLEL : 'parallel' ;
STATE : 'state' ;
TILES : 'tiles' ;
PRECISION : 'precision' ;
SCHEDULE : 'schedule' ;
REVERSE : 'reverse' ;
DETERMINISTIC : 'deterministic' ;
DISTINCT : 'distinct' ;
INVARIANT : 'invariant' ;
INOUT : 'inout' ;
WHERE : 'where' ;
MAX : 'max' ;
MIN : 'min' ;
PRINT : 'print' ;
ASSERT : 'assert' ;

LPAREN : '(' ;
RPAREN : ')' ;
LBRACKET : '[' ;
RBRACKET : ']' ;
LBRACE : '{' ;
RBRACE : '}' ;
COMMA : ',' ;
COLON : ':' ;
SEMICOLON : ';' ;
ARROW : '->' ;
ELLIPSIS : '...' ;
ASSIGN : '=' ;
ACCUMULATE : '+=' ;
PLUS : '+' ;
MINUS : '-' ;
STAR : '*' ;
SLASH : '/' ;
FLOORDIV : '//' ;
PERCENT : '%' ;
POWER : '**' ;
LESS : '<' ;
LESSEQUAL : '<=' ;
GREATER : '>' ;
GREATEREQUAL : '>=' ;
EQUAL : '==' ;
NOTEQUAL : '!=' ;
BITAND : '&' ;
BITOR : '|' ;
BITXOR : '^' ;
BITNOT : '~' ;
SHIFTLEFT : '<<' ;
SHIFTRIGHT : '>>' ;

IDENTIFIER : [A-Za-z_] [A-Za-z_0-9]* ;
// 128   0xff   0b1010
INTEGER : '0' [xX] [0-9a-fA-F]+ | '0' [bB] [01]+ | [0-9]+ ;
FLOAT : [0-9]+ '.' [0-9]* EXPONENT? | '.' [0-9]+ EXPONENT? | [0-9]+ EXPONENT ;
fragment EXPONENT : [eE] [+-]? [0-9]+ ;
// A string ends at its line's end at the latest, and is wrong there.
STRING : '"' ~["\r\n]* '"'? | '\'' ~['\r\n]* '\''? ;
//= STRING : '"' ~["\r\n]* '"' | '\'' ~['\r\n]* '\'' ;

COMMENT : '#' ~[\r\n]* -> channel(HIDDEN) ;
BLANK : [ \t\r\n\f\u00A0\uFEFF]+ -> skip ;

// Operators of other languages, and everything else: each gets its own message.
FOREIGN
  : '&&' | '||' | '!' | '@' | ':=' | '?' | '.'
  | '-=' | '*=' | '/=' | '%=' | '&=' | '|=' | '^=' | '<<=' | '>>=' | '**=' | '//=' | '=>' | '::' | '!==' | '===' | '<>'
  ;
UNKNOWN : . ;
