; Scopes

(kernel_definition) @local.scope
(function_definition) @local.scope
(parallel_statement) @local.scope
(for_statement) @local.scope
(equation) @local.scope
(state_declaration) @local.scope
(reduction) @local.scope

; Definitions

(parameter name: (identifier) @local.definition.parameter)
(function_parameter name: (identifier) @local.definition.parameter)
(size_definition name: (identifier) @local.definition.constant)
(let_statement name: (identifier) @local.definition.var)
(binder index: (identifier) @local.definition.var)
(for_statement index: (identifier) @local.definition.var)
(for_item index: (identifier) @local.definition.var)

; References

(identifier) @local.reference
