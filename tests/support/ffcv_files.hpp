// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace penstock_test {

/// Makes files as FFCV does, from what its writer does: a sample's values lie in one page, pages are filled
/// by several processes in turn, so that samples are not in their order, and the table of values is in no
/// order at all.
class ffcv_writer {
 public:
  struct field {
    std::uint8_t type;
    std::string name;
    std::string arguments = {};
  };
  /// A value: of a float or an int its bytes; of bytes and JSON the bytes; of an array its values; of an
  /// image its mode, width and height in front of its bytes.
  using sample = std::vector<std::string>;

  static constexpr std::size_t page = std::size_t{1} << 21;

  explicit ffcv_writer(std::vector<field> fields) : fields_(std::move(fields)) {}

  template <class T>
  [[nodiscard]] static std::string number(T value) {
    std::string made(sizeof(T), '\0');
    const auto bits = std::bit_cast<std::make_unsigned_t<T>>(value);
    for (std::size_t i = 0; i < sizeof(T); ++i) made[i] = static_cast<char>(bits >> (8 * i) & 255);
    return made;
  }
  [[nodiscard]] static std::string real(double value) {
    std::uint64_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    return number(bits);
  }
  [[nodiscard]] static std::string image(bool raw, std::uint16_t width, std::uint16_t height,
                                         std::string_view bytes) {
    return std::string(1, raw ? '\1' : '\0') + number(width) + number(height) + std::string(bytes);
  }
  /// The arguments of an array.
  [[nodiscard]] static std::string array(const std::vector<std::uint64_t>& shape, std::string_view descr) {
    std::string made;
    for (std::size_t i = 0; i < 32; ++i) made += number(i < shape.size() ? shape[i] : std::uint64_t{0});
    const std::string type = "[[\"\", \"" + std::string(descr) + "\"]]";
    return made + number(std::uint64_t{type.size()}) + type;
  }

  /// The bytes of a file. `compact`: without the bytes of pages that are not used, which FFCV would write.
  [[nodiscard]] std::string file(const std::vector<sample>& samples, bool compact = false) const {
    std::vector<std::size_t> offsets;
    std::size_t row = 0, largest = 1;
    for (const field& one : fields_) {
      const auto [size, alignment] = layout(one.type);
      row = (row + alignment - 1) / alignment * alignment;
      offsets.push_back(row);
      row += size;
      largest = std::max(largest, alignment);
    }
    row = (row + largest - 1) / largest * largest;
    const std::size_t rows_begin = 24 + 1041 * fields_.size();
    const std::size_t rows_end = rows_begin + row * samples.size(),
                      pages_begin = compact ? rows_end : (rows_end + page - 1) / page * page;
    std::string rows(row * samples.size(), '\0'), pages, table;
    // Two processes, each with a page: even samples and odd ones.
    std::size_t used[2] = {page, page}, place[2] = {0, 0};
    for (std::size_t i = 0; i < samples.size(); ++i) {
      std::size_t size = 0;
      for (std::size_t k = 0; k < fields_.size(); ++k) size += stored(fields_[k].type, samples[i][k]).size();
      const std::size_t who = i % 2;
      if (compact || used[who] + size > page) {
        place[who] = pages.size();
        pages.append(compact ? size : page, '\0');
        used[who] = 0;
      }
      for (std::size_t k = 0; k < fields_.size(); ++k) {
        const std::string bytes = stored(fields_[k].type, samples[i][k]);
        const std::string at = number(std::uint64_t{pages_begin + place[who] + used[who]});
        const std::string entry = cell(fields_[k].type, samples[i][k], at, bytes.size());
        rows.replace(i * row + offsets[k], entry.size(), entry);
        if (fields_[k].type <= 1) continue;  // it is in the row
        pages.replace(place[who] + used[who], bytes.size(), bytes);
        used[who] += bytes.size();
        const std::string one = number(std::uint64_t{i}) + at + number(std::uint64_t{bytes.size()});
        table = i % 3 == 0 ? one + table : table + one;
      }
    }
    std::string made = number(std::uint16_t{2}) + number(static_cast<std::uint16_t>(fields_.size())) +
                       number(static_cast<std::uint32_t>(page)) + number(std::uint64_t{samples.size()}) +
                       number(std::uint64_t{pages_begin + pages.size()});
    for (const field& one : fields_) {
      std::string described = std::string(1, static_cast<char>(one.type)) + one.name;
      described.resize(17, '\0');
      described += one.arguments;
      described.resize(1041, '\0');
      made += described;
    }
    made += rows;
    made.resize(pages_begin, '\0');
    return made + pages + table;
  }

 private:
  static std::pair<std::size_t, std::size_t> layout(std::uint8_t type) {
    if (type == 2) return {13, 1};
    if (type == 3 || type == 5) return {16, 1};
    return {8, 8};
  }
  static std::string stored(std::uint8_t type, const std::string& value) {
    if (type <= 1) return {};
    if (type == 2) return value.substr(5);
    return type == 5 ? value + '\0' : value;
  }
  static std::string cell(std::uint8_t type, const std::string& value, const std::string& at,
                          std::size_t size) {
    if (type <= 1) return value;
    if (type == 2) return value.substr(0, 5) + at;
    return type == 4 || type == 6 ? at : at + number(std::uint64_t{size});
  }

  std::vector<field> fields_;
};

}  // namespace penstock_test
