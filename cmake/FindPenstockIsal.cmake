# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# ISA-L under one name, PenstockIsal::PenstockIsal, however it is packaged: with a CMake package of its own
# (vcpkg, Conan) or, as in Debian, with only headers and a library. Installed beside penstockConfig.cmake.

if(NOT TARGET PenstockIsal::PenstockIsal)
  foreach(package IN ITEMS unofficial-isal isal isa-l)
    find_package(${package} CONFIG QUIET)
  endforeach()
  foreach(candidate IN ITEMS unofficial::isal::isal ISAL::isal ISAL::isa-l isa-l::isa-l)
    if(TARGET ${candidate})
      add_library(PenstockIsal::PenstockIsal INTERFACE IMPORTED)
      set_target_properties(PenstockIsal::PenstockIsal PROPERTIES INTERFACE_LINK_LIBRARIES ${candidate})
      break()
    endif()
  endforeach()
endif()

include(FindPackageHandleStandardArgs)
if(TARGET PenstockIsal::PenstockIsal)
  set(PenstockIsal_TARGET PenstockIsal::PenstockIsal)
  find_package_handle_standard_args(PenstockIsal REQUIRED_VARS PenstockIsal_TARGET)
else()
  find_path(PenstockIsal_INCLUDE_DIR isa-l/crc.h)
  find_library(PenstockIsal_LIBRARY NAMES isal libisal)
  mark_as_advanced(PenstockIsal_INCLUDE_DIR PenstockIsal_LIBRARY)
  find_package_handle_standard_args(PenstockIsal REQUIRED_VARS PenstockIsal_LIBRARY PenstockIsal_INCLUDE_DIR)
  if(PenstockIsal_FOUND)
    add_library(PenstockIsal::PenstockIsal UNKNOWN IMPORTED)
    set_target_properties(
      PenstockIsal::PenstockIsal
      PROPERTIES IMPORTED_LOCATION ${PenstockIsal_LIBRARY}
                 INTERFACE_INCLUDE_DIRECTORIES ${PenstockIsal_INCLUDE_DIR})
  endif()
endif()
