// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

/// Prints the usage if `--help` is among the options, and returns whether it is.
inline bool asked_for_help(int count, char** values, const std::string& usage) {
  for (int i = 1; i < count; i += 2) {
    if (std::string_view(values[i]) != "--help") continue;
    std::printf("usage: %s\n", usage.c_str());
    return true;
  }
  return false;
}

/// The most threads that an example starts.
inline constexpr std::uint64_t max_workers = 1024;

/// `--name value` pairs of a command line, for the examples.
class arguments {
 public:
  arguments(int count, char** values, std::string usage) : usage_(std::move(usage)) {
    for (int i = 1; i < count; i += 2) {
      const std::string_view name = values[i];
      if (!name.starts_with("--")) wrong("'" + std::string(name) + "' is no option");
      if (i + 1 == count) wrong(std::string(name) + " needs a value");
      given_[std::string(name.substr(2))].push_back(values[i + 1]);
    }
  }

  [[nodiscard]] bool has(const std::string& name) const { return given_.contains(name); }
  [[nodiscard]] std::string text(const std::string& name) {
    const auto found = given_.extract(name);
    if (found.empty()) wrong("--" + name + " is missing");
    return found.mapped().back();
  }
  [[nodiscard]] std::string text(const std::string& name, const std::string& otherwise) {
    const auto found = given_.extract(name);
    return found.empty() ? otherwise : found.mapped().back();
  }
  /// The values of an option that you may give several times.
  [[nodiscard]] std::vector<std::string> texts(const std::string& name) {
    const auto found = given_.extract(name);
    return found.empty() ? std::vector<std::string>() : found.mapped();
  }
  /// A whole number, which is refused if it is more than `maximum`.
  [[nodiscard]] std::uint64_t number(const std::string& name, std::uint64_t otherwise,
                                     std::uint64_t maximum = std::numeric_limits<std::uint64_t>::max()) {
    const auto found = given_.extract(name);
    if (found.empty()) return otherwise;
    const std::string& digits = found.mapped().back();
    std::uint64_t value = 0;
    const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (failure != std::errc{} || end != digits.data() + digits.size())
      wrong("--" + name + " needs a whole number, and '" + digits + "' is none");
    if (value > maximum)
      wrong("--" + name + " is at most " + std::to_string(maximum) + ", and not " + digits);
    return value;
  }
  /// A number from 0 to `maximum`.
  [[nodiscard]] double real(const std::string& name, double otherwise, double maximum = 1e15) {
    const auto found = given_.extract(name);
    if (found.empty()) return otherwise;
    const std::string& digits = found.mapped().back();
    char* end = nullptr;
    const double value = std::strtod(digits.c_str(), &end);
    if (digits.empty() || *end != '\0' || !(value >= 0 && value <= maximum))
      wrong("--" + name + " needs a number from 0 to " +
            (maximum >= 1e15 ? "10^15" : std::to_string(static_cast<int>(maximum))) + ", and '" + digits +
            "' is none");
    return value;
  }
  /// A number from 0 to 1.
  [[nodiscard]] double share(const std::string& name, double otherwise) { return real(name, otherwise, 1); }
  /// Call this after you have asked for the last option.
  void done() const {
    if (!given_.empty()) wrong("there is no option --" + given_.begin()->first);
  }

 private:
  [[noreturn]] void wrong(const std::string& what) const {
    throw std::runtime_error(what + "; usage: " + usage_.substr(0, usage_.find('\n')));
  }

  std::map<std::string, std::vector<std::string>> given_;
  std::string usage_;
};
