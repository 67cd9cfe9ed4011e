// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

/// The structs of Arrow's C data and C stream interfaces, through which libraries exchange columns without
/// copying them. They have the layout of ArrowSchema, ArrowArray and ArrowArrayStream: a pointer to one may
/// be cast to a pointer to the other. This library has its own so that it depends on no other.
///
/// Source: Arrow, "The Arrow C data interface" and "The Arrow C stream interface".
namespace penstock::inline v0_1::arrow_abi {

/// Bits of `schema::flags`.
inline constexpr std::int64_t dictionary_ordered = 1, nullable = 2, map_keys_sorted = 4;

struct schema {
  const char* format = nullptr;    ///< the type: "l" is int64
  const char* name = nullptr;      ///< may be null
  const char* metadata = nullptr;  ///< may be null
  std::int64_t flags = 0;
  std::int64_t n_children = 0;
  schema** children = nullptr;
  schema* dictionary = nullptr;
  void (*release)(schema* self) = nullptr;  ///< null: nothing is here, or it was moved away
  void* private_data = nullptr;
};

struct array {
  std::int64_t length = 0;
  std::int64_t null_count = 0;  ///< -1: not counted
  std::int64_t offset = 0;      ///< of the first value in the buffers
  std::int64_t n_buffers = 0;
  std::int64_t n_children = 0;
  const void** buffers = nullptr;
  array** children = nullptr;
  array* dictionary = nullptr;
  void (*release)(array* self) = nullptr;  ///< null: nothing is here, or it was moved away
  void* private_data = nullptr;
};

struct array_stream {
  int (*get_schema)(array_stream* self, schema* out) = nullptr;  ///< 0, or a number of errno
  int (*get_next)(array_stream* self, array* out) = nullptr;     ///< at the end `out` is released
  const char* (*get_last_error)(array_stream* self) = nullptr;   ///< may return null
  void (*release)(array_stream* self) = nullptr;  ///< null: nothing is here, or it was moved away
  void* private_data = nullptr;
};

static_assert(sizeof(void*) != 8 || (sizeof(schema) == 72 && offsetof(schema, release) == 56 &&
                                     sizeof(array) == 80 && offsetof(array, release) == 64 &&
                                     sizeof(array_stream) == 40 && offsetof(array_stream, release) == 24),
              "the layout is that of Arrow's C interfaces");

/// Owns one of these structs, and releases it. The struct is moved out of where it was.
template <class T>
class held {
 public:
  held() = default;
  /// Takes it from a struct, which counts as released then.
  explicit held(T& from) noexcept : value_(from) { from.release = nullptr; }
  held(held&& other) noexcept : value_(other.value_) { other.value_.release = nullptr; }
  held& operator=(held&& other) noexcept {
    held taken(static_cast<held&&>(other));
    const T mine = value_;
    value_ = taken.value_;
    taken.value_ = mine;
    return *this;
  }
  ~held() {
    if (value_.release != nullptr) value_.release(&value_);
  }

  [[nodiscard]] bool empty() const noexcept { return value_.release == nullptr; }
  /// For functions that fill it.
  [[nodiscard]] T* get() noexcept { return &value_; }
  [[nodiscard]] const T& operator*() const noexcept { return value_; }
  [[nodiscard]] const T* operator->() const noexcept { return &value_; }
  /// Gives it away.
  [[nodiscard]] T release() noexcept {
    const T given = value_;
    value_.release = nullptr;
    return given;
  }

 private:
  T value_{};
};

}  // namespace penstock::inline v0_1::arrow_abi
