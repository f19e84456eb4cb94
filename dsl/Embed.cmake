# embed(VARIABLE FILE) gives the text of FILE as a C++ string literal.
function(embed variable path)
  file(READ ${path} text)
  # A literal's length is limited by what compilers promise, so the text is cut into lines.
  string(REPLACE "\\" "\\\\" text "${text}")
  string(REPLACE "\"" "\\\"" text "${text}")
  string(REPLACE "\n" "\\n\"\n     \"" text "${text}")
  set(${variable} "\"${text}\"" PARENT_SCOPE)
endfunction()
