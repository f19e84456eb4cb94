# Writes OUTPUT, a C++ file with the text of FILES as dsl/StdText.h declares it.
set(code "#include \"dsl/StdText.h\"\n\nnamespace tegula {\n\n")
string(APPEND code "llvm::ArrayRef<StdFile> stdFiles() {\n  static const StdFile files[] = {\n")
foreach(path IN LISTS FILES)
  get_filename_component(name ${path} NAME)
  file(READ ${path} text)
  # A literal's length is limited by what compilers promise, so the text is cut into lines.
  string(REPLACE "\\" "\\\\" text "${text}")
  string(REPLACE "\"" "\\\"" text "${text}")
  string(REPLACE "\n" "\\n\"\n     \"" text "${text}")
  string(APPEND code "    {\"std/${name}\",\n     \"${text}\"},\n")
endforeach()
string(APPEND code "  };\n  return files;\n}\n\n} // namespace tegula\n")
file(WRITE ${OUTPUT} "${code}")
