// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/tables/deletion_vector.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/to_size.hpp>

#include <algorithm>

namespace penstock::inline v0_1::detail {

/// Reads numbers, least significant byte first, from bytes that may end too soon.
struct roaring_bytes {
  bytes_view all;
  std::size_t at = 0;

  [[nodiscard]] std::uint64_t number(std::size_t size) {
    if (all.size() - at < size)
      throw error(errc::format, "the deletion vector is cut off").at_offset(all.size());
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i) value |= std::to_integer<std::uint64_t>(all[at + i]) << (8 * i);
    at += size;
    return value;
  }
};

// A bitmap of 32 bits, whose numbers stand behind `high`.
PENSTOCK_INLINE void add_roaring(roaring_bytes& in, std::uint64_t high, std::uint64_t maximum,
                                 std::vector<std::uint64_t>& into) {
  constexpr std::uint64_t with_runs = 12347, without_runs = 12346, max_containers = 65536, array_limit = 4096;
  const std::size_t begin = in.at;
  const std::uint64_t cookie = in.number(4);
  std::uint64_t count = 0;
  std::vector<bool> is_run;
  if ((cookie & 0xffff) == with_runs) {
    count = (cookie >> 16) + 1;
    for (std::uint64_t i = 0; i < (count + 7) / 8; ++i) {
      const std::uint64_t bits = in.number(1);
      for (unsigned k = 0; k < 8; ++k) is_run.push_back((bits >> k & 1) != 0);
    }
  } else if (cookie == without_runs) {
    count = in.number(4);
  } else {
    throw error(errc::format, "the deletion vector is no Roaring bitmap").at_offset(begin);
  }
  if (count > max_containers)
    throw error(errc::format, {"the deletion vector has ", count, " containers"}).at_offset(begin);
  struct container {
    std::uint64_t key, size;
  };
  std::vector<container> containers;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t key = in.number(2), size = in.number(2) + 1;
    if (!containers.empty() && key <= containers.back().key)
      throw error(errc::format, "the deletion vector's containers are not in order").at_offset(in.at - 4);
    containers.push_back({key, size});
  }
  if (is_run.empty() || count >= 4)
    for (std::uint64_t i = 0; i < count; ++i) (void)in.number(4);  // where each one is
  const auto add = [&](std::uint64_t value) {
    if (!into.empty() && value <= into.back())
      throw error(errc::format, "the deletion vector's numbers are not in order").at_offset(in.at);
    if (into.size() >= maximum)
      throw error(errc::limit, {"the deletion vector has more than ", maximum, " numbers"}).at_offset(in.at);
    into.push_back(value);
  };
  for (std::size_t i = 0; i < containers.size(); ++i) {
    const std::uint64_t base = high << 32 | containers[i].key << 16;
    if (i < is_run.size() && is_run[i]) {
      for (std::uint64_t runs = in.number(2); runs != 0; --runs) {
        const std::uint64_t first = in.number(2), last = first + in.number(2);
        if (last > 0xffff)
          throw error(errc::format, "a run of the deletion vector leaves its container").at_offset(in.at - 4);
        for (std::uint64_t value = first; value <= last; ++value) add(base | value);
      }
    } else if (containers[i].size <= array_limit) {
      for (std::uint64_t k = 0; k < containers[i].size; ++k) add(base | in.number(2));
    } else {
      for (std::uint64_t word = 0; word < 1024; ++word) {
        const std::uint64_t bits = in.number(8);
        for (unsigned k = 0; k < 64; ++k)
          if ((bits >> k & 1) != 0) add(base | (word * 64 + k));
      }
    }
  }
}

PENSTOCK_INLINE std::vector<std::uint64_t> read_deletion_vector(bytes_view bytes, std::uint64_t maximum) {
  constexpr std::uint64_t magic = 1681511377;
  roaring_bytes in{bytes};
  if (in.number(4) != magic)
    throw error(errc::format, "the deletion vector is not in the format that Delta calls portable")
        .at_offset(0);
  const std::uint64_t count = in.number(8);
  std::vector<std::uint64_t> found;
  for (std::uint64_t i = 0; i < count; ++i) add_roaring(in, in.number(4), maximum, found);
  return found;
}

