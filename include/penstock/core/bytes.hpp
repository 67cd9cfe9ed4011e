// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>

#include <bit>
#include <concepts>
#include <cstring>
#include <new>
#include <span>
#include <string_view>
#include <utility>

namespace penstock::inline v0_1 {

/// A non-owning view of bytes.
using bytes_view = std::span<const std::byte>;
/// A non-owning view of bytes for the callee to write.
using mutable_bytes = std::span<std::byte>;

/// The bytes of a text. The view is valid as long as the text.
[[nodiscard]] inline bytes_view bytes_of(std::string_view text) noexcept {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

/// Bytes as text: no copy, and the encoding is not checked.
[[nodiscard]] inline std::string_view text_of(bytes_view bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// A size in bytes, for arguments where a plain number would mean samples: `prefetch(64_MiB)`. Converts to a
/// plain number.
class byte_count {
 public:
  constexpr byte_count() noexcept = default;
  constexpr explicit byte_count(std::uint64_t bytes) noexcept : bytes_(bytes) {}
  constexpr operator std::uint64_t() const noexcept { return bytes_; }

 private:
  std::uint64_t bytes_ = 0;
};

inline namespace literals {
[[nodiscard]] consteval byte_count operator""_KiB(unsigned long long n) { return byte_count(n << 10); }
[[nodiscard]] consteval byte_count operator""_MiB(unsigned long long n) { return byte_count(n << 20); }
[[nodiscard]] consteval byte_count operator""_GiB(unsigned long long n) { return byte_count(n << 30); }
}  // namespace literals

namespace detail {

/// Reads and writes the numbers in files, which are little-endian on every machine.
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

/// An owned, 64-byte-aligned byte buffer that keeps its capacity: the scratch space of workers and codecs.
///
/// Growing does not initialise the new bytes. A default-constructed buffer allocates nothing. Move-only,
/// because a copy on the sample path would be a mistake.
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

  /// Sets the size; the contents are unspecified afterwards. Allocates only if `size` exceeds the capacity;
  /// throws std::bad_alloc if that fails.
  void resize_for_overwrite(std::size_t size) {
    if (size > capacity_) reserve(size);
    size_ = size;
  }

  /// Appends a copy of `bytes`, which may be part of this buffer, and keeps the existing contents. Amortised
  /// constant time per byte.
  void append(bytes_view bytes) {
    const std::size_t before = size_;
    buffer grown;  // frees the old memory once everything is copied
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
  [[gnu::cold]] void reserve(std::size_t size) {
    constexpr std::size_t largest = static_cast<std::size_t>(-1) / 4;  // so that no sum of sizes overflows
    const std::size_t wanted = size > largest ? size : size + size / 4;
    void* const fresh =
        size > largest ? nullptr : ::operator new(wanted, std::align_val_t{alignment}, std::nothrow);
    if (fresh == nullptr)
      throw out_of_memory(size, "a buffer",
                          "if the file says that a sample is so large, it may be damaged: see bad_samples");
    release();
    data_ = static_cast<std::byte*>(fresh);
    capacity_ = wanted;
  }
  void release() noexcept {
    if (data_ != nullptr) ::operator delete(data_, std::align_val_t{alignment});
  }

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace penstock::inline v0_1
