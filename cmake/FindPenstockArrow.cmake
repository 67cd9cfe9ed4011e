# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Arrow C++ under one name, PenstockArrow::PenstockArrow, however it is packaged: with a CMake package of its
# own (vcpkg, Conan, distributions), as a library and headers, or in the wheel pyarrow of PyPI, if
# PENSTOCK_ARROW_PYTHON is a Python that has it. Installed beside penstockConfig.cmake.

set(PENSTOCK_ARROW_PYTHON "" CACHE FILEPATH "A Python whose pyarrow has Arrow C++: headers and library")

if(NOT TARGET PenstockArrow::PenstockArrow)
  if(PENSTOCK_ARROW_PYTHON)
    execute_process(
      COMMAND ${PENSTOCK_ARROW_PYTHON} -c
              "import os, pyarrow; print(pyarrow.get_include()); print(os.path.dirname(pyarrow.__file__))"
      OUTPUT_VARIABLE PenstockArrow_places OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET
      RESULT_VARIABLE PenstockArrow_failed)
    if(NOT PenstockArrow_failed)
      string(REPLACE "\n" ";" PenstockArrow_places "${PenstockArrow_places}")
      list(GET PenstockArrow_places 0 PenstockArrow_headers)
      list(GET PenstockArrow_places 1 PenstockArrow_folder)
      file(GLOB PenstockArrow_files "${PenstockArrow_folder}/libarrow.so*"
           "${PenstockArrow_folder}/libarrow.*dylib")
      if(PenstockArrow_files AND EXISTS ${PenstockArrow_headers}/arrow/filesystem/filesystem.h)
        list(GET PenstockArrow_files 0 PenstockArrow_file)
        add_library(PenstockArrow::wheel SHARED IMPORTED)
        set_target_properties(
          PenstockArrow::wheel PROPERTIES IMPORTED_LOCATION ${PenstockArrow_file}
                                          INTERFACE_INCLUDE_DIRECTORIES ${PenstockArrow_headers})
        set(PenstockArrow_found PenstockArrow::wheel)
      endif()
    endif()
  else()
    find_package(Arrow CONFIG QUIET)
    foreach(candidate IN ITEMS Arrow::arrow_shared Arrow::arrow_static arrow::arrow arrow_shared)
      if(TARGET ${candidate})
        set(PenstockArrow_found ${candidate})
        break()
      endif()
    endforeach()
    if(NOT PenstockArrow_found)
      find_path(PenstockArrow_INCLUDE_DIR arrow/filesystem/filesystem.h)
      find_library(PenstockArrow_LIBRARY NAMES arrow)
      mark_as_advanced(PenstockArrow_INCLUDE_DIR PenstockArrow_LIBRARY)
      if(PenstockArrow_INCLUDE_DIR AND PenstockArrow_LIBRARY)
        add_library(PenstockArrow::library UNKNOWN IMPORTED)
        set_target_properties(
          PenstockArrow::library PROPERTIES IMPORTED_LOCATION ${PenstockArrow_LIBRARY}
                                            INTERFACE_INCLUDE_DIRECTORIES ${PenstockArrow_INCLUDE_DIR})
        set(PenstockArrow_found PenstockArrow::library)
      endif()
    endif()
  endif()
  if(PenstockArrow_found)
    add_library(PenstockArrow::PenstockArrow INTERFACE IMPORTED)
    set_target_properties(
      PenstockArrow::PenstockArrow PROPERTIES INTERFACE_LINK_LIBRARIES ${PenstockArrow_found})
  endif()
endif()

include(FindPackageHandleStandardArgs)
if(TARGET PenstockArrow::PenstockArrow)
  set(PenstockArrow_TARGET PenstockArrow::PenstockArrow)
endif()
find_package_handle_standard_args(PenstockArrow REQUIRED_VARS PenstockArrow_TARGET)
