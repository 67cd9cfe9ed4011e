// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/position.hpp>

#include <concepts>
#include <cstdint>
#include <string>

/// The optional calls of a reader, with an index or with a whole position (see source/concepts.hpp).
namespace penstock::inline v0_1 {

/// Whether a reader has keys for its samples.
template <class Reader>
concept has_keys = requires(const Reader& r, position at) { r.key(at); } ||
                   requires(const Reader& r) { r.key(std::uint64_t{}); };

/// The key of the sample at a position of the source; its index where the reader has no keys.
template <class Reader>
[[nodiscard]] std::string key_of(const Reader& reader, position at) {
  if constexpr (requires { reader.key(at); })
    return reader.key(at);
  else if constexpr (requires { reader.key(at.index); })
    return reader.key(at.index);
  else
    return std::to_string(at.index);
}

/// Whether a reader knows the file of a sample.
template <class Reader>
concept has_urls = requires(const Reader& r, position at) { r.url(at); } ||
                   requires(const Reader& r) { r.url(std::uint64_t{}); };

/// The file of the sample at a position of the source; empty where the reader does not know.
template <class Reader>
[[nodiscard]] std::string url_of(const Reader& reader, position at) {
  if constexpr (requires { reader.url(at); })
    return std::string(reader.url(at));
  else if constexpr (requires { reader.url(at.index); })
    return std::string(reader.url(at.index));
  else
    return {};
}

namespace detail {
template <class Reader>
struct scout_for {
  struct type {};
};
template <class Reader>
  requires requires { typename Reader::scout; }
struct scout_for<Reader> {
  using type = typename Reader::scout;
};
}  // namespace detail

/// What one thread keeps between hints to a reader; empty where it needs nothing.
template <class Reader>
using scout_of = typename detail::scout_for<Reader>::type;

/// Whether a reader wants to know beforehand which samples are read.
template <class Reader>
concept takes_hints = requires(const Reader& r) {
  r.will_need(std::uint64_t{});
} || requires(const Reader& r, position at, scout_of<Reader>& scout) { r.will_need(at, scout); };

/// Whether a reader knows how many bytes a sample has in the mean.
template <class Reader>
concept knows_bytes_per_sample = requires(const Reader& r) {
  { r.bytes_per_sample() } -> std::same_as<std::uint64_t>;
};

/// Whether a reader can fetch the memory of a sample ahead of its turn.
template <class Reader>
concept touches_memory = requires(const Reader& r, position at) { r.touch(at); };

/// Tells a reader that a sample is read soon; nothing where it does not ask.
template <class Reader>
void hint(const Reader& reader, position at, scout_of<Reader>& scout) {
  if constexpr (requires { reader.will_need(at, scout); })
    reader.will_need(at, scout);
  else if constexpr (requires { reader.will_need(at.index); })
    reader.will_need(at.index);
}

}  // namespace penstock::inline v0_1
