// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/tf_example.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/to_size.hpp>

#include <bit>

namespace penstock::inline v0_1 {

namespace detail {

// One field of a message of protocol buffers: a number, or the bytes of a text, a message or packed values.
struct proto_field {
  enum class form : std::uint8_t {
    varint = 0,
    fixed64 = 1,
    bytes = 2,
    group = 3,
    end_of_group = 4,
    fixed32 = 5
  };

  std::uint32_t number = 0;
  form is = form::varint;
  std::uint64_t value = 0;
  bytes_view content;
};

// Goes through the fields of a message that lies in `whole`.
class proto_walk {
 public:
  proto_walk(bytes_view whole, bytes_view message) noexcept
      : begin_(whole.data()), at_(message.data()), end_(message.data() + message.size()) {}

  // False at the end. Groups, which nobody writes any more, are passed over.
  [[nodiscard]] bool next(proto_field& f) {
    constexpr std::size_t deepest = 100;
    std::size_t depth = 0;
    while (at_ != end_) {
      take(f);
      if (f.is == proto_field::form::group) {
        if (++depth > deepest) damaged("a group in more than 100 others");
      } else if (f.is == proto_field::form::end_of_group) {
        if (depth-- == 0) damaged("the end of a group that did not begin");
      } else if (depth == 0) {
        return true;
      }
    }
    if (depth != 0) damaged("a group without an end");
    return false;
  }
  [[nodiscard]] std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned bits = 0; bits < 70; bits += 7) {
      if (at_ == end_) damaged("the end of the message within a number");
      const auto byte = std::to_integer<std::uint64_t>(*at_++);
      value |= (byte & 127) << bits;
      if (byte < 128) return value;
    }
    damaged("a number of more than 10 bytes");
  }
  [[nodiscard]] bool at_end() const noexcept { return at_ == end_; }
  [[noreturn, gnu::cold]] void damaged(std::string_view what) const {
    throw error(errc::format,
                {"this is no tf.train.Example or SequenceExample, or it is damaged: it has ", what})
        .at_offset(static_cast<std::uint64_t>(at_ - begin_));
  }

 private:
  void take(proto_field& f) {
    const std::uint64_t tag = varint();
    if (tag >> 35 != 0 || tag < 8) damaged("a field without a number");
    f.number = static_cast<std::uint32_t>(tag >> 3);
    if ((tag & 7) > 5) damaged("a field of an unknown form");
    f.is = static_cast<proto_field::form>(tag & 7);
    switch (f.is) {
      case proto_field::form::varint:
        f.value = varint();
        break;
      case proto_field::form::fixed64:
        f.content = some(8);
        break;
      case proto_field::form::fixed32:
        f.content = some(4);
        break;
      case proto_field::form::bytes:
        f.content = some(varint());
        break;
      case proto_field::form::group:
      case proto_field::form::end_of_group:
        break;
    }
  }
  [[nodiscard]] bytes_view some(std::uint64_t size) {
    if (size > static_cast<std::uint64_t>(end_ - at_)) damaged("a field that goes beyond its end");
    const bytes_view found(at_, to_size(size));
    at_ += size;
    return found;
  }

  const std::byte* begin_;
  const std::byte* at_;
  const std::byte* end_;
};

// Calls f(content) for each field of bytes with this number.
template <class F>
void each_content(bytes_view whole, bytes_view message, std::uint32_t number, F&& f) {
  proto_walk walk(whole, message);
  for (proto_field one; walk.next(one);)
    if (one.number == number && one.is == proto_field::form::bytes) f(one.content);
}

PENSTOCK_INLINE void find_tf_features(bytes_view example, std::span<tf_feature> wanted, std::uint32_t map) {
  for (tf_feature& one : wanted) one.entry = {};
  const auto entry_of = [&](bytes_view entry) {
    bytes_view key;
    each_content(example, entry, 1, [&](bytes_view name) { key = name; });
    for (tf_feature& one : wanted)
      if (one.name == text_of(key)) one.entry = entry;
  };
  each_content(example, example, map,
               [&](bytes_view features) { each_content(example, features, 1, entry_of); });
}

// The lists of a feature by their numbers: what their values are called, and which one has those of a type.
inline constexpr std::string_view tf_lists[] = {"nothing", "bytes", "floats", "integers"};

template <class T>
inline constexpr std::uint32_t tf_list_of = std::same_as<T, float>          ? 2
                                            : std::same_as<T, std::int64_t> ? 3
                                                                            : 1;

inline void append_tf_list(bytes_view example, bytes_view list, std::vector<std::int64_t>& into) {
  proto_walk walk(example, list);
  for (proto_field f; walk.next(f);) {
    if (f.number != 1) continue;
    if (f.is == proto_field::form::varint) into.push_back(std::bit_cast<std::int64_t>(f.value));
    if (f.is != proto_field::form::bytes) continue;
    for (proto_walk packed(example, f.content); !packed.at_end();)
      into.push_back(std::bit_cast<std::int64_t>(packed.varint()));
  }
}

