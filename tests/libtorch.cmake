# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Tests integration/libtorch.hpp where the component is off and libtorch is installed: libtorch is large, and
# not every compiler can read it. With the component, its test is one of the room's.

find_package(PenstockLibtorch QUIET)
set(why "")
if(NOT PenstockLibtorch_FOUND)
  set(why "there is no libtorch")
elseif(CMAKE_CXX_COMPILER_ID STREQUAL Clang AND PenstockLibtorch_VERSION VERSION_LESS 2)
  # Its <ATen/core/ivalue.h> uses a type before it is complete, which Clang does not take as C++20.
  set(why "Clang cannot read libtorch ${PenstockLibtorch_VERSION}")
endif()
if(why STREQUAL "")
  add_executable(penstock_test_libtorch integration/libtorch.test.cpp)
  target_link_libraries(
    penstock_test_libtorch PRIVATE penstock_test_main penstock::core PenstockLibtorch::PenstockLibtorch)
  if(TARGET penstock::compiled)
    target_link_libraries(penstock_test_libtorch PRIVATE penstock::compiled)
  endif()
  add_test(NAME integration/libtorch COMMAND penstock_test_libtorch)
  set_tests_properties(integration/libtorch PROPERTIES LABELS "unit;integration" TIMEOUT 1200
                                                       ENVIRONMENT "${penstock_test_environment}")
else()
  set(status 77)
  if(NOT PenstockLibtorch_FOUND)
    set(status "$([ \"$CI\" = true ] && echo 1 || echo 77)")
  endif()
  add_test(NAME integration/libtorch COMMAND sh -c "echo 'not compiled: ${why}'; exit ${status}")
  set_tests_properties(integration/libtorch PROPERTIES LABELS "unit;integration" SKIP_RETURN_CODE 77)
endif()
