// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/record_files.hpp>

#include <penstock/codec/identity.hpp>
#include <penstock/codec/json.hpp>
#include <penstock/codec/raw_number.hpp>
#include <penstock/codec/text.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/mapped_file.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/simulated_storage.hpp>

#include "support/catch.hpp"
#include "support/count_allocations.hpp"
#include "support/noting_storage.hpp"
#include "support/resume_test.hpp"
#include "support/temp_dir.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ps = penstock;
using Catch::Contains;

namespace record_files_test {

std::string number(std::uint64_t value) { return {reinterpret_cast<const char*>(&value), sizeof(value)}; }

/// A file is the number of its records, and where the values of each begin and end; the values lie anywhere.
/// Labels are in the index.
struct apart {
  static constexpr std::string_view source_name = "apart";

  struct index {
    std::vector<std::uint64_t> words;  // by record: near, far and wide, each begin and size, and the label
    std::vector<ps::record_field> names{
        {"near", "text"}, {"far", "text"}, {"wide", "bytes"}, {"label", "int64", true}};

    [[nodiscard]] std::uint64_t records() const { return words.size() / 7; }
    [[nodiscard]] const std::vector<ps::record_field>& fields() const { return names; }
    [[nodiscard]] ps::value_place place(std::uint64_t record, std::size_t field) const {
      const std::uint64_t* const at = words.data() + 7 * record;
      if (field == 3) return {0, 8, reinterpret_cast<const std::byte*>(at + 6)};
      if (at[2 * field] == 0) throw ps::error(ps::errc::format, "the value is nowhere").at_offset(8);
      return {at[2 * field], at[2 * field + 1]};
    }
    [[nodiscard]] std::string key(std::uint64_t record) const {
      return "k" + std::to_string(words[7 * record + 6]);
    }
  };
  [[nodiscard]] index read_index(ps::session_view session, ps::object_id file) const {
    std::uint64_t count = 0;
    if (session.size(file) < 8) throw ps::error(ps::errc::format, "too short for an index").at_offset(0);
    session.read(file, 0, std::as_writable_bytes(std::span(&count, 1)));
    index made;
    made.words.resize(7 * count);
    session.read(file, 8, std::as_writable_bytes(std::span(made.words)));
    if (count == 99) made.names[0].name = "other";
    return made;
  }
};

std::string apart_file(std::uint64_t first, std::uint64_t count) {
  std::string head = number(count), values;
  const std::uint64_t begin = 8 + 56 * count;
  for (std::uint64_t i = first; i < first + count; ++i) {
    const std::string near = "near" + std::to_string(i), far = "{\"far\": " + std::to_string(i) + "}";
    const std::string wide(i % 5 == 0 ? 0 : 5000, static_cast<char>('a' + i % 26));
    const std::uint64_t at = begin + values.size();
    values += near + wide + far;
    head += number(at) + number(near.size()) + number(at + near.size() + wide.size()) + number(far.size()) +
            number(at + near.size()) + number(wide.size()) + number(i);
  }
  return head + values;
}

/// A file is the number of its records, and where each begins and the last one ends; a record has the sizes
/// of its two values in front of them.
struct sized {
  static constexpr std::string_view source_name = "sized";

  struct index {
    std::vector<std::uint64_t> begins;
    std::vector<ps::record_field> names{{"a", "text"}, {"b", "text"}};

