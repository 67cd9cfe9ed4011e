# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# MPI's C interface for C++ programs, under the name PenstockMpi::PenstockMpi: CMake finds the library, and
# the old C++ bindings, which MPI 3 removed and which need a library of their own, are left out. Installed
# beside penstockConfig.cmake.

if(NOT TARGET PenstockMpi::PenstockMpi)
  set(MPI_CXX_SKIP_MPICXX TRUE)
  if(PenstockMpi_FIND_QUIETLY)
    find_package(MPI QUIET COMPONENTS CXX)
  else()
    find_package(MPI COMPONENTS CXX)
  endif()
  if(TARGET MPI::MPI_CXX)
    add_library(PenstockMpi::PenstockMpi INTERFACE IMPORTED)
    set_target_properties(PenstockMpi::PenstockMpi PROPERTIES INTERFACE_LINK_LIBRARIES MPI::MPI_CXX)
  endif()
endif()

include(FindPackageHandleStandardArgs)
if(TARGET PenstockMpi::PenstockMpi)
  set(PenstockMpi_TARGET PenstockMpi::PenstockMpi)
endif()
find_package_handle_standard_args(PenstockMpi REQUIRED_VARS PenstockMpi_TARGET)
