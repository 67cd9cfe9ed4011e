# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Two translation units with every header of every enabled component, in opposite orders, in one program: it
# finds names that collide between headers, functions that are not inline, and headers that rely on an
# earlier one. It is built without penstock::compiled, so that the bodies are in both.

set(all_headers "")
get_property(components GLOBAL PROPERTY PENSTOCK_COMPONENTS)
list(REMOVE_ITEM components compiled) # it has no headers
foreach(component IN LISTS components)
  get_target_property(files penstock_${component} HEADER_SET)
  foreach(file IN LISTS files)
    cmake_path(RELATIVE_PATH file BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/include)
    list(APPEND all_headers ${file})
  endforeach()
endforeach()
list(SORT all_headers)

set(sources "")
foreach(order IN ITEMS forward backward)
  set(text "")
  foreach(header IN LISTS all_headers)
    string(APPEND text "#include <${header}>\n")
  endforeach()
  if(order STREQUAL "forward")
    string(APPEND text "int backward();\nint main() { return backward(); }\n")
  else()
    string(APPEND text "int backward();\nint backward() { return 0; }\n")
  endif()
  file(CONFIGURE OUTPUT all_headers_${order}.cpp CONTENT "${text}" @ONLY)
  list(APPEND sources ${CMAKE_CURRENT_BINARY_DIR}/all_headers_${order}.cpp)
  list(REVERSE all_headers)
endforeach()
set(text "")
foreach(header IN LISTS all_headers)
  string(APPEND text "#include <${header}>\n")
endforeach()
file(CONFIGURE OUTPUT all_headers.cpp CONTENT "${text}int main() {}\n" @ONLY)

add_executable(penstock_test_all_headers ${sources})
target_link_libraries(penstock_test_all_headers PRIVATE penstock_test_headers penstock_dev_flags)
target_compile_options(penstock_test_all_headers PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wuseless-cast>)
add_test(NAME all_headers COMMAND penstock_test_all_headers)
set_tests_properties(all_headers PROPERTIES LABELS unit)
