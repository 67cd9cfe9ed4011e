// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/tables/table_objects.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/source/files/parallel.hpp>

#include <algorithm>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE std::vector<std::byte> table_objects::read(const std::string& name,
                                                           std::uint64_t limit) const {
  std::vector<std::byte> made;
  read_some({name}, limit, max_held, &made, [](void* into, std::size_t, std::vector<std::byte>& bytes) {
    *static_cast<std::vector<std::byte>*>(into) = std::move(bytes);
    return true;
  });
  return made;
}

PENSTOCK_INLINE std::size_t table_objects::fitting(std::span<const std::uint64_t> sizes,
                                                   std::uint64_t held) noexcept {
  std::size_t count = 0;
  for (; count < sizes.size() && (count == 0 || sizes[count] <= held); ++count)
    held -= std::min(sizes[count], held);
  return count;
}

PENSTOCK_INLINE bool table_objects::read_some(const std::vector<std::string>& names, std::uint64_t limit,
                                              std::uint64_t held, void* what,
                                              bool (*work)(void*, std::size_t,
                                                           std::vector<std::byte>&)) const {
  if (names.empty()) return true;
  bool goes_on = true;
  open(names, [&](session_view session) {
    constexpr std::size_t asked = 4 * max_in_flight;
    for (std::size_t begin = 0; begin < names.size() && goes_on; begin += asked) {
      std::vector<std::uint64_t> sizes(std::min(asked, names.size() - begin));
      for_each_in_parallel(sizes.size(), max_in_flight, [&](std::size_t i) {
        sizes[i] = session.size(static_cast<object_id>(begin + i));
        if (sizes[i] > limit)
          throw error(errc::limit,
                      {"the table's metadata have ", sizes[i], " bytes; ", limit, " is the limit"})
              .in_file(names[begin + i]);
      });
      for (std::size_t first = 0; first < sizes.size() && goes_on;) {
        std::vector<std::vector<std::byte>> contents(fitting(std::span(sizes).subspan(first), held));
        for_each_in_parallel(contents.size(), max_in_flight, [&](std::size_t i) {
          contents[i].resize(to_size(sizes[first + i]));
          session.read(static_cast<object_id>(begin + first + i), 0, contents[i]);
        });
        for (std::size_t i = 0; i < contents.size() && goes_on; ++i) {
          goes_on = work(what, begin + first + i, contents[i]);
          contents[i] = {};
        }
        first += contents.size();
      }
    }
  });
  return goes_on;
}

PENSTOCK_INLINE bool is_web_name(std::string_view name) noexcept {
  return name.starts_with("http://") || name.starts_with("https://");
}

PENSTOCK_INLINE std::string name_in_folder(std::string_view folder, std::string_view name) {
  if (folder.empty()) return std::string(name);
  std::string made(folder);
  made += '/';
  const bool encoded = is_web_name(folder);
  constexpr char digits[] = "0123456789ABCDEF";
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("-._~/=").find(c) != std::string_view::npos;
    const auto value = static_cast<unsigned char>(c);
    if (plain || !encoded)
      made += c;
    else
      made.append(1, '%').append(1, digits[value >> 4]).append(1, digits[value & 15]);
  }
  return made;
}

PENSTOCK_INLINE std::string_view scheme_of_uri(std::string_view uri) noexcept {
  const std::size_t colon = uri.find(":/");
  if (colon == uri.npos || colon < 2 || !std::ranges::all_of(uri.substr(0, colon), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' ||
               c == '-' || c == '.';
      }))
    return {};
  return uri.substr(0, colon);
}

PENSTOCK_INLINE std::string name_of_uri(std::string_view uri) {
  for (const std::string_view scheme : {"file://", "file:"})
    if (uri.starts_with(scheme)) return std::string(uri.substr(scheme.size()));
  const std::string_view scheme = scheme_of_uri(uri);
  if (scheme != "s3a" && scheme != "s3n") return std::string(uri);
  return text({"s3", uri.substr(scheme.size())});
}

}  // namespace penstock::inline v0_1::detail
