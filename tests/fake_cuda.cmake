# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Tests the logic of device/cuda.hpp, and of what is launched behind its copies, with a fake runtime that
# needs no GPU: its order of calls, its errors, what it releases. A program each, because each has a runtime
# of its own. Compiled with the toolkit's headers if the component is on, otherwise with the few
# declarations that are needed.

if(TARGET penstock::cuda)
  set(cuda_headers $<TARGET_PROPERTY:CUDA::cudart,INTERFACE_INCLUDE_DIRECTORIES>)
else()
  set(cuda_headers ${CMAKE_CURRENT_SOURCE_DIR}/support/fake_cuda)
endif()
foreach(name cuda on_device_cuda)
  set(target penstock_test_fake_${name})
  add_executable(${target} device/${name}.test.cpp)
  target_link_libraries(${target} PRIVATE penstock_test_main penstock::core)
  if(TARGET penstock::compiled)
    target_link_libraries(${target} PRIVATE penstock::compiled)
  endif()
  target_precompile_headers(${target} REUSE_FROM penstock_test_precompiled)
  target_include_directories(${target} SYSTEM PRIVATE ${cuda_headers})
  add_test(NAME device/${name} COMMAND ${target})
  set_tests_properties(device/${name} PROPERTIES LABELS "unit;device" TIMEOUT 300
                                                 ENVIRONMENT "${penstock_test_environment}")
endforeach()
