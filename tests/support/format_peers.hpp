// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The libraries whose datasets Penstock reads, at work on generated data: see format_peers.py.

#include <penstock/codec/concepts.hpp>
#include <penstock/codec/raw_number.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/half.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/run/run.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/workers.hpp>

#include "support/catch.hpp"
#include "support/external_program.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace penstock_test {

/// A library of other people's, in a Python of its own: $PENSTOCK_TEST_FORMATS.
class format_peer {
 public:
  /// The library; nothing, with a warning, if it is not there. In CI, where it must be there, the test fails.
  [[nodiscard]] static std::optional<format_peer> find(const std::string& name) {
    const char* const python = std::getenv("PENSTOCK_TEST_FORMATS");
    const char* const support = std::getenv("PENSTOCK_TEST_SUPPORT");
    format_peer peer;
    const bool named = support != nullptr && python != nullptr && *python != '\0';
    if (named) peer.program_ = "'" + std::string(python) + "' '" + support + "/format_peers.py' ";
    if (!have_program(name + " in the Python that PENSTOCK_TEST_FORMATS names",
                      named ? peer.program_ + "check " + name : "false"))
      return std::nullopt;
    return peer;
  }

  /// Makes the library write or read a dataset for each seed, in one process: "write mds".
  void run(const std::string& task, const std::filesystem::path& folder, int first, int count) const {
    const program_result done = run_program(program_ + task + " '" + folder.string() + "' " +
                                            std::to_string(first) + " " + std::to_string(count));
    INFO(done.output);
    REQUIRE(done.status == 0);
  }

 private:
  std::string program_;
};

