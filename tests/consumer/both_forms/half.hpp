// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <typeinfo>

/// One half of a program: where it finds things of the library, and what it does with them.
struct half {
  bool has_bodies;
  const void* text;                   ///< where a function of the library is
  const std::type_info* error;        ///< what it knows the library's exception by
  long (*sum)();                      ///< of a pipeline that it runs
  void (*fail)();                     ///< throws the library's exception
  std::string (*caught)(void (*)());  ///< what it says of an exception that the function throws
};

half with_bodies();
half with_library();
