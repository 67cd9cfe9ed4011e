# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Compiles and links what uses nvJPEG and cuFile with the wheels of PyPI, where the components are off: what
# is installed and packaged has no wheels. With the components, these tests are some of their rooms'. Without
# a GPU they say so.

set(wheel_tests "")
foreach(library IN ITEMS Nvjpeg Cufile)
  string(TOLOWER ${library} component)
  if(TARGET penstock::${component} OR NOT TARGET penstock::jpeg)
    continue()
  endif()
  penstock_find(${component} QUIET found)
  if(NOT found)
    message(STATUS "penstock: the toolkit has no ${component}, and there is no wheel of it: not tested")
    continue()
  endif()
  list(APPEND wheel_tests ${component})
  set(target penstock_test_${component}_wheel)
  add_executable(${target} gpu/${component}.test.cpp)
  target_link_libraries(
    ${target} PRIVATE penstock_test_main penstock::core penstock::cuda penstock::jpeg
                      Penstock${library}::Penstock${library})
  if(TARGET penstock::compiled)
    target_link_libraries(${target} PRIVATE penstock::compiled)
  endif()
  add_test(NAME gpu/${component} COMMAND ${target} ${catch_options} "[#${component}.test]")
  set_tests_properties(gpu/${component} PROPERTIES LABELS "unit;gpu" TIMEOUT 1200
                                                   ENVIRONMENT "${penstock_test_environment}")
endforeach()