/// What the library says that a dataset has: "3.expected" or "3.read".
[[nodiscard]] inline std::string peer_values(const std::filesystem::path& folder, int seed,
                                             const char* ending) {
  std::ifstream in(folder / (std::to_string(seed) + ending), std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The first line in which two texts differ, cut; empty if they are equal.
[[nodiscard]] inline std::string first_difference(std::string_view found, std::string_view expected) {
  for (std::size_t line = 1; found != expected; ++line) {
    const std::string_view one = found.substr(0, found.find('\n')),
                           other = expected.substr(0, expected.find('\n'));
    if (one != other || found.empty() || expected.empty()) {
      const auto at = static_cast<std::size_t>(std::ranges::mismatch(one, other).in1 - one.begin());
      const std::size_t from = at < 60 ? 0 : at - 60;
      return "line " + std::to_string(line) + ": found " + std::string(one.substr(from, 160)) +
             "\n and expected " + std::string(other.substr(std::min(from, other.size()), 160));
    }
    if (found.size() == one.size() || expected.size() == other.size())
      return "only one ends with a line's end, or with more lines";
    found.remove_prefix(one.size() + 1);
    expected.remove_prefix(other.size() + 1);
  }
  return {};
}

// Values, printed as format_peers.py prints them.

[[nodiscard]] inline std::string hex_text(penstock::bytes_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string made;
  for (const std::byte one : bytes) {
    made += digits[std::to_integer<std::size_t>(one) >> 4];
    made += digits[std::to_integer<std::size_t>(one) & 15];
  }
  return made;
}
[[nodiscard]] inline std::string quoted_hex(penstock::bytes_view bytes) {
  return '"' + hex_text(bytes) + '"';
}
[[nodiscard]] inline std::string real_text(double value) {
  if (std::isnan(value)) return "nan";
  const auto bits = std::bit_cast<std::uint64_t>(value);
  std::string made;
  for (int i = 7; i >= 0; --i) {
    const auto byte = static_cast<std::byte>(bits >> (8 * i));
    made += hex_text({&byte, 1});
  }
  return made;
}
template <class T>
[[nodiscard]] std::string number_text(T value) {
  if constexpr (std::same_as<T, penstock::half>)
    return real_text(static_cast<double>(static_cast<float>(value)));
  else if constexpr (std::floating_point<T>)
    return real_text(static_cast<double>(value));
  else
    return std::to_string(value);
}
[[nodiscard]] inline std::string list_text(const std::vector<std::string>& parts) {
  std::string all = "[";
  for (const std::string& one : parts)
    all += (all.size() == 1 ? "" : ",") + quoted_hex(penstock::bytes_of(one));
  return all + "]";
}
/// An array, or what becomes one.
template <class T>
[[nodiscard]] std::string array_text(const T& given) {
  const auto& values = [&]() -> decltype(auto) {
    if constexpr (requires { given.finish(); })
      return given.finish();
    else
      return given;
  }();
  using value = std::remove_cvref_t<decltype(*values.flat().data())>;
  std::string made(penstock::mds_dtype<value>);
  made += '[';
  for (std::size_t i = 0; i < values.shape().rank(); ++i)
    made.append(i == 0 ? "" : ",").append(std::to_string(values.shape()[i]));
  made += ']';
  for (const value& one : values.flat()) {
    auto bytes = std::bit_cast<std::array<std::byte, sizeof(value)>>(one);
    if constexpr (std::endian::native == std::endian::big) std::ranges::reverse(bytes);
    made += hex_text(bytes);
  }
  return made;
}

/// Calls `use.operator()<T>()` for the type of this name. Throws std::runtime_error if there is none.
template <class Use>
[[nodiscard]] std::string with_dtype(std::string_view name, const Use& use) {
  std::string made;
  const auto one = [&]<class T>() {
    if (name != penstock::mds_dtype<T>) return false;
    made = use.template operator()<T>();
    return true;
  };
  if (!(one.template operator()<std::int8_t>() || one.template operator()<std::int16_t>() ||
        one.template operator()<std::int32_t>() || one.template operator()<std::int64_t>() ||
        one.template operator()<std::uint8_t>() || one.template operator()<std::uint16_t>() ||
        one.template operator()<std::uint32_t>() || one.template operator()<std::uint64_t>() ||
        one.template operator()<penstock::half>() || one.template operator()<float>() ||
        one.template operator()<double>()))
    throw std::runtime_error("no type is called '" + std::string(name) + "'");
  return made;
}
/// What a codec makes of a value.
template <class Codec, class Value, class Show>
[[nodiscard]] std::string decoded_text(const Codec& codec, const Value& value, const Show& show) {
  penstock::scratch_of<Codec> scratch;
  return show(codec.decode(value, scratch));
}
template <class Value>
[[nodiscard]] std::string raw_number_text(std::string_view kind, const Value& value) {
  return with_dtype(
      kind, [&]<class T>() { return decoded_text(penstock::raw_number<T>{}, value, number_text<T>); });
}
/// The kind of a column: what is behind the last underscore of its name, without the number behind a point.
[[nodiscard]] inline std::string_view kind_of_column(std::string_view name) {
  name.remove_prefix(name.rfind('_') + 1);
  return name.substr(0, name.find('.'));
}

/// All samples of a source, a line each; `value_text` prints a value of a kind.
template <class Source, class ValueText>
[[nodiscard]] std::string samples_text(const Source& source, std::size_t workers,
                                       const ValueText& value_text) {
  std::string all;
  const auto line_of = [&value_text](const auto& sample) {
    std::vector<std::pair<std::string, std::string>> cells;
    for (std::size_t i = 0; i < sample.size(); ++i) {
      const std::string name(sample.name(i));
      cells.emplace_back(name, value_text(kind_of_column(name), sample.member(i)));
    }
    std::ranges::sort(cells);
    std::string line;
    for (const auto& [name, text] : cells) line += (line.empty() ? "" : "\t") + name + "=" + text;
    return line;
  };
  auto run = (source | penstock::map(line_of) | penstock::workers(workers)).open();
  for (const auto& line : run) all.append(line).append("\n");
  return all;
}
/// Compares what a source reads with what the library has written, also with workers.
template <class Source, class ValueText>
void check_peer_values(const Source& source, const std::filesystem::path& folder, int seed,
                       const ValueText& value_text) {
  const std::string expected = peer_values(folder, seed, ".expected");
  REQUIRE_FALSE(expected.empty());
  for (const std::size_t workers : {0u, 2u})
    CHECK(first_difference(samples_text(source, workers, value_text), expected) == "");
}

}  // namespace penstock_test
