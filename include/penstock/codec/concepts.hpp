// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/components.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/call.hpp>
#include <penstock/core/element.hpp>

#include <iterator>
#include <utility>

/// How bytes become values. A codec is a small value type: its options are its members, and its per-worker
/// memory is its `scratch`.
namespace penstock::inline v0_1 {

/// The scratch of codecs and stages that need none.
struct no_scratch {};

/// The per-worker memory of a codec or stage `T`: `T::scratch`, or nothing by default.
template <class T>
using scratch_of = typename detail::scratch_or<std::remove_cvref_t<T>, no_scratch>::type;

/// A codec: `decode(bytes, scratch)` returns a value, a view into the scratch, or an unfinished expression.
/// It is const and is called from many threads, each with its own scratch. Bad bytes throw
/// `error(errc::format, ...)`.
///
/// The concept tests finished bytes; make `decode` a template over `byte_element`, so that it can also take
/// blobs and read them to wherever it needs them.
template <class C>
concept codec = std::default_initializable<C> && std::copy_constructible<C> &&
                requires(const C& c, const bytes_view& in, scratch_of<C>& s) {
                  c.decode(in, s);
                  { C::codec_name } -> std::convertible_to<std::string_view>;
                };

/// A codec whose values take far longer to make than their bytes say, as those of images do; it declares
/// `static constexpr bool one_at_a_time = true`. Workers take such samples one by one, whatever their size,
/// so that none waits behind a large one that its worker took before it.
template <class C>
concept lone_codec = requires { requires bool(std::remove_cvref_t<C>::one_at_a_time); };

/// A codec that declares the file extensions it is meant for, in a `static constexpr` `extensions`.
template <class C>
concept extension_codec = requires { std::begin(C::extensions); };

/// A codec that reads values of columns as what they are, not as bytes, and looks at their types itself; it
/// declares `static constexpr bool reads_columns = true`.
template <class C>
concept column_codec = requires { requires bool(std::remove_cvref_t<C>::reads_columns); };

namespace detail {
/// Bytes that know how they are encoded, as those of a column, refuse a codec that cannot read them.
template <class C, class In>
[[gnu::always_inline]] inline void check_codec(const In& in) {
  if constexpr (requires { in.check_codec(std::string_view()); })
    if constexpr (!column_codec<C> || !requires { in.cell(); }) in.check_codec(C::codec_name);
}
}  // namespace detail

/// The result of codec `C` for bytes of type `In`.
template <class C, class In>
using decoded = decltype(std::declval<const C&>().decode(std::declval<const std::remove_cvref_t<In>&>(),
                                                         std::declval<scratch_of<C>&>()));

/// The progress of one step of an unpacker.
struct unpack_step {
  std::size_t taken = 0;  ///< bytes of input consumed
  std::size_t made = 0;   ///< bytes of output produced
  bool whole = false;     ///< the input may end here: nothing is unfinished
};

/// A decompressor of files that are read forward, in pieces and with bounded memory.
///   unpacker_format          the format's name: "gzip", "zlib", "zstd", "lz4", "bzip2", "xz", "brotli" or "snappy"
///   stream                   its state: default-constructible, movable, used by one thread at a time
///   stream.begin()           starts another file
///   stream.step(in, out, last) -> unpack_step
///                            consumes some of `in` and writes bytes to `out`, which is not empty; `last` means that
///                            nothing follows `in`. A step with input consumes or produces something; a step without
///                            input may produce what was held back. Several streams in one file are read one after
///                            another. Damage throws errc::format or errc::checksum; excessive memory needs throw
///                            errc::limit
template <class U>
concept unpacker = std::default_initializable<typename U::stream> && std::movable<typename U::stream> &&
                   requires(typename U::stream& s, bytes_view in, mutable_bytes out, bool last) {
                     s.begin();
                     { s.step(in, out, last) } -> std::same_as<unpack_step>;
                     { U::unpacker_format } -> std::convertible_to<std::string_view>;
                   };

}  // namespace penstock::inline v0_1