    [[nodiscard]] std::uint64_t records() const { return begins.size() - 1; }
    [[nodiscard]] const std::vector<ps::record_field>& fields() const { return names; }
    [[nodiscard]] ps::value_place record(std::uint64_t i) const {
      return {begins[i], begins[i + 1] - begins[i]};
    }
    [[nodiscard]] static std::uint64_t head() { return 16; }
    void divide(std::uint64_t i, ps::bytes_view bytes, std::span<ps::value_place> places) const {
      std::array<std::uint64_t, 2> sizes{};
      if (bytes.size() >= 16) std::memcpy(sizes.data(), bytes.data(), 16);
      if (16 + sizes[0] + sizes[1] != record(i).size)
        throw ps::error(ps::errc::format, "the sizes are not those of the record");
      places[0] = {record(i).begin + 16, sizes[0]};
      places[1] = {record(i).begin + 16 + sizes[0], sizes[1]};
    }
  };
  [[nodiscard]] index read_index(ps::session_view session, ps::object_id file) const {
    std::uint64_t count = 0;
    session.read(file, 0, std::as_writable_bytes(std::span(&count, 1)));
    index made;
    made.begins.resize(count + 1);
    session.read(file, 8, std::as_writable_bytes(std::span(made.begins)));
    return made;
  }
};

std::string sized_file(const std::vector<std::pair<std::string, std::string>>& records) {
  std::string head = number(records.size()), values;
  const std::uint64_t begin = 8 + 8 * (records.size() + 1);
  for (const auto& [a, b] : records) {
    head += number(begin + values.size());
    values += number(a.size()) + number(b.size()) + a + b;
  }
  return head + number(begin + values.size()) + values;
}

constexpr auto all_fields =
    ps::decode<ps::field<"near", ps::text>, ps::field<"far", ps::text>, ps::field<"wide", ps::identity>,
               ps::field<"label", ps::raw_number<std::int64_t>>>;

template <class T>
std::string copied(const T& value) {
  if constexpr (std::convertible_to<const T&, std::string_view>)
    return std::string(std::string_view(value));
  else
    return std::string(ps::text_of(ps::as_bytes(value)));
}

/// Which samples are wrong.
template <class Source>
std::string faults(const Source& source, std::size_t workers) {
  std::string wrong;
  std::uint64_t i = 0;
  for (auto&& s : (source | all_fields | ps::workers(workers)).epoch(0)) {
    const bool good =
        copied(ps::get<"near">(s)) == "near" + std::to_string(i) &&
        copied(ps::get<"far">(s)) == "{\"far\": " + std::to_string(i) + "}" &&
        copied(ps::get<"wide">(s)) == std::string(i % 5 == 0 ? 0 : 5000, static_cast<char>('a' + i % 26)) &&
        ps::get<"label">(s) == static_cast<std::int64_t>(i);
    if (!good) wrong += std::to_string(i) + " ";
    ++i;
  }
  return i == source.size() ? wrong : "another number of samples";
}

template <class F>
std::string problem_of(F&& f) {
  try {
    f();
  } catch (const ps::error& e) {
    return e.what();
  }
  return {};
}

using ranges_seen = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
template <class Source>
ranges_seen ranges_of(const Source& source, std::uint64_t index, const ps::projection& used) {
  ranges_seen found;
  source.connect(used).ranges(index, [&](auto&, ps::object_id, std::uint64_t begin, std::uint64_t size) {
    found.emplace_back(begin, size);
  });
  return found;
}

}  // namespace record_files_test

using namespace record_files_test;

using memory_source = ps::record_files<apart, ps::memory_files>;
static_assert(ps::indexed_source<memory_source> && ps::projecting_source<memory_source> &&
              ps::described_source<memory_source> && ps::open_sample<memory_source::element>);
static_assert(ps::indexed_source<ps::record_files<sized, ps::file>>);

TEST_CASE("source/record_files: every field, over every storage and with any workers") {
  const penstock_test::temp_dir dir;
  ps::memory_files memory;
  for (std::uint64_t i = 0; i < 3; ++i) {
    const std::string bytes = apart_file(20 * i, 20), name = (dir / (std::to_string(i) + ".apart")).string();
    std::ofstream(name, std::ios::binary) << bytes;
    memory.add(name, bytes);
  }
  const std::string pattern = (dir / "{0..2}.apart").string();
  const auto source = ps::record_files(apart{}, pattern);
  CHECK(source.size() == 60);
  CHECK(*source.starts() == std::vector<std::uint64_t>{0, 20, 40, 60});
  CHECK_THAT(source.describe(),
             Contains("apart(3 files, ") &&
                 Contains("60 samples of near (text), far (text), wide (bytes), label (int64)"));
  CHECK(source.fields()[3].name == "label");
  CHECK(source.connect().key(47) == "k47");
  CHECK(source.fingerprint() == ps::record_files(apart{}, memory).fingerprint());
  for (const std::size_t workers : {0u, 1u, 3u}) {
    CHECK(faults(source, workers).empty());
    CHECK(faults(ps::record_files(apart{}, ps::mapped_file(pattern)), workers).empty());
    CHECK(faults(ps::record_files(apart{}, ps::file(pattern, {.access = ps::file_access::read})), workers)
              .empty());
    CHECK(faults(ps::record_files(apart{}, memory), workers).empty());
    const ps::simulated_storage far(memory, {.latency = std::chrono::microseconds(1)});
    CHECK(faults(ps::record_files(apart{}, far), workers).empty());
  }
}

