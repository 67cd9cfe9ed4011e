// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Runs other programs, to check that they read Penstock's files and Penstock reads theirs.

#include "support/catch.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace penstock_test {

struct program_result {
  int status = -1;
  std::string output;
};

/// Runs a shell command and collects what it prints.
[[nodiscard]] inline program_result run_program(const std::string& command) {
  program_result result;
  std::FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return result;
  std::array<char, 4096> part{};
  for (std::size_t n = 0; (n = std::fread(part.data(), 1, part.size(), pipe)) != 0;)
    result.output.append(part.data(), n);
  result.status = ::pclose(pipe);
  return result;
}

/// The Python that has the packages to compare with: $PENSTOCK_TEST_PYTHON, or python3.
[[nodiscard]] inline std::string peer_python() {
  const char* const named = std::getenv("PENSTOCK_TEST_PYTHON");
  return named == nullptr || *named == '\0' ? "python3" : named;
}

/// The first Python of the peer's, the user's and the system's for which `arguments` succeed; the peer's
/// where none does.
[[nodiscard]] inline std::string python_for(const std::string& arguments) {
  for (const std::string& one : {peer_python(), std::string("python3"), std::string("/usr/bin/python3")})
    if (run_program(one + " " + arguments).status == 0) return one;
  return peer_python();
}

/// Whether `probe` succeeds. If it does not, the test says so and continues without the program; in CI,
/// where every program must be there, it fails instead.
[[nodiscard]] inline bool have_program(std::string_view name, const std::string& probe) {
  if (run_program(probe).status == 0) return true;
  const char* ci = std::getenv("CI");
  if (ci != nullptr && std::string_view(ci) == "true") FAIL("CI must have " << name);
  WARN("not compared with " << name << ", which is not there");
  return false;
}

}  // namespace penstock_test