PENSTOCK_INLINE std::vector<std::byte> from_z85(std::string_view text) {
  constexpr std::string_view digits =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
  if (text.size() % 5 != 0)
    throw error(errc::format, {"a text in Z85 has ", text.size(), " characters, which is no multiple of 5"});
  std::vector<std::byte> made;
  for (std::size_t at = 0; at < text.size(); at += 5) {
    std::uint64_t value = 0;
    for (const char c : text.substr(at, 5)) {
      const std::size_t digit = digits.find(c);
      if (digit == digits.npos)
        throw error(errc::format, "a text in Z85 has a character that is no digit of it");
      value = value * 85 + digit;
    }
    if (value >> 32 != 0) throw error(errc::format, "a text in Z85 has five digits of more than four bytes");
    for (const int shift : {24, 16, 8, 0}) made.push_back(static_cast<std::byte>(value >> shift & 255));
  }
  return made;
}

PENSTOCK_INLINE std::string deletion_vector_name(std::string_view text) {
  constexpr std::size_t encoded = 20;
  if (text.size() < encoded) throw error(errc::format, {"'", text, "' names no file of deletion vectors"});
  const std::string_view prefix = text.substr(0, text.size() - encoded);
  std::string name(prefix);
  name += prefix.empty() ? "deletion_vector_" : "/deletion_vector_";
  constexpr std::string_view digits = "0123456789abcdef";
  const std::vector<std::byte> id = from_z85(text.substr(prefix.size()));
  for (std::size_t i = 0; i < id.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) name += '-';
    name += digits[std::to_integer<std::size_t>(id[i]) >> 4];
    name += digits[std::to_integer<std::size_t>(id[i]) & 15];
  }
  return name + ".bin";
}

PENSTOCK_INLINE std::uint32_t deletion_vector_checksum(bytes_view bytes) noexcept {
  std::uint32_t sum = 0xffffffff;
  for (const std::byte one : bytes) {
    sum ^= std::to_integer<std::uint32_t>(one);
    for (int i = 0; i < 8; ++i) sum = (sum >> 1) ^ ((sum & 1) != 0 ? 0xedb88320u : 0u);
  }
  return ~sum;
}

PENSTOCK_INLINE std::vector<std::byte> deletion_vector_in_file(session_view session, object_id file,
                                                               std::string_view magic, std::uint64_t offset,
                                                               std::uint64_t size) {
  constexpr std::uint64_t beside = 8, maximum = std::uint64_t{1} << 31;
  const std::uint64_t length = session.size(file);
  std::string begin(std::min<std::uint64_t>(length, magic.size()), '\0');
  session.read(file, 0, std::as_writable_bytes(std::span(begin)));
  if (begin != magic)
    throw error(errc::format, "the file is no file of deletion vectors, or one of a format that is not known")
        .at_offset(0);
  const auto none_there = [&] {
    return error(errc::format, "the file has no deletion vector of that size there").at_offset(offset);
  };
  if (size >= maximum || offset > length || length - offset < size + beside) throw none_there();
  // A file may have those of thousands of data files.
  std::vector<std::byte> all(to_size(size + beside));
  session.read(file, offset, all);
  const auto big = [&](std::size_t at) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i) value = value << 8 | std::to_integer<std::uint32_t>(all[at + i]);
    return value;
  };
  if (big(0) != size) throw none_there();
  const std::uint32_t sum = big(all.size() - 4);
  all.erase(all.begin(), all.begin() + 4);
  all.resize(to_size(size));
  if (deletion_vector_checksum(all) != sum)
    throw error(errc::checksum, "the deletion vector has another checksum: the file is damaged")
        .at_offset(offset);
  return all;
}

}  // namespace penstock::inline v0_1::detail
