# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Tests the logic of device/cuda.hpp with a fake runtime that needs no GPU: its order of calls, its errors,
# what it releases. Compiled with the toolkit's headers if the component is on, otherwise with the few
# declarations that are needed.

add_executable(penstock_test_fake_cuda device/cuda.test.cpp)
target_link_libraries(penstock_test_fake_cuda PRIVATE penstock_test_main penstock::core)
if(TARGET penstock::compiled)
  target_link_libraries(penstock_test_fake_cuda PRIVATE penstock::compiled)
endif()
target_precompile_headers(penstock_test_fake_cuda REUSE_FROM penstock_test_precompiled)
if(TARGET penstock::cuda)
  set(cuda_headers $<TARGET_PROPERTY:CUDA::cudart,INTERFACE_INCLUDE_DIRECTORIES>)
else()
  set(cuda_headers ${CMAKE_CURRENT_SOURCE_DIR}/support/fake_cuda)
endif()
target_include_directories(penstock_test_fake_cuda SYSTEM PRIVATE ${cuda_headers})
add_test(NAME device/cuda COMMAND penstock_test_fake_cuda)
set_tests_properties(device/cuda PROPERTIES LABELS "unit;device" TIMEOUT 300
                                            ENVIRONMENT "${penstock_test_environment}")
