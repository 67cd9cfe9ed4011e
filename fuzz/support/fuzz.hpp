// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// What the fuzzers share: bytes give a value in which everything holds together, or a `penstock::error`.
// Anything else ends the program, and is a finding.

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace penstock_fuzz {

inline void must(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

/// What `f` came to: "" or the line of the error that it threw.
template <class F>
std::string outcome(F&& f) {
  try {
    f();
  } catch (const penstock::error& e) {
    must(!e.message().empty(), "an error has a message");
    return e.what();
  }
  return {};
}

/// Looks at every byte, so that the sanitizers do.
inline void touch(penstock::bytes_view bytes) {
  [[maybe_unused]] static volatile unsigned sink = 0;
  unsigned sum = 0;
  for (const std::byte b : bytes) sum = sum * 31 + std::to_integer<unsigned>(b);
  sink = sum;
}
inline void touch(std::string_view text) { touch(penstock::bytes_of(text)); }

/// The input, taken piece by piece; zeros behind its end.
class input {
 public:
  input(const std::uint8_t* data, std::size_t size)
      : rest_(std::as_bytes(std::span<const std::uint8_t>(data, size))) {}

  template <class T = std::uint8_t>
  T number() {
    T value{};
    const penstock::bytes_view some = take(sizeof(T));
    if (!some.empty()) std::memcpy(&value, some.data(), some.size());
    return value;
  }
  penstock::bytes_view take(std::size_t maximum) {
    const penstock::bytes_view some = rest_.first(std::min(maximum, rest_.size()));
    rest_ = rest_.subspan(some.size());
    return some;
  }
  penstock::bytes_view rest() { return take(rest_.size()); }

 private:
  penstock::bytes_view rest_;
};

/// A file that is in memory only, with a path.
class file_in_memory {
 public:
  file_in_memory() : number_(::memfd_create("fuzz", 0)), path_("/proc/self/fd/" + std::to_string(number_)) {
    must(number_ >= 0, "there is a file in memory");
  }
  file_in_memory(const file_in_memory&) = delete;
  file_in_memory& operator=(const file_in_memory&) = delete;
  ~file_in_memory() { ::close(number_); }

  [[nodiscard]] const std::string& path() const { return path_; }
  void write(penstock::bytes_view bytes) const {
    must(::ftruncate(number_, 0) == 0, "the file can be emptied");
    std::size_t done = 0;
    while (done < bytes.size()) {
      const auto got = ::pwrite(number_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
      must(got > 0, "the file can be written");
      done += static_cast<std::size_t>(got);
    }
  }

 private:
  int number_;
  std::string path_;
};

}  // namespace penstock_fuzz
