# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# PENSTOCK_SECOND_COMPILER reads every test, example and fuzzer without a warning; no object file is made. The
# preset `clang` builds and runs tests and examples instead. Where these are built against penstock::compiled
# they are read so too; the bodies are read in the file that includes all headers.

get_filename_component(second_name ${PENSTOCK_SECOND_COMPILER} NAME)
set(second_flags -std=c++20 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror -fsyntax-only)
set(includes -I${PROJECT_SOURCE_DIR}/include -I${CMAKE_CURRENT_SOURCE_DIR} -I${PROJECT_SOURCE_DIR}/fuzz)
get_target_property(catch_includes Catch2::Catch2 INTERFACE_INCLUDE_DIRECTORIES)
foreach(directory IN LISTS catch_includes)
  if(NOT directory STREQUAL "/usr/include") # named once more, it would hide the compiler's own order
    list(APPEND includes -isystem ${directory})
  endif()
endforeach()
if(TARGET PenstockAsio::PenstockAsio)
  get_target_property(definitions PenstockAsio::PenstockAsio INTERFACE_COMPILE_DEFINITIONS)
  list(TRANSFORM definitions PREPEND -D)
  list(APPEND includes ${definitions})
endif()

if(TARGET penstock::mpi)
  list(APPEND test_files integration/mpi.test.cpp)
  get_target_property(mpi_includes MPI::MPI_CXX INTERFACE_INCLUDE_DIRECTORIES)
  foreach(directory IN LISTS mpi_includes)
    list(APPEND includes -isystem ${directory})
  endforeach()
  list(APPEND includes -DOMPI_SKIP_MPICXX -DMPICH_SKIP_MPICXX)
endif()

# The test of device/cuda.hpp with the fake runtime, and the header itself where the toolkit is.
if(TARGET penstock::cuda)
  get_target_property(cuda_includes CUDA::cudart INTERFACE_INCLUDE_DIRECTORIES)
else()
  set(cuda_includes ${CMAKE_CURRENT_SOURCE_DIR}/support/fake_cuda)
endif()
foreach(directory IN LISTS cuda_includes)
  list(APPEND includes -isystem ${directory})
endforeach()
list(APPEND test_files device/cuda.test.cpp)

file(GLOB programs CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/*.cpp ${PROJECT_SOURCE_DIR}/fuzz/*.cpp)
set(sources "")
foreach(file IN LISTS programs)
  penstock_buildable(${file} buildable)
  if(buildable)
    list(APPEND sources ${file})
  endif()
endforeach()
list(TRANSFORM test_files PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ OUTPUT_VARIABLE absolute_test_files)
set(all_headers_file ${CMAKE_CURRENT_BINARY_DIR}/all_headers_forward.cpp)
foreach(file IN LISTS absolute_test_files sources all_headers_file)
  string(REPLACE ${PROJECT_BINARY_DIR}/ "" short ${file})
  string(REPLACE ${PROJECT_SOURCE_DIR}/ "" short ${short})
  string(REGEX REPLACE "^tests/" "" short ${short})
  string(REGEX REPLACE "(\\.(test|fuzz))?\\.cpp$" "" short ${short})
  set(form "")
  if(TARGET penstock::compiled AND NOT file STREQUAL all_headers_file)
    set(form -DPENSTOCK_COMPILED)
  endif()
  add_test(NAME ${second_name}/${short} COMMAND ${PENSTOCK_SECOND_COMPILER} ${second_flags} ${form}
                                                ${includes} ${file})
  set_tests_properties(${second_name}/${short} PROPERTIES LABELS second_compiler TIMEOUT 300)
endforeach()