TEST_CASE("source/record_files: what no stage uses is not read") {
  const penstock_test::noting_storage noted{ps::memory_files().add("x.apart", apart_file(0, 20))};
  const auto source = ps::record_files(apart{}, noted);
  noted.notes->clear();
  for (auto&& s : source | ps::decode<ps::field<"label", ps::raw_number<std::int64_t>>>) (void)s;
  CHECK(noted.notes->bytes_read() <= 2 * 4096);  // whether it is still the file of the plan
  noted.notes->clear();
  std::size_t sum = 0;
  for (auto&& s : source | ps::decode<ps::field<"near", ps::text>>) sum += copied(ps::get<"near">(s)).size();
  CHECK(sum == 10 * 5 + 10 * 6);
  CHECK(noted.notes->bytes_read() <= 2 * 4096 + sum);

  CHECK(ranges_of(source, 3, ps::projection::of<"label">()).empty());
  CHECK(ranges_of(source, 3, ps::projection::of<"near">()).size() == 1);
  CHECK(ranges_of(source, 3, ps::projection::of<"near", "far">()).size() == 2);
  CHECK(ranges_of(source, 3, ps::projection()).size() == 1);
  CHECK(ranges_of(source, 3, ps::projection()).front().second == 5 + 5000 + 10);
}

