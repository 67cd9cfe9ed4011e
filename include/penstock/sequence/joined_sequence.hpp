// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/sequence/token_sequence.hpp>

#include <array>
#include <cstring>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

/// What `join_fields` makes: sequences of a sample as one, before they are in their slot.
namespace penstock::inline v0_1 {

namespace detail {

/// A part of a joined sequence: a value that is about to go is moved here, another one is referred to.
template <class V>
class joined_part {
 public:
  explicit constexpr joined_part(V&& value) : value_(keep(std::forward<V>(value))) {}

  [[nodiscard]] std::uint64_t size() const {
    if constexpr (requires { value().shape().rank(); }) {
      if (value().shape().rank() != 1) [[unlikely]]
        refuse_sequence("join_fields", value().shape());
      return value().shape()[0];
    } else {
      return token_span(value()).size();
    }
  }
  template <class T>
  void write_to(const destination<T>& into) const {
    if constexpr (array_expression<type>)
      write_array(value(), into);
    else
      into.copy_from(token_span(value()));
  }

 private:
  using type = std::remove_cvref_t<V>;
  static constexpr bool refers = std::is_lvalue_reference_v<V>;

  static constexpr decltype(auto) keep(V&& value) {
    if constexpr (refers)
      return &value;
    else
      return std::move(value);
  }
  [[nodiscard]] const type& value() const {
    if constexpr (refers)
      return *value_;
    else
      return value_;
  }

  std::conditional_t<refers, const type*, type> value_;
};

}  // namespace detail

/// Sequences one behind the other, as an array that is not computed yet: each writes itself to its part of
/// the destination, so that nothing is copied on the way. Made by `join_fields`.
template <class T, class... Parts>
class joined_sequence {
 public:
  using unfinished = void;
  using value_type = T;

  /// `memory` is where the array is written if it is finished before it has a place.
  joined_sequence(std::span<const T> begin, std::span<const T> end, buffer& memory, Parts... parts)
      : begin_(begin), end_(end), memory_(&memory), parts_(std::move(parts)...) {
    length_ = begin_.size() + end_.size();
    std::apply([this](const auto&... part) { ((length_ += part.size()), ...); }, parts_);
  }

  [[nodiscard]] extents shape() const noexcept { return extents(length_); }
  void write_to(const destination<T>& into) const {
    std::uint64_t at = 0;
    const auto next = [&](std::uint64_t size) {
      const auto first = static_cast<std::int64_t>(std::exchange(at, at + size));
      return destination<T>(into.data() + first * into.strides()[0], extents(size), into.strides(),
                            into.space());
    };
    next(begin_.size()).copy_from(begin_);
    std::apply([&](const auto&... part) { (part.write_to(next(part.size())), ...); }, parts_);
    next(end_.size()).copy_from(end_);
  }
  /// Valid until the worker's next sample.
  [[nodiscard]] tensor_view<const T> finish() const {
    const std::span<T> room = detail::token_room<T>(*memory_, detail::to_size(length_));
    write_to(destination<T>(room.data(), shape()));
    return {room.data(), shape()};
  }

 private:
  std::span<const T> begin_, end_;
  buffer* memory_;
  std::uint64_t length_;
  std::tuple<Parts...> parts_;
};

/// A mask of a joined sequence: a number of equal values, and the next. Made by `join_fields`.
template <std::size_t Runs>
class joined_mask {
 public:
  using unfinished = void;
  using value_type = std::uint8_t;
  struct run {
    std::uint64_t length;
    std::uint8_t value;
  };

  joined_mask(const std::array<run, Runs>& runs, buffer& memory) : runs_(runs), memory_(&memory) {
    for (const run& each : runs_) length_ += each.length;
  }

  [[nodiscard]] extents shape() const noexcept { return extents(length_); }
  void write_to(const destination<std::uint8_t>& into) const {
    if (into.dense()) {
      std::uint8_t* out = into.data();
      for (const run& each : runs_) {
        if (each.length != 0) std::memset(out, each.value, detail::to_size(each.length));
        out += each.length;
      }
    } else {
      std::size_t i = 0;
      std::uint64_t left = runs_[0].length;
      into.fill_from([&] {
        while (left == 0) left = runs_[++i].length;
        --left;
        return runs_[i].value;
      });
    }
  }
  /// Valid until the worker's next sample.
  [[nodiscard]] tensor_view<const std::uint8_t> finish() const {
    const auto room = detail::token_room<std::uint8_t>(*memory_, detail::to_size(length_));
    write_to(destination<std::uint8_t>(room.data(), shape()));
    return {room.data(), shape()};
  }

 private:
  std::array<run, Runs> runs_;
  buffer* memory_;
  std::uint64_t length_ = 0;
};

}  // namespace penstock::inline v0_1
