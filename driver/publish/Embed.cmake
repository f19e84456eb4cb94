# Writes OUTPUT, a C++ file with the text of FILES as driver/publish/PublishText.h declares it.
include(${CMAKE_CURRENT_LIST_DIR}/../../dsl/Embed.cmake)
set(code "#include \"driver/publish/PublishText.h\"\n\nnamespace tegula {\n\n")
string(APPEND code "llvm::ArrayRef<PublishText> publishTexts() {\n  static const PublishText texts[] = {\n")
foreach(path IN LISTS FILES)
  get_filename_component(name ${path} NAME)
  if(name STREQUAL "compatible.py") # as older loaders look for it
    set(name "KERNEL_NAME/__init__.py")
  endif()
  embed(text ${path})
  string(APPEND code "    {\"${name}\",\n     ${text}},\n")
endforeach()
string(APPEND code "  };\n  return texts;\n}\n\n} // namespace tegula\n")
file(WRITE ${OUTPUT} "${code}")
