# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Makes CMake compile .cu files with nvcc, in the folder that includes this and those below it. For the
# project's own programs and penstock::cuda_kernels; the exported targets need no CUDA compiler.

if(NOT CMAKE_CUDA_HOST_COMPILER)
  set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
endif()
if(NOT CMAKE_CUDA_COMPILER AND CUDAToolkit_BIN_DIR)
  find_program(penstock_nvcc nvcc HINTS ${CUDAToolkit_BIN_DIR})
  if(penstock_nvcc)
    set(CMAKE_CUDA_COMPILER ${penstock_nvcc})
  endif()
endif()
include(CheckLanguage)
check_language(CUDA)
if(CMAKE_CUDA_COMPILER)
  enable_language(CUDA)
  set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)
else()
  message(STATUS "penstock: no nvcc, .cu files are left out")
endif()

# penstock_cuda_objects(<target> <file.cu>...): warnings are errors if they are in C++
function(penstock_cuda_objects target)
  add_library(${target} OBJECT ${ARGN})
  target_link_libraries(${target} PRIVATE penstock::penstock)
  target_compile_options(
    ${target} PRIVATE -std=c++20 # CMake 3.25 does not know that newer nvcc have it
                      -Xcompiler=-Wall,-Wextra,-Wconversion,-Wshadow
                      $<$<BOOL:${PENSTOCK_WARNINGS_AS_ERRORS}>:--Werror=all-warnings>)
endfunction()

# penstock_cuda_kernels()
#
# penstock::cuda_kernels, where there is nvcc: a static library of the kernels of on_device, for the
# architectures in CMAKE_CUDA_ARCHITECTURES. It is not installed, because it is for one toolkit and some
# architectures; the files of kernels (*.cuh) are, and a project compiles them into an object of its own.
function(penstock_cuda_kernels)
  set(source ${PROJECT_BINARY_DIR}/cuda_kernels/kernels.cu)
  file(CONFIGURE OUTPUT ${source} CONTENT "#include <penstock/device/image/kernels.cuh>\n" @ONLY)
  add_library(penstock_cuda_kernels STATIC EXCLUDE_FROM_ALL ${source})
  add_library(penstock::cuda_kernels ALIAS penstock_cuda_kernels)
  target_link_libraries(penstock_cuda_kernels PUBLIC penstock::core penstock::cuda)
  set_target_properties(penstock_cuda_kernels PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_compile_options(
    penstock_cuda_kernels PRIVATE -std=c++20 -Xcompiler=-Wall,-Wextra,-Wconversion,-Wshadow
                                  $<$<BOOL:${PENSTOCK_WARNINGS_AS_ERRORS}>:--Werror=all-warnings>)
endfunction()
