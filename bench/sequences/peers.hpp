// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/harness.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

/// Other programs that cut or pack the same lengths.
namespace bench {

using lengths = std::vector<std::uint32_t>;

/// Writes lengths for a peer to read, as 32-bit numbers.
[[nodiscard]] inline std::filesystem::path written(const options& o, const char* name,
                                                   const lengths& numbers) {
  const std::filesystem::path path = o.dir / name;
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(numbers.data()),
            static_cast<std::streamsize>(numbers.size() * sizeof(std::uint32_t)));
  if (!out.flush()) throw std::runtime_error("cannot write " + path.string());
  return path;
}

/// A variable of the environment, which run.sh sets; empty if it is not there.
[[nodiscard]] inline std::string setting(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}
[[nodiscard]] inline std::string quoted(const std::string& text) { return "'" + text + "'"; }

/// What a peer prints: a line of two numbers for each window, step or epoch.
using lines = std::vector<std::pair<double, double>>;

/// Empty if there is no such peer, or it fails.
[[nodiscard]] inline lines lines_of(const std::string& command) {
  lines all;
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return all;
  double a = 0, b = 0;
  while (std::fscanf(pipe, "%lf %lf", &a, &b) == 2) all.emplace_back(a, b);
  if (::pclose(pipe) != 0) all.clear();
  return all;
}

[[nodiscard]] inline std::string number(double value, const char* format = "%.3g") {
  char text[48];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

}  // namespace bench
