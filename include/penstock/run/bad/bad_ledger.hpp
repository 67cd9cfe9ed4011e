// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace penstock::inline v0_1 {

namespace detail {

/// How many bytes at the beginning of a text are one character of UTF-8; 0 where they are none.
[[nodiscard]] inline std::size_t utf8_length(std::string_view s) noexcept {
  const auto byte = [&](std::size_t i) { return i < s.size() ? static_cast<unsigned char>(s[i]) : 0u; };
  const auto follows = [&](std::size_t i, unsigned low = 0x80, unsigned high = 0xbf) {
    return byte(i) >= low && byte(i) <= high;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return follows(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef)
    return follows(1, first == 0xe0 ? 0xa0 : 0x80, first == 0xed ? 0x9f : 0xbf) && follows(2) ? 3 : 0;
  if (first >= 0xf0 && first <= 0xf4)
    return follows(1, first == 0xf0 ? 0x90 : 0x80, first == 0xf4 ? 0x8f : 0xbf) && follows(2) && follows(3)
               ? 4
               : 0;
  return 0;
}

}  // namespace detail

/// A text as a string of JSON. What is no UTF-8 becomes U+FFFD, a byte at a time: names come from foreign
/// bytes.
/// Source: RFC 8259, section 7; the Unicode Standard, table 3-7.
[[nodiscard]] inline std::string json_quoted(std::string_view s) {
  std::string quoted = "\"";
  while (!s.empty()) {
    const auto byte = static_cast<unsigned char>(s.front());
    const std::size_t length = detail::utf8_length(s);
    if (byte == '"' || byte == '\\') {
      quoted.append({'\\', s.front()});
    } else if (byte < 0x20 || byte == 0x7f) {
      char text[8];
      std::snprintf(text, sizeof text, "\\u%04x", static_cast<unsigned>(byte));
      quoted += text;
    } else if (length == 0) {
      quoted += "\\ufffd";
    } else {
      quoted += s.substr(0, length);
    }
    s.remove_prefix(length == 0 ? 1 : length);
  }
  return quoted + '"';
}

/// The name of a rank's ledger: `{rank}` is its number; without it, of several ranks, ".rank3" stands before
/// the extension.
[[nodiscard]] inline std::string ledger_name(std::string name, std::uint64_t rank, std::uint64_t world) {
  const std::string number = std::to_string(rank);
  bool named = false;
  for (std::size_t at = 0; (at = name.find("{rank}", at)) != std::string::npos; at += number.size()) {
    name.replace(at, 6, number);
    named = true;
  }
  if (named || world == 1) return name;
  const std::size_t slash = name.rfind('/'), first = slash == std::string::npos ? 0 : slash + 1;
  const std::size_t dot = name.rfind('.');
  return name.insert(dot == std::string::npos || dot <= first ? name.size() : dot, ".rank" + number);
}

/// A file to which lines are added, each whole and at once. One thread. Throws `errc::io`, with the file.
class bad_ledger {
 public:
  bad_ledger() = default;
  /// Opens a file and makes it if it is not there; nothing where the name is empty. A last line that was cut
  /// is ended.
  explicit bad_ledger(std::string path) : path_(std::move(path)) {
    if (path_.empty()) return;
    file_ = std::fopen(path_.c_str(), "ab+");
    if (file_ == nullptr) fail("cannot be opened");
    if (std::fseek(file_, 0, SEEK_END) == 0 && std::ftell(file_) > 0 &&
        std::fseek(file_, -1, SEEK_END) == 0) {
      const int last = std::fgetc(file_);
      std::fseek(file_, 0, SEEK_END);
      if (last != '\n' && last != EOF) write("");
    }
  }
  bad_ledger(bad_ledger&& other) noexcept
      : path_(std::move(other.path_)), file_(std::exchange(other.file_, nullptr)) {}
  bad_ledger& operator=(bad_ledger&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(file_, other.file_);
    return *this;
  }
  ~bad_ledger() {
    if (file_ != nullptr) std::fclose(file_);
  }

  [[nodiscard]] explicit operator bool() const noexcept { return file_ != nullptr; }
  /// Adds a line and hands it to the system.
  void write(std::string line) {
    line += '\n';
    if (std::fwrite(line.data(), 1, line.size(), file_) != line.size() || std::fflush(file_) != 0)
      fail("cannot be written");
  }

 private:
  [[noreturn]] void fail(std::string_view what) {
    const int code = errno;
    throw error(errc::io, {"the ledger of bad samples ", what, ": ", std::strerror(code),
                           "; give bad_samples::ledger another place"})
        .in_stage("bad_samples")
        .in_file(path_);
  }

  std::string path_;
  std::FILE* file_ = nullptr;
};

}  // namespace penstock::inline v0_1
