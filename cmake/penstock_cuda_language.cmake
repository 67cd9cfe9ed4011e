# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Makes CMake compile .cu files with nvcc, in the folder that includes this and those below it. For the
# project's own programs only; the exported targets need no CUDA compiler.

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
