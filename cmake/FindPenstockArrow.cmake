# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Arrow C++ with Parquet, and nlohmann-json, under one name, PenstockArrow::PenstockArrow, however Arrow is
# packaged: with CMake packages of its own (vcpkg, Conan, distributions), as libraries and headers, or in the
# wheel pyarrow of PyPI, if PENSTOCK_ARROW_PYTHON is a Python that has it. Installed beside
# penstockConfig.cmake.

set(PENSTOCK_ARROW_PYTHON "" CACHE FILEPATH "A Python whose pyarrow has Arrow C++: headers and libraries")

if(NOT TARGET PenstockArrow::PenstockArrow)
  penstock_find(json QUIET PenstockArrow_json) # of the logs of tables
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
      foreach(library IN ITEMS parquet arrow)
        file(GLOB PenstockArrow_files "${PenstockArrow_folder}/lib${library}.so*"
             "${PenstockArrow_folder}/lib${library}.*dylib")
        if(PenstockArrow_files AND EXISTS ${PenstockArrow_headers}/parquet/arrow/reader.h)
          list(GET PenstockArrow_files 0 PenstockArrow_file)
          add_library(PenstockArrow::${library} SHARED IMPORTED)
          set_target_properties(
            PenstockArrow::${library} PROPERTIES IMPORTED_LOCATION ${PenstockArrow_file}
                                                 INTERFACE_INCLUDE_DIRECTORIES ${PenstockArrow_headers})
          list(APPEND PenstockArrow_found PenstockArrow::${library})
        endif()
      endforeach()
    endif()
  else()
    find_package(Arrow CONFIG QUIET)
    find_package(Parquet CONFIG QUIET)
    foreach(library IN ITEMS parquet arrow)
      string(SUBSTRING ${library} 0 1 PenstockArrow_first)
      string(SUBSTRING ${library} 1 -1 PenstockArrow_rest)
      string(TOUPPER ${PenstockArrow_first} PenstockArrow_first)
      set(PenstockArrow_one)
      foreach(package IN ITEMS ${PenstockArrow_first}${PenstockArrow_rest} Arrow arrow)
        foreach(candidate IN ITEMS ${package}::${library}_shared ${package}::${library}_static
                                   ${package}::${library} ${package}::lib${library} ${library}_shared)
          if(NOT PenstockArrow_one AND TARGET ${candidate})
            set(PenstockArrow_one ${candidate})
          endif()
        endforeach()
      endforeach()
      if(NOT PenstockArrow_one)
        find_path(PenstockArrow_INCLUDE_DIR parquet/arrow/reader.h)
        find_library(PenstockArrow_${library}_LIBRARY NAMES ${library})
        mark_as_advanced(PenstockArrow_INCLUDE_DIR PenstockArrow_${library}_LIBRARY)
        if(PenstockArrow_INCLUDE_DIR AND PenstockArrow_${library}_LIBRARY)
          set(PenstockArrow_one PenstockArrow::${library})
          add_library(${PenstockArrow_one} UNKNOWN IMPORTED)
          set_target_properties(
            ${PenstockArrow_one} PROPERTIES IMPORTED_LOCATION ${PenstockArrow_${library}_LIBRARY}
                                            INTERFACE_INCLUDE_DIRECTORIES ${PenstockArrow_INCLUDE_DIR})
        endif()
      endif()
      list(APPEND PenstockArrow_found ${PenstockArrow_one})
    endforeach()
  endif()
  list(LENGTH PenstockArrow_found PenstockArrow_count)
  if(NOT PenstockArrow_count EQUAL 2 OR NOT TARGET PenstockJson::PenstockJson) # or Arrow without Parquet
    set(PenstockArrow_found)
  endif()
  if(PenstockArrow_found)
    add_library(PenstockArrow::PenstockArrow INTERFACE IMPORTED)
    set_target_properties(
      PenstockArrow::PenstockArrow PROPERTIES INTERFACE_LINK_LIBRARIES
                                               "${PenstockArrow_found};PenstockJson::PenstockJson")
  endif()
endif()

include(FindPackageHandleStandardArgs)
if(TARGET PenstockArrow::PenstockArrow)
  set(PenstockArrow_TARGET PenstockArrow::PenstockArrow)
endif()
if(PENSTOCK_ARROW_PYTHON)
  string(CONCAT PenstockArrow_why "the pyarrow of PENSTOCK_ARROW_PYTHON (${PENSTOCK_ARROW_PYTHON}) has no "
                "Arrow C++ with Parquet")
else()
  string(CONCAT PenstockArrow_why "put the folder of Arrow's CMake package into CMAKE_PREFIX_PATH, or name a "
                "Python whose pyarrow has Arrow C++: pip install pyarrow, then "
                "-DPENSTOCK_ARROW_PYTHON=path/to/python")
endif()
if(NOT TARGET PenstockJson::PenstockJson)
  set(PenstockArrow_why "it needs nlohmann-json, which was not found")
endif()
find_package_handle_standard_args(
  PenstockArrow REQUIRED_VARS PenstockArrow_TARGET REASON_FAILURE_MESSAGE "${PenstockArrow_why}")
