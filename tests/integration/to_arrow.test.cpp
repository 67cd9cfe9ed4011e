// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/integration/to_arrow.hpp>

#include <penstock/codec/arrow_value.hpp>
#include <penstock/core/arrow_abi.hpp>
#include <penstock/core/half.hpp>
#include <penstock/core/record.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/arrow_stream.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/allow_empty.hpp>
#include <penstock/stage/bad_samples.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/prefetch.hpp>

#include "support/catch.hpp"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;
namespace abi = penstock::arrow_abi;

namespace to_arrow_test {

struct exported {
  abi::array array;
  abi::schema schema;

  template <class B>
  explicit exported(const B& b) {
    ps::to_arrow(b, &array, &schema);
  }
  exported(const exported&) = delete;
  exported& operator=(const exported&) = delete;
  ~exported() {
    if (array.release != nullptr) array.release(&array);
    if (schema.release != nullptr) schema.release(&schema);
  }
  [[nodiscard]] const abi::array& column(std::size_t i) const { return *array.children[i]; }
  [[nodiscard]] std::string_view format(std::size_t i) const { return schema.children[i]->format; }
  template <class T>
  [[nodiscard]] std::span<const T> buffer(std::size_t i, std::size_t which, std::size_t count) const {
    return {static_cast<const T*>(column(i).buffers[which]), count};
  }
};

using sample = ps::record<ps::field<"n", std::int32_t>, ps::field<"s", std::string>, ps::field<"b", bool>,
                          ps::field<"v", std::vector<float>>, ps::field<"h", ps::half>>;

auto samples(std::uint64_t count) {
  return ps::generated(count, [](std::uint64_t i) {
    return sample(static_cast<std::int32_t>(i), "text " + std::to_string(i), i % 3 == 0,
                  std::vector<float>(i % 4, static_cast<float>(i)), ps::half(static_cast<float>(i)));
  });
}

}  // namespace to_arrow_test

using namespace to_arrow_test;

TEST_CASE("integration/to_arrow: columns are the batch's memory, which outlives batch, run and plan") {
  std::vector<abi::array> kept;
  const void* numbers = nullptr;
  {
    auto run = (samples(10) | ps::batch(8, ps::ragged)).open();
    auto b = run.next();
    REQUIRE(b);
    exported made(*b);
    CHECK(std::string_view(made.schema.format) == "+s");
    CHECK(made.schema.n_children == 5);
    CHECK(made.array.length == 8);
    CHECK(std::string_view(made.schema.children[1]->name) == "s");
    CHECK(made.format(0) == "i");
    CHECK(made.format(1) == "U");
    CHECK(made.format(2) == "b");
    CHECK(made.format(3) == "+L");
    CHECK(made.format(4) == "e");
    CHECK(std::string_view(made.schema.children[3]->children[0]->format) == "f");
    numbers = ps::get<"n">(*b).data();
    CHECK(made.column(0).buffers[1] == numbers);
    CHECK(made.column(0).buffers[0] == nullptr);
    CHECK(made.buffer<std::uint8_t>(2, 1, 1)[0] == 0b01001001);
    const auto offsets = made.buffer<std::int64_t>(1, 1, 9);
    CHECK(offsets[8] == 8 * 6);
    CHECK(std::string_view(static_cast<const char*>(made.column(1).buffers[2]), 12) == "text 0text 1");
    kept.push_back(made.array);
    made.array.release = nullptr;
  }
  CHECK(static_cast<const std::int32_t*>(kept[0].children[0]->buffers[1])[7] == 7);
  kept[0].release(&kept[0]);
  CHECK(kept[0].release == nullptr);
}

