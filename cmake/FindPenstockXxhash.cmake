# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# xxHash under one name, PenstockXxhash::PenstockXxhash, however it is packaged: with a CMake package of its
# own (vcpkg, Conan, recent releases) or, as in Debian, with only a header and a library. Installed beside
# penstockConfig.cmake.

if(NOT TARGET PenstockXxhash::PenstockXxhash)
  find_package(xxHash CONFIG QUIET)
  foreach(candidate IN ITEMS xxHash::xxhash xxhash::xxhash)
    if(TARGET ${candidate})
      add_library(PenstockXxhash::PenstockXxhash INTERFACE IMPORTED)
      set_target_properties(PenstockXxhash::PenstockXxhash PROPERTIES INTERFACE_LINK_LIBRARIES ${candidate})
      break()
    endif()
  endforeach()
endif()

include(FindPackageHandleStandardArgs)
if(TARGET PenstockXxhash::PenstockXxhash)
  set(PenstockXxhash_TARGET PenstockXxhash::PenstockXxhash)
  find_package_handle_standard_args(PenstockXxhash REQUIRED_VARS PenstockXxhash_TARGET)
else()
  find_path(PenstockXxhash_INCLUDE_DIR xxh3.h)
  find_library(PenstockXxhash_LIBRARY NAMES xxhash libxxhash)
  mark_as_advanced(PenstockXxhash_INCLUDE_DIR PenstockXxhash_LIBRARY)
  find_package_handle_standard_args(
    PenstockXxhash REQUIRED_VARS PenstockXxhash_LIBRARY PenstockXxhash_INCLUDE_DIR)
  if(PenstockXxhash_FOUND)
    add_library(PenstockXxhash::PenstockXxhash UNKNOWN IMPORTED)
    set_target_properties(
      PenstockXxhash::PenstockXxhash
      PROPERTIES IMPORTED_LOCATION ${PenstockXxhash_LIBRARY}
                 INTERFACE_INCLUDE_DIRECTORIES ${PenstockXxhash_INCLUDE_DIR})
  endif()
endif()
