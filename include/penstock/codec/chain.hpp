// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/concepts.hpp>

#include <tuple>

namespace penstock::inline v0_1 {

/// Several codecs in a row: each one reads the output of the one before.
///
/// In: any byte element. Out: the output of the last codec. All but the last must produce bytes.
/// Kind: pointwise, keeps all guarantees. Cost per sample: that of the codecs; allocates nothing itself.
/// The scratch is a tuple of theirs. Threads and errors: as the codecs.
/// A codec after another one may return views into its scratch or on the finished bytes of its input, but
/// must not keep the address of the input object, which is destroyed when the chain returns.
///
///     auto small = records | decode<chain<zstd, npy<float>>>(chain{zstd{.limit = 1_MiB}, npy<float>{}});
template <class... Codecs>
class chain {
  static_assert(sizeof...(Codecs) >= 2, "penstock: chain<A, B, ...> needs two codecs or more");
  static_assert((codec<Codecs> && ...), "penstock: chain<A, B, ...>: each of A, B, ... must be a codec");

 public:
  static constexpr std::string_view codec_name = "chain";
  using scratch = std::tuple<scratch_of<Codecs>...>;
  static constexpr bool one_at_a_time = (lone_codec<Codecs> || ...);

  chain() = default;
  constexpr explicit chain(Codecs... codecs) : codecs_(std::move(codecs)...) {}

  template <byte_element Bytes>
  [[nodiscard]] auto decode(const Bytes& in, scratch& s) const {
    return from<0>(in, s);
  }

 private:
  template <std::size_t I, class Bytes>
  auto from(const Bytes& in, scratch& s) const {
    detail::check_codec<std::tuple_element_t<I, std::tuple<Codecs...>>>(in);
    if constexpr (I + 1 == sizeof...(Codecs)) {
      return std::get<I>(codecs_).decode(in, std::get<I>(s));
    } else {
      const auto between = std::get<I>(codecs_).decode(in, std::get<I>(s));
      using between_type = std::remove_cvref_t<decltype(between)>;
      if constexpr (!byte_element<between_type>) {
        static_assert(byte_element<between_type>,
                      "penstock: chain<A, B, ...>: every codec but the last must give bytes, as zstd does");
      } else {
        static_assert(std::is_trivially_destructible_v<between_type>,
                      "penstock: chain<A, B, ...>: every codec but the last must give a view or a blob over "
                      "its scratch, because a value that owns "
                      "its bytes is destroyed before the result is used");
        return from<I + 1>(between, s);
      }
    }
  }

  std::tuple<Codecs...> codecs_;
};

}  // namespace penstock::inline v0_1
