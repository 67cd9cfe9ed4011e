// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/mds.hpp>

#include "support/catch.hpp"
#include "support/format_peers.hpp"
#include "support/temp_dir.hpp"

#include <penstock/codec/floating.hpp>
#include <penstock/codec/identity.hpp>
#include <penstock/codec/integer.hpp>
#include <penstock/codec/mds_array.hpp>
#include <penstock/codec/text.hpp>
#include <penstock/codec/unpack_brotli.hpp>
#include <penstock/codec/unpack_bzip2.hpp>
#include <penstock/codec/unpack_gzip.hpp>
#include <penstock/codec/unpack_snappy.hpp>
#include <penstock/codec/unpack_zstd.hpp>
#include <penstock/core/random.hpp>
#include <penstock/source/mds_writer.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ps = penstock;

namespace mds_agreement_test {

constexpr int seeds = 24;

/// A value of a column, read with the codec for it.
const auto value_text = [](std::string_view kind, const auto& value) -> std::string {
  using namespace penstock_test;
  if (kind == "b") return quoted_hex(value.finish());
  const auto plain = [](const auto& one) { return number_text(one); };
  const auto array = [](const auto& one) { return array_text(one); };
  if (kind == "t")
    return decoded_text(ps::text{}, value,
                        [](std::string_view one) { return quoted_hex(ps::bytes_of(one)); });
  if (kind == "si") return decoded_text(ps::integer_as<std::int64_t>{}, value, plain);
  if (kind == "sf") return decoded_text(ps::floating_as<double>{}, value, plain);
  if (kind == "p") return decoded_text(ps::pil_pixels{}, value, array);
  if (kind == "l") return decoded_text(ps::mds_list{}, value, list_text);
  if (kind.front() == 'a')
    return with_dtype(kind.substr(1),
                      [&]<class T>() { return decoded_text(ps::mds_array<T>{}, value, array); });
  return raw_number_text(kind, value);
};

std::string random_bytes(ps::rng& random, std::size_t size) {
  std::string made;
  for (std::size_t i = 0; i < size; ++i) made += static_cast<char>(random.below(256));
  return made;
}

/// The bytes of a value for a column of this encoding, and how it is printed.
std::pair<std::string, std::string> random_value(ps::rng& random, std::string_view encoding) {
  using namespace penstock_test;
  constexpr std::size_t sizes[] = {0, 1, 2, 7, 8, 9, 300};
  const std::size_t size = sizes[random.below(std::size(sizes))];
  const auto same = [](const std::string& bytes) {
    return std::pair{bytes, quoted_hex(ps::bytes_of(bytes))};
  };
  if (encoding == "bytes") return same(random_bytes(random, size));
  if (encoding == "str") {
    std::string text;
    for (std::size_t i = 0; i < size; ++i) text += random.below(2) == 0 ? "\u6f22" : "x\n";
    return same(text);
  }
  if (encoding == "json") return same("{\"n\": " + std::to_string(random.below(1000)) + "}");
  if (encoding == "str_int") {
    const std::string text = std::to_string(static_cast<std::int64_t>(random()));
    return {text, text};
  }
  if (encoding == "pil") {
    const auto width = static_cast<std::uint32_t>(1 + random.below(5)),
               height = static_cast<std::uint32_t>(1 + random.below(5));
    const std::string pixels = random_bytes(random, std::size_t{3} * width * height);
    std::string bytes;
    for (const std::uint32_t one : {width, height, 3u}) bytes += ps::text_of(ps::mds_number(one));
    return {bytes + "RGB" + pixels, "uint8[" + std::to_string(height) + "," + std::to_string(width) + ",3]" +
                                        hex_text(ps::bytes_of(pixels))};
  }
  if (!encoding.starts_with("ndarray")) {
    const std::string_view dtype = encoding == "int" ? "int64" : encoding;
    std::string bytes;
    std::string text = with_dtype(dtype, [&]<class T>() {
      bytes = random_bytes(random, sizeof(T));
      T value{};
      std::memcpy(&value, bytes.data(), sizeof(T));
      return number_text(value);
    });
    return {bytes, text};
  }
  std::string bytes;
  const std::string_view rest = encoding.substr(8);
  const bool shaped = rest.find(':') != rest.npos;
  const std::string text = with_dtype(rest.substr(0, rest.find(':')), [&]<class T>() {
    const ps::extents shape =
        shaped ? ps::extents(2, 3) : ps::extents(1 + random.below(3), 1 + random.below(300));
    std::vector<T> values(shape.elements());
    const std::string raw = random_bytes(random, values.size() * sizeof(T));
    std::memcpy(static_cast<void*>(values.data()), raw.data(), raw.size());
    const auto made = ps::mds_array_bytes<T>(encoding, shape, std::span<const T>(values));
    bytes = ps::text_of(ps::bytes_view(made));
    return array_text(ps::tensor_view<const T>(values.data(), shape));
  });
  return {bytes, text};
}

/// Writes a dataset of random columns and values; returns what is in it.
std::string write_dataset(const std::filesystem::path& folder, std::uint64_t seed) {
  using choice = std::pair<const char*, const char*>;  // an encoding, and the kind of its values
  constexpr choice choices[] = {{"bytes", "b"},
                                {"str", "t"},
                                {"json", "b"},
                                {"str_int", "si"},
                                {"pil", "p"},
                                {"int", "int64"},
                                {"uint8", "uint8"},
                                {"int16", "int16"},
                                {"uint64", "uint64"},
                                {"float16", "float16"},
                                {"float32", "float32"},
                                {"float64", "float64"},
                                {"ndarray:int16", "aint16"},
                                {"ndarray:float16", "afloat16"},
                                {"ndarray:float32:2,3", "afloat32"},
                                {"ndarray:uint64:2,3", "auint64"}};
  ps::rng random(seed, 1, 2);
  std::vector<std::pair<std::string, std::string>> columns;
  for (std::uint64_t i = 0, count = 1 + random.below(8); i < count; ++i) {
    const auto& [encoding, kind] = choices[random.below(std::size(choices))];
    columns.emplace_back((random.below(4) == 0 ? "\u00e9" : "c") + std::to_string(i) + "_" + kind, encoding);
  }
  std::ranges::sort(columns);
  constexpr std::uint64_t limits[] = {1500, 5000, 1 << 26}, counts[] = {1, 2, 20, 60};
  ps::mds_writer out(folder.string(), columns, {.size_limit = limits[random.below(3)]});
  std::string all;
  for (std::uint64_t i = 0, count = counts[random.below(4)]; i < count; ++i) {
    std::vector<std::string> values;
    for (const auto& [name, encoding] : columns) {
      auto [bytes, text] = random_value(random, encoding);
      values.push_back(std::move(bytes));
      all += (&name == &columns.front().first ? "" : "\t") + name + "=" + text;
    }
    all += "\n";
    std::vector<ps::mds_field> fields;
    for (std::size_t k = 0; k < columns.size(); ++k)
      fields.emplace_back(columns[k].first, std::string_view(values[k]));
    out.write(fields);
  }
  out.close();
  return all;
}

}  // namespace mds_agreement_test

