# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Tests storage/arrow_files.hpp with the Arrow of the wheel that PENSTOCK_ARROW_PYTHON has where the component
# is off: what is installed and packaged has no wheel. With the component, its test is one of the room's.

find_package(PenstockArrow REQUIRED)
add_executable(penstock_test_arrow_wheel storage/arrow_files.test.cpp)
target_link_libraries(
  penstock_test_arrow_wheel PRIVATE penstock_test_main penstock::core PenstockArrow::PenstockArrow)
if(TARGET penstock::compiled)
  target_link_libraries(penstock_test_arrow_wheel PRIVATE penstock::compiled)
endif()
add_test(NAME storage/arrow_files COMMAND penstock_test_arrow_wheel)
set_tests_properties(storage/arrow_files PROPERTIES LABELS "unit;storage" TIMEOUT 300
                                                    ENVIRONMENT "${penstock_test_environment}")
