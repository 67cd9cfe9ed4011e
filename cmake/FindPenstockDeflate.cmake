# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# libdeflate under one name, PenstockDeflate::PenstockDeflate, however it is packaged: with a CMake package
# of its own (vcpkg, Conan, recent releases) or, as in Debian, with only a header and a library. Installed
# beside penstockConfig.cmake.

if(NOT TARGET PenstockDeflate::PenstockDeflate)
  find_package(libdeflate CONFIG QUIET)
  foreach(candidate IN ITEMS libdeflate::libdeflate_shared libdeflate::libdeflate_static)
    if(TARGET ${candidate})
      add_library(PenstockDeflate::PenstockDeflate INTERFACE IMPORTED)
      set_target_properties(PenstockDeflate::PenstockDeflate PROPERTIES INTERFACE_LINK_LIBRARIES ${candidate})
      break()
    endif()
  endforeach()
endif()

include(FindPackageHandleStandardArgs)
if(TARGET PenstockDeflate::PenstockDeflate)
  set(PenstockDeflate_TARGET PenstockDeflate::PenstockDeflate)
  find_package_handle_standard_args(PenstockDeflate REQUIRED_VARS PenstockDeflate_TARGET)
else()
  find_path(PenstockDeflate_INCLUDE_DIR libdeflate.h)
  find_library(PenstockDeflate_LIBRARY NAMES deflate libdeflate deflatestatic)
  mark_as_advanced(PenstockDeflate_INCLUDE_DIR PenstockDeflate_LIBRARY)
  find_package_handle_standard_args(
    PenstockDeflate REQUIRED_VARS PenstockDeflate_LIBRARY PenstockDeflate_INCLUDE_DIR)
  if(PenstockDeflate_FOUND)
    add_library(PenstockDeflate::PenstockDeflate UNKNOWN IMPORTED)
    set_target_properties(
      PenstockDeflate::PenstockDeflate
      PROPERTIES IMPORTED_LOCATION ${PenstockDeflate_LIBRARY}
                 INTERFACE_INCLUDE_DIRECTORIES ${PenstockDeflate_INCLUDE_DIR})
  endif()
endif()