inline void append_tf_list(bytes_view example, bytes_view list, std::vector<float>& into) {
  proto_walk walk(example, list);
  for (proto_field f; walk.next(f);) {
    if (f.number != 1 || (f.is != proto_field::form::bytes && f.is != proto_field::form::fixed32)) continue;
    if (f.content.size() % 4 != 0) walk.damaged("packed floats whose bytes are no multiple of 4");
    const std::size_t before = into.size();
    into.resize(before + f.content.size() / 4);
    for (std::size_t i = 0; i < f.content.size() / 4; ++i)
      into[before + i] = std::bit_cast<float>(load_little<std::uint32_t>(f.content.data() + 4 * i));
  }
}

inline void append_tf_list(bytes_view example, bytes_view list, std::vector<bytes_view>& into) {
  each_content(example, list, 1, [&](bytes_view value) { into.push_back(value); });
}

// Adds the values of a feature, whose message may come in parts, with which `each_part` calls what it is
// given. A list of another kind replaces those before it. Throws if the values are of another kind.
template <class T, class EachPart>
void append_tf_feature(bytes_view example, std::string_view name, std::vector<T>& into,
                       const EachPart& each_part) {
  const std::size_t begin = into.size();
  std::uint32_t found = 0;
  bytes_view last;
  each_part([&](bytes_view message) {
    proto_walk walk(example, message);
    for (proto_field f; walk.next(f);) {
      if (f.is != proto_field::form::bytes || f.number == 0 || f.number > 3) continue;
      if (f.number != tf_list_of<T>)
        into.resize(begin);
      else
        append_tf_list(example, f.content, into);
      found = f.number;
      last = f.content;
    }
  });
  if (found != 0 && found != tf_list_of<T>)
    throw error(errc::format, {"the feature '", name, "' has ", tf_lists[found], ", but ",
                               tf_lists[tf_list_of<T>], " were asked for"})
        .at_offset(static_cast<std::uint64_t>(last.data() - example.data()));
}

template <class T>
void read_tf_values_of(bytes_view example, const tf_feature& one, std::vector<T>& into,
                       std::vector<std::size_t>* ends) {
  into.clear();
  if (ends != nullptr) ends->clear();
  if (one.entry.data() == nullptr) return;
  const auto contents = [&](const auto& add) { each_content(example, one.entry, 2, add); };
  if (ends == nullptr) return append_tf_feature(example, one.name, into, contents);
  contents([&](bytes_view list) {
    each_content(example, list, 1, [&](bytes_view step) {
      append_tf_feature(example, one.name, into, [&](const auto& add) { add(step); });
      ends->push_back(into.size());
    });
  });
}

PENSTOCK_INLINE void read_tf_values(bytes_view example, const tf_feature& one,
                                    std::vector<std::int64_t>& into, std::vector<std::size_t>* ends) {
  read_tf_values_of(example, one, into, ends);
}

PENSTOCK_INLINE void read_tf_values(bytes_view example, const tf_feature& one, std::vector<float>& into,
                                    std::vector<std::size_t>* ends) {
  read_tf_values_of(example, one, into, ends);
}

PENSTOCK_INLINE void read_tf_values(bytes_view example, const tf_feature& one, std::vector<bytes_view>& into,
                                    std::vector<std::size_t>* ends) {
  read_tf_values_of(example, one, into, ends);
}

PENSTOCK_INLINE void check_tf_steps(std::string_view name, std::span<const std::size_t> ends,
                                    std::size_t wanted) {
  std::size_t before = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (ends[i] - before != wanted)
      throw error(errc::shape,
                  {"step ", i, " of the feature list '", name, "' has ", ends[i] - before, " values, but ",
                   wanted, wanted == 1 ? " was" : " were", " asked for; a std::vector takes any number"});
    before = ends[i];
  }
}

PENSTOCK_INLINE void no_tf_value(std::string_view name, bool number) {
  if (!number) throw error(errc::missing, {"the example has no value for the feature '", name, "'"});
  throw error(errc::missing,
              {"the example has no value for the feature '", name,
               "'; where that is right, name one to take instead: feature<\"", name, "\", T, value>"});
}

PENSTOCK_INLINE void other_tf_count(std::string_view name, std::uint64_t found, std::uint64_t wanted) {
  throw error(errc::shape, {"the feature '", name, "' has ", found, " values, but ", wanted,
                            wanted == 1 ? " was" : " were", " asked for; a std::span takes any number"});
}

PENSTOCK_INLINE void tf_value_out_of_range(std::string_view name) {
  throw error(errc::format, {"a value of the feature '", name, "' is out of the range of its type"});
}

}  // namespace detail

}  // namespace penstock::inline v0_1
