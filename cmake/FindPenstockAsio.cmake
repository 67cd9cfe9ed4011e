# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Asio without Boost under one name, PenstockAsio::PenstockAsio, however it is packaged: with a CMake
# package (vcpkg, Conan) or, as in Debian, as headers alone. Installed beside penstockConfig.cmake.

if(NOT TARGET PenstockAsio::PenstockAsio)
  find_package(asio CONFIG QUIET)
  foreach(candidate IN ITEMS asio::asio)
    if(TARGET ${candidate})
      add_library(PenstockAsio::PenstockAsio INTERFACE IMPORTED)
      set_target_properties(
        PenstockAsio::PenstockAsio PROPERTIES INTERFACE_LINK_LIBRARIES ${candidate})
      break()
    endif()
  endforeach()
endif()

include(FindPackageHandleStandardArgs)
if(TARGET PenstockAsio::PenstockAsio)
  set(PenstockAsio_TARGET PenstockAsio::PenstockAsio)
  find_package_handle_standard_args(PenstockAsio REQUIRED_VARS PenstockAsio_TARGET)
else()
  find_path(PenstockAsio_INCLUDE_DIR asio/version.hpp)
  mark_as_advanced(PenstockAsio_INCLUDE_DIR)
  find_package_handle_standard_args(PenstockAsio REQUIRED_VARS PenstockAsio_INCLUDE_DIR)
  if(PenstockAsio_FOUND)
    add_library(PenstockAsio::PenstockAsio INTERFACE IMPORTED)
    set_target_properties(
      PenstockAsio::PenstockAsio PROPERTIES INTERFACE_INCLUDE_DIRECTORIES ${PenstockAsio_INCLUDE_DIR})
  endif()
endif()

# Asio 1.22 looks for C++20 coroutines only with GCC; targets that link this are compiled as C++20.
if(TARGET PenstockAsio::PenstockAsio)
  set_target_properties(
    PenstockAsio::PenstockAsio PROPERTIES INTERFACE_COMPILE_DEFINITIONS
                                          "ASIO_HAS_CO_AWAIT=1;ASIO_HAS_STD_COROUTINE=1")
endif()
