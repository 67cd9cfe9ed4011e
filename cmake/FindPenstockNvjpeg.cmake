# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# What the component nvjpeg needs beside cuda and jpeg under one name, PenstockNvjpeg::PenstockNvjpeg: nvJPEG
# of the CUDA toolkit, or of the wheel nvidia-nvjpeg of PyPI, if PenstockNvjpeg_ROOT is the folder of the
# wheel that has include/nvjpeg.h. Installed beside penstockConfig.cmake.

if(NOT TARGET PenstockNvjpeg::PenstockNvjpeg)
  find_package(CUDAToolkit QUIET)
  find_package(PenstockJpeg QUIET)
  find_path(PenstockNvjpeg_INCLUDE_DIR nvjpeg.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  # The wheel's library has no name without a version.
  find_library(PenstockNvjpeg_LIBRARY NAMES nvjpeg libnvjpeg.so.13 libnvjpeg.so.12 libnvjpeg.so.11
               HINTS ${CUDAToolkit_LIBRARY_DIR})
  mark_as_advanced(PenstockNvjpeg_INCLUDE_DIR PenstockNvjpeg_LIBRARY)
  if(PenstockNvjpeg_INCLUDE_DIR AND PenstockNvjpeg_LIBRARY AND TARGET CUDA::cudart
     AND TARGET PenstockJpeg::PenstockJpeg)
    add_library(PenstockNvjpeg::PenstockNvjpeg UNKNOWN IMPORTED)
    set_target_properties(
      PenstockNvjpeg::PenstockNvjpeg
      PROPERTIES IMPORTED_LOCATION ${PenstockNvjpeg_LIBRARY}
                 INTERFACE_INCLUDE_DIRECTORIES ${PenstockNvjpeg_INCLUDE_DIR}
                 INTERFACE_LINK_LIBRARIES CUDA::cudart)
  endif()
endif()

include(FindPackageHandleStandardArgs)
if(TARGET PenstockNvjpeg::PenstockNvjpeg)
  set(PenstockNvjpeg_TARGET PenstockNvjpeg::PenstockNvjpeg)
endif()
find_package_handle_standard_args(PenstockNvjpeg REQUIRED_VARS PenstockNvjpeg_TARGET)