TEST_CASE("source/mds: what mosaicml-streaming writes, value for value") {
  const auto peer = penstock_test::format_peer::find("mds");
  if (!peer) return;
  const penstock_test::temp_dir dir;
  peer->run("write mds", dir.path(), 0, mds_agreement_test::seeds);
  for (int seed = 0; seed < mds_agreement_test::seeds; ++seed) {
    INFO("seed " << seed);
    const auto data =
        ps::mds<ps::unpack_gzip, ps::unpack_zstd, ps::unpack_bzip2, ps::unpack_brotli, ps::unpack_snappy>(
            (dir / std::to_string(seed)).string(), {.folder = (dir / "unpacked").string()});
    penstock_test::check_peer_values(data, dir.path(), seed, mds_agreement_test::value_text);
  }
}

TEST_CASE("source/mds: what mds_writer writes, mosaicml-streaming reads") {
  const auto peer = penstock_test::format_peer::find("mds");
  if (!peer) return;
  const penstock_test::temp_dir dir;
  std::vector<std::string> written;
  for (int seed = 0; seed < mds_agreement_test::seeds; ++seed)
    written.push_back(
        mds_agreement_test::write_dataset(dir / std::to_string(seed), static_cast<std::uint64_t>(seed)));
  peer->run("read mds", dir.path(), 0, mds_agreement_test::seeds);
  for (int seed = 0; seed < mds_agreement_test::seeds; ++seed) {
    INFO("seed " << seed);
    CHECK(penstock_test::first_difference(penstock_test::peer_values(dir.path(), seed, ".read"),
                                          written[static_cast<std::size_t>(seed)]) == "");
  }
}
