// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <typeinfo>

/// One half of a program: the addresses it uses from the library, and the functions it offers.
struct half {
  bool has_bodies;
  const void* text;             ///< the address of a function of the library
  const std::type_info* error;  ///< the type of the library's exception
  long (*sum)();                ///< the sum over a pipeline that it runs
  void (*fail)();               ///< throws the library's exception
  /// the message of the exception that the function throws, as caught here
  std::string (*caught)(void (*)());
};

half with_bodies();
half with_library();
