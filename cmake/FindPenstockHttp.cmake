# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# What the component http needs under one name, PenstockHttp::PenstockHttp: the headers of Boost.Beast and
# Boost.Asio, however they are packaged (by themselves, with all of Boost, or as headers alone), OpenSSL and
# threads. Installed beside penstockConfig.cmake.

if(NOT TARGET PenstockHttp::PenstockHttp)
  set(PenstockHttp_boost "")
  find_package(boost_beast CONFIG QUIET)
  find_package(boost_asio CONFIG QUIET)
  if(TARGET Boost::beast AND TARGET Boost::asio)
    set(PenstockHttp_boost Boost::beast Boost::asio)
  else()
    find_package(Boost CONFIG QUIET)
    foreach(candidate IN ITEMS Boost::headers Boost::boost)
      if(TARGET ${candidate})
        set(PenstockHttp_boost ${candidate})
        break()
      endif()
    endforeach()
  endif()
  if(NOT PenstockHttp_boost)
    find_path(PenstockHttp_INCLUDE_DIR boost/beast/http/parser.hpp)
    mark_as_advanced(PenstockHttp_INCLUDE_DIR)
    if(PenstockHttp_INCLUDE_DIR)
      add_library(PenstockHttp::headers INTERFACE IMPORTED)
      set_target_properties(
        PenstockHttp::headers PROPERTIES INTERFACE_INCLUDE_DIRECTORIES ${PenstockHttp_INCLUDE_DIR})
      set(PenstockHttp_boost PenstockHttp::headers)
    endif()
  endif()
  find_package(OpenSSL 1.1.1 QUIET)
  find_package(Threads QUIET)
  if(PenstockHttp_boost AND TARGET OpenSSL::SSL AND TARGET OpenSSL::Crypto AND TARGET Threads::Threads)
    add_library(PenstockHttp::PenstockHttp INTERFACE IMPORTED)
    set_target_properties(
      PenstockHttp::PenstockHttp
      PROPERTIES INTERFACE_LINK_LIBRARIES
                 "${PenstockHttp_boost};OpenSSL::SSL;OpenSSL::Crypto;Threads::Threads")
  endif()
endif()

include(FindPackageHandleStandardArgs)
if(TARGET PenstockHttp::PenstockHttp)
  set(PenstockHttp_TARGET PenstockHttp::PenstockHttp)
endif()
find_package_handle_standard_args(PenstockHttp REQUIRED_VARS PenstockHttp_TARGET)
