# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Configures, builds and runs one outside project, from nothing.
file(REMOVE_RECURSE ${BUILD})
string(REPLACE "," ";" COMPONENTS "${COMPONENTS}")
execute_process(
  COMMAND ${CMAKE_COMMAND} -S ${PROJECT} -B ${BUILD} -G ${GENERATOR} -DCMAKE_BUILD_TYPE=Debug
          -DCMAKE_CXX_FLAGS_DEBUG=-O0
          -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_PREFIX_PATH=${PREFIX} -DPENSTOCK_SOURCE=${SOURCE}
          "-DCONSUMER_COMPONENTS=${COMPONENTS}"
  COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${BUILD} COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${BUILD}/consumer COMMAND_ERROR_IS_FATAL ANY)
