# Writes OUTPUT, a C++ file with the text of FILE as dsl/GrammarText.h declares it.
file(READ ${FILE} text)
string(REPLACE "\\" "\\\\" text "${text}")
string(REPLACE "\"" "\\\"" text "${text}")
string(REPLACE "\n" "\\n\"\n      \"" text "${text}")
file(WRITE ${OUTPUT} "#include \"dsl/GrammarText.h\"\n\nnamespace tegula {\n
llvm::StringRef grammarText() {\n  return \"${text}\";\n}\n\n} // namespace tegula\n")
