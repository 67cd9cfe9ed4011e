// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace penstock_test {

/// The head of an HTTP/1.1 message, as much as a proxy needs to find where the message ends.
class http_head {
 public:
  http_head() = default;
  /// In: the text up to and including the blank line.
  explicit http_head(std::string_view text) {
    for (std::size_t end = 0; (end = text.find("\r\n")) != std::string_view::npos && end != 0;) {
      lines_.emplace_back(text.substr(0, end));
      text.remove_prefix(end + 2);
    }
    if (lines_.empty()) lines_.emplace_back();
  }

  [[nodiscard]] std::string text() const {
    std::string all;
    for (const std::string& line : lines_) all += line + "\r\n";
    return all + "\r\n";
  }
  /// The words of the first line, counted from 0; empty where there are fewer.
  [[nodiscard]] std::string word(std::size_t number) const {
    std::string_view rest = lines_[0];
    for (; number > 0; --number)
      rest.remove_prefix(std::min(rest.size(), std::min(rest.find(' '), rest.size()) + 1));
    return std::string(rest.substr(0, rest.find(' ')));
  }
  [[nodiscard]] int status() const { return std::atoi(word(1).c_str()); }

  /// The value of a field, whatever the case of its name; empty if it is missing.
  [[nodiscard]] std::string field(std::string_view name) const {
    const std::size_t line = find(name);
    if (line == 0) return {};
    std::string_view value = std::string_view(lines_[line]).substr(name.size() + 1);
    while (value.starts_with(' ') || value.starts_with('\t')) value.remove_prefix(1);
    return std::string(value);
  }
  [[nodiscard]] bool has(std::string_view name) const { return find(name) != 0; }
  void remove(std::string_view name) {
    if (const std::size_t line = find(name)) lines_.erase(lines_.begin() + static_cast<std::ptrdiff_t>(line));
  }
  void set(std::string_view name, const std::string& value) {
    remove(name);
    lines_.push_back(std::string(name) + ": " + value);
  }

  [[nodiscard]] std::optional<std::uint64_t> content_length() const {
    const std::string value = field("Content-Length");
    if (value.empty()) return std::nullopt;
    return std::strtoull(value.c_str(), nullptr, 10);
  }
  [[nodiscard]] bool chunked() const { return lower(field("Transfer-Encoding")).ends_with("chunked"); }
  [[nodiscard]] bool closes() const { return lower(field("Connection")) == "close" || word(0) == "HTTP/1.0"; }

 private:
  [[nodiscard]] static std::string lower(std::string text) {
    for (char& c : text)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return text;
  }
  /// The number of the line with that field; 0, the number of the first line, if there is none.
  [[nodiscard]] std::size_t find(std::string_view name) const {
    const std::string wanted = lower(std::string(name)) + ":";
    for (std::size_t i = 1; i < lines_.size(); ++i)
      if (lower(lines_[i].substr(0, wanted.size())) == wanted) return i;
    return 0;
  }

  std::vector<std::string> lines_;
};

}  // namespace penstock_test