TEST_CASE("integration/to_arrow: arrays are fixed-size lists, one for each dimension behind the first") {
  const std::vector<std::array<std::uint8_t, 3>> rows{{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {10, 11, 12}};
  auto run = (ps::from(rows) | ps::map([](const std::array<std::uint8_t, 3>& row) {
                return ps::tensor_view<const std::uint8_t>(row.data(), ps::extents(3, 1));
              }) |
              ps::batch(3, ps::tail::pad))
                 .open();
  auto first = run.next();
  REQUIRE(first);
  const exported made(*first);
  CHECK(std::string_view(made.schema.children[0]->name) == "value");
  CHECK(made.format(0) == "+w:3");
  const abi::array& outer = made.column(0);
  CHECK(std::string_view(made.schema.children[0]->children[0]->format) == "+w:1");
  CHECK(outer.length == 3);
  CHECK(outer.children[0]->length == 9);
  CHECK(outer.children[0]->children[0]->length == 9);
  CHECK(static_cast<const std::uint8_t*>(outer.children[0]->children[0]->buffers[1])[8] == 9);
  auto second = run.next();
  REQUIRE(second);
  const exported padded(*second);
  CHECK(padded.column(0).null_count == 2);
  CHECK(padded.buffer<std::uint8_t>(0, 0, 1)[0] == 1);
}

TEST_CASE("integration/to_arrow: padded fields are values and their lengths; holes are null") {
  auto run = (ps::generated(6,
                            [](std::uint64_t i) {
                              if (i == 2) throw ps::error(ps::errc::format, "bad");
                              return std::vector<std::uint16_t>(i % 3 + 1, static_cast<std::uint16_t>(i));
                            }) |
              ps::batch(6, ps::pad_to_longest) | ps::bad_samples::skip(10))
                 .open();
  auto b = run.next();
  REQUIRE(b);
  const exported made(*b);
  CHECK(made.format(0) == "+s");
  CHECK(made.column(0).null_count == 1);
  CHECK(made.buffer<std::uint8_t>(0, 0, 1)[0] == 0b111011);
  CHECK(std::string_view(made.schema.children[0]->children[0]->format) == "+w:3");
  const auto* lengths = static_cast<const std::uint64_t*>(made.column(0).children[1]->buffers[1]);
  CHECK(lengths[4] == 2);
}

TEST_CASE("integration/to_arrow: a run is a stream, which this library reads again") {
  const auto plan = samples(50) | ps::batch(8, ps::ragged) | ps::prefetch(10);  // for rows that are held
  const auto again =
      ps::arrow_stream([&] {
        abi::array_stream stream;
        ps::to_arrow_stream(plan.open(), &stream);
        return stream;
      }) |
      ps::decode<ps::field<"n", ps::arrow_value<std::int32_t>>, ps::field<"s", ps::arrow_value<std::string>>,
                 ps::field<"b", ps::arrow_value<bool>>, ps::field<"v", ps::arrow_value<std::vector<float>>>,
                 ps::field<"h", ps::arrow_value<ps::half>>>;
  auto run = again.open();
  std::int32_t i = 0;
  for (auto&& row : run) {
    const auto& [n, s, b, v, h] = row;
    CHECK(n == i);
    CHECK(s == "text " + std::to_string(i));
    CHECK(b == (i % 3 == 0));
    CHECK(v == std::vector<float>(static_cast<std::size_t>(i % 4), static_cast<float>(i)));
    CHECK(h == static_cast<float>(i));
    ++i;
  }
  CHECK(i == 50);
}

TEST_CASE("integration/to_arrow: a stream tells of failures, and of batches with other columns") {
  const auto read_all = [](auto run) {
    abi::array_stream stream;
    ps::to_arrow_stream(std::move(run), &stream);
    abi::schema schema;
    int code = stream.get_schema(&stream, &schema);
    if (code == 0) schema.release(&schema);
    while (code == 0) {
      abi::array batch;
      code = stream.get_next(&stream, &batch);
      if (batch.release == nullptr) break;
      batch.release(&batch);
    }
    const char* said = stream.get_last_error(&stream);
    const std::string text = said == nullptr ? "" : said;
    stream.release(&stream);
    return std::pair(code, text);
  };
  const auto fails = ps::generated(9, [](std::uint64_t i) {
    if (i == 5) throw ps::error(ps::errc::format, "sample five is bad");
    return i;
  });
  const auto failed = read_all((fails | ps::batch(2)).open());
  CHECK(failed.first == EIO);
  CHECK_THAT(failed.second, Catch::Contains("sample five is bad"));
  CHECK(read_all((samples(0) | ps::batch(2, ps::ragged) | ps::allow_empty).open()) ==
        std::pair(0, std::string()));
  const auto widening = ps::generated(4, [](std::uint64_t i) { return std::vector<int>(i < 2 ? 2 : 3, 7); });
  const auto other = read_all((widening | ps::batch(2, ps::pad_to_longest)).open());
  CHECK(other.first == EINVAL);
  CHECK_THAT(other.second, Catch::Contains("have other lengths than those of the first one"));
}
