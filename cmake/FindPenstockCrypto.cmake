# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# What the component crypto needs under one name, PenstockCrypto::PenstockCrypto: the library crypto of
# OpenSSL 3, and threads. Installed beside penstockConfig.cmake.

if(NOT TARGET PenstockCrypto::PenstockCrypto)
  find_package(OpenSSL 3 QUIET)
  find_package(Threads QUIET)
  # A version that another component has found first may be older.
  if(TARGET OpenSSL::Crypto AND TARGET Threads::Threads AND OPENSSL_VERSION VERSION_GREATER_EQUAL 3)
    add_library(PenstockCrypto::PenstockCrypto INTERFACE IMPORTED)
    set_target_properties(
      PenstockCrypto::PenstockCrypto PROPERTIES INTERFACE_LINK_LIBRARIES "OpenSSL::Crypto;Threads::Threads")
  endif()
endif()

include(FindPackageHandleStandardArgs)
if(TARGET PenstockCrypto::PenstockCrypto)
  set(PenstockCrypto_TARGET PenstockCrypto::PenstockCrypto)
endif()
find_package_handle_standard_args(PenstockCrypto REQUIRED_VARS PenstockCrypto_TARGET)