TEST_CASE("source/record_files: records that say themselves where their values are") {
  const std::string large(40'000, 'x');
  const penstock_test::noting_storage noted{
      ps::memory_files().add("x", sized_file({{"1", "one"}, {large, "big"}, {"", ""}, {"3", "three"}}))};
  const auto source = ps::record_files(sized{}, noted);
  CHECK(source.connect().key(2) == "x:2");
  CHECK(source.connect().url(2) == "x");
  std::string seen;
  noted.notes->clear();
  for (auto&& s : source | ps::decode<ps::field<"b", ps::text>>) seen += copied(ps::get<"b">(s)) + ",";
  CHECK(seen == "one,big,,three,");
  CHECK(noted.notes->bytes_read() < 2 * 4096 + 100);  // of the large record its sizes and the value
  CHECK(ranges_of(source, 0, ps::projection::of<"b">()) == ranges_seen{{48, 20}});

  std::string damaged = sized_file({{"1", "one"}});
  damaged[24] = 9;
  const auto bad = ps::record_files(sized{}, ps::memory_files().add("dir/x", damaged));
  CHECK_THAT(problem_of([&] {
               for (auto&& s : bad | ps::decode<ps::field<"a", ps::text>>) (void)s;
             }),
             Contains("the sizes are not those of the record") && Contains("file dir/x") &&
                 Contains("offset 24") && Contains("x:0"));

  // Sizes of which the sum is right all the same.
  std::string wrapped = sized_file({{"1", "one"}});
  wrapped.replace(24, 16, number(~std::uint64_t{0} - 15) + number(20));
  const auto outside = ps::record_files(sized{}, ps::memory_files().add("dir/x", wrapped));
  CHECK_THAT(problem_of([&] {
               for (auto&& s : outside | ps::decode<ps::field<"a", ps::text>>) (void)s;
             }),
             Contains("a value lies outside its record") && Contains("offset 24") && Contains("x:0"));
}

TEST_CASE("source/record_files: a run resumes at every step, on other numbers of workers and ranks") {
  const auto samples = [] {
    return ps::record_files(apart{},
                            ps::memory_files().add("a", apart_file(0, 13)).add("b", apart_file(13, 17))) |
           ps::decode<ps::field<"label", ps::raw_number<std::int64_t>>, ps::field<"near", ps::text>> |
           ps::map([](const auto& s) {
             return static_cast<std::uint64_t>(ps::get<"label">(s)) + copied(ps::get<"near">(s)).size();
           });
  };
  engine_test::check_all_stops(samples() | ps::shuffle(ps::seed(3)) | ps::batch(4));
  engine_test::check_elastic(
      [&](std::uint64_t rank, std::uint64_t world, std::uint64_t each) {
        return samples() | ps::shuffle(ps::seed(5)) | ps::shard(rank, world) | ps::batch(each);
      },
      6, 2, 3, 1);
}

TEST_CASE("source/record_files: reading allocates nothing") {
  const auto check = [](const auto& source, std::size_t field) {
    const auto reader = source.connect();
    typename std::remove_cvref_t<decltype(source)>::reader::worker worker;
    std::size_t sum = 0;
    const auto all = [&] {
      for (std::uint64_t i = 0; i < source.size(); ++i)
        reader.evaluate({0, i * 7 % source.size()}, worker, [&](auto&& sample) {
          sum += sample.member(field).finish().size() + sample.key().size();
        });
    };
    all();
    CHECK(penstock_test::allocations_of(all) == 0);
    CHECK(sum != 0);
  };
  const auto sizes = sized_file({{"1", "one"}, {"2", std::string(50'000, 'x')}, {"3", "three"}});
  check(ps::record_files(sized{}, ps::memory_files().add("x", sizes)), 1);
  const penstock_test::temp_dir dir;
  const std::string path = (dir / "x").string();
  std::ofstream(path, std::ios::binary) << sizes;
  check(ps::record_files(sized{}, ps::file(path, {.access = ps::file_access::read})), 1);
  check(
      ps::record_files(apart{}, ps::memory_files().add("x", apart_file(0, 20)).add("y", apart_file(20, 20))),
      2);
}

TEST_CASE("source/record_files: faults are one sentence with the place") {
  const penstock_test::temp_dir dir;
  const std::string good = apart_file(0, 20), path = (dir / "x.apart").string();
  CHECK_THAT(problem_of([] { (void)ps::record_files(apart{}, ps::memory_files()); }),
             Contains("a dataset needs at least one file"));
  CHECK_THAT(problem_of([] { (void)ps::record_files(apart{}, ps::memory_files().add("y", "abc")); }),
             Contains("too short for an index") && Contains("file y") && Contains("offset 0"));
  CHECK_THAT(problem_of([&] {
               (void)ps::record_files(apart{}, ps::memory_files().add("x", good).add("y", apart_file(0, 99)));
             }),
             Contains("the file has other fields than the first one, 'x'") && Contains("file y"));

  std::string damaged = good;
  damaged.replace(8 + 56 * 3, 8, number(0));
  const auto near_of = [](const auto& source) {
    return problem_of([&] {
      for (auto&& s : source | ps::decode<ps::field<"near", ps::text>>) (void)s;
    });
  };
  const ps::memory_files memory = ps::memory_files().add("dir/z", damaged);
  CHECK_THAT(problem_of([&] { (void)ps::record_files(apart{}, memory); }),
             Contains("the value is nowhere") && Contains("file dir/z"));

  // What a codec finds is at an offset in the file.
  std::string text = good;
  text[text.find("{\"far\": 7}") + 8] = '?';
  CHECK_THAT(problem_of([&] {
               for (auto&& s : ps::record_files(apart{}, ps::memory_files().add("x", text)) |
                                   ps::decode<ps::field<"far", ps::json>>)
                 (void)s;
             }),
             Contains("file x") && Contains("offset " + std::to_string(text.find("{\"far\": ?}"))) &&
                 Contains("k7"));

  std::ofstream(path, std::ios::binary) << good;
  const auto source = ps::record_files(apart{}, path);
  CHECK(near_of(source).empty());
  std::ofstream(path, std::ios::binary) << good << "more";
  CHECK_THAT(near_of(source), Contains("was changed after the dataset was opened") && Contains("x.apart"));
}
