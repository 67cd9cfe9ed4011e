// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<nlohmann/json.hpp>)
#error "penstock/codec/json.hpp needs nlohmann-json: link penstock::json"
#endif

#include <penstock/codec/concepts.hpp>
#include <penstock/codec/layouts/json_text.hpp>
#include <penstock/core/error.hpp>

#include <nlohmann/json.hpp>

namespace penstock::inline v0_1 {

/// A JSON document of any shape: nlohmann's type.
using json_value = nlohmann::json;

/// JSON documents of any shape.
///
/// In: any byte element. Out: a `json_value`, which is nlohmann's type and owns its contents: extract what a
/// batch needs with `map`, or use `json_field` in the first place. `NaN`, `Infinity` and `-Infinity`, as
/// Python writes them, are numbers (nlohmann's `dump` writes null for them), and half a surrogate pair in a
/// text (`\ud83d`) is U+FFFD. A byte order mark in front is passed over.
/// Kind: pointwise, keeps all guarantees. Cost per sample: nlohmann's, which allocates for each text, list
/// and object. Thread-safe.
/// Throws `errc::format` with the offset if the text is not JSON (RFC 8259, in UTF-8); `errc::limit` for more
/// than `limit` bytes, and for lists and objects nested deeper than `depth`. A value takes up to twenty times
/// the bytes of its text.
///
///     auto widths = lines("boxes.jsonl") | decode<json> |
///                   map([](const json_value& v) { return v["box"][2].get<float>(); });
struct json {
  /// The maximum length of the text in bytes.
  std::uint64_t limit = 64_MiB;
  /// The maximum nesting depth of lists and objects.
  std::uint64_t depth = 128;

  static constexpr std::string_view codec_name = "json";
  static constexpr std::string_view extensions[] = {"json", "jsn"};

  template <byte_element Bytes>
  [[nodiscard]] json_value decode(const Bytes& in, no_scratch&) const {
    const std::string_view text = detail::json_text(as_bytes(in), limit);
    const detail::json_extras extras = detail::check_json_depth(text, depth);
    try {
      if (extras.words || extras.surrogates) return decode_more(std::string(text));
      return json_value::parse(text.data(), text.data() + text.size());
    } catch (const json_value::parse_error& e) {
      detail::json_malformed(text, e.byte == 0 ? 0 : e.byte - 1);
    } catch (const json_value::out_of_range&) {
      throw error(errc::format, "a number in the JSON is beyond the range of double");
    }
  }

 private:
  [[gnu::cold]] static json_value decode_more(std::string text) {
    const auto special = detail::to_plain_json(text);
    std::size_t numbers = 0, next = 0;
    const auto put_special = [&](int, json_value::parse_event_t event, json_value& value) {
      if (event == json_value::parse_event_t::value && value.is_number() && next != special.size() &&
          numbers++ == special[next].first)
        value = special[next++].second;
      return true;
    };
    return json_value::parse(text, put_special);
  }
};

}  // namespace penstock::inline v0_1
