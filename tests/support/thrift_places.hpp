// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace penstock_test {

/// A value in a struct of Thrift's compact protocol, in which Parquet has its metadata.
struct thrift_place {
  std::vector<std::size_t> path;   ///< numbers of fields, and places in lists
  std::size_t begin = 0, end = 0;  ///< of its bytes; of a text without its length

  [[nodiscard]] bool is_at(std::initializer_list<std::size_t> wanted) const {
    return std::equal(path.begin(), path.end(), wanted.begin(), wanted.end());
  }
};

/// Finds all values of a struct.
///
/// Source: Apache Thrift, "Thrift Compact protocol encoding".
class thrift_places {
 public:
  explicit thrift_places(std::string_view bytes, std::size_t at = 0) : bytes_(bytes), at_(at) {
    read_struct();
  }

  std::vector<thrift_place> found;

  /// The number that stands at a place.
  [[nodiscard]] std::int64_t number(const thrift_place& place) {
    at_ = place.begin;
    const std::uint64_t value = varint();
    return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
  }

 private:
  [[nodiscard]] std::uint8_t byte() {
    if (at_ >= bytes_.size()) throw std::runtime_error("no struct of Thrift");
    return static_cast<std::uint8_t>(bytes_[at_++]);
  }
  [[nodiscard]] std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const std::uint8_t one = byte();
      value |= std::uint64_t{one & 127u} << shift;
      if (one < 128) return value;
    }
  }
  void keep(std::size_t begin) { found.push_back({path_, begin, at_}); }
  void read_value(unsigned type, bool in_list) {
    std::size_t begin = at_;
    switch (type) {
      case 1:
      case 2:  // in a struct the type is the value
        if (in_list) {
          (void)byte();
          keep(begin);
        }
        return;
      case 3:
        (void)byte();
        return keep(begin);
      case 4:
      case 5:
      case 6:
        (void)varint();
        return keep(begin);
      case 7:
        at_ += 8;
        return keep(begin);
      case 8: {
        const std::uint64_t size = varint();
        begin = at_;
        at_ += static_cast<std::size_t>(size);
        return keep(begin);
      }
      case 9:
      case 10: {
        const std::uint8_t head = byte();
        const std::uint64_t count = head >> 4 == 15 ? varint() : head >> 4;
        for (std::uint64_t i = 0; i < count; ++i) {
          path_.push_back(static_cast<std::size_t>(i));
          read_value(head & 15u, true);
          path_.pop_back();
        }
        return;
      }
      case 12:
        return read_struct();
      default:
        throw std::runtime_error("a type of Thrift that Parquet does not use");
    }
  }
  void read_struct() {
    std::size_t field = 0;
    while (const std::uint8_t head = byte()) {
      if (head >> 4 != 0)
        field += head >> 4;
      else
        field = static_cast<std::size_t>(varint() >> 1);
      path_.push_back(field);
      read_value(head & 15u, false);
      path_.pop_back();
    }
  }

  std::string_view bytes_;
  std::size_t at_;
  std::vector<std::size_t> path_;
};

}  // namespace penstock_test
