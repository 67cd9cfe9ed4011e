# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# What the component cufile needs beside cuda under one name, PenstockCufile::PenstockCufile: cuFile of the
# CUDA toolkit, or of the wheel nvidia-cufile of PyPI, if PenstockCufile_ROOT is the folder of the wheel that
# has include/cufile.h. Installed beside penstockConfig.cmake.

if(NOT TARGET PenstockCufile::PenstockCufile)
  find_package(CUDAToolkit QUIET)
  find_path(PenstockCufile_INCLUDE_DIR cufile.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  # The wheel's library has no name without a version.
  find_library(PenstockCufile_LIBRARY NAMES cufile libcufile.so.0 HINTS ${CUDAToolkit_LIBRARY_DIR})
  mark_as_advanced(PenstockCufile_INCLUDE_DIR PenstockCufile_LIBRARY)
  if(PenstockCufile_INCLUDE_DIR AND PenstockCufile_LIBRARY AND TARGET CUDA::cudart)
    add_library(PenstockCufile::PenstockCufile UNKNOWN IMPORTED)
    set_target_properties(
      PenstockCufile::PenstockCufile
      PROPERTIES IMPORTED_LOCATION ${PenstockCufile_LIBRARY}
                 INTERFACE_INCLUDE_DIRECTORIES ${PenstockCufile_INCLUDE_DIR}
                 INTERFACE_LINK_LIBRARIES CUDA::cudart)
  endif()
endif()

include(FindPackageHandleStandardArgs)
if(TARGET PenstockCufile::PenstockCufile)
  set(PenstockCufile_TARGET PenstockCufile::PenstockCufile)
endif()
find_package_handle_standard_args(PenstockCufile REQUIRED_VARS PenstockCufile_TARGET)
