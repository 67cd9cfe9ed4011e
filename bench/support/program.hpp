// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdio>
#include <string>

/// Other programs, with which ours are compared.
namespace bench {

/// The number that a program prints; 0 if it failed.
[[nodiscard]] inline double rate_of_program(const std::string& command) {
  std::FILE* pipe = ::popen(command.c_str(), "r");
  double rate = 0;
  const bool good = pipe != nullptr && std::fscanf(pipe, "%lf", &rate) == 1;
  if (pipe != nullptr) ::pclose(pipe);
  return good && rate > 0 ? rate : 0;
}

}  // namespace bench
