// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/detail/png_header.hpp>
#include <penstock/codec/detail/stored_image.hpp>
#include <penstock/core/known_formats.hpp>

#include <array>
#include <tuple>
#include <variant>

namespace penstock::inline v0_1 {

/// A codec of images that knows its format's first bytes: `C::recognises(bytes)`.
template <class C>
concept image_codec = codec<C> && lazy_image<decoded<C, bytes_view>> && requires(bytes_view bytes) {
  { C::recognises(bytes) } -> std::same_as<bool>;
};

/// One of several lazy images of the same kind of pixels: a `lazy_image` that asks the one that it has.
template <class First, class... More>
class one_of_images
    : public image_expression<one_of_images<First, More...>, typename First::value_type, First::channels> {
  using base = image_expression<one_of_images, typename First::value_type, First::channels>;

 public:
  using typename base::value_type;
  using typename base::view_type;

  template <std::size_t I, class Image>
  one_of_images(std::in_place_index_t<I> which, const Image& image) : image_(which, image) {}

  [[nodiscard]] image_size size() const {
    return ask([](const auto& one, auto) -> image_size { return one.size(); });
  }
  [[nodiscard]] view_type read(const image_part& part) const {
    return ask([&](const auto& one, auto) -> view_type { return one.read(part); });
  }
  void draw(const image_part& part, const destination<value_type>& into) const {
    ask([&](const auto& one, auto) { one.draw(part, into); });
  }
  [[nodiscard]] image_scratch& memory() const {
    return ask([](const auto& one, auto) -> image_scratch& { return one.memory(); });
  }
  [[nodiscard]] unsigned max_halvings() const {
    return ask([](const auto& one, auto) -> unsigned {
      if constexpr (halvable_image<std::remove_cvref_t<decltype(one)>>)
        return one.max_halvings();
      else
        return 0;
    });
  }
  [[nodiscard]] one_of_images halved(unsigned times, real_part& where) const {
    return ask([&]<std::size_t I>(const auto& one, std::in_place_index_t<I> which) -> one_of_images {
      if constexpr (halvable_image<std::remove_cvref_t<decltype(one)>>)
        return {which, one.halved(times, where)};
      else
        return *this;
    });
  }
  /// The number of the codec that the image is of.
  [[nodiscard]] std::size_t index() const noexcept { return image_.index(); }

 private:
  // Comparisons instead of std::visit's table of functions: the compiler sees through them.
  template <std::size_t I = 0, class F>
  decltype(auto) ask(const F& f) const {
    if constexpr (I == sizeof...(More)) {
      return f(*std::get_if<I>(&image_), std::in_place_index<I>);
    } else {
      if (image_.index() == I) return f(*std::get_if<I>(&image_), std::in_place_index<I>);
      return ask<I + 1>(f);
    }
  }

  std::variant<First, More...> image_;
};

namespace detail {

/// Throws `errc::format`: the bytes are of none of the formats of these codecs. Says of which they are, or
/// how they begin.
[[noreturn, gnu::cold]] inline void refuse_image_format(bytes_view bytes,
                                                        std::initializer_list<std::string_view> codecs) {
  if (bytes.empty()) throw error(errc::format, "the image is empty: it has no bytes");
  refuse_png_as_text(bytes);
  const std::string names = list_text("", codecs, ", ", "");
  if (const std::string_view known = known_format(bytes); !known.empty())
    throw error(errc::format, {"this is ", known, ", and the formats that are decoded here are: ", names})
        .at_offset(0);
  std::string begin;
  constexpr std::string_view digits = "0123456789abcdef";
  for (const std::byte b : bytes.first(std::min<std::size_t>(bytes.size(), 8))) {
    begin += ' ';
    begin += digits[std::to_integer<unsigned>(b) >> 4];
    begin += digits[std::to_integer<unsigned>(b) & 15];
  }
  throw error(errc::format, {"this is no image of a known format: it begins with the bytes", begin,
                             ", and the formats that are decoded here are: ", names})
      .at_offset(0);
}

}  // namespace detail

/// The codec for images of several formats: each image is decoded by the one that recognises its first bytes.
/// File names do not count.
///
/// In: any byte element. Out: a `lazy_image`. The codecs must give the same kind of pixels.
/// Kind: pointwise, keeps all guarantees. Cost: that of the codec that it takes. The scratch is a tuple of
/// theirs.
/// Throws `errc::format` for other formats, and says of which the bytes are if it knows. The codecs' errors
/// name the codec's stage, as `decode<png>`, when the header is read and when pixels are.
///
///     using picture = image_of<png_as<gray8>, webp_as<gray8>>;
///     auto stored = directory("pictures") | decode<picture>(picture{{.orient = false}, {.orient = false}});
template <class... Codecs>
class image_of {
  static_assert(sizeof...(Codecs) >= 1, "penstock: image_of<A, B, ...> needs a codec of images, as png");
  static_assert((image_codec<Codecs> && ...),
                "penstock: image_of<A, B, ...>: each of A, B, ... must be a codec of images with "
                "recognises(bytes), as jpeg, png and webp are");
  using first = std::tuple_element_t<0, std::tuple<decoded<Codecs, bytes_view>...>>;
  static_assert(
      (std::same_as<typename decoded<Codecs, bytes_view>::view_type, typename first::view_type> && ...),
      "penstock: image_of<A, B, ...>: all codecs must give the same kind of pixels, as jpeg_as<rgb8> "
      "and png_as<rgb8> do");

 public:
  static constexpr std::string_view codec_name = "image";
  static constexpr bool one_at_a_time = (lone_codec<Codecs> || ...);
  static constexpr auto extensions = [] {
    std::array<std::string_view, (std::size(Codecs::extensions) + ...)> all{};
    auto end = all.begin();
    ((end = std::copy(std::begin(Codecs::extensions), std::end(Codecs::extensions), end)), ...);
    return all;
  }();
  using scratch = std::tuple<scratch_of<Codecs>...>;
  using image_type = one_of_images<decoded<Codecs, bytes_view>...>;

  image_of() = default;
  constexpr explicit image_of(Codecs... codecs) : codecs_(std::move(codecs)...) {}

  [[nodiscard]] static bool recognises(bytes_view bytes) noexcept {
    return (Codecs::recognises(bytes) || ...);
  }

  template <byte_element Bytes>
  [[nodiscard]] image_type decode(const Bytes& in, scratch& s) const {
    return by_content<0>(as_bytes(in), s);
  }

 private:
  template <std::size_t I>
  image_type by_content(bytes_view bytes, scratch& s) const {
    if constexpr (I == sizeof...(Codecs)) {
      detail::refuse_image_format(bytes, {Codecs::codec_name...});
    } else {
      const auto& one = std::get<I>(codecs_);
      if (one.recognises(bytes))
        return {std::in_place_index<I>,
                detail::naming_codec(one.codec_name, [&] { return one.decode(bytes, std::get<I>(s)); })};
      return by_content<I + 1>(bytes, s);
    }
  }

  std::tuple<Codecs...> codecs_;
};

}  // namespace penstock::inline v0_1
