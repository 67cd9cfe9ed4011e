# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# liburing under one name, PenstockUring::PenstockUring, however it is packaged: with a CMake package of its
# own (vcpkg, Conan, recent releases) or, as in Debian, with only a header and a library. Installed beside
# penstockConfig.cmake.

if(NOT TARGET PenstockUring::PenstockUring)
  find_package(liburing CONFIG QUIET)
  foreach(candidate IN ITEMS liburing::liburing liburing::uring)
    if(TARGET ${candidate})
      add_library(PenstockUring::PenstockUring INTERFACE IMPORTED)
      set_target_properties(PenstockUring::PenstockUring PROPERTIES INTERFACE_LINK_LIBRARIES ${candidate})
      break()
    endif()
  endforeach()
endif()

include(FindPackageHandleStandardArgs)
if(TARGET PenstockUring::PenstockUring)
  set(PenstockUring_TARGET PenstockUring::PenstockUring)
  find_package_handle_standard_args(PenstockUring REQUIRED_VARS PenstockUring_TARGET)
else()
  find_path(PenstockUring_INCLUDE_DIR liburing.h)
  find_library(PenstockUring_LIBRARY NAMES uring liburing)
  mark_as_advanced(PenstockUring_INCLUDE_DIR PenstockUring_LIBRARY)
  find_package_handle_standard_args(
    PenstockUring REQUIRED_VARS PenstockUring_LIBRARY PenstockUring_INCLUDE_DIR)
  if(PenstockUring_FOUND)
    add_library(PenstockUring::PenstockUring UNKNOWN IMPORTED)
    set_target_properties(
      PenstockUring::PenstockUring
      PROPERTIES IMPORTED_LOCATION ${PenstockUring_LIBRARY}
                 INTERFACE_INCLUDE_DIRECTORIES ${PenstockUring_INCLUDE_DIR})
  endif()
endif()
