// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The features of a tf.train.Example, whatever they are called: `tf_example` reads those that are named.

#include "inspect_cells.hpp"

#include <penstock/core/bytes.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace inspection {

/// Reads the fields of a message of protocol buffers. A message that is damaged ends early, and is not
/// `whole`.
class message_reader {
 public:
  struct field {
    std::uint64_t number = 0, kind = 0, value = 0;
    std::string_view bytes;
  };

  explicit message_reader(std::string_view bytes) : left_(bytes) {}

  [[nodiscard]] bool whole() const noexcept { return whole_; }
  std::optional<field> next() {
    if (left_.empty() || !whole_) return std::nullopt;
    field one;
    const std::uint64_t key = varint();
    one.number = key >> 3;
    one.kind = key & 7;
    if (one.kind == 0)
      one.value = varint();
    else if (one.kind == 2)
      one.bytes = taken(varint());
    else if (one.kind == 5 || one.kind == 1)
      one.bytes = taken(one.kind == 5 ? 4 : 8);
    else
      whole_ = false;
    return whole_ && one.number != 0 ? std::optional(one) : (whole_ = false, std::nullopt);
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (left_.empty()) break;
      const auto byte = static_cast<unsigned char>(left_.front());
      left_.remove_prefix(1);
      value |= std::uint64_t{byte & 127u} << shift;
      if (byte < 128) return value;
    }
    whole_ = false;
    return 0;
  }
  [[nodiscard]] bool done() const noexcept { return left_.empty() || !whole_; }

 private:
  std::string_view taken(std::uint64_t size) {
    if (size > left_.size()) {
      whole_ = false;
      return {};
    }
    const std::string_view some = left_.substr(0, size);
    left_.remove_prefix(some.size());
    return some;
  }

  std::string_view left_;
  bool whole_ = true;
};

/// The values of a feature as a cell, whose type is that of `feature<"name", T>`; empty if there is none.
inline bool take_feature(cell& into, std::string_view feature) {
  message_reader outer(feature);
  const auto list = outer.next();
  if (!list || list->kind != 2 || list->number < 1 || list->number > 3) return false;
  std::vector<std::string_view> texts;
  std::vector<float> reals;
  std::vector<std::int64_t> wholes;
  const auto real = [&](std::string_view bytes) {
    for (; bytes.size() >= 4; bytes.remove_prefix(4)) std::memcpy(&reals.emplace_back(), bytes.data(), 4);
  };
  message_reader inner(list->bytes);
  while (const auto one = inner.next()) {
    if (one->number != 1) continue;
    if (list->number == 1) {
      texts.push_back(one->bytes);
    } else if (list->number == 2) {
      real(one->bytes);
    } else if (one->kind == 0) {
      wholes.push_back(static_cast<std::int64_t>(one->value));
    } else {
      for (message_reader packed(one->bytes); !packed.done();)
        wholes.push_back(static_cast<std::int64_t>(packed.varint()));
    }
  }
  if (!inner.whole()) return false;
  if (list->number == 1) {
    if (texts.size() != 1) {
      into.text = std::to_string(texts.size()) + " values of bytes";
      return true;
    }
    take_bytes(into, ps::bytes_of(texts.front()));
    into.type = "ps::bytes";
  } else if (list->number == 2) {
    into.type = reals.size() == 1 ? "float" : "std::vector<float>";
    into.text = reals.size() == 1 ? number_text(reals.front()) : numbers_text(reals, reals.size());
  } else {
    into.type = wholes.size() == 1 ? "std::int64_t" : "std::vector<std::int64_t>";
    into.text = wholes.size() == 1 ? number_text(wholes.front()) : numbers_text(wholes, wholes.size());
  }
  return true;
}

/// The features of an example, in the order of their names; none if the bytes are no example.
inline std::vector<cell> features_of(std::string_view example) {
  std::vector<cell> made;
  message_reader outer(example);
  while (const auto features = outer.next()) {
    if (features->number != 1 || features->kind != 2) return {};
    message_reader map(features->bytes);
    while (const auto entry = map.next()) {
      if (entry->number != 1 || entry->kind != 2) return {};
      message_reader pair(entry->bytes);
      cell one;
      bool found = false;
      while (const auto part = pair.next()) {
        if (part->number == 1) one.name = part->bytes;
        if (part->number == 2) found = take_feature(one, part->bytes);
      }
      if (!found || one.name.empty()) return {};
      made.push_back(std::move(one));
    }
    if (!map.whole()) return {};
  }
  if (!outer.whole()) return {};
  std::sort(made.begin(), made.end(), [](const cell& a, const cell& b) { return a.name < b.name; });
  return made;
}

}  // namespace inspection
