// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/arrow_ipc.hpp>

#include <penstock/codec/arrow_value.hpp>
#include <penstock/codec/identity.hpp>
#include <penstock/codec/unpack_lz4.hpp>
#include <penstock/codec/unpack_zstd.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/subset.hpp>
#include <penstock/run/run.hpp>
#include <penstock/stage/bad_samples.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/simulated_storage.hpp>

#include "support/arrow_text.hpp"
#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/external_program.hpp"
#include "support/resume_test.hpp"
#include "support/temp_dir.hpp"
#include "support/test_data.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;
using penstock_test::arrow_oracle;
using penstock_test::arrow_oracles;
using penstock_test::arrow_rows_text;

static_assert(ps::indexed_source<ps::arrow_ipc_source<ps::mapped_file>> &&
              ps::projecting_source<ps::arrow_ipc_source<ps::mapped_file>>);
static_assert(ps::open_sample<ps::arrow_ipc_source<ps::mapped_file>::element>);

namespace arrow_ipc_test {

struct arrow_folder : penstock_test::oracle_folder {
  arrow_folder() : oracle_folder(arrow_oracles) {}
};

bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

std::vector<std::string> oracle_names() {
  std::vector<std::string> names;
  for (const penstock_test::oracle_file& one : arrow_oracles)
    if (!one.path.ends_with(".expected")) names.emplace_back(one.path);
  return names;
}

template <class... Args>
auto packed(Args&&... args) {
  return ps::arrow_ipc<ps::unpack_lz4, ps::unpack_zstd>(std::forward<Args>(args)...);
}

/// The rows of some bytes, or the error.
std::string outcome(std::string_view bytes) {
  try {
    return arrow_rows_text(packed(ps::memory_files().add_view("x.arrow", ps::bytes_of(bytes))));
  } catch (const ps::error& e) {
    return e.what();
  }
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The Python that has pyarrow, with tools/arrow_oracles.py; nothing if it is not there.
std::optional<std::string> oracle_program() {
  const char* const support = std::getenv("PENSTOCK_TEST_SUPPORT");
  if (support == nullptr) return std::nullopt;
  const char* const named = std::getenv("PENSTOCK_TEST_ARROW");
  const std::string python = named == nullptr || *named == '\0' ? "python3" : named;
  const auto script =
      std::filesystem::path(support).parent_path().parent_path() / "tools" / "arrow_oracles.py";
  if (!penstock_test::have_program("pyarrow", python + " -c 'import pyarrow'")) return std::nullopt;
  return python + " " + script.string();
}

}  // namespace arrow_ipc_test

using namespace arrow_ipc_test;

TEST_CASE("source/arrow_ipc: pyarrow's files, value for value, over every storage and with any workers") {
  const arrow_folder folder;
  for (const std::string& name : oracle_names()) {
    INFO(name);
    const std::string expected(arrow_oracle(name + ".expected"));
    for (const std::size_t workers : {0u, 1u, 2u, 7u})
      CHECK(arrow_rows_text(packed(std::vector{folder(name)}), workers) == expected);
    CHECK(arrow_rows_text(packed(ps::file(folder(name)))) == expected);
    const auto memory = ps::memory_files().add(name, arrow_oracle(name));
    CHECK(arrow_rows_text(packed(memory), 2) == expected);
    CHECK(arrow_rows_text(packed(ps::simulated_storage(memory, {.latency = std::chrono::microseconds(1)})),
                          2) == expected);
  }
}

TEST_CASE("source/arrow_ipc: files and streams at the end of a chunk of LitData") {
  const auto chunk = [](std::string_view arrow, std::size_t before) {
    std::string bytes = std::string(before, '\1').append(arrow);
    for (unsigned i = 0; i < 4; ++i) bytes += static_cast<char>(arrow.size() >> 8 * i & 255);
    return bytes.append("LDARW01\0", 8);
  };
  for (const std::string& name : oracle_names())
    for (const std::size_t before : {1u, 8u, 13u, 4096u}) {
      INFO(name << " behind " << before << " bytes");
      CHECK(outcome(chunk(arrow_oracle(name), before)) == arrow_oracle(name + ".expected"));
    }
  // Offsets count in the chunk; one that is cut off anywhere is an error.
  const std::string bytes = chunk(arrow_oracle("file.arrow"), 100);
  for (std::size_t size = 0; size < bytes.size(); size += 97) {
    INFO(size);
    CHECK(contains(outcome(bytes.substr(0, size)), "penstock:"));
  }
  std::string longer = bytes;
  longer[bytes.size() - 9] = '\1';
  CHECK(contains(outcome(longer), "the chunk's rows of Arrow have 16"));
  CHECK(contains(outcome(chunk("PAR1....", 20)), "Parquet"));
}

TEST_CASE("source/arrow_ipc: columns become what codecs are asked for") {
  const arrow_folder folder;
  auto run = (ps::arrow_ipc(folder("file.arrow")) |
              ps::decode<ps::field<"i", ps::arrow_value<std::int64_t, -1>>,
                         ps::field<"f", ps::arrow_value<std::optional<float>>>,
                         ps::field<"s", ps::arrow_value<std::optional<std::string>>>,
                         ps::field<"l", ps::arrow_value<std::vector<std::int32_t>>>,
                         ps::field<"m", ps::arrow_array<std::uint8_t>>, ps::field<"w", ps::identity>,
                         ps::field<"k", ps::arrow_value<std::optional<std::string>>>> |
              ps::bad_samples::skip(100))
                 .open();
  std::size_t rows = 0;
  for (auto&& row : run) {
    if (rows++ == 1) {
      CHECK(ps::get<"i">(row) == -1);
      CHECK(ps::get<"f">(row) == -1.0f);
      CHECK(ps::get<"s">(row) == "\u00e9\u00e8");
      CHECK(ps::get<"l">(row).empty());
      CHECK(ps::get<"m">(row).view().shape() == ps::extents(2, 3));
      CHECK(ps::text_of(ps::get<"w">(row).view()) == std::string_view("\1\1\1", 3));
      CHECK(ps::get<"k">(row) == "green");
    }
  }
  CHECK(rows == 6);  // the third has a null where a list is asked for
}

TEST_CASE("source/arrow_ipc: arrays and ragged lists become batches") {
  const arrow_folder folder;
  const auto plan =
      ps::arrow_ipc(folder("file.arrow")) |
      ps::decode<ps::field<"v", ps::arrow_array<float>>, ps::field<"i", ps::arrow_value<std::int64_t, 0>>> |
      ps::batch(7);
  auto run = plan.open();
  for (auto&& b : run) {
    CHECK(ps::get<"v">(b).shape() == ps::extents(7, 2));
    CHECK(ps::get<"v">(b)[6].flat()[1] == 6.5f);
    CHECK(ps::get<"i">(b)[3] == std::int64_t{1} << 40);
  }
  CHECK(contains(ps::arrow_ipc(folder("file.arrow")).describe(), "7 rows of i (int64), u (uint8)"));
}

TEST_CASE("source/arrow_ipc: a run resumes at every step, on other numbers of workers and ranks") {
  const arrow_folder folder;
  const auto rows = [&](std::string_view name) {
    return packed(std::vector{folder(name), folder(name), folder(name)}) |
           ps::decode<ps::field<"i", ps::arrow_value<std::int64_t, 77>>> |
           ps::map([](const auto& r) { return static_cast<std::uint64_t>(ps::get<"i">(r)); });
  };
  for (const std::string_view name : {"file.arrow", "zstd.feather"}) {
    engine_test::check_all_stops(rows(name) | ps::shuffle(ps::seed(3)) | ps::batch(2));
    engine_test::check_elastic(
        [&](std::uint64_t rank, std::uint64_t world, std::uint64_t each) {
          return rows(name) | ps::shuffle(ps::seed(5)) | ps::shard(rank, world) | ps::batch(each);
        },
        6, 2, 3, 1);
  }
}

TEST_CASE(
    "source/arrow_ipc: batches that are not in place are kept within their limit, and only what is used is "
    "read") {
  const arrow_folder folder;
  const auto sum = [](const auto& source) {
    auto run = (source | ps::shuffle(ps::seed(1)) |
                ps::decode<ps::field<"i", ps::arrow_value<std::int64_t, 0>>> | ps::workers(3))
                   .open();
    std::int64_t all = 0;
    for (auto&& row : run) all += ps::get<"i">(row);
    return all;
  };
  const std::vector paths(20, folder("stream.arrow"));
  const std::int64_t expected = sum(ps::arrow_ipc(paths));
  CHECK(sum(ps::arrow_ipc(ps::file(paths), {.keep = 0})) == expected);
  CHECK(sum(ps::arrow_ipc(ps::file(paths), {.keep = 200})) == expected);
  CHECK(sum(packed(std::vector(20, folder("lz4.feather")), ps::arrow_ipc_options{.keep = 1})) ==
        3 * expected);

  const ps::simulated_storage counted(ps::memory_files().add("s", arrow_oracle("stream.arrow")), {});
  const auto source = ps::arrow_ipc(counted);
  const std::uint64_t metadata = counted.bytes();
  CHECK(sum(source) == expected / 20);
  const std::uint64_t one_column = counted.bytes() - metadata;
  CHECK(arrow_rows_text(source) == arrow_oracle("stream.arrow.expected"));
  CHECK(counted.bytes() - metadata - one_column > one_column);
}

TEST_CASE("source/arrow_ipc: subsets by a column read no other") {
  const arrow_folder folder;
  const auto source = ps::arrow_ipc(folder("file.arrow"));
  CHECK(source.size() == 7);
  CHECK(*source.starts() == std::vector<std::uint64_t>{0, 4, 7});
  const auto reader = source.connect();
  CHECK(reader.key(5) == "file.arrow:5");
  CHECK(ps::arrow_ipc(folder("stream.arrow")).fingerprint() != source.fingerprint());
  CHECK(ps::arrow_ipc(folder("file.arrow")).fingerprint() == source.fingerprint());
}

TEST_CASE("source/arrow_ipc: a folder of Hugging Face's is its files in order, and none may be missing") {
  const penstock_test::temp_dir dir;
  const auto put = [&](const char* name, std::string_view bytes) {
    std::ofstream(dir / name, std::ios::binary) << bytes;
  };
  put("state.json", "{}");
  CHECK_THROWS_WITH(ps::arrow_ipc(dir.path().string()), Catch::Contains("have no file called *.arrow"));
  put("data-00001-of-00002.arrow", arrow_oracle("stream.arrow"));
  CHECK_THROWS_WITH(ps::arrow_ipc(dir.path().string()),
                    Catch::Contains("counts, and lacks number 0: fetch the others"));
  put("data-00000-of-00002.arrow", arrow_oracle("stream.arrow"));
  put("cache-1234.arrow", arrow_oracle("views.arrow"));
  const auto source = ps::arrow_ipc(dir.path().string());
  CHECK(source.size() == 14);
  CHECK(source.connect().key(0) == "data-00000-of-00002.arrow:0");
  put("imdb-test.arrow", arrow_oracle("stream.arrow"));
  CHECK_THROWS_WITH(ps::arrow_ipc(dir.path().string()), Catch::Contains("the split test, and files of none"));
}

TEST_CASE("source/arrow_ipc: faults are one sentence with the place") {
  const arrow_folder folder;
  const auto error_of = [](const auto& call) -> std::string {
    try {
      (void)call();
    } catch (const ps::error& e) {
      return e.what();
    }
    return "none";
  };
  CHECK(contains(error_of([&] { return arrow_rows_text(ps::arrow_ipc(folder("lz4.feather"))); }),
                 "write arrow_ipc<unpack_lz4>(...), and link penstock::lz4 [file "));
  CHECK(contains(outcome("PAR1...."),
                 "this is not an Arrow file: it is a Parquet file [file x.arrow, offset 0]"));
  CHECK(contains(outcome("FEA1...."), "Feather file of version 1"));
  CHECK(contains(outcome(""), "the file is empty"));
  CHECK(contains(outcome(arrow_oracle("file.arrow").substr(0, 900)),
                 "it is cut off [file x.arrow, offset 900]"));
  CHECK(contains(outcome(arrow_oracle("stream.arrow").substr(0, 1500)), "the file is cut off"));
  CHECK(contains(error_of([&] {
                   return arrow_rows_text(
                       packed(std::vector{folder("zstd.feather")}, ps::arrow_ipc_options{.limit = 100}));
                 }),
                 "the batch needs more than 100 bytes of memory; raise it with arrow_ipc_options"));
  const auto decoded = [&](const auto& stage) {
    return error_of([&] {
      auto run = (ps::arrow_ipc(folder("file.arrow")) | stage).open();
      for (auto&& row : run) (void)row;
    });
  };
  const std::string null = decoded(ps::decode<ps::field<"i", ps::arrow_value<std::int64_t>>>);
  CHECK(contains(null, "the value of the column 'i' is null"));
  CHECK(contains(null, "file.arrow:1"));
  CHECK(contains(decoded(ps::decode<ps::field<"s", ps::arrow_value<std::int64_t>>>),
                 "is of type string, and a whole number"));
  CHECK(contains(decoded(ps::decode<ps::field<"i", ps::identity>>), "is of type int64, which is no bytes"));
  CHECK(contains(decoded(ps::decode<ps::field<"s", ps::identity>>), "the value of the column 's' is null"));
  CHECK(contains(decoded(ps::decode<ps::field<"i", ps::arrow_value<std::int8_t, 0>>>),
                 "does not fit the type"));
  CHECK(contains(decoded(ps::decode<ps::field<"nope", ps::identity>>), "it has: i, u, f, d, h, b, s, raw"));
}

TEST_CASE("source/arrow_ipc: files that are cut off or damaged are an error, or the same rows") {
  for (const std::string& name : oracle_names()) {
    const std::string whole(arrow_oracle(name));
    const std::string good = outcome(whole);
    for (std::size_t size = 0; size < whole.size(); size += size < 1200 ? 1 : 13) {
      // of a stream, the batches before the end of a message are there
      const std::string cut = outcome(whole.substr(0, size));
      if (!contains(cut, "penstock:")) CHECK(good.starts_with(cut));
    }
    ps::rng random(whole.size(), 1, 2);
    for (int i = 0; i < 600; ++i) {
      std::string damaged = whole;
      for (int k = 0; k < 1 + i % 3; ++k) {
        char& byte = damaged[static_cast<std::size_t>(random.below(damaged.size()))];
        byte = i % 2 == 0 ? static_cast<char>(byte ^ (1 << random.below(8)))
                          : static_cast<char>(random.below(256));
      }
      CHECK_FALSE(outcome(damaged).empty());
    }
  }
}

TEST_CASE("source/arrow_ipc: random columns that pyarrow writes, value for value") {
  const auto program = oracle_program();
  if (!program) return;
  const penstock_test::temp_dir dir;
  const int count = penstock_test::long_tests() ? 1000 : 120;
  const auto made = penstock_test::run_program(*program + " --random 7 " + std::to_string(count) + " " +
                                               dir.path().string());
  INFO(made.output);
  REQUIRE(made.status == 0);
  for (int i = 0; i < count; ++i) {
    const std::string name = std::to_string(i) + ".arrow";
    INFO(name);
    const std::string expected = read_file(dir / (name + ".expected"));
    CHECK(arrow_rows_text(packed((dir / name).string()), static_cast<std::size_t>(i % 3)) == expected);
    CHECK(arrow_rows_text(packed(ps::file((dir / name).string()))) == expected);
  }
  CHECK(penstock_test::run_program(*program + " --check").status == 0);
}

TEST_CASE("source/arrow_ipc: Arrow's own integration files, as pyarrow reads them, in both byte orders") {
  const auto data = penstock_test::test_data("arrow");
  if (!data) {
    WARN("there is no folder arrow in the test data");
    return;
  }
  const auto program = oracle_program();
  if (!program) return;
  std::string files;
  for (const auto& one : std::filesystem::recursive_directory_iterator(*data / "integration"))
    if (one.path().extension() == ".arrow_file") files += " " + one.path().string();
  const auto expected = penstock_test::run_program(*program + " --expect" + files);
  REQUIRE(expected.status == 0);
  std::size_t compared = 0;
  std::string_view rest = expected.output;
  while (!rest.empty()) {
    const std::size_t line = rest.find('\n'), end = std::min(rest.find("\n== ", line), rest.size() - 1);
    const std::string path(rest.substr(3, line - 3));
    const std::string_view rows = rest.substr(line + 1, end - line);
    rest.remove_prefix(end + 1);
    if (rows.starts_with("pyarrow: ")) continue;  // it has no type for intervals of months
    INFO(path);
    CHECK(arrow_rows_text(packed(std::vector{path})) == rows);
    ++compared;
  }
  CHECK(compared >= 75);
}

TEST_CASE("source/arrow_ipc: what fuzzers found in Arrow is an error, or rows") {
  const auto data = penstock_test::test_data("arrow");
  if (!data) {
    WARN("there is no folder arrow in the test data");
    return;
  }
  std::size_t read = 0;
  for (const auto& one : std::filesystem::directory_iterator(*data / "fuzz")) {
    INFO(one.path());
    CHECK_FALSE(outcome(read_file(one.path())).empty());
    ++read;
  }
  CHECK(read > 60);
}
