# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# libwebp under one name, PenstockWebp::PenstockWebp, however it is packaged: with a CMake package of its own
# (vcpkg, Conan, recent releases) or, as in Debian, with only a header and a library. Installed beside
# penstockConfig.cmake.

if(NOT TARGET PenstockWebp::PenstockWebp)
  find_package(WebP CONFIG QUIET)
  foreach(candidate IN ITEMS WebP::webp webp::webp)
    if(TARGET ${candidate})
      add_library(PenstockWebp::PenstockWebp INTERFACE IMPORTED)
      set_target_properties(PenstockWebp::PenstockWebp PROPERTIES INTERFACE_LINK_LIBRARIES ${candidate})
      break()
    endif()
  endforeach()
endif()

include(FindPackageHandleStandardArgs)
if(TARGET PenstockWebp::PenstockWebp)
  set(PenstockWebp_TARGET PenstockWebp::PenstockWebp)
  find_package_handle_standard_args(PenstockWebp REQUIRED_VARS PenstockWebp_TARGET)
else()
  find_path(PenstockWebp_INCLUDE_DIR webp/decode.h)
  find_library(PenstockWebp_LIBRARY NAMES webp libwebp)
  mark_as_advanced(PenstockWebp_INCLUDE_DIR PenstockWebp_LIBRARY)
  find_package_handle_standard_args(PenstockWebp REQUIRED_VARS PenstockWebp_LIBRARY PenstockWebp_INCLUDE_DIR)
  if(PenstockWebp_FOUND)
    add_library(PenstockWebp::PenstockWebp UNKNOWN IMPORTED)
    set_target_properties(
      PenstockWebp::PenstockWebp
      PROPERTIES IMPORTED_LOCATION ${PenstockWebp_LIBRARY}
                 INTERFACE_INCLUDE_DIRECTORIES ${PenstockWebp_INCLUDE_DIR})
  endif()
endif()
