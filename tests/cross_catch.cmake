# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Catch2 for another architecture. The single header of 2.13 suits all architectures, so this machine's copy
# is used. It is linked into a folder of its own, because its folder also has headers of this machine's C
# library. Catch2 3 is a library, and must be installed for that architecture.

find_path(PENSTOCK_CATCH2_HEADER catch2/catch.hpp PATHS /usr/include NO_CMAKE_FIND_ROOT_PATH)
if(PENSTOCK_CATCH2_HEADER)
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/catch)
  file(CREATE_LINK ${PENSTOCK_CATCH2_HEADER}/catch2 ${CMAKE_CURRENT_BINARY_DIR}/catch/catch2 SYMBOLIC)
  add_library(Catch2::Catch2 INTERFACE IMPORTED)
  target_include_directories(Catch2::Catch2 INTERFACE ${CMAKE_CURRENT_BINARY_DIR}/catch)
  set(Catch2_VERSION 2.13)
else()
  find_package(Catch2 REQUIRED)
endif()
