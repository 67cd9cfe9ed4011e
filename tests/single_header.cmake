# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# The target penstock_single_header: every header, under its own name, forwards to the single header that
# holds it, which the build makes. So the tests run against the single headers.

set(forward_dir ${CMAKE_CURRENT_BINARY_DIR}/single_header)
get_property(components GLOBAL PROPERTY PENSTOCK_COMPONENTS)
if("compiled" IN_LIST components)
  message(FATAL_ERROR "penstock: the single headers are headers alone, turn PENSTOCK_ENABLE_COMPILED off")
endif()
set(libraries "")
foreach(component IN LISTS components)
  get_target_property(files penstock_${component} HEADER_SET)
  foreach(file IN LISTS files)
    cmake_path(RELATIVE_PATH file BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/include)
    set(single penstock)
    if(NOT component STREQUAL "core")
      set(single penstock_${component})
    endif()
    if(NOT file STREQUAL "penstock/penstock.hpp")
      set(forward "#pragma once\n#include <penstock/${single}.hpp>\n")
      file(CONFIGURE OUTPUT ${forward_dir}/${file} CONTENT "${forward}" @ONLY)
    endif()
  endforeach()
  get_target_property(links penstock_${component} INTERFACE_LINK_LIBRARIES)
  list(APPEND libraries ${links})
endforeach()
list(FILTER libraries EXCLUDE REGEX "^penstock::")

add_library(penstock_single_header INTERFACE)
target_include_directories(
  penstock_single_header INTERFACE ${PROJECT_BINARY_DIR}/single_include ${forward_dir})
add_dependencies(penstock_single_header penstock_single_include)
target_compile_features(penstock_single_header INTERFACE cxx_std_20)
target_link_libraries(penstock_single_header INTERFACE ${libraries})
