// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Penstock 0.1.0, all that needs the standard library alone.
// Made by tools/amalgamate.py from include/penstock; do not edit.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <compare>
#include <concepts>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <exception>
#include <fcntl.h>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <pthread.h>
#include <signal.h>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <system_error>
#include <thread>
#include <tuple>
#include <type_traits>
#include <unistd.h>
#include <unordered_map>
#include <utility>
#include <vector>

// ---- penstock/core/detail/exceptions.hpp

#if !defined(__cpp_exceptions)
#error "penstock tells errors by exceptions, which -fno-exceptions takes away: compile without it"
#endif

/// Included before anything that throws, so that this is the first that a reader sees. It declares nothing.
namespace penstock::inline v0_1 {}

// ---- penstock/core/bytes.hpp

namespace penstock::inline v0_1 {

/// Bytes that somebody else owns.
using bytes_view = std::span<const std::byte>;
/// Bytes to be written by the callee; somebody else owns them.
using mutable_bytes = std::span<std::byte>;

/// The bytes of a text. The view lives as long as the text.
[[nodiscard]] inline bytes_view bytes_of(std::string_view text) noexcept {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

/// Bytes as text, without a copy and without a check of the encoding.
[[nodiscard]] inline std::string_view text_of(bytes_view bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline namespace literals {
[[nodiscard]] consteval std::uint64_t operator""_KiB(unsigned long long n) { return n << 10; }
[[nodiscard]] consteval std::uint64_t operator""_MiB(unsigned long long n) { return n << 20; }
[[nodiscard]] consteval std::uint64_t operator""_GiB(unsigned long long n) { return n << 30; }
}  // namespace literals

namespace detail {

/// Numbers of files, which are little-endian on every machine.
template <std::unsigned_integral T>
[[nodiscard]] inline T load_little(const std::byte* at) noexcept {
  T value{};
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(&value, at, sizeof(T));
  } else {
    for (std::size_t i = 0; i < sizeof(T); ++i) value |= static_cast<T>(static_cast<T>(at[i]) << (8 * i));
  }
  return value;
}

template <std::unsigned_integral T>
inline void store_little(std::byte* at, T value) noexcept {
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(at, &value, sizeof(T));
  } else {
    for (std::size_t i = 0; i < sizeof(T); ++i) at[i] = static_cast<std::byte>(value >> (8 * i));
  }
}

}  // namespace detail

/// Owned bytes, aligned to 64, that keep their capacity: the scratch space of workers and codecs.
///
/// Growing does not initialise the new bytes. A default-constructed buffer has allocated nothing.
/// Move-only: a copy on the sample path would be a mistake.
class buffer {
 public:
  static constexpr std::size_t alignment = 64;

  buffer() = default;
  explicit buffer(std::size_t size) { resize_for_overwrite(size); }
  buffer(buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  buffer& operator=(buffer&& other) noexcept {
    buffer taken(std::move(other));
    std::swap(data_, taken.data_);
    std::swap(size_, taken.size_);
    std::swap(capacity_, taken.capacity_);
    return *this;
  }
  ~buffer() { release(); }

  [[nodiscard]] std::byte* data() noexcept { return data_; }
  [[nodiscard]] const std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] bytes_view view() const noexcept { return {data_, size_}; }
  [[nodiscard]] mutable_bytes span() noexcept { return {data_, size_}; }

  /// Sets the size; the contents are unspecified afterwards. Allocates only beyond the capacity.
  /// std::bad_alloc where there is no memory of that size.
  void resize_for_overwrite(std::size_t size) {
    if (size > capacity_) {
      if (size > largest) throw std::bad_alloc();
      const std::size_t wanted = size + size / 4;
      auto* fresh = static_cast<std::byte*>(::operator new(wanted, std::align_val_t{alignment}));
      release();
      data_ = fresh;
      capacity_ = wanted;
    }
    size_ = size;
  }

  /// Appends a copy of `bytes`, keeping what is there; they may be a part of this buffer. Amortised constant
  /// time per byte.
  void append(bytes_view bytes) {
    const std::size_t before = size_;
    buffer grown;  // frees the old memory when all is copied
    if (before + bytes.size() > capacity_) {
      grown.resize_for_overwrite((before + bytes.size()) * 2);
      if (before != 0) std::memcpy(grown.data_, data_, before);
      std::swap(data_, grown.data_);
      std::swap(capacity_, grown.capacity_);
    }
    if (!bytes.empty()) std::memcpy(data_ + before, bytes.data(), bytes.size());
    size_ = before + bytes.size();
  }

  void clear() noexcept { size_ = 0; }

 private:
  void release() noexcept {
    if (data_ != nullptr) ::operator delete(data_, std::align_val_t{alignment});
    data_ = nullptr;
    capacity_ = 0;
  }

  static constexpr std::size_t largest =
      static_cast<std::size_t>(-1) / 4;  // so that no sum of sizes overflows

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace penstock::inline v0_1

// ---- penstock/core/name.hpp

namespace penstock::inline v0_1 {

/// A text as a template argument: what `"jpg"` becomes in `get<"jpg">(s)`. Names are made of it at once (see
/// `name`).
template <std::size_t N>
struct fixed_string {
  char text[N]{};

  consteval fixed_string(const char (&source)[N]) {  // NOLINT: implicit, so that a literal will do
    for (std::size_t i = 0; i < N; ++i) text[i] = source[i];
  }
  static constexpr std::size_t length = N - 1;
};

/// A field's name as a type. A pack of characters, because compilers print that as letters.
template <char... Cs>
struct name {
  static constexpr char text[sizeof...(Cs) + 1] = {Cs..., '\0'};
  static constexpr std::string_view value{text, sizeof...(Cs)};
};

namespace detail {
template <fixed_string S, std::size_t... Is>
constexpr auto spell(std::index_sequence<Is...>) -> name<S.text[Is]...> {
  return {};
}
}  // namespace detail

/// The name that a literal spells: `name_of<"jpg">` is `name<'j', 'p', 'g'>`.
template <fixed_string S>
using name_of = decltype(detail::spell<S>(std::make_index_sequence<decltype(S)::length>{}));

}  // namespace penstock::inline v0_1

// ---- penstock/core/record.hpp

namespace penstock::inline v0_1 {

/// One field of a record: a name (as a type) and the value's type. Written `field<"jpg", T>`.
template <class Name, class T>
struct basic_field {
  using name_type = Name;
  using type = T;
  static constexpr std::string_view name = Name::value;
};

/// A field's name and what it holds: `field<"cls", int>` in a record, `field<"jpg", jpeg>` in a list of
/// codecs.
template <fixed_string Name, class T>
using field = basic_field<name_of<Name>, T>;

namespace detail {

inline constexpr std::size_t not_found = static_cast<std::size_t>(-1);

template <class Name, class... Fields>
consteval std::size_t index_of_field() {
  std::size_t found = not_found, i = 0;
  ((std::is_same_v<Name, typename Fields::name_type> ? (found = i, ++i) : ++i), ...);
  return found;
}

template <class... Fields>
consteval bool names_differ() {
  std::size_t i = 0;
  bool differ = true;
  ((differ = differ && index_of_field<typename Fields::name_type, Fields...>() == i++), ...);
  return differ;
}

/// One value of a record. Not std::tuple, which is not trivially copyable in every standard library.
template <std::size_t I, class T>
struct record_value {
  T value;

  constexpr record_value()
    requires std::default_initializable<T>
      : value() {}
  template <class U>
  constexpr record_value(std::in_place_t, U&& given) : value(static_cast<T>(std::forward<U>(given))) {}
  friend bool operator==(const record_value&, const record_value&) = default;
};

template <class Indices, class... Ts>
struct record_values;
template <std::size_t... Is, class... Ts>
struct record_values<std::index_sequence<Is...>, Ts...> : record_value<Is, Ts>... {
  constexpr record_values() = default;
  template <class... Us>
  constexpr explicit record_values(std::in_place_t, Us&&... given)
      : record_value<Is, Ts>(std::in_place, std::forward<Us>(given))... {}
  friend bool operator==(const record_values&, const record_values&) = default;
};

template <std::size_t I, class T>
constexpr T& value_at(record_value<I, T>& v) noexcept {
  return v.value;
}
template <std::size_t I, class T>
constexpr const T& value_at(const record_value<I, T>& v) noexcept {
  return v.value;
}
template <std::size_t I, class T>
constexpr T&& value_at(record_value<I, T>&& v) noexcept {
  return static_cast<T&&>(v.value);
}

}  // namespace detail

/// A sample: values with names known at compile time. `get<"jpg">(r)` reads one, structured bindings read all
/// in order.
///
/// Its values one after another: no allocation, trivially copyable when its values are.
template <class... Fields>
class record {
  using storage_type =
      detail::record_values<std::make_index_sequence<sizeof...(Fields)>, typename Fields::type...>;

 public:
  static_assert(
      detail::names_differ<Fields...>() || sizeof...(Fields) == 0,
      "a record needs a different name for each field; as it stands the last of equal names counts");

  using is_record = void;
  static constexpr std::size_t size = sizeof...(Fields);
  template <std::size_t I>
  using field_at = std::tuple_element_t<I, std::tuple<Fields...>>;
  template <class Name>
  static constexpr std::size_t index_of = detail::index_of_field<Name, Fields...>();

  constexpr record() = default;
  template <class... Us>
    requires(sizeof...(Us) == sizeof...(Fields) && sizeof...(Us) > 0 &&
             (std::is_constructible_v<typename Fields::type, Us&&> && ...))
  constexpr explicit record(Us&&... values) : storage_(std::in_place, std::forward<Us>(values)...) {}

  /// The value at place `I`; what `get` calls.
  template <std::size_t I>
  [[nodiscard]] constexpr auto& at() & noexcept {
    return detail::value_at<I>(storage_);
  }
  template <std::size_t I>
  [[nodiscard]] constexpr const auto& at() const& noexcept {
    return detail::value_at<I>(storage_);
  }
  template <std::size_t I>
  [[nodiscard]] constexpr auto&& at() && noexcept {
    return detail::value_at<I>(std::move(storage_));
  }
  /// All values, as a tuple of references.
  [[nodiscard]] constexpr std::tuple<typename Fields::type&...> values() & noexcept {
    return refer(*this, indices{});
  }
  [[nodiscard]] constexpr std::tuple<const typename Fields::type&...> values() const& noexcept {
    return refer(*this, indices{});
  }

  friend bool operator==(const record&, const record&) = default;

 private:
  using indices = std::make_index_sequence<sizeof...(Fields)>;
  template <class Self, std::size_t... Is>
  static constexpr auto refer(Self& self, std::index_sequence<Is...>) noexcept {
    return std::tie(self.template at<Is>()...);
  }

  [[no_unique_address]] storage_type storage_;
};

/// Any record, also by reference.
template <class T>
concept any_record = requires { typename std::remove_cvref_t<T>::is_record; };

/// Whether record `R` has a field of that name.
template <class R, class Name>
concept has_field = any_record<R> && (std::remove_cvref_t<R>::template index_of<Name> != detail::not_found);

/// The value of the field `Name` of a record: `get<"jpg">(sample)`. Costs nothing.
template <fixed_string Name, any_record R>
[[nodiscard]] constexpr decltype(auto) get(R&& r) noexcept {
  constexpr std::size_t i = std::remove_cvref_t<R>::template index_of<name_of<Name>>;
  static_assert(i != detail::not_found,
                "get: this record has no field of that name; see the record's type for those it has");
  if constexpr (i != detail::not_found)
    return (std::forward<R>(r).template at<i>());
  else
    return 0;  // so that one error is all
}

/// The value of the field at place `I`, in the order of the record's type.
template <std::size_t I, any_record R>
[[nodiscard]] constexpr decltype(auto) get(R&& r) noexcept {
  return (std::forward<R>(r).template at<I>());
}

}  // namespace penstock::inline v0_1

template <class... Fields>
struct std::tuple_size<penstock::record<Fields...>> : std::integral_constant<std::size_t, sizeof...(Fields)> {
};

template <std::size_t I, class... Fields>
struct std::tuple_element<I, penstock::record<Fields...>> {
  using type = typename penstock::record<Fields...>::template field_at<I>::type;
};

// ---- penstock/core/tensor.hpp

namespace penstock::inline v0_1 {

/// The shape of an array: up to eight lengths, outermost first, without an allocation. No length means a
/// scalar.
class extents {
 public:
  static constexpr std::size_t max_rank = 8;

  constexpr extents() = default;
  template <std::integral... Ns>
    requires(sizeof...(Ns) > 0 && sizeof...(Ns) <= max_rank)
  constexpr explicit extents(Ns... lengths)
      : lengths_{static_cast<std::uint64_t>(lengths)...}, rank_(static_cast<std::uint32_t>(sizeof...(Ns))) {}

  [[nodiscard]] constexpr std::size_t rank() const noexcept { return rank_; }
  [[nodiscard]] constexpr std::uint64_t operator[](std::size_t i) const noexcept { return lengths_[i]; }
  [[nodiscard]] constexpr const std::uint64_t* begin() const noexcept { return lengths_.data(); }
  [[nodiscard]] constexpr const std::uint64_t* end() const noexcept { return lengths_.data() + rank_; }
  /// The number of elements. Whoever fills the extents from foreign bytes checks that it does not overflow.
  [[nodiscard]] constexpr std::uint64_t elements() const noexcept {
    std::uint64_t product = 1;
    for (std::size_t i = 0; i < rank_; ++i) product *= lengths_[i];
    return product;
  }
  /// Appends a length; false when there is no room.
  constexpr bool push_back(std::uint64_t length) noexcept {
    if (rank_ == max_rank) return false;
    lengths_[rank_++] = length;
    return true;
  }
  /// The same shape with one more length in front: that of a batch of such arrays.
  [[nodiscard]] constexpr extents prepend(std::uint64_t length) const noexcept {
    extents result;
    result.push_back(length);
    for (std::size_t i = 0; i < rank_; ++i) result.push_back(lengths_[i]);
    return result;
  }
  /// The same shape without its first length: that of one row.
  [[nodiscard]] constexpr extents drop_front() const noexcept {
    extents result;
    for (std::size_t i = 1; i < rank_; ++i) result.push_back(lengths_[i]);
    return result;
  }
  friend constexpr bool operator==(const extents& a, const extents& b) noexcept {
    if (a.rank_ != b.rank_) return false;
    for (std::size_t i = 0; i < a.rank_; ++i)
      if (a.lengths_[i] != b.lengths_[i]) return false;
    return true;
  }

 private:
  std::array<std::uint64_t, max_rank> lengths_{};
  std::uint32_t rank_ = 0;
};

/// "(3, 224, 224)", as numpy prints a shape.
[[nodiscard]] inline std::string to_string(const extents& shape) {
  std::string text = "(";
  for (std::size_t i = 0; i < shape.rank(); ++i) {
    text += std::to_string(shape[i]);
    text += i + 1 < shape.rank() ? ", " : (shape.rank() == 1 ? "," : "");
  }
  return text + ")";
}

/// A view of elements of one type with a shape, row-major and dense. Somebody else owns the elements.
template <class T>
class tensor_view {
 public:
  using value_type = std::remove_cv_t<T>;

  constexpr tensor_view() = default;
  constexpr tensor_view(T* data, extents shape) noexcept : data_(data), shape_(shape) {}
  /// A view that may write becomes one that may not.
  template <class U>
    requires(std::is_same_v<const U, T> && !std::is_const_v<U>)
  constexpr tensor_view(const tensor_view<U>& other) noexcept : tensor_view(other.data(), other.shape()) {}

  [[nodiscard]] constexpr T* data() const noexcept { return data_; }
  [[nodiscard]] constexpr const extents& shape() const noexcept { return shape_; }
  [[nodiscard]] constexpr std::size_t rank() const noexcept { return shape_.rank(); }
  [[nodiscard]] constexpr std::size_t size() const noexcept {
    return static_cast<std::size_t>(shape_.elements());
  }
  [[nodiscard]] constexpr std::span<T> values() const noexcept { return {data_, size()}; }
  [[nodiscard]] constexpr T* begin() const noexcept { return data_; }
  [[nodiscard]] constexpr T* end() const noexcept { return data_ + size(); }
  /// Row `i` along the first length; the view must have one.
  [[nodiscard]] constexpr tensor_view operator[](std::size_t i) const noexcept {
    const extents row = shape_.drop_front();
    return {data_ + i * static_cast<std::size_t>(row.elements()), row};
  }

 private:
  T* data_ = nullptr;
  extents shape_;
};

}  // namespace penstock::inline v0_1

// ---- penstock/core/element.hpp

/// What travels through a pipeline between two stages: values, and *unfinished* values that know how to write
/// themselves to a destination and live only during the call that hands them on.
namespace penstock::inline v0_1 {

/// A value that is not computed yet: it must be finished, or written to its destination, before the call
/// returns.
template <class T>
concept unfinished = requires { typename std::remove_cvref_t<T>::unfinished; };

/// Bytes that have not been read yet. `read_into` puts exactly `size()` bytes at the destination; `finish`
/// gives a view of them that lives as long as the blob (in a mapping, or in the worker's scratch).
template <class T>
concept blob = unfinished<T> && requires(const std::remove_cvref_t<T>& b, mutable_bytes into) {
  { b.size() } -> std::convertible_to<std::uint64_t>;
  b.read_into(into);
  { b.finish() } -> std::convertible_to<bytes_view>;
};

/// What a codec accepts: a blob, or bytes that are there already (spans of bytes, texts).
template <class T>
concept byte_element = blob<T> || std::convertible_to<const std::remove_cvref_t<T>&, bytes_view> ||
                       std::convertible_to<const std::remove_cvref_t<T>&, std::string_view>;

/// An array that has not been computed yet: `write_to` puts `shape().elements()` values, row-major, at the
/// destination. A shape known at compile time is a `static constexpr extents static_shape`.
template <class T>
concept array_expression = unfinished<T> && requires(const std::remove_cvref_t<T>& a) {
  typename std::remove_cvref_t<T>::value_type;
  { a.shape() } -> std::convertible_to<extents>;
  a.write_to(static_cast<typename std::remove_cvref_t<T>::value_type*>(nullptr));
};

/// An array expression whose shape its type knows: written in place in the first batch already.
template <class T>
concept static_array_expression = array_expression<T> && requires {
  { std::remove_cvref_t<T>::static_shape } -> std::convertible_to<extents>;
};

/// The bytes of a byte element. For a blob this reads it, into the worker's scratch where it is not mapped.
template <byte_element T>
[[nodiscard]] bytes_view as_bytes(const T& element) {
  if constexpr (blob<T>)
    return element.finish();
  else if constexpr (std::convertible_to<const T&, bytes_view>)
    return element;
  else
    return bytes_of(element);
}

namespace detail {

template <class T>
struct has_unfinished : std::bool_constant<unfinished<T>> {};
template <class... Fields>
struct has_unfinished<record<Fields...>>
    : std::bool_constant<(has_unfinished<std::remove_cvref_t<typename Fields::type>>::value || ...)> {};

template <class T>
struct finished_type {
  using type = T;
};
template <unfinished T>
struct finished_type<T> {
  using type = decltype(std::declval<const std::remove_cvref_t<T>&>().finish());
};
template <class... Fields>
  requires(has_unfinished<record<Fields...>>::value)
struct finished_type<record<Fields...>> {
  using type =
      record<basic_field<typename Fields::name_type, typename finished_type<typename Fields::type>::type>...>;
};

}  // namespace detail

/// The finished form of a value: itself, unless it is unfinished or a record with unfinished fields; then
/// views of what they computed, which live as long as the value.
template <class T>
[[nodiscard]] constexpr decltype(auto) finish(T&& value) {
  using value_type = std::remove_cvref_t<T>;
  if constexpr (unfinished<value_type>) {
    return value.finish();
  } else if constexpr (detail::has_unfinished<value_type>::value) {
    return [&]<std::size_t... Is>(std::index_sequence<Is...>) {
      return typename detail::finished_type<value_type>::type(
          penstock::finish(get<Is>(static_cast<T&&>(value)))...);
    }(std::make_index_sequence<value_type::size>{});
  } else {
    return static_cast<T&&>(value);
  }
}

/// What `finish` gives for a value of type `T`.
template <class T>
using finished = decltype(penstock::finish(std::declval<T>()));

}  // namespace penstock::inline v0_1

// ---- penstock/codec/concepts.hpp

/// How bytes become values. A codec is a small value type: its options are its members, its per-worker memory
/// is its `scratch`.
namespace penstock::inline v0_1 {

/// The scratch of codecs and stages that need none.
struct no_scratch {};

namespace detail {
template <class T>
struct scratch_of {
  using type = no_scratch;
};
template <class T>
  requires requires { typename T::scratch; }
struct scratch_of<T> {
  using type = typename T::scratch;
};
}  // namespace detail

/// What one worker keeps for a codec or stage `T`: `T::scratch`, by default nothing.
template <class T>
using scratch_of = typename detail::scratch_of<std::remove_cvref_t<T>>::type;

/// A codec: `decode(bytes, scratch)` gives a value, a view into the scratch, or an unfinished expression. It
/// is const and is called from many threads, each with a scratch of its own. Bad bytes throw
/// `error(errc::format, ...)`.
///
/// Asked with finished bytes; a codec's decode is a template over `byte_element`, so that it can also take
/// blobs and read them to where it wants them.
template <class C>
concept codec = std::default_initializable<C> && std::copy_constructible<C> &&
                requires(const C& c, const bytes_view& in, scratch_of<C>& s) {
                  c.decode(in, s);
                  { C::codec_name } -> std::convertible_to<std::string_view>;
                };

/// What codec `C` makes of bytes of type `In`.
template <class C, class In>
using decoded = decltype(std::declval<const C&>().decode(std::declval<const std::remove_cvref_t<In>&>(),
                                                         std::declval<scratch_of<C>&>()));

/// How far one step of an unpacker came.
struct unpack_step {
  std::size_t taken = 0;  ///< bytes of the input
  std::size_t made = 0;   ///< bytes of the output
  bool whole = false;     ///< the input may end here: nothing was begun that is not finished
};

/// A decompressor of files that are read forward, in pieces and with bounded memory.
///   unpacker_format          the format's name: "gzip", "zstd", "lz4", "bzip2" or "xz"
///   stream                   its memory: default-constructible, movable, used by one thread at a time
///   stream.begin()           another file begins
///   stream.step(in, out, last) -> unpack_step
///                            takes some of `in`, puts bytes into `out`, which is not empty; `last` says that
///                            nothing follows `in`. A step with input takes or makes something; one without may
///                            make what is held back. Several streams in one file are read one after another.
///                            Damage throws errc::format or errc::checksum, what needs too much memory
///                            errc::limit
template <class U>
concept unpacker = std::default_initializable<typename U::stream> && std::movable<typename U::stream> &&
                   requires(typename U::stream& s, bytes_view in, mutable_bytes out, bool last) {
                     s.begin();
                     { s.step(in, out, last) } -> std::same_as<unpack_step>;
                     { U::unpacker_format } -> std::convertible_to<std::string_view>;
                   };

}  // namespace penstock::inline v0_1

// ---- penstock/codec/chain.hpp

namespace penstock::inline v0_1 {

/// Codecs one after another: what the first makes of the bytes is what the second reads.
///
/// In: any byte element. Out: what the last codec gives. All but the last must give bytes.
/// Kind: pointwise, keeps all guarantees. Cost per sample: that of the codecs; no allocation of its own.
/// The scratch is a tuple of theirs. Threads and errors: as the codecs.
/// A codec that stands after another may give views into its scratch or on the finished bytes of its input,
/// but may not keep the address of the input object itself, which is gone when the chain returns.
///
///     auto arrays = records | decode<chain<zstd, npy<float>>>;
///     auto small = records | decode<chain<zstd, npy<float>>>(chain{zstd{.limit = 1_MiB}, npy<float>{}});
template <class... Codecs>
class chain {
  static_assert(sizeof...(Codecs) >= 2, "penstock: chain<A, B, ...> needs two codecs or more");
  static_assert((codec<Codecs> && ...), "penstock: chain<A, B, ...>: each of A, B, ... must be a codec");

 public:
  static constexpr std::string_view codec_name = "chain";
  using scratch = std::tuple<scratch_of<Codecs>...>;

  chain() = default;
  /// Codecs with options.
  constexpr explicit chain(Codecs... codecs) : codecs_(std::move(codecs)...) {}

  template <byte_element Bytes>
  [[nodiscard]] auto decode(const Bytes& in, scratch& s) const {
    return from<0>(in, s);
  }

 private:
  template <std::size_t I, class Bytes>
  auto from(const Bytes& in, scratch& s) const {
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
                      "its scratch, since what owns "
                      "its bytes is gone before the result is used");
        return from<I + 1>(between, s);
      }
    }
  }

  std::tuple<Codecs...> codecs_;
};

}  // namespace penstock::inline v0_1

// ---- penstock/codec/detail/quoted.hpp

namespace penstock::inline v0_1 {
namespace detail {

/// The first bytes of a field as one readable word for a message: `"12x\n"`; longer ones end in "...".
[[nodiscard]] inline std::string quoted(bytes_view bytes, std::size_t most = 20) {
  constexpr char hex[] = "0123456789abcdef";
  std::string text = "\"";
  for (const std::byte b : bytes.first(bytes.size() < most ? bytes.size() : most)) {
    const auto c = std::to_integer<unsigned char>(b);
    if (c == '"' || c == '\\') {
      text += '\\';
      text += static_cast<char>(c);
    } else if (c == '\n') {
      text += "\\n";
    } else if (c >= 0x20 && c < 0x7f) {
      text += static_cast<char>(c);
    } else {
      text += "\\x";
      text += hex[c >> 4];
      text += hex[c & 15];
    }
  }
  text += '"';
  if (bytes.size() > most) text += "...";
  return text;
}

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/codec/detail/trimmed.hpp

namespace penstock::inline v0_1 {
namespace detail {

/// A written number without the white space around it and without one leading '+', which `std::from_chars`
/// does not take.
[[nodiscard]] constexpr std::string_view trimmed_number(std::string_view text) noexcept {
  constexpr std::string_view space = " \t\n\v\f\r";
  const auto first = text.find_first_not_of(space);
  if (first == std::string_view::npos) return {};
  text = text.substr(first, text.find_last_not_of(space) - first + 1);
  // "+-5" must not pass for -5
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  return text;
}

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/core/position.hpp

namespace penstock::inline v0_1 {

/// A sample's place in the global order: which epoch, and the index in it. The same on every rank.
struct position {
  std::uint64_t epoch = 0;
  std::uint64_t index = 0;

  friend constexpr auto operator<=>(const position&, const position&) = default;
};

/// A place in a source that can only be read forward: how many samples of which shard were given.
struct source_mark {
  std::uint64_t shard = 0;
  std::uint64_t sample = 0;

  friend constexpr auto operator<=>(const source_mark&, const source_mark&) = default;
};

/// Where an element came from: its position, and which part of it where a stage made several of one.
struct origin {
  position at;
  std::uint32_t part = 0;

  friend constexpr auto operator<=>(const origin&, const origin&) = default;
};

}  // namespace penstock::inline v0_1

// ---- penstock/core/text.hpp

namespace penstock::inline v0_1::detail {

/// A piece of a sentence: a text, a character or a number.
class piece {
 public:
  constexpr piece(std::string_view text) noexcept : data_(text.data()), value_(text.size()) {}
  constexpr piece(const char* text) noexcept : piece(std::string_view(text)) {}
  template <std::same_as<char> C>  // nothing else shall become one
  constexpr piece(C character) noexcept
      : value_(static_cast<unsigned char>(character)), kind_(kind::character) {}
  template <std::integral T>
    requires(!std::is_same_v<T, bool> && !std::is_same_v<T, char>)
  constexpr piece(T number) noexcept : value_(static_cast<std::uint64_t>(number)), kind_(kind::number) {
    if constexpr (std::is_signed_v<T>) {
      if (number < 0) {
        kind_ = kind::negative;
        value_ = 0 - value_;
      }
    }
  }
  piece(const std::string& text) noexcept : piece(std::string_view(text)) {}

  [[gnu::cold, gnu::noinline]] void append_to(std::string& line) const {
    if (kind_ == kind::text) {
      line.append(data_, static_cast<std::size_t>(value_));
    } else if (kind_ == kind::character) {
      line.push_back(static_cast<char>(value_));
    } else {
      char digits[24];
      char* begin = digits + sizeof(digits);
      for (std::uint64_t rest = value_; begin == digits + sizeof(digits) || rest != 0; rest /= 10)
        *--begin = static_cast<char>('0' + rest % 10);
      if (kind_ == kind::negative) *--begin = '-';
      line.append(begin, static_cast<std::size_t>(digits + sizeof(digits) - begin));
    }
  }

 private:
  enum class kind : unsigned char { text, character, number, negative };
  const char* data_ = nullptr;
  std::uint64_t value_;
  kind kind_ = kind::text;
};

/// Joins pieces. One function for all messages: each `+` of strings would be half a kilobyte of code and as
/// much of a program's compile time.
[[gnu::cold, gnu::noinline]] inline void append(std::string& line, std::initializer_list<piece> pieces) {
  for (const piece& p : pieces) p.append_to(line);
}
[[nodiscard, gnu::cold, gnu::noinline]] inline std::string text(std::initializer_list<piece> pieces) {
  std::string line;
  append(line, pieces);
  return line;
}

}  // namespace penstock::inline v0_1::detail

// ---- penstock/core/error.hpp

namespace penstock::inline v0_1 {

/// What kind of failure an `error` is. `format`, `checksum`, `missing`, `limit` and `shape` are functions of
/// the bytes: they happen again on every run. `io` and `stopped` are not.
enum class errc { format, checksum, missing, limit, shape, io, argument, state, stopped };

/// The name of a kind, as it is written here.
[[nodiscard]] constexpr std::string_view to_string(errc code) noexcept {
  switch (code) {
    case errc::format:
      return "format";
    case errc::checksum:
      return "checksum";
    case errc::missing:
      return "missing";
    case errc::limit:
      return "limit";
    case errc::shape:
      return "shape";
    case errc::io:
      return "io";
    case errc::argument:
      return "argument";
    case errc::state:
      return "state";
    case errc::stopped:
      return "stopped";
  }
  return "unknown";
}

namespace detail {

/// A text that is copied without an allocation: the standard's exceptions share theirs.
class shared_text {
 public:
  shared_text() : text_("") {}
  explicit shared_text(const std::string& text) : text_(text) {}
  [[nodiscard]] const char* c_str() const noexcept { return text_.what(); }
  [[nodiscard]] std::string_view view() const noexcept { return text_.what(); }
  [[nodiscard]] bool empty() const noexcept { return *text_.what() == '\0'; }

 private:
  std::runtime_error text_;
};

}  // namespace detail

/// The exception of this library: one sentence, and the place it speaks of.
///
/// `what()` gives one line: the sentence, then the facts that are known in brackets. Each layer adds the
/// facts that it knows as the error passes through; a fact that is set already stays. Copying does not throw.
class error : public std::exception {
 public:
  error(errc code, std::string_view message) : error(code, {detail::piece(message)}) {}
  /// The message in pieces.
  [[gnu::cold, gnu::noinline]] error(errc code, std::initializer_list<detail::piece> message)
      : code_(code), message_(detail::text(message)) {
    render();
  }
  // Written out, so that places that throw call them: each is five texts.
  [[gnu::cold, gnu::noinline]] error(const error& other) noexcept
      : std::exception(other),
        code_(other.code_),
        message_(other.message_),
        stage_(other.stage_),
        file_(other.file_),
        key_(other.key_),
        line_(other.line_),
        offset_(other.offset_),
        at_(other.at_) {}
  error& operator=(const error& other) noexcept = default;
  [[gnu::cold, gnu::noinline]] ~error() override {}

  [[nodiscard]] const char* what() const noexcept override { return line_.c_str(); }
  [[nodiscard]] errc code() const noexcept { return code_; }
  [[nodiscard]] std::string_view message() const noexcept { return message_.view(); }
  [[nodiscard]] std::string_view stage() const noexcept { return stage_.view(); }
  [[nodiscard]] std::string_view file() const noexcept { return file_.view(); }
  [[nodiscard]] std::string_view key() const noexcept { return key_.view(); }
  [[nodiscard]] std::optional<std::uint64_t> offset() const noexcept { return offset_; }
  [[nodiscard]] std::optional<position> at() const noexcept { return at_; }

  error&& in_stage(std::string_view name) && { return std::move(set(stage_, name)); }
  error&& in_file(std::string_view name) && { return std::move(set(file_, name)); }
  error&& for_key(std::string_view name) && { return std::move(set(key_, name)); }
  error&& at_offset(std::uint64_t offset) && { return std::move(set(offset_, offset)); }
  error&& at_position(position where) && { return std::move(set(at_, where)); }
  error& in_stage(std::string_view name) & { return set(stage_, name); }
  error& in_file(std::string_view name) & { return set(file_, name); }
  error& for_key(std::string_view name) & { return set(key_, name); }
  error& at_offset(std::uint64_t offset) & { return set(offset_, offset); }
  error& at_position(position where) & { return set(at_, where); }

  /// The offset so far was one within `part` of the file: it becomes words, and `offset` of the file the
  /// fact.
  [[gnu::cold, gnu::noinline]] error& within(std::string_view part, std::uint64_t offset) {
    if (offset_)
      message_ = detail::shared_text(detail::text({message(), ", at byte ", *offset_, " of ", part}));
    offset_ = offset;
    render();
    return *this;
  }

 private:
  [[gnu::cold, gnu::noinline]] error& set(detail::shared_text& fact, std::string_view value) {
    if (fact.empty()) {
      fact = detail::shared_text(std::string(value));
      render();
    }
    return *this;
  }
  template <class T>
  [[gnu::cold, gnu::noinline]] error& set(std::optional<T>& fact, T value) {
    if (!fact) {
      fact = value;
      render();
    }
    return *this;
  }

  [[gnu::cold, gnu::noinline]] void render() {
    std::string line = detail::text({"penstock: ", message_.view()});
    const std::size_t sentence = line.size();
    const auto add = [&](std::string_view name, std::initializer_list<detail::piece> value) {
      detail::append(line, {line.size() == sentence ? " [" : ", ", name});
      detail::append(line, value);
    };
    if (!stage_.empty()) add("stage ", {stage_.view()});
    if (!file_.empty()) add("file ", {file_.view()});
    if (!key_.empty()) add("key ", {key_.view()});
    if (offset_) add("offset ", {*offset_});
    if (at_) add("position ", {at_->epoch, ":", at_->index});
    if (line.size() != sentence) line += "]";
    for (char& c : line)  // names come from foreign bytes
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
    line_ = detail::shared_text(line);
  }

  errc code_;
  detail::shared_text message_, stage_, file_, key_, line_;
  std::optional<std::uint64_t> offset_;
  std::optional<position> at_;
};

}  // namespace penstock::inline v0_1

// ---- penstock/codec/floating.hpp

namespace penstock::inline v0_1 {

/// A real number written in ASCII, always with a point whatever the locale: "0.25", "-1e-3", "inf", "nan".
///
/// In: any byte element. Out: a `T`. One sign may stand before the number, white space around it; nothing
/// else.
/// Kind: pointwise, keeps all guarantees. Cost per sample: about 20 ns, no allocation. Threads: any number at
/// once.
/// Throws `errc::format` that shows what was found: no number, other characters, or a number that `T` cannot
/// hold.
///
///     no_scratch none;
///     const double score = floating{}.decode(std::string_view("0.25\n"), none);
template <class T>
struct floating_as {
  static_assert(std::same_as<T, float> || std::same_as<T, double>,
                "penstock: floating_as<T> needs float or double; for whole numbers write integer_as<T>");

  static constexpr std::string_view codec_name = "floating";

  template <byte_element Bytes>
  [[nodiscard]] T decode(const Bytes& in, no_scratch&) const {
    const bytes_view bytes = as_bytes(in);
    const std::string_view digits = detail::trimmed_number(text_of(bytes));
    T value{};
    const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (failure == std::errc{} && end == digits.data() + digits.size()) return value;
    if (failure == std::errc::result_out_of_range)
      throw error(errc::format, {"the number ", detail::quoted(bytes),
                                 " is out of range for a real number of ", sizeof(T) * 8, " bits"});
    throw error(errc::format, {"found ", detail::quoted(bytes), " where a real number was expected"});
  }
};

/// A real number in ASCII, as `double`.
using floating = floating_as<double>;

}  // namespace penstock::inline v0_1

// ---- penstock/codec/identity.hpp

namespace penstock::inline v0_1 {

/// The codec that changes nothing: raw payloads.
///
/// In: any byte element. Out: a blob stays that blob, still unread, so that `batch` can have it read straight
/// into the slot;
/// bytes that are there already come out as a `bytes_view` on them, which lives as long as they do.
/// Kind: pointwise, keeps all guarantees. Cost per sample: none, no allocation. Throws nothing of its own.
/// Threads: any number at once.
///
///     auto raw = webdataset("train-{0000..0127}.tar") | decode<field<"bin", identity>> | batch(64);
struct identity {
  static constexpr std::string_view codec_name = "identity";

  template <byte_element Bytes>
  [[nodiscard]] auto decode(const Bytes& in, no_scratch&) const {
    if constexpr (blob<Bytes>) {
      static_assert(std::copy_constructible<Bytes>,
                    "penstock: identity: this blob cannot be copied; a blob is a handle on bytes and must be "
                    "cheap to copy");
      return in;
    } else {
      return as_bytes(in);
    }
  }
};

}  // namespace penstock::inline v0_1

// ---- penstock/codec/integer.hpp

namespace penstock::inline v0_1 {

/// A whole number written in ASCII decimal, as in `.cls` members: "7", "-12", " +3\n".
///
/// In: any byte element. Out: a `T`. One sign may stand before the digits, white space around them; nothing
/// else.
/// Kind: pointwise, keeps all guarantees. Cost per sample: about 20 ns, no allocation. Threads: any number at
/// once.
/// Throws `errc::format` that shows what was found: no digits, other characters, or a number that `T` cannot
/// hold.
///
///     no_scratch none;
///     const std::int64_t label = integer{}.decode(std::string_view("42\n"), none);
template <class T>
struct integer_as {
  static_assert(std::integral<T> && !std::same_as<T, bool>,
                "penstock: integer_as<T> needs a whole number type; for real numbers write floating_as<T>");

  static constexpr std::string_view codec_name = "integer";
  static constexpr std::string_view extensions[] = {"cls", "cls2", "index", "inx", "id"};

  template <byte_element Bytes>
  [[nodiscard]] T decode(const Bytes& in, no_scratch&) const {
    const bytes_view bytes = as_bytes(in);
    const std::string_view digits = detail::trimmed_number(text_of(bytes));
    T value{};
    const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (failure == std::errc{} && end == digits.data() + digits.size()) return value;
    if (failure == std::errc::result_out_of_range)
      throw error(errc::format, {"the number ", detail::quoted(bytes), " is out of range: it must be from ",
                                 std::numeric_limits<T>::min(), " to ", std::numeric_limits<T>::max()});
    throw error(errc::format,
                {"found ", detail::quoted(bytes), " where a decimal whole number was expected"});
  }
};

/// A whole number in ASCII decimal, as `std::int64_t`: the usual class label.
using integer = integer_as<std::int64_t>;

}  // namespace penstock::inline v0_1

// ---- penstock/codec/detail/npy_header.hpp

namespace penstock::inline v0_1 {
namespace detail {

/// What the header of an npy file says. `descr` is a view into the file.
struct npy_header {
  std::string_view descr;
  char order = '|';  // '<', '>', '=' or '|'
  char kind = 0;     // 'b', 'i', 'u', 'f' ...
  std::uint64_t item_size = 0;
  bool fortran = false;
  extents shape;
  std::size_t data_offset = 0;
};

/// Reads the Python dict literal of an npy header: exactly the keys descr, fortran_order and shape, in any
/// order, with any spacing and an optional comma at the end. No recursion, no allocation but for messages.
template <class = void>
class basic_npy_header_parser {
 public:
  basic_npy_header_parser(std::string_view literal, std::uint64_t base) noexcept
      : text_(literal), base_(base) {}

  void parse(npy_header& header) {
    expect('{');
    bool descr = false, fortran = false, shape = false;
    for (;;) {
      skip_space();
      if (peek() == '}') break;
      const std::string_view key = quoted_text();
      expect(':');
      skip_space();
      if (key == "descr") {
        once(descr, key);
        read_descr(header);
      } else if (key == "fortran_order") {
        once(fortran, key);
        header.fortran = truth();
      } else if (key == "shape") {
        once(shape, key);
        read_shape(header.shape);
      } else {
        fail("has an unknown key " + quoted(bytes_of(key)));
      }
      skip_space();
      if (peek() != ',') break;
      ++at_;
    }
    expect('}');
    skip_space();
    if (at_ != text_.size()) fail("has " + quoted(bytes_of(text_.substr(at_))) + " after its closing brace");
    if (!descr || !fortran || !shape) fail("lacks one of the keys 'descr', 'fortran_order' and 'shape'");
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw error(errc::format, {"the npy header ", what}).at_offset(base_ + at_);
  }
  [[nodiscard]] char peek() const noexcept { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip_space() noexcept {
    while (at_ < text_.size() && std::string_view(" \t\n\v\f\r").find(text_[at_]) != std::string_view::npos)
      ++at_;
  }
  void expect(char c) {
    skip_space();
    if (peek() != c)
      fail(std::string("should have '") + c + "' where it has " + quoted(bytes_of(text_.substr(at_)), 8));
    ++at_;
  }
  void once(bool& seen, std::string_view key) {
    if (seen) fail("has the key " + quoted(bytes_of(key)) + " twice");
    seen = true;
  }
  std::string_view quoted_text() {
    const char quote = peek();
    if (quote != '\'' && quote != '"')
      fail("should have a quoted text where it has " + quoted(bytes_of(text_.substr(at_)), 8));
    const std::size_t first = at_ + 1;
    const std::size_t last = text_.find(quote, first);
    if (last == std::string_view::npos) fail("has a text without a closing quote");
    at_ = last + 1;
    return text_.substr(first, last - first);
  }
  bool truth() {
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(at_, word.size()) == word) {
        at_ += word.size();
        return value;
      }
    }
    fail("should have True or False where it has " + quoted(bytes_of(text_.substr(at_)), 8));
  }
  void read_descr(npy_header& header) {
    if (peek() == '[' || peek() == '(')
      fail("describes a structured dtype, which is not supported: save the fields as arrays of their own");
    const std::string_view descr = quoted_text();
    header.descr = descr;
    std::size_t i = 0;
    if (i < descr.size() && std::string_view("<>|=").find(descr[i]) != std::string_view::npos)
      header.order = descr[i++];
    if (i < descr.size()) header.kind = descr[i++];
    if (header.kind == 'O')
      fail(
          "says dtype object, which is pickled Python code and is never read: save the array with a numeric "
          "dtype");
    const char* const end = descr.data() + descr.size();
    const auto [stop, failure] = std::from_chars(descr.data() + i, end, header.item_size);
    if (failure != std::errc{} || stop != end)
      fail("has a dtype " + quoted(bytes_of(descr)) + " that is not supported");
  }
  void read_shape(extents& shape) {
    expect('(');
    for (;;) {
      skip_space();
      if (peek() == ')') break;
      std::uint64_t length = 0;
      const char* const end = text_.data() + text_.size();
      const auto [stop, failure] = std::from_chars(text_.data() + at_, end, length);
      if (failure != std::errc{})
        fail("has a shape with " + quoted(bytes_of(text_.substr(at_)), 8) + " in it");
      if (!shape.push_back(length))
        fail("has more than " + std::to_string(extents::max_rank) +
             " dimensions, the most that is supported");
      at_ = static_cast<std::size_t>(stop - text_.data());
      if (peek() == 'L') ++at_;  // Python 2 wrote its long integers so
      skip_space();
      if (peek() != ',') break;
      ++at_;
    }
    expect(')');
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::uint64_t base_;
};
using npy_header_parser = basic_npy_header_parser<>;

/// Reads the preamble of an npy file, versions 1.0, 2.0 and 3.0. Whether the payload has the size that it
/// says is not checked.
/// Source: numpy, "A simple file format for NumPy arrays" (numpy/lib/format.py).
template <class = void>
[[nodiscard]] npy_header read_npy_header(bytes_view file) {
  constexpr std::string_view magic{"\x93NUMPY", 6};
  if (file.size() < 10 || text_of(file.first(6)) != magic)
    throw error(errc::format,
                {"this is not an npy file: it begins with ", quoted(file, 8), " and not with \"\\x93NUMPY\""})
        .at_offset(0);
  const auto byte_at = [&](std::size_t i) { return std::to_integer<std::uint32_t>(file[i]); };
  const std::uint32_t major = byte_at(6);
  if (major < 1 || major > 3 || byte_at(7) != 0)
    throw error(errc::format, {"npy version ", major, ".", byte_at(7), " is not known"}).at_offset(6);
  const std::size_t preamble = major == 1 ? 10 : 12;
  std::size_t length = byte_at(8) | byte_at(9) << 8;
  if (major > 1) {
    if (file.size() < preamble) throw error(errc::format, "the npy file ends within its header").at_offset(8);
    length |= static_cast<std::size_t>(byte_at(10) | byte_at(11) << 8) << 16;
  }
  if (length > file.size() - preamble)
    throw error(errc::format, {"the npy header says it has ", length, " bytes, but the file has only ",
                               file.size() - preamble, " more"})
        .at_offset(8);
  npy_header header;
  npy_header_parser(text_of(file.subspan(preamble, length)), preamble).parse(header);
  header.data_offset = preamble + length;
  return header;
}

/// The bytes that the shape needs, checked: numpy's own rule, under which lengths of zero do not hide an
/// overflow.
template <class = void>
[[nodiscard]] std::uint64_t npy_payload(const npy_header& header) {
  std::uint64_t bytes = header.item_size;
  bool empty = false;
  for (const std::uint64_t length : header.shape) {
    empty = empty || length == 0;
    if (length != 0 && bytes > (std::uint64_t{1} << 62) / length)
      throw error(errc::format,
                  {"the npy header says shape ", to_string(header.shape), ", which no file can hold"})
          .at_offset(8);
    if (length != 0) bytes *= length;
  }
  return empty ? 0 : bytes;
}

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/codec/npy.hpp

namespace penstock::inline v0_1 {

/// The letter that npy files have for numbers like `T` ('b', 'i', 'u', 'f'), or zero. Specialise it for
/// number types of your own, trivially copyable and of 1, 2, 4 or 8 bytes: `template <> inline constexpr char
/// penstock::npy_kind<half> = 'f';`
template <class T>
inline constexpr char npy_kind = std::same_as<T, bool>        ? 'b'
                                 : std::same_as<T, std::byte> ? 'u'
                                 : std::floating_point<T>     ? 'f'
                                 : std::signed_integral<T>    ? 'i'
                                 : std::unsigned_integral<T>  ? 'u'
                                                              : '\0';

/// The array of an npy file, not yet copied: an array expression over bytes that live as long as the input of
/// the codec.
template <class T>
class npy_array {
 public:
  using unfinished = void;
  using value_type = T;

  npy_array(bytes_view payload, const extents& shape, bool swapped, buffer& scratch) noexcept
      : payload_(payload), shape_(shape), swapped_(swapped), scratch_(&scratch) {}

  [[nodiscard]] const extents& shape() const noexcept { return shape_; }

  /// Writes `shape().elements()` values: one memcpy, or a pass that turns the bytes round in files of the
  /// other byte order.
  void write_to(T* into) const noexcept {
    if (payload_.empty()) return;
    if constexpr (std::same_as<T, bool>) {
      // a byte other than 0 and 1 in a bool is undefined behaviour, and foreign files may have one
      std::transform(payload_.begin(), payload_.end(), into, [](std::byte b) { return b != std::byte{0}; });
    } else if (swapped_) {
      for (std::size_t i = 0; i < payload_.size(); i += sizeof(T)) {
        std::array<std::byte, sizeof(T)> item;
        std::memcpy(item.data(), payload_.data() + i, sizeof(T));
        std::reverse(item.begin(), item.end());
        std::memcpy(into + i / sizeof(T), item.data(), sizeof(T));
      }
    } else {
      std::memcpy(into, payload_.data(), payload_.size());
    }
  }

  /// A view of the values: in place where byte order and alignment allow, else of a copy in the worker's
  /// scratch.
  [[nodiscard]] tensor_view<const T> finish() const {
    const bool aligned = reinterpret_cast<std::uintptr_t>(payload_.data()) % alignof(T) == 0;
    if (!std::same_as<T, bool> && !swapped_ && aligned)
      return {reinterpret_cast<const T*>(payload_.data()), shape_};
    scratch_->resize_for_overwrite(payload_.size());
    T* const copy = reinterpret_cast<T*>(scratch_->data());
    write_to(copy);
    return {copy, shape_};
  }

 private:
  bytes_view payload_;
  extents shape_;
  bool swapped_;
  buffer* scratch_;
};

/// The arrays of numpy's `.npy` files, of the one element type `T`.
///
/// In: any byte element; a blob is finished once, whole. Out: an array expression of the file's shape (at
/// most eight dimensions, row-major) that writes its values straight to their destination. Versions 1.0 to
/// 3.0, either byte order.
/// Kind: pointwise, keeps all guarantees. Cost per sample: 0.3 us for the header and one copy of the values;
/// no allocation, but for the scratch of `finish` where values are misaligned or of the other byte order.
/// Threads: any number at once, each with a scratch of its own.
/// Throws `errc::format` with the offset: no npy file, a header that does not parse or lies about the size,
/// another dtype than `T` (nothing is converted silently), Fortran order, structured dtypes, and object
/// dtypes, which are pickles.
/// Source: numpy, "A simple file format for NumPy arrays" (numpy/lib/format.py).
///
///     npy<float>::scratch scratch;
///     auto array = npy<float>{}.decode(file_bytes, scratch);    // array.shape(), array.finish()
template <class T>
struct npy {
  static_assert(npy_kind<T> != '\0' && std::is_trivially_copyable_v<T> && sizeof(T) <= 8 &&
                    std::has_single_bit(sizeof(T)),
                "penstock: npy<T> needs a bool, integer or floating type of 1, 2, 4 or 8 bytes; for a "
                "half-float type of your own "
                "specialise penstock::npy_kind");

  static constexpr std::string_view codec_name = "npy";
  static constexpr std::string_view extensions[] = {"npy"};
  using scratch = buffer;

  template <byte_element Bytes>
  [[nodiscard]] npy_array<T> decode(const Bytes& in, scratch& s) const {
    const bytes_view file = as_bytes(in);
    const detail::npy_header header = detail::read_npy_header(file);
    if (header.kind != npy_kind<T> || header.item_size != sizeof(T))
      throw error(errc::format, {"the npy file holds dtype '", header.descr, "', but '", npy_kind<T>,
                                 sizeof(T), "' was asked for"})
          .at_offset(8);
    if (header.fortran && header.shape.rank() > 1)
      throw error(
          errc::format,
          "the npy file is in Fortran order, which is not supported: save it with numpy.ascontiguousarray")
          .at_offset(8);
    const bytes_view payload = file.subspan(header.data_offset);
    const std::uint64_t expected = detail::npy_payload(header);
    if (payload.size() != expected)
      throw error(errc::format, {"the npy header says shape ", to_string(header.shape), " of '", header.descr,
                                 "', which is ", expected, " bytes, but ", payload.size(), " follow it"})
          .at_offset(header.data_offset);
    constexpr char foreign = std::endian::native == std::endian::little ? '>' : '<';
    return {payload, header.shape, header.order == foreign && sizeof(T) > 1, s};
  }
};

/// An array as the bytes of an npy file, version 1.0, as numpy itself writes it: for tests and small tools.
/// Throws `errc::argument` when `shape` and the number of values do not agree.
///
///     std::vector<std::byte> file = npy_bytes<float>(extents(2, 3), values);
template <class T>
  requires(npy_kind<T> != '\0')
[[nodiscard]] std::vector<std::byte> npy_bytes(const extents& shape, std::span<const T> values) {
  if (shape.elements() != values.size())
    throw error(errc::argument, {"npy_bytes: shape ", to_string(shape), " has ", shape.elements(),
                                 " elements, but ", values.size(), " values were given"});
  constexpr char native = sizeof(T) == 1 ? '|' : std::endian::native == std::endian::little ? '<' : '>';
  std::string head = std::string("{'descr': '") + native + npy_kind<T> + std::to_string(sizeof(T)) +
                     "', 'fortran_order': False, 'shape': " + to_string(shape) + ", }";
  head.append(63 - (10 + head.size()) % 64, ' ');  // numpy lets the values begin at a multiple of 64
  head += '\n';
  const std::string preamble = {'\x93',
                                'N',
                                'U',
                                'M',
                                'P',
                                'Y',
                                '\1',
                                '\0',
                                static_cast<char>(head.size() & 0xff),
                                static_cast<char>(head.size() >> 8)};
  std::vector<std::byte> file(preamble.size() + head.size() + values.size_bytes());
  std::memcpy(file.data(), preamble.data(), preamble.size());
  std::memcpy(file.data() + preamble.size(), head.data(), head.size());
  if (!values.empty())
    std::memcpy(file.data() + preamble.size() + head.size(), values.data(), values.size_bytes());
  return file;
}

}  // namespace penstock::inline v0_1

// ---- penstock/codec/text.hpp

namespace penstock::inline v0_1 {

namespace detail {

/// How many bytes from the start are whole, well-formed UTF-8 characters: all of them, or the offset of the
/// first bad one.
/// Source: table 3-7 of the Unicode standard (no overlong forms, no surrogates, nothing beyond U+10FFFF).
[[nodiscard]] inline std::size_t valid_utf8_prefix(bytes_view bytes) noexcept {
  const auto at = [&](std::size_t i) { return std::to_integer<unsigned>(bytes[i]); };
  const std::size_t size = bytes.size();
  std::size_t i = 0;
  while (i < size) {
    // most text is ASCII: 32 bytes at a time while it is
    if (i + 32 <= size) {
      std::uint64_t all = 0;
      for (std::size_t k = 0; k < 32; k += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes.data() + i + k, 8);
        all |= word;
      }
      if ((all & 0x8080808080808080u) == 0) {
        i += 32;
        continue;
      }
    }
    const unsigned lead = at(i);
    if (lead < 0x80) {
      ++i;
      continue;
    }
    const std::size_t length = lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
    if (length == 0 || size - i < length) return i;
    const unsigned low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    const unsigned high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    if (at(i + 1) < low || at(i + 1) > high) return i;
    for (std::size_t k = 2; k < length; ++k)
      if ((at(i + k) & 0xc0) != 0x80) return i;
    i += length;
  }
  return size;
}

}  // namespace detail

/// Bytes that are text, without a copy.
///
/// In: any byte element. Out: a `std::string_view` on those bytes (for a blob: on what its `finish` gives),
/// of a length that is known only when it is there: `batch` needs a collate policy for it.
/// Kind: pointwise, keeps all guarantees. Cost per sample: a scan, less than 0.1 ns per byte of ASCII and 1
/// of other scripts; no allocation.
/// Threads: any number at once.
/// Throws `errc::format` with the offset of the first byte that is not UTF-8; `text{.check = false}` takes
/// any bytes.
///
///     no_scratch none;
///     std::string_view caption = text{}.decode(std::string_view("a dog"), none);
struct text {
  /// Whether the bytes must be well-formed UTF-8.
  bool check = true;

  static constexpr std::string_view codec_name = "text";
  static constexpr std::string_view extensions[] = {"txt", "text", "transcript"};

  template <byte_element Bytes>
  [[nodiscard]] std::string_view decode(const Bytes& in, no_scratch&) const {
    const bytes_view bytes = as_bytes(in);
    if (check) {
      const std::size_t good = detail::valid_utf8_prefix(bytes);
      if (good != bytes.size())
        throw error(errc::format, {"the text is not UTF-8: found ", detail::quoted(bytes.subspan(good), 4),
                                   "; text{.check = false} takes any bytes"})
            .at_offset(good);
    }
    return text_of(bytes);
  }
};

}  // namespace penstock::inline v0_1

// ---- penstock/core/random.hpp

namespace penstock::inline v0_1 {

/// A cheap 64-bit mixer: a bijection in which every input bit moves every output bit.
/// Source: the finaliser of SplitMix64 (Steele, Lea and Flood 2014, constants by David Stafford, variant 13).
[[nodiscard]] constexpr std::uint64_t mix64(std::uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// Philox 4x32 with ten rounds: four random words from a counter of four words and a key of two.
/// Source: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
[[nodiscard]] constexpr std::array<std::uint32_t, 4> philox4x32_10(
    std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) noexcept {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t left = std::uint64_t{0xd2511f53u} * counter[0];
    const std::uint64_t right = std::uint64_t{0xcd9e8d57u} * counter[2];
    counter = {
        static_cast<std::uint32_t>(right >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(right),
        static_cast<std::uint32_t>(left >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(left)};
    key[0] += 0x9e3779b9u;
    key[1] += 0xbb67ae85u;
  }
  return counter;
}

/// Addressed random numbers: what is drawn depends on the address (seed, epoch, index, stream) and on how
/// many were drawn there before, never on threads, ranks or what other samples drew.
///
/// A `std::uniform_random_bit_generator` of 64-bit words. Copyable, 44 bytes, no allocation; making one costs
/// nothing, four 32-bit words cost one Philox block (about 15 ns). The standard's distributions differ
/// between standard libraries:
/// `uniform` and `below` do not.
class rng {
 public:
  using result_type = std::uint64_t;

  constexpr rng(std::uint64_t seed, std::uint64_t epoch, std::uint64_t index,
                std::uint64_t stream = 0) noexcept {
    const std::uint64_t key = mix64(mix64(seed) ^ mix64(epoch + 0x632be59bd9b4e019u) ^ (mix64(stream) << 1));
    key_ = {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)};
    counter_ = {0, static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(index),
                static_cast<std::uint32_t>(index >> 32)};
  }

  [[nodiscard]] static constexpr result_type min() noexcept { return 0; }
  [[nodiscard]] static constexpr result_type max() noexcept {
    return std::numeric_limits<result_type>::max();
  }

  constexpr result_type operator()() noexcept {
    if (used_ == 4) {
      words_ = philox4x32_10(counter_, key_);
      ++counter_[0];
      used_ = 0;
    }
    const std::uint64_t low = words_[used_];
    const std::uint64_t high = words_[used_ + 1];
    used_ += 2;
    return high << 32 | low;
  }

  /// A whole number in [0, n), without bias; n == 0 gives 0. Source: Lemire, "Fast random integer generation
  /// in an interval", 2019.
  constexpr std::uint64_t below(std::uint64_t n) noexcept {
    if (n == 0) return 0;
    auto product = multiply((*this)(), n);
    if (product.low < n) {
      const std::uint64_t threshold = (0 - n) % n;
      while (product.low < threshold) product = multiply((*this)(), n);
    }
    return product.high;
  }

  /// A real number in [0, 1) with 53 random bits.
  constexpr double uniform() noexcept { return static_cast<double>((*this)() >> 11) * 0x1.0p-53; }
  /// A real number in [low, high).
  constexpr double uniform(double low, double high) noexcept { return low + (high - low) * uniform(); }
  /// True with probability p.
  constexpr bool chance(double p) noexcept { return uniform() < p; }

 private:
  struct wide {
    std::uint64_t high, low;
  };
  static constexpr wide multiply(std::uint64_t a, std::uint64_t b) noexcept {
    const std::uint64_t a0 = a & 0xffffffffu, a1 = a >> 32, b0 = b & 0xffffffffu, b1 = b >> 32;
    const std::uint64_t low = a0 * b0, mid1 = a1 * b0, mid2 = a0 * b1;
    const std::uint64_t carry = (low >> 32) + (mid1 & 0xffffffffu) + (mid2 & 0xffffffffu);
    return {a1 * b1 + (mid1 >> 32) + (mid2 >> 32) + (carry >> 32), a * b};
  }

  std::array<std::uint32_t, 4> counter_{};
  std::array<std::uint32_t, 4> words_{};
  std::array<std::uint32_t, 2> key_{};
  std::uint32_t used_ = 4;
};

}  // namespace penstock::inline v0_1

// ---- penstock/core/call.hpp

namespace penstock::inline v0_1 {

/// What a stage is told beside the value: where the sample stands, the worker's scratch for this stage, and
/// random numbers that belong to this sample and this stage alone.
template <class Scratch>
struct call {
  position at;
  std::uint32_t part = 0;    ///< which part of the sample, after `unbatch`
  std::uint64_t seed = 0;    ///< of the pipeline
  std::uint64_t stream = 0;  ///< the stage's own number among the random ones, or the hash of its key
  Scratch& scratch;

  /// Random numbers keyed by seed, position, part and stage: the same on any number of threads or ranks and
  /// after a restore.
  [[nodiscard]] constexpr rng random() const noexcept {
    return {seed, at.epoch, at.index, part == 0 ? stream : mix64(stream ^ mix64(part))};
  }
};

}  // namespace penstock::inline v0_1

// ---- penstock/core/collate.hpp

namespace penstock::inline v0_1 {

/// How the values of one field become one piece of a batch. Given to `batch`.
///   stack            equal shapes, one array with one more length in front; another shape is an error at its position
///   pad_to_longest   arrays padded with zeros to the longest of the batch along their first length, with a mask
///   ragged           all values one after another, with offsets
struct stack_policy {};
/// A field's values are padded with zeros to the longest of the batch: a `padded_view`.
struct pad_policy {};
/// A field's values stand one after another, with their offsets: a `ragged_view`.
struct ragged_policy {};

/// An option of `batch`: all shapes must be equal. The default.
inline constexpr stack_policy stack{};
/// An option of `batch`: pads each batch to its longest value.
inline constexpr pad_policy pad_to_longest{};
/// An option of `batch`: values of any length, and their offsets.
inline constexpr ragged_policy ragged{};

/// A policy for one field: `batch(64, collate<"txt">(ragged))`.
template <class Name, class Policy>
struct field_policy {};

/// An option of `batch`: the policy of one field, `collate<"text">(ragged)`.
template <fixed_string Name, class Policy>
[[nodiscard]] constexpr auto collate(Policy) {
  return field_policy<name_of<Name>, Policy>{};
}

namespace detail {

template <class T>
inline constexpr bool is_policy = false;
template <>
inline constexpr bool is_policy<stack_policy> = true;
template <>
inline constexpr bool is_policy<pad_policy> = true;
template <>
inline constexpr bool is_policy<ragged_policy> = true;

template <class Name, class... Policies>
struct own_policy {
  using type = void;
};
template <class Name, class First, class... Rest>
struct own_policy<Name, First, Rest...> : own_policy<Name, Rest...> {};
template <class Name, class Policy, class... Rest>
struct own_policy<Name, field_policy<Name, Policy>, Rest...> {
  using type = Policy;
};

template <class... Policies>
struct common_policy {
  using type = stack_policy;
};
template <class First, class... Rest>
struct common_policy<First, Rest...> : common_policy<Rest...> {};
template <class First, class... Rest>
  requires is_policy<First>
struct common_policy<First, Rest...> {
  using type = First;
};

/// The policy of a field among those given: its own, else the one given for all, else stack.
template <class Name, class... Policies>
struct policy_for {
  using own = typename own_policy<Name, Policies...>::type;
  using type = std::conditional_t<std::is_void_v<own>, typename common_policy<Policies...>::type, own>;
};

}  // namespace detail

}  // namespace penstock::inline v0_1

// ---- penstock/core/fingerprint.hpp

namespace penstock::inline v0_1 {

/// Sums up what determines a sequence of samples in 64 bits: texts and numbers, in order. Not cryptographic:
/// it tells apart what differs by accident. The same on every machine.
class fingerprint {
 public:
  template <class... Ts>
  constexpr fingerprint& add(const Ts&... values) {
    (add_one(values), ...);
    return *this;
  }
  [[nodiscard]] constexpr std::uint64_t value() const noexcept { return state_; }

 private:
  constexpr void word(std::uint64_t w) noexcept { state_ = mix64(state_ ^ mix64(w + 0x9e3779b97f4a7c15u)); }

  template <class T>
  constexpr void add_one(const T& value) {
    if constexpr (std::is_enum_v<T>) {
      word(static_cast<std::uint64_t>(value));
    } else if constexpr (std::integral<T>) {
      word(static_cast<std::uint64_t>(value));
    } else {
      const std::string_view text(value);
      word(text.size());
      std::uint64_t packed = 0;
      for (std::size_t i = 0; i < text.size(); ++i) {
        packed = packed << 8 | static_cast<unsigned char>(text[i]);
        if (i % 8 == 7) {
          word(packed);
          packed = 0;
        }
      }
      word(packed);
    }
  }

  std::uint64_t state_ = 0x70656e73746f636bu;
};

}  // namespace penstock::inline v0_1

// ---- penstock/core/guarantee.hpp

namespace penstock::inline v0_1 {

/// What a pipeline's type promises; each is kept or lost by its stages.
///   indexed        the size is known; any position may be evaluated, from many threads, in any order
///   deterministic  same seed, same sequence, whatever the number of threads and their timing
///   resumable      a small state restores the exact sequence without replay
///   elastic        the samples of global step s do not depend on how many ranks share the work
///   lockstep       the number of batches per epoch is known without reading data, and equal on all ranks
enum class guarantee : std::uint8_t {
  indexed = 1,
  deterministic = 2,
  resumable = 4,
  elastic = 8,
  lockstep = 16
};

/// The name of a guarantee, as it is written here.
[[nodiscard]] constexpr std::string_view to_string(guarantee g) noexcept {
  switch (g) {
    case guarantee::indexed:
      return "indexed";
    case guarantee::deterministic:
      return "deterministic";
    case guarantee::resumable:
      return "resumable";
    case guarantee::elastic:
      return "elastic";
    case guarantee::lockstep:
      return "lockstep";
  }
  return "unknown";
}

inline constexpr guarantee all_guarantees[] = {guarantee::indexed, guarantee::deterministic,
                                               guarantee::resumable, guarantee::elastic, guarantee::lockstep};

/// A set of guarantees: what a stage loses.
struct guarantee_set {
  std::uint8_t bits = 0;

  constexpr guarantee_set() = default;
  template <class... Gs>
  constexpr explicit guarantee_set(Gs... gs)
      : bits(static_cast<std::uint8_t>((static_cast<unsigned>(gs) | ... | 0u))) {}

  [[nodiscard]] constexpr bool has(guarantee g) const noexcept {
    return (bits & static_cast<std::uint8_t>(g)) != 0;
  }
  [[nodiscard]] constexpr guarantee_set with(guarantee_set more) const noexcept {
    guarantee_set result;
    result.bits = static_cast<std::uint8_t>(bits | more.bits);
    return result;
  }
  [[nodiscard]] constexpr guarantee_set without(guarantee_set less) const noexcept {
    guarantee_set result;
    result.bits = static_cast<std::uint8_t>(bits & ~less.bits);
    return result;
  }
};

/// Where a stage stands, as far as what it loses depends on that.
struct place {
  bool after_shard = false;
  bool forward = false;
};

}  // namespace penstock::inline v0_1

// ---- penstock/core/mistake.hpp

namespace penstock::inline v0_1 {

/// What can be wrong with an expression made with `|`. Each has one sentence that says what to write instead.
enum class mistake {
  none,
  not_a_part,
  not_a_source,
  no_source,
  two_sources,
  two_batches,
  two_shards,
  shard_after_batch,
  batch_after_copy,
  stage_after_copy,
  value_after_batch,
  copy_without_batch,
  steps_without_batch,
  cursor_after_batch,
  no_such_field,
  field_twice,
  fields_need_names,
  decode_nothing,
  codec_wants_bytes,
  decode_which_field,
  not_a_codec,
  wrong_argument,
  mutable_function,
  returns_nothing,
  predicate_not_bool,
  discovered_without_collate,
  open_sample_in_batch,
  not_batchable,
  order_on_forward,
  order_after_decider,
  order_after_cursor,
  cursor_after_decider,
  enumerate_after_decider,
  not_expandable,
  lost_by_a_stage,
  lost_by_shuffle_buffer,
  lost_by_decider,
  lost_by_forward,
  require_nothing,
};

/// Names in a compiler's message the type of the element that reaches the wrong stage.
template <class Element>
struct reached_by {};

/// Fails to compile with the sentence of `M`, and with nothing else. `Reached` is there to be printed.
template <mistake M, class Reached = void>
consteval void explain() {
  static_assert(M != mistake::not_a_part,
                "penstock: the right side of | is not a stage; write map(f), batch(n) or another stage, or "
                "give your type "
                "`using penstock_part = pointwise_tag;`");
  static_assert(
      M != mistake::not_a_source,
      "penstock: the left side of | is not a source; wrap a container in from(...), or give your type "
      "`using penstock_part = source_tag;`");
  static_assert(M != mistake::no_source,
                "penstock: this chain has no source; begin it with one, as in from(samples) | ... or "
                "webdataset(path) | ...");
  static_assert(M != mistake::two_sources,
                "penstock: a pipeline has one source, and this is a second one; join datasets with mix(...) "
                "or concat(...)");
  static_assert(
      M != mistake::two_batches,
      "penstock: batch after batch; a pipeline cuts batches once, write one batch(n) with the size you want");
  static_assert(
      M != mistake::two_shards,
      "penstock: shard after shard; positions are global and the world is recorded once, remove one of them");
  static_assert(
      M != mistake::shard_after_batch,
      "penstock: shard after batch; batches are cut for this rank, write shard(rank, world) before batch(n)");
  static_assert(M != mistake::batch_after_copy,
                "penstock: batch after pin_and_copy; samples are collated before they are copied, write "
                "batch(n) | pin_and_copy");
  static_assert(M != mistake::stage_after_copy,
                "penstock: this stage stands after pin_and_copy, where batches have left the host; move it "
                "before batch(n)");
  static_assert(M != mistake::value_after_batch,
                "penstock: this stage works on samples and stands after batch; move it before batch(n)");
  static_assert(M != mistake::copy_without_batch,
                "penstock: pin_and_copy copies batches; write batch(n) before it");
  static_assert(M != mistake::steps_without_batch,
                "penstock: steps(n) counts batches; write batch(b) before it");
  static_assert(M != mistake::cursor_after_batch,
                "penstock: shuffle_buffer mixes samples and stands after batch; move it before batch(n)");
  static_assert(M != mistake::no_such_field,
                "penstock: no field of that name reaches this stage; reached_by<...> beside this line shows "
                "the fields that do");
  static_assert(M != mistake::field_twice, "penstock: the same field is named twice; name each field once");
  static_assert(
      M != mistake::fields_need_names,
      "penstock: fields<...> chooses members by name and the element that reaches it has no names; drop it");
  static_assert(M != mistake::decode_nothing,
                "penstock: decode<> names no codec; write decode<zstd>, or decode<field<\"jpg\", jpeg>, ...> "
                "for some fields");
  static_assert(M != mistake::codec_wants_bytes,
                "penstock: a codec wants bytes and gets a value that is decoded already; remove one decode, "
                "or use map(f)");
  static_assert(M != mistake::decode_which_field,
                "penstock: decode<Codec> on a record with several fields; say which, as in "
                "decode<field<\"name\", Codec>>");
  static_assert(M != mistake::not_a_codec,
                "penstock: decode<...> was given a type that is no codec; a codec has decode(bytes, scratch) "
                "const and codec_name");
  static_assert(
      M != mistake::wrong_argument,
      "penstock: this stage's function cannot be called with the element that reaches it, which is that of "
      "reached_by<...> beside this line");
  static_assert(M != mistake::mutable_function,
                "penstock: the function would be shared by all workers and must be callable when const; "
                "remove `mutable` and "
                "take random numbers from an rng& second parameter");
  static_assert(M != mistake::returns_nothing,
                "penstock: map's function returns nothing; return the value that shall go on");
  static_assert(M != mistake::predicate_not_bool, "penstock: filter's function must return bool");
  static_assert(M != mistake::discovered_without_collate,
                "penstock: batch cannot stack values whose length is known only after decoding; write "
                "batch(n, ragged) or "
                "batch(n, pad_to_longest)");
  static_assert(M != mistake::open_sample_in_batch,
                "penstock: batch needs to know the fields of a sample; write fields<\"jpg\", \"cls\"> or "
                "decode<field<...>> "
                "before it");
  static_assert(M != mistake::not_batchable,
                "penstock: batch stacks numbers, arrays, texts, bytes and records of such, and gets what "
                "reached_by<...> beside this "
                "line names; write map(f) before it");
  static_assert(M != mistake::order_on_forward,
                "penstock: random access asked of a source that can only be read forward; use "
                "shuffle_buffer(k), or a source "
                "with an index");
  static_assert(M != mistake::order_after_decider,
                "penstock: this stage needs to know how many samples there are, and after filter or unbatch "
                "nobody knows, nor behind batch over a forward source; move "
                "it before");
  static_assert(M != mistake::order_after_cursor,
                "penstock: this stage computes positions and stands after shuffle_buffer, where positions "
                "come from a cursor; "
                "move it before");
  static_assert(
      M != mistake::cursor_after_decider,
      "penstock: shuffle_buffer after filter or unbatch would hold decoded samples; move it before them");
  static_assert(
      M != mistake::enumerate_after_decider,
      "penstock: enumerate gives a sample's position and stands after filter or unbatch; move it before");
  static_assert(M != mistake::not_expandable,
                "penstock: unbatch needs a range, an array, or a record of such, and gets what "
                "reached_by<...> beside this line names");
  static_assert(M != mistake::lost_by_a_stage,
                "penstock: require: the guarantee is lost by a stage of this chain, see its `loses`; remove "
                "it or the require");
  static_assert(M != mistake::lost_by_shuffle_buffer,
                "penstock: require: the guarantee is lost by shuffle_buffer (it loses indexed, and after "
                "shard also elastic, over a forward source resumable); use "
                "shuffle(seed, window(w)), or put shuffle_buffer before shard");
  static_assert(M != mistake::lost_by_decider,
                "penstock: require: the guarantee is lost by filter or unbatch (they lose indexed and "
                "lockstep, and after shard "
                "also elastic); lockstep comes back with steps(n), elastic by filtering before shard");
  static_assert(M != mistake::lost_by_forward,
                "penstock: require: the guarantee is lost by a source that can only be read forward; use a "
                "source with an index");
  static_assert(M != mistake::require_nothing,
                "penstock: require<> names no guarantee; write require<guarantee::elastic> or another");
}

}  // namespace penstock::inline v0_1

// ---- penstock/core/open_sample.hpp

namespace penstock::inline v0_1 {

/// A sample whose members are known only at run time: a key and a table of (name, bytes). `fields<...>`
/// closes it.
///
/// Lives during the call that hands it on. Members are blobs: what nobody names is never read.
///   key()            the sample's key
///   size()           how many members
///   name(i)          the name of member i (for a tar shard the lower-cased extension, "jpg")
///   member(i)        its blob
template <class T>
concept open_sample = requires(const std::remove_cvref_t<T>& s, std::size_t i) {
  typename std::remove_cvref_t<T>::is_open_sample;
  typename std::remove_cvref_t<T>::blob_type;
  { s.key() } -> std::convertible_to<std::string_view>;
  { s.size() } -> std::convertible_to<std::size_t>;
  { s.name(i) } -> std::convertible_to<std::string_view>;
  { s.member(i) } -> std::same_as<typename std::remove_cvref_t<T>::blob_type>;
};

/// A sample like that which owns its members: an open sample that was made whole.
template <class T>
concept owned_sample = requires { typename std::remove_cvref_t<T>::is_owned_sample; };

}  // namespace penstock::inline v0_1

// ---- penstock/core/options.hpp

namespace penstock::inline v0_1 {

/// How a run shall work: gathered once from the whole chain, wherever the annotations stand. None of it
/// changes the sequence.
struct run_options {
  /// threads; 0 evaluates in the calling thread; unset: chosen from the machine
  std::optional<unsigned> workers;
  /// bytes of batches and read-ahead; unset: no bound but the depth
  std::optional<std::uint64_t> memory;
  std::optional<std::size_t> depth;    ///< batches in flight, those held by the consumer included
  std::uint64_t ahead = 0;             ///< samples whose bytes are asked for before their turn
  std::optional<std::uint64_t> seed;   ///< of random stages; unset: that of the first shuffle, else 0
  std::uint64_t watchdog_ms = 30'000;  ///< says so after this long without a batch; 0: never
};

}  // namespace penstock::inline v0_1

// ---- penstock/core/pack.hpp

namespace penstock::inline v0_1 {

namespace detail {

template <std::size_t I, class T>
struct pack_slot {
  [[no_unique_address]] T value{};
};

template <class Numbers, class... Ts>
struct pack_slots;
template <std::size_t... Is, class... Ts>
struct pack_slots<std::index_sequence<Is...>, Ts...> : pack_slot<Is, Ts>... {
  /// Calls `f` with all values at once.
  template <class F>
  constexpr decltype(auto) apply(F&& f) const {
    return f(static_cast<const pack_slot<Is, Ts>&>(*this).value...);
  }
  template <class F>
  constexpr decltype(auto) apply(F&& f) {
    return f(static_cast<pack_slot<Is, Ts>&>(*this).value...);
  }
};

}  // namespace detail

/// Values of different types, side by side. An aggregate: a std::tuple costs a program's compilation a dozen
/// functions for each type in it, and as many again each time a stage is appended.
template <class... Ts>
struct pack : detail::pack_slots<std::index_sequence_for<Ts...>, Ts...> {
  static constexpr std::size_t size = sizeof...(Ts);
};

namespace detail {

/// The value at place I.
template <std::size_t I, class T>
[[nodiscard]] constexpr T& at(pack_slot<I, T>& slot) noexcept {
  return slot.value;
}
template <std::size_t I, class T>
[[nodiscard]] constexpr const T& at(const pack_slot<I, T>& slot) noexcept {
  return slot.value;
}

template <std::size_t I, class T>
std::type_identity<T> type_in_slot(const pack_slot<I, T>&);
template <std::size_t I, class Pack>
using type_at = typename decltype(type_in_slot<I>(std::declval<const Pack&>()))::type;

template <class... Ts>
[[nodiscard]] constexpr pack<std::remove_cvref_t<Ts>...> make_pack(Ts&&... values) {
  return [&]<std::size_t... Is>(std::index_sequence<Is...>) {
    return pack<std::remove_cvref_t<Ts>...>{
        {pack_slot<Is, std::remove_cvref_t<Ts>>{std::forward<Ts>(values)}...}};
  }(std::index_sequence_for<Ts...>{});
}

template <class... As, class... Bs>
[[nodiscard]] constexpr pack<As..., Bs...> join(pack<As...> a, pack<Bs...> b) {
  return [&]<std::size_t... I, std::size_t... J>(std::index_sequence<I...>, std::index_sequence<J...>) {
    return pack<As..., Bs...>{
        {pack_slot<I, As>{std::move(static_cast<pack_slot<I, As>&>(a).value)}...,
         pack_slot<sizeof...(As) + J, Bs>{std::move(static_cast<pack_slot<J, Bs>&>(b).value)}...}};
  }(std::index_sequence_for<As...>{}, std::index_sequence_for<Bs...>{});
}

}  // namespace detail

}  // namespace penstock::inline v0_1

// ---- penstock/core/part.hpp

/// What a part of a pipeline is. A type becomes a part by naming its kind: `using penstock_part =
/// pointwise_tag;`. There is no base class, so that empty parts stay empty however deep they are nested.
namespace penstock::inline v0_1 {

struct source_tag {};      ///< a dataset (see source/concepts.hpp)
struct pointwise_tag {};   ///< value from value: `apply(value, call) const`
struct decider_tag {};     ///< chooses from values: `keep(value, call) const -> bool`
struct expander_tag {};    ///< several values from one: `expand(value, call, sink) const`, `output<In>`
struct order_tag {};       ///< which positions come next, by arithmetic: `make(order_input) const`
struct cursor_tag {};      ///< which positions come next, by a cursor with a state (`shuffle_buffer`)
struct shard_tag {};       ///< records the world
struct batch_tag {};       ///< cuts batches and collates
struct device_tag {};      ///< where batches end up
struct annotation_tag {};  ///< how to run; changes nothing in the sequence
struct steps_tag {};       ///< fixes the number of batches of an epoch
struct require_tag {};     ///< asks for a guarantee
struct segment_tag {};     ///< stages joined without a source
struct plan_tag {};        ///< a source with stages
struct poison_tag {};      ///< what a wrong expression yields

/// A source, a stage, or stages joined: what names its kind in `penstock_part`.
template <class T>
concept part = requires { typename std::remove_cvref_t<T>::penstock_part; };

namespace detail {
template <class T>
struct part_kind {
  using type = void;
};
template <part T>
struct part_kind<T> {
  using type = typename std::remove_cvref_t<T>::penstock_part;
};
}  // namespace detail

/// A part of the kind that a tag names.
template <class T, class Tag>
concept part_of_kind = std::same_as<typename detail::part_kind<T>::type, Tag>;

/// What is not a source and can stand to the right of `|`.
template <class T>
concept stage = part<T> && !part_of_kind<T, source_tag> && !part_of_kind<T, plan_tag> &&
                !part_of_kind<T, poison_tag> && !part_of_kind<T, segment_tag>;

/// Whether a stage works on values, in the workers.
template <class T>
concept value_stage =
    part_of_kind<T, pointwise_tag> || part_of_kind<T, decider_tag> || part_of_kind<T, expander_tag>;

}  // namespace penstock::inline v0_1

// ---- penstock/core/plan.hpp

/// The plan: what an expression made with `|` is, and what its type knows.
namespace penstock::inline v0_1 {

namespace detail {

template <class T>
struct stage_scratch {
  struct type {};
};
template <class T>
  requires requires { typename T::scratch; }
struct stage_scratch<T> {
  using type = typename T::scratch;
};

template <class Stage>
using call_for = call<typename stage_scratch<Stage>::type>;

/// The element type after a value stage.
template <class Stage, class In>
struct output_of {
  using type = In;
};
template <part_of_kind<pointwise_tag> Stage, class In>
struct output_of<Stage, In> {
  using type = decltype(std::declval<const Stage&>().apply(std::declval<In>(),
                                                           std::declval<const call_for<Stage>&>()));
};
template <part_of_kind<expander_tag> Stage, class In>
struct output_of<Stage, In> {
  using type = typename Stage::template output<In>;
};

template <class T>
consteval guarantee_set lost_by(place where) {
  if constexpr (requires { T::loses(where); })
    return T::loses(where);
  else
    return guarantee_set{};
}

template <class T>
consteval mistake blame_for() {
  if constexpr (requires { T::blame; })
    return T::blame;
  else
    return mistake::lost_by_a_stage;
}

/// What is known at a place in a chain.
struct chain_facts {
  bool forward = false, sharded = false, cursor = false, decided = false, batched = false, copied = false,
       steps = false;
  std::array<mistake, 5> lost{};  // who lost each guarantee; none: still kept

  [[nodiscard]] constexpr mistake lost_by_whom(guarantee g) const {
    for (std::size_t i = 0; i < 5; ++i)
      if (all_guarantees[i] == g) return lost[i];
    return mistake::none;
  }
  constexpr void lose(guarantee_set what, mistake who) {
    for (std::size_t i = 0; i < 5; ++i)
      if (what.has(all_guarantees[i]) && lost[i] == mistake::none) lost[i] = who;
  }
};

template <class Element, chain_facts Facts>
struct context {
  using element = Element;
  static constexpr chain_facts facts = Facts;
};

template <class Source>
consteval chain_facts source_facts() {
  chain_facts f;
  f.forward = !requires(const Source& s) { s.size(); };
  f.lose(lost_by<Source>({}), blame_for<Source>());
  if (f.forward) {
    auto lost =
        guarantee_set(guarantee::indexed, guarantee::resumable, guarantee::elastic, guarantee::lockstep);
    if constexpr (requires { requires Source::seekable; })
      lost = guarantee_set(guarantee::indexed, guarantee::elastic, guarantee::lockstep);
    f.lose(lost, mistake::lost_by_forward);
  }
  return f;
}

template <class Stage>
consteval chain_facts facts_after(chain_facts f) {
  f.lose(lost_by<Stage>({f.sharded, f.forward}), blame_for<Stage>());
  if (part_of_kind<Stage, shard_tag>) f.sharded = true;
  if (part_of_kind<Stage, cursor_tag>) f.cursor = true;
  if (part_of_kind<Stage, decider_tag> || part_of_kind<Stage, expander_tag>) {
    guarantee_set lost(guarantee::indexed, guarantee::lockstep);
    if (f.sharded) lost = lost.with(guarantee_set(guarantee::elastic));
    f.lose(lost, mistake::lost_by_decider);
    f.decided = true;
  }
  if (part_of_kind<Stage, batch_tag>) f.batched = true;
  if (part_of_kind<Stage, device_tag>) f.copied = true;
  if (part_of_kind<Stage, steps_tag>) {
    f.steps = true;
    for (std::size_t i = 0; i < 5; ++i)
      if (all_guarantees[i] == guarantee::lockstep) f.lost[i] = mistake::none;
  }
  return f;
}

template <class Context, class... Stages>
struct fold_context {
  using type = Context;
};
template <class Context, class Stage, class... Rest>
struct fold_context<Context, Stage, Rest...> {
  using next =
      context<typename output_of<Stage, typename Context::element>::type, facts_after<Stage>(Context::facts)>;
  using type = typename fold_context<next, Rest...>::type;
};

template <class Source, class... Stages>
using context_of =
    typename fold_context<context<typename Source::element, source_facts<Source>()>, Stages...>::type;

}  // namespace detail

/// A plan: a source and its stages, in the order they were written. A value: cheap to copy, it owns no thread
/// and no open file.
///
/// `open(...)` gives a run (see run/run.hpp); `for (auto&& b : plan)` is one pass over epoch 0.
template <class Source, class... Stages>
class plan {
 public:
  using penstock_part = plan_tag;
  using source_type = Source;
  using stages_type = pack<Stages...>;
  using context = detail::context_of<Source, Stages...>;
  /// What an element is at the end of the chain, before it is collated.
  using element = typename context::element;

  constexpr explicit plan(Source source, pack<Stages...> stages = {})
      : source_(std::move(source)), stages_(std::move(stages)) {}

  [[nodiscard]] constexpr const Source& source() const noexcept { return source_; }
  [[nodiscard]] constexpr const stages_type& stages() const noexcept { return stages_; }

  /// Whether the chain still promises `g`.
  template <guarantee G>
  static constexpr bool keeps = context::facts.lost_by_whom(G) == mistake::none;

  /// Starts to work: opens files, starts threads. See run/run.hpp for what may be given.
  template <class... Options>
  [[nodiscard]] auto open(Options&&... options) const {
    return open_run(*this, std::forward<Options>(options)...);
  }

  [[nodiscard]] auto begin() const { return begin_pass(*this); }
  [[nodiscard]] auto end() const { return end_pass(*this); }

 private:
  Source source_;
  [[no_unique_address]] stages_type stages_;
};

/// Stages joined without a source: a piece to be put into several plans.
template <class... Stages>
class segment {
 public:
  using penstock_part = segment_tag;
  constexpr explicit segment(pack<Stages...> stages) : stages_(std::move(stages)) {}
  [[nodiscard]] constexpr const pack<Stages...>& stages() const noexcept { return stages_; }

  template <class... Options>
  [[nodiscard]] auto open(Options&&...) const;

 private:
  [[no_unique_address]] pack<Stages...> stages_;
};

/// A plan that still promises each guarantee: `static_assert(elastic<decltype(loader)>)`.
template <class P>
concept indexed = std::remove_cvref_t<P>::template keeps<guarantee::indexed>;
/// Whether a plan gives the same sequence for the same seed.
template <class P>
concept deterministic = std::remove_cvref_t<P>::template keeps<guarantee::deterministic>;
/// Whether a small state restores the exact sequence of a plan.
template <class P>
concept resumable = std::remove_cvref_t<P>::template keeps<guarantee::resumable>;
/// Whether a plan's global steps have the same samples on any number of ranks.
template <class P>
concept elastic = std::remove_cvref_t<P>::template keeps<guarantee::elastic>;
/// Whether all ranks do the same number of batches of a plan, known before reading.
template <class P>
concept lockstep = std::remove_cvref_t<P>::template keeps<guarantee::lockstep>;

}  // namespace penstock::inline v0_1

// ---- penstock/core/pipe.hpp

/// `operator|` and its sentences.
namespace penstock::inline v0_1 {

/// What a wrong expression yields after its one error: it swallows the rest of the statement and of the loops
/// over it.
struct ill_formed {
  using penstock_part = poison_tag;
  /// In the place of a batch; and, in a loop without batches, of a number.
  struct batch {
    [[nodiscard]] std::size_t size() const { return 0; }
    [[nodiscard]] std::size_t valid_size() const { return 0; }
    [[nodiscard]] int* begin() const { return nullptr; }
    [[nodiscard]] int* end() const { return nullptr; }
    [[nodiscard]] std::span<int> values() const { return {}; }
    operator int() const { return 0; }  // NOLINT: implicit, so that a sum over samples compiles
  };
  struct epoch_range {
    [[nodiscard]] ill_formed* begin() const { return nullptr; }
    [[nodiscard]] ill_formed* end() const { return nullptr; }
  };
  template <guarantee>
  static constexpr bool keeps = true;
  template <class... Ts>
  [[nodiscard]] ill_formed open(Ts&&...) const {
    return {};
  }
  template <class... Ts>
  [[nodiscard]] epoch_range epochs(Ts&&...) const {
    return {};
  }
  template <class... Ts>
  [[nodiscard]] ill_formed epoch(Ts&&...) const {
    return {};
  }
  [[nodiscard]] batch* next() const { return nullptr; }
  [[nodiscard]] batch* begin() const { return nullptr; }
  [[nodiscard]] batch* end() const { return nullptr; }
};

template <fixed_string Name>
[[nodiscard]] std::span<int> get(const ill_formed::batch&) {
  return {};
}
template <std::size_t I>
[[nodiscard]] std::span<int> get(const ill_formed::batch&) {
  return {};
}

namespace detail {

template <class Context, class Stage>
consteval mistake diagnose_stage() {
  constexpr chain_facts f = Context::facts;
  if constexpr (f.copied && part_of_kind<Stage, batch_tag>) {
    return mistake::batch_after_copy;
  } else if constexpr (f.copied && (value_stage<Stage> || part_of_kind<Stage, device_tag> ||
                                    part_of_kind<Stage, cursor_tag> || part_of_kind<Stage, shard_tag>)) {
    return mistake::stage_after_copy;
  } else if constexpr (f.batched && part_of_kind<Stage, batch_tag>) {
    return mistake::two_batches;
  } else if constexpr (f.batched && value_stage<Stage>) {
    return mistake::value_after_batch;
  } else if constexpr (f.batched && part_of_kind<Stage, cursor_tag>) {
    return mistake::cursor_after_batch;
  } else if constexpr (f.sharded && part_of_kind<Stage, shard_tag>) {
    return mistake::two_shards;
  } else if constexpr (f.batched && part_of_kind<Stage, shard_tag>) {
    return mistake::shard_after_batch;
  } else if constexpr (!f.batched && part_of_kind<Stage, device_tag>) {
    return mistake::copy_without_batch;
  } else if constexpr (!f.batched && part_of_kind<Stage, steps_tag>) {
    return mistake::steps_without_batch;
  } else if constexpr (part_of_kind<Stage, order_tag> && f.forward && !requires { Stage::works_forward; }) {
    return mistake::order_on_forward;
  } else if constexpr (part_of_kind<Stage, order_tag> && (f.decided || (f.forward && f.batched)) &&
                       !requires { Stage::counts_only; }) {
    return mistake::order_after_decider;
  } else if constexpr (part_of_kind<Stage, order_tag> && f.cursor && !f.batched && !f.forward) {
    return mistake::order_after_cursor;
  } else if constexpr (part_of_kind<Stage, cursor_tag> && f.cursor) {
    return mistake::order_after_cursor;
  } else if constexpr (part_of_kind<Stage, cursor_tag> && f.decided) {
    return mistake::cursor_after_decider;
  } else if constexpr (requires { Stage::template diagnose<Context>(); }) {
    return Stage::template diagnose<Context>();
  } else if constexpr (part_of_kind<Stage, pointwise_tag>) {
    using in = typename Context::element;
    if constexpr (requires(const Stage& s, in&& v, const call_for<Stage>& c) {
                    s.apply(std::forward<in>(v), c);
                  })
      return mistake::none;
    else
      return mistake::wrong_argument;
  } else if constexpr (part_of_kind<Stage, decider_tag>) {
    using in = std::remove_cvref_t<typename Context::element>;
    if constexpr (requires(const Stage& s, const in& v, const call_for<Stage>& c) { s.keep(v, c) ? 0 : 1; })
      return mistake::none;
    else
      return mistake::wrong_argument;
  } else {
    return mistake::none;
  }
}

/// The first mistake among stages that follow each other, and the element that reaches the stage that makes
/// it.
template <class Context, class... Stages>
struct diagnose_all {
  static constexpr mistake value = mistake::none;
  using reached = void;
};
template <mistake Wrong, class Context, class Stage, class... Rest>
struct diagnose_from {
  static constexpr mistake value = Wrong;
  using reached = typename Context::element;
};
template <class Context, class Stage, class... Rest>
struct diagnose_from<mistake::none, Context, Stage, Rest...>
    : diagnose_all<typename fold_context<Context, Stage>::type, Rest...> {};
template <class Context, class Stage, class... Rest>
struct diagnose_all<Context, Stage, Rest...>
    : diagnose_from<diagnose_stage<Context, Stage>(), Context, Stage, Rest...> {};

template <class T>
struct parts_of {
  using type = pack<T>;
};
template <class... Stages>
struct parts_of<segment<Stages...>> {
  using type = pack<Stages...>;
};

template <class T>
struct plan_context {
  using type = context_of<T>;
};
template <class Source, class... Stages>
struct plan_context<plan<Source, Stages...>> {
  using type = typename plan<Source, Stages...>::context;
};

template <class L, class Tuple>
struct diagnose_tuple;
template <class L, class... Stages>
struct diagnose_tuple<L, pack<Stages...>> : diagnose_all<typename plan_context<L>::type, Stages...> {};

template <class T>
concept begun = part_of_kind<T, plan_tag> || part_of_kind<T, source_tag>;

template <class L, class R>
consteval mistake diagnose() {
  if constexpr (!part<L>)
    return mistake::not_a_source;
  else if constexpr (!part<R>)
    return mistake::not_a_part;
  else if constexpr (begun<R>)
    return begun<L> ? mistake::two_sources : mistake::no_source;
  else if constexpr (begun<L>)
    return diagnose_tuple<L, typename parts_of<R>::type>::value;
  else
    return mistake::none;
}

/// Whether the sentence of a mistake speaks of the element that reaches the stage.
consteval bool is_about_element(mistake wrong) {
  constexpr mistake all[] = {mistake::no_such_field,
                             mistake::wrong_argument,
                             mistake::not_expandable,
                             mistake::fields_need_names,
                             mistake::codec_wants_bytes,
                             mistake::decode_which_field,
                             mistake::discovered_without_collate,
                             mistake::open_sample_in_batch,
                             mistake::not_batchable};
  for (const mistake one : all)
    if (one == wrong) return true;
  return false;
}

template <mistake Wrong, class L, class R>
struct reached_at {
  using type = void;
};
template <mistake Wrong, class L, class R>
  requires(is_about_element(Wrong))
struct reached_at<Wrong, L, R> {
  using type = reached_by<typename diagnose_tuple<L, typename parts_of<R>::type>::reached>;
};

template <class T>
constexpr auto stages_tuple(T&& x) {
  if constexpr (part_of_kind<T, plan_tag> || part_of_kind<T, segment_tag>)
    return std::forward<T>(x).stages();
  else
    return make_pack(std::forward<T>(x));
}

template <class Source, class... Stages>
constexpr auto make_plan(Source source, pack<Stages...> stages) {
  return plan<Source, Stages...>(std::move(source), std::move(stages));
}
template <class... Stages>
constexpr auto make_segment(pack<Stages...> stages) {
  return segment<Stages...>(std::move(stages));
}

template <class T>
concept poisoned = part_of_kind<T, poison_tag>;

}  // namespace detail

/// Whether `left | right` makes a pipeline; asks quietly.
template <class Left, class Right>
concept can_connect =
    detail::diagnose<std::remove_cvref_t<Left>, std::remove_cvref_t<Right>>() == mistake::none;

/// Joins a source or plan with a stage, or two stages. A wrong pair fails with one sentence.
template <class Left, class Right>
  requires(part<Left> || part<Right>)
[[nodiscard]] constexpr auto operator|(Left&& left, Right&& right) {
  if constexpr (detail::poisoned<Left> || detail::poisoned<Right>) {
    return ill_formed{};
  } else {
    using left_type = std::remove_cvref_t<Left>;
    using right_type = std::remove_cvref_t<Right>;
    constexpr mistake wrong = detail::diagnose<left_type, right_type>();
    if constexpr (wrong != mistake::none) {
      explain<wrong, typename detail::reached_at<wrong, left_type, right_type>::type>();
      return ill_formed{};
    } else if constexpr (part_of_kind<Left, plan_tag>) {
      return detail::make_plan(left.source(), detail::join(std::forward<Left>(left).stages(),
                                                           detail::stages_tuple(std::forward<Right>(right))));
    } else if constexpr (part_of_kind<Left, source_tag>) {
      return detail::make_plan(std::remove_cvref_t<Left>(std::forward<Left>(left)),
                               detail::stages_tuple(std::forward<Right>(right)));
    } else {
      return detail::make_segment(detail::join(detail::stages_tuple(std::forward<Left>(left)),
                                               detail::stages_tuple(std::forward<Right>(right))));
    }
  }
}

// A plan is a range, so that `plan | std::views::take(3)` would be ambiguous: these know plans by name and
// are preferred.
template <class Source, class... Stages, class Right>
  requires(!part<Right>)
[[nodiscard]] constexpr ill_formed operator|(const plan<Source, Stages...>&, Right&&) {
  explain<std::is_void_v<Right> ? mistake::none : mistake::not_a_part>();
  return {};
}
template <class Source, class... Stages, class Right>
  requires(!part<Right>)
[[nodiscard]] constexpr ill_formed operator|(plan<Source, Stages...>&, Right&&) {
  explain<std::is_void_v<Right> ? mistake::none : mistake::not_a_part>();
  return {};
}
template <class Source, class... Stages, class Right>
  requires(!part<Right>)
[[nodiscard]] constexpr ill_formed operator|(plan<Source, Stages...>&&, Right&&) {
  explain<std::is_void_v<Right> ? mistake::none : mistake::not_a_part>();
  return {};
}

template <class... Stages>
template <class... Options>
auto segment<Stages...>::open(Options&&...) const {
  explain<(sizeof...(Options) + 1 > 0) ? mistake::no_source : mistake::none>();
  return ill_formed{};
}

}  // namespace penstock::inline v0_1

// ---- penstock/core/shape_class.hpp

/// What is known of the shape of an element before it is there: the three shape classes of a batch's slots.
namespace penstock::inline v0_1 {

/// `fixed`: known from the type, written in place. `announced`: known at run time before the bytes are
/// written (blobs, npy, images, containers). `discovered`: known only after decoding (texts); needs a collate
/// policy. `none`: cannot be in a batch.
enum class shape_class { fixed, announced, discovered, none };

namespace detail {

/// A vector of numbers, whosever it is; texts are elements of another kind.
template <class V>
concept resizable_values = requires(V& v, std::size_t n) {
  requires std::is_trivially_copyable_v<typename V::value_type>;
  requires !requires { typename V::traits_type; };
  v.resize(n);
  { v.data() } -> std::same_as<typename V::value_type*>;
};

/// What a batch stores of an element: the type of the numbers, and the shape class.
template <class V>
struct stored {
  static constexpr shape_class shape =
      std::is_trivially_copyable_v<V> && std::is_object_v<V> && !std::is_pointer_v<V> ? shape_class::fixed
                                                                                      : shape_class::none;
  using type = V;
  static constexpr std::size_t elements = 1;
  static constexpr bool scalar = true;
};
template <class T, std::size_t N>
  requires std::is_trivially_copyable_v<T>
struct stored<std::array<T, N>> {
  static constexpr shape_class shape = shape_class::fixed;
  using type = T;
  static constexpr std::size_t elements = N;
  static constexpr bool scalar = false;
};
template <class V, shape_class S>
struct stored_flexible {
  static constexpr shape_class shape = S;
  using type = V;
};
template <blob V>
struct stored<V> : stored_flexible<std::byte, shape_class::announced> {};
template <array_expression V>
struct stored<V> : stored_flexible<typename V::value_type, shape_class::announced> {};
template <static_array_expression V>
struct stored<V> {
  static constexpr shape_class shape = shape_class::fixed;
  using type = typename V::value_type;
  static constexpr std::size_t elements = static_cast<std::size_t>(V::static_shape.elements());
  static constexpr bool scalar = false;
};
template <class T>
struct stored<tensor_view<T>> : stored_flexible<std::remove_cv_t<T>, shape_class::announced> {};
template <class T, std::size_t N>
struct stored<std::span<T, N>> : stored_flexible<std::remove_cv_t<T>, shape_class::announced> {};
template <class V>
  requires resizable_values<V>
struct stored<V> : stored_flexible<typename V::value_type, shape_class::announced> {};
template <>
struct stored<std::string> : stored_flexible<char, shape_class::discovered> {};
template <>
struct stored<std::string_view> : stored_flexible<char, shape_class::discovered> {};
template <open_sample V>
struct stored<V> {
  static constexpr shape_class shape = shape_class::none;
  using type = void;
};

}  // namespace detail

/// The shape class of an element that is no record.
template <class V>
inline constexpr shape_class shape_class_of = detail::stored<std::remove_cvref_t<V>>::shape;

}  // namespace penstock::inline v0_1

// ---- penstock/core/version.hpp

/// The one place where the version is written: the build system and the packages read it from here.
/// The inline namespace carries major and minor, so that two versions in one program are two types.
namespace penstock::inline v0_1 {

/// The first number of the version.
inline constexpr int version_major = 0;
/// The second: while the first is 0, it may change everything.
inline constexpr int version_minor = 1;
/// The third.
inline constexpr int version_patch = 0;
/// The three as a text.
inline constexpr std::string_view version = "0.1.0";

}  // namespace penstock::inline v0_1

// ---- penstock/device/concepts.hpp

/// Where batches end up. A *device* is a value that is part of a plan; `connect()` makes the session that a
/// run owns.
namespace penstock::inline v0_1 {

/// What a run asks of a device. `allocate` and `deallocate` are called when the pool is filled or grows,
/// never in the steady state.
///   allocate(bytes) -> void*          host memory the device reads fast (pinned for CUDA), 64-byte aligned; or it throws
///   deallocate(p, bytes)              noexcept
///   transfer                          what one batch in flight keeps (buffers on the device, an event); default-constructible
///   start(transfer&, columns)         begins to copy the columns of a batch, in order, and returns at once
///   wait(transfer&)                   until the copy is there, as far as the host must wait
///   data(transfer&, i)                const void*: where column i is on the device, after `wait`
///   copies                            false: `start` and `wait` are never called, the batch is used where it is
/// A session whose copies go on after `start` has two more:
///   reuse(transfer&)                  the batch was given back: returns when its slots may be written again. Called once before
///                                     they are, if `start` was; a transfer that is destroyed waits by itself
///   wait_on(transfer&, stream)        makes one more stream wait: `batch.on(stream)`
template <class S>
concept device_session =
    requires(S& s, typename S::transfer& t, std::size_t n, void* p, std::span<const bytes_view> columns) {
      { s.allocate(n) } -> std::same_as<void*>;
      { s.deallocate(p, n) } noexcept;
      s.start(t, columns);
      s.wait(t);
      { s.data(t, n) } -> std::convertible_to<const void*>;
      { S::copies } -> std::convertible_to<bool>;
    };

/// A value that is part of a plan; `connect()` makes the session that a run owns.
template <class D>
concept device = std::copy_constructible<D> && requires(const D& d) {
  typename D::session;
  requires device_session<typename D::session>;
  { d.connect() } -> std::same_as<typename D::session>;
  { d.describe() } -> std::convertible_to<std::string>;
};

}  // namespace penstock::inline v0_1

// ---- penstock/device/host.hpp

namespace penstock::inline v0_1 {

/// The host as the place where batches end up: nothing is copied, a batch is used in the slots it was written
/// to.
struct host {
  class session {
   public:
    static constexpr bool copies = false;
    struct transfer {};

    [[nodiscard]] void* allocate(std::size_t bytes) { return ::operator new(bytes, std::align_val_t{64}); }
    void deallocate(void* p, std::size_t /*bytes*/) noexcept { ::operator delete(p, std::align_val_t{64}); }
    void start(transfer&, std::span<const bytes_view>) {}
    void wait(transfer&) {}
    [[nodiscard]] const void* data(transfer&, std::size_t) { return nullptr; }
  };

  [[nodiscard]] session connect() const { return {}; }
  [[nodiscard]] std::string describe() const { return "host"; }
};

}  // namespace penstock::inline v0_1

// ---- penstock/device/simulated.hpp

namespace penstock::inline v0_1 {

/// An accelerator that computes nothing: it takes a given time per batch and per byte copied, so that stalls
/// can be measured on any machine.
///
/// `pin_and_copy(accelerator)` copies batches to it; `accelerator.step()` in the training loop takes `step`
/// of time, as a launch that is waited for does. `stall()` is the share of the time since the first step in
/// which it had nothing to do. Copies of a `simulated`
/// share one clock and one account; `step()` and the figures belong to the thread of the training loop.
template <class = void>
class basic_simulated {
  using clock = std::chrono::steady_clock;
  struct account {
    clock::time_point first{}, free_at{};
    clock::duration busy{};
    std::size_t steps = 0;
  };

 public:
  struct options {
    std::chrono::microseconds step{1000};  ///< time per batch
    double bytes_per_second = 0;           ///< of a copy to the device; 0: as fast as memory
  };

  basic_simulated() : basic_simulated(options{}) {}
  explicit basic_simulated(options given) : options_(given), account_(new account()) {}

  class session {
   public:
    static constexpr bool copies = true;
    struct transfer {
      std::vector<buffer> columns;
      clock::time_point done{};
    };

    explicit session(options given) : options_(given) {}

    [[nodiscard]] void* allocate(std::size_t bytes) { return ::operator new(bytes, std::align_val_t{64}); }
    void deallocate(void* p, std::size_t /*bytes*/) noexcept { ::operator delete(p, std::align_val_t{64}); }
    /// Copies at once (the simulated engine is this thread) and is done when the given bandwidth would be.
    void start(transfer& t, std::span<const bytes_view> columns) {
      const auto begin = std::max(clock::now(), link_free_);
      if (t.columns.size() < columns.size()) t.columns.resize(columns.size());
      double bytes = 0;
      for (std::size_t i = 0; i < columns.size(); ++i) {
        t.columns[i].resize_for_overwrite(columns[i].size());
        if (!columns[i].empty()) std::memcpy(t.columns[i].data(), columns[i].data(), columns[i].size());
        bytes += static_cast<double>(columns[i].size());
      }
      t.done = begin;
      if (options_.bytes_per_second > 0)
        t.done += std::chrono::duration_cast<clock::duration>(
            std::chrono::duration<double>(bytes / options_.bytes_per_second));
      link_free_ = t.done;
    }
    void wait(transfer& t) { std::this_thread::sleep_until(t.done); }
    [[nodiscard]] const void* data(transfer& t, std::size_t i) { return t.columns[i].data(); }

   private:
    options options_;
    clock::time_point link_free_{};
  };

  [[nodiscard]] session connect() const { return session(options_); }
  [[nodiscard]] std::string describe() const {
    return detail::text({"simulated accelerator (", options_.step.count(), " us a step)"});
  }

  /// Takes the time of one training step.
  void step() const {
    const auto now = clock::now();
    if (account_->steps++ == 0) account_->first = now;
    account_->busy += options_.step;
    account_->free_at = now + options_.step;
    std::this_thread::sleep_until(account_->free_at);
  }
  [[nodiscard]] std::size_t steps() const { return account_->steps; }
  /// The share of the time from the first step to the end of the last in which the device waited; 0 before
  /// the first.
  [[nodiscard]] double stall() const {
    if (account_->steps == 0) return 0;
    const auto whole_time = account_->free_at - account_->first;
    if (whole_time <= clock::duration::zero()) return 0;
    return 1.0 - std::chrono::duration<double>(account_->busy) / std::chrono::duration<double>(whole_time);
  }

 private:
  options options_;
  std::shared_ptr<account> account_;
};
/// The form to use: see `basic_simulated`.
using simulated = basic_simulated<>;

}  // namespace penstock::inline v0_1

// ---- penstock/order/tail.hpp

namespace penstock::inline v0_1 {

/// What becomes of the last global step of an epoch when it is not full.
enum class tail : std::uint8_t {
  drop,  ///< it is left out, on all ranks
  pad,   ///< every rank gets a batch of the usual size; slots without a sample are marked invalid
  keep,  ///< its positions are divided over the ranks; a rank may get an empty batch
};

/// The name of a policy, as it is written here.
[[nodiscard]] constexpr std::string_view to_string(tail policy) noexcept {
  switch (policy) {
    case tail::drop:
      return "drop";
    case tail::pad:
      return "pad";
    case tail::keep:
      return "keep";
  }
  return "unknown";
}

}  // namespace penstock::inline v0_1

// ---- penstock/order/concepts.hpp

/// Which sample is next: orders are arithmetic on positions, and every one of them can be turned round.
namespace penstock::inline v0_1 {

/// Which samples of the source stand before a stage, where that is the same in every epoch: for stages that
/// need to know something of each sample, such as `subset`. Immutable, free for all threads; used while an
/// order is made, and not for samples.
class source_places {
 public:
  using look_up = std::uint64_t (*)(const void*, std::uint64_t);

  /// Position i is sample i of the dataset with this fingerprint (0: not known) and so many samples.
  source_places(std::uint64_t dataset, std::uint64_t samples) noexcept
      : dataset_(dataset), samples_(samples) {}
  /// Position i is what `find(owner, i)` gives.
  source_places(const source_places& before, look_up find, std::shared_ptr<const void> owner) noexcept
      : dataset_(before.dataset_), samples_(before.samples_), find_(find), owner_(std::move(owner)) {}

  [[nodiscard]] std::uint64_t dataset() const noexcept { return dataset_; }
  [[nodiscard]] std::uint64_t samples() const noexcept { return samples_; }
  /// Whether position i is sample i.
  [[nodiscard]] bool as_stored() const noexcept { return find_ == nullptr; }
  [[nodiscard]] std::uint64_t operator()(std::uint64_t index) const {
    return find_ == nullptr ? index : find_(owner_.get(), index);
  }

 private:
  std::uint64_t dataset_, samples_;
  look_up find_ = nullptr;
  std::shared_ptr<const void> owner_;
};

/// What an order stage sees of the stage before it.
struct order_input {
  /// Positions per epoch.
  std::uint64_t size = 0;
  /// Where shards begin: shards + 1 ascending offsets, the first 0, the last `size`. Null when unknown: then
  /// there is one shard.
  std::shared_ptr<const std::vector<std::uint64_t>> starts = nullptr;
  /// Which samples of the source these are. Null where it is not known, or another in every epoch. A stage
  /// that wants it says `static constexpr bool wants_places = true`.
  std::shared_ptr<const source_places> places = nullptr;
};

/// A run of positions, both ends included, ordered by epoch and then by index.
struct position_range {
  position first;
  position last;
};

/// A value for every sample of a dataset: its label, its weight, the patient it belongs to.
///   value_type       what a value is: a number, or std::string_view
///   size()           samples
///   v[i]             the value of sample i, in the order of the source; any thread
///   dataset()        the fingerprint of the dataset, 0 where it is not known
///   fingerprint()    changes when a value does
///   describe()       a few words for people
/// Cheap to copy. It may have `same_until(i)`: the first sample behind i that may have another value.
template <class V>
concept sample_values = std::copy_constructible<V> && requires(const V& v, std::uint64_t i) {
  typename V::value_type;
  { v[i] } -> std::convertible_to<typename V::value_type>;
  { v.size() } -> std::same_as<std::uint64_t>;
  { v.dataset() } -> std::same_as<std::uint64_t>;
  { v.fingerprint() } -> std::same_as<std::uint64_t>;
  { v.describe() } -> std::convertible_to<std::string>;
};

/// An order that is fixed for one epoch: the position before the stage, from the index after it.
/// Default-constructible (and then not to be called), copyable, and callable from many threads.
template <class B>
concept bound_order =
    std::default_initializable<B> && std::copyable<B> && requires(const B& b, std::uint64_t index) {
      { b(index) } -> std::same_as<position>;
    };

/// An order: immutable, cheap to copy, shared between threads. `size` is the number of positions per epoch
/// after the stage, `bind` makes what one epoch needs (at most O(shards), save for the orders of other
/// libraries, which need a table of the epoch), `position_of` is the inverse: nothing where the stage drops
/// the position.
///
/// Optional members: `std::uint64_t lanes() const` where the stage sets the number of lanes (otherwise it
/// keeps those before it);
/// `position_range reach(position_range) const` where the positions before the stage are known more closely
/// than "any of these epochs"; `static constexpr bool changes_epoch = true` where the epoch before the stage
/// is not the epoch after it; `static constexpr bool repeats = true` where a sample may stand at several
/// positions of an epoch, `position_of` is then the first of them, and may have to look for it.
template <class O>
concept order = std::copy_constructible<O> && requires(const O& o, std::uint64_t epoch, position at) {
  typename O::bound;
  { o.size() } -> std::same_as<std::uint64_t>;
  { o.output() } -> std::same_as<order_input>;
  { o.bind(epoch) } -> std::same_as<typename O::bound>;
  { o.position_of(at) } -> std::same_as<std::optional<position>>;
} && bound_order<typename O::bound>;

/// An order stage: the plan-level value from which `make` builds the order, once the size before it is known.
/// `describe` is for people; `fingerprint(h)` calls `h.add(stage_name, numbers...)` with all that determines
/// the sequence.
template <class S>
concept order_stage = std::copy_constructible<S> && std::same_as<typename S::penstock_part, order_tag> &&
                      requires(const S& s, order_input in) {
                        { S::stage_name } -> std::convertible_to<std::string_view>;
                        { s.describe() } -> std::same_as<std::string>;
                        { s.make(std::move(in)) } -> order;
                      };

/// The order that stage `S` makes.
template <order_stage S>
using order_of = decltype(std::declval<const S&>().make(std::declval<order_input>()));

}  // namespace penstock::inline v0_1

// ---- penstock/order/chain.hpp

namespace penstock::inline v0_1 {

namespace detail {

template <class Order>
concept epoch_changing = requires { requires Order::changes_epoch; };
template <class Order>
concept repeating = requires { requires Order::repeats; };

/// The bound orders of one stage, for consecutive epochs.
template <class Bound>
class bound_epochs {
 public:
  [[nodiscard]] position operator()(position at) const {
    return bounds_[static_cast<std::size_t>(at.epoch - first_)](at.index);
  }

  template <class Order>
  void rebind(const Order& made, std::uint64_t first, std::uint64_t last) {
    const std::uint64_t count = last - first + 1;
    if (count > most) {
      throw error(errc::limit, {"a shuffle over ", count,
                                " repeated epochs would bind them all; write shuffle before repeat"});
    }
    if (first == first_ && count == bounds_.size()) return;
    if (first >= first_ && first - first_ < bounds_.size()) {
      bounds_.erase(bounds_.begin(), bounds_.begin() + static_cast<std::ptrdiff_t>(first - first_));
      if (bounds_.size() > count) bounds_.resize(static_cast<std::size_t>(count));
    } else {
      bounds_.clear();
    }
    first_ = first;
    try {
      while (bounds_.size() < count) bounds_.push_back(made.bind(first + bounds_.size()));
    } catch (...) {
      bounds_.clear();  // half a range must not look like one that is bound
      throw;
    }
  }

 private:
  static constexpr std::uint64_t most = std::uint64_t{1} << 20;

  std::uint64_t first_ = 0;
  std::vector<Bound> bounds_;
};

/// The same for a stage after which no stage changes the epoch: one bound order, in place.
template <class Bound>
class bound_epoch {
 public:
  [[nodiscard]] position operator()(position at) const { return bound_(at.index); }

  template <class Order>
  void rebind(const Order& made, std::uint64_t first, std::uint64_t) {
    if (epoch_ == first && there_) return;
    there_ = false;
    bound_ = made.bind(first);
    epoch_ = first;
    there_ = true;
  }

 private:
  std::uint64_t epoch_ = 0;
  bool there_ = false;
  Bound bound_;
};

}  // namespace detail

/// The orders of a plan, one after another, as one: position after the last stage to position in the source,
/// and back.
///
/// `Orders` stand in the plan's order; a position is turned back by the last one first. Without orders it is
/// the identity.
/// Immutable, cheap to copy, free for all threads. Throws what the stages throw: `error(errc::argument)`.
///
///     const auto chain = make_order_chain({source.size(), source.starts()}, shuffle(7), take(1000));
///     auto binding = chain.bind(epoch, 0, chain.size());
///     for (std::uint64_t i = 0; i < chain.size(); ++i) load(binding(i).index);
template <order... Orders>
class order_chain {
  static constexpr std::size_t count = sizeof...(Orders);
  using order_pack = pack<Orders...>;

  /// Whether a stage after number i gives it epochs other than the chain's.
  template <std::size_t I>
  static constexpr bool many_epochs() {
    constexpr std::array<bool, count + 1> changing{detail::epoch_changing<Orders>..., false};
    for (std::size_t later = I + 1; later < count; ++later) {
      if (changing[later]) return true;
    }
    return false;
  }

  template <std::size_t I>
  using level = std::conditional_t<many_epochs<I>(),
                                   detail::bound_epochs<typename detail::type_at<I, order_pack>::bound>,
                                   detail::bound_epoch<typename detail::type_at<I, order_pack>::bound>>;

  template <class Numbers>
  struct levels_of;
  template <std::size_t... I>
  struct levels_of<std::index_sequence<I...>> {
    using type = pack<level<I>...>;
  };

 public:
  /// Everything that turning indices of one epoch into source positions needs. Calling it allocates nothing
  /// and takes no lock; it keeps its tables alive by itself. Copyable; a call on an index outside the bound
  /// range is the caller's mistake and is not checked.
  class binding {
   public:
    binding() = default;

    [[nodiscard]] position operator()(std::uint64_t index) const { return through<count>({epoch_, index}); }
    [[nodiscard]] std::uint64_t epoch() const noexcept { return epoch_; }

   private:
    friend class order_chain;

    template <std::size_t Left>
    [[nodiscard]] position through(position at) const {
      if constexpr (Left == 0) {
        return at;
      } else {
        return through<Left - 1>(detail::at<Left - 1>(levels_)(at));
      }
    }

    std::uint64_t epoch_ = 0;
    typename levels_of<std::make_index_sequence<count>>::type levels_;
  };

  /// Whether a sample may stand at several positions of an epoch.
  static constexpr bool repeats = (detail::repeating<Orders> || ...);

  explicit order_chain(order_input in, order_pack orders) : in_(std::move(in)), orders_(std::move(orders)) {}

  /// Positions per epoch after the last stage.
  [[nodiscard]] std::uint64_t size() const { return output_size<count>(); }
  /// What the first stage sees, and what a stage after the last one would see.
  [[nodiscard]] const order_input& input() const noexcept { return in_; }
  [[nodiscard]] order_input output() const {
    if constexpr (count == 0) {
      return in_;
    } else {
      return detail::at<count - 1>(orders_).output();
    }
  }
  /// The lanes of the last stage that sets their number; 1 where none does. The cut sorts by them.
  [[nodiscard]] std::uint64_t lanes() const {
    std::uint64_t found = 1;
    const auto look = [&found](const auto& stage) {
      if constexpr (requires { stage.lanes(); }) found = stage.lanes();
    };
    orders_.apply([&look](const auto&... stages) { (look(stages), ...); });
    return found;
  }

  /// The source position that stands at `after`. Binds what it needs for this one call: use a binding in
  /// loops.
  [[nodiscard]] position sample_at(position after) const {
    if (after.index >= size()) {
      throw error(errc::argument, {"index ", after.index, " is not below the epoch's size ", size()})
          .at_position(after);
    }
    return back<count>(after);
  }

  /// The position at which a source position stands; nothing where a stage leaves it out.
  [[nodiscard]] std::optional<position> position_of(position source) const {
    if (source.index >= in_.size) return std::nullopt;
    std::optional<position> found = source;
    const auto step = [&found](const auto& stage) {
      if (found) found = stage.position_of(*found);
    };
    orders_.apply([&step](const auto&... stages) { (step(stages), ...); });
    return found;
  }

  /// Binds the indices [first, last) of an epoch.
  [[nodiscard]] binding bind(std::uint64_t epoch, std::uint64_t first, std::uint64_t last) const {
    binding made;
    rebind(made, epoch, first, last);
    return made;
  }

  /// The same into a binding that is there already: what stays bound is kept, so that in the steady state
  /// nothing is allocated.
  void rebind(binding& reused, std::uint64_t epoch, std::uint64_t first, std::uint64_t last) const {
    reused.epoch_ = epoch;
    last = std::min(last, size());
    if (first >= last) return;
    rebind_level<count>(reused, {{epoch, first}, {epoch, last - 1}});
  }

 private:
  template <std::size_t Left>
  [[nodiscard]] std::uint64_t output_size() const {
    if constexpr (Left == 0) {
      return in_.size;
    } else {
      return detail::at<Left - 1>(orders_).size();
    }
  }

  template <std::size_t Left>
  [[nodiscard]] position back(position at) const {
    if constexpr (Left == 0) {
      return at;
    } else {
      return back<Left - 1>(detail::at<Left - 1>(orders_).bind(at.epoch)(at.index));
    }
  }

  template <std::size_t Left>
  void rebind_level(binding& reused, position_range after) const {
    if constexpr (Left != 0) {
      const auto& stage = detail::at<Left - 1>(orders_);
      detail::at<Left - 1>(reused.levels_).rebind(stage, after.first.epoch, after.last.epoch);
      if constexpr (Left != 1) {
        if constexpr (requires { stage.reach(after); }) {
          after = stage.reach(after);
        } else {
          after.first.index = 0;
          after.last.index = output_size<Left - 1>() - 1;
        }
        rebind_level<Left - 1>(reused, after);
      }
    }
  }

  order_input in_;
  order_pack orders_;
};

namespace detail {

template <class... Made>
[[nodiscard]] auto extend_chain(const order_input& first, order_input, pack<Made...> made) {
  return order_chain<Made...>(first, std::move(made));
}

template <class... Made, class Stage, class... Rest>
[[nodiscard]] auto extend_chain(const order_input& first, order_input in, pack<Made...> made,
                                const Stage& stage, const Rest&... rest) {
  auto next = stage.make(std::move(in));
  order_input out = next.output();
  return extend_chain(first, std::move(out), join(std::move(made), make_pack(std::move(next))), rest...);
}

}  // namespace detail

/// The chain of these stages over a source with this input.
template <order_stage... Stages>
[[nodiscard]] auto make_order_chain(order_input in, const Stages&... stages) {
  return detail::extend_chain(in, in, pack<>{}, stages...);
}

/// The type that `make_order_chain` gives for these stages.
template <order_stage... Stages>
using order_chain_of = order_chain<order_of<Stages>...>;

}  // namespace penstock::inline v0_1

// ---- penstock/order/world.hpp

namespace penstock::inline v0_1 {

/// Who takes part in the run, and which of them we are.
///
/// `rank` and `size` count processes; `local_rank` and `local_size` those on this machine; `node` and `nodes`
/// the machines. Where a launcher does not name the node, ranks are taken to fill one machine after another.
/// `launcher` says where it was read from.
///
///     const auto here = penstock::world::from_environment();
///     auto loader = source | shuffle(7) | shard(here) | batch(256);
struct world {
  std::uint64_t rank = 0;
  std::uint64_t size = 1;
  std::uint64_t local_rank = 0;
  std::uint64_t local_size = 1;
  std::uint64_t node = 0;
  std::uint64_t nodes = 1;
  std::string_view launcher = "none";

  /// Throws `error(errc::argument)` where rank, local rank or node is not below its number.
  void check() const;

  /// The world in which groups of k consecutive ranks get the same samples, as the members of a
  /// tensor-parallel group want.
  [[nodiscard]] world replicated(std::uint64_t k) const;

  /// The world that the launcher describes in the environment; alone where there is none.
  ///
  /// The first family that is there wins, and all numbers come from it: torchrun (RANK with WORLD_SIZE), Open
  /// MPI, MVAPICH, PMI (Hydra, MPICH, Intel MPI), Flux, Slurm (inside a step only: in a batch script
  /// SLURM_PROCID is 0 on whatever number of tasks). torchrun comes first, since under `srun torchrun`
  /// SLURM_PROCID numbers machines.
  /// Throws `error(errc::argument)` when a family is there in half (RANK without WORLD_SIZE), when a number
  /// cannot be read or does not fit, and when a launcher gives a rank and no size (PMIx, PALS, an indexed
  /// Kubernetes job): say `shard(rank, size)` then.
  [[nodiscard]] static world from_environment() {
    return from_environment([](const char* name) { return static_cast<const char*>(std::getenv(name)); });
  }

  /// The same with another way to look names up: `lookup(name)` gives a C string, null when the name is not
  /// set.
  template <class Lookup>
  [[nodiscard]] static world from_environment(const Lookup& lookup);

  friend bool operator==(const world&, const world&) = default;
};

inline void world::check() const {
  const auto below = [](std::uint64_t number, std::uint64_t limit, const char* what, const char* of) {
    if (number < limit) return;
    throw error(errc::argument,
                {what, " ", number, " is not below the ", of, " ", limit, "; they count from 0"})
        .in_stage("world");
  };
  below(rank, size, "rank", "world's size");
  below(local_rank, local_size, "local rank", "local size");
  below(node, nodes, "node", "number of nodes");
}

inline world world::replicated(std::uint64_t k) const {
  if (k == 0 || size % k != 0) {
    throw error(errc::argument, {size, " ranks cannot be divided into groups of ", k}).in_stage("world");
  }
  world made = *this;
  made.rank = rank / k;
  made.size = size / k;
  return made;
}

namespace detail {

/// Reads numbers of one launcher from the environment.
template <class Lookup>
struct world_reader {
  const Lookup& lookup;

  [[nodiscard]] bool has(const char* name) const { return lookup(name) != nullptr; }

  [[nodiscard]] std::optional<std::uint64_t> find(const char* name) const {
    const char* text = lookup(name);
    if (text == nullptr) return std::nullopt;
    const std::string_view digits(text);
    std::uint64_t number = 0;
    const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (failure != std::errc{} || end != digits.data() + digits.size()) {
      throw error(errc::argument,
                  {"the environment says ", name, "=", digits.substr(0, 80), ", which is not a whole number"})
          .in_stage("world");
    }
    return number;
  }

  [[nodiscard]] std::uint64_t need(const char* name, const char* because) const {
    if (const auto number = find(name)) return *number;
    throw error(errc::argument,
                {"the environment has ", because, " without ", name, "; set both or say shard(rank, size)"})
        .in_stage("world");
  }

  /// A family with a name for each number; null where it has none.
  struct family {
    const char* launcher;
    const char *rank, *size, *local_rank, *local_size, *node, *nodes;
  };

  [[nodiscard]] world read(const family& names) const {
    world made;
    made.launcher = names.launcher;
    made.rank = need(names.rank, names.size);
    made.size = need(names.size, names.rank);
    complete(made, optional(names.local_rank), optional(names.local_size), optional(names.node),
             optional(names.nodes));
    return made;
  }

  [[nodiscard]] std::optional<std::uint64_t> optional(const char* name) const {
    return name == nullptr ? std::nullopt : find(name);
  }

  /// Fills what the launcher left out: without a local size there is one process a machine, or as many as the
  /// local rank needs.
  static void complete(world& made, std::optional<std::uint64_t> local_rank,
                       std::optional<std::uint64_t> local_size, std::optional<std::uint64_t> node,
                       std::optional<std::uint64_t> nodes) {
    if (made.rank >= made.size) made.check();
    made.local_rank = local_rank.value_or(0);
    made.local_size =
        local_size.value_or(nodes && *nodes != 0 ? (made.size + *nodes - 1) / *nodes : made.local_rank + 1);
    const std::uint64_t each = made.local_size == 0 ? 1 : made.local_size;
    made.node = node.value_or(made.rank / each);
    made.nodes = nodes.value_or((made.size - 1) / each + 1);
    if (made.node >= made.nodes && !nodes) made.nodes = made.node + 1;
    made.check();
  }
};

/// Tasks on node number `node` of a Slurm list such as `2(x3),1`: 2 each on three nodes, then 1.
template <class = void>
[[nodiscard]] std::optional<std::uint64_t> slurm_tasks(std::string_view list, std::uint64_t node) {
  const auto number = [&list]() -> std::optional<std::uint64_t> {
    std::uint64_t value = 0;
    const auto [end, failure] = std::from_chars(list.data(), list.data() + list.size(), value);
    if (failure != std::errc{}) return std::nullopt;
    list.remove_prefix(static_cast<std::size_t>(end - list.data()));
    return value;
  };
  while (true) {
    const auto tasks = number();
    if (!tasks) return std::nullopt;
    std::uint64_t times = 1;
    if (list.starts_with("(x")) {
      list.remove_prefix(2);
      const auto repeated = number();
      if (!repeated || !list.starts_with(")")) return std::nullopt;
      times = *repeated;
      list.remove_prefix(1);
    }
    if (node < times) return tasks;
    node -= times;
    if (!list.starts_with(",")) return std::nullopt;
    list.remove_prefix(1);
  }
}

}  // namespace detail

template <class Lookup>
world world::from_environment(const Lookup& lookup) {
  using reader = detail::world_reader<Lookup>;
  const reader environment{lookup};
  using family = typename reader::family;
  if (environment.has("RANK")) {
    return environment.read(family{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE",
                                   "GROUP_RANK", "GROUP_WORLD_SIZE"});
  }
  for (const family& names :
       {family{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
               "OMPI_COMM_WORLD_LOCAL_SIZE", nullptr, nullptr},
        family{"MVAPICH", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK",
               "MV2_COMM_WORLD_LOCAL_SIZE", nullptr, nullptr},
        family{"PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", nullptr, nullptr},
        family{"Flux", "FLUX_TASK_RANK", "FLUX_JOB_SIZE", "FLUX_TASK_LOCAL_ID", nullptr, nullptr,
               "FLUX_JOB_NNODES"}}) {
    if (environment.has(names.rank)) return environment.read(names);
  }
  // Slurm gives its batch, extern and interactive steps numbers at the top of 32 bits; none of them is a
  // parallel step.
  const auto step = environment.find("SLURM_STEP_ID");
  if (step && *step < 0xfffffff0u && environment.has("SLURM_PROCID")) {
    world made;
    made.launcher = "Slurm";
    made.rank = environment.need("SLURM_PROCID", "SLURM_STEP_ID");
    const auto tasks = environment.find("SLURM_STEP_NUM_TASKS");
    made.size = tasks ? *tasks : environment.need("SLURM_NTASKS", "SLURM_PROCID");
    const auto node = environment.find("SLURM_NODEID");
    const auto step_nodes = environment.find("SLURM_STEP_NUM_NODES");
    const char* list = lookup("SLURM_STEP_TASKS_PER_NODE");
    reader::complete(made, environment.find("SLURM_LOCALID"),
                     list ? detail::slurm_tasks(list, node.value_or(0)) : std::nullopt, node,
                     step_nodes ? step_nodes : environment.find("SLURM_NNODES"));
    return made;
  }
  for (const char* name : {"PMIX_RANK", "PALS_RANKID", "JOB_COMPLETION_INDEX"}) {
    if (!environment.has(name)) continue;
    throw error(errc::argument,
                {"the environment has ", name, " and no size of the world; say shard(rank, size)"})
        .in_stage("world");
  }
  if (const auto size = environment.find("WORLD_SIZE"); size && *size > 1)
    static_cast<void>(environment.need("RANK", "WORLD_SIZE"));
  return {};
}

}  // namespace penstock::inline v0_1

// ---- penstock/run/parts.hpp

/// What a run picks out of a plan: which stages are which, and where they stand.
namespace penstock::inline v0_1 {

namespace detail {

template <class Tuple>
struct parts_in;

template <class... Stages>
struct parts_in<pack<Stages...>> {
  static constexpr std::size_t count = sizeof...(Stages);

  /// The place of the first stage of a kind, or `count`.
  template <class Tag>
  static constexpr std::size_t place = [] {
    std::size_t found = count, i = 0;
    ((part_of_kind<Stages, Tag> && found == count ? (found = i, ++i) : ++i), ...);
    return found;
  }();
  static constexpr std::size_t decider =
      place<decider_tag> < place<expander_tag> ? place<decider_tag> : place<expander_tag>;
  static constexpr std::size_t batch = place<batch_tag>;
  static constexpr std::size_t cursor = place<cursor_tag>;
  static constexpr std::size_t shard = place<shard_tag>;

  template <class Tag>
  static constexpr bool has = place<Tag> != count;
};

/// The order stages that stand at places [First, Last), behind those that were found.
template <std::size_t First, std::size_t Last, class... Stages, class... Found>
auto orders_between(const pack<Stages...>& stages, pack<Found...> found = {}) {
  if constexpr (First == Last || First >= sizeof...(Stages)) {
    return found;
  } else if constexpr (part_of_kind<type_at<First, pack<Stages...>>, order_tag>) {
    return orders_between<First + 1, Last>(stages, join(std::move(found), make_pack(at<First>(stages))));
  } else {
    return orders_between<First + 1, Last>(stages, std::move(found));
  }
}

template <class... Stages>
auto chain_of_orders(order_input in, const pack<Stages...>& orders) {
  return orders.apply([&](const auto&... each) { return make_order_chain(std::move(in), each...); });
}

template <class Stage>
inline constexpr bool stage_wants_places = requires { requires Stage::wants_places; };
template <class Orders>
inline constexpr bool any_wants_places = false;
template <class... Stages>
inline constexpr bool any_wants_places<pack<Stages...>> = (stage_wants_places<Stages> || ...);

}  // namespace detail

/// How a stage is called in messages and reports.
template <class Stage>
std::string text_of_stage(const Stage& stage) {
  if constexpr (requires { stage.describe(); })
    return stage.describe();
  else if constexpr (requires { Stage::stage_name; })
    return std::string(Stage::stage_name);
  else
    return "stage";
}

/// The facts about a plan's type that a run needs.
template <class Plan>
struct plan_parts {
  using stages = typename Plan::stages_type;
  using in = detail::parts_in<stages>;
  using element = std::remove_cvref_t<typename Plan::element>;
  static constexpr auto facts = Plan::context::facts;
  static constexpr bool forward = facts.forward;
  static constexpr bool batched = facts.batched;
  static constexpr bool decided = facts.decided;
  static constexpr bool has_cursor = facts.cursor;
  static constexpr bool has_steps = facts.steps;
  /// Batches whose slots are known before anything is evaluated are written in place; else samples go through
  /// chunks.
  static constexpr bool direct = batched && !decided && !forward;
  static constexpr bool shard_before_decider = in::shard < in::decider;
  static constexpr bool shard_before_cursor = in::shard < in::cursor;
  static constexpr std::size_t first_orders_end = in::batch < in::decider ? in::batch : in::decider;
};

/// The order chain from the last order stage before batch and deciders to the source.
template <class Plan>
auto make_sample_orders(const Plan& p) {
  using parts = plan_parts<Plan>;
  auto orders = detail::orders_between<0, parts::first_orders_end>(p.stages());
  order_input in{p.source().size(), p.source().starts()};
  if constexpr (detail::any_wants_places<decltype(orders)>)
    in.places.reset(new source_places(p.source().fingerprint(), in.size));
  return detail::chain_of_orders(std::move(in), orders);
}

/// The world that a plan's `shard` recorded.
template <class Plan>
world world_of(const Plan& p) {
  using in = typename plan_parts<Plan>::in;
  if constexpr (in::template has<shard_tag>)
    return detail::at<in::shard>(p.stages()).part;
  else
    return world{};
}

/// The options that the annotations of a plan give, wherever they stand.
template <class Plan>
run_options options_of(const Plan& p) {
  using in = typename plan_parts<Plan>::in;
  run_options options;
  std::uint64_t first_seed = 0;
  bool seeded = false;
  [&]<std::size_t... Is>(std::index_sequence<Is...>) {
    [[maybe_unused]] const auto one = [&]<std::size_t I>(std::integral_constant<std::size_t, I>) {
      const auto& stage = detail::at<I>(p.stages());
      if constexpr (part_of_kind<decltype(stage), annotation_tag>) stage.apply(options, I > in::batch);
      if constexpr (part_of_kind<decltype(stage), order_tag> && requires { stage.seed; }) {
        if (!seeded) first_seed = static_cast<std::uint64_t>(stage.seed);
        seeded = true;
      }
    };
    (one(std::integral_constant<std::size_t, Is>{}), ...);
  }(std::make_index_sequence<in::count>{});
  if (!options.seed) options.seed = first_seed;
  return options;
}

/// A fingerprint of what determines the sequence of samples: orders, seeds, deciders, global batch; not
/// workers, depth or device.
template <class Plan>
std::uint64_t sequence_fingerprint(const Plan& p) {
  using in = typename plan_parts<Plan>::in;
  class fingerprint h;
  const auto one = [&]<class Stage>(const Stage& stage) {
    if constexpr (requires { stage.fingerprint(h); })
      stage.fingerprint(h);
    else if constexpr (part_of_kind<Stage, decider_tag> || part_of_kind<Stage, expander_tag>)
      h.add(std::string_view(Stage::stage_name));
  };
  p.stages().apply([&](const auto&... stages) { (one(stages), ...); });
  h.add(*options_of(p).seed);
  // Where shard stands is part of the order only where ranks mix or choose among their own.
  using parts = plan_parts<Plan>;
  if constexpr ((parts::has_cursor && parts::shard_before_cursor) ||
                (parts::decided && parts::shard_before_decider))
    h.add(parts::has_cursor && parts::shard_before_cursor, parts::decided && parts::shard_before_decider);
  if constexpr (in::template has<batch_tag>)
    h.add(detail::at<in::batch>(p.stages()).global_size(world_of(p).size));
  return h.value();
}

/// The same in words, for the message of a state that does not fit: the data, and each stage that counts.
template <class Plan>
std::string sequence_text(const Plan& p) {
  using parts = plan_parts<Plan>;
  constexpr bool deals_early =
      (parts::has_cursor && parts::shard_before_cursor) || (parts::decided && parts::shard_before_decider);
  std::string words = p.source().describe();
  constexpr std::size_t most = 1000;  // a list of files may be long
  if (words.size() > most) words = words.substr(0, most) + "...";
  class fingerprint h;
  const auto one = [&]<class Stage>(const Stage& stage) {
    if constexpr (part_of_kind<Stage, shard_tag>) {
      if (deals_early) words += " | shard";
    } else if constexpr (part_of_kind<Stage, batch_tag>) {
      detail::append(words, {" | batch of ", stage.global_size(world_of(p).size), " in all, tail ",
                             to_string(stage.at_end)});
    } else if constexpr (requires { stage.fingerprint(h); } || part_of_kind<Stage, decider_tag> ||
                         part_of_kind<Stage, expander_tag>) {
      words += " | " + text_of_stage(stage);
    }
  };
  p.stages().apply([&](const auto&... stages) { (one(stages), ...); });
  detail::append(words, {" | seed(", *options_of(p).seed, ')'});
  return words;
}

namespace detail {

/// Where two texts of `sequence_text` part: "it has X where this plan has Y". The same data may be called
/// otherwise.
[[gnu::cold, gnu::noinline]] inline std::string first_difference(std::string_view theirs,
                                                                 std::string_view ours, bool same_data) {
  const auto cut = [](std::string_view& rest) {
    const std::size_t end = std::min(rest.find(" | "), rest.size());
    const std::string_view word = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 3, rest.size()));
    return word;
  };
  if (same_data) cut(theirs), cut(ours);
  while (!theirs.empty() || !ours.empty()) {
    const std::string_view there = cut(theirs), here = cut(ours);
    if (there != here)
      return text({"it has ", there.empty() ? "no more stages" : there, " where this plan has ",
                   here.empty() ? "no more" : here});
  }
  return {};
}

}  // namespace detail

}  // namespace penstock::inline v0_1

// ---- penstock/order/detail/arithmetic.hpp

namespace penstock::inline v0_1::detail {

#if defined(__SIZEOF_INT128__)
/// The upper half of the 128-bit product.
[[nodiscard]] constexpr std::uint64_t multiply_high(std::uint64_t a, std::uint64_t b) noexcept {
  __extension__ using wide = unsigned __int128;
  return static_cast<std::uint64_t>(static_cast<wide>(a) * b >> 64);
}
#else
/// The upper half of the 128-bit product, from four products of halves.
[[nodiscard]] constexpr std::uint64_t multiply_high(std::uint64_t a, std::uint64_t b) noexcept {
  const std::uint64_t a0 = a & 0xffffffffu, a1 = a >> 32, b0 = b & 0xffffffffu, b1 = b >> 32;
  const std::uint64_t middle = a1 * b0 + (a0 * b0 >> 32);
  const std::uint64_t other = a0 * b1 + (middle & 0xffffffffu);
  return a1 * b1 + (middle >> 32) + (other >> 32);
}
#endif

/// Division by a number that stays the same, without the division instruction: multiply by the reciprocal,
/// correct by one.
/// Exact for every dividend: the reciprocal is floor((2^64 - 1) / d), so the first guess is the quotient or
/// one less.
struct divider {
  struct result {
    std::uint64_t quotient, remainder;
  };

  constexpr divider() = default;
  constexpr explicit divider(std::uint64_t by) noexcept : divisor(by), reciprocal(~std::uint64_t{0} / by) {}

  [[nodiscard]] constexpr result operator()(std::uint64_t x) const noexcept {
    const std::uint64_t guess = multiply_high(x, reciprocal);
    const std::uint64_t rest = x - guess * divisor;
    const bool more = rest >= divisor;
    return {guess + (more ? 1u : 0u), rest - (more ? divisor : 0u)};
  }

  std::uint64_t divisor = 1;
  std::uint64_t reciprocal = ~std::uint64_t{0};
};

/// floor(amount * part / parts) for part <= parts < 2^32, without a wider type.
[[nodiscard]] constexpr std::uint64_t share(std::uint64_t amount, std::uint64_t part,
                                            std::uint64_t parts) noexcept {
  return amount / parts * part + amount % parts * part / parts;
}

/// The last of `count` ascending numbers that is not above x; the first must not be. No branch depends on the
/// data.
[[nodiscard]] inline std::uint64_t last_not_above(const std::uint64_t* numbers, std::uint64_t count,
                                                  std::uint64_t x) noexcept {
  std::uint64_t base = 0;
  while (count > 1) {
    const std::uint64_t half = count / 2;
    base += half & (0 - static_cast<std::uint64_t>(numbers[base + half] <= x));
    count -= half;
  }
  return base;
}

}  // namespace penstock::inline v0_1::detail

// ---- penstock/order/cut.hpp

namespace penstock::inline v0_1 {

namespace detail {

/// The positions of one global step sorted by (p mod lanes, p): ordinal to offset in the step and back, both
/// O(1).
///
/// Of m consecutive positions, lane v holds those at offsets d, d + lanes, ..., where d = (v - first) mod
/// lanes. Lanes with d < m mod lanes have one more than the others. In the order of v the lanes below the
/// first position's come first (their d is large), then the others; each of these two groups begins with the
/// lanes that have one more. Hence four runs of lanes of equal length.
template <class = void>
class basic_lane_sorted {
 public:
  constexpr basic_lane_sorted() = default;
  constexpr basic_lane_sorted(std::uint64_t first, std::uint64_t count, std::uint64_t lanes) noexcept
      : lanes_(lanes),
        below_(first % lanes),
        each_(count / lanes),
        by_each_(std::max<std::uint64_t>(1, each_)),
        by_more_(each_ + 1) {
    const std::uint64_t more = count % lanes, above = lanes - below_;
    wrapped_more_ = more > above ? more - above : 0;
    straight_more_ = std::min(more, above);
    ends_[0] = wrapped_more_ * (each_ + 1);
    ends_[1] = ends_[0] + (below_ - wrapped_more_) * each_;
    ends_[2] = ends_[1] + straight_more_ * (each_ + 1);
  }

  [[nodiscard]] constexpr std::uint64_t offset(std::uint64_t ordinal) const noexcept {
    const std::uint64_t above = lanes_ - below_;
    if (ordinal >= ends_[2]) return in_run(by_each_(ordinal - ends_[2]), straight_more_);
    if (ordinal >= ends_[1]) return in_run(by_more_(ordinal - ends_[1]), 0);
    if (ordinal >= ends_[0]) return in_run(by_each_(ordinal - ends_[0]), above + wrapped_more_);
    return in_run(by_more_(ordinal), above);
  }

  [[nodiscard]] constexpr std::uint64_t ordinal(std::uint64_t offset) const noexcept {
    const std::uint64_t above = lanes_ - below_;
    const std::uint64_t lane_offset = offset % lanes_, depth = offset / lanes_;
    const bool wrapped = lane_offset >= above;
    const std::uint64_t number = wrapped ? lane_offset - above : lane_offset;
    const std::uint64_t longer = wrapped ? wrapped_more_ : straight_more_;
    return (wrapped ? 0 : ends_[1]) + number * each_ + std::min(number, longer) + depth;
  }

 private:
  [[nodiscard]] constexpr std::uint64_t in_run(divider::result lane_and_depth,
                                               std::uint64_t run_begin) const noexcept {
    return run_begin + lane_and_depth.quotient + lane_and_depth.remainder * lanes_;
  }

  std::uint64_t lanes_ = 1, below_ = 0, each_ = 0, wrapped_more_ = 0, straight_more_ = 0;
  std::uint64_t ends_[3] = {0, 0, 0};
  divider by_each_, by_more_;
};
using lane_sorted = basic_lane_sorted<>;

}  // namespace detail

/// What one rank has of one global step: slot to position index. Cheap to make; keep it while the step's
/// slots are filled.
template <class = void>
class basic_step_view {
 public:
  constexpr basic_step_view() = default;
  /// Positions from `base` on, all of them valid, without lanes.
  constexpr basic_step_view(std::uint64_t base, std::uint64_t count) noexcept
      : base_(base), slots_(count), valid_(count) {}
  constexpr basic_step_view(std::uint64_t first, std::uint64_t count, std::uint64_t lanes,
                            std::uint64_t begin, std::uint64_t slots, std::uint64_t valid) noexcept
      : base_(first + (lanes == 1 ? begin : 0)), begin_(begin), slots_(slots), valid_(valid) {
    if (lanes != 1) sorted_ = detail::lane_sorted(first, count, lanes);
  }

  /// Slots of this rank's batch; those from `valid()` on are padding.
  [[nodiscard]] constexpr std::uint64_t slots() const noexcept { return slots_; }
  [[nodiscard]] constexpr std::uint64_t valid() const noexcept { return valid_; }

  /// Whether slot s holds position `(*this)[0]` + s: true without lanes.
  [[nodiscard]] constexpr bool contiguous() const noexcept { return !sorted_; }
  /// The position in slot 0, where they are contiguous.
  [[nodiscard]] constexpr std::uint64_t base() const noexcept { return base_; }
  /// The position index in slot `slot`, which must be below `valid()`.
  [[nodiscard]] constexpr std::uint64_t operator[](std::uint64_t slot) const noexcept {
    return base_ + (sorted_ ? sorted_->offset(begin_ + slot) : slot);
  }

 private:
  std::uint64_t base_ = 0, begin_ = 0, slots_ = 0, valid_ = 0;
  std::optional<detail::lane_sorted> sorted_;  // where there are lanes
};
using step_view = basic_step_view<>;

/// Where a position index ends up: global step, rank, slot in that rank's batch.
struct cut_place {
  std::uint64_t step = 0, rank = 0, slot = 0;
  friend constexpr bool operator==(const cut_place&, const cut_place&) = default;
};

/// The cut of an epoch into global steps, and of each step into the ranks' batches: arithmetic on positions,
/// no data.
///
/// Global step s holds the positions [s * global, min((s + 1) * global, size)), whatever the number of ranks.
/// Within a step positions are sorted by (p mod lanes, p), so by p where lanes is 1; rank r of W takes
/// ordinals floor(G r / W) up to floor(G (r + 1) / W). For global = b * W that is b each. Of a last step with
/// m < G positions `tail::keep` divides the m in the same way, `tail::pad` leaves the ordinals from m on
/// empty, `tail::drop` leaves the step out. The number of steps is the same on all ranks.
/// Cost: `at` a few divisions, then one addition a slot (lanes: one multiplication more). Nothing is kept;
/// free for all threads.
/// `check` throws `error(errc::argument)` for a cut that cannot be made; call it once.
///
///     const penstock::cut mine{.size = n, .global = 256 * world, .world = world, .rank = rank};
///     for (std::uint64_t s = 0; s < mine.steps(); ++s)
///       for (auto step = mine.at(s); std::uint64_t slot : slots_of(step)) load(step[slot]);
struct cut {
  std::uint64_t size = 0;    ///< positions per epoch
  std::uint64_t global = 1;  ///< positions per global step
  std::uint64_t world = 1;   ///< ranks
  std::uint64_t rank = 0;    ///< which one is ours
  std::uint64_t lanes = 1;   ///< lanes of the shuffle; 1: none
  tail policy = tail::keep;

  void check() const {
    constexpr std::uint64_t most = 0xffffffffu;
    if (global == 0 || global > most) {
      throw error(errc::argument, {"a global step has 1 to 2^32 - 1 positions, not ", global});
    }
    if (world == 0 || world > most)
      throw error(errc::argument, {"a world has 1 to 2^32 - 1 ranks, not ", world});
    if (rank >= world) {
      throw error(errc::argument, {"rank ", rank, " is not below the world's size ", world});
    }
    if (lanes == 0 || lanes > most)
      throw error(errc::argument, {"there are 1 to 2^32 - 1 lanes, not ", lanes});
    if (size > std::uint64_t{1} << 63)
      throw error(errc::argument, {"an epoch has at most 2^63 positions, not ", size});
  }

  /// Global steps per epoch.
  [[nodiscard]] constexpr std::uint64_t steps() const noexcept {
    return size / global + (policy != tail::drop && size % global != 0 ? 1 : 0);
  }
  /// Positions in step s over all ranks.
  [[nodiscard]] constexpr std::uint64_t count(std::uint64_t step) const noexcept {
    return step >= steps() ? 0 : std::min(global, size - step * global);
  }
  /// Slots in this rank's batch of step s.
  [[nodiscard]] constexpr std::uint64_t slots(std::uint64_t step) const noexcept {
    const std::uint64_t divided = divided_by_ranks(step);
    return detail::share(divided, rank + 1, world) - detail::share(divided, rank, world);
  }
  /// How many of them hold a sample; they come first.
  [[nodiscard]] constexpr std::uint64_t valid(std::uint64_t step) const noexcept {
    const std::uint64_t divided = divided_by_ranks(step);
    return std::min(count(step), detail::share(divided, rank + 1, world)) -
           std::min(count(step), detail::share(divided, rank, world));
  }
  /// What all whole steps have in common: how many there are, and this rank's part of each.
  struct whole_steps {
    std::uint64_t count = 0, begin = 0, slots = 0;
  };
  [[nodiscard]] constexpr whole_steps whole() const noexcept {
    const std::uint64_t begin = detail::share(global, rank, world);
    return {size / global, begin, detail::share(global, rank + 1, world) - begin};
  }
  /// The position index in a slot of step s; nothing where the slot is padding or does not exist.
  [[nodiscard]] constexpr std::optional<std::uint64_t> index_of(std::uint64_t step,
                                                                std::uint64_t slot) const noexcept {
    if (slot >= valid(step)) return std::nullopt;
    return at(step)[slot];
  }
  /// The slots of step s, for the inner loop.
  [[nodiscard]] constexpr step_view at(std::uint64_t step) const noexcept {
    return {step * global, count(step), lanes, detail::share(divided_by_ranks(step), rank, world),
            slots(step),   valid(step)};
  }
  /// The inverse, over all ranks: nothing for an index that is dropped or not below `size`.
  [[nodiscard]] constexpr std::optional<cut_place> slot_of(std::uint64_t index) const noexcept {
    const std::uint64_t step = index / global;
    if (index >= size || step >= steps()) return std::nullopt;
    const std::uint64_t offset = index - step * global, divided = divided_by_ranks(step);
    const std::uint64_t ordinal =
        lanes == 1 ? offset : detail::lane_sorted(step * global, count(step), lanes).ordinal(offset);
    const std::uint64_t owner = ((ordinal + 1) * world - 1) / divided;
    return cut_place{step, owner, ordinal - detail::share(divided, owner, world)};
  }

 private:
  /// What the ranks divide among them: a whole step's ordinals, or of a last step that is kept those it has.
  [[nodiscard]] constexpr std::uint64_t divided_by_ranks(std::uint64_t step) const noexcept {
    return step >= steps() ? 0 : policy == tail::keep ? count(step) : global;
  }
};

}  // namespace penstock::inline v0_1

// ---- penstock/run/batch_view.hpp

/// What `get<"name">(batch)` gives, by collate policy. Views: they live as long as the batch is held.
namespace penstock::inline v0_1 {

/// Values of different lengths, one sample's after another's.
template <class T>
class ragged_view {
 public:
  ragged_view() = default;
  ragged_view(const T* values, const std::uint64_t* offsets, const extents* shapes, std::size_t size) noexcept
      : values_(values), offsets_(offsets), shapes_(shapes), size_(size) {}

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// All values: those of sample i are [offsets()[i], offsets()[i + 1]).
  [[nodiscard]] std::span<const T> values() const noexcept {
    return {values_, size_ == 0 ? 0 : static_cast<std::size_t>(offsets_[size_])};
  }
  [[nodiscard]] std::span<const std::uint64_t> offsets() const noexcept { return {offsets_, size_ + 1}; }
  [[nodiscard]] std::span<const T> operator[](std::size_t i) const noexcept {
    return {values_ + offsets_[i], static_cast<std::size_t>(offsets_[i + 1] - offsets_[i])};
  }
  [[nodiscard]] const extents& shape(std::size_t i) const noexcept { return shapes_[i]; }

 private:
  const T* values_ = nullptr;
  const std::uint64_t* offsets_ = nullptr;
  const extents* shapes_ = nullptr;
  std::size_t size_ = 0;
};

/// Arrays padded with zeros to the longest along their first length.
template <class T>
class padded_view {
 public:
  padded_view() = default;
  padded_view(tensor_view<const T> values, const std::uint64_t* lengths, const std::uint8_t* mask) noexcept
      : values_(values), lengths_(lengths), mask_(mask) {}

  [[nodiscard]] std::size_t size() const noexcept { return static_cast<std::size_t>(values_.shape()[0]); }
  /// (samples, longest, ...).
  [[nodiscard]] const tensor_view<const T>& values() const noexcept { return values_; }
  [[nodiscard]] const extents& shape() const noexcept { return values_.shape(); }
  /// How long each sample is along the padded length.
  [[nodiscard]] std::span<const std::uint64_t> lengths() const noexcept { return {lengths_, size()}; }
  /// (samples, longest): 1 where there is a value, 0 where there is padding.
  [[nodiscard]] tensor_view<const std::uint8_t> mask() const noexcept {
    return {mask_, extents(values_.shape()[0], values_.shape()[1])};
  }
  /// The values of sample i without its padding.
  [[nodiscard]] std::span<const T> operator[](std::size_t i) const noexcept {
    const tensor_view<const T> row = values_[i];
    const std::uint64_t inner = row.shape().drop_front().elements();
    return {row.data(), static_cast<std::size_t>(lengths_[i] * inner)};
  }

 private:
  tensor_view<const T> values_;
  const std::uint64_t* lengths_ = nullptr;
  const std::uint8_t* mask_ = nullptr;
};

}  // namespace penstock::inline v0_1

// ---- penstock/run/slot_memory.hpp

namespace penstock::inline v0_1 {

/// How many bytes the blocks of a run hold: what `memory(bytes)` bounds.
struct memory_account {
  std::atomic<std::uint64_t> bytes{0};
};

/// A growable piece of slot memory: from the device's session, its capacity kept for the next batch and
/// entered in the account.
template <device_session Session>
class slot_memory {
 public:
  slot_memory() = default;
  slot_memory(Session& session, memory_account& account) : session_(&session), account_(&account) {}
  slot_memory(slot_memory&& other) noexcept
      : session_(other.session_),
        account_(other.account_),
        data_(std::exchange(other.data_, nullptr)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  slot_memory& operator=(slot_memory&& other) noexcept {
    std::swap(session_, other.session_);
    std::swap(account_, other.account_);
    std::swap(data_, other.data_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }
  ~slot_memory() { release(); }

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }

  /// Makes room for `bytes`; the first `keep` bytes stay as they are. Allocates only beyond the capacity.
  void reserve(std::size_t bytes, std::size_t keep = 0) {
    if (bytes <= capacity_) return;
    const std::size_t wanted = capacity_ == 0 ? bytes : bytes + bytes / 4;
    auto* fresh = static_cast<std::byte*>(session_->allocate(wanted));
    if (keep != 0) std::memcpy(fresh, data_, keep);
    release();
    data_ = fresh;
    capacity_ = wanted;
    account_->bytes.fetch_add(wanted, std::memory_order_relaxed);
  }

  /// Gives it back to the session.
  void release() noexcept {
    if (data_ == nullptr) return;
    session_->deallocate(data_, capacity_);
    account_->bytes.fetch_sub(capacity_, std::memory_order_relaxed);
    data_ = nullptr;
    capacity_ = 0;
  }

 private:
  Session* session_ = nullptr;
  memory_account* account_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t capacity_ = 0;
};

}  // namespace penstock::inline v0_1

// ---- penstock/run/whole.hpp

/// Making elements *whole*: from something that lives during one call to something that owns what it needs.
/// It happens where samples are held: in a loop without batches, behind a forward-only source. The memory of
/// a whole value is re-used.
namespace penstock::inline v0_1 {

/// Owned bytes that can be read as a view.
class whole_bytes {
 public:
  whole_bytes() = default;
  [[nodiscard]] bytes_view view() const noexcept { return bytes_.view(); }
  [[nodiscard]] std::size_t size() const noexcept { return bytes_.size(); }
  [[nodiscard]] const std::byte* data() const noexcept { return bytes_.data(); }
  operator bytes_view() const noexcept { return bytes_.view(); }  // NOLINT: it is a view's owner
  [[nodiscard]] buffer& storage() noexcept { return bytes_; }

 private:
  buffer bytes_;
};

/// An owned array with its shape.
template <class T>
class whole_tensor {
 public:
  [[nodiscard]] const extents& shape() const noexcept { return shape_; }
  [[nodiscard]] std::span<const T> values() const noexcept { return values_; }
  [[nodiscard]] tensor_view<const T> view() const noexcept { return {values_.data(), shape_}; }
  operator tensor_view<const T>() const noexcept { return view(); }  // NOLINT: it is a view's owner
  T* resize(const extents& shape) {
    shape_ = shape;
    values_.resize(static_cast<std::size_t>(shape.elements()));
    return values_.data();
  }

 private:
  std::vector<T> values_;
  extents shape_;
};

/// An owned sample whose members are known only at run time.
template <class = void>
class basic_whole_sample {
 public:
  using is_owned_sample = void;
  struct item {
    std::string name;
    whole_bytes bytes;
  };
  [[nodiscard]] const std::string& key() const noexcept { return key_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::string_view name(std::size_t i) const { return items_[i].name; }
  [[nodiscard]] bytes_view member(std::size_t i) const { return items_[i].bytes.view(); }
  /// The bytes of the member of that name; errc::missing when there is none.
  [[nodiscard]] bytes_view operator[](std::string_view name) const {
    for (std::size_t i = 0; i < size_; ++i)
      if (items_[i].name == name) return items_[i].bytes.view();
    throw error(errc::missing, {"the sample has no member '", name, "'"}).for_key(key_);
  }
  template <open_sample S>
  void assign(const S& sample) {
    key_ = sample.key();
    size_ = sample.size();
    if (items_.size() < size_) items_.resize(size_);
    for (std::size_t i = 0; i < size_; ++i) {
      items_[i].name = sample.name(i);
      const auto member = sample.member(i);
      auto& into = items_[i].bytes.storage();
      into.resize_for_overwrite(static_cast<std::size_t>(member.size()));
      member.read_into(into.span());
    }
  }

 private:
  std::string key_;
  std::vector<item> items_;
  std::size_t size_ = 0;
};
using whole_sample = basic_whole_sample<>;

namespace detail {

template <>
struct stored<whole_bytes> : stored_flexible<std::byte, shape_class::announced> {};
template <class T>
struct stored<whole_tensor<T>> : stored_flexible<T, shape_class::announced> {};

template <class T>
struct whole_of {
  using type = T;
};
template <>
struct whole_of<std::string_view> {
  using type = std::string;
};
template <class T>
struct whole_of<std::span<T>> {
  using type = std::vector<std::remove_cv_t<T>>;
};
template <>
struct whole_of<std::span<const std::byte>> {
  using type = whole_bytes;
};
template <class T>
struct whole_of<tensor_view<T>> {
  using type = whole_tensor<std::remove_cv_t<T>>;
};
template <blob T>
struct whole_of<T> {
  using type = whole_bytes;
};
/// A blob whose finished view lives as long as the run (mapped files, memory) needs no copy.
template <blob T>
  requires requires { requires T::lasting; }
struct whole_of<T> {
  using type = bytes_view;
};
template <array_expression T>
struct whole_of<T> {
  using type = whole_tensor<typename T::value_type>;
};
template <open_sample T>
struct whole_of<T> {
  using type = whole_sample;
};
template <class... Fields>
struct whole_of<record<Fields...>> {
  using type = record<basic_field<typename Fields::name_type,
                                  typename whole_of<std::remove_cvref_t<typename Fields::type>>::type>...>;
};

}  // namespace detail

/// The owning form of an element type.
template <class T>
using whole = typename detail::whole_of<std::remove_cvref_t<T>>::type;

/// Puts the owning form of `value` into `into`, re-using its memory.
template <class V, class W>
void make_whole(V&& value, W& into) {
  using value_type = std::remove_cvref_t<V>;
  if constexpr (any_record<value_type>) {
    [&]<std::size_t... Is>(std::index_sequence<Is...>) {
      (make_whole(get<Is>(std::forward<V>(value)), get<Is>(into)), ...);
    }(std::make_index_sequence<value_type::size>{});
  } else if constexpr (open_sample<value_type>) {
    into.assign(value);
  } else if constexpr (std::same_as<W, whole_bytes>) {
    if constexpr (blob<value_type>) {
      into.storage().resize_for_overwrite(static_cast<std::size_t>(value.size()));
      value.read_into(into.storage().span());
    } else if constexpr (std::same_as<value_type, whole_bytes>) {
      into = std::forward<V>(value);
    } else {
      const bytes_view view = value;
      into.storage().resize_for_overwrite(view.size());
      if (!view.empty()) std::memcpy(into.storage().data(), view.data(), view.size());
    }
  } else if constexpr (blob<value_type>) {
    into = value.finish();
  } else if constexpr (array_expression<value_type>) {
    value.write_to(into.resize(value.shape()));
  } else if constexpr (requires {
                         value.shape();
                         value.values();
                       }) {
    const auto values = value.values();
    auto* to = into.resize(value.shape());
    for (const auto& one : values) *to++ = one;
  } else if constexpr (requires { into.assign(value.begin(), value.end()); } &&
                       !std::same_as<value_type, W>) {
    into.assign(value.begin(), value.end());
  } else {
    into = std::forward<V>(value);
  }
}

}  // namespace penstock::inline v0_1

// ---- penstock/run/column.hpp

/// One field of a block: where its values are written, and how they become one piece.
///
/// The life of a column in one round of its block: `begin(slots)` by the consumer; `write(slot, value)` by
/// workers, each slot once;
/// `finish(first, slots, valid)` for each batch by whoever ends the last grain; `view(first, slots)` for the
/// consumer. `copy(...)` moves rows between blocks. A block of several batches has fixed columns only: for
/// the others `first` is 0.
namespace penstock::inline v0_1 {

/// A failure that belongs to one slot.
struct slot_error {
  std::uint64_t slot;
  error what;
};

namespace detail {

template <class V>
constexpr bool is_view_of_values = requires(const V& v) {
  v.data();
  v.size();
};

/// How many values a flexible element has.
template <class V>
std::size_t value_count(const V& v) {
  if constexpr (array_expression<V>)
    return static_cast<std::size_t>(v.shape().elements());
  else if constexpr (requires { v.shape(); })
    return static_cast<std::size_t>(v.shape().elements());
  else
    return static_cast<std::size_t>(v.size());
}

/// Whether a value has this shape; asks without making one where it can.
template <class V>
bool has_shape(const V& v, const extents& shape) {
  if constexpr (requires { v.shape(); })
    return v.shape() == shape;
  else
    return shape.rank() == 1 && shape[0] == static_cast<std::uint64_t>(v.size());
}

template <class V>
extents value_shape(const V& v) {
  if constexpr (requires { v.shape(); })
    return v.shape();
  else
    return extents(static_cast<std::uint64_t>(v.size()));
}

/// Writes a flexible element to its destination.
template <class T, class V>
void write_values(const V& v, T* into) {
  if constexpr (blob<V>) {
    v.read_into({reinterpret_cast<std::byte*>(into), static_cast<std::size_t>(v.size())});
  } else if constexpr (array_expression<V>) {
    v.write_to(into);
  } else if constexpr (requires { v.values(); }) {
    const auto values = v.values();
    if (!values.empty()) std::memcpy(into, values.data(), values.size() * sizeof(T));
  } else {
    if (v.size() != 0) std::memcpy(into, v.data(), v.size() * sizeof(T));
  }
}

}  // namespace detail

/// Values whose shape the type knows: written in place, nothing else to do.
template <class V, class Session>
class fixed_column {
  using stored = detail::stored<V>;

 public:
  using value_type = typename stored::type;

  fixed_column(Session& session, memory_account& account) : memory_(session, account) {}

  void begin(std::size_t slots) { memory_.reserve(slots * row_bytes); }
  /// Room for more rows of a block that is being filled by one thread.
  void grow(std::size_t slots, std::size_t written) {
    memory_.reserve(slots * row_bytes, written * row_bytes);
  }

  template <class U>
  void write(std::size_t slot, U&& value) {
    value_type* into = row(slot);
    if constexpr (static_array_expression<U>)
      value.write_to(into);
    else if constexpr (stored::scalar)
      *into = static_cast<value_type>(std::forward<U>(value));
    else
      copy_row(into, value.data());
  }
  /// Ends rows [first, first + slots), of which `valid` were written.
  void finish(std::size_t first, std::size_t slots, std::size_t valid) {
    if (valid < slots) std::memset(static_cast<void*>(row(first + valid)), 0, (slots - valid) * row_bytes);
  }
  /// Rows [first, first + count) of `other` become rows [to, ...) of this block.
  void copy(std::size_t to, const fixed_column& other, std::size_t first, std::size_t count) {
    if (count != 0)
      std::memcpy(memory_.data() + to * row_bytes, other.memory_.data() + first * row_bytes,
                  count * row_bytes);
  }
  void expect(const extents&) {}
  [[nodiscard]] extents shape() const { return {}; }
  [[nodiscard]] std::uint64_t held() const noexcept { return memory_.capacity(); }
  void release() noexcept { memory_.release(); }

  [[nodiscard]] auto view(std::size_t first, std::size_t slots) const {
    if constexpr (stored::scalar) {
      return std::span<const value_type>(row(first), slots);
    } else if constexpr (static_array_expression<V>) {
      return tensor_view<const value_type>(row(first), V::static_shape.prepend(slots));
    } else {
      return tensor_view<const value_type>(row(first), extents(slots, stored::elements));
    }
  }
  [[nodiscard]] bytes_view bytes(std::size_t first, std::size_t slots) const {
    return {memory_.data() + first * row_bytes, slots * row_bytes};
  }

 private:
  static constexpr std::size_t row_bytes = sizeof(value_type) * stored::elements;
  [[nodiscard]] value_type* row(std::size_t slot) const {
    return reinterpret_cast<value_type*>(memory_.data()) + slot * stored::elements;
  }
  /// A short row with a size that the compiler knows, so that no call is needed; of a long one the library
  /// knows better than the compiler, which makes a string instruction of it.
  static void copy_row(void* into, const void* values) noexcept {
    std::size_t size = row_bytes;
    if constexpr (row_bytes > 256) asm("" : "+r"(size));
    std::memcpy(into, values, size);
  }

  slot_memory<Session> memory_;
};

/// Values whose shape is known at run time.
///
/// Under `stack` a value is written in place where it has the shape of those of the batch before; others go
/// to a side arena and are put in order at the end, so that only the first batches of a run are copied, and
/// in place nothing is noted per value. `ragged` and `pad_to_longest` always go through the arena:
/// where a value stands is known when all are there.
template <class T, class Policy, class Session>
class flexible_column {
  static constexpr bool stacks = std::is_same_v<Policy, stack_policy>;
  static constexpr bool pads = std::is_same_v<Policy, pad_policy>;

  struct entry {
    std::uint64_t round = 0;  // another one: the value is in place and has the expected shape
    const T* where = nullptr;
    extents shape;
  };
  struct piece {
    buffer bytes;
    std::size_t used = 0;
  };

 public:
  using value_type = T;

  flexible_column(Session& session, memory_account& account)
      : memory_(session, account), account_(&account), lock_(std::make_unique<std::mutex>()) {}
  flexible_column(flexible_column&&) noexcept = default;
  flexible_column& operator=(flexible_column&&) noexcept = default;

  void begin(std::size_t slots) {
    if (entries_.size() < slots) entries_.resize(slots);
    if (stacks && !aside_) drop_pieces();  // the shape is known now
    for (auto& p : pieces_) p.used = 0;
    piece_ = 0;
    ++round_;
    stride_ = stacks && shape_.rank() != 0 ? static_cast<std::size_t>(shape_.elements()) : 0;
    if (stacks) memory_.reserve(slots * stride_ * sizeof(T));
    aside_ = false;
  }
  void grow(std::size_t slots, std::size_t written) {
    if (entries_.size() < slots) entries_.resize(slots);
    if (stacks) memory_.reserve(slots * stride_ * sizeof(T), written * stride_ * sizeof(T));
  }

  template <class U>
  void write(std::size_t slot, U&& value) {
    if (stacks && stride_ != 0 && detail::has_shape(value, shape_)) {
      detail::write_values(value, in_place(slot));
    } else {
      T* into = allocate(detail::value_count(value));
      entries_[slot] = {round_, into, detail::value_shape(value)};
      detail::write_values(value, into);
    }
  }

  /// Puts rows in order. Under `stack` throws a `slot_error` for the first slot whose shape is another than
  /// the first one's.
  void finish(std::size_t /*first*/, std::size_t slots, std::size_t valid) {
    if constexpr (stacks)
      finish_stack(slots, valid);
    else if constexpr (pads)
      finish_padded(slots, valid);
    else
      finish_ragged(slots, valid);
  }

  void copy(std::size_t to, const flexible_column& other, std::size_t first, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const bool aside = other.is_aside(first + i);
      write(to + i, tensor_view<const T>(aside ? other.entries_[first + i].where : other.in_place(first + i),
                                         other.shape_at(first + i)));
    }
  }

  /// Bytes of memory, used or not.
  [[nodiscard]] std::uint64_t held() const noexcept {
    std::uint64_t bytes = memory_.capacity();
    for (const piece& p : pieces_) bytes += p.bytes.capacity();
    return bytes;
  }
  /// Gives all memory back.
  void release() noexcept {
    drop_pieces();
    memory_.release();
  }

  /// The shape of the values of the last round, and what a block that begins may expect.
  [[nodiscard]] const extents& shape() const { return shape_; }
  void expect(const extents& shape) { shape_ = shape; }

  [[nodiscard]] auto view(std::size_t /*first*/, std::size_t slots) const {
    if constexpr (stacks)
      return memory_.data() == nullptr  // padding alone, and no sample has shown its shape yet
                 ? tensor_view<const T>(nullptr, extents(slots, 0))
                 : tensor_view<const T>(in_place(0), shape_.prepend(slots));
    else if constexpr (pads)
      return padded_view<T>({in_place(0), shape_.prepend(slots)}, offsets_.data(), mask_.data());
    else
      return ragged_view<T>(in_place(0), offsets_.data(), shapes_.data(), slots);
  }
  [[nodiscard]] bytes_view bytes(std::size_t /*first*/, std::size_t slots) const {
    if (memory_.data() == nullptr) return {};
    if constexpr (stacks || pads)
      return {memory_.data(), slots * static_cast<std::size_t>(shape_.elements()) * sizeof(T)};
    else
      return {memory_.data(), slots == 0 ? 0 : static_cast<std::size_t>(offsets_[slots]) * sizeof(T)};
  }

 private:
  [[nodiscard]] T* in_place(std::size_t slot) const {
    return reinterpret_cast<T*>(memory_.data()) + slot * stride_;
  }

  /// A place in the side arena. Workers share it; what it has allocated it keeps for the next round.
  T* allocate(std::size_t count) {
    const std::size_t bytes = (count * sizeof(T) + 63) / 64 * 64;
    const std::lock_guard guard(*lock_);
    aside_ = true;
    while (piece_ < pieces_.size() && pieces_[piece_].used + bytes > pieces_[piece_].bytes.capacity())
      ++piece_;
    if (piece_ == pieces_.size()) {
      pieces_.emplace_back();
      pieces_.back().bytes.resize_for_overwrite(
          std::max<std::size_t>(bytes, std::size_t{65'536} << std::min<std::size_t>(piece_, 8)));
      account_->bytes.fetch_add(pieces_.back().bytes.capacity(), std::memory_order_relaxed);
    }
    piece& p = pieces_[piece_];
    auto* where = reinterpret_cast<T*>(p.bytes.data() + p.used);
    p.used += bytes;
    return where;
  }

  void drop_pieces() noexcept {
    for (const piece& p : pieces_) account_->bytes.fetch_sub(p.bytes.capacity(), std::memory_order_relaxed);
    pieces_.clear();
  }
  [[nodiscard]] bool is_aside(std::size_t slot) const { return entries_[slot].round == round_; }
  [[nodiscard]] const extents& shape_at(std::size_t slot) const {
    return is_aside(slot) ? entries_[slot].shape : shape_;
  }

  void finish_stack(std::size_t slots, std::size_t valid) {
    if (aside_ && valid != 0) put_in_place(slots, valid);
    if (valid < slots && stride_ != 0)
      std::memset(static_cast<void*>(in_place(valid)), 0, (slots - valid) * stride_ * sizeof(T));
  }
  /// Some values were not of the expected shape: either all have another one, or there is an error.
  void put_in_place(std::size_t slots, std::size_t valid) {
    const extents first = shape_at(0);
    for (std::size_t i = 1; i < valid; ++i)
      if (!(shape_at(i) == first))
        throw slot_error{
            i, error(errc::shape,
                     {"batch cannot stack a value of shape ", to_string(shape_at(i)), " with one of shape ",
                      to_string(first), "; make them equal before batch, or use ragged or pad_to_longest"})
                   .in_stage("batch")};
    stride_ = static_cast<std::size_t>(first.elements());
    memory_.reserve(slots * stride_ * sizeof(T));
    for (std::size_t i = 0; i < valid; ++i)
      if (stride_ != 0) std::memcpy(in_place(i), entries_[i].where, stride_ * sizeof(T));
    shape_ = first;
  }

  void finish_ragged(std::size_t slots, std::size_t valid) {
    offsets_.resize(slots + 1);
    shapes_.resize(slots);
    offsets_[0] = 0;
    for (std::size_t i = 0; i < slots; ++i) {
      shapes_[i] = i < valid ? entries_[i].shape : extents(std::uint64_t{0});
      offsets_[i + 1] = offsets_[i] + shapes_[i].elements();
    }
    memory_.reserve(static_cast<std::size_t>(offsets_[slots]) * sizeof(T));
    for (std::size_t i = 0; i < valid; ++i)
      if (const auto count = static_cast<std::size_t>(offsets_[i + 1] - offsets_[i]); count != 0)
        std::memcpy(in_place(0) + offsets_[i], entries_[i].where, count * sizeof(T));
  }

  void finish_padded(std::size_t slots, std::size_t valid) {
    std::uint64_t longest = 0;
    const extents inner = valid == 0 ? extents() : entries_[0].shape.drop_front();
    for (std::size_t i = 0; i < valid; ++i) {
      const extents& shape = entries_[i].shape;
      if (shape.rank() == 0 || !(shape.drop_front() == inner))
        throw slot_error{i, error(errc::shape, {"batch cannot pad a value of shape ", to_string(shape),
                                                " beside one of shape ", to_string(entries_[0].shape),
                                                ": only the first length may differ"})
                                .in_stage("batch")};
      longest = std::max(longest, shape[0]);
    }
    shape_ = inner.prepend(longest);
    const auto stride = static_cast<std::size_t>(shape_.elements());
    memory_.reserve(slots * stride * sizeof(T));
    offsets_.assign(slots, 0);
    mask_.assign(slots * static_cast<std::size_t>(longest), 0);
    T* into = in_place(0);
    for (std::size_t i = 0; i < slots; ++i, into += stride) {
      std::size_t count = 0;
      if (i < valid) {
        offsets_[i] = entries_[i].shape[0];
        count = static_cast<std::size_t>(entries_[i].shape.elements());
        if (count != 0) std::memcpy(into, entries_[i].where, count * sizeof(T));
        std::fill_n(mask_.begin() + static_cast<std::ptrdiff_t>(i * longest), offsets_[i], std::uint8_t{1});
      }
      if (count != stride) std::memset(static_cast<void*>(into + count), 0, (stride - count) * sizeof(T));
    }
  }

  slot_memory<Session> memory_;
  memory_account* account_;
  std::unique_ptr<std::mutex> lock_;
  std::vector<entry> entries_;
  std::vector<piece> pieces_;
  std::size_t piece_ = 0;
  std::size_t stride_ = 0;
  std::uint64_t round_ = 0;
  bool aside_ = false;
  extents shape_;                       // stack: of the values in place
  std::vector<std::uint64_t> offsets_;  // ragged: offsets; padded: lengths
  std::vector<extents> shapes_;
  std::vector<std::uint8_t> mask_;
};

/// Whole values, for a loop without batches: owned, their memory re-used.
template <class W>
class whole_column {
 public:
  template <class Session>
  whole_column(Session&, memory_account&) {}

  void begin(std::size_t slots) {
    if (cells_.size() < slots) cells_.resize(slots);
  }
  void grow(std::size_t slots, std::size_t) { begin(slots); }
  template <class U>
  void write(std::size_t slot, U&& value) {
    make_whole(std::forward<U>(value), cells_[slot].value);
  }
  void finish(std::size_t, std::size_t, std::size_t) {}
  void expect(const extents&) {}
  [[nodiscard]] extents shape() const { return {}; }
  [[nodiscard]] std::uint64_t held() const noexcept { return 0; }
  void release() noexcept {}
  [[nodiscard]] W& operator[](std::size_t slot) { return cells_[slot].value; }

 private:
  struct cell {  // a vector of bool has no references to its values
    W value{};
  };
  std::vector<cell> cells_;
};

}  // namespace penstock::inline v0_1

// ---- penstock/run/column_set.hpp

/// The columns of a block: one per field of the element, one for an element that is no record.
namespace penstock::inline v0_1 {

namespace detail {

template <class V, class Policy, class Session, shape_class Shape = shape_class_of<V>>
struct column_for {
  using type = flexible_column<typename stored<V>::type, Policy, Session>;
};
template <class V, class Policy, class Session>
struct column_for<V, Policy, Session, shape_class::fixed> {
  using type = fixed_column<V, Session>;
};

template <class Batch, class Session, class V>
struct columns_for {
  using type = pack<typename column_for<V, typename Batch::template policy<void>, Session>::type>;
};
template <class Batch, class Session, class... Fields>
struct columns_for<Batch, Session, record<Fields...>> {
  using type = pack<
      typename column_for<std::remove_cvref_t<typename Fields::type>,
                          typename Batch::template policy<typename Fields::name_type>, Session>::type...>;
};

}  // namespace detail

/// The columns in which a plan's elements are gathered.
template <class Columns>
class column_set {
 public:
  static constexpr std::size_t size = Columns::size;

  template <class Session>
  column_set(Session& session, memory_account& account)
      : columns_(make(session, account, std::make_index_sequence<size>{})) {}

  void begin(std::size_t slots) {
    each([&](auto& column) { column.begin(slots); });
  }
  void grow(std::size_t slots, std::size_t written) {
    each([&](auto& column) { column.grow(slots, written); });
  }
  template <class V>
  void write(std::size_t slot, V&& value) {
    if constexpr (any_record<V> && !whole_rows) {
      [&]<std::size_t... Is>(std::index_sequence<Is...>) {
        (detail::at<Is>(columns_).write(slot, get<Is>(std::forward<V>(value))), ...);
      }(std::make_index_sequence<size>{});
    } else {
      detail::at<0>(columns_).write(slot, std::forward<V>(value));
    }
  }
  void finish(std::size_t first, std::size_t slots, std::size_t valid) {
    std::uint64_t lowest = 0;
    std::exception_ptr failure;  // of several columns, the one of the lowest slot
    each([&](auto& column) {
      try {
        column.finish(first, slots, valid);
      } catch (const slot_error& e) {
        if (failure == nullptr || e.slot < lowest) {
          lowest = e.slot;
          failure = std::current_exception();
        }
      }
    });
    if (failure != nullptr) std::rethrow_exception(failure);
  }
  void copy(std::size_t to, const column_set& other, std::size_t first, std::size_t count) {
    both(other, [&](auto& mine, const auto& theirs) { mine.copy(to, theirs, first, count); });
  }
  /// The shapes that the last round found, and what a round that begins may expect.
  [[nodiscard]] std::array<extents, size> shapes() const {
    return columns_.apply(
        [](const auto&... columns) { return std::array<extents, size>{columns.shape()...}; });
  }
  void expect(const std::array<extents, size>& shapes) {
    std::size_t i = 0;
    each([&](auto& column) { column.expect(shapes[i++]); });
  }
  /// Bytes of memory, used or not.
  [[nodiscard]] std::uint64_t held() const noexcept {
    return columns_.apply([](const auto&... columns) { return (columns.held() + ... + std::uint64_t{0}); });
  }
  void release() noexcept {
    each([](auto& column) { column.release(); });
  }
  template <std::size_t I>
  [[nodiscard]] auto& column() {
    return detail::at<I>(columns_);
  }
  [[nodiscard]] std::array<bytes_view, size> bytes(std::size_t first, std::size_t slots) const {
    return columns_.apply(
        [&](const auto&... columns) { return std::array<bytes_view, size>{columns.bytes(first, slots)...}; });
  }

 private:
  static constexpr bool whole_rows = requires(detail::type_at<0, Columns>& c) { c[0]; };

  template <class Session, std::size_t... Is>
  static Columns make(Session& session, memory_account& account, std::index_sequence<Is...>) {
    return Columns{{detail::pack_slot<Is, detail::type_at<Is, Columns>>{
        detail::type_at<Is, Columns>(session, account)}...}};
  }
  template <class F>
  void each(F f) {
    columns_.apply([&](auto&... columns) { (f(columns), ...); });
  }
  template <class F>
  void both(const column_set& other, F f) {
    [&]<std::size_t... Is>(std::index_sequence<Is...>) {
      (f(detail::at<Is>(columns_), detail::at<Is>(other.columns_)), ...);
    }(std::make_index_sequence<size>{});
  }

  Columns columns_;
};

namespace detail {

template <class Plan, class Session, bool Batched = plan_parts<Plan>::batched>
struct columns_of_plan {
  using parts = plan_parts<Plan>;
  using batch = detail::type_at<parts::in::batch, typename parts::stages>;
  using type = column_set<typename columns_for<batch, Session, typename parts::element>::type>;
};
template <class Plan, class Session>
struct columns_of_plan<Plan, Session, false> {
  using type = column_set<pack<whole_column<whole<typename plan_parts<Plan>::element>>>>;
};

}  // namespace detail

/// The columns of a plan's batches, in memory of a device's session.
template <class Plan, class Session>
using columns_of = typename detail::columns_of_plan<Plan, Session>::type;

}  // namespace penstock::inline v0_1

// ---- penstock/run/payload.hpp

/// What a block of the ring works on, and the pool it comes from.
namespace penstock::inline v0_1 {

/// One batch in a block: which of its rows, and which positions they hold. A block of numbers holds many
/// small batches.
struct batch_part {
  step_view view;
  std::uint64_t first = 0;   // row of the block
  std::uint64_t slots = 0;   // rows
  std::uint64_t valid = 0;   // of them with a sample; they come first
  std::uint64_t global = 0;  // samples of the global step
  position delivered;        // epoch and step as the consumer counts them

  batch_part() noexcept {}  // `= default` would fill the unused tables of the view with zeros
  /// A whole step without lanes: positions from `base` on, and nothing to compute.
  batch_part(std::uint64_t base, std::uint64_t row, std::uint64_t count, std::uint64_t of_all,
             position place) noexcept
      : view(base, count), first(row), slots(count), valid(count), global(of_all), delivered(place) {}

  /// Whether the next one's rows and positions go on where this one's end.
  [[nodiscard]] bool continues_in(const batch_part& next) const noexcept {
    return view.contiguous() && next.view.contiguous() && valid == slots && next.valid != 0 &&
           next.first == first + slots && next.view.base() == view.base() + slots;
  }
};

/// Which positions stand in the rows of a block. Prepared by the consumer before workers may look.
template <class Binding>
struct placement {
  Binding binding;                     // of the order chain, for the positions in here
  std::vector<batch_part> parts;       // batches; a chunk has one part
  std::vector<std::uint64_t> indices;  // positions one by one, where a cursor chose them
  bool listed = false;
  std::uint64_t epoch = 0;  // of the positions
  std::uint64_t slots = 0;  // rows of all parts
  bool last = false;        // chunks: the last one of its pass

  /// The position index in a row.
  [[nodiscard]] std::uint64_t index(std::uint64_t row) const {
    if (listed) return indices[static_cast<std::size_t>(row)];
    std::size_t i = 0;
    while (i + 1 < parts.size() && row >= parts[i + 1].first) ++i;
    return parts[i].view[row - parts[i].first];
  }
};

/// The memory and the facts of a block: of one or more batches, or of a chunk of samples on the way to
/// batches. Prepared by the consumer, filled by workers, handed on in parts, given back when all parts are,
/// used again.
template <class Columns, class Binding, class Transfer>
struct payload : placement<Binding> {
  template <class Session>
  payload(Session& session, memory_account& account) : columns(session, account) {}

  static constexpr std::uint64_t no_slot = std::numeric_limits<std::uint64_t>::max();

  Columns columns;
  std::vector<std::uint32_t> sources;  // chunks: the slot each row came from
  std::uint64_t rows = 0;              // chunks: how many rows there are
  std::vector<std::uint64_t> after;    // chunks of a forward source: where its front stands behind them
  std::vector<position> gathered;      // batches made of chunks: where each row came from
  Transfer transfer;
  bool transferred = false;
  bool from_batches = false;  // of the pool of gathered batches, not of the engine's

  std::atomic<std::uint32_t> shares{0};  // handles out, and parts not handed out yet
  std::shared_ptr<void> owner;           // keeps the pool alive while there are shares

  /// Gives up `n` shares; true when they were the last.
  [[nodiscard]] bool release(std::uint32_t n) noexcept {
    return shares.fetch_sub(n, std::memory_order_acq_rel) == n;
  }

  void clear_failure() noexcept {
    bad_slot = no_slot;
    what = nullptr;
  }
  /// Keeps the failure of the lowest slot.
  void fail(std::uint64_t slot, std::exception_ptr failure) noexcept {
    const std::lock_guard guard(lock);
    if (slot >= bad_slot) return;
    bad_slot = slot;
    what = std::move(failure);
  }

  std::mutex lock;
  std::uint64_t bad_slot = no_slot;
  std::exception_ptr what;
};

/// Payloads that are free, the one used last on top (its memory is still in the cache). Any thread gives
/// back, the consumer takes.
template <class Payload>
class payload_pool {
 public:
  /// Makes room to hold `most`, so that giving back never allocates.
  explicit payload_pool(std::size_t most) : most_(most) {
    all_.reserve(most);
    free_.reserve(most);
  }
  payload_pool(const payload_pool&) = delete;
  payload_pool& operator=(const payload_pool&) = delete;
  ~payload_pool() {
    for (Payload* const one : all_) delete one;
  }

  [[nodiscard]] std::size_t most() const noexcept { return most_; }
  [[nodiscard]] std::size_t made() const noexcept { return all_.size(); }
  [[nodiscard]] bool has_free() {
    const std::lock_guard guard(lock_);
    return !free_.empty();
  }
  [[nodiscard]] std::size_t out() {
    const std::lock_guard guard(lock_);
    return all_.size() - free_.size();
  }

  /// A free one, or null.
  Payload* take() {
    const std::lock_guard guard(lock_);
    if (free_.empty()) return nullptr;
    Payload* top = free_.back();
    free_.pop_back();
    return top;
  }
  /// A new one; the caller has looked at `made()` and `most()`.
  template <class... Args>
  Payload* make(Args&&... args) {
    all_.push_back(nullptr);  // first, so that nothing is lost where this throws
    try {
      return all_.back() = new Payload(std::forward<Args>(args)...);
    } catch (...) {
      all_.pop_back();
      throw;
    }
  }
  void give_back(Payload* p) noexcept {
    const std::lock_guard guard(lock_);
    free_.push_back(p);
  }

 private:
  std::size_t most_;
  std::mutex lock_;
  std::vector<Payload*> all_;  // these are owned
  std::vector<Payload*> free_;
};

}  // namespace penstock::inline v0_1

// ---- penstock/run/batch_handle.hpp

namespace penstock::inline v0_1 {

/// A batch: a move-only handle on memory of the run's pool. Dropping it gives the memory back; it keeps the
/// pool alive, so it may outlive its run. `get<"name">(b)` gives a field: a span or tensor view, or a ragged
/// or padded view by collate policy.
///
/// Views are valid as long as the handle is held. One thread at a time may use a batch; it may be dropped in
/// any thread.
template <class Core>
class batch_handle {
  using payload = typename Core::payload_type;
  using parts = plan_parts<typename Core::plan_type>;

 public:
  using is_batch = void;
  using element = typename parts::element;

  batch_handle() = default;
  /// Takes one share of the payload, which keeps its pool alive.
  batch_handle(payload* p, const batch_part& part) noexcept
      : payload_(p),
        first_(static_cast<std::size_t>(part.first)),
        slots_(static_cast<std::size_t>(part.slots)),
        valid_(static_cast<std::size_t>(part.valid)),
        global_(static_cast<std::size_t>(part.global)),
        place_(part.delivered) {}
  batch_handle(batch_handle&& other) noexcept
      : payload_(std::exchange(other.payload_, nullptr)),
        first_(other.first_),
        slots_(other.slots_),
        valid_(other.valid_),
        global_(other.global_),
        place_(other.place_),
        mask_(std::move(other.mask_)) {}
  batch_handle& operator=(batch_handle&& other) noexcept {
    if (this != &other) {
      reset();
      payload_ = std::exchange(other.payload_, nullptr);
      first_ = other.first_;
      slots_ = other.slots_;
      valid_ = other.valid_;
      global_ = other.global_;
      place_ = other.place_;
      mask_ = std::move(other.mask_);
    }
    return *this;
  }
  ~batch_handle() { reset(); }

  /// Gives the memory back to the pool.
  void reset() noexcept {
    if (payload_ != nullptr) Core::give_up(*std::exchange(payload_, nullptr), 1);
  }
  /// Leaves the handle empty and its share with the caller.
  [[nodiscard]] payload* forget() noexcept {
    mask_.reset();
    return std::exchange(payload_, nullptr);
  }
  [[nodiscard]] explicit operator bool() const noexcept { return payload_ != nullptr; }

  /// Slots of this rank's batch, padding included.
  [[nodiscard]] std::size_t size() const { return slots_; }
  /// Slots that hold a sample; they come first.
  [[nodiscard]] std::size_t valid_size() const { return valid_; }
  /// Samples of the whole global step, all ranks together; behind filter and unbatch this rank's.
  [[nodiscard]] std::size_t global_size() const { return global_; }
  /// 1 for each slot that holds a sample, 0 for padding. Allocates when first asked.
  [[nodiscard]] std::span<const std::uint8_t> valid() const {
    if (mask_ == nullptr) {
      mask_ = std::make_unique<std::uint8_t[]>(slots_);
      std::fill_n(mask_.get(), valid_, std::uint8_t{1});
    }
    return {mask_.get(), slots_};
  }
  [[nodiscard]] std::uint64_t epoch() const { return place_.epoch; }
  /// The number of this batch in its epoch.
  [[nodiscard]] std::uint64_t step() const { return place_.index; }

  /// The global position of each sample. Allocates.
  [[nodiscard]] std::vector<position> positions() const { return Core::positions(*payload_, first_, valid_); }
  /// The key of each sample, from the source; for indexed sources that have keys. Allocates, and may read the
  /// index.
  [[nodiscard]] std::vector<std::string> keys() const
    requires(!parts::forward)
  {
    std::vector<std::string> all;
    for (const position at : positions()) all.push_back(core().key(at));
    return all;
  }

  /// The view of field `I`, in the order of the element's type; 0 for an element that is no record.
  template <std::size_t I>
  [[nodiscard]] auto field() const& {
    return payload_->columns.template column<I>().view(first_, slots_);
  }
  template <std::size_t I>
  auto field() const&& {
    static_assert(I == static_cast<std::size_t>(-1),
                  "penstock: a view into a batch that is about to go; give the batch a name and keep it as "
                  "long as the view");
  }
  /// The one field of a batch whose elements are no records.
  [[nodiscard]] auto values() const&
    requires(!any_record<element>)
  {
    return field<0>();
  }
  [[nodiscard]] auto begin() const&
    requires(!any_record<element> && requires(const batch_handle& b) { b.template field<0>().begin(); })
  {
    return field<0>().begin();
  }
  [[nodiscard]] auto end() const&
    requires(!any_record<element> && requires(const batch_handle& b) { b.template field<0>().end(); })
  {
    return field<0>().end();
  }

  /// Where field `I` is on the device, for a device that copies; else where it is on the host.
  template <std::size_t I = 0>
  [[nodiscard]] const void* device_data() const {
    if constexpr (Core::engine_type::session_type::copies)
      return core().engine.device().data(payload_->transfer, I);
    else
      return payload_->columns.bytes(first_, slots_)[I].data();
  }

  /// For a device with streams (`cuda`): work that is put on `stream` from here on comes after the copy of
  /// this batch, and the batch's device memory is not written before `stream` has passed what was put on it
  /// until the batch was dropped. The device's own stream needs no call.
  template <class Stream>
    requires requires(typename Core::engine_type::session_type& s,
                      typename Core::engine_type::session_type::transfer& t,
                      Stream given) { s.wait_on(t, given); }
  void on(Stream stream) const {
    core().engine.device().wait_on(payload_->transfer, stream);
  }

 private:
  [[nodiscard]] Core& core() const { return *static_cast<Core*>(payload_->owner.get()); }

  payload* payload_ = nullptr;
  std::size_t first_ = 0, slots_ = 0, valid_ = 0, global_ = 0;
  position place_;
  mutable std::unique_ptr<std::uint8_t[]> mask_;
};

/// Any batch, also by reference.
template <class T>
concept any_batch = requires { typename std::remove_cvref_t<T>::is_batch; };

/// The view of a field of a batch: `get<"jpg">(b)`.
template <fixed_string Name, any_batch B>
[[nodiscard]] auto get(B&& b) {
  using element = typename std::remove_cvref_t<B>::element;
  constexpr bool found = has_field<element, name_of<Name>>;
  static_assert(found, "get: the batch has no field of that name; see its element's type");
  static_assert(
      std::is_lvalue_reference_v<B>,
      "penstock: a view into a batch that is about to go; give the batch a name and keep it as long "
      "as the view");
  if constexpr (found)
    return b.template field<element::template index_of<name_of<Name>>>();
  else
    return std::span<const int>();  // so that one error is all
}
template <std::size_t I, any_batch B>
[[nodiscard]] auto get(B&& b) {
  static_assert(std::is_lvalue_reference_v<B>,
                "penstock: a view into a batch that is about to go; give the batch a name and keep it as "
                "long as the view");
  return b.template field<I>();
}

}  // namespace penstock::inline v0_1

// ---- penstock/observe/counters.hpp

namespace penstock::inline v0_1 {

/// What one stage did so far. Times are estimates from the samples that were timed (one in every 64 grains).
struct stage_counters {
  std::string name;
  std::uint64_t samples = 0;
  double busy_seconds = 0;
};

/// What a run did so far: a copy, taken by `run.counters()` at no cost to the workers.
struct run_counters {
  std::vector<stage_counters> stages;  ///< source first
  std::uint64_t samples = 0;           ///< delivered, on this rank
  std::uint64_t bytes = 0;             ///< delivered
  std::uint64_t batches = 0;           ///< delivered; rows in a loop without batches
  unsigned workers = 0;
  double seconds = 0;              ///< since the run was opened
  double stall_seconds = 0;        ///< the consumer waited for a batch
  double worker_busy_seconds = 0;  ///< all workers together, evaluating
  double waiting_for_room = 0;     ///< all workers together, seconds without a block to work on
  /// all workers together, seconds behind the serial front of a forward source
  double waiting_for_input = 0;
  std::uint64_t bytes_held = 0;  ///< by batches and chunks, free ones included

  [[nodiscard]] double stall() const { return seconds == 0 ? 0 : stall_seconds / seconds; }
  [[nodiscard]] double samples_per_second() const {
    return seconds == 0 ? 0 : static_cast<double>(samples) / seconds;
  }
  [[nodiscard]] double bytes_per_second() const {
    return seconds == 0 ? 0 : static_cast<double>(bytes) / seconds;
  }
};

/// What a run did between two looks at it, so that it is judged by what it did lately. `before`: of the same
/// run, earlier.
[[nodiscard]] inline run_counters since(run_counters now, const run_counters& before) {
  now.samples -= before.samples;
  now.bytes -= before.bytes;
  now.batches -= before.batches;
  now.seconds -= before.seconds;
  now.stall_seconds -= before.stall_seconds;
  now.worker_busy_seconds -= before.worker_busy_seconds;
  now.waiting_for_room -= before.waiting_for_room;
  now.waiting_for_input -= before.waiting_for_input;
  for (std::size_t i = 0; i < std::min(now.stages.size(), before.stages.size()); ++i) {
    now.stages[i].samples -= before.stages[i].samples;
    now.stages[i].busy_seconds = std::max(0.0, now.stages[i].busy_seconds - before.stages[i].busy_seconds);
  }
  return now;
}

}  // namespace penstock::inline v0_1

// ---- penstock/run/chain.hpp

/// The one operation: `evaluate(position, worker&, sink)`. The value stages of a plan, nested into one object
/// whose evaluate inlines into one function, and the worker type that goes with it: a scratch for each stage.
namespace penstock::inline v0_1 {

/// What one stage cost one worker, from the samples that were timed.
struct stage_cost {
  std::uint64_t nanoseconds = 0;
  std::uint64_t timed = 0;
};

/// Whether an evaluation is timed: a type, so that the untimed one carries nothing.
using untimed = std::false_type;
/// The timed one.
using timed = std::true_type;
/// Untimed, and the source positions were computed beforehand with `look_up`.
struct looked_up : std::false_type {};

namespace detail {

inline std::uint64_t now_ns() noexcept {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::steady_clock::now().time_since_epoch())
                                        .count());
}

/// What is at the root of every worker.
struct worker_root {
  std::uint32_t part = 0;
  stage_cost cost;
};

}  // namespace detail

/// The innermost node over an indexed source: turns the position into one of the source and asks its reader.
template <class Reader, class Binding>
struct source_node {
  static constexpr std::size_t look_ahead = 4;

  struct worker {
    detail::worker_root root;
    const Binding* binding = nullptr;
    // of the next samples, where they were looked up; the last one stands there again for who looks ahead
    std::array<position, 64 + look_ahead> places{};
    std::size_t next = 0;
    typename Reader::worker own;
  };
  static constexpr std::uint32_t depth = 0;
  static constexpr bool has_parts = false;

  const Reader* reader = nullptr;

  /// Computes where the next n <= 64 samples are, so that one permutation overlaps with the next and not with
  /// the reading of samples.
  template <class IndexOf>
  void look_up(std::uint64_t first, std::uint64_t n, worker& w, IndexOf index_of) const {
    const Binding& bound = *w.binding;
    for (std::size_t i = 0; i < n; ++i) w.places[i] = bound(index_of(first + i));
    for (std::size_t i = 0; i < look_ahead; ++i) {
      touch(w.places[i]);
      w.places[n + i] = w.places[n - 1];
    }
    w.next = 0;
  }

  template <class Timing, class Sink>
  void evaluate(position p, worker& w, Sink&& sink, Timing timing) const {
    if constexpr (timing) {
      const std::uint64_t begin = detail::now_ns();
      reader->evaluate((*w.binding)(p.index), w.own, [&]<class V>(V&& value) {
        w.root.cost.nanoseconds += detail::now_ns() - begin;
        ++w.root.cost.timed;
        sink(std::forward<V>(value));
      });
    } else if constexpr (std::is_same_v<Timing, looked_up>) {
      touch(w.places[w.next + look_ahead]);
      reader->evaluate(w.places[w.next++], w.own, std::forward<Sink>(sink));
    } else {
      reader->evaluate((*w.binding)(p.index), w.own, std::forward<Sink>(sink));
    }
  }

 private:
  void touch(position p) const noexcept {
    if constexpr (requires { reader->touch(p); }) reader->touch(p);
  }
};

/// The innermost node over a source that can only be read forward: the sample is there already.
template <class Item>
struct item_node {
  struct worker {
    detail::worker_root root;
    const Item* item = nullptr;
  };
  static constexpr std::uint32_t depth = 0;
  static constexpr bool has_parts = false;

  template <class Timing, class Sink>
  void evaluate(position, worker& w, Sink&& sink, Timing) const {
    sink(*w.item);
  }
};

/// A value stage over the node before it.
template <class Up, class Stage>
struct stage_node {
  struct worker {
    typename Up::worker up;
    [[no_unique_address]] typename detail::stage_scratch<Stage>::type own;
    [[no_unique_address]] stage_cost cost;
  };
  static constexpr std::uint32_t depth = Up::depth + 1;
  static constexpr bool has_parts = Up::has_parts || part_of_kind<Stage, expander_tag>;

  [[no_unique_address]] Up up;
  [[no_unique_address]] Stage stage;
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;

  template <class IndexOf>
  void look_up(std::uint64_t first, std::uint64_t n, worker& w, IndexOf index_of) const {
    up.look_up(first, n, w.up, index_of);
  }
  template <class Timing, class Sink>
  void evaluate(position p, worker& w, Sink&& sink, Timing timing) const {
    up.evaluate(
        p, w.up, [&]<class V>(V&& value) { pass(p, w, sink, std::forward<V>(value), timing); }, timing);
  }

 private:
  template <class Sink, class V, class Timing>
  void pass(position p, worker& w, Sink& sink, V&& value, Timing) const {
    auto& root = root_of(w);
    const detail::call_for<Stage> call{p, Up::has_parts ? root.part : 0u, seed, stream, w.own};
    if constexpr (part_of_kind<Stage, expander_tag>) {
      const part_scope scope{root.part, root.part};
      std::uint32_t part = scope.before == 0 ? 0 : static_cast<std::uint32_t>(mix64(scope.before));
      stage.expand(std::forward<V>(value), call, [&]<class W>(W&& row) {
        root.part = part++;
        sink(std::forward<W>(row));
      });
    } else if constexpr (Timing::value) {
      const std::uint64_t begin = detail::now_ns();
      if constexpr (part_of_kind<Stage, decider_tag>) {
        const bool kept = stage.keep(value, call);
        count(w, begin);
        if (kept) sink(std::forward<V>(value));
      } else {
        auto&& result = stage.apply(std::forward<V>(value), call);
        count(w, begin);
        sink(std::forward<decltype(result)>(result));
      }
    } else if constexpr (part_of_kind<Stage, decider_tag>) {
      if (stage.keep(value, call)) sink(std::forward<V>(value));
    } else {
      sink(stage.apply(std::forward<V>(value), call));
    }
  }
  /// Puts the number of the part back, also when a stage behind throws: the worker lives on.
  struct part_scope {
    std::uint32_t& part;
    std::uint32_t before;
    ~part_scope() { part = before; }
  };
  static void count(worker& w, std::uint64_t begin) noexcept {
    w.cost.nanoseconds += detail::now_ns() - begin;
    ++w.cost.timed;
  }
  template <class W>
  static detail::worker_root& root_of(W& w) noexcept {
    if constexpr (requires { w.root; })
      return w.root;
    else
      return root_of(w.up);
  }
};

namespace detail {

template <class W>
worker_root& root_of(W& w) noexcept {
  if constexpr (requires { w.root; })
    return w.root;
  else
    return root_of(w.up);
}
/// The innermost worker: where the engine puts the binding or the item.
template <class W>
auto& innermost(W& w) noexcept {
  if constexpr (requires { w.root; })
    return w;
  else
    return innermost(w.up);
}

/// Calls f(number, cost) for the source and each value stage, innermost first; gives the number of the
/// outermost.
template <class W, class F>
std::size_t for_each_cost(W& w, F&& f) {
  if constexpr (requires { w.root; }) {
    f(std::size_t{0}, w.root.cost);
    return 0;
  } else {
    const std::size_t number = for_each_cost(w.up, f) + 1;
    f(number, w.cost);
    return number;
  }
}

template <class Stage, class Element>
consteval bool draws_random() {
  if constexpr (requires { Stage::template draws<Element>; })
    return Stage::template draws<Element>;
  else if constexpr (requires { Stage::random; })
    return Stage::random;
  else
    return false;
}

template <class Element, class Node>
auto nest(Node node, std::uint64_t, std::uint64_t) {
  return node;
}

/// Nests the value stages among `stages` around `node`. A random stage's stream is its number among the
/// random ones, or its own key.
template <class Element, class Node, class Stage, class... Rest>
auto nest(Node node, std::uint64_t seed, std::uint64_t number, const Stage& stage, const Rest&... rest) {
  using next_element = typename output_of<Stage, Element>::type;
  if constexpr (value_stage<Stage>) {
    constexpr bool random = draws_random<Stage, Element>();
    std::uint64_t stream = number;
    if constexpr (requires { stage.address.hash; }) {
      if (stage.address.hash != 0) stream = stage.address.hash;
    }
    return nest<next_element>(stage_node<Node, Stage>{std::move(node), stage, seed, stream}, seed,
                              number + (random ? 1 : 0), rest...);
  } else {
    return nest<next_element>(std::move(node), seed, number, rest...);
  }
}

}  // namespace detail

/// The chain of a plan's value stages over an innermost node.
template <class Plan, class Node>
auto make_chain(const Plan& p, Node node, std::uint64_t seed) {
  return p.stages().apply([&](const auto&... stages) {
    return detail::nest<typename Plan::source_type::element>(std::move(node), seed, std::uint64_t{1},
                                                             stages...);
  });
}

}  // namespace penstock::inline v0_1

// ---- penstock/run/position_buffer.hpp

namespace penstock::inline v0_1 {

/// Which element of a shuffle buffer comes out: place `ordinal` of epoch `epoch`, of `held` elements. A pure
/// function, so that a buffer of positions and a buffer of samples give the same sequence.
[[nodiscard]] constexpr std::uint64_t buffer_draw(std::uint64_t seed, std::uint64_t epoch,
                                                  std::uint64_t ordinal, std::uint64_t held) noexcept {
  const std::uint64_t word = mix64(ordinal ^ mix64(epoch ^ mix64(seed)));
  // The high half of a 32 x 64 bit product: a number below `held` (buffers have fewer than 2^32 elements).
  return ((word >> 32) * held) >> 32;
}

/// The cursor of `shuffle_buffer` over positions: holds ordinals, draws one, puts the next in its place.
///
/// A value: a run keeps two, a leading one for the batches it opens and a trailing one that is the state.
/// Memory: 8 bytes an element.
template <class = void>
class basic_position_buffer {
 public:
  basic_position_buffer() = default;
  basic_position_buffer(std::uint64_t capacity, std::uint64_t seed) : capacity_(capacity), seed_(seed) {}

  /// Begins an epoch of `size` ordinals.
  void begin(std::uint64_t epoch, std::uint64_t size) {
    epoch_ = epoch;
    size_ = size;
    taken_ = 0;
    given_ = 0;
    held_.clear();
    fill();
  }

  /// Continues where a state says: the ordinals held, and how many have gone in and out.
  void restore(std::uint64_t epoch, std::uint64_t size, std::uint64_t taken, std::uint64_t given,
               std::vector<std::uint64_t> held) {
    epoch_ = epoch;
    size_ = size;
    taken_ = taken;
    given_ = given;
    held_ = std::move(held);
  }

  /// Whether a state can be what `size` ordinals and `given` draws lead to.
  [[nodiscard]] bool could_hold(std::uint64_t size, std::uint64_t taken, std::uint64_t given,
                                std::vector<std::uint64_t> held) const {
    if (given > size || taken > size || taken != given + held.size()) return false;
    if (held.size() != std::min(capacity_, size - given)) return false;
    std::sort(held.begin(), held.end());
    return std::adjacent_find(held.begin(), held.end()) == held.end() &&
           (held.empty() || held.back() < taken);
  }

  [[nodiscard]] bool empty() const noexcept { return held_.empty(); }

  /// The next ordinal; there must be one.
  std::uint64_t next() {
    const auto place = static_cast<std::size_t>(buffer_draw(seed_, epoch_, given_++, held_.size()));
    const std::uint64_t out = held_[place];
    if (taken_ < size_) {
      held_[place] = taken_++;
    } else {
      held_[place] = held_.back();
      held_.pop_back();
    }
    return out;
  }

  [[nodiscard]] std::uint64_t taken() const noexcept { return taken_; }
  [[nodiscard]] std::uint64_t given() const noexcept { return given_; }
  [[nodiscard]] std::span<const std::uint64_t> held() const noexcept { return held_; }
  [[nodiscard]] std::uint64_t capacity() const noexcept { return capacity_; }

 private:
  void fill() {
    held_.reserve(static_cast<std::size_t>(capacity_ < size_ ? capacity_ : size_));
    while (held_.size() < capacity_ && taken_ < size_) held_.push_back(taken_++);
  }

  std::uint64_t capacity_ = 1, seed_ = 0, epoch_ = 0, size_ = 0, taken_ = 0, given_ = 0;
  std::vector<std::uint64_t> held_;
};
using position_buffer = basic_position_buffer<>;

}  // namespace penstock::inline v0_1

// ---- penstock/run/state.hpp

namespace penstock::inline v0_1 {

/// Where a run stands: what `run.state()` gives and `plan.open(state)` takes. Small, readable, the same on
/// every machine.
///
/// Written as one JSON object whose numbers are strings, so that no reader rounds them; docs/state.md is its
/// schema. `dataset` and `sequence` are fingerprints of the data and of what determines the order; workers,
/// prefetch, depth, memory and device are no part of it.
///
/// Where the plan is elastic, the state of any rank serves every rank of any world; else `merge` puts those
/// of all ranks into one.
struct state {
  static constexpr std::uint64_t current_version = 1;

  std::uint64_t version = current_version;
  std::uint64_t dataset = 0;
  std::uint64_t sequence = 0;
  std::uint64_t world = 1, rank = 0;  ///< at the time; they matter where the plan is not elastic
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;              ///< batches delivered in this epoch
  std::uint64_t pass = 0;              ///< with `steps`: passes over the data in this epoch
  std::uint64_t ordinal = 0;           ///< chunks: samples of this rank that are done
  std::uint64_t rows = 0;              ///< chunks: rows made of the samples after them that are done too
  std::uint64_t survivors = 0;         ///< chunks: rows that came out of the deciders in this pass
  std::uint64_t taken = 0, given = 0;  ///< `shuffle_buffer`: ordinals that went in and came out
  std::uint64_t elastic = 0;           ///< 1: any rank of any world may go on from here
  std::vector<std::uint64_t> held;     ///< `shuffle_buffer`: ordinals in it
  std::vector<std::uint64_t> front;    ///< forward sources: where the source and the orders on it stand
  std::string plan;                    ///< the data and the stages that determine the sequence, for messages
  std::vector<state> ranks;            ///< of a merged state: those of ranks 0, 1, ...

  friend bool operator==(const state&, const state&) = default;
};

namespace detail {

template <class S, class F>
void for_each_state_number(S& s, F f) {
  f("penstock_state", s.version);
  f("dataset", s.dataset);
  f("sequence", s.sequence);
  f("world", s.world);
  f("rank", s.rank);
  f("epoch", s.epoch);
  f("step", s.step);
  f("pass", s.pass);
  f("ordinal", s.ordinal);
  f("rows", s.rows);
  f("survivors", s.survivors);
  f("taken", s.taken);
  f("given", s.given);
  f("elastic", s.elastic);
}

/// A text as a JSON string.
template <class = void>
void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20)
      append(out, {"\\u00", "0123456789abcdef"[c >> 4 & 15], "0123456789abcdef"[c & 15]});
    else
      out += c;
  }
  out += '"';
}

/// A sum over a state's text, whatever blanks stand between its tokens.
template <class = void>
[[nodiscard]] std::uint64_t state_check(std::string_view text) {
  std::string tokens;
  bool inside = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (inside && c == '\\' && i + 1 < text.size())
      tokens.append({c, text[++i]});
    else if (inside || (c != ' ' && c != '\n' && c != '\t' && c != '\r'))
      tokens += c;
    if (c == '"') inside = !inside;
  }
  return fingerprint().add(tokens).value();
}

/// What stands before "check": all of a state.
template <class = void>
[[nodiscard]] std::string state_body(const state& s) {
  std::string text = "{";
  for_each_state_number(s, [&](std::string_view key, const std::uint64_t& value) {
    append(text, {text.size() > 1 ? ", " : "", '"', key, "\": \"", value, '"'});
  });
  text += ", \"plan\": ";
  append_quoted(text, s.plan);
  text += ", \"held\": [";
  for (std::size_t i = 0; i < s.held.size(); ++i) append(text, {i == 0 ? "\"" : ",\"", s.held[i], '"'});
  text += "], ";
  if (!s.front.empty()) {
    text += "\"front\": [";
    for (std::size_t i = 0; i < s.front.size(); ++i) append(text, {i == 0 ? "\"" : ",\"", s.front[i], '"'});
    text += "], ";
  }
  if (!s.ranks.empty()) {
    text += "\"ranks\": [";
    for (std::size_t i = 0; i < s.ranks.size(); ++i)
      append(text, {i == 0 ? "" : ",\n", state_body(s.ranks[i]), "\"check\": \"0\"}"});
    text += "], ";
  }
  return text;
}

/// A strict reader of exactly what `to_string` writes, blanks between tokens aside.
class state_reader {
 public:
  explicit state_reader(std::string_view text) : text_(text) {}

  state read() {
    state s = object(0);
    blanks();
    if (at_ != text_.size()) fail("the end");
    return s;
  }

 private:
  state object(unsigned depth) {
    const std::size_t begin = (blanks(), at_);
    state s;
    expect('{');
    bool first = true;
    for_each_state_number(s, [&](std::string_view key, std::uint64_t& value) {
      if (!first) expect(',');
      first = false;
      name(key);
      value = number();
      if (key == "penstock_state" && value > state::current_version)
        throw error(errc::state, {"this state is of version ", value, " and this library reads up to ",
                                  state::current_version, "; use the library that wrote it, or a newer one"});
      if (key == "penstock_state" && value == 0) fail("a version of at least 1");
    });
    expect(',');
    name("plan");
    s.plan = quoted();
    expect(',');
    name("held");
    list([&] { s.held.push_back(number()); });
    expect(',');
    if (is_name("front")) {
      name("front");
      list([&] { s.front.push_back(number()); });
      if (s.front.empty()) fail("a number in \"front\"");
      expect(',');
    }
    if (depth == 0 && is_name("ranks")) {
      name("ranks");
      list([&] { s.ranks.push_back(object(1)); });
      if (s.ranks.empty()) fail("a state in \"ranks\"");
      expect(',');
    }
    const std::size_t end = (blanks(), at_);
    name("check");
    const std::size_t check_at = (blanks(), at_);
    const std::uint64_t check = number();
    expect('}');
    if (depth == 0 && check != state_check(text_.substr(begin, end - begin))) {
      at_ = check_at;
      fail("the number that goes with what stands before it");
    }
    return s;
  }
  template <class Read>
  void list(Read read_one) {
    expect('[');
    if (!peek(']')) {
      read_one();
      while (!peek(']')) {
        expect(',');
        read_one();
      }
    }
    expect(']');
  }
  void blanks() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
  }
  [[nodiscard]] bool peek(char c) {
    blanks();
    return at_ < text_.size() && text_[at_] == c;
  }
  void expect(char c) {
    if (!peek(c)) fail(std::string("'") + c + "'");
    ++at_;
  }
  void name(std::string_view key) {
    expect('"');
    if (text_.substr(at_, key.size()) != key) fail("the key \"" + std::string(key) + "\"");
    at_ += key.size();
    if (at_ >= text_.size() || text_[at_] != '"') fail("the key \"" + std::string(key) + "\"");
    ++at_;
    expect(':');
  }
  [[nodiscard]] bool is_name(std::string_view key) {
    return peek('"') && text_.substr(at_ + 1, key.size()) == key;
  }
  std::string quoted() {
    expect('"');
    std::string value;
    while (at_ < text_.size() && text_[at_] != '"' && static_cast<unsigned char>(text_[at_]) >= 0x20) {
      if (text_[at_] != '\\') {
        value += text_[at_++];
      } else if (text_.substr(at_ + 1, 1) == "\"" || text_.substr(at_ + 1, 1) == "\\") {
        value += text_[at_ + 1];
        at_ += 2;
      } else {
        unsigned code = 0;
        const std::string_view escape = text_.substr(at_, 6);
        const char* const end = escape.data() + escape.size();
        if (!escape.starts_with("\\u00") || std::from_chars(escape.data() + 4, end, code, 16).ptr != end ||
            escape.size() != 6 || code >= 0x20)
          fail("a character, or \\\", \\\\ or \\u00XX");
        value += static_cast<char>(code);
        at_ += 6;
      }
    }
    expect('"');
    return value;
  }
  std::uint64_t number() {
    expect('"');
    std::uint64_t value = 0;
    const auto [end, problem] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (problem != std::errc() || end == text_.data() + text_.size() || *end != '"')
      fail("a number of 64 bits as a string");
    at_ = static_cast<std::size_t>(end - text_.data()) + 1;
    return value;
  }
  [[noreturn]] void fail(const std::string& wanted) const {
    throw error(errc::state,
                {"this is no state of a penstock run, or it was cut or edited: expected ", wanted})
        .at_offset(at_);
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace detail

/// The state as JSON, on one line where it is not a merged one.
template <class = void>
[[nodiscard]] std::string to_string(const state& s) {
  const std::string body = detail::state_body(s);
  return detail::text({body, "\"check\": \"", detail::state_check(body), "\"}"});
}

/// Reads what `to_string` wrote; anything else is `errc::state` with the offset, and so is a state of a newer
/// version.
template <class = void>
[[nodiscard]] state state_from_string(std::string_view text) {
  return detail::state_reader(text).read();
}

/// The states of all ranks of a job, each after the same step, as one that every rank may open: of an elastic
/// plan that of rank 0, else all of them.
///
/// Throws `error(errc::state)` where they are not of one job and one step, where two are of the same rank, or
/// where one is missing.
template <class = void>
[[nodiscard]] state merge(std::span<const state> all) {
  const auto refuse = [](std::initializer_list<detail::piece> why) {
    throw error(errc::state, {"these states cannot be merged: ", detail::text(why)});
  };
  if (all.empty()) refuse({"there is none"});
  const state& first = all.front();
  std::vector<const state*> by_rank(all.size(), nullptr);
  for (const state& s : all) {
    if (!s.ranks.empty()) refuse({"one is merged already"});
    if (s.dataset != first.dataset || s.sequence != first.sequence)
      refuse({"rank ", s.rank, " reads other data, or in another order, than rank ", first.rank});
    if (s.world != first.world || s.elastic != first.elastic)
      refuse({"rank ", s.rank, " is of ", s.world, " ranks, rank ", first.rank, " of ", first.world});
    if (s.epoch != first.epoch || s.step != first.step)
      refuse({"rank ", s.rank, " is at step ", s.step, " of epoch ", s.epoch, ", rank ", first.rank,
              " at step ", first.step, " of epoch ", first.epoch});
    if (s.rank >= s.world || s.world != all.size())
      refuse({"there are ", all.size(), ", and one is of rank ", s.rank, " of ", s.world});
    const state*& place = by_rank[static_cast<std::size_t>(s.rank)];
    if (place != nullptr) refuse({"two are of rank ", s.rank});
    place = &s;
  }
  state merged = *by_rank.front();
  if (merged.elastic != 0 || all.size() == 1) return merged;
  for (const state* const s : by_rank) {
    merged.ranks.push_back(*s);
    merged.ranks.back().plan.clear();
  }
  merged.held.clear();
  merged.front.clear();
  return merged;
}

}  // namespace penstock::inline v0_1

// ---- penstock/run/chunk_feed.hpp

namespace penstock::inline v0_1 {

/// The binding of plans whose samples have no positions in a source.
struct no_binding {};

/// Which samples the next chunk holds, for plans whose batches are known only when samples are there: behind
/// filter and unbatch, over forward-only sources, and in loops without batches.
///
/// A chunk is a run of this rank's *ordinals*: its positions in their order. Chunks may begin at any ordinal,
/// so that their size is no part of a state. A value, like `direct_feed`.
template <class Plan>
class chunk_feed {
  using parts = plan_parts<Plan>;
  using in = typename parts::in;
  static auto make_orders(const Plan& p) {
    if constexpr (parts::forward)
      return order_chain<>({}, {});
    else
      return make_sample_orders(p);
  }
  using orders_type = decltype(make_orders(std::declval<const Plan&>()));

 public:
  using binding = typename orders_type::binding;
  using placement_type = placement<binding>;

  chunk_feed(const Plan& p, std::uint64_t chunk)
      : orders_(new const orders_type(make_orders(p))), chunk_(chunk) {
    if constexpr (in::template has<steps_tag>)
      fixed_steps_ = detail::at<in::template place<steps_tag>>(p.stages()).count;
    if constexpr (!parts::forward) {
      const world part = parts::shard_before_decider ? world_of(p) : world{};
      mine_ = {.size = orders_->size(),
               .global = part.size,
               .world = part.size,
               .rank = part.rank,
               .lanes = orders_->lanes()};
      mine_.check();
      local_world_ = part.size;
      inputs_ = mine_.size / part.size + (part.rank < mine_.size % part.size ? 1 : 0);
      if constexpr (parts::has_cursor) {
        const auto& buffer = detail::at<in::cursor>(p.stages());
        cursor_ = position_buffer(buffer.capacity, buffer.seed);
      }
    }
  }

  [[nodiscard]] const orders_type& orders() const { return *orders_; }
  [[nodiscard]] std::uint64_t slots_per_block() const { return chunk_; }
  [[nodiscard]] std::optional<std::uint64_t> fixed_steps() const { return fixed_steps_; }
  /// This rank's samples per epoch, before deciders.
  [[nodiscard]] std::uint64_t inputs() const { return inputs_; }

  [[nodiscard]] std::uint64_t epoch() const { return epoch_; }
  [[nodiscard]] std::uint64_t pass() const { return pass_; }
  [[nodiscard]] std::uint64_t ordinal() const { return ordinal_; }
  [[nodiscard]] const position_buffer& cursor() const { return cursor_; }
  void limit(std::uint64_t epochs) { limit_ = epochs; }
  [[nodiscard]] std::uint64_t limit() const { return limit_; }
  [[nodiscard]] bool more() const { return epoch_ < limit_; }

  /// How many of this rank's ordinals stand at positions below `index`; for loops without batches.
  [[nodiscard]] std::uint64_t ordinals_below(std::uint64_t index) const {
    const std::uint64_t whole = index / local_world_;
    if (whole >= inputs_ || index % local_world_ == 0) return std::min(whole, inputs_);
    return whole + (parts::has_cursor ? mine_.rank < index % local_world_ : mine_.at(whole)[0] < index);
  }

  void seek(std::uint64_t epoch, std::uint64_t pass, std::uint64_t ordinal) {
    epoch_ = epoch;
    pass_ = pass;
    ordinal_ = ordinal;
    fresh_ = true;
  }
  /// What is wrong with a state, or nothing: whether it can be one of this plan.
  [[nodiscard]] std::string_view wrong_with(const state& s) const {
    if (fixed_steps_ ? s.step > *fixed_steps_ : s.pass != 0)
      return "it has more steps or passes than an epoch";
    if (s.rows > s.survivors) return "it counts more rows in part than in all";
    const bool same_world = parts::batched || parts::decided || s.world == local_world_;
    if (s.front.empty() ? parts::forward && s.ordinal != 0 : !parts::forward)
      return "where the source stands does not go with its samples";
    if (parts::forward) return {};  // nobody knows how many there are
    if (same_world ? s.ordinal > inputs_ : s.ordinal > mine_.size || s.rows > mine_.size)
      return "it has more samples than the data";
    if (!same_world || (s.taken == 0 && s.given == 0 && s.held.empty())) return {};
    if constexpr (parts::has_cursor) {
      const std::uint64_t each = parts::shard_before_cursor ? 1 : local_world_;
      if (s.given == std::min(s.ordinal * each, cursor_inputs()) &&
          cursor_.could_hold(cursor_inputs(), s.taken, s.given, s.held))
        return {};
    }
    return "what its shuffle_buffer holds does not go with its samples";
  }
  void restore_cursor(std::uint64_t taken, std::uint64_t given, std::vector<std::uint64_t> held) {
    cursor_.restore(source_epoch(), cursor_inputs(), taken, given, std::move(held));
    fresh_ = false;
  }

  void prepare(placement_type& p, std::size_t /*most*/) {
    p.parts.assign(1, {});
    p.epoch = source_epoch();
    p.listed = false;
    p.last = false;
    batch_part& part = p.parts[0];
    part.delivered = {epoch_, ordinal_};
    if constexpr (parts::forward) {
      p.slots = part.slots = chunk_;  // how many there are is known when they are pulled
      part.view = step_view(ordinal_, chunk_, 1, 0, chunk_, chunk_);
      ordinal_ += chunk_;
    } else {
      const std::uint64_t count = std::min(chunk_, inputs_ - std::min(inputs_, ordinal_));
      p.slots = part.slots = part.valid = count;
      p.last = ordinal_ + count >= inputs_;
      p.indices.clear();
      if constexpr (parts::has_cursor) {
        p.listed = true;
        draw(count, &p.indices);
        bind_listed(p);
      } else if (local_world_ == 1 && mine_.lanes == 1) {
        part.view = step_view(ordinal_, count, 1, 0, count, count);
        orders_->rebind(p.binding, p.epoch, ordinal_, ordinal_ + count);
      } else {
        p.listed = true;
        for (std::uint64_t i = 0; i < count; ++i) p.indices.push_back(mine_.at(ordinal_ + i)[0]);
        bind_listed(p);
      }
      go_on(count);
    }
  }

  /// Goes on by `count` ordinals of one chunk, without looking.
  void advance(std::uint64_t count) {
    if constexpr (parts::has_cursor && !parts::forward) draw(count, nullptr);
    go_on(count);
  }
  /// Leaves the epoch (or, with `steps`, the pass) where it is and begins the next one.
  void next_pass() { seek(fixed_steps_ ? epoch_ : epoch_ + 1, fixed_steps_ ? pass_ + 1 : 0, 0); }
  void settle() {
    if constexpr (parts::has_cursor && !parts::forward) begin_if_fresh();
  }

 private:
  [[nodiscard]] std::uint64_t source_epoch() const { return epoch_ + (pass_ << 32); }
  [[nodiscard]] std::uint64_t cursor_inputs() const {
    return parts::shard_before_cursor ? inputs_ : mine_.size;
  }

  void bind_listed(placement_type& p) {
    if (p.indices.empty()) return;
    const auto [low, high] = std::minmax_element(p.indices.begin(), p.indices.end());
    orders_->rebind(p.binding, p.epoch, *low, *high + 1);
  }
  void go_on(std::uint64_t count) {
    ordinal_ += count;
    if (!parts::forward && ordinal_ >= inputs_) next_pass();  // nobody knows how many a forward source has
  }
  void begin_if_fresh() {
    if (!fresh_) return;
    cursor_.begin(source_epoch(), cursor_inputs());
    fresh_ = false;
    for (std::uint64_t i = 0; i < ordinal_; ++i) draw_one();
  }
  void draw(std::uint64_t count, std::vector<std::uint64_t>* indices) {
    begin_if_fresh();
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t index = draw_one();
      if (indices != nullptr) indices->push_back(index);
    }
  }
  /// The next position index of this rank.
  std::uint64_t draw_one() {
    if constexpr (parts::shard_before_cursor) {
      return mine_.at(cursor_.next())[0];
    } else {
      std::uint64_t found = 0;
      for (std::uint64_t rank = 0; rank < local_world_ && !cursor_.empty(); ++rank) {
        const std::uint64_t ordinal = cursor_.next();
        if (rank == mine_.rank) found = ordinal;
      }
      return found;
    }
  }

  std::shared_ptr<const orders_type> orders_;
  std::uint64_t chunk_;
  cut mine_;
  std::uint64_t local_world_ = 1, inputs_ = 0;
  std::optional<std::uint64_t> fixed_steps_;
  std::uint64_t epoch_ = 0, pass_ = 0, ordinal_ = 0, limit_ = 1;
  position_buffer cursor_;
  bool fresh_ = true;
};

}  // namespace penstock::inline v0_1

// ---- penstock/run/front.hpp

/// The serial front of a source that can only be read forward: numbers its samples, and does there what order
/// stages do with arithmetic elsewhere. Everything after it is evaluated in parallel.
namespace penstock::inline v0_1 {

/// The next number of those that a front saved.
[[nodiscard]] inline std::uint64_t take_place(std::span<const std::uint64_t>& places) {
  if (places.empty()) throw error(errc::state, "the state has too few places of the source; it was edited");
  const std::uint64_t place = places.front();
  places = places.subspan(1);
  return place;
}

/// A front, or a reader, that can say where it stands and go there.
template <class T>
concept saving_front = requires(const T& front, std::vector<std::uint64_t>& places) { front.save(places); };
/// A reader that can.
template <class T>
concept marking_reader = requires(const T& reader) { reader.mark(); };

/// A reader, one sample after another. `rewind(epoch)` goes to the beginning, `next(item)` is false at the
/// end. `save(places)` appends where it stands, `load(epoch, places)` takes as many away and goes there.
template <class Reader, class Item>
class reader_front {
 public:
  explicit reader_front(Reader reader) : reader_(std::move(reader)) {}
  void rewind(std::uint64_t epoch) { reader_.rewind(epoch); }
  bool next(Item& item) { return reader_.next(item); }
  void save(std::vector<std::uint64_t>& places) const
    requires marking_reader<Reader>
  {
    const source_mark at = reader_.mark();
    places.push_back(at.shard);
    places.push_back(at.sample);
  }
  void load(std::uint64_t epoch, std::span<const std::uint64_t>& places)
    requires marking_reader<Reader>
  {
    source_mark there;
    there.shard = take_place(places);
    there.sample = take_place(places);
    reader_.seek(epoch, there);
  }

 private:
  Reader reader_;
};

/// `take` on samples of a forward source.
template <class Up, class Item>
class take_front {
 public:
  take_front(Up up, std::uint64_t count) : up_(std::move(up)), count_(count) {}
  void rewind(std::uint64_t epoch) {
    up_.rewind(epoch);
    given_ = 0;
  }
  bool next(Item& item) {
    if (given_ == count_ || !up_.next(item)) return false;
    ++given_;
    return true;
  }

  void save(std::vector<std::uint64_t>& places) const
    requires saving_front<Up>
  {
    up_.save(places);
    places.push_back(given_);
  }
  void load(std::uint64_t epoch, std::span<const std::uint64_t>& places)
    requires saving_front<Up>
  {
    up_.load(epoch, places);
    given_ = take_place(places);
  }

 private:
  Up up_;
  std::uint64_t count_, given_ = 0;
};

/// `skip` on samples of a forward source.
template <class Up, class Item>
class skip_front {
 public:
  skip_front(Up up, std::uint64_t count) : up_(std::move(up)), count_(count) {}
  void rewind(std::uint64_t epoch) {
    up_.rewind(epoch);
    left_ = count_;
  }
  bool next(Item& item) {
    for (; left_ != 0; --left_)
      if (!up_.next(item)) return false;
    return up_.next(item);
  }

  void save(std::vector<std::uint64_t>& places) const
    requires saving_front<Up>
  {
    up_.save(places);
    places.push_back(left_);
  }
  void load(std::uint64_t epoch, std::span<const std::uint64_t>& places)
    requires saving_front<Up>
  {
    up_.load(epoch, places);
    left_ = take_place(places);
  }

 private:
  Up up_;
  std::uint64_t count_, left_ = 0;
};

/// `repeat` on samples of a forward source.
template <class Up, class Item>
class repeat_front {
 public:
  repeat_front(Up up, std::optional<std::uint64_t> times) : up_(std::move(up)), times_(times) {}
  void rewind(std::uint64_t epoch) {
    round_ = 0;
    first_ = times_ ? epoch * *times_ : 0;
    empty_ = true;
    if (more()) up_.rewind(first_);
  }
  bool next(Item& item) {
    while (more()) {
      if (up_.next(item)) {
        empty_ = false;
        return true;
      }
      if (empty_) return false;  // an endless repetition of nothing
      ++round_;
      empty_ = true;
      if (more()) up_.rewind(first_ + round_);
    }
    return false;
  }

  void save(std::vector<std::uint64_t>& places) const
    requires saving_front<Up>
  {
    places.push_back(round_);
    places.push_back(empty_ ? 1 : 0);
    up_.save(places);
  }
  void load(std::uint64_t epoch, std::span<const std::uint64_t>& places)
    requires saving_front<Up>
  {
    first_ = times_ ? epoch * *times_ : 0;
    round_ = take_place(places);
    empty_ = take_place(places) != 0;
    up_.load(first_ + round_, places);
  }

 private:
  [[nodiscard]] bool more() const { return !times_ || round_ < *times_; }

  Up up_;
  std::optional<std::uint64_t> times_;
  std::uint64_t round_ = 0, first_ = 0;
  bool empty_ = true;
};

/// Every world-th sample.
template <class Up, class Item>
class shard_front {
 public:
  shard_front(Up up, world part) : up_(std::move(up)), part_(part) {}
  void rewind(std::uint64_t epoch) {
    up_.rewind(epoch);
    skip_ = part_.rank;
  }
  bool next(Item& item) {
    for (; skip_ != 0; --skip_)
      if (!up_.next(item)) return false;
    skip_ = part_.size - 1;
    return up_.next(item);
  }

  void save(std::vector<std::uint64_t>& places) const
    requires saving_front<Up>
  {
    up_.save(places);
    places.push_back(skip_);
  }
  void load(std::uint64_t epoch, std::span<const std::uint64_t>& places)
    requires saving_front<Up>
  {
    up_.load(epoch, places);
    skip_ = take_place(places);
  }

 private:
  Up up_;
  world part_;
  std::uint64_t skip_ = 0;
};

/// `shuffle_buffer` over samples, still encoded.
template <class Up, class Item>
class buffer_front {
 public:
  buffer_front(Up up, std::uint64_t capacity, std::uint64_t seed)
      : up_(std::move(up)), capacity_(capacity), seed_(seed) {}
  void rewind(std::uint64_t epoch) {
    up_.rewind(epoch);
    epoch_ = epoch;
    given_ = 0;
    size_ = 0;
    ended_ = false;
  }
  bool next(Item& item) {
    while (!ended_ && size_ < capacity_) {
      if (size_ == held_.size()) held_.emplace_back();
      if (up_.next(held_[size_]))
        ++size_;
      else
        ended_ = true;
    }
    if (size_ == 0) return false;
    const auto place = static_cast<std::size_t>(buffer_draw(seed_, epoch_, given_++, size_));
    std::swap(item, held_[place]);
    if (!ended_ && !up_.next(held_[place])) ended_ = true;
    if (ended_) std::swap(held_[place], held_[--size_]);
    return true;
  }

 private:
  Up up_;
  std::uint64_t capacity_, seed_, epoch_ = 0, given_ = 0;
  std::size_t size_ = 0;
  std::vector<Item> held_;
  bool ended_ = false;
};

namespace detail {

/// The place of the first `shuffle_buffer` at the places [I, End), or End.
template <std::size_t I, std::size_t End, class... Stages>
inline constexpr std::size_t mixed_at = [] {
  std::size_t place = 0, found = End;
  ((found = found == End && place >= I && place < End && part_of_kind<Stages, cursor_tag> ? place : found,
    ++place),
   ...);
  return found;
}();

/// How samples have been dealt to ranks already: take and skip count for all ranks together.
struct dealt_among {
  world part;
  bool repeated = false;  // since then: who has how many of which round is not known any more

  /// How many of the first `count` samples are this rank's.
  [[nodiscard]] std::uint64_t share(std::uint64_t count) const {
    if (repeated && part.size > 1)
      throw error(errc::argument,
                  "take and skip count for all ranks together, and cannot behind shard, shuffle_buffer and "
                  "repeat; write repeat before shuffle_buffer");
    return count > part.rank ? (count - part.rank - 1) / part.size + 1 : 0;
  }
};

/// Order stages on samples. Those before a `shuffle_buffer` are done for all ranks, and samples are dealt as
/// late as they can be, so that a rank gets what arithmetic would give it.
template <class Item, std::size_t I, std::size_t End, class Up, class... Stages>
auto nest_front(Up up, const pack<Stages...>& stages, dealt_among dealt = {}) {
  if constexpr (I == End) {
    return up;
  } else {
    const auto& stage = at<I>(stages);
    using type = std::remove_cvref_t<decltype(stage)>;
    if constexpr (part_of_kind<type, shard_tag>) {
      constexpr std::size_t mixes = mixed_at<I, End, Stages...>;
      auto counted = nest_front<Item, I + 1, mixes>(std::move(up), stages);
      return nest_front<Item, mixes, End>(
          shard_front<decltype(counted), Item>(std::move(counted), stage.part), stages,
          dealt_among{stage.part});
    } else if constexpr (part_of_kind<type, cursor_tag>) {
      return nest_front<Item, I + 1, End>(buffer_front<Up, Item>(std::move(up), stage.capacity, stage.seed),
                                          stages, dealt);
    } else if constexpr (part_of_kind<type, order_tag> && requires { stage.times; }) {
      dealt.repeated = true;
      return nest_front<Item, I + 1, End>(repeat_front<Up, Item>(std::move(up), stage.times), stages, dealt);
    } else if constexpr (part_of_kind<type, order_tag> && type::stage_name == std::string_view("skip")) {
      const std::uint64_t mine = dealt.share(stage.count), size = dealt.part.size;
      dealt.part.rank = (dealt.part.rank + size - stage.count % size) % size;
      return nest_front<Item, I + 1, End>(skip_front<Up, Item>(std::move(up), mine), stages, dealt);
    } else if constexpr (part_of_kind<type, order_tag>) {
      return nest_front<Item, I + 1, End>(take_front<Up, Item>(std::move(up), dealt.share(stage.count)),
                                          stages, dealt);
    } else {
      return nest_front<Item, I + 1, End>(std::move(up), stages, dealt);
    }
  }
}

}  // namespace detail

/// The front of a plan over a forward-only source.
template <class Plan>
auto make_front(const Plan& p) {
  using reader = typename Plan::source_type::reader;
  using item = typename Plan::source_type::element;
  return detail::nest_front<item, 0, plan_parts<Plan>::first_orders_end>(
      reader_front<reader, item>(p.source().open()), p.stages());
}

}  // namespace penstock::inline v0_1

// ---- penstock/run/ring.hpp

namespace penstock::inline v0_1 {

namespace detail {

/// Tells the processor that this thread only waits.
inline void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();  // <immintrin.h> would take a tenth of a program's compile time
#endif
}

}  // namespace detail

/// The protocol by which workers and one consumer share a ring of blocks; it knows nothing of what is in
/// them.
///
/// Block r of R holds the sequence numbers s with s mod R = r; the work on a block is g grains.
///   ticket    a worker takes the next one: s = t / g, grain = t mod g. Tickets go out in order: who waits for a later block never
///             holds an earlier one: no deadlock, even with one block.
///   turn[r]   the consumer stores the word of s once everything that workers read in the block is prepared and the block's last
///             batch has been given back. A worker waits for equality.
///   done[r]   counts finished grains; who finishes the last one resets it, then publishes `ready`.
///   ready[r]  the word of s: the block may be delivered. The consumer waits for it.
/// Stop is a flag and the word STOP in every `turn` and `ready`; flag and words are sequentially consistent,
/// since a store of the consumer may overwrite STOP: it looks at the flag afterwards. Words of one block do
/// not repeat within 2^32 rounds, so that a wait misses nothing. Cost: one atomic increment per grain each of
/// ticket and done, two stores a block.
template <class = void>
class basic_ring {
 public:
  /// `spins`: how often a waiting thread looks before it parks. Long where every thread has a processor, 0
  /// where they share.
  basic_ring(std::size_t blocks, std::uint64_t grains, unsigned spins)
      : blocks_(blocks), grains_(grains), spins_(spins), slots_(std::make_unique<slot[]>(blocks)) {}

  [[nodiscard]] std::size_t blocks() const noexcept { return blocks_; }
  [[nodiscard]] std::uint64_t grains() const noexcept { return grains_; }
  [[nodiscard]] bool stopped() const noexcept { return stop_.load(std::memory_order_relaxed); }
  /// The same in the order of all sequentially consistent operations: for words that others wait on.
  [[nodiscard]] bool stopped_for_sure() const noexcept { return stop_.load(std::memory_order_seq_cst); }

  /// Consumer: lets workers begin with block s.
  void open(std::uint64_t s) noexcept {
    auto& turn = slots_[s % blocks_].turn;
    turn.store(word(s), std::memory_order_seq_cst);
    if (stop_.load(std::memory_order_seq_cst)) turn.store(stop_word, std::memory_order_seq_cst);
    turn.notify_all();
  }

  /// Consumer: whether block s has been worked off; does not wait.
  [[nodiscard]] bool is_ready(std::uint64_t s) const noexcept {
    return slots_[s % blocks_].ready.load(std::memory_order_acquire) == word(s);
  }
  /// Consumer: waits for block s; false when the ring was stopped.
  [[nodiscard]] bool wait_ready(std::uint64_t s) const noexcept {
    return wait(slots_[s % blocks_].ready, word(s));
  }

  /// Ends all waiting, now and later. Any thread, any number of times.
  void stop() noexcept {
    stop_.store(true, std::memory_order_seq_cst);
    for (std::size_t r = 0; r < blocks_; ++r) {
      slots_[r].turn.store(stop_word, std::memory_order_seq_cst);
      slots_[r].turn.notify_all();
      slots_[r].ready.store(stop_word, std::memory_order_seq_cst);
      slots_[r].ready.notify_all();
    }
  }

  /// A worker's life: takes grains until the ring is stopped. `work.evaluate(s, grain)` and, once per block,
  /// `work.finish(s)`; both must not throw. `work.waiting(true)` and `work.waiting(false)` stand around a
  /// wait for room.
  template <class Work>
  void serve(Work& work) noexcept {
    while (true) {
      const std::uint64_t ticket = ticket_.fetch_add(1, std::memory_order_relaxed);
      const std::uint64_t s = ticket / grains_;
      slot& block = slots_[s % blocks_];
      if (block.turn.load(std::memory_order_acquire) != word(s)) {
        work.waiting(true);
        const bool go = wait(block.turn, word(s));
        work.waiting(false);
        if (!go) return;
      }
      work.evaluate(s, ticket % grains_);
      if (stopped()) return;
      finish_grain(work, block, s);
    }
  }

  /// Consumer without workers: works off block s itself.
  template <class Work>
  void serve_here(Work& work, std::uint64_t s) noexcept {
    slot& block = slots_[s % blocks_];
    for (std::uint64_t grain = 0; grain < grains_; ++grain) {
      work.evaluate(s, grain);
      if (stopped()) return;
      finish_grain(work, block, s);
    }
  }

 private:
  static constexpr std::uint32_t stop_word = 0xffffffffu;

  struct slot {
    alignas(64) std::atomic<std::uint32_t> turn{0};
    alignas(64) std::atomic<std::uint32_t> ready{0};
    alignas(64) std::atomic<std::uint32_t> done{0};
  };

  [[nodiscard]] static std::uint32_t word(std::uint64_t s) noexcept {
    return static_cast<std::uint32_t>(s % 0xfffffff0u) + 1;  // never 0, never STOP
  }

  [[nodiscard]] bool wait(const std::atomic<std::uint32_t>& where, std::uint32_t wanted) const noexcept {
    for (unsigned i = 0; i < spins_; ++i) {
      if (where.load(std::memory_order_acquire) == wanted) return !stop_.load(std::memory_order_seq_cst);
      if (stopped()) return false;
      detail::relax();
    }
    while (true) {
      const std::uint32_t seen = where.load(std::memory_order_seq_cst);
      if (stop_.load(std::memory_order_seq_cst)) return false;
      if (seen == wanted) return true;
      where.wait(seen, std::memory_order_seq_cst);
    }
  }

  template <class Work>
  void finish_grain(Work& work, slot& block, std::uint64_t s) noexcept {
    if (block.done.fetch_add(1, std::memory_order_acq_rel) + 1 != grains_) return;
    block.done.store(0, std::memory_order_relaxed);
    work.finish(s);
    block.ready.store(word(s), std::memory_order_seq_cst);
    if (stop_.load(std::memory_order_seq_cst)) block.ready.store(stop_word, std::memory_order_seq_cst);
    block.ready.notify_one();
  }

  std::size_t blocks_;
  std::uint64_t grains_;
  unsigned spins_;
  alignas(64) std::atomic<std::uint64_t> ticket_{0};
  alignas(64) std::atomic<bool> stop_{false};
  std::unique_ptr<slot[]> slots_;
};
using ring = basic_ring<>;

}  // namespace penstock::inline v0_1

// ---- penstock/run/serial_front.hpp

namespace penstock::inline v0_1 {

/// The serial front among workers: each takes samples for its chunk when its chunk's turn comes, in the order
/// of the chunks.
///
/// Tickets go out in order, so whoever's turn it is has a running worker: no deadlock. Once the end is known,
/// chunks are given nothing until another epoch is asked for. The items of a chunk are kept and re-used with
/// its place in the ring.
template <class Front, class Item>
class serial_front {
 public:
  serial_front(Front front, std::size_t blocks) : front_(std::move(front)), items_(blocks) {}

  /// Consumer, when no chunk is being worked on: the next chunk begins its epoch anew, or where `save` of a
  /// front said that it stood.
  void restart(std::span<const std::uint64_t> places = {}) {
    begin_at_.assign(places.begin(), places.end());
    epoch_ = no_epoch;
  }
  /// Lets all who wait go, for good; the ring has been stopped before.
  void stop() noexcept {
    turn_.store(stop_turn, std::memory_order_seq_cst);
    turn_.notify_all();
  }

  /// Takes up to `most` samples for chunk `s` of `epoch`. Gives the items and how many there are; null when
  /// the run was stopped. `failed(n)`
  /// `after` is where the front stands then, where it can be resumed. `failed(n)`
  /// is called inside a handler when the source throws after n samples; `waited(ns)` says how long this took
  /// its turn to come.
  template <class Ring, class Failed, class Waited>
  const std::vector<Item>* pull(std::uint64_t s, std::uint64_t epoch, std::uint64_t most, bool abandoned,
                                const Ring& r, std::uint64_t& count, bool& ended, Failed failed,
                                Waited waited, std::vector<std::uint64_t>* after = nullptr) noexcept {
    const auto mine = static_cast<std::uint32_t>(s % stop_turn);
    const std::uint64_t begin = detail::now_ns();
    while (true) {
      const std::uint32_t seen = turn_.load(std::memory_order_seq_cst);
      if (r.stopped_for_sure()) return nullptr;
      if (seen == mine) break;
      turn_.wait(seen, std::memory_order_seq_cst);
    }
    waited(detail::now_ns() - begin);
    auto& items = items_[static_cast<std::size_t>(s % items_.size())];
    count = 0;
    if (!abandoned) {
      try {
        if (epoch_ != epoch) {
          go_to(epoch);
          epoch_ = epoch;
          ended_ = false;
        }
        if (items.size() < most) items.resize(static_cast<std::size_t>(most));
        while (!ended_ && count < most && !r.stopped()) {
          if (front_.next(items[static_cast<std::size_t>(count)]))
            ++count;
          else
            ended_ = true;
        }
        if constexpr (saves) {
          if (after != nullptr) {
            after->clear();
            front_.save(*after);
          }
        }
      } catch (...) {
        failed(count);
        ended_ = true;
      }
    }
    ended = ended_;
    turn_.store(static_cast<std::uint32_t>((s + 1) % stop_turn), std::memory_order_seq_cst);
    if (r.stopped_for_sure()) turn_.store(stop_turn, std::memory_order_seq_cst);
    turn_.notify_all();
    return &items;
  }

  /// Whether the front can say where it stands.
  static constexpr bool saves = saving_front<Front>;

 private:
  void go_to(std::uint64_t epoch) {
    if constexpr (saves) {
      if (!begin_at_.empty()) {
        const std::vector<std::uint64_t> places = std::exchange(begin_at_, {});
        std::span<const std::uint64_t> rest = places;
        front_.load(epoch, rest);
        if (!rest.empty())
          throw error(errc::state, "the state has too many places of the source; it was edited");
        return;
      }
    }
    front_.rewind(epoch);
  }

  static constexpr std::uint32_t stop_turn = 0xffffffffu;
  static constexpr std::uint64_t no_epoch = std::numeric_limits<std::uint64_t>::max();

  Front front_;
  std::vector<std::vector<Item>> items_;
  std::atomic<std::uint32_t> turn_{0};
  std::vector<std::uint64_t> begin_at_;
  std::uint64_t epoch_ = no_epoch;
  bool ended_ = false;
};

}  // namespace penstock::inline v0_1

// ---- penstock/run/detail/engine_parts.hpp

/// What an engine is made of, by plan: its ring, its device, its front, and whether its elements are numbers.
namespace penstock::inline v0_1 {

namespace detail {

/// The ring of the first stage that names one, else ours.
template <class Stages>
struct ring_of;
template <>
struct ring_of<pack<>> {
  using type = ring;
};
template <class Stage, class... Rest>
struct ring_of<pack<Stage, Rest...>> : ring_of<pack<Rest...>> {};
template <class Stage, class... Rest>
  requires requires { typename Stage::ring_type; }
struct ring_of<pack<Stage, Rest...>> {
  using type = typename Stage::ring_type;
};

/// Begins to copy a block to its device, once.
template <class Session, class Payload>
void send(Session& device, Payload& p) {
  if (p.transferred) return;
  device.start(p.transfer, p.columns.bytes(0, static_cast<std::size_t>(p.slots)));
  p.transferred = true;
}
/// Waits until no copy reads the memory of a block that was given back.
template <class Session, class Payload>
void settle(Session& device, Payload& p) {
  if constexpr (requires { device.reuse(p.transfer); }) {
    if (p.transferred) device.reuse(p.transfer);
  }
  p.transferred = false;
}

template <class Plan, bool Has = plan_parts<Plan>::in::template has<device_tag>>
struct device_of {
  using type = host;
  static type get(const Plan&) { return {}; }
};
template <class Plan>
struct device_of<Plan, true> {
  using in = typename plan_parts<Plan>::in;
  using type = typename detail::type_at<in::template place<device_tag>,
                                        typename plan_parts<Plan>::stages>::device_type;
  static type get(const Plan& p) {
    return detail::at<in::template place<device_tag>>(p.stages()).device_value;
  }
};

/// What a plan over an indexed source has of a front: nothing.
struct no_front {
  no_front(no_front, std::size_t) {}
  no_front() = default;
  void restart(std::span<const std::uint64_t> = {}) const noexcept {}
  void stop() const noexcept {}
};

template <class Plan, bool Forward = plan_parts<Plan>::forward>
struct front_of {
  using type = no_front;
  static no_front make(const Plan&) { return {}; }
};
template <class Plan>
struct front_of<Plan, true> {
  using type =
      serial_front<decltype(make_front(std::declval<const Plan&>())), typename Plan::source_type::element>;
  static auto make(const Plan& p) { return make_front(p); }
};

template <class V>
struct all_fixed : std::bool_constant<shape_class_of<V> == shape_class::fixed> {};
template <class... Fields>
struct all_fixed<record<Fields...>>
    : std::bool_constant<(
          (shape_class_of<std::remove_cvref_t<typename Fields::type>> == shape_class::fixed) && ...)> {};

}  // namespace detail

}  // namespace penstock::inline v0_1

// ---- penstock/run/direct_feed.hpp

namespace penstock::inline v0_1 {

/// Which positions the next batch holds, for plans whose slots are known before anything is evaluated.
///
/// A value: a run keeps one that leads (the batches it opens), one that trails (what was delivered: the
/// state), and one for read-ahead. Step s of an epoch is found by arithmetic; only `shuffle_buffer` moves a
/// cursor.
template <class Plan>
class direct_feed {
  using parts = plan_parts<Plan>;
  using in = typename parts::in;
  using orders_type = decltype(make_sample_orders(std::declval<const Plan&>()));
  static auto make_steps_orders(const Plan& p, std::uint64_t steps) {
    return detail::chain_of_orders({steps, nullptr},
                                   detail::orders_between<in::batch, in::count>(p.stages()));
  }
  using steps_orders_type = decltype(make_steps_orders(std::declval<const Plan&>(), 0));

  /// What the copies share.
  struct arithmetic {
    orders_type orders;
    cut mine;
    steps_orders_type steps_orders;
  };

 public:
  using binding = typename orders_type::binding;
  using placement_type = placement<binding>;

  explicit direct_feed(const Plan& p) {
    auto orders = make_sample_orders(p);
    const auto& batch = detail::at<in::batch>(p.stages());
    const world part = world_of(p);
    cut mine{.size = orders.size(),
             .global = batch.global_size(part.size),
             .world = part.size,
             .rank = part.rank,
             .lanes = orders.lanes(),
             .policy = batch.at_end};
    mine.check();
    auto steps_orders = make_steps_orders(p, mine.steps());
    shared_ = std::shared_ptr<const arithmetic>(
        new const arithmetic{std::move(orders), mine, std::move(steps_orders)});
    whole_ = mine.whole();
    if constexpr (in::template has<steps_tag>)
      fixed_steps_ = detail::at<in::template place<steps_tag>>(p.stages()).count;
    if constexpr (parts::has_cursor) {
      const auto& buffer = detail::at<in::cursor>(p.stages());
      cursor_ = position_buffer(buffer.capacity, buffer.seed);
    }
    if (fixed_steps_ && shared_->steps_orders.size() == 0)
      throw error(errc::argument,
                  "steps(n): a pass over the data gives no batch; use a smaller batch or tail::keep")
          .in_stage("steps");
  }

  [[nodiscard]] const orders_type& orders() const { return shared_->orders; }
  [[nodiscard]] const cut& mine() const { return shared_->mine; }
  [[nodiscard]] std::uint64_t steps_per_epoch() const {
    return fixed_steps_ ? *fixed_steps_ : shared_->steps_orders.size();
  }
  [[nodiscard]] std::uint64_t most_slots() const {
    // A last step that is divided anew may give a rank one more than a whole one does.
    return std::max(mine().slots(0), mine().slots(mine().steps() - 1));
  }
  [[nodiscard]] std::uint64_t slots_per_block() const { return std::max<std::uint64_t>(1, most_slots()); }

  [[nodiscard]] std::uint64_t epoch() const { return epoch_; }
  [[nodiscard]] std::uint64_t step() const { return step_; }
  [[nodiscard]] const position_buffer& cursor() const { return cursor_; }
  /// Epochs from this one on are not read ahead.
  void limit(std::uint64_t epochs) { limit_ = epochs; }
  [[nodiscard]] std::uint64_t limit() const { return limit_; }
  [[nodiscard]] bool more() const { return epoch_ < limit_ && steps_per_epoch() != 0; }

  void seek(std::uint64_t epoch, std::uint64_t step) {
    epoch_ = epoch;
    step_ = step;
    if (step_ != 0 && step_ >= steps_per_epoch()) {
      ++epoch_;
      step_ = 0;
    }
    cursor_place_ = {no_epoch, 0};
  }
  /// The upstream epoch and global step of the next step: through `steps(n)` and the orders after batch.
  [[nodiscard]] position upstream() const { return locate(); }
  /// What is wrong with a state, or nothing: whether it can be one of this plan.
  [[nodiscard]] std::string_view wrong_with(const state& s) const {
    if (s.step > steps_per_epoch()) return "it has more steps than an epoch";
    if (!s.front.empty() || s.pass != 0 || s.ordinal != 0 || s.rows != 0 || s.survivors != 0)
      return "it counts samples where only batches are counted";
    if (s.taken == 0 && s.given == 0 && s.held.empty()) return {};
    if constexpr (parts::has_cursor) {
      direct_feed there = *this;
      there.seek(s.epoch, s.step);
      const position at = there.locate();
      const std::uint64_t each = parts::shard_before_cursor ? mine().slots(0) : mine().global;
      if (s.given == std::min(at.index * each, cursor_inputs()) &&
          cursor_.could_hold(cursor_inputs(), s.taken, s.given, s.held))
        return {};
    }
    return "what its shuffle_buffer holds does not go with its step";
  }
  /// Puts the cursor where a state says it was before the step that `seek` named.
  void restore_cursor(std::uint64_t taken, std::uint64_t given, std::vector<std::uint64_t> held) {
    const position at = locate();
    cursor_.restore(at.epoch, cursor_inputs(), taken, given, std::move(held));
    cursor_place_ = at;
  }

  /// Fills a placement with the next steps, up to `most` of one epoch, and goes on.
  void prepare(placement_type& p, std::size_t most) {
    const cut& c = mine();
    p.parts.clear();
    p.indices.clear();
    p.listed = parts::has_cursor;
    p.slots = 0;
    std::uint64_t low = std::numeric_limits<std::uint64_t>::max(), high = 0;
    position at = locate();
    p.epoch = at.epoch;
    if (const std::uint64_t plain = plain_steps(most); plain != 0) {
      low = at.index * c.global;
      high = low + plain * c.global;
      add_plain(p, plain, at);
      orders().rebind(p.binding, p.epoch, low, high);
      return;
    }
    do {
      const bool is_whole = at.index < whole_.count;  // all but the last step: nothing is divided
      batch_part& part = p.parts.emplace_back();
      part.first = p.slots;
      part.slots = is_whole ? whole_.slots : c.slots(at.index);
      part.valid = is_whole ? whole_.slots : c.valid(at.index);
      part.global = is_whole ? c.global : c.count(at.index);
      part.delivered = {epoch_, step_};
      if constexpr (parts::has_cursor) {
        move_cursor(at, &p.indices);
        p.indices.resize(static_cast<std::size_t>(part.first + part.slots));  // padding has no position
        for (std::uint64_t i = part.first; i < part.first + part.valid; ++i) {
          low = std::min(low, p.indices[static_cast<std::size_t>(i)]);
          high = std::max(high, p.indices[static_cast<std::size_t>(i)] + 1);
        }
      } else {
        part.view = is_whole ? step_view(at.index * c.global, c.global, c.lanes, whole_.begin, whole_.slots,
                                         whole_.slots)
                             : c.at(at.index);
        low = std::min(low, at.index * c.global);
        high = std::max(high, at.index * c.global + part.global);
      }
      p.slots += part.slots;
      go_on();
      if (p.parts.size() == most || !more()) break;
      at = locate();
    } while (at.epoch == p.epoch && p.parts.back().delivered.epoch == epoch_);
    if (low < high) orders().rebind(p.binding, p.epoch, low, high);
  }

  /// Goes on without looking: what the trailing feed does when a batch is delivered.
  void advance() {
    if constexpr (parts::has_cursor) move_cursor(locate(), nullptr);
    go_on();
  }

  /// Puts the cursor in front of the next step, so that it can be written down.
  void settle() {
    if constexpr (parts::has_cursor) {
      if (more_in_epoch()) reach(locate());
    }
  }

 private:
  static constexpr std::uint64_t no_epoch = std::numeric_limits<std::uint64_t>::max();

  [[nodiscard]] bool more_in_epoch() const { return step_ < steps_per_epoch(); }

  /// The upstream epoch and step of the next step: through `steps(n)` and the order stages after batch.
  [[nodiscard]] position locate() const {
    const std::uint64_t in_pass = shared_->steps_orders.size();
    position at{epoch_, step_};
    if (fixed_steps_ && in_pass != 0) at = {epoch_ + (step_ / in_pass << 32), step_ % in_pass};
    if constexpr (std::is_same_v<steps_orders_type, order_chain<>>)
      return at;
    else
      return shared_->steps_orders.sample_at(at);
  }

  /// How many of the next steps are whole ones of the same pass, without lanes, buffer or steps(n).
  [[nodiscard]] std::uint64_t plain_steps(std::size_t most) const {
    if constexpr (parts::has_cursor || !std::is_same_v<steps_orders_type, order_chain<>>) return 0;
    if (fixed_steps_ || mine().lanes != 1 || step_ >= whole_.count) return 0;
    return std::min<std::uint64_t>(most, whole_.count - step_);
  }
  void add_plain(placement_type& p, std::uint64_t count, position at) {
    const std::uint64_t global = mine().global, slots = whole_.slots, epoch = epoch_;
    std::uint64_t base = at.index * global + whole_.begin, row = 0, step = step_;
    for (const std::uint64_t end = step + count; step != end; ++step, base += global, row += slots)
      p.parts.emplace_back(base, row, slots, global, position{epoch, step});
    p.slots = row;
    step_ = step - 1;
    go_on();
  }

  void go_on() {
    if (++step_ >= steps_per_epoch()) {
      ++epoch_;
      step_ = 0;
    }
  }

  /// How many ordinals go through the buffer in an epoch.
  [[nodiscard]] std::uint64_t cursor_inputs() const {
    const cut& c = mine();
    if constexpr (!parts::shard_before_cursor) return c.size;
    std::uint64_t whole = c.size / c.global, inputs = whole * (whole == 0 ? 0 : c.slots(0));
    return c.steps() > whole ? inputs + c.valid(whole) : inputs;
  }

  void reach(position at) {
    if (cursor_place_.epoch != at.epoch || cursor_place_.index > at.index) {
      cursor_.begin(at.epoch, cursor_inputs());
      cursor_place_ = {at.epoch, 0};
    }
    for (; at.index > cursor_place_.index; ++cursor_place_.index) draw_step(cursor_place_.index, nullptr);
  }
  void move_cursor(position at, std::vector<std::uint64_t>* indices) {
    reach(at);
    draw_step(at.index, indices);
    ++cursor_place_.index;
  }
  /// Draws what one global step takes (after `shard`: what this rank's part takes) and lists this rank's.
  void draw_step(std::uint64_t step, std::vector<std::uint64_t>* indices) {
    const cut& c = mine();
    const std::uint64_t valid = c.valid(step);
    if constexpr (parts::shard_before_cursor) {
      const std::uint64_t each = std::max<std::uint64_t>(1, c.slots(0));
      for (std::uint64_t i = 0; i < valid; ++i) {
        const std::uint64_t ordinal = cursor_.next();
        if (indices != nullptr) indices->push_back(c.at(ordinal / each)[ordinal % each]);
      }
    } else {
      const std::uint64_t count = c.count(step), divided = c.policy == tail::keep ? count : c.global;
      const std::uint64_t begin = std::min(count, divided * c.rank / c.world);
      for (std::uint64_t i = 0; i < count; ++i) {
        const std::uint64_t ordinal = cursor_.next();
        if (indices != nullptr && i >= begin && i < begin + valid) indices->push_back(ordinal);
      }
    }
  }

  std::shared_ptr<const arithmetic> shared_;
  cut::whole_steps whole_;
  std::optional<std::uint64_t> fixed_steps_;
  std::uint64_t epoch_ = 0, step_ = 0, limit_ = 1;
  position_buffer cursor_;
  position cursor_place_{no_epoch, 0};  // the step that the cursor stands before
};

}  // namespace penstock::inline v0_1

// ---- penstock/run/evaluator.hpp

namespace penstock::inline v0_1 {

/// What a worker does with a piece of a block: evaluates positions and writes what comes out to rows of the
/// block's columns.
///
/// `Light` plans make numbers of numbers: their loops shall vectorise, so nothing is looked at per sample but
/// once in a run of samples that takes some 20 us (`Counts::run`). In the others the stop flag is looked at
/// before each sample. A failure is kept in the block, for the lowest row; nothing is thrown.
template <class Chain, class Payload, class Ring, bool Light, bool Ordered = false>
class evaluator {
 public:
  using worker = typename Chain::worker;

  evaluator(Chain chain, const Ring& stop) : chain_(std::move(chain)), ring_(stop) {}

  /// Evaluates the rows [first, last) of a batch, each to its place. With `times` the first one is timed.
  template <class Counts>
  void write_slots(Payload& p, const batch_part& part, worker& w, Counts& counts, std::uint64_t first,
                   std::uint64_t last, bool times) const noexcept {
    std::uint64_t row = first;
    const auto index_of = [&](std::uint64_t r) {
      return p.listed ? p.indices[static_cast<std::size_t>(r)] : part.view[r - part.first];
    };
    try {
      if (times && row < last) {
        counts.begin_run(index_of(row), 1);
        evaluate_to_row(p, w, row, index_of(row), timed{});
        ++row;
      }
      if constexpr (Light) {
        while (row < last && !ring_.stopped()) {
          const std::uint64_t count = std::min(last - row, counts.run);
          counts.begin_run(index_of(row), count);
          write_light(p, part, w, row, row + count);
        }
      } else {
        for (; row < last; ++row) {
          if (ring_.stopped()) return;
          const std::uint64_t index = index_of(row);
          counts.begin_run(index, 1);
          evaluate_to_row(p, w, row, index, untimed{});
        }
      }
      counts.end_run();
    } catch (...) {
      counts.end_run();
      note_failure(p, row, index_of(row));
    }
  }

  /// Evaluates all positions of a chunk; what comes out goes to its rows, one after another.
  template <class Counts>
  void write_rows(Payload& p, worker& w, Counts& counts, bool times) const noexcept {
    row_writer rows = begin_rows(p);
    const std::uint64_t valid = p.parts[0].valid;
    try {
      if (times && valid != 0) {
        counts.begin_run(p.index(0), 1);
        chain_.evaluate({p.epoch, p.index(0)}, w, rows, timed{});
        ++rows.slot;
      }
      if (Light && !Chain::has_parts && !p.listed) {
        while (rows.slot < valid) {
          if (ring_.stopped()) return;
          const std::uint64_t count = std::min(valid - rows.slot, counts.run);
          counts.begin_run(p.index(rows.slot), count);
          write_rows_light(p, w, rows, rows.slot + count);
        }
      } else {
        for (; rows.slot < valid; ++rows.slot) {
          if (ring_.stopped()) return;
          const std::uint64_t index = p.index(rows.slot);
          counts.begin_run(index, 1);
          chain_.evaluate({p.epoch, index}, w, rows, untimed{});
        }
      }
      counts.end_run();
    } catch (...) {
      counts.end_run();
      note_failure(p, rows.count, p.index(rows.slot));
    }
    p.rows = rows.count;
  }

  /// The same for a chunk of samples that a forward source gave.
  template <class Item, class Counts>
  void write_items(Payload& p, worker& w, Counts& counts, const std::vector<Item>& items,
                   bool times) const noexcept {
    row_writer rows = begin_rows(p);
    const batch_part& part = p.parts[0];
    try {
      for (; rows.slot < part.valid; ++rows.slot) {
        if (ring_.stopped()) return;
        detail::innermost(w).item = &items[static_cast<std::size_t>(rows.slot)];
        const position at{p.epoch, part.view[rows.slot]};
        counts.begin_run(at.index, 1);
        if (times && rows.slot == 0)
          chain_.evaluate(at, w, rows, timed{});
        else
          chain_.evaluate(at, w, rows, untimed{});
      }
      counts.end_run();
    } catch (...) {
      counts.end_run();
      note_failure(p, rows.count, part.view[rows.slot]);
    }
    p.rows = rows.count;
  }

  /// Keeps the exception that is being handled as the failure of a row, with the position if it is ours.
  static void note_failure(Payload& p, std::uint64_t row, std::uint64_t index) noexcept {
    try {
      throw;
    } catch (error& e) {
      try {
        e.at_position({p.epoch, index});
        p.fail(row, std::current_exception());
      } catch (...) {  // memory is short: without the position then
        p.fail(row, std::make_exception_ptr(e));
      }
    } catch (...) {
      p.fail(row, std::current_exception());
    }
  }

  /// Puts the columns of a batch in order; a failure is kept in it.
  static void finish_columns(Payload& p, const batch_part& part) noexcept {
    try {
      p.columns.finish(static_cast<std::size_t>(part.first), static_cast<std::size_t>(part.slots),
                       static_cast<std::size_t>(part.valid));
    } catch (slot_error& e) {
      try {
        throw std::move(e.what);
      } catch (...) {
        note_failure(p, e.slot, p.index(e.slot));
      }
    } catch (...) {
      p.fail(part.first, std::current_exception());
    }
  }

 private:
  /// Where the rows of a chunk go; makes room where a stage made several of one.
  struct row_writer {
    Payload& p;
    std::uint64_t count, room, slot;

    template <class V>
    void operator()(V&& value) {
      if (count == room) grow();
      p.columns.write(static_cast<std::size_t>(count), std::forward<V>(value));
      p.sources[static_cast<std::size_t>(count)] = static_cast<std::uint32_t>(slot);
      ++count;
    }
    void grow() {
      room = std::max<std::uint64_t>(16, room * 2);
      p.columns.grow(static_cast<std::size_t>(room), static_cast<std::size_t>(count));
      p.sources.resize(static_cast<std::size_t>(room));
    }
  };

  /// Room for a row per slot; the vector keeps what it had.
  static row_writer begin_rows(Payload& p) noexcept {
    return {p, 0, std::min<std::uint64_t>(p.slots, p.sources.size()), 0};
  }

  template <class Timing>
  void evaluate_to_row(Payload& p, worker& w, std::uint64_t row, std::uint64_t index, Timing timing) const {
    chain_.evaluate(
        {p.epoch, index}, w,
        [&p, row]<class V>(V&& value) {
          p.columns.write(static_cast<std::size_t>(row), std::forward<V>(value));
        },
        timing);
  }

  /// The loop of `write_slots` with everything in registers. `row` is where it stands, also when something is
  /// thrown.
  void write_light(Payload& p, const batch_part& part, worker& w, std::uint64_t& row,
                   std::uint64_t last) const {
    const step_view view = part.view;
    const std::uint64_t epoch = p.epoch, base = part.first;
    auto& columns = p.columns;
    std::uint64_t at = row;
    const auto loop = [&](auto index_of) {
      const auto evaluate_until = [&](std::uint64_t end, auto timing) {
        for (; at < end; ++at)
          chain_.evaluate(
              {epoch, index_of(at)}, w,
              [&columns, at]<class V>(V&& value) {
                columns.write(static_cast<std::size_t>(at), std::forward<V>(value));
              },
              timing);
      };
      if constexpr (Ordered) {
        while (at < last) {
          const std::uint64_t n = std::min<std::uint64_t>(last - at, 64);
          chain_.look_up(at, n, w, index_of);
          evaluate_until(at + n, looked_up{});
        }
      } else {
        evaluate_until(last, untimed{});
      }
    };
    try {
      if (p.listed)
        loop([indices = p.indices.data()](std::uint64_t r) { return indices[r]; });
      else if (view.contiguous())
        loop([shift = view[0] - base](std::uint64_t r) { return r + shift; });
      else
        loop([&view, base](std::uint64_t r) { return view[r - base]; });
    } catch (...) {
      row = at;
      throw;
    }
    row = at;
  }

  /// The loop of `write_rows` in registers, where no stage makes several of one: then there is always room
  /// for a row.
  void write_rows_light(Payload& p, worker& w, row_writer& rows, std::uint64_t end) const {
    const step_view view = p.parts[0].view;
    const std::uint64_t epoch = p.epoch;
    auto& columns = p.columns;
    std::uint32_t* const sources = p.sources.data();
    std::uint64_t count = rows.count, slot = rows.slot;
    try {
      for (; slot < end; ++slot)
        chain_.evaluate(
            {epoch, view[slot]}, w,
            [&columns, sources, slot, &count]<class V>(V&& value) {
              columns.write(static_cast<std::size_t>(count), std::forward<V>(value));
              sources[count] = static_cast<std::uint32_t>(slot);
              ++count;
            },
            untimed{});
    } catch (...) {
      rows.count = count;
      rows.slot = slot;
      throw;
    }
    rows.count = count;
    rows.slot = slot;
  }

  Chain chain_;
  const Ring& ring_;
};

}  // namespace penstock::inline v0_1

// ---- penstock/run/home_process.hpp

namespace penstock::inline v0_1 {

/// Remembers in which process it was made: a child after `fork()` has the memory of a run and none of its
/// threads.
///
/// Asking costs one load, where the kernel can wipe a page on fork (Linux 4.14); elsewhere a `getpid`. Any
/// thread asks.
class home_process {
 public:
  home_process() noexcept : id_(::getpid()) {
#ifdef MADV_WIPEONFORK
    const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    void* const page = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return;
    if (::madvise(page, size, MADV_WIPEONFORK) != 0) {
      ::munmap(page, size);
      return;
    }
    mark_ = static_cast<unsigned char*>(page);
    *mark_ = 1;
#endif
  }
  home_process(const home_process&) = delete;
  home_process& operator=(const home_process&) = delete;
  ~home_process() {
    if (mark_ != nullptr) ::munmap(mark_, static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)));
  }

  /// False in a child of the process where this was made.
  [[nodiscard]] bool here() const noexcept { return mark_ != nullptr ? *mark_ != 0 : ::getpid() == id_; }
  /// Throws `errc::argument` in a child.
  void check() const {
    if (!here()) refuse();
  }

 private:
  [[noreturn, gnu::cold, gnu::noinline]] static void refuse() {
    throw error(errc::argument,
                "this run was opened before fork(), and its workers are in the parent; open the plan in the "
                "child as well, or fork first");
  }

  pid_t id_;
  unsigned char* mark_ = nullptr;  // 0 in a child
};

}  // namespace penstock::inline v0_1

// ---- penstock/run/machine.hpp

#if defined(__linux__)
#include <sched.h>
#endif

namespace penstock::inline v0_1 {

namespace detail {

/// The processors that a cgroup's quota allows, or 0 for no limit. Version 2 first, then version 1.
template <class = void>
double cgroup_quota() {
  double quota = 0, period = 0;
  if (std::FILE* f = std::fopen("/sys/fs/cgroup/cpu.max", "re")) {
    if (std::fscanf(f, "%lf %lf", &quota, &period) != 2) quota = 0;  // "max 100000"
    std::fclose(f);
  } else {
    const auto number = [](const char* path) {
      double value = 0;
      if (std::FILE* file = std::fopen(path, "re")) {
        if (std::fscanf(file, "%lf", &value) != 1) value = 0;
        std::fclose(file);
      }
      return value;
    };
    quota = number("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
    period = number("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  }
  return quota > 0 && period > 0 ? quota / period : 0;
}

}  // namespace detail

/// The processors this process may use: the smaller of its affinity mask and its cgroup's quota, at least
/// one.
template <class = void>
[[nodiscard]] unsigned usable_processors() {
  unsigned count = std::max(1u, std::thread::hardware_concurrency());
#if defined(__linux__)
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    count = static_cast<unsigned>(std::max(1, CPU_COUNT(&set)));
#endif
  if (const double quota = detail::cgroup_quota(); quota > 0)
    count = std::min(count, static_cast<unsigned>(std::ceil(quota)));
  return std::max(1u, count);
}

/// How many workers a run has when nobody says: its share of the processors among the ranks of the node, less
/// one for the training loop, at least one.
template <class = void>
[[nodiscard]] unsigned default_workers(std::uint64_t local_ranks) {
  const unsigned share = usable_processors() / static_cast<unsigned>(std::max<std::uint64_t>(1, local_ranks));
  return share > 1 ? share - 1 : 1;
}

}  // namespace penstock::inline v0_1

// ---- penstock/observe/concepts.hpp

/// What watches a run. An *observer* is an annotation of a plan; `connect` makes the session that a run
/// tells what its threads did. A plan without one has no code for it.
namespace penstock::inline v0_1 {

/// What a thread of a run does for a while.
enum class activity : std::uint8_t {
  evaluate,        ///< a worker, or the consumer without workers: a grain of a block
  stage,           ///< within `evaluate`: the source or one stage, for the first sample of the grain
  read,            ///< within `evaluate`: the serial front of a forward source, for a chunk
  wait_for_input,  ///< within `evaluate`: others are at the serial front
  wait_for_room,   ///< a worker without a block to work on
  wait_for_batch,  ///< the consumer
  copy,            ///< the consumer begins a copy to the device
  wait_for_copy,   ///< the consumer
  ask_ahead,       ///< bytes of samples to come are asked for
  hold_batch,      ///< from its hand-over until it is let go; these overlap
  hold_chunk,      ///< samples on their way to batches, until their memory is free again
};

[[nodiscard]] constexpr std::string_view to_string(activity a) noexcept {
  constexpr std::string_view names[] = {"evaluate",      "stage",          "read",      "wait for input",
                                        "wait for room", "wait for batch", "copy",      "wait for copy",
                                        "ask for bytes", "hold batch",     "hold chunk"};
  return names[static_cast<std::size_t>(a)];
}

/// One thing that a thread did.
struct run_event {
  static constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();

  std::uint64_t begin_ns = 0, end_ns = 0;  ///< of the steady clock
  activity what = activity::evaluate;
  std::uint32_t stage = 0;     ///< of `stage`: its number among `observed_run::stages`
  std::uint64_t block = none;  ///< in the order in which blocks are handed over
  std::uint64_t batch = none;  ///< the step of its epoch, where it is known
  std::uint64_t epoch = none;
  std::uint64_t first = none, last = none;  ///< position indices, where there are samples
  std::uint64_t samples = 0;
};

/// What an observer is told about a run when it is opened. Thread 0 is the consumer, 1 to `workers` are the
/// workers, and the next one, where `asks_ahead`, asks for bytes.
struct observed_run {
  std::string source;
  std::vector<std::string> stages;  ///< the source and the value stages, by name
  unsigned workers = 0;
  bool asks_ahead = false;
  std::uint64_t rank = 0, world = 1;
};

/// What a run tells an observer. `note` is called by the thread that it names and no other at that time;
/// `hold` and `let_go` by any: no system call and no allocation there, in `note` no lock either.
template <class S>
concept observer_session =
    std::movable<S> && requires(S& s, unsigned thread, const run_event& event, const void* key) {
      { s.note(thread, event) } noexcept;
      { s.hold(key, event) } noexcept;
      { s.let_go(key) } noexcept;
    };

/// An annotation that watches the runs of the plans in which it stands.
template <class T>
concept observer = part_of_kind<T, annotation_tag> && requires(const T& t, const observed_run& what) {
  requires observer_session<typename T::session>;
  { t.connect(what) } -> std::same_as<typename T::session>;
};

}  // namespace penstock::inline v0_1

// ---- penstock/run/sizes.hpp

namespace penstock::inline v0_1 {

/// Plans of which every element is numbers, from a source of numbers.
template <class Plan>
inline constexpr bool light_plan =
    detail::all_fixed<typename plan_parts<Plan>::element>::value &&
    std::is_trivially_copyable_v<std::remove_cvref_t<typename Plan::source_type::element>> &&
    !unfinished<typename Plan::source_type::element>;

/// How large the pieces are into which a run cuts its work: arithmetic on what is known when it is opened. It
/// decides how fast a run is, never what it gives.
template <class Plan>
class run_sizes {
  using parts = plan_parts<Plan>;
  static constexpr bool light = light_plan<Plan>;
  static constexpr std::uint64_t element_bytes = light ? sizeof(typename parts::element) : 0;

 public:
  /// `sample_bytes`: bytes of a sample as the source knows it, 0 where it does not. `crowded`: threads share
  /// processors. `copies`: batches go to a device.
  run_sizes(const run_options& options, std::uint64_t sample_bytes, bool crowded, bool copies) noexcept
      : options_(options), sample_bytes_(sample_bytes), crowded_(crowded), copies_(copies) {}

  /// Batches of one block: one, but for small batches of numbers, where handing over costs more than
  /// evaluating. `slots`: of one batch.
  [[nodiscard]] std::size_t batches_per_block(std::uint64_t slots) const noexcept {
    if constexpr (parts::direct && light) {
      if (!copies_ && !options_.depth)
        return static_cast<std::size_t>(std::clamp<std::uint64_t>(light_slots() / slots, 1, 256));
    }
    return 1;
  }
  /// Blocks in flight: a few more than workers, so that they stay in the cache; more where threads share
  /// processors and the consumer is not woken for each. `slots`: of one block.
  [[nodiscard]] std::size_t depth(std::uint64_t slots) const noexcept {
    if (options_.depth) return std::max<std::size_t>(2, *options_.depth);
    if (*options_.workers == 0) return 2;
    const std::size_t few = std::max(4u, *options_.workers + 3);
    const std::uint64_t bytes = std::max(sample_bytes_, element_bytes) * slots;
    const bool small = sample_bytes_ != 0 && bytes <= 262'144;
    return crowded_ && small ? std::max<std::size_t>(few, std::min(8 * *options_.workers, 32u)) : few;
  }
  /// Slots that a worker takes at a time: 32 KB of payload or so, one where samples are large, a few where
  /// nothing is known. A chunk is taken whole. `slots`: of one block.
  [[nodiscard]] std::uint64_t grain(std::uint64_t slots) const noexcept {
    if constexpr (!parts::direct) return slots;
    if constexpr (light) return std::min<std::uint64_t>(slots, light_slots());
    return std::min<std::uint64_t>(
        slots, sample_bytes_ == 0 ? 8 : std::clamp<std::uint64_t>(32'768 / sample_bytes_, 1, 64));
  }
  /// Slots of a chunk.
  [[nodiscard]] std::uint64_t chunk(const Plan& p) const noexcept {
    if constexpr (light) return std::min<std::uint64_t>(light_slots(), 4096);
    if constexpr (parts::batched && parts::forward && !parts::decided)
      return std::min<std::uint64_t>(detail::at<parts::in::batch>(p.stages()).size, 4096);
    else
      return sample_bytes_ == 0 ? 16 : std::clamp<std::uint64_t>(65'536 / sample_bytes_, 1, 64);
  }

 private:
  /// Slots of a light plan that a worker takes at a time, and that a block holds at least: few where they
  /// stay in the nearest cache, many where changing threads costs more.
  [[nodiscard]] std::uint64_t light_slots() const noexcept {
    const std::uint64_t bytes = *options_.workers == 0 ? 16'384 : crowded_ ? 131'072 : 65'536;
    return std::max<std::uint64_t>(1, bytes / sizeof(typename parts::element));
  }

  run_options options_;
  std::uint64_t sample_bytes_;
  bool crowded_, copies_;
};

}  // namespace penstock::inline v0_1

// ---- penstock/run/observers.hpp

namespace penstock::inline v0_1 {

/// The observers of a run, each told the same. Without one it is empty, and whoever would tell it something
/// asks `any` first.
template <observer_session... Sessions>
class observer_set {
 public:
  static constexpr bool any = sizeof...(Sessions) != 0;

  observer_set() = default;
  explicit observer_set(std::tuple<Sessions...> all)
    requires(any)
      : all_(std::move(all)) {}

  void note(unsigned thread, const run_event& e) noexcept {
    std::apply([&](auto&... each) { (each.note(thread, e), ...); }, all_);
  }
  void hold(const void* key, const run_event& e) noexcept {
    std::apply([&](auto&... each) { (each.hold(key, e), ...); }, all_);
  }
  void let_go(const void* key) noexcept {
    std::apply([&](auto&... each) { (each.let_go(key), ...); }, all_);
  }

 private:
  [[no_unique_address]] std::tuple<Sessions...> all_;
};

namespace detail {

/// The sessions of those stages that are observers.
template <class... Stages>
auto observe_with(const observed_run& what, const Stages&... stages) {
  const auto one = [&what]<class Stage>(const Stage& stage) {
    if constexpr (observer<Stage>)
      return std::tuple<typename Stage::session>(stage.connect(what));
    else
      return std::tuple<>();
  };
  return [&]<class... Sessions>(std::tuple<Sessions...> all) {
    if constexpr (sizeof...(Sessions) == 0)
      return observer_set<>();
    else
      return observer_set<Sessions...>(std::move(all));
  }(std::tuple_cat(one(stages)...));
}

struct no_stages {};

template <class Stages>
struct observers_in;
template <class... Stages>
struct observers_in<pack<Stages...>> {
  using type = decltype(observe_with(std::declval<const observed_run&>(), std::declval<const Stages&>()...));
};

}  // namespace detail

/// The type of what watches the runs of a plan.
template <class Plan>
using observers_of = typename detail::observers_in<typename Plan::stages_type>::type;

/// What a run tells the observers of its plan. Without one every function here is empty.
///
/// Threads as in `observed_run`: `consumer` and `worker(i)` say whose the event is.
template <class Plan>
class run_watch {
  using parts = plan_parts<Plan>;

 public:
  static constexpr bool any = observers_of<Plan>::any;
  /// Whether the first sample of every grain is timed: not where samples are numbers.
  static constexpr bool all_grains = any && !light_plan<Plan>;

  run_watch(const Plan& p, unsigned workers, bool asks_ahead)
      : all_(connect(p, workers, asks_ahead)), workers_(workers) {
    if constexpr (all_grains) stages_.resize(std::max(1u, workers));
  }

  /// The clock, where anybody looks.
  [[nodiscard]] static std::uint64_t now() noexcept {
    if constexpr (any) return detail::now_ns();
    return 0;
  }

  void consumer(const run_event& e) noexcept { note(0, e); }
  template <class Payload>
  void consumer(run_event e, const Payload& p) noexcept {
    if constexpr (any) {
      describe(e, p);
      note(0, e);
    }
  }
  void worker(std::size_t i, const run_event& e) noexcept { note(thread_of(i), e); }
  /// A grain, whose slots begin at `first`: with the range of its positions, and what each stage took of its
  /// first sample.
  template <class Scratch, class Payload>
  void grain(std::size_t i, Scratch& scratch, const Payload& p, std::uint64_t first, std::uint64_t slots,
             std::uint64_t samples, run_event e) noexcept {
    if constexpr (any) {
      e.samples = samples;
      if (samples != 0) locate(e, p, first, slots);
      note(thread_of(i), e);
      if constexpr (all_grains) {
        std::uint64_t at = e.begin_ns;
        detail::for_each_cost(scratch, [&](std::size_t number, const stage_cost& cost) {
          std::uint64_t& before = stages_[i].nanoseconds[number];
          const std::uint64_t took = cost.nanoseconds - std::exchange(before, cost.nanoseconds);
          if (took == 0 || parts::forward) return;
          note(thread_of(i), {at, std::min(at + took, e.end_ns), activity::stage,
                              static_cast<std::uint32_t>(number), e.block});
          at = std::min(at + took, e.end_ns);
        });
      }
    }
  }

  template <class Payload>
  void hold(const Payload& p) noexcept {
    if constexpr (any) {
      run_event e{now(), 0, parts::direct || p.from_batches ? activity::hold_batch : activity::hold_chunk};
      describe(e, p);
      all_.hold(&p, e);
    }
  }
  void let_go(const void* payload) noexcept {
    if constexpr (any) all_.let_go(payload);
  }
  template <class ReadAhead>
  void follow(ReadAhead& ahead) noexcept {
    if constexpr (any) ahead.observe(asked, this);
  }

 private:
  struct alignas(64) stage_times {
    std::array<std::uint64_t, 1 + parts::in::count> nanoseconds{};
  };

  static observers_of<Plan> connect(const Plan& p, unsigned workers, bool asks_ahead) {
    if constexpr (any) {
      observed_run what;
      what.source = text_of_stage(p.source());
      what.stages.emplace_back(Plan::source_type::source_name);
      const auto name = [&]<class Stage>(const Stage& stage) {
        if constexpr (value_stage<Stage>) what.stages.push_back(text_of_stage(stage));
      };
      p.stages().apply([&](const auto&... stages) { (name(stages), ...); });
      what.workers = workers;
      what.asks_ahead = asks_ahead && workers != 0;
      what.rank = world_of(p).rank;
      what.world = world_of(p).size;
      return p.stages().apply([&](const auto&... stages) { return detail::observe_with(what, stages...); });
    } else {
      return {};
    }
  }

  void note(unsigned thread, const run_event& e) noexcept {
    if constexpr (any) all_.note(thread, e);
  }
  [[nodiscard]] unsigned thread_of(std::size_t worker) const noexcept {
    return workers_ == 0 ? 0 : 1 + static_cast<unsigned>(worker);
  }
  static void asked(void* self, std::uint64_t begin, std::uint64_t end, std::uint64_t samples) {
    auto& me = *static_cast<run_watch*>(self);
    run_event e{begin, end, activity::ask_ahead};
    e.samples = samples;
    me.note(me.workers_ == 0 ? 0 : 1 + me.workers_, e);
  }

  /// Which batch a payload is.
  template <class Payload>
  static void describe(run_event& e, const Payload& p) noexcept {
    if constexpr (parts::direct) {
      e.batch = p.parts.front().delivered.index;
      e.epoch = p.parts.front().delivered.epoch;
      for (const auto& part : p.parts) e.samples += part.valid;
    } else if (p.from_batches) {
      e.samples = p.gathered.size();
      if (p.gathered.empty()) return;
      e.epoch = p.gathered.front().epoch;
      e.first = p.gathered.front().index;
      e.last = p.gathered.back().index;
    } else {
      e.samples = p.rows;
    }
  }
  /// Which positions the slots [first, first + slots) hold: the first of them and the last.
  template <class Payload>
  static void locate(run_event& e, const Payload& p, std::uint64_t first, std::uint64_t slots) noexcept {
    e.epoch = p.epoch;
    for (const auto& part : p.parts) {
      const std::uint64_t begin = parts::direct ? std::max(first, part.first) : part.first;
      const std::uint64_t all = part.first + part.valid;
      const std::uint64_t end = parts::direct ? std::min(first + slots, all) : all;
      if (begin >= end) continue;
      if (e.first == run_event::none) {
        e.first = p.index(begin);
        if constexpr (parts::direct) e.batch = part.delivered.index;
      }
      e.last = p.index(end - 1);
    }
  }

  [[no_unique_address]] observers_of<Plan> all_;
  [[no_unique_address]] std::conditional_t<all_grains, std::vector<stage_times>, detail::no_stages> stages_;
  unsigned workers_;
};

}  // namespace penstock::inline v0_1

// ---- penstock/run/thread.hpp

namespace penstock::inline v0_1 {

/// A thread that runs one member function, and is joined when this goes. Not std::jthread, which compiles a
/// hundred functions for each thing that it may run.
class joined_thread {
 public:
  joined_thread() = default;
  joined_thread(const joined_thread&) = delete;
  joined_thread& operator=(const joined_thread&) = delete;
  ~joined_thread() { join(); }

  /// Calls `(object.*Member)()`, which does not throw. std::system_error where no thread is to be had.
  template <auto Member, class T>
  void start(T& object) {
    begin(
        [](void* it) noexcept -> void* {
          (static_cast<T*>(it)->*Member)();
          return nullptr;
        },
        &object);
  }
  [[nodiscard]] bool joinable() const noexcept { return runs_; }
  void join() noexcept {
    if (runs_ && ::pthread_join(id_, nullptr) != 0) std::terminate();  // a thread that joins itself
    runs_ = false;
  }

 private:
  [[gnu::cold, gnu::noinline]] void begin(void* (*what)(void*), void* it) {
    if (const int code = ::pthread_create(&id_, nullptr, what, it); code != 0)
      throw std::system_error(code, std::generic_category());
    runs_ = true;
  }

  pthread_t id_{};
  bool runs_ = false;
};

}  // namespace penstock::inline v0_1

// ---- penstock/run/read_ahead.hpp

namespace penstock::inline v0_1 {

/// Asks the source for the bytes of samples before their turn: follows the feed a given number of samples
/// ahead of what is opened.
///
/// The order is known, so what it asks for is exact, across the end of an epoch too. Runs in a thread of its
/// own (a hint may block in the kernel), or in the consumer's where the run has no workers.
template <class Reader, class Feed>
class read_ahead {
 public:
  read_ahead() = default;
  ~read_ahead() { stop(); }

  /// `asked(who, begin, end, samples)` is called after each time that bytes were asked for, by the thread
  /// that did; times in nanoseconds of the steady clock.
  using asked_type = void (*)(void* who, std::uint64_t begin, std::uint64_t end, std::uint64_t samples);
  void observe(asked_type asked, void* who) noexcept {
    asked_by_ = asked;
    who_ = who;
  }
  void start(const Reader& reader, const Feed& feed, std::uint64_t samples, bool own_thread) {
    reader_ = &reader;
    feed_ = feed;
    samples_ = samples;
    if (own_thread) thread_.template start<&read_ahead::follow>(*this);
  }
  /// A block of so many slots was opened.
  void opened(std::uint64_t slots) {
    if (reader_ == nullptr) return;
    {
      const std::lock_guard guard(lock_);
      opened_ += slots;
    }
    if (thread_.joinable())
      more_.notify_one();
    else
      catch_up();
  }
  void limit(std::uint64_t epochs) {
    if (reader_ == nullptr) return;
    const std::lock_guard guard(lock_);
    feed_->limit(epochs);
  }
  /// Begins again where the feed stands now.
  void restart(const Feed& feed) {
    if (reader_ == nullptr) return;
    const std::lock_guard guard(lock_);
    feed_ = feed;
    opened_ = asked_ = 0;
  }
  void stop() noexcept {
    {
      const std::lock_guard guard(lock_);
      stop_ = true;
    }
    more_.notify_one();
    if (thread_.joinable()) thread_.join();
  }

 private:
  [[nodiscard]] bool behind() const { return feed_->more() && asked_ < opened_ + samples_; }

  /// One block's worth of hints; the lock is free while the kernel is asked.
  void ask_once(std::unique_lock<std::mutex>& held) {
    typename Feed::placement_type next = std::move(placement_);
    feed_->prepare(next, 1);
    asked_ += next.slots == 0 ? 1 : next.slots;
    held.unlock();
    const std::uint64_t begin = asked_by_ == nullptr ? 0 : detail::now_ns();
    try {
      for (std::uint64_t slot = 0; slot < next.parts[0].valid; ++slot)
        reader_->will_need(next.binding(next.index(slot)).index);
    } catch (...) {  // a hint is only a hint: whoever reads the sample will say what is wrong
    }
    if (asked_by_ != nullptr) asked_by_(who_, begin, detail::now_ns(), next.parts[0].valid);
    held.lock();
    placement_ = std::move(next);
  }
  void catch_up() {
    std::unique_lock held(lock_);
    while (!stop_ && behind()) ask_once(held);
  }
  void follow() noexcept {
    std::unique_lock held(lock_);
    while (!stop_) {
      if (behind()) {
        try {
          ask_once(held);
        } catch (...) {  // a hint is only a hint: whoever reads the sample will say what is wrong
          if (!held.owns_lock()) held.lock();
          return;
        }
      } else {
        more_.wait(held);
      }
    }
  }

  const Reader* reader_ = nullptr;
  std::optional<Feed> feed_;
  typename Feed::placement_type placement_;
  std::uint64_t samples_ = 0, opened_ = 0, asked_ = 0;
  std::mutex lock_;
  std::condition_variable more_;
  bool stop_ = false;
  asked_type asked_by_ = nullptr;
  void* who_ = nullptr;
  joined_thread thread_;
};

}  // namespace penstock::inline v0_1

// ---- penstock/run/watchdog.hpp

namespace penstock::inline v0_1 {

/// Says on standard error what the consumer waits for, once it has waited longer than `after`, and again
/// after each such time.
///
/// `begin_wait` and `end_wait` are the consumer's; the thread sleeps most of the time and looks eight times
/// in that period.
template <class = void>
class basic_watchdog_thread {
 public:
  explicit basic_watchdog_thread(std::chrono::milliseconds after) : after_(after) {}
  ~basic_watchdog_thread() { stop(); }

  /// `explain(what, line)` appends what is being worked on; it is called from the watchdog's thread.
  using explain_type = void (*)(const void* what, std::string& line);
  void start(explain_type explain, const void* what) {
    if (after_.count() <= 0) return;
    explain_ = explain;
    what_ = what;
    thread_.start<&basic_watchdog_thread::watch>(*this);
  }
  void begin_wait() noexcept {
    if (!thread_.joinable()) return;
    const std::lock_guard guard(lock_);
    waiting_ = true;
    ++wait_;
  }
  void end_wait() noexcept {
    if (!thread_.joinable()) return;
    const std::lock_guard guard(lock_);
    waiting_ = false;
  }
  void stop() noexcept {
    {
      const std::lock_guard guard(lock_);
      stop_ = true;
    }
    changed_.notify_one();
    if (thread_.joinable()) thread_.join();
  }
  /// How many lines were written.
  [[nodiscard]] std::uint64_t lines() const {
    const std::lock_guard guard(lock_);
    return lines_;
  }

 private:
  /// How often it looks: a wake-up per batch would cost more than it is worth.
  [[nodiscard]] std::chrono::milliseconds period() const {
    return std::max(std::chrono::milliseconds(1), after_ / 8);
  }

  [[gnu::cold]] void watch() {
    std::unique_lock held(lock_);
    std::uint64_t last = 0;
    std::chrono::milliseconds waited{0};
    while (!stop_) {
      if (!waiting_) {
        changed_.wait_for(held, period());
        waited = {};
        continue;
      }
      if (wait_ != last) {
        last = wait_;
        waited = {};
      }
      const std::uint64_t before = wait_;
      changed_.wait_for(held, period(), [this] { return stop_; });
      if (stop_ || !waiting_ || wait_ != before) continue;
      waited += period();
      if (waited % after_ >= period()) continue;
      std::string line = detail::text({"penstock: no batch for ", waited.count() / 1000, ".",
                                       waited.count() % 1000 / 100, " s; waiting for "});
      explain_(what_, line);
      line += "\n";
      std::fputs(line.c_str(), stderr);
      ++lines_;
    }
  }

  std::chrono::milliseconds after_;
  mutable std::mutex lock_;
  std::condition_variable changed_;
  bool waiting_ = false, stop_ = false;
  std::uint64_t wait_ = 0, lines_ = 0;
  explain_type explain_ = nullptr;
  const void* what_ = nullptr;
  joined_thread thread_;
};
using watchdog_thread = basic_watchdog_thread<>;

}  // namespace penstock::inline v0_1

// ---- penstock/run/worker_counts.hpp

namespace penstock::inline v0_1 {

/// What one worker has counted, written by it alone and read by anyone: the source and `Stages - 1` value
/// stages.
template <std::size_t Stages>
struct alignas(64) worker_counts {
  static constexpr std::uint64_t nothing = std::numeric_limits<std::uint64_t>::max();

  std::atomic<std::uint64_t> samples{0}, grains{0}, busy_ns{0}, room_ns{0}, input_ns{0};
  // the position that is being evaluated, or the first one of some
  std::atomic<std::uint64_t> at_index{nothing};
  std::atomic<std::uint64_t> at_count{0};
  std::uint64_t run = 1;  // samples of a light plan to evaluate without looking around; the worker's own
  std::atomic<std::uint64_t> stage_ns[Stages]{};
  std::atomic<std::uint64_t> stage_timed[Stages]{};

  /// `n` samples from position `index` on are evaluated now.
  void begin_run(std::uint64_t index, std::uint64_t n) noexcept {
    at_count.store(n, std::memory_order_relaxed);
    at_index.store(index, std::memory_order_relaxed);
  }
  void end_run() noexcept { at_index.store(nothing, std::memory_order_relaxed); }
  /// Adds up one grain.
  void add(std::uint64_t count, std::uint64_t nanoseconds) noexcept {
    grains.store(grains.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    samples.store(samples.load(std::memory_order_relaxed) + count, std::memory_order_relaxed);
    busy_ns.store(busy_ns.load(std::memory_order_relaxed) + nanoseconds, std::memory_order_relaxed);
    if (count != 0) run = std::clamp<std::uint64_t>(20'000 * count / (nanoseconds + 1), 1, 8192);
  }
  template <class Worker>
  void publish(Worker& scratch) noexcept {
    detail::for_each_cost(scratch, [&](std::size_t number, const stage_cost& cost) {
      stage_ns[number].store(cost.nanoseconds, std::memory_order_relaxed);
      stage_timed[number].store(cost.timed, std::memory_order_relaxed);
    });
  }
};

/// Adds what the workers counted to the counters of a run, with the names of the plan's source and value
/// stages.
template <class Plan, std::size_t Stages>
void add_worker_counts(run_counters& all, const std::vector<worker_counts<Stages>>& workers, const Plan& p) {
  std::vector<std::uint64_t> ns(Stages), timed_samples(Stages);
  std::uint64_t samples = 0;
  for (const auto& w : workers) {
    samples += w.samples.load(std::memory_order_relaxed);
    all.worker_busy_seconds += static_cast<double>(w.busy_ns.load(std::memory_order_relaxed)) * 1e-9;
    all.waiting_for_room += static_cast<double>(w.room_ns.load(std::memory_order_relaxed)) * 1e-9;
    all.waiting_for_input += static_cast<double>(w.input_ns.load(std::memory_order_relaxed)) * 1e-9;
    for (std::size_t i = 0; i < Stages; ++i) {
      ns[i] += w.stage_ns[i].load(std::memory_order_relaxed);
      timed_samples[i] += w.stage_timed[i].load(std::memory_order_relaxed);
    }
  }
  const auto add = [&](std::string name) {
    const std::size_t i = all.stages.size();
    const double each =
        timed_samples[i] == 0 ? 0 : static_cast<double>(ns[i]) / static_cast<double>(timed_samples[i]);
    all.stages.push_back({std::move(name), samples, each * static_cast<double>(samples) * 1e-9});
  };
  add(std::string(Plan::source_type::source_name));
  const auto one = [&]<class Stage>(const Stage& stage) {
    if constexpr (value_stage<Stage>) add(text_of_stage(stage));
  };
  p.stages().apply([&](const auto&... stages) { (one(stages), ...); });
}

/// For the watchdog: appends what the workers are at, or `otherwise` where none evaluates.
template <std::size_t Stages>
[[gnu::cold]] void explain_wait(std::string& line, const std::vector<worker_counts<Stages>>& workers,
                                const char* otherwise) {
  bool any = false;
  for (std::size_t i = 0; i < workers.size(); ++i) {
    const std::uint64_t index = workers[i].at_index.load(std::memory_order_relaxed);
    if (index == worker_counts<Stages>::nothing) continue;
    const std::uint64_t count = workers[i].at_count.load(std::memory_order_relaxed);
    detail::append(line, {any ? "; worker " : "worker ", i, ", which evaluates "});
    if (count != 1) detail::append(line, {"one of ", count, " samples from "});
    detail::append(line, {"position ", index});
    any = true;
  }
  if (!any) line += otherwise;
}

}  // namespace penstock::inline v0_1

// ---- penstock/run/engine.hpp

/// The one engine: workers that evaluate runs of slots, a ring of blocks between them and the consumer.
namespace penstock::inline v0_1 {

/// Workers, ring, pool and feed of one run. Never moved: workers and batches point at it. One thread at a
/// time is its consumer.
template <class Plan>
class engine {
  using parts = plan_parts<Plan>;

 public:
  using device_type = typename detail::device_of<Plan>::type;
  using session_type = typename device_type::session;
  using feed_type = std::conditional_t<parts::direct, direct_feed<Plan>, chunk_feed<Plan>>;
  using binding = typename feed_type::binding;
  using source_element = typename Plan::source_type::element;
  using reader_type = typename Plan::source_type::reader;
  using node_type =
      std::conditional_t<parts::forward, item_node<source_element>, source_node<reader_type, binding>>;
  using chain_type = decltype(make_chain(std::declval<const Plan&>(), std::declval<node_type>(), 0));
  using columns_type = columns_of<Plan, session_type>;
  using payload_type = payload<columns_type, binding, typename session_type::transfer>;

  static constexpr bool light = light_plan<Plan>;
  static constexpr bool ordered = !parts::forward &&
                                  !std::is_same_v<binding, typename order_chain<>::binding> &&
                                  !std::is_same_v<binding, no_binding>;
  using ring_type = typename detail::ring_of<typename parts::stages>::type;
  using evaluator_type = evaluator<chain_type, payload_type, ring_type, light, ordered>;

  engine(const Plan& p, run_options options, const std::stop_token& token)
      : plan_(p),
        options_(resolve(p, options)),
        device_(detail::device_of<Plan>::get(p).connect()),
        reader_(open_reader(p)),
        crowded_(*options_.workers != 0 && *options_.workers + 1 > usable_processors()),
        feed_(make_feed(p)),
        trail_(feed_),
        parts_per_block_(sizes().batches_per_block(feed_.slots_per_block())),
        grain_slots_(sizes().grain(block_slots())),
        depth_(sizes().depth(block_slots())),
        ring_(*options_.workers == 0 ? 1 : depth_, (block_slots() + grain_slots_ - 1) / grain_slots_,
              crowded_ ? 0 : 2000),
        evaluator_(make_chain(p, make_node(), *options_.seed), ring_),
        front_(detail::front_of<Plan>::make(p), ring_.blocks()),
        in_ring_(ring_.blocks()),
        pool_(depth_ + (parts::direct ? 0 : 1)),
        watch_(p, *options_.workers, hints && options_.ahead != 0),
        started_(detail::now_ns()),
        counts_(std::max(1u, *options_.workers)),
        watchdog_(std::chrono::milliseconds(options_.watchdog_ms)),
        stop_callback_(token, stopper{this}) {
    start_threads();
  }
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;
  ~engine() { stop(); }

  [[nodiscard]] run_watch<Plan>& watch() noexcept { return watch_; }
  /// The process that has the threads.
  [[nodiscard]] const home_process& home() const noexcept { return home_; }
  /// Ends all work; the consumer's wait too. Any thread, any number of times.
  void request_stop() noexcept { ring_.stop(); }
  [[nodiscard]] bool stopped() const noexcept { return ring_.stopped(); }
  /// Ends all work and joins the threads. Consumer only.
  void stop() noexcept {
    ring_.stop();
    front_.stop();
    if constexpr (hints) ahead_.stop();
    watchdog_.stop();
    for (std::size_t i = 0; works_ && i < counts_.size(); ++i) works_[i].thread.join();
  }

  /// Opens what there is room for, so that workers begin before the first batch is asked for.
  void open_more() {
    while (opened_ - delivered_ < ring_.blocks() && !stopped() && feed_.more()) {
      payload_type* p = pool_.take();
      if (p == nullptr) {
        if (pool_.made() >= pool_.most() || !room_for_another()) return;
        p = pool_.make(device_, account_);
      }
      try {
        detail::settle(device_, *p);
        if (options_.memory && opened_ != delivered_ &&
            account_.bytes.load(std::memory_order_relaxed) > *options_.memory) {
          p->columns.release();  // batches have grown: with fewer of them then
          pool_.give_back(p);
          return;
        }
        prepare(*p);
      } catch (...) {
        lose(p);  // the feed has gone on and would leave this block out
        throw;
      }
      in_ring_[place(opened_)] = p;
      ring_.open(opened_++);
      if constexpr (hints) ahead_.opened(p->slots);
    }
  }

  /// The next block in order, evaluated; null at the limit of read-ahead or when stopped. Its failure, if
  /// any, is in it.
  payload_type* next() {
    open_more();
    if (delivered_ == opened_) {
      if (stopped() || !feed_.more()) return nullptr;
      throw error(errc::argument,
                  {"you hold ", pool_.out(), " of ", pool_.made(),
                   (parts_per_block_ == 1 ? " batches" : " blocks of batches"),
                   " and ask for another; let one go, or raise the depth with prefetch(n) after batch",
                   (options_.memory ? " or memory(bytes)" : "")});
    }
    if (!wait_for(delivered_)) return nullptr;
    payload_type* p = in_ring_[place(delivered_++)];
    largest_ = std::max(p->columns.held(), largest_ - largest_ / 8);  // first batches of a run take more
    sizes_known_ = true;
    if constexpr (session_type::copies && parts::direct) {
      try {
        send_ahead();
      } catch (...) {
        lose(p);  // what comes next is not what the consumer misses
        throw;
      }
    }
    return p;
  }
  void give_back(payload_type* p) noexcept { pool_.give_back(p); }
  /// The same for one whose turn is past and which the consumer did not get: the run cannot go on.
  void lose(payload_type* p) noexcept { give_back(p), request_stop(); }

  /// Drops what was opened, and begins again where `seek(feed)` puts the feed, and `front` the source's.
  template <class F>
  void reposition(F&& seek, std::span<const std::uint64_t> front = {}) {
    abandon_.store(true, std::memory_order_relaxed);
    while (delivered_ != opened_ && wait_for(delivered_)) pool_.give_back(in_ring_[place(delivered_++)]);
    abandon_.store(false, std::memory_order_relaxed);
    seek(feed_);
    // else the run was stopped, and workers may still be in it
    if (delivered_ == opened_) front_.restart(front);
    trail_ = feed_;
    if constexpr (hints) ahead_.restart(feed_);
  }
  /// Lets the feed read ahead up to this epoch.
  void limit(std::uint64_t epochs) {
    feed_.limit(epochs);
    if constexpr (hints) ahead_.limit(epochs);
  }

  /// Waits until a block that `next` gave is on its device.
  void arrive(payload_type& p) {
    if constexpr (session_type::copies) {
      send(p);
      const std::uint64_t begin = watch_.now();
      device_.wait(p.transfer);
      watch_.consumer({begin, watch_.now(), activity::wait_for_copy}, p);
    }
  }
  /// Remembers the shapes that were found, for batches to come.
  void learn_from(const payload_type& p) noexcept { shapes_ = p.columns.shapes(); }
  void delivered(std::uint64_t samples, std::uint64_t bytes) noexcept {
    samples_ += samples;
    bytes_ += bytes;
    ++batches_;
  }
  [[nodiscard]] run_counters counters() const {
    run_counters all;
    all.samples = samples_;
    all.bytes = bytes_;
    all.batches = batches_;
    all.workers = *options_.workers;
    all.seconds = static_cast<double>(detail::now_ns() - started_) * 1e-9;
    all.stall_seconds = static_cast<double>(stall_ns_) * 1e-9;
    all.bytes_held = account_.bytes.load(std::memory_order_relaxed);
    add_worker_counts(all, counts_, plan_);
    return all;
  }

  [[nodiscard]] feed_type& feed() noexcept { return feed_; }
  [[nodiscard]] const feed_type& feed() const noexcept { return feed_; }
  [[nodiscard]] feed_type& trail() noexcept { return trail_; }
  [[nodiscard]] const Plan& plan() const noexcept { return plan_; }
  [[nodiscard]] const run_options& options() const noexcept { return options_; }
  /// Blocks in flight, at most; those that the consumer holds included.
  [[nodiscard]] std::size_t depth() const noexcept { return depth_; }
  [[nodiscard]] session_type& device() noexcept { return device_; }
  [[nodiscard]] memory_account& account() noexcept { return account_; }
  [[nodiscard]] const auto& shapes() const noexcept { return shapes_; }
  [[nodiscard]] const std::optional<reader_type>& reader() const noexcept { return reader_; }

 private:
  static constexpr bool hints =
      !parts::forward && requires(const reader_type& r) { r.will_need(std::uint64_t{}); };
  static constexpr std::size_t stage_count = chain_type::depth + 1;
  static constexpr std::uint64_t after_all_rows = payload_type::no_slot - 1;  // the source itself failed
  static constexpr const char* idle = parts::forward ? "the source's next sample" : "a worker to begin it";
  using counts_type = worker_counts<stage_count>;

  struct stopper {
    engine* self;
    void operator()() const noexcept { self->request_stop(); }
  };

  /// What the ring asks of one worker.
  struct alignas(64) work {
    engine* self = nullptr;
    counts_type* counts = nullptr;
    typename chain_type::worker scratch{};
    std::uint64_t wait_begin = 0;
    joined_thread thread{};

    void serve() noexcept { self->ring_.serve(*this); }
    void evaluate(std::uint64_t s, std::uint64_t grain) noexcept { self->evaluate(*this, s, grain); }
    void finish(std::uint64_t s) noexcept { self->finish(s); }
    void waiting(bool begins) noexcept {
      if (begins)
        wait_begin = detail::now_ns();
      else
        self->has_room(*this);
    }
  };

  static run_options resolve(const Plan& p, run_options options) {
    if (!options.workers) options.workers = default_workers(world_of(p).local_size);
    return options;
  }
  static std::optional<reader_type> open_reader(const Plan& p) {
    if constexpr (parts::forward)
      return std::nullopt;
    else
      return p.source().open();
  }
  feed_type make_feed(const Plan& p) const {
    if constexpr (parts::direct)
      return feed_type(p);
    else
      return feed_type(p, sizes().chunk(p));
  }
  node_type make_node() const {
    if constexpr (parts::forward)
      return {};
    else
      return node_type{&*reader_};
  }

  [[nodiscard]] run_sizes<Plan> sizes() const {
    std::uint64_t bytes = 0;
    if constexpr (requires(const reader_type& r) { r.bytes_per_sample(); }) {
      if (reader_) bytes = reader_->bytes_per_sample();
    }
    return {options_, bytes, crowded_, session_type::copies};
  }
  [[nodiscard]] std::uint64_t block_slots() const { return feed_.slots_per_block() * parts_per_block_; }
  [[nodiscard]] std::size_t place(std::uint64_t s) const noexcept {
    return static_cast<std::size_t>(s % ring_.blocks());
  }

  static void explain(const void* self, std::string& line) {
    explain_wait(line, static_cast<const engine*>(self)->counts_, idle);
  }
  void start_threads() {
    const unsigned count = *options_.workers;
    // What a worker keeps is made here, where an exception has somewhere to go.
    works_.reset(new work[counts_.size()]);
    for (std::size_t i = 0; i < counts_.size(); ++i) works_[i].self = this, works_[i].counts = &counts_[i];
    try {
      for (unsigned i = 0; i < count; ++i) works_[i].thread.template start<&work::serve>(works_[i]);
      if constexpr (hints) {
        watch_.follow(ahead_);
        if (options_.ahead != 0) ahead_.start(*reader_, feed_, options_.ahead, count != 0);
      }
      if (count != 0) watchdog_.start(explain, this);
    } catch (const std::system_error& e) {
      stop();
      throw error(errc::io,
                  {"a worker thread could not be started (", e.what(), "); ask for fewer with workers(n)"});
    } catch (...) {
      stop();
      throw;
    }
  }

  void prepare(payload_type& p) {
    p.clear_failure();
    p.rows = 0;
    feed_.prepare(p, parts_per_block_);
    p.columns.expect(shapes_);
    p.columns.begin(static_cast<std::size_t>(p.slots));
    if constexpr (detail::all_fixed<typename parts::element>::value) {
      largest_ = std::max(largest_, p.columns.held());
      sizes_known_ = true;
    }
    if constexpr (!parts::direct) {
      if (p.sources.size() < p.slots) p.sources.resize(static_cast<std::size_t>(p.slots));
    }
  }

 public:
  /// Whether one more block may be made within `memory(bytes)`.
  [[nodiscard]] bool room_for_another() {
    const std::size_t made = pool_.made();
    if (!options_.memory || made == 0) return true;
    if (!sizes_known_) return false;  // they show with the first batch
    const std::uint64_t held = account_.bytes.load(std::memory_order_relaxed);
    const bool fixed = detail::all_fixed<typename parts::element>::value;
    // a longer batch makes its memory grow by so much
    const std::uint64_t one = largest_ + (fixed ? 0 : largest_ / 4);
    return one <= *options_.memory / (made + 1) && held + one <= *options_.memory;
  }

 private:
  [[nodiscard]] bool wait_for(std::uint64_t s) {
    if (*options_.workers == 0) {
      ring_.serve_here(works_[0], s);
      return !stopped();
    }
    if (ring_.is_ready(s)) return !stopped();
    const std::uint64_t begin = detail::now_ns();
    watchdog_.begin_wait();
    // Where threads share processors and blocks come fast, waking the consumer for each would cost more than
    // the blocks: it lets the workers run until most of those that are open are there.
    if (crowded_ && begin - last_wait_ns_ < 200'000) {
      const std::uint64_t later = s + (opened_ - 1 - s) * 3 / 4;
      for (unsigned i = 0; i < 16 && !stopped() && !ring_.is_ready(later); ++i) std::this_thread::yield();
    }
    const bool ready = ring_.wait_ready(s);
    watchdog_.end_wait();
    last_wait_ns_ = detail::now_ns();
    stall_ns_ += last_wait_ns_ - begin;
    watch_.consumer({begin, last_wait_ns_, activity::wait_for_batch, 0, s});
    return ready;
  }

  [[nodiscard]] std::size_t number(const work& w) const noexcept {
    return static_cast<std::size_t>(&w - works_.get());
  }
  void has_room(work& w) noexcept {
    const std::uint64_t end = detail::now_ns();
    w.counts->room_ns.fetch_add(end - w.wait_begin, std::memory_order_relaxed);
    watch_.worker(number(w), {w.wait_begin, end, activity::wait_for_room});
  }

  void evaluate(work& w, std::uint64_t s, std::uint64_t grain) noexcept {
    payload_type& p = *in_ring_[place(s)];
    const bool abandoned = abandon_.load(std::memory_order_relaxed);
    if (abandoned && !parts::forward) return;
    const std::uint64_t begin = detail::now_ns();
    const bool times = watch_.all_grains || w.counts->grains.load(std::memory_order_relaxed) % 64 == 0;
    std::uint64_t samples = 0;
    if constexpr (parts::forward) {
      samples = evaluate_pulled(p, w, s, times, abandoned);
    } else {
      detail::innermost(w.scratch).binding = &p.binding;
      if constexpr (parts::direct) {
        const std::uint64_t first = grain * grain_slots_, last = first + grain_slots_;
        for (std::size_t i = 0; i < p.parts.size() && p.parts[i].first < last; ++i) {
          const batch_part& part = p.parts[i];
          // Batches whose positions follow each other are evaluated in one go.
          while (light && !p.listed && i + 1 < p.parts.size() && p.parts[i].continues_in(p.parts[i + 1])) ++i;
          const std::uint64_t begin_row = std::max(first, part.first),
                              end_row = std::min(last, p.parts[i].first + p.parts[i].valid);
          if (begin_row >= end_row) continue;
          samples += end_row - begin_row;
          evaluator_.write_slots(p, part, w.scratch, *w.counts, begin_row, end_row,
                                 times && begin_row == first);
        }
      } else {
        samples = p.parts[0].valid;
        evaluator_.write_rows(p, w.scratch, *w.counts, times);
      }
    }
    const std::uint64_t end = detail::now_ns();
    w.counts->add(samples, end - begin);
    if (times) w.counts->publish(w.scratch);
    watch_.grain(number(w), w.scratch, p, grain * grain_slots_, grain_slots_, samples,
                 {begin, end, activity::evaluate, 0, s});
  }

  std::uint64_t evaluate_pulled(payload_type& p, work& w, std::uint64_t s, bool times,
                                bool abandoned) noexcept {
    if constexpr (parts::forward) {
      batch_part& part = p.parts[0];
      std::uint64_t turn = watch_.now();
      const auto* items = front_.pull(
          s, p.epoch, p.slots, abandoned, ring_, part.valid, p.last,
          [&p](std::uint64_t count) {
            evaluator_type::note_failure(p, after_all_rows, p.parts[0].view[count]);
          },
          [this, &w, &turn](std::uint64_t ns) {
            w.counts->input_ns.fetch_add(ns, std::memory_order_relaxed);
            turn = watch_.now();
            watch_.worker(number(w), {turn - ns, turn, activity::wait_for_input});
          },
          &p.after);
      watch_.worker(number(w), {turn, watch_.now(), activity::read, 0, s});
      if (items == nullptr) return 0;
      evaluator_.write_items(p, w.scratch, *w.counts, *items, times);
      if (p.bad_slot == after_all_rows) p.bad_slot = p.rows;
      return part.valid;
    }
    return 0;
  }

  void finish(std::uint64_t s) noexcept {
    if constexpr (parts::direct) {
      payload_type& p = *in_ring_[place(s)];
      if ((p.what == nullptr || light) && !abandon_.load(std::memory_order_relaxed))
        for (const batch_part& part : p.parts) evaluator_type::finish_columns(p, part);
    }
  }

  void send(payload_type& p) {
    if (p.transferred) return;
    const std::uint64_t begin = watch_.now();
    detail::send(device_, p);
    watch_.consumer({begin, watch_.now(), activity::copy}, p);
  }
  /// Begins to copy batches that are ready and not yet asked for.
  void send_ahead() {
    for (std::uint64_t s = delivered_; s != opened_ && ring_.is_ready(s); ++s) {
      payload_type& p = *in_ring_[place(s)];
      if (p.what != nullptr) return;
      send(p);
    }
  }

  home_process home_;
  Plan plan_;
  run_options options_;
  memory_account account_;
  session_type device_;
  std::optional<reader_type> reader_;
  bool crowded_;  // threads share processors: park at once; feeds are cut by it
  feed_type feed_, trail_;
  std::size_t parts_per_block_;
  std::uint64_t grain_slots_;
  std::size_t depth_;
  ring_type ring_;
  evaluator_type evaluator_;
  typename detail::front_of<Plan>::type front_;
  std::vector<payload_type*> in_ring_;
  payload_pool<payload_type> pool_;
  std::array<extents, columns_type::size> shapes_{};
  std::uint64_t opened_ = 0, delivered_ = 0;
  std::uint64_t largest_ = 0;  // bytes of a block
  bool sizes_known_ = false;
  std::atomic<bool> abandon_{false};
  std::uint64_t samples_ = 0, bytes_ = 0, batches_ = 0, stall_ns_ = 0;
  [[no_unique_address]] run_watch<Plan> watch_;
  std::uint64_t started_, last_wait_ns_ = 0;
  std::vector<counts_type> counts_;
  std::unique_ptr<work[]> works_;  // the consumer's own where there are no workers
  [[no_unique_address]] std::conditional_t<hints, read_ahead<reader_type, feed_type>, no_binding> ahead_;
  watchdog_thread watchdog_;
  std::stop_callback<stopper> stop_callback_;
};

}  // namespace penstock::inline v0_1

// ---- penstock/run/core_base.hpp

namespace penstock::inline v0_1 {

/// What both cores of a run share: the engine, and the counting of who holds what. `Core` is the derived
/// class.
template <class Plan, class Core>
class core_base : public std::enable_shared_from_this<Core> {
  using parts = plan_parts<Plan>;

 public:
  using plan_type = Plan;
  using engine_type = penstock::engine<Plan>;
  using payload_type = typename engine_type::payload_type;

  core_base(const Plan& p, const run_options& options, const std::stop_token& token)
      : engine(p, options, token) {}

  engine_type engine;

  /// Gives up shares of a payload; with the last one it goes back to its pool. Any thread. In a child after
  /// fork it does not: another thread may have held the pool's lock then.
  static void give_up(payload_type& p, std::uint32_t shares) noexcept {
    if (!p.release(shares)) return;
    const std::shared_ptr<void> owner = std::move(p.owner);  // may be the last thing that keeps the pool
    Core& core = *static_cast<Core*>(owner.get());
    if (!core.engine.home().here()) return;
    core.engine.watch().let_go(&p);
    core.give_back(&p);
  }

  /// In a child after fork: lives as long as the process. There is no thread to join, and what a thread held
  /// when the process was copied stays locked.
  void keep_forever() noexcept { self_ = this->shared_from_this(); }

  [[nodiscard]] std::uint64_t epoch() noexcept { return engine.trail().epoch(); }

  /// The key of the sample at a position.
  [[nodiscard]] std::string key(position at) const
    requires(!parts::forward)
  {
    const position source = engine.feed().orders().sample_at(at);
    if constexpr (requires { engine.reader()->key(std::uint64_t{}); })
      return engine.reader()->key(source.index);
    else
      return std::to_string(source.index);
  }

 protected:
  [[noreturn]] void fail(const std::exception_ptr& what) {
    engine.request_stop();
    std::rethrow_exception(what);
  }
  void hand_out(payload_type& p, std::uint32_t shares) {
    p.owner = this->shared_from_this();
    p.shares.store(shares, std::memory_order_relaxed);
    engine.watch().hold(p);
  }
  void count(const payload_type& p, const batch_part& part) noexcept {
    std::uint64_t bytes = 0;
    for (const bytes_view column :
         p.columns.bytes(static_cast<std::size_t>(part.first), static_cast<std::size_t>(part.slots)))
      bytes += column.size();
    engine.delivered(part.valid, bytes);
  }
  template <class Cursor>
  static void write_cursor(state& s, const Cursor& cursor) {
    if constexpr (parts::has_cursor && !parts::forward) {
      s.taken = cursor.taken();
      s.given = cursor.given();
      s.held.assign(cursor.held().begin(), cursor.held().end());
    }
  }

 private:
  std::shared_ptr<Core> self_;
};

}  // namespace penstock::inline v0_1

// ---- penstock/run/selection.hpp

namespace penstock::inline v0_1 {

/// Which of a sequence of things pass: what take, skip and shard are where only a count is known. Pure
/// functions of a number.
///
/// `look` is about take and skip, which count for all ranks together; what passes them is dealt to the ranks
/// in turn, wherever among them `shard` stands.
template <class = void>
class basic_selection {
 public:
  void skip_first(std::uint64_t n) { bounds_.push_back({true, n}); }
  void take_first(std::uint64_t n) { bounds_.push_back({false, n}); }
  void deal(std::uint64_t rank, std::uint64_t world) {
    rank_ = rank;
    world_ = world;
  }
  /// Deals anew with each global step of so many: where the number of ranks does not divide it.
  void deal_in_steps_of(std::uint64_t global) {
    if (global % world_ != 0) step_ = global;
  }

  enum class verdict { pass, drop, end };
  /// Whether everything passes and is ours.
  [[nodiscard]] bool trivial() const noexcept { return bounds_.empty() && !deals(); }
  [[nodiscard]] bool deals() const noexcept { return world_ != 1; }

  [[nodiscard]] verdict look(std::uint64_t number) const noexcept {
    for (const bound& b : bounds_) {
      if (b.skips) {
        if (number < b.n) return verdict::drop;
        number -= b.n;
      } else if (number >= b.n) {
        return verdict::end;
      }
    }
    return verdict::pass;
  }
  /// How many of the first `count` pass `look`.
  [[nodiscard]] std::uint64_t passing(std::uint64_t count) const noexcept {
    for (const bound& b : bounds_) count = b.skips ? count - std::min(count, b.n) : std::min(count, b.n);
    return count;
  }
  /// Whether the rank at hand gets number `dealt` of those that pass.
  [[nodiscard]] bool ours(std::uint64_t dealt) const noexcept {
    return (step_ == 0 ? dealt : dealt % step_) % world_ == rank_;
  }

 private:
  struct bound {
    bool skips;
    std::uint64_t n;
  };
  std::vector<bound> bounds_;
  std::uint64_t rank_ = 0, world_ = 1;
  std::uint64_t step_ = 0;  // 0: it is a multiple of the world's size
};
using selection = basic_selection<>;

namespace detail {

/// The selection that the stages at places [First, Last) of a plan make.
template <std::size_t First, std::size_t Last, class... Stages>
selection select_between(const pack<Stages...>& stages) {
  selection all;
  const auto one = [&]<std::size_t I>(std::integral_constant<std::size_t, I>) {
    const auto& stage = at<I>(stages);
    using type = std::remove_cvref_t<decltype(stage)>;
    if constexpr (I >= First && I < Last) {
      if constexpr (part_of_kind<type, shard_tag>)
        all.deal(stage.part.rank, stage.part.size);
      else if constexpr (part_of_kind<type, order_tag> && type::stage_name == std::string_view("skip"))
        all.skip_first(stage.count);
      else if constexpr (part_of_kind<type, order_tag>)
        all.take_first(stage.count);
    }
  };
  [&]<std::size_t... Is>(std::index_sequence<Is...>) {
    (one(std::integral_constant<std::size_t, Is>{}), ...);
  }(std::index_sequence_for<Stages...>{});
  return all;
}

}  // namespace detail

}  // namespace penstock::inline v0_1

// ---- penstock/run/chunk_core.hpp

namespace penstock::inline v0_1 {

namespace detail {

/// The bytes of a whole value, for the counters.
template <class W>
std::uint64_t whole_size(const W& value) {
  if constexpr (any_record<W>) {
    return std::apply([](const auto&... fields) { return (whole_size(fields) + ... + std::uint64_t{0}); },
                      value.values());
  } else if constexpr (requires { value.member(0); }) {
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < value.size(); ++i) bytes += value.member(i).size();
    return bytes;
  } else if constexpr (requires {
                         value.size();
                         *value.data();
                       }) {
    return value.size() * sizeof(*value.data());
  } else {
    return sizeof(value);
  }
}

}  // namespace detail

/// What a run owns where samples go through chunks: the rows of the chunks, in order, are gathered into
/// batches or handed out one by one.
///
/// A batch of numbers that lies within one chunk is handed out as it is; others are copied, row by row of
/// each column.
template <class Plan>
class chunk_core : public core_base<Plan, chunk_core<Plan>> {
  using base = core_base<Plan, chunk_core<Plan>>;
  using parts = plan_parts<Plan>;

 public:
  using engine_type = typename base::engine_type;
  using payload_type = typename base::payload_type;
  using batch_type = batch_handle<chunk_core>;

  chunk_core(const Plan& p, const run_options& options, const std::stop_token& token)
      : base(p, options, token), batches_(engine.depth()) {
    if constexpr (parts::decided)
      rows_ = detail::select_between<parts::in::decider, parts::in::batch>(p.stages());
    if constexpr (parts::batched) {
      steps_ = detail::select_between<parts::in::batch, parts::in::count>(p.stages());
      const auto& batch = detail::at<parts::in::batch>(p.stages());
      const world part = world_of(p);
      global_size_ = batch.global_size(part.size);
      batch_size_ = batch.dealt_size(part.rank, part.size);
      if (parts::forward && global_size_ % part.size != 0)
        throw error(errc::argument, {"global_batch(", global_size_,
                                     ") over a source that can only be read forward needs a "
                                     "number of ranks that divides it, and ",
                                     part.size, " does not"})
            .in_stage("batch");
      rows_.deal_in_steps_of(global_size_);
      at_end_ = batch.at_end;
      const auto fixed = engine.feed().fixed_steps();
      if (fixed && steps_.passing(std::numeric_limits<std::uint64_t>::max()) < *fixed)
        throw error(errc::argument,
                    {"steps(", *fixed, "): a take after batch leaves fewer batches in an epoch; remove it"})
            .in_stage("steps");
    }
  }

  using base::engine;

  void give_back(payload_type* p) noexcept {
    if (p->from_batches)
      batches_.give_back(p);
    else
      engine.give_back(p);
  }
  void take_back(batch_type& b) noexcept { b.reset(); }

  /// The next batch of `epoch`; an empty handle at its end or when the run was stopped. Throws what belongs
  /// to that batch.
  batch_type next_batch(std::uint64_t epoch) {
    while (engine.trail().epoch() == epoch && !engine.stopped() && !end_of_steps()) {
      const std::uint64_t number = filling_ == nullptr ? step_ : mark_.step;
      batch_part part;
      payload_type* p = take_piece(epoch, part);
      if (p == nullptr) p = gather(epoch, part);
      if (p == nullptr) return {};
      part.delivered = {epoch, number};
      part.global = part.valid;
      if (engine.trail().epoch() == epoch) step_ = number + 1;
      batch_type made(p, part);
      if (steps_.look(number) == selection::verdict::pass) {
        base::count(*p, part);
        return made;
      }
    }
    return {};
  }

  /// The next row of a loop without batches, valid until the one after it is asked for; null at the epoch's
  /// end.
  auto* next_row(std::uint64_t epoch)
    requires(!parts::batched)
  {
    using row = whole<typename parts::element>;
    if (engine.stopped() || !find_row(epoch)) return static_cast<row*>(nullptr);
    row& value = chunk_->columns.template column<0>()[static_cast<std::size_t>(row_)];
    use_rows(1);
    ++dealt_;
    ++step_;
    engine.delivered(1, detail::whole_size(value));
    return &value;
  }

  /// Lets go of what is begun and not handed out.
  void drop() noexcept {
    drop_chunk();
    if (filling_ != nullptr) batches_.give_back(std::exchange(filling_, nullptr));
  }

  /// Goes to a place; drops what was begun.
  void seek(state s) {
    drop();
    engine.reposition(
        [&](auto& feed) {
          if constexpr (!parts::batched && !parts::decided && !parts::forward) {
            if (s.world != world_of(engine.plan()).size) {  // a loop over rows on another number of ranks
              s.ordinal = feed.ordinals_below((s.ordinal + s.rows) * s.world);
              s.rows = s.given = 0;
              s.held.clear();
            }
          }
          feed.seek(s.epoch, s.pass, s.ordinal);
          if constexpr (parts::has_cursor && !parts::forward) {
            if (s.given != 0 || !s.held.empty()) feed.restore_cursor(s.taken, s.given, s.held);
          }
        },
        s.front);
    begin_pass();
    front_at_ = std::move(s.front);
    step_ = s.step;
    to_skip_ = s.rows;
    survivors_ = s.survivors - std::min(s.survivors, s.rows);
    passed_ = s.survivors;  // whether some of them passed is not known: one pass more will tell
    // Global steps up to this one are done, whoever did which part of them; the rank of the state stood after
    // its last part.
    const world part = world_of(engine.plan());
    const std::uint64_t each = parts::batched ? global_size_ : s.world;
    done_ = parts::decided && !parts::shard_before_decider ? s.step * each : 0;
    dealt_ = done_ - std::min(done_, (each - 1 - s.rank) % s.world);
    if (!parts::batched && s.world != part.size) {
      const std::uint64_t rows = s.step * s.world;
      step_ = rows / part.size + (part.rank < rows % part.size ? 1 : 0);
    }
  }
  void write_state(state& s) {
    if (filling_ == nullptr) {
      engine.trail().settle();
      write_place(s, engine.trail(), here());
      s.front = front_at_;
    } else {  // a batch was begun and not ended: the place before it
      auto before = engine.trail();
      before.seek(mark_.epoch, mark_.pass, mark_.ordinal);
      before.settle();
      write_place(s, before, mark_);
      s.front = mark_front_;
    }
  }

  static std::vector<position> positions(const payload_type& p, std::size_t first, std::size_t count) {
    if (p.from_batches) return p.gathered;
    std::vector<position> all;
    all.reserve(count);
    for (std::size_t row = first; row < first + count; ++row)
      all.push_back({p.epoch, p.index(p.sources[row])});
    return all;
  }

 private:
  static constexpr bool across_passes = parts::in::template has<steps_tag>;
  /// Shares of a chunk whose pieces nobody has counted yet.
  static constexpr std::uint32_t many = 1u << 30;

  /// Rows of the chunk at hand that may be used: those before its failure, if it has one.
  [[nodiscard]] std::uint64_t good_rows() const {
    return chunk_->what != nullptr ? std::min(chunk_->bad_slot, chunk_->rows) : chunk_->rows;
  }
  void use_rows(std::uint64_t count) {
    row_ += count;
    survivors_ += count;
  }
  /// Whether every row from here on is the next one of this rank.
  [[nodiscard]] bool all_pass() const noexcept { return rows_.trivial() && dealt_ >= done_; }
  void drop_chunk() noexcept {
    if (chunk_ != nullptr) base::give_up(*std::exchange(chunk_, nullptr), many - pieces_);
  }

  /// Where the rows stand: what a state says of them.
  struct place {
    std::uint64_t epoch, pass, ordinal, step, rows, survivors;
  };
  [[nodiscard]] place here() noexcept {
    const auto& trail = engine.trail();
    return {trail.epoch(), trail.pass(), trail.ordinal(), step_, row_ + to_skip_, survivors_ + to_skip_};
  }
  template <class Feed>
  static void write_place(state& s, const Feed& feed, const place& at) {
    s.epoch = at.epoch;
    s.pass = at.pass;
    s.ordinal = at.ordinal;
    s.step = at.step;
    s.rows = at.rows;
    s.survivors = at.survivors;
    base::write_cursor(s, feed.cursor());
  }

  /// Makes row `row_` of `chunk_` the next one that passes; false at the epoch's end or when the run was
  /// stopped.
  bool find_row(std::uint64_t epoch) {
    while (engine.trail().epoch() == epoch) {
      if (chunk_ == nullptr) {
        chunk_ = engine.next();
        if (chunk_ == nullptr) return false;
        base::hand_out(*chunk_, many);
        pieces_ = 0;
        row_ = 0;
      }
      const selection::verdict found = find_in_chunk();
      if (found == selection::verdict::pass) return true;
      try {
        found == selection::verdict::end ? end_pass() : leave_chunk();
      } catch (...) {
        engine.request_stop();  // the place is between two chunks: nothing may go on from there
        throw;
      }
    }
    return false;
  }
  /// pass: there is a row; drop: this chunk has no more; end: nothing more passes in this pass.
  selection::verdict find_in_chunk() {
    for (const std::uint64_t end = good_rows(); row_ < end; use_rows(1)) {
      if (to_skip_ != 0) {
        --to_skip_;
        continue;
      }
      const auto seen = rows_.look(survivors_);
      if (seen == selection::verdict::end) return seen;
      if (seen == selection::verdict::drop) continue;
      ++passed_;
      if (dealt_ >= done_ && rows_.ours(dealt_)) return seen;
      ++dealt_;
    }
    return selection::verdict::drop;
  }
  /// All rows of the chunk are used: its failure is due now, or the next chunk is.
  void leave_chunk() {
    if (chunk_->what != nullptr) {
      const std::exception_ptr what = chunk_->what;
      drop_chunk();
      base::fail(what);
    }
    const bool last = chunk_->last;
    const std::uint64_t inputs = chunk_->parts[0].valid;
    if (!last) {
      engine.trail().advance(inputs);
      if constexpr (parts::forward) std::swap(front_at_, chunk_->after);  // a chunk's memory is used again
      drop_chunk();
      row_ = 0;
    } else if (parts::forward) {
      end_pass();  // nobody knew that the data end here: chunks beyond are dropped
    } else {
      check_pass();
      engine.trail().advance(inputs);
      drop_chunk();
      begin_pass();
    }
  }
  /// This pass is over wherever the feed is.
  void end_pass() {
    check_pass();
    auto next = engine.trail();
    next.next_pass();
    next.limit(engine.feed().limit());
    drop_chunk();
    engine.reposition([&](auto& feed) { feed = next; });
    begin_pass();
    front_at_.clear();
  }
  void check_pass() {
    if (!across_passes || passed_ != 0) return;
    engine.request_stop();
    throw error(errc::argument, "steps(n): a whole pass over the data gave this rank no sample")
        .in_stage("steps");
  }
  void begin_pass() noexcept {
    survivors_ = row_ = to_skip_ = passed_ = 0;
    if (engine.trail().pass() == 0) step_ = dealt_ = done_ = 0;
  }

  /// Whether this epoch has had its batches, by steps(n) or by a take after batch; if so the next epoch
  /// begins.
  bool end_of_steps() {
    const auto fixed = engine.feed().fixed_steps();
    const std::uint64_t number = filling_ == nullptr ? step_ : mark_.step;
    if (steps_.look(number) != selection::verdict::end && !(fixed && steps_.passing(number) >= *fixed))
      return false;
    state next;
    next.epoch = engine.trail().epoch() + 1;
    seek(next);
    return true;
  }

  /// A batch that is a piece of the chunk at hand as it is; null where it would not fit or must be moved.
  payload_type* take_piece(std::uint64_t epoch, batch_part& part) {
    if constexpr (engine_type::light && !engine_type::session_type::copies) {
      if (filling_ != nullptr || !all_pass() || !find_row(epoch) || good_rows() - row_ < batch_size_)
        return nullptr;
      part.first = row_;
      part.slots = part.valid = batch_size_;
      use_rows(batch_size_);
      ++pieces_;
      return chunk_;
    } else {
      return nullptr;
    }
  }

  /// A batch of rows that are copied together; null when there are none.
  payload_type* gather(std::uint64_t epoch, batch_part& part) {
    if (filling_ == nullptr) {
      mark_ = here();
      if constexpr (parts::forward) mark_front_ = front_at_;
      if (!find_row(epoch)) return nullptr;
      filling_ = take_batch();
      try {
        begin_filling(*filling_);
      } catch (...) {  // nothing is in it: asked again, it begins anew
        batches_.give_back(std::exchange(filling_, nullptr));
        throw;
      }
    }
    fill(*filling_, epoch);
    if (engine.stopped()) return nullptr;
    payload_type& out = *filling_;
    part.valid = out.gathered.size();
    if (part.valid == 0 || (part.valid < batch_size_ && at_end_ == tail::drop)) {
      batches_.give_back(std::exchange(filling_, nullptr));
      return nullptr;
    }
    out.slots = part.slots = at_end_ == tail::pad ? batch_size_ : part.valid;
    if (part.slots > room_) out.columns.grow(static_cast<std::size_t>(part.slots), out.gathered.size());
    engine_type::evaluator_type::finish_columns(out, part);
    if (out.what != nullptr) base::fail(out.what);
    engine.learn_from(out);
    try {
      engine.arrive(out);
    } catch (...) {
      engine.request_stop();  // as where batches are written in place
      throw;
    }
    base::hand_out(out, 1);
    return std::exchange(filling_, nullptr);
  }
  payload_type* take_batch() {
    if (payload_type* out = batches_.take()) return out;
    if (batches_.made() >= batches_.most() || (batches_.made() != 0 && !engine.room_for_another()))
      throw error(
          errc::argument,
          "you hold " + std::to_string(batches_.out()) + " of " + std::to_string(batches_.made()) +
              " batches and ask for another; let one go, or raise the depth with prefetch(n) after batch");
    payload_type* out = batches_.make(engine.device(), engine.account());
    out->from_batches = true;
    return out;
  }
  void begin_filling(payload_type& out) {
    out.clear_failure();
    out.gathered.clear();
    out.indices.clear();
    detail::settle(engine.device(), out);
    out.columns.expect(engine.shapes());
    room_ = std::min<std::uint64_t>(batch_size_, 65'536);
    out.columns.begin(static_cast<std::size_t>(room_));
  }
  /// Goes on until the batch is full, or there is nothing more; what is there stays when something is thrown.
  void fill(payload_type& out, std::uint64_t epoch) {
    while (out.gathered.size() < batch_size_ && find_row(epoch)) {
      const std::uint64_t filled = out.gathered.size();
      const std::uint64_t count = all_pass() ? std::min(good_rows() - row_, batch_size_ - filled) : 1;
      if (filled + count > room_) {
        const std::uint64_t more = std::min(batch_size_, std::max(2 * room_, filled + count));
        out.columns.grow(static_cast<std::size_t>(more), static_cast<std::size_t>(filled));
        room_ = more;
      }
      out.gathered.reserve(static_cast<std::size_t>(filled + count));
      if (filled == 0 && row_ == 0 && pieces_ == 0 && count == batch_size_ && count == chunk_->rows &&
          chunk_->what == nullptr)
        std::swap(out.columns, chunk_->columns);  // the chunk is the batch
      else
        out.columns.copy(static_cast<std::size_t>(filled), chunk_->columns, static_cast<std::size_t>(row_),
                         static_cast<std::size_t>(count));
      gather_positions(out, count);
      use_rows(count);
      dealt_ += count;
    }
    out.listed = true;  // errors of collating are of these positions
    out.epoch = out.gathered.empty() ? 0 : out.gathered.front().epoch;
    out.indices.clear();
    out.indices.resize(out.gathered.size());
    for (std::size_t i = 0; i < out.gathered.size(); ++i) out.indices[i] = out.gathered[i].index;
  }
  /// Notes where the next `count` rows came from: without a branch where the chunk's positions follow each
  /// other.
  void gather_positions(payload_type& out, std::uint64_t count) {
    const std::size_t filled = out.gathered.size(), n = static_cast<std::size_t>(count);
    const std::uint32_t* const sources = chunk_->sources.data() + row_;
    out.gathered.resize(filled + n);
    position* const into = out.gathered.data() + filled;
    const std::uint64_t from_epoch = chunk_->epoch;
    if (!chunk_->listed && chunk_->parts[0].view.contiguous()) {
      const std::uint64_t first = chunk_->index(0);
      for (std::size_t i = 0; i < n; ++i) into[i] = {from_epoch, first + sources[i]};
    } else {
      for (std::size_t i = 0; i < n; ++i) into[i] = {from_epoch, chunk_->index(sources[i])};
    }
  }

  payload_pool<payload_type> batches_;
  selection rows_, steps_;
  std::uint64_t batch_size_ = 1, global_size_ = 1;
  tail at_end_ = tail::keep;
  payload_type* chunk_ = nullptr;
  std::uint32_t pieces_ = 0;  // of the chunk, handed out as they are
  std::uint64_t row_ = 0, to_skip_ = 0, survivors_ = 0, step_ = 0;
  std::uint64_t passed_ = 0;  // survivors of this pass that take and skip let through
  // those of this epoch, all ranks together; below `done_` they belong to steps before
  std::uint64_t dealt_ = 0, done_ = 0;
  payload_type* filling_ = nullptr;  // a batch that is begun
  std::uint64_t room_ = 0;           // rows it has memory for
  place mark_{};                     // where it began
  // Forward sources: where the front stood before the chunk at hand, and before the batch that is begun.
  std::vector<std::uint64_t> front_at_, mark_front_;
};

}  // namespace penstock::inline v0_1

// ---- penstock/run/direct_core.hpp

namespace penstock::inline v0_1 {

/// What a run owns where batches are written in place: blocks of the engine are handed out batch by batch.
template <class Plan>
class direct_core : public core_base<Plan, direct_core<Plan>> {
  using base = core_base<Plan, direct_core<Plan>>;
  using parts = plan_parts<Plan>;

 public:
  using payload_type = typename base::payload_type;
  using batch_type = batch_handle<direct_core>;

  direct_core(const Plan& p, const run_options& options, const std::stop_token& token)
      : base(p, options, token) {}

  using base::engine;

  void give_back(payload_type* p) noexcept { engine.give_back(p); }

  /// Takes back a batch that the consumer is done with, in the consumer's thread: those of one block are
  /// given up together.
  void take_back(batch_type& b) noexcept {
    payload_type* p = b.forget();
    if (p == nullptr) return;
    if (p != counted_) return base::give_up(*p, 1);
    ++returned_;
    if (left_ == 0) settle_returned();
  }

  /// The next batch of `epoch`; an empty handle at its end or when the run was stopped. Throws what belongs
  /// to that batch.
  batch_type next_batch(std::uint64_t epoch) {
    auto& trail = engine.trail();
    if (trail.epoch() != epoch || trail.step() >= trail.steps_per_epoch() || engine.stopped()) return {};
    if (block_ == nullptr && !take_block()) return {};
    payload_type& p = *block_;
    const batch_part& part = p.parts[p.parts.size() - left_];
    if (p.what != nullptr && p.bad_slot < part.first + part.slots) {
      const std::exception_ptr what = p.what;
      drop();
      base::fail(what);
    }
    trail.advance();
    base::count(p, part);
    if (--left_ == 0) block_ = nullptr;
    return batch_type(&p, part);
  }

  /// Lets go of what is begun and not handed out.
  void drop() noexcept {
    if (block_ != nullptr) {
      block_ = nullptr;
      returned_ += static_cast<std::uint32_t>(std::exchange(left_, 0));
    }
    settle_returned();
  }

  /// Goes to a place; drops what was begun.
  void seek(const state& s) {
    drop();
    engine.reposition([&](auto& feed) {
      feed.seek(s.epoch, s.step);
      if constexpr (parts::has_cursor) {
        if (s.given != 0 || !s.held.empty()) feed.restore_cursor(s.taken, s.given, s.held);
      }
    });
  }
  void write_state(state& s) {
    auto& trail = engine.trail();
    trail.settle();
    s.epoch = trail.epoch();
    s.step = trail.step();
    base::write_cursor(s, trail.cursor());
  }

  static std::vector<position> positions(const payload_type& p, std::size_t first, std::size_t count) {
    std::vector<position> all;
    all.reserve(count);
    for (std::size_t row = first; row < first + count; ++row) all.push_back({p.epoch, p.index(row)});
    return all;
  }

 private:
  void settle_returned() noexcept {
    const std::uint32_t shares = std::exchange(returned_, 0);
    if (shares != 0) base::give_up(*counted_, shares);
    counted_ = nullptr;
  }

  [[nodiscard]] bool take_block() {
    settle_returned();
    payload_type* p = engine.next();
    if (p == nullptr) return false;
    if (p->what == nullptr) {
      try {
        engine.learn_from(*p);
        engine.arrive(*p);
      } catch (...) {
        engine.lose(p);  // what comes next is not what the consumer misses
        throw;
      }
    }
    left_ = p->parts.size();
    base::hand_out(*p, static_cast<std::uint32_t>(left_));
    block_ = counted_ = p;
    return true;
  }

  payload_type* block_ = nullptr;  // of which batches are left to hand out
  std::size_t left_ = 0;
  payload_type* counted_ = nullptr;  // the block of which `returned_` batches are back and not yet given up
  std::uint32_t returned_ = 0;
};

}  // namespace penstock::inline v0_1

// ---- penstock/run/run.hpp

namespace penstock::inline v0_1 {

/// What `run.next()` gives: a value, the end, or a failure that was not thrown.
template <class T>
struct next_result {
  std::optional<T> value;
  std::exception_ptr failure;

  [[nodiscard]] explicit operator bool() const noexcept { return value.has_value(); }
  [[nodiscard]] T& operator*() noexcept { return *value; }
  [[nodiscard]] T* operator->() noexcept { return &*value; }
  /// Nothing more comes and nothing went wrong.
  [[nodiscard]] bool ended() const noexcept { return !value && failure == nullptr; }
};

namespace detail {

template <class Plan, bool Batched = plan_parts<Plan>::batched>
struct row_of_plan {
  using type = int;
};
template <class Plan>
struct row_of_plan<Plan, false> {
  using type = whole<typename Plan::element>;
};

}  // namespace detail

/// A run: what `plan.open()` gives. It owns threads and buffers, is move-only, and stops cleanly whenever it
/// is destroyed or told to.
///
///     auto run = loader.open();
///     for (auto epoch : run.epochs(90))
///       for (auto&& b : epoch) train(b);
///
/// An element is a `batch_handle`, or in a loop without batches a reference to a whole sample, valid until
/// the next one is asked for.
/// Workers live across epochs and read-ahead crosses the end of an epoch. `state()` is where the consumer
/// stands; `plan.open(state)` goes on there. An exception of the chain is thrown when the consumer asks for
/// the batch that holds its position, after all earlier batches, the lowest position first; the run is then
/// stopped and its state is the one before that batch. One thread at a time uses a run;
/// `request_stop` may be called from any. After `fork()` a run belongs to the parent: in the child, asking it
/// for an element is an error, and destroying it neither waits nor frees; the child opens the plan itself.
/// Ranges and iterators refer to the run: moving it ends them.
template <class Plan>
class run {
  using parts = plan_parts<Plan>;
  using core_type = std::conditional_t<parts::direct, direct_core<Plan>, chunk_core<Plan>>;
  using row_type = typename detail::row_of_plan<Plan>::type;

 public:
  /// What an iterator gives: a batch, or a whole sample.
  using value_type = std::conditional_t<parts::batched, typename core_type::batch_type, row_type>;

  /// Walks over one epoch, or over all that the run was given; one copyable pointer.
  class iterator {
   public:
    using iterator_concept = std::input_iterator_tag;
    using value_type = run::value_type;
    using difference_type = std::ptrdiff_t;

    iterator() = default;
    explicit iterator(run* owner) : owner_(owner) {}
    [[nodiscard]] run::value_type& operator*() const { return owner_->current(); }
    /// Lets the element go; the next one is asked for when somebody looks: `run | std::views::take(3)` asks
    /// for three.
    iterator& operator++() {
      owner_->move_on();
      return *this;
    }
    void operator++(int) { owner_->move_on(); }
    friend bool operator==(const iterator& it, std::default_sentinel_t) { return it.done(); }

   private:
    [[nodiscard]] bool done() const { return owner_->is_at_end(); }
    run* owner_ = nullptr;
  };

  /// One epoch of a run: a range of what is left of it.
  class epoch_range {
   public:
    epoch_range(run* owner, std::uint64_t number) : owner_(owner), number_(number) {}
    [[nodiscard]] std::uint64_t number() const { return number_; }
    [[nodiscard]] iterator begin() const {
      owner_->begin_epoch(number_, number_ + 1);
      return iterator(owner_);
    }
    [[nodiscard]] std::default_sentinel_t end() const { return {}; }

   private:
    run* owner_;
    std::uint64_t number_;
  };

  /// The epochs from where the run stands up to a number.
  class epochs_range {
   public:
    class iterator {
     public:
      using value_type = epoch_range;
      using difference_type = std::ptrdiff_t;
      iterator() = default;
      iterator(run* owner, std::uint64_t number) : owner_(owner), number_(number) {}
      [[nodiscard]] epoch_range operator*() const { return {owner_, number_}; }
      iterator& operator++() {
        ++number_;
        return *this;
      }
      iterator operator++(int) {
        auto before = *this;
        ++number_;
        return before;
      }
      friend bool operator==(const iterator& a, const iterator& b) { return a.number_ >= b.number_; }

     private:
      run* owner_ = nullptr;
      std::uint64_t number_ = 0;
    };
    epochs_range(run* owner, std::uint64_t first, std::uint64_t last)
        : owner_(owner), first_(first), last_(last) {}
    [[nodiscard]] iterator begin() const { return {owner_, first_}; }
    [[nodiscard]] iterator end() const { return {owner_, last_}; }

   private:
    run* owner_;
    std::uint64_t first_, last_;
  };

  run(const Plan& p, run_options options, const penstock::state* where, std::stop_token token)
      : core_(new core_type(p, options, std::move(token))) {
    check_lockstep(p);
    const world part = world_of(p);
    known_.dataset = p.source().fingerprint();
    known_.sequence = sequence_fingerprint(p);
    known_.world = part.size;
    known_.rank = part.rank;
    known_.elastic = elastic<Plan> ? 1 : 0;
    known_.plan = sequence_text(p);
    if (where != nullptr) restore(*where);
    core_->engine.open_more();
  }
  run(run&&) noexcept = default;
  run& operator=(run&& other) noexcept {
    if (this == &other) return *this;
    close();
    known_ = std::move(other.known_);
    core_ = std::move(other.core_);
    batch_ = std::move(other.batch_);
    row_ = std::exchange(other.row_, nullptr);
    epoch_ = other.epoch_;
    last_epoch_ = other.last_epoch_;
    allowed_ = other.allowed_;
    first_epoch_ = other.first_epoch_;
    at_end_ = other.at_end_;
    pending_ = other.pending_;
    return *this;
  }
  ~run() { close(); }

  /// The rest of one epoch. Going to another epoch than the one where the run stands drops what was read
  /// ahead.
  [[nodiscard]] epoch_range epoch(std::uint64_t number) & {
    allow(number + 1);
    return {this, number};
  }
  template <class T = void>
  [[nodiscard]] epoch_range epoch(std::uint64_t) && {
    static_assert(
        !std::is_void_v<T>,
        "penstock: epoch() of a run that is about to go; give the run a name: auto run = plan.open();");
    return {this, 0};
  }

  /// The epochs up to `count`, beginning where the run stands: all of them in a fresh run, the rest in a
  /// restored one.
  [[nodiscard]] epochs_range epochs(std::uint64_t count) & {
    allow(count);
    return {this, core_->epoch(), count};
  }
  template <class T = void>
  [[nodiscard]] epochs_range epochs(std::uint64_t) && {
    static_assert(
        !std::is_void_v<T>,
        "penstock: epochs() of a run that is about to go; give the run a name: auto run = plan.open();");
    return {this, 0, 0};
  }

  /// A run is an input range of what is left of the epochs it was given (one, unless `epochs(n)` said more).
  [[nodiscard]] iterator begin() {
    begin_epoch(core_->epoch(), std::max(allowed_, core_->epoch() + 1));
    return iterator(this);
  }
  [[nodiscard]] std::default_sentinel_t end() const { return {}; }

  /// The next element of the epochs the run was given, without exceptions.
  [[nodiscard]] next_result<value_type> next()
    requires(parts::batched)
  {
    next_result<value_type> result;
    try {
      core_->engine.home().check();
      const std::uint64_t last = std::max(allowed_, first_epoch_ + 1);
      while (core_->epoch() < last && !stopped()) {
        if (auto b = core_->next_batch(core_->epoch())) {
          result.value.emplace(std::move(b));
          break;
        }
        if (steps_are_zero()) break;
      }
    } catch (...) {
      result.failure = std::current_exception();
    }
    return result;
  }

  /// Batches per epoch, equal on all ranks; for plans that keep `lockstep`.
  [[nodiscard]] std::uint64_t steps_per_epoch() const
    requires(parts::batched && lockstep<Plan>)
  {
    if constexpr (parts::direct)
      return core_->engine.feed().steps_per_epoch();
    else
      return *core_->engine.feed().fixed_steps();
  }

  /// Where the consumer stands: after the elements that it has asked for. Does not disturb the workers.
  [[nodiscard]] penstock::state state() const {
    penstock::state s = known_;
    core_->write_state(s);
    return s;
  }

  [[nodiscard]] run_counters counters() const { return core_->engine.counters(); }
  [[nodiscard]] const run_options& options() const { return core_->engine.options(); }
  [[nodiscard]] const Plan& plan() const { return core_->engine.plan(); }

  /// Ends the work: what waits returns, loops end. Any thread.
  void request_stop() noexcept { core_->engine.request_stop(); }
  [[nodiscard]] bool stopped() const noexcept { return core_->engine.stopped(); }

 private:
  void close() noexcept {
    if (!core_) return;
    if (!core_->engine.home().here()) return abandon();
    batch_.reset();
    core_->engine.stop();
    core_->drop();
    core_.reset();
  }

  /// In a child after fork: neither joins nor frees.
  void abandon() noexcept {
    if constexpr (parts::batched) (void)batch_.forget();
    core_->keep_forever();
    core_.reset();
  }

  void allow(std::uint64_t epochs) {
    core_->engine.home().check();
    allowed_ = epochs;
    core_->engine.limit(std::max(epochs, core_->epoch() + 1));
  }

  [[nodiscard]] bool steps_are_zero() const {
    if constexpr (parts::direct) return core_->engine.feed().steps_per_epoch() == 0;
    return false;
  }

  void begin_epoch(std::uint64_t number, std::uint64_t last) {
    core_->engine.home().check();
    release();
    if (core_->epoch() != number) {
      penstock::state s;
      s.epoch = number;
      core_->seek(s);
    }
    core_->engine.limit(std::max(allowed_, last));
    epoch_ = number;
    last_epoch_ = last;
    at_end_ = false;
    fetch();
  }

  void release() {
    if constexpr (parts::batched)
      core_->take_back(batch_);
    else
      row_ = nullptr;
  }

  void move_on() {
    release();
    pending_ = true;
  }
  [[nodiscard]] bool is_at_end() {
    if (pending_) fetch();
    return at_end_;
  }
  void fetch() {
    release();
    pending_ = false;
    try {
      core_->engine.home().check();
      while (true) {
        if constexpr (parts::batched) {
          batch_ = core_->next_batch(epoch_);
          if (batch_) return;
        } else {
          row_ = core_->next_row(epoch_);
          if (row_ != nullptr) return;
        }
        if (stopped() || epoch_ + 1 >= last_epoch_) break;
        if (core_->epoch() == epoch_) break;
        ++epoch_;
      }
    } catch (...) {
      at_end_ = true;
      throw;
    }
    at_end_ = true;
  }

  [[nodiscard]] value_type& current() {
    if (pending_) fetch();
    if constexpr (parts::batched)
      return batch_;
    else
      return *row_;
  }

  void check_lockstep(const Plan& p) const {
    if constexpr (parts::batched && !lockstep<Plan>) {
      if (world_of(p).size > 1)
        throw error(errc::argument, {"ranks would do different numbers of batches: `lockstep` is lost by ",
                                     loser(p), "; write steps(n) after batch"});
    }
  }
  static std::string loser(const Plan& p) {
    std::string name = "the source, which can only be read forward";
    bool found = false;
    const auto one = [&]<class Stage>(const Stage&) {
      if constexpr (part_of_kind<Stage, decider_tag> || part_of_kind<Stage, expander_tag>) {
        if (!found) name = "a stage that decides from values";
        if constexpr (requires { Stage::stage_name; }) {
          if (!found) name = Stage::stage_name;
        }
        found = true;
      }
    };
    p.stages().apply([&](const auto&... stages) { (one(stages), ...); });
    return name;
  }

  void restore(const penstock::state& given) {
    const auto refuse = [](std::initializer_list<detail::piece> why) {
      throw error(errc::state, {"this state cannot be continued here: ", detail::text(why)});
    };
    const penstock::state& mine = known_;
    const bool is_merged = !given.ranks.empty();
    if (is_merged && given.ranks.size() != given.world)
      refuse({"it was merged of ", given.ranks.size(), " ranks and says ", given.world});
    const bool fits = given.world == mine.world;
    const penstock::state& s = is_merged && fits ? given.ranks[static_cast<std::size_t>(mine.rank)] : given;
    if (s.version > penstock::state::current_version) refuse({"it is of version ", s.version});
    if (!resumable<Plan>) refuse({"the source can only be read forward and cannot go to a place"});
    const std::string difference = detail::first_difference(given.plan, mine.plan, s.dataset == mine.dataset);
    if (s.dataset != mine.dataset) {
      refuse(
          {"it is of another dataset: ",
           difference.empty() ? "the names are the same, the data (the fingerprints) are not" : difference});
    }
    if (s.sequence != mine.sequence) {
      refuse({"it is of another sequence: ", difference.empty() ? "a stage was changed" : difference});
    }
    if (!elastic<Plan> && (!fits || s.rank != mine.rank)) {
      refuse({"it is of ", is_merged ? "" : "rank ", is_merged ? "" : std::to_string(s.rank) + " of ",
              s.world, is_merged ? " ranks" : "", ", this is rank ", mine.rank, " of ", mine.world,
              ", and the plan is not elastic"});
    }
    if (s.rank >= s.world) refuse({"it is of rank ", s.rank, " of ", s.world});
    if constexpr (parts::batched) {
      const auto& batch = detail::at<parts::in::batch>(core_->engine.plan().stages());
      if (batch.global ? s.world > batch.size : batch.global_size(mine.world) % s.world != 0)
        refuse({batch.global ? "it is of more ranks than the global batch has samples"
                             : "its number of ranks does not divide the global batch"});
    }
    if (s.epoch >> 63 != 0) refuse({"there is no epoch ", s.epoch});
    if (const std::string_view wrong = core_->engine.feed().wrong_with(s); !wrong.empty())
      refuse({wrong, "; it was edited"});
    core_->seek(s);
    core_->engine.limit(s.epoch + 1);
    first_epoch_ = s.epoch;
  }

  penstock::state known_;  // what all states of this run have in common
  std::shared_ptr<core_type> core_;
  std::conditional_t<parts::batched, value_type, std::optional<int>> batch_{};
  row_type* row_ = nullptr;
  std::uint64_t epoch_ = 0, last_epoch_ = 1, allowed_ = 0, first_epoch_ = 0;
  bool at_end_ = false, pending_ = false;
};

namespace detail {

struct open_arguments {
  const state* where = nullptr;
  std::stop_token token;

  void take(const state& s) { where = &s; }
  void take(std::stop_token t) { token = std::move(t); }
};

}  // namespace detail

/// Opens a plan: `plan.open()`, `plan.open(state)`, `plan.open(stop_token)`, or both. Files are opened and
/// threads started here; a plan whose ranks would do different numbers of batches is refused here.
template <class Source, class... Stages, class... Options>
[[nodiscard]] auto open_run(const plan<Source, Stages...>& p, Options&&... options) {
  detail::open_arguments given;
  (given.take(std::forward<Options>(options)), ...);
  return run<plan<Source, Stages...>>(p, options_of(p), given.where, given.token);
}

/// Walks over epoch 0 of a plan: what `for (auto&& b : plan)` uses. Owns its run.
template <class Plan>
class pass_iterator {
 public:
  using iterator_concept = std::input_iterator_tag;
  using value_type = typename run<Plan>::value_type;
  using difference_type = std::ptrdiff_t;

  explicit pass_iterator(std::unique_ptr<run<Plan>> owned) : run_(std::move(owned)), at_(run_->begin()) {}
  [[nodiscard]] value_type& operator*() const { return *at_; }
  pass_iterator& operator++() {
    ++at_;
    return *this;
  }
  void operator++(int) { ++at_; }
  friend bool operator==(const pass_iterator& it, std::default_sentinel_t) {
    return it.at_ == std::default_sentinel;
  }

 private:
  std::unique_ptr<run<Plan>> run_;
  typename run<Plan>::iterator at_;
};

template <class Source, class... Stages>
[[nodiscard]] auto begin_pass(const plan<Source, Stages...>& p) {
  using plan_type = plan<Source, Stages...>;
  return pass_iterator<plan_type>(
      std::make_unique<run<plan_type>>(p, options_of(p), nullptr, std::stop_token{}));
}
template <class Source, class... Stages>
[[nodiscard]] std::default_sentinel_t end_pass(const plan<Source, Stages...>&) {
  return {};
}

}  // namespace penstock::inline v0_1

// ---- penstock/integration/any_loader.hpp

namespace penstock::inline v0_1 {

/// Any loader that yields `Batch`, a type of yours: a class member, or what a function in another .cpp
/// returns, so that the templates of a plan are compiled once.
///
/// Made of a plan and a function that turns its batch into a `Batch`, usually a struct of views; the batch
/// itself is held until the next one is asked for. Move-only. Cost: one indirect call per batch, nothing per
/// sample.
///
///     any_loader<my_batch> make_loader() {                        // in loader.cpp
///       return {from(samples) | batch(32), [](auto& b) { return my_batch{b.values()}; }};
///     }
template <class Batch>
class any_loader {
  /// One table of functions per plan: what a vtable would be, without inheritance.
  struct table {
    bool (*next)(void*, Batch*&);
    state (*where)(const void*);
    void (*go)(void*, const state&);
    void (*to_epoch)(void*, std::uint64_t);
    run_counters (*counters)(const void*);
    void (*stop)(void*);
    void (*destroy)(void*);
  };

 public:
  using value_type = Batch;

  class iterator {
   public:
    using iterator_concept = std::input_iterator_tag;
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    iterator() = default;
    explicit iterator(any_loader* owner) : owner_(owner) {}
    [[nodiscard]] Batch& operator*() const { return owner_->current(); }
    iterator& operator++() {
      owner_->fetch();
      return *this;
    }
    void operator++(int) { owner_->fetch(); }
    friend bool operator==(const iterator& it, std::default_sentinel_t) { return it.done(); }

   private:
    [[nodiscard]] bool done() const { return owner_->current_ == nullptr; }
    any_loader* owner_ = nullptr;
  };

  class epoch_range {
   public:
    epoch_range(any_loader* owner, std::uint64_t number) : owner_(owner), number_(number) {}
    [[nodiscard]] iterator begin() const {
      owner_->functions_->to_epoch(owner_->self_, number_);
      owner_->fetch();
      return iterator(owner_);
    }
    [[nodiscard]] std::default_sentinel_t end() const { return {}; }

   private:
    any_loader* owner_;
    std::uint64_t number_;
  };

  any_loader() = default;
  /// Opens `p`; each batch is handed on as `convert(batch)`, which is valid until the next one is asked for.
  template <class Plan, class Convert>
    requires part_of_kind<Plan, plan_tag>
  any_loader(const Plan& p, Convert convert)
      : any_loader(holder<Plan, Convert>::make(p, std::move(convert))) {}
  any_loader(any_loader&& other) noexcept
      : functions_(std::exchange(other.functions_, nullptr)),
        self_(std::exchange(other.self_, nullptr)),
        current_(std::exchange(other.current_, nullptr)) {}
  any_loader& operator=(any_loader&& other) noexcept {
    std::swap(functions_, other.functions_);
    std::swap(self_, other.self_);
    std::swap(current_, other.current_);
    return *this;
  }
  ~any_loader() {
    if (self_ != nullptr) functions_->destroy(self_);
  }

  [[nodiscard]] explicit operator bool() const noexcept { return self_ != nullptr; }
  [[nodiscard]] epoch_range epoch(std::uint64_t number) & { return {this, number}; }
  [[nodiscard]] penstock::state state() const { return functions_->where(self_); }
  /// Goes on where a state says, by opening the plan again; errors like `plan.open(state)`.
  void restore(const penstock::state& s) { functions_->go(self_, s); }
  [[nodiscard]] run_counters counters() const { return functions_->counters(self_); }
  void request_stop() { functions_->stop(self_); }

 private:
  template <class Plan, class Convert>
  struct holder {
    using run_type = run<Plan>;
    Plan plan;
    Convert convert;
    run_type running;
    typename run_type::iterator at{};
    bool begun = false;
    std::uint64_t number = 0;
    std::optional<Batch> current;

    holder(const Plan& p, Convert c) : plan(p), convert(std::move(c)), running(plan.open()) {}

    static any_loader make(const Plan& p, Convert c) {
      any_loader made;
      made.self_ = new holder(p, std::move(c));
      made.functions_ = &functions;
      return made;
    }
    static holder& of(void* self) { return *static_cast<holder*>(self); }
    static const holder& of(const void* self) { return *static_cast<const holder*>(self); }

    static bool next(void* self, Batch*& out) {
      holder& h = of(self);
      h.current.reset();
      if (h.begun) {
        ++h.at;
      } else {
        h.at = h.running.epoch(h.number).begin();
        h.begun = true;
      }
      if (h.at == std::default_sentinel) return false;
      h.current.emplace(h.convert(*h.at));
      out = &*h.current;
      return true;
    }
    static penstock::state where(const void* self) { return of(self).running.state(); }
    static void go(void* self, const penstock::state& s) {
      holder& h = of(self);
      h.current.reset();
      h.running = h.plan.open(s);
      h.begun = false;
      h.number = s.epoch;
    }
    static void to_epoch(void* self, std::uint64_t number) {
      of(self).current.reset();
      of(self).number = number;
      of(self).begun = false;
    }
    static run_counters counters(const void* self) { return of(self).running.counters(); }
    static void stop(void* self) { of(self).running.request_stop(); }
    static void destroy(void* self) { delete static_cast<holder*>(self); }

    static constexpr table functions{next, where, go, to_epoch, counters, stop, destroy};
  };

  void fetch() {
    current_ = nullptr;
    Batch* next = nullptr;
    if (functions_->next(self_, next)) current_ = next;
  }
  [[nodiscard]] Batch& current() { return *current_; }

  const table* functions_ = nullptr;
  void* self_ = nullptr;
  Batch* current_ = nullptr;
};

}  // namespace penstock::inline v0_1

// ---- penstock/observe/progress.hpp

#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#endif

namespace penstock::inline v0_1 {

/// One line of progress: a bar over the batches of an epoch, samples/s, MB/s and the share of time the loop
/// waited for data.
///
/// On a terminal the line is rewritten in place, at most ten times a second; elsewhere one line is written at
/// the end of each epoch.
/// Cost of `tick` between two lines: reading a clock. One thread.
///
///     progress bar("epoch 3", run.steps_per_epoch());
///     bar.begin(run.counters());
///     for (auto&& b : epoch) { step(b); bar.tick([&] { return run.counters(); }); }
///     bar.finish(run.counters());
template <class = void>
class basic_progress {
  using clock = std::chrono::steady_clock;

 public:
  /// `total`: batches of the epoch, 0 when nobody knows. Writes to `out`.
  basic_progress(std::string label, std::uint64_t total, std::FILE* out = stderr)
      : label_(std::move(label)), total_(total), out_(out), on_terminal_(is_terminal(out)) {}

  /// Rates are counted from here; without it, from the opening of the run.
  void begin(const run_counters& counters) {
    first_ = counters;
    first_.stages.clear();
  }
  /// One batch more. `counters` is a function that gives a `run_counters`; it is called only when a line is
  /// due.
  template <class Counters>
  void tick(Counters&& counters) {
    ++ticks_;
    if (on_terminal_ && clock::now() - last_ >= std::chrono::milliseconds(100)) write(counters(), false);
  }
  /// The last line of the epoch.
  void finish(const run_counters& counters) { write(counters, true); }

  /// The line itself, without the control characters.
  [[nodiscard]] std::string line(const run_counters& counters) const {
    const double seconds = counters.seconds - first_.seconds;
    const auto rate = [seconds](double amount) { return seconds > 0 ? amount / seconds : 0.0; };
    char text[256];
    std::string result = label_ + " ";
    if (total_ != 0) {
      const std::uint64_t done = std::min(ticks_, total_);
      const auto filled = static_cast<std::size_t>(done * width / total_);
      result += "[" + std::string(filled, '#') + std::string(width - filled, '.') + "] ";
      std::snprintf(text, sizeof text, "%llu/%llu  ", static_cast<unsigned long long>(ticks_),
                    static_cast<unsigned long long>(total_));
    } else {
      std::snprintf(text, sizeof text, "%llu  ", static_cast<unsigned long long>(ticks_));
    }
    result += text;
    std::snprintf(text, sizeof text, "%.0f samples/s  %.1f MB/s  stall %.1f %%",
                  rate(static_cast<double>(counters.samples - first_.samples)),
                  rate(static_cast<double>(counters.bytes - first_.bytes)) * 1e-6,
                  100 * rate(counters.stall_seconds - first_.stall_seconds));
    return result + text;
  }

 private:
  static constexpr std::size_t width = 24;

  static bool is_terminal(std::FILE* out) {
#if defined(__unix__) || defined(__APPLE__)
    return isatty(fileno(out)) != 0;
#else
    return false;
#endif
  }
  void write(const run_counters& counters, bool last) {
    last_ = clock::now();
    if (on_terminal_)
      std::fprintf(out_, "\r%s\033[K%s", line(counters).c_str(), last ? "\n" : "");
    else if (last)
      std::fprintf(out_, "%s\n", line(counters).c_str());
    std::fflush(out_);
  }

  std::string label_;
  std::uint64_t total_, ticks_ = 0;
  std::FILE* out_;
  bool on_terminal_;
  clock::time_point last_{};
  run_counters first_;
};
/// The form to use: see `basic_progress`.
class progress : public basic_progress<> {
 public:
  using basic_progress<>::basic_progress;
};

}  // namespace penstock::inline v0_1

// ---- penstock/observe/detail/event_ring.hpp

namespace penstock::inline v0_1::detail {

/// The latest events of one thread: it adds, anyone copies meanwhile. No lock, and no allocation after the
/// first.
///
/// An event that is overwritten while it is copied is left out: each word is stored after `begun_` says so,
/// and released, so that who sees the word sees `begun_`.
template <class = void>
class basic_event_ring {
 public:
  explicit basic_event_ring(std::size_t capacity)
      : capacity_(capacity == 0 ? 1 : capacity), slots_(std::make_unique<slot[]>(capacity_)) {}

  void add(const run_event& e) noexcept {
    const std::uint64_t number = begun_.load(std::memory_order_relaxed);
    begun_.store(number + 1, std::memory_order_relaxed);
    slot& into = slots_[static_cast<std::size_t>(number % capacity_)];
    const words all = {
        e.begin_ns, e.end_ns, (std::uint64_t{e.stage} << 8) | static_cast<std::uint64_t>(e.what),
        e.block,    e.batch,  e.epoch,
        e.first,    e.last,   e.samples};
    for (std::size_t i = 0; i < all.size(); ++i) into[i].store(all[i], std::memory_order_release);
    done_.store(number + 1, std::memory_order_release);
  }

  /// Appends what is there, oldest first; gives how many before it were dropped.
  std::uint64_t copy(std::vector<run_event>& all) const {
    const std::uint64_t done = done_.load(std::memory_order_acquire);
    const std::uint64_t first = done > capacity_ ? done - capacity_ : 0;
    std::uint64_t dropped = first;
    for (std::uint64_t number = first; number < done; ++number) {
      const slot& at = slots_[static_cast<std::size_t>(number % capacity_)];
      words w{};
      for (std::size_t i = 0; i < w.size(); ++i) w[i] = at[i].load(std::memory_order_acquire);
      if (begun_.load(std::memory_order_acquire) > number + capacity_) {
        dropped = number + 1;
        continue;
      }
      all.push_back({w[0], w[1], static_cast<activity>(w[2] & 0xff), static_cast<std::uint32_t>(w[2] >> 8),
                     w[3], w[4], w[5], w[6], w[7], w[8]});
    }
    return dropped;
  }

 private:
  using words = std::array<std::uint64_t, 9>;
  using slot = std::array<std::atomic<std::uint64_t>, 9>;

  std::size_t capacity_;
  std::unique_ptr<slot[]> slots_;
  alignas(64) std::atomic<std::uint64_t> begun_{0};
  std::atomic<std::uint64_t> done_{0};
};
using event_ring = basic_event_ring<>;

}  // namespace penstock::inline v0_1::detail

// ---- penstock/observe/detail/trace_text.hpp

/// The JSON of the Trace Event Format, as far as a timeline needs it.
namespace penstock::inline v0_1::detail {

inline std::uint64_t trace_now() noexcept {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::steady_clock::now().time_since_epoch())
                                        .count());
}

/// A text in quotes. Bytes that are no ASCII become '?': names come from anywhere, and JSON is UTF-8.
[[nodiscard]] inline std::string json_string(std::string_view s) {
  std::string quoted = "\"";
  for (const char c : s) {
    if (c == '"' || c == '\\') quoted += '\\';
    const auto byte = static_cast<unsigned char>(c);
    quoted += byte < 0x20 || byte > 0x7e ? '?' : c;
  }
  return quoted + '"';
}

/// Collects events. `ph` is X for what has a length, M for names, b and e for what overlaps, i for a moment;
/// times are microseconds with three decimals.
template <class = void>
class basic_trace_text {
 public:
  basic_trace_text() : pid_(::getpid()) {}

  void process(std::string_view name) {
    begin("process_name", "M", 0);
    append(text_, {",\"args\":{\"name\":", json_string(name), "}}"});
  }
  void thread(std::uint64_t tid, std::string_view name) {
    begin("thread_name", "M", tid);
    append(text_, {",\"args\":{\"name\":", json_string(name), "}}"});
    begin("thread_sort_index", "M", tid);
    append(text_, {",\"args\":{\"sort_index\":", tid, "}}"});
  }
  void complete(std::uint64_t tid, const run_event& e, std::string_view name) {
    begin(name, "X", tid);
    append(text_, {",\"cat\":\"", category(e.what), "\",\"ts\":"});
    microseconds(e.begin_ns);
    text_ += ",\"dur\":";
    microseconds(e.end_ns - e.begin_ns);
    arguments(e);
  }
  void held(std::uint64_t tid, std::string_view id, const run_event& e, std::string_view name) {
    for (const bool opens : {true, false}) {
      begin(name, opens ? "b" : "e", tid);
      append(text_, {",\"cat\":\"hold\",\"id\":", json_string(id), ",\"ts\":"});
      microseconds(opens ? e.begin_ns : e.end_ns);
      if (opens)
        arguments(e);
      else
        text_ += ",\"args\":{}}";
    }
  }
  void lost(std::uint64_t tid, std::uint64_t when_ns, std::uint64_t count) {
    begin("events before this were dropped", "i", tid);
    text_ += ",\"s\":\"t\",\"ts\":";
    microseconds(when_ns);
    append(text_, {",\"args\":{\"dropped\":", count, "}}"});
  }
  [[nodiscard]] std::string finish(std::uint64_t dropped) {
    std::string whole = "{\"traceEvents\":[\n";
    whole += text_;
    append(whole, {"\n],\n\"displayTimeUnit\":\"ms\",\"otherData\":{\"dropped\":", dropped, "}}\n"});
    return whole;
  }

 private:
  static std::string_view category(activity a) noexcept {
    switch (a) {
      case activity::evaluate:
      case activity::stage:
      case activity::read:
        return "work";
      case activity::copy:
      case activity::wait_for_copy:
        return "device";
      default:
        return "wait";
    }
  }
  void begin(std::string_view name, std::string_view phase, std::uint64_t tid) {
    append(text_, {text_.empty() ? "" : ",\n", "{\"name\":", json_string(name), ",\"ph\":\"", phase,
                   "\",\"pid\":", pid_, ",\"tid\":", tid});
  }
  void microseconds(std::uint64_t ns) {
    const std::uint64_t rest = ns % 1000;
    append(text_, {ns / 1000, '.', rest / 100, rest / 10 % 10, rest % 10});
  }
  void arguments(const run_event& e) {
    text_ += ",\"args\":{";
    bool any = false;
    const auto add = [&](std::string_view name, std::uint64_t value) {
      append(text_, {any ? ",\"" : "\"", name, "\":", value});
      any = true;
    };
    if (e.block != run_event::none) add("block", e.block);
    if (e.batch != run_event::none) add("batch", e.batch);
    if (e.epoch != run_event::none) add("epoch", e.epoch);
    if (e.first != run_event::none) add("first position", e.first);
    if (e.last != run_event::none) add("last position", e.last);
    if (e.samples != 0) add("samples", e.samples);
    text_ += "}}";
  }

  pid_t pid_;
  std::string text_;
};
using trace_text = basic_trace_text<>;

/// Under a temporary name beside it, flushed, renamed; nothing is left behind where that fails.
template <class = void>
void write_whole_file(const std::string& path, std::string_view bytes) {
  const std::string temporary = text({path, ".tmp-", ::getpid(), '-', trace_now()});
  const auto fail = [&](std::string_view what) {
    const int code = errno;
    std::remove(temporary.c_str());
    throw error(errc::io, {"cannot ", what, " the timeline (", std::strerror(code), ")"}).in_file(path);
  };
  std::FILE* const out = std::fopen(temporary.c_str(), "wbx");
  if (out == nullptr) fail("create");
  const bool written = std::fwrite(bytes.data(), 1, bytes.size(), out) == bytes.size() &&
                       std::fflush(out) == 0 && ::fsync(::fileno(out)) == 0;
  if (std::fclose(out) != 0 || !written) fail("write");
  if (std::rename(temporary.c_str(), path.c_str()) != 0) fail("rename");
}

}  // namespace penstock::inline v0_1::detail

// ---- penstock/observe/timeline.hpp

namespace penstock::inline v0_1 {

namespace detail {

/// What is known of one run: a ring of events for each of its threads, and what is held of it.
template <class = void>
class basic_recorded_run {
 public:
  basic_recorded_run(const observed_run& what, std::uint64_t number, std::size_t events)
      : what_(what), number_(number), holds_(events) {
    const std::size_t threads = 1 + std::size_t{what.workers} + (what.asks_ahead ? 1 : 0);
    for (std::size_t i = 0; i < threads; ++i) threads_.push_back(std::make_unique<event_ring>(events));
    held_.reserve(1024);
  }

  void note(unsigned thread, const run_event& e) noexcept { threads_[thread]->add(e); }
  void hold(const void* key, const run_event& e) noexcept {
    const std::lock_guard guard(lock_);
    if (held_.size() == held_.capacity())
      ++holds_dropped_;
    else
      held_.push_back({key, e});
  }
  void let_go(const void* key) noexcept {
    const std::uint64_t now = trace_now();
    const std::lock_guard guard(lock_);
    const auto found =
        std::find_if(held_.begin(), held_.end(), [key](const held& h) { return h.key == key; });
    if (found == held_.end()) return;
    found->event.end_ns = now;
    holds_.add(found->event);
    *found = held_.back();
    held_.pop_back();
  }

  [[nodiscard]] std::uint64_t dropped() const {
    std::vector<run_event> unused;
    std::uint64_t sum = 0;
    for (const auto& thread : threads_) sum += thread->copy(unused);
    const std::lock_guard guard(lock_);
    return sum + holds_.copy(unused) + holds_dropped_;
  }
  /// Writes its threads and what they did; thread numbers begin at `tid`. Gives the next free one.
  std::uint64_t write(trace_text& out, std::uint64_t tid) const {
    for (std::size_t i = 0; i < threads_.size(); ++i) {
      std::vector<run_event> events;
      const std::uint64_t lost = threads_[i]->copy(events);
      out.thread(tid + i, text({"run ", number_, ", ", role(i)}));
      if (lost != 0) out.lost(tid + i, events.empty() ? 0 : events.front().begin_ns, lost);
      for (const run_event& e : events)
        out.complete(tid + i, e, e.what == activity::stage ? what_.stages[e.stage] : to_string(e.what));
    }
    write_holds(out, tid);
    return tid + threads_.size();
  }
  [[nodiscard]] const observed_run& what() const noexcept { return what_; }

 private:
  struct held {
    const void* key;
    run_event event;
  };

  [[nodiscard]] std::string role(std::size_t thread) const {
    if (thread == 0) return "consumer";
    if (thread <= what_.workers) return text({"worker ", thread - 1});
    return "reads ahead";
  }
  void write_holds(trace_text& out, std::uint64_t tid) const {
    std::vector<run_event> events;
    std::uint64_t lost = 0;
    {
      const std::lock_guard guard(lock_);
      lost = holds_.copy(events) + holds_dropped_;
      for (const held& h : held_) {
        events.push_back(h.event);
        events.back().end_ns = trace_now();
      }
    }
    if (lost != 0) out.lost(tid, events.empty() ? 0 : events.front().begin_ns, lost);
    for (std::size_t i = 0; i < events.size(); ++i)
      out.held(tid, text({number_, '.', i}), events[i], to_string(events[i].what));
  }

  observed_run what_;
  std::uint64_t number_;
  std::vector<std::unique_ptr<event_ring>> threads_;
  mutable std::mutex lock_;  // of what follows
  event_ring holds_;
  std::vector<held> held_;
  std::uint64_t holds_dropped_ = 0;
};
using recorded_run = basic_recorded_run<>;

}  // namespace detail

/// Records what each thread of a run did when, for `ui.perfetto.dev` and `chrome://tracing`.
///
/// An annotation: `loader | trace`. Per worker: grains that it evaluated, with their batch and range of
/// positions, within them the source and each stage for the first sample, and its waits for room and for a
/// forward source. Of the consumer: its waits, copies to a device, and from when to when a batch was held.
/// Copies of a `timeline` share what is recorded, and a plan without one has no code for it.
/// Cost: some 100 ns for an event, a clock per stage for one sample in a grain; 72 bytes an event, kept in a
/// ring per thread, so that the latest are there; those dropped are counted. Recorded runs outlive their
/// runs; the latest `runs` are kept. Threads: any may write while runs work.
/// The format is the JSON of the Trace Event Format (Chromium); times are those of the steady clock, so that
/// the files of several ranks on one machine fit together.
///
///     ps::timeline trace;
///     auto run = (loader | trace).open();
///     ...
///     trace.write("trace.json");
template <class = void>
class basic_timeline {
 public:
  using penstock_part = annotation_tag;
  static constexpr std::string_view stage_name = "timeline";

  struct options {
    std::size_t events_per_thread = 8192;
    std::size_t runs = 8;
  };

  basic_timeline() : basic_timeline(options{}) {}
  explicit basic_timeline(options given) : shared_(new recorder(given)) {}

  /// What a run writes to.
  class session {
   public:
    explicit session(std::shared_ptr<detail::recorded_run> into) : into_(std::move(into)) {}
    void note(unsigned thread, const run_event& e) noexcept { into_->note(thread, e); }
    void hold(const void* key, const run_event& e) noexcept { into_->hold(key, e); }
    void let_go(const void* key) noexcept { into_->let_go(key); }

   private:
    std::shared_ptr<detail::recorded_run> into_;
  };

  /// A run begins to write. Called by `open`.
  [[nodiscard]] session connect(const observed_run& what) const {
    recorder& all = *shared_;
    const std::lock_guard guard(all.lock);
    std::shared_ptr<detail::recorded_run> made(
        new detail::recorded_run(what, all.opened + 1, all.given.events_per_thread));
    all.runs.push_back(made);
    ++all.opened;
    while (all.runs.size() > std::max<std::size_t>(1, all.given.runs)) all.runs.erase(all.runs.begin());
    return session(std::move(made));
  }
  void apply(run_options& /*unused*/, bool /*after_batch*/) const noexcept {}

  /// How many events there was no room for, in the runs that are kept.
  [[nodiscard]] std::uint64_t dropped() const {
    std::uint64_t sum = 0;
    for (const auto& one : kept()) sum += one->dropped();
    return sum;
  }
  /// The whole trace as JSON.
  [[nodiscard]] std::string json() const {
    detail::trace_text out;
    std::uint64_t tid = 1;
    bool named = false;
    for (const auto& one : kept()) {
      const observed_run& what = one->what();
      if (!named)
        out.process(detail::text({"penstock, rank ", what.rank, " of ", what.world, ": ", what.source}));
      named = true;
      tid = one->write(out, tid);
    }
    return out.finish(dropped());
  }
  /// Writes it to a file, which appears whole or not at all. Throws `errc::io` with the file's name.
  void write(const std::string& path) const { detail::write_whole_file(path, json()); }

 private:
  struct recorder {
    explicit recorder(options o) : given(o) {}
    options given;
    std::mutex lock;  // of what follows
    std::vector<std::shared_ptr<detail::recorded_run>> runs;
    std::uint64_t opened = 0;
  };

  [[nodiscard]] std::vector<std::shared_ptr<detail::recorded_run>> kept() const {
    const std::lock_guard guard(shared_->lock);
    return shared_->runs;
  }

  std::shared_ptr<recorder> shared_;
};
/// The form to use: see `basic_timeline`.
using timeline = basic_timeline<>;

}  // namespace penstock::inline v0_1

// ---- penstock/observe/verdict.hpp

namespace penstock::inline v0_1 {

/// What holds a training loop back.
enum class bottleneck : std::uint8_t {
  unknown,   ///< too little was seen
  consumer,  ///< the loop itself: data are always there
  io,        ///< reading
  cpu,       ///< a stage that computes
  jitter,    ///< neither on average: samples take unequal times, and nothing is kept for the slow ones
};

/// The name of a bottleneck, as `report` writes it.
[[nodiscard]] constexpr std::string_view to_string(bottleneck b) noexcept {
  constexpr std::string_view names[] = {"unknown", "consumer-bound", "I/O-bound", "CPU-bound",
                                        "jitter-bound"};
  return names[static_cast<std::size_t>(b)];
}

/// Why a loop is as fast as it is, and what follows.
struct verdict {
  bottleneck limit = bottleneck::unknown;
  double stall = 0;          ///< share of its time that the consumer waited
  double busy = 0;           ///< share of their time that workers evaluated
  std::string busiest;       ///< the stage that takes most of it
  double busiest_share = 0;  ///< of the time of all stages
  std::string advice;        ///< one sentence
};

namespace detail {

inline constexpr double little_stall = 0.02;  // below it more data would not make the loop faster

template <class = void>
std::string percent(double share) {
  char text[16];
  std::snprintf(text, sizeof text, "%.1f%%", 100 * std::clamp(share, 0.0, 9.999));
  return text;
}

}  // namespace detail

/// Judges a run by its counters, in the order in which a person would: does the consumer wait at all; if so,
/// are the workers busy, and with which stage; if they are not, do they wait for input or for room.
///
/// `before`: counters taken earlier in the same run; what came since then is judged. Without workers the
/// consumer evaluates itself, and its waiting is all of the work. Cost: nothing to the run. Throws
/// `std::bad_alloc` only.
///
///     const auto why = judge(run.counters());
///     if (why.limit == bottleneck::io) ...
template <class = void>
[[nodiscard]] verdict judge(const run_counters& counters, const run_counters& before = {}) {
  const run_counters c = since(counters, before);
  verdict v;
  if (c.batches == 0 || c.seconds <= 0) {
    v.advice = "nothing was delivered yet; ask again after some batches";
    return v;
  }
  const unsigned threads = std::max(1u, c.workers);
  v.stall = c.stall_seconds / c.seconds;
  double all = 0;
  std::size_t most = 0;
  for (std::size_t i = 0; i < c.stages.size(); ++i) {
    all += c.stages[i].busy_seconds;
    if (c.stages[i].busy_seconds > c.stages[most].busy_seconds) most = i;
  }
  if (!c.stages.empty() && all > 0) {
    v.busiest = c.stages[most].name;
    v.busiest_share = c.stages[most].busy_seconds / all;
  }
  v.busy = c.worker_busy_seconds / (c.seconds * threads);
  // Without workers the time that the consumer evaluates is the time it waits.
  const double waited = c.workers == 0 ? c.worker_busy_seconds / c.seconds : v.stall;
  if (waited < detail::little_stall) {
    v.limit = bottleneck::consumer;
    v.advice = "the loop gets its batches without waiting: the time is in the training step";
    return v;
  }
  const double waiting = c.waiting_for_room + c.waiting_for_input + c.worker_busy_seconds;
  const double input = waiting > 0 ? c.waiting_for_input / waiting : 0;
  const double room = waiting > 0 ? c.waiting_for_room / waiting : 0;
  if (c.workers != 0 && room > 0.25 && room > input) {
    v.limit = bottleneck::jitter;
    v.advice =
        "the loop waits for a batch while workers wait for room: batches take unequal times; keep more of "
        "them ready with prefetch(n) after batch, or make batches larger";
    return v;
  }
  if (input <= 0.5 && all <= 0) {
    v.advice = "no stage was timed yet; ask again after more batches";
    return v;
  }
  if (input > 0.5 || most == 0) {
    v.limit = bottleneck::io;
    v.advice = input > 0.5
                   ? "workers wait for the serial front of a forward-only source; use an indexed source, or "
                     "open several plans over parts of the data"
                   : "most of the work is reading: try prefetch(n), larger shards on a faster disk, more "
                     "workers, or fewer bytes per sample (fields<...>, a codec that packs tighter)";
    return v;
  }
  v.limit = bottleneck::cpu;
  v.advice = "most of the work is '" + v.busiest + "': " +
             (c.workers == 0 ? "give it threads with workers(n)"
                             : "give it more workers if there are processors, make it cheaper, or do it once "
                               "when the data are packed");
  return v;
}

/// The third step: the same plan over a source that costs nothing (`synthetic`, `generated`) is run as well,
/// and its counters are given. Where it is hardly faster, reading is not what holds the loop back.
template <class = void>
[[nodiscard]] verdict judge_against(const run_counters& real, const run_counters& without_reading) {
  verdict v = judge(real);
  const double rate = real.samples_per_second(), free_rate = without_reading.samples_per_second();
  if (v.limit == bottleneck::unknown || v.limit == bottleneck::consumer || rate <= 0) return v;
  if (free_rate > 1.2 * rate) {
    if (v.limit != bottleneck::jitter) v.limit = bottleneck::io;
    v.advice = "without reading the loop is " + detail::percent(free_rate / rate - 1) + " faster: " +
               (v.limit == bottleneck::jitter
                    ? "reads take unequal times; raise prefetch(n)"
                    : "reading holds it back; try prefetch(n), faster storage or fewer bytes");
  } else if (v.limit == bottleneck::io) {
    v.limit = bottleneck::cpu;
    v.advice = "without reading the loop is no faster: what comes after reading holds it back";
  }
  return v;
}

/// The counters of a run in words: rates, what each stage took, and the verdict.
template <class = void>
[[nodiscard]] std::string report(const run_counters& counters, const run_counters& before = {}) {
  const run_counters c = since(counters, before);
  const verdict v = judge(counters, before);
  char line[256];
  std::snprintf(line, sizeof line, "%llu samples in %.1f s: %.0f samples/s, %.1f MB/s, %u workers\n",
                static_cast<unsigned long long>(c.samples), c.seconds, c.samples_per_second(),
                c.bytes_per_second() * 1e-6, c.workers);
  std::string text = line;
  double all = 0;
  for (const stage_counters& s : c.stages) all += s.busy_seconds;
  for (const stage_counters& s : c.stages) {
    const double each = s.samples == 0 ? 0 : s.busy_seconds / static_cast<double>(s.samples);
    std::snprintf(line, sizeof line, "  %-32.80s %6s  %9.2f us a sample\n", s.name.c_str(),
                  detail::percent(all > 0 ? s.busy_seconds / all : 0).c_str(), each * 1e6);
    text += line;
  }
  text += (c.workers == 0 ? "consumer evaluates itself" : "consumer waited " + detail::percent(v.stall)) +
          ", workers busy " + detail::percent(v.busy) + "\n" + std::string(to_string(v.limit)) + ": " +
          v.advice + "\n";
  return text;
}

}  // namespace penstock::inline v0_1

// ---- penstock/order/detail/places.hpp

/// What orders have in common that are the same in every epoch.
namespace penstock::inline v0_1::detail {

/// The places behind an order that is the same in every epoch; `bound` is that order bound to any of them.
template <class Bound>
[[nodiscard]] std::shared_ptr<const source_places> places_behind(
    const std::shared_ptr<const source_places>& before, Bound bound) {
  if (!before) return nullptr;
  struct both {
    std::shared_ptr<const source_places> before;
    Bound bound;
  };
  const source_places& first = *before;
  std::shared_ptr<const both> owner(new const both{before, std::move(bound)});
  const auto find = [](const void* kept, std::uint64_t index) {
    const auto& step = *static_cast<const both*>(kept);
    return (*step.before)(step.bound(index).index);
  };
  return std::shared_ptr<const source_places>(new const source_places(first, find, std::move(owner)));
}

/// Where shards begin behind an order that leaves out positions and keeps the order of the others:
/// `kept_before(p)` is how many positions below p it keeps.
template <class KeptBefore>
[[nodiscard]] std::shared_ptr<const std::vector<std::uint64_t>> starts_behind(
    const std::shared_ptr<const std::vector<std::uint64_t>>& starts, const KeptBefore& kept_before) {
  if (!starts) return nullptr;
  std::shared_ptr<std::vector<std::uint64_t>> made(new std::vector<std::uint64_t>(1, 0));
  for (const std::uint64_t start : *starts) {
    const std::uint64_t kept = kept_before(start);
    if (kept != made->back()) made->push_back(kept);
  }
  if (made->size() == 1) made->push_back(0);
  return made;
}

/// Refuses positions that nobody can count.
inline void check_finite(const order_input& in, std::string_view stage) {
  if (in.size >= std::uint64_t{1} << 63) {
    throw error(errc::argument, {"an order without end has no parts; write ", stage, " before repeat()"})
        .in_stage(stage);
  }
}

}  // namespace penstock::inline v0_1::detail

// ---- penstock/order/detail/kept_list.hpp

/// Ascending lists of positions, and the order that such a list makes.
namespace penstock::inline v0_1::detail {

/// Numbers in 4 bytes each as long as all are below 2^32, then in 8.
class packed_numbers {
 public:
  /// Numbers up to `largest` will be added.
  explicit packed_numbers(std::uint64_t largest)
      : wide_(largest > std::numeric_limits<std::uint32_t>::max()) {}

  void add(std::uint64_t number) {
    if (wide_)
      eight_.push_back(number);
    else
      four_.push_back(static_cast<std::uint32_t>(number));
  }
  void resize(std::uint64_t count) {
    if (wide_)
      eight_.resize(static_cast<std::size_t>(count));
    else
      four_.resize(static_cast<std::size_t>(count));
  }
  void set(std::uint64_t i, std::uint64_t number) {
    if (wide_)
      eight_[static_cast<std::size_t>(i)] = number;
    else
      four_[static_cast<std::size_t>(i)] = static_cast<std::uint32_t>(number);
  }
  [[nodiscard]] std::uint64_t size() const noexcept { return wide_ ? eight_.size() : four_.size(); }
  [[nodiscard]] std::uint64_t operator[](std::uint64_t i) const noexcept {
    return wide_ ? eight_[static_cast<std::size_t>(i)] : four_[static_cast<std::size_t>(i)];
  }
  /// How many of the numbers [first, last), which ascend, are below x.
  [[nodiscard]] std::uint64_t below(std::uint64_t first, std::uint64_t last, std::uint64_t x) const noexcept {
    const std::uint64_t begin = first;
    while (first < last) {
      const std::uint64_t middle = first + (last - first) / 2;
      if ((*this)[middle] < x)
        first = middle + 1;
      else
        last = middle;
    }
    return first - begin;
  }

 private:
  bool wide_;
  std::vector<std::uint32_t> four_;
  std::vector<std::uint64_t> eight_;
};

/// An ascending list of positions, as runs where they are long and else one by one.
template <class = void>
class basic_kept_list {
 public:
  /// The positions below `size` for which `keep` says so; `until(i)` is up to where it would say the same as
  /// for i.
  template <class Keep, class Until>
  basic_kept_list(std::uint64_t size, const Keep& keep, const Until& until)
      : upstream_(size), singles_(size) {
    for (std::uint64_t i = 0; i < size;) {
      const std::uint64_t end = std::clamp(until(i), i + 1, size);
      if (keep(i)) add(i, end);
      i = end;
    }
    // A run takes 16 bytes, a position 4 or 8.
    if (runs_.size() * 4 > kept_) {
      singles_.resize(kept_);
      std::uint64_t to = 0;
      for (std::size_t r = 0; r < runs_.size(); ++r)
        for (std::uint64_t i = runs_[r], n = length(r); n != 0; --n) singles_.set(to++, i++);
      runs_ = {};
      before_ = {};
    }
  }

  [[nodiscard]] std::uint64_t upstream() const noexcept { return upstream_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return kept_; }
  [[nodiscard]] std::uint64_t operator[](std::uint64_t i) const noexcept {
    if (runs_.empty()) return singles_[i];
    const auto r = static_cast<std::size_t>(last_not_above(before_.data(), before_.size(), i));
    return runs_[r] + (i - before_[r]);
  }
  /// How many positions below p are kept.
  [[nodiscard]] std::uint64_t kept_before(std::uint64_t p) const noexcept {
    if (runs_.empty()) return singles_.below(0, singles_.size(), p);
    if (p <= runs_[0]) return 0;
    const auto r = static_cast<std::size_t>(last_not_above(runs_.data(), runs_.size(), p - 1));
    return before_[r] + std::min(p - runs_[r], length(r));
  }
  [[nodiscard]] bool has(std::uint64_t p) const noexcept { return kept_before(p + 1) != kept_before(p); }

  /// Changes when the list does.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept {
    class fingerprint h;
    h.add(upstream_, kept_);
    for (std::uint64_t i = 0; i < kept_;) {
      const std::uint64_t begin = (*this)[i];
      std::uint64_t n = 1;
      if (runs_.empty())
        while (i + n < kept_ && singles_[i + n] == begin + n) ++n;
      else
        n = length(static_cast<std::size_t>(last_not_above(before_.data(), before_.size(), i)));
      h.add(begin, n);
      i += n;
    }
    return h.value();
  }

 private:
  [[nodiscard]] std::uint64_t length(std::size_t r) const noexcept {
    return (r + 1 < before_.size() ? before_[r + 1] : kept_) - before_[r];
  }
  void add(std::uint64_t begin, std::uint64_t end) {
    if (runs_.empty() || runs_.back() + length(runs_.size() - 1) != begin) {
      runs_.push_back(begin);
      before_.push_back(kept_);
    }
    kept_ += end - begin;
  }

  std::uint64_t upstream_, kept_ = 0;
  std::vector<std::uint64_t> runs_, before_;  // where each begins, and how many positions are kept before it
  packed_numbers singles_;
};
using kept_list = basic_kept_list<>;

/// Checks that the values which a stage was given are those of the samples that reach it.
template <class = void>
void check_places(const order_input& in, std::uint64_t values, std::uint64_t dataset, std::string_view what,
                  std::string_view stage) {
  check_finite(in, stage);
  if (!in.places) {
    throw error(errc::argument, {stage,
                                 " needs to know which sample stands where, and behind shuffle, "
                                 "repeat, weighted or batch that changes from epoch to epoch; write ",
                                 stage, " before it"})
        .in_stage(stage);
  }
  if (dataset != 0 && in.places->dataset() != 0 && in.places->dataset() != dataset) {
    throw error(errc::argument, {"the dataset is not the one that ", what,
                                 " was made of (the fingerprints differ); make it again"})
        .in_stage(stage);
  }
  if (values != in.places->samples()) {
    throw error(errc::argument, {what, " has ", values, " values, and the dataset has ", in.places->samples(),
                                 " samples; there must be one for each"})
        .in_stage(stage);
  }
}

/// The order of `subset` and `split_by_key`: the positions of a list.
template <class = void>
class basic_kept_order {
 public:
  struct bound {
    std::uint64_t epoch = 0;
    std::shared_ptr<const kept_list> list;
    [[nodiscard]] position operator()(std::uint64_t index) const noexcept { return {epoch, (*list)[index]}; }
  };

  /// `samples` are the kept ones of the source.
  basic_kept_order(const order_input& in, std::shared_ptr<const kept_list> samples)
      : kept_(std::move(samples)) {
    if (!in.places->as_stored() || in.size != kept_->upstream()) {
      const kept_list& all = *kept_;
      const source_places& places = *in.places;
      kept_.reset(new const kept_list(
          in.size, [&](std::uint64_t i) { return all.has(places(i)); },
          [](std::uint64_t i) { return i + 1; }));
    }
    starts_ = starts_behind(in.starts, [this](std::uint64_t p) { return kept_->kept_before(p); });
    places_ = places_behind(in.places, bound{0, kept_});
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return kept_->size(); }
  [[nodiscard]] order_input output() const { return {size(), starts_, places_}; }
  [[nodiscard]] bound bind(std::uint64_t epoch) const noexcept { return {epoch, kept_}; }
  [[nodiscard]] position_range reach(position_range after) const noexcept {
    return {{after.first.epoch, (*kept_)[after.first.index]}, {after.last.epoch, (*kept_)[after.last.index]}};
  }
  [[nodiscard]] std::optional<position> position_of(position upstream) const noexcept {
    if (upstream.index >= kept_->upstream() || !kept_->has(upstream.index)) return std::nullopt;
    return position{upstream.epoch, kept_->kept_before(upstream.index)};
  }

 private:
  std::shared_ptr<const kept_list> kept_;
  std::shared_ptr<const std::vector<std::uint64_t>> starts_;
  std::shared_ptr<const source_places> places_;
};
using kept_order = basic_kept_order<>;

/// Up to where values are the same as at i, where they can say so.
template <sample_values Values>
[[nodiscard]] std::uint64_t same_until(const Values& values, std::uint64_t i) {
  if constexpr (requires { values.same_until(i); })
    return values.same_until(i);
  else
    return i + 1;
}

}  // namespace penstock::inline v0_1::detail

// ---- penstock/order/detail/classes.hpp

namespace penstock::inline v0_1::detail {

/// Positions by class: classes in the order of their values, positions of a class ascending.
template <class = void>
class basic_classes {
 public:
  struct place {
    std::uint64_t group, member;
  };

  /// `of(i)` is the value at position i.
  template <class Value, class ValueAt>
  [[nodiscard]] static basic_classes sorted(std::uint64_t size, const ValueAt& of) {
    basic_classes made(size);
    std::unordered_map<Value, std::uint32_t> numbers;
    std::vector<Value> values;
    std::vector<std::uint32_t> met(static_cast<std::size_t>(size));  // by position: its class, as met
    for (std::uint64_t i = 0; i < size; ++i) {
      const Value value = of(i);
      const auto [found, fresh] = numbers.try_emplace(value, static_cast<std::uint32_t>(values.size()));
      if (fresh) values.push_back(value);
      met[static_cast<std::size_t>(i)] = found->second;
    }
    std::vector<std::uint32_t> order(values.size()), rank(values.size());
    for (std::uint32_t v = 0; v < order.size(); ++v) order[v] = v;
    std::sort(order.begin(), order.end(),
              [&](std::uint32_t a, std::uint32_t b) { return values[a] < values[b]; });
    for (std::uint32_t r = 0; r < order.size(); ++r) rank[order[r]] = r;
    made.starts_.assign(values.size() + 1, 0);
    for (const std::uint32_t v : met) ++made.starts_[rank[v] + 1];
    for (std::size_t g = 1; g < made.starts_.size(); ++g) made.starts_[g] += made.starts_[g - 1];
    made.members_.resize(size);
    std::vector<std::uint64_t> next(made.starts_.begin(), made.starts_.end() - 1);
    for (std::uint64_t i = 0; i < size; ++i)
      made.members_.set(next[rank[met[static_cast<std::size_t>(i)]]]++, i);
    return made;
  }

  [[nodiscard]] std::uint64_t count() const noexcept { return starts_.size() - 1; }
  [[nodiscard]] std::uint64_t size(std::uint64_t group) const noexcept {
    const auto g = static_cast<std::size_t>(group);
    return starts_[g + 1] - starts_[g];
  }
  [[nodiscard]] std::uint64_t member(std::uint64_t group, std::uint64_t i) const noexcept {
    return members_[starts_[static_cast<std::size_t>(group)] + i];
  }
  [[nodiscard]] std::uint64_t largest() const noexcept {
    std::uint64_t most = 0;
    for (std::uint64_t g = 0; g < count(); ++g) most = std::max(most, size(g));
    return most;
  }
  [[nodiscard]] std::uint64_t smallest() const noexcept {
    std::uint64_t least = count() == 0 ? 0 : size(0);
    for (std::uint64_t g = 1; g < count(); ++g) least = std::min(least, size(g));
    return least;
  }
  /// The class of a position; logarithmic in each class.
  [[nodiscard]] std::optional<place> find(std::uint64_t at) const noexcept {
    for (std::uint64_t g = 0; g < count(); ++g) {
      const std::uint64_t first = starts_[static_cast<std::size_t>(g)];
      const std::uint64_t last = starts_[static_cast<std::size_t>(g) + 1];
      const std::uint64_t i = members_.below(first, last, at);
      if (first + i < last && members_[first + i] == at) return place{g, i};
    }
    return std::nullopt;
  }

 private:
  explicit basic_classes(std::uint64_t size) : members_(size) {}

  std::vector<std::uint64_t> starts_;
  packed_numbers members_;
};
using classes = basic_classes<>;

template <sample_values Values>
[[nodiscard]] std::shared_ptr<const classes> shared_classes(const Values& values, const order_input& in) {
  const source_places& places = *in.places;
  return std::shared_ptr<const classes>(
      new const classes(classes::template sorted<typename Values::value_type>(
          in.size, [&](std::uint64_t i) { return values[places(i)]; })));
}

}  // namespace penstock::inline v0_1::detail

// ---- penstock/order/detail/digit_network.hpp

namespace penstock::inline v0_1::detail {

/// A keyed bijection on somewhat more than [0, n), n > 3: a Feistel network over a low digit of a power of
/// two and a high digit in `base`. `forward<0>` is made of five rounds; where digits are small, `forward<1>`
/// after it makes five more with keys of their own.
struct digit_network {
  static constexpr std::size_t rounds = 5;

  std::uint64_t base;  // of the high digit
  std::uint64_t mask;  // of the low digit
  std::uint32_t bits;  // of the low digit
  std::uint64_t offset, slope;
  std::array<std::uint64_t, 2 * rounds> keys;

  [[nodiscard]] static constexpr digit_network make(std::uint64_t n, std::uint64_t key) noexcept {
    digit_network made{};
    made.bits = static_cast<std::uint32_t>(std::bit_width(n - 1)) / 2;
    made.mask = (std::uint64_t{1} << made.bits) - 1;
    made.base = ((n - 1) >> made.bits) + 1;
    const std::uint64_t stream = mix64(key);
    for (std::size_t i = 0; i < made.keys.size(); ++i) made.keys[i] = mix64(stream + i) | 1;
    made.offset = mix64(stream + made.keys.size());
    made.slope = mix64(stream + made.keys.size() + 1) | 1;
    return made;
  }

  /// What a round multiplies a digit by.
  template <std::size_t Pass, std::size_t Round>
  [[nodiscard]] constexpr std::uint64_t factor() const noexcept {
    return keys[Pass * rounds + Round];
  }
  /// What a round adds to the product. One constant is enough to keep two digits of 0 from passing all rounds
  /// unchanged; the second pass, made where digits are so small that 0 is frequent, adds the keys of the
  /// first one.
  template <std::size_t Pass, std::size_t Round>
  [[nodiscard]] constexpr std::uint64_t constant() const noexcept {
    if constexpr (Pass == 1) return keys[Round];
    return Round == 1 ? offset : 0;
  }
  /// What is added to the high digit. The halves of the product are folded: each alone goes up in equal steps
  /// as the digit does, and without the fold such steps can be seen in the result.
  template <std::size_t Pass, std::size_t Round>
  [[nodiscard]] constexpr std::uint64_t high_step(std::uint64_t low) const noexcept {
    const std::uint64_t product = low * factor<Pass, Round>() + constant<Pass, Round>();
    return static_cast<std::uint32_t>(product ^ product >> 32) * base >> 32;
  }
  /// What changes the low digit's bits. Equal steps do no harm here.
  template <std::size_t Pass, std::size_t Round>
  [[nodiscard]] constexpr std::uint64_t low_step(std::uint64_t high) const noexcept {
    return (high * factor<Pass, Round>() + constant<Pass, Round>()) >> 32 & mask;
  }
  /// Keeps indices whose low digits are equal from passing the first round in step.
  [[nodiscard]] constexpr std::uint64_t slant(std::uint64_t high) const noexcept { return high * slope; }

  [[nodiscard]] constexpr std::uint64_t plus(std::uint64_t high, std::uint64_t step) const noexcept {
    const std::uint64_t sum = high + step, wrapped = sum - base;
    return sum < base ? sum : wrapped;
  }
  [[nodiscard]] constexpr std::uint64_t minus(std::uint64_t high, std::uint64_t step) const noexcept {
    return high < step ? high + base - step : high - step;
  }

  template <std::size_t Pass>
  [[nodiscard]] constexpr std::uint64_t forward(std::uint64_t x) const noexcept {
    std::uint64_t high = x >> bits;
    std::uint64_t low = (x + slant(high)) & mask;
    high = plus(high, high_step<Pass, 0>(low));
    low ^= low_step<Pass, 1>(high);
    high = plus(high, high_step<Pass, 2>(low));
    low ^= low_step<Pass, 3>(high);
    high = plus(high, high_step<Pass, 4>(low));
    return high * (mask + 1) + low;  // cheaper than a shift by a variable
  }
  template <std::size_t Pass>
  [[nodiscard]] constexpr std::uint64_t backward(std::uint64_t x) const noexcept {
    std::uint64_t high = x >> bits;
    std::uint64_t low = x & mask;
    high = minus(high, high_step<Pass, 4>(low));
    low ^= low_step<Pass, 3>(high);
    high = minus(high, high_step<Pass, 2>(low));
    low ^= low_step<Pass, 1>(high);
    high = minus(high, high_step<Pass, 0>(low));
    return high << bits | ((low - slant(high)) & mask);
  }
};

}  // namespace penstock::inline v0_1::detail

// ---- penstock/order/permutation.hpp

namespace penstock::inline v0_1 {

/// A keyed bijection on [0, n), n <= 2^63: a shuffle that is computed and not stored.
///
/// In: an index below n (0 <= n <= 2^63) and, once, a key. Out: another index below n; `inverse` turns it
/// round. Different keys give permutations that look independent. 128 bytes, trivially copyable, no heap;
/// immutable, so any number of threads may use it.
/// Cost: about 6 ns a call in a loop and 20 ns where each call waits for the one before, at every n from 900
/// on (docs/order.md has the table); from 121 on twice that and more, below less.
/// Throws `error(errc::argument)` when n is above 2^63. An index that is not below n is the caller's mistake
/// and is not checked.
///
///     const penstock::permutation shuffled(50'000, 7);
///     for (std::uint64_t i = 0; i < shuffled.size(); ++i) read(shuffled(i));   // every sample once
///
/// How: up to 120 indices, a table shuffled by Fisher and Yates, since a cipher is visibly uneven on so few.
/// Above, five rounds of a Feistel network over two digits of about sqrt(n), the low one a power of two, the
/// high one of the smallest base that covers n: it adds modulo that base where a Feistel network has its
/// exclusive or (Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002). What lands outside
/// [0, n) is sent through again: at any n, also just above a power of two, that is less than one index in
/// `base`. Four rounds would be a quarter cheaper; one key in a hundred then leaves neighbours visibly
/// correlated.
class permutation {
 public:
  constexpr permutation() noexcept : table_{} {}

  constexpr permutation(std::uint64_t n, std::uint64_t key) : n_(n), table_{} {
    if (n > max_size) {
      throw error(errc::argument, {"a permutation has at most 2^63 positions, not ", n});
    }
    if (n <= table_size) {
      fill_table(key);
    } else {
      network_ = detail::digit_network::make(n, key);
    }
  }

  [[nodiscard]] constexpr std::uint64_t size() const noexcept { return n_; }

  /// Where index i goes.
  [[nodiscard]] constexpr std::uint64_t operator()(std::uint64_t i) const noexcept {
    if (n_ < few) [[unlikely]]
      return of_few(i);
    i = network_.forward<0>(i);
    if (i >= n_) [[unlikely]]
      return walk(i);
    return i;
  }

  /// Which index goes to j.
  [[nodiscard]] constexpr std::uint64_t inverse(std::uint64_t j) const noexcept {
    if (n_ <= table_size) {
      std::size_t i = 0;
      while (table_[i] != j && i + 1 < table_size) ++i;
      return i;
    }
    do j = n_ < few ? network_.backward<0>(network_.backward<1>(j)) : network_.backward<0>(j);
    while (j >= n_);
    return j;
  }

  static constexpr std::uint64_t max_size = std::uint64_t{1} << 63;

 private:
  static constexpr std::size_t table_size = 120;
  /// Below this many indices the digits are so small that one pass leaves a measurable unevenness: two are
  /// made.
  static constexpr std::uint64_t few = 900;

  constexpr void fill_table(std::uint64_t key) noexcept {
    for (std::size_t i = 0; i < n_; ++i) table_[i] = static_cast<std::uint8_t>(i);
    const std::uint64_t stream = mix64(key);
    for (std::size_t i = static_cast<std::size_t>(n_); i > 1; --i) {
      const std::uint64_t j = detail::multiply_high(mix64(stream + i), i);
      std::swap(table_[i - 1], table_[static_cast<std::size_t>(j)]);
    }
  }

  // The two rare ways are kept out of the caller's loop, where they would take the registers.
  [[nodiscard, gnu::noinline]] constexpr std::uint64_t walk(std::uint64_t i) const noexcept {
    while (i >= n_) i = network_.forward<0>(i);
    return i;
  }
  [[nodiscard, gnu::noinline]] constexpr std::uint64_t of_few(std::uint64_t i) const noexcept {
    if (n_ <= table_size) return table_[static_cast<std::size_t>(i)];
    do i = network_.forward<1>(network_.forward<0>(i));
    while (i >= n_);
    return i;
  }

  std::uint64_t n_ = 0;
  union {
    std::array<std::uint8_t, table_size> table_;
    detail::digit_network network_;
  };
};

}  // namespace penstock::inline v0_1

// ---- penstock/order/class_balanced.hpp

namespace penstock::inline v0_1 {

/// How many samples of each class `class_balanced` gives in an epoch.
enum class per_class {
  /// as many as the largest class has; smaller ones are gone through again, each time in a new order
  largest,
  smallest  ///< as many as the smallest class has; larger ones go on in the next epoch
};

/// The order of `class_balanced(values, seed)`.
template <class = void>
class basic_class_balanced_order {
 public:
  static constexpr bool repeats = true;

  struct bound {
    std::uint64_t epoch = 0, seed = 0, each = 1;
    permutation mixed;
    detail::divider by_each;
    std::shared_ptr<const detail::classes> groups;

    [[nodiscard]] position operator()(std::uint64_t index) const noexcept {
      const auto [group, draw] = by_each(mixed(index));
      const std::uint64_t all = groups->size(group), number = epoch * each + draw;
      const permutation pass(all, pass_key(seed, group, number / all));
      return {epoch, groups->member(group, pass(number % all))};
    }
  };

  basic_class_balanced_order(std::shared_ptr<const detail::classes> groups, std::uint64_t seed, per_class how)
      : groups_(std::move(groups)),
        seed_(seed),
        each_(how == per_class::largest ? groups_->largest() : groups_->smallest()) {
    if (each_ != 0 && groups_->count() > most / each_) {
      throw error(errc::limit, {"an epoch of ", groups_->count(), " classes with ", each_,
                                " samples each is longer than 2^62 positions; write per_class::smallest"})
          .in_stage("class_balanced");
    }
    size_ = groups_->count() * each_;
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] order_input output() const { return {size_, nullptr}; }
  [[nodiscard]] bound bind(std::uint64_t epoch) const {
    if (each_ != 0 && epoch > ~std::uint64_t{0} / each_ - 1) {
      throw error(errc::argument, {"epoch ", epoch, " of ", each_, " samples a class is beyond 64 bits"})
          .in_stage("class_balanced");
    }
    return {epoch, seed_, each_, mixed(epoch), detail::divider(std::max<std::uint64_t>(1, each_)), groups_};
  }
  /// Where a sample stands first in the epoch; nothing where it does not come in it.
  [[nodiscard]] std::optional<position> position_of(position upstream) const {
    const auto found = groups_->find(upstream.index);
    if (!found) return std::nullopt;
    const permutation mix = mixed(upstream.epoch);
    const std::uint64_t all = groups_->size(found->group), first = upstream.epoch * each_;
    std::optional<position> lowest;
    for (std::uint64_t pass = first / all; pass * all < first + each_; ++pass) {
      const permutation order(all, pass_key(seed_, found->group, pass));
      const std::uint64_t number = pass * all + order.inverse(found->member);
      if (number < first || number - first >= each_) continue;
      const std::uint64_t index = mix.inverse(found->group * each_ + (number - first));
      if (!lowest || index < lowest->index) lowest = position{upstream.epoch, index};
    }
    return lowest;
  }

 private:
  static constexpr std::uint64_t most = std::uint64_t{1} << 62;

  [[nodiscard]] static std::uint64_t pass_key(std::uint64_t seed, std::uint64_t group,
                                              std::uint64_t pass) noexcept {
    return mix64(mix64(seed ^ 0x636c617373u) ^ mix64(mix64(group) + pass));
  }
  [[nodiscard]] permutation mixed(std::uint64_t epoch) const {
    return {size_, mix64(mix64(seed_ ^ 0x6d6978u) + epoch)};
  }

  std::shared_ptr<const detail::classes> groups_;
  std::uint64_t seed_, each_, size_ = 0;
};
using class_balanced_order = basic_class_balanced_order<>;

/// The stage `class_balanced(values, seed)`.
template <sample_values Values>
struct class_balanced_stage {
  using penstock_part = order_tag;
  static constexpr std::string_view stage_name = "class_balanced";
  static constexpr bool wants_places = true;
  static_assert(!std::is_floating_point_v<typename Values::value_type>,
                "penstock: classes are whole numbers or texts; derive an index of such for class_balanced");

  [[nodiscard]] class_balanced_order make(const order_input& in) const {
    detail::check_places(in, values.size(), values.dataset(), values.describe(), stage_name);
    return {detail::shared_classes(values, in), seed, how};
  }
  [[nodiscard]] std::string describe() const {
    return detail::text({"class_balanced(", values.describe(), ", seed ", seed,
                         how == per_class::largest ? ")" : ", smallest)"});
  }
  template <class Hash>
  void fingerprint(Hash& h) const {
    h.add(stage_name, seed, how, values.fingerprint());
  }

  Values values;
  std::uint64_t seed = 0;
  per_class how = per_class::largest;
};

namespace detail {
struct class_balanced_fn {
  template <sample_values Values>
  [[nodiscard]] class_balanced_stage<Values> operator()(const Values& values, std::uint64_t seed,
                                                        per_class how = per_class::largest) const {
    return {values, seed, how};
  }
};
}  // namespace detail

/// Shuffles so that every class comes equally often: `class_balanced(labels, seed)`, or with
/// `per_class::smallest`.
///
/// An epoch has as many positions of each class as the largest class has samples (the smallest, if that is
/// asked for), in a new order in every epoch. Within a class no sample comes a second time before all others
/// of it came, over epochs too: a large class of which an epoch takes a part goes on where it stood.
/// In: values as for `subset`, whole numbers or texts; equal values are a class. Out: positions; what follows
/// sees one shard, reads are single and random. It takes the place of `shuffle`, and stands where `subset`
/// may, so `source | split_by_key(...) | class_balanced(...)` balances what is left.
/// A sequencer; keeps every guarantee: a position is computed, so that ranks may change in number. Holds 4
/// bytes a sample (8 from 2^32 on), made when the plan is opened, by sorting. A position costs a look-up and
/// two permutations: docs/order.md. `position_of` is where a sample stands first, and takes a step for each
/// time its class is gone through.
/// Throws `error(errc::argument)` as `subset`. Free for all threads.
///
///     auto loader = source | class_balanced(label, 7) | shard(rank, world_size) | batch(256);
inline constexpr detail::class_balanced_fn class_balanced{};

}  // namespace penstock::inline v0_1

// ---- penstock/order/detail/epoch_tables.hpp

namespace penstock::inline v0_1::detail {

/// The tables of an order that has one for each epoch: those that some binding still has, and the one made
/// last in any case. Copies share them; a mutex guards them, and making one holds it.
template <class Table>
class epoch_tables {
 public:
  /// The table of an epoch, by `make()` where it is not there.
  template <class Make>
  [[nodiscard]] std::shared_ptr<const Table> get(std::uint64_t epoch, const Make& make) const {
    const std::lock_guard lock(known_->guard);
    std::erase_if(known_->entries, [](const auto& one) { return one.made.expired(); });
    for (const auto& one : known_->entries) {
      if (one.epoch != epoch) continue;
      if (std::shared_ptr<const Table> there = one.made.lock()) return there;
    }
    known_->last.reset();  // before the next one is made: there need not be memory for both
    known_->last = std::shared_ptr<const Table>(new const Table(make()));
    known_->entries.push_back({epoch, known_->last});
    return known_->last;
  }

 private:
  struct entry {
    std::uint64_t epoch;
    std::weak_ptr<const Table> made;
  };
  struct known {
    std::mutex guard;
    std::vector<entry> entries;
    std::shared_ptr<const Table> last;
  };
  std::shared_ptr<known> known_{new known()};
};

}  // namespace penstock::inline v0_1::detail

// ---- penstock/order/detail/torch_randperm.hpp

namespace penstock::inline v0_1::detail {

/// The Mersenne Twister MT19937 (Matsumoto and Nishimura, ACM TOMACS 8, 1998), seeded as its authors do. It
/// stands here since <random> would cost every program that includes an order.
template <class = void>
class basic_mersenne_twister {
 public:
  explicit basic_mersenne_twister(std::uint32_t seed) noexcept : state_{} {
    state_[0] = seed;
    for (std::size_t i = 1; i < length; ++i) {
      const std::uint32_t before = state_[i - 1];
      state_[i] = 1812433253u * (before ^ (before >> 30)) + static_cast<std::uint32_t>(i);
    }
  }

  [[nodiscard]] std::uint32_t next() noexcept {
    if (used_ == length) twist();
    std::uint32_t y = state_[used_++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
  }

 private:
  static constexpr std::size_t length = 624, middle = 397;

  void twist() noexcept {
    for (std::size_t i = 0; i < length; ++i) {
      const std::uint32_t joined =
          (state_[i] & 0x80000000u) | (state_[i + 1 == length ? 0 : i + 1] & 0x7fffffffu);
      const std::size_t other = i < length - middle ? i + middle : i + middle - length;
      state_[i] = state_[other] ^ (joined >> 1) ^ ((joined & 1u) * 0x9908b0dfu);
    }
    used_ = 0;
  }

  std::array<std::uint32_t, length> state_;
  std::size_t used_ = length;
};
using mersenne_twister = basic_mersenne_twister<>;

/// From this size on PyTorch draws 64 bits for each element, and fills the table from inside out.
inline constexpr std::uint64_t torch_wide_draws = 0xffffffffu / 20;

/// What PyTorch's `torch.randperm(n)` gives on the CPU with a generator of this seed
/// (`aten/src/ATen/native/TensorFactories.cpp`): the seed's low 32 bits count, and remainders are taken of
/// the draws, with their slight bias. `Word` holds the numbers below n.
template <class Word>
[[nodiscard]] std::vector<Word> torch_randperm(std::uint64_t n, std::uint64_t seed,
                                               std::uint64_t wide_draws_from = torch_wide_draws) {
  std::vector<Word> order(static_cast<std::size_t>(n));
  mersenne_twister draw(static_cast<std::uint32_t>(seed));
  if (n < wide_draws_from) {
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<Word>(i);
    // 32-bit remainders are several times as fast, and n is small enough for them.
    for (std::uint32_t left = static_cast<std::uint32_t>(n), i = 0; left > 1; --left, ++i)
      std::swap(order[i], order[i + draw.next() % left]);
  } else {
    for (std::size_t i = 0; i < order.size(); ++i) {
      const std::uint64_t high = draw.next();
      const auto other = static_cast<std::size_t>((high << 32 | draw.next()) % (i + 1));
      order[i] = order[other];
      order[other] = static_cast<Word>(i);
    }
  }
  return order;
}

}  // namespace penstock::inline v0_1::detail

// ---- penstock/order/distributed_sampler.hpp

namespace penstock::inline v0_1 {

/// Options of `distributed_sampler`, with the names and defaults that PyTorch gives them.
struct distributed_sampler_options {
  std::uint64_t num_replicas = 0;  ///< ranks of the run in PyTorch; must be given, 1 to 2^24
  bool shuffle = true;             ///< else the samples come in the source's order
  std::uint64_t seed = 0;          ///< only the low 32 bits of seed + epoch count
  bool drop_last = false;          ///< leave out what does not divide by num_replicas, else repeat the first
  std::uint64_t epoch = 0;         ///< what `set_epoch` would get for epoch 0 of the run here
};

/// The order of `distributed_sampler`: the samples of all ranks, rank r's at the positions r, r +
/// num_replicas and so on, which are its lane.
///
/// Copies share the tables that are in use and the one made last; a mutex guards them, and building one holds
/// it. What `bind` returns is immutable and needs no lock.
template <class = void>
class basic_distributed_sampler_order {
  /// A permutation of one epoch; one of the two is filled.
  struct table {
    std::vector<std::uint32_t> narrow;
    std::vector<std::uint64_t> wide;

    [[nodiscard]] std::uint64_t operator[](std::uint64_t i) const noexcept {
      const auto place = static_cast<std::size_t>(i);
      return wide.empty() ? narrow[place] : wide[place];
    }
  };
  using shared_table = std::shared_ptr<const table>;

 public:
  /// Samples from which an entry of a table takes 8 bytes instead of 4.
  static constexpr std::uint64_t most_narrow = std::uint64_t{1} << 32;

  class bound {
   public:
    bound() = default;
    [[nodiscard]] position operator()(std::uint64_t index) const noexcept {
      if (index >= samples_) [[unlikely]]
        index %= samples_;  // padding begins again at the first
      return {epoch_, table_ == nullptr ? index : (*table_)[index]};
    }

   private:
    friend class basic_distributed_sampler_order;
    bound(std::uint64_t epoch, std::uint64_t samples, shared_table made) noexcept
        : epoch_(epoch), samples_(samples), table_(made.get()), owner_(std::move(made)) {}

    std::uint64_t epoch_ = 0, samples_ = 0;
    const table* table_ = nullptr;
    shared_table owner_;
  };

  basic_distributed_sampler_order(const order_input& in, const distributed_sampler_options& options,
                                  std::uint64_t narrow_up_to = most_narrow)
      : samples_(in.size), narrow_up_to_(narrow_up_to), options_(options) {
    const auto refuse = [](std::initializer_list<detail::piece> why) {
      throw error(errc::argument, why).in_stage("distributed_sampler");
    };
    const std::uint64_t ranks = options_.num_replicas;
    if (ranks == 0) {
      refuse(
          {"num_replicas is not given; write distributed_sampler({.num_replicas = n}) with the number of "
           "ranks that PyTorch had"});
    }
    if (ranks > most_replicas) refuse({"num_replicas ", ranks, " is not in [1, 2^24]"});
    if (samples_ >= std::uint64_t{1} << 63)
      refuse({"an order without end cannot be sampled; write distributed_sampler before repeat()"});
    size_ = samples_ / ranks * ranks;
    if (size_ != samples_ && !options_.drop_last) size_ += ranks;
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] std::uint64_t lanes() const noexcept { return options_.num_replicas; }
  [[nodiscard]] order_input output() const { return {size_, nullptr}; }
  [[nodiscard]] bound bind(std::uint64_t epoch) const {
    return {epoch, samples_, options_.shuffle ? shuffled(epoch) : nullptr};
  }

  /// Where a sample stands first. With `shuffle` it looks through the table of the epoch.
  [[nodiscard]] std::optional<position> position_of(position upstream) const {
    if (upstream.index >= samples_) return std::nullopt;
    std::uint64_t found = upstream.index;
    if (options_.shuffle) {
      const shared_table order = shuffled(upstream.epoch);
      found = 0;
      while ((*order)[found] != upstream.index) ++found;
    }
    if (found >= size_) return std::nullopt;
    return position{upstream.epoch, found};
  }

 private:
  static constexpr std::uint64_t most_replicas = std::uint64_t{1} << 24;

  [[nodiscard]] shared_table shuffled(std::uint64_t epoch) const {
    return tables_.get(epoch, [&] {
      const std::uint64_t seed = options_.seed + options_.epoch + epoch;
      table made;
      if (samples_ <= narrow_up_to_)
        made.narrow = detail::torch_randperm<std::uint32_t>(samples_, seed);
      else
        made.wide = detail::torch_randperm<std::uint64_t>(samples_, seed);
      return made;
    });
  }

  std::uint64_t samples_, size_ = 0, narrow_up_to_;
  distributed_sampler_options options_;
  detail::epoch_tables<table> tables_;
};
using distributed_sampler_order = basic_distributed_sampler_order<>;

/// The stage `distributed_sampler({...})`.
template <class = void>
struct basic_distributed_sampler_stage {
  using penstock_part = order_tag;
  static constexpr std::string_view stage_name = "distributed_sampler";

  [[nodiscard]] distributed_sampler_order make(const order_input& in) const { return {in, options}; }
  [[nodiscard]] std::string describe() const {
    return detail::text({"distributed_sampler(", options.num_replicas, " replicas",
                         options.shuffle ? ", seed " + std::to_string(options.seed) : ", in order",
                         options.drop_last ? ", drop_last" : "",
                         options.epoch == 0 ? "" : ", epochs from " + std::to_string(options.epoch), ")"});
  }
  template <class Hash>
  void fingerprint(Hash& h) const {
    h.add(stage_name, options.num_replicas, std::uint64_t{options.shuffle}, options.seed + options.epoch,
          std::uint64_t{options.drop_last});
  }

  distributed_sampler_options options;
};
using distributed_sampler_stage = basic_distributed_sampler_stage<>;

namespace detail {
struct distributed_sampler_fn {
  [[nodiscard]] constexpr distributed_sampler_stage operator()(
      const distributed_sampler_options& options) const noexcept {
    return {options};
  }
};
}  // namespace detail

/// The order of PyTorch's `DistributedSampler`, sample for sample, so that a run that began there goes on
/// here: `distributed_sampler({.num_replicas = W, .seed = s})`, then `shard(rank, W)` for the rank.
///
/// `batch(b)` behind it gives rank r the batches of a `DataLoader` with that sampler and `batch_size=b`;
/// `tail::drop` is the loader's `drop_last`, and the default, `tail::keep`, its default. `tail::pad` shares
/// the last step out in another way. Epoch e is the one after `set_epoch(epoch + e)`. Where ranks are left
/// over, the first samples come once more, as many as are missing, or with `.drop_last` the last ones stay
/// out. Where the run stands in PyTorch is a state: `auto at = plan.open().state(); at.epoch = e;
/// at.step = batches;` and `plan.open(at)`.
/// A sequencer; keeps every guarantee: the samples of a global step stay the same on another number of ranks,
/// if num_replicas and the global batch do. One process alone gets rank 0's samples of each step first, then
/// rank 1's.
/// Cost: unlike `shuffle` it has a table, 4 bytes a sample (8 above 2^32 samples) for each epoch in use: one,
/// two while one epoch goes over into the next. The thread of the loop makes it when an epoch begins: 14 ms
/// for 1.3 million samples, 2.7 s for 100 million (GCC 12, -O2). A sample costs one look-up. `position_of`
/// with `.shuffle` looks through the table.
/// Throws `error(errc::argument)` where num_replicas is missing or above 2^24, and behind `repeat()` without
/// end. Free for all threads.
/// Source of the order: `torch/utils/data/distributed.py`, and `randperm` on the CPU; from 214,748,364
/// samples on that of versions that draw 64 bits there.
///
///     auto loader = source | distributed_sampler({.num_replicas = 8, .seed = 7}) | shard(rank, 8) | batch(32);
inline constexpr detail::distributed_sampler_fn distributed_sampler{};

}  // namespace penstock::inline v0_1

// ---- penstock/order/fold.hpp

namespace penstock::inline v0_1 {

/// The order of `fold(i, folds, seed)` and of its `rest()`: of each `folds` neighbours one, or all others;
/// the same ones in every epoch, in the order they had.
template <class = void>
class basic_fold_order {
 public:
  struct bound {
    std::uint64_t epoch = 0;
    detail::divider by;  // positions kept of each group
    std::uint64_t folds = 1, number = 0, key = 0;
    bool chosen = true;

    /// Which of a group's positions is this fold's.
    [[nodiscard]] std::uint64_t own(std::uint64_t group) const noexcept {
      return permutation(folds, mix64(key ^ group))(number);
    }
    [[nodiscard]] position operator()(std::uint64_t index) const noexcept {
      if (chosen) return {epoch, index * folds + own(index)};
      const auto [group, among] = by(index);
      return {epoch, group * folds + among + (among >= own(group) ? 1 : 0)};
    }
  };

  basic_fold_order(const order_input& in, std::uint64_t number, std::uint64_t folds, std::uint64_t seed,
                   bool rest)
      : upstream_(in.size) {
    detail::check_finite(in, "fold");
    made_ = {0, detail::divider(folds - 1), folds, number, mix64(seed ^ 0x666f6c64u), !rest};
    size_ = kept_before(upstream_);
    starts_ = detail::starts_behind(in.starts, [this](std::uint64_t p) { return kept_before(p); });
    places_ = detail::places_behind(in.places, made_);
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] order_input output() const { return {size_, starts_, places_}; }
  [[nodiscard]] bound bind(std::uint64_t epoch) const noexcept {
    bound made = made_;
    made.epoch = epoch;
    return made;
  }
  [[nodiscard]] position_range reach(position_range after) const noexcept {
    return {bind(after.first.epoch)(after.first.index), bind(after.last.epoch)(after.last.index)};
  }
  [[nodiscard]] std::optional<position> position_of(position upstream) const noexcept {
    if (upstream.index >= upstream_) return std::nullopt;
    const bool own = made_.own(upstream.index / made_.folds) == upstream.index % made_.folds;
    if (own != made_.chosen) return std::nullopt;
    return position{upstream.epoch, kept_before(upstream.index)};
  }

 private:
  [[nodiscard]] std::uint64_t kept_before(std::uint64_t p) const noexcept {
    const std::uint64_t group = p / made_.folds, among = p % made_.folds;
    const std::uint64_t chosen = group + (among != 0 && made_.own(group) < among ? 1 : 0);
    return made_.chosen ? chosen : p - chosen;
  }

  bound made_;
  std::uint64_t upstream_;
  std::uint64_t size_ = 0;
  std::shared_ptr<const std::vector<std::uint64_t>> starts_;
  std::shared_ptr<const source_places> places_;
};
using fold_order = basic_fold_order<>;

/// The stage `fold(i, folds, seed)`, and the one of its `rest()`.
template <class = void>
class basic_fold_stage {
 public:
  using penstock_part = order_tag;
  static constexpr std::string_view stage_name = "fold";

  basic_fold_stage(std::uint64_t number, std::uint64_t folds, std::uint64_t seed, bool rest = false)
      : number_(number), folds_(folds), seed_(seed), rest_(rest) {
    if (folds < 2 || folds > most_folds || number >= folds) {
      throw error(errc::argument, {"there is no fold ", number, " of ", folds,
                                   "; write fold(i, folds, seed) with i below folds, and 2 to 2^32 folds"})
          .in_stage(stage_name);
    }
  }

  /// The positions that this one leaves out: those of all other folds.
  [[nodiscard]] basic_fold_stage rest() const { return {number_, folds_, seed_, !rest_}; }

  [[nodiscard]] fold_order make(const order_input& in) const { return {in, number_, folds_, seed_, rest_}; }
  [[nodiscard]] std::string describe() const {
    return detail::text({"fold(", number_, " of ", folds_, ", seed ", seed_, rest_ ? ").rest()" : ")"});
  }
  template <class Hash>
  void fingerprint(Hash& h) const {
    h.add(stage_name, number_, folds_, seed_, rest_);
  }

 private:
  static constexpr std::uint64_t most_folds = std::uint64_t{1} << 32;

  std::uint64_t number_, folds_, seed_;
  bool rest_;
};
using fold_stage = basic_fold_stage<>;

namespace detail {
struct fold_fn {
  [[nodiscard]] fold_stage operator()(std::uint64_t number, std::uint64_t folds, std::uint64_t seed) const {
    return {number, folds, seed};
  }
};
}  // namespace detail

/// Keeps one of `folds` parts of equal size, for cross-validation: `fold(i, folds, seed)` for i from 0 to
/// folds - 1 are disjoint and have every position once; `.rest()` is all but part i. The same positions in
/// every epoch, in the order they had.
///
/// Of each `folds` neighbours every part has one, and the seed says which; parts differ by one at most.
/// Shards keep their borders. Samples that belong together fall apart.
/// A sequencer; keeps every guarantee; holds nothing; some 2 ns for each of up to 120 folds a position, and
/// 50 ns for more (docs/order.md). Throws `error(errc::argument)` for a fold that is not there, fewer than
/// two or more than 2^32 of them, and behind `repeat()` without end. Free for all threads.
///
///     for (std::uint64_t i = 0; i < 5; ++i) {
///       auto train = source | fold(i, 5, 7).rest() | shuffle(1);
///       auto valid = source | fold(i, 5, 7);
///     }
inline constexpr detail::fold_fn fold{};

}  // namespace penstock::inline v0_1

// ---- penstock/order/detail/numpy_generator.hpp

namespace penstock::inline v0_1::detail {

/// What `numpy.random.default_rng(seed)` gives: PCG64 (XSL-RR 128/64; O'Neill, HMC-CS-2014-0905), seeded by
/// numpy's SeedSequence (`numpy/random/bit_generator.pyx`).
template <class = void>
class basic_numpy_generator {
 public:
  explicit basic_numpy_generator(std::uint64_t seed) noexcept {
    const std::array<std::uint64_t, 4> words = spread(seed);
    const wide start{words[0], words[1]};
    increment_ = {words[2] << 1 | words[3] >> 63, words[3] << 1 | 1};
    step();
    state_ = sum(state_, start);
    step();
  }

  [[nodiscard]] std::uint64_t next64() noexcept {
    step();
    const std::uint64_t joined = state_.high ^ state_.low;
    const unsigned turn = static_cast<unsigned>(state_.high >> 58);
    return joined >> turn | joined << ((64 - turn) & 63u);
  }

  /// Half of a 64-bit draw; the other half is kept for the next call, whatever is drawn in between.
  [[nodiscard]] std::uint32_t next32() noexcept {
    if (std::exchange(has_half_, !has_half_)) return half_;
    const std::uint64_t both = next64();
    half_ = static_cast<std::uint32_t>(both >> 32);
    return static_cast<std::uint32_t>(both);
  }

  /// In [0, 1).
  [[nodiscard]] double next_double() noexcept { return static_cast<double>(next64() >> 11) * 0x1p-53; }

  /// In [0, most], by masks, as `shuffle` and `permutation` draw.
  [[nodiscard]] std::uint64_t masked(std::uint64_t most) noexcept {
    if (most == 0) return 0;
    std::uint64_t mask = most;
    for (unsigned shift = 1; shift < 64; shift *= 2) mask |= mask >> shift;
    while (true) {
      const std::uint64_t drawn = (most > 0xffffffffu ? next64() : next32()) & mask;
      if (drawn <= most) return drawn;
    }
  }

  /// `integers(low, high)`, in [low, high), high - low below 2^32; by Lemire's multiplication.
  [[nodiscard]] std::uint64_t integer(std::uint64_t low, std::uint64_t high) noexcept {
    const std::uint64_t count = high - low;
    if (count <= 1) return low;
    std::uint64_t product = next32() * count;
    if ((product & 0xffffffffu) < count) {
      const std::uint64_t uneven = (0x100000000u - count) % count;
      while ((product & 0xffffffffu) < uneven) product = next32() * count;
    }
    return low + (product >> 32);
  }

  /// `shuffle` of `count` elements from `first` on.
  template <class Iterator>
  void shuffle(Iterator first, std::uint64_t count) noexcept {
    using distance = decltype(first - first);
    for (std::uint64_t i = count; i-- > 1;)
      std::swap(first[static_cast<distance>(i)], first[static_cast<distance>(masked(i))]);
  }

 private:
  struct wide {
    std::uint64_t high = 0, low = 0;
  };

  [[nodiscard]] static wide sum(wide a, wide b) noexcept {
    const std::uint64_t low = a.low + b.low;
    return {a.high + b.high + (low < a.low ? 1u : 0u), low};
  }

  void step() noexcept {
    constexpr std::uint64_t high = 2549297995355413924u, low = 4865540595714422341u;
    const wide product{multiply_high(state_.low, low) + state_.high * low + state_.low * high,
                       state_.low * low};
    state_ = sum(product, increment_);
  }

  [[nodiscard]] static std::array<std::uint64_t, 4> spread(std::uint64_t seed) noexcept {
    std::uint32_t constant = 0x43b0d7e5u;
    const auto hash = [&constant](std::uint32_t v) {
      v ^= constant;
      constant *= 0x931e8875u;
      v *= constant;
      return v ^ v >> 16;
    };
    std::array<std::uint32_t, 4> pool{static_cast<std::uint32_t>(seed),
                                      static_cast<std::uint32_t>(seed >> 32), 0, 0};
    for (std::uint32_t& word : pool) word = hash(word);
    for (std::size_t s = 0; s < 4; ++s) {
      for (std::size_t d = 0; d < 4; ++d) {
        if (s == d) continue;
        const std::uint32_t mixed = 0xca01f9ddu * pool[d] - 0x4973f715u * hash(pool[s]);
        pool[d] = mixed ^ mixed >> 16;
      }
    }
    std::array<std::uint64_t, 4> words{};
    std::uint32_t key = 0x8b51f9ddu;
    for (std::size_t i = 0; i < 8; ++i) {
      std::uint32_t v = pool[i % 4] ^ key;
      key *= 0x58f38dedu;
      v *= key;
      v ^= v >> 16;
      words[i / 2] |= static_cast<std::uint64_t>(v) << (i % 2 * 32);
    }
    return words;
  }

  wide state_, increment_;
  std::uint32_t half_ = 0;
  bool has_half_ = false;
};
using numpy_generator = basic_numpy_generator<>;

}  // namespace penstock::inline v0_1::detail

// ---- penstock/order/detail/mosaic_shuffle.hpp

namespace penstock::inline v0_1 {

/// The shuffles of MosaicML Streaming, by its names.
enum class mosaic_algorithm : std::uint8_t {
  py1e,   ///< shards in another order, samples strewn around their shard's place; Streaming's default
  py1br,  ///< shards in another order, samples within blocks of about the block size
  py1s,   ///< shards in another order, samples within their shard
  py2s,   ///< as py1s, and shuffled once more before canonical nodes are cut
  naive,  ///< all samples
};

namespace detail {

/// One epoch's shuffle, by the rules of `streaming/base/shuffle/` of MosaicML Streaming: what its functions
/// return for shards that begin at `starts`, as sample ids at positions.
template <class = void>
class basic_mosaic_shuffle {
 public:
  using ids = std::vector<std::uint32_t>;

  basic_mosaic_shuffle(const std::vector<std::uint64_t>& starts, std::uint64_t nodes, std::uint64_t seed,
                       std::uint64_t epoch, std::uint64_t block)
      : starts_(starts), nodes_(nodes), block_(block), fixed_(seed), draw_(seed + epoch) {}

  [[nodiscard]] ids make(mosaic_algorithm algorithm) {
    if (algorithm == mosaic_algorithm::naive) {
      ids all;
      append(all, {0, starts_.back()});
      draw_.shuffle(all.begin(), all.size());
      return all;
    }
    if (algorithm == mosaic_algorithm::py2s) return twice();
    std::vector<span> spans = shards();
    fixed_.shuffle(spans.begin(), spans.size());
    std::vector<std::vector<span>> parts = divided(spans);
    for (auto& part : parts) draw_.shuffle(part.begin(), part.size());
    ids all;
    all.reserve(static_cast<std::size_t>(starts_.back()));
    if (algorithm == mosaic_algorithm::py1br) {
      in_blocks(parts, all);
      return all;
    }
    for (const auto& part : parts) {
      const std::size_t begin = all.size();
      for (const span& one : part) shuffle_last(all, append(all, one));
      if (algorithm == mosaic_algorithm::py1e) strew(part, all, begin);
    }
    return all;
  }

 private:
  /// Samples [first, last), or places.
  struct span {
    std::uint64_t first, last;
    [[nodiscard]] std::uint64_t size() const noexcept { return last - first; }
  };

  [[nodiscard]] std::vector<span> shards() const {
    std::vector<span> all;
    for (std::size_t i = 1; i < starts_.size(); ++i) all.push_back({starts_[i - 1], starts_[i]});
    return all;
  }

  static std::uint64_t append(ids& all, span one) {
    for (std::uint64_t id = one.first; id < one.last; ++id) all.push_back(static_cast<std::uint32_t>(id));
    return one.size();
  }
  void shuffle_last(ids& all, std::uint64_t count) {
    draw_.shuffle(all.end() - static_cast<std::ptrdiff_t>(count), count);
  }

  /// The spans of each canonical node; one that crosses a border is cut there.
  [[nodiscard]] std::vector<std::vector<span>> divided(std::vector<span> spans) const {
    std::vector<std::vector<span>> parts(static_cast<std::size_t>(nodes_));
    std::size_t next = 0;
    std::uint64_t before = 0;
    for (std::uint64_t node = 0; node < nodes_; ++node) {
      const std::uint64_t end = starts_.back() * (node + 1) / nodes_;
      auto& part = parts[static_cast<std::size_t>(node)];
      for (; next < spans.size() && before + spans[next].size() <= end; ++next) {
        part.push_back(spans[next]);
        before += spans[next].size();
      }
      if (next < spans.size() && before < end) {
        const std::uint64_t border = spans[next].first + (end - before);
        part.push_back({spans[next].first, border});
        spans[next].first = border;
        before = end;
      }
    }
    return parts;
  }

  [[nodiscard]] ids twice() {
    std::vector<span> order = shards();
    fixed_.shuffle(order.begin(), order.size());
    ids first;
    first.reserve(static_cast<std::size_t>(starts_.back()));
    std::vector<span> places;
    for (const span& shard : order) {
      const std::uint64_t begin = first.size(), count = append(first, shard);
      fixed_.shuffle(first.begin() + static_cast<std::ptrdiff_t>(begin), count);
      places.push_back({begin, begin + count});
    }
    ids all;
    all.reserve(first.size());
    for (auto& part : divided(places)) {
      draw_.shuffle(part.begin(), part.size());
      for (const span& one : part) {
        all.insert(all.end(), first.begin() + static_cast<std::ptrdiff_t>(one.first),
                   first.begin() + static_cast<std::ptrdiff_t>(one.last));
        shuffle_last(all, one.size());
      }
    }
    return all;
  }

  [[nodiscard]] std::uint64_t block_draw() { return draw_.integer(block_ * 3 / 4, block_ * 5 / 4); }

  void in_blocks(const std::vector<std::vector<span>>& parts, ids& all) {
    std::vector<std::uint64_t> stagger(parts.size());
    for (auto& one : stagger) one = draw_.integer(0, block_ * 3 / 4);
    std::vector<span> blocks;
    for (std::size_t node = 0; node < parts.size(); ++node) {
      const std::uint64_t begin = all.size(), back = stagger[node];
      for (const span& one : parts[node]) append(all, one);
      blocks.clear();
      // Literally as there: the first two blocks overlap, and the end of a node may stay as it is.
      for (std::uint64_t end = begin; end < all.size();) {
        const std::uint64_t size = block_draw();
        const std::uint64_t first = end >= begin + back ? end - back : begin;
        const std::uint64_t last = std::min<std::uint64_t>(end + size - back, all.size());
        blocks.push_back({first, last});
        end += last - first;
      }
      for (const span& one : blocks)
        draw_.shuffle(all.begin() + static_cast<std::ptrdiff_t>(one.first), one.size());
    }
  }

  /// Moves each sample of a node by a random distance, and sorts.
  void strew(const std::vector<span>& part, ids& all, std::size_t begin) {
    struct placed {
      double at;
      std::uint32_t id;
    };
    const auto count = static_cast<double>(all.size() - begin);
    std::vector<placed> places;
    places.reserve(all.size() - begin);
    for (const span& one : part) {
      const auto offset = static_cast<double>(places.size()), size = static_cast<double>(one.size());
      const double most = std::max(0.0, (static_cast<double>(block_draw()) - size) / 2);
      const double low = std::max(-most, -offset), range = std::min(most, count - offset - size) - low;
      for (std::uint64_t i = 0; i < one.size(); ++i) {
        const double shift = low + range * draw_.next_double();
        places.push_back({static_cast<double>(places.size()) + shift, all[begin + places.size()]});
      }
    }
    std::sort(places.begin(), places.end(), [](const placed& a, const placed& b) { return a.at < b.at; });
    for (std::size_t i = 0; i < places.size(); ++i) all[begin + i] = places[i].id;
  }

  const std::vector<std::uint64_t>& starts_;
  std::uint64_t nodes_, block_;
  numpy_generator fixed_, draw_;
};
using mosaic_shuffle = basic_mosaic_shuffle<>;

}  // namespace detail

}  // namespace penstock::inline v0_1

// ---- penstock/order/mosaic.hpp

namespace penstock::inline v0_1 {

/// Options of `mosaic`, with the names and defaults of MosaicML Streaming where it has one.
struct mosaic_options {
  std::uint64_t num_canonical_nodes = 0;  ///< must be given: nodes, or 64 times as many with py1s and py2s
  std::uint64_t physical_nodes = 1;       ///< machines of the run in Streaming; see `mosaic` for a change
  std::uint64_t ranks_per_node = 0;       ///< must be given: ranks on each of them
  bool shuffle = false;
  mosaic_algorithm shuffle_algo = mosaic_algorithm::py1e;
  std::uint64_t shuffle_seed = 9176;
  std::uint64_t shuffle_block_size = 0;  ///< 0: 4,000,000 / num_canonical_nodes, at least 2^18
  std::uint64_t epoch = 0;               ///< Streaming's epoch that is epoch 0 here
};

namespace detail {

/// Streaming's partition of samples over ranks (`streaming/base/partition/orig.py`), as arithmetic: which one
/// stands at a position, where the positions of all ranks are interleaved.
template <class = void>
class basic_mosaic_partition {
 public:
  basic_mosaic_partition() = default;
  basic_mosaic_partition(std::uint64_t samples, const mosaic_options& options)
      : samples_(samples),
        canonical_(options.num_canonical_nodes),
        physical_(options.physical_nodes),
        ranks_(options.ranks_per_node) {
    each_ = (samples_ + canonical_ - 1) / canonical_;
    ratio_ = canonical_ < physical_ ? physical_ / canonical_ : 1;
    padding_ = (ratio_ - each_ % ratio_) % ratio_;
    tiled_ = samples_ < canonical_ || (samples_ == canonical_ && canonical_ < physical_);
    on_node_ = canonical_ * (each_ + padding_) / physical_;
    missing_ = (ranks_ - on_node_ % ranks_) % ranks_;
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return (on_node_ + missing_) * physical_; }
  /// Whether there are so few samples that Streaming cannot pad a canonical node with its own.
  [[nodiscard]] bool too_few() const noexcept {
    return !tiled_ && padding_ != 0 && each_ + 1 < ratio_ + padding_;
  }

  [[nodiscard]] std::uint64_t operator()(std::uint64_t position) const noexcept {
    const std::uint64_t world = physical_ * ranks_, rank = position % world;
    std::uint64_t on_node = position / world * ranks_ + rank % ranks_;
    if (on_node >= on_node_) {
      const std::uint64_t over = on_node - on_node_;
      on_node = ranks_ + missing_ <= on_node_ + 1 ? on_node_ + 1 - ranks_ - missing_ + over : over % on_node_;
    }
    const std::uint64_t strewn = rank / ranks_ + on_node * physical_;
    return on_canonical(strewn % canonical_, strewn / canonical_);
  }

 private:
  [[nodiscard]] std::uint64_t on_canonical(std::uint64_t node, std::uint64_t place) const noexcept {
    if (tiled_) return (node * (each_ + padding_) + place) % samples_;
    if (place >= each_) place = place - ratio_ + 1 - padding_;
    const std::uint64_t first = node * samples_ / canonical_, last = (node + 1) * samples_ / canonical_;
    return first + place - (place + 1 == each_ && last - first < each_ ? 1 : 0);
  }

  std::uint64_t samples_ = 0, canonical_ = 1, physical_ = 1, ranks_ = 1;
  std::uint64_t each_ = 0, ratio_ = 1, padding_ = 0, on_node_ = 0, missing_ = 0;
  bool tiled_ = false;
};
using mosaic_partition = basic_mosaic_partition<>;

}  // namespace detail

/// The order of `mosaic`: the samples of all ranks, rank r's at the positions r, r + ranks and so on, which
/// are its lane. Copies share the tables of the epochs in use; what `bind` returns needs no lock.
template <class = void>
class basic_mosaic_order {
  using table = detail::mosaic_shuffle::ids;

 public:
  class bound {
   public:
    bound() = default;
    [[nodiscard]] position operator()(std::uint64_t index) const noexcept {
      const std::uint64_t at = partition_(index);
      return {epoch_, table_ == nullptr ? at : (*table_)[static_cast<std::size_t>(at)]};
    }

   private:
    friend class basic_mosaic_order;
    bound(std::uint64_t epoch, const detail::mosaic_partition& part, std::shared_ptr<const table> made)
        : epoch_(epoch), partition_(part), table_(made.get()), owner_(std::move(made)) {}

    std::uint64_t epoch_ = 0;
    detail::mosaic_partition partition_;
    const table* table_ = nullptr;
    std::shared_ptr<const table> owner_;
  };

  basic_mosaic_order(order_input in, const mosaic_options& options)
      : samples_(in.size), options_(checked(in.size, options)), partition_(in.size, options_) {
    if (samples_ != 0 && partition_.too_few()) {
      refuse({samples_, " samples are too few for ", options_.num_canonical_nodes, " canonical and ",
              options_.physical_nodes, " physical nodes; give fewer nodes"});
    }
    if (in.starts)
      starts_ = std::move(in.starts);
    else
      starts_ = std::shared_ptr<const std::vector<std::uint64_t>>(
          new const std::vector<std::uint64_t>(std::vector<std::uint64_t>{0, samples_}));
    if (starts_->empty() || starts_->front() != 0 || starts_->back() != samples_)
      refuse({"shard boundaries do not run from 0 to ", samples_});
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return partition_.size(); }
  [[nodiscard]] std::uint64_t lanes() const noexcept {
    return options_.physical_nodes * options_.ranks_per_node;
  }
  [[nodiscard]] order_input output() const { return {size(), nullptr}; }
  [[nodiscard]] bound bind(std::uint64_t epoch) const {
    return {epoch, partition_, options_.shuffle ? shuffled(epoch) : nullptr};
  }
  /// Where a sample stands first; looks through the epoch.
  [[nodiscard]] std::optional<position> position_of(position upstream) const {
    const bound all = bind(upstream.epoch);
    for (std::uint64_t at = 0; at < size(); ++at)
      if (all(at).index == upstream.index) return position{upstream.epoch, at};
    return std::nullopt;
  }

 private:
  static constexpr std::uint64_t most_ranks = std::uint64_t{1} << 24, most_samples = std::uint64_t{1} << 32;

  [[noreturn]] static void refuse(std::initializer_list<detail::piece> why) {
    throw error(errc::argument, why).in_stage("mosaic");
  }

  [[nodiscard]] static mosaic_options checked(std::uint64_t samples, mosaic_options o) {
    if (o.num_canonical_nodes == 0 || o.ranks_per_node == 0) {
      refuse({o.ranks_per_node == 0 ? "ranks_per_node" : "num_canonical_nodes",
              " is not given; write mosaic({.num_canonical_nodes = c, .physical_nodes = p, "
              ".ranks_per_node = r}) with the numbers that Streaming had"});
    }
    if (o.num_canonical_nodes > most_ranks) refuse({"num_canonical_nodes is not in [1, 2^24]"});
    if (o.physical_nodes == 0 || o.physical_nodes > most_ranks || o.ranks_per_node > most_ranks ||
        o.physical_nodes * o.ranks_per_node > most_ranks)
      refuse({"physical_nodes * ranks_per_node is not in [1, 2^24]"});
    if (o.num_canonical_nodes % o.physical_nodes != 0 && o.physical_nodes % o.num_canonical_nodes != 0) {
      refuse({"neither of ", o.num_canonical_nodes, " canonical and ", o.physical_nodes,
              " physical nodes divides the other; give the physical nodes with which the run began"});
    }
    if (samples > most_samples) {
      throw error(errc::limit, {"mosaic orders at most 2^32 samples, not ", samples}).in_stage("mosaic");
    }
    if (o.shuffle_block_size == 0)
      o.shuffle_block_size = std::max<std::uint64_t>(4'000'000 / o.num_canonical_nodes, 1u << 18);
    if (o.shuffle_block_size < 2 || o.shuffle_block_size > most_samples)
      refuse({"shuffle_block_size ", o.shuffle_block_size, " is not in [2, 2^32]"});
    if (o.shuffle && o.shuffle_algo == mosaic_algorithm::py1e && samples != 0 &&
        samples < o.num_canonical_nodes) {
      refuse({"py1e needs a sample for each canonical node, and ", samples, " are fewer than ",
              o.num_canonical_nodes, "; give fewer canonical nodes"});
    }
    return o;
  }

  [[nodiscard]] std::shared_ptr<const table> shuffled(std::uint64_t epoch) const {
    return tables_.get(epoch, [&] {
      return detail::mosaic_shuffle(*starts_, options_.num_canonical_nodes, options_.shuffle_seed,
                                    options_.epoch + epoch, options_.shuffle_block_size)
          .make(options_.shuffle_algo);
    });
  }

  std::uint64_t samples_;
  mosaic_options options_;
  detail::mosaic_partition partition_;
  std::shared_ptr<const std::vector<std::uint64_t>> starts_;
  detail::epoch_tables<table> tables_;
};
using mosaic_order = basic_mosaic_order<>;

/// The name of a shuffle, as Streaming writes it.
[[nodiscard]] constexpr std::string_view to_string(mosaic_algorithm algorithm) noexcept {
  constexpr std::string_view names[] = {"py1e", "py1br", "py1s", "py2s", "naive"};
  return names[static_cast<std::size_t>(algorithm)];
}

/// The stage `mosaic({...})`.
template <class = void>
struct basic_mosaic_stage {
  using penstock_part = order_tag;
  static constexpr std::string_view stage_name = "mosaic";

  [[nodiscard]] mosaic_order make(order_input in) const { return {std::move(in), options}; }
  [[nodiscard]] std::string describe() const {
    return detail::text({"mosaic(", options.num_canonical_nodes, " canonical nodes, ", options.physical_nodes,
                         " x ", options.ranks_per_node, " ranks, ",
                         options.shuffle ? to_string(options.shuffle_algo) : std::string_view("in order"),
                         options.shuffle ? ", seed " + std::to_string(options.shuffle_seed) : "",
                         options.epoch == 0 ? "" : ", epochs from " + std::to_string(options.epoch), ")"});
  }
  template <class Hash>
  void fingerprint(Hash& h) const {
    h.add(stage_name, options.num_canonical_nodes, options.physical_nodes, options.ranks_per_node,
          std::uint64_t{options.shuffle}, static_cast<std::uint64_t>(options.shuffle_algo),
          options.shuffle_seed, options.shuffle_block_size, options.epoch);
  }

  mosaic_options options;
};
using mosaic_stage = basic_mosaic_stage<>;

namespace detail {
struct mosaic_fn {
  [[nodiscard]] constexpr mosaic_stage operator()(const mosaic_options& options) const noexcept {
    return {options};
  }
};
}  // namespace detail

/// The order of MosaicML Streaming over the shards of the source, sample for sample, so that a run that began
/// there goes on here: its shuffles `py1e`, `py1br`, `py1s`, `py2s` and `naive`, and its partition over
/// ranks.
///
/// `mosaic({...}) | shard(rank, world) | batch(b)` gives rank r the batches of Streaming's `StreamingDataset`
/// in a `DataLoader`, with any number of workers there; rank is physical node * ranks_per_node + rank on the
/// node. The dataset is one stream, of which an epoch has every sample once: no `epoch_size`, `choose`,
/// `repeat` or `proportion`, and the batching method `random`. Where a rank would have less than another,
/// samples come twice, as there. Where the run stands in Streaming is a state: `auto at =
/// plan.open().state(); at.epoch = e; at.step = sample_in_epoch / (b * world);` and `plan.open(at)`; with
/// less than two samples a rank left, Streaming may repeat other ones at the end.
/// On another number of nodes, as Streaming has it: where it and num_canonical_nodes divide one another, give
/// it as `physical_nodes` (the partition `orig`). Where they do not (the partition `relaxed`), give the nodes
/// of the beginning, `shard` the ranks of now, and keep the global batch: each rank has its samples of every
/// full step. A last step that is not full is divided evenly here, and there as it comes.
/// A sequencer; keeps every guarantee. Shards are those of the source, so it stands right behind it; without
/// shards all samples are one.
/// Cost: with `.shuffle` a table of 4 bytes a sample for each epoch in use (one, two while one epoch goes
/// over into the next), made by the thread of the loop when an epoch begins: of 10 million samples in 1.1 s
/// with py1e, 0.13 to 0.27 s with the others (GCC 12, -O2). Meanwhile py1e takes 16 bytes more for each
/// sample of a canonical node, py2s twice the table. A sample costs some divisions and one look-up.
/// `position_of` looks through the epoch.
/// Throws `error(errc::argument)` where a number is missing or does not go with the others,
/// `error(errc::limit)` above 2^32 samples. Free for all threads.
/// Source of the order: `streaming/base/shuffle` and `streaming/base/partition` of version 0.13, and numpy's
/// `default_rng`.
///
///     auto loader = source | mosaic({.num_canonical_nodes = 2, .physical_nodes = 2, .ranks_per_node = 8,
///                                    .shuffle = true}) | shard(rank, 16) | batch(32);
inline constexpr detail::mosaic_fn mosaic{};

}  // namespace penstock::inline v0_1

// ---- penstock/order/repeat.hpp

namespace penstock::inline v0_1 {

/// The order of `repeat`: several epochs of the stages before it, one after another, as one epoch.
class repeat_order {
 public:
  static constexpr bool changes_epoch = true;
  /// Positions of an order that does not end.
  static constexpr std::uint64_t endless_size = std::uint64_t{1} << 63;

  struct bound {
    std::uint64_t first_epoch = 0;
    detail::divider by;
    [[nodiscard]] constexpr position operator()(std::uint64_t index) const noexcept {
      const auto [quotient, remainder] = by(index);
      return {first_epoch + quotient, remainder};
    }
  };

  /// No `times` means without end; so does a number of times that goes past 2^63 positions.
  repeat_order(order_input in, std::optional<std::uint64_t> times)
      : inner_(in.size), times_(times.value_or(0)), by_(in.size == 0 ? 1 : in.size) {
    if (inner_ == 0) return;
    endless_ = !times || *times > endless_size / inner_;
    size_ = endless_ ? endless_size : inner_ * times_;
    if (in.starts && !endless_ && (in.starts->size() - 1) <= shards_kept / (times_ == 0 ? 1 : times_)) {
      std::shared_ptr<std::vector<std::uint64_t>> all(new std::vector<std::uint64_t>(1, 0));
      for (std::uint64_t time = 0; time < times_; ++time) {
        for (std::size_t i = 1; i < in.starts->size(); ++i) all->push_back(time * inner_ + (*in.starts)[i]);
      }
      starts_ = std::move(all);
    }
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] bool endless() const noexcept { return endless_; }
  [[nodiscard]] order_input output() const { return {size_, starts_}; }
  [[nodiscard]] bound bind(std::uint64_t epoch) const { return {first_epoch(epoch), by_}; }

  [[nodiscard]] position_range reach(position_range after) const {
    if (size_ == 0) return after;
    return {bind(after.first.epoch)(after.first.index), bind(after.last.epoch)(after.last.index)};
  }

  [[nodiscard]] std::optional<position> position_of(position upstream) const noexcept {
    if (size_ == 0 || upstream.index >= inner_) return std::nullopt;
    if (!endless_)
      return position{upstream.epoch / times_, upstream.epoch % times_ * inner_ + upstream.index};
    if (upstream.epoch > (endless_size - 1 - upstream.index) / inner_) return std::nullopt;
    return position{0, upstream.epoch * inner_ + upstream.index};
  }

 private:
  /// Shard boundaries are repeated too, up to this many; beyond, what follows sees one shard.
  static constexpr std::uint64_t shards_kept = std::uint64_t{1} << 20;

  [[nodiscard]] std::uint64_t first_epoch(std::uint64_t epoch) const {
    if (epoch == 0 || size_ == 0) return 0;
    if (endless_) {
      throw error(errc::argument, {"repeat() without end has only epoch 0, not ", epoch,
                                   "; write repeat(k) where epochs are wanted"})
          .in_stage("repeat");
    }
    if (epoch > (std::numeric_limits<std::uint64_t>::max() - (times_ - 1)) / times_) {
      throw error(errc::argument, {"epoch ", epoch, " of repeat(", times_, ") is beyond 64 bits"})
          .in_stage("repeat");
    }
    return epoch * times_;
  }

  std::uint64_t inner_;
  std::uint64_t times_;
  std::uint64_t size_ = 0;
  detail::divider by_;
  bool endless_ = false;
  std::shared_ptr<const std::vector<std::uint64_t>> starts_;
};

/// The stage `repeat(k)` or `repeat()`.
struct repeat_stage {
  using penstock_part = order_tag;
  static constexpr std::string_view stage_name = "repeat";
  static constexpr bool works_forward = true;

  [[nodiscard]] repeat_order make(order_input in) const { return repeat_order(std::move(in), times); }
  [[nodiscard]] std::string describe() const {
    return times ? "repeat(" + std::to_string(*times) + ")" : std::string("repeat()");
  }
  template <class Hash>
  void fingerprint(Hash& h) const {
    h.add(stage_name, times.value_or(std::numeric_limits<std::uint64_t>::max()));
  }

  std::optional<std::uint64_t> times;
};

namespace detail {
struct repeat_fn {
  [[nodiscard]] constexpr repeat_stage operator()() const noexcept { return {std::nullopt}; }
  [[nodiscard]] constexpr repeat_stage operator()(std::uint64_t k) const noexcept { return {k}; }
};
}  // namespace detail

/// Makes one epoch of k epochs: `repeat(k)`, or without end: `repeat()`.
///
/// A sequencer; keeps every guarantee; costs two multiplications per sample. Index i of epoch e is index i
/// mod n of epoch e * k + i / n before the stage, so a shuffle before it is a new one each time round.
/// Batches after it straddle the seams. `repeat()` has 2^63 positions and one epoch: asking for another is
/// `error(errc::argument)`. Shard boundaries are kept for up to 2^20 shards in all.
/// Free for all threads.
///
///     auto loader = source | shuffle(seed) | repeat(90) | batch(256);   // no short batch between epochs
inline constexpr detail::repeat_fn repeat{};

}  // namespace penstock::inline v0_1

// ---- penstock/order/detail/fraction.hpp

/// Fractions that a user gives: between 0 and 1, both left out.
namespace penstock::inline v0_1::detail {

/// A number for people, with as many digits as tell it apart from its neighbours that are likely to be meant.
template <class = void>
[[nodiscard]] std::string fraction_text(double value) {
  char digits[32];
  std::snprintf(digits, sizeof(digits), "%.12g", value);
  std::string line(digits);
  for (char& c : line)
    if (c == ',') c = '.';  // whatever the process's locale says
  return line;
}

template <class = void>
[[nodiscard]] double checked_fraction(double fraction, std::string_view stage) {
  if (!(fraction > 0 && fraction < 1)) {
    throw error(errc::argument, {"the fraction ", fraction_text(fraction),
                                 " is not between 0 and 1; write 0.9 to keep nine of ten"})
        .in_stage(stage);
  }
  return fraction;
}

[[nodiscard]] inline std::uint64_t bits_of(double value) noexcept {
  return std::bit_cast<std::uint64_t>(value);
}

/// floor(n * fraction) for a fraction between 0 and 1, as it was written: 0.7 of 10 is 7, although the double
/// next to 0.7 is below it. Half a unit of its last place is added, and the rest is exact.
[[nodiscard]] inline std::uint64_t floor_of_product(std::uint64_t n, double fraction) noexcept {
  const std::uint64_t bits = bits_of(fraction);
  const std::uint64_t exponent = bits >> 52 & 2047;
  std::uint64_t digits = (bits & ((std::uint64_t{1} << 52) - 1)) << 1 | 1;
  if (exponent != 0) digits |= std::uint64_t{1} << 53;
  // fraction = digits / 2^down with down from 54 on; the product has 118 bits
  const std::uint64_t down = 1076 - (exponent == 0 ? 1 : exponent);
  if (down >= 118) return 0;
  std::uint64_t high = 0, low = 0;  // the product, added up bit by bit
  for (int bit = 53; bit >= 0; --bit) {
    high = high << 1 | low >> 63;
    low <<= 1;
    if ((digits >> bit & 1) == 0) continue;
    low += n;
    if (low < n) ++high;
  }
  return down >= 64 ? high >> (down - 64) : high << (64 - down) | low >> down;
}

/// floor(2^64 * a / b) for a < b <= 2^63.
[[nodiscard]] constexpr std::uint64_t binary_fraction(std::uint64_t a, std::uint64_t b) noexcept {
  std::uint64_t quotient = 0;
  for (int bit = 0; bit < 64; ++bit) {
    a <<= 1;
    quotient <<= 1;
    if (a >= b) {
      a -= b;
      quotient |= 1;
    }
  }
  return quotient;
}

}  // namespace penstock::inline v0_1::detail

// ---- penstock/order/sample_list.hpp

namespace penstock::inline v0_1 {

/// Values in memory, one for each sample of a dataset, in the order of the source: labels or weights that the
/// program has anyway. `T` is a number or `std::string`.
///
/// Nothing says which dataset they are of: only their number is checked. A `derived_index` knows its dataset.
/// Copies share the values; free for all threads. Making one hashes them, for the fingerprint.
///
///     auto balanced = source | class_balanced(sample_list(labels), 7);
template <class T>
class sample_list {
  static_assert((std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) || std::is_same_v<T, std::string>,
                "penstock: the values of a sample_list are numbers or std::string");

 public:
  using value_type = std::conditional_t<std::is_same_v<T, std::string>, std::string_view, T>;

  explicit sample_list(std::vector<T> values) : values_(new const std::vector<T>(std::move(values))) {
    class fingerprint h;
    h.add("sample_list", values_->size());
    for (const T& value : *values_) {
      if constexpr (std::is_floating_point_v<T>)
        h.add(detail::bits_of(static_cast<double>(value)));
      else
        h.add(value);
    }
    fingerprint_ = h.value();
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return values_->size(); }
  [[nodiscard]] value_type operator[](std::uint64_t i) const noexcept {
    return (*values_)[static_cast<std::size_t>(i)];
  }
  /// Not known.
  [[nodiscard]] std::uint64_t dataset() const noexcept { return 0; }
  [[nodiscard]] std::uint64_t fingerprint() const noexcept { return fingerprint_; }
  [[nodiscard]] std::string describe() const { return detail::text({"a list of ", size()}); }

 private:
  std::shared_ptr<const std::vector<T>> values_;
  std::uint64_t fingerprint_ = 0;
};

}  // namespace penstock::inline v0_1

// ---- penstock/order/sequential.hpp

namespace penstock::inline v0_1 {

/// The order of `sequential`: index i is index i.
class sequential_order {
 public:
  struct bound {
    std::uint64_t epoch = 0;
    [[nodiscard]] constexpr position operator()(std::uint64_t index) const noexcept { return {epoch, index}; }
  };

  explicit sequential_order(order_input in) noexcept : in_(std::move(in)) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return in_.size; }
  [[nodiscard]] order_input output() const { return in_; }
  [[nodiscard]] bound bind(std::uint64_t epoch) const noexcept { return {epoch}; }
  [[nodiscard]] position_range reach(position_range after) const noexcept { return after; }
  [[nodiscard]] std::optional<position> position_of(position upstream) const noexcept {
    if (upstream.index >= in_.size) return std::nullopt;
    return upstream;
  }

 private:
  order_input in_;
};

/// The stage `sequential`.
struct sequential_stage {
  using penstock_part = order_tag;
  static constexpr std::string_view stage_name = "sequential";

  [[nodiscard]] sequential_order make(order_input in) const { return sequential_order(std::move(in)); }
  [[nodiscard]] std::string describe() const { return "sequential"; }
  template <class Hash>
  void fingerprint(Hash& h) const {
    h.add(stage_name);
  }
};

/// Leaves the order as it is: it says in the plan that reading in stored order is meant.
///
/// A sequencer; keeps every guarantee; costs nothing per sample; throws nothing; free for all threads.
///
///     auto loader = source | sequential | batch(256);
inline constexpr sequential_stage sequential{};

}  // namespace penstock::inline v0_1

// ---- penstock/order/shard.hpp

namespace penstock::inline v0_1 {

/// The stage `shard(rank, world_size)`: only a note of which part of the work is ours.
struct shard_stage {
  using penstock_part = shard_tag;
  static constexpr std::string_view stage_name = "shard";

  [[nodiscard]] std::string describe() const {
    return detail::text({"shard(rank ", part.rank, " of ", part.size, ")"});
  }
  /// Adds nothing: the global sequence does not depend on how many share it.
  template <class Hash>
  void fingerprint(Hash&) const {}

  world part;
};

namespace detail {
struct shard_fn {
  [[nodiscard]] shard_stage operator()(std::uint64_t rank, std::uint64_t world_size) const {
    world part;
    part.rank = rank;
    part.size = world_size;
    part.launcher = "arguments";
    part.check();
    return {part};
  }
  [[nodiscard]] shard_stage operator()(const world& part) const {
    part.check();
    return {part};
  }
};
}  // namespace detail

/// Says which part of the work this process does: rank `rank` of `world_size`, or a `world`.
///
/// Positions stay global: nothing changes until the chain is cut into batches, each rank taking its slice of
/// every global step. That is why the samples of step s do not depend on the number of ranks, and why a run
/// may go on with another number.
/// A sequencer; keeps every guarantee; costs nothing per sample. Throws `error(errc::argument)` when rank is
/// not below world_size.
///
///     auto loader = source | shuffle(7) | shard(world::from_environment()) | batch(256);
inline constexpr detail::shard_fn shard{};

}  // namespace penstock::inline v0_1

// ---- penstock/order/detail/shuffle_table.hpp

namespace penstock::inline v0_1::detail {

/// The key of one epoch of a shuffle.
[[nodiscard]] constexpr std::uint64_t shuffle_key(std::uint64_t seed, std::uint64_t epoch) noexcept {
  constexpr std::uint64_t stream = 0x7368'7566'666c'6500;  // "shuffle"
  return rng(seed, epoch, 0, stream)();
}

/// One epoch of a windowed shuffle: the permuted shards laid end to end ("the row"), cut into lanes, the
/// lanes into windows.
///
/// Places in the row are numbered from 0 to size. A piece is what one lane has of one shard; a window is up
/// to `window` pieces of one lane. Windows therefore never cross a lane's border, and a shuffle inside each
/// window is a bijection on the whole.
template <class = void>
class basic_shuffle_table {
 public:
  basic_shuffle_table(const std::vector<std::uint64_t>& starts, std::uint64_t window, std::uint64_t lanes,
                      std::uint64_t key)
      : size_(starts.back()),
        lanes_(lanes),
        lane_length_(size_ / lanes),
        longer_lanes_(size_ % lanes),
        by_lanes_(lanes),
        by_length_(std::max<std::uint64_t>(1, lane_length_)),
        by_longer_(lane_length_ + 1) {
    std::vector<std::uint64_t> filled;
    filled.reserve(starts.size());
    for (std::uint64_t i = 0; i + 1 < starts.size(); ++i) {
      if (starts[i + 1] > starts[i]) filled.push_back(i);
    }
    const permutation shuffled(filled.size(), mix64(key ^ 0x7368'6172'6473'0000));
    lane_windows_.reserve(lanes + 1);
    shard_places_.assign(starts.size(), 0);
    lane_windows_.push_back(0);
    std::uint64_t place = 0, lane = 0, pieces = window;  // a full window, so that the first piece opens one
    for (std::uint64_t i = 0; i < filled.size(); ++i) {
      const std::uint64_t number = filled[shuffled(i)];
      std::uint64_t source = starts[number];
      shard_places_[number] = place;
      while (source < starts[number + 1]) {
        const std::uint64_t length = std::min(starts[number + 1] - source, lane_begin(lane + 1) - place);
        if (pieces == window) {
          window_places_.push_back(place);
          window_pieces_.push_back(piece_places_.size());
          pieces = 0;
        }
        piece_places_.push_back(place);
        piece_shifts_.push_back(source - place);
        ++pieces;
        place += length;
        source += length;
        if (place == lane_begin(lane + 1)) {
          lane_windows_.push_back(window_places_.size());
          ++lane;
          pieces = window;
        }
      }
    }
    lane_windows_.resize(lanes + 1, window_places_.size());  // lanes beyond the last sample are empty
    const std::uint64_t windows = window_places_.size();
    window_places_.push_back(size_);
    window_pieces_.push_back(piece_places_.size());
    mixes_.reserve(windows);
    for (std::uint64_t w = 0; w < windows; ++w)
      mixes_.emplace_back(window_places_[w + 1] - window_places_[w], mix64(key + w));
  }

  /// The source index at index p of the epoch.
  [[nodiscard]] std::uint64_t operator()(std::uint64_t p) const noexcept {
    std::uint64_t place = p;
    std::uint64_t first = 0, count = mixes_.size();
    if (lanes_ > 1) {
      const auto [depth, lane] = by_lanes_(p);
      place = lane_begin(lane) + depth;
      first = lane_windows_[lane];
      count = lane_windows_[lane + 1] - first;
    }
    const std::uint64_t w = first + last_not_above(window_places_.data() + first, count, place);
    place = window_places_[w] + mixes_[w](place - window_places_[w]);
    const std::uint64_t piece = window_pieces_[w];
    return place + piece_shifts_[piece + last_not_above(piece_places_.data() + piece,
                                                        window_pieces_[w + 1] - piece, place)];
  }

  /// The index of the epoch at which source index i stands, which lies in shard `number`.
  [[nodiscard]] std::uint64_t index_of(std::uint64_t shard_start, std::uint64_t number,
                                       std::uint64_t i) const noexcept {
    std::uint64_t place = shard_places_[number] + (i - shard_start);
    const std::uint64_t w = last_not_above(window_places_.data(), mixes_.size(), place);
    place = window_places_[w] + mixes_[w].inverse(place - window_places_[w]);
    if (lanes_ == 1) return place;
    const std::uint64_t longer = longer_lanes_ * (lane_length_ + 1);
    const auto [line, depth] = place < longer ? by_longer_(place) : by_length_(place - longer);
    return depth * lanes_ + line + (place < longer ? 0 : longer_lanes_);
  }

 private:
  /// Lanes hold the indices p with p mod lanes == lane, so the first ones are longer by one.
  [[nodiscard]] std::uint64_t lane_begin(std::uint64_t lane) const noexcept {
    return lane * lane_length_ + std::min(lane, longer_lanes_);
  }

  std::uint64_t size_, lanes_, lane_length_, longer_lanes_;
  divider by_lanes_, by_length_, by_longer_;
  std::vector<std::uint64_t> lane_windows_;   // of each lane the first window; one more at the end
  std::vector<std::uint64_t> window_places_;  // of each window the first place; one more at the end
  std::vector<std::uint64_t> window_pieces_;  // of each window the first piece; one more at the end
  std::vector<permutation> mixes_;            // of each window its shuffle
  std::vector<std::uint64_t> piece_places_;   // of each piece the first place
  std::vector<std::uint64_t> piece_shifts_;   // of each piece source index - place
  std::vector<std::uint64_t> shard_places_;   // of each shard the first place
};
using shuffle_table = basic_shuffle_table<>;

}  // namespace penstock::inline v0_1::detail

// ---- penstock/order/shuffle.hpp

namespace penstock::inline v0_1 {

/// Option of `shuffle`: how many shards are mixed with each other.
struct window {
  constexpr explicit window(std::uint64_t shards_) noexcept : shards(shards_) {}
  std::uint64_t shards;
};

/// Option of `shuffle`: into how many contiguous parts the permuted shards are cut, so that each reader stays
/// in few of them.
struct lanes {
  constexpr explicit lanes(std::uint64_t count_) noexcept : count(count_) {}
  std::uint64_t count;
};

/// The order of `shuffle(seed)`: a new permutation of all positions in every epoch.
template <class = void>
class basic_shuffle_order {
 public:
  struct bound {
    std::uint64_t epoch = 0;
    permutation shuffled;
    [[nodiscard]] constexpr position operator()(std::uint64_t index) const noexcept {
      return {epoch, shuffled(index)};
    }
  };

  basic_shuffle_order(const order_input& in, std::uint64_t seed) : size_(in.size), seed_(seed) {
    if (size_ >= permutation::max_size) {
      throw error(errc::argument, "an order without end cannot be shuffled; write shuffle before repeat()")
          .in_stage("shuffle");
    }
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] std::uint64_t lanes() const noexcept { return 1; }
  [[nodiscard]] order_input output() const { return {size_, nullptr}; }
  [[nodiscard]] bound bind(std::uint64_t epoch) const {
    return {epoch, permutation(size_, detail::shuffle_key(seed_, epoch))};
  }
  [[nodiscard]] std::optional<position> position_of(position upstream) const {
    if (upstream.index >= size_) return std::nullopt;
    return position{upstream.epoch, bind(upstream.epoch).shuffled.inverse(upstream.index)};
  }

 private:
  std::uint64_t size_;
  std::uint64_t seed_;
};
using shuffle_order = basic_shuffle_order<>;

/// The order of `shuffle(seed, window(w), lanes(C))`: permuted shards, and permuted samples within each
/// window of shards.
///
/// Copies share the tables of the four epochs bound last; a mutex guards them, and building one (about 0.3 ms
/// for 10,000 shards) holds it. What `bind` returns is immutable and needs no lock.
template <class = void>
class basic_windowed_shuffle_order {
 public:
  class bound {
   public:
    bound() = default;
    bound(std::uint64_t epoch, std::shared_ptr<const detail::shuffle_table> table) noexcept
        : epoch_(epoch), table_(table.get()), owner_(std::move(table)) {}
    [[nodiscard]] position operator()(std::uint64_t index) const noexcept {
      return {epoch_, (*table_)(index)};
    }

   private:
    std::uint64_t epoch_ = 0;
    const detail::shuffle_table* table_ = nullptr;
    std::shared_ptr<const detail::shuffle_table> owner_;
  };

  basic_windowed_shuffle_order(order_input in, std::uint64_t seed, std::uint64_t window,
                               std::uint64_t lane_count)
      : seed_(seed), window_(window), lanes_(lane_count), recent_(new recent()) {
    if (in.size >= permutation::max_size) {
      throw error(errc::argument, "an order without end cannot be shuffled; write shuffle before repeat()")
          .in_stage("shuffle");
    }
    if (window_ == 0)
      throw error(errc::argument, "window(0) holds no shard; write window(1) or more").in_stage("shuffle");
    if (lanes_ == 0 || lanes_ > most_lanes) {
      throw error(errc::argument, {"lanes(", lanes_, ") is not in [1, 2^24]"}).in_stage("shuffle");
    }
    starts_ = in.starts ? std::move(in.starts)
                        : std::shared_ptr<const std::vector<std::uint64_t>>(
                              new const std::vector<std::uint64_t>(std::vector<std::uint64_t>{0, in.size}));
    if (starts_->empty() || starts_->front() != 0 || starts_->back() != in.size) {
      throw error(errc::argument, {"shard boundaries do not run from 0 to ", in.size}).in_stage("shuffle");
    }
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return starts_->back(); }
  [[nodiscard]] std::uint64_t lanes() const noexcept { return lanes_; }
  [[nodiscard]] order_input output() const { return {size(), nullptr}; }
  [[nodiscard]] bound bind(std::uint64_t epoch) const { return {epoch, table(epoch)}; }

  [[nodiscard]] std::optional<position> position_of(position upstream) const {
    if (upstream.index >= size()) return std::nullopt;
    const std::uint64_t found = detail::last_not_above(starts_->data(), starts_->size(), upstream.index);
    return position{upstream.epoch,
                    table(upstream.epoch)->index_of((*starts_)[found], found, upstream.index)};
  }

 private:
  static constexpr std::uint64_t most_lanes = std::uint64_t{1} << 24;

  struct entry {
    std::uint64_t epoch = 0;
    std::shared_ptr<const detail::shuffle_table> table;
  };
  struct recent {
    std::mutex guard;
    std::array<entry, 4> entries;
    std::size_t oldest = 0;
  };

  [[nodiscard]] std::shared_ptr<const detail::shuffle_table> table(std::uint64_t epoch) const {
    const std::lock_guard lock(recent_->guard);
    for (const entry& known : recent_->entries) {
      if (known.table && known.epoch == epoch) return known.table;
    }
    std::shared_ptr<const detail::shuffle_table> made(
        new const detail::shuffle_table(*starts_, window_, lanes_, detail::shuffle_key(seed_, epoch)));
    recent_->entries[recent_->oldest] = {epoch, made};
    recent_->oldest = (recent_->oldest + 1) % recent_->entries.size();
    return made;
  }

  std::uint64_t seed_, window_, lanes_;
  std::shared_ptr<const std::vector<std::uint64_t>> starts_;
  std::shared_ptr<recent> recent_;
};
using windowed_shuffle_order = basic_windowed_shuffle_order<>;

/// The stage `shuffle(seed)`.
struct shuffle_stage {
  using penstock_part = order_tag;
  static constexpr std::string_view stage_name = "shuffle";

  [[nodiscard]] shuffle_order make(const order_input& in) const { return {in, seed}; }
  [[nodiscard]] std::string describe() const { return detail::text({"shuffle(seed ", seed, ")"}); }
  template <class Hash>
  void fingerprint(Hash& h) const {
    h.add(stage_name, seed);
  }

  std::uint64_t seed = 0;
};

/// The stage `shuffle(seed, window(w))` or `shuffle(seed, window(w), lanes(C))`.
struct windowed_shuffle_stage {
  using penstock_part = order_tag;
  static constexpr std::string_view stage_name = "shuffle";

  [[nodiscard]] windowed_shuffle_order make(order_input in) const {
    return {std::move(in), seed, shards, lane_count};
  }
  [[nodiscard]] std::string describe() const {
    return detail::text({"shuffle(seed ", seed, ", window ", shards,
                         (lane_count == 1 ? "" : ", lanes " + std::to_string(lane_count)), ")"});
  }
  template <class Hash>
  void fingerprint(Hash& h) const {
    h.add(stage_name, seed, shards, lane_count);
  }

  std::uint64_t seed = 0;
  std::uint64_t shards = 1;
  std::uint64_t lane_count = 1;
};

namespace detail {
struct shuffle_fn {
  [[nodiscard]] constexpr shuffle_stage operator()(std::uint64_t seed) const noexcept { return {seed}; }
  [[nodiscard]] constexpr windowed_shuffle_stage operator()(std::uint64_t seed, window w) const noexcept {
    return {seed, w.shards, 1};
  }
  [[nodiscard]] constexpr windowed_shuffle_stage operator()(std::uint64_t seed, window w,
                                                            lanes l) const noexcept {
    return {seed, w.shards, l.count};
  }
};
}  // namespace detail

/// Shuffles: every epoch has another order, computed from (seed, epoch), the same on every machine.
///
/// A sequencer; keeps every guarantee. Nothing is read and nothing is buffered.
///
/// `shuffle(seed)` permutes all positions of the epoch: 128 bytes per epoch, about 6 ns a position. Every
/// sample may be followed by any other, so storage sees single random reads.
///
/// `shuffle(seed, window(w))` permutes the shards, takes w of them at a time, and permutes the samples in
/// each such window: reads stay in w shards at a time. O(shards) memory per epoch, O(log shards) time per
/// position (30 to 60 ns).
///
/// `shuffle(seed, window(w), lanes(C))` first cuts the permuted shards into C lanes of equal length; position
/// p is in lane p mod C, and each rank takes its part of a global step sorted by lane, so a node reads about
/// shards / nodes of the data. The sequence depends on C and not on the number of ranks: choose C as a
/// multiple of the nodes there may ever be.
///
/// Throws `error(errc::argument)` for window(0), lanes(0), and for an order without end. Free for all
/// threads.
///
///     auto loader = webdataset(path) | shuffle(7, window(16), lanes(64)) | shard(rank, world_size) | batch(256);
inline constexpr detail::shuffle_fn shuffle{};

}  // namespace penstock::inline v0_1

// ---- penstock/order/skip.hpp

namespace penstock::inline v0_1 {

/// The order of `skip(n)`: all but the first positions of every epoch.
class skip_order {
 public:
  struct bound {
    std::uint64_t epoch = 0, skipped = 0;
    [[nodiscard]] constexpr position operator()(std::uint64_t index) const noexcept {
      return {epoch, index + skipped};
    }
  };

  skip_order(order_input in, std::uint64_t count)
      : skipped_(std::min(in.size, count)),
        size_(in.size - skipped_),
        places_(detail::places_behind(in.places, bound{0, skipped_})) {
    if (!in.starts || skipped_ == 0) {
      starts_ = std::move(in.starts);
      return;
    }
    std::shared_ptr<std::vector<std::uint64_t>> cut(new std::vector<std::uint64_t>(1, 0));
    for (const std::uint64_t start : *in.starts) {
      if (start > skipped_) cut->push_back(start - skipped_);
    }
    starts_ = std::move(cut);
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] order_input output() const { return {size_, starts_, places_}; }
  [[nodiscard]] bound bind(std::uint64_t epoch) const noexcept { return {epoch, skipped_}; }
  [[nodiscard]] position_range reach(position_range after) const noexcept {
    after.first.index += skipped_;
    after.last.index += skipped_;
    return after;
  }
  [[nodiscard]] std::optional<position> position_of(position upstream) const noexcept {
    if (upstream.index < skipped_ || upstream.index - skipped_ >= size_) return std::nullopt;
    return position{upstream.epoch, upstream.index - skipped_};
  }

 private:
  std::uint64_t skipped_;
  std::uint64_t size_;
  std::shared_ptr<const std::vector<std::uint64_t>> starts_;
  std::shared_ptr<const source_places> places_;
};

/// The stage `skip(n)`.
struct skip_stage {
  using penstock_part = order_tag;
  static constexpr std::string_view stage_name = "skip";
  static constexpr bool works_forward = true;
  static constexpr bool counts_only = true;

  [[nodiscard]] skip_order make(order_input in) const { return skip_order(std::move(in), count); }
  [[nodiscard]] std::string describe() const { return detail::text({"skip(", count, ")"}); }
  template <class Hash>
  void fingerprint(Hash& h) const {
    h.add(stage_name, count);
  }

  std::uint64_t count = 0;
};

namespace detail {
struct skip_fn {
  [[nodiscard]] constexpr skip_stage operator()(std::uint64_t n) const noexcept { return {n}; }
};
}  // namespace detail

/// Drops the first n positions of every epoch, counted over all ranks; all of them where there are no more.
/// Behind `shard` and a decider each rank counts its own: what the others kept is not known there.
///
/// A sequencer; keeps every guarantee; costs one addition per sample; throws nothing; free for all threads.
/// Nothing is read to get past what is dropped.
///
/// the first 5000 stored samples are kept for validation
///     auto train = source | skip(5000) | shuffle(seed);
///     auto valid = source | take(5000);
inline constexpr detail::skip_fn skip{};

}  // namespace penstock::inline v0_1

// ---- penstock/order/detail/spread_choice.hpp

namespace penstock::inline v0_1::detail {

/// A choice of m of n positions, m <= n / 2 and n < 2^63: which ones, in ascending order, and which are left,
/// without a table.
///
/// Positions are cut into blocks of 64 cells. A cell is one position, or where m is less than an eighth of n
/// the smallest power of two with which a block has eight choices in the mean. Blocks have floor or ceil of
/// their share, by a running sum with a start drawn from the key. Which cells of a block have a choice is
/// drawn by Floyd's method, and then where in the cell it is. Each position is as likely as any other (but
/// for the last cell, which may be shorter).
class spread_choice {
 public:
  constexpr spread_choice() noexcept = default;
  constexpr spread_choice(std::uint64_t n, std::uint64_t m, std::uint64_t key) noexcept
      : n_(n), m_(m), key_(mix64(key ^ 0x73706c6974u)) {
    if (m == 0) return;
    const std::uint64_t density = binary_fraction(m, n);  // m / n, with 64 binary places
    // Until a block has eight choices in the mean, or there is only one block.
    while (density >> (58 - cell_bits_) < 8 && ((n - 1) >> cell_bits_) >= 64) ++cell_bits_;
    const std::uint32_t block_bits = 6 + cell_bits_;
    whole_ = density >> (64 - block_bits);
    part_ = density << block_bits;
    start_ = mix64(key_ ^ 0x7374617274u);
    blocks_ = ((n - 1) >> block_bits) + 1;
    if (blocks_ == 1) return;
    const std::uint64_t share = density << cell_bits_;  // of a block, with 58 binary places; at most 32
    to_block_ = binary_fraction(std::uint64_t{1} << 58, std::max(share, (std::uint64_t{1} << 58) + 1));
    over_ = density >= std::uint64_t{1} << 63 ? ~std::uint64_t{0}
                                              : binary_fraction(density >> 1, (~density >> 1) + 1);
  }

  [[nodiscard]] constexpr std::uint64_t size() const noexcept { return n_; }

  /// The position of choice i.
  [[nodiscard]] constexpr std::uint64_t chosen(std::uint64_t i) const noexcept {
    std::uint64_t b = blocks_ == 1 ? 0 : std::min(multiply_high(i, to_block_), blocks_ - 1);
    while (before_block(b) > i) --b;
    while (before_block(b + 1) <= i) ++b;
    std::uint64_t cells = cells_of(b);
    for (std::uint64_t skipped = i - before_block(b); skipped != 0; --skipped) cells &= cells - 1;
    return place_in(b, static_cast<std::uint32_t>(std::countr_zero(cells)));
  }

  /// The position of what is left, number i.
  [[nodiscard]] constexpr std::uint64_t left(std::uint64_t i) const noexcept {
    if (m_ == 0) return i;
    std::uint64_t b = blocks_ == 1 ? 0 : std::min((i + multiply_high(i, over_)) >> block_bits(), blocks_ - 1);
    while (left_before_block(b) > i) --b;
    while (left_before_block(b + 1) <= i) ++b;
    std::uint64_t at = begin_of(b) + (i - left_before_block(b));
    for (std::uint64_t cells = cells_of(b); cells != 0; cells &= cells - 1) {
      if (place_in(b, static_cast<std::uint32_t>(std::countr_zero(cells))) > at) break;
      ++at;
    }
    return at;
  }

  [[nodiscard]] constexpr bool is_chosen(std::uint64_t at) const noexcept {
    if (m_ == 0) return false;
    const std::uint64_t b = at >> block_bits();
    const auto cell = static_cast<std::uint32_t>((at - begin_of(b)) >> cell_bits_);
    return (cells_of(b) >> cell & 1) != 0 && place_in(b, cell) == at;
  }

  /// How many choices are below a position; it may be n.
  [[nodiscard]] constexpr std::uint64_t chosen_before(std::uint64_t at) const noexcept {
    if (m_ == 0) return 0;
    if (at >= n_) return m_;
    const std::uint64_t b = at >> block_bits();
    const auto cell = static_cast<std::uint32_t>((at - begin_of(b)) >> cell_bits_);
    const std::uint64_t cells = cells_of(b);
    const std::uint64_t below = cells & ((std::uint64_t{1} << cell) - 1);
    const bool own = (cells >> cell & 1) != 0 && place_in(b, cell) < at;
    return before_block(b) + static_cast<std::uint64_t>(std::popcount(below)) + (own ? 1 : 0);
  }

 private:
  [[nodiscard]] constexpr std::uint32_t block_bits() const noexcept { return 6 + cell_bits_; }
  [[nodiscard]] constexpr std::uint64_t begin_of(std::uint64_t b) const noexcept { return b << block_bits(); }

  /// How many choices are in the blocks below b.
  [[nodiscard]] constexpr std::uint64_t before_block(std::uint64_t b) const noexcept {
    if (b >= blocks_) return m_;
    const std::uint64_t low = b * part_;
    return b * whole_ + multiply_high(b, part_) + (low + start_ < low ? 1 : 0);
  }
  [[nodiscard]] constexpr std::uint64_t left_before_block(std::uint64_t b) const noexcept {
    return (b >= blocks_ ? n_ : begin_of(b)) - before_block(b);
  }

  /// The cells of a block that have a choice.
  [[nodiscard]] constexpr std::uint64_t cells_of(std::uint64_t b) const noexcept {
    const std::uint64_t count = before_block(b + 1) - before_block(b);
    const std::uint64_t length = std::min(n_ - begin_of(b), std::uint64_t{64} << cell_bits_);
    const std::uint64_t cells = ((length - 1) >> cell_bits_) + 1;
    const std::uint64_t stream = mix64(key_ + b);
    std::uint64_t mask = 0;
    for (std::uint64_t t = cells - count; t < cells; ++t) {
      const std::uint64_t drawn = std::uint64_t{1} << multiply_high(mix64(stream + t), t + 1);
      mask |= (mask & drawn) == 0 ? drawn : std::uint64_t{1} << t;
    }
    return mask;
  }
  [[nodiscard]] constexpr std::uint64_t place_in(std::uint64_t b, std::uint32_t cell) const noexcept {
    const std::uint64_t begin = begin_of(b) + (std::uint64_t{cell} << cell_bits_);
    if (cell_bits_ == 0) return begin;
    const std::uint64_t length = std::min(n_ - begin, std::uint64_t{1} << cell_bits_);
    return begin + multiply_high(mix64(~key_ + (b << 6 | cell)), length);
  }

  std::uint64_t n_ = 0, m_ = 0, key_ = 0;
  std::uint64_t blocks_ = 1;
  std::uint64_t whole_ = 0, part_ = 0, start_ = 0;  // a block's share, and where the running sum starts
  std::uint64_t to_block_ = 0, over_ = 0;           // for the first guess of a choice's block
  std::uint32_t cell_bits_ = 0;
};

}  // namespace penstock::inline v0_1::detail

// ---- penstock/order/split.hpp

namespace penstock::inline v0_1 {

/// The order of `split(fraction, seed)` and of its `rest()`: some of the positions, the same in every epoch,
/// in the order they had.
template <class = void>
class basic_split_order {
 public:
  struct bound {
    std::uint64_t epoch = 0;
    detail::spread_choice choice;
    bool chosen = true;

    [[nodiscard]] position operator()(std::uint64_t index) const noexcept {
      return {epoch, chosen ? choice.chosen(index) : choice.left(index)};
    }
  };

  basic_split_order(const order_input& in, double fraction, std::uint64_t seed, bool rest) {
    detail::check_finite(in, "split");
    // The smaller part is what is chosen, so that no more than every second position is.
    const std::uint64_t part = detail::floor_of_product(in.size, fraction);
    const bool few = part <= in.size / 2;
    made_ = {0, detail::spread_choice(in.size, few ? part : in.size - part, seed), few != rest};
    size_ = rest ? in.size - part : part;
    starts_ = detail::starts_behind(in.starts, [this](std::uint64_t p) { return kept_before(p); });
    places_ = detail::places_behind(in.places, made_);
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] order_input output() const { return {size_, starts_, places_}; }
  [[nodiscard]] bound bind(std::uint64_t epoch) const noexcept { return {epoch, made_.choice, made_.chosen}; }
  [[nodiscard]] position_range reach(position_range after) const noexcept {
    return {bind(after.first.epoch)(after.first.index), bind(after.last.epoch)(after.last.index)};
  }
  [[nodiscard]] std::optional<position> position_of(position upstream) const noexcept {
    if (upstream.index >= made_.choice.size() || made_.choice.is_chosen(upstream.index) != made_.chosen)
      return std::nullopt;
    return position{upstream.epoch, kept_before(upstream.index)};
  }

 private:
  [[nodiscard]] std::uint64_t kept_before(std::uint64_t p) const noexcept {
    const std::uint64_t chosen = made_.choice.chosen_before(p);
    return made_.chosen ? chosen : p - chosen;
  }

  bound made_;
  std::uint64_t size_ = 0;
  std::shared_ptr<const std::vector<std::uint64_t>> starts_;
  std::shared_ptr<const source_places> places_;
};
using split_order = basic_split_order<>;

/// The stage `split(fraction, seed)`, and the one of its `rest()`.
template <class = void>
class basic_split_stage {
 public:
  using penstock_part = order_tag;
  static constexpr std::string_view stage_name = "split";

  basic_split_stage(double fraction, std::uint64_t seed, bool rest = false)
      : fraction_(detail::checked_fraction(fraction, "split")), seed_(seed), rest_(rest) {}

  /// The positions that this one leaves out.
  [[nodiscard]] basic_split_stage rest() const { return {fraction_, seed_, !rest_}; }

  [[nodiscard]] split_order make(const order_input& in) const { return {in, fraction_, seed_, rest_}; }
  [[nodiscard]] std::string describe() const {
    return detail::text(
        {"split(", detail::fraction_text(fraction_), ", seed ", seed_, rest_ ? ").rest()" : ")"});
  }
  template <class Hash>
  void fingerprint(Hash& h) const {
    h.add(stage_name, detail::bits_of(fraction_), seed_, rest_);
  }

 private:
  double fraction_;
  std::uint64_t seed_;  // not of the plan's random numbers: a split changes nothing for what is kept
  bool rest_;
};
using split_stage = basic_split_stage<>;

namespace detail {
struct split_fn {
  [[nodiscard]] split_stage operator()(double fraction, std::uint64_t seed) const { return {fraction, seed}; }
};
}  // namespace detail

/// Keeps floor(fraction * n) of the n positions, chosen by the seed: the same ones in every epoch, in the
/// order they had. `split(fraction, seed).rest()` keeps all others and no more.
///
/// Choices are spread out: of any 64 neighbours (of 64 longer stretches, where the smaller part has less than
/// an eighth) either part has its share, give or take one; which ones they are is random. So both parts have
/// something of each shard. Samples that belong together fall apart: see `split_by_key`.
/// In: a fraction between 0 and 1, both left out, as it is written (0.7 of 10 is 7), and a seed; n is counted
/// at this place of the plan, so that a dataset that grows is split anew. Out: positions; shards keep their
/// borders, a `shuffle` behind it may have a window.
/// A sequencer; keeps every guarantee; holds nothing; about 100 ns a position (docs/order.md). Throws
/// `error(errc::argument)` for another fraction, and behind `repeat()` without end. Free for all threads.
///
///     auto train = source | split(0.9, 7) | shuffle(1);
///     auto valid = source | split(0.9, 7).rest();
inline constexpr detail::split_fn split{};

}  // namespace penstock::inline v0_1

// ---- penstock/order/split_by_key.hpp

namespace penstock::inline v0_1 {

/// The number in [0, 2^64) by which `split_by_key` chooses sides. The same on every machine and in every
/// version.
///
/// It begins as h = mix64(seed). A number is one 64-bit word (two's complement; a floating one by its bits as
/// a double, with -0 as 0), a text first its length and then its bytes, eight to a word, the first byte
/// lowest, the last word filled up with zeros. For each word w: h = mix64(h ^ mix64(w)). `mix64` is in
/// core/random.hpp.
template <class Value>
[[nodiscard]] std::uint64_t key_hash(const Value& value, std::uint64_t seed) {
  std::uint64_t h = mix64(seed);
  const auto word = [&h](std::uint64_t w) { h = mix64(h ^ mix64(w)); };
  if constexpr (std::is_floating_point_v<Value>) {
    word(value == 0 ? 0 : detail::bits_of(static_cast<double>(value)));
  } else if constexpr (std::is_arithmetic_v<Value>) {
    word(static_cast<std::uint64_t>(value));
  } else {
    const std::string_view text(value);
    word(text.size());
    for (std::size_t i = 0; i < text.size(); i += 8) {
      std::uint64_t packed = 0;
      for (std::size_t k = 0; k < 8 && i + k < text.size(); ++k)
        packed |= std::uint64_t{static_cast<unsigned char>(text[i + k])} << (8 * k);
      word(packed);
    }
  }
  return h;
}

/// The stage `split_by_key(values, fraction, seed)`, and the one of its `rest()`.
template <class = void>
class basic_split_by_key_stage {
 public:
  using penstock_part = order_tag;
  static constexpr std::string_view stage_name = "split_by_key";
  static constexpr bool wants_places = true;

  template <sample_values Values>
  basic_split_by_key_stage(const Values& values, double fraction, std::uint64_t seed)
      : fraction_(detail::checked_fraction(fraction, stage_name)),
        seed_(seed),
        dataset_(values.dataset()),
        mark_(values.fingerprint()),
        what_(values.describe()) {
    // 53 digits of the hash, so that comparing is exact
    const auto below = [&](std::uint64_t i) {
      return static_cast<double>(key_hash(values[i], seed_) >> 11) * 0x1.0p-53 < fraction_;
    };
    const auto until = [&](std::uint64_t i) { return detail::same_until(values, i); };
    kept_.reset(new const detail::kept_list(values.size(), below, until));
    others_.reset(new const detail::kept_list(
        values.size(), [&](std::uint64_t i) { return !kept_->has(i); }, until));
  }

  /// The groups that this one leaves out.
  [[nodiscard]] basic_split_by_key_stage rest() const {
    basic_split_by_key_stage made = *this;
    made.rest_ = !rest_;
    std::swap(made.kept_, made.others_);
    return made;
  }

  [[nodiscard]] detail::kept_order make(const order_input& in) const {
    detail::check_places(in, kept_->upstream(), dataset_, what_, stage_name);
    return {in, kept_};
  }
  /// Samples of the dataset that are kept.
  [[nodiscard]] std::uint64_t size() const noexcept { return kept_->size(); }
  [[nodiscard]] std::string describe() const {
    return detail::text({"split_by_key(", what_, ", ", detail::fraction_text(fraction_), ", seed ", seed_,
                         rest_ ? ").rest()" : ")"});
  }
  template <class Hash>
  void fingerprint(Hash& h) const {
    h.add(stage_name, detail::bits_of(fraction_), seed_, rest_, mark_);
  }

 private:
  double fraction_;
  std::uint64_t seed_, dataset_, mark_;
  bool rest_ = false;
  std::string what_;
  std::shared_ptr<const detail::kept_list> kept_, others_;
};
using split_by_key_stage = basic_split_by_key_stage<>;

namespace detail {
struct split_by_key_fn {
  template <sample_values Values>
  [[nodiscard]] split_by_key_stage operator()(const Values& values, double fraction,
                                              std::uint64_t seed) const {
    return {values, fraction, seed};
  }
};
}  // namespace detail

/// Splits by groups: samples of equal value land on the same side, whichever dataset they are in and whatever
/// other values there are. `split_by_key(patients, 0.8, seed)` keeps about 0.8 of the values, and `.rest()`
/// the others.
///
/// A value is kept when its hash (`key_hash`) is below fraction * 2^64. So a sample never changes sides when
/// others are added, and a larger fraction keeps all that a smaller one does. How many samples that is
/// depends on the groups: of few or very unequal ones it may be far from the fraction. `size()` says how
/// many.
/// In: values as for `subset`, often a part of the key; a fraction between 0 and 1, both left out; a seed.
/// Where it may stand, guarantees, cost, errors and threads: as `subset`; both sides are kept in memory.
///
///     auto patient = derive(source, "patient", [](const auto&, std::string_view key) {
///       return std::string(key.substr(0, key.find('/')));
///     }, "/data/train");
///     auto train = source | split_by_key(patient, 0.8, 7) | shuffle(1);
///     auto valid = source | split_by_key(patient, 0.8, 7).rest();
inline constexpr detail::split_by_key_fn split_by_key{};

}  // namespace penstock::inline v0_1

// ---- penstock/order/subset.hpp

namespace penstock::inline v0_1 {

namespace detail {

/// How a number or text of a predicate is kept, and told apart from another type's.
template <class T>
using kept_operand =
    std::conditional_t<std::convertible_to<const T&, std::string_view>, std::string, std::remove_cvref_t<T>>;

template <class T>
concept operand = std::convertible_to<const T&, std::string_view> || std::is_arithmetic_v<T>;

/// Numbers are the same when what they say is, whatever their types; texts are never numbers.
template <class Value, class Operand>
concept comparable_operand = (std::is_arithmetic_v<Value> && std::is_arithmetic_v<Operand>) ||
                             (!std::is_arithmetic_v<Value> && !std::is_arithmetic_v<Operand>);

template <class Value, class Operand>
[[nodiscard]] bool same_operand(const Value& value, const Operand& wanted) {
  if constexpr (std::is_integral_v<Value> && std::is_integral_v<Operand> && !std::same_as<Operand, bool>)
    return std::cmp_equal(value, wanted);
  else if constexpr (std::is_arithmetic_v<Value>)
    return static_cast<double>(value) == static_cast<double>(wanted);
  else
    return std::string_view(value) == std::string_view(wanted);
}
template <class Value, class Operand>
[[nodiscard]] bool less_operand(const Value& value, const Operand& wanted) {
  if constexpr (std::is_integral_v<Value> && std::is_integral_v<Operand> && !std::same_as<Operand, bool>)
    return std::cmp_less(value, wanted);
  else if constexpr (std::is_arithmetic_v<Value>)
    return static_cast<double>(value) < static_cast<double>(wanted);
  else
    return std::string_view(value) < std::string_view(wanted);
}

template <class Operand>
[[nodiscard]] std::string operand_text(const Operand& value) {
  if constexpr (std::is_floating_point_v<Operand>)
    return fraction_text(static_cast<double>(value));
  else if constexpr (std::is_same_v<Operand, bool>)
    return value ? "true" : "false";
  else if constexpr (std::is_arithmetic_v<Operand>)
    return std::to_string(value);
  else
    return text({"'", value, "'"});
}

}  // namespace detail

/// A predicate of `subset`: the value is one of these.
template <class Operand>
class one_of_these {
 public:
  explicit one_of_these(std::vector<Operand> wanted) : wanted_(std::move(wanted)) {}

  template <class Value>
    requires detail::comparable_operand<Value, Operand>
  [[nodiscard]] bool operator()(const Value& value) const {
    for (const Operand& one : wanted_)
      if (detail::same_operand(value, one)) return true;
    return false;
  }
  [[nodiscard]] std::string describe() const {
    if (wanted_.size() == 1) return detail::operand_text(wanted_[0]);
    std::string line = "one of ";
    for (std::size_t i = 0; i < wanted_.size() && i < 4; ++i)
      line += (i == 0 ? "" : ", ") + detail::operand_text(wanted_[i]);
    return wanted_.size() > 4 ? line + ", ..." : line;
  }

 private:
  std::vector<Operand> wanted_;
};

/// A predicate of `subset`: the value is not below the one and not above the other.
template <class Low, class High>
class between_these {
 public:
  between_these(Low low, High high) : low_(std::move(low)), high_(std::move(high)) {}

  template <class Value>
    requires(detail::comparable_operand<Value, Low> && detail::comparable_operand<Value, High>)
  [[nodiscard]] bool operator()(const Value& value) const {
    return value == value && !detail::less_operand(value, low_) &&
           (detail::less_operand(value, high_) || detail::same_operand(value, high_));
  }
  [[nodiscard]] std::string describe() const {
    return detail::text({"from ", detail::operand_text(low_), " to ", detail::operand_text(high_)});
  }

 private:
  Low low_;
  High high_;
};

/// Predicates for `subset`: `equals(3)`, `one_of({"cat", "dog"})`, `between(0.5, 1)` with both ends. Integers
/// are compared as such, and with a floating number both as doubles; texts byte by byte. NaN is nothing's
/// equal.
template <detail::operand T>
[[nodiscard]] one_of_these<detail::kept_operand<T>> equals(const T& value) {
  return one_of_these<detail::kept_operand<T>>({detail::kept_operand<T>(value)});
}
template <detail::operand T>
[[nodiscard]] one_of_these<detail::kept_operand<T>> one_of(std::initializer_list<T> values) {
  return one_of_these<detail::kept_operand<T>>({values.begin(), values.end()});
}
template <detail::operand T>
[[nodiscard]] one_of_these<detail::kept_operand<T>> one_of(const std::vector<T>& values) {
  return one_of_these<detail::kept_operand<T>>({values.begin(), values.end()});
}
template <detail::operand T, detail::operand U>
[[nodiscard]] between_these<detail::kept_operand<T>, detail::kept_operand<U>> between(const T& low,
                                                                                      const U& high) {
  return {detail::kept_operand<T>(low), detail::kept_operand<U>(high)};
}

/// The stage `subset(values, predicate)`.
template <class = void>
class basic_subset_stage {
 public:
  using penstock_part = order_tag;
  static constexpr std::string_view stage_name = "subset";
  static constexpr bool wants_places = true;

  /// `says` is what describe gives.
  basic_subset_stage(std::shared_ptr<const detail::kept_list> kept, std::uint64_t dataset, std::string what,
                     std::string says)
      : kept_(std::move(kept)),
        dataset_(dataset),
        mark_(kept_->fingerprint()),
        what_(std::move(what)),
        says_(std::move(says)) {}

  [[nodiscard]] detail::kept_order make(const order_input& in) const {
    detail::check_places(in, kept_->upstream(), dataset_, what_, stage_name);
    return {in, kept_};
  }
  /// Samples of the dataset for which the predicate holds.
  [[nodiscard]] std::uint64_t size() const noexcept { return kept_->size(); }
  [[nodiscard]] std::string describe() const { return says_; }
  template <class Hash>
  void fingerprint(Hash& h) const {
    h.add(stage_name, mark_);
  }

 private:
  std::shared_ptr<const detail::kept_list> kept_;
  std::uint64_t dataset_, mark_;
  std::string what_, says_;
};
using subset_stage = basic_subset_stage<>;

namespace detail {

/// The samples whose values a predicate keeps.
template <sample_values Values, class Keep>
[[nodiscard]] std::shared_ptr<const kept_list> kept_samples(const Values& values, const Keep& keep) {
  return std::shared_ptr<const kept_list>(new const kept_list(
      values.size(), [&](std::uint64_t i) { return static_cast<bool>(keep(values[i])); },
      [&](std::uint64_t i) { return same_until(values, i); }));
}

struct subset_fn {
  template <sample_values Values, class Predicate>
  [[nodiscard]] subset_stage operator()(const Values& values, const Predicate& keep) const {
    static_assert(std::predicate<const Predicate&, typename Values::value_type>,
                  "penstock: subset's predicate must be callable with one of the values when const, and say "
                  "true or false; numbers are compared with numbers and texts with texts");
    std::string says = "a function";
    if constexpr (requires { keep.describe(); }) says = keep.describe();
    std::string what = values.describe();
    std::string line = text({"subset(", what, ": ", says, ")"});
    return {kept_samples(values, keep), values.dataset(), std::move(what), std::move(line)};
  }
};
}  // namespace detail

/// Keeps the samples whose value a predicate says to keep, in the order they had: `subset(labels,
/// one_of({"cat", "dog"}))`, `subset(lengths, between(16, 512))`, or a function of your own.
///
/// In: values, one for each sample of the dataset: a `derived_index`, `shard_names(source)`, or a
/// `sample_list`. Out: positions. The predicate is called once for each sample, here, and not in the run (for
/// values that stand in runs, such as names of shards, once a run). Stands where samples are still the same
/// ones in every epoch: behind the source, `take`, `skip`, `split`, `fold`, `split_by_key` or another
/// `subset`. Shards keep their borders.
/// A sequencer; keeps every guarantee: unlike `filter`, which asks each sample when it is there, it knows how
/// many there are. Holds 4 bytes for each sample that is kept (8 from 2^32 samples on), 16 for each run of
/// neighbours where that is less; a position costs a look-up, with runs one that is logarithmic in their
/// number.
/// The fingerprint of the sequence takes in which samples are kept: a state of another predicate that keeps
/// the same ones fits.
/// Throws `error(errc::argument)` when the plan is opened: for values of another dataset or another number of
/// samples, and where positions change from epoch to epoch. Free for all threads.
///
///     auto label = derive(source, "label", [](const auto& s) { return label_of(s); }, "/data/train");
///     auto loader = source | subset(label, one_of({3, 5})) | shuffle(7) | batch(256);
inline constexpr detail::subset_fn subset{};

}  // namespace penstock::inline v0_1

// ---- penstock/order/take.hpp

namespace penstock::inline v0_1 {

/// The order of `take(n)`: the first positions of every epoch.
class take_order {
 public:
  struct bound {
    std::uint64_t epoch = 0;
    [[nodiscard]] constexpr position operator()(std::uint64_t index) const noexcept { return {epoch, index}; }
  };

  take_order(order_input in, std::uint64_t count)
      : size_(std::min(in.size, count)), places_(std::move(in.places)) {
    if (!in.starts || size_ == in.size) {
      starts_ = std::move(in.starts);
      return;
    }
    std::shared_ptr<std::vector<std::uint64_t>> cut(new std::vector<std::uint64_t>());
    for (const std::uint64_t start : *in.starts) {
      if (start >= size_) break;
      cut->push_back(start);
    }
    if (cut->empty()) cut->push_back(0);
    if (cut->back() != size_) cut->push_back(size_);
    starts_ = std::move(cut);
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] order_input output() const { return {size_, starts_, places_}; }
  [[nodiscard]] bound bind(std::uint64_t epoch) const noexcept { return {epoch}; }
  [[nodiscard]] position_range reach(position_range after) const noexcept { return after; }
  [[nodiscard]] std::optional<position> position_of(position upstream) const noexcept {
    if (upstream.index >= size_) return std::nullopt;
    return upstream;
  }

 private:
  std::uint64_t size_;
  std::shared_ptr<const std::vector<std::uint64_t>> starts_;
  std::shared_ptr<const source_places> places_;
};

/// The stage `take(n)`.
struct take_stage {
  using penstock_part = order_tag;
  static constexpr std::string_view stage_name = "take";
  static constexpr bool works_forward = true;
  static constexpr bool counts_only = true;

  [[nodiscard]] take_order make(order_input in) const { return take_order(std::move(in), count); }
  [[nodiscard]] std::string describe() const { return detail::text({"take(", count, ")"}); }
  template <class Hash>
  void fingerprint(Hash& h) const {
    h.add(stage_name, count);
  }

  std::uint64_t count = 0;
};

namespace detail {
struct take_fn {
  [[nodiscard]] constexpr take_stage operator()(std::uint64_t n) const noexcept { return {n}; }
};
}  // namespace detail

/// Keeps the first n positions of every epoch, counted over all ranks; all of them where there are fewer.
/// Behind `shard` and a decider each rank counts its own: what the others kept is not known there.
///
/// A sequencer; keeps every guarantee; costs nothing per sample; throws nothing; free for all threads. After
/// a shuffle the samples differ from epoch to epoch, before it they are the same ones.
///
///     auto smoke_test = source | shuffle(seed) | take(1000) | batch(8);
inline constexpr detail::take_fn take{};

}  // namespace penstock::inline v0_1

// ---- penstock/order/detail/weights.hpp

namespace penstock::inline v0_1::detail {

/// Weights as whole numbers, summed up, and a position to begin with for the draws of each of about as many
/// stretches as there are positions: a search is short then, and stays in one place of memory.
class running_weights {
 public:
  explicit running_weights(std::vector<std::uint64_t> before, std::uint64_t total)
      : before_(std::move(before)), total_(total), firsts_(before_.size()) {
    while (total_ >> shift_ > before_.size()) ++shift_;
    std::uint64_t at = 0;
    for (std::uint64_t stretch = 0; stretch <= ((total_ - 1) >> shift_) + 1; ++stretch) {
      while (at + 1 < before_.size() && before_[static_cast<std::size_t>(at + 1)] <= stretch << shift_) ++at;
      firsts_.add(at);
    }
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return before_.size(); }
  [[nodiscard]] std::uint64_t total() const noexcept { return total_; }
  /// The position whose weight has the number `drawn`, which is below the total, in it.
  [[nodiscard]] std::uint64_t operator()(std::uint64_t drawn) const noexcept {
    const std::uint64_t stretch = drawn >> shift_, first = firsts_[stretch];
    return first + last_not_above(before_.data() + first, firsts_[stretch + 1] - first + 1, drawn);
  }

 private:
  std::vector<std::uint64_t> before_;  // by position: the sum of the weights below it
  std::uint64_t total_;
  packed_numbers firsts_;
  std::uint32_t shift_ = 0;
};

/// 2^e as a double, for e that a double has.
[[nodiscard]] inline double power_of_two(int e) noexcept {
  double value = 1;
  for (; e > 0; --e) value *= 2;
  for (; e < 0; ++e) value /= 2;
  return value;
}

/// The weights of the positions before a stage; checked, and with a sum below 2^63.
template <sample_values Values>
[[nodiscard]] std::shared_ptr<const running_weights> run_up(const Values& values, const order_input& in) {
  using value_type = typename Values::value_type;
  constexpr bool floating = std::is_floating_point_v<value_type>;
  const source_places& places = *in.places;
  const auto refuse = [&](std::uint64_t i, std::string_view what) {
    throw error(errc::argument, {"the weight of sample ", places(i), " of ", values.describe(), " is ", what,
                                 "; weights are 0 or positive numbers"})
        .in_stage("weighted");
  };
  const auto weight = [&](std::uint64_t i) { return values[places(i)]; };
  [[maybe_unused]] double sum = 0;
  for (std::uint64_t i = 0; i < in.size; ++i) {
    const value_type w = weight(i);
    if constexpr (floating) {
      if (!(w >= 0) || w - w != 0) refuse(i, fraction_text(static_cast<double>(w)));
      sum += static_cast<double>(w);
    } else if constexpr (std::is_signed_v<value_type>) {
      if (w < 0) refuse(i, std::to_string(w));
    }
  }
  // Multiplying by a power of two loses no digit but those below 1. In two steps, each of which a double has.
  double first = 1, second = 1;
  if constexpr (floating) {
    if (!(sum - sum == 0)) {
      throw error(errc::argument, {"the weights of ", values.describe(),
                                   " add up to more than a double holds; divide them by a number"})
          .in_stage("weighted");
    }
    const int exponent = static_cast<int>(bits_of(sum) >> 52 & 2047) - 1022;  // sum < 2^exponent
    first = power_of_two((62 - exponent) / 2);
    second = power_of_two(62 - exponent - (62 - exponent) / 2);
  }
  std::vector<std::uint64_t> before;
  before.reserve(static_cast<std::size_t>(in.size));
  std::uint64_t total = 0;
  for (std::uint64_t i = 0; i < in.size; ++i) {
    before.push_back(total);
    const value_type w = weight(i);
    std::uint64_t whole = 0;
    if constexpr (floating) {
      whole = static_cast<std::uint64_t>(static_cast<double>(w) * first * second);
      if (w > 0 && whole == 0) whole = 1;
    } else {
      whole = static_cast<std::uint64_t>(w);
    }
    if (whole >= (std::uint64_t{1} << 63) - total) {
      throw error(errc::argument,
                  {"the weights of ", values.describe(), " add up to 2^63 or more; divide them by a number"})
          .in_stage("weighted");
    }
    total += whole;
  }
  if (total == 0 && in.size != 0) {
    throw error(errc::argument,
                {"the weights of ", values.describe(), " are all 0; there is nothing that could be drawn"})
        .in_stage("weighted");
  }
  return std::shared_ptr<const running_weights>(
      new const running_weights(std::move(before), std::max<std::uint64_t>(1, total)));
}

}  // namespace penstock::inline v0_1::detail

// ---- penstock/order/weighted.hpp

namespace penstock::inline v0_1 {

/// Options of `weighted`.
struct weighted_options {
  std::uint64_t draws = 0;  ///< positions in an epoch, up to 2^62; 0: as many as there are before it
};

/// The order of `weighted(values, seed)`: draws with replacement.
template <class = void>
class basic_weighted_order {
 public:
  static constexpr bool repeats = true;

  struct bound {
    std::uint64_t epoch = 0, seed = 0;
    std::shared_ptr<const detail::running_weights> weights;

    [[nodiscard]] position operator()(std::uint64_t index) const noexcept {
      return {epoch, (*weights)(rng(seed, epoch, index, stream).below(weights->total()))};
    }
  };

  basic_weighted_order(std::shared_ptr<const detail::running_weights> weights, std::uint64_t seed,
                       std::uint64_t draws)
      : seed_(seed), size_(draws), weights_(std::move(weights)) {
    if (size_ > most) {
      throw error(errc::argument, {size_, " draws are more than 2^62; write repeat() for epochs without end"})
          .in_stage("weighted");
    }
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] order_input output() const { return {size_, nullptr}; }
  [[nodiscard]] bound bind(std::uint64_t epoch) const { return {epoch, seed_, weights_}; }
  /// Where a sample is drawn first in the epoch; nothing where it is not. Goes through the draws.
  [[nodiscard]] std::optional<position> position_of(position upstream) const {
    if (upstream.index >= weights_->size()) return std::nullopt;
    const bound drawn = bind(upstream.epoch);
    for (std::uint64_t i = 0; i < size_; ++i)
      if (drawn(i).index == upstream.index) return position{upstream.epoch, i};
    return std::nullopt;
  }

 private:
  static constexpr std::uint64_t most = std::uint64_t{1} << 62;
  static constexpr std::uint64_t stream = 0x7765696768746564u;  // no stage of a chain has this one

  std::uint64_t seed_, size_;
  std::shared_ptr<const detail::running_weights> weights_;
};
using weighted_order = basic_weighted_order<>;

/// The stage `weighted(values, seed)`.
template <sample_values Values>
struct weighted_stage {
  using penstock_part = order_tag;
  static constexpr std::string_view stage_name = "weighted";
  static constexpr bool wants_places = true;
  static_assert(std::is_arithmetic_v<typename Values::value_type>, "penstock: weights are numbers");

  [[nodiscard]] weighted_order make(const order_input& in) const {
    detail::check_places(in, values.size(), values.dataset(), values.describe(), stage_name);
    return {detail::run_up(values, in), seed, draws == 0 || in.size == 0 ? in.size : draws};
  }
  [[nodiscard]] std::string describe() const {
    return detail::text({"weighted(", values.describe(), ", seed ", seed,
                         draws == 0 ? "" : ", draws " + std::to_string(draws), ")"});
  }
  template <class Hash>
  void fingerprint(Hash& h) const {
    h.add(stage_name, seed, draws, values.fingerprint());
  }

  Values values;
  std::uint64_t seed = 0;
  std::uint64_t draws = 0;
};

namespace detail {
struct weighted_fn {
  template <sample_values Values>
  [[nodiscard]] weighted_stage<Values> operator()(const Values& values, std::uint64_t seed,
                                                  const weighted_options& options = {}) const {
    return {values, seed, options.draws};
  }
  template <class T>
  [[nodiscard]] weighted_stage<sample_list<T>> operator()(std::vector<T> weights, std::uint64_t seed,
                                                          const weighted_options& options = {}) const {
    return {sample_list<T>(std::move(weights)), seed, options.draws};
  }
};
}  // namespace detail

/// Draws samples with replacement, each as often as its weight says: `weighted(weights, seed)`, or with
/// `{.draws = k}` for an epoch of k positions instead of one for each sample.
///
/// Draw i of epoch e depends on (seed, e, i) alone: nothing is advanced.
/// In: weights as values of `subset` are given, or a vector of them; finite, not negative, not all 0. Whole
/// numbers are exact; floating ones are taken as multiples of a 2^-62nd of their sum, and those that are not
/// 0 as one of these at least. Out: positions; what follows sees one shard, reads are single and random. It
/// takes the place of `shuffle`, and stands where `subset` may.
/// A sequencer; keeps every guarantee. Holds 16 bytes a sample at most, made when the plan is opened; a
/// position costs a random number and a short search (docs/order.md). `position_of` is where a
/// sample is drawn first, and goes through the draws.
/// Throws `error(errc::argument)` as `subset`, and for a weight that is negative, NaN or without end, with
/// its sample; for weights that are all 0, and whole ones whose sum is 2^63 or more. Free for all threads.
///
///     auto loader = source | weighted(weights, 7, {.draws = 100'000}) | shard(rank, world_size) | batch(256);
inline constexpr detail::weighted_fn weighted{};

}  // namespace penstock::inline v0_1

// ---- penstock/run/detail/bit_set.hpp

namespace penstock::inline v0_1::detail {

/// A set of numbers below a limit, a bit each. `set` may be called from many threads, the rest from one.
class bit_set {
 public:
  bit_set() = default;
  explicit bit_set(std::uint64_t limit) : words_(static_cast<std::size_t>((limit + 63) / 64), 0) {}

  /// Puts a number in; whether it was there before.
  bool set(std::uint64_t number) noexcept {
    const std::atomic_ref<std::uint64_t> word(words_[static_cast<std::size_t>(number / 64)]);
    const std::uint64_t bit = std::uint64_t{1} << (number % 64);
    return (word.fetch_or(bit, std::memory_order_relaxed) & bit) != 0;
  }
  /// The same where no other thread does.
  bool set_alone(std::uint64_t number) noexcept {
    std::uint64_t& word = words_[static_cast<std::size_t>(number / 64)];
    const std::uint64_t bit = std::uint64_t{1} << (number % 64);
    return (std::exchange(word, word | bit) & bit) != 0;
  }
  void clear() noexcept { words_.assign(words_.size(), 0); }
  [[nodiscard]] std::uint64_t count() const noexcept {
    std::uint64_t all = 0;
    for (const std::uint64_t word : words_) all += static_cast<std::uint64_t>(std::popcount(word));
    return all;
  }

  /// Calls `f(first, count)` for each run of neighbours, in order.
  template <class F>
  void for_each_run(F f) const {
    std::uint64_t begin = 0, length = 0;
    for (std::size_t i = 0; i < words_.size(); ++i) {
      if (words_[i] == 0 && length == 0) continue;
      for (unsigned bit = 0; bit < 64; ++bit) {
        if ((words_[i] >> bit & 1) != 0) {
          if (length++ == 0) begin = i * 64 + bit;
        } else if (length != 0) {
          f(begin, std::exchange(length, 0));
        }
      }
    }
    if (length != 0) f(begin, length);
  }

 private:
  std::vector<std::uint64_t> words_;
};

}  // namespace penstock::inline v0_1::detail

// ---- penstock/run/consumed.hpp

namespace penstock::inline v0_1 {

/// A run of samples of the source that were delivered: `count` of them from number `first` on.
struct consumed_range {
  std::uint64_t epoch = 0;  ///< of the source
  std::uint64_t first = 0, count = 0;
};

/// Calls `found(consumed_range)` for exactly the samples that were delivered before a state, to all ranks
/// together, in ascending order within each source epoch: which data went into this model.
///
/// Reads no sample; works for the plans of `prove`. One bit of memory a sample and a source epoch that an
/// epoch of the plan reaches. Throws `error(errc::state)` where the state is not of this plan.
template <class Source, class... Stages, class Found>
void for_each_consumed(const plan<Source, Stages...>& p, const state& where, Found found) {
  using plan_type = plan<Source, Stages...>;
  using parts = plan_parts<plan_type>;
  static_assert(parts::direct && elastic<plan_type> && !parts::has_cursor,
                "penstock: for_each_consumed needs an elastic plan with a batch, without filter, unbatch, "
                "shuffle_buffer or forward source");
  const bool same_data = where.dataset == p.source().fingerprint();
  if (!same_data || where.sequence != sequence_fingerprint(p))
    throw error(errc::state, {"this state is not of this plan: ",
                              detail::first_difference(where.plan, sequence_text(p), same_data)});
  direct_feed<plan_type> feed(p);
  const cut& c = feed.mine();
  const auto& orders = feed.orders();
  const std::uint64_t samples = p.source().size();
  if (samples == 0) return;
  typename direct_feed<plan_type>::binding bound;
  // One bit set for each source epoch that the plan's epoch at hand reaches.
  std::vector<std::pair<std::uint64_t, detail::bit_set>> epochs;
  const auto set_of = [&](std::uint64_t epoch) -> detail::bit_set& {
    for (auto& known : epochs)
      if (known.first == epoch) return known.second;
    return epochs.emplace_back(epoch, detail::bit_set(samples)).second;
  };
  const auto flush = [&] {
    std::sort(epochs.begin(), epochs.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [epoch, delivered] : epochs) {
      const std::uint64_t of = epoch;
      delivered.for_each_run([&](std::uint64_t first, std::uint64_t count) {
        found(consumed_range{of, first, count});
      });
    }
    epochs.clear();
  };
  for (std::uint64_t epoch = 0; epoch <= where.epoch; ++epoch) {
    const std::uint64_t steps = epoch < where.epoch ? feed.steps_per_epoch() : where.step;
    for (std::uint64_t step = 0; step < steps; ++step) {
      feed.seek(epoch, step);
      const position at = feed.upstream();
      const std::uint64_t first = at.index * c.global, count = c.count(at.index);
      orders.rebind(bound, at.epoch, first, first + count);
      for (std::uint64_t i = first; i < first + count; ++i) {
        const position sample = bound(i);
        set_of(sample.epoch).set_alone(sample.index);
      }
    }
    flush();
  }
}

}  // namespace penstock::inline v0_1

// ---- penstock/source/concepts.hpp

/// What a dataset is to a pipeline. A *source* is a value that is part of a plan: cheap to copy (share what
/// is large), it owns no thread and no open file. `open()` gives its *reader*, which a run owns and all its
/// workers share.
namespace penstock::inline v0_1 {

/// Stands for a sink when a concept asks whether something can be evaluated.
struct any_sink {
  template <class T>
  void operator()(T&&) const {}
};

/// A source of which any sample may be evaluated, from many threads, in any order.
///   element                       the type of what `evaluate` hands to its sink (may be unfinished)
///   size()                        samples per epoch
///   starts()                      where shards begin: ascending, first 0, last size(); null when there are no shards
///   source_name                   how it is called in messages
///   describe()                    one line
///   fingerprint()                 changes when the dataset changes
///   open() -> reader              with  reader::worker   what one worker keeps; default-constructible
///                                       reader.evaluate(position, worker&, sink) const   calls sink(element) once
/// A reader may also have:
///   key(index) -> std::string     the sample's key
///   will_need(index)              a hint that the sample is read soon; never throws
///   bytes_per_sample() -> u64     mean payload, for the choice of grains
template <class S>
concept indexed_source =
    std::copy_constructible<S> && std::same_as<typename S::penstock_part, source_tag> &&
    requires(const S& s, position p, typename S::reader::worker& w, const typename S::reader& r) {
      typename S::element;
      { s.size() } -> std::same_as<std::uint64_t>;
      { s.starts() } -> std::same_as<std::shared_ptr<const std::vector<std::uint64_t>>>;
      { s.describe() } -> std::convertible_to<std::string>;
      { s.fingerprint() } -> std::same_as<std::uint64_t>;
      { S::source_name } -> std::convertible_to<std::string_view>;
      { s.open() } -> std::same_as<typename S::reader>;
      r.evaluate(p, w, any_sink{});
    };

/// A source that can only be read from its beginning, by one thread at a time.
///   element                       a *whole* value (owns what it needs), default-constructible, movable; its memory is re-used
///   open() -> reader              with  reader.next(element&) -> bool    false at the end of the epoch
///                                       reader.rewind(epoch)             back to the beginning, for another epoch; may throw
/// A source whose `seekable` is true can be resumed; its reader also has
///   mark() -> source_mark         what was given of the shard at hand
///   seek(epoch, source_mark)      goes there; throws errc::state where there is no such place
template <class S>
concept forward_source =
    std::copy_constructible<S> && std::same_as<typename S::penstock_part, source_tag> && !indexed_source<S> &&
    requires(const S& s, typename S::reader& r, typename S::element& e) {
      { s.describe() } -> std::convertible_to<std::string>;
      { s.fingerprint() } -> std::same_as<std::uint64_t>;
      { S::source_name } -> std::convertible_to<std::string_view>;
      { s.open() } -> std::same_as<typename S::reader>;
      { r.next(e) } -> std::same_as<bool>;
      r.rewind(std::uint64_t{});
    };

/// A dataset: indexed, or read forward.
template <class S>
concept source = indexed_source<S> || forward_source<S>;

}  // namespace penstock::inline v0_1

// ---- penstock/storage/concepts.hpp

/// Where bytes come from. A *storage* is a value that is part of a plan: it names objects and holds options,
/// and has opened nothing. `connect()` makes a *session*: it owns descriptors, mappings or connections, is
/// shared by all workers of a run, and reads ranges of objects to where the caller wants them.
namespace penstock::inline v0_1 {

/// The number of an object in a session: the place of its name in `storage.names()`.
using object_id = std::uint32_t;

/// What tells that an object is still the same one: its size and a stamp (mtime in nanoseconds, or a hash of
/// the ETag).
struct object_signature {
  std::uint64_t size = 0;
  std::uint64_t stamp = 0;
  friend auto operator<=>(const object_signature&, const object_signature&) = default;
};

/// One range of one object and where its bytes shall go.
struct read_request {
  object_id object = 0;
  std::uint64_t offset = 0;
  mutable_bytes into;
};

/// What a run reads through. All members may be called from many threads at once.
///   size(id)                        bytes in the object; errc::io names the object when it cannot be opened
///   signature(id)                   its size and stamp
///   read(id, offset, into)          blocks until all of `into` is filled, or throws; a range beyond the end is errc::format
///                                   that names object and offset
///   read_many(requests, done)       starts all the reads, in any order, adjacent ones coalesced where that pays;
///                                   `done(i, error)` is called once for each request, from any thread, maybe before this call
///                                   returns; `error` is null on success. `requests` must live until the last call
///   will_need(id, offset, size)     a hint: these bytes will be read soon; never throws, may do nothing
///   confirm(id)                     only where views may turn out to be no good; see `confirm`
///   views                           whether `view(id, offset, size)` gives bytes that live as long as the session
template <class S>
concept storage_session =
    requires(S& s, object_id id, std::uint64_t n, mutable_bytes into, std::span<const read_request> requests,
             void (*done)(std::size_t, std::exception_ptr)) {
      { s.size(id) } -> std::same_as<std::uint64_t>;
      { s.signature(id) } -> std::same_as<object_signature>;
      s.read(id, n, into);
      s.read_many(requests, done);
      s.will_need(id, n, n);
      { S::views } -> std::convertible_to<bool>;
    };

/// A session that can show bytes in place: mapped files, memory.
template <class S>
concept viewing_session = storage_session<S> && S::views && requires(S& s, object_id id, std::uint64_t n) {
  { s.view(id, n, n) } -> std::same_as<bytes_view>;
};

/// Asks a session whose views may turn out to be no good, such as `mapped_file` with `guarded`, whether those
/// of an object were: it throws where they were not. Nothing for other sessions. Sources ask when a sample
/// has been used, and also when using it failed, since bytes that were lost are the better reason.
template <storage_session S>
void confirm(const S& session, object_id id) {
  if constexpr (requires { session.confirm(id); }) session.confirm(id);
}

/// A named place with objects in it, as part of a plan: cheap to copy, nothing opened.
///   names()      the objects, in order; brace patterns are expanded
///   connect()    a session for them
template <class S>
concept storage = std::copy_constructible<S> && requires(const S& s) {
  typename S::session;
  requires storage_session<typename S::session>;
  { s.names() } -> std::convertible_to<std::span<const std::string>>;
  { s.connect() } -> std::same_as<typename S::session>;
};

/// A storage whose names are paths of this machine's file system: what belongs to an object may be kept in a
/// file beside it.
template <class S>
concept local_storage = storage<S> && requires { requires bool(S::names_are_paths); };

}  // namespace penstock::inline v0_1

// ---- penstock/source/detail/output_file.hpp

namespace penstock::inline v0_1 {
namespace detail::tar {

/// A descriptor that is closed when it goes.
class owned_descriptor {
 public:
  owned_descriptor() = default;
  explicit owned_descriptor(int value) noexcept : value_(value) {}
  owned_descriptor(owned_descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  owned_descriptor& operator=(owned_descriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~owned_descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  [[nodiscard]] int get() const noexcept { return value_; }
  [[nodiscard]] int release() noexcept { return std::exchange(value_, -1); }

 private:
  int value_ = -1;
};

/// A file that appears under its name when it is complete, or not at all.
///
/// Written under a temporary name in the same folder; `commit` flushes it to the disk and renames it. Without
/// a commit the temporary file is removed.
template <class = void>
class basic_output_file {
 public:
  explicit basic_output_file(std::string path)
      : path_(std::move(path)), temporary_(path_ + ".tmp-" + unique_ending()) {
    opened_ = owned_descriptor(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (opened_.get() < 0) throw failure("create");
  }
  basic_output_file(basic_output_file&& other) noexcept
      : path_(std::move(other.path_)),
        temporary_(std::exchange(other.temporary_, {})),
        opened_(std::move(other.opened_)),
        pending_(std::move(other.pending_)),
        size_(other.size_) {}
  basic_output_file& operator=(basic_output_file&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(temporary_, other.temporary_);
    std::swap(opened_, other.opened_);
    std::swap(pending_, other.pending_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~basic_output_file() {
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
  }

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

  void write(bytes_view bytes) {
    size_ += bytes.size();
    if (bytes.size() < together - pending_.size()) {
      if (pending_.capacity() == 0) {
        pending_.resize_for_overwrite(together);
        pending_.clear();
      }
      pending_.append(bytes);
      return;
    }
    flush();
    write_out(bytes);
  }

  /// Makes the file complete and visible. What it then is.
  object_signature commit() {
    flush();
    struct stat status {};
    if (::fsync(opened_.get()) != 0 || ::fstat(opened_.get(), &status) != 0) throw failure("write");
    if (::close(opened_.release()) != 0) throw failure("write");
    if (::rename(temporary_.c_str(), path_.c_str()) != 0)
      throw failure("rename the finished file to its name");
    temporary_.clear();
    return {size_, static_cast<std::uint64_t>(status.st_mtim.tv_sec) * 1'000'000'000u +
                       static_cast<std::uint64_t>(status.st_mtim.tv_nsec)};
  }

 private:
  static constexpr std::size_t together = std::size_t{1} << 20;

  static std::string unique_ending() {
    static std::atomic<std::uint64_t> count{0};
    const auto now = static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
    const std::uint64_t drawn = mix64(now ^ mix64(count.fetch_add(1) + 1));
    return detail::text({::getpid(), "-", drawn});
  }

  void flush() {
    write_out(pending_.view());
    pending_.clear();
  }

  void write_out(bytes_view bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(opened_.get(), bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) throw failure("write");
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
  }

  [[nodiscard]] error failure(std::string_view doing) const {
    const int code = errno;
    return error(errc::io, {"cannot ", doing, ": ", std::generic_category().message(code)}).in_file(path_);
  }

  std::string path_;
  std::string temporary_;
  owned_descriptor opened_;
  buffer pending_;
  std::uint64_t size_ = 0;
};
using output_file = basic_output_file<>;

}  // namespace detail::tar
}  // namespace penstock::inline v0_1

// ---- penstock/source/detail/shard_index.hpp

/// The index of a shard: which samples it has, and where their members lie. One layout in memory and on disk,
/// described in docs/index.md: fixed-width little-endian tables, read in place.
namespace penstock::inline v0_1 {
namespace detail::tar {

/// A hash of 64 bits over bytes, in four lanes so that it keeps up with memory. It notices accidents, not
/// attackers.
[[nodiscard]] inline std::uint64_t checksum(bytes_view bytes) noexcept {
  constexpr std::uint64_t a = 0x9e3779b97f4a7c15u;
  constexpr std::uint64_t b = 0xbf58476d1ce4e5b9u;
  std::array<std::uint64_t, 4> lanes{1, 2, 3, 4};
  const std::size_t size = bytes.size();
  std::size_t at = 0;
  for (; size - at >= 32; at += 32) {
    for (std::size_t i = 0; i < 4; ++i) {
      lanes[i] = std::rotl(lanes[i] ^ (load_little<std::uint64_t>(bytes.data() + at + 8 * i) * a), 29) * b;
    }
  }
  std::uint64_t sum = size;
  for (const std::uint64_t lane : lanes) sum = mix64(sum ^ lane);
  for (; at < size; at += 8) {
    std::array<std::byte, 8> last{};
    std::memcpy(last.data(), bytes.data() + at, size - at < 8 ? size - at : 8);
    sum = mix64(sum ^ load_little<std::uint64_t>(last.data()));
  }
  return sum;
}

/// The first 128 bytes: what a plan needs to know of a shard.
struct index_header {
  static constexpr std::size_t size = 128;
  static constexpr std::string_view magic = "PENSTIDX";
  static constexpr std::uint32_t version = 1;

  std::uint64_t shard_size = 0;
  std::uint64_t shard_stamp = 0;
  std::uint64_t samples = 0;
  std::uint64_t members = 0;
  std::uint64_t suffixes = 0;
  std::uint64_t suffix_bytes = 0;
  std::uint64_t key_bytes = 0;
  std::uint64_t payload = 0;  ///< bytes in all members
  std::uint64_t content = 0;  ///< checksum of everything after the header

  [[nodiscard]] std::uint64_t members_at() const noexcept { return size + 8 * (samples + 1); }
  [[nodiscard]] std::uint64_t suffix_ends_at() const noexcept { return members_at() + 16 * members; }
  [[nodiscard]] std::uint64_t suffixes_at() const noexcept { return suffix_ends_at() + 4 * suffixes; }
  [[nodiscard]] std::uint64_t keys_at() const noexcept { return suffixes_at() + suffix_bytes; }
  [[nodiscard]] std::uint64_t file_size() const noexcept { return keys_at() + key_bytes; }

  void store(std::byte* to) const noexcept {
    std::memset(to, 0, size);
    std::memcpy(to, magic.data(), magic.size());
    store_little<std::uint32_t>(to + 8, version);
    store_little<std::uint32_t>(to + 12, static_cast<std::uint32_t>(size));
    std::byte* field = to + 16;
    for (const std::uint64_t value :
         {shard_size, shard_stamp, samples, members, suffixes, suffix_bytes, key_bytes, payload, content}) {
      store_little<std::uint64_t>(field, value);
      field += 8;
    }
    store_little<std::uint64_t>(to + size - 8, checksum({to, size - 8}));
  }

  /// Nothing where the bytes are no header of this version, or were damaged.
  [[nodiscard]] static std::optional<index_header> load(bytes_view bytes) noexcept {
    if (bytes.size() < size || std::memcmp(bytes.data(), magic.data(), magic.size()) != 0)
      return std::nullopt;
    const std::byte* from = bytes.data();
    if (load_little<std::uint32_t>(from + 8) != version || load_little<std::uint32_t>(from + 12) != size)
      return std::nullopt;
    if (load_little<std::uint64_t>(from + size - 8) != checksum(bytes.first(size - 8))) return std::nullopt;
    index_header h;
    const std::byte* field = from + 16;
    for (std::uint64_t* value : {&h.shard_size, &h.shard_stamp, &h.samples, &h.members, &h.suffixes,
                                 &h.suffix_bytes, &h.key_bytes, &h.payload, &h.content}) {
      *value = load_little<std::uint64_t>(field);
      field += 8;
    }
    constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
    if (h.samples >= most || h.members > most || h.suffixes > (1u << 24) || h.suffix_bytes > most ||
        h.key_bytes > most) {
      return std::nullopt;
    }
    // The tables are looked at when a sample is asked for, which nobody does where there are none.
    const bool nothing = h.members == 0 && h.key_bytes == 0 && h.payload == 0;
    if (h.samples > h.members || (h.samples == 0 && !nothing)) return std::nullopt;
    return h;
  }
};

/// The tables of an index, in place. The bytes belong to somebody else.
class shard_index {
 public:
  shard_index() = default;

  /// Checks everything once, so that nothing has to be checked when a sample is read. Nothing where the bytes
  /// are no such index.
  [[nodiscard]] static std::optional<shard_index> over(bytes_view bytes) noexcept {
    const auto header = index_header::load(bytes);
    if (!header || bytes.size() != header->file_size()) return std::nullopt;
    if (checksum(bytes.subspan(index_header::size)) != header->content) return std::nullopt;
    shard_index index;
    index.header_ = *header;
    index.base_ = bytes.data();
    index.members_ = bytes.data() + header->members_at();
    index.suffix_ends_ = bytes.data() + header->suffix_ends_at();
    index.suffixes_ = reinterpret_cast<const char*>(bytes.data() + header->suffixes_at());
    index.keys_ = reinterpret_cast<const char*>(bytes.data() + header->keys_at());
    if (!index.consistent()) return std::nullopt;
    return index;
  }

  [[nodiscard]] const index_header& header() const noexcept { return header_; }
  [[nodiscard]] std::uint32_t first_member(std::uint64_t sample) const noexcept {
    return load_little<std::uint32_t>(base_ + index_header::size + 8 * sample);
  }
  [[nodiscard]] std::uint32_t end_member(std::uint64_t sample) const noexcept {
    return first_member(sample + 1);
  }
  [[nodiscard]] std::string_view key(std::uint64_t sample) const noexcept {
    const std::uint32_t begin = key_begin(sample);
    return {keys_ + begin, key_begin(sample + 1) - begin};
  }
  [[nodiscard]] std::uint64_t offset(std::uint32_t member) const noexcept {
    return (place(member) >> 24) * 512;
  }
  [[nodiscard]] std::uint64_t size(std::uint32_t member) const noexcept {
    return load_little<std::uint64_t>(members_ + 16 * std::uint64_t{member} + 8);
  }
  [[nodiscard]] std::uint64_t end(std::uint32_t member) const noexcept {
    return offset(member) + size(member);
  }
  [[nodiscard]] std::uint32_t suffix_number(std::uint32_t member) const noexcept {
    return static_cast<std::uint32_t>(place(member) & 0xffffffu);
  }
  [[nodiscard]] std::string_view suffix(std::uint32_t member) const noexcept {
    const std::uint32_t number = suffix_number(member);
    const std::uint32_t begin = number == 0 ? 0 : suffix_end(number - 1);
    return {suffixes_ + begin, suffix_end(number) - begin};
  }

 private:
  [[nodiscard]] std::uint64_t place(std::uint32_t member) const noexcept {
    return load_little<std::uint64_t>(members_ + 16 * std::uint64_t{member});
  }
  [[nodiscard]] std::uint32_t key_begin(std::uint64_t sample) const noexcept {
    return load_little<std::uint32_t>(base_ + index_header::size + 8 * sample + 4);
  }
  [[nodiscard]] std::uint32_t suffix_end(std::uint32_t number) const noexcept {
    return load_little<std::uint32_t>(suffix_ends_ + 4 * std::uint64_t{number});
  }

  [[nodiscard]] bool consistent() const noexcept {
    if (first_member(0) != 0 || key_begin(0) != 0) return false;
    for (std::uint64_t i = 0; i < header_.samples; ++i) {
      if (first_member(i) >= first_member(i + 1) || key_begin(i) > key_begin(i + 1)) return false;
    }
    if (first_member(header_.samples) != header_.members || key_begin(header_.samples) != header_.key_bytes)
      return false;
    std::uint32_t before = 0;
    for (std::uint32_t i = 0; i < header_.suffixes; ++i) {
      if (suffix_end(i) < before) return false;
      before = suffix_end(i);
    }
    if (before != header_.suffix_bytes) return false;
    std::uint64_t end = 0, payload = 0;
    for (std::uint32_t i = 0; i < header_.members; ++i) {
      if (suffix_number(i) >= header_.suffixes || offset(i) < end || offset(i) > header_.shard_size ||
          size(i) > header_.shard_size - offset(i)) {
        return false;
      }
      end = offset(i) + size(i);
      payload += size(i);
    }
    return payload == header_.payload;
  }

  index_header header_;
  const std::byte* base_ = nullptr;
  const std::byte* members_ = nullptr;
  const std::byte* suffix_ends_ = nullptr;
  const char* suffixes_ = nullptr;
  const char* keys_ = nullptr;
};

}  // namespace detail::tar
}  // namespace penstock::inline v0_1

// ---- penstock/source/detail/index_file.hpp

/// Index files beside their shards.
namespace penstock::inline v0_1 {
namespace detail::tar {

template <class = void>
[[nodiscard]] std::string index_path(const std::string& shard) {
  return shard + ".penstock-index";
}

enum class index_state { good, missing, unreadable, damaged, stale };

[[nodiscard]] inline const char* to_text(index_state state) noexcept {
  switch (state) {
    case index_state::good:
      return "is in order";
    case index_state::missing:
      return "does not exist";
    case index_state::unreadable:
      return "cannot be read";
    case index_state::damaged:
      return "is damaged, or was written by another version";
    case index_state::stale:
      return "was made for another state of the shard";
  }
  return "";
}

inline bool read_all(int from, mutable_bytes into) noexcept {
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t got = ::pread(from, into.data() + done, into.size() - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += static_cast<std::size_t>(got);
  }
  return true;
}

/// An open index file and its size.
struct opened_index {
  owned_descriptor number;
  std::uint64_t size = 0;
  index_state state = index_state::good;

  explicit opened_index(const std::string& path)
      : number(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    struct stat status {};
    if (number.get() < 0) {
      state = errno == ENOENT || errno == ENOTDIR ? index_state::missing : index_state::unreadable;
    } else if (::fstat(number.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
      state = index_state::unreadable;
    } else {
      size = static_cast<std::uint64_t>(status.st_size);
    }
  }
};

/// Reads the header of the index beside `shard`, and nothing else of it.
template <class = void>
[[nodiscard]] std::pair<index_state, index_header> peek_index(const std::string& shard,
                                                              object_signature expected) {
  const opened_index file_of_index(index_path(shard));
  if (file_of_index.state != index_state::good) return {file_of_index.state, {}};
  std::array<std::byte, index_header::size> head;
  if (file_of_index.size < head.size() || !read_all(file_of_index.number.get(), head))
    return {index_state::damaged, {}};
  const auto header = index_header::load(head);
  if (!header || header->file_size() != file_of_index.size) return {index_state::damaged, {}};
  if (object_signature{header->shard_size, header->shard_stamp} != expected)
    return {index_state::stale, *header};
  return {index_state::good, *header};
}

/// An index with what owns its bytes: a mapping, or a buffer shared with the plan.
template <class = void>
class basic_loaded_index {
 public:
  /// Maps the index beside `shard`, and checks all of it; nothing where it is not in order. Where there are
  /// too many mappings already, it is read instead.
  [[nodiscard]] static std::unique_ptr<basic_loaded_index> from_file(const std::string& shard) {
    const opened_index file_of_index(index_path(shard));
    if (file_of_index.state != index_state::good || file_of_index.size < index_header::size) return nullptr;
    std::unique_ptr<basic_loaded_index> made(new basic_loaded_index);
    const auto size = static_cast<std::size_t>(file_of_index.size);
    void* where = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file_of_index.number.get(), 0);
    if (where != MAP_FAILED) {
      const bytes_view mapped(static_cast<const std::byte*>(where), size);
      made->mapped_ = mapped;
      return checked(std::move(made), mapped);
    }
    std::shared_ptr<buffer> copy(new buffer(size));
    if (!read_all(file_of_index.number.get(), copy->span())) return nullptr;
    return from_buffer(std::move(copy));
  }

  [[nodiscard]] static std::unique_ptr<basic_loaded_index> from_buffer(std::shared_ptr<const buffer> bytes) {
    std::unique_ptr<basic_loaded_index> made(new basic_loaded_index);
    const bytes_view view = bytes->view();
    made->owned_ = std::move(bytes);
    return checked(std::move(made), view);
  }

  basic_loaded_index(const basic_loaded_index&) = delete;
  basic_loaded_index& operator=(const basic_loaded_index&) = delete;
  ~basic_loaded_index() {
    if (!mapped_.empty()) ::munmap(const_cast<std::byte*>(mapped_.data()), mapped_.size());
  }

  [[nodiscard]] const shard_index& tables() const noexcept { return tables_; }

 private:
  basic_loaded_index() = default;

  static std::unique_ptr<basic_loaded_index> checked(std::unique_ptr<basic_loaded_index> made,
                                                     bytes_view bytes) {
    const auto tables = shard_index::over(bytes);
    if (!tables) return nullptr;
    made->tables_ = *tables;
    return made;
  }

  shard_index tables_;
  bytes_view mapped_;
  std::shared_ptr<const buffer> owned_;
};
using loaded_index = basic_loaded_index<>;

/// Keeps an index beside its shard. False where that is not possible, for example in a folder that may not be
/// written.
template <class = void>
bool keep_index(const std::string& shard, bytes_view bytes) noexcept {
  try {
    output_file out(index_path(shard));
    out.write(bytes);
    out.commit();
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace detail::tar
}  // namespace penstock::inline v0_1

// ---- penstock/source/detail/values_file.hpp

/// Files of one value a sample; the layout is in docs/index.md.
namespace penstock::inline v0_1 {
namespace detail {

enum class value_kind : std::uint32_t { none = 0, whole = 1, natural = 2, floating = 3, text = 4 };

/// The first 128 bytes.
struct values_header {
  static constexpr std::size_t size = 128;
  static constexpr std::string_view magic = "PENSTVAL";
  static constexpr std::uint32_t version = 1;

  value_kind kind = value_kind::none;
  std::uint64_t dataset = 0;
  std::uint64_t samples = 0;
  std::uint64_t name_bytes = 0;
  std::uint64_t texts = 0;
  std::uint64_t text_bytes = 0;
  std::uint64_t content = 0;  ///< checksum of everything after the header

  [[nodiscard]] std::uint64_t text_ends_at() const noexcept { return size + 8 * samples; }
  [[nodiscard]] std::uint64_t texts_at() const noexcept { return text_ends_at() + 8 * texts; }
  [[nodiscard]] std::uint64_t name_at() const noexcept { return texts_at() + text_bytes; }
  [[nodiscard]] std::uint64_t file_size() const noexcept { return name_at() + name_bytes; }

  [[nodiscard]] std::array<std::byte, size> bytes() const noexcept {
    std::array<std::byte, size> to{};
    std::memcpy(to.data(), magic.data(), magic.size());
    store_little<std::uint32_t>(to.data() + 8, version);
    store_little<std::uint32_t>(to.data() + 12, static_cast<std::uint32_t>(size));
    store_little<std::uint32_t>(to.data() + 16, static_cast<std::uint32_t>(kind));
    std::byte* field = to.data() + 24;
    for (const std::uint64_t value : {dataset, samples, name_bytes, texts, text_bytes, content}) {
      store_little<std::uint64_t>(field, value);
      field += 8;
    }
    store_little<std::uint64_t>(to.data() + size - 8, tar::checksum({to.data(), size - 8}));
    return to;
  }
};

/// Why a file of values cannot be used.
enum class values_fault { none, missing, foreign, newer, damaged };

/// A file of values, mapped or in memory, checked once as a whole. What it says of itself holds then,
/// whatever the bytes were.
template <class = void>
class basic_values_file {
 public:
  struct outcome {
    std::shared_ptr<const basic_values_file> file;  ///< null where there is a fault
    values_fault fault = values_fault::none;
    error why{errc::missing, ""};
  };

  /// Maps the file at `path` and checks it.
  [[nodiscard]] static outcome open(const std::string& path) {
    const tar::owned_descriptor opened(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (opened.get() < 0) {
      const int code = errno;
      const bool missing = code == ENOENT || code == ENOTDIR;
      error why(errc::io, {"cannot open the derived index: ", std::generic_category().message(code),
                           missing ? "; derive(...) makes it" : ""});
      why.in_file(path);
      if (!missing) throw error(why);
      return {nullptr, values_fault::missing, why};
    }
    struct stat status {};
    if (::fstat(opened.get(), &status) != 0 || !S_ISREG(status.st_mode))
      throw error(errc::io, "the derived index is not a regular file; name a file in a folder").in_file(path);
    const auto size = static_cast<std::size_t>(status.st_size);
    std::shared_ptr<basic_values_file> made(new basic_values_file);
    made->path_ = path;
    if (size != 0) {
      void* const where = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, opened.get(), 0);
      if (where == MAP_FAILED) {
        const int code = errno;
        throw error(errc::io, {"cannot map the derived index: ", std::generic_category().message(code)})
            .in_file(path);
      }
      made->mapped_ = {static_cast<const std::byte*>(where), size};
      made->bytes_ = made->mapped_;
    }
    return checked(std::move(made));
  }

  /// The same of bytes in memory; `path` is for messages.
  [[nodiscard]] static outcome over(buffer bytes, std::string path) {
    std::shared_ptr<basic_values_file> made(new basic_values_file);
    made->path_ = std::move(path);
    made->owned_ = std::move(bytes);
    made->bytes_ = made->owned_.view();
    return checked(std::move(made));
  }

  basic_values_file(const basic_values_file&) = delete;
  basic_values_file& operator=(const basic_values_file&) = delete;
  ~basic_values_file() {
    if (!mapped_.empty()) ::munmap(const_cast<std::byte*>(mapped_.data()), mapped_.size());
  }

  [[nodiscard]] const values_header& header() const noexcept { return header_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::uint64_t word(std::uint64_t i) const noexcept {
    return load_little<std::uint64_t>(bytes_.data() + values_header::size + 8 * i);
  }
  [[nodiscard]] std::string_view text(std::uint64_t number) const noexcept {
    const std::uint64_t begin = number == 0 ? 0 : text_end(number - 1);
    return text_of(bytes_.subspan(static_cast<std::size_t>(header_.texts_at() + begin),
                                  static_cast<std::size_t>(text_end(number) - begin)));
  }
  [[nodiscard]] std::string_view name() const noexcept {
    return text_of(bytes_.subspan(static_cast<std::size_t>(header_.name_at())));
  }

 private:
  basic_values_file() = default;

  [[nodiscard]] std::uint64_t text_end(std::uint64_t number) const noexcept {
    return load_little<std::uint64_t>(bytes_.data() + header_.text_ends_at() + 8 * number);
  }

  [[nodiscard]] static outcome checked(std::shared_ptr<basic_values_file> made) {
    outcome result;
    const auto refuse = [&](values_fault fault, std::uint64_t offset, std::initializer_list<piece> what) {
      result.fault = fault;
      result.why = error(errc::format, what);
      result.why.in_file(made->path_).at_offset(offset);
    };
    made->check(refuse);
    if (result.fault == values_fault::none) result.file = std::move(made);
    return result;
  }

  template <class Refuse>
  void check(const Refuse& refuse) {
    using fault = values_fault;
    constexpr std::string_view again = "; delete it, and derive(...) makes it again";
    const std::uint64_t there = bytes_.size();
    const auto short_by = [&](std::uint64_t wanted) {
      refuse(fault::damaged, there,
             {"the derived index has ", there, " bytes and should have ", wanted, again});
    };
    const std::size_t known = bytes_.size() < 8 ? bytes_.size() : 8;
    if (known != 0 && std::memcmp(bytes_.data(), values_header::magic.data(), known) != 0)
      return refuse(
          fault::foreign, 0,
          {"this is no derived index, which begins with ", values_header::magic, "; name another file"});
    if (there < values_header::size) return short_by(values_header::size);
    const auto number = [this](std::size_t at) { return load_little<std::uint64_t>(bytes_.data() + at); };
    const auto version = load_little<std::uint32_t>(bytes_.data() + 8);
    if (version > values_header::version) {
      return refuse(fault::newer, 8,
                    {"the derived index is of version ", version, ", and this program reads version ",
                     values_header::version, "; use a newer one, or name another file"});
    }
    values_header& h = header_;
    h.kind = static_cast<value_kind>(load_little<std::uint32_t>(bytes_.data() + 16));
    h.dataset = number(24);
    h.samples = number(32);
    h.name_bytes = number(40);
    h.texts = number(48);
    h.text_bytes = number(56);
    h.content = number(64);
    const auto written = h.bytes();
    for (std::size_t i = 0; i < written.size(); ++i) {
      if (written[i] != bytes_[i] && i < values_header::size - 8) {
        return refuse(fault::damaged, i, {"the head of the derived index is damaged", again});
      }
      if (written[i] != bytes_[i]) {
        return refuse(fault::damaged, values_header::size - 8,
                      {"the head of the derived index does not have its checksum", again});
      }
    }
    constexpr std::uint64_t most = std::uint64_t{1} << 58;  // so that no sum of sizes overflows
    const bool texts = h.kind == value_kind::text;
    if (h.kind == value_kind::none || h.kind > value_kind::text)
      return refuse(fault::damaged, 16, {"the derived index has values of an unknown kind", again});
    if (h.samples > most || h.texts > most || h.text_bytes > most || h.name_bytes > most ||
        (!texts && (h.texts != 0 || h.text_bytes != 0)))
      return refuse(fault::damaged, 32, {"the head of the derived index has impossible numbers", again});
    if (h.file_size() != there) return short_by(h.file_size());
    if (tar::checksum(bytes_.subspan(values_header::size)) != h.content)
      return refuse(fault::damaged, values_header::size,
                    {"what follows the head of the derived index does not have its checksum", again});
    std::uint64_t end = 0;
    for (std::uint64_t t = 0; t < h.texts; ++t) {
      if (text_end(t) < end || text_end(t) > h.text_bytes)
        return refuse(fault::damaged, h.text_ends_at() + 8 * t,
                      {"a text of the derived index ends where it cannot", again});
      end = text_end(t);
    }
    if (end != h.text_bytes)
      return refuse(fault::damaged, h.texts_at(), {"texts of the derived index belong to no value", again});
    for (std::uint64_t i = 0; texts && i < h.samples; ++i) {
      if (word(i) >= h.texts)
        return refuse(fault::damaged, values_header::size + 8 * i,
                      {"a value of the derived index is text ", word(i), " of ", h.texts, again});
    }
  }

  values_header header_;
  bytes_view bytes_, mapped_;
  buffer owned_;
  std::string path_;
};
using values_file = basic_values_file<>;

/// Writes a file of values; it is whole or not there. `texts` is empty but for texts, whose numbers are then
/// the values.
template <class = void>
void write_values(const std::string& path, values_header header, std::string_view name,
                  std::span<const std::uint64_t> values, std::span<const std::string> texts) {
  header.samples = values.size();
  header.name_bytes = name.size();
  header.texts = texts.size();
  header.text_bytes = 0;
  for (const std::string& one : texts) header.text_bytes += one.size();
  buffer rest(static_cast<std::size_t>(header.file_size() - values_header::size));
  std::byte* to = rest.data();
  const auto put = [&to](std::uint64_t value) {
    store_little(to, value);
    to += sizeof(value);
  };
  const auto copy = [&to](std::string_view text) {
    if (!text.empty()) std::memcpy(to, text.data(), text.size());
    to += text.size();
  };
  for (const std::uint64_t value : values) put(value);
  std::uint64_t end = 0;
  for (const std::string& one : texts) put(end += one.size());
  for (const std::string& one : texts) copy(one);
  copy(name);
  header.content = tar::checksum(rest.view());
  tar::output_file out(path);
  out.write(header.bytes());
  out.write(rest.view());
  out.commit();
}

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/source/derived_index.hpp

namespace penstock::inline v0_1 {

namespace detail {

template <class T>
inline constexpr value_kind kind_of = value_kind::none;
template <>
inline constexpr value_kind kind_of<std::int64_t> = value_kind::whole;
template <>
inline constexpr value_kind kind_of<std::uint64_t> = value_kind::natural;
template <>
inline constexpr value_kind kind_of<double> = value_kind::floating;
template <>
inline constexpr value_kind kind_of<std::string> = value_kind::text;

[[nodiscard]] inline std::string_view spelled(value_kind kind) noexcept {
  switch (kind) {
    case value_kind::whole:
      return "std::int64_t";
    case value_kind::natural:
      return "std::uint64_t";
    case value_kind::floating:
      return "double";
    case value_kind::text:
      return "std::string";
    case value_kind::none:
      break;
  }
  return "nothing";
}

}  // namespace detail

/// What a derived index has a value of for each sample.
template <class T>
concept derived_value = detail::kind_of<T> != detail::value_kind::none;

/// How `derive` came by an index.
enum class derived_from {
  file,   ///< there was one of this dataset and name
  none,   ///< there was none, and it was made
  stale,  ///< there was one of another state of the dataset, and it was made again
  damage  ///< there was a damaged one, and it was made again
};

/// A value for each sample of a dataset, in a file that is mapped: what `subset`, `split_by_key`,
/// `class_balanced` and `weighted` choose by. `derive` (run/derive.hpp) makes it from the samples,
/// `open_derived` opens one.
///
/// `T` is `std::int64_t`, `std::uint64_t`, `double` or `std::string`; values of texts are views into the file
/// and live as long as any copy of the index. A value; copies share the mapping, which takes 8 bytes a
/// sample, and for texts each different one once. A look-up is one load. Free for all threads. While it is
/// open another program must not write to the file in place; replacing it is safe.
/// Source of the format: docs/index.md.
template <derived_value T>
class derived_index {
 public:
  using value_type = std::conditional_t<std::same_as<T, std::string>, std::string_view, T>;

  /// Takes a file that holds values of this type.
  explicit derived_index(std::shared_ptr<const detail::values_file> file,
                         derived_from origin = derived_from::file)
      : file_(std::move(file)), origin_(origin) {
    const detail::value_kind kind = file_->header().kind;
    if (kind != detail::kind_of<T>) {
      throw error(errc::format,
                  {"the derived index has values of ", detail::spelled(kind), " and not of ",
                   detail::spelled(detail::kind_of<T>), "; write derived_index<", detail::spelled(kind), ">"})
          .in_file(file_->path())
          .at_offset(16);
    }
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return file_->header().samples; }
  /// The value of sample i, which must be below `size()`.
  [[nodiscard]] value_type operator[](std::uint64_t i) const noexcept {
    const std::uint64_t word = file_->word(i);
    if constexpr (std::same_as<T, std::string>)
      return file_->text(word);
    else
      return std::bit_cast<T>(word);
  }
  /// What `derive` was told that the values are.
  [[nodiscard]] std::string_view name() const noexcept { return file_->name(); }
  [[nodiscard]] const std::string& path() const noexcept { return file_->path(); }
  /// Fingerprint of the dataset that it was made of.
  [[nodiscard]] std::uint64_t dataset() const noexcept { return file_->header().dataset; }
  /// Of dataset, name and values.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept {
    class fingerprint h;
    h.add("derived_index", file_->header().kind, dataset(), size(), file_->header().content);
    return h.value();
  }
  [[nodiscard]] std::string describe() const { return detail::text({"index '", name(), "'"}); }
  /// Whether it was there or had to be made.
  [[nodiscard]] derived_from origin() const noexcept { return origin_; }

 private:
  std::shared_ptr<const detail::values_file> file_;
  derived_from origin_;
};

/// Opens an index that `derive` made, without its dataset at hand. Reads and checks all of it.
///
/// Throws `errc::io` where the file cannot be opened; `errc::format`, with file and offset, where it is none,
/// is cut or damaged, is of a newer version, or has values of another type. That it is one of the dataset is
/// checked where it is used.
///
///     const auto label = open_derived<std::int64_t>("/data/train/label.penstock-values");
template <derived_value T>
[[nodiscard]] derived_index<T> open_derived(const std::string& path) {
  auto opened = detail::values_file::open(path);
  if (!opened.file) throw error(opened.why);
  return derived_index<T>(std::move(opened.file));
}

}  // namespace penstock::inline v0_1

// ---- penstock/source/detail/unpacked_copy.hpp

/// Unpacked copies of packed files, each with a record of what it is a copy of.
namespace penstock::inline v0_1 {
namespace detail::tar {

/// Size and time of change of a regular file; nothing where there is none.
[[nodiscard]] inline std::optional<object_signature> signature_of_file(const std::string& path) noexcept {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  return object_signature{static_cast<std::uint64_t>(status.st_size),
                          static_cast<std::uint64_t>(status.st_mtim.tv_sec) * 1'000'000'000u +
                              static_cast<std::uint64_t>(status.st_mtim.tv_nsec)};
}

/// What a copy was made from and what it was then. 64 bytes, described in docs/index.md.
struct copy_record {
  static constexpr std::size_t size = 64;
  static constexpr std::string_view magic = "PENSTCPY";
  static constexpr std::uint32_t version = 1;

  object_signature packed;
  object_signature copy;

  [[nodiscard]] std::array<std::byte, size> bytes() const noexcept {
    std::array<std::byte, size> to{};
    std::memcpy(to.data(), magic.data(), magic.size());
    store_little<std::uint32_t>(to.data() + 8, version);
    store_little<std::uint32_t>(to.data() + 12, static_cast<std::uint32_t>(size));
    store_little<std::uint64_t>(to.data() + 16, packed.size);
    store_little<std::uint64_t>(to.data() + 24, packed.stamp);
    store_little<std::uint64_t>(to.data() + 32, copy.size);
    store_little<std::uint64_t>(to.data() + 40, copy.stamp);
    store_little<std::uint64_t>(to.data() + 56, checksum({to.data(), 56}));
    return to;
  }
  /// Nothing where the bytes are no whole record of this version.
  [[nodiscard]] static std::optional<copy_record> load(bytes_view from) noexcept {
    if (from.size() != size) return std::nullopt;
    const auto number = [from](std::size_t at) { return load_little<std::uint64_t>(from.data() + at); };
    const copy_record made{{number(16), number(24)}, {number(32), number(40)}};
    const auto same = made.bytes();
    if (std::memcmp(same.data(), from.data(), size) != 0) return std::nullopt;
    return made;
  }
};

/// The folder of a path: "." where it names none.
[[nodiscard]] inline std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}
[[nodiscard]] inline std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// Where the copy of a packed file is kept: beside it, or in `folder`, in a part of it that is named after
/// the packed file's own folder, so that files of one name do not meet. The copy's name is the same wherever
/// the dataset is.
[[nodiscard]] inline std::string copy_path(const std::string& packed, const std::string& folder) {
  constexpr std::string_view ending = ".penstock-unpacked";
  if (folder.empty()) return packed + std::string(ending);
  const std::string own = folder_of(packed);
  const std::unique_ptr<char, void (*)(void*)> whole(::realpath(own.c_str(), nullptr), &std::free);
  penstock::fingerprint mark;
  mark.add("unpacked", whole ? std::string_view(whole.get()) : std::string_view(own));
  std::string part(16, '0');
  for (std::size_t i = 0; i < part.size(); ++i)
    part[i] = "0123456789abcdef"[mark.value() >> (60 - 4 * i) & 15];
  return detail::text({folder, "/", part, "/", name_of(packed), ending});
}

/// Makes a folder and those above it that are missing. 0, or the system's number for what went wrong.
[[nodiscard]] inline int make_folders(const std::string& path) {
  for (std::size_t end = 0; end < path.size();) {
    end = std::min(path.find('/', end + 1), path.size());
    if (::mkdir(path.substr(0, end).c_str(), 0777) != 0 && errno != EEXIST) {
      const int code = errno;
      struct stat status {};
      if (::stat(path.substr(0, end).c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) return code;
    }
  }
  return 0;
}
[[nodiscard]] inline std::string record_path(const std::string& copy) { return copy + ".record"; }

/// Whether `copy` is there, as it was when it was made, and made of this state of the packed file.
[[nodiscard]] inline bool copy_is_current(int record, const std::string& copy, object_signature packed) {
  std::array<std::byte, copy_record::size> bytes{};
  if (!read_all(record, bytes)) return false;
  const auto said = copy_record::load(bytes);
  return said && said->packed == packed && signature_of_file(copy) == said->copy;
}
[[nodiscard]] inline bool copy_is_current(const std::string& copy, object_signature packed) {
  const owned_descriptor record(::open(record_path(copy).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  return record.get() >= 0 && copy_is_current(record.get(), copy, packed);
}

/// The right to make a copy: one at a time, of all threads and processes of the machine. Ends with the
/// process, however that ends. The copy appears by renaming, so that without locks work would be done twice,
/// and no more.
class copy_turn {
 public:
  /// Waits for the others.
  explicit copy_turn(std::string copy) : copy_(std::move(copy)) {
    const std::string name = record_path(copy_);
    opened_ = owned_descriptor(::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666));
    if (opened_.get() < 0) throw failure("create", name);
    while (::flock(opened_.get(), LOCK_EX) != 0) {
      if (errno != EINTR) throw failure("lock", name);
    }
  }

  [[nodiscard]] bool current(object_signature packed) const {
    return copy_is_current(opened_.get(), copy_, packed);
  }
  /// Says that there is no copy, and removes what is left of earlier ones.
  void begin() const {
    if (::ftruncate(opened_.get(), 0) != 0) throw failure("write", record_path(copy_));
    const std::string folder = folder_of(copy_), start = name_of(copy_) + ".tmp-";
    const std::unique_ptr<DIR, int (*)(DIR*)> listed(::opendir(folder.c_str()), &::closedir);
    if (!listed) return;
    while (const dirent* const entry = ::readdir(listed.get())) {
      const std::string name(static_cast<const char*>(entry->d_name));
      if (name.starts_with(start)) ::unlink((folder + "/" + name).c_str());
    }
  }
  /// Says what the copy is of. The copy's name must be on the disk before.
  void finish(const copy_record& record) const {
    const owned_descriptor parent(::open(folder_of(copy_).c_str(), O_RDONLY | O_CLOEXEC | O_DIRECTORY));
    if (parent.get() >= 0) (void)::fsync(parent.get());
    const auto bytes = record.bytes();
    if (::pwrite(opened_.get(), bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()) ||
        ::fsync(opened_.get()) != 0) {
      throw failure("write", record_path(copy_));
    }
  }

 private:
  [[nodiscard]] static error failure(std::string_view doing, const std::string& path) {
    const int code = errno;
    return error(errc::io, {"cannot ", doing,
                            " the record of an unpacked copy: ", std::generic_category().message(code),
                            "; name a folder that may be written in unpacked_options::folder"})
        .in_file(path);
  }

  std::string copy_;
  owned_descriptor opened_;
};

}  // namespace detail::tar
}  // namespace penstock::inline v0_1

// ---- penstock/source/detail/values_turn.hpp

namespace penstock::inline v0_1 {
namespace detail {

/// The right to make one file: one at a time, of all threads and processes of the machine. Ends with the
/// process, however that ends. The file appears by renaming, so that without locks, which some file systems
/// do not have, work would be done twice, and no more.
template <class = void>
class basic_making_turn {
 public:
  /// Waits for the others.
  explicit basic_making_turn(const std::string& path) : path_(path), lock_(path + ".lock") {
    do {
      opened_ = tar::owned_descriptor(::open(lock_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666));
      if (opened_.get() < 0) {
        const int code = errno;
        throw error(errc::io, {"cannot create: ", std::generic_category().message(code),
                               "; name a file in a folder that may be written"})
            .in_file(lock_);
      }
      int locked = 0;
      while ((locked = ::flock(opened_.get(), LOCK_EX)) != 0 && errno == EINTR) {
      }
      if (locked != 0) break;
      // who had the turn before has removed the file, and somebody may lock a new one
    } while (!still_there());
    remove_leftovers();
  }
  basic_making_turn(const basic_making_turn&) = delete;
  basic_making_turn& operator=(const basic_making_turn&) = delete;
  ~basic_making_turn() { ::unlink(lock_.c_str()); }

 private:
  [[nodiscard]] bool still_there() const noexcept {
    struct stat ours {
    }, named{};
    return ::fstat(opened_.get(), &ours) == 0 && ::stat(lock_.c_str(), &named) == 0 &&
           ours.st_ino == named.st_ino && ours.st_dev == named.st_dev;
  }
  void remove_leftovers() const {
    const std::string folder = tar::folder_of(path_), start = tar::name_of(path_) + ".tmp-";
    const std::unique_ptr<DIR, int (*)(DIR*)> listed(::opendir(folder.c_str()), &::closedir);
    if (!listed) return;
    while (const dirent* const entry = ::readdir(listed.get())) {
      const std::string name(static_cast<const char*>(entry->d_name));
      if (name.starts_with(start)) ::unlink((folder + "/" + name).c_str());
    }
  }

  std::string path_, lock_;
  tar::owned_descriptor opened_;
};
using making_turn = basic_making_turn<>;

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/run/derive.hpp

namespace penstock::inline v0_1 {

/// Options of `derive`.
struct derive_options {
  /// A file that is damaged, or of another state of the dataset, is made again; else it is an error.
  bool rebuild = true;
};

namespace detail {

/// The type in which results of a function are kept.
template <class R>
struct kept_as {};
template <class R>
  requires std::is_enum_v<R>
struct kept_as<R> : kept_as<std::underlying_type_t<R>> {};
template <std::unsigned_integral R>
struct kept_as<R> {
  using type = std::uint64_t;
};
template <std::signed_integral R>
struct kept_as<R> {
  using type = std::int64_t;
};
template <std::floating_point R>
struct kept_as<R> {
  using type = double;
};
template <class R>
  requires std::convertible_to<const R&, std::string_view>
struct kept_as<R> {
  using type = std::string;
};

template <class F, class V>
concept asks_for_key = std::invocable<const F&, finished<V>, std::string_view>;

template <class Reader>
concept reader_with_keys = requires(const Reader& r) { r.key(std::uint64_t{}); };

/// The last stage of the run that derives: what the function makes of a sample.
template <class F, class Reader>
struct derive_stage {
  using penstock_part = pointwise_tag;
  static constexpr std::string_view stage_name = "derive";

  template <class V, class Call>
  auto apply(V&& value, const Call& c) const {
    if constexpr (asks_for_key<F, V>) {
      if constexpr (open_sample<V>) {
        const std::string key(value.key());
        return kept((*function)(penstock::finish(std::forward<V>(value)), std::string_view(key)));
      } else {
        static_assert(reader_with_keys<Reader>,
                      "penstock: derive's function wants the key, and samples of this source have none");
        const std::string key = reader->key(c.at.index);
        return kept((*function)(penstock::finish(std::forward<V>(value)), std::string_view(key)));
      }
    } else {
      static_assert(std::invocable<const F&, finished<V>>,
                    "penstock: derive's function must be callable with a sample, or with a sample and a "
                    "std::string_view, its key, when const");
      return kept((*function)(penstock::finish(std::forward<V>(value))));
    }
  }

  template <class R>
  static auto kept(const R& result) {
    static_assert(
        requires { typename kept_as<R>::type; },
        "penstock: derive's function must return a number, an enumerator or a text");
    if constexpr (std::convertible_to<const R&, std::string_view>)
      return std::string(std::string_view(result));
    else
      return static_cast<typename kept_as<R>::type>(result);
  }

  const F* function = nullptr;
  std::shared_ptr<const Reader> reader;
};

/// Where an index is kept: at `path`, or in that folder under its name.
template <class = void>
[[nodiscard]] std::string derived_path(const std::string& path, std::string_view name) {
  struct stat status {};
  const bool folder = path.ends_with('/') || (::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode));
  if (!folder) return path;
  if (name.find('/') != name.npos) {
    throw error(errc::argument, {"'", name, "' is no name for a file in ", path, "; name the file itself"})
        .in_stage("derive");
  }
  return detail::text({path, path.ends_with('/') ? "" : "/", name, ".penstock-values"});
}

/// An index that is there, or why there is none that could be used.
template <derived_value T>
struct found_index {
  std::shared_ptr<const values_file> file;
  derived_from origin = derived_from::none;
};

template <derived_value T>
[[nodiscard]] found_index<T> find_index(const std::string& path, std::string_view name, std::uint64_t dataset,
                                        std::uint64_t samples, const derive_options& options) {
  const auto opened = values_file::open(path);
  if (opened.fault == values_fault::missing) return {};
  if (!opened.file) {
    if (opened.fault != values_fault::damaged || !options.rebuild) throw error(opened.why);
    return {nullptr, derived_from::damage};
  }
  const values_file& there = *opened.file;
  if (there.name() != name) {
    throw error(errc::argument, {"the derived index is called '", there.name(), "' and not '", name,
                                 "'; name another file, or delete this one"})
        .in_file(path)
        .at_offset(there.header().name_at());
  }
  (void)derived_index<T>(opened.file);  // it says whether the type is right
  if (there.header().dataset != dataset || there.header().samples != samples) {
    if (!options.rebuild) {
      throw error(errc::state,
                  "the derived index was made of another dataset, or of another state of it (the "
                  "fingerprints differ); delete it, or leave out .rebuild = false")
          .in_file(path)
          .at_offset(24);
    }
    return {nullptr, derived_from::stale};
  }
  return {opened.file, derived_from::file};
}

/// Evaluates the function for all samples, and writes what comes out.
template <derived_value T, class Plan>
void make_index(const Plan& plan, const std::string& path, std::string_view name, std::uint64_t dataset,
                std::uint64_t samples) {
  std::vector<std::uint64_t> values;
  values.reserve(static_cast<std::size_t>(samples));
  std::vector<std::string> texts;
  auto run = plan.open();
  if constexpr (std::same_as<T, std::string>) {
    std::unordered_map<std::string, std::uint64_t> numbers;
    for (const std::string& value : run) {
      const auto [found, fresh] = numbers.try_emplace(value, texts.size());
      if (fresh) texts.push_back(value);
      values.push_back(found->second);
    }
  } else {
    for (const T value : run) values.push_back(std::bit_cast<std::uint64_t>(value));
  }
  values_header header;
  header.kind = kind_of<T>;
  header.dataset = dataset;
  write_values(path, header, name, values, texts);
}

template <class Stage>
concept derivable_stage = part_of_kind<Stage, pointwise_tag> || part_of_kind<Stage, annotation_tag>;

}  // namespace detail

/// Computes a value for every sample of a dataset, once, and keeps it in a file: `derive(source, "label", f,
/// path)`. The index that it gives is what `subset`, `split_by_key`, `class_balanced` and `weighted` choose
/// by; with it they know how many samples there are, where `filter` must look at each.
///
/// In: an indexed source, or a plan of one with stages that work on single samples (`fields`, `decode`,
/// `map`) and annotations; a name; `f(sample)` or `f(sample, key)` with the key as a `std::string_view`,
/// callable when const, by all workers at once. It gives a number (a whole one is kept as `std::int64_t` or
/// `std::uint64_t`, a floating one as a double), an enumerator, or a text. `path` is a file, or a folder that
/// is there, in which the file is called NAME.penstock-values.
/// Out: a `derived_index`, mapped. The same bytes on any number of workers.
///
/// Where the file is there, of this name and of this state of the dataset (its fingerprint), nothing is read
/// but the file. What f does cannot be seen: the name stands for it, and for the stages; give another
/// function another name. A file of another state of the dataset, or one that is damaged, is made again, and
/// `origin()`
/// says so; with `.rebuild = false` it is an error.
/// It is written under a temporary name, flushed to the disk and renamed: it is whole or not there, and what
/// a killed process leaves the next one removes. Of several processes that want it one makes it, the others
/// wait (`flock` on a file beside it, which goes again).
/// Cost: one pass over the dataset, in parallel; 16 bytes a sample in memory meanwhile. Throws what the chain
/// and f throw; `errc::io` where the file cannot be written; `errc::format` where there is a file that is no
/// derived index, or of a newer version or of another type; `errc::argument` where it is of another name.
///
///     auto label = derive(source | fields<"cls"> | decode<integer>, "label",
///                         [](std::int64_t n) { return n; }, "/data/train");
///     auto loader = source | class_balanced(label, 7) | batch(256);
template <class Source, class... Stages, class F>
[[nodiscard]] auto derive(const plan<Source, Stages...>& p, std::string_view name, const F& f,
                          const std::string& path, const derive_options& options = {}) {
  static_assert(
      indexed_source<Source>,
      "penstock: derive numbers the samples of a source with an index, and this one can only be read "
      "forward");
  static_assert((detail::derivable_stage<Stages> && ...),
                "penstock: derive wants the samples as the source has them; leave out orders, filters, batch "
                "and what follows it");
  using reader = typename Source::reader;
  detail::derive_stage<F, reader> last{&f, nullptr};
  if constexpr (detail::reader_with_keys<reader>)
    last.reader = std::shared_ptr<const reader>(new const reader(p.source().open()));
  const auto whole = p | last;
  using T = std::remove_cvref_t<typename std::remove_cvref_t<decltype(whole)>::element>;

  if (name.empty())
    throw error(errc::argument, "a derived index must have a name, such as \"label\"").in_stage("derive");
  const std::uint64_t dataset = p.source().fingerprint(), samples = p.source().size();
  const std::string place = detail::derived_path(path, name);
  auto found = detail::find_index<T>(place, name, dataset, samples, options);
  if (!found.file) {
    const derived_from origin = found.origin;
    const detail::making_turn turn(place);
    found = detail::find_index<T>(place, name, dataset, samples, options);
    if (!found.file) {
      detail::make_index<T>(whole, place, name, dataset, samples);
      found.file = detail::find_index<T>(place, name, dataset, samples, {.rebuild = false}).file;
      found.origin = origin;
    }
  }
  if (!found.file)
    throw error(errc::io, "the derived index was removed while it was made; make it again").in_file(place);
  return derived_index<T>(std::move(found.file), found.origin);
}
/// The same for a source alone.
template <indexed_source Source, class F>
[[nodiscard]] auto derive(const Source& source, std::string_view name, const F& f, const std::string& path,
                          const derive_options& options = {}) {
  return derive(plan<Source>(source), name, f, path, options);
}

}  // namespace penstock::inline v0_1

// ---- penstock/run/describe.hpp

namespace penstock::inline v0_1 {

namespace detail {

template <class Stage>
constexpr std::string_view kind_text() {
  if constexpr (part_of_kind<Stage, pointwise_tag>) return "pointwise";
  if constexpr (part_of_kind<Stage, order_tag> || part_of_kind<Stage, cursor_tag> ||
                part_of_kind<Stage, shard_tag>)
    return "sequencer";
  if constexpr (part_of_kind<Stage, decider_tag> || part_of_kind<Stage, expander_tag>) return "decider";
  if constexpr (part_of_kind<Stage, batch_tag>) return "batch";
  if constexpr (part_of_kind<Stage, device_tag>) return "device";
  return "annotation";
}

/// The guarantees that are lost going from one place to the next.
inline std::string lost_text(const chain_facts& before, const chain_facts& after) {
  std::string text;
  for (const guarantee g : all_guarantees) {
    const bool was = before.lost_by_whom(g) == mistake::none, is = after.lost_by_whom(g) == mistake::none;
    if (was && !is) text += std::string(text.empty() ? "" : ", ") + "loses " + std::string(to_string(g));
    if (!was && is) text += std::string(text.empty() ? "" : ", ") + "regains " + std::string(to_string(g));
  }
  return text;
}

inline std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.resize(width, ' ');
  return text;
}

/// How many times the bytes of a value of type V are moved between where the source shows them and the batch.
template <class V, class Policy>
std::string moves_text() {
  if constexpr (shape_class_of<V> == shape_class::none)
    return "not in a batch";
  else if constexpr (shape_class_of<V> == shape_class::fixed)
    return "1 move: written in its slot";
  else if constexpr (std::is_same_v<Policy, stack_policy>)
    return unfinished<V> ? "1 move: written in its slot (2 in the first batches, until the shape is known)"
                         : "1 move: copied to its slot (2 in the first batches, until the shape is known)";
  else
    return "2 moves: to the side arena, then to its place in the batch";
}

template <class Context, class... Stages>
struct facts_list;
template <class Context>
struct facts_list<Context> {
  template <class F>
  static void each(const F&) {}
  template <class F, class Tuple, std::size_t I>
  static void walk(const F&, const Tuple&) {}
};
template <class Context, class Stage, class... Rest>
struct facts_list<Context, Stage, Rest...> {
  using next = typename fold_context<Context, Stage>::type;
  template <class F, class Tuple, std::size_t I = 0>
  static void walk(const F& f, const Tuple& stages) {
    f(at<I>(stages), Context::facts, next::facts);
    facts_list<next, Rest...>::template walk<F, Tuple, I + 1>(f, stages);
  }
};

}  // namespace detail

/// Says in words what a plan is: its stages with their kinds, where guarantees are lost, how often each field
/// is moved, and the device.
///
/// Opens nothing. For people: the text may change between versions.
template <class Source, class... Stages>
[[nodiscard]] std::string describe(const plan<Source, Stages...>& p) {
  using plan_type = plan<Source, Stages...>;
  using parts = plan_parts<plan_type>;
  std::string text;
  const auto line = [&text](std::string name, std::string_view kind, const std::string& note) {
    text += "  " + detail::padded(std::move(name), 46) + " " + detail::padded(std::string(kind), 11) + note;
    while (text.back() == ' ') text.pop_back();
    text += "\n";
  };
  constexpr auto at_source = detail::source_facts<Source>();
  line(p.source().describe(), parts::forward ? "forward" : "indexed", detail::lost_text({}, at_source));
  detail::facts_list<detail::context<typename Source::element, at_source>, Stages...>::walk(
      [&]<class Stage>(const Stage& stage, const auto& before, const auto& after) {
        line(text_of_stage(stage), detail::kind_text<Stage>(), detail::lost_text(before, after));
      },
      p.stages());
  text += "keeps:";
  for (const guarantee g : all_guarantees)
    if (parts::facts.lost_by_whom(g) == mistake::none) text += " " + std::string(to_string(g));
  text += "\n";
  if constexpr (parts::batched) {
    using batch = detail::type_at<parts::in::batch, typename parts::stages>;
    using element = typename parts::element;
    if constexpr (any_record<element>) {
      [&]<std::size_t... Is>(std::index_sequence<Is...>) {
        ((text += "field " + std::string(element::template field_at<Is>::name) + ": " +
                  detail::moves_text<
                      std::tuple_element_t<Is, element>,
                      typename batch::template policy<typename element::template field_at<Is>::name_type>>() +
                  "\n"),
         ...);
      }(std::make_index_sequence<element::size>{});
    } else {
      text += "value: " + detail::moves_text<element, typename batch::template policy<void>>() + "\n";
    }
    if constexpr (!parts::direct)
      text += "behind filter, unbatch or a forward source: 1 move more, from a chunk to the batch\n";
  }
  text += "device: ";
  if constexpr (parts::in::template has<device_tag>)
    text += detail::at<parts::in::template place<device_tag>>(p.stages()).device_value.describe();
  else
    text += "host";
  return text + "\n";
}

}  // namespace penstock::inline v0_1

// ---- penstock/run/peek.hpp

namespace penstock::inline v0_1 {

namespace detail {

/// The first bytes of something, as text where it is text and in hexadecimal where it is not.
inline std::string first_bytes(bytes_view bytes) {
  constexpr std::size_t most = 24;
  const bytes_view head = bytes.first(std::min(most, bytes.size()));
  const bool printable = std::all_of(head.begin(), head.end(), [](std::byte b) {
    const auto c = std::to_integer<unsigned char>(b);
    return c >= 0x20 && c < 0x7f;
  });
  std::string text;
  if (printable) {
    text = "\"" + std::string(text_of(head)) + "\"";
  } else {
    for (const std::byte b : head) {
      char hex[4];
      std::snprintf(hex, sizeof hex, "%02x ", std::to_integer<unsigned>(b));
      text += hex;
    }
    if (!text.empty()) text.pop_back();
  }
  return text + (bytes.size() > most ? " ..." : "");
}

template <class V>
std::string value_text(const V& value) {
  using type = std::remove_cvref_t<V>;
  if constexpr (blob<type>) {
    return detail::text({value.size(), " bytes: ", first_bytes(value.finish())});
  } else if constexpr (array_expression<type>) {
    const auto view = penstock::finish(value);
    return detail::text(
        {"array of shape ", to_string(value.shape()), ": ", first_bytes(std::as_bytes(view.values()))});
  } else if constexpr (requires {
                         value.shape();
                         value.values();
                       }) {
    return detail::text(
        {"array of shape ", to_string(value.shape()), ": ", first_bytes(std::as_bytes(value.values()))});
  } else if constexpr (std::is_arithmetic_v<type>) {
    return std::to_string(value);
  } else if constexpr (std::convertible_to<const type&, std::string_view>) {
    const std::string_view text = value;
    return detail::text({text.size(), " characters: ", first_bytes(bytes_of(text))});
  } else if constexpr (requires {
                         value.size();
                         std::as_bytes(std::span(value.data(), value.size()));
                       }) {
    return detail::text(
        {value.size(), " values: ", first_bytes(std::as_bytes(std::span(value.data(), value.size())))});
  } else {
    return detail::text({"a value of ", sizeof(type), " bytes"});
  }
}

template <class V>
std::string sample_text(const V& sample) {
  using type = std::remove_cvref_t<V>;
  std::string text;
  if constexpr (any_record<type>) {
    [&]<std::size_t... Is>(std::index_sequence<Is...>) {
      ((text +=
        "  " + std::string(type::template field_at<Is>::name) + ": " + value_text(get<Is>(sample)) + "\n"),
       ...);
    }(std::make_index_sequence<type::size>{});
  } else if constexpr (open_sample<type>) {
    for (std::size_t i = 0; i < sample.size(); ++i)
      text += "  " + std::string(sample.name(i)) + ": " + value_text(sample.member(i)) + "\n";
  } else {
    text = "  " + value_text(sample) + "\n";
  }
  return text;
}

}  // namespace detail

/// Shows one sample as it stands before `batch`: its key, and of each field the shape and the first bytes.
///
/// Evaluates the chain for position (0, index), in the calling thread; of a forward-only source it reads the
/// first sample. For people: the text may change between versions. Throws what the chain throws.
///
///     std::cout << peek(webdataset("train-{000..127}.tar") | fields<"jpg", "cls">);
template <class Source, class... Stages>
[[nodiscard]] std::string peek(const plan<Source, Stages...>& p, std::uint64_t index = 0) {
  using plan_type = plan<Source, Stages...>;
  using parts = plan_parts<plan_type>;
  const std::uint64_t seed = *options_of(p).seed;
  std::string text;
  const auto sink = [&text](const auto& sample) { text += detail::sample_text(sample); };
  if constexpr (parts::forward) {
    auto front = make_front(p);
    front.rewind(0);
    typename Source::element item;
    if (!front.next(item)) return "the source is empty\n";
    auto chain = make_chain(p, item_node<typename Source::element>{}, seed);
    typename decltype(chain)::worker worker;
    detail::innermost(worker).item = &item;
    chain.evaluate({0, 0}, worker, sink, untimed{});
    return detail::text({"sample 0\n", (text.empty() ? "  dropped by a filter\n" : text)});
  } else {
    const auto orders = make_sample_orders(p);
    if (index >= orders.size())
      return detail::text(
          {"position 0:", index, " is beyond the end: there are ", orders.size(), " samples\n"});
    const auto reader = p.source().open();
    const auto binding = orders.bind(0, index, index + 1);
    auto chain = make_chain(
        p,
        source_node<std::remove_cvref_t<decltype(reader)>, std::remove_cvref_t<decltype(binding)>>{&reader},
        seed);
    typename decltype(chain)::worker worker;
    detail::innermost(worker).binding = &binding;
    chain.evaluate({0, index}, worker, sink, untimed{});
    std::string key = std::to_string(binding(index).index);
    if constexpr (requires { reader.key(index); }) key = reader.key(binding(index).index);
    return detail::text({"sample at position 0:", index, ", key ", key, "\n",
                         (text.empty() ? "  dropped by a filter\n" : text)});
  }
}
/// The same for a source alone.
template <source Source>
[[nodiscard]] std::string peek(const Source& source, std::uint64_t index = 0) {
  return peek(plan<Source>(source), index);
}

}  // namespace penstock::inline v0_1

// ---- penstock/run/proof.hpp

/// Proofs about a plan's order, by arithmetic alone: no sample is read.
namespace penstock::inline v0_1 {

/// Machines and the ranks on each that get different samples; what `prove` tries.
struct topology {
  std::uint64_t nodes = 1, ranks_per_node = 1;
  [[nodiscard]] std::uint64_t ranks() const noexcept { return nodes * ranks_per_node; }
};

/// What `prove` looks at.
struct proof_options {
  std::uint64_t first_epoch = 0, epochs = 1;
  /// Steps after which each topology is stopped and the next one in the list goes on.
  std::vector<std::uint64_t> stops = {};
  /// Epochs of more positions than this are looked at in `looks` random positions and steps, not in all.
  std::uint64_t most_positions = std::uint64_t{1} << 28;
  std::uint64_t looks = 1'000'000;
  unsigned threads = 1;
};

/// What was found for one topology.
struct topology_proof {
  topology shape;
  std::uint64_t steps = 0;                     ///< per epoch, on every rank
  std::uint64_t delivered = 0;                 ///< samples of the first epoch, over all ranks
  std::uint64_t dropped = 0;                   ///< positions of it that are in no step
  std::uint64_t padded = 0;                    ///< slots without a sample
  std::uint64_t least = 0, most = 0, sum = 0;  ///< shards that a node touches; sum over the nodes
};

/// What `prove` found.
struct proof {
  std::uint64_t positions = 0;  ///< of an epoch
  std::uint64_t samples = 0;    ///< of the source
  std::uint64_t shards = 0;
  std::uint64_t left_out = 0;  ///< samples that stand at no position of the first epoch
  std::uint64_t global = 0;    ///< samples of a global step
  bool sampled = false;        ///< random positions and steps, not all
  std::vector<topology_proof> topologies;
  std::vector<std::string> violations;  ///< the first hundred, a sentence each

  [[nodiscard]] bool holds() const noexcept { return violations.empty(); }
};

namespace detail {

/// The work of `prove`.
template <class Plan>
class prover {
  using parts = plan_parts<Plan>;
  using feed_type = direct_feed<Plan>;
  static constexpr bool repeats =
      std::remove_cvref_t<decltype(std::declval<const feed_type&>().orders())>::repeats;

 public:
  prover(const Plan& p, std::span<const topology> shapes, const proof_options& options)
      : plan_(p), feed_(p), options_(options) {
    const auto& orders = feed_.orders();
    const cut& c = feed_.mine();
    made_.positions = orders.size();
    made_.samples = p.source().size();
    made_.global = c.global;
    made_.sampled = orders.size() > options.most_positions;
    if (made_.sampled && parts::has_cursor)
      throw error(errc::limit,
                  {"an epoch of ", orders.size(),
                   " positions through a shuffle_buffer cannot be proved; raise most_positions"});
    if (const auto starts = p.source().starts()) starts_ = *starts;
    if (starts_.size() < 2) starts_ = {0, made_.samples};
    made_.shards = starts_.size() - 1;
    for (const topology& shape : shapes) {
      cut all = c;
      all.world = shape.ranks();
      all.rank = 0;
      all.check();
      if (all.world > c.global)
        throw error(errc::argument, {"a global batch of ", c.global, " has no sample for each of ", all.world,
                                     " ranks; make it larger or leave that topology out"});
      made_.topologies.push_back({shape});
    }
  }

  [[nodiscard]] proof result() {
    for (std::uint64_t e = 0; e < options_.epochs; ++e) {
      epoch_ = options_.first_epoch + e;
      prepare_epoch(e == 0);
      next_ = 0;
      run_threads<&prover::prove_topologies>();
    }
    return std::move(made_);
  }

 private:
  void violation(std::initializer_list<piece> what) {
    const std::lock_guard lock(guard_);
    if (made_.violations.size() < 100) made_.violations.push_back(text({"epoch ", epoch_, ": ", text(what)}));
  }

  template <void (prover::*Work)()>
  void run_threads() {
    struct worker {
      prover* self;
      joined_thread thread{};
      void serve() noexcept {
        try {
          (self->*Work)();
        } catch (...) {
          const std::lock_guard lock(self->guard_);
          self->failure_ = std::current_exception();
        }
      }
    };
    const std::unique_ptr<worker[]> workers(new worker[std::max(1u, options_.threads)]);
    for (unsigned i = 0; i < std::max(1u, options_.threads); ++i) workers[i].self = this;
    for (unsigned i = 1; i < options_.threads; ++i)
      workers[i].thread.template start<&worker::serve>(workers[i]);
    workers[0].serve();
    for (unsigned i = 1; i < options_.threads; ++i) workers[i].thread.join();
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

  /// Whether the order takes each sample once; and which shard stands at each position.
  void prepare_epoch(bool first) {
    const std::uint64_t n = made_.positions;
    seen_ = bit_set();
    shard_of_.clear();
    if (n == 0) return;
    const auto& orders = feed_.orders();
    source_epoch_ = orders.sample_at({epoch_, 0}).epoch;
    source_epochs_ = made_.sampled ? 1 : orders.sample_at({epoch_, n - 1}).epoch - source_epoch_ + 1;
    if (!made_.sampled) {
      seen_ = bit_set(made_.samples * source_epochs_);
      shard_of_.resize(static_cast<std::size_t>(n));
      orders.rebind(binding_, epoch_, 0, n);
      draw_cursor();
    }
    next_ = 0;
    run_threads<&prover::prove_order>();
    if (first && !made_.sampled) made_.left_out = made_.samples * source_epochs_ - seen_.count();
  }
  /// Behind a shuffle_buffer: which position comes when.
  void draw_cursor() {
    if constexpr (parts::has_cursor) {
      const auto& stage = detail::at<parts::in::cursor>(plan_.stages());
      position_buffer buffer(stage.capacity, stage.seed);
      buffer.begin(epoch_, made_.positions);
      drawn_.resize(static_cast<std::size_t>(made_.positions));
      for (std::uint64_t& ordinal : drawn_) ordinal = buffer.next();
    }
  }
  [[nodiscard]] std::uint64_t ordinal(std::uint64_t index) const {
    if constexpr (parts::has_cursor) return drawn_[static_cast<std::size_t>(index)];
    return index;
  }
  [[nodiscard]] std::uint32_t shard_at(std::uint64_t sample) const {
    return static_cast<std::uint32_t>(last_not_above(starts_.data(), starts_.size() - 1, sample));
  }

  void prove_order() {
    const auto& orders = feed_.orders();
    constexpr std::uint64_t piece_size = 1 << 16;
    const std::uint64_t n = made_.positions, looks = made_.sampled ? options_.looks : n;
    for (std::uint64_t from = next_.fetch_add(piece_size); from < looks; from = next_.fetch_add(piece_size)) {
      const std::uint64_t end = std::min(looks, from + piece_size);
      typename feed_type::binding bound = binding_;
      for (std::uint64_t i = from; i < end; ++i) {
        const std::uint64_t index = made_.sampled ? mix64(i ^ mix64(epoch_)) % n : i;
        if (made_.sampled) orders.rebind(bound, epoch_, index, index + 1);
        const position at = bound(ordinal(index));
        if (at.index >= made_.samples || (!made_.sampled && at.epoch - source_epoch_ >= source_epochs_)) {
          violation({"position ", index, " gives sample ", at.index, " of ", made_.samples});
          continue;
        }
        if (!made_.sampled) {
          shard_of_[static_cast<std::size_t>(index)] = shard_at(at.index);
          if (seen_.set((at.epoch - source_epoch_) * made_.samples + at.index) && !repeats)
            violation({"sample ", at.index, " stands at position ", index, " and at an earlier one"});
        }
        if (!repeats && (made_.sampled || i % 4096 == 0)) {
          const auto back = orders.position_of(at);
          if (!back || *back != position{epoch_, ordinal(index)})
            violation(
                {"position ", index, " gives sample ", at.index, ", which says that it stands elsewhere"});
        }
      }
    }
  }

  void prove_topologies() {
    for (std::uint64_t i = next_.fetch_add(1); i < made_.topologies.size(); i = next_.fetch_add(1))
      prove_one(static_cast<std::size_t>(i));
  }

  void prove_one(std::size_t which) {
    topology_proof& found = made_.topologies[which];
    const cut& c = feed_.mine();
    std::vector<cut> ranks(static_cast<std::size_t>(found.shape.ranks()), c);
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      ranks[r].world = ranks.size();
      ranks[r].rank = r;
    }
    feed_type feed = feed_;
    const std::uint64_t steps = feed.steps_per_epoch();
    const bool first = epoch_ == options_.first_epoch;
    std::vector<bit_set> touched;
    if (first && !made_.sampled)
      for (std::uint64_t node = 0; node < found.shape.nodes; ++node) touched.emplace_back(made_.shards);
    bit_set step_seen(made_.sampled ? 0 : c.steps() + 1);
    bit_set offsets(c.lanes == 1 ? 0 : c.global);
    std::uint64_t delivered = 0, padded = 0;
    const std::uint64_t looks = made_.sampled ? std::min<std::uint64_t>(steps, 1024) : steps;
    for (std::uint64_t i = 0; i < looks; ++i) {
      const std::uint64_t step = looks == steps || i == 0 ? i
                                 : i == 1                 ? steps - 1
                                                          : mix64(i ^ mix64(which)) % steps;
      feed.seek(epoch_, step);
      const position at = feed.upstream();
      if (!made_.sampled && step_seen.set(at.index) && at.epoch == epoch_)
        violation({"step ", step, " has the samples of a step before it"});
      prove_step(ranks, at.index, touched, offsets, delivered, padded, found.shape);
    }
    for (const std::uint64_t stop : options_.stops) prove_stop(which, std::min(stop, steps));
    if (!first) return;
    found.steps = steps;
    if (made_.sampled) {
      const std::uint64_t whole = std::min(steps * c.global, made_.positions);
      found.delivered = whole;
      found.dropped = made_.positions - whole;
      found.padded = c.policy == tail::pad && made_.positions % c.global != 0
                         ? c.global - made_.positions % c.global
                         : 0;
      return;
    }
    found.delivered = delivered;
    found.dropped = made_.positions - std::min(made_.positions, delivered);
    found.padded = padded;
    found.least = made_.shards;
    for (const bit_set& node : touched) {
      const std::uint64_t count = node.count();
      found.least = std::min(found.least, count);
      found.most = std::max(found.most, count);
      found.sum += count;
    }
  }

  /// Whether the ranks' parts of a step are its positions, each once.
  void prove_step(const std::vector<cut>& ranks, std::uint64_t step, std::vector<bit_set>& touched,
                  bit_set& offsets, std::uint64_t& delivered, std::uint64_t& padded, const topology& shape) {
    const cut& any = ranks.front();
    const std::uint64_t begin = step * any.global, count = any.count(step);
    std::uint64_t expected = begin, found = 0, least = ~std::uint64_t{0}, most = 0;
    if (any.lanes != 1) offsets.clear();
    for (const cut& mine : ranks) {
      const step_view view = mine.at(step);
      least = std::min(least, view.slots());
      most = std::max(most, view.slots());
      found += view.valid();
      padded += view.slots() - view.valid();
      bit_set* const node =
          touched.empty() ? nullptr : &touched[static_cast<std::size_t>(mine.rank / shape.ranks_per_node)];
      if (view.contiguous()) {
        if (view.valid() != 0 && view[0] != expected)
          violation({"step ", step, " on ", mine.world, " ranks: rank ", mine.rank, " begins at position ",
                     view[0], ", not ", expected});
        expected += view.valid();
        if (node != nullptr)
          for (std::uint64_t i = 0; i < view.valid(); ++i)
            node->set_alone(shard_of_[static_cast<std::size_t>(view[0] + i)]);
        continue;
      }
      for (std::uint64_t i = 0; i < view.valid(); ++i) {
        const std::uint64_t index = view[i];
        if (index - begin >= count || offsets.set_alone(index - begin))
          violation({"step ", step, " on ", mine.world, " ranks: position ", index, " of rank ", mine.rank,
                     " is another step's or another rank's"});
        if (node != nullptr) node->set_alone(shard_of_[static_cast<std::size_t>(index)]);
      }
    }
    if (found != count)
      violation({"step ", step, " on ", any.world, " ranks has ", found, " samples, not ", count});
    if (most - least > 1)
      violation({"step ", step, " on ", any.world, " ranks: one has ", most, " slots and another ", least});
    if (count != 0) {
      const std::uint64_t index = begin + mix64(step) % count;
      const auto place = any.slot_of(index);
      if (!place || place->step != step ||
          ranks[static_cast<std::size_t>(place->rank)].index_of(step, place->slot) != index)
        violation({"position ", index, " is in another slot than its inverse says"});
    }
    delivered += found;
  }

  /// A state of this topology on the next one.
  void prove_stop(std::size_t which, std::uint64_t stop) {
    const topology_proof& next = made_.topologies[(which + 1) % made_.topologies.size()];
    feed_type before = feed_, after = feed_;
    before.seek(epoch_, stop);
    state where;
    where.epoch = before.epoch();
    where.step = before.step();
    where.world = made_.topologies[which].shape.ranks();
    if constexpr (parts::has_cursor) {
      before.limit(epoch_ + 2);
      before.settle();
      where.taken = before.cursor().taken();
      where.given = before.cursor().given();
      where.held.assign(before.cursor().held().begin(), before.cursor().held().end());
    }
    const std::string_view wrong = after.wrong_with(where);
    after.seek(where.epoch, where.step);
    if (!wrong.empty() || after.epoch() != before.epoch() || after.step() != before.step() ||
        after.upstream() != before.upstream())
      violation({"stopped after step ", stop, " on ", where.world, " ranks, ", next.shape.ranks(),
                 " ranks go on elsewhere", wrong.empty() ? "" : ": ", wrong});
  }

  const Plan& plan_;
  feed_type feed_;
  proof_options options_;
  proof made_;
  std::uint64_t epoch_ = 0, source_epoch_ = 0, source_epochs_ = 1;
  std::vector<std::uint64_t> starts_, drawn_;
  typename feed_type::binding binding_;
  bit_set seen_;
  std::vector<std::uint32_t> shard_of_;
  std::atomic<std::uint64_t> next_{0};
  std::mutex guard_;
  std::exception_ptr failure_;
};

}  // namespace detail

/// Checks by running the arithmetic of a plan, for each topology: every epoch has each sample of the order
/// once (not asked of `class_balanced` and `weighted`, which repeat samples); each global step is the same
/// set of positions, every one with exactly one rank; all ranks have the same number of steps, and parts that
/// differ by at most one slot; a state of one topology is the same place on the next. Counts what is dropped,
/// padded and left out, and the shards that each node touches.
///
/// The plan is elastic and in batches that are known without reading: no filter, no unbatch, no forward
/// source. Its `shard` says how large a global step of `batch(b)` is; the ranks are those of the topologies.
/// Reads no sample. Memory: 5 bytes a position, or with `sampled` O(shards). Time: about 0.1 us a position
/// and topology, over `threads`. Throws `error(errc::argument)` for more ranks than a global step has
/// samples.
///
///     const auto found = prove(loader, std::vector<topology>{{1, 8}, {4, 8}, {3, 7}});
///     if (!found.holds()) std::cerr << to_string(found);
template <class Source, class... Stages>
[[nodiscard]] proof prove(const plan<Source, Stages...>& p, std::span<const topology> shapes,
                          const proof_options& options = {}) {
  using plan_type = plan<Source, Stages...>;
  static_assert(
      plan_parts<plan_type>::direct,
      "penstock: prove needs batches that are known without reading samples: no filter, unbatch or forward "
      "source, and a batch");
  static_assert(elastic<plan_type>,
                "penstock: prove needs a plan that keeps `elastic`; put shuffle_buffer before shard");
  return detail::prover<plan_type>(p, shapes, options).result();
}

/// What was found, as a table for people and the violations, a line each.
template <class = void>
[[nodiscard]] std::string to_string(const proof& p) {
  std::string report =
      detail::text({p.positions, " positions of ", p.samples, " samples in ", p.shards, " shards, ", p.global,
                    " in a global step", p.sampled ? "; random positions and steps were looked at\n" : "\n"});
  if (p.left_out != 0) detail::append(report, {p.left_out, " samples stand at no position\n"});
  for (const topology_proof& t : p.topologies) {
    detail::append(report, {t.shape.nodes, " x ", t.shape.ranks_per_node, " ranks: ", t.steps, " steps, ",
                            t.delivered, " samples, ", t.dropped, " dropped, ", t.padded, " padded"});
    if (!p.sampled && t.shape.nodes != 0)
      detail::append(report, {", shards touched by a node: ", t.least, " to ", t.most, ", ",
                              t.sum / t.shape.nodes, " on average"});
    report += '\n';
  }
  for (const std::string& violation : p.violations) detail::append(report, {"violation: ", violation, '\n'});
  return report += p.holds() ? "holds\n" : "does not hold\n";
}

}  // namespace penstock::inline v0_1

// ---- penstock/source/detail/folder_files.hpp

namespace penstock::inline v0_1 {
namespace detail {

/// The files below a folder, sorted by their paths, in one piece of memory.
struct folder_files {
  std::string root;
  std::string paths;                   // of all files, relative to the root, one after another
  std::vector<std::uint64_t> ends{0};  // where they end
  std::vector<std::uint64_t> sizes;    // of the files
  std::vector<std::int32_t> labels;    // -1 where there are no classes
  std::vector<std::string> classes;    // sorted
  std::uint64_t bytes = 0;
  std::uint64_t fingerprint = 0;

  [[nodiscard]] std::uint64_t size() const noexcept { return sizes.size(); }
  [[nodiscard]] std::string_view path(std::size_t i) const noexcept {
    return std::string_view(paths).substr(static_cast<std::size_t>(ends[i]),
                                          static_cast<std::size_t>(ends[i + 1] - ends[i]));
  }
};

/// Walks a folder and those below it, through links too.
template <class = void>
class basic_folder_walk {
 public:
  basic_folder_walk(std::string root, std::vector<std::string> extensions)
      : root_(std::move(root)), extensions_(std::move(extensions)) {
    while (root_.size() > 1 && root_.back() == '/') root_.pop_back();
    for (std::string& extension : extensions_) {
      if (extension.starts_with('.')) extension.erase(0, 1);
      for (char& c : extension) c = lower(c);
    }
  }

  [[nodiscard]] folder_files run() {
    struct stat status {};
    if (::stat(root_.c_str(), &status) != 0) throw failed("be opened", root_);
    if (!S_ISDIR(status.st_mode)) throw error(errc::io, "this is not a folder").in_file(root_);
    visit("", identity{status.st_dev, status.st_ino});
    if (found_.empty()) throw error(errc::missing, nothing()).in_file(root_);
    return packed();
  }

 private:
  struct entry {
    std::string path;
    std::uint64_t size;
  };
  struct identity {
    dev_t device;
    ino_t number;
    friend bool operator==(const identity&, const identity&) = default;
  };

  static char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
  static error failed(const char* what, const std::string& path) {
    return error(errc::io, {"the folder or file cannot ", what, ": ", std::generic_category().message(errno)})
        .in_file(path);
  }

  [[nodiscard]] bool wanted(std::string_view name) const {
    if (extensions_.empty()) return true;
    const std::size_t dot = name.rfind('.');
    if (dot == std::string_view::npos) return false;
    const std::string_view last = name.substr(dot + 1);
    for (const std::string& extension : extensions_) {
      std::size_t same = 0;
      while (same < extension.size() && same < last.size() && lower(last[same]) == extension[same]) ++same;
      if (same == extension.size() && same == last.size()) return true;
    }
    return false;
  }
  [[nodiscard]] std::string nothing() const {
    std::string text = "there is no file below this folder";
    for (std::size_t i = 0; i < extensions_.size(); ++i)
      text += (i == 0 ? " that ends in ." : " or .") + extensions_[i];
    return text + "; hidden ones are not looked at";
  }

  /// `relative` is empty or ends in a slash.
  void visit(const std::string& relative, identity self) {
    const std::string folder = root_ + "/" + relative;
    const std::unique_ptr<DIR, closer> opened(::opendir(folder.c_str()));
    if (!opened) throw failed("be opened", folder);
    above_.push_back(self);
    for (;;) {
      errno = 0;
      const dirent* const item = ::readdir(opened.get());
      if (item == nullptr) {
        if (errno != 0) throw failed("be read", folder);
        break;
      }
      const std::string_view name = static_cast<const char*>(item->d_name);
      if (!name.starts_with('.')) look(relative + std::string(name), name);
    }
    above_.pop_back();
  }

  void look(const std::string& path, std::string_view name) {
    const std::string whole = root_ + "/" + path;
    struct stat status {};
    if (::stat(whole.c_str(), &status) != 0) {
      if (!wanted(name)) return;  // a link to nowhere that nobody asked for
      throw failed("be looked at", whole);
    }
    if (S_ISDIR(status.st_mode)) {
      const identity there{status.st_dev, status.st_ino};
      // a link that leads back up
      if (std::find(above_.begin(), above_.end(), there) != above_.end()) return;
      if (above_.size() == 1) classes_.push_back(path);
      visit(path + "/", there);
    } else if (S_ISREG(status.st_mode) && wanted(name)) {
      found_.push_back({path, static_cast<std::uint64_t>(status.st_size)});
    }
  }

  [[nodiscard]] folder_files packed() {
    std::sort(found_.begin(), found_.end(),
              [](const entry& left, const entry& right) { return left.path < right.path; });
    std::sort(classes_.begin(), classes_.end());
    folder_files files;
    files.sizes.reserve(found_.size());
    files.labels.reserve(found_.size());
    files.ends.reserve(found_.size() + 1);
    penstock::fingerprint mark;
    mark.add("directory", found_.size(), classes_.size());
    for (const std::string& name : classes_) mark.add(name);
    for (entry& one : found_) {
      files.labels.push_back(label_of(one.path));
      files.sizes.push_back(one.size);
      files.bytes += one.size;
      files.paths += one.path;
      files.ends.push_back(files.paths.size());
      mark.add(one.path, one.size);
      one.path = std::string();
    }
    files.paths.shrink_to_fit();
    files.fingerprint = mark.value();
    files.root = std::move(root_);
    files.classes = std::move(classes_);
    return files;
  }
  [[nodiscard]] std::int32_t label_of(const std::string& path) const {
    if (classes_.empty()) return -1;
    const std::size_t slash = path.find('/');
    if (slash == std::string::npos)
      throw error(errc::format,
                  "this file lies beside the folders of classes and has no class: move it away, or choose "
                  "extensions that it does not have")
          .in_file(root_ + "/" + path);
    const auto found =
        std::lower_bound(classes_.begin(), classes_.end(), std::string_view(path).substr(0, slash));
    return static_cast<std::int32_t>(found - classes_.begin());
  }

  struct closer {
    void operator()(DIR* opened) const noexcept { ::closedir(opened); }
  };

  std::string root_;
  std::vector<std::string> extensions_;
  std::vector<entry> found_;
  std::vector<std::string> classes_;
  std::vector<identity> above_;  // the folders from the root to the one that is visited
};
using folder_walk = basic_folder_walk<>;

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/source/detail/whole_file.hpp

namespace penstock::inline v0_1 {
namespace detail {

/// A regular file that is open while this lives. Throws `errc::io` that names the file.
class regular_file {
 public:
  explicit regular_file(const std::string& path)
      : path_(&path), number_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (number_ < 0) throw failed("opened");
    struct stat status {};
    const bool known = ::fstat(number_, &status) == 0;
    if (known && S_ISREG(status.st_mode)) {
      size_ = static_cast<std::uint64_t>(status.st_size);
      return;
    }
    const error reason =
        known ? error(errc::io, "this is not a regular file").in_file(path) : failed("opened");
    ::close(number_);
    throw reason;
  }
  regular_file(const regular_file&) = delete;
  regular_file& operator=(const regular_file&) = delete;
  ~regular_file() { ::close(number_); }

  [[nodiscard]] int number() const noexcept { return number_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

  /// The first `into.size()` bytes.
  void read(mutable_bytes into) const {
    std::size_t filled = 0;
    while (filled < into.size()) {
      const auto got = ::read(number_, into.data() + filled, into.size() - filled);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw failed("read");
      if (got == 0)
        throw error(errc::io, "the file became shorter while it was read").in_file(*path_).at_offset(filled);
      filled += static_cast<std::size_t>(got);
    }
  }

 private:
  [[nodiscard]] error failed(const char* what) const {
    return error(errc::io, {"the file cannot be ", what, ": ", std::generic_category().message(errno)})
        .in_file(*path_);
  }

  const std::string* path_;
  int number_;
  std::uint64_t size_ = 0;
};

/// All bytes of a regular file, for small formats that are kept in memory. Throws `errc::io` that names the
/// file.
template <class = void>
[[nodiscard]] buffer read_whole_file(const std::string& path) {
  const regular_file file(path);
  buffer bytes(static_cast<std::size_t>(file.size()));
  file.read(bytes.span());
  return bytes;
}

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/source/directory.hpp

namespace penstock::inline v0_1 {

/// Choices of `directory`.
struct directory_options {
  /// The endings of the files to take, such as "jpg": in any case, with or without the dot. None: all files.
  std::vector<std::string> extensions;
};

namespace detail {

/// What one worker keeps for `directory`.
struct folder_worker {
  std::string path;
  buffer scratch;
  bool loaded = false;  // whether the scratch holds the file of the sample at hand
};

/// The bytes of a file below a folder, not read yet. Lives during the call that hands its sample on.
class folder_blob {
 public:
  using unfinished = void;

  folder_blob(folder_worker& worker, std::uint64_t size) noexcept : worker_(&worker), size_(size) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  /// Opens the file, reads it to its destination and closes it.
  void read_into(mutable_bytes into) const {
    if (into.size() != size_)
      throw error(errc::argument, {"a file of ", size_, " bytes was to be read into ", into.size()});
    const regular_file opened(worker_->path);
    if (opened.size() != size_)
      throw error(errc::io, {"the file had ", size_, " bytes when the dataset was opened and has ",
                             opened.size(), " now; open the dataset again"})
          .in_file(worker_->path);
    opened.read(into);
  }
  /// A view of the bytes in the worker's scratch, until the next sample.
  [[nodiscard]] bytes_view finish() const {
    if (!worker_->loaded) {
      worker_->scratch.resize_for_overwrite(static_cast<std::size_t>(size_));
      read_into(worker_->scratch.span());
      worker_->loaded = true;
    }
    return worker_->scratch.view();
  }

 private:
  folder_worker* worker_;
  std::uint64_t size_;
};

}  // namespace detail

/// The files below a folder, with the folders in it as classes: `train/cat/1.jpg` is of the class "cat".
///
///     auto images = directory("train", {.extensions = {"jpg", "jpeg"}});
///     auto names = images.classes();                               // {"cat", "dog"}: labels 0 and 1
///     auto batches = images | decode<field<"bytes", jpeg>> | shuffle(seed) | batch(64);
///
/// In: a path. Out: records of "bytes", a blob that is read when a stage asks for it, straight to its
/// destination, and "label", the number of the first folder's name among all of them, sorted by their bytes;
/// -1 where the folder has files only. The key is the path below the folder.
/// Files are taken at any depth and sorted by the bytes of their paths. Names that begin with a dot are
/// passed over; links are followed, but not to a folder that they lie in.
/// Kind: a source; indexed, deterministic, resumable, elastic, lockstep. Making the plan lists the folders
/// and looks at each file once; a plan holds path, size and label of each file, which its copies share.
/// Cost per sample: opening, reading and closing one file; no allocation in the steady state. Millions of
/// small files are read faster from shards (see `webdataset`).
/// Threads: any number at once.
/// Throws `errc::io` for a folder that is not there or cannot be read, and for a file that has another size
/// than when the plan was made; `errc::missing` where no file is found; `errc::format` for files that lie
/// beside folders of classes. Errors of the stages behind get the file and the key.
template <class = void>
class basic_directory {
 public:
  using penstock_part = source_tag;
  using element = record<field<"bytes", detail::folder_blob>, field<"label", std::int64_t>>;
  static constexpr std::string_view source_name = "directory";

  class reader {
   public:
    using worker = detail::folder_worker;

    explicit reader(std::shared_ptr<const detail::folder_files> files) noexcept : files_(std::move(files)) {}

    template <class Sink>
    void evaluate(position p, worker& w, Sink&& sink) const {
      const auto i = static_cast<std::size_t>(checked(p.index));
      name(i, w.path);
      w.loaded = false;
      try {
        sink(element(detail::folder_blob(w, files_->sizes[i]), std::int64_t{files_->labels[i]}));
      } catch (error& e) {
        e.in_file(w.path).for_key(files_->path(i));
        throw;
      }
    }
    [[nodiscard]] std::string key(std::uint64_t index) const {
      return std::string(files_->path(static_cast<std::size_t>(checked(index))));
    }
    /// Asks the system to read the file.
    void will_need(std::uint64_t index) const noexcept {
      try {
        std::string path;
        name(static_cast<std::size_t>(checked(index)), path);
        const detail::regular_file opened(path);
        ::posix_fadvise(opened.number(), 0, 0, POSIX_FADV_WILLNEED);
      } catch (...) {  // the read itself will say what is wrong
      }
    }
    [[nodiscard]] std::uint64_t bytes_per_sample() const noexcept { return files_->bytes / files_->size(); }

   private:
    [[nodiscard]] std::uint64_t checked(std::uint64_t index) const {
      if (index >= files_->size())
        throw error(errc::argument, {"there is no sample ", index, ": the dataset has ", files_->size()});
      return index;
    }
    void name(std::size_t i, std::string& into) const {
      into.assign(files_->root).append("/").append(files_->path(i));
    }

    std::shared_ptr<const detail::folder_files> files_;
  };

  explicit basic_directory(std::string path, directory_options options = {})
      : files_(new const detail::folder_files(
            detail::folder_walk(std::move(path), std::move(options.extensions)).run())) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return files_->size(); }
  [[nodiscard]] std::shared_ptr<const std::vector<std::uint64_t>> starts() const noexcept { return nullptr; }
  /// The names of the classes: that of label `i` is `classes()[i]`. All folders in the folder have one, even
  /// when no file was found in them.
  [[nodiscard]] std::span<const std::string> classes() const noexcept { return files_->classes; }
  /// The path of a sample, below the folder.
  [[nodiscard]] std::string_view path(std::uint64_t index) const noexcept {
    return files_->path(static_cast<std::size_t>(index));
  }
  /// Of all paths and sizes and the names of the classes, not of where the folder is.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept { return files_->fingerprint; }
  [[nodiscard]] std::string describe() const {
    return detail::text({"directory(", files_->root, "): ", size(), " files, ", files_->classes.size(),
                         " classes, ", files_->bytes, " bytes"});
  }
  [[nodiscard]] reader open() const noexcept { return reader(files_); }

 private:
  std::shared_ptr<const detail::folder_files> files_;
};
/// The form to use: see `basic_directory`.
class directory : public basic_directory<> {
 public:
  using basic_directory<>::basic_directory;
};

}  // namespace penstock::inline v0_1

// ---- penstock/source/detail/fingerprint.hpp

namespace penstock::inline v0_1 {
namespace detail {

/// A hash of bytes for fingerprints, eight at a time; the same on every machine. Not for adversaries.
[[nodiscard]] inline std::uint64_t hash_bytes(std::uint64_t seed, bytes_view bytes) noexcept {
  std::uint64_t hash = mix64(seed ^ bytes.size());
  while (!bytes.empty()) {
    const std::size_t n = std::min<std::size_t>(8, bytes.size());
    std::array<std::byte, 8> word{};
    std::memcpy(word.data(), bytes.data(), n);
    hash = mix64(hash ^ load_little<std::uint64_t>(word.data()));
    bytes = bytes.subspan(n);
  }
  return hash;
}

/// The same of numbers, as their little-endian bytes would have it.
[[nodiscard]] inline std::uint64_t hash_words(std::uint64_t seed,
                                              std::span<const std::uint64_t> words) noexcept {
  std::uint64_t hash = mix64(seed ^ words.size_bytes());
  for (const std::uint64_t word : words) hash = mix64(hash ^ word);
  return hash;
}

/// `hash_bytes` of the first and the last MiB only: a fingerprint must not cost a pass over a dataset.
[[nodiscard]] inline std::uint64_t hash_ends(std::uint64_t seed, bytes_view bytes) noexcept {
  constexpr std::size_t part = 1u << 20;
  if (bytes.size() <= 2 * part) return hash_bytes(seed, bytes);
  return hash_bytes(hash_bytes(seed ^ bytes.size(), bytes.first(part)), bytes.last(part));
}

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/source/from.hpp

namespace penstock::inline v0_1 {

namespace detail {

template <class R>
concept iterable = requires(R& r) {
  { std::begin(r) } -> std::input_iterator;
  { std::begin(r) != std::end(r) } -> std::convertible_to<bool>;
};
template <class R>
concept sized_random_access = iterable<const R> && requires(const R& r) {
  { std::begin(r) } -> std::random_access_iterator;
  { std::size(r) } -> std::integral;
};
template <class R>
using iterated_value = std::iter_value_t<decltype(std::begin(std::declval<R&>()))>;

/// Types whose bytes are their value: no padding with unspecified contents, no pointers to anything.
template <class T>
concept plain_bits = (std::is_trivially_copyable_v<T> && std::has_unique_object_representations_v<T> &&
                      !std::is_pointer_v<T>) ||
                     std::floating_point<T>;

}  // namespace detail

/// The indexed source that `from` makes of a random-access range.
template <detail::sized_random_access Range>
class from_source {
 public:
  using penstock_part = source_tag;
  using element = detail::iterated_value<const Range>;
  static constexpr std::string_view source_name = "from";
  static constexpr bool in_one_piece = std::is_trivially_copyable_v<element> && requires(const Range& r) {
    { std::data(r) } -> std::convertible_to<const element*>;
  };

  class reader {
   public:
    struct worker {};
    explicit reader(std::shared_ptr<const Range> range) noexcept : range_(std::move(range)) {}

    template <class Sink>
    void evaluate(position p, worker&, Sink&& sink) const {
      auto&& item = std::begin(*range_)[static_cast<difference>(p.index)];
      if constexpr (std::is_trivially_copyable_v<element> && sizeof(element) <= 2 * sizeof(void*)) {
        sink(static_cast<element>(item));
      } else {
        const element& sample = item;
        sink(sample);
      }
    }
    /// Asks the processor for a sample that is evaluated soon.
    void touch(position p) const noexcept
      requires in_one_piece
    {
      const auto* const bytes = reinterpret_cast<const char*>(std::data(*range_) + p.index);
      for (std::size_t at = 0; at < std::min<std::size_t>(sizeof(element), 2048); at += 64)
        __builtin_prefetch(bytes + at);
    }
    [[nodiscard]] std::string key(std::uint64_t index) const { return std::to_string(index); }
    /// The mean payload of a sample, from a few of them.
    [[nodiscard]] std::uint64_t bytes_per_sample() const {
      if constexpr (requires(const element& e) {
                      e.size();
                      sizeof(*e.data());
                    }) {
        const auto count = static_cast<std::uint64_t>(std::size(*range_)), step = count / 16 + 1;
        std::uint64_t bytes = 0, seen = 0;
        for (std::uint64_t i = 0; i < count; i += step, ++seen) {
          const element& e = std::begin(*range_)[static_cast<difference>(i)];
          bytes += e.size() * sizeof(*e.data());
        }
        return seen == 0 ? 0 : bytes / seen;
      } else {
        return sizeof(element);
      }
    }

   private:
    using difference = std::iter_difference_t<decltype(std::begin(std::declval<const Range&>()))>;
    std::shared_ptr<const Range> range_;
  };

  explicit from_source(Range range) : range_(new const Range(std::move(range))) {}

  [[nodiscard]] std::uint64_t size() const { return static_cast<std::uint64_t>(std::size(*range_)); }
  [[nodiscard]] std::shared_ptr<const std::vector<std::uint64_t>> starts() const noexcept { return nullptr; }
  [[nodiscard]] std::string describe() const {
    return detail::text({"from(", size(), " samples in memory)"});
  }
  /// Of the number of samples; and, where they are plain values without padding, texts or bytes, of the first
  /// and last MiB.
  [[nodiscard]] std::uint64_t fingerprint() const {
    std::uint64_t hash = mix64(size() ^ 0x66726f6d);
    if constexpr (detail::plain_bits<element> && requires {
                    { std::data(*range_) } -> std::convertible_to<const element*>;
                  }) {
      return detail::hash_ends(
          hash, std::as_bytes(std::span<const element>(std::data(*range_), std::size(*range_))));
    } else if constexpr (std::convertible_to<const element&, bytes_view> ||
                         std::convertible_to<const element&, std::string_view>) {
      const auto bytes = [](const element& e) -> bytes_view {
        if constexpr (std::convertible_to<const element&, bytes_view>)
          return e;
        else
          return bytes_of(e);
      };
      const auto add_until_full = [&](auto first, auto last) {
        for (std::size_t seen = 0; first != last && seen < 1_MiB; ++first) {
          const element& item = *first;
          hash = detail::hash_ends(hash, bytes(item));
          seen += bytes(item).size() + 1;
        }
      };
      const auto first = std::begin(*range_);
      const auto last =
          first +
          static_cast<std::iter_difference_t<decltype(std::begin(std::declval<const Range&>()))>>(size());
      add_until_full(first, last);
      add_until_full(std::make_reverse_iterator(last), std::make_reverse_iterator(first));
    }
    return hash;
  }
  [[nodiscard]] reader open() const { return reader(range_); }

 private:
  std::shared_ptr<const Range> range_;
};

/// The forward-only source that `from` makes of any other range.
template <detail::iterable Range>
class from_forward_source {
  using iterator = decltype(std::begin(std::declval<Range&>()));
  using sentinel = decltype(std::end(std::declval<Range&>()));
  // A range that caches its beginning (a filter view) must not be shared by two readers; a copy of a view is
  // cheap.
  static constexpr bool copied =
      !detail::iterable<const Range> && std::forward_iterator<iterator> && std::copyable<Range>;
  static constexpr bool single_use =
      !copied && !(detail::iterable<const Range> && std::forward_iterator<iterator>);

  struct shared_range {
    explicit shared_range(Range r) : range(std::move(r)) {}
    Range range;
    std::atomic<bool> taken{false};
  };

 public:
  using penstock_part = source_tag;
  using element = std::iter_value_t<iterator>;
  static constexpr std::string_view source_name = "from";

  class reader {
   public:
    explicit reader(std::shared_ptr<shared_range> range) : range_(std::move(range)) {}

    [[nodiscard]] bool next(element& e) {
      if (!cursor_)
        begin();
      else if (cursor_->at != cursor_->end)
        ++cursor_->at;
      if (!(cursor_->at != cursor_->end)) return false;
      e = *cursor_->at;
      return true;
    }
    void rewind(std::uint64_t) {
      if (!cursor_) return;
      if constexpr (single_use)
        read_twice();
      else
        cursor_.reset();
    }

   private:
    struct cursor {
      iterator at;
      sentinel end;
    };
    [[noreturn]] static void read_twice() {
      throw error(errc::state,
                  "from: this range can be read once only; collect it into a vector to read it again");
    }
    void begin() {
      if constexpr (single_use)
        if (range_->taken.exchange(true)) read_twice();
      cursor_.emplace(cursor{std::begin(range_->range), std::end(range_->range)});
    }

    std::shared_ptr<shared_range> range_;
    std::optional<cursor> cursor_;
  };

  explicit from_forward_source(Range range) : range_(new shared_range(std::move(range))) {}

  [[nodiscard]] std::string describe() const { return "from(a range that is read forward)"; }
  /// The same for all ranges: what they hold is not known before it is read.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept { return mix64(0x66726f6d); }
  [[nodiscard]] reader open() const {
    if constexpr (copied)
      return reader(std::shared_ptr<shared_range>(new shared_range(range_->range)));
    else
      return reader(range_);
  }

 private:
  std::shared_ptr<shared_range> range_;
};

/// The function object behind `from`.
struct from_fn {
  template <class Range>
  [[nodiscard]] auto operator()(Range range) const {
    if constexpr (detail::sized_random_access<Range>) {
      return from_source<Range>(std::move(range));
    } else if constexpr (detail::iterable<Range>) {
      using element = typename from_forward_source<Range>::element;
      if constexpr (std::default_initializable<element> && std::movable<element>) {
        return from_forward_source<Range>(std::move(range));
      } else {
        static_assert(std::default_initializable<element> && std::movable<element>,
                      "penstock: from(range): a range that is read forward needs elements that are movable "
                      "and can be made empty");
        return from_source<std::vector<Range>>({});
      }
    } else {
      static_assert(detail::iterable<Range>,
                    "penstock: from(range): this is not a range; give it a vector, a std::span or anything "
                    "with begin and end");
      return from_source<std::vector<Range>>({});
    }
  }
  template <class T>
  [[nodiscard]] from_source<std::vector<T>> operator()(std::initializer_list<T> values) const {
    return from_source<std::vector<T>>(std::vector<T>(values));
  }
};

/// A dataset that is in memory, or that an iterator gives.
///
/// In: a range, which is moved (or copied, if the caller keeps it) into the plan and shared by its copies; a
/// `std::span` or a view only borrows, and what it refers to must outlive all plans and runs. Out: a
/// random-access range of known size gives an indexed source, any other a forward-only one. Samples of class
/// type are handed on as `const T&`, small plain ones by value;
/// texts and vectors of bytes are byte elements, which `decode` accepts.
/// Kind: a source; indexed, deterministic, resumable, elastic, lockstep. A forward-only one: deterministic
/// only.
/// Cost per sample: none when indexed; a copy when forward. No allocation, but for what copying a sample
/// allocates.
/// Threads: an indexed range is read by all workers at once, as const; a forward one by one thread at a time.
/// Throws `errc::state` when a range that can be read once is read again.
///
///     auto words = from(std::vector<std::string>{"one", "two"});
///     auto borrowed = from(std::span<const float>(values));
inline constexpr from_fn from{};

}  // namespace penstock::inline v0_1

// ---- penstock/source/detail/starts.hpp

namespace penstock::inline v0_1 {
namespace detail {

/// Checks where the caller says that shards begin, and shares it; null where there are none.
[[nodiscard]] inline std::shared_ptr<const std::vector<std::uint64_t>> shared_starts(
    std::string_view who, std::uint64_t size, std::vector<std::uint64_t> starts) {
  if (starts.empty()) return nullptr;
  if (starts.size() < 2 || starts.front() != 0 || starts.back() != size ||
      !std::is_sorted(starts.begin(), starts.end()))
    throw error(errc::argument,
                {who, ": the starts of shards must ascend from 0 to the number of samples, ", size});
  return std::shared_ptr<const std::vector<std::uint64_t>>(
      new const std::vector<std::uint64_t>(std::move(starts)));
}

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/source/generated.hpp

namespace penstock::inline v0_1 {

/// What makes samples: called as const, from many threads, with an index and perhaps a generator of random
/// numbers.
template <class F>
concept sample_generator = std::copy_constructible<F> && (std::invocable<const F&, std::uint64_t> ||
                                                          std::invocable<const F&, std::uint64_t, rng&>);

/// The source that `generated` makes.
template <sample_generator F>
class generated_source {
  static constexpr bool takes_rng = std::invocable<const F&, std::uint64_t, rng&>;
  static auto call(const F& f, std::uint64_t seed, std::uint64_t index) -> decltype(auto) {
    if constexpr (takes_rng) {
      // epoch 0 always: a dataset is the same in every epoch
      rng random(seed, 0, index, stream);
      return f(index, random);
    } else {
      return f(index);
    }
  }
  static constexpr std::uint64_t stream = 0x67656e;

 public:
  using penstock_part = source_tag;
  using element = std::remove_cvref_t<decltype(call(std::declval<const F&>(), 0, 0))>;
  static constexpr std::string_view source_name = "generated";

  class reader {
   public:
    struct worker {};
    explicit reader(const generated_source& source) : f_(source.f_), seed_(source.seed_) {}

    template <class Sink>
    void evaluate(position p, worker&, Sink&& sink) const {
      sink(call(f_, seed_, p.index));
    }
    [[nodiscard]] std::string key(std::uint64_t index) const { return std::to_string(index); }

   private:
    F f_;
    std::uint64_t seed_;
  };

  generated_source(std::uint64_t size, F f, std::vector<std::uint64_t> starts = {}, std::uint64_t seed = 0)
      : f_(std::move(f)),
        starts_(detail::shared_starts(source_name, size, std::move(starts))),
        size_(size),
        seed_(seed) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] std::shared_ptr<const std::vector<std::uint64_t>> starts() const noexcept { return starts_; }
  [[nodiscard]] std::string describe() const { return detail::text({"generated(", size_, ")"}); }
  /// Of the size, the seed and the shards. The function cannot be seen: when it changes, change the seed.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept {
    penstock::fingerprint sum;
    sum.add(source_name, size_, seed_);
    if (starts_)
      for (const std::uint64_t start : *starts_) sum.add(start);
    return sum.value();
  }
  [[nodiscard]] reader open() const { return reader(*this); }

 private:
  F f_;
  std::shared_ptr<const std::vector<std::uint64_t>> starts_;
  std::uint64_t size_;
  std::uint64_t seed_;
};

/// The function object behind `generated`.
struct generated_fn {
  template <class F>
  [[nodiscard]] auto operator()(std::uint64_t size, F f, std::vector<std::uint64_t> starts = {},
                                std::uint64_t seed = 0) const {
    if constexpr (sample_generator<F>) {
      return generated_source<F>(size, std::move(f), std::move(starts), seed);
    } else {
      static_assert(sample_generator<F>,
                    "penstock: generated(n, f): f must be callable as const with f(index) or f(index, rng&), "
                    "since many threads share it; "
                    "a mutable lambda is not");
      const auto nothing = [](std::uint64_t) { return 0; };
      return generated_source<decltype(nothing)>(size, nothing);
    }
  }
};

/// A dataset that a function makes: sample i is `f(i)`, or `f(i, random)` with random numbers that belong to
/// sample i.
///
/// In: the number of samples; a function of a `std::uint64_t` (and an `rng&`), const-callable, whose result
/// is the sample (it may be unfinished); perhaps where shards begin (ascending, from 0 to n) and a seed for
/// the random numbers.
/// Kind: an indexed source; indexed, deterministic, resumable, elastic and lockstep, as long as f is a
/// function of its arguments.
/// Cost per sample: that of f, which is inlined; no allocation. Threads: f is called from all workers at
/// once.
/// Throws `errc::argument` for starts that do not fit; f's exceptions pass through.
///
///     auto squares = generated(1'000, [](std::uint64_t i) { return i * i; });
///     auto noise = generated(1'000, [](std::uint64_t, rng& r) { return r.uniform(-1, 1); });
inline constexpr generated_fn generated{};

}  // namespace penstock::inline v0_1

// ---- penstock/source/detail/idx_file.hpp

namespace penstock::inline v0_1 {
namespace detail {

/// The code that IDX files have for numbers of type `T`, or 0 where they have none.
template <class T>
inline constexpr unsigned idx_code = std::same_as<T, std::uint8_t>   ? 0x08
                                     : std::same_as<T, std::int8_t>  ? 0x09
                                     : std::same_as<T, std::int16_t> ? 0x0b
                                     : std::same_as<T, std::int32_t> ? 0x0c
                                     : std::same_as<T, float>        ? 0x0d
                                     : std::same_as<T, double>       ? 0x0e
                                                                     : 0;

/// One number of a file, which is big-endian.
template <class T>
[[nodiscard]] T idx_number(const std::byte* at) noexcept {
  std::array<std::byte, sizeof(T)> item;
  std::memcpy(item.data(), at, sizeof(T));
  if constexpr (sizeof(T) > 1 && std::endian::native == std::endian::little)
    std::reverse(item.begin(), item.end());
  return std::bit_cast<T>(item);
}

/// A whole IDX file in memory, its header checked against its size.
struct idx_file {
  buffer bytes;
  std::string path;
  std::uint64_t rows = 0;
  extents row;
  std::size_t first = 0;  // where the numbers begin
  std::size_t row_bytes = 0;

  [[nodiscard]] const std::byte* row_at(std::uint64_t index) const noexcept {
    return bytes.data() + first + static_cast<std::size_t>(index) * row_bytes;
  }
};

/// Takes the bytes of an IDX file of numbers of type `T`; anything but a header that fits them exactly is
/// `errc::format`.
/// Source: the page of the MNIST database (LeCun, Cortes, Burges), "the IDX file format".
template <class T>
[[nodiscard]] idx_file parse_idx(buffer bytes, std::string path) {
  const auto fail = [&path](std::string what, std::uint64_t offset) -> error {
    return error(errc::format, std::move(what)).in_file(path).at_offset(offset);
  };
  const bytes_view all = bytes.view();
  const auto octet = [&](std::size_t i) { return std::to_integer<unsigned>(all[i]); };
  if (all.size() < 4 || octet(0) != 0 || octet(1) != 0)
    throw fail("this is not an IDX file: it does not begin with two zeros", 0);
  if (octet(2) != idx_code<T>) {
    constexpr char hex[] = "0123456789abcdef";
    const auto two = [&](unsigned code) { return detail::text({"0x", hex[code >> 4], hex[code & 15]}); };
    throw fail("the IDX file holds numbers of type " + two(octet(2)) + ", but " + two(idx_code<T>) +
                   " was asked for; see idx<T>",
               2);
  }
  const std::size_t rank = octet(3);
  if (rank == 0 || rank > extents::max_rank)
    throw fail("the IDX header says " + std::to_string(rank) + " dimensions, and from 1 to " +
                   std::to_string(extents::max_rank) + " are supported",
               3);
  const std::size_t first = 4 + 4 * rank;
  if (all.size() < first) throw fail("the IDX file ends within its header", all.size());
  // saturates at what no file can hold: eight lengths of 32 bits may multiply to more than 64 bits
  const auto times = [](std::uint64_t a, std::uint64_t b) {
    constexpr std::uint64_t most = std::uint64_t{1} << 63;
    return b != 0 && a > most / b ? most : a * b;
  };
  idx_file file;
  file.rows = idx_number<std::uint32_t>(all.data() + 4);
  std::uint64_t row_bytes = sizeof(T);
  for (std::size_t i = 1; i < rank; ++i) {
    const std::uint64_t length = idx_number<std::uint32_t>(all.data() + 4 + 4 * i);
    file.row.push_back(length);
    row_bytes = times(row_bytes, length);
  }
  const std::uint64_t expected = times(row_bytes, file.rows);
  const std::uint64_t present = all.size() - first;
  if (expected != present)
    throw fail("the IDX header says " + std::to_string(file.rows) + " rows of shape " + to_string(file.row) +
                   ", but " + std::to_string(present) + " bytes follow it",
               first);
  file.first = first;
  file.row_bytes = static_cast<std::size_t>(row_bytes);
  file.bytes = std::move(bytes);
  file.path = std::move(path);
  return file;
}

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/source/idx.hpp

namespace penstock::inline v0_1 {

/// Numbers that IDX files can hold.
template <class T>
concept idx_value = detail::idx_code<T> != 0;

/// One row of an IDX file, such as an image: an array expression over the file's bytes.
template <idx_value T>
class idx_row {
 public:
  using unfinished = void;
  using value_type = T;

  idx_row(const std::byte* data, const extents& shape, buffer& scratch) noexcept
      : data_(data), shape_(shape), scratch_(&scratch) {}

  [[nodiscard]] const extents& shape() const noexcept { return shape_; }
  void write_to(T* into) const noexcept {
    const auto count = static_cast<std::size_t>(shape_.elements());
    if constexpr (sizeof(T) == 1) {
      if (count != 0) std::memcpy(into, data_, count);
    } else {
      for (std::size_t i = 0; i < count; ++i) into[i] = detail::idx_number<T>(data_ + i * sizeof(T));
    }
  }
  /// A view of the values: in place where they are bytes, else in the worker's scratch.
  [[nodiscard]] tensor_view<const T> finish() const {
    if constexpr (sizeof(T) == 1) {
      return {reinterpret_cast<const T*>(data_), shape_};
    } else {
      scratch_->resize_for_overwrite(static_cast<std::size_t>(shape_.elements()) * sizeof(T));
      T* const values = reinterpret_cast<T*>(scratch_->data());
      write_to(values);
      return {values, shape_};
    }
  }

 private:
  const std::byte* data_;
  extents shape_;
  buffer* scratch_;
};

/// The source that `idx` makes of one file.
template <idx_value T>
class idx_source {
 public:
  using penstock_part = source_tag;
  using element = idx_row<T>;
  static constexpr std::string_view source_name = "idx";

  class reader {
   public:
    struct worker {
      buffer scratch;
    };
    explicit reader(std::shared_ptr<const detail::idx_file> file) noexcept : file_(std::move(file)) {}

    template <class Sink>
    void evaluate(position p, worker& w, Sink&& sink) const {
      sink(idx_row<T>(file_->row_at(p.index), file_->row, w.scratch));
    }
    [[nodiscard]] std::string key(std::uint64_t index) const { return std::to_string(index); }
    [[nodiscard]] std::uint64_t bytes_per_sample() const noexcept { return file_->row_bytes; }

   private:
    std::shared_ptr<const detail::idx_file> file_;
  };

  /// Takes the bytes of a file; `path` is for messages.
  idx_source(buffer bytes, std::string path)
      : file_(new const detail::idx_file(detail::parse_idx<T>(std::move(bytes), std::move(path)))) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return file_->rows; }
  [[nodiscard]] std::shared_ptr<const std::vector<std::uint64_t>> starts() const noexcept { return nullptr; }
  [[nodiscard]] std::string describe() const {
    return detail::text({"idx(", file_->path, ", ", file_->rows, " rows of ", to_string(file_->row), ")"});
  }
  /// Of the size and the first and last MiB.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept {
    return detail::hash_ends(0x696478, file_->bytes.view());
  }
  [[nodiscard]] reader open() const noexcept { return reader(file_); }

  [[nodiscard]] const detail::idx_file& file() const noexcept { return *file_; }

 private:
  std::shared_ptr<const detail::idx_file> file_;
};

/// The source that `idx` makes of a file of images and a file of labels.
template <idx_value T, idx_value Label>
class idx_pair_source {
 public:
  using penstock_part = source_tag;
  using element = record<field<"image", idx_row<T>>, field<"label", Label>>;
  static constexpr std::string_view source_name = "idx";

  class reader {
   public:
    struct worker {
      buffer scratch;
    };
    explicit reader(const idx_pair_source& source) noexcept
        : images_(source.images_), labels_(source.labels_) {}

    template <class Sink>
    void evaluate(position p, worker& w, Sink&& sink) const {
      const detail::idx_file& images = images_.file();
      sink(element(idx_row<T>(images.row_at(p.index), images.row, w.scratch),
                   detail::idx_number<Label>(labels_.file().row_at(p.index))));
    }
    [[nodiscard]] std::string key(std::uint64_t index) const { return std::to_string(index); }
    [[nodiscard]] std::uint64_t bytes_per_sample() const noexcept {
      return images_.file().row_bytes + sizeof(Label);
    }

   private:
    idx_source<T> images_;
    idx_source<Label> labels_;
  };

  idx_pair_source(idx_source<T> images, idx_source<Label> labels)
      : images_(std::move(images)), labels_(std::move(labels)) {
    if (labels_.file().row.rank() != 0)
      throw error(errc::format, {"the IDX file of labels must have one dimension, and its rows have shape ",
                                 to_string(labels_.file().row)})
          .in_file(labels_.file().path)
          .at_offset(3);
    if (images_.size() != labels_.size())
      throw error(errc::format, {"there are ", labels_.size(), " labels for the ", images_.size(),
                                 " images of ", images_.file().path})
          .in_file(labels_.file().path)
          .at_offset(4);
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return images_.size(); }
  [[nodiscard]] std::shared_ptr<const std::vector<std::uint64_t>> starts() const noexcept { return nullptr; }
  [[nodiscard]] std::string describe() const {
    return detail::text({"idx(images ", images_.describe(), ", labels ", labels_.describe(), ")"});
  }
  [[nodiscard]] std::uint64_t fingerprint() const noexcept {
    return mix64(images_.fingerprint() ^ mix64(labels_.fingerprint()));
  }
  [[nodiscard]] reader open() const noexcept { return reader(*this); }

 private:
  idx_source<T> images_;
  idx_source<Label> labels_;
};

/// The rows of an IDX file, the format of MNIST and its like.
///
/// In: a path. Out: array expressions of `T` with the file's shape without its first length (a scalar for a
/// file of one dimension); the file's big-endian numbers are turned round on the way.
/// Kind: an indexed source; indexed, deterministic, resumable, elastic, lockstep. The whole file is read when
/// the plan is made and shared by its copies. Cost per sample: one copy of the row; no allocation, but for
/// `finish` of wider numbers.
/// Threads: any number at once.
/// Throws `errc::io`; `errc::format` with file and offset when the header does not fit the file's size
/// exactly, or the file holds other numbers than `T`.
/// Source: the page of the MNIST database (LeCun, Cortes, Burges), "the IDX file format".
///
///     auto images = idx("train-images-idx3-ubyte") | batch(256);
template <idx_value T = std::uint8_t>
[[nodiscard]] idx_source<T> idx(const std::string& path) {
  return {detail::read_whole_file(path), path};
}

/// The same for images and their labels: records of "image", an array expression of `T`, and "label", a
/// `Label`.
/// Throws also `errc::format` when the two files have different numbers of rows.
///
///     auto mnist = idx("train-images-idx3-ubyte", "train-labels-idx1-ubyte") | shuffle(seed) | batch(256);
template <idx_value T = std::uint8_t, idx_value Label = std::uint8_t>
[[nodiscard]] idx_pair_source<T, Label> idx(const std::string& images, const std::string& labels) {
  return {idx<T>(images), idx<Label>(labels)};
}

}  // namespace penstock::inline v0_1

// ---- penstock/source/index_policy.hpp

namespace penstock::inline v0_1 {

/// What a source does about the indexes of its shards.
///
/// `keep`       uses the file `<shard>.penstock-index` where it is there and belongs to the shard; otherwise
/// builds the index and
///              keeps it in that file, or in memory where the folder may not be written
/// `transient`  the same, but writes no file
/// `require`    builds nothing: an index that is missing, damaged or made for another state of its shard is
/// an error that names both files
/// `dali`       makes the index from DALI's, `train-0.idx` for `train-0.tar`. One of version v1.2 names all
/// members: nothing but a few headers is read, the first, the last and 62 between them. One of v1.1 does not:
/// all headers are read and compared
/// `energon`    holds the index of Megatron-Energon, `train-0.tar.idx`, against all headers
///
/// What other programs wrote must be there and agree with its shard: else errc::missing or errc::format with
/// the names of both files. It stays in memory: no file is written. Energon's `.nv-meta` is read by
/// `energon`, but for its offsets: they are in an SQLite database, and repeat what the `.idx` says.
/// Source: DALI, wds2idx.py and webdataset_loader.cc; Megatron-Energon, itar.py.
enum class index_policy { keep, transient, require, dali, energon };

}  // namespace penstock::inline v0_1

// ---- penstock/source/detail/parallel.hpp

namespace penstock::inline v0_1 {
namespace detail::tar {

/// One loop whose rounds are done by several threads.
class parallel_loop {
 public:
  using work_type = void (*)(void* what, std::size_t i);

  parallel_loop(std::size_t count, work_type work, void* what)
      : count_(count), work_(work), what_(what), lowest_(count) {}

  void run(std::size_t threads) {
    if (threads == 0) threads = static_cast<std::size_t>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
    threads = std::min(threads, count_);
    std::vector<pthread_t> others;
    for (std::size_t i = 1; i < threads; ++i) {
      others.reserve(threads);
      pthread_t one{};
      if (::pthread_create(&one, nullptr, take_rounds, this) != 0) break;  // those there are do the work
      others.push_back(one);
    }
    take_rounds(this);
    for (const pthread_t other : others) ::pthread_join(other, nullptr);
    if (first_) std::rethrow_exception(first_);
  }

 private:
  static void* take_rounds(void* given) noexcept {
    auto& loop = *static_cast<parallel_loop*>(given);
    while (!loop.failed_.load(std::memory_order_relaxed)) {
      // Numbers go out in order: when one fails, all lower ones were begun and will be finished.
      const std::size_t i = loop.next_.fetch_add(1, std::memory_order_relaxed);
      if (i >= loop.count_) break;
      try {
        loop.work_(loop.what_, i);
      } catch (...) {
        const std::lock_guard lock(loop.mutex_);
        if (i < loop.lowest_) {
          loop.lowest_ = i;
          loop.first_ = std::current_exception();
        }
        loop.failed_.store(true, std::memory_order_relaxed);
      }
    }
    return nullptr;
  }

  std::size_t count_;
  work_type work_;
  void* what_;
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::size_t lowest_;
  std::exception_ptr first_;
};

/// Calls `work(i)` for each i below `count`, in up to `threads` threads (0: as many as the machine has). Of
/// several exceptions the one with the lowest i is thrown; after one, no new i is begun.
template <class Work>
void for_each_in_parallel(std::size_t count, std::size_t threads, Work&& work) {
  using work_type = std::remove_reference_t<Work>;
  parallel_loop(
      count, [](void* what, std::size_t i) { (*static_cast<work_type*>(what))(i); },
      const_cast<std::remove_const_t<work_type>*>(&work))
      .run(threads);
}

}  // namespace detail::tar
}  // namespace penstock::inline v0_1

// ---- penstock/source/manifest.hpp

namespace penstock::inline v0_1 {

/// What shards a dataset has: their names, bytes and numbers of samples, with a fingerprint of it all.
///
/// The fingerprint is a function of each shard's name without its folders, of its size, its number of samples
/// and a checksum of its index: it stays the same when the dataset is copied to another place, and changes
/// when the samples do.
/// A value; copies share their tables. Threads: const after it is made.
template <class = void>
class basic_manifest {
 public:
  struct shard {
    std::string name;
    std::uint64_t bytes = 0;  ///< size of the file
    std::uint64_t samples = 0;
    std::uint64_t payload = 0;  ///< bytes in the members of samples
    std::uint64_t content = 0;  ///< checksum of the index: where each member lies, and all keys
  };
  /// Where a sample is: the number of its shard, and its number in it.
  struct place {
    std::size_t shard = 0;
    std::uint64_t sample = 0;
    std::uint64_t first = 0;  ///< the number of the shard's first sample in the dataset
  };

  basic_manifest() : basic_manifest(std::vector<shard>{}) {}
  explicit basic_manifest(std::vector<shard> shards) {
    std::shared_ptr<tables> made(new tables());
    std::shared_ptr<std::vector<std::uint64_t>> begins(new std::vector<std::uint64_t>());
    penstock::fingerprint mark;
    mark.add("manifest", shards.size());
    for (std::size_t i = 0; i < shards.size(); ++i) {
      const shard& s = shards[i];
      if (s.samples != 0) {
        begins->push_back(made->samples);
        made->filled.push_back(i);
      }
      if (s.samples > most_samples - made->samples) {
        throw error(errc::limit, {"the files hold more than ", most_samples, " samples together"})
            .in_file(s.name);
      }
      made->samples += s.samples;
      made->payload += s.payload;
      made->bytes += s.bytes;
      mark.add(std::string_view(s.name).substr(s.name.rfind('/') + 1), s.bytes, s.samples, s.content);
    }
    if (begins->empty()) begins->push_back(0);
    begins->push_back(made->samples);
    made->fingerprint = mark.value();
    made->starts = std::move(begins);
    made->shards = std::move(shards);
    tables_ = std::move(made);
  }

  [[nodiscard]] std::span<const shard> shards() const noexcept { return tables_->shards; }
  [[nodiscard]] std::uint64_t samples() const noexcept { return tables_->samples; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return tables_->bytes; }
  [[nodiscard]] std::uint64_t payload() const noexcept { return tables_->payload; }
  [[nodiscard]] std::uint64_t fingerprint() const noexcept { return tables_->fingerprint; }
  /// Where the shards that have samples begin, and last the number of samples.
  [[nodiscard]] std::shared_ptr<const std::vector<std::uint64_t>> starts() const noexcept {
    return tables_->starts;
  }

  /// The place of sample `index`, which must be less than `samples()`. Logarithmic in the number of shards.
  [[nodiscard]] place locate(std::uint64_t index) const noexcept {
    const auto& starts = *tables_->starts;
    const auto after = std::upper_bound(starts.begin(), starts.end(), index);
    const auto which = static_cast<std::size_t>(after - starts.begin()) - 1;
    return {tables_->filled[which], index - starts[which], starts[which]};
  }

 private:
  // Samples of no bytes take no room: headers alone can announce more than can be counted.
  static constexpr std::uint64_t most_samples = std::uint64_t{1} << 62;

  struct tables {
    std::vector<shard> shards;
    std::vector<std::size_t> filled;  // the shards that have samples
    std::shared_ptr<const std::vector<std::uint64_t>> starts;
    std::uint64_t samples = 0;
    std::uint64_t bytes = 0;
    std::uint64_t payload = 0;
    std::uint64_t fingerprint = 0;
  };
  std::shared_ptr<const tables> tables_;
};
/// The form to use: see `basic_manifest`.
class manifest : public basic_manifest<> {
 public:
  using basic_manifest<>::basic_manifest;
};

}  // namespace penstock::inline v0_1

// ---- penstock/source/detail/stored_files.hpp

/// What sources of plain files share: the files as the plan saw them, the files of a run, and arrays in them
/// that have not been read.
namespace penstock::inline v0_1 {
namespace detail {

/// The files of a dataset when its plan was made. Shard `i` of the manifest is object `objects[i]`.
template <storage Storage>
struct known_files {
  explicit known_files(Storage given) : where(std::move(given)) {}

  Storage where;
  manifest shards;
  std::vector<object_id> objects;
  std::vector<object_signature> signatures;  // by shard

  [[nodiscard]] const std::string& path(std::size_t shard) const { return where.names()[objects[shard]]; }
};

/// The files of a run. Each is compared with what the plan saw when it is first used.
template <storage Storage>
class open_files {
 public:
  using session_type = typename Storage::session;

  explicit open_files(std::shared_ptr<const known_files<Storage>> known)
      : known_(std::move(known)),
        session_(known_->where.connect()),
        seen_(std::make_unique<std::atomic<bool>[]>(known_->objects.size())) {}

  /// The session, for reads of that shard. Takes no lock.
  [[nodiscard]] session_type& session(std::size_t shard) const {
    if (!seen_[shard].load(std::memory_order_relaxed)) [[unlikely]] {
      compare(shard);
    }
    return session_;
  }
  /// To be called when a sample of that shard has been used, or using it failed; see `penstock::confirm`.
  void confirm(std::size_t shard) const { penstock::confirm(session_, known_->objects[shard]); }
  void will_need(std::size_t shard, std::uint64_t offset, std::uint64_t size) const noexcept {
    session_.will_need(known_->objects[shard], offset, size);
  }
  /// The place of a sample; `errc::argument` where there is none.
  [[nodiscard]] manifest::place locate(std::uint64_t index) const {
    if (index >= known_->shards.samples())
      throw error(errc::argument,
                  {"there is no sample ", index, ": the dataset has ", known_->shards.samples()});
    return known_->shards.locate(index);
  }

 private:
  void compare(std::size_t shard) const {
    if (session_.signature(known_->objects[shard]) != known_->signatures[shard])
      throw error(errc::io, "the file was changed after the dataset was opened; open it again")
          .in_file(known_->path(shard));
    seen_[shard].store(true, std::memory_order_relaxed);
  }

  std::shared_ptr<const known_files<Storage>> known_;
  mutable session_type session_;  // sessions may be used from many threads
  std::unique_ptr<std::atomic<bool>[]> seen_;
};

/// A range of a file: a view where the session has one, else a copy in `room`.
template <class Session>
[[nodiscard]] bytes_view range_of(Session& session, object_id object, std::uint64_t offset,
                                  std::uint64_t size, buffer& room) {
  if constexpr (viewing_session<Session>) {
    return session.view(object, offset, size);
  } else {
    room.resize_for_overwrite(static_cast<std::size_t>(size));
    session.read(object, offset, room.span());
    return room.view();
  }
}

/// A hash of the first and the last 4 KiB of a file: two small reads, whatever its size.
template <class Session>
[[nodiscard]] std::uint64_t hash_of_file(Session& session, object_id object, std::uint64_t size) {
  buffer room;
  const std::uint64_t part = std::min<std::uint64_t>(size, 4_KiB);
  const std::uint64_t first = hash_bytes(size, range_of(session, object, 0, part, room));
  return hash_bytes(first, range_of(session, object, size - part, part, room));
}

/// A shape that the type knows.
template <std::uint64_t... Lengths>
struct known_shape {
  static constexpr extents static_shape{Lengths...};
  [[nodiscard]] static constexpr const extents& shape() noexcept { return static_shape; }
};
/// A shape that is known at run time.
struct given_shape {
  extents given;
  [[nodiscard]] const extents& shape() const noexcept { return given; }
};

/// An array that lies in a file in the order of memory, in the byte order of this machine or `swapped`: an
/// array expression, not read yet. Lives during the call that hands it on.
template <class T, class Shape, class Session>
class stored_array : public Shape {
 public:
  using unfinished = void;
  using value_type = T;

  stored_array(Shape shape, Session& session, object_id object, std::uint64_t offset, buffer& scratch,
               bool swapped) noexcept
      : Shape(shape),
        session_(&session),
        scratch_(&scratch),
        offset_(offset),
        object_(object),
        swapped_(sizeof(T) > 1 && swapped) {}

  /// Reads the values to where they are wanted.
  void write_to(T* into) const {
    auto* const to = reinterpret_cast<std::byte*>(into);
    session_->read(object_, offset_, {to, bytes()});
    if (swapped_)
      for (std::size_t i = 0; i < bytes(); i += sizeof(T)) std::reverse(to + i, to + i + sizeof(T));
    if constexpr (std::same_as<T, bool>) {
      // a byte other than 0 and 1 in a bool is undefined behaviour, and foreign files may have one
      std::transform(to, to + bytes(), to, [](std::byte b) { return std::byte{b != std::byte{0}}; });
    }
  }
  /// A view of the values: in place where the session has views, they are aligned and in the byte order of
  /// this machine, else of a copy in the worker's scratch.
  [[nodiscard]] tensor_view<const T> finish() const {
    if constexpr (viewing_session<Session> && !std::same_as<T, bool>) {
      const std::byte* const data = session_->view(object_, offset_, bytes()).data();
      if (!swapped_ && reinterpret_cast<std::uintptr_t>(data) % alignof(T) == 0)
        return {reinterpret_cast<const T*>(data), this->shape()};
    }
    scratch_->resize_for_overwrite(bytes());
    T* const values = reinterpret_cast<T*>(scratch_->data());
    write_to(values);
    return {values, this->shape()};
  }
  /// Where the values begin in their file.
  [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }

 private:
  [[nodiscard]] std::size_t bytes() const noexcept {
    return static_cast<std::size_t>(this->shape().elements()) * sizeof(T);
  }

  Session* session_;
  buffer* scratch_;
  std::uint64_t offset_;
  object_id object_;
  bool swapped_;
};

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/storage/braces.hpp

namespace penstock::inline v0_1 {

namespace detail::braces {

inline constexpr std::uint64_t most_names = 10'000'000;
inline constexpr std::uint64_t most_text = std::uint64_t{1} << 30;
inline constexpr int deepest = 64;

template <class = void>
[[noreturn]] void fail(const std::string& what, std::string_view pattern) {
  constexpr std::size_t shown = 200;
  throw error(errc::argument, {what, " in the name pattern '", pattern.substr(0, shown),
                               pattern.size() > shown ? "..." : "", "'"});
}

/// Where the text at `from` stops being inside braces: the matching '}', or npos.
template <class = void>
std::size_t closing(std::string_view text, std::size_t from) {
  int depth = 0;
  for (std::size_t i = from; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '{') {
      ++depth;
    } else if (text[i] == '}' && --depth == 0) {
      return i;
    }
  }
  return std::string_view::npos;
}

/// The parts between the commas of this level; nested braces stay whole.
template <class = void>
std::vector<std::string_view> split_list(std::string_view body) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < body.size(); ++i) {
    if (body[i] == '\\') {
      ++i;
    } else if (body[i] == '{') {
      ++depth;
    } else if (body[i] == '}') {
      --depth;
    } else if (body[i] == ',' && depth == 0) {
      parts.push_back(body.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  parts.push_back(body.substr(std::min(begin, body.size())));
  return parts;
}

template <class = void>
std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

template <class = void>
bool zero_padded(std::string_view text) {
  if (!text.empty() && text[0] == '-') text.remove_prefix(1);
  return text.size() > 1 && text[0] == '0';
}

template <class = void>
std::string padded(std::int64_t value, std::size_t width) {
  const bool negative = value < 0;
  const std::uint64_t size =
      negative ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
  std::string digits = std::to_string(size);
  const std::size_t taken = digits.size() + (negative ? 1u : 0u);
  if (taken < width) digits.insert(0, width - taken, '0');
  return negative ? "-" + digits : digits;
}

template <class = void>
bool is_letter(std::string_view text) {
  return text.size() == 1 && ((text[0] >= 'a' && text[0] <= 'z') || (text[0] >= 'A' && text[0] <= 'Z'));
}

/// The names `a..b` and `a..b..step` with numbers or letters.
struct range {
  std::int64_t from = 0;
  std::uint64_t count = 0;
  std::uint64_t step = 1;
  std::size_t width = 0;
  bool up = true;
  bool letters = false;

  [[nodiscard]] std::string name(std::uint64_t i) const {
    const std::uint64_t moved = up ? i * step : 0 - i * step;
    const auto value = static_cast<std::int64_t>(static_cast<std::uint64_t>(from) + moved);
    return letters ? std::string(1, static_cast<char>(value)) : padded(value, width);
  }
};

/// Nothing when the body is no range.
template <class = void>
std::optional<range> range_of(std::string_view body, std::string_view pattern) {
  const std::size_t first_dots = body.find("..");
  if (first_dots == std::string_view::npos) return std::nullopt;
  const std::string_view low = body.substr(0, first_dots);
  std::string_view high = body.substr(first_dots + 2);
  range found;
  if (const std::size_t dots = high.find(".."); dots != std::string_view::npos) {
    const auto given = whole_number(high.substr(dots + 2));
    if (!given) return std::nullopt;
    high = high.substr(0, dots);
    found.step = *given < 0 ? 0 - static_cast<std::uint64_t>(*given) : static_cast<std::uint64_t>(*given);
    if (found.step == 0) found.step = 1;
  }
  found.letters = is_letter(low) && is_letter(high);
  const auto from = found.letters ? std::optional<std::int64_t>(low[0]) : whole_number(low);
  const auto to = found.letters ? std::optional<std::int64_t>(high[0]) : whole_number(high);
  if (!from || !to) return std::nullopt;
  found.from = *from;
  found.up = *from <= *to;
  const auto first = static_cast<std::uint64_t>(*from), last = static_cast<std::uint64_t>(*to);
  const std::uint64_t span = found.up ? last - first : first - last;
  if (span / found.step >= most_names) fail("a range of more than 10 million names", pattern);
  found.count = span / found.step + 1;
  found.width = zero_padded(low) || zero_padded(high) ? std::max(low.size(), high.size()) : 0;
  return found;
}

/// How many names a part of a pattern stands for, and at most how many characters: what is too much is
/// refused before any of it is made.
class amount {
 public:
  explicit amount(std::string_view pattern) noexcept : pattern_(pattern) {}
  static amount none(std::string_view pattern) noexcept {
    amount nothing(pattern);
    nothing.names_ = 0;
    return nothing;
  }

  void append(char) {
    text_ += names_;
    check();
  }
  void add(const amount& more) {
    names_ += more.names_;
    text_ += more.text_;
    check();
  }
  void multiply(const amount& by) {  // what is below the bounds cannot overflow
    text_ = text_ * by.names_ + by.text_ * names_;
    names_ *= by.names_;
    check();
  }
  void multiply(const range& by) {
    amount names(pattern_);
    names.names_ = by.count;
    names.text_ = by.count * std::max(by.name(0).size(), by.name(by.count - 1).size());
    multiply(names);
  }
  void enclose() {
    text_ += 2 * names_;
    check();
  }
  [[nodiscard]] std::uint64_t count() const noexcept { return names_; }
  [[nodiscard]] std::uint64_t text() const noexcept { return text_; }

 private:
  void check() const {
    if (names_ > most_names) fail("more than 10 million names", pattern_);
    if (text_ > most_text) fail("names of more than a GiB of text", pattern_);
  }

  std::string_view pattern_;
  std::uint64_t names_ = 1;
  std::uint64_t text_ = 0;
};

/// The names themselves.
class names {
 public:
  explicit names(std::string_view) : made_{std::string{}} {}
  static names none(std::string_view pattern) {
    names nothing(pattern);
    nothing.made_.clear();
    return nothing;
  }

  void append(char c) {
    for (std::string& name : made_) name += c;
  }
  void add(names more) {
    made_.insert(made_.end(), std::make_move_iterator(more.made_.begin()),
                 std::make_move_iterator(more.made_.end()));
  }
  void multiply(const names& by) {
    multiply(by.made_.size(), [&by](std::uint64_t i) -> const std::string& { return by.made_[i]; });
  }
  void multiply(const range& by) {
    multiply(by.count, [&by](std::uint64_t i) { return by.name(i); });
  }
  void enclose() {
    for (std::string& name : made_) name = "{" + name + "}";
  }
  [[nodiscard]] std::vector<std::string> take() && { return std::move(made_); }

 private:
  template <class Choice>
  void multiply(std::uint64_t choices, Choice choice) {
    std::vector<std::string> product;
    product.reserve(static_cast<std::size_t>(choices) * made_.size());
    for (const std::string& left : made_) {
      for (std::uint64_t i = 0; i < choices; ++i) product.push_back(left + choice(i));
    }
    made_ = std::move(product);
  }

  std::vector<std::string> made_;
};

/// What one level of the pattern stands for: the product of its pieces, the leftmost varying slowest.
template <class Result>
Result expand(std::string_view text, std::string_view pattern, int depth = 0) {
  if (depth > deepest) fail("braces nested more than 64 deep", pattern);
  Result out(pattern);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\' && i + 1 < text.size() &&
        std::string_view("{},\\").find(text[i + 1]) != std::string_view::npos) {
      out.append(text[++i]);
      continue;
    }
    if (c == '}') fail("a '}' without its '{' (write \\} for a literal one)", pattern);
    if (c != '{') {
      out.append(c);
      continue;
    }
    const std::size_t end = closing(text, i);
    if (end == std::string_view::npos) fail("a '{' without its '}' (write \\{ for a literal one)", pattern);
    const std::string_view body = text.substr(i + 1, end - i - 1);
    i = end;
    const auto parts = split_list(body);
    if (parts.size() > 1) {
      Result choices = Result::none(pattern);
      for (const std::string_view part : parts) choices.add(expand<Result>(part, pattern, depth + 1));
      out.multiply(choices);
    } else if (const auto choices = range_of(body, pattern)) {
      out.multiply(*choices);
    } else {  // "{x}" stands for itself in Bash
      Result inside = expand<Result>(body, pattern, depth + 1);
      inside.enclose();
      out.multiply(inside);
    }
  }
  return out;
}

}  // namespace detail::braces

/// The names that a pattern in the manner of Bash stands for: `train-{0000..0127}.tar` is 128 names.
///
/// Ranges of numbers keep the zero padding of their wider end (`{000..123}`), may have a step (`{0..10..2}`)
/// and may go down;
/// ranges of single letters, lists (`{train,val}`), nesting and several groups work as in Bash, the leftmost
/// group varying slowest. `{x}` without comma or range stands for itself; `\{ \} \, \\` are literal.
/// Throws errc::argument for braces without their partner, and, before any name is made, for more than 10
/// million names or a GiB of text.
/// Source: Bash reference manual, "Brace Expansion"; what WebDataset's shard patterns mean.
template <class = void>
[[nodiscard]] std::vector<std::string> expand_braces(std::string_view pattern) {
  (void)detail::braces::expand<detail::braces::amount>(pattern, pattern);
  return detail::braces::expand<detail::braces::names>(pattern, pattern).take();
}

}  // namespace penstock::inline v0_1

// ---- penstock/storage/detail/paths.hpp

/// What file and mapped_file share: opening a path for reading, with messages that say what to do.
namespace penstock::inline v0_1 {
namespace detail::files {

/// The system's sentence for an errno value; thread-safe, unlike strerror.
inline std::string sentence(int code) { return std::generic_category().message(code); }

inline std::string_view advice(int code) noexcept {
  switch (code) {
    case ENOENT:
    case ENOTDIR:
      return "; check the path, and the range in its braces if it has one";
    case EACCES:
    case EPERM:
      return "; check the mode of the file and of the folders above it";
    case EMFILE:
    case ENFILE:
      return "; raise `ulimit -n`, or give file_options a smaller number of descriptors";
    default:
      return "";
  }
}

inline error failure(std::string_view doing, std::string_view path, int code) {
  return error(errc::io, {"cannot ", doing, ": ", sentence(code), advice(code)}).in_file(path);
}

/// A descriptor that is closed when it goes.
class descriptor {
 public:
  descriptor() = default;
  explicit descriptor(int value) noexcept : value_(value) {}
  descriptor(descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  descriptor& operator=(descriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  [[nodiscard]] int get() const noexcept { return value_; }
  [[nodiscard]] int release() noexcept { return std::exchange(value_, -1); }

 private:
  int value_ = -1;
};

[[nodiscard]] inline object_signature signature_in(const struct stat& status) noexcept {
  const auto stamp = static_cast<std::uint64_t>(status.st_mtim.tv_sec) * 1'000'000'000u +
                     static_cast<std::uint64_t>(status.st_mtim.tv_nsec);
  return {static_cast<std::uint64_t>(status.st_size), stamp};
}

/// Size and time of change of an open regular file; errc::io for anything else, by its name.
inline object_signature signature_of(int opened, const std::string& path) {
  struct stat status {};
  if (::fstat(opened, &status) != 0) throw failure("read the size", path, errno);
  if (S_ISDIR(status.st_mode)) {
    throw error(
        errc::io,
        "this is a folder, not a file; name the files in it, for example 'folder/train-{0000..0127}.tar'")
        .in_file(path);
  }
  if (!S_ISREG(status.st_mode)) throw error(errc::io, "this is not a regular file").in_file(path);
  return signature_in(status);
}

/// Opens for reading; -1 with errno when that fails. Non-blocking, or a named pipe would hang here before it
/// can be refused.
inline int open_quietly(const std::string& path) noexcept {
  for (;;) {
    const int opened = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (opened >= 0 || errno != EINTR) return opened;
  }
}

inline void check_range(std::uint64_t offset, std::uint64_t size, std::uint64_t end,
                        const std::string& path) {
  if (offset > end || size > end - offset) {
    throw error(errc::format, {"the file ends at ", end, ", but ", size, " bytes were wanted"})
        .in_file(path)
        .at_offset(offset);
  }
}

}  // namespace detail::files
}  // namespace penstock::inline v0_1

// ---- penstock/storage/sigbus_guard.hpp

namespace penstock::inline v0_1 {

namespace detail {

/// The guarded ranges of the process, and the handler that looks for a fault in them. One for the process;
/// trivially destroyed, since a signal may come while it ends. The handler takes no lock and allocates
/// nothing.
class guarded_ranges {
 public:
  static constexpr std::uintptr_t nothing_lost = std::numeric_limits<std::uintptr_t>::max();

  struct range {
    std::atomic<std::uintptr_t> begin{0};  // 0: free
    std::atomic<std::uintptr_t> end{0};
    std::atomic<std::uintptr_t> lost{nothing_lost};  // the lowest address that was lost
  };

  static guarded_ranges& of_process() noexcept { return process_; }

  /// Takes a free range, and puts the handler in when it is the first one.
  [[nodiscard]] range& add(std::uintptr_t begin, std::uintptr_t end) {
    const std::scoped_lock lock(mutex_);
    install();
    range& found = free_range();
    found.lost.store(nothing_lost, std::memory_order_relaxed);
    found.end.store(end, std::memory_order_release);
    found.begin.store(begin, std::memory_order_release);
    return found;
  }
  static void remove(range& which) noexcept { which.begin.store(0, std::memory_order_release); }

 private:
  struct block {
    std::array<range, 256> ranges;
    std::atomic<block*> next{nullptr};
  };

  range& free_range() {
    for (block* at = &first_;; at = at->next.load(std::memory_order_relaxed)) {
      for (range& one : at->ranges) {
        if (one.begin.load(std::memory_order_relaxed) == 0) return one;
      }
      // Blocks stay: the handler may be in them.
      if (at->next.load(std::memory_order_relaxed) == nullptr)
        at->next.store(new block, std::memory_order_release);
    }
  }

  void install() noexcept {
    if (page_ != 0) return;
    page_ = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    ::sigaction(SIGBUS, nullptr, &previous_);
    struct sigaction ours {};
    ours.sa_sigaction = &on_signal;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
    ::sigemptyset(&ours.sa_mask);
    ::sigaction(SIGBUS, &ours, nullptr);
  }

  static void on_signal(int number, siginfo_t* info, void* context) {
    const int kept = errno;
    const bool fault = info->si_code > 0;  // else another process sent it
    if (!fault || !process_.replace(reinterpret_cast<std::uintptr_t>(info->si_addr)))
      process_.pass_on(number, info, context, fault);
    errno = kept;
  }

  /// Puts zeros where the address is, to the end of its range: those pages are lost with it.
  bool replace(std::uintptr_t address) noexcept {
    for (block* at = &first_; at != nullptr; at = at->next.load(std::memory_order_acquire)) {
      for (range& one : at->ranges) {
        const std::uintptr_t begin = one.begin.load(std::memory_order_acquire);
        const std::uintptr_t end = one.end.load(std::memory_order_acquire);
        if (begin == 0 || address < begin || address >= end) continue;
        if (one.begin.load(std::memory_order_acquire) != begin) continue;  // the range was taken anew
        const std::uintptr_t page = address / page_ * page_;
        // Said before it is done: who reads zeros finds it said.
        std::uintptr_t lowest = one.lost.load();
        while (page < lowest && !one.lost.compare_exchange_weak(lowest, page)) {
        }
        return ::mmap(reinterpret_cast<void*>(page), end - page, PROT_READ,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
      }
    }
    return false;
  }

  /// What would have happened without us.
  void pass_on(int number, siginfo_t* info, void* context, bool fault) noexcept {
    if ((previous_.sa_flags & SA_SIGINFO) != 0) {
      previous_.sa_sigaction(number, info, context);
    } else if (previous_.sa_handler == SIG_DFL || (fault && previous_.sa_handler == SIG_IGN)) {
      ::sigaction(number, &previous_, nullptr);  // a fault is met again on return
      if (!fault) (void)::raise(number);
    } else if (previous_.sa_handler != SIG_IGN) {
      previous_.sa_handler(number);
    }
  }

  static guarded_ranges process_;

  std::mutex mutex_;
  std::uintptr_t page_ = 0;
  struct sigaction previous_ {};
  block first_;
};

inline constinit guarded_ranges guarded_ranges::process_{};

}  // namespace detail

/// Makes a mapped file that shrinks an error instead of the end of the process: guards one mapping.
///
/// Touching a page of a mapped file that is no longer in the file is SIGBUS. The first guard of a process
/// takes that signal: for a fault within a guarded range, zeros are mapped there, up to the end of the range,
/// and `lost` says from then on where; the reading goes on. What was read must be thrown away when `lost`
/// says so afterwards. Any other SIGBUS goes to the handler that was there before, or ends the process as
/// ever. The handler stays when the last guard goes. A program that sets a handler of its own for SIGBUS
/// later must pass on what it does not know, as this one does.
///
/// Not seen: bytes lost within the last page that stays, which the system reads as zeros. The file's size
/// tells of those; `mapped_file` with `checked` and `guarded` asks for it before and after.
/// In: a range that is mapped, from the beginning of a page, and stays so while the guard lives. Cost: two
/// system calls for the first guard, a walk over the others for each; `lost` is one load; a fault is a signal
/// and a call of mmap.
/// Threads: any number may read, also when the signal comes. Throws std::bad_alloc.
/// `mapped_file_options::guarded` is the way to use it; by itself it serves mappings of your own.
class sigbus_guard {
 public:
  sigbus_guard() = default;
  explicit sigbus_guard(bytes_view mapped) {
    if (mapped.empty()) return;
    begin_ = reinterpret_cast<std::uintptr_t>(mapped.data());
    range_ = &detail::guarded_ranges::of_process().add(begin_, begin_ + mapped.size());
  }
  sigbus_guard(sigbus_guard&& other) noexcept
      : range_(std::exchange(other.range_, nullptr)), begin_(other.begin_) {}
  sigbus_guard& operator=(sigbus_guard&& other) noexcept {
    std::swap(range_, other.range_);
    std::swap(begin_, other.begin_);
    return *this;
  }
  ~sigbus_guard() {
    if (range_ != nullptr) detail::guarded_ranges::remove(*range_);
  }

  /// Where the first lost page begins, in bytes from the beginning of the range; nothing while all is there.
  [[nodiscard]] std::optional<std::uint64_t> lost() const noexcept {
    if (range_ == nullptr) return std::nullopt;
    const std::uintptr_t at = range_->lost.load(std::memory_order_acquire);
    if (at == detail::guarded_ranges::nothing_lost) return std::nullopt;
    return at - begin_;
  }

 private:
  detail::guarded_ranges::range* range_ = nullptr;
  std::uintptr_t begin_ = 0;
};

}  // namespace penstock::inline v0_1

// ---- penstock/storage/mapped_file.hpp

namespace penstock::inline v0_1 {

/// What the kernel is told about the order in which a mapping will be read.
enum class access_pattern { normal, in_order, random };

/// Choices of `mapped_file`.
struct mapped_file_options {
  access_pattern access = access_pattern::normal;
  /// Each view is brought into memory and its file looked at before it is given: two system calls, of about a
  /// microsecond, that make a file which has shrunk or changed errc::io. Needs Linux 5.14.
  bool checked = false;
  /// SIGBUS from a file that has shrunk becomes errc::io: see `sigbus_guard`, whose handler is put into the
  /// process at the first mapping. One load for each view and each `confirm`; with `checked` a third system
  /// call in `confirm`, and nothing is left that is not noticed.
  bool guarded = false;
};

/// Storage of local files, mapped read-only at their first use: one path, a pattern with braces, or a list of
/// paths.
///
/// Samples are views into the mappings and cost no copy; the views live as long as the session. The mappings
/// are not bounded in number: Linux allows 65,530 in a process by default. A file must not shrink while it is
/// mapped: the system then ends the process with SIGBUS when the lost part is touched, which a library cannot
/// turn into an error without taking the process's signal handler. Where that may happen use `checked`, which
/// leaves the time between the look and the use; `guarded`, which takes the handler and sees whole pages
/// only;
/// both, which leave nothing; or `file`, which leaves nothing and takes no handler.
/// Views of a guarded file are good when `confirm` says so after their use; sources do that for each sample.
/// Errors and threads as for `file`; the first use of a file maps it, later ones take no lock.
template <class = void>
class basic_mapped_file {
  struct shared_names {
    std::vector<std::string> names;
    std::string pattern;
  };
  struct mapping {
    const std::byte* data = nullptr;
    object_signature signature;
    sigbus_guard guard;

    mapping() = default;
    mapping(const mapping&) = delete;
    mapping& operator=(const mapping&) = delete;
    ~mapping() {
      guard = sigbus_guard();  // before the addresses may be somebody else's
      if (data != nullptr) ::munmap(const_cast<std::byte*>(data), static_cast<std::size_t>(signature.size));
    }
  };
  struct state {
    state(std::shared_ptr<const shared_names> given, mapped_file_options chosen)
        : names(std::move(given)),
          options(chosen),
          mapped(std::make_unique<std::atomic<const mapping*>[]>(names->names.size())) {}
    state(const state&) = delete;
    state& operator=(const state&) = delete;
    ~state() {
      for (std::size_t i = 0; i < names->names.size(); ++i) delete mapped[i].load(std::memory_order_relaxed);
    }
    std::shared_ptr<const shared_names> names;
    mapped_file_options options;
    std::unique_ptr<std::atomic<const mapping*>[]> mapped;
  };

 public:
  static constexpr bool names_are_paths = true;

  /// What a run reads through; see `storage_session` and `viewing_session`.
  class session {
   public:
    static constexpr bool views = true;

    [[nodiscard]] std::uint64_t size(object_id id) const { return get(id).signature.size; }
    [[nodiscard]] object_signature signature(object_id id) const { return get(id).signature; }

    [[nodiscard]] bytes_view view(object_id id, std::uint64_t offset, std::uint64_t size) const {
      const mapping& found = get(id);
      detail::files::check_range(offset, size, found.signature.size, state_->names->names[id]);
      check_lost(found, id);
      if (state_->options.checked) check(found, offset, size, state_->names->names[id]);
      return {found.data + offset, static_cast<std::size_t>(size)};
    }
    void read(object_id id, std::uint64_t offset, mutable_bytes into) const {
      const bytes_view found = view(id, offset, into.size());
      if (!found.empty()) std::memcpy(into.data(), found.data(), found.size());
      confirm(id);
    }
    /// Throws errc::io where bytes that were seen through views of this object may not have been the file's.
    void confirm(object_id id) const {
      if (!state_->options.guarded || id >= state_->names->names.size()) return;
      const mapping* known = state_->mapped[id].load(std::memory_order_acquire);
      if (known == nullptr) return;
      check_lost(*known, id);
      if (state_->options.checked) check_signature(*known, state_->names->names[id], 0);
    }
    template <class Done>
    void read_many(std::span<const read_request> requests, Done&& done) const {
      for (std::size_t i = 0; i < requests.size(); ++i) {
        std::exception_ptr failed;
        try {
          read(requests[i].object, requests[i].offset, requests[i].into);
        } catch (...) {
          failed = std::current_exception();
        }
        done(i, failed);
      }
    }
    void will_need(object_id id, std::uint64_t offset, std::uint64_t size) const noexcept {
      try {
        const mapping& found = get(id);
        if (offset >= found.signature.size) return;
        const std::uint64_t end = size > found.signature.size - offset ? found.signature.size : offset + size;
        const std::uint64_t begin = offset - offset % page_size();
        ::madvise(const_cast<std::byte*>(found.data) + begin, static_cast<std::size_t>(end - begin),
                  MADV_WILLNEED);
      } catch (...) {  // the read itself will say what is wrong
      }
    }

   private:
    friend basic_mapped_file;
    explicit session(std::shared_ptr<state> made) : state_(std::move(made)) {}

    static std::uint64_t page_size() noexcept {
      static const auto size = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
      return size;
    }

    // The size alone would do where a page is lost; bytes lost within the last page read as zeros.
    static void check(const mapping& found, std::uint64_t offset, std::uint64_t size,
                      const std::string& path) {
      constexpr int populate_read = 22;  // MADV_POPULATE_READ, which older headers lack
      if (size == 0) return;
      const std::uint64_t begin = offset / page_size() * page_size();
      while (::madvise(const_cast<std::byte*>(found.data) + begin,
                       static_cast<std::size_t>(offset - begin + size), populate_read) != 0) {
        if (errno == EINTR) continue;
        if (errno == EFAULT) throw changed(path, offset);
        if (errno == EINVAL) {
          throw error(errc::argument, "mapped_file_options::checked needs Linux 5.14; use file")
              .in_file(path);
        }
        throw detail::files::failure("read", path, errno).at_offset(offset);
      }
      check_signature(found, path, offset);
    }
    static void check_signature(const mapping& found, const std::string& path, std::uint64_t offset) {
      struct stat now {};
      if (::stat(path.c_str(), &now) == 0 && detail::files::signature_in(now) != found.signature)
        throw changed(path, offset);
    }
    void check_lost(const mapping& found, object_id id) const {
      if (const auto offset = found.guard.lost()) [[unlikely]] {
        throw changed(state_->names->names[id], *offset);
      }
    }
    static error changed(const std::string& path, std::uint64_t offset) {
      return error(errc::io, "the file was cut off or changed while it was mapped; open the dataset again")
          .in_file(path)
          .at_offset(offset);
    }

    [[nodiscard]] const mapping& get(object_id id) const {
      if (id >= state_->names->names.size()) throw error(errc::argument, {"there is no object ", id});
      const mapping* known = state_->mapped[id].load(std::memory_order_acquire);
      return known != nullptr ? *known : map(id);
    }

    // Two threads may map the same file at once; the slower one takes its mapping back.
    [[nodiscard]] const mapping& map(object_id id) const {
      const std::string& path = state_->names->names[id];
      const detail::files::descriptor opened(detail::files::open_quietly(path));
      if (opened.get() < 0) throw detail::files::failure("open", path, errno);
      auto fresh = std::make_unique<mapping>();
      fresh->signature = detail::files::signature_of(opened.get(), path);
      if (fresh->signature.size != 0) {
        const auto length = static_cast<std::size_t>(fresh->signature.size);
        void* where = ::mmap(nullptr, length, PROT_READ, MAP_SHARED, opened.get(), 0);
        if (where == MAP_FAILED) throw detail::files::failure("map the file", path, errno);
        fresh->data = static_cast<const std::byte*>(where);
        if (state_->options.guarded) fresh->guard = sigbus_guard({fresh->data, length});
        if (state_->options.access != access_pattern::normal) {
          ::madvise(where, length,
                    state_->options.access == access_pattern::random ? MADV_RANDOM : MADV_SEQUENTIAL);
        }
      }
      const mapping* expected = nullptr;
      if (!state_->mapped[id].compare_exchange_strong(expected, fresh.get(), std::memory_order_acq_rel))
        return *expected;
      return *fresh.release();
    }

    std::shared_ptr<state> state_;
  };

  explicit basic_mapped_file(std::string_view pattern, mapped_file_options options = {})
      : names_(new shared_names{expand_braces(pattern), std::string(pattern)}), options_(options) {}
  explicit basic_mapped_file(std::vector<std::string> paths, mapped_file_options options = {})
      : names_(new shared_names{std::move(paths), {}}), options_(options) {}
  basic_mapped_file(std::initializer_list<const char*> paths, mapped_file_options options = {})
      : basic_mapped_file(std::vector<std::string>(paths.begin(), paths.end()), options) {}

  [[nodiscard]] std::span<const std::string> names() const noexcept { return names_->names; }
  [[nodiscard]] session connect() const {
    return session(std::shared_ptr<state>(new state(names_, options_)));
  }
  [[nodiscard]] std::string describe() const {
    return detail::text(
        {"mapped_file(",
         (names_->pattern.empty() ? std::to_string(names().size()) + " paths" : names_->pattern), ")"});
  }

 private:
  std::shared_ptr<const shared_names> names_;
  mapped_file_options options_;
};
/// The form to use: see `basic_mapped_file`.
using mapped_file = basic_mapped_file<>;

}  // namespace penstock::inline v0_1

// ---- penstock/source/lines.hpp

namespace penstock::inline v0_1 {

/// Choices of `lines`.
struct lines_options {
  /// Threads that look for the lines, a file each; 0 is one for each processor.
  std::size_t threads = 0;
};

namespace detail {

/// Where the lines of a file are: the offset of each `group`-th one, so that 64 short lines or 4 KiB of
/// longer ones share an entry.
struct line_table {
  std::vector<std::uint64_t> begins;
  std::uint64_t count = 0;
  std::uint64_t group = 1;  // a power of two

  line_table() = default;
  /// One pass over the text. A line ends behind "\n"; the last one may end with the text.
  explicit line_table(std::string_view text) {
    for (std::size_t at = 0; at < text.size(); ++count) {
      if (count % group == 0) {
        begins.push_back(at);
        if (begins.size() > few && group < most && begins.size() > at / room) thin_out();
      }
      at = end_of(text, at);
    }
    begins.shrink_to_fit();
  }

  /// The entry for a line, and how many lines are to be passed from there.
  [[nodiscard]] std::size_t entry(std::uint64_t line) const noexcept {
    return static_cast<std::size_t>(line / group);
  }
  [[nodiscard]] std::uint64_t beyond(std::uint64_t line) const noexcept { return line % group; }

  /// Where the line that begins at `at` ends, behind its "\n" if it has one.
  [[nodiscard]] static std::size_t end_of(std::string_view text, std::size_t at) noexcept {
    const void* const found = std::memchr(text.data() + at, '\n', text.size() - at);
    return found == nullptr ? text.size()
                            : static_cast<std::size_t>(static_cast<const char*>(found) - text.data()) + 1;
  }

 private:
  static constexpr std::size_t few = 128;
  static constexpr std::uint64_t most = 64;
  static constexpr std::size_t room = 4096;

  /// Keeps every other entry.
  void thin_out() {
    for (std::size_t i = 0; 2 * i < begins.size(); ++i) begins[i] = begins[2 * i];
    begins.resize((begins.size() + 1) / 2);
    group *= 2;
  }
};

template <class Storage>
struct line_files : known_files<Storage> {
  using known_files<Storage>::known_files;
  std::vector<line_table> tables;  // by shard
};

}  // namespace detail

/// The source that `lines` makes of text files.
template <storage Storage>
class line_source {
  static_assert(viewing_session<typename Storage::session>,
                "penstock: lines are views of their files, which mapped_file and memory_files give");

  using files = detail::line_files<Storage>;

 public:
  using penstock_part = source_tag;
  using element = std::string_view;
  static constexpr std::string_view source_name = "lines";

  class reader {
   public:
    /// The line that follows the last one is found without the table.
    struct worker {
      std::size_t shard = std::numeric_limits<std::size_t>::max();
      std::uint64_t next = 0;
      std::size_t offset = 0;
    };
    explicit reader(std::shared_ptr<const files> known) : known_(std::move(known)), open_(known_) {}

    template <class Sink>
    void evaluate(position p, worker& w, Sink&& sink) const {
      const manifest::place place = open_.locate(p.index);
      const std::string_view text =
          text_of(open_.session(place.shard)
                      .view(known_->objects[place.shard], 0, known_->signatures[place.shard].size));
      const std::size_t begin =
          w.shard == place.shard && w.next == place.sample ? w.offset : find(text, place);
      const std::size_t end = detail::line_table::end_of(text, begin);
      w = {place.shard, place.sample + 1, end};
      std::string_view line = text.substr(begin, end - begin);
      if (line.ends_with('\n')) {
        line.remove_suffix(1);
        if (line.ends_with('\r')) line.remove_suffix(1);
      }
      try {
        sink(line);
        open_.confirm(place.shard);
      } catch (error& e) {
        open_.confirm(place.shard);
        // an offset without a file comes from a codec and counts from the first byte of the line
        if (e.file().empty() && e.offset()) e.within("the line", begin);
        e.in_file(known_->path(place.shard)).for_key(key(p.index)).at_offset(begin);
        throw;
      }
    }
    /// The file and the number of the line in it, from one: "corpus.txt:17".
    [[nodiscard]] std::string key(std::uint64_t index) const {
      const manifest::place place = open_.locate(index);
      return detail::text({known_->path(place.shard), ":", place.sample + 1});
    }
    void will_need(std::uint64_t index) const noexcept {
      if (index >= known_->shards.samples()) return;
      const manifest::place place = known_->shards.locate(index);
      const detail::line_table& table = known_->tables[place.shard];
      const std::size_t i = table.entry(place.sample);
      const std::uint64_t end =
          i + 1 < table.begins.size() ? table.begins[i + 1] : known_->signatures[place.shard].size;
      open_.will_need(place.shard, table.begins[i], end - table.begins[i]);
    }
    [[nodiscard]] std::uint64_t bytes_per_sample() const noexcept {
      return known_->shards.payload() / known_->shards.samples();
    }

   private:
    [[nodiscard]] std::size_t find(std::string_view text, const manifest::place& place) const {
      const detail::line_table& table = known_->tables[place.shard];
      auto at = static_cast<std::size_t>(table.begins[table.entry(place.sample)]);
      for (std::uint64_t n = table.beyond(place.sample); n != 0 && at < text.size(); --n)
        at = detail::line_table::end_of(text, at);
      if (at >= text.size())
        throw error(errc::io, "the file was changed while it was in use; open the dataset again")
            .in_file(known_->path(place.shard));
      return at;
    }

    std::shared_ptr<const files> known_;
    detail::open_files<Storage> open_;
  };

  line_source(Storage where, lines_options options) {
    std::shared_ptr<files> known(new files(std::move(where)));
    const std::span<const std::string> names = known->where.names();
    known->objects.resize(names.size());
    known->signatures.resize(names.size());
    known->tables.resize(names.size());
    std::vector<manifest::shard> entries(names.size());
    auto session = known->where.connect();
    detail::tar::for_each_in_parallel(names.size(), options.threads, [&](std::size_t i) {
      const auto object = static_cast<object_id>(i);
      const object_signature signature = session.signature(object);
      const bytes_view all = session.view(object, 0, signature.size);
      detail::line_table& table = known->tables[i];
      table = detail::line_table(text_of(all));
      const std::uint64_t content = detail::hash_words(
          detail::hash_of_file(session, object, signature.size) ^ table.count, table.begins);
      entries[i] = {names[i], signature.size, table.count, signature.size, content};
      known->objects[i] = object;
      known->signatures[i] = signature;
    });
    known->shards = penstock::manifest(std::move(entries));
    if (known->shards.samples() == 0)
      throw error(errc::argument, "lines: the files are empty, there is no line in them")
          .in_file(names.empty() ? "" : names.front());
    known_ = std::move(known);
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return known_->shards.samples(); }
  [[nodiscard]] std::shared_ptr<const std::vector<std::uint64_t>> starts() const noexcept {
    return known_->shards.starts();
  }
  [[nodiscard]] const penstock::manifest& manifest() const noexcept { return known_->shards; }
  /// Of each file's name, size, first and last 4 KiB, and of where lines begin.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept {
    return mix64(known_->shards.fingerprint() ^ 0x6c696e6573);
  }
  [[nodiscard]] std::string describe() const {
    return detail::text({"lines(", known_->objects.size(), " files, ", known_->shards.bytes(),
                         " bytes): ", size(), " lines"});
  }
  [[nodiscard]] reader open() const { return reader(known_); }

 private:
  std::shared_ptr<const files> known_;
};

/// The lines of text files: one sample each.
///
///     auto captions = lines("captions-{00..15}.txt") | shuffle(seed) | batch(64, ragged);
///     auto documents = lines("corpus.jsonl") | decode<json_field<"text", std::string>>;
///
/// In: a pattern with braces, which is `mapped_file`, or any storage that shows its bytes in place. Out: a
/// `std::string_view` on the mapping, which is a byte element too. Lines end with "\n" or "\r\n", the last
/// one of a file maybe with the file; the end is no part of the line. Empty lines are samples; an empty file
/// has none.
/// Kind: a source; indexed, deterministic, resumable, elastic, lockstep. Making the plan reads all files
/// once, several at a time (for each GB that is in memory 0.2 s, and 20 ns for each line), and keeps one
/// offset of 8 bytes for 64 short lines or for 4 KiB of longer ones: 16 MB for 128 million lines. Nothing is
/// written to disk.
/// Cost per sample: a line that follows the last one is found by looking for its end; any other one by
/// passing up to 63 short lines before it. No allocation.
/// Threads: any number at once.
/// Throws `errc::argument` when there is no line at all; `errc::io` for a file that cannot be read, or was
/// changed after the plan was made. Errors of the stages behind get file, offset and line.
template <storage Storage>
[[nodiscard]] line_source<Storage> lines(Storage where, lines_options options = {}) {
  return {std::move(where), options};
}
template <class = void>
[[nodiscard]] line_source<mapped_file> lines(std::string_view pattern, lines_options options = {}) {
  return {mapped_file(pattern), options};
}

}  // namespace penstock::inline v0_1

// ---- penstock/source/detail/row_source.hpp

namespace penstock::inline v0_1 {
namespace detail {

template <std::uint64_t... Lengths>
struct row_shape {
  using type = known_shape<Lengths...>;
  static constexpr const extents* wanted = &type::static_shape;
  static constexpr type of(const extents&) noexcept { return {}; }
};
template <>
struct row_shape<> {
  using type = given_shape;
  static constexpr const extents* wanted = nullptr;
  static type of(const extents& found) noexcept { return {found}; }
};

/// Where the rows of a file are: an array of at least one length, and where its bytes begin; `described` is
/// where the file says so.
struct stored_rows {
  extents shape;
  std::uint64_t begin = 0;
  std::uint64_t described = 0;
  bool swapped = false;  // its byte order is not this machine's
};

/// The files of an array that is cut along its first length, and where their rows are.
template <class T, class Storage>
struct row_files : known_files<Storage> {
  using known_files<Storage>::known_files;

  extents row;
  std::uint64_t row_bytes = 0;
  std::vector<std::uint64_t> begins;  // by shard: where the rows begin, in bytes
  std::vector<bool> swapped;          // by shard: whether its byte order is not this machine's

  /// Asks `find(session, object, size)` for the rows of each file. `wanted` is the shape of a row where the
  /// type knows it; `what` is what holds the rows, for messages.
  template <class Find>
  void read_each(const extents* wanted, std::string_view what, Find&& find) {
    auto session = this->where.connect();
    std::vector<manifest::shard> entries;
    for (std::size_t i = 0; i < this->where.names().size(); ++i) {
      const auto object = static_cast<object_id>(i);
      const std::string& path = this->where.names()[i];
      try {
        const object_signature signature = session.signature(object);
        const std::uint64_t rows = add(find(session, object, signature.size), wanted, what);
        entries.push_back(
            {path, signature.size, rows, rows * row_bytes, hash_of_file(session, object, signature.size)});
        this->objects.push_back(object);
        this->signatures.push_back(signature);
        penstock::confirm(session, object);
      } catch (error& e) {
        penstock::confirm(session, object);
        e.in_file(path);
        throw;
      }
    }
    this->shards = manifest(std::move(entries));
  }

 private:
  // The number of rows.
  std::uint64_t add(const stored_rows& rows, const extents* wanted, std::string_view what) {
    const extents found = rows.shape.drop_front();
    if (begins.empty()) row = wanted != nullptr ? *wanted : found;
    if (!(found == row))
      throw error(errc::shape, {"the rows of ", what, " have shape ", to_string(found), ", and ",
                                to_string(row), wanted != nullptr ? " was asked for" : " in ",
                                wanted != nullptr ? "" : this->where.names().front()})
          .at_offset(rows.described);
    row_bytes = sizeof(T) * row.elements();
    begins.push_back(rows.begin);
    swapped.push_back(rows.swapped);
    return rows.shape[0];
  }
};

/// A source of the rows of arrays that lie in files. `Files` is `row_files` with
///   source_name, mark            what it is called, and what its fingerprint is mixed with
///   type_name()                  that of T, as the format writes it
///   read(wanted)                 finds the rows
template <class Files, class T, storage Storage, std::uint64_t... Lengths>
class row_source {
  using shape = row_shape<Lengths...>;

 public:
  using penstock_part = source_tag;
  using element = stored_array<T, typename shape::type, typename Storage::session>;
  static constexpr std::string_view source_name = Files::source_name;

  class reader {
   public:
    struct worker {
      buffer scratch;
    };
    explicit reader(std::shared_ptr<const Files> known) : known_(std::move(known)), open_(known_) {}

    template <class Sink>
    void evaluate(position p, worker& w, Sink&& sink) const {
      const manifest::place place = open_.locate(p.index);
      const std::uint64_t offset = known_->begins[place.shard] + place.sample * known_->row_bytes;
      try {
        sink(element(shape::of(known_->row), open_.session(place.shard), known_->objects[place.shard], offset,
                     w.scratch, known_->swapped[place.shard]));
        open_.confirm(place.shard);
      } catch (error& e) {
        open_.confirm(place.shard);
        e.in_file(known_->path(place.shard)).at_offset(offset);
        throw;
      }
    }
    /// The file and the number of the row in it: "features.npy:17".
    [[nodiscard]] std::string key(std::uint64_t index) const {
      const manifest::place place = open_.locate(index);
      return detail::text({known_->path(place.shard), ":", place.sample});
    }
    void will_need(std::uint64_t index) const noexcept {
      if (index >= known_->shards.samples()) return;
      const manifest::place place = known_->shards.locate(index);
      open_.will_need(place.shard, known_->begins[place.shard] + place.sample * known_->row_bytes,
                      known_->row_bytes);
    }
    [[nodiscard]] std::uint64_t bytes_per_sample() const noexcept { return known_->row_bytes; }

   private:
    std::shared_ptr<const Files> known_;
    open_files<Storage> open_;
  };

  template <class... Choices>
  explicit row_source(Storage where, Choices&&... choices) {
    std::shared_ptr<Files> known(new Files(std::move(where), std::forward<Choices>(choices)...));
    known->read(shape::wanted);
    known_ = std::move(known);
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return known_->shards.samples(); }
  [[nodiscard]] std::shared_ptr<const std::vector<std::uint64_t>> starts() const noexcept {
    return known_->shards.starts();
  }
  [[nodiscard]] const penstock::manifest& manifest() const noexcept { return known_->shards; }
  /// The shape of a row: that of the files without their first length.
  [[nodiscard]] const extents& row() const noexcept { return known_->row; }
  /// Of each file's name, size, rows and first and last 4 KiB.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept {
    return mix64(known_->shards.fingerprint() ^ Files::mark);
  }
  [[nodiscard]] std::string describe() const {
    return detail::text({source_name, "(", known_->objects.size(), " files): ", size(), " rows of ",
                         to_string(known_->row), " '", Files::type_name(), "'"});
  }
  [[nodiscard]] reader open() const { return reader(known_); }

 private:
  std::shared_ptr<const Files> known_;
};

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/source/npy_rows.hpp

namespace penstock::inline v0_1 {

namespace detail {

/// The files of an array that is cut along its first length, and where their rows are.
template <class T, class Storage>
struct npy_files : row_files<T, Storage> {
  static_assert(npy_kind<T> != '\0' && std::is_trivially_copyable_v<T>,
                "penstock: npy_rows<T> needs a bool, integer or floating type; for a half-float type of your "
                "own specialise penstock::npy_kind");
  using row_files<T, Storage>::row_files;

  static constexpr std::string_view source_name = "npy_rows";
  static constexpr std::uint64_t mark = 0x6e7079;
  static std::string type_name() { return detail::text({npy_kind<T>, sizeof(T)}); }

  void read(const extents* wanted) {
    this->read_each(wanted, "this npy file", [](auto& session, object_id object, std::uint64_t size) {
      return find(session, object, size);
    });
  }

 private:
  static constexpr std::uint64_t longest_header = 1_MiB;

  template <class Session>
  static stored_rows find(Session& session, object_id object, std::uint64_t size) {
    buffer room;
    const bytes_view start = range_of(session, object, 0, std::min<std::uint64_t>(size, 12), room);
    const npy_header header =
        read_npy_header(range_of(session, object, 0, std::min(size, length_of(start)), room));
    check(header);
    const std::uint64_t expected = npy_payload(header);
    if (expected != size - header.data_offset)
      throw error(errc::format, {"the npy header says shape ", to_string(header.shape), " of '", header.descr,
                                 "', which is ", expected, " bytes, but ", size - header.data_offset,
                                 " follow it; copy the file again if it was cut"})
          .at_offset(header.data_offset);
    const bool swapped = header.order == (std::endian::native == std::endian::little ? '>' : '<');
    return {header.shape, header.data_offset, 8, swapped};
  }

  // How much of a file its header takes, if it is one; what `start` says is not believed beyond a bound.
  static std::uint64_t length_of(bytes_view start) {
    if (start.size() < 12) return start.size();
    const auto byte_at = [start](std::size_t i) { return std::to_integer<std::uint64_t>(start[i]); };
    const bool wide = byte_at(6) > 1;
    const std::uint64_t length =
        byte_at(8) | byte_at(9) << 8 | (wide ? byte_at(10) << 16 : 0) | (wide ? byte_at(11) << 24 : 0);
    if (length > longest_header)
      throw error(errc::limit,
                  {"the npy header says it has ", length, " bytes, and more than a MiB is not read"})
          .at_offset(8);
    return length + (wide ? 12 : 10);
  }

  static void check(const npy_header& header) {
    const std::string descr(header.descr);
    if (header.kind != npy_kind<T> || header.item_size != sizeof(T))
      throw error(errc::format, {"the npy file holds dtype '", descr, "', but '", npy_kind<T>, sizeof(T),
                                 "' was asked for; see npy_rows<T>"})
          .at_offset(8);
    if (header.shape.rank() == 0)
      throw error(errc::format, "the npy file holds one number, which has no rows").at_offset(8);
    if (header.fortran && header.shape.rank() > 1)
      throw error(errc::format,
                  "the npy file is in Fortran order, in which a row is not in one piece: save it with "
                  "numpy.ascontiguousarray")
          .at_offset(8);
  }
};

}  // namespace detail

/// The source that `npy_rows` makes of npy files.
template <class T, storage Storage, std::uint64_t... Lengths>
using npy_row_source = detail::row_source<detail::npy_files<T, Storage>, T, Storage, Lengths...>;

/// The rows of numpy's `.npy` files along their first length, all files as one dataset.
///
///     auto features = npy_rows<float>("features-{00..07}.npy") | shuffle(seed) | batch(256);
///     auto images = npy_rows<std::uint8_t, 28, 28>("images.npy");     // their shape is part of the type
///
/// In: a pattern with braces, which is `mapped_file`, or any storage. Out: an array expression of the files'
/// shape without its first length, a view of the mapping until it is written to its slot; with lengths in the
/// type a batch is written in place from the first one on. Versions 1.0 to 3.0 of the format, either byte
/// order.
/// Kind: a source; indexed, deterministic, resumable, elastic, lockstep. Making the plan reads the header and
/// the ends of each file.
/// Cost per sample: a binary search among the files and one copy of the row; with a storage that has no views
/// one read; no allocation, but for the scratch of `finish` where a file's values are misaligned or of the
/// other byte order.
/// Threads: any number at once.
/// Throws, with file and offset, `errc::format` for what is no npy file, another dtype than `T`,
/// Fortran order, an array without a length, and a header that does not fit the file's size;
/// `errc::shape` for rows of another shape than asked for or than those of the first file; `errc::io`, also
/// for a file that was changed after the plan was made.
/// Source: numpy, "A simple file format for NumPy arrays" (numpy/lib/format.py).
template <class T, std::uint64_t... Lengths, storage Storage>
[[nodiscard]] npy_row_source<T, Storage, Lengths...> npy_rows(Storage where) {
  return npy_row_source<T, Storage, Lengths...>(std::move(where));
}
template <class T, std::uint64_t... Lengths>
[[nodiscard]] npy_row_source<T, mapped_file, Lengths...> npy_rows(std::string_view pattern) {
  return npy_row_source<T, mapped_file, Lengths...>(mapped_file(pattern));
}

static_assert(indexed_source<npy_row_source<float, mapped_file>>, "npy_row_source is an indexed source");

}  // namespace penstock::inline v0_1

// ---- penstock/source/shard_names.hpp

namespace penstock::inline v0_1 {

/// For each sample of a dataset the name of its shard, as the source was given it: values for `subset` and
/// `split_by_key`, which cost nothing a sample, since a predicate is asked once a shard.
///
/// Made by `shard_names(source)`, of a source with a manifest: `webdataset`, `lines` and the token files. A
/// value; holds a share of the manifest. A look-up is logarithmic in the number of shards. Free for all
/// threads.
template <class = void>
class basic_shard_name_values {
 public:
  using value_type = std::string_view;

  basic_shard_name_values(penstock::manifest shards, std::uint64_t dataset)
      : shards_(std::move(shards)), dataset_(dataset) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return shards_.samples(); }
  [[nodiscard]] std::string_view operator[](std::uint64_t i) const noexcept {
    return shards_.shards()[shards_.locate(i).shard].name;
  }
  /// The first sample of the next shard.
  [[nodiscard]] std::uint64_t same_until(std::uint64_t i) const noexcept {
    const auto place = shards_.locate(i);
    return place.first + shards_.shards()[place.shard].samples;
  }
  [[nodiscard]] std::uint64_t dataset() const noexcept { return dataset_; }
  [[nodiscard]] std::uint64_t fingerprint() const noexcept { return shards_.fingerprint(); }
  [[nodiscard]] std::string describe() const {
    return detail::text({"the names of ", shards_.shards().size(), " shards"});
  }

 private:
  penstock::manifest shards_;
  std::uint64_t dataset_;
};
using shard_name_values = basic_shard_name_values<>;

/// The name of each sample's shard: a tag that needs no look at the samples.
///
///     auto loader = source | subset(shard_names(source), [](std::string_view name) {
///       return name.find("/night/") != name.npos;
///     }) | shuffle(7, window(16));
template <class Source>
  requires requires(const Source& s) {
    { s.manifest() } -> std::convertible_to<const manifest&>;
    { s.fingerprint() } -> std::same_as<std::uint64_t>;
  }
[[nodiscard]] shard_name_values shard_names(const Source& source) {
  return {source.manifest(), source.fingerprint()};
}

}  // namespace penstock::inline v0_1

// ---- penstock/source/detail/member_name.hpp

namespace penstock::inline v0_1 {
namespace detail::tar {

struct split_path {
  std::string_view key;
  std::string_view suffix;
};

/// Splits a member's path as WebDataset does: the key ends at the first dot of the basename, the rest is the
/// suffix. Nothing for what is no part of a sample. Exactly the regular expression
/// `^((?:.*/|)[^.]+)[.]([^/]*)$`, which has two corners: of a basename that begins with a dot, `a/.b`, the
/// key is `a/` if the folder's own name has no dot; and its first dot matches no line feed, so that behind
/// one no folder may have a dot.
/// Source: webdataset, tariterators.py, base_plus_ext.
[[nodiscard]] inline std::optional<split_path> split_member(std::string_view path) noexcept {
  const auto after_slash = [](std::string_view text) {
    const std::size_t slash = text.rfind('/');
    return slash == std::string_view::npos ? 0 : slash + 1;
  };
  const std::size_t base = after_slash(path.substr(0, path.find('\n')));
  const std::size_t dot = path.find('.', base);
  if (dot == std::string_view::npos || path.find('/', dot) != std::string_view::npos) return std::nullopt;
  if (dot == base) {
    if (base == 0) return std::nullopt;
    const std::size_t above = after_slash(path.substr(0, base - 1));
    if (path.substr(above, base - above).find('.') != std::string_view::npos) return std::nullopt;
  }
  return split_path{path.substr(0, dot), path.substr(dot + 1)};
}

/// Whether WebDataset leaves the member out: `__x__`, alone or as the first folder.
/// Source: webdataset, tariterators.py, tar_file_iterator.
[[nodiscard]] inline bool skipped_member(std::string_view path) noexcept {
  const std::size_t slash = path.find('/');
  std::string_view first = path.substr(0, slash);
  // its expression's `$` stands also before a line feed at the end
  if (slash == std::string_view::npos && first.size() >= 5 && first.back() == '\n') first.remove_suffix(1);
  if (!first.starts_with("__") || !first.ends_with("__")) return false;
  return slash == std::string_view::npos || first.size() >= 4;
}

/// Names that WebDataset's samples have already: a member of that name is one too many.
[[nodiscard]] inline bool reserved_suffix(std::string_view suffix) noexcept {
  return suffix == "__key__" || suffix == "__url__";
}

/// Whether WebDataset leaves out the sample that has this member.
[[nodiscard]] inline bool marks_bad(std::string_view suffix, std::uint64_t size) noexcept {
  return size != 0 && suffix == "__bad__";
}

[[nodiscard]] inline std::string lower_case(std::string_view text) {
  std::string lowered(text);
  for (char& c : lowered) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lowered;
}

}  // namespace detail::tar
}  // namespace penstock::inline v0_1

// ---- penstock/source/detail/packed_format.hpp

namespace penstock::inline v0_1 {
namespace detail::tar {

/// What reads a format of packed shards. Its names are empty where nothing does.
struct packed_format {
  std::string_view format, component, unpacker;
};

[[nodiscard]] inline packed_format packed_format_of(std::string_view format) noexcept {
  constexpr std::array<packed_format, 5> known{{{"gzip", "zlib", "unpack_gzip"},
                                                {"zstd", "zstd", "unpack_zstd"},
                                                {"lz4", "lz4", "unpack_lz4"},
                                                {"bzip2", "bz2", "unpack_bzip2"},
                                                {"xz", "xz", "unpack_xz"}}};
  for (const packed_format& row : known) {
    if (row.format == format) return row;
  }
  return {};
}

/// One sentence for a shard that is packed in a way that the caller was not told of: what to write to read
/// it. `before` and `after` stand around the unpacker's name.
[[nodiscard]] inline std::string packed_advice(std::string_view format, std::string_view before,
                                               std::string_view after) {
  std::string text = "the shard is compressed with " + std::string(format);
  const packed_format row = packed_format_of(format);
  if (row.format.empty())
    return text + ", which nothing here unpacks; compress it with gzip, zstd, lz4, bzip2 or xz";
  text.append(": link penstock::").append(row.component).append(", include <penstock/codec/");
  text.append(row.unpacker).append(".hpp> and write ").append(before).append(row.unpacker);
  return text.append(after);
}

}  // namespace detail::tar
}  // namespace penstock::inline v0_1

// ---- penstock/source/detail/tar_header.hpp

/// One header block of a tar archive, in all the dialects that occur: v7, ustar, GNU, pax, star.
/// Source: POSIX.1-2017 pax, "ustar Interchange Format" and "pax Header Block"; GNU tar manual, "Basic Tar
/// Format".
namespace penstock::inline v0_1 {
namespace detail::tar {

inline constexpr std::size_t block_size = 512;

[[nodiscard]] constexpr std::uint64_t padded(std::uint64_t size) noexcept {
  return (size + 511) & ~std::uint64_t{511};
}

/// The text of a field: what stands before its first NUL.
[[nodiscard]] inline std::string_view text_field(bytes_view block, std::size_t offset,
                                                 std::size_t size) noexcept {
  const std::string_view field = text_of(block.subspan(offset, size));
  return field.substr(0, std::min(field.find('\0'), field.size()));
}

/// A number: octal digits with spaces around them, or base-256 where the first bit is set. Nothing where it
/// is neither, negative, or too large for a file.
[[nodiscard]] inline std::optional<std::uint64_t> number_field(bytes_view block, std::size_t offset,
                                                               std::size_t size) noexcept {
  const bytes_view field = block.subspan(offset, size);
  const auto first = static_cast<unsigned char>(field[0]);
  std::uint64_t value = 0;
  if ((first & 0x80u) != 0) {
    if (first == 0xffu) return std::nullopt;  // a negative number
    value = first & 0x7fu;
    for (std::size_t i = 1; i < size; ++i) {
      if (value >> 55 != 0) return std::nullopt;
      value = value << 8 | static_cast<unsigned char>(field[i]);
    }
    return value;
  }
  std::string_view digits = text_field(block, offset, size);
  while (!digits.empty() && digits.front() == ' ') digits.remove_prefix(1);
  while (!digits.empty() && digits.back() == ' ') digits.remove_suffix(1);
  for (const char c : digits) {
    if (c < '0' || c > '7') return std::nullopt;
    value = value << 3 | static_cast<std::uint64_t>(c - '0');  // twelve digits at most: cannot overflow
  }
  return value;
}

[[nodiscard]] inline bool is_zero(bytes_view block) noexcept {
  return std::all_of(block.begin(), block.end(), [](std::byte b) { return b == std::byte{0}; });
}

/// Whether the checksum is right, over unsigned bytes as the standard says or over signed ones as some old
/// writers did.
[[nodiscard]] inline bool checksum_matches(bytes_view block) noexcept {
  const auto stored = number_field(block, 148, 8);
  std::int64_t plain = 8 * ' ';
  std::int64_t with_sign = 8 * ' ';
  for (std::size_t i = 0; i < block_size; ++i) {
    if (i >= 148 && i < 156) continue;
    plain += static_cast<unsigned char>(block[i]);
    with_sign += static_cast<signed char>(block[i]);
  }
  return stored && (*stored == static_cast<std::uint64_t>(plain) ||
                    (with_sign >= 0 && *stored == static_cast<std::uint64_t>(with_sign)));
}

/// Puts the path in the header itself into `path`. GNU headers have no prefix: other things stand there.
inline void header_path(bytes_view block, std::string& path) {
  path.clear();
  if (std::memcmp(block.data() + 257, "ustar\0", 6) == 0) {
    const bool star = std::memcmp(block.data() + 508, "tar\0", 4) == 0;
    path.assign(text_field(block, 345, star ? 131 : 155));
    if (!path.empty()) path += '/';
  }
  path += text_field(block, 0, 100);
}

/// The longest name of a member. Names are copied for each header, and a header takes 512 bytes: without a
/// bound a small archive could have gigabytes copied.
inline constexpr std::size_t longest_name = 64 * 1024;

/// A text that may be known or not; forgetting it keeps its memory.
struct known_text {
  std::string text;
  bool known = false;

  void set(std::string_view value) {
    if (value.size() > longest_name)
      throw error(errc::format, {"a member has a name of ", value.size(), " bytes, and the longest may have ",
                                 longest_name});
    text.assign(value);
    known = true;
  }
};

/// What pax records say about a member; an empty value takes back what an earlier record said.
struct pax_records {
  known_text path;
  known_text sparse_path;
  std::optional<std::uint64_t> size;
  bool sparse = false;

  /// Reads the body of a pax header: records `LENGTH KEY=VALUE\n`, where LENGTH counts all of the record.
  void read(bytes_view body) {
    std::string_view rest = text_of(body);
    while (!rest.empty() && rest.front() != '\0') {
      std::uint64_t length = 0;
      const auto [end, problem] = std::from_chars(rest.data(), rest.data() + rest.size(), length);
      const auto digits = static_cast<std::size_t>(end - rest.data());
      if (problem != std::errc{} || length > rest.size() || length < digits + 3 || rest[digits] != ' ' ||
          rest[static_cast<std::size_t>(length) - 1] != '\n') {
        throw error(errc::format, "a pax header holds a record whose length is wrong");
      }
      const std::string_view record = rest.substr(digits + 1, static_cast<std::size_t>(length) - digits - 2);
      rest.remove_prefix(static_cast<std::size_t>(length));
      const std::size_t equals = record.find('=');
      if (equals == std::string_view::npos || equals == 0) {
        throw error(errc::format, "a pax header holds a record without a keyword");
      }
      take(record.substr(0, equals), record.substr(equals + 1));
    }
  }

 private:
  void take(std::string_view key, std::string_view value) {
    if (key == "path" || key == "GNU.sparse.name") {
      auto& mine = key == "path" ? path : sparse_path;
      mine.known = false;
      if (value.empty()) return;
      while (!value.empty() && value.back() == '/') value.remove_suffix(1);
      mine.set(value);
    } else if (key == "size") {
      size.reset();
      if (value.empty()) return;
      std::uint64_t parsed = 0;
      const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), parsed);
      if (problem != std::errc{} || end != value.data() + value.size() ||
          parsed > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        throw error(errc::format, "a pax header gives a size that is not a number");
      }
      size = parsed;
    }
    // GNU tar's way to leave holes out, and that of Solaris
    if (!value.empty() && (key.starts_with("GNU.sparse.") || key == "SUN.holesdata")) sparse = true;
  }
};

/// The name of the compression that the first bytes of a file show, or nothing.
[[nodiscard]] inline std::string_view compression_of(bytes_view head) noexcept {
  const auto starts = [&head](std::initializer_list<unsigned char> magic) {
    return head.size() >= magic.size() &&
           std::equal(magic.begin(), magic.end(), head.begin(),
                      [](unsigned char m, std::byte b) { return std::byte{m} == b; });
  };
  // Frames that are to be skipped may stand before those of zstd and of lz4.
  bool skipped = false;
  while (head.size() >= 8 && (head[0] & std::byte{0xf0}) == std::byte{0x50} && head[1] == std::byte{0x2a} &&
         head[2] == std::byte{0x4d} && head[3] == std::byte{0x18}) {
    std::uint64_t size = 8;
    for (std::size_t i = 0; i < 4; ++i) size += std::to_integer<std::uint64_t>(head[4 + i]) << (8 * i);
    head = head.subspan(static_cast<std::size_t>(std::min<std::uint64_t>(size, head.size())));
    skipped = true;
  }
  if (starts({0x04, 0x22, 0x4d, 0x18})) return "lz4";
  if (skipped || starts({0x28, 0xb5, 0x2f, 0xfd})) return "zstd";
  if (starts({0x1f, 0x8b})) return "gzip";
  if (starts({0x1f, 0x9d})) return "compress (.Z)";
  if (starts({0x42, 0x5a, 0x68})) return "bzip2";
  if (starts({0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00})) return "xz";
  if (starts({0x02, 0x21, 0x4c, 0x18})) return "lz4 (legacy)";
  if (starts({0x4c, 0x5a, 0x49, 0x50})) return "lzip";
  return {};
}

}  // namespace detail::tar
}  // namespace penstock::inline v0_1

// ---- penstock/source/detail/tar_walk.hpp

namespace penstock::inline v0_1 {
namespace detail::tar {

/// A member that holds a file's bytes.
struct member {
  std::string_view path;     ///< lives until the next one is asked for
  std::uint64_t header = 0;  ///< where its first header begins: pax (but `g`) and long-name headers included
  std::uint64_t data = 0;
  std::uint64_t size = 0;
  bool sparse = false;  ///< its bytes are stored with the holes left out
};

/// Goes through the headers of an archive, forward only, and keeps its memory.
///
/// `In` gives bytes: `get(offset, count)` shows that many, fewer at the end; `reach(offset)` goes there and
/// says how far that was possible. One that cannot look ahead has `static constexpr bool forward`: whether a
/// member is whole is found when it has been passed.
template <class In>
class member_walk {
 public:
  explicit member_walk(In& in) noexcept : in_(&in) {}

  /// Begins anew, at the beginning of an archive or at a header in it.
  void restart(std::uint64_t at = 0) noexcept {
    at_ = at;
    end_of_data_ = at;
    everywhere_ = {};
    forget();
  }

  /// The next file in the archive; false behind the last, at the first zero block or at the end of the bytes.
  /// Throws errc::format with the offset, and the path where it is known, for what is not a whole tar
  /// archive.
  [[nodiscard]] bool next(member& found) {
    while (true) {
      if (const std::uint64_t reached = in_->reach(end_of_data_); reached < end_of_data_) cut_off(reached);
      const bytes_view block = in_->get(at_, block_size);
      if (block.empty() && at_ == 0) {
        throw error(errc::format, "the file is empty: a tar archive has at least one block").at_offset(0);
      }
      if (block.empty() || (block.size() == block_size && is_zero(block))) {
        check_end();
        return false;
      }
      if (block.size() < block_size)
        throw error(errc::format, "the archive is cut off within a header").at_offset(at_);
      if (!checksum_matches(block)) {
        throw error(errc::format, at_ == 0 ? "this is not a tar archive: the first header's checksum is wrong"
                                           : "the checksum of a tar header is wrong")
            .at_offset(at_);
      }
      if (!extended_) first_ = at_;
      const char type = static_cast<char>(block[156]);
      const auto stored = number_field(block, 124, 12);
      if (type == 'x' || type == 'X' || type == 'g' || type == 'L' || type == 'K') {
        extension(type, stored);
      } else if (file(block, type, stored, found)) {
        return true;
      }
    }
  }

  /// What is thrown where the archive ends within the member that was shown last.
  [[noreturn]] void cut_off(std::uint64_t reached) const {
    throw error(errc::format, "the archive is cut off: the member '" + path_ + "' has " +
                                  std::to_string(end_of_data_ - data_) + " bytes, and " +
                                  std::to_string(reached - data_) + " are left")
        .at_offset(data_)
        .for_key(path_);
  }

 private:
  static constexpr std::uint64_t longest_extension = std::uint64_t{1} << 20;
  static constexpr bool forward = requires { requires In::forward; };

  void extension(char type, std::optional<std::uint64_t> stored) {
    if (!stored || *stored > longest_extension) {
      throw error(errc::format, "an extension header has no size, or one above 1 MiB").at_offset(at_);
    }
    const bytes_view body = in_->get(at_ + block_size, static_cast<std::size_t>(*stored));
    if (body.size() < *stored)
      throw error(errc::format, "the archive is cut off within an extension header").at_offset(at_);
    try {
      if (type == 'g') {
        everywhere_.read(body);
      } else if (type == 'L') {
        long_path_.set(text_field(body, 0, body.size()));
      } else if (type != 'K') {
        if (!has_records_) records_ = everywhere_;
        has_records_ = true;
        records_.read(body);
      }
    } catch (error& e) {
      e.at_offset(at_);
      throw;
    }
    if (type != 'g') extended_ = true;  // what holds everywhere is no part of the next member
    end_of_data_ = at_ + block_size;
    at_ = end_of_data_ + padded(*stored);
  }

  // A header that no extension follows: whether it is a file's. `block` is good until the next `get`.
  bool file(bytes_view block, char type, std::optional<std::uint64_t> stored, member& found) {
    header_path(block, path_);
    const pax_records& known = has_records_ ? records_ : everywhere_;
    const bool folder = type == '5' || (type == '\0' && path_.ends_with('/'));
    if (known.sparse_path.known) {
      path_.assign(known.sparse_path.text);
    } else if (known.path.known) {
      path_.assign(known.path.text);
    } else if (long_path_.known) {
      path_.assign(long_path_.text);
    }
    const auto bytes = known.size ? known.size : stored;
    const bool sparse = type == 'S' || known.sparse;
    data_ = at_ + block_size;
    if (type == 'S') pass_map(block[482] != std::byte{0});
    end_of_data_ = data_;
    at_ = data_;
    forget();
    if (folder || (type >= '1' && type <= '6')) return false;  // what has no data, whatever its size says
    if (!bytes) {
      throw error(errc::format, "the size of a member is not a number, or is negative")
          .at_offset(data_ - block_size)
          .for_key(path_);
    }
    if (*bytes > most - data_) {
      throw error(errc::format, "the size of a member is larger than any file")
          .at_offset(data_ - block_size)
          .for_key(path_);
    }
    end_of_data_ = data_ + *bytes;
    at_ = data_ + padded(*bytes);
    if constexpr (forward) {
      (void)in_->reach(data_);  // the caller may read the member next
    } else {
      if (const std::uint64_t reached = in_->reach(end_of_data_); reached < end_of_data_) cut_off(reached);
    }
    if (type != '0' && type != '\0' && type != '7' && type != 'S') return false;
    found = {path_, first_, data_, *bytes, sparse};
    return true;
  }

  // Old GNU sparse files: blocks with the rest of the map stand before the data.
  void pass_map(bool more) {
    while (more) {
      const bytes_view map = in_->get(data_, block_size);
      if (map.size() < block_size) {
        throw error(errc::format, "the archive is cut off within the map of a sparse file")
            .at_offset(data_)
            .for_key(path_);
      }
      more = map[504] != std::byte{0};
      data_ += block_size;
    }
  }

  void check_end() const {
    if (extended_ && (has_records_ || long_path_.known)) {
      throw error(errc::format, "the archive ends where a member was announced by an extension header")
          .at_offset(first_);
    }
  }
  void forget() noexcept {
    has_records_ = false;
    long_path_.known = false;
    extended_ = false;
  }

  static constexpr std::uint64_t most = (std::uint64_t{1} << 63) - block_size;

  In* in_;
  std::uint64_t at_ = 0;           // of the next header
  std::uint64_t end_of_data_ = 0;  // before the padding, which may be missing at the end
  std::uint64_t data_ = 0;
  std::uint64_t first_ = 0;
  pax_records everywhere_;
  pax_records records_;  // of the next member; begin as what holds everywhere
  known_text long_path_;
  std::string path_;
  bool has_records_ = false;
  bool extended_ = false;
};

}  // namespace detail::tar
}  // namespace penstock::inline v0_1

// ---- penstock/source/detail/tar_scan.hpp

namespace penstock::inline v0_1 {
namespace detail::tar {

/// Reads headers, not payloads: small reads where members are far apart, large ones where they are close
/// together.
template <storage_session Session>
class header_reader {
 public:
  header_reader(Session& session, object_id id, std::uint64_t size)
      : session_(session), id_(id), size_(size) {}

  /// `count` bytes at `offset`, fewer at the end of the archive. Lives until the next call.
  [[nodiscard]] bytes_view get(std::uint64_t offset, std::size_t most) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(most, size_ - reach(offset)));
    if (count == 0) return {};
    if constexpr (viewing_session<Session>) {
      return session_.view(id_, offset, count);
    } else {
      if (offset < begin_ || offset + count > begin_ + window_.size()) fill(offset, count);
      return window_.view().subspan(static_cast<std::size_t>(offset - begin_), count);
    }
  }

  /// Where one comes who wants to go to `offset`: no further than the end.
  [[nodiscard]] std::uint64_t reach(std::uint64_t offset) const noexcept { return std::min(offset, size_); }

 private:
  static constexpr std::uint64_t smallest = 2048;
  static constexpr std::uint64_t largest = 256 * 1024;
  static constexpr std::uint64_t close_by = 32 * 1024;

  void fill(std::uint64_t offset, std::size_t count) {
    const std::uint64_t end = begin_ + window_.size();
    const bool follows = offset >= begin_ && (offset < end || offset - end < close_by);
    ahead_ = follows ? std::min(ahead_ * 4, largest) : smallest;
    const std::uint64_t wanted =
        std::min<std::uint64_t>(std::max<std::uint64_t>(count, ahead_), size_ - offset);
    window_.resize_for_overwrite(static_cast<std::size_t>(wanted));
    begin_ = offset;
    session_.read(id_, offset, window_.span());
  }

  Session& session_;
  object_id id_;
  std::uint64_t size_;
  std::uint64_t begin_ = 0;
  std::uint64_t ahead_ = smallest;
  buffer window_;
};

/// Calls `visit(member)` for each file in the archive, in order. Reads headers only. Ends at the first zero
/// block or at the end of the object. Throws errc::format with the offset, and the path where it is known,
/// for what is not a whole tar archive.
template <storage_session Session, class Visit>
void scan(Session& session, object_id id, std::uint64_t size, Visit&& visit) {
  header_reader<Session> in(session, id, size);
  const bytes_view head = in.get(0, 4096);
  const auto compressed = compression_of(head);
  if (!compressed.empty() && !(head.size() >= block_size && checksum_matches(head.first(block_size)))) {
    std::string advice = packed_advice(compressed, "webdataset(unpacked<", ">(...))");
    if (!packed_format_of(compressed).format.empty())
      advice += " for copies in which samples can be reached, or use webdataset_stream to read it forward";
    throw error(errc::format, advice).at_offset(0);
  }
  member_walk<header_reader<Session>> walk(in);
  member found;
  while (walk.next(found)) visit(found);
}

}  // namespace detail::tar
}  // namespace penstock::inline v0_1

// ---- penstock/source/detail/index_builder.hpp

namespace penstock::inline v0_1 {
namespace detail::tar {

/// Groups members into samples by the rules of WebDataset, and makes the index of the shard.
template <class = void>
class basic_index_builder {
 public:
  /// Takes the next member of the archive; what belongs to no sample is passed over.
  void add(const member& m) {
    if (skipped_member(m.path)) return;
    const auto parts = split_member(m.path);
    if (!parts) return;
    if (m.sparse) {
      throw error(errc::format, {"'", m.path,
                                 "' is a sparse file, which is stored with its holes left out; write the "
                                 "archive without --sparse"})
          .at_offset(m.header)
          .for_key(parts->key);
    }
    if (samples_.empty() || parts->key != last_key()) open_sample_of(parts->key);
    const std::string lowered = lower_case(parts->suffix);
    if (marks_bad(lowered, m.size)) bad_ = true;
    const std::uint32_t suffix = number_of(lowered);
    if (last_seen_[suffix] == met_ || reserved_suffix(lowered)) {
      throw error(errc::format, {reserved_suffix(lowered)
                                     ? "WebDataset keeps this name for itself, no member may have it: '"
                                     : "the sample has two members '",
                                 lowered, "'"})
          .at_offset(m.header)
          .for_key(parts->key);
    }
    last_seen_[suffix] = met_;
    check_room(members_.size(), "members");
    members_.push_back({(m.data / 512) << 24 | suffix, m.size});
    payload_ += m.size;
  }

  [[nodiscard]] std::uint64_t samples() const noexcept { return samples_.size(); }
  /// Samples so far, with those that are left out since they call themselves bad.
  [[nodiscard]] std::uint64_t met() const noexcept { return met_; }
  [[nodiscard]] std::uint64_t payload() const noexcept { return payload_; }
  /// The key of the sample that the next member may still belong to.
  [[nodiscard]] std::string_view last_key() const noexcept {
    return samples_.empty() ? std::string_view{} : std::string_view(keys_).substr(samples_.back().key);
  }

  /// The index as bytes, for a shard of this size and stamp.
  [[nodiscard]] buffer finish(object_signature shard) {
    leave_out_bad();
    index_header header;
    header.shard_size = shard.size;
    header.shard_stamp = shard.stamp;
    header.samples = samples_.size();
    header.members = members_.size();
    header.suffixes = suffixes_.size();
    for (const std::string& suffix : suffixes_) header.suffix_bytes += suffix.size();
    header.key_bytes = keys_.size();
    header.payload = payload_;
    check_room(static_cast<std::size_t>(header.suffix_bytes), "bytes of suffixes");

    buffer out(static_cast<std::size_t>(header.file_size()));
    std::byte* to = out.data() + index_header::size;
    const auto put = [&to](auto value) {
      store_little(to, value);
      to += sizeof(value);
    };
    for (const sample& s : samples_) {
      put(s.first);
      put(s.key);
    }
    put(static_cast<std::uint32_t>(members_.size()));
    put(static_cast<std::uint32_t>(keys_.size()));
    for (const entry& m : members_) {
      put(m.place);
      put(m.size);
    }
    std::uint32_t end = 0;
    for (const std::string& suffix : suffixes_) {
      end += static_cast<std::uint32_t>(suffix.size());
      put(end);
    }
    const auto copy = [&to](std::string_view text) {
      if (!text.empty()) std::memcpy(to, text.data(), text.size());
      to += text.size();
    };
    for (const std::string& suffix : suffixes_) copy(suffix);
    copy(keys_);
    header.content = checksum(out.view().subspan(index_header::size));
    header.store(out.data());
    return out;
  }

 private:
  struct sample {
    std::uint32_t first;
    std::uint32_t key;
  };
  struct entry {
    std::uint64_t place;
    std::uint64_t size;
  };

  static void check_room(std::size_t used, const char* what) {
    if (used >= std::numeric_limits<std::uint32_t>::max()) {
      throw error(errc::format, {"a shard may not have more than 4,294,967,295 ", what});
    }
  }

  void open_sample_of(std::string_view key) {
    leave_out_bad();
    ++met_;
    check_room(keys_.size() + key.size(), "bytes of keys");
    samples_.push_back(
        {static_cast<std::uint32_t>(members_.size()), static_cast<std::uint32_t>(keys_.size())});
    keys_ += key;
  }

  // The last sample, if it has a member that says so.
  void leave_out_bad() {
    if (!std::exchange(bad_, false)) return;
    for (std::size_t i = samples_.back().first; i < members_.size(); ++i) payload_ -= members_[i].size;
    members_.resize(samples_.back().first);
    keys_.resize(samples_.back().key);
    samples_.pop_back();
  }

  // Samples repeat the suffixes of the one before, in the same order: the next number is tried first.
  std::uint32_t number_of(const std::string& suffix) {
    const std::size_t next = guess_ + 1 < suffixes_.size() ? guess_ + 1 : 0;
    if (next < suffixes_.size() && suffixes_[next] == suffix) {
      guess_ = next;
      return static_cast<std::uint32_t>(next);
    }
    const auto [found, fresh] = numbers_.try_emplace(suffix, static_cast<std::uint32_t>(suffixes_.size()));
    if (fresh) {
      if (suffixes_.size() == (1u << 24))
        throw error(errc::format, "a shard may not have more than 16,777,216 suffixes");
      suffixes_.push_back(suffix);
      last_seen_.push_back(0);
    }
    guess_ = found->second;
    return found->second;
  }

  std::vector<sample> samples_;
  std::vector<entry> members_;
  std::string keys_;
  std::vector<std::string> suffixes_;
  std::vector<std::size_t> last_seen_;  // by suffix: the sample in which it was last met
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::uint64_t payload_ = 0;
  std::size_t guess_ = 0;
  std::size_t met_ = 0;
  bool bad_ = false;
};
using index_builder = basic_index_builder<>;

/// Makes the index of an object in one pass over its headers.
template <storage_session Session>
[[nodiscard]] buffer build_index(Session& session, object_id id, const std::string& name) {
  try {
    const object_signature shard = session.signature(id);
    index_builder builder;
    scan(session, id, shard.size, [&builder](const member& m) { builder.add(m); });
    confirm(session, id);
    if (session.signature(id) != shard) {
      throw error(errc::io, "the shard was changed while its index was built");
    }
    return builder.finish(shard);
  } catch (error& e) {
    confirm(session, id);
    e.in_file(name);
    throw;
  }
}

}  // namespace detail::tar
}  // namespace penstock::inline v0_1

// ---- penstock/source/detail/tar_format.hpp

/// Tar headers as they are written: ustar, and pax where ustar has no room.
namespace penstock::inline v0_1 {
namespace detail::tar {

inline constexpr std::array<std::byte, 10240> zeros{};

/// The zeros that fill the last block of a member.
[[nodiscard]] inline bytes_view padding_after(std::uint64_t size) noexcept {
  return bytes_view(zeros).first(static_cast<std::size_t>(padded(size) - size));
}

/// Two zero blocks, and more up to a multiple of twenty blocks, as all tar programs write by default.
[[nodiscard]] inline std::array<bytes_view, 2> end_of_archive(std::uint64_t size) noexcept {
  const auto rest = static_cast<std::size_t>((zeros.size() - (size + 1024) % zeros.size()) % zeros.size());
  return {bytes_view(zeros).first(1024), bytes_view(zeros).first(rest)};
}

/// Where a path is cut into prefix and name; nothing where ustar cannot hold it. Zero: no prefix is needed.
[[nodiscard]] inline std::optional<std::size_t> ustar_cut(std::string_view path) noexcept {
  if (path.size() <= 100) return 0;
  if (path.size() > 256) return std::nullopt;
  const std::size_t cut = path.rfind('/', 155);
  if (cut == std::string_view::npos || cut == 0 || path.size() - cut - 1 > 100 || cut + 1 == path.size())
    return std::nullopt;
  return cut;
}

inline void put_text(std::byte* block, std::size_t offset, std::size_t size, std::string_view text) noexcept {
  std::memcpy(block + offset, text.data(), std::min(size, text.size()));
}

/// Octal digits with leading zeros and a NUL at the end, as all tar programs write them.
inline void put_number(std::byte* block, std::size_t offset, std::size_t size, std::uint64_t value) noexcept {
  for (std::size_t i = size - 1; i-- > 0; value >>= 3)
    block[offset + i] = static_cast<std::byte>('0' + (value & 7u));
}

template <class Options>
void append_block(buffer& out, std::string_view prefix, std::string_view name, std::uint64_t size, char type,
                  const Options& options) {
  std::array<std::byte, block_size> block{};
  put_text(block.data(), 0, 100, name);
  put_number(block.data(), 100, 8, options.mode & 07777u);
  put_number(block.data(), 108, 8, 0);
  put_number(block.data(), 116, 8, 0);
  put_number(block.data(), 124, 12, size);
  put_number(block.data(), 136, 12, options.mtime);
  block[156] = static_cast<std::byte>(type);
  put_text(block.data(), 257, 8, std::string_view("ustar\00000", 8));
  put_text(block.data(), 265, 31, options.owner);
  put_text(block.data(), 297, 31, options.group);
  put_number(block.data(), 329, 8, 0);
  put_number(block.data(), 337, 8, 0);
  put_text(block.data(), 345, 155, prefix);
  std::uint64_t sum = 8 * ' ';
  for (const std::byte b : block) sum += static_cast<unsigned char>(b);
  put_number(block.data(), 148, 7, sum);
  block[155] = std::byte{' '};
  out.append(block);
}

/// `LENGTH KEY=VALUE\n`, where LENGTH counts itself.
[[nodiscard]] inline std::string pax_record(std::string_view key, std::string_view value) {
  const std::size_t rest = key.size() + value.size() + 3;
  std::size_t length = rest + std::to_string(rest).size();
  if (std::to_string(length).size() != std::to_string(rest).size()) ++length;
  return detail::text({length, " ", key, "=", value, "\n"});
}

/// The header of a regular file, after a pax header where its name or size needs one.
template <class Options>
void append_headers(buffer& out, std::string_view path, std::uint64_t size, const Options& options) {
  constexpr std::uint64_t most_in_octal = std::uint64_t{1} << 33;
  const auto cut = ustar_cut(path);
  if (!cut || size >= most_in_octal) {
    std::string records;
    if (!cut) records += pax_record("path", path);
    if (size >= most_in_octal) records += pax_record("size", std::to_string(size));
    append_block(out, "", "././@PaxHeader", records.size(), 'x', options);
    out.append(bytes_of(records));
    out.append(padding_after(records.size()));
  }
  const std::size_t at = cut.value_or(0);
  const std::string_view prefix = path.substr(0, at);
  const std::string_view name = at == 0 ? path : path.substr(at + 1);
  append_block(out, prefix, name.substr(0, 100), size >= most_in_octal ? 0 : size, '0', options);
}

}  // namespace detail::tar
}  // namespace penstock::inline v0_1

// ---- penstock/source/tar_writer.hpp

namespace penstock::inline v0_1 {

/// Choices of `tar_writer`. With the defaults the same samples give the same bytes, whenever and by whom they
/// are written.
struct tar_writer_options {
  std::uint64_t mtime = 0;  ///< seconds since 1970
  std::uint32_t mode = 0444;
  std::string owner = "bigdata";  ///< what WebDataset writes
  std::string group = "bigdata";
  /// Also writes the index of the shard beside it, so that its first reader need not build it.
  bool index = false;
};

/// One member of a sample that is to be written: a suffix and its bytes.
struct tar_member {
  std::string_view suffix;
  bytes_view bytes;

  tar_member(std::string_view name, bytes_view content) noexcept : suffix(name), bytes(content) {}
  tar_member(std::string_view name, std::string_view text) noexcept : suffix(name), bytes(bytes_of(text)) {}
};

/// Writes one shard in the WebDataset format: a tar archive with the members of a sample next to each other.
///
///     tar_writer out("train-000000.tar");
///     out.write("0001", {{"jpg", jpeg_bytes}, {"cls", "7"}});
///     out.close();
///
/// In: keys and members; out: a ustar archive, with pax headers only where a name or size needs them, read by
/// GNU tar, Python's tarfile and WebDataset. The file appears under its name at `close`, complete and flushed
/// to the disk; a writer that is destroyed before leaves nothing. Instead of a path it takes any callable
/// that accepts a `bytes_view`.
/// Errors: errc::argument for a name that would not be read back as it was given (a dot or an upper-case
/// letter at the wrong place, a suffix twice, the key of the sample before), errc::io with the path when the
/// file cannot be written. After an error of the second kind nothing more may be written.
/// Threads: one at a time. Source of the format: POSIX.1-2017, pax; the GNU tar manual.
template <class Sink = detail::tar::output_file>
class tar_writer {
  static constexpr bool to_file = std::same_as<Sink, detail::tar::output_file>;

 public:
  explicit tar_writer(std::string_view path, tar_writer_options options = {})
    requires to_file
      : sink_(std::in_place, std::string(path)), options_(std::move(options)), name_(path) {}
  explicit tar_writer(Sink sink, tar_writer_options options = {})
    requires std::invocable<Sink&, bytes_view>
      : sink_(std::move(sink)), options_(std::move(options)) {
    if (options_.index)
      throw error(errc::argument, "an index is written beside a file; give tar_writer a path");
  }

  /// Appends a sample. The members stand in the archive in the order given.
  void write(std::string_view key, std::span<const tar_member> members) {
    if (closed_ || failed_) throw error(errc::state, "this tar_writer is closed").in_file(name_).for_key(key);
    check(key, members);
    failed_ = true;  // until the sample is complete
    for (const tar_member& m : members) {
      path_.assign(key).append(".").append(m.suffix);
      header_.clear();
      detail::tar::append_headers(header_, path_, m.bytes.size(), options_);
      const std::uint64_t begin = written_;
      put(header_.view());
      index_.add({path_, begin, written_, m.bytes.size(), false});
      put(m.bytes);
      put(detail::tar::padding_after(m.bytes.size()));
    }
    failed_ = false;
  }
  void write(std::string_view key, std::initializer_list<tar_member> members) {
    write(key, std::span<const tar_member>(members.begin(), members.size()));
  }

  /// Ends the archive and makes the file visible. What the shard then is, as a manifest has it.
  manifest::shard close() {
    if (closed_ || failed_) throw error(errc::state, "this tar_writer is closed").in_file(name_);
    closed_ = true;
    for (const bytes_view part : detail::tar::end_of_archive(written_)) put(part);
    object_signature written{written_, 0};
    if constexpr (to_file) written = sink_->commit();
    const buffer index = index_.finish(written);
    if (options_.index && !detail::tar::keep_index(name_, index.view())) {
      throw error(errc::io, {"cannot write the index ", detail::tar::index_path(name_)}).in_file(name_);
    }
    sink_.reset();
    return {name_, written_, index_.samples(), index_.payload(),
            detail::tar::index_header::load(index.view())->content};
  }

  [[nodiscard]] std::uint64_t samples() const noexcept { return index_.samples(); }
  /// Bytes of members written so far, without headers and padding.
  [[nodiscard]] std::uint64_t payload() const noexcept { return index_.payload(); }
  /// Bytes of the archive written so far.
  [[nodiscard]] std::uint64_t size() const noexcept { return written_; }

 private:
  void put(bytes_view bytes) {
    if constexpr (to_file) {
      sink_->write(bytes);
    } else {
      (*sink_)(bytes);
    }
    written_ += bytes.size();
  }

  // What is written must be read back as the same samples.
  void check(std::string_view key, std::span<const tar_member> members) {
    const auto refuse = [&](const std::string& why) {
      throw error(errc::argument, why).in_file(name_).for_key(key);
    };
    if (members.empty()) refuse("a sample needs at least one member");
    if (samples() != 0 && index_.last_key() == key)
      refuse("the sample before has the same key: the two would be read as one");
    for (std::size_t i = 0; i < members.size(); ++i) {
      path_.assign(key).append(".").append(members[i].suffix);
      if (path_.find('\0') != std::string::npos) refuse("a key or suffix may not hold a NUL");
      const auto parts = detail::tar::split_member(path_);
      if (!parts || parts->key != key || path_.starts_with('/')) {
        refuse("'" + path_ +
               "' would not be read back as this key and suffix: the last part of a key may have no dot, " +
               "and a key may be neither empty nor absolute");
      }
      if (detail::tar::skipped_member(path_)) refuse("'" + path_ + "' would be passed over by readers");
      if (detail::tar::lower_case(members[i].suffix) != members[i].suffix) {
        refuse("the suffix '" + std::string(members[i].suffix) +
               "' has upper-case letters, which readers lower");
      }
      for (std::size_t j = 0; j < i; ++j) {
        if (members[j].suffix == members[i].suffix)
          refuse("the suffix '" + std::string(members[i].suffix) + "' stands twice");
      }
    }
  }

  std::optional<Sink> sink_;
  tar_writer_options options_;
  std::string name_;
  detail::tar::index_builder index_;
  std::string path_;
  buffer header_;
  std::uint64_t written_ = 0;
  bool closed_ = false;
  bool failed_ = false;
};

template <class Path>
  requires std::is_convertible_v<const Path&, std::string_view>
tar_writer(const Path&) -> tar_writer<detail::tar::output_file>;
template <class Path>
  requires std::is_convertible_v<const Path&, std::string_view>
tar_writer(const Path&, tar_writer_options) -> tar_writer<detail::tar::output_file>;
template <std::invocable<bytes_view> Sink>
tar_writer(Sink) -> tar_writer<Sink>;
template <std::invocable<bytes_view> Sink>
tar_writer(Sink, tar_writer_options) -> tar_writer<Sink>;

}  // namespace penstock::inline v0_1

// ---- penstock/source/shard_writer.hpp

namespace penstock::inline v0_1 {

/// Choices of `shard_writer`; the bounds are those of WebDataset's ShardWriter.
struct shard_writer_options {
  std::uint64_t maxcount = 100'000;  ///< samples in a shard
  /// bytes of members in a shard; the sample that passes it is the shard's last
  std::uint64_t maxsize = 3'000'000'000u;
  std::uint64_t start_shard = 0;  ///< the number of the first shard
  tar_writer_options tar = {};
};

/// Writes samples into numbered shards, a new one when the last is full.
///
///     shard_writer out("train-%06d.tar", {.maxcount = 10'000});
///     out.write(key, {{"jpg", jpeg_bytes}, {"cls", "7"}});
///     manifest all = out.close();
///
/// In: as `tar_writer`, and a pattern with one `%d` (`%06d`, `%%` for a percent sign), or a path without `%`,
/// to which `-%06d.tar` is added. Out: the shards, each of which appears when it is complete, and a manifest.
/// A writer that is destroyed without `close` removes the shard it was at and leaves those before.
/// Errors and threads as for `tar_writer`. Source: webdataset, writer.py, ShardWriter.
template <class = void>
class basic_shard_writer {
 public:
  explicit basic_shard_writer(std::string_view pattern, shard_writer_options options = {})
      : options_(std::move(options)), next_(options_.start_shard) {
    parse(pattern);
    if (options_.maxcount == 0) throw error(errc::argument, "a shard needs room for at least one sample");
  }

  void write(std::string_view key, std::span<const tar_member> members) {
    if (closed_) throw error(errc::state, "this shard_writer is closed").for_key(key);
    if (current_ && (current_->samples() >= options_.maxcount || current_->payload() >= options_.maxsize))
      finish_shard();
    if (!current_) current_.emplace(std::string_view(name(next_)), options_.tar);
    current_->write(key, members);
  }
  void write(std::string_view key, std::initializer_list<tar_member> members) {
    write(key, std::span<const tar_member>(members.begin(), members.size()));
  }

  /// Completes the last shard. The manifest of all shards written; with no sample there is no shard.
  manifest close() {
    if (closed_) throw error(errc::state, "this shard_writer is closed");
    if (current_) finish_shard();
    closed_ = true;
    return manifest(shards_);
  }

  /// The shards that are complete.
  [[nodiscard]] std::span<const manifest::shard> shards() const noexcept { return shards_; }
  /// The path of a shard by its number.
  [[nodiscard]] std::string name(std::uint64_t number) const {
    std::string digits = std::to_string(number);
    if (digits.size() < width_) digits.insert(0, width_ - digits.size(), fill_);
    return before_ + digits + after_;
  }

 private:
  void finish_shard() {
    shards_.push_back(current_->close());
    current_.reset();
    ++next_;
  }

  void parse(std::string_view pattern) {
    if (pattern.empty())
      throw error(errc::argument, "a shard_writer needs a pattern, for example 'train-%06d.tar'");
    bool found = false;
    for (std::size_t i = 0; i < pattern.size(); ++i) {
      std::string& text = found ? after_ : before_;
      if (pattern[i] != '%') {
        text += pattern[i];
        continue;
      }
      if (i + 1 < pattern.size() && pattern[i + 1] == '%') {
        text += pattern[++i];
        continue;
      }
      if (i + 1 < pattern.size() && pattern[i + 1] == '0') fill_ = '0';
      std::size_t width = 0;
      for (++i; i < pattern.size() && pattern[i] >= '0' && pattern[i] <= '9' && width <= 20; ++i) {
        width = width * 10 + static_cast<std::size_t>(pattern[i] - '0');
      }
      if (found || width > 20 || i >= pattern.size() || (pattern[i] != 'd' && pattern[i] != 'u')) {
        throw error(
            errc::argument,
            "the pattern of a shard_writer has one number, written as in 'train-%06d.tar'; this is '" +
                std::string(pattern) + "'");
      }
      width_ = width;
      found = true;
    }
    if (!found) {
      if (before_.ends_with(".tar")) before_.resize(before_.size() - 4);
      before_ += "-";
      after_ = ".tar";
      width_ = 6;
      fill_ = '0';
    }
  }

  shard_writer_options options_;
  std::string before_;
  std::string after_;
  std::size_t width_ = 0;
  char fill_ = ' ';
  std::uint64_t next_ = 0;
  std::optional<tar_writer<>> current_;
  std::vector<manifest::shard> shards_;
  bool closed_ = false;
};
/// The form to use: see `basic_shard_writer`.
using shard_writer = basic_shard_writer<>;

}  // namespace penstock::inline v0_1

// ---- penstock/source/synthetic.hpp

namespace penstock::inline v0_1 {

/// How a synthetic sample spends its cost: computing on a core, as a decoder does, or away from it, as a disk
/// does.
enum class synthetic_wait { spin, sleep };

/// What `synthetic` makes up.
struct synthetic_options {
  std::uint64_t samples = 0;
  /// Bytes in each sample.
  std::uint64_t bytes = 0;
  /// Time that each sample takes, on average without a tail.
  std::chrono::nanoseconds cost{0};
  /// From 0 to 1: the time is drawn evenly from cost * (1 - jitter) to cost * (1 + jitter).
  double jitter = 0;
  std::uint64_t seed = 0;
  /// With this probability a sample takes `tail_factor` times as long.
  double tail_probability = 0;
  double tail_factor = 1;
  synthetic_wait wait = synthetic_wait::spin;
  /// The number of shards of equal size (to one sample) that the dataset says it has; 0 for none.
  std::uint64_t shards = 0;
};

/// The bytes of one synthetic sample: a blob. Word j of 8 bytes is `mix64(seed ^ mix64(index)) + j *
/// 0x9e3779b97f4a7c15`, little-endian.
class synthetic_bytes {
 public:
  using unfinished = void;

  synthetic_bytes(std::uint64_t first_word, std::uint64_t size, buffer& scratch) noexcept
      : first_word_(first_word), size_(size), scratch_(&scratch) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  void read_into(mutable_bytes into) const noexcept {
    std::uint64_t word = first_word_;
    std::size_t at = 0;
    for (; at + 8 <= into.size(); at += 8, word += step) detail::store_little(into.data() + at, word);
    for (; at != into.size(); ++at, word >>= 8) into[at] = static_cast<std::byte>(word);
  }
  [[nodiscard]] bytes_view finish() const {
    scratch_->resize_for_overwrite(static_cast<std::size_t>(size_));
    read_into(scratch_->span());
    return scratch_->view();
  }

 private:
  static constexpr std::uint64_t step = 0x9e3779b97f4a7c15u;
  std::uint64_t first_word_;
  std::uint64_t size_;
  buffer* scratch_;
};

/// The source that `synthetic` makes.
class synthetic_source {
 public:
  using penstock_part = source_tag;
  using element = synthetic_bytes;
  static constexpr std::string_view source_name = "synthetic";

  class reader {
   public:
    struct worker {
      buffer scratch;
    };
    explicit reader(const synthetic_options& options) noexcept : options_(options) {}

    template <class Sink>
    void evaluate(position p, worker& w, Sink&& sink) const {
      spend(cost_of(p));
      sink(synthetic_bytes(mix64(options_.seed ^ mix64(p.index)), options_.bytes, w.scratch));
    }
    /// The time that the sample at this position takes: the same on every run.
    [[nodiscard]] std::chrono::nanoseconds cost_of(position p) const noexcept {
      if (options_.cost.count() == 0) return options_.cost;
      rng random(options_.seed, p.epoch, p.index, stream);
      double factor = 1 + options_.jitter * (2 * random.uniform() - 1);
      if (random.chance(options_.tail_probability)) factor *= options_.tail_factor;
      return std::chrono::nanoseconds(
          static_cast<std::int64_t>(static_cast<double>(options_.cost.count()) * factor));
    }
    [[nodiscard]] std::string key(std::uint64_t index) const { return std::to_string(index); }
    [[nodiscard]] std::uint64_t bytes_per_sample() const noexcept { return options_.bytes; }

   private:
    static constexpr std::uint64_t stream = 0x73796e;

    void spend(std::chrono::nanoseconds time) const {
      if (time.count() == 0) return;
      if (options_.wait == synthetic_wait::sleep) {
        std::this_thread::sleep_for(time);
      } else {
        for (const auto end = std::chrono::steady_clock::now() + time;
             std::chrono::steady_clock::now() < end;) {
        }
      }
    }

    synthetic_options options_;
  };

  explicit synthetic_source(const synthetic_options& options) : options_(options) {
    const auto in_0_1 = [](double x) { return x >= 0 && x <= 1; };
    if (!in_0_1(options.jitter) || !in_0_1(options.tail_probability) || !(options.tail_factor >= 0) ||
        options.cost.count() < 0)
      throw error(
          errc::argument,
          "synthetic: jitter and tail_probability must be from 0 to 1, cost and tail_factor not negative");
    if (options.shards == 0) return;
    if (options.shards > options.samples)
      throw error(errc::argument, "synthetic: there cannot be more shards than samples");
    std::vector<std::uint64_t> starts(static_cast<std::size_t>(options.shards + 1));
    const std::uint64_t each = options.samples / options.shards, longer = options.samples % options.shards;
    for (std::uint64_t i = 0; i <= options.shards; ++i)
      starts[static_cast<std::size_t>(i)] = i * each + std::min(i, longer);
    starts_ = std::shared_ptr<const std::vector<std::uint64_t>>(
        new const std::vector<std::uint64_t>(std::move(starts)));
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return options_.samples; }
  [[nodiscard]] std::shared_ptr<const std::vector<std::uint64_t>> starts() const noexcept { return starts_; }
  [[nodiscard]] std::string describe() const {
    return detail::text({"synthetic(", options_.samples, " samples of ", options_.bytes, " bytes, ",
                         options_.cost.count(), " ns each)"});
  }
  /// Of what determines the content; the cost does not.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept {
    return penstock::fingerprint{}
        .add(source_name, options_.samples, options_.bytes, options_.seed, options_.shards)
        .value();
  }
  [[nodiscard]] reader open() const noexcept { return reader(options_); }

 private:
  synthetic_options options_;
  std::shared_ptr<const std::vector<std::uint64_t>> starts_;
};

/// The function object behind `synthetic`.
struct synthetic_fn {
  [[nodiscard]] synthetic_source operator()(const synthetic_options& options) const {
    return synthetic_source(options);
  }
};

/// A made-up dataset for measurements and tests: samples of a given size that take a given time, without any
/// storage.
///
/// In: `synthetic_options`. Out: blobs of `bytes` bytes whose content depends on seed and index only. The
/// time is spent before a sample is handed on, spinning or sleeping; how long depends on seed, epoch and
/// index, never on threads or runs.
/// Kind: an indexed source; indexed, deterministic, resumable, elastic, lockstep. Cost per sample: the time
/// asked for, and one pass over the bytes to write them; no allocation, but for the scratch of `finish`.
/// Threads: any number at once.
/// Throws `errc::argument` for options that make no sense.
///
///     auto slow_disk = synthetic({.samples = 10'000, .bytes = 100'000, .cost = std::chrono::microseconds(500),
///                                 .jitter = 0.5, .tail_probability = 0.01, .tail_factor = 20, .wait = synthetic_wait::sleep});
inline constexpr synthetic_fn synthetic{};

}  // namespace penstock::inline v0_1

// ---- penstock/source/detail/token_files.hpp

/// The three layouts of token files: what their headers say, checked against their sizes.
namespace penstock::inline v0_1 {
namespace detail {

/// Where the tokens of a file are.
struct token_range {
  std::uint64_t begin = 0;  // in bytes
  std::uint64_t count = 0;  // in tokens
};

/// A little-endian number at a place that the caller has checked.
template <std::unsigned_integral N>
[[nodiscard]] N little_endian(bytes_view bytes, std::size_t at) noexcept {
  N value = 0;
  for (std::size_t i = 0; i < sizeof(N); ++i)
    value = static_cast<N>(value | static_cast<N>(std::to_integer<N>(bytes[at + i]) << (8 * i)));
  return value;
}

/// What llm.c writes for tokens of type `T`.
template <class T>
struct llmc_header {
  static_assert(std::same_as<T, std::uint16_t> || std::same_as<T, std::uint32_t>,
                "penstock: llm.c has files of std::uint16_t (GPT-2) and of std::uint32_t (Llama 3) only");
  static constexpr bool wide = sizeof(T) == 4;
  static constexpr std::uint32_t magic = wide ? 20240801 : 20240520;
  static constexpr std::uint32_t version = wide ? 7 : 1;
  static constexpr std::uint32_t other_magic = wide ? 20240520 : 20240801;
  static constexpr std::string_view other_type = wide ? "std::uint16_t" : "std::uint32_t";
};
inline constexpr std::uint32_t llmc_eval_magic = 20240522;
inline constexpr std::size_t llmc_header_bytes = 1024;

/// The tokens of an llm.c file of `size` bytes that begins with `head`: all of it, or its header.
/// Source: llm.c, dev/data/data_common.py and llmc/dataloader.h.
template <class T>
[[nodiscard]] token_range parse_llmc(bytes_view head, std::uint64_t size, const std::string& path) {
  using header = llmc_header<T>;
  const auto fail = [&path](std::string what, std::uint64_t offset) -> error {
    return error(errc::format, std::move(what)).in_file(path).at_offset(offset);
  };
  if (head.size() < 4) throw fail("the file ends within the header of an llm.c file", size);
  const auto number = [head](std::size_t i) { return little_endian<std::uint32_t>(head, 4 * i); };
  const std::uint32_t magic = number(0);
  if (magic == header::other_magic)
    throw fail(text({"the llm.c file holds tokens of another width; ask for ", header::other_type}), 0);
  if (magic == llmc_eval_magic)
    throw fail("this is an llm.c file of multiple-choice examples, not one of tokens", 0);
  if (magic != header::magic)
    throw fail(text({"this is not an llm.c token file: it begins with ", magic, " and not with ",
                     header::magic, "; a file without a header is read by raw_tokens"}),
               0);
  if (head.size() < llmc_header_bytes) throw fail("the file ends within its llm.c header", size);
  if (number(1) != header::version)
    throw fail(text({"version ", number(1), " of llm.c's token files is not known, only ", header::version}),
               4);
  const std::uint64_t count = number(2);
  const std::uint64_t present = size - llmc_header_bytes;
  if (count * sizeof(T) != present)
    throw fail(text({"the llm.c header says ", count, " tokens, which are ", count * sizeof(T),
                     " bytes, but ", present, " follow it; copy the file again if it was cut"}),
               8);
  return {llmc_header_bytes, count};
}

/// The tokens of a file without a header, as nanoGPT writes them; `head` is its beginning.
template <class T>
[[nodiscard]] token_range parse_raw(bytes_view head, std::uint64_t size, const std::string& path) {
  if (head.size() >= 8) {
    const auto magic = little_endian<std::uint32_t>(head, 0), version = little_endian<std::uint32_t>(head, 4);
    if ((magic == 20240520 && version == 1) || (magic == 20240801 && version == 7))
      throw error(errc::format,
                  "the file begins with the header of an llm.c file, which is no tokens; read it "
                  "with llmc_tokens")
          .in_file(path)
          .at_offset(0);
    if (text_of(head).starts_with("MMIDIDX"))
      throw error(errc::format,
                  "this is the index of a Megatron dataset, not its tokens; read both with megatron_tokens")
          .in_file(path)
          .at_offset(0);
  }
  if (size % sizeof(T) != 0)
    throw error(errc::format, {"the file has ", size, " bytes, which is no whole number of ", sizeof(T),
                               "-byte tokens: it was cut, or its tokens have another width"})
        .in_file(path)
        .at_offset(size - size % sizeof(T));
  return {0, size / sizeof(T)};
}

/// The index of a Megatron dataset, checked as a whole.
/// Source: Megatron-LM, megatron/core/datasets/indexed_dataset.py.
class megatron_index {
 public:
  /// `bytes` is the whole index, which must outlive this.
  megatron_index(bytes_view bytes, const std::string& path) : bytes_(bytes), path_(&path) {
    if (bytes.size() < head || text_of(bytes.first(9)) != std::string_view("MMIDIDX\0\0", 9))
      throw fail("this is not the index of a Megatron dataset: it does not begin with MMIDIDX", 0);
    const auto version = little_endian<std::uint64_t>(bytes, 9);
    if (version != 1)
      throw fail(text({"version ", version, " of Megatron's indexes is not known, only 1"}), 9);
    code_ = std::to_integer<unsigned>(bytes[17]);
    sequences_ = little_endian<std::uint64_t>(bytes, 18);
    bounds_ = little_endian<std::uint64_t>(bytes, 26);
    const std::uint64_t room = bytes.size() - head;
    // divisions first: products of lengths that lie could wrap around
    const bool fits = sequences_ <= room / 12 && bounds_ <= (room - 12 * sequences_) / 8;
    const std::uint64_t rest = fits ? room - 12 * sequences_ - 8 * bounds_ : 0;
    if (!fits || (rest != 0 && rest != sequences_))  // multimodal datasets have a byte more per sequence
      throw fail(text({"the index says ", sequences_, " sequences and ", bounds_,
                       " bounds of documents, which does not fit its size of ", bytes.size(),
                       " bytes; copy it again if it was cut"}),
                 18);
  }

  [[nodiscard]] std::uint64_t documents() const noexcept { return bounds_ == 0 ? 0 : bounds_ - 1; }

  /// Compares the index with the type asked for and the size of the file of tokens, and calls
  /// `document(first token, tokens)` for each document.
  template <class T, class Document>
  [[nodiscard]] token_range read(std::uint64_t tokens_size, const std::string& tokens_path,
                                 Document&& document) const {
    if (!accepts<T>())
      throw fail(text({"the Megatron dataset holds tokens of type ", type_name(code_),
                       ", and another type was asked for"}),
                 17);
    if (bounds_ == 0 || bound(0) != 0 || bound(bounds_ - 1) != sequences_)
      throw fail(text({"the bounds of documents do not go from 0 to the number of sequences, ", sequences_}),
                 bounds_at());
    std::uint64_t tokens = 0, begin = 0, next = 1;
    const auto close = [&](std::uint64_t sequence) {
      for (; next < bounds_ && bound(next) == sequence; ++next) {
        document(begin, tokens - begin);
        begin = tokens;
      }
    };
    close(0);
    for (std::uint64_t i = 0; i < sequences_; ++i) {
      const auto length = little_endian<std::uint32_t>(bytes_, at(head + 4 * i));
      const auto offset = little_endian<std::uint64_t>(bytes_, at(head + 4 * sequences_ + 8 * i));
      if (length > 0x7fffffffu || offset != tokens * sizeof(T))
        throw fail(text({"sequence ", i, " does not begin where the one before it ends"}),
                   head + 4 * sequences_ + 8 * i);
      tokens += length;
      close(i + 1);
    }
    if (next != bounds_) throw fail("the bounds of documents do not ascend", bounds_at() + 8 * next);
    if (tokens * sizeof(T) != tokens_size)
      throw error(errc::format, {"the index says ", tokens, " tokens, which are ", tokens * sizeof(T),
                                 " bytes, but the file has ", tokens_size, "; copy both again"})
          .in_file(tokens_path)
          .at_offset(std::min(tokens * sizeof(T), tokens_size));
    return {0, tokens};
  }
  [[nodiscard]] std::uint64_t hash() const noexcept { return hash_bytes(0x4d4d4944, bytes_); }

 private:
  static constexpr std::size_t head = 34;

  static std::size_t at(std::uint64_t place) noexcept { return static_cast<std::size_t>(place); }
  [[nodiscard]] error fail(std::string what, std::uint64_t offset) const {
    return error(errc::format, std::move(what)).in_file(*path_).at_offset(offset);
  }
  [[nodiscard]] std::uint64_t bounds_at() const noexcept { return head + 12 * sequences_; }
  [[nodiscard]] std::uint64_t bound(std::uint64_t i) const noexcept {
    return little_endian<std::uint64_t>(bytes_, at(bounds_at() + 8 * i));
  }
  static std::string_view type_name(unsigned code) noexcept {
    constexpr std::string_view names[] = {"uint8", "int8",    "int16",   "int32",
                                          "int64", "float64", "float32", "uint16"};
    return code >= 1 && code <= 8 ? names[code - 1] : "unknown";
  }
  /// Tokens are never negative: an unsigned type will do for the signed one of its width, not the other way.
  template <class T>
  [[nodiscard]] bool accepts() const noexcept {
    switch (code_) {
      case 1:
        return std::same_as<T, std::uint8_t>;
      case 2:
        return sizeof(T) == 1;
      case 3:
        return sizeof(T) == 2;
      case 4:
        return sizeof(T) == 4;
      case 5:
        return sizeof(T) == 8;
      case 8:
        return std::same_as<T, std::uint16_t>;
      default:
        return false;
    }
  }

  bytes_view bytes_;
  const std::string* path_;
  unsigned code_ = 0;
  std::uint64_t sequences_ = 0;
  std::uint64_t bounds_ = 0;
};

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/source/tokens.hpp

namespace penstock::inline v0_1 {

/// Numbers that can be tokens.
template <class T>
concept token_value =
    std::same_as<T, std::uint8_t> || std::same_as<T, std::uint16_t> || std::same_as<T, std::uint32_t> ||
    std::same_as<T, std::int16_t> || std::same_as<T, std::int32_t> || std::same_as<T, std::int64_t>;

/// Windows of a length that the type knows: `Length` tokens, and `Targets` more, so that the targets are the
/// inputs moved by one. A batch of them is written in place from the first one on.
template <std::uint64_t Length, std::uint64_t Targets = 1>
struct token_window {
  static_assert(Length > 0 && Length + Targets < (std::uint64_t{1} << 40),
                "penstock: token_window<Length, Targets> needs windows of at least one token");
  static constexpr std::uint64_t length = Length;
  static constexpr std::uint64_t targets = Targets;
  /// From where one window begins to where the next one does; 0 is `length`.
  std::uint64_t stride = 0;
  /// Whether a window must lie in one document, for files whose index knows them.
  bool within_documents = false;
};

/// Windows of a length that is known at run time.
struct token_windows {
  std::uint64_t length = 1024;
  std::uint64_t targets = 1;
  std::uint64_t stride = 0;
  bool within_documents = false;
};

namespace detail {

template <class W>
inline constexpr bool is_token_window = std::same_as<W, token_windows>;
template <std::uint64_t Length, std::uint64_t Targets>
inline constexpr bool is_token_window<token_window<Length, Targets>> = true;

template <class W>
struct token_shape {
  using type = given_shape;
  static type of(const W& w) noexcept { return {extents(w.length + w.targets)}; }
};
template <std::uint64_t Length, std::uint64_t Targets>
struct token_shape<token_window<Length, Targets>> {
  using type = known_shape<Length + Targets>;
  static type of(const token_window<Length, Targets>&) noexcept { return {}; }
};

/// How many windows of `span` tokens, `stride` apart, lie in `tokens`.
[[nodiscard]] constexpr std::uint64_t windows_in(std::uint64_t tokens, std::uint64_t span,
                                                 std::uint64_t stride) noexcept {
  return tokens < span ? 0 : (tokens - span) / stride + 1;
}

/// The files of a dataset of tokens, and where their windows are.
template <class Window, class Storage>
struct token_files : known_files<Storage> {
  token_files(Storage given, Window wanted, std::string_view name)
      : known_files<Storage>(std::move(given)), window(wanted), format(name) {
    constexpr std::uint64_t most = std::uint64_t{1} << 40;
    if (window.stride == 0) window.stride = window.length;
    if (window.length == 0 || window.length > most || window.targets > most)
      throw error(errc::argument, {format, "_tokens: windows need a length of at least one token"});
    span = window.length + window.targets;
  }

  Window window;
  std::string format;
  std::uint64_t span = 0;
  std::uint64_t tokens = 0;
  std::vector<std::uint64_t> begins;  // by shard: where the tokens begin, in bytes
  // only where windows keep to documents, and for those that have any: the number of the first one, and the
  // token in the file where the document begins
  std::vector<std::uint64_t> first_windows;
  std::vector<std::uint64_t> first_tokens;

  [[nodiscard]] std::uint64_t windows(std::uint64_t count) const noexcept {
    return windows_in(count, span, window.stride);
  }

  /// `parse(session, object, signature, documents)` gives a file's `token_range`, and calls
  /// `documents(first token, tokens)` where there is an index and windows keep to them.
  template <std::size_t Width, class Parse>
  void read(const std::vector<object_id>& chosen, Parse&& parse) {
    auto session = this->where.connect();
    std::vector<manifest::shard> entries;
    std::uint64_t all = 0, longest = 0;
    for (const object_id object : chosen) {
      const object_signature signature = session.signature(object);
      const std::uint64_t before = all;
      const auto [range, index] =
          parse(session, object, signature.size, [&](std::uint64_t first, std::uint64_t count) {
            longest = std::max(longest, count);
            if (!window.within_documents || windows(count) == 0) return;
            first_windows.push_back(all);
            first_tokens.push_back(first);
            all += windows(count);
          });
      if (!window.within_documents) {
        longest = std::max(longest, range.count);
        all += windows(range.count);
      }
      const std::uint64_t content = hash_of_file(session, object, signature.size) ^ index;
      entries.push_back({this->where.names()[object], signature.size, all - before, range.count * Width,
                         fingerprint{}.add(content, span, window.stride, window.within_documents).value()});
      this->objects.push_back(object);
      this->signatures.push_back(signature);
      begins.push_back(range.begin);
      tokens += range.count;
    }
    if (all == 0)
      throw error(errc::argument, {format, "_tokens: no ", window.within_documents ? "document" : "file",
                                   " has the ", span, " tokens of a window; the longest has ", longest})
          .in_file(chosen.empty() ? "" : this->where.names()[chosen.front()]);
    first_windows.push_back(all);
    this->shards = manifest(std::move(entries));
  }
};

}  // namespace detail

/// The source that `raw_tokens`, `llmc_tokens` and `megatron_tokens` make: windows of the tokens of files.
template <token_value T, class Window, storage Storage>
class token_source {
  static_assert(detail::is_token_window<Window>,
                "penstock: tokens need token_window<1024>{} or token_windows{.length = 1024}");

  using files = detail::token_files<Window, Storage>;
  using session_type = typename Storage::session;
  using shape = detail::token_shape<Window>;

 public:
  using penstock_part = source_tag;
  using element = detail::stored_array<T, typename shape::type, session_type>;
  static constexpr std::string_view source_name = "tokens";

  class reader {
   public:
    struct worker {
      buffer scratch;
      std::size_t document = 0;
    };
    explicit reader(std::shared_ptr<const files> known) : known_(std::move(known)), open_(known_) {}

    template <class Sink>
    void evaluate(position p, worker& w, Sink&& sink) const {
      const manifest::place place = open_.locate(p.index);
      const std::uint64_t token = first_token(p.index, place, w.document);
      const std::uint64_t offset = known_->begins[place.shard] + token * sizeof(T);
      try {
        sink(element(shape::of(known_->window), open_.session(place.shard), known_->objects[place.shard],
                     offset, w.scratch, std::endian::native != std::endian::little));
        open_.confirm(place.shard);
      } catch (error& e) {
        open_.confirm(place.shard);
        e.in_file(known_->path(place.shard)).at_offset(offset);
        throw;
      }
    }
    /// The file and the number of the window's first token in it: "train.bin:1024".
    [[nodiscard]] std::string key(std::uint64_t index) const {
      const manifest::place place = open_.locate(index);
      std::size_t document = 0;
      return detail::text({known_->path(place.shard), ":", first_token(index, place, document)});
    }
    void will_need(std::uint64_t index) const noexcept {
      if (index >= known_->shards.samples()) return;
      const manifest::place place = known_->shards.locate(index);
      std::size_t document = 0;
      open_.will_need(place.shard,
                      known_->begins[place.shard] + first_token(index, place, document) * sizeof(T),
                      known_->span * sizeof(T));
    }
    [[nodiscard]] std::uint64_t bytes_per_sample() const noexcept { return known_->span * sizeof(T); }

   private:
    // In the file. `document` is the one that was found last: samples often follow each other.
    [[nodiscard]] std::uint64_t first_token(std::uint64_t index, const manifest::place& place,
                                            std::size_t& document) const noexcept {
      if (!known_->window.within_documents) return place.sample * known_->window.stride;
      const auto& firsts = known_->first_windows;
      if (index < firsts[document] || index >= firsts[document + 1])
        document =
            static_cast<std::size_t>(std::upper_bound(firsts.begin(), firsts.end(), index) - firsts.begin()) -
            1;
      return known_->first_tokens[document] + (index - firsts[document]) * known_->window.stride;
    }

    std::shared_ptr<const files> known_;
    detail::open_files<Storage> open_;
  };

  explicit token_source(std::shared_ptr<const files> known) noexcept : known_(std::move(known)) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return known_->shards.samples(); }
  [[nodiscard]] std::shared_ptr<const std::vector<std::uint64_t>> starts() const noexcept {
    return known_->shards.starts();
  }
  [[nodiscard]] const penstock::manifest& manifest() const noexcept { return known_->shards; }
  /// The tokens of all files, whether a window holds them or not.
  [[nodiscard]] std::uint64_t tokens() const noexcept { return known_->tokens; }
  /// Of the windows, and of each file's name, size and first and last 4 KiB, and of Megatron's indexes whole.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept {
    return mix64(known_->shards.fingerprint() ^ known_->span);
  }
  [[nodiscard]] std::string describe() const {
    return detail::text({known_->format, "_tokens(", known_->objects.size(), " files, ", tokens(),
                         " tokens): ", size(), " windows of ", known_->window.length, " + ",
                         known_->window.targets, " tokens, ", known_->window.stride, " apart",
                         known_->window.within_documents ? ", within documents" : ""});
  }
  [[nodiscard]] reader open() const { return reader(known_); }

 private:
  std::shared_ptr<const files> known_;
};

namespace detail {

template <class T, class Window, class Storage, class Parse>
[[nodiscard]] token_source<T, Window, Storage> tokens_of_plain_files(Storage where, Window window,
                                                                     std::string_view format,
                                                                     std::uint64_t head_bytes,
                                                                     Parse&& parse) {
  const std::shared_ptr<token_files<Window, Storage>> known(
      new token_files<Window, Storage>(std::move(where), window, format));
  if (window.within_documents)
    throw error(errc::argument, {known->format,
                                 "_tokens: these files do not say where documents end, so that windows "
                                 "cannot keep to them; Megatron's index does"});
  std::vector<object_id> objects(known->where.names().size());
  for (std::size_t i = 0; i < objects.size(); ++i) objects[i] = static_cast<object_id>(i);
  buffer room;
  known->template read<sizeof(T)>(
      objects, [&](auto& session, object_id object, std::uint64_t size, const auto&) {
        const bytes_view head = range_of(session, object, 0, std::min(size, head_bytes), room);
        return std::pair<token_range, std::uint64_t>(parse(head, size, known->where.names()[object]), 0);
      });
  return token_source<T, Window, Storage>(known);
}

/// The `.bin` and `.idx` of a name with either ending, or with none.
template <class = void>
[[nodiscard]] std::string megatron_prefix(std::string_view name) {
  if (name.ends_with(".bin") || name.ends_with(".idx")) name.remove_suffix(4);
  return std::string(name);
}

}  // namespace detail

/// Token files without a header: nanoGPT's `train.bin` and its like.
///
///     auto text = raw_tokens<std::uint16_t>("train.bin", token_window<1024>{}) | shuffle(seed) | batch(32);
///     auto some = raw_tokens<std::uint32_t>("part-{00..63}.bin", token_windows{.length = 2048, .stride = 512});
///
/// In: a pattern with braces, which is `mapped_file`, or any storage; all its files are one dataset. Out: an
/// array expression of `length + targets` tokens in one row, a view of the mapping until it is written to its
/// slot. `token_window<...>` gives rows of a shape that the type knows, `token_windows` of one known at run
/// time. The windows of a file begin every `stride` tokens and lie in the file whole; tokens behind the last
/// whole one are in none.
/// Kind: a source; indexed, deterministic, resumable, elastic, lockstep. Where a window lies is arithmetic:
/// there is no table of windows, and memory is 60 bytes or so for each file.
/// Cost per sample: a binary search among the files and one copy of the row; with a storage that has no views
/// one read; no allocation. Making the plan reads the ends of each file.
/// Threads: any number at once.
/// Throws `errc::format`, with file and offset, for a file that is no whole number of tokens or has a header;
/// `errc::argument` when no file has as many tokens as a window; `errc::io`, also for a file that was changed
/// after the plan was made.
/// Source: nanoGPT, data/openwebtext/prepare.py.
template <token_value T, storage Storage, class Window>
[[nodiscard]] token_source<T, Window, Storage> raw_tokens(Storage where, Window window) {
  return detail::tokens_of_plain_files<T>(std::move(where), window, "raw", 8,
                                          [](bytes_view head, std::uint64_t size, const std::string& path) {
                                            return detail::parse_raw<T>(head, size, path);
                                          });
}
template <token_value T, class Window>
[[nodiscard]] token_source<T, Window, mapped_file> raw_tokens(std::string_view pattern, Window window) {
  return raw_tokens<T>(mapped_file(pattern), window);
}

/// The same for the files of llm.c, which have a header of 1024 bytes: GPT-2's of `std::uint16_t` and Llama
/// 3's of `std::uint32_t`.
///
/// Throws `errc::format` also for another magic number or version, and where the number of tokens in the
/// header is not what follows it.
/// Source: llm.c, dev/data/data_common.py and llmc/dataloader.h.
///
///     auto web = llmc_tokens<std::uint16_t>("fineweb_train_{000001..000103}.bin", token_window<1024>{});
template <token_value T, storage Storage, class Window>
[[nodiscard]] token_source<T, Window, Storage> llmc_tokens(Storage where, Window window) {
  return detail::tokens_of_plain_files<T>(std::move(where), window, "llmc", detail::llmc_header_bytes,
                                          [](bytes_view head, std::uint64_t size, const std::string& path) {
                                            return detail::parse_llmc<T>(head, size, path);
                                          });
}
template <token_value T, class Window>
[[nodiscard]] token_source<T, Window, mapped_file> llmc_tokens(std::string_view pattern, Window window) {
  return llmc_tokens<T>(mapped_file(pattern), window);
}

/// The same for Megatron's datasets, pairs of `PREFIX.bin` and `PREFIX.idx`. The pattern gives the prefixes,
/// with one of the endings or without; a storage must name both files of each.
///
/// With `within_documents` no window crosses the end of a document, and documents shorter than a window are
/// in none; that takes 16 bytes for each document that has a window, and a binary search among them. Without
/// it documents follow each other as they lie in the file. Making the plan reads each index once.
/// Throws `errc::format` also for an index with another magic, version or type of tokens, one that does not
/// fit its own size or that of its tokens, and one whose sequences do not follow each other;
/// `errc::argument` for a storage where one of the two is not named.
/// Source: Megatron-LM, megatron/core/datasets/indexed_dataset.py.
///
///     auto text = megatron_tokens<std::uint16_t>("openwebtext_text_document",
///                                                token_window<1024>{.within_documents = true});
template <token_value T, storage Storage, class Window>
[[nodiscard]] token_source<T, Window, Storage> megatron_tokens(Storage where, Window window) {
  const std::shared_ptr<detail::token_files<Window, Storage>> known(
      new detail::token_files<Window, Storage>(std::move(where), window, "megatron"));
  const auto names = known->where.names();
  std::unordered_map<std::string, object_id> indexes;
  std::vector<object_id> objects;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].ends_with(".idx"))
      indexes.emplace(detail::megatron_prefix(names[i]), static_cast<object_id>(i));
    else
      objects.push_back(static_cast<object_id>(i));
  }
  buffer room;
  known->template read<sizeof(T)>(objects, [&](auto& session, object_id object, std::uint64_t size,
                                               const auto& document) {
    const auto found = indexes.find(detail::megatron_prefix(names[object]));
    if (found == indexes.end())
      throw error(errc::argument, "megatron_tokens: the storage names no .idx for this file")
          .in_file(names[object]);
    const bytes_view bytes = detail::range_of(session, found->second, 0, session.size(found->second), room);
    const detail::megatron_index index(bytes, names[found->second]);
    return std::pair(index.template read<T>(size, names[object], document), index.hash());
  });
  return token_source<T, Window, Storage>(known);
}
template <token_value T, class Window>
[[nodiscard]] token_source<T, Window, mapped_file> megatron_tokens(std::string_view pattern, Window window) {
  std::vector<std::string> names;
  for (const std::string& name : expand_braces(pattern)) {
    const std::string prefix = detail::megatron_prefix(name);
    names.push_back(prefix + ".bin");
    names.push_back(prefix + ".idx");
  }
  return megatron_tokens<T>(mapped_file(std::move(names)), window);
}

}  // namespace penstock::inline v0_1

// ---- penstock/storage/detail/descriptor_cache.hpp

namespace penstock::inline v0_1 {
namespace detail::files {

/// A bounded number of open descriptors for any number of files; the least recently used (by the clock rule)
/// are closed.
///
/// One word per file holds the descriptor and the number of reads in flight, so that a read of an open file
/// takes two uncontended atomic operations and no lock. More files than the limit are open only while that
/// many threads read at once.
template <class = void>
class basic_descriptor_cache {
  static constexpr std::uint64_t number_mask = 0x7fffffffu;
  static constexpr std::uint64_t open_bit = std::uint64_t{1} << 31;
  static constexpr std::uint64_t recent_bit = std::uint64_t{1} << 32;
  static constexpr std::uint64_t one_use = std::uint64_t{1} << 33;

 public:
  /// A descriptor that is not closed while this lives.
  class lease {
   public:
    lease(std::atomic<std::uint64_t>& word, int number) noexcept : word_(word), number_(number) {}
    lease(const lease&) = delete;
    lease& operator=(const lease&) = delete;
    ~lease() { word_.fetch_sub(one_use, std::memory_order_release); }
    [[nodiscard]] int get() const noexcept { return number_; }

   private:
    std::atomic<std::uint64_t>& word_;
    int number_;
  };

  basic_descriptor_cache(std::span<const std::string> paths, std::size_t limit)
      : paths_(paths),
        limit_(limit == 0 ? default_limit() : limit),
        words_(std::make_unique<std::atomic<std::uint64_t>[]>(paths.size())),
        seen_(std::make_unique<object_signature[]>(paths.size())) {}
  basic_descriptor_cache(const basic_descriptor_cache&) = delete;
  basic_descriptor_cache& operator=(const basic_descriptor_cache&) = delete;
  ~basic_descriptor_cache() {
    for (const object_id id : open_) ::close(number_of(words_[id].load(std::memory_order_relaxed)));
  }

  [[nodiscard]] lease use(object_id id) {
    if (id >= paths_.size()) throw error(errc::argument, {"there is no object ", id});
    std::atomic<std::uint64_t>& word = words_[id];
    const std::uint64_t before = word.fetch_add(one_use, std::memory_order_acquire);
    if ((before & open_bit) != 0) [[likely]] {
      if ((before & recent_bit) == 0) word.fetch_or(recent_bit, std::memory_order_relaxed);
      return {word, number_of(before)};
    }
    try {
      return {word, open_slowly(id)};
    } catch (...) {
      word.fetch_sub(one_use, std::memory_order_relaxed);
      throw;
    }
  }

  [[nodiscard]] std::size_t limit() const noexcept { return limit_; }
  [[nodiscard]] std::size_t open_now() {
    const std::scoped_lock lock(mutex_);
    return open_.size();
  }

 private:
  static int number_of(std::uint64_t word) noexcept { return static_cast<int>(word & number_mask); }

  static std::size_t default_limit() noexcept {
    rlimit allowed{};
    if (::getrlimit(RLIMIT_NOFILE, &allowed) != 0 || allowed.rlim_cur == RLIM_INFINITY) return 512;
    return std::clamp<std::size_t>(static_cast<std::size_t>(allowed.rlim_cur / 2), 1, 512);
  }

  // The caller holds a use of the file's word: nobody else can close what is published here.
  int open_slowly(object_id id) {
    const std::string& path = paths_[id];
    descriptor opened(open_quietly(path));
    if (opened.get() < 0 && (errno == EMFILE || errno == ENFILE)) {
      const int why = errno;
      {
        const std::scoped_lock lock(mutex_);
        close_until(open_.size() / 2);
      }
      opened = descriptor(open_quietly(path));
      if (opened.get() < 0 && (errno == EMFILE || errno == ENFILE)) throw failure("open", path, why);
    }
    if (opened.get() < 0) throw failure("open", path, errno);
    const object_signature now = signature_of(opened.get(), path);

    const std::scoped_lock lock(mutex_);
    const std::uint64_t word = words_[id].load(std::memory_order_acquire);
    if ((word & open_bit) != 0) return number_of(word);  // another thread was faster
    if (seen_[id] != object_signature{} && seen_[id] != now) {
      throw error(errc::io, {"the file was changed while it was in use: it had ", seen_[id].size,
                             " bytes and has ", now.size, " now; open the dataset again"})
          .in_file(path);
    }
    seen_[id] = now;
    open_.push_back(id);
    const int number = opened.release();
    words_[id].fetch_or(open_bit | recent_bit | static_cast<std::uint64_t>(number),
                        std::memory_order_acq_rel);
    close_until(limit_);
    return number;
  }

  // The clock rule: a file used since the hand last passed gets another round. Two rounds find all that can
  // be closed.
  void close_until(std::size_t wanted) {
    for (std::size_t looked = 0; open_.size() > wanted && looked < 2 * open_.size() + 2; ++looked) {
      if (hand_ >= open_.size()) hand_ = 0;
      std::atomic<std::uint64_t>& word = words_[open_[hand_]];
      std::uint64_t seen = word.load(std::memory_order_relaxed);
      if (seen >= one_use) {
        ++hand_;
      } else if ((seen & recent_bit) != 0) {
        word.fetch_and(~recent_bit, std::memory_order_relaxed);
        ++hand_;
      } else if (word.compare_exchange_strong(seen, 0, std::memory_order_acq_rel)) {
        ::close(number_of(seen));
        open_[hand_] = open_.back();
        open_.pop_back();
      }
    }
  }

  std::span<const std::string> paths_;
  std::size_t limit_;
  std::unique_ptr<std::atomic<std::uint64_t>[]> words_;
  std::unique_ptr<object_signature[]> seen_;
  std::mutex mutex_;
  std::vector<object_id> open_;
  std::size_t hand_ = 0;
};
using descriptor_cache = basic_descriptor_cache<>;

}  // namespace detail::files
}  // namespace penstock::inline v0_1

// ---- penstock/storage/file.hpp

namespace penstock::inline v0_1 {

/// Choices of `file`.
struct file_options {
  /// How many descriptors a session keeps open; 0 is the smaller of 512 and half of what `ulimit -n` allows.
  std::size_t descriptors = 0;
};

/// Storage of local files, read with pread: one path, a pattern with braces, or a list of paths.
///
///     file("train-{0000..0127}.tar")      file({"a.tar", "b.tar"})
///
/// A pattern is expanded as by `expand_braces`; the names of a list are taken as they are. Nothing is opened
/// before `connect`.
/// A session opens a file at its first use and keeps a bounded number of descriptors, so that 10,000 shards
/// work under `ulimit -n 1024`. A read is one system call and costs about 0.4 us and the copy out of the page
/// cache.
/// Errors: errc::io, with the file, the system's reason and what to do, for what cannot be opened or read and
/// for a file that was changed while it was in use; errc::format for a range beyond the end.
/// Threads: a session may be used by any number of threads; a read of an open file takes no lock.
template <class = void>
class basic_file {
  struct shared_names {
    std::vector<std::string> names;
    std::string pattern;
  };
  struct state {
    state(std::shared_ptr<const shared_names> given, std::size_t descriptors)
        : names(std::move(given)), open_files(names->names, descriptors) {}
    std::shared_ptr<const shared_names> names;
    detail::files::descriptor_cache open_files;
  };

 public:
  static constexpr bool names_are_paths = true;

  /// What a run reads through; see `storage_session`.
  class session {
   public:
    static constexpr bool views = false;

    [[nodiscard]] std::uint64_t size(object_id id) const { return signature(id).size; }
    [[nodiscard]] object_signature signature(object_id id) const {
      const auto opened = state_->open_files.use(id);
      return detail::files::signature_of(opened.get(), path(id));
    }

    void read(object_id id, std::uint64_t offset, mutable_bytes into) const {
      const auto opened = state_->open_files.use(id);
      check_offset(id, offset, into.size());
      std::size_t done = 0;
      while (done < into.size()) {
        const ssize_t got =
            ::pread(opened.get(), into.data() + done, std::min(into.size() - done, most_at_once),
                    static_cast<off_t>(offset + done));
        done += advance(id, got, offset, into.size());
      }
    }

    /// Reads in the order given, in this thread; requests that continue each other are one system call.
    template <class Done>
    void read_many(std::span<const read_request> requests, Done&& done) const {
      for (std::size_t first = 0; first < requests.size();) {
        std::size_t last = first + 1;
        std::uint64_t end = requests[first].offset + requests[first].into.size();
        while (last < requests.size() && last - first < most_parts &&
               requests[last].object == requests[first].object && requests[last].offset == end) {
          end += requests[last++].into.size();
        }
        if (last - first == 1 || !read_together(requests.subspan(first, last - first))) {
          for (std::size_t i = first; i < last; ++i) read_alone(requests[i], i, done);
        } else {
          for (std::size_t i = first; i < last; ++i) done(i, std::exception_ptr{});
        }
        first = last;
      }
    }

    void will_need(object_id id, std::uint64_t offset, std::uint64_t size) const noexcept {
      try {
        const auto opened = state_->open_files.use(id);
        ::posix_fadvise(opened.get(), static_cast<off_t>(offset), static_cast<off_t>(size),
                        POSIX_FADV_WILLNEED);
      } catch (...) {  // the read itself will say what is wrong
      }
    }

    /// How many descriptors are open at the moment, and how many may be.
    [[nodiscard]] std::size_t descriptors() const { return state_->open_files.open_now(); }
    [[nodiscard]] std::size_t descriptor_limit() const noexcept { return state_->open_files.limit(); }

   private:
    friend basic_file;
    static constexpr std::size_t most_at_once = std::size_t{1} << 30;
    static constexpr std::size_t most_parts = 64;

    explicit session(std::shared_ptr<state> made) : state_(std::move(made)) {}

    [[nodiscard]] const std::string& path(object_id id) const { return state_->names->names[id]; }

    void check_offset(object_id id, std::uint64_t offset, std::uint64_t size) const {
      constexpr auto furthest = static_cast<std::uint64_t>(std::numeric_limits<off_t>::max());
      detail::files::check_range(offset, size, furthest, path(id));
    }

    // What one system call brought; throws at the end of the file and for failures other than EINTR.
    std::size_t advance(object_id id, ssize_t got, std::uint64_t offset, std::size_t wanted) const {
      if (got > 0) return static_cast<std::size_t>(got);
      if (got < 0 && errno == EINTR) return 0;
      if (got < 0) throw detail::files::failure("read", path(id), errno).at_offset(offset);
      detail::files::check_range(offset, wanted, size(id), path(id));
      throw error(errc::io, "the file was cut off while it was read").in_file(path(id)).at_offset(offset);
    }

    // False where it did not work out; the requests are then read one by one, so that each gets its own
    // error.
    [[nodiscard]] bool read_together(std::span<const read_request> requests) const {
      std::array<iovec, most_parts> parts;
      std::uint64_t size = 0;
      for (std::size_t i = 0; i < requests.size(); ++i) {
        parts[i] = {requests[i].into.data(), requests[i].into.size()};
        size += requests[i].into.size();
      }
      if (size > most_at_once) return false;
      try {
        const auto opened = state_->open_files.use(requests.front().object);
        check_offset(requests.front().object, requests.front().offset, size);
        const ssize_t got = ::preadv(opened.get(), parts.data(), static_cast<int>(requests.size()),
                                     static_cast<off_t>(requests.front().offset));
        return got >= 0 && static_cast<std::uint64_t>(got) == size;
      } catch (...) {
        return false;
      }
    }

    template <class Done>
    void read_alone(const read_request& request, std::size_t place, Done& done) const {
      std::exception_ptr failed;
      try {
        read(request.object, request.offset, request.into);
      } catch (...) {
        failed = std::current_exception();
      }
      done(place, failed);
    }

    std::shared_ptr<state> state_;
  };

  explicit basic_file(std::string_view pattern, file_options options = {})
      : names_(new shared_names{expand_braces(pattern), std::string(pattern)}), options_(options) {}
  explicit basic_file(std::vector<std::string> paths, file_options options = {})
      : names_(new shared_names{std::move(paths), {}}), options_(options) {}
  basic_file(std::initializer_list<const char*> paths, file_options options = {})
      : basic_file(std::vector<std::string>(paths.begin(), paths.end()), options) {}

  [[nodiscard]] std::span<const std::string> names() const noexcept { return names_->names; }
  [[nodiscard]] session connect() const {
    return session(std::shared_ptr<state>(new state(names_, options_.descriptors)));
  }
  [[nodiscard]] std::string describe() const {
    return detail::text(
        {"file(", (names_->pattern.empty() ? std::to_string(names().size()) + " paths" : names_->pattern),
         ")"});
  }

 private:
  std::shared_ptr<const shared_names> names_;
  file_options options_;
};
/// The form to use: see `basic_file`.
class file : public basic_file<> {
 public:
  using basic_file<>::basic_file;
};

static_assert(storage<file>, "file is a storage");

}  // namespace penstock::inline v0_1

// ---- penstock/source/detail/shard_names.hpp

namespace penstock::inline v0_1 {
namespace detail::tar {

template <class T>
concept pattern_text =
    std::is_convertible_v<const T&, std::string_view> || std::is_convertible_v<const T&, std::string>;

template <pattern_text Text>
[[nodiscard]] std::string to_pattern(const Text& text) {
  if constexpr (std::convertible_to<const Text&, std::string_view>) {
    return std::string(static_cast<std::string_view>(text));
  } else {
    return text;
  }
}

/// Files from a pattern as WebDataset has it: `::` stands between patterns.
template <class = void>
[[nodiscard]] file files_of(const std::string& pattern) {
  if (pattern.find("::") == std::string::npos) return file(pattern);
  std::vector<std::string> names;
  for (std::size_t begin = 0; begin <= pattern.size();) {
    const std::size_t end = std::min(pattern.find("::", begin), pattern.size());
    const file some(std::string_view(pattern).substr(begin, end - begin));
    names.insert(names.end(), some.names().begin(), some.names().end());
    begin = end + 2;
  }
  return file(std::move(names));
}

}  // namespace detail::tar

}  // namespace penstock::inline v0_1

// ---- penstock/source/detail/shard_stream.hpp

namespace penstock::inline v0_1 {
namespace detail::tar {

/// What to write to read a shard that is packed in a way that `reader` was not told of.
[[nodiscard]] inline error not_unpacked(std::string_view format, std::string_view reader) {
  return error(packed_format_of(format).format.empty() ? errc::format : errc::argument,
               packed_advice(format, std::string(reader) + "<", ">(...)"));
}

/// The bytes of a file or a pipe, forward only; unpacked where the first of them show that they are packed.
///
/// What a `member_walk` reads from: `get` shows bytes ahead, `reach` goes on, `read` takes bytes. Memory:
/// what was read and what was unpacked, 256 KiB each, up to 1 MiB where a header asks for it.
template <unpacker... Unpack>
class shard_stream {
 public:
  static constexpr bool forward = true;

  /// Whether a path is the standard input, or a file that can be read only once.
  [[nodiscard]] static bool is_pipe(const std::string& path) {
    struct stat status {};
    return path == "-" ||
           (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode));
  }

  /// `used` says of a pipe whether it was read before. A path of "-" is the standard input. `reader` is who
  /// asks, for messages.
  void open(const std::string& path, std::atomic<bool>& used, std::string_view reader = "webdataset_stream") {
    close();
    const bool standard_input = path == "-";
    const bool pipe = is_pipe(path);
    struct stat status {};
    if (!pipe && ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode))
      throw error(errc::io, "this is a folder; name the shards in it");
    if (pipe && used.exchange(true)) {
      throw error(errc::state, (standard_input ? "the standard input" : "a pipe") +
                                   std::string(" can be read once, and was read already; write it to a file "
                                               "to read it again"));
    }
    if (!standard_input) {
      file_ = owned_descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
      if (file_.get() < 0) throw failed("open");
    }
    number_ = standard_input ? STDIN_FILENO : file_.get();
    if (raw_.size() == 0) raw_.resize_for_overwrite(piece);
    while (raw_end_ < sniffed && !raw_ended_) fill();
    const bytes_view head = raw_.view().first(raw_end_);
    const std::string_view format = compression_of(head);
    // a member's name may look like one
    if (!format.empty() && !(head.size() >= block_size && checksum_matches(head.first(block_size))))
      begin(format, reader);
    drained_ = packed_ == plain && !pipe;
  }

  void close() noexcept {
    file_ = {};
    packed_ = plain;
    raw_at_ = raw_end_ = at_ = end_ = 0;
    offset_ = 0;
    raw_ended_ = whole_ = false;
  }

  /// Shows `count` bytes at `offset`, fewer at the end. Lives until the next call of any member.
  [[nodiscard]] bytes_view get(std::uint64_t offset, std::size_t count) {
    if (reach(offset) < offset) return {};
    if (end_ - at_ < count) {
      reserve(count);
      while (end_ < count) {
        const std::size_t got = make(window_.span().subspan(end_));
        if (got == 0) break;
        end_ += got;
      }
    }
    return window_.view().subspan(at_, std::min(count, end_ - at_));
  }

  /// Goes on to `offset`, and says how far it came.
  [[nodiscard]] std::uint64_t reach(std::uint64_t offset) {
    while (offset_ < offset) {
      if (at_ == end_ && !refill()) break;
      const auto some = static_cast<std::size_t>(std::min<std::uint64_t>(offset - offset_, end_ - at_));
      at_ += some;
      offset_ += some;
    }
    return offset_;
  }

  /// Takes bytes; the number is smaller only at the end.
  [[nodiscard]] std::size_t read(mutable_bytes into) {
    std::size_t done = 0;
    while (done < into.size()) {
      const mutable_bytes rest = into.subspan(done);
      std::size_t some = 0;
      if (at_ == end_ && rest.size() >= piece) {
        some = make(rest);
        if (some == 0) break;
      } else {
        if (at_ == end_ && !refill()) break;
        some = std::min(rest.size(), end_ - at_);
        std::memcpy(rest.data(), window_.data() + at_, some);
        at_ += some;
      }
      done += some;
      offset_ += some;
    }
    return done;
  }

  /// Reads what stands behind the archive: the checksums of packed files, and what another program still
  /// writes to a pipe.
  void drain() {
    if (!drained_) {
      do {
        offset_ += end_ - at_;
      } while (refill());
    }
    close();
  }

  [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }
  /// Whether what was opened is packed.
  [[nodiscard]] bool packed() const noexcept { return packed_ != plain; }

 private:
  static constexpr std::size_t piece = 256_KiB;
  static constexpr std::size_t sniffed = 4_KiB;
  static constexpr std::size_t plain = sizeof...(Unpack);

  [[nodiscard]] error failed(const char* doing) const {
    return error(errc::io,
                 std::string("cannot ") + doing + " the shard: " + std::generic_category().message(errno));
  }

  void begin(std::string_view format, std::string_view reader) {
    std::size_t number = 0;
    const auto try_one = [&]<class U>(typename U::stream& stream, U*) {
      if (packed_ == plain && U::unpacker_format == format) {
        stream.begin();
        packed_ = number;
      }
      ++number;
    };
    std::apply([&](auto&... streams) { (try_one(streams, static_cast<Unpack*>(nullptr)), ...); }, streams_);
    if (packed_ == plain) throw not_unpacked(format, reader);
  }

  /// Reads more of the file; `raw_ended_` where there is nothing more.
  void fill() {
    if (raw_at_ == raw_end_) raw_at_ = raw_end_ = 0;
    const std::size_t got = read_some(raw_.span().subspan(raw_end_));
    raw_end_ += got;
    raw_ended_ = got == 0;
  }
  [[nodiscard]] std::size_t read_some(mutable_bytes into) {
    while (true) {
      const auto got = ::read(number_, into.data(), std::min<std::size_t>(into.size(), 1_GiB));
      if (got >= 0) return static_cast<std::size_t>(got);
      if (errno != EINTR) throw failed("read").at_offset(offset_);
    }
  }

  [[nodiscard]] unpack_step step(bytes_view in, mutable_bytes out) {
    unpack_step done;
    [&]<std::size_t... Is>(std::index_sequence<Is...>) {
      (void)((packed_ == Is && (done = std::get<Is>(streams_).step(in, out, raw_ended_), true)) || ...);
    }(std::index_sequence_for<Unpack...>{});
    return done;
  }

  /// The next bytes of the archive; none at its end.
  [[nodiscard]] std::size_t make(mutable_bytes out) {
    if (packed_ == plain) {
      if (raw_at_ == raw_end_) return raw_ended_ ? 0 : read_some(out);
      const std::size_t some = std::min(out.size(), raw_end_ - raw_at_);
      std::memcpy(out.data(), raw_.data() + raw_at_, some);
      raw_at_ += some;
      return some;
    }
    while (true) {
      if (raw_at_ == raw_end_ && !raw_ended_) fill();
      const bytes_view in = raw_.view().subspan(raw_at_, raw_end_ - raw_at_);
      const unpack_step done = step(in, out);
      raw_at_ += done.taken;
      whole_ = done.whole;
      if (done.made != 0) return done.made;
      if (done.taken != 0 || (in.empty() && !raw_ended_)) continue;
      if (in.empty() && whole_) return 0;
      throw error(errc::format,
                  in.empty() ? "the compressed shard is cut off" : "the compressed shard is damaged");
    }
  }

  [[nodiscard]] bool refill() {
    if (window_.size() == 0) window_.resize_for_overwrite(piece);
    at_ = 0;
    end_ = make(window_.span());
    return end_ != 0;
  }

  /// Moves what is in the window to its front, and makes room for `count` bytes.
  void reserve(std::size_t count) {
    const std::size_t held = end_ - at_;
    if (window_.size() < count || window_.size() == 0) {
      buffer larger(std::max(count, piece));
      if (held != 0) std::memcpy(larger.data(), window_.data() + at_, held);
      window_ = std::move(larger);
    } else if (held != 0) {
      std::memmove(window_.data(), window_.data() + at_, held);
    }
    at_ = 0;
    end_ = held;
  }

  owned_descriptor file_;
  int number_ = -1;
  buffer raw_;  // as it is in the file
  std::size_t raw_at_ = 0, raw_end_ = 0;
  bool raw_ended_ = false, whole_ = false, drained_ = true;
  std::size_t packed_ = plain;  // which of the unpackers
  std::tuple<typename Unpack::stream...> streams_;
  buffer window_;  // as it is in the archive
  std::size_t at_ = 0, end_ = 0;
  std::uint64_t offset_ = 0;  // of window_[at_]
};

}  // namespace detail::tar
}  // namespace penstock::inline v0_1

// ---- penstock/source/unpacked.hpp

namespace penstock::inline v0_1 {

/// Choices of `unpacked`.
struct unpacked_options {
  /// Where copies are kept; empty is beside each packed file. It is made where it is missing.
  std::string folder = {};
  /// The most bytes that one file may have unpacked: what a hostile one can cost of the disk.
  std::uint64_t limit = 16_GiB;
  /// Threads that unpack, each a file; 0 is one for each processor.
  std::size_t threads = 0;
};

namespace detail::tar {

/// The path of a current copy of `packed`, made where there is none; `packed` itself where it is not packed.
template <unpacker... Unpack>
[[nodiscard]] std::string unpacked_path(const std::string& packed, const unpacked_options& options) {
  const auto state_of = [&packed] {
    const auto found = signature_of_file(packed);
    if (found) return *found;
    struct stat status {};
    if (::stat(packed.c_str(), &status) != 0)
      throw error(errc::io, {"cannot open the file: ", std::generic_category().message(errno)});
    throw error(errc::io, "this is not a regular file; pipes are read with webdataset_stream");
  };
  const object_signature before = state_of();
  std::string copy = copy_path(packed, options.folder);
  if (copy_is_current(copy, before)) return copy;

  shard_stream<Unpack...> input;
  std::atomic<bool> unused{false};
  input.open(packed, unused, "unpacked");
  if (!input.packed()) return packed;
  if (const int code = make_folders(folder_of(copy)); code != 0) {
    throw error(errc::io,
                {"cannot make the folder for unpacked copies: ", std::generic_category().message(code),
                 "; name another in unpacked_options::folder"})
        .in_file(folder_of(copy));
  }
  const copy_turn turn(copy);
  if (turn.current(before)) return copy;
  turn.begin();
  output_file output(copy);
  buffer some(1_MiB);
  try {
    while (const std::size_t got = input.read(some.span())) {
      if (got > options.limit - output.size()) {
        throw error(errc::limit, {"the file unpacks to more than the limit of ", options.limit,
                                  " bytes; raise unpacked_options::limit if it is meant to"})
            .at_offset(options.limit);
      }
      output.write(some.view().first(got));
    }
  } catch (error& e) {
    if (e.file().empty()) e.at_offset(input.offset());
    throw;
  }
  if (state_of() != before) throw error(errc::io, "the file was changed while it was unpacked; try again");
  turn.finish({before, output.commit()});
  return copy;
}

}  // namespace detail::tar

/// Unpacked copies of packed files, for sources that reach samples in any order: the paths to give them.
///
///     webdataset(unpacked<unpack_gzip>("train-{0000..0127}.tar.gz"))
///     webdataset(mapped_file(unpacked<unpack_zstd>("train-{0000..0127}.tar.zst", {.folder = "/fast/cache"})))
///
/// In: a pattern (with `::` between patterns) or a list of paths of regular files; the unpackers that may be
/// needed, as template arguments. How a file is packed is seen from its first bytes; its name says nothing.
/// Out: for each its copy, `<file>.penstock-unpacked`, or the file itself where it is not packed. Any source
/// of local files takes the list; the indexes of `webdataset` stand beside the copies.
/// A copy is made once, when this is called. It is used again while size and time of change of the packed
/// file, and its own, are those of its record, `<copy>.record`; else it is made again. It appears by renaming
/// when it is whole, flushed and checked against the packed file's checksums: a process that is killed leaves
/// a temporary file, which the next one removes. Processes and threads that want the same copy wait for the
/// first of them. Copies are removed by whoever has no more use for them; the records, too.
/// Cost: the disk for all of it unpacked; once the time to read, unpack and write it, one file a thread; then
/// two looks at files and a read of 64 bytes for each. Memory: 2.5 MiB a thread, and what the unpackers need.
/// docs/index.md has measured numbers.
/// Throws, with the packed file, errc::io for what cannot be read or written; errc::argument for a file that
/// is packed in a way of which there is no unpacker, with what to write; errc::limit for one that unpacks to
/// more than `limit`; errc::format and errc::checksum for damage, with the offset in the unpacked bytes.
/// Threads: any number may call it.
template <unpacker... Unpack>
[[nodiscard]] std::vector<std::string> unpacked(std::vector<std::string> paths,
                                                const unpacked_options& options = {}) {
  std::vector<std::string> copies(paths.size());
  detail::tar::for_each_in_parallel(paths.size(), options.threads, [&](std::size_t i) {
    try {
      copies[i] = detail::tar::unpacked_path<Unpack...>(paths[i], options);
    } catch (error& e) {
      e.in_file(paths[i]);
      throw;
    }
  });
  return copies;
}
template <unpacker... Unpack>
[[nodiscard]] std::vector<std::string> unpacked(std::initializer_list<const char*> paths,
                                                const unpacked_options& options = {}) {
  return unpacked<Unpack...>(std::vector<std::string>(paths.begin(), paths.end()), options);
}
template <unpacker... Unpack, detail::tar::pattern_text Text>
[[nodiscard]] std::vector<std::string> unpacked(const Text& pattern, const unpacked_options& options = {}) {
  const file found = detail::tar::files_of(detail::tar::to_pattern(pattern));
  return unpacked<Unpack...>(std::vector<std::string>(found.names().begin(), found.names().end()), options);
}

}  // namespace penstock::inline v0_1

// ---- penstock/source/detail/foreign_index.hpp

/// Indexes that other programs wrote beside a shard, held against the shard.
namespace penstock::inline v0_1 {
namespace detail::tar {

/// `train-0.tar` has `train-0.idx`: the name is cut at its first dot, but not at one that begins it.
template <class = void>
[[nodiscard]] std::string dali_path(const std::string& shard) {
  const std::size_t slash = shard.rfind('/');
  const std::size_t from = slash == std::string::npos ? 1 : slash + 2;
  return shard.substr(0, shard.find('.', from)) + ".idx";
}
template <class = void>
[[nodiscard]] std::string energon_path(const std::string& shard) {
  return shard + ".idx";
}

/// What an index says of a member.
struct foreign_member {
  std::string_view suffix;
  std::string_view path;  ///< empty where the index does not say
  std::uint64_t data = 0;
  std::uint64_t size = 0;
  std::uint64_t line = 0;  ///< members of one line are a sample
};

/// What is wrong with an index, as the end of a sentence; how it is called is added further out.
struct disagreement {
  std::string text;
};
[[noreturn]] inline void disagree(std::string text) { throw disagreement{std::move(text)}; }

/// The lines of DALI's index: `EXT OFFSET SIZE NAME` for each member of a sample; without NAME in v1.1.
template <class = void>
class basic_dali_lines {
 public:
  explicit basic_dali_lines(std::string_view text) : rest_(text) {
    const std::string_view first = line();
    named_ = first.starts_with("v1.2 ");
    if (!named_ && !first.starts_with("v1.1 ")) disagree("is not one of version v1.1 or v1.2");
    const std::uint64_t samples = number(first.substr(5));
    while (!rest_.empty()) members_of(line());
    if (samples != line_ - 1)
      disagree("announces " + std::to_string(samples) + " samples and has " + std::to_string(line_ - 1));
  }

  [[nodiscard]] bool named() const noexcept { return named_; }
  [[nodiscard]] const std::vector<foreign_member>& members() const noexcept { return members_; }

 private:
  std::string_view line() {
    const std::size_t end = std::min(rest_.find('\n'), rest_.size());
    const std::string_view found = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    ++line_;
    return found;
  }
  [[nodiscard]] static std::string_view word(std::string_view& text) noexcept {
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r"), text.size()));
    const std::size_t end = std::min(text.find_first_of(" \t\r"), text.size());
    const std::string_view found = text.substr(0, end);
    text.remove_prefix(end);
    return found;
  }
  [[nodiscard]] std::uint64_t number(std::string_view text) const {
    const std::string_view digits = word(text);
    std::uint64_t value = 0;
    const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (problem != std::errc{} || end != digits.data() + digits.size())
      disagree("has '" + std::string(digits.substr(0, 40)) + "' in line " + std::to_string(line_) +
               " where a number should be");
    return value;
  }
  void members_of(std::string_view text) {
    const std::size_t before = members_.size();
    while (true) {
      foreign_member m;
      m.suffix = word(text);
      if (m.suffix.empty()) break;
      m.data = number(word(text));
      m.size = number(word(text));
      m.line = line_;
      if (named_) {
        m.path = word(text);
        if (m.path.empty()) disagree("ends within line " + std::to_string(line_));
      }
      if (m.data % block_size != 0 || m.data == 0)
        disagree("has an offset in line " + std::to_string(line_) + " that is not a multiple of 512");
      if (!members_.empty() && m.data < members_.back().data + members_.back().size)
        disagree("has members that overlap, or are not in their order, in line " + std::to_string(line_));
      members_.push_back(m);
    }
    if (members_.size() == before) disagree("has no member in line " + std::to_string(line_));
  }

  std::string_view rest_;
  std::uint64_t line_ = 0;
  bool named_ = false;
  std::vector<foreign_member> members_;
};
using dali_lines = basic_dali_lines<>;

/// Makes the index of a shard with the help of a foreign one. What is wrong is thrown as a `disagreement`.
template <storage_session Session>
class foreign_check {
 public:
  foreign_check(Session& session, object_id id, object_signature shard)
      : session_(session), id_(id), shard_(shard) {}

  [[nodiscard]] buffer dali(std::string_view text) {
    const dali_lines lines(text);
    for (const foreign_member& m : lines.members()) {
      if (m.data > shard_.size || m.size > shard_.size - m.data) {
        disagree("has a member in line " + std::to_string(m.line) + " that ends at " +
                 std::to_string(m.data) + " + " + std::to_string(m.size) + ", and the shard has " +
                 std::to_string(shard_.size) + " bytes");
      }
    }
    if (lines.named()) {
      by_names(lines.members());
    } else {
      by_headers(lines.members());
    }
    return builder_.finish(shard_);
  }

  /// Where each sample begins, its first header included, and where the last one ends.
  [[nodiscard]] buffer energon(bytes_view offsets) {
    if (offsets.empty() || offsets.size() % 8 != 0) disagree("is no list of 64-bit offsets");
    const std::uint64_t samples = offsets.size() / 8 - 1;
    const auto offset = [&](std::uint64_t i) { return load_little<std::uint64_t>(offsets.data() + 8 * i); };
    std::uint64_t end = 0;
    scan(session_, id_, shard_.size, [&](const member& m) {
      const std::uint64_t before = builder_.met();
      if (!belongs(m)) return;
      builder_.add(m);
      end = m.data + m.size;
      if (builder_.met() == before) return;
      if (before >= samples || offset(before) != m.header) {
        disagree((before >= samples ? "has " + std::to_string(samples) + " samples"
                                    : "says that sample " + std::to_string(before) + " begins at " +
                                          std::to_string(offset(before))) +
                 ", and the shard has another one at " + std::to_string(m.header));
      }
    });
    if (builder_.met() != samples) {
      disagree("has " + std::to_string(samples) + " samples, and the shard has " +
               std::to_string(builder_.met()));
    }
    if (offset(samples) < end || offset(samples) > shard_.size)
      disagree("says that the samples end at " + std::to_string(offset(samples)) + ", and they end at " +
               std::to_string(end));
    return builder_.finish(shard_);
  }

 private:
  [[nodiscard]] static bool belongs(const member& m) noexcept {
    return !skipped_member(m.path) && split_member(m.path);
  }
  [[nodiscard]] static std::string in_line(const foreign_member& m) {
    return " in line " + std::to_string(m.line);
  }

  // A line is a sample: members that WebDataset passes over are no part of it.
  void add(const member& m, const foreign_member& said) {
    const std::uint64_t before = builder_.met();
    builder_.add(m);
    const bool another = builder_.met() != before;
    if (another == (said.line == line_)) {
      disagree((another ? "has members of two samples" : "divides a sample into two, the second one") +
               in_line(said));
    }
    line_ = said.line;
  }

  void by_headers(const std::vector<foreign_member>& members) {
    std::size_t next = 0;
    scan(session_, id_, shard_.size, [&](const member& m) {
      const bool listed = next < members.size() && members[next].data == m.data;
      if (!belongs(m)) {
        if (listed) ++next;
        return;
      }
      if (!listed || members[next].size != m.size) {
        disagree("does not have '" + std::string(m.path) + "', " + std::to_string(m.size) + " bytes at " +
                 std::to_string(m.data) + (next < members.size() ? "," + in_line(members[next]) : ""));
      }
      add(m, members[next]);
      ++next;
    });
    if (next < members.size())
      disagree("has a member" + in_line(members[next]) + " that the shard does not have there");
  }

  void by_names(const std::vector<foreign_member>& members) {
    header_reader<Session> in(session_, id_, shard_.size);
    std::vector<const foreign_member*> kept;
    for (const foreign_member& said : members) {
      const member m{said.path, said.data - block_size, said.data, said.size, false};
      if (!belongs(m)) continue;
      if (split_member(m.path)->suffix != said.suffix)
        disagree("calls '" + std::string(said.path) + "' a member '" + std::string(said.suffix) + "'" +
                 in_line(said));
      add(m, said);
      kept.push_back(&said);
    }
    constexpr std::size_t places = 63;
    for (std::size_t i = 0; i <= places && !kept.empty(); ++i)
      check(in, *kept[(kept.size() - 1) * i / places]);
    check_edges(in, kept);
  }

  // The header before a member's bytes. Its name may stand in a header of its own before it.
  void check(header_reader<Session>& in, const foreign_member& said) {
    const bytes_view block = in.get(said.data - block_size, block_size);
    bool good = block.size() == block_size && checksum_matches(block);
    if (good) {
      const auto stored = number_field(block, 124, 12);
      const bool large = said.size >> 33 != 0;  // beyond what octal digits can say
      good = (stored == said.size || large) && (block[156] == std::byte{'0'} || block[156] == std::byte{0});
      header_path(block, path_);
      const bool plain = said.path.size() <= 100 && std::all_of(said.path.begin(), said.path.end(),
                                                                [](char c) { return c > ' ' && c < 127; });
      good = good && (!plain || path_ == said.path);
    }
    if (!good) {
      disagree("has '" + std::string(said.path) + "', " + std::to_string(said.size) + " bytes at " +
               std::to_string(said.data) + "," + in_line(said) + ", and the shard does not have that there");
    }
  }

  // Nothing that belongs to a sample stands before the first member or behind the last.
  void check_edges(header_reader<Session>& in, const std::vector<const foreign_member*>& kept) {
    member_walk<header_reader<Session>> walk(in);
    member found;
    const auto next = [&] {
      while (walk.next(found))
        if (belongs(found)) return true;
      return false;
    };
    const bool first = next();
    if (first == kept.empty() || (first && found.data != kept.front()->data))
      disagree(
          std::string(first ? "does not have the first member of the shard, '" + std::string(found.path) + "'"
                            : "has samples, and the shard has none"));
    if (kept.empty()) return;
    walk.restart(kept.back()->data + padded(kept.back()->size));
    if (next()) disagree("ends before '" + std::string(found.path) + "', which the shard has behind it");
  }

  Session& session_;
  object_id id_;
  object_signature shard_;
  index_builder builder_;
  std::uint64_t line_ = 0;  // of the last sample
  std::string path_;
};

/// Makes the index of a shard from the one that `policy` names.
template <storage_session Session>
[[nodiscard]] buffer build_foreign_index(Session& session, object_id id, const std::string& shard,
                                         index_policy policy) {
  const bool dali = policy == index_policy::dali;
  const std::string path = dali ? dali_path(shard) : energon_path(shard);
  const std::string both =
      std::string(dali ? "the DALI" : "the Energon") + " index " + path + " of the shard " + shard;
  const object_signature signature = session.signature(id);
  std::optional<buffer> bytes;
  try {
    bytes = read_whole_file(path);
  } catch (const error& e) {
    throw error(errc::missing, both + " cannot be used: " + std::string(e.message())).in_file(shard);
  }
  try {
    foreign_check<Session> check(session, id, signature);
    return dali ? check.dali(text_of(bytes->view())) : check.energon(bytes->view());
  } catch (const disagreement& d) {
    throw error(errc::format, both + " " + d.text).in_file(shard);
  } catch (error& e) {
    e.in_file(shard);
    throw;
  }
}

}  // namespace detail::tar
}  // namespace penstock::inline v0_1

// ---- penstock/source/detail/shard_set.hpp

namespace penstock::inline v0_1 {
namespace detail::tar {

/// The shards of a dataset, as part of a plan: their manifest, and the indexes that could not be kept in
/// files.
template <storage Storage>
struct shard_set {
  Storage where;
  index_policy policy;
  manifest shards;
  std::vector<object_signature> signatures;
  std::vector<std::shared_ptr<const buffer>> in_memory;  // null where the index is a file

  shard_set(Storage given, index_policy chosen, std::size_t threads)
      : where(std::move(given)), policy(chosen) {
    const std::span<const std::string> names = where.names();
    if (names.empty()) throw error(errc::argument, "a dataset needs at least one shard");
    if (policy == index_policy::require && !local_storage<Storage>) {
      throw error(errc::argument, "index_policy::require needs shards that are local files");
    }
    if (foreign() && !local_storage<Storage>) {
      throw error(errc::argument,
                  "the indexes of DALI and Energon are read beside shards that are local files");
    }
    signatures.resize(names.size());
    in_memory.resize(names.size());
    std::vector<manifest::shard> entries(names.size());
    auto session = where.connect();

    // First what is there: a few system calls for each shard, so that threads pay only for many.
    std::vector<index_header> headers(names.size());
    std::vector<std::size_t> found(names.size(), 0);
    const std::size_t lookers = std::min<std::size_t>(threads == 0 ? 8 : threads, 1 + names.size() / 256);
    for_each_in_parallel(names.size(), lookers, [&](std::size_t i) {
      signatures[i] = session.signature(static_cast<object_id>(i));
      if constexpr (local_storage<Storage>) {
        if (foreign()) return;
        const auto [state, header] = peek_index(names[i], signatures[i]);
        found[i] = state == index_state::good ? 1 : 0;
        headers[i] = header;
        if (state != index_state::good && policy == index_policy::require) {
          throw error(errc::missing, {"the index ", index_path(names[i]), " of the shard ", names[i], " ",
                                      to_text(state), ", and index_policy::require allows no other"})
              .in_file(names[i]);
        }
      }
    });
    // Then what is missing, which takes a pass over the headers of each shard.
    std::vector<std::size_t> missing;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (found[i] == 0) missing.push_back(i);
    }
    for_each_in_parallel(missing.size(), threads, [&](std::size_t m) {
      const std::size_t i = missing[m];
      std::shared_ptr<const buffer> built(new const buffer(
          foreign() ? build_foreign_index(session, static_cast<object_id>(i), names[i], policy)
                    : build_index(session, static_cast<object_id>(i), names[i])));
      headers[i] = *index_header::load(built->view());
      signatures[i] = {headers[i].shard_size, headers[i].shard_stamp};
      if (!keep(i, *built)) in_memory[i] = std::move(built);
    });
    for (std::size_t i = 0; i < names.size(); ++i) {
      entries[i] = {names[i], headers[i].shard_size, headers[i].samples, headers[i].payload,
                    headers[i].content};
    }
    shards = manifest(std::move(entries));
  }

  /// Whether the indexes are those that another program wrote.
  [[nodiscard]] bool foreign() const noexcept {
    return policy == index_policy::dali || policy == index_policy::energon;
  }

  /// Keeps an index in its file; false where it must stay in memory.
  bool keep(std::size_t shard, const buffer& built) const {
    if constexpr (local_storage<Storage>) {
      return policy == index_policy::keep && keep_index(where.names()[shard], built.view());
    } else {
      return false;
    }
  }
};

/// The indexes of a run: each is mapped and checked when its shard is first used.
template <storage Storage>
class open_indexes {
 public:
  explicit open_indexes(std::shared_ptr<const shard_set<Storage>> set)
      : set_(std::move(set)), slots_(std::make_unique<slots>(set_->signatures.size())) {}

  /// The tables of a shard. Takes no lock once they are there.
  [[nodiscard]] const shard_index& get(typename Storage::session& session, std::size_t shard) const {
    const loaded_index* known = slots_->loaded[shard].load(std::memory_order_acquire);
    return known != nullptr ? known->tables() : load(session, shard);
  }

 private:
  struct slots {
    explicit slots(std::size_t n) : loaded(n) {}
    slots(const slots&) = delete;
    slots& operator=(const slots&) = delete;
    ~slots() {
      for (auto& one : loaded) delete one.load(std::memory_order_relaxed);
    }
    std::vector<std::atomic<const loaded_index*>> loaded;
    std::array<std::mutex, 64> mutexes;
  };

  const shard_index& load(typename Storage::session& session, std::size_t shard) const {
    const std::scoped_lock lock(slots_->mutexes[shard % slots_->mutexes.size()]);
    auto& slot = slots_->loaded[shard];
    if (const loaded_index* other = slot.load(std::memory_order_acquire)) return other->tables();
    const manifest::shard& entry = set_->shards.shards()[shard];
    if (session.signature(static_cast<object_id>(shard)) != set_->signatures[shard]) {
      throw error(errc::io, "the shard was changed after the dataset was opened; open it again")
          .in_file(entry.name);
    }
    std::unique_ptr<loaded_index> fresh;
    if (set_->in_memory[shard]) {
      fresh = loaded_index::from_buffer(set_->in_memory[shard]);
    } else {
      fresh = from_file(session, shard, entry);
    }
    if (!fresh || !belongs(*fresh, entry)) {
      throw error(errc::io, "the shard does not hold what its manifest says; open the dataset again")
          .in_file(entry.name);
    }
    const loaded_index* shown = fresh.release();
    slot.store(shown, std::memory_order_release);
    return shown->tables();
  }

  // The header was in order when the plan was made. If the rest is not, the index is built again.
  std::unique_ptr<loaded_index> from_file(typename Storage::session& session, std::size_t shard,
                                          const manifest::shard& entry) const {
    auto found = loaded_index::from_file(entry.name);
    if (found && belongs(*found, entry)) return found;
    if (set_->policy == index_policy::require) {
      throw error(errc::checksum,
                  {"the index ", index_path(entry.name), " of the shard ", entry.name, " ",
                   to_text(index_state::damaged), ", and index_policy::require allows no other"})
          .in_file(entry.name);
    }
    auto built = std::shared_ptr<const buffer>(
        new const buffer(build_index(session, static_cast<object_id>(shard), entry.name)));
    const bool kept = set_->keep(shard, *built);
    auto fresh = loaded_index::from_buffer(std::move(built));
    if (!fresh || !belongs(*fresh, entry)) {
      throw error(errc::io, {"the index ", index_path(entry.name), " of the shard ", entry.name,
                             " does not hold what its header says; ",
                             kept ? "it was made again: open the dataset again" : "delete it"})
          .in_file(entry.name);
    }
    return fresh;
  }

  static bool belongs(const loaded_index& index, const manifest::shard& entry) noexcept {
    const index_header& header = index.tables().header();
    return header.content == entry.content && header.samples == entry.samples &&
           header.shard_size == entry.bytes;
  }

  std::shared_ptr<const shard_set<Storage>> set_;
  std::unique_ptr<slots> slots_;
};

}  // namespace detail::tar
}  // namespace penstock::inline v0_1

// ---- penstock/source/detail/tar_sample.hpp

/// A sample of a tar shard in flight: what one worker keeps, the sample, and the bytes of its members.
namespace penstock::inline v0_1 {
namespace detail::tar {

inline constexpr std::uint64_t no_offset = std::numeric_limits<std::uint64_t>::max();

/// The sample that a worker is at.
struct sample_cursor {
  const shard_index* tables = nullptr;
  const std::string* url = nullptr;
  object_id shard = 0;
  std::uint64_t shard_begin = 0;  ///< first and end sample of the shard, in the dataset
  std::uint64_t shard_end = 0;
  std::uint64_t sample = 0;  ///< in the shard
  std::uint32_t first = 0;   ///< first and end member
  std::uint32_t end = 0;
  std::uint64_t touched = no_offset;  ///< where the bytes begin that were asked for last
};

/// What one worker keeps for reading through a session that copies.
///
/// Members below 32 KiB come through a window, which one read fills with all the small members of the sample
/// that lie together;
/// where samples follow each other, the window grows, so that small samples cost a memcpy each. Larger
/// members are read where they are wanted.
template <storage_session Session>
class copying_worker {
 public:
  static constexpr bool views = false;
  sample_cursor at;

  void begin(Session& session, bool in_order) noexcept {
    session_ = &session;
    in_order_ = in_order;
    pinned_ = false;
    ++generation_;
  }

  void read(std::uint32_t member, std::uint64_t offset, mutable_bytes into) {
    if (into.empty()) return;
    at.touched = offset;
    if (into.size() < direct) {
      if (!holds(offset, into.size()) && !pinned_) {
        const span_of_members span = around(member);
        if (span.first != span.last) fill(span);
      }
      if (holds(offset, into.size())) {
        std::memcpy(into.data(), in_window(offset), into.size());
        return;
      }
    }
    session_->read(at.shard, offset, into);
  }

  [[nodiscard]] bytes_view finish(std::uint32_t member, std::uint64_t offset, std::uint64_t size) {
    if (size == 0) return {};
    at.touched = offset;
    if (size < direct) {
      if (!holds(offset, size) && !pinned_) fill(around(member));
      if (holds(offset, size)) {
        pinned_ = true;  // until the next sample, the window may not move
        return {in_window(offset), static_cast<std::size_t>(size)};
      }
    }
    const std::size_t ordinal = member - at.first;
    if (spares_.size() <= ordinal) spares_.resize(ordinal + 1);
    spare& mine = spares_[ordinal];
    if (mine.generation != generation_) {
      mine.bytes.resize_for_overwrite(static_cast<std::size_t>(size));
      session_->read(at.shard, offset, mine.bytes.span());
      mine.generation = generation_;
    }
    return mine.bytes.view();
  }

 private:
  static constexpr std::uint64_t direct = 32_KiB;
  static constexpr std::uint64_t first_ahead = 16_KiB;
  static constexpr std::uint64_t most_ahead = 256_KiB;

  struct spare {
    buffer bytes;
    std::uint64_t generation = 0;
  };
  struct span_of_members {
    std::uint32_t first;
    std::uint32_t last;
  };

  [[nodiscard]] bool holds(std::uint64_t offset, std::uint64_t size) const noexcept {
    return window_shard_ == at.tables && offset >= window_begin_ &&
           offset - window_begin_ <= window_.size() && size <= window_.size() - (offset - window_begin_);
  }
  [[nodiscard]] const std::byte* in_window(std::uint64_t offset) const noexcept {
    return window_.data() + (offset - window_begin_);
  }
  [[nodiscard]] bool small(std::uint32_t member) const noexcept { return at.tables->size(member) < direct; }

  // The small members that one read shall bring with this one: of its sample, and where samples are read in
  // order also of those that follow.
  [[nodiscard]] span_of_members around(std::uint32_t member) noexcept {
    const shard_index& tables = *at.tables;
    span_of_members span{member, member};
    while (span.first > at.first && small(span.first - 1) &&
           tables.end(member) - tables.offset(span.first - 1) <= most_ahead) {
      --span.first;
    }
    const std::uint64_t begin = tables.offset(span.first);
    while (span.last + 1 < at.end && small(span.last + 1) && tables.end(span.last + 1) - begin <= most_ahead)
      ++span.last;
    ahead_ = in_order_ ? std::clamp(ahead_ * 4, first_ahead, most_ahead) : 0;
    if (ahead_ != 0 && span.last + 1 == at.end) {
      const auto members = static_cast<std::uint32_t>(tables.header().members);
      while (span.last + 1 < members && small(span.last + 1) && tables.end(span.last + 1) - begin <= ahead_)
        ++span.last;
    }
    return span;
  }

  void fill(span_of_members span) {
    const std::uint64_t begin = at.tables->offset(span.first);
    window_shard_ = nullptr;  // holds nothing if the read fails
    window_.resize_for_overwrite(static_cast<std::size_t>(at.tables->end(span.last) - begin));
    session_->read(at.shard, begin, window_.span());
    window_begin_ = begin;
    window_shard_ = at.tables;
  }

  Session* session_ = nullptr;
  const shard_index* window_shard_ = nullptr;
  buffer window_;
  std::uint64_t window_begin_ = 0;
  std::uint64_t ahead_ = 0;
  std::uint64_t generation_ = 0;
  bool in_order_ = false;
  bool pinned_ = false;
  std::vector<spare> spares_;  // by the member's number in its sample
};

/// What one worker keeps where the session shows bytes in place.
template <viewing_session Session>
class viewing_worker {
 public:
  static constexpr bool views = true;
  sample_cursor at;

  void begin(Session& session, bool) noexcept { session_ = &session; }
  void read(std::uint32_t member, std::uint64_t offset, mutable_bytes into) {
    const bytes_view found = finish(member, offset, into.size());
    if (!found.empty()) std::memcpy(into.data(), found.data(), found.size());
  }
  [[nodiscard]] bytes_view finish(std::uint32_t, std::uint64_t offset, std::uint64_t size) {
    at.touched = offset;
    return session_->view(at.shard, offset, size);
  }

 private:
  Session* session_ = nullptr;
};

template <class Session>
struct worker_for {
  using type = copying_worker<Session>;
};
template <viewing_session Session>
struct worker_for<Session> {
  using type = viewing_worker<Session>;
};

/// The bytes of a member, not read yet. Lives during the call that hands its sample on.
template <class Worker>
class member_blob {
 public:
  using unfinished = void;
  /// Views of mapped shards live as long as the run: holding one needs no copy.
  static constexpr bool lasting = Worker::views;

  member_blob() = default;
  member_blob(Worker& worker, std::uint32_t member) noexcept
      : worker_(&worker),
        member_(member),
        offset_(worker.at.tables->offset(member)),
        size_(worker.at.tables->size(member)) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  /// Where the bytes begin in the shard.
  [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }
  void read_into(mutable_bytes into) const {
    if (into.size() != size_) {
      throw error(errc::argument, {"a member of ", size_, " bytes was to be read into ", into.size()});
    }
    worker_->read(member_, offset_, into);
  }
  [[nodiscard]] bytes_view finish() const { return worker_->finish(member_, offset_, size_); }

 private:
  Worker* worker_ = nullptr;
  std::uint32_t member_ = 0;
  std::uint64_t offset_ = 0;
  std::uint64_t size_ = 0;
};

/// An open sample of a shard: its key, and a table of members that have not been read.
template <class Worker>
class tar_sample {
 public:
  using is_open_sample = void;
  using blob_type = member_blob<Worker>;

  explicit tar_sample(Worker& worker) noexcept : worker_(&worker) {}

  [[nodiscard]] std::string_view key() const noexcept { return worker_->at.tables->key(worker_->at.sample); }
  /// The shard that the sample is in.
  [[nodiscard]] std::string_view url() const noexcept { return *worker_->at.url; }
  [[nodiscard]] std::size_t size() const noexcept { return worker_->at.end - worker_->at.first; }
  [[nodiscard]] std::string_view name(std::size_t i) const noexcept {
    return worker_->at.tables->suffix(number(i));
  }
  [[nodiscard]] blob_type member(std::size_t i) const noexcept { return {*worker_, number(i)}; }

 private:
  [[nodiscard]] std::uint32_t number(std::size_t i) const noexcept {
    return worker_->at.first + static_cast<std::uint32_t>(i);
  }
  Worker* worker_;
};

}  // namespace detail::tar
}  // namespace penstock::inline v0_1

// ---- penstock/source/webdataset.hpp

namespace penstock::inline v0_1 {

/// Choices of `webdataset`.
struct webdataset_options {
  index_policy index = index_policy::keep;
  /// Threads that build missing indexes; 0 is one for each processor.
  std::size_t threads = 0;
};

/// Shards in the WebDataset format: tar archives in which consecutive members of one name and several
/// extensions are a sample.
///
///     webdataset("train-{0000..0127}.tar")          webdataset(mapped_file("train-{0000..0127}.tar"))
///
/// In: a pattern or a list of paths, which is `file`, or any storage. Out: an open sample with a key and
/// members by their lower-cased extensions; bytes are read when a stage asks for them, and what no stage
/// names is not read.
/// Kind: a source; indexed, deterministic, resumable, elastic, lockstep. Every sample can be reached at once
/// through the index of its shard, which is built in one pass over the shard's headers when the dataset is
/// made for the first time, and kept in `<shard>.penstock-index` (see `index_policy`). A plan holds the
/// manifest; a run opens shards and maps indexes at their first use.
/// Cost per sample: a look into a table; then one pread for each member of 32 KiB and more, and one for all
/// the smaller ones that lie together; read in order, small samples share reads of up to 256 KiB. No
/// allocation in the steady state.
/// Errors: errc::io for a shard that cannot be read or has changed (for mapped ones see
/// `mapped_file_options`); errc::format, with shard, offset and key, for what is not a whole tar archive or
/// has two members of one name in a sample. Errors of the stages behind get shard, offset and key here.
/// Threads: any number may evaluate, each with its own worker.
/// Where Python's tarfile and the standards part, the standards count: only ustar headers have prefixes, the
/// last of several extension headers counts, an empty pax value takes back what was said. Sparse files are
/// refused.
/// Source: webdataset, tariterators.py; POSIX.1-2017 pax; the GNU tar manual.
template <storage Storage>
class webdataset {
  using shard_set = detail::tar::shard_set<Storage>;
  using session_type = typename Storage::session;

 public:
  using penstock_part = source_tag;
  static constexpr std::string_view source_name = "webdataset";

  /// What a run owns: a session, and the indexes of the shards it has used.
  class reader {
   public:
    using worker = typename detail::tar::worker_for<session_type>::type;

    template <class Sink>
    void evaluate(position p, worker& w, Sink&& sink) const {
      move_to(w, p.index);
      try {
        sink(detail::tar::tar_sample<worker>(w));
        confirm(session_, w.at.shard);
      } catch (error& e) {
        confirm(session_, w.at.shard);
        const auto& at = w.at;
        // An offset without a file comes from a codec and counts from the field's first byte.
        if (e.file().empty() && e.offset() && at.touched != detail::tar::no_offset)
          e.within("the field", at.touched);
        e.in_file(*at.url).for_key(at.tables->key(at.sample));
        e.at_offset(at.touched != detail::tar::no_offset ? at.touched : at.tables->offset(at.first));
        throw;
      }
    }

    [[nodiscard]] std::string key(std::uint64_t index) const {
      const manifest::place place = locate(index);
      return std::string(indexes_.get(session_, place.shard).key(place.sample));
    }
    /// The shard of a sample.
    [[nodiscard]] std::string url(std::uint64_t index) const {
      return set_->where.names()[locate(index).shard];
    }
    /// Says that all members of a sample will be read soon.
    void will_need(std::uint64_t index) const noexcept { will_need(index, 1); }
    /// The same for consecutive samples, as one request for each shard.
    void will_need(std::uint64_t index, std::uint64_t count) const noexcept {
      try {
        while (count != 0) {
          const manifest::place place = locate(index);
          const auto& tables = indexes_.get(session_, place.shard);
          const std::uint64_t here = std::min(count, tables.header().samples - place.sample);
          const std::uint64_t begin = tables.offset(tables.first_member(place.sample));
          const std::uint64_t end = tables.end(tables.end_member(place.sample + here - 1) - 1);
          session_.will_need(static_cast<object_id>(place.shard), begin, end - begin);
          index += here;
          count -= here;
        }
      } catch (...) {  // the read itself will say what is wrong
      }
    }
    /// The mean payload of a sample.
    [[nodiscard]] std::uint64_t bytes_per_sample() const noexcept {
      return set_->shards.samples() == 0 ? 0 : set_->shards.payload() / set_->shards.samples();
    }

   private:
    friend class webdataset;
    explicit reader(std::shared_ptr<const shard_set> set)
        : set_(std::move(set)), session_(set_->where.connect()), indexes_(set_) {}

    [[nodiscard]] manifest::place locate(std::uint64_t index) const {
      if (index >= set_->shards.samples()) {
        throw error(errc::argument,
                    {"there is no sample ", index, ": the dataset has ", set_->shards.samples()});
      }
      return set_->shards.locate(index);
    }

    void move_to(worker& w, std::uint64_t index) const {
      auto& at = w.at;
      bool in_order = false;
      if (at.tables != nullptr && index >= at.shard_begin && index < at.shard_end) [[likely]] {
        in_order = index == at.shard_begin + at.sample + 1;
        at.sample = index - at.shard_begin;
      } else {
        const manifest::place place = locate(index);
        const auto& tables = indexes_.get(session_, place.shard);
        at.tables = &tables;
        at.url = &set_->where.names()[place.shard];
        at.shard = static_cast<object_id>(place.shard);
        at.shard_begin = place.first;
        at.shard_end = place.first + tables.header().samples;
        at.sample = place.sample;
      }
      at.first = at.tables->first_member(at.sample);
      at.end = at.tables->end_member(at.sample);
      at.touched = detail::tar::no_offset;
      w.begin(session_, in_order);
    }

    std::shared_ptr<const shard_set> set_;
    mutable session_type session_;  // sessions may be used from many threads
    detail::tar::open_indexes<Storage> indexes_;
  };

  using element = detail::tar::tar_sample<typename reader::worker>;

  explicit webdataset(Storage where, webdataset_options options = {})
      : set_(new const shard_set(std::move(where), options.index, options.threads)) {}
  template <detail::tar::pattern_text Text>
    requires std::same_as<Storage, file>
  explicit webdataset(const Text& pattern, webdataset_options options = {})
      : webdataset(detail::tar::files_of(detail::tar::to_pattern(pattern)), options) {}
  explicit webdataset(std::vector<std::string> paths, webdataset_options options = {})
    requires std::same_as<Storage, file>
      : webdataset(file(std::move(paths)), options) {}
  explicit webdataset(std::initializer_list<const char*> paths, webdataset_options options = {})
    requires std::same_as<Storage, file>
      : webdataset(file(paths), options) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return set_->shards.samples(); }
  [[nodiscard]] std::shared_ptr<const std::vector<std::uint64_t>> starts() const noexcept {
    return set_->shards.starts();
  }
  [[nodiscard]] const penstock::manifest& manifest() const noexcept { return set_->shards; }
  [[nodiscard]] std::uint64_t fingerprint() const noexcept { return set_->shards.fingerprint(); }
  [[nodiscard]] std::string describe() const {
    std::string where = std::to_string(set_->where.names().size()) + " objects";
    if constexpr (requires {
                    { set_->where.describe() } -> std::convertible_to<std::string>;
                  })
      where = set_->where.describe();
    return detail::text({"webdataset(", where, "): ", set_->shards.shards().size(), " shards, ", size(),
                         " samples, ", set_->shards.payload(), " bytes"});
  }
  [[nodiscard]] reader open() const { return reader(set_); }

 private:
  std::shared_ptr<const shard_set> set_;
};

template <storage Storage>
webdataset(Storage) -> webdataset<Storage>;
template <storage Storage>
webdataset(Storage, webdataset_options) -> webdataset<Storage>;
template <detail::tar::pattern_text Text>
webdataset(const Text&) -> webdataset<file>;
template <detail::tar::pattern_text Text>
webdataset(const Text&, webdataset_options) -> webdataset<file>;
webdataset(std::vector<std::string>, webdataset_options = {}) -> webdataset<file>;
webdataset(std::initializer_list<const char*>, webdataset_options = {}) -> webdataset<file>;

}  // namespace penstock::inline v0_1

// ---- penstock/source/detail/stream_sample.hpp

namespace penstock::inline v0_1 {
namespace detail::tar {

/// The bytes of a member that its sample holds.
class held_blob {
 public:
  using unfinished = void;

  held_blob() = default;
  explicit held_blob(bytes_view bytes) noexcept : bytes_(bytes) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return bytes_.size(); }
  void read_into(mutable_bytes into) const {
    if (into.size() != bytes_.size()) {
      throw error(errc::argument, "a member of " + std::to_string(bytes_.size()) +
                                      " bytes was to be read into " + std::to_string(into.size()));
    }
    if (!into.empty()) std::memcpy(into.data(), bytes_.data(), into.size());
  }
  [[nodiscard]] bytes_view finish() const noexcept { return bytes_; }

 private:
  bytes_view bytes_;
};

/// An open sample that owns its bytes, for sources that read forward. Its memory is used again.
template <class = void>
class basic_stream_sample {
 public:
  using is_open_sample = void;
  using blob_type = held_blob;

  [[nodiscard]] std::string_view key() const noexcept { return key_; }
  /// The shard that the sample is in.
  [[nodiscard]] std::string_view url() const noexcept { return url_; }
  [[nodiscard]] std::size_t size() const noexcept { return members_.size(); }
  [[nodiscard]] std::string_view name(std::size_t i) const noexcept {
    return std::string_view(names_).substr(members_[i].name, members_[i].name_size);
  }
  [[nodiscard]] blob_type member(std::size_t i) const noexcept {
    return blob_type(bytes_.view().subspan(members_[i].begin, members_[i].size));
  }

  /// Another sample begins.
  void start(std::string_view key, std::string_view url) {
    key_ = key;
    url_ = url;
    names_.clear();
    members_.clear();
    bytes_.clear();
    bad_ = false;
  }

  /// Takes a member, which must have this sample's key. `read(bytes)` takes that many from the archive, fewer
  /// at its end; `cut_off(got)` throws when they end early.
  template <class Read, class CutOff>
  void take(const tar::member& m, std::string_view suffix, std::uint64_t limit, Read&& read,
            CutOff&& cut_off) {
    if (m.sparse) {
      throw error(errc::format, "'" + std::string(m.path) +
                                    "' is a sparse file, which is stored with its holes left out; write the "
                                    "archive without --sparse")
          .at_offset(m.header)
          .for_key(key_);
    }
    const std::size_t name = names_.size();
    for (const char c : suffix) names_ += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    const std::string_view lowered = std::string_view(names_).substr(name);
    if (marks_bad(lowered, m.size)) bad_ = true;
    if (reserved_suffix(lowered) || !fresh(lowered)) {
      throw error(errc::format, (reserved_suffix(lowered)
                                     ? "WebDataset keeps this name for itself, no member may have it: '"
                                     : "the sample has two members '") +
                                    std::string(lowered) + "'")
          .at_offset(m.header)
          .for_key(key_);
    }
    const std::size_t begin = bytes_.size();
    const std::uint64_t held = begin + names_.size() + (members_.size() + 1) * sizeof(entry);
    if (held > limit || m.size > limit - held) {
      throw error(errc::limit, "with the member '" + std::string(m.path) + "' of " + std::to_string(m.size) +
                                   " bytes the sample is larger than the limit of " + std::to_string(limit) +
                                   "; raise it with webdataset_stream_options{.limit = ...}")
          .at_offset(m.header)
          .for_key(key_);
    }
    // What a header announces may not be there: memory grows with what is.
    const auto size = static_cast<std::size_t>(m.size);
    for (std::size_t done = 0; done < size;) {
      const std::size_t some = std::min(size - done, std::max<std::size_t>(1_MiB, begin + done));
      grow(begin + done + some);
      const std::size_t got = read(bytes_.span().subspan(begin + done, some));
      done += got;
      if (got < some) cut_off(m.data + done);
    }
    members_.push_back({name, names_.size() - name, begin, size});
  }

  /// Whether the sample says of itself that it shall be left out.
  [[nodiscard]] bool bad() const noexcept { return bad_; }

 private:
  struct entry {
    std::size_t name, name_size;
    std::size_t begin, size;
  };

  /// Whether no member has this name, which stands at the end of `names_` already. A table takes over from
  /// looking at all where a sample has very many.
  [[nodiscard]] bool fresh(std::string_view lowered) {
    constexpr std::size_t few = 32;
    if (members_.size() < few) {
      for (std::size_t i = 0; i < members_.size(); ++i)
        if (name(i) == lowered) return false;
      return true;
    }
    if (members_.size() == few || (members_.size() + 1) * 2 > table_.size()) {
      std::size_t size = 4 * few;
      while (size < members_.size() * 4) size *= 2;
      table_.assign(size, empty);
      for (std::size_t i = 0; i < members_.size(); ++i) table_[slot(name(i))] = i;
    }
    std::size_t& mine = table_[slot(lowered)];
    if (mine != empty) return false;
    mine = members_.size();
    return true;
  }
  [[nodiscard]] std::size_t slot(std::string_view lowered) const noexcept {
    std::size_t at = std::hash<std::string_view>{}(lowered) & (table_.size() - 1);
    while (table_[at] != empty && name(table_[at]) != lowered) at = (at + 1) & (table_.size() - 1);
    return at;
  }

  void grow(std::size_t size) {
    if (size > bytes_.capacity()) {
      buffer larger(std::max(size, 2 * bytes_.capacity()));
      if (bytes_.size() != 0) std::memcpy(larger.data(), bytes_.data(), bytes_.size());
      bytes_ = std::move(larger);
    }
    bytes_.resize_for_overwrite(size);
  }

  static constexpr std::size_t empty = static_cast<std::size_t>(-1);

  std::string key_;
  std::string url_;
  std::string names_;
  std::vector<entry> members_;
  std::vector<std::size_t> table_;
  buffer bytes_;
  bool bad_ = false;
};
using stream_sample = basic_stream_sample<>;

}  // namespace detail::tar
}  // namespace penstock::inline v0_1

// ---- penstock/source/webdataset_stream.hpp

namespace penstock::inline v0_1 {

/// Choices of `webdataset_stream`.
struct webdataset_stream_options {
  /// The most bytes that one sample may hold, names included: what a hostile shard can cost.
  std::uint64_t limit = 1_GiB;
};

/// The source that `webdataset_stream` (of files: it can go to a place) and `webdataset_pipe` make.
template <bool Files, unpacker... Unpack>
class basic_webdataset_stream {
  struct shared {
    shared(std::vector<std::string> given, webdataset_stream_options chosen)
        : names(std::move(given)), used(names.size()), options(chosen) {}
    std::vector<std::string> names;
    std::vector<std::atomic<bool>> used;  // by shard: a pipe that has been read
    webdataset_stream_options options;
  };

 public:
  using penstock_part = source_tag;
  using element = detail::tar::stream_sample;
  static constexpr std::string_view source_name = Files ? "webdataset_stream" : "webdataset_pipe";
  static constexpr bool seekable = Files;

  class reader {
   public:
    [[nodiscard]] bool next(element& e) {
      while (shard_ < set_->names.size()) {
        const std::string& url = set_->names[shard_];
        try {
          if (!state_->open) open(url);
          if (read_sample(e, url)) {
            ++given_;
            return true;
          }
        } catch (error& problem) {
          shard_ = set_->names.size();
          problem.in_file(url);
          if (state_->open) problem.at_offset(state_->input.offset());
          state_->close();
          throw;
        }
        ++shard_;
        given_ = 0;
      }
      return false;
    }
    void rewind(std::uint64_t) noexcept {
      state_->close();
      shard_ = 0;
      given_ = 0;
    }
    [[nodiscard]] source_mark mark() const noexcept
      requires Files
    {
      return {shard_, given_};
    }
    /// Opens the shard, and reads those of its samples that were given; shards before it are not touched.
    void seek(std::uint64_t epoch, source_mark place)
      requires Files
    {
      rewind(epoch);
      const std::uint64_t shards = set_->names.size();
      if (place.shard > shards || (place.shard == shards && place.sample != 0))
        throw error(errc::state, {"there is no shard ", place.shard, "; the dataset has ", shards});
      shard_ = static_cast<std::size_t>(place.shard);
      for (element passed; given_ != place.sample;) {
        if (next(passed) && shard_ == place.shard) continue;
        throw error(errc::state, {"the shard has fewer than the ", place.sample,
                                  " samples of which the state speaks; it was changed"})
            .in_file(set_->names[static_cast<std::size_t>(place.shard)]);
      }
    }

   private:
    friend class basic_webdataset_stream;
    using stream = detail::tar::shard_stream<Unpack...>;

    // Stays where it is when the reader is moved: the walk refers to the input.
    struct state {
      stream input;
      detail::tar::member_walk<stream> walk{input};
      detail::tar::member found;
      detail::tar::split_path parts;  // of the member that was found, and is not taken yet
      bool open = false;
      bool pending = false;
      bool ended = false;

      void close() noexcept {
        input.close();
        open = pending = ended = false;
      }
    };

    explicit reader(std::shared_ptr<shared> set) : set_(std::move(set)), state_(std::make_unique<state>()) {}

    void open(const std::string& url) {
      if (Files && stream::is_pipe(url))
        throw error(errc::argument, "this is a pipe, in which no run can be resumed; write webdataset_pipe");
      state_->input.open(url, set_->used[shard_], source_name);
      state_->walk.restart();
      state_->open = true;
    }

    /// Looks for the next member that belongs to a sample. At the end it reads on to the checksums, before
    /// the last sample is given.
    bool find() {
      state& s = *state_;
      if (s.ended) return false;
      while (s.walk.next(s.found)) {
        if (detail::tar::skipped_member(s.found.path)) continue;
        const auto parts = detail::tar::split_member(s.found.path);
        if (!parts) continue;
        s.parts = *parts;
        return true;
      }
      s.ended = true;
      s.input.drain();
      return false;
    }

    /// False at the end of the shard.
    bool read_sample(element& e, const std::string& url) {
      state& s = *state_;
      while (s.pending || find()) {
        e.start(s.parts.key, url);
        do {
          e.take(
              s.found, s.parts.suffix, set_->options.limit,
              [&s](mutable_bytes into) { return s.input.read(into); },
              [&s](std::uint64_t reached) { s.walk.cut_off(reached); });
          s.pending = find();
        } while (s.pending && s.parts.key == e.key());
        if (!e.bad()) return true;
      }
      s.close();
      return false;
    }

    std::shared_ptr<shared> set_;
    std::unique_ptr<state> state_;
    std::size_t shard_ = 0;
    std::uint64_t given_ = 0;  // samples of the shard at hand
  };

  basic_webdataset_stream(std::vector<std::string> names, webdataset_stream_options options)
      : set_(std::make_shared<shared>(std::move(names), options)) {
    if (set_->names.empty()) throw error(errc::argument, "a dataset needs at least one shard");
  }

  [[nodiscard]] std::string describe() const {
    return std::string(source_name) + "(" +
           (set_->names.size() == 1
                ? set_->names.front()
                : std::to_string(set_->names.size()) + " shards from " + set_->names.front()) +
           ", read forward)";
  }
  /// Of the shards' names without their folders: what they hold is not known before it is read.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept {
    penstock::fingerprint mark;
    mark.add("webdataset_stream", set_->names.size());
    for (const std::string& name : set_->names) mark.add(std::string_view(name).substr(name.rfind('/') + 1));
    return mark.value();
  }
  [[nodiscard]] reader open() const { return reader(set_); }

 private:
  std::shared_ptr<shared> set_;
};

/// What `webdataset_stream` makes.
template <unpacker... Unpack>
using webdataset_stream_source = basic_webdataset_stream<true, Unpack...>;
/// What `webdataset_pipe` makes.
template <unpacker... Unpack>
using webdataset_pipe_source = basic_webdataset_stream<false, Unpack...>;

/// Shards in the WebDataset format, read from the beginning to the end: for archives that are compressed
/// as a whole; `webdataset_pipe` is the same for pipes. Where shards are plain files, `webdataset` can do
/// more: shuffle, go on with other ranks, read in parallel.
///
///     webdataset_stream("train-{0000..0127}.tar")
///     webdataset_stream<unpack_gzip, unpack_zstd>("train-{0000..0127}.tar.{gz,zst}")
///     webdataset_pipe("-")                                                   what another program writes
///
/// In: a pattern (with `::` between patterns) or a list of paths of local files, for
/// `webdataset_pipe` also FIFOs and "-" for the standard input; the unpackers that may be needed, as template
/// arguments. How a shard is packed is seen from its first bytes; its name says nothing. Out: open samples
/// that own their bytes: the same keys, members, bytes and order as those of `webdataset`.
/// Kind: a forward source: deterministic, and of files resumable: a run that goes on opens the shard where it
/// stood and reads the samples of it that were delivered once more; shards before it are not touched. One
/// shard is open at a time. A pipe can be read once.
/// Cost per sample: its bytes are copied out of a window once, and unpacked; members of 256 KiB and more of
/// plain files are read in place. No allocation in the steady state: samples keep their memory. Memory: a
/// window of 1 MiB and what the unpackers need, besides the samples, each of at most `limit`.
/// Threads: one reads at a time, all evaluate. Who reads a pipe waits for its writer, also when the run is
/// given up.
/// Errors: as `webdataset`, when the place is reached; offsets are those in the unpacked archive.
/// errc::argument for a shard that is packed in a way of which there is no unpacker, and for a pipe given to
/// `webdataset_stream`, with what to write;
/// errc::limit for a sample beyond `limit`, before its bytes are read; errc::checksum; errc::state for a pipe
/// that was read before.
/// Source: webdataset, tariterators.py.
template <unpacker... Unpack, detail::tar::pattern_text Text>
[[nodiscard]] webdataset_stream_source<Unpack...> webdataset_stream(const Text& pattern,
                                                                    webdataset_stream_options options = {}) {
  const file found = detail::tar::files_of(detail::tar::to_pattern(pattern));
  return {std::vector<std::string>(found.names().begin(), found.names().end()), options};
}

/// The same for a list of paths, which are taken as they are.
template <unpacker... Unpack>
[[nodiscard]] webdataset_stream_source<Unpack...> webdataset_stream(std::vector<std::string> paths,
                                                                    webdataset_stream_options options = {}) {
  return {std::move(paths), options};
}
template <unpacker... Unpack>
[[nodiscard]] webdataset_stream_source<Unpack...> webdataset_stream(std::initializer_list<const char*> paths,
                                                                    webdataset_stream_options options = {}) {
  return {std::vector<std::string>(paths.begin(), paths.end()), options};
}

/// Shards from pipes: see `webdataset_stream`. Not resumable: nobody can go back in a pipe.
template <unpacker... Unpack, detail::tar::pattern_text Text>
[[nodiscard]] webdataset_pipe_source<Unpack...> webdataset_pipe(const Text& pattern,
                                                                webdataset_stream_options options = {}) {
  const file found = detail::tar::files_of(detail::tar::to_pattern(pattern));
  return {std::vector<std::string>(found.names().begin(), found.names().end()), options};
}

/// The same for a list of paths, which are taken as they are.
template <unpacker... Unpack>
[[nodiscard]] webdataset_pipe_source<Unpack...> webdataset_pipe(std::vector<std::string> paths,
                                                                webdataset_stream_options options = {}) {
  return {std::move(paths), options};
}

}  // namespace penstock::inline v0_1

// ---- penstock/stage/batch.hpp

namespace penstock::inline v0_1 {

/// Cuts the sequence into batches of `size` samples for this rank and collates each field. Made by
/// `batch(size, options...)`; `global_batch(size, options...)` says how many there are over all ranks.
///
/// Options, in any order: the tail policy (`tail::keep` by default, `tail::drop`, `tail::pad`), one collate
/// policy for all fields (`stack` by default, `pad_to_longest`, `ragged`), and `collate<"name">(policy)` for
/// single fields.
/// Batches are cut by position, before evaluation: global step s holds positions [s * size * world, (s + 1) *
/// size * world), and a sample that is bad never pulls a later one forward. Samples are written where they
/// will be used: no copy after decoding for stacked fields. Keeps all five guarantees. Unequal shapes under
/// `stack` are `errc::shape` at the position.
///
/// `global_batch(G)`: global step s holds positions [s * G, (s + 1) * G) on any number of ranks from 1 to G,
/// whether it divides G or not; the ranks' parts differ by at most one sample. That is the batch for runs
/// that go on with another number of ranks. `batch(b)` has the same global steps wherever b * world is the
/// same.
/// More than G ranks are `errc::argument` when the plan is opened, and so is, over a source that can only be
/// read forward, a number of ranks that does not divide G.
///
///     ... | batch(256, tail::drop)         ... | batch(64, ragged)         ... | batch(64, collate<"txt">(ragged))
///     ... | shard(world::from_environment()) | global_batch(4096)
template <class... Policies>
struct batch_stage {
  using penstock_part = batch_tag;
  static constexpr std::string_view stage_name = "batch";

  std::uint64_t size = 1;
  tail at_end = tail::keep;
  bool global = false;  ///< `size` counts the samples of all ranks together

  /// Samples of a whole global step, over all ranks. Throws where there would be none for some rank.
  [[nodiscard]] std::uint64_t global_size(std::uint64_t ranks) const {
    if (global && ranks > size) {
      throw error(errc::argument, {"global_batch(", size, ") has samples for at most ", size, " ranks, not ",
                                   ranks, "; make it larger or use fewer ranks"})
          .in_stage("batch");
    }
    if (!global && size > 0xffffffffu / ranks) {
      throw error(errc::argument,
                  {"a global step has 1 to 2^32 - 1 samples, and batch(", size, ") makes it larger"})
          .in_stage("batch");
    }
    return global ? size : size * ranks;
  }
  /// Samples of a rank's whole batch where samples are dealt in turn.
  [[nodiscard]] std::uint64_t dealt_size(std::uint64_t rank, std::uint64_t ranks) const {
    return (global_size(ranks) - rank - 1) / ranks + 1;
  }

  /// The collate policy of a field.
  template <class Name>
  using policy = typename detail::policy_for<Name, Policies...>::type;

  [[nodiscard]] std::string describe() const {
    return detail::text({(global ? "global_batch(" : "batch("), size, ", tail ",
                         (at_end == tail::drop  ? "drop"
                          : at_end == tail::pad ? "pad"
                                                : "keep"),
                         ")"});
  }
  template <class Hash>
  void fingerprint(Hash& h) const {
    h.add("batch", at_end);
  }

  template <class Context>
  static consteval mistake diagnose() {
    return diagnose_element<std::remove_cvref_t<typename Context::element>>();
  }

 private:
  template <class Name, class V>
  static consteval mistake diagnose_field() {
    constexpr shape_class shape = shape_class_of<V>;
    if constexpr (shape == shape_class::none)
      return open_sample<V> || owned_sample<V> ? mistake::open_sample_in_batch : mistake::not_batchable;
    if constexpr (shape == shape_class::discovered && std::is_same_v<policy<Name>, stack_policy>)
      return mistake::discovered_without_collate;
    return mistake::none;
  }
  template <class V>
  static consteval mistake diagnose_element() {
    return diagnose_field<void, V>();
  }
  template <any_record R>
  static consteval mistake diagnose_element() {
    return diagnose_fields<R>(std::make_index_sequence<R::size>{});
  }
  template <class R, std::size_t... Is>
  static consteval mistake diagnose_fields(std::index_sequence<Is...>) {
    mistake found = mistake::none;
    ((found =
          found != mistake::none
              ? found
              : diagnose_field<typename R::template field_at<Is>::name_type, std::tuple_element_t<Is, R>>()),
     ...);
    return found;
  }
};

namespace detail {

template <class... Policies>
struct batch_builder {
  std::uint64_t size;
  tail at_end = tail::keep;
  bool global = false;

  [[nodiscard]] auto with(tail t) const { return batch_builder{size, t, global}; }
  template <class Policy>
  [[nodiscard]] auto with(Policy) const {
    return batch_builder<Policies..., Policy>{size, at_end, global};
  }
  [[nodiscard]] auto done() const { return batch_stage<Policies...>{size, at_end, global}; }
};

template <class Builder>
auto build_batch(Builder builder) {
  return builder.done();
}
template <class Builder, class Option, class... Rest>
auto build_batch(Builder builder, Option option, Rest... rest) {
  return build_batch(builder.with(option), rest...);
}

}  // namespace detail

template <class... Options>
[[nodiscard]] auto batch(std::uint64_t size, Options... options) {
  if (size == 0)
    throw error(errc::argument, "batch(0) holds no sample; give it at least 1").in_stage("batch");
  return detail::build_batch(detail::batch_builder<>{size}, options...);
}

/// A batch of `size` samples over all ranks, with the options of `batch`.
template <class... Options>
[[nodiscard]] auto global_batch(std::uint64_t size, Options... options) {
  if (size == 0)
    throw error(errc::argument, "global_batch(0) holds no sample; give it at least 1").in_stage("batch");
  return detail::build_batch(detail::batch_builder<>{size, tail::keep, true}, options...);
}

}  // namespace penstock::inline v0_1

// ---- penstock/stage/decode.hpp

namespace penstock::inline v0_1 {

namespace detail {

template <class T>
struct field_codec {
  using name_type = void;
  using codec_type = T;
};
template <class Name, class C>
struct field_codec<basic_field<Name, C>> {
  using name_type = Name;
  using codec_type = C;
};

/// Runs a codec and says in an error which one it was.
template <class C, class In, class Scratch>
decltype(auto) run_codec(const C& c, const In& in, Scratch& scratch) {
  try {
    return c.decode(in, scratch);
  } catch (error& e) {
    e.in_stage("decode<" + std::string(C::codec_name) + ">");
    throw;
  }
}

template <class C>
bool codec_claims(std::string_view extension) {
  if constexpr (requires { C::extensions; })
    return std::ranges::find(C::extensions, extension) != std::end(C::extensions);
  else
    return false;
}

/// The one member that codec `C` is meant for: the only one, or the only one whose name it declares.
template <class C, open_sample S>
std::size_t member_for(const S& sample) {
  if (sample.size() == 1) return 0;
  std::size_t found = sample.size();
  for (std::size_t i = 0; i < sample.size(); ++i) {
    const std::string_view member = sample.name(i);
    const auto dot = member.rfind('.');
    if (!codec_claims<C>(dot == std::string_view::npos ? member : member.substr(dot + 1))) continue;
    if (found != sample.size())
      throw error(errc::missing, {"two members suit decode<", C::codec_name, ">: '", sample.name(found),
                                  "' and '", member, "'; choose with fields<...>"})
          .for_key(sample.key());
    found = i;
  }
  if (found == sample.size())
    throw error(errc::missing, {"no member is the one for decode<", C::codec_name,
                                ">; choose with fields<...> or decode<field<\"name\", Codec>>"})
        .for_key(sample.key());
  return found;
}

template <class Name, class... Codecs>
inline constexpr std::size_t codec_for = [] {
  std::size_t found = not_found, i = 0;
  ((std::is_same_v<Name, typename field_codec<Codecs>::name_type> ? (found = i, ++i) : ++i), ...);
  return found;
}();

}  // namespace detail

/// Makes values of bytes: `decode<zstd>`, or for fields of a record `decode<field<"jpg", jpeg>, field<"cls",
/// integer>>`.
///
/// In: bytes (blobs, spans, texts); a record, of which the named fields are decoded in place and the others
/// pass; a record with one field; or an open sample, of which `decode<field<...>...>` takes the named members
/// and `decode<Codec>` the only member, or the only one whose extension the codec declares. Out: what the
/// codec makes of it, unfinished where the codec can write to its destination.
/// Pointwise; keeps all five guarantees. Options by call: `decode<zstd>(zstd{.limit = 1_GiB})`. Each worker
/// has a scratch per codec.
/// Throws what the codec throws, with the codec's name, at the sample's place in the sequence.
template <class... Codecs>
struct decode_stage {
  using penstock_part = pointwise_tag;
  static constexpr std::string_view stage_name = "decode";
  using codecs = pack<typename detail::field_codec<Codecs>::codec_type...>;
  using scratch = pack<scratch_of<typename detail::field_codec<Codecs>::codec_type>...>;
  static constexpr bool by_name = (!std::is_void_v<typename detail::field_codec<Codecs>::name_type> && ...);

  codecs codec_values{};

  /// The same with options for each codec, in the order written.
  template <class... Options>
    requires(sizeof...(Options) == sizeof...(Codecs))
  [[nodiscard]] constexpr decode_stage operator()(Options... options) const {
    return decode_stage{
        detail::make_pack(typename detail::field_codec<Codecs>::codec_type(std::move(options))...)};
  }

  template <class V, class Call>
  constexpr decltype(auto) apply(V&& value, const Call& c) const {
    using type = std::remove_cvref_t<V>;
    if constexpr (any_record<type>) {
      return apply_record(value, c, std::make_index_sequence<type::size>{});
    } else if constexpr (open_sample<type> && by_name) {
      return apply_open(value, c, std::make_index_sequence<sizeof...(Codecs)>{});
    } else if constexpr (open_sample<type>) {
      using codec_type = detail::type_at<0, codecs>;
      return detail::run_codec(detail::at<0>(codec_values),
                               value.member(detail::member_for<codec_type>(value)), detail::at<0>(c.scratch));
    } else {
      return detail::run_codec(detail::at<0>(codec_values), value, detail::at<0>(c.scratch));
    }
  }

  [[nodiscard]] std::string describe() const {
    std::string text = "decode<";
    std::size_t i = 0;
    const auto one = [&]<class C>(std::type_identity<C>) {
      text += i++ == 0 ? "" : ", ";
      if constexpr (!std::is_void_v<typename detail::field_codec<C>::name_type>)
        text += std::string(detail::field_codec<C>::name_type::value) + ": ";
      text += detail::field_codec<C>::codec_type::codec_name;
    };
    (one(std::type_identity<Codecs>{}), ...);
    return text + ">";
  }

  template <class Context>
  static consteval mistake diagnose() {
    using element = std::remove_cvref_t<typename Context::element>;
    if constexpr (sizeof...(Codecs) == 0) {
      return mistake::decode_nothing;
    } else if constexpr (!(codec<typename detail::field_codec<Codecs>::codec_type> && ...)) {
      return mistake::not_a_codec;
    } else if constexpr (by_name &&
                         !detail::names_differ<
                             basic_field<typename detail::field_codec<Codecs>::name_type, int>...>()) {
      return mistake::field_twice;
    } else if constexpr (any_record<element>) {
      if constexpr (by_name) {
        if constexpr (!(has_field<element, typename detail::field_codec<Codecs>::name_type> && ...)) {
          return mistake::no_such_field;
        } else {
          return (byte_element<std::tuple_element_t<
                      element::template index_of<typename detail::field_codec<Codecs>::name_type>,
                      element>> &&
                  ...)
                     ? mistake::none
                     : mistake::codec_wants_bytes;
        }
      } else if constexpr (element::size != 1 || sizeof...(Codecs) != 1) {
        return mistake::decode_which_field;
      } else {
        return byte_element<std::tuple_element_t<0, element>> ? mistake::none : mistake::codec_wants_bytes;
      }
    } else if constexpr (open_sample<element>) {
      return by_name || sizeof...(Codecs) == 1 ? mistake::none : mistake::decode_which_field;
    } else if constexpr (by_name || sizeof...(Codecs) != 1) {
      return mistake::no_such_field;
    } else {
      return byte_element<element> ? mistake::none : mistake::codec_wants_bytes;
    }
  }

 private:
  template <class R, class Call, std::size_t... Is>
  constexpr auto apply_record(const R& sample, const Call& c, std::index_sequence<Is...>) const {
    return record<basic_field<typename R::template field_at<Is>::name_type,
                              std::remove_cvref_t<decltype(one_field<Is>(sample, c))>>...>(
        one_field<Is>(sample, c)...);
  }
  template <std::size_t I, class R, class Call>
  constexpr decltype(auto) one_field(const R& sample, const Call& c) const {
    using field_name = typename R::template field_at<I>::name_type;
    constexpr std::size_t which = by_name ? detail::codec_for<field_name, Codecs...> : 0;
    if constexpr (which == detail::not_found)
      return get<I>(sample);
    else
      return detail::run_codec(detail::at<which>(codec_values), get<I>(sample), detail::at<which>(c.scratch));
  }
  template <class S, class Call, std::size_t... Is>
  auto apply_open(const S& sample, const Call& c, std::index_sequence<Is...>) const {
    return record<basic_field<typename detail::field_codec<Codecs>::name_type,
                              std::remove_cvref_t<decltype(one_member<Is>(sample, c))>>...>(
        one_member<Is>(sample, c)...);
  }
  template <std::size_t I, class S, class Call>
  decltype(auto) one_member(const S& sample, const Call& c) const {
    using wanted = typename detail::field_codec<std::tuple_element_t<I, std::tuple<Codecs...>>>::name_type;
    for (std::size_t i = 0; i < sample.size(); ++i)
      if (std::string_view(sample.name(i)) == wanted::value)
        return detail::run_codec(detail::at<I>(codec_values), sample.member(i), detail::at<I>(c.scratch));
    std::string has;
    for (std::size_t i = 0; i < sample.size(); ++i) has.append(i == 0 ? "" : ", ").append(sample.name(i));
    throw error(errc::missing, {"the sample has no member '", wanted::value, "'; it has: ", has})
        .for_key(sample.key());
  }
};

template <class... Codecs>
inline constexpr decode_stage<Codecs...> decode{};

}  // namespace penstock::inline v0_1

// ---- penstock/stage/enumerate.hpp

namespace penstock::inline v0_1 {

/// Adds each sample's index in the global order of its epoch: field "index" of a record; other elements
/// become a record of "index" and "value".
///
/// Pointwise; keeps all five guarantees. The index is the same on every rank; it counts positions, so it
/// stands before filter and unbatch. Cost: nothing.
///
///     from(names) | enumerate | map([](auto r) { return get<"index">(r); })
struct enumerate_stage {
  using penstock_part = pointwise_tag;
  static constexpr std::string_view stage_name = "enumerate";

  template <class V, class Call>
  constexpr auto apply(V&& value, const Call& c) const {
    if constexpr (any_record<V>) {
      return [&]<std::size_t... Is>(std::index_sequence<Is...>) {
        using type = std::remove_cvref_t<V>;
        return record<field<"index", std::uint64_t>, typename type::template field_at<Is>...>(
            c.at.index, get<Is>(std::forward<V>(value))...);
      }(std::make_index_sequence<std::remove_cvref_t<V>::size>{});
    } else {
      return record<field<"index", std::uint64_t>, field<"value", std::remove_cvref_t<V>>>(
          c.at.index, std::forward<V>(value));
    }
  }
  template <class Context>
  static consteval mistake diagnose() {
    if constexpr (Context::facts.decided) return mistake::enumerate_after_decider;
    if constexpr (has_field<typename Context::element, name_of<"index">>) return mistake::field_twice;
    return mistake::none;
  }
};

inline constexpr enumerate_stage enumerate{};

}  // namespace penstock::inline v0_1

// ---- penstock/stage/fields.hpp

namespace penstock::inline v0_1 {

/// A member's name as a template argument of `fields`: alternatives with `;`, the first one names the field.
template <std::size_t N>
struct member_name {
  char text[N]{};
  bool is_optional = false;

  consteval member_name(const char (&source)[N]) {  // NOLINT: implicit, so that a literal will do
    for (std::size_t i = 0; i < N; ++i) text[i] = source[i];
  }
  [[nodiscard]] constexpr std::string_view view() const { return {text, N - 1}; }
  [[nodiscard]] constexpr std::size_t first_length() const {
    std::size_t end = 0;
    while (end + 1 < N && text[end] != ';') ++end;
    return end;
  }
};

/// Marks a member of `fields` that may be missing: `fields<"jpg", optional<"txt">>`. A missing one has no
/// bytes.
template <member_name Name>
inline constexpr auto optional = [] {
  auto marked = Name;
  marked.is_optional = true;
  return marked;
}();

/// A blob that may not be there; then it has no bytes and `has_value()` is false.
template <class Blob>
class optional_blob {
 public:
  using unfinished = void;
  optional_blob() = default;
  explicit optional_blob(Blob blob) : blob_(std::move(blob)), there_(true) {}
  [[nodiscard]] bool has_value() const noexcept { return there_; }
  [[nodiscard]] std::uint64_t size() const { return there_ ? static_cast<std::uint64_t>(blob_.size()) : 0; }
  void read_into(mutable_bytes into) const {
    if (there_) blob_.read_into(into);
  }
  [[nodiscard]] bytes_view finish() const { return there_ ? bytes_view(blob_.finish()) : bytes_view{}; }

 private:
  Blob blob_{};
  bool there_ = false;
};

namespace detail {

template <member_name M, std::size_t... Is>
constexpr auto spell_member(std::index_sequence<Is...>) -> name<M.text[Is]...> {
  return {};
}
template <member_name M>
using member_name_type = decltype(spell_member<M>(std::make_index_sequence<M.first_length()>{}));

/// The place of the first alternative that the sample has, or its size.
template <open_sample S>
std::size_t find_member(const S& sample, std::string_view alternatives) {
  while (true) {
    const auto end = alternatives.find(';');
    const auto wanted = alternatives.substr(0, end);
    for (std::size_t i = 0; i < sample.size(); ++i)
      if (std::string_view(sample.name(i)) == wanted) return i;
    if (end == std::string_view::npos) return sample.size();
    alternatives.remove_prefix(end + 1);
  }
}

template <open_sample S>
[[noreturn]] void throw_missing(const S& sample, std::string_view wanted) {
  std::string has;
  for (std::size_t i = 0; i < sample.size(); ++i) has.append(i == 0 ? "" : ", ").append(sample.name(i));
  throw error(errc::missing,
              {"the sample has no member '", wanted, "'; it has: ", (has.empty() ? "none" : has)})
      .for_key(sample.key());
}

}  // namespace detail

/// Closes a sample: chooses members by name and makes a record of them. `fields<"jpg;jpeg", "cls">`.
///
/// In: an open sample (key and a table of members), or a record, of which it keeps the fields named. Out: a
/// record of blobs, in the order written. A member that is missing is `errc::missing` with the key, unless it
/// is `optional<"name">`. Members that are not named are never read. Pointwise; keeps all five guarantees.
/// Cost: a few comparisons of short names.
///
///     webdataset("train-{000..127}.tar") | fields<"jpg;jpeg", "cls">
template <member_name... Names>
struct fields_stage {
  using penstock_part = pointwise_tag;
  static constexpr std::string_view stage_name = "fields";

  template <class V, class Call>
  auto apply(V&& sample, const Call&) const {
    if constexpr (any_record<V>) {
      using type = std::remove_cvref_t<V>;
      return record<
          typename type::template field_at<type::template index_of<detail::member_name_type<Names>>>...>(
          get<type::template index_of<detail::member_name_type<Names>>>(sample)...);
    } else {
      using blob_type = typename std::remove_cvref_t<V>::blob_type;
      return record<
          basic_field<detail::member_name_type<Names>,
                      std::conditional_t<Names.is_optional, optional_blob<blob_type>, blob_type>>...>(
          pick<Names>(sample)...);
    }
  }
  [[nodiscard]] std::string describe() const {
    std::string text = "fields<";
    std::size_t i = 0;
    ((text.append(i++ == 0 ? "" : ", ").append("\"").append(Names.view()).append("\"")), ...);
    return text + ">";
  }
  template <class Context>
  static consteval mistake diagnose() {
    using element = std::remove_cvref_t<typename Context::element>;
    if constexpr (!any_record<element> && !open_sample<element>)
      return mistake::fields_need_names;
    else if constexpr (!detail::names_differ<basic_field<detail::member_name_type<Names>, int>...>())
      return mistake::field_twice;
    else if constexpr (any_record<element>)
      return (has_field<element, detail::member_name_type<Names>> && ...) ? mistake::none
                                                                          : mistake::no_such_field;
    else
      return mistake::none;
  }

 private:
  template <member_name Name, class S>
  static auto pick(const S& sample) {
    using blob_type = typename S::blob_type;
    const std::size_t i = detail::find_member(sample, Name.view());
    if constexpr (Name.is_optional) {
      return i == sample.size() ? optional_blob<blob_type>() : optional_blob<blob_type>(sample.member(i));
    } else {
      if (i == sample.size()) detail::throw_missing(sample, Name.view());
      return sample.member(i);
    }
  }
};

template <member_name... Names>
inline constexpr fields_stage<Names...> fields{};

}  // namespace penstock::inline v0_1

// ---- penstock/stage/map.hpp

namespace penstock::inline v0_1 {

/// The explicit address of a random stage: `map(f, key("crop"))` draws the same numbers wherever the stage
/// stands.
struct key {
  std::uint64_t hash = 0;
  constexpr key() = default;
  constexpr explicit key(std::string_view text) {
    hash = 0xcbf29ce484222325u;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    hash |= 1;
  }
};

namespace detail {

/// A function that takes unfinished values says so with a member alias; others are handed finished ones.
template <class F>
concept takes_unfinished = requires { typename F::accepts_unfinished; };

template <class F, class V>
using argument_of = std::conditional_t<takes_unfinished<F>, V&&, finished<V>>;

template <class F, class V>
concept random_function =
    !std::invocable<const F&, argument_of<F, V>> && std::invocable<const F&, argument_of<F, V>, rng&>;

template <class F, class V>
consteval mistake diagnose_function() {
  using argument = argument_of<F, V>;
  if constexpr (std::invocable<const F&, argument>) {
    if constexpr (std::is_void_v<std::invoke_result_t<const F&, argument>>) return mistake::returns_nothing;
    return mistake::none;
  } else if constexpr (std::invocable<const F&, argument, rng&>) {
    if constexpr (std::is_void_v<std::invoke_result_t<const F&, argument, rng&>>)
      return mistake::returns_nothing;
    return mistake::none;
  } else if constexpr (std::invocable<F&, argument> || std::invocable<F&, argument, rng&>) {
    return mistake::mutable_function;
  } else {
    return mistake::wrong_argument;
  }
}

/// Calls a user's function with the value, finished unless it asked otherwise, and with random numbers if it
/// wants them.
template <class F, class V, class Call>
constexpr decltype(auto) call_function(const F& f, V&& value, const Call& c) {
  if constexpr (takes_unfinished<F>) {
    if constexpr (random_function<F, V>) {
      rng random = c.random();
      return f(std::forward<V>(value), random);
    } else {
      return f(std::forward<V>(value));
    }
  } else if constexpr (random_function<F, V>) {
    rng random = c.random();
    return f(penstock::finish(std::forward<V>(value)), random);
  } else {
    return f(penstock::finish(std::forward<V>(value)));
  }
}

}  // namespace detail

/// Replaces each sample by what a function makes of it. Made by `map(f)`.
///
/// In: any element; unfinished ones are finished first, unless `F` has a member alias `accepts_unfinished`.
/// Out: f's result; a view it returns must outlive the call (no pointers into locals). Pointwise; keeps all
/// five guarantees.
/// `f(sample)` or `f(sample, rng&)` must be callable when const: one object serves all workers at once. The
/// generator is keyed by the sample's position and this stage's number among the random stages, or by
/// `key("...")`.
/// Cost: the call, inlined. Throws what f throws, at the sample's place in the sequence.
///
///     from(std::vector{1, 2, 3}) | map([](int x) { return x * x; })
template <class F>
struct map_stage {
  using penstock_part = pointwise_tag;
  static constexpr std::string_view stage_name = "map";
  [[no_unique_address]] F function;
  key address;

  template <class V>
  static constexpr bool draws = detail::random_function<F, V>;

  template <class V, class Call>
  constexpr decltype(auto) apply(V&& value, const Call& c) const {
    return detail::call_function(function, std::forward<V>(value), c);
  }
  template <class Context>
  static consteval mistake diagnose() {
    return detail::diagnose_function<F, typename Context::element>();
  }
};

/// Replaces one field of each record by what a function makes of it. Made by `map<"name">(f)`.
///
/// In: a record with that field. Out: the same record with the field's new type. Other fields pass untouched
/// and unread. Otherwise like `map`.
template <class Name, class F>
struct map_field_stage {
  using penstock_part = pointwise_tag;
  static constexpr std::string_view stage_name = "map";
  [[no_unique_address]] F function;
  key address;

  template <class R>
  static constexpr bool draws = detail::random_function<
      F, std::tuple_element_t<std::remove_cvref_t<R>::template index_of<Name>, std::remove_cvref_t<R>>>;

  template <any_record R, class Call>
  constexpr auto apply(R&& sample, const Call& c) const {
    return [&]<std::size_t... Is>(std::index_sequence<Is...>) {
      return make<R>(detail_field<R, Is>(std::forward<R>(sample), c)...);
    }(std::make_index_sequence<std::remove_cvref_t<R>::size>{});
  }
  [[nodiscard]] std::string describe() const { return detail::text({"map<\"", Name::value, "\">"}); }

  template <class Context>
  static consteval mistake diagnose() {
    using element = std::remove_cvref_t<typename Context::element>;
    if constexpr (!has_field<element, Name>)
      return mistake::no_such_field;
    else
      return detail::diagnose_function<F, std::tuple_element_t<element::template index_of<Name>, element>>();
  }

 private:
  template <class R, std::size_t I, class Call>
  constexpr decltype(auto) detail_field(R&& sample, const Call& c) const {
    if constexpr (I == std::remove_cvref_t<R>::template index_of<Name>)
      return detail::call_function(function, get<I>(std::forward<R>(sample)), c);
    else
      return get<I>(std::forward<R>(sample));
  }
  template <class R, std::size_t... Is, class... Ts>
  static constexpr auto make_with(std::index_sequence<Is...>, Ts&&... values) {
    using from_type = std::remove_cvref_t<R>;
    return record<
        basic_field<typename from_type::template field_at<Is>::name_type, std::remove_cvref_t<Ts>>...>(
        std::forward<Ts>(values)...);
  }
  template <class R, class... Ts>
  static constexpr auto make(Ts&&... values) {
    return make_with<R>(std::make_index_sequence<sizeof...(Ts)>{}, std::forward<Ts>(values)...);
  }
};

template <class F>
[[nodiscard]] constexpr auto map(F function, key address = {}) {
  return map_stage<F>{std::move(function), address};
}
template <fixed_string Name, class F>
[[nodiscard]] constexpr auto map(F function, key address = {}) {
  return map_field_stage<name_of<Name>, F>{std::move(function), address};
}

}  // namespace penstock::inline v0_1

// ---- penstock/stage/filter.hpp

namespace penstock::inline v0_1 {

/// Keeps the samples for which a predicate holds. Made by `filter(f)`.
///
/// In: any element; out: the same. A decider: evaluated in parallel by the workers, survivors keep their
/// order. Loses `indexed`
/// and `lockstep` (`steps(n)` brings it back), after `shard` also `elastic`.
/// `f(sample) -> bool` or `f(sample, rng&) -> bool` must be callable when const. Where the predicate looks at
/// an unfinished field the field is read for it and again where it lands. Cost: the call; behind the last
/// decider a survivor is copied once more, in runs.
///
///     from(words) | filter([](std::string_view w) { return w.size() > 3; })
template <class F>
struct filter_stage {
  using penstock_part = decider_tag;
  static constexpr std::string_view stage_name = "filter";
  [[no_unique_address]] F function;
  key address;

  template <class V>
  static constexpr bool draws = detail::random_function<F, const std::remove_cvref_t<V>&>;

  template <class V, class Call>
  constexpr bool keep(const V& value, const Call& c) const {
    return static_cast<bool>(detail::call_function(function, value, c));
  }
  template <class Context>
  static consteval mistake diagnose() {
    using element = const std::remove_cvref_t<typename Context::element>&;
    constexpr mistake wrong = detail::diagnose_function<F, element>();
    if constexpr (wrong == mistake::returns_nothing) {
      return mistake::predicate_not_bool;
    } else if constexpr (wrong != mistake::none) {
      return wrong;
    } else {
      using argument = detail::argument_of<F, element>;
      if constexpr (std::invocable<const F&, argument>) {
        if constexpr (!std::convertible_to<std::invoke_result_t<const F&, argument>, bool>)
          return mistake::predicate_not_bool;
      } else if constexpr (!std::convertible_to<std::invoke_result_t<const F&, argument, rng&>, bool>) {
        return mistake::predicate_not_bool;
      }
      return mistake::none;
    }
  }
};

template <class F>
[[nodiscard]] constexpr auto filter(F function, key address = {}) {
  return filter_stage<F>{std::move(function), address};
}

}  // namespace penstock::inline v0_1

// ---- penstock/stage/memory.hpp

namespace penstock::inline v0_1 {

/// Bounds the bytes of batches in flight, their scratch included. An annotation: fewer batches are worked on
/// at once when they are large; at least one always is.
struct memory_stage {
  using penstock_part = annotation_tag;
  static constexpr std::string_view stage_name = "memory";
  std::uint64_t value{};

  void apply(run_options& options, bool /*after_batch*/) const { options.memory = value; }
  [[nodiscard]] std::string describe() const { return detail::text({"memory(", value, ")"}); }
};

[[nodiscard]] constexpr memory_stage memory(std::uint64_t value) { return {value}; }

}  // namespace penstock::inline v0_1

// ---- penstock/stage/pin_and_copy.hpp

namespace penstock::inline v0_1 {

/// Hands batches to where they will be used. `pin_and_copy` is the host's: slots come from its memory and
/// nothing is copied;
/// `pin_and_copy(device)` takes slot memory from the device's session (pinned for CUDA) and copies each batch
/// ahead of the consumer.
///
/// Keeps all five guarantees. Stands after `batch`. `describe` says which device it is.
template <device Device>
struct pin_and_copy_stage {
  using penstock_part = device_tag;
  static constexpr std::string_view stage_name = "pin_and_copy";
  using device_type = Device;
  Device device_value{};

  template <device Other>
  [[nodiscard]] constexpr pin_and_copy_stage<Other> operator()(Other other) const {
    return {other};
  }
  [[nodiscard]] std::string describe() const {
    return detail::text({"pin_and_copy(", device_value.describe(), ")"});
  }
};

inline constexpr pin_and_copy_stage<host> pin_and_copy{};

}  // namespace penstock::inline v0_1

// ---- penstock/stage/prefetch.hpp

namespace penstock::inline v0_1 {

/// Works ahead by `value` elements of the place where it stands: before `batch`, the bytes of that many
/// samples are asked for before their turn (files: `posix_fadvise`); after it, that many batches are
/// prepared. An annotation: the sequence does not change.
struct prefetch_stage {
  using penstock_part = annotation_tag;
  static constexpr std::string_view stage_name = "prefetch";
  std::uint64_t value{};

  void apply(run_options& options, bool after_batch) const {
    if (after_batch)
      options.depth = static_cast<std::size_t>(value) + 1;
    else
      options.ahead = value;
  }
  [[nodiscard]] std::string describe() const { return detail::text({"prefetch(", value, ")"}); }
};

[[nodiscard]] constexpr prefetch_stage prefetch(std::uint64_t value) { return {value}; }

}  // namespace penstock::inline v0_1

// ---- penstock/stage/require.hpp

namespace penstock::inline v0_1 {

/// Asks the compiler to check that the chain up to here keeps guarantees: `| require<guarantee::elastic>`.
/// Does nothing at run time; where one is lost, the one error names the stage that lost it.
template <guarantee... Gs>
struct require_stage {
  using penstock_part = require_tag;
  static constexpr std::string_view stage_name = "require";

  [[nodiscard]] std::string describe() const {
    std::string text = "require<";
    std::size_t i = 0;
    ((text.append(i++ == 0 ? "" : ", ").append(to_string(Gs))), ...);
    return text + ">";
  }
  template <class Context>
  static consteval mistake diagnose() {
    if constexpr (sizeof...(Gs) == 0) return mistake::require_nothing;
    mistake found = mistake::none;
    ((found = found != mistake::none ? found : Context::facts.lost_by_whom(Gs)), ...);
    return found;
  }
};

template <guarantee... Gs>
inline constexpr require_stage<Gs...> require{};

}  // namespace penstock::inline v0_1

// ---- penstock/stage/seed.hpp

namespace penstock::inline v0_1 {

/// The seed of random stages (`map` with a generator). An annotation; without it the seed of the first
/// shuffle counts, else 0.
struct seed_stage {
  using penstock_part = annotation_tag;
  static constexpr std::string_view stage_name = "seed";
  std::uint64_t value{};

  void apply(run_options& options, bool /*after_batch*/) const { options.seed = value; }
  [[nodiscard]] std::string describe() const { return detail::text({"seed(", value, ")"}); }
};

[[nodiscard]] constexpr seed_stage seed(std::uint64_t value) { return {value}; }

}  // namespace penstock::inline v0_1

// ---- penstock/stage/shuffle_buffer.hpp

namespace penstock::inline v0_1 {

/// Mixes samples within a buffer of `capacity`: each that comes out is drawn at random from those held, and
/// the next one of the sequence takes its place. Made by `shuffle_buffer(capacity, seed)`.
///
/// A sequencer: over an indexed source it holds positions, eight bytes each, and everything after it is still
/// evaluated in parallel; over a source that can only be read forward it holds samples, still encoded. An
/// epoch drains the buffer. Loses `indexed`;
/// after `shard` it mixes this rank's samples and loses `elastic`; over a source that can only be read
/// forward it loses `resumable`, since the samples it holds may be from anywhere before. What is drawn is
/// keyed by (seed, epoch, ordinal).
/// Cost: one random number and one exchange per sample in the consumer's thread.
///
///     webdataset(path) | shuffle_buffer(10'000) | decode<...> | batch(256)
struct shuffle_buffer_stage {
  using penstock_part = cursor_tag;
  static constexpr std::string_view stage_name = "shuffle_buffer";
  static constexpr mistake blame = mistake::lost_by_shuffle_buffer;

  std::uint64_t capacity = 1;
  std::uint64_t seed = 0;

  static consteval guarantee_set loses(place where) {
    guarantee_set lost(guarantee::indexed);
    if (where.after_shard) lost = lost.with(guarantee_set(guarantee::elastic));
    if (where.forward) lost = lost.with(guarantee_set(guarantee::resumable));  // it holds samples
    return lost;
  }
  [[nodiscard]] std::string describe() const {
    return detail::text({"shuffle_buffer(", capacity, ", seed ", seed, ")"});
  }
  template <class Hash>
  void fingerprint(Hash& h) const {
    h.add("shuffle_buffer", capacity, seed);
  }
};

[[nodiscard]] inline shuffle_buffer_stage shuffle_buffer(std::uint64_t capacity, std::uint64_t seed = 0) {
  if (capacity == 0)
    throw error(errc::argument, "shuffle_buffer(0) holds nothing; give it at least 1")
        .in_stage("shuffle_buffer");
  return {capacity, seed};
}

}  // namespace penstock::inline v0_1

// ---- penstock/stage/steps.hpp

namespace penstock::inline v0_1 {

/// Fixes an epoch to `count` batches on every rank: brings `lockstep` back after filter and unbatch.
///
/// Where the data end sooner, they begin again within the epoch, in a new order (upstream epoch e + pass *
/// 2^32); what is left after `count` batches is not delivered in this epoch. A pass over the data that gives
/// this rank nothing at all is an error.
struct steps_stage {
  using penstock_part = steps_tag;
  static constexpr std::string_view stage_name = "steps";
  std::uint64_t count = 0;

  [[nodiscard]] std::string describe() const { return detail::text({"steps(", count, ")"}); }
  template <class Hash>
  void fingerprint(Hash& h) const {
    h.add("steps", count);
  }
};

[[nodiscard]] inline steps_stage steps(std::uint64_t count) {
  if (count == 0)
    throw error(errc::argument, "steps(0) makes an epoch of no batches; give it at least 1")
        .in_stage("steps");
  return {count};
}

}  // namespace penstock::inline v0_1

// ---- penstock/stage/unbatch.hpp

namespace penstock::inline v0_1 {

namespace detail {

template <class V>
concept rows = requires(const V& v, std::size_t i) {
  { v.size() } -> std::convertible_to<std::size_t>;
  v[i];
};

template <class V>
using finished_value = std::remove_cvref_t<finished<V>>;

template <class V>
std::size_t row_count(const V& v) {
  if constexpr (requires { v.shape(); }) {
    if (v.shape().rank() == 0)
      throw error(errc::shape, "unbatch needs an array with at least one length, and got a scalar");
    return static_cast<std::size_t>(v.shape()[0]);
  } else {
    return v.size();
  }
}

template <class V>
struct row_of {
  using type = void;
};
template <rows V>
struct row_of<V> {
  using type = std::remove_cvref_t<decltype(std::declval<const V&>()[0])>;
};
template <class... Fields>
  requires(rows<finished_value<typename Fields::type>> && ...)
struct row_of<record<Fields...>> {
  using type = record<basic_field<typename Fields::name_type,
                                  typename row_of<finished_value<typename Fields::type>>::type>...>;
};

}  // namespace detail

/// Takes containers and arrays apart: a range yields its elements, an array its rows along the first length,
/// a record of equally long ones a record per row. Made by `unbatch`.
///
/// An expander: loses `indexed` and `lockstep` (`steps(n)` brings it back), after `shard` also `elastic`.
/// Rows of a record that differ in number are `errc::shape`. Cost: a copy of each row where it lands.
///
///     from(std::vector<std::vector<int>>{{1, 2}, {3}}) | unbatch        // 1, 2, 3
struct unbatch_stage {
  using penstock_part = expander_tag;
  static constexpr std::string_view stage_name = "unbatch";

  template <class In>
  using output = typename detail::row_of<detail::finished_value<In>>::type;

  template <class V, class Call, class Sink>
  void expand(V&& value, const Call&, Sink&& sink) const {
    decltype(auto) whole_value = penstock::finish(std::forward<V>(value));
    using type = std::remove_cvref_t<decltype(whole_value)>;
    if constexpr (any_record<type>) {
      [&]<std::size_t... Is>(std::index_sequence<Is...>) {
        const std::size_t lengths[] = {detail::row_count(get<Is>(whole_value))...};
        for (const std::size_t n : lengths)
          if (n != lengths[0])
            throw error(errc::shape, "unbatch: the fields of one sample have different numbers of rows");
        for (std::size_t i = 0; i < lengths[0]; ++i) sink(output<type>(get<Is>(whole_value)[i]...));
      }(std::make_index_sequence<type::size>{});
    } else {
      const std::size_t count = detail::row_count(whole_value);
      for (std::size_t i = 0; i < count; ++i) sink(whole_value[i]);
    }
  }
  template <class Context>
  static consteval mistake diagnose() {
    return std::is_void_v<output<typename Context::element>> ? mistake::not_expandable : mistake::none;
  }
};

inline constexpr unbatch_stage unbatch{};

}  // namespace penstock::inline v0_1

// ---- penstock/stage/watchdog.hpp

namespace penstock::inline v0_1 {

/// How long the consumer may wait for a batch before a line says what it waits for; 0 turns it off. 30 s by
/// default. An annotation.
struct watchdog_stage {
  using penstock_part = annotation_tag;
  static constexpr std::string_view stage_name = "watchdog";
  std::chrono::milliseconds value{};

  void apply(run_options& options, bool /*after_batch*/) const {
    options.watchdog_ms = static_cast<std::uint64_t>(value.count());
  }
  [[nodiscard]] std::string describe() const {
    return detail::text({"watchdog(", value.count(), " ms", ")"});
  }
};

[[nodiscard]] constexpr watchdog_stage watchdog(std::chrono::milliseconds value) { return {value}; }

}  // namespace penstock::inline v0_1

// ---- penstock/stage/workers.hpp

namespace penstock::inline v0_1 {

/// Says how many threads evaluate samples; 0 evaluates in the thread that asks for batches, with the same
/// bytes. An annotation: where it stands does not matter, the sequence does not change. Without it: the
/// processors this process may use, shared by the ranks of the node, less one, at least one.
struct workers_stage {
  using penstock_part = annotation_tag;
  static constexpr std::string_view stage_name = "workers";
  unsigned value{};

  void apply(run_options& options, bool /*after_batch*/) const { options.workers = value; }
  [[nodiscard]] std::string describe() const { return detail::text({"workers(", value, ")"}); }
};

[[nodiscard]] constexpr workers_stage workers(unsigned value) { return {value}; }

}  // namespace penstock::inline v0_1

// ---- penstock/storage/memory_files.hpp

namespace penstock::inline v0_1 {

/// Storage of named buffers in memory: for tests, for data that is generated, for what arrived by other
/// means.
///
/// `memory_files().add("a.tar", bytes)` keeps a copy of the bytes; `add_view` keeps only the view, whose
/// bytes must then outlive every run. A copy of the value shares the buffers. Sessions give views; reading is
/// a memcpy. An object that is asked for beyond its end is errc::format, a name added twice is
/// errc::argument.
/// Threads: `add` by one thread at a time; sessions by any number.
template <class = void>
class basic_memory_files {
  struct table {
    std::vector<std::string> names;
    std::vector<bytes_view> contents;
    std::vector<std::shared_ptr<const buffer>> owned;
  };

 public:
  /// What a run reads through; see `storage_session`.
  class session {
   public:
    static constexpr bool views = true;

    [[nodiscard]] std::uint64_t size(object_id id) const { return content(id).size(); }
    [[nodiscard]] object_signature signature(object_id id) const { return {size(id), 0}; }
    [[nodiscard]] bytes_view view(object_id id, std::uint64_t offset, std::uint64_t size) const {
      const bytes_view all = content(id);
      if (offset > all.size() || size > all.size() - offset) {
        throw error(errc::format, {"the object ends at ", all.size(), ", but ", size, " bytes were wanted"})
            .in_file(table_->names[id])
            .at_offset(offset);
      }
      return all.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(size));
    }
    void read(object_id id, std::uint64_t offset, mutable_bytes into) const {
      const bytes_view found = view(id, offset, into.size());
      if (!found.empty()) std::memcpy(into.data(), found.data(), found.size());
    }
    template <class Done>
    void read_many(std::span<const read_request> requests, Done&& done) const {
      for (std::size_t i = 0; i < requests.size(); ++i) {
        std::exception_ptr failure;
        try {
          read(requests[i].object, requests[i].offset, requests[i].into);
        } catch (...) {
          failure = std::current_exception();
        }
        done(i, failure);
      }
    }
    void will_need(object_id, std::uint64_t, std::uint64_t) const noexcept {}

   private:
    friend basic_memory_files;
    explicit session(std::shared_ptr<const table> shared) : table_(std::move(shared)) {}

    [[nodiscard]] bytes_view content(object_id id) const {
      if (id >= table_->contents.size()) throw error(errc::argument, {"there is no object ", id});
      return table_->contents[id];
    }

    std::shared_ptr<const table> table_;
  };

  basic_memory_files() : table_(new table()) {}

  basic_memory_files& add(std::string_view name, bytes_view bytes) & {
    std::shared_ptr<buffer> copy(new buffer(bytes.size()));
    if (!bytes.empty()) std::memcpy(copy->data(), bytes.data(), bytes.size());
    const bytes_view kept = copy->view();
    insert(name, kept, std::move(copy));
    return *this;
  }
  basic_memory_files& add(std::string_view name, std::string_view text) & {
    return add(name, bytes_of(text));
  }
  basic_memory_files& add_view(std::string_view name, bytes_view bytes) & {
    insert(name, bytes, nullptr);
    return *this;
  }
  basic_memory_files&& add(std::string_view name, bytes_view bytes) && { return std::move(add(name, bytes)); }
  basic_memory_files&& add(std::string_view name, std::string_view text) && {
    return std::move(add(name, text));
  }
  basic_memory_files&& add_view(std::string_view name, bytes_view bytes) && {
    return std::move(add_view(name, bytes));
  }

  [[nodiscard]] std::span<const std::string> names() const noexcept { return table_->names; }
  [[nodiscard]] session connect() const { return session(table_); }
  [[nodiscard]] std::string describe() const {
    return detail::text({"memory_files(", names().size(), " objects)"});
  }

 private:
  void insert(std::string_view name, bytes_view bytes, std::shared_ptr<const buffer> owner) {
    for (const std::string& known : table_->names) {
      if (known == name) throw error(errc::argument, "there is an object of this name already").in_file(name);
    }
    // Sessions and copies of this value may look at the table: whoever shares it gets a new one.
    std::shared_ptr<table> grown(new table(*table_));
    grown->names.emplace_back(name);
    grown->contents.push_back(bytes);
    grown->owned.push_back(std::move(owner));
    table_ = std::move(grown);
  }

  std::shared_ptr<const table> table_;
};
/// The form to use: see `basic_memory_files`.
using memory_files = basic_memory_files<>;

}  // namespace penstock::inline v0_1

// ---- penstock/codec/detail/lz4_frames.hpp

namespace penstock::inline v0_1 {
namespace detail {

/// One frame of an lz4 payload, before any of it is decompressed.
struct lz4_frame {
  bytes_view bytes;           // all of it
  bool skippable = false;     // without content
  bool known = false;         // whether it names the size of its content
  std::uint64_t content = 0;  // that size
  std::uint64_t bound = 0;    // what its blocks can hold at most
};

/// Walks the frames of a payload, block by block, without decompressing. It costs some nanoseconds for a
/// block, and gives what no header can fake: an upper bound, so that a lie about the size allocates nothing.
/// Source: LZ4 Frame Format Description, versions 1.5.1 to 1.6.4.
class lz4_frame_walk {
 public:
  explicit lz4_frame_walk(bytes_view packed) : packed_(packed) {
    if (packed.empty())
      throw error(errc::format, "there are no bytes, not even an empty lz4 frame").at_offset(0);
  }

  [[nodiscard]] bool done() const noexcept { return at_ == packed_.size(); }

  [[nodiscard]] lz4_frame next() {
    const std::size_t start = at_;
    lz4_frame frame;
    const bool begins = packed_.size() - at_ >= 4;
    const auto number = begins ? static_cast<std::uint32_t>(little(4)) : 0;
    if ((number & ~15u) == skippable) {
      frame.skippable = true;
      skip(little(4));
    } else if (number == magic) {
      read(frame, start);
    } else if (number == legacy) {
      throw error(errc::format, "this is lz4's legacy format, which is not supported: pack it again with lz4")
          .at_offset(start);
    } else {
      throw error(errc::format,
                  start == 0 ? "this is not an lz4 frame" : "there is something after the last lz4 frame")
          .at_offset(start);
    }
    frame.bytes = packed_.subspan(start, at_ - start);
    return frame;
  }

 private:
  static constexpr std::uint32_t magic = 0x184d2204u;
  static constexpr std::uint32_t legacy = 0x184c2102u;
  static constexpr std::uint32_t skippable = 0x184d2a50u;  // the last four bits are free

  [[nodiscard]] std::uint64_t little(std::size_t bytes) {
    need(bytes);
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i)
      value |= std::to_integer<std::uint64_t>(packed_[at_ + i]) << (8 * i);
    at_ += bytes;
    return value;
  }
  void skip(std::uint64_t bytes) {
    need(bytes);
    at_ += static_cast<std::size_t>(bytes);
  }
  void need(std::uint64_t bytes) const {
    if (packed_.size() - at_ < bytes)
      throw error(errc::format, "the lz4 frame is cut short").at_offset(packed_.size());
  }

  void read(lz4_frame& frame, std::size_t start) {
    const std::uint64_t flags = little(1);
    const std::uint64_t block = little(1);
    if (flags >> 6 != 1)
      throw error(errc::format, {"the lz4 frame has version ", flags >> 6, ", and only version 1 is known"})
          .at_offset(start + 4);
    const std::uint64_t code = block >> 4;
    if ((flags & 2) != 0 || (block & 0x0f) != 0 || code < 4 || code > 7)
      throw error(errc::format, "the lz4 frame header has a reserved bit set").at_offset(start + 4);
    const std::uint64_t most = std::uint64_t{1} << (8 + 2 * code);  // 64 KiB to 4 MiB
    frame.known = (flags & 8) != 0;
    if (frame.known) frame.content = little(8);
    if ((flags & 1) != 0) {
      if (const std::uint64_t dictionary = little(4); dictionary != 0)
        throw error(errc::format, {"the lz4 frame needs dictionary ", dictionary, ", and none is supported"})
            .at_offset(start);
    }
    skip(1);  // the checksum of the header, which the library compares
    for (;;) {
      const std::size_t at = at_;
      const std::uint64_t header = little(4);
      if (header == 0) break;
      const std::uint64_t size = header & 0x7fffffffu;
      if (size > most)
        throw error(errc::format, "the lz4 frame has a block that is larger than it says").at_offset(at);
      skip(size);
      // no byte of a packed block stands for more than 255
      frame.bound += (header >> 31) != 0 ? size : std::min(most, 255 * size);
      if ((flags & 16) != 0) skip(4);
    }
    if ((flags & 4) != 0) skip(4);
    if (frame.known && frame.content > frame.bound)
      throw error(errc::format, {"the lz4 frame says that it holds ", frame.content,
                                 " bytes, but its blocks hold at most ", frame.bound})
          .at_offset(start);
  }

  bytes_view packed_;
  std::size_t at_ = 0;
};

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/codec/detail/packed_blob.hpp

namespace penstock::inline v0_1::detail {

/// The content of a payload of frames: a blob. Where the frames name their sizes nothing is decompressed
/// until it is known where to. `Scratch` is what a worker keeps: `format`, `content`, `expand(packed, into,
/// bounded)`.
template <class Scratch>
class packed_blob {
 public:
  using unfinished = void;

  /// Content of `size` bytes, still packed.
  packed_blob(Scratch& scratch, bytes_view packed, std::uint64_t size) noexcept
      : scratch_(&scratch), packed_(packed), size_(size) {}
  /// Content that lies in the scratch already.
  explicit packed_blob(Scratch& scratch) noexcept
      : scratch_(&scratch), size_(scratch.content.size()), expanded_(true) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

  /// Decompresses to the destination of `size()` bytes.
  void read_into(mutable_bytes into) const {
    if (into.size() != size_)
      throw error(errc::argument, {Scratch::format, "_bytes: the destination has ", into.size(),
                                   " bytes, the content ", size_});
    if (expanded_) {
      if (!into.empty()) std::memcpy(into.data(), scratch_->content.data(), into.size());
    } else if (scratch_->expand(packed_, into, false) != size_) {
      throw error(errc::format,
                  {"the ", Scratch::format, " frames hold less than the ", size_, " bytes that they name"});
    }
  }

  /// The content, in the worker's scratch until its next use.
  [[nodiscard]] bytes_view finish() const {
    if (!expanded_) {
      scratch_->content.resize_for_overwrite(static_cast<std::size_t>(size_));
      read_into(scratch_->content.span());
      expanded_ = true;
    }
    return scratch_->content.view();
  }

 private:
  Scratch* scratch_;
  bytes_view packed_;
  std::uint64_t size_;
  mutable bool expanded_ = false;
};

}  // namespace penstock::inline v0_1::detail

// ---- penstock/codec/detail/zstd_frames.hpp

namespace penstock::inline v0_1 {
namespace detail {

/// What the frames of a zstd payload say about its content, before any of it is decompressed.
struct zstd_extent {
  std::uint64_t content = 0;  // the sum of the sizes that the frames name; meaningful where `known`
  std::uint64_t bound = 0;    // what their blocks can hold at most
  bool known = true;          // whether each frame names its size
};

/// Walks the frames of a payload, block by block, without decompressing. It costs some nanoseconds for 128
/// KiB of content, and gives what no header can fake: an upper bound, so that a lie about the size allocates
/// nothing.
/// Source: RFC 8878, sections 3.1.1 and 3.1.2.
class zstd_frame_walk {
 public:
  explicit zstd_frame_walk(bytes_view packed) noexcept : packed_(packed) {}

  [[nodiscard]] zstd_extent run() {
    if (packed_.empty())
      throw error(errc::format, "there are no bytes, not even an empty zstd frame").at_offset(0);
    while (at_ < packed_.size()) frame();
    return found_;
  }

 private:
  static constexpr std::uint32_t magic = 0xfd2fb528u;
  static constexpr std::uint32_t skippable = 0x184d2a50u;  // the last four bits are free

  [[nodiscard]] std::uint64_t little(std::size_t bytes) {
    if (packed_.size() - at_ < bytes)
      throw error(errc::format, "the zstd frame is cut short").at_offset(packed_.size());
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i)
      value |= std::to_integer<std::uint64_t>(packed_[at_ + i]) << (8 * i);
    at_ += bytes;
    return value;
  }
  void skip(std::uint64_t bytes) {
    if (packed_.size() - at_ < bytes)
      throw error(errc::format, "the zstd frame is cut short").at_offset(packed_.size());
    at_ += static_cast<std::size_t>(bytes);
  }

  void frame() {
    const std::size_t start = at_;
    const bool begins = packed_.size() - at_ >= 4;
    const auto number = begins ? static_cast<std::uint32_t>(little(4)) : 0;
    if ((number & ~15u) == skippable) return skip(little(4));
    if (number != magic)
      throw error(errc::format,
                  start == 0 ? "this is not a zstd frame" : "there is something after the last zstd frame")
          .at_offset(start);
    const auto descriptor = static_cast<unsigned>(little(1));
    const bool single_segment = (descriptor & 0x20) != 0;
    if ((descriptor & 0x08) != 0)
      throw error(errc::format, "the zstd frame header has a reserved bit set").at_offset(start + 4);
    constexpr std::size_t dictionary_bytes[] = {0, 1, 2, 4};
    const std::size_t size_bytes[] = {single_segment ? std::size_t{1} : std::size_t{0}, 2, 4, 8};
    const std::size_t size_field = size_bytes[descriptor >> 6];
    if (!single_segment) skip(1);
    if (const std::uint64_t dictionary = little(dictionary_bytes[descriptor & 3]); dictionary != 0)
      throw error(errc::format, {"the zstd frame needs dictionary ", dictionary, ", and none is supported"})
          .at_offset(start);
    std::uint64_t content = little(size_field);
    if (size_field == 2) content += 256;
    const std::uint64_t bound = blocks();
    if ((descriptor & 0x04) != 0) skip(4);
    if (size_field == 0) {
      found_.known = false;
    } else if (content > bound) {
      throw error(errc::format, {"the zstd frame says that it holds ", content,
                                 " bytes, but its blocks hold at most ", bound})
          .at_offset(start);
    }
    // no overflow: each block takes at least three bytes of input and holds less than 2^22
    found_.content += content;
    found_.bound += bound;
  }

  [[nodiscard]] std::uint64_t blocks() {
    std::uint64_t bound = 0;
    for (;;) {
      const std::size_t start = at_;
      const std::uint64_t header = little(3);
      const std::uint64_t size = header >> 3;
      switch (header >> 1 & 3) {
        case 0:
          skip(size);
          bound += size;
          break;
        case 1:
          skip(1);
          bound += size;
          break;
        case 2:
          skip(size);
          bound += 128_KiB;
          break;
        default:
          throw error(errc::format, "the zstd frame has a block of an unknown type").at_offset(start);
      }
      if ((header & 1) != 0) return bound;
    }
  }

  bytes_view packed_;
  std::size_t at_ = 0;
  zstd_extent found_;
};

}  // namespace detail
}  // namespace penstock::inline v0_1
